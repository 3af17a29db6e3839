"""Dropout of elements and of channels."""

from __future__ import annotations

from pullback import functions
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor


def _apply(name: str, input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return getattr(functions, f"{name}_" if inplace else name)(input, p, training)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, set each element to zero with probability `p` and scale the rest by 1 / (1 - p).

    `input` has any shape, and the result has the same. `inplace` overwrites it. y = mask * input / (1 - p); without
    `training` it is the input.
    """
    return _apply("dropout", input, p, training, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of a self-normalizing network."""
    return _apply("alpha_dropout", input, p, training, inplace)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """As `alpha_dropout`, for whole channels."""
    return _apply("feature_alpha_dropout", input, p, training, inplace)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drop whole channels of (N, C, L) or (C, L)."""
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. It drops channels of "
            "(N, C, L) or "
            "(C, L)."
        )
    return _drop_channels(input, p, training, inplace, batched=input.dim() == 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drop whole channels of (N, C, H, W).

    In training each channel is zero with probability `p`, the others are divided by 1 - p; otherwise y = x.

    >>> import pullback
    >>> pullback.nn.functional.dropout2d(pullback.ones(1, 2, 1, 1), training=False).flatten()
    tensor([1., 1.])
    """
    if input.dim() not in (3, 4):
        warn_user(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will result in "
            "an error in "
            "a future release. Give it (N, C, H, W), or use dropout for elements."
        )
    if input.dim() == 3:
        warn_user(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired: "
            "(N, C, L). Use dropout1d for this."
        )
    return _apply("feature_dropout", input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drop whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    if input.dim() not in (4, 5):
        warn_user(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will result in "
            "an error in "
            "a future release. Give it (N, C, D, H, W), or use dropout for elements."
        )
    return _drop_channels(input, p, training, inplace, batched=input.dim() == 5)


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool, *, batched: bool) -> Tensor:
    if batched:
        return _apply("feature_dropout", input, p, training, inplace)
    if inplace:
        _apply("feature_dropout", functions.unsqueeze(input, 0), p, training, inplace)
        return input
    batch = functions.unsqueeze(input, 0)
    return functions.squeeze(_apply("feature_dropout", batch, p, training, inplace), 0)
