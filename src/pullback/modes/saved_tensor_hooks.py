"""The stack of (pack, unpack) pairs that apply to what nodes save."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.modes.switches import set_switch, switches


def current_hooks() -> tuple[Callable[[Any], Any], Callable[[Any], Any]] | None:
    """The innermost pair, or None."""
    stack = switches.saved_tensor_hooks
    return stack[-1] if stack else None


def unseen(pack: Any) -> Any:
    """Mark a pack hook of pullback itself, which shows nobody which tensors an operation saves."""
    pack.is_unseen = True
    return pack


def are_saved_tensors_seen() -> bool:
    """Whether hooks of the program see what nodes save: they must get the tensors that PyTorch saves."""
    stack = switches.saved_tensor_hooks
    return bool(stack) and not getattr(stack[-1][0], "is_unseen", False)


def push_hooks(pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
    """Apply this pair to what is saved from now on in this thread."""
    check_hooks_allowed()
    set_switch("saved_tensor_hooks", (*switches.saved_tensor_hooks, (pack, unpack)))


def check_hooks_allowed() -> None:
    """Refuse a new pair where pairs are disabled."""
    if switches.saved_tensor_hooks_disabled is not None:
        raise RuntimeError(switches.saved_tensor_hooks_disabled)


def pop_hooks() -> None:
    """Drop the innermost pair."""
    set_switch("saved_tensor_hooks", switches.saved_tensor_hooks[:-1])


def disable_hooks(message: str) -> str | None:
    """Refuse new pairs with `message`; return the former message."""
    if switches.saved_tensor_hooks:
        raise RuntimeError(message)
    former = switches.saved_tensor_hooks_disabled
    switches.saved_tensor_hooks_disabled = message
    return former


def restore_hooks(former: str | None) -> None:
    """Undo `disable_hooks`."""
    switches.saved_tensor_hooks_disabled = former
