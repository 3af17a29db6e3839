"""Storages: bytes and, in the older form, elements."""

from __future__ import annotations

import sys

import pytest

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


def test_resizing_a_storage_is_refused() -> None:
    with pytest.raises(RuntimeError, match="cannot be resized"):
        pullback.ones(2).untyped_storage().resize_(0)


def test_the_size_of_a_storage_counts_its_memory() -> None:
    sizes = [sys.getsizeof(pullback.ones(n).untyped_storage()) for n in (10, 1010)]
    assert sizes[1] - sizes[0] == 4000
