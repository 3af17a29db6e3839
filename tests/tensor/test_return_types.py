"""Named tuples of results."""

from __future__ import annotations

import copy
import pickle

import pytest

from pullback.tensor.return_types import named_results, return_type
from pullback.utils._pytree import tree_map


def test_fields_are_attributes_and_places() -> None:
    pair = return_type("sort")(["a", "b"])
    assert (pair.values, pair.indices) == ("a", "b")  # type: ignore[attr-defined]  # fields are made at run time
    assert pair == ("a", "b")


def test_the_number_of_results_is_checked() -> None:
    with pytest.raises(TypeError, match=r"return_types.max\(\) takes a 2-sequence \(1-sequence given\)"):
        return_type("max")([1])


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_copies_keep_their_type(again: object) -> None:
    pair = return_type("topk")((1, 2))
    copied = again(pair)  # type: ignore[operator]
    assert type(copied) is type(pair)
    assert copied == pair


def test_results_written_to_out_have_another_name() -> None:
    with pytest.raises(TypeError, match="argument 'out' must be tuple of Tensors, not str"):
        named_results("max", max, out="x")


def test_named_results_are_nodes_of_trees() -> None:
    pair = return_type("sort")((1, 2))
    doubled = tree_map(lambda x: 2 * x, pair)
    assert type(doubled) is type(pair)
    assert doubled == (2, 4)
