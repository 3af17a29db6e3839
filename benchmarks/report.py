"""What was measured, as a table for the terminal and as `docs/performance.md` with its plot."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.machine import sentence

Row = dict[str, Any]

UNITS: dict[str, Callable[[float], str]] = {
    "time": lambda value: f"{value * 1e6:.0f} us" if value < 1e-3 else f"{value * 1e3:.3g} ms",
    "memory": lambda value: f"{value / 1e6:.0f} MB",
    "size": lambda value: f"{value / 1e6:.0f} MB",
    "instructions": lambda value: f"{value / 1e3:.4g} k",
}


LONGER_ON_THREADS = 1.5
"""A time on several threads of more than this many times that on one is not PyTorch's but the machine's."""


def geometric_mean(rows: list[Row]) -> float:
    """Of the ratios of the rows that measure work."""
    work = [row for row in rows if row["measures"] in ("time", "instructions") and not row.get("distorted")]
    logarithms = [math.log(row["ratio"]) for row in work if row["workload"] != "import"]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan


def mark_distorted(rows: list[Row]) -> None:
    """Mark what took PyTorch longer on several threads than on one: its threads waited for cores that others used."""
    alone = {row["workload"]: row for row in rows if row["threads"] == 1}
    for row in rows:
        single = alone.get(row["workload"], row)
        row["distorted"] = row["measures"] == "time" and row["torch"] > LONGER_ON_THREADS * single["torch"]


def line(row: Row) -> str:
    """One row for the terminal."""
    show = UNITS[row["measures"]]
    low, high = row["spread"]
    return (
        f"{row['workload']:44} {row['threads']:>2} {show(row['torch']):>9} {show(row['pullback']):>9} "
        f"{row['ratio']:6.2f} ({low:.2f}-{high:.2f})"
    )


def table(rows: list[Row]) -> list[str]:
    """The rows of one number of threads as a table in Markdown."""
    lines = ["| workload | PyTorch | pullback | ratio | spread | goal |", "|---|--:|--:|--:|--:|--:|"]
    for row in rows:
        show = UNITS[row["measures"]]
        low, high = row["spread"]
        ratio = f"**{row['ratio']:.2f}**" if row["ratio"] > 1 else f"{row['ratio']:.2f}"
        ratio = "distorted" if row.get("distorted") else ratio
        lines.append(
            f"| {row['workload']} | {show(row['torch'])} | {show(row['pullback'])} | {ratio} "
            f"| {low:.2f} to {high:.2f} | {row['goal']:.2g} |"
        )
    return lines


def load_sentence(load: dict[str, Any]) -> str:
    """How busy the machine was, in words."""
    before, after = load["load_average_before"][0], load["load_average_after"][0]
    foreign = load["foreign_cores"]
    others = "an unknown number of cores" if foreign is None else f"{foreign:.1f} cores on average"
    verdict = (
        "The machine was quiet."
        if foreign is not None and foreign < 0.1
        else "Foreign load was present: trust the minima on one thread, not the spread, and two threads least."
    )
    return (
        f"Other processes used {others} during the {load['seconds']:.0f} s of measuring; the load average over a minute "
        f"was {before:.1f} before and {after:.1f} after. {verdict}"
    )


LEFT, WIDTH, HEIGHT, VALUES = 330, 420, 20, 56
"""Of the plot: the room for names, the length and height of a bar's row, the room for values."""
LOWEST, HIGHEST = 0.04, 4.0
SECTIONS = {
    "time": "time relative to PyTorch eager",
    "memory": "peak memory relative to PyTorch eager",
    "size": "size on disk relative to PyTorch",
    "instructions": "instructions relative to PyTorch eager",
}


def plot(rows: list[Row]) -> str:
    """The ratios as bars on a logarithmic axis, as an SVG picture: a section for each thing that is measured.

    Values stand in a column of their own, so that the marks of goals do not run through them.
    """
    parts, y = _legend(), 48
    for measures, title in SECTIONS.items():
        section = [row for row in rows if row["measures"] == measures]
        if section:
            parts += _section(title, section, y)
            y += HEIGHT * (len(section) + 3)
    size = f'width="{LEFT + WIDTH + VALUES + 16}" height="{y - 12}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""])


