"""Loads a file and says what is wrong with how that went."""

from __future__ import annotations

import pickle
import re
import signal
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pullback
from pullback.serialization.safetensors import SafetensorError

FREE_MEMORY, LARGEST_RATIO, LONGEST = 8 << 20, 500, 10
"""A load may take so many bytes, and so many more for every byte of the file; and so many seconds."""
REFUSALS = (RuntimeError, pickle.UnpicklingError, EOFError, ValueError, SafetensorError)
RECORDS = ("record", "data.pkl", "data/", "storage", "archive", "tensor `", "header", "tar checkpoint", "graph", "program",
           "magic number", "file ", "protocol", "endianness", "version")  # fmt: skip
"""One of these stands in every error: the part of the file that is wrong."""
CODE = ("exec", "compile", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen", "socket.connect",
        "open", "import", "shutil.rmtree", "os.remove", "os.mkdir", "ctypes.dlopen", "pickle.find_class")  # fmt: skip


class TooLong(BaseException):
    """A load that took longer than it may."""


def _stop(*_: Any) -> None:
    raise TooLong


class CodeWatch:
    """Notes which events of `sys.audit` tell that code is run, or files are opened, while it is on."""

    def __init__(self) -> None:
        self.is_on = False
        self.may_compile = False
        self.events: list[str] = []
        self.present: frozenset[str] = frozenset()
        "".encode("cp437")  # the encoding of names in archives is imported when it is first met
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on or event not in CODE or (self.may_compile and event in ("exec", "compile")):
            return
        if not any(_is_module_of_pullback(what) for what in arguments[:2]):
            self.events.append(f"{event} {arguments[:2]!r:.80}")

    def has_imported_what_is_named_in(self, content: bytes) -> bool:
        """Whether a module was imported that the file names, which is how a file gets code to run."""
        # A pickle has a letter of its own before such a name: c or i.
        return any(
            re.search(rb"((?<![\w.])|(?<=[ci]))" + re.escape(name.encode()) + rb"(?![\w.])", content)
            for name in sys.modules.keys() - self.present
        )


def _is_module_of_pullback(what: Any) -> bool:
    """Whether this is a module of pullback's own, its file or its code: some are imported when they are first needed."""
    return str(getattr(what, "co_filename", what)).startswith(("pullback.", str(Path(pullback.__file__).parent)))


def examine(content: bytes, load: Callable[[bytes], Any], watch: CodeWatch | None = None) -> str | None:
    """What is wrong with how the content was loaded; None where it was loaded or refused as it should be.

    The first file that needs some part of NumPy or of the standard library gets that part imported, which looks like
    code of the file's. Such a file is loaded a second time: what a file makes run, it makes run every time.
    """
    found = _examined(content, load, watch)
    if found and found.startswith("ran code") and watch and not watch.has_imported_what_is_named_in(content):
        found = _examined(content, load, watch)
    return found


def _examined(content: bytes, load: Callable[[bytes], Any], watch: CodeWatch | None) -> str | None:
    signal.signal(signal.SIGPROF, _stop)
    tracemalloc.start()
    signal.setitimer(signal.ITIMER_PROF, LONGEST)  # of the processor's time: the machine may be busy
    try:
        return _loaded(content, load, watch)
    except TooLong:
        return f"took longer than {LONGEST} seconds"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        tracemalloc.stop()


def _loaded(content: bytes, load: Callable[[bytes], Any], watch: CodeWatch | None) -> str | None:
    result, error = None, None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if watch is not None:
                watch.is_on, watch.events, watch.present = True, [], frozenset(sys.modules)
            result = load(content)
    except Exception as raised:
        error = raised
    finally:
        if watch is not None:
            watch.is_on = False
    peak = tracemalloc.get_traced_memory()[1]
    if watch is not None and watch.events:
        return f"ran code: {watch.events[0]}"
    if peak > FREE_MEMORY + LARGEST_RATIO * len(content):
        return f"took {peak} bytes of memory for a file of {len(content)}"
    if error is not None:
        return _wrong_error(error)
    return _wrong_tensors(result)


def _wrong_error(error: Exception) -> str | None:
    if not isinstance(error, REFUSALS):
        return f"raised {type(error).__name__}: {error!s:.200}"
    if len(str(error)) > 3000:
        return f"raised an error of {len(str(error))} characters"
    if not any(word in str(error) for word in RECORDS):
        return f"raised an error that does not name the record: {error!s:.300}"
    return None


def _wrong_tensors(result: Any) -> str | None:
    """Read every element of every tensor: outside of their memory this would end the process."""
    for tensor in _tensors(result, 0):
        if not isinstance(tensor._backward_hooks, (dict, type(None))):
            return "a tensor has hooks that are none"
        if tensor.numel() < 1_000_000:
            tensor.tolist()
    return None


def _tensors(value: Any, depth: int) -> Any:
    if isinstance(value, pullback.Tensor):
        yield value
    elif depth < 8 and isinstance(value, (list, tuple, dict, set)) and len(value) < 1000:
        for part in list(value.values()) if isinstance(value, dict) else list(value):
            yield from _tensors(part, depth + 1)
