"""What can be asked of a run, and the effect by which it calls a handler."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeAlias

import msgspec

from standfast.graph.values.approver_rules import Stage, Vote
from standfast.kernel.codec.message_types import message
from standfast.kernel.row_kinds.steps import PauseClock
from standfast.machine.model.commands.document_commands import CreateDocument, DocumentCommand
from standfast.machine.model.commands.repair_commands import Repair
from standfast.machine.model.engine_tasks import Errand, Person
from standfast.machine.model.events.pause import Trigger
from standfast.machine.model.messages import PublishedMessage

Data = dict[str, object]


class _Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Something asked of a run."""


@message(name="StartWorkflow")
class StartWorkflow(_Command, frozen=True, kw_only=True):
    """Begin."""

    input: Data = {}
    delay_ms: int = 0
    """How long to wait before the first node is entered."""
    parent: str = ""
    """Id of the run that starts this one."""
    parent_definition: str = ""
    parent_step: int = 0
    requester: str = ""
    """Who wants it, if the engine itself starts it; otherwise that is the actor."""
    involved: list[str] = []
    """Who else has brought it about, besides the actor."""
    wait_ms: int = 0
    """How long its steps wait for people and events where the definition does not say; 0 means for ever."""
    escalates: bool = False
    """Whether a question that nobody decides in time is put to whom the definition names for that, before the time counts."""
    looks_up: bool = False
    """Whether the engine looks up those whom the definition names before they are waited for: roles without holders are found out."""
    starter: str = ""
    """Who started the run that starts this one; empty if the engine did. If no run does, that is the actor."""
    may: list[str] = []
    """Their capabilities."""


@message(name="BeginWorkflow")
class BeginWorkflow(_Command, frozen=True, kw_only=True):
    """The delay of the start is over."""


@message(name="CompleteStep")
class CompleteStep(_Command, frozen=True, kw_only=True):
    """A handler came back."""

    step: int
    output: object = None


@message(name="FailStep")
class FailStep(_Command, frozen=True, kw_only=True):
    """A handler failed, was too slow, or never came back."""

    step: int
    error: str
    is_final: bool = False
    """Trying again cannot help."""
    after: timedelta | None = None
    """When the handler wants to be tried again; None leaves it to the policy."""
    was_called: bool = True
    """Whether the handler may have begun its work."""


@message(name="ReturnStep")
class ReturnStep(_Command, frozen=True, kw_only=True):
    """The work of a step was taken back before anybody began it."""

    step: int
    is_asked: bool = False
    """Whether an operator wants it called now: then no start delay begins anew."""


@message(name="TimeOut")
class TimeOut(_Command, frozen=True, kw_only=True):
    """A node has waited as long as it should, or as long as it may."""

    step: int


@message(name="PassDeadline")
class PassDeadline(_Command, frozen=True, kw_only=True):
    """The run has taken as long as it may."""


@message(name="EndGrace")
class EndGrace(_Command, frozen=True, kw_only=True):
    """Handlers that were told to stop have had their time."""


@message(name="AnswerStep")
class AnswerStep(_Command, frozen=True, kw_only=True):
    """A person, or the world, answers a step that waits for that."""

    step: int
    outcome: str = ""
    """One of those that the definition names for the step; empty where `vote` says which."""
    vote: Vote | None = None
    """Yes, no or neither, in whatever words the definition has for it."""
    comment: str = ""
    data: object = None
    """What comes with the answer."""
    document_version: str = ""
    """The version of the document that was decided on; empty if the question is about none."""
    holds: bool = False
    """Whether a workflow of rules waits, once it is answered, until somebody lets it go on."""
    seen: int | None = None
    """How many events of the run whoever answers has seen; if there are more by now, the answer is refused. None means that it does not matter."""
    stage: str = ""
    """The stage of an approval chain that the answer is for, as its question shows it; empty if the caller does not say."""


