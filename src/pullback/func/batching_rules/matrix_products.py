"""Matrix products: all of them become products of batches of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback import functions
from pullback.func.batching_rules.table import aligned, expanded, ndim_of, rule, shape_of
from pullback.func.vmap_level import VmapLevel
from pullback.kernels.einstein_products import _parts_of

Arguments = tuple[Any, ...]
Options = dict[str, Any]


@rule("mm bmm matmul_batched matmul_flipped")
def matmul(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Products of matrices, whose batch dimensions broadcast."""
    first, second = args[0], args[1]
    name = function.__name__
    if not name.startswith("matmul"):
        _check_ranks(name, first, second, *((2, 2) if name == "mm" else (3, 3)))
    row, column = ndim_of(first) == 1, ndim_of(second) == 1
    if row:
        first = level.again(G.unsqueeze, first, 0)
    if column:
        second = level.again(G.unsqueeze, second, 1)
    rank = max(ndim_of(first), ndim_of(second))
    result = functions.matmul(aligned(level, first, rank), aligned(level, second, rank))
    if row:
        result = G.squeeze_dim(result, -2)
    if column:
        result = G.squeeze_dim(result, -1)
    return level.wrap(result)


def _check_ranks(name: str, first: Any, second: Any, first_rank: int, second_rank: int) -> None:
    """Refuse operands that the product is not defined for without vmap either."""
    if ndim_of(first) != first_rank or ndim_of(second) != second_rank:
        raise RuntimeError(
            f"Shape mismatch: Got incorrect dims for {name}(a, b). a has dim {ndim_of(first)}and b has dim {ndim_of(second)}"
            f"but expected them to have dim {first_rank} and dim {second_rank}. One example has shapes "
            f"{list(shape_of(first))} and {list(shape_of(second))}; matmul takes any of them."
        )
    if name == "mm":
        a, b = shape_of(first), shape_of(second)
        if a[1] != b[0]:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]})")


def _check_vectors(name: str, **vectors: Any) -> None:
    for key, vector in vectors.items():
        if ndim_of(vector) != 1:
            raise RuntimeError(f"{name}: Expected 1-D argument {key}, but got {ndim_of(vector)}-D")


@rule("mv")
def mv(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Matrices times vectors."""
    matrix, vector = args[0], args[1]
    _check_ranks("mv", matrix, vector, 2, 1)
    if not level.owns(vector):
        return level.wrap(functions.matmul(matrix._physical, vector))
    if not level.owns(matrix) and vector._requires_grad and not matrix._requires_grad:
        return level.wrap(
            functions.matmul(vector._physical, G.transpose(matrix, 0, 1))
        )  # one node less to pass in backward
    if not level.owns(matrix):  # one product of matrices: each example is a column
        columns = vector._value if vector._dim else G.transpose(vector._value, 0, 1)
        return level.wrap_at(G.mm(matrix, columns), 1)
    return level.wrap(G.squeeze_dim(functions.matmul(matrix._physical, G.unsqueeze(vector._physical, 2)), 2))


@rule("dot")
def dot(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Sums of products of vectors."""
    if ndim_of(args[0]) != 1 or ndim_of(args[1]) != 1:
        raise RuntimeError(
            f"Got wrong shapes for dot: it takes vectors, and one example has {ndim_of(args[0])} and {ndim_of(args[1])} "
            "dimensions."
        )
    first, second = expanded(level, args[0]), expanded(level, args[1])
    if args[0]._array.shape != args[1]._array.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{args[0]._array.size}] and src [{args[1]._array.size}] to have the "
            "same number of elements"
        )
    product = functions.matmul(G.unsqueeze(first, 1), G.unsqueeze(second, 2))
    return level.wrap(G.view(product, (level.batch_size,)))


@rule("vdot")
def vdot(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """As `dot`, with the first vector conjugated."""
    return level.again(lambda a, b: G.dot(functions.conj(a), b), *args)


@rule("outer")
def outer(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Every product of an element of one vector with one of the other."""
    _check_vectors("outer", self=args[0], vec2=args[1])
    return level.again(lambda a, b: G.mul(G.unsqueeze(a, 1), b), *args)


@rule("linear_product linear_product_folded linear_bias linear_bias_folded linear_bias_added")
def linear(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """The linear layer, with one weight or each example with its own."""
    input, weight = args[0], args[1]
    bias = args[2] if len(args) > 2 else None
    if not level.owns(weight) and not level.owns(bias):
        return level.wrap(functions.linear(input._physical, weight, bias))
    if bias is not None and ndim_of(input) == 2 and level.owns(weight):
        matrices = G.transpose(weight._physical, 1, 2)
        product = functions.matmul(input._physical if level.owns(input) else input, matrices)
        return level.wrap(G.add(product, aligned(level, bias, 2)))
    return level.again(_composed_linear, input, weight, bias)


def _composed_linear(input: Any, weight: Any, bias: Any) -> Any:
    product = functions.matmul(input, functions.t(weight))
    return product if bias is None else G.add(product, bias)


def _scaled(value: Any, factor: Any) -> Any:
    return value if factor == 1 else G.mul(value, factor)


@rule("addmm addmv addr baddbmm addbmm")
def add_product(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """beta * input + alpha * product."""
    name = function.__name__
    if name == "addr":
        _check_vectors("addr", vec1=args[1], vec2=args[2])
    product = G.outer if name == "addr" else getattr(G, name.removeprefix("b").removeprefix("add"))
    beta, alpha = kwargs.get("beta", 1), kwargs.get("alpha", 1)

    def composed(input: Any, first: Any, second: Any) -> Any:
        term = product(first, second)
        term = _scaled(G.sum(term, (0,), False) if name == "addbmm" else term, alpha)
        return G.expand(term, term._array.shape) if beta == 0 else G.add(_scaled(input, beta), term)

    return level.again(composed, *args)


@rule("einstein_product einstein_outer einstein_triple")
def einstein_product(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """A product by labels: the examples are one more label."""
    *factors, labels = args
    *given, wanted = _parts_of(labels)
    examples = chr(max(map(ord, labels)) + 1)
    parts = ",".join([examples + part if level.owns(t) else part for t, part in zip(factors, given, strict=True)])
    physical = [t._physical if level.owns(t) else t for t in factors]
    return level.wrap(function(*physical, f"{parts}->{examples}{wanted}"))
