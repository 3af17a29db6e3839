"""rearrange: permute, split and join dimensions by a pattern such as "b h w c -> b (h w) c"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pullback import functions
from pullback.tensor.tensor import Tensor

Group = tuple[str, ...]
ELLIPSIS = "..."
JOINED = "(...)"
"""An ellipsis in brackets: the dimensions it stands for become one."""


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Tensor:
    """The elements of a tensor (or of tensors, stacked) in the order and shape that `pattern` describes.

    >>> import pullback
    >>> rearrange(pullback.arange(6).reshape(2, 3), "a b -> b a")
    tensor([[0, 3],
            [1, 4],
            [2, 5]])
    """
    whole: Any = functions.stack(list(tensor), 0) if isinstance(tensor, (list, tuple)) else tensor
    if not isinstance(whole, Tensor):
        raise TypeError(f"rearrange(): argument 'tensor' must be Tensor or a sequence of Tensors, not {type(whole)}")
    left, right = _sides(pattern)
    _check_names(pattern, left, right, axes_lengths)
    shape = tuple(whole._array.shape)
    hidden = _hidden_names(pattern, left, len(shape))
    left, right = _with_hidden(left, hidden), _with_hidden(right, hidden)
    lengths = _lengths(pattern, left, shape, dict(axes_lengths))
    names = [name for group in left for name in group]
    order = [names.index(name) for group in right for name in group]
    apart = functions.reshape(whole, tuple([lengths[name] for name in names]))
    moved = functions.permute(apart, tuple(order)) if order else apart
    return functions.reshape(moved, tuple([math.prod([lengths[name] for name in group]) for group in right]))


def _sides(pattern: str) -> tuple[list[Group], list[Group]]:
    parts = pattern.split("->")
    if len(parts) != 2:
        raise ValueError(f"Pattern must contain exactly one '->' separator: {pattern!r}")
    return _groups(pattern, parts[0]), _groups(pattern, parts[1])


def _groups(pattern: str, side: str) -> list[Group]:
    """The dimensions of one side: each a tuple of names, empty for a dimension of size 1."""
    groups: list[Group] = []
    inside: list[str] | None = None
    for token in side.replace("(", " ( ").replace(")", " ) ").split():
        if token == "(":
            if inside is not None:
                raise ValueError(f"Brackets inside of brackets are not allowed: {pattern!r}")
            inside = []
        elif token == ")":
            if inside is None:
                raise ValueError(f"Brackets are not balanced: {pattern!r}")
            groups.append(tuple(inside))
            inside = None
        elif token != "1" and token != ELLIPSIS and not token.isidentifier():
            raise ValueError(f"Invalid axis identifier {token!r} in {pattern!r}")
        elif inside is not None:
            inside += [] if token == "1" else [JOINED if token == ELLIPSIS else token]
        else:
            groups.append(() if token == "1" else (token,))
    if inside is not None:
        raise ValueError(f"Brackets are not balanced: {pattern!r}")
    return groups


def _check_names(pattern: str, left: list[Group], right: list[Group], lengths: dict[str, int]) -> None:
    sides = [[ELLIPSIS if n == JOINED else n for group in side for n in group] for side in (left, right)]
    for names in sides:
        if len(set(names)) != len(names):
            raise ValueError(f"An identifier occurs twice on one side of {pattern!r}")
    unmatched = sorted(set(sides[0]) ^ set(sides[1]))
    if unmatched:
        raise ValueError(f"Identifiers only on one side of expression (should be on both): {unmatched} in {pattern!r}")
    unknown = sorted(set(lengths) - set(sides[0]))
    if unknown:
        raise ValueError(f"Identifiers {unknown} have a length, but are not in {pattern!r}")
    if any(JOINED in group for group in left):
        raise ValueError(f"An ellipsis in brackets is only allowed on the right side: {pattern!r}")


def _hidden_names(pattern: str, left: list[Group], ndim: int) -> list[str]:
    """Names for the dimensions that an ellipsis stands for."""
    named = len([group for group in left if group != (ELLIPSIS,)])
    has_ellipsis = (ELLIPSIS,) in left
    if ndim < named or (not has_ellipsis and ndim != named):
        raise ValueError(f"Number of dimensions in pattern {pattern!r} does not match the tensor's, which has {ndim}")
    return [f"{ELLIPSIS}{i}" for i in range(ndim - named)]


def _with_hidden(side: list[Group], hidden: list[str]) -> list[Group]:
    groups: list[Group] = []
    for group in side:
        if group == (ELLIPSIS,):
            groups += [(name,) for name in hidden]
        else:
            groups.append(tuple([n for name in group for n in (hidden if name == JOINED else [name])]))
    return groups


def _lengths(pattern: str, left: list[Group], shape: Sequence[int], known: dict[str, int]) -> dict[str, int]:
    """The length of every name; one of each bracket follows from the others."""
    for group, size in zip(left, shape, strict=True):
        unknown = [name for name in group if name not in known]
        product = math.prod([known[name] for name in group if name in known])
        if len(unknown) > 1:
            raise ValueError(f"Could not infer the lengths of {unknown} in {pattern!r}: give all but one of them")
        if unknown:
            if product == 0 or size % product:
                raise ValueError(f"A dimension of size {size} cannot be divided by {product} in {pattern!r}")
            known[unknown[0]] = size // product
        elif product != size:
            raise ValueError(f"A dimension has size {size}, but {pattern!r} gives it {product}")
    return known
