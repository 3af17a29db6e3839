"""Batch normalisation, and the base that instance normalisation shares with it."""

from __future__ import annotations

from typing import Any

from pullback import creation
from pullback.backend.dtype import int64
from pullback.nn import functional, init
from pullback.nn.modules.lazy import LazyModuleMixin
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter
from pullback.tensor.tensor import Tensor

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
    "SyncBatchNorm",
]  # fmt: skip


class _NormBase(Module):
    """Scale, shift and running statistics of a number of channels."""

    _version = 2
    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        options = {"device": device, "dtype": dtype}
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if affine:
            self.weight = Parameter(creation.empty(num_features, **options))
            if bias:
                self.bias = Parameter(creation.empty(num_features, **options))
        tracked = track_running_stats
        self.register_buffer("running_mean", creation.zeros(num_features, **options) if tracked else None)
        self.register_buffer("running_var", creation.ones(num_features, **options) if tracked else None)
        self.register_buffer(
            "num_batches_tracked", creation.tensor(0, dtype=int64, device=options.get("device")) if tracked else None
        )
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the running statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget the running statistics, set scale to one and shift to zero."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            # The first version of the layer did not count batches.
            state_dict[key] = creation.tensor(0, dtype=int64)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Any:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        tracks = not self.training or self.track_running_stats
        return self._normalise(
            input, self.running_mean if tracks else None, self.running_var if tracks else None, by_batch, momentum
        )

    def _normalise(self, input: Tensor, running_mean: Any, running_var: Any, by_batch: bool, momentum: float) -> Any:
        return functional.batch_norm(
            input, running_mean, running_var, self.weight, self.bias, by_batch, momentum, self.eps
        )


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Finds `num_features` on the first call."""

    def __init__(
        self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = creation.tensor(0, dtype=int64)

    def reset_parameters(self) -> None:
        """Set the values, once they have a shape."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Give the parameters and buffers their shape and values."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()


class _Check1d:
    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class _Check2d:
    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class _Check3d:
    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class BatchNorm1d(_Check1d, _BatchNorm):
    """Normalise each channel of vectors or sequences over the batch.

    The input is (N, C) or (N, C, L) with C = `num_features`. y = (x - mean) / sqrt(variance + eps) * weight + bias,
    with mean and variance of each channel over the batch in training, and their running means (of weight `momentum` for
    the new one) in evaluation.

    >>> import pullback
    >>> pullback.nn.BatchNorm1d(2)(pullback.tensor([[1., 0.], [3., 4.]])).detach()
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    """


class BatchNorm2d(_Check2d, _BatchNorm):
    """Normalise each channel of images over the batch.

    The input is (N, C, H, W), C being `num_features`, and the result has its shape. In training mean and variance are
    those of the batch, and the running ones move towards them by `momentum`; in evaluation the running ones are used. y
    = (x - mean) / sqrt(var + eps) * weight + bias.

    >>> import pullback
    >>> BatchNorm2d(3)(pullback.ones(2, 3, 4, 4)).shape
    pullback.Size([2, 3, 4, 4])
    """


class BatchNorm3d(_Check3d, _BatchNorm):
    """Normalise each channel of volumes over the batch.

    The input is (N, C, D, H, W) with C = `num_features`. y = (x - mean) / sqrt(variance + eps) * weight + bias, with
    mean and variance of each channel over the batch in training, and their running means in evaluation.

    >>> import pullback
    >>> pullback.nn.BatchNorm3d(3)(pullback.ones(2, 3, 4, 4, 4)).shape
    pullback.Size([2, 3, 4, 4, 4])
    """


class LazyBatchNorm1d(_Check1d, _LazyNormBase, _BatchNorm):
    """A BatchNorm1d that finds `num_features` on its first call.

    `num_features` is that of the first input, after which it is a `BatchNorm1d`.

    >>> import pullback
    >>> pullback.nn.LazyBatchNorm1d()(pullback.ones(4, 3)).shape
    pullback.Size([4, 3])
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_Check2d, _LazyNormBase, _BatchNorm):
    """A BatchNorm2d that finds `num_features` on its first call.

    The arguments are those of BatchNorm2d without the first; after that call it is a BatchNorm2d.

    >>> import pullback
    >>> norm = pullback.nn.LazyBatchNorm2d()
    >>> _ = norm(pullback.ones(2, 3, 4, 4))
    >>> norm
    BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_Check3d, _LazyNormBase, _BatchNorm):
    """A BatchNorm3d that finds `num_features` on its first call."""

    cls_to_become = BatchNorm3d


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all ranks of a process group; in one process, over its batch alone.

    As `BatchNorm1d`, for inputs (N, C, *) of any number of dimensions; mean and variance are those of all processes of
    the group. `convert_sync_batchnorm` replaces the layers of a model.

    >>> import pullback
    >>> pullback.nn.SyncBatchNorm(3)
    SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: Any = None, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _normalise(self, input: Tensor, running_mean: Any, running_var: Any, by_batch: bool, momentum: float) -> Any:
        from pullback.distributed import sync_batch_norm  # lazy: processes are above this layer
        from pullback.distributed.process_group import group_of, is_initialized  # lazy: the same

        group = group_of(self.process_group) if is_initialized() and self.training else None
        if group is None or group.size() == 1 or not by_batch:
            return super()._normalise(input, running_mean, running_var, by_batch, momentum)
        return sync_batch_norm.batch_norm_of_all_ranks(
            input, running_mean, running_var, self.weight, self.bias, momentum, self.eps, group
        )

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Replace every batch normalisation in `module` by one of this class."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            converted._parameters.update(module._parameters)
            converted._buffers.update(module._buffers)
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
