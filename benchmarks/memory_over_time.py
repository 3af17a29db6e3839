"""Memory over time: many small steps, graphs of millions of nodes, and the bytes of a recorded node beside PyTorch's.

Run: python -m benchmarks.memory_over_time [--parts steps graphs bytes] [--write]. Every line is measured in a process of
its own, which reads its resident memory from /proc (Linux). The status is 1 where memory grows from step to step, or where
a node takes more bytes than PyTorch's.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.comparison import THREAD_VARIABLES
from benchmarks.machine import hardware, sentence

Step = Callable[[], None]
Found = dict[str, Any]
SAMPLES = 20
FLAT_BYTES = 2**20
FLAT_BLOCKS = 5000
"""Memory that grew by less is flat: Python's cache of attributes keeps up to 4,096 names. A block in each step is more."""


# The steps: each function takes the framework and gives back one step.


def training(torch: Any) -> Step:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    data, target = torch.randn(4, 4), torch.randn(4, 1)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(data), target).backward()
        optimizer.step()

    return step


def hooks(torch: Any) -> Step:
    layer = torch.nn.Linear(4, 4)
    data = torch.randn(2, 4)

    def step() -> None:
        handle = layer.register_forward_hook(lambda module, inputs, output: output * 2)
        hidden = layer(data)
        hidden.register_hook(lambda grad: grad * 0.5)
        hidden.grad_fn.register_hook(lambda grads, outputs: None)
        hidden.sin().sum().backward()
        handle.remove()
        layer.zero_grad()

    return step


def without_gradients(torch: Any) -> Step:
    weight = torch.randn(4, 4, requires_grad=True)
    data = torch.randn(2, 4)

    def step() -> None:
        with torch.no_grad():
            hidden = (data @ weight).relu()
        with torch.inference_mode():
            (data @ weight).relu()
        (weight.detach() * hidden.sum()).requires_grad_()

    return step


def function_transforms(torch: Any) -> Step:
    weight, data = torch.randn(4), torch.randn(4)
    gradient = torch.func.grad(lambda given: (given * data).sin().sum())

    def step() -> None:
        gradient(weight)

    return step


def in_place_and_views(torch: Any) -> Step:
    weight = torch.randn(4, 4, requires_grad=True)

    def step() -> None:
        hidden = weight * 2
        row = hidden[1]
        row.mul_(0.5)
        hidden.view(16)[::2].add_(row.sum())
        hidden.t().sum().backward()
        weight.grad = None

    return step


def second_derivatives(torch: Any) -> Step:
    weight = torch.randn(4, requires_grad=True)

    def step() -> None:
        (first,) = torch.autograd.grad(weight.sin().pow(2).sum(), weight, create_graph=True)
        torch.autograd.grad(first.sum(), weight)

    return step


def custom_functions(torch: Any) -> Step:
    class Square(torch.autograd.Function):  # type: ignore[misc]  # of either framework
        @staticmethod
        def forward(ctx: Any, given: Any) -> Any:
            ctx.save_for_backward(given)
            return given * given

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * grad

    weight = torch.randn(4, requires_grad=True)

    def step() -> None:
        Square.apply(weight).sum().backward()
        weight.grad = None

    return step


STEPS: dict[str, tuple[Callable[[Any], Step], float]] = {
    "training: forward, backward, SGD": (training, 1.0),
    "hooks of tensors, nodes and modules": (hooks, 0.1),
    "no_grad, inference_mode, detach": (without_gradients, 0.1),
    "func.grad": (function_transforms, 0.1),
    "in-place operations on views": (in_place_and_views, 0.1),
    "second derivatives": (second_derivatives, 0.1),
    "custom Function": (custom_functions, 0.1),
}
"""By name: what makes the step, and its share of the number of steps that was asked for."""

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "x * 1.0001": lambda x, y: x * 1.0001,
    "x.sin()": lambda x, y: x.sin(),
    "x + y": lambda x, y: x + y,
    "x * y": lambda x, y: x * y,
    "x[:]": lambda x, y: x[:],
    "x.softmax(0)": lambda x, y: x.softmax(0),
}


# What is measured, in a process of its own.


