"""What commands print: for a person at a terminal, in a pipe, and for programs."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.flows import ORDERS
from cli.stage import Stage
from standfast.cli import main
from standfast.cli.exit_codes import Exit
from standfast.cli.output import aligned, cell, coloured
from support.repository import ROOT


def seen(*arguments: str, code: int = 0, **variables: str) -> str:
    """What a person sees who calls the command at a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TERM": "xterm-256color", "COLUMNS": "200"}
    environment.pop("NO_COLOR", None)
    environment.update(variables)
    done = subprocess.Popen([sys.executable, "-m", "standfast.cli", *arguments], stdout=theirs, env=environment)
    os.close(theirs)
    told = b""
    try:
        while part := os.read(ours, 65536):
            told += part
    except OSError:  # Linux tells so that nobody writes any more.
        pass
    os.close(ours)
    assert done.wait(timeout=60) == code
    return told.decode()


def test_a_terminal_gets_a_table_in_colours() -> None:
    """A pipe gets none."""
    told = seen("template", "list")
    assert "\x1b[1m" in told
    assert "order_approval" in told


def test_how_something_stands_has_its_colour_for_who_looks_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has failed is red on a terminal; other words, and all of them in a pipe, are as they are."""
    assert coloured("failed") == "failed"
    monkeypatch.setattr("standfast.cli.output.is_terminal", lambda: True)
    assert [coloured(each) for each in ("failed", "holidays")] == ["\x1b[31mfailed\x1b[0m", "holidays"]


def test_a_narrow_terminal_gets_lines_and_who_wants_no_colours_none(tmp_path: Path) -> None:
    """Where a table would break words they stand below one another; NO_COLOR is heeded by whatever is printed."""
    (tmp_path / "orders.yaml").write_text(ORDERS, encoding="utf-8")
    lines = seen("template", "list", COLUMNS="20", NO_COLOR="1").splitlines()
    assert "NAME         order_approval" in lines
    assert [each for each in lines if "\x1b[3" in each] == []
    place = ("--database", f"sqlite:///{tmp_path / 'a.db'}")
    seen("migrate", f"sqlite:///{tmp_path / 'a.db'}")
    seen("publish", "orders.yaml", *place)
    changed = ORDERS.replace("Review", "Look")
    (tmp_path / "orders.yaml").write_text(changed, encoding="utf-8")
    assert "\x1b[" in seen("diff", "orders.yaml", *place, code=Exit.NO)
    assert "\x1b[" not in seen("diff", "orders.yaml", *place, code=Exit.NO, NO_COLOR="1")


def test_no_word_of_a_list_is_broken_at_a_terminal_of_eighty_columns(tmp_path: Path) -> None:
    """The usual width: what has no room beside the id of a run stands below it, and times, states and heads stay what they are."""
    place = ("--database", f"sqlite:///{tmp_path / 'a.db'}")
    (tmp_path / "orders.yaml").write_text(ORDERS, encoding="utf-8")
    for words in (("migrate",), ("publish", str(tmp_path / "orders.yaml")), ("start", "orders.approval")):
        seen(*words, *place)
    for columns in ("40", "80", "110", "200"):
        told = seen("list", *place, COLUMNS=columns, NO_COLOR="1").replace("\x1b[1m", "").replace("\x1b[0m", "")
        assert {"WORKFLOW", "STARTED", "orders.approval", "active", "UPDATED"} <= set(told.split())
    assert "STATUS    active" in seen("list", *place, COLUMNS="80", NO_COLOR="1")


def test_columns_stand_below_one_another() -> None:
    """Long texts are cut, and lines do not end in blanks."""
    lines = aligned([["A", "B", "C"], ["long", "x" * 100, ""]])
    assert lines == ["A     B" + " " * 61 + "C", "long  " + "x" * 59 + "…"]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, ""),
        (True, "yes"),
        (datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2026-01-02 03:04:05Z"),
        ({"a": [1, None]}, '{"a": [1, null]}'),
        ("plain", "plain"),
        ("\x1b[2J", "\\u001b[2J"),
        (7, "7"),
    ],
)
def test_a_value_is_a_line_of_text(value: object, told: str) -> None:
    """Whatever it is; what could tell a terminal what to do is escaped."""
    assert cell(value) == told


def test_the_terminal_is_safe_from_stored_data(stage: Stage) -> None:
    """Whoever starts a run cannot write to the screen of whoever looks at it."""
    run = str(stage.engine.start("import", {"row": "\x1b[2J\u202e"}, key="\u202ek", comment="\x1b[2J").id)
    stage.engine.drain()
    for command in (
        ["list"],
        ["show", run],
        ["history", run],
        ["why", run],
        ["dlq", "list"],
        ["watch", run, "--timeout", "0s"],
    ):
        told = stage.standfast(*command, code=Exit.UNAVAILABLE if command[0] == "watch" else Exit.DONE).output
        assert not set("\x1b\u202e\x9b") & set(told)


def test_what_the_terminal_has_no_letters_for_is_spelt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal, or a pipe, that knows few letters ends no command, and a closed one is told nothing."""
    told = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(told, encoding="latin-1"))
    main(["seals", "verify", "--help"], standalone_mode=False)
    sys.stdout.flush()
    assert b"\\u2026" in told.getvalue()
    monkeypatch.setattr(sys, "stdout", None)
    main(["template", "list"], standalone_mode=False)


def test_no_room_for_what_is_printed_is_no_mistake_of_the_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever has a full disk is told so, and not to report it."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["template", "list"], standalone_mode=False) == Exit.UNAVAILABLE
        monkeypatch.undo()
        with suppress(OSError):
            full.close()
    assert "cannot be written: No space left" in capsys.readouterr().err
