"""A recorder for programs of kernels: calls kernels by name, and writes down what they were given and gave."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import kernels
from pullback.compiling.plan import BuiltRunner, build_plan
from pullback.compiling.program import Call, Number, Program, Value, replay


class KernelRecorder:
    """`recorder.mul(x, y)` calls the kernel `mul` on arrays and adds the call to `recorder.program`."""

    def __init__(self) -> None:
        self.program = Program([])
        self._arrays: list[Any] = []
        self._values: dict[int, Value] = {}
        self._numbers: dict[int, Number] = {}

    def input(self, array: Any) -> Any:
        """An array that is given to every call of the program."""
        array = array.view()
        self.program.inputs.append(self._new(array))
        return array

    def number(self, value: float) -> Any:
        """A number that changes from call to call."""
        made = np.float64(value)
        self._arrays.append(made)
        self._numbers[id(made)] = Number(float)
        self.program.inputs.append(self._numbers[id(made)])
        return made

    def output(self, *arrays: Any) -> None:
        """Arrays that the program gives."""
        self.program.outputs += [self.value(array) for array in arrays]

    def write(self, place: int, array: Any) -> None:
        """Let an input hold other values afterwards."""
        self.program.writes.append((place, self.value(array)))

    def value(self, given: Any) -> Any:
        """The Values of the arrays in arguments."""
        if id(given) in self._numbers:
            return self._numbers[id(given)]
        if isinstance(given, np.ndarray):
            return self._values[id(given)] if id(given) in self._values else self._new(given, given)
        if type(given) in (tuple, list):
            return type(given)([self.value(part) for part in given])
        if type(given) is dict:
            return {name: self.value(part) for name, part in given.items()}
        return given

    def _new(self, array: Any, constant: Any = None) -> Value:
        made = Value(array.shape, array.dtype, array.strides, constant)
        self._arrays.append(array)
        self._values[id(array)] = made
        return made

    def __getattr__(self, name: str) -> Any:
        kernel = getattr(kernels, name)
        return lambda *arguments, **options: self.call(name, kernel, arguments, options)

    def call(self, name: str, kernel: Any, arguments: Any, options: Any = None, *, is_ordered: bool = False) -> Any:
        """Call a function and record it."""
        options = options or {}
        given, named = self.value(arguments), self.value(options)
        made = kernel(*_plain(arguments), **options)
        is_single = not isinstance(made, (tuple, list))
        arrays = [np.asarray(part) for part in ([made] if is_single else made)]
        arrays = [array.view() if any(array is a for a in self._arrays) else array for array in arrays]
        is_view = is_single and bool(arguments) and _shares(arguments[0], arrays[0])
        results = [self._new(array) for array in arrays]
        self.program.calls.append(Call(name, kernel, given, named, results, is_single, is_view, is_ordered))
        return arrays[0] if is_single else tuple(arrays)


def _plain(given: Any) -> Any:
    if type(given) is np.float64:
        return float(given)
    if type(given) in (tuple, list):
        return type(given)([_plain(part) for part in given])
    return given


def _shares(first: Any, array: Any) -> bool:
    return isinstance(first, np.ndarray) and bool(array.size) and bool(np.shares_memory(first, array))


def built(program: Program) -> BuiltRunner:
    """The compiled runner of a program."""
    runner = BuiltRunner(program, lambda: build_plan(program), replay(program), patience=300)
    assert runner.is_compiled, runner.problem
    return runner


def assert_same(program: Program, inputs: list[Any], *, exact: bool = False) -> BuiltRunner:
    """Run a program compiled and as recorded; values, layouts and what is written must agree."""
    runner = built(program)
    with np.errstate(all="ignore"):
        expected_inputs = [_copy(value) for value in inputs]
        actual_inputs = [_copy(value) for value in inputs]
        expected = replay(program)(expected_inputs)
        actual = runner(actual_inputs)
    pairs = [*zip(actual, expected, strict=True), *zip(actual_inputs, expected_inputs, strict=True)]
    for got, wanted in pairs:
        if isinstance(wanted, float):
            continue
        wanted = np.asarray(wanted)
        assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        assert _steps(got) == _steps(wanted)
        if exact or wanted.dtype.kind != "f":
            np.testing.assert_array_equal(got, wanted)
            if wanted.dtype.kind == "f":
                zeros = wanted == 0
                np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(wanted[zeros]))
        else:
            limit = 2e-5 if wanted.dtype.itemsize == 4 else 1e-11
            scale = float(np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1.0))
            np.testing.assert_allclose(got, wanted, rtol=limit, atol=limit * min(scale, 100.0))
    return runner


def _steps(array: Any) -> list[int]:
    return [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1] if array.size else []


def _copy(value: Any) -> Any:
    """A copy in the same layout."""
    if not isinstance(value, np.ndarray):
        return value
    if not value.size:
        return value.copy()
    low, high = np.lib.array_utils.byte_bounds(value)
    memory = np.empty((high - low) // value.itemsize, value.dtype)
    first = sum(min(0, (n - 1) * s) for n, s in zip(value.shape, value.strides, strict=True)) // value.itemsize
    made = np.lib.stride_tricks.as_strided(memory[-first:], value.shape, value.strides)
    made[...] = value
    return made
