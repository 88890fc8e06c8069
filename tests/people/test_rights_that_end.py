"""Nobody decides from a place that they had by a right which has ended, wherever the people are kept; others can, or the run says that nobody can."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple, Protocol

import pytest
from msgspec.structs import replace

from app.processes.acting import ends, process, registered
from standfast import Actor, Capabilities, Directory, ForbiddenError, RejectedError, Saga, ask
from standfast.kernel.ids import InstanceId
from standfast.kernel.people import Absence, Delegation, DirectoryLook, Grant, Principal
from standfast.people.directory import StaticDirectory
from standfast.people.directory_files import Roster
from standfast.testing import ManualEngine
from support.engines import Place

BEGIN = datetime(2029, 1, 1, tzinfo=UTC)
PEOPLE = ("ann", "bob", "cat", "dora", "sue", "rita")
OPS = Actor(id="ops", capabilities=frozenset({"task:*"}))


class Rights(NamedTuple):
    """Who there is, and what they may do."""

    grants: tuple[str, ...]
    """Holders of finance."""
    deputies: tuple[tuple[str, str, str], ...] = ()
    """Who stands in for whom, for which role; empty for all."""
    away: tuple[str, ...] = ()


class World(Protocol):
    """A place where people are kept, and how their rights end there."""

    engine: ManualEngine

    def revoke(self, name: str) -> None:
        """They lose the role."""

    def deactivate(self, name: str) -> None:
        """They leave."""

    def end(self, giver: str) -> None:
        """Nobody stands in for them any more."""


class Own:
    """The engine's own directory."""

    def __init__(self, place: Place, rights: Rights, expiring: str, **options: Any) -> None:
        self.engine = place.engine(**options)
        until = place.clock.now() + timedelta(hours=1)
        calls = self.engine.directory
        for name in PEOPLE:
            calls.put(name)
        for name in rights.grants:
            calls.grant(name, "finance", ends_at=until if expiring == f"grant {name}" else None)
        self._deputies = {}
        for giver, to, role in rights.deputies:
            is_expiring = expiring == f"deputy {giver}"
            self._deputies[giver] = calls.delegate(giver, to, role=role, ends_at=until if is_expiring else None).id
        for name in rights.away:
            calls.absent(name)

    def revoke(self, name: str) -> None:
        """By a call."""
        self.engine.directory.revoke(name, "finance")

    def deactivate(self, name: str) -> None:
        """By a call."""
        self.engine.directory.deactivate(name)

    def end(self, giver: str) -> None:
        """By a call."""
        self.engine.directory.end_delegation(self._deputies[giver])


def roster(rights: Rights, expiring: str, until: datetime) -> Roster:
    """The same people as a list."""

    def ends(what: str) -> datetime | None:
        return until if expiring == what else None

    return Roster(
        principals=[Principal(id=each) for each in PEOPLE],
        grants=[
            Grant(principal=name, role="finance", begins_at=BEGIN, ends_at=ends(f"grant {name}"))
            for name in rights.grants
        ],
        delegations=[
            Delegation(id=number, giver=giver, receiver=to, role=role, begins_at=BEGIN, ends_at=ends(f"deputy {giver}"))
            for number, (giver, to, role) in enumerate(rights.deputies, 1)
        ],
        absences=[Absence(id=1, principal=name, begins_at=BEGIN) for name in rights.away],
    )


class File(Own):
    """People of a file, whose rights end by time alone."""

    def __init__(self, place: Place, rights: Rights, expiring: str, **options: Any) -> None:
        people = StaticDirectory(roster(rights, expiring, place.clock.now() + timedelta(hours=1)))
        self.engine = place.engine(directory=people, **options)


class Personnel(Directory):
    """People of the host, which changes them unseen."""

    def __init__(self, people: Roster) -> None:
        self.people = people

    @contextmanager
    def looking(self, tenant: str) -> Iterator[DirectoryLook]:
        """The people as they are now."""
        del tenant
        with StaticDirectory(self.people).looking("default") as look:
            yield look


