"""Meeting: how processes that nobody started together become the ranks of one MPI program.

`torch.multiprocessing.spawn`, torchrun, or a shell loop give every process RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
MPI learns where its ranks are from a process manager; rank 0 starts a small one (manager.py) at that address.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from pullback.distributed import manager
from pullback.distributed.errors import DistNetworkError

if TYPE_CHECKING:
    from pullback.distributed.store import Store

__all__ = ["Meeting", "meet"]


class Meeting:
    """A rank's connection to the manager, by which it learns of ranks that die."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.on_departure: Callable[[int, str], None] = lambda rank, reason: None
        self._watch: socket.socket | None = None
        self._process: subprocess.Popen[str] | None = None

    def open(self, host: str, port: int, size: int) -> int:
        """Start the manager and return its port."""
        command = [sys.executable, manager.__file__, host, str(port), str(size)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        word, _, said = self._process.stdout.readline().strip().partition(" ")
        if word != "port":
            raise DistNetworkError(
                f"The server socket has failed to listen on any local network address. port: {port}: {said}"
            )
        return int(said)

    def come(self, host: str, port: int, limit: float) -> None:
        """Reach the manager, which may begin later than this process."""
        end = time.monotonic() + limit
        while True:
            try:
                self._watch = socket.create_connection((host, port), timeout=5)
                break
            except OSError as error:
                if time.monotonic() > end:
                    raise DistNetworkError(
                        f"The client socket has timed out after {round(limit * 1000)}ms while trying to connect to "
                        f"({host}, {port}): rank 0 does not listen there ({error}). MASTER_ADDR and MASTER_PORT must name "
                        "its machine and a free port."
                    ) from None
                time.sleep(0.05)
        self._watch.settimeout(None)
        self._watch.sendall(b"watch %d\n" % self.rank)
        threading.Thread(target=self._listen, name="pullback-meeting", daemon=True).start()

    def _listen(self) -> None:
        assert self._watch is not None
        with self._watch.makefile("r") as lines:
            for line in lines:
                if line.startswith("gone "):
                    self.on_departure(int(line.split()[1]), "its process has ended")

    def leave(self) -> None:
        """Part in order."""
        if self._watch is not None:
            self._watch.sendall(b"bye\n")


def meet(init_method: str | None, rank: int, size: int, timeout: timedelta, store: Store | None = None) -> Meeting:
    """Meet the other processes at the place that a store, `init_method` or the environment names, before MPI starts."""
    meeting = Meeting(rank)
    limit = timeout.total_seconds()
    if store is not None:
        host, port = _meet_by_store(meeting, store, size)
    elif init_method is not None and init_method.startswith("file://"):
        host, port = _meet_at_file(meeting, init_method.removeprefix("file://").partition("?")[0], size, limit)
    else:
        host, port = _named_place(init_method)
        if rank == 0:
            meeting.open("" if host not in ("localhost", "127.0.0.1") else host, port, size)
    meeting.come(host, port, limit)
    os.environ["PMI_PORT"] = f"{socket.gethostbyname(host)}:{port}"
    os.environ["PMI_ID"] = str(rank)
    return meeting


def _named_place(init_method: str | None) -> tuple[str, int]:
    if init_method is not None and init_method.startswith("tcp://"):
        host, _, port = init_method.removeprefix("tcp://").partition("?")[0].rpartition(":")
        return host, int(port)
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if name not in os.environ:
            raise ValueError(
                f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, "
                "but not set"
            )
    return os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])


def _meet_at_file(meeting: Meeting, path: str, size: int, limit: float) -> tuple[str, int]:
    """Let rank 0 choose a port and leave it in a file."""
    if meeting.rank == 0:
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            file.write(_open_anywhere(meeting, size))
        os.replace(f"{path}.new", path)
    end = time.monotonic() + limit
    while not os.path.exists(path) or not os.path.getsize(path):
        if time.monotonic() > end:
            raise DistNetworkError(f"rank 0 has not written the file {path} within {limit:.0f} s")
        time.sleep(0.02)
    with open(path, encoding="utf-8") as file:
        return _place_in(file.read())


def _meet_by_store(meeting: Meeting, store: Store, size: int) -> tuple[str, int]:
    """Let rank 0 choose a port and leave it in the store."""
    if meeting.rank == 0:
        store.set("pullback/meeting", _open_anywhere(meeting, size))
    return _place_in(store.get("pullback/meeting").decode())


def _open_anywhere(meeting: Meeting, size: int) -> str:
    """Start the manager at a free port, and say where, for other machines too."""
    return f"{socket.gethostname()} {meeting.open('', 0, size)}"


def _place_in(text: str) -> tuple[str, int]:
    host, port = text.split()
    return ("localhost" if host == socket.gethostname() else host), int(port)
