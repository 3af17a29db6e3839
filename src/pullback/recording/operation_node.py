"""The base of the nodes of generated operations, where these are not compiled."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from pullback.graph.node import Node


class OperationNode(Node):
    """A node whose class names the operation and what it saves; the rest follows. See Note [Saved tensors]."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Give the class a default for everything it saves."""
        for name in (*cls.tensor_names, *cls.value_names, *cls.fact_names):
            setattr(cls, f"saved_{name}", None)
        for name in cls.tensor_names:
            setattr(cls, f"saved_{name}_version", -1)
        cls.saved_names = (*cls.tensor_names, *cls.value_names)
        if cls.shown:
            cls.__name__ = cls.__qualname__ = cls.shown
        if 0 < len(cls.tensor_names) <= len(_RELEASES):
            cls.release_saved_tensors = _own_release(cls.tensor_names)  # type: ignore[method-assign]
            # Python shares the keys that the first thirty instances have; another one gives each instance a dict of its
            # own, in a graph of more nodes 464 bytes for each. So the first one that is made has been released.
            cls.__new__(cls).release_saved_tensors()


def _release_one(self: Any) -> None:
    self.released = True
    self.saved_first = None


def _release_two(self: Any) -> None:
    self.released = True
    self.saved_first = None
    self.saved_second = None


def _release_three(self: Any) -> None:
    self.released = True
    self.saved_first = None
    self.saved_second = None
    self.saved_third = None


_RELEASES = (_release_one, _release_two, _release_three)


def _own_release(tensor_names: tuple[str, ...]) -> Any:
    """`Node.release_saved_tensors` written out for one class.

    Python specializes code for the types that it meets: one text for all classes would be specialized for none, and
    every pass runs it at every node.
    """
    function = _RELEASES[len(tensor_names) - 1]
    fields = [f"saved_{name}" for name in tensor_names]
    renamed = dict(zip(("saved_first", "saved_second", "saved_third"), fields, strict=False))
    names = tuple([renamed.get(name, name) for name in function.__code__.co_names])
    return FunctionType(function.__code__.replace(co_names=names), function.__globals__, "release_saved_tensors")
