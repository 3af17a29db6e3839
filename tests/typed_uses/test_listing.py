from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize("module", ["autograd", "nn.utils", "masked", "utils", "multiprocessing", "nn.functional"])
def test_a_lazy_module_lists_all_of_its_names_before_their_first_use(module: str) -> None:
    program = f"import pullback.{module} as m; print(*dir(m))"
    listed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    loaded = import_module(f"pullback.{module}")
    assert set(getattr(loaded, "__all__", ())) <= set(listed)


def test_autograd_lists_what_users_look_for() -> None:
    listed = dir(import_module("pullback.autograd"))
    assert {"Function", "detect_anomaly", "graph", "forward_ad", "functional", "gradcheck"} <= set(listed)


def test_every_method_has_a_docstring_and_a_signature() -> None:
    import inspect

    from pullback import Tensor

    methods = [n for n in dir(Tensor) if not n.startswith("_") and callable(getattr(Tensor, n))]
    bare = [n for n in methods if not inspect.getdoc(getattr(Tensor, n))]
    unknown = []
    for name in methods:
        try:
            inspect.signature(getattr(Tensor, name))
        except ValueError:
            unknown.append(name)
    assert (bare, unknown) == ([], [])
