"""What is declared of operations and functions, asked by name.

# Note [Facts]
A fact is written once, beside what it is about: as an option of the rule of an operation (derivatives/), or with
`@declare` above a composite function, a kernel or a formula. `tools/codegen` reads all of them as syntax and writes
`generated/facts.py`, which is loaded when the first fact is asked for. So no module lists operations by name, and an
operation that is added later is known everywhere at once. `add_facts` declares at run time, for operations from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
Value = str | bool

FACTS: dict[str, str] = {
    "autocast": "computed in 'lower' precision, in 'float32', in the 'widest' dtype of its operands, or 'stepwise'",
    "out_dtype": "`out=` must have the result's dtype: the phrase of graph/out_dtypes.py for others, or its words",
    "profiled": "its name in the profiler, where that is neither the `aten=` of its rule nor its public name",
}
"""Every fact that may be declared, and what it says."""

_written: dict[str, dict[Value, str]] | None = None
_by_name: dict[str, dict[str, Any]] = {}


def declare(**facts: Value) -> Callable[[_Function], _Function]:
    """Say what is known of a function; it is read as syntax, and the function is left as it is.

    >>> @declare(autocast="float32")
    ... def delicate(input): ...
    """
    return _unchanged


def _unchanged(function: _Function) -> _Function:
    return function


def fact_of(name: str, fact: str) -> Any:
    """The value of a fact for the operation or function of this name, or None.

    >>> fact_of("mm", "autocast"), fact_of("add", "autocast")
    ('lower', None)
    """
    return names_with(fact).get(name)


def names_with(fact: str) -> Mapping[str, Any]:
    """Everything that a fact is declared of, with its value.

    >>> "mm" in names_with("autocast")
    True
    """
    found = _by_name.get(fact)
    if found is None:
        if fact not in FACTS:
            raise KeyError(f"{fact!r} is not a fact: one of {', '.join(FACTS)}")
        found = _by_name[fact] = {
            name: value for value, names in _read().get(fact, {}).items() for name in names.split()
        }
    return found


def add_facts(name: str, **facts: Value) -> None:
    """Declare facts of an operation at run time."""
    for fact, value in facts.items():
        names_with(fact)
        _by_name[fact][name] = value


@contextmanager
def facts_from(written: dict[str, dict[Value, str]]) -> Iterator[None]:
    """Answer from these facts inside of the block: the generator has read them anew."""
    global _written, _by_name
    before = _written, _by_name
    _written, _by_name = written, {}
    try:
        yield
    finally:
        _written, _by_name = before


def _read() -> dict[str, dict[Value, str]]:
    global _written
    if _written is None:
        from pullback.generated.facts import DECLARED  # lazy: above this layer, and few programs ask

        _written = DECLARED
    return _written
