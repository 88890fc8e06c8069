"""Dry runs of any graph: random ones take the way that their runs take, and none of them keeps anybody waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any, cast

import msgspec
import pytest

from machine.generating import random_graph, random_input, random_output
from standfast import Actor, Definition, Engine, Fail, RejectedError, Saga, Settings, load_processes
from standfast.features.definitions import dry_run as suppositions
from standfast.features.definitions.dry_run import tried_out
from standfast.features.runs.reads import workflow_row
from standfast.features.simulation import DryRun
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph
from standfast.machine.machine import GraphMachine
from standfast.machine.model.queries.correlation import key_or_none
from standfast.machine.model.queries.eligibility import question_of
from standfast.machine.model.queries.expression_scope import text_names
from standfast.machine.model.state import RunState, StepState
from standfast.testing import ManualEngine
from support.campaigns import SEED

EVERYTHING = frozenset({"*"})
EVE = Actor(id="eve", capabilities=EVERYTHING)
GRAPHS = 16
"""How many graphs are played in every run of the tests."""


# -- random graphs


class Reality:
    """A graph on an engine whose people, handlers and events do as is supposed."""

    def __init__(self, graph: g.Graph, supposed: dict[str, Any]) -> None:
        self.engine = ManualEngine()
        self._supposed, self._machine = supposed, GraphMachine(graph)
        self._times: Counter[str] = Counter()
        self._in_vain: set[tuple[int, str]] = set()
        self._people = 0
        self.engine.register(Saga("child").step("pack", "pack").build()).register(Definition(graph=graph))
        for name in {*graph.handlers, "pack"}:
            self.engine.handle(name, self._handler("child" if name == "pack" else name))

    def _handler(self, name: str) -> Any:
        def work() -> object:
            if name in self._supposed["failing"]:
                raise Fail(f"{name} fails, as was said")
            return self._supposed["answers"].get(name, {})

        return work

    @property
    def state(self) -> RunState:
        """The run as its history tells it."""
        desk = self.engine._desk

        def read(reader: Any) -> RunState:
            header = workflow_row(reader, self.run.id)
            program = desk.registry.get(header.tenant, header.definition, header.definition_version)
            return cast("RunState", program.replay(program.initial(), reader.events(header.id, limit=100_000)))

        return desk.look(read).result()

    def play(self, given: dict[str, Any]) -> str:
        """Do what is supposed until nothing happens any more; how it ends, in the words of a dry run."""
        self.run = self.engine.acting(EVE).start("g", given)
        for _ in range(500):
            self.engine.drain()
            state = self.state
            if state.is_terminal or state.status == "paused":
                return "paused" if state.status == "paused" else "ended"
            ends = self._on(state)
            if ends:
                return ends
        return "endless"

    def _on(self, state: RunState) -> str:
        silent = self._supposed["unanswered"]
        waiting = [(each, self._machine.routes.node(each.node)) for each in state.open.values() if each.of is None]
        for step, node in waiting:
            if isinstance(node.op, g.HumanOp) and node.id not in silent:
                return self._decide(step, node.op)
        for step, node in waiting:
            for each in node.op.events if isinstance(node.op, g.WaitEventsOp) else ():
                known = {*(step.came or {}), *(name for number, name in self._in_vain if number == step.number)}
                if each.event in silent or each.title in known:
                    continue
                names = text_names(state, state.tokens[step.token].data)
                key = key_or_none(self._machine.routes, node, each, names) or ""
                self.engine.acting(EVE).events.publish(each.event, key, self._brings(each.event), ttl=0)
                self.engine.drain()
                if self.state == state:
                    self._in_vain.add((step.number, each.title))
                return ""
        for _, node in waiting:
            if isinstance(node.op, g.WaitEventOp) and node.op.signal not in silent:
                self.engine.acting(EVE).run(self.run.id).signal(node.op.signal, self._brings(node.op.signal))
                return ""
        return self._let_time_pass(state)

    def _brings(self, event: str) -> object:
        return self._supposed["events"].get(event)

    def _let_time_pass(self, state: RunState) -> str:
        for _ in range(30):  # An engine sees to things of its own on the way.
            due = self.engine.runtime.next_due()
            if due is None:
                break
            self.engine.advance(max(due - self.engine.clock.now(), timedelta()))
            if self.state != state:
                return ""
        return "waits"

    def _decide(self, step: StepState, op: g.HumanOp) -> str:
        name = step.node
        self._times[name] += 1
        said = self._supposed["decisions"].get(name, [])
        outcome = said[self._times[name] - 1] if self._times[name] <= len(said) else op.approval
        while step.number in (state := self.state).open:
            seats = question_of(self._machine.routes, state, state.open[step.number]).asked
            person = next((each.person for _, each in seats if each.is_free), None)
            self._people += 1
            actor = Actor(id=f"somebody {self._people}", capabilities=EVERYTHING)
            if person is not None and person.kind == "role":
                actor = msgspec.structs.replace(actor, roles=frozenset({person.name}))
            elif person is not None:
                actor = Actor(id=person.name, capabilities=EVERYTHING)
            task = next(each for each in self.run.tasks() if str(each.step_id).endswith(f":{step.number}"))
            try:
                self.engine.acting(actor).tasks.decide(task.step_id, outcome, comment="rehearsed")
            except RejectedError:
                return "refused"
            self.engine.drain()
        return ""


def comparable(rng: Random) -> g.Graph:
    """A random graph in which nothing happens at the same time, and nobody has to be looked for: there is one order."""
    while True:
        graph = random_graph(rng)
        ops = [node.op for node in graph.nodes.values()]
        asks = [ask for op in ops if isinstance(op, g.HumanOp) for ask in op.asks]
        has_others = any(
            isinstance(op, g.SplitOp | g.NotificationOp) or (isinstance(op, g.HumanOp) and op.chain) for op in ops
        )
        if len(ops) > 3 and not has_others and all(ask.by in {"user", "role"} for ask in asks):
            return graph


def random_script(rng: Random, graph: g.Graph) -> dict[str, Any]:
    """What is supposed of a graph, at random."""
    ops = {node.id: node.op for node in graph.nodes.values()}
    asking = {name: op for name, op in ops.items() if isinstance(op, g.HumanOp)}
    callees = [*sorted(graph.handlers), *({"child"} if any(isinstance(op, g.CallOp) for op in ops.values()) else ())]
    awaited = {op.signal for op in ops.values() if isinstance(op, g.WaitEventOp)}
    awaited |= {each.event for op in ops.values() if isinstance(op, g.WaitEventsOp) for each in op.events}
    brought = ({"x": 7}, {"x": 1}, None, {"items": [1]})
    return {
        "decisions": {
            name: [rng.choice(op.outcomes) for _ in range(rng.randint(1, 3))]
            for name, op in asking.items()
            if rng.random() < 0.4
        },
        "answers": {name: random_output(rng) for name in sorted(graph.handlers) if rng.random() < 0.5},
        "failing": [each for each in callees if rng.random() < 0.12],
        "events": {each: rng.choice(brought) for each in sorted(awaited) if rng.random() < 0.7},
        "unanswered": [each for each in sorted({*asking, *awaited}) if rng.random() < 0.15],
    }


def way(run: Any) -> list[str]:
    """The nodes of a run as its history tells them, and those that undo."""
    found, nodes = [], {}
    for each in run.history():
        is_at_once = each.event_type == "step_completed" and each.data.get("node")
        if each.event_type in {"step_started", "step_entered"} or is_at_once:
            nodes[each.data["step"]] = each.data["node"]
            found.append(each.data["node"])
        elif each.event_type == "compensation_started":
            found.append(f"undo {nodes[each.data['of']]}")
    return found


def told_way(found: DryRun) -> list[str]:
    """The same as a dry run tells it."""
    return [f"undo {each.node}" if each.is_undoing else each.node for each in found.trail]


def plain(data: object, calls: set[str]) -> object:
    """What a run came to, without who said so when, and what other workflows came to; errors without the name of their class."""
    if isinstance(data, dict):
        hidden = {"decided_by", "decided_at", *calls}
        return {name: plain(value, calls) for name, value in data.items() if name not in hidden}
    return [plain(each, calls) for each in data] if isinstance(data, list) else str(data).replace("Fail: ", "")


def check(seed: str) -> None:
    """Play one graph both ways."""
    rng = Random(seed)
    graph = comparable(rng)
    given, supposed = random_input(rng), random_script(rng, graph)
    found = tried_out(graph, given, supposed, actor=EVE, settings=Settings())
    reality = Reality(graph, supposed)
    ends = reality.play(given)
    real = reality.run.describe()
    assert told_way(found) == way(reality.run), seed
    assert (found.ends, found.status, found.outcome) == (ends, real.status, real.outcome), (seed, found.reason)
    if real.status == "completed":
        calls = {node.id for node in graph.nodes.values() if isinstance(node.op, g.CallOp)}
        assert plain(found.data, calls) == plain(real.result, calls), seed
    reality.engine.stop()


def test_random_graphs_take_the_way_that_is_told() -> None:
    """Whatever a graph is made of and whatever is supposed, its dry run and its run come through the same nodes to the same end."""
    for number in range(GRAPHS):
        check(f"ways {SEED}/{number}")


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_campaign_of_dry_runs() -> None:
    """The same for some thousand graphs."""
    for number in range(4000):
        check(f"long ways {SEED}/{number}")


# -- what a run waits for


def tried(definition: Definition, given: dict[str, Any] | None = None, **supposed: Any) -> DryRun:
    """A dry run without an engine."""
    return tried_out(definition.graph, given or {}, supposed, actor=EVE, settings=Settings())


def made_of(*nodes: g.Node, edges: Sequence[g.Edge] = ()) -> Definition:
    """A graph that is written by hand, for what no front end says so shortly."""
    graph = compile_graph(
        kind="saga",
        name="s",
        version="1",
        entry=nodes[0].id,
        nodes=nodes,
        edges=edges,
        policies=g.Policies(),
    )
    return Definition(graph=graph)


def process(steps: str, transitions: str) -> Definition:
    """A process of these steps, which ends at `done`."""
    text = f"""
