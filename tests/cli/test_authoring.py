"""`standfast validate` and `standfast graph`: files alone, no database."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from cli.calling import Standfast
from cli.flows import ORDERS, REFUNDS, RULES
from standfast import Engine, Saga
from standfast.cli.exit_codes import Exit
from standfast.graph.compiler import graph_data
from standfast.testing import ManualEngine

SOUND = ORDERS.replace("title: Review,", "title: Review, capability: orders.review,")
"""The same, for those who have a capability: an approval that names nobody gets a warning."""
MISSPELT = ORDERS.replace("to: confirm}", "to: confrim}").replace("type: terminal, outcome: late", "type: terminl")


def written(text: str | bytes, name: str = "orders.yaml") -> str:
    """The name of a file with this text."""
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def test_a_sound_file_is_valid(standfast: Standfast) -> None:
    """Exit code 0, and how many workflows there are."""
    assert standfast("validate", written(SOUND)).stdout == "orders.yaml is valid: 1 workflow\n"
    assert standfast("validate", written(SOUND + REFUNDS)).stdout == "orders.yaml is valid: 2 workflows\n"
    assert standfast("validate", "-", stdin=SOUND).stdout == "standard input is valid: 1 workflow\n"


@pytest.mark.row("P-020")
def test_every_mistake_is_told_where_it_stands(standfast: Standfast) -> None:
    """File, line and column as editors read them, the rule, and what to do; all of them in one go."""
    wrong = ORDERS.replace("to: confirm}", "to: confrim}").replace(
        "event: rejected, to: rejected", "event: rejected, to: rejectd"
    )
    *lines, summary = standfast("validate", written(wrong), code=Exit.NO).stdout.splitlines()
    assert lines == [
        "orders.yaml:13:45: error: `to` names 'confrim', which is no step; did you mean 'confirm'? [unknown_step]",
        "orders.yaml:14:45: error: `to` names 'rejectd', which is no step; did you mean 'rejected'? [unknown_step]",
    ]
    assert summary == "orders.yaml has 2 mistakes"


def test_a_file_is_tried_out_without_a_database(standfast: Standfast) -> None:
    """The way is told line by line, or as JSON; what is supposed is said by options, and exit code 1 means that it does not come out well."""
    file = written(ORDERS)
    assert standfast("dry-run", file).stdout == (
        "? review → approved  (asks anybody)\n"
        "? confirm → ok  (calls orders.confirm)\n"
        "  approved → approved\n"
        "ended: the run is completed (approved)\n"
    )
    told = standfast.json("dry-run", file, '{"total": 5}', "--decide", "review=rejected")
    assert (told["ends"], told["outcome"], told["data"]) == (
        "ended",
        "rejected",
        {"total": 5, "rejected_by": "somebody 1"},
    )
    assert standfast.json("dry-run", file, "--unanswered", "review")["outcome"] == "late"
    failed = standfast("dry-run", file, "--fail", "orders.confirm", code=Exit.NO).stdout
    assert "confirm → error  (orders.confirm fails, as was said)" in failed
    given = standfast.json("dry-run", file, "--answer", 'orders.confirm={"number": 7}', "--decide", "review=approved")
    assert not any(each["is_assumed"] for each in given["trail"])
    assert "did you mean 'review'?" in standfast("dry-run", file, "--decide", "reviw=approved", code=Exit.WRONG).stderr
    assert "is not JSON" in standfast("dry-run", file, "--answer", "orders.confirm={", code=Exit.WRONG).stderr
    assert "cannot be read" in standfast("dry-run", "nowhere.yaml", code=Exit.WRONG).stderr
    form = "{type: object, required: [note], properties: {note: {type: string}}}"
    asking = written(ORDERS.replace("title: Review,", f"title: Review, form: {form},", 1))
    assert "by --form STEP={json}" in standfast("dry-run", asking, code=Exit.NO).stdout
    assert f"`standfast dry-run {file}` tries" in standfast("template", "run", file, code=Exit.NOT_FOUND).stderr
    assert "for files" in standfast("dry-run", "order", "--workflow", "x", code=Exit.WRONG).stderr
    assert "for published" in standfast("dry-run", file, "--version", "7", code=Exit.WRONG).stderr
    saga = written(
        json.dumps(graph_data(Saga("s").human("ask", role="r").wait_for("paid", "payment").build().graph)), "s.json"
    )
    assert "is completed" in standfast("dry-run", saga).stdout
    said = standfast.json("dry-run", saga, "--form", 'ask={"n": 1}', "--event", "payment=8")["data"]
    assert (said["ask"]["data"], said["paid"]) == ({"n": 1}, 8)
    assert "is aborted" in standfast("dry-run", saga, "--decide", "ask=rejected", code=Exit.NO).stdout
    several = standfast("dry-run", written(ORDERS + REFUNDS), code=Exit.WRONG).stderr
    assert "--workflow (orders.approval, refunds)" in several


def test_mistakes_are_told_to_programs(standfast: Standfast) -> None:
    """The same as JSON, with the same exit code."""
    told = standfast.json("validate", written(MISSPELT), code=Exit.NO)
    assert (told["file"], told["is_valid"], told["workflows"]) == ("orders.yaml", False, [])
    mistakes = told["mistakes"]
    assert isinstance(mistakes, list)
    assert all(each["line"] > 0 and each["column"] > 0 and each["rule"] and each["message"] for each in mistakes)
    sound = standfast.json("validate", written(ORDERS))
    assert sound["workflows"] == [{"name": "orders.approval", "version": "1", "kind": "process"}]


def test_several_files_are_looked_at_in_one_go(standfast: Standfast) -> None:
    """As a shell names them; one that has mistakes makes the answer no, and the others are told all the same."""
    names = written(MISSPELT, "wrong.yaml"), written(SOUND, "right.yaml")
    told = standfast("validate", *names, code=Exit.NO).stdout.splitlines()
    assert told[-1] == "right.yaml is valid: 1 workflow"
    assert told[0].startswith("wrong.yaml:")
    listed = standfast.json("validate", *names, code=Exit.NO)
    assert listed["is_valid"] is False
    assert isinstance(listed["files"], list)
    assert [(each["file"], each["is_valid"]) for each in listed["files"]] == [
        ("wrong.yaml", False),
        ("right.yaml", True),
    ]
    assert standfast("validate", "right.yaml", "right.yaml").stdout.count("is valid") == 2


def test_what_is_odd_is_no_mistake_unless_one_is_strict(standfast: Standfast) -> None:
    """Warnings are told, and count only with `--strict`."""
    odd = SOUND.replace("      - {from: confirm, event: completed, to: approved}\n", "")
    result = standfast("validate", written(odd))
    assert "orders.yaml:8:9: warning:" in result.stdout
    assert result.stdout.splitlines()[-1] == "orders.yaml is valid: 1 workflow, 2 warnings"
    assert standfast("validate", "orders.yaml", "--strict", code=Exit.NO).stdout.endswith("has 2 mistakes\n")


def equipped(engine: Engine) -> None:
    """What a worker would have: one handler."""
    engine.handle("orders.confirm", dict)


def test_what_an_application_lacks_is_odd(standfast: Standfast) -> None:
    """A step that no handler of the application does is told, with the likely name; where it has all, nothing is."""
    app = "cli.test_authoring:equipped"
    assert standfast("validate", written(SOUND), "--app", app).stdout == "orders.yaml is valid: 1 workflow\n"
    wrong = written(SOUND.replace("operation: orders.confirm", "operation: {invoker: openai, name: orders.confirm}"))
    told, summary = standfast("validate", wrong, "--app", app).stdout.splitlines()
    assert told == (
        "orders.yaml: warning: orders.approval: cli.test_authoring:equipped has no handler 'openai:orders.confirm'; "
        "did you mean 'orders.confirm'? [no_handler]"
    )
    assert summary == "orders.yaml is valid: 1 workflow, 1 warning"
    standfast("validate", wrong, "--app", app, "--strict", code=Exit.NO)
    assert "there is no module 'nowhere'" in standfast("validate", wrong, "--app", "nowhere:x", code=Exit.WRONG).stderr


def test_what_nobody_may_do_is_odd(standfast: Standfast) -> None:
    """A capability that no role has is told, with the likely one; a star covers what it stands for, and other tenants count."""
    guarded = ORDERS.replace("title: Review,", "title: Review, capability: orders.review,").replace(
        "event: approved, to: confirm", 'event: approved, to: confirm, guard: "large thing"'
    )
    roles = written("roles: {clerk: [orders.*]}\ntenants: {acme: {roles: {boss: [large things]}}}", "roles.yaml")
    (told, _) = standfast("validate", written(guarded), "--capabilities", roles).stdout.splitlines()
    assert told == (
        "orders.yaml: warning: orders.approval: no role has the capability 'large thing'; "
        "did you mean 'large things'? [no_grant]"
    )
    assert "cannot be read" in standfast("validate", written(guarded), "--capabilities", "none", code=Exit.WRONG).stderr


def test_rules_and_graphs_are_files_of_workflows_too(standfast: Standfast) -> None:
    """They are told from processes by what they hold; a mistake in one is told by its path."""
    engine = ManualEngine()
    engine.register(Saga("ship").step("pack", lambda: None).build())
    graph = engine.definitions.data("ship")
    engine.stop()
    assert standfast("validate", written(RULES, "rules.json")).stdout == "rules.json is valid: 1 workflow\n"
    assert "ship" in str(standfast.json("validate", written(json.dumps(graph), "ship.json"))["workflows"])
    wrong = standfast("validate", written(RULES.replace('"allow"', '"alow"'), "rules.json"), code=Exit.NO).stdout
    assert "rules.json: error: steps" in wrong


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "orders.yaml:1:1: error:"),
        ("a: [1", "error:"),
        ("domain: x\nworkflows:\n\t- id: x.y\n", "orders.yaml:3:1: error: this is no YAML"),
        ("domain: x\nworkflows:\n\t- id: x.y\n", "there is a tab here; indent with spaces"),
        ("just words", "orders.yaml:1:1: error:"),
        (b"\xff\xfe\x00", "this is no UTF-8"),
        ("{" * 100_000, "error:"),
        ("workflows: 5", "error:"),
        ('{"workflow_id": 5}', "error:"),
    ],
)
def test_what_is_no_file_of_workflows_is_told_as_mistakes(standfast: Standfast, text: str | bytes, told: str) -> None:
    """Whatever stands in it: exit code 1, and never a traceback."""
    assert told in standfast("validate", written(text), code=Exit.NO).stdout


@pytest.mark.parametrize("name", ["missing.yaml", "."])
@pytest.mark.parametrize("command", ["validate", "graph", "publish", "diff"])
def test_an_unreadable_file_is_named(standfast: Standfast, command: str, name: str) -> None:
    """A file that is not there, or is none, is a mistake of the call."""
    assert f"{name} cannot be read" in standfast(command, name, code=Exit.WRONG).stderr


def test_the_terminal_is_safe_from_the_file(standfast: Standfast) -> None:
    """Control characters of a file are told as escapes."""
    told = standfast("validate", written(ORDERS.replace("to: rejected}", 'to: "\\e[2J\\u202e"}')), code=Exit.NO).stdout
    assert not set("\x1b\u202e") & set(told)


@pytest.mark.row("G-31")
@pytest.mark.parametrize(
    ("language", "told"), [("mermaid", "flowchart TD"), ("dot", "digraph"), ("json", '"orders.approval"')]
)
def test_a_workflow_is_drawn(standfast: Standfast, language: str, told: str) -> None:
    """In the language that is asked for; Mermaid if none is."""
    file = written(ORDERS)
    assert told in standfast("graph", file, "--format", language).stdout
    assert "flowchart TD" in standfast("graph", file).stdout
    assert "flowchart TD" in standfast("graph", written(RULES, "rules.json")).stdout


def test_of_several_workflows_one_is_named(standfast: Standfast) -> None:
    """By name, or by name and version; the sentence lists them if none is, and suggests one that is alike."""
    file = written(ORDERS + REFUNDS)
    assert "(orders.approval, refunds)" in standfast("graph", file, code=Exit.WRONG).stderr
    assert "pay" in standfast("graph", file, "--workflow", "refunds").stdout
    assert "pay" in standfast("graph", file, "--workflow", "refunds-v3").stdout
    wrong = standfast("graph", file, "--workflow", "refund", code=Exit.NOT_FOUND)
    assert "did you mean 'refunds'?" in wrong.stderr


def test_a_file_with_mistakes_is_not_drawn(standfast: Standfast) -> None:
    """They are told instead."""
    assert "[unknown_step]" in standfast("graph", written(MISSPELT.replace("terminl", "terminal")), code=Exit.NO).stderr


def test_svg_needs_graphviz(standfast: Standfast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the sentence says what to install; with it the drawing is what it answers."""
    monkeypatch.setenv("PATH", str(Path.cwd()))
    assert "install Graphviz" in standfast("graph", written(ORDERS), "--format", "svg", code=Exit.WRONG).stderr
    program = Path("dot")
    program.write_text('#!/bin/sh\n[ "$1" = -Tsvg ] && read first && echo "<svg>$first</svg>"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert standfast("graph", "orders.yaml", "--format", "svg").stdout.startswith("<svg>digraph")
    standfast("graph", "orders.yaml", "--format", "svg", "--output", "orders.svg")
    assert Path("orders.svg").read_text().startswith("<svg>digraph")
    program.write_text("#!/bin/sh\necho 'syntax error' >&2\nexit 1\n")
    assert (
        "syntax error; take --format dot"
        in standfast("graph", "orders.yaml", "--format", "svg", code=Exit.WRONG).stderr
    )


def test_a_drawing_that_cannot_be_written_is_told(standfast: Standfast) -> None:
    """With the reason."""
    result = standfast("graph", written(ORDERS), "--output", "no/such/folder.md", code=Exit.WRONG)
    assert "cannot be written" in result.stderr
