"""A version string that compares as a version: `TorchVersion("2.13.0") > "2.9"`.

Programs gate features on `torch.__version__`; as plain text "2.13" would sort before "2.9".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["TorchVersion"]

_COMPONENT = re.compile(r"\d+")


def _release(version: object) -> tuple[int, ...] | None:
    """The numbers of a version given as text or as a sequence, without trailing zeros; None if it is neither."""
    if isinstance(version, str):
        text = version.split("+")[0]
    elif isinstance(version, Iterable):
        text = ".".join(str(part) for part in version)
    else:
        return None
    numbers = [int(number) for number in _COMPONENT.findall(text)]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


class TorchVersion(str):
    """A `str` whose comparisons read both sides as version numbers.

    >>> TorchVersion("2.13.0") >= "2.9", TorchVersion("2.13.0") >= (2, 14)
    (True, False)
    """

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        mine, theirs = _release(self), _release(other)
        return NotImplemented if mine is None or theirs is None else mine < theirs

    def __le__(self, other: object) -> bool:
        mine, theirs = _release(self), _release(other)
        return NotImplemented if mine is None or theirs is None else mine <= theirs

    def __gt__(self, other: object) -> bool:
        mine, theirs = _release(self), _release(other)
        return NotImplemented if mine is None or theirs is None else mine > theirs

    def __ge__(self, other: object) -> bool:
        mine, theirs = _release(self), _release(other)
        return NotImplemented if mine is None or theirs is None else mine >= theirs

    def __eq__(self, other: object) -> bool:
        mine, theirs = _release(self), _release(other)
        return NotImplemented if mine is None or theirs is None else mine == theirs

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__
