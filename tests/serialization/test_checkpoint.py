"""save and load: what comes back, what shares memory, and which files are refused."""

from __future__ import annotations

import collections
import copy
import io
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pullback.backend.device import device
from pullback.backend.dtype import ALL, dtype
from pullback.nn.parameter import Buffer, Parameter, UninitializedParameter
from pullback.serialization import (
    LoadEndianness,
    get_unsafe_globals_in_checkpoint,
    load,
    save,
    set_crc32_options,
    set_default_load_endianness,
)
from pullback.tensor.size import Size
from pullback.tensor.sparse_tensor import sparse_from_stored
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.tensor.tensor_base import TensorBase
from tests.serialization.crafted import SIX_FLOATS, archive, tensor_pickle


def tensor(values: Any, name: str = "float32") -> Tensor:
    return new_tensor(np.array(values, np.dtype(name)))


def round_trip(value: object, **options: Any) -> Any:
    file = io.BytesIO()
    save(value, file, **options)
    file.seek(0)
    return load(file)


class Marked(Tensor):
    pass


def marked_tensor() -> Any:
    tensor: Tensor = TensorBase.__new__(Marked)
    tensor._array = np.ones(2)
    return tensor


class Anything:
    def __init__(self, value: Any) -> None:
        self.value = value


@pytest.mark.parametrize("as_zip", [True, False])
@pytest.mark.parametrize("element", ALL, ids=lambda element: element.name)
def test_every_dtype_comes_back(element: dtype, as_zip: bool) -> None:
    if element.name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    original = new_tensor(np.array([[0, 1], [2, 3]]).astype(element.numpy_dtype))
    actual = round_trip(original, _use_new_zipfile_serialization=as_zip)
    assert actual.dtype is element
    assert actual._array.tolist() == original._array.tolist()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_containers_sizes_dtypes_and_devices_come_back(protocol: int) -> None:
    value = {"size": Size((2, 3)), "dtype": ALL[0], "device": device("cuda:1"), "list": [1, (2.5, None)], "set": {1},
             "bytes": b"\xff", "state": collections.OrderedDict(a=10**40)}  # fmt: skip
    actual = round_trip(value, pickle_protocol=protocol)
    assert actual == value
    assert type(actual["size"]) is Size
    assert actual["dtype"] is ALL[0]


def test_geometry_is_kept() -> None:
    original = new_tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1)[1:3])
    actual = round_trip(original)
    assert actual.stride() == original.stride()
    assert actual.storage_offset() == original.storage_offset()
    assert actual._array.tolist() == original._array.tolist()


def test_expanded_empty_and_scalar_tensors_come_back() -> None:
    expanded = new_tensor(np.broadcast_to(np.ones((3, 1)), (3, 4)))
    actual = round_trip([expanded, tensor(np.ones((0, 3))), tensor(5.0)])
    assert actual[0].stride() == (1, 0)
    assert [item.shape for item in actual] == [(3, 4), (0, 3), ()]


@pytest.mark.parametrize("as_zip", [True, False])
def test_views_share_their_memory_again(as_zip: bool) -> None:
    whole = tensor([[1, 2], [3, 4]])
    actual = round_trip({"whole": whole, "row": new_tensor(whole._array[1]), "alias": whole},
                        _use_new_zipfile_serialization=as_zip)  # fmt: skip
    actual["row"]._array[0] = 9
    assert actual["whole"]._array.tolist() == [[1, 2], [9, 4]]
    assert actual["alias"] is actual["whole"]


def test_memory_is_stored_once() -> None:
    whole = tensor(np.zeros(1000))
    file = io.BytesIO()
    save([new_tensor(whole._array[index:]) for index in range(50)], file)
    names = zipfile.ZipFile(file).namelist()
    assert [name for name in names if "data/" in name and ".data" not in name] == ["archive/data/0"]


def test_an_array_that_strides_cannot_describe_is_copied() -> None:
    assert round_trip(new_tensor(np.arange(4.0)[::-1]))._array.tolist() == [3, 2, 1, 0]


def test_one_memory_as_two_types_is_refused() -> None:
    values = np.ones(2, np.complex64)
    with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data as diff"):
        save([new_tensor(values), new_tensor(values.real)], io.BytesIO())


def test_requires_grad_and_user_attributes_come_back() -> None:
    original = tensor([1.0]).requires_grad_()
    original.note = ["mine"]  # type: ignore[attr-defined]  # users set attributes on tensors
    actual = round_trip(original)
    assert actual.requires_grad
    assert actual.is_leaf
    assert actual.note == ["mine"]


def test_state_of_pullback_cannot_be_set_from_a_file() -> None:
    original = tensor([1.0])
    original.note = 1  # type: ignore[attr-defined]  # users set attributes on tensors
    file = io.BytesIO()
    save(original, file)
    with zipfile.ZipFile(file) as source:
        pickled = source.read("archive/data.pkl")
        storage = source.read("archive/data/0")
    hostile = pickled.replace(b"\x04\x00\x00\x00note", b"\x06\x00\x00\x00_array")
    with pytest.raises(pickle.UnpicklingError, match="attribute '_array' of a tensor cannot be set from a file"):
        load(archive(hostile, {"data/0": storage}))


