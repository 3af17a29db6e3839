"""Trees come apart, compare and map as with PyTorch's functions."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

from pullback.utils import _pytree as ours

theirs = pytest.importorskip("torch.utils._pytree")

Point = namedtuple("Point", "x y")

TREES: list[Any] = [
    1,
    None,
    (),
    [],
    {},
    (1, [2, {"b": 3, "a": (4,)}]),
    {"z": {"y": {"x": [1, 2]}}, "a": None},
    OrderedDict(b=1, a=[2]),
    defaultdict(list, b=1, a=(2, 3)),
    deque([1, [2]], maxlen=4),
    Point(1, [2, Point(3, 4)]),
    [(), [], {}, [[[5]]]],
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_leaves_and_structures_are_the_same(tree: Any) -> None:
    leaves, spec = ours.tree_flatten(tree)
    expected_leaves, expected_spec = theirs.tree_flatten(tree)
    assert (leaves, str(spec)) == (expected_leaves, str(expected_spec))
    assert (spec.num_leaves, spec.num_nodes, spec.num_children) == (
        expected_spec.num_leaves,
        expected_spec.num_nodes,
        expected_spec.num_children,
    )


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_paths_are_the_same(tree: Any) -> None:
    actual = [(ours.keystr(path), leaf) for path, leaf in ours.tree_leaves_with_path(tree)]
    assert actual == [(theirs.keystr(path), leaf) for path, leaf in theirs.tree_leaves_with_path(tree)]


@pytest.mark.parametrize("tree", TREES, ids=str)
@pytest.mark.parametrize("other", TREES, ids=str)
def test_mapping_over_two_trees_succeeds_or_fails_alike(tree: Any, other: Any) -> None:
    def outcome(pytree: Any) -> Any:
        try:
            return pytree.tree_map(lambda x, y: (x, y), tree, other)
        except ValueError as error:
            return str(error)

    assert outcome(ours) == outcome(theirs)


@pytest.mark.parametrize("tree", TREES, ids=str)
@pytest.mark.parametrize("prefix", [0, None, (0, 1), [0, 1], {"b": 0, "a": 1}, Point(0, 1)], ids=str)
def test_prefixes_are_broadcast_alike(prefix: Any, tree: Any) -> None:
    actual = ours._broadcast_to_and_flatten(prefix, ours.tree_structure(tree))
    assert actual == theirs._broadcast_to_and_flatten(prefix, theirs.tree_structure(tree))
