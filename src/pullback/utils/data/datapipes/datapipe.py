"""The two kinds of links in a chain of datasets, and how a class becomes a method of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from pullback.utils.data.dataset import Dataset, IterableDataset

_T_co = TypeVar("_T_co", covariant=True)
_T = TypeVar("_T")


class _Chainable:
    """What both kinds share: classes registered under a name are called as methods, with the link as first argument."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        if name in type(self).functions:
            return partial(type(self).functions[name], self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Let `function` be called as a method of this name."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Callable[..., Any], enable_df_api_tracing: bool = False
    ) -> None:
        """Let the class be made by a method of this name; a name is given once."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = cls_to_register

    def reset(self) -> None:
        """Begin anew; called before each iteration."""

    def __repr__(self) -> str:
        return type(self).__name__


class IterDataPipe(_Chainable, IterableDataset[_T_co]):
    """A link that is iterated over."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __iter__(self) -> Iterator[_T_co]:
        """Yield the elements."""
        return iter(())


class MapDataPipe(_Chainable, Dataset[_T_co]):
    """A link whose elements are asked for by key."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class DataChunk(list[_T], Generic[_T]):
    """A batch of a chain: a list whose elements may be batches again."""

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The elements between brackets."""
        return indent + "[" + ", ".join(str(item) for item in self) + "]"

    def raw_iterator(self) -> Iterator[_T]:
        """The elements as they are."""
        yield from self.items


class functional_datapipe:
    """Register the decorated class under a name: it becomes a method of all links of its kind."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Any) -> Any:
        kind: type[_Chainable]
        if isinstance(cls, type) and issubclass(cls, IterDataPipe):
            kind = IterDataPipe
        elif isinstance(cls, type) and issubclass(cls, MapDataPipe):
            kind = MapDataPipe
        else:
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        kind.register_datapipe_as_function(self.name, cls)
        return cls
