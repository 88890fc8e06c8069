"""Documents that schedules create: one for each time, on behalf of whoever put the schedule, and the same one if a time comes again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.documents.acting import BOB, GIVEN, asking, opened
from app.documents.blueprints import opened as organised
from app.documents.blueprints import published
from standfast import Actor, ForbiddenError, NotFoundError, PayloadError, RequestContext, Saga
from standfast.graph.definition import Definition
from standfast.graph.document_spec import DocumentAction
from standfast.testing import ManualEngine
from standfast.testing.manual import START
from support.engines import Place
from support.envelopes import invoice

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
CLERK = Actor(id="clara", capabilities=frozenset({"schedule:manage", "schedule:read", "invoice.create"}))


def told(engine: ManualEngine, schedule: str = "s") -> list[tuple[str, str, str]]:
    """What became of the times of a schedule, the first one first."""
    return [(each.why, each.status, each.document) for each in reversed(engine.schedules.fires(schedule))]


@pytest.mark.row("G-18", "E-754")
def test_each_time_creates_a_document_on_behalf_of_whoever_put_it(place: Place) -> None:
    """It has the data with what is computed, an id made of the time, its owner as requester, and says where it comes from; the next time does not wait for its end."""
    engine = opened(place)
    calls = asking(engine, CLERK)
    put = calls.schedules.put("rent", "invoice", GIVEN, cron="0 6 * * *", computed={"note": "'rent of {scheduled_on}'"})
    assert (put.is_document, put.overlap, put.document_id, put.workflow) == (True, "allow_all", "", "invoice")
    engine.advance(2 * DAY)
    made = ["rent-20300102T060000Z", "rent-20300103T060000Z"]
    assert told(engine, "rent") == [("time", "created", each) for each in made]
    fire = engine.schedules.fires("rent")[0]
    first, second = (calls.documents.get("invoice", each) for each in made)
    assert (second.instance, second.requester, second.data["note"]) == (fire.run, "clara", "rent of 2030-01-03")
    assert [(each.how, each.type, each.id) for each in calls.documents.links("invoice", made[0])] == [
        ("made_by", "schedule", "rent#1")
    ]
    assert (first.status, calls.schedules.get("rent").running) == ("draft", [])
    assert engine.instances.verify(put.instance).differences == []


def test_a_time_that_comes_again_is_the_same_document(place: Place) -> None:
    """A period that was done is told as skipped, one that was not is made up for; other ids are made by an expression, also the same for all times."""
    engine = opened(place)
    engine.schedules.put("s", "invoice", GIVEN, cron="0 * * * *", document_id="'R-{scheduled_on}'")
    engine.schedules.put("t", "invoice", GIVEN, cron="0 0 * * *")
    engine.advance(2 * HOUR)
    assert told(engine) == [("time", "created", "R-2030-01-01"), ("time", "skipped", "")]
    assert "'R-2030-01-01' is there already" in engine.schedules.fires("s")[0].detail
    for _ in range(2):
        engine.schedules.backfill("t", START - 2 * DAY, START)
        engine.drain()
    made = ["t-20291231T000000Z", "t-20300101T000000Z"]
    assert told(engine, "t")[:2] == [("backfill", "created", each) for each in made]
    assert [each[1] for each in told(engine, "t")[2:]] == ["skipped", "skipped"]
    engine.schedules.pause("t")
    asked = [engine.schedules.trigger("t", command_id="now") for _ in range(2)]
    engine.drain()
    assert asked[0] == asked[1]
    assert told(engine, "t")[-1] == ("manual", "created", "t-20300101T140000Z")
    assert len(engine.documents.list("invoice").items) == 4


def test_what_has_no_meaning_for_documents_is_refused(place: Place) -> None:
    """Policies of overlap, versions and ids of what is none, masks and what whoever puts it may not create are refused in a sentence, and nothing is kept."""
    engine = opened(place)
    guarded = invoice(
        name="guarded", actions=[DocumentAction(name="create", creates=True, capability="guarded:create")]
    )
    engine.register(Definition(graph=guarded))
    engine.register(Saga("note").step("write", lambda: None).build())
    wrong: list[tuple[str, dict[str, object], str]] = [
        ("invoice", {"overlap": "skip"}, "'allow_all'"),
        ("invoice", {"overlap": "buffer_one"}, "'allow_all'"),
        ("invoice", {"overlap": "cancel_running"}, "'allow_all'"),
        ("invoice", {"overlap": "odd"}, "one of skip"),
        ("invoice", {"version": "1"}, "leave `version` out"),
        ("invoice", {"document_id": "'x' +"}, "cannot be read"),
        ("invoice", {"document_id": 5}, "as text"),
        ("note", {"document_id": "'x'"}, "leave `document_id` out"),
    ]
    for name, given, why in wrong:
        with pytest.raises(PayloadError, match=why):
            engine.schedules.put("s", name, GIVEN, every=HOUR, **given)  # type: ignore[arg-type]
    with pytest.raises(PayloadError, match="schedule and the time"):
        engine.schedules.put("s" * 500, "invoice", GIVEN, every=HOUR)
    with pytest.raises(NotFoundError, match="nothing"):
        engine.schedules.put("s", "nothing", GIVEN, every=HOUR)
    with pytest.raises(ForbiddenError, match="guarded:create"):
        asking(engine, CLERK).schedules.put("s", "guarded", GIVEN, every=HOUR)
    assert engine.schedules.list() == []
    engine.schedules.put("s", "invoice", GIVEN, every=HOUR)
    with pytest.raises(PayloadError, match="'allow_all'"):
        engine.schedules.trigger("s", overlap="skip")


def test_a_document_that_cannot_be_created_is_told_and_the_next_one_comes(place: Place) -> None:
    """Data that the type does not take, and a workflow that is archived meanwhile, are fires that were refused; the times after them come all the same."""
    engine = opened(place)
    engine.schedules.put("s", "invoice", {"vendor": "acme"}, every=HOUR, computed={"total": "scheduled_on"})
    engine.schedules.put("u", "invoice", GIVEN, every=HOUR, document_id="number")
    engine.advance(HOUR)
    assert [each[1] for each in told(engine)] == ["refused"]
    assert "document id" in engine.schedules.fires("u")[0].detail
    organisation = published(organised(place))
    clerk = asking(engine, CLERK, tenant="acme")
    clerk.schedules.put("o", "invoice", {"number": "R-1", "vendor_id": "V-1", "grand_total": 40000}, every=HOUR)
    organisation.bodies.archive("invoice")
    engine.advance(HOUR)
    assert [each.status for each in clerk.schedules.fires("o")] == ["refused"]
    assert "archived" in clerk.schedules.fires("o")[0].detail


def test_tenants_and_parts_have_documents_of_their_own_schedules(place: Place) -> None:
    """A document is of the tenant and the part of whoever put its schedule."""
    engine = opened(place)
    rival = asking(engine, Actor(id="rex", capabilities=frozenset({"*"})), tenant="rival")
    rival.schedules.put("s", "invoice", GIVEN, at=datetime(2030, 1, 1, 13, tzinfo=UTC))
    engine.advance(HOUR)
    assert [each.id for each in rival.documents.list("invoice").items] == ["s-20300101T130000Z"]
    assert engine.documents.list("invoice").items == []
    with pytest.raises(NotFoundError):
        asking(engine, BOB).documents.get("invoice", "s-20300101T130000Z")


@pytest.mark.row("G-18", "EO-12")
def test_a_time_that_meets_a_suspended_workflow_says_what_to_mend(place: Place) -> None:
    """The fire names the workflow that is out of use, the incident does not blame the owner's rights, and times go on once it is back."""
    engine = organised(place)
    published(engine)
    calls = engine.acting(RequestContext(tenant="acme", actor=Actor(id="ann", capabilities=frozenset({"*"}))))
    calls.schedules.put("s", "invoice", {"number": "R-1", "vendor_id": "V-1", "grand_total": 5}, every=HOUR)
    calls.workflows.suspend("invoice", "1-org", "bad")
    engine.advance(HOUR)
    (fire,) = calls.schedules.fires("s")
    assert (fire.status, "WORKFLOW_SUSPENDED" in fire.detail) == ("refused", True)
    (found,) = [each for each in engine.admin.incidents() if each.kind == "refused_schedule"]
    assert found.remedy.startswith("mend what the refusal names")
    calls.workflows.lift("invoice", "1-org", "good")
    engine.advance(HOUR)
    assert calls.schedules.fires("s")[0].status == "created"
    assert [each for each in engine.admin.incidents() if each.kind == "refused_schedule"] == []
    assert len(calls.documents.list("invoice").items) == 1
