"""Batching rules: how each operation runs on a whole batch. A file per family; `table.py` explains their form."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from pullback.func.batching_rules import (  # noqa: F401  (each registers its rules)
    along_dims,
    autograd_grad,
    composed,
    convolutions,
    creation,
    custom_function,
    indexing,
    joining,
    losses,
    matrices,
    matrix_products,
    normalization,
    planes,
    random,
    scattering,
    shape,
    spectra,
)
from pullback.func.batching_rules.elementwise import ELEMENTWISE, elementwise
from pullback.func.batching_rules.in_place import in_place_rule, out_rule
from pullback.func.batching_rules.loop import loop
from pullback.func.batching_rules.random import RANDOM, random_rule
from pullback.func.batching_rules.table import RULES
from pullback.func.vmap_level import VmapLevel
from pullback.generated.registry import OPERATIONS


def apply_rule(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operation on the whole batch; NotImplemented if no tensor of the level is involved."""
    name = getattr(function, "__name__", "")
    if name in RANDOM:
        return random_rule(level, function, args, kwargs)
    if not level.concerns((*args, *kwargs.values())):
        return NotImplemented
    if "out" in kwargs:
        kwargs = dict(kwargs)
        out = kwargs.pop("out")
        if out is not None:
            return out_rule(level, function, args, kwargs, out)
    found = RULES.get(name)
    if found is None and hasattr(function, "function"):
        found = custom_function.rule_of(function)
    if found is not None:
        return found(level, function, args, kwargs)
    if name in ELEMENTWISE:
        return elementwise(level, function, args, kwargs)
    base = out_of_place(function)
    if base is not None:
        return in_place_rule(level, function, base, args, kwargs)
    return loop(level, function, args, kwargs)


def out_of_place(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function that an in-place one is made from."""
    name = getattr(function, "__name__", "")
    if not name.endswith("_") or name.endswith("__"):
        return None
    made_from = getattr(function, "out_of_place", None)
    if made_from is not None:
        return made_from
    return getattr(sys.modules[function.__module__], name[:-1], None)


def has_rule(name: str) -> bool:
    """Whether the operation runs on whole batches, rather than example by example."""
    return name in RULES or name in ELEMENTWISE or (name in OPERATIONS and name in RANDOM)
