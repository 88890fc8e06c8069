"""Who may do what with processes, by roles, by claims and by the directory; the same for operators' calls."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest

from app.processes.acting import INPUT, published
from standfast import (
    Actor,
    Capabilities,
    ClaimedCapabilities,
    DefinitionError,
    Engine,
    ForbiddenError,
    RejectedError,
    RequestContext,
    Saga,
    load_processes,
)
from standfast.app.api.sync import Calls
from standfast.kernel.ids import InstanceId
from support.engines import Live, Place

GRANTED = Capabilities(
    {
        "clerk": ["orders:start"],
        "approver": ["orders:approve"],
        "chief": ["orders:*"],
        "operator": ["execution:*", "orders:cancel"],
    },
    tenants={"strict": {"clerk": []}},
)
SCENE = [GRANTED, ClaimedCapabilities("permissions")]


def of(engine: Engine, *roles: str, name: str = "ann", tenant: str = "default", claims: Any = None) -> Calls:
    """The calls of somebody with these roles."""
    actor = Actor(id=name, roles=frozenset(roles))
    return engine.acting(RequestContext(tenant=tenant, actor=actor, claims=claims or {}))


def begun(engine: Engine, **given: object) -> InstanceId:
    """An order."""
    return engine.processes.start("orders.approval", {**INPUT, **given}, patience=0).id


@pytest.mark.row("P-060", "P-066", "P-121", "P-162", "C-44")
def test_a_role_brings_its_capabilities_along(place: Place) -> None:
    """To start, to answer and to cancel; a role that is granted nothing, or none at all, is refused each of them, and changes nothing."""
    engine = place.engine(capabilities=SCENE)
    published(engine)
    started = of(engine, "clerk").processes.start("orders.approval", INPUT)
    refusals: list[Callable[[Calls], object]] = [
        lambda calls: calls.processes.start("orders.approval", INPUT),
        lambda calls: calls.processes.advance(started.id, "approved"),
        lambda calls: calls.processes.cancel(started.id),
    ]
    for refused in refusals:
        for roles in ((), ("stranger",)):
            with pytest.raises(ForbiddenError) as error:
                refused(of(engine, *roles, name="eve"))
            assert error.value.reason == "FORBIDDEN"
    assert engine.processes.list().total == 1
    assert engine.processes.get(started.id).instance.version == 1
    of(engine, "approver", name="bob").processes.advance(started.id, "approved")
    engine.drain()
    assert engine.processes.get(started.id).instance.outcome == "approved"
    other = begun(engine)
    assert of(engine, "operator").processes.cancel(other).status == "cancelled"


@pytest.mark.row("P-060")
def test_a_tenant_has_its_own_word_on_a_role(place: Place) -> None:
    """What it grants takes the place of what all have."""
    engine = place.engine(capabilities=SCENE)
    published(engine)
    assert of(engine, "clerk", tenant="loose").processes.start("orders.approval", INPUT).tenant_id == "loose"
    with pytest.raises(ForbiddenError):
        of(engine, "clerk", tenant="strict").processes.start("orders.approval", INPUT)


@pytest.mark.row("P-158")
def test_what_is_given_says_nothing_about_who_gives_it(place: Place) -> None:
    """Tenant, partition, subject and capabilities are those of the request, whatever names stand in the input."""
    engine = place.engine(capabilities=SCENE)
    published(engine)
    fake = {
        **INPUT,
        "tenant_id": "other",
        "partition_id": "p",
        "subject_id": "root",
        "capabilities": ["*"],
        "roles": ["chief"],
        "claims": {"permissions": ["*"]},
    }
    seen = of(engine, "clerk").processes.start("orders.approval", fake)
    assert (seen.tenant_id, seen.partition_id, seen.subject_id) == ("default", "", "ann")
    with pytest.raises(ForbiddenError):
        of(engine, "clerk").processes.advance(seen.id, "approved", fake)
    with pytest.raises(ForbiddenError):
        of(engine).processes.start("orders.approval", fake)


@pytest.mark.row("P-068", "P-122", "C-46")
@pytest.mark.row("G-45")
def test_a_guard_that_is_missing_closes_the_way(place: Place) -> None:
    """Without the capability of the step it is forbidden; without that of the way there is no way, and only who is asked learns why."""
    engine = place.engine(capabilities=SCENE)
    published(engine)
    large = begun(engine, total=5000)
    approver = of(engine, "approver", name="bob")
    with pytest.raises(RejectedError) as refused:
        approver.processes.advance(large, "approved")
    assert refused.value.reason == "INVALID_TRANSITION"
    whys = {each.event: each.why_not for each in approver.processes.get(large).choices}
    assert whys["approved"] == "it needs the capability 'orders:large'"
    assert of(engine, name="eve").processes.get(large).choices == []
    chief = of(engine, "approver", "chief", name="cat")
    assert {each.event for each in chief.processes.get(large).choices if each.is_allowed} >= {"approved", "rejected"}
    chief.processes.advance(large, "approved")


def test_claims_of_a_request_count(place: Place) -> None:
    """Those of the claim that the engine was told of, for this request and no other."""
    engine = place.engine(capabilities=SCENE)
    published(engine)
    claimed = of(engine, claims={"permissions": ["orders:start"], "scope": "*"})
    assert claimed.processes.start("orders.approval", INPUT).subject_id == "ann"
    with pytest.raises(ForbiddenError):
        claimed.processes.advance(begun(engine), "approved")
    with pytest.raises(ForbiddenError):
        of(engine).processes.start("orders.approval", INPUT)


@pytest.mark.row("P-060", "P-066", "P-122")
def test_roles_of_the_directory_count_too(place: Place) -> None:
    """Whoever is granted one there may do what it may do, and no longer once it is taken away; nobody has to say it in the request."""
    engine = place.engine(capabilities=SCENE)
    published(engine)
    for name, role in (("dan", "clerk"), ("bob", "approver"), ("cat", "chief"), ("olga", "operator")):
        engine.directory.put(name)
        engine.directory.grant(name, role)
    started = of(engine, name="dan").processes.start("orders.approval", INPUT)
    assert {each.event for each in of(engine, name="bob").processes.get(started.id).choices if each.is_allowed} == {
        "approved",
        "rejected",
        "returned",
    }
    of(engine, name="bob").processes.advance(started.id, "approved")
    engine.drain()
    other = begun(engine)
    assert of(engine, name="cat").processes.get(other).may_cancel
    assert not of(engine, name="dan").processes.get(other).may_cancel
    assert of(engine, name="olga").processes.cancel(other).status == "cancelled"
    engine.directory.revoke("dan", "clerk")
    with pytest.raises(ForbiddenError):
        of(engine, name="dan").processes.start("orders.approval", INPUT)


SAGA = Saga("plain").step("one", lambda: None).build()


@pytest.mark.row("C-44", "R-098")
@pytest.mark.parametrize("is_granted", [True, False])
@pytest.mark.parametrize(
    "call",
    [
        lambda calls, run: calls.runs.list(),
        lambda calls, run: calls.run(run).describe(),
        lambda calls, run: calls.run(run).pause(),
        lambda calls, run: calls.pauses.pause("plain"),
        lambda calls, run: calls.dead_letters.list(),
        lambda calls, run: calls.instances.list(),
    ],
)
def test_operators_have_their_rights_from_the_same_place(
    place: Place, call: Callable[[Calls, InstanceId], object], *, is_granted: bool
) -> None:
    """What a role may do counts for workflows of every kind, also if only the directory knows of the role."""
    engine = place.engine(capabilities=SCENE).register(SAGA)
    engine.directory.put("olga")
    engine.directory.grant("olga", "operator" if is_granted else "clerk")
    run = engine.start("plain").id
    if is_granted:
        call(of(engine, name="olga"), run)
        return
    for calls in (of(engine, name="olga"), of(engine, "clerk", name="guest")):
        with pytest.raises(ForbiddenError):
            call(calls, run)


def test_a_deactivated_person_has_no_rights(place: Place) -> None:
    """Whatever the request says."""
    engine = place.engine(capabilities=SCENE)
    published(engine)
    engine.directory.put("dan")
    engine.directory.grant("dan", "clerk")
    engine.directory.deactivate("dan")
    with pytest.raises(ForbiddenError):
        of(engine, "clerk", name="dan").processes.start("orders.approval", INPUT)


def test_calls_wait_for_the_directory_elsewhere(live: Live) -> None:
    """In an engine with threads it is asked on a thread for reading, and the call goes on from there."""
    engine = live.engine(capabilities=SCENE)
    published(engine)
    for name, role in (("dan", "clerk"), ("bob", "approver")):
        engine.directory.put(name)
        engine.directory.grant(name, role)
    with engine:
        started = of(engine, name="dan").processes.start("orders.approval", INPUT)
        done = of(engine, name="bob").processes.advance(started.id, "approved")
        assert (done.status, done.outcome) == ("completed", "approved")
        with pytest.raises(ForbiddenError):
            of(engine, name="bob").processes.start("orders.approval", INPUT)


@pytest.mark.row("C-43")
def test_who_decided_is_told_by_the_trail_and_not_by_the_input(place: Place) -> None:
    """The state may name another one as approver; the trail and the question name who it was."""
    engine = place.engine(capabilities=SCENE)
    published(engine)
    order = begun(engine)
    of(engine, "approver", name="bob").processes.advance(order, "approved", {"approved_by": "the pope"})
    engine.drain()
    assert engine.processes.get(order).instance.state["approved_by"] == "the pope"
    approved = [each.actor_id for each in engine.processes.events(order) if each.event == "approved"]
    assert approved == ["bob"]
    assert [
        each.decided_by for task in engine.run(order).tasks() for each in engine.tasks.get(task.step_id).decisions
    ] == ["bob"]


def test_roles_of_the_directory_count_in_a_transaction_of_the_caller(live: Live) -> None:
    """The directory is asked while the transaction is open, and neither waits for the other."""
    engine = live.engine(capabilities=SCENE)
    published(engine)
    engine.directory.put("dan")
    engine.directory.grant("dan", "clerk")
    is_sqlite = live.url.startswith("sqlite")
    connection: Any = sqlite3.connect(live.url.removeprefix("sqlite:///")) if is_sqlite else psycopg.connect(live.url)
    with closing(connection):
        connection.execute("begin immediate" if is_sqlite else "select 1")
        with engine.within(connection, request=RequestContext(actor=Actor(id="dan"))) as unit:
            run = unit.start("orders.approval", INPUT)
        with (
            engine.within(connection, request=RequestContext(actor=Actor(id="eve"))) as unit,
            pytest.raises(ForbiddenError),
        ):
            unit.start("orders.approval", INPUT)
        connection.commit()
    assert engine.processes.get(run.id).instance.subject_id == "dan"


LISTS = """
domain: d
workflows:
  - id: p
    capabilities: {start: [orders:start, orders:sign]}
    steps: [{id: r, type: action, capability: [orders:approve, orders:sign]}, {id: x, type: terminal}]
    transitions: [{from: r, event: go, to: x}]
