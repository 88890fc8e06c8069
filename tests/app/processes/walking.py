"""Random walks over random processes, by the machine alone or by a whole engine, beside the interpreter."""

from __future__ import annotations

import json
from datetime import timedelta
from random import Random
from typing import Any, Protocol

from app.processes.reference import CAPABILITIES, EVENTS, Interpreter, random_process
from machine.hosting import Host
from standfast import Actor, ForbiddenError, RejectedError, load_processes
from standfast.errors import StandfastError
from standfast.features.processes.history import _CALL
from standfast.features.processes.reads import in_process_words
from standfast.graph.status_words.process import instance_status
from standfast.kernel.actor import SYSTEM
from standfast.kernel.decision import NOT_ALLOWED, Answer, Rejection
from standfast.kernel.row_kinds.processes import ProcessOpened
from standfast.machine.model import events as e
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.queries.tokens import place_of
from standfast.machine.model.rows.process_rows import gathered, shown, step_named
from standfast.machine.model.state import ROOT
from standfast.testing import ManualEngine

MOVES = 12


class World(Protocol):
    """Where a process is walked."""

    def stands(self) -> tuple[str, str]:
        """Status and current step."""
        ...

    def advance(self, event: str, n: int, actor: Actor) -> None:
        """Leave the step by an event."""
        ...

    def signal(self) -> None:
        """Something happens that it may wait for."""
        ...

    def resume(self) -> None:
        """Let it go on."""
        ...

    def cancel(self) -> None:
        """End it."""
        ...

    def wait(self, hours: int) -> None:
        """Let time go by."""
        ...


class Machine:
    """The machine alone, without a database: calls are answered at once."""

    def __init__(self, text: str) -> None:
        (definition,) = load_processes(text)
        self.host = Host(definition.graph)
        self._tell(c.StartWorkflow(input={"n": 0}))

    def stands(self) -> tuple[str, str]:
        """As the engine tells it of its rows and its history."""
        status = self.host.machine.status(self.host.state)
        token = self.host.state.token(ROOT)
        held = "" if token is None or token.stay is None else token.stay.target
        at = held or self._last()
        (row,) = (each for each in self.host.rows if isinstance(each, ProcessOpened))
        seen = shown(self.host.state, gathered(self.host.state) or {})
        assert (row.current_step, json.loads(row.state)) == (at, seen), "the row tells what the state does"
        return instance_status(status.word, status.reason, has_begun=True), at

    def advance(self, event: str, n: int, actor: Actor) -> None:
        """The command of the call, which finds the step itself."""
        self._tell(c.AdvanceProcess(event=event, data={"n": n}, partition=""), actor)

    def signal(self) -> None:
        """The signal."""
        self._tell(c.SendSignal(name="paid"))

    def resume(self) -> None:
        """The command that the call would send."""
        state = self.host.state
        if self.stands()[0] == "active":
            raise RejectedError(reason="INVALID_TRANSITION", message="it is active")
        dead = next(iter(state.dead), None)
        self._tell(
            c.ResumeWorkflow(past_wait=state.status != "paused")
            if dead is None
            else c.RequeueStep(step=dead, reason="again")
        )

    def cancel(self) -> None:
        """The command."""
        self._tell(c.CancelWorkflow())

    def wait(self, hours: int) -> None:
        """Timers fire at their times."""
        host = self.host
        end = host.now + timedelta(hours=hours)
        while host.due and min(host.due.values()) <= end:
            key = min(host.due, key=lambda each: host.due[each])
            host.now = max(host.due[key], host.now)
            host.tell(host.timers[key], SYSTEM, timer=key)
            self._work()
        host.now = end

    def _tell(self, command: c.Command, actor: Actor = SYSTEM) -> None:
        refuse(self.host.tell(command, actor))
        self._work()

    def _work(self) -> None:
        while self.host.calls:
            number, call = next(iter(self.host.calls.items()))
            if call.effect.handler == "good":
                self.host.tell(c.CompleteStep(step=call.body.step, output={}), SYSTEM, effect=number)
            else:
                self.host.tell(c.FailStep(step=call.body.step, error="no"), SYSTEM, effect=number)

    def _last(self) -> str:
        last = ""
        for event in self.host.history:
            node = event.node if isinstance(event, e.StepStarted | e.StepCompleted) else ""
            if node and not node.startswith("#"):
                last = str(self.host.graph.nodes[node].metadata.get(_CALL, node))
        assert step_named(self.host.graph, place_of(self.host.state)) == last, "the state knows what the history tells"
        return last


