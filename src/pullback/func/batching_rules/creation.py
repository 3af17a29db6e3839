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
    return level.wrap(function(*[a._physical if level.owns(a) else a for a in args], **kwargs))
