"""The gradients of products by labels, which are such products in their turn."""

from __future__ import annotations

from typing import Any

import pullback.generated as F


def einstein_product_first(grad: Any, other: Any, labels: str) -> Any:
    """The gradient of the first of two factors."""
    first, second, result = labels.replace("->", ",").split(",")
    return F.einstein_product(grad, F.conj(other), f"{result},{second}->{first}")


def einstein_product_second(grad: Any, input: Any, labels: str) -> Any:
    """The gradient of the second of two factors."""
    first, second, result = labels.replace("->", ",").split(",")
    return F.einstein_product(F.conj(input), grad, f"{first},{result}->{second}")


def einstein_triple_part(grad: Any, one: Any, another: Any, labels: str, place: int) -> Any:
    """The gradient of the factor at `place`, given the two others."""
    *factors, result = labels.replace("->", ",").split(",")
    own = factors.pop(place)
    return F.einstein_triple(grad, F.conj(one), F.conj(another), f"{result},{factors[0]},{factors[1]}->{own}")