domain: p
workflows:
  - id: p.p
    version: 1
    initial_step: ask
    steps: [{steps}, {{id: done, type: terminal, outcome: done}}]
    transitions: [{transitions}]
"""
    return load_processes(text)[0]


def test_every_event_that_a_step_waits_for_comes() -> None:
    """A step that waits for several events gets all of them, and one that comes in vain is waited for as long as in a run."""
    awaited = tuple(g.Awaited(event=each, name=each) for each in ("paid", "packed"))
    definition = made_of(g.Node(id="both", op=g.WaitEventsOp(events=awaited, need="all")))
    both = tried(definition, events={"paid": 1, "packed": 2})
    assert (both.ends, both.data["both"]) == ("ended", {"paid": 1, "packed": 2})
    choosy = (
        Saga("choosy")
        .wait_for_event("paid", "payment", match="event.total > 5", timeout=timedelta(days=3))
        .step("thank", "thank")
        .build()
    )
    late = tried(choosy, events={"payment": {"total": 5}})
    assert (late.ends, late.status, late.trail[0].outcome) == ("ended", "failed", "error")


def test_a_call_that_is_put_off_holds_nobody_up() -> None:
    """Time goes by for all branches at once: who is asked beside a call of tomorrow answers today, and what comes due before it happens before it."""
    saga = (
        Saga("s")
        .fork(
            "beside",
            lambda one: one.step("tomorrow", "h", start_after=timedelta(days=1)),
            lambda two: two.human(
                "now", role="r", timeout=timedelta(hours=1), on_timeout=lambda late: late.step("x", "h")
            ),
        )
        .join("met")
        .build()
    )
    found = tried(saga)
    assert next(each for each in found.trail if each.node == "now").outcome == "confirmed"
    late = tried(saga, unanswered=["now"])
    after = {each.node: each.after for each in late.trail}
    assert after["x"] == timedelta(hours=1).total_seconds()
    assert (late.ends, after["met"]) == ("ended", timedelta(days=1).total_seconds())


def test_what_undoes_a_question_is_none() -> None:
    """Whoever is told that a question was decided in vain is not asked it again."""
    work = g.HandlerCall(handler="tell", start_after_ms=1000)
    definition = made_of(
        g.Node(id="ask", op=g.HumanOp(), compensation=work),
        g.Node(id="do", op=g.TaskOp(work=g.HandlerCall(handler="do"))),
        edges=[g.Edge(source="ask", target="do", on=g.CONFIRMED)],
    )
    found = tried(definition, failing=["do"])
    assert told_way(found) == ["ask", "do", "undo ask"]
    assert (found.ends, found.status, found.trail[-1].outcome) == ("ended", "failed", "undone")


def test_a_list_is_no_circle() -> None:
    """The same question for each of many items is asked for each of them; what is said of all of them in turn is what they say."""
    saga = Saga("s").for_each("each", "input.items", lambda one: one.human("ask", role="r")).build()
    found = tried(saga, {"items": [1] * 150})
    assert (found.ends, found.status) == ("ended", "completed")
    round_ = process(
        "{id: ask, type: approval, assignee: {role: r}}",
        "{from: ask, event: approved, to: ask}, {from: ask, event: rejected, to: done}",
    )
    said = tried(round_, decisions={"ask": ["approved"] * 120 + ["rejected"]})
    assert (said.ends, said.outcome, len(said.trail)) == ("ended", "done", 122)
    thousand = Saga("s").for_each("each", "input.items", lambda one: one.wait("nap", timedelta(days=1))).build()
    assert tried(thousand, {"items": [1] * 1000}).ends == "ended"


def test_reminders_are_no_circle() -> None:
    """Who is reminded every hour for months, and never answers, is waited for until the time is over; without one, for ever."""
    asked = g.HumanOp(asks=(), role="r", times=g.TaskTimes(every_ms=3_600_000))
    for timeout_ms, ends in ((1500 * 3_600_000, ("ended", "failed")), (None, ("waits", "running"))):
        found = tried(made_of(g.Node(id="ask", op=asked, timeout_ms=timeout_ms)), unanswered=["ask"])
        assert (found.ends, found.status) == ends, found.reason


# -- what it may take


def test_data_is_as_small_as_that_of_a_run() -> None:
    """Whatever would not fit into a run does not fit into its dry run: the step has failed."""
    saga = Saga("s").step("one", "h").step("two", "h").build()
    supposed = {"answers": {"h": "x" * 700}}
    found = tried_out(saga.graph, {}, supposed, actor=EVE, settings=Settings(max_payload_bytes=2000))
    assert found.status == "completed"
    small = tried_out(saga.graph, {}, supposed, actor=EVE, settings=Settings(max_payload_bytes=1300))
    assert (small.status, small.trail[1].outcome) == ("failed", "error")
    assert "1300 bytes" in small.reason


def test_a_dry_run_takes_a_processor_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists in lists, large data at every step: it comes back with what it is, in the middle of a decision if need be."""
    monkeypatch.setattr(suppositions, "LONGEST", 0.02)
    nested = (
        Saga("s")
        .for_each(
            "a",
            "input.items",
            lambda a: a.for_each("b", "input.others", lambda b: b.step("c", "h"), item="inner"),
        )
        .build()
    )
    found = tried(nested, {"items": [1] * 1000, "others": [1] * 1000})
    assert found.ends == "endless"
    assert "takes longer than a dry run may" in found.reason
    monkeypatch.setattr(suppositions, "LONGEST", 60.0)
    flat = Saga("s").for_each("a", "input.items", lambda a: a.save_point("d")).build()
    many = tried(flat, {"items": [1] * 20_001})
    assert (many.ends, many.reason, len(many.trail)) == ("endless", "it goes through more than 20000 nodes", 20_000)


def test_nobody_who_reads_waits_for_a_dry_run() -> None:
    """What is tried out is played by a thread of its own: everybody else is answered meanwhile, however many wait for theirs."""
    engine = Engine("sqlite://", settings=Settings(readers=1))
    with engine:
        engine.register(Saga("s").step("a", "h").build())
        replies = [engine.futures.definitions.dry_run("s") for _ in range(3)]
        assert engine.definitions.list()
        assert all(each.result(30).ends == "ended" for each in replies)
        threads = {part.name for part in engine.parts()}
    assert {"reader threads", "player threads"} <= threads