class Quick(Personnel):
    """The same, as quick as a dictionary."""

    may_hang = False


class Host:
    """A directory of the host."""

    kind: type[Personnel] = Personnel

    def __init__(self, place: Place, rights: Rights, expiring: str, **options: Any) -> None:
        self._people = self.kind(roster(rights, expiring, place.clock.now() + timedelta(hours=1)))
        self.engine = place.engine(directory=self._people, **options)

    def revoke(self, name: str) -> None:
        """The engine hears nothing of it."""
        now = self._people.people
        self._people.people = replace(now, grants=[each for each in now.grants if each.principal != name])

    def deactivate(self, name: str) -> None:
        """The engine hears nothing of it."""
        now = self._people.people
        left = [replace(each, is_active=each.is_active and each.id != name) for each in now.principals]
        self._people.people = replace(now, principals=left)

    def end(self, giver: str) -> None:
        """The engine hears nothing of it."""
        now = self._people.people
        self._people.people = replace(now, delegations=[each for each in now.delegations if each.giver != giver])


class QuickHost(Host):
    """One that answers at once."""

    kind = Quick


class Way(NamedTuple):
    """How somebody comes to decide a question."""

    rights: Rights
    asks: dict[str, Any]
    decider: str
    ends: tuple[str, ...]
    hands: tuple[tuple[str, str], ...] = ()
    """Who hands it on to whom, before the right ends."""
    claims: bool = False


FIN = ("ann", "sue")
FOR_ROLE: dict[str, Any] = {"role": "finance"}
ANN_IS_OUT = ("revoke ann", "deactivate ann", "expire grant ann")
DEPUTY = Rights(FIN, (("ann", "cat", ""),))
WAYS: dict[str, Way] = {
    "own name": Way(Rights(FIN), {"ask": "user:ann"}, "ann", ("deactivate ann",)),
    "role": Way(Rights(FIN), FOR_ROLE, "ann", ANN_IS_OUT),
    "claim": Way(Rights(FIN), FOR_ROLE, "ann", ANN_IS_OUT, claims=True),
    "claim of a stand-in": Way(
        Rights(FIN, (("ann", "cat", "finance"),), ("ann",)),
        FOR_ROLE,
        "cat",
        ("revoke ann", "end ann", "deactivate cat", "expire deputy ann", "expire grant ann"),
        claims=True,
    ),
    "delegation": Way(Rights(FIN), FOR_ROLE, "dora", (*ANN_IS_OUT, "deactivate dora"), (("ann", "dora"),)),
    "two delegations": Way(
        Rights(FIN), FOR_ROLE, "dora", (*ANN_IS_OUT, "deactivate bob"), (("ann", "bob"), ("bob", "dora"))
    ),
    "three delegations": Way(
        Rights(FIN),
        FOR_ROLE,
        "dora",
        (*ANN_IS_OUT, "deactivate bob", "deactivate cat"),
        (("ann", "bob"), ("bob", "cat"), ("cat", "dora")),
    ),
    "delegation of one's own": Way(Rights(FIN), {"ask": "user:ann"}, "dora", ("deactivate ann",), (("ann", "dora"),)),
    "stand-in": Way(
        DEPUTY, FOR_ROLE, "cat", ("revoke ann", "end ann", "deactivate cat", "expire deputy ann", "expire grant ann")
    ),
    "stand-in by name": Way(DEPUTY, {"ask": "user:ann"}, "cat", ("end ann", "deactivate cat", "expire deputy ann")),
    "delegation of a stand-in": Way(
        DEPUTY,
        FOR_ROLE,
        "dora",
        ("revoke ann", "end ann", "deactivate cat", "expire deputy ann", "expire grant ann"),
        (("cat", "dora"),),
    ),
    "chain": Way(Rights(FIN), {"chain": "spend"}, "ann", ANN_IS_OUT),
    "delegation in a chain": Way(Rights(FIN), {"chain": "spend"}, "dora", ANN_IS_OUT, (("ann", "dora"),)),
    "pick": Way(Rights(FIN), {"ask": ask("role:finance", pick="all"), "agree": "all"}, "ann", ANN_IS_OUT),
    "pick of another": Way(
        Rights(FIN, (("ann", "cat", ""),), ("ann",)),
        {"ask": ask("role:finance", pick="all"), "agree": "all"},
        "cat",
        ("revoke ann", "end ann", "deactivate cat", "expire deputy ann", "expire grant ann"),
    ),
}
PLACES: dict[str, Callable[..., World]] = {
    "own": Own,
    "file": File,
    "host": Host,
    "quick host": QuickHost,
}
ALSO_QUICK = {"claim", "delegation of a stand-in", "pick of another"}
PAIRS = [(way, where) for way in WAYS for where in PLACES if where != "quick host" or way in ALSO_QUICK]
CASES = [
    (way, end, where) for way, where in PAIRS for end in WAYS[way].ends if where != "file" or end.startswith("expire")
]


