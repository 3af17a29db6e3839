"""The namespace torch.nn.functional: functions on tensors that layers are made of.

Functions whose arguments differ from those of the top-level function of the same name are defined in the files of this
folder; all others are those of `pullback`. A file is imported when one of its names is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pullback import functions
from pullback.overridable_functions import is_built_in
from pullback.tensor.foreign_arguments import ASKING, explaining, offering

_FILES = {
    "attention": "scaled_dot_product_attention",
    "sampling": "gumbel_softmax",
    "dropouts": "dropout alpha_dropout feature_alpha_dropout dropout1d dropout2d dropout3d",
    "embeddings": "embedding one_hot embedding_bag",
    "folding": "unfold fold",
    "grouped_products": "grouped_mm scaled_mm scaled_grouped_mm ScalingType SwizzleType",
    "interpolation": "interpolate upsample upsample_nearest upsample_bilinear grid_sample affine_grid",
    "linear_losses": "linear_cross_entropy",
    "multi_head_attention": "multi_head_attention_forward",
    "normalization": "batch_norm instance_norm layer_norm rms_norm group_norm local_response_norm normalize",
    "padding": "pad",
    "pooling": (
        "max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices "
        "lp_pool1d lp_pool2d lp_pool3d"
    ),
    "pooling_to_size": (
        "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d adaptive_max_pool1d_with_indices "
        "adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices adaptive_avg_pool2d adaptive_avg_pool3d "
        "fractional_max_pool2d fractional_max_pool3d fractional_max_pool2d_with_indices "
        "fractional_max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d"
    ),
}
_HERE = {name: f"pullback.nn.functional.{file}" for file, names in _FILES.items() for name in names.split()}

# The same function as `pullback.<name>`, by families.
_SHARED = {
    "products": "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc linear bilinear",
    "pooling": "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d",
    "activations": (
        "threshold threshold_ relu relu_ hardtanh hardtanh_ hardswish relu6 elu elu_ selu selu_ celu celu_ leaky_relu "
        "leaky_relu_ prelu rrelu rrelu_ glu gelu logsigmoid hardshrink tanhshrink softsign softplus softmin softmax "
        "softshrink log_softmax tanh sigmoid hardsigmoid silu mish"
    ),
    "losses": (
        "binary_cross_entropy binary_cross_entropy_with_logits poisson_nll_loss cosine_embedding_loss cross_entropy "
        "ctc_loss gaussian_nll_loss hinge_embedding_loss kl_div l1_loss mse_loss margin_ranking_loss nll_loss "
        "huber_loss multilabel_margin_loss multilabel_soft_margin_loss multi_margin_loss smooth_l1_loss "
        "soft_margin_loss triplet_margin_loss triplet_margin_with_distance_loss"
    ),
    "rearrangements": "pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle",
    "distances": "pairwise_distance cosine_similarity pdist",
}
_COMMON = frozenset([name for names in _SHARED.values() for name in names.split()])

__all__ = sorted({*_HERE, *_COMMON})


def __getattr__(name: str) -> Any:
    if name in _HERE:
        value = getattr(import_module(_HERE[name]), name)
        if not isinstance(value, type):
            value = explaining(value, name) if name.startswith("upsample") else offering(value, __name__, name)
    elif name in _COMMON:
        value = _common(name)
    elif name == "_Reduction":
        value = import_module("pullback.nn._reduction")
    else:
        raise AttributeError(f"module 'pullback.nn.functional' has no attribute '{name}'")
    globals()[name] = value
    return value


def _common(name: str) -> Any:
    """A function of `pullback.functions`. See Note [Foreign arguments]."""
    own = f"functional_{name}"
    known = own if functions.module_of(own) is not None else name
    function = getattr(functions, known)
    if is_built_in(name) and name in functions.public_names():
        return getattr(import_module("pullback"), name)
    return function if known in ASKING or known not in functions.MODULES else offering(function, __name__, name)


def __dir__() -> list[str]:
    return __all__
