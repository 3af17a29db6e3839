"""grad and grad_and_value: the gradient of a function with one number as its result."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pullback.autograd.differentiation import shown_ones
from pullback.backend.dtype import from_numpy_dtype
from pullback.creation import ones_like, zeros_like
from pullback.func.arguments import Argnums, checked_argnums, chosen, replaced, split_aux, without
from pullback.func.batched_tensor import innermost
from pullback.func.calling import call
from pullback.func.transform_level import enter, leads_outside, pull_back, release, track, transform_running
from pullback.modes.interception import is_dispatching
from pullback.modes.switches import set_switch, switches
from pullback.tensor.tensor import Tensor
from pullback.utils._pytree import tree_flatten, tree_map, tree_unflatten

_WHERE = "grad_and_value(f)(*args)"


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that computes the gradient of `func`, which must return one number.

    >>> import pullback
    >>> grad(lambda x: x ** 3)(pullback.tensor(2.0))
    tensor(12.)
    """

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        gradients, value = _grad_and_value(func, argnums, has_aux, args, kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """As `grad`, with the value of the function: `(gradient, value)`, or `(gradient, (value, aux))`.

    >>> import pullback
    >>> grad_and_value(lambda x: x ** 3)(pullback.tensor(2.0))
    (tensor(12.), tensor(8.))
    """

    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> Any:
        return _grad_and_value(func, argnums, has_aux, args, kwargs)

    return both


def _grad_and_value(
    func: Callable[..., Any], argnums: Argnums, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    numbers = checked_argnums(argnums, len(args))
    with transform_running() as transform:
        inputs, spec = tree_flatten(tree_map(lambda value: track(value, transform), chosen(args, numbers)))
        others = enter(without(args, numbers), transform) if len(args) > 1 else args
        output = call(func, replaced(others, numbers, tree_unflatten(inputs, spec)), enter(kwargs, transform))
        aux = None
        if has_aux:
            output, aux = split_aux(output, _WHERE)
        _check_scalar(output)
        set_switch("transform", transform.outer)
        inside: set[Any] = set()
        create = switches.dual_level >= 0 or leads_outside(innermost(output), transform, inside)
        one = shown_ones(output) if is_dispatching() else ones_like(output)
        found = pull_back([output], inputs, [one], create_graph=create, keep_graph=create or has_aux)
        gradients = [zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]
        transform.open = False
    cleaned = release(tree_unflatten(gradients, spec), transform, inside)
    value = release((output, aux) if has_aux else output, transform, inside)
    for input in inputs:
        leaf = innermost(input)
        if getattr(leaf, "_tracked_by", None) is transform:
            leaf._requires_grad = False  # where it escaped, nothing is recorded on it any more
    return cleaned, value


def _check_scalar(output: Any) -> None:
    if not isinstance(output, Tensor):
        raise RuntimeError(f"{_WHERE}: Expected f(*args) to return a Tensor, got {type(output)}")
    if output._array.ndim != 0:
        raise RuntimeError(
            f"{_WHERE}: Expected f(*args) to return a scalar Tensor, got tensor with {output._array.ndim} dims. Maybe you "
            "wanted to use the vjp or jacrev APIs instead?"
        )
    if output._array.dtype.kind == "c":
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {from_numpy_dtype(output._array.dtype)}"
        )
