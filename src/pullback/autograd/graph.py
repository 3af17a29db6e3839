"""The recorded graph for users: nodes, gradient edges, hooks on saved tensors and on several gradients at once."""

from __future__ import annotations

import contextlib
import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from pullback.autograd.differentiation import run_engine
from pullback.autograd.saved_tensor_mutation import allow_mutation_on_saved_tensors
from pullback.backend.device import find_library
from pullback.backend.device_array import DeviceArray
from pullback.engine.passes import current_graph_task
from pullback.engine.streams import Warnings
from pullback.graph.gradient_edge import GradientEdge, get_gradient_edge
from pullback.graph.history import bump_version
from pullback.graph.node import Node as _Node
from pullback.graph.removable_handle import RemovableHandle
from pullback.graph.source_lines import Pass, module_path_of, source_line, source_line_of
from pullback.modes.saved_tensor_hooks import check_hooks_allowed, disable_hooks
from pullback.modes.source_lines import want_source_lines, want_source_lines_here
from pullback.modes.switches import kept_switches, stack_block
from pullback.tensor.tensor import Tensor, new_tensor

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "module_path_of", "record_source_lines", "region_activation_memory_budget",
    "register_multi_grad_hook", "release", "save_on_cpu", "saved_tensors_hooks", "set_override_stale_capture_stream",
    "set_source_lines", "set_warn_on_accumulate_grad_stream_mismatch", "source_line_of",
]  # fmt: skip


class Node(ABC):
    """What every `grad_fn` is.

    >>> import pullback
    >>> x = pullback.ones(1, requires_grad=True)
    >>> isinstance((x * 2).grad_fn, Node)
    True
    """

    @abstractmethod
    def name(self) -> str:
        """The name of the node."""

    @property
    @abstractmethod
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes that receive this node's gradients."""

    @property
    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """A dict for the user's notes."""

    @abstractmethod
    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after the node ran."""

    @abstractmethod
    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before the node runs."""

    @property
    @abstractmethod
    def _input_metadata(self) -> Sequence[Any]:
        """Shape and dtype of each gradient that the node receives."""

    @abstractmethod
    def _sequence_nr(self) -> int:
        """The number under which the node was recorded."""

    @abstractmethod
    def _register_hook_dict(self, hooks: Any) -> None:
        """Add a dict of hooks that run after the node."""

    @classmethod
    def __subclasshook__(cls, subclass: type, /) -> bool:
        if cls is Node:
            return issubclass(subclass, _Node)
        return NotImplemented


def _get_grad_fn_or_grad_acc(t: Tensor | GradientEdge) -> _Node:
    """The node that a tensor's gradient goes to: the one that made it, or the accumulator of a leaf."""
    if isinstance(t, GradientEdge):
        return t.node
    assert t.requires_grad, "Expected gradient function to be set"
    return get_gradient_edge(t).node


