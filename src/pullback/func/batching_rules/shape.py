"""Views and copies in another shape: sizes get the number of examples in front, dimensions move up by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback import functions
from pullback.checks.shapes import infer_shape
from pullback.func.batching_rules.loop import loop
from pullback.func.batching_rules.table import aligned, bind, call, expanded, ndim_of, physical_of, rule, shape_of
from pullback.func.vmap_level import VmapLevel
from pullback.generated.registry import OPERATIONS
from pullback.tensor.dims import wrap_dim

Arguments = tuple[Any, ...]
Options = dict[str, Any]


def _as_shape(size: Any) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else tuple(size)


@rule("view unsafe_view reshape")
def to_shape(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """The same elements of every example in another shape."""
    input = args[0]
    wanted = infer_shape(input._array.size, _as_shape(args[1]))
    return level.wrap(function(input._physical, (level.batch_size, *wanted)))


@rule("zeros_in_shape pad_to")
def in_shape(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """A result of a given shape for every example."""
    return level.wrap(function(args[0]._physical, (level.batch_size, *_as_shape(args[1]))))


@rule("expand")
def expand(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Repeat every example along dimensions of size 1."""
    input, size = args[0], _as_shape(args[1])
    return level.wrap(G.expand(aligned(level, input, len(size)), (level.batch_size, *size)))