def refused(call: Callable[[], object]) -> bool:
    """Whether a call is refused."""
    try:
        call()
    except (ForbiddenError, RejectedError):
        return True
    return False


def decided(engine: ManualEngine, run: InstanceId, task: str, others: list[str]) -> bool:
    """Whether these complete a question."""
    for name in others:
        refused(lambda name=name: engine.acting(name).tasks.approve(task))  # type: ignore[misc]
        engine.drain()
    return engine.run(run).describe().status == "completed"


def asked(world: World, way: Way) -> tuple[InstanceId, str]:
    """The question, as it has come to whoever is to decide it."""
    engine = world.engine
    engine.chains.publish("spend", [{"asks": ["role:finance"]}])
    engine.register(Saga("pay").human("sign", **way.asks).build())
    run = engine.acting("rita").start("pay")
    engine.drain()
    (task,) = run.tasks()
    for giver, to in way.hands:
        engine.acting(giver).tasks.delegate(task, to)
    if way.claims:
        engine.acting(way.decider).tasks.claim(task)
        assert refused(lambda: engine.acting("sue").tasks.approve(task))
    assert [each.step_id for each in engine.acting(way.decider).tasks.list(mine=True)] == [task.step_id]
    return run.id, task.step_id


def ended(world: World, end: str) -> None:
    """The right ends."""
    verb, _, name = end.partition(" ")
    if verb == "expire":
        world.engine.advance(minutes=61)
    else:
        getattr(world, verb)(name)


@pytest.mark.row("E-664", "E-682", "R-080")
@pytest.mark.parametrize(("name", "end", "where"), CASES, ids=[f"{w}, {e}, {p}" for w, e, p in CASES])
def test_a_place_ends_with_the_right_that_it_was_come_by(place: Place, name: str, end: str, where: str) -> None:
    """Deciding, claiming and handing on are refused. Those who are left decide, or the run says within three minutes that nobody can."""
    way = WAYS[name]
    world = PLACES[where](place, way.rights, end.removeprefix("expire "))
    engine = world.engine
    run, task = asked(world, way)
    ended(world, end)
    calls = engine.acting(way.decider).tasks
    assert refused(lambda: calls.approve(task))
    assert refused(lambda: calls.reject(task, comment="no"))
    assert way.claims or refused(lambda: calls.claim(task))
    assert refused(lambda: calls.delegate(task, "bob"))
    if end != f"deactivate {way.decider}":
        assert (calls.list(mine=True), calls.counts().own) == ([], 0)
    is_about_ann = end in ANN_IS_OUT or way.decider == "ann"
    others = ["sue"] if is_about_ann else ["sue", "ann"]
    if not decided(engine, run, task, others):
        engine.advance(minutes=3)
        is_stuck = engine.run(run).describe().reason == "no_approver"
        assert is_stuck is not decided(engine, run, task, others)
        assert refused(lambda: calls.approve(task))


