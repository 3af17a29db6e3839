"""Every layer against PyTorch's from the same seed: text, initial weights, outputs, gradients, state afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback

torch = pytest.importorskip("torch")

Make = Callable[[Any], Any]
Call = Callable[[Any, Any], Any]


def normal(*shape: int) -> Any:
    return np.random.RandomState(sum(shape) + len(shape)).standard_normal(shape).astype(np.float32)


def uniform(*shape: int) -> Any:
    return np.random.RandomState(sum(shape)).uniform(0.05, 0.95, shape).astype(np.float32)


def integers(high: int, *shape: int) -> Any:
    return np.random.RandomState(high).randint(0, high, shape)


X2, X3, X4, X5 = normal(4, 6), normal(3, 4, 8), normal(2, 4, 6, 6), normal(2, 4, 5, 5, 5)

ACTIVATIONS = (
    "Threshold(0.1,2.0) ReLU() RReLU() Hardtanh(-0.5,0.7) ReLU6() Sigmoid() Hardsigmoid() Tanh() SiLU() Mish() "
    "Hardswish() ELU(0.7) CELU(0.7) SELU() GLU() GELU() GELU('tanh') Hardshrink() LeakyReLU(0.2) LogSigmoid() Softplus(2.0) "
    "Softshrink() PReLU() PReLU(6) Softsign() Tanhshrink() Softmin(1) Softmax(0) LogSoftmax(1) ReLU(inplace=False) "
    "LayerNorm(6) LayerNorm((4,6),bias=False) RMSNorm(6) Dropout(0.3) AlphaDropout(0.3) Linear(6,3) Linear(6,3,bias=False) "
    "Identity() BatchNorm1d(6) BatchNorm1d(6,momentum=None) BatchNorm1d(6,affine=False) Flatten(0) Unflatten(1,(2,3)) "
    "LazyLinear(5) LazyBatchNorm1d() Sequential(N.Linear(6,4),N.Tanh(),N.Linear(4,2))"
).split()
SEQUENCES = (
    "Conv1d(4,6,3) Conv1d(4,6,3,2,1,2,2) Conv1d(4,6,3,padding='same',padding_mode='circular') Conv1d(4,4,3,bias=False) "
    "ConvTranspose1d(4,6,3,2,1,1) MaxPool1d(3) AvgPool1d(3,2,1) LPPool1d(2,2) AdaptiveAvgPool1d(3) AdaptiveMaxPool1d(3) "
    "BatchNorm1d(4) InstanceNorm1d(4) InstanceNorm1d(4,affine=True,track_running_stats=True) GroupNorm(2,4) Dropout1d(0.4) "
    "ConstantPad1d(2,1.5) ZeroPad1d(1) ReflectionPad1d(2) ReplicationPad1d((1,2)) CircularPad1d(2) LazyConv1d(3,3) "
    "LazyConvTranspose1d(3,3) LazyInstanceNorm1d() Upsample(scale_factor=2) Upsample(size=5,mode='linear') "
    "LocalResponseNorm(2) FeatureAlphaDropout(0.3)"
).split()
IMAGES = (
    "Conv2d(4,6,3) Conv2d(4,6,(3,2),stride=2,padding=1,dilation=(1,2),groups=2) Conv2d(4,6,3,padding=1,padding_mode='reflect') "
    "ConvTranspose2d(4,6,3,2,1,1,groups=2) MaxPool2d(2) MaxPool2d(3,2,1,ceil_mode=True) AvgPool2d(2) "
    "AvgPool2d(3,2,1,count_include_pad=False) LPPool2d(2,2) AdaptiveAvgPool2d((2,3)) AdaptiveMaxPool2d(2) "
    "BatchNorm2d(4) InstanceNorm2d(4) GroupNorm(4,4) Dropout2d(0.4) Softmax2d() ConstantPad2d(1,0.5) ZeroPad2d((1,0,2,1)) "
    "ReflectionPad2d(2) ReplicationPad2d(1) CircularPad2d(1) PixelShuffle(2) PixelUnshuffle(2) ChannelShuffle(2) "
    "Upsample(scale_factor=2,mode='bilinear') UpsamplingNearest2d(scale_factor=2) UpsamplingBilinear2d(size=(4,5)) "
    "Unfold(2) LazyConv2d(3,3) LazyBatchNorm2d() Flatten() SyncBatchNorm(4)"
).split()
VOLUMES = (
    "Conv3d(4,6,2) ConvTranspose3d(4,3,2,2) MaxPool3d(2) AvgPool3d(2) AdaptiveAvgPool3d(2) AdaptiveMaxPool3d((1,2,3)) "
    "BatchNorm3d(4) InstanceNorm3d(4) Dropout3d(0.5) ConstantPad3d(1,1.) ZeroPad3d(1) ReflectionPad3d(1) ReplicationPad3d(1) "
    "CircularPad3d(1) Upsample(scale_factor=2,mode='trilinear') LPPool3d(2,2)"
).split()

RANDOM_CLASSES, SIGNS = integers(6, 4), np.sign(normal(4, 6))
LOSSES: list[tuple[str, tuple[Any, ...]]] = [
    ("L1Loss()", (X2, normal(6, 4).T.copy())),
    ("MSELoss(reduction='sum')", (X2, normal(6, 4).T.copy())),
    ("NLLLoss()", (X2, RANDOM_CLASSES)),
    ("NLLLoss(ignore_index=1,reduction='none')", (X2, RANDOM_CLASSES)),
    ("CrossEntropyLoss()", (X2, RANDOM_CLASSES)),
    ("CrossEntropyLoss(label_smoothing=0.1,reduction='sum')", (X2, RANDOM_CLASSES)),
    ("PoissonNLLLoss(full=True)", (X2, uniform(4, 6))),
    ("GaussianNLLLoss()", (X2, normal(6, 4).T.copy(), uniform(4, 6))),
    ("KLDivLoss(reduction='batchmean')", (X2, uniform(4, 6))),
    ("BCELoss()", (uniform(4, 6), uniform(6, 4).T.copy())),
    ("BCEWithLogitsLoss()", (X2, uniform(4, 6))),
    ("HingeEmbeddingLoss()", (X2, SIGNS)),
    ("MultiLabelMarginLoss()", (X2, np.array([[1, 2, -1, 0, 0, 0]] * 4))),
    ("SmoothL1Loss(beta=0.5)", (X2, normal(6, 4).T.copy())),
    ("HuberLoss(delta=0.5)", (X2, normal(6, 4).T.copy())),
    ("SoftMarginLoss()", (X2, SIGNS.astype(np.int64))),
    ("MultiLabelSoftMarginLoss()", (X2, (SIGNS > 0).astype(np.float32))),
    ("CosineEmbeddingLoss(0.2)", (X2, normal(6, 4).T.copy(), SIGNS[:, 0].copy())),
    ("MarginRankingLoss(0.2)", (X2, normal(6, 4).T.copy(), SIGNS)),
    ("MultiMarginLoss(2)", (X2, RANDOM_CLASSES)),
    ("TripletMarginLoss()", (X2, normal(6, 4).T.copy(), uniform(4, 6))),
    ("TripletMarginWithDistanceLoss(swap=True)", (X2, normal(6, 4).T.copy(), uniform(4, 6))),
    ("PairwiseDistance(keepdim=True)", (X2, normal(6, 4).T.copy())),
    ("CosineSimilarity()", (X2, normal(6, 4).T.copy())),
    ("Bilinear(6,5,3)", (X2, normal(4, 5))),
    ("Embedding(6,5,padding_idx=1)", (RANDOM_CLASSES,)),
    ("Embedding(6,5,max_norm=1.0,scale_grad_by_freq=True)", (RANDOM_CLASSES,)),
    ("EmbeddingBag(6,5,mode='sum')", (integers(6, 3, 4),)),
    ("Fold((4,5),2)", (normal(2, 8, 12),)),
    ("AdaptiveLogSoftmaxWithLoss(6,20,[4,9],div_value=2.0)", (X2, integers(20, 4))),
    ("LinearCrossEntropyLoss(6,5,bias=True)", (X2, integers(5, 4))),
    ("MultiheadAttention(8,2)", (normal(3, 2, 8), normal(4, 2, 8), normal(4, 2, 8))),
    ("MultiheadAttention(8,2,kdim=3,vdim=5,batch_first=True)", (normal(2, 3, 8), normal(2, 4, 3), normal(2, 4, 5))),
    ("RNN(4,5,2,nonlinearity='relu')", (normal(3, 2, 4),)),
    ("LSTM(4,5,2,bidirectional=True,proj_size=3)", (normal(3, 2, 4),)),
    ("GRU(4,5,2,batch_first=True,dropout=0.4)", (normal(3, 2, 4),)),
    ("LSTMCell(4,5)", (normal(2, 4),)),
    ("GRUCell(4,5)", (normal(2, 4),)),
    ("RNNCell(4,5,bias=False)", (normal(2, 4),)),
    ("TransformerEncoderLayer(8,2,16)", (normal(3, 2, 8),)),
    ("TransformerDecoderLayer(8,2,16,norm_first=True,activation='gelu')", (normal(3, 2, 8), normal(4, 2, 8))),
    ("Transformer(8,2,2,1,16,batch_first=True,bias=False)", (normal(2, 3, 8), normal(2, 4, 8))),
    ("CTCLoss()", (normal(12, 2, 5), integers(4, 2, 3) + 1, np.array([12, 10]), np.array([3, 2]))),
]
TABLE = [
    *[(text, (X2,)) for text in ACTIVATIONS],
    *[(text, (X3,)) for text in SEQUENCES],
    *[(text, (X4,)) for text in IMAGES],
    *[(text, (X5,)) for text in VOLUMES],
    *LOSSES,
]


def build(library: Any, text: str) -> Any:
    library.manual_seed(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(f"N.{text}", {"N": library.nn})


def floats(result: Any) -> Iterator[Any]:
    if isinstance(result, (tuple, list)):
        for item in result:
            yield from floats(item)
    elif result is not None and result.dtype.is_floating_point:
        yield result


def run(library: Any, text: str, arrays: tuple[Any, ...], training: bool = True) -> dict[str, Any]:
    module = build(library, text).train(training)
    values: dict[str, Any] = {"text": repr(module)}
    inputs = [library.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    outputs = list(floats(module(*inputs)))
    total = sum((o * library.linspace(0.5, 1.5, o.numel()).reshape(o.shape)).sum() for o in outputs)
    if total.requires_grad:
        total.backward()
    values |= {f"output {i}": o.detach().numpy() for i, o in enumerate(outputs)}
    values |= {f"input grad {i}": x.grad.numpy() for i, x in enumerate(inputs) if x.grad is not None}
    values |= {f"grad of {n}": p.grad.numpy() for n, p in module.named_parameters() if p.grad is not None}
    values |= {f"state {n}": v.detach().numpy() for n, v in module.state_dict().items()}
    return values


def check_equal(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    assert list(actual) == list(expected)
    assert actual.pop("text") == expected.pop("text")
    for name, value in expected.items():
        assert actual[name].dtype == value.dtype, name
        np.testing.assert_allclose(actual[name], value, rtol=2e-4, atol=3e-5, err_msg=name)


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize(("text", "arrays"), TABLE, ids=[text for text, _ in TABLE])
def test_a_layer_computes_what_pytorch_computes(text: str, arrays: tuple[Any, ...]) -> None:
    expected = run(torch, text, arrays)
    check_equal(run(pullback, text, arrays), expected)


EVALUATED = ["BatchNorm1d(6)", "Dropout(0.5)", "RReLU()", "AlphaDropout()"]


@pytest.mark.parametrize("text", EVALUATED)
def test_a_layer_evaluates_as_pytorch_does(text: str) -> None:
    check_equal(run(pullback, text, (X2,), training=False), run(torch, text, (X2,), training=False))


UTILITIES: dict[str, tuple[Make, Any]] = {
    "weight_norm": (lambda t: t.nn.utils.parametrizations.weight_norm(t.nn.Linear(6, 3)), X2),
    "spectral_norm": (lambda t: t.nn.utils.parametrizations.spectral_norm(t.nn.Conv2d(4, 3, 2)), X4),
    "orthogonal": (lambda t: t.nn.utils.parametrizations.orthogonal(t.nn.Linear(6, 6)), X2),
    "orthogonal householder": (lambda t: t.nn.utils.parametrizations.orthogonal(t.nn.Linear(6, 4)), X2),
    "old spectral_norm": (lambda t: t.nn.utils.spectral_norm(t.nn.Linear(6, 3)), X2),
    "prune": (lambda t: t.nn.utils.prune.l1_unstructured(t.nn.Linear(6, 3), "weight", 0.4), X2),
    "prune random": (lambda t: t.nn.utils.prune.random_structured(t.nn.Linear(6, 3), "weight", 2, 1), X2),
}


@pytest.mark.parametrize("name", UTILITIES)
def test_a_reparametrized_layer_computes_what_pytorch_computes(name: str) -> None:
    import torch.nn.utils.prune

    import pullback.nn.utils.prune

    make, array = UTILITIES[name]
    results = []
    for library in (pullback, torch):
        library.manual_seed(3)
        module = make(library)
        output = module(library.tensor(array))
        output.sin().sum().backward()
        grads = {n: p.grad.numpy() for n, p in module.named_parameters()}
        state = {n: v.detach().numpy() for n, v in module.state_dict().items()}
        results.append({"output": output.detach().numpy(), **grads, **{f"state {n}": v for n, v in state.items()}})
    assert list(results[0]) == list(results[1])
    for key, value in results[1].items():
        np.testing.assert_allclose(results[0][key], value, rtol=1e-4, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("lengths", [[5, 3, 2], [2, 5, 3]])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_recurrent_network_runs_packed_sequences_as_pytorch_does(kind: str, lengths: list[int]) -> None:
    outputs = []
    for library in (pullback, torch):
        library.manual_seed(5)
        network = getattr(library.nn, kind)(4, 3, 2, bidirectional=True)
        utilities = library.nn.utils.rnn
        packed = utilities.pack_padded_sequence(library.tensor(normal(5, 3, 4)), lengths, enforce_sorted=False)
        output, _ = network(packed)
        padded, counts = utilities.pad_packed_sequence(output, padding_value=-1.0)
        assert counts.tolist() == lengths
        outputs.append(padded.detach().numpy())
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-5, atol=1e-6)


INITIALIZERS = (
    "uniform_(w,-1,2) normal_(w,1,2) trunc_normal_(w,0,1,-1,2) trunc_normal_(w,0,1,2,3) constant_(w,0.3) eye_(w) "
    "xavier_uniform_(w,2) xavier_normal_(w) kaiming_uniform_(w,0.1,'fan_out') kaiming_normal_(w,nonlinearity='relu') "
    "orthogonal_(w,2) sparse_(w,0.3)"
).split()


@pytest.mark.parametrize("text", INITIALIZERS)
def test_an_initializer_draws_pytorch_numbers(text: str) -> None:
    weights = []
    for library in (pullback, torch):
        library.manual_seed(11)
        weight = library.empty(12, 20)
        eval(f"init.{text}", {"init": library.nn.init, "w": weight})
        weights.append(weight.numpy())
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-5, atol=1e-6)
