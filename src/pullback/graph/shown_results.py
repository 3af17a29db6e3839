"""Values that PyTorch's nodes save, computed from what ours saved: `_saved_LU`, `_saved_total_weight`.

They are computed when somebody asks: no backward pass needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pullback.backend.array_module import empty

_Compute = Callable[[Any], Any]
_RESULTS: dict[str, dict[str, _Compute]] = {}
"""The functions that find values, by node and name."""


def shown(public: str, *nodes: str) -> Callable[[_Compute], _Compute]:
    """Let the decorated function compute what these nodes show as `public`."""

    def register(compute: _Compute) -> _Compute:
        for node in nodes:
            _RESULTS.setdefault(node, {})[public] = compute
        return compute

    return register


def result_of(node: Any, public: str) -> _Compute | None:
    """What computes the value that a node shows as `public` from the node, if it is known."""
    return _RESULTS.get(node.name(), {}).get(public)


def result_names(name: str) -> Iterable[str]:
    """The names of such values of nodes called `name`."""
    return _RESULTS.get(name, {}).keys()


def _operations() -> Any:
    import pullback.generated as G  # lazy: above this layer

    return G


def _saved(node: Any, *names: str) -> list[Any]:
    """Saved tensors without their history."""
    return [None if (tensor := node.unpack(name)) is None else tensor.detach() for name in names]


@shown("result", "CumprodBackward0")
def _products(node: Any) -> Any:
    return _operations().cumprod(*_saved(node, "input"), node.saved_dim)


@shown("result", "SpecialLogNdtrBackward0")
def _logarithms(node: Any) -> Any:
    return _operations().log_ndtr(*_saved(node, "input"))


@shown("result", "LinalgHouseholderProductBackward0")
def _reflected(node: Any) -> Any:
    return _operations().linalg_householder_product(*_saved(node, "input", "tau"))


@shown("result", "OrmqrBackward0")
def _rotated(node: Any) -> Any:
    return _operations().ormqr(*_saved(node, "input", "input2", "input3"), node.saved_left, node.saved_transpose)


@shown("buffer", "LogSigmoidBackward0")
def _buffer(node: Any) -> Any:
    return _saved(node, "input")[0].abs().neg().exp()


@shown("LU", "LinalgDetBackward0", "LinalgSlogdetBackward0", "LinalgSolveExBackward0")
def _factors(node: Any) -> Any:
    return _lu(node)[0]


@shown("pivots", "LinalgDetBackward0", "LinalgSlogdetBackward0", "LinalgSolveExBackward0")
def _pivots(node: Any) -> Any:
    return _lu(node)[1]


def _lu(node: Any) -> Any:
    """The factors that PyTorch's kernels make: of a determinant those of the rows of real matrices, as columns."""
    (A,) = _saved(node, "A")
    as_columns = node.operation != "linalg_solve_ex" and A.is_contiguous() and not A.is_complex()
    return _operations().linalg_lu_factor_ex(A.mT if as_columns else A)


@shown("normalization", "FftC2CBackward0", "FftC2RBackward0", "FftR2CBackward0")
def _normalization(node: Any) -> int:
    return ("none", "sqrt", "count").index(node.saved_scale)


@shown("total_weight", "NllLossBackward0", "NllLoss2DBackward0")
def _total_weight(node: Any) -> Any:
    """Return what a mean of weighted losses is divided by; zero where losses are not reduced."""
    input, target, weight = _saved(node, "input", "target", "weight")
    counted = target[target.ne(node.saved_ignore_index)]
    zero = input.new_zeros(())
    if node.saved_reduction == 0:
        return zero
    return zero + (counted.numel() if weight is None else weight[counted].sum())


@shown("is_target", "MultilabelMarginLossBackward0")
def _is_target(node: Any) -> Any:
    """One at the labels of each row, which end before the first -1."""
    input, target = _saved(node, "input", "target")
    valid = target.lt(0).cumsum(-1).eq(0)
    places = target.clamp(min=0)
    return input.new_zeros(target.shape).scatter_reduce(-1, places, valid.to(input.dtype), "amax")


@shown("offsets", "EmbeddingBagBackward0")
def _offsets(node: Any) -> Any:
    """Where each bag begins: the number of indices in those before it."""
    (owner,) = _saved(node, "owner")
    bags = owner.new_tensor(list(range(node.output_metadata[0].shape[0])))
    return owner.lt(bags.unsqueeze(1)).sum(1)


