"""What people do to an open question besides deciding it: claim it, hand it on, ask others as well, talk about it, take it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

from msgspec.structs import replace

from standfast.graph.model import WITHDRAWN, HumanOp
from standfast.kernel.actor import Actor
from standfast.kernel.decision import Answer, Ignored, Rejection
from standfast.machine.flow.deadline_checks import late_refusal
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.engine_tasks import Person
from standfast.machine.model.events import (
    ApprovalsVoided,
    ApproverAdded,
    DecisionWithdrawn,
    Handed,
    StepAnswered,
    TaskClaimed,
    TaskCommented,
    TaskDelegated,
    TaskReassigned,
    TaskReleased,
)
from standfast.machine.model.queries.authorization import answer_refusal, ending_refusal, task_refusal
from standfast.machine.model.queries.eligibility import (
    decision_by,
    is_open_to_all,
    last_decision,
    may_all,
    name_refusal,
    not_delegable,
    person,
    question_of,
    seat_of,
    separation_refusal,
    was_asked,
)
from standfast.machine.model.queries.outputs import decision_of, is_within, merged, too_large
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import StepState
from standfast.machine.model.task_state import Question, Seat, person_named, shown
from standfast.machine.tasks.assignment import MOST_PEOPLE
from standfast.machine.tasks.completion import close, ends_run
from standfast.machine.tasks.entitlement import (
    apart_refusal,
    asked_refusal,
    decider_refusal,
    lapse_of,
    lent_lapse,
    role_lapse,
    role_of,
    seat_for,
    speaker_refusal,
    unclaimed_refusal,
)
from standfast.machine.tasks.notifications import tell_of_task
from standfast.machine.tasks.reminders import ends_next, put_higher

REASSIGN, ADD_APPROVER, WITHDRAW = "task:reassign", "task:add_approver", "task:withdraw"
ESCALATE = "task:escalate"
"""The capabilities that it takes to change who is asked, or whether anybody is, without being asked oneself."""
DELEGATED_BY = "delegated by "
"""What is said of somebody to whom a question was handed on; the name of the last one who did follows."""


class _Task(NamedTuple):
    """An open question."""

    turn: DecisionBuilder
    step: StepState
    op: HumanOp
    question: Question

    @property
    def actor(self) -> Actor:
        return self.turn.moment.actor


def task_command(turn: DecisionBuilder, command: c.TaskCommand) -> Answer | None:
    """What becomes of a command about a question: refused unless it is open."""
    step = turn.state.open.get(command.step)
    op = None if step is None or step.of is not None else turn.routes.node(step.node).op
    if step is None or not isinstance(op, HumanOp):
        if isinstance(command, c.WithdrawDecision) and _is_own_approval(turn, command.step):
            _withdraw_approval(turn, command)
            return None
        known = turn.state.decided.get(command.step)
        told = (
            "" if known is None else f": it was {known['status']} by {known['decided_by']!r} at {known['decided_at']}"
        )
        told += _why_too_late(turn, command)
        return refused(Refusal.NOT_WAITING, f"step {command.step} does not wait for anybody{told}")
    task = _Task(turn, step, op, question_of(turn.routes, turn.state, step))
    return _TABLE[type(command)](task, command)


def _is_own_approval(turn: DecisionBuilder, step: int) -> bool:
    """Whether the actor has approved a document at a step, and no gate has used that up or sees it as void."""
    document, known = turn.state.document, turn.state.decided.get(step)
    approval = None if document is None else document.approvals.get(step)
    if approval is None or approval.verdict != "approved" or known is None:
        return False
    actor, asked = turn.moment.actor, turn.state.asked.get(step, [])
    given = [known, *cast("list[dict[str, object]]", known.get("decisions", []))]
    names = {each.get(name) for each in given for name in ("decided_by", "on_behalf_of")}
    # Whoever decided as a stand-in has a part in it as long as they stand in.
    is_one = not asked or may_all(actor) or any(was_asked(actor, each) for each in asked)
    if actor.on_behalf_of in asked and lent_lapse(turn, Person(name=actor.on_behalf_of), actor):
        return False
    return is_one and bool(names & {actor.id, person(actor)})


def _why_too_late(turn: DecisionBuilder, command: c.TaskCommand) -> str:
    """Why an approval of a document is not withdrawn any more; empty if that is not asked, or not known."""
    document = turn.state.document
    if document is None or not isinstance(command, c.WithdrawDecision):
        return ""
    if command.step in document.used:
        by = document.used[command.step]
        return f", and {by} has used it; a decision can be withdrawn until then; amend the document, or cancel it"
    approval = document.approvals.get(command.step)
    return ", and is void already: it is asked for again" if approval and approval.verdict == "void" else ""


def _withdraw_approval(turn: DecisionBuilder, command: c.WithdrawDecision) -> None:
    """The approval is void, and the gate asks for it again."""
    actor = turn.moment.actor
    turn.emit(
        ApprovalsVoided(
            steps=[command.step],
            why="withdrawn",
            by=actor.id,
            reason=command.reason,
            on_behalf_of=actor.on_behalf_of,
        )
    )


def _claim(task: _Task, _command: c.ClaimTask) -> Answer | None:
    turn, step, _, question = task
    if question.claimed_by == person(task.actor) and question.claimed_stand_in in {"", _stand_in(task)}:
        return Ignored(reason="the same person has claimed it already")
    barred = _unfit_refusal(task)
    if barred is not None:
        return barred
    known = decision_by(question, task.actor)
    if known is None and not seat_of(question, task.actor):
        known = last_decision(question, task.actor)  # In a stage that is over.
    if known is not None:
        told = f"step {step.number} was {known.outcome} by {known.actor!r} at {known.at}; withdraw that decision first"
        return refused(Refusal.ALREADY_DECIDED, told)
    barred = apart_refusal(turn, step)
    if barred is not None:
        return barred
    claimed = TaskClaimed(
        step=step.number, by=person(task.actor), role=role_of(turn, question), stand_in=_stand_in(task)
    )
    turn.emit(claimed)
    return None


def _stand_in(task: _Task) -> str:
    """Return who acts, if they do so for another person by a delegation of the directory; empty if not."""
    is_lent = task.actor.on_behalf_of and not task.turn.moment.asked.actor.on_behalf_of
    return task.actor.id if is_lent else ""


def _unfit_refusal(task: _Task) -> Rejection | None:
    """Why somebody has no part in a question that could be taken or handed on: not asked, or another one has taken it."""
    turn, step = task.turn, task.step
    barred = decider_refusal(turn, step) or unclaimed_refusal(turn, step)
    return barred or late_refusal(turn, step, "this")


def _release(task: _Task, _command: c.ReleaseTask) -> Answer | None:
    turn, step, _, question = task
    if question.claimed_by != person(task.actor) and not task.actor.may(REASSIGN):
        barred = answer_refusal(turn.routes, turn.state, step, task.actor)
        if barred is not None:
            return barred
    if not question.claimed_by:
        return Ignored(reason="nobody has claimed it")
    if question.claimed_by != person(task.actor):
        barred = task_refusal(task.actor, REASSIGN, f"release {step.node!r}, which {question.claimed_by!r} has claimed")
        if barred is not None:
            return barred
    turn.emit(TaskReleased(step=step.number))
    return None


def _delegate(task: _Task, command: c.DelegateTask) -> Answer | None:
    _, step, op, question = task
    barred = _unfit_refusal(task)
    if barred is not None or not op.delegable:
        return barred or not_delegable(step.node)
    barred = apart_refusal(task.turn, step)
    if barred is not None:  # Who may not decide has nothing to hand on.
        return barred
    seat = seat_for(task.turn, question, task.actor) or (_only_seat(question) if may_all(task.actor) else 0)
    if not seat:
        return _nobody(task, "there is no place of yours to hand on")
    held, named = question.seats[seat - 1], person_named(command.to, via="")
    by = person(task.actor) if held.person.kind == "role" else held.person.name
    if named.kind == "role":
        told = f"{step.node!r} is delegated to one user, not to {command.to!r}; have it reassigned to a role"
        return refused(Refusal.NOBODY_NAMED, told)
    if named.name == by:
        told = f"{by!r} has {step.node!r} already; delegate it to somebody else"
        return refused(Refusal.DELEGATION_TO_SELF, told)
    if named.name in held.hands or named.name == held.person.for_:
        told = f"{named.name!r} has handed {step.node!r} on already; delegate it to somebody else"
        return refused(Refusal.DELEGATION_CIRCLE, told)
    heir = Person(
        name=named.name,
        weight=held.person.weight,
        via=f"{DELEGATED_BY}{by}",
        for_=held.person.for_ or by,
        role=role_of(task.turn, question),
    )
    refusal = _newcomer_refusal(task, heir)
    if refusal is None:
        handed = TaskDelegated(
            step=step.number, seat=seat, person=heir, by=by, stand_in=_stand_in(task), reason=command.reason
        )
        _hand(task, handed)
    return refusal


def _reassign(task: _Task, command: c.ReassignTask) -> Answer | None:
    _, step, _, question = task
    seat = _handed_on(task, command)
    barred = None if seat else task_refusal(task.actor, REASSIGN, f"reassign {step.node!r}")
    if barred is not None:
        return barred
    heir = person_named(command.to, via=f"reassigned by {task.actor.id}")
    if seat:
        heir = _taken_back(question.seats[seat - 1], heir.name)
    else:
        free = [place for place, each in question.asked if each.is_free]
        named = [place for place in free if shown(question.seats[place - 1].person) == _spelled(command.who)]
        seat = next(iter(named), 0) if command.who else _only_seat(question)
        if not seat and (command.who or free):
            return _nobody(task, "say who is not asked any more")
        heir = replace(heir, weight=question.seats[seat - 1].person.weight if seat else 1)
    refusal = _newcomer_refusal(task, heir)
    if refusal is None:
        _hand(task, TaskReassigned(step=step.number, seat=seat, person=heir, by=task.actor.id, reason=command.reason))
    return refusal


def _handed_on(task: _Task, command: c.ReassignTask) -> int:
    """The place that the actor has handed on and wants for himself again, for which he needs no right; 0 if he wants something else."""
    who = person(task.actor)
    if person_named(command.to, via="") != person_named(who, via=""):
        return 0
    given = [(place, seat) for place, seat in task.question.asked if seat.is_free and who in seat.hands]
    wanted = [place for place, seat in given if not command.who or shown(seat.person) == _spelled(command.who)]
    return wanted[0] if len(wanted) == 1 else 0


def _taken_back(seat: Seat, giver: str) -> Person:
    """Whoever has handed a place on, as they had it: for whomever they stood in there themselves."""
    held = seat.person
    for_ = "" if held.for_ == giver else held.for_
    return Person(name=giver, weight=held.weight, via=f"taken back from {held.name}", for_=for_, role=held.role)


def _add_approver(task: _Task, command: c.AddApprover) -> Answer | None:
    _, step, op, question = task
    barred = task_refusal(task.actor, ADD_APPROVER, f"have others decide {step.node!r}")
    if barred is not None:
        return barred
    if is_open_to_all(op, question):
        return refused(Refusal.ALREADY_ASKED, f"{step.node!r} asks everybody who may answer it")
    heir = person_named(command.person, via=f"added by {task.actor.id}", weight=command.weight)
    refusal = _newcomer_refusal(task, heir)
    if refusal is None:
        # Where all have to agree, one more helps only in the place of somebody who cannot.
        lost = [place for place in question.lost if question.seats[place - 1].is_free]  # They may have decided since.
        seat = lost[0] if lost and question.agree == "all" else 0
        _hand(task, ApproverAdded(step=step.number, seat=seat, person=heir, by=task.actor.id, reason=command.reason))
    return refusal


def _hand(task: _Task, event: Handed) -> None:
    """Ask somebody else, who is told if those who are asked are."""
    task.turn.emit(event)
    if task.op.channels:
        seats = question_of(task.turn.routes, task.turn.state, task.step).seats
        tell_of_task(task.turn, task.step, seats[-1:], "handed", count=len(seats))


def _newcomer_refusal(task: _Task, heir: Person) -> Rejection | None:
    """Why somebody cannot be asked as well."""
    turn, step, _, question = task
    if not heir.name.strip():
        return refused(Refusal.NOBODY_NAMED, "nobody is named; give the id of a user, or role:<name>")
    if question.is_looking:
        told = f"the people whom {step.node!r} asks are still being looked for; try again when that has ended"
        return refused(Refusal.NOT_ASKED_YET, told)
    if any((seat.person.kind, seat.person.name) == (heir.kind, heir.name) for _, seat in question.asked):
        return refused(Refusal.ALREADY_ASKED, f"{shown(heir)!r} is asked at {step.node!r} already")
    if len(question.seats) >= MOST_PEOPLE:
        return refused(Refusal.TOO_LARGE, f"{step.node!r} has asked {MOST_PEOPLE} people, which is the most")
    return name_refusal(turn.routes, turn.state, step, {heir.name}) if heir.kind == "user" else None


def _comment(task: _Task, command: c.CommentTask) -> Answer | None:
    turn, step = task.turn, task.step
    barred = speaker_refusal(turn, step)
    if barred is not None:
        return barred
    if not is_within(turn.routes, command.text):
        return too_large(turn.routes, f"the comment on {step.node!r}")
    actor = task.actor
    told = TaskCommented(
        step=step.number,
        text=command.text,
        by=actor.id,
        on_behalf_of=actor.on_behalf_of,
        is_question=command.is_question,
    )
    turn.emit(told)
    return None


def _put_higher(task: _Task, command: c.PutHigher) -> Answer | None:
    turn, step = task.turn, task.step
    barred = _escalation_refusal(task)
    if barred is not None:
        return barred
    if not put_higher(turn, step, command.reason):
        told = f"{step.node!r} names nobody to escalate to, or was put to all of them; reassign it, or add an approver"
        return refused(Refusal.NOBODY_NAMED, told)
    return None


def _escalation_refusal(task: _Task) -> Rejection | None:
    """Why somebody cannot have a question escalate now. To have it end by an outcome is to decide it, which four eyes are about."""
    turn, step, op, _ = task
    if ends_next(op, step):
        barred = task_refusal(task.actor, ESCALATE, f"have {step.node!r} end before its time")
        return barred or separation_refusal(turn.routes, turn.state, step, task.actor)
    if turn.state.requester and person(task.actor) == turn.state.requester:
        return None
    if asked_refusal(turn, step) is None:
        return None
    return task_refusal(task.actor, ESCALATE, f"escalate {step.node!r}")


def _withdraw_decision(task: _Task, command: c.WithdrawDecision) -> Answer | None:
    turn, step, _, question = task
    who = person(task.actor)
    seat = next((place for place, each in question.asked if each.decider == who), 0)
    if not seat:
        barred = answer_refusal(turn.routes, turn.state, step, task.actor)
        told = f"{task.actor.id!r} has no decision on {step.node!r} that could be withdrawn"
        return barred or refused(Refusal.NOTHING_DECIDED, told)
    held = question.seats[seat - 1]
    lapse = lapse_of(turn, held, task.actor) or role_lapse(held, task.actor)
    if lapse:
        return refused(Refusal.NOT_ALLOWED, f"{task.actor.id!r} may not withdraw a decision of {who!r}: {lapse}")
    withdrawn = DecisionWithdrawn(
        step=step.number,
        seat=seat,
        actor=task.actor.id,
        reason=command.reason,
        on_behalf_of=task.actor.on_behalf_of,
    )
    turn.emit(withdrawn)
    return None


def _withdraw(task: _Task, command: c.WithdrawTask) -> Answer | None:
    turn, step = task.turn, task.step
    requester = turn.state.requester
    if not requester or person(task.actor) != requester:
        barred = task_refusal(task.actor, WITHDRAW, f"withdraw {step.node!r}")
        if barred is not None:
            return barred
    event = StepAnswered(
        step=step.number,
        outcome=WITHDRAWN,
        actor=task.actor.id,
        at=turn.moment.now.isoformat(),
        on_behalf_of=task.actor.on_behalf_of,
        comment=command.reason,
    )
    data = merged(turn.routes, turn.state.tokens[step.token].data, step.node, decision_of(event))
    if command.reason and not is_within(turn.routes, data):
        return too_large(turn.routes, f"the reason for withdrawing {step.node!r}")
    if ends_run(turn, step, WITHDRAWN, decision_of(event)):
        barred = ending_refusal(turn.routes.graph, task.actor, turn.moment.asked)
        if barred is not None:
            return barred
    close(turn, step, event)
    return None


def _only_seat(question: Question) -> int:
    """The place of the one who is asked; 0 if several are, or nobody is."""
    free = [place for place, seat in question.asked if seat.is_free]
    return free[0] if len(free) == 1 else 0


def _spelled(name: str) -> str:
    return shown(person_named(name, via=""))


def _nobody(task: _Task, what: str) -> Rejection:
    asked = ", ".join(shown(seat.person) for _, seat in task.question.asked if seat.is_free) or "nobody"
    return refused(Refusal.NOBODY_NAMED, f"{task.step.node!r} asks {asked}; {what}")


_TABLE: dict[type[c.TaskCommand], Callable[..., Answer | None]] = {
    c.ClaimTask: _claim,
    c.ReleaseTask: _release,
    c.DelegateTask: _delegate,
    c.ReassignTask: _reassign,
    c.AddApprover: _add_approver,
    c.CommentTask: _comment,
    c.PutHigher: _put_higher,
    c.WithdrawDecision: _withdraw_decision,
    c.WithdrawTask: _withdraw,
}
TASK_COMMANDS: tuple[type[c.TaskCommand], ...] = tuple(_TABLE)
