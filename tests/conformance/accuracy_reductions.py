"""The accuracy of reductions, scans and normalisations over long rows, against PyTorch's float64 results.

An error is counted in the spacing of numbers near the result; near the sum of the magnitudes for sums of both signs,
whose own size says nothing of what they were made of. What is centred, and gradients, count relative to the largest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import pullback

from .accuracy_measurement import Measurement

Array = Any
Tensor = Any
LONG, SHORT = 100_000, 20_000
DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class Reduction:
    """A reduction along a dimension, and the data that suit it."""

    label: str
    call: Callable[[Any, Tensor, int], Tensor]
    data: tuple[str, ...] = ("positive", "mixed", "offset")
    linear: bool = False
    """Whether its error is relative to the same of the magnitudes."""
    centred: bool = False
    """Whether its error is relative to the largest result."""
    dtypes: tuple[str, ...] = DTYPES


def _norm(order: float) -> Reduction:
    return Reduction(
        f"linalg.vector_norm {order}", lambda m, x, dim: m.linalg.vector_norm(x, order, dim), ("mixed", "wide")
    )


def _distance(order: float) -> Reduction:
    def call(module: Any, x: Tensor, dim: int) -> Tensor:
        rows = x.movedim(dim, -1).reshape(-1, x.shape[dim])
        return module.cdist(rows, rows.flip(0) * 0.5, p=order)

    return Reduction(f"cdist {order}", call, ("positive", "mixed", "offset"), dtypes=("float32",))


def _product(module: Any, x: Tensor, dim: int) -> Tensor:
    rows = x.movedim(dim, -1)
    return rows @ rows.mT if rows.ndim > 1 else module.dot(rows, rows.flip(0))


REDUCTIONS = (
    Reduction("sum", lambda m, x, dim: x.sum(dim), ("positive", "mixed", "wide"), linear=True),
    Reduction("mean", lambda m, x, dim: x.mean(dim), ("positive", "mixed", "wide"), linear=True),
    Reduction("nansum", lambda m, x, dim: x.nansum(dim), ("positive", "mixed"), linear=True),
    Reduction("prod", lambda m, x, dim: x.prod(dim), ("near one",)),
    Reduction("var", lambda m, x, dim: x.var(dim)),
    Reduction("std", lambda m, x, dim: x.std(dim)),
    Reduction("var_mean", lambda m, x, dim: m.var_mean(x, dim)[0]),
    Reduction("logsumexp", lambda m, x, dim: x.logsumexp(dim)),
    *(_norm(order) for order in (0.0, 0.5, 1.0, 2.0, 2.5, 3.0, float("inf"), -float("inf"), -1.0)),
    Reduction("renorm", lambda m, x, dim: m.renorm(x, 2.0, 0, 0.5) if x.ndim > 1 else x, ("mixed",)),
    Reduction("cumsum", lambda m, x, dim: x.cumsum(dim), ("positive", "mixed", "wide"), linear=True),
    Reduction("cumprod", lambda m, x, dim: x.cumprod(dim), ("near one",)),
    Reduction("logcumsumexp", lambda m, x, dim: x.logcumsumexp(dim)),
    Reduction("softmax", lambda m, x, dim: x.softmax(dim)),
    Reduction("log_softmax", lambda m, x, dim: x.log_softmax(dim)),
    Reduction("matmul", _product, ("positive", "mixed"), linear=True),
    Reduction("trapezoid", lambda m, x, dim: m.trapezoid(x, dim=dim), ("positive", "mixed"), linear=True),
    Reduction("cumulative_trapezoid", lambda m, x, dim: m.cumulative_trapezoid(x, dim=dim), ("positive",), linear=True),
    Reduction(
        "layer_norm",
        lambda m, x, dim: m.nn.functional.layer_norm(x.movedim(dim, -1), (x.shape[dim],)),
        centred=True,
    ),
    Reduction(
        "batch_norm",
        lambda m, x, dim: m.nn.functional.batch_norm(
            x.movedim(dim, 0).reshape(x.shape[dim], -1), None, None, training=True
        ),
        centred=True,
    ),
    Reduction(
        "group_norm",
        lambda m, x, dim: m.nn.functional.group_norm(x.movedim(dim, -1).reshape(1, 2, -1), 2),
        centred=True,
    ),
    Reduction("rms_norm", lambda m, x, dim: m.nn.functional.rms_norm(x.movedim(dim, -1), (x.shape[dim],))),
    Reduction("normalize", lambda m, x, dim: m.nn.functional.normalize(x, dim=dim), ("mixed", "wide")),
    Reduction(
        "cosine_similarity",
        lambda m, x, dim: m.nn.functional.cosine_similarity(x, x.abs() + 0.5, dim),
        ("mixed",),
        centred=True,
    ),
    Reduction("mse_loss", lambda m, x, dim: m.nn.functional.mse_loss(x, x * 0.5), ("mixed", "offset")),
    *(_distance(order) for order in (1.0, 2.0, 3.0)),
)


def labels() -> list[str]:
    """The names of the reductions, in order."""
    return [reduction.label for reduction in REDUCTIONS]


def layouts(dtype: str) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Where the reduced dimension lies: alone, inside, outside, between, and with steps."""
    long = LONG if dtype == "float32" else SHORT
    yield "row", (10 * long if dtype == "float32" else long,), 0
    yield "rows", (8, long), 1
    yield "columns", (long, 8), 0
    yield "middle", (4, long // 4, 6), 1
    yield "steps", (6, long), 1


def values_of(kind: str, shape: tuple[int, ...], layout: str) -> Array:
    """Data of a kind, as float64."""
    generator = np.random.default_rng(len(shape))
    doubled = (*shape[:-1], 2 * shape[-1]) if layout == "steps" else shape
    normal = generator.standard_normal(doubled)
    if kind == "positive":
        return generator.uniform(0.0, 1.0, doubled)
    if kind == "offset":
        return normal + 30.0
    if kind == "near one":
        return np.exp(normal * 5 / np.sqrt(max(shape)))  # nearer to one, roundings lean to one side
    return np.exp(normal * 3) * np.where(generator.random(doubled) < 0.5, -1.0, 1.0) if kind == "wide" else normal


def tensor_in(module: Any, values: Array, dtype: str, layout: str) -> Tensor:
    tensor = module.from_numpy(values.astype(np.float32)).to(
        getattr(module, dtype)
    )  # float64 to float16 rounds twice there
    return (tensor[..., ::2] if layout == "steps" else tensor).detach()


def results(module: Any, reduction: Reduction, tensor: Tensor, dim: int) -> tuple[Array, Array]:
    """The value and the gradient under a cotangent of small whole numbers, as float64."""
    tensor = tensor.requires_grad_()
    result = reduction.call(module, tensor, dim)
    count = result.numel()
    cotangent = ((module.arange(count) * 7919) % 11 - 4).reshape(result.shape).to(result.dtype)
    (gradient,) = module.autograd.grad((result * cotangent).sum() + 0 * tensor.sum(), tensor)
    value, slope = (t.detach().to(module.float64).numpy() for t in (result, gradient))
    return value, slope


def measure(
    reduction: Reduction, dtype: str, ours: Reduction | None = None, places: Callable[[str], Any] = layouts
) -> Measurement:
    """Measure one reduction in one dtype over all layouts and kinds of data; `ours` may be one with a fault."""
    measurement = Measurement(f"{reduction.label} {dtype}")
    eps = float(torch.finfo(getattr(torch, dtype)).eps)
    for layout, shape, dim in places(dtype):
        for kind in reduction.data:
            values = values_of(kind, shape, layout)
            rounded = tensor_in(torch, values, dtype, layout).double()
            expected = results(torch, reduction, rounded, dim)
            theirs = results(torch, reduction, tensor_in(torch, values, dtype, layout), dim)
            actual = results(pullback, ours or reduction, tensor_in(pullback, values, dtype, layout), dim)
            scale = np.abs(expected[0])
            if reduction.centred:
                scale = scale.max(initial=0.0)
            if reduction.linear:
                scale = results(torch, reduction, rounded.detach().abs(), dim)[0]
            scales = (scale, np.abs(expected[1]).max(initial=0.0))
            for what, e, t, a, s in zip(("", " gradient"), expected, theirs, actual, scales, strict=True):
                least = float(torch.finfo(getattr(torch, dtype)).tiny)
                pair = [np.minimum(np.abs(v - e) / (eps * np.maximum(s, least)), 1 / eps) for v in (a, t)]
                pair = [np.nan_to_num(errors, nan=1 / eps) for errors in pair]
                measurement.add(f"{layout} of {kind}{what}", *worst_of(*pair))
    return measurement


def worst_of(ours: Array, theirs: Array) -> tuple[list[Any], list[float], list[float]]:
    """The worst errors, with their places."""
    ours, theirs = np.ravel(ours), np.ravel(theirs)
    kept = np.unique(
        [*np.argsort(ours)[-20:], *np.argsort(theirs)[-20:], *range(0, ours.size, max(1, ours.size // 500))]
    )
    kept = kept.astype(int)
    return [f"element {i}" for i in kept], ours[kept].tolist(), theirs[kept].tolist()


def measure_all(index: int) -> list[tuple[str, int]]:
    """The lines of one reduction, each with the number of its flags."""
    warnings.simplefilter("ignore")
    found = (measure(REDUCTIONS[index], dtype) for dtype in REDUCTIONS[index].dtypes)
    return [(str(m), len(m.flags)) for m in found]
