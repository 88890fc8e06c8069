"""Where a run stands: the fold of its events. The fold changes it in place; nobody else ever does."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from standfast.machine.model.document_state import Document
from standfast.machine.model.task_state import Question

Data = dict[str, object]

ROOT = "0"
"""The token that a run begins with."""


class Stay(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """Where a token goes once the run goes on."""

    target: str = ""
    """The node that it enters; empty if no edge led on."""
    node: str = ""
    outcome: str = ""
    """What it was left by, if no edge led on."""


class Token(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """One thread of control."""

    id: str
    node: str = ""
    """Where it is, or was last."""
    data: Data = {}
    """The run's input, and over it all that the steps on the way here have answered."""
    scope: int | None = None
    """Number of the split step that it came from."""
    last_output: object = None
    answer: str = ""
    """Name under which the data holds `last_output`; empty if that was laid over the data, name by name."""
    answerer: str = ""
    """Of a branch: the last node it was at that is of a kind that answers."""
    visits: dict[str, int] = {}
    stay: Stay | None = None
    """Set while it may not go on."""
    retry_of: int | None = None
    """The step that its next one repeats, after an operator asked for it."""
    first: int = 0
    """The step whose idempotency key its next one shares; 0 means its own."""


class StepState(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A step that has not ended."""

    number: int
    node: str
    token: str
    attempt: int = 1
    """Number of the present call."""
    made: int = 0
    """Number of the last call before it that was made; 0 if none was."""
    effect: int | None = None
    """Number of the effect that calls the handler; None for nodes that wait."""
    first: int = 0
    """The step whose idempotency key it shares; 0 means its own."""
    retry_of: int | None = None
    """The step that it repeats."""
    of: int | None = None
    """For a compensation: the executed step that it undoes."""
    child: str = ""
    """Id of the run that it waits for."""
    not_undone: str = ""
    """Why that run could not be undone; empty if it could, or has not ended."""
    is_undoable: bool = False
    """Whether that run has completed, and is undone with the step."""
    is_settled: bool = False
    """Whether that run has undone itself, so that nothing is left to undo."""
    error: str = ""
    """Why it gave up, while it waits for an operator."""
    has_failed: bool = False
    """Whether it gave up while the run is paused, and nothing has followed from that yet."""
    came: Data | None = None
    """What events have brought that it waits for, by their names there."""
    refused: list[str] = []
    """Ids of events that it found and that do not count because of who published them."""
    over_at: str = ""
    """When its time was over, as ISO 8601, while events are looked for that were published before; empty until then."""
    missed: int | None = None
    """Number of the effect whose handler nobody had, as the history says; None if that was never so."""
    asked_at: str = ""
    """From when the times of a question count, and since when rules wait, as ISO 8601; a pause that stops clocks moves it."""
    call_at: str = ""
    """When its present call was put off to, as ISO 8601; empty if it was not. A pause that stops clocks moves it."""
    is_late: bool = False
    """Whether nobody has answered in time; what follows from that ends the step."""
    reminded: int = 0
    """How often those who are asked were reminded."""
    level: int = 0
    """How many rungs of its ladder it has gone up."""
    notices: list[str] = []
    """Keys of the notices that it waits for."""


class Executed(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A step that ended and that a rollback may have to undo."""

    number: int
    node: str
    token: str
    input: Data | None = None
    """Kept only where a compensation will need it."""
    output: object = None
    error: str = ""
    status: Literal["completed", "failed", "skipped"] = "completed"
    was_called: bool = True
    """False for a step that was stopped before anybody began it: nothing has to be undone."""
    first: int = 0
    """The step whose idempotency key it shares; 0 means its own."""
    retry_of: int | None = None
    """The step that it repeats, and that it stands for once its handler was called."""
    child: str = ""
    """Id of the run that it waited for when it was stopped, that has failed it, or that is to be undone with it."""
    not_undone: str = ""
    """Why that run could not be undone; empty if it could."""
    is_undoable: bool = False
    """Whether that run has completed, and is undone with the step."""
    is_settled: bool = False
    """Whether that run has undone itself, so that nothing is left to undo."""
    is_recalled: bool = False
    """Whether that run was told to undo what it did, completed or not, because it took too long."""
    attempt: int = 0
    """Number of the call that was under way when the step was stopped; 0 if none was."""
    is_done: bool = False
    """Whether the handler of a step that was stopped finished its work all the same."""
    of: int | None = None
    """For a compensation that was under way when the run ended: the step that it undoes."""


class BranchScope(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A split whose branches are under way."""

    step: int
    node: str
    parent: str
    """The token that waits for the branches."""
    live: dict[str, None] = {}
    """Branches that have not ended, those that have arrived included."""
    arrived: list[str] = []
    """Branches that reached the join, in order."""
    failed: list[str] = []
    """The last steps of the branches that failed, by name."""
    items: list[object] | None = None
    """Items of a list that have not begun yet; None for a split into fixed branches."""
    begun: int = 0
    """The place of the last branch that has begun; 0 if none has."""


class RollbackState(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A run on its way back."""

    cause: Literal["failure", "cancel", "return"]
    failed_step: int | None = None
    error: str = ""
    chain: list[int] | None = None
    """Numbers of the executed steps still to be undone, the next one last; None until nothing runs any more."""
    requested_by: str = ""
    reason: str = ""
    stuck: int | None = None
    """The executed step that could not be undone."""

    to: int = 0
    """Number of the step by which the save point was passed that the run returns to; 0 if it does not go on."""
    data: Data = {}
    """The data as it was then."""


class Dropped(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """Branches that have ended without being needed, and steps of slots that a rejection has left: their work is undone while the run goes on."""

    tokens: dict[str, str] = {}
    """Why, by the name of each branch."""
    steps: dict[int, str] = {}
    """Why, by the number of each step that is undone though its branch was needed: a rejection has left its slot."""
    chain: dict[int, None] = {}
    """Numbers of their executed steps that may have to be undone, the next one last."""
    stuck: int | None = None
    """The executed step that could not be undone."""

    @property
    def whence(self) -> str:
        """Describe where the step was that could not be undone."""
        return "of a slot that a rejection has left" if self.stuck in self.steps else "of a branch that was not needed"


class PauseState(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A pause that somebody asked for, or that a document is held by for what another system has changed."""

    at: datetime
    """From when on its clocks are held."""
    since: datetime
    """Since when the run is to be held for its reason."""
    by: str = ""
    clock: Literal["run_on", "stand_still"] = "run_on"
    until: datetime | None = None
    """When it ends by itself."""
    held: dict[str, datetime] = {}
    """Timers that do not fire meanwhile, by key, and when they were due."""
    place: int = 0
    """How many events the run had before the pause; 0 of those of old."""


class Resumed(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """What requests to go on have left."""

    data: Data = {}
    """What the last one brought along that brought anything."""
    triggers: list[str] = []
    """What tells those apart that were carried out; the last ones."""
    step: int = 0
    """Number of the first step after the last one, in rules: while that is open, they are resuming."""


class Followed(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """Another version of the graph than the one that the run began with."""

    tenant: str
    """Whose it is, or who shares it."""
    version: str


class RunState(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A whole run."""

    status: Literal["new", "running", "paused", "completed", "failed", "cancelled", "aborted"] = "new"
    reason: str = ""
    error: str = ""
    """Why it waits for an operator, or why it ended, when it did not end well."""
    parent: str = ""
    parent_definition: str = ""
    parent_step: int = 0
    above: str = ""
    """Of a fork of a child: the run that the child was a part of, whose people have a say in the fork too."""
    requester: str = ""
    """Who wants it; empty if nobody but the engine does."""
    involved: list[str] = []
    """Who else has brought it about: who started it for another, forked it, had its schedule fire, or gave it other data."""
    wait_ms: int = 0
    """How long its steps wait where the definition does not say; 0 means for ever."""
    escalates: bool = False
    """Whether questions that nobody decides in time are put to others first."""
    looks_up: bool = False
    """Whether it is looked up whether those can decide whom the definition names."""
    starter: str = ""
    """Who started it, or the run that it is a part of, where that is asked for; empty if the engine did."""
    may: list[str] = []
    """Their capabilities then."""
    next_step: int = 1
    has_row: bool = False
    """Whether it is a process that has a row of its own; those that began before there were such rows have none."""
    at: str = ""
    """Of a process whose token tells no step any more: the node that it was at last."""
    tokens: dict[str, Token] = {}
    parked: dict[str, Token] = {}
    """Tokens that wait for the branches of their split."""
    open: dict[int, StepState] = {}
    executed: dict[int, Executed] = {}
    """Steps that ended, by number, in the order in which they ended; where nothing can be undone, only those that are still asked for."""
    scopes: dict[int, BranchScope] = {}
    rollback: RollbackState | None = None
    dropped: Dropped | None = None
    stopping: dict[int, None] = {}
    """Steps that were stopped and whose handlers have not come back yet."""
    dead: dict[int, StepState] = {}
    """Steps that gave up and wait for an operator."""
    frozen: dict[int, StepState] = {}
    """Steps whose work was taken back while the run waits for an operator."""
    signals: dict[str, list[object]] = {}
    """Signals that nobody has waited for yet."""
    event: Data | None = None
    """The signal or event that was taken last, where the graph reads it."""
    taken: dict[str, str] = {}
    """Until when the events are kept that it has had, by their ids: it takes none of them again."""
    decided: dict[int, Data] = {}
    """What people and the world have answered, by step; the last ones."""
    asked: dict[int, list[str]] = {}
    """Who was asked what people have answered, by step, as `role:<name>` or by name: nobody else is told what came of it."""
    questions: dict[int, Question] = {}
    """Open questions to people that something has happened to, or whose people had to be found, by step."""
    deciders: dict[str, list[str]] = {}
    """Who has decided which human step, or voted on it, by its name; kept only where somebody may not decide another one because of it."""
    result: object = None
    outcome: str = ""
    """What it came to, in a word of its definition."""
    pause: PauseState | None = None
    """Set while it is paused because somebody asked for that."""
    resumed: Resumed | None = None
    document: Document | None = None
    """The document that the run is, where its graph manages documents."""
    workflow: Followed | None = None
    """The version that its document was moved to; None means the one that it began with."""
    chain: int = 0
    """Calls of handlers since the last word from outside, or since it waited for time to go by."""
    held: dict[str, datetime] = {}
    """Timers that came due while it waited for an operator, and are set again once it goes on."""

    @property
    def is_terminal(self) -> bool:
        """Whether the run has ended."""
        return self.status in {"completed", "failed", "cancelled", "aborted"}

    @property
    def may_begin(self) -> bool:
        """Whether anything new may begin."""
        return self.status == "running" and self.rollback is None

    def token(self, name: str) -> Token | None:
        """A token that has not ended, parked or not."""
        return self.tokens.get(name) or self.parked.get(name)

    def involve(self, names: Iterable[str]) -> None:
        """More people have brought it about."""
        known = {"", self.requester, *self.involved}
        self.involved = [*self.involved, *(name for name in dict.fromkeys(names) if name not in known)]
