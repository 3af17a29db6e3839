"""autocast: which dtype each operation runs in, recorded from PyTorch, and how blocks nest and are switched."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import Tensor
from pullback.func import vmap

DTYPES = """
torch.mm(m, m)                                               bfloat16
m @ m                                                        bfloat16
m @ v                                                        bfloat16
v @ v                                                        bfloat16
v @ m                                                        bfloat16
torch.mv(m, v)                                               float32
torch.dot(v, v)                                              float32
torch.addmm(m, m, m)                                         bfloat16
torch.addmv(v, m, v)                                         float32
torch.bmm(b, b)                                              bfloat16
torch.einsum("ij,kj->ik", m, m)                              bfloat16
torch.linalg.vecdot(m, m)                                    bfloat16
torch.linalg.multi_dot([m, m])                               bfloat16
F.linear(m, m, v)                                            bfloat16
F.conv1d(b, b)                                               bfloat16
F.conv_transpose1d(b, b)                                     bfloat16
F.prelu(m, v[:1])                                            bfloat16
F.scaled_dot_product_attention(b, b, b)                      bfloat16
F.conv1d(b.bfloat16(), b)                                    bfloat16
F.conv2d(b.bfloat16()[None], b[None])                        bfloat16
F.conv3d(b.bfloat16()[None, None], b[None, None])            bfloat16
F.conv_transpose1d(b.bfloat16(), b)                          bfloat16
F.conv_transpose2d(b.bfloat16()[None], b[:, None])           bfloat16
F.conv_transpose3d(b.bfloat16()[None, None], b[None, None])  bfloat16
F.prelu(l, v[:1])                                            bfloat16
F.scaled_dot_product_attention(b.bfloat16(), b, b)           bfloat16
torch.nn.LSTM(3, 2)(b.bfloat16())[0]                         bfloat16
torch.softmax(m, 0)                                          float32
torch.log_softmax(l, 0)                                      bfloat16
F.layer_norm(l, (3,))                                        bfloat16
torch.exp(l)                                                 bfloat16
l.sum()                                                      bfloat16
l.prod()                                                     float32
l + m                                                        float32
torch.cat([l, m])                                            float32
torch.cat([l, l])                                            bfloat16
torch.stack([l, m])                                          float32
torch.cumsum(l, 0)                                           bfloat16
torch.trace(l)                                               float32
torch.cdist(l, l)                                            float32
torch.quantile(l, 0.5)                                       float32
F.cross_entropy(l, t)                                        float32
F.cross_entropy(l, t, label_smoothing=0.1)                   float32
F.cross_entropy(l, l.abs())                                  float32
F.nll_loss(l, t)                                             float32
F.mse_loss(l, l)                                             float32
F.l1_loss(l, l)                                              float32
F.smooth_l1_loss(l, l)                                       float32
F.huber_loss(l, l)                                           float32
F.huber_loss(l, m)                                           float32
F.binary_cross_entropy_with_logits(m, l)                     float32
torch.mm(m, m, out=torch.empty(3, 3))                        float32
torch.matmul(m, m, out=torch.empty(3, 3))                    float32
F.kl_div(l, l.abs(), reduction="sum")                        float32
F.binary_cross_entropy(l.sigmoid(), l.sigmoid())             float32
F.binary_cross_entropy_with_logits(l, l)                     float32
F.poisson_nll_loss(l, l)                                     float32
F.gaussian_nll_loss(l, l, l.abs())                           bfloat16
F.margin_ranking_loss(l, l, l)                               float32
F.hinge_embedding_loss(l, l)                                 float32
F.cosine_embedding_loss(l, l, torch.ones(3))                 float32
F.triplet_margin_loss(l, l, l)                               float32
F.multi_margin_loss(l, t)                                    float32
F.soft_margin_loss(l, l)                                     float32
F.cosine_similarity(l, l)                                    bfloat16
F.max_pool3d(l[None, None], 1)                               float32
F.adaptive_avg_pool3d(l[None, None], 1)                      float32
F.avg_pool2d(l[None], 1)                                     bfloat16
F.pad(l[None], (1, 1), "reflect")                            float32
F.pad(l[None], (1, 1), "replicate")                          float32
F.pad(l[None], (1, 1))                                       bfloat16
F.interpolate(l[None, None], scale_factor=2)                 bfloat16
torch.fft.fft(m)                                             complex64
torch.linalg.inv(m)                                          float32
torch.linalg.qr(m)[0]                                        float32
torch.linalg.svdvals(m)                                      float32
torch.linalg.norm(l)                                         bfloat16
torch.nn.Linear(3, 2)(m)                                     bfloat16
torch.nn.LSTM(3, 4)(m)[0]                                    bfloat16
torch.nn.GRU(3, 4)(m)[0]                                     float32
torch.nn.RNN(3, 4)(m)[0]                                     bfloat16
torch.nn.LSTMCell(3, 4)(m)[0]                                float32
torch.nn.GRUCell(3, 4)(m)                                    float32
torch.nn.RNNCell(3, 4)(m)                                    bfloat16
torch.nn.BatchNorm1d(3)(l)                                   bfloat16
torch.nn.Embedding(3, 4)(t)                                  float32
torch.nn.MultiheadAttention(3, 1)(m, m, m)[0]                bfloat16
torch.nn.TransformerEncoderLayer(4, 2)(torch.ones(1, 2, 4))  float32
m.double() @ m.double()                                      float64
"""


def values() -> dict[str, Tensor]:
    torch.manual_seed(0)
    m = torch.rand(3, 3) + torch.eye(3)
    classes = torch.tensor([0, 2, 1])
    return {"m": m, "v": torch.rand(3), "b": torch.rand(3, 3, 3), "l": torch.rand(3, 3).bfloat16(), "t": classes}


@pytest.mark.parametrize("row", DTYPES.strip().splitlines())
def test_dtype_inside_of_the_block(row: str) -> None:
    call, expected = row.rsplit(None, 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = eval(call, {"torch": torch, "F": F, **values()})
    assert str(result.dtype).split(".")[1] == expected


def test_a_loss_of_lower_logits_is_computed_in_float32() -> None:
    logits, classes = torch.randn(4, 5).bfloat16(), torch.tensor([0, 1, 2, 3])
    with torch.autocast("cpu"):
        loss = F.cross_entropy(logits, classes)
    assert loss.item() == F.cross_entropy(logits.float(), classes).item()


def test_losses_are_float32_under_vmap_too() -> None:
    logits, classes = torch.randn(2, 4, 5).bfloat16(), torch.tensor([[0, 1, 2, 3], [1, 1, 0, 4]])
    with torch.autocast("cpu"):
        losses = vmap(F.cross_entropy)(logits, classes)
    singly = [F.cross_entropy(row.float(), c).item() for row, c in zip(logits, classes, strict=True)]
    assert losses.dtype is torch.float32
    assert losses.tolist() == pytest.approx(singly, rel=1e-6)


def test_parameters_get_gradients_in_their_own_dtype() -> None:
    layer = torch.nn.LSTM(3, 4)
    with torch.autocast("cpu"):
        layer(torch.ones(2, 1, 3))[0].sum().backward()
    assert {p.grad.dtype for p in layer.parameters()} == {torch.float32}


def test_an_inner_block_hides_the_outer_one() -> None:
    m = torch.ones(2, 2)
    with torch.autocast("cpu"):
        with torch.autocast("cpu", dtype=torch.float16):
            assert (m @ m).dtype is torch.float16
        with torch.autocast("cpu", enabled=False):
            assert (m @ m).dtype is torch.float32
            assert not torch.is_autocast_enabled("cpu")
        assert (m @ m).dtype is torch.bfloat16


def test_a_decorated_function_may_call_itself() -> None:
    @torch.autocast("cpu")
    def power(m: Tensor, n: int) -> Tensor:
        return m @ (power(m, n - 1) if n > 1 else m)

    assert power(torch.ones(2, 2), 3).dtype is torch.bfloat16
    assert not torch.is_autocast_enabled("cpu")


def test_other_threads_are_not_cast() -> None:
    seen = []
    with torch.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append((torch.ones(2, 2) @ torch.ones(2, 2)).dtype))
        thread.start()
        thread.join()
    assert seen == [torch.float32]


def test_dtypes_of_devices() -> None:
    assert torch.get_autocast_dtype("cpu") is torch.bfloat16
    assert torch.get_autocast_dtype("cuda") is torch.get_autocast_gpu_dtype() is torch.float16
    torch.set_autocast_dtype("cpu", torch.float16)
    try:
        assert torch.autocast("cpu").fast_dtype is torch.float16
    finally:
        torch.set_autocast_dtype("cpu", torch.bfloat16)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: torch.autocast("cuda"), "CUDA is not available"),
        (lambda: torch.autocast("cpu", dtype=torch.float32), "the target dtype is not supported"),
        (lambda: torch.amp.GradScaler(), "GradScaler is enabled, but CUDA is not available"),
    ],
)
def test_what_the_machine_lacks_is_disabled_with_a_warning(make, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.warns(UserWarning, match=message):
        made = make()
    assert made._enabled is False


def test_the_decorators_of_functions_want_a_device() -> None:
    with pytest.raises(TypeError, match="device_type"):
        torch.amp.custom_fwd(lambda ctx, x: x)
    with pytest.raises(ValueError, match="`device_type` of type `str`"):
        torch.autocast(3)


class TestFormerNames:
    """`torch.cuda.amp` and `torch.cpu.amp`, whose functions name no device."""

    def test_they_warn_of_their_successors(self) -> None:
        with pytest.warns(FutureWarning, match=r"torch\.amp\.autocast\('cpu', args...\)"):
            block = torch.cpu.amp.autocast()
        with block:
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
        with pytest.warns(FutureWarning, match=r"torch\.amp\.GradScaler\('cpu', args...\)"):
            assert torch.cpu.amp.GradScaler(2.0).get_scale() == 2.0

    def test_a_training_step_written_for_a_gpu_runs_without_one(self) -> None:
        weight = torch.nn.Parameter(torch.ones(2, 2))
        optimizer = torch.optim.SGD([weight], 0.5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scaler = torch.cuda.amp.GradScaler()
            with torch.cuda.amp.autocast(enabled=True):
                loss = (weight @ torch.ones(2)).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        assert loss.dtype is torch.float32
        assert weight.tolist() == [[0.5, 0.5], [0.5, 0.5]]
        assert scaler.state_dict() == {}

    def test_custom_functions(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")

            class Double(torch.autograd.Function):
                @staticmethod
                @torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)
                def forward(ctx, x):  # type: ignore[no-untyped-def]
                    return x * 2

                @staticmethod
                @torch.cuda.amp.custom_bwd
                def backward(ctx, grad):  # type: ignore[no-untyped-def]
                    return grad * 2

            x = torch.ones(2, requires_grad=True)
            Double.apply(x).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]


def test_a_product_in_place_is_written_and_not_cast() -> None:
    factor = torch.full((2, 2), 4.0)
    total, totals = torch.ones(2, 2), torch.ones(1, 2, 2)
    with torch.autocast("cpu"):
        total.addmm_(factor, factor)
        totals.baddbmm_(factor[None], factor[None])
        written = torch.empty(2, 2)
        assert torch.mm(factor, factor, out=written) is written
    assert total.tolist() == totals[0].tolist() == [[33.0, 33.0], [33.0, 33.0]]
    assert written.tolist() == [[32.0, 32.0], [32.0, 32.0]]
    with torch.autocast("cpu"), pytest.raises(RuntimeError, match="must have the same dtype"):
        total.addmm_(factor, factor.bfloat16())


def test_packed_sequences_of_several_lengths_keep_states_in_float32() -> None:
    layer = torch.nn.LSTM(4, 3)
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(3, 2, 4), [3, 2])
    with torch.autocast("cpu"):
        output, (h, c) = layer(packed)
    assert {t.dtype for t in (output.data, h, c)} == {torch.float32}


def test_a_loss_under_autocast_has_gradients_by_func() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))
    inputs, classes = torch.randn(5, 3), torch.tensor([0, 1, 1, 0, 1])

    def loss(parameters: Mapping[str, Tensor]) -> Tensor:
        with torch.autocast("cpu"):
            return F.cross_entropy(torch.func.functional_call(model, parameters, (inputs,)), classes)

    parameters = dict(model.named_parameters())
    loss(parameters).backward()
    for name, gradient in torch.func.grad(loss)({n: p.detach() for n, p in parameters.items()}).items():
        assert gradient.dtype is torch.float32
        expected = parameters[name].grad
        assert torch.allclose(gradient, expected, rtol=2e-2, atol=2e-3)
