"""`tensor.__dict__` holds what users set, and no more, whatever the bases of the tensor's class."""

from __future__ import annotations

from typing import Any

import pytest

import pullback


class Labelled:
    def take_labels(self, other: Any) -> None:
        self.__dict__ = dict(other.__dict__)


class BaseFirst(Labelled, pullback.Tensor):
    pass


class TensorFirst(pullback.Tensor, Labelled):
    pass


class LabelledParameter(Labelled, pullback.nn.Parameter):
    pass


class Derived(BaseFirst):
    pass


@pytest.mark.parametrize("kind", [BaseFirst, TensorFirst, Derived])
def test_attributes_are_taken_over_without_the_values(kind: Any) -> None:
    source, target = pullback.arange(3.0).as_subclass(kind), pullback.ones(2).as_subclass(kind)
    source.label = "three"
    target.take_labels(source)
    assert target.__dict__ == {"label": "three"}
    assert target.tolist() == [1, 1]
    assert target.sum().item() == 2


def test_a_parameter_of_two_bases_keeps_its_state() -> None:
    source, target = LabelledParameter(pullback.zeros(3)), LabelledParameter(pullback.ones(2))
    source.label = "zeros"
    target.take_labels(source)
    assert (target.label, target.requires_grad, target.tolist()) == ("zeros", True, [1, 1])
