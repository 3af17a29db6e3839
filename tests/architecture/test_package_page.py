from __future__ import annotations

from pathlib import Path

import pytest

from tools.package_page import LINK, addresses, repository, with_absolute_links

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
RELEASE = {"GITHUB_SERVER_URL": "https://host", "GITHUB_REPOSITORY": "who/what", "GITHUB_REF_NAME": "v1.0"}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_relative_links_lead_to_files(page: Path) -> None:
    targets = [match[3].partition("#")[0] for match in LINK.finditer(page.read_text(encoding="utf-8"))]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_links_of_a_release_lead_into_the_repository() -> None:
    place = repository(RELEASE)
    assert place == ("https://host/who/what", "v1.0")
    text = "[a](docs/a.md#b), ![c](d.png), [e](https://e), [f](#g)"
    assert with_absolute_links(text, *place) == (
        "[a](https://host/who/what/blob/v1.0/docs/a.md#b), ![c](https://host/who/what/raw/v1.0/d.png), "
        "[e](https://e), [f](#g)"
    )


def test_addresses_of_a_release_are_those_of_its_repository() -> None:
    assert addresses(repository(RELEASE)) == {
        "Repository": "https://host/who/what",
        "Documentation": "https://host/who/what/blob/v1.0/docs/index.md",
        "Changelog": "https://host/who/what/blob/v1.0/CHANGELOG.md",
        "Issues": "https://host/who/what/issues",
    }


def test_a_build_outside_of_a_workflow_has_no_addresses() -> None:
    assert addresses(repository({})) == {}
