"""Rules of kernels/attention.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, non_differentiable, wrt


@general(
    node="ScaledDotProductFlashAttentionForCpuBackward0", outputs=("result", "logsumexp"), differentiable=(True, False),
    out=False, profiled="scaled_dot_product_attention",
    aten="_scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, is_causal, attn_mask=attn_mask, "
    "scale=told_scale(scale, query))",
    backward="_scaled_dot_product_flash_attention_for_cpu_backward(grad, query, key, value, result, logsumexp, 0.0, "
    "is_causal, attn_mask=attn_mask, scale=told_scale(scale, query))",
)  # fmt: skip
def attention_fused(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor, is_causal: bool, scale: float, *,
    result: Tensor, logsumexp: Tensor,
) -> Pullback:  # fmt: skip
    parts = F.attention_back(grad, query, key, value, attn_mask, is_causal, scale, result, logsumexp)
    return wrt(query=parts[0], key=parts[1], value=parts[2])


@general(
    node="ScaledDotProductFlashAttentionForCpuBackward0", outputs=("result", "logsumexp"), differentiable=(True, False),
    out=False, profiled="scaled_dot_product_attention",
)  # fmt: skip
def attention_grouped(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor, is_causal: bool, scale: float, *,
    result: Tensor, logsumexp: Tensor,
) -> Pullback:  # fmt: skip
    parts = F.attention_grouped_back(grad, query, key, value, attn_mask, is_causal, scale, result, logsumexp)
    return wrt(query=parts[0], key=parts[1], value=parts[2])


@non_differentiable(out=False)
def attention_bias(query: Tensor, key: Tensor, attn_mask: Tensor, is_causal: bool) -> None: ...


@non_differentiable(out=False)
def attention_allowed(query: Tensor, key: Tensor, attn_mask: Tensor, is_causal: bool) -> None: ...