@message(name="AdvanceProcess")
class AdvanceProcess(_Command, frozen=True, kw_only=True):
    """Somebody leaves the step that a process is at, whichever that is, by an event."""

    event: str
    data: object = None
    """What comes with it."""
    comment: str = ""
    partition: str | None = None
    """The part of the tenant in which the caller looks for it; None for the engine's own calls, which see all of them."""
    expected: int | None = None
    """How many commands had changed it when the caller looked; None means that it does not matter."""
    seen: int | None = None
    """How many events of it were known when the actor was looked up, as in `AnswerStep`."""


@message(name="SendSignal")
class SendSignal(_Command, frozen=True, kw_only=True):
    """Something that a run may wait for has happened."""

    name: str
    payload: object = None


@message(name="CancelWorkflow")
class CancelWorkflow(_Command, frozen=True, kw_only=True):
    """Stop, and undo what was done."""

    reason: str = ""
    by_parent: bool = False
    """Whether the run that started this one asks: if this one has ended by then, that is no error."""
    by: str = ""
    """Which operator stopped a run above this one, and why, in words; empty if none did."""
    seen: int | None = None
    """How many events of the run whoever asks has seen, as in `AnswerStep`."""


@message(name="AbortWorkflow")
class AbortWorkflow(_Command, frozen=True, kw_only=True):
    """Stop at once."""

    reason: str = ""
    by_parent: bool = False
    by: str = ""
    """As in `CancelWorkflow`."""


@message(name="UndoWorkflow")
class UndoWorkflow(_Command, frozen=True, kw_only=True):
    """Undo what was done, also if it has completed. Only the run that started it can give this command."""

    parent: str
    """Id of that run."""
    step: int
    """The step of it that started this one."""
    reason: str = ""


@message(name="RequeueStep")
class RequeueStep(_Command, frozen=True, kw_only=True):
    """Try a step again that gave up."""

    step: int
    input: Data | None = None
    """What the step works on now; None leaves it as it was."""
    reason: str = ""
    """Why, in the operator's words."""


@message(name="PauseWorkflow")
class PauseWorkflow(_Command, frozen=True, kw_only=True):
    """Wait for an operator, from now on."""

    reason: str = ""
    clock: PauseClock | None = None
    """What becomes of timers meanwhile; None means what is usual for the kind of the workflow."""
    until: datetime | None = None
    """When to go on by itself; None means not to."""


@message(name="ResumeWorkflow")
class ResumeWorkflow(_Command, frozen=True, kw_only=True):
    """Go on with a run that waits for an operator."""

    reason: str = ""
    trigger: Trigger = "manual"
    """What has it go on."""
    trigger_id: str = ""
    """What tells this request from others: the same one twice is one. Empty if it is like no other."""
    data: Data | None = None
    """What conditions find from now on under `resume`."""
    override: bool = False
    """Whether a question that is open is taken as approved, without those who were asked."""
    step: int | None = None
    """The step whose question that is; None means the only one."""
    past_wait: bool | None = None
    """Whether it goes past what the run waits for. None: only where a run counts as paused by its wait, as rules do."""
    seen: int | None = None
    """How many events the run had when whoever asks looked at it; None means that it does not matter."""
    about: str | None = None
    """Of a request that was left for later: what the run waited for when it was made, as `waited_for` tells. It is about nothing else, and goes past no question."""
    request: str = ""
    """Id of the request, if it was written down before; it gets one otherwise."""


@message(name="ExpirePause")
class ExpirePause(_Command, frozen=True, kw_only=True):
    """A pause has lasted as long as it may."""

    after_ms: int = 0
    """How long that is. Time for which pauses of wider scopes had clocks stand still is given back."""


@message(name="RetryCompensation")
class RetryCompensation(_Command, frozen=True, kw_only=True):
    """Try to undo a step again, and go on with the rollback."""

    step: int
    """Number of the step that could not be undone."""
    reason: str = ""
    """Why, in the operator's words."""


