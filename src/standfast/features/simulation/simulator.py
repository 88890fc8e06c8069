"""A run that is played through a compiled workflow: no database, no handlers, and time that goes by as it is told.

The machine decides as it does for real. What it would ask of the world is answered by rote: handlers and other workflows answer what they
are said to, people who have to be looked for are found under the name by which they are looked for, and nobody is told anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, cast
from uuid import UUID

from msgspec.structs import replace

from standfast.features.simulation.trace import AwaitedEvent, EndlessError, TraceEntry
from standfast.graph.model import Graph, HumanOp, Node, WaitEventOp, WaitEventsOp
from standfast.graph.model import StateOp as StateNode
from standfast.graph.values.approver_rules import CHAIN, ROLE, Ask, Stage
from standfast.kernel.actor import SYSTEM, Actor
from standfast.kernel.codec.message_types import DEFAULT_LIMIT
from standfast.kernel.decision import Decision, Effect, Rejection
from standfast.kernel.facts import Facts, SupposedFacts, archived_fact
from standfast.kernel.ids import InstanceId
from standfast.kernel.moment import Moment
from standfast.machine.documents.policies import POLICY
from standfast.machine.machine import GraphMachine
from standfast.machine.model import events as e
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.document_state import Document
from standfast.machine.model.engine_tasks import FindEvents, FindPeople, Notify, Person, Sought
from standfast.machine.model.messages import PublishedMessage
from standfast.machine.model.queries.eligibility import question_of
from standfast.machine.model.state import RunState, StepState
from standfast.machine.model.task_state import person_of, shown

Data = dict[str, object]

BEGINNING: Final = datetime(2030, 1, 1, 12, tzinfo=UTC)
"""When every rehearsal begins: the same one always comes out the same."""
_INSTANCE: Final = InstanceId(UUID(int=1))
MOST_COMMANDS: Final = 20_000
"""Commands of one rehearsal, and nodes that it comes through: whatever takes more goes round in circles."""


class Simulator:
    """One run on its way."""

    def __init__(
        self,
        graph: Graph,
        *,
        answers: Mapping[str, object] | None = None,
        failing: Iterable[str] = (),
        name: Callable[[str], str] = str,
        limit: int = DEFAULT_LIMIT,
        is_late: Callable[[], bool] = lambda: False,
        most: int = MOST_COMMANDS,
    ) -> None:
        """`answers` and `failing` are by the names of handlers and workflows, or of the steps that call them; `name` gives a node as its author names it.

        The data takes at most `limit` bytes, as that of a run. `is_late` tells whether it has taken as long as it may.
        """
        self.machine = GraphMachine(graph, limit=limit)
        # One decision may go through any number of nodes, and looks each of them up: lists in lists, as a rule.
        self.machine.routes.node = self._looked_up
        self._looked_at = graph.nodes
        self._is_late = is_late
        self.name = name
        self.state = self.machine.initial()
        self.now = BEGINNING
        self.trail: list[TraceEntry] = []
        """The nodes, in the order in which they were entered."""
        self.facts: Facts = SupposedFacts()
        """What decisions can read from outside of the run."""
        self._answers = dict(answers or {})
        self._failing = frozenset(failing)
        self._entered: dict[int, TraceEntry] = {}
        self._nodes: dict[int, str] = {}
        self._calls: dict[int, Effect] = {}
        """What the world is asked for now."""
        self._put_off: dict[int, tuple[datetime, Effect]] = {}
        """What it is asked for later."""
        self._timers: dict[str, tuple[datetime, c.Command]] = {}
        self._pending: list[c.Command] = []
        self._sought: dict[int, dict[str, Sought]] = {}
        """The published events that steps wait for, by their names there."""
        self._version = self._issued = self._people = self._published = 0
        self._most = most
        self.commands = 0
        """How many were decided: what the rehearsal has cost."""

    # -- what can be asked of it

    def say(self, command: c.Command, actor: Actor) -> Rejection | None:
        """Ask something of the run, and let everything happen that follows by itself; why it was refused, if it was."""
        refusal = self._tell(command, actor)
        self._settle()
        return refusal

    def answer(
        self, step: StepState, outcome: str, *, actor: Actor | None = None, reason: str = "", data: object = None
    ) -> Rejection | None:
        """Decide an open question: as somebody, or as everybody who is asked, as far as it takes; `data` is what the form is filled in with."""
        told = c.AnswerStep(
            step=step.number,
            outcome=outcome,
            comment=reason or "rehearsed",
            data=data,
            document_version=self._seen(step),
        )
        if actor is not None:
            return self.say(replace(told, stage=self._stage(step)), actor)
        while step.number in self.state.open:
            refusal = self.say(replace(told, stage=self._stage(step)), self._somebody(step))
            if refusal is not None:
                return refusal
        return None

    def publish(self, event: str, payload: object = None, *, key: str | None = None) -> bool:
        """An event comes from outside, by default with the key that is waited for; whether anybody waits for it."""
        found = [each for each in self.awaited if each.event == event and key in {None, each.key}]
        self._published += 1
        for step, of_step in dict.fromkeys((each.step, each.key) for each in found):
            # A run takes an event once, however many of its steps wait for it.
            published = PublishedMessage(
                id=f"event {self._published} {of_step}", event=event, key=of_step, payload=payload
            )
            self.say(c.TakeEvents(step=step, events=[published]), SYSTEM)
        return bool(found)

    def let_pass(self, duration: timedelta) -> None:
        """Let time go by; what comes due on the way happens at its time."""
        end = self.now + duration
        while (due := self.next_due()) is not None and due <= end:
            self.fire_next()
        self.now = end

    def next_due(self) -> datetime | None:
        """When the next thing happens by itself; None if nothing does."""
        return min((due for due, _ in (*self._timers.values(), *self._put_off.values())), default=None)

    def fire_next(self) -> None:
        """Let time go by until the next thing happens by itself."""
        key = min(self._timers, key=lambda name: (self._timers[name][0], name), default=None)
        call = min(self._put_off, key=lambda number: (self._put_off[number][0], number), default=None)
        if key is not None and (call is None or self._timers[key][0] <= self._put_off[call][0]):
            due, command = self._timers[key]
            self.now = max(self.now, due)
            self._tell(command, SYSTEM, timer=key)
        elif call is not None:
            due, self._calls[call] = self._put_off.pop(call)
            self.now = max(self.now, due)
        self._settle()

    # -- how it stands

    @property
    def moves(self) -> int:
        """How much has happened so far: as long as this stays the same, nothing has."""
        return self._version

    @property
    def document(self) -> Document | None:
        """The document that the run is; None if it is none, or could not be created."""
        return self.state.document

    @property
    def questions(self) -> list[StepState]:
        """The open questions to people."""
        return [step for step in self._waiting if isinstance(self._op(step), HumanOp)]

    @property
    def rests(self) -> bool:
        """Whether the document waits in a state for somebody to ask for a transition."""
        return any(isinstance(self._op(step), StateNode) for step in self._waiting)

    @property
    def awaited(self) -> list[AwaitedEvent]:
        """The published events that are waited for and have not come."""
        return [
            AwaitedEvent(step, name, each.event, each.key)
            for step, sought in self._sought.items()
            if step in self.state.open
            for name, each in sought.items()
            if name not in (self.state.open[step].came or {})
        ]

    @property
    def signals(self) -> list[str]:
        """The signals that are waited for."""
        ops = [self._op(step) for step in self._waiting]
        return [op.signal for op in ops if isinstance(op, WaitEventOp)]

    def asked(self, step: StepState) -> list[str]:
        """Who is asked, in words."""
        question = question_of(self.machine.routes, self.state, step)
        return [shown(seat.person) for _, seat in question.asked if seat.is_free]

    def passage(self, step: StepState) -> TraceEntry:
        """The line of the trail that tells of a step."""
        return self._entered[step.number]

    # -- how

    @property
    def _waiting(self) -> Iterator[StepState]:
        """The open steps, without what undoes others: that asks nobody, whatever it undoes."""
        return (step for step in self.state.open.values() if step.of is None)

    def _op(self, step: StepState) -> object:
        return self.machine.routes.node(step.node).op

    def _looked_up(self, node: str) -> Node:
        if self._is_late():
            raise EndlessError("to play it takes longer than a dry run may; suppose less, or shorter lists")
        return self._looked_at[node]

    def _seen(self, step: StepState) -> str:
        document = self.state.document
        approval = None if document is None else document.approvals.get(step.number)
        return "" if approval is None else str(approval.version)

    def _stage(self, step: StepState) -> str:
        question = self.state.questions.get(step.number)
        return "" if question is None else question.stage_asked

    def _somebody(self, step: StepState) -> Actor:
        """One of those who are asked."""
        seats = question_of(self.machine.routes, self.state, step).asked
        seat = next((each for _, each in seats if each.is_free), None)
        capabilities = frozenset(
            {"*"}
        )  # Whoever is asked is supposed to be allowed to answer, whichever way they want.
        self._people += 1
        if seat is None or seat.person.kind == "role":
            roles = frozenset() if seat is None else frozenset({seat.person.name})
            return Actor(id=f"somebody {self._people}", roles=roles, capabilities=capabilities)
        return Actor(id=seat.person.name, capabilities=capabilities)

    def _tell(
        self, command: c.Command, actor: Actor, *, effect: int | None = None, timer: str | None = None
    ) -> Rejection | None:
        self.commands += 1
        if self.commands > self._most:
            raise EndlessError
        moment = Moment(
            now=self.now,
            instance=_INSTANCE,
            key="rehearsal",
            actor=actor,
            version=self._version,
            issued=self._issued,
            pending_timers={key: due for key, (due, _) in self._timers.items() if key != timer},
            fired_timer=timer or "",
            facts=self.facts,
        )
        answer = self.machine.decide(self.state, command, moment)
        if effect is not None:
            self._recall(effect)
        if timer is not None:
            del self._timers[timer]
        if isinstance(answer, Decision):
            self._accept(answer)
        return answer if isinstance(answer, Rejection) else None

    def _accept(self, decision: Decision) -> None:
        assert isinstance(decision.state, RunState), "the machine evolves while it decides"
        self.state = decision.state
        for event in decision.events:
            self._note(event)
        for key in decision.cancelled_timers:
            self._timers.pop(key, None)
        self._version += len(decision.events)
        for effect in decision.effects:
            if effect.delay:
                self._put_off[self._issued] = (self.now + effect.delay, effect)
            else:
                self._calls[self._issued] = effect
            self._issued += 1
        for each in decision.timers:
            command = cast("c.Command", each.command)
            self._timers[each.key or f"#{self._issued}"] = (each.due(self.now), command)
            self._issued += 1
        for number in decision.withdrawn_effects:
            self._recall(number)
        self._pending += self._ended(decision)
        for recall in decision.recalls:
            if self._recall(recall.effect):
                self._pending.append(cast("c.Command", recall.command))
        if self.state.is_terminal:
            self._timers.clear()

    def _recall(self, effect: int) -> bool:
        """Take back what the world was asked for; whether it had not answered."""
        return self._calls.pop(effect, None) is not None or self._put_off.pop(effect, None) is not None

    def _settle(self) -> None:
        """Everything that follows by itself, at once: calls that are put off are made when their time has come."""
        while self._pending or self._calls:
            if self._pending:
                self._tell(self._pending.pop(0), SYSTEM)
                continue
            number, effect = next(iter(self._calls.items()))
            command = self._replied(effect)
            if command is None:
                del self._calls[number]
            else:
                self._tell(command, SYSTEM, effect=number)

    def _ended(self, decision: Decision) -> Iterator[c.EndChild]:
        """What other workflows come to that are started, by rote."""
        for message in decision.messages:
            begun, workflow = message.command, message.decider
            if not isinstance(begun, c.StartWorkflow):
                continue
            fails, answer = self._asked_of(begun.parent_step, "starts", workflow)
            closed = self.facts.get(archived_fact(workflow, message.definition_version)).value
            fails = str(closed) if closed else fails
            if fails:
                yield c.EndChild(step=begun.parent_step, status="failed", error=fails, has_undone=True)
            else:
                yield c.EndChild(step=begun.parent_step, status="completed", result=answer)

    def _replied(self, effect: Effect) -> c.Command | None:
        """What the world answers, by rote."""
        match effect.body:
            case c.RunStep(step=step, is_detached=True):
                fails, _ = self._asked_of(step, "calls", effect.handler)
                self._entered[step].note += f"; {fails}" if fails else ""
                return None
            case c.RunStep(step=step):
                fails, answer = self._asked_of(step, "calls", effect.handler)
                if fails:
                    return c.FailStep(step=step, error=fails, is_final=True)
                return c.CompleteStep(step=step, output=answer)
            case FindPeople() as errand:
                return _found(errand)
            case FindEvents() as errand:
                self._sought[errand.step] = self._by_name(errand)
                return None
            case Notify(waits=True) as notice:
                return c.EndNotice(step=notice.step, key=notice.key, channel=notice.channel, to=notice.to)
            case _:
                return None

    def _by_name(self, errand: FindEvents) -> dict[str, Sought]:
        """What is looked for, by the names that the step has for it."""
        step = self.state.open.get(errand.step)
        if step is None:  # It was over before anybody looked.
            return {}
        op = self._op(step)
        assert isinstance(op, WaitEventsOp)
        left = [each.title for each in op.events if each.title not in (step.came or {})]
        return dict(zip(left, errand.sought, strict=True))

    def _asked_of(self, step: int, verb: str, callee: str) -> tuple[str, object]:
        """Why whom a step calls fails, empty if it does not, and what it answers; whether anybody said so is noted."""
        passage = self._entered[step]
        passage.note = f"{verb} {callee}"
        # What is said of a step is said of its work, and not of what undoes it.
        names = [callee] if passage.is_undoing else [passage.node, callee]
        failing = next((each for each in names if each in self._failing), "")
        said = next((each for each in names if each in self._answers), "")
        passage.is_assumed = not failing and not said
        return f"{failing} fails, as was said" if failing else "", self._answers[said] if said else {}

    def _note(self, event: object) -> None:
        match event:
            case e.StepStarted(step=step, node=node):
                self._pass(step, node)
            case e.StepCompleted(step=step, outcome=outcome, node=node, output=output):
                passage = self._pass(step, node) if node else self._entered[step]
                passage.outcome = outcome
                if node and isinstance(output, dict) and POLICY in output:
                    passage.note = f"by the policy {output[POLICY]!r}"
            case e.StepAnswered(step=step, outcome=outcome):
                self._entered[step].outcome = outcome
            case e.TimedOut(step=step):
                self._entered[step].outcome = "timeout"
            case e.StepFailed(step=step, error=error) | e.StepPaused(step=step, error=error):
                self._entered[step].outcome, self._entered[step].note = "error", error
            case e.CompensationStarted(step=step, of=of):
                self._pass(step, self._nodes[of]).is_undoing = True
            case e.CompensationSucceeded(step=step):
                self._entered[step].outcome = "undone"
            case e.CompensationExhausted(step=step, error=error):
                self._entered[step].outcome, self._entered[step].note = "error", error
            case _:
                pass

    def _pass(self, step: int, node: str) -> TraceEntry:
        passage = TraceEntry(
            node=self.name(node),
            slot=self.machine.routes.node(node).region,
            after=(self.now - BEGINNING).total_seconds(),
        )
        if len(self.trail) >= MOST_COMMANDS:
            raise EndlessError(f"it goes through more than {MOST_COMMANDS} nodes")
        self._entered[step], self._nodes[step] = passage, node
        self.trail.append(passage)
        return passage


def _found(errand: FindPeople) -> c.PeopleFound:
    """Whoever is looked for is found: people and roles by their names, all others as a role that is named after how they are looked for."""
    chain = next((each for each in errand.asks if each.by == CHAIN), None)
    if chain is not None:
        stage = Stage(asks=[Ask(by=ROLE, of=chain.words)])
        return c.PeopleFound(step=errand.step, stages=[stage], chain_version="rehearsed")
    people = [
        person_of(each) if each.by in {"user", ROLE} else Person(kind="role", name=each.words, via="rehearsed")
        for each in errand.asks
    ]
    return c.PeopleFound(step=errand.step, people=people)
