"""A list and a dict whose tensors are registered as parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from pullback.nn.modules.module import Module
from pullback.nn.modules.naming import typename
from pullback.nn.parameter import Parameter
from pullback.tensor.tensor import Tensor


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(value: Any, element_type: str) -> str:
    """One entry of a repr."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(n) for n in value.size())
    return f"{kind} containing: [{element_type} of size {size}]"


def _dtype_of(value: Any) -> str:
    return str(value.dtype) if isinstance(value, Tensor) else ""


class ParameterList(Module):
    """A list of parameters; tensors become parameters, other values are kept as they are.

    Made of tensors; each becomes a Parameter and is found by `parameters()`.

    >>> import pullback
    >>> len(list(pullback.nn.ParameterList([pullback.ones(2), pullback.ones(3)]).parameters()))
    2
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _name_at(self, index: Any) -> str:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index % len(self))

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            out = type(self)()
            for i in range(*idx.indices(len(self))):
                out.append(self[i])
            return out
        return getattr(self, self._name_at(idx))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, self._name_at(idx), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, parameters: Iterable[Any]) -> Any:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> Any:
        """Add a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Add values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_described(value, _dtype_of(value))}" for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters; tensors become parameters, other values are kept as they are.

    Made of a mapping or pairs; each tensor becomes a Parameter and is found by `parameters()`.

    >>> import pullback
    >>> pullback.nn.ParameterDict({"w": pullback.ones(2)})["w"].requires_grad
    True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _key_to_attr(key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, self._key_to_attr(key), _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> Any:
        """A new ParameterDict with the same values."""
        return ParameterDict([(key, self[key]) for key in self._keys])

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value under `key`, which is set to `default` if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove and return the value under `key`."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the value added last, with its key."""
        key = list(self._keys)[-1]
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value under `key`, or `default`."""
        return self[key] if key in self else default  # noqa: SIM401  (this is the method it asks for)

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> Any:
        """A new ParameterDict with one value under all keys."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The keys with their values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add values from a mapping or from pairs, replacing those under the same keys."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                + type(parameters).__name__
            )
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            pairs: Any = parameters.items()
        elif isinstance(parameters, Mapping):
            pairs = sorted(parameters.items())  # PyTorch takes only an OrderedDict to have an order
        else:
            pairs = parameters
        for position, pair in enumerate(pairs):
            if not isinstance(pair, Iterable):
                raise TypeError(
                    f"ParameterDict update sequence element #{position} should be Iterable; is {type(pair).__name__}"
                )
            pair = tuple(pair)
            if len(pair) != 2:
                raise ValueError(
                    f"ParameterDict update sequence element #{position} has length {len(pair)}; 2 is required"
                )
            self[pair[0]] = pair[1]

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_described(value, typename(value))}" for key, value in self.items())

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Any) -> Any:
        united = self.copy()
        united.update(other)
        return united

    def __ror__(self, other: Any) -> Any:
        return ParameterDict(list(chain(other.items(), self.items())))

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self
