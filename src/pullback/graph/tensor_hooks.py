"""Hooks that users register on tensors: where they are kept and how `retain_grad` works."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from pullback.backend.layout import contiguous_format
from pullback.graph.removable_handle import RemovableHandle
from pullback.tensor.tensor import Tensor, _Graph


def add_hook(hooks: Any, hook: Callable[..., Any]) -> Any:
    """Add `hook` to an ordered dict and return the handle that removes it."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_hook(tensor: Tensor, hook: Callable[[Any], Any]) -> Any:
    """Register a hook: a leaf's stays with the tensor, a non-leaf's with the value, that is, with its node."""
    edge = tensor._gradient_edge()
    if edge is None:
        extra = tensor._require_extra()
        if extra.hooks is None:
            extra.hooks = OrderedDict()
        return add_hook(extra.hooks, hook)
    hooks = edge[0].require_extra().tensor_hooks.setdefault(edge[1], OrderedDict())
    return add_hook(hooks, hook)


def retain_grad(tensor: Tensor, enabled: bool = True) -> None:
    """Keep the gradient of a non-leaf by a hook that runs last and holds the tensor weakly. With False, stop that."""
    node, output_nr = tensor._gradient_edge()
    if not enabled:
        tensor._require_extra().retains_grad = False
        tensor._grad = None
        node.require_extra().retain_hooks.pop(output_nr, None)
        return
    reference = weakref.ref(tensor)

    def keep(grad: Any) -> None:
        kept = reference()
        if kept is None or grad is None:
            return
        current = kept._grad
        kept._grad = grad.clone(memory_format=contiguous_format) if current is None else current + grad

    tensor._require_extra().retains_grad = True
    node.require_extra().retain_hooks[output_nr] = keep


_Graph.register_hook = staticmethod(register_hook)
_Graph.retain_grad = staticmethod(retain_grad)
_Graph.add_hook = staticmethod(add_hook)
