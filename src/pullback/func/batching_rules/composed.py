"""Functions that are composed of more than operations: copies of views, views made in place, counting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pullback.generated as G
from pullback.func.batched_tensor import NO_STORAGE
from pullback.func.batching_rules.loop import loop
from pullback.func.batching_rules.planes import more_leading
from pullback.func.batching_rules.table import aligned, expanded, ndim_of, rule
from pullback.func.vmap_level import VmapLevel
from pullback.tensor.dims import wrap_dim
from pullback.tensor.tensor import Tensor

Arguments = tuple[Any, ...]
Options = dict[str, Any]


@rule("contiguous_copy")
def contiguous_copy(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """A copy in row-major order; an order of an example's dimensions has no meaning for the batch."""
    order = args[1] if len(args) > 1 else kwargs.get("order", "contiguous_format")
    if order != "contiguous_format":
        raise RuntimeError(
            "NYI: Tensor.clone(memory_format) inside vmap is only supported with memory_format torch.preserve_format or "
            f"torch.contiguous_format (got {order}): order the memory outside of vmap."
        )
    return level.wrap(function(args[0]._physical))


@rule("narrow_copy")
def narrow_copy(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """A copy of some positions of a dimension."""
    input, dim, *rest = args
    return level.wrap(function(input._physical, wrap_dim(dim, ndim_of(input)) + 1, *rest, **kwargs))


@rule("_copies _unsafe")
def parts(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Parts of a tensor that are views to memory, but not to autograd."""
    return level.wrap(function([v._physical for v in args[0]], *args[1:], **kwargs))


@rule("_view_in_place")
def view_in_place(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """The tensor itself becomes a view of what it was."""
    _, view, target, *rest = args
    seen = level.again(view, target, *rest)
    target._become(seen)
    return target


@rule("set_")
def unchanged(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Other memory for an example of the batch, which the batch does not notice (as in PyTorch)."""
    return args[0]


@rule("resize_")
def resize(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Another shape for each example, the elements taken from the memory of the batch."""
    target, *size = args
    sizes = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    whole = function(target._physical.clone(), (level.batch_size, *sizes), **kwargs)
    target._become(level.wrap(whole))
    return target


@rule("one_hot")
def one_hot(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Rows with a one, whose length must not depend on the values."""
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    if classes <= 0:
        raise RuntimeError(
            "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive num_classes argument: the "
            f"number of classes found in the values (num_classes={classes}) would differ between the examples."
        )
    return more_leading(level, function, args, kwargs)


@rule("data_ptr")
def memory(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> NoReturn:
    """The address would be that of the whole batch."""
    raise RuntimeError(NO_STORAGE)


@rule("dlpack untyped_storage storage _dlpack")
def storage(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> NoReturn:
    """The memory is that of the whole batch."""
    raise NotImplementedError(
        f"Cannot access storage of BatchedTensorImpl: {function.__name__} of a tensor under vmap would reach the memory of "
        "all examples."
    )


@rule("equal allclose")
def truth(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> NoReturn:
    """One truth value for all examples."""
    name = function.__name__
    raise RuntimeError(
        f"vmap over torch.{name} isn't supported yet. Batching rule not implemented for aten::{name}. We could not generate "
        "a fallback: it gives one answer, and each example has its own. Use eq(...).all() instead."
    )


@rule("_quantile cov")
def checking_an_argument(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Composed functions that read the values of an argument other than the first, to check them."""
    position = 1 if function.__name__ == "cov" else 2
    others = (*args[position:], *[v for k, v in kwargs.items() if k != "input"])
    if level.concerns(others):
        return loop(level, function, args, kwargs)
    return level.again(function.__wrapped__, *args, **kwargs)  # type: ignore[attr-defined]  # made by interceptable


@rule("searchsorted")
def searchsorted(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Insertion points: one sequence serves any values; sequences of the examples' own go with values of their rank."""
    sequence = args[0]
    values = args[1] if len(args) > 1 else kwargs.get("input")
    if kwargs.get("sorter") is not None or kwargs.get("values") is not None or not isinstance(values, Tensor):
        return loop(level, function, args, kwargs)
    if not level.owns(sequence) and ndim_of(sequence) == 1:
        return level.wrap(function(sequence, values._physical, **kwargs))
    if ndim_of(sequence) != ndim_of(values):
        return loop(level, function, args, kwargs)
    return level.wrap(function(expanded(level, sequence), expanded(level, values), **kwargs))


@rule("_blend")
def running_statistics(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> None:
    """Running statistics of batch norm: each example must have its own."""
    running, observed, *rest = args
    if not level.owns(running):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched. Use track_running_stats=False, or replace_all_batch_norm_modules_, or stack the "
            "buffers of the modules too."
        )
    function(running._physical, expanded(level, observed), *rest)


@rule("isin")
def isin(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Membership among the same elements for all examples, or example by example."""
    if level.concerns((*args[1:], *kwargs.values())) or not level.owns(args[0]):
        return loop(level, function, args, kwargs)
    return level.wrap(function(args[0]._physical, *args[1:], **kwargs))


@rule("trace")
def trace(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Sums of diagonals."""
    if ndim_of(args[0]) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {ndim_of(args[0])}")
    return level.wrap(G.sum(G.diagonal(args[0]._physical, 0, 1, 2), (1,), False))


@rule("linalg_cross")
def cross(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Vector products along a dimension."""
    first, second = args[0], args[1]
    dim = args[2] if len(args) > 2 else kwargs.get("dim", -1)
    rank = max(ndim_of(first), ndim_of(second))
    whole = [aligned(level, level.wrap(expanded(level, t)), rank) for t in (first, second)]
    at = wrap_dim(dim, rank) + 1
    return level.wrap(G.linalg_cross(*whole, dim=at) if "dim" in kwargs else G.linalg_cross(*whole, at))
