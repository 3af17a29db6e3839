"""Hooks on nodes, and the calls that run them with their checks.

# Note [Hook order]
For the gradient of one tensor: the tensor's hooks in the order of registration, then the hook of `retain_grad` (so that
it sees what the others made of the gradient), then captures of `grad()`. Then the node's pre-hooks, the node, and the
node's post-hooks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pullback.backend.array_module import is_plain
from pullback.tensor.assignment import describe_type

HookDict = OrderedDict[int, Callable[..., Any]]


class NodeExtra:
    """What few nodes have: hooks, and metadata of the user or of anomaly mode. See Note [Hook order]."""

    __slots__ = (
        "former_data",
        "former_shape",
        "fused_edges",
        "is_dispatched",
        "metadata",
        "outer",
        "packed",
        "place",
        "post_hooks",
        "pre_hooks",
        "retain_hooks",
        "stream",
        "tensor_hooks",
        "told_dims",
        "transform",
    )

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, HookDict] = {}
        self.retain_hooks: dict[int, Callable[[Any], None]] = {}
        self.pre_hooks: HookDict = OrderedDict()
        self.post_hooks: HookDict = OrderedDict()
        self.former_data: Any = None
        """The former memory of the tensor whose gradients come here. See Note [Former data]."""
        self.former_shape = False
        """Whether gradients may arrive in another shape than the node gave out. See graph/former_shape.py."""
        self.place: tuple[str, int] | None = None
        """The user's file and line that recorded the node under anomaly mode."""
        self.metadata: dict[Any, Any] | None = None
        self.stream: Any = None
        """The stream of a device on which the operation ran, where it was not the default one. See Note [Streams]."""
        self.is_dispatched = False
        """Whether the operation had an argument whose class has a `__torch_dispatch__`. See Note [Dispatch]."""
        self.told_dims: dict[str, Any] = {}
        """Dimensions that a dispatch mode was told from the end: backward tells them as they were given."""
        self.packed = False
        """Whether something that the node saved went through a pack hook."""
        self.outer: Any = None
        """The outermost of the steps that took the node's place. See Note [Fused nodes]."""
        self.fused_edges: tuple[Any, ...] = ()
        """The edges that the node had before."""
        self.transform: Any = None
        """The transform of pullback.func whose input this node gave a place of its own."""

    def has_hooks(self) -> bool:
        return bool(self.tensor_hooks or self.retain_hooks or self.pre_hooks or self.post_hooks)


def hook_name(hook: Callable[..., Any]) -> str:
    """Return the name of a hook for messages."""
    hook = hook_of_user(hook)
    return getattr(hook, "__name__", None) or type(hook).__name__


def hook_of_user(hook: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a user wrote: a module's hooks are called by an object that knows which of them acted last."""
    hook = getattr(getattr(hook, "__self__", None), "acting_hook", None) or hook
    while isinstance(hook, partial):
        hook = hook.func
    return hook


def call_tensor_hooks(hooks: HookDict, grad: Any) -> Any:
    """Run a tensor's hooks on its gradient (a Tensor or None) and return the resulting gradient."""
    for hook in list(hooks.values()):
        replaced = hook(grad)
        if replaced is not None:
            check_replacement(grad, replaced, hook)
            note_zeros(hooks, hook, grad, replaced)
            grad = replaced
    return grad


def note_zeros(hooks: HookDict, hook: Callable[..., Any], grad: Any, replaced: Any) -> None:
    """Remember, for `explain_grad`, which hook replaced a gradient by zeros."""
    array = replaced._array
    # Almost always the first element says that there is more than zeros.
    if is_plain(array) and array.size and not array.flat[0] and not array.any() and grad._array.any():
        hooks.zeroing = hook_of_user(hook)  # type: ignore[attr-defined]  # an OrderedDict has a __dict__ for such notes


def hooks_of(extra: Any) -> list[Callable[..., Any]]:
    """The hooks of a node or a tensor that may replace gradients, as the user wrote them."""
    return [hook_of_user(hook) for hooks in _groups(extra) for hook in hooks.values()]


def _groups(extra: Any) -> list[HookDict]:
    groups: list[Any] = [getattr(extra, name, None) for name in ("hooks", "pre_hooks", "post_hooks")]
    return [hooks for hooks in (*groups, *getattr(extra, "tensor_hooks", {}).values()) if hooks is not None]


def zeroing_hook(extra: Any) -> Callable[..., Any] | None:
    """Return the hook of a node or tensor that returned zeros, if there was one."""
    return next((hooks.zeroing for hooks in _groups(extra) if hasattr(hooks, "zeroing")), None)


def check_replacement(value: Any, replaced: Any, hook: Callable[..., Any]) -> None:
    """Refuse a hook's result that could not stand for the gradient it replaces."""
    if not hasattr(replaced, "_array"):
        raise TypeError(f"expected Variable, but hook returned '{type(replaced).__name__}'")
    if value is None:
        raise RuntimeError(f"can't replace a None gradient with a non-None value (hook '{hook_name(hook)}')")
    if replaced._array.dtype != value._array.dtype or (
        (type(replaced) is not type(value) or type(replaced._array) is not type(value._array))
        and describe_type(replaced) != describe_type(value)
    ):
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has changed the type of value (was {describe_type(value)} "
            f"got {describe_type(replaced)})"
        )
    if replaced._array.shape != value._array.shape:
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has changed the size of value: from {list(value._array.shape)} "
            f"to {list(replaced._array.shape)}"
        )


def call_node_hooks(hooks: HookDict, values: Sequence[Any], *rest: Any) -> tuple[Any, ...]:
    """Run a node's pre-hooks (values) or post-hooks (values, other values) and return the replaced values."""
    current = tuple(values)
    for hook in list(hooks.values()):
        result = hook(current, *rest)
        if result is None:
            continue
        if not isinstance(result, tuple):
            raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
        if len(result) != len(current):
            raise RuntimeError(
                f"hook '{hook_name(hook)}' has returned an incorrect number of values "
                f"(got {len(result)}, but expected {len(current)})"
            )
        for before, after in zip(current, result, strict=True):
            if after is not None and after is not before:
                check_replacement(before, after, hook)
                note_zeros(hooks, hook, before, after)
        current = result
    return current
