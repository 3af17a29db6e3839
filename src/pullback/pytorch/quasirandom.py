"""Quasi-random numbers under the name of `torch.quasirandom`: Sobol sequences, the same numbers as PyTorch's."""

from __future__ import annotations

from typing import Any

from pullback import functions
from pullback.backend.dtype import dtype as Dtype
from pullback.backend.dtype import get_default_dtype
from pullback.kernels import sobol
from pullback.random import Generator
from pullback.tensor.tensor import Tensor, new_tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws points that fill the unit cube evenly, of up to 21,201 dimensions; scrambled ones depend on `seed`,
    or on what `manual_seed` was given.

    >>> SobolEngine(dimension=2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = sobol.BITS
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        directions = sobol.sobol_directions(dimension)
        self.shift = new_tensor(directions[:, 0] * 0)
        if scramble:
            directions = self._scramble(directions)
        self.sobolstate = new_tensor(directions)
        self.num_generated = 0

    def _scramble(self, directions: Any) -> Any:
        """Draw a shift and a matrix for each dimension; return the directions that the matrices give."""
        generator = None if self.seed is None else Generator().manual_seed(self.seed)
        bits = functions.randint(2, (self.dimension, self.MAXBIT), generator=generator)._array
        matrices = functions.randint(2, (self.dimension, self.MAXBIT, self.MAXBIT), generator=generator).tril()._array
        self.shift = new_tensor((bits << range(self.MAXBIT)).sum(1))
        return sobol.scramble_directions(directions, matrices)

    @property
    def quasi(self) -> Tensor:
        """The last point that was drawn, as integers below 2**MAXBIT; the first one before any was."""
        return new_tensor(self._integers(max(self.num_generated - 1, 0), 1)[0])

    def _integers(self, start: int, count: int) -> Any:
        return sobol.sobol_integers(self.sobolstate._array, self.shift._array, start, count)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Dtype | None = None) -> Tensor:
        """Return the next `n` points, a tensor of shape (n, dimension)."""
        wanted = get_default_dtype() if dtype is None else dtype
        points = new_tensor(self._integers(self.num_generated, n)).to(wanted) / 2**self.MAXBIT
        self.num_generated += n
        return points if out is None else out.resize_(points.shape).copy_(points)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Dtype | None = None) -> Tensor:
        """Return the next `2**m` points, where that makes the number of points drawn a power of two."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points "
                f"have been previously generated, then: n={self.num_generated}+2**{m}={total}. Use 'SobolEngine.draw()' "
                "to draw any number of points."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Start again at the first point."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip `n` points."""
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        options = [f"dimension={self.dimension}"]
        if self.scramble:
            options.append("scramble=True")
        if self.seed is not None:
            options.append(f"seed={self.seed}")
        return f"SobolEngine({', '.join(options)})"
