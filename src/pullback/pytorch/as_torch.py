"""Makes `import torch` mean pullback in this process, so that a PyTorch program runs unmodified.

A finder at the front of `sys.meta_path` answers for `torch` and everything below it: with pullback's own module
objects where pullback has that module, with a stub where only PyTorch has it. An installed PyTorch is not touched.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from opcode import opmap
from types import ModuleType

from pullback.backend.naming import set_display_namespace
from pullback.pytorch import AliasLoader
from pullback.pytorch.missing_names import (
    MissingModuleError,
    StubModule,
    add_missing_names,
    importing_frame,
    is_provided_for,
    torch_modules,
)
from pullback.pytorch.spawned_processes import prepare_spawned_processes
from pullback.pytorch.torch_distribution import TorchDistributionFinder
from pullback.pytorch.torch_places import name_classes
from pullback.pytorch.torch_version import TorchVersion

__all__ = ["MissingModuleError", "install_as_torch"]

EMULATED_VERSION = "2.13.0"
"""The PyTorch release whose behaviour pullback follows; `torch.__version__` while it stands in."""

IMPORT_NAME = opmap["IMPORT_NAME"]

OTHER_PACKAGES = {
    "torchviz": "pullback.utils.graph_picture",
    "torchviz.dot": "pullback.utils.graph_picture",
    "functorch": "pullback.func",
}
"""Small companions of PyTorch that pullback brings along: their name, and the module that answers for them.

functorch comes with PyTorch and needs it; torchviz is a package of its own, which serves where it is installed.
"""


class StubLoader(Loader):
    """Loads a `StubModule`."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a stub that can be a package to further stubs."""
        return StubModule(spec.name.replace("pullback.", "torch.", 1))

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a stub has no content."""


class TorchFinder(MetaPathFinder):
    """Answers every import of `torch`, of its submodules and of `OTHER_PACKAGES`."""

    def __init__(self, torch_modules: frozenset[str]) -> None:
        self._torch_modules = torch_modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a name that is ours to answer, None for any other."""
        if fullname in OTHER_PACKAGES and _exists(OTHER_PACKAGES[fullname]):
            package = fullname.partition(".")[0]
            if package == "torchviz" and PathFinder.find_spec(package) is not None:
                return None
            return ModuleSpec(fullname, AliasLoader(OTHER_PACKAGES[fullname]), is_package=fullname == "torchviz")
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        own_name = "pullback" + fullname.removeprefix("torch")
        is_known = fullname == "torch" or fullname.removeprefix("torch.") in self._torch_modules
        if not is_known and not _is_asked_by_pullback():
            raise _no_such_module(fullname)
        if _exists(own_name):
            return ModuleSpec(fullname, AliasLoader(own_name))
        _refuse_if_provided_for(fullname)
        return ModuleSpec(fullname, StubLoader(), is_package=True)


class OwnModuleFinder(MetaPathFinder):
    """Finds pullback's modules as ever, and lets them answer for what they lack. See Note [Missing names]."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the usual spec, its loader extended."""
        if not fullname.startswith("pullback.") or fullname.startswith("pullback.pytorch."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_extend(module: ModuleType) -> None:
            load(module)
            _know_as_torch(module.__name__, module)
            add_missing_names(module)
            name_classes(module)

        spec.loader.exec_module = load_and_extend  # type: ignore[method-assign]  # of this one loader object
        return spec


class SubmoduleStubFinder(MetaPathFinder):
    """Answers last, for a submodule that only PyTorch has of a package that pullback has too.

    `from torch.distributed import fsdp` asks the alias for `pullback.distributed.fsdp`, since that is what it is called.
    """

    def __init__(self, torch_modules: frozenset[str]) -> None:
        self._torch_modules = torch_modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a stub under PyTorch's name, None for what PyTorch lacks as well."""
        name = fullname.removeprefix("pullback.")
        if name == fullname or name not in self._torch_modules:
            return None
        _refuse_if_provided_for(fullname)
        return ModuleSpec(fullname, StubLoader(), is_package=True)


def _no_such_module(fullname: str) -> ModuleNotFoundError:
    """The error for a name that is not a module of PyTorch's."""
    return ModuleNotFoundError(f"No module named '{fullname}'", name=fullname)


def _is_asked_by_pullback() -> bool:
    """Whether one of pullback's own modules imports: while the package is called torch, so are its private modules."""
    frame = importing_frame()
    return frame is not None and str(frame.f_globals.get("__name__")).startswith("pullback.")


def _refuse_if_provided_for(fullname: str) -> None:
    """Raise for a missing module whose absence the program provides for. See Note [Missing names]."""
    frame = importing_frame()
    if frame is not None and frame.f_code.co_code[frame.f_lasti] == IMPORT_NAME and is_provided_for(frame):
        raise _no_such_module(fullname)


def _know_as_torch(name: str, module: ModuleType) -> None:
    """Let a loaded module be found under PyTorch's name too.

    The import system binds what it loads in the parent. `torch.autograd.gradcheck` is a module and a function: loading the
    module a second time, under this name, would hide the function that the parent bound when it had loaded it.
    """
    known_as = name.removeprefix("pullback.")
    if known_as in torch_modules():
        sys.modules.setdefault(f"torch.{known_as}", module)


def _exists(name: str) -> bool:
    """Whether pullback has the module `name`, without running it."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def install_as_torch() -> None:
    """Make `import torch` and its submodules resolve to pullback in this process.

    Reprs then say `torch.`, and `torch.__version__` is the release that pullback follows. Calling it again does
    nothing. It must come before the first `import torch`: modules that hold the real one would not notice.
    """
    import pullback  # lazy: the package is above this module, and is complete by the time this runs

    if any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        return
    if "torch" in sys.modules:
        raise RuntimeError(
            "install_as_torch() came too late: 'torch' has already been imported in this process. "
            "Call it before the first 'import torch', or start the program with 'pullback run script.py'."
        )
    sys.meta_path[:0] = [TorchFinder(torch_modules()), OwnModuleFinder(), TorchDistributionFinder(EMULATED_VERSION)]
    sys.meta_path.append(SubmoduleStubFinder(torch_modules()))
    set_display_namespace("torch")
    namespace = vars(pullback)
    namespace["__version__"] = TorchVersion(EMULATED_VERSION)
    for name, module in list(sys.modules.items()):
        if name == "pullback" or name.startswith("pullback."):
            _know_as_torch(name, module)
            add_missing_names(module)
            name_classes(module)
    namespace["__name__"] = "torch"  # programs ask for it
    prepare_spawned_processes()
    importlib.import_module("torch")
