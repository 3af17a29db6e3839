"""One rank of `benchmarks.distributed`, under PyTorch or under pullback: rank 0 prints one line of JSON.

messages    seconds of all_reduce for messages of 1 kB to 100 MB, beside mpi4py alone
training    seconds of a step of the GPT of benchmarks/workloads: computation alone, and with averaged gradients
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from benchmarks.workload import random_labels
from benchmarks.workloads.language_model import BATCH, LENGTH, VOCABULARY, gpt_classes

SIZES = [10**3, 10**4, 10**5, 10**6, 10**7, 10**8]
HOOKS = {"float16": "fp16_compress_hook", "bfloat16": "bf16_compress_hook"}


def fast_time(action: Callable[[], Any], repeats: int) -> float:
    """The fastest tenth of some repeats; ranks begin together each time."""
    times = []
    for _ in range(repeats):
        dist.barrier()
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return fast(times)


def fast(times: list[float]) -> float:
    """The slowest of the fastest tenth: what other processes took from the rest is left out."""
    return sorted(times)[len(times) // 10]


def messages() -> dict[str, Any]:
    """Seconds per message, by size."""
    found: dict[str, Any] = {"ours": {}, "mpi4py": {}}
    comm: Any = importlib.import_module("mpi4py.MPI").COMM_WORLD if importlib.util.find_spec("mpi4py") else None
    for size in SIZES:
        tensor = torch.zeros(size // 4)
        repeats = 200 if size <= 10**5 else 40 if size <= 10**7 else 7
        dist.all_reduce(tensor)
        found["ours"][size] = fast_time(partial(dist.all_reduce, tensor), repeats)
        if comm is not None and comm.Get_size() > 1:
            in_place = importlib.import_module("mpi4py.MPI").IN_PLACE
            found["mpi4py"][size] = fast_time(partial(comm.Allreduce, in_place, tensor.numpy()), repeats)
    return found


def training(steps: int) -> dict[str, Any]:
    """Seconds per step: with averaging, without, and of averaging alone."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module = torch.nn.parallel.DistributedDataParallel(gpt_classes(torch)())
    hook = os.environ.get("BENCHMARK_HOOK", "")
    if hook:
        hooks: Any = importlib.import_module("torch.distributed.algorithms.ddp_comm_hooks.default_hooks")
        module.register_comm_hook(None, getattr(hooks, HOOKS[hook]))
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)
    tokens = random_labels(torch, 1, VOCABULARY, BATCH, LENGTH)
    following = random_labels(torch, 2, VOCABULARY, BATCH * LENGTH)

    def step() -> None:
        optimizer.zero_grad()
        output = module(tokens)
        torch.nn.functional.cross_entropy(output.view(-1, VOCABULARY), following).backward()
        optimizer.step()

    def alone() -> None:
        with module.no_sync():
            step()

    for _ in range(3):
        step()
        alone()
    with_averaging: list[float] = []
    computation: list[float] = []
    busy: dict[str, float] = {"step_processor": math.inf, "computation_processor": math.inf}
    for _ in range(steps):  # interleaved, so that both see the same machine
        for action, times, name in (
            (step, with_averaging, "step_processor"), (alone, computation, "computation_processor"),
        ):  # fmt: skip
            times.append(fast_time(partial(_time_processor, action, busy, name), 1))
    # A step cannot end before the slowest rank has computed, however fast messages are.
    for times in (with_averaging, computation):
        slowest = torch.tensor(times, dtype=torch.float64)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        times[:] = slowest.tolist()
    whole = torch.zeros(sum(p.numel() for p in module.parameters()))
    averaging = fast_time(lambda: dist.all_reduce(whole), 10)
    return {
        "step": fast(with_averaging), "computation": fast(computation), "averaging": averaging,
        "bytes": 4 * whole.numel(), **busy,
    }  # fmt: skip


def _time_processor(action: Callable[[], Any], busy: dict[str, float], name: str) -> None:
    """Keep the least time that all threads of this rank spent on a processor, to which other programs add little."""
    start = time.process_time()
    action()
    busy[name] = min(busy[name], time.process_time() - start)


def main(role: str, steps: str = "30") -> None:
    dist.init_process_group("gloo")
    found = messages() if role == "messages" else training(int(steps))
    if dist.get_rank() == 0:
        print("FOUND " + json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
