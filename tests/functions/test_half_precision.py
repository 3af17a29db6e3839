"""float16 and bfloat16: computed in float32 and rounded once, with numbers that were not rounded before.

Expected values are PyTorch 2.13's.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import pullback
from pullback import Tensor

Call = Callable[[Tensor], Tensor]
CALLS: dict[str, tuple[Call, list[float], list[float]]] = {
    "product": (lambda x: x * 0.1, [0.1099853515625, -0.2301025390625, 0.77001953125], [0.1103515625, -0.2294921875, 0.76953125]),
    "product with a 0-dim tensor": (
        lambda x: x * pullback.tensor(0.1),
        [0.1099853515625, -0.2301025390625, 0.77001953125],
        [0.1103515625, -0.2294921875, 0.76953125],
    ),
    "quotient": (lambda x: x / 0.1, [11.0, -23.0, 77.0], [11.0, -23.0, 77.0]),
    "truncated quotient": (
        lambda x: pullback.div(x, 0.1, rounding_mode="trunc"), [10.0, -23.0, 76.0], [11.0, -22.0, 76.0],
    ),
    "scaled sum": (
        lambda x: pullback.add(x, x.flip(0), alpha=0.1), [1.869140625, -2.53125, 7.80859375], [1.8671875, -2.53125, 7.8125],
    ),
    "linear": (
        lambda x: pullback.nn.functional.linear(x, pullback.outer(x, x), x),
        [73.4375, -153.625, 514.0],
        [73.0, -153.0, 512.0],
    ),
    "softshrink": (
        lambda x: pullback.nn.functional.softshrink(x, 0.1),
        [0.99951171875, -2.201171875, 7.59765625],
        [1.0, -2.203125, 7.59375],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_number_is_not_rounded_before_its_use(name: str, dtype: str) -> None:
    call, in_float16, in_bfloat16 = CALLS[name]
    actual = call(pullback.tensor([1.1, -2.3, 7.7], dtype=getattr(pullback, dtype)))
    assert actual.dtype is getattr(pullback, dtype)
    assert actual.tolist() == (in_float16 if dtype == "float16" else in_bfloat16)


def test_short_integers_multiply_as_integers() -> None:
    assert (pullback.tensor([300, -5], dtype=pullback.int16) * 200).tolist() == [-5536, -1000]
