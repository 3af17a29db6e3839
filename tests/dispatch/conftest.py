"""Classes that these tests record operations on must not make other tests' backward passes look out for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pullback.modes.interception import dispatch


@pytest.fixture(autouse=True)
def forget_dispatching_classes() -> Iterator[None]:
    yield
    dispatch.is_recorded = False