def test_a_subclass_needs_trust() -> None:
    original: Any = marked_tensor()
    file = io.BytesIO()
    save(original, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=r"Unsupported global: GLOBAL .*Marked"):
        load(file)
    file.seek(0)
    assert type(load(file, weights_only=False)) is Marked


def test_a_subclass_may_say_itself_how_it_is_pickled() -> None:
    file = io.BytesIO()
    save(UninitializedParameter(), file)
    file.seek(0)
    assert type(load(file, weights_only=False)) is UninitializedParameter


def test_parameters_and_buffers_of_other_classes_stay_such() -> None:
    parameter: Any = Parameter(marked_tensor())
    buffer = Buffer(tensor([1.0]), persistent=False)
    assert type(parameter) is Marked
    file = io.BytesIO()
    save([parameter, buffer], file)
    file.seek(0)
    actual = load(file, weights_only=False)
    assert isinstance(actual[0], Parameter)
    assert isinstance(actual[1], Buffer)
    assert not vars(actual[1])["persistent"]


def test_any_object_is_read_from_a_trusted_file() -> None:
    file = io.BytesIO()
    save(Anything(tensor([1.0, 2.0])), file)
    file.seek(0)
    actual = load(file, weights_only=False)
    assert type(actual) is Anything
    assert actual.value._array.tolist() == [1.0, 2.0]


def test_a_trusted_file_naming_what_pullback_lacks_is_explained() -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"torch.nowhere.Thing, which has no counterpart"):
        load(archive(b"\x80\x02ctorch.nowhere\nThing\n."), weights_only=False)


