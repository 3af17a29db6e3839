"""MaskedTensor: data of which a mask leaves out some elements. Values and texts are PyTorch's."""

from __future__ import annotations

import pytest

import pullback
from pullback.masked import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor
from pullback.modes.interception import overrides

DATA = [[0.3, 0.2, -0.5], [0.1, 0.9, 0.7]]
MASK = [[True, False, True], [True, True, False]]


pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")


def _masked(requires_grad: bool = False) -> MaskedTensor:
    return masked_tensor(pullback.tensor(DATA), pullback.tensor(MASK), requires_grad)


def _filled(value: pullback.Tensor) -> list[object]:
    assert is_masked_tensor(value)
    return [round(v, 4) if isinstance(v, float) else v for v in value.to_tensor(-9).reshape(-1).tolist()]


def test_construction_copies_and_checks() -> None:
    data, mask = pullback.tensor(DATA), pullback.tensor(MASK)
    x = masked_tensor(data, mask)
    data.zero_()

    assert _filled(x) == [0.3, -9.0, -0.5, 0.1, 0.9, -9.0]
    assert x.get_data().tolist() == pullback.tensor(DATA).tolist()
    assert x.get_mask().tolist() == MASK
    with pytest.raises(TypeError, match="data must be a Tensor"):
        masked_tensor([1.0], mask)
    with pytest.raises(TypeError, match="mask must have dtype bool"):
        masked_tensor(data, mask.int())
    with pytest.raises(ValueError, match=r"data\.size\(\) must equal mask\.size\(\)"):
        masked_tensor(data, mask[:, :2])
    with pytest.raises(TypeError, match="complex64 is not supported in MaskedTensor"):
        masked_tensor(data.to(pullback.complex64), mask)


def test_elementwise_operations_keep_the_mask() -> None:
    x = _masked()

    assert _filled(x.abs()) == [0.3, -9.0, 0.5, 0.1, 0.9, -9.0]
    assert _filled(1 - x * 2) == [0.4, -9.0, 2.0, 0.8, -0.8, -9.0]
    assert _filled(x > 0) == [True, True, False, True, True, True]
    assert _filled(x + pullback.tensor([1.0, 2.0, 3.0])) == [1.3, -9.0, 2.5, 1.1, 2.9, -9.0]
    x.neg_()
    assert _filled(x) == [-0.3, -9.0, 0.5, -0.1, -0.9, -9.0]
    with pytest.raises(ValueError, match="Input masks must match"):
        x + masked_tensor(pullback.tensor(DATA), ~pullback.tensor(MASK))
    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        x.relu()


def test_reductions_leave_out_what_is_masked() -> None:
    x = _masked()

    assert _filled(x.sum(0)) == [0.4, 0.9, -0.5]
    assert _filled(x.mean()) == [0.2]
    assert _filled(x.prod(1)) == [-0.15, 0.09]
    assert _filled(x.amax(1, keepdim=True)) == [0.3, 0.9]
    assert _filled(x.argmax()) == [4.0]
    assert _filled(x.var()) == [0.3333]
    assert _filled((x > -1).all()) == [True]
    empty = masked_tensor(pullback.tensor(DATA), pullback.tensor(MASK).logical_and(pullback.tensor([[True], [False]])))
    assert _filled(empty.sum(1)) == [-0.2, -9.0]


def test_views_take_data_and_mask_along() -> None:
    x = _masked()

    assert _filled(x[1]) == [0.1, 0.9, -9.0]
    assert _filled(x.t()) == [0.3, 0.1, -9.0, 0.9, -0.5, -9.0]
    assert _filled(x.reshape(3, 2)[:, 1]) == [-9.0, 0.1, -9.0]
    assert [_filled(part) for part in x.split(1)] == [[0.3, -9.0, -0.5], [0.1, 0.9, -9.0]]
    assert _filled(pullback.cat([x[0], x[1]])) == [0.3, -9.0, -0.5, 0.1, 0.9, -9.0]
    assert _filled(pullback.where(pullback.tensor(MASK), x, 1.0)) == [0.3, 1.0, -0.5, 0.1, 0.9, 1.0]


def test_gradients_are_masked() -> None:
    x = _masked(requires_grad=True)
    x.exp().sum().backward()
    assert _filled(x.grad) == [1.3499, -9.0, 0.6065, 1.1052, 2.4596, -9.0]

    (gradient,) = pullback.autograd.grad(x.mean(), x)
    assert _filled(gradient) == [0.25, -9.0, 0.25, 0.25, 0.25, -9.0]


def test_what_is_left_out_does_not_spoil_the_gradient_of_the_rest() -> None:
    x = pullback.tensor([4.0, -1.0], requires_grad=True)
    as_masked_tensor(x, pullback.tensor([True, False])).sqrt().sum().backward()
    assert _filled(x.grad) == [0.25, -9.0]

    y = pullback.tensor([4.0, 0.0], requires_grad=True)
    quotient = as_masked_tensor(y * 1, pullback.tensor([True, False])) / y
    quotient.sum().backward()
    assert _filled(y.grad) == [0.0, -9.0]


def test_gradient_of_a_plain_operand_sums_over_the_mask() -> None:
    weight = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (_masked() * weight).sum().backward()
    assert _filled(weight.grad) == [0.4, 0.9, -0.5]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("sum", (1,), [4.0, 6.0]),
        ("mean", (1,), [4 / 3, 2.0]),
        ("prod", (1,), [3.0, 6.0]),
        ("amax", (1,), [3.0, 6.0]),
        ("argmin", (1,), [0.0, 2.0]),
        ("norm", (1, 1), [4.0, 6.0]),
        ("var", (1,), [13 / 9, 8.0]),
        ("cumsum", (1,), [[1.0, 1.0, 4.0], [0.0, 0.0, 6.0]]),
        ("median", (1,), [1.0, 6.0]),
        ("normalize", (1, 1), [[0.25, 0.0, 0.75], [0.0, 0.0, 1.0]]),
    ],
)
def test_masked_functions_fill_what_a_masked_tensor_leaves_out(
    name: str, arguments: tuple[int, ...], expected: list[float]
) -> None:
    """Means divide by the number of all elements, as PyTorch's do for this type of input."""
    data = pullback.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    mask = pullback.tensor([[True, False, True], [False, False, True]])
    actual = getattr(pullback.masked, name)(masked_tensor(data, mask), *arguments)
    assert type(actual) is pullback.Tensor
    pullback.testing.assert_close(actual, pullback.tensor(expected))


def test_casts_keep_the_mask() -> None:
    whole = _masked().long()
    assert whole.dtype is pullback.int64
    assert whole.get_mask().tolist() == _masked().get_mask().tolist()


def test_text() -> None:
    assert repr(_masked()) == (
        "MaskedTensor(\n  [\n    [  0.3000,       --,  -0.5000],\n    [  0.1000,   0.9000,       --]\n  ]\n)"
    )
    assert repr(masked_tensor(pullback.tensor([1, 22]), pullback.tensor([True, False]))) == (
        "MaskedTensor(\n  [1,       --]\n)"
    )
    assert repr(masked_tensor(pullback.tensor(1.0), pullback.tensor(False))) == "MaskedTensor(--, False)"


def test_the_class_is_asked_about_operations() -> None:
    assert MaskedTensor in overrides.types


def test_making_one_warns() -> None:
    with pytest.warns(UserWarning, match="prototype stage"):
        masked_tensor(pullback.ones(1), pullback.tensor([True]))
