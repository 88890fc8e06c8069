"""Random contracts and bodies, sound ones and damaged ones, and a walk through what they compile to that knows nothing of the compiler."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any, TypeVar, cast

import msgspec

from authoring.document.examples import CONTRACT, Plain
from authoring.document.living import Life
from standfast import DefinitionError
from standfast.errors import Diagnostic
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.body.format import Body
from standfast.features.documents.compiler.artifact import Effective
from standfast.features.documents.compiler.compiler import check_body, compile_effective
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.envelope import Envelope, generate_envelope
from standfast.features.documents.contract.loading import read_contract

CONDITIONS = (
    "entity.total > 5",
    "entity.kind == 'goods'",
    "entity.number contains 'x'",
    "org.flag == true",
    "actor.id == 'ann'",
)
WORDS = (
    "out",
    "in",
    "sys:end",
    "sys:gate:approve",
    "sys:state:active",
    "usr:slot:other:x",
    "ghost",
    "",
    "a b",
    "n0",
    "n1",
    "*",
    "denied",
    "timeout",
    "0s",
    "edge:sys:slot:x0:out->sys:gate:t0",
    "bill.",
)
VALUES: tuple[object, ...] = (
    None,
    0,
    -1,
    10**12,
    True,
    "",
    "x",
    "locked",
    "editable",
    [],
    {},
    ["x"],
    {"x": 1},
    1.5,
    "sys:start",
    "entity.total > ",
)
PLACE = re.compile(r"\d+:\d+")
"""Line and column."""
MET: Counter[str] = Counter()
"""What the documents of all cases have met with."""
LIVES = 3
"""Documents that live in a workflow whose body was not damaged."""
CONTRACTS = 60
"""Contracts that are made; the bodies are all different."""


# -- contracts


def random_contract(dice: Random) -> Plain:
    """A contract with a lifecycle of its own: a chain of states with a slot on most of its edges, ends, ways back."""
    states = [f"s{place}" for place in range(dice.randint(2, 5))]
    windows = ["editable", *(dice.choice(["amend_only", "locked"]) for _ in states[1:])]
    transitions: list[Plain] = []
    slots: list[Plain] = []
    for place, (source, target) in enumerate(pairwise(states)):
        transition: Plain = {"name": f"t{place}", "from": [source], "to": target}
        if dice.random() < 0.5:
            transition["on_reject"] = dice.choice(states[: place + 1])
        if dice.random() < 0.5:
            transition["begins"] = "by_itself"
        transitions.append(transition)
        for entry, exit_, window in (
            (f"sys:state:{source}", f"sys:gate:t{place}", windows[place]),
            (f"sys:gate:t{place}", f"sys:state:{target}", "locked"),
        ):
            if dice.random() < 0.7:
                name = f"slot:x{len(slots)}"
                slots.append(
                    {"id": name, "entry": entry, "exit": exit_, "window": window, "stable": dice.random() < 0.5}
                )
    if dice.random() < 0.4:
        transitions.append({"name": "back", "from": [states[1]], "to": states[0], "kind": "recall"})
    transitions.append({"name": "drop", "from": states, "to": "gone", "kind": "cancel"})
    life: Plain = {
        "version": 1,
        "initial": states[0],
        "terminal": ["gone"],
        "amended": states[0],
        "states": {name: {"window": window} for name, window in zip(states, windows, strict=True)}
        | {"gone": {"window": "locked"}},
        "transitions": transitions,
    }
    amendment = dice.choice(["new_row", "in_place"])
    return {**copy.deepcopy(CONTRACT), "lifecycle": life, "slots": slots, "amendment": amendment}


# -- bodies


def random_body(dice: Random, contract: Plain) -> Plain:
    """A body that is sound more often than not."""
    slots: dict[str, object] = {}
    share = dice.choice((0.4, 1.0))
    for slot in contract["slots"]:  # type: ignore[attr-defined]
        if dice.random() < share:
            slots[slot["id"]] = _random_patch(dice, slot)
    return {"base": {"entity_type": "bill", "envelope_version": 1}, "slots": slots}


class _Writer:
    """Writes a patch as a tree of sequences, choices and forks, so that its shape is sound."""

    def __init__(self, dice: Random, *, has_gate: bool) -> None:
        self.dice = dice
        self.has_gate = has_gate
        self.nodes: list[Plain] = []
        self.edges: list[Plain] = []

    def name(self) -> str:
        return f"n{len(self.nodes)}"

    def part(self, before: list[Plain], depth: int) -> list[Plain]:
        """Put something behind loose ends; the loose ends that it leaves."""
        kind = self.dice.choice(["step", "step", "step", "choice", "fork", "each"]) if depth < 2 else "step"
        for _ in range(self.dice.randint(1, 2)):
            before = getattr(self, f"_{kind}")(before, depth)
        return before

    def _enter(self, before: list[Plain], node: Plain) -> str:
        name = self.name()
        self.nodes.append({"id": name, **node})
        self.edges += [{**each, "to": name} for each in before]
        return name

    def _step(self, before: list[Plain], depth: int) -> list[Plain]:
        covers = self.dice.choice([["number"], ["number"], ["total"], []])
        question: Plain = {"type": "approval", "approvers": [{"role": "boss"}], "timeout": "2d"}
        question |= {"covers": covers} if covers else {}
        written = self.dice.choice([{"posting": "'P'"}, {"total": "8"}, {"number": "'N'"}, {"owner": "entity.number"}])
        taken_back: Plain = {"type": "action", "action": "bill.unpost", "undo": "bill.unpost", "run_as": "system"}
        others: list[Plain] = [
            {"type": "action", "action": self.dice.choice(["bill.post", "bill.mark"])},
            {"type": "action", "action": "bill.mark", "payload": written, "run_as": "system"},
            *[taken_back] * depth,
            {"type": "script", "formula": "entity.total"},
            {"type": "wait_timer", "duration": "1d"},
            {"type": "wait_event", "event": "e", "timeout": "1d", "into": "came"},
            {"type": "rule", "rules": [{"name": "r", "effect": "outcome", "outcome": "ok"}]},
            {"type": "action", "action": "order.create", "undo": "order.cancel"},
            {"type": "webhook_out", "url": "https://x.example/{entity.number}", "secret": "env:KEY"},
            {"type": "notification", "to": ["ann"], "subject": "hello"},
            {"type": "task", "handler": "h"},
            {"type": "call", "workflow": "w", "input": {"x": "entity.total"}, "into": "came_to"},
        ]
        node = question if self.has_gate and self.dice.random() < 0.5 else self.dice.choice(others)
        name = self._enter(before, node)
        usual = {"approval": "approved", "wait_event": "event"}.get(str(node["type"]), "ok")
        end: Plain = {"from": name, "on": self.dice.choice([usual, usual, "*"])}
        ends = [{**end, "id": f"e{self.dice.randrange(10**9)}"} if self.dice.random() < 0.2 else end]
        if node["type"] == "approval" and self.dice.random() < 0.4:
            ends.append({"from": name, "on": self.dice.choice(["rejected", "rejected", "timeout"])})
        return ends

    def _choice(self, before: list[Plain], depth: int) -> list[Plain]:
        if self.dice.random() < 0.5:
            name = self._enter(before, {"type": "condition", "expression": self.dice.choice(CONDITIONS)})
            ways: list[Plain] = [{"from": name, "on": "true"}, {"from": name, "on": "false"}]
        else:
            name = self._enter(before, {"type": "condition"})
            ways = [{"from": name, "when": self.dice.choice(CONDITIONS)}, {"from": name}]
        return [end for each in ways for end in (self.part([each], depth + 1) if self.dice.random() < 0.8 else [each])]

    def _fork(self, before: list[Plain], depth: int) -> list[Plain]:
        name = self._enter(before, {"type": "parallel_split"})
        ways: list[Plain] = [{"from": name} for _ in range(self.dice.randint(2, 3))]
        if self.dice.random() < 0.3:
            ways = [{**each, "when": self.dice.choice(CONDITIONS)} for each in ways]
        ends = [end for each in ways for end in self.part([each], depth + 1)]
        return self._meet(ends)

    def _meet(self, ends: list[Plain]) -> list[Plain]:
        """Branches meet: all of them, or the first one; then the others are undone, finish, or stop."""
        join: Plain = {"type": "parallel_join", "mode": self.dice.choice(["all", "any"])}
        if self.dice.random() < 0.7:
            join["losers"] = self.dice.choice(["undo", "finish", "finish", "stop"])
        return [{"from": self._enter(ends, join), "on": "ok"}]

    def _each(self, before: list[Plain], depth: int) -> list[Plain]:
        item = self.dice.choice(["item", f"item_{len(self.nodes)}"])
        given: Plain = {"type": "for_each", "items": "entity.tags", "item": item, "limit": self.dice.randint(1, 3)}
        if self.dice.random() < 0.6:
            given["on_empty"] = self.dice.choice(["skip", "skip", "fail"])
        name = self._enter(before, given)
        return self._meet(self.part([{"from": name}], depth + 1))


def _random_patch(dice: Random, slot: Plain) -> Plain:
    writer = _Writer(dice, has_gate=str(slot["exit"]).startswith("sys:gate:"))
    ends: list[Plain] = [{"from": "in"}]
    for _ in range(dice.randint(0, 2)):
        ends = writer.part(ends, 0)
    edges = [*writer.edges, *({**each, "to": "out"} for each in ends)]
    if dice.random() < 0.3:  # A join that is left out.
        edges, writer.nodes = _without_last_join(edges, writer.nodes)
    more: Plain = {"on_reject": "compensate"} if dice.random() < 0.3 else {}
    steps: Plain = {"nodes": writer.nodes} if writer.nodes else {}
    return {**steps, "edges": edges, "entry": "branch", "exit": "join", **more}


def _without_last_join(edges: list[Plain], nodes: list[Plain]) -> tuple[list[Plain], list[Plain]]:
    joins = [str(each["id"]) for each in nodes if each["type"] == "parallel_join"]
    last = next((name for name in reversed(joins) if {"from": name, "on": "ok", "to": "out"} in edges), None)
    if last is None:
        return edges, nodes
    kept = [{**each, "to": "out"} if each["to"] == last else each for each in edges if each["from"] != last]
    return kept, [each for each in nodes if each["id"] != last]


# -- damage


def damaged(dice: Random, data: Plain, times: int) -> Plain:
    """The same with random changes somewhere in it."""
    whole = copy.deepcopy(data)
    for _ in range(times):
        places = list(_places(whole))
        if places:
            _damage(dice, *dice.choice(places))
    return whole


def _places(part: object) -> list[tuple[dict[str, object] | list[object], str | int]]:
    found: list[tuple[dict[str, object] | list[object], str | int]] = []
    pending = [part]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            found += [(each, name) for name in each]
            pending += each.values()
        elif isinstance(each, list):
            found += [(each, place) for place in range(len(each))]
            pending += each
    return found


def _damage(dice: Random, part: dict[str, object] | list[object], at: str | int) -> None:
    deed = dice.choice(["replace", "word", "drop", "twice", "swap", "rename"])
    if isinstance(part, list):
        assert isinstance(at, int)
        other = dice.randrange(len(part))
        if deed == "drop":
            del part[at]
        elif deed == "twice":
            part.append(copy.deepcopy(part[at]))
        elif deed == "swap":
            part[at], part[other] = part[other], part[at]
        else:
            part[at] = copy.deepcopy(dice.choice(VALUES if deed == "replace" else WORDS))
        return
    assert isinstance(at, str)
    if deed == "drop":
        del part[at]
    elif deed == "rename":
        part[dice.choice(WORDS)] = part.pop(at)
    elif deed == "word" and isinstance(part[at], str):
        part[at] = dice.choice(WORDS)
    else:
        part[at] = copy.deepcopy(dice.choice(VALUES))


# -- the judge


def judge(dice: Random) -> str:
    """Make one case and see to it that it is refused with diagnostics or compiles to a graph that keeps every gate; what became of it."""
    given, envelope = sound_contract(dice.randrange(CONTRACTS))
    if dice.random() < 0.1:
        return _judge_contract(damaged(dice, given, dice.randint(1, 3)))
    data = random_body(dice, given)
    is_damaged = dice.random() < 0.6
    if is_damaged:
        data = damaged(dice, data, dice.randint(1, 4))
    problems = check_body(envelope, json.dumps(data))
    if problems:
        assert all(each.code and each.message and PLACE.fullmatch(each.position) for each in problems), problems
        read, _ = _tried(lambda: read_body(json.dumps(data)))
        assert read is None or _tried(lambda: compile_effective(envelope, read))[0] is None
        return "refused body"
    made = compile_effective(envelope, msgspec.convert(data, Body))
    Walk(made, given).run()
    graph = graph_of(made)
    assert len(graph.nodes) == len(made.nodes_by_id)
    written: Plain = msgspec.to_builtins(msgspec.convert(data, Body))
    for _ in range(1 if is_damaged else LIVES):
        life = Life(graph, given, cast("Plain", written.get("slots", {})), dice)
        life.run()
        MET.update(life.ledger.met)
    return "compiled"


def _judge_contract(given: Plain) -> str:
    contract, wrong = _tried(lambda: read_contract(json.dumps(given)))
    if contract is None:
        assert all(each.code and each.message and PLACE.fullmatch(each.position) for each in wrong), wrong
        return "refused contract"
    made = compile_effective(generate_envelope(contract))
    Walk(made, given).run()
    assert len(graph_of(made).nodes) == len(made.nodes_by_id)
    return "compiled"


@cache
def sound_contract(number: int) -> tuple[Plain, Envelope]:
    """One of the contracts that bodies are written for, and its envelope."""
    given = random_contract(Random(number))
    return given, generate_envelope(read_contract(json.dumps(given)))


T = TypeVar("T")


def _tried(make: Callable[[], T]) -> tuple[T | None, tuple[Diagnostic, ...]]:
    try:
        return make(), ()
    except DefinitionError as error:
        return None, error.diagnostics


class Walk:
    """Whether every gate is there, in order, and unavoidable: told from the lifecycle as it was written, by taking nodes away and looking what is still reached."""

    def __init__(self, made: Effective, contract: Plain) -> None:
        self.made = made
        life = contract["lifecycle"]
        assert isinstance(life, dict)
        self.life = life
        self.is_in_place = contract.get("amendment") == "in_place"
        self.onward: defaultdict[str, set[str]] = defaultdict(set)
        self.anyhow: defaultdict[str, set[str]] = defaultdict(set)
        for edge in made.edges_by_id.values():
            assert {edge.source, edge.target} <= made.nodes_by_id.keys()
            self.anyhow[edge.source].add(edge.target)
            if not edge.rework:
                self.onward[edge.source].add(edge.target)

    def run(self) -> None:
        """Look at all of it."""
        for each in self.life["transitions"]:
            self._transition(each)
        self._system_ways()
        for target in self.life["states"]:
            self._state(target)
        for name, node in self.made.nodes_by_id.items():
            if node.type == "action":
                assert name not in reach(self.anyhow, "sys:start", without={f"sys:policy:{name}"})
            if node.type in {"parallel_split", "for_each"}:
                self._split(name, node.slot)
        whole = reach(self.anyhow, "sys:start") | {"sys:start"}
        assert set(self.made.order) == set(self.made.nodes_by_id) == set(self.made.windows) == whole

    def _transition(self, each: dict[str, Any]) -> None:
        """Its gate is there, behind its sources and before its target."""
        gate = f"sys:gate:{each['name']}"
        assert gate in self.made.nodes_by_id
        assert all(gate in reach(self.onward, f"sys:state:{source}") for source in each["from"])
        assert f"sys:state:{each['to']}" in reach(self.anyhow, gate)

    def _system_ways(self) -> None:
        """From one system node no other is reached next than the lifecycle says."""
        legal = {("sys:start", f"sys:state:{name}") for name in (self.life["initial"], self.life.get("amended"))}
        for each in self.life["transitions"]:
            gate = f"sys:gate:{each['name']}"
            legal |= {(f"sys:state:{source}", gate) for source in each["from"]}
            legal |= {(gate, f"sys:state:{name}") for name in (each["to"], each.get("on_reject"), *each["from"])}
        states = [f"sys:state:{name}" for name in self.life["states"]]
        legal |= {(state, "sys:end") for state in states}
        if self.is_in_place:
            legal |= {(state, f"sys:state:{self.life.get('amended')}") for state in states}
        system = {"sys:start", "sys:end", *states, *(f"sys:gate:{each['name']}" for each in self.life["transitions"])}
        for name in system:
            for met in reach(self.anyhow, name, stops=system) & system:
                assert (name, met) in legal or met == name, (name, met)

    def _split(self, name: str, slot: str) -> None:
        """Without its join no branch of a split leaves the slot; a refusal does, and ends all of them."""
        joins = {each for each, node in self.made.nodes_by_id.items() if node.config.get("split") == name}
        assert len(joins) == 1
        inside: defaultdict[str, set[str]] = defaultdict(set)
        for edge in self.made.edges_by_id.values():
            is_refusal = edge.on in {"rejected", "blocked"} and edge.target == f"sys:{slot}:out"
            if not edge.rework and not is_refusal and not (edge.source == name and edge.on != "branch"):
                inside[edge.source].add(edge.target)
        assert {self.made.nodes_by_id[each].slot for each in reach(inside, name, without=joins)} == {slot}
        assert f"sys:{slot}:out" not in reach(inside, name, without=joins)

    def _state(self, name: str) -> None:
        """Without the gates that lead to it a state is not reached; ways back lead only to where a rejection may."""
        if name in {self.life["initial"], self.life.get("amended")}:
            return
        leading = {f"sys:gate:{each['name']}" for each in self.life["transitions"] if each["to"] == name}
        rejecting = {f"sys:gate:{each['name']}" for each in self.life["transitions"] if each.get("on_reject") == name}
        assert f"sys:state:{name}" not in reach(self.onward, "sys:start", without=leading)
        assert f"sys:state:{name}" not in reach(self.anyhow, "sys:start", without=leading | rejecting)


def reach(
    onward: Mapping[str, set[str]], start: str, *, without: Collection[str] = (), stops: Collection[str] = ()
) -> set[str]:
    """What can be reached from a node, not through those that are taken away; those where it stops are reached and not left."""
    seen: set[str] = set()
    pending = [start]
    while pending:
        fresh = {each for each in onward.get(pending.pop(), ()) if each not in seen and each not in without}
        seen |= fresh
        pending += [each for each in fresh if each not in stops]
    return seen
