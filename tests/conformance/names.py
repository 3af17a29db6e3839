"""Which public names PyTorch has and we have not: the dense ones of the CPU, in each namespace."""

from __future__ import annotations

import importlib
import inspect
import re
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

# Sparse, quantized, nested and sub-byte tensors, other libraries' and devices' forms, the script compiler, helpers that
# a module's dir() shows by accident, and methods that PyTorch keeps only to say that they are gone.
_ASIDE = re.compile(
    r"""sparse|coalesce|^(ccol|col|crow|row)_indices|^(indices|values)(_copy)?$|^(hs|ds|s)?s?p?mm$|^(hs|ss?)p?addmm$|saddmm|hspmm
    |quant|^q_|qscheme|^qu?int\d|^int_repr$|fbgemm|choose_qparams|fake_quant|padded_tensor|^native_norm$
    |^bit|^u?int[1-7]$|^float[48]_|^complex32$|^chalf$
    |cudnn|miopen|mkldnn|vulkan|^(ipu|xpu|mtia)$|_(ipu|xla|gpu)_|^batch_norm_(backward|elemt|gather|stats|update)
    |import_ir|parse_|^fork$|^wait$|type_comment|unify_type|sym_constrain|sym_fresh|thread_safe_generator
    |^Optional$|assert_int_or_pair|boolean_dispatch|torch_function|scaled_mm|grouped_mm|get_device_module
    |^(eig|lstsq|solve|symeig|reinforce|volatile)$""",
    re.VERBOSE,
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
        if name.startswith("_") or _ASIDE.search(name) or isinstance(value, types.ModuleType) or inspect.isclass(value):
            continue
        if callable(value) or isinstance(value, torch.dtype) or inspect.isdatadescriptor(value):
            names.append(name)
    return names
