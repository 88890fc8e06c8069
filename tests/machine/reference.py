"""A slow and obvious interpreter of a graph, written from docs/concepts/graphs.md and, as to people, waits and pauses, from the pages in docs/how-to.

A run is a list of tokens, a list of splits and a list of steps. Every question (what is open, who is alive, what must be undone) is
answered by walking over them again. It takes the commands of the real machine, so that the two can be compared after each of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast, get_args

from machine.hosting import NOW, OLGA
from machine.polling import Poll, Seat, Vote, begun, may_all, person, seat_for, seat_found, verdict
from standfast.errors import ExpressionError
from standfast.expressions import Expression
from standfast.graph import model as g
from standfast.graph.values.approver_rules import Ask
from standfast.kernel.actor import Actor
from standfast.machine.model.commands import repair_commands as r
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.messages import PublishedMessage

Data = dict[str, object]

MOST_SIGNALS = 1000
"""Signals that are kept."""
TASK_COMMANDS: tuple[type[c.TaskCommand], ...] = get_args(c.TaskCommand)
OF_PEOPLE = (c.PeopleFound, c.RemindTask, c.EscalateTask, *TASK_COMMANDS)
"""Commands about questions that are open, besides answers."""
MENDING = (c.AnswerStep, c.TimeOut, c.ResumeWorkflow, c.EscalateTask, *TASK_COMMANDS)
"""Commands after which a question may have somebody again who can decide it."""
STUCK = "compensation_failed"
ANYTHING = "?"
"""An error text that the rules do not fix."""


@dataclass(frozen=True)
class Wait:
    """How long to wait before a call; the rest is left to chance."""

    shortest: timedelta = timedelta(0)
    longest: timedelta = timedelta(0)


def _wait(retry: g.RetryRule, failures: int) -> Wait:
    """The wait after so many failed calls."""
    growth = {"fixed": 1.0, "linear": failures, "exponential": (retry.factor_percent / 100) ** (failures - 1)}
    wait = min(retry.delay_ms * growth[retry.backoff], retry.cap_ms)
    return Wait(timedelta(milliseconds=wait), timedelta(milliseconds=wait * (1 + retry.jitter_percent / 100)))


_expressions: dict[str, Expression] = {}


def _read(stored: dict[str, g.Plain]) -> Expression:
    """A stored expression; each is read once."""
    key = str(stored["hash"])
    if key not in _expressions:
        _expressions[key] = Expression.from_data(stored)
    return _expressions[key]


def _holds(condition: dict[str, g.Plain], data: Data, resume: Data) -> bool:
    """A condition that cannot be answered does not hold."""
    try:
        return _read(condition).holds({"input": data, "workflow": data, "resume": resume})
    except ExpressionError:
        return False


def _value(stored: dict[str, g.Plain], data: Data) -> object:
    """What an edge adds to the data; what cannot be computed is null."""
    try:
        return _read(stored).evaluate({"input": data, "workflow": data})
    except ExpressionError:
        return None


def _poll(step: Step) -> Poll:
    """The question of a step that asks one."""
    assert step.poll is not None
    return step.poll


def _key(awaited: g.Awaited, data: Data) -> str | None:
    """The key that an event has to be published for; None if the data has none."""
    if awaited.key is None:
        return ""
    value = _value(awaited.key, data)
    return str(value) if value and isinstance(value, str | int) else "0" if value == 0 else None


def _matches(awaited: g.Awaited, data: Data, payload: object) -> bool:
    """A condition that cannot be answered does not hold."""
    try:
        return awaited.match is None or _read(awaited.match).holds({"input": data, "workflow": data, "event": payload})
    except ExpressionError:
        return False


def _without_list(data: Data, source: str) -> Data:
    """The data without a list that is found at a path in it."""
    first, _, rest = source.removeprefix("input.").removeprefix("workflow.").partition(".")
    if not rest:
        return {name: value for name, value in data.items() if name != first}
    inner = data[first]
    assert isinstance(inner, dict)
    return data | {first: _without_list(inner, rest)}


def _may(actor: Actor, capability: str | tuple[str, ...]) -> bool:
    """Whether somebody has a capability, or all of several: the very one, or one that ends in a star and stands for it."""
    if isinstance(capability, tuple):
        return all(_may(actor, each) for each in capability)
    stars = [each[:-1] for each in actor.capabilities if each.endswith("*")]
    return not capability or capability in actor.capabilities or any(capability.startswith(star) for star in stars)


_SILENT = g.ConditionOp | g.SplitOp | g.SavePointOp | g.NoReturnOp | g.WaitTimerOp | g.NotificationOp
"""Kinds that give no answer."""


@dataclass(eq=False)
class Step:
    """One entry of a node, or the undoing of one."""

    number: int
    node: str
    token: Token
    visit: int = 1
    data: Data = field(default_factory=dict)
    """What the token knew when it entered."""
    previous: object = None
    """What the token's step before had answered."""
    status: str = "pending"
    outcome: str = ""
    output: object = None
    error: str = ""
    attempts: int = 0
    """As an operator sees them: calls that have come back."""
    call: int = 1
    """Number of the present call."""
    wait: Wait = field(default_factory=Wait)
    """How long to wait before it."""
    call_at: tuple[datetime, datetime] | None = None
    """The earliest and the latest time that it was put off to; None if it was not."""
    was_called: bool = False
    """Whether any call of the handler may have begun."""
    is_expired: bool = False
    """Whether it is a question whose time has passed."""
    is_open: bool = False
    """Whether the token is still there."""
    is_dead: bool = False
    """Whether it gave up and waits for an operator."""
    is_frozen: bool = False
    """Whether its call was taken back while the run waits for an operator."""
    is_held_back: bool = False
    """Whether it gave up while somebody has the run wait, so that nothing has followed from that yet."""
    is_calling: bool = False
    """Whether its handler is to be called, or is being called."""
    is_missed: bool = False
    """Whether the history tells that nobody has the handler of the present call."""
    is_recalled: bool = False
    """Whether the present call was asked back."""
    is_stopping: bool = False
    """Whether it was stopped and its handler, or child, has not come back."""
    is_undone: bool = False
    """Whether it was undone while the run went on."""
    is_late: bool = False
    """Whether its handler has had its time and nobody waits for it any more."""
    is_done: bool = False
    """Whether the handler of a stopped step finished its work all the same."""
    ended: int = 0
    """Place in the order of ends; 0 while it has none."""
    due: datetime | None = None
    """When its time is over; None if nothing follows from that."""
    child: str = ""
    """`started`, `cancel`, `abort` or `undo`: what the step's child was last told."""
    child_involved: set[str] = field(default_factory=set)
    """Who has brought the child about, as it was told since it began."""
    has_stuck_child: bool = False
    """Whether its child has ended and could not be undone, or has passed a point of no return."""
    has_standing_child: bool = False
    """Whether its child has completed and is undone with the step."""
    has_settled_child: bool = False
    """Whether its child has undone itself, so that the step's own compensation is not called."""
    awaits_child: bool = False
    """For a compensation: whether a child was told to undo what it did."""
    of: Step | None = None
    """For a compensation: what it undoes."""
    came: Data = field(default_factory=dict)
    """What the events have brought that it waits for, by their names there."""
    untold: list[str] = field(default_factory=list)
    """Notices that it waits for, by their keys."""
    poll: Poll | None = None
    """The question that it asks."""
    asked_at: datetime | None = None
    """From when the times of that count."""
    times: dict[str, datetime] = field(default_factory=dict)
    """When people are reminded next (`remind`), and when others are asked (`escalate`)."""
    reminded: int = 0
    level: int = 0
    """How many rungs of its ladder it has gone up."""
    retry_of: Step | None = None
    first: int = 0
    """The step whose idempotency key its calls have."""


@dataclass(eq=False)
class Token:
    """One thread of control."""

    name: str
    data: Data
    scope: Scope | None = None
    """The split that it is a branch of."""
    visits: dict[str, int] = field(default_factory=dict)
    last_answering: str = ""
    last_answer: object = None
    is_over: bool = False
    arrived: int = 0
    """Place in the order of arrivals at the join of its split; 0 if it has not arrived."""
    held: tuple[str, str] | None = None
    """While it may not go on: (node, outcome) that it was left by; or ("", target) that it would enter."""
    retries: Step | None = None
    """The step that its next one repeats."""
    first: int | None = None
    """The step whose idempotency key that one has; None means its own."""

    @property
    def above(self) -> Token | None:
        """The token that was split to make this one."""
        return self.scope.parked if self.scope else None

    def is_at_or_below(self, other: Token) -> bool:
        """Whether this is the other token or comes from it."""
        return self is other or (self.above is not None and self.above.is_at_or_below(other))


@dataclass(eq=False)
class Scope:
    """The branches of one split."""

    node: str
    step: Step
    parked: Token
    branches: list[Token] = field(default_factory=list)
    """All that have begun."""
    todo: list[object] = field(default_factory=list)
    """Items that have not begun."""
    is_over: bool = False

    @property
    def alive(self) -> list[Token]:
        """Branches that have not ended; those that have arrived are alive."""
        return [each for each in self.branches if not each.is_over]

    @property
    def arrived(self) -> list[Token]:
        """Branches that wait at the join, in the order of their arrival."""
        return sorted((each for each in self.alive if each.arrived), key=lambda token: token.arrived)


@dataclass(frozen=True)
class Hold:
    """Somebody has the run wait."""

    since: datetime
    stands_still: bool
    """Whether its timers have as much time left afterwards as they had before."""


