"""What people leave behind has the rights that they have when it acts: batches, schedules and resume requests after a role was taken away."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import pytest

from api import tokens
from api.tokens import token
from api.world import GENEROUS, Client
from people.test_host_directory import Personnel
from standfast import Actor, Calls, Capabilities, ClaimedCapabilities, RequestContext, Saga, Settings
from standfast.http import create_app
from standfast.testing import ManualEngine
from support.engines import AT_ONCE, Place
from support.samples import Do, Puppet

HOUR = timedelta(hours=1)
CHIEF = Capabilities({"chief": ["*"]})
QUICKLY = Settings(command_retry=AT_ONCE)
ANN = RequestContext(actor=Actor(id="ann"))


class Way(NamedTuple):
    """How ann has the right, and how it ends."""

    begin: Callable[[Place], tuple[ManualEngine, Calls]]
    end: Callable[[ManualEngine], object]


def peopled(engine: ManualEngine, *roles: str) -> ManualEngine:
    """Ann is in the directory with these roles, and bob is the chief of somebody else."""
    for name in ("ann", "bob"):
        engine.directory.put(name)
    engine.directory.grant("bob", "chief")
    for role in roles:
        engine.directory.grant("ann", role)
    return engine


def by_directory(place: Place) -> tuple[ManualEngine, Calls]:
    """The directory grants the role, and a resolver says what it may do."""
    engine = peopled(place.engine(QUICKLY, capabilities=CHIEF), "chief")
    return engine, engine.acting(ANN)


def by_period(place: Place) -> tuple[ManualEngine, Calls]:
    """The same, for half an hour."""
    engine = peopled(place.engine(QUICKLY, capabilities=CHIEF))
    engine.directory.grant("ann", "chief", ends_at=place.clock.now() + HOUR / 2)
    return engine, engine.acting(ANN)


def by_front_end(place: Place) -> tuple[ManualEngine, Calls]:
    """The directory grants the role, and the front end says what it may do; the application has no resolver."""
    engine = peopled(place.engine(QUICKLY), "chief")
    told = Actor(id="ann", roles=frozenset({"chief"}), capabilities=frozenset({"*"}))
    request = RequestContext(actor=told, brought=Actor(id="ann"), role_capabilities={"chief": frozenset({"*"})})
    return engine, engine.acting(request)


def by_key(place: Place) -> tuple[ManualEngine, Calls]:
    """The same for a bearer of a key that has no right itself."""
    engine = peopled(place.engine(QUICKLY, capabilities=CHIEF), "chief")
    made = engine.keys.create("a", actor="ann", kind="user", capabilities=["x:y"])
    return engine, engine.acting(
        RequestContext(actor=Actor(id="ann", key=made.key.id, capabilities=frozenset({"x:y"})))
    )


def by_both(place: Place) -> tuple[ManualEngine, Calls]:
    """The request says the role, and the directory grants it as well."""
    engine = peopled(place.engine(QUICKLY), "chief")
    brought = Actor(id="ann", roles=frozenset({"chief"}))
    told = Actor(id="ann", roles=frozenset({"chief"}), capabilities=frozenset({"*"}))
    request = RequestContext(actor=told, brought=brought, role_capabilities={"chief": frozenset({"*"})})
    return engine, engine.acting(request)


def by_host(place: Place) -> tuple[ManualEngine, Calls]:
    """A directory of the host grants the role."""
    people = Personnel()
    engine = place.engine(QUICKLY, directory=people, capabilities=Capabilities({"boss": ["*"]}))
    engine.personnel = people  # type: ignore[attr-defined]
    return engine, engine.acting(ANN)


def fired(engine: ManualEngine) -> None:
    """The host takes the role away."""
    engine.personnel.roles["ann"] = set()  # type: ignore[attr-defined]


WAYS = {
    "directory": Way(by_directory, lambda e: e.directory.revoke("ann", "chief")),
    "period": Way(by_period, lambda e: e.advance(HOUR * 3 / 4)),
    "left": Way(by_directory, lambda e: e.directory.deactivate("ann")),
    "front end": Way(by_front_end, lambda e: e.directory.revoke("ann", "chief")),
    "key": Way(by_key, lambda e: e.directory.revoke("ann", "chief")),
    "both": Way(by_both, lambda e: e.directory.revoke("ann", "chief")),
    "host": Way(by_host, fired),
}
ASKED = ("buffered", "one_by_one", "at_once")
"""What somebody has a schedule start: a time that waits for another run, and periods."""
VERBS = ("cancel", "abort", "pause", "resume", "start", "requeue", "discard")


def registered(engine: ManualEngine) -> None:
    """`paid` waits, `broken` gives up at once."""

    def fail() -> None:
        raise ValueError("broken")

    engine.register(Saga("paid").wait_for("wait", signal="paid").build())
    engine.register(Saga("broken", dlq=True).step("s", fail, attempts=1).build())
    engine.register(Puppet(lambda _state, _command, _moment: fail()))  # type: ignore[arg-type,return-value]


def standing(engine: ManualEngine) -> list[tuple[str, str]]:
    """Every run, and how it stands."""
    return sorted((str(each.id), each.status) for each in engine.runs.list(limit=100).items)


@pytest.mark.row("E-664")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", VERBS)
def test_items_of_a_batch_are_refused_once_its_owner_lost_the_right(place: Place, verb: str, way: str) -> None:
    """Items that are tried later have the rights of later, whichever way these came; the first one was tried in time and is done."""
    engine, ann = WAYS[way].begin(place)
    registered(engine)
    runs = [engine.start("paid") for _ in range(3)]
    for _ in range(3):
        engine.start("broken")
        engine.deciders.submit(Puppet, Do("p", "x"))
    engine.advance(HOUR / 60)
    if verb == "resume":
        for each in runs:
            each.pause("hold")
    about: dict[str, object] = {"runs": [each.id for each in runs]}
    if verb == "start":
        about = {"definition": "paid", "inputs": [{}, {}, {}]}
    elif verb in {"requeue", "discard"}:
        wanted = "broken" if verb == "requeue" else "puppet"
        about = {"letters": [each for each in engine.dead_letters.list() if each.definition == wanted]}
    batch = ann.batches.begin(verb, per_second=1 / 3600, **about)  # type: ignore[arg-type]
    engine.drain()
    assert [each.status in {"refused", "waiting"} for each in engine.batches.items(batch.id)] == [False, True, True]
    WAYS[way].end(engine)
    before, letters = standing(engine), engine.dead_letters.list()
    engine.advance(3 * HOUR)
    later = engine.batches.items(batch.id)[1:]
    assert [each.status for each in later] == ["refused", "refused"]
    assert all("ann" in each.detail for each in later)
    assert (standing(engine), engine.dead_letters.list()) == (before, letters)


@pytest.mark.row("E-664")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("why", ["time", "manual", "catch_up", "backfill"])
def test_a_schedule_starts_nothing_once_its_owner_lost_the_right(place: Place, why: str, way: str) -> None:
    """A time, a trigger, a period and what is made up for start nothing for whoever may not start it any more, and the fire says so."""
    engine, ann = WAYS[way].begin(place)
    registered(engine)
    ann.schedules.put("s", "paid", every=HOUR, overlap="allow_all", catch_up="one")
    WAYS[way].end(engine)
    begin = place.clock.now()
    if why == "manual":
        engine.schedules.trigger("s")
    elif why == "backfill":
        engine.schedules.backfill("s", begin - 3 * HOUR, begin + 3 * HOUR, at_once=True)
    elif why == "catch_up":
        place.clock.move(5 * HOUR)
    if why in {"manual", "backfill"}:
        engine.drain()
    else:
        engine.advance(2 * HOUR)
    fires = [each for each in engine.schedules.fires("s") if each.why == why and each.status != "missed"]
    assert fires
    assert {(each.status, "ann" in each.detail) for each in fires} == {("refused", True)}
    assert standing(engine) == []


@pytest.mark.row("E-664")
@pytest.mark.parametrize(("what", "way"), [each for each in product(ASKED, WAYS) if each != ("at_once", "period")])
def test_what_somebody_has_a_schedule_start_ends_with_their_right(place: Place, what: str, way: str) -> None:
    """The schedule is another's. Whoever triggered it, or has a period made up for, must still be allowed to when each run starts, or the time is refused."""
    engine, ann = WAYS[way].begin(place)
    registered(engine)
    overlap: Literal["allow_all", "buffer_one"] = "buffer_one" if what == "buffered" else "allow_all"
    engine.schedules.put("s", "paid", cron="0 0 1 1 *", overlap=overlap)
    year = timedelta(days=366)
    begin = place.clock.now()
    if what == "buffered":
        engine.schedules.trigger("s")
        engine.drain()
        ann.schedules.trigger("s")
    else:
        ann.schedules.backfill("s", begin - 3 * year, begin, at_once=what != "one_by_one")
    if what in {"buffered", "one_by_one"}:
        engine.drain()
        assert len(standing(engine)) == 1
    WAYS[way].end(engine)
    for run in engine.runs.list().items:
        engine.run(run.id).signal("paid")
    engine.drain()
    later = [each for each in engine.schedules.fires("s") if each.status != "completed"]
    assert later
    assert {(each.status, "ann" in each.detail) for each in later} == {("refused", True)}
    assert len(standing(engine)) == (1 if what in {"buffered", "one_by_one"} else 0)
    assert [each.kind for each in engine.admin.incidents()] == ["refused_schedule"]


