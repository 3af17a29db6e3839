"""How many kernels the stand-in serves, and which read values on the host."""

from __future__ import annotations

import ast
import builtins
import sys
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback.devices.loading import ON_HOST
from pullback.kernels.namespace import FILES
from tests.devices import sweep
from tests.devices.calls import CALLS
from tests.devices.fake_library import library

KERNELS = Path(pullback.__file__).parent / "kernels"
NOT_REACHED = {
    "add_product_of_halves": "a compiled product of 16 bits; declined here",
    "standard_gamma": "draws on the CPU",
    "standard_gamma_grad": "follows a draw on the CPU",
    "dirichlet_grad": "follows a draw on the CPU",
    "attention_bias": "of attention with biases on keys, without a sample",
    "broadcast_to": "only transforms call it",
    "xor_bits": "of hash_tensor, without a sample",
    "add_part": "compiled; the engine adds parts by its text",
    "newton_schulz": "of the optimizer Muon, without a sample",
    "as_value": "tells one value",
    "expit": "another name of sigmoid, which is called",
    "scatter_strided": "of gradients of views that overlap",
    "scale_arrays": "of GradScaler, which needs a GPU",
    "scale_into": "of DistributedDataParallel, which tests/distributed/checks/devices.py runs",
    "sobol_directions": "makes a table of integers on the CPU",
    "scramble_directions": "makes a table of integers on the CPU",
    "sobol_integers": "makes integers on the CPU",
    "fft_frequencies": "makes numbers of sizes alone",
    "general_cosine_window": "makes numbers of sizes alone",
    "bartlett_window_values": "makes numbers of sizes alone",
    "cosine_window_values": "makes numbers of sizes alone",
    "exponential_window_values": "makes numbers of sizes alone",
    "gaussian_window_values": "makes numbers of sizes alone",
    "kaiser_window_values": "makes numbers of sizes alone",
    "strided_positions": "makes positions of sizes alone, moved by `as_positions`",
}
"""Kernels that are marked but that neither samples nor calls bring to the device, and why."""


def marked_kernels() -> list[str]:
    """The kernels that hand over to a device's."""
    marks: dict[str, set[str]] = {}
    for path in KERNELS.glob("*.py"):
        for statement in ast.parse(path.read_text()).body:
            if isinstance(statement, ast.FunctionDef):
                marks[statement.name] = {ast.unparse(mark) for mark in statement.decorator_list}
    names = [name for text in FILES.values() for name in text.split()]
    return [name for name in names if marks.get(name, set()) & {"native", "by_device", "by_element"}]


@pytest.fixture(scope="module")
def kernels_run() -> set[str]:
    """The functions of kernels that run for the device in all samples and calls."""
    seen: set[str] = set()
    own = vars(builtins)

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_builtins is not own:
            seen.add(frame.f_code.co_name)

    pairs = list(zip(sweep.load_samples(None), sweep.load_samples("fake"), strict=True))
    sys.setprofile(note)
    try:
        for sample, other in pairs:
            sweep.run(other, sample.arrays(), "fake")
            if sample.complex:
                sweep.run(other, sample.arrays(complex=True), "fake")
        for call in CALLS.values():
            call("fake")
    finally:
        sys.setprofile(None)
    return seen


def test_all_marked_kernels_run_on_the_device_but_those_with_a_reason(kernels_run: set[str]) -> None:
    marked = marked_kernels()
    assert len(marked) > 500
    missing = [name for name in marked if name not in kernels_run and name not in ON_HOST]
    assert (sorted(set(missing) - set(NOT_REACHED)), sorted(set(NOT_REACHED) - set(missing))) == ([], [])
    assert len(marked) - len(missing) > 480


def test_elementwise_operations_and_products_read_nothing_on_the_host() -> None:
    x = pullback.randn(4, 4, device="fake", requires_grad=True)
    with library.strict():
        y = (x @ x.T + x.exp() * 2 - x.tanh()).softmax(1).sum(0)
        loss = (pullback.nn.functional.gelu(y) ** 2).mean()
        loss.backward()
        pullback.optim.SGD([x], lr=0.1, momentum=0.9).step()
    assert x.grad is not None
