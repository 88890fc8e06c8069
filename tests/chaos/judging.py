"""The judgement after the chaos: what must hold whatever went wrong."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from datetime import timedelta

import msgspec
import psycopg

from chaos.actors import Account, AlarmSet, Moved, Rang, ReceiptPrinted
from chaos.player import ACCOUNTS, SPOKEN_WITHIN, Operation, Sample, unknown
from chaos.plot import draw
from chaos.stage import Stage
from standfast import InstanceInfo
from standfast.features.deciders.views import Recorded

HEALTH_BOUND = timedelta(seconds=5)
"""After so much trouble an engine with these settings says that it is not well."""

_ALL = 1000


def left_over(scene: Stage) -> str:
    """What is still to be done, but for alarms that are weeks away; empty if nothing is."""
    director = scene.director
    backlog = [each for each in director.futures.admin.backlog().result(60) if each.kind != "timer"]
    if backlog:
        return f"work that waits: {backlog}"
    active = director.futures.runs.list(is_active=True).result(60).items
    if active:
        return f"{len(active)} instances that have not ended, among them {active[0]}"
    near = [name for name, word in answers(scene).items() if word == "acked" and Operation.drawn(name).kind == "alarm"]
    rung = sum(isinstance(each.event, Rang) for each in history(scene))
    if rung < len(near):
        return f"{len(near) - rung} of {len(near)} alarms that have not rung"
    unseen = len(happened(scene)) - len(seen(scene))
    return "" if seen(scene) == happened(scene) else f"a read model that lacks {unseen} events, or has others"


def are_well(scene: Stage) -> bool:
    """Whether every worker says that it is well again."""
    told = [health_of(scene, f"health-worker-{pid}") for pid in scene.pids()]
    # One that works has come so far that it can be asked to end.
    return all(each and each[-1].is_healthy and "has_worker=True" in each[-1].said for each in told)


def answers(scene: Stage) -> dict[str, str]:
    """What became of each operation: acked or refused, and nothing else."""
    lines = scene.calls.lines()
    assert unknown(lines) == []
    told = [json.loads(line) for line in lines]
    failed = [each for each in told if "failed" in each]
    assert failed == [], f"neither acknowledged nor refused: {failed}"
    return {each[word]: word for each in told for word in ("acked", "refused") if word in each}


def judge(scene: Stage) -> None:
    """All of it."""
    words = answers(scene)
    _judge_accounts(scene, words)
    _judge_trips(scene, words)
    assert seen(scene) == happened(scene), "the read model does not hold every event once"
    _judge_health(scene)
    assert scene.director.futures.dead_letters.list().result(60) == []


# -- accounts


def history(scene: Stage) -> list[Recorded]:
    """All that happened to the accounts."""
    keys = [f"a-{number}" for number in range(ACCOUNTS)]
    known = {each.key for each in scene.director.futures.instances.list(definition="account", limit=_ALL).result(60)}
    return [
        each
        for key in keys
        if key in known
        for each in scene.director.futures.deciders.history(Account, key).result(60)
    ]


def _judge_accounts(scene: Stage, words: dict[str, str]) -> None:
    """Every operation that was acknowledged left its events once, every one that was refused left none, and no money came or went."""
    found: Counter[tuple[str, str]] = Counter()
    balance = 0
    for each in history(scene):
        event = each.event
        assert isinstance(event, Moved | AlarmSet | Rang | ReceiptPrinted)
        found[event.operation, type(event).__name__] += 1
        balance += event.amount if isinstance(event, Moved) else 0
    expected: Counter[tuple[str, str]] = Counter()
    deposited = 0
    for name, word in words.items():
        operation = Operation.drawn(name)
        assert (word == "refused") == (operation.kind == "break"), (name, operation.kind, word)
        expected.update({(name, event): times for event, times in _EVENTS[operation.kind].items()})
        deposited += 1 + draw("amount", name) % 1000 if operation.kind == "deposit" else 0
    assert found == expected
    assert balance == deposited


_EVENTS = {
    "deposit": {"Moved": 1, "ReceiptPrinted": 1},
    "send": {"Moved": 2},
    "alarm": {"AlarmSet": 1, "Rang": 1},
    "far alarm": {"AlarmSet": 1},
    "break": {},
    "trip": {},
}


# -- trips


def _judge_trips(scene: Stage, words: dict[str, str]) -> None:
    """Every trip exists once and has ended; what it paid it paid once; what it did and then failed, it undid; nobody spoilt its data."""
    director = scene.director
    keys = Counter(header.key for header in _trips(scene))
    wanted = {Operation.drawn(name).subject for name in words if Operation.drawn(name).kind == "trip"}
    assert keys == Counter(wanted)
    paid = Counter(key for _, key in rows(scene, "select trip, key from chaos_paid"))
    deeds = Counter(scene.done.lines())
    for header in _trips(scene):
        steps = director.futures.run(header.id).steps().result(60)
        events = director.futures.run(header.id).history().result(60)
        done = {each.step_name for each in events if each.event_type == "step_completed"}
        assert header.status in {"completed", "failed"}, header
        assert director.futures.instances.verify(header.id).result(60).differences == []
        times = sum(times for key, times in paid.items() if str(key).startswith(str(header.id)))
        assert times == ("pay" in done), (header.id, times, [(step.name, step.status) for step in steps])
        if header.status == "completed":
            result = director.run(header.id).result(60)
            assert isinstance(result, dict)
            assert (result["list"], "spoilt" in result) == ([header.key.removeprefix("trip-")], False)
            assert deeds[f"shipped {header.id}"] >= 1
        else:
            assert deeds[f"released {header.id}"] >= ("reserve" in done)
            assert deeds[f"refunded {header.id}"] >= ("pay" in done)
            assert {step.status for step in steps if step.name in {"reserve", "pay"}} <= {
                "rolled_back",
                "failed",
                "skipped",
            }


def _trips(scene: Stage) -> list[InstanceInfo]:
    found: list[InstanceInfo] = []
    last: InstanceInfo | None = None
    while page := scene.director.futures.instances.list(definition="trip", limit=_ALL, before=last).result(60):
        found += page
        last = page[-1]
    return found


# -- the read model, and health


def seen(scene: Stage) -> list[tuple[object, ...]]:
    """The events that the read model knows."""
    return rows(scene, "select instance, sequence from chaos_seen order by instance, sequence")


def happened(scene: Stage) -> list[tuple[object, ...]]:
    """The events that there are."""
    schema = "" if scene.url.startswith("sqlite") else "standfast."
    found = rows(scene, f"select instance, sequence from {schema}events")
    return sorted((str(instance), sequence) for instance, sequence in found)


def rows(scene: Stage, statement: str) -> list[tuple[object, ...]]:
    """What the database answers to the test's own question."""
    if scene.url.startswith("sqlite"):
        connection: sqlite3.Connection | psycopg.Connection = sqlite3.connect(scene.url.removeprefix("sqlite:///"))
    else:
        connection = psycopg.connect(scene.url)
    try:
        return list(connection.execute(statement).fetchall())
    finally:
        connection.close()


