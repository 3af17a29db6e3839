"""Storages: bytes and, in the older form, elements."""

from __future__ import annotations

import sys
from typing import Any

import pullback


def test_typed_storage_reads_and_writes_the_tensors_memory() -> None:
    x = pullback.arange(4.0)
    storage = x.storage()
    storage[1] = 5
    assert (x.tolist(), len(storage), storage.dtype, storage.tolist()) == (
        [0.0, 5.0, 2.0, 3.0], 4, pullback.float32, [0.0, 5.0, 2.0, 3.0],
    )  # fmt: skip
    storage.fill_(2)
    assert x.tolist() == [2.0] * 4


def test_storage_classes_make_typed_storages() -> None:
    storage = pullback.FloatStorage([1, 2, 3])
    assert isinstance(storage, pullback.FloatStorage)
    assert not isinstance(storage, pullback.DoubleStorage)
    assert isinstance(pullback.ones(2, dtype=pullback.int64).storage(), pullback.LongStorage)
    assert (storage.tolist(), pullback.DoubleStorage(3).nbytes(), storage.type()) == (
        [1.0, 2.0, 3.0],
        24,
        "pullback.FloatStorage",
    )
    assert pullback.tensor(storage).tolist() == [1.0, 2.0, 3.0]


def test_storage_type_is_the_class_of_the_dtype() -> None:
    assert pullback.ones(2).storage_type() is pullback.FloatStorage


def test_conversion_and_copies_are_storages_of_their_own() -> None:
    x = pullback.arange(2.0)
    storage = x.storage()
    assert (storage.double().dtype, storage.clone().tolist(), storage.float() is storage) == (
        pullback.float64,
        [0.0, 1.0],
        True,
    )
    storage.copy_(pullback.TypedStorage([7, 8]))
    assert x.tolist() == [7.0, 8.0]


def test_untyped_storage_holds_bytes() -> None:
    x = pullback.tensor([1, 256], dtype=pullback.int16)
    assert x.untyped_storage().tolist() == [1, 0, 0, 1]
    assert pullback.UntypedStorage(8).nbytes() == 8
    x.untyped_storage().copy_(pullback.UntypedStorage([2, 0, 3, 0]))
    assert x.tolist() == [2, 3]


def test_a_storage_made_smaller_and_large_again_keeps_its_tensors() -> None:
    tensor = pullback.arange(4.0)
    view, storage = tensor[1:], tensor.untyped_storage()
    storage.resize_(0)
    assert (storage.nbytes(), tensor.untyped_storage().size(), tuple(tensor.shape)) == (0, 0, (4,))
    storage.resize_(16)
    tensor.fill_(3)
    assert tensor.untyped_storage().nbytes() == 16
    assert view.tolist() == [3, 3, 3]


def test_a_larger_storage_takes_views_along() -> None:
    tensor = pullback.arange(2.0)
    view = tensor[1:]
    assert tensor.untyped_storage().resize_(16).nbytes() == 16
    tensor.as_strided((4,), (1,))[1:] = 7
    assert view.item() == 7
    assert tensor.tolist() == [0, 7]
    view.resize_(8)
    view[0] = 5
    assert tensor.tolist() == [0, 5]
    assert tensor.storage().size() == 9


def test_a_storage_without_tensors_is_resized() -> None:
    assert pullback.UntypedStorage([1, 2, 3]).resize_(2).tolist() == [1, 2]
    assert pullback.FloatStorage([1.0]).resize_(3).tolist() == [1, 0, 0]


def test_storages_of_buffers_and_files(tmp_path: Any) -> None:
    stored = pullback.UntypedStorage.from_buffer(b"\x00\x01\x02\x03", byte_order="big", dtype=pullback.int16, offset=2)
    assert stored.tolist() == ([3, 2] if sys.byteorder == "little" else [2, 3])
    path = str(tmp_path / "bytes")
    pullback.UntypedStorage.from_file(path, shared=True, nbytes=2).fill_(1)
    assert pullback.UntypedStorage.from_file(path, nbytes=2).tolist() == [1, 1]


def test_one_storage_has_one_identity() -> None:
    tensor = pullback.arange(4.0)
    assert tensor.untyped_storage()._cdata == tensor[2:].storage()._cdata
    assert tensor.untyped_storage()._cdata != tensor.clone().untyped_storage()._cdata


def test_the_size_of_a_storage_counts_its_memory() -> None:
    sizes = [sys.getsizeof(pullback.ones(n).untyped_storage()) for n in (10, 1010)]
    assert sizes[1] - sizes[0] == 4000
