"""`torch.utils.data._utils.collate`: the functions of `pullback.utils.data.collate` under PyTorch's path."""

import re

from pullback.utils.data.collate import (
    collate,
    collate_float_fn,
    collate_int_fn,
    collate_numpy_array_fn,
    collate_numpy_scalar_fn,
    collate_str_fn,
    collate_tensor_fn,
    default_collate,
    default_collate_fn_map,
    default_convert,
)

np_str_obj_array_pattern = re.compile(r"[SaUO]")
"""The kinds of arrays that are not made into tensors."""

__all__ = [
    "collate",
    "collate_float_fn",
    "collate_int_fn",
    "collate_numpy_array_fn",
    "collate_numpy_scalar_fn",
    "collate_str_fn",
    "collate_tensor_fn",
    "default_collate",
    "default_collate_fn_map",
    "default_convert",
    "np_str_obj_array_pattern",
]
