"""One operation at a time beside PyTorch: forward and backward at several sizes, the worst ratios first.

Both frameworks run in this process, their turns interleaved; a ratio is of the least times, which other load distorts
least. On one thread the time is that of the processor, on more it is the time on the wall.
Run: python -m benchmarks.operations [--only reductions] [--match sum] [--sizes 8 131072] [--threads 1] [--above 1.0]
[--write docs/operation_times.md]
"""

from __future__ import annotations

import argparse
import gc
import importlib
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pullback
from benchmarks import operation_layers, operation_table
from benchmarks.machine import hardware, sentence
from benchmarks.operation_table import Constant, Operation, Size

_SHORTEST = 2e-3
_VECTORS: list[Size] = [8, 4096, 2**17, 2**20]
_TABLES: list[Size] = [(2, 4), (128, 128), (1000, 1000)]
FAMILIES: dict[str, tuple[list[Size], list[Operation]]] = {
    "unary": (_VECTORS, operation_table.unary()),
    "binary": (_VECTORS, operation_table.binary()),
    "masks": (_VECTORS, operation_table.masks()),
    "reductions": ([*_TABLES, (8192, 16), (16, 8192)], operation_table.reductions()),
    "losses": (_TABLES, operation_table.losses()),
    "indexing": ([(8, 8), (128, 128), (1000, 1000)], operation_table.indexing()),
    "convolutions": ([1, 8, 32], operation_layers.convolutions()),
    "pooling": ([1, 8, 32], operation_layers.pooling()),
    "networks": ([1, 8, 64], operation_layers.networks()),
    "matrices": ([4, 32, 256], operation_layers.matrices()),
}
"""The operations of each family, and the sizes that they are measured at."""


class Row(NamedTuple):
    """The ratio of one operation at one size; `backward` is None where there is no gradient."""

    family: str
    operation: str
    size: str
    forward: float
    backward: float | None
    forward_time: float
    backward_time: float | None

    @property
    def worst(self) -> float:
        return max(self.forward, self.backward or 0.0)


def runs(torch: Any, operation: Operation, arrays: list[Any]) -> tuple[Callable[[], Any], Callable[[], Any] | None]:
    """One call forward, and one backward of it."""
    inputs = [torch.from_numpy(array.copy()) for array in arrays]
    leaves = [
        tensor.requires_grad_()
        for tensor, array in zip(inputs, arrays, strict=True)
        if operation.differentiable and tensor.is_floating_point() and not isinstance(array, Constant)
    ]
    function = operation.function

    def forward() -> Any:
        return function(torch, *inputs)

    if not leaves:
        return forward, None
    result = forward()
    result = result[0] if isinstance(result, tuple) else result
    gradient = torch.ones_like(result)

    def backward() -> None:
        result.backward(gradient, retain_graph=True)
        for leaf in leaves:
            leaf.grad = None

    return forward, backward


def ratio(first: Callable[[], Any], second: Callable[[], Any], clock: Callable[[], float], repeats: int) -> Any:
    """The least time of the second by that of the first, and the time."""
    number = 1
    while (least := _time(first, number, clock)) < _SHORTEST and number < 4096:
        number *= 2 if least > _SHORTEST / 8 else 8
    second()
    best = [float("inf"), float("inf")]
    gc.disable()
    for _ in range(repeats):
        for place, run in enumerate((first, second)):
            best[place] = min(best[place], _time(run, number, clock))
    gc.enable()
    return best[1] / best[0], best[1] / number


def _time(run: Callable[[], Any], number: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(number):
        run()
    return clock() - start


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """The rows of the operations that were asked for."""
    other = importlib.import_module("torch")
    other.set_num_threads(options.threads)
    pullback.set_num_threads(options.threads)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    for family, (sizes, operations) in FAMILIES.items():
        if options.only and family not in options.only:
            continue
        for operation in operations:
            if options.match and not any(part in operation.name for part in options.match):
                continue
            for size in options.sizes or sizes:
                yield Row(family, operation.name, str(size), *_ratios(other, operation, size, clock, options))


def _ratios(torch: Any, operation: Operation, size: Any, clock: Callable[[], float], options: Any) -> tuple[Any, ...]:
    """Forward and backward: the ratio of each, and our time of each."""
    arrays = operation.inputs(np.random.default_rng(0), size, options.dtype)
    theirs, ours = runs(torch, operation, arrays), runs(pullback, operation, arrays)
    forward, forward_time = ratio(theirs[0], ours[0], clock, options.repeats)
    backward, backward_time = None, None
    if theirs[1] is not None and ours[1] is not None:
        backward, backward_time = ratio(theirs[1], ours[1], clock, options.repeats)
    return forward, backward, forward_time, backward_time


def document(rows: list[Row], options: argparse.Namespace) -> str:
    """The page that records the ratios: a table for each family, a column for each size."""
    page = [_HEAD.format(machine=sentence(hardware()), threads=options.threads, dtype=options.dtype, mean=_mean(rows))]
    for family in dict.fromkeys(row.family for row in rows):
        found = [row for row in rows if row.family == family]
        sizes = list(dict.fromkeys(row.size for row in found))
        cells = {(row.operation, row.size): f"{_bold(row.forward)} / {_bold(row.backward)}" for row in found}
        page += [f"\n## {family.capitalize()}\n", f"Geometric mean: {_mean(found):.2f}.\n"]
        page += [f"| operation | {' | '.join(sizes)} |", "|---|" + "--:|" * len(sizes)]
        for operation in dict.fromkeys(row.operation for row in found):
            page.append(f"| {operation} | {' | '.join(cells[operation, size] for size in sizes)} |")
    return "\n".join(page) + "\n"


_HEAD = """# How fast each operation is

Ratios to PyTorch's time, forward / backward, in {dtype} on {threads} thread(s): 1.00 is PyTorch's time, less is faster, and
what is above 1.1 is in bold. Both run in one process in turns, and the ratio is of the least times; an operation of a few
microseconds is measured with all that calling it costs. `make bench-operations` writes this page. The geometric
mean of everything is {mean:.2f}.

{machine}"""


def _bold(value: float | None) -> str:
    if value is None:
        return "-"
    return f"**{value:.2f}**" if value > 1.1 else f"{value:.2f}"


def _mean(rows: list[Row]) -> float:
    values = [value for row in rows for value in (row.forward, row.backward) if value]
    return math.exp(sum(map(math.log, values)) / len(values))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(FAMILIES))
    parser.add_argument("--match", nargs="*")
    parser.add_argument("--sizes", nargs="*", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--above", type=float, default=0.0, help="leave out what is at most this")
    parser.add_argument("--write", type=Path, help="the page to write")
    options = parser.parse_args()
    rows = list(measure(options))
    print(f"{'operation':38} {'size':>14} {'forward':>8} {'backward':>8}")
    for row in sorted(rows, key=lambda row: -row.worst):
        if row.worst >= options.above:
            backward = "-" if row.backward is None else f"{row.backward:.2f}"
            times = f"{row.forward_time * 1e6:9.1f}us {(row.backward_time or 0) * 1e6:9.1f}us"
            print(f"{row.operation:38} {row.size:>14} {row.forward:8.2f} {backward:>8} {times}")
    print(f"rows {len(rows)}, geometric mean {_mean(rows):.2f}, above 1.1: {sum(row.worst > 1.1 for row in rows)}")
    if options.write:
        options.write.write_text(document(rows, options))


if __name__ == "__main__":
    main()
