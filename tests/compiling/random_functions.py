"""Random functions (branches on values and sizes, views, in-place, random numbers), compiled against eager execution.

`python -m tests.compiling.random_functions --programs 2000 --seed 7`, or `make fuzz-compile`. Each is called several times,
with shapes and numbers that change. Results, gradients, what was written to arguments, the random stream and errors must be
those of eager execution. Most run as lists of kernels; every tenth is compiled by the C compiler, which takes longer.
"""

from __future__ import annotations

import argparse
import linecache
import random
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import pullback
from pullback.compiling import backend, entries

FULL, ROW, COLUMN, SCALAR = "full", "row", "column", "scalar"
"""Shapes of values: (n, 3), (3,), (n,) and ()."""
_UNARY = ("tanh", "sigmoid", "sin", "relu", "abs", "neg", "cos", "square", "atan")
_BINARY = (
    "{} + {}",
    "{} - {}",
    "{} * {}",
    "torch.maximum({}, {})",
    "{} / ({}.abs() + 1)",
    "torch.where({} > 0, {}, 0.5)",
)
_REDUCING = {
    ROW: ("{}.sum(0)", "{}.mean(0)", "{}.amax(0)", "{}[0]", "{}[-1] * 2", "{}[: {}.shape[0] // 2].sum(0)"),
    COLUMN: ("{}.sum(1)", "{}.mean(1)", "{}[:, 1]", "{}.select(1, 2)", "{}.softmax(1)[:, 0]", "{}.logsumexp(1)"),
    SCALAR: ("{}.mean()", "{}.sum() / 7", "{}.amax()", "{}.std()", "{}.sum() / {}.shape[0]", "{}.square().mean()"),
}
_KEEPING = (
    "{}.flip(0)", "{}.t().t()", "{}.reshape(-1).view({}.shape)", "torch.cat([{}, {}])[: {}.shape[0]]", "{}.clone()",
    "{}.contiguous()", "{}.roll(1, 0)", "{}.cumsum(0)", "{}.softmax(0)", "{}.view({}.size(0), 3)", "{}[:, [2, 0, 1]]",
    "{}.t().contiguous().t()", "{}.detach() + {}", "torch.stack([{}, {}]).sum(0)", "F.layer_norm({}, (3,))", "{} / {}.numel()",
)  # fmt: skip
_RANDOM = ("torch.rand_like({})", "F.dropout({}, 0.3)", "{} + torch.randn({}.shape, dtype={}.dtype)")
_WRITES = (
    "{t}.add_({u})", "{t}[0] = {s}", "{t}[:, 1].mul_(2)", "{t} += {u}", "{t}[1:].zero_()", "{t}.mul_({t}.sigmoid())",
    "{t}.clamp_(min=-1)", "{t}[{t} > 1] = 1", "{t}.t()[0].sub_(1)", "{t}.copy_({u})",
)  # fmt: skip
_TESTS = (
    "{}.sum() > 0", "{}.mean().item() < 0.1", "({} > 0).any()", "x.shape[0] > 5", "x.shape[0] % 2 == 0", "a > 0.5",
    "{}.abs().max() > 1 and x.size(0) < 9", "bool({}.min() < -1)",
)  # fmt: skip


