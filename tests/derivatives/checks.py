"""Generic checks of a derivative: against finite differences, between the two paths, and between modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback
from pullback.autograd import forward_ad

EPS = 1e-6


def leaves(arrays: Sequence[Any]) -> list[Any]:
    """Tensors that require grad, on copies of the arrays that keep their strides."""
    return [pullback.from_numpy(np.array(a, order="K", copy=True)).requires_grad_() for a in arrays]


def outputs_of(call: Callable[..., Any], tensors: Sequence[Any]) -> list[Any]:
    """The differentiable results of a call."""
    result = call(*tensors)
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [r for r in results if r.dtype.is_floating_point or r.dtype.is_complex]


def cotangents(outputs: Sequence[Any], seed: int = 0) -> list[Any]:
    """Random gradients for the results."""
    rng = np.random.default_rng(seed)
    made = []
    for output in outputs:
        values = rng.normal(size=tuple(output.shape))
        if output.dtype.is_complex:
            values = values + 1j * rng.normal(size=tuple(output.shape))
        made.append(pullback.from_numpy(np.asarray(values)).to(output.dtype))
    return made


def inner(a: Sequence[Any], b: Sequence[Any]) -> float:
    """The real inner product of two lists of arrays."""
    return float(sum(np.sum((np.conj(x) * y).real) for x, y in zip(a, b, strict=True)))


def directions(arrays: Sequence[Any], seed: int = 1) -> list[Any]:
    """Random directions in the space of the inputs."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=a.shape) + (1j * rng.normal(size=a.shape) if np.iscomplexobj(a) else 0.0) for a in arrays]


def gradients(call: Callable[..., Any], arrays: Sequence[Any], *, create_graph: bool = False) -> list[Any]:
    """The gradients of <cotangents, call> with respect to the inputs, on the array or the differentiable path."""
    tensors = leaves(arrays)
    outputs = outputs_of(call, tensors)
    grads = pullback.autograd.grad(
        outputs, tensors, cotangents(outputs), create_graph=create_graph, materialize_grads=True
    )
    return [g.detach().numpy() for g in grads]


def check_backward(call: Callable[..., Any], arrays: Sequence[Any], atol: float) -> None:
    """backward = finite differences, along random directions."""
    expected_outputs = [o.detach() for o in outputs_of(call, leaves(arrays))]
    weights = [c.numpy() for c in cotangents(expected_outputs)]
    actual = gradients(call, arrays)
    for index in range(len(arrays)):
        for seed in (1, 2):
            direction = directions([arrays[index]], seed)[0]

            def moved(step: float, i: int = index, d: Any = direction) -> float:
                shifted = [a + step * d if j == i else a for j, a in enumerate(arrays)]
                with pullback.no_grad():
                    values = [
                        o.numpy() for o in outputs_of(call, [pullback.from_numpy(np.asarray(s)) for s in shifted])
                    ]
                return inner(weights, values)

            expected = (moved(EPS) - moved(-EPS)) / (2 * EPS)
            np.testing.assert_allclose(inner([actual[index]], [direction]), expected, rtol=1e-4, atol=max(atol, 1e-5))


def check_paths_agree(call: Callable[..., Any], arrays: Sequence[Any]) -> None:
    """The array path and the differentiable path give the same gradients."""
    for a, b in zip(gradients(call, arrays), gradients(call, arrays, create_graph=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def check_second_order(call: Callable[..., Any], arrays: Sequence[Any], atol: float) -> None:
    """The gradient of the gradient = finite differences of the gradient."""

    def first_order(*tensors: Any) -> list[Any]:
        outputs = outputs_of(call, tensors)
        inputs = [t if t.requires_grad else t.requires_grad_() for t in tensors]
        grads = pullback.autograd.grad(outputs, inputs, cotangents(outputs), create_graph=True, materialize_grads=True)
        return [g for g in grads if g.requires_grad]

    def gradient_call(*tensors: Any) -> list[Any]:
        with pullback.enable_grad():
            return first_order(*[t if t.requires_grad else t.detach().requires_grad_() for t in tensors])

    tensors = leaves(arrays)
    if not first_order(*tensors):
        return

    def detached(*tensors: Any) -> list[Any]:
        results = gradient_call(*tensors)
        return results if pullback.is_grad_enabled() else [r.detach() for r in results]

    check_backward(detached, arrays, atol)


def check_forward(call: Callable[..., Any], arrays: Sequence[Any], atol: float) -> None:
    """The tangent is the adjoint of backward: <u, J v> = <J^T u, v>."""
    steps = directions(arrays)
    grads = gradients(call, arrays)
    with forward_ad.dual_level():
        duals = [
            forward_ad.make_dual(pullback.from_numpy(np.asarray(a)), pullback.from_numpy(np.asarray(d)))
            for a, d in zip(arrays, steps, strict=True)
        ]
        outputs = outputs_of(call, duals)
        tangents = [forward_ad.unpack_dual(o).tangent for o in outputs]
        pushed = [
            np.zeros(tuple(o.shape)) if t is None else t.detach().numpy()
            for o, t in zip(outputs, tangents, strict=True)
        ]
    weights = [c.numpy() for c in cotangents([o.detach() for o in outputs])]
    np.testing.assert_allclose(inner(weights, pushed), inner(grads, steps), rtol=1e-6, atol=max(atol, 1e-8))
