"""`backward` and `grad`: check the arguments, then let the engine run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

from pullback.backend.array_module import copy_array, ndarray, ones, ones_beside
from pullback.backend.device import lie_apart
from pullback.backend.dtype import from_numpy_dtype
from pullback.backend.layout import preserve_format
from pullback.backend.sparse_array import SparseArray
from pullback.engine.careful_run import as_tensor
from pullback.engine.engine import engine
from pullback.engine.validation import on_device
from pullback.errors import NoGradientError, is_pytorch_tensor, kind_of, mixed_libraries
from pullback.graph.edge import Edge
from pullback.graph.former_shape import FormerShape
from pullback.graph.gradient_edge import GradientEdge
from pullback.graph.history import gradient_edge
from pullback.graph.node import Node, new_node
from pullback.modes.cuts import note_cut
from pullback.modes.interception import has_overrides, intercept, is_backward_dispatched
from pullback.modes.source_lines import source_lines_wanted
from pullback.modes.switches import process, switches
from pullback.modes.user_warnings import warn_once, warn_user
from pullback.tensor.foreign_arguments import any_asked_whole, ask_about, is_foreign
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, new_tensor

INFINITY = float("inf")


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Compute the gradients of `tensors` and add them to the `.grad` of the leaves they were made from.

    >>> import pullback
    >>> x = pullback.tensor(3.0, requires_grad=True)
    >>> pullback.autograd.backward(x * x)
    >>> x.grad
    tensor(6.)
    """
    if switches.transforms:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
            "functorch.vjp instead (pullback.func.grad and .vjp) or call backward() outside of functorch transforms."
        )
    if grad_variables is not None:
        warn_user("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                "Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    roots = _as_tuple(tensors)
    inputs = None if inputs is None else _values_of(inputs, "backward")
    if (process.changed and any_asked_whole(*roots)) or (
        roots and type(roots[0]) is not Tensor and is_foreign(roots[0])
    ):
        answer: None = ask_about(  # whatever the class answers
            backward,
            roots,
            grad_tensors=grad_tensors,
            retain_graph=retain_graph,
            create_graph=create_graph,
            inputs=inputs,
        )
        return answer
    if inputs is not None and not isinstance(inputs, (Tensor, GradientEdge)) and len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    if create_graph:
        warn_once(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. Use autograd.grad, which returns the gradients instead, or set "
            ".grad of the parameters to None once they are used."
        )
    grads = make_grads(roots, grad_tensors, is_grads_batched=False)
    keep_graph = create_graph if retain_graph is None else retain_graph
    wanted = () if inputs is None else _as_tuple(inputs)
    if not keep_graph and grad_tensors is None and roots and type(loss := roots[0]) is Tensor:
        array = loss._array
        if type(array) is ndarray and not (-INFINITY < array.item() < INFINITY) and _is_unwatched():
            from pullback.inspection.diagnosis import remember_cause  # lazy: few losses are not finite

            remember_cause(loss)  # while its graph is there: Note [Post-mortem]
    run_engine(roots, grads, wanted, keep_graph, create_graph, allow_unused=True, accumulate=True)
    return None


def _is_unwatched() -> bool:
    """Whether lines are noted and nobody would see operations of this thread run again."""
    return (
        source_lines_wanted()
        and switches.plain
        and switches.node_observer is None
        and not switches.dispatch_modes
        and not switches.anomaly_mode
        and not switches.saved_tensor_hooks
    )


@overload
def grad(
    outputs: Any, inputs: Tensor | Sequence[Any], grad_outputs: Any = ..., retain_graph: bool | None = ...,
    create_graph: bool = ..., only_inputs: bool = ..., allow_unused: bool | None = ..., is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
) -> tuple[Any, ...]: ...  # fmt: skip


@overload
def grad(
    outputs: Any, inputs: dict[str, Tensor], grad_outputs: Any = ..., retain_graph: bool | None = ...,
    create_graph: bool = ..., only_inputs: bool = ..., allow_unused: bool | None = ..., is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
) -> dict[str, Any]: ...  # fmt: skip


@overload
def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = ..., retain_graph: bool | None = ...,
    create_graph: bool = ..., only_inputs: bool = ..., allow_unused: bool | None = ..., is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
) -> tuple[Any, ...]: ...  # fmt: skip


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...] | dict[str, Any]:
    """Return the gradients of `outputs` with respect to `inputs`, leaving every `.grad` alone.

    The gradients of a dict of inputs, as of `dict(model.named_parameters())`, are a dict with its keys.

    >>> import pullback
    >>> x = pullback.tensor(3.0, requires_grad=True)
    >>> pullback.autograd.grad(x ** 3, x)
    (tensor(27.),)
    """
    if _values_of(inputs, "grad") is not inputs:
        found = grad(
            outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs, allow_unused,
            is_grads_batched, materialize_grads,
        )  # fmt: skip
        return dict(zip(inputs, found, strict=True))
    if process.changed and switches.interceptors:
        options = {
            "retain_graph": retain_graph, "create_graph": create_graph, "allow_unused": allow_unused,
            "is_grads_batched": is_grads_batched, "materialize_grads": materialize_grads,
        }  # fmt: skip
        taken = intercept(grad, (outputs, inputs, grad_outputs), options)
        if taken is not NotImplemented:
            return taken
    if (process.changed and any_asked_whole(*_as_tuple(outputs), *_as_tuple(inputs))) or (
        type(outputs) is not Tensor and any(map(is_foreign, _as_tuple(outputs)))
    ):
        return ask_about(
            grad, _as_tuple(outputs), _as_tuple(inputs), grad_outputs=grad_outputs, retain_graph=retain_graph,
            create_graph=create_graph, only_inputs=only_inputs,
            allow_unused=materialize_grads if allow_unused is None else allow_unused,
            is_grads_batched=is_grads_batched, materialize_grads=materialize_grads,
        )  # fmt: skip
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warn_user(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
        )
    roots, wanted = _as_tuple(outputs), _as_tuple(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if is_grads_batched:
        return _batched_grad(roots, wanted, grad_outputs, create_graph, retain_graph, allow_unused, materialize_grads)
    grads = make_grads(roots, grad_outputs, is_grads_batched=False)
    keep_graph = create_graph if retain_graph is None else retain_graph
    captured = run_engine(roots, grads, wanted, keep_graph, create_graph, allow_unused=allow_unused, accumulate=False)
    assert captured is not None
    if not create_graph:
        for value, found in zip(wanted, captured, strict=True):
            if type(value) is Tensor and found is not None:
                note_cut("gradient", found, value)
    if materialize_grads:
        return _materialized(captured, wanted, create_graph)
    return captured


def run_engine(
    roots: Sequence[Any], grads: Sequence[Any], inputs: Sequence[Any], keep_graph: bool, create_graph: bool, *,
    allow_unused: bool, accumulate: bool,
) -> tuple[Any, ...] | None:  # fmt: skip
    """Send gradients into the roots. Add what arrives to `.grad` (of `inputs` alone where there are some), or return it."""
    edges = root_edges(roots)
    if not inputs:
        engine.execute(edges, grads, keep_graph=keep_graph, create_graph=create_graph)
        return None
    if accumulate:
        nodes = wanted_nodes(inputs)
        engine.execute(edges, grads, keep_graph=keep_graph, create_graph=create_graph, wanted=nodes, accumulate=False)
        return None
    captures = [_input_edge(value) for value in inputs]
    captured = engine.execute(
        edges, grads, keep_graph=keep_graph, create_graph=create_graph, captures=captures, accumulate=False
    )
    return _finish(captured, inputs, grads, allow_unused)


def root_edges(roots: Sequence[Any]) -> list[Edge]:
    """Where the gradients of the roots enter the graph."""
    return [_root_edge(root, index) for index, root in enumerate(roots)]


def wanted_nodes(inputs: Any) -> list[Node]:
    """The nodes that take the gradients of `inputs=` of backward()."""
    return [] if inputs is None else [_accumulating_node(value) for value in _as_tuple(inputs)]


def not_an_input(value: Any) -> RuntimeError:
    """The error of `inputs` that hold something else than tensors."""
    return RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {kind_of(value)}")


def _accumulating_node(value: Any) -> Node:
    if isinstance(value, Tensor):
        value.retain_grad()  # a leaf needs none
    elif not isinstance(value, GradientEdge):
        raise not_an_input(value)
    return _input_edge(value)[0]


def _finish(captured: list[Any], wanted: Sequence[Any], grads: Sequence[Any], allow_unused: bool) -> tuple[Any, ...]:
    """The gradients as Tensors: one for each array, and that of the caller for one that was handed on as it is."""
    results: list[Any] = []
    shown = {id(grad._array): grad for grad in grads if type(grad) is Tensor}
    for index, value in enumerate(captured):
        if value is None and not allow_unused:
            from pullback.inspection.explanation import told_unused  # lazy: above this layer, and only for an error

            raise NoGradientError(
                f"The differentiated Tensor at index {index} appears to not have been used in the graph. "
                f"Set allow_unused=True if this is the desired behavior.{told_unused(wanted[index])}"
            )
        if value is not None and not isinstance(value, Tensor):
            if id(value) not in shown:
                shown[id(value)] = _as_result(value)
            value = shown[id(value)]
        results.append(value)
    if has_overrides():
        return tuple(_of_input_type(given, result) for given, result in zip(wanted, results, strict=True))
    return tuple(results)


def _of_input_type(input: Any, gradient: Any) -> Any:
    """The gradient as the input's type has it: one of a MaskedTensor is masked."""
    wrap = getattr(type(input), "_wrap_gradient", None)
    return gradient if wrap is None else wrap(input, gradient)


def _as_result(value: Any) -> Tensor:
    return as_tensor(value) if isinstance(value, SparseArray) else new_tensor(_as_array(value))


def _as_array(value: Any) -> Any:
    from pullback.backend.array_module import as_array, copy_expanded

    array = as_array(value)
    return array if array.flags.writeable else copy_expanded(array)


def _zeros_like(value: Any, *, requires_grad: bool) -> Tensor:
    """The gradient of an input that nothing depends on; it can be differentiated again where the others can."""
    if isinstance(value, GradientEdge):
        raise RuntimeError(
            "materialize_grads cannot be used when the given input is a GradientEdge that no gradient arrives at: pass the "
            "tensor, or allow_unused=True."
        )
    array = copy_array(value._array)  # in the memory order of the input
    array[...] = 0
    result = new_tensor(array)
    result._requires_grad = requires_grad
    return result


def _batched_grad(
    roots: Sequence[Any], wanted: Sequence[Any], grad_outputs: Any, create_graph: bool, retain_graph: bool | None,
    allow_unused: bool, materialize: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """A vector of vector-Jacobian products: the backward, mapped over the first dimension of grad_outputs."""
    from pullback.func.vmap import vmap  # lazy: batching is a transform of the layers above

    is_given = grad_outputs is not None
    vectors = _as_tuple(grad_outputs) if is_given else tuple(make_grads(roots, None, is_grads_batched=True))
    for index, (root, vector) in enumerate(zip(roots, vectors, strict=False) if is_given else ()):
        shape = _root_metadata(root)[0]
        if vector._array.shape[1:] != shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
                "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
                f"mismatch was detected: grad_output[{index}] has a shape of {vector.shape} and output[{index}] has a "
                f"shape of {Size(shape)}. If you only want some tensors in `grad_output` to be considered batched, use vmap."
            )

    def vjp(*parts: Any) -> tuple[Any, ...]:
        return grad(
            roots, wanted, list(parts), retain_graph=retain_graph, create_graph=create_graph,
            allow_unused=allow_unused or materialize,
        )  # fmt: skip

    results = vmap(vjp, 0, 0, allow_none_pass_through=True)(*vectors)
    return _materialized(results, wanted, create_graph) if materialize else tuple(results)


def _materialized(results: Sequence[Any], wanted: Sequence[Any], create_graph: bool) -> tuple[Any, ...]:
    """Zeros in the place of gradients that are not there."""
    pairs = zip(results, wanted, strict=True)
    return tuple([_zeros_like(x, requires_grad=create_graph) if r is None else r for r, x in pairs])


def _as_tuple(value: Any) -> tuple[Any, ...]:
    if isinstance(value, (Tensor, GradientEdge)) or is_foreign(value):
        return (value,)
    return tuple(value)


def _values_of(inputs: Any, function: str) -> Any:
    """The values of a dict of inputs; other inputs as they are."""
    if isinstance(inputs, (Tensor, tuple, list, GradientEdge)) or not isinstance(inputs, Mapping):
        return inputs
    if type(inputs) is not dict:
        raise TypeError(
            f"`inputs` argument to `{function}()` must be a dict, not {type(inputs).__name__}: pass dict(inputs)."
        )
    return tuple(inputs.values())


def _root_edge(root: Any, index: int) -> Edge:
    if isinstance(root, GradientEdge):
        return (root.node, root.output_nr)
    edge = gradient_edge(root)
    if edge is None:
        from pullback.inspection.explanation import told_cut  # lazy: above this layer, and only for an error

        raise NoGradientError(
            f"element {index} of tensors does not require grad and does not have a grad_fn: it was not computed from "
            "a tensor with requires_grad=True, or it was computed under no_grad() or from a detach()ed tensor."
            f"{told_cut(root) or ' Of a loss, explain_grad(loss) names the line that probably did it.'}"
        )
    return edge


def _input_edge(value: Any) -> Edge:
    if isinstance(value, GradientEdge):
        return (value.node, value.output_nr)
    if not isinstance(value, Tensor):
        raise not_an_input(value)
    edge = gradient_edge(value)
    if edge is None:
        if value._requires_grad:  # a view made without recording, whose base requires grad: nothing leads to it
            return (new_node(Node), 0)
        raise NoGradientError("One of the differentiated Tensors does not require grad")
    if isinstance(edge[0], FormerShape):  # what was recorded before leads to the node behind it
        return edge[0].next_edges[0]  # type: ignore[return-value]  # it has that edge
    return edge


def make_grads(roots: Sequence[Any], given: Any, *, is_grads_batched: bool) -> list[Tensor]:
    """The gradient of each root: the user's, checked, or one for a real scalar."""
    if given is None:
        grads: Sequence[Any] = [None] * len(roots)
    elif isinstance(given, Tensor):
        grads = [given]
    else:
        grads = list(given)
    if len(grads) < len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(grads)} gradients")
    return [_make_grad(root, grad, index) for index, (root, grad) in enumerate(zip(roots, grads, strict=False))]


