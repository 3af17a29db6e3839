"""einsum: sums of products by index notation, composed of views, sums and batched matrix products.

A label is a number: 0 to 51 for A-Z and a-z, from 52 on for the dimensions that an ellipsis covers. Which operations to call
follows from the labels and the shapes alone, so it is found once for each and kept as a program: PyTorch's steps. A plain
product of two operands runs as one operation, which shows those steps when somebody looks (Note [Fused nodes]).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import pullback.generated as G
from pullback.errors import wrong_type
from pullback.facts import declare
from pullback.graph.fused_node import records_steps
from pullback.kernels.einstein_products import _parts_of
from pullback.modes.interception import overrides
from pullback.modes.switches import process, switches
from pullback.tensor.tensor import Tensor, TensorBase
from pullback.typing import Shape

_ELLIPSIS = -1
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FIRST_COVERED = len(_LETTERS)
_WORTH_IT = 2**16
"""Multiplications that another order of the operands has to save; fewer take no longer than the steps themselves."""

Labels = tuple[int, ...]


@declare(written_in="functional", found="torch")
def einsum(*args: Any) -> Tensor:
    """Sum the products of the operands' elements along the labelled dimensions.

    `equation` labels the dimensions of each operand by a letter, as "bij,bjk->bik"; a label that the result lacks is
    summed over, `...` stands for the rest. Without `->`, labels that occur once remain, in alphabetical order.

    >>> import pullback
    >>> pullback.einsum("ij,j->i", pullback.ones(2, 3), pullback.ones(3))
    tensor([3., 3.])
    """
    operands, inputs, output = _parse_arguments(args)
    program = _program(inputs, output, tuple([operand._array.shape for operand in operands]))
    if program.whole is not None and _may_fuse(operands):
        function, labels = program.whole
        return function(*operands, labels)
    return program.run(operands)


def _may_fuse(operands: list[Any]) -> bool:
    """Whether nobody sees the steps now, and the factors have one dtype. See Note [Fused nodes]."""
    dtype = operands[0]._array.dtype
    if any(operand._array.dtype != dtype for operand in operands):
        return False
    if not process.changed:
        return True
    return not (switches.interceptors or records_steps(*operands) or any(type(t) in overrides.types for t in operands))


class _Program:
    """Calls on the operands and on earlier results, which are numbered in the order of their making and used once."""

    def __init__(self, shapes: tuple[Shape, ...]) -> None:
        self.shapes = list(shapes)
        self.whole: Any = None
        """The operation that does the same at once, and its labels."""
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
    _check_sizes([program.shapes[place] for place, _ in taken], [sub for _, sub in taken])
    order = (*wanted, *sorted({label for sub in named for label in sub} - set(wanted)))
    operands = [_aligned(program, place, sub, order) for place, sub in taken]
    summed = tuple(range(len(wanted), len(order)))
    program.whole = _as_one_operation(named, wanted, shapes)
    if len(operands) == 1:
        if summed:
            program.call(G.sum, (operands[0],), (summed,), program.shapes[operands[0]][: len(wanted)])
        return program
    for first, second in _order_of_pairs([program.shapes[place] for place in operands], len(wanted)):
        right = operands.pop(second)
        later = [program.shapes[place] for at, place in enumerate(operands) if at != first]
        ended = [d for d in summed if all(shape[d] == 1 for shape in later)]
        operands[first] = _contract(program, operands[first], right, ended)
    if summed:
        shape = program.shapes[operands[0]][: len(wanted)]
        program.call(G.view, (operands[0],), (shape,), shape)
    return program


def _as_one_operation(named: list[Labels], wanted: Labels, shapes: tuple[Shape, ...]) -> Any:
    """The operation that serves all at once, if there is one, and its labels.

    Every label has to have one size, and to be in two of the operands and the result at least, once in each.
    """
    every = [*named, wanted]
    if len(named) not in (2, 3) or any(len(set(sub)) != len(sub) for sub in named):
        return None
    sizes: dict[int, int] = {}
    for sub, shape in zip(named, shapes, strict=True):
        if any(sizes.setdefault(label, size) != size for label, size in zip(sub, shape, strict=True)):
            return None
    if any(sum(label in sub for sub in every) < 2 for label in sizes):
        return None
    *parts, result = ["".join([_as_letter(label) for label in sub]) for sub in every]
    labels = f"{','.join(parts)}->{result}"
    if sizes.keys() == set(wanted):
        return (G.einstein_outer, labels) if len(named) == 2 else None
    return G.einstein_product if len(named) == 2 else G.einstein_triple, labels


def _as_letter(label: int) -> str:
    """A label as a letter, of the Greek alphabet and those after it where an ellipsis covers the dimension."""
    return _LETTERS[label] if label < _FIRST_COVERED else chr(0x3B1 + label - _FIRST_COVERED)


def einsum_steps(labels: str, *operands: Tensor) -> Any:
    """A product of operands by labels, in PyTorch's steps."""
    *inputs, output = [tuple([ord(letter) for letter in part]) for part in _parts_of(labels)]
    return _program(tuple(inputs), output, tuple([operand._array.shape for operand in operands])).run(list(operands))


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
    """The operand at `place` with the diagonal of the dimensions that have one label, where the first of them was."""
    position, at = place, 0
    while at < len(labels):
        label = labels[at]
        first = labels.index(label)
        if first == at:
            at += 1
            continue
        shape = program.shapes[place]
        if shape[first] != shape[at]:
            raise RuntimeError(
                f"einsum(): subscript {_LETTERS[label]} is repeated for operand {position} but the sizes don't "
                f"match, {shape[at]} != {shape[first]}"
            )
        rest = [d for d in range(len(shape)) if d not in (first, at)]
        place = program.call(G.diagonal, (place,), (0, first, at), [*[shape[d] for d in rest], shape[first]])
        last = len(rest)
        place = _permuted(program, place, [*range(first), last, *range(first, last)])
        labels = labels[:at] + labels[at + 1 :]
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


