"""Lives of schedules and batches that between them write every event of theirs, and every effect."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from histories.tape import Tape
from standfast import Actor, Saga
from standfast.graph.definition import Definition
from standfast.testing.manual import START
from support.envelopes import invoice
from support.inside import clockwork_of

ADA = Actor(id="ada", capabilities=frozenset({"*"}))
"""She has one capability: the order of several is not always the same."""
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)


def schedules(tape: Tape) -> None:
    """Schedules that are put, changed, paused, triggered, made up for and deleted; runs that are put off, stopped, skipped, missed and refused; documents."""
    engine = tape.engine
    engine.register(Saga("note").step("write", lambda: {"written": True}).build())
    engine.register(Saga("slow").wait_for("wait", signal="done").build())
    engine.register(Definition(graph=invoice()))
    calls = engine.acting(ADA)
    calls.schedules.put("stop", "slow", every=HOUR, overlap="cancel_running", end_at=START + 3 * HOUR)
    calls.schedules.put(
        "one", "slow", {"n": 1}, every=HOUR, overlap="buffer_one", note="Grüße ☃", end_at=START + 3 * HOUR
    )
    calls.schedules.put(
        "nightly",
        "note",
        {"kind": "full"},
        version="1",
        cron="30 2 * * *",
        time_zone="Europe/Berlin",
        jitter=timedelta(minutes=5),
        computed={"day": "scheduled_on"},
        catch_up="all",
        window=2 * DAY,
    )
    calls.schedules.put("bad", "note", every=DAY, computed={"x": "number < 2 && started_at"})
    calls.schedules.put(
        "rent", "invoice", {"vendor": "acme"}, every=DAY, computed={"total": "number"}, end_at=START + DAY
    )
    calls.schedules.put(
        "same",
        "invoice",
        {"vendor": "a", "total": 1},
        every=12 * HOUR,
        end_at=START + DAY,
        document_id="'S-{schedule}'",
    )
    for _ in range(3):
        engine.advance(HOUR)
        tape.drain()
    engine.schedules.put("launch", "note", at=START + 4 * HOUR)
    engine.advance(DAY)
    tape.drain()
    calls.schedules.pause("nightly", "the printer is broken")
    calls.schedules.trigger("nightly", overlap="allow_all", command_id="now")
    tape.drain()
    calls.schedules.resume("nightly", "it is mended")
    calls.schedules.backfill(
        "nightly", datetime(2029, 12, 1, tzinfo=UTC), datetime(2029, 12, 4, tzinfo=UTC), at_once=True
    )
    tape.drain()
    calls.schedules.backfill("stop", START - 5 * HOUR, START)
    tape.drain()
    calls.schedules.stop_backfills("stop")
    tape.engine.clock.move(3 * DAY)  # Nobody works.
    tape.drain()
    calls.schedules.put("nightly", "note", cron="0 3 * * *", expected_version=1)
    calls.schedules.delete("one")


def batches(tape: Tape) -> None:
    """Batches that start, pause, cancel and put back, with items that are done, refused, dropped, given up again and looked at."""
    broken = {"a", "b"}

    def fragile(name: str) -> None:
        if name in broken:
            raise ValueError(f"{name} is on fire")

    engine = tape.engine
    engine.register(Saga("ask").step("begin", lambda: None, undo=lambda: None).wait_for("wait", signal="done").build())
    engine.register(Saga("fragile", dlq=True).step("print", fragile, attempts=1).wait("rest", HOUR).build())
    calls = engine.acting(ADA)
    started = calls.batches.begin("start", inputs=[{"n": 1}, {"n": 2}], definition="ask", batch_id="b-1", follow=HOUR)
    tape.drain()
    runs = [each.id for each in engine.runs.list(parent=started.instance).items]
    engine.run(runs[0]).signal("done")
    tape.drain()
    calls.batches.begin("pause", runs, batch_id="b-2", reason="a while", per_second=1)
    tape.drain()
    calls.batches.cancel("b-2", "enough")
    calls.batches.begin("cancel", definition="ask", batch_id="b-3")
    tape.drain()
    for name in ("a", "b"):
        engine.start("fragile", {"name": name}, key=name)
    tape.drain()
    broken.remove("a")
    calls.batches.begin("requeue", definition="fragile", batch_id="b-4")
    tape.drain()
    engine.clock.move(2 * SECOND)
    clockwork_of(engine).fire()
    tape.drain()
    engine.batches.begin("retry", runs, batch_id="b-5")
    engine.advance(2 * HOUR)
    tape.drain()


OWN = (schedules, batches)
