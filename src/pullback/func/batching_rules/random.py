"""Random functions: refused, the same numbers for all examples, or different ones, as vmap's `randomness` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.functions as F
import pullback.generated as G
from pullback.creation import ones_like
from pullback.func.batching_rules.loop import quiet_loop
from pullback.func.batching_rules.table import aligned, ndim_of, shape_of
from pullback.func.vmap_level import VmapLevel
from pullback.tensor.tensor import Tensor

_SHAPED = {"rand", "randn"}
_LIKE = {"rand_like", "randn_like", "randint_like"}
_FILLING = {
    "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "cauchy_", "log_normal_", "geometric_",
}  # fmt: skip
_DRAWING = {"normal", "bernoulli", "multinomial", "poisson", "binomial", "standard_gamma", "sample_dirichlet", "rrelu"}
_DROPPING = {
    "dropout", "dropout_", "feature_dropout", "feature_dropout_", "alpha_dropout", "alpha_dropout_",
    "feature_alpha_dropout", "feature_alpha_dropout_", "native_dropout",
}  # fmt: skip
RANDOM = _SHAPED | {"randint", "randperm"} | _LIKE | _FILLING | _DRAWING | _DROPPING

Arguments = tuple[Any, ...]
Options = dict[str, Any]


def random_rule(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Draw as the level wants it; NotImplemented leaves one draw to the levels further out."""
    name = function.__name__
    if name in _DROPPING and not _drops(args, kwargs):
        return _undropped(level, function, args, kwargs)
    if name in _DROPPING and _probability(args, kwargs) == 1 and level.owns(args[0]) and name != "native_dropout":
        return _all_dropped(level, name, args[0])
    if name == "rrelu" and not (args[3] if len(args) > 3 else kwargs.get("training", False)):
        return quiet_loop(level, function, args, kwargs) if level.concerns(args) else NotImplemented
    if level.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
            "randomness flags on vmap or perform the randomness operation out of vmap"
        )
    if level.randomness == "same":
        return _same(level, function, args, kwargs)
    return _different(level, function, args, kwargs)


def _probability(args: Arguments, kwargs: Options) -> float:
    return float(args[1] if len(args) > 1 else kwargs.get("p", 0.5))


def _all_dropped(level: VmapLevel, name: str, input: Any) -> Any:
    """Nothing is drawn where nothing is kept."""
    if name.endswith("_"):
        F.mul_(input._physical, 0)
        return input
    return level.wrap(G.mul(input._physical, 0))


def _drops(args: Arguments, kwargs: Options) -> bool:
    p = _probability(args, kwargs)
    train = args[2] if len(args) > 2 else kwargs.get("train", True)
    return bool(train is None or train) and p > 0


def _undropped(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    if not level.owns(args[0]):
        return NotImplemented
    if function.__name__ == "native_dropout":
        return level.wrap(function(args[0]._physical, *args[1:], **kwargs))
    return args[0]


def _same(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """One draw for all examples."""
    name = function.__name__
    if not level.concerns((*args, *kwargs.values())):
        return NotImplemented
    first = args[0]
    if name in _LIKE:
        return function(_stand_in(first), *args[1:], **kwargs)
    if name in _FILLING:
        sample = _stand_in(first)
        function(sample, *args[1:], **kwargs)
        F.copy_(first._physical, sample)
        return first
    if name in _DROPPING and name != "native_dropout" and "alpha" not in name:
        noise = getattr(F, name.rstrip("_"))(ones_like(_stand_in(first)), *args[1:], **kwargs)
        product = G.mul(first._physical, noise)
        if not name.endswith("_"):
            return level.wrap(product)
        F.copy_(first._physical, product)
        return first
    raise RuntimeError(
        "Vmap does not currently support same randomness with a batched tensor input. Draw from tensors that are the same "
        "for all examples, or use randomness='different'."
    )


def _stand_in(tensor: Any) -> Any:
    """A tensor in the shape of one example."""
    return G.zeros_in_shape(tensor._physical, shape_of(tensor))


def _different(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """A draw for every example."""
    name = function.__name__
    if name in _SHAPED or name == "randint":
        return _shaped(level, function, args, kwargs)
    if name == "randperm":
        return level.wrap(G.stack([function(*args, **kwargs) for _ in range(level.batch_size)], 0))
    first = args[0]
    if name in _FILLING:
        if not level.owns(first):
            raise RuntimeError(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
                "randomness. Fill a tensor made with new_empty or empty_like of a batched one."
            )
        function(*[aligned(level, a, ndim_of(first)) for a in args], **kwargs)
        return first
    if name == "rrelu":
        return quiet_loop(level, function, (level.wrap(level.to_physical(first)), *args[1:]), kwargs)
    if name in _LIKE or (name in _DRAWING and name != "multinomial"):
        return _elementwise(level, function, args, kwargs)
    if name == "multinomial" and ndim_of(first) == 1:
        return level.wrap(function(level.to_physical(first), *args[1:], **kwargs))
    if name.startswith("feature") or name == "multinomial":
        return quiet_loop(level, function, (level.wrap(level.to_physical(first)), *args[1:]), kwargs)
    if name.endswith("_"):
        function(first._physical, *args[1:], **kwargs)
        return first
    return level.wrap(function(level.to_physical(first), *args[1:], **kwargs))


def _shaped(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """A function of a size: the size gets the number of examples in front."""

    def whole(size: Any) -> tuple[Any, ...]:
        return (level.batch_size, *(size if isinstance(size, (tuple, list)) else (size,)))

    if "size" in kwargs:
        return level.wrap(function(*args, **{**kwargs, "size": whole(kwargs["size"])}))
    if function.__name__ == "randint":
        return level.wrap(function(*args[:-1], whole(args[-1]), **kwargs))
    size = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    return level.wrap(function(whole(size), **kwargs))


def _elementwise(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    if "size" in kwargs or len(args) > 2:
        size: Any = kwargs.get("size", args[2] if len(args) > 2 else ())
        options = {k: v for k, v in kwargs.items() if k != "size"}
        return level.wrap(function(*args[:2], (level.batch_size, *size), **options))
    tensors = [v for v in (*args, *kwargs.values()) if isinstance(v, Tensor)]
    rank = max(ndim_of(t) for t in tensors)
    given = [_whole(level, a, rank) for a in args]
    return level.wrap(function(*given, **{k: _whole(level, v, rank) for k, v in kwargs.items()}))


def _whole(level: VmapLevel, value: Any, rank: int) -> Any:
    if not isinstance(value, Tensor):
        return value
    return aligned(level, level.wrap(level.to_physical(value)), rank)
