"""A slow and obvious interpreter of a graph, written from docs/concepts/graphs.md and from nothing else.

A run is a list of tokens, a list of splits and a list of steps. Every question (what is open, who is alive, what must be undone) is
answered by walking over them again. It takes the commands of the real machine, so that the two can be compared after each of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta

from holdfast.errors import ExpressionError
from holdfast.expressions import Expression
from holdfast.kernel.actor import Actor
from holdfast.machine.graphs import graph as g
from holdfast.machine.runs import commands as c
from machine.hosting import NOW, OLGA

Data = dict[str, object]

MOST_SIGNALS = 1000
"""Signals that are kept."""
STUCK = "compensation_failed"
ANYTHING = "?"
"""An error text that the rules do not fix."""


@dataclass(frozen=True)
class Wait:
    """How long to wait before a call; the rest is left to chance."""

    shortest: timedelta = timedelta(0)
    longest: timedelta = timedelta(0)


def _wait(retry: g.Retry, failures: int) -> Wait:
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


def _holds(condition: dict[str, g.Plain], data: Data) -> bool:
    """A condition that cannot be answered does not hold."""
    try:
        return _read(condition).holds({"input": data, "workflow": data})
    except ExpressionError:
        return False


def _value(stored: dict[str, g.Plain], data: Data) -> object:
    """What an edge adds to the data; what cannot be computed is null."""
    try:
        return _read(stored).evaluate({"input": data, "workflow": data})
    except ExpressionError:
        return None


def _without_list(data: Data, source: str) -> Data:
    """The data without a list that is found at a path in it."""
    first, _, rest = source.removeprefix("input.").removeprefix("workflow.").partition(".")
    if not rest:
        return {name: value for name, value in data.items() if name != first}
    inner = data[first]
    assert isinstance(inner, dict)
    return data | {first: _without_list(inner, rest)}


def _may(actor: Actor, capability: str) -> bool:
    """Whether somebody has a capability: the very one, or one that ends in a star and stands for it."""
    stars = [each[:-1] for each in actor.capabilities if each.endswith("*")]
    return not capability or capability in actor.capabilities or any(capability.startswith(star) for star in stars)


_SILENT = g.Condition | g.Split | g.SavePoint | g.NoReturn | g.WaitTimer | g.Notice
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
    was_called: bool = False
    """Whether any call of the handler may have begun."""
    is_open: bool = False
    """Whether the token is still there."""
    is_dead: bool = False
    """Whether it gave up and waits for an operator."""
    is_frozen: bool = False
    """Whether its call was taken back while the run waits for an operator."""
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
    has_timer: bool = False
    child: str = ""
    """`started`, `cancel` or `abort`: what the step's child was last told."""
    has_stuck_child: bool = False
    """Whether its child has ended and could not be undone."""
    of: Step | None = None
    """For a compensation: what it undoes."""
    untold: list[str] = field(default_factory=list)
    """Notices that it waits for, by their keys."""
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


