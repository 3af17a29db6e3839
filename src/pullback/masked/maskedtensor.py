"""MaskedTensor: a tensor some of whose elements are left out, as a mask of its shape says.

The elements that are left out keep some value in memory, which never reaches a result: reductions run over the others,
and a gradient on its way out of masked tensors is zero where the mask is false (so that a NaN there stays there).
The class is a Tensor on the data, recorded as any other; `masked_operations` says what each operation does to the mask.
It is loaded when it is first asked for: a subclass that overrides operations makes every operation look for it.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import pullback
from pullback import functions
from pullback.autograd.function import Function
from pullback.masked.masked_text import masked_text
from pullback.modes.user_warnings import warn_user
from pullback.overrides import DisableTorchFunctionSubclass, as_subclass
from pullback.tensor.tensor import Tensor

DTYPES = ("float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64")


class Constructor(Function):
    """Data becomes masked: its gradient is zero where the mask leaves it out."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(mask)
        return data.clone()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return hide(grad_output, ctx.saved_tensors[0]), None


class GetData(Function):
    """Masked data becomes plain, on the same memory."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(mask)
        return Tensor.detach(data)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return hide(grad_output, ctx.saved_tensors[0]), None


def hide(gradient: Tensor, mask: Tensor) -> Tensor:
    """The gradient, zero where the mask is false."""
    return pullback.where(mask, gradient, pullback.zeros((), dtype=gradient.dtype))


class MaskedTensor(Tensor):
    """Data and a mask of the same shape: elements where the mask is false are left out.

    >>> import pullback, warnings
    >>> warnings.simplefilter("ignore")
    >>> x = MaskedTensor(pullback.tensor([1.0, 2.0, 4.0]), pullback.tensor([True, False, True]))
    >>> x.mean()
    MaskedTensor(  2.5000, True)
    """

    _sees_operations = True
    _masked_mask: Tensor

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> Any:
        _check_members(data, mask)
        warn_user("The PyTorch API of MaskedTensors is in prototype stage and may change: see the module torch.masked.")
        if data.requires_grad:
            warn_user(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. Its history is not "
                "kept: pass data.detach().clone(), or call as_masked_tensor to keep it."
            )
        made = with_mask(Tensor.detach(data).clone(), mask.clone())
        return made.requires_grad_(requires_grad)

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        pass

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from pullback.masked.masked_operations import operate

        return operate(func, tuple(args), dict(kwargs or {}))

    @property
    def grad(self) -> Any:
        """The accumulated gradient, with the mask of this tensor."""
        return as_gradient(self, Tensor.grad.fget(self))  # type: ignore[attr-defined]  # a property

    @grad.setter
    def grad(self, value: Any) -> None:
        Tensor.grad.fset(self, value)  # type: ignore[attr-defined]  # a property

    def _wrap_gradient(self, gradient: Any) -> Any:
        return as_gradient(self, gradient)

    def get_data(self) -> Tensor:
        """The data, the elements that are left out included."""
        with DisableTorchFunctionSubclass():
            data: Tensor = GetData.apply(self, self._masked_mask)
            return data

    def get_mask(self) -> Tensor:
        """The mask: true where an element counts."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Tensor:
        """A plain tensor with `value` for the elements that are left out."""
        return self.get_data().masked_fill(~self._masked_mask, value)

    def detach(self) -> Any:
        """The same data and mask without history."""
        return with_mask(Tensor.detach(self), self._masked_mask)

    def contiguous(self, memory_format: Any = None) -> Any:
        """The tensor with both data and mask in order in memory."""
        if self.is_contiguous():
            return self
        with DisableTorchFunctionSubclass():
            return with_mask(functions.contiguous(self), self._masked_mask.contiguous())

    def to_dense(self, *args: Any, **kwargs: Any) -> Any:
        """The tensor itself: its data is dense."""
        return self

    def numpy(self, *, force: bool = False) -> Any:
        """Refused: an array has no mask."""
        raise RuntimeError(
            ".numpy() is not supported for tensor subclasses. Call get_data() or to_tensor(value) first."
        )

    def tolist(self) -> Any:
        """Refused: a list has no mask."""
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got MaskedTensor")

    def item(self) -> Any:
        """The value of the one element."""
        if self.numel() == 1 and not self._masked_mask.item():
            raise ValueError("__torch_dispatch__, aten._local_scalar_dense: expected a mask tensor")
        return functions.item(self)

    def is_sparse_coo(self) -> bool:
        """Whether the data is sparse, with coordinates: never here."""
        return False

    def is_sparse_csr(self) -> bool:
        """Whether the data is sparse, row by row: never here."""
        return False

    def __repr__(self, *args: Any, **kwargs: Any) -> str:
        return masked_text(Tensor.detach(self), self._masked_mask)

    __str__ = __repr__

    def __lt__(self, other: Any) -> Any:
        other = other.get_data() if is_masked_tensor(other) else other
        return with_mask(self.get_data() < other, self._masked_mask)

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])


def with_mask(data: Tensor, mask: Tensor) -> MaskedTensor:
    """`data`, at its place of the graph, with a mask."""
    made: MaskedTensor = as_subclass(data, MaskedTensor)
    made._masked_mask = mask
    return made


def as_gradient(input: MaskedTensor, gradient: Any) -> Any:
    """A gradient of `input` with its mask."""
    if gradient is None or is_masked_tensor(gradient):
        return gradient
    return with_mask(gradient, input._masked_mask)


def _check_members(data: Any, mask: Any) -> None:
    for name, value in (("data", data), ("mask", mask)):
        if is_masked_tensor(value) or not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a Tensor")
    if data.layout != mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if mask.dtype != pullback.bool:
        raise TypeError("mask must have dtype bool.")
    if str(data.dtype).rpartition(".")[2] not in DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.ndim != mask.ndim:
        raise ValueError(f"data.dim() must equal mask.dim(): got {data.ndim} and {mask.ndim}")
    if data.shape != mask.shape:
        raise ValueError(f"data.size() must equal mask.size(): got {tuple(data.shape)} and {tuple(mask.shape)}")


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A new MaskedTensor on copies of `data` and `mask`, without history."""
    made: MaskedTensor = MaskedTensor(data, mask, requires_grad)
    return made


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """A MaskedTensor whose gradient flows back to `data`.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 2.0], requires_grad=True)
    >>> as_masked_tensor(x, pullback.tensor([True, False])).exp().sum().backward()
    >>> x.grad
    MaskedTensor(
      [  2.7183,       --]
    )
    """
    _check_members(data, mask)
    mask = mask.clone()
    mask_gradient_of(data, mask)
    return with_mask(Constructor.apply(data, mask), mask)


def mask_gradient_of(leaf: Tensor, mask: Tensor) -> None:
    """Give the `.grad` of a plain leaf the mask of its use, once it is there."""
    if not (leaf.requires_grad and leaf.is_leaf) or leaf.__dict__.get("_masks_gradient"):
        return

    def put_mask(leaf: Tensor) -> None:
        handle.remove()
        del leaf.__dict__["_masks_gradient"]
        if not is_masked_tensor(leaf._grad):
            leaf._grad = with_mask(leaf._grad, mask)

    leaf.__dict__["_masks_gradient"] = True
    handle = leaf.register_post_accumulate_grad_hook(put_mask)


def is_masked_tensor(obj: Any, /) -> TypeGuard[MaskedTensor]:
    """Whether `obj` is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)
