"""Measures what the samples check of each operation's derivatives, and writes it for `pullback.coverage()`.

Run as `python -m tests.derivatives.measure`, and again when rules or samples change; with --check only say what is stale.
An operation counts as checked at a dtype if some sample ran its node there and the comparison held: with finite differences
in float64 and complex128, with the float64 gradient in fewer bits.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pullback
from pullback.inspection.coverage import measured
from pullback.inspection.derivative_use import used_derivatives
from pullback.inspection.rule_digests import rule_digest
from tests.derivatives import checks
from tests.derivatives.quantiles import check_standard_gamma
from tests.derivatives.sampling import Sample
from tests.derivatives.test_derivatives import SAMPLES

PATH = Path(pullback.__file__).parent / "inspection" / "checked_derivatives.json"
_NARROW = {"float32": 1e-3, "bfloat16": 0.1, "float16": 0.02}
_OF_A_CHECK = {
    "float64": ("float64", "complex128"),
    "complex128": ("float64", "complex128"),
    "float32": ("float32", "complex64"),
}
"""The dtypes of gradients whose values a check at some dtype compares: those of its real and its complex numbers."""


def narrow_check(sample: Sample, dtype: str, tolerance: float) -> None:
    """Compare gradients in few bits with those in float64 on the same (rounded) inputs."""
    tensors = [pullback.from_numpy(np.asarray(a)).to(getattr(pullback, dtype)) for a in sample.arrays()]
    narrow = [t.clone().requires_grad_() for t in tensors]
    wide = [t.double().requires_grad_() for t in tensors]
    expected = _gradients(sample.call, wide)
    for actual, exact in zip(_gradients(sample.call, narrow), expected, strict=True):
        assert actual.dtype is getattr(pullback, dtype)
        scale = float(exact.abs().max()) if exact.numel() else 0.0
        np.testing.assert_allclose(
            actual.double().numpy(), exact.numpy(), rtol=tolerance, atol=tolerance * max(scale, 1e-3), equal_nan=True
        )


def _gradients(call: Callable[..., Any], tensors: Sequence[Any]) -> list[Any]:
    outputs = checks.outputs_of(call, tensors)
    weights = [c.to(output.dtype) for c, output in zip(checks.cotangents(outputs), outputs, strict=True)]
    return list(pullback.autograd.grad(outputs, tensors, weights, materialize_grads=True))


def measurements(sample: Sample) -> Iterator[tuple[str, str, Callable[[], None]]]:
    """What to check of a sample: which derivative, at which dtype, and how."""
    kinds = [(False, "float64")] + [(True, "complex128")] * sample.complex
    for is_complex, dtype in kinds:
        arrays = sample.arrays(complex=is_complex)
        yield "gradient", dtype, lambda a=arrays: checks.check_backward(sample.call, a, sample.atol)  # type: ignore[misc]
        if sample.second_order:
            yield "second_order", dtype, lambda a=arrays: checks.check_second_order(sample.call, a, sample.atol)  # type: ignore[misc]
        if sample.forward:
            yield "forward_mode", dtype, lambda a=arrays: checks.check_forward(sample.call, a, sample.atol)  # type: ignore[misc]
    for dtype, tolerance in _NARROW.items():
        yield "gradient", dtype, lambda d=dtype, t=tolerance: narrow_check(sample, d, t)  # type: ignore[misc]


def random_measurements() -> Iterator[tuple[str, str, Callable[[], None]]]:
    """The same of samples that are drawn, which finite differences do not show."""
    for dtype in ("float64", "float32"):
        yield "gradient", dtype, lambda d=dtype: check_standard_gamma(d)  # type: ignore[misc]


def measure() -> dict[str, Any]:
    """Run everything; by operation, what was checked."""
    found: dict[str, Any] = {}
    for kind, dtype, run in [*random_measurements(), *itertools.chain.from_iterable(map(measurements, SAMPLES))]:
        used = used_derivatives()
        try:
            with used:
                run()
        except Exception:
            continue  # not checked there
        for name, use in used.operations.items():
            if use.passes:
                _add(found, name, kind, dtype, use)
    for name, entry in found.items():
        entry["rule"] = rule_digest(name)
    return found


def _add(found: dict[str, Any], name: str, kind: str, dtype: str, use: Any) -> None:
    entry = found.setdefault(name, {"gradient": [], "second_order": [], "forward_mode": [], "branches": {}})
    compared = set(_OF_A_CHECK.get(dtype, (dtype,)))
    dtypes = {known for at in use.inputs.values() for known in at}
    entry[kind] = sorted({*entry[kind], *(dtypes & compared)})
    for branch, at in use.branches.items():
        if at & compared:
            entry["branches"][branch] = sorted({*entry["branches"].get(branch, []), *(at & compared)})


def main(arguments: list[str]) -> int:
    """Write the measurements, or say which rules have changed since."""
    if "--check" in arguments:
        stale = [name for name, entry in measured().items() if entry["rule"] != rule_digest(name)]
        for name in stale:
            print(f"the rule of {name} changed since it was measured: run `python -m tests.derivatives.measure`")
        return bool(stale)
    text = json.dumps(measure(), indent=None, sort_keys=True, separators=(", ", ": "))
    PATH.write_text(text.replace('}, "', '},\n"') + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
