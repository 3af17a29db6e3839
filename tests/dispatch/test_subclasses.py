"""Tensor subclasses with a `__torch_dispatch__`: wrappers that log, and ones that hold other values."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from pullback.utils._pytree import tree_map

aten = pullback.ops.aten


class Logged(pullback.Tensor):
    """Holds a tensor and notes what is done to it."""

    inner: pullback.Tensor
    seen: list[str] = []

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        made = pullback.Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype,
            device=inner.device, requires_grad=inner.requires_grad,
        )  # fmt: skip
        made.inner = inner.detach() if inner.requires_grad else inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(str(func))
        args, kwargs = tree_map(lambda a: a.inner if isinstance(a, cls) else a, (args, kwargs or {}))
        return tree_map(lambda r: cls(r) if isinstance(r, pullback.Tensor) else r, func(*args, **kwargs))


class Quantized(pullback.Tensor):
    """Eight-bit integers and a scale."""

    __torch_function__ = pullback._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, values: Any, scale: float) -> Any:
        return pullback.Tensor._make_wrapper_subclass(cls, values.shape, dtype=pullback.float32)

    def __init__(self, values: Any, scale: float) -> None:
        self.values_8, self.scale = values, scale

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (aten.detach.default, aten.t.default):
            made = cls(func(args[0].values_8), args[0].scale)
            return return_and_correct_aliasing(func, args, kwargs, made)
        return func(*tree_map(lambda a: a.values_8.float() * a.scale if isinstance(a, cls) else a, args), **kwargs)


@pytest.fixture(autouse=True)
def forget() -> None:
    Logged.seen.clear()


def test_a_wrapper_sees_forward_and_backward_and_gets_wrapped_gradients() -> None:
    x = Logged(pullback.ones(2, 3)).requires_grad_()
    y = (x * 2).sin().sum()
    y.backward()
    assert type(y) is Logged
    assert type(y.grad_fn).__name__ == "SumBackward0"
    assert type(x.grad) is Logged
    pullback.testing.assert_close(x.grad.inner, pullback.full((2, 3), 2 * pullback.tensor(2.0).cos().item()))
    assert Logged.seen[:3] == ["aten.mul.Tensor", "aten.sin.default", "aten.sum.default"]
    assert Logged.seen[-1] == "aten.detach.default"


def test_a_wrapper_has_the_shape_strides_and_dtype_it_was_made_with() -> None:
    x = Logged(pullback.ones(2, 3, dtype=pullback.float64).t())
    assert (x.shape, x.stride(), x.dtype, x.device.type) == ((3, 2), (1, 3), pullback.float64, "cpu")
    assert not x.is_contiguous()


def test_wrappers_go_through_modules() -> None:
    layer = pullback.nn.Linear(3, 2)
    result = layer(Logged(pullback.ones(4, 3)))
    assert Logged.seen == ["aten.addmm.default"]
    pullback.testing.assert_close(result.inner, layer(pullback.ones(4, 3)).detach())
    assert result.requires_grad


def test_values_of_a_wrapper_cannot_be_read_by_accident() -> None:
    x = Logged(pullback.ones(2))
    with pytest.raises(RuntimeError, match="Cannot access data pointer of Tensor that doesn't have storage"):
        x.tolist()


def test_quantized_tensors_take_part_in_training() -> None:
    weight = Quantized(pullback.tensor([[1, 2], [3, 4]], dtype=pullback.int8), 0.5)
    x = pullback.ones(1, 2, requires_grad=True)
    y = pullback.nn.functional.linear(x, weight)
    y.sum().backward()
    assert y.tolist() == [[1.5, 3.5]]
    assert x.grad.tolist() == [[2.0, 3.0]]
    assert (weight + 1).tolist() == [[1.5, 2.0], [2.5, 3.0]]
    assert type(weight.t()) is Quantized


def test_modes_come_before_classes() -> None:
    types_seen: list[Any] = []

    class Look(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            types_seen.append(types)
            return func(*args, **(kwargs or {}))

    x = Logged(pullback.ones(2))
    with Look():
        x + 1
    assert types_seen[0] == (Logged,)
    assert Logged.seen == ["aten.add.Tensor"]


def test_in_place_operations_give_back_the_wrapper_itself() -> None:
    class Counter(pullback.Tensor):
        @staticmethod
        def __new__(cls, inner: Any) -> Any:
            made = pullback.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            inner = tree_map(lambda a: a.inner if isinstance(a, cls) else a, args)
            return return_and_correct_aliasing(func, args, kwargs, cls(func(*inner, **(kwargs or {}))))

    x = Counter(pullback.ones(2))
    assert x.add_(2) is x
    assert x.inner.tolist() == [3.0, 3.0]


def test_a_wrapper_needs_a_torch_dispatch() -> None:
    class Plain(pullback.Tensor):
        pass

    with pytest.raises(RuntimeError, match="requires a __torch_dispatch__ defined"):
        pullback.Tensor._make_wrapper_subclass(Plain, (2,))


def test_a_subclass_with_values_of_its_own() -> None:
    class Plain(pullback.Tensor):
        seen: list[str] = []

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            cls.seen.append(str(func))
            plain = [pullback.Tensor._make_subclass(pullback.Tensor, a) if isinstance(a, cls) else a for a in args]
            return func(*plain, **(kwargs or {}))

    x = pullback.Tensor._make_subclass(Plain, pullback.ones(2))
    assert (x + 1).tolist() == [2.0, 2.0]
    assert "aten.add.Tensor" in Plain.seen


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("x[0] = 1", [[1.0, 1.0, 1.0], [3.0, 4.0, 5.0]]),
        ("x[pullback.tensor([0])] = x[1:] * 1", [[3.0, 4.0, 5.0], [3.0, 4.0, 5.0]]),
        ("x[x.inner > 3] = 0", [[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]]),
        ("x.data.add_(1)", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        ("x.uniform_(7, 7)", [[7.0, 7.0, 7.0], [7.0, 7.0, 7.0]]),
        ("x.set_(x * 2)", [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]),
        ("x.t_()", [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]),
    ],
)
def test_writes_reach_the_tensor_that_a_wrapper_holds(statement: str, expected: Any) -> None:
    x = Logged(pullback.arange(6.0).reshape(2, 3))
    exec(statement, {"x": x, "pullback": pullback})
    assert x.inner.tolist() == expected


def test_dropout_of_a_wrapper_scales_or_drops() -> None:
    dropped = pullback.nn.functional.dropout(Logged(pullback.ones(100)), 0.5)
    assert isinstance(dropped, Logged)
    assert dropped.inner.unique().tolist() == [0.0, 2.0]
