"""Sizes that may change in a traced graph: traces for several sizes, compared.

A graph for one shape holds numbers. Traces of the same function for other sizes tell which of them depend on sizes: each
is looked for as a product of sizes, perhaps divided, times a whole number plus a whole number. A dimension for which the
function raises, or calls something else, keeps the size that it has.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from pullback.dispatch.overloads import aten
from pullback.fx.graph_module import GraphModule
from pullback.fx.node import Node, map_aggregate
from pullback.random import get_rng_state, set_rng_state
from pullback.tensor.tensor import Tensor

Trace = Callable[[list[Any]], GraphModule]
"""Traces a function for the leaves of its arguments."""

_MOST_FACTORS, _DIVISORS = 3, (1, 2, 3, 4)


class Symbol(NamedTuple):
    """A size that may change: the dimensions that have it, as pairs of a leaf's place and a dimension, and its value."""

    places: tuple[tuple[int, int], ...]
    size: int


class StaticSizeError(Exception):
    """A size that should change, and cannot."""


class _Expression(NamedTuple):
    """A number that depends on sizes: slope * (product of symbols // divisor) + offset."""

    factors: tuple[int, ...]
    divisor: int
    slope: int
    offset: int

    def value(self, sizes: Sequence[int]) -> int:
        return self.slope * (math.prod([sizes[factor] for factor in self.factors]) // self.divisor) + self.offset


class _Sample(NamedTuple):
    sizes: tuple[int, ...]
    graph: GraphModule


def symbols_of(leaves: Sequence[Any]) -> list[Symbol]:
    """Every size of the tensors among some leaves, equal ones as one; 0 and 1 broadcast, and stay as they are."""
    found: dict[int, list[tuple[int, int]]] = {}
    for place, leaf in enumerate(leaves):
        for dim, size in enumerate(leaf.shape if isinstance(leaf, Tensor) else ()):
            if size > 1:
                found.setdefault(size, []).append((place, dim))
    return [Symbol(tuple(places), size) for size, places in found.items()]


def trace_with_symbols(trace: Trace, leaves: Sequence[Any], symbols: Sequence[Symbol], *, strict: bool) -> GraphModule:
    """The graph of a function in which some sizes are symbols; StaticSizeError where one cannot be, if that is `strict`."""
    state = get_rng_state()

    def sample(kept: Sequence[Symbol], sizes: tuple[int, ...]) -> _Sample:
        set_rng_state(state)
        return _Sample(sizes, trace(_resized(leaves, kept, sizes)))

    try:
        return _compare(sample, list(symbols), strict=strict)
    finally:
        set_rng_state(state)


def _compare(sample: Callable[..., _Sample], symbols: list[Symbol], *, strict: bool) -> GraphModule:
    while True:
        own = tuple([symbol.size for symbol in symbols])
        samples = [sample(symbols, own)]
        fixed: dict[int, str] = {}
        for number in range(len(symbols)):
            others = tuple([size + (n == number) for n, size in enumerate(own)])
            fixed.update(_try(samples, sample, symbols, others, number))
        if not fixed and symbols:
            for step in (1, 2):
                grown = tuple([size + step * (n + 2) for n, size in enumerate(own)])
                fixed.update(_try(samples, sample, symbols, grown, len(symbols) - 1))
        if not fixed:
            fitted = _fit_all(samples)
            if isinstance(fitted, list):
                return _rewrite(samples[0].graph, symbols, fitted)
            fixed = dict.fromkeys(fitted, "a number depends on it in a way that is not known")
        if strict:
            number, reason = next(iter(fixed.items()))
            raise StaticSizeError(f"the size {symbols[number].size} cannot change: {reason}")
        symbols = [symbol for number, symbol in enumerate(symbols) if number not in fixed]


def _try(
    samples: list[_Sample], sample: Callable[..., _Sample], symbols: list[Symbol], sizes: tuple[int, ...], number: int
) -> dict[int, str]:
    """Add a trace for other sizes; where it is another one, or none, the symbol that keeps its size and why."""
    try:
        made = sample(symbols, sizes)
    except Exception as error:
        return {number: f"with {sizes[number]} the function raises {type(error).__name__}: {error}"}
    if _skeleton(made.graph) != _skeleton(samples[0].graph):
        return {number: f"with {sizes[number]} the function calls something else"}
    samples.append(made)
    return {}


def _resized(leaves: Sequence[Any], symbols: Sequence[Symbol], sizes: Sequence[int]) -> list[Any]:
    """Copies of the leaves with other sizes: values are repeated, so that indices stay in their range."""
    wanted = {place: size for symbol, size in zip(symbols, sizes, strict=True) for place in symbol.places}
    made = list(leaves)
    for number, leaf in enumerate(leaves):
        if not isinstance(leaf, Tensor):
            continue
        copy = leaf.detach().clone()
        for dim, size in enumerate(leaf.shape):
            new = wanted.get((number, dim), size)
            if new != size:
                copy = copy[(slice(None),) * dim + ([n % size for n in range(new)],)]
        made[number] = copy.requires_grad_(leaf.requires_grad)
    return made


def _skeleton(module: GraphModule) -> list[Any]:
    """A graph without its whole numbers."""
    rows: list[Any] = []
    for node in module.graph.nodes:
        form = map_aggregate((node.args, node.kwargs), _shown)
        held = getattr(module, str(node.target)).shape if node.op == "get_attr" else ()
        rows.append((node.op, str(node.target), form, tuple(held)))
    return rows


def _shown(value: Any) -> Any:
    if isinstance(value, Node):
        return value.name
    return int if type(value) is int else repr(value)


def _numbers(module: GraphModule) -> list[int]:
    found: list[int] = []

    def see(value: Any) -> Any:
        if type(value) is int:
            found.append(value)
        return value

    for node in module.graph.nodes:
        map_aggregate((node.args, node.kwargs), see)
    return found


def _fit_all(samples: list[_Sample]) -> list[Any] | set[int]:
    """What each number of the graph is; where one is nothing known, the symbols that it changes with."""
    rows = list(zip(*[_numbers(sample.graph) for sample in samples], strict=True))
    made: list[Any] = []
    for row in rows:
        found = _fit(row, [sample.sizes for sample in samples])
        if found is None:
            return {n for n in range(len(samples[0].sizes)) if row[n + 1] != row[0]} or set(
                range(len(samples[0].sizes))
            )
        made.append(found)
    return made


def _fit(values: Sequence[int], sizes: Sequence[Sequence[int]]) -> int | _Expression | None:
    if len(set(values)) == 1:
        return values[0]
    for count in range(1, _MOST_FACTORS + 1):
        for factors in itertools.combinations_with_replacement(range(len(sizes[0])), count):
            for divisor in _DIVISORS:
                found = _line(values, sizes, factors, divisor)
                if found is not None:
                    return found
    return None


def _line(
    values: Sequence[int], sizes: Sequence[Sequence[int]], factors: tuple[int, ...], divisor: int
) -> _Expression | None:
    plain = [_Expression(factors, divisor, 1, 0).value(row) for row in sizes]
    other = next((n for n, value in enumerate(plain) if value != plain[0]), None)
    if other is None:
        return None
    slope, rest = divmod(values[other] - values[0], plain[other] - plain[0])
    made = _Expression(factors, divisor, slope, values[0] - slope * plain[0])
    fits = not rest and slope and all(made.value(row) == value for row, value in zip(sizes, values, strict=True))
    return made if fits else None


def _rewrite(module: GraphModule, symbols: Sequence[Symbol], fitted: list[Any]) -> GraphModule:
    """Put nodes that compute numbers from sizes in the place of these numbers."""
    graph = module.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    known: dict[Any, Node] = {}
    rest = iter(fitted)

    def size_of(number: int, user: Node) -> Node:
        if number not in known:
            place, dim = symbols[number].places[0]
            packet = aten("sym_size")
            assert packet is not None
            with graph.inserting_before(user):
                target = packet.overload("int")
                made = graph.create_node("call_function", target, (placeholders[place], dim), name="sym_size_int")
            made.meta["val"] = symbols[number].size
            known[number] = made
        return known[number]

    def computed(expression: _Expression, user: Node) -> Node:
        if expression in known:
            return known[expression]
        made, *others = [size_of(factor, user) for factor in expression.factors]
        with graph.inserting_before(user):
            for other in others:
                made = graph.call_function(operator.mul, (made, other))
            for function, value, neutral in (
                (operator.floordiv, expression.divisor, 1),
                (operator.mul, expression.slope, 1),
                (operator.add, expression.offset, 0),
            ):
                if value != neutral:
                    made = graph.call_function(function, (made, value))
        known[expression] = made
        return known[expression]

    def replaced(user: Node, value: Any) -> Any:
        if type(value) is not int:
            return value
        found = next(rest)
        return computed(found, user) if isinstance(found, _Expression) else value

    for node in list(graph.nodes):
        replace: Callable[[Any], Any] = partial(replaced, node)
        node.args, node.kwargs = map_aggregate((node.args, node.kwargs), replace)
    module.recompile()
    return module
