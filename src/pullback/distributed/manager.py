"""The process in which ranks that nobody started together meet. Run by rank 0 as a file: it needs Python alone.

It answers the lines by which MPI's ranks find each other (PMI version 1, which MPICH speaks), and keeps one connection of
every rank, by whose end it notices a rank that dies and tells the others. It carries no tensor. It is a process of its own
because MPI holds Python's lock while it starts. It ends when the last rank has gone. See meeting.py.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time

__all__ = ["Manager"]


class Manager:
    """Keeps what ranks tell each other while MPI starts, and notices who goes."""

    def __init__(self, host: str, port: int, size: int) -> None:
        self._size = size
        self._values: dict[str, str] = {}
        self._turn = threading.Condition()
        self._waiting = self._passed = 0
        self._watched: dict[int, socket.socket] = {}
        self._open = 0
        self._left: set[int] = set()
        self._server = socket.create_server((host, port))
        self.port = int(self._server.getsockname()[1])
        self._name = (
            f"pullback_{os.getpid()}_{self.port}_{time.time_ns()}"  # MPI names memory that ranks share after it
        )

    def run(self) -> None:
        """Serve until all ranks have gone."""
        threading.Thread(target=self._accept, daemon=True).start()
        while len(self._left) < self._size or self._open:
            time.sleep(0.05)

    def _accept(self) -> None:
        while True:
            connection, _ = self._server.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with self._turn:
            self._open += 1
        try:
            with connection, connection.makefile("rw", newline="\n") as lines:
                line = lines.readline()
                if line.startswith("watch "):
                    self._watch(int(line.split()[1]), connection, lines)
                    return
                while line:
                    for answer in self.answers(line):
                        lines.write(answer + "\n")
                    lines.flush()
                    line = lines.readline()
        except OSError:
            pass
        finally:
            with self._turn:
                self._open -= 1

    def _watch(self, rank: int, connection: socket.socket, lines: object) -> None:
        """Wait until a rank says goodbye, or its connection ends without."""
        self._watched[rank] = connection
        try:
            said = lines.readline()  # type: ignore[attr-defined]  # a text file
        except OSError:
            said = ""
        del self._watched[rank]
        self._left.add(rank)
        if said.strip() != "bye":
            for other in list(self._watched.values()):
                try:
                    other.sendall(b"gone %d\n" % rank)
                except OSError:
                    continue

    def answers(self, line: str) -> list[str]:
        """What MPI expects for one of its lines.

        >>> manager = Manager("127.0.0.1", 0, 2)
        >>> manager.answers("cmd=put kvsname=pullback key=a value=b c")
        ['cmd=put_result rc=0 msg=success']
        >>> manager.answers("cmd=get kvsname=pullback key=a")
        ['cmd=get_result rc=0 msg=success value=b c']
        >>> manager._server.close()
        """
        fields = dict(part.split("=", 1) for part in line.split() if "=" in part)
        match fields.get("cmd"):
            case "initack":
                rank = fields["pmiid"]
                return ["cmd=initack rc=0", f"cmd=set size={self._size}", f"cmd=set rank={rank}", "cmd=set debug=0"]
            case "init":
                return ["cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1"]
            case "get_maxes":
                return ["cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=4096"]
            case "get_appnum":
                return ["cmd=appnum rc=0 appnum=0"]
            case "get_my_kvsname":
                return [f"cmd=my_kvsname rc=0 kvsname={self._name}"]
            case "get_universe_size":
                return [f"cmd=universe_size rc=0 size={self._size}"]
            case "put":
                self._values[fields["key"]] = line.split("value=", 1)[1].rstrip("\n")
                return ["cmd=put_result rc=0 msg=success"]
            case "get":
                value = self._values.get(fields["key"])
                found = (
                    f"rc=0 msg=success value={value}" if value is not None else "rc=-1 msg=key_not_found value=unknown"
                )
                return [f"cmd=get_result {found}"]
            case "barrier_in":
                self._wait_for_all()
                return ["cmd=barrier_out rc=0"]
            case "finalize":
                return ["cmd=finalize_ack rc=0"]
        return ["cmd=unknown rc=-1"]

    def _wait_for_all(self) -> None:
        with self._turn:
            turn = self._passed
            self._waiting += 1
            if self._waiting == self._size:
                self._waiting = 0
                self._passed += 1
                self._turn.notify_all()
            else:
                self._turn.wait_for(lambda: self._passed != turn)


def main(host: str, port: str, size: str) -> None:
    """Say where the manager listens, then serve; a parent that dies before anybody has come ends it."""
    try:
        manager = Manager(host, int(port), int(size))
    except OSError as error:
        print(f"error {error}", flush=True)
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the ranks, which say where they were interrupted
    print(f"port {manager.port}", flush=True)
    threading.Thread(target=_end_with_parent, args=(manager,), daemon=True).start()
    manager.run()


def _end_with_parent(manager: Manager) -> None:
    sys.stdin.read()
    time.sleep(3)
    while manager._watched:
        time.sleep(0.2)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
