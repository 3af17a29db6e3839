"""Checks that no module lists operations by name: what is known of an operation stands in its declaration.

A table is a list, a tuple, a set, a dict or a string of words with five or more names of operations, at the top of a
module or inside of a class or a function; a file of words beside the modules is one too. The name of an operation's node
(`LinalgSvd`, `LinalgSvdBackward0`) counts as its name. Not tables are `__all__`, what a
decorator is given (it stands beside what it is about), and the folders in which operations are declared.

`VOCABULARIES` are lists of names that only look like operations: NumPy's functions, Python's operators.
`DEBTS` are the tables that are left, with the number of their names. A debt may shrink, and then the number must follow;
it may never grow. Run as `python -m tools.check_tables [source folder]`; `--count` prints what there is.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "pullback"
SMALLEST = 5
"""So many names are a table; fewer are a sentence about them."""
DECLARATIONS = ("generated", "derivatives", "formulas")
"""Folders that declare operations, or that the generator writes."""
GENERATED = (
    "functions/namespace.py",
    "nn/functional/namespace.py",
    "kernels/namespace.py",
    "devices/cuda/elementwise_table.py",
)

_NUMPY, _OPERATORS, _REDUCE = "NumPy's functions and methods", "Python's operators", "values of the argument `reduce`"
_BUILTIN = "Python's functions"
VOCABULARIES: dict[str, str] = {
    "backend/array_summary.py summarise": "the columns of a summary",
    "backend/device_array.py COMPARISONS": _OPERATORS,
    "backend/device_array.py METHODS": _NUMPY,
    "backend/device_array.py OPERATORS": _OPERATORS,
    "backend/traced_array.py": _NUMPY,
    "backend/traced_array.py _READINGS": _NUMPY,
    "compiling/lowered/casts.py": _OPERATORS,
    "compiling/number_flow.py _ASKING": _BUILTIN,
    "compiling/number_flow.py _COMPARING_ALL": _BUILTIN,
    "compiling/number_flow.py _PASSING_ON": _BUILTIN,
    "compiling/loop_text.py _WORDS": "how a row is summed up",
    "devices/cuda/functions.py _JOINS": _NUMPY,
    "devices/cuda/functions.py _SCANS": _NUMPY,
    "devices/cuda/functions.py _UFUNCS": _NUMPY,
    "devices/cuda/functions.py make_overrides": _NUMPY,
    "devices/cuda/kernels.py _UFUNCS": _NUMPY,
    "devices/cuda/philox.py Sampler.kernels": "the samplers, declared here",
    "devices/cuda/philox.py _DOUBLE": "the samplers, declared here",
    "devices/cuda/philox.py _FLOAT": "the samplers, declared here",
    "dispatch/templates.py _SIGNS": _OPERATORS,
    "expressions/functions.py FUNCTIONS": "the words of expressions, declared here",
    "expressions/reader.py Reader._numpy": _NUMPY,
    "functions/comparison.py (_EQ, _NE, _LT, _LE, _GT, _GE)": _OPERATORS,
    "functions/operators.py": _OPERATORS,
    "functions/operators.py PROPERTIES": "the properties of a Tensor, declared here",
    "functions/operators.py _COMPARISONS": _OPERATORS,
    "functions/segments.py _START": _REDUCE,
    "functions/segments.py segment_reduce": _REDUCE,
    "fx/code_text.py magic_methods": _OPERATORS,
    "fx/code_text.py reflectable_magic_methods": _OPERATORS,
    "inspection/explanation.py _KINDS": "the ways in which a gradient is cut off",
    "inspection/explanation.py _TEXTS": "the ways in which a gradient is cut off",
    "inspection/explanation.py _WORDS": "words in a line of the user's program",
    "kernels/scattering.py _REDUCERS": _REDUCE,
    "checks/scattering.py scatter_reduce": _REDUCE,
    "nn/init.py _UNIT_GAINS": "values of the argument `nonlinearity`",
    "overrides/overriding_classes.py _TOLD_AS": _OPERATORS,
    "utils/graph_reading.py LAYERS": "layers as pictures name them",
}
"""Lists of names that are not operations', and whose they are."""
DEBTS: dict[str, int] = {}
"""The tables that are left, and how many names each has."""

_TYPES = frozenset("bool byte char complex double float half int long short type".split())
"""Methods that convert, whose names are those of types everywhere."""
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Table:
    """A table, by the file and the name that it is assigned to (or the function that it stands in)."""

    path: str
    owner: str
    line: int
    names: frozenset[str]

    @property
    def key(self) -> str:
        return f"{self.path} {self.owner}".rstrip()


def declared_names(source: Path) -> frozenset[str]:
    """The operations that have a rule, the functions that they are forms of, and the composite functions."""
    names: set[str] = set()
    for path in sorted((source / "derivatives").glob("*.py")):
        for rule in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(rule, ast.FunctionDef):
                names |= {rule.name.removesuffix("_tangent"), *_public_name(rule)}
    for path in sorted((source / "functions").glob("*.py")):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.FunctionDef) and not statement.name.startswith("_"):
                names.add(statement.name.rstrip("_"))
    return frozenset(names) - _TYPES


