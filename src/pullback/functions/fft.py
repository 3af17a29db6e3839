"""Fourier transforms under the names of torch.fft, here with the prefix `fft_`."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.dtype import complex_of, default_float, is_float_or_complex, scalar_type_name
from pullback.creation.options import dtype_option, finish
from pullback.errors import dim_out_of_range
from pullback.facts import declare
from pullback.graph.in_place import write_out
from pullback.kernels.fft import fft_frequencies
from pullback.tensor.tensor import Tensor

_FORWARD = {None: "none", "backward": "none", "ortho": "sqrt", "forward": "count"}
_INVERSE = {None: "count", "backward": "count", "ortho": "sqrt", "forward": "none"}


@declare(autocast="float32")
def fft_fft(
    input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The transform along one dimension.

    >>> import pullback
    >>> pullback.fft.fft(pullback.tensor([1., 0., 0.]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j])
    """
    dim = dim if axis is None else axis
    return _finish("fft_fft", out, _transform(input, n, dim, norm, forward=True))


@declare(autocast="float32")
def fft_ifft(
    input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The inverse transform along one dimension.

    `n` cuts or fills the input to that size; `norm` is "backward" (divide here by n), "ortho" or "forward". y[j] = sum
    over k of x[k] * exp(2 * pi * i * j * k / n) / n.

    >>> import pullback
    >>> pullback.fft.ifft(pullback.tensor([4., 0., 0., 0.])).real
    tensor([1., 1., 1., 1.])
    """
    dim = dim if axis is None else axis
    return _finish("fft_ifft", out, _transform(input, n, dim, norm, forward=False))


@declare(autocast="float32")
def fft_rfft(
    input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The transform of real numbers, without its conjugate half.

    >>> import pullback
    >>> pullback.fft.rfft(pullback.ones(4)).shape
    pullback.Size([3])
    """
    dim = dim if axis is None else axis
    return _finish("fft_rfft", out, _to_half("rfft", input, n, dim, _scale(_FORWARD, norm)))


@declare(autocast="float32")
def fft_ihfft(
    input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The inverse of `hfft`."""
    dim = dim if axis is None else axis
    half = _to_half("ihfft", input, n, dim, _scale(_INVERSE, norm))
    return _finish("fft_ihfft", out, G.conjugated(half))


@declare(autocast="float32")
def fft_irfft(
    input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The inverse of `rfft`; `n` is the size of the result.

    Half of a spectrum, n // 2 + 1 numbers, gives n real ones, an even number unless `n` says otherwise; `norm` as for
    `ifft`.

    >>> import pullback
    >>> pullback.fft.irfft(pullback.tensor([4., 0., 0.]))
    tensor([1., 1., 1., 1.])
    """
    dim = dim if axis is None else axis
    return _finish("fft_irfft", out, _from_half(input, n, dim, _scale(_INVERSE, norm), conjugate=False))


@declare(autocast="float32")
def fft_hfft(
    input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The transform of half of a signal that is its own conjugate mirrored, which is real."""
    dim = dim if axis is None else axis
    return _finish("fft_hfft", out, _from_half(input, n, dim, _scale(_FORWARD, norm), conjugate=True))


def _transform(input: Tensor, n: Any, dim: int, norm: str | None, *, forward: bool) -> Tensor:
    at = _one_dim(input, dim)
    tensor = _floating(input)
    tensor = _resized(tensor, (at,), (tensor._array.shape[at] if n is None else n,))
    scale = _scale(_FORWARD if forward else _INVERSE, norm)
    if tensor._array.dtype.kind == "c":
        return G.fft_c2c(tensor, (at,), scale, forward)
    whole = G.fft_r2c(tensor, (at,), scale, False)
    return whole if forward else G.conjugated(whole)


def _to_half(name: str, input: Tensor, n: Any, dim: int, scale: str) -> Tensor:
    _require_real(name, input)
    at = _one_dim(input, dim)
    tensor = _floating(input)
    tensor = _resized(tensor, (at,), (tensor._array.shape[at] if n is None else n,))
    return G.fft_r2c(tensor, (at,), scale, True)


def _from_half(input: Tensor, n: Any, dim: int, scale: str, *, conjugate: bool) -> Tensor:
    at = _one_dim(input, dim)
    tensor = _complex(input)
    size = 2 * (tensor._array.shape[at] - 1) if n is None else n
    _check_count(size)
    tensor = _resized(tensor, (at,), (size // 2 + 1,))
    return G.fft_c2r(G.conjugated(tensor) if conjugate else tensor, (at,), scale, size)


def fft_fftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The transform over several dimensions.

    `s` are the sizes to cut or fill to, `dim` the dimensions, all unless given; `norm` as for `fft`.

    >>> import pullback
    >>> pullback.fft.fftn(pullback.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    dim = dim if axis is None else axis
    dims, sizes = _several(input, s, dim)
    tensor = _resized(_complex(input), dims, sizes)
    return _finish("fft_fftn", out, G.fft_c2c(tensor, dims, _scale(_FORWARD, norm), True))


def fft_ifftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The inverse transform over several dimensions.

    `s` are the sizes to cut or fill to, `dim` the dimensions, all unless given; `norm` as for `ifft`.

    >>> import pullback
    >>> pullback.fft.ifftn(pullback.ones(2, 2))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    dim = dim if axis is None else axis
    dims, sizes = _several(input, s, dim)
    tensor = _resized(_complex(input), dims, sizes)
    return _finish("fft_ifftn", out, G.fft_c2c(tensor, dims, _scale(_INVERSE, norm), False))


def fft_rfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The transform of real numbers over several dimensions, the last without its conjugate half."""
    dim = dim if axis is None else axis
    return _finish("fft_rfftn", out, _several_to_half("rfftn", input, s, dim, _scale(_FORWARD, norm)))


def fft_ihfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The inverse of `hfftn`."""
    dim = dim if axis is None else axis
    _require_real("ihfftn", input)
    dims, sizes = _several(input, s, dim)
    if not dims:
        raise RuntimeError("ihfftn must transform at least one axis")
    scale = _scale(_INVERSE, norm)
    half = G.fft_r2c(_resized(_floating(input), dims, sizes), dims[-1:], scale, True)
    if len(dims) == 1:
        return _finish("fft_ihfftn", out, G.conjugated(half))
    return _finish("fft_ihfftn", out, G.fft_c2c(G.conj_physical(half), dims[:-1], scale, False))


def fft_irfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The inverse of `rfftn`; the last of `s` is the size of the result."""
    dim = dim if axis is None else axis
    scale = _scale(_INVERSE, norm)
    return _finish("fft_irfftn", out, _several_from_half("irfftn", input, s, dim, scale, conjugate=False))


def fft_hfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The transform over several dimensions of a signal that is its own conjugate mirrored."""
    dim = dim if axis is None else axis
    scale = _scale(_FORWARD, norm)
    return _finish("fft_hfftn", out, _several_from_half("hfftn", input, s, dim, scale, conjugate=True))


def _several_to_half(name: str, input: Tensor, s: Any, dim: Any, scale: str) -> Tensor:
    _require_real(name, input)
    dims, sizes = _several(input, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return G.fft_r2c(_resized(_floating(input), dims, sizes), dims, scale, True)


def _several_from_half(name: str, input: Tensor, s: Any, dim: Any, scale: str, *, conjugate: bool) -> Tensor:
    dims, sizes = _several(input, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    _check_count(min(sizes))
    whole = sizes[-1]
    if s is None or whole == -1:
        whole = 2 * (input._array.shape[dims[-1]] - 1)
    _check_count(whole)
    tensor = _resized(_complex(input), dims, (*sizes[:-1], whole // 2 + 1))
    if not conjugate:
        return G.fft_c2r(tensor, dims, scale, whole)
    across = G.fft_c2c(tensor, dims[:-1], scale, True) if len(dims) > 1 else tensor
    return G.fft_c2r(G.conjugated(across), dims[-1:], scale, whole)


def fft_fft2(
    input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The transform over two dimensions.

    `s` are the sizes to cut or fill to, `dim` the two dimensions, `norm` as for `fft`.

    >>> import pullback
    >>> pullback.fft.fft2(pullback.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    dim = dim if axis is None else axis
    return fft_fftn(input, s, dim, norm, out=out)


def fft_ifft2(
    input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The inverse transform over two dimensions.

    `s` are the sizes to cut or fill to, `dim` the two dimensions, `norm` as for `ifft`.

    >>> import pullback
    >>> pullback.fft.ifft2(pullback.ones(2, 2))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    dim = dim if axis is None else axis
    return fft_ifftn(input, s, dim, norm, out=out)


def fft_rfft2(
    input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The transform of real numbers over two dimensions, the last without its conjugate half.

    `s` are the sizes to cut or fill to, `dim` the two dimensions, `norm` as for `fft`; the last one becomes n // 2 + 1.

    >>> import pullback
    >>> pullback.fft.rfft2(pullback.ones(4, 4)).shape
    pullback.Size([4, 3])
    """
    dim = dim if axis is None else axis
    return fft_rfftn(input, s, dim, norm, out=out)


def fft_irfft2(
    input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The inverse of `rfft2`.

    `s` are the sizes of the result, `dim` the two dimensions, `norm` as for `ifft`.

    >>> import pullback
    >>> pullback.fft.irfft2(pullback.ones(4, 3)).shape
    pullback.Size([4, 4])
    """
    dim = dim if axis is None else axis
    return fft_irfftn(input, s, dim, norm, out=out)


def fft_hfft2(
    input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The transform over two dimensions of a signal that is its own conjugate mirrored."""
    dim = dim if axis is None else axis
    return fft_hfftn(input, s, dim, norm, out=out)


def fft_ihfft2(
    input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The inverse of `hfft2`."""
    dim = dim if axis is None else axis
    return fft_ihfftn(input, s, dim, norm, out=out)


def fft_fftshift(input: Tensor, dim: Any = None, *, axis: Any = None) -> Tensor:
    """The zero frequency moved to the middle.

    >>> import pullback
    >>> pullback.fft.fftshift(pullback.arange(4))
    tensor([2, 3, 0, 1])
    """
    dim = dim if axis is None else axis
    dims = _shifted_dims(input, dim)
    return G.roll(input, tuple([input._array.shape[d] // 2 for d in dims]), dims)


def fft_ifftshift(input: Tensor, dim: Any = None, *, axis: Any = None) -> Tensor:
    """The inverse of `fftshift`.

    `dim` are the dimensions, all unless given; each is rolled by -(n // 2).

    >>> import pullback
    >>> pullback.fft.ifftshift(pullback.tensor([-1, 0, 1]))
    tensor([ 0,  1, -1])
    """
    dim = dim if axis is None else axis
    dims = _shifted_dims(input, dim)
    return G.roll(input, tuple([(input._array.shape[d] + 1) // 2 for d in dims]), dims)


def fft_fftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """The frequencies of a transform of `n` points at distance `d`.

    >>> import pullback
    >>> pullback.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    _check_points(n)
    wanted = _frequency_dtype("fftfreq", options.pop("dtype", None))
    return finish("fft_fftfreq", fft_frequencies(n, d, wanted, False), options)


def fft_rfftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """The frequencies of a one-sided transform.

    `d` is the time between samples. y[k] = k / (n * d), k from 0 to n // 2.

    >>> import pullback
    >>> pullback.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    _check_points(n)
    wanted = _frequency_dtype("rfftfreq", options.pop("dtype", None))
    return finish("fft_rfftfreq", fft_frequencies(n, d, wanted, True), options)


def _frequency_dtype(function: str, dtype: Any) -> Any:
    wanted = dtype_option(f"fft_{function}", dtype) or default_float()
    if not is_float_or_complex(wanted):
        raise RuntimeError(f"{function} requires a floating point or complex dtype")
    return wanted


def _shifted_dims(input: Tensor, dim: Any) -> tuple[int, ...]:
    ndim = input._array.ndim
    if dim is None:
        return tuple(range(ndim))
    return tuple([_wrapped(d, ndim) for d in ((dim,) if isinstance(dim, int) else dim)])


def _finish(name: str, out: Any, result: Any) -> Tensor:
    return result if out is None else write_out(name, out, result)


def _scale(table: dict[str | None, str], norm: str | None) -> str:
    if norm not in table:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return table[norm]


def _wrapped(dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        if ndim == 0:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        raise dim_out_of_range(dim, ndim)
    return dim % ndim


def _one_dim(input: Tensor, dim: int) -> int:
    _refuse_half(input)
    return _wrapped(dim, input._array.ndim)


def _several(input: Tensor, s: Any, dim: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dimensions, and the sizes to which the signal is cut or padded (-1 leaves one as it is)."""
    _refuse_half(input)
    shape, ndim = input._array.shape, input._array.ndim
    sizes = None if s is None else (s,) if isinstance(s, int) else tuple(s)
    if dim is not None:
        given = (dim,) if isinstance(dim, int) else tuple(dim)
        dims = tuple([_wrapped(d, ndim) for d in given])
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if sizes is not None and len(sizes) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif sizes is not None:
        if len(sizes) > ndim:
            raise RuntimeError(f"Got shape with {len(sizes)} values but input tensor only has {ndim} dimensions.")
        dims = tuple(range(ndim - len(sizes), ndim))
    else:
        dims = tuple(range(ndim))
    if sizes is None:
        sizes = tuple([shape[d] for d in dims])
    return dims, tuple([shape[d] if size == -1 else size for d, size in zip(dims, sizes, strict=True)])


def _refuse_half(input: Tensor) -> None:
    if input._array.dtype.itemsize == 2 and is_float_or_complex(input._array.dtype):
        raise RuntimeError(f"Unsupported dtype {scalar_type_name(input._array.dtype)}")


def _require_real(name: str, input: Tensor) -> None:
    if input._array.dtype.kind == "c":
        given = scalar_type_name(input._array.dtype)
        if name == "ihfftn":
            raise RuntimeError(f"Only supports floating-point dtypes, but found: {given}")
        raise RuntimeError(f"{name} expects a real{'-valued' if name == 'rfftn' else ''} input tensor, but got {given}")


def _floating(input: Tensor) -> Tensor:
    return input if is_float_or_complex(input._array.dtype) else G.to_dtype(input, default_float())


def _complex(input: Tensor) -> Tensor:
    floating = _floating(input)
    if floating._array.dtype.kind == "c":
        return floating
    return G.to_dtype(floating, complex_of(floating._array.dtype))


def _check_count(size: int) -> None:
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")


def _resized(input: Tensor, dims: tuple[int, ...], sizes: tuple[int, ...]) -> Tensor:
    """The signal cut or padded with zeros at the end of each dimension."""
    ndim = input._array.ndim
    padding = [0] * (2 * ndim)
    for dim, size in zip(dims, sizes, strict=True):
        _check_count(size)
        have = input._array.shape[dim]
        if size < have:
            input = G.slice_view(input, dim, 0, size, 1)
        else:
            padding[2 * (ndim - 1 - dim) + 1] = size - have
    return G.constant_pad_nd(input, tuple(padding), 0) if any(padding) else input


def _check_points(n: int) -> None:
    if isinstance(n, int) and n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
