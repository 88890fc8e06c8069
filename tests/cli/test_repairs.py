"""What operators do to runs from the command line, on both stores."""

from __future__ import annotations

from datetime import timedelta

import pytest

from api.addresses import GHOST
from cli.flows import ORDERS
from cli.stage import Stage
from standfast import load_processes
from standfast.cli.exit_codes import Exit


def test_a_run_is_cancelled(stage: Stage) -> None:
    """How it ended is printed; if its undoing takes a worker that is not there, the wait has an end and it goes on."""
    asking = stage.begun("ask", who="ann")
    assert stage.standfast("cancel", asking, "--reason", "twice").stdout == "cancelled\n"
    charged = stage.begun("order", amount=5)
    stage.standfast("cancel", charged, "--wait", "50ms", code=Exit.UNAVAILABLE)
    stage.is_bank_open = True
    stage.engine.drain()
    assert stage.status(charged) == "cancelled"
    assert stage.standfast("cancel", charged, code=Exit.REFUSED).stderr


def test_a_run_is_aborted(stage: Stage) -> None:
    """At once, and nothing is undone."""
    run = stage.begun("order", amount=5)
    assert stage.standfast("abort", run, "--reason", "lost").stdout == "aborted\n"
    assert stage.engine.run(run).steps()[0].status == "completed"


def test_a_run_is_paused_and_goes_on(stage: Stage) -> None:
    """With a reason, for a while if that is said."""
    run = stage.begun("order", amount=5)
    assert stage.standfast("pause", run, "--reason", "audit", "--for", "2h", "--clock", "stand_still").exit_code == 0
    told = stage.engine.run(run).describe()
    assert (told.status, told.paused_until is not None) == ("paused", True)
    assert "paused" in stage.standfast("show", run).stdout
    assert stage.standfast("pause", run, code=Exit.REFUSED).stderr
    stage.standfast("resume", run, "--data", '{"ok": true}')
    assert stage.status(run) == "running"
    assert stage.standfast("resume", run, code=Exit.REFUSED).stderr
    assert "must be a JSON object" in stage.standfast("resume", run, "--data", "5", code=Exit.WRONG).stderr


def test_a_step_is_tried_again_with_another_input(stage: Stage) -> None:
    """It is named by its name or its number; a name that it does not have is answered with one that it has."""
    run = stage.begun("import", row="x")
    stage.standfast("retry", run, "row", "--reason", "mended", "--input", '{"row": 5}')
    stage.engine.drain()
    assert stage.status(run) == "completed"
    again = stage.begun("import", row="x")
    stage.standfast("retry", again, "1", "--reason", "mended", "--input", '{"row": 5}')
    stage.engine.drain()
    assert stage.status(again) == "completed"
    third = stage.begun("import", row="x")
    near = stage.standfast("retry", third, "rw", "--reason", "x", code=Exit.NOT_FOUND).stderr
    assert "did you mean 'row'?" in near
    assert "--reason" in stage.standfast("retry", third, "row", code=Exit.WRONG).stderr
    assert stage.status(third) == "dlq"


def test_a_step_is_skipped(stage: Stage) -> None:
    """The run goes on behind it."""
    run = stage.begun("import", row="x")
    stage.standfast("skip", run, "row", "--reason", "not needed")
    stage.engine.drain()
    assert stage.status(run) == "completed"


def test_a_signal_brings_a_run_on(stage: Stage) -> None:
    """Told twice under one id, it counts once."""
    run = stage.begun("order", amount=5)
    for _ in range(2):
        stage.standfast("signal", run, "payment", "--data", '{"by": "card"}', "--id", "p-1")
    stage.engine.drain()
    assert stage.status(run) == "completed"
    assert stage.engine.run(run).describe().context["by"] == "card"


@pytest.mark.row("G-11")
def test_what_gave_up_is_put_back(stage: Stage) -> None:
    """By the number of its dead letter, with another input for a step; a compensation is tried again."""
    run = stage.begun("import", row="x")
    (letter,) = _letters(stage)
    assert "this row is no number" in stage.standfast("dlq", "show", str(letter)).stdout
    assert stage.standfast("dlq", "discard", str(letter), code=Exit.CONFLICT).stderr
    stage.standfast("requeue", str(letter), "--input", '{"row": 5}')
    stage.engine.drain()
    assert stage.status(run) == "completed"
    charged = stage.begun("order", amount=5)
    stage.standfast("cancel", charged, "--wait", "1ms", code=Exit.UNAVAILABLE)
    stage.engine.advance(days=1)
    (letter,) = _letters(stage)
    assert stage.standfast.json("dlq", "show", str(letter))["source"] == "compensation"
    stage.is_bank_open = True
    stage.standfast("dlq", "requeue", str(letter))
    stage.engine.drain()
    assert stage.status(charged) == "cancelled"


def _letters(stage: Stage, *options: str) -> list[int]:
    items = stage.standfast.json("dlq", "list", *options)["items"]
    assert isinstance(items, list)
    return [each["id"] for each in items]


