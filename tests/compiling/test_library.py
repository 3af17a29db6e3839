"""Compiled loops on disk: faults of the folder, of files in it and of the compiler cost time, never results."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pullback.compiling import backend, library
from pullback.compiling.library import Library
from pullback.compiling.program import Program, replay
from tests.compiling.kernel_recorder import KernelRecorder

TEXT = (
    "void NAME(char *const *places, const int32_t *at, const double *numbers, ptrdiff_t begin, ptrdiff_t end)\n"
    "{ for (ptrdiff_t i = begin; i < end; i++) ((float *)places[at[0]])[i] = exp_of((float)i); }\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    library.library.forget()
    yield tmp_path
    library.library.forget()


def program() -> tuple[Program, list[Any]]:
    recorder = KernelRecorder()
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = recorder.input(array)
    recorder.output(recorder.mul(recorder.exp(x), x))
    return recorder.program, [array]


def assert_right(runner: Any, recorded: Program, inputs: list[Any]) -> None:
    np.testing.assert_allclose(runner(inputs)[0], replay(recorded)(inputs)[0], rtol=1e-6)


def test_second_library_finds_what_the_first_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Library().addresses([TEXT])
    monkeypatch.setattr(subprocess, "run", None)
    assert Library().addresses([TEXT])[0]


def test_nothing_is_left_beside_the_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "temporary"
    other.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(other))
    Library().addresses([TEXT])
    assert not list(other.iterdir())


@pytest.mark.parametrize("content", [b"", b"no library", None])
def test_damaged_file_is_compiled_again(folder: Path, content: bytes | None) -> None:
    Library().addresses([TEXT])
    (path,) = folder.glob("*.so")
    damaged = path.read_bytes()[:2000] if content is None else content
    path.unlink()  # this process has it in memory
    path.write_bytes(damaged)
    assert Library().addresses([TEXT])[0]
    assert [file.stat().st_size > 4000 for file in folder.glob("*.so")] == [True]


def test_folder_that_cannot_be_made_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "file" / "folder"))
    assert Library().addresses([TEXT])[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder_is_done_without(folder: Path) -> None:
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert Library().addresses([TEXT])[0]


def test_threads_share_one_library(folder: Path) -> None:
    shared, found = Library(), []
    threads = [threading.Thread(target=lambda: found.append(shared.addresses([TEXT])[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(list(folder.glob("*.so"))) == 1


def test_processes_share_one_folder(folder: Path) -> None:
    code = f"from pullback.compiling.library import Library; print(Library().addresses([{TEXT!r}])[0] > 0)"
    running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0].strip() for process in running] == ["True", "True"]


def test_oldest_files_go_when_there_are_too_many(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        (folder / f"{number}.so").write_bytes(b"")
        os.utime(folder / f"{number}.so", (number, number))
    monkeypatch.setattr(library, "_MOST_FILES", 4)
    Library().addresses([TEXT])
    assert not (folder / "0.so").exists()
    assert (folder / "7.so").exists()


def test_failing_compiler_leaves_the_recorded_kernels(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "false")
    recorded, inputs = program()
    runner: Any = backend.build(recorded)
    assert not runner.is_compiled
    assert "fails" in runner.problem
    assert "not compiled" in runner.describe()
    assert_right(runner, recorded, inputs)


def test_compiler_may_have_arguments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = library.find_compiler()
    if found is None:
        pytest.skip("there is no C compiler")
    through = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    monkeypatch.setenv("CC", shlex.join([sys.executable, "-c", through, *found]))
    recorded, inputs = program()
    runner: Any = backend.build(recorded)
    runner.wait()
    assert runner.is_compiled
    assert_right(runner, recorded, inputs)


def test_compiler_of_a_wheel_serves_where_there_is_no_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program_of_wheel = folder / "ziglang" / "zig"
    program_of_wheel.parent.mkdir()
    (program_of_wheel.parent / "__init__.py").touch()
    program_of_wheel.write_text("#!/bin/sh\n")
    program_of_wheel.chmod(0o755)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.syspath_prepend(str(folder))
    assert library.find_compiler() == (str(program_of_wheel), "cc")


def test_no_compiler_is_told_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(backend._Told, "of_no_compiler", False)
    recorded, inputs = program()
    with pytest.warns(UserWarning, match="found no C compiler"):
        runner = backend.build(recorded)
    assert_right(runner, recorded, inputs)
    assert_right(backend.build(recorded), recorded, inputs)


def test_slow_compiler_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = threading.Event()
    addresses = library.library.addresses
    monkeypatch.setattr(library.library, "addresses", lambda texts: (begin.wait(60), addresses(texts))[1])
    monkeypatch.setattr(backend, "PATIENCE", 0.0)
    recorded, inputs = program()
    runner: Any = backend.build(recorded)
    assert_right(runner, recorded, inputs)
    assert not runner.is_compiled
    begin.set()
    runner.wait()
    assert runner.is_compiled
    assert_right(runner, recorded, inputs)
