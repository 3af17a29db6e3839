"""Compiles what is hot, where it can: the C kernels of src/pullback/native and, with Cython, the hot Python modules.

Everything else about the package is in pyproject.toml. PULLBACK_COMPILE says how much: "all" (the default), "portable"
(all, and for processors of any age, which takes three times as long for the kernels: what is passed on to other machines),
"kernels" (as an editable install always does, so that Python sources can be changed), "quick" (these in half of the time,
for tests: `show_config` tells that these kernels are slower) or "0" for a pure wheel. Where the compiler is missing or
fails, a note is printed and the package is pure Python: the same source, slower. `pip install -v .` shows the progress.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.modified import newer_group

ROOT = Path(__file__).parent
COMPILE = os.environ.get("PULLBACK_COMPILE", "all")
KERNELS = "pullback.native.kernels"
RENDERED = Path("build", "rendered")
"""Where the C is that is made of the text of kernels and rules. See Note [Digests of sources]."""
SOURCES_ONLY = frozenset(("editable_wheel", "develop", "dist_info", "egg_info", "sdist"))
"""Commands that leave the Python sources to be run. (`editable_mode` is set too late: metadata are made before.)"""
DEPENDENCIES = ["-MMD"]
"""Has the compiler note beside each object which headers went into it: a change compiles what includes it, nothing else."""
REFUSED = ["-Werror=incompatible-pointer-types", "-Werror=implicit-function-declaration"]
"""Older compilers only warn of what clang, and gcc from 14 on, refuse."""
FLAGS = [
    "-O3",
    "-g0",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-fvisibility=hidden",
    *DEPENDENCIES,
    *REFUSED,
]
"""With -O2 tiles are not kept in registers: matrix products reach 40 GFLOP/s instead of 105 on one core."""
QUICK = ["-O1", "-fexpensive-optimizations", "-DQUICK_BUILD", "-Wno-maybe-uninitialized", *FLAGS[1:]]
"""Compile in half of the time. The second makes one rounding of a product and a sum, which -O1 alone leaves as two."""
MODULE_FLAGS = ["-O2", "-g0"]
MODULE_FLAGS_OF_GCC = [
    "-O1", "-g0", "-w", "-freorder-blocks-algorithm=stc", "-freorder-blocks-and-partition", "-finline-small-functions",
    "-findirect-inlining", "-fpartial-inlining", "-fipa-sra", "-fipa-ra", "-fstrict-aliasing", "-fcaller-saves",
    "-foptimize-sibling-calls", "-falign-functions", "-falign-jumps", "-falign-loops", "-falign-labels", "-fpeephole2",
    "-fschedule-insns2",
]  # fmt: skip
"""What -O2 has and the modules that Cython writes gain from: their code is calls and tests. They compile in 0.65 of the time
of -O2 and run as fast (-O1 alone takes half of it, and makes small operations slower by 4 %)."""
LINK_FLAGS = ["-Wl,-s"] if sys.platform == "linux" else []
"""Names of inner functions are left out of the libraries, which are smaller by a tenth."""
LONGEST = ("row_kernels", "reduction", "normalization", "convolution_v4", "elementwise_float32")
"""The files that take longest are compiled first: at the end no processor waits for the other."""
SANITIZED = ["-O1", "-g1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", *FLAGS[2:]]
"""Of the kernels that `make sanitize` tests: they report reads and writes outside of memory, and undefined behaviour."""


class WholeFamilies(build_py):
    """Writes families of operations in full that sources make on first use: nobody waits for them once installed."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            folder = str(Path(self.build_lib).resolve())
            command = [sys.executable, "-m", "pullback.recording.families", f"{folder}/pullback/generated"]
            path = os.pathsep.join([folder, *sys.path])  # NumPy is where the build finds it
            # Without kernels: those of an earlier build, with sanitizers say, need not load here.
            subprocess.run(command, env={**os.environ, "PYTHONPATH": path, "PULLBACK_NATIVE": "0"}, check=True)


