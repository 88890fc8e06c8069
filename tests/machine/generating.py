"""Random graphs that are sound: every kind of node, nested branches, error ways, boundaries, and every policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Literal

import msgspec

from standfast.expressions import Spelling, parse
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph
from standfast.graph.values.approver_rules import Ask
from standfast.kernel.codec.message_types import DEFAULT_LIMIT

Exit = tuple[str, str]
"""A node and an outcome that no edge leads on from yet."""

SIGNALS = ("red", "blue")
EVENTS = ("paid", "sent")
QUESTIONS = ("input.x > 3", "input.x > 0", "input.x > 6", "input.x == 2", "resume.x > 3")
UNANSWERABLE = "input.missing > 1"
LISTS = (*["input.items"] * 9, *["input.more.rows"] * 9, "input.x", "input.items > 1")
DEEPEST = 3
ANSWERS = (g.CONFIRMED, g.REJECTED)
PAST, SOON, LATE = "2029-12-31T00:00:00Z", "2030-01-01T00:00:04Z", "2030-01-01T00:10:00+00:00"
PEOPLE = (("user", "ann"), ("user", "carl"), ("user", "dora"), ("role", "clerk"), ("role", "boss"), ("manager", ""))
CAPABILITIES = ("orders.approve", "orders.close", "stock.take", "stock.count")
MAX_NODES = 16


@cache
def stored(source: str, spelling: Spelling = "native") -> dict[str, g.Plain]:
    """The stored form of an expression."""
    return parse(source, spelling=spelling).to_data()


def random_graph(rng: Random) -> g.Graph:
    """A graph that the checks find no fault with."""
    kind: g.Kind = "process" if rng.random() < 0.25 else "saga"
    taste = rng.choice(("", "", "human", "human", "events"))
    maker = _Maker(rng, is_process=kind == "process", undoes=kind != "process" or rng.random() < 0.6, taste=taste)
    exits = maker.sequence([], rng.randint(1, 6), depth=0)
    if rng.random() < 0.6:
        maker.end(exits)
    return compile_graph(
        kind=kind,
        name="g",
        version="1",
        entry=maker.nodes[0].id,
        nodes=[_led_on(node, maker.edges) for node in maker.nodes],
        edges=maker.edges,
        policies=_policies(rng),
        rights=g.Rights(start=_capability(rng, 0.15), cancel=_capability(rng, 0.15)),
    )


def _led_on(node: g.Node, edges: list[g.Edge]) -> g.Node:
    """A question without the answers that nothing follows from."""
    if not isinstance(node.op, g.HumanOp):
        return node
    led = {edge.on for edge in edges if edge.source == node.id} | {*ANSWERS, g.ABSTAINED}
    outcomes = tuple(each for each in node.op.outcomes if each in led) or ANSWERS
    times = node.op.times
    if times is not None:
        times = msgspec.structs.replace(
            times, escalation=tuple(rung for rung in times.escalation if rung.outcome in {"", *outcomes})
        )
    return msgspec.structs.replace(node, op=msgspec.structs.replace(node.op, outcomes=outcomes, times=times))


def _capability(rng: Random, share: float) -> str:
    return rng.choice(CAPABILITIES) if rng.random() < share else ""


def random_input(rng: Random) -> dict[str, object]:
    """What a run begins with."""
    items = [rng.randint(0, 9) for _ in range(rng.choice((0, 1, 2, 2, 3, 4)))]
    times = {"when": rng.choice((*[SOON] * 5, *[LATE] * 4, "soon")), "past": PAST}
    return {"x": rng.randint(0, 8), "items": items, "more": {"rows": [rng.randint(0, 9), 5], "k": 1}} | times


def random_limit(rng: Random, graph: g.Graph) -> int:
    """How large the data may be: now and then so small that some answers do not fit.

    Not where errors become part of the data: the reference does not know all texts, and so not their sizes.
    """
    limit = rng.choice((DEFAULT_LIMIT, DEFAULT_LIMIT, 290))
    return DEFAULT_LIMIT if any(edge.on in {g.ERROR, "*"} for edge in graph.edges) else limit


def random_output(rng: Random) -> object:
    """What a handler answers."""
    return rng.choice(
        (None, None, rng.randint(0, 9), "text", "ü" * 60, [1], {"x": rng.randint(0, 8)}, {"items": [7, 8]}, {"k": 1})
    )


def _policies(rng: Random) -> g.Policies:
    return g.Policies(
        on_failure=rng.choice(("compensate", "compensate", "compensate", "dlq", "pause")),
        on_cancel=rng.choice(("compensate", "compensate", "compensate", "none")),
        on_reject=rng.choice(("abort", "fail")),
        on_no_edge=rng.choice(("complete", "complete", "complete", "pause", "fail")),
        deadline_ms=rng.choice((None, None, 5000)),
        stop_grace_ms=rng.choice((100, 30_000)),
        chain_limit=rng.choice((None, None, None, None, 2, 4)),
        max_visits=rng.choice((5, 5, 5, 1, 2)),
    )


@dataclass
class _Maker:
    rng: Random
    is_process: bool
    undoes: bool
    """Whether any step has a compensation."""
    taste: str
    """The kind of node that there are many of; empty if there is none."""
    nodes: list[g.Node] = field(default_factory=list)
    edges: list[g.Edge] = field(default_factory=list)

    def _stored(self, source: str, spelling: Spelling = "native") -> dict[str, g.Plain]:
        """The stored form of an expression over the data, which processes call by another name."""
        return stored(source.replace("input.", "workflow.") if self.is_process else source, spelling)

    def sequence(self, exits: list[Exit], length: int, *, depth: int) -> list[Exit]:
        """Some nodes in a row behind the exits; gives the new exits."""
        first = len(self.nodes)
        makers = [self.task] * 5 + [
            self.condition,
            self.save_point,
            self.human,
            self.human,
            self.timer,
            self.signal,
            self.events,
            self.call,
            self.notice,
        ]
        makers += [getattr(self, self.taste)] * 9 if self.taste else []
        makers += [self.no_return] if self.rng.random() < 0.3 else []
        makers += [self.fork, self.fork, self.fork, self.each] if depth < DEEPEST else []
        for position in range(length):
            if position and (not exits or len(self.nodes) > MAX_NODES):
                break
            make = self.rng.choice(makers if len(self.nodes) < MAX_NODES else [self.task, self.save_point])
            if not self.nodes and self.taste:
                make = getattr(self, self.taste)
            exits = make(exits, depth)
        if self.is_process and exits and len(self.nodes) > first and self.rng.random() < 0.5:
            self._go_back(exits[0], self.nodes[first])
        return exits

    def end(self, exits: list[Exit]) -> None:
        """An explicit end behind the exits."""
        status: Literal["completed", "failed", "cancelled"] = "completed"
        if self.rng.random() < 0.2:
            status = self.rng.choice(("failed", "cancelled"))
        if exits:
            self._node("end", g.EndOp(status=status), exits)

    def task(self, exits: list[Exit], depth: int) -> list[Exit]:
        rng = self.rng
        work = self._work("do", rng.randint(1, 3))
        name = self._node("task", g.TaskOp(work=work), exits, compensation=self._compensation(0.6))
        return [(name, g.OK), *self._error_way(name, depth, 0.15)]

    def condition(self, exits: list[Exit], depth: int) -> list[Exit]:
        rng = self.rng
        question = UNANSWERABLE if rng.random() < 0.05 else rng.choice(QUESTIONS)
        name = self._node("if", g.ConditionOp(expression=self._stored(question)), exits)
        leads = self.sequence([(name, g.TRUE)], rng.randint(1, 2), depth=depth)
        leads += self._error_way(name, depth, 0.1)
        if rng.random() < 0.15:
            self.end(leads)
            leads = []
        match rng.randint(0, 2):
            case 0 if leads:
                return leads
            case 0 | 1:
                return [*leads, (name, g.FALSE)]
            case _:
                other = self.sequence([(name, g.FALSE)], 1, depth=depth)
                return [*leads, *other] if rng.random() < 0.7 else leads

    def save_point(self, exits: list[Exit], _depth: int) -> list[Exit]:
        return [(self._node("save", g.SavePointOp(), exits), g.OK)]

    def no_return(self, exits: list[Exit], _depth: int) -> list[Exit]:
        return [(self._node("point", g.NoReturnOp(), exits), g.OK)]

    def human(self, exits: list[Exit], depth: int) -> list[Exit]:
        outcomes = self.rng.choice((ANSWERS, ANSWERS, (*ANSWERS, "returned"), ("yes", "no"), ("yes", g.REJECTED)))
        asked = g.HumanOp(
            outcomes=outcomes,
            role=self.rng.choice(("", "", "clerk")),
            on_reject=self.rng.choice((None, None, "abort", "fail")),
            self_approval=self.rng.random() < 0.85,
        )
        timeout_ms = self._timeout()
        if self.rng.random() < 0.6:
            asked = self._several(asked, timeout_ms)
        name = self._node("ask", asked, exits, timeout_ms=timeout_ms, compensation=self._compensation(0.1))
        leads = [(name, outcome) for outcome in outcomes if outcome != g.REJECTED]
        if self.rng.random() < 0.2:
            leads.append((name, g.WITHDRAWN))
        if g.REJECTED in outcomes and self.rng.random() < 0.4:
            leads += self.sequence([(name, g.REJECTED)], 1, depth=depth)
            self._guard(name, g.REJECTED)
        return [*leads, *self._timeout_way(name, depth), *self._error_way(name, depth, 0.1)]

    def _several(self, asked: g.HumanOp, timeout_ms: int | None) -> g.HumanOp:
        """The same question to several people, who have to agree; or to those whom somebody has to find."""
        rng = self.rng
        asks = tuple(
            Ask(by=by, of=of, weight=rng.randint(1, 3)) for by, of in rng.sample(PEOPLE, rng.choice((1, 2, 2, 3, 3)))
        )
        chain = "chain" if rng.random() < 0.15 else ""
        agree = None if chain else rng.choice((None, "any", "all", "n", "weight"))
        weight = sum(ask.weight for ask in asks)
        least = {"n": rng.randint(1, len(asks)), "weight": rng.randint(1, weight)}.get(agree or "", 0)
        others = [node.id for node in self.nodes if isinstance(node.op, g.HumanOp)]
        return msgspec.structs.replace(
            asked,
            outcomes=(*asked.outcomes, g.ABSTAINED) if rng.random() < 0.6 else asked.outcomes,
            role="",
            asks=() if chain else asks,
            chain=chain,
            agree=agree,
            least=least,
            rejects="no" if "no" in asked.outcomes and rng.random() < 0.5 else g.REJECTED,
            requires_reason=rng.random() < 0.15,
            self_approval=rng.random() < 0.75,
            distinct_from=(rng.choice(others),) if others and rng.random() < 0.3 else (),
            distinct_approvers=rng.random() < 0.15,
            times=self._times(asked.outcomes, timeout_ms) if rng.random() < 0.35 else None,
        )

    def _times(self, outcomes: tuple[str, ...], timeout_ms: int | None) -> g.TaskTimes:
        """A ladder of at most two rungs, the last of which may end the question; all of it before its time is over."""
        rng = self.rng
        rungs = [
            g.Rung(after_ms=after, role=role, user=user, timeout_ms=rng.choice((None, None, 2500)))
            for after, role, user in ((500, "boss", ""), (1200, *rng.choice((("", "carl"), ("clerk", "")))))
        ]
        if rng.random() < 0.3:
            rungs[1] = g.Rung(after_ms=1200, outcome=rng.choice(outcomes))
        return g.TaskTimes(
            due_ms=rng.choice((None, 900)),
            reminders_ms=rng.choice(((), (300, 800, 1000))),
            every_ms=None,
            escalation=tuple(rungs[: rng.choice((0, 1, 2))]),
        )

    def timer(self, exits: list[Exit], depth: int) -> list[Exit]:
        until = self._stored(self.rng.choice((*["input.when"] * 6, "input.past", "input.x")), "mapping")
        sorts = (g.WaitTimerOp(duration_ms=1000), g.WaitTimerOp(cron="* * * * *"), g.WaitTimerOp(until=until))
        op = self.rng.choice((*sorts, sorts[0]))
        name = self._node("sleep", op, exits)
        return [(name, g.OK), *(self._error_way(name, depth, 0.1) if op.until else [])]

    def events(self, exits: list[Exit], depth: int) -> list[Exit]:
        rng = self.rng
        events = [self._awaited(f"n{place}") for place in range(rng.choice((1, 1, 2, 3)))]
        need: g.Need = rng.choice(("all", "any", rng.randint(1, len(events))))
        name = self._node("events", g.WaitEventsOp(events=tuple(events), need=need), exits, timeout_ms=self._timeout())
        return [(name, g.OK), *self._timeout_way(name, depth), *self._error_way(name, depth, 0.1)]

    def _awaited(self, name: str) -> g.Awaited:
        """An event; now and then there is no key for it, or none is needed."""
        rng = self.rng
        key = rng.choice((None, *["input.x"] * 8, *["input.when"] * 4, "input.more"))
        match = rng.choice((None, None, "event.x > 2", "event.x >= input.x"))
        return g.Awaited(
            event=rng.choice(EVENTS),
            key=None if key is None else self._stored(key, "mapping"),
            match=None if match is None else self._stored(match),
            name=name,
        )

    def signal(self, exits: list[Exit], depth: int) -> list[Exit]:
        op = g.WaitEventOp(signal=self.rng.choice(SIGNALS))
        name = self._node("wait", op, exits, timeout_ms=self._timeout())
        return [(name, g.OK), *self._timeout_way(name, depth), *self._error_way(name, depth, 0.1)]

    def notice(self, exits: list[Exit], depth: int) -> list[Exit]:
        waits = self.rng.random() < 0.7
        to, channels = self.rng.choice((("ann",), ("ann", "bob"))), self.rng.choice((("in_app",), ("in_app", "email")))
        op = g.NotificationOp(to=to, subject="news", channels=channels, wait=waits)
        name = self._node("tell", op, exits)
        return [(name, g.OK), *(self._error_way(name, depth, 0.2) if waits else [])]

    def call(self, exits: list[Exit], depth: int) -> list[Exit]:
        compensation = self._compensation(0.4)
        name = self._node(
            "call",
            g.CallOp(definition="child", detached=self.rng.random() < 0.15),
            exits,
            timeout_ms=self._timeout(),
            compensation=compensation,
        )
        return [(name, g.OK), *self._timeout_way(name, depth), *self._error_way(name, depth, 0.2)]

    def fork(self, exits: list[Exit], depth: int) -> list[Exit]:
        name = self._node("fork", g.SplitOp(), exits)
        count = self.rng.randint(1, 3)
        leads = [self._branch(name, priority, depth) for priority in range(count)]
        if self.rng.random() < 0.1:
            return self._join(name, [*leads, [(name, g.BRANCH)]], count + 1)  # A branch with nothing in it.
        return self._join(name, leads, count)

    def each(self, exits: list[Exit], depth: int) -> list[Exit]:
        op = g.SplitOp(
            items=self._stored(self.rng.choice(LISTS), "mapping"),
            limit=self.rng.choice((None, 1, 2)),
            item=f"it{depth}",
        )
        name = self._node("each", op, exits)
        leads = self._join(name, [self._branch(name, 0, depth)], 3)
        return [*leads, *self._error_way(name, depth, 0.1)]

    def _branch(self, split: str, priority: int, depth: int) -> list[Exit]:
        first = len(self.nodes)
        length = self.rng.randint(1, 3)
        exits = self.sequence([(split, g.BRANCH)], length, depth=depth + 1)
        for place, edge in enumerate(self.edges):
            if edge.source == split and edge.target == self.nodes[first].id:
                self.edges[place] = g.Edge(source=split, target=edge.target, on=g.BRANCH, priority=priority)
        return exits

    def _join(self, split: str, branches: list[list[Exit]], count: int) -> list[Exit]:
        rng = self.rng
        empty = (split, g.BRANCH)
        exits = [each for branch in branches for each in branch if each == empty or rng.random() < 0.9]
        if not exits or (rng.random() < 0.12 and empty not in exits):
            return []
        if rng.random() < 0.1 and empty not in exits:
            exits = self.task(exits, DEEPEST)  # The branches share their last step.
        op = g.JoinOp(
            split=split,
            strategy=rng.choice(("all", "all", "any", "count")),
            count=rng.randint(1, count),
            losers=rng.choice(("undo", "undo", "finish", "stop")),
            answer=rng.choice(("", "", split)),
        )
        return [(self._node("join", op, exits), g.OK)]

    def _go_back(self, leaving: Exit, target: g.Node) -> None:
        """A way back to an earlier node, taken while the data says so."""
        source, outcome = leaving
        if isinstance(self._op(source), g.JoinOp) or isinstance(target.op, g.JoinOp):
            return
        when = self._stored(self.rng.choice(QUESTIONS))
        self.edges.append(g.Edge(source=source, target=target.id, on=outcome, when=when, priority=0, rework=True))

    def _guard(self, source: str, outcome: str) -> None:
        """Now and then a way has a condition, or adds to the data."""
        for place, edge in enumerate(self.edges):
            if edge.source == source and edge.on == outcome:
                when = self._stored(self.rng.choice((*QUESTIONS, UNANSWERABLE))) if self.rng.random() < 0.4 else None
                given = self.rng.choice(("input.items", "input.k", "input.items > 1"))
                assign = {"x": self._stored(given, "mapping"), "y": self._stored("input.x", "mapping")}
                has_more = self.rng.random() < 0.3
                self.edges[place] = msgspec.structs.replace(edge, when=when, assign=assign if has_more else {})

    def _error_way(self, name: str, depth: int, share: float) -> list[Exit]:
        if self.rng.random() >= share:
            return []
        leads = self.sequence([(name, g.ERROR)], 1, depth=depth)
        self._guard(name, g.ERROR)
        return leads

    def _timeout_way(self, name: str, depth: int) -> list[Exit]:
        if self.nodes[self._place(name)].timeout_ms is None or self.rng.random() < 0.5:
            return []
        leads = self.sequence([(name, g.TIMEOUT)], 1, depth=depth)
        self._guard(name, g.TIMEOUT)
        return leads

    def _timeout(self) -> int | None:
        return self.rng.choice((None, None, 2000))

    def _compensation(self, share: float) -> g.HandlerCall | None:
        rng = self.rng
        if not self.undoes or rng.random() >= share:
            return None
        return self._work("undo", rng.choice((0, 1, 2, 3, 3)))

    def _work(self, word: str, calls: int) -> g.HandlerCall:
        rng = self.rng
        retry = g.RetryRule(
            max_calls=calls,
            delay_ms=rng.choice((0, 10, 70)),
            backoff=rng.choice(("fixed", "linear", "exponential")),
            factor_percent=rng.choice((200, 300)),
            cap_ms=rng.choice((100, 300_000)),
            jitter_percent=rng.choice((0, 0, 50)),
        )
        return g.HandlerCall(
            handler=f"{word} {len(self.nodes)}",
            retry=retry,
            once=calls == 1 and rng.random() < 0.2,
            transactional=word == "do" and rng.random() < 0.1,
            start_after_ms=rng.choice((0, 0, 0, 40)),
            timeout_ms=rng.choice((None, None, 500)),
        )

    def _node(
        self,
        word: str,
        op: g.Op,
        exits: list[Exit],
        *,
        timeout_ms: int | None = None,
        compensation: g.HandlerCall | None = None,
    ) -> str:
        name = f"{word}{len(self.nodes)}"
        metadata: dict[str, g.Plain] = {"k": "v"} if self.rng.random() < 0.3 else {}
        self.nodes.append(
            g.Node(
                id=name,
                op=op,
                timeout_ms=timeout_ms,
                compensation=compensation,
                compensation_priority=None if compensation is None else self.rng.choice((None, None, 5)),
                compensation_metadata={"k": "u"} if compensation is not None and self.rng.random() < 0.3 else None,
                priority=self.rng.choice((0, 0, 3)),
                metadata=metadata,
                capability=_capability(self.rng, 0.25),
            )
        )
        for source, on in dict.fromkeys(exits):
            is_any = on == g.OK and self.rng.random() < 0.03
            capability = _capability(self.rng, 0.25) if on != g.BRANCH else ""
            self.edges.append(
                g.Edge(source=source, target=name, on="*" if is_any else on, priority=5, capability=capability)
            )
        return name

    def _place(self, name: str) -> int:
        return next(place for place, node in enumerate(self.nodes) if node.id == name)

    def _op(self, name: str) -> g.Op:
        return self.nodes[self._place(name)].op
