"""A stand-in for the runtime around one run of a graph: effects, timers, an inbox and children, and no database.

It honours what the kernel promises a decider: effects are numbered from `issued` on and timers after them, a recall takes an effect
back only if nobody has begun it, a withdrawn effect never answers, a run that ended has no timers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast
from uuid import UUID

from standfast.graph.model import DocumentRule, Graph
from standfast.kernel.actor import Actor
from standfast.kernel.codec.message_types import DEFAULT_LIMIT
from standfast.kernel.decision import Answer, Decision, Effect, Message, Recall, Timer
from standfast.kernel.facts import SETTINGS_FACT, Fact, FactKey, PersonFact, SupposedFacts, person_fact
from standfast.kernel.ids import InstanceId
from standfast.kernel.moment import Moment
from standfast.kernel.rows import Record, merge
from standfast.machine.machine import GraphMachine
from standfast.machine.model.commands.run_commands import (
    AbortWorkflow,
    CancelWorkflow,
    Command,
    EndChild,
    EndNotice,
    InvolvePeople,
    RunStep,
    StartWorkflow,
    UndoWorkflow,
)
from standfast.machine.model.commands.timers import CLOCK
from standfast.machine.model.engine_tasks import Errand, Notify
from standfast.machine.model.events import Event
from standfast.machine.model.messages import AnswerOffer
from standfast.machine.model.state import RunState

NOW = datetime(2030, 1, 1, tzinfo=UTC)
RUN = InstanceId(UUID(int=1))
OLGA = Actor(id="olga", kind="system", capabilities=frozenset({"*"}))
"""The engine itself, and those who may do everything."""
ANN = Actor(id="ann", roles=frozenset({"clerk"}), capabilities=frozenset({"orders.*"}))
BOB = Actor(id="bob", capabilities=frozenset({"stock.take"}), on_behalf_of="ann")
CARL = Actor(id="carl", capabilities=frozenset({"task:*"}))
DORA = Actor(id="dora", roles=frozenset({"clerk", "boss"}), capabilities=frozenset({"orders.*", "stock.*"}))
ROOT = Actor(id="root", capabilities=frozenset({"*"}))
REX = Actor(id="rex", capabilities=frozenset({"execution:repair"}))
"""May repair, and not override people."""
ACTORS = (OLGA, ANN, BOB, CARL, DORA, ROOT)


@dataclass
class Call:
    """A call of a handler that the run has asked for."""

    body: RunStep
    effect: Effect
    is_begun: bool = False
    recall: Recall | None = None
    """Set once the run has asked for it back."""


@dataclass
class Child:
    """A run that this one has started."""

    step: int
    id: InstanceId | None
    definition: str
    input: dict[str, object]
    asked: str = ""
    """`cancel`, `abort` or `undo` once its parent wants it to stop, or undone."""
    involved: set[str] = field(default_factory=set)
    """Who has brought it about, as it was told since it began."""
    has_ended: bool = False
    has_completed: bool = False
    is_stuck: bool = False
    """Whether it ended without being undone."""


class _Supposed(SupposedFacts):
    """The facts of a host: its rules and settings, who is away, and nothing else."""

    def __init__(self, host: Host) -> None:
        away = {person_fact(each): PersonFact(id=each, is_kept=True, is_away=True) for each in host.away}
        super().__init__({SETTINGS_FACT: dict(host.org), **away})
        self._rules = list(host.rules)

    def get(self, key: FactKey) -> Fact:
        """Returns a fact."""
        return Fact(self._rules, 0) if key.kind == "rules" else super().get(key)


@dataclass
class Host:
    """One run and the world around it."""

    graph: Graph
    limit: int = DEFAULT_LIMIT
    machine: GraphMachine = field(init=False)
    state: RunState = field(init=False)
    history: list[Event] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    """All that decisions have named, one after the other."""
    rows: list[Record] = field(default_factory=list)
    """What they have come to, one for each row."""
    calls: dict[int, Call] = field(default_factory=dict)
    errands: list[Errand] = field(default_factory=list)
    """What the engine itself was sent to do."""
    timers: dict[str, Command] = field(default_factory=dict)
    due: dict[str, datetime] = field(default_factory=dict)
    """When each timer fires."""
    notices: list[Notify] = field(default_factory=list)
    """Who was to be told what, one after the other."""
    inbox: list[Command] = field(default_factory=list)
    """Commands that were taken back with their effects and are on their way."""
    children: list[Child] = field(default_factory=list)
    told_parent: list[EndChild] = field(default_factory=list)
    offers: list[AnswerOffer] = field(default_factory=list)
    """What events that are for one taker alone were told."""
    now: datetime = NOW
    key: str = ""
    """The business key."""
    version: int = 0
    issued: int = 0
    commits: int = 0
    rules: list[DocumentRule] = field(default_factory=list)
    """What the organisation wants judged, whatever is done."""
    org: dict[str, object] = field(default_factory=dict)
    """Its settings."""
    away: set[str] = field(default_factory=set)
    """Who is away."""

    def __post_init__(self) -> None:
        self.machine = GraphMachine(self.graph, limit=self.limit)
        self.state = self.machine.initial()

    def tell(
        self, command: Command, actor: Actor = OLGA, *, effect: int | None = None, timer: str | None = None
    ) -> Answer:
        """Decide a command and do to the world what the decision asks for."""
        moment = Moment(
            now=self.now,
            instance=RUN,
            key=self.key,
            actor=actor,
            version=self.version,
            issued=self.issued,
            commits=self.commits,
            pending_timers={key: due for key, due in self.due.items() if key != timer},
            fired_timer=timer or "",
            facts=_Supposed(self),
        )
        answer = self.machine.decide(self.state, command, moment)
        if effect is not None:
            del self.calls[effect]
        if timer is not None:
            del self.timers[timer], self.due[timer]
        if isinstance(command, EndNotice):
            self.notices = [each for each in self.notices if each.key != command.key]
        if isinstance(answer, Decision):
            self._accept(answer)
            self.commits += 1
        return answer

    def _accept(self, decision: Decision) -> None:
        assert isinstance(decision.state, RunState), "the machine evolves while it decides"
        self.state = decision.state
        self.history += cast("tuple[Event, ...]", decision.events)
        self.records += decision.records
        self.rows = merge([*self.rows, *decision.records])
        cancelled = [key for key in dict.fromkeys(decision.cancelled_timers) if key in self.due]
        for key in cancelled:
            self.timers.pop(key, None)
            del self.due[key]
        self.version += len(decision.events) + len(cancelled)
        for effect in decision.effects:
            match effect.body:
                case RunStep():
                    self.calls[self.issued] = Call(effect.body, effect)
                case Notify():
                    self.notices.append(effect.body)
                case errand:
                    self.errands.append(cast("Errand", errand))
            self.issued += 1
        self._set(decision.timers)
        for number in decision.withdrawn_effects:
            self.calls.pop(number, None)
        for recall in decision.recalls:
            self._recall(recall)
        for message in decision.messages:
            self._send(message)
        if self.machine.status(self.state).is_terminal:
            self.timers.clear()
            self.due.clear()

    def _set(self, timers: Sequence[Timer]) -> None:
        for each in timers:
            key = each.key or f"#{self.issued}"
            self.due[key] = each.due(self.now)
            if key != CLOCK:  # It never comes due.
                self.timers[key] = cast("Command", each.command)
            self.issued += 1

    def _recall(self, recall: Recall) -> None:
        call = self.calls.get(recall.effect)
        if call is None:
            return
        call.recall = recall
        if not call.is_begun:
            del self.calls[recall.effect]
            self.inbox.append(cast("Command", recall.command))

    def _send(self, message: Message) -> None:
        match message.command:
            case StartWorkflow(parent_step=step, input=data):
                self.children.append(Child(step, message.instance, message.decider, data))
            case CancelWorkflow():
                self._child(message.instance).asked = "cancel"
            case AbortWorkflow():
                self._child(message.instance).asked = "abort"
            case UndoWorkflow(parent=parent, step=step):
                child = self._child(message.instance)
                assert (parent, step) == (str(RUN), child.step)
                child.asked, child.has_ended = "undo", False
            case InvolvePeople(names=names):
                self._child(message.instance).involved.update(names)
            case EndChild() as told:
                self.told_parent.append(told)
            case AnswerOffer() as answer:
                self.offers.append(answer)
            case other:
                raise AssertionError(f"a message nobody expects: {other}")

    def _child(self, instance: InstanceId | None) -> Child:
        return next(each for each in self.children if each.id == instance)
