"""Names with an underscore that programs around autograd call: the engine, saved hooks, versions, checks, modes."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback import autograd
from pullback.autograd import graph
from pullback.overrides import (
    TorchFunctionMode,
    _get_current_function_mode,
    _get_current_function_mode_stack,
    _len_torch_function_stack,
)
from pullback.pytorch import _C

torch: Any = pullback
hooks: Any = _C._autograd


def test_default_hooks_are_pushed_and_popped() -> None:
    x = pullback.ones(2, requires_grad=True)
    hooks._push_saved_tensors_default_hooks(lambda t: t * 3, lambda t: t)
    y = x * x
    hooks._pop_saved_tensors_default_hooks()
    y.sum().backward()
    assert (hooks._top_saved_tensors_default_hooks(False), x.grad.tolist()) == (None, [6.0, 6.0])


def test_hooks_can_be_refused_and_taken_again() -> None:
    hooks._saved_tensors_hooks_disable("not here")
    try:
        with pytest.raises(RuntimeError, match="not here"), graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass
        assert hooks._saved_tensors_hooks_get_disabled_error_message() == "not here"
    finally:
        hooks._saved_tensors_hooks_enable()
    assert hooks._saved_tensors_hooks_is_enabled()


def test_a_version_can_be_written() -> None:
    x = pullback.ones(2)
    hooks._unsafe_set_version_counter((x,), (7,))
    assert x._version == 7


def test_the_node_of_a_gradient_is_found() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = x * 2
    assert type(graph._get_grad_fn_or_grad_acc(x)).__name__ == "AccumulateGrad"
    assert graph._get_grad_fn_or_grad_acc(y) is y.grad_fn
    with pytest.raises(AssertionError, match="Expected gradient function to be set"):
        graph._get_grad_fn_or_grad_acc(pullback.ones(1))


def test_the_engine_returns_gradients_or_adds_them() -> None:
    x = pullback.ones(2, requires_grad=True)
    one = pullback.tensor(1.0)
    (found,) = graph._engine_run_backward(((x * 2).sum(),), (one,), False, False, (x,), accumulate_grad=False)
    graph._engine_run_backward(((x * 3).sum(),), (one,), False, False)
    assert (found.tolist(), x.grad.tolist()) == ([2.0, 2.0], [3.0, 3.0])


def test_first_gradients_are_made() -> None:
    y = pullback.ones((), requires_grad=True) * 2
    assert [g.item() for g in autograd._make_grads((y,), (None,), False)] == [1.0]
    assert autograd._tensor_or_tensors_to_tuple(None, 2) == (None, None)
    assert autograd._tensor_or_tensors_to_tuple(y, 1) == (y,)


def test_tracking_of_views_is_a_switch() -> None:
    with autograd._force_original_view_tracking(True):
        assert autograd.is_view_replay_enabled()
    assert not autograd.is_view_replay_enabled()


def test_function_modes_are_listed() -> None:
    class Passing(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    with Passing() as outer, Passing() as inner:
        assert _get_current_function_mode() is inner
        assert _get_current_function_mode_stack() == [outer, inner]
    assert (_get_current_function_mode(), _len_torch_function_stack()) == (None, 0)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("_check", RuntimeError),
        ("_check_index", IndexError),
        ("_check_value", ValueError),
        ("_check_type", TypeError),
        ("_check_not_implemented", NotImplementedError),
    ],
)
def test_a_condition_that_does_not_hold_raises(name: str, error: type[Exception]) -> None:
    check = getattr(torch, name)
    check(True)
    with pytest.raises(error, match="wanted"):
        check(False, lambda: "wanted")
    with pytest.raises(error, match="Expected cond to be True, but got False"):
        check(False)
    with pytest.raises(TypeError, match="cond must be a bool"):
        check(1)


def test_sizes_and_all_elements_are_checked() -> None:
    torch._check_is_size(0)
    with pytest.raises(RuntimeError):
        torch._check_is_size(-1)
    with pytest.raises(RuntimeError, match="some"):
        torch._check_tensor_all(pullback.tensor([True, False]), lambda: "some are false")
