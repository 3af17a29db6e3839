"""Pruning methods: which entries of a tensor to zero, and the hook that zeroes them in every forward."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from pullback import creation, functions
from pullback.nn.parameter import Parameter
from pullback.tensor.tensor import Tensor


class BasePruningMethod(ABC):
    """A way of choosing a mask. Attached to a module it multiplies `<name>_orig` by `<name>_mask` before each forward."""

    _tensor_name: str
    PRUNING_TYPE: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask for tensor `t` (its importance scores), on top of a former mask."""

    def apply_mask(self, module: Any) -> Any:
        """The tensor with pruned entries zeroed."""
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune a tensor of a module; a tensor pruned before is pruned further."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        former = _attached_method(module, name)
        if former is not None:
            container = PruningContainer(former)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}")
        if former is None:
            module.register_parameter(name + "_orig", _taken_parameter(module, name))
            default_mask: Any = creation.ones_like(original.detach())
        else:
            default_mask = getattr(module, name + "_mask").detach().clone()
        try:
            mask = method.compute_mask(scores, default_mask)
        except Exception:
            if former is None:
                _give_back(module, name)
            raise
        if former is not None:
            _detach_hook(module, former)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """The pruned tensor, without touching a module."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        default_mask = creation.ones_like(t.detach()) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default_mask)

    def remove(self, module: Any) -> None:
        """Make pruning permanent."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def _taken_parameter(module: Any, name: str) -> Any:
    parameter = module._parameters[name]
    if not isinstance(parameter, Parameter):
        parameter = Parameter(parameter)
    del module._parameters[name]
    return parameter


def _give_back(module: Any, name: str) -> None:
    setattr(module, name, module._parameters.pop(name + "_orig"))


def _attached_method(module: Any, name: str) -> Any:
    found = [
        hook for hook in module._forward_pre_hooks.values()
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
    ]  # fmt: skip
    return found[0] if found else None


def _detach_hook(module: Any, method: Any) -> None:
    for key, hook in list(module._forward_pre_hooks.items()):
        if hook is method:
            del module._forward_pre_hooks[key]


class PruningContainer(BasePruningMethod):
    """Methods applied one after the other, each to what the former left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        methods = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        for method in methods:
            self._tensor_name = getattr(self, "_tensor_name", method._tensor_name)
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method at the end."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            chosen: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()
            keep = mask.sum([d for d in range(t.dim()) if d != dim]) != 0
            chosen = (slice(None),) * dim + (keep,)
        elif method.PRUNING_TYPE == "global":
            chosen = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        new_mask = mask.clone()
        new_mask[chosen] = method.compute_mask(t[chosen], default_mask=mask[chosen]).to(mask.dtype)
        return new_mask


class Identity(BasePruningMethod):
    """Prune nothing, but prepare the module as pruning does."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> Any:  # type: ignore[override]  # takes no options
        """Attach an all-ones mask."""
        return super().apply(module, name)


def check_amount(amount: Any) -> None:
    """Refuse an amount that is neither a share nor a number of entries."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    is_count = isinstance(amount, numbers.Integral)
    if float(amount) < 0 or (not is_count and float(amount) > 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def count_to_prune(amount: Any, size: int) -> int:
    """How many of `size` entries an amount stands for."""
    if isinstance(amount, numbers.Integral):
        if int(amount) > size:
            raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
        return int(amount)
    return round(float(amount) * size)


class RandomUnstructured(BasePruningMethod):
    """Prune entries at random."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        check_amount(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = count_to_prune(self.amount, t.nelement())
        mask = default_mask.clone()
        if count:
            chosen = functions.topk(functions.rand_like(t.detach()).view(-1), count)[1]
            mask.view(-1)[chosen] = 0
        return mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any) -> Any:  # type: ignore[override]  # named options
        """Prune a tensor of a module."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(BasePruningMethod):
    """Prune the entries of least magnitude."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        check_amount(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = count_to_prune(self.amount, t.nelement())
        mask = default_mask.clone()
        if count:
            chosen = functions.topk(functions.abs(t.detach()).view(-1), count, largest=False)[1]
            mask.view(-1)[chosen] = 0
        return mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:  # type: ignore[override]
        """Prune a tensor of a module."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


def _check_structured(t: Tensor, dim: int) -> None:
    if len(t.shape) <= 1:
        raise ValueError(
            f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} with "
            f"{len(t.shape)} dims"
        )
    if not -len(t.shape) <= dim < len(t.shape):
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _channel_mask(t: Any, dim: int, pruned: Any) -> Any:
    """Zero in the given channels along `dim`, one elsewhere."""
    mask = creation.ones_like(t.detach())
    index = [slice(None)] * t.dim()
    index[dim] = pruned
    mask[tuple(index)] = 0
    return mask


class RandomStructured(BasePruningMethod):
    """Prune channels at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        check_amount(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        _check_structured(t, self.dim)
        size = t.shape[self.dim]
        count = count_to_prune(self.amount, size)
        if not count:
            return default_mask
        pruned = functions.topk(functions.rand(size), count, largest=False)[1]
        return default_mask * _channel_mask(t, self.dim, pruned).to(default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, dim: int = -1) -> Any:  # type: ignore[override]
        """Prune a tensor of a module."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """Prune the channels of least norm."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        check_amount(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        _check_structured(t, self.dim)
        size = t.shape[self.dim]
        count = count_to_prune(self.amount, size)
        if not count:
            return default_mask
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        norms = functions.norm(t.detach(), p=self.n, dim=others)
        pruned = functions.topk(norms, count, largest=False)[1]
        return default_mask * _channel_mask(t, self.dim, pruned).to(default_mask.dtype)

    @classmethod
    def apply(  # type: ignore[override]  # named options
        cls, module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
    ) -> Any:
        """Prune a tensor of a module."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prune by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if default_mask.shape != self.mask.shape:
            raise AssertionError("default_mask and mask should have the same shape")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Any) -> Any:  # type: ignore[override]  # named options
        """Prune a tensor of a module."""
        return super().apply(module, name, mask=mask)
