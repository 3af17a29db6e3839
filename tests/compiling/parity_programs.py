"""The programs of tests/parity with their training steps compiled, beside eager execution.

`python -m tests.compiling.parity_programs [words of names]`, or `make compiled-parity`. Every layer is trained for some
steps inside of one compiled function, with the optimizer; every optimizer trains a small network; every program of
transforms runs as one compiled function. Needs what tests/parity needs: PyTorch, whose own results these have been compared
with there.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pullback
from pullback.compiling import backend, entries
from pullback.utils._pytree import tree_leaves
from tests.compiling.examples import counting_runs
from tests.parity.test_func import PROGRAMS
from tests.parity.test_nn_modules import TABLE, build, floats
from tests.parity.test_optim import OPTIMIZERS, make

CALLS = 5
Outcome = list[Any]


def _results(run: Callable[[int], Any]) -> Iterator[Outcome]:
    """What can be seen of calls: tensors as lists, what was raised by its type."""
    for call in range(CALLS):
        pullback.manual_seed(call)
        try:
            made = run(call)
        except Exception as error:
            yield [type(error).__name__]
            continue
        yield [leaf.detach().tolist() if isinstance(leaf, pullback.Tensor) else leaf for leaf in tree_leaves(made)]


def layer(text: str, arrays: tuple[Any, ...], compiler: Callable[..., Any]) -> Callable[[int], Any]:
    """Training steps of one layer."""
    module = build(pullback, text)
    inputs = [pullback.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    with contextlib.suppress(Exception):
        module(*inputs)  # a lazy layer gets its parameters
    pullback.manual_seed(7)
    parameters = list(module.parameters())
    optimizer = pullback.optim.SGD(parameters, lr=1e-2, momentum=0.9) if parameters else None

    def step(*inputs: Any) -> Any:
        if optimizer is not None:
            optimizer.zero_grad()
        outputs = list(floats(module(*inputs)))
        total = sum((o * pullback.linspace(0.5, 1.5, o.numel()).reshape(o.shape)).sum() for o in outputs)
        if total.requires_grad:
            total.backward()
        if optimizer is not None:
            optimizer.step()
        return [output.detach() for output in outputs]

    compiled = compiler(step)

    def run(call: int) -> Any:
        fresh = [
            (x.detach() * (1 - call / 16) if x.requires_grad else x).requires_grad_(x.requires_grad) for x in inputs
        ]
        made = compiled(*fresh)
        return made, [x.grad for x in fresh], dict(module.state_dict())

    return run


def optimizer_step(text: str, compiler: Callable[..., Any]) -> Callable[[int], Any]:
    """Training steps by one optimizer."""
    pullback.manual_seed(3)
    nn = pullback.nn
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = make(pullback, text, list(model.parameters()))

    @compiler
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return lambda call: (step(pullback.randn(6, 4), pullback.randn(6, 2)), dict(model.state_dict()))


def transform(program: Callable[[Any], Any], compiler: Callable[..., Any]) -> Callable[[int], Any]:
    """A program of transforms."""
    compiled = compiler(lambda: program(pullback))
    return lambda call: compiled()


def programs() -> dict[str, Callable[[Callable[..., Any]], Callable[[int], Any]]]:
    """All programs by name: each takes what compiles, and gives what runs one call."""
    found: dict[str, Any] = {}
    for text, arrays in TABLE:
        found[f"layer {text}"] = lambda c, text=text, arrays=arrays: layer(text, arrays, c)
    for text in OPTIMIZERS:
        found[f"optimizer {text}"] = lambda c, text=text: optimizer_step(text, c)
    for name, program in PROGRAMS.items():
        found[f"transform {name}"] = lambda c, program=program: transform(program, c)
    return found


def _agree(expected: Any, actual: Any) -> bool:
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(_agree, expected, actual))
    if isinstance(expected, float) and isinstance(actual, float):
        return abs(expected - actual) <= 1e-3 * max(abs(expected), 0.05) or str(expected) == str(actual)
    if isinstance(expected, complex) and isinstance(actual, complex):
        return _agree([expected.real, expected.imag], [actual.real, actual.imag])
    return bool(expected == actual)


def difference(make_run: Callable[[Callable[..., Any]], Callable[[int], Any]]) -> tuple[str, int]:
    """In which call eager and compiled differ, and how often a program ran."""
    pullback.compiler.reset()
    with counting_runs() as count:
        expected = list(_results(make_run(lambda function: function)))
        actual = list(_results(make_run(pullback.compile)))
    for call, (one, other) in enumerate(zip(expected, actual, strict=True)):
        if not _agree(one, other):
            return f"call {call} differs: {one} / {other}"[:600], count["runs"]
    return "", count["runs"]


def main() -> int:
    """Compare all programs, and tell those that differ and those that stay eager."""
    backend.PATIENCE = 300.0  # what is compared is compiled
    entries.MOST_SMALL_CALLS = [0, 0]
    warnings.simplefilter("ignore")
    words = sys.argv[1:]
    chosen = {name: made for name, made in programs().items() if not words or any(word in name for word in words)}
    wrong, eager = [], []
    for name, made in chosen.items():
        told, runs = difference(made)
        if told:
            wrong.append(name)
            print(f"{name}: {told}", flush=True)
        if not runs:
            eager.append(name)
    print(f"{len(chosen)} programs, {len(wrong)} differ, {len(eager)} run eagerly:", *eager, sep="\n  ")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
