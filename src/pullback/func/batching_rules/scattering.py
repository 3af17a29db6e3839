"""Writing at positions: every tensor becomes a whole batch, and the examples one more index where it is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback import functions
from pullback.func.batching_rules.in_place import require_batch
from pullback.func.batching_rules.indexing import example_numbers, index_rank, is_adjacent
from pullback.func.batching_rules.loop import loop
from pullback.func.batching_rules.table import aligned, bind, expanded, ndim_of, rule, shape_of
from pullback.func.vmap_level import VmapLevel
from pullback.tensor.dims import wrap_dim
from pullback.tensor.tensor import Tensor

Arguments = tuple[Any, ...]
Options = dict[str, Any]


@rule("index_put index_put_")
def index_put(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Write or add values at positions."""
    bound = bind("index_put", args, kwargs)
    input, indices, dims, values = bound["input"], list(bound["indices"]), tuple(bound["dims"]), bound["values"]
    if not values.ndim and values.device != input.device:  # a number of the CPU fits every device
        values = values.to(input.device)
    writes = function.__name__.endswith("_")
    if writes:
        require_batch(level, input, (args, kwargs), function.__name__)
    rank = index_rank(indices)
    places = [example_numbers(level, rank), *[aligned(level, i, rank) for i in indices]]
    given = _in_index_order(level, input, indices, dims, values, rank)
    result = function(
        expanded(level, input), places, (0, *[d + 1 for d in dims]), given, bound.get("accumulate", False)
    )
    return input if writes else level.wrap(result)


def _in_index_order(
    level: VmapLevel, input: Any, indices: list[Any], dims: tuple[int, ...], values: Any, rank: int
) -> Any:
    """The values of every example, with the positions' dimensions right after the examples."""
    shape = shape_of(input)
    positions = tuple(functions.broadcast_shapes(*[shape_of(i) for i in indices]))
    first = dims[0] if is_adjacent(dims) else 0
    if not first:
        return aligned(level, values, rank + len(shape) - len(dims))
    region = (*shape[:first], *positions, *shape[first + len(dims) :])
    whole = functions.expand(aligned(level, values, len(region)), (level.batch_size, *region))
    before, middle = range(1, first + 1), range(first + 1, first + 1 + rank)
    return G.permute(whole, (0, *middle, *before, *range(first + 1 + rank, len(region) + 1)))


@rule("scatter scatter_add scatter_reduce scatter_value")
def scatter(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Write one value each along a dimension."""
    bound = bind(function.__name__, args, kwargs)
    tensors = [v for v in bound.values() if isinstance(v, Tensor)]
    ndim = ndim_of(bound["input"])
    if ndim == 0 or any(ndim_of(t) != ndim for t in tensors):
        return loop(level, function, args, kwargs)
    bound = {k: expanded(level, v) for k, v in bound.items()}
    bound["dim"] = wrap_dim(bound["dim"], ndim) + 1
    return level.wrap(function(**bound))


@rule("index_add index_copy index_reduce index_fill")
def at_positions(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Write whole slices at positions that are the same for all examples, or example by example."""
    bound = bind(function.__name__, args, kwargs)
    ndim = ndim_of(bound["input"])
    if function.__name__ == "index_add":  # more lenient than without vmap, as in PyTorch
        rank = ndim_of(bound["source"])
        if ndim and not rank:
            bound["source"] = level.again(G.unsqueeze, bound["source"], 0)
        elif rank == 1 and not ndim:
            bound["input"] = level.again(G.unsqueeze, bound["input"], 0)
            return level.again(G.squeeze_dim, at_positions(level, function, (), bound), 0)
        args, kwargs = (), bound
    if ndim == 0 or level.owns(bound["index"]) or ("source" in bound and ndim_of(bound["source"]) != ndim):
        return loop(level, function, args, kwargs)
    bound["dim"] = wrap_dim(bound["dim"], ndim) + 1
    for name in ("input", "source"):
        if name in bound:
            bound[name] = expanded(level, bound[name])
    return level.wrap(function(**bound))


@rule("masked_fill_tensor")
def masked_fill_tensor(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Fill with a number that may be each example's own."""

    def composed(input: Any, mask: Any, value: Any) -> Any:
        return G.where(mask, functions.to(value, input.dtype), input)

    return level.again(composed, *args)


@rule("put")
def put(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Write at positions counted through all of an example: those of the examples before it come first."""
    bound = bind("put", args, kwargs)
    input, index, source = [expanded(level, bound[name]) for name in ("input", "index", "source")]
    count = input.numel() // level.batch_size if level.batch_size else 0
    if bound["index"].numel() != bound["source"].numel() or index.dtype is not example_numbers(level, 0).dtype:
        return loop(level, function, args, kwargs)  # refused, with the numbers of one example
    positions = functions.where(index < 0, index + count, index) + count * example_numbers(level, index.dim() - 1)
    return level.wrap(G.put(input, positions, source, bound.get("accumulate", False)))
