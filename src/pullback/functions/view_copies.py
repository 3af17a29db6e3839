"""The `*_copy` twins of views, the splits that are not views to autograd, and views made in place (`t_`, `squeeze_`).

All of them have the derivative of the view; PyTorch only calls their nodes something else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.backend.dtype import dtype as Dtype
from pullback.facts import declare
from pullback.functions.indexing import narrow
from pullback.functions.joining import chunk, split, split_with_sizes
from pullback.functions.shape import as_strided, sizes, sizes_by_name, squeeze, unsqueeze, view
from pullback.functions.transpositions import permute
from pullback.graph.former_shape import keep_former_shape
from pullback.graph.history import bump_version, check_in_place
from pullback.graph.in_place import alias_of, write_out
from pullback.graph.renamed_node import renamed
from pullback.graph.tangents import levels_of, set_tangent, tangent_at
from pullback.kernels.shape import contiguous_copy
from pullback.modes.interception import interceptable, structured
from pullback.modes.switches import process, switches
from pullback.tensor.arguments import as_int
from pullback.tensor.tensor import Tensor, new_tensor


def _off_view(view: Tensor, array: Any, node: Any) -> Tensor:
    """A tensor around `array` with the tangents of `view` and the history `node`, but no view."""
    result = new_tensor(array)
    edge = view._gradient_edge()
    if edge is not None:
        result._requires_grad = True
        result._edge = (node or edge[0], edge[1])
    if process.changed:
        for level in levels_of(view):
            set_tangent(result, level, tangent_at(view, level))
    return result


def _renamed_node(view: Tensor, name: str) -> Any:
    """The view's node, if it has one, called `name` ("{}" stands for its own name)."""
    edge = view._gradient_edge()
    return None if edge is None else renamed(edge[0], name.format(type(edge[0]).__name__))


@structured("leading")
@interceptable
def copy_of_view(view: Tensor, out: Any = None, node: str = "{}_copy") -> Tensor:
    """A copy with the derivative of the view it copies."""
    made = _off_view(view, contiguous_copy(view._array), _renamed_node(view, node))
    return made if out is None else write_out("view_copy", out, made)


