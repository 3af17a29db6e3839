"""AdamW: Adam with weight decay apart from the gradient."""

from __future__ import annotations

from typing import Any

from pullback.optim.adam import AdamW, adam

__all__ = ["AdamW", "adamw"]


def adamw(*args: Any, **options: Any) -> None:
    """Do one step of AdamW on lists: `adam` with `decoupled_weight_decay`."""
    options["decoupled_weight_decay"] = True
    adam(*args, **options)
