"""Stores: values under keys that processes leave for each other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from pullback import distributed as dist

Maker = Callable[[Path], dist.Store]

MAKERS: dict[str, Maker] = {
    "hash": lambda folder: dist.HashStore(),
    "file": lambda folder: dist.FileStore(str(folder / "store"), 1),
    "tcp": lambda folder: dist.TCPStore("127.0.0.1", 0, 1, True),
    "prefix": lambda folder: dist.PrefixStore("run", dist.HashStore()),
}


@pytest.fixture(params=list(MAKERS))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> dist.Store:
    return MAKERS[request.param](tmp_path)


def test_values_are_kept_and_counted(store: dist.Store) -> None:
    store.set("key", "value")
    store.append("key", "s")
    assert store.get("key") == b"values"
    assert (store.add("count", 2), store.add("count", 3)) == (2, 5)
    assert store.get("count") == b"5"
    assert store.check(["key", "count"])
    assert store.delete_key("key")
    assert not store.delete_key("key")


def test_a_value_is_replaced_only_if_it_is_as_expected(store: dist.Store) -> None:
    assert store.compare_set("key", "", "first") == b"first"
    assert store.compare_set("key", "other", "second") == b"first"
    assert store.compare_set("key", "first", "second") == b"second"


def test_waiting_ends_when_another_thread_sets_the_key(store: dist.Store) -> None:
    timer = threading.Timer(0.05, lambda: store.set("late", "here"))
    timer.start()
    assert store.get("late") == b"here"
    timer.join()


def test_waiting_ends_with_an_error_that_names_the_keys(store: dist.Store) -> None:
    with pytest.raises(dist.DistStoreError, match="wait timeout after 20ms, keys: never"):
        store.wait(["never"], timedelta(milliseconds=20))


def test_several_handles_share_one_store(tmp_path: Path) -> None:
    master = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    client = dist.TCPStore("127.0.0.1", master.port, is_master=False, wait_for_workers=False)
    client.set("key", b"\x00binary")
    assert master.get("key") == b"\x00binary"
    assert client.num_keys() == 1
    first, second = dist.FileStore(str(tmp_path / "f")), dist.FileStore(str(tmp_path / "f"))
    first.set("key", "value")
    assert second.get("key") == b"value"


def test_a_master_that_is_not_there_is_reported() -> None:
    with pytest.raises(dist.DistNetworkError, match="The client socket has timed out after 100ms"):
        dist.TCPStore("127.0.0.1", 1, timeout=timedelta(milliseconds=100))
