"""CompiledFunctionBackward: the node of a compiled function, whose backward is a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pullback.backend.array_module import ndarray
from pullback.compiling.memory import laid_out
from pullback.graph.edge import Edges
from pullback.graph.node import Node
from pullback.graph.saved_tensor import stale
from pullback.graph.source_lines import freed
from pullback.modes.determinism import alert_not_deterministic, are_deterministic_algorithms_enabled
from pullback.tensor.tensor import Tensor, new_tensor


class CompiledFunctionBackward(Node):
    """Runs the compiled backward; differentiably, by way of the function's own graph, recorded again."""

    __slots__ = ("__dict__",)
    tells_absent_gradients = False  # results have nodes of their own in eager execution
    kept: list[Any] | None = None
    """What the forward left; None in the place of what a pass that did not retain the graph has used."""
    versions: Sequence[tuple[int, Any, int]] = ()
    """Places in `kept`, with the tensors whose memory they are and the version that these had."""
    entry: Any = None
    """Has the runners: `backward_of` gives one for the gradients that come in."""
    used: Sequence[int] = ()
    """The places in `kept` that the last pass read."""
    again: Any = None
    """Runs the function eagerly and gives the gradients of its inputs, recorded."""

    def named_values(self) -> Iterator[tuple[str, Any]]:
        """What is kept, each by the operation that made it."""
        made = {result: call.kernel for call in self.entry.forward_program.calls for result in call.results}
        values = self.entry.backward_program.inputs
        for place, array in enumerate(self.kept or ()):
            if array is not None:
                yield f"result of {made[values[place]].rpartition('.')[2]}" if values[place] in made else "input", array

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        kept = self.kept
        if kept is None:
            raise freed(self)
        if are_deterministic_algorithms_enabled() and self._differ_in_layout(grads):
            if self.again is not None:
                return self._run_again(grads)
            alert_not_deterministic(
                "CompiledFunctionBackward, of a function that writes to tensors, for a gradient that is laid out in memory "
                "unlike the result,",
                "Compute the loss inside of the compiled function, or call .contiguous() on the gradient in a hook of the "
                "result.",
            )
        backward = self.entry.backward_of(grads)
        self._check_versions(backward.kept)
        given = [kept[place] for place in backward.kept]
        if any(array is None for array in given):
            raise freed(self)
        self.used = backward.kept
        self.fresh = backward.fresh  # type: ignore[misc]  # a fact of other nodes' classes is one of each program here
        given += [_prepared(grads[place], value) for place, value in backward.gradients]
        results: Sequence[Any] = backward.run(given)
        return results

    def _check_versions(self, places: Sequence[int]) -> None:
        """Refuse to read what was written over; what gradients of other results need may have been."""
        for place, tensor, version in self.versions:
            if tensor._version != version and place in places:
                raise stale(tensor, version, self)

    def _differ_in_layout(self, grads: Sequence[Any]) -> bool:
        """Whether a program may not have the bits of eager: the order of sums follows the memory of a gradient."""
        return any(
            isinstance(grad, ndarray) and grad.strides != value.strides and max(grad.shape) < grad.size
            for grad, value in zip(grads, self.entry.gradient_values, strict=True)
        )

    def _run_again(self, grads: Sequence[Any]) -> Sequence[Any]:
        given = [grad if grad is None or isinstance(grad, Tensor) else new_tensor(grad) for grad in grads]
        results = self._by_function(given, create_graph=False)
        return [None if result is None else result._array for result in results]

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        return self._by_function(grads, create_graph=True)

    def _by_function(self, grads: Sequence[Any], create_graph: bool) -> Sequence[Any]:
        if self.kept is None or (self.kept and all(array is None for array in self.kept)):
            raise freed(self)
        self.used = range(len(self.kept))
        self._check_versions(self.used)
        if self.again is None:
            raise RuntimeError(
                "torch.compile does not currently support double backward of a function that writes to tensors or draws "
                "random numbers: its forward would have to run again. Call the function itself where create_graph=True."
            )
        for tensor, version in self.again.versions:
            if tensor._version != version:
                raise stale(tensor, version, self)
        filled = [
            new_tensor(_prepared(None, value)) if grad is None else grad
            for grad, value in zip(grads, self.entry.gradient_values, strict=True)
        ]
        results: Sequence[Any] = self.again(filled, create_graph)
        return results

    def release_saved_tensors(self) -> None:
        if self.kept is None or len(self.used) == len(self.kept) > 0:
            self.released = True
            self.kept = self.again = None
            self.versions = ()
            return
        self.kept = [None if place in self.used else array for place, array in enumerate(self.kept)]


def _prepared(grad: Any, value: Any) -> Any:
    """A gradient in the form that the program was recorded with; zeros where an output was not used."""
    if grad is None:
        return laid_out(0, value.shape, value.strides, value.dtype, value.place)
    if getattr(grad, "strides", None) != value.strides or grad.dtype != value.dtype or grad.shape != value.shape:
        return laid_out(grad, value.shape, value.strides, value.dtype)
    return grad


class CompiledFunctionInput(Node):
    """The place at which a recorded function begins: what arrives goes on to where the argument came from."""

    __slots__ = ("__dict__",)
    leave: Any = None
    """Called where a backward goes on from here, out of the function."""

    def name(self) -> str:
        """That of the node that it stands for, which errors speak of."""
        edge = self.next_edges[0] if self.next_edges else None
        return super().name() if edge is None else edge[0].name()

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        if self.leave is not None:
            self.leave()
        return grads

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        if self.leave is not None:
            self.leave()
        return grads
