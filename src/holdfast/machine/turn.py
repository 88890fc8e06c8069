"""One decision in the making: events are applied as they are emitted, and the work they ask for is gathered beside them.

A turn moves tokens: it enters nodes and leaves them by edges until every token rests. What a node does on entry is the business of its
module in `nodes`; the turn knows no kind of node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from holdfast.errors import ExpressionError
from holdfast.kernel.decision import Decision, Effect, Message, Recall, Timer
from holdfast.kernel.moment import Moment
from holdfast.kernel.records import Record
from holdfast.kernel.retry import NO_RETRY, RetryPolicy
from holdfast.machine.commands import RunStep, TimeOut
from holdfast.machine.events import Event, StepStarted, TokenEnded, TokenMoved
from holdfast.machine.evolving import evolve
from holdfast.machine.graph import Edge, Node, Retry, Work
from holdfast.machine.projecting import records_of
from holdfast.machine.routes import Routes
from holdfast.machine.state import State, Step, Token


class NodeKind(Protocol):
    """What a kind of node does."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """A token arrives."""
        ...

    def stop(self, turn: Turn, step: Step) -> None:
        """An open step of this kind is not wanted any more: take back what it asked for."""
        ...


class Turn:
    """A decision in the making."""

    def __init__(self, routes: Routes, state: State, moment: Moment, kinds: Callable[[Node], NodeKind]) -> None:
        self.routes = routes
        self.state = state
        self.moment = moment
        self._kinds = kinds
        self._events: list[Event] = []
        self._effects: list[Effect] = []
        self._timers: list[Timer] = []
        self._cancelled: list[str] = []
        self._withdrawn: list[int] = []
        self._recalls: list[Recall] = []
        self._messages: list[Message] = []
        self._records: list[Record] = []
        self._entering: deque[tuple[str, str]] = deque()

    # -- what happens

    def emit(self, event: Event) -> None:
        """Something happened: the state knows it from now on."""
        self._records += records_of(self.routes, self.state, event)
        evolve(self.routes, self.state, event)
        self._events.append(event)

    def decision(self) -> Decision:
        """All that came of the turn."""
        return Decision(
            events=tuple(self._events),
            effects=tuple(self._effects),
            timers=tuple(self._timers),
            cancelled_timers=tuple(self._cancelled),
            withdrawn_effects=tuple(self._withdrawn),
            recalls=tuple(self._recalls),
            messages=tuple(self._messages),
            records=tuple(self._records),
            state=self.state,
        )

    @property
    def has_happened(self) -> bool:
        """Whether there is anything to decide."""
        return bool(self._events)

    # -- how tokens move

    def move(self, token: str, target: str) -> None:
        """Send a token to a node; it enters when those before it have."""
        self._entering.append((token, target))

    def run(self) -> None:
        """Let tokens enter nodes until all of them rest."""
        while self._entering:
            name, target = self._entering.popleft()
            token = self.state.tokens.get(name)
            if token is not None and self.may_begin:
                node = self.routes.node(target)
                self._kinds(node).enter(self, token, node)

    @property
    def may_begin(self) -> bool:
        """Whether anything new may begin."""
        return self.state.status == "running" and self.state.rollback is None

    def leave(self, token_name: str, node: str, outcome: str) -> None:
        """A token is done with a node: the first edge of this outcome whose condition holds is taken."""
        token = self.state.tokens.get(token_name)
        if token is None or not self.may_begin:
            return
        edge = self._chosen(token, node, outcome)
        if edge is None:
            self.end(token_name)
            return
        if edge.assign:
            self.emit(TokenMoved(token=token_name, target=edge.target))
        self.move(token_name, edge.target)

    def end(self, token: str) -> None:
        """A token's way is over."""
        scope = self.state.tokens[token].scope
        self.emit(TokenEnded(token=token))
        if scope is not None and self.on_scope_changed is not None:
            self.on_scope_changed(self, scope)

    on_scope_changed: Callable[[Turn, int], None] | None = None
    """Looks whether the branches of a split have met; set by the machine."""

    def data_for(self, token: Token, node: str) -> dict[str, object]:
        """What expressions may read."""
        return {
            "input": token.data,
            "instance_id": str(self.moment.instance),
            "step_name": node,
            "now": self.moment.now,
            "actor": {"id": self.moment.actor},
        }

    def _chosen(self, token: Token, node: str, outcome: str) -> Edge | None:
        for edge in self.routes.ways(node, outcome):
            guard = self.routes.guard(edge)
            if guard is None or self._holds(guard.holds, token, node):
                return edge
        return None

    def _holds(self, holds: Callable[[dict[str, object]], bool], token: Token, node: str) -> bool:
        try:
            return holds(self.data_for(token, node))
        except ExpressionError:
            return False  # A guard that cannot be answered does not let anybody through.

    # -- work

    def next_number(self) -> int:
        """The number of the next step."""
        return self.state.next_step

    def begin(self, token: Token, node: Node, *, effect: int | None = None) -> int:
        """Open a step for a node that takes time; its number."""
        number = self.next_number()
        visit = token.visits.get(node.id, 0) + 1
        self.emit(StepStarted(step=number, node=node.id, token=token.id, visit=visit, effect=effect))
        if node.timeout_ms is not None:
            self.set_timer(step_timer(number), node.timeout_ms, TimeOut(step=number))
        return number

    def call(self, work: Work, body: RunStep, *, priority: int, delay: timedelta = timedelta(0)) -> int:
        """Have a handler called; the number of the effect."""
        number = self.moment.issued + len(self._effects)
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
                retry=NO_RETRY,  # Every failure comes back as a command: the machine decides what follows.
            )
        )
        return number

    def upcoming_effect(self) -> int:
        """The number that the next effect will get."""
        return self.moment.issued + len(self._effects)

    def withdraw(self, effect: int | None) -> None:
        """Nobody wants the work of an effect any more."""
        if effect is not None:
            self._withdrawn.append(effect)

    def recall(self, effect: int, command: object, *, stop: bool) -> None:
        """Take an effect back if nobody has begun it."""
        self._recalls.append(Recall(effect=effect, command=command, stop=stop))

    def set_timer(self, key: str, after_ms: int, command: object) -> None:
        """Have a command sent later."""
        self._timers.append(Timer(command=command, after=timedelta(milliseconds=after_ms), key=key))

    def cancel_timer(self, key: str) -> None:
        """A timer is not wanted any more."""
        if key in self.moment.pending_timers:
            self._cancelled.append(key)

    def send(self, message: Message) -> None:
        """Tell another run something."""
        self._messages.append(message)

    def stop(self, step: Step) -> None:
        """Take back what an open step asked for."""
        self._kinds(self.routes.node(step.node)).stop(self, step)


def step_timer(step: int) -> str:
    """The key of the timer of a step."""
    return f"step:{step}"


def policy_of(retry: Retry) -> RetryPolicy:
    """The arithmetic of a graph's retry rule."""
    return RetryPolicy(
        max_attempts=retry.max_calls,
        delay=timedelta(milliseconds=retry.delay_ms),
        backoff=retry.backoff,
        factor=retry.factor_percent / 100,
        cap=timedelta(milliseconds=retry.cap_ms),
        jitter=retry.jitter_percent / 100,
    )
