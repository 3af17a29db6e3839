"""What few tensors have: view information, hooks, a tangent, inference status, a mirror. Made on first use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pullback.backend.mirror import Mirror
    from pullback.tensor.tensor import Tensor

# How a view came to be decides whether it may be modified in place; see graph/views.py.
DEFAULT, MULTI_OUTPUT, NO_GRAD, INFERENCE, CUSTOM_FUNCTION = range(5)


class ViewInfo:
    """The base a view shares its memory with, and the view's own edge while that is up to date.

    `attr_version` is the version at which `edge` was made: an in-place operation on the base, or on another view of
    it, makes the edge stale, and it is made anew on the next access.
    """

    __slots__ = ("attr_version", "base", "creation", "edge", "own_leaf", "replay")

    def __init__(
        self, base: Tensor, creation: int, attr_version: int, replay: Callable[[Tensor], Tensor] | None
    ) -> None:
        self.base = base
        self.creation = creation
        self.attr_version = attr_version
        self.edge: tuple[Any, int] | None = None
        self.replay = replay
        self.own_leaf = False
        """Whether the view requires grad of its own, not because its base does: it is a leaf then."""


_UNSET = object()


class AutogradExtra:
    """The rare part of a tensor's autograd state."""

    # Defaults of the class, not slots: a view sets one of the nine, and setting them all takes as long again.
    UNSET = _UNSET

    view: ViewInfo | None = None
    hooks: OrderedDict[int, Callable[..., Any]] | None = None
    post_accumulate_hooks: OrderedDict[int, Callable[..., Any]] | None = None
    retains_grad: bool = False
    inference: bool = False
    tangents: dict[int, Tensor] | None = None
    is_dual_input: bool = False
    """Whether `func.jvp` made the tensor, a view of its primal to PyTorch, for which no view's node is recorded."""
    grad_dtype: Any = _UNSET
    mirror: Mirror | None = None
