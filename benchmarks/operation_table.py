"""The operations that `benchmarks.operations` measures: how to call each, and on what."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

Size = int | tuple[int, ...]


class Operation(NamedTuple):
    """A call of a module `torch` on inputs made for a size."""

    name: str
    function: Callable[..., Any]
    inputs: Callable[[Any, Any, str], list[Any]]
    differentiable: bool = True


def uniform(count: int = 1, low: float = -2.0, high: float = 2.0) -> Callable[[Any, Any, str], list[Any]]:
    """So many arrays of numbers between the two."""
    return lambda random, size, dtype: [random.uniform(low, high, size).astype(dtype) for _ in range(count)]


def integers(count: int = 1) -> Callable[[Any, Any, str], list[Any]]:
    return lambda random, size, dtype: [random.integers(1, 100, size) for _ in range(count)]


def unary() -> list[Operation]:
    anywhere = (
        "abs atan asinh ceil cos cosh erf erfc exp exp2 expm1 floor frac neg relu round sgn sigmoid sign sin sinc sinh "
        "square tan tanh trunc positive deg2rad rad2deg nan_to_num"
    )
    positive = "log log10 log1p log2 sqrt rsqrt reciprocal lgamma digamma"
    within = "acos asin atanh erfinv"
    activations = (
        "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu6 selu silu softplus "
        "softshrink softsign tanhshrink"
    )
    made = [Operation(name, _named(name), uniform()) for name in anywhere.split()]
    made += [Operation(name, _named(name), uniform(1, 0.1, 3.0)) for name in positive.split()]
    made += [Operation(name, _named(name), uniform(1, -0.95, 0.95)) for name in within.split()]
    made += [Operation("acosh", _named("acosh"), uniform(1, 1.1, 3.0))]
    made += [Operation(name, _functional(name), uniform()) for name in activations.split()]
    return made


def _named(name: str) -> Callable[..., Any]:
    return lambda torch, *inputs: getattr(torch, name)(*inputs)


def _functional(name: str) -> Callable[..., Any]:
    return lambda torch, *inputs: getattr(torch.nn.functional, name)(*inputs)


def binary() -> list[Operation]:
    names = "add sub mul div maximum minimum fmax fmin atan2 hypot remainder fmod copysign logaddexp"
    made = [Operation(name, _named(name), uniform(2)) for name in names.split()]
    made += [Operation(name, _named(name), uniform(2, 0.1, 3.0)) for name in ("pow", "xlogy")]
    made += [
        Operation("pow 2.5", lambda torch, x: x**2.5, uniform(1, 0.1, 3.0)),
        Operation("pow 3", lambda torch, x: x**3, uniform()),
        Operation("2 ** x", lambda torch, x: 2.0**x, uniform()),
        Operation("remainder 0.7", lambda torch, x: x % 0.7, uniform()),
        Operation("fmod 0.7", lambda torch, x: torch.fmod(x, 0.7), uniform()),
        Operation("floor_divide", _named("floor_divide"), uniform(2), False),
        Operation("div floor", lambda torch, x, y: torch.div(x, y, rounding_mode="floor"), uniform(2), False),
        Operation("div trunc", lambda torch, x, y: torch.div(x, y, rounding_mode="trunc"), uniform(2), False),
        Operation("lerp", _named("lerp"), uniform(3)),
        Operation("lerp 0.3", lambda torch, x, y: torch.lerp(x, y, 0.3), uniform(2)),
        Operation("addcmul", lambda torch, x, y, z: torch.addcmul(x, y, z, value=0.5), uniform(3)),
        Operation("addcdiv", lambda torch, x, y, z: torch.addcdiv(x, y, z, value=0.5), uniform(3)),
        Operation("add 3", lambda torch, x: x + 3, uniform()),
        Operation("mul 3", lambda torch, x: x * 3, uniform()),
        Operation("div 3", lambda torch, x: x / 3, uniform()),
        Operation("3 - x", lambda torch, x: 3 - x, uniform()),
        Operation("3 / x", lambda torch, x: 3 / x, uniform()),
        Operation("clamp", lambda torch, x: x.clamp(-1, 1), uniform()),
        Operation("clamp min", lambda torch, x: x.clamp(min=0.5), uniform()),
        Operation("clamp tensor", lambda torch, x, y, z: torch.clamp(x, y, z), uniform(3)),
        Operation("where", lambda torch, x, y: torch.where(x > y, x, y), uniform(2)),
        Operation("masked_fill", lambda torch, x: x.masked_fill(x > 0, -1.0), uniform()),
        Operation("threshold", lambda torch, x: torch.nn.functional.threshold(x, 0.1, 2.0), uniform()),
        Operation("glu", lambda torch, x: torch.nn.functional.glu(x.view(2, -1), 0), uniform()),
        Operation("add bias", lambda torch, x: x.view(-1, 8) + x.view(-1)[:8], uniform()),
        Operation("mul column", lambda torch, x: x.view(-1, 8) * x.view(-1, 8)[:, :1], uniform()),
    ]
    return made


def masks() -> list[Operation]:
    made = [Operation(name, _named(name), uniform(2), False) for name in "eq ne lt le gt ge".split()]
    made += [
        Operation(f"logical_{name}", _named(f"logical_{name}"), _masks_of(2), False) for name in ("and", "or", "xor")
    ]
    made += [
        Operation("lt 0.5", lambda torch, x: x < 0.5, uniform(), False),
        Operation("eq int 3", lambda torch, x: x == 3, integers(), False),
        Operation("lt int", lambda torch, x, y: x < y, integers(2), False),
        Operation("logical_not", _named("logical_not"), _masks_of(1), False),
        Operation("mask and", lambda torch, x, y: x & y, _masks_of(2), False),
        Operation("mask not", lambda torch, x: ~x, _masks_of(1), False),
        Operation("isnan", _named("isnan"), uniform(), False),
        Operation("isinf", _named("isinf"), uniform(), False),
        Operation("isfinite", _named("isfinite"), uniform(), False),
        Operation(
            "allclose", _named("allclose"), lambda r, size, dtype: [r.uniform(size=size).astype(dtype)] * 2, False
        ),
        Operation("equal", _named("equal"), lambda r, size, dtype: [r.uniform(size=size).astype(dtype)] * 2, False),
        Operation("to float64", lambda torch, x: x.to(torch.float64), uniform()),
        Operation(
            "double to float32", lambda torch, x: x.to(torch.float32), lambda r, s, d: uniform()(r, s, "float64")
        ),
        Operation("int64 to float32", lambda torch, x: x.to(torch.float32), integers(), False),
        Operation("float32 to int64", lambda torch, x: x.to(torch.int64), uniform(), False),
        Operation("bool to float32", lambda torch, x: x.to(torch.float32), _masks_of(1), False),
        Operation("float32 to bool", lambda torch, x: x.to(torch.bool), uniform(), False),
        Operation("int64 to int32", lambda torch, x: x.to(torch.int32), integers(), False),
        Operation("mul mask", lambda torch, x: x * (x > 0), uniform()),
        Operation("int add", lambda torch, x, y: x + y, integers(2), False),
        Operation("int add 1", lambda torch, x: x + 1, integers(), False),
        Operation("int mul", lambda torch, x, y: x * y, integers(2), False),
        Operation("int floor_divide 7", lambda torch, x: x // 7, integers(), False),
        Operation("int remainder 7", lambda torch, x: x % 7, integers(), False),
        Operation("int sum", lambda torch, x: x.sum(), integers(), False),
        Operation("int max", lambda torch, x: x.max(), integers(), False),
        Operation("zeros_like", _named("zeros_like"), uniform(), False),
        Operation("ones_like", _named("ones_like"), uniform(), False),
        Operation("clone", lambda torch, x: x.clone(), uniform()),
        Operation("arange", lambda torch, x: torch.arange(x.numel()), uniform(), False),
    ]
    return made


def _masks_of(count: int) -> Callable[[Any, Any, str], list[Any]]:
    return lambda random, size, dtype: [random.random(size) < 0.5 for _ in range(count)]


def reductions() -> list[Operation]:
    made = []
    whole = "sum mean amax amin prod var std logsumexp norm max min argmax argmin any all count_nonzero nansum median"
    for name in whole.split():
        differentiable = name not in ("argmax", "argmin", "any", "all", "count_nonzero")
        values = uniform(1, 0.9, 1.1) if name == "prod" else uniform()
        if name != "logsumexp":
            made.append(Operation(f"{name}()", _whole(name), values, differentiable))
        for dim in (0, -1):
            made.append(Operation(f"{name}({dim})", _along(name, dim), values, differentiable))
    for name in "cumsum cumprod logcumsumexp cummax softmax log_softmax sort".split():
        values = uniform(1, 0.9, 1.1) if name == "cumprod" else uniform()
        made += [Operation(f"{name}({dim})", _along(name, dim), values) for dim in (0, -1)]
    made += [
        Operation("var_mean(-1)", lambda torch, x: torch.var_mean(x, -1), uniform()),
        Operation("aminmax", lambda torch, x: torch.aminmax(x), uniform()),
        Operation("norm 1", lambda torch, x: torch.linalg.vector_norm(x, 1), uniform()),
        Operation("norm inf", lambda torch, x: torch.linalg.vector_norm(x, math.inf), uniform()),
        Operation("norm 3 (-1)", lambda torch, x: torch.linalg.vector_norm(x, 3, -1), uniform()),
        Operation("sum keepdim (-1)", lambda torch, x: x.sum(-1, keepdim=True), uniform()),
        Operation("mask any", lambda torch, x: x.any(), _masks_of(1), False),
        Operation("mask all(-1)", lambda torch, x: x.all(-1), _masks_of(1), False),
        Operation("mask sum", lambda torch, x: x.sum(), _masks_of(1), False),
        Operation("mask sum(-1)", lambda torch, x: x.sum(-1), _masks_of(1), False),
    ]
    return made


def _whole(name: str) -> Callable[..., Any]:
    return lambda torch, x: getattr(torch, name)(x)


def _along(name: str, dim: int) -> Callable[..., Any]:
    def call(torch: Any, x: Any) -> Any:
        return getattr(torch, name)(x, dim=dim if x.ndim > 1 else 0)

    return call


def losses() -> list[Operation]:
    def loss(name: str, values: Any, **options: Any) -> Operation:
        shown = " ".join([name, *map(str, options.values())])
        return Operation(shown, lambda torch, *x: getattr(torch.nn.functional, name)(*x, **options), values)

    made = []
    for name in "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits soft_margin_loss".split():
        made += [loss(name, _with_target), loss(name, _with_target, reduction="none")]
    made += [
        loss("binary_cross_entropy", _probabilities),
        loss("binary_cross_entropy", _probabilities, reduction="none"),
        loss("kl_div", _probabilities, reduction="batchmean"),
        loss("poisson_nll_loss", _with_target),
        loss("hinge_embedding_loss", _with_target),
        loss("cross_entropy", _classes),
        Operation("nll_loss weighted", _weighted_nll, _classes),
        loss("nll_loss", _classes),
        loss("cosine_similarity", uniform(2)),
    ]
    return made


def _weighted_nll(torch: Any, scores: Any, target: Any) -> Any:
    return torch.nn.functional.nll_loss(scores, target, weight=torch.ones(scores.shape[1]))


def _with_target(random: Any, size: Any, dtype: str) -> list[Any]:
    return [random.normal(size=size).astype(dtype), Constant(random.random(size).astype(dtype))]


def _probabilities(random: Any, size: Any, dtype: str) -> list[Any]:
    return [random.uniform(0.01, 0.99, size).astype(dtype), Constant(random.uniform(0.01, 0.99, size).astype(dtype))]


def _classes(random: Any, size: Any, dtype: str) -> list[Any]:
    return [random.normal(size=size).astype(dtype), random.integers(0, size[1], size[0])]


class Constant:
    """An input that takes no gradient."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def copy(self) -> Any:
        return self.array.copy()


