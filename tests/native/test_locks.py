from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from pullback.native.locks import imported_elsewhere

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@pytest.fixture
def slow_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """A module of the package whose import takes a while; the event that it has begun."""
    import pullback

    (tmp_path / "slow_module.py").write_text(
        "import threading, time, pullback\npullback._begun.set()\ntime.sleep(0.3)\n"
    )
    monkeypatch.setattr(pullback, "__path__", [*pullback.__path__, str(tmp_path)])
    begun = threading.Event()
    monkeypatch.setattr(pullback, "_begun", begun, raising=False)
    monkeypatch.delitem(sys.modules, "pullback.slow_module", raising=False)
    return begun


def _import() -> None:
    import pullback.slow_module  # type: ignore[import-not-found]  # noqa: F401


def test_a_fork_waits_for_a_module_that_another_thread_imports(slow_module: threading.Event) -> None:
    thread = threading.Thread(target=_import)
    thread.start()
    assert slow_module.wait(60)
    assert imported_elsewhere() == ["pullback.slow_module"]
    child = os.fork()
    if child == 0:
        os._exit(len(imported_elsewhere()))
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    del sys.modules["pullback.slow_module"]


def test_a_thread_that_imports_may_fork(slow_module: threading.Event, tmp_path: Path) -> None:
    with (tmp_path / "slow_module.py").open("a") as file:
        file.write("import os\nchild = os.fork()\nif child == 0:\n    os._exit(0)\nstatus = os.waitpid(child, 0)[1]\n")
    _import()
    assert sys.modules.pop("pullback.slow_module").status == 0
