"""Collation of samples into batches, and conversion of single samples."""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.utils.data import default_collate, default_convert
from pullback.utils.data._utils.collate import collate, default_collate_fn_map

Point = namedtuple("Point", "x y")


class MyList(list[Any]):
    pass


@pytest.mark.parametrize(
    ("batch", "values", "dtype"),
    [
        ([1, 2], [1, 2], pullback.int64),
        ([True, False], [True, False], pullback.bool),
        ([1.5, 2], [1.5, 2.0], pullback.float64),
        ([np.float32(1), np.float32(2)], [1.0, 2.0], pullback.float32),
        ([np.array(1), np.array(2)], [1, 2], pullback.int64),
        ([np.zeros(2), np.ones(2)], [[0.0, 0.0], [1.0, 1.0]], pullback.float64),
    ],
)
def test_numbers_become_a_tensor_of_their_dtype(batch: list[Any], values: Any, dtype: Any) -> None:
    collated = default_collate(batch)
    assert (collated.tolist(), collated.dtype) == (values, dtype)


def test_tensors_are_stacked() -> None:
    assert default_collate([pullback.tensor([1, 2]), pullback.tensor([3, 4])]).tolist() == [[1, 2], [3, 4]]


def test_text_is_left_alone() -> None:
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a"]) == [b"a"]


def test_mappings_keep_type_and_order() -> None:
    collated = default_collate([OrderedDict(b=1, a="x"), OrderedDict(a="y", b=2)])
    assert type(collated) is OrderedDict
    assert (list(collated), collated["b"].tolist(), collated["a"]) == (["b", "a"], [1, 2], ["x", "y"])


def test_a_defaultdict_keeps_its_factory() -> None:
    assert default_collate([defaultdict(list, a=1)]).default_factory is list


def test_a_read_only_mapping_is_rebuilt() -> None:
    assert isinstance(default_collate([types.MappingProxyType({"a": 1})]), types.MappingProxyType)


@pytest.mark.parametrize(
    ("batch", "kind"),
    [
        ([(1, 2), (3, 4)], list),
        ([[1, 2], [3, 4]], list),
        ([Point(1, 2), Point(3, 4)], Point),
        ([MyList([1, 2]), MyList([3, 4])], MyList),
        ([deque([1, 2]), deque([3, 4])], deque),
        ([range(1, 3), range(3, 5)], list),
    ],
)
def test_sequences_are_transposed(batch: list[Any], kind: type) -> None:
    collated: Any = default_collate(batch)
    columns = [column.tolist() for column in collated]
    assert (type(collated), columns) == (kind, [[batch[0][0], batch[1][0]], [batch[0][1], batch[1][1]]])


def test_collating_does_not_change_the_samples() -> None:
    samples = [{"a": [1]}, {"a": [2]}]
    default_collate(samples)
    assert samples == [{"a": [1]}, {"a": [2]}]


def test_sequences_of_different_lengths_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"each element in list of batch should be of equal size.*\[1, 2\]"):
        default_collate([[1, 2], [1]])


@pytest.mark.parametrize(
    ("sample", "found"),
    [(None, "NoneType"), (object(), "object"), (1j, "complex"), (np.array(["a"]), "<U1"), (np.array([None]), "object")],
)
def test_what_cannot_be_collated_is_named(sample: Any, found: str) -> None:
    with pytest.raises(
        TypeError, match=f"batch must contain tensors, numpy arrays, numbers, dicts or lists; found.*{found}"
    ):
        default_collate([sample])


def test_a_program_can_add_its_own_type() -> None:
    functions = {**default_collate_fn_map, complex: lambda batch, *, collate_fn_map: sum(batch)}
    assert collate([(1j, 1), (2j, 2)], collate_fn_map=functions)[0] == 3j


def test_convert_turns_arrays_into_tensors_inside_containers() -> None:
    converted = default_convert({"a": np.zeros(2), "b": Point(np.float32(1), "text"), "c": (1, [np.ones(1)])})
    assert converted["a"].dtype == pullback.float64
    assert (type(converted["b"]), converted["b"].x.item(), converted["b"].y) == (Point, 1.0, "text")
    assert (converted["c"][0], converted["c"][1][0].tolist()) == (1, [1.0])


@pytest.mark.parametrize("value", [1, "a", None, b"x"])
def test_convert_leaves_the_rest_alone(value: Any) -> None:
    assert default_convert(value) is value


def test_convert_leaves_arrays_of_text_alone() -> None:
    array = np.array(["a"])
    assert default_convert(array) is array
