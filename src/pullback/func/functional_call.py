"""Modules as functions of their parameters: functional_call, stack_module_state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pullback import functions
from pullback.tensor.tensor import Tensor


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the given tensors in place of its parameters and buffers.

    >>> import pullback
    >>> layer = pullback.nn.Linear(2, 1, bias=False)
    >>> functional_call(layer, {"weight": pullback.ones(1, 2)}, pullback.ones(2))
    tensor([2.])
    """
    given = _merged(parameter_and_buffer_dicts)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, given, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


def _merged(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for d in dicts for name in d]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for d in dicts for name, value in d.items()}


@contextmanager
def _replaced(module: Any, given: dict[str, Any], tie_weights: bool, strict: bool) -> Iterator[None]:
    """The module with other tensors inside of the block; what forward assigns goes back to `given`."""
    tensors = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    values = _with_tied(tensors, given) if tie_weights else dict(given)
    for value in values.values():
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"{value} is not an instance of torch.Tensor: it is given in place of one of the module's")
    if strict:
        _check_strict(module, tensors, values)
    places = {name: _place(module, name) for name in values}
    former: dict[str, Any] = {}
    try:
        for name, (owner, attribute) in places.items():
            former[name] = _swap(owner, attribute, values[name])
        yield
    finally:
        for name in reversed(list(former)):
            owner, attribute = places[name]
            current = _swap(owner, attribute, former[name])
            if name in given and isinstance(current, Tensor):
                given[name] = current


def _with_tied(tensors: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Every name of a tensor that is known under several gets the tensor that is given for one of them."""
    values = dict(given)
    for name, value in given.items():
        original = tensors.get(name)
        for other, tensor in tensors.items():
            if other == name or original is None or tensor is not original:
                continue
            if other in given and given[other] is not value:
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted((name, other))}, which are tied. Consider using "
                    "tie_weights=False"
                )
            values[other] = value
    return values


def _check_strict(module: Any, tensors: dict[str, Any], values: dict[str, Any]) -> None:
    groups = {
        "Unexpected": sorted(name for name in values if name not in tensors),
        "Missing": sorted(name for name in tensors if name not in values),
    }
    parts = [f"\n\t{kind} key(s): {', '.join(map(repr, names))}." for kind, names in groups.items() if names]
    if parts:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:{''.join(parts)}")


def _place(module: Any, name: str) -> tuple[Any, str]:
    *path, attribute = name.split(".")
    owner = module
    for part in path:
        owner = getattr(owner, part)
    return owner, attribute


_ABSENT = object()


def _swap(owner: Any, attribute: str, value: Any) -> Any:
    """Put a tensor where a parameter, buffer or attribute is, and return what was there."""
    for kept in (owner._parameters, owner._buffers):
        if attribute in kept:
            former = kept[attribute]
            kept[attribute] = value
            return former
    former = owner.__dict__.get(attribute, _ABSENT)
    if value is _ABSENT:
        owner.__dict__.pop(attribute, None)
    else:
        owner.__dict__[attribute] = value
    return former


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of models of one architecture, stacked, for an ensemble under `vmap`.

    >>> import pullback
    >>> params, buffers = stack_module_state([pullback.nn.Linear(2, 3) for _ in range(4)])
    >>> params["weight"].shape
    pullback.Size([4, 3, 2])
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    kind = type(models[0])
    if not all(type(m) is kind for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = _stacked([dict(m.named_parameters()) for m in models])
    return parameters, _stacked([dict(m.named_buffers()) for m in models])


def _stacked(states: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: _stack(name, [state[name] for state in states]) for name in states[0]}


def _stack(name: str, tensors: list[Any]) -> Any:
    """Tensors in one; a leaf if they are leaves."""
    wanted = [t._requires_grad for t in tensors]
    if all(wanted) or not any(wanted):
        if all(t.is_leaf for t in tensors):
            return functions.stack([t.detach() for t in tensors], 0).requires_grad_(tensors[0]._requires_grad)
        return functions.stack(tensors, 0)
    raise RuntimeError(
        f"Expected {name} from each model to have the same .requires_grad: freeze it in all of them, or in none."
    )