class Author:
    """Writes a function of x of shape (n, 3), y of shape (3,), a buffer of shape (3,) and a number."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.names: dict[str, list[str]] = {FULL: ["x"], ROW: ["y"], COLUMN: [], SCALAR: []}
        self.count = 0

    def pick(self, kind: str) -> str:
        return self.random.choice(self.names[kind] or ["0.5"])

    def new(self, kind: str, text: str, depth: int, *, is_kept: bool = True) -> str:
        name = f"v{self.count}"
        self.count += 1
        self.lines.append(f"{'    ' * depth}{name} = {text}")
        if is_kept:
            self.names[kind].append(name)
        return name

    def statement(self, depth: int) -> None:
        choice = self.random.random()
        kind = self.random.choice([kind for kind, names in self.names.items() if names])
        u = self.pick(kind)
        if choice < 0.15:
            self.new(kind, f"torch.{self.random.choice(_UNARY)}({u})", depth)
        elif choice < 0.3:
            other = self.random.choice([self.pick(kind), self.pick(SCALAR), "a", "2", f"{self.pick(FULL)}.shape[0]"])
            form = self.random.choice(_BINARY[:3] if other in ("a", "2", "0.5") or "shape" in other else _BINARY)
            self.new(kind, form.format(u, other), depth)
        elif choice < 0.36:
            self.new(FULL, f"{self.pick(FULL)} * {self.pick(ROW)}", depth)
        elif choice < 0.5:
            wanted = self.random.choice(list(_REDUCING))
            self.new(wanted, self._filled(self.random.choice(_REDUCING[wanted]), self.pick(FULL)), depth)
        elif choice < 0.62:
            self.new(FULL, self._filled(self.random.choice(_KEEPING), self.pick(FULL)), depth)
        elif choice < 0.7:
            self.new(kind, self._filled(self.random.choice(_RANDOM), u), depth)
        elif choice < 0.82:
            target = self.new(FULL, f"{self.pick(FULL)} * 1", depth)
            form = self.random.choice(_WRITES)
            self.lines.append("    " * depth + form.format(t=target, u=self.pick(FULL), s=self.pick(SCALAR)))
        elif choice < 0.85:
            self.lines.append("    " * depth + f"buffer.mul_(0.9).add_({self.pick(ROW)}.detach())")
        elif choice < 0.87:
            self.lines.append("    " * depth + f"torch.manual_seed({self.random.randrange(9)})")
        elif choice < 0.9:
            self.new(FULL, f"{self.pick(FULL)} + buffer", depth)
        elif depth < 3:
            self._block(depth)

    def _filled(self, form: str, name: str) -> str:
        return form.format(*[name] * form.count("{}"))

    def _block(self, depth: int) -> None:
        """A branch, a loop or a `with`; what is bound inside is not read after it, but what stands for it before is."""
        kept = {kind: list(names) for kind, names in self.names.items()}
        result = self.new(FULL, f"{self.pick(FULL)} * 1", depth, is_kept=False)
        choice = self.random.random()
        if choice < 0.6:
            test = self.random.choice(_TESTS)
            heads = [f"if {self._filled(test, self.pick(FULL))}:", "else:"]
        elif choice < 0.8:
            heads = ["for _ in range(2):"]
        else:
            heads = ["with torch.no_grad():"]
        for head in heads:
            self.lines.append("    " * depth + head)
            for _ in range(self.random.randrange(1, 3)):
                self.statement(depth + 1)
            self.lines.append("    " * (depth + 1) + f"{result} = {result} + {self.pick(FULL)}")
            self.names = {kind: list(names) for kind, names in kept.items()}
        self.names[FULL].append(result)

    def write(self, statements: int) -> str:
        for _ in range(statements):
            self.statement(1)
        chosen = [self.pick(kind) for kind in (FULL, ROW, COLUMN, SCALAR) if self.names[kind]]
        chosen = self.random.sample(chosen, self.random.randrange(1, len(chosen) + 1))
        if self.random.random() < 0.2:
            chosen.append(self.random.choice(["x.shape[0]", "a", "x.shape", "2 * a"]))
        return "\n".join(["def program(x, y, buffer, a):", *self.lines, f"    return {', '.join(chosen)},"]) + "\n"


def load(text: str, seed: int) -> Any:
    """The function of a text, in a file that its lines can be read from."""
    file = f"<random function {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"torch": pullback, "F": pullback.nn.functional}
    exec(compile(text, file, "exec"), scope)
    return scope["program"]


def calls_of(seed: int) -> Iterator[tuple[int, float]]:
    """The sizes and numbers of several calls."""
    choose = random.Random(seed)
    sizes = choose.choice(
        [[4] * 5, [4, 4, 8, 4, 8, 5, 6, 7], [3, 9, 5, 6, 8, 4, 7], [2, 6, 1, 4, 3, 5, 0, 8], [9, 3, 12, 6, 3, 7]]
    )
    number = choose.random()
    for size in sizes:
        number = choose.random() if choose.random() < 0.3 else number
        yield size, number


def dtype_of(seed: int) -> Any:
    """Mostly float64, whose rounding does not turn branches round."""
    return pullback.float32 if seed % 5 == 0 else pullback.float64


def outcome(run: Any, size: int, number: float, call: int, seed: int) -> Any:
    """All that a call does, as far as it can be seen."""
    dtype = dtype_of(seed)
    pullback.manual_seed(1000 + call)
    x = pullback.randn(size, 3, dtype=dtype)
    y, buffer = pullback.randn(3, dtype=dtype), pullback.randn(3, dtype=dtype)
    if seed % 4:
        x.requires_grad_()
    y.requires_grad_(seed % 3 > 0)
    try:
        results = run(x * 1 if seed % 7 < 3 else x, y, buffer, number)
        differentiable = [r for r in results if isinstance(r, pullback.Tensor) and r.requires_grad]
        if differentiable:
            sum(r.sum() for r in differentiable).backward()
    except Exception as error:
        return type(error).__name__
    shown = [r.detach() if isinstance(r, pullback.Tensor) else r for r in results]
    grads = [r.requires_grad for r in results if isinstance(r, pullback.Tensor)]
    return shown, [x.grad, y.grad, buffer], grads, pullback.get_rng_state().tolist()


def difference(seed: int, *, with_compiler: bool) -> str:
    """What a random function does otherwise when it is compiled; empty if nothing."""
    text = Author(seed).write(8)
    function = load(text, seed)
    compiled = pullback.compile(function)
    former = {name: vars(backend)[name] for name in ("find_compiler", "PATIENCE", "_tell_of_no_compiler")}
    if with_compiler:
        backend.PATIENCE = 300.0
        entries.MOST_SMALL_CALLS = [0, 0]
    else:
        vars(backend).update(find_compiler=lambda: None, _tell_of_no_compiler=lambda: None)
    tolerance = 2e-3 if dtype_of(seed) is pullback.float32 else 1e-8
    try:
        for call, (size, number) in enumerate(calls_of(seed)):
            expected = outcome(function, size, number, call, seed)
            actual = outcome(compiled, size, number, call, seed)
            try:
                if isinstance(expected, str) or isinstance(actual, str):
                    assert expected == actual, f"{expected} and {actual}"
                    continue
                assert expected[2:] == actual[2:], "requires_grad, or the random stream"
                pullback.testing.assert_close(
                    actual[:2], expected[:2], rtol=tolerance, atol=tolerance, equal_nan=True
                )  # fmt: skip
            except AssertionError as error:
                return f"seed {seed}, call {call} of size {size}, {number}: {error}\n{text}"
    except Exception:
        return f"seed {seed}:\n{traceback.format_exc()}\n{text}"
    finally:
        vars(backend).update(former)
    return ""


def main() -> int:
    """Run as many as were asked for; tells those that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    different = 0
    for seed in range(given.seed, given.seed + given.programs):
        told = difference(seed, with_compiler=seed % 10 == 0)
        if told:
            different += 1
            print(told, flush=True)
    print(f"{given.programs} programs, {different} differ")
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
