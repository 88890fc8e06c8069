"""The documentation site: what it shows, and that nothing is forgotten. `dev.py docs --site` builds it, strictly."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support.repository import ROOT

DOCS = ROOT / "docs"
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def named(part: object) -> Iterator[str]:
    """The pages that a part of the navigation names."""
    match part:
        case str():
            yield part
        case list() | dict():
            for each in part if isinstance(part, list) else part.values():
                yield from named(each)
        case _:
            raise AssertionError(part)


def test_a_way_leads_to_every_page() -> None:
    """Each page is named once by the navigation in mkdocs.yml; decisions have a page that lists them."""
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    listed = (DOCS / "internals/decisions.md").read_text(encoding="utf-8")
    decisions = {page for page in pages if page.startswith("adr/")}
    assert {page for page in decisions if f"](../{page})" not in listed} == set()
    assert Counter(named(SITE["nav"])) == Counter(set(pages) - decisions)


def test_no_page_leads_out_of_the_site() -> None:
    """A link to a file of the repository that is no page would end the building of the site: such files are named, not linked."""
    links = [
        (page.relative_to(DOCS).as_posix(), link, (page.parent / link).resolve())
        for page in DOCS.rglob("*.md")
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    ]
    assert [(page, link) for page, link, target in links if not target.is_relative_to(DOCS)] == []


def test_the_site_is_built_strictly_and_fetches_nothing() -> None:
    """What would only be a warning ends the building of it, and a reader's browser asks nobody else."""
    assert SITE["strict"] is True
    assert {each for part in SITE["validation"].values() for each in part.values()} == {"warn"}
    assert SITE["theme"]["font"] is False
    assert "extra_javascript" not in SITE


@pytest.mark.long
def test_the_site_is_built(tmp_path: Path) -> None:
    """All pages become a site, without a warning."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").exists()
