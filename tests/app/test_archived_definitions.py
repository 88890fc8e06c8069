"""Versions of workflows that are out of use."""

from __future__ import annotations

from datetime import timedelta

import pytest

from standfast import NotFoundError, PayloadError, RejectedError, ReusedIdError, Saga
from support.engines import Place


def saga(version: int) -> Saga:
    """A workflow in several versions."""
    return Saga("order", version=version).wait_for(f"wait{version}", signal="done")


def test_nothing_new_is_started_with_what_is_archived(place: Place) -> None:
    """A version that is out of use is passed over, refused by name, and listed no more, in every process within a moment; its runs go on, and it can be restored."""
    one, other = place.engine(), place.engine()
    for engine in (one, other):
        engine.register(saga(1).build()).register(saga(2).build())
    run = other.start("order")
    one.definitions.archive("order", 2)
    assert [each.version for each in one.definitions.list()] == ["1"]
    assert [(each.name, each.version) for each in one.definitions.archived()] == [("order", "2")]
    place.clock.move(timedelta(seconds=3))
    for engine in (one, other):
        with pytest.raises(RejectedError, match="archived"):
            engine.start("order", version=2)
        started = engine.start("order")
        assert started.describe().definition_version == "1"
    run.signal("done")
    other.drain()
    assert (run.describe().status, run.describe().definition_version) == ("completed", "2")
    other.definitions.restore("order", 2)
    place.clock.move(timedelta(seconds=3))
    assert one.start("order").describe().definition_version == "2"


@pytest.mark.parametrize("named", [2, ""])
def test_a_start_that_was_carried_out_is_answered_although_its_version_is_archived(
    place: Place, named: str | int
) -> None:
    """The same key is the same run, so that nobody who lost the answer takes it for not started; another key is refused."""
    engine = place.engine().register(saga(2).build())
    run = engine.start("order", {"n": 1}, version=named, idempotency_key="k-1")
    engine.definitions.archive("order", 2)
    place.clock.move(timedelta(seconds=3))
    assert engine.start("order", {"n": 1}, version=named, idempotency_key="k-1").id == run.id
    with pytest.raises(ReusedIdError):
        engine.start("order", {"n": 2}, version=named, idempotency_key="k-1")
    for key in ("k-2", ""):
        with pytest.raises(RejectedError, match="archived"):
            engine.start("order", {"n": 1}, version=named, idempotency_key=key)
    assert len(engine.runs.list().items) == 1


def test_who_took_a_version_out_of_use_is_told(place: Place) -> None:
    """Who, when and why, until it is restored; what is said anew takes the place of what was said."""
    engine = place.engine().register(saga(1).build())
    acme = engine.as_tenant("acme", actor="ann")
    engine.as_tenant("acme").definitions.publish({**engine.definitions.data("order"), "name": "own"})
    acme.definitions.archive("own", 1, reason="wrong account")
    engine.definitions.archive("order", 1)
    told = [(each.name, each.archived_by, each.archived_at, each.archived_why) for each in acme.definitions.archived()]
    now = place.clock.now()
    assert told == [("order", "system", now, ""), ("own", "ann", now, "wrong account")]
    place.clock.move(timedelta(hours=1))
    acme.definitions.restore("own", 1)
    acme.definitions.archive("own", 1, reason="again")
    acme.definitions.archive("own", 1, reason="again")
    with pytest.raises(NotFoundError):
        acme.definitions.archive("own", 7, reason="there is none")
    changes = engine.as_tenant("acme").audit.changes(subject="definition", name="own")
    assert [each.action for each in changes] == [
        "archive",
        "restore",
        "archive",
        "publish",
    ]  # What was so is no change.
    (_, own) = acme.definitions.archived()
    assert (own.archived_at, own.archived_why) == (place.clock.now(), "again")
    with pytest.raises(PayloadError):
        acme.definitions.archive("own", 1, reason=7)  # type: ignore[arg-type]


def test_a_tenant_archives_its_own(place: Place) -> None:
    """What all tenants share is not a tenant's to archive, nor is what another one has; an unknown one is said to be so."""
    engine = place.engine().register(saga(1).build())
    acme, rival = engine.as_tenant("acme"), engine.as_tenant("rival")
    acme.definitions.publish({**engine.definitions.data("order"), "name": "own"})
    for calls, name in ((acme, "order"), (rival, "own"), (engine, "own"), (engine, "nothing")):
        with pytest.raises(NotFoundError):
            calls.definitions.archive(name, 1)
    with pytest.raises(NotFoundError):
        acme.definitions.archive("own", "")
    acme.definitions.archive("own", 1)
    with pytest.raises((RejectedError, NotFoundError)):
        acme.start("own")
    assert rival.definitions.archived() == []


def test_what_is_archived_can_be_looked_at(place: Place) -> None:
    """Also if all versions of a workflow are out of use, its graph, its pause points and its report are those of the newest; nothing says that there is no such workflow."""
    engine = place.engine().register(saga(1).build()).register(saga(2).build())
    for version in (1, 2):
        engine.definitions.archive("order", version)
    assert [each.step_id for each in engine.definitions.pause_points("order")] == ["wait2"]
    assert engine.definitions.get("order").version == "2"
    assert engine.reports.of("order").runs == 0
    with pytest.raises(RejectedError, match="archived"):
        engine.start("order")
    with pytest.raises(NotFoundError):
        engine.definitions.get("order", 3)
    with pytest.raises(NotFoundError):
        engine.as_tenant("acme").reports.of("ordr")
