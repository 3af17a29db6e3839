"""The exceptions pullback raises, and the messages that are used in more than one place.

RuntimeError
  AutogradError                the graph was misused
    GraphFreedError            a second backward, or saved tensors read after their release
    InPlaceModificationError   a saved tensor was modified before backward needed it
    LeafModificationError      an in-place operation on a leaf that requires grad, or on a view of one
    ViewModificationError      an in-place operation on a view that forbids it
    NoGradientError            backward from a tensor without history, or an unused input
    AnomalyError               a NaN that anomaly mode found
    CompileError               a function, or what compile was asked for
      Unsupported              fullgraph=True, and the function cannot be one program
      InvalidBackend           there is no backend of this name
      BackendCompilerFailed    a backend of the user's raised
  LinAlgError                  a matrix that a factorization or a solver cannot take
  OutOfMemoryError             a device has no memory left
    AllocationError            no memory for a result; a MemoryError too
TypeError
  ArgumentTypeError            an argument lacks what a tensor has; an AttributeError too
  UnansweredError              every __torch_function__ that was asked returned NotImplemented
TypeError, ValueError, IndexError, NotImplementedError: as in Python
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pullback.facts import fact_of

NO_SIGNATURE = "received an invalid combination of arguments"


class AutogradError(RuntimeError):
    """The recorded graph was used in a way that cannot give a gradient."""


class GraphFreedError(AutogradError):
    """The saved tensors of a node were released by an earlier backward."""


class InPlaceModificationError(AutogradError):
    """A tensor saved for backward was modified before backward read it."""


class LeafModificationError(AutogradError):
    """An in-place operation would change a leaf that requires grad."""


class ViewModificationError(AutogradError):
    """An in-place operation would change a view that autograd cannot follow."""


class NoGradientError(AutogradError):
    """There is no path from an output to an input."""


class LinAlgError(RuntimeError):
    """A factorization or a solver failed: the matrix is singular, not positive-definite, or not finite."""


class OutOfMemoryError(RuntimeError):
    """A device has no memory left: `torch.OutOfMemoryError`."""


class AllocationError(OutOfMemoryError, MemoryError):
    """There is no memory for a result: Python's MemoryError, and the RuntimeError that PyTorch raises."""


class ArgumentTypeError(TypeError, AttributeError):
    """An argument of a wrong type. PyTorch's functions raise either, by the language that they are written in."""


class UnansweredError(TypeError):
    """Every class and mode that was asked returned NotImplemented. An operator says so in turn, to the other operand."""


class AnomalyError(AutogradError):
    """Anomaly mode found a NaN in a gradient."""


class CompileError(AutogradError):
    """What compile was asked for cannot be done: `torch._dynamo.exc.TorchDynamoException`."""


class Unsupported(CompileError):
    """`fullgraph=True` was asked for, and the function cannot be one program."""


class InvalidBackend(CompileError):
    """There is no backend of this name."""


class BackendCompilerFailed(CompileError):
    """A backend of the user's raised: `inner_exception`."""

    inner_exception: Exception | None = None


def graph_freed(node_name: str, places: str = "", *, in_loop: bool = False) -> GraphFreedError:
    """A released node is asked for what it had saved; `places` says where it was recorded and freed, if known.

    `in_loop`: the line that runs now freed it.
    """
    remedy = (
        " Where a loop carries it over from turn to turn, detach() it there, or compute it anew." if in_loop else ""
    )
    return GraphFreedError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        f"already been freed): {node_name} released its saved values when an earlier backward() or grad() ran.{places} "
        "Specify retain_graph=True in that earlier call if you need to backward through this graph again, or to read its "
        f"saved tensors afterwards.{remedy}"
    )


