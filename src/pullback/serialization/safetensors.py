"""The safetensors format: a table of named tensors as JSON, then their bytes. It cannot hold code.

The format is small enough to be read and written here; files are those of the `safetensors` package.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from pullback.backend.device import usable_device
from pullback.backend.dtype import dtype, from_numpy_dtype
from pullback.backend.storage import bytes_over, contiguous_strides, copied, memory_of, strided_view, view_of_storage
from pullback.serialization.storage import Storage
from pullback.serialization.torch_names import DTYPES
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.typing import Array, Shape

_LARGEST_HEADER = 100_000_000
_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32",
    "I64": "int64", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
}  # fmt: skip
_NAMES = {element: name for name, element in _DTYPES.items()}


class SafetensorError(ValueError):
    """A file is not a valid safetensors file, or a value cannot be stored in one."""


def save_file(
    tensors: Mapping[str, Tensor], filename: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Write named tensors to a safetensors file."""
    header, arrays = _describe(tensors, metadata)
    with open(filename, "wb") as file:
        _write(file, header, arrays)


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return named tensors as the bytes of a safetensors file.

    >>> import pullback
    >>> load(save({"weight": pullback.tensor([1.0, 2.0])}))["weight"].tolist()
    [1.0, 2.0]
    """
    import io

    file = io.BytesIO()
    header, arrays = _describe(tensors, metadata)
    _write(file, header, arrays)
    return file.getvalue()


def load_file(filename: str | os.PathLike[str], device: Any = "cpu") -> dict[str, Tensor]:
    """Read all tensors of a safetensors file."""
    usable_device(device)
    return load(Path(filename).read_bytes())


def load(data: bytes) -> dict[str, Tensor]:
    """Read all tensors of the bytes of a safetensors file."""
    table = _Table(data)
    return {name: table.tensor(name) for name in table.entries}


class safe_open:
    """A safetensors file whose tensors are read one by one.

    `framework` is accepted as the safetensors package has it; tensors are pullback's whatever it says.
    """

    def __init__(self, filename: str | os.PathLike[str], framework: str = "pt", device: Any = "cpu") -> None:
        usable_device(device)
        self._table = _Table(_mapped(filename))

    def __enter__(self) -> safe_open:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None

    def keys(self) -> list[str]:
        """The names of the tensors, sorted."""
        return sorted(self._table.entries)

    def offset_keys(self) -> list[str]:
        """The names of the tensors in the order of their bytes."""
        return sorted(self._table.entries, key=lambda name: self._table.entries[name][2])

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def metadata(self) -> dict[str, str] | None:
        """The texts stored beside the tensors."""
        return self._table.metadata

    def describe(self, name: str) -> tuple[dtype, Shape]:
        """The dtype and the shape of one tensor, which is not read."""
        element, shape, _, _ = self._table.entry(name)
        return element, shape

    def get_tensor(self, name: str) -> Tensor:
        """Read one tensor."""
        return self._table.tensor(name)


def _mapped(filename: str | os.PathLike[str]) -> Any:
    """The bytes of a file, read from the disk when they are looked at."""
    with open(filename, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _describe(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> tuple[dict[str, Any], list[Array]]:
    _check_storable(tensors)
    header: dict[str, Any] = {}
    if metadata is not None:
        if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
            raise SafetensorError("metadata must map strings to strings")
        header["__metadata__"] = dict(metadata)
    # Wide elements first, so that every tensor begins at a multiple of its element's size.
    ordered = sorted(tensors.items(), key=lambda item: (-item[1]._array.itemsize, item[0]))
    position = 0
    arrays = []
    for name, tensor in ordered:
        array = tensor._array
        end = position + array.nbytes
        element = _NAMES[from_numpy_dtype(array.dtype).name]
        header[name] = {"dtype": element, "shape": list(array.shape), "data_offsets": [position, end]}
        arrays.append(array)
        position = end
    return header, arrays


def _check_storable(tensors: Mapping[str, Tensor]) -> None:
    owners: dict[tuple[int, int], str] = {}
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise SafetensorError(f"expected a dict of names and tensors, got {type(name)} and {type(tensor)}")
        element = from_numpy_dtype(tensor._array.dtype).name
        if element not in _NAMES:
            raise SafetensorError(f"the tensor {name!r} is of dtype {element}, which safetensors does not have")
        if not tensor._array.flags.c_contiguous:
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. "
                "Save `tensor.contiguous()` instead."
            )
        key = view_of_storage(tensor._array).key
        if key in owners and key[1]:
            raise RuntimeError(
                f"Some tensors share memory, this will lead to duplicate memory on disk: {owners[key]!r} and {name!r}. "
                "Save only one of them, or clone() one."
            )
        owners[key] = name


def _write(file: IO[bytes], header: dict[str, Any], arrays: list[Array]) -> None:
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for array in arrays:
        view = view_of_storage(array)
        start = view.offset * array.itemsize
        file.write(memory_of(view.data[start : start + array.nbytes]))


class _Table:
    """The header of a safetensors file, checked against the size of the file."""

    def __init__(self, data: Any) -> None:
        if len(data) < 8:
            raise SafetensorError("Error while deserializing header: header too small")
        (length,) = struct.unpack("<Q", data[:8])
        if length > _LARGEST_HEADER:
            raise SafetensorError("Error while deserializing header: header too large")
        if length > len(data) - 8:
            raise SafetensorError("Error while deserializing header: invalid header length")
        header = _parse(data[8 : 8 + length])
        self._data = data
        self._start = 8 + length
        self.metadata: dict[str, str] | None = _checked_metadata(header.pop("__metadata__", None))
        self.entries: dict[str, tuple[dtype, Shape, int, int]] = {
            name: _checked_entry(name, entry) for name, entry in header.items()
        }
        self._check_offsets()

    def _check_offsets(self) -> None:
        """The tensors cover the bytes after the header without gaps or overlaps."""
        position = 0
        for name, (_, _, begin, end) in sorted(self.entries.items(), key=lambda item: item[1][2:]):
            if begin != position:
                raise SafetensorError(f"Error while deserializing header: invalid offset for tensor `{name[:100]}`")
            position = end
        if position != len(self._data) - self._start:
            raise SafetensorError(
                "Error while deserializing header: incomplete metadata, file not fully covered: "
                f"the tensors take {position} bytes of {len(self._data) - self._start}"
            )

    def entry(self, name: str) -> tuple[dtype, Shape, int, int]:
        """Dtype, shape and bytes of a tensor."""
        entry = self.entries.get(name)
        if entry is None:
            raise SafetensorError(f"File does not contain tensor {name}")
        return entry

    def tensor(self, name: str) -> Tensor:
        element, shape, begin, end = self.entry(name)
        data, numpy_dtype = Storage(
            copied(bytes_over(self._data, self._start + begin, end - begin)), element
        ).memory_of(element)
        return new_tensor(strided_view(data, numpy_dtype, 0, shape, contiguous_strides(shape)))


def _parse(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise SafetensorError(f"Error while deserializing header: invalid JSON ({error!s:.200})") from None
    if not text.startswith(b"{") or not isinstance(header, dict):
        raise SafetensorError("Error while deserializing header: it must be a JSON object")
    return header


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name occurs twice")
    return result


def _checked_metadata(metadata: Any) -> dict[str, str] | None:
    if metadata is None:
        return None
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise SafetensorError("Error while deserializing header: __metadata__ must map strings to strings")
    return metadata


def _checked_entry(name: str, entry: Any) -> tuple[dtype, Shape, int, int]:
    where = f"tensor `{name[:100]}`"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise SafetensorError(f"Error while deserializing header: {where} needs a dtype, a shape and data_offsets")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise SafetensorError(f"Error while deserializing header: {where} has an invalid shape or offsets")
    if entry["dtype"] not in _DTYPES:
        raise SafetensorError(f"Error while deserializing header: {where} is of an unknown or unsupported dtype")
    element = DTYPES[_DTYPES[entry["dtype"]]]
    count = 1
    for size in shape:
        count *= size
    if count * element.itemsize != offsets[1] - offsets[0]:
        raise SafetensorError(f"Error while deserializing header: {where} has a shape that does not fit its bytes")
    return element, tuple(shape), offsets[0], offsets[1]


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and len(values) <= 64 and all(type(size) is int and size >= 0 for size in values)
