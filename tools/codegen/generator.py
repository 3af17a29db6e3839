"""Reads kernels and rules, and writes src/pullback/generated; for a build, the C that is rendered from them."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from pullback.expressions.python_sources import PythonSources
from pullback.facts import facts_from
from pullback.rules.emit_apply import line_function_name
from pullback.rules.emit_family import emit_family
from pullback.rules.model import Operation, Refusal
from pullback.rules.read_kernels import read_kernels
from pullback.rules.read_rules import read_rules
from pullback.rules.render import Library, check_names
from pullback.source_text import digest_of_syntax, digest_of_text, parse_file
from tools.codegen.emit_c import emit_elementwise
from tools.codegen.emit_cuda import emit_cuda_table
from tools.codegen.emit_function_namespace import emit_function_namespace, functions_by_file
from tools.codegen.emit_kernel_namespace import emit_kernel_namespace
from tools.codegen.emit_modules import VOCABULARY, emit_first_use, emit_namespace, emit_registry
from tools.codegen.emit_rows import emit_rows
from tools.codegen.emit_steps import emit_steps
from tools.codegen.formatting import drop_old, format_python
from tools.codegen.native_kernels import find_native_kernels, find_row_kernels
from tools.codegen.public_names import PublicNames
from tools.codegen.read_facts import derived_facts, emit_facts, read_aliases, read_facts

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "pullback"


def generate(source: Path = SOURCE) -> tuple[dict[Path, str], list[Refusal]]:
    """The text of every generated file, and the refusals: a refused operation is left out, the others are written."""
    refusals: list[Refusal] = []
    facts = read_facts(source, refusals)
    with facts_from(facts):
        texts, operations = _generate(source, refusals)
    aliases = read_aliases(source / "functions")
    for folder, public in (("functions", PublicNames(facts, aliases, operations)), ("nn/functional", None)):
        path = source / folder / "namespace.py"
        texts[path] = format_python(emit_function_namespace(functions_by_file(path.parent), public), path)
    path = source / "generated" / "facts.py"
    facts = {**derived_facts(facts, operations), "alias": aliases}
    texts[path] = format_python(emit_facts(facts), path)
    return texts, refusals


def _read(source: Path, refusals: list[Refusal]) -> tuple[list[Operation], Library, dict[str, str]]:
    """The operations, what their rules may call, and the formulas with the module of each."""
    kernels = read_kernels(source / "kernels", refusals)
    operations = read_rules(source / "derivatives", kernels, refusals)
    modules = {name: kernel.module for name, kernel in kernels.items()}
    formulas = read_formulas(source / "formulas")
    return *without_refused(operations, modules, formulas, refusals), formulas


def _generate(source: Path, refusals: list[Refusal]) -> tuple[dict[Path, str], list[Operation]]:
    operations, library, formulas = _read(source, refusals)
    sources = PythonSources(source)
    native = find_native_kernels(sources, operations, source / "native", refusals)
    library.native_lines = {kernel.name for kernel in native if kernel.is_line}
    families: dict[str, list[Operation]] = {}
    for operation in operations:
        families.setdefault(operation.rule.module, []).append(operation)
    generated = source / "generated"
    files = {}
    for family, members in families.items():
        if is_on_first_use(source / "derivatives" / f"{family}.py"):
            text = emit_first_use(family, members, library)
        else:
            text = emit_family(family, members, library, VOCABULARY)
        files[generated / f"{family}.py"] = text
    files[generated / "__init__.py"] = emit_namespace(formulas, families)
    files[generated / "registry.py"] = emit_registry(operations)
    files[source / "kernels" / "namespace.py"] = emit_kernel_namespace(library.kernels)
    texts = {path: format_python(text, path) for path, text in files.items()}
    texts[source / "devices" / "cuda" / "elementwise_table.py"] = emit_cuda_table(native)
    find_row_kernels(sources, source / "native", refusals)
    return texts, operations


def render_c(source: Path = SOURCE) -> tuple[dict[str, str], list[Refusal]]:
    """The files of C that are made of the text of kernels and rules, by name, and what was refused.

    `source_digests.h` is for Note [Digests of sources].
    """
    refusals: list[Refusal] = []
    with facts_from(read_facts(source, refusals)):
        operations, _, _ = _read(source, refusals)
    sources = PythonSources(source)
    native = find_native_kernels(sources, operations, source / "native", refusals)
    loops, tables = emit_elementwise(native)
    texts = {
        "elementwise_loops.h": loops,
        "elementwise.c": tables,
        "row_loops.h": emit_rows(find_row_kernels(sources, source / "native", refusals)),
        "optimizer_step_loops.h": emit_steps(sources),
    }
    lines = {kernel.name for kernel in native if kernel.is_line}
    read = {sources.modules[name].path for name in sources.followed}
    for operation in operations:
        if any(line_function_name(operation, line) in lines for line in operation.rule.lines):
            read.add(source / "derivatives" / f"{operation.rule.module}.py")
    return {**texts, "source_digests.h": emit_digests(source, sorted(read))}, refusals


def emit_digests(source: Path, read: list[Path]) -> str:
    """The text of source_digests.h: a line for every file, with the digests of its text and of its syntax."""
    rows = []
    for path in read:
        text = path.read_bytes()
        rows.append(f"{path.relative_to(source).as_posix()} {digest_of_text(text)} {digest_of_syntax(text)}")
    lines = [f'    "{row}\\n"' for row in rows]
    return " \\\n".join(["/* What the C of this build was rendered from. */\n#define SOURCES", *lines]) + "\n"


def is_on_first_use(path: Path) -> bool:
    """Whether a file of rules says that its family is written when it is first used."""
    return any(
        isinstance(statement, ast.Assign)
        and ast.unparse(statement.targets[0]) == "ON_FIRST_USE"
        and ast.literal_eval(statement.value) is True
        for statement in parse_file(path.read_text(encoding="utf-8"), str(path)).body
    )


def without_refused(
    operations: list[Operation], modules: dict[str, str], formulas: dict[str, str], refusals: list[Refusal]
) -> tuple[list[Operation], Library]:
    """Drop operations whose rules call something that does not exist, until nothing more is dropped."""
    while True:
        library = Library(modules, {o.name: o.rule.module for o in operations}, set(formulas))
        kept = []
        for operation in operations:
            try:
                check_names(operation, library)
                kept.append(operation)
            except Refusal as refusal:
                refusals.append(refusal)
        if len(kept) == len(operations):
            return kept, library
        operations = kept


def read_formulas(folder: Path) -> dict[str, str]:
    """The public formulas by name, with the module each is in."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.py")):
        for statement in parse_file(path.read_text(), str(path)).body:
            if isinstance(statement, ast.FunctionDef) and not statement.name.startswith("_"):
                found[statement.name] = path.stem
    return found


def _write_c(folder: Path) -> int:
    """Write the files that changed: a compiler looks at their times."""
    texts, refusals = render_c()
    for refusal in refusals:
        print(refusal, file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return 2 if refusals else 0


def main(arguments: list[str]) -> int:
    """Write, check, or with `--c FOLDER` render C into a folder; return the exit code."""
    if "--c" in arguments:
        return _write_c(Path(arguments[arguments.index("--c") + 1]))
    files, refusals = generate()
    for refusal in refusals:
        print(refusal, file=sys.stderr)
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    leftover = [p for p in (SOURCE / "generated").glob("*.py") if p not in files]
    if "--check" in arguments:
        for path in (*stale, *leftover):
            print(f"{path.relative_to(ROOT)} is not up to date: run python -m tools.codegen", file=sys.stderr)
        return 1 if stale or leftover or refusals else 0
    for path in stale:
        path.write_text(files[path])
    for path in leftover:
        path.unlink()
    drop_old(4 * len(files))
    print(f"{len(stale)} files written, {len(files) - len(stale)} unchanged, {len(refusals)} rules refused")
    return 2 if refusals else 0
