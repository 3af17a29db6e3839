"""Attention with several heads, from the projections of its inputs to that of its output."""

from __future__ import annotations

import math
from typing import Any

from pullback import functions
from pullback.creation import zeros
from pullback.modes.user_warnings import warn_user
from pullback.nn.functional.attention import scaled_dot_product_attention
from pullback.nn.functional.dropouts import dropout
from pullback.nn.functional.padding import pad
from pullback.tensor.tensor import Tensor


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None,
    add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor, out_proj_bias: Tensor | None,
    training: bool = True, key_padding_mask: Tensor | None = None, need_weights: bool = True,
    attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None, static_k: Tensor | None = None,
    static_v: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attend from (L, N, E) to (S, N, E), or without N, in `num_heads` heads; the output, and the weights if wanted."""
    batched = _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (functions.unsqueeze(t, 1) for t in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = functions.unsqueeze(key_padding_mask, 0)
    length, batch, width = query._array.shape
    _check_sizes(width, embed_dim_to_check, num_heads)
    _check_shapes(key, value, key_padding_mask if static_k is None else None, separate=use_separate_proj_weight)
    if key_padding_mask is not None and attn_mask is not None and key_padding_mask.dtype is not attn_mask.dtype:
        warn_user(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead."
        )
    padding, mask = (
        _as_additive(m, n, query) for m, n in ((key_padding_mask, "key_padding_mask"), (attn_mask, "attn_mask"))
    )
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if is_causal and key_padding_mask is None and not need_weights:
        mask = None
    else:
        is_causal = False
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias, separate)
    mask = _check_mask(mask, length, k._array.shape[0], batch * num_heads)
    if (bias_k is None) != (bias_v is None):
        given, missing = ("bias_v", "bias_k") if bias_k is None else ("bias_k", "bias_v")
        raise AssertionError(f"{given} is set but {missing} is None")
    if bias_k is not None and bias_v is not None:
        k, v = (functions.cat([t, b.repeat(1, batch, 1)]) for t, b in ((k, bias_k), (v, bias_v)))
        mask, padding = (None if m is None else pad(m, (0, 1)) for m in (mask, padding))
    q, k, v = (_heads(t, batch, num_heads, given) for t, given in ((q, None), (k, static_k), (v, static_v)))
    if add_zero_attn:
        k, v = (functions.cat([t, zeros(t.shape[0], 1, t.shape[2], dtype=t.dtype, device=t.device)], 1) for t in (k, v))
        mask, padding = (None if m is None else pad(m, (0, 1)) for m in (mask, padding))
    if padding is not None:
        wide = padding.view(batch, 1, 1, k.shape[1]).expand(-1, num_heads, -1, -1)
        wide = wide.reshape(batch * num_heads, 1, k.shape[1])
        mask = wide if mask is None else functions.add(mask, wide)
    rate = dropout_p if training else 0.0
    if need_weights:
        weights, output = _weighted(q, k, v, mask, rate)
        output = functions.reshape(functions.transpose(output, 0, 1), (length * batch, width))
    else:
        output = _unweighted(q, k, v, mask, rate, is_causal, batch, num_heads)
        output = functions.reshape(functions.permute(output, (2, 0, 1, 3)), (batch * length, width))
    output = functions.linear(output, out_proj_weight, out_proj_bias)
    output = functions.view(output, (length, batch, output.shape[1]))
    result = output if batched else functions.squeeze(output, 1)
    if not need_weights:
        return result, None
    weights = functions.view(weights, (batch, num_heads, length, k.shape[1]))
    if average_attn_weights:
        weights = functions.mean(weights, 1)
    return result, weights if batched else functions.squeeze(weights, 0)


def _check_dims(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    dims = query._array.ndim
    if dims not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor")
    word = "batched" if dims == 3 else "unbatched"
    if key._array.ndim != dims or value._array.ndim != dims:
        raise AssertionError(
            f"For {word} ({dims}-D) `query`, expected `key` and `value` to be {dims}-D but found "
            f"{key._array.ndim}-D and "
            f"{value._array.ndim}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask._array.ndim != dims - 1:
        raise AssertionError(
            f"For {word} ({dims}-D) `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found "
            f"{key_padding_mask._array.ndim}-D tensor instead"
        )
    if attn_mask is not None and attn_mask._array.ndim not in (2, 3):
        raise AssertionError(
            f"For {word} ({dims}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
            f"{attn_mask._array.ndim}-D tensor instead"
        )
    return bool(dims == 3)


def _check_shapes(key: Tensor, value: Tensor, padding: Tensor | None, *, separate: bool) -> None:
    """What PyTorch asserts of keys, values and the mask of keys."""
    if separate:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    if padding is not None:
        for place, wanted in ((0, key.shape[1]), (1, key.shape[0])):
            if padding.shape[place] != wanted:
                raise AssertionError(
                    f"Expected key_padded_mask.shape[{place}] to be {wanted}, but got {padding.shape[place]}"
                )


def _check_sizes(width: int, expected: int, num_heads: int) -> None:
    if width != expected:
        raise AssertionError(f"was expecting embedding dimension of {expected}, but got {width}")
    if width % num_heads:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")


def _as_additive(mask: Tensor | None, name: str, query: Tensor) -> Tensor | None:
    """A mask to add to the scores: minus infinity where a boolean one is True."""
    if mask is None:
        return None
    if mask._array.dtype.kind == "b":
        return functions.masked_fill(zeros(*mask.shape, dtype=query.dtype, device=query.device), mask, -math.inf)
    if mask._array.dtype.kind not in "fV":
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return mask


def _check_mask(mask: Tensor | None, length: int, source: int, rows: int) -> Tensor | None:
    if mask is None:
        return None
    expected = (length, source) if mask._array.ndim == 2 else (rows, length, source)
    if mask._array.shape != expected:
        raise RuntimeError(
            f"The shape of the {mask._array.ndim}D attn_mask is {tuple(mask._array.shape)}, but should be {expected}."
        )
    return functions.unsqueeze(mask, 0) if mask._array.ndim == 2 else mask


def _project(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor | None, bias: Tensor | None, separate: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values: one product where all come from one tensor."""
    if separate is not None:
        biases = (None, None, None) if bias is None else functions.chunk(bias, 3)
        q, k, v = (functions.linear(t, w, b) for t, w, b in zip((query, key, value), separate, biases, strict=True))
        return q, k, v
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    if query is key and key is value:
        q, k, v = _parts(functions.linear(query, weight, bias), 3)
        return q, k, v
    if key is value:
        sizes = [query.shape[-1], weight.shape[0] - query.shape[-1]]
        own, shared = functions.split(weight, sizes)
        biases = (None, None) if bias is None else functions.split(bias, sizes)
        q = functions.linear(query, own, biases[0])
        return (q, *_parts(functions.linear(key, shared, biases[1]), 2))
    weights = functions.chunk(weight, 3)
    biases = (None, None, None) if bias is None else functions.chunk(bias, 3)
    q, k, v = (functions.linear(t, w, b) for t, w, b in zip((query, key, value), weights, biases, strict=True))
    return q, k, v


