"""Whether mixed precision on a GPU can be had at all."""

from __future__ import annotations

from pullback.cuda import is_available


def amp_definitely_not_available() -> bool:
    """Whether there is no GPU for it.

    >>> amp_definitely_not_available()
    True
    """
    return not is_available()
