"""RemovableHandle: what registering a hook returns."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any


class RemovableHandle:
    """Removes a hook, on `remove()` or at the end of a `with` block.

    It holds the dict of hooks weakly, so a handle that is kept does not keep a tensor or module alive. `extra_dict` is
    a dict, or a list of them, in which the hook's id has further entries.

    >>> hooks = OrderedDict()
    >>> handle = RemovableHandle(hooks)
    >>> hooks[handle.id] = print
    >>> handle.remove()
    >>> len(hooks)
    0
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref: weakref.ref[Any] = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.extra_dict_ref: tuple[weakref.ref[Any], ...] = ()
        if isinstance(extra_dict, dict):
            self.extra_dict_ref = (weakref.ref(extra_dict),)
        elif isinstance(extra_dict, list):
            self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extra_dict)

    def remove(self) -> None:
        """Remove the hook; a second call, or one after the hooks are gone, does nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, state: Sequence[Any]) -> None:
        hooks_dict, self.id = state[0], state[1]
        extra_dicts = state[2] if len(state) > 2 else ()
        self.hooks_dict_ref = _reference(hooks_dict)
        self.extra_dict_ref = tuple(_reference(extra) for extra in extra_dicts)
        # Handles made from now on must not take an id that came with the pickle.
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        self.remove()


def _reference(hooks: Any) -> weakref.ref[Any]:
    """Refer weakly to a dict of hooks; one that no longer existed when it was pickled gives a dead reference."""
    return weakref.ref(OrderedDict() if hooks is None else hooks)
