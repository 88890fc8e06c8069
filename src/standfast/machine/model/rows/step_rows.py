"""The rows that events leave in the inline projections: steps, questions to people, dead letters, waits.

They are made from events alone, so they can be made again: that is how a run is verified.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

import msgspec

from standfast.graph.index import GraphIndex
from standfast.graph.model import HumanOp, Node
from standfast.kernel.row_kinds.steps import (
    DeadLetterRaised,
    DeadLetterSettled,
    ResumeExecuted,
    StepMoved,
    StepOpened,
    SubscriptionClosed,
    TaskChanged,
    TaskOpened,
)
from standfast.kernel.rows import Record
from standfast.machine.model import events as e
from standfast.machine.model.rows import document_rows, process_rows, task_rows
from standfast.machine.model.state import Data, Executed, RunState, StepState

DLQ_REASON = "dlq enabled: rollback/compensation skipped"
FAILURE_REASON = "the step failed and waits for an operator"
COMPENSATION_REASON = "compensation max retries exceeded"
CHILD_REASON = "compensation_failed"
"""The word that the child itself ended with."""

_encode = msgspec.json.Encoder().encode


class NodeRows(Protocol):
    """What the steps of a kind of node leave in the projections besides their own row."""

    wait_kind: str
    """What an open step waits for, or empty."""

    def opened(self, view: RowProjection, node: Node, step: int, *, data: Data) -> Sequence[Record]:
        """Rows that begin with a step of a token with this data."""
        ...

    def answered(self, view: RowProjection, event: e.StepAnswered) -> Sequence[Record]:
        """Rows that end with an answer."""
        ...

    def closed(self, view: RowProjection, step: int, outcome: str) -> Sequence[Record]:
        """Rows that end with it if nobody has answered."""
        ...


Rows = Callable[[Node], NodeRows]


class RowProjection:
    """The rows of one run."""

    __slots__ = ("_rows", "routes", "state")

    def __init__(self, routes: GraphIndex, rows: Rows, state: RunState) -> None:
        self.routes = routes
        self.state = state
        self._rows = rows

    def records_of(self, event: e.Event) -> Sequence[Record]:
        """The rows that change with an event; the state is still the one before it."""
        make = _TABLE.get(type(event))
        records = make(self, event) if make is not None else ()
        if self.routes.graph.kind == "process":
            return [*records, *process_rows.records_of(self.routes, self.state, event)]
        if self.routes.documents is None:
            return records
        return [*records, *document_rows.records_of(self, event)]

    def data_of(self, name: str) -> Data:
        """What a step of this token works on."""
        token = self.state.token(name)
        return token.data if token is not None else {}

    def input_of(self, name: str) -> bytes:
        """The same, as a row holds it."""
        return _encode(self.data_of(name))

    def rows_of(self, node: Node) -> NodeRows:
        """What its steps leave besides their own row."""
        return self._rows(node)

    def closed(self, step: StepState, outcome: str) -> Sequence[Record]:
        """What ends with a step besides its own row; an answer has ended it already."""
        if step.number in self.state.decided:
            return ()
        return self._rows(self.routes.node(step.node)).closed(self, step.number, outcome)

    def type_of(self, node: str) -> str:
        """The kind of a node, as it is called in graphs."""
        return type(self.routes.node(node).op).__struct_config__.tag  # type: ignore[return-value]


def _step_started(view: RowProjection, event: e.StepStarted) -> list[Record]:
    node = view.routes.node(event.node)
    rows = view.rows_of(node)
    data = view.data_of(event.token)
    opened = StepOpened(
        number=event.step,
        node=event.node,
        token=event.token,
        visit=event.visit,
        retry_of=event.retry_of,
        wait_kind=rows.wait_kind,
        input=_encode(data),
    )
    more = rows.opened(view, node, event.step, data=data)
    return [opened, *(_dated(each, event) for each in more)] if more else [opened]


def _dated(record: Record, event: e.StepStarted) -> Record:
    """The row of a question that is due at some time."""
    if not event.due_at or not isinstance(record, TaskOpened):
        return record
    return msgspec.structs.replace(record, due_at=datetime.fromisoformat(event.due_at))


def _step_completed(view: RowProjection, event: e.StepCompleted) -> list[Record]:
    output = None if event.output is None else _encode(event.output)
    step = view.state.open.get(event.step)
    if step is not None:
        attempts = None if step.effect is None else step.attempt
        moved = StepMoved(
            number=event.step, status="completed", outcome=event.outcome, output=output, attempts=attempts
        )
        return [moved, *view.closed(step, event.outcome)]
    return [
        StepOpened(
            number=event.step,
            node=event.node,
            token=event.token,
            visit=event.visit,
            retry_of=event.retry_of,
            status="completed",
            outcome=event.outcome,
            input=view.input_of(event.token),
            output=output,
        )
    ]


def _retried(_view: RowProjection, event: e.StepRetried | e.CompensationRetried) -> list[Record]:
    attempts = event.attempt if event.was_called else None
    return [StepMoved(number=event.step, status="running", attempts=attempts, error=event.error)]


def _step_failed(view: RowProjection, event: e.StepFailed) -> list[Record]:
    if event.step in view.state.dead:
        return [DeadLetterSettled(source="step", number=event.step)]  # Its row has said that it failed.
    step = view.state.open.get(event.step) or view.state.frozen[event.step]
    if step.of is not None:
        if event.reason:
            return [StepMoved(number=event.step, status="skipped", error=event.error)]
        return [StepMoved(number=event.step, status="failed", error=event.error, attempts=_calls(step, event))]
    if event.reason:
        moved = StepMoved(number=event.step, status="skipped", error=event.error)
        return [moved, *view.closed(step, "cancelled")]
    moved = StepMoved(number=event.step, status="failed", error=event.error, attempts=_calls(step, event))
    return [moved, *view.closed(step, "failed")]


def _calls(step: StepState, event: e.StepFailed | e.StepPaused | e.FailureHeld | e.CompensationExhausted) -> int:
    """How many calls of a step that gave up were made."""
    return step.attempt if step.effect is not None and event.was_called else step.made


def _step_stopped(_view: RowProjection, event: e.StepStopped) -> list[Record]:
    """A call that has come back is counted, and what it answered is kept, although nothing follows from it."""
    if not event.attempt:
        return []
    output = _encode(event.output) if event.is_shown else None
    return [StepMoved(number=event.step, status="skipped", attempts=event.attempt, output=output)]


def _step_paused(view: RowProjection, event: e.StepPaused) -> list[Record]:
    step = view.state.open.get(event.step) or view.state.frozen[event.step]
    waits = view.routes.policies.on_failure == "pause"
    attempts = _calls(step, event)
    letter = DeadLetterRaised(
        source="step",
        number=event.step,
        name=step.node,
        type=view.type_of(step.node),
        reason=FAILURE_REASON if waits else DLQ_REASON,
        error=event.error,
        attempts=attempts,
        data=view.input_of(step.token),
    )
    moved = StepMoved(number=event.step, status="failed", error=event.error, attempts=attempts)
    return [moved, letter, *view.closed(step, "failed")]


def _failure_held(view: RowProjection, event: e.FailureHeld) -> list[Record]:
    """The step has not ended; that it will, and why, is told already."""
    attempts = _calls(view.state.open[event.step], event)
    return [StepMoved(number=event.step, status="running", error=event.error, attempts=attempts)]


def _step_withdrawn(view: RowProjection, event: e.StepWithdrawn) -> list[Record]:
    if view.state.status == "paused":
        return []  # It is called after all once the run goes on.
    return [StepMoved(number=event.step, status="skipped")]


def _step_requeued(_view: RowProjection, event: e.StepRequeued) -> list[Record]:
    return [DeadLetterSettled(source="step", number=event.step)]


def _workflow_forked(_view: RowProjection, event: e.WorkflowForked) -> list[Record]:
    """The steps that it takes over, as far as the state remembers them; what they answered is told by the other run."""
    return [
        StepOpened(number=each.number, node=each.node, token=each.token, status=each.status)
        for each in event.state.executed.values()
    ]


def _step_repaired(view: RowProjection, event: e.StepRepaired) -> list[Record]:
    if event.step in view.state.dead:
        return [DeadLetterSettled(source="step", number=event.step)]
    step = view.state.open.get(event.step)
    if event.repair != "skip" or step is None or not isinstance(view.routes.node(step.node).op, HumanOp):
        return []
    return [TaskChanged(number=event.step, actor=event.actor, comment=event.reason)]


def _step_skipped(view: RowProjection, event: e.StepSkipped) -> list[Record]:
    step = view.state.open.get(event.step)
    if step is not None:
        moved = StepMoved(number=event.step, status="skipped", outcome=event.outcome)
        return [moved, *view.closed(step, task_rows.OVERRIDDEN)]
    return [
        StepOpened(
            number=event.step,
            node=event.node,
            token=event.token,
            visit=event.visit,
            retry_of=event.retry_of,
            status="skipped",
            outcome=event.outcome,
            input=view.input_of(event.token),
        )
    ]


def _step_answered(view: RowProjection, event: e.StepAnswered) -> Sequence[Record]:
    return view.rows_of(view.routes.node(view.state.open[event.step].node)).answered(view, event)


def _compensation_started(view: RowProjection, event: e.CompensationStarted) -> list[Record]:
    return [*_settled(view, event.of), _undoing(view.state.executed[event.of], event.step)]


def _settled(view: RowProjection, number: int) -> Sequence[Record]:
    """The dead letter of a compensation goes, if this is the one that gave up."""
    halted = view.state.rollback or view.state.dropped
    is_stuck = halted is not None and halted.stuck == number
    return [DeadLetterSettled(source="compensation", number=number)] if is_stuck else []


def _turned_back(
    view: RowProjection, _event: e.RollbackStarted | e.CancellationStarted | e.AbortStarted | e.MoveBackStarted
) -> Sequence[Record]:
    """Whoever could not be undone while the run went on is undone with all the others now, or not at all."""
    stuck = None if view.state.dropped is None else view.state.dropped.stuck
    return () if stuck is None else _settled(view, stuck)


def _undoing(of: Executed, number: int) -> StepOpened:
    return StepOpened(
        number=number,
        node=of.node,
        token=of.token,
        kind="compensation",
        compensates=of.number,
        input=_encode(of.input or {}),
    )


def _compensation_succeeded(view: RowProjection, event: e.CompensationSucceeded) -> list[Record]:
    step = view.state.open[event.step]
    return [StepMoved(number=event.step, status="completed", attempts=0 if step.child else step.attempt)]


def _compensation_exhausted(view: RowProjection, event: e.CompensationExhausted) -> list[Record]:
    step = view.state.open[event.step]
    assert step.of is not None
    of = view.state.executed[step.of]
    calls = _calls(step, event)
    letter = DeadLetterRaised(
        source="compensation",
        number=of.number,
        name=of.node,
        type=view.type_of(of.node),
        reason=CHILD_REASON if of.not_undone else COMPENSATION_REASON,
        error=event.error,
        attempts=calls,
        data=_encode(of.input or {}),
    )
    return [StepMoved(number=event.step, status="failed", error=event.error, attempts=calls), letter]


def _child_undone(view: RowProjection, event: e.ChildUndone) -> Sequence[Record]:
    return _settled(view, event.step)


def _compensation_waived(_view: RowProjection, event: e.CompensationWaived) -> list[Record]:
    return [DeadLetterSettled(source="compensation", number=event.step)]  # The row of the compensation stays failed.


def _step_rolled_back(view: RowProjection, event: e.StepRolledBack) -> list[Record]:
    of = view.state.executed[event.of]
    return [
        StepOpened(
            number=event.step,
            node=of.node,
            token=of.token,
            kind="compensation",
            compensates=event.of,
            status="completed",
            outcome="rolled_back",
        ),
    ]


def _resumed(view: RowProjection, event: e.WorkflowResumed) -> Sequence[Record]:
    """The request to go on, if there was one; and what is due later, if clocks stood still."""
    later = task_rows.put_off(view, event.shift_ms) if event.shift_ms else []
    if not event.request:
        return later
    brought = event.told if event.data is None else event.data
    return [
        *later,
        ResumeExecuted(
            id=UUID(event.request),
            triggered_by=event.trigger,
            triggered_by_id=event.trigger_id or event.by,
            trigger_data=None if brought is None else _encode(brought),
            reason=event.reason,
            requested_by=event.by,
        ),
    ]


def _event_received(_view: RowProjection, event: e.EventReceived) -> list[Record]:
    return [SubscriptionClosed(number=event.step, place=event.place)]


_TABLE: dict[type[e.Event], Callable[..., Sequence[Record]]] = {
    e.StepStarted: _step_started,
    e.StepCompleted: _step_completed,
    e.StepRetried: _retried,
    e.StepFailed: _step_failed,
    e.StepStopped: _step_stopped,
    e.StepPaused: _step_paused,
    e.FailureHeld: _failure_held,
    e.StepWithdrawn: _step_withdrawn,
    e.StepRequeued: _step_requeued,
    e.WorkflowForked: _workflow_forked,
    e.StepRepaired: _step_repaired,
    e.StepSkipped: _step_skipped,
    e.StepAnswered: _step_answered,
    e.CompensationStarted: _compensation_started,
    e.CompensationRetried: _retried,
    e.CompensationSucceeded: _compensation_succeeded,
    e.CompensationExhausted: _compensation_exhausted,
    e.CompensationWaived: _compensation_waived,
    e.ChildUndone: _child_undone,
    e.StepRolledBack: _step_rolled_back,
    e.RollbackStarted: _turned_back,
    e.CancellationStarted: _turned_back,
    e.AbortStarted: _turned_back,
    e.MoveBackStarted: _turned_back,
    e.WorkflowResumed: _resumed,
    e.EventReceived: _event_received,
    **task_rows.TABLE,
}