def memory(name: str) -> int:
    """A line of the process's status, in bytes: VmRSS is the resident memory, VmHWM its peak."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def measure_steps(torch: Any, name: str, count: int) -> Found:
    """Resident memory, allocated blocks and objects that the collector knows, at regular intervals.

    The first sample is taken after a twentieth of the steps: caches are full by then.
    """
    step = STEPS[name][0](torch)
    samples: list[tuple[int, int, int]] = []
    begin = time.perf_counter()
    for _ in range(SAMPLES):
        for _ in range(max(count // SAMPLES, 1)):
            step()
        gc.collect()
        samples.append((memory("VmRSS"), sys.getallocatedblocks(), len(gc.get_objects())))
    first, last = samples[0], samples[-1]
    return {
        "name": name, "count": count, "seconds": time.perf_counter() - begin, "resident": last[0],
        "bytes": last[0] - first[0], "blocks": last[1] - first[1], "objects": last[2] - first[2],
        "highest": max(sample[0] for sample in samples) - first[0],
    }  # fmt: skip


def chain(torch: Any, name: str, size: int, count: int) -> tuple[Any, Any]:
    """A leaf, and what became of it after so many operations."""
    leaf = torch.full((size,), 0.5).requires_grad_()
    other = torch.full((size,), 1e-6).requires_grad_()
    result, operation = leaf, OPERATIONS[name]
    for _ in range(count):
        result = operation(result, other)
    return leaf, result


def measure_graph(torch: Any, name: str, count: int) -> Found:
    """A chain is made, run backward and freed: seconds and memory of each."""
    before, begin = memory("VmRSS"), time.perf_counter()
    leaf, result = chain(torch, name, 1, count)
    made, made_at = memory("VmRSS"), time.perf_counter()
    result.backward()
    ran_at = time.perf_counter()
    del result
    freed_at = time.perf_counter()
    assert leaf.grad is not None
    return {
        "name": name, "count": count, "make": made_at - begin, "backward": ran_at - made_at, "free": freed_at - ran_at,
        "made": made - before, "peak": memory("VmHWM") - before, "left": memory("VmRSS") - before,
    }  # fmt: skip


def measure_bytes(torch: Any, name: str, size: int, count: int) -> Found:
    """Resident bytes for each node of a chain that is kept alive by its end."""
    chain(torch, name, size, 1000)
    gc.collect()
    before = memory("VmRSS")
    kept = chain(torch, name, size, count)
    bytes_each = (memory("VmRSS") - before) / count
    del kept
    return {"name": name, "size": size, "bytes": bytes_each}


MEASURES: dict[str, Callable[..., Found]] = {"steps": measure_steps, "graphs": measure_graph, "bytes": measure_bytes}


def in_process(framework: str, part: str, *arguments: Any) -> Found:
    """Measure in a new process, on one thread."""
    request = json.dumps([framework, part, *arguments])
    command = [sys.executable, "-m", "benchmarks.memory_over_time", "--measure", request]
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, "1")
    found: Found = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    return found


def obey(request: str) -> None:
    """Measure what another process asked for, and print it."""
    framework, part, *arguments = json.loads(request)
    torch: Any = importlib.import_module(framework)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(json.dumps(MEASURES[part](torch, *arguments)))


# What is told.


def steps_table(count: int) -> tuple[list[str], bool]:
    lines = [
        "| steps | number | seconds | resident | growth | of blocks | of objects |", "|---|--:|--:|--:|--:|--:|--:|"
    ]  # fmt: skip
    flat = True
    for name, (_, share) in STEPS.items():
        found = in_process("pullback", "steps", name, int(count * share))
        flat &= found["bytes"] < FLAT_BYTES and found["blocks"] < FLAT_BLOCKS
        lines.append(
            f"| {name} | {found['count']:,} | {found['seconds']:.0f} | {found['resident'] / 1e6:.1f} MB "
            f"| {found['bytes'] / 1e3:.0f} kB | {found['blocks']} | {found['objects']} |"
        )
        print(lines[-1], flush=True)
    return lines, flat


def graphs_table(count: int, of_torch: int) -> tuple[list[str], bool]:
    lines = [
        "| chain | nodes | make | backward | free | memory made | peak | left |", "|---|--:|--:|--:|--:|--:|--:|--:|"
    ]  # fmt: skip
    for framework, nodes in (("pullback", count), ("pullback", of_torch), ("torch", of_torch)):
        for name in ("x * 1.0001", "x.sin()"):
            found = in_process(framework, "graphs", name, nodes)
            lines.append(
                f"| {framework}, `{name}` | {nodes:,} | {found['make']:.1f} s | {found['backward']:.1f} s "
                f"| {found['free']:.1f} s | {found['made'] / 1e6:,.0f} MB | {found['peak'] / 1e6:,.0f} MB "
                f"| {found['left'] / 1e6:,.0f} MB |"
            )
            print(lines[-1], flush=True)
    return lines, True


def bytes_table(count: int) -> tuple[list[str], bool]:
    lines = ["| node of | elements | PyTorch | pullback | ratio |", "|---|--:|--:|--:|--:|"]
    fewer = True
    for name in OPERATIONS:
        for size in (1, 8):
            theirs, ours = [in_process(f, "bytes", name, size, count)["bytes"] for f in ("torch", "pullback")]
            fewer &= ours <= theirs
            lines.append(f"| `{name}` | {size} | {theirs:.0f} | {ours:.0f} | {ours / theirs:.2f} |")
            print(lines[-1], flush=True)
    return lines, fewer


_PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
_BEGIN, _END = "<!-- memory over time -->", "<!-- end of memory over time -->"


def write(lines: list[str]) -> None:
    """Put the tables into the page, between its two marks."""
    before, _, rest = _PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    _PAGE.write_text("\n".join([before + _BEGIN, *lines, _END + after]), encoding="utf-8")


def main() -> int:
    """Measure the parts that were asked for, and say whether memory stays where it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=MEASURES, default=list(MEASURES))
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--nodes", type=int, default=10_000_000, help="some 420 to 800 bytes each")
    parser.add_argument("--chain", type=int, default=1_000_000, help="nodes where PyTorch stands beside")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        obey(options.measure)
        return 0
    tables = {
        "steps": lambda: steps_table(options.steps),
        "graphs": lambda: graphs_table(options.nodes, options.chain),
        "bytes": lambda: bytes_table(options.chain),
    }
    lines = [sentence(hardware())]
    held = True
    for part in options.parts:
        told, as_wanted = tables[part]()
        lines += ["", *told]
        held &= as_wanted
    if options.write:
        write(lines)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
