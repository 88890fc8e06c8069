"""A human step asks people.

Entered when: a token arrives. May do: find out who is asked, and ask; but for an approval that is in force. Left when: they have agreed on one
of the outcomes that the node names, or one person did where that is enough; or the question was taken back (`withdrawn`), or nobody answered in time (`timeout`).
On compensation: a confirmed decision is rolled past; its own undoing work is called, if it has any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from standfast.errors import ExpressionError
from standfast.graph.model import HumanOp, Node
from standfast.graph.nodes.human import SHOWN
from standfast.graph.values.approver_rules import Vote
from standfast.kernel.decision import Answer, Ignored, Rejection
from standfast.kernel.row_kinds.steps import GuardedTask, GuardedValue, TaskOpened
from standfast.kernel.rows import Record
from standfast.machine.flow.decision_builder import DecisionBuilder, Ending
from standfast.machine.flow.node_kind import Kind, answer_of, no_transition
from standfast.machine.flow.process_answers import forget_answers, keep_answers
from standfast.machine.flow.routing import May, is_barred, pass_through, value_of
from standfast.machine.model.commands.run_commands import AnswerStep
from standfast.machine.model.events import StagePassed, StepAnswered, TaskDecided
from standfast.machine.model.queries.branches import entry_of
from standfast.machine.model.queries.business_time import check_calendar
from standfast.machine.model.queries.eligibility import decision_by, last_decision, question_of, seat_of
from standfast.machine.model.queries.expression_scope import text_names
from standfast.machine.model.queries.outputs import (
    answer_found,
    hidden_name,
    hidden_told,
    is_within,
    judged,
    merged,
    too_large,
)
from standfast.machine.model.queries.text_templates import Text, subject_of, value_shown
from standfast.machine.model.queries.voting import (
    ALL_ABSTAINED,
    is_beyond_reach,
    reason_against,
    verdict,
    vote_of,
    votes_of,
)
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.rows import task_rows
from standfast.machine.model.rows.step_rows import RowProjection
from standfast.machine.model.state import ROOT, Data, StepState, Token
from standfast.machine.model.task_state import Question, TaskVote
from standfast.machine.tasks.assignment import ask, leave_out, look_up
from standfast.machine.tasks.completion import close, filled_in
from standfast.machine.tasks.entitlement import apart_refusal, asked_refusal, seat_for, unclaimed_refusal
from standfast.machine.tasks.reminders import asked_at, begin, due_at, put_to_others
from standfast.machine.tasks.review import look_again

_encode = msgspec.json.Encoder().encode


class HumanKind(Kind):
    """Asks people."""

    wait_kind = "human"

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Ask, unless the answer is in force already; a question that cannot be put into words is a failure of the step."""
        assert isinstance(node.op, HumanOp)
        document = turn.state.document
        kept = None if document is None else document.kept(node.id, token.id, entry_of(turn.routes, token))
        if kept is not None and token.retry_of is None:
            pass_through(turn, token, node, node.op.approval, output=token.data.get(turn.routes.answer_name(node.id)))
            return
        forget_answers(turn, token, node.id)
        try:
            subject_of(turn.routes, node, turn.names_for(token, node.id))
            if node.op.times is not None:
                check_calendar(turn.state, node.op.times.calendar)
        except ExpressionError as error:
            self.fail(turn, token, node, str(error))
            return
        step = turn.open_step(token, node, asked_at=asked_at(turn, node), due_at=due_at(turn, node))
        begin(turn, step, node)
        if not node.op.is_settled:
            ask(turn, step)
            return
        leave_out(turn, step)
        if turn.state.looks_up:
            look_up(turn, step)

    def opened(self, view: RowProjection, node: Node, step: int, *, data: Data) -> Sequence[Record]:
        """The question, with the values that it had when it was asked, and those whom the definition names."""
        op, names = node.op, text_names(view.state, data)
        assert isinstance(op, HumanOp)
        try:
            subject = subject_of(view.routes, node, names)
        except ExpressionError:  # The step has failed by it; the row tells what would have been asked.
            subject = Text(op.subject, op.subject)
        document = view.state.document
        shown, guarded = _shown(view, node, names, subject)
        asked = TaskOpened(
            number=step,
            node=node.id,
            subject=subject.shown,
            role=op.role,
            requester=view.state.requester,
            kept_out=task_rows.kept_out(view, StepState(number=step, node=node.id, token=ROOT)),
            agreement=task_rows.agreement_of(op),
            data=_encode(shown) if shown else None,
            guarded=guarded,
            document_version=None if document is None or not op.pins else str(document.version),
        )
        return [asked, *task_rows.asked_at_once(op, step)]

    def answer(self, turn: DecisionBuilder, step: StepState, command: AnswerStep) -> Answer | None:
        """Take a decision. Once those who are asked have agreed, or cannot any more, the step goes on by what that comes to."""
        op, question = _asked(turn, step)
        data, unfit = filled_in(turn.routes, step.node, command.outcome, command.data)
        refusal = _repeated(turn, step, command, data) or _refusal(turn, step, command)
        if refusal is not None or (unfit is not None and not op.lays_over):
            return refusal or unfit
        tally = _tally(turn, step, command, data)
        closed = _without_way(turn, step, op, tally)
        if op.lays_over:  # A process says first whether a way is open at all.
            refusal = closed or unfit or _hidden(command.data)
        refusal = refusal or _without_room(turn, step, op, tally) or closed
        if refusal is not None:
            return refusal
        if tally.decided is not None:
            turn.emit(tally.decided)
        if tally.is_over:
            close(turn, step, tally.answer, may=tally.may)
        elif tally.is_stage_over:
            turn.emit(StagePassed(step=step.number, stage=question.stage))
            ask(turn, step)
        return None

    def stop(self, turn: DecisionBuilder, step: StepState, ending: Ending) -> bool:
        """Nothing was asked for of anybody who would have to be told; what people have given by now stays."""
        keep_answers(turn, step)
        return super().stop(turn, step, ending)

    def time_out(self, turn: DecisionBuilder, step: StepState) -> None:
        """Put the question to others first, if the run does so and that was not done yet."""
        if not put_to_others(turn, step):
            super().time_out(turn, step)

    def resume(self, turn: DecisionBuilder, step: StepState) -> None:
        """Look for people again if nobody could decide."""
        look_again(turn, step)

    def answered(self, view: RowProjection, event: StepAnswered) -> Sequence[Record]:
        """The question is answered."""
        return task_rows.answered(view.routes, view.state, event)

    def closed(self, view: RowProjection, step: int, outcome: str) -> Sequence[Record]:
        """A question that nobody answered; an answer has closed it already."""
        return task_rows.ended(view.routes, view.state, step, outcome)


