"""One operation at a time beside PyTorch: forward and backward at several sizes, the worst ratios first.

Both frameworks run in this process, their turns interleaved; a ratio is of the least times, which other load distorts
least. On one thread the time is that of the processor, on more it is the time on the wall.
Run: python -m benchmarks.operations [--only reductions] [--match sum] [--sizes 8 131072] [--threads 1] [--above 1.0]
"""

from __future__ import annotations

import argparse
import gc
import importlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import pullback
from benchmarks.operation_table import FAMILIES, Constant, Operation

_SHORTEST = 2e-3


class Row(NamedTuple):
    """The ratio of one operation at one size; `backward` is None where there is no gradient."""

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
                yield _row(other, operation, size, clock, options)


def _row(torch: Any, operation: Operation, size: Any, clock: Callable[[], float], options: argparse.Namespace) -> Row:
    arrays = operation.inputs(np.random.default_rng(0), size, options.dtype)
    theirs, ours = runs(torch, operation, arrays), runs(pullback, operation, arrays)
    forward, forward_time = ratio(theirs[0], ours[0], clock, options.repeats)
    backward, backward_time = None, None
    if theirs[1] is not None and ours[1] is not None:
        backward, backward_time = ratio(theirs[1], ours[1], clock, options.repeats)
    return Row(operation.name, str(size), forward, backward, forward_time, backward_time)


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
    options = parser.parse_args()
    print(f"{'operation':34} {'size':>14} {'forward':>8} {'backward':>8}")
    for row in sorted(measure(options), key=lambda row: -row.worst):
        if row.worst >= options.above:
            backward = "-" if row.backward is None else f"{row.backward:.2f}"
            times = f"{row.forward_time * 1e6:9.1f}us {(row.backward_time or 0) * 1e6:9.1f}us"
            print(f"{row.operation:34} {row.size:>14} {row.forward:8.2f} {backward:>8} {times}")


if __name__ == "__main__":
    main()
