"""Faults planted on purpose are caught: in values, dtypes, shapes, memory, gradients, tangents, refusals."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the conformance extra is not installed")
pytest.importorskip("expecttest", reason="PyTorch's operator database needs it")

from .planted import FAULTS, Fault, is_caught


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_fault_is_caught(fault: Fault) -> None:
    assert is_caught(fault)