def _shown(view: RowProjection, node: Node, names: Data, subject: Text) -> tuple[Data, bytes | None]:
    """What a question shows to everybody, and as JSON what it shows to some alone; None if that is nothing."""
    shown: Data = {}
    more = GuardedTask(subject=GuardedValue(subject.full, subject.audience) if subject.audience else None)
    for name, each in view.routes.shown(node.id).items():
        value, guarded = value_of(each, names), view.routes.guarded(node.id, f"{SHOWN}{name}")
        shown[name] = value if guarded is None else value_shown(guarded, value)
        if guarded is not None:
            more.data[name] = GuardedValue(value, guarded.audience)
    return shown, _encode(more) if more.subject is not None or more.data else None


class _Tally(NamedTuple):
    """What a decision comes to, together with those before it."""

    answer: StepAnswered
    """What would be told if the question ended by it."""
    decided: TaskDecided | None = None
    """What is told of the decision itself, where several are asked."""
    is_over: bool = True
    is_stage_over: bool = False
    may: May | None = None
    """Which guards may be passed, where several have decided; None means those of the actor."""


def _asked(turn: DecisionBuilder, step: StepState) -> tuple[HumanOp, Question]:
    op = turn.routes.node(step.node).op
    assert isinstance(op, HumanOp)
    return op, question_of(turn.routes, turn.state, step)


def _repeated(turn: DecisionBuilder, step: StepState, command: AnswerStep, data: object) -> Answer | None:
    """What a second decision of the same person comes to: the same one is no news, and the first one stands.

    A decision is for the stage that the caller names. If they name none, it is for the stage that they have decided before.
    """
    _, question = _asked(turn, step)
    actor, stages = turn.moment.actor, question.numbers_of(command.stage)
    if command.stage and question.stage not in stages:
        known = last_decision(question, actor, stages)
        if known is None:
            return _out_of_stage(question, step, command)
    else:
        known = decision_by(question, actor)
        if known is None and seat_of(question, actor):
            known = last_decision(question, actor, _before(question, stages))
        elif known is None and not command.stage:
            known = last_decision(question, actor)
    if known is None:
        return None
    if (known.outcome, known.data, known.document_version) == (command.outcome, data, command.document_version):
        return Ignored(reason="this was decided before, in the same way and by the same person")
    told = f"step {step.number} was {known.outcome} by {known.actor!r} at {known.at}"
    if known is not decision_by(question, actor) and question.stages:
        told += f", in a stage that is over; name the stage to decide the present one: {question.stage_asked!r}"
        return refused(Refusal.ALREADY_DECIDED, told)
    return refused(Refusal.ALREADY_DECIDED, f"{told}; withdraw that decision before you give another one")