class OptionalBuild(build_ext):
    """Builds the extension modules; where that fails, says so and leaves the Python sources to do the work."""

    def finalize_options(self) -> None:
        keeps_sources = SOURCES_ONLY.intersection(self.distribution.commands)
        if COMPILE in ("all", "portable") and self.distribution.ext_modules and not keeps_sources and not self.inplace:
            self.distribution.ext_modules += _cythonized()
        super().finalize_options()

    def run(self) -> None:
        compiler, extensions = self.compiler, self.extensions
        kernels = [extension for extension in extensions if extension.name == KERNELS]
        modules = [extension for extension in extensions if extension.name != KERNELS]
        built = []
        for what, group in (("kernels", kernels), ("modules", modules)):
            self.compiler, self.extensions = compiler, group  # a run puts an object into `compiler`
            if group and self._succeeds(what):
                built += group
        self.extensions = built
        if not built:
            self._call_it_pure()

    def _call_it_pure(self) -> None:
        """Tag the wheel as one for any machine: nothing in it is compiled."""
        self.distribution.ext_modules = []
        wheel: Any = self.distribution.command_obj.get("bdist_wheel")
        if wheel is not None:
            wheel.root_is_pure = True

    def _succeeds(self, what: str) -> bool:
        """Build all of these extension modules or, with a note, none: a mixture would not fit together."""
        try:
            super().run()
        except Exception as error:
            print(f"pullback: {what} not compiled, installing them as Python ({error})", file=sys.stderr)
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            return False
        return True

    def build_extensions(self) -> None:
        """Compile the files of one extension, and several extensions, side by side; those alone that changed."""
        for extension in self.extensions:
            if extension.name == KERNELS:
                subprocess.run([sys.executable, "-m", "tools.codegen", "--c", str(RENDERED)], cwd=ROOT, check=True)
                extension.sources += sorted(str(path) for path in RENDERED.glob("*.c"))
        compile_files = self.compiler.compile
        if self._is_gcc():
            for extension in self.extensions:
                if extension.name != KERNELS:
                    extension.extra_compile_args = MODULE_FLAGS_OF_GCC
        self.build_temp = os.path.join(self.build_temp, _digest_of_flags(self.extensions))
        self.force = self.compiler.force = (
            True  # link anew: a library that is there may have been built with other flags
        )
        progress = Progress(sum(len(extension.sources) for extension in self.extensions))

        def compile_in_parallel(sources: list[str], *arguments: Any, **options: Any) -> list[str]:
            def compile_one(source: str) -> list[str]:
                made = self.compiler.object_filenames([source], output_dir=options.get("output_dir") or "")
                if newer_group([source, *_included(made[0], options.get("depends") or ())], made[0], missing="newer"):
                    compile_files([source], *arguments, **options)
                progress.advance()
                return made

            with ThreadPoolExecutor(os.cpu_count()) as pool:
                return [file for files in pool.map(compile_one, sources) for file in files]

        self.compiler.compile = compile_in_parallel
        self.parallel = os.cpu_count() if len(self.extensions) > 1 else None
        super().build_extensions()

    def _is_gcc(self) -> bool:
        """Whether the compiler is GNU's, whatever it is called: clang does not know the names of its passes."""
        command = getattr(self.compiler, "compiler", None)
        if not command:
            return False
        version = subprocess.run([command[0], "--version"], capture_output=True, text=True, check=False)
        return "Free Software Foundation" in version.stdout


def _included(made: str, otherwise: Iterable[str]) -> Iterable[str]:
    """The headers that a file included when it was last compiled, as -MMD noted them; before that, all there are."""
    note = Path(made).with_suffix(".d")
    if not note.exists():
        return otherwise
    words = note.read_text(encoding="utf-8").replace("\\\n", " ").split()
    return [word for word in words[1:] if word.endswith(".h")]


class Progress:
    """A line for every tenth of the files that are compiled."""

    def __init__(self, files: int) -> None:
        self.files = files
        self.done = 0
        self.lock = Lock()

    def advance(self) -> None:
        with self.lock:
            self.done += 1
            if self.done * 10 // self.files > (self.done - 1) * 10 // self.files:
                print(f"pullback: {self.done} of {self.files} files compiled", file=sys.stderr, flush=True)


