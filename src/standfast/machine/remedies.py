"""What a run would accept: each operation is decided on a copy of the state, so that nothing is recommended that would be refused.

This is the only place that knows which operations help which wait. `why` and `resume_options` say in words what is found here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, cast

import msgspec

from standfast.errors import StandfastError
from standfast.graph.model import BRANCH, ERROR, OK, HumanOp, RestOp, WaitEventOp
from standfast.graph.model import StateOp as StateNode
from standfast.kernel.actor import Actor, needed_names
from standfast.kernel.decision import Decision, Ignored, Rejection
from standfast.kernel.facts import FactsNeeded
from standfast.kernel.moment import Moment
from standfast.kernel.program import Program
from standfast.machine.flow.deadline_checks import is_over
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.routing import way_out
from standfast.machine.machine import GraphMachine
from standfast.machine.model.commands import repair_commands as r
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.commands.document_commands import Mutate, RequestTransition
from standfast.machine.model.messages import PublishedMessage
from standfast.machine.model.queries.authorization import REPAIR, RESUME
from standfast.machine.model.queries.eligibility import question_of
from standfast.machine.model.rejections import Refusal
from standfast.machine.model.state import RunState, StepState
from standfast.machine.model.task_state import shown
from standfast.machine.nodes import kind_of
from standfast.machine.nodes.event_wait import may_bring
from standfast.machine.tasks.entitlement import claimant

Operation = Literal[
    "retry",
    "reenqueue",
    "skip",
    "complete",
    "resume",
    "cancel",
    "abort",
    "change_data",
    "transition",
    "edit",
    "retry_compensation",
    "signal",
    "decide",
    "override",
    "escalate",
    "reassign",
    "add_approver",
]

SOMEBODY: Final = "somebody"
"""Stands for the person whom an operator would name."""
_REASON: Final = "tried"
_WITH_DATA: Final = frozenset({Refusal.INVALID_FORM, Refusal.REASON_REQUIRED, Refusal.INVALID_DOCUMENT})
"""Refusals that tell what has to come with a command, and not that it cannot be given."""
_MORE: Final[frozenset[Operation]] = frozenset({"skip", "complete", "change_data"})
"""Operations that are more than the same again, and take the right to override where people have a say."""
_ENDS: Final[frozenset[Operation]] = frozenset({"cancel", "abort"})
"""Operations that take it where a part of another run would end."""
_MOST_PLACES: Final = 10
"""People of one question that a reassignment is tried for."""
_BYTES: Final = 30_000_000
_FEWEST: Final = 40
"""Copies that are made of a state: fewer of a large one, so that the answer takes no longer."""


class AcceptedOperation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An operation that the run would accept."""

    operation: Operation
    step: int = 0
    """The step that it is about; 0 if it is about the whole run."""
    name: str = ""
    """The outcome of a skip or a decision, the transition, the signal, or who is asked no longer."""
    is_vain: bool = False
    """Whether the run would wait for the same again, as things are: what it waits for has to be mended first."""
    is_past_people: bool = False
    """Whether it takes the right to override: people have a say in the run, or it leaves a wait for an event."""


def command_of(remedy: AcceptedOperation, state: RunState) -> c.Command:
    """The command that an operation comes to; an edit changes nothing, because nobody knows what it should change."""
    return _COMMANDS[remedy.operation](remedy, state)


def _decision(remedy: AcceptedOperation, state: RunState) -> c.AnswerStep:
    """On the version of the document and the stage that are asked about, if it is about any."""
    approval = None if state.document is None else state.document.approvals.get(remedy.step)
    seen = "" if approval is None else str(approval.version)
    question = state.questions.get(remedy.step)
    stage = "" if question is None else question.stage_asked
    return c.AnswerStep(step=remedy.step, outcome=remedy.name, document_version=seen, stage=stage)


