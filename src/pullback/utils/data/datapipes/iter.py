"""Links that are iterated over: the usual ones."""

from __future__ import annotations

import builtins
import copy
import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pullback import creation
from pullback.backend.dtype import int64
from pullback.utils.data.collate import default_collate
from pullback.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, functional_datapipe
from pullback.utils.data.sampler import SequentialSampler

__all__ = [
    "Batcher", "Collator", "Concater", "Demultiplexer", "Filter", "Forker", "Grouper", "IterableWrapper", "Mapper",
    "Multiplexer", "Sampler", "ShardingFilter", "Shuffler", "UnBatcher", "Zipper",
]  # fmt: skip


def _length(datapipe: Any, owner: object) -> int:
    try:
        return builtins.len(datapipe)
    except TypeError:
        raise TypeError(f"{type(owner).__name__} instance doesn't have valid length") from None


class IterableWrapperIterDataPipe(IterDataPipe[Any]):
    """The first link: any iterable."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self) -> Iterator[Any]:
        yield from copy.deepcopy(self.iterable) if self.deepcopy else self.iterable

    def __len__(self) -> int:
        return _length(self.iterable, self)


class _FollowingLink(IterDataPipe[Any]):
    """A link made of one before it, as long as that one unless it says otherwise."""

    def __init__(self, datapipe: Any) -> None:
        self.datapipe = datapipe

    def __len__(self) -> int:
        return _length(self.datapipe, self)


@functional_datapipe("map")
class MapperIterDataPipe(_FollowingLink):
    """Apply a function to every element, or to columns of it."""

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        super().__init__(datapipe)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        self.fn, self.input_col, self.output_col = fn, input_col, output_col

    def _mapped(self, data: Any) -> Any:
        if self.input_col is None:
            return self.fn(data)
        several = isinstance(self.input_col, (list, tuple))
        result = self.fn(*[data[c] for c in self.input_col]) if several else self.fn(data[self.input_col])
        is_tuple = isinstance(data, tuple)
        data = list(data) if is_tuple else copy.copy(data)
        if self.output_col is None:
            target = self.input_col[0] if several else self.input_col
            data[target] = result
            for column in sorted(self.input_col[1:], reverse=True) if several else ():
                del data[column]
        elif self.output_col == -1:
            data.append(result)
        else:
            data[self.output_col] = result
        return tuple(data) if is_tuple else data

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._mapped(data)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Make one batch of tensors of every list of samples."""

    def __init__(
        self, datapipe: Any, conversion: Any = default_collate, collate_fn: Callable[..., Any] | None = None
    ) -> None:
        super().__init__(datapipe, conversion if collate_fn is None else collate_fn)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe[Any]):
    """Keep the elements for which a function says yes."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def _is_kept(self, data: Any) -> Any:
        if self.input_col is None:
            return self.filter_fn(data)
        if isinstance(self.input_col, (list, tuple)):
            return self.filter_fn(*[data[column] for column in self.input_col])
        return self.filter_fn(data[self.input_col])

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            if self._is_kept(data):
                yield data


@functional_datapipe("batch")
class BatcherIterDataPipe(_FollowingLink):
    """Put `batch_size` elements together."""

    def __init__(
        self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Callable[..., Any] = DataChunk
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__(datapipe)
        self.batch_size, self.drop_last, self.wrapper_class = batch_size, drop_last, wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for element in self.datapipe:
            batch.append(element)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        count = super().__len__()
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe[Any]):
    """Take batches apart; -1 levels means all."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def _elements(self, element: Any, level: int) -> Iterator[Any]:
        if level == 0 or (level == -1 and not isinstance(element, list)):
            yield element
            return
        if not isinstance(element, list):
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        for item in element:
            yield from self._elements(item, level if level == -1 else level - 1)

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._elements(element, self.unbatch_level)


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe[Any]):
    """One link after the other."""

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for datapipe in self.datapipes:
            yield from datapipe

    def __len__(self) -> int:
        return sum(_length(datapipe, self) for datapipe in self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe[Any]):
    """Tuples of the elements of several links, until one ends."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(_length(datapipe, self) for datapipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(ZipperIterDataPipe):
    """One element of each link in turn, until one ends."""

    def __iter__(self) -> Iterator[Any]:
        for row in super().__iter__():
            yield from row

    def __len__(self) -> int:
        return super().__len__() * len(self.datapipes)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(_FollowingLink):
    """Yield the elements of a buffer in random order; the order follows from the seed of the default generator."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        super().__init__(datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level))
        self.buffer_size = buffer_size
        self._enabled = True
        self._seed: int | None = None

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Turn the random order on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """Fix the order of the next iteration."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        if self._seed is None:
            self._seed = int(creation.empty((), dtype=int64).random_().item())
        draw = random.Random(self._seed).randint
        self._seed = None
        buffer: list[Any] = []
        for element in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(element)
                continue
            index = draw(0, len(buffer) - 1)
            chosen, buffer[index] = buffer[index], element
            yield chosen
        while buffer:
            yield buffer.pop(draw(0, len(buffer) - 1))


class SamplerIterDataPipe(_FollowingLink):
    """Elements by the indices of a sampler."""

    def __init__(
        self, datapipe: Any, sampler: Any = SequentialSampler, sampler_args: Any = None, sampler_kwargs: Any = None
    ) -> None:
        super().__init__(datapipe)
        self.sampler = sampler(*(sampler_args or ()), data_source=datapipe, **(sampler_kwargs or {}))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return _length(self.sampler, self)


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(_FollowingLink):
    """Every n-th element, as `apply_sharding` says: the division of labour between workers."""

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        super().__init__(source_datapipe)
        self.num_of_instances, self.instance_id = 1, 0

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> None:
        """Say how many there are and which one this is."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def __iter__(self) -> Iterator[Any]:
        for index, element in enumerate(self.datapipe):
            if index % self.num_of_instances == self.instance_id:
                yield element

    def __len__(self) -> int:
        count = super().__len__()
        return count // self.num_of_instances + (self.instance_id < count % self.num_of_instances)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe[Any]):
    """Elements with one key together, in groups of at most `group_size`."""

    def __init__(
        self, datapipe: Any, group_key_fn: Callable[..., Any], *, keep_key: bool = False, buffer_size: int = 10000,
        group_size: int | None = None, guaranteed_group_size: int | None = None, drop_remaining: bool = False,
    ) -> None:  # fmt: skip
        if buffer_size <= 0:
            raise ValueError("buffer_size must be greater than 0")
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.buffer_size, self.group_size, self.drop_remaining = buffer_size, group_size, drop_remaining
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size

    def _group(self, key: Any, elements: list[Any]) -> Any:
        return (key, elements) if self.keep_key else elements

    def __iter__(self) -> Iterator[Any]:
        groups: dict[Any, list[Any]] = defaultdict(list)
        held = 0
        for element in self.datapipe:
            key = self.group_key_fn(element)
            groups[key].append(element)
            held += 1
            if self.group_size is not None and len(groups[key]) == self.group_size:
                held -= self.group_size
                yield self._group(key, groups.pop(key))
            elif held == self.buffer_size:
                largest = max(groups, key=lambda k: len(groups[k]))
                elements = groups.pop(largest)
                held -= len(elements)
                if len(elements) >= (self.guaranteed_group_size or 0):
                    yield self._group(largest, elements)
                elif not self.drop_remaining:
                    raise RuntimeError("Failed to group items", str(elements))
        for key, elements in groups.items():
            yield self._group(key, elements)


