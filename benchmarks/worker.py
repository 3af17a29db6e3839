"""One framework, one workload, in a process of its own: obeys lines on standard input, answers in JSON lines.

`gradients FILE` runs the workload once and writes its gradients; `turn SECONDS` runs it until that time has passed (once
at least) and answers with the seconds of each run; `runs COUNT` only runs it; `memory` answers with the peak of resident
memory in bytes; `workload NAME` prepares another one.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy

from benchmarks.workload import Run
from benchmarks.workloads import WORKLOADS

Clock = Callable[[], float]


def write_gradients(run: Run, path: str) -> None:
    arrays = [numpy.asarray(gradient.detach().numpy()) for gradient in run()]
    numpy.savez(path, *arrays)


def take_turn(run: Run, seconds: float, clock: Clock) -> list[float]:
    """The time of each run. Garbage is collected before the turn, not during it."""
    gc.collect()
    gc.disable()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = clock()
        run()
        times.append(clock() - start)
    gc.enable()
    return times


def answer(run: Run, clock: Clock, command: str, argument: str) -> Any:
    if command == "gradients":
        return write_gradients(run, argument)
    if command == "turn":
        return take_turn(run, float(argument), clock)
    if command == "runs":
        for _ in range(int(argument)):
            run()
        return None
    assert command == "memory"
    kilobyte = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilobyte


def main() -> None:
    """Import the framework, prepare the workload, obey until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=("torch", "pullback"))
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    module = importlib.import_module(options.framework)
    module.set_num_threads(options.threads)
    run = WORKLOADS[options.workload].make(module)
    # On one thread the processor's time, which leaves out the moments when another process had the core.
    clock = time.process_time if options.threads == 1 else time.perf_counter
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        if command == "workload":
            run = WORKLOADS[argument].make(module)
            print("null", flush=True)
            continue
        print(json.dumps(answer(run, clock, command, argument)), flush=True)


if __name__ == "__main__":
    main()