def _public_name(rule: ast.FunctionDef) -> Iterator[str]:
    for decorator in rule.decorator_list:
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg == "public" and isinstance(keyword.value, ast.Constant):
                yield str(keyword.value.value)


def tables(source: Path) -> Iterator[Table]:
    """Every table below `source`."""
    names = declared_names(source)
    for path in sorted(source.rglob("*")):
        place = path.relative_to(source).as_posix()
        if place.split("/")[0] in DECLARATIONS or place in GENERATED or "__pycache__" in place:
            continue
        if path.suffix == ".txt":
            found = _names_in_text(path.read_text(encoding="utf-8"), names)
            if len(found) >= SMALLEST:
                yield Table(place, "", 1, frozenset(found))
        elif path.suffix == ".py":
            yield from _tables_of(place, ast.parse(path.read_text(encoding="utf-8")), names)


def _tables_of(place: str, module: ast.Module, names: frozenset[str]) -> Iterator[Table]:
    top = {id(statement.value) for statement in module.body if isinstance(statement, (ast.Assign, ast.AnnAssign))}
    for owner, node in _collections(module, ""):
        found = _names_in(node, names, with_attributes=id(node) in top)
        if len(found) >= SMALLEST:
            yield Table(place, owner, node.lineno, frozenset(found))


_Owners = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_Literals = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Constant, ast.JoinedStr)


def _collections(node: ast.AST, owner: str) -> Iterator[tuple[str, ast.expr]]:
    """The outermost collections below a node, each with the name that owns it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Owners):
            for statement in child.body:
                yield from _collections(ast.Module([statement], []), f"{owner}.{child.name}".lstrip("."))
        elif isinstance(child, (ast.Assign, ast.AnnAssign)) and child.value is not None:
            target = ast.unparse(child.targets[0] if isinstance(child, ast.Assign) else child.target)
            if target == "__all__":
                continue
            if owner == "":
                yield target, child.value
            else:
                yield from _collections(child, owner)
        elif isinstance(child, _Literals):
            if not (isinstance(child, ast.Tuple) and isinstance(child.ctx, ast.Store)):
                yield owner, child
        else:
            yield from _collections(child, owner)


def _names_in(node: ast.expr, names: frozenset[str], *, with_attributes: bool) -> set[str]:
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            found |= _names_in_text(part.value, names)
        elif with_attributes and isinstance(part, (ast.Name, ast.Attribute)):
            name = part.id if isinstance(part, ast.Name) else part.attr
            found |= {name} & names
    return found


def _names_in_text(text: str, names: frozenset[str]) -> set[str]:
    """The operations in a text of words; a sentence is not one."""
    words = text.split()
    if not all(_WORD.fullmatch(word) for word in words):
        return set()
    found = {word for word in words if word.rstrip("_") in names or _operation_of_node(word) in names}
    return found if 2 * len(found) >= len(words) else set()


def _operation_of_node(word: str) -> str:
    """`linalg_svd` for the name of a node, `LinalgSvdBackward0` or `LinalgSvd`; nothing for other words."""
    name = word.partition("Backward")[0]
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() if name[:1].isupper() else ""


def objections(source: Path) -> Iterator[str]:
    """Yield one line for each table that is neither a vocabulary nor a debt, and for each debt that is paid or grew."""
    owed: dict[str, int] = {}
    for table in tables(source):
        if table.key in VOCABULARIES:
            continue
        owed[table.key] = owed.get(table.key, 0) + len(table.names)
        if table.key not in DEBTS:
            some = ", ".join(sorted(table.names)[:4])
            yield (
                f"{table.path}:{table.line}: a table of {len(table.names)} operations ({some}, ...): declare the fact "
                "beside each of them and ask for it (docs/adding_an_op.md, Facts)"
            )
    for key, allowed in DEBTS.items():
        count = owed.get(key, 0)
        if count > allowed:
            yield f"{key}: {count} names, and it may only shrink from {allowed}: declare the fact beside the operation"
        elif count < allowed:
            yield f"{key}: {count} names are left of {allowed}: write that into DEBTS of tools/check_tables.py"


def main(arguments: list[str]) -> int:
    """Check, or print every table with the number of its names; return the exit code."""
    folders = [Path(argument) for argument in arguments if not argument.startswith("-")]
    source = folders[0] if folders else SOURCE
    if "--count" in arguments:
        listed = sorted(tables(source), key=lambda table: -len(table.names))
        found = [table for table in listed if table.key not in VOCABULARIES]
        for table in found:
            print(f"{len(table.names):5} {table.key}:{table.line}")
        names = sum(len(table.names) for table in found)
        print(f"{len(found)} tables in {len({table.path for table in found})} files, {names} names")
        return 0
    refused = list(objections(source))
    for line in refused:
        print(line, file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
