"""The steps of fused operations, as PyTorch records them. See Note [Fused nodes].

A function named after a rule's `fused` option takes the fused node and records its steps again; the others take tensors.
"""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as G
from pullback.backend.dtype import float32
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.fused_node import recorded_node, stand_in
from pullback.kernels.einstein_products import _parts_of
from pullback.tensor.tensor import Tensor
from pullback.typing import Shape


def linear_node(node: Any) -> Any:
    """The steps of a node of `linear`: edges to the bias, if it has one, to the input and to the weight."""
    outputs = node.shape[-1]
    has_bias = len(node.next_edges) == 3
    weight = node.saved_weight if not node.released else None
    given = node.saved_input if not node.released else None
    known = weight if weight is not None else given
    inner = 1 if known is None else known._array.shape[-1]
    matrix = stand_in(node, "weight", 1 + has_bias, (outputs, inner))
    input = stand_in(node, "input", int(has_bias), (*node.shape[:-1], inner))
    bias = stand_in(node, "bias", 0, (outputs,)) if has_bias else None
    return linear_steps(input, matrix, bias, fold=node.name() != "AddBackward0")


def linear_steps(input: Tensor, weight: Tensor, bias: Tensor | None, *, fold: bool = True) -> Any:
    """A linear layer in steps; a bias is added by the product itself where the input is a matrix or can be viewed as one."""
    shape = input._array.shape
    if bias is not None and len(shape) != 2 and fold and can_fold_linear(input, bias):
        rows = G.view(input, (_count(shape[:-1]), shape[-1]))
        return G.view(G.addmm(bias, rows, G.t(weight)), (*shape[:-1], weight._array.shape[0]))
    columns = G.t(weight)
    if bias is None:
        return matmul_steps(input, columns) if len(shape) != 2 else G.mm(input, columns)
    if len(shape) == 2:
        return G.addmm(bias, input, columns)
    return G.add(matmul_steps(input, columns), bias)


def can_fold_linear(input: Tensor, bias: Tensor) -> bool:
    """Whether a linear layer views its input as a matrix, so that the product can add the bias."""
    return bool(input._array.flags.c_contiguous) and bias._array.ndim == 1


def matmul_node(node: Any) -> Any:
    """The steps of a batched matrix product."""
    input = stand_in(node, "input", 0, node.saved_input_shape)
    other = stand_in(node, "other", 1, node.saved_other_shape)
    return matmul_steps(input, other)


def matmul_steps(input: Tensor, other: Tensor) -> Any:
    """A product of which one factor has batches, in steps: as one matrix product where the batches can be folded."""
    if folds(input, other):
        return _folded_product(input, other)
    first, second = input._array.shape, other._array.shape
    rows = first[-2] if len(first) > 1 else 1
    columns = second[-1] if len(second) > 1 else 1
    batches = _broadcast(first[:-2], second[:-2])
    count = _count(batches)
    left = G.reshape(G.expand(input, (*batches, rows, first[-1])), (count, rows, first[-1]))
    if len(second) == 1:
        spread = G.reshape(G.expand(other, (*batches, second[0])), (count, second[0]))
        product = G.squeeze_dim(G.bmm(left, G.unsqueeze(spread, 2)), -1)
        return G.unsafe_view(product, (*batches, *first[-2:-1]))
    right = G.reshape(G.expand(other, (*batches, *second[-2:])), (count, *second[-2:]))
    return G.unsafe_view(G.bmm(left, right), (*batches, *first[-2:-1], columns))


def can_multiply(input: Tensor, other: Tensor) -> bool:
    """Whether shapes and dtypes fit, so that the steps raise no error of their own."""
    first, second = input._array.shape, other._array.shape
    inner = second[0] if len(second) == 1 else second[-2]
    batches = zip(reversed(first[:-2]), reversed(second[:-2]), strict=False)
    return (
        first[-1] == inner
        and input._array.dtype == other._array.dtype
        and all(a == b or a == 1 or b == 1 for a, b in batches)
    )


