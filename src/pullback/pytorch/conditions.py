"""Conditions: checks that programs write with `torch._check` and its like, and the choice of a branch by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.overrides import handle_torch_function
from pullback.tensor.foreign_arguments import is_foreign
from pullback.tensor.tensor import Tensor

Message = Callable[[], Any] | str | None


def _check_with(error_type: type[Exception], cond: Any, message: Message) -> None:
    """Raise `error_type` unless `cond` is true.

    >>> _check_with(KeyError, False, lambda: "no such key")
    Traceback (most recent call last):
    ...
    KeyError: 'no such key'
    """
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is not None and not callable(message) and not isinstance(message, str):
        raise TypeError("message must be a callable")
    said = message() if callable(message) else message
    raise error_type(f"Expected cond to be True, but got {cond}." if said is None else str(said))


def _check(cond: Any, message: Message = None) -> None:
    """Raise a RuntimeError unless `cond` is true."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Message = None) -> None:
    """Raise an IndexError unless `cond` is true."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Message = None) -> None:
    """Raise a ValueError unless `cond` is true."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Message = None) -> None:
    """Raise a TypeError unless `cond` is true."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Message = None) -> None:
    """Raise a NotImplementedError unless `cond` is true."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """Raise a RuntimeError unless `i` can be a size."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """Raise `error_type` unless all elements of a bool tensor are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if str(cond.dtype).rpartition(".")[2] != "bool":
        raise TypeError(f"cond tensor must have dtype bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond._array.all()), message)


def _check_tensor_all(cond: Any, message: Message = None) -> None:
    """Raise a RuntimeError unless all elements of a bool tensor are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert(condition: Any, message: str) -> Any:
    """Assert, by a function that tracers can record."""
    if type(condition) is not Tensor and is_foreign(condition):
        return handle_torch_function(_assert, (condition,), condition, message)
    assert condition, message
    return None


def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """Call `true_fn` or `false_fn` with the operands, as `pred` says.

    >>> import pullback
    >>> pullback.cond(pullback.tensor(True), lambda x: x + 1, lambda x: x - 1, (pullback.tensor(2),))
    tensor(3)
    """
    return (true_fn if pred else false_fn)(*operands)


def _assert_async(input: Any, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise unless the only element is not zero; here at once, on an accelerator later."""
    if not input:
        raise RuntimeError(assert_msg)