"""


@pytest.mark.row("P-066", "P-010", "P-011")
def test_of_a_list_of_capabilities_all_are_needed(place: Place) -> None:
    """A start and a step may name several capabilities: who lacks one of them is refused, and told which are needed."""
    engine = place.engine()
    for definition in load_processes(LISTS):
        engine.register(definition)

    def having(*capabilities: str) -> Calls:
        actor = Actor(id="ann", capabilities=frozenset(capabilities))
        return engine.acting(RequestContext(actor=actor))

    for some in ((), ("orders:start",), ("orders:sign",)):
        with pytest.raises(ForbiddenError, match="the capabilities 'orders:start' and 'orders:sign'"):
            having(*some).processes.start("p")
    run = having("orders:start", "orders:sign").processes.start("p").id
    for some in (("orders:approve",), ("orders:sign",)):
        with pytest.raises(ForbiddenError, match="the capabilities 'orders:approve' and 'orders:sign'"):
            having(*some).processes.advance(run, "go")
    assert having("orders:*").processes.advance(run, "go").current_step == "x"


def test_a_list_of_capabilities_that_holds_nothing_is_refused() -> None:
    """It would mean nobody, or everybody; one that holds one is that one."""
    for wrong in ("start: [orders:start, orders:sign]", "capability: [orders:approve, orders:sign]"):
        with pytest.raises(DefinitionError, match=r"is empty, so it cannot be (granted|answered)"):
            load_processes(LISTS.replace(wrong, f"{wrong.partition(':')[0]}: []"))
    (one,) = load_processes(LISTS.replace("[orders:approve, orders:sign]", "[orders:approve]"))
    (same,) = load_processes(LISTS.replace("[orders:approve, orders:sign]", "orders:approve"))
    assert one.graph.hash == same.graph.hash


@pytest.mark.parametrize(
    ("start", "is_taken"),
    [("[orders:start, orders:sign]", True), ("[a, orders:sign, orders:start]", True), ("orders:start", False)],
)
def test_who_replaces_a_shared_process_asks_for_all_of_a_list(place: Place, *, start: str, is_taken: bool) -> None:
    """A tenant's process of the same name may ask for more capabilities than the shared one, and never for fewer."""
    engine = place.engine()
    shared = LISTS.replace("    capabilities:", "    replaceable: true\n    capabilities:")
    for definition in load_processes(shared):
        engine.register(definition)
    own = LISTS.replace("  - id: p\n", "  - id: p\n    version: 2\n").replace("[orders:start, orders:sign]", start, 1)
    found = engine.as_tenant("acme").definitions.validate_file(own)
    assert (found.is_valid, {each.code for each in found.findings}) == (
        is_taken,
        set() if is_taken else {"fewer_rights"},
    )
