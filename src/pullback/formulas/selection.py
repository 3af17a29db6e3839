"""Gradients that a condition lets pass, and dependencies with the gradient zero."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.graph.renamed_node import renamed
from pullback.tensor.tensor import Tensor


@declare(exact=True, same_values=True, twin="recorded")
def depending_on(input: Any, other: Any, name: str = "") -> Any:
    """`input`, which in the graph depends on `other` too, with the gradient zero; `name` is that of the node."""
    result = F.add_dependency(input, other)
    return F.called(result, "AddDependencyBackward0", name) if name else result


def called(result: Any, own: str, name: str) -> Any:
    """A tensor whose node, called `own`, has another name from now on."""
    if type(result) is Tensor and result._edge is not None and result._edge[0].name() == own:
        result._edge = (renamed(result._edge[0], name), 0)
    return result


@declare(fresh=True, exact=True)
def drop_where(condition: Any, grad: Any) -> Any:
    """Zero where `condition` is true, `grad` elsewhere."""
    return F.masked_fill(grad, condition, 0)


@declare(fresh=True, exact=True)
def keep_where(condition: Any, grad: Any) -> Any:
    """`grad` where `condition` is true, zero elsewhere."""
    return F.where(condition, grad, 0)