_COMMANDS: dict[Operation, Callable[[AcceptedOperation, RunState], c.Command]] = {
    "retry": lambda it, _: r.RetryStep(step=it.step, reason=_REASON),
    "reenqueue": lambda it, _: r.ReenqueueStep(step=it.step, reason=_REASON),
    "skip": lambda it, _: r.SkipStep(step=it.step, outcome=it.name, reason=_REASON),
    "complete": lambda it, _: r.CompleteByHand(step=it.step, reason=_REASON),
    "resume": lambda it, _: c.ResumeWorkflow(reason=_REASON, step=it.step or None),
    "cancel": lambda _it, _: c.CancelWorkflow(reason=_REASON),
    "abort": lambda _it, _: c.AbortWorkflow(reason=_REASON),
    "change_data": lambda _it, _: r.ChangeData(patch={}, reason=_REASON),
    "transition": lambda it, _: RequestTransition(transition=it.name, reason=_REASON),
    "edit": lambda _it, _: Mutate(payload={}, reason=_REASON),
    "retry_compensation": lambda it, _: c.RetryCompensation(step=it.step),
    "signal": lambda it, _: c.SendSignal(name=it.name),
    "decide": _decision,
    "override": lambda it, _: c.ResumeWorkflow(reason=_REASON, override=True, step=it.step),
    "escalate": lambda it, _: c.PutHigher(step=it.step, reason=_REASON),
    "reassign": lambda it, _: c.ReassignTask(step=it.step, to=SOMEBODY, who=it.name, reason=_REASON),
    "add_approver": lambda it, _: c.AddApprover(step=it.step, person=SOMEBODY, reason=_REASON),
}


