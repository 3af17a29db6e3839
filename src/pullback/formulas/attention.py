"""The gradient of attention as operations, for differentiating it again."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.facts import declare


@declare(fresh=True)
def attention_back(
    grad: Any, query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float, result: Any,
    logsumexp: Any,
) -> Any:  # fmt: skip
    """The gradients with respect to query, key and value."""
    scores = F.mul(F.matmul(query, F.transpose(key, 2, 3)), scale)
    if attn_mask is None and not is_causal:
        weights = F.softmax(scores, 3)
    else:
        biased = F.add(scores, F.attention_bias(query, key, attn_mask, is_causal))
        weights = F.mul(F.softmax(biased, 3), F.attention_allowed(query, key, attn_mask, is_causal))
    to_value = F.matmul(F.transpose(weights, 2, 3), grad)
    to_scores = F.softmax_backward_data(F.matmul(grad, F.transpose(value, 2, 3)), weights, 3)
    scaled = F.mul(to_scores, scale)
    return F.matmul(scaled, key), F.matmul(F.transpose(scaled, 2, 3), query), to_value


def attention_grouped_back(
    grad: Any, query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float, result: Any,
    logsumexp: Any,
) -> Any:  # fmt: skip
    """The gradients of attention in which several heads of the query share a head of key and value."""
    batch, own, length, width = key.shape
    apart = (batch, own, query.shape[1] // own, length, width)
    keys, values = (
        F.reshape(F.expand(F.unsqueeze(t, 2), apart), (batch, query.shape[1], length, width)) for t in (key, value)
    )
    first, second, third = F.attention_back(grad, query, keys, values, attn_mask, is_causal, scale, result, logsumexp)
    return first, F.sum(F.reshape(second, apart), (2,)), F.sum(F.reshape(third, apart), (2,))
