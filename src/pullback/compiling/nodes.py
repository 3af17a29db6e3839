"""CompiledFunctionBackward: the node of a compiled function, whose backward is a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.compiling.memory import laid_out
from pullback.errors import graph_freed
from pullback.graph.edge import Edges
from pullback.graph.node import Node
from pullback.graph.saved_tensor import stale
from pullback.tensor.tensor import new_tensor


class CompiledFunctionBackward(Node):
    """Runs the compiled backward; differentiably, by way of the function's own graph, recorded again."""

    __slots__ = ("__dict__",)
    kept: list[Any] | None = None
    versions: Sequence[tuple[Any, int]] = ()
    """Tensors whose memory is kept, with the version that they had."""
    run: Any = None
    gradients: Sequence[Any] = ()
    """The Values of the gradients that come in."""
    asked_by: Sequence[frozenset[int]] = ()
    """For each gradient that goes out, the gradients on which it depends: without any of these there is none."""
    again: Callable[..., Any] | None = None
    """Runs the function eagerly and gives the gradients of its inputs, recorded."""

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        if self.kept is None:
            raise graph_freed(self.name())
        for tensor, version in self.versions:
            if tensor._version != version:
                raise stale(tensor, version, self)
        given = [_prepared(grad, value) for grad, value in zip(grads, self.gradients, strict=True)]
        results: Sequence[Any] = self.run([*self.kept, *given])
        if any(grad is None for grad in grads):
            there = {number for number, grad in enumerate(grads) if grad is not None}
            return [grad if there & asked else None for grad, asked in zip(results, self.asked_by, strict=True)]
        return results

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        if self.kept is None:
            raise graph_freed(self.name())
        if self.again is None:
            raise RuntimeError(
                "torch.compile does not currently support double backward of a function that writes to tensors or draws "
                "random numbers: its forward would have to run again. Call the function itself where create_graph=True."
            )
        filled = [
            new_tensor(_prepared(None, v)) if g is None else g for g, v in zip(grads, self.gradients, strict=True)
        ]
        results: Sequence[Any] = self.again(filled)
        return results

    def release_saved_tensors(self) -> None:
        self.released = True
        self.kept = self.again = None
        self.versions = ()


def _prepared(grad: Any, value: Any) -> Any:
    """A gradient in the form that the program was recorded with; zeros where an output was not used."""
    if grad is None:
        return laid_out(0, value.shape, value.strides, value.dtype)
    if getattr(grad, "strides", None) != value.strides or grad.dtype != value.dtype or grad.shape != value.shape:
        return laid_out(grad, value.shape, value.strides, value.dtype)
    return grad


class CompiledFunctionInput(Node):
    """The place at which a recorded function begins: what arrives goes on to where the argument came from."""

    __slots__ = ("__dict__",)
    leave: Any = None
    """Called where a backward goes on from here, out of the function."""

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        if self.leave is not None:
            self.leave()
        return grads

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        if self.leave is not None:
            self.leave()
        return grads
