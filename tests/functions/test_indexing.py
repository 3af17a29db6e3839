"""`tensor[...]` reads views and copies as PyTorch does, and `tensor[...] = value` writes and records them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback

ROWS = pullback.tensor([0, 2])


@pytest.fixture
def block() -> Any:
    return pullback.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("index", "nodes"),
    [
        (0, ["SelectBackward0"]),
        (slice(0, 1), ["SliceBackward0"]),
        (slice(None), ["SliceBackward0"]),
        (..., ["AliasBackward0"]),
        ((), ["AliasBackward0"]),
        (None, ["UnsqueezeBackward0"]),
        ((0, 1), ["SelectBackward0", "SelectBackward0"]),
        ((slice(None), 1), ["SelectBackward0"]),
        ((slice(None), ROWS), ["IndexBackward0"]),
        ((0, ROWS), ["IndexBackward0", "SelectBackward0"]),
        (True, ["IndexBackward0", "UnsqueezeBackward0"]),
    ],
)
def test_index_is_recorded_part_by_part(block: Any, index: Any, nodes: list[str]) -> None:
    node = block.clone().requires_grad_()[index].grad_fn
    names = []
    while node is not None and "Accumulate" not in node.name():
        names.append(node.name())
        node = node.next_functions[0][0]
    assert names == nodes


@pytest.mark.parametrize(
    ("index", "shape"),
    [
        ((0, slice(None), ROWS), (3, 2)),
        ((ROWS % 2, slice(None), ROWS), (2, 3)),
        ((slice(None), ROWS, slice(0, 2)), (2, 2, 2)),
        (([0, 1], [1, 2]), (2, 4)),
        pytest.param(
            [[0, 1], [1, 2]], (2, 4), marks=pytest.mark.filterwarnings("ignore:Using a non-tuple sequence:UserWarning")
        ),
        (np.array([1, 0, 1]), (3, 3, 4)),
        (pullback.tensor([True, False]), (1, 3, 4)),
        ((slice(None), pullback.tensor([True, False, True]), 0), (2, 2)),
        (False, (0, 2, 3, 4)),
        ([], (0, 3, 4)),
        (pullback.tensor(1), (3, 4)),
    ],
)
def test_advanced_index_gives_pytorchs_shape(block: Any, index: Any, shape: tuple[int, ...]) -> None:
    result = block[index]
    assert tuple(result.shape) == shape
    assert result.is_contiguous()


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (2, IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        (pullback.tensor([5]), IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        (pullback.tensor([0.5]), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
        (pullback.tensor([True] * 3), IndexError, r"The shape of the mask \[3\] at index 0 does not match"),
        ((pullback.tensor([0, 1]), pullback.tensor([0, 1, 2])), IndexError, "shape mismatch: indexing tensors"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
    ],
)
def test_impossible_index_is_refused(block: Any, index: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        block[index]


def test_number_of_dimensions_zero_cannot_be_indexed() -> None:
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        pullback.tensor(1.0)[0]


def test_repeated_positions_add_up_in_backward() -> None:
    leaf = pullback.zeros(3, requires_grad=True)
    leaf[[0, 0, 2]].sum().backward()
    assert leaf.grad.tolist() == [2.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("index", "value", "node"),
    [
        (0, 5.0, "CopySlices"),
        (slice(None), 5.0, "FillBackward3"),
        (slice(None), pullback.ones(3), "CopyBackwards"),
        (pullback.tensor([0, 1]), 5.0, "IndexPutBackward0"),
        (pullback.tensor([True, False]), 5.0, "IndexPutBackward0"),
        ((slice(0, 1), ROWS), 5.0, "CopySlices"),
    ],
)
def test_assignment_is_recorded(index: Any, value: Any, node: str) -> None:
    tensor: Any = pullback.zeros(2, 3, requires_grad=True) * 1
    tensor[index] = value
    assert tensor.grad_fn.name().rpartition("::")[2] == node


def test_assignment_sends_the_gradient_to_the_value() -> None:
    leaf = pullback.zeros(2, 3, requires_grad=True)
    value = pullback.ones(3, requires_grad=True)
    tensor = leaf * 1
    tensor[1] = value
    (tensor * pullback.arange(6.0).reshape(2, 3)).sum().backward()
    assert leaf.grad.tolist() == [[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]]
    assert value.grad.tolist() == [3.0, 4.0, 5.0]


def test_assignment_counts_one_modification() -> None:
    tensor = pullback.zeros(3)
    tensor[0] = 1
    tensor[ROWS] = 2
    assert tensor._version == 2
    assert tensor.tolist() == [2.0, 0.0, 2.0]


@pytest.mark.parametrize("dtype", [pullback.int64, pullback.float32])
def test_assignment_to_part_of_itself_is_refused_where_it_would_read_what_it_wrote(dtype: pullback.dtype) -> None:
    tensor = pullback.arange(4, dtype=dtype)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to"):
        tensor[1:] = tensor[:-1]
    tensor[:2] = tensor[2:]
    tensor[...] = tensor
    assert tensor.tolist() == [2, 3, 2, 3]


@pytest.mark.parametrize(
    ("index", "value", "error", "message"),
    [
        (0, pullback.ones(5), RuntimeError, "must match the existing size"),
        (pullback.tensor([0]), pullback.ones(2, 2), RuntimeError, "shape mismatch: value tensor of shape"),
        (
            pullback.tensor([0]),
            pullback.ones(3).double(),
            RuntimeError,
            "Index put requires",
        ),
        (0, [1, 2, 3], TypeError, "can't assign a list"),
        (0, 1j, RuntimeError, "value cannot be converted to type float without overflow"),
    ],
)
def test_impossible_assignment_is_refused(index: Any, value: Any, error: type[Exception], message: str) -> None:
    tensor = pullback.zeros(2, 3)
    with pytest.raises(error, match=message):
        tensor[index] = value
    assert tensor.tolist() == [[0.0] * 3] * 2


def test_gather_refuses_positions_outside() -> None:
    with pytest.raises(RuntimeError, match="index 3 is out of bounds for dimension 0 with size 2"):
        pullback.zeros(2).gather(0, pullback.tensor([3]))


def test_modified_index_is_noticed_by_backward() -> None:
    index = pullback.tensor([0, 1])
    result = pullback.zeros(3, requires_grad=True)[index]
    index.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_nonzero_as_tuple_indexes_what_it_found(block: Any) -> None:
    places = (block > 20).nonzero(as_tuple=True)
    assert block[places].tolist() == [21.0, 22.0, 23.0]


def test_one_element_of_bfloat16_is_written_to_one_place() -> None:
    x = pullback.tensor([1.5, 2.0], dtype=pullback.bfloat16)
    x[-1] = pullback.tensor([3.0], dtype=pullback.bfloat16)
    assert x.tolist() == [1.5, 3.0]


def test_a_slice_that_begins_from_the_end_is_a_view_of_its_own_though_it_takes_all() -> None:
    x = pullback.ones(3, 2, requires_grad=True)
    nodes = [type(y.grad_fn).__name__ for y in (x[:, -2:], x[:, 0:2], x[:, :9])]
    assert nodes == ["SliceBackward0", "AliasBackward0", "AliasBackward0"]


@pytest.mark.parametrize(
    ("shape", "dim", "error", "message"),
    [
        ((), 0, IndexError, "index out of range in self"),
        ((0,), 0, IndexError, "index out of range in self"),
        ((2, 2), 0, IndexError, "index out of range in self"),
        ((0, 2), 0, RuntimeError, r"index_select\(\): self indexing axis dim should be positive"),
        ((2, 0), 0, RuntimeError, "INDICES element is out of DATA bounds, id=5 axis_dim=2"),
        ((2, 2), 1, RuntimeError, "INDICES element is out of DATA bounds, id=5 axis_dim=2"),
    ],
)
def test_index_select_refuses_positions_outside(shape: Any, dim: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        pullback.ones(shape).index_select(dim, pullback.tensor([5]))
    assert isinstance(caught.value, IndexError) == (error is IndexError)


def test_values_with_a_leading_dimension_more_than_the_positions_get_their_gradient() -> None:
    leaf, values = pullback.ones(1, 3, requires_grad=True), pullback.ones(1, 3, requires_grad=True)
    written = leaf * 1
    written[pullback.tensor([[True, True, True]])] = values
    (written * pullback.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [[1.0, 2.0, 3.0]]
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("index", "dimension"),  # PyTorch names the place in the index
    [
        ((0, None, 9), 2),
        ((None, 9), 1),
        ((..., 9), 1),
        ((..., None, 9), 2),
        ((0, None, slice(None), 9), 3),
        ((0, 1, 9), 2),
    ],
)
def test_a_position_outside_names_its_place_in_the_index(index: Any, dimension: int) -> None:
    with pytest.raises(IndexError, match=f"index 9 is out of bounds for dimension {dimension} with size"):
        pullback.ones(2, 3, 4)[index]
