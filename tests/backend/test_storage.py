"""Arrays as views of the memory they share."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.backend.storage import bytes_over, check_geometry, contiguous_strides, strided_view, view_of_storage

BASE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "array",
    [BASE, BASE[1], BASE[:, 1:, ::2], BASE.transpose(2, 0, 1), np.asfortranarray(BASE), np.array(3.0),
     np.ones((2, 2), np.complex64).imag, np.broadcast_to(np.ones((3, 1)), (3, 4)), BASE[::-1], np.ones((0, 3)),
     np.lib.stride_tricks.as_strided(BASE, (2, 2), (4, 4)), np.frombuffer(bytearray(16), np.float64)],
)  # fmt: skip
def test_a_view_is_made_again_from_its_description(array: np.ndarray) -> None:
    view = view_of_storage(array)
    actual = strided_view(view.data, array.dtype, view.offset, array.shape, view.stride)
    np.testing.assert_array_equal(actual, array)


def test_views_of_one_memory_have_one_key() -> None:
    keys = {view_of_storage(array).key for array in (BASE, BASE[1], BASE.T, np.lib.stride_tricks.as_strided(BASE))}
    assert len(keys) == 1
    assert view_of_storage(np.ones(3)).key not in keys


def test_empty_arrays_share_nothing() -> None:
    first, second = np.ones(0), np.ones(0)
    assert view_of_storage(first).key != view_of_storage(second).key


def test_contiguous_strides_are_those_of_numpy() -> None:
    assert contiguous_strides((2, 3, 4)) == (12, 4, 1)
    assert contiguous_strides((2, 0, 4)) == (4, 4, 1)
    assert contiguous_strides(()) == ()


@pytest.mark.parametrize(
    ("offset", "size", "stride"), [(0, (7,), (1,)), (6, (1,), (1,)), (0, (2, 2), (5, 1)), (2**70, (1,), (1,))]
)
def test_geometry_outside_of_the_storage_is_refused(
    offset: int, size: tuple[int, ...], stride: tuple[int, ...]
) -> None:
    with pytest.raises(RuntimeError, match="out of bounds"):
        check_geometry(6, offset, size, stride)


def test_bytes_over_a_buffer_share_it() -> None:
    buffer = bytearray(b"abcd")
    bytes_over(buffer, 1, 2)[0] = ord("x")
    assert buffer == b"axcd"
