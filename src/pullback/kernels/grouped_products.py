"""Products of matrices in groups of unequal size: one product per group, the groups cut out of a common dimension."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pullback.kernels.matrix_products import _multiply
from pullback.native import by_device
from pullback.typing import Array


@by_device
def grouped_mm(input: Array, mat2: Array, offs: Array | None = None) -> Array:
    """One product per group; `offs` says where each group of the dimension that both share, or only one has, ends.

    Rows of a matrix meet their group's matrix of a stack (2-d and 3-d), a stack meets columns (3-d and 2-d), the
    contracted dimension is cut into groups (2-d both), or two stacks are multiplied (3-d both, no `offs`).
    """
    if offs is None:
        return _multiply(input, mat2)
    groups = [slice(int(start), int(end)) for start, end in pairwise((0, *offs))]
    if input.ndim == 2 and mat2.ndim == 2:
        return np.stack([_multiply(input[:, group], mat2[group]) for group in groups])
    result = np.zeros((input.shape[-2], mat2.shape[-1]), input.dtype)
    for number, group in enumerate(groups):
        if input.ndim == 2:
            result[group] = _multiply(input[group], mat2[number])
        else:
            result[:, group] = _multiply(input[number], mat2[:, group])
    return result
