"""Kernels that are found by their names have a declaration that says so."""

from pullback.facts import names_with
from pullback.kernels.namespace import FILES


def test_kernels_that_differentiate_gradients_are_declared() -> None:
    found = {name for names in FILES.values() for name in names.split() if name.endswith("_again")}
    assert found == {f"{name}_again" for name in names_with("again")}
