"""Commands about runs: start, list, show, watch, history, why; on both stores."""

from __future__ import annotations

import json
import re
from pathlib import Path

from cli.stage import Stage
from standfast import Fail, Saga
from standfast.cli.exit_codes import Exit

NOBODY = "01a1e766-3ad5-7618-92bc-aee7fef0c9eb"


def ids(told: dict[str, object]) -> list[str]:
    """The runs of a page."""
    items = told["items"]
    assert isinstance(items, list)
    return [each["id"] for each in items]


def test_a_run_is_started_with_its_input(stage: Stage) -> None:
    """From the command line, a file or standard input; its id is what is printed."""
    Path("in.json").write_text('{"amount": 5}')
    run = stage.standfast(
        "start", "order", "--input", "@in.json", "--key", "o-1", "--comment", "by hand"
    ).stdout.strip()
    piped = stage.standfast("start", "order", "--input", "-", stdin='{"amount": 6}').stdout.strip()
    assert stage.engine.run(run).describe().input == {"amount": 5}
    assert stage.engine.run(piped).describe().input == {"amount": 6}
    assert stage.engine.runs.list(key="o-1").items[0].id == stage.engine.run(run).id
    told = stage.standfast.json(
        "start", "order", "--version", "1", "--idempotency-key", "k", "--input", '{"amount": 7}'
    )
    assert told == stage.standfast.json("start", "order-v1", "--idempotency-key", "k", "--input", '{"amount": 7}')


IMPOSSIBLE = [
    (["ordr"], Exit.NOT_FOUND, "nothing of this name is published; did you mean 'order'?"),
    (["order", "--version", "9"], Exit.NOT_FOUND, "no workflow 'order version 9'; published are 1 [not_found]"),
    (["order", "--input", "{"], Exit.WRONG, "this is not JSON"),
    (["order", "--input", '{"amount": 1, "amount": 2}'], Exit.WRONG, "the name 'amount' stands twice"),
    (["order", "--input", "5"], Exit.WRONG, "[bad_payload]"),
    (["order", "--delay", "soon"], Exit.WRONG, "no duration"),
    (["order", "--input", '{"a": "' + "x" * 3_000_000 + '"}'], Exit.WRONG, "[bad_payload]"),
    (["a\0b"], Exit.WRONG, "[bad_payload]"),
]


def test_what_cannot_be_started_is_told(stage: Stage) -> None:
    """And nothing is."""
    for arguments, code, told in IMPOSSIBLE:
        assert told in stage.standfast("start", *arguments, code=code).stderr
    assert ids(stage.standfast.json("list")) == []


def test_a_key_that_is_taken_is_a_conflict(stage: Stage) -> None:
    """There can be one run with a business key, ever."""
    stage.standfast("start", "order", "--idempotency-key", "k", "--input", '{"amount": 1}')
    stage.standfast("start", "order", "--idempotency-key", "k", "--input", '{"amount": 2}', code=Exit.CONFLICT)


def test_a_result_that_does_not_come_in_time_is_told(stage: Stage) -> None:
    """Exit code 7, and the run goes on; its id was told, so that it can be looked for."""
    said = stage.standfast("start", "order", "--wait", "50ms", code=Exit.UNAVAILABLE)
    [run] = ids(stage.standfast.json("list"))
    assert f"this is run {run}" in said.stderr
    assert said.stdout == ""


def test_lists_are_narrowed(stage: Stage) -> None:
    """By workflow, status, key, time and whether it has ended."""
    order, failing = stage.begun("order", amount=5), stage.begun("import", row="x")
    assert ids(stage.standfast.json("list")) == [failing, order]
    assert ids(stage.standfast.json("list", "--definition", "order")) == [order]
    assert ids(stage.standfast.json("list", "--status", "dlq", "--status", "failed")) == [failing]
    assert ids(stage.standfast.json("list", "--ended")) == []
    assert ids(stage.standfast.json("list", "--since", "2040-01-01T00:00:00Z")) == []
    assert ids(stage.standfast.json("list", "--before", "2040-01-01T00:00:00Z", "--active")) == [failing, order]
    assert ids(stage.standfast.json("list", "--parent", order)) == []
    assert ids(stage.standfast.json("list", "--paused")) == [failing]
    assert ids(stage.standfast.json("list", "--paused", "--next-step", "row")) == [failing]
    assert ids(stage.standfast.json("list", "--paused", "--next-step", "charge")) == []
    assert ids(stage.standfast.json("list", "--stuck")) == []
    assert ids(stage.standfast.json("list", "--resumable")) == []
    lines = stage.standfast("list").stdout.splitlines()
    assert lines[0].split() == ["ID", "WORKFLOW", "VERSION", "STATUS", "REASON", "KEY", "STARTED", "UPDATED"]
    assert lines[1].split()[:4] == [failing, "import", "1", "dlq"]