def modified_in_place(
    type_name: str,
    shape: Sequence[int],
    producer: str,
    output_nr: int,
    version: int,
    expected: int,
    *,
    anomaly: bool,
    places: str = "",
) -> InPlaceModificationError:
    """A saved tensor is at another version than when it was saved; `places` says where, if known."""
    origin = f", which is output {output_nr} of {producer}," if producer else ""
    hint = (
        "the backtrace further above shows the operation that failed to compute its gradient. "
        "The variable in question was changed in there or anywhere later. Good luck!"
        if anomaly
        else "enable anomaly detection to find the operation that failed to compute its gradient, "
        "with torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    further = [text for text in (hint if anomaly or not places else "", places) if text]
    return InPlaceModificationError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{type_name} {list(shape)}]{origin or ''} is at version {version}; "
        f"expected version {expected} instead. Hint: {' '.join(further)}"
    )


def captured_modification(function: str) -> AutogradError:
    """What a differentiating transform was given modifies a tensor from outside, by the in-place form of `function`."""
    overload = fact_of(function, "in_place_overload") or f"{function}_"
    return AutogradError(
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
        f"(aten::{overload}) that would mutate a captured Tensor. This is not supported: "
        "the tensor would keep a graph that is over when the transform is. Use the out-of-place operation, or pass the "
        "tensor to the function as an argument."
    )


def no_memory(error: Exception) -> RuntimeError | None:
    """The array library's complaint about an array that cannot be, in PyTorch's words; None for other errors."""
    if isinstance(error, AllocationError):
        return error
    if isinstance(error, MemoryError):
        return AllocationError(f"DefaultCPUAllocator: can't allocate memory: {error}")
    if isinstance(error, ValueError) and str(error).startswith(("array is too big", "Maximum allowed dimension")):
        return AllocationError(f"Storage size calculation overflowed: {error}")
    return None


def devices_differ(first: str, second: str) -> RuntimeError:
    """Tensors of two devices met in one operation."""
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}! Move one "
        "of them with Tensor.to(device)."
    )


def gpu_out_of_memory(what: str) -> OutOfMemoryError:
    """A GPU has no memory left for an array."""
    return OutOfMemoryError(
        f"CUDA out of memory. {what} Free tensors, take smaller batches, or give back what is kept: cuda.empty_cache()."
    )


def dim_out_of_range(dim: int, ndim: int) -> IndexError:
    """A dimension lies outside of a tensor's."""
    low, high = (-ndim, ndim - 1) if ndim else (-1, 0)
    return IndexError(f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})")


def not_a_tensor(function: str, argument: str, position: int, value: object) -> TypeError:
    """A tensor argument is something else."""
    return wrong_type(function, argument, position, "Tensor", value)


def is_pytorch_tensor(value: object) -> bool:
    """Whether `value` is a tensor of an installed PyTorch, not of pullback under its name."""
    return _is_pytorch_tensor_class(type(value))


def _is_pytorch_tensor_class(kind: type) -> bool:
    return any(base.__module__ == "torch._C" for base in kind.__mro__)


def kind_of(value: object) -> str:
    """The name of a value's type; with the library, where that is an installed PyTorch: `Tensor` would say nothing."""
    kind = type(value)
    if kind.__module__.partition(".")[0] == "torch" and "torch" in sys.modules:
        is_installed = _is_pytorch_tensor_class(getattr(sys.modules["torch"], "Tensor", object))
        return f"torch.{kind.__name__} (of the installed PyTorch)" if is_installed else kind.__name__
    return type_name_in_c(kind)


def type_name_in_c(kind: type) -> str:
    """The name that a type goes by in C, and in PyTorch's errors: with the module where it is not a Python class."""
    module = kind.__module__.partition(".")[0]
    if kind.__flags__ & _HEAP_TYPE or module in ("builtins", "pullback"):
        return kind.__name__
    return f"{kind.__module__}.{kind.__name__}"


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def mixed_libraries(function: str) -> TypeError:
    """Tensors of PyTorch and of pullback meet in one expression."""
    return ArgumentTypeError(
        f"{function}(): torch.Tensor (of the installed PyTorch) and pullback.Tensor cannot be mixed in one expression. "
        "Convert one of them: pullback.from_numpy(x.detach().numpy()) or torch.from_numpy(x.detach().numpy())."
    )


