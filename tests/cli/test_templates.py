"""`standfast template`: what comes with the package, listed, shown, played and copied."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

from cli.calling import Standfast
from standfast.cli import main
from standfast.cli.develop.templates import names
from standfast.cli.exit_codes import Exit


def test_all_templates_are_listed(standfast: Standfast) -> None:
    """With the workflow, and what a program has to do for it."""
    items = standfast.json("template", "list")["items"]
    assert isinstance(items, list)
    assert [each["name"] for each in items] == names()
    assert {each["name"] for each in items} >= {"order_approval", "settlement", "user_onboarding"}
    assert all(each["operations"] and each["description"] for each in items)
    assert "orders.approval" in standfast("template", "list").stdout


def test_a_template_is_shown_as_it_is(standfast: Standfast) -> None:
    """Its text, which is valid; and with what is known of it for programs."""
    text = standfast("template", "show", "order_approval").stdout
    assert standfast("validate", "-", stdin=text).stdout == "standard input is valid: 1 workflow\n"
    assert standfast.json("template", "show", "order_approval")["text"] == text


def test_a_template_is_copied_to_begin_from(standfast: Standfast) -> None:
    """A file that is there is not written over unless one says so."""
    standfast("template", "copy", "settlement")
    standfast("template", "copy", "settlement", "pay.yaml")
    assert Path("settlement.yaml").read_text() == Path("pay.yaml").read_text()
    Path("pay.yaml").write_text("mine")
    assert "give --force" in standfast("template", "copy", "settlement", "pay.yaml", code=Exit.WRONG).stderr
    assert Path("pay.yaml").read_text() == "mine"
    standfast("template", "copy", "settlement", "pay.yaml", "--force")
    assert standfast("validate", "pay.yaml").exit_code == Exit.DONE
    assert "cannot be written" in standfast("template", "copy", "settlement", "no/such.yaml", code=Exit.WRONG).stderr


@pytest.mark.parametrize("command", ["show", "run", "copy"])
@pytest.mark.parametrize("name", ["setlement", "../settlement", "", "zzz"])
def test_an_unknown_template_is_answered_with_those_that_there_are(
    standfast: Standfast, command: str, name: str
) -> None:
    """And nothing outside of the package is read."""
    told = standfast("template", command, name, code=Exit.NOT_FOUND).stderr
    assert "settlement" in told
    assert name != "setlement" or "did you mean 'settlement'?" in told


def test_a_template_is_played(standfast: Standfast) -> None:
    """What happens is said by options: events with their input, time, and what operations answer."""
    told = standfast.json(
        "template", "run", "settlement", "--do", "approved", "--do", "+6d", "--do", "resolved",
        "--answer", 'settlement.compute={"total_cents": 5, "payments": 1}',
    )  # fmt: skip
    instance, trail = told["instance"], told["trail"]
    assert isinstance(instance, dict)
    assert isinstance(trail, list)
    assert (instance["status"], instance["outcome"]) == ("completed", "settled")
    assert [each["event"] for each in trail if each["step_id"] == "await_bank"] == ["step_entered", "timeout", "step_completed"]  # fmt: skip


def test_a_play_says_how_things_stand(standfast: Standfast) -> None:
    """The trail, and what would bring it on: events of the step, or what it waits for."""
    lines = standfast("template", "run", "order_approval", "--input", '{"order_id": "o-1"}').stdout.splitlines()
    assert lines[0].split() == ["AT", "STEP", "EVENT", "BY", "DATA", "COMMENT"]
    assert lines[-1] == "orders.approval is active at review; it goes on by approved, rejected"
    waiting = standfast("template", "run", "dispute_resolution", "--do", 'investigate={"priority": "high"}').stdout
    assert "it goes on by evidence.received" in waiting.splitlines()[-1]
    done = standfast(
        "template", "run", "dispute_resolution", "--do", 'investigate={"priority": "high"}',
        "--do", "evidence.received", "--do", "rejected",
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "disputes.resolution is completed: upheld"


def test_a_play_can_be_kept(standfast: Standfast) -> None:
    """In a file that the other commands can look at."""
    standfast("template", "run", "order_approval", "--keep", "play.db")
    assert "orders.approval" in standfast("definitions", "list", "--database", "sqlite:///play.db").stdout


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--do", "approve"], Exit.REFUSED, "there are 'approved', 'rejected'"),
        (["--do", "+soon"], Exit.WRONG, "no time that could go by"),
        (["--do", "approved={"], Exit.WRONG, "is not JSON"),
        (["--do", "approved=5"], Exit.WRONG, "cannot be read"),
        (["--do", '={"a": 1}'], Exit.WRONG, "cannot be read"),
        (["--answer", "orders.confrm={}"], Exit.WRONG, "has no operation 'orders.confrm'; it has"),
        (["--input", "[1]"], Exit.WRONG, "must be a JSON object"),
        (["--input", "{"], Exit.WRONG, "this is not JSON"),
        (["--input", "@nope.json"], Exit.WRONG, "nope.json cannot be read"),
    ],
)
def test_what_cannot_happen_is_told(standfast: Standfast, options: list[str], code: Exit, told: str) -> None:
    """One sentence, and an exit code that tells whose mistake it is."""
    assert told in standfast("template", "run", "order_approval", *options, code=code).stderr


def typed(monkeypatch: pytest.MonkeyPatch, text: str, *words: str) -> None:
    """Call the command at a terminal, where somebody types a text and then ends it."""
    ours, theirs = pty.openpty()
    os.write(ours, f"{text}\x04".encode())
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        with pytest.raises(SystemExit) as ended:
            main(["template", "run", *words])
    os.close(ours)
    assert ended.value.code == Exit.DONE


def test_on_a_terminal_it_is_asked_what_happens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Events and the fields of their forms, until it has ended; a mistake is told, and asked again."""
    text = "nonsense\n\napproved\nlooks good\n"
    typed(monkeypatch, text, "order_approval", "--input", '{"order_id": "o-1"}')
    told, wrong = capsys.readouterr()
    assert "cannot be answered by 'nonsense'" in wrong
    assert told.splitlines()[-1] == "orders.approval is completed: approved"
    assert "looks good" in told


def test_on_a_terminal_fields_are_asked_for_by_their_titles(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is no text is written as JSON; a field that is left empty is not given."""
    acts = ("--do", 'investigate={"priority": "high"}', "--do", "evidence.received")
    typed(monkeypatch, "approved\n\n500\n", "dispute_resolution", *acts)
    told, _ = capsys.readouterr()
    assert "  Refund in cents: " in told
    assert "  Reason: " in told
    assert "{'refund_cents': 500}" in told or '{"refund_cents": 500}' in told


def test_on_a_terminal_a_step_without_a_form_asks_for_the_event_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing else is asked for, and who does not want to go on says so."""
    typed(monkeypatch, "approved\n\n", "settlement")
    told, wrong = capsys.readouterr()
    assert wrong == ""
    assert told.splitlines()[-1].startswith("finance.settlement is suspended at await_bank")
