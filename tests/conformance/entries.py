"""The entries: one per operation (and alias, and variant) of the operator database that PyTorch brings with it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

import pullback

from .comparison import Measure
from .exceptions import INEXACT_IN_PYTORCH
from .families import family_of
from .translation import find, our_function

# The command line passes these on to the worker process through the environment.
DTYPES = tuple(
    getattr(torch, name) for name in os.environ.get("CONFORMANCE_DTYPES", "float64,float32,complex128,int64").split(",")
)
_USES_REFERENCES = os.environ.get("CONFORMANCE_SAMPLES") == "reference"


@dataclass(frozen=True)
class Sample:
    """One call: the arguments, and what makes its results comparable (phases of eigenvectors and such)."""

    arguments: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    process: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class ErrorSample:
    """One call that must raise."""

    sample: Sample
    error: type[BaseException]
    phrase: str


@dataclass(frozen=True)
class Entry:
    """One operation with its samples and its forms; `ours` looks our function up and may raise AttributeError."""

    name: str
    family: str
    theirs: Callable[..., Any]
    ours: Callable[[], Any]
    samples: Callable[[Any, bool], Iterable[Sample]]
    dtypes: tuple[Any, ...] = DTYPES
    differentiable: tuple[Any, ...] = ()
    method: Any = None
    in_place: Any = None
    has_out: bool = False
    errors: Callable[[], Iterable[ErrorSample]] = tuple
    measure: Measure = field(default_factory=lambda: Measure(scaled=True))
    has_ties: bool = False


# Sparse, quantized, private and device-bound entries of the database are not dense public operations.
_LEFT_OUT = re.compile(
    r"^(sparse\.|torch\.|_(?!_)|jiterator|to_sparse$|max_pool2d_with_indices_backward$|native_dropout_backward$|slice$)"
)
_UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_"}
_ELEMENTWISE = ("UnaryUfuncInfo", "BinaryUfuncInfo")


@cache
def database() -> tuple[Entry, ...]:
    """Read PyTorch's operator database: an entry per operation and variant, and one per alias."""
    from torch.testing._internal.common_methods_invocations import op_db

    entries: dict[str, Entry] = {}
    for operation in op_db:
        if _LEFT_OUT.match(operation.name) or operation.variant_test_name == "triton_optimized":
            continue
        entry = _from_database(operation)
        entries[entry.name] = entry
        for alias in operation.aliases or ():
            made = _from_alias(operation, alias)
            entries.setdefault(made.name, made)
    return tuple(entries.values())


def _sort(operation: Any) -> str:
    unary = type(operation).__name__ == "UnaryUfuncInfo"
    return "elementwise, one input" if unary else "elementwise, several inputs"


def _from_database(operation: Any) -> Entry:
    variant = operation.variant_test_name
    supported = operation.supported_dtypes("cpu")
    differentiable = operation.supported_backward_dtypes("cpu") if operation.supports_autograd else set()
    return Entry(
        name=operation.name + (f" ({variant})" if variant else ""),
        family=family_of(operation.name, _sort(operation)),
        theirs=operation.op,
        ours=lambda: _our_operation(operation),
        samples=lambda dtype, requires_grad: _samples(operation, dtype, requires_grad),
        dtypes=tuple(dtype for dtype in DTYPES if dtype in supported),
        differentiable=tuple(dtype for dtype in DTYPES if dtype in differentiable),
        method=operation.method_variant,
        in_place=operation.inplace_variant,
        has_out=operation.supports_out,
        errors=lambda: _errors(operation),
        measure=Measure(
            scaled=type(operation).__name__ not in _ELEMENTWISE,
            values=operation.name not in _UNINITIALISED,
            slack=100.0 if operation.name in INEXACT_IN_PYTORCH else 1.0,
        ),
        has_ties=operation.name in ("topk", "kthvalue", "mode"),
    )


def _from_alias(operation: Any, alias: Any) -> Entry:
    entry = _from_database(operation)
    variant = operation.variant_test_name
    name = alias.name.removeprefix("torch.")
    return Entry(
        **{
            **vars(entry),
            "name": name + (f" ({variant})" if variant else ""),
            "family": family_of(name, _sort(operation)),
            "theirs": alias.op,
            "ours": lambda: find(pullback, name),
            "method": alias.method_variant,
            "in_place": alias.inplace_variant,
            "errors": tuple,
        }
    )


def _our_operation(operation: Any) -> Any:
    """By name where PyTorch's function is the one of that name; else by translating what the entry calls."""
    try:
        named = find(torch, operation.name)
    except AttributeError:
        named = None
    if named is operation.op:
        return find(pullback, operation.name)
    return our_function(operation.op)


def _samples(operation: Any, dtype: Any, requires_grad: bool) -> Iterator[Sample]:
    torch.manual_seed(0)
    draw = operation.reference_inputs if _USES_REFERENCES else operation.sample_inputs
    for given in draw("cpu", dtype, requires_grad=requires_grad):
        yield _sample(given)


def _sample(given: Any) -> Sample:
    process = given.output_process_fn_grad
    is_identity = (
        getattr(process, "__name__", "") == "<lambda>" and process.__code__.co_code == _IDENTITY.__code__.co_code
    )
    return Sample((given.input, *given.args), dict(given.kwargs), None if is_identity else process)


def _IDENTITY(value: Any) -> Any:
    return value


def _errors(operation: Any) -> Iterator[ErrorSample]:
    if operation.error_inputs_func is None:
        return
    torch.manual_seed(0)
    for given in operation.error_inputs("cpu"):
        yield ErrorSample(_sample(given.sample_input), given.error_type, given.error_regex)


def choose(samples: list[Sample], count: int) -> list[Sample]:
    """Take at most `count` samples, evenly spread, so that the generator's corners are among them."""
    if len(samples) <= count:
        return samples
    return [samples[index * (len(samples) - 1) // (count - 1)] for index in range(count)]
