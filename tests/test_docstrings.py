"""What `help` says of the names that are used most: arguments, shapes and formula, not one line alone."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch

FUNCTIONS = (
    "abs acosh add addcdiv addcmul addmm addmv addr aminmax argmax argwhere as_strided asarray asinh atanh "
    "atleast_1d atleast_2d atleast_3d bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor "
    "block_diag bmm broadcast_shapes broadcast_to can_cast cartesian_prod cat celu channel_shuffle cholesky_inverse "
    "cholesky_solve clamp clamp_max clamp_min clone column_stack combinations conv_transpose1d conv_transpose3d "
    "copysign cos cummax cummin cumsum cumulative_trapezoid detach diag_embed diagflat dist div dstack einsum erfc "
    "erfinv exp exp2 eye flatten fliplr flipud float_power floor_divide fmax fmin frexp from_dlpack frombuffer full "
    "gather gcd get_rng_state heaviside histogram hsplit igamma igammac index_fill index_put index_select "
    "initial_seed inner is_complex is_nonzero is_signed isin isneginf isposinf isreal kthvalue lcm ldexp linspace "
    "log logaddexp2 logcumsumexp logdet logical_xor logit logspace logsumexp masked_scatter masked_select matmul "
    "matrix_exp matrix_power max mean min msort multinomial nan_to_num nanmedian nanquantile neg norm numel ones "
    "permute pinverse pixel_unshuffle poisson polygamma prod promote_types rad2deg rand_like randint_like randn "
    "ravel reciprocal renorm repeat_interleave reshape roll rot90 rrelu scatter_add scatter_reduce select "
    "select_scatter set_default_dtype sgn sigmoid signbit sin sinc slice_scatter softmax sort split sqrt square "
    "squeeze stack std std_mean sum swapdims t take_along_dim tanh tensor_split topk transpose trapezoid tril "
    "tril_indices triu_indices unbind unflatten unique unique_consecutive unravel_index unsqueeze vander var "
    "var_mean vdot view_as_complex view_as_real vsplit where xlogy zeros"
)
METHODS = (
    "backward bool detach dim double expand expand_as fill_ float half is_contiguous item long new_full new_ones numel permute "
    "register_hook repeat reshape size storage_offset stride tolist to type type_as uniform_ view view_as zero_"
)
FUNCTIONAL = (
    "adaptive_avg_pool2d adaptive_avg_pool3d affine_grid avg_pool1d avg_pool3d batch_norm binary_cross_entropy "
    "conv1d conv2d cosine_embedding_loss cross_entropy dropout dropout2d elu embedding gelu gumbel_softmax "
    "hardswish interpolate kl_div layer_norm leaky_relu linear logsigmoid lp_pool2d margin_ranking_loss max_pool1d "
    "max_pool2d max_pool3d max_unpool1d max_unpool2d mish mse_loss multilabel_margin_loss "
    "multilabel_soft_margin_loss nll_loss normalize one_hot pad pdist prelu relu rms_norm "
    "scaled_dot_product_attention silu soft_margin_loss softmin softplus softsign tanhshrink threshold "
    "triplet_margin_with_distance_loss"
)
LAYERS = (
    "AvgPool1d AvgPool2d BCELoss BCEWithLogitsLoss BatchNorm1d BatchNorm2d Bilinear CTCLoss CircularPad3d "
    "ConstantPad3d Conv1d ConvTranspose1d CosineSimilarity CrossEntropyLoss Dropout Dropout2d ELU Embedding "
    "EmbeddingBag GELU GLU GRUCell GroupNorm HuberLoss InstanceNorm2d KLDivLoss L1Loss LSTM LSTMCell LayerNorm "
    "LazyBatchNorm2d LazyConv1d LazyLinear LeakyReLU Linear LogSoftmax MSELoss MarginRankingLoss MaxPool1d "
    "MaxPool2d MaxUnpool2d ModuleDict NLLLoss PReLU PairwiseDistance PixelShuffle RMSNorm RNNCell RReLU ReLU "
    "ReflectionPad2d ReflectionPad3d ReplicationPad3d SELU SiLU Sigmoid SmoothL1Loss Softmax Softplus Tanh "
    "Threshold TransformerDecoder TransformerEncoder TripletMarginLoss Unfold Upsample UpsamplingBilinear2d "
    "UpsamplingNearest2d ZeroPad2d ZeroPad3d"
)
OPTIMIZERS = "ASGD Adadelta Adagrad Adam AdamW Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SGD"
SCHEDULERS = (
    "ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR LambdaLR LinearLR MultiStepLR "
    "MultiplicativeLR OneCycleLR PolynomialLR ReduceLROnPlateau StepLR"
)
DISTRIBUTIONS = (
    "Bernoulli Beta Categorical Chi2 ComposeTransform Dirichlet Exponential HalfCauchy InverseGamma Laplace "
    "MixtureSameFamily OneHotCategorical Poisson StickBreakingTransform StudentT Uniform"
)

INITIAL = (
    "constant_ dirac_ eye_ kaiming_normal_ kaiming_uniform_ normal_ orthogonal_ sparse_ trunc_normal_ uniform_ "
    "xavier_normal_ xavier_uniform_"
)


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        (torch, FUNCTIONS),
        (torch.Tensor, METHODS),
        (torch.nn.functional, FUNCTIONAL),
        (torch.nn, LAYERS),
        (torch.optim, OPTIMIZERS),
        (torch.optim.lr_scheduler, SCHEDULERS),
        (torch.distributions, DISTRIBUTIONS),
        (torch.nn.init, INITIAL),
    ],
    ids=["torch", "Tensor", "functional", "nn", "optim", "lr_scheduler", "distributions", "init"],
)
def test_docstrings_say_more_than_one_sentence(owner: Any, names: str) -> None:
    short = [name for name in names.split() if "\n\n" not in (getattr(owner, name).__doc__ or "").strip()]
    assert short == []
