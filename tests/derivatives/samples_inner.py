"""Samples of operations that programs reach only through others: adjoints, forms that einsum and matmul choose, parts of
functions. Called by themselves their own gradients are checked too, not only those of what calls them."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

import pullback
from pullback.generated.registry import OPERATIONS
from tests.derivatives.sampling import Maker, Sample, away_from, distinct, normal, uniform


def _inner(
    operation: str, inputs: tuple[Maker, ...], *rest: Any, complex: bool = False, label: str = "", **options: Any
) -> Sample:
    """A sample of an operation by its own name, with the same other arguments each time."""
    function = getattr(importlib.import_module(f"pullback.generated.{OPERATIONS[operation].family}"), operation)

    def call(*tensors: Any) -> Any:
        return function(*tensors, *rest, **options)

    return Sample(f"inner {operation} {label}".rstrip(), call, inputs, complex=complex)


def _whole(*values: Any) -> Any:
    return pullback.from_numpy(np.array(*values))


def _activation(operation: str, *rest: Any) -> Sample:
    return _inner(operation, (normal(3, 4), away_from(0.5, 0.2, 3, 4)), *rest)


_PLANES = _whole([[[0, 5], [5, 2]], [[3, 3], [1, 4]]])
_ALONG = _whole([[0, 2, 1], [1, 1, 0]])
_REDUCED = _whole([2, 0, 1])
_ROWS = _whole([[0, 2], [2, -1], [1, 1]])
_POINTS = _whole([[[0, 3], [-1, 5]], [[4, 4], [2, 0]]])
_TARGET = _whole([1, 0, 2])

SAMPLES = [
    _inner("einstein_product", (normal(2, 3), normal(3, 4)), "ab,bc->ac", complex=True),
    _inner("einstein_product", (normal(2, 2, 3), normal(3, 2, 2)), "bij,jbk->kbi", complex=True, label="batched"),
    _inner("einstein_outer", (normal(2, 3), normal(2)), "ab,c->cba", complex=True),
    _inner("einstein_triple", (normal(2, 3), normal(3, 4), normal(4, 2)), "ab,bc,cd->da", complex=True),
    _inner("matmul_flipped", (normal(3, 2), normal(2, 2, 4)), complex=True),
    _inner("linear_bias_added", (normal(2, 2, 3), normal(4, 3), normal(4)), complex=True),
    _inner("take_along", (normal(2, 3),), _ALONG, 1, complex=True),
    _inner("take_reduced", (normal(3, 3),), _REDUCED, 0, False, complex=True),
    _inner("shift_and_fill", (normal(2, 4),), 1, 2, 3.0, complex=True),
    _inner("put_in_planes", (normal(2, 2, 2),), _PLANES, (2, 3)),
    _inner("take_from_planes", (normal(2, 2, 3),), _PLANES, 2),
    _inner("put_rows", (normal(3, 2),), _ROWS, 4),
    _inner("take_rows", (normal(4, 2),), _ROWS),
    _inner("put_points", (normal(2, 3, 2, 2),), _POINTS, (2, 3)),
    _inner("take_points", (normal(2, 3, 2, 3),), _POINTS),
    _inner("grid_points", (uniform(-0.9, 0.9, 2, 3, 2),), (4, 5), 0, 0, True),
    _inner("reflected_slopes", (uniform(-0.9, 0.9, 2, 3, 2),), (4, 5), 0, 2, True),
    _inner("multi_margin_weights", (normal(3, 4),), _whole([0, 3, 1]), 1, 1.0, None),
    _inner("multilabel_margin_weights", (normal(3, 4),), _whole([[0, 2, -1, 0], [3, -1, 0, 0], [1, 2, 3, -1]])),
    _inner("affine_grid_back", (normal(2, 3, 4, 2),), (2, 1, 3, 4), True),
    _inner("embedding_take", (normal(4, 2),), _whole([[0, 2], [2, 1]]), 1, True),
    _inner("embedding_back", (normal(2, 2, 2),), _whole([[0, 2], [2, 1]]), 4, 1, False),
    _inner("nll_loss_grad", (normal(),), _TARGET, None, (3, 4), 1, -100),
    _inner("fill", (normal(2, 3),), 2.0, complex=True),
    _inner("fill_tensor", (normal(2, 3), normal()), complex=True),
    _inner("copy_to", (normal(2, 3),), complex=True),
    _inner("to_device", (normal(2, 3),), pullback.device("cpu"), pullback.device("cpu"), complex=True),
    _inner("pad_to", (normal(2, 3),), (4, 3), complex=True),
    _inner("add_dependency", (normal(2, 3), normal(2, 3))),
    _inner("nextafter", (normal(2, 3), normal(2, 3))),
    _inner("permute_rows", (normal(3, 2),), _whole(np.array([2, 3, 3], np.int32)), False, complex=True),
    _inner("complex", (normal(2, 3), normal(2, 3))),
    _inner("polar", (uniform(0.5, 2.0, 2, 3), normal(2, 3))),
    _inner("view_as_complex", (normal(2, 3, 2),)),
    _inner("fft_r2c", (normal(2, 5),), (1,), "none", True),
    _inner("double_conjugate_pairs", (normal(2, 4),), 1, 2, complex=True),
    _inner("edge_pad_back", (normal(2, 7),), (4,), (1, 2), "reflect"),
    _inner("reflection_pad3d", (normal(1, 2, 3, 3, 3),), (1, 1, 2, 0, 1, 2)),
    _inner("replication_pad2d", (normal(1, 2, 2, 3),), (1, 2, 0, 1)),
    _inner("resample", (normal(1, 2, 3),), (5,), "linear"),
    _inner("resample_back", (normal(1, 2, 5),), (3,), "linear"),
    _inner("upsample_nearest3d", (normal(1, 2, 2, 2, 3),), (3, 4, 5)),
    _inner("upsample_nearest_exact1d", (normal(1, 2, 3),), (5,)),
    _inner("upsample_nearest_exact3d", (normal(1, 2, 2, 2, 3),), (3, 4, 5)),
    _inner("max_unpool3d", (normal(1, 1, 1, 1, 2),), _whole([[[[[3, 6]]]]]), (2, 2, 2)),
    _inner("fractional_max_pool3d", (distinct(1, 1, 4, 4, 4),), (2, 2, 2), (2, 2, 2), _whole([[[0.2, 0.6, 0.4]]])),
    _inner("avg_pool_back", (normal(1, 2, 2),), (4, 4), (2, 2), (2, 2), (0, 0), False, True, None),
    _inner(
        "convolution_grad_weight", (normal(2, 2, 4, 4), normal(2, 3, 3, 3)), (3, 2, 2, 2), (1, 1), (0, 0), (1, 1), 1
    ),
    _activation("tanh_backward"),
    _activation("sigmoid_backward"),
    _activation("log_sigmoid_backward"),
    _activation("softplus_backward", 1.5, 20.0),
    _inner("silu_backward", (normal(3, 4), uniform(-3.0, 3.0, 3, 4))),
    _inner("mish_backward", (normal(3, 4), uniform(-3.0, 3.0, 3, 4))),
    _activation("gelu_backward", "none"),
    _activation("gelu_backward", "tanh"),
    _activation("threshold_backward", 0.5),
    _activation("hardshrink_backward", 0.5),
    _activation("softshrink_backward", 0.5),
    _activation("hardtanh_backward", -1.5, 0.5),
    _inner("hardsigmoid_backward", (normal(3, 4), uniform(-2.0, 2.0, 3, 4))),
    _inner("hardswish_backward", (normal(3, 4), uniform(-2.0, 2.0, 3, 4))),
    _activation("leaky_relu_backward", 0.1),
    _activation("elu_backward", 1.5, 1.2, 0.8),
    _activation("softmax_backward_data", 1),
    _activation("log_softmax_backward_data", 1),
]
