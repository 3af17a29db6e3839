"""vmap: run a function written for one example on a whole batch at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pullback import functions
from pullback.func.batched_tensor import BatchedTensor
from pullback.func.calling import call
from pullback.func.vmap_level import VmapLevel
from pullback.progress import track
from pullback.random import get_rng_state, set_rng_state
from pullback.tensor.tensor import Tensor
from pullback.utils._pytree import TreeSpec, tree_flatten, tree_unflatten
from pullback.utils._pytree import _broadcast_to_and_flatten as broadcast_to_and_flatten

InDims = Any
OutDims = Any


def vmap(
    func: Callable[..., Any],
    in_dims: InDims = 0,
    out_dims: OutDims = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
    allow_none_pass_through: bool = False,
) -> Callable[..., Any]:
    """A function that applies `func` to every slice of its arguments along `in_dims` and stacks the results at `out_dims`.

    >>> import pullback
    >>> vmap(pullback.dot)(pullback.ones(2, 3), pullback.ones(2, 3))
    tensor([3., 3.])
    """
    _check_randomness(randomness)
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        batch_size, flat_dims, flat_args, spec = _flat_arguments(in_dims, args, func)
        if chunk_size is not None and batch_size > chunk_size:
            return _in_chunks(func, out_dims, randomness, batch_size, chunk_size, flat_dims, flat_args, spec, kwargs,
                              allow_none_pass_through)  # fmt: skip
        return _run(func, out_dims, randomness, batch_size, flat_dims, flat_args, spec, kwargs, allow_none_pass_through)

    return mapped


def _check_randomness(randomness: str) -> None:
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", None) or repr(func)


def _run(
    func: Callable[..., Any], out_dims: OutDims, randomness: str, batch_size: int, flat_dims: list[Any],
    flat_args: list[Any], spec: TreeSpec, kwargs: dict[str, Any], none_passes: bool,
) -> Any:  # fmt: skip
    """One vmap over the whole batch."""
    level = VmapLevel(batch_size, randomness)
    inputs = [
        value if dim is None else level.wrap_at(value, dim) for value, dim in zip(flat_args, flat_dims, strict=True)
    ]
    with level.running():
        outputs = call(func, tree_unflatten(inputs, spec), kwargs)
    return _unwrap_outputs(outputs, out_dims, level, func, none_passes)


def _in_chunks(
    func: Callable[..., Any], out_dims: OutDims, randomness: str, batch_size: int, chunk_size: int, flat_dims: list[Any],
    flat_args: list[Any], spec: TreeSpec, kwargs: dict[str, Any], none_passes: bool,
) -> Any:  # fmt: skip
    """Several vmaps over parts of the batch, joined along `out_dims`."""
    collected: list[list[Any]] = []
    out_spec: Any = None
    state = get_rng_state() if randomness == "same" else None
    starts = range(0, batch_size, chunk_size)
    for start in track(starts, len(starts), "chunks"):
        if state is not None:  # every example draws the same numbers, whichever part it is in
            set_rng_state(state)
        length = min(chunk_size, batch_size - start)
        part = [
            value if dim is None else functions.narrow(value, dim, start, length)
            for value, dim in zip(flat_args, flat_dims, strict=True)
        ]
        outputs = _run(func, out_dims, randomness, length, flat_dims, part, spec, kwargs, none_passes)
        flat, out_spec = tree_flatten(outputs)
        collected.append(flat)
    dims = _flat_out_dims(out_dims, out_spec, func)
    joined = [
        functions.cat(list(parts), dim) if dim is not None and isinstance(parts[0], Tensor) else parts[0]
        for parts, dim in zip(zip(*collected, strict=True), dims, strict=True)
    ]
    return tree_unflatten(joined, out_spec)


def _flat_arguments(
    in_dims: InDims, args: tuple[Any, ...], func: Callable[..., Any]
) -> tuple[int, list[Any], Any, Any]:
    """The batch size, and the arguments and their mapped dimensions, flat; errors where these do not fit together."""
    name = _name(func)
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple "
            f"matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    flat_args, spec = tree_flatten(args)
    flat_dims = broadcast_to_and_flatten(in_dims, spec)
    if flat_dims is None:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of `inputs`. "
            f"in_dims has structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    wrapped = [_checked_dim(name, in_dims, arg, dim) for arg, dim in zip(flat_args, flat_dims, strict=True)]
    return _batch_size(name, in_dims, flat_args, wrapped), wrapped, flat_args, spec


def _checked_dim(name: str, in_dims: InDims, arg: Any, dim: Any) -> int | None:
    where = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
        raise ValueError(
            f"{where}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
        )
    if dim is None:
        return None
    if not isinstance(arg, Tensor):
        raise ValueError(
            f"{where}Got in_dim={dim} for an input but the input is of type {type(arg)}. We cannot vmap over non-Tensor "
            "arguments, please use None as the respective in_dim"
        )
    ndim = arg._array.ndim
    if not -ndim <= dim < ndim:
        raise ValueError(
            f"{where}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {ndim} so expected "
            f"in_dim to satisfy -{ndim} <= in_dim < {ndim}."
        )
    return dim + ndim if dim < 0 else dim


def _batch_size(name: str, in_dims: InDims, flat_args: list[Any], flat_dims: list[int | None]) -> int:
    sizes = [arg._array.shape[dim] for arg, dim in zip(flat_args, flat_dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError(
            f"vmap: Expected at least one Tensor to vmap over, but in_dims={in_dims} maps over none of the inputs of "
            f"{name}: there is no batch size."
        )
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
            "dimension"
        )
    return int(sizes[0])


def _unwrap_outputs(
    outputs: Any, out_dims: OutDims, level: VmapLevel, func: Callable[..., Any], none_passes: bool
) -> Any:
    """Whole batches with their examples along `out_dims`."""
    flat, spec = tree_flatten(outputs)
    dims = _flat_out_dims(out_dims, spec, func)
    for value, dim in zip(flat, dims, strict=True):
        if not isinstance(value, Tensor) and dim is not None and not (none_passes and value is None):
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(value)}. Did you mean "
                f"to set out_dims= to None for output?"
            )
    results = [_unwrap_output(value, dim, level, func) for value, dim in zip(flat, dims, strict=True)]
    return tree_unflatten(results, spec)


def _flat_out_dims(out_dims: OutDims, spec: Any, func: Callable[..., Any]) -> list[Any]:
    dims = broadcast_to_and_flatten(out_dims, spec)
    if dims is None and spec.num_leaves == 1 and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims = list(out_dims)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    for dim in dims:
        if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
            raise ValueError(
                f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
                f"ints representing where in the outputs the vmapped dimension should appear."
            )
    return list(dims)


def _unwrap_output(value: Any, dim: int | None, level: VmapLevel, func: Callable[..., Any]) -> Any:
    if not isinstance(value, Tensor):
        return value
    if dim is None:
        if level.owns(value):
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None: every "
                "example has a value of its own"
            )
        return value
    if isinstance(value, BatchedTensor) and not value._level.open and value._level is not level:
        return value
    if not level.owns(value):
        value = level.wrap(level.to_physical(value))
    whole = value._value
    wanted = dim + whole._array.ndim if dim < 0 else dim
    return whole if wanted == value._dim else functions.movedim(whole, value._dim, dim)
