"""Digests of the texts of rules: whether what was recorded or measured with a rule still holds."""

from __future__ import annotations

import ast
import functools
import hashlib

from pullback.facts import FACTS
from pullback.generated.registry import OPERATIONS
from pullback.recording.rendered import read_family


@functools.cache
def rule_digest(operation: str) -> str:
    """A digest of the text of an operation's rule; comments, layout and facts that change no gradient do not count.

    >>> len(rule_digest("mul"))
    16
    """
    _, tree = read_family(OPERATIONS[operation].family)
    rules = [s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name in (operation, f"{operation}_tangent")]
    text = "\n".join(ast.unparse(_without_facts(rule)) for rule in rules)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _without_facts(rule: ast.FunctionDef) -> ast.FunctionDef:
    (kind,) = rule.decorator_list
    if not isinstance(kind, ast.Call):
        return rule
    options = [option for option in kind.keywords if option.arg not in FACTS or option.arg == "structure"]
    shorter = ast.Call(kind.func, [], options) if options else kind.func
    return ast.FunctionDef(
        rule.name, rule.args, rule.body, [shorter], rule.returns, lineno=rule.lineno, col_offset=0, type_comment=None
    )
