"""Notifications of processes: a notification is sent, and the run goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from app.processes.acting import ends, process, registered
from standfast import Actor
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Live, Place

TELL = {"id": "tell", "type": "notification", "operation": "mail", "input": {"to": "workflow.to"}}
PAY = {"id": "pay", "type": "system", "operation": "pay", "retry": {"attempts": 1}}
WAYS = "tell completed pay, pay completed done"


def text(**tell: object) -> str:
    """Somebody is told something, and then something is paid."""
    return process({**TELL, **tell}, PAY, *ends("done"), ways=WAYS)


def paying(engine: ManualEngine, file: str) -> InstanceId:
    """A run of such a process, as far as it goes."""
    engine.handle("pay", lambda: None)
    registered(engine, file)
    run = engine.processes.start("w", {"to": "ann"}).id
    engine.drain()
    return run


def mailer(sent: list[str]) -> Callable[[str], None]:
    """A handler that notes whom it was to tell."""

    def mail(to: str) -> None:
        sent.append(to)

    return mail


def trail(engine: ManualEngine, run: InstanceId) -> list[tuple[str, str]]:
    """What happened to which step."""
    return [(each.step_id, each.event) for each in engine.processes.events(run)]


SENT = [
    ("tell", "step_entered"),
    ("tell", "step_completed"),
    ("pay", "step_entered"),
    ("pay", "step_completed"),
]


@pytest.mark.row("P-017", "P-094")
def test_a_notification_without_a_handler_holds_nobody_up(place: Place) -> None:
    """The steps behind are done, and the notification is sent once there is a handler."""
    engine = place.engine()
    run = paying(engine, text())
    assert engine.processes.get(run).instance.status == "completed"
    assert trail(engine, run) == SENT
    sent: list[str] = []
    engine.handle("mail", mailer(sent))
    engine.drain()
    assert sent == ["ann"]
    assert trail(engine, run) == SENT


@pytest.mark.row("P-017", "P-094", "P-091")
def test_a_notification_that_fails_is_sent_again_while_the_run_goes_on(place: Place) -> None:
    """Its retries are its own; once it gives up the trail tells of it, and an operator finds it among the dead letters."""
    engine, calls = place.engine(), list[int]()

    def mail(to: str) -> None:
        calls.append(len(calls) + 1)
        raise ConnectionError(f"no mail for {to}")

    engine.handle("mail", mail)
    run = paying(engine, text(retry={"attempts": 2, "delay": "20s"}))
    assert engine.processes.get(run).instance.status == "completed"
    assert (calls, trail(engine, run)) == ([1], SENT)
    engine.advance(seconds=21)
    assert (calls, trail(engine, run)) == ([1, 2], [*SENT, ("tell", "step_failed")])
    last = engine.processes.events(run)[-1]
    assert (last.actor_id, last.data) == ("system", {"error": "ConnectionError: no mail for ann"})
    (letter,) = engine.dead_letters.list()
    assert (letter.source, letter.name, letter.attempts) == ("effect", "mail", 2)
    assert engine.processes.get(run).instance.state == {"to": "ann"}


@pytest.mark.row("P-017")
def test_a_notification_that_could_not_be_sent_can_be_sent_again(place: Place) -> None:
    """The dead letter is put back to work also after the run has ended; a second failure is told like the first."""
    engine, fails = place.engine(), [True, True, False]
    sent: list[str] = []

    def mail(to: str) -> None:
        if fails.pop(0):
            raise ConnectionError("mail is down")
        sent.append(to)

    engine.handle("mail", mail)
    run = paying(engine, text(retry={"attempts": 1}))
    for expected in (2, 2):
        (letter,) = engine.dead_letters.list()
        engine.dead_letters.requeue(letter.id)
        engine.drain()
        failures = [each for each in trail(engine, run) if each == ("tell", "step_failed")]
        assert len(failures) == expected
    assert (sent, engine.dead_letters.list()) == (["ann"], [])


@pytest.mark.row("P-017", "P-058")
def test_a_notification_that_hangs_holds_nobody_up(live: Live) -> None:
    """With workers too, a call comes back although a notification on its way has not."""
    released = threading.Event()
    engine = live.engine().handle("mail", lambda to: released.wait(60)).handle("pay", lambda: None)
    registered(engine, text())
    with engine:
        done = engine.processes.start("w", {"to": "ann"}, patience=timedelta(seconds=30))
        released.set()
    assert (done.status, done.current_step) == ("completed", "done")


@pytest.mark.row("P-114")
def test_a_guard_behind_a_notification_is_not_asked_of_whoever_came_there(place: Place) -> None:
    """What follows a notification follows by itself, whoever has moved the run there."""
    file = process(TELL, *ends("done"), ways="tell completed done").replace(
        '"event": "completed"', '"event": "completed", "guard": "x:y"'
    )
    engine = place.engine()
    registered(engine, file)
    assert engine.acting(Actor(id="eve")).processes.start("w", {"to": "ann"}).status == "completed"


@pytest.mark.row("P-094")
def test_a_notification_that_cannot_be_worded_goes_on(place: Place) -> None:
    """What it is to be given cannot be told: that is in the trail, and nothing is called."""
    engine = place.engine()
    run = paying(engine, text(input={"to": "workflow.to.first"}))
    assert engine.processes.get(run).instance.status == "completed"
    assert trail(engine, run)[:2] == [("tell", "step_entered"), ("tell", "step_failed")]


@pytest.mark.row("P-099", "P-100")
def test_notifications_in_a_circle_are_stopped(place: Place) -> None:
    """They count as automatic steps although nobody waits for them, and the run is suspended."""
    other = {**TELL, "id": "other"}
    engine = place.engine()
    registered(
        engine,
        process(TELL, other, *ends("done"), ways="tell completed other, other completed tell, other completed done"),
    )
    run = engine.processes.start("w", {"to": "ann"})
    assert run.status == "suspended"
    assert "WORKFLOW_CHAIN_LIMIT" in str(run.state["_last_error"])
    sent: list[str] = []
    engine.handle("mail", mailer(sent))
    engine.drain()
    assert len(sent) == 10
