"""Parameters that learn nothing though a gradient arrives: a module does not know them, or no optimizer holds them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from pullback.graph.living_objects import living
from pullback.tensor.tensor import Tensor


def unregistered(module: Any) -> Iterator[tuple[str, str, Tensor]]:
    """The leaves in plain attributes and containers of a module: their names, what holds them, themselves.

    >>> from pullback import nn
    >>> net = nn.Module()
    >>> net.layers = [nn.Linear(1, 1)]
    >>> [(name, holder) for name, holder, _ in unregistered(net)]
    [('layers.0.weight', 'a plain list'), ('layers.0.bias', 'a plain list')]
    """
    known = {id(parameter) for parameter in module.parameters()}
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            if name in _OF_EVERY_MODULE:
                continue
            holder = "an attribute that is not an nn.Parameter"
            if isinstance(value, list | tuple | dict):
                holder = f"a plain {type(value).__name__}"
            for inner, leaf in _leaves_in(value):
                if id(leaf) not in known:
                    known.add(id(leaf))
                    yield ".".join([*filter(None, (path, name)), *inner]), holder, leaf


_OF_EVERY_MODULE = frozenset(("_parameters", "_buffers", "_modules"))


def _leaves_in(value: Any, depth: int = 2) -> Iterator[tuple[list[str], Tensor]]:
    if isinstance(value, Tensor):
        if value.requires_grad and value.is_leaf:
            yield [], value
    elif isinstance(value, list | tuple | dict) and depth:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            for inner, leaf in _leaves_in(item, depth - 1):
                yield [str(key), *inner], leaf
    elif depth < 2 and hasattr(value, "named_parameters"):  # in a container; as an attribute it would be registered
        for name, leaf in value.named_parameters():
            yield [name], leaf


def held_by_optimizers(parameters: list[Tensor]) -> set[int] | None:
    """The identities of what optimizers hold; None where no optimizer seems to be meant for the parameters."""
    optimizers = [[leaf for _, leaf in of_optimizer(optimizer)] for optimizer in _optimizers()]
    held = {id(leaf) for leaves in optimizers for leaf in leaves}
    if any(id(parameter) in held for parameter in parameters):
        return held
    shapes = [parameter.shape for parameter in parameters]
    is_made_again = any(  # a module of the same build, which the optimizer was made for
        [leaf.shape for leaf in leaves] == shapes and all(leaf.grad is None for leaf in leaves) for leaves in optimizers
    )
    return held if is_made_again else None


def of_optimizer(optimizer: Any) -> Iterator[tuple[str, Tensor]]:
    """What an optimizer holds, by the names that it was given, or by places."""
    for number, group in enumerate(optimizer.param_groups):
        names = group.get("param_names")
        for place, leaf in enumerate(group["params"]):
            yield names[place] if names else f"param_groups[{number}]['params'][{place}]", leaf


def _optimizers() -> Iterator[Any]:
    module = sys.modules.get("pullback.optim.optimizer")  # where it was never imported, there is none
    return iter(()) if module is None else living(module.Optimizer)