@message(name="EndChild")
class EndChild(_Command, frozen=True, kw_only=True):
    """A workflow that a step started has ended."""

    step: int
    status: str
    result: object = None
    error: str = ""
    reason: str = ""
    """Why it ended badly, as a word: `compensation_failed` if it could not be undone."""
    is_undoable: bool = False
    """Whether it has completed, and has done what it can undo."""
    no_return: str = ""
    """The point of no return that it has passed, if it has completed and cannot be undone any more."""
    has_undone: bool = False
    """Whether it has undone what it did before it ended."""
    involved: list[str] = []
    """Who has brought it about, besides who wants it."""


@message(name="InvolvePeople")
class InvolvePeople(_Command, frozen=True, kw_only=True):
    """Others have brought about the run that this one is a part of."""

    names: list[str]


@message(name="NoteMissingHandler")
class NoteMissingHandler(_Command, frozen=True, kw_only=True):
    """Nobody alive has the handler of a step."""

    step: int
    handler: str


@message(name="PeopleFound")
class PeopleFound(_Command, frozen=True, kw_only=True):
    """The engine has found out who is to be asked."""

    step: int
    people: list[Person] = []
    """In the order of the question, each once; empty if there is nobody."""
    why: list[Data] = []
    """For each part of the question: what was asked, and what came of it. It is kept with the question."""
    stages: list[Stage] = []
    """What an approval chain consists of: its stages are asked one after the other, and nobody is asked before."""
    chain_version: str = ""
    error: str = ""
    """Why nobody could be looked for; empty if somebody has looked."""


@message(name="PeopleReviewed")
class PeopleReviewed(_Command, frozen=True, kw_only=True):
    """The engine has looked again whether those can decide who are asked."""

    step: int
    lost: list[Person] = []
    """Those of them who cannot."""
    looked_at: list[str] | None = None
    """All who were looked at, as they are written; None if that is not told."""
    why: list[Data] = []
    """What was asked about each, and what came of it."""
    error: str = ""
    """Why nobody could look; empty if somebody has."""


@message(name="AskAgain")
class AskAgain(_Command, frozen=True, kw_only=True):
    """Look anew for those who are to be asked, where nobody could decide: somebody would be found by now."""

    step: int


@message(name="TakeEvents")
class TakeEvents(_Command, frozen=True, kw_only=True):
    """Published events that a step may wait for; none at all if it should look for others than those it knew of."""

    step: int
    events: list[PublishedMessage] = []
    is_found: bool = False
    """Whether the step has looked for these events. It looks on if its run does not take them because of who published them."""
    is_over: bool = False
    """Whether a look after the time of the step was over has found no event that was published in time."""


@message(name="RemindTask")
class RemindTask(_Command, frozen=True, kw_only=True):
    """It is time to remind those who are asked."""

    step: int


@message(name="ClaimTask")
class ClaimTask(_Command, frozen=True, kw_only=True):
    """One of those who are asked takes the question for himself alone."""

    step: int


@message(name="EscalateTask")
class EscalateTask(_Command, frozen=True, kw_only=True):
    """Nobody has answered for as long as a rung of the ladder says."""

    step: int


@message(name="EndNotice")
class EndNotice(_Command, frozen=True, kw_only=True):
    """What became of a notice."""

    step: int
    key: str
    channel: str
    to: str
    error: str = ""
    """Why it could not be delivered; empty if it was."""


@message(name="ReleaseTask")
class ReleaseTask(_Command, frozen=True, kw_only=True):
    """Whoever has taken a question gives it back to all of them."""

    step: int


@message(name="DelegateTask")
class DelegateTask(_Command, frozen=True, kw_only=True):
    """One of those who are asked has another decide in his place."""

    step: int
    to: str
    """Id of a user."""
    reason: str = ""


@message(name="ReassignTask")
class ReassignTask(_Command, frozen=True, kw_only=True):
    """Somebody else is asked instead."""

    step: int
    to: str
    """Id of a user, or `role:<name>`."""
    who: str = ""
    """Who is not asked any more, in the same spelling; empty if only one is."""
    reason: str = ""


