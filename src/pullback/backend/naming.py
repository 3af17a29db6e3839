"""Which name pullback shows for itself: `pullback` natively, `torch` while it stands in for PyTorch.

Every repr and error message that prints a qualified name (`torch.float32`, `torch.Size([3])`) reads it here.
"""

from __future__ import annotations

_display_namespace = "pullback"


def display_namespace() -> str:
    """Return the namespace that reprs and messages show.

    >>> display_namespace()
    'pullback'
    """
    return _display_namespace


def set_display_namespace(name: str) -> None:
    """Show `name` instead of `pullback` from now on, in every thread of the process."""
    global _display_namespace
    _display_namespace = name
