"""Multi-head attention as a module."""

from __future__ import annotations

from typing import Any

from pullback import creation
from pullback.nn import functional, init
from pullback.nn.modules.linear import NonDynamicallyQuantizableLinear
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter


class MultiheadAttention(Module):
    """Attention of several heads side by side, between learned projections.

    Queries, keys and values have the batch in the second dimension, or in the first with `batch_first`.
    """

    __constants__ = ["batch_first"]
    in_proj_weight: Any
    in_proj_bias: Any
    bias_k: Any
    bias_v: Any

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(creation.empty((3 * embed_dim, embed_dim), **options))
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = Parameter(creation.empty((embed_dim, embed_dim), **options))
            self.k_proj_weight = Parameter(creation.empty((embed_dim, self.kdim), **options))
            self.v_proj_weight = Parameter(creation.empty((embed_dim, self.vdim), **options))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(creation.empty(3 * embed_dim, **options))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **options)
        if add_bias_kv:
            self.bias_k = Parameter(creation.empty((1, 1, embed_dim), **options))
            self.bias_v = Parameter(creation.empty((1, 1, embed_dim), **options))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            for weight in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True,
        attn_mask: Any = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> Any:  # fmt: skip
        if is_causal and attn_mask is None:
            raise RuntimeError(
                "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
                "`generate_square_subsequent_mask` to create this mask."
            )
        batched = query.dim() == 3
        if self.batch_first and batched:
            query, key, value = _swap_batch(query, key, value)
        separate = {} if self._qkv_same_embed_dim else {
            "use_separate_proj_weight": True, "q_proj_weight": self.q_proj_weight, "k_proj_weight": self.k_proj_weight,
            "v_proj_weight": self.v_proj_weight,
        }  # fmt: skip
        output, weights = functional.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            average_attn_weights=average_attn_weights, is_causal=is_causal, **separate,
        )  # fmt: skip
        return (output.transpose(1, 0) if self.batch_first and batched else output), weights


MultiheadAttention.__module__ = "pullback.nn.modules.activation"


def _swap_batch(query: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
    """Bring the batch to the second dimension; what is one tensor stays one, so that it is projected once."""
    swapped_query = query.transpose(1, 0)
    swapped_key = swapped_query if key is query else key.transpose(1, 0)
    swapped_value = swapped_query if value is query else swapped_key if value is key else value.transpose(1, 0)
    return swapped_query, swapped_key, swapped_value
