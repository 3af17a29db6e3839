"""vjp: the value of a function, and a function that multiplies vectors with its Jacobian from the left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.autograd.differentiation import make_grads
from pullback.backend.dtype import is_float_or_complex
from pullback.creation import zeros_like
from pullback.func.arguments import Argnums, checked_argnums, chosen, flat_tensors, replaced, split_aux, without
from pullback.func.batched_tensor import innermost
from pullback.func.calling import call
from pullback.func.transform_level import (
    Transform,
    enter,
    leads_outside,
    pull_back,
    recording,
    release,
    track,
    transform_running,
)
from pullback.modes.switches import switches
from pullback.utils._pytree import tree_flatten, tree_map, tree_unflatten

_WHERE = "vjp(f, *primals)"


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`(output, vjp_fn)`, or `(output, vjp_fn, aux)`; `vjp_fn(cotangents)` returns a cotangent for each primal.

    >>> import pullback
    >>> output, vjp_fn = vjp(pullback.sin, pullback.zeros(2))
    >>> vjp_fn(pullback.ones(2))
    (tensor([1., 1.]),)
    """
    return vjp_with_argnums(func, None, primals, has_aux)


def vjp_with_argnums(func: Callable[..., Any], argnums: Argnums, primals: tuple[Any, ...], has_aux: bool) -> Any:
    """As `vjp`, with respect to some of the arguments."""
    with transform_running() as transform:
        numbers = None if argnums is None else checked_argnums(argnums, len(primals))
        wanted = primals if numbers is None else chosen(primals, numbers)
        inputs, spec = tree_flatten(tree_map(lambda value: track(value, transform), wanted))
        tracked = tree_unflatten(inputs, spec)
        if numbers is not None:
            others = enter(without(primals, numbers), transform) if len(primals) > 1 else primals
            tracked = replaced(others, numbers, tracked)
        output = call(func, tracked, {})
        aux = None
        if has_aux:
            output, aux = split_aux(output, _WHERE)
        outputs, output_spec = flat_tensors(output, _WHERE, "f(*primals)")
        for value in outputs:
            if not is_float_or_complex(value._array.dtype):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                    f"{value.dtype}"
                )
    transform.open = False
    inside: set[Any] = set()
    outside = any(leads_outside(innermost(o), transform, inside) for o in outputs if o._requires_grad)
    vjp_fn = _product(outputs, output_spec, inputs, spec, transform, outside)
    clean_output, clean_aux = release(output, transform, inside), release(aux, transform, inside)
    return (clean_output, vjp_fn, clean_aux) if has_aux else (clean_output, vjp_fn)


def _product(
    outputs: list[Any], output_spec: Any, inputs: list[Any], spec: Any, transform: Transform, outside: bool
) -> Callable[..., Any]:
    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        vectors, cotangent_spec = tree_flatten(cotangents)
        if cotangent_spec != output_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {_shape(cotangent_spec)}, primal output: {_shape(output_spec)}"
            )
        vectors = make_grads(outputs, vectors, is_grads_batched=False)
        recorded = switches.grad_mode
        create = switches.dual_level >= 0 or (recorded and (outside or any(v._requires_grad for v in vectors)))
        with recording():
            found = pull_back(outputs, inputs, vectors, create_graph=create, keep_graph=retain_graph)
            filled = [zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]
        return release(tree_unflatten(filled, spec), transform)

    return vjp_fn


def _shape(spec: Any) -> str:
    text = tree_unflatten(["*"] * spec.num_leaves, spec)
    return str(text).replace("'*'", "*")
