"""In-place and `out=` forms of every operation, made from the out-of-place function.

# Note [In-place]
`x.mul_(y)` runs `mul` on an alias that stands at x's place of the graph, writes the result into x's memory, counts the
modification, and makes the recorded node x's history. What the node saved of the overwritten memory is first moved to a
copy; what it saved of the result becomes x itself, so that a later modification is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pullback.backend.array_module import (
    as_strided,
    copy_array,
    element_strides,
    flat_storage,
    has_internal_overlap,
    may_share_memory,
    overlaps,
    overlaps_in_part,
    storage_offset,
)
from pullback.backend.dtype import can_cast, is_float_or_complex, scalar_type_name
from pullback.backend.wrapper_array import WrapperArray
from pullback.facts import fact_of, names_with
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.basic_nodes import NotImplementedNode
from pullback.graph.former_shape import keep_former_shape
from pullback.graph.history import bump_version, check_in_place, check_inference, gradient_edge, rebase_history
from pullback.graph.out_dtypes import check_out_dtype
from pullback.graph.renamed_node import renamed
from pullback.graph.saved_tensor import SavedOutput
from pullback.graph.tangents import levels_of, set_tangent, tangent_at
from pullback.modes.cuts import note_cut
from pullback.modes.grad_mode import set_grad_mode
from pullback.modes.switches import process, switches
from pullback.modes.user_warnings import warn_user
from pullback.tensor.foreign_arguments import PLAIN, any_foreign, ask_foreign
from pullback.tensor.tensor import Tensor, TensorBase, new_tensor

_WRITES = names_with("writes")
_RENUMBERED = names_with("renumbered")


def in_place(function: Callable[..., Any], input: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply `function` to `input` in place. See Note [In-place]."""
    if process.changed:
        from pullback.modes.function_modes import is_told
        from pullback.modes.interception import intercept, overrides

        if process.modes and is_told():
            assert overrides.ask_foreign is not None
            return overrides.ask_foreign(_named(function), (input, *args), kwargs)
        if switches.interceptors or overrides.types:
            taken = intercept(_named(function), (input, *args), kwargs)
            if taken is not NotImplemented:
                return taken
    if not isinstance(input, TensorBase):
        return function(input, *args, **kwargs)
    for value in args:
        if type(value) not in PLAIN and any_foreign(args):
            return ask_foreign(_named(function), (input, *args), kwargs)
    return write_in_place(function, input, *args, **kwargs)


def write_in_place(function: Callable[..., Any], input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `in_place`, after all who may intercept were asked."""
    records = (not process.changed or switches.records) and (
        input._requires_grad or _require_grad(args) or _require_grad(kwargs.values())
    )
    name = function.__name__
    how = _WRITES.get(name)
    takes_grad = is_float_or_complex(input._array.dtype)
    if records and (how == "unrecorded" or (name == "copy" and not takes_grad)):
        records = False  # PyTorch does not look at the graph where no gradient could be
    check_in_place(input, name, records=records, inference_later=True)
    loses_grad, records = records and not takes_grad, records and takes_grad
    expanded = not input._array.flags.c_contiguous and has_internal_overlap(input._array)
    if expanded and how != "fill" and name != "index_put":
        check_overlap(input)
    if how is None or how == "unrecorded":
        _check_apart(input, args)
    alias = alias_of(input, recorded=records)
    if process.changed:
        if records and switches.saved_tensor_hooks:
            alias._array = copy_array(alias._array)  # pack hooks may keep it: the memory of `input` is written to
        if switches.dual_level >= 0:
            for level in levels_of(alias):  # what is saved of it: that of `input` is written to
                set_tangent(alias, level, tangent_at(alias, level).clone())
    if loses_grad:
        result = _call_unrecorded(function, alias, *args, **kwargs)
    else:
        result = function(alias, *args, **kwargs)
    check_writable(input, result)
    if input._extra is not None and input._extra.inference:
        check_inference(input)  # only now: what is wrong with the arguments comes first
    if how == "at_positions" and type(input._array) is not WrapperArray:  # only now: wrong positions come first
        _check_apart(input, args, whole=True)
    if expanded:
        warn_of_expanded(name)
        result._array = _merged(input._array, result._array)
    if records and result._requires_grad:
        adopt_result(input, alias, result)
    else:
        input._array[...] = result._array
        bump_version(input)
        if result._requires_grad:  # whole numbers have no gradient
            for value in (*args, *kwargs.values()):
                if isinstance(value, TensorBase) and value._requires_grad:
                    note_cut("to_integer", input, value)
    if process.changed and switches.dual_level >= 0:
        update_tangents(input, result)
    return input


def _call_unrecorded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call an operation that cannot be recorded: what requires grad is written to integers."""
    former = set_grad_mode(False)
    try:
        return function(*args, **kwargs)
    finally:
        set_grad_mode(former)


def warn_of_expanded(name: str) -> None:
    """Warn where PyTorch still allows a write to elements that share memory."""
    if name in ("index_put", "index_fill", "masked_fill", "masked_fill_tensor"):
        name = name.removesuffix("_tensor")
        warn_user(
            f"Use of {name}_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
            "operation: its elements share memory, so a write to one of them is seen in others."
        )


def _merged(array: Any, result: Any) -> Any:
    """Make the values to write where elements share memory, so that no unchanged element undoes a change."""
    changed = result != array
    array[changed] = result[changed]
    return copy_array(array)


def _check_apart(input: Any, args: Iterable[Any], whole: bool = False) -> None:
    """Refuse tensors that share some memory with `input`, or, if `whole`, any."""
    for value in args:
        if isinstance(value, TensorBase):
            check_partial_overlap(input._array, value._array, whole=whole)


def _require_grad(values: Iterable[Any]) -> bool:
    """Whether one of the arguments is a tensor that requires grad."""
    for value in values:  # noqa: SIM110  (a generator costs as much as a small operation)
        if isinstance(value, TensorBase) and value._requires_grad:
            return True
    return False


def check_overlap(input: Any) -> None:
    """Refuse to write to elements that share memory."""
    if has_internal_overlap(input._array):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def check_partial_overlap(written: Any, read: Any, whole: bool = False) -> None:
    """Refuse to write over a part of what must still be read, or over the `whole` of it where positions differ."""
    if overlaps(written, read) if whole else overlaps_in_part(written, read):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
            "location. Please clone() the tensor before performing the operation."
        )


