"""In-place operations and `out=`: the result for all examples is computed, then written into the batch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import pullback.generated as G
from pullback import functions
from pullback.func.batched_tensor import become_batch
from pullback.func.batching_rules.elementwise import is_elementwise, promoted_dtype
from pullback.func.batching_rules.table import aligned, expanded, ndim_of, rule, shape_of, tensors_among
from pullback.func.vmap_level import VmapLevel
from pullback.graph.in_place import check_writable
from pullback.graph.views import view_like
from pullback.tensor.tensor import Tensor
from pullback.tensor.version_counter import VersionCounter
from pullback.utils._pytree import tree_flatten


def in_place_rule(
    level: VmapLevel,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Elementwise operations run in place on the batch; others are computed out of place, then copied."""
    target, base = args[0], out_of_place(function)
    assert base is not None  # this rule was chosen for it
    require_batch(level, target, (args, kwargs), function.__name__)
    tensors = tensors_among((*args, *kwargs.values()))
    rank = ndim_of(target)
    if is_elementwise(base.__name__) and all(ndim_of(t) <= rank for t in tensors) and promoted_dtype(tensors) is None:
        options = {k: aligned(level, v, rank) for k, v in kwargs.items()}
        function(*[aligned(level, a, rank) for a in args], **options)
        return target
    # What the operation saves must not be what is written to.
    source = level.wrap(functions.clone(target._physical)) if target._requires_grad else target
    result = level.again(base, source, *args[1:], **kwargs)
    check_writable(target, result)
    functions.copy_(target._physical, aligned(level, result, ndim_of(target)))
    return target


def out_of_place(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function that an in-place one is made from."""
    name = getattr(function, "__name__", "")
    if not name.endswith("_") or name.endswith("__"):
        return None
    made_from = getattr(function, "out_of_place", None)
    if made_from is not None:
        return made_from
    return getattr(sys.modules[function.__module__], name[:-1], None)


def require_batch(level: VmapLevel, target: Any, given: Any, name: str) -> None:
    """Refuse a write to what is no batch, unless the examples that are written are the same: then it becomes a batch.

    See Note [Uniform batches]. What has other aliases does not become one: they would keep its former memory.
    """
    if level.owns(target):
        return
    base: Any = target._base if type(target) is Tensor and target._is_view() else target
    sources = [t for t in tree_flatten(given)[0] if level.owns(t)]
    if not level.has_uniform or not all(t._uniform for t in sources) or not _is_alone(base, target):
        refuse_unbatched(level, target, name)
    made_in, whole = base._made_in, G.contiguous_copy(level.to_physical(base))
    whole._made_in = made_in
    become_batch(base, level.wrap(whole))
    if base is not target:
        become_batch(target, level.again(view_like, base, target))


def _is_alone(base: Any, view: Any) -> bool:
    """Whether `base` has no history and nothing but `view`, which may be `base` itself, shares its memory."""
    if type(base) is not Tensor or base._requires_grad or base._extra is not None:
        return False
    counter, alone = base._counter, VersionCounter()
    if counter is None:
        return True
    # Detached aliases are not among the views, but keep the counter, as the base and its views do.
    kept = sys.getrefcount(counter) - sys.getrefcount(alone)
    if view is base:
        return kept == 1
    return kept == 2 and base._array.flags.c_contiguous


def refuse_unbatched(level: VmapLevel, target: Any, name: str) -> NoReturn:
    """Each example would need a tensor of its own to be written to."""
    what = "inplace arithmetic" if is_elementwise(name.rstrip("_")) and name != "fill_" else name
    shape = list(shape_of(target)) if isinstance(target, Tensor) else []
    raise RuntimeError(
        f"vmap: {what}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more "
        "elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. "
        f"Please try to use out-of-place operators instead of {what}, or make `self` with new_zeros or zeros_like of a "
        f"batched tensor (output with shape {shape} doesn't match the broadcast shape {[level.batch_size, *shape]})."
    )


def out_rule(
    level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
) -> Any:
    """`out=` is not batched."""
    raise RuntimeError(
        f"Batching rule not implemented for aten::{function.__name__}.out; the fallback path doesn't work on out= or view "
        "ops. Use the function's result instead."
    )


@rule("write_out")
def write_out(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a composed function, written to `out=`."""
    return out_rule(level, function, args, kwargs, args[1])


@rule("copy_")
def copy_(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Overwrite the batch."""
    target, source = args[0], args[1]
    require_batch(level, target, (args, kwargs), function.__name__)
    functions.copy_(target._physical, aligned(level, source, ndim_of(target)))
    return target


@rule("copy")
def copy(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The source in the shape of each example of the target."""
    target, source = args[0], args[1]
    return level.wrap(function(expanded(level, target), aligned(level, source, ndim_of(target))))


@rule("fill_tensor_ fill_in_place_tensor_")
def fill_tensor_(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Fill each example with its own number."""
    require_batch(level, args[0], (args, kwargs), "fill_")
    return copy_(level, function, args, kwargs)


@rule("fill_tensor fill_in_place_tensor")
def fill_tensor(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Each example filled with its own number."""
    input, value = args[0], args[1]
    filled = functions.expand(aligned(level, value, ndim_of(input)), (level.batch_size, *shape_of(input)))
    return level.wrap(functions.clone(functions.to(filled, input.dtype)))
