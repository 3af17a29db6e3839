"""Whether operations are recorded: grad mode and inference mode of this thread."""

from __future__ import annotations

from pullback.modes.guards import guarded
from pullback.modes.switches import process, set_switch, switches


def is_grad_enabled() -> bool:
    """Whether operations of this thread are recorded.

    >>> is_grad_enabled()
    True
    """
    return not process.changed or switches.grad_mode


def set_grad_mode(enabled: bool) -> bool:
    """Switch recording on or off for this thread and return the former state."""
    return bool(set_switch("grad_mode", enabled))


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode.

    >>> is_inference_mode_enabled()
    False
    """
    return bool(process.changed) and switches.inference_mode


def inference_mode_now() -> tuple[bool, bool, bool]:
    """The state that `restore_inference_mode` puts back."""
    return (switches.inference_mode, switches.grad_mode, switches.forward_grad)


def set_inference_mode(enabled: bool) -> tuple[bool, bool, bool]:
    """Enter or leave inference mode, which also decides grad mode and forward gradients; return the former state."""
    former = inference_mode_now()
    set_switch("inference_mode", enabled)
    set_switch("grad_mode", not enabled)
    set_switch("forward_grad", not enabled)
    return former


@guarded
def restore_inference_mode(former: tuple[bool, bool, bool]) -> None:
    """Undo `set_inference_mode`."""
    inference_mode, grad_mode, forward_grad = former
    set_switch("inference_mode", inference_mode)
    set_switch("grad_mode", grad_mode)
    set_switch("forward_grad", forward_grad)
