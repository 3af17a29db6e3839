"""How losses reduce, as PyTorch's own functions and many programs ask for it."""

from __future__ import annotations

from pullback.functions.losses import _reduction as _number_of

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]

_NAMES = ("none", "mean", "sum")


def get_enum(reduction: str) -> int:
    """The number of a reduction.

    >>> get_enum("mean")
    1
    """
    return _number_of(reduction)


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The reduction that two older flags mean.

    >>> legacy_get_string(False, None, emit_warning=False)
    'sum'
    """
    if emit_warning:
        return _NAMES[_number_of("mean", size_average, reduce)]
    averages = True if size_average is None else size_average
    return "none" if reduce is False else "mean" if averages else "sum"


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number of the reduction that two older flags mean."""
    return _NAMES.index(legacy_get_string(size_average, reduce, emit_warning))
