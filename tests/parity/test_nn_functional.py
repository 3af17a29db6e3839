"""torch.nn.functional beside PyTorch's: values, nodes, gradients of first and second order, random streams, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.parity.comparison import compare, compare_errors

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)


def normal(*shape: int, dtype: str = "float64") -> Any:
    return RNG.normal(size=shape).astype(dtype)


LINE, PLANE, SPACE = normal(2, 4, 9), normal(2, 4, 8, 9), normal(2, 3, 5, 6, 7)
SINGLE = PLANE.astype("float32")
WITH_NAN = PLANE.copy()
WITH_NAN[0, 0, 2, 3] = np.nan
WITH_NAN[1] = -np.inf


def _check(cases: list[tuple[str, Any, tuple[Any, ...]]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("call", "arrays"), [pytest.param(c, a, id=name) for name, c, a in cases])


CONVOLUTIONS = [
    ("conv1d", lambda m, F, x, w, b: F.conv1d(x, w, b, 2, 1), (LINE, normal(6, 4, 3), normal(6))),
    ("conv2d", lambda m, F, x, w, b: F.conv2d(x, w, b, 2, 1), (PLANE, normal(6, 4, 3, 3), normal(6))),
    ("conv2d float32", lambda m, F, x, w: F.conv2d(x, w), (SINGLE, normal(6, 4, 3, 3, dtype="float32"))),
    ("conv2d unbatched", lambda m, F, x, w: F.conv2d(x, w), (PLANE[0], normal(6, 4, 3, 3))),
    ("conv2d same", lambda m, F, x, w: F.conv2d(x, w, padding="same", dilation=2), (PLANE, normal(6, 4, 3, 2))),
    ("conv2d groups", lambda m, F, x, w: F.conv2d(x, w, groups=2), (PLANE, normal(6, 2, 3, 3))),
    ("conv2d depthwise", lambda m, F, x, w: F.conv2d(x, w, None, 2, 1, groups=4), (PLANE, normal(4, 1, 3, 3))),
    ("conv3d", lambda m, F, x, w: F.conv3d(x, w, padding=1), (SPACE, normal(2, 3, 2, 3, 1))),
    ("conv_transpose1d", lambda m, F, x, w: F.conv_transpose1d(x, w, None, 3, 1, 2), (LINE, normal(4, 2, 4))),
    (
        "conv_transpose2d",
        lambda m, F, x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, 2, 2),
        (PLANE, normal(4, 3, 3, 2), normal(6)),
    ),
    ("conv_tbc", lambda m, F, x, w, b: F.conv_tbc(x, w, b, 1), (normal(5, 2, 3), normal(3, 3, 4), normal(4))),
]


@_check(CONVOLUTIONS)
def test_convolutions(call: Any, arrays: Any) -> None:
    compare(torch, call, arrays, node=call is not CONVOLUTIONS[-1][1])


@pytest.mark.parametrize("window", [(2,), (3, 2, 1), (3, 2, 1, 1, True), (2, 1, 0, 2)], ids=str)
@pytest.mark.parametrize(("dims", "array"), [(1, LINE), (2, PLANE), (3, SPACE)], ids=["1d", "2d", "3d"])
def test_max_pool(dims: int, array: Any, window: Any) -> None:
    compare(torch, lambda m, F, x: getattr(F, f"max_pool{dims}d")(x, *window, return_indices=True), [array])


def test_max_pool_of_nan_and_of_nothing_but_infinity() -> None:
    compare(torch, lambda m, F, x: F.max_pool2d(x, 3, 2, 1, return_indices=True), [WITH_NAN], second_order=False)


@pytest.mark.parametrize("window", [(2,), (3, 2, 1), (3, 2, 1, True), (3, 2, 1, True, False)], ids=str)
@pytest.mark.parametrize(("dims", "array"), [(1, LINE), (2, PLANE), (3, SPACE)], ids=["1d", "2d", "3d"])
def test_avg_pool(dims: int, array: Any, window: Any) -> None:
    compare(torch, lambda m, F, x: getattr(F, f"avg_pool{dims}d")(x, *window), [array])


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize(("dims", "array"), [(1, LINE), (2, PLANE), (3, SPACE)], ids=["1d", "2d", "3d"])
def test_adaptive_pools(dims: int, array: Any, size: int) -> None:
    compare(torch, lambda m, F, x: getattr(F, f"adaptive_avg_pool{dims}d")(x, size), [array])
    compare(torch, lambda m, F, x: getattr(F, f"adaptive_max_pool{dims}d")(x, size, return_indices=True), [array])


POOLS = [
    ("fractional 2d", lambda m, F, x: F.fractional_max_pool2d(x, 2, (3, 4), return_indices=True), (PLANE,)),
    ("fractional 2d float32", lambda m, F, x: F.fractional_max_pool2d(x, 2, (3, 4)), (SINGLE,)),
    ("fractional 3d", lambda m, F, x: F.fractional_max_pool3d(x, 2, (3, 4, 3), return_indices=True), (SPACE,)),
    ("lp 1d", lambda m, F, x: F.lp_pool1d(x, 2, 2), (LINE,)),
    ("lp 2d", lambda m, F, x: F.lp_pool2d(x, 3, 3, 2, True), (abs(PLANE),)),
    ("unpool 2d", lambda m, F, x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), (normal(1, 2, 4, 6),)),
    (
        "unpool 3d",
        lambda m, F, x: F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2, output_size=x.shape),
        (SPACE,),
    ),
]


@_check(POOLS)
def test_other_pools(call: Any, arrays: Any) -> None:
    compare(torch, call, arrays)


def _running(training: bool, name: str) -> Any:
    """A norm and the running statistics that it leaves behind."""

    def call(m: Any, F: Any, x: Any, w: Any, b: Any, mean: Any, variance: Any) -> Any:
        mean, variance = mean.detach(), variance.detach()
        return getattr(F, name)(x, mean, variance, w, b, training), mean, variance

    return call


_STATISTICS = (normal(4), normal(4), normal(4), abs(normal(4)))
NORMS = [
    ("layer_norm", lambda m, F, x, w, b: F.layer_norm(x, (8, 9), w, b), (PLANE, normal(8, 9), normal(8, 9))),
    ("layer_norm bare", lambda m, F, x: F.layer_norm(x, (9,)), (PLANE,)),
    ("layer_norm float32", lambda m, F, x: F.layer_norm(x, (9,)), (SINGLE,)),
    ("batch_norm", _running(True, "batch_norm"), (PLANE, *_STATISTICS)),
    ("batch_norm of vectors", _running(True, "batch_norm"), (normal(7, 4), *_STATISTICS)),
    ("batch_norm evaluation", _running(False, "batch_norm"), (PLANE, *_STATISTICS)),
    ("instance_norm", _running(True, "instance_norm"), (PLANE, *_STATISTICS)),
    ("instance_norm evaluation", _running(False, "instance_norm"), (PLANE, *_STATISTICS)),
    ("group_norm", lambda m, F, x, w, b: F.group_norm(x, 2, w, b), (PLANE, normal(4), normal(4))),
    ("rms_norm", lambda m, F, x, w: F.rms_norm(x, (9,), w), (PLANE, normal(9))),
    ("local_response_norm", lambda m, F, x: F.local_response_norm(x, 3, 0.1, 0.5, 2.0), (PLANE,)),
    ("normalize", lambda m, F, x: F.normalize(x, 1.0, 2), (PLANE,)),
]


@_check(NORMS)
def test_normalizations(call: Any, arrays: Any) -> None:
    compare(torch, call, arrays)


DROPOUTS = [
    ("dropout", lambda m, F, x: F.dropout(x, 0.3), (PLANE,)),
    ("dropout float32", lambda m, F, x: F.dropout(x, 0.3), (SINGLE,)),
    ("dropout in place", lambda m, F, x: F.dropout(x * 1, 0.3, inplace=True), (PLANE,)),
    ("dropout of a transposed tensor", lambda m, F, x: F.dropout(x.transpose(1, 2), 0.3), (PLANE,)),
    ("dropout of everything", lambda m, F, x: F.dropout(x, 1.0), (PLANE,)),
    ("dropout1d", lambda m, F, x: F.dropout1d(x, 0.3), (LINE[0],)),
    ("dropout2d", lambda m, F, x: F.dropout2d(x, 0.3), (PLANE,)),
    ("dropout3d", lambda m, F, x: F.dropout3d(x, 0.3), (SPACE,)),
    ("alpha_dropout", lambda m, F, x: F.alpha_dropout(x, 0.3, True), (PLANE,)),
    ("feature_alpha_dropout", lambda m, F, x: F.feature_alpha_dropout(x, 0.3, True), (SINGLE,)),
    ("gumbel_softmax", lambda m, F, x: F.gumbel_softmax(x, 0.7), (normal(4, 5),)),
    ("gumbel_softmax hard", lambda m, F, x: F.gumbel_softmax(x, hard=True), (normal(4, 5),)),
]


@pytest.mark.parametrize("seed", [0, 1])
@_check(DROPOUTS)
def test_random_functions_draw_the_same_numbers(call: Any, arrays: Any, seed: int) -> None:
    compare(torch, call, arrays, seed=seed)


INDICES, OFFSETS = RNG.integers(0, 6, 10), np.array([0, 3, 3, 7])
EMBEDDINGS = [
    ("embedding", lambda m, F, i, w: F.embedding(i, w, padding_idx=-2), (INDICES.reshape(2, 5), normal(6, 3))),
    ("embedding by frequency", lambda m, F, i, w: F.embedding(i, w, scale_grad_by_freq=True), (INDICES, normal(6, 3))),
    ("embedding renormalized", lambda m, F, i, w: F.embedding(i, w.detach(), max_norm=1.0), (INDICES, normal(6, 3))),
    ("one_hot", lambda m, F, i: F.one_hot(i), (INDICES,)),
    *[
        (f"embedding_bag {mode}", lambda m, F, i, w, o, mode=mode: F.embedding_bag(i, w, o, mode=mode, padding_idx=1), (INDICES, normal(6, 3), OFFSETS))
        for mode in ("sum", "mean", "max")
    ],
    (
        "embedding_bag weighted",
        lambda m, F, i, w, p: F.embedding_bag(i, w, mode="sum", per_sample_weights=p),
        (INDICES.reshape(2, 5), normal(6, 3), normal(2, 5)),
    ),
]  # fmt: skip


@_check(EMBEDDINGS)
def test_embeddings(call: Any, arrays: Any) -> None:
    compare(torch, call, arrays, second_order=False)


MASK = RNG.random((4, 6)) < 0.5
MASK[1] = False
_ATTENTION = (normal(2, 3, 4, 5), normal(2, 3, 6, 5), normal(2, 3, 6, 5))
ATTENTION = [
    ("plain", lambda m, F, q, k, v: F.scaled_dot_product_attention(q, k, v), _ATTENTION),
    ("causal", lambda m, F, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3), _ATTENTION),
    ("masked", lambda m, F, q, k, v, a: F.scaled_dot_product_attention(q, k, v, a), (*_ATTENTION, MASK)),
    ("trained mask", lambda m, F, q, k, v, a: F.scaled_dot_product_attention(q, k, v, a), (*_ATTENTION, normal(4, 6))),
    ("dropout", lambda m, F, q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.4), _ATTENTION),
    (
        "grouped queries",
        lambda m, F, q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        (normal(2, 4, 4, 5), normal(2, 2, 6, 5), normal(2, 2, 6, 5)),
    ),
]


@_check(ATTENTION)
def test_attention(call: Any, arrays: Any) -> None:
    compare(torch, call, arrays, second_order=False)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    ("array", "pad"), [(LINE, (1, 2)), (LINE, (1, -2)), (PLANE, (1, 2, 3, 0)), (SPACE, (1, 2, 3, 0, 1, 1))]
)
def test_pad(mode: str, array: Any, pad: Any) -> None:
    compare(torch, lambda m, F, x: F.pad(x, pad, mode), [array], node=mode != "circular")


RESIZED = [
    {"size": 13}, {"size": 4}, {"scale_factor": 2}, {"scale_factor": 1.7}, {"scale_factor": 0.6},
    {"scale_factor": 1.7, "recompute_scale_factor": True},
]  # fmt: skip
MODES = [
    ("nearest", LINE), ("nearest", PLANE), ("nearest", SPACE), ("nearest-exact", SINGLE), ("area", PLANE),
    ("linear", LINE), ("bilinear", PLANE), ("bilinear", SINGLE), ("bicubic", PLANE), ("trilinear", SPACE),
]  # fmt: skip


@pytest.mark.parametrize("target", RESIZED, ids=str)
@pytest.mark.parametrize(("mode", "array"), MODES, ids=[f"{m} {a.ndim}d {a.dtype}" for m, a in MODES])
def test_interpolate(mode: str, array: Any, target: Any) -> None:
    compare(torch, lambda m, F, x: F.interpolate(x, mode=mode, **target), [array])


@pytest.mark.parametrize("target", RESIZED, ids=str)
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_interpolate_with_aligned_corners_and_antialiased(mode: str, target: Any) -> None:
    compare(torch, lambda m, F, x: F.interpolate(x, mode=mode, align_corners=True, **target), [PLANE])
    compare(torch, lambda m, F, x: F.interpolate(x, mode=mode, antialias=True, **target), [PLANE])


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(mode: str, padding: str, aligned: bool) -> None:
    points = np.random.default_rng(3).normal(size=(2, 5, 4, 2))
    compare(torch, lambda m, F, x, g: F.grid_sample(x, g, mode, padding, aligned), [PLANE, points], second_order=False)


REST = [
    ("affine_grid", lambda m, F, t: F.affine_grid(t, (2, 3, 4, 5), False), (normal(2, 2, 3),)),
    ("affine_grid 3d", lambda m, F, t: F.affine_grid(t, (2, 3, 4, 5, 3), True), (normal(2, 3, 4),)),
    ("unfold", lambda m, F, x: F.unfold(x, (3, 2), 1, 1, 2), (PLANE,)),
    ("fold", lambda m, F, x: F.fold(x, (5, 4), 2, 1, 1, (2, 1)), (normal(2, 12, 15),)),
    ("pixel_shuffle", lambda m, F, x: F.pixel_shuffle(x, 2), (PLANE,)),
    ("pixel_unshuffle", lambda m, F, x: F.pixel_unshuffle(x, 2), (normal(2, 3, 4, 6),)),
    ("channel_shuffle", lambda m, F, x: F.channel_shuffle(x, 2), (PLANE,)),
    ("cosine_similarity", lambda m, F, x, y: F.cosine_similarity(x, y, -1), (normal(4, 1, 3), normal(5, 3))),
    (
        "bilinear",
        lambda m, F, x, y, w, b: F.bilinear(x, y, w, b),
        (normal(4, 3), normal(4, 5), normal(6, 3, 5), normal(6)),
    ),
]  # fmt: skip


@_check(REST)
def test_rearrangements_and_products(call: Any, arrays: Any) -> None:
    compare(torch, call, arrays)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_distances(p: float) -> None:
    first, second = normal(4, 3), normal(5, 3)
    second[2] = first[1]
    compare(torch, lambda m, F, x, y: m.cdist(x, y, p), [first, second], second_order=False)
    compare(torch, lambda m, F, x: F.pdist(x, p), [first], second_order=False)


def test_distances_of_many_rows() -> None:
    compare(torch, lambda m, F, x, y: m.cdist(x, y), [normal(30, 3), normal(28, 3)], second_order=False)


ERRORS = [
    ("dtypes of a convolution", lambda m, F: F.conv2d(m.zeros(1, 1, 4, 4).double(), m.zeros(1, 1, 3, 3))),
    ("channels of a convolution", lambda m, F: F.conv2d(m.zeros(1, 2, 4, 4), m.zeros(1, 1, 3, 3))),
    ("dimensions of a convolution", lambda m, F: F.conv2d(m.zeros(4, 4), m.zeros(1, 1, 3, 3))),
    ("size of a kernel", lambda m, F: F.conv2d(m.zeros(1, 1, 4, 4), m.zeros(1, 1, 5, 5))),
    ("size of a bias", lambda m, F: F.conv2d(m.zeros(1, 1, 4, 4), m.zeros(1, 1, 3, 3), m.zeros(2))),
    ("stride of a convolution", lambda m, F: F.conv2d(m.zeros(1, 1, 4, 4), m.zeros(1, 1, 3, 3), stride=0)),
    ("strided same", lambda m, F: F.conv2d(m.zeros(1, 1, 4, 4), m.zeros(1, 1, 3, 3), padding="same", stride=2)),
    ("output padding", lambda m, F: F.conv_transpose2d(m.zeros(1, 1, 4, 4), m.zeros(1, 1, 3, 3), output_padding=1)),
    ("dimensions of pooling", lambda m, F: F.max_pool2d(m.zeros(4, 4), 2)),
    ("padding of pooling", lambda m, F: F.max_pool2d(m.zeros(1, 1, 4, 4), 2, padding=2)),
    ("size of pooling", lambda m, F: F.max_pool2d(m.zeros(1, 1, 1, 1), 2)),
    ("normalized shape", lambda m, F: F.layer_norm(m.zeros(2, 3), (4,))),
    ("one value per channel", lambda m, F: F.batch_norm(m.zeros(1, 3), None, None, training=True)),
    ("running statistics", lambda m, F: F.batch_norm(m.zeros(2, 3), None, None)),
    ("groups of channels", lambda m, F: F.group_norm(m.zeros(2, 3), 2)),
    ("index of a row", lambda m, F: F.embedding(m.tensor([7]), m.zeros(5, 3))),
    ("dtype of an index", lambda m, F: F.embedding(m.zeros(3), m.zeros(5, 3))),
    ("probability", lambda m, F: F.dropout(m.zeros(3), 1.5)),
    ("class of a one-hot row", lambda m, F: F.one_hot(m.tensor([3]), 2)),
    ("length of a padding", lambda m, F: F.pad(m.zeros(3, 3), (1,))),
    ("size of a reflection", lambda m, F: F.pad(m.zeros(1, 3), (3, 3), "reflect")),
    ("dimensions of attention", lambda m, F: F.scaled_dot_product_attention(m.zeros(3), m.zeros(3), m.zeros(3))),
    ("size and scale", lambda m, F: F.interpolate(m.zeros(1, 1, 3), 2, 2)),
    ("mode of sampling", lambda m, F: F.grid_sample(m.zeros(1, 1, 3, 3), m.zeros(1, 2, 2, 2), "other")),
    ("blocks of an image", lambda m, F: F.fold(m.zeros(1, 4, 5), (3, 3), 2)),
    ("columns of distances", lambda m, F: m.cdist(m.zeros(3, 4), m.zeros(3, 5))),
    ("offsets of bags", lambda m, F: F.embedding_bag(m.tensor([1]), m.zeros(3, 2), m.tensor([1]))),
]


@pytest.mark.parametrize("call", [pytest.param(c, id=name) for name, c in ERRORS])
def test_errors_begin_with_the_same_words(call: Any) -> None:
    compare_errors(torch, call)
