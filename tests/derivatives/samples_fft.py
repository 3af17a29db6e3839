"""Samples of Fourier transforms, of real and of complex signals."""

from __future__ import annotations

from typing import Any

import pullback
from tests.derivatives.sampling import Sample, normal, transposed

F: Any = pullback
T = F.fft
WINDOW = F.hann_window(4, dtype=F.float64)


def spectrum(x: Any) -> Any:
    """A one-sided spectrum of frames, (frequency, frame)."""
    return F.complex(x, x * 0.5)


SAMPLES = [
    Sample("fft", T.fft, (normal(2, 4),), complex=True),
    Sample("fft-cut", lambda x: T.fft(x, 3, dim=0, norm="ortho"), (transposed(normal(4, 2)),), complex=True),
    Sample("fft-padded", lambda x: T.fft(x, 5, norm="forward"), (normal(3),), complex=True),
    Sample("ifft", T.ifft, (normal(2, 3),), complex=True),
    Sample("rfft", T.rfft, (normal(2, 4),)),
    Sample("rfft-odd", lambda x: T.rfft(x, norm="ortho", dim=0), (normal(5, 2),)),
    Sample("irfft", T.irfft, (normal(2, 3),), complex=True),
    Sample("irfft-odd", lambda x: T.irfft(x, 5), (normal(2, 3),), complex=True),
    Sample("hfft", T.hfft, (normal(2, 3),), complex=True),
    Sample("ihfft", T.ihfft, (normal(2, 4),)),
    Sample("fft2", T.fft2, (normal(2, 2, 3),), complex=True),
    Sample("ifftn", lambda x: T.ifftn(x, (3, 2), (2, 0)), (normal(2, 2, 3),), complex=True),
    Sample("rfftn", T.rfftn, (normal(2, 2, 3),)),
    Sample("irfftn", lambda x: T.irfftn(x, (2, 5)), (normal(2, 3),), complex=True),
    Sample("hfft2", T.hfft2, (normal(2, 3),), complex=True),
    Sample("ihfftn", T.ihfftn, (normal(2, 3),)),
    Sample("fftshift", T.fftshift, (normal(2, 3),), complex=True),
    Sample("stft", lambda x: F.stft(x, 4, window=WINDOW, return_complex=True), (normal(2, 9),)),
    Sample("stft-real", lambda x: F.stft(x, 4, 3, center=False, normalized=True, return_complex=False), (normal(8),)),
    Sample("istft", lambda x: F.istft(spectrum(x), 4, window=WINDOW), (normal(3, 5),)),
]
