"""What tells calls of a compiled function apart: structure, modes, the forms of tensors, numbers and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backend.array_module import ndarray
from pullback.backend.dtype import default_float
from pullback.compiling.structure import flatten
from pullback.compiling.templates import layout_of
from pullback.modes.determinism import are_deterministic_algorithms_enabled
from pullback.modes.switches import SWITCH_DEFAULTS, process, switches
from pullback.tensor.tensor import TensorBase


class CallShapes:
    """Which numbers among the arguments of a function change. See Note [Changing numbers]."""

    def __init__(self, dynamic: bool | None) -> None:
        self._dynamic = dynamic
        self.free: dict[Any, frozenset[int]] = {}
        """By the structure of the arguments: the places of numbers that are inputs."""
        self._fixed: dict[Any, frozenset[int]] = {}
        self._first: dict[Any, list[Any]] = {}
        """By what else tells calls apart: the leaves of the first such call."""

    def learn(self, key: Any, leaves: list[Any], places: Sequence[int]) -> bool:
        """See a call of a new kind; whether a number became an input by it."""
        structure = key[0]
        closed = self._fixed.get(structure, _NONE) | self.free.get(structure, _NONE)
        places = [place for place in places if place not in closed]
        if self._dynamic is False or not places:
            return False
        rest = tuple([part for number, part in enumerate(key) if number - _HEAD not in places])
        first = self._first.setdefault(rest, leaves)
        if self._dynamic is None:
            places = [place for place in places if repr(first[place]) != repr(leaves[place])]
        if places:
            self.free[structure] = self.free.get(structure, _NONE) | frozenset(places)
        return bool(places)

    def key(self, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        """What tells kinds of calls apart; None for a call that is never compiled."""
        structure = flatten((args, kwargs), leaves) if args or kwargs else _NO_ARGUMENTS
        modes: Any = True
        if process.changed:
            modes = _modes()
            if modes is None:
                return None
        parts: list[Any] = [structure, modes, default_float(), are_deterministic_algorithms_enabled()]
        free = self.free.get(structure, _NONE)
        seen: dict[int, int] = {}
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, TensorBase):
                array = leaf._array
                first = seen.setdefault(id(leaf), place)
                extra = leaf._extra
                is_inference = extra is not None and extra.inference
                device = None if type(array) is ndarray else getattr(array, "place", None)
                form = (
                    array.shape, array.strides, array.dtype, leaf._requires_grad, first, type(leaf), is_inference, device,
                )  # fmt: skip
                parts.append(form)
            elif place in free and type(leaf) in (float, int):
                parts.append(type(leaf))
            elif isinstance(leaf, (int, float, complex, str, bytes, type(None))):
                parts.append((type(leaf), repr(leaf) if isinstance(leaf, (float, complex)) else leaf))
            else:
                parts.append((type(leaf), id(leaf)))
        return tuple(parts)

    def fix(self, structure: Any, places: frozenset[int]) -> None:
        """Tell calls apart by the values of these numbers again, for good."""
        self.free[structure] = self.free.get(structure, _NONE) - places
        self._fixed[structure] = self._fixed.get(structure, _NONE) | places


_NONE: frozenset[int] = frozenset()
_NO_ARGUMENTS = flatten(((), {}), [])
_HEAD = 4
"""How many parts of a key stand before those of the leaves."""


def open_places(values: Sequence[Any], *, with_whole: bool) -> list[int]:
    """The places, among the leaves of the values, of those that are numbers themselves."""
    found, count = [], 0
    for value in values:
        if type(value) is float or (with_whole and type(value) is int):
            found.append(count)
        leaves: list[Any] = []
        flatten(value, leaves)
        count += len(leaves)
    return found


def without_sizes(key: Any) -> Any:
    """What tells kinds of calls apart beside the sizes and strides of tensors: of these, how they are laid out."""
    if key is None:
        return None
    head, leaves = key[:_HEAD], key[_HEAD:]
    return (*head, *[_form_without_sizes(*part) if type(part) is tuple and len(part) > 2 else part for part in leaves])


def _form_without_sizes(shape: Any, strides: Any, dtype: Any, *rest: Any) -> tuple[Any, ...]:
    return (len(shape), layout_of(shape, strides, dtype.itemsize), dtype, *rest)


_FOLLOWED = ("grad_mode", "inference_mode", "forward_grad")
"""Switches that programs are told apart by, or that mean nothing to them."""


def _modes() -> Any:
    """The switches of this thread that a program may depend on; None where calls are not compiled."""
    state = switches.__dict__
    for name, default in SWITCH_DEFAULTS.items():
        if state[name] is not default and state[name] != default and name not in _FOLLOWED:
            return None
    return (state["grad_mode"], state["inference_mode"])
