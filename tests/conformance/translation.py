"""From PyTorch's tensors, dtypes and functions to ours: the same memory layout, the same name, nothing computed."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

import pullback

from .places import Places, place_of

_TORCH_MODULES = ("torch._C._nn", "torch._C._linalg", "torch._C._fft", "torch._C._special")


def to_array(tensor: Any) -> Any:
    """Give the values of a PyTorch tensor as an array that shares its memory where NumPy knows the dtype."""
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor._is_zerotensor():
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes

        return tensor.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    if tensor.dtype == torch.complex32:
        import ml_dtypes

        return tensor.view(torch.int32).numpy().view(ml_dtypes.complex32)
    return tensor.numpy()


class Copier:
    """Copies PyTorch tensors, to ours or to PyTorch's, so that those which shared memory share it again."""

    def __init__(self, to_ours: bool) -> None:
        """Copy into pullback's tensors if `to_ours`, else into PyTorch's."""
        self._to_ours = to_ours
        self._place = place_of(to_ours)
        self._storages: dict[int, Any] = {}
        self._tensors: dict[int, Any] = {}
        self._kept: list[Any] = []

    def tensor(self, tensor: Any) -> Any:
        """Copy one tensor with its strides, and requires_grad as a leaf."""
        known = self._tensors.get(id(tensor))
        if known is None:
            known = self._copy(tensor)
            self._tensors[id(tensor)] = known
            self._kept.append(tensor)
        return known

    def _copy(self, tensor: Any) -> Any:
        plain = tensor.detach().resolve_conj().resolve_neg()
        key = plain.untyped_storage().data_ptr() if plain.numel() else -len(self._storages) - 1
        flat = self._storages.get(key)
        if flat is None or flat.dtype != _dtype_on(plain.dtype, self._to_ours):
            size = plain.untyped_storage().nbytes() // plain.element_size()
            whole = torch.as_strided(plain, (size,), (1,), 0)
            flat = pullback.from_numpy(to_array(whole).copy()) if self._to_ours else whole.clone()
            flat = flat.to(self._place) if self._place else flat
            self._storages[key] = flat
            self._kept.append(plain)
        copied = flat.as_strided(tuple(plain.shape), plain.stride(), plain.storage_offset()).detach()
        return copied.requires_grad_() if tensor.requires_grad else copied

    def tree(self, value: Any) -> Any:
        """Copy every tensor in a tree of arguments, and translate the dtypes and such in it."""
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, torch.Size):
            return tuple(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self.tree(item) for item in value))
        if isinstance(value, (list, tuple)):
            return type(value)(self.tree(item) for item in value)
        if isinstance(value, dict):
            return {key: self.tree(item) for key, item in value.items()}
        return ours(value) if self._to_ours else value


def _dtype_on(dtype: Any, to_ours: bool) -> Any:
    return ours(dtype) if to_ours else dtype


def ours(value: Any) -> Any:
    """Translate what is not a tensor: dtypes, devices, layouts, memory formats, generators and functions."""
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return getattr(pullback, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return pullback.device(Places.ours if Places.ours and value.type == "cpu" else str(value))
    if isinstance(value, torch.Generator):
        return pullback.Generator().manual_seed(value.initial_seed())
    if isinstance(value, torch.nn.Module):
        module = getattr(pullback.nn, type(value).__name__)()
        vars(module).update({name: item for name, item in vars(value).items() if not name.startswith("_")})
        return module
    if callable(value) and not isinstance(value, type):
        return our_function(value)
    return value


def find(root: Any, name: str) -> Any:
    """Follow a dotted name such as `linalg.det` from a package; raise AttributeError where it ends."""
    for part in name.removeprefix("torch.").split("."):
        root = getattr(root, part)
    return root


def our_function(function: Any) -> Any:
    """Give our function for one of PyTorch's: by its name, or a written lambda with our package for `torch`."""
    if isinstance(function, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
        return _named_builtin(function)
    if isinstance(function, types.GetSetDescriptorType):
        return getattr(pullback.Tensor, function.__name__).__get__
    if isinstance(function, functools.partial):
        return functools.partial(our_function(function.func), *function.args, **function.keywords)
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__name__", "")
    if isinstance(function, types.FunctionType) and (name == "<lambda>" or module.startswith("torch.testing")):
        return _rebound(function)
    if module.startswith("torch") and name:
        return find(pullback, _public_path(module, name))
    return function


def _public_path(module: str, name: str) -> str:
    if module == "torch._tensor" or (module.startswith("torch._C.") and module not in _TORCH_MODULES):
        return "Tensor." + name
    public = {
        "torch.functional": "torch",
        "torch._lowrank": "torch",
        "torch._VF": "torch",
        "torch._C._nn": "torch.nn.functional",
    }
    module = public.get(module, module).replace("torch._C._", "torch.")
    module = "torch.masked" if module.startswith("torch.masked") else module
    return (module + "." + name).removeprefix("torch.")


def _named_builtin(function: Any) -> Any:
    name = function.__name__
    if isinstance(function, types.BuiltinFunctionType):
        for namespace in ("linalg", "fft", "special"):
            if name.startswith(namespace + "_"):
                return find(pullback, namespace + "." + name.removeprefix(namespace + "_"))
        for place in (torch, torch.nn.functional):
            if getattr(place, name, None) is function:
                return find(
                    pullback,
                    place.__name__.removeprefix("torch").lstrip(".") + "." + name if place is not torch else name,
                )
        if (function.__module__ or "").startswith("torch") or function.__self__.__class__.__name__ == "type":
            return find(pullback, name)
        return function
    return getattr(pullback.Tensor, name) if issubclass(torch.Tensor, function.__objclass__) else function


def _seeded(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    pullback.manual_seed(42)
    return function(*arguments, **options)


_REPLACED: Mapping[str, Any] = {"wrapper_set_seed": _seeded}


def _rebound(function: types.FunctionType) -> Any:
    """Make the same Python function with our package where its text says `torch`."""
    names = set(function.__code__.co_names)
    for constant in function.__code__.co_consts:
        if isinstance(constant, types.CodeType):
            names |= set(constant.co_names)
    world = dict(function.__globals__)
    for name in names & world.keys():
        world[name] = _REPLACED.get(name) or _our_global(world[name])
    cells = tuple(types.CellType(_our_global(cell.cell_contents)) for cell in function.__closure__ or ())
    made = types.FunctionType(function.__code__, world, function.__name__, _our_tree(function.__defaults__), cells)
    made.__kwdefaults__ = _our_tree(function.__kwdefaults__)
    return made


def _our_tree(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_our_tree(item) for item in value)
    if isinstance(value, dict):
        return {key: _our_tree(item) for key, item in value.items()}
    return _our_global(value)


def _our_global(value: Any) -> Any:
    if value is torch:
        return pullback
    if isinstance(value, types.ModuleType):
        if not value.__name__.startswith("torch."):
            return value
        return find(pullback, value.__name__)
    if value is torch.Tensor:
        return pullback.Tensor
    if isinstance(value, torch.Tensor):
        return Copier(True).tensor(value)
    return ours(value)


def values_of(tensor: Any) -> Any:
    """Give a tensor of either package as a fresh NumPy array."""
    if isinstance(tensor, torch.Tensor):
        array = to_array(tensor).copy()
    else:
        array = np.array(tensor.detach().cpu().resolve_conj().resolve_neg()._array)
    return array.astype(np.complex64) if array.dtype.kind == "W" else array  # NumPy cannot compare complex32
