"""New tensors in the dtype of another one: the `new_*` methods."""

from __future__ import annotations

from typing import Any

from pullback import creation
from pullback.backend.array_module import ndarray
from pullback.facts import declare
from pullback.modes.interception import overridable
from pullback.tensor.arguments import refuse_unknown
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor


def _options(input: Tensor, options: dict[str, Any]) -> dict[str, Any]:
    if options.get("dtype") is None:
        options["dtype"] = input.dtype
    if options.get("device") is None and type(input._array) is not ndarray:
        options["device"] = input.device
    return options


@overridable
@declare(without_gradient=True, method_alone=True, found="method")
def new_zeros(input: Tensor, *size: Any, **options: Any) -> Tensor:
    """Zeros of a given shape, in the dtype of this tensor.

    Sizes are given as numbers or one tuple; dtype and device are this tensor's unless given.
    """
    return creation.zeros(*size, **_options(input, options))


@overridable
@declare(without_gradient=True, method_alone=True, found="method")
def new_ones(input: Tensor, *size: Any, **options: Any) -> Tensor:
    """Ones of a given shape, in the dtype of this tensor.

    `dtype`, `device` and `requires_grad` replace what this tensor has; the size is given as numbers or a tuple.

    >>> import pullback
    >>> pullback.tensor([1, 2]).new_ones(3)
    tensor([1, 1, 1])
    """
    return creation.ones(*size, **_options(input, options))


@overridable
@declare(without_gradient=True, method_alone=True, found="method")
def new_empty(input: Tensor, *size: Any, **options: Any) -> Tensor:
    """Uninitialised memory of a given shape, in the dtype of this tensor.

    `dtype`, `device` and `requires_grad` replace what this tensor has; the size is given as numbers or a tuple.

    >>> import pullback
    >>> pullback.tensor([1.5]).new_empty(2, 3).shape
    pullback.Size([2, 3])
    """
    return creation.empty(*size, **_options(input, options))


@overridable
@declare(without_gradient=True, method_alone=True, found="method")
def new_full(input: Tensor, size: Any, fill_value: Any, **options: Any) -> Tensor:
    """One value in a given shape, in the dtype of this tensor.

    `dtype`, `device` and `requires_grad` replace what this tensor has.

    >>> import pullback
    >>> pullback.tensor([1, 2]).new_full((3,), 7)
    tensor([7, 7, 7])
    """
    return creation.full(size, fill_value, **_options(input, options))


@overridable
@declare(without_gradient=True, method_alone=True, found="method")
def new_empty_strided(input: Tensor, size: Any, stride: Any, **options: Any) -> Tensor:
    """Uninitialised memory with the given strides, in the dtype of this tensor."""
    return creation.empty_strided(size, stride, **_options(input, options))


@overridable
def method_new_tensor(input: Tensor, data: Any, **options: Any) -> Tensor:
    """A tensor of `data`, in the dtype of this tensor.

    The data are copied; `dtype`, `device` and `requires_grad` replace what this tensor has.

    >>> import pullback
    >>> pullback.tensor([1.5]).new_tensor([1, 2])
    tensor([1., 2.])
    """
    return creation.tensor(data, **_options(input, options))


method_new_tensor.__name__ = "new_tensor"  # what overriding types are told


@declare(found="method")
def new(input: Tensor, *args: Any, **options: Any) -> Tensor:
    """A tensor of the same type, from sizes or from data (PyTorch's old form of the `new_*` methods)."""
    refuse_unknown("new", options, ("data", "device", "size"))
    if len(args) == 1 and not isinstance(args[0], int):
        if isinstance(args[0], Size):
            return new_empty(input, args[0])
        if isinstance(args[0], Tensor):
            if args[0].dtype is not input.dtype:
                raise TypeError(f"expected a tensor of dtype {input.dtype} (got {args[0].dtype})")
            return args[0].detach()
        return method_new_tensor(input, args[0], **options)
    return new_empty(input, *args) if args else new_empty(input, 0)
