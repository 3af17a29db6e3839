"""Products of tensors by labels of their dimensions, as products of matrices.

Labels are letters, as in "ij,jk->ik". Every one is in two of the factors and the result at least; those that the result
does not have are summed over.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from pullback.kernels.arithmetic import mul
from pullback.kernels.matrix_products import bmm, mm
from pullback.native import by_device
from pullback.typing import Array, Shape


class Folding(NamedTuple):
    """Where the dimensions of the factors and of their product go."""

    first: Shape
    """The dimensions of the first factor as batches, rows, summed ones."""
    second: Shape
    """Those of the second as batches, summed ones, columns."""
    result: Shape
    """Those of the product (batches, rows, columns) in the order of the result."""
    batches: int
    summed: int


def _parts_of(labels: str) -> list[str]:
    """The labels of each factor, and those of the result."""
    return labels.replace("->", ",").split(",")


@lru_cache(maxsize=1024)
def _folding(labels: str) -> Folding:
    """How factors become matrices. Summed dimensions lie in the order of their labels."""
    first, second, wanted = _parts_of(labels)
    batches = [label for label in wanted if label in first and label in second]
    rows = [label for label in wanted if label not in second]
    columns = [label for label in wanted if label not in first]
    summed = sorted(label for label in first if label not in wanted)
    made = [*batches, *rows, *columns]
    return Folding(
        tuple([first.index(label) for label in (*batches, *rows, *summed)]),
        tuple([second.index(label) for label in (*batches, *summed, *columns)]),
        tuple([made.index(label) for label in wanted]),
        len(batches),
        len(summed),
    )


@by_device
def einstein_product(input: Array, other: Array, labels: str) -> Array:
    """The sums of products over the labels that are in both factors and not in the result."""
    plan = _folding(labels)
    if not plan.summed:
        return einstein_outer(input, other, labels)
    left, right = input.transpose(plan.first), other.transpose(plan.second)
    lead, inner = left.shape[: plan.batches], right.shape[plan.batches : plan.batches + plan.summed]
    rows, columns = left.shape[plan.batches : left.ndim - plan.summed], right.shape[plan.batches + plan.summed :]
    height, width, count = math.prod(rows), math.prod(columns), math.prod(inner)
    if lead:
        size = math.prod(lead)
        product = bmm(left.reshape(size, height, count), right.reshape(size, count, width))
    else:
        product = mm(left.reshape(height, count), right.reshape(count, width))
    return product.reshape((*lead, *rows, *columns)).transpose(plan.result)


@by_device
def einstein_outer(input: Array, other: Array, labels: str) -> Array:
    """The products where nothing is summed over."""
    first, second, wanted = _parts_of(labels)
    return mul(_aligned_to(input, first, wanted), _aligned_to(other, second, wanted))


def _aligned_to(array: Array, labels: str, wanted: str) -> Array:
    """The dimensions in the order of `wanted`, of size 1 where the array has none."""
    moved = array.transpose([labels.index(label) for label in wanted if label in labels])
    sizes = iter(moved.shape)
    return moved.reshape([next(sizes) if label in labels else 1 for label in wanted])


@by_device
def einstein_triple(input: Array, other: Array, third: Array, labels: str) -> Array:
    """A product of three factors: first of the two whose product is smallest compared to themselves."""
    factors = (input, other, third)
    (first, second), (left, right), pair, last = _steps_of_three((input.shape, other.shape, third.shape), labels)
    made = (*factors, einstein_product(factors[first], factors[second], pair))
    return einstein_product(made[left], made[right], last)


@lru_cache(maxsize=1024)
def _steps_of_three(
    shapes: tuple[Shape, Shape, Shape], labels: str
) -> tuple[tuple[int, int], tuple[int, int], str, str]:
    """The places of the factors of both products (3 means the first product), and their labels."""
    parts = _parts_of(labels)
    sizes = {label: n for part, shape in zip(parts, shapes, strict=False) for label, n in zip(part, shape, strict=True)}

    def growth(pair: tuple[int, int]) -> int:
        made = _between(parts, pair)
        return math.prod([sizes[label] for label in made]) - sum(math.prod(shapes[place]) for place in pair)

    first, second = min(((0, 1), (0, 2), (1, 2)), key=growth)
    rest, between = 3 - first - second, _between(parts, (first, second))
    every = (*parts[:3], between)
    last = (rest, 3) if rest == 0 else (3, rest)
    pair = f"{parts[first]},{parts[second]}->{between}"
    return (first, second), last, pair, f"{every[last[0]]},{every[last[1]]}->{parts[3]}"


def _between(parts: list[str], pair: tuple[int, int]) -> str:
    """The labels of the product of two of three factors: those that the third or the result has."""
    needed = parts[3 - sum(pair)] + parts[3]
    return "".join([n for n in dict.fromkeys(parts[pair[0]] + parts[pair[1]]) if n in needed])