def _rows(random: Any, size: Any, dtype: str) -> list[Any]:
    return [random.normal(size=size).astype(dtype), random.integers(0, min(size), size[0])]


def _cells(random: Any, size: Any, dtype: str) -> list[Any]:
    return [random.normal(size=size).astype(dtype), random.integers(0, min(size), size)]


def _rows_and_source(random: Any, size: Any, dtype: str) -> list[Any]:
    return [*_rows(random, size, dtype), random.normal(size=size).astype(dtype)]


def _cells_and_source(random: Any, size: Any, dtype: str) -> list[Any]:
    return [*_cells(random, size, dtype), random.normal(size=size).astype(dtype)]


def indexing() -> list[Operation]:
    return [
        Operation("index_select 0", lambda t, x, i: t.index_select(x, 0, i), _rows),
        Operation("index_select 1", lambda t, x, i: t.index_select(x, 1, i), _rows),
        Operation("x[i]", lambda t, x, i: x[i], _rows),
        Operation("x[:, i]", lambda t, x, i: x[:, i], _rows),
        Operation("x[i, i]", lambda t, x, i: x[i, i], _rows),
        Operation("x[mask]", lambda t, x, i: x[x > 0], _rows),
        Operation("masked_select", lambda t, x, i: t.masked_select(x, x > 0), _rows),
        Operation("gather 1", lambda t, x, i: t.gather(x, 1, i), _cells),
        Operation("gather 0", lambda t, x, i: t.gather(x, 0, i), _cells),
        Operation("scatter_add 1", lambda t, x, i, y: t.scatter_add(x, 1, i, y), _cells_and_source),
        Operation("scatter_add 0", lambda t, x, i, y: t.scatter_add(x, 0, i, y), _cells_and_source),
        Operation("scatter 1", lambda t, x, i, y: t.scatter(x, 1, i, y), _cells_and_source),
        Operation("index_add 0", lambda t, x, i, y: t.index_add(x, 0, i, y), _rows_and_source),
        Operation("index_copy 0", lambda t, x, i, y: t.index_copy(x, 0, i, y), _rows_and_source, False),
        Operation("index_put add", lambda t, x, i, y: t.index_put(x, (i,), y, accumulate=True), _rows_and_source),
        Operation("index_put", lambda t, x, i, y: t.index_put(x, (i,), y), _rows_and_source),
        Operation("take", lambda t, x, i: t.take(x, i), _rows),
        Operation("embedding", lambda t, x, i: t.nn.functional.embedding(i, x), _rows),
        Operation("embedding_bag", lambda t, x, i: t.nn.functional.embedding_bag(i.view(-1, 4), x), _rows),
        Operation("roll", lambda t, x, i: t.roll(x, 3, 1), _rows),
        Operation("roll 0", lambda t, x, i: t.roll(x, 3, 0), _rows),
        Operation("flip 0", lambda t, x, i: t.flip(x, (0,)), _rows),
        Operation("flip 1", lambda t, x, i: t.flip(x, (1,)), _rows),
        Operation("tril", lambda t, x, i: t.tril(x), _rows),
        Operation("triu", lambda t, x, i: t.triu(x), _rows),
        Operation("diag", lambda t, x, i: t.diag(x), _rows),
        Operation("pad constant", lambda t, x, i: t.nn.functional.pad(x, (1, 1, 2, 2)), _rows),
        Operation(
            "pad reflect", lambda t, x, i: t.nn.functional.pad(x[None, None], (1, 1, 2, 2), mode="reflect"), _rows
        ),
        Operation(
            "pad replicate", lambda t, x, i: t.nn.functional.pad(x[None, None], (1, 1, 2, 2), mode="replicate"), _rows
        ),
        Operation(
            "pad circular", lambda t, x, i: t.nn.functional.pad(x[None, None], (1, 1, 2, 2), mode="circular"), _rows
        ),
        Operation("cat 0", lambda t, x, i: t.cat([x, x, x, x], 0), _rows),
        Operation("cat 1", lambda t, x, i: t.cat([x, x, x, x], 1), _rows),
        Operation("stack 0", lambda t, x, i: t.stack([x, x, x, x], 0), _rows),
        Operation("stack -1", lambda t, x, i: t.stack([x, x, x, x], -1), _rows),
        Operation("cat of 64", lambda t, x, i: t.cat([x[:2]] * 64, 0), _rows),
        Operation("repeat", lambda t, x, i: x.repeat(2, 2), _rows),
        Operation("repeat_interleave", lambda t, x, i: t.repeat_interleave(x, 2, 0), _rows),
        Operation("expand clone", lambda t, x, i: x[:1].expand(x.shape).clone(), _rows),
        Operation("transpose clone", lambda t, x, i: x.t().contiguous(), _rows),
        Operation("topk 5", lambda t, x, i: t.topk(x, 5), _rows),
        Operation("sort", lambda t, x, i: t.sort(x, -1), _rows),
        Operation("argsort", lambda t, x, i: t.argsort(x, -1), _rows, False),
        Operation("kthvalue", lambda t, x, i: t.kthvalue(x, 5), _rows),
        Operation("nonzero", lambda t, x, i: t.nonzero(x > 1), _rows, False),
        Operation("unique", lambda t, x, i: t.unique(i), _rows, False),
        Operation("bincount", lambda t, x, i: t.bincount(i), _rows, False),
        Operation("one_hot", lambda t, x, i: t.nn.functional.one_hot(i), _rows, False),
        Operation("searchsorted", lambda t, x, i: t.searchsorted(x[0].detach().sort()[0], x.detach()), _rows, False),
        Operation("unfold", lambda t, x, i: x.unfold(1, 3, 1).sum(), _rows),
    ]
