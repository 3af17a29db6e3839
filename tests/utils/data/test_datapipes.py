"""Chains of datasets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import pullback
from pullback.utils.data import DataLoader, IterDataPipe, functional_datapipe
from pullback.utils.data.datapipes.iter import IterableWrapper
from pullback.utils.data.datapipes.map import SequenceWrapper


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        (lambda d: d.map(lambda x: x * 2), [0, 2, 4, 6, 8]),
        (lambda d: d.filter(lambda x: x % 2), [1, 3]),
        (lambda d: d.batch(2), [[0, 1], [2, 3], [4]]),
        (lambda d: d.batch(2, drop_last=True), [[0, 1], [2, 3]]),
        (lambda d: d.batch(2).unbatch(), [0, 1, 2, 3, 4]),
        (lambda d: d.batch(2).batch(2).unbatch(-1), [0, 1, 2, 3, 4]),
        (lambda d: d.concat(IterableWrapper([9])), [0, 1, 2, 3, 4, 9]),
        (lambda d: d.zip(IterableWrapper("ab")), [(0, "a"), (1, "b")]),
        (lambda d: d.mux(IterableWrapper("ab")), [0, "a", 1, "b"]),
        (lambda d: d.groupby(lambda x: x % 2), [[0, 2, 4], [1, 3]]),
        (lambda d: d.groupby(lambda x: x % 2, group_size=2, keep_key=True), [(0, [0, 2]), (1, [1, 3]), (0, [4])]),
        (
            lambda d: d.map(lambda x: (x, x)).map(lambda x: x + 1, input_col=0).batch(9),
            [[(i + 1, i) for i in range(5)]],
        ),
    ],
)
def test_link_yields(chain: Any, expected: list[Any]) -> None:
    assert list(chain(IterableWrapper(range(5)))) == expected


def test_length_follows_the_chain() -> None:
    start = IterableWrapper(range(5))
    assert [len(start), len(start.map(str)), len(start.batch(2)), len(start.zip(start)), len(start.concat(start))] == [
        5, 5, 3, 5, 10,
    ]  # fmt: skip


def test_length_of_a_stream_is_refused() -> None:
    with pytest.raises(TypeError, match="doesn't have valid length"):
        len(IterableWrapper(iter([1]), deepcopy=False).map(str))


def test_shuffle_follows_the_seed() -> None:
    pullback.manual_seed(0)
    first = list(IterableWrapper(range(10)).shuffle(buffer_size=4))
    pullback.manual_seed(0)
    assert list(IterableWrapper(range(10)).shuffle(buffer_size=4)) == first
    assert sorted(first) == list(range(10))


def test_forks_see_the_same_elements_and_branches_their_own() -> None:
    one, other = IterableWrapper(range(4)).fork(2)
    assert [list(one), list(other)] == [[0, 1, 2, 3]] * 2
    even, odd = IterableWrapper(range(4)).demux(2, lambda x: x % 2)
    assert [list(even), list(odd), list(even)] == [[0, 2], [1, 3], [0, 2]]


def test_a_branch_that_lags_too_far_is_an_error() -> None:
    one, _ = IterableWrapper(range(4)).fork(2, buffer_size=2)
    with pytest.raises(BufferError, match="buffer_size=2"):
        list(one)


def test_links_by_key() -> None:
    start = SequenceWrapper([1, 2, 3])
    assert [start.map(str)[1], list(start.batch(2)), start.zip(start)[2], len(start.concat(start))] == [
        "2", [[1, 2], [3]], (3, 3), 6,
    ]  # fmt: skip
    assert sorted(start.shuffle()) == [1, 2, 3]
    assert list(SequenceWrapper(list(range(10))).shuffle().set_seed(3)) == [1, 5, 6, 0, 9, 4, 7, 2, 8, 3]


def test_a_registered_class_is_a_method() -> None:
    @functional_datapipe("times_for_this_test")
    class Times(IterDataPipe[int]):
        def __init__(self, source: Any, factor: int) -> None:
            self.source, self.factor = source, factor

        def __iter__(self) -> Iterator[int]:
            for element in self.source:
                yield element * self.factor

    assert list(IterableWrapper(range(3)).times_for_this_test(factor=3)) == [0, 3, 6]
    with pytest.raises(Exception, match="already taken"):
        functional_datapipe("times_for_this_test")(Times)


def test_a_loader_batches_a_chain() -> None:
    batches = [batch.tolist() for batch in DataLoader(IterableWrapper(range(5)).map(float), batch_size=2)]
    assert batches == [[0.0, 1.0], [2.0, 3.0], [4.0]]


def test_a_loader_turns_shuffling_links_on_and_off() -> None:
    chain = IterableWrapper(range(10)).shuffle()
    pullback.manual_seed(0)
    shuffled = [batch.tolist() for batch in DataLoader(chain, batch_size=3, shuffle=True)]
    plain = [batch.tolist() for batch in DataLoader(chain, batch_size=3, shuffle=False)]
    assert shuffled == [[9, 0, 5], [7, 4, 1], [3, 8, 6], [2]]  # PyTorch's order from this seed
    assert plain == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_a_loader_warns_where_nothing_shuffles() -> None:
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        loader = DataLoader(IterableWrapper(range(3)), shuffle=True)
    assert [batch.item() for batch in loader] == [0, 1, 2]


def test_workers_share_the_order_and_divide_the_labour() -> None:
    pullback.manual_seed(0)
    chain = IterableWrapper(range(12)).shuffle().sharding_filter()
    loader = DataLoader(chain, batch_size=3, num_workers=2, shuffle=True)
    assert [batch.tolist() for batch in loader] == [[9, 0, 5], [11, 10, 7], [4, 3, 6], [1, 8, 2]]
