"""A backend of the user's: it is given the operations of a function as an `fx.GraphModule`; what it returns runs instead.

What a function depends on is found as for any compiled function (capturing.py), and so are its pieces; the graph is that of
`make_fx`. A graph shows neither `no_grad` blocks nor the backward of custom Functions: one that computes other values or
gradients than the function does is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pullback.autograd import grad
from pullback.compiling.capture import Capture
from pullback.compiling.matching import Matching
from pullback.compiling.random_streams import random_states, set_random_states
from pullback.creation import arange
from pullback.errors import BackendCompilerFailed
from pullback.tensor.tensor import Tensor
from pullback.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from pullback.fx.graph_module import GraphModule

Backend = Callable[["GraphModule", list[Tensor]], Callable[..., Any]]


class CannotTrace(Exception):
    """Why a function is not handed to a backend."""


class BackendEntry:
    """What a backend made of a function for one kind of arguments."""

    recorded_as: Any = None

    def __init__(self, made: Capture, function: Callable[..., Any], backend: Backend) -> None:
        if made.grads or made.is_freed:
            raise CannotTrace("the function runs a backward, which is left to Python")
        if any(given.had_hooks for given in made.inputs):
            raise CannotTrace("a tensor that the function reads has hooks")
        self._function = function
        self._backend = backend
        self._written = [place for place, _ in made.program.writes]
        self._matching = Matching(made)
        self._run: Callable[..., Any] | None = None
        self._spec: TreeSpec | None = None

    def match(self, leaves: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
        """The tensors and arrays of a call that the backend may serve; None if it may not."""
        return self._matching.match(leaves)

    def run(self, leaves: Sequence[Any], args: Any, kwargs: Any, tensors: list[Any], arrays: list[Any]) -> Any:
        """Run what the backend made, which is made in the first call."""
        if self._run is None:
            self.make(args, kwargs, tensors)
        assert self._run is not None
        assert self._spec is not None
        return tree_unflatten(list(self._run(*tensors)), self._spec)

    def make(self, args: Any, kwargs: Any, tensors: list[Any]) -> None:
        """Trace the function and call the backend. What running the function does to memory is undone."""
        from pullback.fx.experimental.proxy_tensor import trace_leaves  # lazy: half of what compile loads otherwise
        from pullback.testing import assert_close

        def call(_: Any = None) -> Any:
            return self._function(*args, **kwargs)

        if any(tensors[place].requires_grad for place in self._written):
            raise CannotTrace("a tensor that requires grad is written to")
        names = [f"input_{number}" for number in range(len(tensors))]
        try:
            graph, self._spec = self._undone(lambda: trace_leaves(call, names, tensors), tensors)
            expected = self._undone(lambda: _outcome(call(), tensors), tensors)
            actual = self._undone(lambda: _outcome(graph(*tensors), tensors), tensors)
            assert_close(actual, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
        except Exception as error:
            raise CannotTrace(f"its graph does not do what it does ({type(error).__name__}: {error})") from error
        try:
            self._run = self._backend(graph, list(tensors))
        except Exception as error:
            inner = getattr(self._backend, "func", self._backend)
            name = getattr(inner, "__name__", type(inner).__name__)
            failed = BackendCompilerFailed(f"backend={name!r} raised:\n{type(error).__name__}: {error}")
            failed.inner_exception = error
            raise failed from error

    def _undone(self, run: Callable[[], Any], tensors: list[Any]) -> Any:
        state, before = random_states(), [tensors[place]._array.copy() for place in self._written]
        try:
            return run()
        finally:
            set_random_states(state)
            for place, array in zip(self._written, before, strict=True):
                tensors[place]._array[...] = array

    def writes(self) -> bool:
        """Whether a call writes to tensors that were there before it."""
        return bool(self._written)


def _outcome(result: Any, tensors: list[Any]) -> tuple[list[Any], list[Any]]:
    """What a call computed, with gradients for some value, and what its tensors hold now."""
    leaves = tree_flatten(result)[0]
    found = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    values = [leaf for leaf in leaves if isinstance(leaf, (int, float, complex))]
    roots, wanted = [x for x in found if x.requires_grad], [x for x in tensors if x.requires_grad]
    seeds = [(arange(x.numel()) % 7 + 1).reshape(x.shape).to(x.dtype) for x in roots]
    grads = grad(roots, wanted, seeds, allow_unused=True, materialize_grads=True) if roots and wanted else ()
    flags = [float(x.requires_grad) for x in found]
    return [x.detach().clone() for x in (*found, *tensors)] + list(grads), values + flags
