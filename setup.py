"""Compiles the hot modules where it is asked for: PULLBACK_COMPILE=1 pip install .

Everything else about the package is in pyproject.toml. Without the variable, without Cython, or where the C compiler
fails, the package is pure Python: the same source, slower on small tensors.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
COMPILE = os.environ.get("PULLBACK_COMPILE", "0") not in ("", "0")


class OptionalBuild(build_ext):
    """Builds all extension modules or, with a note, none: a mixture would not fit together."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or True  # one compiler per core

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        print(f"pullback: not compiled, installing pure Python ({error})", file=sys.stderr)
        for extension in self.extensions:
            Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
        self.extensions.clear()


def extensions() -> list[Any]:
    """The extension modules, their C sources written to build/native."""
    if not COMPILE:
        return []
    sys.path.insert(0, str(ROOT))
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("pullback: Cython is missing, installing pure Python", file=sys.stderr)
        return []
    try:
        return _cythonized(cythonize)
    except Exception as error:
        print(f"pullback: Cython failed, installing pure Python ({error})", file=sys.stderr)
        return []


def _cythonized(cythonize: Any) -> list[Any]:
    from tools.native_sources import TYPED, name_python_sources, write_sources

    target = Path("build", "native")
    written = write_sources(ROOT / "src", target)
    modules = [Extension(module, [str(path)], extra_compile_args=["-O2", "-g0"]) for module, path in written.items()]
    for extension in modules:
        extension.cython_directives = {"annotation_typing": extension.name in TYPED}
    made = cythonize(
        modules,
        include_path=[str(target)], language_level=3, quiet=True,
        compiler_directives={"auto_pickle": False},
    )  # fmt: skip
    for module, path in written.items():
        name_python_sources(path.with_suffix(".c"), module)
    return made  # type: ignore[no-any-return]  # Cython has no types


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": OptionalBuild},
    setup_requires=["cython>=3.1"] if COMPILE else [],
)
