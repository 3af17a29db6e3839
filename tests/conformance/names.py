"""Which public names PyTorch has and we have not: the dense ones of the CPU, in each namespace."""

from __future__ import annotations

import importlib
import inspect
import types
from typing import Any

import torch

import pullback

NAMESPACES = (
    "torch",
    "torch.Tensor",
    "torch.nn.functional",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.signal.windows",
    "torch.masked",
)


def missing_names() -> dict[str, list[str]]:
    """List the names by namespace."""
    return {namespace: _missing_in(namespace) for namespace in NAMESPACES}


def _missing_in(namespace: str) -> list[str]:
    theirs = _resolve(torch, namespace)
    ours = _resolve(pullback, namespace)
    return [name for name in _public(theirs) if ours is None or not hasattr(ours, name)]


def _resolve(package: Any, namespace: str) -> Any:
    found = package
    for part in namespace.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(f"{found.__name__}.{part}")
            except ImportError:
                return None
    return found


def _public(namespace: Any) -> list[str]:
    names = []
    for name in sorted(getattr(namespace, "__all__", None) or dir(namespace)):
        value = getattr(namespace, name, None)
        if name.startswith("_") or isinstance(value, types.ModuleType) or inspect.isclass(value):
            continue
        if callable(value) or isinstance(value, torch.dtype) or inspect.isdatadescriptor(value):
            names.append(name)
    return names
