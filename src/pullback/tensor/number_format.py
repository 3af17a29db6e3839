"""How the numbers of one tensor are written: fixed, scientific or whole, all in one width.

The choice is made once from the finite non-zero values (`NumberFormat`); zeros, infinities and NaNs follow it
and never widen a column. Layout into rows and brackets is `formatting.py`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from pullback.kernels import printing
from pullback.typing import Array

LARGEST_FIXED = 1e8
SMALLEST_FIXED = 1e-4
LARGEST_FIXED_RATIO = 1000.0


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """One `format` specification for all floats of a tensor, and whether a dot follows (`3.` for a whole float)."""

    specification: str
    trailing_dot: bool

    def write(self, value: float) -> str:
        """Write one value, unpadded."""
        text = format(value, self.specification)
        return text + "." if self.trailing_dot and isfinite(value) else text


@dataclass(frozen=True, slots=True)
class Elements:
    """The written elements of a tensor in row-major order, and the width that line breaking counts for each."""

    texts: list[str]
    width: int


def choose_number_format(values: Array, precision: int, sci_mode: bool | None) -> NumberFormat:
    """Decide from the range of float64 `values` how they are written; `sci_mode` overrules all but the zero tensor."""
    magnitudes = printing.magnitude_range(values)
    if magnitudes is None:
        return NumberFormat(".0f", trailing_dot=True)
    least, greatest, whole = magnitudes
    scientific = sci_mode
    if scientific is None:
        too_small = not whole and least < SMALLEST_FIXED
        scientific = too_small or greatest > LARGEST_FIXED or greatest / least > LARGEST_FIXED_RATIO
    if scientific:
        return NumberFormat(f".{precision}e", trailing_dot=False)
    if whole:
        return NumberFormat(".0f", trailing_dot=True)
    return NumberFormat(f".{precision}f", trailing_dot=False)


def write_elements(values: Array, precision: int, sci_mode: bool | None) -> Elements:
    """Write every element of `values` (as `printing.widen` returns them) in the format that suits them together."""
    if values.dtype.kind == "c":
        return _write_complex(values, precision, sci_mode)
    if values.dtype.kind == "f":
        return _write_floats(values, precision, sci_mode)
    texts = [str(value) for value in values.reshape(-1).tolist()]
    width = max(map(len, texts))
    return Elements([text.rjust(width) for text in texts], width)


def _write_floats(values: Array, precision: int, sci_mode: bool | None) -> Elements:
    number_format = choose_number_format(values, precision, sci_mode)
    numbers: list[float] = values.reshape(-1).tolist()
    texts = [number_format.write(number) for number in numbers]
    lengths = (len(text) for text, number in zip(texts, numbers, strict=True) if number != 0 and isfinite(number))
    width = max(lengths, default=1)
    return Elements([text.rjust(width) for text in texts], width)


def _write_complex(values: Array, precision: int, sci_mode: bool | None) -> Elements:
    real = _write_floats(values.real, precision, sci_mode)
    imaginary = _write_floats(values.imag, precision, sci_mode)
    texts = [
        real_text + _signed(imaginary_text.lstrip()) + "j"
        for real_text, imaginary_text in zip(real.texts, imaginary.texts, strict=True)
    ]
    # The sign is counted and the j is not, so a row of complex numbers may pass `linewidth`, as PyTorch's does.
    return Elements(texts, real.width + imaginary.width + 1)


def _signed(text: str) -> str:
    return text if text.startswith("-") else "+" + text
