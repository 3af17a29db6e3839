"""Fourier transforms and windows on PyTorch and on pullback."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from tests.parity.comparison import compare

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(11)
REAL = RNG.normal(size=(3, 4))
COMPLEX = REAL + 1j * RNG.normal(size=(3, 4))
SIGNAL = RNG.normal(size=(2, 24))
SPECTRUM = RNG.normal(size=(5, 6)) + 1j * RNG.normal(size=(5, 6))

VALUES = {
    "fft": (lambda t, F, x: t.fft.fft(x), REAL),
    "fft single precision": (lambda t, F, x: t.fft.fft(x), REAL.astype(np.float32)),
    "fft complex": (lambda t, F, x: t.fft.fft(x, 6, 0, "ortho"), COMPLEX),
    "ifft": (lambda t, F, x: t.fft.ifft(x, 3), COMPLEX),
    "rfft": (lambda t, F, x: t.fft.rfft(x, 5, norm="forward"), REAL),
    "irfft": (lambda t, F, x: t.fft.irfft(x), COMPLEX),
    "irfft odd": (lambda t, F, x: t.fft.irfft(x, 7), COMPLEX),
    "hfft": (lambda t, F, x: t.fft.hfft(x, norm="ortho"), COMPLEX),
    "ihfft": (lambda t, F, x: t.fft.ihfft(x) * 2, REAL),
    "fft2": (lambda t, F, x: t.fft.fft2(x), REAL),
    "ifftn": (lambda t, F, x: t.fft.ifftn(x, (2, 5)), COMPLEX),
    "rfftn": (lambda t, F, x: t.fft.rfftn(x, dim=(1, 0)), REAL),
    "irfft2": (lambda t, F, x: t.fft.irfft2(x), COMPLEX),
    "hfftn": (lambda t, F, x: t.fft.hfftn(x), COMPLEX),
    "ihfft2": (lambda t, F, x: t.fft.ihfft2(x), REAL),
    "fftshift": (lambda t, F, x: t.fft.fftshift(x, 1), REAL),
    "ifftshift": (lambda t, F, x: t.fft.ifftshift(x), REAL),
    "stft": (lambda t, F, x: t.stft(x, 8, window=t.hann_window(8, dtype=t.float64), return_complex=True), SIGNAL),
    "stft of one signal": (lambda t, F, x: t.stft(x[0], 6, 2, 4, center=False, return_complex=True), SIGNAL),
    "istft": (lambda t, F, x: t.istft(x, 8, window=t.hann_window(8, dtype=t.float64)), SPECTRUM),
    "istft of a length": (lambda t, F, x: t.istft(x, 8, length=9), SPECTRUM),
    "fftfreq": (lambda t, F: t.fft.fftfreq(5, 0.5),),
    "rfftfreq": (lambda t, F: t.fft.rfftfreq(6, dtype=t.float64),),
    "hann_window": (lambda t, F: t.hann_window(6, periodic=False),),
    "hamming_window": (lambda t, F: t.hamming_window(6, True, 0.5, 0.4),),
    "bartlett_window": (lambda t, F: t.bartlett_window(5),),
    "blackman_window": (lambda t, F: t.blackman_window(5, dtype=t.float64) + 1,),
    "kaiser_window": (lambda t, F: t.kaiser_window(5, True, 8.0),),
}

WINDOWS: dict[str, dict[str, Any]] = {
    "bartlett": {}, "cosine": {}, "exponential": {"tau": 3.0}, "gaussian": {"std": 2.0}, "hamming": {}, "hann": {},
    "general_cosine": {"a": [0.46, 0.23, 0.31]}, "general_hamming": {"alpha": 0.6}, "kaiser": {"beta": 10.0},
    "nuttall": {},
}  # fmt: skip

REFUSALS = {
    "half precision": lambda t: t.fft.fft(t.ones(4, dtype=t.float16)),
    "no points": lambda t: t.fft.fft(t.ones(4), 0),
    "norm": lambda t: t.fft.fft(t.ones(4), norm="bad"),
    "complex": lambda t: t.fft.rfft(t.ones(4, dtype=t.complex64)),
    "dimension": lambda t: t.fft.fft(t.ones(4), dim=2),
    "repeated dimension": lambda t: t.fft.fft2(t.ones(4, 4), dim=(0, 0)),
    "lengths": lambda t: t.fft.fftn(t.ones(4, 4), s=(2, 3), dim=(0,)),
    "stft": lambda t: t.stft(t.ones(16), 4),
    "window": lambda t: t.signal.windows.hann(-1),
    "tau": lambda t: t.signal.windows.exponential(4, tau=0.0),
    "window length": lambda t: t.hann_window(-1),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_and_gradients_are_those_of_pytorch(name: str) -> None:
    call, *arrays = VALUES[name]
    compare(torch, call, arrays)


@pytest.mark.parametrize("size", [0, 1, 4, 5])
@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_those_of_pytorch(name: str, sym: bool, size: int) -> None:
    expected = getattr(torch.signal.windows, name)(size, sym=sym, **WINDOWS[name])
    actual = getattr(pullback.signal.windows, name)(size, sym=sym, **WINDOWS[name])
    np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_begin_with_the_words_of_pytorch(name: str) -> None:
    expected, actual = _refusal(torch, name), _refusal(pullback, name)
    assert type(actual) is type(expected)
    assert str(actual)[:60] == str(expected)[:60]


def _refusal(library: Any, name: str) -> Exception:
    with pytest.raises(Exception) as info:
        REFUSALS[name](library)
    return info.value
