"""The same program of datasets, samplers and loaders gives the same indices and batches in PyTorch."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.utils.data

torch = pytest.importorskip("torch")
torch_data = pytest.importorskip("torch.utils.data")

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
]

Program = Callable[[Any, Any], Any]
"""Takes the library and its data module, returns something to compare."""


def run_both(program: Program, seed: int = 7) -> tuple[Any, Any]:
    """Run a program on both libraries from one seed; append what the global generator gives next."""
    results = []
    for library, data in ((pullback, pullback.utils.data), (torch, torch_data)):
        library.manual_seed(seed)
        results.append((program(library, data), library.rand(1).item()))
    return results[0], results[1]


SAMPLERS: dict[str, Program] = {
    "random": lambda lib, data: list(data.RandomSampler(range(50))),
    "random, few": lambda lib, data: list(data.RandomSampler(range(50), num_samples=10)),
    "random, whole rounds": lambda lib, data: list(data.RandomSampler(range(10), num_samples=30)),
    "random, more than a round": lambda lib, data: list(data.RandomSampler(range(10), num_samples=25)),
    "random, large": lambda lib, data: list(data.RandomSampler(range(3000))),
    "replacement": lambda lib, data: list(data.RandomSampler(range(50), replacement=True)),
    "replacement, blocks": lambda lib, data: list(data.RandomSampler(range(9), True, 64)),
    "replacement, ragged": lambda lib, data: list(data.RandomSampler(range(9), True, 70)),
    "subset": lambda lib, data: list(data.SubsetRandomSampler([5, 7, 9, 11, 13])),
    "weighted": lambda lib, data: list(data.WeightedRandomSampler([0.1, 0.2, 0.7], 20)),
    "weighted, without replacement": lambda lib, data: list(data.WeightedRandomSampler([1, 2, 3, 4.5], 3, False)),
    "batches": lambda lib, data: list(data.BatchSampler(data.RandomSampler(range(10)), 3, False)),
    "batches, drop_last": lambda lib, data: list(data.BatchSampler(data.RandomSampler(range(10)), 3, True)),
    "distributed": lambda lib, data: [list(data.DistributedSampler(range(11), 3, rank, seed=4)) for rank in range(3)],
    "distributed, drop_last": lambda lib, data: list(data.DistributedSampler(range(11), 3, 2, drop_last=True)),
    "distributed, tiny": lambda lib, data: list(data.DistributedSampler(range(2), 7, 5)),
    "split": lambda lib, data: [part.indices for part in data.random_split(range(30), [10, 20])],
    "split by fractions": lambda lib, data: [part.indices for part in data.random_split(range(31), [0.3, 0.3, 0.4])],
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_give_the_same_order_and_leave_the_same_state(name: str) -> None:
    actual, expected = run_both(SAMPLERS[name])
    assert actual == expected


@pytest.mark.parametrize("name", ["random", "replacement", "subset", "weighted"])
def test_samplers_with_a_generator_give_the_same_order(name: str) -> None:
    def program(library: Any, data: Any) -> Any:
        generator = library.Generator().manual_seed(11)
        sampler = {
            "random": lambda: data.RandomSampler(range(20), num_samples=45, generator=generator),
            "replacement": lambda: data.RandomSampler(range(20), True, 45, generator=generator),
            "subset": lambda: data.SubsetRandomSampler(list(range(3, 20)), generator=generator),
            "weighted": lambda: data.WeightedRandomSampler([3.0, 1.0, 2.0], 45, generator=generator),
        }[name]()
        return list(sampler), list(sampler), library.rand(1, generator=generator).item()

    actual, expected = run_both(program)
    assert actual == expected


@pytest.mark.parametrize("batch_size", [1, 3, 10, 16, None])
@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"shuffle": True, "drop_last": True}])
@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("with_generator", [False, True])
def test_loaders_give_the_same_batches_for_two_epochs(
    batch_size: int | None, options: dict[str, Any], num_workers: int, with_generator: bool
) -> None:
    if batch_size is None and "drop_last" in options:
        pytest.skip("drop_last needs a batch size")

    def program(library: Any, data: Any) -> Any:
        generator = library.Generator().manual_seed(3) if with_generator else None
        loader = data.DataLoader(
            range(10), batch_size, num_workers=num_workers, generator=generator, collate_fn=str, **options
        )
        return [list(loader), list(loader), len(loader)]

    actual, expected = run_both(program)
    assert actual == expected


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_a_sampler_that_draws_at_once_draws_as_often(num_workers: int, persistent: bool) -> None:
    if persistent and not num_workers:
        pytest.skip("persistent workers need workers")

    def program(library: Any, data: Any) -> Any:
        class Eager:
            def __iter__(self) -> Iterator[list[int]]:
                order = library.randperm(6).tolist()
                return iter([order[:2], order[2:]])

            def __len__(self) -> int:
                return 2

        loader = data.DataLoader(
            range(6), batch_sampler=Eager(), num_workers=num_workers, persistent_workers=persistent, collate_fn=str
        )
        return [list(loader), list(loader), library.rand(1).item()]

    actual, expected = run_both(program)
    assert actual == expected


def make_stream(data: Any, sizes: tuple[int, ...]) -> Any:
    class Stream(data.IterableDataset):
        def __iter__(self) -> Iterator[int]:
            info = data.get_worker_info()
            worker = info.id if info else 0
            return iter(range(100 * worker, 100 * worker + sizes[worker]))

    return Stream()


@pytest.mark.parametrize("sizes", [(5,), (1, 3), (3, 0), (4, 4), (5, 1, 9)])
@pytest.mark.parametrize("batch_size", [1, 2, None])
def test_streams_give_the_same_batches(sizes: tuple[int, ...], batch_size: int | None) -> None:
    def program(library: Any, data: Any) -> Any:
        num_workers = len(sizes) if len(sizes) > 1 else 0
        return list(data.DataLoader(make_stream(data, sizes), batch_size, num_workers=num_workers, collate_fn=str))

    actual, expected = run_both(program)
    assert actual == expected


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_are_seeded_alike(persistent: bool) -> None:
    def program(library: Any, data: Any) -> Any:
        class State(data.Dataset):
            def __getitem__(self, index: int) -> Any:
                info = data.get_worker_info()
                drawn = (random.random(), float(np.random.rand()), library.rand(1).item())
                return info.id, info.seed, library.initial_seed(), drawn

            def __len__(self) -> int:
                return 6

        loader = data.DataLoader(State(), num_workers=2, persistent_workers=persistent, collate_fn=list)
        return [list(loader), list(loader)]

    actual, expected = run_both(program)
    assert actual == expected


@pytest.mark.parametrize(
    "batch",
    [
        [1, 2],
        [1.5, 2],
        [True, False],
        ["a", "b"],
        [(1, 2.0), (3, 4.0)],
        [[1, "x"], [2, "y"]],
        [{"a": 1, "b": [2, 3]}, {"a": 4, "b": [5, 6]}],
        [np.arange(3, dtype=np.int16), np.ones(3, dtype=np.int16)],
        [np.float32(1), np.float32(2)],
        [[], []],
    ],
)
def test_collated_batches_look_alike(batch: list[Any]) -> None:
    assert repr(pullback.utils.data.default_collate(batch)) == repr(torch_data.default_collate(batch)).replace(
        "torch.", "pullback."
    )


ARGUMENTS: list[dict[str, Any]] = [
    {"num_workers": -1},
    {"timeout": -1},
    {"prefetch_factor": 2},
    {"num_workers": 1, "prefetch_factor": -2},
    {"persistent_workers": True},
    {"shuffle": True, "sampler": [1]},
    {"batch_size": 2, "batch_sampler": [[1]]},
    {"batch_size": None, "drop_last": True},
    {"batch_size": 0},
    {"batch_size": 2.5},
    {"drop_last": 1},
    {"multiprocessing_context": "fork"},
    {"num_workers": 1, "multiprocessing_context": "nothing"},
    {"num_workers": 1, "multiprocessing_context": 3},
    {"shuffle": None},
    {"in_order": False},
]


@pytest.mark.parametrize("options", ARGUMENTS)
def test_arguments_are_refused_alike(options: dict[str, Any]) -> None:
    def outcome(data: Any) -> tuple[Any, str]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                data.DataLoader(range(3), **options)
        except Exception as error:
            return type(error), str(error)[:30]
        return None, ""

    assert outcome(pullback.utils.data) == outcome(torch_data)
