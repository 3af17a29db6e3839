"""The transformer: encoder and decoder layers, their stacks, and the whole.

A mask is True (or minus infinity, added) where attention is not allowed.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from pullback import creation
from pullback.backend.dtype import bool_
from pullback.modes.grad_mode import is_grad_enabled
from pullback.modes.inside_compiled import is_inside
from pullback.modes.user_warnings import warn_user
from pullback.nn import functional
from pullback.nn.init import xavier_uniform_
from pullback.nn.modules.container import ModuleList
from pullback.nn.modules.dropout import Dropout
from pullback.nn.modules.linear import Linear
from pullback.nn.modules.module import Module
from pullback.nn.modules.multihead_attention import MultiheadAttention
from pullback.nn.modules.normalization import LayerNorm

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip

Activation = str | Callable[[Any], Any]


def _get_activation_fn(activation: Activation) -> Callable[[Any], Any]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    chosen: Callable[[Any], Any] = functional.relu if activation == "relu" else functional.gelu
    return chosen


def _canonical_masks(padding: Any, mask: Any, mask_name: str, like: Any) -> tuple[Any, Any]:
    """Both masks of a layer as numbers; of one kind they should be."""
    if padding is not None and mask is not None and padding.dtype is not mask.dtype:
        warn_user(
            f"Support for mismatched src_key_padding_mask and {mask_name} is deprecated. Use same type for both instead."
        )
    return _canonical_mask(padding, "src_key_padding_mask", like), _canonical_mask(mask, mask_name, like)


def _canonical_mask(mask: Any, name: str, like: Any) -> Any:
    """The mask as numbers to be added to attention scores."""
    if mask is None:
        return None
    if mask.dtype is not bool_ and not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if mask.dtype is not bool_:
        return mask
    return creation.zeros(mask.shape, dtype=like.dtype, device=mask.device).masked_fill_(mask, -math.inf)


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
    """Minus infinity above the diagonal: no position attends to a later one."""
    return creation.full((sz, sz), -math.inf, dtype=dtype).triu(diagonal=1)


def _detect_is_causal_mask(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Whether a mask forbids exactly the later positions; a given answer is taken on trust.

    It is a hint. Compiled functions do without it, since it depends on values, and give the mask itself to attention.
    """
    if is_causal is not None or mask is None:
        return is_causal is True
    side = size if size is not None else mask.size(-2)
    if is_inside() or (side > 1 and not mask.dtype.is_floating_point):  # a mask of truth values holds no infinity
        return False
    causal = _generate_square_subsequent_mask(side, dtype=mask.dtype if mask.dtype.is_floating_point else None)
    if mask.size() != causal.size():
        return False
    return bool((mask == causal).all())


def _get_seq_len(src: Any, batch_first: bool) -> int | None:
    if src.dim() == 2:
        return int(src.size(0))
    return int(src.size(1 if batch_first else 0))


class Transformer(Module):
    """An encoder and a decoder.

    The shapes are (steps, batch, features), or (batch, steps, features) with `batch_first`.
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = "relu", custom_encoder: Any = None,
        custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        options = {"device": device, "dtype": dtype}
        layer_arguments = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
        )  # fmt: skip
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            encoder_layer = TransformerEncoderLayer(*layer_arguments, **options)
            encoder_norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, encoder_norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            decoder_layer = TransformerDecoderLayer(*layer_arguments, **options)
            decoder_norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, decoder_norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None,
        src_key_padding_mask: Any = None, tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        is_batched = src.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if is_batched and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """Minus infinity above the diagonal: no position attends to a later one."""
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                xavier_uniform_(parameter)


class TransformerEncoder(Module):
    """A stack of equal encoder layers.

    A copy of `encoder_layer` for each of `num_layers`, then `norm` if given. `src` (S, N, E), or (N, S, E) for layers
    with `batch_first`, keeps its shape.

    >>> import pullback
    >>> layer = pullback.nn.TransformerEncoderLayer(8, 2, batch_first=True)
    >>> pullback.nn.TransformerEncoder(layer, 2)(pullback.ones(1, 5, 8)).shape
    pullback.Size([1, 5, 8])
    """

    __constants__ = ["norm"]

    def __init__(
        self, encoder_layer: Any, num_layers: int, norm: Any = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        obstacle = _obstacle(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not obstacle
        self.mask_check = mask_check
        if enable_nested_tensor and obstacle:
            warn_user(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {obstacle}")

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool | None = None
    ) -> Any:
        src_key_padding_mask, mask = _canonical_masks(src_key_padding_mask, mask, "mask", src)
        output = src
        batch_first = self.layers[0].self_attn.batch_first if self.num_layers else False
        causal = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, batch_first))
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        if src_key_padding_mask is not None and mask is None and self._is_shortened(src, src_key_padding_mask):
            output = output.masked_fill(src_key_padding_mask.unsqueeze(-1) != 0, 0.0)
        return output if self.norm is None else self.norm(output)

    def _is_shortened(self, src: Any, padding: Any) -> bool:
        """Whether PyTorch computes with sequences of their own lengths here, whose padding comes out as zeros."""
        if not self.use_nested_tensor or self.layers[0].training or not fast_path.enabled:
            return False
        if src.ndim != 3:
            return False
        if is_grad_enabled() and any(t.requires_grad for t in (src, *self.layers[0].parameters())):
            return False
        padded = padding != 0
        return not (padded[:, :-1] & ~padded[:, 1:]).any()  # what is padded stands at the end


class _FastPath:
    """PyTorch's switch for what it computes otherwise in inference: `backends.mha.set_fastpath_enabled`."""

    enabled = True


