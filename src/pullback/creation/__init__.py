"""Functions that make tensors: of Python values, of other libraries' memory, of one value, of ranges."""

from __future__ import annotations

from pullback.creation.exchange import as_tensor, asarray, from_dlpack, from_file, from_numpy, frombuffer
from pullback.creation.filled import (
    empty,
    empty_like,
    empty_permuted,
    empty_strided,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from pullback.creation.from_values import scalar_tensor, tensor
from pullback.creation.options import sizes_of as _sizes
from pullback.creation.options import wrap
from pullback.creation.ranges import (
    arange,
    eye,
    linspace,
    logspace,
    range,
    tril_indices,
    triu_indices,
)
from pullback.creation.tensor_types import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "_sizes", "arange", "as_tensor", "asarray", "empty", "empty_like",
    "empty_permuted", "empty_strided", "eye", "from_dlpack", "from_file", "from_numpy", "frombuffer", "full", "full_like",
    "linspace", "logspace", "ones", "ones_like", "range", "scalar_tensor", "tensor", "tril_indices",
    "triu_indices", "wrap", "zeros", "zeros_like",
]  # fmt: skip
