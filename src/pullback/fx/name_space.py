"""Names for the values of a graph: legal, and each used once."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from typing import Any

from pullback.backend.device import device

_ILLEGAL_CHARACTER = re.compile(r"[^0-9a-zA-Z_]+")
_SUFFIX = re.compile(r"(.*)_(\d+)$")
KNOWN_GLOBALS: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "device": device}
"""What generated code finds under these names, besides `torch`."""
_RESERVED = {*KNOWN_GLOBALS, "torch", "fx_pytree", "pytree"}


class Namespace:
    """Hands out names, for an object always the same one."""

    def __init__(self) -> None:
        self._by_object: dict[int, tuple[Any, str]] = {}
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any = None) -> str:
        """A name like `candidate` that is free.

        >>> names = Namespace()
        >>> names.create_name("x"), names.create_name("x"), names.create_name("max"), names.create_name("a.b")
        ('x', 'x_1', 'max_1', 'a_b')
        """
        if obj is not None and id(obj) in self._by_object:
            return self._by_object[id(obj)][1]
        candidate = _ILLEGAL_CHARACTER.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        found = _SUFFIX.match(candidate)
        base, number = (candidate, None) if found is None else (found[1], int(found[2]))
        name = base if number is None else candidate
        number = number or self._counts.get(base, 0)
        while name in self._used or _is_illegal(name, obj):
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        self._counts[base] = number
        if obj is not None:
            self._by_object[id(obj)] = obj, name
        return name

    def reserve(self, name: str) -> None:
        """Never hand out this name."""
        self._used.add(name)


def _is_illegal(name: str, obj: Any) -> bool:
    if keyword.iskeyword(name) or name in _RESERVED:
        return True
    return hasattr(builtins, name) and getattr(builtins, name) is not obj


def snake_case(text: str) -> str:
    """The name of a class as that of a value.

    >>> snake_case("BatchNorm2d")
    'batch_norm2d'
    """
    words = [
        f"_{c.lower()}" if c.isupper() and i and not text[i - 1].isupper() else c.lower() for i, c in enumerate(text)
    ]
    return "".join(words).lstrip("_") if text[:1].isupper() else "".join(words)
