"""Running the entries in a worker process, which is replaced when an operation crashes or hangs."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, Any

from pullback.progress import track

HANG_SECONDS = 120.0
START_SECONDS = 180.0


class Lost(Exception):
    """The worker ended or gave no answer in time."""


class Worker:
    """One worker process; `families` maps the names of all entries to their families."""

    def __init__(self) -> None:
        """Start the process and wait until it has read the database."""
        command = [sys.executable, "-m", "tests.conformance.worker"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.families: dict[str, str] = self._answer(START_SECONDS)

    def examine(self, name: str, factor: float) -> dict[str, Any]:
        """Have one entry examined."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"name": name, "factor": factor}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Lost("the process ended") from None
        answer: dict[str, Any] = self._answer(HANG_SECONDS * max(1.0, factor))
        return answer

    def _answer(self, seconds: float) -> Any:
        output: IO[str] | None = self._process.stdout
        assert output is not None
        ready, _, _ = select.select([output], [], [], seconds)
        if not ready:
            self.stop()
            raise Lost(f"hangs: no answer in {seconds:.0f} s")
        line = output.readline()
        if not line:
            raise Lost(f"crashes: the process ended ({self._last_words()})")
        return json.loads(line)

    def _last_words(self) -> str:
        assert self._process.stderr is not None
        self._process.wait()
        lines = self._process.stderr.read().strip().splitlines()
        return lines[-1][:200] if lines else f"exit status {self._process.returncode}"

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def _started() -> Worker:
    """Start a worker; while a file of the package is being written, a start may fail."""
    for _ in range(5):
        try:
            return Worker()
        except Lost:
            time.sleep(5)
    return Worker()


def run(
    wanted: Callable[[str, str], bool],
    factor: float,
    progress: Callable[[str, dict[str, Any]], None],
    processes: int = 1,
) -> tuple[dict[str, str], dict[str, Any]]:
    """Examine the wanted entries, in so many processes; give the families and the results by name."""
    worker = _started()
    families = {name: family for name, family in worker.families.items() if wanted(name, family)}
    results: dict[str, Any] = {}
    waiting = iter(track(list(families), len(families), "operations"))
    lock = threading.Lock()

    def work(worker: Worker) -> None:
        while True:
            with lock:
                name = next(waiting, None)
            if name is None:
                return worker.stop()
            try:
                result = worker.examine(name, factor)
            except Lost as lost:
                worker.stop()
                failure = {"tried": 1, "failed": 1, "dtypes": {}, "failures": [str(lost)]}
                result = {"exists": {"tried": 1, "failed": 0, "dtypes": {}, "failures": []}, "forward": failure}
                worker = _started()
            with lock:
                results[name] = result
                progress(name, result)

    others = [threading.Thread(target=lambda: work(_started())) for _ in range(processes - 1)]
    for other in others:
        other.start()
    work(worker)
    for other in others:
        other.join()
    return families, {name: results[name] for name in families}
