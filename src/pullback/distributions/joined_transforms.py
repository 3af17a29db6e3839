"""Several transforms side by side, each on its own part of a tensor along one dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback import functions
from pullback.distributions import constraints
from pullback.distributions.constraints import Constraint
from pullback.distributions.transform import Transform
from pullback.distributions.utils import _sum_rightmost, lazy_property
from pullback.tensor.tensor import Tensor


def _check_transforms(tseq: Sequence[Transform]) -> None:
    if not all(isinstance(t, Transform) for t in tseq):
        raise AssertionError("All elements of tseq must be Transform instances")


class CatTransform(Transform):
    """Transforms of parts of given `lengths`, as `cat` joins them."""

    transforms: list[Transform]

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        _check_transforms(tseq)
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths and tseq differ: {len(self.lengths)} and {len(self.transforms)}")
        self.dim = dim

    @lazy_property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The size of the whole along `dim`."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x: Tensor, name: str) -> Any:
        if not -x.ndim <= self.dim < x.ndim:
            raise AssertionError(f"dim {self.dim} out of range for {name} with {x.ndim} dims")
        if x.size(self.dim) != self.length:
            raise AssertionError(f"{name}.size({self.dim}) = {x.size(self.dim)} must equal length {self.length}")
        return x.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return functions.cat([t(part) for t, part in zip(self.transforms, self._parts(x, "x"), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return functions.cat(
            [t.inv(part) for t, part in zip(self.transforms, self._parts(y, "y"), strict=True)], self.dim
        )

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for t, x_part, y_part in zip(self.transforms, self._parts(x, "x"), self._parts(y, "y"), strict=True):
            term = t.log_abs_det_jacobian(x_part, y_part)
            terms.append(_sum_rightmost(term, self.event_dim - t.event_dim))
        dim = self.dim if self.dim < 0 else self.dim - x.ndim
        dim = dim + self.event_dim
        return functions.cat(terms, dim) if dim < 0 else _total(terms)

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


def _total(terms: Sequence[Tensor]) -> Tensor:
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result


class StackTransform(Transform):
    """One transform for each slice, as `stack` joins them."""

    transforms: list[Transform]

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        _check_transforms(tseq)
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, x: Tensor, name: str) -> Any:
        if not -x.ndim <= self.dim < x.ndim:
            raise AssertionError(f"dim {self.dim} out of range for {name} with {x.ndim} dims")
        if x.size(self.dim) != len(self.transforms):
            raise AssertionError(
                f"{name}.size({self.dim}) = {x.size(self.dim)} must equal len(transforms) {len(self.transforms)}"
            )
        return x.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return functions.stack(
            [t(part) for t, part in zip(self.transforms, self._slices(x, "x"), strict=True)], self.dim
        )

    def _inverse(self, y: Tensor) -> Tensor:
        return functions.stack(
            [t.inv(part) for t, part in zip(self.transforms, self._slices(y, "y"), strict=True)], self.dim
        )

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._slices(x, "x"), self._slices(y, "y"), strict=True)
        return functions.stack([t.log_abs_det_jacobian(x_part, y_part) for t, x_part, y_part in pairs], self.dim)

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
