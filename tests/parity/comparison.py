"""Runs one call on both libraries and compares value, shape, dtype, node, gradients and, if asked, second order."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback

Call = Callable[..., Any]


def compare(
    torch: Any, call: Call, arrays: Sequence[Any], *, second_order: bool = True, node: bool = True, seed: int = 0
) -> None:
    """`call(library, functional, *tensors)` gives the same on PyTorch and on pullback."""
    expected = _outcome(torch, call, arrays, second_order, seed)
    actual = _outcome(pullback, call, arrays, second_order, seed)
    single = any(getattr(a, "dtype", None) == np.float32 for a in arrays)
    rtol, atol = (1e-4, 1e-4) if single else (1e-6, 1e-8)
    assert len(actual["values"]) == len(expected["values"])
    for mine, reference in zip(actual["values"], expected["values"], strict=True):
        assert mine.shape == reference.shape
        assert mine.dtype == reference.dtype
        np.testing.assert_allclose(mine, reference, rtol=rtol, atol=atol)
    if node:
        assert actual["nodes"] == expected["nodes"]
    for order in ("gradients", "second"):
        for mine, reference in zip(actual[order], expected[order], strict=False):
            np.testing.assert_allclose(_or_zero(mine), _or_zero(reference), rtol=rtol * 10, atol=atol * 10)


def _or_zero(array: Any) -> Any:
    return 0.0 if array is None else array


def _outcome(library: Any, call: Call, arrays: Sequence[Any], second_order: bool, seed: int) -> dict[str, Any]:
    inputs = [_tensor(library, a) for a in arrays]
    library.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = call(library, library.nn.functional, *inputs)
    results = [r for r in (result if isinstance(result, tuple) else (result,)) if r is not None]
    leaves = [t for t in inputs if isinstance(t, library.Tensor) and t.requires_grad]
    gradients = _gradients(library, results, leaves, create_graph=second_order)
    second = _gradients(library, [g for g in gradients if g is not None], leaves) if second_order else []
    return {
        "values": [r.detach().numpy() for r in results],
        "nodes": [None if r.grad_fn is None else r.grad_fn.name() for r in results],
        "gradients": [None if g is None else g.detach().numpy() for g in gradients],
        "second": [None if g is None else g.detach().numpy() for g in second],
    }


def _tensor(library: Any, value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return library.tensor(value, requires_grad=value.dtype.kind == "f")


def _gradients(library: Any, outputs: list[Any], leaves: list[Any], *, create_graph: bool = False) -> list[Any]:
    used = [o for o in outputs if o.requires_grad]
    if not used or not leaves:
        return []
    rng = np.random.default_rng(1)
    weights = [library.tensor(rng.normal(size=tuple(o.shape))).to(o.dtype) for o in used]
    return list(library.autograd.grad(used, leaves, weights, create_graph=create_graph, allow_unused=True))


def compare_errors(torch: Any, call: Call) -> None:
    """The call raises the same type of error on both, beginning with the same words."""
    expected, actual = _error(torch, call), _error(pullback, call)
    assert type(actual).__name__ == type(expected).__name__
    assert str(actual)[:24] == str(expected)[:24]


def _error(library: Any, call: Call) -> Exception:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(library, library.nn.functional)
    except Exception as error:
        return error
    raise AssertionError(f"no error from {library.__name__}")
