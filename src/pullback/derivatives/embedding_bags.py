"""Rules of kernels/embedding_bags.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, linear, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@general(
    node="EmbeddingBagBackward0", outputs=("result", "owner", "factors", "sizes", "chosen"),
    differentiable=(True, False, False, False, False), out=False, profiled="_embedding_bag",
    gradient_nodes="weight: (grad, per_sample_weights)",
)  # fmt: skip
def embedding_bag_forward(
    grad: Tensor, weight: Tensor, indices: Tensor, per_sample_weights: Tensor, mode: int, padding_idx: int,
    scale_grad_by_freq: bool, sparse: bool, *, owner: Tensor, factors: Tensor, chosen: Tensor,
) -> Pullback:  # fmt: skip
    return wrt(
        weight=F.embedding_bag_back(
            grad, weight.shape[0], indices, per_sample_weights, mode, padding_idx, scale_grad_by_freq, sparse, owner,
            factors, chosen,
        ),
        per_sample_weights=F.embedding_bag_sample_back(grad, weight, indices, padding_idx, owner),
    )  # fmt: skip


@linear(out=False)
def put_rows(grad: Tensor, input: Tensor, indices: Tensor) -> Pullback:
    return wrt(input=F.take_rows(grad, indices))


@linear(out=False)
def take_rows(grad: Tensor, input: Tensor, indices: Tensor) -> Pullback:
    return wrt(input=F.put_rows(grad, indices, input.shape[0]))
