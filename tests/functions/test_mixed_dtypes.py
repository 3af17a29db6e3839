"""Operations on tensors of two dtypes: the dtype of the result and of each gradient, recorded from PyTorch."""

from __future__ import annotations

import pytest

import pullback as torch
import pullback.nn.functional as F

# expression, dtype of a, dtype of b: dtype of the result, its sum, and the sums of the gradients of a and b (- for integers)
ROWS = """
torch.select_scatter(a, b[0], 0, 1) | fd | float32 | 15 | 30 | 6
torch.select_scatter(a, b[0], 0, 1) | bf | bfloat16 | 15 | 30 | 6
torch.slice_scatter(a, b[:2], 0, 1) | fd | float32 | 16 | 6 | 21
torch.slice_scatter(a, b[:2], 0, 1) | bf | bfloat16 | 16 | 6 | 21
torch.diagonal_scatter(a, b[0]) | fd | float32 | 19 | 30 | 6
torch.diagonal_scatter(a, b[0]) | df | float64 | 19 | 30 | 6
torch.igamma(a + 1, b + 1) | if | float32 | 4.5357 | - | 6.807
torch.igammac(a + 1, b + 1) | if | float32 | 4.4643 | - | -6.807
torch.special.zeta(a + 2, b + 1) | if | float32 | 0.47437 | - | -2.622
F.cosine_embedding_loss(a, b, signs) | fi | float32 | 0.44992 | -0.4433 | -
F.cosine_embedding_loss(a, b, signs) | df | float64 | 0.44992 | -0.4433 | -0.3057
F.cosine_embedding_loss(a, b, signs) | bf | float32 | 0.44992 | -0.4426 | -0.3057
F.cosine_embedding_loss(a, a * a, b[0]) | fi | float32 | 0.025373 | 0.05779 | -
F.triplet_margin_loss(a, b, b * 2) | bf | float32 | 0.095738 | 0.9502 | -0.9526
F.triplet_margin_loss(a, b, b * 2) | fi | float32 | 0.095738 | 0.9526 | -
F.margin_ranking_loss(a, a * a, b - 2, margin=0.5) | bf | float32 | 0.27778 | 1.559 | 8
F.margin_ranking_loss(a, a * a, b - 2, margin=0.5) | fi | float32 | 0.27778 | 1.556 | -
F.poisson_nll_loss(a, b, full=True) | fi | float32 | 10.878 | 60.81 | -
F.poisson_nll_loss(a, b, full=True) | bi | bfloat16 | 10.875 | 60.86 | -
F.poisson_nll_loss(a, b, log_input=False) | bf | float32 | 1.2943 | -2.709 | -2.607
F.poisson_nll_loss(a, b, log_input=False) | bb | bfloat16 | 1.2969 | -2.709 | -2.614
F.pairwise_distance(a, b) | bi | bfloat16 | 8.4375 | 0.8535 | -
F.pairwise_distance(a, b) | bf | float32 | 8.4495 | 0.8535 | -0.8578
F.pairwise_distance(a, b) | fd | float64 | 8.4495 | 0.8578 | -0.8578
F.soft_margin_loss(a, b.detach()) | fd | float32 | 0.078044 | -0.5923 | -
F.soft_margin_loss(a, b.detach()) | df | float64 | 0.078044 | -0.5923 | -
F.soft_margin_loss(a, b.detach()) | bi | bfloat16 | 0.078125 | -0.5965 | -
"""

DTYPES = {"f": torch.float32, "d": torch.float64, "b": torch.bfloat16, "i": torch.int64}


def values(letter: str, rows: list[list[float]]) -> torch.Tensor:
    made = torch.tensor(rows, dtype=DTYPES[letter])
    return made.requires_grad_() if made.is_floating_point() else made


@pytest.mark.parametrize("row", ROWS.strip().splitlines())
def test_result_and_gradients_have_their_dtypes(row: str) -> None:
    expression, dtypes, expected, *numbers = (part.strip() for part in row.split("|"))
    a = values(dtypes[0], [[1.0, 2.0, 3.0], [2.0, 1.0, 4.0], [3.0, 1.0, 1.0]])
    b = values(dtypes[1], [[2.0, 1.0, 1.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]])
    signs = torch.tensor([1, -1, 1])
    result = eval(expression, {"torch": torch, "F": F, "a": a, "b": b, "signs": signs})
    assert str(result.dtype).split(".")[1] == expected
    assert result.sum().item() == pytest.approx(float(numbers[0]), rel=1e-2)
    if result.requires_grad:
        result.sum().backward()
    for leaf, number in zip((a, b), numbers[1:], strict=True):
        if number == "-":
            assert leaf.grad is None
        else:
            assert leaf.grad.dtype is leaf.dtype
            weights = torch.arange(1.0, 10.0).reshape(3, 3)
            assert (leaf.grad.float() * weights).sum().item() == pytest.approx(float(number), rel=2e-2, abs=2e-2)


def test_values_are_searched_in_a_sequence_of_another_dtype() -> None:
    limits = torch.tensor([1, 3, 5])
    assert torch.searchsorted(limits, torch.tensor([0.5, 3.5]).bfloat16()).tolist() == [0, 2]
    assert torch.bucketize(torch.tensor([True, False]), limits.half()).tolist() == [0, 0]
    assert torch.bucketize(torch.tensor([0.5, 1.5]), torch.tensor([False, True])).tolist() == [1, 2]


