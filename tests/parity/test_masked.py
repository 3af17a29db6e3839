"""Programs with MaskedTensor on PyTorch and on pullback: the same text, filled values and gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback

torch = pytest.importorskip("torch")

Call = Callable[[Any, Any], Any]

DATA = [[0.3, 0.2, -0.5], [0.1, 0.9, 0.7]]
MASK = [[True, False, True], [True, True, False]]

UNARY = (
    "abs acos asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac lgamma log "
    "log10 log1p log2 logit neg positive rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt "
    "square tan tanh trunc isnan nan_to_num isfinite"
).split()
BINARY = (
    "add atan2 div floor_divide fmod logaddexp mul remainder sub eq ne le ge gt lt maximum minimum fmax fmin"
).split()


def _unary(name: str) -> Call:
    return lambda t, x: getattr(t, name)(x)


def _binary(name: str) -> Call:
    return lambda t, x: getattr(t, name)(x, x * 2 + 1)


def _with_plain(name: str) -> Call:
    return lambda t, x: getattr(x, name)(t.tensor(0.3))


CALLS: dict[str, Call] = {
    **{name: _unary(name) for name in UNARY},
    **{f"{name} masked": _binary(name) for name in BINARY},
    **{f"{name} plain": _with_plain(name) for name in BINARY},
    "power": lambda t, x: x**2,
    "clamp": lambda t, x: x.clamp(-0.2, 0.5),
    "sum": lambda t, x: x.sum(),
    "sum over a dim": lambda t, x: x.sum(1, keepdim=True),
    "mean over dims": lambda t, x: x.mean((0, 1)),
    "prod": lambda t, x: x.prod(1),
    "amax": lambda t, x: x.amax(0),
    "amin": lambda t, x: x.amin(),
    "argmax": lambda t, x: x.argmax(1),
    "argmin": lambda t, x: x.argmin(),
    "var": lambda t, x: x.var(),
    "std": lambda t, x: x.std(1),
    "all": lambda t, x: (x > 0).all(),
    "softmax": lambda t, x: x.softmax(1),
    "transpose": lambda t, x: x.t(),
    "reshape": lambda t, x: x.reshape(3, 2),
    "select": lambda t, x: x[1],
    "slice": lambda t, x: x[:, 1:],
    "boolean index": lambda t, x: x[x.get_mask()],
    "expand": lambda t, x: x.expand(2, 2, 3),
    "unsqueeze": lambda t, x: x.unsqueeze(1),
    "cat": lambda t, x: t.cat([x, x]),
    "stack": lambda t, x: t.stack([x, x]),
    "where": lambda t, x: t.where(x.get_data() > 0.15, x, x.get_data()),
    "to float64": lambda t, x: x.to(t.float64),
    "clone": lambda t, x: x.clone(),
    "in-place": lambda t, x: x.detach().abs_(),
    "get_data": lambda t, x: x.get_data(),
    "to_tensor": lambda t, x: x.to_tensor(2.0),
}
REFUSALS: dict[str, Call] = {
    "other mask": lambda t, x: x + t.masked.masked_tensor(x.get_data(), ~x.get_mask()),
    "alpha": lambda t, x: t.add(x, x, alpha=2),
    "relu": lambda t, x: x.relu(),
    "squeeze": lambda t, x: x.squeeze(),
    "median": lambda t, x: x.median(),
    "numpy": lambda t, x: x.detach().numpy(),
    "list as data": lambda t, x: t.masked.masked_tensor([1], x.get_mask()),
    "mask of masked": lambda t, x: t.masked.masked_tensor(x.get_data(), x),
    "shape": lambda t, x: t.masked.masked_tensor(x.get_data(), x.get_mask()[0]),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _input(library: Any) -> Any:
    return library.masked.masked_tensor(library.tensor(DATA), library.tensor(MASK), True)


@pytest.mark.parametrize("name", CALLS)
def test_values_masks_and_gradients(name: str) -> None:
    expected, actual = _outcome(torch, name), _outcome(pullback, name)
    assert actual["value"] == pytest.approx(expected["value"], rel=1e-5, abs=1e-6, nan_ok=True)
    assert actual["mask"] == expected["mask"]
    assert actual["dtype"] == expected["dtype"]
    if expected["gradient"] is not None:
        assert actual["gradient"] == pytest.approx(expected["gradient"], rel=1e-5, abs=1e-6, nan_ok=True)


def _outcome(library: Any, name: str) -> dict[str, Any]:
    x = _input(library)
    result = CALLS[name](library, x)
    masked = library.masked.is_masked_tensor(result)
    plain = (result.to_tensor(-9) if masked else result).detach()
    return {
        "value": plain.reshape(-1).tolist(),
        "mask": result.get_mask().tolist() if masked else None,
        "dtype": str(plain.dtype).rpartition(".")[2],
        "gradient": _gradient(result, x),
    }


def _gradient(result: Any, x: Any) -> Any:
    """The gradient of the sum, None where PyTorch has none: many nodes compute with what MaskedTensor lacks there."""
    try:
        (result.sum() if result.ndim else result).backward()
        return x.grad.to_tensor(0).reshape(-1).tolist()
    except (RuntimeError, TypeError, AttributeError, ValueError):
        return None


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    errors = []
    for library in (torch, pullback):
        with pytest.raises((TypeError, ValueError, RuntimeError)) as caught:
            REFUSALS[name](library, _input(library))
        errors.append((caught.type, str(caught.value)[:20]))
    assert errors[0] == errors[1]
