"""Tensor subclasses and modes that see operations."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import pullback
import pullback.nn.functional as F
from pullback.overrides import resolve_name

TensorClass: Any = pullback.Tensor


class Logged(pullback.Tensor):
    """Writes down the functions it sees."""

    seen: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


def make() -> Any:
    Logged.seen.clear()
    return pullback.tensor([1.0, 3.0]).as_subclass(Logged)


def test_a_subclass_sees_the_methods_that_are_called_and_keeps_its_type() -> None:
    x = make()
    result = (x + 1).sum()
    assert type(result) is Logged
    assert Logged.seen == [TensorClass.add, TensorClass.sum]


def test_a_form_of_an_operation_is_reported_as_the_public_function() -> None:
    x = make()
    assert pullback.max(x).item() == 3.0
    assert pullback.max in Logged.seen


def test_handlers_are_found_by_the_public_function() -> None:
    handlers = {pullback.mean: lambda x: "handled"}

    class Handled(pullback.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in handlers:
                return handlers[func](*args)
            return super().__torch_function__(func, types, args, kwargs or {})

    x: Any = pullback.ones(2).as_subclass(Handled)
    assert pullback.mean(x) == "handled"


def test_gradients_flow_through_a_subclass() -> None:
    leaf = pullback.ones(2, requires_grad=True)
    x: Any = (leaf * 1).as_subclass(Logged)
    (x * x).sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0]


def test_a_parameter_gives_plain_tensors() -> None:
    parameter = pullback.nn.Parameter(pullback.ones(2))
    assert type(parameter * 2) is pullback.Tensor


def test_a_subclass_is_made_of_data() -> None:
    data = pullback.ones(2)
    kind: Any = pullback.Tensor
    made = kind._make_subclass(Logged, data, True)
    assert (type(made), made.requires_grad, made.is_leaf) == (Logged, True, True)
    data[0] = 5.0
    assert made.detach().tolist() == [5.0, 1.0]


def test_operations_on_subclasses_mean_what_they_say() -> None:
    class Subclass(pullback.Tensor):
        pass

    x = pullback.tensor([3.0]).as_subclass(Subclass)
    assert (2**x).tolist() == [8.0]
    x.add_(1)
    assert x.tolist() == [4.0]
    assert isinstance(x, Subclass)
    image = pullback.arange(8.0).reshape(2, 1, 4).as_subclass(Subclass)
    assert pullback.nn.functional.batch_norm(image, None, None, training=True).sum().item() == 0.0


def test_functions_that_make_tensors_like_another_ask_its_type() -> None:
    asked = []

    class Own(pullback.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    own = pullback.ones(2).as_subclass(Own)
    made = [
        pullback.zeros_like(own),
        pullback.full_like(own, 2),
        pullback.rand_like(own),
        own.new_ones(1),
        own.new_tensor([1]),
    ]
    assert asked == ["zeros_like", "full_like", "rand_like", "new_ones", "new_tensor"]
    assert all(isinstance(tensor, Own) for tensor in made)


class Told(pullback.Tensor):
    """Writes down what it is asked about: the name of the function, how many arguments, which keywords."""

    seen: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append((resolve_name(func), len(args), sorted(kwargs or {})))
        return super().__torch_function__(func, types, args, kwargs or {})


plain = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda s: F.linear(s, plain), ("torch.nn.functional.linear", 2, [])),
        (lambda s: F.layer_norm(s, (2,)), ("torch.nn.functional.layer_norm", 2, ["bias", "eps", "weight"])),
        (lambda s: pullback.nn.Linear(2, 3)(s), ("torch.nn.functional.linear", 3, [])),
        (lambda s: pullback.matmul(plain, s), ("torch.matmul", 2, [])),
        (lambda s: pullback.sub(s, 1), ("torch.sub", 2, [])),
        (lambda s: pullback.softmax(s, dim=-1), ("torch.softmax", 1, ["dim"])),
        (lambda s: s @ plain, ("torch.Tensor.matmul", 2, [])),
        (lambda s: plain - s, ("torch.Tensor.sub", 2, [])),
        (lambda s: 1 - s, ("torch.Tensor.__rsub__", 2, [])),
        (lambda s: plain < s, ("torch.Tensor.gt", 2, [])),
        (lambda s: operator.iadd(plain.clone(), s), ("torch.Tensor.add_", 2, [])),
        (lambda s: s[0, 1], ("torch.Tensor.__getitem__", 2, [])),
        (lambda s: s.reshape(4, 1), ("torch.Tensor.reshape", 3, [])),
        (lambda s: s.tril(), ("torch.Tensor.tril", 1, [])),
        (lambda s: s.std(dim=0), ("torch.Tensor.std", 1, ["dim"])),
        (lambda s: s.T, ("torch.Tensor.T.__get__", 1, [])),
        (lambda s: s.shape, ("torch.Tensor.shape.__get__", 1, [])),
        (lambda s: setattr(s, "requires_grad", True), ("torch.Tensor.requires_grad.__set__", 2, [])),
    ],
)
def test_a_subclass_is_asked_once_about_what_was_called(call: Any, told: Any) -> None:
    s: Any = plain.clone().as_subclass(Told)
    Told.seen.clear()
    result = call(s)
    assert Told.seen == [told]
    assert type(result) is Told or not isinstance(result, pullback.Tensor)


def test_methods_are_no_functions_and_stay_the_same_objects() -> None:
    methods = [TensorClass.sub, TensorClass.tril, TensorClass.cummax]
    assert methods[0] is not pullback.sub
    assert pullback.ones(2, 2).tril().tolist() == [[1.0, 0.0], [1.0, 1.0]]
    assert methods == [TensorClass.sub, TensorClass.tril, TensorClass.cummax]


def test_methods_that_a_subclass_defines_or_mixes_in_stay() -> None:
    class Mixin:
        def exp(self) -> str:
            return "mixed in"

    class Own(Mixin, Told):
        def relu(self) -> str:
            return "own"

    class Mixed(Mixin, pullback.Tensor):
        __torch_function__ = Told.__torch_function__

    x: Any = pullback.ones(2).as_subclass(Own)
    y: Any = pullback.ones(2).as_subclass(Mixed)
    assert (x.relu(), x.exp(), y.exp()) == ("own", "mixed in", "mixed in")


def test_a_class_may_see_operations_instead() -> None:
    class Sees(pullback.Tensor):
        _sees_operations = True
        seen: list[Any] = []

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            cls.seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x: Any = pullback.ones(2, 2).as_subclass(Sees)
    assert x[0, 1].item() == 1.0
    assert [f.__name__ for f in Sees.seen] == ["select", "select"]


def test_the_gradient_of_a_subclass_is_not_converted() -> None:
    x: Any = pullback.ones(2).as_subclass(Told).requires_grad_()
    x.grad = pullback.ones(2)
    assert type(x.grad) is pullback.Tensor


def test_a_view_as_a_subclass_takes_part_in_the_graph() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = x.as_subclass(Told)
    y.sum().backward()
    assert (type(y.grad_fn).__name__, y._base is x, x.grad.tolist()) == ("AliasBackward0", True, [1.0, 1.0])


def test_a_class_may_stop_asking() -> None:
    class Silent(Told):
        __torch_function__ = pullback._C._disabled_torch_function_impl

    x: Any = pullback.ones(2).as_subclass(Silent)
    Told.seen.clear()
    assert (type(x + 1), type(x.exp()), x.shape, Told.seen) == (pullback.Tensor, pullback.Tensor, (2,), [])


def test_methods_of_plain_tensors_take_a_subclass() -> None:
    s: Any = plain.clone().as_subclass(Told)
    assert plain.allclose(s)
    assert [type(r) for r in (plain.where(plain > 1, s), plain.float_power(s))] == [Told, Told]


def test_modules_with_parameters_of_a_subclass_are_emptied() -> None:
    layer = pullback.nn.Linear(2, 1)
    layer.weight = pullback.nn.Parameter(pullback.ones(1, 2).as_subclass(Told))
    assert layer.to_empty(device="cpu").weight.shape == (1, 2)
