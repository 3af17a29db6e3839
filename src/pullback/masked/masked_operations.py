"""What an operation does to masked tensors: the data goes through it, and the mask follows by the operation's kind."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import pullback
from pullback import functions
from pullback.facts import fact_of
from pullback.masked import normalizations, reductions
from pullback.masked.maskedtensor import (
    Constructor,
    MaskedTensor,
    is_masked_tensor,
    mask_gradient_of,
    with_mask,
)
from pullback.overrides import DisableTorchFunctionSubclass
from pullback.overrides.operation_handlers import Handlers, is_elementwise, moves, plain_name, record_of
from pullback.tensor.tensor import Tensor

NEUTRAL_KEYWORDS = {"alpha": 1}
_ABOUT_MEMORY = frozenset(("memory_format", "pin_memory"))


def _refusal(name: str) -> TypeError:
    return TypeError(
        f"Multiple dispatch failed for 'torch._ops.aten.{name}': MaskedTensor has no such operation. Apply it to "
        "get_data() or to to_tensor(value)."
    )


_handlers = Handlers(_refusal)


def operate(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operation some of whose arguments are masked."""
    kwargs = {
        k: v for k, v in kwargs.items() if v is not None and k not in _ABOUT_MEMORY and NEUTRAL_KEYWORDS.get(k) != v
    }
    with DisableTorchFunctionSubclass():
        return _handlers.operate(func, args, kwargs)


def _has_operands(count: int) -> Callable[[str], bool]:
    """Elementwise operations of so many tensors; most activations have no masked form in PyTorch either."""

    def holds(name: str) -> bool:
        record = record_of(name)
        if record is not None and record.family == "activation" and not fact_of(plain_name(name), "masked"):
            return False
        return is_elementwise(name) and (1 if record is None else len(record.tensors)) == count

    return holds


def _result(data: Any, mask: Tensor, name: str, input: Any) -> Any:
    return input if name.endswith("_") else with_mask(data, mask)


@_handlers.of_kind(_has_operands(1))
def _unary(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs and name not in ("round", "logit", "clamp", "nan_to_num"):
        raise ValueError(f"MaskedTensor unary ops require that len(kwargs) == 0: got {sorted(kwargs)}")
    if not is_masked_tensor(args[0]):
        raise TypeError(f"unsupported operand type(s) for {name}: the first must be a MaskedTensor")
    if builtins.any(isinstance(a, Tensor) for a in args[1:]):
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
    return _result(func(*args, **kwargs), args[0]._masked_mask, name, args[0])


@_handlers.of_kind(_has_operands(2))
def _binary(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs:
        raise ValueError(f"len(kwargs) must equal 0: MaskedTensor takes no {sorted(kwargs)} here")
    left, right = args[:2]
    if is_masked_tensor(left) and is_masked_tensor(right) and not _match(left._masked_mask, right._masked_mask):
        raise ValueError("Input masks must match. Combine the masks first, and make both tensors with the result.")
    mask = left._masked_mask if is_masked_tensor(left) else right._masked_mask
    shape = pullback.broadcast_shapes(*[a.shape for a in (left, right) if isinstance(a, Tensor)])
    mask = mask.expand(shape) if mask.shape != shape else mask
    if not is_masked_tensor(right):
        right = _guarded(right, mask)
    elif not is_masked_tensor(left):
        left = _guarded(left, mask)
    return _result(func(left, right, *args[2:]), mask, name, args[0])


def _match(left: Tensor, right: Tensor) -> bool:
    return left.ndim == right.ndim and bool(pullback.eq(left, right).all())


def _guarded(plain: Any, mask: Tensor) -> Any:
    """A plain operand whose gradient comes only from where the mask is true."""
    if not (isinstance(plain, Tensor) and plain.requires_grad and pullback.is_grad_enabled()):
        return plain
    mask_gradient_of(plain, _any_over(mask, plain))
    return Constructor.apply(plain.expand(mask.shape), mask)


def _any_over(mask: Tensor, plain: Tensor) -> Tensor:
    """The mask, combined over the dimensions in which `plain` was broadcast."""
    while mask.ndim > plain.ndim:
        mask = mask.any(0)
    for dim in range(plain.ndim):
        if plain.shape[dim] == 1 != mask.shape[dim]:
            mask = mask.any(dim, keepdim=True)
    return mask


def _has_moved_masks(name: str) -> bool:
    declared = fact_of(name, "masked")
    return moves(name) if declared is None else bool(declared)


@_handlers.of_kind(_has_moved_masks)
def _pass_through(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    data = func(*args, **kwargs)
    mask = func(*[_masks_in(a) for a in args], **kwargs)
    if isinstance(data, Tensor):
        return with_mask(data, mask)
    return type(data)(with_mask(d, m) for d, m in zip(data, mask, strict=True))


def _masks_in(value: Any) -> Any:
    """The argument with masks for the masked tensors in it, and true for plain data among them."""
    if is_masked_tensor(value):
        return value._masked_mask
    if isinstance(value, (list, tuple)) and builtins.any(is_masked_tensor(v) for v in value):
        return [_masks_in(v) for v in value]
    return value


@_handlers.of_kind(lambda name: fact_of(name, "masked_reduction") is True)
def _reduction(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _reduce(name, *args, **kwargs)


def _reduce(name: str, input: MaskedTensor, dim: Any = None, *args: Any, keepdim: bool = False, **kwargs: Any) -> Any:
    if name in ("var", "std") and args:
        kwargs["correction"], *rest = args
        args = tuple(rest)
    if args:
        (keepdim,) = args
    mask = input._masked_mask
    dims = None if dim is None or (isinstance(dim, (tuple, list)) and not dim) else dim
    data = getattr(reductions, name)(input, dims, keepdim=keepdim, mask=mask, **kwargs)
    return _reduced(data, mask, dims, keepdim)


def _reduced(data: Tensor, mask: Tensor, dims: Any, keepdim: bool) -> MaskedTensor:
    return with_mask(data, mask.any() if dims is None and not keepdim else mask.any(dims, keepdim))


@_handlers.named("all")
def _all(input: MaskedTensor, dim: Any = None, keepdim: bool = False) -> MaskedTensor:
    mask = input._masked_mask
    data = pullback.where(mask, input, pullback.ones((), dtype=input.dtype))
    return _reduced(data.all() if dim is None else data.all(dim, keepdim), mask, dim, keepdim)


@_handlers.named("where")
def _where(condition: Any, input: Any, other: Any) -> MaskedTensor:
    mask = pullback.where(condition, _mask_of(input), _mask_of(other))
    return with_mask(pullback.where(condition, input, other), mask)


def _mask_of(value: Any) -> Any:
    if is_masked_tensor(value):
        return value._masked_mask
    return pullback.ones_like(value, dtype=pullback.bool) if isinstance(value, Tensor) else pullback.tensor(True)


@_handlers.named("softmax")
def _softmax(input: MaskedTensor, dim: int) -> MaskedTensor:
    return with_mask(normalizations.softmax(input, dim, mask=input._masked_mask), input._masked_mask)


@_handlers.named("copy_")
def _copy(input: MaskedTensor, source: Any, *args: Any) -> MaskedTensor:
    if is_masked_tensor(source) and not _match(input._masked_mask, source._masked_mask):
        raise ValueError("args[0] mask and args[1] mask must match but do not")
    copied: MaskedTensor = functions.copy_(input, source, *args)
    return copied
