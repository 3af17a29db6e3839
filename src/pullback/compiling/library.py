"""Compiles loops with the machine's C compiler while a program runs, and keeps what was compiled on disk.

# Note [Compiled loops on disk]
The folder is `PULLBACK_CACHE_DIR`, else `pullback` in the user's cache folder. A library's name is made of the text, the
flags, the compiler, the processor and the version, and of what is in it: a file that was cut short or changed is not
loaded. It is written under another name and renamed, so that processes do not meet a half of it. Where the folder
cannot be used, a temporary one is. The oldest files go when there are too many.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pullback.backend.c_types import ctypes
from pullback.native import usable_threads
from pullback.version import __version__

FLAGS = (
    "-O2", "-march=native", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fwrapv",
    "-fvisibility=hidden", "-std=gnu11", "-w", "-fPIC", "-shared", "-g0", "-fno-sanitize=all",
)  # fmt: skip
"""`omp simd` vectorises where it stands, at any level. At `-O1` gcc takes 0.75 of the time, and loops with exponentials up
to 1.37 of theirs. Zig's compiler adds checks unless it is told not to."""
_MOST_FILES, _MOST_BYTES = 4000, 2**29
_NATIVE = Path(__file__).resolve().parent.parent / "native"


class CompilerFailed(Exception):
    """There is no C compiler, or it does not compile what it is given."""


def find_compiler() -> tuple[str, ...] | None:
    """The command of the C compiler: what CC says, with its arguments, or gcc, cc, clang, or that of the ziglang wheel."""
    if ctypes is None:
        return None  # what was compiled could not be loaded
    wanted = shlex.split(os.environ.get("CC", ""))
    for name, *arguments in [*([wanted] if wanted else []), ["gcc"], ["cc"], ["clang"]]:
        found = shutil.which(name)
        if found:
            return found, *arguments
    wheel = find_spec("ziglang")
    for folder in () if wheel is None else wheel.submodule_search_locations or ():
        found = shutil.which("zig", path=folder)
        if found:
            return found, "cc"
    return None


class Library:
    """Loops in memory, by their texts."""

    def __init__(self) -> None:
        self._addresses: dict[str, int] = {}
        self._loaded: list[Any] = []
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._fallback: Path | None = None

    def addresses(self, texts: list[str]) -> list[int]:
        """Where the loops of these texts are; those that are new are compiled."""
        with self._lock:
            new = [text for text in dict.fromkeys(texts) if text not in self._addresses]
            if new:
                self._add(new)
            return [self._addresses[text] for text in texts]

    def _add(self, texts: list[str]) -> None:
        parts = _shares(texts, min(usable_threads(), 4))
        if len(parts) == 1:
            loaded = [self._load(parts[0])]
        else:
            with ThreadPoolExecutor(len(parts)) as pool:
                loaded = list(pool.map(self._load, parts))
        for part, library in zip(parts, loaded, strict=True):
            self._loaded.append(library)
            for text in part:
                function = getattr(library, name_of(text))
                self._addresses[text] = ctypes.cast(function, ctypes.c_void_p).value or 0

    def _load(self, texts: list[str]) -> Any:
        """The library of some loops, from the folder or compiled."""
        compiler = find_compiler()
        if compiler is None:
            raise CompilerFailed("no C compiler was found: set CC, or install gcc, clang or pullback[compile]")
        source = preamble() + "".join(_exported(text) for text in texts)
        key = _key_of(source, compiler)
        folder = self.folder()
        for path in sorted(folder.glob(f"{key}-*.so")):
            library = _load_checked(path)
            if library is not None:
                return library
        return self._compile(source, compiler, key, folder)

    def _compile(self, source: str, compiler: tuple[str, ...], key: str, folder: Path) -> Any:
        with tempfile.TemporaryDirectory(prefix="pullback-") as work:
            text, made = Path(work, "loops.c"), Path(work, "loops.so")
            text.write_text(source, encoding="utf-8")
            command = [*compiler, *FLAGS, "-o", str(made), str(text), "-lm"]
            try:  # in a session of its own: Ctrl-C is meant for Python
                done = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    check=False,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                raise CompilerFailed(f"{shlex.join(compiler)} does not run: {error}") from error
            if done.returncode or not made.exists():
                raise CompilerFailed(f"{shlex.join(compiler)} fails: {done.stderr[:2000]}")
            content = made.read_bytes()
            for is_fallback in (False, True):
                target = self._temporary() if is_fallback else folder
                path = target / f"{key}-{hashlib.sha256(content).hexdigest()[:16]}.so"
                try:
                    _write_whole(path, content)
                    library = ctypes.CDLL(str(path))
                except OSError:
                    self._folder = None
                    continue
                _limit(target)
                return library
        raise CompilerFailed("what was compiled cannot be loaded: set PULLBACK_CACHE_DIR to a folder that allows it")

    def folder(self) -> Path:
        """The folder of compiled loops; a temporary one where it cannot be written."""
        if self._folder is None:
            wanted = cache_folder()
            try:
                wanted.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=wanted):
                    pass
                self._folder = wanted
            except OSError:
                self._folder = self._temporary()
        return self._folder

    def _temporary(self) -> Path:
        """A folder that goes with the process, one for all that is compiled in it."""
        if self._fallback is None or not self._fallback.exists():
            self._fallback = Path(tempfile.mkdtemp(prefix="pullback-loops-"))
            atexit.register(shutil.rmtree, self._fallback, ignore_errors=True)
        return self._fallback

    def forget(self) -> None:
        """Look for the folder anew, and for every loop in it: for tests."""
        with self._lock:
            self._addresses.clear()
            self._folder = None


