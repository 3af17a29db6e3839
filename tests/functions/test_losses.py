"""Losses: values that a person can check, reductions, and what is refused."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

import pullback

torch: Any = pullback
F: Any = torch.nn.functional


def names(tensor: Any) -> list[str]:
    """The chain of first predecessors in the graph."""
    found, node = [], tensor.grad_fn
    while node is not None:
        found.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return found


@pytest.mark.parametrize(("reduction", "expected"), [("none", [0.0, 4.0]), ("mean", 2.0), ("sum", 4.0)])
def test_reductions(reduction: str, expected: Any) -> None:
    assert F.mse_loss(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0]), reduction=reduction).tolist() == expected


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(ValueError, match="foo is not a valid value for reduction"):
        F.mse_loss(torch.ones(1), torch.ones(1), reduction="foo")


def test_the_old_flags_are_understood_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert F.l1_loss(torch.ones(2), torch.zeros(2), size_average=False).item() == 2


def test_targets_that_broadcast_warn() -> None:
    with pytest.warns(UserWarning, match="likely lead to incorrect results due to broadcasting"):
        F.mse_loss(torch.ones(2, 2), torch.ones(2))


def test_smooth_l1_and_huber_are_quadratic_near_zero() -> None:
    x, y = torch.tensor([0.5, 3.0]), torch.zeros(2)
    assert F.smooth_l1_loss(x, y, reduction="none").tolist() == [0.125, 2.5]
    assert F.huber_loss(x, y, reduction="none", delta=2.0).tolist() == [0.125, 4.0]


def test_cross_entropy_is_recorded_as_two_nodes() -> None:
    x = torch.zeros(1, 2, requires_grad=True)
    loss = F.cross_entropy(x, torch.tensor([0]))
    assert names(loss) == ["NllLossBackward0", "LogSoftmaxBackward0", "torch::autograd::AccumulateGrad"]
    loss.backward()
    assert x.grad.tolist() == [[-0.5, 0.5]]


def test_ignored_targets_count_neither_in_the_loss_nor_in_the_mean() -> None:
    x = torch.zeros(2, 4, requires_grad=True)
    loss = F.cross_entropy(x, torch.tensor([1, -100]))
    loss.backward()
    assert loss.item() == pytest.approx(log(4))
    assert x.grad[1].tolist() == [0, 0, 0, 0]
    assert F.cross_entropy(x, torch.tensor([3, 1]), ignore_index=3, reduction="sum").item() == pytest.approx(log(4))


def test_the_weighted_mean_divides_by_the_weights() -> None:
    loss = F.nll_loss(torch.tensor([[-1.0, -2.0], [-3.0, -5.0]]), torch.tensor([0, 1]), torch.tensor([1.0, 3.0]))
    assert loss.item() == pytest.approx((1 + 3 * 5) / 4)


def test_targets_may_be_probabilities() -> None:
    x = torch.tensor([[0.3, -0.2, 1.0]])
    classes = F.cross_entropy(x, torch.tensor([2]))
    probabilities = F.cross_entropy(x, torch.tensor([[0.0, 0.0, 1.0]]))
    assert probabilities.item() == pytest.approx(classes.item())


def test_label_smoothing_mixes_in_the_uniform_distribution() -> None:
    x = torch.tensor([[0.3, -0.2, 1.0, 0.0]])
    smooth = F.cross_entropy(x, torch.tensor([2]), label_smoothing=0.2)
    mixed = F.cross_entropy(x, torch.tensor([[0.05, 0.05, 0.85, 0.05]]))
    assert smooth.item() == pytest.approx(mixed.item())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: F.nll_loss(x, torch.tensor([0, 9])), IndexError, "Target 9 is out of bounds."),
        (lambda x: F.nll_loss(x, torch.tensor([0])), ValueError, r"batch_size \(2\) to match target batch_size \(1\)"),
        (lambda x: F.nll_loss(x, torch.tensor([0.0, 1.0])), RuntimeError, "expected target dtype to be Long or Byte"),
        (
            lambda x: F.nll_loss(x, torch.tensor([0, 1]), torch.ones(2)),
            RuntimeError,
            "defined either for all 3 classes",
        ),
        (lambda x: F.cross_entropy(x, torch.tensor([0, 1]), label_smoothing=2), RuntimeError, "between 0.0 and 1.0"),
        (lambda x: F.binary_cross_entropy(x + 1, x), RuntimeError, "all elements of input should be between 0 and 1"),
        (lambda x: F.binary_cross_entropy_with_logits(x, x[0]), ValueError, "must be the same as input size"),
        (lambda x: F.gaussian_nll_loss(x, x, -x), ValueError, "var has negative entry/entries"),
        (lambda x: F.multi_margin_loss(x, torch.tensor([0, 1]), p=3), ValueError, "only p == 1 and p == 2 supported"),
        (lambda x: F.triplet_margin_loss(x, x, x, margin=0), ValueError, "margin must be greater than 0"),
        (lambda x: F.huber_loss(x, x, delta=0.0), RuntimeError, "does not support non-positive values for delta"),
    ],
)
def test_wrong_arguments_are_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(torch.ones(2, 3))


def test_logits_of_any_size_give_finite_losses() -> None:
    loss = F.binary_cross_entropy_with_logits(torch.tensor([1e4, -1e4]), torch.tensor([0.0, 1.0]), reduction="none")
    assert loss.tolist() == [1e4, 1e4]


def test_kl_div_with_mean_warns_of_batchmean() -> None:
    with pytest.warns(UserWarning, match="batchmean"):
        F.kl_div(torch.zeros(2, 2), torch.full((2, 2), 0.5))


def test_ctc_loss_of_two_steps_sums_all_alignments() -> None:
    """The label 1 over two steps of two equally likely classes: (1, 1), (0, 1), (1, 0)."""
    log_probs = torch.full((2, 1, 2), log(0.5))
    loss = F.ctc_loss(log_probs, torch.tensor([[1]]), (2,), (1,), reduction="sum")
    assert loss.item() == pytest.approx(-log(3 / 4))


def test_ctc_loss_of_an_impossible_target_is_infinite_or_nothing() -> None:
    log_probs = torch.full((1, 1, 3), log(1 / 3), requires_grad=True)
    arguments = (torch.tensor([[1, 2]]), (1,), (2,))
    assert F.ctc_loss(log_probs, *arguments, reduction="sum").item() == float("inf")
    loss = F.ctc_loss(log_probs, *arguments, reduction="sum", zero_infinity=True)
    loss.backward()
    assert loss.item() == 0
    assert log_probs.grad.abs().max().item() == 0


@pytest.mark.parametrize(("steps", "labels"), [(5, 2), (3, 0), (4, 3)])
def test_the_gradient_of_ctc_loss_in_a_batch_of_many_lengths_is_that_of_the_sequence_alone(
    steps: int, labels: int
) -> None:
    x = torch.linspace(-2, 2, 60).sin().mul(3).reshape(5, 3, 4).log_softmax(2).detach().requires_grad_()
    targets = torch.tensor([[2, 2, 1], [3, 1, 2], [1, 3, 3]])
    batched = F.ctc_loss(x, targets, (4, steps, 5), (2, labels, 3), reduction="none")[1]
    alone = F.ctc_loss(x[:steps, 1:2], targets[1:2, :labels], (steps,), (labels,), reduction="sum")

    (actual,) = torch.autograd.grad(batched, x)

    (expected,) = torch.autograd.grad(alone, x)
    assert torch.allclose(actual, expected, atol=1e-6)


def test_the_second_derivative_of_ctc_loss_does_not_exist() -> None:
    x = torch.zeros(2, 1, 2, requires_grad=True)
    loss = F.ctc_loss(x.log_softmax(2), torch.tensor([[1]]), (2,), (1,))
    (grad,) = torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(NotImplementedError, match="_ctc_loss_backward"):
        grad.sum().backward()


@pytest.mark.parametrize("name", ["huber_loss", "smooth_l1_loss"])
def test_the_second_derivative_where_a_loss_becomes_linear_is_zero(name: str) -> None:
    x = pullback.tensor([1.0, -1.0, 0.5, 2.0], requires_grad=True)
    loss = getattr(pullback.nn.functional, name)(x, pullback.zeros(4), reduction="sum")
    (slope,) = pullback.autograd.grad(loss, x, create_graph=True)
    (curvature,) = pullback.autograd.grad(slope.sum(), x)
    assert slope.tolist() == [1.0, -1.0, 0.5, 1.0]
    assert curvature.tolist() == [0.0, 0.0, 1.0, 0.0]


def test_warnings_point_at_the_program() -> None:
    for function in (F.l1_loss, F.mse_loss):
        with pytest.warns(UserWarning, match="different to the input size") as caught:
            function(pullback.ones(2, 1), pullback.ones(1, 2))
        assert caught[0].filename == __file__
