"""Samples for the functions of nn.functional that PyTorch's database lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from .entries import Sample

Make = Callable[..., Any]


def _fold(make: Make) -> Iterable[Sample]:
    yield Sample((make((2, 12, 6)), (3, 4)), {"kernel_size": (2, 2)})
    yield Sample((make((8, 4)), (4, 4), 2), {"stride": 2})
    yield Sample((make((1, 4, 16)), (4, 4), 2), {"dilation": 2, "padding": 1, "stride": 1})


def _affine_grid(make: Make) -> Iterable[Sample]:
    yield Sample((make((2, 2, 3)), (2, 1, 4, 5)), {"align_corners": False})
    yield Sample((make((1, 3, 4)), (1, 1, 2, 3, 4)), {"align_corners": True})


def _lp_pool(dims: int) -> Callable[[Make], Iterable[Sample]]:
    def samples(make: Make) -> Iterable[Sample]:
        shape = (1, 2, *(6,) * dims)
        yield Sample((make(shape, low=0.5), 2.0, 2))
        yield Sample((make(shape, low=0.5), 3.0, 3), {"stride": 2})
        yield Sample((make(shape, low=0.5), 1.0, 2), {"ceil_mode": True})

    return samples


def _max_pool(dims: int) -> Callable[[Make], Iterable[Sample]]:
    def samples(make: Make) -> Iterable[Sample]:
        shape = (2, 2, *(6,) * dims)
        yield Sample((make(shape), 2))
        yield Sample((make(shape), 3), {"stride": 2, "padding": 1})
        yield Sample((make(shape), 2), {"dilation": 2, "stride": 1, "return_indices": True})

    return samples


def _adaptive_max_pool(dims: int) -> Callable[[Make], Iterable[Sample]]:
    def samples(make: Make) -> Iterable[Sample]:
        yield Sample((make((2, 2, *(6,) * dims)), 3))
        yield Sample((make((2, *(5,) * dims)), 2))

    return samples


def _in_place(*arguments: Any) -> Callable[[Make], Iterable[Sample]]:
    def samples(make: Make) -> Iterable[Sample]:
        yield Sample((make((2, 3)).detach(), *arguments))
        yield Sample((make((5,)).detach(), *arguments))

    return samples


def _gumbel_softmax(make: Make) -> Iterable[Sample]:
    yield Sample((make((3, 4)),))
    yield Sample((make((3, 4)),), {"tau": 0.5, "hard": True, "dim": 0})


def _dropout1d(make: Make) -> Iterable[Sample]:
    yield Sample((make((2, 3, 4)),), {"p": 0.5})
    yield Sample((make((3, 4)),), {"p": 0.2, "training": False})


def _conv_tbc(make: Make) -> Iterable[Sample]:
    yield Sample((make((5, 2, 3)), make((2, 3, 4)), make((4,))))
    yield Sample((make((5, 2, 3)), make((3, 3, 2)), make((2,)), 1))


def _upsample(make: Make) -> Iterable[Sample]:
    yield Sample((make((1, 2, 3, 3)),), {"scale_factor": 2})
    yield Sample((make((1, 2, 3, 3)),), {"size": (5, 4), "mode": "bilinear", "align_corners": True})


def _native_channel_shuffle(make: Make) -> Iterable[Sample]:
    yield Sample((make((1, 4, 2, 2)).detach(), 2))


def _fractional(dims: int) -> Callable[[Make], Iterable[Sample]]:
    def samples(make: Make) -> Iterable[Sample]:
        draws = torch.rand(1, 2, dims, dtype=torch.float64)
        given = make((1, 2, *(6,) * dims))
        yield Sample((given, 2), {"output_size": (3,) * dims, "_random_samples": draws.to(given.dtype)})

    return samples


FUNCTIONAL: dict[str, Callable[[Make], Iterable[Sample]]] = {
    "fold": _fold,
    "affine_grid": _affine_grid,
    "lp_pool1d": _lp_pool(1),
    "lp_pool2d": _lp_pool(2),
    "lp_pool3d": _lp_pool(3),
    "max_pool1d_with_indices": _max_pool(1),
    "max_pool2d_with_indices": _max_pool(2),
    "max_pool3d_with_indices": _max_pool(3),
    "adaptive_max_pool1d_with_indices": _adaptive_max_pool(1),
    "adaptive_max_pool2d_with_indices": _adaptive_max_pool(2),
    "adaptive_max_pool3d_with_indices": _adaptive_max_pool(3),
    "fractional_max_pool2d_with_indices": _fractional(2),
    "fractional_max_pool3d_with_indices": _fractional(3),
    "gumbel_softmax": _gumbel_softmax,
    "dropout1d": _dropout1d,
    "conv_tbc": _conv_tbc,
    "upsample": _upsample,
    "native_channel_shuffle": _native_channel_shuffle,
    "relu_": _in_place(),
    "celu_": _in_place(1.5),
    "elu_": _in_place(0.5),
    "selu_": _in_place(),
    "hardtanh_": _in_place(-0.5, 0.5),
    "leaky_relu_": _in_place(0.2),
    "rrelu_": _in_place(0.1, 0.3, True),
    "threshold_": _in_place(0.1, 20.0),
}
