"""Batching rules: how each operation runs on a whole batch. A file per family; `table.py` explains their form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from pullback.func.batching_rules.in_place import in_place_rule, out_of_place, out_rule
from pullback.func.batching_rules.loop import loop
from pullback.func.batching_rules.random import random_rule
from pullback.func.batching_rules.structures import rule_of_structure
from pullback.func.batching_rules.table import RULES, Rule
from pullback.func.vmap_level import VmapLevel
from pullback.generated.registry import OPERATIONS


def apply_rule(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operation on the whole batch; NotImplemented if no tensor of the level is involved."""
    found = RULES.get(getattr(function, "__name__", "")) or _find_rule(function)
    if found is random_rule:
        return random_rule(level, function, args, kwargs)
    if not level.concerns((*args, *kwargs.values())):
        return NotImplemented
    if "out" in kwargs:
        kwargs = dict(kwargs)
        out = kwargs.pop("out")
        if out is not None:
            return out_rule(level, function, args, kwargs, out)
    result = found(level, function, args, kwargs)
    if level.has_uniform:
        _follow_uniform(level, (*args, *kwargs.values()), result)
    return result


def _follow_uniform(level: VmapLevel, arguments: tuple[Any, ...], result: Any) -> None:
    """Note whether the results are the same for all examples. See Note [Uniform batches]."""
    inputs = _batches(level, arguments)
    if all(t._uniform for t in inputs):
        for tensor in _batches(level, (result,)):
            tensor._uniform = True
    elif result is None or any(result is t for t in inputs):  # written to: views of it may have become different
        level.has_uniform = False


def _batches(level: VmapLevel, values: Iterable[Any]) -> list[Any]:
    """The tensors of the level among `values` and what these hold."""
    found = []
    for value in values:
        if level.owns(value):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _batches(level, value)
        elif isinstance(value, dict):
            found += _batches(level, value.values())
    return found


def _find_rule(function: Callable[..., Any]) -> Rule:
    """The rule of an operation without one of its own, from what its declaration says. It is found once."""
    name = getattr(function, "__name__", "")
    operation = OPERATIONS.get(name)
    if operation is not None:
        RULES[name] = random_rule if operation.draws else rule_of_structure(operation.structure)
        return RULES[name]
    structure = getattr(function, "structure", None)
    if structure is not None:
        return rule_of_structure(structure)
    if hasattr(function, "draws"):
        return random_rule
    if hasattr(function, "function"):
        return custom_function.rule_of(function) or loop
    return in_place_rule if out_of_place(function) is not None else loop
