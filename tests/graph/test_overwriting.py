"""In-place operations that are not recorded: the short road gives what the long one gives, and is not taken elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.graph.in_place import in_place
from pullback.graph.overwriting import overwrite
from pullback.kernels import arithmetic
from pullback.kernels.overwriting import overwriting

OPERATIONS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("add", ("tensor",), {}),
    ("add", ("tensor",), {"alpha": 0.3}),
    ("add", (2,), {}),
    ("sub", ("tensor",), {"alpha": 2}),
    ("mul", ("tensor",), {}),
    ("mul", (0.9,), {}),
    ("mul", ("0-dim",), {}),
    ("div", ("tensor",), {}),
    ("addcmul", ("tensor", "tensor"), {"value": 0.001}),
    ("addcdiv", ("tensor", "tensor"), {"value": -0.1}),
    ("addcdiv", ("tensor", "tensor"), {}),
    ("lerp", ("tensor", 0.1), {}),
    ("lerp", ("tensor", 0.9), {}),
    ("clamp", (0.7, 1.1), {}),
    ("clamp", (0.7,), {}),
    ("clamp_min", (0.7,), {}),
    ("clamp_max", (0.7,), {}),
    ("clamp_min", ("tensor",), {}),
    ("pow", (2,), {}),
    ("pow", (0.5,), {}),
    ("square", (), {}),
    ("neg", (), {}),
    ("sqrt", (), {}),
    ("rsqrt", (), {}),
    ("reciprocal", (), {}),
    ("abs", (), {}),
    ("sign", (), {}),
    ("sin", (), {}),
    ("exp", (), {}),
    ("sigmoid", (), {}),
    ("relu", (), {}),
]


def operands(names: tuple[Any, ...], shape: tuple[int, ...], dtype: Any) -> list[Any]:
    made = {"tensor": pullback.rand(shape, dtype=dtype) + 0.5, "0-dim": pullback.tensor(1.5, dtype=dtype)}
    return [made.get(name, name) for name in names]


@pytest.mark.parametrize("dtype", [pullback.float32, pullback.float64, pullback.float16])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (64,), (4, 25), (3000,)])
@pytest.mark.parametrize(("name", "names", "options"), OPERATIONS)
def test_in_place_equals_out_of_place(name: str, names: tuple[Any, ...], options: Any, shape: Any, dtype: Any) -> None:
    pullback.manual_seed(0)
    x = pullback.rand(shape, dtype=dtype) + 0.5
    given = operands(names, shape, dtype)
    expected = getattr(pullback, name)(x, *given, **options)
    version = x._version
    with pullback.no_grad():
        assert getattr(x, f"{name}_")(*given, **options) is x
    assert x._version == version + 1
    pullback.testing.assert_close(x, expected)


@pytest.mark.parametrize("value", [2, 0.5, float("-inf")])
def test_masked_fill_in_place(value: float) -> None:
    for x in (pullback.rand(5, 3), pullback.rand(5, 3, dtype=pullback.float64), pullback.rand(3, 5).t()):
        for mask in (x > 0.5, x[0] > 0.5, pullback.ones(5, 1, dtype=pullback.bool)):
            expected = x.masked_fill(mask, value)
            pullback.testing.assert_close(x.masked_fill_(mask, value), expected)


def test_a_tensor_beside_itself() -> None:
    x = pullback.arange(1.0, 2000.0)
    expected = x + x
    pullback.testing.assert_close(x.add_(x), expected)
    pullback.testing.assert_close(x.addcmul_(x, x), expected + expected * expected)


def test_overlapping_slices_are_refused() -> None:
    x = pullback.arange(3000.0)
    for target, other in ((x[1:], x[:-1]), (x, x[1]), (x.view(-1, 2), x.view(2, -1)[0, :2])):
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to"):
            target.add_(other)
    assert x.tolist() == list(range(3000))


@pytest.mark.parametrize("name", ["add", "sub", "addcmul", "addcdiv", "lerp"])
def test_large_tensors_beside_parts_of_themselves(name: str) -> None:
    memory = pullback.rand(300_001) + 0.5
    for target, other in ((memory[2::2], memory[:-2:2]), (memory[:-2:2], memory[2::2]), (memory, memory)):
        given = {"addcmul": (other, other), "addcdiv": (other, other), "lerp": (other, 0.1)}.get(name, (other,))
        options = {"add": {"alpha": 0.5}, "sub": {"alpha": 0.5}, "lerp": {}}.get(name, {"value": 0.5})
        expected = getattr(pullback, name)(target, *given, **options)
        getattr(target, f"{name}_")(*given, **options)
        pullback.testing.assert_close(target, expected)


def test_views_share_version_and_memory() -> None:
    x = pullback.zeros(2, 3)
    row, alias, data = x[1], x.detach(), x.data
    row.add_(1)
    assert x.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert (x._version, row._version, alias._version, data._version) == (1, 1, 1, 0)


def test_layouts_with_gaps_are_written() -> None:
    x = pullback.zeros(4, 6)
    x.t().add_(pullback.ones(6, 4))
    x[:, ::2].mul_(3)
    assert x.tolist() == [[3, 1, 3, 1, 3, 1]] * 4


def test_what_is_saved_is_still_guarded() -> None:
    x = pullback.ones(3, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    y.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_recorded_operations_are_recorded() -> None:
    x = pullback.ones(3, requires_grad=True)
    y = pullback.zeros(3)
    y.add_(x, alpha=3)
    assert y.grad_fn is not None
    assert y.grad_fn.name() == "AddBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.mul_(2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pullback.zeros(1).expand(3).add_(1), "more than one element"),
        (lambda: pullback.zeros(3).add_(pullback.zeros(4)), "must match"),
        (lambda: pullback.zeros(3).add_(pullback.zeros(2, 3)), "doesn't match the broadcast shape"),
        (lambda: pullback.zeros(3).addcmul_(pullback.ones(3), pullback.ones(3), value=1e300), "without overflow"),
        (lambda: pullback.zeros(3).fill_(1e300), "without overflow"),
        (lambda: pullback.zeros(3).fill_(pullback.ones(3)), "0-dimension"),
        (lambda: pullback.zeros(3).clamp_(), "At least one of"),
    ],
)
def test_errors_are_those_of_the_operation(call: Any, message: str) -> None:
    with pullback.no_grad(), pytest.raises(RuntimeError, match=message):
        call()


def test_broadcasting_and_promotion_go_the_long_road() -> None:
    x = pullback.zeros(2, 3)
    x.add_(pullback.tensor([1.0, 2.0, 3.0], dtype=pullback.float64)).mul_(pullback.tensor([[2.0], [3.0]]))
    assert x.tolist() == [[2, 4, 6], [3, 6, 9]]
    count = pullback.zeros(3, dtype=pullback.int64)
    assert count.add_(2).tolist() == [2, 2, 2]


def test_inference_tensors_and_interceptors_keep_their_rights() -> None:
    with pullback.inference_mode():
        x = pullback.zeros(3)
        x.add_(1)
    with pytest.raises(RuntimeError, match="inference tensor"):
        x.add_(1)
    doubled = pullback.vmap(lambda row: row.clone().mul_(2))(pullback.ones(2, 3))
    assert doubled.tolist() == [[2, 2, 2], [2, 2, 2]]


def test_tangents_follow() -> None:
    def double(x: Any) -> Any:
        return x.clone().mul_(2)

    value, tangent = pullback.func.jvp(double, (pullback.ones(3),), (pullback.full((3,), 5.0),))
    assert (value.tolist(), tangent.tolist()) == ([2, 2, 2], [10, 10, 10])


def test_subclasses_that_override_are_asked() -> None:
    class Loud(pullback.Tensor):
        calls: list[str] = []

        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            cls.calls.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs or {})

    x = pullback.zeros(3).as_subclass(Loud)
    x.add_(1)
    assert "add_" in Loud.calls


def test_the_long_road_agrees() -> None:
    kernel = overwriting(arithmetic.mul)
    short, long = pullback.rand(50), pullback.rand(50)
    long.copy_(short)
    assert overwrite(kernel, short, 0.3)
    in_place(pullback.mul, long, 0.3)
    assert short.tolist() == long.tolist()
    assert not overwrite(kernel, short, pullback.zeros(50, dtype=pullback.float64))
    assert not overwrite(kernel, short.to(pullback.int64), 2)
    assert not overwrite(kernel, short, True)


def test_foreach_functions_take_lists_numbers_and_options() -> None:
    tensors = [pullback.full((3,), float(i)) for i in range(3)]
    others = [pullback.ones(3) for _ in range(3)]
    pullback._foreach_add_(tensors, others, alpha=2)
    pullback._foreach_mul_(tensors, [1.0, 2.0, 3.0])
    pullback._foreach_addcmul_(tensors, others, others, 10.0)
    assert [t.tolist()[0] for t in tensors] == [12, 16, 22]
    pullback._foreach_maximum_(tensors, 14.0)
    pullback._foreach_minimum_(tensors, [pullback.full((3,), 20.0) for _ in range(3)])
    assert [t.tolist()[0] for t in tensors] == [14, 16, 20]
    pullback._foreach_copy_(tensors, others)
    assert [t.tolist()[0] for t in pullback._foreach_sqrt(tensors)] == [1, 1, 1]
    pullback._foreach_zero_(tensors)
    assert [n.item() for n in pullback._foreach_norm(tensors)] == [0, 0, 0]
    with pytest.raises(RuntimeError, match="same number of tensors, got 3 and 2"):
        pullback._foreach_add_(tensors, others[:2])


def test_the_short_road_is_open_in_inference_mode() -> None:
    normal = pullback.ones(2)
    with pullback.inference_mode():
        made = pullback.ones(2)
        assert overwrite(overwriting(arithmetic.add), made, 1.0)
        assert overwrite(overwriting(arithmetic.add), normal, 1.0)
        made[0] = 5.0
    assert made.tolist() == [5.0, 2.0]
    assert made.is_inference()
    assert (normal.tolist(), normal._version) == ([2.0, 2.0], 1)


def test_the_short_road_is_closed_to_inference_tensors_outside() -> None:
    with pullback.inference_mode():
        made = pullback.ones(2)
    with pullback.no_grad(), pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        made.add_(1.0)
    with pullback.no_grad(), pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        made[0] = 1.0


def test_a_tensor_that_was_detached_in_place_can_be_written_to() -> None:
    a = pullback.tensor([0.0], requires_grad=True)
    b = a.exp()
    b.detach_()
    b.add_(1)
    b.squeeze_()
    assert (b.tolist(), b.requires_grad) == (2.0, False)


def test_a_leaf_that_was_given_leading_dimensions_takes_its_gradient() -> None:
    a = pullback.tensor(1.0, requires_grad=True)
    b = a.sum()
    with pullback.inference_mode(), pytest.warns(UserWarning, match="resized"):
        pullback.exp(pullback.ones(1, 1), out=a)
    b.backward()
    assert a.grad.tolist() == 1.0
