"""Stores: small values that processes leave for each other under a key.

`HashStore` is a dictionary of one process, `FileStore` a file that processes on one file system share, `TCPStore` a
dictionary in one process that others reach over the network by `multiprocessing.connection`. Process groups do not need
one: MPI knows its ranks.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from pullback.distributed.errors import DistNetworkError, DistStoreError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

Values = dict[str, bytes]


def _encoded(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _set(values: Values, key: str, value: bytes) -> None:
    values[key] = value


def _add(values: Values, key: str, amount: int) -> int:
    total = int(values.get(key, b"0")) + amount
    values[key] = str(total).encode()
    return total


def _compare_set(values: Values, key: str, expected: bytes, desired: bytes) -> bytes:
    if key not in values and expected:
        return expected
    if values.get(key, b"") == expected:
        values[key] = desired
    return values[key]


def _append(values: Values, key: str, value: bytes) -> None:
    values[key] = values.get(key, b"") + value


_ACTIONS: dict[str, Callable[..., Any]] = {
    "set": _set,
    "get": lambda values, key: values.get(key),
    "add": _add,
    "compare_set": _compare_set,
    "append": _append,
    "delete": lambda values, key: values.pop(key, None) is not None,
    "check": lambda values, *keys: all(key in values for key in keys),
    "keys": lambda values: list(values),
}
"""What a store does to its dictionary, all at once with respect to every other process."""


class Store:
    """Values under keys; `get` and `wait` wait for keys that another process is to set."""

    def __init__(self) -> None:
        self.timeout = timedelta(seconds=300)

    def _act(self, action: str, *arguments: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must say how it does '{action}'")

    def set(self, key: str, value: Any) -> None:
        """Set a value, text or bytes."""
        self._act("set", key, _encoded(value))

    def get(self, key: str) -> bytes:
        """The value of a key, as soon as it is set."""
        self.wait([key])
        found: bytes = self._act("get", key)
        return found

    def add(self, key: str, amount: int) -> int:
        """Add to the number under a key, 0 if it is new, and return the sum."""
        total: int = self._act("add", key, int(amount))
        return total

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Set a value only if the present one is as expected ("" for none), and return what is there then."""
        found: bytes = self._act("compare_set", key, _encoded(expected_value), _encoded(desired_value))
        return found

    def append(self, key: str, value: Any) -> None:
        """Add bytes to the end of a value."""
        self._act("append", key, _encoded(value))

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all of these keys are set."""
        return bool(self._act("check", *keys))

    def delete_key(self, key: str) -> bool:
        """Forget a key; whether it was there."""
        return bool(self._act("delete", key))

    def num_keys(self) -> int:
        """How many keys are set."""
        return len(self._act("keys"))

    def list_keys(self) -> list[str]:
        """The keys that are set."""
        return sorted(self._act("keys"))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys, as soon as all are set."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        """Set several keys."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` are there."""
        return True

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are set."""
        limit = (timeout or self.timeout).total_seconds()
        end = time.monotonic() + limit
        pause = 0.0005
        while not self.check(keys):
            if time.monotonic() > end:
                missing = [key for key in keys if not self.check([key])]
                raise DistStoreError(
                    f"wait timeout after {round(limit * 1000)}ms, keys: {', '.join(missing)}: no process has set them"
                )
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def set_timeout(self, timeout: timedelta) -> None:
        """Wait this long for keys from now on."""
        self.timeout = timeout

    def clone(self) -> Store:
        """Another handle of the same store."""
        return self


class HashStore(Store):
    """A store of one process, for its threads.

    >>> store = HashStore()
    >>> store.set("epoch", "3")
    >>> store.get("epoch"), store.add("started", 2)
    (b'3', 2)
    """

    def __init__(self) -> None:
        super().__init__()
        self._values: Values = {}
        self._lock = threading.Lock()

    def _act(self, action: str, *arguments: Any) -> Any:
        with self._lock:
            return _ACTIONS[action](self._values, *arguments)


class FileStore(Store):
    """A store in a file that all processes can see.

    >>> import tempfile
    >>> store = FileStore(tempfile.mktemp(), 2)
    >>> store.set("epoch", "3")
    >>> store.get("epoch")
    b'3'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path = os.fspath(file_name)

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    def _act(self, action: str, *arguments: Any) -> Any:
        with self._locked() as file:
            content = file.read()
            values: Values = pickle.loads(content) if content else {}
            before = dict(values)
            result = _ACTIONS[action](values, *arguments)
            if values != before:
                file.seek(0)
                file.truncate()
                file.write(pickle.dumps(values))
            return result

    @contextmanager
    def _locked(self) -> Iterator[Any]:
        import fcntl  # lazy: only systems with POSIX locks have it

        with open(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


class _Server:
    """The dictionary of a TCPStore, and a thread for every process that asks for it."""

    def __init__(self, host: str, port: int) -> None:
        self._values: Values = {}
        self._lock = threading.Lock()
        self._listener = Listener((host, port), backlog=128)
        self.port = int(self._listener.address[1])
        threading.Thread(target=self._accept, name="pullback-store", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        try:
            while True:
                action, arguments = connection.recv()
                connection.send(self.act(action, arguments))
        except (EOFError, OSError):
            connection.close()

    def act(self, action: str, arguments: Sequence[Any]) -> Any:
        with self._lock:
            return _ACTIONS[action](self._values, *arguments)


class TCPStore(Store):
    """A store in the process that is master, which others reach over the network.

    It trusts whoever connects, as PyTorch's does: let only machines of the job reach the port.

    >>> store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    >>> TCPStore("127.0.0.1", store.port, wait_for_workers=False).set("epoch", "3")
    >>> store.get("epoch")
    b'3'
    """

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300), wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.timeout = timeout
        self.host = host_name
        self.port = int(port)
        self._server: _Server | None = None
        self._connection: Connection | None = None
        self._lock = threading.Lock()
        if is_master:
            try:
                self._server = _Server(
                    "0.0.0.0" if host_name not in ("localhost", "127.0.0.1") else host_name, self.port
                )
            except OSError as error:
                raise DistNetworkError(
                    f"The server socket has failed to listen on any local network address. port: {port}: {error}"
                ) from None
            self.port = self._server.port
        else:
            self._connection = self._connect()
        if wait_for_workers and world_size:
            self._meet(world_size)

    def _connect(self) -> Connection:
        end = time.monotonic() + self.timeout.total_seconds()
        while True:
            try:
                return Client((self.host, self.port))
            except OSError as error:
                if time.monotonic() > end:
                    raise DistNetworkError(
                        f"The client socket has timed out after {round(self.timeout.total_seconds() * 1000)}ms while "
                        f"trying to connect to ({self.host}, {self.port}): {error}"
                    ) from None
                time.sleep(0.05)

    def _meet(self, world_size: int) -> None:
        """Wait until as many processes have come."""
        self.add("_workers", 1)
        end = time.monotonic() + self.timeout.total_seconds()
        while self.add("_workers", 0) < world_size:
            if time.monotonic() > end:
                came = self.add("_workers", 0)
                raise DistStoreError(f"Timed out after waiting for clients: {came}/{world_size} clients joined.")
            time.sleep(0.005)

    def _act(self, action: str, *arguments: Any) -> Any:
        if self._server is not None:
            return self._server.act(action, arguments)
        with self._lock:
            if self._connection is None:
                raise DistNetworkError("the store is not connected")
            try:
                self._connection.send((action, arguments))
                return self._connection.recv()
            except (EOFError, OSError) as error:
                raise DistNetworkError(
                    f"failed to recv, got 0 bytes: the master of the store has ended ({error})"
                ) from None


class PrefixStore(Store):
    """A store whose keys begin with a prefix in another.

    >>> inner = HashStore()
    >>> PrefixStore("run1", inner).set("epoch", "3")
    >>> inner.get("run1/epoch")
    b'3'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self._prefix = prefix
        self._store = store
        self.timeout = store.timeout

    @property
    def underlying_store(self) -> Store:
        """The store that holds the values."""
        return self._store

    def _act(self, action: str, *arguments: Any) -> Any:
        if action == "keys":
            return [
                key.removeprefix(f"{self._prefix}/")
                for key in self._store._act("keys")
                if key.startswith(f"{self._prefix}/")
            ]
        if action == "check":
            return self._store._act(action, *(f"{self._prefix}/{key}" for key in arguments))
        return self._store._act(action, f"{self._prefix}/{arguments[0]}", *arguments[1:])