@pytest.mark.parametrize("way", [each for each in WAYS if each not in {"host", "period"}])
def test_a_resume_request_is_refused_once_who_asked_lost_the_right(place: Place, way: str) -> None:
    """It is carried out later, with the rights of later. What a directory of the host said counts as it was said: no commit can ask it."""
    engine, ann = WAYS[way].begin(place)
    registered(engine)
    run = engine.start("paid")
    run.pause("hold")
    engine.drain()
    ann.run(run.id).request_resume("later")
    WAYS[way].end(engine)
    engine.advance(HOUR)
    (request,) = run.resume_requests()
    assert (run.describe().status, request.executed_at) == ("paused", None)
    assert request.error_message


def test_rights_that_nobody_can_look_up_count_as_long_as_they_last(place: Place) -> None:
    """Of somebody whom the directory does not have, what came with the request counts until it ends; also what resolvers read in claims."""
    engine = place.engine(QUICKLY, capabilities=ClaimedCapabilities("scope"))
    registered(engine)
    request = RequestContext(actor=Actor(id="eve"), claims={"scope": "*"}, expires_at=place.clock.now() + 5 * HOUR / 2)
    engine.acting(request).schedules.put("s", "paid", every=HOUR, overlap="allow_all")
    for _ in range(4):
        engine.advance(HOUR)
    assert [each.status for each in engine.schedules.fires("s")] == ["refused", "refused", "started", "started"]


