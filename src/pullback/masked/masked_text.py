"""How a MaskedTensor is printed: `--` stands for an element that is left out."""

from __future__ import annotations

from typing import Any

from pullback.tensor.tensor import Tensor

WIDTH = 8


def masked_text(data: Tensor, mask: Tensor) -> str:
    """The text of a masked tensor."""
    if data.ndim == 0:
        shown = _element(data.item()) if mask.item() else "--"
        return f"MaskedTensor({shown}, {mask.item()})"
    return f"MaskedTensor(\n{_indented(_nested(data.tolist(), mask.tolist(), data.ndim))}\n)"


def _element(value: Any) -> str:
    return f"{value:{WIDTH}.4f}" if isinstance(value, float) else str(value)


def _nested(data: list[Any], mask: list[Any], ndim: int) -> str:
    if ndim == 1:
        return f"[{', '.join(_row(data, mask))}]"
    parts = [_indented(_nested(d, m, ndim - 1)) for d, m in zip(data, mask, strict=True)]
    return "[\n" + ",\n".join(parts) + "\n]"


def _row(data: list[Any], mask: list[Any]) -> list[str]:
    """The elements of one row; `--` is as wide as the widest of them, and at least as a float."""
    texts = [_element(d) for d in data]
    widest = max((WIDTH if not m else len(t) for t, m in zip(texts, mask, strict=True)), default=0)
    return [t if m else "--".rjust(widest) for t, m in zip(texts, mask, strict=True)]


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))
