"""The kernels of built programs, with their texts and how long each takes: for `explain`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pullback.backend.traced_array import plain
from pullback.compiling.entries import Entry
from pullback.compiling.memory import laid_out
from pullback.compiling.numbers import evaluate
from pullback.compiling.plan import BuiltRunner, NotPlanned
from pullback.compiling.program import Number, Program, Value
from pullback.compiling.random_streams import random_states, set_random_states

_RUNS = 3


class Kernel(NamedTuple):
    """What one kernel does, its C text where it is a loop, and its seconds in one call, if they were measured."""

    title: str
    text: str
    seconds: float | None


class KernelList(NamedTuple):
    """The kernels of a program, in order."""

    title: str
    kernels: list[Kernel]


def timed_kernel_lists(entry: Entry, leaves: Sequence[Any]) -> list[KernelList]:
    """The kernels of an entry's forward and backward, with times where it can be run on copies of the arguments."""

    def inputs() -> list[Any]:
        numbers = [evaluate(expression, leaves) for _, expression in entry.scalars]
        return [*[_copy(plain(tensor._array)) for tensor in entry.tensors_of(leaves)], *numbers]

    return _timed_or_listed(entry, "", inputs)


def timed_kernel_lists_of_piece(entry: Entry, title: str) -> list[KernelList]:
    """The same for a piece between breaks, whose arguments are not at hand: it is run on ones, and on zeros as indices."""

    def inputs() -> list[Any]:
        return [*[_made_up(value) for value in entry.values], *[_made_up(value) for value, _ in entry.scalars]]

    return _timed_or_listed(entry, title, inputs)


def _made_up(value: Value | Number) -> Any:
    if isinstance(value, Number):
        return value.kind(1)
    return laid_out(value.dtype.kind in "fc", value.shape, value.strides, value.dtype, value.place)


def _timed_or_listed(entry: Entry, title: str, inputs: Callable[[], list[Any]]) -> list[KernelList]:
    state = random_states()
    try:
        return _timed(entry, title, inputs)
    except Exception:  # a `.grad` that the call took away, say: what is told is less, and not an error
        lists = [KernelList(title + name, list_kernels(run, program)) for name, run, program in _programs(entry)]
        return lists + _updates(entry, title)
    finally:
        set_random_states(state)


def list_kernels(runner: Any, program: Program, seconds: Sequence[float] = ()) -> list[Kernel]:
    """The kernels that a runner runs: those of its plan, or those that were recorded where there is none."""
    try:
        found = runner.kernels() if isinstance(runner, BuiltRunner) else None
    except NotPlanned:
        found = None
    if found is None:
        found = [(call.kernel, "") for call in program.calls]
    times: Sequence[float | None] = seconds or [None] * len(found)
    return [Kernel(title, text, time) for (title, text), time in zip(found, times, strict=True)]


def _programs(entry: Entry) -> list[tuple[str, Any, Program]]:
    found = [("Forward", entry.run_forward, entry.forward_program)]
    if entry.backward_program is not None:
        found.append(("Backward", entry.backward_of([True] * len(entry.gradient_values)).run, entry.backward_program))
    return found


def _timed(entry: Entry, title: str, inputs: Callable[[], list[Any]]) -> list[KernelList]:
    lists = [_measured(f"{title}Forward", entry.run_forward, entry.forward_program, [inputs() for _ in range(_RUNS)])]
    if entry.backward_program is not None:
        kept = entry.run_forward(inputs())[entry.shown :]
        backward = entry.backward_of([True] * len(entry.gradient_values))
        given = [kept[place] for place in backward.kept]
        given += [laid_out(1, value.shape, value.strides, value.dtype, value.place) for _, value in backward.gradients]
        lists.append(_measured(f"{title}Backward", backward.run, entry.backward_program, [given] * _RUNS))
    return lists + _updates(entry, title)


def _updates(entry: Entry, title: str) -> list[KernelList]:
    """The steps of optimizers that run after a program. They are not measured: they would count in the optimizer."""
    found = [Kernel(f"optimizer.update of {len(update.rows)} parameters", "", None) for update in entry.updates]
    return [KernelList(f"{title}Optimizer", found)] if found else []


def _measured(title: str, runner: Any, program: Program, inputs: Sequence[list[Any]]) -> KernelList:
    """A program's kernels with the least of the times of several calls."""
    if not isinstance(runner, BuiltRunner):
        return KernelList(title, list_kernels(runner, program))
    runner.wait()
    if not runner.is_compiled:
        return KernelList(title, list_kernels(runner, program))
    rows = [[seconds for _, seconds in runner.times(given)] for given in inputs]
    return KernelList(title, list_kernels(runner, program, [min(row) for row in zip(*rows, strict=True)]))


def _copy(array: Any) -> Any:
    return laid_out(array, array.shape, array.strides, array.dtype)
