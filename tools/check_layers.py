"""Checks that every module of pullback imports only from its own folder or from a lower layer.

Also: only `backend`, `checks`, `kernels`, `devices` and `compiling` import an array library, and nothing imports PyTorch.
Imports under `if TYPE_CHECKING` are ignored. An import inside a function counts too, unless its line ends in
`# lazy: reason`. Public parts (above autograd) may also import the package itself.
Run as `python -m tools.check_layers [source folder]`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "pullback"
SILHOUETTE = "pytorch"
"""The folder of modules that PyTorch has, which are modules of the package: Note [One folder, public names]."""

LAYERS: tuple[tuple[str, ...], ...] = (
    (
        "typing",
        "errors",
        "facts",
        "version",
        "torch_version",
        "missing_names",
        "torch_places",
        "source_text",
        "progress",
        "report",
    ),
    ("native", "rules", "expressions"),
    ("backend",),
    ("checks",),
    ("modes", "kernels"),
    ("devices",),
    ("tensor",),
    ("graph",),
    ("engine",),
    ("recording",),
    ("generated",),
    ("formulas", "creation", "functions", "derivatives"),
    ("autograd",),
    (
        "overrides",
        "random",
        "futures",
        "__future__",
    ),
    ("utils", "linalg", "fft", "special", "amp", "hub", "serialization", "testing"),
    ("nn", "func"),
    ("dispatch",),
    (
        "optim",
        "distributions",
        "_C",
        "_dynamo",
        "_functorch",
        "_higher_order_ops",
        "_inductor",
        "library",
        "__config__",
        "_vmap_internals",
        "fx",
        "_utils",
        "nested",
        "extension",
    ),
    ("distributed", "compiling", "export"),
    ("as_torch", "jit"),
    ("__init__", "__main__"),
)
"""The parts of pullback, lowest first. Parts in one row do not see each other, except where `NEIGHBOURS` says so."""

NEIGHBOURS = {
    ("functions", "creation"),
    ("functions", "formulas"),
    ("formulas", "creation"),
    ("derivatives", "formulas"),
    ("derivatives", "functions"),
    ("torch_places", "missing_names"),
    ("errors", "facts"),
    ("hub", "serialization"),
    ("utils", "hub"),
}
"""(importer, imported) pairs that may meet within one row."""

UNLISTED_LAYER = LAYERS.index(("nn", "func"))
"""Where a public module stands that the table does not name: above autograd, among its peers."""

PUBLIC_LAYER = LAYERS.index(("autograd",)) + 1
"""From here up a module may `import pullback` itself: the package loads these parts lazily, so no cycle closes."""

SANCTIONED_CYCLES = {("tensor/tensor.py", "functions"), ("tensor/tensor.py", "creation")}
"""The one cycle of the design: methods call functions, functions build Tensors."""

ARRAY_LIBRARIES = {"numpy", "cupy", "ml_dtypes", "scipy"}
ARRAY_PARTS = {"backend", "checks", "kernels", "compiling", "devices"}


@dataclass(frozen=True)
class Import:
    """One imported module, as written in a file."""

    module: str
    line: int
    is_lazy: bool


@dataclass(frozen=True)
class Violation:
    """A line that breaks a rule, and what to do about it."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class ImportCollector(ast.NodeVisitor):
    """Collects the imports of one module that happen at run time."""

    def __init__(self, source: str, package: tuple[str, ...]) -> None:
        self._lines = source.splitlines()
        self._package = package
        self._function_depth = 0
        self.imports: list[Import] = []

    def visit_If(self, node: ast.If) -> None:
        if _is_type_checking(node.test):
            for statement in node.orelse:
                self.visit(statement)
        else:
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self._absolute(node)
        for alias in node.names:
            # `from pullback import kernels` imports a part, `from pullback.kernels import add` a name of one.
            self._add(f"{base}.{alias.name}" if base == PACKAGE else base, node)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._function_depth += 1
        self.generic_visit(node)
        self._function_depth -= 1

    def _absolute(self, node: ast.ImportFrom) -> str:
        if node.level == 0:
            return node.module or ""
        parents = self._package[: len(self._package) - node.level + 1]
        return ".".join((*parents, *((node.module,) if node.module else ())))

    def _add(self, module: str, node: ast.stmt) -> None:
        lines = self._lines[node.lineno - 1 : node.end_lineno]
        has_reason = any("# lazy: " in line for line in lines)
        self.imports.append(Import(module, node.lineno, self._function_depth > 0 and has_reason))


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def part_of(relative: Path) -> str:
    """Name the part that a file belongs to: its top folder, or its own name.

    Each module of PyTorch's silhouette is a part by itself.
    """
    if relative.parts[0] == SILHOUETTE:
        relative = Path(*relative.parts[1:])
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def layer_of(part: str) -> int:
    """Return the number of the row that `part` stands in."""
    for number, row in enumerate(LAYERS):
        if part in row:
            return number
    return UNLISTED_LAYER


def check_file(path: Path, root: Path) -> Iterator[Violation]:
    """Yield what the file at `path`, below the package folder `root`, does wrong."""
    relative = path.relative_to(root)
    source = path.read_text(encoding="utf-8")
    collector = ImportCollector(source, (PACKAGE, *relative.parts[:-1]))
    collector.visit(ast.parse(source, str(path)))
    part = part_of(relative)
    for imported in collector.imports:
        message = _objection(part, relative, imported, _parts(root))
        if message is not None:
            yield Violation(path, imported.line, message)


def _parts(root: Path) -> set[str]:
    found = [*root.iterdir(), *(root / SILHOUETTE).glob("*")]
    return {part for row in LAYERS for part in row} | {path.stem for path in found}


def _objection(part: str, relative: Path, imported: Import, parts: set[str]) -> str | None:
    top, _, rest = imported.module.partition(".")
    if top == "torch":
        return "pullback never imports PyTorch; put a comparison with it under tests/parity"
    if top in ARRAY_LIBRARIES and part not in ARRAY_PARTS:
        return f"only {' and '.join(sorted(ARRAY_PARTS))} import {top}; ask them for what '{part}' needs"
    if top != PACKAGE or imported.is_lazy:
        return None
    target = rest.removeprefix(f"{SILHOUETTE}.").partition(".")[0]
    if target not in parts:
        target = "__init__"  # `import pullback`, or `from pullback import Tensor`
    if target == part or (part, target) in NEIGHBOURS or (relative.as_posix(), target) in SANCTIONED_CYCLES:
        return None
    if layer_of(target) < layer_of(part) or (target == "__init__" and layer_of(part) >= PUBLIC_LAYER):
        return None
    return (
        f"'{part}' (layer {layer_of(part)}) imports '{target}' (layer {layer_of(target)}); import only from your own "
        "folder or a lower layer: move the code down, or import inside the function with '# lazy: reason'"
    )


def check(root: Path) -> list[Violation]:
    """Check every module below the package folder `root`."""
    return [violation for path in sorted(root.rglob("*.py")) for violation in check_file(path, root)]


def main(arguments: list[str]) -> int:
    """Print the violations; the exit status says whether there were any."""
    root = Path(arguments[0]) if arguments else Path(__file__).parent.parent / "src" / PACKAGE
    violations = check(root)
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
