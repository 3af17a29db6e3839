"""Random functions: refused, the same numbers for all examples, or different ones, as vmap's `randomness` says.

A function says with `@draws(...)` what decides about the shape of its draw (modes/interception.py); how a draw for every
example is made follows from that. Functions that are composed of draws, such as dropout, need no rule of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback import functions
from pullback.func.batching_rules.loop import quiet_loop
from pullback.func.batching_rules.table import Rule, aligned, fold, ndim_of, shape_of, tensors_among, unfold_batch
from pullback.func.vmap_level import VmapLevel
from pullback.generated.registry import OPERATIONS
from pullback.tensor.tensor import Tensor

Arguments = tuple[Any, ...]
Options = dict[str, Any]


def source_of_draw(function: Callable[..., Any]) -> str:
    """What a random function draws from, as its declaration says; empty for one that draws nothing."""
    if hasattr(function, "draws"):
        return str(function.draws)
    operation = OPERATIONS.get(getattr(function, "__name__", ""))
    return "" if operation is None else operation.draws


def random_rule(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Draw as the level wants it; NotImplemented leaves one draw to the levels further out."""
    source = source_of_draw(function)
    if source == "parts":
        return level.again(function.__wrapped__, *args, **kwargs)  # type: ignore[attr-defined]  # made by interceptable
    if source == "slopes":
        return _leaky(level, function, args, kwargs)
    return _drawn(level, function, args, kwargs, source)


def _drawn(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options, source: str) -> Any:
    if kwargs.get("out") is not None:
        raise RuntimeError(
            "vmap: We do not support calling out variants of random operations inside of vmap. Please use non-out variants "
            f"as a workaround: {function.__name__}(...) without out= gives every example its own tensor."
        )
    if level.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
            "randomness flags on vmap or perform the randomness operation out of vmap"
        )
    if level.randomness == "same":
        return _same(level, function, args, kwargs, source)
    return _DIFFERENT[source](level, function, args, kwargs)


def _same(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options, source: str) -> Any:
    """One draw for all examples."""
    if not level.concerns((*args, *kwargs.values())):
        return NotImplemented
    if source in ("size", "permutation", "parameters", "rows") or level.concerns((*args[1:], *kwargs.values())):
        raise RuntimeError(
            "Vmap does not currently support same randomness with a batched tensor input. Draw from tensors that are the "
            "same for all examples, or use randomness='different'."
        )
    input = args[0]
    one = G.zeros_in_shape(input._physical, shape_of(input))
    drawn = function(one, *args[1:], **kwargs)
    if source != "fill":
        return drawn
    functions.copy_(input._physical, one)
    return input


def _of_size(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """A function of a size, its last argument: the size gets the number of examples in front."""

    def whole(size: Any) -> tuple[Any, ...]:
        return (level.batch_size, *(size if isinstance(size, (tuple, list)) else (size,)))

    if "size" in kwargs:
        return level.wrap(function(*args, **{**kwargs, "size": whole(kwargs["size"])}))
    if isinstance(args[-1], (tuple, list)):
        return level.wrap(function(*args[:-1], whole(args[-1]), **kwargs))
    return level.wrap(function(whole(args), **kwargs))


def _permutations(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    return level.wrap(G.stack([function(*args, **kwargs) for _ in range(level.batch_size)], 0))


def _like_input(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    return level.wrap(function(level.to_physical(args[0]), *args[1:], **kwargs))


def _feature_noise(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Samples of all examples together are one batch."""
    noise = function(fold(level.to_physical(args[0])), *args[1:], **kwargs)
    return level.wrap(unfold_batch(level, noise))


def _filled(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    target = args[0]
    if not level.owns(target):
        raise _not_filled(level, function.__name__.rstrip("_"), args, kwargs)
    function(*[aligned(level, a, ndim_of(target)) for a in args], **kwargs)
    return target


def _not_filled(level: VmapLevel, name: str, args: Arguments, kwargs: Options) -> RuntimeError:
    if level.concerns((*args, *kwargs.values())):
        return RuntimeError(
            f"vmap: inplace {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
            "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being "
            f"vmapped over. Use {name} out of place, or make `self` with new_empty or empty_like of a batched tensor."
        )
    return RuntimeError(
        "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
        "randomness. Fill a tensor made with new_empty or empty_like of a batched one."
    )


def _from_parameters(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """One number for each element of the parameters, which broadcast; or of a size, where they are numbers."""
    tensors = tensors_among((*args, *kwargs.values()))
    if not tensors:
        return _of_size(level, function, args, kwargs)
    rank = max(ndim_of(t) for t in tensors)
    given = [_whole(level, a, rank) for a in args]
    return level.wrap(function(*given, **{k: _whole(level, v, rank) for k, v in kwargs.items()}))


def _whole(level: VmapLevel, value: Any, rank: int) -> Any:
    if not isinstance(value, Tensor):
        return value
    return aligned(level, level.wrap(level.to_physical(value)), rank)


def _from_rows(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Draws with the probabilities in rows: matrices of all examples together are one."""
    input = level.to_physical(args[0])
    if ndim_of(args[0]) == 1:
        return level.wrap(function(input, *args[1:], **kwargs))
    return level.wrap(unfold_batch(level, function(fold(input), *args[1:], **kwargs)))


_DIFFERENT: dict[str, Rule] = {
    "size": _of_size, "permutation": _permutations, "input": _like_input, "parameters": _from_parameters,
    "rows": _from_rows, "fill": _filled, "noise": _like_input, "feature noise": _feature_noise,
}  # fmt: skip


def _leaky(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Slopes drawn for the negative elements, whose number differs between the examples; a fixed slope without training."""
    if not (args[3] if len(args) > 3 else kwargs.get("training", False)):
        return quiet_loop(level, function, args, kwargs) if level.concerns(args) else NotImplemented
    if level.randomness != "different":
        return _drawn(level, function, args, kwargs, "parameters")
    return quiet_loop(level, function, (level.wrap(level.to_physical(args[0])), *args[1:]), kwargs)
