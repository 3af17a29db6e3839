"""jvp: the value of a function, and the product of its Jacobian with a vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pullback.generated as G
from pullback.autograd.forward_ad import laid_out_like
from pullback.creation import zeros_like
from pullback.func.arguments import flat_tensors, split_aux
from pullback.func.batched_tensor import BatchedTensor, innermost, levels_of_batch, places_of, wrapped_at
from pullback.func.calling import call
from pullback.func.transform_level import Transform, above_levels, below_levels, release
from pullback.graph.tangents import set_tangent, tangent_at, without_history, without_tangents
from pullback.modes.dual_level import open_dual_level
from pullback.modes.switches import kept_switches, set_switch, switched, switches
from pullback.tensor.tensor import Tensor
from pullback.utils._pytree import tree_flatten, tree_unflatten

_WHERE = "jvp(f, primals, tangents)"


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """`(output, tangent of the output)`, or these with `aux`, by forward mode.

    >>> import pullback
    >>> jvp(pullback.sin, (pullback.zeros(2),), (pullback.ones(2),))
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_WHERE}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    flat_primals, spec = tree_flatten(primals)
    flat_tangents, tangent_spec = tree_flatten(tangents)
    if spec != tangent_spec:
        raise RuntimeError(
            f"{_WHERE}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple "
            f"of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure "
            f"{tangent_spec}"
        )
    _check_tensors(flat_primals, "primals")
    _check_tensors(flat_tangents, "tangents")
    transform = Transform()
    with transform.running(), _dual_level() as level:
        duals = [make_dual(p, t, level) for p, t in zip(flat_primals, flat_tangents, strict=True)]
        output = call(func, tree_unflatten(duals, spec), {})
        aux = None
        if has_aux:
            output, aux = split_aux(output, _WHERE)
        outputs, output_spec = flat_tensors(output, _WHERE, "f(*primals)")
        found = [_tangent(o, level, strict) for o in outputs]
        values = [_primal(o, level) for o in outputs]
        aux = _clean_aux(aux, level)
    value = release(tree_unflatten(values, output_spec), transform)
    pushed = release(tree_unflatten(found, output_spec), transform)
    return (value, pushed, release(aux, transform)) if has_aux else (value, pushed)


@contextmanager
def _dual_level() -> Iterator[int]:
    """A dual level of a transform, inside of which tangents flow."""
    with kept_switches("dual_depths", "forward_grad", "dual_ids", "dual_level"):
        level = open_dual_level(nested=True)
        set_switch("forward_grad", True)
        switches.dual_depths = {**switches.dual_depths, level: switches.transforms}
        yield level


def _check_tensors(values: Sequence[Any], name: str) -> None:
    if not values:
        raise RuntimeError(f"{_WHERE}: Expected {name} to contain at least one Tensor.")
    for value in values:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"{_WHERE}: Expected {name} to only contain Tensors, got {type(value)}")


def make_dual(primal: Any, tangent: Any, dual_level: int) -> Any:
    """An alias of `primal` that carries `tangent`, which may be batched where `primal` is not."""
    if primal._array.shape != tangent._array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(primal.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if primal._array.dtype.kind not in "fcV":
        raise ValueError(f"Expected primal to be floating point or complex, but got: {primal.dtype}")
    levels = list(reversed(levels_of_batch(primal)))
    alias = _alias(below_levels(primal, levels))
    below = _alias(below_levels(tangent, levels))
    alias._require_extra().is_dual_input = True
    set_tangent(alias, dual_level, below if isinstance(below, BatchedTensor) else laid_out_like(alias, below))
    return above_levels(alias, levels)


def _alias(tensor: Any) -> Any:
    """The tensor under another name, with its tangents of outer levels and, where it has one, behind its place.

    It belongs to the transform, which may modify it.
    """
    with switched("grad_mode", True):
        alias = G.alias(tensor) if tensor._requires_grad else without_history(tensor)
    alias._made_in = switches.transform
    return alias


def _tangent(output: Any, dual_level: int, strict: bool) -> Any:
    """The tangent of an output; zeros where it depends on no input."""
    tangent = tangent_at(innermost(output), dual_level)
    if tangent is None:
        if strict:
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
                "with strict=True."
            )
        return zeros_like(_primal(output, dual_level))
    return _wrapped_like(tangent, output)


def _primal(output: Any, dual_level: int) -> Any:
    bottom = without_tangents(innermost(output), dual_level)
    return _wrapped_like(bottom, output)


def _clean_aux(aux: Any, dual_level: int) -> Any:
    leaves, spec = tree_flatten(aux)
    return tree_unflatten([_primal(v, dual_level) if isinstance(v, Tensor) else v for v in leaves], spec)


def _wrapped_like(bottom: Any, like: Any) -> Any:
    return wrapped_at(bottom, places_of(like))