def test_dead_letters_are_listed_page_by_page(stage: Stage) -> None:
    """Narrowed by run, workflow, source and key."""
    runs = [stage.begun("import", row="x") for _ in range(3)]
    letters = _letters(stage)
    [group] = stage.standfast.json("dlq", "groups", "--definition", "import")["items"]
    assert (group["count"], group["first_id"], group["last_id"]) == (3, letters[0], letters[-1])
    assert stage.standfast("dlq", "groups").stdout.splitlines()[1].split()[1:5] == ["3", "step", "import", "row"]
    assert stage.standfast.json("dlq", "groups", "--definition", "order")["items"] == []
    assert _letters(stage, "--run", runs[1]) == letters[1:2]
    assert _letters(stage, "--source", "timer") == []
    assert _letters(stage, "--definition", "import", "--limit", "2") == letters[:2]
    assert _letters(stage, "--after", str(letters[1])) == letters[2:]
    assert stage.standfast("dlq", "list").stdout.splitlines()[1].split()[:3] == [str(letters[0]), "step", "import"]
    assert stage.standfast("dlq", "show", "999", code=Exit.NOT_FOUND).stderr
    assert stage.standfast("dlq", "show", "x", code=Exit.WRONG).stderr
    assert _letters(stage, "--tenant", "another") == []


@pytest.mark.row("P-161")
def test_a_process_is_advanced(stage: Stage) -> None:
    """By an event of its step, as whoever is named; the trail has their name."""
    run = stage.standfast("start", "orders.approval", "--as", "alice").stdout.strip()
    told = stage.standfast.json("advance", run, "approved", "--as", "bob", "--comment", "fine")
    assert (told["status"], told["current_step"]) == ("active", "confirm")
    stage.engine.drain()
    seen = stage.engine.processes.get(run)
    assert (seen.instance.outcome, seen.instance.subject_id) == ("approved", "alice")
    assert [each.actor_id for each in seen.history if each.event == "approved"] == ["bob"]
    assert "WORKFLOW_NOT_ACTIVE" in stage.standfast("advance", run, "approved", code=Exit.REFUSED).stderr


def test_an_advance_that_cannot_be_is_refused(stage: Stage) -> None:
    """By an event that the step does not have, or after somebody else changed it."""
    run = stage.standfast("start", "orders.approval").stdout.strip()
    assert "INVALID_TRANSITION" in stage.standfast("advance", run, "aproved", code=Exit.REFUSED).stderr
    stale = stage.standfast("advance", run, "approved", "--expect-version", "77", code=Exit.CONFLICT).stderr
    assert "VERSION_CONFLICT" in stale
    assert "current_step" not in stage.standfast("advance", run, "rejected").stdout
    assert stage.engine.processes.get(run).instance.outcome == "rejected"


@pytest.mark.row("P-039")
def test_a_suspended_process_is_led_on_from_a_shell(stage: Stage) -> None:
    """`why` and what is refused name the commands of a process, and these commands do what they say."""
    (definition,) = load_processes(
        ORDERS.replace("orders.approval", "orders.failing").replace("orders.confirm", "fail")
    )
    stage.engine.register(definition)
    stage.engine.handle("fail", stage.fail)
    run = stage.begun("orders.failing")
    assert "`standfast advance` or `standfast decide` answers it" in stage.standfast("why", run).stdout
    stage.standfast("advance", run, "approved")
    stage.engine.drain()
    assert stage.engine.processes.get(run).instance.status == "suspended"
    assert "try it again by `standfast processes resume`" in stage.standfast("why", run).stdout
    refused = stage.standfast("resume", run, code=Exit.REFUSED).stderr
    assert "`standfast processes resume RUN`" in refused
    told = stage.standfast("processes", "resume", run, "--reason", "the shop is back").stdout
    assert "step     confirm" in told
    assert stage.engine.processes.get(run).instance.status == "active"
    again = stage.standfast("processes", "resume", run, code=Exit.REFUSED).stderr
    assert "only a suspended one is resumed" in again
    stage.standfast("processes", "resume", "01a1e766-3ad5-7618-92bc-aee7fef0c9eb", code=Exit.NOT_FOUND)


def test_a_run_is_left_to_the_resume_worker(stage: Stage) -> None:
    """A request is written down and carried out later; what was refused is told beside it."""
    run = stage.begun("order", amount=5)
    stage.standfast("resume", run, code=Exit.REFUSED)
    stage.standfast("pause", run)
    asked = stage.standfast.json("request-resume", run, "--reason", "tonight", "--data", '{"ok": true}')
    assert (asked["reason"], asked["trigger_data"], asked["executed_at"]) == ("tonight", {"ok": True}, None)
    assert run in stage.standfast("list", "--resumable").stdout
    stage.engine.advance(timedelta(minutes=6))
    assert stage.status(run) == "running"
    told = stage.standfast.json("resume-requests", run)["items"]
    assert [(bool(each["error_message"]), each["executed_at"] is not None) for each in told] == [
        (True, False),
        (False, True),
    ]
    nobody = stage.standfast("request-resume", run, "--as", "eve", code=Exit.FORBIDDEN).stderr
    assert "execution:resume" in nobody
    assert stage.standfast("resume-requests", GHOST, code=Exit.NOT_FOUND).stderr
