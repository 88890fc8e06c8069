"""Pauses are tried on every level: the rules alone, by calls, over HTTP, under load, and in the examples that readers copy."""

from __future__ import annotations

import re

import pytest

from support.repository import ROOT

LEVELS = ("machine", "api", "app", "bench", "examples")


@pytest.mark.row("R-143")
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_defends_rows_about_pauses(level: str) -> None:
    """On each level there is a test that names a row about pause and resume."""
    named = [
        each
        for file in (ROOT / "tests" / level).rglob("test_*.py")
        for each in re.findall(r"\"R-\d{3}\"", file.read_text(encoding="utf-8"))
    ]
    assert named
