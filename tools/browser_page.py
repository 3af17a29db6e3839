"""Puts the page that trains a network in a browser into a folder, with pullback's pure wheel: `make browser`.

    python -m tools.browser_page build/browser dist/pullback-0.1.0-py3-none-any.whl [FOLDER_OF_PYODIDE]

Pyodide (Python and NumPy for WebAssembly) is not part of the project. Its release, unpacked, goes into the folder
`pyodide` beside the page, by hand or as the third argument.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

PAGE = Path(__file__).parent.parent / "examples" / "browser" / "index.html"


def write_page(folder: Path, wheel: Path, pyodide: Path | None = None) -> None:
    """Write the page, the wheel and the file that names it."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(PAGE, folder)
    shutil.copy(wheel, folder)
    (folder / "files.json").write_text(json.dumps({"wheel": wheel.name}))
    if pyodide is not None:
        shutil.copytree(pyodide, folder / "pyodide", dirs_exist_ok=True)


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]]
    write_page(*given)
    there = "" if (given[0] / "pyodide").exists() else f" Put Pyodide's release into {given[0] / 'pyodide'} first."
    print(f"The page is in {given[0]}.{there} Show it with: python -m http.server -d {given[0]}")
