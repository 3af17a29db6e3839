"""What `help` says of the names that are used most: arguments, shapes and formula, not one line alone."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch

FUNCTIONS = (
    "abs add addmm argmax as_strided bmm broadcast_to cat clamp clone cos cummax cumsum diag_embed div einsum exp eye flatten "
    "full gather index_select kthvalue linspace log logspace logsumexp masked_select matmul max mean min multinomial nan_to_num "
    "neg norm ones permute prod rand_like randn reciprocal repeat_interleave reshape roll scatter_add select sigmoid sin softmax "
    "sort split sqrt square squeeze stack std sum take_along_dim tanh topk transpose trapezoid tril unbind unique unsqueeze var "
    "where zeros"
)
METHODS = (
    "backward bool detach dim double expand expand_as fill_ float half is_contiguous item long new_full new_ones numel permute "
    "register_hook repeat reshape size storage_offset stride tolist to type type_as uniform_ view view_as zero_"
)
FUNCTIONAL = (
    "adaptive_avg_pool2d affine_grid avg_pool1d batch_norm binary_cross_entropy conv1d conv2d cosine_embedding_loss cross_entropy "
    "dropout dropout2d elu embedding gelu gumbel_softmax hardswish interpolate kl_div layer_norm leaky_relu linear lp_pool2d "
    "margin_ranking_loss max_pool1d max_pool2d mish mse_loss nll_loss normalize one_hot pad pdist prelu relu rms_norm "
    "scaled_dot_product_attention silu softmin softplus softsign tanhshrink threshold"
)
LAYERS = (
    "AvgPool1d AvgPool2d BCELoss BCEWithLogitsLoss BatchNorm1d BatchNorm2d Bilinear CTCLoss Conv1d ConvTranspose1d "
    "CosineSimilarity CrossEntropyLoss Dropout Dropout2d ELU Embedding EmbeddingBag GELU GLU GRUCell GroupNorm HuberLoss "
    "InstanceNorm2d KLDivLoss L1Loss LSTM LSTMCell LayerNorm LazyLinear LeakyReLU Linear LogSoftmax MSELoss MarginRankingLoss "
    "MaxPool1d MaxPool2d MaxUnpool2d ModuleDict NLLLoss PReLU PairwiseDistance PixelShuffle RMSNorm RReLU ReLU ReflectionPad2d "
    "RNNCell SELU SiLU Sigmoid SmoothL1Loss Softmax Softplus Tanh Threshold TransformerDecoder TransformerEncoder "
    "TripletMarginLoss Unfold Upsample ZeroPad2d"
)
OPTIMIZERS = "ASGD Adadelta Adagrad Adam AdamW Adamax LBFGS NAdam RAdam RMSprop Rprop SGD"
SCHEDULERS = (
    "CosineAnnealingLR CyclicLR ExponentialLR LambdaLR LinearLR MultiStepLR OneCycleLR ReduceLROnPlateau StepLR"
)
DISTRIBUTIONS = "Bernoulli Beta Categorical Dirichlet Exponential Laplace Poisson StudentT Uniform"


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
    ],
    ids=["torch", "Tensor", "functional", "nn", "optim", "lr_scheduler", "distributions"],
)
def test_docstrings_say_more_than_one_sentence(owner: Any, names: str) -> None:
    short = [name for name in names.split() if "\n\n" not in (getattr(owner, name).__doc__ or "").strip()]
    assert short == []
