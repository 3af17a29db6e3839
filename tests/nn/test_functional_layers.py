"""Functions that layers wrap: normalization, dropout, embeddings, attention, recurrence, distances."""

from __future__ import annotations

import pytest

import pullback
import pullback.nn.functional as F


def test_every_name_of_the_namespace_exists() -> None:
    missing = [name for name in F.__all__ if not callable(getattr(F, name, None))]
    assert missing == []


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        F.nothing


def test_layer_norm_gives_mean_zero_and_variance_one() -> None:
    rows = F.layer_norm(pullback.randn(5, 64) * 3 + 2, (64,))
    pullback.testing.assert_close(rows.mean(1), pullback.zeros(5), atol=1e-5, rtol=0)
    pullback.testing.assert_close(rows.var(1, correction=0), pullback.ones(5), atol=1e-3, rtol=0)


def test_batch_norm_moves_the_running_statistics_and_evaluation_leaves_them() -> None:
    mean, variance = pullback.zeros(1), pullback.ones(1)
    x = pullback.tensor([[1.0], [3.0]])
    F.batch_norm(x, mean, variance, training=True, momentum=0.5)
    assert (mean.item(), variance.item()) == (1.0, 1.5)
    F.batch_norm(x, mean, variance, training=False)
    assert (mean.item(), variance.item()) == (1.0, 1.5)


def test_half_precision_statistics_are_kept_in_the_dtype_of_the_parameters() -> None:
    x = pullback.ones(2, 4).half()

    _, alone, _ = pullback.native_layer_norm(x, (4,), None, None, 1e-5)
    result, mean, rstd = pullback.native_layer_norm(x, (4,), pullback.ones(4), None, 1e-5)

    assert alone.dtype is pullback.float16
    assert (result.dtype, mean.dtype, rstd.dtype) == (pullback.float16, pullback.float32, pullback.float32)


def test_dropout_scales_what_it_keeps_and_its_gradient_the_same() -> None:
    x = pullback.ones(1000, requires_grad=True)
    result = F.dropout(x, 0.25)
    result.sum().backward()
    assert set(result.tolist()) == {0.0, pullback.tensor(1 / 0.75).item()}
    assert result.tolist() == x.grad.tolist()


def test_dropout_outside_of_training_returns_its_input() -> None:
    x = pullback.ones(3)
    assert F.dropout(x, 0.5, training=False) is x


def test_channel_dropout_drops_whole_channels() -> None:
    pullback.manual_seed(0)
    sums = F.dropout2d(pullback.ones(4, 8, 3, 3), 0.5).sum((2, 3))
    assert set(sums.flatten().tolist()) == {0.0, 18.0}


def test_dropout_in_place_of_a_leaf_is_refused() -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        F.dropout(pullback.ones(3, requires_grad=True), 0.5, inplace=True)


def test_rows_that_occur_often_add_up_their_gradients() -> None:
    weight = pullback.zeros(3, 2, requires_grad=True)
    F.embedding(pullback.tensor([1] * 40 + [2]), weight, padding_idx=2).sum().backward()
    assert weight.grad.tolist() == [[0.0, 0.0], [40.0, 40.0], [0.0, 0.0]]


def test_an_index_outside_of_the_table_is_named() -> None:
    with pytest.raises(IndexError, match="index out of range in self: 5"):
        F.embedding(pullback.tensor([0, 5]), pullback.zeros(3, 2))


@pytest.mark.parametrize(("mode", "expected"), [("sum", [4.0, 0.0]), ("mean", [2.0, 0.0]), ("max", [3.0, 0.0])])
def test_bags_and_an_empty_bag(mode: str, expected: list[float]) -> None:
    table = pullback.tensor([[1.0], [3.0]])
    bags = F.embedding_bag(pullback.tensor([0, 1]), table, pullback.tensor([0, 2]), mode=mode)
    assert bags.flatten().tolist() == expected


def test_attention_without_any_visible_key_is_zero_and_so_is_its_gradient() -> None:
    query = pullback.randn(1, 1, 2, 4, requires_grad=True)
    mask = pullback.tensor([[True, True], [False, False]])
    result = F.scaled_dot_product_attention(query, query.detach(), query.detach(), mask)
    result.sum().backward()
    assert result[0, 0, 1].tolist() == [0.0] * 4
    assert query.grad[0, 0, 1].tolist() == [0.0] * 4


def test_causal_attention_does_not_see_later_keys() -> None:
    first, second = pullback.randn(1, 1, 3, 4), pullback.randn(1, 1, 3, 4)
    second[..., 0, :] = first[..., 0, :]
    results = [F.scaled_dot_product_attention(x, x, x, is_causal=True)[0, 0, 0] for x in (first, second)]
    pullback.testing.assert_close(results[0], results[1])


def test_fused_and_composite_attention_agree() -> None:
    query, key, value = (pullback.randn(2, 3, 5, 4) for _ in range(3))
    fused = F.scaled_dot_product_attention(query, key, value)
    one_by_one = F.scaled_dot_product_attention(query[0], key[0], value[0])
    pullback.testing.assert_close(fused[0], one_by_one)


def test_a_layer_is_its_cell_step_by_step() -> None:
    x, hidden, cell = pullback.randn(4, 2, 3), pullback.randn(1, 2, 5), pullback.randn(1, 2, 5)
    weights = [pullback.randn(20, 3), pullback.randn(20, 5), pullback.randn(20), pullback.randn(20)]
    output, _, _ = pullback.lstm(x, (hidden, cell), weights, True, 1, 0.0, False, False, False)
    h, c = hidden[0], cell[0]
    for t in range(4):
        h, c = pullback.lstm_cell(x[t], (h, c), *weights)
        pullback.testing.assert_close(output[t], h)


def test_second_order_counts_each_use_of_a_shared_tensor_once() -> None:
    weight = pullback.randn(3, 3, dtype=pullback.float64, requires_grad=True)
    x = (weight * weight).reshape(3, 1, 3)
    start = pullback.zeros(1, 1, 3, dtype=pullback.float64)
    output, _ = pullback.rnn_tanh(x, start, [weight, weight], False, 1, 0.0, False, False, False)
    pullback.autograd.gradcheck(
        lambda w: pullback.rnn_tanh((w * w).reshape(3, 1, 3), start, [w, w], False, 1, 0.0, False, False, False)[0],
        (weight,),
    )
    (first,) = pullback.autograd.grad(output.sum(), weight, create_graph=True)
    assert first.requires_grad


def test_distances_of_equal_rows_have_no_gradient() -> None:
    x = pullback.ones(2, 3, requires_grad=True)
    pullback.cdist(x, x.detach()).sum().backward()
    assert x.grad.abs().sum().item() == 0.0


def test_a_hard_sample_is_one_hot_with_the_gradient_of_the_soft_one() -> None:
    logits = pullback.randn(4, 5, requires_grad=True)
    sample = F.gumbel_softmax(logits, hard=True)
    assert sample.sum(1).round().tolist() == [1.0] * 4
    sample[:, 0].sum().backward()
    assert logits.grad.abs().sum().item() > 0
