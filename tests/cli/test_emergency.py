"""The page for a bad definition, typed in word for word."""

from __future__ import annotations

import shlex

import pytest

from cli.calling import Standfast
from standfast import Saga
from standfast.cli.exit_codes import Exit
from standfast.testing import ManualEngine
from support.repository import ROOT

_PAGE = ROOT / "docs" / "how-to" / "when-something-is-wrong.md"


def typed() -> list[list[str]]:
    """The commands of the page, in order."""
    _, _, part = _PAGE.read_text().partition("## A bad definition was published\n")
    part, _, _ = part.partition("\n## ")
    return [shlex.split(line)[1:] for line in part.splitlines() if line.startswith("    standfast ")]


@pytest.mark.row("F-004", "F-062")
@pytest.mark.parametrize("versions", [(7,), (7, 8)])
def test_the_page_for_a_bad_definition_works_typed_in(based: Standfast, versions: tuple[int, ...]) -> None:
    """Each command is accepted, whether another version is in use or not: nothing begins, nothing goes on, and then all is undone, once."""
    engine, calls = ManualEngine(based.url, is_alone=False), list[str]()
    engine.register(
        Saga("pay")
        .step("charge", lambda: calls.append("charge"))
        .on_failure("refund", lambda: calls.append("refund"))
        .wait_for("w", "done")
        .build()
    )
    for version in versions:
        engine.register(Saga("order", version=version).call("pay", "pay").build())
    run = engine.start("order", {}, version=7)
    engine.drain()
    for words in typed():
        if words[0] == "batch":
            assert (run.describe().status, calls) == ("running", ["charge"])
        based(*words)
        engine.drain()
        if words[:2] == ["definitions", "archive"]:
            based("start", "order", "--version", "7", code=Exit.REFUSED)
    assert [words[0] for words in typed()] == ["definitions", "pauses", "list", "pauses", "batch"]
    engine.advance(seconds=60)
    assert (run.describe().status, calls) == ("cancelled", ["charge", "refund"])
    assert engine.dead_letters.list() == []
    engine.stop()
