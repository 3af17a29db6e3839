"""Odd arrays lie inside of their memory, and are as odd as they say."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.sanitizing.__main__ import examine
from tests.sanitizing.odd_values import ARRAYS, odd_array, odd_call


@pytest.mark.parametrize("seed", range(60))
def test_an_odd_array_can_be_read_as_a_whole(seed: int) -> None:
    array = odd_array(np.arange(12, dtype=np.float32).reshape(3, 4), random.Random(seed))

    low, high = np.lib.array_utils.byte_bounds(array)
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    first, last = np.lib.array_utils.byte_bounds(owner)
    assert array.size == 0 or 1 in array.shape or (first <= low and high <= last)
    array.tolist()


def test_calls_of_one_seed_are_the_same() -> None:
    call = ((np.ones(3), 2), {"dim": 1})

    assert repr(odd_call(*call, random.Random(5))) == repr(odd_call(*call, random.Random(5)))


def test_every_way_to_be_odd_is_taken() -> None:
    made = [way(np.ones((2, 3), np.float32), random.Random(3)) for way in ARRAYS]

    assert any(not array.flags.aligned for array in made)
    assert any(not array.flags.writeable for array in made)
    assert any(not array.dtype.isnative for array in made)
    assert any(array.size == 0 for array in made)
    assert any(step < 0 for array in made for step in array.strides)


def test_a_kernel_that_changes_a_read_only_array_is_noticed() -> None:
    array = np.ones(3)
    array.flags.writeable = False

    def write(array: np.ndarray) -> None:
        array.flags.writeable = True
        array[0] = 2
        array.flags.writeable = False

    assert examine(write, (array,), {}) == "changed an array that is read-only"
    assert examine(np.sum, (array,), {}) is None
