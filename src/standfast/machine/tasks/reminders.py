"""The times of a question that nobody has answered: reminders and the ladder of escalation.

Each sort has one timer at a time. All times count from when the question was asked, which its step remembers, so that a late one does not
put off those behind it; what was missed while nobody worked is done once. Where a timer is due later than that says, pauses have moved it,
and the times behind it move as much.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from standfast.graph.model import HumanOp, Node, Rung, TaskTimes
from standfast.kernel.actor import SYSTEM, Actor
from standfast.kernel.decision import Answer, Ignored
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.commands.run_commands import EscalateTask, RemindTask, TimeOut
from standfast.machine.model.commands.timers import escalation_timer, reminder_timer, step_timer
from standfast.machine.model.engine_tasks import Person
from standfast.machine.model.events import StepAnswered, TaskEscalated, TaskReminded
from standfast.machine.model.queries.business_time import reached, reached_ms
from standfast.machine.model.queries.outputs import answer_found
from standfast.machine.model.state import StepState
from standfast.machine.model.task_state import Seat
from standfast.machine.recovery.rule_resume import waiting_since
from standfast.machine.tasks.completion import conclude
from standfast.machine.tasks.notifications import asked, tell_of_task
from standfast.machine.tasks.review import review

_MILLISECOND = timedelta(milliseconds=1)
_NO_TIMES = TaskTimes()
_LATE = Ignored(reason="the question is not open any more")


def due_at(turn: DecisionBuilder, node: Node) -> str:
    """When an answer to a question that is asked now is due; empty if nobody says."""
    due_ms = _times(node).due_ms
    if due_ms is None:
        return ""
    return reached(turn.state, _times(node).calendar, turn.moment.now, due_ms).isoformat()


def asked_at(turn: DecisionBuilder, node: Node) -> str:
    """From when the times of a question count that is asked now; empty if it has none."""
    assert isinstance(node.op, HumanOp)
    return waiting_since(turn) if node.op.times is None else turn.moment.now.isoformat()


def begin(turn: DecisionBuilder, step: StepState, node: Node) -> None:
    """A question was asked: its times begin to run, and those who are asked are told, if they want to be."""
    assert isinstance(node.op, HumanOp)
    if node.op.times is not None:
        _set_reminder(turn, step)
        _set_escalation(turn, step)
    if node.op.channels:
        tell_of_task(turn, step, asked(turn, step), "opened")


def remind(turn: DecisionBuilder, command: RemindTask) -> Answer | None:
    """Remind those who are asked, and set the next time."""
    step = turn.state.open.get(command.step)
    if step is None or turn.moment.fired_timer != reminder_timer(command.step):
        return _LATE
    after_ms = _reminder_ms(_times(turn.routes.node(step.node)), step.reminded + 1)
    shift_ms = 0 if after_ms is None else _stood_still_ms(turn, step, reminder_timer(step.number), after_ms)
    count = _last_passed(turn, step, shift_ms)
    turn.emit(TaskReminded(step=step.number, count=count, shift_ms=shift_ms))
    tell_of_task(turn, step, asked(turn, step), "reminded", count=count)
    _set_reminder(turn, step)
    return None


def escalate(turn: DecisionBuilder, command: EscalateTask) -> Answer | None:
    """Go up a rung: ask somebody besides, or end the question."""
    step = turn.state.open.get(command.step)
    if step is None or turn.moment.fired_timer != escalation_timer(command.step):
        return _LATE
    _go_up(turn, step)
    return None


def can_go_higher(op: HumanOp, step: StepState) -> str | None:
    """To whom, or to which outcome, a question can escalate next; None if it cannot."""
    ladder = (op.times or _NO_TIMES).escalation
    if step.level < len(ladder):
        rung = ladder[step.level]
        return rung.outcome or rung.user or f"role:{rung.role}"
    return f"role:{op.last_resort}" if op.last_resort and not step.level else None


def ends_next(op: HumanOp, step: StepState) -> bool:
    """Whether a question ends by an outcome when it escalates next."""
    ladder = (op.times or _NO_TIMES).escalation
    return step.level < len(ladder) and bool(ladder[step.level].outcome)


def put_higher(turn: DecisionBuilder, step: StepState, reason: str) -> bool:
    """Escalate before it is time: to the next rung, or to the last resort. Whether there is any."""
    node = turn.routes.node(step.node)
    if step.level < len(_times(node).escalation):
        turn.cancel_timer(escalation_timer(step.number))
        _go_up(turn, step, reason, by=turn.moment.actor)
        return True
    return _ask_last_resort(turn, step, node, reason)


def _go_up(turn: DecisionBuilder, step: StepState, reason: str = "", *, by: Actor = SYSTEM) -> None:
    level = step.level + 1
    rung = _times(turn.routes.node(step.node)).escalation[step.level]
    shift_ms = _stood_still_ms(turn, step, escalation_timer(step.number), rung.after_ms)
    if rung.outcome:
        ended = TaskEscalated(step=step.number, level=level, outcome=rung.outcome, reason=reason, shift_ms=shift_ms)
        turn.emit(ended if by.kind == SYSTEM.kind else replace(ended, by=by.id, on_behalf_of=by.on_behalf_of))
        verdict = _verdict(turn, step, rung.outcome, by)
        conclude(turn, step, rung.outcome, answer_found(turn.routes, step.node, verdict))
        return
    people = [_person(rung, level)]
    turn.emit(TaskEscalated(step=step.number, level=level, people=people, reason=reason, shift_ms=shift_ms))
    if rung.timeout_ms is not None:
        after_ms = reached_ms(
            turn.state, _times(turn.routes.node(step.node)).calendar, turn.moment.now, rung.timeout_ms
        )
        turn.set_timer(step_timer(step.number), after_ms, TimeOut(step=step.number))
    tell_of_task(turn, step, [Seat(person=each) for each in people], "escalated", count=level)
    review(turn, step)
    _set_escalation(turn, step)


def put_to_others(turn: DecisionBuilder, step: StepState) -> bool:
    """The time of a question is over: ask its last resort, in a run that escalates. Whether that was done."""
    return turn.state.escalates and _ask_last_resort(turn, step, turn.routes.node(step.node))


def _ask_last_resort(turn: DecisionBuilder, step: StepState, node: Node, reason: str = "") -> bool:
    """Ask those who are asked last, once; they have as much time as the others had."""
    assert isinstance(node.op, HumanOp)
    if not node.op.last_resort or step.level:
        return False
    people = [Person(kind="role", name=node.op.last_resort, via="escalation 1")]
    turn.emit(TaskEscalated(step=step.number, level=1, people=people, reason=reason))
    limit = turn.limit_of(node)
    if limit is not None:
        turn.set_timer(step_timer(step.number), limit, TimeOut(step=step.number))
    tell_of_task(turn, step, [Seat(person=each) for each in people], "escalated", count=1)
    review(turn, step)
    return True


def _verdict(turn: DecisionBuilder, step: StepState, outcome: str, by: Actor) -> StepAnswered:
    """The answer that stands for one that nobody has given; the engine's own, or of whoever did not want to wait for it."""
    return StepAnswered(
        step=step.number,
        outcome=outcome,
        actor=by.id,
        at=turn.moment.now.isoformat(),
        on_behalf_of=by.on_behalf_of,
        comment="nobody answered in time" if by.kind == SYSTEM.kind else "it was not waited for any longer",
    )


