"""Commands about many runs: schedules and batches, on both stores."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cli.stage import Stage
from standfast.cli.exit_codes import Exit
from standfast.graph.definition import Definition
from support.envelopes import invoice


def test_a_schedule_is_put_looked_at_and_deleted(stage: Stage) -> None:
    """The words of the engine's calls, with `--json` for programs; what is wrong is told in a sentence."""
    standfast = stage.standfast
    period = ("--start-at", "2030-01-01T13:00:00Z", "--end-at", "2030-01-02T00:00:00Z")
    put = standfast.json("schedules", "put", "s", "order", "--every", "1h", *period, "--revision", "0")
    assert (put["status"], put["every_seconds"]) == ("active", 3600)
    stage.engine.advance(timedelta(hours=1))
    assert [each["status"] for each in standfast.json("schedules", "fires", "s")["items"]] == ["started"]
    assert "every 1:00:00" in standfast("schedules", "list").stdout
    assert "skipped" in standfast("schedules", "trigger", "s").stdout
    assert len(standfast("schedules", "next", "s", "--limit", "3").stdout.splitlines()) == 3
    assert standfast.json("schedules", "pause", "s", "--reason", "r")["pause_reason"] == "r"
    assert standfast.json("schedules", "resume", "s")["status"] == "active"
    days = ("2030-01-01T00:00:00Z", "2030-01-01T05:00:00Z")
    assert len(standfast.json("schedules", "backfill", "s", *days)["backfills"]) == 0
    assert standfast.json("schedules", "backfill", "s", "--stop")["backfills"] == []
    assert "give START and END" in standfast("schedules", "backfill", "s", code=Exit.WRONG).stderr
    assert "one of the three" in standfast("schedules", "put", "t", "order", code=Exit.WRONG).stderr
    assert standfast("schedules", "delete", "s", "--revision", "7", code=Exit.CONFLICT).stderr
    standfast("schedules", "delete", "s", "--revision", "1")
    assert standfast("schedules", "show", "s", code=Exit.NOT_FOUND).stderr


def test_a_schedule_creates_documents(stage: Stage) -> None:
    """A type of documents is scheduled by its name, and the fires name what was created."""
    stage.engine.register(Definition(graph=invoice()))
    given = ("--at", "2030-01-01T13:00:00Z", "--input", '{"vendor": "acme", "total": 5}')
    refused = stage.standfast("schedules", "put", "d", "invoice", *given, "--overlap", "skip", code=Exit.WRONG)
    assert "'allow_all'" in refused.stderr
    put = stage.standfast.json("schedules", "put", "d", "invoice", *given, "--document-id", "'R-{scheduled_on}'")
    assert (put["is_document"], put["document_id"]) == (True, "'R-{scheduled_on}'")
    stage.engine.advance(timedelta(hours=1))
    (fire,) = stage.standfast.json("schedules", "fires", "d")["items"]
    assert (fire["status"], fire["document"]) == ("created", "R-2030-01-01")
    assert "R-2030-01-01" in stage.standfast("schedules", "fires", "d").stdout


def test_a_batch_is_begun_and_told_of(stage: Stage) -> None:
    """What became of each item is told, and the exit code says whether all is as it was wanted."""
    standfast = stage.standfast
    runs = [stage.begun("order", amount=number) for number in range(2)]
    begun = standfast.json("batch", "begin", "pause", *runs, "--reason", "r", "--id", "b")
    assert (begun["id"], begun["status"], begun["total"]) == ("b", "running", 2)
    stage.engine.drain()
    assert standfast.json("batch", "show", "b")["is_clean"] is True
    assert [each["status"] for each in standfast.json("batch", "items", "b")["items"]] == ["done", "done"]
    assert "pause" in standfast("batch", "list").stdout
    standfast("batch", "begin", "retry", runs[0], "--id", "c")
    assert "refused" in standfast("batch", "show", "c", code=Exit.NO).stdout
    assert "nothing of it gave up" in standfast("batch", "items", "c", "--status", "refused").stdout
    assert standfast.json("batch", "cancel", "b")["status"] == "completed"
    nothing = standfast("batch", "begin", "pause", "--definition", "odrer")
    assert "there is nothing of 'odrer' to pause; see whether the name is right" in nothing.stderr
    assert (
        "is a list"
        in standfast("batch", "begin", "start", "--definition", "order", "--inputs", "5", code=Exit.WRONG).stderr
    )


@pytest.mark.row("G-11")
def test_letters_of_one_cause_are_dealt_with_together(stage: Stage) -> None:
    """`dlq groups` tells the cause, `dlq requeue` and `dlq discard` take it; a name that is none is said to be none."""
    standfast = stage.standfast
    for row in ("x", "y"):
        stage.begun("import", row=row)
    (group,) = standfast.json("dlq", "groups", "--definition", "import")["items"]
    cause = ("--cause", group["fingerprint"])
    begun = standfast.json("dlq", "requeue", *cause, "--reason", "again")
    assert (begun["verb"], begun["total"], begun["reason"], begun["cause"]) == ("requeue", 2, "again", cause[1])
    stage.engine.advance(timedelta(seconds=2))
    assert "gave up again" in standfast("batch", "items", begun["id"]).stdout
    assert group["fingerprint"] in standfast("dlq", "discard", *cause).stdout
    refused = standfast("batch", "begin", "discard", *cause, "--id", "d")
    assert "refused   2" in refused.stdout
    assert standfast("requeue", *cause).exit_code == 0
    assert "`standfast dlq groups`" in standfast("dlq", "requeue", "--cause", "feed", code=Exit.NOT_FOUND).stderr
    for words in (("requeue",), ("discard",), ("requeue", "1", *cause), ("requeue", *cause, "--input", "{}")):
        assert "LETTER" in standfast("dlq", *words, code=Exit.WRONG).stderr
    assert "--cause" in standfast("dlq", "discard", "1", "--json", code=Exit.WRONG).stderr
    for listing in ("groups", "list"):
        unknown = standfast("dlq", listing, "--definition", "imprt", code=Exit.NOT_FOUND).stderr
        assert "nothing of this name is published; did you mean 'import'?" in unknown
        assert "(nothing)" in standfast("dlq", listing, "--definition", "order").stderr


def test_a_version_is_archived_and_restored(stage: Stage) -> None:
    """What is out of use starts nothing new, and says so."""
    standfast = stage.standfast
    standfast("definitions", "archive", "order", "1", "--reason", "it pays the wrong account")
    assert "are archived" in standfast("start", "order", code=Exit.REFUSED).stderr
    assert "is archived" in standfast("start", "order", "--version", "1", code=Exit.REFUSED).stderr
    assert "`standfast definitions restore`" in standfast("start", "order", code=Exit.REFUSED).stderr
    (told,) = standfast.json("definitions", "archived")["items"]
    assert (told["name"], told["archived_by"], told["archived_why"]) == ("order", "system", "it pays the wrong account")
    assert "it pays the wrong account" in standfast("definitions", "archived").stdout
    standfast("definitions", "restore", "order", "1")
    standfast("start", "order")
    assert standfast("definitions", "archive", "order", "9", code=Exit.NOT_FOUND).stderr
