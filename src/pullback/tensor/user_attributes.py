"""`tensor.__dict__` where tensors are not compiled: what users have set, without autograd's own state.

Libraries copy it from one tensor to another. In the compiled form (Note [Compiled classes]) the state is not part of it.
"""

from __future__ import annotations

import gc
from typing import Any

from pullback.tensor.tensor_base import STATE, TensorBase

IS_NEEDED = "__dict__" in TensorBase.__dict__
_everything = TensorBase.__dict__.get("__dict__")


class UserAttributes(dict[str, Any]):
    """The attributes that users have set; changes reach the tensor."""

    def __init__(self, everything: dict[str, Any]) -> None:
        super().__init__({name: value for name, value in everything.items() if name not in STATE})
        self._everything = everything

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._everything[name] = value

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        del self._everything[name]

    def update(self, *others: Any, **named: Any) -> None:
        """Set several attributes."""
        for name, value in dict(*others, **named).items():
            self[name] = value

    def pop(self, name: str, *default: Any) -> Any:
        """Delete an attribute and return it."""
        if name in self:
            self._everything.pop(name, None)
        return super().pop(name, *default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Set an attribute unless it is there."""
        if name not in self:
            self[name] = default
        return self[name]

    def clear(self) -> None:
        """Delete all attributes."""
        for name in list(self):
            del self[name]

    def __reduce__(self) -> Any:
        return dict, (dict(self.items()),)


def attributes_of(tensor: Any) -> dict[str, Any]:
    """What users have set on a tensor."""
    return UserAttributes(_everything.__get__(tensor))  # type: ignore[union-attr]


def set_attributes(tensor: Any, attributes: dict[str, Any]) -> None:
    """Replace all that users have set on a tensor."""
    present = attributes_of(tensor)
    present.clear()
    present.update(attributes)


shown_attributes = property(attributes_of, set_attributes)
"""The property that replaces `__dict__` in Tensor."""


def show_user_attributes(cls: type) -> None:
    """Give a class this `__dict__` where a base that comes before Tensor would show all of the tensor's state.

    Assigning to that `__dict__`, as MONAI does, would take the state away. `setattr` refuses the name.
    """
    first = next(vars(base)["__dict__"] for base in cls.__mro__ if "__dict__" in vars(base))
    if first is not shown_attributes:
        (namespace,) = gc.get_referents(vars(cls))
        namespace["__dict__"] = shown_attributes
        cls.__doc__ = cls.__doc__  # tells Python that what it knows of the class's attributes is out of date
