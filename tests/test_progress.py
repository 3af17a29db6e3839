"""Progress is shown to who looks, of what takes long, once."""

from __future__ import annotations

import re
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import pullback
from pullback import progress
from pullback.autograd.functional import jacobian
from pullback.autograd.gradcheck import gradcheck
from pullback.func import hessian, jacrev


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_PROGRESS", "1")
    monkeypatch.setattr(progress, "DELAY", -1.0)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)


def test_nothing_is_shown_where_nobody_looks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PULLBACK_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "DELAY", -1.0)
    items = range(3)
    assert progress.track(items, 3, "work") is items
    assert capsys.readouterr().err == ""


def test_a_terminal_and_a_notebook_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULLBACK_PROGRESS", raising=False)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    assert progress.is_watched()
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: False))
    assert not progress.is_watched()
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=1)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert progress.is_watched()
    monkeypatch.setenv("PULLBACK_PROGRESS", "0")
    assert not progress.is_watched()


@pytest.mark.usefixtures("watched")
def test_a_line_is_drawn_and_taken_away(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress.track(range(4), 4, "work")) == [0, 1, 2, 3]
    written = capsys.readouterr().err
    assert "work [" in written
    assert "/4" in written
    assert written.endswith("\r")


@pytest.mark.usefixtures("watched")
def test_work_inside_of_shown_work_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in progress.track(range(2), 2, "outer"):
        list(progress.track(range(2), 2, "inner"))
    assert "inner" not in capsys.readouterr().err


def test_what_is_quick_is_not_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_PROGRESS", "1")
    monkeypatch.setattr(progress, "DELAY", 60.0)
    list(progress.track(range(100), 100, "work"))
    assert capsys.readouterr().err == ""


def test_tqdm_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_PROGRESS", "1")
    monkeypatch.setattr(progress, "DELAY", -1.0)
    calls: list[Any] = []

    class Bar:
        def __init__(self, **options: Any) -> None:
            calls.append(options)

        def update(self, count: int) -> None:
            calls.append(count)

        def close(self) -> None:
            calls.append("closed")

    auto: Any = ModuleType("tqdm.auto")
    auto.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    for _ in progress.track(range(3), 3, "work"):
        time.sleep(0.001)
    assert calls == [{"total": 3, "desc": "work", "initial": 0, "leave": False}, 1, 1, 1, "closed"]


@pytest.mark.usefixtures("watched")
def test_an_error_takes_the_line_away_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError):
        _ = [1 / (number - 2) for number in progress.track(range(4), 4, "work")]
    list(progress.track(range(2), 2, "later"))
    assert "later" in capsys.readouterr().err


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize(
    ("words", "run"),
    [
        ("finite differences", lambda x: gradcheck(pullback.sin, (x,))),
        ("rows of the Jacobian", lambda x: jacrev(pullback.sin, chunk_size=1)(x)),
        ("chunks", lambda x: jacrev(pullback.sin, chunk_size=2)(x)),
        ("rows of the Jacobian", lambda x: hessian(lambda y: y.sin().sum())(x) is None or
            jacobian(pullback.sin, x)),
    ],
)  # fmt: skip
def test_long_work_says_how_far_it_is(words: str, run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(pullback.linspace(0, 1, 5, dtype=pullback.float64).requires_grad_())
    assert words in capsys.readouterr().err


@pytest.mark.usefixtures("watched")
def test_a_call_that_is_compiled_shows_how_long_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []

    def slow_step(x: Any) -> Any:
        while "slow_step" not in "".join(shown):
            time.sleep(0.01)
            shown.append(capsys.readouterr().err)
        return x * 2

    pullback.compile(slow_step)(pullback.ones(2))
    written = "".join(shown) + capsys.readouterr().err
    assert re.search(r"\rcompiling slow_step \d+ s ", written)
    assert written.endswith("\r")


def test_a_call_that_is_compiled_shows_nothing_where_nobody_looks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULLBACK_PROGRESS", "0")
    monkeypatch.setattr(progress, "DELAY", -1.0)

    def slow_step(x: Any) -> Any:
        time.sleep(0.5)
        return x * 2

    pullback.compile(slow_step)(pullback.ones(2))
    assert capsys.readouterr().err == ""