def _person(rung: Rung, level: int) -> Person:
    return Person(kind="role" if rung.role else "user", name=rung.role or rung.user, via=f"escalation {level}")


def _times(node: Node) -> TaskTimes:
    assert isinstance(node.op, HumanOp)
    return node.op.times or _NO_TIMES


def _set_reminder(turn: DecisionBuilder, step: StepState) -> None:
    after_ms = _reminder_ms(_times(turn.routes.node(step.node)), step.reminded + 1)
    if after_ms is not None:
        turn.set_timer(reminder_timer(step.number), _left_ms(turn, step, after_ms), RemindTask(step=step.number))


def _reminder_ms(times: TaskTimes, count: int) -> int | None:
    """How long after the question a reminder comes; None if there is none of this number."""
    if times.every_ms is not None:
        return times.every_ms * count
    return times.reminders_ms[count - 1] if count <= len(times.reminders_ms) else None


def _last_passed(turn: DecisionBuilder, step: StepState, shift_ms: int) -> int:
    """The last reminder whose time has come: after a standstill people are reminded once."""
    times, count = _times(turn.routes.node(step.node)), step.reminded + 1
    if times.every_ms is not None:
        passed = turn.moment.now - datetime.fromisoformat(step.asked_at) - timedelta(milliseconds=shift_ms)
        return max(count, passed // timedelta(milliseconds=times.every_ms))
    while (after_ms := _reminder_ms(times, count + 1)) is not None and _left_ms(turn, step, after_ms) + shift_ms <= 0:
        count += 1
    return count


def _set_escalation(turn: DecisionBuilder, step: StepState) -> None:
    ladder = _times(turn.routes.node(step.node)).escalation
    if step.level < len(ladder):
        after_ms = _left_ms(turn, step, ladder[step.level].after_ms)
        turn.set_timer(escalation_timer(step.number), after_ms, EscalateTask(step=step.number))


def _stood_still_ms(turn: DecisionBuilder, step: StepState, key: str, after_ms: int) -> int:
    """For how long clocks stood still under pauses of more than the run: their end moves timers, and no run is told of it."""
    moment = turn.moment
    due_at = moment.fired_due_at if moment.fired_timer == key else moment.pending_timers.get(key)
    if due_at is None:
        return 0
    early = _reached(turn, step, after_ms) - due_at
    return max(
        0, -(early // _MILLISECOND)
    )  # A timer is set to whole milliseconds, so that it may be early by less than one.


def _left_ms(turn: DecisionBuilder, step: StepState, after_ms: int) -> int:
    """How long it is until then."""
    return (_reached(turn, step, after_ms) - turn.moment.now) // _MILLISECOND


def _reached(turn: DecisionBuilder, step: StepState, after_ms: int) -> datetime:
    """When so much time has gone by since the question was asked."""
    calendar = _times(turn.routes.node(step.node)).calendar
    return reached(turn.state, calendar, datetime.fromisoformat(step.asked_at), after_ms)