def _judge_health(scene: Stage) -> None:
    """Every process that lived through an outage said that it is not well while it lasted."""
    for spell in scene.spells:
        for path in sorted(scene.folder.glob("health-*")):
            told = health_of(scene, path.name)
            if not told:
                continue  # It was killed before it could say a word.
            lived_through = told[0].at < spell.begun and told[-1].at > spell.ended
            late = spell.begun + HEALTH_BOUND.total_seconds()
            during = [each for each in told if late < each.at < spell.ended]
            if not during and _was_starved(told, spell.ended):
                continue
            assert not lived_through or any(not each.is_healthy for each in during), (
                path.name,
                spell,
                during[-1:],
                (scene.folder / path.name.replace("health", "slow")).read_text(encoding="utf-8"),
            )


def _was_starved(told: list[Sample], at: float) -> bool:
    """Whether the machine gave a process no time to speak: what it said next, it said quickly."""
    after = next((each for each in told if each.at >= at), None)
    return after is not None and after.took < SPOKEN_WITHIN


def health_of(scene: Stage, name: str) -> list[Sample]:
    """What a process said about itself."""
    book = scene.folder / name
    lines = book.read_text().splitlines() if book.exists() else []  # One that has just begun has said nothing yet.
    return [msgspec.json.decode(line, type=Sample) for line in lines]