def update_tangents(input: Any, result: Any) -> None:
    """Write the result's tangents into those of `input`, in place: views share the memory of their base's tangent."""
    for level in {*levels_of(input), *levels_of(result)}:
        current, new = tangent_at(input, level), tangent_at(result, level)
        if current is None:
            extra = input._extra
            base = input if extra is None or extra.view is None else extra.view.base
            whole = new.new_empty_strided(base.size(), base.stride(), dtype=base.dtype).zero_()
            set_tangent(base, level, whole)  # laid out as the base, so that its views see parts of it
            current = tangent_at(input, level)
        if new is None:
            current.zero_()
        else:
            current.copy_(new)


class InPlaceForm:
    """What interceptors see as the in-place form of a function, where that form has no name of its own."""

    def __init__(self, out_of_place: Callable[..., Any]) -> None:
        self.out_of_place = out_of_place
        self.__name__ = f"{out_of_place.__name__}_"
        self.__module__ = out_of_place.__module__

    def __call__(self, input: Any, *args: Any, **kwargs: Any) -> Any:
        return in_place(self.out_of_place, input, *args, **kwargs)


def _named(function: Callable[..., Any]) -> Callable[..., Any]:
    """The in-place function itself, as interceptors know it."""
    import sys

    named = getattr(sys.modules[function.__module__], f"{function.__name__}_", None)
    return named if named is not None else InPlaceForm(function)


def alias_of(tensor: Any, *, recorded: bool = True) -> Tensor:
    """Make a tensor on the same memory and, if `recorded`, at the same place of the graph, with the present version."""
    alias = new_tensor(tensor._array)
    alias._requires_grad = recorded and tensor._requires_grad
    if alias._requires_grad:
        edge = gradient_edge(tensor)
        if edge is not None and isinstance(edge[0], AccumulateGrad):
            alias._accumulator = tensor._accumulator
        else:
            alias._edge = edge
    if process.changed:
        for level in levels_of(tensor):
            set_tangent(alias, level, tangent_at(tensor, level))
    return alias


def check_writable(input: Any, result: Any) -> None:
    """Refuse a result that does not fit into the tensor it is written to."""
    target, source = input._array, result._array
    if target.shape != source.shape:
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(source.shape)}"
        )
    if target.dtype != source.dtype and not can_cast(source.dtype, target.dtype):
        raise RuntimeError(
            f"result type {scalar_type_name(source.dtype)} can't be cast to the desired output type "
            f"{scalar_type_name(target.dtype)}"
        )


_SAVED: dict[Any, tuple[str, ...]] = {}
"""The attributes in which the nodes of an operation keep what they saved, by `saved_names`."""