fast_path = _FastPath()


def _obstacle(layer: Any) -> str:
    """Why PyTorch does not compute an encoder of such layers with sequences of their own lengths; empty if it does."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    obstacles = {
        "norm_first was True": layer.norm_first,
        "self_attn.batch_first was not True(use batch_first for better inference performance)": not attention.batch_first,
        "self_attn was passed bias=False": attention.in_proj_bias is None,
        "self_attn._qkv_same_embed_dim was not True": not attention._qkv_same_embed_dim,
        "activation_relu_or_gelu was not True": not layer.activation_relu_or_gelu,
        "norm1.eps was not equal to encoder_layer.norm2.eps": layer.norm1.eps != layer.norm2.eps,
        "self_attn.num_heads is odd": attention.num_heads % 2 == 1,
    }
    return next((f"encoder_layer.{reason}" for reason, holds in obstacles.items() if holds), "")


class TransformerDecoder(Module):
    """A stack of equal decoder layers.

    A copy of `decoder_layer` for each of `num_layers`, then `norm` if given. `tgt` (T, N, E) keeps its shape; `memory`
    (S, N, E) is what an encoder gave.

    >>> import pullback
    >>> layer = pullback.nn.TransformerDecoderLayer(8, 2)
    >>> pullback.nn.TransformerDecoder(layer, 2)(pullback.ones(4, 1, 8), pullback.ones(5, 1, 8)).shape
    pullback.Size([4, 1, 8])
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        batch_first = self.layers[0].self_attn.batch_first if self.num_layers else False
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, _get_seq_len(tgt, batch_first))
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network, each with a residual connection and a normalisation.

    The input is (L, N, d_model), (N, L, d_model) with `batch_first`, or (L, d_model), and the result has its shape.
    With `norm_first` x = x + attention(norm(x)), then x = x + network(norm(x)); else each normalisation comes after the
    sum.

    >>> import pullback
    >>> TransformerEncoderLayer(8, 2)(pullback.zeros(5, 3, 8)).shape
    pullback.Size([5, 3, 8])
    """

    __constants__ = ["norm_first"]

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **options
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _get_activation_fn(activation)
        self.activation_relu_or_gelu = {functional.relu: 1, functional.gelu: 2}.get(self.activation, 0)

    def forward(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Any:
        src_key_padding_mask, src_mask = _canonical_masks(src_key_padding_mask, src_mask, "src_mask", src)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
        attended = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False, is_causal=is_causal
        )[0]
        return self.dropout1(attended)

    def _ff_block(self, x: Any) -> Any:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the encoder's output, and a feed-forward network.

    `tgt` (T, N, E) keeps its shape: attention to itself, attention to `memory` (S, N, E), and two linear layers, each
    with a residual connection and a norm, which comes before them with `norm_first`.

    >>> import pullback
    >>> pullback.nn.TransformerDecoderLayer(8, 2)(pullback.ones(4, 1, 8), pullback.ones(5, 1, 8)).shape
    pullback.Size([4, 1, 8])
    """

    __constants__ = ["norm_first"]

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        options = {"device": device, "dtype": dtype}
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **options}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _get_activation_fn(activation)

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None, tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        others = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *others)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *others))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
        attended = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )[0]
        return self.dropout1(attended)

    def _mha_block(self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
        attended = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )[0]
        return self.dropout2(attended)

    def _ff_block(self, x: Any) -> Any:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _clones(module: Any, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])
