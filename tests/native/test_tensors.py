"""Tensors that native/tensors.c makes are those that Python makes, and nothing else is made."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.native import extension
from pullback.tensor import tensor as tensor_module
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.tensor.tensor_base import STATE, new

pytestmark = pytest.mark.skipif(extension is None, reason="needs the compiled kernels")


def test_only_classes_of_tensors_are_made() -> None:
    assert type(new(pullback.nn.Parameter)) is pullback.nn.Parameter
    for wrong in (int, dict, 3):
        with pytest.raises(TypeError, match="takes a class of tensors"):
            extension.new_instance(wrong)


def test_the_state_is_that_of_a_tensor_made_in_python() -> None:
    array = pullback.ones(3)._array
    made, expected = new_tensor(array), tensor_module._new_tensor(array)
    assert type(made) is Tensor
    assert [getattr(made, name) for name in STATE if name != "_array"] == [
        getattr(expected, name) for name in STATE if name != "_array"
    ]
    assert made._array is array


def test_an_alias_shares_memory_and_the_transform_that_made_it() -> None:
    seen: list[Any] = []

    def look(x: Any) -> Any:
        seen.extend([x, x.detach(), new_tensor(x._array), x.data])
        return x.sum()

    pullback.func.grad(look)(pullback.ones(2))
    assert len({id(tensor._made_in) for tensor in seen}) == 1
    assert seen[0]._made_in is not None
    assert pullback.ones(2).detach()._made_in is None


def test_writes_of_every_kind_of_counter_are_counted() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = x * 2
    y.detach_()
    for tensor in (pullback.ones(2), y):
        before = tensor._version
        tensor.add_(1)
        tensor.add_(1)
        assert tensor._version == before + 2
