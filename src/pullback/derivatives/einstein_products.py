"""Rules of kernels/einstein_products.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, multilinear, wrt


@multilinear(node="ViewBackward0", parts="einsum_steps(labels, input, other)", fused="einsum_node", public="einsum")
def einstein_product(grad: Tensor, input: Tensor, other: Tensor, labels: str) -> Pullback:
    return wrt(
        input=F.einstein_product_first(grad, other, labels), other=F.einstein_product_second(grad, input, labels)
    )


@multilinear(node="MulBackward0", parts="einsum_steps(labels, input, other)", fused="einsum_node", public="einsum")
def einstein_outer(grad: Tensor, input: Tensor, other: Tensor, labels: str) -> Pullback:
    return wrt(
        input=F.einstein_product_first(grad, other, labels), other=F.einstein_product_second(grad, input, labels)
    )


@multilinear(
    node="ViewBackward0", parts="einsum_steps(labels, input, other, third)", fused="einsum_node", public="einsum"
)
def einstein_triple(grad: Tensor, input: Tensor, other: Tensor, third: Tensor, labels: str) -> Pullback:
    return wrt(
        input=F.einstein_triple_part(grad, other, third, labels, 0),
        other=F.einstein_triple_part(grad, input, third, labels, 1),
        third=F.einstein_triple_part(grad, input, other, labels, 2),
    )
