"""The window functions of the namespace `torch` itself; those of torch.signal.windows are in pullback/pytorch/signal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.backend.dtype import default_float, from_numpy_dtype, is_float_or_complex
from pullback.creation.options import dtype_option, finish
from pullback.facts import declare
from pullback.kernels.windows_signal import bartlett_window_values, general_cosine_window, kaiser_window_values
from pullback.tensor.arguments import as_int, plain_number
from pullback.tensor.tensor import Tensor


def _window(name: str, size: int, options: dict[str, Any], make: Callable[[Any], Any]) -> Tensor:
    wanted = dtype_option(name, options.pop("dtype", None))
    dtype = default_float() if wanted is None else wanted
    if not is_float_or_complex(dtype) or dtype.kind == "c":
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={from_numpy_dtype(dtype).name})"
        )
    if size < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={size}")
    return finish(name, make(dtype), options)


@declare(found="torch")
def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A raised cosine that reaches zero.

    >>> import pullback
    >>> pullback.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    window_length = as_int(window_length)
    return _window(
        "hann_window", window_length, options, lambda d: general_cosine_window(window_length, (0.5, 0.5), periodic, d)
    )


@declare(found="torch")
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """A raised cosine: alpha - beta cos(x)."""
    window_length = as_int(window_length)
    return _window(
        "hamming_window", window_length, options,
        lambda d: general_cosine_window(window_length, (plain_number(alpha), plain_number(beta)), periodic, d),
    )  # fmt: skip


@declare(found="torch")
def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A sum of two cosines: 0.42 - 0.5 cos(x) + 0.08 cos(2x)."""
    window_length = as_int(window_length)
    return _window(
        "blackman_window", window_length, options,
        lambda d: general_cosine_window(window_length, (0.42, 0.5, 0.08), periodic, d),
    )  # fmt: skip


@declare(found="torch")
def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A triangle that reaches zero at both ends."""
    window_length = as_int(window_length)
    return _window(
        "bartlett_window", window_length, options, lambda d: bartlett_window_values(window_length, periodic, d)
    )


@declare(found="torch")
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """A window from a Bessel function, narrower for larger `beta`."""
    window_length = as_int(window_length)
    return _window(
        "kaiser_window", window_length, options, lambda d: kaiser_window_values(window_length, beta, periodic, d)
    )
