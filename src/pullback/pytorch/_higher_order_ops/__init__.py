"""Loops and maps as functions of functions: they run in Python, and a compiled function is cut where values end a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.conditions import cond
from pullback.functions import cat, flip, stack
from pullback.pytorch._higher_order_ops._leaves import pick_each, slices_of
from pullback.utils._pytree import tree_map

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]
) -> tuple[Any, ...]:
    """Call `body_fn` on what it returned last, as long as `cond_fn` says so.

    >>> import pullback
    >>> while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, pullback.ones(1)))
    (3, tensor([8.]))
    """
    carried = tuple(carried_inputs)
    while cond_fn(*carried):
        made = body_fn(*carried)
        carried = tuple(made) if isinstance(made, (list, tuple)) else (made,)
    return carried


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False
) -> tuple[Any, Any]:
    """Carry a state over the slices of `xs` along `dim`: the last state, and the outputs stacked along dimension 0.

    >>> import pullback
    >>> scan(lambda total, x: (total + x, total * x), pullback.zeros(()), pullback.arange(4.0))
    (tensor(6.), tensor([0., 0., 2., 9.]))
    """
    slices = slices_of(xs, dim)
    carry, outputs = init, []
    for part in reversed(slices) if reverse else slices:
        carry, output = combine_fn(carry, part)
        outputs.append(output)
    return carry, pick_each(stack, outputs[::-1] if reverse else outputs)


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """What `combine_fn` makes of all slices up to each one, along `dim`.

    >>> import pullback
    >>> associative_scan(lambda a, b: a * b, pullback.arange(1.0, 5.0), 0)
    tensor([ 1.,  2.,  6., 24.])
    """
    if reverse:
        flipped = associative_scan(combine_fn, tree_map(lambda x: flip(x, [dim]), xs), dim)
        return tree_map(lambda x: flip(x, [dim]), flipped)
    slices = slices_of(tree_map(lambda x: x.unsqueeze(dim), xs), dim + 1 if dim >= 0 else dim)
    made = slices[:1]
    for part in slices[1:]:
        made.append(combine_fn(made[-1], part))
    return pick_each(lambda parts: cat(parts, dim), made)


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Call `f` on each slice of `xs` along dimension 0, with `args`, and stack what it gives."""
    return pick_each(stack, [f(part, *args) for part in slices_of(xs, 0)])
