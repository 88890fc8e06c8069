"""The inline projections: rows of steps, questions, waits and dead letters that a commit writes with its events."""

from __future__ import annotations

from datetime import timedelta

import pytest

from standfast.errors import CommandError
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import (
    STEPS,
    SUBSCRIPTIONS,
    TASKS,
    DeadLetterRaised,
    DeadLetterSettled,
    StepMoved,
    StepOpened,
    SubscriptionClosed,
    SubscriptionOpened,
    TaskChanged,
    TaskOpened,
)
from standfast.kernel.rows import Record, merge
from standfast.store.records.instances import InstanceHeader
from support.desks import Desk
from support.rows import (
    HOUR,
    LATER,
    NOW,
    born,
    moved,
)

FULL_STEP = StepOpened(
    number=2,
    node="refund",
    token="left",
    visit=3,
    kind="compensation",
    status="running",
    compensates=1,
    retry_of=0,
    wait_kind="timer",
    attempts=1,
    outcome="ok",
    error="slow",
    input=b"in",
    output=b"out",
)


def begun(desk: Desk, *records: Record) -> InstanceHeader:
    """An instance with these records in its first commit."""
    return desk.born(born(records=list(records)))


def goes_on(desk: Desk, head: InstanceHeader, *records: Record) -> InstanceHeader:
    """A second commit with these records."""
    change = moved(head, records=list(records))
    desk.commit(change, now=LATER)
    return change.header


def test_a_step_is_written_whole(desk: Desk) -> None:
    """Every column of a step comes back, with the time of the commit that opened it."""
    head = begun(desk, StepOpened(number=1, node="charge"), FULL_STEP)
    plain, full = desk.reader.rows(STEPS, head.id)
    assert (plain.number, plain.node, plain.token, plain.visit, plain.kind) == (1, "charge", "", 1, "forward")
    assert (plain.status, plain.compensates, plain.input, plain.output) == ("pending", None, None, None)
    assert (plain.retry_of, full.retry_of) == (None, 0)
    assert (full.number, full.node, full.token, full.visit, full.kind) == (2, "refund", "left", 3, "compensation")
    assert (full.status, full.compensates, full.wait_kind, full.attempts) == ("running", 1, "timer", 1)
    assert (full.outcome, full.error, full.input, full.output) == ("ok", "slow", b"in", b"out")
    assert (full.instance, full.opened_at, full.moved_at) == (head.id, NOW, NOW)


def test_a_step_moves(desk: Desk) -> None:
    """A move changes the status and what it names, and leaves everything else as it was."""
    head = begun(desk, FULL_STEP)
    head = goes_on(desk, head, StepMoved(number=2, status="pending", attempts=2, error=""))
    (step,) = desk.reader.rows(STEPS, head.id)
    assert (step.status, step.attempts, step.error, step.output, step.outcome) == ("pending", 2, "", b"out", "ok")
    assert (step.opened_at, step.moved_at) == (NOW, LATER)
    goes_on(desk, head, StepMoved(number=2, status="completed", output=b"new", outcome="done", wait_kind=""))
    (step,) = desk.reader.rows(STEPS, head.id)
    assert (step.status, step.output, step.outcome, step.wait_kind) == ("completed", b"new", "done", "")


def test_a_step_begins_with_its_first_call(desk: Desk) -> None:
    """Later calls do not change when it began; and if the first one was taken at once, nobody says when."""
    head = begun(desk, StepOpened(number=1, node="charge"), StepOpened(number=2, node="ship"))
    first = (
        StepMoved(number=1, status="running", attempts=1, started_at=LATER),
        StepMoved(number=2, status="running", attempts=1),
    )
    head = goes_on(desk, head, *first)
    again = [StepMoved(number=each, status="completed", attempts=2, started_at=LATER + timedelta(1)) for each in (1, 2)]
    goes_on(desk, head, *again)
    assert [step.started_at for step in desk.reader.rows(STEPS, head.id)] == [LATER, None]


def test_a_step_begins_once(desk: Desk) -> None:
    """The number of a step is unique within its instance; a commit that opens it again does not stand."""
    head = begun(desk, StepOpened(number=1, node="charge"))
    with pytest.raises(CommandError, match="another one has"):
        goes_on(desk, head, StepOpened(number=1, node="ship"))
    assert desk.loaded(head.id).header.version == 1


def test_a_question_is_asked_and_answered(desk: Desk) -> None:
    """An open question has no outcome; the answer comes with who gave it, why and when."""
    head = begun(desk, TaskOpened(number=4, subject="Pay it?", role="boss", due_at=NOW + HOUR, data=b"facts"))
    (task,) = desk.reader.rows(TASKS, head.id)
    assert (task.instance, task.number, task.subject, task.role) == (head.id, 4, "Pay it?", "boss")
    assert (task.due_at, task.data, task.outcome, task.opened_at, task.closed_at) == (
        NOW + HOUR,
        b"facts",
        None,
        NOW,
        None,
    )
    goes_on(desk, head, TaskChanged(number=4, outcome="approved", actor="ada", comment="fine"))
    (task,) = desk.reader.rows(TASKS, head.id)
    assert (task.outcome, task.actor, task.comment, task.closed_at) == ("approved", "ada", "fine", LATER)


