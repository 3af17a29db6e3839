"""Kernels that are found by their names have a declaration that says so."""

from pullback import kernels
from pullback.facts import names_with


def test_kernels_that_differentiate_gradients_are_declared() -> None:
    found = {name for name in dir(kernels) if name.endswith("_again") and not name.startswith("_")}
    assert found == {f"{name}_again" for name in names_with("again")}
