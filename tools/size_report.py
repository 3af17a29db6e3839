"""Prints how large the source is: lines and Python tokens per file, and per folder, and what docs/size.md keeps an eye on.

Tokens say more than lines: comments, docstrings and layout do not count. Run as
`python -m tools.size_report [--files N] [folder]`.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from tools import check_tables

IGNORED_TOKENS = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}


@dataclass(frozen=True)
class Size:
    """The size of a piece of source."""

    lines: int = 0
    tokens: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.lines + other.lines, self.tokens + other.tokens)


def measure(path: Path) -> Size:
    """Count the lines of a file that are not blank and the tokens that mean something."""
    lines = sum(1 for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    with tokenize.open(path) as file:
        tokens = list(tokenize.generate_tokens(file.readline))
    return Size(lines, sum(1 for token, before in zip(tokens, [None, *tokens], strict=False) if _counts(token, before)))


def _counts(token: tokenize.TokenInfo, before: tokenize.TokenInfo | None) -> bool:
    starts_statement = before is None or before.type in IGNORED_TOKENS
    is_docstring = token.type == tokenize.STRING and starts_statement
    return token.type not in IGNORED_TOKENS and token.type != tokenize.ENDMARKER and not is_docstring


def report(folder: Path, file_count: int) -> str:
    """Return the table of folders and of the largest files below `folder`."""
    sizes = {path.relative_to(folder): measure(path) for path in sorted(folder.rglob("*.py"))}
    by_part: dict[str, Size] = defaultdict(Size)
    for path, size in sizes.items():
        by_part[path.parts[0]] += size
    total = sum(sizes.values(), Size())
    largest = sorted(sizes.items(), key=lambda item: -item[1].tokens)[:file_count]
    rows = [_row("folder", "lines", "tokens"), *(_row(name, s.lines, s.tokens) for name, s in sorted(by_part.items()))]
    rows += [_row("total", total.lines, total.tokens), "", _row("largest files", "lines", "tokens")]
    rows += [_row(path.as_posix(), size.lines, size.tokens) for path, size in largest]
    return "\n".join(rows)


def measures(folder: Path) -> dict[str, str]:
    """The numbers of docs/size.md, by what they count."""
    tables = [table for table in check_tables.tables(folder) if table.key not in check_tables.VOCABULARIES]
    formulas, twins = _functions(folder / "formulas"), twins_by_reason(folder)
    raises = kernel_raises(folder)
    reasons = _functions(folder / "checks", "elements.py")
    checking = [file for file, reason in raises if reason not in reasons]
    found = Counter(reason.replace("_", " ") for _, reason in raises if reason in reasons)
    return {
        "tables that list operations by name": f"{len(tables)} in {len({table.path for table in tables})} files",
        "names in these tables": f"{sum(len(table.names) for table in tables):,}",
        "lines of generated Python": f"{sum(_lines(path) for path in (folder / 'generated').glob('*.py')):,}",
        "lines of C by hand": f"{sum(map(_lines, (folder / 'native').glob('*.[ch]'))):,}",
        "kernels that check their arguments": f"{len(checking)} raises in {len(set(checking))} files",
        "raises for what only elements tell": f"{found.total()}: {', '.join(f'{n} {r}' for r, n in found.most_common())}",
        "formulas with a twin kernel": f"{twins.total()} of {len(formulas)}",
        "reasons of twins": ", ".join(f"{count} {reason}" for reason, count in twins.most_common()),
        "entries of src/pullback": str(sum(path.name != "__pycache__" for path in folder.iterdir())),
    }


def kernel_raises(folder: Path) -> list[tuple[str, str]]:
    """The file of each raise in a kernel, and the name of what it calls for the exception."""
    found = []
    for path in sorted((folder / "kernels").glob("*.py")):
        if path.name != "__init__.py":
            texts = re.findall(r"^\s+raise (\w*)", path.read_text(encoding="utf-8"), re.MULTILINE)
            found += [(path.name, text) for text in texts]
    return found


def twins_by_reason(folder: Path) -> Counter[str]:
    """How many formulas have a kernel of their name, by why: it is compiled, or what is declared of the formula."""
    formulas, kernels = _decorators(folder / "formulas"), _decorators(folder / "kernels")
    return Counter(
        "compiled" if "native" in kernels[name] else (re.findall(r"twin='(\w+)'", marks) or ["without a reason"])[0]
        for name, marks in formulas.items()
        if name in kernels
    )


def _decorators(folder: Path) -> dict[str, str]:
    """The public functions in the files of a folder, with the text of what decorates them."""
    return {
        statement.name: " ".join(map(ast.unparse, statement.decorator_list))
        for path in sorted(folder.glob("*.py"))
        for statement in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(statement, ast.FunctionDef) and not statement.name.startswith("_")
    }


def _functions(folder: Path, pattern: str = "*.py") -> set[str]:
    """The names of the functions in the files of a folder."""
    texts = [path.read_text(encoding="utf-8") for path in folder.glob(pattern)]
    return {name for text in texts for name in re.findall(r"^def (?!_)(\w+)", text, re.MULTILINE)}


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _row(name: str, lines: object, tokens: object) -> str:
    return f"{name:<48} {lines:>8} {tokens:>8}"


def main(arguments: list[str]) -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(description="Print lines and tokens per folder and of the largest files.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent.parent / "src" / "pullback")
    parser.add_argument("--files", type=int, default=20, help="how many of the largest files to list")
    options = parser.parse_args(arguments)
    print(report(options.folder, options.files))
    print()
    for name, value in measures(options.folder).items():
        print(f"{name:<40} {value:>24}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
