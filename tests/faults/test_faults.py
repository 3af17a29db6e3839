"""Faults leave switches, versions, gradients and graphs as they were: a few of those that `make faults` plants."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.backend.configuration import compiled_modules
from pullback.modes.switches import set_switch, switches
from pullback.native import extension
from tests.faults.__main__ import PLANTERS, complete_run, examine, places_of, repair
from tests.faults.planting import Interrupt, InterruptPlanter
from tests.faults.scenarios import SCENARIOS, Made

# A fault that meets a generator while it is closed has nobody to go to: Python tells of it and goes on.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
needs_guards = pytest.mark.skipif(extension is None, reason="guards are part of the compiled kernels")


@needs_guards
@pytest.mark.parametrize("kind", PLANTERS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_fault_leaves_nothing_behind(name: str, kind: str) -> None:
    make, planter = SCENARIOS[name], PLANTERS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        complete, places = complete_run(make), places_of(make, planter)
        found = {}
        for at in range(1, places + 1, max(places // 4, 1)):
            planted = planter(at)
            if wrong := examine(make, planted, complete):
                found[planted.place] = wrong
                repair()

    assert found == {}


def _plant_everywhere(make: Callable[[], Made]) -> list[str]:
    found = []
    for at in range(1, places_of(make, InterruptPlanter) + 1):
        found += examine(make, InterruptPlanter(at), {})
        repair()
    return found


def test_a_switch_that_is_not_put_back_is_noticed() -> None:
    def careless() -> Made:
        def run() -> None:
            former = set_switch("grad_mode", False)
            pullback.ones(2) * 2
            set_switch("grad_mode", former)

        return run, {}

    assert any("switches.grad_mode" in wrong for wrong in _plant_everywhere(careless))


@pytest.mark.skipif(
    "pullback.graph.in_place" in compiled_modules(), reason="no fault can be planted inside of a compiled module"
)
def test_a_tensor_that_is_half_written_is_noticed() -> None:
    def careless() -> Made:
        x = pullback.zeros(2)

        def run() -> None:
            for row in x:
                row.add_(1)

        return run, {"x": x}

    assert any("half written" in wrong for wrong in _plant_everywhere(careless))


@needs_guards
@pytest.mark.parametrize("block", [pullback.no_grad, pullback.inference_mode])
def test_an_interrupt_at_the_first_instruction_of_an_exit_leaves_the_block(block: Callable[[], Any]) -> None:
    def run() -> None:
        with block():
            pass

    counting = InterruptPlanter()
    counting.run(run)
    for at in range(1, counting.reached + 1):
        with pytest.raises(Interrupt):
            InterruptPlanter(at).run(run)
        assert switches.grad_mode
        assert not switches.inference_mode
