"""The rule of operations without one: example by example, and the results stacked. Correct for everything, and slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.func.vmap_level import VmapLevel
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor


def loop(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run `function` on each example, with a warning that this is slow; or refuse, if the level wants no loops."""
    if not level.loops:
        raise NotImplementedError(f"vmap: {function.__name__} has no batching rule")
    warn_user(
        f"There is a performance drop because we have not yet implemented the batching rule for aten::{function.__name__}. "
        "It runs once for each example of the batch."
    )
    return quiet_loop(level, function, args, kwargs)


def quiet_loop(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run `function` on each example."""
    if level.batch_size == 0:
        return _without_examples(level, function, args, kwargs)
    results = [
        function(*_example(level, args, position), **{k: _example(level, v, position) for k, v in kwargs.items()})
        for position in range(level.batch_size)
    ]
    return stacked(level, function, results)


def _example(level: VmapLevel, value: Any, position: int) -> Any:
    if isinstance(value, (list, tuple)):
        items = [_example(level, item, position) for item in value]
        return type(value)(items) if type(value) in (list, tuple) else value
    return G.select(value._physical, 0, position) if level.owns(value) else value


def stacked(level: VmapLevel, function: Callable[..., Any], results: list[Any]) -> Any:
    """The results of all examples as tensors of the level."""
    first = results[0]
    if isinstance(first, Tensor):
        if any(r._array.shape != first._array.shape for r in results):
            raise RuntimeError(
                "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
                f"{function.__name__}, whose results have different shapes: "
                f"{sorted({tuple(r._array.shape) for r in results})}."
            )
        return level.wrap(G.stack(results, 0))
    if isinstance(first, (tuple, list)):
        parts = [stacked(level, function, list(part)) for part in zip(*results, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if any(r != first for r in results):
        raise RuntimeError(
            f"vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow: "
            f"{function.__name__} gives different values for different examples."
        )
    return first


def _without_examples(
    level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """No examples: the shapes of the results are found by running the function on one made up of zeros."""

    def made_up(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)([made_up(item) for item in value]) if type(value) in (list, tuple) else value
        return G.zeros_in_shape(value._physical, value._array.shape) if level.owns(value) else value

    def empty(value: Any) -> Any:
        return G.zeros_in_shape(value, (0, *value._array.shape)) if isinstance(value, Tensor) else value

    result = function(*[made_up(a) for a in args], **{k: made_up(v) for k, v in kwargs.items()})
    if isinstance(result, (tuple, list)):
        parts = [empty(r) for r in result]
        return level.wrap(type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts))
    return level.wrap(empty(result))
