"""Decompositions, inverses and solvers: dimensions before the matrices are batches, and so are the examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.func.batching_rules.loop import loop
from pullback.func.batching_rules.table import aligned, expanded, ndim_of, rule, shape_of
from pullback.func.vmap_level import VmapLevel
from pullback.generated.registry import OPERATIONS
from pullback.tensor.tensor import Tensor

Arguments = tuple[Any, ...]
Options = dict[str, Any]


def of_matrices(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """All tensors as batches of matrices (some of vectors) of equal rank."""
    operation = OPERATIONS.get(function.__name__)
    vectors = [p[0] in operation.vectors for p in operation.parameters] if operation is not None else ()
    cores = {
        position: 1 if any(vectors) and vectors[position] else 2
        for position, a in enumerate(args)
        if isinstance(a, Tensor)
    }
    if any(isinstance(v, Tensor) for v in kwargs.values()) or any(ndim_of(args[p]) < core for p, core in cores.items()):
        return loop(level, function, args, kwargs)
    lead = max(ndim_of(args[p]) - core for p, core in cores.items())
    given = [
        aligned(level, level.wrap(expanded(level, a)), lead + cores[p]) if p in cores else a for p, a in enumerate(args)
    ]
    return level.wrap(function(*given, **kwargs))


@rule("linalg_pinv linalg_matrix_rank")
def with_tolerance(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Batches of matrices, unless a tolerance differs between the examples."""
    others = (*args[1:], *kwargs.values())
    if any(isinstance(value, Tensor) for value in others):
        return loop(level, function, args, kwargs)
    return of_matrices(level, function, args, kwargs)


@rule("linalg_solve linalg_solve_ex")
def solve(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Solve systems; a right-hand side that is a vector becomes a matrix of one column."""
    matrix, right, *rest = args
    shape = shape_of(matrix)
    is_vector = ndim_of(right) == 1 or (ndim_of(right) == len(shape) - 1 and shape_of(right) == shape[:-1])
    if not is_vector:
        return of_matrices(level, function, args, kwargs)
    column = level.again(G.unsqueeze, right, ndim_of(right))
    result = of_matrices(level, function, (matrix, column, *rest), kwargs)
    if isinstance(result, tuple):
        return (level.again(G.squeeze_dim, result[0], -1), *result[1:])
    return level.again(G.squeeze_dim, result, -1)
