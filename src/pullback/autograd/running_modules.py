"""RunningModules: which module's forward runs now, as the path of its name."""

from __future__ import annotations

import sys
from typing import Any


class RunningModules:
    """Follows calls of modules of this process while asked to."""

    def __init__(self) -> None:
        self.path = ""
        """The module that runs, as `Net.layer1.0`; empty outside of modules."""
        self.modules: dict[str, Any] = {}
        """Each module that ran, by its path."""
        self._running: list[str] = []
        self._names: dict[int, str] = {}
        self._handles: list[Any] = []

    def follow(self) -> None:
        """Begin; where `pullback.nn` was not imported, there are no modules."""
        module = sys.modules.get("pullback.nn.modules.module")
        if module is not None:
            self._handles = [
                module.register_module_forward_pre_hook(lambda module, args: self._enter(module)),
                module.register_module_forward_hook(lambda module, args, output: self._leave(), always_call=True),
            ]

    def leave(self) -> None:
        """End."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._running, self.path = [], [], ""

    def _enter(self, module: Any) -> None:
        if id(module) not in self._names:
            root = type(module).__name__
            for name, inner in module.named_modules():
                path = f"{root}.{name}" if name else root
                self._names[id(inner)] = path
                self.modules[path] = inner
        self.path = self._names[id(module)]
        self._running.append(self.path)

    def _leave(self) -> None:
        if self._running:
            self._running.pop()
        self.path = self._running[-1] if self._running else ""
