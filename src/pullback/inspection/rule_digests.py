"""Digests of the texts of rules: whether what was recorded or measured with a rule still holds."""

from __future__ import annotations

import ast
import functools
import hashlib

from pullback.generated.registry import OPERATIONS
from pullback.recording.rendered import read_family


@functools.cache
def rule_digest(operation: str) -> str:
    """A digest of the text of an operation's rule; comments and layout do not count.

    >>> len(rule_digest("mul"))
    16
    """
    _, tree = read_family(OPERATIONS[operation].family)
    rules = [s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name in (operation, f"{operation}_tangent")]
    text = "\n".join(ast.unparse(rule) for rule in rules)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
