"""Variable: the former name of Tensor."""

from __future__ import annotations

from typing import Any

from pullback.autograd.execution_engine import _EngineBase
from pullback.errors import kind_of
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor

__all__ = ["Variable", "VariableMeta"]


class VariableMeta(type):
    """Makes every Tensor an instance of Variable."""

    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(t)` is `t` as a tensor that may require grad."""

    _execution_engine = _EngineBase()

    def __new__(
        cls, data: Any = None, requires_grad: bool = False, volatile: bool = False, name: str | None = None
    ) -> Any:
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {kind_of(data)}")
        if volatile:
            warn_user("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.")
        result = data.detach()
        return result.requires_grad_() if requires_grad else result
