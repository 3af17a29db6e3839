"""The report of `explain` as one self-contained page: no script, nothing that is loaded, every text escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from pullback.compiling.kernel_times import Kernel, KernelList
from pullback.report import time_text

_STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.5 system-ui, sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.3em; } h2 { font-size: 1.1em; margin-top: 2em; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25em .75em .25em 0; border-bottom: 1px solid #8884; }
td.number, th.number { text-align: right; white-space: nowrap; }
pre { margin: .5em 0; padding: .75em; overflow-x: auto; background: #8882; font-size: 12px; }
summary { cursor: pointer; } meter { width: 8em; }
"""


def page(explanation: Any) -> str:
    """A page that tells what an Explanation holds."""
    title = f"compile: {explanation.name}"
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p>{html.escape(explanation.summary)}</p>",
        _section("Segments", _segments(explanation.segments)),
        _section("What ends a segment" if explanation.segments else "Breaks", _breaks(explanation.break_reasons)),
        _section("Recompilations", _items(explanation.recompilations)),
        *[_section(listed.title, _kernels(listed)) for listed in explanation.kernels],
        _section("Kept for backward", _items(explanation.kept)),
    ]
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body></html>\n"
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{html.escape(title)}</h2>\n{content}</section>" if content else ""


def _items(lines: Iterable[str]) -> str:
    found = "".join(f"<li>{html.escape(line.strip())}</li>" for line in lines)
    return f"<ul>{found}</ul>" if found else ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are escaped already; the columns before the last hold numbers."""
    kinds = [" class='number'"] * (len(columns) - 1) + [""]
    head = "".join(f"<th{kind}>{html.escape(column)}</th>" for column, kind in zip(columns, kinds, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, kinds, strict=True)) + "</tr>\n"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>" if body else ""


def _segments(segments: Sequence[Any]) -> str:
    return _table(
        ("first line", "last line", "kernels"), [[str(s.first), str(s.last), str(s.kernels)] for s in segments]
    )


def _breaks(stops: Sequence[Any]) -> str:
    rows = []
    for number, stop in enumerate(stops, 1):
        source = "" if stop.source is None else f"<br><code>{html.escape(stop.source.describe())}</code>"
        rows.append([str(number), html.escape(stop.reason) + source])
    return _table(("", "reason, and line"), rows)


def _kernels(listed: KernelList) -> str:
    total = sum(kernel.seconds or 0.0 for kernel in listed.kernels)
    rows = [_kernel(number, kernel, total) for number, kernel in enumerate(listed.kernels, 1)]
    told = f"<p>{html.escape(time_text(total * 1e6))} in all</p>" if total else ""
    return told + (_table(("", "time", "share", "kernel"), rows) or "<p>nothing</p>")


def _kernel(number: int, kernel: Kernel, total: float) -> list[str]:
    title = html.escape(kernel.title)
    text = (
        f"<details><summary>{title}</summary><pre>{html.escape(kernel.text)}</pre></details>" if kernel.text else title
    )
    if kernel.seconds is None:
        return [str(number), "not measured", "", text]
    share = kernel.seconds / total if total else 0.0
    return [str(number), time_text(kernel.seconds * 1e6), f"<meter value='{share:.3f}'></meter> {share:.0%}", text]
