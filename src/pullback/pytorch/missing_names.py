"""What PyTorch's modules have and pullback's lack: it can be imported and passed around; using it raises.

# Note [Missing names]
A program that asks for a name that pullback lacks either needs it or probes for it. `from torch.x import name` and
`torch.x.name` need it: they get a `MissingName`, which raises when it is called or looked into, so that a library whose
optional parts want more than there is can be imported. `hasattr`, `getattr` with a default, and a `try` around this one
import provide for its absence: they are told the truth. Which of the two it is stands in the instruction that the asking
frame is at. A module that is just being imported does not use what it calls: a decorator or a registration there gives
the next `MissingName`. Names that PyTorch lacks as well raise at once, as there; `missing_names.txt`, which
`python -m tools.missing_names` writes, knows which names those modules have that pullback has too.
"""

from __future__ import annotations

import dis
import importlib
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise, takewhile
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

CAUGHT_BY = {
    "IMPORT_FROM": frozenset({"ImportError", "Exception", "BaseException"}),
    "IMPORT_NAME": frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}),
    "LOAD_ATTR": frozenset({"AttributeError", "Exception", "BaseException"}),
    "LOAD_METHOD": frozenset({"AttributeError", "Exception", "BaseException"}),
}
"""The instructions that need a name, and the exceptions whose handlers provide for its absence."""


class MissingModuleError(NotImplementedError, AttributeError):
    """Raised on using a module that PyTorch has and pullback lacks; an AttributeError so that `hasattr` says no."""


class MissingName:
    """Stands for a name of a module that pullback lacks: it can be imported and passed on; using it raises."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def _refuse(self) -> MissingModuleError:
        return missing_name_error(self.__name__)

    def __call__(self, *args: object, **kwargs: object) -> object:
        if _is_importing(sys._getframe(1)):
            return MissingName(f"{self.__name__}()")
        raise self._refuse()

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if _is_importing(sys._getframe(1)):
            return MissingName(f"{self.__name__}.{name}")
        raise self._refuse()

    def __bool__(self) -> bool:
        """Nothing is there."""
        return False

    def __getitem__(self, item: object) -> MissingName:
        """An annotation may subscript it."""
        return self

    def __iter__(self) -> Iterator[object]:
        raise self._refuse()

    def __contains__(self, item: object) -> bool:
        return False

    def __instancecheck__(self, instance: object) -> bool:
        return False

    def __subclasscheck__(self, subclass: type) -> bool:
        return False

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        """A class may name it as a base: it is made without, and nothing of the missing base is there."""
        return ()

    def __or__(self, other: object) -> object:
        return other

    __ror__ = __or__

    def __str__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<{self.__name__}, which pullback lacks>"


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module that is still being imported has led to this frame."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and getattr(frame.f_globals.get("__spec__"), "_initializing", False):
            return True
        frame = frame.f_back
    return False


class StubModule(ModuleType):
    """Stands for a module that PyTorch has and pullback lacks. See Note [Missing names]."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        own_name = self.__name__.removeprefix("torch.")
        if name in _missing_names().get(own_name, {}):
            return _find(own_name, name, sys._getframe(1))
        if is_provided_for(sys._getframe(1)):
            raise missing_name_error(f"{self.__name__}.{name}")
        return MissingName(f"{self.__name__}.{name}")


quint4x2, quint2x4 = MissingName("torch.quint4x2"), MissingName("torch.quint2x4")  # dtypes that programs list


def missing_name_error(name: str) -> MissingModuleError:
    """The error on using `name`, which PyTorch has and pullback lacks."""
    module = name.rpartition(".")[0]
    return MissingModuleError(
        f"{name} is not available: pullback lacks this part of PyTorch's '{module}'. Run this part of the "
        "program with PyTorch itself, or do without it."
    )


def add_missing_names(module: ModuleType) -> None:
    """Let names that PyTorch's module has and this one lacks be imported. See Note [Missing names]."""
    own_name = module.__name__.removeprefix("pullback").removeprefix(".") or "."
    missing = _missing_names().get(own_name)
    submodules = _submodules().get(own_name, frozenset())
    lookup = vars(module).get("__getattr__")
    if (missing is None and not submodules) or getattr(lookup, "answers_for_missing", False):
        return
    missing = missing or {}
    if submodules and not hasattr(module, "__path__"):
        module.__path__ = []  # a package in PyTorch: its modules are to be looked for

    def look_up(name: str) -> object:
        if name == "torch":  # PyTorch's modules import it, and some programs say `torch.torch`
            return sys.modules["torch"]
        if lookup is not None:
            try:
                return lookup(name)
            except AttributeError:
                if name not in missing and name not in submodules:
                    raise
        if name in missing:
            return _find(own_name, name, sys._getframe(1))
        # PyTorch's packages import most of their modules: `torch.distributed.fsdp` needs no import of its own there.
        if name in submodules and not is_provided_for(sys._getframe(1)):
            return importlib.import_module(f"torch.{name}" if own_name == "." else f"torch.{own_name}.{name}")
        raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'")

    look_up.answers_for_missing = True  # type: ignore[attr-defined]  # marks our own wrapper
    vars(module)["__getattr__"] = look_up