def test_lists_are_paged(stage: Stage) -> None:
    """A page says what the next one begins behind; all pages together are the list."""
    runs = [stage.begun("import", row="x") for _ in range(3)]
    for run in runs:
        stage.engine.run(run).request_resume()
    for group in ([], ["--paused"], ["--resumable"]):
        first = stage.standfast.json("list", *group, "--limit", "2")
        second = stage.standfast.json("list", *group, "--limit", "2", "--after", first["next"])
        assert sorted(ids(first) + ids(second)) == sorted(runs)
        assert (len(ids(first)), second["next"]) == (2, None)
        assert f"there is more: --after {first['next']}" in stage.standfast("list", *group, "--limit", "2").stderr


FILTERS = [
    (["--status", "strange"], "there is no status 'strange'"),
    (["--version", "1"], "give the definition too"),
    (["--since", "yesterday"], "no time"),
    (["--since", "2026-01-01T00:00:00"], "has no time zone"),
    (["--after", "zzz"], "is not the id of an instance"),
    (["--paused", "--after", "zzz"], "is no place in this list"),
    (["--paused", "--key", "x"], "--key does not go with this list"),
    (["--next-step", "ship"], "--next-step does not go with this list"),
    (["--stuck", "--active"], "--active does not go with this list"),
    (["--limit", "0"], "--limit"),
    (["--limit", "9999"], "--limit"),
]


def test_wrong_filters_are_told(stage: Stage) -> None:
    """Exit code 2, and what would be possible."""
    for arguments, told in FILTERS:
        assert told in stage.standfast("list", *arguments, code=Exit.WRONG).stderr


def test_a_run_is_shown_as_a_graph_with_its_live_state(stage: Stage) -> None:
    """Each step with what became of it, and the ways that lead on; those that were taken are drawn thick."""
    run = stage.begun("import", row="x")
    told = stage.standfast("show", run).stdout
    assert re.search(r"^status +dlq$", told, re.MULTILINE)
    lines = told.split("\n\n")[1].splitlines()
    assert lines[0] == "‖ row     paused (Fail: this row is no number)"
    assert lines[1] == "    ─▶ report"
    assert lines[2].startswith("○ report")
    done = stage.begun("import", row=5)
    assert "✓ row     completed\n    ═▶ report" in stage.standfast("show", done).stdout
    data = stage.standfast.json("show", done)
    assert [each["status"] for each in data["steps"]] == ["completed", "completed"]
    assert set(data) == {"run", "steps", "graph"}


def test_visits_of_one_step_are_counted_by_what_became_of_them(stage: Stage) -> None:
    """Of a step that is done for each of two hundred items the last visit does not stand for all of them."""

    def pick(line: int) -> int:
        if line == 150:
            raise Fail("nothing is left")
        return line

    stage.engine.register(
        Saga("picking")
        .for_each("lines", "lines", lambda branch: branch.step("pick", pick), limit=200, item="line")
        .build()
    )
    told = stage.standfast("show", stage.begun("picking", lines=list(range(200)))).stdout
    [line] = re.findall(r"^. pick .*\((200 visits: .*), Fail: nothing is left\)$", told, re.MULTILINE)
    counts = {status: int(count) for count, status in re.findall(r"(\d+) (\w+)", line) if status != "visits"}
    assert set(counts) == {"rolled_back", "skipped"}
    assert sum(counts.values()) == 200


