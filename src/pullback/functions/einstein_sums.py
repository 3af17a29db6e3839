"""einsum: sums of products by index notation, composed of views, sums and batched matrix products.

A label is a number: 0 to 51 for A-Z and a-z, from 52 on for the dimensions that an ellipsis covers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pullback.generated as G
from pullback.errors import wrong_type
from pullback.tensor.tensor import Tensor, TensorBase

_ELLIPSIS = -1
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FIRST_COVERED = len(_LETTERS)

Labels = list[int]


def einsum(*args: Any) -> Tensor:
    """Sum the products of the operands' elements along the labelled dimensions.

    >>> import pullback
    >>> pullback.einsum("ij,j->i", pullback.ones(2, 3), pullback.ones(3))
    tensor([3., 3.])
    """
    operands, inputs, output = _parse_arguments(args)
    covered = _count_covered(operands, inputs)
    labels = [
        _expand_ellipsis(sub, covered, operand._array.ndim) for sub, operand in zip(inputs, operands, strict=True)
    ]
    wanted = _output_labels(output, labels, covered)
    operands, labels = _take_diagonals(operands, labels)
    _check_sizes(operands, labels)
    while len(operands) > 1:
        first, second = _cheapest_pair(operands, labels, wanted)
        later = [label for at, sub in enumerate(labels) if at not in (first, second) for label in sub]
        contracted = _contract(operands[first], labels[first], operands[second], labels[second], {*wanted, *later})
        kept = [at for at in range(len(operands)) if at not in (first, second)]
        operands = [*[operands[at] for at in kept], contracted[0]]
        labels = [*[labels[at] for at in kept], contracted[1]]
    result, have = _sum_out(operands[0], labels[0], set(wanted))
    if len(inputs) == 1 and result is operands[0]:
        return G.permute(result, tuple([have.index(label) for label in wanted]))
    return _permuted(result, [have.index(label) for label in wanted])


def _parse_arguments(args: tuple[Any, ...]) -> tuple[list[Any], list[Labels], Labels | None]:
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if not isinstance(args[0], (str, TensorBase)):
        raise wrong_type("einsum", "equation", 1, "str", args[0])
    if not isinstance(args[0], str):
        subscripts = [_from_sublist(sub) for sub in args[1::2]]
        operands = list(args[: len(args) - len(args) % 2 : 2])
        output = _from_sublist(args[-1]) if len(args) % 2 else None
    else:
        operands = list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
        subscripts, output = _from_equation(args[0])
    for position, operand in enumerate(operands):
        if not isinstance(operand, TensorBase):
            raise TypeError(f"expected Tensor as element {position} in argument 1, but got {type(operand).__name__}")
    if len(operands) != len(subscripts):
        count = "fewer" if len(operands) < len(subscripts) else "more"
        raise RuntimeError(f"einsum(): {count} operands were provided than specified in the equation")
    return operands, subscripts, output


def _from_sublist(sublist: Sequence[Any]) -> Labels:
    labels = [_ELLIPSIS if entry is ... else int(entry) for entry in sublist]
    if any(label != _ELLIPSIS and not 0 <= label < _FIRST_COVERED for label in labels):
        raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return labels


@lru_cache(maxsize=512)
def _from_equation(equation: str) -> tuple[list[Labels], Labels | None]:
    arrow = equation.find("->")
    left = equation if arrow < 0 else equation[:arrow]
    subscripts, start = [], 0
    for position, part in enumerate(left.split(",")):
        subscripts.append(_from_letters(part, start, f"operand {position}"))
        start += len(part) + 1
    output = None if arrow < 0 else _from_letters(equation[arrow + 2 :], arrow + 2, "the output")
    return subscripts, output


def _from_letters(text: str, start: int, owner: str) -> Labels:
    labels: Labels = []
    at = 0
    while at < len(text):
        letter = text[at]
        if letter == ".":
            if _ELLIPSIS in labels:
                raise RuntimeError(
                    f"einsum(): found '.' for {owner} for which an ellipsis was already found"
                    if owner != "the output"
                    else "einsum(): found '.' for output but an ellipsis (...) was already found"
                )
            if text[at : at + 3] != "...":
                raise RuntimeError(f"einsum(): found '.' for {owner} that is not part of any ellipsis")
            labels.append(_ELLIPSIS)
            at += 2
        elif letter != " ":
            if letter not in _LETTERS:
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {start + at} in the equation string, subscripts must be "
                    "in [a-zA-Z]"
                )
            labels.append(_LETTERS.index(letter))
        at += 1
    return labels


def _count_covered(operands: list[Any], inputs: list[Labels]) -> int:
    """How many dimensions the widest ellipsis covers."""
    covered = 0
    for position, (operand, labels) in enumerate(zip(operands, inputs, strict=True)):
        named, ndim = len(labels) - labels.count(_ELLIPSIS), operand._array.ndim
        if _ELLIPSIS not in labels and named != ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions "
                f"({ndim}) for operand {position} and no ellipsis was given"
            )
        if named > ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) is more than the number of dimensions "
                f"({ndim}) for operand {position}"
            )
        if _ELLIPSIS in labels:
            covered = max(covered, ndim - named)
    return covered


def _expand_ellipsis(labels: Labels, covered: int, ndim: int) -> Labels:
    """The labels with the ellipsis replaced by those of the dimensions it covers, aligned at the last."""
    if _ELLIPSIS not in labels:
        return list(labels)
    at = labels.index(_ELLIPSIS)
    count = ndim - len(labels) + 1
    stand_in = range(_FIRST_COVERED + covered - count, _FIRST_COVERED + covered)
    return [*labels[:at], *stand_in, *labels[at + 1 :]]


def _output_labels(output: Labels | None, labels: list[Labels], covered: int) -> Labels:
    every = [label for sub in labels for label in sub]
    ellipsis = list(range(_FIRST_COVERED, _FIRST_COVERED + covered))
    if output is None:
        once = sorted({label for label in every if label < _FIRST_COVERED and every.count(label) == 1})
        return [*ellipsis, *once]
    for label in output:
        if label == _ELLIPSIS:
            continue
        if output.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {_LETTERS[label]} appears more than once in the output")
        if label not in every:
            raise RuntimeError(
                f"einsum(): output subscript {_LETTERS[label]} does not appear in the equation for any input operand"
            )
    if _ELLIPSIS in output:
        at = output.index(_ELLIPSIS)
        return [*output[:at], *ellipsis, *output[at + 1 :]]
    return list(output)


def _take_diagonals(operands: list[Any], labels: list[Labels]) -> tuple[list[Any], list[Labels]]:
    """Operands without repeated labels."""
    taken = [_without_repeats(operand, sub, at) for at, (operand, sub) in enumerate(zip(operands, labels, strict=True))]
    return [operand for operand, _ in taken], [sub for _, sub in taken]


def _without_repeats(operand: Any, labels: Labels, position: int) -> tuple[Any, Labels]:
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            sizes = operand._array.shape[first], operand._array.shape[second]
            if sizes[0] != sizes[1]:
                raise RuntimeError(
                    f"einsum(): subscript {_LETTERS[label]} is repeated for operand {position} but the sizes don't "
                    f"match, {sizes[1]} != {sizes[0]}"
                )
            operand = G.diagonal(operand, 0, first, second)
            labels = [*[other for at, other in enumerate(labels) if at not in (first, second)], label]
    return operand, labels


def _check_sizes(operands: list[Any], labels: list[Labels]) -> None:
    seen: dict[int, int] = {}
    for position, (operand, sub) in enumerate(zip(operands, labels, strict=True)):
        for label, size in zip(sub, operand._array.shape, strict=True):
            former = seen.setdefault(label, size)
            if former == 1:
                seen[label] = size
            elif size not in (1, former):
                raise RuntimeError(
                    f"einsum(): subscript {_LETTERS[label]} has size {size} for operand {position} which does not "
                    f"broadcast with previously seen size {former}"
                    if label < _FIRST_COVERED
                    else f"einsum(): dimension {label - _FIRST_COVERED} covered by ellipsis in operand {position} has "
                    f"size {size} which does not broadcast with previously seen ellipsis with size {former} for the "
                    "respective dimension"
                )


def _cheapest_pair(operands: list[Any], labels: list[Labels], wanted: Labels) -> tuple[int, int]:
    """The two operands whose product is smallest compared to themselves; the first two of only two."""
    if len(operands) == 2:
        return 0, 1
    sizes = [dict(zip(sub, operand._array.shape, strict=True)) for operand, sub in zip(operands, labels, strict=True)]
    best, least = (0, 1), float("inf")
    for first in range(len(operands)):
        for second in range(first + 1, len(operands)):
            others = {label for at, sub in enumerate(labels) if at not in (first, second) for label in sub}
            both = {**sizes[first], **{k: v for k, v in sizes[second].items() if v != 1 or k not in sizes[first]}}
            kept = 1
            for label, size in both.items():
                if label in others or label in wanted:
                    kept *= size
            cost = kept - operands[first]._array.size - operands[second]._array.size
            if cost < least:
                best, least = (first, second), cost
    return best


def _sum_out(operand: Any, labels: Labels, needed: set[int]) -> tuple[Any, Labels]:
    """Sum over the dimensions that nothing needs."""
    dims = tuple([at for at, label in enumerate(labels) if label not in needed])
    if not dims:
        return operand, labels
    return G.sum(operand, dims), [label for label in labels if label in needed]


def _drop_ones(operand: Any, labels: Labels, other: Any, other_labels: Labels) -> tuple[Any, Labels]:
    """Without the dimensions of size 1 that the other operand has in full."""
    sizes = dict(zip(other_labels, other._array.shape, strict=True))
    dims = [at for at, label in enumerate(labels) if operand._array.shape[at] == 1 and sizes.get(label, 1) != 1]
    if not dims:
        return operand, labels
    return G.squeeze_dims(operand, tuple(dims)), [label for at, label in enumerate(labels) if at not in dims]


def _contract(a: Any, a_labels: Labels, b: Any, b_labels: Labels, needed: set[int]) -> tuple[Any, Labels]:
    """The product of two operands, summed over what nothing else needs."""
    a_whole, a_names = _drop_ones(a, a_labels, b, b_labels)
    b_whole, b_names = _drop_ones(b, b_labels, a, a_labels)
    a, a_labels = _sum_out(a_whole, a_names, needed | set(b_names))
    b, b_labels = _sum_out(b_whole, b_names, needed | set(a_names))
    shared = [label for label in a_labels if label in b_labels]
    batch = [label for label in shared if label in needed]
    summed = [label for label in shared if label not in needed]
    a_only = [label for label in a_labels if label not in shared]
    b_only = [label for label in b_labels if label not in shared]
    labels = [*batch, *a_only, *b_only]
    if not summed:
        return _multiply_aligned(a, a_labels, b, b_labels, labels), labels
    left = _permuted(a, [a_labels.index(label) for label in (*batch, *a_only, *summed)])
    right = _permuted(b, [b_labels.index(label) for label in (*batch, *summed, *b_only)])
    shape = (*left._array.shape[: len(batch) + len(a_only)], *right._array.shape[len(batch) + len(summed) :])
    return G.view(_matrix_product(left, right, len(batch), len(a_only), len(summed)), shape), labels


def _multiply_aligned(a: Any, a_labels: Labels, b: Any, b_labels: Labels, labels: Labels) -> Tensor:
    return G.mul(_aligned(a, a_labels, labels), _aligned(b, b_labels, labels))


def _aligned(operand: Any, labels: Labels, wanted: Labels) -> Any:
    """The dimensions in the order of `wanted`, with size 1 where the operand has none."""
    operand = _permuted(operand, [labels.index(label) for label in wanted if label in labels])
    for at, label in enumerate(wanted):
        if label not in labels:
            operand = G.unsqueeze(operand, at)
    return operand


def _matrix_product(left: Any, right: Any, batch: int, rows: int, summed: int) -> Any:
    """The operands folded to (batches of) matrices and multiplied."""
    count = math.prod(left._array.shape[batch + rows :])
    height, width = math.prod(left._array.shape[batch : batch + rows]), math.prod(right._array.shape[batch + summed :])
    if batch == 0:
        return G.mm(G.reshape(left, (height, count)), G.reshape(right, (count, width)))
    batches = math.prod(left._array.shape[:batch])
    return G.bmm(G.reshape(left, (batches, height, count)), G.reshape(right, (batches, count, width)))


def _permuted(operand: Any, dims: list[int]) -> Any:
    return operand if dims == list(range(len(dims))) else G.permute(operand, tuple(dims))