def _saved_by(node: Any) -> list[tuple[str, Any]]:
    """What a node saved, by the names of its attributes."""
    names = _SAVED.get(node.saved_names)
    if names is None:
        names = _SAVED[node.saved_names] = tuple([f"saved_{name}" for name in node.saved_names])
    return [(name, getattr(node, name, None)) for name in names]


def adopt_result(input: Any, alias: Tensor, result: Tensor) -> None:
    """Write the recorded result into `input` and make its node the history of `input`."""
    edge = result._gradient_edge()
    node = edge[0]
    saved = _saved_by(node)
    for _, value in saved:
        if value is alias:
            alias._array = copy_array(alias._array)
            break
    input._array[...] = result._array
    bump_version(input)
    counter = input._counter
    assert counter is not None
    for name, value in saved:
        if isinstance(value, SavedOutput) and input._array.dtype == result._array.dtype:
            value._array = input._array
            value._counter = counter
            setattr(node, f"{name}_version", counter.value)
    if node.operation in _RENUMBERED:
        node = renamed(node, type(node).__name__[:-1] + "1")
    if isinstance(node, NotImplementedNode):
        node.operation += "_"
    rebase_history(input, node)


_SEQUENCES = frozenset(["arange", "range", "linspace", "logspace"])
"""Functions that fill a tensor given as `out=` in its own shape, if the number of elements is right."""

_ROWS_FIRST = frozenset(["cholesky", "cholesky_solve", "lu", "quantile"])
_ROWS_FIRST_AGAIN = frozenset(["cholesky_inverse", "geqrf"])
"""Functions whose `out=` is resized row by row, though results lie column by column; the second lot if it had elements."""


def write_out(name: str, out: Any, result: Any, *read: Any) -> Any:
    """Copy results into the tensors given as `out=`, resizing them where PyTorch does.

    The tensors in `read` must not share memory with them.
    """
    if process.changed and switches.interceptors:
        from pullback.modes.interception import intercept

        taken = intercept(write_out, (name, out, result))
        if taken is not NotImplemented:
            return taken
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)):
            raise TypeError(f"{name}(): argument 'out' must be tuple of Tensors, not {type(out).__name__}")
        if len(out) != len(result):
            raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
        for target, value in zip(out, result, strict=True):
            write_out(name, target, value, *read)
        return out
    if not isinstance(out, TensorBase):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if (result._requires_grad or out._requires_grad) and (not process.changed or switches.records):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if process.changed and switches.dual_level >= 0 and (levels_of(result) or levels_of(out)):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
        )
    source = result._array
    check_inference(out)  # type: ignore[arg-type]  # every TensorBase is a Tensor
    if has_internal_overlap(out._array):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    for tensor in read:
        if tensor is out or may_share_memory(tensor._array, out._array) or _grows_into(out, source.shape, tensor):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                f"memory location. Please clone() the tensor before performing the operation ({name})."
            )
    if out._array.dtype != source.dtype:
        check_out_dtype(name, source.dtype, out._array.dtype)
    if out._array.shape != source.shape and name in _SEQUENCES and out._array.size == source.size:
        out._array[...] = source.reshape(out._array.shape)
    elif out._array.shape != source.shape:
        by_rows = name in _ROWS_FIRST or (out._array.size and name in _ROWS_FIRST_AGAIN)
        if out._array.size and fact_of(name, "out_resized") is None:
            _warn_resize(out, source.shape)
        _give_memory(out, _resized(out._array, source.astype(out._array.dtype, order="C" if by_rows else "K")))
    else:
        out._array[...] = source
    bump_version(out)  # type: ignore[arg-type]
    return out


def _give_memory(out: Any, array: Any) -> None:
    """Give a tensor another shape; gradients of what was recorded before have the former one."""
    out._leave_accumulator(array, keep=True)
    out._array = array
    if out._requires_grad:
        keep_former_shape(out)


def _resized(target: Any, result: Any) -> Any:
    """Put the result into the memory of `target`, where that is large enough: other views of it see it."""
    flat, offset = flat_storage(target), storage_offset(target)
    if not target.size or offset + result.size > flat.size or not result.flags.forc:
        return result
    place = as_strided(flat, result.shape, element_strides(result), offset)
    place[...] = result
    return place


def _grows_into(out: Any, shape: tuple[int, ...], tensor: Any) -> bool:
    """Whether `out` must be resized within a storage that holds `tensor` too."""
    base = out._array.base
    return out._array.shape != shape and base is not None and base is tensor._array.base


def _warn_resize(out: Any, shape: tuple[int, ...]) -> None:

    warn_user(
        f"An output with one or more elements was resized since it had shape {list(out._array.shape)}, which does not "
        f"match the required output shape {list(shape)}. Pass an empty tensor, or one of the right shape, as out=."
    )