def test_what_was_undone_is_drawn_beside_its_step(stage: Stage) -> None:
    """With the name of the compensation, however short the names are."""
    stage.is_bank_open = True
    stage.engine.register(Saga("s").step("a", lambda: None, undo=lambda: None).step("b", stage.fail).build())
    told = stage.standfast("show", stage.begun("s")).stdout
    assert re.search(r"^↺ a  rolled_back\n    ✓ undo a  completed\n", told, re.MULTILINE), told


def test_a_history_is_paged(stage: Stage) -> None:
    """In order, by sequence."""
    run = stage.begun("import", row=5)
    first = stage.standfast.json("history", run, "--limit", "2")
    assert first["next"] == "2"
    rest = stage.standfast.json("history", run, "--after", "2")
    assert [each["sequence"] for each in first["items"]] == [1, 2]
    assert rest["items"][0]["sequence"] == 3
    assert stage.standfast("history", run).stdout.splitlines()[0].startswith("#")
    assert "is no number" in stage.standfast("history", run, "--after", "x", code=Exit.WRONG).stderr


def test_it_is_told_why_a_run_does_not_move(stage: Stage) -> None:
    """In words, with what could be done; and as data."""
    run = stage.begun("import", row="x")
    told = stage.standfast("why", run).stdout
    assert "this row is no number" in told
    assert "→" in told
    assert stage.standfast.json("why", run)["is_incident"] is False


def test_a_signal_that_nobody_waits_for_is_told_of(stage: Stage) -> None:
    """Whoever misspells a signal finds out by asking why; the way on is a command, and instants look as in tables."""
    run = stage.begun("order", amount=5)
    stage.standfast("signal", run, "paymnet")
    told = stage.standfast("why", run).stdout
    assert "waits for the signal 'payment' since 2" in told
    assert "Z; it was told 'paymnet', for which no step of it waits\n" in told
    assert "→ `standfast signal RUN payment` brings it on" in told


def test_a_run_is_watched_to_its_end(stage: Stage) -> None:
    """All that happened to it, and how it ended by the exit code."""
    done, waiting = stage.begun("import", row=5), stage.begun("order", amount=5)
    told = stage.standfast("watch", done).stdout.splitlines()
    assert told[-1] == f"{done} is completed"
    assert len(told) > 3
    entries = [json.loads(line) for line in stage.standfast("watch", done, "--json").stdout.splitlines()]
    assert [each["sequence"] for each in entries] == list(range(1, len(entries) + 1))
    late = stage.standfast("watch", waiting, "--timeout", "10ms", "--interval", "1ms", code=Exit.UNAVAILABLE)
    assert "has not ended: it is running" in late.stderr
    stage.engine.run(waiting).abort()
    assert "is aborted" in stage.standfast("watch", waiting, code=Exit.FAILED).stdout


def test_what_is_not_there_is_told(stage: Stage) -> None:
    """Another tenant's run no differently from one that does not exist; what is no id as a mistake of the call."""
    run = stage.begun("order", amount=5)
    for command in ("show", "history", "why", "watch", "cancel", "abort", "pause", "resume"):
        nobody = stage.standfast(command, NOBODY, code=Exit.NOT_FOUND).stderr
        foreign = stage.standfast(command, run, "--tenant", "another", code=Exit.NOT_FOUND).stderr
        assert nobody.replace(NOBODY, run) == foreign
        assert "→ `standfast list` shows what there is" in nobody
        told = stage.standfast(command, "o-1", code=Exit.WRONG).stderr
        assert (
            "is not the id of an instance; `standfast list` shows those of runs, and `standfast list --key KEY`" in told
        )
    late = stage.standfast("show", run, "--at", "99", code=Exit.NOT_FOUND).stderr
    assert "→ `standfast history RUN` shows what there is" in late
    unpaused = stage.standfast("resume", run, code=Exit.REFUSED).stderr
    assert "`standfast resume-options RUN` tells [not_paused]" in unpaused
    assert stage.status(run) == "running"


def test_whoever_has_no_rights_sees_nothing(stage: Stage) -> None:
    """An actor by id alone may not read; one with the capability may."""
    run = stage.begun("order", amount=5)
    told = stage.standfast("show", run, "--as", "eve", code=Exit.FORBIDDEN).stderr
    assert "execution:read" in told
    assert "→ --as names the acting user" in told
    stage.standfast("show", run, "--as", "eve", "--can", "execution:read")
