"""Short-time Fourier transforms, composed of padding, strided frames and transforms."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.dtype import (
    complex_of,
    from_numpy_dtype,
    is_float_or_complex,
    real_of,
    scalar_type_name,
    type_in_errors,
)
from pullback.creation.filled import ones
from pullback.facts import declare
from pullback.modes.interception import taken_whole
from pullback.modes.user_warnings import warn_once, warn_user
from pullback.tensor.tensor import Tensor


@taken_whole
@declare(autocast="float32", written_in="functional", found="torch and method")
def stft(
    input: Tensor, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Any = None, center: bool = True,
    pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """The transforms of overlapping frames of a signal, as (batch, frequency, frame).

    >>> import pullback
    >>> pullback.stft(pullback.ones(16), 4, return_complex=True).shape
    pullback.Size([3, 17])
    """
    if window is None:
        warn_once("A window was not provided. A rectangular window will be applied, which is known to cause spectral "
                  "leakage: pass window=torch.hann_window(n_fft), or torch.ones(n_fft) if it is meant.")  # fmt: skip
    hop, width = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    whole_complex = input._array.dtype.kind == "c" or (window is not None and window._array.dtype.kind == "c")
    if return_complex is None:
        if not whole_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if not return_complex:
        warn_once("stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex "
                  "tensors for all inputs: torch.view_as_real makes real ones of them.")  # fmt: skip
    one_sided = not whole_complex if onesided is None else onesided
    if one_sided and whole_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    call = _describe_stft(input, n_fft, hop, width, window, normalized, onesided, return_complex, align_to_window)
    signal: Any = input if input._array.ndim != 1 else G.unsqueeze(input, 0)
    if not is_float_or_complex(input._array.dtype):
        raise RuntimeError(f"{call} : expected a tensor of floating point or complex values")
    if center and n_fft > 0:
        signal = _padded(signal, n_fft // 2, pad_mode)
    _check_stft(call, signal, n_fft, hop, width, window)
    frames = G.unfold(signal, 1, n_fft, hop)
    if window is not None:
        frames = frames * _widened(window, n_fft)
    elif width != n_fft:
        frames = frames * _widened(_rectangle(signal, width), n_fft)
    scale = "sqrt" if normalized else "none"
    if frames._array.dtype.kind == "c":
        spectra = G.fft_c2c(frames, (2,), scale, True)
    else:
        spectra = G.fft_r2c(frames, (2,), scale, bool(one_sided))
    result = spectra.transpose_(1, 2)
    if input._array.ndim == 1:
        result = result.squeeze_(0)
    return result if return_complex else G.view_as_real(result)


def _describe_stft(
    input: Tensor, n_fft: int, hop: int, width: int, window: Any, normalized: bool, onesided: Any, return_complex: Any,
    align_to_window: Any,
) -> str:  # fmt: skip
    shown = "None" if window is None else f"{type_in_errors(window._array.dtype)}{{{list(window.shape)}}}"
    return (
        f"stft({type_in_errors(input._array.dtype)}{list(input.shape)}, n_fft={n_fft}, hop_length={hop}, "
        f"win_length={width}, window={shown}, normalized={int(normalized)}, "
        f"onesided={onesided if onesided is None else int(onesided)}, "
        f"return_complex={int(return_complex)}, align_to_window={align_to_window})"
    )


def _check_stft(call: str, signal: Any, n_fft: int, hop: int, width: int, window: Any) -> None:
    if signal._array.ndim != 2:
        raise RuntimeError(f"{call} : expected a 1D or 2D tensor")
    length = signal._array.shape[1]
    if not 0 < n_fft <= length:
        raise RuntimeError(f"{call} : expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{call} : expected hop_length > 0, but got hop_length={hop}")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{call} : expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and window._array.shape != (width,):
        raise RuntimeError(
            f"{call} : expected a 1D window tensor of size equal to win_length={width}, but got window with size "
            f"{list(window.shape)}"
        )


def _padded(signal: Any, amount: int, mode: str) -> Any:
    from pullback.nn.functional import pad  # lazy: nn is above functions

    return pad(G.unsqueeze(signal, 1), (amount, amount), mode).squeeze(1)


def _widened(window: Any, n_fft: int) -> Any:
    """The window in the middle of `n_fft` zeros."""
    missing = n_fft - window._array.shape[0]
    if not missing:
        return window
    return G.constant_pad_nd(window, (missing // 2, missing - missing // 2), 0)


def _rectangle(signal: Any, size: int) -> Tensor:
    """The window that changes nothing. It does not depend on the signal, so it is not batched with it."""
    return ones(size, dtype=from_numpy_dtype(real_of(signal._array.dtype)), device=signal.device)


@declare(written_in="functional", found="torch and method")
def istft(
    input: Tensor, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Any = None, center: bool = True,
    normalized: bool = False, onesided: Any = None, length: Any = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The signal whose `stft` is nearest to `input`."""
    if window is None:
        warn_once("A window was not provided. A rectangular window will be applied. Please provide the same window used by "
                  "stft to make the inversion lossless.")  # fmt: skip
    hop, width = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    call = _describe_istft(input, n_fft, hop, width, window, center, normalized, onesided, length, return_complex)
    one_sided = _check_istft(call, input, n_fft, hop, width, window, onesided, return_complex)
    spectra: Any = input if input._array.ndim == 3 else G.unsqueeze(input, 0)
    spectra = G.transpose(spectra, 1, 2)
    scale = "sqrt" if normalized else "count"
    if return_complex:
        frames = G.fft_c2c(spectra, (2,), scale, False)
    else:
        if not one_sided:
            spectra = G.slice_view(spectra, 2, 0, n_fft // 2 + 1, 1)
        frames = G.fft_c2r(spectra, (2,), scale, n_fft)
    real = real_of(input._array.dtype)
    shape = window if window is not None else _rectangle(input, width)
    shape = _widened(G.to_dtype(shape, complex_of(real) if return_complex else shape._array.dtype), n_fft)
    signal = G.overlap_add(frames * shape, hop)
    count = spectra._array.shape[1]
    squares = G.expand(G.unsqueeze(G.unsqueeze(shape * shape, 0), 0), (1, count, n_fft))
    envelope = G.overlap_add(squares, hop)
    return _trimmed(call, signal, envelope, n_fft, center, length, input._array.ndim == 2)


def _trimmed(call: str, signal: Any, envelope: Any, n_fft: int, center: bool, length: Any, single: bool) -> Tensor:
    """The signal divided by the window's envelope, without what `center` added, at the wanted length."""
    start = n_fft // 2 if center else 0
    whole = signal._array.shape[1]
    if length is not None:
        end = start + length
    else:
        end = whole - n_fft // 2 if center else whole
    signal = G.slice_view(signal, 1, start, min(end, whole), 1)
    envelope = G.slice_view(envelope, 1, start, min(end, whole), 1)
    G.check_envelope(envelope, call)
    result = signal / envelope
    if end > whole:
        warn_user(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings."
        )
        result = G.constant_pad_nd(result, (0, end - whole), 0)
    return G.squeeze_dim(result, 0) if single else result


def _describe_istft(
    input: Tensor, n_fft: int, hop: int, width: int, window: Any, center: bool, normalized: bool, onesided: Any,
    length: Any, return_complex: bool,
) -> str:  # fmt: skip
    shown = "None" if window is None else f"{type_in_errors(window._array.dtype)}{{{list(window.shape)}}}"
    return (
        f"istft(CPU{scalar_type_name(input._array.dtype)}Type{list(input.shape)}, n_fft={n_fft}, hop_length={hop}, "
        f"win_length={width}, window={shown}, center={int(center)}, normalized={int(normalized)}, "
        f"onesided={onesided if onesided is None else int(onesided)}, length={length}, "
        f"return_complex={int(return_complex)})"
    )


def _check_istft(
    call: str, input: Tensor, n_fft: int, hop: int, width: int, window: Any, onesided: Any, return_complex: bool
) -> bool:
    array = input._array
    if array.dtype.kind != "c":
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if array.size == 0:
        raise RuntimeError(f"{call} : input tensor cannot be empty.")
    if array.ndim not in (2, 3):
        raise RuntimeError(f"{call} : expected a tensor with 3 or 4 dimensions, but got {array.ndim + 1}")
    rows = array.shape[-2]
    one_sided = bool(rows != n_fft) if onesided is None else bool(onesided)
    if one_sided and rows != n_fft // 2 + 1:
        raise RuntimeError(
            f"{call} : expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when "
            f"onesided=True, but got {rows}"
        )
    if not one_sided and rows != n_fft:
        raise RuntimeError(
            f"{call} : expected the frequency dimension (3rd to the last) of the input tensor to match n_fft when "
            f"onesided=False, but got {rows}"
        )
    if not 0 < hop <= width:
        raise RuntimeError(f"{call} : expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{call} : expected 0 < win_length <= n_fft")
    if window is not None and window._array.shape != (width,):
        raise RuntimeError(f"{call} : Invalid window shape. window has to be 1D and length of `win_length`")
    if return_complex and one_sided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    return one_sided
