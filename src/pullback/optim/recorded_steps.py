"""Optimizers' steps on Tensors, recorded: the in-place text of kernels/optimizer_steps.py, run on cells.

A step writes into arrays; Tensors that carry gradients must not be written to. So each array of a row is a `Cell`, and what
the text does in place gives its cell a new value. See Note [One step, two roads].
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from functools import cache
from types import FunctionType
from typing import Any

from pullback import functions
from pullback.creation import full_like
from pullback.kernels import optimizer_steps


class Cell:
    """What an array of a step holds by now: a Tensor."""

    def __init__(self, value: Any, compared: Any = None) -> None:
        self.value = value
        self.compared = compared

    def __neg__(self) -> Cell:
        return Cell(-self.value)

    def __setitem__(self, key: Any, value: Any) -> None:
        # As in PyTorch, no gradient flows through SGD's first momentum. What it does flow through is `np.copyto`.
        self.value = value.value.detach() if isinstance(value, Cell) else full_like(self.value, value)


def _held(value: Any) -> Any:
    return value.value if isinstance(value, Cell) else value


def _on_cells(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Tensors as one of cells, whose result goes into the cell `out` or into a new one."""

    def call(*operands: Any, out: Cell | None = None) -> Cell:
        result = function(*[_held(operand) for operand in operands])
        if out is None:
            return Cell(result)
        out.value = result
        return out

    return call


def _in_place(function: Callable[..., Any]) -> Callable[[Cell, Any], Cell]:
    def assign(cell: Cell, other: Any) -> Cell:
        cell.value = function(cell.value, _held(other))
        return cell

    return assign


def _comparing(function: Callable[..., Any]) -> Callable[[Cell, Any], Cell]:
    return lambda cell, other: Cell(function(cell.value, _held(other)), cell.value)


def _copy_into(target: Cell, source: Any, where: Cell | None = None) -> None:
    if where is None:
        target.value = _held(source)
    else:
        # What was compared has a gradient, of zeros: PyTorch's steps multiply by a sign.
        target.value = functions.where(where.value, _held(source), target.value) + functions.sign(where.compared) * 0


for _name in ("mul", "add", "sub", "truediv"):
    setattr(Cell, f"__{_name}__", _on_cells(getattr(operator, _name)))
    setattr(Cell, f"__i{_name}__", _in_place(getattr(operator, _name)))
for _name in ("lt", "gt"):
    setattr(Cell, f"__{_name}__", _comparing(getattr(operator, _name)))


class _NumpyOnCells:
    """What `np` means to a step on cells. PyTorch has NumPy's functions under their names."""

    copyto = staticmethod(_copy_into)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return _on_cells(getattr(functions, name))


@cache
def _functions_on_cells() -> dict[str, Any]:
    found: dict[str, Any] = {"np": _NumpyOnCells()}
    for name, value in vars(optimizer_steps).items():
        function = inspect.unwrap(value) if callable(value) else None
        if isinstance(function, FunctionType) and function.__module__ == optimizer_steps.__name__:
            copy = found[name] = FunctionType(function.__code__, found, name, function.__defaults__)
            copy.__kwdefaults__ = function.__kwdefaults__
    return found


def run_recorded(kernel: Any, row: Sequence[Any], **numbers: Any) -> None:
    """Run the text of a step on a row of cells."""
    _functions_on_cells()[inspect.unwrap(kernel).__name__](*row, **numbers)
