"""Runs a program on one library, statement by statement, and notes what can be seen of every tensor."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

PRELUDE = """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        ctx.saved_tensors
        return grad * 2


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    @staticmethod
    def backward(ctx, grad):
        return grad * 3
"""


@cache
def names_for(library: Any) -> dict[str, Any]:
    """The names that a program finds: the library, and the Functions of the prelude."""
    names: dict[str, Any] = {"torch": library, "__name__": "fuzz"}
    exec(PRELUDE, names)
    return names


@lru_cache(1000)
def compiled(statement: str) -> Any:
    """The statement as code: three runs share it."""
    return compile(statement, "<statement>", "exec")


State = dict[str, dict[str, Any]]


@dataclass
class Step:
    """What one statement did: the classes of what it raised, its message, and what all tensors look like then."""

    raised: list[str]
    message: str = ""
    state: State = field(default_factory=dict)
    integers_with_grad: bool = False
    """Whether an integer tensor requires grad by now, looked at or not."""


def run(library: Any, statements: Sequence[str], look_always: bool) -> list[Step]:
    """Run a program; tensors are looked at after every statement, or after the last alone (looking renews views)."""
    names = dict(names_for(library))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        steps = []
        for number, statement in enumerate(statements):
            step = run_statement(statement, names)
            step.integers_with_grad = _has_integers_with_grad(names, library)
            if look_always or number == len(statements) - 1:
                step.state = look(names, library)
            steps.append(step)
    return steps


def _has_integers_with_grad(names: dict[str, Any], library: Any) -> bool:
    tensors = [value for value in names.values() if isinstance(value, library.Tensor)]
    return any(t.requires_grad and not t.is_floating_point() and not t.is_complex() for t in tensors)


def run_statement(statement: str, names: dict[str, Any]) -> Step:
    """Run one statement in these names."""
    try:
        exec(compiled(statement), names)
    except Exception as error:
        return Step([base.__name__ for base in type(error).__mro__], str(error))
    return Step([])


def look(names: dict[str, Any], library: Any) -> State:
    """What can be seen of every tensor that has a name."""
    tensors = {name: value for name, value in names.items() if isinstance(value, library.Tensor)}
    with library.no_grad():
        return {name: _look_at(tensor, tensors) for name, tensor in tensors.items()}


def _look_at(tensor: Any, tensors: dict[str, Any]) -> dict[str, Any]:
    seen = {name: _try(read, tensor) for name, read in _FIELDS.items()}
    seen["base"] = next((n for n, t in tensors.items() if t is tensor._base), "hidden" if tensor._is_view() else None)
    grad = tensor.grad
    if grad is None:
        seen["grad"] = None
    else:
        named = next((n for n, t in tensors.items() if t is grad), None)
        seen["grad"] = {"named": named, **{name: _try(read, grad) for name, read in _FIELDS.items()}}
    return seen


def _try(read: Callable[[Any], Any], tensor: Any) -> Any:
    try:
        return read(tensor)
    except Exception as error:
        return f"raises {next(b.__name__ for b in type(error).__mro__ if b.__module__ == 'builtins')}"


def _values(tensor: Any) -> Any:
    plain = tensor.detach()
    if plain.is_complex():
        return [[v.real, v.imag] for v in plain.reshape(-1).tolist()]
    return plain.reshape(-1).tolist()


_FIELDS: dict[str, Callable[[Any], Any]] = {
    "dtype": lambda t: str(t.dtype).rpartition(".")[2],
    "shape": lambda t: list(t.shape),
    "stride": lambda t: list(t.stride()),
    "offset": lambda t: t.storage_offset(),
    "values": _values,
    "version": lambda t: t._version,
    "is_view": lambda t: t._is_view(),
    "is_inference": lambda t: t.is_inference(),
    "requires_grad": lambda t: t.requires_grad,
    "grad_fn": lambda t: type(t.grad_fn).__name__,
    "output_nr": lambda t: t.output_nr,
    "is_leaf": lambda t: t.is_leaf,
    "retains_grad": lambda t: t.retains_grad,
}
