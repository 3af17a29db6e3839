"""Tensors of Python values: numbers, nested sequences, arrays, other tensors."""

from __future__ import annotations

from typing import Any

from pullback.backend import array_module
from pullback.backend.array_module import is_array, is_number
from pullback.backend.dtype import default_float, from_numpy_dtype
from pullback.backend.dtype import dtype as Dtype
from pullback.backend.logical_array import has_values, require_values
from pullback.creation.options import dtype_option, show_creation, wrap
from pullback.errors import not_a_bool, wrong_type
from pullback.facts import declare
from pullback.kernels.creation import array_from_values
from pullback.modes.cuts import note_cut
from pullback.modes.function_modes import is_told, told_to_modes
from pullback.modes.switches import process
from pullback.modes.user_warnings import warn_user
from pullback.tensor.foreign_arguments import ask_foreign
from pullback.tensor.tensor import Tensor


@declare(found="torch")
def tensor(
    data: Any, *, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Make a tensor by copying `data`: a number, nested sequences, an array.

    >>> import pullback
    >>> pullback.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if process.modes and is_told():
        given = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "pin_memory": pin_memory}
        return ask_foreign(tensor, (data,), given)
    if requires_grad is not False and requires_grad is not True:
        raise not_a_bool("tensor", "requires_grad", requires_grad)
    wanted = dtype_option("tensor", dtype)
    if isinstance(data, Tensor):
        warn_user(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
        )
        if not has_values(data._array):
            copied: Any = data.detach().clone()
            return copied if dtype is None else copied.to(dtype)
        copied = wrap(array_from_values(data._array, wanted), requires_grad, device)
        if data._requires_grad:
            note_cut("copy", copied, data)
        return copied
    made = wrap(array_from_values(plain_values(data), wanted), requires_grad, device)
    return made if not process.changed else lift_fresh(made)


def lift_fresh(input: Tensor) -> Tensor:
    """A new tensor as dispatch modes hand it over."""
    requires_grad = input._requires_grad
    input._requires_grad = False
    shown = show_creation(lift_fresh, (input,), {})
    made = input if shown is None else shown
    made._requires_grad = requires_grad
    return made


def plain_values(data: Any) -> Any:
    """Nested sequences with tensors, which have one element each, replaced by their values."""
    if isinstance(data, Tensor):
        require_values(data._array)
        if data._array.size != 1:
            raise ValueError(
                "only one element tensors can be converted to Python scalars: join tensors with torch.stack or torch.cat"
            )
        if data._requires_grad:
            note_cut("copy", None, data)
            _warn_scalar()
        return data._array.reshape(())[()]
    if isinstance(data, (list, tuple)):
        if all(type(item) in (int, float, bool, complex) for item in data):
            return data
        return [plain_values(item) for item in data]
    if is_array(data) or is_number(data):
        return data
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        return array_module.as_array(data.__array__() if hasattr(data, "__array__") else data)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (str, bytes, dict)):
        return [plain_values(data[i]) for i in range(len(data))]
    return data


def _warn_scalar() -> None:
    warn_user(
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
        "Consider using tensor.detach() first."
    )


@declare(found="torch")
@told_to_modes
def scalar_tensor(s: Any, *, dtype: Dtype | None = None, **options: Any) -> Tensor:
    """A 0-dim tensor."""
    if process.changed and (shown := show_creation(scalar_tensor, (s,), {"dtype": dtype, **options})) is not None:
        return shown
    options.pop("layout", None)
    if isinstance(s, str):
        raise wrong_type("scalar_tensor", "s", 1, "Number", s)
    return tensor(s, dtype=from_numpy_dtype(default_float()) if dtype is None else dtype, **options)
