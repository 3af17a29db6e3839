"""Names of types as PyTorch's messages give them."""

from __future__ import annotations

from typing import Any

from pullback.errors import is_pytorch_tensor, kind_of
from pullback.tensor.assignment import describe_type
from pullback.tensor.tensor import Tensor


def typename(obj: Any) -> str:
    """The type of `obj` in PyTorch's words: `torch.FloatTensor`, `int`, `torch.nn.modules.linear.Linear`."""
    if isinstance(obj, Tensor):
        return describe_type(obj)
    if is_pytorch_tensor(obj):
        return kind_of(obj)
    kind = obj if isinstance(obj, type) else type(obj)
    module = getattr(obj, "__module__", None) or kind.__module__
    name = getattr(obj, "__qualname__", kind.__qualname__)
    if module in ("builtins", "__builtin__"):
        return name
    return f"{module.replace('pullback', 'torch', 1) if module.startswith('pullback') else module}.{name}"
