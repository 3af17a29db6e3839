"""Handles that remove hooks, and marks on hooks that are not to be serialized."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pullback.graph.removable_handle import RemovableHandle
from pullback.modes.user_warnings import warn_user

if TYPE_CHECKING:
    from pullback.tensor.tensor import Tensor

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

_HookT = TypeVar("_HookT", bound=Callable[..., Any])

_UNSERIALIZABLE = "__torch_unserializable__"


def unserializable_hook(f: _HookT) -> _HookT:
    """Mark a hook as not meant to be saved with its tensor, which silences `warn_if_has_hooks`; for decorating."""
    setattr(f, _UNSERIALIZABLE, True)
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Warn of every hook of a tensor that saving it would lose."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, _UNSERIALIZABLE):
            warn_user(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning"
            )
