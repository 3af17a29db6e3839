"""Command line: write src/pullback/generated and the rendered C, or with --check say whether they are up to date."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import ModuleType

if __name__ == "__main__":
    gc.disable()  # a third of the time, looking through syntax trees of which nothing is garbage
    # The generator shares `pullback.rules` with the package, and must run while generated code is missing or broken:
    # so it takes the package's folder without running the package.
    package = ModuleType("pullback")
    package.__path__ = [str(Path(__file__).resolve().parents[2] / "src" / "pullback")]
    sys.modules["pullback"] = package

    from tools.codegen.generator import main

    sys.exit(main(sys.argv[1:]))