def can_apply_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """The same for a linear layer."""
    if not all(isinstance(t, Tensor) for t in (input, weight)) or not isinstance(bias, (Tensor, type(None))):
        return False
    dtypes = {t._array.dtype for t in (input, weight, bias) if t is not None}
    if weight._array.ndim != 2 or not input._array.ndim or input._array.shape[-1] != weight._array.shape[1]:
        return False
    return len(dtypes) == 1 and (bias is None or bias._array.shape == weight._array.shape[:1])


def flips(input: Tensor, other: Tensor) -> bool:
    """Whether the product ends as a copy of a transposed one: a matrix that needs a gradient before a batch of others."""
    if input._array.ndim == 3:
        return other._array.ndim == 3 and _single_batch(input, other) is input
    return input._array.ndim == 2 and other._array.ndim > 2


def folds(input: Tensor, other: Tensor) -> bool:
    """Whether PyTorch folds the batches of one factor into its rows: the other has none, or a single one."""
    first, second = input._array.ndim, other._array.ndim
    if first == 3 and second == 3:
        small = _single_batch(input, other)
        return small is not None and small._requires_grad
    if min(first, second) > 2:
        return False
    if (other if first > second else input)._requires_grad:
        return True
    if first == 2:
        return False
    return _is_stacked(input._array if first > second else other._array.swapaxes(-1, -2))


def _single_batch(input: Tensor, other: Tensor) -> Tensor | None:
    """The factor that is a batch of one matrix, where the other has more."""
    first, second = input._array.shape[0], other._array.shape[0]
    if (first == 1) == (second == 1):
        return None
    return input if first == 1 else other


def _is_stacked(array: Any) -> bool:
    """Whether each dimension but the last begins where the next one ends."""
    sizes, steps = array.shape, array.strides
    return all(steps[i] == steps[i + 1] * sizes[i + 1] for i in range(len(sizes) - 2))


def _folded_product(input: Tensor, other: Tensor) -> Any:
    first_is_larger = input._array.ndim > other._array.ndim
    if input._array.ndim == other._array.ndim:
        small = _single_batch(input, other)
        first_is_larger = small is other
        input, other = (input, G.squeeze_dim(other, 0)) if first_is_larger else (G.squeeze_dim(input, 0), other)
    large = input if first_is_larger else G.transpose(other, -1, -2)
    small = other if first_is_larger else (G.t(input) if input._array.ndim == 2 else input)
    shape = large._array.shape
    rows = G.reshape(large, (_count(shape[:-1]), shape[-1]))
    if small._array.ndim == 1:
        return G.unsafe_view(G.mv(rows, small), shape[:-1])
    product = G.unsafe_view(G.mm(rows, small), (*shape[:-1], small._array.shape[1]))
    if first_is_larger:
        return product
    flipped = G.transpose(product, -1, -2)
    return flipped if flipped._array.flags.c_contiguous else G.contiguous_copy(flipped, "C")


def einsum_node(node: Any) -> Any:
    """The steps of a product by labels; of a factor that is gone, dimensions that nothing tells have size 1."""
    *given, result = _parts_of(node.saved_labels)
    names = ("input", "other", "third")[: len(given)]
    sizes = dict(zip(result, node.shape, strict=True))
    for name, labels in zip(names, given, strict=True):
        saved = None if node.released else getattr(node, f"saved_{name}")
        if saved is not None:
            sizes.update(zip(labels, saved._array.shape, strict=True))
    factors = [
        stand_in(node, name, place, tuple([sizes.get(label, 1) for label in labels]))
        for place, (name, labels) in enumerate(zip(names, given, strict=True))
    ]
    return einsum_steps(node.saved_labels, *factors)


def einsum_steps(labels: str, *operands: Tensor) -> Any:
    """A product by labels in steps."""
    from pullback.functions import einstein_sums  # lazy: few programs have it

    return einstein_sums.einsum_steps(labels, *operands)


