"""What PyTorch's nodes save and ours can say from what they saved: `_saved_LU`, `_saved_total_weight`.

It is computed when somebody asks; a backward pass has no use for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pullback.backend.array_module import empty


def result_of(node: Any, public: str) -> Callable[[Any], Any] | None:
    """What computes the value that a node shows as `public` from the node, if it is known."""
    found = _RESULTS.get(node.name(), {}).get(public)
    return found if found is None or callable(found) else lambda node: found


def result_names(name: str) -> Iterable[str]:
    """The names of such values of nodes called `name`."""
    return _RESULTS.get(name, {}).keys()


def _operations() -> Any:
    import pullback.generated as G  # lazy: above this layer

    return G


def _saved(node: Any, *names: str) -> list[Any]:
    """Saved tensors without their history."""
    return [None if (tensor := node.unpack(name)) is None else tensor.detach() for name in names]


def _lu(node: Any) -> Any:
    """The factors that PyTorch's kernels make: of a determinant those of the rows of real matrices, as columns."""
    (A,) = _saved(node, "A")
    as_columns = node.operation != "linalg_solve_ex" and A.is_contiguous() and not A.is_complex()
    return _operations().linalg_lu_factor_ex(A.mT if as_columns else A)


def _normalization(node: Any) -> int:
    return ("none", "sqrt", "count").index(node.saved_scale)


def _total_weight(node: Any) -> Any:
    """What a mean of weighted losses is divided by; zero where each loss stands for itself."""
    target, weight = _saved(node, "target", "weight")
    counted = target[target.ne(node.saved_ignore_index)]
    (input,) = _saved(node, "input")
    zero = input.new_zeros(())
    if node.saved_reduction == 0:
        return zero
    return zero + (counted.numel() if weight is None else weight[counted].sum())


def _is_target(node: Any) -> Any:
    """One at the labels of each row, which end before the first -1."""
    input, target = _saved(node, "input", "target")
    valid = target.lt(0).cumsum(-1).eq(0)
    places = target.clamp(min=0)
    return input.new_zeros(target.shape).scatter_reduce(-1, places, valid.to(input.dtype), "amax")


def _offsets(node: Any) -> Any:
    """Where each bag begins: the number of indices in those before it."""
    (owner,) = _saved(node, "owner")
    bags = owner.new_tensor(list(range(node.output_metadata[0].shape[0])))
    return owner.lt(bags.unsqueeze(1)).sum(1)


def _owner(node: Any) -> Any:
    """The bag of each index, which PyTorch's sums without padding do not need."""
    (owner,) = _saved(node, "owner")
    return owner[:0] if node.saved_mode == 0 and node.saved_padding_idx < 0 else owner


def _bag_sizes(node: Any) -> Any:
    """How many indices of each bag count; PyTorch's sums do not count them."""
    owner, indices = _saved(node, "owner", "indices")
    sizes = owner.new_zeros((node.output_metadata[0].shape[0],))
    if node.saved_mode == 0:
        return sizes
    return sizes.index_add(0, owner, indices.ne(node.saved_padding_idx).to(sizes.dtype))


def _length(node: Any) -> int:
    return int(node.shape[node.inner.saved_dim])


def _no_statistics(node: Any) -> Any:
    """A norm that uses its running statistics has none of the batch."""
    from pullback.tensor.tensor import new_tensor  # lazy: this module is loaded with nodes

    return new_tensor(empty((0,), node.dtype))


_LU = {"LU": lambda node: _lu(node)[0], "pivots": lambda node: _lu(node)[1]}
_RESULTS: dict[str, dict[str, Any]] = {
    "CumprodBackward0": {"result": lambda node: _operations().cumprod(*_saved(node, "input"), node.saved_dim)},
    "EmbeddingBagBackward0": {
        "offsets": _offsets,
        "result1": _owner,
        "result2": _bag_sizes,
        "result3": lambda node: _saved(node, "chosen")[0] if node.saved_mode == 2 else _bag_sizes(node),
        "sparse": False,
    },
    "FftC2CBackward0": {"normalization": _normalization},
    "FftC2RBackward0": {"normalization": _normalization},
    "FftR2CBackward0": {"normalization": _normalization},
    "LinalgDetBackward0": _LU,
    "LinalgHouseholderProductBackward0": {
        "result": lambda node: _operations().linalg_householder_product(*_saved(node, "input", "tau")),
    },
    "LinalgSlogdetBackward0": _LU,
    "LinalgSolveExBackward0": _LU,
    "LogSigmoidBackward0": {"buffer": lambda node: _saved(node, "input")[0].abs().neg().exp()},
    "MultilabelMarginLossBackward0": {"is_target": _is_target},
    "NarrowCopyBackward0": {"length": _length},
    "NativeBatchNormBackward0": {
        "result1": _no_statistics,
        "result2": _no_statistics,
        "training": lambda node: node.operation == "batch_norm_training",
    },
    "NllLoss2DBackward0": {"total_weight": _total_weight},
    "NllLossBackward0": {"total_weight": _total_weight},
    "OrmqrBackward0": {
        "result": lambda node: _operations().ormqr(
            *_saved(node, "input", "input2", "input3"), node.saved_left, node.saved_transpose
        ),
    },
    "ScaledDotProductFlashAttentionForCpuBackward0": {"dropout_p": 0.0},
    "SpecialLogNdtrBackward0": {"result": lambda node: _operations().log_ndtr(*_saved(node, "input"))},
    "TrilinearBackward0": {"expand1": (1, 3), "expand2": (0,), "expand3": (1, 2), "sumdim": (2, 3)},
}
"""By node: how a value is found, or the one value that it has here."""
