"""Views that a tensor becomes itself (`t_`, `squeeze_`), as dispatch modes see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.backend.wrapper_array import WrapperArray
from pullback.dispatch.calling import call, dispatching_types
from pullback.dispatch.lowering import lower
from pullback.functions import view_copies
from pullback.graph.history import check_in_place
from pullback.graph.in_place import alias_of
from pullback.graph.renamed_node import renamed
from pullback.modes.interception import set_dispatch_modes
from pullback.modes.switches import switches


def view_in_place(name: str, function: Callable[..., Any], input: Any, *args: Any) -> Any:
    """Let modes and classes make `input` a view of what it was, and record the view's node, called `name`."""
    records = input._requires_grad and switches.records
    check_in_place(input, function.__name__, records=records)
    lowered = lower(getattr(view_copies, f"{function.__name__}_"), (input, *args), {})
    if lowered is None or (records and dispatching_types((input,))):
        return _refused(input, function.__name__)
    edge = _recorded(function, input, args) if records else None
    call(*lowered)
    if edge is not None:
        view_copies.set_view_edge(input, (renamed(edge[0], name), edge[1]), lambda tensor: function(tensor, *args))
    return input


def _recorded(function: Callable[..., Any], input: Any, args: tuple[Any, ...]) -> Any:
    """The edge of the view, which nobody is shown."""
    modes = set_dispatch_modes(())
    try:
        return function(alias_of(input), *args)._gradient_edge()
    finally:
        set_dispatch_modes(modes)


def _refused(input: Any, name: str) -> Any:
    """NotImplemented, so that pullback's own function runs, where the tensor has values."""
    if type(input._array) is WrapperArray:
        raise NotImplementedError(
            f"{name}_: a {type(input).__name__} without values of its own cannot become its own view here. Use {name}()."
        )
    return NotImplemented