def _order_of_pairs(shapes: list[Shape], kept: int) -> list[tuple[int, int]]:
    """Which two operands are multiplied at each step: from left to right, unless another order saves much work."""
    plain, work = _simulated(shapes, kept, lambda remaining: (0, 1))
    if len(shapes) == 2:
        return plain
    chosen, less_work = _simulated(shapes, kept, lambda remaining: _smallest_pair(remaining, kept))
    return chosen if work - less_work > _WORTH_IT else plain


def _simulated(
    shapes: list[Shape], kept: int, choose: Callable[[list[Shape]], tuple[int, int]]
) -> tuple[list[tuple[int, int]], int]:
    """The pairs that `choose` picks one after the other, and how many multiplications they take."""
    remaining, pairs, work = list(shapes), [], 0
    while len(remaining) > 1:
        first, second = choose(remaining)
        pairs.append((first, second))
        work += math.prod([max(m, n) for m, n in zip(remaining[first], remaining[second], strict=True)])
        product = _product_shape(remaining, first, second, kept)
        del remaining[second]
        remaining[first] = product
    return pairs, work


def _smallest_pair(shapes: list[Shape], kept: int) -> tuple[int, int]:
    """The two operands whose product is smallest compared to themselves."""

    def growth(pair: tuple[int, int]) -> int:
        first, second = pair
        return (
            math.prod(_product_shape(shapes, first, second, kept))
            - math.prod(shapes[first])
            - math.prod(shapes[second])
        )

    return min([(first, second) for second in range(len(shapes)) for first in range(second)], key=growth)


def _product_shape(shapes: list[Shape], first: int, second: int, kept: int) -> Shape:
    """The shape of the product of two operands: 1 where the rest does not need a dimension after the first `kept`."""
    others = [shape for at, shape in enumerate(shapes) if at not in (first, second)]
    sizes = [n if m == 1 else m for m, n in zip(shapes[first], shapes[second], strict=True)]
    return tuple([n if d < kept or any(shape[d] != 1 for shape in others) else 1 for d, n in enumerate(sizes)])


def _aligned(program: _Program, place: int, labels: Labels, order: Labels) -> int:
    """The operand with a dimension for every label, in the order of `order`; of size 1 where it has none."""
    missing = [label for label in order if label not in labels]
    for _ in missing:
        shape = program.shapes[place]
        place = program.call(G.unsqueeze, (place,), (len(shape),), (*shape, 1))
    have = (*labels, *missing)
    return _permuted(program, place, [have.index(label) for label in order])


def _contract(program: _Program, left: int, right: int, ended: list[int]) -> int:
    """The product of two aligned operands, summed over the dimensions `ended`, which stay with size 1."""
    left, alone = _sum_alone(program, left, right, ended)
    right, _ = _sum_alone(program, right, left, ended)
    a, b = program.shapes[left], program.shapes[right]
    summed = [d for d in ended if d not in alone and a[d] != 1 and b[d] != 1]
    if not summed:
        return program.call(G.mul, (left, right), (), [n if m == 1 else m for m, n in zip(a, b, strict=True)])
    batches = [d for d in range(len(a)) if d not in summed and a[d] != 1 and b[d] != 1]
    rows = [d for d in range(len(a)) if d not in summed and a[d] != 1 and b[d] == 1]
    columns = [d for d in range(len(a)) if d not in (*summed, *batches, *rows)]
    size, height, count = (math.prod([a[d] for d in dims]) for dims in (batches, rows, summed))
    width = math.prod([b[d] for d in columns])
    left = _permuted(program, left, [*batches, *rows, *summed, *columns])
    left = program.call(G.reshape, (left,), ((size, height, count),), (size, height, count))
    right = _permuted(program, right, [*batches, *summed, *columns, *rows])
    right = program.call(G.reshape, (right,), ((size, count, width),), (size, count, width))
    product = program.call(G.bmm, (left, right), (), (size, height, width))
    made = [*batches, *rows, *summed, *columns]
    sizes = tuple([1 if d in summed else b[d] if a[d] == 1 else a[d] for d in made])
    product = program.call(G.view, (product,), (sizes,), sizes)
    return _permuted(program, product, [made.index(d) for d in range(len(made))])


def _sum_alone(program: _Program, place: int, other: int, ended: list[int]) -> tuple[int, list[int]]:
    """The operand summed over the dimensions that the other one does not have."""
    shape = program.shapes[place]
    dims = [d for d in ended if shape[d] != 1 and program.shapes[other][d] == 1]
    if not dims:
        return place, dims
    sizes = [1 if d in dims else size for d, size in enumerate(shape)]
    return program.call(G.sum, (place,), (tuple(dims), True), sizes), dims


def _permuted(program: _Program, place: int, dims: list[int]) -> int:
    shape = program.shapes[place]
    return program.call(G.permute, (place,), (tuple(dims),), [shape[d] for d in dims])