def _engine_run_backward(
    t_outputs: Sequence[Tensor], grad_tensors: Sequence[Any], keep_graph: bool, create_graph: bool,
    inputs: Sequence[Any] = (), *, allow_unreachable: bool = True, accumulate_grad: bool = True,
) -> Any:  # fmt: skip
    """Run a backward pass as the engine is asked to: add gradients to leaves, or return those of `inputs`."""
    return (
        run_engine(
            t_outputs,
            grad_tensors,
            inputs,
            keep_graph,
            create_graph,
            allow_unused=allow_unreachable,
            accumulate=accumulate_grad,
        )
        or ()
    )


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Tell autograd that a tensor's memory was modified by other means.

    >>> import pullback
    >>> x = pullback.zeros(2)
    >>> increment_version(x)
    >>> x._version
    1
    """
    if not isinstance(tensor, Iterable):
        raise RuntimeError(f"increment_version expect a Iterable[Tensor] as input: got {type(tensor).__name__}")
    for item in (tensor,) if isinstance(tensor, Tensor) else tensor:
        bump_version(item)


class saved_tensors_hooks(stack_block):
    """Pack what is saved for backward with one function and unpack it with another.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> with saved_tensors_hooks(lambda t: t.tolist(), lambda values: pullback.tensor(values)):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    _stack = "saved_tensor_hooks"

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        check_hooks_allowed()
        depths = self._depths
        try:
            self._push((self.pack_hook, self.unpack_hook))
        except BaseException:
            if self._depths is not depths:  # interrupted behind the push: see Note [Guards]
                self.__exit__()
            raise


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors in the CPU's memory until backward needs them; those that are there are only copied.

    With `pin_memory`, copies from and to a GPU run beside the computation, and nobody waits for them.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Any) -> Any:
            if pin_memory and isinstance(tensor._array, DeviceArray) and type(tensor) is Tensor:
                return tensor._array.place, tensor._array.library.park(tensor._array.raw)
            return tensor.device, tensor.clone() if tensor.device.type == "cpu" else tensor.cpu()

        def unpack(packed: Any) -> Tensor:
            device, kept = packed
            if isinstance(kept, Tensor):
                return kept.to(device)
            library = find_library(device.type)
            return new_tensor(library.on(device, lambda: library.wrapper(library.unpark(kept))))

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Refuse saved-tensor hooks inside of the block."""
    with kept_switches("saved_tensor_hooks_disabled"):
        disable_hooks(error_message)
        yield


class _MultiHandle(RemovableHandle):
    """Removes several hooks."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple[Any, ...]:
        return self.handles

    def __setstate__(self, state: Sequence[Any]) -> None:
        self.handles = tuple(state)


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[..., None], *, mode: Literal["all", "any"] = "all"
) -> RemovableHandle:
    """Call `fn` once per backward: with all gradients when the last is there, or with the first ("any").

    >>> import pullback
    >>> a, b = pullback.ones(1, requires_grad=True), pullback.ones(1, requires_grad=True)
    >>> handle = register_multi_grad_hook((a, b), lambda grads: print(len(grads)))
    >>> (a * b).backward()
    2
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    nodes = [_get_grad_fn_or_grad_acc(t) for t in tensors]
    return _register_all(tensors, nodes, fn) if mode == "all" else _register_any(tensors, fn)


def _hook(target: Any, hook: Callable[[Any], None]) -> RemovableHandle:
    if isinstance(target, GradientEdge):
        output_nr = target.output_nr
        return target.node.register_prehook(lambda grads: hook(grads[output_nr]))
    return target.register_hook(hook)


def _register_all(tensors: Sequence[Any], held: Sequence[_Node], fn: Callable[..., None]) -> RemovableHandle:
    lock = threading.Lock()
    waiting: dict[int, tuple[int, list[Any]]] = {}

    def arrived(index: int, grad: Any) -> None:
        task = current_graph_task()
        assert task is not None, "the hook runs inside of a backward pass"
        with lock:
            if task.id not in waiting:
                needed = [task.will_execute(node) for node in held]
                waiting[task.id] = (sum(needed), [None] * len(held))
            left, grads = waiting[task.id]
            grads[index] = grad
            waiting[task.id] = (left - 1, grads)
            complete = left == 1
            if complete:
                del waiting[task.id]
        if complete:
            fn(grads)

    return _MultiHandle([_hook(t, functools.partial(arrived, i)) for i, t in enumerate(tensors)])


def _register_any(tensors: Sequence[Any], fn: Callable[..., None]) -> RemovableHandle:
    lock = threading.Lock()
    ran: dict[int, bool] = {}

    def arrived(grad: Any) -> None:
        task = current_graph_task()
        assert task is not None, "the hook runs inside of a backward pass"
        with lock:
            first = not ran.get(task.id, False)
            ran[task.id] = True
        if first:
            fn(grad)

    return _MultiHandle([_hook(t, arrived) for t in tensors])


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Say whether to warn where a leaf's gradient comes from another stream than its AccumulateGrad has."""
    Warnings.is_on = enabled


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Accepted: there are no streams on the CPU."""


class record_source_lines(contextlib.ContextDecorator):
    """Let nodes remember the source line that records them (or not): for pictures of the graph and for errors.

    As a context manager or a decorator around the forward computation, for this thread. `set_source_lines` says it for
    the whole process. See Note [Source lines] for what it costs.

    >>> import pullback
    >>> from pullback.utils.graph_picture import graph_tree
    >>> x = pullback.ones(3, requires_grad=True)
    >>> with record_source_lines():
    ...     y = (x * x).sum()
    >>> print(graph_tree(y, {"x": x}, show_lines=True).splitlines()[0])
    SumBackward0 () <doctest ...
    """

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = enabled
        self._former: list[int] = []

    def __enter__(self) -> None:
        self._former.append(want_source_lines_here(1 if self.enabled else -1))

    def __exit__(self, *error: object) -> None:
        want_source_lines_here(self._former.pop())


def set_source_lines(enabled: bool) -> bool:
    """Turn the source lines of nodes and of in-place writes on or off for the whole process; return what was set before.

    They are on by default where they cost next to nothing; see Note [Source lines].

    >>> import pullback
    >>> former = set_source_lines(False)
    >>> x = pullback.ones(3, requires_grad=True)
    >>> source_line_of((x * 2).grad_fn) is None
    True
    >>> set_source_lines(former)
    False
    """
    return bool(want_source_lines(int(enabled)))


def release(tensor: Tensor | Iterable[Tensor]) -> None:
    """Free the graph behind a tensor, or several: what its nodes saved is dropped, and it has no history any more.

    Other results of the same nodes cannot be differentiated afterwards.

    >>> import pullback
    >>> x = pullback.ones(3, requires_grad=True)
    >>> total = (x * x).sum()
    >>> release(total)
    >>> total.grad_fn is None
    True
    """
    if isinstance(tensor, list | tuple):
        for one in tensor:
            release(one)
        return
    if not isinstance(tensor, Tensor):
        raise TypeError(f"release expects a tensor, or a list of them, got {type(tensor).__name__}")
    line = source_line()
    mark = None if line is None else Pass(line)
    stack: list[_Node] = [] if tensor.grad_fn is None else [tensor.grad_fn]
    seen = set(stack)
    while stack:
        node = stack.pop()
        node.release_saved_tensors()
        node.freed_by = mark
        new = [edge[0] for edge in node.next_edges if edge is not None and edge[0] not in seen]
        seen.update(new)
        stack.extend(new)
    if tensor.grad_fn is not None and not tensor._is_view():
        tensor.detach_()


class region_activation_memory_budget:
    """Only meaningful under a compiler; refuses to run eagerly, as PyTorch does."""

    def __init__(self, budget: float) -> None:
        self.budget = budget

    def __enter__(self) -> None:
        raise RuntimeError("region_activation_memory_budget is only supported under torch.compile")

    def __exit__(self, *exception: object) -> None:
        pass
