"""Report: rows of plain data with a title and totals, as text, as HTML and as a dict."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class Report:
    """Rows under named columns, and facts about all of them.

    >>> print(Report("Fruit", ("kind", "bytes"), [{"kind": "apple", "bytes": 2048}], {"bytes": 2048}))
    Fruit
    kind     bytes
    -----  -------
    apple  2.0 KiB
    bytes: 2.0 KiB
    """

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        rows: Iterable[Mapping[str, Any]],
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.title = title
        self.columns = tuple(columns)
        self.rows = [dict(row) for row in rows]
        self.facts = dict(facts or {})

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists, strings and numbers, which JSON can hold."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": _plain(self.rows),
            "facts": _plain(self.facts),
        }

    def text(self, row_limit: int | None = None) -> str:
        """The report as a table; at most `row_limit` rows."""
        shown = self.rows if row_limit is None else self.rows[:row_limit]
        cells = [[cell_text(column, row.get(column)) for column in self.columns] for row in shown]
        widths = [max(map(len, column)) for column in zip(self.columns, *cells, strict=True)]
        right = [any(isinstance(row.get(column), int | float) for row in shown) for column in self.columns]
        table = [list(self.columns), ["-" * width for width in widths], *cells]
        lines = [
            "  ".join(
                cell.rjust(width) if to_right else cell.ljust(width)
                for cell, width, to_right in zip(line, widths, right, strict=True)
            ).rstrip()
            for line in table
        ]
        if len(shown) < len(self.rows):
            lines.append(f"... {len(self.rows) - len(shown)} more")
        return "\n".join([self.title, *lines, *self._fact_lines()])

    def _fact_lines(self) -> list[str]:
        return [f"{name.replace('_', ' ')}: {cell_text(name, value)}" for name, value in self.facts.items()]

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def __len__(self) -> int:
        return len(self.rows)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(column)}</th>" for column in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell_text(c, row.get(c)))}</td>" for c in self.columns) + "</tr>"
            for row in self.rows
        )
        facts = "".join(f"<p>{html.escape(line)}</p>" for line in self._fact_lines())
        return (
            f"<table><caption>{html.escape(self.title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
            f"</table>{facts}"
        )


def lines_html(text: str) -> str:
    """Text whose first line says it and whose further lines explain it, as HTML.

    >>> lines_html("w: detach() cut it off\\n  at train.py:3")
    '<div><p><b>w: detach() cut it off</b></p><p>at train.py:3</p></div>'
    """
    first, *others = [html.escape(line.strip()) for line in text.splitlines()]
    return f"<div><p><b>{first}</b></p>{''.join(f'<p>{line}</p>' for line in others)}</div>"


def cell_text(column: str, value: Any) -> str:
    """One value as it is shown: bytes and seconds with a unit, shares in percent."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        last = column.rpartition("_")[2]
        if last in ("bytes", "memory"):
            return bytes_text(value)
        if last in ("us", "seconds"):
            return time_text(value if last == "us" else value * 1e6)
        if last == "share":
            return f"{value:.2%}"
        return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    if isinstance(value, list | tuple):
        return "x".join(map(str, value)) if all(isinstance(v, int) for v in value) and value else str(value)
    return str(value)


def bytes_text(count: float) -> str:
    """A number of bytes with a unit that suits it.

    >>> bytes_text(3 * 2**20)
    '3.0 MiB'
    """
    unit = "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024:
            break
        count, unit = count / 1024, larger
    return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"


def time_text(microseconds: float) -> str:
    """A time with a unit that suits it.

    >>> time_text(1500)
    '1.500 ms'
    """
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f} s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.3f} ms"
    return f"{microseconds:.3f} us"


def place_text(place: tuple[str, int] | None) -> str | None:
    """A source line as it stands in a table.

    >>> place_text(("/home/me/train.py", 7))
    '/home/me/train.py:7'
    """
    return None if place is None else f"{place[0]}:{place[1]}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
