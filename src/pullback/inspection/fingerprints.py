"""Fingerprints of gradients, and the first operation at which two runs of a program differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

from pullback.autograd.differentiation import grad
from pullback.autograd.profiler import shown_name
from pullback.backend.array_module import ndarray
from pullback.backend.unpromised_bits import UnpromisedBits
from pullback.graph.source_lines import SourceLine, calling_line
from pullback.inspection.nodes import line_of, named_leaves, tensors_in
from pullback.inspection.recomputation import draws_of
from pullback.modes.guards import guarded
from pullback.modes.node_observer import RunObserver
from pullback.modes.user_warnings import warn_user
from pullback.random import default_generator
from pullback.report import Report, place_text
from pullback.tensor.tensor import Tensor

__all__ = ["GradFingerprint", "RunDifference", "first_difference", "grad_fingerprint", "recorded_run"]

_FORMAT = "pullback run 1"


class GradFingerprint(str):
    """The text of a fingerprint. `unpromised` lists what may give other bits elsewhere: see `grad_fingerprint`."""

    unpromised: tuple[str, ...] = ()


def grad_fingerprint(parameters: Any) -> GradFingerprint:
    """A short text that is the same exactly if all gradients are the same to the bit.

    `parameters` is a module, a tensor, a mapping or an iterable of tensors or of pairs with names. Names, dtypes, shapes
    and which gradients are None count as well. The bits do not depend on the number of threads, nor on hooks, checkpoints
    and compile, but for what is told: `unpromised` of the result lists what this process has run so far whose bits do, and
    a warning says it (compiled functions, large systems, factorizations and complex products). Under
    `use_deterministic_algorithms(True)` there is nothing to tell.

    >>> import pullback
    >>> x = pullback.ones(3, requires_grad=True)
    >>> (x * 2).sum().backward()
    >>> first = grad_fingerprint([x])
    >>> x.grad = None
    >>> (x + x).sum().backward()
    >>> grad_fingerprint([x]) == first
    True
    """
    if not hasattr(parameters, "__iter__") and not hasattr(parameters, "named_parameters"):
        raise TypeError(f"grad_fingerprint expects a module, a tensor or several, got {type(parameters).__name__}")
    digest = hashlib.sha256()
    for name, parameter in named_leaves(parameters):
        digest.update(f"{name};".encode())
        grad = parameter.grad
        if grad is None:
            digest.update(b"None")
        else:
            dense = grad.to_dense() if grad.is_sparse else grad
            _add_array(digest, dense.detach()._array)
    result = GradFingerprint(digest.hexdigest()[:32])
    result.unpromised = _unpromised()
    if result.unpromised:
        warn_user(
            f"this fingerprint may be another elsewhere, though nothing is wrong: {'; '.join(result.unpromised)}. Call "
            "use_deterministic_algorithms(True) before anything is computed to have the same bits everywhere."
        )
    return result


def _unpromised() -> tuple[str, ...]:
    """What this process has run whose bits depend on threads, on compile or on the order of arrival."""
    return tuple(
        [
            f"{what} depends on {depends_on}" + ("" if line is None else f" ({place_text(line.place)})")
            for (depends_on, what), line in list(UnpromisedBits.found.items())
        ]
    )


def _add_array(digest: Any, array: Any) -> None:
    digest.update(f"{array.dtype}{array.shape}".encode())
    digest.update(array.tobytes())


def _digest_of(values: Iterable[Any]) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for value in values:
        array = value._array if isinstance(value, Tensor) else value
        if isinstance(array, ndarray):
            _add_array(digest, array)
    return digest.hexdigest()


class RunDifference(AssertionError):
    """Raised by a run that is compared with another, at the first operation that differs; `row` says what."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.row = row
        super().__init__(_sentence(row))


