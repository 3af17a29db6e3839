"""Runs every derivative sample on a device beside the CPU: values, gradients, and what was read on the host."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

import pullback

SAMPLES = Path(__file__).parents[1] / "derivatives"
ELSEWHERE = ("inner to_device",)
"""Samples whose result is on the CPU, wherever their input is."""


def load_samples(device: str | None) -> list[Any]:
    """All samples; what their modules make lies on the device."""
    found: list[Any] = []
    for path in sorted(SAMPLES.glob("samples_*.py")):
        name = f"tests.derivatives.on_{device}.{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        with pullback.device(device or "cpu"):
            spec.loader.exec_module(module)
        found += [sample for sample in module.SAMPLES if sample.name not in ELSEWHERE]
    return found


def flat(value: Any) -> list[Any]:
    """The tensors of a result."""
    if isinstance(value, pullback.Tensor):
        return [value]
    return [t for item in value for t in flat(item)] if isinstance(value, (tuple, list)) else []


def run(sample: Any, arrays: list[Any], device: str) -> tuple[list[Any], list[Any]]:
    """Results and gradients, on the CPU."""
    pullback.manual_seed(0)
    with pullback.device(device):
        inputs = [pullback.tensor(a, device=device) for a in arrays]
        for x in inputs:
            x.requires_grad_(x.is_floating_point() or x.is_complex())
        results = flat(sample.call(*inputs))
        for result in results:
            assert result.device.type == device, f"a result is on {result.device}"
        total = sum((r.abs() * (1 + 0.1 * r.detach().abs())).sum() for r in results if r.requires_grad)
        if isinstance(total, pullback.Tensor):
            total.backward()
        for x in inputs:
            assert x.grad is None or x.grad.device.type == device, "a gradient is on another device"
    return (
        [r.detach().cpu().resolve_conj().numpy() for r in results],
        [None if x.grad is None else x.grad.to("cpu").numpy() for x in inputs],
    )


def difference(sample: Any, other: Any, device: str, complex: bool, dtype: Any = None) -> str | None:
    """What is wrong with a sample on a device; None if nothing is."""
    arrays = sample.arrays(complex=complex)
    if dtype is not None:
        arrays = [a.astype(dtype) if a.dtype.kind == "f" else a for a in map(np.asarray, arrays)]
    tolerance = 1e-9 if dtype is None else 2e-3
    expected = run(sample, arrays, "cpu")
    try:
        actual = run(other, arrays, device)
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "pullback" in f.filename]
        places = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[::-1][:4])
        return f"{type(error).__name__}: {str(error)[:150]} [{places}]"
    for kind, a, b in (("value", expected[0], actual[0]), ("gradient", expected[1], actual[1])):
        if len(a) != len(b):
            return f"{len(b)} {kind}s, {len(a)} on the CPU"
        for number, (first, second) in enumerate(zip(a, b, strict=True)):
            if (first is None) != (second is None):
                return f"{kind} {number}: {type(second).__name__}, on the CPU {type(first).__name__}"
            if first is None:
                continue
            if first.shape != second.shape or first.dtype != second.dtype:
                return f"{kind} {number}: {second.shape} {second.dtype}, on the CPU {first.shape} {first.dtype}"
            if not np.allclose(first, second, rtol=tolerance, atol=tolerance, equal_nan=True):
                return f"{kind} {number} is off by {np.nanmax(np.abs(first - second))}"
    return None


def compiled_difference(sample: Any, device: str) -> tuple[str | None, str]:
    """What differs between a compiled call and an eager one, on values that change, and how the program ran in the end."""
    compiled = pullback.compile(sample.call)
    for turn in range(6):
        arrays = [a * (1 - 0.01 * turn) if a.dtype.kind in "fc" else a for a in sample.arrays()]
        try:
            expected = _results_and_gradients(sample.call, arrays, device)
        except Exception:  # it makes tensors on the CPU, say
            return None, "eager raises"
        actual = _results_and_gradients(compiled, arrays, device)
        if len(expected) != len(actual):
            return f"turn {turn}: {len(actual)} tensors instead of {len(expected)}", ""
        for first, second in zip(expected, actual, strict=True):
            if (first is None) is not (second is None):
                return f"turn {turn}: one is None", ""
            if first is not None and not np.allclose(second, first, rtol=1e-5, atol=1e-8, equal_nan=True):
                return f"turn {turn}: {second} instead of {first}", ""
    entries = [entry for kind in compiled.kinds.values() for entry in kind.entries]
    return None, entries[0].run_forward.describe() if entries else "eager"


def _results_and_gradients(call: Any, arrays: list[Any], device: str) -> list[Any]:
    pullback.manual_seed(0)
    inputs = [pullback.tensor(a, device=device) for a in arrays]
    for x in inputs:
        x.requires_grad_(x.is_floating_point() or x.is_complex())
    results = flat(call(*inputs))
    total = sum((r.abs() * (1 + 0.1 * r.detach().abs())).sum() for r in results if r.requires_grad)
    if isinstance(total, pullback.Tensor):
        total.backward()
    found = [*[r.detach() for r in results], *[x.grad for x in inputs]]
    return [None if t is None else t.cpu().resolve_conj().numpy() for t in found]


def main(device: str, output: str | None = None) -> None:
    """Print what fails."""
    if device == "fake":
        from tests.devices import fake_library  # noqa: F401
    pairs = list(zip(load_samples(None), load_samples(device), strict=True))
    failed = 0
    lines = []
    for sample, other in pairs:
        for complex in (False, True) if sample.complex else (False,):
            try:
                wrong = difference(sample, other, device, complex)
            except Exception as error:
                wrong = f"on the CPU: {error}"
            if wrong is not None:
                failed += 1
                lines.append(f"{sample.name}{'-complex' if complex else ''}: {wrong}")
                print(lines[-1], flush=True)
    lines.append(f"{failed} failed of {len(pairs)} samples")
    print(lines[-1])
    if output:
        Path(output).write_text("\n".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
