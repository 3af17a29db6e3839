"""In-place operations and `out=`: the result for all examples is computed, then written into the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pullback.functions as F
from pullback.func.batching_rules.elementwise import ELEMENTWISE, promoted_dtype
from pullback.func.batching_rules.table import aligned, ndim_of, rule, shape_of, tensors_among
from pullback.func.vmap_level import VmapLevel
from pullback.graph.in_place import check_writable
from pullback.tensor.tensor import Tensor


def in_place_rule(
    level: VmapLevel,
    function: Callable[..., Any],
    base: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Elementwise operations run in place on the batch; others are computed out of place, then copied."""
    target = args[0]
    if not level.owns(target):
        refuse_unbatched(level, target, args[1:])
    tensors = tensors_among((*args, *kwargs.values()))
    rank = ndim_of(target)
    if is_elementwise(base) and all(ndim_of(t) <= rank for t in tensors) and promoted_dtype(tensors) is None:
        options = {k: aligned(level, v, rank) for k, v in kwargs.items()}
        function(*[aligned(level, a, rank) for a in args], **options)
        return target
    # What the operation saves must not be what is written to.
    source = level.wrap(F.clone(target._physical)) if target._requires_grad else target
    result = level.again(base, source, *args[1:], **kwargs)
    check_writable(target, result)
    F.copy_(target._physical, aligned(level, result, ndim_of(target)))
    return target


_COMPOSED = set(
    "clamp clamp_min clamp_max clip div pow square float_power remainder fmod floor_divide lerp round copysign heaviside "
    "xlogy masked_fill elu selu celu leaky_relu threshold hardtanh relu6 silu mish hardswish hardsigmoid".split()
)


def is_elementwise(function: Callable[..., Any]) -> bool:
    """Whether a function works element by element."""
    return function.__name__ in ELEMENTWISE or function.__name__ in _COMPOSED


def refuse_unbatched(level: VmapLevel, target: Any, others: tuple[Any, ...]) -> NoReturn:
    """Each example would need a tensor of its own to be written to."""
    batch = [level.batch_size, *shape_of(target)] if isinstance(target, Tensor) else []
    shape = list(shape_of(target)) if isinstance(target, Tensor) else []
    raise RuntimeError(
        f"output with shape {shape} doesn't match the broadcast shape {batch}: vmap: inplace arithmetic(self, *extra_args) "
        "is not possible because there exists a Tensor `other` in extra_args that has more elements than `self`. It is "
        "batched and `self` is not. Use the out-of-place operation, or make `self` with new_zeros or zeros_like of a "
        "batched tensor."
    )


def out_rule(
    level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
) -> Any:
    """`out=` is not batched."""
    raise RuntimeError(
        f"Batching rule not implemented for {function.__name__}.out; the fallback path doesn't work on out= or view ops. "
        "Use the function's result instead."
    )


@rule("write_out")
def write_out(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a composed function, written to `out=`."""
    return out_rule(level, function, args, kwargs, args[1])


@rule("copy_")
def copy_(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Overwrite the batch."""
    target, source = args[0], args[1]
    if not level.owns(target):
        refuse_unbatched(level, target, args[1:])
    F.copy_(target._physical, aligned(level, source, ndim_of(target)))
    return target


@rule("fill_tensor_ refill_tensor_")
def fill_tensor_(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Fill each example with its own number."""
    return copy_(level, function, args, kwargs)


@rule("fill_tensor refill_tensor")
def fill_tensor(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Each example filled with its own number."""
    input, value = args[0], args[1]
    filled = F.expand(aligned(level, value, ndim_of(input)), (level.batch_size, *shape_of(input)))
    return level.wrap(F.clone(F.to(filled, input.dtype)))
