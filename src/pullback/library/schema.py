"""Schemas of operators as text, such as `scale(Tensor x, float by=2.0, *, bool flag=False) -> Tensor`, as signatures."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from inspect import Parameter, Signature
from typing import Any


def signature_of(schema: str) -> Signature | None:
    """The parameters that a schema names, or None where it has none.

    >>> signature_of("scale(Tensor(a!) x, int[2] sizes=[1, 2], *, str? mode=None) -> Tensor")
    <Signature (x, sizes=[1, 2], *, mode=None)>
    """
    opening = schema.find("(")
    if opening < 0:
        return None
    by_keyword = False
    parameters = []
    for text in _split(schema[opening + 1 :]):
        if text == "*":
            by_keyword = True
            continue
        declaration, equals, default = text.partition("=")
        name = declaration.split()[-1]
        kind = Parameter.KEYWORD_ONLY if by_keyword else Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(Parameter(name, kind, default=_value(default) if equals else Parameter.empty))
    return Signature(parameters)


def _split(text: str) -> Iterator[str]:
    """The arguments up to the parenthesis that closes them, without the commas between them."""
    depth, begin = 0, 0
    for at, character in enumerate(text):
        if character in ",)" and depth == 0:
            if text[begin:at].strip():
                yield text[begin:at].strip()
            begin = at + 1
            if character == ")":
                return
        depth += (character in "([") - (character in ")]")


def _value(text: str) -> Any:
    """A default: a literal, or a name of PyTorch's such as `contiguous_format`, which stays text."""
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, ValueError):
        return text.strip()
