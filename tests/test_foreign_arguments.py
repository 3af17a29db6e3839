"""Objects that are no tensors and answer for operations: `__torch_function__` on classes of their own."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
import pullback.nn.functional as F
from pullback import overrides


class Recorder:
    """Answers with the call."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        rest = tuple("here" if isinstance(a, Recorder) else a for a in args)
        return overrides.resolve_name(func), rest, kwargs


x: Any = Recorder()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: pullback.exp(x), ("torch.exp", ("here",), {})),
        (lambda: pullback.add(x, 1, alpha=2), ("torch.add", ("here", 1), {"alpha": 2})),
        (lambda: pullback.flatten(x, 1), ("torch.flatten", ("here", 1), {})),
        (lambda: pullback.flatten(x, start_dim=1), ("torch.flatten", ("here",), {"start_dim": 1})),
        (lambda: pullback.reshape(x, (2, 3)), ("torch.reshape", ("here", (2, 3)), {})),
        (lambda: pullback.zeros_like(x), ("torch.zeros_like", ("here",), {})),
        (lambda: F.relu(x), ("torch.nn.functional.relu", ("here",), {"inplace": False})),
        (lambda: pullback.relu(x), ("torch.relu", ("here",), {})),
        (
            lambda: F.dropout(x, 0.3),
            ("torch.nn.functional.dropout", ("here",), {"p": 0.3, "training": True, "inplace": False}),
        ),
        (lambda: pullback.linalg.norm(x), ("torch.linalg.norm", ("here",), {})),
    ],
)
def test_functions_are_offered_with_their_arguments_as_written(call: Any, expected: Any) -> None:
    assert call() == expected


def test_lists_are_searched() -> None:
    name, (values,), keywords = pullback.cat([pullback.ones(1), x], dim=1)
    assert (name, values[1] is x, keywords) == ("torch.cat", True, {"dim": 1})


def test_a_tensor_leaves_operations_to_a_foreign_operand() -> None:
    t = pullback.ones(2)
    assert [(t + x)[0], (t @ x)[0], t.mul(x)[0], pullback.maximum(t, x)[0]] == [
        "torch.Tensor.add", "torch.Tensor.matmul", "torch.Tensor.mul", "torch.maximum",
    ]  # fmt: skip
    assert t[x][1][1] == "here"


def test_an_object_that_declines_is_refused() -> None:
    class Declining:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    with pytest.raises(TypeError, match=r"Multiple dispatch failed for .torch.exp.; all __torch_function__ handlers"):
        pullback.exp(Declining())


def test_one_of_two_types_answers() -> None:
    class Declining:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    assert pullback.mul(Declining(), x)[0] == "torch.mul"


def test_other_objects_are_refused_as_before() -> None:
    with pytest.raises(TypeError, match=r"must be Tensor, not object"):
        pullback.exp(object())


def test_overrides_answers_for_a_library_function() -> None:
    def scale(input: Any, factor: int = 2) -> Any:
        if overrides.has_torch_function((input,)):
            return overrides.handle_torch_function(scale, (input,), input, factor=factor)
        return input * factor

    assert scale(x) == (None, ("here",), {"factor": 2})
    assert scale(3) == 6

    @overrides.wrap_torch_function(lambda input: (input,))
    def twice(input: Any) -> Any:
        return input * 2

    assert twice(x)[1] == ("here",)
    assert twice(4) == 8


def test_questions_about_functions() -> None:
    assert overrides.is_tensor_like(x)
    assert not overrides.is_tensor_like(3)
    assert overrides.resolve_name(F.conv2d) == "torch.nn.functional.conv2d"
    assert pullback.add in overrides.get_overridable_functions()[pullback]
    assert pullback.randn in overrides.get_ignored_functions()
    assert overrides.get_testing_overrides()[pullback.add](1, 2) == -1


def test_an_overriding_subclass_elsewhere_changes_nothing() -> None:
    class Overriding(pullback.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(func, types, args, kwargs)

    t = pullback.ones(2)
    assert Overriding is not None
    assert [(t + x)[0], t.mul(x)[0], pullback.relu(x)[0]] == ["torch.Tensor.add", "torch.Tensor.mul", "torch.relu"]


def test_a_method_that_was_used_does_not_rename_the_function() -> None:
    pullback.ones(2).relu()
    assert pullback.relu(x)[0] == "torch.relu"
