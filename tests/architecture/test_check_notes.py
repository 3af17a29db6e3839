"""The note checker finds references that lead nowhere, and finds none in the source as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_notes


def objections_to(folder: Path, text: str) -> list[str]:
    path = folder / "module.py"
    path.write_text(text, encoding="utf-8")
    return list(check_notes.objections(check_notes.read_notes([path])))


def test_reference_to_a_written_note_is_accepted(tmp_path: Path) -> None:
    assert objections_to(tmp_path, "# Note [Sequence numbers]\n# They grow.\n\n# See Note [Sequence numbers].\n") == []


def test_reference_without_a_note_is_refused(tmp_path: Path) -> None:
    (line,) = objections_to(tmp_path, "x = 1  # See Note [Sequence numbers].\n")
    assert "module.py:1: no note is called 'Sequence numbers'" in line


def test_reference_inside_a_docstring_is_found(tmp_path: Path) -> None:
    (line,) = objections_to(tmp_path, '"""What it does; Note [Missing] explains it."""\n')
    assert "'Missing'" in line


def test_note_written_twice_is_refused(tmp_path: Path) -> None:
    (line,) = objections_to(tmp_path, "# Note [Views]\n\n# Note [Views]\n")
    assert "module.py:3: the note 'Views' is already written at" in line


def test_main_fails_when_there_is_an_objection(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "guide.md").write_text("See Note [Missing].\n", encoding="utf-8")
    assert check_notes.main([str(tmp_path)]) == 1
    assert "guide.md:1" in capsys.readouterr().out


def test_references_in_the_source_resolve(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_notes.main([]) == 0, capsys.readouterr().out
