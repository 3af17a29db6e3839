"""Tensor subclasses and modes that see operations."""

from __future__ import annotations

from typing import Any

import pullback


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


def test_a_subclass_sees_public_functions_and_keeps_its_type() -> None:
    x = make()
    result = (x + 1).sum()
    assert type(result) is Logged
    assert Logged.seen == [pullback.add, pullback.sum]


def test_a_form_of_an_operation_is_reported_as_the_public_function() -> None:
    x = make()
    assert float(x.max()) == 3.0
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
