"""What libraries written for PyTorch ask of it, beyond what its documentation says: each was found by running one."""

from __future__ import annotations

import pytest

import pullback
from pullback.distributions import Normal, kl_divergence, register_kl
from pullback.utils import _pytree


def test_numpy_needs_no_detach_while_nothing_is_recorded() -> None:
    x = pullback.ones(2, requires_grad=True)
    with pullback.no_grad():
        assert x.numpy().tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()


def test_divergences_are_registered_for_classes_of_any_base() -> None:
    class Own:
        pass

    class OwnNormal(Own, Normal):
        pass

    @register_kl(OwnNormal, Own)
    def _(p: Own, q: Own) -> float:
        return 7.0

    assert kl_divergence(OwnNormal(0.0, 1.0), OwnNormal(1.0, 1.0)) == 7.0


def test_the_compilers_front_end_leaves_functions_as_they_are() -> None:
    import pullback._dynamo as dynamo

    def function() -> int:
        return 1

    assert dynamo.disable(function) is function
    assert dynamo.optimize("inductor")(function) is function
    assert not dynamo.is_compiling()
    assert not isinstance(pullback.nn.Linear(1, 1), dynamo.OptimizedModule)


def test_arguments_of_to_can_be_parsed() -> None:
    parse = pullback._C._nn._parse_to
    assert parse("cpu", pullback.float64)[:2] == (pullback.device("cpu"), pullback.float64)
    assert parse(dtype=pullback.float16, non_blocking=True)[:3] == (None, pullback.float16, True)


def test_trees_tell_the_type_of_a_node() -> None:
    assert _pytree._get_node_type([1]) is list
    assert _pytree._get_node_type(1) not in _pytree.SUPPORTED_NODES
