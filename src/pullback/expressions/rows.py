"""Programs along one axis: map over the elements of a row, reduce a row to a number, map again.

Softmax is one: the row's maximum, the exponentials of what is below it, their sum, and each by the sum. A step reads the
operands' elements and the steps before it; a reduced step is one number for the whole row. `c_rows` prints them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pullback.expressions.tree import NUMBER, Expr, Load, walk


@dataclass(frozen=True)
class Map:
    """A value for every element of the row."""

    name: str
    value: Expr


@dataclass(frozen=True)
class Reduce:
    """One number for the row: the sum, product, maximum or minimum of the values of its elements; `wide`: in float64."""

    name: str
    how: str
    value: Expr
    wide: bool = False


RowStep: TypeAlias = "Map | Reduce"


@dataclass(frozen=True)
class RowProgram:
    """Steps, and the value of every element of the result, or of the row.

    Of the operands, `per_row` have one number for a row, and `along` one row for all rows. `others` are further results.
    Where one of the masks `requires` does not hold, the program does not serve.
    """

    steps: tuple[RowStep, ...]
    result: Expr
    per_row: frozenset[str] = frozenset()
    along: frozenset[str] = frozenset()
    others: tuple[Expr, ...] = ()
    requires: tuple[Expr, ...] = ()

    def names_of_rows(self) -> set[str]:
        """The operands and steps that are one number for a row."""
        names = set(self.per_row)
        elements = {n for v in (*[s.value for s in self.steps], self.result) for n in _arrays(v)} - names
        elements -= {step.name for step in self.steps}
        for step in self.steps:
            if isinstance(step, Reduce) or (isinstance(step, Map) and not _arrays(step.value) & elements):
                names.add(step.name)
            else:
                elements.add(step.name)
        return names

    def has_elements(self, value: Expr) -> bool:
        """Whether a value is another one for each element of the row."""
        return bool(_arrays(value) - self.names_of_rows())


def _arrays(value: Expr) -> set[str]:
    """The names that an expression reads, without numbers of the call."""
    return {part.name for part in walk(value) if isinstance(part, Load) and part.kind != NUMBER}
