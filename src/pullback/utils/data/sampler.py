"""Samplers: the order in which the samples of a dataset are visited, one index or one batch of indices at a time.

Each draws from the random generator exactly what PyTorch's sampler of that name draws, so the same seed gives the same
order and leaves the generator in the same state.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pullback
from pullback.backend.dtype import float64, int64
from pullback.creation import as_tensor, empty

if TYPE_CHECKING:
    from pullback.backend.random import Generator
    from pullback.tensor.tensor import Tensor

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_T_co = TypeVar("_T_co", covariant=True)

# Note [Replacement is drawn in blocks]
# Sampling with replacement asks for 32 indices at a time. The size is part of the contract: another one would leave
# the generator elsewhere for the same seed.
_REPLACEMENT_BLOCK = 32


def draw_seed(generator: Generator | None = None) -> int:
    """Draw a non-negative 63-bit seed from `generator`, by default the global one."""
    seed: Any = empty((), dtype=int64)
    return int(seed.random_(generator=generator).item())


class Sampler(Generic[_T_co]):
    """An order of indices (or of batches of indices): subclasses define `__iter__`, and `__len__` where it is known."""

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """Visits every index in order.

    >>> list(SequentialSampler(["a", "b"]))
    [0, 1]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Visits indices in random order, or draws `num_samples` of them with replacement.

    Without a generator, each pass draws one seed from the global generator and shuffles with a generator of its own.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        _check_positive_integer("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """The samples of one pass; follows the length of the data unless it was given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator = self.generator
        if generator is None:
            generator = pullback.Generator()
            generator.manual_seed(draw_seed())
        if self.replacement:
            yield from self._with_replacement(generator)
        else:
            yield from self._permutations(generator)

    def _with_replacement(self, generator: Generator) -> Iterator[int]:
        # See Note [Replacement is drawn in blocks].
        population = len(self.data_source)
        blocks, rest = divmod(self.num_samples, _REPLACEMENT_BLOCK)
        for size in itertools.chain(itertools.repeat(_REPLACEMENT_BLOCK, blocks), (rest,)):
            yield from pullback.randint(high=population, size=(size,), dtype=int64, generator=generator).tolist()

    def _permutations(self, generator: Generator) -> Iterator[int]:
        # The last permutation is drawn even if none of it is needed: that is what PyTorch consumes.
        population = len(self.data_source)
        rounds, rest = divmod(self.num_samples, population)
        for _ in range(rounds):
            yield from pullback.randperm(population, generator=generator).tolist()
        yield from pullback.randperm(population, generator=generator).tolist()[:rest]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Visits the given indices in random order, each once.

    As long as `indices`; a `generator` makes the order repeatable.

    >>> from pullback.utils.data import SubsetRandomSampler
    >>> sorted(SubsetRandomSampler([5, 7, 9]))
    [5, 7, 9]
    """

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for position in pullback.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[position]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Draws `num_samples` indices with probabilities proportional to `weights` (which need not sum to 1).

    Without `replacement` each index comes at most once.

    >>> from pullback.utils.data import WeightedRandomSampler
    >>> list(WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    weights: Tensor
    num_samples: int
    replacement: bool

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _check_positive_integer("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = pullback.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Groups the indices of another sampler into lists of `batch_size`, the last one shorter unless dropped.

    >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_positive_integer("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        total = len(self.sampler)  # type: ignore[arg-type]  # a sampler without a length raises the TypeError it should
        return total // self.batch_size if self.drop_last else -(-total // self.batch_size)


def _check_positive_integer(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")
