"""Whatever holds a number that a compiled function reads: when it changes, so does what the function gives."""

from __future__ import annotations

import array
import collections
import ctypes
import importlib
import os
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import nn

Case = tuple[Callable[[Any], Any], Callable[[], Any], Any]


class Number:
    value = 1.0

    def read(self) -> float:
        return self.value


def _owned(reach: Callable[[Any], Any]) -> Case:
    """A function that reaches a number through what `reach` makes of its owner."""
    owner = Number()
    holder = reach(owner)
    return (lambda x: x * holder().read()), (lambda: setattr(owner, "value", 2.0)), owner


def weak_reference() -> Case:
    return _owned(weakref.ref)


def weak_dictionary() -> Case:
    owner = Number()
    table = weakref.WeakValueDictionary(a=owner)
    return (lambda x: x * table["a"].value), (lambda: setattr(owner, "value", 2.0)), owner


def weak_method() -> Case:
    owner = Number()
    method: Any = weakref.WeakMethod(owner.read)
    return (lambda x: x * method()()), (lambda: setattr(owner, "value", 2.0)), owner


def key_of_a_dictionary() -> Case:
    owner = Number()
    table = {owner: 0}
    return (lambda x: x * sum(key.value for key in table)), (lambda: setattr(owner, "value", 2.0)), None


def mapping_proxy() -> Case:
    table = {"a": 1.0}
    proxy = types.MappingProxyType(table)
    return (lambda x: x * proxy["a"]), (lambda: table.update(a=2.0)), None


def _memory(holder: Any) -> Case:
    return (lambda x: x * float(holder[0])), (lambda: holder.__setitem__(0, 2)), None


def bytes_in_place() -> Case:
    return _memory(bytearray([1]))


def python_array() -> Case:
    return _memory(array.array("d", [1.0]))


def memory_view() -> Case:
    return _memory(memoryview(bytearray([1])))


def numpy_array() -> Case:
    return _memory(np.ones(3))


def numpy_view_with_gaps() -> Case:
    return _memory(np.ones((3, 2))[:, 1])


def c_array() -> Case:
    return _memory((ctypes.c_double * 2)(1.0, 2.0))


def c_number() -> Case:
    number = ctypes.c_double(1.0)
    return (lambda x: x * number.value), (lambda: setattr(number, "value", 2.0)), None


def environment() -> Case:
    os.environ["PULLBACK_TEST"] = "1"
    return (lambda x: x * float(os.environ["PULLBACK_TEST"])), (lambda: os.environ.update(PULLBACK_TEST="2")), None


def environment_by_a_function() -> Case:
    os.environ["PULLBACK_TEST"] = "1"
    return (lambda x: x * float(os.getenv("PULLBACK_TEST", ""))), (lambda: os.environ.update(PULLBACK_TEST="2")), None


def arguments_of_the_process() -> Case:
    return (lambda x: x * len(sys.argv)), (lambda: sys.argv.append("more")), None


def _module() -> Any:
    module: Any = types.ModuleType("module_of_a_test")
    module.value = 1.0
    sys.modules["module_of_a_test"] = module
    return module


def module_that_is_imported_inside() -> Case:
    module = _module()

    def call(x: Any) -> Any:
        import module_of_a_test  # type: ignore[import-not-found]

        return x * module_of_a_test.value

    return call, (lambda: setattr(module, "value", 2.0)), None


def module_by_its_name() -> Case:
    module = _module()
    return (
        (lambda x: x * importlib.import_module("module_of_a_test").value),
        (lambda: setattr(module, "value", 2.0)),
        None,
    )


def module_in_a_module() -> Case:
    outer: Any = types.ModuleType("outer_module_of_a_test")
    outer.inner = inner = _module()
    return (lambda x: x * outer.inner.value), (lambda: setattr(inner, "value", 2.0)), None


def globals_by_name() -> Case:
    names: dict[str, Any] = {"number": 1.0}
    exec("def call(x): return x * globals()['number']", names)
    return names["call"], (lambda: names.update(number=2.0)), None


