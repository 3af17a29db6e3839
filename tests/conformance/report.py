"""What is said about a run: the table by family, the failures, the last line, and docs/operations.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .exceptions import INEXACT_IN_PYTORCH, NOT_COMPARED, NOT_ON_DEVICES, READ_ON_THE_HOST

KINDS = (
    "exists",
    "forward",
    "backward",
    "double-backward",
    "forward-AD",
    "in-place",
    "method",
    "out",
    "vmap",
    "errors",
    "stays",
)
Results = Mapping[str, Mapping[str, Any]]


def count(results: Results, kind: str) -> tuple[int, int]:
    """Give how many entries pass a kind, and how many have it."""
    tried = [result[kind] for result in results.values() if kind in result]
    return sum(tally["failed"] == 0 for tally in tried), len(tried)


def table(families: Mapping[str, str], results: Results) -> list[str]:
    """Lay out passes by family and kind."""
    names = sorted(set(families.values()))
    width = max(len(name) for name in [*names, "family"])
    lines = [f"{'family':{width}} entries " + " ".join(f"{kind:>15}" for kind in KINDS)]
    for family in names:
        members = {name: result for name, result in results.items() if families[name] == family}
        cells = [_cell(*count(members, kind)) for kind in KINDS]
        lines.append(f"{family:{width}} {len(members):7} " + " ".join(f"{cell:>15}" for cell in cells))
    return lines


def _cell(passed: int, tried: int) -> str:
    return f"{passed}/{tried}" if tried else "-"


def failures(results: Results, at_most: int) -> list[str]:
    """Say each failing kind of each entry in words."""
    lines = []
    for name, result in results.items():
        for kind, tally in result.items():
            if tally["failed"]:
                lines.append(f"{name}: {kind}: {tally['failed']} of {tally['tried']} fail")
                lines += [f"    {failure}" for failure in tally["failures"][:at_most]]
    return lines


def last_line(results: Results, missing_names: int) -> str:
    """Sum up a run in one line."""
    counts = ", ".join(f"{kind} {_cell(*count(results, kind))}" for kind in KINDS)
    return f"{len(results)} entries: {counts}; {missing_names} public names missing"


_HEADINGS = ("value", "gradient", "second order", "forward mode", "vmap", "in-place", "out=")
_COLUMNS = ("forward", "backward", "double-backward", "forward-AD", "vmap", "in-place", "out")
_LETTERS = {"float64": "d", "float32": "s", "complex128": "z", "int64": "i"}

_INTRODUCTION = """# Operations

What each operation supports, measured against PyTorch by `make conformance`, which writes this page.

A cell lists the dtypes for which all drawn samples agree with PyTorch: `d` float64, `s` float32, `z` complex128,
`i` int64. A letter in ~~strikes~~ means that a sample of this dtype differs. An empty cell: PyTorch has nothing to
compare with (no derivative, no such form). *value* covers values, dtypes, shapes and shared memory; *gradient*,
*second order* and *forward mode* are compared under random cotangents and tangents.
"""


_ON_A_DEVICE = """# Operations on the GPU

What each operation supports on the GPU, written by `make conformance DEVICE=cuda`: ours on the GPU beside PyTorch {version}
on the CPU and, where results are drawn at random or differ between devices, on the GPU.

A cell lists the dtypes for which all drawn samples agree: `d` float64, `s` float32, `z` complex128, `i` int64. A letter in
~~strikes~~ means that a sample of this dtype differs. An empty cell: there is nothing to compare with. *stays*: nothing is
copied to the host on the way, forward and backward, unless PyTorch waits for the GPU there too.
"""


def document(families: Mapping[str, str], results: Results, missing: Mapping[str, list[str]], device: str = "") -> str:
    """Write the page of coverage."""
    parts = [_introduction(device), _summary(families, results, device)]
    for family in sorted(set(families.values())):
        members = [name for name in results if families[name] == family]
        parts.append(_section(family, members, results, device))
    parts += [_read_on_the_host()] if device else [_missing(missing), _not_compared()]
    return "\n".join(parts)


def _introduction(device: str) -> str:
    if not device:
        return _INTRODUCTION
    import torch

    return _ON_A_DEVICE.replace("{version}", torch.__version__)


def _headings(device: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What stands above the columns, and the kinds in them."""
    return ((*_HEADINGS, "stays"), (*_COLUMNS, "stays")) if device else (_HEADINGS, _COLUMNS)


def _read_on_the_host() -> str:
    lines = ["## What waits for the GPU where PyTorch does not", ""]
    lines += [f"- {_named(names)}: {reason}." for reason, names in _by_reason(READ_ON_THE_HOST).items()]
    lines += ["", "## What is not compared on the GPU", ""]
    lines += [f"- {_named(names)}: {reason}." for reason, names in _by_reason(NOT_ON_DEVICES).items()]
    return "\n".join(lines) + "\n"


def _named(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _by_reason(listed: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, reason in listed.items():
        found.setdefault(reason, []).append(name)
    return found


def _summary(families: Mapping[str, str], results: Results, device: str) -> str:
    headings, columns = _headings(device)
    lines = ["| family | entries | " + " | ".join(headings) + " |", "|---|---|" + "---|" * len(headings)]
    for family in [*sorted(set(families.values())), "all"]:
        members = {name: result for name, result in results.items() if family in ("all", families[name])}
        cells = [_cell(*count(members, column)) for column in columns]
        lines.append(f"| {family} | {len(members)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _section(family: str, names: list[str], results: Results, device: str) -> str:
    headings, columns = _headings(device)
    lines = [f"## {family[0].upper()}{family[1:]}", ""]
    lines += ["| operation | " + " | ".join(headings) + " |", "|---|" + "---|" * len(headings)]
    for cells, members in _grouped(names, results, columns).items():
        lines.append(f"| {', '.join(f'`{name}`' for name in members)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _grouped(names: list[str], results: Results, columns: tuple[str, ...]) -> dict[tuple[str, ...], list[str]]:
    """Operations with the same support share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(names):
        result = results[name]
        missing = result.get("exists", {}).get("failed", 0)
        cells = tuple("missing" if missing else _support(result.get(column)) for column in columns)
        rows.setdefault(cells, []).append(name)
    return rows


def _support(tally: Mapping[str, Any] | None) -> str:
    if tally is None:
        return ""
    if not tally["dtypes"]:
        return "~~fails~~"
    letters = [(_LETTERS.get(dtype, dtype), passed) for dtype, passed in tally["dtypes"].items()]
    return " ".join(letter if passed else f"~~{letter}~~" for letter, passed in letters)


def _not_compared() -> str:
    lines = ["## What is not compared", ""]
    lines += [f"- `{name}`, {kind}: {reason}." for (name, kind), reason in NOT_COMPARED.items()]
    lines += [f"- `{name}` is compared with less precision: {reason}." for name, reason in INEXACT_IN_PYTORCH.items()]
    return "\n".join(lines) + "\n"


def _missing(missing: Mapping[str, list[str]]) -> str:
    lines = ["## Names that PyTorch has and pullback has not", ""]
    for namespace, names in missing.items():
        if names:
            lines.append(f"- `{namespace}`: " + ", ".join(f"`{name}`" for name in names))
    return "\n".join(lines if len(lines) > 2 else [*lines, "None."]) + "\n"
