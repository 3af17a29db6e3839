"""Formats generated Python with the one version of ruff that pyproject.toml names, and remembers what it made.

Starting the formatter takes longer than writing the text, so formatted text is kept in build/codegen under a digest of
all it depends on: a change of one family formats one file.
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "build" / "codegen"


def format_python(text: str, path: Path, cache: Path = CACHE) -> str:
    """The text of the Python file `path`, formatted."""
    key = "\0".join([*_settings(), path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name, text])
    kept = cache / hashlib.sha256(key.encode()).hexdigest()
    if kept.exists():
        return kept.read_text(encoding="utf-8")
    text = _run_ruff(["format", "-q", "--stdin-filename", str(path), "-"], text, path.name)
    cache.mkdir(parents=True, exist_ok=True)
    unfinished = kept.with_suffix(".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(kept)
    return text


def drop_old(count: int, cache: Path = CACHE) -> None:
    """Keep the `count` texts that were made last."""
    made = sorted(cache.glob("*"), key=lambda file: file.stat().st_mtime) if cache.exists() else []
    for file in made[: max(0, len(made) - count)]:
        file.unlink(missing_ok=True)


@functools.cache
def _settings() -> tuple[str, str]:
    """The formatter's version, which must be the pinned one, and the project's settings for it."""
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = pinned_version(settings)
    found = _run_ruff(["--version"], "", "anything").split()[-1]
    if found != wanted:
        raise RuntimeError(
            f"generated code is formatted by ruff {wanted}, and this is {found}: pip install -e '.[dev]'"
        )
    return found, repr(tomllib.loads(settings)["tool"]["ruff"])


def pinned_version(settings: str) -> str:
    """The version of ruff that the text of pyproject.toml asks for."""
    (pin,) = [r for r in tomllib.loads(settings)["project"]["optional-dependencies"]["dev"] if r.startswith("ruff")]
    return str(pin.partition("==")[2])


def _run_ruff(arguments: list[str], text: str, name: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout:
        raise RuntimeError(f"ruff could not format {name}: {done.stderr}")
    return done.stdout
