"""The accuracy of nn.functional: losses, convolutions, pooling, attention, interpolation, transforms, distances.

As in accuracy_reductions.py, against PyTorch's float64 results; values and gradients count relative to the largest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .accuracy_reductions import Reduction, measure

Tensor = Any
Call = Callable[[Any, Tensor], Tensor]


def halves_of(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[:, ::2], x[:, 1::2]


def target_of(module: Any, x: Tensor) -> Tensor:
    return (module.arange(x.shape[0]) * 7) % x.shape[1]


def weight_of(module: Any, x: Tensor, *shape: int) -> Tensor:
    count = 1
    for size in shape:
        count *= size
    return (((module.arange(count) * 7919) % 23 - 11) / 8).reshape(shape).to(x.dtype)


def images_of(x: Tensor) -> Tensor:
    return x.reshape(1, -1, 8, 16)


def _pairs(name: str, **settings: Any) -> Call:
    def call(module: Any, x: Tensor) -> Tensor:
        return getattr(module.nn.functional, name)(*halves_of(x), **settings)

    return call


def _images(name: str, *arguments: Any, **settings: Any) -> Call:
    return lambda module, x: getattr(module.nn.functional, name)(images_of(x), *arguments, **settings)


def _classes(name: str, **settings: Any) -> Call:
    return lambda module, x: getattr(module.nn.functional, name)(x, target_of(module, x), **settings)


def _attention(module: Any, x: Tensor) -> Tensor:
    heads = x.reshape(2, -1, 16)
    return module.nn.functional.scaled_dot_product_attention(heads, heads * 0.5, heads, is_causal=True)


def _convolved(name: str, *shape: int) -> Call:
    def call(module: Any, x: Tensor) -> Tensor:
        images = x.reshape(2, -1, 4, 8, 8) if name.endswith("3d") else images_of(x)
        images = (
            x.reshape(2, 8, -1)
            if name.endswith("1d")
            else images[:, : shape[1] if "transpose" not in name else shape[0]]
        )
        return getattr(module.nn.functional, name)(images, weight_of(module, x, *shape), padding=1)

    return call


CALLS: dict[str, Call] = {
    **{name: _pairs(name) for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "poisson_nll_loss")},
    "pairwise_distance": _pairs("pairwise_distance"),
    "cosine_similarity": _pairs("cosine_similarity"),
    "binary_cross_entropy_with_logits": lambda m, x: m.nn.functional.binary_cross_entropy_with_logits(
        x, (x > 0).to(x.dtype)
    ),
    "cross_entropy": _classes("cross_entropy"),
    "cross_entropy smoothed": _classes("cross_entropy", label_smoothing=0.1),
    "multi_margin_loss": _classes("multi_margin_loss"),
    "gaussian_nll_loss": lambda m, x: m.nn.functional.gaussian_nll_loss(*halves_of(x), halves_of(x)[0] ** 2 + 0.5),
    "kl_div": lambda m, x: m.nn.functional.kl_div(x.log_softmax(1), x.flip(1).softmax(1), reduction="batchmean"),
    "linear": lambda m, x: m.nn.functional.linear(x, weight_of(m, x, 8, x.shape[1])),
    "bilinear": lambda m, x: m.nn.functional.bilinear(
        *halves_of(x), weight_of(m, x, 2, x.shape[1] // 2, x.shape[1] // 2)
    ),
    "conv1d": _convolved("conv1d", 4, 8, 3),
    "conv2d": _convolved("conv2d", 4, 16, 3, 3),
    "conv_transpose2d": _convolved("conv_transpose2d", 16, 4, 3, 3),
    "avg_pool2d": _images("avg_pool2d", 3, 2),
    "lp_pool2d": _images("lp_pool2d", 3.0, 2),
    "adaptive_avg_pool2d": _images("adaptive_avg_pool2d", 3),
    **{
        f"interpolate {mode}": _images("interpolate", size=(11, 13), mode=mode, antialias=False)
        for mode in ("bilinear", "bicubic")
    },
    "interpolate antialiased": _images("interpolate", size=(5, 7), mode="bilinear", antialias=True),
    "local_response_norm": _images("local_response_norm", 3),
    "instance_norm": _images("instance_norm"),
    "scaled_dot_product_attention": _attention,
    "fft.fft": lambda m, x: m.view_as_real(m.fft.fft(x)),
    "fft.rfft2": lambda m, x: m.view_as_real(m.fft.rfft2(x)),
    "cov": lambda m, x: m.cov(x),
    "corrcoef": lambda m, x: m.corrcoef(x),
    "pdist": lambda m, x: m.nn.functional.pdist(x),
    "gelu": lambda m, x: m.nn.functional.gelu(x).mean(1),
}


def _network(label: str, call: Call) -> Reduction:
    def along_rows(module: Any, x: Tensor, dim: int) -> Tensor:
        return call(module, x)

    return Reduction(f"networks.{label}", along_rows, ("mixed", "positive"), centred=True)


NETWORKS = tuple(_network(label, call) for label, call in CALLS.items())


def labels() -> list[str]:
    """The names of the functions, in order."""
    return [network.label for network in NETWORKS]


def layouts(dtype: str) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Short rows and long ones."""
    yield "short", (64, 32), 1
    yield "long", (16, 256), 1


def measure_all(index: int) -> list[tuple[str, int]]:
    """The line of one function, with the number of its flags."""
    warnings.simplefilter("ignore")
    found = measure(NETWORKS[index], "float32", places=layouts)
    return [(str(found), len(found.flags))]
