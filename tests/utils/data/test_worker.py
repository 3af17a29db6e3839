"""DataLoader with worker processes: order, seeds, errors, deaths, endings."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
]


class Numbers(Dataset[int]):
    """0 to 7; something happens at 3."""

    def __getitem__(self, index: int) -> Any:
        if index == 3:
            return self.happen()
        return index

    def happen(self) -> Any:
        return 3

    def __len__(self) -> int:
        return 8


class RaisingValueError(Numbers):
    def happen(self) -> Any:
        raise ValueError("three is bad")


class RaisingKeyError(Numbers):
    def happen(self) -> Any:
        raise KeyError("three")


class RaisingDecodeError(Numbers):
    def happen(self) -> Any:
        return b"\xff".decode()


class LocalError(Exception):
    def __reduce__(self) -> Any:
        raise TypeError("not to be pickled")


class RaisingUnpicklable(Numbers):
    def happen(self) -> Any:
        raise type("Hidden", (LocalError,), {})("three")


class Unpicklable(Numbers):
    def happen(self) -> Any:
        return threading.Lock()


class Killed(Numbers):
    def happen(self) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class Exiting(Numbers):
    def happen(self) -> Any:
        sys.exit(3)


class Slow(Numbers):
    def happen(self) -> Any:
        time.sleep(60)


class SlowStart(Numbers):
    def __getitem__(self, index: int) -> int:
        time.sleep(0.2 if index == 0 else 0)
        return index


class SharedStream(IterableDataset[int]):
    """Worker `i` yields `sizes[i]` numbers from `100 * i` on."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        assert info is not None
        start = 100 * info.id
        return iter(range(start, start + self.sizes[info.id]))


class RandomState(Dataset[Any]):
    """What each source of randomness gives in a worker."""

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        assert info is not None
        drawn = (random.random(), float(np.random.rand()), pullback.rand(1).item())
        return info.id, info.num_workers, info.seed, pullback.initial_seed(), drawn

    def __len__(self) -> int:
        return 4


def identity(batch: Any) -> Any:
    return batch


def fail_to_start(worker_id: int) -> None:
    raise OSError(f"worker {worker_id} finds no disk")


def load(dataset: Any, **options: Any) -> list[Any]:
    options = {"num_workers": 2, **options}
    return [batch.tolist() if hasattr(batch, "tolist") else batch for batch in DataLoader(dataset, **options)]


@pytest.fixture(autouse=True)
def no_worker_is_left_behind() -> Iterator[None]:
    yield
    gc.collect()
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
@pytest.mark.parametrize("num_workers", [1, 2, 3])
def test_workers_give_the_batches_of_one_process(options: dict[str, Any], num_workers: int) -> None:
    assert load(range(10), num_workers=num_workers, **options) == load(range(10), num_workers=0, **options)


def test_workers_shuffle_as_one_process_does() -> None:
    pullback.manual_seed(2)
    alone = load(range(10), num_workers=0, shuffle=True)
    pullback.manual_seed(2)
    assert load(range(10), shuffle=True) == alone


def test_spawned_workers_give_the_same_batches() -> None:
    assert load(range(3), num_workers=1, multiprocessing_context="spawn") == [[0], [1], [2]]


def test_large_batches_pass_unharmed() -> None:
    tensors = [pullback.arange(200_000) * factor for factor in range(4)]
    loaded = list(DataLoader(tensors, num_workers=2))  # type: ignore[arg-type]
    assert [int(batch.sum().item()) for batch in loaded] == [factor * 199_999 * 100_000 for factor in range(4)]


def test_a_batch_can_be_changed_in_place() -> None:
    (batch,) = DataLoader([pullback.zeros(3)], num_workers=1)  # type: ignore[arg-type]
    batch.add_(1)
    assert batch.tolist() == [[1.0, 1.0, 1.0]]


def test_large_lists_of_indices_do_not_block() -> None:
    sampler = [list(range(50_000))] * 4
    assert load(range(50_000), batch_sampler=sampler, collate_fn=len) == [50_000] * 4


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((1, 3), [[0], [100], [101], [102]]),
        ((3, 0), [[0], [1], [2]]),
        ((0, 0), []),
    ],
)
def test_streams_alternate_until_they_end(sizes: tuple[int, ...], expected: list[list[int]]) -> None:
    assert load(SharedStream(*sizes)) == expected


def test_seeds_follow_from_the_base_seed() -> None:
    pullback.manual_seed(5)
    base_seed = pullback.empty((), dtype=pullback.int64).random_().item()
    pullback.manual_seed(5)
    loaded = [sample for (sample,) in DataLoader(RandomState(), num_workers=2, collate_fn=identity)]
    assert [sample[:4] for sample in loaded[:2]] == [
        (worker, 2, base_seed + worker, base_seed + worker) for worker in range(2)
    ]
    assert len({sample[4] for sample in loaded}) == 4


