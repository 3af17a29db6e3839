"""The layers and the linear algebra that `benchmarks.operations` measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.operation_table import Operation, uniform

Values = Callable[[Any, Any, str], list[Any]]
N = 0
"""Stands for the size that is measured in a shape: of the batch, or of a matrix."""


def shaped(*shapes: tuple[int, ...], low: float = -1.0, high: float = 1.0) -> Values:
    """Arrays of these shapes."""

    def arrays(random: Any, size: Any, dtype: str) -> list[Any]:
        filled = [tuple(size if length is N else length for length in shape) for shape in shapes]
        return [uniform(1, low, high)(random, shape, dtype)[0] for shape in filled]

    return arrays


def layer(name: str, values: Values, shown: str = "", **options: Any) -> Operation:
    """A function of nn.functional with options."""

    def call(torch: Any, *inputs: Any) -> Any:
        return getattr(torch.nn.functional, name)(*inputs, **options)

    return Operation(f"{name} {shown}".strip(), call, values)


def convolutions() -> list[Operation]:
    """Of one to three dimensions: plain, strided, dilated, grouped, depthwise, pointwise, transposed."""
    line, plane, small, volume = (N, 32, 256), (N, 32, 28, 28), (N, 32, 14, 14), (N, 8, 12, 12, 12)
    narrow, wide = shaped(plane, (64, 32, 1, 1), (64,)), shaped(plane, (64, 32, 3, 3), (64,))
    cubes = shaped(volume, (16, 8, 3, 3, 3), (16,))
    return [
        layer("conv1d", shaped(line, (32, 32, 5), (32,)), "5"),
        layer("conv1d", shaped(line, (32, 32, 5), (32,)), "5, dilation 4", padding=8, dilation=4),
        layer("conv1d", shaped(line, (32, 1, 5), (32,)), "5, depthwise", padding=2, groups=32),
        layer("conv2d", narrow, "1x1"),
        layer("conv2d", wide, "3x3", padding=1),
        layer("conv2d", wide, "3x3, stride 2", padding=1, stride=2),
        layer("conv2d", wide, "3x3, dilation 2", padding=2, dilation=2),
        layer("conv2d", shaped(plane, (64, 8, 3, 3), (64,)), "3x3, 4 groups", padding=1, groups=4),
        layer("conv2d", shaped(plane, (32, 1, 3, 3), (32,)), "3x3, depthwise", padding=1, groups=32),
        layer("conv2d", shaped(small, (32, 32, 5, 5), (32,)), "5x5", padding=2),
        layer("conv2d", shaped((N, 3, 64, 64), (32, 3, 7, 7), (32,)), "7x7, stride 2", padding=3, stride=2),
        layer("conv3d", cubes, "3x3x3", padding=1),
        layer("conv3d", cubes, "3x3x3, stride 2", padding=1, stride=2),
        layer("conv_transpose1d", shaped(line, (32, 16, 4), (16,)), "4, stride 2", stride=2, padding=1),
        layer("conv_transpose2d", shaped(small, (32, 16, 4, 4), (16,)), "4x4, stride 2", stride=2, padding=1),
        layer("conv_transpose2d", shaped(small, (32, 16, 3, 3), (16,)), "3x3", padding=1),
        layer("conv_transpose3d", shaped(volume, (8, 8, 4, 4, 4), (8,)), "4x4x4, stride 2", stride=2, padding=1),
    ]


def pooling() -> list[Operation]:
    """All poolings, and the resampling and rearranging of planes."""
    planes = shaped((N, 16, 32, 32))
    made = []
    for dims, values in enumerate((shaped((N, 16, 1024)), planes, shaped((N, 8, 12, 12, 12))), 1):
        made += [
            layer(f"max_pool{dims}d", values, kernel_size=2),
            layer(f"max_pool{dims}d", values, "of 3, stride 2", kernel_size=3, stride=2, padding=1),
            layer(f"avg_pool{dims}d", values, kernel_size=2),
            layer(f"avg_pool{dims}d", values, "of 3, stride 1", kernel_size=3, stride=1, padding=1),
            layer(f"lp_pool{dims}d", values, norm_type=2.0, kernel_size=2),
            layer(f"adaptive_max_pool{dims}d", values, "to 5", output_size=5),
            layer(f"adaptive_avg_pool{dims}d", values, "to 5", output_size=5),
        ]
    made += [
        layer("interpolate", planes, mode, scale_factor=2, mode=mode)
        for mode in ("nearest", "bilinear", "bicubic", "area")
    ]
    made += [
        layer("grid_sample", shaped((N, 16, 32, 32), (N, 24, 24, 2)), align_corners=False),
        layer("unfold", planes, kernel_size=3, padding=1),
        layer("fold", shaped((N, 144, 900)), output_size=(32, 32), kernel_size=3),
        layer("pixel_shuffle", planes, upscale_factor=2),
        layer("pixel_unshuffle", planes, downscale_factor=2),
    ]
    return made


def networks() -> list[Operation]:
    """Products with weights, normalisations, attention, distances and cells."""
    rows, words, planes = (N, 256), (N, 64, 256), (N, 32, 16, 16)
    heads = shaped((N, 4, 64, 32), (N, 4, 64, 32), (N, 4, 64, 32))
    scaled = shaped(planes, (32,), (32,))
    return [
        layer("linear", shaped(rows, (256, 256), (256,))),
        layer("bilinear", shaped((N, 32), (N, 32), (16, 32, 32))),
        Operation("layer_norm", lambda t, x, *w: t.layer_norm(x, (256,), *w), shaped(words, (256,), (256,))),
        Operation("rms_norm", lambda t, x, w: t.rms_norm(x, (256,), w), shaped(words, (256,))),
        Operation("group_norm", lambda t, x, *w: t.group_norm(x, 8, *w), scaled),
        Operation("batch_norm", lambda t, x, *w: t.nn.functional.batch_norm(x, None, None, *w, training=True), scaled),
        layer("instance_norm", shaped(planes)),
        layer("local_response_norm", shaped(planes), size=5),
        layer("normalize", shaped(rows)),
        layer("scaled_dot_product_attention", heads),
        layer("scaled_dot_product_attention", heads, "causal", is_causal=True),
        layer("dropout", shaped((N, 4096)), p=0.1),
        Operation("cdist", lambda t, x, y: t.cdist(x, y), shaped((N, 64, 32), (N, 64, 32))),
        layer("cosine_similarity", shaped(rows, rows)),
        Operation("lstm_cell", _lstm_cell, shaped((N, 64), (256, 64), (256, 64))),
    ]


def _lstm_cell(torch: Any, x: Any, first: Any, second: Any) -> Any:
    state = torch.zeros(len(x), 64)
    return torch.lstm_cell(x, (state, state), first, second)


def matrices() -> list[Operation]:
    """Products, decompositions, solves and matrix functions, and Fourier transforms of rows."""
    square, pair, batch = shaped((N, N)), shaped((N, N), (N, N)), shaped((8, N, N))

    def positive(torch: Any, x: Any) -> Any:
        return x @ x.mT + torch.eye(len(x), dtype=x.dtype)

    return [
        Operation("mm", lambda t, x, y: x @ y, pair),
        Operation("mv", lambda t, x, y: x @ y, shaped((N, N), (N,))),
        Operation("bmm", lambda t, x, y: x @ y, shaped((8, N, N), (8, N, N))),
        Operation("addmm", lambda t, x, y: t.addmm(x, x, y), pair),
        Operation("outer", lambda t, x, y: t.outer(x, y), shaped((N,), (N,))),
        Operation("einsum bij,bjk", lambda t, x: t.einsum("bij,bjk->bik", x, x), batch),
        Operation("cholesky", lambda t, x: t.linalg.cholesky(positive(t, x)), square),
        Operation("inv", lambda t, x: t.linalg.inv(positive(t, x)), square),
        Operation("inv batch", lambda t, x: t.linalg.inv(x), batch),
        Operation("solve", lambda t, x, y: t.linalg.solve(positive(t, x), y), pair),
        Operation("solve_triangular", _solve_triangular, shaped((N, N), (N, 4), low=0.5)),
        Operation("det", lambda t, x: t.linalg.det(x), batch),
        Operation("slogdet", lambda t, x: t.linalg.slogdet(x)[1], batch),
        Operation("qr", lambda t, x: t.linalg.qr(x)[0], square),
        Operation("eigh", lambda t, x: t.linalg.eigh(x + x.mT), square),
        Operation("svd", lambda t, x: t.linalg.svdvals(x), square),
        Operation("lu_factor", lambda t, x: t.linalg.lu_factor(x)[0], square),
        Operation("lstsq", lambda t, x, y: t.linalg.lstsq(x, y)[0], shaped((N, N), (N, 4))),
        Operation("pinv", lambda t, x: t.linalg.pinv(x), square),
        Operation("matrix_exp", lambda t, x: t.linalg.matrix_exp(x), square),
        Operation("matrix_power 5", lambda t, x: t.linalg.matrix_power(x, 5), square),
        Operation("matrix_norm", lambda t, x: t.linalg.matrix_norm(x), batch),
        Operation("fft", lambda t, x: t.fft.fft(x).abs(), square),
        Operation("rfft", lambda t, x: t.fft.rfft(x).abs(), square),
        Operation("fft2", lambda t, x: t.fft.fft2(x).abs(), batch),
    ]


def _solve_triangular(torch: Any, x: Any, y: Any) -> Any:
    return torch.linalg.solve_triangular(x, y, upper=True)