@pytest.mark.row("E-664")
@pytest.mark.parametrize(("name", "where"), PAIRS, ids=[f"{w}, {p}" for w, p in PAIRS])
def test_a_place_lasts_as_long_as_the_right(place: Place, name: str, where: str) -> None:
    """As long as nothing has ended whoever was to decide does, also after the engine has looked at it."""
    way = WAYS[name]
    world = PLACES[where](place, way.rights, "")
    run, task = asked(world, way)
    world.engine.advance(minutes=3)
    assert world.engine.run(run).describe().reason == ""
    world.engine.acting(way.decider).tasks.approve(task)
    if way.asks.get("agree") == "all":
        world.engine.acting("sue").tasks.approve(task)
    world.engine.drain()
    assert world.engine.run(run).describe().status == "completed"


@pytest.mark.row("E-664", "R-080")
@pytest.mark.parametrize("where", ["own", "host", "quick host"])
@pytest.mark.parametrize("verb", ["claim", "delegate"])
@pytest.mark.parametrize("by", ["a key of a user", "a key of a service", "a context"])
def test_a_role_that_is_brought_and_granted_ends_with_the_grant(place: Place, by: str, verb: str, where: str) -> None:
    """Ann's key, or her context, brings the role that the directory grants to her too: what she takes or hands on ends as it is revoked."""
    world = PLACES[where](place, Rights(FIN), "")
    engine = world.engine
    run, task = asked(world, WAYS["role"])
    if by == "a context":
        act(engine.acting(Actor(id="ann", roles=frozenset({"finance"}))).tasks, verb, task)
    else:
        kind: Literal["user", "service"] = "user" if by == "a key of a user" else "service"
        made = engine.keys.create("k", actor="ann", kind=kind, roles=["finance"], capabilities=["task:use"])
        bearer = engine.admin.identify(made.secret)
        assert bearer is not None
        act(engine.acting(bearer.bearer).tasks, verb, task)
    cat, sue = engine.acting("cat").tasks, engine.acting("sue").tasks
    assert refused(lambda: sue.approve(task))
    world.revoke("ann")
    assert refused(lambda: cat.approve(task))
    assert cat.list(mine=True) == []
    if verb == "delegate":
        engine.advance(minutes=3)
        assert engine.run(run).describe().reason == "no_approver"
    else:
        sue.approve(task)
        assert engine.run(run).describe().status == "completed"


def act(tasks: Any, verb: str, task: str) -> None:
    """Claims a question, or hands it on to Cat."""
    tasks.claim(task) if verb == "claim" else tasks.delegate(task, "cat")


@pytest.mark.row("E-664", "P-066")
@pytest.mark.parametrize("where", PLACES)
def test_a_stand_in_is_shown_the_choices_that_are_accepted(place: Place, where: str) -> None:
    """Cat stands in for Ann, whose role has what the step takes: the view names the events that an advance takes, as long as she does."""
    resolver = Capabilities({"finance": ["cap.a"]})
    world = PLACES[where](place, Rights(("ann",), (("ann", "cat", ""),)), "", capabilities=resolver)
    step = {"id": "review", "type": "approval", "assignee": {"role": "finance"}, "capability": "cap.a"}
    registered(world.engine, process(step, *ends("done", "no"), ways="review approved done,review rejected no"))
    instance = world.engine.processes.start("w", {}).id
    world.engine.drain()
    cat = world.engine.acting("cat").processes
    assert [(each.event, each.is_allowed) for each in cat.get(instance).choices] == [
        ("approved", True),
        ("rejected", True),
    ]
    if where != "file":
        ann = world.engine.acting("ann").tasks
        ann.claim(ann.list(mine=True)[0])
        assert [each.is_allowed for each in world.engine.acting("cat").processes.get(instance).choices] == [True, True]
        world.end("ann")
        assert cat.get(instance).choices == []
        return
    cat.advance(instance, "approved")
    assert world.engine.processes.get(instance).instance.status == "completed"
