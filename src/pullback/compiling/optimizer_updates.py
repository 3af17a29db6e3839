"""Steps of optimizers in programs: a whole update of a group's parameters is one call.

How many steps there were is a tensor of the optimizer's state, and Python computes with its value: the update reads it.
As one call, from the arrays of parameters, gradients and state to the new ones, the update reads it whenever it runs, as it
reads the options of its group.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pullback.compiling.kernel_names import current_recorder
from pullback.compiling.memory import laid_out
from pullback.compiling.program import Program
from pullback.compiling.recorder import Recorder
from pullback.graph.history import bump_version
from pullback.tensor.tensor import Tensor, new_tensor

UPDATE = "optimizer.update"


@contextmanager
def recording_updates() -> Iterator[None]:
    """Let updates of optimizers be seen as wholes."""
    module = sys.modules.get("pullback.optim.update")
    if module is None or hasattr(module.ElementwiseOptimizer.update, "_records"):
        yield
        return
    optimizer = module.ElementwiseOptimizer
    update = optimizer.update
    optimizer.update = _recorded(update)
    try:
        yield
    finally:
        optimizer.update = update


def _recorded(update: Callable[..., None]) -> Callable[..., None]:
    def recorded(self: Any, group: dict[str, Any], entries: Sequence[Any]) -> None:
        recorder = current_recorder()
        if recorder is None or not recorder.is_open() or not _is_plain(self, group, entries):
            update(self, group, entries)
        elif entries:
            _record(recorder, _Update(update, self, group, entries), entries)

    recorded._records = True  # type: ignore[attr-defined]  # so that it is not wrapped twice
    return recorded


def _is_plain(optimizer: Any, group: dict[str, Any], entries: Sequence[Any]) -> bool:
    """Whether the state is there already and all of it is tensors: the first step makes it, eagerly."""
    if group.get("differentiable") or any(isinstance(value, Tensor) for value in group.values()):
        return False
    names = optimizer.state_names(group)
    for _, grad, state in entries:
        if type(grad) is not Tensor or not all(type(value) is Tensor for value in state.values()):
            return False
        if not all(name in state for name in names) or (names and not state):
            return False
    return True


class _Update:
    """One update as a function of arrays: rows of a parameter, its gradient and its state."""

    def __init__(self, update: Any, optimizer: Any, group: dict[str, Any], entries: Sequence[Any]) -> None:
        self.update, self.optimizer, self.group = update, optimizer, group
        self.names = [tuple(state) for _, _, state in entries]
        self.__name__ = f"{type(optimizer).__name__}_update"

    def is_same_update(self, other: Any) -> bool:
        """Whether two updates are of the same group of one optimizer."""
        mine, others = (self.update, self.optimizer, self.group), (other.update, other.optimizer, other.group)
        return all(map(operator.is_, mine, others)) and bool(self.names == other.names)

    def __call__(self, rows: list[list[Any]]) -> tuple[Any, ...]:
        """The new arrays: parameters and state, row by row."""
        copies = [[array if place == 1 else _copy(array) for place, array in enumerate(row)] for row in rows]
        self.write(copies)
        return tuple([array for row in copies for place, array in enumerate(row) if place != 1])

    def write(self, rows: list[list[Any]]) -> None:
        """Update the arrays themselves."""
        entries = []
        for row, names in zip(rows, self.names, strict=True):
            tensors = [new_tensor(array) for array in row]
            entries.append((tensors[0], tensors[1], dict(zip(names, tensors[2:], strict=True))))
        self.update(self.optimizer, self.group, entries)


def _copy(array: Any) -> Any:
    return laid_out(array, array.shape, array.strides, array.dtype)


class Update(NamedTuple):
    """An update that runs after a program, on the arrays themselves."""

    write: Callable[..., Any]
    rows: list[list[tuple[bool, int]]]
    """For each array whether it is an input, and its place among the inputs or outputs."""

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Update the inputs."""
        self.write([[inputs[place] if is_input else outputs[place] for is_input, place in row] for row in self.rows])


def take_out_updates(program: Program, shown: int) -> tuple[Program, list[Update], int]:
    """A program without the updates that nothing in it reads, those updates, and how many outputs follow the `shown` ones.

    As part of a program an update gives new arrays, which are then copied over the old ones: twice the traffic.
    """
    places = {value: place for place, value in enumerate(program.inputs)}
    writes = {value: place for place, value in program.writes}
    outputs = list(program.outputs[:shown])
    read = set(program.outputs) | {v for call in program.calls for v in call.reads}
    updates: list[Update] = []
    done: list[Any] = []
    for call in program.calls:
        if call.kernel != UPDATE or call.in_place is None or any(result in read for result in call.results):
            continue
        rows = call.arguments[0]
        written = [value for row in rows for number, value in enumerate(row) if number != 1]
        if not all(v in places and writes.get(r) == places[v] for v, r in zip(written, call.results, strict=True)):
            continue
        done.append(call)
        chosen: list[list[tuple[bool, int]]] = []
        for row in rows:
            if row[1] not in outputs:
                outputs.append(row[1])
            grad = (False, outputs.index(row[1]))
            chosen.append([(True, places[value]) if number != 1 else grad for number, value in enumerate(row)])
        updates.append(Update(call.in_place, chosen))
    gone = {result for call in done for result in call.results}
    left = Program(
        program.inputs, [call for call in program.calls if call not in done], [*outputs, *program.outputs[shown:]],
        [(place, value) for place, value in program.writes if value not in gone],
    )  # fmt: skip
    return left, updates, len(outputs) - shown


def _record(recorder: Recorder, update: _Update, entries: Sequence[Any]) -> None:
    tensors = [[param, grad, *state.values()] for param, grad, state in entries]
    rows = [[tensor._array for tensor in row] for row in tensors]
    made = recorder.run(UPDATE, update, (rows,), {}, is_ordered=True)
    recorder.program.calls[-1].in_place = update.write
    written = [array for row in rows for place, array in enumerate(row) if place != 1]
    for target, source in zip(written, made, strict=True):
        recorder.write(target, source)
    for param, _, _ in entries:
        bump_version(param)
