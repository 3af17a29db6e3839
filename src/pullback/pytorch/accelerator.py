"""The accelerator of this machine, if it has one: it has not."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """Whether there is an accelerator to compute on."""
    return False


def device_count() -> int:
    """How many there are."""
    return 0


def current_accelerator(check_available: bool = False) -> Any:
    """The accelerator's device, None without one."""
    return None


def synchronize(device: Any = None) -> None:
    """Accepted: nothing runs elsewhere."""