@shown("result1", "EmbeddingBagBackward0")
def _owner(node: Any) -> Any:
    """The bag of each index, which PyTorch's sums without padding do not need."""
    (owner,) = _saved(node, "owner")
    return owner[:0] if node.saved_mode == 0 and node.saved_padding_idx < 0 else owner


@shown("result2", "EmbeddingBagBackward0")
def _bag_sizes(node: Any) -> Any:
    """How many indices of each bag count; PyTorch's sums do not count them."""
    owner, indices = _saved(node, "owner", "indices")
    sizes = owner.new_zeros((node.output_metadata[0].shape[0],))
    if node.saved_mode == 0:
        return sizes
    return sizes.index_add(0, owner, indices.ne(node.saved_padding_idx).to(sizes.dtype))


@shown("result3", "EmbeddingBagBackward0")
def _chosen(node: Any) -> Any:
    return _saved(node, "chosen")[0] if node.saved_mode == 2 else _bag_sizes(node)


@shown("sparse", "EmbeddingBagBackward0")
def _no(node: Any) -> bool:
    return False


@shown("length", "NarrowCopyBackward0")
def _length(node: Any) -> int:
    return int(node.shape[node.inner.saved_dim])


@shown("result1", "NativeBatchNormBackward0")
@shown("result2", "NativeBatchNormBackward0")
def _no_statistics(node: Any) -> Any:
    """A norm that uses its running statistics has none of the batch."""
    from pullback.tensor.tensor import new_tensor  # lazy: this module is loaded with nodes

    return new_tensor(empty((0,), node.dtype))


@shown("training", "NativeBatchNormBackward0")
def _training(node: Any) -> bool:
    return bool(node.operation == "batch_norm_training")


@shown("dropout_p", "ScaledDotProductFlashAttentionForCpuBackward0")
def _no_dropout(node: Any) -> float:
    return 0.0


@shown("expand1", "TrilinearBackward0")
def _expanded_first(node: Any) -> tuple[int, ...]:
    return 1, 3


@shown("expand2", "TrilinearBackward0")
def _expanded_weight(node: Any) -> tuple[int, ...]:
    return (0,)


@shown("expand3", "TrilinearBackward0")
def _expanded_second(node: Any) -> tuple[int, ...]:
    return 1, 2


@shown("sumdim", "TrilinearBackward0")
def _summed(node: Any) -> tuple[int, ...]:
    return 2, 3


def _layer_results(node: Any) -> Any:
    names = ("input", "h0", "c0", "weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return _operations().lstm_layer(*_saved(node, *names), None, node.saved_reverse)


@shown("result0", "MkldnnRnnLayerBackward0")
def _layer_outputs(node: Any) -> Any:
    return _layer_results(node)[0]


@shown("result1", "MkldnnRnnLayerBackward0")
def _layer_hidden(node: Any) -> Any:
    return _layer_results(node)[1]


@shown("result2", "MkldnnRnnLayerBackward0")
def _layer_cell(node: Any) -> Any:
    return _layer_results(node)[2]


@shown("weight2", "MkldnnRnnLayerBackward0")
def _layer_bias(node: Any) -> Any:
    """A layer without biases has its weights in their places."""
    return node.unpack("weight_ih" if node.saved_bias_ih is None else "bias_ih")


@shown("weight3", "MkldnnRnnLayerBackward0")
def _layer_recurrent_bias(node: Any) -> Any:
    return node.unpack("weight_hh" if node.saved_bias_hh is None else "bias_hh")


@shown("has_biases", "MkldnnRnnLayerBackward0")
def _has_biases(node: Any) -> bool:
    return node.saved_bias_ih is not None


@shown("hidden_size", "MkldnnRnnLayerBackward0")
def _hidden_size(node: Any) -> int:
    return int(node.output_metadata[0].shape[-1])


@shown("batch_sizes", "MkldnnRnnLayerBackward0")
def _no_batch_sizes(node: Any) -> tuple[int, ...]:
    return ()


@shown("mode", "MkldnnRnnLayerBackward0")
def _mode_of_lstm(node: Any) -> int:
    return 2


@shown("num_layers", "MkldnnRnnLayerBackward0")
def _one_layer(node: Any) -> int:
    return 1


@shown("batch_first", "MkldnnRnnLayerBackward0")
def _batch_first(node: Any) -> bool:
    return bool(node.network[0])


@shown("bidirectional", "MkldnnRnnLayerBackward0")
def _bidirectional(node: Any) -> bool:
    return bool(node.network[1])


@shown("train", "MkldnnRnnLayerBackward0")
def _train(node: Any) -> bool:
    return bool(node.network[2])