def _parts(projected: Tensor, count: int) -> tuple[Any, ...]:
    """The parts of the last dimension, each contiguous: one copy makes all of them so."""
    apart = functions.unflatten(projected, -1, (count, projected.shape[-1] // count))
    whole = functions.contiguous(functions.squeeze(functions.transpose(functions.unsqueeze(apart, 0), 0, -2), -2))
    return tuple([functions.select(whole, 0, place) for place in range(count)])


def _heads(tensor: Tensor, batch: int, num_heads: int, given: Tensor | None) -> Tensor:
    """(L, N, E) as (N * heads, L, E / heads); a tensor that is given in that form instead is taken as it is."""
    if given is not None:
        return given
    length, width = tensor.shape[0], tensor.shape[-1]
    split = functions.view(functions.contiguous(tensor), (length, batch * num_heads, width // num_heads))
    return functions.transpose(split, 0, 1)


def _weighted(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, rate: float) -> tuple[Tensor, Tensor]:
    scaled = functions.mul(q, math.sqrt(1.0 / q.shape[-1]))
    keys = functions.transpose(k, -2, -1)
    scores = functions.bmm(scaled, keys) if mask is None else functions.baddbmm(mask, scaled, keys)
    weights = functions.softmax(scores, -1)
    if rate > 0.0:
        weights = dropout(weights, rate)
    return weights, functions.bmm(weights, v)


def _unweighted(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, rate: float, is_causal: bool, batch: int, num_heads: int
) -> Tensor:
    if mask is not None:
        shape = mask.shape
        mask = functions.unsqueeze(mask, 0) if shape[0] == 1 else functions.view(mask, (batch, num_heads, *shape[1:]))
    q, k, v = (functions.view(t, (batch, num_heads, *t.shape[1:])) for t in (q, k, v))
    return scaled_dot_product_attention(q, k, v, mask, rate, is_causal)