class _Branch(IterDataPipe[Any]):
    """One of several links that share a source: each keeps what the others have drawn and it has not."""

    def __init__(self, shared: _Shared, number: int) -> None:
        self._shared, self._number = shared, number

    def __iter__(self) -> Iterator[Any]:
        self._shared.restart(self._number)
        while self._shared.fetch(self._number):
            yield self._shared.waiting[self._number].popleft()


class _Shared:
    """The source of branches: which elements wait for which of them."""

    def __init__(self, datapipe: Any, count: int, route: Callable[[Any], Sequence[int]], buffer_size: int) -> None:
        self.datapipe, self.route, self.buffer_size = datapipe, route, buffer_size
        self.waiting: list[deque[Any]] = [deque() for _ in range(count)]
        self._started: set[int] = set()
        self._source: Iterator[Any] = iter(())

    def restart(self, number: int) -> None:
        if number in self._started or not self._started:
            self._started = set()
            self._source = iter(self.datapipe)
            for queue in self.waiting:
                queue.clear()
        self._started.add(number)

    def fetch(self, number: int) -> bool:
        while not self.waiting[number]:
            try:
                element = next(self._source)
            except StopIteration:
                return False
            for target in self.route(element):
                self.waiting[target].append(element)
            if 0 <= self.buffer_size < max(len(queue) for queue in self.waiting):
                raise BufferError(
                    f"Buffer overflow: a branch lags by more than buffer_size={self.buffer_size} elements"
                )
        return True


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe[Any]):
    """Several links with the same elements."""

    def __new__(cls, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: Any = None) -> Any:
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        everyone = range(num_instances)
        shared = _Shared(datapipe, num_instances, lambda element: everyone, buffer_size)
        return [_Branch(shared, number) for number in everyone]


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe[Any]):
    """Several links, each with the elements that a function sends there."""

    def __new__(
        cls, datapipe: Any, num_instances: int, classifier_fn: Callable[..., Any], drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:  # fmt: skip
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")

        def route(element: Any) -> Sequence[int]:
            target = classifier_fn(element)
            if target is None and drop_none:
                return ()
            if target is None or not 0 <= target < num_instances:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {num_instances - 1}. {target} is returned."
                )
            return (target,)

        shared = _Shared(datapipe, num_instances, route, buffer_size)
        return [_Branch(shared, number) for number in range(num_instances)]


Batcher, Collator, Concater = BatcherIterDataPipe, CollatorIterDataPipe, ConcaterIterDataPipe
Demultiplexer, Filter, Forker, Grouper = (
    DemultiplexerIterDataPipe,
    FilterIterDataPipe,
    ForkerIterDataPipe,
    GrouperIterDataPipe,
)
IterableWrapper, Mapper, Multiplexer = IterableWrapperIterDataPipe, MapperIterDataPipe, MultiplexerIterDataPipe
Sampler, ShardingFilter, Shuffler = SamplerIterDataPipe, ShardingFilterIterDataPipe, ShufflerIterDataPipe
UnBatcher, Zipper = UnBatcherIterDataPipe, ZipperIterDataPipe
