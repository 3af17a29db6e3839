"""Gradients of distances and of bilinear forms, in terms of operations."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F


def cdist_back(grad: Any, x1: Any, x2: Any, p: float, distances: Any) -> Any:
    """The gradient of distances (*, P, R) with respect to the rows (*, P, M) of the first matrix."""
    if p == 2:
        ratio = _over_distances(grad, distances)
        return F.sub(F.mul(F.sum(ratio, (-1,), True), x1), F.matmul(ratio, x2))
    difference = F.sub(F.unsqueeze(x1, x1.ndim - 1), F.unsqueeze(x2, x2.ndim - 2))
    return F.sum(F.distance_back(grad, difference, p, distances), (-2,), False)


def _over_distances(grad: Any, distances: Any) -> Any:
    """The quotient, zero where points coincide: there its derivatives are zero too, not 0 / 0."""
    return F.div(grad, F.masked_fill(distances, F.eq(distances, 0), math.inf))


def distance_back(grad: Any, difference: Any, p: float, distances: Any) -> Any:
    """The gradient of p-norms with respect to the vectors in the last dimension."""
    wide = F.unsqueeze(grad, grad.ndim)
    if p == 0:
        return F.zeros_in_shape_of(difference)
    if p == 1:
        return F.mul(wide, F.sign(difference))
    if math.isinf(p):
        return F.mul(wide, F.largest_share(difference, distances))
    norms = F.unsqueeze(distances, distances.ndim)
    if p == 2:
        return F.mul(difference, _over_distances(wide, norms))
    powers = F.mul(F.sign(difference), F.pow_or_zero(F.abs(difference), p - 1))
    return F.mul(powers, _over_distances(wide, F.pow_or_zero(norms, p - 1)))


def pdist_back(grad: Any, input: Any, p: float, distances: Any) -> Any:
    """The gradient of the distances of all pairs of rows."""
    rows = input.shape[0]
    first, second = F.pair_rows(input, 0), F.pair_rows(input, 1)
    difference = F.sub(F.embedding_take(input, first, -1, False), F.embedding_take(input, second, -1, False))
    share = F.distance_back(grad, difference, p, distances)
    return F.sub(F.embedding_back(share, first, rows, -1, False), F.embedding_back(share, second, rows, -1, False))


def trilinear_back_first(grad: Any, input2: Any, weight: Any) -> Any:
    """The gradient of a bilinear form with respect to its first vector."""
    outputs, rows, columns = weight.shape
    pairs = F.reshape(F.mul(F.unsqueeze(grad, 2), F.unsqueeze(input2, 1)), (grad.shape[0], outputs * columns))
    return F.mm(pairs, F.reshape(F.transpose(weight, 1, 2), (outputs * columns, rows)))


def trilinear_back_weight(grad: Any, input1: Any, input2: Any) -> Any:
    """The gradient of a bilinear form with respect to its weight."""
    outputs, rows = grad.shape[1], input1.shape[1]
    pairs = F.reshape(F.mul(F.unsqueeze(grad, 2), F.unsqueeze(input1, 1)), (grad.shape[0], outputs * rows))
    return F.reshape(F.mm(F.transpose(pairs, 0, 1), input2), (outputs, rows, input2.shape[1]))
