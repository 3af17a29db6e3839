"""Reading at positions: the examples become one more index where the positions differ between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import pullback.generated as G
from pullback import creation, functions
from pullback.func.batching_rules.loop import loop
from pullback.func.batching_rules.table import Rule, aligned, expanded, ndim_of, rule, shape_of
from pullback.func.vmap_level import VmapLevel
from pullback.tensor.dims import wrap_dim

Arguments = tuple[Any, ...]
Options = dict[str, Any]


def is_adjacent(dims: Sequence[int]) -> bool:
    """Whether the indexed dimensions stand side by side, so that the positions' dimensions take their place."""
    return all(b == a + 1 for a, b in pairwise(dims))


def index_rank(indices: Sequence[Any]) -> int:
    """The number of dimensions that the broadcast positions have."""
    return max(ndim_of(i) for i in indices)


def example_numbers(level: VmapLevel, rank: int) -> Any:
    """0, 1, ... for the examples, shaped to broadcast with positions of `rank` dimensions."""
    return G.view(creation.arange(level.batch_size), (level.batch_size, *[1] * rank))


@rule("index")
def index(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Elements at positions. See Note [Indexing] in functions/indexing.py for where the positions' dimensions go."""
    input, indices, dims = args[0], list(args[1]), tuple(args[2])
    rank, first, adjacent = index_rank(indices), dims[0], is_adjacent(dims)
    moving = any(level.owns(i) for i in indices)
    places = [aligned(level, i, rank) for i in indices]
    if not level.owns(input):
        result = G.index(input, places, dims)
        return level.wrap(functions.movedim(result, first, 0) if adjacent and first else result)
    if not moving:
        result = G.index(input._physical, places, tuple([d + 1 for d in dims]))
        return level.wrap(result if adjacent else functions.movedim(result, rank, 0))
    result = G.index(input._physical, [example_numbers(level, rank), *places], (0, *[d + 1 for d in dims]))
    if adjacent and first:
        before = range(rank + 1, rank + 1 + first)
        after = range(rank + 1 + first, result._array.ndim)
        result = G.permute(result, (0, *before, *range(1, rank + 1), *after))
    return level.wrap(result)


@rule("index_select")
def index_select(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Positions of one dimension."""
    input, dim, places = args[0], args[1], args[2]
    if ndim_of(input) == 0:
        return loop(level, function, args, kwargs)
    at = wrap_dim(dim, ndim_of(input))
    if not level.owns(places):
        return level.wrap(G.index_select(input._physical, at + 1, places))
    flat = G.reshape(places._physical, (level.batch_size, places._array.size))
    return index(level, G.index, (input, [level.wrap(flat)], (at,)), {})


@rule("gather take_along")
def gather(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Elements at one position each along a dimension."""
    if function.__name__ == "take_along":
        input, places, dim = args
    else:
        input, dim, places = args[:3]
    if ndim_of(input) == 0 or ndim_of(places) != ndim_of(input):
        return loop(level, function, args, kwargs)
    at = wrap_dim(dim, ndim_of(input)) + 1
    whole, where = expanded(level, input), expanded(level, places)
    result = G.take_along(whole, where, at) if function.__name__ == "take_along" else G.gather(whole, at, where)
    return level.wrap(result)


@rule("take_reduced")
def take_reduced(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """The elements that a reduction chose."""
    input, places, dim, keepdim = args
    if ndim_of(input) == 0 or dim is None:
        return loop(level, function, args, kwargs)
    return level.wrap(G.take_reduced(expanded(level, input), expanded(level, places), dim + 1, keepdim))


@rule("take")
def take(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Positions in the flattened examples."""

    def composed(input: Any, places: Any) -> Any:
        return G.index(G.reshape(input, (-1,)), [places], (0,))

    return level.again(composed, *args)


@rule("embedding")
def embedding(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Rows of a table, or of one table for each example."""
    weight, indices, *rest = args
    if not level.owns(weight):
        return level.wrap(function(weight, indices._physical, *rest, **kwargs))
    plain = not any(value not in (-1, False, None) for value in (*rest, *kwargs.values()))
    if not plain:
        return loop(level, function, args, kwargs)
    return index(level, G.index, (weight, [indices], (0,)), {})


@rule("masked_select")
def masked_select(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Elements where a mask is true, which must be the same for all examples."""
    if not level.owns(args[1]):
        return level.again(_masked_select, args[0], args[1])
    raise RuntimeError(
        "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for each "
        "batch this would return a differently shaped Tensor. Use where(mask, input, value) instead."
    )


def _dynamic_shape(name: str) -> Rule:
    """The rule of a function whose result has another shape for other values."""

    def refuse(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> NoReturn:
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
            f"aten::{name}. The shape of its result depends on the values of each example: use a mask, or where(condition, "
            "input, other), instead."
        )

    return refuse


for _function, _name in (
    ("nonzero", "nonzero"), ("_positions", "where"), ("unique", "_unique2"),
    ("unique_consecutive", "unique_consecutive"),
):  # fmt: skip
    rule(_function)(_dynamic_shape(_name))


def _masked_select(input: Any, mask: Any) -> Any:
    shape = functions.broadcast_shapes(shape_of(input), shape_of(mask))
    places = G.nonzero(G.reshape(functions.expand(mask, shape), (-1,)))
    return G.index(G.reshape(functions.expand(input, shape), (-1,)), [G.select(places, 1, 0)], (0,))