def _place(ratio: float) -> float:
    """Where a ratio stands on the axis."""
    share = math.log(min(max(ratio, LOWEST), HIGHEST) / LOWEST) / math.log(HIGHEST / LOWEST)
    return LEFT + WIDTH * share


def _colour(ratio: float) -> str:
    return "#c0504d" if ratio > 1 else "#4f81bd"


def _legend() -> list[str]:
    x = LEFT
    return [
        f'<rect x="{x}" y="8" width="16" height="12" fill="{_colour(0.5)}"/>',
        f'<text x="{x + 22}" y="18">less than PyTorch</text>',
        f'<rect x="{x + 140}" y="8" width="16" height="12" fill="{_colour(2)}"/><text x="{x + 162}" y="18">more</text>',
        f'<path d="M{x + 216},6 v16" stroke="black" stroke-width="2"/><text x="{x + 224}" y="18">goal</text>',
        f'<text x="{x + 276}" y="18" fill="#555">shorter is better</text>',
    ]


def _section(title: str, rows: list[Row], top: int) -> list[str]:
    """One set of bars with its title and axis."""
    bottom = top + 8 + HEIGHT * len(rows)
    parts = [f'<text x="{LEFT}" y="{top}" font-weight="bold">{title}</text>']
    for tick in (0.05, 0.1, 0.2, 0.5, 1, 2, 4):
        x, colour = _place(tick), "#333" if tick == 1 else "#ddd"
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top + 6}" y2="{bottom}" stroke="{colour}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle" fill="#555">{tick:g}</text>')
    for nr, row in enumerate(rows):
        y = top + 10 + HEIGHT * nr
        length, goal = _place(row["ratio"]) - LEFT, _place(row["goal"])
        parts += [
            f'<text x="{LEFT - 6}" y="{y + 12}" text-anchor="end">{row["workload"]}</text>',
            f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{HEIGHT - 5}" fill="{_colour(row["ratio"])}"/>',
            f'<line x1="{goal:.1f}" x2="{goal:.1f}" y1="{y - 2}" y2="{y + HEIGHT - 3}" stroke="#000" stroke-width="2"/>',
            f'<text x="{LEFT + WIDTH + VALUES}" y="{y + 12}" text-anchor="end">{row["ratio"]:.2f}</text>',
        ]
    return parts


def document(results: dict[str, Any], template: Path) -> str:
    """The page: the hand-written text with the measured part put between its two marks."""
    text = template.read_text()
    start, end = "<!-- measured -->", "<!-- end of measured -->"
    before, _, rest = text.partition(start)
    after = rest.partition(end)[2]
    return f"{before}{start}\n{_measured(results)}\n{end}{after}"


def _startup_sentence(rows: list[Row]) -> list[str]:
    """What NumPy alone costs, of which pullback can be no less."""
    found = {row["workload"]: row for row in rows if "numpy" in row}
    if not found:
        return []
    show = [f"{name} {UNITS[row['measures']](row['numpy'])}" for name, row in found.items()]
    return ["", f"NumPy alone: {'; '.join(show)}."]


def _measured(results: dict[str, Any]) -> str:
    machine = results["machine"]
    mark_distorted(results["rows"])
    lines = [
        f"{sentence(machine)} {load_sentence(results['load'])}",
        "",
        "```",
        *machine["pullback"],
        "```",
        *_startup_sentence(results["rows"]),
    ]
    for threads in sorted({row["threads"] for row in results["rows"]}):
        rows = [row for row in results["rows"] if row["threads"] == threads]
        above = sum(row["ratio"] > 1 for row in rows)
        left_out = sum(bool(row.get("distorted")) for row in rows)
        distorted = f" Left out: {left_out} in which PyTorch was slower than on one thread." if left_out else ""
        lines += [
            "",
            f"### {threads} thread{'s' if threads > 1 else ''}",
            "",
            f"Geometric mean of the timed workloads: **{geometric_mean(rows):.2f}**; {above} of {len(rows)} rows above 1."
            f"{distorted}",
            "",
            *table(rows),
        ]
    return "\n".join(lines)
