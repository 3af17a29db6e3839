"""Layers keep images in the order of memory in which they came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.nn import functional as F

LAYERS: dict[str, Callable[[Any], Any]] = {
    "conv2d": lambda x: F.conv2d(x, pullback.ones(8, 4, 3, 3), padding=1),
    "depthwise": lambda x: F.conv2d(x, pullback.ones(4, 1, 3, 3), groups=4),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, pullback.ones(4, 2, 2, 2)),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 3),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "batch_norm_evaluation": lambda x: F.batch_norm(x, pullback.zeros(4), pullback.ones(4)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "constant": lambda x: F.pad(x, (1, 1, 1, 1)),
    "reflect": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "dropout": lambda x: F.dropout(x, 0.5),
}


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_channels_that_vary_fastest_go_on_to_do_so(layer: Callable[[Any], Any]) -> None:
    image = pullback.arange(2 * 4 * 6 * 6.0).reshape(2, 4, 6, 6)
    plain, last = layer(image), layer(image.to(memory_format=pullback.channels_last))
    assert plain.is_contiguous()
    assert last.is_contiguous(memory_format=pullback.channels_last)
    assert not last.is_contiguous()


def test_values_and_gradients_are_those_of_row_major_images() -> None:
    image = pullback.randn(2, 4, 6, 6, dtype=pullback.float64)
    grads = []
    for x in (image.clone(), image.to(memory_format=pullback.channels_last)):
        x.requires_grad_()
        y = F.max_pool2d(
            F.batch_norm(F.conv2d(x, pullback.ones(3, 4, 2, 2, dtype=pullback.float64)), None, None, training=True), 2
        )
        (y * y * y).sum().backward()
        grads.append(x.grad)
    pullback.testing.assert_close(grads[0], grads[1])


def test_weights_that_lie_so_bring_the_image_to_lie_so() -> None:
    weight = pullback.ones(8, 4, 3, 3).to(memory_format=pullback.channels_last)
    assert F.conv2d(pullback.ones(2, 4, 6, 6), weight).stride() == (128, 1, 32, 8)
