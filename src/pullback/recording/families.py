"""Families of operations whose text is written when one of them is first used.

# Note [Families on first use]
Of most families generated/ holds the text. A file of derivatives/ that says `ON_FIRST_USE = True`, since few programs
call its operations, has a module of a few lines there: when it is imported, the same text is made from the same rules
and kernels, and compiled. The compiled form is kept in `__pycache__`, as Python does for any module, until a file that
the text follows from changes: the next process imports it as quickly as the others. Tracebacks and debuggers get the
lines from the module's loader. An installed package holds the text of all families: setup.py calls `write_families`.
"""

from __future__ import annotations

import ast
import contextlib
import marshal
import os
import sys
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path
from types import CodeType
from typing import Any

_PACKAGE = Path(__file__).parents[1]
_loaders: dict[str, FamilyLoader] = {}


def load_family(scope: dict[str, Any], kernels: str, native_lines: str) -> None:
    """Run the text of a family in its module's scope.

    `kernels` names the files of its kernels, `native_lines` the lines of its rules that are compiled.
    """
    name = scope["__name__"]
    loader = FamilyLoader(name, kernels.split(), native_lines.split())
    scope["__loader__"] = scope["__spec__"].loader = _loaders[loader.family] = loader
    exec(loader.get_code(name), scope)


def text_of_family(family: str) -> str | None:
    """Return the text of a family that was written on first use; None for any other family."""
    loader = _loaders.get(family)
    return None if loader is None else loader.get_source(loader.name)


def write_families(folder: Path) -> list[str]:
    """Replace the modules in `folder` that make their text by this text, and return the families' names."""
    families = [path.stem for path in folder.glob("*.py") if "load_family(" in path.read_text(encoding="utf-8")]
    for family in families:
        import_module(f"pullback.generated.{family}")
    texts = {family: text_of_family(family) for family in families}
    for family, text in texts.items():
        assert text is not None
        (folder / f"{family}.py").write_text(text, encoding="utf-8")
    return families


class FamilyLoader(InspectLoader):
    """Finds the text of a family's module by writing it."""

    def __init__(self, name: str, kernels: list[str], native_lines: list[str]) -> None:
        self.name = name
        self.family = name.rpartition(".")[2]
        self.kernels = [_PACKAGE / "kernels" / f"{file}.py" for file in kernels]
        self.native_lines = set(native_lines)
        self.path = str(_PACKAGE / "generated" / f"{self.family}.written.py")

    def get_source(self, fullname: str) -> str:
        """Return the text, whose lines tracebacks show."""
        from pullback.recording.rendered import reading  # lazy: like the rest, needed where no compiled form is kept

        with reading:
            return self._write()

    def get_code(self, fullname: str) -> CodeType:
        """The compiled text, from the file that keeps it while it is fresh."""
        kept, head = cache_from_source(self.path), MAGIC_NUMBER + b"\1\0\0\0" + source_hash(self._state_of_sources())
        try:
            data = Path(kept).read_bytes()
        except OSError:
            data = b""
        if data.startswith(head):
            found: CodeType = marshal.loads(data[len(head) :])
            return found
        code = self.source_to_code(self.get_source(fullname), self.path)
        if not sys.dont_write_bytecode:
            _keep(kept, head + marshal.dumps(code))
        return code

    def _state_of_sources(self) -> bytes:
        """When the files that the text follows from were changed, and their sizes."""
        sources = [_PACKAGE / "derivatives" / f"{self.family}.py", _PACKAGE / "recording" / "vocabulary.py"]
        sources += [_PACKAGE / "generated" / name for name in ("facts.py", "registry.py", f"{self.family}.py")]
        sources += [*_PACKAGE.joinpath("rules").glob("*.py"), *self.kernels]
        sources += [file for file in (_PACKAGE / "checks" / path.name for path in self.kernels) if file.exists()]
        states = [(source, source.stat()) for source in sorted(sources)]
        return repr([(source.name, state.st_mtime_ns, state.st_size) for source, state in states]).encode()

    def _write(self) -> str:
        from pullback.generated import FORMULAS  # lazy: above this layer
        from pullback.generated.registry import OPERATIONS  # lazy: above this layer
        from pullback.kernels.namespace import FILES
        from pullback.recording import vocabulary
        from pullback.recording.rendered import read_family
        from pullback.rules.emit_family import emit_family
        from pullback.rules.read_rules import read_rules_of
        from pullback.rules.render import Library

        files = {name: file for file, names in FILES.items() for name in names.split()}
        path, tree = read_family(self.family)
        rules = [statement for statement in tree.body if isinstance(statement, ast.FunctionDef)]
        operations = read_rules_of(rules, path, _read_kernels({rule.name for rule in rules}, self.kernels))
        library = Library(files, {name: operation.family for name, operation in OPERATIONS.items()}, set(FORMULAS))
        library.native_lines = self.native_lines
        return emit_family(self.family, list(operations.values()), library, vocabulary.__all__)


def _keep(file: str, data: bytes) -> None:
    """Write a file for the next process, whole or not at all. Without it, each process makes the text itself."""
    unfinished = f"{file}.{os.getpid()}"
    with contextlib.suppress(OSError):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(unfinished).write_bytes(data)
        Path(unfinished).replace(file)


def _read_kernels(names: set[str], files: list[Path]) -> dict[str, Any]:
    """The kernels of these names; a rule for a tangent has none."""
    from pullback.rules.read_kernels import read_kernel

    found: dict[str, Any] = {}
    for path in files:
        for statement in ast.parse(path.read_text(encoding="utf-8"), str(path)).body:
            if isinstance(statement, ast.FunctionDef) and statement.name in names:
                found[statement.name] = read_kernel(statement, path)
    return found


if __name__ == "__main__":
    from pullback.recording import families  # this file as the modules know it, which note there what they have loaded

    families.write_families(Path(sys.argv[1]))
