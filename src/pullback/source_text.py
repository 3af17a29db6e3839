"""Running Python text that was made at run time, so that tracebacks and debuggers show its lines; digests of text.

Whatever in the package compiles text does it here: a traceback looks up the lines of a file, and text that is compiled
under the name of a real file shows lines that have nothing to do with it.
"""

from __future__ import annotations

import linecache
import os
from importlib.util import source_hash
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ast

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def run_text(text: str, name: str, scope: dict[str, Any]) -> dict[str, Any]:
    """Execute `text` in `scope` and return `scope`; tracebacks show its lines.

    `name` says what the text is. Its file is `<name>` in the package's folder, so that whoever looks for the user's own
    frames passes over it; a name in angle brackets is the file as it stands.

    >>> run_text("def twice(x):\\n    return 2 * x", "an example", {})["twice"](3)
    6
    """
    file = name if name.startswith("<") else os.path.join(_FOLDER, f"<{name}>")
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec", dont_inherit=True), scope)
    return scope


_parsed: dict[tuple[str, bytes], ast.Module] = {}


def parse_file(text: str, file: str) -> ast.Module:
    """The syntax of a file that has this text, for readers: nobody may change it.

    The generator reads a file for its kernels, its facts, its names and its C: what it says is the same each time.
    """
    import ast  # few programs need it

    key = file, source_hash(text.encode())
    if key not in _parsed:
        _parsed[key] = ast.parse(text, file)
    return _parsed[key]


def digest_of_text(text: bytes) -> str:
    """A digest of the text of a file; it is the same on every machine with this version of Python."""
    return source_hash(text).hex()


def digest_of_syntax(text: bytes) -> str:
    """A digest of what the text of a file says to Python: comments, docstrings and layout do not change it."""
    import ast  # few programs need it

    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            del body[0]
    return digest_of_text(ast.dump(tree).encode())