def test_the_same_seed_gives_the_same_random_numbers_in_workers() -> None:
    pullback.manual_seed(5)
    first = load(RandomState(), collate_fn=identity)
    pullback.manual_seed(5)
    assert load(RandomState(), collate_fn=identity) == first


def test_the_main_process_has_no_worker_info() -> None:
    assert get_worker_info() is None


def test_an_error_arrives_with_the_workers_traceback() -> None:
    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 1") as caught:
        load(RaisingValueError())
    assert "Original Traceback" in str(caught.value)
    assert "three is bad" in str(caught.value)


def test_a_key_error_shows_its_traceback_in_lines() -> None:
    with pytest.raises(KeyError, match=r"Caught KeyError in DataLoader worker process 1\.\nOriginal Traceback"):
        load(RaisingKeyError())


@pytest.mark.parametrize("dataset", [RaisingDecodeError(), RaisingUnpicklable()])
def test_an_error_that_cannot_be_rebuilt_becomes_a_runtime_error(dataset: Any) -> None:
    with pytest.raises(RuntimeError, match=r"Caught .* in DataLoader worker process 1"):
        load(dataset)


def test_a_batch_that_cannot_be_pickled_is_an_error() -> None:
    with pytest.raises(pickle.PicklingError, match="The batch cannot be sent to the main process"):
        load(Unpicklable(), collate_fn=identity)


def test_iteration_goes_on_after_an_error() -> None:
    iterator = iter(DataLoader(RaisingValueError(), num_workers=2))
    before = [next(iterator).item() for _ in range(3)]
    with pytest.raises(ValueError, match="three is bad"):
        next(iterator)
    assert (before, [batch.item() for batch in iterator]) == ([0, 1, 2], [4, 5, 6, 7])


def test_an_error_in_worker_init_fn_arrives() -> None:
    with pytest.raises(OSError, match="worker 0 finds no disk"):
        load(Numbers(), worker_init_fn=fail_to_start)


def test_a_killed_worker_is_reported() -> None:
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid \d+\) exited unexpectedly: .*SIGKILL"):
        load(Killed())


def test_a_worker_that_exits_is_reported_after_its_batches() -> None:
    iterator = iter(DataLoader(Exiting(), num_workers=1, prefetch_factor=4))
    assert [next(iterator).item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid \d+\) exited unexpectedly with exit code 3"):
        next(iterator)


def test_a_late_batch_times_out_and_its_worker_is_ended() -> None:
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0.2 seconds"):
        load(Slow(), timeout=0.2)


def test_an_interrupt_reaches_the_user_and_ends_the_workers() -> None:
    iterator = iter(DataLoader(Slow(), num_workers=2))
    batches = [next(iterator) for _ in range(3)]
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012  # on a slow machine the timer may be the first
        timer.start()
        next(iterator)
    timer.join()
    assert len(batches) == 3
    assert multiprocessing.active_children() == []


def test_leaving_the_loop_early_ends_the_workers() -> None:
    for _ in DataLoader(Numbers(), num_workers=2):
        break


def test_persistent_workers_serve_every_epoch() -> None:
    loader = DataLoader(Numbers(), num_workers=2, persistent_workers=True)
    first = [batch.item() for batch in loader]
    pids = [worker.pid for worker in multiprocessing.active_children()]
    second = [batch.item() for batch in loader]
    assert (first, second) == (list(range(8)), list(range(8)))
    assert sorted(pids, key=str) == sorted((worker.pid for worker in multiprocessing.active_children()), key=str)


def test_persistent_workers_forget_an_unfinished_epoch() -> None:
    loader = DataLoader(Numbers(), num_workers=2, persistent_workers=True)
    next(iter(loader))
    assert [batch.item() for batch in loader] == list(range(8))


def test_persistent_workers_restart_streams() -> None:
    loader = DataLoader(SharedStream(2, 1), num_workers=2, persistent_workers=True)
    assert [[batch.item() for batch in loader] for _ in range(2)] == [[0, 100, 1]] * 2


def test_persistent_workers_that_died_are_replaced() -> None:
    loader = DataLoader(Killed(), num_workers=1, persistent_workers=True)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="exited unexpectedly"):
            list(loader)


def test_out_of_order_a_slow_batch_does_not_hold_up_the_others() -> None:
    loaded = [batch[0] for batch in load(SlowStart(), in_order=False)]
    assert loaded[0] != 0
    assert sorted(loaded) == list(range(8))


def test_a_dataset_that_cannot_be_sent_fails_at_once_where_processes_are_spawned() -> None:
    with pytest.raises((AttributeError, pickle.PicklingError)):
        load([lambda: 0], multiprocessing_context="spawn")


def test_prefetch_factor_zero_is_refused() -> None:
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        load(Numbers(), prefetch_factor=0)
