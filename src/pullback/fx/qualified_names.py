"""What functions and types are called in printed graphs and in generated code: PyTorch's names."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from typing import Any

from pullback.dispatch.overloads import OpOverload, OpOverloadPacket
from pullback.functions import public_names
from pullback.overrides.overridable_functions import is_built_in, resolve_name
from pullback.pytorch.torch_places import torch_module
from pullback.tensor.tensor import Tensor


def qualified_name(function: Callable[..., Any] | str) -> str:
    """Where a function is found: `torch.add`, `operator.mul`, `my_module.my_function`.

    >>> import operator
    >>> qualified_name(operator.mul), qualified_name(len)
    ('operator.mul', 'builtins.len')
    """
    if isinstance(function, str):
        return function
    if isinstance(function, (OpOverload, OpOverloadPacket)):
        return f"torch.ops.{function}"
    public = resolve_name(function)
    if public is not None:
        return _as_pytorch_has_it(public)
    name = getattr(function, "__name__", None) or repr(function)
    if getattr(builtins, name, None) is function:
        return f"builtins.{name}"
    module = str(getattr(function, "__module__", "") or "").replace("_operator", "operator")
    if module.split(".")[0] == "pullback":
        module = torch_module(module)
    if isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType):
        return f"{function.__objclass__.__module__}.{function.__objclass__.__name__}.{name}"
    return f"{module}.{name}" if module else name


_COMPILED = {"torch.linalg": "_linalg", "torch.fft": "_fft", "torch.special": "_special"}


def _as_pytorch_has_it(public: str) -> str:
    """The place in which PyTorch defines a public function: some are of its compiled module."""
    namespace, _, name = public.rpartition(".")
    if namespace == "torch.nn.functional" and is_built_in(name):
        return f"torch.{name}" if name in public_names() else f"torch._C._nn.{name}"
    if namespace in _COMPILED:
        return f"torch._C.{_COMPILED[namespace]}.{namespace.rpartition('.')[2]}_{name}"
    return public


def is_from_torch(value: Any) -> bool:
    """Whether a function or type is one of pullback's, or a built-in one of the operators' kind."""
    module = str(getattr(value, "__module__", "") or "")
    base = module.partition(".")[0]
    return base in ("pullback", "torch") and not module.startswith("torch.distributed")


def type_name(value: Any) -> str:
    """A type as it stands in an annotation.

    >>> type_name(int), type_name(list[int])
    ('int', 'list[int]')
    """
    if type(value) is not types.GenericAlias and isinstance(value, type):
        if value is Tensor:
            return "torch.Tensor"
        module = value.__module__
        if module == "builtins":
            return value.__qualname__
        return f"{module.replace('pullback', 'torch', 1)}.{value.__qualname__}"
    if value is ...:
        return "..."
    if isinstance(value, types.FunctionType):
        return value.__name__
    return repr(value).replace("pullback.", "torch.").replace("torch.tensor.tensor.Tensor", "torch.Tensor")
