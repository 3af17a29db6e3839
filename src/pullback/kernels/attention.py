"""Scaled dot-product attention without keeping the matrix of weights: it is computed anew going backward."""

from __future__ import annotations

import math

import numpy as np

from pullback.backend.halves import rounded
from pullback.backend.unpromised_bits import note_product
from pullback.kernels.accumulation import add_short_rows, has_short_rows, largest_along, widened
from pullback.native import by_device, native
from pullback.typing import Array

# Scores at a time; they stay in the cache.
_CHUNK = 2**19


@native
def attention_fused(
    query: Array, key: Array, value: Array, attn_mask: Array | None, is_causal: bool, scale: float | None
) -> tuple[Array, Array]:
    """softmax(query @ key.T * scale + mask) @ value over (N, H, L, E), and the log-sum-exp of each row of scores."""
    batch, heads, length, _ = query.shape
    factor = _factor(scale, query)
    q, k, v, mask = _flattened(query, key, value, attn_mask)
    result = np.empty((len(q), length, value.shape[-1]), q.dtype)
    normalizer = np.empty((len(q), length), q.dtype)
    step = max(1, _CHUNK // max(1, length * key.shape[2]))
    for start in range(0, len(q), step):
        part = slice(start, start + step)
        scores = _scores(q[part], k[part], None if mask is None else mask[part], is_causal, factor)
        top = largest_along(scores, 2) if scores.shape[2] else np.full((*scores.shape[:2], 1), -np.inf, q.dtype)
        top[np.isneginf(top)] = 0
        scores -= top
        np.exp(scores, out=scores)
        total = add_short_rows(scores, True) if has_short_rows(scores, (2,)) else scores.sum(-1, keepdims=True)
        total[total == 0] = 1  # no key is seen: the result is zero
        note_product(scores, v.shape[-1])
        np.matmul(scores, v[part], out=result[part])
        result[part] /= total
        normalizer[part] = (np.log(total) + top)[..., 0]
    shape = (batch, heads, length)
    output = rounded(result.reshape(*shape, value.shape[-1]), query.dtype)
    if query.strides[1] < query.strides[2]:  # (N, L, H, E) or (L, N, H, E) seen as (N, H, L, E): so is the output
        seen = (1, 2, 0, 3) if query.strides[0] < query.strides[2] else (0, 2, 1, 3)
        output = np.ascontiguousarray(output.transpose(np.argsort(seen))).transpose(seen)
    return output, normalizer.reshape(shape)


def _flattened(
    query: Array, key: Array, value: Array, attn_mask: Array | None
) -> tuple[Array, Array, Array, Array | None]:
    """Batches and heads as one dimension, in the dtype to compute in."""
    lead = query.shape[:2]
    q, k, v = (np.ascontiguousarray(widened(a)).reshape(-1, *a.shape[2:]) for a in (query, key, value))
    if attn_mask is None:
        return q, k, v, None
    whole = (*lead, query.shape[2], key.shape[2])
    mask = np.broadcast_to(attn_mask, whole)
    if all(s == 0 for s in mask.strides[:2]) or math.prod(lead) == 1:
        return q, k, v, np.broadcast_to(mask[0, 0], (len(q), *whole[2:]))
    return q, k, v, mask.reshape(-1, *whole[2:])


def _factor(scale: float | None, query: Array) -> float:
    """The factor of the scores; None stands for the usual one."""
    return 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale


def _scores(q: Array, k: Array, mask: Array | None, is_causal: bool, scale: float) -> Array:
    note_product(q, k.shape[1])
    scores: Array = np.matmul(q * q.dtype.type(scale), k.transpose(0, 2, 1))
    if is_causal:
        # Five times as fast as assigning to the elements that a mask names.
        np.copyto(scores, -np.inf, where=~np.tri(scores.shape[1], scores.shape[2], dtype=bool))
    if mask is not None:
        if mask.dtype.kind == "b":
            np.copyto(scores, -np.inf, where=~mask)
        else:
            scores += mask
    return scores


@native
def attention_back(
    grad: Array, query: Array, key: Array, value: Array, attn_mask: Array | None, is_causal: bool, scale: float | None,
    result: Array, logsumexp: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The gradients with respect to query, key and value."""
    factor = _factor(scale, query)
    q, k, v, mask = _flattened(query, key, value, attn_mask)
    g, out, _, _ = _flattened(grad, result, grad, None)
    normalizer = logsumexp.reshape(len(q), -1, 1)
    to_query, to_key, to_value = np.empty_like(q), np.empty_like(k), np.empty_like(v)
    inner = np.einsum("ble,ble->bl", g, out)[..., None]
    step = max(1, _CHUNK // max(1, q.shape[1] * k.shape[1]))
    for start in range(0, len(q), step):
        part = slice(start, start + step)
        weights = _scores(q[part], k[part], None if mask is None else mask[part], is_causal, factor)
        weights -= normalizer[part]
        np.exp(weights, out=weights)
        note_product(weights, max(g.shape[-1], k.shape[-1]))
        np.matmul(weights.transpose(0, 2, 1), g[part], out=to_value[part])
        scores = np.matmul(g[part], v[part].transpose(0, 2, 1))
        scores -= inner[part]
        scores *= weights
        scores *= q.dtype.type(factor)
        np.matmul(scores, k[part], out=to_query[part])
        np.matmul(scores.transpose(0, 2, 1), q[part], out=to_key[part])
    parts = zip((to_query, to_key, to_value), (query, key, value), strict=True)
    first, second, third = (rounded(p.reshape(a.shape), a.dtype) for p, a in parts)
    return first, second, third


@by_device
def attention_grouped(
    query: Array, key: Array, value: Array, attn_mask: Array | None, is_causal: bool, scale: float
) -> tuple[Array, Array]:
    """Attention in which several heads of the query share a head of key and value."""
    heads = query.shape[1]
    return attention_fused(query, _for_each(key, heads), _for_each(value, heads), attn_mask, is_causal, scale)


def _for_each(array: Array, heads: int) -> Array:
    """The heads of key or value, each as often as the query has heads for it."""
    return np.repeat(array, heads // array.shape[1], 1)


@by_device
def attention_allowed(query: Array, key: Array, attn_mask: Array | None, is_causal: bool) -> Array:
    """One where a query may see a key, else zero, shaped to broadcast against the scores."""
    allowed: Array = np.tri(query.shape[2], key.shape[2], dtype=bool) if is_causal else np.ones((1, 1), bool)
    if attn_mask is not None:
        allowed = allowed & (attn_mask if attn_mask.dtype.kind == "b" else attn_mask != -np.inf)
    return allowed.astype(query.dtype)


@by_device
def attention_bias(query: Array, key: Array, attn_mask: Array | None, is_causal: bool) -> Array:
    """What is added to the scores; a large negative number, not an infinite one, where a key may not be seen."""
    allowed = attention_allowed(query, key, attn_mask, is_causal)
    hidden = (1 - allowed) * allowed.dtype.type(-1e4 if allowed.dtype.itemsize == 2 else -1e30)
    if attn_mask is None or attn_mask.dtype.kind == "b":
        return hidden
    return np.where(allowed == 0, hidden, attn_mask).astype(query.dtype, copy=False)
