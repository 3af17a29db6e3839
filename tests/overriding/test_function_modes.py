"""What holds of function modes beside the calls that they are told: nesting, threads, classes, and what is left behind."""

from __future__ import annotations

import threading
from glob import glob
from typing import Any

import pytest

import pullback
from pullback.modes import function_modes
from pullback.overrides import TorchFunctionMode, resolve_name


class Listing(TorchFunctionMode):
    """Writes down what it is told, under a name."""

    def __init__(self, seen: list[str], name: str = "") -> None:
        super().__init__()
        self.seen, self.name = seen, name

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(f"{self.name}{resolve_name(func) or func.__name__}")
        return func(*args, **(kwargs or {}))


class Declining(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


def test_an_outer_mode_is_told_what_the_inner_one_calls() -> None:
    seen: list[str] = []
    x = pullback.ones(2)
    with Listing(seen, "outer "), Listing(seen, "inner "):
        _ = x.shape, len(x), x + 1, pullback.zeros(1)
    names = ["torch.Tensor.shape.__get__", "torch.Tensor.__len__", "torch.Tensor.add", "torch.zeros"]
    assert seen == [f"{mode} {name}" for name in names for mode in ("inner", "outer")]


def test_a_class_is_told_after_the_mode() -> None:
    seen: list[str] = []

    class Told(pullback.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(f"class {resolve_name(func)}")
            return super().__torch_function__(func, types, args, kwargs or {})

    x = pullback.ones(2).as_subclass(Told)
    with Listing(seen, "mode "):
        _ = x.dim(), x + 1, pullback.exp(x)
    names = ["torch.Tensor.dim", "torch.Tensor.add", "torch.exp"]
    assert seen == [f"{who} {name}" for name in names for who in ("mode", "class")]


def test_functions_that_handlers_know_from_before_are_those_that_are_told() -> None:
    tensor: Any = pullback.Tensor
    known = {tensor.add: 1, tensor.shape.__get__: 2, pullback.add: 3, tensor.__getitem__: 4, tensor.dim: 5}
    found = []

    class Looking(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found.append((known.get(func), func is pullback.Tensor.dim))
            return func(*args, **(kwargs or {}))

    x = pullback.ones(2)
    with Looking():
        _ = x + 1, x.shape, pullback.add(x, 1), x[0], x.dim()
    assert found == [(1, False), (2, False), (3, False), (4, False), (5, True)]


def test_other_threads_have_no_mode() -> None:
    seen: list[str] = []
    with Listing(seen):
        thread = threading.Thread(target=lambda: pullback.ones(2).dim())
        thread.start()
        thread.join()
    assert seen == []


def test_members_of_tensor_are_as_before_when_the_last_mode_has_gone() -> None:
    before = dict(vars(pullback.Tensor))
    with pytest.raises(ValueError, match="inside"), Declining(), Declining():
        raise ValueError("inside")
    assert {name for name, member in vars(pullback.Tensor).items() if before.get(name) is not member} == set()


def test_what_nobody_answers_is_refused_with_the_mode_that_was_asked() -> None:
    x = pullback.ones(2)
    with Declining():
        with pytest.raises(
            TypeError, match=r"Multiple dispatch failed for 'torch.add'; all __torch_function__ handlers"
        ):
            pullback.add(x, 1)
        with pytest.raises(TypeError, match=r"no implementation found for 'torch.nn.functional.relu'.*nor in mode"):
            pullback.nn.functional.relu(x)


def test_what_backward_computes_is_not_told() -> None:
    seen: list[str] = []
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    with Listing(seen):
        pullback.autograd.backward((x * x).sin().sum(), create_graph=False)
    assert seen == ["torch.Tensor.mul", "torch.Tensor.sin", "torch.Tensor.sum", "backward"]


def test_a_function_that_is_made_of_others_is_told_alone() -> None:
    seen: list[str] = []
    x = pullback.ones(2, 2)
    with Listing(seen):
        pullback.nn.functional.cross_entropy(x, pullback.tensor([0, 1]))
        pullback.linalg.norm(x)
        x.unflatten(0, (2, 1))
    assert seen == ["torch.tensor", "torch.nn.functional.cross_entropy", "torch.linalg.norm", "torch.Tensor.unflatten"]


def test_results_of_a_mode_take_the_place_of_the_call() -> None:
    class Doubling(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is pullback.exp else result

    x = pullback.zeros(2)
    with Doubling():
        assert pullback.exp(x).tolist() == [2.0, 2.0]


def test_the_roads_that_modes_look_past_exist() -> None:
    names = [*function_modes._ROADS, *function_modes._IN_PYTHON]
    missing = [name for name in names if not name.endswith("<") and not glob(f"{name}*")]
    assert missing == []
