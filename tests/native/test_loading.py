"""The extension module is used only where it fits the sources."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from pullback import native
from pullback.source_text import digest_of_syntax, digest_of_text


def test_kernels_of_other_sources_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULLBACK_NATIVE", raising=False)
    monkeypatch.setattr(native, "import_module", ModuleType)
    with pytest.warns(UserWarning, match="were compiled from other sources, NumPy's are used"):
        assert native._load() is None


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the package's, with one source, and an extension that was made of it."""
    source = tmp_path / "kernels" / "activation.py"
    source.parent.mkdir()
    source.write_text('"""Activations."""\n\n\ndef relu(input):\n    """Cut off."""\n    return np.maximum(input, 0)\n')
    extension = ModuleType("kernels")
    text = source.read_bytes()
    sources = f"kernels/activation.py {digest_of_text(text)} {digest_of_syntax(text)}\n"
    vars(extension).update(INTERFACE=native._INTERFACE, SOURCES=sources)
    monkeypatch.delenv("PULLBACK_NATIVE", raising=False)
    monkeypatch.setattr(native, "__file__", str(tmp_path / "native" / "__init__.py"))
    monkeypatch.setattr(native, "import_module", lambda name: extension)
    return tmp_path


def test_kernels_of_this_text_are_used(package: Path) -> None:
    assert native._load() is not None


def test_kernels_of_another_text_are_not_used(package: Path) -> None:
    source = package / "kernels" / "activation.py"
    source.write_text(source.read_text().replace("0)", "1)"))
    with pytest.warns(UserWarning, match=r"compiled from another text of kernels/activation.py, NumPy's are used"):
        assert native._load() is None


def test_comments_and_docstrings_may_change_without_a_build(package: Path) -> None:
    source = package / "kernels" / "activation.py"
    source.write_text("# why\n" + source.read_text().replace("Cut off.", "Cut off what is below zero."))
    assert native._load() is not None


def test_kernels_are_used_where_the_package_came_without_sources(package: Path) -> None:
    (package / "kernels" / "activation.py").unlink()
    assert native._load() is not None


def test_the_extension_notes_the_files_that_it_was_rendered_from() -> None:
    if native.extension is None:
        pytest.skip("the extension is not built")
    noted = {line.split()[0] for line in native.extension.SOURCES.splitlines()}
    assert {"kernels/activation.py", "kernels/optimizer_steps.py", "derivatives/exponential.py"} <= noted


def test_kernels_that_do_not_load_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> ModuleType:
        raise ImportError(f"{name}: undefined symbol")

    monkeypatch.delenv("PULLBACK_NATIVE", raising=False)
    monkeypatch.setattr(native, "import_module", fail)
    with pytest.warns(UserWarning, match=r"do not load, NumPy's are used: pullback.native.kernels: undefined symbol"):
        assert native._load() is None
