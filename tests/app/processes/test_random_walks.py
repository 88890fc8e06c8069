"""Random processes, walked at random: the engine stands where a small interpreter of the same file does."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from holdfast import Actor, ForbiddenError, RejectedError, load_processes
from holdfast.testing import ManualEngine

WALKS, MOVES = 200, 12
EVENTS = ("approved", "rejected", "returned")
GUARDS = ("", "", "large")


def random_file(rng: Random) -> dict[str, Any]:
    """A process that is sound: people, calls that succeed or fail by the state, and terminals, with ways between them."""
    count = rng.randint(2, 5)
    steps: list[dict[str, Any]] = []
    ways: list[dict[str, Any]] = []
    names = [f"s{number}" for number in range(count)]
    targets = [*names, "end", "over"]
    for name in names:
        if name == "s0" or rng.random() < 0.6:
            steps.append({"id": name, "type": "action", **rng.choice(({}, {"capability": "work"}, {"timeout": "1h", "on_timeout": rng.choice(targets)}, {"timeout": "1h"}))})  # fmt: skip
            for _ in range(rng.randint(1, 3)):
                way = {"from": name, "event": rng.choice(EVENTS), "to": rng.choice(targets)}
                if rng.random() < 0.4:
                    way["condition"] = rng.choice(("workflow.n > 2", "input.n > 2", "workflow.gone == 1"))
                if guard := rng.choice(GUARDS):
                    way["guard"] = guard
                ways.append(way)
        else:
            steps.append(
                {"id": name, "type": "system", "operation": rng.choice(("good", "bad")), "retry": {"attempts": 1}}
            )
            ways += [{"from": name, "event": event, "to": rng.choice(targets)} for event in ("completed", "error") if rng.random() < 0.8]  # fmt: skip
    steps += [{"id": name, "type": "terminal"} for name in ("end", "over")]
    ways.append({"from": "s0", "event": "closed", "to": "end"})
    return {"domain": "d", "workflows": [{"id": "w", "chain_limit": 3, "steps": steps, "transitions": ways}]}


class Interpreter:
    """What the format means, in a few lines."""

    def __init__(self, file: dict[str, Any], n: int) -> None:
        (workflow,) = file["workflows"]
        self.steps = {step["id"]: step for step in workflow["steps"]}
        self.ways = workflow["transitions"]
        self.n, self.status, self.chain = n, "active", 0
        self._enter("s0")

    def advance(self, event: str, n: int, capabilities: frozenset[str]) -> str:
        """The code of the refusal; empty if there is none."""
        step = self.steps[self.at]
        if self.status != "active":
            return "WORKFLOW_NOT_ACTIVE"
        if step.get("capability", "") not in {"", *capabilities}:
            return "FORBIDDEN"
        for way in self.ways:
            is_meant = (way["from"], way["event"]) == (self.at, event)
            if is_meant and self._holds(way, n) and way.get("guard", "") in {"", *capabilities}:
                self.n, self.chain = n, 0
                self._enter(way["to"])
                return ""
        return "INVALID_TRANSITION"

    def time_out(self) -> None:
        """An hour goes by."""
        step = self.steps[self.at]
        if self.status == "active" and "timeout" in step:
            if "on_timeout" in step:
                self._enter(step["on_timeout"])
            else:
                self.status = "failed"

    def _holds(self, way: dict[str, Any], n: int) -> bool:
        given = {"workflow.n > 2": self.n > 2, "input.n > 2": n > 2, "workflow.gone == 1": False}
        return given.get(way.get("condition", ""), True)

    def _enter(self, name: str) -> None:
        self.at, step = name, self.steps[name]
        if step["type"] == "terminal":
            self.status = "completed"
        elif step["type"] == "system":
            self._call(name, "completed" if step["operation"] == "good" else "error")

    def _call(self, name: str, event: str) -> None:
        if self.chain == 3:
            self.status = "suspended"
            return
        self.chain += 1
        way = next((way for way in self.ways if (way["from"], way["event"]) == (name, event)), None)
        if way is not None:
            self._enter(way["to"])
        else:
            self.status = "failed" if event == "completed" else "suspended"


def _fail(data: dict[str, object]) -> None:
    raise ValueError(data)


def walk(seed: str) -> None:
    """One process, one walk."""
    rng = Random(seed)
    file = random_file(rng)
    engine = ManualEngine()
    try:
        (definition,) = load_processes(json.dumps(file))
        engine.register(definition).handle("good", lambda data: {}).handle("bad", _fail)
        model = Interpreter(file, 0)
        instance = engine.processes.start("w", {"n": 0}).id
        engine.drain()
        for _ in range(MOVES):
            seen = engine.processes.get(instance).instance
            assert (seen.status, seen.current_step) == (model.status, model.at), f"seed {seed}: {json.dumps(file)}"
            if rng.random() < 0.15:
                engine.advance(hours=1)
                model.time_out()
                continue
            event, n = rng.choice((*EVENTS, "closed")), rng.randint(0, 5)
            capabilities = frozenset(each for each in ("work", "large") if rng.random() < 0.7)
            expected = model.advance(event, n, capabilities)
            try:
                engine.acting(Actor(id="ann", capabilities=capabilities)).processes.advance(instance, event, {"n": n})
                told = ""
            except (RejectedError, ForbiddenError) as error:
                told = error.reason
            assert told == expected, (
                f"seed {seed}: {event} {n} {capabilities} at {seen.current_step}: {json.dumps(file)}"
            )
            engine.drain()
    finally:
        engine.stop()


@pytest.mark.parametrize("part", range(4))
def test_random_processes_stand_where_the_interpreter_does(part: int) -> None:
    """Status, step and every refusal agree, move by move."""
    for number in range(WALKS // 4):
        walk(f"{part}/{number}")
