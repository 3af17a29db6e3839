"""What the distributions share: broadcasting of parameters, lazily computed attributes, probabilities and logits.

Bears PyTorch's name because users import `torch.distributions.utils`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any, overload

from pullback import creation, functions
from pullback.autograd.grad_mode import enable_grad
from pullback.backend.dtype import finfo, get_default_dtype
from pullback.errors import is_pytorch_tensor, mixed_libraries
from pullback.tensor.tensor import Tensor

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcast tensors and numbers against each other; numbers take the dtype of the first tensor.

    >>> import pullback
    >>> broadcast_all(1.0, pullback.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    if any(is_pytorch_tensor(value) for value in values):
        raise mixed_libraries("broadcast_all")
    if not all(is_tensor_like(value) or isinstance(value, Number) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    if all(is_tensor_like(value) for value in values):
        return tuple(functions.broadcast_tensors(*values))
    options: dict[str, Any] = {"dtype": get_default_dtype()}
    for value in values:
        if isinstance(value, Tensor):
            options = {"dtype": value.dtype, "device": value.device}
            break
    return tuple(
        functions.broadcast_tensors(*(v if is_tensor_like(v) else creation.tensor(v, **options) for v in values))
    )


def is_tensor_like(value: Any) -> bool:
    """Whether a value is a tensor or overrides PyTorch's functions."""
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def is_number(value: Any) -> bool:
    """Whether a parameter is a Python number, so that the distribution has no batch shape."""
    return isinstance(value, Number)


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    return functions.randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Sum out the last `dim` dimensions."""
    if dim == 0:
        return value
    result: Tensor = value.reshape((*value.shape[:-dim], -1)).sum(-1)
    return result


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Turn log-odds (binary) or unnormalised log-probabilities into probabilities."""
    return functions.sigmoid(logits) if is_binary else functions.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Keep probabilities away from 0 and 1 by the dtype's precision."""
    eps = finfo(probs.dtype).eps
    return functions.clamp(probs, eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Turn probabilities into log-odds (binary) or log-probabilities."""
    clamped = clamp_probs(probs)
    return functions.log(clamped) - functions.log1p(-clamped) if is_binary else functions.log(clamped)


class lazy_property:
    """A property computed when first read and kept as an attribute of the instance from then on."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__, self.__name__ = wrapped.__doc__, wrapped.__name__

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Any: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Any: ...
    def __get__(self, instance: object | None, owner: Any = None) -> Any:
        """Compute the value with recording on: it may be read first where gradients are off."""
        if instance is None:
            return _PropertyOnClass(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _PropertyOnClass(lazy_property, property):
    """What a `lazy_property` is when read from the class: documentation tools expect a property."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the entries of matrices on and below diagonal `diag`, row by row."""
    size = mat.shape[-1]
    if diag < -size or diag >= size:
        raise ValueError(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    rows, columns = creation.tril_indices(size, size, diag)
    result: Tensor = mat[..., rows, columns]
    return result


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return the square matrices whose entries on and below diagonal `diag` are given row by row."""
    # The entries number n (n + 1) / 2 + diag * n - ..., a quadratic in n with a positive root.
    root = (1 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5
    size = (-(1 + 2 * diag) + root) / 2
    if not round(size) - size <= finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    n = round(size)
    matrix = creation.zeros((*vec.shape[:-1], n, n), dtype=vec.dtype, device=vec.device)
    rows, columns = creation.tril_indices(n, n, diag)
    matrix[..., rows, columns] = vec
    return matrix
