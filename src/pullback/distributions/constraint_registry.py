"""Finds a transform from unconstrained space to a constraint: `biject_to` a bijection, `transform_to` a cheap one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pullback.distributions import constraints, transforms
from pullback.distributions.constraints import Constraint
from pullback.distributions.transforms import Transform
from pullback.distributions.utils import is_number

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """A table of factories, one for each type of constraint."""

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Factory] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Register a factory for a type of constraint (or for the type of a given one); also a decorator.

        >>> from pullback.distributions import constraints, transform_to
        >>> transform_to(constraints.unit_interval)
        SigmoidTransform()
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """Return a transform whose codomain is the constraint."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()
_REGISTRIES = (biject_to, transform_to)


def _register_in_both(factory: Callable[[ConstraintRegistry, Any], Transform], *kinds: Any) -> None:
    for registry in _REGISTRIES:
        for kind in kinds:
            registry.register(kind, partial(factory, registry))


def _to_independent(registry: ConstraintRegistry, constraint: Any) -> Transform:
    base = registry(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


def _to_greater_than(registry: ConstraintRegistry, constraint: Any) -> Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


def _to_less_than(registry: ConstraintRegistry, constraint: Any) -> Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


def _to_interval(registry: ConstraintRegistry, constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if is_number(low) and low == 0 and is_number(high) and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def _to_cat(registry: ConstraintRegistry, constraint: Any) -> Transform:
    return transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)


def _to_stack(registry: ConstraintRegistry, constraint: Any) -> Transform:
    return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


_register_in_both(lambda registry, constraint: transforms.identity_transform, constraints.real)
_register_in_both(_to_independent, constraints.independent)
_register_in_both(_to_greater_than, constraints.positive, constraints.nonnegative)
_register_in_both(_to_less_than, constraints.less_than)
_register_in_both(_to_interval, constraints.interval, constraints.half_open_interval)
_register_in_both(lambda registry, constraint: transforms.CorrCholeskyTransform(), constraints.corr_cholesky)
_register_in_both(_to_cat, constraints.cat)
_register_in_both(_to_stack, constraints.stack)
biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform())
for _kind in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_kind, lambda constraint: transforms.PositiveDefiniteTransform())