library = Library()


def cache_folder() -> Path:
    """Where compiled loops are kept between runs."""
    wanted = os.environ.get("PULLBACK_CACHE_DIR")
    if wanted:
        return Path(wanted)
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base, "pullback") if base else Path.home() / ".cache" / "pullback"


def name_of(text: str) -> str:
    """The name of a loop in its library."""
    return "loop_" + hashlib.sha256(text.encode()).hexdigest()[:24]


def _exported(text: str) -> str:
    name = name_of(text)
    named = re.sub(r"\bNAME(?=\(|_exact)", name, text)
    before, _, after = named.rpartition(f"void {name}(")
    return f'{before}__attribute__((visibility("default"))) void {name}({after}'


_preamble = ""


def preamble() -> str:
    """What all loops lean on: the functions of native/functions.h and native/special_functions.h, without Python."""
    global _preamble
    if not _preamble:
        text = [
            "#include <float.h>\n#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"
            "#define INLINE static inline __attribute__((always_inline))\n"
        ]
        for name in ("functions.h", "log_gamma.h", "special_functions.h"):
            text.append(re.sub(r'#include "[^"]*"\n', "", (_NATIVE / name).read_text(encoding="utf-8")))
        _preamble = "".join(text)
    return _preamble


def _shares(texts: list[str], count: int) -> list[list[str]]:
    """Texts in as many parts of like length as are worth a compiler each."""
    total = sum(len(text) for text in texts)
    count = max(1, min(count, total // 12000, len(texts)))
    parts: list[list[str]] = [[] for _ in range(count)]
    sizes = [0] * count
    for text in sorted(texts, key=len, reverse=True):
        least = sizes.index(min(sizes))
        parts[least].append(text)
        sizes[least] += len(text)
    return parts


def _key_of(source: str, compiler: tuple[str, ...]) -> str:
    told = "\0".join([source, *FLAGS, *compiler, _version_of(compiler[0]), _processor(), __version__])
    return hashlib.sha256(told.encode()).hexdigest()[:32]


_versions: dict[str, str] = {}


def _version_of(program: str) -> str:
    """Which compiler stands under a name: its file, size and time, which need no call of it."""
    if program not in _versions:
        try:
            told = os.stat(program)
            _versions[program] = f"{os.path.realpath(program)} {told.st_size} {told.st_mtime_ns}"
        except OSError:
            _versions[program] = ""
    return _versions[program]


def _processor() -> str:
    """What `-march=native` depends on."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine() + platform.processor()
    lines = [line for line in text.splitlines() if line.startswith(("flags", "model name", "Features"))]
    return platform.machine() + "".join(sorted(set(lines)))


def _load_checked(path: Path) -> Any:
    """A library whose content is what its name says; a damaged one is removed."""
    try:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest()[:16] == path.stem.rpartition("-")[2]:
            loaded = ctypes.CDLL(str(path))
            os.utime(path)
            return loaded
    except PermissionError:
        return None
    except OSError:
        pass
    with suppress(OSError):
        path.unlink()
    return None


def _write_whole(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except OSError:
        with suppress(OSError):
            os.unlink(name)
        raise


def _limit(folder: Path) -> None:
    """Remove the files that were used longest ago, where there are too many."""
    try:
        files = [(entry.stat(), entry.path) for entry in os.scandir(folder) if entry.name.endswith(".so")]
    except OSError:
        return
    total = sum(told.st_size for told, _ in files)
    if len(files) <= _MOST_FILES and total <= _MOST_BYTES:
        return
    files.sort(key=lambda pair: pair[0].st_mtime)
    for told, path in files[: len(files) // 4]:
        try:
            os.unlink(path)
        except OSError:
            continue
        total -= told.st_size