def _digest_of_flags(extensions: list[Any]) -> str:
    """What objects depend on besides their sources: those of other flags, or another NumPy, lie in another folder."""
    import numpy

    flags = sorted({flag for extension in extensions for flag in extension.extra_compile_args})
    return hashlib.sha1(repr((numpy.__version__, flags)).encode()).hexdigest()[:12]


def _cythonized() -> list[Any]:
    from tools.native_sources import TranslationError, write_sources

    print("pullback: translating the hot modules to C", file=sys.stderr, flush=True)
    target = Path("build", "native")
    written = write_sources(ROOT / "src", target)  # a text that it cannot translate ends the build
    try:
        from Cython.Build import cythonize

        return _hot_modules(cythonize, written, target)
    except TranslationError:
        raise
    except Exception as error:
        print(f"pullback: modules not compiled, installing them as Python ({error})", file=sys.stderr)
        return []


def _kernels() -> list[Any]:
    """The extension module of the C kernels."""
    if COMPILE == "0":
        return []
    try:
        import numpy
    except ImportError:
        print("pullback: NumPy's headers are missing, installing pure Python", file=sys.stderr)
        return []
    sanitized = os.environ.get("PULLBACK_SANITIZE") == "1"
    flags = QUICK if COMPILE == "quick" else FLAGS
    if platform.machine() in ("x86_64", "AMD64"):
        flags = [*flags, "-mprefer-vector-width=512"]
    if sanitized:
        flags = SANITIZED
    if COMPILE != "portable" and (target := _own_target()):
        flags = [*flags, f'-DONLY_TARGET="{target}"']
    folder = Path("src", "pullback", "native")
    return [
        Extension(
            KERNELS,
            sorted([str(path) for path in folder.glob("*.c")], key=lambda path: (Path(path).stem not in LONGEST, path)),
            depends=sorted(str(path) for path in folder.glob("*.h")),
            include_dirs=[numpy.get_include(), str(folder), str(RENDERED)],
            extra_compile_args=[] if sys.platform == "win32" else flags,
            extra_link_args=["-fsanitize=address,undefined"] if sanitized else LINK_FLAGS,
        )
    ]


def _own_target() -> str | None:
    """The instruction set of this machine as gcc calls it; None where it is not known.

    Elsewhere the kernels say which one they need, and NumPy's are used (PyInit_kernels in module.c).
    """
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return None
    has = {word for line in text.splitlines() if line.startswith("flags") for word in line.split()}
    if has >= {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}:
        return "arch=x86-64-v4"
    return "arch=x86-64-v3" if has >= {"avx2", "fma", "bmi2", "f16c"} else None


def _hot_modules(cythonize: Any, written: dict[str, Path], target: Path) -> list[Any]:
    """The extension modules made from Python sources, their C written to build/native."""
    import numpy

    from tools.native_sources import TYPED, name_python_sources

    made = []
    for typed in (True, False):
        modules = [
            Extension(
                module,
                [str(path)],
                include_dirs=[numpy.get_include()],
                extra_compile_args=[] if sys.platform == "win32" else MODULE_FLAGS,
                extra_link_args=LINK_FLAGS,
            )
            for module, path in written.items()
            if (module in TYPED) == typed
        ]
        directives = {"auto_pickle": False, "annotation_typing": typed}
        made += cythonize(
            modules,
            include_path=[str(target)],
            language_level=3,
            quiet=True,
            compiler_directives=directives,
            nthreads=(os.cpu_count() or 1) if sys.platform == "linux" else 0,
        )
    for module, path in written.items():
        name_python_sources(path.with_suffix(".c"), module)
    return sorted(made, key=lambda extension: -os.path.getsize(extension.sources[0]))  # see LONGEST


if __name__ == "__main__":  # Cython's processes may import this file
    sys.path.insert(0, str(ROOT))
    from tools.package_page import addresses, page_text, repository

    setup(
        long_description=page_text(ROOT / "README.md", repository()),
        long_description_content_type="text/markdown",
        project_urls=addresses(repository()),
        ext_modules=_kernels(),
        cmdclass={"build_ext": OptionalBuild, "build_py": WholeFamilies},
    )