@rule("repeat")
def repeat(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Copies of every example side by side."""
    input, repeats = args[0], _as_shape(args[1])
    return level.wrap(G.repeat(aligned(level, input, len(repeats)), (1, *repeats)))


@rule("permute")
def permute(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Other orders of the dimensions."""
    input, dims = args[0], _as_shape(args[1])
    return level.wrap(G.permute(input._physical, (0, *[wrap_dim(d, ndim_of(input)) + 1 for d in dims])))


def views_along_dims(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Views that name dimensions of their input."""
    name = function.__name__
    bound = bind(name, args, kwargs)
    input = bound["input"]
    ndim = ndim_of(input)
    if ndim == 0:
        return _of_scalar(level, function, input, bound)
    for parameter, role, _ in OPERATIONS[name].parameters:
        if role == "dim" and isinstance(bound.get(parameter), int):
            bound[parameter] = wrap_dim(bound[parameter], ndim) + 1
    if name == "diagonal":
        bound = {"dim1": 1, "dim2": 2, **bound}
        return level.wrap(G.diagonal(input._physical, bound.get("offset", 0), bound["dim1"], bound["dim2"]))
    bound["input"] = input._physical
    return level.wrap(call(function, name, bound))


def _of_scalar(level: VmapLevel, function: Callable[..., Any], input: Any, bound: Options) -> Any:
    """What a view of a tensor without dimensions is; else let the operation itself say why there is none."""
    name = function.__name__
    if name == "squeeze_dim":
        _check_squeezed((bound["dim"],), 0)
        return level.wrap(G.alias(input._physical))
    if name == "transpose":
        wrap_dim(bound["dim0"], 0), wrap_dim(bound["dim1"], 0)
        return input
    if name == "unfold":
        wrap_dim(bound["dimension"], 0)
        if bound["size"] > 1:
            raise RuntimeError(f"maximum size for tensor at dimension 0 is 1 but size is {bound['size']}")
        return level.wrap(G.slice_view(G.unsqueeze(input._physical, 1), 1, 0, bound["size"], 1))
    example = G.select(input._physical, 0, 0)
    return call(function, name, {**bound, "input": example})


def _check_squeezed(dims: tuple[int, ...], ndim: int) -> None:
    """Refuse dimensions to squeeze that are not there."""
    last = max(ndim, 1) - 1
    if not all(-last - 1 <= dim <= last for dim in dims):
        raise RuntimeError(
            f"Dimension is out of range (expected to be in range of [{-last - 1}, {last}], but got {list(dims)}): an "
            f"example has {ndim} dimensions."
        )


@rule("unsqueeze")
def unsqueeze(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """A new dimension of size 1."""
    input, dim = args[0], args[1]
    return level.wrap(G.unsqueeze(input._physical, wrap_dim(dim, ndim_of(input) + 1) + 1))


@rule("squeeze")
def squeeze(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Without the dimensions of size 1. The examples stay where they are among those that are left."""
    input = args[0]
    at = input._dim
    dims = [d for d, n in enumerate(input._value._array.shape) if n == 1 and d != at]
    return level.wrap_at(G.squeeze_dims(input._value, tuple(dims)), at - len([d for d in dims if d < at]))


@rule("squeeze_dims")
def squeeze_dims(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Without some dimensions, where their size is 1."""
    input = args[0]
    _check_squeezed(_as_shape(args[1]), ndim_of(input))
    dims = tuple([wrap_dim(d, ndim_of(input)) + 1 for d in _as_shape(args[1])]) if ndim_of(input) else ()
    return level.wrap(G.squeeze_dims(input._physical, dims))


@rule("t")
def transpose_matrix(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Transposed matrices."""
    input = args[0]
    if ndim_of(input) == 0:
        return input
    if ndim_of(input) == 1:
        return level.wrap(G.alias(input._physical))
    if ndim_of(input) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim_of(input)}D")
    return level.wrap(G.transpose(input._physical, 1, 2))


@rule("as_strided")
def as_strided(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """The same window on the memory of every example."""
    input, size, stride = args[0], _as_shape(args[1]), _as_shape(args[2])
    bound = bind("as_strided", args, kwargs)
    offset, examples = bound.get("storage_offset"), bound.get("examples", 0)
    physical = input._physical
    _check_window(physical, size, stride, offset)
    step = physical.stride(0)
    if step == 0 and level.batch_size > 1:
        # Expanded to all examples: tangents and gradients are not, so that strides would not mean the same to them.
        if not input._array.flags.c_contiguous or offset not in (None, 0):
            return loop(level, functions.as_strided, (input, size, stride, offset), {})
        physical = G.contiguous_copy(physical)
        step = physical.stride(0)
    geometry = (level.batch_size, *size), (step, *stride), offset, physical.stride(), physical.storage_offset()
    return level.wrap(G.as_strided(physical, *geometry, examples + 1))


def _check_window(batch: Any, size: tuple[int, ...], stride: tuple[int, ...], offset: int | None) -> None:
    """Refuse a window that reaches beyond the memory of an example: it would show other examples or other tensors."""
    if len(size) != len(stride):
        raise RuntimeError(
            "Tensor.as_strided(size, stride, ...): size and stride must have the same length! Got size "
            f"{list(size)} and stride {list(stride)}"
        )
    start = batch.storage_offset()
    first = start if offset is None else offset
    wanted = _span(size, stride)
    own = _span(tuple(batch.shape[1:]), tuple(batch.stride()[1:]))
    if not wanted:
        return
    where = f"result = tensor.as_strided({list(size)}, {list(stride)}, {first}) can access memory outside of `tensor`. "
    if not own:
        raise RuntimeError(f"{where}`tensor` has no storage but the passed-in (size, stride, storage_offset) imply a "
                           "result with some storage. This is not supported inside of vmap.")  # fmt: skip
    if first < start or first + wanted > start + own:
        raise RuntimeError(
            f"{where}`result` can access some memory in range [{first}, {first + wanted}], but `tensor` can only access "
            f"some memory in range [{start}, {start + own}]. This is not supported inside of vmap: use views such as "
            "narrow, select and transpose, which stay within an example."
        )


def _span(size: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """How many elements lie between the first and the last one that a geometry reaches, both counted."""
    return 0 if 0 in size else 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))


@rule("view_as_complex")
def view_as_complex(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Pairs as complex numbers."""
    if ndim_of(args[0]) == 0:
        raise RuntimeError(
            "Input tensor must have one or more dimensions: view_as_complex pairs elements of the last one, and an example "
            "has none."
        )
    return level.wrap(function(args[0]._physical))


@rule("flip")
def flip(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Reversed dimensions."""
    input, dims = args[0], _as_shape(args[1])
    if ndim_of(input) == 0:
        return level.wrap(G.clone(input._physical))
    return level.wrap(G.flip(input._physical, tuple([wrap_dim(d, ndim_of(input)) + 1 for d in dims])))


@rule("roll")
def roll(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Elements moved along dimensions; without dimensions, through the flattened example."""
    input, shifts = args[0], args[1]
    dims = _as_shape(args[2] if len(args) > 2 else kwargs.get("dims", ()) or ())
    if ndim_of(input) == 0:
        return level.wrap(G.clone(input._physical))
    if not dims:
        flat = G.reshape(input._physical, (level.batch_size, input._array.size))
        return level.wrap(G.reshape(G.roll(flat, _as_shape(shifts), (1,)), (level.batch_size, *shape_of(input))))
    moved = tuple([wrap_dim(d, ndim_of(input)) + 1 for d in dims])
    return level.wrap(G.roll(input._physical, _as_shape(shifts), moved))


@rule("rot90")
def rot90(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Rotations in the plane of two dimensions."""
    bound = bind("rot90", args, kwargs)
    input = bound["input"]
    dims = tuple([wrap_dim(d, ndim_of(input)) + 1 for d in bound.get("dims", (0, 1))])
    return level.wrap(G.rot90(input._physical, bound.get("k", 1), dims))


@rule("diag_embed")
def diag_embed(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Vectors as diagonals of matrices."""
    bound = bind("diag_embed", args, kwargs)
    input = bound["input"]
    rank = ndim_of(input) + 1
    dims = [wrap_dim(bound.get(name, default), rank) + 1 for name, default in (("dim1", -2), ("dim2", -1))]
    return level.wrap(G.diag_embed(input._physical, bound.get("offset", 0), *dims))


@rule("tril triu")
def triangle(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Triangles of the last two dimensions."""
    input = args[0]
    if ndim_of(input) < 2:
        raise RuntimeError(f"{function.__name__}: input tensor must have at least 2 dimensions")
    return level.wrap(function(input._physical, *args[1:], **kwargs))


@rule("select_back slice_back")
def put_back(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Zeros around what was read along a dimension."""
    bound = bind(function.__name__, args, kwargs)
    input, shape, dim, *where = bound.values()
    return level.wrap(function(physical_of(level, input), (level.batch_size, *shape), dim + 1, *where))


@rule("select_scatter slice_scatter diagonal_scatter")
def scatter_into_view(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Copies with a part replaced."""
    name = function.__name__
    bound = bind(name, args, kwargs)
    ndim = ndim_of(bound["input"])
    defaults = {"diagonal_scatter": {"dim1": 0, "dim2": 1}, "slice_scatter": {"dim": 0}}.get(name, {})
    for parameter in ("dim", "dim1", "dim2"):
        value = bound.get(parameter, defaults.get(parameter))
        if value is not None:
            bound[parameter] = wrap_dim(value, ndim) + 1
    bound["input"], bound["src"] = expanded(level, bound["input"]), expanded(level, bound["src"])
    return level.wrap(function(**bound))