@message(name="AddApprover")
class AddApprover(_Command, frozen=True, kw_only=True):
    """Somebody else is asked as well."""

    step: int
    person: str
    """Id of a user, or `role:<name>`."""
    weight: int = 1
    reason: str = ""


@message(name="CommentTask")
class CommentTask(_Command, frozen=True, kw_only=True):
    """Somebody says something about a question, or asks back."""

    step: int
    text: str
    is_question: bool = False


@message(name="WithdrawDecision")
class WithdrawDecision(_Command, frozen=True, kw_only=True):
    """Somebody takes his decision back, as long as the question is open."""

    step: int
    reason: str = ""


@message(name="PutHigher")
class PutHigher(_Command, frozen=True, kw_only=True):
    """Somebody does not want to wait until a question escalates by itself."""

    step: int
    reason: str = ""


@message(name="WithdrawTask")
class WithdrawTask(_Command, frozen=True, kw_only=True):
    """Nobody is to decide any more: the question is taken back."""

    step: int
    reason: str = ""


TaskCommand: TypeAlias = (
    ClaimTask
    | ReleaseTask
    | DelegateTask
    | ReassignTask
    | AddApprover
    | CommentTask
    | PutHigher
    | WithdrawDecision
    | WithdrawTask
)
"""What people do to a question besides answering it."""


Command: TypeAlias = (
    StartWorkflow
    | BeginWorkflow
    | CompleteStep
    | FailStep
    | ReturnStep
    | TimeOut
    | PassDeadline
    | EndGrace
    | AnswerStep
    | AdvanceProcess
    | SendSignal
    | CancelWorkflow
    | AbortWorkflow
    | UndoWorkflow
    | RequeueStep
    | PauseWorkflow
    | ResumeWorkflow
    | ExpirePause
    | RetryCompensation
    | EndChild
    | InvolvePeople
    | NoteMissingHandler
    | PeopleFound
    | PeopleReviewed
    | AskAgain
    | TakeEvents
    | Repair
    | RemindTask
    | EscalateTask
    | EndNotice
    | TaskCommand
    | CreateDocument
    | DocumentCommand
)


@message(name="RunStep")
class RunStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The effect by which a step calls its handler."""

    step: int
    node: str
    input: Data
    attempt: int = 1
    first: int
    """The step whose idempotency key the call has: its own, the one it repeats, or the one it undoes."""
    previous: object = None
    """What the step before had answered, where the input does not hold it."""
    previous_at: str | list[str] | None = None
    """Where the input holds it: under this name, or name by name."""
    is_compensation: bool = False
    writes: bool = False
    """Whether the answer of a compensation counts: it says what changes in the document."""
    output: object = None
    """What the step to undo had answered."""
    output_name: str = ""
    """Name under which that answer is found in the data; empty if it is laid over it, name by name."""
    error: str = ""
    """Why it is undone."""
    failed_step: str = ""
    """Name of the step whose failure led to the rollback."""
    metadata: Data = {}
    is_detached: bool = False
    """Whether its step was left before the call: nobody waits for what comes of it, and its retries are those of the effect."""
    capability: str = ""
    """What the starter of the run was asked for when the step was entered; empty if nothing."""

    @property
    def last_answer(self) -> object:
        """What the step before had answered."""
        match self.previous_at:
            case None:
                return self.previous
            case str() as name:
                return self.input[name]
            case names:
                return {name: self.input[name] for name in names}

    @property
    def data(self) -> Data:
        """What the handler works on: for a compensation what its step had worked on, and over it what that had answered."""
        if self.output is None:
            return self.input
        if self.output_name:
            return {**self.input, self.output_name: self.output}
        assert isinstance(self.output, dict)
        return {**self.input, **self.output}


RunEffect: TypeAlias = RunStep | Errand
"""All that a run asks of the world: calls of handlers, and errands of the engine itself."""
