"""Faults planted on purpose, one for each kind of check: a checker that cannot fail is worthless."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pullback

from .comparison import tensors_in
from .examination import examine
from .worker import all_entries

Wrapper = Callable[[Any], Any]


@dataclass(frozen=True)
class Fault:
    """A fault, the operation it is put into, and the kind of check that must notice."""

    name: str
    operation: str
    kind: str
    plant: Wrapper


def _on_results(change: Callable[[Any], Any]) -> Wrapper:
    """Make a fault that changes every result."""

    def plant(function: Any) -> Any:
        def faulty(*arguments: Any, **options: Any) -> Any:
            result = function(*arguments, **options)
            if isinstance(result, pullback.Tensor):
                return change(result)
            return (
                type(result)(*map(change, result)) if hasattr(result, "_fields") else type(result)(map(change, result))
            )

        return faulty

    return plant


def _slightly_larger(result: Any) -> Any:
    return result * (1 + 1e-5)


def _not_a_number(result: Any) -> Any:
    with pullback.no_grad():
        result = result.clone()
        result.view(-1)[:1] = float("nan")
    return result


def _other_dtype(result: Any) -> Any:
    return result.to(pullback.float32 if result.dtype == pullback.float64 else pullback.float64)


def _one_dimension_more(result: Any) -> Any:
    return result.unsqueeze(0)


def _copied(result: Any) -> Any:
    return result.clone()


def _same_value_other_slope(result: Any) -> Any:
    return result + (result - result.detach()) * 1e-4 if result.requires_grad else result


def _without_history(result: Any) -> Any:
    return result.detach() * 1


def _other_tangent(result: Any) -> Any:
    primal, tangent = pullback.autograd.forward_ad.unpack_dual(result)
    if tangent is None:
        return result
    return pullback.autograd.forward_ad.make_dual(primal, tangent * 1.001)


def _other_curvature(function: Any) -> Any:
    """The value and the gradient stay; the second derivative does not."""

    def faulty(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        if not result.requires_grad:
            return result
        first = next(tensor for tensor in tensors_in(arguments) if tensor.requires_grad)
        return result + 1e-3 * (first - first.detach()).square().sum()

    return faulty


def _never_refusing(function: Any) -> Any:
    def faulty(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except Exception:
            return arguments[0]

    return faulty


def _refusing_wrongly(function: Any) -> Any:
    def faulty(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except Exception as error:
            raise KeyError(str(error)) from error

    return faulty


def _ignoring_out(function: Any) -> Any:
    def faulty(*arguments: Any, out: Any = None, **options: Any) -> Any:
        return function(*arguments, **options)

    return faulty


FAULTS = (
    Fault("wrong value", "exp", "forward", _on_results(_slightly_larger)),
    Fault("wrong value of several inputs", "matmul", "forward", _on_results(_slightly_larger)),
    Fault("NaN", "sin", "forward", _on_results(_not_a_number)),
    Fault("wrong dtype", "mul", "forward", _on_results(_other_dtype)),
    Fault("wrong shape", "sum", "forward", _on_results(_one_dimension_more)),
    Fault("copy instead of view", "narrow", "forward", _on_results(_copied)),
    Fault("wrong gradient", "mul", "backward", _on_results(_same_value_other_slope)),
    Fault("no gradient", "matmul", "backward", _on_results(_without_history)),
    Fault("wrong second gradient", "exp", "double-backward", _other_curvature),
    Fault("wrong tangent", "mul", "forward-AD", _on_results(_other_tangent)),
    Fault("out= not written", "mul", "out", _ignoring_out),
    Fault("missing refusal", "narrow", "errors", _never_refusing),
    Fault("wrong kind of refusal", "narrow", "errors", _refusing_wrongly),
)


def is_caught(fault: Fault) -> bool:
    """Whether the kind passes without the fault, and fails with it."""
    entry = all_entries()[fault.operation]
    honest = examine(entry, kinds=(fault.kind,))[fault.kind]
    faulty = examine(entry, fault.plant, kinds=(fault.kind,))[fault.kind]
    return bool(honest["failed"] == 0 and faulty["failed"] > 0)


def show_that_faults_are_caught() -> int:
    """Plant each fault and say whether it was noticed."""
    missed = 0
    for fault in FAULTS:
        caught = is_caught(fault)
        missed += not caught
        print(f"{'caught' if caught else 'MISSED'}: {fault.name} in {fault.operation} ({fault.kind})")
    print(f"{len(FAULTS)} faults planted: {len(FAULTS) - missed} caught, {missed} missed")
    return int(missed > 0)