def wrong_type(function: str, argument: str, position: int | None, expected: str, value: object) -> TypeError:
    """An argument is of another type than its function takes; `position` is None for one given by its name."""
    if is_pytorch_tensor(value):
        return mixed_libraries(function)
    if expected == "tuple of Tensors" and isinstance(value, (tuple, list)):
        return _wrong_element(position, value)
    place = "" if position is None else f" (position {position})"
    found = f"not {kind_of(value)}"
    if expected == "tuple of ints" and isinstance(value, (tuple, list)):
        wrong = next((i for i, element in enumerate(value) if not hasattr(element, "__index__")), 0)
        found = f"but found element of type {type(value[wrong]).__name__} at pos {wrong}"
    kind = ArgumentTypeError if expected == "Tensor" else TypeError
    return kind(complaint_about_call() or f"{function}(): argument '{argument}'{place} must be {expected}, {found}")


def no_signature_fits(function: str, given: Sequence[str]) -> TypeError:
    """The arguments fit none of a function's signatures: which were given, and those that there are."""
    return refused_call(f"{function}() {NO_SIGNATURE} - got ({', '.join(given)})")


def refused_call(text: str) -> TypeError:
    """The arguments of a call do not fit: in PyTorch's words, or in these where PyTorch would take them."""
    return TypeError(complaint_about_call() or text)


def complaint_about_call() -> str | None:
    """What PyTorch's parser says of the call that the user wrote; None if it would take it. See Note [Refusals]."""
    from pullback.dispatch.wrong_calls import complaint_about_call  # lazy: only while an error is made

    return complaint_about_call()


def _wrong_element(position: int | None, values: Sequence[object]) -> TypeError:
    """A list of tensors holds something else."""
    wrong = next((i for i, element in enumerate(values) if not hasattr(element, "_array")), 0)
    found = kind_of(values[wrong])
    return TypeError(f"expected Tensor as element {wrong} in argument {(position or 1) - 1}, but got {found}")


def not_a_bool(function: str, argument: str, value: object) -> TypeError:
    """A switch is neither True nor False."""
    return wrong_type(function, argument, None, "bool", value)


def complex_gradient(name: str | None, index: int) -> RuntimeError:
    """A gradient of a real tensor is complex; `name` is the node that returned it, None where the user gave it."""
    by = "" if name is None else f"Function {name} returned an "
    return RuntimeError(
        "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, but "
        f"got false: {by}complex gradient at index {index} for a real input. Take its real part."
    )


def gradient_of_former_shape(held: Sequence[int], grad: Sequence[int]) -> RuntimeError:
    """A gradient does not fit a leaf, or its `.grad`, of which one was given another shape since."""
    ndim = max(len(held), len(grad))
    ours, theirs = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in (held, grad)]
    wrong = [d for d in range(ndim) if ours[d] != theirs[d] and 1 not in (ours[d], theirs[d])]
    if wrong:
        a, b = ours[wrong[-1]], theirs[wrong[-1]]
        found = (
            f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {wrong[-1]}"
        )
    else:
        common = [max(a, b) for a, b in zip(ours, theirs, strict=True)]
        found = f"output with shape {list(held)} doesn't match the broadcast shape {common}"
    return RuntimeError(
        f"{found}: a gradient of shape {list(grad)} arrives where one of shape {list(held)} is held, since the leaf was "
        "given another shape. Set .grad to None and record the graph again."
    )


def no_derivative_in(function: str, argument: str) -> RuntimeError:
    """A tensor requires grad where the function counts it as a constant."""
    return RuntimeError(
        f"The function '{function}' is not differentiable with respect to argument '{argument}'. This input cannot have "
        f"requires_grad True. Pass {argument}.detach(), or differentiate a formula of your own."
    )


def derivative_not_implemented(name: str) -> NotImplementedError:
    """A rule says that this derivative does not exist yet."""
    if name.startswith("aten::") or name == "set_":  # PyTorch has no rule at all
        return NotImplementedError(
            f"derivative for {name} is not implemented: it has steps or no gradient. Use it on a detach()ed tensor, or "
            "define its gradient with autograd.Function."
        )
    return NotImplementedError(f"the derivative for '{name}' is not implemented.")
