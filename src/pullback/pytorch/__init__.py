"""PyTorch's silhouette: modules that are there because PyTorch has them, and how `import torch` comes to mean pullback.

# Note [One folder, public names]
The modules of this folder are modules of `pullback`: `pullback.jit`, not `pullback.pytorch.jit`. The folder stands at the
end of the package's `__path__`, so that Python finds them there under their public names, with `python -m` and from
pickles too. Pullback's own files, and type checkers, write `pullback.pytorch.jit`; `PublicNames` gives them the one module.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType


class AliasLoader(Loader):
    """Loads a module by handing out another module's object, unchanged."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._target_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the target module itself."""
        module = import_module(self._target)
        self._target_spec = module.__spec__
        return module

    def get_code(self, fullname: str) -> CodeType | None:
        """The target's code, which `python -m` runs under the name `__main__`."""
        spec = find_spec(self._target)
        loader = None if spec is None else spec.loader
        return loader.get_code(self._target) if isinstance(loader, InspectLoader) else None

    def exec_module(self, module: ModuleType) -> None:
        """Undo the one thing the import system changed, the module's own spec."""
        module.__spec__ = self._target_spec


class PublicNames(MetaPathFinder):
    """Answers for `pullback.pytorch.x` with the module `pullback.x`. See Note [One folder, public names]."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a module of this folder, None for any other."""
        if not fullname.startswith("pullback.pytorch."):
            return None
        public = "pullback." + fullname.removeprefix("pullback.pytorch.")
        found = find_spec(public)
        return None if found is None else ModuleSpec(fullname, AliasLoader(public), origin=found.origin)


sys.meta_path.insert(0, PublicNames())