def _before(question: Question, named: Sequence[int]) -> Sequence[int]:
    """The stages before the present one that an answer may be for; none of them if it names the present one, and no other has this name."""
    return [each for each in named if each != question.stage] if named else range(1, question.stage)


def _out_of_stage(question: Question, step: StepState, command: AnswerStep) -> Rejection:
    """Why an answer counts for nothing that names another stage than the one that is asked."""
    asked = f"stage {question.stage_asked!r} is asked now" if question.stages else "no stages are asked there"
    told = f"the answer to {step.node!r} is for stage {command.stage!r}, and {asked}; look at it again"
    return refused(Refusal.OUTDATED, told)


def _refusal(turn: DecisionBuilder, step: StepState, command: AnswerStep) -> Rejection | None:
    """Why somebody who is asked cannot decide so."""
    op, _ = _asked(turn, step)
    barred = asked_refusal(turn, step) or unclaimed_refusal(turn, step)
    barred = barred or apart_refusal(turn, step) or _stale(turn, step, command)
    if barred is None and op.requires_reason and command.outcome == op.rejects and not command.comment.strip():
        return refused(Refusal.REASON_REQUIRED, f"a rejection of {step.node!r} needs a reason; give a comment")
    return barred


def _stale(turn: DecisionBuilder, step: StepState, command: AnswerStep) -> Rejection | None:
    """Why a decision counts for nothing that is about another version than the one that is asked about."""
    document = turn.state.document
    approval = None if document is None else document.approvals.get(step.number)
    if approval is None or command.document_version == str(approval.version):
        return None
    seen = f"and you decide on {command.document_version!r}" if command.document_version else "and you do not say so"
    told = f"{step.node!r} asks about version {approval.version} of the document, {seen}"
    return refused(Refusal.APPROVAL_VERSION_STALE, f"{told}; look at that version, and name it with your decision")


def _tally(turn: DecisionBuilder, step: StepState, command: AnswerStep, data: object) -> _Tally:
    op, question = _asked(turn, step)
    event, seat = answer_of(turn, step, command, data), seat_for(turn, question, turn.moment.actor)
    if seat:
        stands_for = question.seats[seat - 1].person.for_
        event = msgspec.structs.replace(event, on_behalf_of=event.on_behalf_of or stands_for)
    is_single = not question.stages and _is_enough(op, question)
    if command.outcome == op.abstains:
        is_single = False  # It is no rejection, whatever it comes to; and others may be asked besides.
    if not seat or is_single:  # Who may decide without being asked decides for all.
        if command.outcome == op.abstains:
            event = msgspec.structs.replace(event, outcome=op.rejects, reason=ALL_ABSTAINED)
        return _Tally(event)
    decided = TaskDecided(
        step=step.number,
        seat=seat,
        outcome=command.outcome,
        actor=event.actor,
        at=event.at,
        on_behalf_of=event.on_behalf_of,
        comment=command.comment,
        data=data,
        is_filled=event.is_filled,
        given=event.given,
        document_version=event.document_version,
        guards=_guards(turn, step, command.outcome),
    )
    event = msgspec.structs.replace(event, decisions=[*map(_told, question.given), _told(decided)])
    tally = _counted(op, question, decided, event)
    return tally._replace(may=_shared(tally.answer.outcome, [*question.given, decided])) if tally.is_over else tally


def _guards(turn: DecisionBuilder, step: StepState, outcome: str) -> list[str] | None:
    """The guards that the actor has of those on the ways of an outcome; None if there are none."""
    asked = sorted({edge.capability for edge in turn.routes.ways(step.node, outcome) if edge.capability})
    return [each for each in asked if turn.moment.actor.may(each)] if asked else None


