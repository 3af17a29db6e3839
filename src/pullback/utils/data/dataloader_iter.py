"""One pass over a DataLoader: fetching each batch here, or keeping worker processes supplied with tasks.

See Note [What an iterator draws].
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pullback.backend.device import find_library
from pullback.modes.user_warnings import warn_user
from pullback.utils.data.datapipes.datapipe import IterDataPipe
from pullback.utils.data.datapipes.settings import apply_seeds
from pullback.utils.data.exception_wrapper import ExceptionWrapper
from pullback.utils.data.fetch import DatasetKind
from pullback.utils.data.sampler import draw_seed
from pullback.utils.data.worker import EndOfStream, WorkerSetup

if TYPE_CHECKING:
    from pullback.utils.data.dataloader import DataLoader
    from pullback.utils.data.worker_pool import WorkerPool

__all__ = ["_BaseDataLoaderIter", "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"]

# Note [What an iterator draws]
# To give PyTorch's batches from PyTorch's seed, an iterator takes from the random stream in this order: whatever the
# sampler's `__iter__` draws at once; one base seed; with workers the sampler is iterated anew, so what it draws at once
# it draws again; then what the sampler draws as it is consumed. A persistent iterator that starts over draws no seed.


class _BaseDataLoaderIter(Iterator[Any]):
    """What iterating here and iterating by workers have in common."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._persistent_workers = loader.persistent_workers
        self._sampler_iter: Iterator[Any] = iter(self._index_sampler)
        if isinstance(self._dataset, IterDataPipe):
            apply_seeds(self._dataset, draw_seed(loader.generator))
        self._base_seed = draw_seed(loader.generator)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._pins = loader.pin_memory and find_library("cuda") is not None
        if loader.pin_memory:
            _explain_pin_memory(loader.pin_memory_device, self._pins)

    def _reset(self, loader: DataLoader[Any]) -> None:
        """Start over with a new pass of the sampler."""
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def _is_finished_for_good(self) -> bool:
        """Whether `_reset` could not bring this iterator back to life."""
        return False

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def __next__(self) -> Any:
        data = self._next_data()
        if self._pins:
            data = pinned(data)
        self._num_yielded += 1
        claimed = self._IterableDataset_len_called
        if self._dataset_kind == DatasetKind.Iterable and claimed is not None and self._num_yielded > claimed:
            self._warn_of_wrong_length(claimed)
        return data

    def _warn_of_wrong_length(self, claimed: int) -> None:
        remedy = ""
        if self._num_workers > 0:
            remedy = " Each worker iterates a copy of the dataset: divide the samples by get_worker_info()."
        warn_user(
            f"Length of IterableDataset {self._dataset} was reported to be {claimed} (when accessing len(dataloader)), "
            f"but {self._num_yielded} samples have been fetched.{remedy}"
        )

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled: pickle the DataLoader instead.")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Fetches each batch in this process when it is asked for."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.timeout != 0:
            raise AssertionError(
                f"_SingleProcessDataLoaderIter requires timeout == 0, but got {loader.timeout}: "
                "only worker processes can be late."
            )
        super().__init__(loader)
        self._dataset_fetcher = DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(self._next_index())


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Hands numbered tasks to workers in turn and returns the answers in the order of the numbers.

    Numbers go on rising when a persistent iterator starts over, so an answer that nobody waits for any more is known
    by its number and dropped.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        if not loader.prefetch_factor:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        self._next_number = 0
        self._pool = _worker_pool_class()(
            loader.multiprocessing_context or _default_context(), self._make_setups(loader)
        )
        self._begin_epoch(loader)

    def _make_setups(self, loader: DataLoader[Any]) -> list[WorkerSetup]:
        return [
            WorkerSetup(
                worker_id=worker_id,
                num_workers=self._num_workers,
                base_seed=self._base_seed,
                dataset=self._dataset,
                dataset_kind=self._dataset_kind,
                auto_collation=self._auto_collation,
                collate_fn=self._collate_fn,
                drop_last=self._drop_last,
                init_fn=loader.worker_init_fn,
            )
            for worker_id in range(self._num_workers)
        ]

    @property
    def _workers(self) -> list[Any]:
        return list(self._pool.processes)

    def _reset(self, loader: DataLoader[Any]) -> None:
        self._pool.restart()
        self._begin_epoch(loader)

    def _begin_epoch(self, loader: DataLoader[Any]) -> None:
        super()._reset(loader)
        self._owner_of: dict[int, int] = {}  # outstanding task -> worker, in the order of the numbers
        self._active = list(range(self._num_workers))
        self._turn = 0
        for _ in range(self._prefetch_factor * self._num_workers):
            self._assign_task()

    def _is_finished_for_good(self) -> bool:
        return self._pool.is_closed

    def _assign_task(self) -> None:
        if not self._active:
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker_id = self._choose_worker()
        self._owner_of[self._next_number] = worker_id
        self._pool.send(worker_id, self._next_number, index)
        self._next_number += 1

    def _choose_worker(self) -> int:
        """Return the next active worker in turn; out of order, the next one that is not behind with its work."""
        limit = self._prefetch_factor * self._num_workers // len(self._active)
        owners = list(self._owner_of.values())
        for _ in range(self._num_workers):
            worker_id = self._turn
            self._turn = (self._turn + 1) % self._num_workers
            if worker_id in self._active and (self._in_order or owners.count(worker_id) < limit):
                return worker_id
        return self._active[0]

    def _next_data(self) -> Any:
        while self._owner_of:
            worker_id, answer = self._await_answer()
            if isinstance(answer, EndOfStream):
                self._retire(worker_id)
                continue
            self._assign_task()
            if isinstance(answer, ExceptionWrapper):
                answer.reraise()
            return answer
        if not self._persistent_workers:
            self._pool.shutdown()
        raise StopIteration

    def _await_answer(self) -> tuple[int, Any]:
        oldest = next(iter(self._owner_of))
        awaited = {self._owner_of[oldest]} if self._in_order else set(self._owner_of.values())
        while True:
            worker_id, number, answer = self._pool.receive(awaited, self._timeout)
            if number in self._owner_of:
                del self._owner_of[number]
                return worker_id, answer

    def _retire(self, worker_id: int) -> None:
        """Give a worker whose stream has ended no more tasks, and expect nothing of those it has."""
        self._active.remove(worker_id)
        self._owner_of = {number: owner for number, owner in self._owner_of.items() if owner != worker_id}
        self._assign_task()

    def _shutdown_workers(self) -> None:
        self._pool.shutdown()


def _worker_pool_class() -> type[WorkerPool]:
    """WorkerPool, where there are processes: not in a browser."""
    try:
        from pullback.utils.data.worker_pool import WorkerPool  # lazy: the system may lack processes
    except ImportError as error:
        raise RuntimeError(f"this Python cannot start worker processes ({error}): use num_workers=0") from None
    return WorkerPool


def _default_context() -> Any:
    return multiprocessing.get_context()


def pinned(data: Any) -> Any:
    """A batch whose tensors lie in memory that the GPU reads by itself; what has a `pin_memory()` of its own is asked."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, dict):
        return type(data)((key, pinned(value)) for key, value in data.items())
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*[pinned(value) for value in data])
    return type(data)([pinned(value) for value in data]) if isinstance(data, (list, tuple)) else data


def _explain_pin_memory(device: str, is_done: bool) -> None:
    if device:
        warn_user(
            f"pin_memory_device is deprecated, and pin_memory_device='{device}' is ignored: the accelerator in use "
            "decides."
        )
    if is_done:
        return
    warn_user(
        "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used."
    )
