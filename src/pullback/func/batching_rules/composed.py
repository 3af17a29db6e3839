"""Functions that are composed of more than operations: copies of views, views made in place, counting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from pullback.func.batching_rules.table import expanded, ndim_of, rule
from pullback.func.vmap_level import VmapLevel
from pullback.tensor.tensor import wrap_dim

Arguments = tuple[Any, ...]
Options = dict[str, Any]


@rule("copy_of_view one_hot unravel_index _view_dtype")
def on_batch(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """The function does not look at leading dimensions."""
    return level.wrap(function(*[expanded(level, a) for a in args], **kwargs))


@rule("contiguous_copy")
def contiguous_copy(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """A copy in row-major order; an order of an example's dimensions has no meaning for the batch."""
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
    target._physical, target._array = seen._physical, seen._array
    return target


@rule("equal allclose")
def truth(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> NoReturn:
    """One truth value for all examples."""
    name = function.__name__
    raise RuntimeError(
        f"vmap over torch.{name} isn't supported yet. Batching rule not implemented for aten::{name}. We could not generate a "
        "fallback: it gives one answer, and each example has its own. Use eq(...).all() instead."
    )
