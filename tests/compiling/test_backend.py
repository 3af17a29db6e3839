"""Kernels in programs, compiled against the kernels themselves; what is fused, planned, kept and told."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import kernels
from pullback.compiling import backend, plan
from pullback.compiling.backend import CallsRunner, simplify, split
from pullback.compiling.plan import Segment
from pullback.compiling.program import Call, JointProgram, Value, replay
from tests.compiling.kernel_recorder import KernelRecorder, assert_same, built

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, -2.5]
ELEMENTWISE = (
    "exp expm1 log log1p log2 tanh sigmoid relu silu gelu softplus sin cos tan asin atan sqrt rsqrt reciprocal neg abs "
    "floor ceil trunc round sign erf erfc logsigmoid mish hardswish isnan isfinite sinh cosh"
).split()
PAIRS = "add sub mul div maximum minimum fmax fmin atan2 hypot copysign eq ne lt le gt ge remainder fmod floor_divide".split()


def arrays(*shapes: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape).astype(dtype) for shape in shapes]


def record(function: Any, inputs: list[Any]) -> KernelRecorder:
    recorder = KernelRecorder()
    with np.errstate(all="ignore"):
        made = function(recorder, *[recorder.input(array) for array in inputs])
    recorder.output(*(made if isinstance(made, tuple) else (made,)))
    return recorder


def compare(function: Any, inputs: list[Any], *, exact: bool = False) -> Any:
    return assert_same(record(function, inputs).program, inputs, exact=exact)


def parts(runner: Any) -> list[int]:
    """How many loops and products each segment has; -1 for a kernel call."""
    return [len(part.instructions) if isinstance(part, Segment) else -1 for part in runner.plan.parts]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_kernel_with_special_values(name: str, dtype: str) -> None:
    values = np.array(SPECIAL, dtype)
    compare(lambda r, x: getattr(r, name)(x), [values])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PAIRS)
def test_kernel_of_two_with_special_values(name: str, dtype: str) -> None:
    values = np.array(SPECIAL, dtype)
    compare(lambda r, x, y: getattr(r, name)(x, y), [values[:, None].copy(), values])


@pytest.mark.parametrize("name", ["add", "sub", "mul", "eq", "lt", "maximum"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_integers(name: str, dtype: str) -> None:
    first, second = np.array([1, 2, 250], dtype), np.array([3, 2, 7], dtype)
    compare(lambda r, x, y: getattr(r, name)(x, y), [first, second], exact=True)


def test_masks_choose() -> None:
    compare(lambda r, x: r.where(r.logical_not(r.gt(x, 0)), x, r.neg(x)), arrays((4, 5)), exact=True)


@pytest.mark.parametrize("source", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("target", ["float32", "float64", "int64", "bool"])
def test_casts(source: str, target: str) -> None:
    values = np.array([0.0, 1.0, 3.0]).astype(source)
    compare(lambda r, x: r.mul(r.to_dtype(x, np.dtype(target)), 1) if target != "bool" else r.to_dtype(x, np.dtype(bool)),
            [values])  # fmt: skip


def test_half_precision_stays_with_its_kernels() -> None:
    runner = compare(lambda r, x: r.mul(x, x), [np.ones(3, np.float16)])
    assert parts(runner) == [-1]


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4)])
def test_arrays_without_elements(shape: tuple[int, ...]) -> None:
    compare(lambda r, x: (r.mul(r.exp(x), 2.0), r.sum(x, (0,), True)), arrays(shape))


@pytest.mark.parametrize("function", [
    lambda r, x: r.softmax(x, 1),
    lambda r, x: r.softmax(x, 0),
    lambda r, x: r.log_softmax(x, 1),
    lambda r, x: r.logsumexp(x, (1,)),
    lambda r, x: r.sum(x, (0,)),
    lambda r, x: r.sum(x, (1,), True),
    lambda r, x: r.mean(x, (0, 1)),
    lambda r, x: r.amax(x, (0,)),
    lambda r, x: r.amin(x, (1,)),
    lambda r, x: r.native_layer_norm(x, (x.shape[1],), None, None, 1e-5),
    lambda r, x: r.sum_to(x, (1, x.shape[1])),
    lambda r, x: r.mse_loss(x, r.mul(x, 0.5), 1),
])  # fmt: skip
@pytest.mark.parametrize("shape", [(3, 7), (300, 130), (2, 5000), (5000, 2)])
def test_reductions_of_all_forms(function: Any, shape: tuple[int, int]) -> None:
    compare(function, arrays(shape))


def test_maximum_of_a_row_with_nan_is_nan() -> None:
    values = np.array([[1.0, np.nan, 3.0], [1.0, 2.0, 3.0]], np.float32)
    compare(lambda r, x: (r.amax(x, (1,)), r.amax(x, (0,)), r.amin(x, (0, 1))), [values], exact=True)


def test_long_sum_is_as_exact_as_eager() -> None:
    values = np.full(2**22, 0.1, np.float32)
    runner = built(record(lambda r, x: r.sum_all(x), [values]).program)
    assert abs(float(runner([values])[0]) - 2**22 * 0.1) < 1


def test_beyond_the_range_of_vector_code_libm_computes() -> None:
    compare(lambda r, x: r.sin(x), [np.array([1e7, 1.0, -3e9], np.float32)])


@pytest.mark.parametrize("layout", ["transposed", "stepped", "reversed dims", "offset"])
def test_inputs_that_are_not_row_major(layout: str) -> None:
    whole = arrays((6, 8))[0]
    given = {
        "transposed": whole.T, "stepped": whole[::2, ::2], "reversed dims": np.asfortranarray(whole), "offset": whole[1:, 3:],
    }[layout]  # fmt: skip
    compare(lambda r, x: (r.exp(r.mul(x, 2.0)), r.sum(x, (0,)), r.softmax(x, 1)), [given])


def test_another_layout_than_recorded_is_run_as_recorded() -> None:
    first = arrays((4, 5))[0]
    recorder = record(lambda r, x: r.mul(r.exp(x), x), [first])
    runner = built(recorder.program)
    other = np.asfortranarray(first)
    np.testing.assert_allclose(runner([other])[0], np.exp(first) * first, rtol=1e-6)


@pytest.mark.parametrize("function", [
    lambda r, x, w: r.mm(x, w),
    lambda r, x, w: r.linear_product(x, r.t(w)),
    lambda r, x, w: r.linear_grad_weight(x, x),
    lambda r, x, w: r.mv(x, r.select(w, 1, 0)),
    lambda r, x, w: r.addmm(r.mm(x, w), x, w, beta=0.5, alpha=2.0),
])  # fmt: skip
@pytest.mark.parametrize("sizes", [(1, 1, 1), (4, 3, 5), (33, 65, 17), (200, 300, 150)])
def test_products(function: Any, sizes: tuple[int, int, int]) -> None:
    rows, depth, columns = sizes
    runner = compare(function, arrays((rows, depth), (depth, columns)))
    assert -1 not in parts(runner)


def test_batched_products() -> None:
    compare(lambda r, x, y: r.bmm(x, y), arrays((5, 4, 3), (5, 3, 6)))
    compare(lambda r, x, y: r.matmul_batched(x, y), arrays((2, 5, 4, 3), (3, 6)))


def test_joining_and_parting() -> None:
    def function(r: Any, x: Any, y: Any) -> Any:
        first, second = r.split(r.cat([x, y], 1), 4, 1)
        return r.stack([first, second], 0), r.place_part(first, (9, 4), 0, 2, 5, 1)

    compare(function, arrays((3, 4), (3, 4)))


@pytest.mark.parametrize("dim", [0, 1])
def test_sums_of_placed_parts_write_no_zeros_between(dim: int) -> None:
    def function(r: Any, x: Any, y: Any) -> Any:
        shape = (4, 3) if dim == 0 else (3, 4)
        whole = r.place_part(r.neg(x), shape, dim, 0, 3, 1)
        row = r.select(y, dim, 0)
        return (
            r.add(whole, r.slice_back(y, shape, dim, 1, 4, 1)),
            r.add(whole, r.select_back(row, shape, dim, 3)),
            r.add(r.add(whole, whole), r.place_part(y, shape, dim, 1, 4, 1)),
            r.exp(whole),
        )

    inputs = arrays((3, 3), (3, 3))
    inputs[0][0, 0] = 0.0  # negated it is -0.0, which zeros that are added make 0.0
    compare(function, inputs, exact=True)


def test_sum_of_two_slices_is_one_loop_for_each_part() -> None:
    def function(r: Any, x: Any) -> Any:
        first, second = r.slice_view(x, 0, 0, 99, 1), r.slice_view(x, 0, 1, 100, 1)
        first = r.slice_back(r.mul(first, second), (100,), 0, 0, 99, 1)
        return r.add(first, r.slice_back(r.neg(second), (100,), 0, 1, 100, 1))

    runner = compare(function, arrays((100,)))
    assert parts(runner) == [4]
    assert not any("< 100;" in text for text in runner.plan.texts), "nothing goes over the whole"


def test_parts_with_gaps_are_placed() -> None:
    def function(r: Any, x: Any) -> Any:
        whole = r.place_part(x, (6, 2), 0, 0, 6, 2)
        return r.add(whole, r.exp(whole))

    compare(function, arrays((3, 2)))


def test_many_parts_are_put_together() -> None:
    def function(r: Any, x: Any) -> Any:
        total = None
        for row in range(70):
            part = r.select_back(r.exp(r.select(x, 0, row)), (70, 2), 0, row)
            total = part if total is None else r.add(total, part)
        return total

    compare(function, arrays((70, 2)))


def test_power_of_zero_and_constants_of_one_value_take_no_loop() -> None:
    ones = np.broadcast_to(np.float32(1), (64,))

    def function(r: Any, x: Any) -> Any:
        return r.mul(r.exp(x), r.mul(r.pow_scalar(r.mul(x, 2), 0), r.mul(ones, 3)))

    assert parts(compare(function, arrays((64,)))) == [1]


def test_outer_product_and_sum_over_one_row_are_loops() -> None:
    def function(r: Any, x: Any, y: Any) -> Any:
        return r.mm(r.t(x), y), r.sum_to_like(y, (5,), np.dtype("float32"))

    assert -1 not in parts(compare(function, arrays((1, 4), (1, 5))))


def test_two_hundred_operations_are_one_loop() -> None:
    def function(r: Any, x: Any) -> Any:
        for _ in range(100):
            x = r.add(r.mul(x, 0.99), 0.01)
        return x

    assert parts(compare(function, arrays((8,)))) == [1]


def test_repeated_blocks_are_compiled_once() -> None:
    def function(r: Any, x: Any, w: Any) -> Any:
        for _ in range(30):
            x = r.tanh(r.mm(x, w))
        return x

    runner = compare(function, arrays((4, 4), (4, 4)))
    assert parts(runner) == [60]
    assert len(set(runner.plan.texts)) <= 2


def test_number_that_changes_is_read_at_every_call() -> None:
    recorder = KernelRecorder()
    array = arrays((5,))[0]
    x, factor = recorder.input(array), recorder.number(2.0)
    recorder.output(recorder.mul(x, factor))
    runner = built(recorder.program)
    for value in (2.0, -3.5):
        np.testing.assert_array_equal(runner([array, value])[0], array * np.float32(value))


def test_inputs_are_written() -> None:
    recorder = KernelRecorder()
    inputs = arrays((5,), (5,))
    x, y = (recorder.input(array) for array in inputs)
    new = recorder.sub(x, recorder.mul(y, 0.1))
    recorder.write(0, new)
    recorder.output(recorder.mul(x, 2.0), recorder.sum_all(x))
    runner = assert_same(recorder.program, inputs)
    given = [array.copy() for array in inputs]
    runner(given)
    np.testing.assert_allclose(given[0], inputs[0] - inputs[1] * np.float32(0.1), rtol=1e-6)


def test_written_input_that_shares_memory_with_another_is_run_as_recorded() -> None:
    recorder = KernelRecorder()
    inputs = arrays((5,), (5,))
    x, y = (recorder.input(array) for array in inputs)
    recorder.write(0, recorder.add(x, y))
    recorder.output(recorder.mul(y, 2.0))
    runner = built(recorder.program)
    memory = np.arange(6, dtype=np.float32)
    expected = replay(recorder.program)([memory.copy()[:5], memory.copy()[1:]])
    np.testing.assert_array_equal(runner([memory[:5], memory[1:]])[0], expected[0])


def test_outputs_that_are_views_share_memory_as_eager_ones() -> None:
    def function(r: Any, x: Any) -> Any:
        y = r.exp(x)
        return y, r.transpose(y, 0, 1), r.select(x, 0, 1)

    array = arrays((3, 4))[0]
    runner = compare(function, [array])
    whole, turned, row = runner([array])
    assert np.shares_memory(whole, turned)
    assert np.shares_memory(row, array)


def test_each_call_has_outputs_of_its_own() -> None:
    array = arrays((3, 4))[0]
    runner = built(record(lambda r, x: r.exp(x), [array]).program)
    first = runner([array])[0]
    kept = first.copy()
    runner([array * 2])
    np.testing.assert_array_equal(first, kept)


def test_calls_with_an_effect_keep_their_order() -> None:
    said: list[int] = []

    def speak(array: Any, number: int) -> Any:
        said.append(number)
        return array * 1

    recorder = KernelRecorder()
    x = recorder.input(arrays((2,))[0])
    for number in range(3):
        recorder.call("speak", speak, (x, number), is_ordered=True)
        recorder.mul(x, float(number))
    recorder.output(recorder.exp(x))
    runner = built(simplify(recorder.program))
    said.clear()
    runner(arrays((2,)))
    assert said == [0, 1, 2]


def test_kernels_and_their_times_are_told() -> None:
    array = arrays((3, 4))[0]
    runner = built(record(lambda r, x: r.exp(x), [array]).program)
    assert "exp_of" in runner.describe()
    ((title, seconds),) = runner.times([array])
    assert "exp" in title
    assert seconds >= 0


# Simplification ------------------------------------------------------------------------------------------------------


def names(program: Any) -> list[str]:
    return [call.kernel for call in program.calls]


def test_calls_that_nobody_reads_and_calls_made_twice_go() -> None:
    recorder = record(lambda r, x: (r.log(x), r.add(r.exp(x), r.exp(x)))[1], arrays((3,)))
    assert names(simplify(recorder.program)) == ["exp", "add"]


def test_equal_outputs_stay_two_arrays() -> None:
    array = arrays((3,))[0]
    simpler = simplify(record(lambda r, x: (r.exp(x), r.exp(x)), [array]).program)
    first, second = built(simpler)([array])
    assert not np.shares_memory(first, second)


@pytest.mark.parametrize(("function", "left"), [
    (lambda r, x: r.exp(r.mul(x, 1)), ["exp"]),
    (lambda r, x: r.exp(r.div(x, 1.0)), ["exp"]),
    (lambda r, x: r.exp(r.sub(x, 0)), ["exp"]),
    (lambda r, x: r.exp(r.neg(r.neg(x))), ["exp"]),
    (lambda r, x: r.exp(r.clone(x)), ["exp"]),
    (lambda r, x: r.exp(r.to_dtype(r.to_dtype(x, np.dtype("float64")), np.dtype("float32"))), ["exp"]),
    (lambda r, x: r.exp(r.add(x, 0)), ["add", "exp"]),  # -0.0 becomes 0.0
    (lambda r, x: r.clone(x), ["clone"]),  # memory of its own
])  # fmt: skip
def test_algebra_is_exact(function: Any, left: list[str]) -> None:
    inputs = [np.array([0.0, -0.0, 2.0, np.nan], np.float32)]
    simpler = simplify(record(function, inputs).program)
    assert names(simpler) == left
    assert_same(simpler, inputs, exact=left == ["clone"])


def test_constants_are_folded() -> None:
    constant = np.arange(3, dtype=np.float32)
    simpler = simplify(record(lambda r, x: r.mul(x, r.exp(constant)), arrays((3,))).program)
    assert names(simpler) == ["mul"]


# Forward and backward ------------------------------------------------------------------------------------------------


def joint_of(function: Any, inputs: list[Any]) -> JointProgram:
    """A program whose last input is the gradient of its first output, and whose last output is that of its first input."""
    return JointProgram(record(function, inputs).program, 1, 1)


def assert_split_agrees(joint: JointProgram, inputs: list[Any]) -> tuple[Any, Any, int]:
    forward, backward, kept = split(joint)
    expected = replay(joint.program)(inputs)
    made = built(forward)(inputs[:-1])
    outputs, saved = made[: len(made) - kept], made[len(made) - kept :]
    grads = built(backward)([*saved, inputs[-1]])
    for actual, wanted in zip([*outputs, *grads], expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=2e-5, atol=1e-6)  # what is computed again may round otherwise
    return forward, backward, kept


def test_elementwise_chain_keeps_its_input_alone() -> None:
    def function(r: Any, x: Any, grad: Any) -> Any:
        y = r.exp(r.mul(x, 0.5))
        z = r.sin(y)
        return z, r.mul(r.mul(r.mul(grad, r.cos(y)), y), 0.5)

    _, backward, kept = assert_split_agrees(joint_of(function, arrays((64,), (64,))), arrays((64,), (64,)))
    assert kept == 1
    assert "exp" in names(backward)


def test_products_are_kept_and_not_made_again() -> None:
    def function(r: Any, x: Any, w: Any, grad: Any) -> Any:
        h = r.mm(x, w)
        return r.tanh(h), r.mm(r.mul(grad, r.sub(1.0 + 0 * h, r.mul(r.tanh(h), r.tanh(h)))), r.t(w))

    inputs = arrays((8, 6), (6, 5), (8, 5))
    forward, backward, _ = split(joint_of(function, inputs))
    assert names(forward).count("mm") == 1
    assert names(backward).count("mm") == 1


def test_calls_runner_lets_memory_go() -> None:
    array = arrays((3, 4))[0]
    recorder = record(lambda r, x: r.exp(r.mul(r.add(x, 1.0), 2.0)), [array])
    actual = CallsRunner(recorder.program)([array])
    np.testing.assert_array_equal(actual[0], replay(recorder.program)([array])[0])
    assert "3 kernels" in CallsRunner(recorder.program).describe()


def test_kernel_that_gives_another_layout_than_recorded_is_followed() -> None:
    recorder = KernelRecorder()
    array = arrays((3, 4))[0]
    x = recorder.input(array)
    calls: list[int] = []

    def turn(value: Any) -> Any:
        calls.append(1)
        return np.asfortranarray(value) if len(calls) > 1 else np.ascontiguousarray(value) * 1

    recorder.output(recorder.exp(recorder.call("turn", turn, (x,))))
    np.testing.assert_allclose(built(recorder.program)([array])[0], np.exp(array), rtol=1e-6)


def test_values_and_calls_are_compared_by_identity() -> None:
    value = Value((1,), np.dtype("float32"), (4,))
    assert Call("exp", kernels.exp, (value,), {}, [value]) != Call("exp", kernels.exp, (value,), {}, [value])


def test_program_that_cannot_be_planned_runs_as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(program: Any) -> Any:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(backend, "build_plan", fail)
    array = arrays((3,))[0]
    runner: Any = backend.build(record(lambda r, x: r.exp(x), [array]).program)
    np.testing.assert_array_equal(runner([array])[0], kernels.exp(array))
    assert "on purpose" in runner.describe()


def test_joined_parts_are_not_read_in_the_loop_that_writes_them() -> None:
    def program(r: Any, x: Any) -> Any:
        shares = r.softmax(x, 0)
        joined = r.cat([shares, shares], 0)
        part = r.slice_view(joined, 0, 0, 5, 1)
        return r.mean(part, (1,), False), r.mul(part, 1.5)

    array = arrays((5, 3))[0]
    assert_same(record(program, [array]).program, [array])


def test_results_of_a_long_program_have_the_same_bits_in_every_call() -> None:
    array = arrays((3000, 300))[0]
    made = record(lambda r, x: r.sum_all(r.exp(r.sin(x))), [array])
    runner: Any = built(made.program)
    results = {runner([array])[0].tobytes() for _ in range(12)}
    assert len(results) == 1
    assert results == {built(made.program)([array])[0].tobytes()}


def test_long_planning_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = threading.Event()
    make = plan.build_plan
    monkeypatch.setattr(backend, "build_plan", lambda program: (begin.wait(60), make(program))[1])
    monkeypatch.setattr(backend, "PATIENCE", 0.0)
    array = arrays((3,))[0]
    runner: Any = backend.build(record(lambda r, x: r.exp(x), [array]).program)
    np.testing.assert_array_equal(runner([array])[0], kernels.exp(array))
    assert not runner.is_compiled
    begin.set()
    assert len(runner.plan.parts) == 1
    assert runner.is_compiled


def test_steps_that_are_repeated_are_written_once() -> None:
    weight = pullback.randn(3, 3)

    def run(x: Any) -> Any:
        for _ in range(40):
            x = (x @ weight).tanh() + 1
        return x

    compiled = pullback.compile(run)
    x = pullback.randn(2, 3)
    results = [compiled(x) for _ in range(4)]
    pullback.testing.assert_close(results[-1], run(x))
    (kind,) = compiled.kinds.values()
    texts = kind.entries[0].run_forward.plan.texts
    assert (len(texts), len(set(texts))) == (40, 1)
