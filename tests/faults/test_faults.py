"""Faults leave switches, versions, gradients and graphs as they were: a few of those that `make faults` plants."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.autograd import forward_ad, graph
from pullback.autograd.numerical_jacobian import central_difference
from pullback.backend.configuration import compiled_modules
from pullback.modes.switches import set_switch
from pullback.native import extension
from pullback.utils.flop_counter import FlopCounterMode
from tests.faults.__main__ import PLANTERS, complete_run, examine, places_of, repair
from tests.faults.planting import Interrupt, InterruptPlanter
from tests.faults.scenarios import SCENARIOS, Made
from tests.faults.state import switches_now

# A fault that meets a generator while it is closed has nobody to go to: Python tells of it and goes on.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
needs_guards = pytest.mark.skipif(extension is None, reason="guards are part of the compiled kernels")

BLOCKS: dict[str, Callable[[], Any]] = {
    "no_grad": pullback.no_grad,
    "enable_grad": pullback.enable_grad,
    "set_grad_enabled": lambda: pullback.set_grad_enabled(False),
    "inference_mode": pullback.inference_mode,
    "autocast": lambda: pullback.autocast("cpu"),
    "detect_anomaly": pullback.autograd.detect_anomaly,
    "set_detect_anomaly": lambda: pullback.autograd.set_detect_anomaly(True),
    "set_multithreading_enabled": lambda: pullback.autograd.set_multithreading_enabled(False),
    "dual_level": forward_ad.dual_level,
    "set_fwd_grad_enabled": lambda: forward_ad._set_fwd_grad_enabled(False),
    "saved_tensors_hooks": lambda: graph.saved_tensors_hooks(lambda kept: kept, lambda kept: kept),
    "save_on_cpu": graph.save_on_cpu,
    "disable_saved_tensors_hooks": lambda: graph.disable_saved_tensors_hooks("no"),
    "allow_mutation_on_saved_tensors": graph.allow_mutation_on_saved_tensors,
    "device": lambda: pullback.device("cpu"),
    "profile": pullback.autograd.profiler.profile,
    "FlopCounterMode": lambda: FlopCounterMode(display=False),
}


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
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("block", BLOCKS)
def test_an_interrupt_anywhere_in_entering_and_leaving_leaves_the_block(block: str) -> None:
    def run() -> None:
        with BLOCKS[block]():
            pass

    run()  # what is made on first use
    counting = InterruptPlanter()
    counting.run(run)
    before = switches_now()
    for at in range(1, counting.reached + 1):
        with contextlib.suppress(Interrupt):
            InterruptPlanter(at).run(run)
        assert switches_now() == before, at


@needs_guards
def test_an_interrupt_of_finite_differences_leaves_the_input_where_it_was() -> None:
    x = pullback.tensor([1.0, 2.0], dtype=pullback.float64, requires_grad=True)
    direction = pullback.tensor([1.0, 0.0], dtype=pullback.float64)

    def run() -> None:
        central_difference(lambda: [x], x, direction, 0.5)

    run()
    counting = InterruptPlanter()
    counting.run(run)
    for at in range(1, counting.reached + 1):
        with contextlib.suppress(Interrupt):
            InterruptPlanter(at).run(run)
        assert x.tolist() == [1.0, 2.0], at
