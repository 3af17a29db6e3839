"""Each test begins with nothing noted: Note [Unpromised bits] is about the process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pullback.backend.unpromised_bits import UnpromisedBits


@pytest.fixture(autouse=True)
def nothing_unpromised() -> Iterator[None]:
    UnpromisedBits.found.clear()
    yield
    UnpromisedBits.found.clear()
