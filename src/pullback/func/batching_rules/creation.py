"""New tensors in the shape of a batched one are batched too, so that they can be written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.func.batching_rules.table import rule
from pullback.func.vmap_level import VmapLevel


@rule("zeros_like ones_like empty_like full_like")
def like(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One for every example."""
    if level.concerns(args[1:]):
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor, the value to fill with. Use expand."
        )
    input = args[0]
    return level.wrap_at(function(input._value, *args[1:], **kwargs), input._dim)