def rms_norm_node(node: Any) -> Any:
    """The steps of a root mean square norm."""
    shape = node.saved_normalized_shape
    input = stand_in(node, "input", 0, node.shape)
    weight = None if node.saved_weight is None and node.next_edges[1] is None else stand_in(node, "weight", 1, shape)
    return rms_norm_steps(input, shape, weight, node.saved_eps)


def rms_norm_steps(input: Tensor, shape: Shape, weight: Tensor | None, eps: float | None) -> Any:
    """A root mean square norm in steps; the root of complex numbers is that of their squares, not of magnitudes."""
    dtype = input._array.dtype
    dims = tuple([input._array.ndim - 1 - d for d in range(len(shape))])
    values = G.to_dtype(input, float32) if dtype.itemsize == 2 else input
    bound = 2.0**-23 if values.dtype is float32 else 2.0**-52
    mean = G.mean(G.pow_scalar(values, 2), dims, True)
    normalized = G.mul(values, G.rsqrt(G.add_scalar(mean, bound if eps is None else eps)))
    result = normalized if weight is None else G.mul(normalized, weight)
    return G.to_dtype(result, dtype) if dtype.itemsize == 2 else result


def ndtr_node(node: Any) -> Any:
    """The steps of the normal distribution function."""
    return ndtr_steps(stand_in(node, "input", 0, node.shape))


def ndtr_steps(input: Tensor) -> Any:
    """The normal distribution function by the error function."""
    return G.mul_scalar(G.add_scalar(G.erf(G.mul_scalar(input, math.sqrt(0.5))), 1), 0.5)


def outer_node(node: Any) -> Any:
    """The steps of an outer product."""
    column = stand_in(node, "input", 0, node.shape[:1], node.saved_input_dtype)
    row = stand_in(node, "vec2", 1, node.shape[1:], node.saved_vec2_dtype)
    return G.mul(G.view(column, (node.shape[0], 1)), row)


def recurrent_node(node: Any) -> Any:
    """The steps of a recurrent layer: the output and the final states."""
    recorded = recorded_node(node)
    kind = {"lstm_layer": "lstm", "gru_layer": "gru"}.get(recorded.operation) or recorded.saved_nonlinearity
    output, hidden = (recorded.output_metadata[k].shape for k in (0, 1))
    size, rows = output[-1], {"lstm": 4, "gru": 3}.get(kind, 1) * output[-1]
    names = ("input", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "h0", "c0")[: len(recorded.next_edges)]
    columns = _known_columns(recorded)
    shapes = (*output[:-1], columns), (rows, columns), (rows, size), (rows,), (rows,), hidden, hidden
    parts = [
        None
        if name.startswith("bias") and getattr(recorded, f"saved_{name}") is None and recorded.next_edges[place] is None
        else stand_in(recorded, name, place, shape, recorded.output_metadata[0].numpy_dtype)
        for place, (name, shape) in enumerate(zip(names, shapes, strict=False))
    ]
    input, *weights = parts[:5]
    return G.unrolled(kind, input, parts[5:], (*weights, None), recorded.saved_batch_sizes, recorded.saved_reverse)


lstm_node = gru_node = rnn_node = recurrent_node


def _known_columns(node: Any) -> int:
    """The size of the input of a recurrent layer, 1 where nothing tells it any more."""
    if not node.released:
        return int(node.saved_input._array.shape[-1])
    edge = node.next_edges[1]
    return int(edge[0].variable.shape[1]) if edge is not None and isinstance(edge[0], AccumulateGrad) else 1


def _broadcast(first: Shape, second: Shape) -> Shape:
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    padded = (1,) * (len(longer) - len(shorter)) + tuple(shorter)
    return tuple([b if a == 1 else a for a, b in zip(longer, padded, strict=True)])


def _count(sizes: Shape) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count