def test_a_question_can_be_answered_in_its_own_commit(desk: Desk) -> None:
    """Merged into one record, a question that is asked and answered at once is closed from the beginning."""
    asked: list[Record] = [TaskOpened(number=1, subject="ok?"), TaskChanged(number=1, outcome="approved", actor="ada")]
    head = begun(desk, *merge(asked))
    (task,) = desk.reader.rows(TASKS, head.id)
    assert (task.outcome, task.actor, task.opened_at, task.closed_at) == ("approved", "ada", NOW, NOW)


def test_a_step_can_end_in_its_own_commit(desk: Desk) -> None:
    """Merged into one record, a step that begins and ends at once is final from the beginning."""
    done: list[Record] = [StepOpened(number=1, node="a"), StepMoved(number=1, status="completed", output=b"x")]
    head = begun(desk, *merge(done))
    assert [(step.status, step.output) for step in desk.reader.rows(STEPS, head.id)] == [("completed", b"x")]


def test_waits_come_and_go(desk: Desk) -> None:
    """A wait is there from the commit that opens it to the one that closes it."""
    head = begun(
        desk,
        SubscriptionOpened(number=1, signal="paid", correlation="o-1"),
        SubscriptionOpened(number=2, signal="shipped"),
    )
    first, second = desk.reader.rows(SUBSCRIPTIONS, head.id)
    assert (first.number, first.kind, first.signal, first.correlation) == (1, "signal", "paid", "o-1")
    assert (second.signal, second.correlation, second.opened_at) == ("shipped", "", NOW)
    goes_on(desk, head, SubscriptionClosed(number=1))
    assert [each.number for each in desk.reader.rows(SUBSCRIPTIONS, head.id)] == [2]


def raised(number: int, name: str = "charge") -> DeadLetterRaised:
    """A dead letter of a step."""
    return DeadLetterRaised(
        source="step", number=number, name=name, type="task", reason="spent", error="no", attempts=3, data=b"input"
    )


def letters(desk: Desk, instance: InstanceId) -> list[tuple[int, str]]:
    """The dead letters of an instance as number and name."""
    return [(each.number, each.name) for each in desk.reader.dead_letters(instance=instance)]


def test_dead_letters_are_raised_and_settled(desk: Desk) -> None:
    """A letter carries what its instance is and what gave up; settling removes that one only."""
    head = desk.born(born(key="o-1", records=[raised(1), raised(2)]))
    (first, _) = desk.reader.dead_letters(instance=head.id)
    assert (first.source, first.number, first.name, first.reason, first.error) == ("step", 1, "charge", "spent", "no")
    assert (first.data, first.definition, first.key, first.created_at) == (b"input", "order", "o-1", NOW)
    assert (first.instance, first.type, first.tenant, first.attempts) == (head.id, "task", "default", 3)
    goes_on(desk, head, DeadLetterSettled(source="step", number=1))
    assert letters(desk, head.id) == [(2, "charge")]


def test_a_letter_can_take_the_place_of_another(desk: Desk) -> None:
    """Settled and raised again in one commit: the old letter goes and the new one stays."""
    head = begun(desk, raised(1, "old"))
    again: list[Record] = [DeadLetterSettled(source="step", number=1), raised(1, "new")]
    head = goes_on(desk, head, *merge(again))
    assert letters(desk, head.id) == [(1, "new")]
    goes_on(desk, head, *merge([*again, *again, DeadLetterSettled(source="step", number=1)]))
    assert letters(desk, head.id) == []


def test_records_of_many_instances_share_a_commit(desk: Desk) -> None:
    """Rows with the same number belong to their own instances."""
    changes = [
        born(records=[StepOpened(number=1, node=node), TaskOpened(number=1, subject=node), raised(1, node)])
        for node in ("a", "b")
    ]
    desk.commit(*changes)
    desk.commit(
        moved(
            changes[0].header, records=[StepMoved(number=1, status="completed"), TaskChanged(number=1, outcome="no")]
        ),
        moved(changes[1].header, records=[DeadLetterSettled(source="step", number=1)]),
    )
    first, second = (change.header.id for change in changes)
    assert [desk.reader.rows(STEPS, each)[0].status for each in (first, second)] == ["completed", "pending"]
    assert [desk.reader.rows(TASKS, each)[0].outcome for each in (first, second)] == ["no", None]
    assert (letters(desk, first), letters(desk, second)) == ([(1, "a")], [])
