"""Each operation's samples inside of a compiled function, beside eager execution: values and gradients.

`python -m tests.compiling.operations [words]` prints what differs, and why operations stay eager. With --bits first, bits are
compared, under `use_deterministic_algorithms(True)`.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np

import pullback
from pullback.compiling.compiled_function import CompiledFunction
from tests.derivatives.checks import cotangents, leaves, outputs_of
from tests.derivatives.sampling import Sample


def run(call: Any, arrays: Any) -> list[Any]:
    """The values of a call and the gradients of its inputs, which come in row-major order."""
    pullback.manual_seed(0)
    tensors = leaves(arrays)
    outputs = outputs_of(call, tensors)
    grads = pullback.autograd.grad(outputs, tensors, cotangents(outputs), materialize_grads=True)
    return [t.detach().numpy() for t in outputs] + [g.detach().contiguous().numpy() for g in grads]


def others(arrays: Any, step: int) -> list[Any]:
    """Inputs of the same form with other values nearby."""
    return [array * (1 + 1e-3 * step) for array in arrays]


def compare(sample: Sample, complex: bool = False, calls: int = 4, exactly: bool = False) -> CompiledFunction:
    """Call a sample compiled and eagerly, with other values each time; raise where they differ.

    `exactly` asks for the same bits, as `use_deterministic_algorithms(True)` promises them.
    """
    compiled = CompiledFunction(sample.call)
    arrays = sample.arrays(complex=complex)
    for step in range(calls):
        given = others(arrays, step)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, actual = run(sample.call, given), run(compiled, given)
        for one, other in zip(expected, actual, strict=True):
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            assert one.strides == other.strides or one.size < 2, (one.strides, other.strides)
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)
            assert not exactly or one.tobytes() == other.tobytes()
    return compiled


def reasons(compiled: CompiledFunction) -> list[str]:
    """Why a function stays eager."""
    return [stop.describe() for kind in compiled.kinds.values() for stop in kind.stops]


def main(words: list[str]) -> int:
    """Compare all samples."""
    from tests.derivatives.test_derivatives import SAMPLES

    exactly = words[:1] == ["--bits"]
    words = words[exactly:]
    pullback.use_deterministic_algorithms(exactly)
    wanted = [s for s in SAMPLES if not words or any(word in s.name for word in words)]
    eager: Counter[str] = Counter()
    wrong = 0
    for sample in wanted:
        for complex in (False, True) if sample.complex else (False,):
            try:
                compiled = compare(sample, complex, exactly=exactly)
            except Exception as error:
                wrong += 1
                text = str(error).strip().splitlines()
                print(f"WRONG {sample.name}{' complex' * complex}: {type(error).__name__} {' '.join(text[:6])[:300]}")
                continue
            if not compiled.runs:
                why = reasons(compiled)
                print(f"eager {sample.name}{' complex' * complex}: {why[0] if why else '?'}")
                eager[(why[0] if why else "?").partition(", at")[0]] += 1
    print(*[f"{count:5d} {reason}" for reason, count in eager.most_common()], sep="\n")
    print(f"{len(wanted)} samples, {wrong} wrong, {sum(eager.values())} eager")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
