"""The names that PyTorch's checkpoints use, as values: writing or reading them needs no PyTorch.

A checkpoint is a pickle, and a pickle names classes and functions by module and name. `TorchGlobal` is such a name to
be written; `StorageType` and `TensorType` are what the names of storage and tensor classes become when read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from pullback.backend.dtype import ALL, FLOAT8, dtype


@dataclass(frozen=True, slots=True)
class TorchGlobal:
    """A name that is written into a pickle as it stands, without looking the object up."""

    module: str
    name: str

    def __call__(self, *arguments: object) -> NoReturn:
        """Exists because pickle wants what it reduces to to be callable."""
        raise TypeError(f"{self.module}.{self.name} is a name to be written, not a function to be called")


@dataclass(frozen=True, slots=True)
class StorageType:
    """A class of storages, such as `torch.FloatStorage`; without a dtype it is the untyped one."""

    name: str
    dtype: dtype | None


@dataclass(frozen=True, slots=True)
class TensorType:
    """A legacy class of tensors, such as `torch.FloatTensor`, which old files name beside their tensors."""

    name: str


DTYPES: dict[str, dtype] = {element.name: element for element in (*ALL, *FLOAT8)}
"""Public dtypes by PyTorch's name of them."""

_STORAGE_DTYPES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "ByteStorage": "uint8", "CharStorage": "int8", "ShortStorage": "int16", "IntStorage": "int32",
    "LongStorage": "int64", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}  # fmt: skip

UNTYPED_STORAGE = StorageType("UntypedStorage", None)
STORAGE_TYPES: dict[str, StorageType] = {
    name: StorageType(name, DTYPES[element]) for name, element in _STORAGE_DTYPES.items()
}

UNSUPPORTED_DTYPES = frozenset({
    "float4_e2m1fn_x2", "qint8", "qint32", "quint8", "quint4x2", "quint2x4", "bits8", "bits16", "bits1x8", "bits2x4",
    "bits4x2", "int1", "int2", "int3", "int4", "int5", "int6", "int7",
    "uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7",
})  # fmt: skip
"""PyTorch's dtypes that pullback has no arrays for."""

UNSUPPORTED_STORAGES = frozenset(
    {"QInt8Storage", "QUInt8Storage", "QInt32Storage", "QUInt4x2Storage", "QUInt2x4Storage"}
)

TENSOR_TYPES: dict[str, TensorType] = {
    name: TensorType(name) for name in (storage.replace("Storage", "Tensor") for storage in _STORAGE_DTYPES)
}

# What a pickle of ours names. One object each: pickle's memo goes by identity.
REBUILD_TENSOR = TorchGlobal("torch._utils", "_rebuild_tensor_v2")
REBUILD_UNTYPED_TENSOR = TorchGlobal("torch._utils", "_rebuild_tensor_v3")
REBUILD_SPARSE_TENSOR = TorchGlobal("torch._utils", "_rebuild_sparse_tensor")
REBUILD_PARAMETER = TorchGlobal("torch._utils", "_rebuild_parameter")
REBUILD_PARAMETER_WITH_STATE = TorchGlobal("torch._utils", "_rebuild_parameter_with_state")
REBUILD_FROM_TYPE = TorchGlobal("torch._tensor", "_rebuild_from_type_v2")
TENSOR = TorchGlobal("torch", "Tensor")
PARAMETER = TorchGlobal("torch.nn.parameter", "Parameter")
SIZE = TorchGlobal("torch", "Size")
DEVICE = TorchGlobal("torch", "device")
LAYOUT = TorchGlobal("torch.serialization", "_get_layout")
GENERATOR = TorchGlobal("torch._C", "Generator")
UNTYPED_STORAGE_NAME = TorchGlobal("torch.storage", "UntypedStorage")
DTYPE_NAMES: dict[str, TorchGlobal] = {name: TorchGlobal("torch", name) for name in DTYPES}
STORAGE_NAMES: dict[str, TorchGlobal] = {
    element: TorchGlobal("torch", name) for name, element in _STORAGE_DTYPES.items()
}
