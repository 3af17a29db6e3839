"""Kernels as functions of arrays alone: those that write, draw, check or leave results out, as ones that give new arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.compiling.memory import laid_out, unfilled


def as_check(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that only raises, as one of no results."""

    def run(*args: Any, **kwargs: Any) -> tuple[()]:
        function(*args, **kwargs)
        return ()

    run.__name__ = getattr(function, "__name__", "check")
    return run


def some_results(function: Callable[..., Any], places: tuple[int, ...]) -> Callable[..., Any]:
    """A function of those results that are not None."""

    def run(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        made = function(*args, **kwargs)
        return tuple([made[place] for place in places])

    run.__name__ = getattr(function, "__name__", "function")
    return run


def filling(function: Callable[..., Any], place: Any) -> Callable[..., Any]:
    """A function that fills an array of a device as one that makes it."""

    def run(shape: Any, strides: Any, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        made = unfilled(shape, strides, dtype, place)
        function(made, *args, **kwargs)
        return made

    run.__name__ = getattr(function, "__name__", "draw")
    return run


def on_copies(function: Callable[..., Any], places: tuple[int, ...]) -> Callable[..., Any]:
    """A function that writes to arguments as one that gives new arrays."""

    def run(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        given = list(args)
        for place in places:
            array = args[place]
            given[place] = laid_out(array, array.shape, array.strides, array.dtype)
        function(*given, **kwargs)
        return tuple([given[place] for place in places])

    run.__name__ = f"{getattr(function, '__name__', 'function')}_on_copies"
    return run
