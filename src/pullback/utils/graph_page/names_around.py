"""Finds names for the leaves of a graph in the program that runs: variables, and parameters of modules in variables."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from pullback.graph.source_lines import PACKAGE
from pullback.tensor.tensor import Tensor

__all__ = ["NamesAround"]


class NamesAround:
    """The tensors and modules that the calling frames hold by name, the innermost frame first.

    Answers `named_parameters` and `named_modules` as a module would. Of one module the names are as it gives them; where
    there are several, each stands below the name of its variable.
    """

    def __init__(self) -> None:
        modules: dict[int, tuple[str, Any]] = {}
        self._tensors: dict[int, tuple[str, Any]] = {}
        for name, value in _variables(sys._getframe(1)):
            if isinstance(value, Tensor):
                self._tensors.setdefault(id(value), (name, value))
            elif hasattr(value, "named_parameters") and hasattr(value, "named_modules") and not isinstance(value, type):
                modules.setdefault(id(value), (name, value))
        inner = {id(part) for _, module in modules.values() for path, part in module.named_modules() if path}
        self._modules = [(name, module) for key, (name, module) in modules.items() if key not in inner]

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Names and tensors: parameters, then other variables."""
        for prefix, module in self._prefixed():
            for name, parameter in module.named_parameters():
                yield prefix + name, parameter
        known = {id(parameter) for _, module in self._modules for parameter in module.parameters()}
        yield from (pair for key, pair in self._tensors.items() if key not in known)

    def named_modules(self) -> Iterator[tuple[str, Any]]:
        """Paths and modules, each below the one that it belongs to."""
        for prefix, module in self._prefixed():
            for path, part in module.named_modules():
                yield (prefix + path).removesuffix("."), part

    def _prefixed(self) -> Iterator[tuple[str, Any]]:
        for name, module in self._modules:
            yield "" if len(self._modules) == 1 else f"{name}.", module


def _variables(frame: FrameType | None) -> Iterator[tuple[str, Any]]:
    """The variables of the frames outside of this package, and the attributes of what they call `self`."""
    while frame is not None:
        if not frame.f_code.co_filename.startswith(PACKAGE) and not _is_library(frame.f_code.co_filename):
            variables = dict(frame.f_locals)
            yield from variables.items()
            yield from list(getattr(variables.get("self"), "__dict__", {}).items())
            if frame.f_code.co_name == "<module>" or frame.f_globals is not frame.f_locals:
                yield from list(frame.f_globals.items())
        frame = frame.f_back


def _is_library(file: str) -> bool:
    return file.startswith((os.path.dirname(os.__file__), "<frozen"))
