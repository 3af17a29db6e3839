"""Modules that hold modules: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from pullback.nn.modules.module import Module
from pullback.nn.modules.parameter_container import ParameterDict, ParameterList

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """Old base of containers: modules given by name become children."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class Sequential(Module):
    """Modules called one after the other.

    >>> from pullback import nn
    >>> nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Linear(in_features=4, out_features=2, bias=True)
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def _name_at(self, index: Any) -> str:
        size = len(self)
        index = operator.index(index)
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of range")
        return next(islice(self._modules, index % size, None))

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._name_at(idx)]

    def __setitem__(self, idx: int, module: Any) -> None:
        setattr(self, self._name_at(idx), module)

    def __delitem__(self, idx: Any) -> None:
        names = list(self._modules)[idx] if isinstance(idx, slice) else [self._name_at(idx)]
        for name in names:
            delattr(self, name)
        self._renumber()

    def _renumber(self) -> None:
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)!s} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Any:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)!s} is given.")
        return self.extend(list(other))

    def __mul__(self, other: int) -> Any:
        return Sequential(*(list(self) * _repetitions(other)))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Any:
        return self.extend(list(self) * (_repetitions(other) - 1))

    def pop(self, key: int | slice) -> Any:
        """Remove and return the module at `key`."""
        module = self[key]
        del self[key]
        return module

    def append(self, module: Any) -> Any:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Any) -> Any:
        """Add a module before `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index + size if index < 0 else index, module)
        self._modules = {str(i): m for i, m in enumerate(modules)}
        return self

    def extend(self, sequential: Iterable[Any]) -> Any:
        """Add modules at the end."""
        for module in list(sequential):
            self.append(module)
        return self

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input


def _repetitions(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"unsupported operand type(s) for *: {type(value)} and {Sequential}")
    if value <= 0:
        raise ValueError(f"Non-positive multiplication factor {value} for {Sequential}")
    return value


class ModuleList(Module):
    """A list whose modules are registered.

    It is read and changed as a list is; the parameters of its modules are those of the module that holds it. It has no
    forward pass of its own.

    >>> from pullback.nn import Linear
    >>> layers = ModuleList([Linear(2, 3), Linear(3, 1)])
    >>> len(layers), len(list(layers.parameters()))
    (2, 4)
    """

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _name_at(self, index: Any) -> str:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index % len(self))

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[self._name_at(idx)]

    def __setitem__(self, idx: int, module: Any) -> None:
        setattr(self, self._name_at(idx), module)

    def __delitem__(self, idx: Any) -> None:
        names = [str(i) for i in range(len(self))[idx]] if isinstance(idx, slice) else [self._name_at(idx)]
        for name in names:
            delattr(self, name)
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __iadd__(self, modules: Iterable[Any]) -> Any:
        return self.extend(modules)

    def __add__(self, other: Iterable[Any]) -> Any:
        return ModuleList(chain(self, other))

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def insert(self, index: int, module: Any) -> None:
        """Add a module before `index`."""
        modules = list(self)
        modules.insert(index, module)
        self._modules = {str(i): m for i, m in enumerate(modules)}

    def pop(self, key: int | slice) -> Any:
        """Remove and return the module at `key`."""
        module = self[key]
        del self[key]
        return module

    def append(self, module: Any) -> Any:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Any]) -> Any:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        offset = len(self)
        for i, module in enumerate(modules):
            self.add_module(str(offset + i), module)
        return self

    def __repr__(self) -> str:
        """Show equal neighbours once: `(0-3): 4 x Linear(...)`."""
        runs: list[tuple[int, int, str]] = []
        for i, text in enumerate([repr(module) for module in self]):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], i, text)
            else:
                runs.append((i, i, text))
        if not runs:
            return self._get_name() + "()"
        lines = []
        for first, last, text in runs:
            body = text.replace("\n", "\n  ")
            lines.append(f"({first}): {body}" if first == last else f"({first}-{last}): {last - first + 1} x {body}")
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dict whose modules are registered.

    Made of a mapping or pairs; keys are strings, and the modules are found by `parameters()` and `state_dict()`.

    >>> import pullback
    >>> pullback.nn.ModuleDict({"first": pullback.nn.ReLU()})["first"]
    ReLU()
    """

    def __init__(self, modules: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove and return the module under `key`."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """The names with their modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from pairs, replacing those under the same names."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        if isinstance(modules, (Mapping, ModuleDict)):
            modules = modules.items()
        for position, pair in enumerate(modules):
            if not isinstance(pair, Iterable):
                raise TypeError(
                    f"ModuleDict update sequence element #{position} should be Iterable; is {type(pair).__name__}"
                )
            pair = tuple(pair)
            if len(pair) != 2:
                raise ValueError(
                    f"ModuleDict update sequence element #{position} has length {len(pair)}; 2 is required"
                )
            self[pair[0]] = pair[1]
