"""Writes the stubs, or with --check says which are not fresh."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.stubs.modules import module_stub, public_name_stubs, return_types_stub, tensor_stub

FOLDER = Path(__file__).parent.parent.parent / "src" / "pullback-stubs"
_BY_SCHEMA = {"pullback": "", "pullback.linalg": "linalg_", "pullback.fft": "fft_", "pullback.special": "special_"}
_LAZY = ("pullback.autograd", "pullback.nn", "pullback.nn.functional", "pullback.nn.utils")


def stubs() -> dict[str, str]:
    """The text of every stub, by its path."""
    made = {
        **public_name_stubs(),
        "tensor/tensor.pyi": tensor_stub(),
        "return_types.pyi": return_types_stub(),
        "tensor/__init__.pyi": "# Holds nothing itself; jedi does not look into folders without this file.\n",
        "py.typed": "partial\n",
    }
    for name, prefix in _BY_SCHEMA.items():
        made[_path_of(name)] = module_stub(name, prefix, by_schema=True)
    for name in _LAZY:
        made[_path_of(name)] = module_stub(name)
    return made


def _path_of(module: str) -> str:
    source = FOLDER.parent / module.replace(".", "/")
    inner = "/".join(module.split(".")[1:])
    return f"{inner}/__init__.pyi".lstrip("/") if source.is_dir() else f"{inner}.pyi"


def main(arguments: list[str]) -> int:
    """Write what differs; with --check, only name it."""
    stale = [p for p, text in stubs().items() if not (FOLDER / p).exists() or (FOLDER / p).read_text("utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            print(f"src/pullback-stubs/{path} is not fresh: run `python -m tools.stubs`")
        return bool(stale)
    for path in stale:
        (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / path).write_text(stubs()[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
