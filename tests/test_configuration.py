"""`show_config` says how pullback was built."""

from __future__ import annotations

import numpy
import pytest

import pullback
from pullback.backend.configuration import describe_config, describe_kernels
from pullback.tensor import tensor_base


def test_show_config_names_the_array_library() -> None:
    assert f"NumPy {numpy.__version__}" in describe_config()


def test_show_config_says_what_is_compiled() -> None:
    compiled = not str(tensor_base.__file__).endswith(".py")
    assert ("pullback.tensor.tensor_base" in describe_config()) == compiled


def test_show_config_gives_the_number_of_threads() -> None:
    assert f"threads:  {pullback.get_num_threads()}" in describe_config()


def test_show_config_prints(capsys: pytest.CaptureFixture[str]) -> None:
    pullback.show_config()
    assert capsys.readouterr().out == describe_config() + "\n"


def test_a_slow_installation_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_NATIVE", "0")
    assert describe_config().splitlines()[-1].startswith("  faster:   PULLBACK_NATIVE=0 turns the compiled kernels off")


def test_kernels_that_were_compiled_in_little_time_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pullback.backend.configuration.quickly_compiled", lambda: True)
    assert describe_kernels(["add", "mul"]) == "2 in C, compiled in little time for tests: slower than installed ones"
    assert describe_kernels([]) == "of NumPy"
