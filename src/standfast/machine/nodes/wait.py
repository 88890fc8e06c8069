"""Waiting for time to go by, for an instant, or for a signal.

Entered when: a token arrives. May do: set a timer, or wait for a signal; one that came early is taken at once. Left when: the time is over, or the signal or an
answer is there (`ok`), or the signal did not come in time (`timeout`); at once, as a failure, if what should be an instant is none.
On compensation: nothing to undo.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from standfast.errors import ExpressionError
from standfast.expressions import ExpressionErrorCode
from standfast.expressions.model.temporal import EXAMPLES, in_utc, read_time
from standfast.graph.model import OK, Node, WaitEventOp, WaitTimerOp
from standfast.graph.values.calendars import next_time
from standfast.kernel.decision import Answer, Rejection
from standfast.kernel.row_kinds.steps import SubscriptionClosed, SubscriptionOpened
from standfast.kernel.rows import Record
from standfast.machine.flow.deadline_checks import is_late, late_refusal
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.failures import take_answer
from standfast.machine.flow.node_kind import Kind, answer_of, no_transition
from standfast.machine.flow.routing import finish, is_barred
from standfast.machine.model.commands.run_commands import AnswerStep, SendSignal, TimeOut
from standfast.machine.model.commands.timers import step_timer
from standfast.machine.model.events import SignalReceived, SignalTaken, StepAnswered
from standfast.machine.model.queries.authorization import capability_refusal, signal_refusal
from standfast.machine.model.queries.business_time import check_calendar, reached_ms
from standfast.machine.model.queries.outputs import is_within, merged, too_large
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.rows.step_rows import RowProjection
from standfast.machine.model.state import Data, StepState, Token
from standfast.machine.recovery.rule_resume import waiting_since

MOST_KEPT = 1000
"""Signals that a run keeps until a step waits for them, all names together: they are part of its state, which has to stay small."""


class WaitTimerKind(Kind):
    """Waits for time to go by."""

    wait_kind = "timer"

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Set the timer."""
        assert isinstance(node.op, WaitTimerOp)
        if node.op.duration_ms is not None:
            try:
                check_calendar(turn.state, node.op.calendar)
            except ExpressionError as error:
                self.fail(turn, token, node, f"{node.id!r} cannot count its time: {error}")
                return
            number = turn.open_step(token, node, asked_at=waiting_since(turn)).number
            after_ms = reached_ms(turn.state, node.op.calendar, turn.moment.now, node.op.duration_ms)
            turn.set_timer(step_timer(number), after_ms, TimeOut(step=number))
            return
        try:
            due = _due(turn, token, node, node.op)
        except ExpressionError as error:
            self.fail(turn, token, node, f"{node.id!r} waits for what is no instant: {error}")
            return
        step = turn.open_step(token, node, asked_at=waiting_since(turn))
        turn.set_alarm(step_timer(step.number), due, TimeOut(step=step.number))

    def time_out(self, turn: DecisionBuilder, step: StepState) -> None:
        """That is what it waited for."""
        finish(turn, step)


def _due(turn: DecisionBuilder, token: Token, node: Node, op: WaitTimerOp) -> datetime:
    """When the wait is over; ExpressionError if what should say so does not."""
    now = turn.moment.now
    until = turn.routes.until(node.id)
    if until is None:
        return next_time(op.cron, op.time_zone, now)
    value = until.evaluate(turn.data_for(token, node.id))
    instant = read_time(value, "datetime") if isinstance(value, str) else value
    if not isinstance(instant, datetime):
        raise ExpressionError(f"{value!r} should look like {EXAMPLES['datetime']}", reason=ExpressionErrorCode.BAD_TIME)
    return max(in_utc(instant), now)