def refuse(answer: Answer) -> None:
    """The error that a caller would have."""
    if isinstance(answer, Rejection):
        kind = ForbiddenError if answer.code == NOT_ALLOWED else RejectedError
        raise in_process_words(kind(reason=answer.code, message=answer.message))


class Whole:
    """A whole engine."""

    def __init__(self, engine: ManualEngine, text: str) -> None:
        (definition,) = load_processes(text)
        self._engine = engine.register(definition).handle("good", lambda data: {}).handle("bad", _fail)
        self.instance = self._engine.processes.start("w", {"n": 0}).id
        engine.drain()

    def stands(self) -> tuple[str, str]:
        """As callers see it."""
        seen = self._engine.processes.get(self.instance).instance
        (listed,) = self._engine.processes.list().items
        assert (listed.status, listed.current_step) == (seen.status, seen.current_step), "a list tells the same"
        return seen.status, seen.current_step

    def advance(self, event: str, n: int, actor: Actor) -> None:
        """The call."""
        self._engine.acting(actor).processes.advance(self.instance, event, {"n": n})
        self._engine.drain()

    def signal(self) -> None:
        """The signal."""
        self._engine.run(self.instance).signal("paid")
        self._engine.drain()

    def resume(self) -> None:
        """The call."""
        seen = self._engine.processes.get(self.instance).instance.version
        self._engine.processes.resume(self.instance, expected_version=seen)
        self._engine.drain()

    def cancel(self) -> None:
        """The call."""
        self._engine.processes.cancel(self.instance)

    def wait(self, hours: int) -> None:
        """The clock of the test."""
        self._engine.advance(hours=hours)


def _fail(data: dict[str, object]) -> None:
    raise ValueError(data)


def walk(seed: str, open_world: Any) -> None:
    """One process, one walk: wherever the interpreter stands, the world stands, and what it refuses is refused."""
    rng = Random(seed)
    file = random_process(rng)
    text = json.dumps(file)
    world: World = open_world(text)
    model = Interpreter(file, 0)
    told = [f"seed {seed!r}: {text}"]
    for _ in range(MOVES):
        assert world.stands() == (model.status, model.at), "\n".join(told)
        expected, found = _move(rng, model, world, told)
        assert found == expected, "\n".join(told)
    assert world.stands() == (model.status, model.at), "\n".join(told)


def _move(rng: Random, model: Interpreter, world: World, told: list[str]) -> tuple[str, str]:
    capabilities = frozenset(each for each in CAPABILITIES if rng.random() < 0.8)
    roles = frozenset(["clerk"] if rng.random() < 0.8 else [])
    event, n, hours = rng.choice((*EVENTS, "closed", "error")), rng.randint(0, 5), rng.randint(1, 4)
    choice = rng.random()
    told.append(
        f"{model.status} at {model.at}: {choice:.2f} {event} {n} {hours} {sorted(capabilities)} {sorted(roles)}"
    )
    if choice < 0.55:
        actor = Actor(id="ann", capabilities=capabilities, roles=roles)
        return model.advance(event, n, capabilities, roles), _code(lambda: world.advance(event, n, actor))
    if choice < 0.75:
        model.wait(hours)
        world.wait(hours)
    elif choice < 0.85 and model.awaits_signal:
        return model.signal(), _code(world.signal)
    elif choice < 0.95:
        return model.resume(), _code(world.resume)
    elif choice > 0.98:
        return model.cancel(), _code(world.cancel)
    return "", ""


def _code(act: Any) -> str:
    try:
        act()
    except StandfastError as error:
        return str(getattr(in_process_words(error), "reason", error.code))
    return ""
