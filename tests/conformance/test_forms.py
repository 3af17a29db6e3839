"""The comparison of forms notices faults planted on purpose, one for each thing that it looks at."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="the conformance extra is not installed")
pytest.importorskip("expecttest", reason="PyTorch's operator database needs it")

import pullback

from .entries import database
from .forms import compare_forms

Plant = Callable[[Any], Any]


def _changing(change: Callable[[Any], Any]) -> Plant:
    def plant(form: Any) -> Any:
        return lambda *arguments, **options: change(form(*arguments, **options))

    return plant


def _copied(result: Any) -> Any:
    return result.clone()


def _larger(result: Any) -> Any:
    with pullback.no_grad():
        return result.mul_(1.001) if result.is_floating_point() else result


def _counted_twice(result: Any) -> Any:
    with pullback.no_grad():
        return result.add_(0)


def _refusing_nothing(form: Any) -> Any:
    def faulty(*arguments: Any, **options: Any) -> Any:
        try:
            return form(*arguments, **options)
        except Exception:
            return arguments[0]

    return faulty


def _silent(form: Any) -> Any:
    def faulty(*arguments: Any, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return form(*arguments, **options)

    return faulty


def _differences(operation: str, form: str, plant: Plant) -> list[str]:
    entry = next(entry for entry in database() if entry.name == operation)
    _, differences = compare_forms(entry, (form,), plant)
    return [f"{situation}: {words}" for kind, situation, words in differences if kind == "differ"]


@pytest.mark.parametrize(
    ("operation", "form", "plant", "noticed"),
    [
        ("exp", "in_place", _changing(_copied), "plain"),
        ("exp", "in_place", _changing(_larger), "plain: result"),
        ("exp", "in_place", _changing(_counted_twice), "version of target"),
        ("exp", "in_place", _refusing_nothing, "leaf: RuntimeError"),
        ("exp", "out", _changing(_copied), "out: result"),
        ("exp", "out", _refusing_nothing, "out that requires grad: RuntimeError"),
        ("exp", "out", _silent, "warning of a resize: expected True"),
        ("exp", "method", _changing(_larger), "plain: result"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_the_fault_is_noticed(operation: str, form: str, plant: Plant, noticed: str) -> None:
    assert _differences(operation, form, lambda honest: honest) == []
    assert any(noticed in line for line in _differences(operation, form, plant))
