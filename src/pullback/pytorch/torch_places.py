"""Where PyTorch has what pullback has: the module and the name that printed classes and pickles show."""

from __future__ import annotations

import inspect
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any, ForwardRef

from pullback.pytorch.missing_names import torch_modules

_MODULES = {
    "creation.tensor_types": "torch", "distributions.transform": "torch.distributions.transforms",
    "distributions.elementwise_transforms": "torch.distributions.transforms",
    "distributions.vector_transforms": "torch.distributions.transforms",
    "distributions.joined_transforms": "torch.distributions.transforms",
    "functions.storages": "torch.storage", "fx.code_text": "torch.fx.graph",
    "graph.gradient_edge": "torch.autograd.graph", "graph.removable_handle": "torch.utils.hooks",
    "nn.modules.parameter_container": "torch.nn.modules.container", "nn.utils.pruning_methods": "torch.nn.utils.prune",
    "optim._adafactor": "torch.optim", "optim._muon": "torch.optim",
    "utils.selective_checkpoint": "torch.utils.checkpoint",
}  # fmt: skip
"""Modules whose classes PyTorch has elsewhere, without the leading `pullback.`."""

_CLASSES = {
    "backend.random.generator.Generator": ("torch._C", "Generator"), "errors.LinAlgError": ("torch._C", "_LinAlgError"),
    "optim.adam.AdamW": ("torch.optim.adamw", "AdamW"), "jit.tracing.TracerWarning": ("torch.jit._trace", "TracerWarning"),
    "backend.layout.layout": ("torch", "layout"), "backend.layout.memory_format": ("torch", "memory_format"),
    "backend.dtype.finfo": ("torch", "finfo"), "backend.dtype.iinfo": ("torch", "iinfo"),
    "graph.custom_function_node.BackwardCFunction": ("torch.autograd.function", "BackwardCFunction"),
    "graph.custom_function_node.FunctionCtx": ("torch.autograd.function", "FunctionCtx"),
    "graph.custom_function_node._FunctionBase": ("torch._C", "_FunctionBase"),
    "graph.custom_function_node._HookMixin": ("torch.autograd.function", "_HookMixin"),
    "graph.node.Node": ("torch.autograd.graph", "Node"),
    "graph.saved_tensor.SavedTensor": ("torch._C._autograd", "SavedTensor"),
    "errors.OutOfMemoryError": ("torch", "OutOfMemoryError"), "futures.FutureBase": ("torch", "Future"),
}  # fmt: skip
"""Classes that PyTorch has in another module than their neighbours, or under another name."""


def torch_module(own: str) -> str:
    """The module of PyTorch's that answers for one of pullback's: the nearest package that PyTorch has.

    >>> torch_module("pullback.nn.modules.linear"), torch_module("pullback.optim.lr_scheduler.chainable")
    ('torch.nn.modules.linear', 'torch.optim.lr_scheduler')
    """
    name = own.removeprefix("pullback").removeprefix(".")
    while name and name not in torch_modules():
        name = name.rpartition(".")[0]
    return f"torch.{name}" if name else "torch"


def _known_place(module: str, name: str) -> tuple[str, str] | None:
    """Where PyTorch has a class or function, as far as its module tells; None for those of private modules."""
    own = module.removeprefix("pullback.")
    if f"{own}.{name}" in _CLASSES:
        return _CLASSES[f"{own}.{name}"]
    if own in _MODULES:
        return _MODULES[own], name
    return (f"torch.{own}", name) if own in torch_modules() else None


def name_classes(module: ModuleType) -> None:
    """Let a module's classes, and those of its private parts that it exports, say where PyTorch has them.

    Classes of compiled modules cannot be told: they keep their names.
    """
    own = module.__name__
    exports_to = torch_module(own) if f"torch{own.removeprefix('pullback')}" == torch_module(own) else None
    for name, value in list(vars(module).items()):
        if not isinstance(value, type) or not value.__module__.startswith("pullback."):
            continue
        place = _known_place(value.__module__, value.__qualname__)
        if _is_node_of_operation(value):
            place = "builtins", value.__name__
        if place is None and exports_to == torch_module(value.__module__) and not name.startswith("_"):
            place = exports_to, value.__qualname__
        if place is not None:
            _keep_annotations(value)
            with suppress(TypeError):
                value.__module__, value.__qualname__ = place
                value.__name__ = place[1].rpartition(".")[2]


def _is_node_of_operation(value: type) -> bool:
    """Whether a class is one of those that PyTorch makes in C, which print as `<class 'MulBackward0'>`."""
    from pullback.graph.custom_function_node import BackwardCFunction  # lazy: it is below all parts that have places
    from pullback.graph.node import Node  # lazy: as above

    return issubclass(value, Node) and value is not Node and not issubclass(value, BackwardCFunction)


def _keep_annotations(value: type) -> None:
    """Let `typing.get_type_hints` go on to read a class's annotations where the class was written."""
    annotations = inspect.get_annotations(value)
    for name, text in annotations.items():
        if isinstance(text, str):
            annotations[name] = ForwardRef(text, module=value.__module__, is_class=True)
    if annotations:
        value.__annotations__ = annotations


def place_of(value: Any) -> tuple[str, str] | None:
    """Where PyTorch has a class or a function of pullback's: the module and the name; None where it is not known."""
    module, name = value.__module__, value.__qualname__
    if not module.startswith("pullback."):
        return None
    place = torch_module(module)
    return _known_place(module, name) or ((place, name) if _has(place, name, value) else _among_functions(value))


def _has(place: str, name: str, value: Any) -> bool:
    """Whether pullback's module at PyTorch's place has the value under this name."""
    found: Any = sys.modules.get(place.replace("torch", "pullback", 1))
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def _among_functions(value: Any) -> tuple[str, str] | None:
    """The place of a public function that is defined in a private module, as modules keep them: activations, losses."""
    public = sys.modules.get("pullback.nn.functional")
    names = [name for name, found in vars(public).items() if found is value] if public is not None else []
    return ("torch.nn.functional", names[0]) if names else None
