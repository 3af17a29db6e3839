"""Stands in for Slurm's `srun`: starts ranks on this machine with Slurm's variables, and says how they ended as it does.

With STAND_IN_MPI=hydra the ranks can ask a process manager for each other, as under `srun --mpi=pmi2`; otherwise nobody
answers them, as under `srun --mpi=none`.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

AS_A_TASK = 'SLURM_PROCID=$PMI_RANK SLURM_LOCALID=$PMI_RANK exec "$@"'


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int)
    parser.add_argument("--kill-on-bad-exit")
    parser.add_argument("--disable-status", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    step = {
        "SLURM_NTASKS": str(given.n), "SLURM_STEP_ID": "0", "SLURM_TASKS_PER_NODE": str(given.n),
        "SLURM_STEP_NODELIST": socket.gethostname(),
    }  # fmt: skip
    environment = {**os.environ, **step}
    if os.environ.get("STAND_IN_MPI") == "hydra":
        mpiexec = str(Path(sys.executable).parent / "mpiexec")
        return subprocess.call(
            [mpiexec, "-n", str(given.n), "sh", "-c", AS_A_TASK, "sh", *given.command], env=environment
        )
    tasks = [
        subprocess.Popen(given.command, env={**environment, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)})
        for rank in range(given.n)
    ]
    return wait_for(tasks)


def wait_for(tasks: list[subprocess.Popen[bytes]]) -> int:
    """The status of the first that failed, at whose end the others are killed; 0 if none did."""
    while True:
        states = [task.poll() for task in tasks]
        failed = next((rank for rank, state in enumerate(states) if state), None)
        if failed is not None:
            status = tasks[failed].returncode
            how = signal.strsignal(-status) if status < 0 else f"Exited with exit code {status}"
            print(f"srun: error: {socket.gethostname()}: task {failed}: {how}", file=sys.stderr, flush=True)
            for task in tasks:
                task.kill()
                task.wait()
            return 128 - status if status < 0 else status
        if None not in states:
            return 0
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