class OperationTrials:
    """Tries operations on copies of the state of a run. `moment` tells when, and by whom: by the engine itself, which may do everything."""

    def __init__(self, program: Program, state: RunState, moment: Moment) -> None:
        assert isinstance(program.decider, GraphMachine)
        self.routes = program.decider.routes_of(state)
        self.state = state
        self._program = program
        self._moment = moment
        self._snapshot = program.snapshot(state)
        self._standing = _standing(state)
        self._left = max(_FEWEST, _BYTES // len(self._snapshot))

    def is_over(self, step: StepState) -> bool:
        """Whether the time of an open step is over, so that what it waits for comes too late."""
        moment = self._moment
        return is_over(self.routes, self.state, step, moment.now, pending=moment.pending_timers)

    def tried(self, remedy: AcceptedOperation) -> AcceptedOperation | None:
        """The operation, if the run would accept it. None too once so much was tried that nobody would wait for more."""
        if self._left <= 0:
            return None
        self._left -= 1
        state = cast("RunState", self._program.restore(self._snapshot))
        try:
            answer = self._program.answer(state, command_of(remedy, state), self._moment)
        except StandfastError:
            return None
        if isinstance(answer, Decision):
            is_same = remedy.operation != "change_data" and _standing(cast("RunState", answer.state)) == self._standing
            return msgspec.structs.replace(remedy, is_vain=is_same, is_past_people=self._needs_override(remedy))
        if isinstance(answer, Ignored):
            return remedy if remedy.operation == "edit" else None
        if not _needs_data(remedy, answer):
            return None
        return msgspec.structs.replace(remedy, is_past_people=self._needs_override(remedy, {_REASON: True}))

    def lacks(self, step: StepState) -> bool:
        """Whether whoever started the run may not have a step done. Their rights are those of the start, so that no data and no later grant helps."""
        if self.state.document is not None:
            return False
        return bool(
            DecisionBuilder(self.routes, self.state, self._moment, kind_of).lacking(self.routes.node(step.node))
        )

    def may_bring(self, step: StepState, published: PublishedMessage) -> bool:
        """Whether an event counts by who published it, as things are."""
        return may_bring(DecisionBuilder(self.routes, self.state, self._moment, kind_of), step, published)

    def guard_past(self, step: StepState) -> str:
        """Returns the guard of the way by which an override of a question leads on; empty if it needs none."""
        op, turn = self.routes.node(step.node).op, DecisionBuilder(self.routes, self.state, self._moment, kind_of)
        assert isinstance(op, HumanOp)
        token = self.state.tokens[step.token]
        free = way_out(turn, token, step.node, op.approval, may=lambda guard: not guard)
        edge = free or way_out(turn, token, step.node, op.approval)
        return "" if edge is None else edge.capability

    def may_advance(self, event: str) -> bool:
        """Whether a process would be advanced by an event, if it came with what that takes."""
        if self._left <= 0:
            return False
        self._left -= 1
        state = cast("RunState", self._program.restore(self._snapshot))
        try:
            answer = self._program.answer(state, c.AdvanceProcess(event=event), self._moment)
        except StandfastError:
            return False
        return isinstance(answer, Decision) or (isinstance(answer, Rejection) and answer.code in _WITH_DATA)

    def _needs_override(self, remedy: AcceptedOperation, output: object = None) -> bool:
        """Whether those who may do everything else would be refused; a step is completed with `output`."""
        if remedy.operation not in _MORE and not (remedy.operation in _ENDS and self.state.parent):
            return False
        state, rights = cast("RunState", self._program.restore(self._snapshot)), self.routes.graph.rights
        may = {REPAIR, RESUME, *needed_names(rights.cancel), *needed_names(rights.start)}
        moment = msgspec.structs.replace(self._moment, actor=Actor(id=_REASON, capabilities=frozenset(may)))
        try:
            command = command_of(remedy, state)
            if isinstance(command, r.CompleteByHand):
                command = msgspec.structs.replace(command, output=output)
            answer = self._program.answer(state, command, moment)
        except FactsNeeded:  # Nobody can be asked what the runs below ask.
            return True
        return isinstance(answer, Rejection) and answer.code == Refusal.NOT_ALLOWED

    def claimant(self, step: StepState) -> str:
        """Return who has claimed a question and keeps others out; empty if nobody does."""
        return claimant(DecisionBuilder(self.routes, self.state, self._moment, kind_of), step)

    def accepted(self, *remedies: AcceptedOperation) -> list[AcceptedOperation]:
        """Those of them that the run would accept."""
        return [found for each in remedies if (found := self.tried(each)) is not None]


def _needs_data(remedy: AcceptedOperation, refusal: Rejection) -> bool:
    return remedy.operation in {"decide", "edit", "complete"} and refusal.code in _WITH_DATA


def _standing(state: RunState) -> object:
    """What a run waits for and where it is, without what every attempt counts up."""

    def places(steps: Iterable[StepState]) -> list[tuple[str, str, bool, int]]:
        return sorted((each.node, each.token, each.effect is None, each.of or 0) for each in steps)

    rollback, dropped, document = state.rollback, state.dropped, state.document
    return (
        (state.status, state.reason, state.pause is None),
        places(state.open.values()),
        places(state.dead.values()),
        places(state.frozen.values()),
        sorted((each.id, each.node) for each in state.tokens.values()),
        None if rollback is None else (rollback.cause, rollback.stuck, rollback.chain),
        None if dropped is None else (dropped.stuck, [*dropped.chain]),
        sorted((number, bool(each.trouble), each.level) for number, each in _questions(state)),
        None if document is None else (document.status, document.version, document.is_resting, document.refused),
    )


def _questions(state: RunState) -> Iterator[tuple[int, _Asked]]:
    for number, step in state.open.items():
        question = state.questions.get(number)
        yield number, _Asked(question is not None and bool(question.trouble), step.level)


class _Asked(NamedTuple):
    trouble: bool
    level: int


# -- which operations are about what


def about_run(trials: OperationTrials) -> list[AcceptedOperation]:
    """What can be done to a whole run that waits for an operator."""
    found = trials.accepted(AcceptedOperation(operation="resume")) if trials.state.status == "paused" else []
    found += _mending(trials, found)
    return [*found, *instead(trials)]


def instead(trials: OperationTrials) -> list[AcceptedOperation]:
    """What can be done to a run instead of bringing it on: another way of its document, or its end."""
    return transitions(trials) or trials.accepted(
        AcceptedOperation(operation="cancel"), AcceptedOperation(operation="abort")
    )


def _mending(trials: OperationTrials, tried: Sequence[AcceptedOperation]) -> list[AcceptedOperation]:
    """What can be corrected first, where trying again would come to the same."""
    if not any(each.is_vain for each in tried):
        return []
    return trials.accepted(AcceptedOperation(operation="change_data" if trials.state.document is None else "edit"))


def transitions(trials: OperationTrials) -> list[AcceptedOperation]:
    """The transitions of its document that can be asked for now."""
    index, document = trials.routes.documents, trials.state.document
    names = () if index is None or document is None else index.legal(document.status)
    return trials.accepted(*(AcceptedOperation(operation="transition", name=each) for each in names))


def about_failed(trials: OperationTrials, step: StepState) -> list[AcceptedOperation]:
    """What can be done to a step that gave up. Where trying again would come to the same, what it reads can be corrected first."""
    found = trials.accepted(AcceptedOperation(operation="retry", step=step.number), *_skips(trials, step))
    found += trials.accepted(AcceptedOperation(operation="complete", step=step.number))
    return found if trials.lacks(step) else [*found, *_mending(trials, found)]


def _skips(trials: OperationTrials, step: StepState) -> list[AcceptedOperation]:
    op = trials.routes.node(step.node).op
    if OK in op.exits or op.answers:
        return [AcceptedOperation(operation="skip", step=step.number)]
    outcomes = sorted(op.exits - {ERROR, BRANCH})
    return [AcceptedOperation(operation="skip", step=step.number, name=each) for each in outcomes]


def about_call(trials: OperationTrials, step: StepState, *, is_lost: bool) -> list[AcceptedOperation]:
    """What can be done to a step whose call waits, or is lost with its worker."""
    operation: Operation = "reenqueue" if is_lost else "retry"
    return trials.accepted(AcceptedOperation(operation=operation, step=step.number))


def about_wait(trials: OperationTrials, step: StepState) -> list[AcceptedOperation]:
    """What can be done to a step that waits for time, for a signal, or for people to be told."""
    op = trials.routes.node(step.node).op
    if isinstance(op, WaitEventOp):
        return trials.accepted(AcceptedOperation(operation="signal", step=step.number, name=op.signal))
    return trials.accepted(AcceptedOperation(operation="skip", step=step.number))


def past_wait(trials: OperationTrials, step: StepState) -> list[AcceptedOperation]:
    """How an operator resumes a run that counts as paused because a step waits."""
    return trials.accepted(AcceptedOperation(operation="resume", step=step.number))


def about_question(trials: OperationTrials, step: StepState) -> list[AcceptedOperation]:
    """What can be done to a question: decide it, or have others decide if those who are asked cannot."""
    question = question_of(trials.routes, trials.state, step)
    op = trials.routes.node(step.node).op
    assert isinstance(op, HumanOp)
    if not question.trouble:
        outcomes = trials.accepted(
            *(
                AcceptedOperation(operation="decide", step=step.number, name=each)
                for each in op.answers
                if each != op.abstains
            )
        )
        return outcomes if not question.is_looking else []
    places = [shown(seat.person) for _, seat in question.asked if seat.is_free][:_MOST_PLACES]
    asked = [AcceptedOperation(operation="reassign", step=step.number, name=each) for each in places or [""]]
    others = AcceptedOperation(operation="add_approver", step=step.number)
    found = trials.accepted(*asked, others)
    found += trials.accepted(AcceptedOperation(operation="escalate", step=step.number))
    return [each for each in found if not each.is_vain] or found


def past_question(trials: OperationTrials, step: StepState) -> list[AcceptedOperation]:
    """How an operator goes past a question, or puts it to others."""
    wanted: tuple[Operation, ...] = ("override", "escalate")
    return trials.accepted(*(AcceptedOperation(operation=each, step=step.number) for each in wanted))


def about_undoing(trials: OperationTrials) -> list[AcceptedOperation]:
    """What can be done about a compensation that gave up: try it again, or go on without it."""
    halted = trials.state.rollback or trials.state.dropped
    stuck = None if halted is None else halted.stuck
    if stuck is None:
        return []
    return trials.accepted(
        AcceptedOperation(operation="retry_compensation", step=stuck), AcceptedOperation(operation="skip", step=stuck)
    )


def all_of(trials: OperationTrials) -> list[AcceptedOperation]:
    """Every operation that the run would accept, for what it waits for."""
    state = trials.state
    found = [*about_undoing(trials), *about_run(trials)]
    for step in state.dead.values():
        found += about_failed(trials, step)
    for step in state.open.values():
        op = trials.routes.node(step.node).op
        if step.effect is not None:
            found += about_call(trials, step, is_lost=False)
        elif isinstance(op, HumanOp):
            found += about_question(trials, step)
        elif not isinstance(op, StateNode | RestOp):
            found += about_wait(trials, step)
    return list(dict.fromkeys(found))
