"""Forward mode: dual tensors inside of a dual level."""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.autograd.grad_mode import _ContextDecorator, _SwitchAtOnce
from pullback.backend.array_module import ndarray, storage_of
from pullback.backend.device_array import DeviceArray
from pullback.graph.tangents import set_tangent, tangent_at, without_tangents
from pullback.kernels.strided import geometry_of
from pullback.modes.dual_level import close_dual_level, current_dual_level, open_dual_level
from pullback.modes.guards import guarded
from pullback.modes.interception import interceptable
from pullback.modes.switches import kept_switches, set_switch, switches
from pullback.tensor.tensor import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """The primal and the tangent of a dual tensor."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Open a dual level and return its number."""
    return open_dual_level()


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the dual level; tangents made in it are gone."""
    if level is None:
        level = current_dual_level()
    if level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    close_dual_level(level)


class dual_level(_ContextDecorator):
    """Open a dual level for a block.

    >>> import pullback
    >>> from pullback.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(pullback.tensor(3.0), pullback.tensor(1.0))
    ...     forward_ad.unpack_dual(x * x).tangent
    tensor(6.)
    """

    def __enter__(self) -> int:
        kept = kept_switches("dual_ids", "dual_level")
        kept.__enter__()
        try:
            self._level = enter_dual_level()
        except BaseException:
            kept.__exit__()
            raise
        return self._level

    @guarded
    def __exit__(self, *exception: object) -> None:
        exit_dual_level(level=self._level)


@interceptable
def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """A view of `tensor` that carries `tangent`."""
    if level is None:
        level = current_dual_level()
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not (tangent.dtype.is_floating_point or tangent.dtype.is_complex):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if tensor._array.shape != tangent._array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if tangent_at(tensor, level) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level "
            f"{level} is not supported. Use its primal, from unpack_dual(), instead."
        )
    if tangent_at(tangent, level) is not None:
        raise RuntimeError(
            f"Setting a forward grad that itself has a forward gradient at the same level{level} is not supported. Use the "
            "primal of the tangent, from unpack_dual(), instead."
        )
    dual = tensor.view_as(tensor)
    set_tangent(dual, level, laid_out_like(tensor, tangent))
    return dual


def laid_out_like(tensor: Any, tangent: Any) -> Any:
    """The tangent in the same place of a storage, and with the same bits, as its primal: views of both must mean the same.

    A tangent that lies so already is taken as it is; elements of the storage outside of it are zero. A primal that sees
    elements of its memory several times has no tangent of its own layout: there the tangent stays as it is.
    """
    if _lies_alike(tensor, tangent) or geometry_of(tensor._array).overlaps():
        return tangent
    storage = tangent.new_zeros(_elements_stored(tensor))
    place = storage.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    if tensor.is_conj():
        place = place.conj()
    if tensor.is_neg():
        place = place._neg_view()
    return place.copy_(tangent)


def _lies_alike(tensor: Any, tangent: Any) -> bool:
    pairs = zip(tensor.shape, tensor.stride(), tangent.stride(), strict=True)
    return (
        all(own == other for size, own, other in pairs if size > 1)
        and tensor.storage_offset() == tangent.storage_offset()
        and _elements_stored(tensor) == _elements_stored(tangent)
        and tensor.is_conj() == tangent.is_conj()
        and tensor.is_neg() == tangent.is_neg()
    )


def _elements_stored(tensor: Any) -> int:
    array = tensor._array
    if isinstance(array, (DeviceArray, ndarray)):  # the views of devices may not know their base
        return int(storage_of(array).nbytes) // array.itemsize
    return array.size if getattr(array, "base", None) is None else tensor.untyped_storage().nbytes() // array.itemsize


@interceptable
def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of `tensor`; the tangent is None without one."""
    if level is None:
        level = current_dual_level()
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    tangent = tangent_at(tensor, level)
    return UnpackedDualTensor(without_tangents(tensor, level) if tangent is not None else tensor, tangent)


def _is_fwd_grad_enabled() -> bool:
    return switches.forward_grad


class _set_fwd_grad_enabled(_SwitchAtOnce):
    """Switch forward gradients on or off for a block."""

    _name = "forward_grad"

    def _refusal(self, mode: object) -> Exception:
        return TypeError(f"enabled must be a bool (got {type(mode).__name__})")

    def _set(self, value: Any) -> None:
        set_switch(self._name, value)


def __getattr__(name: str) -> int:
    if name == "_current_level":
        return current_dual_level()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
