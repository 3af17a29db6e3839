"""Programs of kernels: the reference runner, and the plain forms of what makes them fast."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiling.backend import simplify, split
from pullback.compiling.program import Call, JointProgram, Number, Program, Value, replay


def array_value(*shape: int, constant: Any = None) -> Value:
    made = np.zeros(shape, np.float32)
    return Value(made.shape, made.dtype, made.strides, constant)


def call(function: Any, arguments: tuple[Any, ...], result: Value, **facts: Any) -> Call:
    return Call(f"numpy.{function.__name__}", function, arguments, {}, [result], **facts)


def test_replay_runs_kernels_in_order_with_numbers_and_constants() -> None:
    x, ratio, offset = array_value(2), Number(float), array_value(2, constant=np.array([10.0, 20.0], np.float32))
    scaled, moved = array_value(2), array_value(2)
    calls = [call(np.multiply, (x, ratio), scaled), call(np.add, (scaled, offset), moved)]

    (actual,) = replay(Program([x, ratio], calls, [moved]))([np.array([1.0, 2.0], np.float32), 3.0])

    assert actual.tolist() == [13.0, 26.0]


def test_replay_writes_after_everything_was_computed() -> None:
    x, doubled, sum_of_both = array_value(2), array_value(2), array_value(2)
    calls = [call(np.add, (x, x), doubled), call(np.add, (x, doubled), sum_of_both)]
    given = np.array([1.0, 2.0], np.float32)

    (actual,) = replay(Program([x], calls, [sum_of_both], [(0, doubled)]))([given])

    assert (given.tolist(), actual.tolist()) == ([2.0, 4.0], [3.0, 6.0])


def test_simplify_drops_what_nobody_reads_and_keeps_effects() -> None:
    x, unread, drawn, result = (array_value(2) for _ in range(4))
    calls = [
        call(np.exp, (x,), unread), call(np.negative, (x,), drawn, is_ordered=True), call(np.sin, (x,), result),
    ]  # fmt: skip

    kept = simplify(Program([x], calls, [result])).calls

    assert [c.kernel for c in kept] == ["numpy.negative", "numpy.sin"]


def test_split_keeps_what_the_backward_reads() -> None:
    x, grad = array_value(2), array_value(2)
    result, slope, grad_of_x = array_value(2), array_value(2), array_value(2)
    calls = [
        call(np.sin, (x,), result), call(np.cos, (x,), slope), call(np.multiply, (grad, slope), grad_of_x),
    ]  # fmt: skip

    forward, backward, kept = split(JointProgram(Program([x, grad], calls, [result, grad_of_x]), 1, 1))
    outputs = replay(forward)([np.zeros(2, np.float32)])
    (actual,) = replay(backward)([*outputs[1:], np.array([3.0, 4.0], np.float32)])

    assert kept == 1
    assert outputs[0].tolist() == [0.0, 0.0]
    assert actual.tolist() == [3.0, 4.0]
