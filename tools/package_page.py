"""What a package index shows of the project: the README with links into the repository, and the project's addresses.

The address is that of the repository in which a release is built; a build elsewhere has none, and leaves the links alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|#|mailto:)([^)\s]+)\)")
PAGES = {"Documentation": "blob/{tag}/docs/index.md", "Changelog": "blob/{tag}/CHANGELOG.md", "Issues": "issues"}


def repository(environment: Mapping[str, str] = os.environ) -> tuple[str, str] | None:
    """The address of the repository and the tag or branch, as a GitHub workflow tells them."""
    if "GITHUB_REPOSITORY" not in environment:
        return None
    server = environment.get("GITHUB_SERVER_URL", "https://github.com")
    return f"{server}/{environment['GITHUB_REPOSITORY']}", environment.get("GITHUB_REF_NAME", "main")


def page_text(readme: Path, place: tuple[str, str] | None) -> str:
    """The text of the README; its relative links lead to the pages and pictures of the repository."""
    text = readme.read_text(encoding="utf-8")
    return text if place is None else with_absolute_links(text, *place)


def with_absolute_links(text: str, address: str, tag: str) -> str:
    """The text with relative links made absolute."""
    return LINK.sub(lambda m: f"{m[1]}{m[2]}({address}/{'raw' if m[1] else 'blob'}/{tag}/{m[3]})", text)


def addresses(place: tuple[str, str] | None) -> dict[str, str]:
    """The project's pages by the names that an index shows."""
    if place is None:
        return {}
    address, tag = place
    return {"Repository": address} | {name: f"{address}/{path.format(tag=tag)}" for name, path in PAGES.items()}
