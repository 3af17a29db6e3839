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


def test_measures_count_tables_generated_lines_and_checks_in_kernels(tmp_path: Path) -> None:
    texts = {
        "derivatives/family.py": "".join(f"@general\ndef {name}(grad): ...\n" for name in "abcde"),
        "functions/names.py": "",
        "native/sums.c": "int x;\nint y;\n",
        "generated/family.py": "x = 1\n",
        "kernels/family.py": "def a(input):\n    raise ValueError\n\n\ndef b(input):\n    raise out_of_range('b')\n",
        "checks/elements.py": "def out_of_range(message): ...\n",
        "formulas/family.py": "def a(input): ...\n\n\ndef a_back(grad): ...\n",
        "drawer.py": '_KNOWN = {"a", "b", "c", "d", "e"}\n',
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert size_report.measures(tmp_path) == {
        "tables that list operations by name": "1 in 1 files",
        "names in these tables": "5",
        "lines of generated Python": "1",
        "lines of C by hand": "2",
        "kernels that check their arguments": "1 raises in 1 files",
        "raises for what only elements tell": "1: 1 out of range",
        "formulas with a twin kernel": "1 of 2",
        "reasons of twins": "1 without a reason",
        "entries of src/pullback": "8",
    }


def test_every_formula_beside_a_kernel_of_its_name_says_why() -> None:
    reasons = size_report.twins_by_reason(Path(__file__).parents[2] / "src" / "pullback")
    assert set(reasons) == {"compiled", "recorded", "passes", "kernel"}


def test_the_page_shows_what_make_size_prints() -> None:
    page = (Path(__file__).parents[2] / "docs" / "size.md").read_text(encoding="utf-8")
    now = size_report.measures(Path(__file__).parents[2] / "src" / "pullback")
    assert f"| {now['tables that list operations by name']} |" in page
    assert f"| {now['names in these tables']} |" in page