def _shared(outcome: str, given: Sequence[TaskVote | TaskDecided]) -> May | None:
    """The guards that all have whose decisions count for an outcome; None if there are none of them.

    What nobody asked for when a decision was made does not count against it.
    """
    held = [each.guards for each in given if each.outcome == outcome]
    if not held:
        return None
    return lambda guard: not guard or all(each is None or guard in each for each in held)


def _is_enough(op: HumanOp, question: Question) -> bool:
    """Whether one decision settles a question: nobody else is waited for, and it does not take more than who is asked."""
    count = sum(1 for _ in question.counted)
    return not question.missing and (count == 0 or (count == 1 and not is_beyond_reach(op, question)))


def _counted(op: HumanOp, question: Question, decided: TaskDecided, event: StepAnswered) -> _Tally:
    """What a vote comes to: the question ends, its stage does, or the others are waited for."""
    vote = vote_of(op, decided.outcome)
    if vote is None:
        return _Tally(event, decided)
    votes: list[tuple[int, Vote | None]] = [
        (weight, vote if place == decided.seat else each)
        for (place, _), (weight, each) in zip(question.counted, votes_of(op, question), strict=True)
    ]
    votes += [(1, None)] * question.missing  # Somebody has to be found for these first.
    came_to = verdict(votes, question.agree, question.least)
    if came_to == "against" and vote != "against" and is_beyond_reach(op, question):
        came_to = None  # Too few were asked to begin with: what they say is kept for when others are asked as well.
    if question.seats[decided.seat - 1].is_extra:  # Who is asked because the others are silent decides for them.
        votes, came_to = [(1, vote)], None if vote == "abstained" else vote
    match came_to:
        case None:
            return _Tally(event, decided, is_over=False)
        case "for" if question.stage < len(question.stages):
            return _Tally(event, decided, is_over=False, is_stage_over=True)
        case "for":
            return _Tally(msgspec.structs.replace(event, outcome=op.approval), decided)
        case "against":
            lost = msgspec.structs.replace(event, outcome=op.rejects, reason=reason_against(votes))
            return _Tally(lost, decided)


def _told(given: TaskVote | TaskDecided) -> Data:
    """One of several decisions, as the steps behind find it."""
    told: Data = {
        "status": given.outcome,
        "decided_by": given.actor,
        "decided_at": given.at,
        "on_behalf_of": given.on_behalf_of,
        "comment": given.comment,
        "data": given.data,
    }
    if given.document_version:
        told["document_version"] = given.document_version
    return told


def _hidden(given: object) -> Rejection | None:
    """Why an answer cannot be laid over the data: it names what only the engine sets."""
    name = hidden_name(given)
    return None if name is None else refused(Refusal.INVALID_FORM, hidden_told(name))


def _without_room(turn: DecisionBuilder, step: StepState, op: HumanOp, tally: _Tally) -> Rejection | None:
    event = tally.answer
    answer = answer_found(turn.routes, step.node, event)
    data = merged(turn.routes, turn.state.tokens[step.token].data, step.node, answer)
    is_bare = event.data is None and not event.comment and not tally.decided
    # A bare rejection is taken even where there is no room for it: nobody may be left with an answer that cannot be given.
    if (is_bare and event.outcome == op.rejects) or is_within(turn.routes, data):
        return None
    return too_large(turn.routes, f"the answer to {step.node!r}")


def _without_way(turn: DecisionBuilder, step: StepState, op: HumanOp, tally: _Tally) -> Rejection | None:
    """Why a decision leads nowhere: what it says itself, if others decide too, or what all of them come to."""
    decided = tally.decided
    if decided is not None and decided.outcome != op.abstains:
        own = msgspec.structs.replace(tally.answer, outcome=decided.outcome, reason="", decisions=[])
        # What steps behind a process find of an answer is what it brings; elsewhere conditions may read what all have said.
        if _leads_nowhere(turn, step, own, is_final=op.lays_over):
            return no_transition(step.node, own.outcome, own.actor)
    if tally.is_over and _leads_nowhere(turn, step, tally.answer, may=tally.may):
        return no_transition(step.node, tally.answer.outcome, turn.moment.actor.id)
    return None


def _leads_nowhere(
    turn: DecisionBuilder, step: StepState, event: StepAnswered, *, may: May | None = None, is_final: bool = True
) -> bool:
    token, answer = turn.state.tokens[step.token], answer_found(turn.routes, step.node, event)
    data = judged(turn.routes, token.data, step.node, answer)
    return is_barred(turn, token, step.node, event.outcome, data=data, answer=answer, may=may, is_final=is_final)
