"""Runs type checkers on tests/typed_uses/uses.txt: with pullback's stubs, or with PyTorch's to see their verdicts.

`python -m tests.typed_uses.checking [mypy|basedpyright] [torch]` prints the lines on which the verdict is not the mark.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
USES = Path(__file__).parent / "uses.txt"


def marked_lines() -> set[int]:
    """The lines that a checker must complain about."""
    return {n for n, line in enumerate(USES.read_text("utf-8").splitlines(), 1) if line.endswith("# wrong")}


def complained_lines(checker: str, library: str = "pullback") -> set[int]:
    """The lines that the checker complains about."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        text = USES.read_text("utf-8")
        if library == "pullback":
            _lay_out(place)
            text = re.sub(r"^(import|from) torch\b(?! as)", r"\1 pullback", text, flags=re.M)
            text = re.sub(r"^import pullback$", "import pullback as torch", text, flags=re.M)
        (place / "uses.py").write_text(text, "utf-8")
        return (_mypy if checker == "mypy" else _pyright)(place, checker)


def _lay_out(place: Path) -> None:
    """The package with its stubs beside its modules, as a checker finds them where both are installed."""
    source = ROOT / "src"
    shutil.copytree(source / "pullback", place / "pullback", ignore=shutil.ignore_patterns("*.c", "*.h", "*.so"))
    shutil.copytree(source / "pullback-stubs", place / "pullback", dirs_exist_ok=True)


def _mypy(place: Path, checker: str) -> set[int]:
    options = ["--strict", "--follow-imports=silent", "--cache-dir", str(place / ".cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "uses.py"], cwd=place, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert not re.search(r"^(?!uses\.py).*: error:", done.stdout, flags=re.M), done.stdout
    return {int(number) for number in re.findall(r"^uses\.py:(\d+): error", done.stdout, flags=re.M)}


def _pyright(place: Path, checker: str) -> set[int]:
    (place / "pyrightconfig.json").write_text('{"include": ["uses.py"], "typeCheckingMode": "standard"}')
    done = subprocess.run(
        [checker, "-p", str(place), "--pythonpath", sys.executable, "--outputjson"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {complaint["range"]["start"]["line"] + 1 for complaint in found if complaint["severity"] == "error"}


def main(arguments: list[str]) -> int:
    """Print the lines on which the checker's verdict is not the mark."""
    checker = arguments[0] if arguments else "mypy"
    marked, complained = marked_lines(), complained_lines(checker, *arguments[1:2])
    lines = USES.read_text("utf-8").splitlines()
    for number in sorted(marked ^ complained):
        print(f"{number}: {lines[number - 1]}: {'accepted' if number in marked else 'complained about'}")
    return bool(marked ^ complained)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