def test_attention_in_16_bits_is_rounded_once_at_the_end() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(5, 4).bfloat16() for _ in range(3))
    wide = F.scaled_dot_product_attention(query.float(), key.float(), value.float())
    assert torch.equal(F.scaled_dot_product_attention(query, key, value), wide.bfloat16())


# call | how the error begins; x, y, z are float32, float64 and bfloat16 of shape (1, 1, 3, 3)
ERRORS = """
F.conv2d(x, y) | expected scalar type Float but found Double
F.conv2d(x, x, y[0, 0, 0, :1]) | Input type (float) and bias type (double) should be the same
F.conv2d(x.expand(2, 1, 3, 3), y) | Input type (torch.FloatTensor) and weight type (torch.DoubleTensor) should be the same or
F.conv2d(z, x) | Input type (CPUBFloat16Type) and weight type (torch.FloatTensor) should be the same or input should be a
F.conv2d(y, x) | expected scalar type Double but found Float
F.conv_transpose2d(x, y) | expected scalar type Float but found Double
F.conv2d(x.cfloat(), x) | Input type (CPUComplexFloatType) and weight type (torch.FloatTensor) should be the same
F.layer_norm(x, (3,), y[0, 0, 0], y[0, 0, 0]) | mixed dtype (CPU): expect parameter to have scalar type of Float
F.layer_norm(y, (3,), x[0, 0, 0], x[0, 0, 0]) | mixed dtype (CPU): all inputs must share same datatype
F.layer_norm(x, (3,), x[0, 0, 0], y[0, 0, 0]) | expected scalar type Float but found Double
F.layer_norm(z, (3,), z[0, 0, 0], x[0, 0, 0]) | expected scalar type BFloat16 but found Float
F.batch_norm(x[0, 0], y[0, 0, 0], y[0, 0, 0]) | mixed dtype (CPU): expect parameter to have scalar type of Float
F.batch_norm(x[0, 0], x[0, 0, 0], y[0, 0, 0], training=True) | expected scalar type Float but found Double
F.bilinear(x[0, 0], x[0, 0], y[0]) | All tensors must have the same dtype, got input1: float, input2: float, weight: double
F.scaled_dot_product_attention(x, z, z) | Expected query, key, and value to have the same dtype, but got query.dtype: float key.dt
F.grid_sample(x, y[..., :2], align_corners=True) | expected scalar type Float but found Double
torch.meshgrid(x[0, 0, 0], y[0, 0, 0], indexing="ij") | meshgrid expects all tensors to have the same dtype
torch.kron(x, y).expand(1) | expand(torch.DoubleTensor{[1, 1, 9, 9]}, size=[1]): the number of sizes provided (1) must be
z.expand(1) | expand(CPUBFloat16Type{[1, 1, 3, 3]}, size=[1]): the number of sizes provided (1) must be greater or equal to
torch.tensordot(x, y) | both inputs should have same dtype
torch.mm(x[0, 0], z[0, 0]) | expected m1 and m2 to have the same dtype, but got: float != c10::BFloat16
torch.empty(0, dtype=torch.uint16).set_(x) | Could not set tensor of type float to a tensor of type short unsigned int
"""


@pytest.mark.parametrize("row", ERRORS.strip().splitlines())
def test_a_mixture_is_refused_in_the_words_of_pytorch(row: str) -> None:
    call, words = row.split(" | ")
    x = torch.ones(1, 1, 3, 3)
    with pytest.raises(RuntimeError) as raised:
        eval(call, {"torch": torch, "F": F, "x": x, "y": x.double(), "z": x.bfloat16()})
    assert str(raised.value).replace("pullback.", "torch.").startswith(words)


def test_a_changed_tensor_is_named_by_its_type() -> None:
    x = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
    doubled = x * 2
    loss = (doubled * doubled).sum()
    doubled.add_(1)
    with pytest.raises(RuntimeError, match=r"inplace operation: \[CPUBFloat16Type \[3\]\]"):
        loss.backward()


NORMS = """
F.layer_norm(x, (4,), w, b)
F.group_norm(x, 2, w, b)
F.batch_norm(x, None, None, w, b, True)
F.batch_norm(x, torch.zeros(4), torch.ones(4), w, b)
F.instance_norm(torch.stack([x, x * x], -1), None, None, w, b)
F.rms_norm(x, (4,), w) * b
"""


@pytest.mark.parametrize("call", NORMS.strip().splitlines())
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_of_parameters_of_norms_are_not_rounded_to_the_input(call: str, create_graph: bool) -> None:
    torch.manual_seed(0)
    x, w, b = torch.randn(5, 4).bfloat16(), torch.rand(4), torch.rand(4)
    found = []
    for dtype in (torch.bfloat16, torch.float32):
        leaves = [leaf.to(dtype if leaf is x else torch.float32).requires_grad_() for leaf in (x, w, b)]
        result = eval(call, {"torch": torch, "F": F, **dict(zip("xwb", leaves, strict=True))})
        weights = torch.linspace(-1, 1, result.numel()).reshape(result.shape).bfloat16().to(result.dtype)
        found.append(torch.autograd.grad(result, leaves, weights, create_graph=create_graph))
    assert [gradient.dtype for gradient in found[0]] == [torch.bfloat16, torch.float32, torch.float32]
    for narrow, wide in zip(found[0][1:], found[1][1:], strict=True):
        assert torch.allclose(
            narrow, wide, rtol=1e-5 if "instance" not in call and "rms" not in call else 2e-2, atol=1e-5
        )