class Reference:
    """A run of a graph, told one command at a time."""

    def __init__(self, graph: g.Graph, limit: int) -> None:
        self.graph = graph
        self.limit = limit
        self.policies = graph.policies
        self.status = "new"
        self.reason = ""
        self.error = ""
        self.steps: list[Step] = []
        self.tokens: list[Token] = []
        """All there have been, in the order in which they set out."""
        self.scopes: list[Scope] = []
        self.timers: set[str] = set()
        """Of the run as a whole: `start`, `deadline`, `grace`."""
        self.signals: list[tuple[str, object]] = []
        """Kept until somebody waits for them."""
        self.letters: dict[tuple[str, int], str] = {}
        """Dead letters: (source, step) and the error."""
        self.back = ""
        """`failure` or `cancel` while the run is on its way back."""
        self.failed: Step | None = None
        self.chain: list[Step] | None = None
        """Steps still to be undone; None until nothing runs any more."""
        self.stuck: Step | None = None
        """The compensation that gave up."""
        self.dropped: list[Token] = []
        """Branches whose work is undone while the run goes on."""
        self.handler_calls = 0
        """Since the last word from outside."""
        self.ends = 0
        self.moves: list[tuple[Token, str, bool]] = []
        """Tokens on their way into a node, in the order in which they set out, and whether an operator sent them."""
        self.delay_ms = 0
        """How long the first node was not entered."""
        self.has_parent = False
        self.actor = OLGA
        """Who sent the present command."""
        self.barred = ""
        """The code of the law by which it is refused."""
        self.told_parent: list[tuple[str, object, str, str]] = []

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.status in {"completed", "failed", "cancelled", "aborted"}

    @property
    def root(self) -> Token:
        """The first token."""
        return next(token for token in self.tokens if token.scope is None)

    # Commands

    def tell(self, command: object, actor: Actor = OLGA) -> bool:
        """Take a command; False if it is refused or there is nothing to do."""
        self.actor, self.barred = actor, ""
        if isinstance(command, c.StartWorkflow):
            return (
                self._may_start(command)
                and self.status == "new"
                and self._has_room(command.input)
                and self._start(command)
            )
        if self.status == "new":
            return False
        if isinstance(command, c.CompleteStep | c.FailStep | c.ReturnStep):
            late = [step for step in self.steps if step.number == command.step and step.is_late]
            for step in late:
                step.is_late = False
            if late:
                return False
        if self.is_over and isinstance(command, c.CompleteStep | c.FailStep | c.EndNotice):
            return self._note_late_end(command)
        if isinstance(command, c.RetryCompensation):
            taken = self._stuck_step() == command.step and self._retry_compensation()
        elif self.status == "failed" and isinstance(command, c.EndChild):
            taken = any(each.number == command.step and self._hear_of_child(each, command) for each in self.steps)
        else:
            taken = not self.is_over and self._take(command)
        if taken:
            self._settle()
        return taken

    def _bar(self, code: str) -> bool:
        """Refuse by the law."""
        self.barred = code
        return False

    def _may_start(self, command: c.StartWorkflow) -> bool:
        """A parent may; anybody else needs the capability."""
        return _may(self.actor, self.graph.rights.start) or self._bar("not_allowed")

    def _may_stop(self, command: c.CancelWorkflow | c.AbortWorkflow) -> bool:
        """A parent may; anybody else needs the capability to cancel, or to start where there is none."""
        rights = self.graph.rights
        return _may(self.actor, rights.cancel or rights.start) or self._bar("not_allowed")

    def _may_resume(self) -> bool:
        """Whoever has the capability may, if the run is paused and nothing gave up."""
        if not _may(self.actor, "execution:resume"):
            return self._bar("not_allowed")
        return self.status == "paused" and not any(step.is_dead for step in self.steps)

    def _may_answer(self, node: g.Node) -> bool:
        """Who answers has the node's capability, and the role that is asked, unless everything is allowed."""
        role = node.op.role if isinstance(node.op, g.Human) else ""
        is_asked = not role or role in self.actor.roles or "*" in self.actor.capabilities
        return (is_asked and _may(self.actor, node.capability)) or self._bar("not_allowed")

    def _may_leave(self, step: Step, outcome: str, data: Data) -> bool:
        """An answer that leads on, but only for others, is not taken; nor one that would lead on with other data, where that is fatal."""
        ways = self._edges(step.node, outcome) or self._edges(step.node, "*")
        found = ways if self.policies.on_no_edge == "fail" else self._open_edges(step.node, outcome, data)
        return not found or self._edge(step.node, outcome, data) is not None or self._bar("no_transition")

    def _note_late_end(self, command: c.CompleteStep | c.FailStep | c.EndNotice) -> bool:
        """A call that was under way when the run ended has come back; nothing is news but that it was made.

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
        return True

    def _take(self, command: object) -> bool:
        match command:
            case c.BeginWorkflow():
                return self._begin()
            case c.CancelWorkflow(reason=reason):
                return self._may_stop(command) and not self.back and self._cancel(reason)
            case c.PassDeadline():
                return "deadline" in self.timers and self._cancel(ANYTHING)
            case c.AbortWorkflow(reason=reason):
                return self._may_stop(command) and self._abort(reason)
            case c.EndGrace():
                return self._end_grace()
            case c.SendSignal():
                return self._signal(command)
            case c.ResumeWorkflow():
                return self._may_resume() and self._resume()
            case _:
                return self._take_for_step(command)

    def _take_for_step(self, command: object) -> bool:
        step = next((each for each in self.steps if each.number == getattr(command, "step", 0)), None)
        if step is None:
            return False
        match command:
            case c.CompleteStep(output=output) if step.is_calling:
                self._complete(step, output)
            case c.FailStep() if step.is_calling:
                self._fail_call(step, command)
            case c.ReturnStep() if step.is_recalled:
                self._return(step)
            case c.TimeOut() if step.has_timer:
                self._time_out(step)
            case c.AnswerStep() if step.is_open and step.of is None:
                return self._take_answer(step, command)
            case c.EndNotice() | c.EndChild():
                return self._hear_of(step, command)
            case c.RequeueStep(input=data) if step.is_dead and self._has_room(data):
                self._requeue(step, data)
            case c.NoteMissingHandler() if step.is_calling and not step.is_stopping and not step.is_missed:
                step.is_missed = True
            case _:
                return False
        return True

    def _hear_of(self, step: Step, command: c.EndNotice | c.EndChild) -> bool:
        if isinstance(command, c.EndNotice):
            return self._hear_of_notice(step, command)
        return bool(step.child) and self._hear_of_child(step, command)

    def _hear_of_notice(self, step: Step, command: c.EndNotice) -> bool:
        """Somebody was told, or could not be: a step goes on when all of its notices are delivered, and fails with the first that is not."""
        is_awaited = step.is_open and command.key in step.untold
        if is_awaited and command.error:
            self._fail(step, ANYTHING)
        elif is_awaited:
            step.untold.remove(command.key)
            if not step.untold:
                self._finish(step, g.OK, None)
        return is_awaited or bool(command.error)

    def _start(self, command: c.StartWorkflow) -> bool:
        self.status = "running"
        self.has_parent, self.delay_ms = bool(command.parent), command.delay_ms
        self.tokens = [Token("0", dict(command.input))]
        if self.policies.deadline_ms is not None:
            self.timers.add("deadline")
        if command.delay_ms:
            self.timers.add("start")
        else:
            self.moves.append((self.root, self.graph.entry, False))
            self._settle()
        return True

    def _begin(self) -> bool:
        if "start" not in self.timers:
            return False
        self.timers.remove("start")
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
        else:
            self._resume_call(step)

    def _time_out(self, step: Step) -> None:
        step.has_timer = False
        if isinstance(self._op(step), g.WaitTimer):
            self._finish(step, g.OK, None)
            return
        if step.child:
            step.child = "cancel"
        if self._edge(step.node, g.TIMEOUT, step.token.data) is not None:
            self._finish(step, g.TIMEOUT, None)
        else:
            self._fail(step, ANYTHING)

    def _take_answer(self, step: Step, command: c.AnswerStep) -> bool:
        """People answer by what the question offers, the world answers a wait by `ok`; nothing else can be answered."""
        node = self.graph.nodes[step.node]
        if not isinstance(node.op, g.Human | g.WaitEvent):
            return False
        if not self._may_answer(node):
            return False
        if command.outcome not in (node.op.outcomes if isinstance(node.op, g.Human) else (g.OK,)):
            return self._bar("unknown_outcome")
        return self._decide(step, command) if isinstance(node.op, g.Human) else self._bring(step, command.data)

    def _bring(self, step: Step, payload: object) -> bool:
        """What a step waits for has happened."""
        told = self._with(step, payload)
        has_room = payload is None or self._has_room(told)  # What brings nothing needs none.
        if not has_room or not self._may_leave(step, g.OK, told):
            return False
        self.handler_calls = 0
        self._finish(step, g.OK, payload)
        return True

    def _decide(self, step: Step, command: c.AnswerStep) -> bool:
        answer: Data = {
            "status": command.outcome,
            "decided_by": self.actor.id,
            "decided_at": NOW.isoformat(),
            "comment": command.comment,
            "data": command.data,
        }
        told = step.token.data | {step.node: answer}
        is_bare = command.outcome == g.REJECTED and not command.comment and command.data is None
        if not is_bare and not self._has_room(told):
            return False
        if not self._may_leave(step, command.outcome, told):
            return False
        self.handler_calls = 0
        if command.outcome != g.REJECTED or self._edge(step.node, g.REJECTED, told) is not None:
            self._finish(step, command.outcome, answer)
        elif self._after_rejection(step) == "fail":
            self._fail(step, ANYTHING)
        else:
            step.outcome, step.output = g.REJECTED, answer
            self._end(step, "completed")
            self._abort(ANYTHING)
        return True

    def _after_rejection(self, step: Step) -> str:
        op = self._op(step)
        assert isinstance(op, g.Human)
        return op.on_reject or self.policies.on_reject

    def _hear_of_child(self, step: Step, command: c.EndChild) -> bool:
        """A child has ended, for the first time, or again after an operator had it undone."""
        if step.has_stuck_child:
            return command.reason != STUCK and self._free(step)
        if step.is_open or step.is_stopping:
            self._end_child(step, command)
            return True
        return False

    def _end_child(self, step: Step, command: c.EndChild) -> None:
        went_well = command.status == "completed"
        answer = command.result if went_well else None
        step.has_stuck_child = command.reason == STUCK and not went_well
        if step.is_stopping:
            step.is_stopping, step.is_done, step.was_called, step.output = False, went_well, went_well, answer
        elif went_well:
            self._answer(step, answer)
        else:
            self._fail(step, ANYTHING)

    def _free(self, step: Step) -> bool:
        """A child is undone that could not be."""
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
        for step in self.steps:
            op = self._op(step)
            if step.is_open and isinstance(op, g.WaitEvent) and op.signal == command.name:
                return self._may_answer(self.graph.nodes[step.node]) and self._bring(step, command.payload)
        takers = [node for node in self.graph.nodes.values() if isinstance(node.op, g.WaitEvent)]
        takers = [node for node in takers if node.op.signal == command.name]  # type: ignore[union-attr]
        ways = [way for way in self.graph.edges for node in takers if way.source == node.id and way.on in {"ok", "*"}]
        if not all(map(self._may_answer, takers)):
            return False
        if not all(_may(self.actor, way.capability) for way in ways):
            return self._bar("not_allowed")
        if not self._has_room(command.payload) or len(self.signals) >= MOST_SIGNALS:
            return False
        self.handler_calls = 0
        self.signals.append((command.name, command.payload))
        return True

    def _requeue(self, step: Step, data: Data | None) -> None:
        self._settle_letter(step)
        step.has_stuck_child = False  # Another child takes its place.
        step.token.retries, step.token.first = step, step.first
        if data is not None:
            step.token.data, step.token.first = dict(data), None
        self.moves.append((step.token, step.node, True))
        self._go_on()

    def _resume(self) -> bool:
        if self.reason == STUCK and self.stuck is not None and self.stuck.of is not None:
            self.stuck.of.is_undone = True  # It is not, and nobody asks for it any more.
            self.stuck.of.has_stuck_child = False
            self._forget_stuck()
        self._go_on()
        return True

    def _go_on(self) -> None:
        self.status, self.reason, self.handler_calls = "running", "", 0
        for step in self.steps:
            if step.is_frozen:
                step.is_frozen = False
                self._resume_call(step)
        for token in list(self.tokens):
            if token.held is not None and not token.is_over:
                (node, last), token.held = token.held, None
                if node and self._edge(node, last, token.data) is None:
                    self._end_token(token)
                elif node:
                    self._leave(token, node, last)
                else:
                    self.moves.append((token, last, True))
        for scope in self.scopes:
            self._look_at(scope)

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
        elif isinstance(node.op, g.Join) and token.retries is not None:
            self._finish(self._new_step(token, name), g.OK, None)
        elif isinstance(node.op, g.Join):
            assert token.scope is not None
            if token.scope.is_over:
                token.is_over = True
            else:
                token.arrived = len(token.scope.arrived) + 1
                self._look_at(token.scope)
        elif not is_sent and token.visits.get(name, 0) >= self.policies.max_visits:
            token.held = ("", name)
            self._pause("max_visits")
        elif not is_sent and isinstance(node.op, g.Task) and self._is_chain_too_long():
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
            case g.Task():
                self.handler_calls += 1
                self._call(step, self._start_delay(step))
            case g.Condition():
                self._ask(step, node.op)
            case g.Split():
                self._split(step, node.op)
            case g.WaitEvent(signal=signal):
                self._wait_for(step, signal)
            case g.Call():
                step.child = "started"
            case g.End(status=status):
                self._end_way(step, status)
            case g.SavePoint() | g.NoReturn() | g.Notice():
                self._pass(step, node.op)
            case g.Human() | g.WaitTimer() | g.WaitEvents() | g.Join():
                pass
        if step.is_open and (isinstance(node.op, g.WaitTimer) or (not step.is_calling and node.timeout_ms is not None)):
            step.has_timer = True

    def _pass(self, step: Step, op: g.SavePoint | g.NoReturn | g.Notice) -> None:
        """Nothing to wait for, unless it is that people are told."""
        if isinstance(op, g.Notice) and op.wait:
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
        if self.status == "paused" and step.of is None:
            step.is_frozen = True
        else:
            step.is_calling, step.is_missed = True, False

    def _resume_call(self, step: Step) -> None:
        """A call that was taken back is made after all."""
        self._call(step, self._start_delay(step) if step.call == 1 else None)

    def _start_delay(self, step: Step) -> Wait:
        """How long the first call waits; what an operator asks for does not."""
        delay = timedelta(milliseconds=0 if step.retry_of else self.work_of(step).start_after_ms)
        return Wait(delay, delay)

    def _ask(self, step: Step, op: g.Condition) -> None:
        try:
            answer = _read(op.expression).holds({"input": step.data, "workflow": step.data})
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
        if isinstance(output, dict) and not isinstance(self.graph.nodes[node].op, g.Call | g.Human):
            return data | output
        return data | {self._shown_name(node): output}

    def data_to_undo(self, of: Step) -> Data:
        """What a compensation works on: the data of its step, and over it what that had answered."""
        return self._over(of.data, of.node, of.output)

    def _shown_name(self, node: str) -> str:
        """The name by which the answer of a node is known."""
        op = self.graph.nodes[node].op
        if not isinstance(op, g.Join):
            return node
        split = self.graph.nodes[op.split].op
        return op.split if isinstance(split, g.Split) and split.items is not None else op.answer or node

    def _has_room(self, data: object) -> bool:
        return len(json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()) <= self.limit

    def _end(self, step: Step, status: str) -> None:
        """A step ends, in whatever way."""
        self.ends += 1
        step.ended = self.ends
        step.status = status
        step.is_open = step.has_timer = step.is_frozen = False

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
        else:
            self._roll_back(None, ANYTHING)

    def _edges(self, node: str, outcome: str) -> list[g.Edge]:
        """The edges of an outcome, in the order in which they are tried."""
        found = [edge for edge in self.graph.edges if edge.source == node and edge.on == outcome]
        return sorted(found, key=lambda edge: (edge.priority, edge.id))

    def _edge(self, node: str, outcome: str, data: Data) -> g.Edge | None:
        found = self._open_edges(node, outcome, data)
        return next((edge for edge in found if _may(self.actor, edge.capability)), None)

    def _open_edges(self, node: str, outcome: str, data: Data) -> list[g.Edge]:
        edges = self._edges(node, outcome) or self._edges(node, "*")
        return [edge for edge in edges if edge.when is None or _holds(edge.when, data)]

    def _end_token(self, token: Token) -> None:
        token.is_over = True
        if token.scope is None:
            self.timers.discard("deadline")
        else:
            self._look_at(token.scope)

    def _pause(self, reason: str) -> None:
        if self.status != "paused":
            self.status, self.reason = "paused", reason
        for step in self.steps:
            if step.is_calling and step.is_open and step.of is None:
                step.is_recalled = True

    # Branches

    def _split(self, step: Step, op: g.Split) -> None:
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
        found = [n for n in self.graph.nodes.values() if isinstance(n.op, g.Join) and n.op.split == scope.node]
        return found[0] if found else None

    def _look_at(self, scope: Scope) -> None:
        """Whether the branches of a split meet, are all over, or can be joined by another one."""
        if scope.is_over or self.back or self.status == "paused":
            return
        op = self.graph.nodes[scope.node].op
        assert isinstance(op, g.Split)
        join = self._join_of(scope)
        could_come = len(scope.alive) + len(scope.todo)
        is_met = False
        if join is not None and isinstance(join.op, g.Join):
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
        assert isinstance(op, g.Split)
        assert isinstance(join.op, g.Join)
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
            and (self.graph.nodes[step.node].compensation is not None or step.has_stuck_child)
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
        self._end(step, "skipped")
        self._stop_child(step)
        if step.is_calling:
            step.is_stopping = step.is_recalled = True

    def _settle_letter(self, step: Step) -> None:
        """A dead step ends only now."""
        step.is_dead = False
        del self.letters["step", step.number]
        self._end(step, "failed")

    def _stop_child(self, step: Step) -> None:
        if step.child == "started":
            step.child, step.is_stopping = "cancel", True

    # Failing

    def _fail(self, step: Step, error: str) -> None:
        """A step has failed for good."""
        step.error = error
        self._end(step, "failed")
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
            step.ended = 0
            self.letters["step", step.number] = error
            self._pause("dlq" if self.policies.on_failure == "dlq" else "step_failed")
        elif (branch := self._unneeded(token)) is not None and branch.scope is not None:
            self._end_branch(branch)
            join = self._join_of(branch.scope)
            if join is not None and isinstance(join.op, g.Join) and join.op.losers != "stop":
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
        if join is not None and isinstance(join.op, g.Join) and join.op.strategy != "all":
            others = len(token.scope.alive) - 1 + len(token.scope.todo)
            if others >= (join.op.count if join.op.strategy == "count" else 1):
                return token
        return self._unneeded(token.scope.parked)

    # Rolling back and stopping

    def _roll_back(self, failed: Step | None, error: str) -> None:
        self.status, self.reason, self.back, self.failed, self.error = "running", "", "failure", failed, error
        self.timers.clear()
        self._forget_stuck()
        for step in [each for each in self.steps if each.of is None]:
            if step.is_open and step.is_calling:
                step.is_recalled = True
            else:
                self._stop(step)

    def _cancel(self, reason: str) -> bool:
        self.status, self.reason, self.back, self.error = "running", "", "cancel", reason
        self.timers.clear()
        self._forget_stuck()
        for step in self.steps:
            if step.of is None or self.policies.on_cancel == "none":
                self._stop(step)
        if self.policies.on_cancel == "none":
            self._conclude("cancelled")
        elif any(step.is_stopping and step.is_calling for step in self.steps):
            self.timers.add("grace")
        return True

    def _end_grace(self) -> bool:
        if "grace" not in self.timers:
            return False
        self.timers.remove("grace")
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
            if step.child and (step.is_open or step.is_stopping):
                step.child = "abort"
            self._stop(step)
        self._conclude("aborted")
        return True

    def _undo(self) -> None:
        """Go on with the rollback as far as possible."""
        if self.chain is None:
            if any(step.is_open or step.is_stopping for step in self.steps):
                return
            self.timers.discard("grace")
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
        if step.of is not None or not step.ended or isinstance(node.op, g.SavePoint | g.NoReturn):
            return False
        if step.is_undone:
            return False
        if any(each.retry_of is step and self._stands_for_another(each) for each in self.steps):
            return False
        return self._has_left_something(step) and not any(self._protects(point, step) for point in self.steps)

    def _has_left_something(self, step: Step) -> bool:
        """Whether a step that has ended did anything that has to be undone."""
        node = self.graph.nodes[step.node]
        if step.has_stuck_child:
            return True
        if isinstance(node.op, g.Task) and not step.was_called:
            return False
        if step.status != "skipped":
            return True
        is_half_done = step.is_done and node.compensation is not None
        return step.was_called if step.token.scope is not None else is_half_done

    def _is_called_for(self, step: Step) -> bool:
        """Whether the compensation of a step is called when its turn comes."""
        return self.graph.nodes[step.node].compensation is not None and self._has_left_something(step)

    def _stands_for_another(self, repeat: Step) -> bool:
        """Whether a repeat was executed, so that the step that it repeats is not undone as well."""
        return repeat.was_called or (not self.is_at(repeat, g.Task) and repeat.status in {"completed", "failed"})

    def _protects(self, point: Step, step: Step) -> bool:
        op = self._op(point)
        if point.of is not None or point.status != "completed" or step.ended > point.ended:
            return False
        is_below = step.token.is_at_or_below(point.token)
        is_above = point.token.is_at_or_below(step.token)
        if self._is_dropped(step.token) and not (isinstance(op, g.NoReturn) and self._is_dropped(point.token)):
            return False
        if isinstance(op, g.NoReturn):
            return is_below or is_above
        if not isinstance(op, g.SavePoint) or self.back == "cancel":
            return False
        is_ours = self.failed is not None and self.failed.token.is_at_or_below(point.token)
        return is_below or (is_above and is_ours)

    def _undo_step(self, of: Step, *, is_asked: bool = False) -> None:
        work = self.graph.nodes[of.node].compensation if self._is_called_for(of) else None
        undoing = Step(len(self.steps) + 1, of.node, of.token, data=of.data, of=of, is_open=True, first=of.first)
        self.steps.append(undoing)
        if of.has_stuck_child:
            self._give_up_undoing(undoing)
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
        self.status, self.reason = status, reason
        self.timers.clear()
        for step in self.steps:
            step.has_timer = False
        if self.has_parent:
            result = self.root.data if status == "completed" else None
            error = ANYTHING if self.stuck else self.error
            self.told_parent.append((status, result, error, reason))

    def is_at(self, step: Step, kind: type[g.Op]) -> bool:
        """Whether a step is an entry of a node of this kind."""
        return isinstance(self._op(step), kind)

    def _op(self, step: Step) -> g.Op:
        return self.graph.nodes[step.node].op

    def work_of(self, step: Step) -> g.Work:
        """What a step calls."""
        node = self.graph.nodes[step.node]
        if step.of is not None:
            assert node.compensation is not None
            return node.compensation
        assert isinstance(node.op, g.Task)
        return node.op.work
