"""Plain pickles and deep copies of tensors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from pullback.serialization.pullback_tensors import reduce_tensor
from pullback.tensor.tensor import Tensor, new_tensor


class Pickled:
    """Holds a tensor and pickles it by the functions under test."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __reduce__(self) -> Any:
        return reduce_tensor(self.tensor)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_views_share_memory_after_a_plain_pickle(protocol: int) -> None:
    values = np.arange(6.0).reshape(2, 3)
    whole, column = pickle.loads(
        pickle.dumps([Pickled(new_tensor(values)), Pickled(new_tensor(values[:, 1]))], protocol)
    )
    column._array[0] = 9
    assert whole._array.tolist() == [[0, 9, 2], [3, 4, 5]]
    assert column.stride() == (3,)


@pytest.mark.parametrize("array", [np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(4.0)[::-1], np.ones(0),
                                   np.array(True), np.ones(2, np.complex64).imag])  # fmt: skip
def test_every_layout_survives_a_plain_pickle(array: Any) -> None:
    actual = pickle.loads(pickle.dumps(Pickled(new_tensor(array))))
    assert actual._array.tolist() == array.tolist()
    assert actual._array.dtype == array.dtype


def test_requires_grad_and_attributes_survive_a_plain_pickle() -> None:
    original = new_tensor(np.ones(2)).requires_grad_()
    original.note = "kept"  # type: ignore[attr-defined]  # users set attributes on tensors
    actual = pickle.loads(pickle.dumps(Pickled(original)))
    assert actual.requires_grad
    assert actual.note == "kept"


def test_a_deep_copy_has_its_own_memory_and_keeps_what_was_shared() -> None:
    values = np.arange(4.0)
    original = new_tensor(values).requires_grad_()
    original._grad = new_tensor(np.ones(4))
    whole, part, again = copy.deepcopy([original, new_tensor(values[2:]), original])
    part._array[0] = 9
    assert whole._array.tolist() == [0, 1, 9, 3]
    assert values.tolist() == [0, 1, 2, 3]
    assert again is whole
    assert whole.requires_grad
    assert whole._grad is not original._grad
    assert whole._grad._array.tolist() == [1, 1, 1, 1]