class WaitEventKind(Kind):
    """Waits for a signal."""

    wait_kind = "event"

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Take a signal that came early, or wait."""
        assert isinstance(node.op, WaitEventOp)
        kept = turn.state.signals.get(node.op.signal)
        step = turn.open_step(token, node, asked_at=waiting_since(turn))
        if kept:
            payload = kept[0]
            turn.emit(SignalTaken(name=node.op.signal))
            turn.cancel_step_timer(step)
            take_answer(turn, step, payload)

    def opened(self, view: RowProjection, node: Node, step: int, *, data: Data) -> Sequence[Record]:  # noqa: ARG002 - a signal has a name
        """The wait."""
        assert isinstance(node.op, WaitEventOp)
        return [SubscriptionOpened(number=step, signal=node.op.signal)]

    def answer(self, turn: DecisionBuilder, step: StepState, command: AnswerStep) -> Rejection | None:
        """Whoever was given the step itself tells that what it waits for has happened; no signal is needed."""
        refusal = _refusal(turn, step, command.data, f"the answer to {step.node!r}")
        if refusal is None:
            turn.emit(answer_of(turn, step, command, command.data))
            _go_on(turn, step, command.data)
        return refusal

    def answered(self, view: RowProjection, event: StepAnswered) -> Sequence[Record]:  # noqa: ARG002 - the event tells
        """The wait is over."""
        return [SubscriptionClosed(number=event.step)]

    def closed(self, view: RowProjection, step: int, outcome: str) -> Sequence[Record]:  # noqa: ARG002 - it is over anyhow
        """It is over."""
        return [SubscriptionClosed(number=step)]


def signal(turn: DecisionBuilder, command: SendSignal) -> Answer | None:
    """Something has happened: the step that waits for it goes on; if none does, the signal is kept."""
    step, payload = _waiting(turn, command.name), command.payload
    actor, what = turn.moment.actor, f"the signal {command.name!r}"
    if step is not None and is_late(turn, step):
        return capability_refusal(turn.routes.node(step.node), actor) or late_refusal(turn, step, what)
    if step is None and turn.routes.documents is not None and not turn.routes.waiting_for(command.name):
        told = f"no step of a document of the type {turn.routes.graph.name!r} waits for {what}"
        instead = "publish an event for a step that waits for one, or ask for a transition"
        return refused(Refusal.NOT_WAITING, f"{told}; {instead}")
    if step is None:
        barred = signal_refusal(turn.routes, command.name, actor)
        if barred is not None:
            return barred
        if not is_within(turn.routes, payload):
            return too_large(turn.routes, what)
        if sum(map(len, turn.state.signals.values())) >= MOST_KEPT:
            return _too_many(command.name)
        turn.emit(SignalReceived(name=command.name, payload=payload))
        return None
    refusal = capability_refusal(turn.routes.node(step.node), actor) or _refusal(turn, step, payload, what)
    if refusal is None:
        turn.emit(SignalReceived(name=command.name, payload=payload))
        turn.emit(SignalTaken(name=command.name))
        _go_on(turn, step, payload)
    return refusal


def _refusal(turn: DecisionBuilder, step: StepState, payload: object, what: str) -> Rejection | None:
    """Why a step cannot go on with what it is brought."""
    token = turn.state.tokens[step.token]
    data = merged(turn.routes, token.data, step.node, payload)
    if payload is not None and not is_within(turn.routes, data):
        return too_large(turn.routes, what)
    is_closed = is_barred(turn, token, step.node, OK, data=data, answer=payload)
    return no_transition(step.node, OK, turn.moment.actor.id) if is_closed else None


def _go_on(turn: DecisionBuilder, step: StepState, payload: object) -> None:
    turn.cancel_step_timer(step)
    finish(turn, step, output=payload)


def _too_many(name: str) -> Rejection:
    return refused(
        Refusal.TOO_MANY_SIGNALS,
        f"{MOST_KEPT} signals are kept for this workflow already, and no step waits for {name!r} now; "
        "send it again when one does, or send one signal that stands for many",
    )


def _waiting(turn: DecisionBuilder, name: str) -> StepState | None:
    """The step that waits for a signal, if there is one; of several the first whose time is not over."""
    found = [
        step
        for step in turn.state.open.values()
        if step.of is None and isinstance(op := turn.routes.node(step.node).op, WaitEventOp) and op.signal == name
    ]
    return next((step for step in found if not is_late(turn, step)), found[0] if found else None)
