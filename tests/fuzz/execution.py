"""Runs a program on one library, statement by statement, and notes what can be seen of every tensor.

Of versions two things are noted: the version of a tensor after the statement that made it, and the writes since. The first
counts what operations and rules did to their own new results; the second is what the program did.
"""

from __future__ import annotations

import warnings
import weakref
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
    births = Births()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        steps = []
        for number, statement in enumerate(statements):
            step = run_statement(statement, names)
            step.integers_with_grad = _has_integers_with_grad(names, library)
            births.note(statement, names, library)
            if look_always or number == len(statements) - 1:
                step.state = look(names, library, births)
            steps.append(step)
    return steps


class Births:
    """After which statement each tensor was first there, and its version then."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], str, Any]] = {}

    def note(self, statement: str, names: dict[str, Any], library: Any) -> None:
        """Note the tensors and gradients that are new after a statement."""
        for tensor in [value for value in names.values() if isinstance(value, library.Tensor)]:
            for each in (tensor, tensor.grad):
                if each is not None and self._birth(each) is None:
                    self._known[id(each)] = weakref.ref(each), statement, _try(_version, each)

    def _birth(self, tensor: Any) -> tuple[str, Any] | None:
        reference, statement, version = self._known.get(id(tensor), (lambda: None, "", 0))
        return (statement, version) if reference() is tensor else None

    def versions(self, tensor: Any) -> dict[str, Any]:
        """The first version, with the statement that made the tensor, and the writes since."""
        statement, first = self._birth(tensor) or ("", 0)
        version = _try(_version, tensor)
        numbers = isinstance(first, int) and isinstance(version, int)
        return {"version": version - first if numbers else version, "first_version": f"{first}: {statement}"}


def _version(tensor: Any) -> int:
    return int(tensor._version)


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


def look(names: dict[str, Any], library: Any, births: Births) -> State:
    """What can be seen of every tensor that has a name."""
    tensors = {name: value for name, value in names.items() if isinstance(value, library.Tensor)}
    with library.no_grad():
        return {name: _look_at(tensor, tensors, births) for name, tensor in tensors.items()}


def _look_at(tensor: Any, tensors: dict[str, Any], births: Births) -> dict[str, Any]:
    seen = _fields(tensor, births)
    seen["base"] = next((n for n, t in tensors.items() if t is tensor._base), "hidden" if tensor._is_view() else None)
    grad = tensor.grad
    if grad is None:
        seen["grad"] = None
    else:
        named = next((n for n, t in tensors.items() if t is grad), None)
        seen["grad"] = {"named": named, **_fields(grad, births)}
    return seen


def _fields(tensor: Any, births: Births) -> dict[str, Any]:
    return {**{name: _try(read, tensor) for name, read in _FIELDS.items()}, **births.versions(tensor)}


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
    "is_view": lambda t: t._is_view(),
    "is_inference": lambda t: t.is_inference(),
    "requires_grad": lambda t: t.requires_grad,
    "grad_fn": lambda t: type(t.grad_fn).__name__,
    "output_nr": lambda t: t.output_nr,
    "is_leaf": lambda t: t.is_leaf,
    "retains_grad": lambda t: t.retains_grad,
}
