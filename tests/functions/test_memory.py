"""Storages, other libraries' memory, sizes changed in place."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import pullback


def test_views_lie_in_one_storage() -> None:
    base = pullback.arange(6.0)
    view = base[2:]
    assert view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    assert view.data_ptr() == base.data_ptr() + 2 * base.element_size()
    assert (view.storage_offset(), view.untyped_storage().nbytes()) == (2, 24)


def test_tensor_and_array_share_memory_both_ways() -> None:
    array = np.zeros(3)
    tensor = pullback.from_numpy(array)
    tensor[0] = 1
    array[1] = 2
    assert tensor.tolist() == array.tolist() == [1.0, 2.0, 0.0]
    assert tensor._version == 1


def test_dlpack_shares_memory_both_ways() -> None:
    array = np.zeros(2)
    pullback.from_dlpack(array)[0] = 1.0
    tensor = pullback.zeros(2)
    np.from_dlpack(tensor)
    pullback.from_dlpack(pullback.utils.dlpack.to_dlpack(tensor))[1] = 2.0
    assert (array.tolist(), tensor.tolist()) == ([1.0, 0.0], [0.0, 2.0])
    assert tensor.__dlpack_device__() == (1, 0)
    assert tensor.__dlpack_device__()[0] is pullback.utils.dlpack.DLDeviceType.kDLCPU


def test_dlpack_refuses_a_tensor_that_requires_grad() -> None:
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        np.from_dlpack(pullback.ones(2, requires_grad=True))


def test_buffer_is_shared() -> None:
    buffer = bytearray(4)
    pullback.frombuffer(buffer, dtype=pullback.uint8)[1] = 7
    assert bytes(buffer) == b"\x00\x07\x00\x00"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"offset": 8}, "offset .* must be non-negative and no greater than buffer length"),
        ({"count": 9}, "requested buffer length .* must not be greater than actual buffer length"),
        ({"offset": 1}, "must be a multiple of element size"),
    ],
)
def test_buffer_of_another_length_is_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pullback.frombuffer(bytearray(8), dtype=pullback.int32, **options)


def test_resize_stays_on_its_storage_while_it_fits() -> None:
    tensor = pullback.arange(4)
    address = tensor.data_ptr()
    assert tensor.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert tensor.data_ptr() == address
    assert tensor.resize_(5)[:4].tolist() == [0, 1, 2, 3]


def test_resize_refuses_a_tensor_that_requires_grad() -> None:
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        pullback.ones(2, requires_grad=True).resize_(3)


def test_set_makes_a_tensor_see_other_memory() -> None:
    source = pullback.arange(6.0)
    tensor = pullback.zeros(1).set_(source, 1, (2,), (2,))
    assert tensor.tolist() == [1.0, 3.0]
    tensor[0] = 9.0
    assert source[1] == 9.0


def test_elements_can_be_mapped_by_a_function() -> None:
    tensor = pullback.tensor([1.0, 2.0])
    assert tensor.apply_(lambda value: value + 1).tolist() == [2.0, 3.0]
    assert tensor.map_(pullback.tensor([10.0, 20.0]), lambda a, b: a * b).tolist() == [20.0, 60.0]


@pytest.mark.parametrize(
    ("name", "dtype"), [("FloatTensor", "float32"), ("LongTensor", "int64"), ("BoolTensor", "bool")]
)
def test_old_tensor_type_makes_and_recognises_tensors(name: str, dtype: str) -> None:
    kind: Any = getattr(pullback, name)
    tensor = kind([1, 0])
    assert tensor.dtype is getattr(pullback, dtype)
    assert isinstance(tensor, kind)
    assert not isinstance(pullback.zeros(1, dtype=pullback.int8), kind)


@pytest.mark.parametrize(
    "source", [pullback.zeros(2), None, pullback.zeros(2).untyped_storage()], ids=["a", "none", "b"]
)
def test_a_recorded_set_has_no_derivative(source: Any) -> None:
    leaf = pullback.ones(2, requires_grad=True)
    doubled, base = leaf * 2, leaf * 3
    part = base[:1]
    doubled.set_(source)
    part.set_(source)

    assert type(doubled.grad_fn).__name__ == "NotImplemented"
    assert type(base.grad_fn).__name__ == "CopySlices"
    for result in (doubled, base, part):
        with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
            result.sum().backward()


def test_a_tensor_set_to_the_memory_of_one_with_grad_requires_grad() -> None:
    taken = pullback.ones(2).set_(pullback.ones(2, requires_grad=True))
    assert taken.requires_grad
    assert not taken.is_leaf


def test_a_view_that_was_given_other_memory_passes_gradients_to_its_base() -> None:
    program = (
        "import pullback\n"
        "leaf = pullback.ones(2, requires_grad=True)\n"
        "base = leaf * 2\n"
        "part = base[:1]\n"
        "part.data = pullback.zeros(1)\n"
        "base.mul_(2)\n"
        "part.sum().backward()\n"
        "assert leaf.grad.tolist() == [4.0, 0.0]\n"
    )
    # A process of its own: nothing else may have loaded what assignments to `data` need.
    subprocess.run([sys.executable, "-c", program], check=True)


def test_bytes_viewed_as_another_dtype_in_inference_mode_are_an_inference_tensor() -> None:
    plain = pullback.ones(2)
    with pullback.inference_mode():
        same, bytes_of, shaped = plain.view(pullback.float32), plain.view(pullback.uint8), plain.view(1, 2)
    assert [t.is_inference() for t in (same, bytes_of, shaped)] == [True, True, False]


def test_a_write_to_a_view_without_elements_passes_on_an_empty_gradient() -> None:
    leaf = pullback.ones(0, 2, requires_grad=True)
    base = leaf * 2
    view = base.view_as(base)
    view[0:, :] = leaf.clone()
    (gradient,) = pullback.autograd.grad(view.sum(), leaf, create_graph=True)
    assert gradient.shape == (0, 2)


def test_split_without_sizes_says_what_is_missing() -> None:
    with pytest.raises(TypeError, match=r"split\(\) missing 1 required positional argument"):
        pullback.split(pullback.ones(2))
