"""summary: what a model consists of, what it computes and what it holds, layer by layer."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pullback
from pullback.autograd.profiler import profile
from pullback.backend.storage_pieces import memory_of
from pullback.inspection.nodes import held_arrays, held_behind, nodes_behind, saved_values, tensors_in
from pullback.random import get_rng_state, set_rng_state
from pullback.report import Report

__all__ = ["summary"]

_COLUMNS = (
    "layer", "kind", "input", "output", "parameters", "operations", "forward_flops", "backward_flops", "forward_bytes",
    "saved_bytes", "backward_bytes",
)  # fmt: skip


def summary(model: Any, input: Any, *, backward: bool = True) -> Report:
    """Run a module once and tell its layers, shapes, parameters, operations and memory.

    `input` is a tensor, a tuple of arguments, a dict of keyword arguments, or a tuple of sizes, for which random numbers
    of the first parameter's dtype are drawn. Of each layer: how many operations it calls, the multiplications and additions
    of its products, convolutions, sums and products of elements (forward, and with `backward` of its gradients), the bytes
    that its operations allocate, those that are kept for backward (shared memory once), and those of gradients. A
    container's row counts what is not in a layer inside of it. The model is left as it was: gradients, buffers and random
    numbers too.

    >>> import pullback
    >>> model = pullback.nn.Sequential(pullback.nn.Linear(8, 4), pullback.nn.ReLU())
    >>> report = summary(model, (2, 8))
    >>> [(row["layer"], row["output"], row["parameters"], row["forward_flops"]) for row in report.rows]
    [('', (2, 4), 0, 0), ('0', (2, 4), 36, 128), ('1', (2, 4), 0, 0)]
    >>> report.facts["parameters"], report.facts["backward_flops"]
    (36, 128)
    """
    if not hasattr(model, "named_modules"):
        raise TypeError(f"summary expects a module, got {type(model).__name__}")
    with _unchanged(model):
        return _summarized(model, *_arguments(model, input), backward)


def _summarized(model: Any, args: Any, kwargs: Any, backward: bool) -> Report:
    calls = _Calls(model)
    with calls, pullback.enable_grad(), profile(profile_memory=True, with_flops=True) as prof:
        outputs = [t for t in tensors_in(model(*args, **kwargs)) if t.requires_grad]
        forward_end = len(prof._memory.events) if prof._memory is not None else 0
        forward_ids = {event.id for event in prof._events}
        saved = _saved_bytes(outputs, prof._forward)
        if backward and outputs:
            wanted = [p for p in model.parameters() if p.requires_grad]
            if wanted:
                grads = [pullback.ones_like(output) for output in outputs]
                pullback.autograd.grad(outputs, wanted, grads, allow_unused=True)
    rows = calls.rows()
    prefix = type(model).__name__
    for event in prof.function_events:
        if event.id not in forward_ids and not event.is_backward:
            continue  # what prepares the backward pass
        row = rows.get(event.module.removeprefix(prefix).removeprefix("."))
        if row is None:
            row = rows[""]
        phase = "backward" if event.is_backward else "forward"
        row["operations"] += phase == "forward"
        row[f"{phase}_flops"] += event.flops
        row[f"{phase}_bytes"] += max(0, event.self_cpu_memory_usage)
    for module, size in saved.items():
        rows.get(module.removeprefix(prefix).removeprefix("."), rows[""])["saved_bytes"] += size
    return Report(
        f"{prefix}, layer by layer", _COLUMNS, rows.values(), _facts(model, rows, prof, forward_end, args, kwargs)
    )


def _facts(model: Any, rows: Any, prof: Any, forward_end: int, args: Any, kwargs: Any) -> dict[str, Any]:
    timeline = prof.memory_timeline()
    parameters = list(model.parameters())

    def total(column: str) -> int:
        return sum(row[column] for row in rows.values())

    return {
        "parameters": sum(p.numel() for p in parameters),
        "trainable_parameters": sum(p.numel() for p in parameters if p.requires_grad),
        "parameter_bytes": sum(p.numel() * p.element_size() for p in parameters),
        "buffer_bytes": sum(b.numel() * b.element_size() for b in model.buffers()),
        "input_bytes": sum(t.numel() * t.element_size() for t in tensors_in([args, kwargs])),
        "operations": total("operations"), "forward_flops": total("forward_flops"),
        "backward_flops": total("backward_flops"), "saved_bytes": total("saved_bytes"),
        "forward_peak_bytes": max([event.total_bytes for event in timeline[:forward_end]], default=0),
        "peak_bytes": max([event.total_bytes for event in timeline], default=0),
    }  # fmt: skip


def _arguments(model: Any, input: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(input, dict):
        return (), input
    if isinstance(input, tuple | list) and input and all(isinstance(size, int) for size in input):
        floats = [p.dtype for p in model.parameters() if p.is_floating_point() or p.is_complex()]
        return (pullback.randn(*input, dtype=floats[0] if floats else None),), {}
    return (tuple(input), {}) if isinstance(input, tuple | list) else ((input,), {})


@contextmanager
def _unchanged(model: Any) -> Iterator[None]:
    """Put back buffers and random numbers at the end."""
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
        with pullback.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


class _Calls:
    """The modules that ran, in order, with the shapes that went in and out."""

    def __init__(self, model: Any) -> None:
        self._names = {id(module): name for name, module in model.named_modules()}
        self._model = model
        self._shapes: dict[str, tuple[Any, Any]] = {}
        self._order: dict[str, Any] = {}

    def __enter__(self) -> _Calls:
        from pullback.nn.modules.module_hooks import watch_modules  # lazy: modules are beside this layer

        watch_modules(self._enter, self._leave)
        return self

    def __exit__(self, *exception: object) -> None:
        from pullback.nn.modules.module_hooks import unwatch_modules  # lazy: modules are beside this layer

        unwatch_modules(self._enter, self._leave)

    def _enter(self, module: Any, args: Any) -> None:
        if id(module) in self._names:
            self._order.setdefault(self._names[id(module)], module)

    def _leave(self, module: Any, args: Any, output: Any) -> None:
        if id(module) in self._names:
            self._shapes.setdefault(self._names[id(module)], (_shape(args), _shape(output)))

    def rows(self) -> dict[str, dict[str, Any]]:
        """A row per module; a parameter that several share counts in the first."""
        seen: set[int] = set()
        rows = {}
        for name, module in {"": self._model, **self._order}.items():
            own = [p for p in module.parameters(recurse=False) if id(p) not in seen]
            seen.update(id(p) for p in own)
            given, made = self._shapes.get(name, (None, None))
            counts = dict.fromkeys(_COLUMNS[5:], 0)
            parameters = sum(p.numel() for p in own)
            rows[name] = {"layer": name, "kind": type(module).__name__, "input": given, "output": made,
                          "parameters": parameters, **counts}  # fmt: skip
        return rows


def _shape(value: Any) -> Any:
    shapes = [tuple(tensor.shape) for tensor in tensors_in(value)]
    return None if not shapes else shapes[0] if len(shapes) == 1 else shapes


def _saved_bytes(outputs: Any, events: dict[int, Any]) -> dict[str, int]:
    """By module, the bytes that nodes keep for backward, each storage once; what leaves own is left out."""
    numbers = sorted(events)
    seen: set[int] = set()
    keep: list[Any] = []  # so that no array is made anew at the address of another
    result: dict[str, int] = {}
    nodes = nodes_behind(outputs)
    for node in nodes:
        if hasattr(node, "variable"):
            seen.add(id(memory_of(node.variable._array)))
    for node in nodes:
        # An operation's last node has its event; those before it have smaller numbers.
        place = bisect.bisect_left(numbers, node.sequence_nr)
        module = events[numbers[place]].module if place < len(numbers) else ""
        for _, value in saved_values(node):
            for array in (*held_arrays(value), *held_behind(value)):
                owner = memory_of(array)
                keep.append(owner)
                if id(owner) not in seen:
                    seen.add(id(owner))
                    result[module] = result.get(module, 0) + int(owner.nbytes)
    return result
