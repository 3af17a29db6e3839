"""KeptGradients: a pass that only looks leaves every `.grad` as it is, also where a node runs a pass of its own inside."""

from __future__ import annotations

from typing import Any, Self

from pullback.modes.node_observer import NodeObserver


class KeptGradients(NodeObserver):
    """Gives leaves their gradients back when its block ends: reentrant checkpoints add to them in their backward."""

    def __init__(self) -> None:
        self._former: dict[int, tuple[Any, Any]] = {}

    def __enter__(self) -> Self:
        self.start_observing()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop_observing()
        for leaf, grad in self._former.values():
            leaf._grad = grad
        self._former.clear()

    def see_arrival(self, node: Any, grad: Any) -> None:
        """Put the leaf's gradient aside, so that nothing is added to it."""
        leaf = node.variable
        if id(leaf) not in self._former:
            self._former[id(leaf)] = leaf, leaf._grad
            leaf._grad = None