def test_paths_and_mapping(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    save({"a": tensor([1.0, 2.0])}, path)
    assert zipfile.ZipFile(path).namelist()[0] == "weights/data.pkl"
    mapped = load(str(path), mmap=True)
    mapped["a"]._array[0] = 5
    assert mapped["a"]._array.tolist() == [5.0, 2.0]
    assert load(path)["a"]._array.tolist() == [1.0, 2.0]


def test_the_other_byte_order_is_undone() -> None:
    swapped = np.arange(6, dtype=">f4").tobytes()
    actual = load(archive(tensor_pickle(), {"data/0": swapped, "byteorder": b"big"}))
    assert actual._array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_byte_order_of_a_silent_file_can_be_chosen() -> None:
    file = archive(tensor_pickle(), {"data/0": np.arange(6, dtype=">f4").tobytes()})
    set_default_load_endianness(LoadEndianness.BIG)
    try:
        assert load(file)._array.tolist() == [[0, 1, 2], [3, 4, 5]]
    finally:
        set_default_load_endianness(None)


def test_checksums_can_be_left_out() -> None:
    file = io.BytesIO()
    set_crc32_options(False)
    try:
        save(tensor([1.0]), file)
    finally:
        set_crc32_options(True)
    assert {entry.CRC for entry in zipfile.ZipFile(file).infolist()} == {0}
    file.seek(0)
    assert load(file)._array.tolist() == [1.0]


def test_a_file_without_byte_order_is_little_endian() -> None:
    file = io.BytesIO()
    save(tensor([1.0]), file, _disable_byteorder_record=True)
    assert "archive/byteorder" not in zipfile.ZipFile(file).namelist()
    file.seek(0)
    assert load(file)._array.tolist() == [1.0]


@pytest.mark.parametrize(
    ("changes", "phrase"),
    [
        ({"count": 100}, "record size .24 bytes. does not match expected size"),
        ({"count": 10**15}, "does not match expected size"),
        ({"count": -1}, "not negative"),
        ({"offset": 3}, "out of bounds"),
        ({"offset": -3}, "invalid storage offset -3"),
        ({"stride": (-3, 1)}, "must not be negative"),
        ({"stride": (30, 1)}, "out of bounds"),
        ({"size": (-2, 3)}, "must not be negative"),
        ({"size": (2**40, 2**40)}, "numel: integer multiplication overflow"),
        ({"size": (2,)}, "unequal size length .1. and stride length .2."),
        ({"size": (1,) * 65, "stride": (1,) * 65}, "65 dimensions"),
        ({"key": "7"}, "failed locating file data/7"),
        ({"key": "../version"}, "failed locating file"),
        ({"location": "cuda:0"}, "Attempting to deserialize object on a CUDA device"),
        ({"location": "weird"}, "don't know how to restore data location"),
        ({"storage": "torch\nfloat32"}, "expected a storage class"),
    ],
)
def test_bogus_numbers_in_a_tensor_are_refused(changes: dict[str, Any], phrase: str) -> None:
    with pytest.raises(RuntimeError, match=phrase):
        load(archive(tensor_pickle(**changes), {"data/0": SIX_FLOATS}))


@pytest.mark.parametrize("choice", ["cpu", device("cpu"), {"cuda:0": "cpu"}, lambda storage, location: storage,
                                    lambda storage, location: storage.cpu()], ids=str)  # fmt: skip
def test_map_location_brings_storages_to_the_cpu(choice: Any) -> None:
    file = archive(tensor_pickle(location="cuda:0"), {"data/0": SIX_FLOATS})
    assert load(file, map_location=choice)._array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_view_of_an_empty_tensor_may_lie_anywhere() -> None:
    assert load(archive(tensor_pickle(size=(0, 3), offset=50), {"data/0": SIX_FLOATS})).shape == (0, 3)


@pytest.mark.parametrize(
    ("file", "error", "phrase"),
    [
        (archive(None, {"x": b""}), RuntimeError, "failed locating file data.pkl"),
        (archive(b"\x80\x02N.", version=None), RuntimeError, "hasRecord"),
        (archive(b"\x80\x02N.", version=b"99\n"), RuntimeError, "version 99, but the maximum supported version"),
        (archive(b"\x80\x02N.", version=b"x\n"), RuntimeError, "Couldn't parse the version"),
        (archive(b"\x80\x02N.", {"byteorder": b"huh"}), ValueError, "Unknown endianness type: huh"),
        (archive(b"\x80\x02N.", {"constants.pkl": b""}), RuntimeError, "TorchScript archives"),
        (io.BytesIO(b""), EOFError, "Ran out of input"),
        (io.BytesIO(b"hello world" * 10), pickle.UnpicklingError, "Weights only load failed"),
        (io.BytesIO(pickle.dumps({"a": 1})), RuntimeError, "Invalid magic number"),
        (io.BytesIO(struct.pack("<Q", 16) + b'{"a":{}}        '), RuntimeError, "looks like safetensors"),
    ],
)
def test_other_files_are_refused(file: io.BytesIO, error: type[Exception], phrase: str) -> None:
    file.seek(0)
    with pytest.raises(error, match=phrase):
        load(file)


def test_arguments_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match="You can only load from a file that is seekable"):
        load(5)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object"):
        save(1, 5)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        save(1, tmp_path / "nowhere" / "a.pt")
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        load(archive(b"\x80\x02N."), mmap=True)
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        load(archive(b"\x80\x02N."), pickle_module=pickle, weights_only=True)
    save(1, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        load(tmp_path / "old.pt", mmap=True)


def test_an_object_that_cannot_be_pickled_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(pickle.PicklingError, match="Can't pickle"):
        save(lambda: None, tmp_path / "a.pt")
    assert not (tmp_path / "a.pt").exists()


def test_unsafe_names_are_listed_without_running_them() -> None:
    file = io.BytesIO()
    save([Anything(1), tensor([1.0])], file)
    file.seek(0)
    assert get_unsafe_globals_in_checkpoint(file) == [f"{__name__}.Anything"]


def test_hooks_are_left_out_with_a_warning() -> None:
    original = tensor([1.0]).requires_grad_()
    original._backward_hooks = {0: print}
    with pytest.warns(UserWarning, match="backward hook .* on tensor will not be serialized"):
        save(original, io.BytesIO())


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_sparse_tensors_come_back(layout: str) -> None:
    given: Any = getattr(tensor([[0.0, 1.0], [2.0, 0.0]]), f"to_sparse_{layout}")()
    for copied in (round_trip(given), pickle.loads(pickle.dumps(given)), copy.deepcopy(given), copy.copy(given)):
        assert repr(copied) == repr(given)


@pytest.mark.parametrize(
    ("name", "stored", "phrase"),
    [
        ("sparse_coo", (tensor([[5]], "int64"), tensor([1.0]), Size([2])), "lies outside of its size"),
        ("sparse_coo", (tensor([[0, 1]], "int64"), tensor([1.0]), Size([2])), "do not fit its values"),
        ("sparse_coo", (tensor([[0]], "int64"), tensor([1.0]), Size([2, 2])), "do not fit its size"),
        ("sparse_coo", (tensor([[0.5]]), tensor([1.0]), Size([2])), "do not fit its values"),
        ("sparse_coo", (tensor([[0]], "int64"), 1.0, Size([2])), "tensors of indices and of values"),
        ("sparse_coo", (tensor([[0]], "int64"), tensor([1.0]), (-1,)), "cannot have the size"),
        ("sparse_csr", (tensor([0, 9], "int64"), tensor([0], "int64"), tensor([1.0]), Size([1, 1])), "do not count"),
        (
            "sparse_csr",
            (tensor([0], "int64"), tensor([0], "int64"), tensor([1.0]), Size([1, 1])),
            "do not fit its size",
        ),
        ("strided", (), "in the layout 'strided'"),
    ],
)
def test_parts_of_a_sparse_tensor_that_do_not_fit_are_refused(name: str, stored: Any, phrase: str) -> None:
    with pytest.raises(ValueError, match=phrase):
        sparse_from_stored(name, stored)
