"""autocast: inside of the block, matrix products and convolutions run in a lower precision, delicate operations in float32.

Casts are recorded, so parameters get gradients in their own dtype. Entered through the one place where operations can be
intercepted (Note [Interception]).
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any

from pullback.backend.device import device
from pullback.backend.dtype import bfloat16, dtype, float16, float32
from pullback.modes.interception import pop_interceptor, push_interceptor
from pullback.tensor.tensor import Tensor

# The operations of this project that stand for those PyTorch runs in the lower precision on the CPU.
_LOWER = frozenset(
    """
    mm bmm mv matmul_batched addmm addmv addbmm baddbmm linear_bias linear_bias_folded linear_product
    linear_product_folded convolution conv_forward conv_transpose scaled_dot_product_attention linalg_vecdot
    addmm_ baddbmm_ addbmm_ attention_fused
    """.split()
)
_FLOAT32 = frozenset(
    """
    prod prod_all prod_dim quantile nanquantile trace polar cdist mse_loss nll_loss nll_loss2d binary_cross_entropy
    binary_cross_entropy_with_logits l1_loss smooth_l1_loss huber_loss kl_div poisson_nll_loss ctc_loss
    cosine_embedding_loss hinge_embedding_loss margin_ranking_loss multilabel_margin_loss multi_margin_loss
    soft_margin_loss triplet_margin_loss grid_sampler grid_sampler_2d grid_sampler_3d avg_pool3d view_as_complex cholesky
    cholesky_inverse cholesky_solve inverse lu_solve orgqr ormqr pinverse linalg_cond linalg_matrix_rank linalg_solve
    linalg_cholesky linalg_svdvals linalg_eigvals linalg_eigvalsh linalg_inv linalg_householder_product linalg_tensorinv
    linalg_tensorsolve geqrf lstsq qr svd triangular_solve fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft stft
    replication_pad1d replication_pad2d replication_pad3d
    """.split()
)
_WIDEST = frozenset(["cat", "stack", "index_copy"])


class _Settings(threading.local):
    """What autocast is set to in one thread: its default dtype, and the open blocks, innermost last."""

    default: dtype = bfloat16
    cache_enabled = True
    nesting = 0
    current: tuple[autocast, ...] = ()


_settings = _Settings()


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast exists for a device.

    >>> is_autocast_available("cpu")
    True
    """
    return device(device_type).type in ("cpu", "cuda", "xpu", "mps")


class autocast:
    """Run operations in the precision that suits them.

    >>> import pullback
    >>> x = pullback.ones(2, 2)
    >>> with autocast("cpu", dtype=pullback.float16):
    ...     (x @ x).dtype is pullback.float16
    True
    """

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device(device_type).type
        self.fast_dtype = _settings.default if dtype is None else dtype
        self.enabled = enabled and self.device == "cpu"
        if enabled and self.device == "cuda":
            warnings.warn("User provided device_type of 'cuda', but CUDA is not available. Disabling", stacklevel=2)
        if self.enabled and self.fast_dtype not in (bfloat16, float16):
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast. CPU Autocast only supports "
                f"dtype of torch.bfloat16, torch.float16 currently; got {self.fast_dtype}.",
                stacklevel=2,
            )
            self.enabled = False

    def __enter__(self) -> autocast:
        push_interceptor(self._intercept)
        self._former = _settings.current
        _settings.current = (*self._former, self)
        return self

    def __exit__(self, *exception: object) -> None:
        _settings.current = self._former
        pop_interceptor()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.fast_dtype, self.enabled):
                return function(*args, **kwargs)

        return wrapped

    def _intercept(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Cast the arguments as the operation wants and run it; an inner block hides the outer ones."""
        if not self.enabled or _settings.current[-1] is not self:
            return NotImplemented
        wanted = self._wanted(getattr(function, "__name__", ""), args)
        if wanted is None:
            return NotImplemented
        cast = functools.partial(_cast, wanted=wanted)
        return function(*[cast(a) for a in args], **{k: cast(v) for k, v in kwargs.items()})

    def _wanted(self, name: str, args: tuple[Any, ...]) -> dtype | None:
        if name in _LOWER:
            return self.fast_dtype
        if name in _FLOAT32:
            return float32
        if name in _WIDEST:
            tensors = args[0] if isinstance(args[0], (list, tuple)) else args
            return float32 if any(isinstance(t, Tensor) and t.dtype is float32 for t in tensors) else None
        return None


def _cast(value: Any, wanted: dtype) -> Any:
    if isinstance(value, Tensor):
        eligible = value.dtype in (float32, float16, bfloat16) and value.dtype is not wanted
        return value.to(wanted) if eligible else value
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, wanted) for v in value)
    return value


def custom_fwd(fwd: Any = None, *, device_type: str = "cpu", cast_inputs: dtype | None = None) -> Any:
    """Decorate a custom Function's forward: its inputs are cast and autocast is off inside, or it runs as the caller."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = is_autocast_enabled(device_type)
        if cast_inputs is None or not ctx._fwd_used_autocast:
            return fwd(ctx, *args, **kwargs)
        ctx._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return fwd(
                ctx, *[_cast(a, cast_inputs) for a in args], **{k: _cast(v, cast_inputs) for k, v in kwargs.items()}
            )

    return decorated


def custom_bwd(bwd: Any = None, *, device_type: str = "cpu") -> Any:
    """Decorate a custom Function's backward: it runs under the autocast state of its forward."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return decorated


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for a device in this block."""
    return bool(_settings.current) and _settings.current[-1].enabled and _settings.current[-1].device == device_type


def get_autocast_dtype(device_type: str = "cuda") -> dtype:
    """The dtype that autocast uses on a device."""
    return _settings.current[-1].fast_dtype if is_autocast_enabled(device_type) else _settings.default


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on for the CPU."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> dtype:
    """The dtype that autocast uses on the CPU."""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(wanted: dtype) -> None:
    """Set the dtype that autocast uses on the CPU by default."""
    _settings.default = wanted


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the dtype that autocast uses on a device, in the open block too."""
    if device(device_type).type == "cpu":
        _settings.default = dtype
        if _settings.current:
            _settings.current[-1].fast_dtype = dtype


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Switch autocast in the innermost block, or where none is open, from here on."""
    if enabled is None:
        device_type, enabled = "cuda", bool(device_type)
    is_on = bool(enabled) and device(device_type).type == "cpu"
    if _settings.current:
        _settings.current[-1].enabled = is_on
    elif is_on:
        autocast("cpu").__enter__()


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switch autocast on the CPU."""
    set_autocast_enabled("cpu", enabled)


def autocast_increment_nesting() -> int:
    """Count one more block that a program opens by hand."""
    _settings.nesting += 1
    return _settings.nesting


def autocast_decrement_nesting() -> int:
    """Count one block less."""
    _settings.nesting -= 1
    return _settings.nesting


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters may be kept for the block."""
    return _settings.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Accepted and remembered."""
    _settings.cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Accepted: casts are not kept."""
