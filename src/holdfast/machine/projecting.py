"""The rows that events leave in the inline projections: steps, questions to people, dead letters, waits.

They are made from events alone, so they can be made again: that is how a run is verified.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from holdfast.kernel.records import (
    DeadLetterRaised,
    DeadLetterSettled,
    Record,
    StepMoved,
    StepOpened,
    SubscriptionClosed,
    SubscriptionOpened,
    TaskClosed,
    TaskOpened,
)
from holdfast.machine import events as e
from holdfast.machine.graph import Human, Node, WaitEvent, WaitTimer
from holdfast.machine.routes import Routes
from holdfast.machine.state import State, Step

DLQ_REASON = "dlq enabled: rollback/compensation skipped"
COMPENSATION_REASON = "compensation max retries exceeded"

_encode = msgspec.json.Encoder().encode


def records_of(routes: Routes, state: State, event: e.Event) -> Sequence[Record]:
    """The rows that change with an event; `state` is the one before it."""
    make = _TABLE.get(type(event))
    return make(routes, state, event) if make is not None else ()


def _step_started(routes: Routes, state: State, event: e.StepStarted) -> list[Record]:
    node = routes.node(event.node)
    token = state.tokens.get(event.token)
    data = event.input if event.input is not None else (token.data if token else {})
    opened: list[Record] = [
        StepOpened(
            number=event.step,
            node=event.node,
            token=event.token,
            visit=event.visit,
            status="pending",
            wait_kind=_wait_kind(node),
            attempts=0,
            input=_encode(data),
        )
    ]
    if event.retry_of is not None:
        opened.append(DeadLetterSettled(source="step", number=event.retry_of))
    return [*opened, *_waits(node, event.step)]


def _wait_kind(node: Node) -> str:
    match node.op:
        case Human():
            return "human"
        case WaitEvent():
            return "event"
        case WaitTimer():
            return "timer"
        case _:
            return ""


def _waits(node: Node, step: int) -> list[Record]:
    match node.op:
        case Human(subject=subject, role=role):
            return [TaskOpened(number=step, subject=subject or node.id, role=role)]
        case WaitEvent(signal=signal):
            return [SubscriptionOpened(number=step, signal=signal)]
        case _:
            return []


def _step_completed(_routes: Routes, state: State, event: e.StepCompleted) -> list[Record]:
    output = None if event.output is None else _encode(event.output)
    step = state.open.get(event.step)
    if step is None:
        return [
            StepOpened(
                number=event.step,
                node=event.node,
                token=event.token,
                visit=event.visit,
                status="completed",
                outcome=event.outcome,
                output=output,
            )
        ]
    moved = StepMoved(
        number=event.step, status="completed", outcome=event.outcome, output=output, attempts=step.attempt
    )
    return [moved, *_closed(_routes, step, event.outcome)]


def _closed(routes: Routes, step: Step, outcome: str) -> list[Record]:
    match routes.node(step.node).op:
        case Human() if outcome not in {"confirmed", "rejected"}:
            return [TaskClosed(number=step.number, outcome=outcome)]
        case WaitEvent():
            return [SubscriptionClosed(number=step.number)]
        case _:
            return []


def _step_retried(_routes: Routes, _state: State, event: e.StepRetried) -> list[Record]:
    return [StepMoved(number=event.step, status="running", attempts=event.attempt, error=event.error)]


def _step_failed(routes: Routes, state: State, event: e.StepFailed) -> list[Record]:
    step = state.open.get(event.step) or state.dead.get(event.step) or state.frozen.get(event.step)
    attempts = None if step is None or event.reason else step.attempt
    if step is not None and event.step in state.dead:
        return [DeadLetterSettled(source="step", number=event.step)]
    status = "skipped" if event.reason else "failed"
    moved = StepMoved(number=event.step, status=status, error=event.error, attempts=attempts)  # type: ignore[arg-type]
    return [moved, *(_closed(routes, step, "cancelled") if step is not None else [])]


def _step_paused(_routes: Routes, state: State, event: e.StepPaused) -> list[Record]:
    step = state.open[event.step]
    token = state.tokens.get(step.token)
    data = step.input if step.input is not None else (token.data if token else {})
    letter = DeadLetterRaised(
        source="step",
        number=event.step,
        name=step.node,
        reason=DLQ_REASON,
        error=event.error,
        payload=_encode(data),
    )
    return [StepMoved(number=event.step, status="failed", error=event.error, attempts=step.attempt), letter]


def _step_withdrawn(_routes: Routes, state: State, event: e.StepWithdrawn) -> list[Record]:
    if state.status == "paused":
        return []
    return [StepMoved(number=event.step, status="skipped")]


def _decided(_routes: Routes, _state: State, event: e.Approved | e.Rejected) -> list[Record]:
    outcome = "confirmed" if isinstance(event, e.Approved) else "rejected"
    return [TaskClosed(number=event.step, outcome=outcome, actor=event.actor, comment=event.comment)]


def _compensation_started(_routes: Routes, state: State, event: e.CompensationStarted) -> list[Record]:
    of = state.executed[event.of]
    return [
        StepOpened(
            number=event.step,
            node=of.node,
            token=of.token,
            kind="compensation",
            compensates=event.of,
            input=_encode(of.input or {}),
        )
    ]


def _compensation_retried(_routes: Routes, _state: State, event: e.CompensationRetried) -> list[Record]:
    return [StepMoved(number=event.step, status="running", attempts=event.attempt, error=event.error)]


def _compensation_succeeded(_routes: Routes, state: State, event: e.CompensationSucceeded) -> list[Record]:
    return [StepMoved(number=event.step, status="completed", attempts=state.open[event.step].attempt)]


def _compensation_exhausted(_routes: Routes, state: State, event: e.CompensationExhausted) -> list[Record]:
    step = state.open[event.step]
    of = state.executed[step.of or 0]
    calls = 0 if step.effect is None else step.attempt
    letter = DeadLetterRaised(
        source="compensation",
        number=event.step,
        name=step.node,
        reason=COMPENSATION_REASON,
        error=event.error,
        payload=_encode(of.input or {}),
    )
    return [StepMoved(number=event.step, status="failed", error=event.error, attempts=calls), letter]


def _step_rolled_back(_routes: Routes, state: State, event: e.StepRolledBack) -> list[Record]:
    of = state.executed[event.of]
    return [
        StepOpened(
            number=event.step,
            node=of.node,
            token=of.token,
            kind="compensation",
            compensates=event.of,
            status="completed",
            outcome="rolled_back",
        )
    ]


_TABLE: dict[type[e.Event], Callable[..., Sequence[Record]]] = {
    e.StepStarted: _step_started,
    e.StepCompleted: _step_completed,
    e.StepRetried: _step_retried,
    e.StepFailed: _step_failed,
    e.StepPaused: _step_paused,
    e.StepWithdrawn: _step_withdrawn,
    e.Approved: _decided,
    e.Rejected: _decided,
    e.CompensationStarted: _compensation_started,
    e.CompensationRetried: _compensation_retried,
    e.CompensationSucceeded: _compensation_succeeded,
    e.CompensationExhausted: _compensation_exhausted,
    e.StepRolledBack: _step_rolled_back,
}
