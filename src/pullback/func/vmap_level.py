"""VmapLevel: one running `vmap`, which takes over the operations on its batched tensors.

# Note [Vmap levels]
A level is an interceptor (see Note [Interception]). It is offered every operation, passes on those that involve none of
its own tensors, and runs the others on whole batches by the operation's batching rule. While it does so only the levels
further out are on, so that nested vmaps take an operation apart one level at a time.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pullback.backend.logical_array import running
from pullback.func.batched_tensor import BatchedTensor, batched, batched_at, has_batched_tangent, without_level
from pullback.modes.interception import push_interceptor
from pullback.modes.switches import kept_switches, set_interceptors, switches
from pullback.tensor.tensor import Tensor

_next_number = itertools.count(1).__next__


@functools.cache
def _apply_rule() -> Callable[..., Any]:
    """`apply_rule`, imported once: an import statement in each call takes 0.7 microseconds."""
    from pullback.func.batching_rules import apply_rule  # lazy: rules are written with levels

    return apply_rule


class VmapLevel:
    """A running vmap: how many examples there are, and what random functions do. See Note [Vmap levels]."""

    carries_tangents = True
    """Whether the level stays on while those further out work: a tangent may be batched where its primal is not."""
    has_uniform: bool = False
    """Whether there are batches whose examples are the same. See Note [Uniform batches]."""
    loops: bool = True
    """Whether an operation without a batching rule runs example by example, with a warning; else it is refused."""

    def __init__(self, batch_size: int, randomness: str, *, is_transform: bool = True) -> None:
        self.batch_size = batch_size
        self.randomness = randomness
        self.number: int = max([level.number for level in active_levels()], default=0) + 1
        self.key = _next_number()
        self.open = True
        self.is_transform = is_transform
        self.depth = switches.transforms + 1

    def __call__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if switches.dual_level >= 0 and self.concerns((*args, *kwargs.values())):
            args = tuple([self._with_batched_primal(value) for value in args])
            kwargs = {name: self._with_batched_primal(value) for name, value in kwargs.items()}
        return _apply_rule()(self, function, args, kwargs)

    def _with_batched_primal(self, value: Any) -> Any:
        """A tensor, or those of a list, as one of this level if a tangent is batched at it."""
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return type(value)(self._with_batched_primal(item) for item in value)
        if isinstance(value, Tensor) and not self.owns(value) and has_batched_tangent(value, self):
            return self.wrap(self.to_physical(value))
        return value

    def owns(self, value: Any) -> bool:
        """Whether `value` is a tensor of this level."""
        return isinstance(value, BatchedTensor) and value._level is self

    def concerns(self, values: Any) -> bool:
        """Whether one of `values`, or of the lists among them, is a tensor of this level."""
        for value in values:
            if isinstance(value, BatchedTensor):
                if value._level is self:
                    return True
            elif isinstance(value, (list, tuple)) and self.concerns(value):
                return True
        return False

    def to_physical(self, tensor: Any) -> Any:
        """The whole batch; a tensor that is the same for all examples is expanded."""
        return without_level(tensor, self)

    def wrap(self, result: Any) -> Any:
        """Physical results as tensors of this level."""
        if isinstance(result, Tensor):
            return batched(result, self)
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return type(result)(*[self.wrap(item) for item in result])
        if isinstance(result, (tuple, list)):
            return type(result)(self.wrap(item) for item in result)
        return result

    def wrap_at(self, result: Any, dim: int) -> Any:
        """Results whose examples lie along dimension `dim`, as tensors of this level."""
        if isinstance(result, Tensor):
            return batched_at(result, dim, self)
        return type(result)([self.wrap_at(item, dim) for item in result])

    @contextmanager
    def running(self) -> Iterator[None]:
        """Take over operations inside of the block."""
        with kept_switches("interceptors", "transforms"):
            push_interceptor(self)
            switches.transforms += self.is_transform
            try:
                yield
            finally:
                self.open = False

    def again(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function composed of operations from inside of a rule, with this level on."""
        former = set_interceptors((*switches.interceptors, self))
        try:
            return function(*args, **kwargs)
        finally:
            set_interceptors(former)


def active_levels() -> list[VmapLevel]:
    """The vmaps that run in this thread, outermost first."""
    return [i for i in switches.interceptors if isinstance(i, VmapLevel)]


running.ask = staticmethod(lambda: bool(active_levels()))