def _copy_function(name: str, view_function: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def function(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Tensor:
        view = view_function(input, *args, **kwargs)
        return copy_of_view(G.alias(input) if view is input else view, out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _sliced(input: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    size = input._array.shape[dim]
    first, last, _ = slice(start, end).indices(size)
    return G.slice_view(input, dim, first, max(first, last), step)


@declare(out_dtype="c_types", found="torch")
def view_copy(input: Tensor, *size: Any, out: Any = None, **named: Any) -> Tensor:
    """A copy in another shape, whether a view could have it or not; given a dtype, of the bytes read as that."""
    if "dtype" in named or (size and isinstance(size[0], (Dtype, type))):
        return copy_of_view(view(input, *size, **named), out)
    shape = sizes(sizes_by_name("view_copy", "size", named, size) if named else size, "view_copy", "size")
    return copy_of_view(G.unsafe_view(input, shape), out, _VIEW)


_VIEW = "ViewBackward0_copy"
expand_copy = declare(found="torch")(
    _copy_function("expand_copy", lambda x, size, implicit=False: G.expand(x, size), "A copy, expanded.")
)
permute_copy = declare(found="torch")(
    _copy_function("permute_copy", permute, "A copy with the dimensions in another order.")
)
alias_copy = declare(found="torch")(_copy_function("alias_copy", lambda x: G.alias(x), "A copy."))
slice_copy = declare(found="torch")(_copy_function("slice_copy", _sliced, "A copy of part of a dimension."))
unfold_copy = declare(found="torch")(
    _copy_function("unfold_copy", lambda *a, **k: G.unfold(*a, **k), "A copy of all slices of one size.")
)
select_copy = declare(found="torch")(
    _copy_function("select_copy", lambda *a, **k: G.select(*a, **k), "A copy at one position of a dimension.")
)
as_strided_copy = declare(found="torch")(
    _copy_function("as_strided_copy", as_strided, "A copy of a strided window of the storage.")
)
diagonal_copy = declare(found="torch")(
    _copy_function("diagonal_copy", lambda *a, **k: G.diagonal(*a, **k), "A copy of a diagonal.")
)
transpose_copy = declare(found="torch")(
    _copy_function("transpose_copy", lambda *a, **k: G.transpose(*a, **k), "A transposed copy.")
)
t_copy = declare(found="torch")(_copy_function("t_copy", lambda x: G.t(x), "A transposed copy of a matrix."))
squeeze_copy = declare(found="torch")(_copy_function("squeeze_copy", squeeze, "A copy without dimensions of size 1."))
unsqueeze_copy = declare(found="torch")(
    _copy_function("unsqueeze_copy", unsqueeze, "A copy with a dimension of size 1 inserted.")
)
view_as_real_copy = declare(found="torch")(
    _copy_function("view_as_real_copy", lambda x: G.view_as_real(x), "Complex elements as pairs.")
)
view_as_complex_copy = declare(found="torch")(
    _copy_function("view_as_complex_copy", lambda x: G.view_as_complex(x), "Pairs as complex elements.")
)


@interceptable
@declare(
    out_dtype="Expected self.dtype() == output.dtype() to be true, but got false: {0} and {1}",
    out_resized="silently",
    found="torch and method",
)
def narrow_copy(input: Tensor, dim: int, start: int, length: int, *, out: Any = None) -> Tensor:
    """A copy of `length` positions of a dimension, from `start` on."""
    if dim >= input._array.ndim > 0:
        raise RuntimeError(
            f"Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false. dim is {dim} of "
            f"{input._array.ndim} dimensions"
        )
    if length < 0:
        raise RuntimeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({input._array.shape[dim]}). The length must "
            "not be negative"
        )
    part = narrow(input, dim, start, length)
    made = _off_view(part, contiguous_copy(part._array), _renamed_node(part, "NarrowCopyBackward0"))
    return made if out is None else write_out("narrow_copy", out, made)


@interceptable
def _copies(views: Any, out: Any = None) -> tuple[Tensor, ...] | None:
    """Copies of views; what out= takes is not returned again."""
    node = _renamed_node(views[0], "{}_copy") if views else None
    made = tuple([_off_view(v, contiguous_copy(v._array), node) for v in views])
    if out is None:
        return made
    write_out("split_copy", out, made)
    return None


@declare(found="torch")
def unbind_copy(input: Tensor, dim: int = 0, *, out: Any = None) -> Any:
    """A copy of each slice along a dimension."""
    return _copies(G.unbind(input, dim), out)


@declare(out_dtype="c_types", found="torch")
def split_copy(input: Tensor, split_size: int, dim: int = 0, *, out: Any = None) -> Any:
    """Copies of one size along a dimension."""
    return _copies(split(input, split_size, dim), out)


@declare(found="torch")
def split_with_sizes_copy(input: Tensor, split_sizes: Any, dim: int = 0, *, out: Any = None) -> Any:
    """Copies of the given sizes along a dimension."""
    return _copies(split_with_sizes(input, split_sizes, dim), out)


@interceptable
def _unsafe(views: Any) -> tuple[Tensor, ...]:
    """Parts that share memory, but that autograd does not know as views: modifying them is the caller's risk."""
    node = _renamed_node(views[0], "Unsafe{}") if views else None
    return tuple([_off_view(v, v._array, node) for v in views])


@structured("leading")
@interceptable
def apart(view: Tensor, name: str) -> Tensor:
    """A new tensor's view as a tensor of its own, which nothing else shares; its node is called `name`."""
    return _off_view(view, view._array, _renamed_node(view, name))


@declare(found="torch and method")
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> Any:
    """As `split`, for callers that will modify the parts."""
    return _unsafe(split(input, as_int(split_size), dim))


@declare(found="torch and method")
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """As `split_with_sizes`, for callers that will modify the parts."""
    return _unsafe(split_with_sizes(input, split_sizes, dim))


@declare(found="torch and method")
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """As `chunk`, for callers that will modify the parts."""
    return _unsafe(chunk(input, chunks, dim))


@interceptable
def _view_in_place(name: str, function: Callable[..., Any], input: Tensor, *args: Any) -> Tensor:
    """Make the tensor itself a view of what it was; its history goes through the view's node, called `name`."""
    records = input._requires_grad and (not process.changed or switches.grad_mode)
    check_in_place(input, function.__name__, records=records)
    seen = function(alias_of(input, recorded=records), *args)
    input._leave_accumulator(seen._array, keep=True)
    input._array = seen._array
    bump_version(input)
    edge = seen._gradient_edge() if records else None
    if edge is not None:
        set_view_edge(input, (renamed(edge[0], name), edge[1]), lambda tensor: function(tensor, *args))
    elif input._requires_grad and not switches.below_autograd:
        keep_former_shape(input)
    for level in levels_of(seen) if process.changed else ():
        set_tangent(input, level, tangent_at(seen, level))
    return input


def set_view_edge(input: Tensor, edge: Any, function: Callable[[Tensor], Tensor]) -> None:
    """Make `edge` the history of a tensor that became a view of what it was; it stays a view of its base, if it is one."""
    info = input._extra.view if input._extra is not None else None
    if info is None:
        input._edge = edge
        return
    info.edge = edge
    info.attr_version = 0 if input._counter is None else input._counter.value
    if (replay := info.replay) is not None:
        info.replay = lambda base: function(replay(base))


@declare(found="method")
def t_(input: Tensor) -> Tensor:
    """Transpose this matrix in place."""
    if input._array.ndim > 2:
        records = input._requires_grad and (not process.changed or switches.grad_mode)
        check_in_place(input, "t", records=records)
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D")
    return _view_in_place("TBackward1", G.t, input)


@declare(found="method")
def transpose_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two dimensions of this tensor in place."""
    return _view_in_place("TransposeBackward1", G.transpose, input, dim0, dim1)


@declare(found="method")
def swapaxes_(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Exchange two dimensions of this tensor in place."""
    return transpose_(input, axis0, axis1)


@declare(found="method")
def swapdims_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two dimensions of this tensor in place."""
    return transpose_(input, dim0, dim1)


@declare(found="method")
def squeeze_(input: Tensor, dim: Any = None) -> Tensor:
    """Remove dimensions of size 1 of this tensor in place."""
    name = (
        "SqueezeBackward3"
        if dim is None
        else "SqueezeBackward5"
        if isinstance(dim, (tuple, list))
        else "SqueezeBackward4"
    )
    return _view_in_place(name, squeeze, input, dim)


@declare(found="method")
def unsqueeze_(input: Tensor, dim: int) -> Tensor:
    """Insert a dimension of size 1 into this tensor in place."""
    return _view_in_place("UnsqueezeBackward1", unsqueeze, input, dim)


@declare(found="torch and method")
def as_strided_(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Give this tensor another geometry on its storage, in place."""
    return _view_in_place("AsStridedBackward1", as_strided, input, size, stride, storage_offset)
