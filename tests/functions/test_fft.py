from __future__ import annotations

import numpy as np
import pytest

import pullback

X = np.random.default_rng(5).normal(size=(3, 4, 5))


@pytest.mark.parametrize("norm", [None, "ortho", "forward", "backward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_agree_with_numpy(name: str, norm: str | None) -> None:
    actual = getattr(pullback.fft, name)(pullback.from_numpy(X), 6, 1, norm)
    np.testing.assert_allclose(actual.numpy(), getattr(np.fft, name)(X, 6, 1, norm), atol=1e-12)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "rfft2"])
def test_transforms_over_several_dimensions_agree_with_numpy(name: str) -> None:
    actual = getattr(pullback.fft, name)(pullback.from_numpy(X))
    axes = (-2, -1) if name.endswith("2") else (0, 1, 2)
    np.testing.assert_allclose(actual.numpy(), getattr(np.fft, name)(X, axes=axes), atol=1e-12)


def test_single_precision_stays() -> None:
    assert pullback.fft.fft(pullback.ones(4)).dtype is pullback.complex64
    assert pullback.fft.irfft(pullback.ones(4)).dtype is pullback.float32
    assert pullback.fft.rfft(pullback.arange(4)).dtype is pullback.complex64


def test_hfftn_is_undone_by_ihfftn() -> None:
    x = pullback.from_numpy(X)
    np.testing.assert_allclose(pullback.fft.hfftn(pullback.fft.ihfftn(x), x.shape).numpy(), X, atol=1e-12)


def test_shifts_undo_each_other() -> None:
    x = pullback.arange(5)
    assert pullback.fft.fftshift(x).tolist() == [3, 4, 0, 1, 2]
    assert pullback.equal(pullback.fft.ifftshift(pullback.fft.fftshift(x)), x)


@pytest.mark.parametrize("onesided", [True, False])
def test_istft_undoes_stft(onesided: bool) -> None:
    signal = pullback.from_numpy(np.random.default_rng(0).normal(size=(2, 50)))
    window = pullback.hann_window(10, dtype=pullback.float64)
    spectra = pullback.stft(signal, 12, 3, 10, window, onesided=onesided, return_complex=True)
    back = pullback.istft(spectra, 12, 3, 10, window, onesided=onesided, length=50)
    np.testing.assert_allclose(back.numpy(), signal.numpy(), atol=1e-10)


def test_a_window_without_overlap_is_refused() -> None:
    spectra = pullback.ones(5, 4, dtype=pullback.complex64)
    with pytest.raises(RuntimeError, match="window overlap add min"):
        pullback.istft(spectra, 8, window=pullback.zeros(8))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pullback.fft.fft(pullback.ones(4), 0), "Invalid number of data points"),
        (lambda: pullback.fft.fft(pullback.ones(4), norm="bad"), "Invalid normalization mode"),
        (lambda: pullback.fft.rfft(pullback.ones(4) * 1j), "expects a real input tensor"),
        (lambda: pullback.fft.fft2(pullback.ones(4, 4), dim=(0, 0)), "dims must be unique"),
        (lambda: pullback.stft(pullback.ones(16), 4), "requires the return_complex parameter"),
    ],
)
def test_wrong_arguments_are_refused(call: object, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()  # type: ignore[operator]


def test_windows_are_symmetric_or_periodic() -> None:
    hann = pullback.signal.windows.hann
    assert hann(5).tolist() == [*hann(4, sym=False).tolist(), 0.0]
    assert pullback.equal(pullback.hann_window(4), hann(4, sym=False))
    assert pullback.kaiser_window(1).tolist() == [1.0]
    with pytest.raises(ValueError, match="non-negative window length"):
        hann(-1)