def test_who_still_has_the_role_is_served(place: Place) -> None:
    """Nothing that was left behind is refused as long as the right is there, over HTTP with a key too."""
    engine = peopled(place.engine(QUICKLY, capabilities=CHIEF), "chief")
    registered(engine)
    made = engine.keys.create("a", actor="ann", kind="user", capabilities=["schedule:manage", "execution:start"])
    client = Client(create_app(engine, GENEROUS), made.secret)
    try:
        put = client.ask("PUT", "/api/v1/schedules/s", json={"workflow": "paid", "every_seconds": 3600})
        assert put.is_success, put.text
    finally:
        client.close()
    engine.advance(HOUR)
    assert [each.status for each in engine.schedules.fires("s")] == ["started"]


def test_a_schedule_that_was_refused_is_an_incident(place: Place) -> None:
    """Operators are told in the incidents, health and metrics, until a time of it is not refused."""
    engine, ann = by_directory(place)
    registered(engine)
    ann.schedules.put("s", "paid", every=HOUR, overlap="allow_all")
    engine.advance(HOUR)
    assert engine.admin.incidents() == []
    engine.directory.revoke("ann", "chief")
    engine.advance(HOUR)
    engine.advance(HOUR / 60)
    (incident,) = engine.admin.incidents()
    assert (incident.kind, incident.instance) == ("refused_schedule", engine.schedules.get("s").instance)
    assert "'ann' may not" in incident.told
    assert (len(engine.health().incidents), engine.incident_counts()["refused_schedule"]) == (1, 1)
    engine.schedules.put("s", "paid", every=HOUR, overlap="allow_all")
    engine.advance(HOUR)
    engine.advance(HOUR / 60)
    assert (engine.admin.incidents(), engine.health().incidents) == ([], [])


def test_an_incident_names_the_partition_of_its_schedule(place: Place) -> None:
    """Whoever mends it has to name that: a schedule of the same name without a partition is another one."""
    engine, _ = by_directory(place)
    registered(engine)
    north = engine.acting(RequestContext(partition="north", actor=Actor(id="ann")))
    north.schedules.put("s", "paid", every=HOUR)
    engine.directory.revoke("ann", "chief")
    engine.advance(HOUR)
    engine.advance(HOUR / 60)
    (incident,) = engine.admin.incidents()
    assert (incident.partition, "'s' of the partition 'north'" in incident.told) == ("north", True)
    assert "in a request for the partition 'north'" in incident.remedy


@pytest.mark.row("E-664")
@pytest.mark.parametrize("verb", ["start", "cancel", "abort"])
def test_what_a_front_end_demanded_is_demanded_each_time(place: Place, tmp_path: Path, verb: str) -> None:
    """The permission of the HTTP route is that of the role: without it a workflow that anybody may start is not started, and no run is ended."""
    engine = peopled(place.engine(QUICKLY), "clerk")
    registered(engine)
    options = msgspec.structs.replace(
        GENEROUS,
        issuers=(tokens.issuer(tmp_path),),
        uses_directory=True,
        roles={"clerk": frozenset({"execution:*"})},
    )
    runs = [str(engine.start("paid").id) for _ in range(2)]
    ann = Client(create_app(engine, options), token(sub="ann", tenant="default", scope="schedule:manage batch:manage"))
    body: dict[str, object] = {"verb": verb, "runs": runs, "per_second": 1 / 3600}
    if verb == "start":
        body = {"verb": verb, "definition": "paid", "inputs": [{}, {}], "per_second": 1 / 3600}
    try:
        for method, path, said in (
            ("PUT", "/api/v1/schedules/s", {"workflow": "paid", "every_seconds": 3600, "overlap": "allow_all"}),
            ("POST", "/api/v1/batches", body),
        ):
            answer = ann.ask(method, path, json=said)
            assert answer.is_success, answer.text
    finally:
        ann.close()
    engine.advance(HOUR / 2)
    engine.directory.revoke("ann", "clerk")
    engine.advance(2 * HOUR)
    assert {each.status for each in engine.schedules.fires("s")} == {"refused"}
    (batch,) = engine.batches.list()
    first, second = engine.batches.items(batch.id)
    assert (first.status == "refused", second.status) == (False, "refused")
