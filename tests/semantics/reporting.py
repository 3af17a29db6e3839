"""Running a row on a module and writing down what it reports, in a form that can be compared."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Row = Callable[[Any, "Report"], None]


class Report:
    """What a row saw. Called with values; tensors are written as dtype, shape and rounded values."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.lines: list[str] = []

    def __call__(self, *values: Any) -> None:
        self.lines.append(" | ".join(self._text(v) for v in values))

    @contextmanager
    def catch(self, phrase: str = "") -> Iterator[None]:
        """Report the error of a block: its type (one of Python's own) and whether it has the phrase."""
        try:
            yield
        except Exception as error:
            kind = next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
            message = str(error).replace("pullback.", "torch.")
            self.lines.append(f"{kind}: {phrase if phrase in message else message}")
        else:
            self.lines.append("no error")

    @contextmanager
    def warned(self, phrase: str) -> Iterator[None]:
        """Report whether a block warns with the phrase, and with which category."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        hits = [w for w in caught if phrase in str(w.message)]
        self.lines.append(f"{hits[0].category.__name__}: {phrase}" if hits else f"no warning: {phrase}")

    def _text(self, value: Any) -> str:
        if isinstance(value, self.torch.Tensor):
            plain = value.detach()
            dtype = str(plain.dtype).split(".")[-1]
            try:
                numbers = plain.tolist()
            except RuntimeError:  # PyTorch's zeros that have no memory yet
                numbers = (plain + self.torch.zeros(plain.shape)).tolist()
            return f"{dtype}{list(plain.shape)} {self._numbers(numbers)}"
        if isinstance(value, (list, tuple)):
            return "(" + ", ".join(self._text(v) for v in value) + ")"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k}: {self._text(v)}" for k, v in value.items()) + "}"
        if isinstance(value, float):
            return self._numbers(value)
        return re.sub(r"0x[0-9a-f]+", "0x", str(value)).replace("pullback.", "torch.")

    def _numbers(self, values: Any) -> str:
        if isinstance(values, list):
            return "[" + ", ".join(self._numbers(v) for v in values) + "]"
        if isinstance(values, float):
            return f"{values:.5g}"
        if isinstance(values, complex):
            return f"({values.real:.5g}{values.imag:+.5g}j)"
        return str(values)


def all_rows() -> dict[str, Row]:
    """Every row by name, over all files."""
    rows: dict[str, Row] = {}
    for path in sorted((Path(__file__).parent / "rows").glob("group_*.py")):
        module = importlib.import_module(f"tests.semantics.rows.{path.stem}")
        for name, value in vars(module).items():
            if name.startswith("row_"):
                assert name not in rows, f"{name} is defined twice"
                rows[name] = value
    return rows


def run_row(row: Row, torch: Any) -> list[str]:
    """What a row reports on a module; warnings that it does not ask about are ignored."""
    report = Report(torch)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row(torch, report)
    return report.lines
