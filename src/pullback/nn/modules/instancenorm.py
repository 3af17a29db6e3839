"""Normalisation of each channel of each sample."""

from __future__ import annotations

from typing import Any

from pullback.modes.user_warnings import warn_user
from pullback.nn import functional
from pullback.nn.modules.batchnorm import _LazyNormBase, _NormBase
from pullback.tensor.tensor import Tensor

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    """`batched_dim` is the number of dimensions of a batch; one less is a single sample."""

    batched_dim: int

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (self.batched_dim - 1, self.batched_dim):
            raise ValueError(
                f"expected {self.batched_dim - 1}D or {self.batched_dim}D input (got {input.dim()}D input)"
            )

    def _apply_instance_norm(self, input: Any) -> Any:
        by_sample = self.training or not self.track_running_stats
        momentum = self.momentum if self.momentum is not None else 0.0
        return functional.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, by_sample, momentum, self.eps
        )

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        feature_dim = input.dim() - self.batched_dim + 1
        if input.size(feature_dim) != self.num_features:
            message = (
                f"input's size at dim={feature_dim} does not match num_features: {self.num_features} is not used, as the "
                "layer has no weight."
            )
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={feature_dim} to match num_features ({self.num_features}), but got: "
                    f"{input.size(feature_dim)}."
                )
            warn_user(message)
        if input.dim() == self.batched_dim - 1:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)


class InstanceNorm1d(_InstanceNorm):
    """Normalise each channel of each sequence.

    The input is (N, C, L) or (C, L) with C = `num_features`. y = (x - mean) / sqrt(variance + eps), of each channel of
    each example; weight and bias are there only with `affine`, running means only with `track_running_stats`.

    >>> import pullback
    >>> pullback.nn.InstanceNorm1d(1)(pullback.tensor([[[1., 3.]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    batched_dim = 3


class InstanceNorm2d(_InstanceNorm):
    """Normalise each channel of each image.

    The input is (N, C, H, W) or (C, H, W) with C = `num_features`. y = (x - mean) / sqrt(variance + eps), of each
    channel of each example; weight and bias are there only with `affine`, running means only with
    `track_running_stats`.

    >>> import pullback
    >>> pullback.nn.InstanceNorm2d(3)(pullback.ones(2, 3, 4, 4)).shape
    pullback.Size([2, 3, 4, 4])
    """

    batched_dim = 4


class InstanceNorm3d(_InstanceNorm):
    """Normalise each channel of each volume.

    The input is (N, C, D, H, W) or (C, D, H, W) with C = `num_features`; otherwise as `InstanceNorm2d`.

    >>> import pullback
    >>> pullback.nn.InstanceNorm3d(3)(pullback.ones(2, 3, 4, 4, 4)).shape
    pullback.Size([2, 3, 4, 4, 4])
    """

    batched_dim = 5


class _LazyInstanceNorm(_LazyNormBase):
    batched_dim: int

    def initialize_parameters(self, input: Any) -> None:
        """Give the parameters their shape, with the channels before the spatial dimensions."""
        super().initialize_parameters(input.unsqueeze(0) if input.dim() == self.batched_dim - 1 else input)


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    """An InstanceNorm1d that finds `num_features` on its first call."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    """An InstanceNorm2d that finds `num_features` on its first call."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    """An InstanceNorm3d that finds `num_features` on its first call."""

    cls_to_become = InstanceNorm3d