def shown_ones(root: Tensor) -> Tensor:
    """The gradient of a scalar with respect to itself, made where dispatch modes see it. See Note [Dispatch]."""
    from pullback.creation import ones_like  # lazy: few programs have modes

    return ones_like(root, pin_memory=False, memory_format=preserve_format)


def _make_grad(root: Any, grad: Any, index: int) -> Tensor:
    shape, numpy_dtype = _root_metadata(root)
    if grad is None:
        if _count(shape) != 1:
            _root_edge(root, index)  # that nothing leads back is the first thing to say
            raise RuntimeError("grad can be implicitly created only for scalar outputs: this one has shape "
                               f"{Size(shape)}. Pass gradient=, or reduce it, for example with .sum()")  # fmt: skip
        if numpy_dtype.kind in "cW":
            raise RuntimeError(
                f"grad can be implicitly created only for real scalar outputs but got {from_numpy_dtype(numpy_dtype)}"
            )
        if (
            process.changed
            and isinstance(root, Tensor)
            and is_backward_dispatched([edge[0] for edge in (root._edge,) if edge])
        ):
            return shown_ones(root)
        return new_tensor(
            ones_beside(root._array, shape, numpy_dtype) if isinstance(root, Tensor) else ones(shape, numpy_dtype)
        )
    if is_pytorch_tensor(grad):
        raise mixed_libraries("backward")
    if not isinstance(grad, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    if grad._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {grad.shape} and output[{index}] has a shape of "
            f"{Size(shape)}."
        )
    if isinstance(root, Tensor) and lie_apart(grad._array, root._array):
        grad = on_device(grad, root.device, index)
    if grad._array.dtype != numpy_dtype:
        if (grad._array.dtype.kind in "cW") != (numpy_dtype.kind in "cW"):
            raise RuntimeError(
                f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                f"dtype: grad_output[{index}] has a dtype of {grad.dtype} and output[{index}] has a dtype of "
                f"{from_numpy_dtype(numpy_dtype)}."
            )
        return grad.to(from_numpy_dtype(numpy_dtype))
    return grad


def _root_metadata(root: Any) -> tuple[Any, Any]:
    if isinstance(root, GradientEdge):
        metadata = root.node.input_metadata(root.output_nr)
        assert metadata is not None
        return metadata.shape, metadata.numpy_dtype
    try:
        return root._array.shape, root._array.dtype
    except AttributeError:
        raise AssertionError(
            f"Expected output to be a torch.Tensor or a GradientEdge, but got {kind_of(root)}"
        ) from None


def _count(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
