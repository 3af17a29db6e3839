"""Reads what is declared of operations and functions: options of rules, and `@declare` above everything else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from pullback.facts import FACTS, OF_THE_NAME, Value
from pullback.rules.model import Operation, Refusal
from pullback.source_text import parse_file

FOLDERS = ("derivatives", "functions", "nn/functional", "creation", "formulas", "kernels", "pytorch")
"""Where facts are declared; a name that stands in several of them is declared in one."""


def read_facts(source: Path, refusals: list[Refusal]) -> dict[str, dict[Value, str]]:
    """By fact and value, the names that have it, as words."""
    found: dict[str, dict[Value, set[str]]] = {fact: {} for fact in FACTS}
    places: dict[tuple[str, str], str] = {}
    for folder in FOLDERS:
        for path in sorted((source / folder).glob("*.py")):
            for function, call in _declarations(parse_file(path.read_text(), str(path)), folder == "derivatives"):
                for keyword in call.keywords:
                    fact = str(keyword.arg)
                    name = function if fact in OF_THE_NAME else function.removeprefix("method_")
                    if fact not in FACTS:
                        if folder != "derivatives":
                            refusals.append(
                                Refusal(path, call.lineno, f"unknown fact {fact}: one of {', '.join(FACTS)}")
                            )
                        continue
                    if (fact, name) in places:
                        other = places[fact, name]
                        refusals.append(Refusal(path, call.lineno, f"{fact} of {name} is already declared in {other}"))
                        continue
                    places[fact, name] = f"{folder}/{path.name}"
                    found[fact].setdefault(ast.literal_eval(keyword.value), set()).add(name)
    return {fact: _as_words(values) for fact, values in sorted(found.items())}


def _declarations(module: ast.Module, are_rules: bool) -> Iterator[tuple[str, ast.Call]]:
    """Each name with the call that says what it is: a decorator, or `name = declare(...)(function)`."""
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef):
            calls = [d for d in statement.decorator_list if isinstance(d, ast.Call)]
            name = statement.name
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            calls = [statement.value.func] if isinstance(statement.value.func, ast.Call) else []
            name = ast.unparse(statement.targets[0])
        else:
            continue
        for call in calls:
            if are_rules or ast.unparse(call.func) == "declare":
                yield name, call


def read_aliases(folder: Path) -> dict[Value, str]:
    """The second names that functions are given (`arccos = G.acos`), by the first."""
    found: dict[Value, list[str]] = {}
    for path in sorted(folder.glob("*.py")):
        for statement in parse_file(path.read_text(), str(path)).body:
            value = _without_declaration(statement.value) if isinstance(statement, ast.Assign) else None
            if isinstance(statement, ast.Assign) and isinstance(value, (ast.Name, ast.Attribute)):
                name = value.id if isinstance(value, ast.Name) else value.attr
                if not name.startswith("_") and not ast.unparse(statement.targets[0]).startswith("_"):
                    found.setdefault(name, []).append(ast.unparse(statement.targets[0]))
    return {name: " ".join(aliases) for name, aliases in sorted(found.items())}


def _without_declaration(value: ast.expr) -> ast.expr:
    """What is declared by `declare(...)(function)`: the function."""
    is_declared = isinstance(value, ast.Call) and ast.unparse(value.func).startswith("declare(")
    return value.args[0] if is_declared else value  # type: ignore[attr-defined]  # of a call


def derived_facts(facts: dict[str, dict[Value, str]], operations: list[Operation]) -> dict[str, dict[Value, str]]:
    """The facts with what follows from the rules: structures, and the names of results that `outputs=` has.

    Where names are found stands in functions/namespace.py, which every program loads.
    """
    facts = {fact: values for fact, values in facts.items() if not fact.startswith("found")}
    structures = {value: set(names.split()) for value, names in facts["structure"].items()}
    returns = {value: set(names.split()) for value, names in facts["returns"].items()}
    as_outputs = returns.pop(True, set())
    for operation in operations:
        structures.setdefault(operation.structure, set()).add(operation.name)
        if operation.name in as_outputs:
            returns.setdefault(" ".join(operation.rule.output_names), set()).add(operation.name)
    return {**facts, "structure": _as_words(structures), "returns": _as_words(returns)}


def _as_words(values: dict[Value, set[str]]) -> dict[Value, str]:
    return {value: " ".join(sorted(values[value])) for value in sorted(values, key=str)}


def emit_facts(facts: dict[str, dict[Value, str]]) -> str:
    """generated/facts.py: the names that each fact is declared of."""
    rows = []
    for fact, values in facts.items():
        rows.append(f"    {fact!r}: {{")
        for value, names in values.items():
            rows.append(f"        {value!r}: {names!r},")
        rows.append("    },")
    body = "\n".join(rows)
    return f'''"""Generated by tools/codegen: what is declared of operations and functions. See Note [Facts]."""

from __future__ import annotations

# fmt: off
DECLARED: dict[str, dict[str | bool | int, str]] = {{
{body}
}}
'''
