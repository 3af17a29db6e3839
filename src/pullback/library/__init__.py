"""Operators with names: the user's own, libraries of them, and PyTorch's under theirs. PyTorch's `torch.library`."""

from pullback.library.custom_op import CustomOpDef, custom_op, triton_op, wrap_triton
from pullback.library.operator_namespaces import Library, define, impl, ops
from pullback.library.registration import (
    opcheck,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_vmap,
)

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "impl", "opcheck", "ops", "register_autocast", "register_autograd",
    "register_fake", "register_kernel", "register_vmap", "triton_op", "wrap_triton",
]  # fmt: skip
