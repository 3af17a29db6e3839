"""Trees of containers: leaves, structures, maps, paths."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

import pullback
from pullback.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
OtherPoint = namedtuple("OtherPoint", "x y")
MAKE_LIST: Any = list  # untyped, so that a dict of lists may hold numbers


class Box:
    def __init__(self, content: Any) -> None:
        self.content = content


@dataclasses.dataclass
class Pair:
    first: Any
    second: Any


pytree.register_pytree_node(Box, lambda box: ([box.content], "label"), lambda values, context: Box(next(iter(values))))
pytree.register_dataclass(Pair)

TREES: list[tuple[Any, list[Any], str]] = [
    (1, [1], "*"),
    (None, [None], "*"),
    ((), [], "TreeSpec(tuple, None, [])"),
    ((1, [2, 3]), [1, 2, 3], "TreeSpec(tuple, None, [*,\n  TreeSpec(list, None, [*,\n    *])])"),
    ({"b": 1, "a": 2}, [1, 2], "TreeSpec(dict, ['b', 'a'], [*,\n  *])"),
    (OrderedDict(b=1), [1], "TreeSpec(OrderedDict, ['b'], [*])"),
    (defaultdict(MAKE_LIST, b=1), [1], "TreeSpec(defaultdict, [<class 'list'>, ['b']], [*])"),
    (deque([1, 2], maxlen=3), [1, 2], "TreeSpec(deque, 3, [*,\n  *])"),
]


@pytest.mark.parametrize(("tree", "leaves", "shown"), TREES)
def test_a_tree_comes_apart_and_is_built_again(tree: Any, leaves: list[Any], shown: str) -> None:
    flat, spec = pytree.tree_flatten(tree)
    built = pytree.tree_unflatten(flat, spec)
    assert (flat, str(spec)) == (leaves, shown)
    assert (built, type(built)) == (tree, type(tree))


def test_namedtuples_are_nodes() -> None:
    leaves, spec = pytree.tree_flatten(Point(1, [2]))
    assert (leaves, spec.type, spec.context) == ([1, 2], namedtuple, Point)
    assert pytree.tree_unflatten([3, 4], spec) == Point(3, [4])


def test_a_size_is_a_node() -> None:
    assert pytree.tree_leaves(pullback.Size([1, 2])) == [1, 2]


def test_subclasses_of_containers_are_leaves() -> None:
    class Special(list[int]):
        pass

    assert pytree.tree_leaves(Special([1, 2])) == [[1, 2]]


def test_a_deque_keeps_its_maxlen_and_a_defaultdict_its_factory() -> None:
    doubled = pytree.tree_map(lambda x: 2 * x, (deque([1], maxlen=3), defaultdict(MAKE_LIST, a=1)))
    assert (doubled[0].maxlen, doubled[1].default_factory) == (3, list)


def test_structure_counts() -> None:
    spec = pytree.tree_structure({"a": (1, 2), "b": 3})
    assert (spec.num_leaves, spec.num_nodes, spec.num_children, spec.is_leaf()) == (3, 5, 2, False)
    assert spec.child(1) == spec.children()[1] == pytree.treespec_leaf() == pytree.LeafSpec()


def test_structures_are_equal_by_content() -> None:
    spec = pytree.tree_structure({"a": (1, 2), "b": [3]})
    same = pytree.tree_structure({"a": (5, 6), "b": [7]})
    assert spec == same
    assert hash(spec) == hash(same)
    assert spec != pytree.tree_structure({"b": [3], "a": (1, 2)})


def test_structures_can_be_pickled_and_copied() -> None:
    spec = pytree.tree_structure({"a": (1, 2), "b": [3]})
    assert pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec) == spec


def test_structures_can_be_made_by_hand() -> None:
    leaf = pytree.treespec_leaf()
    assert pytree.treespec_tuple([leaf, leaf]) == pytree.tree_structure((1, 2))
    assert pytree.treespec_dict(a=leaf) == pytree.tree_structure({"a": 1})


def test_is_leaf_stops_the_descent() -> None:
    assert pytree.tree_leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]


def test_a_registered_class_is_a_node() -> None:
    box = pytree.tree_map(lambda x: x + 1, Box((1, 2)))
    assert box.content == (2, 3)
    assert str(pytree.tree_structure(Box(1))) == "TreeSpec(Box, label, [*])"


def test_a_registered_dataclass_is_a_node() -> None:
    assert pytree.tree_map(lambda x: 2 * x, Pair(1, (2, 3))) == Pair(2, (4, 6))


def test_registering_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="is already registered as pytree node"):
        pytree.register_pytree_node(Box, lambda box: ([], None), lambda values, context: Box(None))


def test_map_takes_further_trees() -> None:
    assert pytree.tree_map(lambda x, y: (x, y), {"a": 1, "b": 2}, {"b": 3, "a": (4, 5)}) == {
        "a": (1, (4, 5)),
        "b": (2, 3),
    }


@pytest.mark.parametrize(
    ("tree", "other", "message"),
    [
        ((1, 2), (1,), r"Node arity mismatch; expected 2, but got 1"),
        ((1, 2), [1, 2], r"Node type mismatch; expected <class 'tuple'>, but got <class 'list'>"),
        ({"a": 1}, {"b": 1}, r"Node keys mismatch; missing key\(s\): {'a'}; extra key\(s\): {'b'}"),
        (((1, 2), 3), (1, 2), r"Node type mismatch; expected <class 'tuple'>, but got <class 'int'>"),
        (Point(1, 2), OtherPoint(1, 2), r"Node context mismatch"),
    ],
)
def test_map_refuses_trees_that_differ(tree: Any, other: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pytree.tree_map(lambda x, y: x, tree, other)


def test_map_in_place_returns_the_tree() -> None:
    seen: list[int] = []
    tree = (1, [2])
    assert pytree.tree_map_(seen.append, tree) is tree
    assert seen == [1, 2]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (int, (2, "a", 2.5)),
        ((int, str), (2, "aa", 2.5)),
        (int | float, (2, "a", 5.0)),
        (lambda x: x == "a", (1, "aa", 2.5)),
    ],
)
def test_map_only_chooses_leaves(chosen: Any, expected: Any) -> None:
    assert pytree.tree_map_only(chosen, lambda x: x * 2, (1, "a", 2.5)) == expected


def test_map_only_refuses_what_chooses_nothing() -> None:
    with pytest.raises(TypeError, match="Argument must be a type, a tuple of types, or a callable"):
        pytree.tree_map_only(3, lambda x: x, (1,))  # type: ignore[arg-type]


def test_predicates_over_leaves() -> None:
    assert (pytree.tree_all(bool, (1, 0)), pytree.tree_any(bool, (1, 0))) == (False, True)
    assert (pytree.tree_all_only(int, bool, ("", 1)), pytree.tree_any_only(str, bool, ("", 1))) == (True, False)


def test_arguments_have_leaves() -> None:
    assert pytree.arg_tree_leaves(1, (2, 3), a=4) == [1, 2, 3, 4]


def test_unflatten_refuses_the_wrong_number_of_leaves() -> None:
    with pytest.raises(ValueError, match="`leaves` has length 1 but the spec refers to a pytree that holds 2 items"):
        pytree.tree_unflatten([1], pytree.tree_structure((1, 2)))


def test_unflatten_refuses_what_is_no_structure() -> None:
    with pytest.raises(TypeError, match="Expected `treespec` to be an instance of PyTreeSpec"):
        pytree.tree_unflatten([1], (1,))  # type: ignore[arg-type]


def test_paths_lead_to_the_leaves() -> None:
    tree = {"a": (1, [2]), 3: Point(4, Pair(5, deque([6])))}
    paths = pytree.tree_leaves_with_path(tree)
    assert [pytree.keystr(path) for path, _ in paths] == [
        "['a'][0]",
        "['a'][1][0]",
        "[3].x",
        "[3].y.first",
        "[3].y.second[0]",
    ]
    assert [pytree.key_get(tree, path) for path, _ in paths] == [leaf for _, leaf in paths]


def test_a_class_registered_without_keys_has_no_paths() -> None:
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn for type"):
        pytree.tree_flatten_with_path(Box(1))


def test_map_with_path_sees_the_path() -> None:
    mapped = pytree.tree_map_with_path(lambda path, x, y: (pytree.keystr(path), x, y), {"a": 1}, {"a": 2})
    assert mapped == {"a": ("['a']", 1, 2)}


@pytest.mark.parametrize(
    ("prefix", "expected"), [(0, [0, 0, 0, 0]), ((0, [1, 2]), [0, 0, 1, 2]), ((0, [1]), None), ((0, 1, 2), None)]
)
def test_a_prefix_is_broadcast(prefix: Any, expected: Any) -> None:
    assert pytree._broadcast_to_and_flatten(prefix, pytree.tree_structure(((1, 1), [3, 4]))) == expected
