"""Random programs of kernels, compiled against the same program run kernel by kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.compiling.backend import simplify
from tests.compiling.kernel_recorder import KernelRecorder, assert_same

_ONE = (
    "exp",
    "tanh",
    "sin",
    "cos",
    "relu",
    "sigmoid",
    "neg",
    "abs",
    "sqrt",
    "log1p",
    "erf",
    "silu",
    "reciprocal",
    "floor",
)
_TWO = ("add", "sub", "mul", "div", "maximum", "minimum", "atan2", "hypot")
_SHAPES = ((), (1,), (7,), (5, 7), (1, 7), (5, 1), (3, 5, 7), (3, 1, 7), (2, 3, 5, 7))


def _values(random: Any, shape: tuple[int, ...], dtype: str) -> Any:
    made = random.standard_normal(shape).astype(dtype)
    special = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan], shape)
    return np.where(random.random(shape) < 0.03, special, made).astype(dtype).reshape(shape)


class _Author:
    """Writes a random program."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.dtype = str(self.random.choice(["float32", "float64"]))
        self.recorder = KernelRecorder()
        self.inputs = []
        self.made: list[Any] = []
        for _ in range(int(self.random.integers(1, 4))):
            shape = _SHAPES[self.random.integers(len(_SHAPES))]
            array = _values(self.random, shape, self.dtype)
            if array.ndim > 1 and self.random.random() < 0.3:
                array = np.asfortranarray(array)
            if array.ndim and array.shape[-1] > 1 and self.random.random() < 0.2:
                array = np.repeat(array, 2, -1)[..., ::2]
            self.inputs.append(array)
            self.made.append(self.recorder.input(array))

    def pick(self) -> Any:
        return self.made[self.random.integers(len(self.made))]

    def step(self) -> Any:
        choice = self.random.random()
        r, x = self.recorder, self.pick()
        if choice < 0.3:
            return getattr(r, _ONE[self.random.integers(len(_ONE))])(x)
        if choice < 0.6:
            return self._binary(x)
        if choice < 0.72 and x.ndim:
            return self._reduction(x)
        if choice < 0.82 and x.ndim:
            return self._view(x)
        if choice < 0.9:
            mask = r.gt(x, 0.1)
            return r.where(mask, x, r.mul(x, 0.5))
        if choice < 0.94 and x.ndim:
            return self._joining(x)
        if x.ndim == 2 and choice < 0.97:
            return r.mm(x, r.t(x))
        return r.add(x, float(np.round(self.random.standard_normal(), 2)))

    def _binary(self, x: Any) -> Any:
        for _ in range(8):
            y = self.pick()
            try:
                np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                continue
            return getattr(self.recorder, _TWO[self.random.integers(len(_TWO))])(x, y)
        return self.recorder.mul(x, x)

    def _reduction(self, x: Any) -> Any:
        dim = int(self.random.integers(x.ndim))
        keepdim = bool(self.random.random() < 0.5)
        name = ("sum", "mean", "softmax", "amax", "log_softmax", "sum_all")[self.random.integers(6)]
        if name in ("softmax", "log_softmax"):
            return getattr(self.recorder, name)(x, dim)
        if name == "sum_all":
            return self.recorder.sum_all(x)
        return getattr(self.recorder, name)(x, (dim,), keepdim)

    def _joining(self, x: Any) -> Any:
        r, dim = self.recorder, int(self.random.integers(x.ndim))
        choice = self.random.integers(4)
        if choice == 0:
            return r.cat([x, r.mul(x, 2.0)], dim)
        if choice == 1:
            return r.stack([r.exp(x), x], dim)
        if choice == 2:
            shape = (*x.shape[:dim], x.shape[dim] + 2, *x.shape[dim + 1 :])
            return r.place_part(x, shape, dim, 1, x.shape[dim] + 1, 1)
        parts = r.split(x, 2, dim)
        return r.split_back([parts[0], *[None] * (len(parts) - 1)], x.shape, x.dtype, 2, dim)

    def _view(self, x: Any) -> Any:
        dim = int(self.random.integers(x.ndim))
        choice = self.random.integers(4)
        if choice == 0:
            return self.recorder.transpose(x, dim, x.ndim - 1)
        if choice == 1:
            return self.recorder.unsqueeze(x, dim)
        if choice == 2:
            return self.recorder.slice_view(x, dim, 0, max(1, x.shape[dim] - 1), 1)
        return self.recorder.select(x, dim, x.shape[dim] - 1)

    def write(self, steps: int) -> None:
        with np.errstate(all="ignore"):
            for _ in range(steps):
                made = self.step()
                if made.size <= 20000 and made.ndim <= 6:
                    self.made.append(made)
        chosen = [self.made[-1], *[self.pick() for _ in range(int(self.random.integers(1, 4)))]]
        self.recorder.output(*chosen)
        first = self.made[0]
        same = [a for a in self.made[len(self.inputs) :] if a.shape == first.shape and a.dtype == first.dtype]
        if same and self.random.random() < 0.3:
            self.recorder.write(0, same[-1])


@pytest.mark.parametrize("seed", range(60))
def test_random_program_gives_what_its_kernels_give(seed: int) -> None:
    author = _Author(seed)
    author.write(12)
    assert_same(author.recorder.program, author.inputs)


@pytest.mark.parametrize("seed", range(60, 100))
def test_simplified_random_program_gives_what_its_kernels_give(seed: int) -> None:
    author = _Author(seed)
    author.write(20)
    assert_same(simplify(author.recorder.program), author.inputs)
