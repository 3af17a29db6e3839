"""The named tuples that functions with several results return, such as `return_types.max(values=..., indices=...)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from pullback.backend.dtype import int64
from pullback.backend.naming import display_namespace
from pullback.facts import names_with


class ReturnType(tuple[Any, ...]):
    """A tuple of results with a name for each; made from one sequence, unlike a namedtuple."""

    __slots__ = ()
    _names: ClassVar[tuple[str, ...]] = ()

    def __new__(cls, iterable: Iterable[Any] = ()) -> ReturnType:
        values = tuple(iterable)
        if len(values) != len(cls._names):
            raise TypeError(
                f"{_qualified_name(cls)}() takes a {len(cls._names)}-sequence ({len(values)}-sequence given)"
            )
        return super().__new__(cls, values)

    def __repr__(self) -> str:
        rows = ",\n".join(f"{name}={value!r}" for name, value in zip(self._names, self, strict=True))
        return f"{_qualified_name(type(self))}(\n{rows})"

    def __reduce__(self) -> Any:
        return (_rebuild, (type(self).__name__, tuple(self)))


def _qualified_name(cls: type) -> str:
    return f"{display_namespace()}.return_types.{cls.__name__}"


def _rebuild(name: str, values: tuple[Any, ...]) -> ReturnType:
    return RETURN_TYPES[name](values)


def _field(index: int) -> property:
    return property(lambda self: self[index])


def _make_type(name: str, fields: tuple[str, ...]) -> type[ReturnType]:
    members: dict[str, Any] = {field: _field(index) for index, field in enumerate(fields)}
    members |= {
        "__slots__": (), "__match_args__": fields, "__module__": "pullback.return_types", "_names": fields,
        "n_fields": len(fields), "n_sequence_fields": len(fields), "n_unnamed_fields": 0,
    }  # fmt: skip
    return type(name, (ReturnType,), members)


RETURN_TYPES: dict[str, type[ReturnType]] = {
    f"{name}{suffix}": _make_type(f"{name}{suffix}", tuple(fields.split()))
    for name, fields in {**names_with("returns"), "_lu_with_info": "LU pivots info"}.items()
    for suffix in ("", "_out")
}


def named_results(name: str, function: Callable[..., Any], *arguments: Any, out: Any = None, **options: Any) -> Any:
    """The results of `function` under the names of PyTorch's function `name`, written to `out` if it is given."""
    if out is None:
        return RETURN_TYPES[name](function(*arguments, **options))
    kind = RETURN_TYPES[f"{name}_out"]
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"{name}(): argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    if len(out) != len(kind._names):
        raise TypeError(f"{name}(): argument 'out' must be {len(kind._names)} Tensors, not {len(out)}")
    if kind._names[-1] == "indices" and out[-1].dtype is not int64:
        raise RuntimeError(f"Expected out tensor to have dtype long int, but got {out[-1].dtype} instead")
    return kind(function(*arguments, **options, out=tuple(out)))


def return_type(name: str) -> type[ReturnType]:
    """The named tuple that the function `name` returns.

    >>> return_type("max")(("a", "b")).indices
    'b'
    """
    return RETURN_TYPES[name]
