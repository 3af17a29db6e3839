"""Writes `module_names.txt`, PyTorch's modules, and `missing_names.txt`, the names that pullback's modules lack.

A name may be had elsewhere: where PyTorch's two modules share one object and pullback has it in the other one only, the
entry says so (`name@module`). Run as `python -m tools.missing_names`, with PyTorch installed.
"""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
import typing
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

SOURCE = Path(__file__).parent.parent / "src"
TARGET = SOURCE / "pullback" / "pytorch" / "missing_names.txt"
TORCH_MODULES = SOURCE / "pullback" / "pytorch" / "module_names.txt"
INTERNAL = (
    "testing._internal", "_inductor", "_dynamo", "_export", "_functorch", "_higher_order_ops", "_prims", "_refs", "ao.",
    "_subclasses", "fx.", "onnx.",
)  # fmt: skip
"""Parts of PyTorch whose own imports nobody imports from there."""

Names = dict[str, dict[str, int]]
"""Per module: each name with a number that says which object it is; 0 for numbers, texts and the like."""


def collect_modules() -> list[str]:
    """PyTorch's modules: its files, and what it puts into `sys.modules` besides."""
    root = Path(str(importlib.import_module("torch").__file__)).parent
    names = {".".join(path.relative_to(root).with_suffix("").parts) for path in root.rglob("*.py")}
    _import_all()
    names |= {name.removeprefix("torch.") for name in sys.modules if name.startswith("torch.")}
    names = {name.removesuffix(".__init__") for name in names}
    kept = (
        n for n in names if all(map(str.isidentifier, n.split("."))) and not n.startswith(("_vendor", "bin", "lib."))
    )
    return sorted(set(kept) - {"__init__"})


def collect_torch() -> Names:
    """The names of PyTorch's modules that are its own."""
    kept: list[object] = []  # keeps every object alive, so that no two share an id
    table: Names = {}
    for name, module in _import_all().items():
        table[name] = {}
        for attribute in dir(module):
            value = None if attribute.startswith("__") else getattr(module, attribute, None)
            if value is None or not _is_torchs(attribute, value):
                continue
            kept.append(value)
            table[name][attribute] = id(value) if isinstance(value, type) or callable(value) else 0
    return table


def collect_pullback(wanted: Names) -> Names:
    """Which of the wanted names pullback's modules have: 1 if so; modules that pullback lacks are absent."""
    sys.path.insert(0, str(SOURCE))
    pullback = importlib.import_module("pullback")
    missing_names = importlib.import_module("pullback.missing_names")
    vars(missing_names)["_missing_names"] = dict
    pullback.install_as_torch()
    stub = missing_names.StubModule("torch.stub")
    table: Names = {}
    for name, module in _import_all().items():
        if not isinstance(module, missing_names.StubModule) and name in wanted:
            has = (a for a in wanted[name] if not isinstance(getattr(module, a, stub), type(stub)))
            table[name] = dict.fromkeys(has, 1)
    return table


def _import_all() -> dict[str, ModuleType]:
    modules = {}
    for name in [".", *TORCH_MODULES.read_text(encoding="utf-8").split()]:
        try:
            modules[name] = importlib.import_module("torch" if name == "." else f"torch.{name}")
        except (Exception, SystemExit):
            continue  # needs a library or a device that is not here
    return modules


def _is_torchs(name: str, value: Any) -> bool:
    """Whether a module that has `value` by this name made it, as far as that can be seen."""
    if isinstance(value, ModuleType) or hasattr(typing, name):
        return False
    home = getattr(value, "__module__", None)
    return not isinstance(home, str) or home.partition(".")[0] in {
        "torch",
        "builtins",
        "typing",
        "types",
        "collections",
    }


def missing_names(torch_names: Names, own_names: Names) -> list[str]:
    """The lines of the file: a module, then its missing names."""
    homes: dict[int, str] = {}
    for module, names in own_names.items():
        for name in names:
            identity = torch_names[module][name]
            if identity and (identity not in homes or len(module) < homes[identity].index(" ")):
                homes[identity] = f"{module} {name}"
    lines = []
    for module, names in sorted(torch_names.items()):
        entries = []
        for name, identity in sorted(names.items()):
            home, _, home_name = homes.get(identity, "").partition(" ")
            if name in own_names.get(module, ()):
                continue
            if home_name == name:
                entries.append(f"{name}@{home}")
            elif module in own_names:
                entries.append(name)
        if entries and (module in own_names or not module.startswith(INTERNAL)):
            lines.append(" ".join([module, *entries]))
    return lines


def _collect_apart(which: str, given: str = "") -> Names:
    command = [sys.executable, "-m", "tools.missing_names", which]
    output = subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout
    result: Names = json.loads(output)
    return result


def main(arguments: list[str]) -> None:
    """Write the file; with an argument, print one side's names for the process that does."""
    if not arguments:
        modules = _collect_apart("modules")["modules"]
        TORCH_MODULES.write_text("\n".join(modules) + "\n", encoding="utf-8")
        torch_names = _collect_apart("torch")
        lines = missing_names(torch_names, _collect_apart("pullback", json.dumps(torch_names)))
        TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{TARGET.name}: {sum(len(line.split()) - 1 for line in lines)} names of {len(lines)} modules")
        return
    given = sys.stdin.read()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if arguments == ["modules"]:
            names: Names = {"modules": dict.fromkeys(collect_modules(), 0)}
        else:
            names = collect_torch() if arguments == ["torch"] else collect_pullback(json.loads(given))
    print(json.dumps(names))


if __name__ == "__main__":
    main(sys.argv[1:])
