"""Fourier transforms: the dimensions move up by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.func.batching_rules.table import ndim_of, rule
from pullback.func.vmap_level import VmapLevel
from pullback.tensor.dims import wrap_dim

Arguments = tuple[Any, ...]
Options = dict[str, Any]


@rule("fft_c2c fft_r2c fft_c2r")
def fourier(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Transform along the same dimensions of every example."""
    input, dims, *rest = args
    moved = tuple([wrap_dim(d, ndim_of(input)) + 1 for d in dims])
    return level.wrap(function(input._physical, moved, *rest, **kwargs))


@rule("double_conjugate_pairs")
def double_conjugate_pairs(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Halves of symmetric spectra, counted twice."""
    input, dim, *rest = args
    return level.wrap(function(input._physical, wrap_dim(dim, ndim_of(input)) + 1, *rest, **kwargs))
