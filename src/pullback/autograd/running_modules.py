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

    def follow(self) -> None:
        """Begin; where `pullback.nn` was not imported, there are no modules."""
        hooks = sys.modules.get("pullback.nn.modules.module_hooks")
        if hooks is not None:
            hooks.watch_modules(self._enter, self._leave)

    def leave(self) -> None:
        """End."""
        hooks = sys.modules.get("pullback.nn.modules.module_hooks")
        if hooks is not None:
            hooks.unwatch_modules(self._enter, self._leave)
        self._running, self.path = [], ""

    def _enter(self, module: Any, args: Any) -> None:
        if id(module) not in self._names:
            root = type(module).__name__
            for name, inner in module.named_modules():
                path = f"{root}.{name}" if name else root
                self._names[id(inner)] = path
                self.modules[path] = inner
        self.path = self._names[id(module)]
        self._running.append(self.path)

    def _leave(self, module: Any, args: Any, output: Any) -> None:
        if self._running:
            self._running.pop()
        self.path = self._running[-1] if self._running else ""
