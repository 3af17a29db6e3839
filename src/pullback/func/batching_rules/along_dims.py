"""Operations along dimensions of one tensor (reductions, scans, sorting, softmax): the dimensions move up by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.func.batching_rules.loop import loop
from pullback.func.batching_rules.table import bind, call, expanded, ndim_of, rule, shape_of
from pullback.func.vmap_level import VmapLevel
from pullback.generated.registry import OPERATIONS
from pullback.tensor.dims import wrap_dim
from pullback.tensor.tensor import Tensor


def along_dims(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run along the same dimensions of every example."""
    name = function.__name__
    bound = bind(name, args, kwargs)
    input = next(iter(bound.values()))
    physical, ndim, keeps = input._physical, ndim_of(input), bool(bound.get("keepdim", False))
    whole = False
    for parameter, role, _ in OPERATIONS[name].parameters:
        if role not in ("dim", "dims"):
            continue
        dim = bound.get(parameter)
        if role == "dims":
            bound[parameter] = _moved_dims(dim, ndim)
        elif dim is None:
            whole = True
            physical = G.reshape(physical, (level.batch_size, input._array.size))
            bound[parameter], bound["keepdim"] = 1, False
        else:
            bound[parameter] = wrap_dim(dim, ndim) + 1
    if ndim == 0 and not whole:
        physical = G.unsqueeze(physical, 1)
    bound[next(iter(bound))] = physical
    result = call(function, name, bound)
    if whole and keeps:
        result = _each(result, lambda r: G.view(r, (level.batch_size, *[1] * ndim)))
    elif ndim == 0:
        result = _each(result, lambda r: G.squeeze_dim(r, 1) if r._array.ndim > 1 else r)
    return level.wrap(result)


@rule("softmax_backward_data log_softmax_backward_data")
def softmax_gradient(
    level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The gradient of a softmax along the same dimension of every example."""
    output_grad, output, dim = args
    ndim = ndim_of(output)
    if ndim == 0:
        return loop(level, function, args, kwargs)
    return level.wrap(function(expanded(level, output_grad), expanded(level, output), wrap_dim(dim, ndim) + 1))


def _moved_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(1, max(ndim, 1) + 1))
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple([wrap_dim(d, ndim) + 1 for d in dims])


def _each(result: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(result, Tensor):
        return change(result)
    return tuple([change(r) for r in result])


@rule("sum_all mean_all max_all min_all")
def reduce_whole(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Reduce every example to one number."""
    input, *rest = args
    physical = input._value
    if ndim_of(input) == 0:
        physical = G.unsqueeze(physical, 1)
    dims = tuple([d for d in range(physical._array.ndim) if d != input._dim])
    name = function.__name__.removesuffix("_all")
    if name in ("max", "min"):
        return level.wrap(getattr(G, f"a{name}")(physical, dims, False))
    operation = getattr(G, name)
    dtype = rest[0] if rest else kwargs.get("dtype")
    return level.wrap(
        operation(physical, dims, False, dtype=dtype) if dtype is not None else operation(physical, dims, False)
    )


@rule("prod_all")
def prod_all(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Multiply all elements of every example."""
    flat = G.reshape(args[0]._physical, (level.batch_size, args[0]._array.size))
    dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
    return level.wrap(G.prod(flat, 1, False) if dtype is None else G.prod(flat, 1, False, dtype=dtype))


@rule("sum_where")
def sum_where(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The sum of the elements of every example where its mask is true."""

    def composed(input: Any, mask: Any) -> Any:
        return G.sum_all(G.where(mask, input, G.zeros_in_shape(input, ())))

    return level.again(composed, *args)


@rule("share_among_equals")
def share_among_equals(
    level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Which elements of each example share the gradient of an extremum."""
    input, result = args[0], args[1]
    dim, keepdim = args[2], args[3]
    ndim = ndim_of(input)
    if ndim == 0:
        return loop(level, function, args, kwargs)
    dims = _moved_dims(dim, ndim)
    values = level.to_physical(result)
    if not keepdim:
        kept = [level.batch_size, *[1 if d + 1 in dims else n for d, n in enumerate(shape_of(input))]]
        values = G.view(G.contiguous_copy(values), tuple(kept))
    return level.wrap(G.share_among_equals(level.to_physical(input), values, dims, True))
