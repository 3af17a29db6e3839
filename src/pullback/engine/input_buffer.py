"""InputBuffer: the gradients that have arrived at a node, summed per input.

# Note [Owned gradients]
An array that arrives may be somebody else's (a saved value, the gradient of a sibling, the user's argument). Only an
array that a rule computed afresh, or a sum made here, is owned; only an owned one is added to in place, becomes a
leaf's `.grad` without a copy, or is overwritten by the gradients that a node computes from it (`Node.apply`), where a
compiled kernel can: reading and writing the same memory takes two thirds of the time of writing elsewhere.
`owned` counts: 0 for an array that is not owned, and one more than the additions that were made in it, which become the
version of a `.grad` that takes the array over, as in PyTorch.
Negative numbers stand for arrays that are not owned, and that hooks, captures and custom Functions see in the form that
PyTorch gives them: where it has a number expanded to a shape (the gradient of a sum), small arrays are filled here,
which takes kernels less time (FILLED); where it has divided all elements (that of a mean), ours repeat one (IN_FULL).
"""

from __future__ import annotations

from typing import Any

from pullback.graph.accumulate_grad import FILLED as FILLED
from pullback.graph.accumulate_grad import IN_FULL as IN_FULL
from pullback.graph.partial_gradient import PartialGradient
from pullback.kernels.accumulation import add_in_place
from pullback.kernels.arithmetic import add


class InputBuffer:
    """One slot per input of a node."""

    __slots__ = ("grads", "owned", "with_parts")

    def __init__(self, size: int) -> None:
        self.grads: list[Any] = [None] * size
        self.owned: list[int] = [0] * size
        self.with_parts: int = -1
        """The slot to which a part was added last: zeros need not be added to its other elements again."""

    def add(self, index: int, grad: Any, owned: int) -> None:
        """Add one arrival to its slot: in place if the slot owns its array. See Note [Owned gradients]."""
        current = self.grads[index]
        if isinstance(grad, PartialGradient):
            if current is not None and self.owned[index] > 0 and _fits(grad, current):
                first = self.with_parts != index
                self.with_parts = index
                self.grads[index] = grad.add_to(current, first)
                self.owned[index] += 1
                return
            grad = grad.whole()
        if current is None:
            self.grads[index] = grad
            self.owned[index] = owned
        elif self.owned[index] > 0 and current.dtype == grad.dtype and current.shape == grad.shape:
            self.grads[index] = add_in_place(current, grad)
            self.owned[index] += 1
        elif owned > 0 and current.dtype == grad.dtype and current.shape == grad.shape:
            whole = current.base is None and self.owned[index] != FILLED
            self.grads[index] = add_in_place(grad, current)
            self.owned[index] = 2 if whole else 1  # PyTorch adds to the former one, in place where that is dense
        else:
            self.grads[index] = add(current, grad)
            self.owned[index] = 1

    def add_tensor(self, index: int, grad: Any, owned: int = False) -> None:
        """Add a gradient that is a Tensor, out of place."""
        current = self.grads[index]
        self.owned[index] = owned if current is None else True
        self.grads[index] = grad if current is None else current + grad


def _fits(grad: PartialGradient, current: Any) -> bool:
    return current.shape == grad.shape and current.dtype == grad.part.dtype
