"""Views share memory, know their base and refuse impossible shapes; in-place views and copies keep the derivative."""

from __future__ import annotations

from typing import Any

import pytest

import pullback


@pytest.fixture
def matrix() -> Any:
    return pullback.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("call", "shape", "stride"),
    [
        (lambda x: x.view(3, -1), (3, 2), (2, 1)),
        (lambda x: x.t(), (3, 2), (1, 3)),
        (lambda x: x.permute(1, 0), (3, 2), (1, 3)),
        (lambda x: x.unsqueeze(1), (2, 1, 3), (3, 3, 1)),
        (lambda x: x.expand(4, 2, 3), (4, 2, 3), (0, 3, 1)),
        (lambda x: x[:, ::2], (2, 2), (3, 2)),
        (lambda x: x.diagonal(), (2,), (4,)),
        (lambda x: x.unfold(1, 2, 1), (2, 2, 2), (3, 1, 1)),
        (lambda x: x.as_strided((2, 2), (1, 1), 1), (2, 2), (1, 1)),
        (lambda x: x.movedim(0, 1), (3, 2), (1, 3)),
        (lambda x: x.flatten(), (6,), (1,)),
    ],
)
def test_view_shares_memory_with_its_base(matrix: Any, call: Any, shape: Any, stride: Any) -> None:
    base = matrix.clone()
    view = call(base)
    assert (tuple(view.shape), view.stride()) == (shape, stride)
    assert view._base is base
    view[(0,) * view.ndim] = 50.0
    assert 50.0 in base.tolist()[0]


def test_view_of_a_view_has_the_root_as_base(matrix: Any) -> None:
    root = matrix.clone()
    assert root[0][1:]._base is root


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.view(4), r"shape '\[4\]' is invalid for input of size 6"),
        (lambda x: x.view(-1, -1), "only one dimension can be inferred"),
        (lambda x: x.t().view(6), "view size is not compatible with input tensor's size and stride"),
        (lambda x: x.expand(2, 4), r"The expanded size of the tensor \(4\) must match the existing size \(3\)"),
        (lambda x: x.permute(0, 0), "duplicate dims are not allowed"),
        (lambda x: x.as_strided((7,), (1,)), "out of bounds for storage of size"),
        (lambda x: x.unfold(0, 3, 1), "maximum size for tensor at dimension 0 is 2 but size is 3"),
        (lambda x: x.unflatten(1, (2, 2)), "don't multiply up to the size of dim 1"),
    ],
)
def test_impossible_view_is_refused(matrix: Any, call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call(matrix)


@pytest.mark.parametrize("call", [lambda x: x.transpose(0, 2), lambda x: x.unsqueeze(3), lambda x: x.squeeze(-3)])
def test_dimension_out_of_range_is_refused(matrix: Any, call: Any) -> None:
    with pytest.raises(IndexError, match="Dimension out of range"):
        call(matrix)


def test_reshape_copies_only_where_it_must(matrix: Any) -> None:
    assert matrix.reshape(6)._base is not None
    assert matrix.t().reshape(6)._base is None


def test_flatten_of_a_vector_is_the_vector() -> None:
    vector = pullback.arange(3)
    assert vector.flatten() is vector


def test_view_as_another_dtype_reads_the_bytes() -> None:
    assert pullback.tensor([1.0]).view(pullback.int32).tolist() == [0x3F800000]
    assert pullback.zeros(4).view(pullback.complex64).shape == (2,)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("TBackward1", lambda x: x.t_()),
        ("TransposeBackward1", lambda x: x.transpose_(0, 1)),
        ("UnsqueezeBackward1", lambda x: x.unsqueeze_(0)),
        ("AsStridedBackward1", lambda x: x.as_strided_((2,), (1,))),
    ],
)
def test_view_made_in_place_is_recorded(matrix: Any, name: str, call: Any) -> None:
    leaf = matrix.clone().requires_grad_()
    tensor = leaf * 2
    version = tensor._version
    assert call(tensor) is tensor
    assert tensor.grad_fn.name() == name
    assert tensor._version == version + 1
    (gradient,) = pullback.autograd.grad(tensor.sum(), leaf)
    assert gradient.flatten()[:2].tolist() == [2.0, 2.0]


def test_copy_of_a_view_has_a_node_of_its_own(matrix: Any) -> None:
    copy = pullback.diagonal_copy(matrix.clone().requires_grad_())
    assert copy.grad_fn.name() == "DiagonalBackward0_copy"
    assert copy._base is None


def test_flip_copies_and_keeps_the_memory_order(matrix: Any) -> None:
    flipped = matrix.t().flip(0)
    assert flipped._base is None
    assert flipped.stride() == (1, 3)


def test_clone_of_an_expanded_tensor_is_dense() -> None:
    assert pullback.zeros(1, 3).expand(2, 3).clone().stride() == (3, 1)


def test_meshgrid_warns_without_indexing() -> None:
    with pytest.warns(UserWarning, match="indexing argument"):
        pullback.meshgrid(pullback.arange(2), pullback.arange(3))


def test_second_derivative_goes_through_a_result_saved_in_place_on_a_view() -> None:
    leaf = pullback.tensor([0.0, 0.0], requires_grad=True)
    tensor = leaf * 2
    tensor[:1].exp_()
    (first,) = pullback.autograd.grad(tensor.sum(), leaf, create_graph=True)
    (second,) = pullback.autograd.grad(first.sum(), leaf)
    assert (first.tolist(), second.tolist()) == ([2.0, 2.0], [4.0, 0.0])


def test_second_derivative_sums_over_a_view_that_repeats_its_modified_base() -> None:
    leaf = pullback.tensor([1.0, 2.0], requires_grad=True)
    tensor = leaf * 1
    repeated = tensor.expand(3, 2)
    tensor.mul_(2)
    (first,) = pullback.autograd.grad((repeated * repeated).sum(), leaf, create_graph=True)
    (second,) = pullback.autograd.grad(first.sum(), leaf)
    assert (first.tolist(), second.tolist()) == ([24.0, 48.0], [24.0, 24.0])


@pytest.mark.parametrize("name", ["t_", "squeeze_", "unsqueeze_", "as_strided_"])
def test_a_stale_view_may_be_reshaped_in_place_where_nothing_is_recorded(name: str) -> None:
    arguments: dict[str, tuple[Any, ...]] = {"unsqueeze_": (0,), "as_strided_": ([1], [1])}
    leaf = pullback.ones(2, requires_grad=True)
    part = leaf.chunk(2)[0]
    with pullback.no_grad():
        leaf += 1
        getattr(part, name)(*arguments.get(name, ()))
    assert part.numel() == 1
