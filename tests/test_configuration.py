"""`show_config` says how pullback was built."""

from __future__ import annotations

import numpy

import pullback
from pullback.tensor import tensor_base


def test_show_config_names_the_array_library() -> None:
    assert f"NumPy {numpy.__version__}" in pullback.show_config()


def test_show_config_says_what_is_compiled() -> None:
    compiled = not str(tensor_base.__file__).endswith(".py")
    assert ("pullback.tensor.tensor_base" in pullback.show_config()) == compiled


def test_show_config_gives_the_number_of_threads() -> None:
    assert f"threads:  {pullback.get_num_threads()}" in pullback.show_config()