def attribute_of_a_function() -> Case:
    def holder() -> None: ...

    holder.value = 1.0  # type: ignore[attr-defined]  # as users do
    return (lambda x: x * holder.value), (lambda: setattr(holder, "value", 2.0)), None  # type: ignore[attr-defined]


def defaults_of_a_function() -> Case:
    def read(value: float = 1.0) -> float:
        return value

    return (lambda x: x * read()), (lambda: setattr(read, "__defaults__", (2.0,))), None


def tensor_that_requires_grad() -> Case:
    weight = pullback.ones(1)
    return (lambda x: x * (2 if weight.requires_grad else 1)), (lambda: weight.requires_grad_()), None


def tensor_of_another_shape() -> Case:
    weight = pullback.ones(1)
    return (lambda x: x * weight.shape[0]), (lambda: setattr(weight, "data", pullback.ones(2))), None


def version_of_a_tensor() -> Case:
    weight = pullback.ones(1)
    return (lambda x: x * (weight._version + 1)), (lambda: weight.add_(0)), None


def leaf() -> Case:
    held = {"w": pullback.ones(1, requires_grad=True)}
    return (lambda x: x * (1 if held["w"].is_leaf else 2)), (lambda: held.update(w=held["w"] * 1)), None


def settings() -> Case:
    before = pullback.get_float32_matmul_precision()
    change = "high" if before == "highest" else "highest"
    return (
        (lambda x: x * len(pullback.get_float32_matmul_precision())),
        (lambda: pullback.set_float32_matmul_precision(change)),
        None,
    )


def seed() -> Case:
    return (lambda x: x * pullback.initial_seed()), (lambda: pullback.manual_seed(12345)), None


CASES = [
    weak_reference, weak_dictionary, weak_method, key_of_a_dictionary, mapping_proxy, bytes_in_place, python_array,
    memory_view, numpy_array, numpy_view_with_gaps, c_array, c_number, environment, environment_by_a_function,
    arguments_of_the_process, module_that_is_imported_inside, module_by_its_name, module_in_a_module, globals_by_name,
    attribute_of_a_function, defaults_of_a_function, tensor_that_requires_grad, tensor_of_another_shape, version_of_a_tensor,
    leaf, settings, seed,
]  # fmt: skip


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setenv("PULLBACK_TEST", "")
    precision = pullback.get_float32_matmul_precision()
    yield
    pullback.set_float32_matmul_precision(precision)
    sys.modules.pop("module_of_a_test", None)


@pytest.mark.parametrize("make", CASES)
def test_change_of_what_holds_a_number_is_noticed(make: Callable[[], Case]) -> None:
    function, change, _owner = make()
    compiled = pullback.compile(function)
    x = pullback.ones(2)
    before = [compiled(x).tolist() for _ in range(4)][-1]
    assert before == function(x).tolist()
    change()
    assert compiled(x).tolist() == function(x).tolist() != before


def _tensor_with_grad() -> Any:
    return pullback.ones(2, requires_grad=True)


@pytest.mark.parametrize(
    ("ask", "make", "make_another"),
    [
        (lambda x: x.grad_fn is None, _tensor_with_grad, lambda: _tensor_with_grad() * 1),
        (lambda x: x.is_leaf, _tensor_with_grad, lambda: _tensor_with_grad() * 1),
        (lambda x: x.storage_offset(), lambda: pullback.ones(4)[:2], lambda: pullback.ones(4)[2:]),
        (lambda x: x._base is None, lambda: pullback.ones(2), lambda: pullback.ones(4)[:2]),
        (lambda x: x._is_view(), lambda: pullback.ones(2), lambda: pullback.ones(4)[:2]),
        (lambda x: x.is_conj(), lambda: pullback.ones(2) * 1j, lambda: (pullback.ones(2) * 1j).conj()),
        (lambda x: x.is_shared(), lambda: pullback.ones(2), lambda: pullback.ones(2).share_memory_()),
    ],
    ids=["grad_fn", "is_leaf", "storage_offset", "_base", "_is_view", "is_conj", "is_shared"],
)
def test_what_tells_arguments_apart_is_asked_each_time(ask: Any, make: Any, make_another: Any) -> None:
    compiled = pullback.compile(lambda x: (x * 1, 1 + int(ask(x))))
    expected = [1 + int(ask(made())) for made in (make, make_another)]
    assert expected[0] != expected[1]
    assert [compiled(make())[1] for _ in range(4)] == [expected[0]] * 4
    assert [compiled(make_another())[1], compiled(make())[1]] == [expected[1], expected[0]]