class recorded_run(RunObserver):
    """Record a digest of each operation's arguments and results, and of each node's gradients, in order.

    With `against` (another run, or the path of a saved one) raise RunDifference at the first operation that differs.

    >>> import pullback
    >>> def program(factor):
    ...     x = pullback.ones(3, requires_grad=True)
    ...     (x * 2 * pullback.tensor(factor)).sum().backward()
    >>> with recorded_run() as first:
    ...     program(3.0)
    >>> with recorded_run() as second:
    ...     program(3.5)
    >>> difference = first_difference(first, second).rows[0]
    >>> difference["index"], difference["operation"], difference["cause"]
    (1, 'mul', 'inputs')
    """

    def __init__(self, against: recorded_run | str | None = None) -> None:
        self.entries: list[dict[str, Any]] = []
        self._against = recorded_run.load(against) if isinstance(against, str) else against

    def _operation(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        draws = draws_of(function)
        if draws == "parts" or function is grad:
            return NotImplemented  # its parts are operations themselves
        random = _digest_of([default_generator.get_state()]) if draws else None
        inputs = _digest_of(tensors_in([args, kwargs]))
        numbers = [
            repr(value) for value in (*args, *kwargs.values()) if isinstance(value, bool | int | float | complex)
        ]
        result = function(*args, **kwargs)
        name = shown_name(getattr(function, "__name__", "operation"))
        self._add("forward", name, calling_line(), " ".join([inputs, *numbers]), list(tensors_in(result)), random)
        return result

    def observe(self, node: Any, grads: Any, edges: Any, run: Callable[[], Any]) -> Any:
        """Record what a node of backward makes of the gradients that arrive."""
        inputs = _digest_of(grad for grad in grads if grad is not None)
        result = run()
        self._add("backward", node.name(), line_of(node), inputs, [grad for grad in result if grad is not None])
        return result

    @guarded
    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        if self._against is not None and not any(exception):
            row = _difference(len(self.entries), self._against.entries, self.entries)
            if row is not None:
                raise RunDifference(row)

    def _add(
        self, phase: str, operation: str, source: Any, inputs: str, results: list[Any], random: str | None = None
    ) -> None:
        place = source.place if isinstance(source, SourceLine) else source
        shapes = [list(value.shape) for value in results if hasattr(value, "shape")]
        self.entries.append(
            {"phase": phase, "operation": operation, "line": place_text(place), "shapes": shapes, "inputs": inputs,
             "random": random, "results": _digest_of(results)}
        )  # fmt: skip
        if self._against is not None:
            row = _difference(len(self.entries) - 1, self._against.entries, self.entries)
            if row is not None:
                raise RunDifference(row)

    # Files.

    def save(self, path: str) -> None:
        """Write the run as JSON."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"format": _FORMAT, "entries": self.entries}, file)

    @staticmethod
    def load(path: str) -> recorded_run:
        """Read a run that was saved."""
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        if not isinstance(data, dict) or data.get("format") != _FORMAT:
            raise ValueError(f"{path} does not hold a recorded run: expected the format {_FORMAT!r}")
        run = recorded_run()
        run.entries = data["entries"]
        return run


def first_difference(first: recorded_run, second: recorded_run) -> Report | None:
    """The first operation at which two runs differ, as a report of one row; None where all bits are the same.

    `cause` says whether another operation ran ("operation"), whether one of the runs had ended ("end"), whether its
    arguments were others already, though all operations before gave the same ("inputs": data, parameters or random
    numbers), whether it drew random numbers from another state of the generator ("random"), or whether the same arguments
    gave other results ("results").

    >>> import pullback
    >>> with recorded_run() as run:
    ...     y = pullback.ones(3).sin()
    >>> first_difference(run, run) is None
    True
    """
    for index in range(max(len(first.entries), len(second.entries))):
        row = _difference(index, first.entries, second.entries)
        if row is not None:
            columns = ("index", "phase", "operation", "line", "cause", "shapes", "other_operation", "other_line")
            return Report("The first difference of two runs", columns, [row])
    return None


def _difference(index: int, first: list[dict[str, Any]], second: list[dict[str, Any]]) -> dict[str, Any] | None:
    mine = second[index] if index < len(second) else None
    other = first[index] if index < len(first) else None
    cause = _cause(mine, other)
    if cause is None:
        return None
    known = mine or other or {}
    return {
        "index": index, "phase": known["phase"], "operation": known["operation"], "line": known["line"], "cause": cause,
        "shapes": known["shapes"], "other_operation": None if other is None else other["operation"],
        "other_line": None if other is None else other["line"],
    }  # fmt: skip


def _cause(mine: dict[str, Any] | None, other: dict[str, Any] | None) -> str | None:
    if mine is None or other is None:
        return None if mine is other else "end"
    if (mine["phase"], mine["operation"]) != (other["phase"], other["operation"]):
        return "operation"
    if mine["inputs"] != other["inputs"]:
        return "inputs"
    if mine["results"] == other["results"]:
        return None
    return "random" if mine.get("random") != other.get("random") else "results"


_CAUSES = {
    "operation": "another operation ran there: {other_operation} at {other_line}",
    "end": "one of the runs ended before it",
    "random": "the random generator was in another state: call manual_seed() before either run, and look for what draws "
    "random numbers before this",
    "inputs": "its arguments are others, though every operation before gave the same: look at data, parameters and random "
    "numbers from outside",
    "results": "the same arguments gave another result: look for threads, uninitialized memory or another machine",
}


def _sentence(row: dict[str, Any]) -> str:
    return (
        f"the runs differ first at operation {row['index']}, {row['operation']} ({row['phase']}) at {row['line']}: "
        + _CAUSES[row["cause"]].format(**row)
    )
