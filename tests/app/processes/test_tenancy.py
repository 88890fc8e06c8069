"""Tenants and partitions: what is of another one is not there, for every call of processes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from uuid import UUID

import pytest

from app.processes.acting import CAT, INPUT, ORDERS, asking, ends, person, process, published
from standfast import Actor, NotFoundError, RejectedError, StandfastError, load_processes
from standfast.app.api.sync import Calls, Processes
from standfast.features.processes.calls import FutureProcesses
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

ROOT = Actor(id="root", capabilities=frozenset({"*"}), roles=frozenset({"approver"}))

OF_ONE: dict[str, Callable[[Processes, InstanceId], object]] = {
    "advance": lambda calls, instance: calls.advance(instance, "approved"),
    "get": lambda calls, instance: calls.get(instance),
    "events": lambda calls, instance: calls.events(instance),
    "cancel": lambda calls, instance: calls.cancel(instance),
    "resume": lambda calls, instance: calls.resume(instance),
}
"""The calls that name an instance."""
OF_NONE = {"start", "list", "expired", "process_timeouts"}


def told(call: Callable[[], object], instance: InstanceId) -> tuple[type, str, str]:
    """How a call fails, with the id taken out."""
    with pytest.raises(StandfastError) as refused:
        call()
    return type(refused.value), refused.value.code, str(refused.value).replace(str(instance), "<id>")


def test_the_list_of_calls_is_complete() -> None:
    """A new call that names an instance has to be judged here too."""
    public = {name for name, _ in inspect.getmembers(FutureProcesses, inspect.isfunction) if not name.startswith("_")}
    assert public == {*OF_ONE, *OF_NONE}
    for name in OF_ONE:
        assert "instance" in inspect.signature(getattr(FutureProcesses, name)).parameters


@pytest.mark.row("P-063", "P-064", "P-071", "P-128", "P-135", "C-42")
@pytest.mark.parametrize("name", OF_ONE)
@pytest.mark.parametrize(
    ("tenant", "partition"), [("t2", "north"), ("t2", ""), ("t1", "south"), ("t1", ""), ("default", "")]
)
def test_what_is_of_another_one_is_not_there(place: Place, name: str, tenant: str, partition: str) -> None:
    """Whoever asks, with every right: nothing tells an instance of another tenant or partition from one that does not exist."""
    engine = place.engine()
    published(engine)
    there = asking(engine, CAT, tenant="t1", partition="north").processes.start("orders.approval", INPUT).id
    before = engine.as_tenant("t1").processes.get(there).instance
    foreign = asking(engine, ROOT, tenant=tenant, partition=partition).processes
    unknown = InstanceId(UUID(int=there.int + 1))
    call = OF_ONE[name]
    seen = told(lambda: call(foreign, there), there)
    assert seen == told(lambda: call(foreign, unknown), unknown)
    assert seen[0] is NotFoundError
    assert engine.as_tenant("t1").processes.get(there).instance == before
    call(asking(engine, ROOT, tenant="t1", partition="north").processes, there) if name != "resume" else None


@pytest.mark.row("P-127", "P-071", "C-42")
def test_a_list_shows_the_own_tenant_and_partition(place: Place) -> None:
    """By every filter; the total counts no others."""
    engine = place.engine()
    published(engine)
    for tenant, partition in (("t1", "north"), ("t1", "south"), ("t2", "north"), ("default", "")):
        asking(engine, CAT, tenant=tenant, partition=partition).processes.start(
            "orders.approval", INPUT, key="k" + tenant + partition
        )
    calls = asking(engine, ROOT, tenant="t1", partition="north").processes
    for page in (
        calls.list(),
        calls.list(status="active"),
        calls.list(workflow_id="orders.approval"),
        calls.list(subject_id="cat"),
        calls.list(role="approver"),
        calls.list(mine=True),
    ):
        assert (page.total, len(page.items)) == (1, 1)
        assert page.items[0].business_key == "kt1north"
    assert calls.list(key="kt2north").total == 0


def version_of(calls: Calls) -> tuple[str, str]:
    """Version and first step of what an unversioned start takes."""
    started = calls.processes.start("orders.approval", INPUT)
    return started.workflow_version, started.current_step


@pytest.mark.row("P-021", "P-024")
def test_a_tenant_may_have_its_own_version_of_a_shared_name(place: Place) -> None:
    """It stands before the shared one for that tenant alone, whatever its number; other tenants cannot start it, nor see that it is there."""
    engine = place.engine()
    published(engine, ORDERS.replace("version: 1", "version: 2\n    replaceable: true"))
    (own,) = load_processes(
        ORDERS.replace("version: 1", "version: 1-acme")
        .replace("id: review", "id: look")
        .replace("from: review", "from: look")
        .replace("to: review", "to: look")
    )
    engine.as_tenant("acme").definitions.publish(own)
    for fresh in (engine, _another(place)):
        assert version_of(asking(fresh, CAT, tenant="acme")) == ("1-acme", "look")
        assert version_of(asking(fresh, CAT, tenant="other")) == ("2", "review")
        assert (
            asking(fresh, CAT, tenant="acme").processes.start("orders.approval", INPUT, version="2").current_step
            == "review"
        )
        other = asking(fresh, CAT, tenant="other")
        with pytest.raises(NotFoundError) as missing:
            other.processes.start("orders.approval", INPUT, version="1-acme")
        assert "acme" not in str(missing.value).replace("1-acme", "")
        assert "1-acme" not in {each.version for each in other.definitions.list()}


def _another(place: Place) -> ManualEngine:
    engine = place.engine()
    engine.handle("orders.confirm", lambda: None)
    engine.handle("orders.notify", lambda: None)
    return engine


@pytest.mark.row("P-071")
@pytest.mark.parametrize(("key", "idempotency_key"), [("k", ""), ("", "k")])
def test_a_key_leads_to_nothing_of_another_partition(place: Place, key: str, idempotency_key: str) -> None:
    """A key of another partition is another key: each starts what is its own, and again what it has."""
    engine = place.engine()
    published(engine)
    north, south = (asking(engine, CAT, tenant="t1", partition=each).processes for each in ("north", "south"))
    there, here = (
        calls.start("orders.approval", INPUT, key=key, idempotency_key=idempotency_key).id for calls in (north, south)
    )
    assert there != here
    if idempotency_key:
        assert north.start("orders.approval", INPUT, idempotency_key=idempotency_key).id == there
        assert south.start("orders.approval", INPUT, idempotency_key=idempotency_key).id == here
    else:
        with pytest.raises(RejectedError) as caught:
            south.start("orders.approval", INPUT, key=key)
        assert caught.value.reason == "already_started"


@pytest.mark.row("P-071")
def test_what_an_event_starts_belongs_to_the_partition_of_its_publisher(place: Place) -> None:
    """Those of the partition find it, and nobody else does."""
    engine = place.engine()
    text = process(person("a"), *ends("z"), ways="a go z", triggers=[{"event": "ordered"}])
    published(engine, text)
    asking(engine, ROOT, partition="north").publish("ordered", "o-1", {"total": 1})
    engine.drain()
    totals = [asking(engine, ROOT, partition=each).processes.list().total for each in ("north", "south", "")]
    assert totals == [1, 0, 0]
