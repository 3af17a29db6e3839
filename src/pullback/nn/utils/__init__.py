"""Helpers around modules and parameters. PyTorch's `torch.nn.utils`."""

from pullback.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from pullback.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from pullback.nn.utils import rnn

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm",
    "parameters_to_vector", "vector_to_parameters",
]  # fmt: skip
