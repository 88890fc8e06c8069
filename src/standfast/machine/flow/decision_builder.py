"""One decision in the making: events are applied as they are emitted, and the work they ask for is gathered beside them.

What a node does is the business of its module in `nodes`; the turn knows no kind of node.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple, Protocol, TypeVar, cast

from msgspec.structs import replace

from standfast.expressions.model.types import Unreadable
from standfast.graph.index import GraphIndex
from standfast.graph.model import Execution, HandlerCall, HumanOp, Node, RetryRule
from standfast.graph.values.external_reads import ORG, RELATED, Reads
from standfast.kernel.actor import Actor
from standfast.kernel.decision import Answer, Decision, Effect, Message, Recall, Rejection, Timer
from standfast.kernel.facts import SETTINGS_FACT, DocumentFact, Fact, FactKey, document_fact
from standfast.kernel.moment import Moment
from standfast.kernel.retry import NO_RETRY, RetryPolicy
from standfast.kernel.rows import Record
from standfast.machine.model.commands.run_commands import AnswerStep, ReturnStep, RunStep, TimeOut
from standfast.machine.model.commands.timers import escalation_timer, reminder_timer, step_timer
from standfast.machine.model.engine_tasks import Errand
from standfast.machine.model.events import (
    Ended,
    Event,
    FactsRead,
    PauseReason,
    StepStarted,
    TimerHeld,
    TokenHeld,
    WorkflowPaused,
)
from standfast.machine.model.folds.fold import evolve
from standfast.machine.model.queries.business_time import reached_ms
from standfast.machine.model.queries.expression_scope import ScopeQuery, namespaces_of, text_names
from standfast.machine.model.queries.starter_rights import lack_of, starter_of
from standfast.machine.model.rows.step_rows import NodeRows, RowProjection
from standfast.machine.model.state import Data, Executed, RunState, StepState, Token
from standfast.machine.model.task_state import Question

Ending = Literal["undo", "drop", "abort"]
"""How work is stopped: it will be undone, and its end is waited for; it is not wanted any more; or everything ends at once."""

E = TypeVar("E", bound=Event)

_NOW = timedelta(0)
_NO_NEWS: Final = FactsRead()
_CALLING: frozenset[Execution] = frozenset({"effect", "transactional"})


class NodeKind(NodeRows, Protocol):
    """What a kind of node does."""

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """A token arrives."""
        ...

    def fail(self, turn: DecisionBuilder, token: Token, node: Node, error: str, *, was_called: bool = True) -> None:
        """A node that takes no time cannot do its work; if it was not even begun, there is nothing to undo."""
        ...

    def stop(self, turn: DecisionBuilder, step: StepState, ending: Ending) -> bool:
        """An open step is not wanted any more: take back what it asked for. Whether it will still be told how that ended."""
        ...

    def abandon(self, turn: DecisionBuilder, executed: Executed) -> None:
        """The end of a step that was stopped is not waited for any more, because everything ends at once."""
        ...

    def answer(self, turn: DecisionBuilder, step: StepState, command: AnswerStep) -> Answer | None:
        """Somebody who may do so answers an open step, by an outcome that it has; why not, if it cannot be taken."""
        ...

    def time_out(self, turn: DecisionBuilder, step: StepState) -> None:
        """The time of an open step is over."""
        ...

    def resume(self, turn: DecisionBuilder, step: StepState) -> None:
        """The run goes on after a pause: do what its open question waited for."""
        ...

    def may_take_over(self, turn: DecisionBuilder, node: Node) -> bool:
        """Whether the actor of the command may do what a step was denied, and does it in the place of whoever asked for it."""
        ...


class _Rarely:
    """What few decisions ask for."""

    __slots__ = ("cancelled", "messages", "recalls", "stopped_by", "timers", "withdrawn")

    def __init__(self) -> None:
        self.timers: list[Timer] = []
        self.cancelled: list[str] = []
        self.recalls: list[Recall] = []
        self.messages: list[Message] = []
        self.withdrawn: list[int] = []
        self.stopped_by = ""


class DeciderFound(NamedTuple):
    """Whether the actor of a moment may decide a step: several checks of one decision ask for it."""

    step: StepState
    moment: Moment
    events: int
    """How many there were when it was found."""
    barred: Rejection | None


class SeatFound(NamedTuple):
    """From which place of a question an actor can decide: several checks of one decision ask for it."""

    question: Question
    actor: Actor
    events: int
    """How many there were when it was found."""
    place: int


class DecisionBuilder:
    """A decision in the making."""

    __slots__ = (
        "_absent",
        "_effects",
        "_entering",
        "_events",
        "_kinds",
        "_news",
        "_projection",
        "_rarely",
        "_records",
        "decider_found",
        "moment",
        "routes",
        "seat_found",
        "state",
    )

    def __init__(self, routes: GraphIndex, state: RunState, moment: Moment, kinds: Callable[[Node], NodeKind]) -> None:
        self.routes = routes
        self.state = state
        self.moment = moment
        self._kinds = kinds
        self._events: list[Event] = []
        self._effects: list[Effect] = []
        self._records: list[Record] = []
        self._rarely: _Rarely | None = None
        self._news: FactsRead | None = None
        self._absent: dict[str, Unreadable] = {}
        self._entering: list[tuple[str, str, bool]] = []
        self._projection = RowProjection(routes, kinds, state)
        self.decider_found: DeciderFound | None = None
        """Whether the actor was found to be a decider, until something happens."""
        self.seat_found: SeatFound | None = None
        """What the actor was found to decide from, until something happens."""

    @property
    def count(self) -> int:
        """How many events there are so far."""
        return len(self._events)

    @property
    def stopped_by(self) -> str:
        """Which operator stops what this turn stops, and why, in words; empty if none does. Children are told."""
        return "" if self._rarely is None else self._rarely.stopped_by

    def stops_for(self, by: str) -> None:
        """Note which operator stops what this turn stops, and why."""
        self._more.stopped_by = by

    def fact(self, key: FactKey) -> Fact:
        """Returns a fact from outside of the run. Raises FactsNeeded if it must be read first: then the turn is made anew."""
        return self.moment.facts.get(key)

    def look(self, reads: Reads | None) -> None:
        """Read settings and other documents as they are in this commit. If they are news, an event tells them before the next one."""
        if reads is None:
            return
        document, known = self.state.document, self._news or _NO_NEWS
        if reads.org:
            settings = self.fact(SETTINGS_FACT)
            if not self._is_known(settings):
                org = cast("Data", settings.value)
                known = self._news = replace(known, org=org, org_version=settings.version)
        if document is None or self.routes.documents is None:
            return
        for field in reads.refs:
            source, value, absence = self._seen_through(field)
            if absence:
                self._absent[field] = Unreadable(absence)
            else:
                self._absent.pop(field, None)
            if (source, value) != (
                known.sources.get(field, document.sources.get(field, "")),
                known.related.get(field, document.related.get(field, {})),
            ):
                known = self._news = replace(
                    known, related={**known.related, field: value}, sources={**known.sources, field: source}
                )

    def _is_known(self, settings: Fact) -> bool:
        """Whether the settings are those that are told already."""
        if self._news is not None and self._news.org is not None:
            return (self._news.org, self._news.org_version) == (settings.value, settings.version)
        document = self.state.document
        known = ({}, 0) if document is None else (document.org, document.org_version)
        return known == (settings.value, settings.version)

    def _seen_through(self, field: str) -> tuple[str, Data, str]:
        """The document that a field refers to, with its version, what steps read of it, and why it cannot be read."""
        assert self.state.document is not None
        assert self.routes.documents is not None
        spec, name = self.routes.documents.spec, self.state.document.data.get(field)
        if not isinstance(name, str) or not name:
            return "", {}, ""
        found = self.fact(document_fact(spec.fields[field].of, name)).value
        if not isinstance(found, DocumentFact):
            return f"{spec.fields[field].of}/{name}@0", {}, ""
        source = f"{found.type}/{found.id}@{found.version}"
        if found.not_in_force:
            return source, {}, found.not_in_force
        content = {"id": found.id, "status": found.status, "version": found.version, **found.data}
        value = {each: content[each] for each in spec.reads.get(field, ()) if content.get(each) is not None}
        return source, value, ""

    @property
    def org(self) -> Data:
        """The settings of the organisation, as they were read last."""
        if self._news is not None and self._news.org is not None:
            return self._news.org
        return {} if self.state.document is None else self.state.document.org

    @property
    def related(self) -> dict[str, object]:
        """What was read last of other documents, by field. To read one that is not in force is an ExpressionError."""
        known: dict[str, object] = {} if self.state.document is None else {**self.state.document.related}
        return {**known, **({} if self._news is None else self._news.related), **self._absent}

    def tell_news(self) -> None:
        """Have an event tell what was read, if no event tells it yet. Only a decision may: a refusal leaves the run as it was."""
        if self._news is not None and self.state.document is not None:
            news, self._news = self._news, None
            self.emit(news)

    # -- what happens

    def emit(self, event: Event) -> None:
        """Something happened: the state knows it from now on."""
        if self._news is not None:
            self.tell_news()
        self._records += self._projection.records_of(event)
        evolve(self.routes, self.state, event)
        self._events.append(event)

    def follow(self, routes: GraphIndex) -> None:
        """From now on the run follows another version of its graph."""
        self.routes = routes
        self._projection = RowProjection(routes, self._kinds, self.state)

    def decision(self) -> Decision:
        """All that came of the turn."""
        self.tell_news()
        events, effects, records = tuple(self._events), tuple(self._effects), tuple(self._records)
        rarely = self._rarely
        if rarely is None:
            return Decision(events=events, effects=effects, records=records, state=self.state)
        return Decision(
            events=events,
            effects=effects,
            timers=tuple(rarely.timers),
            cancelled_timers=tuple(rarely.cancelled),
            withdrawn_effects=tuple(rarely.withdrawn),
            recalls=tuple(rarely.recalls),
            messages=tuple(rarely.messages),
            records=records,
            state=self.state,
        )

    def latest(self, type_: type[E]) -> E:
        """The last event of a type that has happened in this turn."""
        return next(each for each in reversed(self._events) if isinstance(each, type_))

    @property
    def has_happened(self) -> bool:
        """Whether there is anything to decide."""
        return bool(self._events)

    @property
    def has_ended(self) -> bool:
        """Whether the run ends with this decision."""
        return self.state.is_terminal and any(isinstance(event, Ended) for event in self._events)

    # -- how tokens enter nodes

    def move(self, token: str, target: str, *, is_asked: bool = False) -> None:
        """Send a token to a node; it enters when those before it have. What an operator asks for is not a loop."""
        self._entering.append((token, target, is_asked))

    def forget_moves(self) -> None:
        """Tokens that were sent on in this turn, and have not entered yet, are to be sent elsewhere."""
        self._entering.clear()

    def run(self) -> None:
        """Let tokens enter nodes until all of them rest."""
        for name, target, is_asked in self._entering:  # It grows while tokens move on.
            token = self.state.tokens.get(name)
            if token is None or self.state.rollback is not None or self.state.is_terminal:
                continue
            node = self.routes.node(target)
            if not is_asked:
                self._watch_loops(token, node)
            if self.state.status == "paused":
                self.emit(TokenHeld(token=name, target=target))
            elif lack := self.lacking(node):
                self._kinds(node).fail(self, token, node, lack, was_called=False)
            else:
                reads = self.routes.reads(target)
                if reads is not None:
                    self.look(reads)
                    self.tell_news()
                self._kinds(node).enter(self, token, node)
        self._entering.clear()

    def lacking(self, node: Node) -> str:
        """What the starter of the run lacks for a node; empty if nothing."""
        wanted = self.routes.demands.get(node.id)
        if wanted is None:
            return ""
        starter = starter_of(self.state, self.moment.actor)
        told = (lack_of(starter, each, f"have {node.id!r} done", self.moment.facts) for each in wanted)
        return next(filter(None, told), "")

    def _watch_loops(self, token: Token, node: Node) -> None:
        """A run that goes in circles by itself waits for an operator."""
        policies, calls = self.routes.policies, self.state.chain
        if token.visits.get(node.id, 0) >= policies.max_visits:
            self.pause("max_visits", f"{node.id!r} was entered {policies.max_visits} times")
        elif policies.chain_limit is not None and calls >= policies.chain_limit and node.execution in _CALLING:
            self.pause("chain_limit", f"{calls} automatic steps in a row")

    def pause(self, reason: PauseReason, error: str) -> None:
        """Have the run wait for an operator, unless it does already."""
        if self.state.status == "running":
            self.halt(WorkflowPaused(reason=reason, error=error))

    def halt(self, event: WorkflowPaused) -> None:
        """Have the run wait for an operator: nothing new begins, and work that nobody has begun is taken back."""
        self.emit(event)
        for step in self.state.open.values():
            if step.effect is not None and step.of is None:  # What is being undone is undone to its end.
                self.recall(step, stop=False)

    def fail(self, token: Token, node: Node, error: str) -> None:
        """Have a node fail that a token has come to."""
        self._kinds(node).fail(self, token, node, error)

    def kind(self, step: StepState | Executed) -> NodeKind:
        """What the node of a step does."""
        return self._kinds(self.routes.node(step.node))

    def data_for(
        self, token: Token, node: str, *, data: Data | None = None, answer: object = None
    ) -> dict[str, object]:
        """What expressions may read; with this data instead of the token's, and with what the node is left with, where that is given."""
        asked = ScopeQuery(self.moment, self.state, node, token.data if data is None else data, answer)
        return self._with_news(node, namespaces_of(self.routes.graph.kind).values(asked))

    def names_for(self, token: Token, node: str) -> dict[str, object]:
        """What texts with holes, keys and rules for people may read."""
        return self._with_news(node, text_names(self.state, token.data))

    def _with_news(self, node: str, names: dict[str, object]) -> dict[str, object]:
        """The names, with what a node reads from outside as it is in this commit."""
        reads = self.routes.reads(node)
        if reads is not None:
            self.look(reads)
        if self._news is not None or self._absent:
            names |= {ORG: self.org, RELATED: self.related}
        return names

    # -- work

    @property
    def next_step(self) -> int:
        """The number of the next step."""
        return self.state.next_step

    @property
    def next_effect(self) -> int:
        """The number that the next effect will get."""
        return self.moment.issued + len(self._effects)

    def open_step(
        self,
        token: Token,
        node: Node,
        *,
        effect: int | None = None,
        delay_ms: int = 0,
        call_at: str = "",
        asked_at: str = "",
        due_at: str = "",
    ) -> StepState:
        """A step for a node that takes time."""
        number = self.next_step
        visit = token.visits.get(node.id, 0) + 1
        self.emit(
            StepStarted(
                step=number,
                node=node.id,
                token=token.id,
                visit=visit,
                effect=effect,
                retry_of=token.retry_of,
                first=token.first,
                delay_ms=delay_ms,
                call_at=call_at,
                asked_at=asked_at,
                due_at=due_at,
            )
        )
        limit = self.limit_of(node) if self.state.wait_ms else node.timeout_ms
        if limit is not None:
            self.set_timer(step_timer(number), self._elapsing_ms(node, limit), TimeOut(step=number))
        return self.state.open[number]

    def _elapsing_ms(self, node: Node, limit: int) -> int:
        """The time of a step by the clock; that of a question may count working time."""
        if not isinstance(node.op, HumanOp) or node.op.times is None:
            return limit
        return reached_ms(self.state, node.op.times.calendar, self.moment.now, limit)

    def limit_of(self, node: Node) -> int | None:
        """How long a step of a node waits, in milliseconds: as its definition says, or else as long as steps of this run do that wait for an answer."""
        if node.timeout_ms is None and self.state.wait_ms and node.op.answers:
            return self.state.wait_ms
        return node.timeout_ms

    def call(
        self, work: HandlerCall, body: RunStep, *, priority: int, delay: timedelta = _NOW, retry: RetryPolicy = NO_RETRY
    ) -> None:
        """Have a handler called. Without a rule for retries every failure comes back as a command: the machine decides what follows."""
        timeout = None if work.timeout_ms is None else timedelta(milliseconds=work.timeout_ms)
        self._effects.append(
            Effect(
                body=body,
                handler=work.handler,
                priority=priority,
                delay=delay,
                once=work.once,
                transactional=work.transactional,
                timeout=timeout,
                retry=retry,
            )
        )

    def send_out(self, errand: Errand) -> None:
        """Have the engine itself do something; it tries again by its own rule."""
        self._effects.append(Effect(body=errand, handler=errand.handler))

    def recall(self, step: StepState, *, stop: bool, is_asked: bool = False) -> None:
        """Take the work of a step back if nobody has begun it; it comes back by itself otherwise, sooner if told to stop."""
        assert step.effect is not None
        told = ReturnStep(step=step.number, is_asked=is_asked)
        self._more.recalls.append(Recall(effect=step.effect, command=told, stop=stop))

    def withdraw(self, step: StepState) -> None:
        """Take the work of a step from whoever has it: what comes of it counts no more."""
        assert step.effect is not None
        self._more.withdrawn.append(step.effect)

    def set_timer(self, key: str, after_ms: int, command: object) -> None:
        """Have a command sent later; while the run is paused, once it goes on."""
        after = timedelta(milliseconds=after_ms)
        if self.state.pause is not None:
            self.emit(TimerHeld(key=key, due_at=self.moment.now + after))
        else:
            self._more.timers.append(Timer(command=command, after=after, key=key))

    def set_timer_at(self, key: str, due_at: datetime, command: object) -> None:
        """Have a command sent at an instant, whether the run is paused by then or not."""
        self._more.timers.append(Timer(command=command, due_at=due_at, key=key))

    def set_alarm(self, key: str, due_at: datetime, command: object) -> None:
        """Have a command sent at an instant."""
        self._more.timers.append(Timer(command=command, due_at=due_at, key=key))

    def cancel_timer(self, key: str) -> None:
        """A timer is not wanted any more."""
        if self._rarely is not None:
            self._rarely.timers = [timer for timer in self._rarely.timers if timer.key != key]
        if key in self.moment.pending_timers:
            self._more.cancelled.append(key)
        elif self.state.pause is not None and key in self.state.pause.held:
            self.emit(TimerHeld(key=key))

    def cancel_step_timer(self, step: StepState) -> None:
        """The time of a step does not run any more."""
        if self.moment.pending_timers or self._rarely is not None or self.state.pause is not None:
            for timer in (step_timer, reminder_timer, escalation_timer):
                self.cancel_timer(timer(step.number))

    def wait_after(self, retry: RetryRule, attempt: int) -> timedelta:
        """How long to wait after the failure of a call; what is left to chance is the same each time this is decided."""
        has_jitter = retry.jitter_percent or retry.is_default
        chance = self.moment.derive_id("jitter", self.next_effect).int % 1000 / 1000 if has_jitter else 0.0
        return self.policy_of(retry).wait_after(attempt, chance)

    def policy_of(self, retry: RetryRule) -> RetryPolicy:
        """How a call is made again: as the graph says, or as the engine's settings do where it says nothing."""
        return self.routes.retry if retry.is_default else _policy_of(retry)

    def send(self, message: Message) -> None:
        """Tell another run something."""
        self._more.messages.append(message)

    @property
    def _more(self) -> _Rarely:
        if self._rarely is None:
            self._rarely = _Rarely()
        return self._rarely


def _policy_of(retry: RetryRule) -> RetryPolicy:
    """The arithmetic of a graph's retry rule. The cap bounds how waits grow, and is never shorter than the first one."""
    return RetryPolicy(
        max_attempts=retry.max_calls,
        delay=timedelta(milliseconds=retry.delay_ms),
        backoff=retry.backoff,
        factor=retry.factor_percent / 100,
        cap=timedelta(milliseconds=max(retry.cap_ms, retry.delay_ms)),
        jitter=retry.jitter_percent / 100,
    )
