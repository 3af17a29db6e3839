"""Window functions under the names of `torch.signal.windows`.

>>> import pullback
>>> pullback.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pullback.backend.dtype import default_float, from_numpy_dtype
from pullback.creation.options import dtype_option, finish
from pullback.kernels import windows_signal as _values
from pullback.tensor.tensor import Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def _window(name: str, M: int, options: dict[str, Any], make: Callable[[Any], Any]) -> Tensor:
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    wanted = dtype_option(name, options.pop("dtype", None))
    dtype = default_float() if wanted is None else wanted
    if dtype.kind != "f" or dtype.itemsize not in (4, 8):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: torch.{from_numpy_dtype(dtype).name}")
    layout = options.pop("layout", None)
    if layout is not None and "strided" not in str(layout):
        raise ValueError(f"{name} is implemented for strided tensors only, got: torch.{str(layout).split('.')[-1]}")
    return finish(name, make(dtype), options)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """A sum of cosines: a[0] - a[1] cos(x) + a[2] cos(2x) - ..."""
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return _window("general_cosine", M, options, lambda d: _values.general_cosine_window(M, a, not sym, d))


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """A raised cosine: alpha - (1 - alpha) cos(x)."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A raised cosine: 0.54 - 0.46 cos(x)."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A raised cosine that reaches zero."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A sum of two cosines."""
    return _window("blackman", M, options, lambda d: _values.general_cosine_window(M, (0.42, 0.5, 0.08), not sym, d))


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A sum of three cosines with low side lobes."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A triangle that reaches zero at both ends."""
    return _window("bartlett", M, options, lambda d: _values.bartlett_window_values(M, not sym, d))


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Half a wave of a sine."""
    return _window("cosine", M, options, lambda d: _values.cosine_window_values(M, not sym, d))


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """exp(-|n - center| / tau)."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    return _window("exponential", M, options, lambda d: _values.exponential_window_values(M, center, tau, not sym, d))


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """A bell curve."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _window("gaussian", M, options, lambda d: _values.gaussian_window_values(M, std, not sym, d))


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """A window from a Bessel function, narrower for larger `beta`."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _window("kaiser", M, options, lambda d: _values.kaiser_window_values(M, beta, not sym, d))
