"""Copies: `contiguous`, `clone` and `copy_`, with their memory formats."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.array_module import as_array, cast_array, has_internal_overlap, is_number
from pullback.backend.device import in_use
from pullback.backend.logical_array import has_values
from pullback.errors import not_a_tensor, wrong_type
from pullback.facts import declare
from pullback.functions.direct_writes import writes_plainly
from pullback.graph.history import bump_version, check_in_place
from pullback.graph.in_place import check_overlap, check_partial_overlap, in_place
from pullback.graph.overwriting import overwrite
from pullback.kernels.overwriting import write_value
from pullback.modes.switches import process, switches
from pullback.modes.user_warnings import warn_of_lost_parts
from pullback.tensor.arguments import plain_number
from pullback.tensor.foreign_arguments import ask_foreign, is_foreign
from pullback.tensor.tensor import Tensor, new_tensor


@declare(bare=True, moves=True, structure="elementwise", found="method")
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself if its elements lie in row-major order (or that of `memory_format`), else a copy that does.

    The result has the same shape and elements.
    """
    order = format_name(memory_format)
    if order.startswith("channels_last"):
        check_channels_last(input, order)
        return input if is_contiguous(input, memory_format) else G.contiguous_copy(input, order)
    return input if input._array.flags.c_contiguous else G.contiguous_copy(input)


def format_name(memory_format: Any) -> str:
    """The name of a memory format, empty without one."""
    if memory_format is None:
        return ""
    try:
        return str(memory_format.name)
    except AttributeError:
        raise wrong_type("clone", "memory_format", None, "torch.memory_format", memory_format) from None


def check_channels_last(input: Tensor, order: str) -> None:
    """Refuse channels-last order for tensors that have no channels in that sense."""
    wanted = 4 if order == "channels_last" else 5
    if input._array.ndim != wanted and has_values(input._array):  # else vmap refuses it
        raise RuntimeError(f"required rank {wanted} tensor to use {order} format")


@declare(found="torch and method")
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy, recorded.

    The result has the same shape, dtype and device, in the order of memory that `memory_format` names (the same
    unless given). The gradient goes through it unchanged.
    """
    order = format_name(memory_format)
    if order in ("", "preserve_format"):
        return G.clone(input)
    if order.startswith("channels_last"):
        check_channels_last(input, order)
    return G.contiguous_copy(input, order)


@declare(bare=True, found="method")
def is_contiguous(input: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements lie in row-major order (or in that of `memory_format`).

    True where each stride is the product of the sizes behind it; `contiguous()` makes a copy that is.

    >>> import pullback
    >>> pullback.ones(2, 3).t().is_contiguous()
    False
    """
    array = input._array
    if format_name(memory_format) in ("channels_last", "channels_last_3d"):
        if not has_values(array):
            raise RuntimeError(
                "NYI: querying is_contiguous inside of vmap for memory_format other than torch.contiguous_format: the order "
                "of an example in memory depends on where the batch dimension lies. Ask outside of vmap."
            )
        wanted = 4 if format_name(memory_format) == "channels_last" else 5
        return array.ndim == wanted and bool(array.transpose((0, *range(2, wanted), 1)).flags.c_contiguous)
    return bool(array.flags.c_contiguous)


@declare(complex32=True, bare=True, found="method")
def copy_(input: Tensor, src: Any = None, non_blocking: bool = False, *, other: Any = None) -> Tensor:
    """Overwrite the tensor with the values of `src`, which is broadcast and converted.

    `src` has a shape that broadcasts to this tensor's; the gradient goes to `src`, and not to what was overwritten.
    `non_blocking` has a meaning for copies between devices only.
    """
    src = src if other is None else other
    if in_use and isinstance(src, Tensor) and src.device != input.device:
        src = src.to(input.device)
    if overwrite(write_value, input, src):
        return input
    if not isinstance(src, Tensor):
        if is_number(src):
            return copy_(input, new_tensor(as_array(plain_number(src))))
        if is_foreign(src):
            return ask_foreign(copy_, (input, src, non_blocking))
        raise not_a_tensor("copy_", "other", 1, src)
    if src._array.dtype.kind in "cW" and input._array.dtype.kind not in "cWb":
        warn_of_lost_parts()
    if src is input and has_internal_overlap(input._array):
        check_in_place(input, "copy", records=input._requires_grad and (not process.changed or switches.records))
        bump_version(input)
        return input
    _check_expandable(src, input)
    target = input._array
    if writes_plainly(input, src) and not has_internal_overlap(target):
        check_partial_overlap(target, src._array)
        target[...] = cast_array(src._array, target.dtype)
        bump_version(input)
        return input
    return in_place(G.copy, input, src)


def _check_expandable(src: Tensor, input: Tensor) -> None:
    shape, wanted = src._array.shape, input._array.shape
    lead = len(wanted) - len(shape)
    misfit = f"output with shape {list(wanted)} doesn't match the broadcast shape {list(shape)}" if lead < 0 else None
    for position in range(len(shape) - 1, -1, -1):
        size, target = shape[position], wanted[position + lead] if position + lead >= 0 else 1
        if size != target and size != 1:
            misfit = f"output with shape {list(wanted)} doesn't match the broadcast shape: the source has {list(shape)}"
        if size != target and 1 not in (size, target):
            misfit = (
                f"The size of tensor a ({target}) must match the size of tensor b ({size}) at non-singleton dimension "
                f"{position + max(lead, 0)}. Target sizes: {list(wanted)}. Tensor sizes: {list(shape)}"
            )
            break
    if misfit is not None:
        records = not process.changed or switches.records
        check_in_place(input, "copy", records=records and (input._requires_grad or src._requires_grad))
        check_overlap(input)
        raise RuntimeError(misfit)


@declare(complex32=True, without_gradient=True, moves=True, structure="elementwise", found="torch")
def detach(input: Tensor) -> Tensor:
    """An alias without history.

    It shares memory with `input` and does not require grad: gradients stop here. Writes to one show in the other.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> (x * x.detach()).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """
    return input.detach()


@declare(found="torch")
def detach_copy(input: Tensor) -> Tensor:
    """A copy without history."""
    return G.clone(input.detach())
