"""Rules of kernels/embeddings.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, linear, wrt


@linear(
    out=False,
    backward="embedding_dense_backward(grad, indices, weight.shape[0], padding_idx, scale_grad_by_freq) if not sparse else "
    "embedding_gradient(grad, indices, weight.shape[0], padding_idx, scale_grad_by_freq, sparse)",
    lenient=True,
)
def embedding(
    grad: Tensor, weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Pullback:
    return wrt(weight=F.embedding_gradient(grad, indices, weight.shape[0], padding_idx, scale_grad_by_freq, sparse))


@linear(node="EmbeddingDenseBackwardBackward0", out=False, fresh=True)
def embedding_back(
    grad: Tensor, input: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool
) -> Pullback:
    return wrt(input=F.embedding_take(grad, indices, padding_idx, scale_grad_by_freq))


@linear(out=False)
def embedding_take(
    grad: Tensor, input: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool
) -> Pullback:
    return wrt(input=F.embedding_back(grad, indices, input.shape[0], padding_idx, scale_grad_by_freq))
