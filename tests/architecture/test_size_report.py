"""The size report counts what a reader reads."""

from __future__ import annotations

from pathlib import Path

from tools import size_report


def test_comments_docstrings_and_blank_lines_are_not_tokens(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""What it is."""\n\n# why\nx = 1\n', encoding="utf-8")
    assert size_report.measure(path) == size_report.Size(lines=3, tokens=3)


def test_report_sums_folders_and_lists_the_largest_files(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "engine.py").write_text("x = 1\ny = 2\n", encoding="utf-8")
    (tmp_path / "errors.py").write_text("z = 3\n", encoding="utf-8")
    rows = [line.split() for line in size_report.report(tmp_path, file_count=1).splitlines()]
    assert ["engine", "2", "6"] in rows
    assert ["total", "3", "9"] in rows
    assert rows[-1] == ["engine/engine.py", "2", "6"]