@dataclass(eq=False)
class Reference:
    """A run of a graph, told one command at a time."""

    graph: g.Graph
    limit: int
    status: str = "new"
    reason: str = ""
    error: str = ""
    steps: list[Step] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    """All there have been, in the order in which they set out."""
    scopes: list[Scope] = field(default_factory=list)
    timers: dict[str, datetime] = field(default_factory=dict)
    """Of the run as a whole, and when each is due: `start`, `deadline`, `grace`."""
    signals: list[tuple[str, object]] = field(default_factory=list)
    """Kept until somebody waits for them."""
    taken: dict[str, datetime] = field(default_factory=dict)
    """Events that the run has had, by id, and until when they can be met."""
    offers: list[tuple[str, int, bool]] = field(default_factory=list)
    """What was told to events that are for one taker alone: (event, step, whether it was taken)."""
    searches: list[tuple[int, list[tuple[str, str | None]], list[str]]] = field(default_factory=list)
    """How often somebody was sent to look for events: (step, what to look for, what the run has had)."""
    requester: str = ""
    """Who wanted the run."""
    involved: set[str] = field(default_factory=set)
    """Who else has brought it about."""
    lookups: list[tuple[int, list[str]]] = field(default_factory=list)
    """How often somebody was sent to find people: (step, whom)."""
    answered: dict[int, list[tuple[str, str, object]]] = field(default_factory=dict)
    """What people and the world have answered, by step: (outcome, who, with what)."""
    deciders: dict[str, set[str]] = field(default_factory=dict)
    """Who has decided which human step, by its name."""
    letters: dict[tuple[str, int], str] = field(default_factory=dict)
    """Dead letters: (source, step) and the error."""
    hold: Hold | None = None
    held_back: list[Step] = field(default_factory=list)
    """Steps that gave up meanwhile, in the order in which they did."""
    resume_data: Data = field(default_factory=dict)
    """What the last resume has brought that brought anything."""
    triggers: list[str] = field(default_factory=list)
    """What has had the run go on."""
    back: str = ""
    """`failure` or `cancel` while the run is on its way back."""
    failed: Step | None = None
    chain: list[Step] | None = None
    """Steps still to be undone; None until nothing runs any more."""
    stuck: Step | None = None
    """The compensation that gave up."""
    dropped: list[Token] = field(default_factory=list)
    """Branches whose work is undone while the run goes on."""
    handler_calls: int = 0
    """Since the last word from outside."""
    ends: int = 0
    moves: list[tuple[Token, str, bool]] = field(default_factory=list)
    """Tokens on their way into a node, in the order in which they set out, and whether an operator sent them."""
    now: datetime = NOW
    has_parent: bool = False
    actor: Actor = OLGA
    """Who sent the present command."""
    barred: str = ""
    """The code of the law by which it is refused."""
    voters: list[Actor] = field(default_factory=list)
    """Those whose votes a question ends by, while it does: a guard is asked of all of them."""
    told_parent: list[tuple[str, object, str, str, bool, str, bool]] = field(default_factory=list)

    @property
    def policies(self) -> g.Policies:
        """What happens when no edge says it."""
        return self.graph.policies

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.status in {"completed", "failed", "cancelled", "aborted"}

    @property
    def root(self) -> Token:
        """The first token."""
        return next(token for token in self.tokens if token.scope is None)

    # Commands

    def tell(self, command: object, actor: Actor = OLGA, now: datetime = NOW) -> bool:
        """Take a command; False if it is refused or there is nothing to do."""
        self.actor, self.barred, self.now = actor, "", now
        self.voters = []
        if isinstance(command, c.StartWorkflow):
            return (
                self._may_start(command)
                and self.status == "new"
                and self._has_room(command.input)
                and self._start(command)
            )
        if self.status == "new":
            return self._bar("not_started")
        if self._is_stranger(command):
            return self._bar("not_allowed")
        if self._is_repeated(command) or self._is_late(command):
            return False
        if self.is_over and isinstance(command, c.CompleteStep | c.FailStep | c.EndNotice):
            return self._note_late_end(command)
        taken = self._take_anyhow(command)
        if taken and isinstance(command, MENDING):
            self._mend()
        if taken and not self.is_over:
            self._settle()
        if taken and isinstance(command, c.AnswerStep | c.RequeueStep) and not self.is_over:
            self._look_at_others()
        return taken

    def _is_repeated(self, command: object) -> bool:
        """Whether a resume was carried out before, or a question is answered: the same again is no news, anything else a conflict."""
        if isinstance(command, c.ResumeWorkflow):
            return command.trigger_id in self.triggers
        if not isinstance(command, c.AnswerStep) or command.step not in self.answered:
            return False
        given = (command.outcome, self.actor.id, command.data)
        return given in self.answered[command.step] or not self._bar("already_decided")

    def _is_stranger(self, command: object) -> bool:
        """Whether somebody asks about a question that is answered, and has no part in it: they are told nothing of it."""
        if not isinstance(command, c.AnswerStep | c.TaskCommand) or command.step not in self.answered:
            return False
        step = next(each for each in self.steps if each.number == command.step)
        poll, who = step.poll, self.actor
        rights = ("execution:read", "task:reassign", "task:add_approver", "task:withdraw", "task:escalate")
        is_open = step.is_open and not step.is_held_back
        if poll is None or is_open or may_all(who) or any(_may(who, each) for each in rights):
            return False
        names = {who.id, person(who)}
        known = {self.requester, *(each[1] for each in self.answered[command.step])}
        counted = [vote for vote in poll.votes if vote.is_applied]  # Others were answered past.
        known |= {name for vote in counted for name in (vote.actor, vote.on_behalf_of)}
        if names & known:
            return False
        if poll.is_open_to_all:
            return not _may(who, self.graph.nodes[step.node].capability)
        roles = {f"role:{each}" for each in who.roles}
        asked = {name for seat in poll.seats for name in (seat.who, seat.stands_for, *seat.hands)}
        return bool(asked - {""}) and not asked & (names | roles)

    def _is_late(self, command: object) -> bool:
        """Whether a handler comes back for which nobody waits any more."""
        late: list[Step] = []
        if isinstance(command, c.CompleteStep | c.FailStep | c.ReturnStep):
            late = [step for step in self.steps if step.number == command.step and step.is_late]
            for step in late:
                step.is_late = False
        return bool(late)

    def _take_anyhow(self, command: object) -> bool:
        """What is heard of also when the run has ended; the rest is not."""
        if isinstance(command, c.TakeEvents):
            return self._take_events(command)
        if isinstance(command, c.RetryCompensation):
            return self._may_repair() and self._stuck_step() == command.step and self._retry_compensation()
        if self.status == "failed" and isinstance(command, c.EndChild):
            stuck = [each for each in self.steps if each.number == command.step and each.has_stuck_child]
            return any(self._hear_of_child(each, command) for each in stuck)
        if self.stuck is not None and isinstance(command, r.SkipStep):
            return self._go_on_without(command)
        if self.status == "failed" and self.stuck is not None and isinstance(command, c.ResumeWorkflow):
            return self._bar("not_paused" if _may(self.actor, "execution:resume") else "not_allowed")
        if self.is_over:
            return self._bar("already_terminal")
        return (not isinstance(command, c.RequeueStep) or self._may_repair()) and self._take(command)

    def _may_repair(self) -> bool:
        return _may(self.actor, "execution:repair") or self._bar("not_allowed")

    def _may_bring(self, data: Data | None) -> bool:
        """Where people are asked, other data takes the right to override."""
        asks = any(isinstance(node.op, g.HumanOp) for node in self.graph.nodes.values())
        return data is None or not asks or _may(self.actor, "execution:override")

    def _brought(self, step: Step, data: Data | None) -> Data | None:
        """What an operator gives a step to work on: in a process the names that only the engine sets stay as they are."""
        if data is None or self.graph.kind != "process":
            return data
        return {**{name: value for name, value in step.token.data.items() if name.startswith("_")}, **data}

    def _in(self, after_ms: int) -> datetime:
        return self.now + timedelta(milliseconds=after_ms)

    def _set(self, timer: str, after_ms: int) -> None:
        self.timers[timer] = self._in(after_ms)

    def _bar(self, code: str) -> bool:
        """Refuse by the law."""
        self.barred = code
        return False

    def _may_start(self, command: c.StartWorkflow) -> bool:
        """A parent may; anybody else needs the capability."""
        return _may(self.actor, self.graph.rights.start) or self._bar("not_allowed")

    def _may_stop(self, command: c.CancelWorkflow | c.AbortWorkflow) -> bool:
        """A parent may; anybody else needs the capability to cancel, or to start where there is none. Nobody goes past an open question by that."""
        rights = self.graph.rights
        asked = [step for step in self.steps if self.has_parent and self.is_asked(step)]
        if not _may(self.actor, rights.cancel or rights.start):
            return self._bar("not_allowed")
        kept_out = next(filter(None, map(self._kept_from, asked)), "")
        if kept_out:
            return self._bar(kept_out)
        return not asked or _may(self.actor, "execution:override") or self._bar("not_allowed")

    def _hold_on(self, command: c.PauseWorkflow) -> bool:
        """Somebody wants the run to wait: running handlers finish, what would follow is held, and no timer fires."""
        if not _may(self.actor, "execution:pause"):
            return self._bar("not_allowed")
        if self.status == "paused" or self.back:
            return self._bar("already_paused" if self.status == "paused" else "rollback_in_progress")
        if command.until is not None and command.until <= self.now:
            return self._bar("time_passed")
        self._pause("requested")
        self.hold = Hold(self.now, command.clock == "stand_still")
        if command.until is not None:
            self.timers["resume"] = command.until
        return True

    def _kept_from(self, question: Step | None) -> str:
        """Why four eyes keep the actor from going past a question; empty if they do not."""
        if question is None or self.actor.kind == "system":
            return ""
        return self._separation(question, {self.actor.id, person(self.actor)})

    def _awaits_event(self, steps: list[Step]) -> bool:
        return any(isinstance(self._op(step), g.WaitEventOp | g.WaitEventsOp) for step in steps)

    def _resume(self, command: c.ResumeWorkflow) -> bool:
        """Whoever has the capability may, if the run is paused and no step waits to be requeued; or past an open question, by another one."""
        is_override = command.override and command.trigger == "manual"
        capabilities = ["execution:resume", *(["execution:override"] if is_override else [])]
        if not all(_may(self.actor, each) for each in capabilities):
            return self._bar("not_allowed")
        if self.status == "paused" and self.hold is None and self.reason == STUCK:
            return self._bar("not_paused")
        waits = self._resting_places() if command.trigger == "manual" and command.past_wait else []
        asked = [step for step in self.steps if self.is_asked(step)] if is_override and not waits else waits
        wanted = [step for step in asked if command.step in {None, step.number}]
        if self._awaits_event(wanted) and not _may(self.actor, "execution:override"):
            return self._bar("not_allowed")
        if (is_override or waits) and len(wanted) != 1 and (wanted or command.step is not None):
            return self._bar("not_waiting")
        passed = wanted[0] if wanted else None
        question = None if waits else passed
        kept_out = self._kept_from(question)
        if kept_out:
            return self._bar(kept_out)
        if self.status != "paused" and passed is None:
            return self._bar("not_paused")
        answer = self._said(_poll(question).approval, command.reason, None) if question else {}
        if not self._can_go_on(command, passed, answer):
            return False
        self.resume_data = self.resume_data if command.data is None else command.data
        self.triggers += [command.trigger_id] if command.trigger_id else []
        self._go_on()
        if waits and passed is not None:
            self._finish(passed, g.OK, None)
        elif question is not None and self.is_asked(question):  # Unless it has ended because the run went on.
            known = (_poll(question).approval, self.actor.id, None)
            self._close_question(question, "overridden", answer, [known])
        return True

    def _can_go_on(self, command: c.ResumeWorkflow, step: Step | None, answer: Data) -> bool:
        """Whether nothing is dead, and a step that is passed can be left: there is room for the answer, if it is a question, and a way is open."""
        if self.hold is None and any(each.is_dead for each in self.steps):
            return self._bar("dead_letters")
        if not self._has_room(command.data):
            return self._bar("too_large")
        if step is None:
            return True
        outcome, told = (str(answer["status"]), self._with(step, answer)) if answer else (g.OK, step.token.data)
        return (self._has_room(told) or self._bar("too_large")) and self._may_leave(step, outcome, told)

    def _go_on_without(self, command: r.SkipStep) -> bool:
        """Somebody names what could not be undone, and does without that: a step on the way back, or a branch that was not needed."""
        if not self._may_repair():
            return False
        if self._stuck_step() != command.step:
            return self._bar("not_dead" if self.back else "not_open")
        assert self.stuck is not None
        assert self.stuck.of is not None
        if self.back:
            self._settle_child(self.stuck.of)
            self._forget_stuck()
            self.status, self.reason, self.handler_calls = "running", "", 0
            return True
        self.stuck.of.is_undone = True  # It is not, and nobody asks for it any more.
        self.stuck.of.has_stuck_child = False
        self._forget_stuck()
        if self.status == "paused" and self.reason == STUCK:
            self._go_on()
        return True

    def _resting_places(self) -> list[Step]:
        """Where a process waits for time or for an event, and for nothing else: that counts as suspended."""
        steps = [step for step in self.steps if step.is_open]
        is_resting = all(isinstance(self._op(step), g.WaitTimerOp | g.WaitEventOp | g.WaitEventsOp) for step in steps)
        return steps if is_resting and self.graph.kind == "process" and self.status == "running" else []

    def is_asked(self, step: Step) -> bool:
        """Whether a step waits for people."""
        return step.is_open and not step.is_held_back and step.of is None and self.is_at(step, g.HumanOp)

    def _said(self, outcome: str, comment: str, data: object) -> Data:
        """What the steps behind find of a decision."""
        return {
            "status": outcome,
            "decided_by": self.actor.id,
            "decided_at": self.now.isoformat(),
            "comment": comment,
            "data": data,
        }

    def _may_answer(self, node: g.Node) -> bool:
        """Who answers has the node's capability."""
        return _may(self.actor, node.capability) or self._bar("not_allowed")

    def _may_leave(self, step: Step, outcome: str, data: Data) -> bool:
        """An answer that leads on, but only for others, is not taken; nor one that would lead on with other data, where that is fatal."""
        ways = self._edges(step.node, outcome) or self._edges(step.node, "*")
        found = ways if self.policies.on_no_edge == "fail" else self._open_edges(step.node, outcome, data)
        return not found or self._edge(step.node, outcome, data) is not None or self._bar("no_transition")

    def _may_pass(self, step: Step, outcome: str, data: Data) -> bool:
        """One of several who decide has a guard of the ways that are open by what they say, whatever the others come to."""
        found = self._open_edges(step.node, outcome, data)
        return not found or any(_may(self.actor, edge.capability) for edge in found) or self._bar("no_transition")

    def _note_late_end(self, command: c.CompleteStep | c.FailStep | c.EndNotice) -> bool:
        """A call that was under way when the run ended has come back; nothing is news but that it was made, and what it answered.

        That somebody could not be told is told always.
        """
        if isinstance(command, c.EndNotice):
            return bool(command.error)
        found = [step for step in self.steps if step.number == command.step and step.is_calling and step.is_stopping]
        if not found or (isinstance(command, c.FailStep) and not command.was_called):
            return False
        if isinstance(command, c.CompleteStep) and self.work_of(found[0]).transactional:
            return False  # What it wrote goes with the refusal; that it was made comes with its failure.
        found[0].is_calling, found[0].attempts = False, found[0].call
        if isinstance(command, c.CompleteStep):
            found[0].is_done, found[0].output = True, command.output
        return True

    def _take(self, command: object) -> bool:
        match command:
            case c.BeginWorkflow():
                return self._begin()
            case c.CancelWorkflow(reason=reason):
                return self._may_stop(command) and not self.back and self._cancel(reason)
            case c.PassDeadline():
                return "deadline" in self.timers and self.hold is None and self._cancel(ANYTHING)
            case c.AbortWorkflow(reason=reason):
                return self._may_stop(command) and self._abort(reason)
            case c.EndGrace():
                return self._end_grace()
            case c.SendSignal():
                return self._signal(command)
            case c.PauseWorkflow() | c.ResumeWorkflow() | c.ExpirePause():
                return self._take_of_operator(command)
            case _:
                step = next((each for each in self.steps if each.number == getattr(command, "step", 0)), None)
                take = self._take_of_people if isinstance(command, OF_PEOPLE) else self._take_for_step
                return self._let_wait(command) if step is None else take(step, command)

    def _take_of_operator(self, command: c.PauseWorkflow | c.ResumeWorkflow | c.ExpirePause) -> bool:
        if isinstance(command, c.ExpirePause):
            return self.hold is not None and self._roll_back(None, ANYTHING)
        return self._hold_on(command) if isinstance(command, c.PauseWorkflow) else self._resume(command)

    def _take_for_step(self, step: Step, command: object) -> bool:
        match command:
            case c.CompleteStep(output=output) if step.is_calling:
                self._complete(step, output)
            case c.FailStep() if step.is_calling:
                self._fail_call(step, command)
            case c.ReturnStep() if step.is_recalled:
                self._return(step)
            case c.TimeOut() if step.due is not None and self.hold is None:
                self._time_out(step)
            case c.AnswerStep() if step.is_open and not step.is_held_back and step.of is None:
                return self._take_answer(step, command)
            case c.EndNotice() | c.EndChild():
                return self._hear_of(step, command)
            case c.RequeueStep(input=data) if step.is_dead and not self._may_bring(data):
                return self._bar("not_allowed")
            case c.RequeueStep(input=data) if step.is_dead and self._has_room(self._brought(step, data)):
                self._requeue(step, self._brought(step, data))
            case c.NoteMissingHandler() if step.is_calling and not step.is_stopping and not step.is_missed:
                step.is_missed = True
            case _:
                return self._let_wait(command)
        return True

    def _let_wait(self, command: object) -> bool:
        """Nobody waits for this; people are told."""
        return self._bar("not_waiting" if isinstance(command, (c.AnswerStep, *TASK_COMMANDS)) else "")

    def _take_of_people(self, step: Step, command: object) -> bool:
        """What is about a question."""
        if not self.is_asked(step):
            return self._let_wait(command)
        match command:
            case c.PeopleFound():
                return self._find_people(step, command)
            case c.RemindTask() if "remind" in step.times and self.hold is None:
                self._remind(step)
            case c.EscalateTask() if "escalate" in step.times and self.hold is None:
                self._escalate(step)
            case c.RemindTask() | c.EscalateTask():
                return False
            case _:
                return self._do_to_task(step, cast("c.TaskCommand", command))
        return True

    def _hear_of(self, step: Step, command: c.EndNotice | c.EndChild) -> bool:
        if isinstance(command, c.EndNotice):
            return self._hear_of_notice(step, command)
        return bool(step.child) and self._hear_of_child(step, command)

    def _hear_of_notice(self, step: Step, command: c.EndNotice) -> bool:
        """Somebody was told, or could not be: a step goes on when all of its notices are delivered, and fails with the first that is not."""
        is_awaited = step.is_open and not step.is_held_back and command.key in step.untold
        if is_awaited and command.error:
            self._fail(step, ANYTHING)
        elif is_awaited:
            step.untold.remove(command.key)
            if not step.untold:
                self._finish(step, g.OK, None)
        return is_awaited or bool(command.error)

    def _start(self, command: c.StartWorkflow) -> bool:
        self.status = "running"
        self.has_parent = bool(command.parent)
        self.requester = command.requester if self.actor.kind == "system" else person(self.actor)
        self.involved = {*command.involved} | ({self.actor.id} if self.actor.on_behalf_of else set())
        self.tokens = [Token("0", dict(command.input))]
        if self.policies.deadline_ms is not None:
            self._set("deadline", command.delay_ms + self.policies.deadline_ms)
        if command.delay_ms:
            self._set("start", command.delay_ms)
        else:
            self.moves.append((self.root, self.graph.entry, False))
            self._settle()
        return True

    def _begin(self) -> bool:
        if "start" not in self.timers or self.hold is not None:
            return False
        del self.timers["start"]
        self.moves.append((self.root, self.graph.entry, False))
        return True

    def _complete(self, step: Step, output: object) -> None:
        step.is_calling = step.is_recalled = False
        step.was_called = True
        if step.of is not None:
            step.status, step.attempts, step.is_open = "completed", step.call, False
            step.of.is_undone = self.chain is None
        elif step.is_stopping:
            step.is_stopping, step.is_done, step.output, step.attempts = False, True, output, step.call
        else:
            step.attempts = step.call
            self._answer(step, output)

    def _fail_call(self, step: Step, command: c.FailStep) -> None:
        step.is_calling = step.is_recalled = False
        step.was_called = step.was_called or command.was_called
        if step.is_stopping:
            step.is_stopping = False
            step.attempts = step.call if command.was_called else step.attempts
            return
        work = self.work_of(step)
        step.error = command.error
        if command.was_called:
            step.attempts = step.call
        may_again = not command.is_final and step.call < work.retry.max_calls
        if may_again and (step.of is not None or not self.back):
            step.status = "running"
            step.call += 1
            asked = None if command.after is None else Wait(command.after, command.after)
            self._call(step, asked or _wait(work.retry, step.call - 1))
        elif step.of is not None:
            self._give_up_undoing(step)
        else:
            self._fail(step, command.error)

    def _return(self, step: Step) -> None:
        """Nobody had begun the call."""
        step.is_calling = step.is_recalled = False
        if step.is_stopping:
            step.is_stopping = False
        elif self.back:
            self._end(step, "skipped")
        elif self.status == "paused":
            step.is_frozen = (
                True  # When it would have been made is judged once the run goes on: clocks may stand still.
            )
        else:
            self._resume_call(step)

    def _time_out(self, step: Step) -> None:
        """Time is a word from outside."""
        self.handler_calls = 0
        step.is_expired = True
        step.due = None
        if isinstance(self._op(step), g.WaitTimerOp):
            self._finish(step, g.OK, None)
            return
        is_part = bool(step.child) and not self._is_detached(step)
        if is_part:
            step.child = "undo"
        if self._edge(step.node, g.TIMEOUT, step.token.data) is not None:
            self._finish(step, g.TIMEOUT, None)
        else:
            self._fail(step, ANYTHING, is_recalled=is_part)

    def _take_answer(self, step: Step, command: c.AnswerStep) -> bool:
        """People answer by what the question offers, the world answers a wait by `ok`; nothing else can be answered."""
        node = self.graph.nodes[step.node]
        if not isinstance(node.op, g.HumanOp | g.WaitEventOp | g.WaitEventsOp):
            return self._bar("not_waiting")
        kept_out = step.poll.keeps_out(self.actor) if step.poll is not None else ""
        if kept_out:
            return self._bar(kept_out)
        if not self._may_answer(node):
            return False
        if self._has_run_out(step):
            return self._bar("expired")
        if command.outcome not in (node.op.outcomes if isinstance(node.op, g.HumanOp) else (g.OK,)):
            return self._bar("unknown_outcome")
        if isinstance(node.op, g.HumanOp):
            return self._decide(step, command)
        is_taken = self._bring(step, command.data)
        if is_taken:
            self.answered[step.number] = [(g.OK, self.actor.id, command.data)]
        return is_taken

    def _has_run_out(self, step: Step) -> bool:
        """Whether the time of a step is over, or that of the run, although nobody has told it yet. It is not while clocks stand still.

        An escalation that was due before and gives more time comes first, so that the time of its question is not over.
        """
        if self.hold is not None and self.hold.stands_still:
            return False
        ends, higher = [step.due, self.timers.get("deadline")], step.times.get("escalate")
        if step.poll is not None and step.poll.op.times is not None and higher is not None:
            rung = step.poll.op.times.escalation[step.level]
            gives_time = rung.timeout_ms is not None and step.due is not None and higher < step.due
            ends = ends[1:] if gives_time else ends
            ends.append(higher if rung.outcome else None)
        return any(each is not None and each < self.now for each in ends)

    def _bring(self, step: Step, payload: object) -> bool:
        """What a step waits for has happened."""
        told = self._with(step, payload)
        if payload is not None and not self._has_room(told):  # What brings nothing needs none.
            return self._bar("too_large")
        if not self._may_leave(step, g.OK, told):
            return False
        self.handler_calls = 0
        self._finish(step, g.OK, payload)
        return True

    # People

    def _put_question(self, step: Step, op: g.HumanOp) -> None:
        step.poll = poll = begun(op)
        if op.times is not None:
            step.asked_at = self.now
            poll.due = None if op.times.due_ms is None else self._in(op.times.due_ms)
            self._set_times(step, op.times)
        self._ask_people(step)

    def _ask_people(self, step: Step) -> None:
        """Those are asked whom the definition names, or the stage of a chain; a chain and a manager have to be looked up."""
        poll = _poll(step)
        asks = poll.stages[poll.stage - 1].asks if poll.stages else list(poll.op.asks)
        if poll.op.chain and not poll.stages:
            asks = [Ask(by="chain", of=poll.op.chain)]
        elif poll.op.role:
            asks = [Ask(by="role", of=poll.op.role)]
        if any(ask.by in {"chain", "manager"} for ask in asks):
            poll.is_looking, poll.is_in_trouble = True, False
            self.lookups.append((step.number, [ask.words for ask in asks]))
        elif asks:
            self._put_to(step, [seat_for(ask) for ask in asks])

    def _put_to(self, step: Step, people: list[Seat], error: str = "") -> None:
        """Ask people, but for those who may not decide. If the others cannot agree, the run waits for somebody who mends that."""
        poll = _poll(step)
        decided = [seat for seat in poll.asked if seat.vote is not None]
        people = poll.places(people)
        for seat in people:
            seat.stage = poll.stage
            is_user = not seat.who.startswith("role:")
            seat.is_over = is_user and bool(self._separation(step, {seat.who, seat.stands_for} - {""}))
        votes = [(seat.weight, poll.word(seat.vote.outcome)) for seat in decided if seat.vote]
        votes += [(seat.weight, None) for seat in people if not seat.is_over]
        poll.put(people)
        is_lost = verdict(votes, poll.agree, poll.least) == "against" or all(seat.is_over for seat in people)
        poll.is_in_trouble = bool(error) or not people or poll.missing > 0 or is_lost
        if poll.is_in_trouble:
            self._pause("no_approver")

    def _find_people(self, step: Step, command: c.PeopleFound) -> bool:
        poll = step.poll
        if poll is None or not poll.is_looking or not self.is_asked(step):
            return False
        if command.stages and not poll.stages:
            poll.stages, poll.is_looking = command.stages, False
            poll.go_to_stage(1)
            self._ask_people(step)
        elif poll.op.chain and not poll.stages:
            self._put_to(step, [], "the chain has no stages")
        else:
            self._put_to(step, [seat_found(each) for each in command.people], command.error)
        return True

    def _mend(self) -> None:
        """A run that waits because nobody can decide goes on once somebody can."""
        is_in_trouble = any(step.poll is not None and step.poll.is_in_trouble for step in self.steps)
        if self.status == "paused" and self.reason == "no_approver" and not is_in_trouble:
            self._go_on()

    def _separation(self, step: Step, names: set[str]) -> str:
        """Why somebody, under these names, may not decide although asked: who wanted the run, or has decided what he should not have."""
        poll = _poll(step)
        others = self._apart(step.node)
        if poll.op.distinct_approvers:
            others |= self.deciders.keys() - {step.node}
        given = [seat.vote for seat in (poll.seats if poll.op.distinct_approvers else poll.asked)]
        before = {name for vote in given if vote is not None for name in (vote.actor, vote.on_behalf_of)}
        for name in sorted(names):
            if not poll.op.self_approval and name in {self.requester, *self.involved} - {""}:
                return "self_approval"
            if name in before or any(name in self.deciders.get(each, ()) for each in others):
                return "not_distinct"
            if any(name in self._voters_of(each) for each in self.steps if each.node in others and self.is_asked(each)):
                return "not_distinct"
        return ""

    def _voters_of(self, step: Step) -> set[str]:
        votes = () if step.poll is None else step.poll.votes
        return {name for vote in votes if not vote.is_withdrawn for name in (vote.actor, vote.on_behalf_of)} - {""}

    def _apart(self, name: str) -> set[str]:
        """The questions that are to be decided by others: one of both says so, and of all others only those that do not come behind for sure."""
        asks = {each: node.op for each, node in self.graph.nodes.items() if isinstance(node.op, g.HumanOp)}
        found = {*asks[name].distinct_from} | {each for each, op in asks.items() if name in op.distinct_from}
        if asks[name].distinct_approvers:
            found |= asks.keys()
        for each, op in asks.items():
            is_behind = name in self._reach(each) and each not in self._reach(name)
            found |= {each} if op.distinct_approvers and not is_behind else set()
        return found & asks.keys() - {name}

    def _reach(self, name: str) -> set[str]:
        found: set[str] = set()
        fresh = {name}
        while fresh:
            fresh = {edge.target for edge in self.graph.edges if edge.source in fresh and not edge.rework} - found
            found |= fresh
        return found

    def _decide(self, step: Step, command: c.AnswerStep) -> bool:
        poll, who = _poll(step), self.actor
        known = poll.known_vote(who, command.stage)
        if known is None and command.stage and command.stage != poll.label(poll.stage):
            return self._bar("outdated")
        if known is not None:
            is_same = (known.outcome, known.data) == (command.outcome, command.data)
            return False if is_same else self._bar("already_decided")
        if poll.unasked(who):
            return self._bar(poll.unasked(who))
        if self._is_claimed(step):
            return self._bar("claimed")
        kept_out = self._actor_kept_out(step)
        if kept_out:
            return self._bar(kept_out)
        if poll.op.requires_reason and command.outcome == poll.op.rejects and not command.comment.strip():
            return self._bar("reason_required")
        return self._count(step, command)

    def _count(self, step: Step, command: c.AnswerStep) -> bool:
        """What a decision comes to, together with those before it."""
        poll, who = _poll(step), self.actor
        ending, seat = poll.ending(who, command.outcome), poll.seat_of(who)
        stands_for = who.on_behalf_of or (seat.stands_for if seat is not None else "")
        vote = Vote(command.outcome, who.id, stands_for, command.comment, command.data, self.now, who)
        votes = [] if ending.is_alone else [*(each for each in poll.votes if not each.is_withdrawn), vote]
        answer = self._said(ending.outcome or command.outcome, command.comment, command.data)
        answer |= ({"reason": ending.reason} if ending.reason else {}) | (
            {"decisions": [each.told for each in votes]} if votes else {}
        )
        told = self._with(step, answer)
        is_bare = command.data is None and not command.comment and ending.is_alone
        if not (is_bare and ending.outcome == poll.op.rejects) and not self._has_room(told):
            return self._bar("too_large")
        if not ending.is_alone and command.outcome != poll.op.abstains:
            own = self._with(step, self._said(command.outcome, command.comment, command.data))
            if not self._may_pass(step, command.outcome, own):
                return False
        self.voters = [each.who for each in votes if each.outcome == ending.outcome]
        if ending.outcome and not self._may_leave(step, ending.outcome, told):
            return False
        self.handler_calls = 0
        said = command.outcome
        if ending.is_alone:
            vote.outcome = ending.outcome
            for place in poll.free if len(poll.asked) == 1 else []:
                place.decided = ending.outcome
        poll.record(None if ending.is_alone else seat, vote)
        if ending.is_stage_over:
            poll.end_stage()
            poll.go_to_stage(poll.stage + 1)
            self._ask_people(step)
        elif ending.outcome:
            for each in votes or [vote]:
                each.is_applied = True
            known = [(each.outcome, each.actor, each.data) for each in votes] or [(said, who.id, command.data)]
            self._close_question(step, "decided", answer, known)
            self.voters = []
        return True

    def _close_question(self, step: Step, status: str, answer: Data, known: list[tuple[str, str, object]]) -> None:
        """People have answered: nobody is asked any more, and whoever has decided is remembered."""
        poll = _poll(step)
        self.answered[step.number] = known
        names = self._voters_of(step)
        if status != "withdrawn":
            names |= {self.actor.id, self.actor.on_behalf_of}
        self.deciders[step.node] = self.deciders.get(step.node, set()) | names - {""}
        outcome = str(answer["status"])
        shown = "overridden" if status == "overridden" else outcome
        poll.close(status, shown, (self.actor.id, str(answer["comment"])))
        if status == "overridden":
            self._finish(step, outcome, answer)
        else:
            self._conclude_question(step, outcome, answer)

    def _conclude_question(self, step: Step, outcome: str, answer: Data) -> None:
        """A question that was taken back is rejected where no edge leads on from that; so a rejection ends the run, or fails the step."""
        told, rejects = self._with(step, answer), _poll(step).op.rejects
        if outcome == g.WITHDRAWN and self._edge(step.node, outcome, told) is None:
            outcome = rejects
        if outcome != rejects or self._edge(step.node, rejects, told) is not None:
            self._finish(step, outcome, answer)
        elif self._after_rejection(step) == "fail":
            self._fail(step, ANYTHING)
        else:
            step.outcome, step.output = outcome, answer
            self._end(step, "completed")
            self._abort(ANYTHING)

    def _do_to_task(self, step: Step, command: c.TaskCommand) -> bool:
        """What people do to a question besides deciding it."""
        match command:
            case c.ClaimTask():
                return self._claim(step)
            case c.ReleaseTask():
                return self._release(step)
            case c.DelegateTask(to=to):
                return self._delegate(step, to)
            case c.ReassignTask(to=to, who=who):
                return self._reassign(step, to, who)
            case c.AddApprover(person=name, weight=weight):
                return self._add(step, name, weight)
            case c.WithdrawDecision() if self._has_lost_place(step):
                return self._bar("not_allowed")
            case c.WithdrawDecision():
                return _poll(step).withdraw(self.actor) or self._bar(self._outsider(step) or "nothing_decided")
            case c.WithdrawTask(reason=reason):
                return self._withdraw_task(step, reason)
            case c.CommentTask() | c.PutHigher():
                raise AssertionError("nobody talks here, or wants it to escalate")

    def _has_lost_place(self, step: Step) -> bool:
        """Whether the actor has decided from the place of a role that they do not have."""
        seat = _poll(step).seat_decided_by(self.actor)
        is_role = seat is not None and seat.who.startswith("role:")
        return seat is not None and is_role and not (seat.is_for(self.actor) or may_all(self.actor))

    def _outsider(self, step: Step) -> str:
        """Why the actor has no part in a question; empty if they have."""
        kept_out = _poll(step).keeps_out(self.actor)
        return kept_out or ("" if self._may_answer(self.graph.nodes[step.node]) else "not_allowed")

    def _is_claimed(self, step: Step) -> bool:
        """Whether another one has it for himself, who may decide it."""
        poll = _poll(step)
        return poll.is_claimed_from(self.actor) and not self._separation(step, {poll.claimed_by})

    def _look_at_others(self) -> None:
        """Whoever has decided may have been the last one for a question that wants different people."""
        for step in self.steps:
            poll = step.poll
            if poll is None or not self.is_asked(step) or poll.is_looking or poll.is_in_trouble or poll.is_open_to_all:
                continue
            is_own = bool(self.involved) and not poll.op.self_approval
            is_apart = bool(self._apart(step.node)) or poll.op.distinct_approvers
            if not (is_own or is_apart or any(seat.vote for seat in poll.seats)):
                continue
            self._look_at_barred(step)

    def _look_at_barred(self, step: Step) -> None:
        """If four eyes leave nobody who can complete a question, the run waits for an operator."""
        poll = _poll(step)
        free = [seat for seat in poll.free if not seat.who.startswith("role:")]
        lost = [seat for seat in free if self._separation(step, {seat.who, *seat.givers})]
        for seat in poll.asked:
            seat.is_lost = seat in lost
        if lost and not poll.is_within_reach():
            poll.is_in_trouble = True
            self._pause("no_approver")
        else:
            for seat in lost:
                seat.is_lost = False

    def _is_kept_out(self, step: Step) -> bool:
        outsider = self._outsider(step)
        if outsider:
            self._bar(outsider)
            return True
        if self._is_claimed(step):
            return not self._bar("claimed")
        return self._has_run_out(step) and not self._bar("expired")

    def _actor_kept_out(self, step: Step) -> str:
        """Why the actor may not decide, or those may not who had their place before; empty if they may."""
        who, seat = self.actor, _poll(step).seat_of(self.actor)
        givers = set() if seat is None else seat.givers
        return "" if who.kind == "system" else self._separation(step, {who.id, person(who), *givers})

    def _claim(self, step: Step) -> bool:
        """Whoever can decide can claim."""
        poll, who = _poll(step), self.actor
        deputy = who.id if who.on_behalf_of else ""
        if poll.claimed_by == person(who) and poll.claimed_for_them_by in {"", deputy}:
            return False
        if self._is_kept_out(step):
            return False
        if poll.standing_vote(who) is not None:
            return self._bar("already_decided")
        kept_out = self._actor_kept_out(step)
        if kept_out:
            return self._bar(kept_out)
        poll.claimed_by, poll.claimed_for_them_by = person(who), deputy
        return True

    def _release(self, step: Step) -> bool:
        poll = _poll(step)
        if poll.claimed_by != person(self.actor) and not _may(self.actor, "task:reassign"):
            outsider = self._outsider(step)
            if outsider:
                return self._bar(outsider)
        if not poll.claimed_by:
            return False
        if poll.claimed_by != person(self.actor) and not _may(self.actor, "task:reassign"):
            return self._bar("not_allowed")
        poll.claimed_by = ""
        return True

    def _delegate(self, step: Step, to: str) -> bool:
        """Another one decides in one's place, with the same weight."""
        poll = _poll(step)
        if self._is_kept_out(step):
            return False
        kept_out = self._actor_kept_out(step)
        if kept_out:
            return self._bar(kept_out)
        only = poll.free[0] if may_all(self.actor) and len(poll.free) == 1 else None
        seat = poll.seat_of(self.actor) or only
        if seat is None:
            return self._bar("nobody_named")
        by = person(self.actor) if seat.who.startswith("role:") else seat.who
        if to == by:
            return self._bar("delegation_to_self")
        if to in {*seat.hands, seat.stands_for}:
            return self._bar("delegation_circle")
        lent = (*seat.lent, self.actor.id) if self.actor.on_behalf_of else seat.lent
        heir = Seat(to, seat.weight, seat.stands_for or by, hands=(*seat.hands, by), lent=lent)
        return self._hand(step, seat, heir)

    def _reassign(self, step: Step, to: str, who: str) -> bool:
        poll, me = _poll(step), person(self.actor)
        lent = [seat for seat in poll.free if me in seat.hands and who in {"", seat.who}]
        if to == me and len(lent) == 1:
            stands_for = "" if lent[0].stands_for == me else lent[0].stands_for
            return self._hand(step, lent[0], Seat(to, lent[0].weight, stands_for))
        if not _may(self.actor, "task:reassign"):
            return self._bar("not_allowed")
        found = [seat for seat in poll.free if who in {"", seat.who}]
        if (who and not found) or (not who and len(found) > 1):
            return self._bar("nobody_named")
        seat = found[0] if found else None
        return self._hand(step, seat, Seat(to, 1 if seat is None else seat.weight))

    def _add(self, step: Step, who: str, weight: int) -> bool:
        if not _may(self.actor, "task:add_approver"):
            return self._bar("not_allowed")
        if _poll(step).is_open_to_all:
            return self._bar("already_asked")
        poll = _poll(step)
        lost = next((seat for seat in poll.free if seat.is_lost), None) if poll.agree == "all" else None
        return self._hand(step, lost, Seat(who, weight))

    def _hand(self, step: Step, seat: Seat | None, heir: Seat) -> bool:
        """Ask somebody else, if he is not asked yet and may decide."""
        poll = _poll(step)
        if poll.is_looking:
            return self._bar("not_asked_yet")
        if heir.who in [each.who for each in poll.asked]:
            return self._bar("already_asked")
        kept_out = "" if heir.who.startswith("role:") else self._separation(step, {heir.who})
        if kept_out:
            return self._bar(kept_out)
        poll.hand(seat, heir)
        return True

    def _withdraw_task(self, step: Step, reason: str) -> bool:
        """Whoever wanted the run takes the question back, or whoever may."""
        if person(self.actor) != self.requester and not _may(self.actor, "task:withdraw"):
            return self._bar("not_allowed")
        answer = self._said(g.WITHDRAWN, reason, None)
        if reason and not self._has_room(self._with(step, answer)):
            return self._bar("too_large")
        rights = self.graph.rights
        if self._ends_by(step, answer) and not _may(self.actor, rights.cancel or rights.start):
            return self._bar("not_allowed")
        self.handler_calls = 0
        self._close_question(step, "withdrawn", answer, [(g.WITHDRAWN, self.actor.id, None)])
        return True

    def _ends_by(self, step: Step, answer: Data) -> bool:
        """Whether the run ends if a question is taken back: no edge leads on from that, nor from its rejection, nor from the failure that this is."""
        outcomes, told = (g.WITHDRAWN, _poll(step).op.rejects), self._with(step, answer)
        if any(self._edge(step.node, each, told) is not None for each in outcomes):
            return False
        if self._after_rejection(step) != "fail":
            return True
        return self.policies.on_failure == "compensate" and self._edge(step.node, g.ERROR, step.token.data) is None

    def _set_times(self, step: Step, times: g.TaskTimes) -> None:
        """The next reminder and the next rung of the ladder; all times count from when the question was asked."""
        assert step.asked_at is not None
        reminders = list(times.reminders_ms[step.reminded : step.reminded + 1])
        if times.every_ms is not None:
            reminders = [times.every_ms * (step.reminded + 1)]
        rungs = [rung.after_ms for rung in times.escalation[step.level : step.level + 1]]
        found = {"remind": reminders, "escalate": rungs}
        step.times = {name: step.asked_at + timedelta(milliseconds=at[0]) for name, at in found.items() if at}

    def _remind(self, step: Step) -> None:
        """Those reminders whose time has come are one."""
        times = _poll(step).op.times
        assert times is not None
        step.reminded += 1
        self._set_times(step, times)
        while step.times.get("remind", self._in(1)) <= self.now:
            step.reminded += 1
            self._set_times(step, times)

    def _escalate(self, step: Step) -> None:
        """Somebody else is asked too, and decides for the others; or the question ends by an outcome."""
        poll = _poll(step)
        assert poll.op.times is not None
        rung = poll.op.times.escalation[step.level]
        step.level += 1
        del step.times["escalate"]
        if rung.outcome:
            self.actor = OLGA
            answer = self._said(rung.outcome, "nobody answered in time", None) | {"decided_by": "system"}
            self._conclude_question(step, rung.outcome, answer)
            return
        who = rung.user or f"role:{rung.role}"
        if who not in [seat.who for seat in poll.asked]:
            poll.seats.append(Seat(who, stage=poll.stage, is_extra=True))
        poll.is_in_trouble, poll.claimed_by = False, ""
        for seat in poll.seats:
            seat.is_lost = False
        if rung.timeout_ms is not None:
            step.due = self._in(rung.timeout_ms)
        self._set_times(step, poll.op.times)

    def _after_rejection(self, step: Step) -> str:
        return _poll(step).op.on_reject or self.policies.on_reject

    def _hear_of_child(self, step: Step, command: c.EndChild) -> bool:
        """A child has ended, for the first time, or again after an operator, or its parent, had it undone."""
        undoing = next((each for each in self.steps if each.of is step and each.is_open and each.awaits_child), None)
        if undoing is not None:
            self._end_undoing(undoing, command)
            return True
        if step.is_stopping and step.child == "undo" and command.status == "completed":
            return False  # It was told to undo that.
        if step.has_stuck_child and (not step.is_open or step.is_held_back):
            return command.reason != STUCK and self._free(step)
        if (step.is_open and not step.is_held_back) or step.is_stopping:
            self._end_child(step, command)
            return True
        return False

    def _end_child(self, step: Step, command: c.EndChild) -> None:
        went_well = command.status == "completed"
        answer = command.result if went_well else None
        if not self._is_detached(step):
            self._note_child(step, command)
        if step.is_stopping:
            step.is_stopping, step.is_done, step.was_called, step.output = False, went_well, went_well, answer
        elif went_well:
            self._answer(step, answer)
        else:
            self._fail(step, ANYTHING)

    def _note_child(self, step: Step, command: c.EndChild) -> None:
        """What a rollback has to know of a child that has ended."""
        has_compensation = self.graph.nodes[step.node].compensation is not None
        if command.reason == STUCK:
            step.has_stuck_child = True
        elif has_compensation:
            step.has_settled_child = command.has_undone
        elif self._remembers():
            step.has_standing_child = command.is_undoable
            step.has_stuck_child = bool(command.no_return)

    def _end_undoing(self, undoing: Step, command: c.EndChild) -> None:
        """A child that was told to undo what it did has ended."""
        assert undoing.of is not None
        if command.status == "cancelled" and command.reason != STUCK:
            undoing.status, undoing.is_open = "completed", False
            undoing.of.is_undone = self.chain is None
        else:
            undoing.of.has_stuck_child = True
            self._give_up_undoing(undoing)

    def _settle_child(self, step: Step) -> None:
        step.has_stuck_child = step.has_standing_child = False
        step.has_settled_child = True

    def _is_detached(self, step: Step) -> bool:
        op = self._op(step)
        return isinstance(op, g.CallOp) and op.detached

    def _remembers(self) -> bool:
        """Whether the run remembers what it did, in order to undo it."""
        is_looping = self.graph.kind in {"process", "rules"}
        return not is_looping or any(each.compensation for each in self.graph.nodes.values())

    def _free(self, step: Step) -> bool:
        """A child is undone that could not be."""
        if step.has_standing_child or self.graph.nodes[step.node].compensation is not None:
            self._settle_child(step)
        step.has_stuck_child = False
        if self.stuck is None or self.stuck.of is not step:
            return True
        self._forget_stuck()
        if self.back:
            self.status, self.reason = "running", ""
        elif self.reason == STUCK:
            self._go_on()
        if self.back or not self._is_called_for(step):
            self._undo_step(step)
            step.is_undone = not self.back
        return True

    def _signal(self, command: c.SendSignal) -> bool:
        waiting = [
            step
            for step in self.steps
            if step.is_open and isinstance(op := self._op(step), g.WaitEventOp) and op.signal == command.name
        ]
        for step in [each for each in waiting if not self._has_run_out(each)] or waiting:
            if not self._may_answer(self.graph.nodes[step.node]):
                return False
            return self._bar("expired") if self._has_run_out(step) else self._bring(step, command.payload)
        takers = [node for node in self.graph.nodes.values() if isinstance(node.op, g.WaitEventOp)]
        takers = [node for node in takers if node.op.signal == command.name]  # type: ignore[union-attr]
        ways = [way for node in takers for way in self._edges(node.id, g.OK) or self._edges(node.id, "*")]
        if not all(map(self._may_answer, takers)):
            return False
        if not all(_may(self.actor, way.capability) for way in ways):
            return self._bar("not_allowed")
        if not self._has_room(command.payload) or len(self.signals) >= MOST_SIGNALS:
            return False
        self.handler_calls = 0
        self.signals.append((command.name, command.payload))
        return True

    def _take_events(self, command: c.TakeEvents) -> bool:
        """Those are taken that the step waits for. Whoever has an event for one taker alone is told whether it was taken."""
        found = [each for each in self.steps if each.number == command.step and each.is_open and each.of is None]
        found = [each for each in found if not each.is_held_back]
        waiting = None if self.is_over else next((each for each in found if self.is_at(each, g.WaitEventsOp)), None)
        if waiting is not None and not command.events:
            self._search(waiting)
            return True
        is_told = False
        for event in command.events:
            is_open = waiting is not None and waiting.is_open and not self._has_run_out(waiting)
            is_taken = waiting is not None and is_open and self._take_event(waiting, event)
            is_told = is_told or is_taken or event.match_one
            if event.match_one:
                self.offers.append((event.id, command.step, is_taken))
        return is_told

    def _take_event(self, step: Step, event: PublishedMessage) -> bool:
        """Whether an event is one that a step still waits for, from somebody who may bring it, and not one that the run has had."""
        node, who = self.graph.nodes[step.node], event.publisher or OLGA
        op = node.op
        assert isinstance(op, g.WaitEventsOp)
        for each in op.events:
            is_it = each.event == event.event and _key(each, step.data) == event.key and each.title not in step.came
            if not is_it or not _matches(each, step.data, event.payload):
                continue
            came = step.came | {each.title: event.payload}
            output = came if len(op.events) > 1 else event.payload
            is_enough = len(came) >= (
                op.need if isinstance(op.need, int) else {"all": len(op.events), "any": 1}[op.need]
            )
            ways = self._open_edges(step.node, g.OK, self._with(step, output))
            all_ways = self._edges(step.node, g.OK) or self._edges(step.node, "*")
            is_way = all_ways if self.policies.on_no_edge == "fail" else ways
            is_barred = is_enough and is_way and not any(_may(who, way.capability) for way in ways)
            if event.id in self.taken or not _may(who, node.capability) or is_barred:
                continue
            step.came, self.actor, self.handler_calls = came, who, 0
            self.taken = {name: until for name, until in self.taken.items() if until > self.now}
            if event.expires_at:
                self.taken[event.id] = datetime.fromisoformat(event.expires_at)
            if is_enough:
                step.due = None
                self._answer(step, output)
            return True
        return False

    def _requeue(self, step: Step, data: Data | None) -> None:
        self._settle_letter(step)
        step.has_stuck_child = False  # Another child takes its place.
        step.token.retries, step.token.first = step, step.first
        if data is not None:
            step.token.data, step.token.first = dict(data), None
            self._involve({self.actor.id, self.actor.on_behalf_of} if self.actor.kind != "system" else set())
        self.moves.append((step.token, step.node, True))
        self.handler_calls = 0
        if self.hold is None:
            self._go_on()

    def _involve(self, names: set[str]) -> None:
        """Whoever gives the run other data has brought it about, and what its children do as well."""
        new = names - {"", self.requester, *self.involved}
        self.involved |= new
        for step in self.steps:
            if step.child and (step.is_open or step.is_dead) and not self._is_detached(step):
                step.child_involved |= new

    def _go_on(self) -> None:
        hold, self.hold = self.hold, None
        self.status, self.reason, self.handler_calls = "running", "", 0
        self.timers.pop("resume", None)
        if hold is not None and hold.stands_still:
            self._put_off(self.now - hold.since)
        failed, self.held_back = self.held_back, []
        for step in self.steps:
            if step.is_frozen:
                step.is_frozen = False
                self._resume_call(step)
        for token in list(self.tokens):
            if token.held is not None and not token.is_over:
                self._let_go(token, *token.held, is_decided=hold is None)
        for step in failed:
            if step.is_held_back:
                step.is_held_back = False
                self._fail(step, step.error)
        for scope in self.scopes:
            self._look_at(scope)
        self._ask_again()

    def _let_go(self, token: Token, node: str, last: str, *, is_decided: bool) -> None:
        """A token goes on that was held; if no edge leads on and an operator has seen that, its way is over."""
        token.held = None
        if node and is_decided and self._edge(node, last, token.data) is None:
            self._end_token(token)
        elif node:
            self._leave(token, node, last)
        else:
            self.moves.append((token, last, is_decided))

    def _ask_again(self) -> None:
        """People may be found by now who can decide. Those whom the definition itself names stay asked."""
        for step in self.steps:
            poll = step.poll
            if poll is None or not poll.is_in_trouble or not self.is_asked(step):
                continue
            asks = poll.stages[poll.stage - 1].asks if poll.stages else poll.op.asks
            is_named = all(ask.by == "user" or (ask.by == "role" and ask.pick == "any") for ask in asks)
            has_places = not poll.missing and any(not seat.is_extra for seat in poll.asked)
            if is_named and not (poll.op.chain and not poll.stages) and has_places:
                poll.is_in_trouble = False
                self._look_at_barred(step)
            else:
                self._ask_people(step)

    def _put_off(self, time: timedelta) -> None:
        """Everything is due as much later as the clocks stood still."""
        self.timers = {name: due + time for name, due in self.timers.items()}
        for step in self.steps:
            step.due = None if step.due is None else step.due + time
            step.times = {name: due + time for name, due in step.times.items()}
            step.call_at = step.call_at and (step.call_at[0] + time, step.call_at[1] + time)
            if self.is_asked(step) and step.asked_at is not None and step.poll is not None:
                step.asked_at += time
                step.poll.due = None if step.poll.due is None else step.poll.due + time

    # Moving

    def _settle(self) -> None:
        """Let every token go as far as it can, in turns; then see whether the run has ended, or what is undone next."""
        while self.moves:
            token, node, is_sent = self.moves.pop(0)
            if not token.is_over and not self.back and not self.is_over:
                self._enter(token, node, is_sent=is_sent)
        if self.is_over:
            return
        if self.back:
            self._undo()
            return
        self._undo_dropped()
        if self.status == "running" and self._is_all_over():
            if self.stuck is not None:
                self._pause(STUCK)
            elif not self.dropped:
                self._conclude("completed")

    def _is_all_over(self) -> bool:
        return all(token.is_over for token in self.tokens) and not any(step.is_open for step in self.steps)

    def _enter(self, token: Token, name: str, *, is_sent: bool) -> None:
        node = self.graph.nodes[name]
        if self.status == "paused":
            token.held = ("", name)
        elif isinstance(node.op, g.JoinOp) and token.retries is not None:
            self._finish(self._new_step(token, name), g.OK, None)
        elif isinstance(node.op, g.JoinOp):
            assert token.scope is not None
            if token.scope.is_over:
                token.is_over = True
            else:
                token.arrived = len(token.scope.arrived) + 1
                self._look_at(token.scope)
        elif not is_sent and token.visits.get(name, 0) >= self.policies.max_visits:
            token.held = ("", name)
            self._pause("max_visits")
        elif not is_sent and isinstance(node.op, g.TaskOp) and self._is_chain_too_long():
            token.held = ("", name)
            self._pause("chain_limit")
        else:
            self._do(self._new_step(token, name), node)

    def _is_chain_too_long(self) -> bool:
        return self.policies.chain_limit is not None and self.handler_calls >= self.policies.chain_limit

    def _new_step(self, token: Token, name: str) -> Step:
        token.visits[name] = token.visits.get(name, 0) + 1
        if not isinstance(self.graph.nodes[name].op, _SILENT):
            token.last_answering = name
        number = len(self.steps) + 1
        step = Step(number, name, token, token.visits[name], dict(token.data), token.last_answer, is_open=True)
        step.retry_of, token.retries = token.retries, None
        step.first, token.first = token.first or number, None
        self.steps.append(step)
        return step

    def _do(self, step: Step, node: g.Node) -> None:
        match node.op:
            case g.TaskOp():
                self.handler_calls += 1
                self._call(step, self._start_delay(step))
            case g.ConditionOp():
                self._ask(step, node.op)
            case g.SplitOp():
                self._split(step, node.op)
            case g.HumanOp() | g.WaitTimerOp() | g.WaitEventOp() | g.WaitEventsOp():
                self._wait(step, node.op)
            case g.CallOp():
                step.child = "started"
            case g.EndOp(status=status):
                self._end_way(step, status)
            case g.SavePointOp() | g.NoReturnOp() | g.NotificationOp():
                self._pass(step, node.op)
            case g.JoinOp():
                pass
            case _:
                raise AssertionError("documents have a model of their own")
        if step.is_open and not step.is_calling and node.timeout_ms is not None:
            step.due = self._in(node.timeout_ms)

    def _wait(self, step: Step, op: g.HumanOp | g.WaitTimerOp | g.WaitEventOp | g.WaitEventsOp) -> None:
        match op:
            case g.HumanOp():
                self._put_question(step, op)
            case g.WaitTimerOp():
                self._sleep(step, op)
            case g.WaitEventOp(signal=signal):
                self._wait_for(step, signal)
            case g.WaitEventsOp():
                self._wait_for_events(step, op)

    def _pass(self, step: Step, op: g.SavePointOp | g.NoReturnOp | g.NotificationOp) -> None:
        """Nothing to wait for, unless it is that people are told."""
        if isinstance(op, g.NotificationOp) and op.wait:
            step.untold = [f"{step.number}/step/{way}/user:{who}" for way in op.channels for who in op.to]
        else:
            self._finish(step, g.OK, None)

    def _end_way(self, step: Step, status: str) -> None:
        if status == "failed" and self.graph.kind != "process":
            self._fail(step, ANYTHING)
            return
        step.outcome = g.OK
        self._end(step, "completed")
        if status == "failed":
            self._roll_back(None, ANYTHING)
            return
        if status == "cancelled":
            self._cancel(ANYTHING)
        else:
            self._end_token(step.token)

    def _call(self, step: Step, wait: Wait | None = None) -> None:
        """Have the handler called, as soon as anything may begin."""
        step.wait = wait or Wait()
        step.call_at = (self.now + step.wait.shortest, self.now + step.wait.longest) if step.wait.longest else None
        if self.status == "paused" and step.of is None:
            step.is_frozen = True
        else:
            step.is_calling, step.is_missed = True, False

    def _resume_call(self, step: Step) -> None:
        """A call that was taken back is made after all, when it would have been made."""
        left = [max(at - self.now, timedelta(0)) for at in step.call_at or ()]
        self._call(step, Wait(*left))

    def _start_delay(self, step: Step) -> Wait:
        """How long the first call waits; what an operator asks for does not."""
        delay = timedelta(milliseconds=0 if step.retry_of else self.work_of(step).start_after_ms)
        return Wait(delay, delay)

    def _ask(self, step: Step, op: g.ConditionOp) -> None:
        try:
            answer = _read(op.expression).holds({"input": step.data, "workflow": step.data, "resume": self.resume_data})
        except ExpressionError:
            self._fail(step, ANYTHING)
        else:
            self._finish(step, g.TRUE if answer else g.FALSE, None)

    def _wait_for(self, step: Step, signal: str) -> None:
        for kept in self.signals:
            if kept[0] == signal:
                self.signals.remove(kept)
                self._answer(step, kept[1])
                return

    def _sleep(self, step: Step, op: g.WaitTimerOp) -> None:
        """For a while, until the next full minute (no other rule is drawn here), or until an instant that the data tells."""
        if op.duration_ms is not None:
            step.due = self._in(op.duration_ms)
        elif op.cron:
            step.due = self.now.replace(second=0, microsecond=0) + timedelta(minutes=1)
        else:
            try:
                step.due = max(datetime.fromisoformat(str(_value(op.until or {}, step.data))), self.now)
            except ValueError:
                self._fail(step, ANYTHING)

    def _wait_for_events(self, step: Step, op: g.WaitEventsOp) -> None:
        if any(_key(each, step.data) is None for each in op.events):
            self._fail(step, ANYTHING)
        else:
            self._search(step)

    def _search(self, step: Step) -> None:
        """Somebody is sent to look for events that came before."""
        op = self._op(step)
        assert isinstance(op, g.WaitEventsOp)
        left = [(each.event, _key(each, step.data)) for each in op.events if each.title not in step.came]
        self.searches.append((step.number, left, list(self.taken)))

    def waits_of(self, step: Step) -> list[tuple[int, str, str]]:
        """What an open step waits for: place, name and key of each."""
        op = self._op(step)
        if not isinstance(op, g.WaitEventsOp):
            return [(0, op.signal, "")] if isinstance(op, g.WaitEventOp) else []
        places = [(place, each) for place, each in enumerate(op.events) if each.title not in step.came]
        return [(place, each.event, _key(each, step.data) or "") for place, each in places]

    def _answer(self, step: Step, output: object) -> None:
        """A step is answered; if there is no room for that, it has failed. On the way back everything is taken."""
        if self.back or output is None or self._has_room(self._with(step, output)):
            self._finish(step, g.OK, output)
        else:
            self._fail(step, ANYTHING)

    def _finish(self, step: Step, outcome: str, output: object) -> None:
        """A step ends well."""
        step.outcome, step.output = outcome, output
        self._end(step, "completed")
        token = step.token
        if output is not None:
            token.last_answer = output
            token.data = self._with(step, output)
        self._leave(token, step.node, outcome)

    def _with(self, step: Step, output: object) -> Data:
        """The data of a step's token with an answer."""
        return self._over(step.token.data, step.node, output)

    def _over(self, data: Data, node: str, output: object) -> Data:
        if output is None:
            return data
        if isinstance(output, dict) and not isinstance(
            self.graph.nodes[node].op, g.CallOp | g.HumanOp | g.WaitEventsOp
        ):
            return data | output
        return data | {self._shown_name(node): output}

    def data_to_undo(self, of: Step) -> Data:
        """What a compensation works on: the data of its step, and over it what that had answered."""
        return self._over(of.data, of.node, of.output)

    def _shown_name(self, node: str) -> str:
        """The name by which the answer of a node is known."""
        op = self.graph.nodes[node].op
        if not isinstance(op, g.JoinOp):
            return node
        split = self.graph.nodes[op.split].op
        return op.split if isinstance(split, g.SplitOp) and split.items is not None else op.answer or node

    def _has_room(self, data: object) -> bool:
        return len(json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()) <= self.limit

    def _end(self, step: Step, status: str) -> None:
        """A step ends, in whatever way."""
        self.ends += 1
        step.ended = self.ends
        step.status = status
        step.is_open = step.is_frozen = step.is_held_back = False
        step.due, step.times = None, {}
        if step.poll is not None:
            word = {"skipped": "cancelled", "failed": "failed"}.get(status, step.outcome)
            word = g.TIMEOUT if step.is_expired else word
            self.deciders[step.node] = self.deciders.get(step.node, set()) | self._voters_of(step)
            step.poll.close(word if word in {"cancelled", "failed"} else "expired", word)

    def _leave(self, token: Token, node: str, outcome: str) -> None:
        if self.back:
            return
        edge = self._edge(node, outcome, token.data)
        if edge is not None:
            more = {name: _value(stored, token.data) for name, stored in edge.assign.items()}
            if more and not self._has_room(token.data | more):
                more = dict.fromkeys(more)
            token.data = token.data | more
            self.moves.append((token, edge.target, False))
        elif self.policies.on_no_edge == "complete":
            self._end_token(token)
        elif self.policies.on_no_edge == "pause":
            token.held = (node, outcome)
            self._pause("no_edge")
        elif self.hold is not None:
            token.held = (node, outcome)
        else:
            self._roll_back(None, ANYTHING)

    def _edges(self, node: str, outcome: str) -> list[g.Edge]:
        """The edges of an outcome, in the order in which they are tried."""
        found = [edge for edge in self.graph.edges if edge.source == node and edge.on == outcome]
        return sorted(found, key=lambda edge: (edge.priority, edge.id))

    def _edge(self, node: str, outcome: str, data: Data) -> g.Edge | None:
        found = self._open_edges(node, outcome, data)
        voters = self.voters or [self.actor]
        return next((edge for edge in found if all(_may(each, edge.capability) for each in voters)), None)

    def _open_edges(self, node: str, outcome: str, data: Data) -> list[g.Edge]:
        edges = self._edges(node, outcome) or self._edges(node, "*")
        return [edge for edge in edges if edge.when is None or _holds(edge.when, data, self.resume_data)]

    def _end_token(self, token: Token) -> None:
        token.is_over = True
        if token.scope is None:
            self.timers.pop("deadline", None)
        else:
            self._look_at(token.scope)

    def _pause(self, reason: str) -> None:
        if self.status != "paused":
            self.status, self.reason = "paused", reason
        for step in self.steps:
            if step.is_calling and step.is_open and step.of is None:
                step.is_recalled = True

    # Branches

    def _split(self, step: Step, op: g.SplitOp) -> None:
        scope = Scope(step.node, step, step.token)
        items: object = None
        if op.items is not None:
            try:
                items = _read(op.items).evaluate({"input": step.data, "workflow": step.data})
            except ExpressionError:
                items = None
            if not isinstance(items, list):
                self._fail(step, ANYTHING)
                return
            scope.todo = list(items)
        step.outcome = g.OK
        self._end(step, "completed")
        self.scopes.append(scope)
        if op.items is None:
            for edge in self._edges(step.node, g.BRANCH):
                self._branch(scope, edge.target, scope.parked.data)
        self._look_at(scope)

    def _branch(self, scope: Scope, target: str, data: Data) -> None:
        name = f"{scope.parked.name}/{scope.step.number}.{len(scope.branches) + 1}"
        token = Token(name, dict(data), scope)
        scope.branches.append(token)
        self.tokens.append(token)
        self.moves.append((token, target, False))

    def _join_of(self, scope: Scope) -> g.Node | None:
        found = [n for n in self.graph.nodes.values() if isinstance(n.op, g.JoinOp) and n.op.split == scope.node]
        return found[0] if found else None

    def _look_at(self, scope: Scope) -> None:
        """Whether the branches of a split meet, are all over, or can be joined by another one."""
        if scope.is_over or self.back or self.status == "paused":
            return
        op = self.graph.nodes[scope.node].op
        assert isinstance(op, g.SplitOp)
        join = self._join_of(scope)
        could_come = len(scope.alive) + len(scope.todo)
        is_met = False
        if join is not None and isinstance(join.op, g.JoinOp):
            enough = {"all": could_come, "any": 1, "count": min(join.op.count, could_come)}[join.op.strategy]
            is_empty = could_come == 0 and not scope.branches
            is_met = is_empty or (could_come > 0 and len(scope.arrived) >= enough)
        if is_met and join is not None:
            self._meet(scope, join)
        elif could_come == 0:
            self._close(scope)
            self._end_token(scope.parked)
        else:
            while scope.todo and (op.limit is None or len(scope.alive) - len(scope.arrived) < op.limit):
                (edge,) = self._edges(scope.node, g.BRANCH)
                data = _without_list(scope.parked.data, str((op.items or {})["source"]))
                self._branch(scope, edge.target, data | {op.item: scope.todo.pop(0)})

    def _close(self, scope: Scope) -> None:
        """The parked token is on its way again, behind those that have not waited."""
        scope.is_over = True
        self.tokens.remove(scope.parked)
        self.tokens.append(scope.parked)

    def _meet(self, scope: Scope, join: g.Node) -> None:
        op = self.graph.nodes[scope.node].op
        assert isinstance(op, g.SplitOp)
        assert isinstance(join.op, g.JoinOp)
        self._close(scope)
        scope.todo.clear()
        arrived = scope.arrived
        losers = [branch for branch in scope.alive if branch not in arrived]
        for branch in arrived:
            branch.is_over = True
        if join.op.losers != "finish":
            for branch in losers:
                self._end_branch(branch)
        if join.op.losers == "undo":
            self._drop(losers)
        output: object = (
            {self._shown_name(branch.last_answering): branch.last_answer for branch in arrived if branch.last_answering}
            if op.items is None
            else [branch.last_answer for branch in scope.branches if branch in arrived]
        )
        self._answer(self._new_step(scope.parked, join.id), output)

    def _drop(self, branches: list[Token]) -> None:
        """Have undone what branches did, if there is anything that could be undone."""
        done = [step for step in self.steps if step.ended and step.of is None and not step.is_undone]
        undoable = [
            step
            for step in done
            if self.graph.nodes[step.node].compensation is not None
            or step.has_stuck_child
            or step.has_standing_child
            or (step.child and step.is_stopping)
        ]
        if any(step.token.is_at_or_below(branch) for step in undoable for branch in branches):
            self.dropped += branches

    def _is_dropped(self, token: Token) -> bool:
        return any(token.is_at_or_below(branch) for branch in self.dropped)

    def _is_stopping_dropped(self) -> bool:
        return any(step.is_stopping and self._is_dropped(step.token) for step in self.steps)

    def _undo_dropped(self) -> None:
        """Undo the next step of dropped branches, or see that nothing is left to undo."""
        if not self.dropped or self.stuck is not None or self.status != "running":
            return
        if self._is_stopping_dropped() or any(step.of is not None and step.is_open for step in self.steps):
            return
        found = [
            step
            for step in self.steps
            if self._is_dropped(step.token)
            and (self._is_called_for(step) or step.has_stuck_child or step.has_standing_child)
            and self._is_to_undo(step)
        ]
        if found:
            self._undo_step(max(found, key=lambda step: step.ended))
        else:
            self.dropped = []

    def _end_branch(self, token: Token) -> None:
        """A branch that is not needed any more, and all below it."""
        for each in self.tokens:
            each.is_over = each.is_over or each.is_at_or_below(token)
        for scope in self.scopes:
            scope.is_over = scope.is_over or scope.parked.is_at_or_below(token)
        for step in self.steps:
            if step.token.is_at_or_below(token) and step.of is None:
                self._stop(step)

    def _stop(self, step: Step) -> None:
        """A step is not wanted any more; its handler or child is told so, and comes back later."""
        if step.is_dead:
            self._settle_letter(step)
        if not step.is_open:
            return
        has_failed = step.is_held_back
        self._end(step, "skipped")
        if not has_failed:
            self._stop_child(step)
        if step.is_calling:
            step.is_stopping = step.is_recalled = True

    def _settle_letter(self, step: Step) -> None:
        """A dead step ends only now."""
        step.is_dead = False
        del self.letters["step", step.number]
        self._end(step, "failed")

    def _stop_child(self, step: Step) -> None:
        if step.child == "started" and not self._is_detached(step):
            step.child, step.is_stopping = "cancel", True

    # Failing

    def _fail(self, step: Step, error: str, *, is_recalled: bool = False) -> None:
        """A step has failed for good. Nothing follows from that as long as somebody has the run wait."""
        step.error = error
        if self.hold is not None:
            step.status, step.is_held_back, step.due, step.times = "running", True, None, {}
            self.held_back.append(step)
            return
        self._end(step, "failed")
        step.is_stopping = is_recalled
        token = step.token
        if self.back:
            return
        name = "_last_error" if self.graph.kind == "process" else "error"
        told = token.data | {name: {"step": step.node, "message": error}}
        if self._edge(step.node, g.ERROR, told) is not None:
            token.data = told
            self._leave(token, step.node, g.ERROR)
        elif self.policies.on_failure != "compensate":
            step.is_dead = step.was_called = True
            step.is_stopping = False
            step.ended = 0
            self.letters["step", step.number] = error
            self._pause("dlq" if self.policies.on_failure == "dlq" else "step_failed")
        elif (branch := self._unneeded(token)) is not None and branch.scope is not None:
            self._end_branch(branch)
            join = self._join_of(branch.scope)
            if join is not None and isinstance(join.op, g.JoinOp) and join.op.losers != "stop":
                self._drop([branch])
            self._look_at(branch.scope)
        else:
            self._roll_back(step, error)

    def _unneeded(self, token: Token) -> Token | None:
        """The innermost branch around a token that its join can do without."""
        if token.scope is None:
            return None
        join = self._join_of(token.scope)
        if token.scope.is_over:
            return token
        if join is not None and isinstance(join.op, g.JoinOp) and join.op.strategy != "all":
            others = len(token.scope.alive) - 1 + len(token.scope.todo)
            if others >= (join.op.count if join.op.strategy == "count" else 1):
                return token
        return self._unneeded(token.scope.parked)

    # Rolling back and stopping

    def _roll_back(self, failed: Step | None, error: str) -> bool:
        self.status, self.reason, self.back, self.failed, self.error = "running", "", "failure", failed, error
        self.hold = None
        self.timers.clear()
        self._forget_stuck()
        for step in [each for each in self.steps if each.of is None]:
            if step.is_open and step.is_calling:
                step.is_recalled = True
            else:
                self._stop(step)
        return True

    def _cancel(self, reason: str) -> bool:
        self.status, self.reason, self.back, self.error = "running", "", "cancel", reason
        self.hold = None
        self.timers.clear()
        self._forget_stuck()
        for step in self.steps:
            if step.of is None or self.policies.on_cancel == "none":
                self._stop(step)
        if self.policies.on_cancel == "none":
            self._conclude("cancelled")
        elif any(step.is_stopping and step.is_calling for step in self.steps):
            self._set("grace", self.policies.stop_grace_ms)
        return True

    def _end_grace(self) -> bool:
        if "grace" not in self.timers:
            return False
        del self.timers["grace"]
        late = [step for step in self.steps if step.is_stopping and step.is_calling]
        for step in late:
            step.is_stopping = step.is_calling = step.is_recalled = False
            step.was_called = step.is_late = True
            step.attempts = step.call
        return bool(late)

    def _abort(self, reason: str) -> bool:
        self.error = reason
        self._forget_stuck()
        for step in self.steps:
            is_live = (step.is_open and not step.is_held_back) or step.is_stopping
            if step.child and is_live and not self._is_detached(step):
                step.child = "abort"
            if step.awaits_child and step.is_open and step.of is not None:
                step.of.child = "abort"
            self._stop(step)
        self._conclude("aborted")
        return True

    def _undo(self) -> None:
        """Go on with the rollback as far as possible."""
        if self.chain is None:
            if any(step.is_open or step.is_stopping for step in self.steps):
                return
            self.timers.pop("grace", None)
            self.chain = self._plan()
            self.dropped = []
        while self.chain and not self.is_over and not any(step.is_open for step in self.steps):
            self._undo_step(self.chain.pop(0))
        if not self.is_over and not any(step.is_open for step in self.steps):
            self._conclude("failed" if self.back == "failure" else "cancelled")

    def _plan(self) -> list[Step]:
        if self.graph.kind in {"process", "rules"} and not any(each.compensation for each in self.graph.nodes.values()):
            stuck = [step for step in self.steps if step.has_stuck_child and not step.is_undone]
            return sorted(stuck, key=lambda step: -step.ended)  # Nothing is rolled past.
        found = sorted((step for step in self.steps if self._is_to_undo(step)), key=lambda step: -step.ended)
        if self.failed in found:
            found.remove(self.failed)
            found.insert(0, self.failed)
        return found

    def _is_to_undo(self, step: Step) -> bool:
        node = self.graph.nodes[step.node]
        if step.of is not None or not step.ended or isinstance(node.op, g.SavePointOp | g.NoReturnOp):
            return False
        if step.is_undone:
            return False
        is_repeated = any(each.retry_of is step and self._stands_for_another(each) for each in self.steps)
        if is_repeated and not step.has_standing_child:  # Each has started a child of its own.
            return False
        return self._has_left_something(step) and not any(self._protects(point, step) for point in self.steps)

    def _has_left_something(self, step: Step) -> bool:
        """Whether a step that has ended did anything that has to be undone."""
        node = self.graph.nodes[step.node]
        if step.has_stuck_child or step.has_standing_child:
            return True
        if isinstance(node.op, g.TaskOp) and not step.was_called:
            return False
        if step.status != "skipped":
            return True
        is_half_done = step.is_done and node.compensation is not None
        return step.was_called if step.token.scope is not None else is_half_done

    def _is_called_for(self, step: Step) -> bool:
        """Whether the compensation of a step is called when its turn comes."""
        has_work = self.graph.nodes[step.node].compensation is not None
        return has_work and not step.has_settled_child and self._has_left_something(step)

    def _stands_for_another(self, repeat: Step) -> bool:
        """Whether a repeat was executed, so that the step that it repeats is not undone as well."""
        return repeat.was_called or (not self.is_at(repeat, g.TaskOp) and repeat.status in {"completed", "failed"})

    def _protects(self, point: Step, step: Step) -> bool:
        op = self._op(point)
        if point.of is not None or point.status != "completed" or step.ended > point.ended:
            return False
        is_below = step.token.is_at_or_below(point.token)
        is_above = point.token.is_at_or_below(step.token)
        if self._is_dropped(step.token) and not (isinstance(op, g.NoReturnOp) and self._is_dropped(point.token)):
            return False
        if isinstance(op, g.NoReturnOp):
            return is_below or is_above
        if not isinstance(op, g.SavePointOp) or self.back == "cancel":
            return False
        is_ours = self.failed is not None and self.failed.token.is_at_or_below(point.token)
        return is_below or (is_above and is_ours)

    def _undo_step(self, of: Step, *, is_asked: bool = False) -> None:
        work = self.graph.nodes[of.node].compensation if self._is_called_for(of) else None
        undoing = Step(len(self.steps) + 1, of.node, of.token, data=of.data, of=of, is_open=True, first=of.first)
        self.steps.append(undoing)
        if of.has_stuck_child:
            self._give_up_undoing(undoing)
        elif of.has_standing_child:
            undoing.awaits_child, of.child = True, "undo"
        elif work is None:
            undoing.status, undoing.outcome, undoing.is_open = "completed", "rolled_back", False
        elif work.retry.max_calls == 0:
            self._give_up_undoing(undoing)
        else:
            delay = timedelta(milliseconds=0 if is_asked else work.start_after_ms)
            undoing.wait = Wait(delay, delay)
            undoing.is_calling = True

    def _give_up_undoing(self, undoing: Step) -> None:
        assert undoing.of is not None
        undoing.status, undoing.is_open = "failed", False
        if self.back and self.chain is None:
            return  # The rollback will try it again.
        self.stuck = undoing
        self.letters["compensation", undoing.of.number] = undoing.error or ANYTHING
        if self.back:
            self._conclude("failed", STUCK)

    def _forget_stuck(self) -> None:
        if self.stuck is not None and self.stuck.of is not None:
            del self.letters["compensation", self.stuck.of.number]
        self.stuck = None

    def _stuck_step(self) -> int | None:
        return self.stuck.of.number if self.stuck and self.stuck.of else None

    def _retry_compensation(self) -> bool:
        assert self.stuck is not None
        assert self.stuck.of is not None
        if self._is_stopping_dropped() or self.stuck.of.has_stuck_child:
            return False
        again = self.stuck.of
        self._forget_stuck()
        if self.back:
            self.status, self.reason = "running", ""
        elif self.reason == STUCK:
            self._go_on()
        self._undo_step(again, is_asked=True)
        return True

    def _conclude(self, status: str, reason: str = "") -> None:
        self.status, self.reason, self.hold = status, reason, None
        self.timers.clear()
        for step in self.steps:
            step.due = None
        if self.has_parent:
            result = self.root.data if status == "completed" else None
            error = ANYTHING if self.stuck else self.error
            left = [step for step in self.steps if status == "completed" and self._needs_undoing(step)]
            is_done = status == "completed"
            keeps = is_done and self._remembers()
            passed = [step.node for step in self._in_order() if keeps and self.is_at(step, g.NoReturnOp)]
            has_undone = status == "failed" or (status == "cancelled" and self.policies.on_cancel == "compensate")
            no_return = passed[0] if passed else ""
            self.told_parent.append((status, result, error, reason, bool(left) and not passed, no_return, has_undone))

    def _needs_undoing(self, step: Step) -> bool:
        """Whether something would have to be done to undo a step of a run that has completed, whatever protects it."""
        if step.of is not None or not step.ended or step.is_undone:
            return False
        if step.has_stuck_child or step.has_standing_child:
            return True
        is_repeated = any(each.retry_of is step and self._stands_for_another(each) for each in self.steps)
        return self._is_called_for(step) and not is_repeated

    def _in_order(self) -> list[Step]:
        """The steps that were passed, in the order in which they ended."""
        passed = [step for step in self.steps if step.status == "completed" and step.of is None]
        return sorted(passed, key=lambda step: step.ended)

    def is_at(self, step: Step, kind: type[g.Op]) -> bool:
        """Whether a step is an entry of a node of this kind."""
        return isinstance(self._op(step), kind)

    def _op(self, step: Step) -> g.Op:
        return self.graph.nodes[step.node].op

    def work_of(self, step: Step) -> g.HandlerCall:
        """What a step calls."""
        node = self.graph.nodes[step.node]
        if step.of is not None:
            assert node.compensation is not None
            return node.compensation
        assert isinstance(node.op, g.TaskOp)
        return node.op.work
