"""Resizing, and sampling at points."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as G
from pullback import functions
from pullback.checks.shapes import nothing_to_pool
from pullback.functions.memory_formats import in_format_of
from pullback.modes.user_warnings import warn_user
from pullback.nn import functional
from pullback.tensor.arguments import as_int, as_shape
from pullback.tensor.tensor import Tensor
from pullback.typing import Shape

_SMOOTH = ("linear", "bilinear", "bicubic", "trilinear", "lanczos")
_GRID_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_GRID_PADDING = {"zeros": 0, "border": 1, "reflection": 2}


def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """Resize the spatial dimensions of (N, C, ...) to `size`, or by `scale_factor`.

    `mode` is 'nearest', 'nearest-exact', 'area', 'linear' (3D input), 'bilinear' or 'bicubic' (4D), 'trilinear' (5D).

    >>> import pullback
    >>> pullback.nn.functional.interpolate(pullback.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    if mode not in _SMOOTH and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    sizes, scales = _target(input, size, scale_factor, recompute_scale_factor)
    dims = input._array.ndim - 2
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    if antialias:
        if mode not in ("bilinear", "bicubic", "lanczos") or dims != 2:
            raise ValueError(
                "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D "
                "tensor as input"
            )
        _check_sizes(input, sizes)
        return in_format_of(input, getattr(G, f"upsample_{mode}2d_aa")(input, sizes, bool(align_corners), scales))
    if mode == "area":
        name = f"adaptive_avg_pool{dims}d"
        if dims not in (1, 2, 3):
            raise NotImplementedError(_unsupported(input, mode))
        if dims == 3 and 0 in input._array.shape[1:]:
            raise nothing_to_pool(name, input._array.shape)
        return in_format_of(input, (functions.adaptive_avg_pool1d if dims == 1 else getattr(G, name))(input, sizes))
    operation = getattr(G, f"upsample_{mode.replace('-', '_')}{dims}d", None)
    if operation is None:
        raise NotImplementedError(_unsupported(input, mode))
    _check_sizes(input, sizes)
    if mode in _SMOOTH:
        return in_format_of(input, operation(input, sizes, bool(align_corners), scales))
    return in_format_of(input, operation(input, sizes, scales))


def _unsupported(input: Tensor, mode: str) -> str:
    dims = input._array.ndim
    if (dims - 2, mode) in {(d, m) for d in (1, 2, 3) for m in _SMOOTH}:
        needed = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}[mode]
        return f"Got {dims}D input, but {mode} mode needs {needed}D input"
    return (
        "Input Error: Only 3D, 4D and 5D input Tensors supported "
        f"(got {dims}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | "
        f"nearest-exact (got {mode})"
    )


def _check_sizes(input: Tensor, sizes: Shape) -> None:
    old = input._array.shape[2:]
    if any(n <= 0 for n in (*old, *sizes)):
        shown = [", ".join(f"{n}: {s}" for n, s in zip("DHW"[-len(old) :], each, strict=True)) for each in (old, sizes)]
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({shown[0]})"
            f"{' and' if len(old) == 1 else ''} output ({shown[1]})"
        )
    if input._array.shape[1] == 0:
        raise RuntimeError(
            f"Non-empty {len(old) + 2}D data tensor expected but got a tensor with sizes {list(input._array.shape)}"
        )


def _target(
    input: Tensor, size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[Shape, tuple[float | None, ...] | None]:
    """The sizes to make, and the factors if the operation is to use them rather than the sizes' ratios."""
    old = input._array.shape[2:]
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        if isinstance(size, (tuple, list)):
            if len(size) != len(old):
                raise ValueError(
                    "Input and output must have the same number of spatial dimensions, but got input with spatial "
                    f"dimensions of {list(old)} and output size of {size}. Please provide input tensor in (N, C, ...) "
                    "format and output size in as many dimensions as there are behind the channels."
                )
            return as_shape(size), None
        return (as_int(size),) * len(old), None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(scale_factor, (tuple, list)):
        if len(scale_factor) != len(old):
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(old)} and scale_factor of shape {scale_factor}."
            )
        factors = tuple([float(f) for f in scale_factor])
    else:
        factors = (float(scale_factor),) * len(old)
    sizes = tuple([math.floor(n * f) for n, f in zip(old, factors, strict=True)])
    return sizes, None if recompute else factors


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """As `interpolate`, which it is an older name of."""
    warn_user("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return functional.interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """As `interpolate` with mode 'nearest'."""
    warn_user("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return functional.interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """As `interpolate` with mode 'bilinear' and aligned corners."""
    warn_user("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.")
    return functional.interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """The values of (N, C, ...) at the points of `grid`, whose last dimension is (x, y) or (x, y, z) from -1 to 1.

    `input` is (N, C, H, W) and `grid` (N, H_out, W_out, 2), or (N, C, D, H, W) and (N, D_out, H_out, W_out, 3); the
    result is (N, C, H_out, W_out), or with D_out. `mode` is "bilinear", "nearest" or "bicubic"; `padding_mode`
    ("zeros", "border", "reflection") says what lies outside; with `align_corners` -1 and 1 are the centres of the
    outermost elements, else their outer edges.
    """
    if mode not in _GRID_MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _GRID_PADDING:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warn_user(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Say "
            "align_corners=True for the old one."
        )
    operation = G.grid_sampler_3d if input._array.ndim > 4 else G.grid_sampler_2d
    return operation(input, grid, _GRID_MODES[mode], _GRID_PADDING[padding_mode], bool(align_corners))


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The grid of points that affine maps send the pixels of an image of `size` (N, C, ...) to.

    `theta` is (N, 2, 3) for images, (N, 3, 4) for volumes; the result (N, H, W, 2) holds x and y in [-1, 1], for
    `grid_sample`.

    >>> import pullback
    >>> pullback.nn.functional.affine_grid(pullback.eye(2, 3)[None], (1, 1, 2, 2), align_corners=False).shape
    pullback.Size([1, 2, 2, 2])
    """
    if theta._array.dtype.kind not in "fV":
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    sizes = as_shape(size)
    dims = len(sizes) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{list(sizes)}."
        )
    if theta._array.ndim != 3 or theta._array.shape[1:] != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {list(sizes)}. Got "
            f"{theta.shape}."
        )
    if any(n <= 0 for n in sizes):
        raise ValueError(f"Expected non-zero, positive output size. Got {list(sizes)}")
    if align_corners is None:
        warn_user(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Say "
            "align_corners=True for the old one."
        )
    if theta._array.shape[0] != sizes[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {[sizes[0], dims + 1]} but got: "
            f"{[theta._array.shape[0], dims + 1]}. There must be as many affine maps as images."
        )
    return G.affine_grid_generator(theta, sizes, bool(align_corners))
