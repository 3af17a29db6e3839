"""Whole programs with worker processes: how they end, and how they run as PyTorch programs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import pullback

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(pullback.__file__).parents[1]), "PYTHONWARNINGS": "ignore"}

PATIENCE = 120
"""Seconds after which a test calls it a hang: loaded machines take many times as long as idle ones."""

SLOW_DATASET = """
    import os, signal, time
    from pullback.utils.data import DataLoader

    class Slow:
        def __getitem__(self, index):
            time.sleep(1000 if index > 1 else 0)
            return index

        def __len__(self):
            return 9
"""


def start(program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for processes in /proc")
def test_workers_do_not_outlive_a_killed_parent() -> None:
    program = textwrap.dedent(SLOW_DATASET) + textwrap.dedent("""
        iterator = iter(DataLoader(Slow(), num_workers=2, collate_fn=list))
        next(iterator)
        print(*(worker.pid for worker in iterator._workers), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    with start(program) as process:
        output, _ = process.communicate(timeout=PATIENCE)
    pids = [int(pid) for pid in output.split()]
    deadline = time.monotonic() + PATIENCE
    while any(is_running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert (len(pids), [pid for pid in pids if is_running(pid)]) == (2, [])


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="interrupts a group of processes")
def test_interrupting_the_whole_program_shows_one_traceback() -> None:
    program = textwrap.dedent(SLOW_DATASET) + textwrap.dedent("""
        for batch in DataLoader(Slow(), num_workers=2, collate_fn=list):
            print(batch, flush=True)
    """)
    with start(program) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert lines == ["[0]\n", "[1]\n"]
    assert (process.returncode, errors.count("Traceback"), errors.count("KeyboardInterrupt")) == (-signal.SIGINT, 1, 1)


def test_an_abandoned_iterator_does_not_hold_up_the_end_of_the_program() -> None:
    program = textwrap.dedent("""
        from pullback.utils.data import DataLoader, worker_pool
        worker_pool.SHUTDOWN_GRACE = 1000  # who waits for the workers is seen to hang
        loader = DataLoader(range(100), num_workers=2, persistent_workers=True, collate_fn=list)
        iterator = iter(loader)
        next(iterator)
    """)
    with start(program) as process:
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")


def test_spawned_workers_of_a_torch_program_know_torch(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent("""
            import torch
            from torch.utils.data import DataLoader, Dataset

            class Squares(Dataset):
                def __getitem__(self, index):
                    return torch.tensor(index * index)

                def __len__(self):
                    return 3

            if __name__ == "__main__":
                loader = DataLoader(Squares(), num_workers=1, multiprocessing_context="spawn")
                print([batch.item() for batch in loader], torch.Size([1]))
        """)
    )
    command = [sys.executable, "-m", "pullback", "run", str(script)]
    process = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (process.stdout, process.stderr) == ("[0, 1, 4] torch.Size([1])\n", "")