def _find(module: str, name: str, frame: FrameType) -> object:
    """The object that PyTorch's module knows by `name`, wherever pullback has it, or a `MissingName`."""
    elsewhere = _missing_names()[module][name]
    if elsewhere:
        return getattr(importlib.import_module(f"torch.{elsewhere}" if elsewhere != "." else "torch"), name)
    full_name = f"torch.{name}" if module == "." else f"torch.{module}.{name}"
    if is_provided_for(frame):
        raise missing_name_error(full_name)
    return MissingName(full_name)


@cache
def _missing_names() -> dict[str, dict[str, str]]:
    """Per module of PyTorch's: the names that pullback's lacks, with the module that has the same object if one has."""
    lines = Path(__file__).with_name("missing_names.txt").read_text(encoding="utf-8").splitlines()
    table: dict[str, dict[str, str]] = {}
    for line in lines:
        module, *names = line.split()
        table[module] = {name: elsewhere for name, _, elsewhere in (entry.partition("@") for entry in names)}
    return table


@cache
def torch_modules() -> frozenset[str]:
    """The modules that PyTorch has, without the leading `torch.`."""
    return frozenset(Path(__file__).with_name("module_names.txt").read_text(encoding="utf-8").split())


@cache
def _submodules() -> dict[str, frozenset[str]]:
    """Per package of PyTorch's: the names of the modules in it."""
    table: dict[str, set[str]] = {}
    for name in torch_modules():
        package, _, last = name.rpartition(".")
        table.setdefault(package or ".", set()).add(last)
    return {package: frozenset(names) for package, names in table.items()}


def is_provided_for(frame: FrameType) -> bool:
    """Whether what `frame` asks for may be absent: it is not an import or attribute access, or one that a `try` guards."""
    code, offset = frame.f_code, frame.f_lasti
    operation = dis.opname[code.co_code[offset]] if offset >= 0 else ""
    if operation not in CAUGHT_BY:
        return True
    handlers = [entry for entry in _guards(code) if entry.start <= offset < entry.end]
    if not handlers:
        return False
    target = handlers[0].target
    if not CAUGHT_BY[operation] & _caught_names(code, target):
        return False
    return not operation.startswith("IMPORT") or _count_imports(code, target) == 1


def _guards(code: CodeType) -> list[Any]:
    """The ranges of instructions that handlers guard: start, end and the target where the handler begins."""
    return list(dis.Bytecode(code).exception_entries)  # type: ignore[attr-defined]  # the stubs do not know it


def _caught_names(code: CodeType, target: int) -> set[str]:
    """The exceptions that the handler at `target` catches, by name."""
    handler = [instruction for instruction in dis.get_instructions(code) if instruction.offset >= target]
    handler = list(takewhile(lambda instruction: instruction.opname != "RERAISE", handler))
    if len(handler) > 1 and handler[1].opname == "POP_TOP":
        return {"BaseException"}
    names: set[str] = set()
    loaded: list[str] = []
    for before, instruction in pairwise(handler):
        if before.opname in {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_ATTR"}:
            loaded.append(str(before.argval))
        if instruction.opname == "CHECK_EXC_MATCH":
            names.update(loaded)
        elif instruction.opname not in {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_ATTR", "BUILD_TUPLE"}:
            loaded = []
    return names


def _count_imports(code: CodeType, target: int) -> int:
    """How many imports the handler at `target` guards: a guard around many is not about one name."""
    guarded = [entry for entry in _guards(code) if entry.target == target]
    return sum(
        instruction.opname == "IMPORT_NAME" and any(entry.start <= instruction.offset < entry.end for entry in guarded)
        for instruction in dis.get_instructions(code)
    )


def importing_frame() -> FrameType | None:
    """The frame whose import statement led here through the import system."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (
        frame.f_code.co_filename.startswith("<frozen importlib")
        or frame.f_globals.get("__name__") == "pullback.as_torch"
    ):
        frame = frame.f_back
    return frame
