"""einsum: sums of products by index notation, composed of views, sums and batched matrix products.

A label is a number: 0 to 51 for A-Z and a-z, from 52 on for the dimensions that an ellipsis covers. Which operations to call
follows from the labels and the shapes alone, so it is found once for each and kept as a program.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pullback.generated as G
from pullback.errors import wrong_type
from pullback.facts import declare
from pullback.tensor.tensor import Tensor, TensorBase
from pullback.typing import Shape

_ELLIPSIS = -1
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FIRST_COVERED = len(_LETTERS)

Labels = tuple[int, ...]


@declare(written_in="functional")
def einsum(*args: Any) -> Tensor:
    """Sum the products of the operands' elements along the labelled dimensions.

    >>> import pullback
    >>> pullback.einsum("ij,j->i", pullback.ones(2, 3), pullback.ones(3))
    tensor([3., 3.])
    """
    operands, inputs, output = _parse_arguments(args)
    return _program(inputs, output, tuple([operand._array.shape for operand in operands])).run(operands)


class _Program:
    """Calls on the operands and on earlier results, which are numbered in the order of their making and used once."""

    def __init__(self, shapes: tuple[Shape, ...]) -> None:
        self.shapes = list(shapes)
        self._calls: list[tuple[Any, tuple[int, ...], tuple[Any, ...]]] = []

    def call(self, function: Any, places: tuple[int, ...], arguments: tuple[Any, ...], shape: Sequence[int]) -> int:
        """Note a call whose result has this shape; the number of the result."""
        self._calls.append((function, places, arguments))
        self.shapes.append(tuple(shape))
        return len(self.shapes) - 1

    def run(self, operands: list[Any]) -> Any:
        values = list(operands)
        for function, places, arguments in self._calls:
            given = [values[place] for place in places]
            for place in places:
                values[place] = None
            values.append(function(*given, *arguments))
        return values[-1]


@lru_cache(maxsize=512)
def _program(inputs: tuple[Labels, ...], output: Labels | None, shapes: tuple[Shape, ...]) -> _Program:
    program = _Program(shapes)
    covered = _count_covered(shapes, inputs)
    named = [_expand_ellipsis(sub, covered, len(shape)) for sub, shape in zip(inputs, shapes, strict=True)]
    wanted = _output_labels(output, named, covered)
    taken = [_without_repeats(program, place, sub) for place, sub in enumerate(named)]
    operands, labels = [place for place, _ in taken], [sub for _, sub in taken]
    _check_sizes([program.shapes[place] for place in operands], labels)
    while len(operands) > 1:
        first, second = _cheapest_pair([program.shapes[place] for place in operands], labels, wanted)
        later = [label for at, sub in enumerate(labels) if at not in (first, second) for label in sub]
        pair = operands[first], labels[first], operands[second], labels[second]
        contracted, names = _contract(program, *pair, {*wanted, *later})
        kept = [at for at in range(len(operands)) if at not in (first, second)]
        operands = [*[operands[at] for at in kept], contracted]
        labels = [*[labels[at] for at in kept], names]
    result, have = _sum_out(program, operands[0], labels[0], set(wanted))
    order = [have.index(label) for label in wanted]
    # The operand itself is no result: at least a view of it is.
    _permuted(program, result, order, always=len(inputs) == 1 and result == operands[0])
    return program


def _parse_arguments(args: tuple[Any, ...]) -> tuple[list[Any], tuple[Labels, ...], Labels | None]:
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if not isinstance(args[0], (str, TensorBase)):
        raise wrong_type("einsum", "equation", 1, "str", args[0])
    if not isinstance(args[0], str):
        subscripts = tuple([_from_sublist(sub) for sub in args[1::2]])
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
    labels = tuple([_ELLIPSIS if entry is ... else int(entry) for entry in sublist])
    if any(label != _ELLIPSIS and not 0 <= label < _FIRST_COVERED for label in labels):
        raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return labels


@lru_cache(maxsize=512)
def _from_equation(equation: str) -> tuple[tuple[Labels, ...], Labels | None]:
    arrow = equation.find("->")
    left = equation if arrow < 0 else equation[:arrow]
    subscripts, start = [], 0
    for position, part in enumerate(left.split(",")):
        subscripts.append(_from_letters(part, start, f"operand {position}"))
        start += len(part) + 1
    output = None if arrow < 0 else _from_letters(equation[arrow + 2 :], arrow + 2, "the output")
    return tuple(subscripts), output


def _from_letters(text: str, start: int, owner: str) -> Labels:
    labels: list[int] = []
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
    return tuple(labels)


def _count_covered(shapes: tuple[Shape, ...], inputs: tuple[Labels, ...]) -> int:
    """How many dimensions the widest ellipsis covers."""
    covered = 0
    for position, (shape, labels) in enumerate(zip(shapes, inputs, strict=True)):
        named, ndim = len(labels) - labels.count(_ELLIPSIS), len(shape)
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
        return labels
    at = labels.index(_ELLIPSIS)
    count = ndim - len(labels) + 1
    stand_in = range(_FIRST_COVERED + covered - count, _FIRST_COVERED + covered)
    return (*labels[:at], *stand_in, *labels[at + 1 :])


def _output_labels(output: Labels | None, labels: list[Labels], covered: int) -> Labels:
    every = [label for sub in labels for label in sub]
    ellipsis = list(range(_FIRST_COVERED, _FIRST_COVERED + covered))
    if output is None:
        once = sorted({label for label in every if label < _FIRST_COVERED and every.count(label) == 1})
        return (*ellipsis, *once)
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
        return (*output[:at], *ellipsis, *output[at + 1 :])
    return output


def _without_repeats(program: _Program, place: int, labels: Labels) -> tuple[int, Labels]:
    """The operand at `place` with the diagonal of the dimensions that have one label."""
    position = place
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            shape = program.shapes[place]
            if shape[first] != shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {_LETTERS[label]} is repeated for operand {position} but the sizes don't "
                    f"match, {shape[second]} != {shape[first]}"
                )
            sizes = [*[size for at, size in enumerate(shape) if at not in (first, second)], shape[first]]
            place = program.call(G.diagonal, (place,), (0, first, second), sizes)
            labels = (*[other for at, other in enumerate(labels) if at not in (first, second)], label)
    return place, labels


def _check_sizes(shapes: list[Shape], labels: list[Labels]) -> None:
    seen: dict[int, int] = {}
    for position, (shape, sub) in enumerate(zip(shapes, labels, strict=True)):
        for label, size in zip(sub, shape, strict=True):
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


def _cheapest_pair(shapes: list[Shape], labels: list[Labels], wanted: Labels) -> tuple[int, int]:
    """The two operands whose product is smallest compared to themselves; the first two of only two."""
    if len(shapes) == 2:
        return 0, 1
    sizes = [dict(zip(sub, shape, strict=True)) for shape, sub in zip(shapes, labels, strict=True)]
    best, least = (0, 1), float("inf")
    for first in range(len(shapes)):
        for second in range(first + 1, len(shapes)):
            others = {label for at, sub in enumerate(labels) if at not in (first, second) for label in sub}
            both = {**sizes[first], **{k: v for k, v in sizes[second].items() if v != 1 or k not in sizes[first]}}
            kept = 1
            for label, size in both.items():
                if label in others or label in wanted:
                    kept *= size
            cost = kept - math.prod(shapes[first]) - math.prod(shapes[second])
            if cost < least:
                best, least = (first, second), cost
    return best


def _sum_out(program: _Program, place: int, labels: Labels, needed: set[int]) -> tuple[int, Labels]:
    """Sum over the dimensions that nothing needs."""
    dims = tuple([at for at, label in enumerate(labels) if label not in needed])
    return _without(program, G.sum, place, labels, dims)


def _drop_ones(program: _Program, place: int, labels: Labels, other: Shape, other_labels: Labels) -> tuple[int, Labels]:
    """Without the dimensions of size 1 that the other operand has in full."""
    sizes = dict(zip(other_labels, other, strict=True))
    shape = program.shapes[place]
    dims = tuple([at for at, label in enumerate(labels) if shape[at] == 1 and sizes.get(label, 1) != 1])
    return _without(program, G.squeeze_dims, place, labels, dims)


def _without(program: _Program, function: Any, place: int, labels: Labels, dims: Shape) -> tuple[int, Labels]:
    """The operand and its labels after a function that takes these dimensions away."""
    if not dims:
        return place, labels
    kept = [at for at in range(len(labels)) if at not in dims]
    shape = program.shapes[place]
    return program.call(function, (place,), (dims,), [shape[at] for at in kept]), tuple([labels[at] for at in kept])


def _contract(
    program: _Program, a: int, a_labels: Labels, b: int, b_labels: Labels, needed: set[int]
) -> tuple[int, Labels]:
    """The product of two operands, summed over what nothing else needs."""
    a_shape, b_shape = program.shapes[a], program.shapes[b]
    a, a_names = _drop_ones(program, a, a_labels, b_shape, b_labels)
    b, b_names = _drop_ones(program, b, b_labels, a_shape, a_labels)
    a, a_labels = _sum_out(program, a, a_names, needed | set(b_names))
    b, b_labels = _sum_out(program, b, b_names, needed | set(a_names))
    shared = [label for label in a_labels if label in b_labels]
    batch = [label for label in shared if label in needed]
    summed = [label for label in shared if label not in needed]
    a_only = [label for label in a_labels if label not in shared]
    b_only = [label for label in b_labels if label not in shared]
    labels = (*batch, *a_only, *b_only)
    if not summed:
        return _multiply_aligned(program, a, a_labels, b, b_labels, labels), labels
    left = _permuted(program, a, [a_labels.index(label) for label in (*batch, *a_only, *summed)])
    right = _permuted(program, b, [b_labels.index(label) for label in (*batch, *summed, *b_only)])
    return _matrix_product(program, left, right, len(batch), len(a_only), len(summed)), labels


def _multiply_aligned(program: _Program, a: int, a_labels: Labels, b: int, b_labels: Labels, labels: Labels) -> int:
    places = _aligned(program, a, a_labels, labels), _aligned(program, b, b_labels, labels)
    sizes = zip(program.shapes[places[0]], program.shapes[places[1]], strict=True)
    return program.call(G.mul, places, (), [second if first == 1 else first for first, second in sizes])


def _aligned(program: _Program, place: int, labels: Labels, wanted: Labels) -> int:
    """The dimensions in the order of `wanted`, with size 1 where the operand has none."""
    place = _permuted(program, place, [labels.index(label) for label in wanted if label in labels])
    for at, label in enumerate(wanted):
        if label not in labels:
            shape = program.shapes[place]
            place = program.call(G.unsqueeze, (place,), (at,), (*shape[:at], 1, *shape[at:]))
    return place


def _matrix_product(program: _Program, left: int, right: int, batch: int, rows: int, summed: int) -> int:
    """The operands folded to (batches of) matrices, multiplied and unfolded again."""
    a, b = program.shapes[left], program.shapes[right]
    count, height, width = (
        math.prod(a[batch + rows :]),
        math.prod(a[batch : batch + rows]),
        math.prod(b[batch + summed :]),
    )
    batches = (math.prod(a[:batch]),) if batch else ()
    shapes = (*batches, height, count), (*batches, count, width), (*batches, height, width)
    folded = _reshaped(program, left, shapes[0]), _reshaped(program, right, shapes[1])
    product = program.call(G.bmm if batch else G.mm, folded, (), shapes[2])
    whole = (*a[: batch + rows], *b[batch + summed :])
    return program.call(G.view, (product,), (whole,), whole)


def _reshaped(program: _Program, place: int, shape: Shape) -> int:
    return place if program.shapes[place] == shape else program.call(G.reshape, (place,), (shape,), shape)


def _permuted(program: _Program, place: int, dims: list[int], *, always: bool = False) -> int:
    if not always and dims == list(range(len(dims))):
        return place
    shape = program.shapes[place]
    return program.call(G.permute, (place,), (tuple(dims),), [shape[d] for d in dims])
