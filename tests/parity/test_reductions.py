"""The same reductions, order statistics and losses on PyTorch: values, dtypes, shapes, nodes and gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pullback

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5}
FLOATS = ("float64", "float32", "float16", "bfloat16")
EVERY = (*FLOATS, "int64", "uint8", "bool")


@dataclass(frozen=True)
class Case:
    """A call on tensors of PyTorch and of pullback; `inputs` are values, integers staying what they are."""

    name: str
    call: Callable[..., Any]
    inputs: tuple[Any, ...]
    dtypes: tuple[str, ...] = ("float64", "float32")

    def run(self, library: Any, dtype: str, *, transposed: bool) -> tuple[list[Any], list[Any]]:
        """The floating-point inputs, and the results as a list."""
        tensors = [self.tensor(library, values, dtype, transposed=transposed) for values in self.inputs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = self.call(library, *tensors)
        return [t for t in tensors if t.requires_grad], list(result) if isinstance(result, tuple) else [result]

    @staticmethod
    def tensor(library: Any, values: Any, dtype: str, *, transposed: bool) -> Any:
        array = np.asarray(values)
        if array.dtype.kind == "i":
            return library.tensor(array)
        made = library.tensor(array).to(getattr(library, dtype))
        if transposed and made.ndim > 1:
            made = made.transpose(0, -1).contiguous().transpose(0, -1)
        return made.requires_grad_() if made.dtype.is_floating_point or made.dtype.is_complex else made


def values_of(tensor: Any) -> Any:
    tensor = tensor.detach()
    return (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()


rng = np.random.default_rng(0)
MATRIX, CUBE, OTHER = rng.normal(size=(3, 4)), rng.normal(size=(2, 3, 4)), rng.normal(size=(3, 4))
TIES = np.array([[1.0, 3, 3], [2, 2, 2], [0, 5, 1]])
GAPS = np.where(np.eye(3, 4) > 0, np.nan, MATRIX)
ZEROS = np.where(np.eye(3, 4) > 0, 0.0, MATRIX)
SHARES = rng.uniform(0.05, 0.95, size=(3, 4))
CLASSES, IGNORED = np.array([0, 3, 2]), np.array([0, -100, 2])
INFINITE = np.array([[-np.inf, 0, 1], [-np.inf] * 3, [np.inf, 0, 1]])

REDUCTIONS = (
    "sum mean prod nansum nanmean amax amin max min median nanmedian var std argmax argmin any all aminmax norm"
)
ALONG_A_DIM = "softmax log_softmax logsumexp cumsum cumprod cummax cummin logcumsumexp sort argsort"
CASES = [
    *[Case(f"{n}", lambda L, x, n=n: getattr(L, n)(x), (CUBE,), EVERY) for n in REDUCTIONS.split()],
    *[Case(f"{n}-dim", lambda L, x, n=n: getattr(L, n)(x, dim=1), (CUBE,), EVERY) for n in REDUCTIONS.split()],
    *[
        Case(f"{n}-keepdim", lambda L, x, n=n: getattr(L, n)(x, dim=-1, keepdim=True), (CUBE,))
        for n in REDUCTIONS.split()
    ],
    *[Case(f"{n}-ties", lambda L, x, n=n: getattr(L, n)(x), (TIES,)) for n in REDUCTIONS.split()],
    *[Case(f"{n}-0dim", lambda L, x, n=n: getattr(L, n)(x, dim=0), (1.5,)) for n in REDUCTIONS.split()],
    *[
        Case(f"{n}-nan", lambda L, x, n=n: getattr(L, n)(x, dim=0), (GAPS,))
        for n in ["sum", "max", "median", "nanmedian", "amin"]
    ],
    *[Case(f"{n}-zeros", lambda L, x, n=n: getattr(L, n)(x, 1), (ZEROS,)) for n in ("prod", "cumprod")],
    *[
        Case(f"{n}-inf", lambda L, x, n=n: getattr(L, n)(x, 1), (INFINITE,))
        for n in ["softmax", "log_softmax", "logsumexp"]
    ],
    *[
        Case(n, lambda L, x, n=n: getattr(L, n)(x, 1), (CUBE,), FLOATS)
        for n in [
            "softmax",
            "log_softmax",
            "logsumexp",
            "cumsum",
            "cumprod",
            "cummax",
            "cummin",
            "logcumsumexp",
            "sort",
            "argsort",
        ]
    ],
    Case("topk", lambda L, x: x.topk(2, 1, largest=False), (CUBE,), FLOATS),
    Case("kthvalue", lambda L, x: x.kthvalue(2, 1), (CUBE,), FLOATS),
    Case("count_nonzero", lambda L, x: L.count_nonzero(x, 0), (ZEROS,), EVERY),
    Case("var_mean", lambda L, x: L.var_mean(x, 1, correction=2), (CUBE,)),
    Case("std_mean", lambda L, x: L.std_mean(x, unbiased=False), (CUBE,)),
    *[Case(f"norm-{p}", lambda L, x, p=p: x.norm(p, 1), (ZEROS,)) for p in (0.5, 1, 1.5, 3, float("inf"))],
    Case("dist", lambda L, x, y: L.dist(x, y, 3), (MATRIX, OTHER[0])),
    Case("renorm", lambda L, x: x.renorm(2, 0, 1.0), (MATRIX,), FLOATS),
    Case("cov", lambda L, x: L.cov(x), (MATRIX,)),
]
LOSSES = [
    *[
        Case(n, lambda L, x, y, n=n: getattr(L.nn.functional, n)(x, y), (MATRIX, OTHER), FLOATS)
        for n in ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"]
    ],
    *[
        Case(
            f"{n}-{r}",
            lambda L, x, t, n=n, r=r: getattr(L.nn.functional, n)(x, t, reduction=r),
            (MATRIX, IGNORED),
            FLOATS,
        )
        for n in ("nll_loss", "cross_entropy")
        for r in ("none", "mean", "sum")
    ],
    Case("smoothed", lambda L, x, t: L.nn.functional.cross_entropy(x, t, label_smoothing=0.1), (MATRIX, CLASSES)),
    Case("bce", lambda L, x, y: L.nn.functional.binary_cross_entropy(x, y), (SHARES, SHARES[::-1].copy())),
    Case(
        "logits", lambda L, x, y: L.nn.functional.binary_cross_entropy_with_logits(x, y), (MATRIX * 9, SHARES), FLOATS
    ),
    Case("kl_div", lambda L, x, y: L.nn.functional.kl_div(x, y, reduction="batchmean"), (MATRIX, SHARES)),
    Case("gaussian", lambda L, x, y, v: L.nn.functional.gaussian_nll_loss(x, y, v), (MATRIX, OTHER, SHARES)),
    Case(
        "triplet", lambda L, x, y, z: L.nn.functional.triplet_margin_loss(x, y, z, swap=True), (MATRIX, OTHER, SHARES)
    ),
    Case("multi_margin", lambda L, x, t: L.nn.functional.multi_margin_loss(x, t, p=2), (MATRIX, CLASSES)),
    Case("multilabel", lambda L, x, y: L.nn.functional.multilabel_soft_margin_loss(x, y), (MATRIX, SHARES)),
    Case(
        "ctc",
        lambda L, x, t: L.nn.functional.ctc_loss(x.log_softmax(2), t, (6, 5), (3, 2), zero_infinity=True),
        (rng.normal(size=(6, 2, 5)), np.array([[1, 2, 2], [3, 1, 4]])),
    ),
]


@pytest.mark.parametrize("transposed", [False, True], ids=["contiguous", "transposed"])
@pytest.mark.parametrize(
    ("case", "dtype"), [pytest.param(c, d, id=f"{c.name}-{d}") for c in [*CASES, *LOSSES] for d in c.dtypes]
)
def test_same_as_pytorch(case: Case, dtype: str, transposed: bool) -> None:
    try:
        their_inputs, expected = case.run(torch, dtype, transposed=transposed)
    except Exception as error:
        with pytest.raises((type(error), error.__class__.__mro__[1])):
            case.run(pullback, dtype, transposed=transposed)
        return
    our_inputs, actual = case.run(pullback, dtype, transposed=transposed)
    tolerance = TOLERANCE.get(dtype, 1e-9)
    for ours, theirs in zip(actual, expected, strict=True):
        assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert (ours.grad_fn and ours.grad_fn.name()) == (theirs.grad_fn and theirs.grad_fn.name())
        np.testing.assert_allclose(values_of(ours), values_of(theirs), rtol=tolerance, atol=tolerance)
    recorded = [(o, t) for o, t in zip(actual, expected, strict=True) if t.requires_grad]
    if recorded:
        ours_grad = pullback.autograd.grad([o.sum() for o, _ in recorded], our_inputs, allow_unused=True)
        theirs_grad = torch.autograd.grad([t.sum() for _, t in recorded], their_inputs, allow_unused=True)
        for ours, theirs in zip(ours_grad, theirs_grad, strict=True):
            assert (ours is None) == (theirs is None)
            if theirs is not None:
                np.testing.assert_allclose(values_of(ours), values_of(theirs), rtol=4 * tolerance, atol=4 * tolerance)
