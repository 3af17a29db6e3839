"""autograd.grad and forward_ad under vmap: graph, cotangents and tangents may be batched at different levels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.autograd.differentiation import _as_tuple, _finish, _zeros_like, make_grads
from pullback.autograd.forward_ad import UnpackedDualTensor
from pullback.creation import zeros_like
from pullback.errors import NoGradientError
from pullback.func.batched_tensor import levels_of_batch, with_level
from pullback.func.batching_rules.table import rule
from pullback.func.jvp import make_dual as dual_of
from pullback.func.transform_level import pull_back
from pullback.func.vmap_level import VmapLevel
from pullback.graph.gradient_edge import GradientEdge
from pullback.graph.tangents import without_history
from pullback.modes.dual_level import current_dual_level


@rule("grad")
def grad(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Gradients of every example, or of every vector."""
    outputs, inputs, given = (None if a is None else _as_tuple(a) for a in args)
    return level.again(_gradients, outputs, inputs, given, kwargs)


def _gradients(outputs: tuple[Any, ...], inputs: tuple[Any, ...], given: Any, options: dict[str, Any]) -> Any:
    if options.get("is_grads_batched"):
        raise RuntimeError("vmap: grad(is_grads_batched=True) inside of vmap is not supported; nest vmap instead")
    for index, output in enumerate(outputs):
        if not isinstance(output, GradientEdge) and not output._requires_grad:
            raise NoGradientError(f"element {index} of tensors does not require grad and does not have a grad_fn")
        for x in inputs:
            if not set(levels_of_batch(output)) <= set(levels_of_batch(x)):
                raise NoGradientError(
                    f"element {index} of tensors does not require grad and does not have a grad_fn that leads to each "
                    "example's own input: it is batched, and an input is the same for all examples, whose gradient would be "
                    "the sum of the examples' gradients. Use pullback.func.grad inside of vmap, or grad outside of it."
                )
    create = bool(options.get("create_graph"))
    keep = options.get("retain_graph")
    cotangents = make_grads(outputs, given, is_grads_batched=False)
    found = pull_back(outputs, inputs, cotangents, create_graph=create, keep_graph=create if keep is None else keep)
    materialize = bool(options.get("materialize_grads"))
    allow_unused = options.get("allow_unused")
    if allow_unused is None:
        allow_unused = materialize
    results = _finish(found, inputs, (), allow_unused or materialize)
    filled = [_zeros_for(x) if r is None and materialize else r for r, x in zip(results, inputs, strict=True)]
    return tuple(filled if create else [_detached(r) for r in filled])


def _zeros_for(input: Any) -> Any:
    return _zeros_like(input, requires_grad=False) if isinstance(input, GradientEdge) else zeros_like(input)


def _detached(value: Any) -> Any:
    if value is None or not value._requires_grad:
        return value
    return value.detach() if hasattr(value, "_level") else without_history(value)


@rule("make_dual")
def make_dual(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A dual tensor, whose tangent may be batched where its primal is not."""
    dual_level = kwargs.get("level")
    return level.again(dual_of, *args, current_dual_level() if dual_level is None else dual_level)


@rule("unpack_dual")
def unpack_dual(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Primal and tangent of the whole batch."""
    primal, tangent = function(args[0]._physical, **kwargs)
    return UnpackedDualTensor(level.wrap(primal), None if tangent is None else with_level(tangent, level))
