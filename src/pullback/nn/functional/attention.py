"""Attention."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as G
from pullback import functions
from pullback.backend.dtype import cpp_type_name, float32
from pullback.facts import declare
from pullback.functions.conversion import to
from pullback.graph.tangents import tangents_flow
from pullback.modes.grad_mode import is_grad_enabled
from pullback.modes.interception import taken_whole
from pullback.nn.functional.dropouts import dropout
from pullback.tensor.tensor import Tensor


@taken_whole
@declare(autocast="lower", written_in="c")
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """softmax(query @ key.T * scale + mask) @ value over the last two dimensions; `scale` is 1 / sqrt(E) if not given.

    `query` is (..., L, E), `key` (..., S, E), `value` (..., S, V), the result (..., L, V). `attn_mask` broadcasts to
    (..., L, S): numbers are added before the softmax, False leaves a key out. `is_causal` lets position i see the
    keys up to i; `dropout_p` drops weights (also outside of training: give 0 there). With `enable_gqa` several
    query heads share one head of `key` and `value`.

    >>> import pullback
    >>> one = pullback.ones(1, 2)
    >>> pullback.nn.functional.scaled_dot_product_attention(one, one, one * 3)
    tensor([[3., 3.]])
    """
    _check(query, key, value, attn_mask, is_causal)
    factor = 1 / math.sqrt(query._array.shape[-1] or 1) if scale is None else scale
    shares = enable_gqa and _shares_heads(query, key, value)
    if not 0.0 <= dropout_p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    if query._array.shape[-1] == value._array.shape[-1] and not (query._array.size and key._array.size):
        attn_mask = None  # nobody is seen; PyTorch does not look at it either
    if _can_fuse(query, key, value, attn_mask, dropout_p, shares):
        fused = G.attention_grouped if shares else G.attention_fused
        return fused(query, key, value, attn_mask, is_causal, factor)[0]
    if shares:
        key, value = (_repeat_heads(t, query._array.shape[-3]) for t in (key, value))
    return _composite(query, key, value, attn_mask, dropout_p, is_causal, factor)


def _check(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool) -> None:
    tensors = {"query": query, "key": key, "value": value}
    if any(t._array.dtype != query._array.dtype for t in tensors.values()):
        shown = " ".join(
            f"{'and ' if n == 'value' else ''}{n}.dtype: {cpp_type_name(t._array.dtype)}" for n, t in tensors.items()
        )
        raise RuntimeError(f"Expected query, key, and value to have the same dtype, but got {shown} instead.")
    if any(t._array.ndim < 2 for t in tensors.values()):
        shown = " ".join(f"{'and ' if n == 'value' else ''}{n}.dim: {t._array.ndim}" for n, t in tensors.items())
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got {shown} instead."
        )
    if attn_mask is None:
        return
    if is_causal:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if (
        attn_mask._array.dtype.kind != "b"
        and attn_mask._array.dtype != query._array.dtype
        and attn_mask.dtype is not float32
    ):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{cpp_type_name(attn_mask._array.dtype)} and  query.dtype: {cpp_type_name(query._array.dtype)} instead."
        )


def _can_fuse(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, shares: bool
) -> bool:
    """The fused kernel takes (N, H, L, E) of equal N and H (or shared heads), no dropout and a mask without gradient."""
    q, k, v = query._array.shape, key._array.shape, value._array.shape
    return (
        dropout_p == 0.0
        and len(q) == len(k) == len(v) == 4
        and (q[:2] == k[:2] or (shares and q[0] == k[0]))
        and k[:2] == v[:2]
        and q[3] == k[3] == v[3]
        and k[2] == v[2]
        and query._array.dtype.kind in "fV"
        and 0 not in (*q, *k)
        and not (attn_mask is not None and _is_differentiated(attn_mask))
    )


def _shares_heads(query: Tensor, key: Tensor, value: Tensor) -> bool:
    heads, of_key, of_value = (t._array.shape[-3] for t in (query, key, value))
    return heads != of_key or heads != of_value


def _is_differentiated(tensor: Tensor) -> bool:
    return (tensor.requires_grad and is_grad_enabled()) or tangents_flow(tensor)


def _repeat_heads(tensor: Tensor, heads: int) -> Tensor:
    own = tensor._array.shape[-3]
    return tensor if own == heads else functions.repeat_interleave(tensor, heads // own, -3)


def _composite(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, is_causal: bool, scale: float
) -> Tensor:
    dtype = query.dtype
    if dtype.itemsize == 2:  # computed in float32 and rounded at the end, as in PyTorch
        query, key, value = (to(t, float32) for t in (query, key, value))
    half = math.sqrt(scale) if scale >= 0 else scale
    first, second = (half, half) if scale >= 0 else (scale, 1.0)
    keys = functions.transpose(key, -2, -1)
    scores = functions.matmul(functions.mul_scalar(query, first), functions.mul_scalar(keys, second))
    mask: Any = attn_mask
    if is_causal:
        mask = functions.ne(functions.attention_allowed(_as_4d(query), _as_4d(key), None, True), 0)
    if mask is not None:
        if mask._array.dtype.kind == "b":
            mask = functions.masked_fill(query.new_zeros(mask.shape), functions.logical_not(mask), -math.inf)
        scores = functions.add(scores, mask)
    # A query that sees no key has no weights rather than NaNs.
    weights = functions.safe_softmax(scores, -1)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return to(functions.matmul(weights, value), dtype)


def _as_4d(tensor: Tensor) -> Tensor:
    return functions.reshape(tensor, (1, math.prod(tensor.shape[:-2]), *tensor.shape[-2:]))
