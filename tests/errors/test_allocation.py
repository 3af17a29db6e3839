"""Results that no memory can hold: one error everywhere, which is PyTorch's RuntimeError and Python's MemoryError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.nn import functional as F
from pullback.nn.grad import conv2d_weight

HUGE = 2**60
MANY = pullback.ones(1).expand(10**15)
IMAGE = pullback.ones(1, 1, 5, 5)
COLUMN, ROW = pullback.ones(1, 1).expand(10**8, 1), pullback.ones(1, 1).expand(1, 10**8)
CALLS: dict[str, Callable[[], Any]] = {
    "exp": lambda: MANY.exp(),
    "clone": lambda: MANY.clone(),
    "mul": lambda: MANY * 2,
    "add": lambda: COLUMN + ROW,
    "matmul": lambda: COLUMN @ ROW,
    "outer": lambda: pullback.outer(COLUMN[:, 0], ROW[0]),
    "cat": lambda: pullback.cat([MANY, MANY]),
    "contiguous": lambda: MANY.contiguous(),
    "double": lambda: MANY.double(),
    "empty": lambda: pullback.empty(HUGE),
    "zeros": lambda: pullback.zeros(HUGE, HUGE),
    "empty_strided": lambda: pullback.empty_strided((2,), (HUGE,)),
    "linspace": lambda: pullback.linspace(0, 1, HUGE),
    "logspace": lambda: pullback.logspace(0, 1, HUGE),
    "arange": lambda: pullback.arange(HUGE),
    "tril_indices": lambda: pullback.tril_indices(HUGE, HUGE),
    "eye": lambda: pullback.eye(10**8),
    "repeat": lambda: pullback.ones(2).repeat(HUGE),
    "pad": lambda: F.pad(IMAGE, (HUGE, HUGE)),
    "conv2d": lambda: F.conv2d(IMAGE, IMAGE[..., :3, :3], padding=HUGE),
    "max_pool2d": lambda: F.max_pool2d(IMAGE, HUGE, padding=HUGE // 2),
    "adaptive_avg_pool2d": lambda: F.adaptive_avg_pool2d(IMAGE, HUGE),
    "adaptive_max_pool2d": lambda: F.adaptive_max_pool2d(IMAGE, HUGE),
    "adaptive_max_pool3d": lambda: F.adaptive_max_pool3d(IMAGE, (1, 2, 2**63 - 1)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_result_that_no_memory_holds_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match=r"can't allocate memory|Storage size calculation overflowed") as caught:
        CALLS[name]()

    assert isinstance(caught.value, MemoryError)
    assert str(caught.value).count("can't allocate memory") <= 1


def test_a_gradient_that_no_memory_holds_is_refused() -> None:
    y = pullback.ones(1, requires_grad=True)

    class Doubled(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad.expand(10**15) * 2

    with pytest.raises(RuntimeError, match="can't allocate memory") as caught:
        Doubled.apply(y).backward()
    assert isinstance(caught.value, MemoryError)
    assert y.grad is None


@pytest.mark.parametrize("options", [{"dilation": 2**60}, {"dilation": 2**62}, {"padding": 2**60}, {"stride": 2**61}])
@pytest.mark.parametrize("channels", [1, 2])
def test_the_gradient_of_a_weight_with_absurd_windows_is_refused(options: dict[str, int], channels: int) -> None:
    x, grad = pullback.ones(1, channels, 5, 5), pullback.ones(1, channels, 3, 3)

    with pytest.raises(RuntimeError):
        conv2d_weight(x, (channels, 1, 3, 3), grad, groups=channels, **options)
    with pytest.raises(RuntimeError):
        conv2d_weight(x, (channels, channels, 3, 3), grad, **options)


MANY_INDICES = 10**12


@pytest.mark.parametrize(
    "call",
    [
        lambda index: pullback.nn.functional.embedding(index, pullback.ones(3, 2)),
        lambda index: pullback.nn.functional.embedding_bag(index, pullback.ones(3, 2), pullback.tensor([0])),
        lambda index: pullback.ones(3, 2)[index],
        lambda index: pullback.ones(3, 2).index_select(0, index),
        lambda index: pullback.ones(3).take(index),
        lambda index: pullback.ones(1).expand(MANY_INDICES).gather(0, index),
        lambda index: pullback.ones(1).expand(MANY_INDICES).scatter(0, index, 1.0),
        lambda index: index.unbind(),
    ],
)
def test_more_indices_than_memory_has_room_for_are_refused_before_they_are_read(call: Any) -> None:
    index = pullback.zeros(1, dtype=pullback.int64).expand(MANY_INDICES)

    with pytest.raises(MemoryError):
        call(index)


def test_an_expanded_index_is_still_checked() -> None:
    index = pullback.tensor([[0], [5]]).expand(2, 1 << 20)

    with pytest.raises(IndexError, match="5"):
        pullback.nn.functional.embedding(index, pullback.ones(3, 2))
