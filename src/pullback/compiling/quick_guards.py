"""Guards in one expression: that what a program depends on is the very same as in its last call.

Nearly always it is, and asking each place in turn costs more than a small program does. So the comparisons of one entry
are written as one function of Python; where it says no, everything is looked at again, and what is equal goes on.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from pullback.compiling.capture import hooks_of
from pullback.compiling.surroundings import Place, cell_contents, code_of, defaults_of
from pullback.source_text import run_text

MOST = 512
"""More comparisons than this are not written down: the functions that make them at once take no longer then."""


def write_guard(
    places: Sequence[Place], tensors: Sequence[Any], arrays: Sequence[Any], *, with_grads: bool
) -> Callable[[], bool] | None:
    """Whether places hold what they hold now, and tensors have these arrays and no hooks, and no `.grad` if that is asked.

    None where there are too many of them.
    """
    if len(places) + len(tensors) > MOST:
        return None
    scope: dict[str, Any] = {"all": all, "len": len, "map": map, "same": operator.is_, "hooks_of": hooks_of}
    tests = [test for number, place in enumerate(places) for test in _tests_of(place, number, scope)]
    for number, (tensor, array) in enumerate(zip(tensors, arrays, strict=True)):
        scope[f"t{number}"], scope[f"a{number}"] = tensor, array
        tests.append(f"t{number}._array is a{number} and t{number}._requires_grad is {tensor._requires_grad}")
        tests.append(f"(t{number}._extra is None or hooks_of(t{number}) is None)")
        if with_grads:
            tests.append(f"t{number}._grad is None")
    lines = "\n            and ".join(tests or ["True"])
    text = (
        f"def is_same():\n    try:\n        return (\n            {lines}\n        )\n"
        "    except (KeyError, ValueError, RuntimeError):\n        return False\n"
    )
    made: Callable[[], bool] = run_text(text, "a guard", scope)["is_same"]
    return made


def _tests_of(place: Place, number: int, scope: dict[str, Any]) -> list[str]:
    """What says that a place is as it is, in Python."""
    holder, values = f"h{number}", f"v{number}"
    if place.item is not None or place.read in (cell_contents, code_of):
        scope[holder], scope[values] = place.holder, place.values[0]
        attribute = ".cell_contents" if place.read is cell_contents else ".__code__"
        part = attribute if place.item is None else f"[{place.item!r}]"
        return [f"{holder}{part} is {values}"]
    if place.read is defaults_of:
        scope |= {holder: place.holder, values: place.values[0], f"k{number}": place.values[1]}
        return [f"{holder}.__defaults__ is {values}", f"{holder}.__kwdefaults__ is k{number}"]
    if place.read is dict.values and place.keys is not None:
        scope |= {holder: place.holder, values: place.values, f"k{number}": place.keys}
        if not place.values:
            return [f"not {holder}"]
        return [
            f"len({holder}) == {len(place.values)}",
            f"all(map(same, {holder}.values(), {values}))",
            f"all(map(same, {holder}, k{number}))",
        ]
    if place.read is list and type(place.holder) is list:
        scope |= {holder: place.holder, values: place.values}
        return [f"len({holder}) == {len(place.values)}", f"all(map(same, {holder}, {values}))"]
    scope[holder] = place.is_as_it_was
    return [f"{holder}()"]
