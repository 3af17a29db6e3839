"""Which arguments of a function are differentiated: `argnums`, and taking trees of tensors apart."""

from __future__ import annotations

from typing import Any

from pullback.tensor.tensor import Tensor
from pullback.utils._pytree import tree_flatten

Argnums = Any


def checked_argnums(argnums: Argnums, count: int) -> int | tuple[int, ...]:
    """`argnums` counted from the front; errors where there is no such argument."""
    if isinstance(argnums, bool) or not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if isinstance(argnums, int):
        return _checked_argnum(argnums, count)
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    for number in argnums:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
    numbers = tuple([_checked_argnum(number, count) for number in argnums])
    if len(set(numbers)) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {numbers}")
    return numbers


def _checked_argnum(argnum: int, count: int) -> int:
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum + count if argnum < 0 else argnum


def chosen(args: tuple[Any, ...], argnums: int | tuple[int, ...]) -> Any:
    """The arguments that `argnums` names."""
    return args[argnums] if isinstance(argnums, int) else tuple([args[number] for number in argnums])


def without(args: tuple[Any, ...], argnums: int | tuple[int, ...]) -> tuple[Any, ...]:
    """The arguments with None in the place of those that `argnums` names."""
    return replaced(args, argnums, None if isinstance(argnums, int) else (None,) * len(argnums))


def replaced(args: tuple[Any, ...], argnums: int | tuple[int, ...], values: Any) -> tuple[Any, ...]:
    """The arguments with those that `argnums` names replaced."""
    result = list(args)
    if isinstance(argnums, int):
        result[argnums] = values
    else:
        for number, value in zip(argnums, values, strict=True):
            result[number] = value
    return tuple(result)


def split_aux(output: Any, where: str) -> tuple[Any, Any]:
    """The output and the auxiliary output of a function with `has_aux=True`."""
    if not isinstance(output, tuple) or len(output) != 2:
        raise RuntimeError(f"{where}: output of function f should be a tuple: (output, aux) if has_aux is True")
    for leaf in tree_flatten(output[1])[0]:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)} in the auxiliary output of f")
    return output


def flat_tensors(output: Any, where: str, call: str) -> tuple[list[Any], Any]:
    """The leaves of an output, all of which must be tensors, and its structure."""
    leaves, spec = tree_flatten(output)
    if output is None or not leaves:
        raise RuntimeError(
            f"{where}: Expected f to be a function that has non-empty output (got output = {leaves}): {call} must return at "
            "least one Tensor"
        )
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{where}: expected {call} to return only tensors, got unsupported type {type(leaf)}")
    return leaves, spec
