"""linearize: the value of a function, and its Jacobian as a linear map that can be applied again and again.

The function runs once. Its pullback is linear, and the pullback of that, recorded once too, is the product of the Jacobian
with a vector: one backward pass for each product, by derivatives that exist for every operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.creation import zeros_like
from pullback.func.jvp import jvp
from pullback.func.vjp import vjp
from pullback.graph.tangents import share_memory
from pullback.utils._pytree import tree_flatten, tree_unflatten


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """`(output, jvp_fn)`, where `jvp_fn(*tangents)` multiplies the Jacobian at `primals` with vectors.

    >>> import pullback
    >>> output, jvp_fn = linearize(pullback.sin, pullback.zeros(2))
    >>> jvp_fn(pullback.ones(2))
    tensor([1., 1.])
    """
    flat, spec = tree_flatten(primals)
    output, multiply = _linear_map(func, primals)

    def jvp_fn(*tangents: Any) -> Any:
        given, tangent_spec = tree_flatten(tangents)
        if tangent_spec != spec:
            raise RuntimeError(f"Expected the tangents {tangent_spec} to have the same argspec as the primals {spec}")
        for index, (primal, tangent) in enumerate(zip(flat, given, strict=True)):
            _check_tangent(index, primal, tangent)
        return multiply(tangents)

    return output, jvp_fn


def _linear_map(func: Callable[..., Any], primals: tuple[Any, ...]) -> tuple[Any, Callable[[Any], Any]]:
    """The value of `func`, and the function that multiplies its Jacobian with tangents."""
    try:
        output, pull = vjp(func, *primals)
        outputs, output_spec = tree_flatten(output)
        zeros = [zeros_like(value) for value in outputs]
        _, push = vjp(lambda *cotangents: pull(tree_unflatten(list(cotangents), output_spec)), *zeros)
    except (RuntimeError, NotImplementedError):  # not differentiable backward, such as a Function that has only a jvp
        output = jvp(func, primals, _zeros(primals))[0]
        return output, lambda tangents: jvp(func, primals, tangents)[1]
    return output, lambda tangents: tree_unflatten(_apart(push(tangents), tree_flatten(tangents)[0]), output_spec)


def _apart(results: Any, tangents: list[Any]) -> list[Any]:
    """Products in memory of their own: those of an identity are the tangents themselves."""
    found: list[Any] = []
    for result in results:
        found.append(result.clone() if share_memory(result, [tangents, found]) else result)
    return found


def _zeros(primals: tuple[Any, ...]) -> Any:
    flat, spec = tree_flatten(primals)
    return tree_unflatten([zeros_like(value) for value in flat], spec)


def _check_tangent(index: int, primal: Any, tangent: Any) -> None:
    if primal.shape != tangent.shape:
        raise RuntimeError(
            f"tangent:{index} with shape {tangent.shape} in flattened pytree doesn't match the shape {primal.shape} of the "
            "corresponding primal."
        )
    if primal.dtype is not tangent.dtype:
        raise RuntimeError(
            f"tangent:{index} with dtype {tangent.dtype} in flattened pytree doesn't match the dtype {primal.dtype} of the "
            "corresponding primal."
        )
