"""What the tests of compiled kernels can ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import pullback.native


@pytest.fixture(params=[4, 3, 1], ids=["v4", "v3", "base"])
def instruction_set(request: Any) -> Iterator[None]:
    """Run with the vectors of each instruction set up to the one that the processor has."""
    extension = pullback.native.extension
    if extension is None:
        yield
        return
    extension.limit_instruction_set(request.param)
    yield
    extension.limit_instruction_set(4)