@pytest.mark.parametrize("register", ["register_module_forward_hook", "register_module_forward_pre_hook"])
def test_hook_of_all_modules_is_noticed(register: str) -> None:
    layer = nn.ReLU()
    compiled = pullback.compile(lambda x: layer(x))
    for _ in range(4):
        compiled(pullback.ones(2))
    handle = getattr(nn.modules.module, register)(lambda module, *given: pullback.full((2,), 3.0))
    try:
        assert compiled(pullback.ones(2)).tolist() == [3.0, 3.0]
    finally:
        handle.remove()
    assert compiled(pullback.ones(2)).tolist() == [1.0, 1.0]


def test_array_that_is_too_large_to_compare_is_read_by_python_each_time() -> None:
    table = np.ones(1 << 18)
    compiled = pullback.compile(lambda x: x * float(table[0]))
    for _ in range(4):
        compiled(pullback.ones(1))
    table[0] = 2.0
    assert compiled(pullback.ones(1)).item() == 2.0
    assert compiled.runs == 0


def test_arrays_that_do_not_change_are_no_obstacle() -> None:
    table = collections.UserDict(a=np.ones(3), b=bytearray(b"ab"))
    compiled = pullback.compile(lambda x: x * float(table["a"][0]) + len(table["b"]))
    results = [compiled(pullback.ones(1)).item() for _ in range(5)]
    assert results == [3.0] * 5
    assert compiled.runs == 3


def test_state_of_the_random_stream_is_read_each_time() -> None:
    def draw(x: Any) -> Any:
        state = pullback.get_rng_state()
        drawn = pullback.rand(2)
        pullback.set_rng_state(state)
        return x * drawn

    compiled = pullback.compile(draw)
    outcomes = []
    for run in (draw, compiled):
        pullback.manual_seed(0)
        outcomes.append([(run(pullback.ones(2)).tolist(), pullback.rand(1).item()) for _ in range(6)])
    assert outcomes[0] == outcomes[1]


def test_hook_that_a_recorded_call_registers_or_removes_beside_others_stays_so() -> None:
    weight = pullback.ones(2, requires_grad=True)
    handles = [weight.register_hook(lambda grad: grad * 2)]

    def change(x: Any, adds: bool) -> Any:
        if adds:
            handles.append(weight.register_hook(lambda grad: grad * 3))
        else:
            handles.pop(0).remove()
        return x * 1

    compiled = pullback.compile(change)
    compiled(pullback.ones(1), True)
    assert pullback.autograd.grad(weight.sum(), weight)[0].tolist() == [6.0, 6.0]
    compiled(pullback.ones(1), False)
    assert pullback.autograd.grad(weight.sum(), weight)[0].tolist() == [3.0, 3.0]
    handles.pop().remove()
    assert pullback.autograd.grad(weight.sum(), weight)[0].tolist() == [1.0, 1.0]


def test_module_that_is_imported_inside_is_changed_in_each_call() -> None:
    module = _module()

    def count(x: Any) -> Any:
        import module_of_a_test

        module_of_a_test.value += 1
        return x * 1

    compiled = pullback.compile(count)
    for _ in range(6):
        compiled(pullback.ones(1))
    assert module.value == 7.0


def test_setting_that_is_none_of_the_switches_is_made_in_each_call() -> None:
    def change(x: Any) -> Any:
        pullback.set_float32_matmul_precision("high")
        return x * 1

    compiled = pullback.compile(change)
    for _ in range(4):
        pullback.set_float32_matmul_precision("highest")
        compiled(pullback.ones(1))
        assert pullback.get_float32_matmul_precision() == "high"
