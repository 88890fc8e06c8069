"""Plays a scenario on an engine with a clock and ids that are always the same, and writes down what the store holds."""

from __future__ import annotations

from collections.abc import Iterable

from histories.golden import (
    Fact,
    Golden,
    Kept,
    Kin,
    Life,
    Plain,
    Work,
    asked,
    beside,
    delivery,
    folded,
    row,
    shown,
    whole,
)
from standfast import RetryPolicy, Settings
from standfast.engine.common.clock import ManualClock
from standfast.features.schedules.model.messages import SCHEDULE
from standfast.graph.compiler import read_graph
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.kernel.rows import kinds
from standfast.machine.model.messages import PUBLICATION
from standfast.store.opening import open_store
from standfast.store.records.instances import Address, InstanceHeader, InstanceQuery, Snapshot
from standfast.testing import ManualEngine
from standfast.testing.manual import START

TENANT = "default"
_ALL = 1000
_SETTINGS = Settings(
    snapshot_events=4, retry=RetryPolicy(max_attempts=2, jitter=0), command_retry=RetryPolicy(max_attempts=1)
)


class Tape:
    """One database, and what was seen in it."""

    def __init__(self) -> None:
        self._store = open_store("sqlite://")
        self._clock = ManualClock(START)
        self._seed = 0
        self._effects: dict[object, Work] = {}
        self._timers: dict[object, Work] = {}
        self._messages: dict[object, Work] = {}
        self.engine = self.another()

    def another(self) -> ManualEngine:
        """Another engine on the database; what is seen from now on is read with its code."""
        self._seed += 1
        self.engine = ManualEngine(
            store=self._store, settings=_SETTINGS, clock=self._clock, seed=self._seed, is_alone=False
        )
        return self.engine

    def look(self) -> None:
        """Write down the work that waits."""
        reader = self._store.reader(TENANT)
        for header in reader.instances(InstanceQuery(limit=_ALL)):
            program = self._program(header)
            effects, timers = reader.work(header.id)
            for effect in effects:
                said = whole(program.effects.decode(effect.type, effect.version, effect.data))
                work = Work(row=row(effect), says=said, asked=asked(effect.context), options=delivery(effect))
                self._effects[header.id, effect.number] = work
            for timer in timers:
                said = whole(program.commands.decode(timer.type, timer.version, timer.data))
                self._timers[header.id, timer.key, timer.number] = Work(
                    row=row(timer), says=said, asked=asked(timer.context)
                )
        self._look_at_messages()

    def _look_at_messages(self) -> None:
        waiting = self.engine.service.operate(lambda parts: parts.inbox().waiting(TENANT, after=0, limit=_ALL))
        for message in waiting:
            program = self.engine.registry.get(TENANT, message.address.definition, message.definition_version)
            said = whole(program.commands.decode(message.type, message.version, message.data))
            self._messages[message.id] = Work(row=row(message), says=said, asked=asked(message.context))

    def drain(self) -> None:
        """Do all that is due, and write down whatever waits in between."""
        self.look()
        while self.engine.execute_next():
            self.look()
        self.engine.drain()
        self.look()

    def golden(self, scenario: str, about: str) -> Golden:
        """What the scenario has left."""
        self.look()
        reader = self._store.reader(TENANT)
        headers = sorted(reader.instances(InstanceQuery(limit=_ALL)), key=lambda each: str(each.id))
        return Golden(
            scenario=scenario,
            about=about,
            definitions=list(self._definitions(headers)),
            lives=[self._life(header) for header in headers],
            effects=list(self._effects.values()),
            timers=list(self._timers.values()),
            messages=list(self._messages.values()),
            letters=[row(each) for each in reader.dead_letters(limit=_ALL)],
        )

    def close(self) -> None:
        """Let go of the database."""
        self.engine.stop()
        self._store.close()

    def _program(self, header: InstanceHeader) -> Program:
        return self.engine.registry.get(TENANT, header.definition, header.definition_version)

    def _definitions(self, headers: Iterable[InstanceHeader]) -> Iterable[Kin]:
        for name, version in sorted({(each.definition, each.definition_version) for each in headers}):
            found = self._store.definitions().get(TENANT, name, version) if version else None
            if found is not None:
                yield Kin(row=row(found), graph=whole(read_graph(found.compiled)))

    def _life(self, header: InstanceHeader) -> Life:
        reader, program = self._store.reader(TENANT), self._program(header)
        address = Address(tenant=TENANT, definition=header.definition, key=header.key, instance=header.id)
        cached, full = reader.load(address), reader.load(address, whole=True)
        assert cached is not None
        assert full is not None
        assert self.engine.instances.verify(header.id).is_sound
        state, told = folded(program, full.events)
        kept = cached.snapshot
        rows = self._rows(header.id) if program.has_steps or program.type in {PUBLICATION, SCHEDULE} else {}
        assert rows == told
        return Life(
            header=row(header),
            state_version=program.state_version,
            state=state,
            rows=rows,
            snapshot=None if kept is None else _kept(kept),
            events=[_fact(program, each) for each in full.events],
        )

    def _rows(self, instance: InstanceId) -> dict[str, list[Plain]]:
        """The rows that are made from events, as far as events tell them."""
        reader, found = self._store.reader(TENANT), dict[str, list[Plain]]()
        for kind in kinds():
            stored = [row(each) for each in reader.rows(kind, instance)]
            rows = [{name: each[name] for name in kind.row.__struct_fields__} for each in stored]
            if rows:
                found[kind.name] = sorted(rows, key=str)
        return found


def _kept(snapshot: Snapshot) -> Kept:
    return Kept(version=snapshot.version, state_version=snapshot.state_version, data=shown(snapshot.data))


def _fact(program: Program, event: StoredEvent) -> Fact:
    return Fact(row=row(event), beside={} if event.is_system else beside(event, program.decode(event)))
