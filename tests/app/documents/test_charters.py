"""What organisations say of their documents: rules that are judged before a change and followed after it, and settings; with no graph of their own."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from app.documents.acting import asking
from app.documents.orders import GIVEN, SELLER, register
from people.test_webhook import LOCAL, Receiver, receiver
from standfast import Actor, DefinitionError, ForbiddenError, NotFoundError, PayloadError, RejectedError, Settings
from standfast.features.documents.rule_parser import read_rules
from standfast.testing import ManualEngine
from support.engines import Place
from support.envelopes import invoice

__all__ = ["receiver"]

CAP: dict[str, object] = {
    "name": "cap",
    "effect": "block",
    "when": "entity.grand_total > org.limit",
    "on": ["create", "update"],
    "reason": "this is above the limit of the organisation",
}
NOTE: dict[str, object] = {
    "name": "note",
    "effect": "set_field",
    "field": "note",
    "value": "'checked'",
    "on": ["update"],
}
WARN: dict[str, object] = {"name": "big", "effect": "warn", "when": "entity.quantity > 5", "reason": "that is a lot"}
TELL: dict[str, object] = {
    "name": "tell",
    "effect": "notify",
    "when": "entity.quantity > 5",
    "on": ["update"],
    "to": ["role:sales", "{entity.customer}"],
    "subject": "{entity.number} is large",
}


def opened(place: Place, settings: Settings | None = None) -> ManualEngine:
    """An engine that knows orders, whose organisation has put nothing into their slots."""
    engine = place.engine(settings)
    register(engine, "sales_order")
    return engine


def made(engine: ManualEngine) -> None:
    """An order."""
    asking(engine, SELLER).documents.create("sales_order", GIVEN, id="O-1")


@pytest.mark.row("E-884", "E-933", "E-888", "EH-08")
def test_published_rules_are_judged_before_every_change(place: Place) -> None:
    """They block, set fields and warn, by the published settings; the history tells which of them had an effect, with no graph at all."""
    engine = opened(place)
    engine.charters.publish_settings({"limit": 100_000})
    engine.charters.publish_rules("sales_order", [CAP, NOTE, WARN])
    made(engine)
    mine = asking(engine, SELLER).documents
    with pytest.raises(RejectedError, match="above the limit") as caught:
        mine.mutate("sales_order", "O-1", {"grand_total": 200_000})
    assert caught.value.reason == "rule_blocked"
    seen = mine.mutate("sales_order", "O-1", {"quantity": 6})
    assert (seen.version, seen.data["note"]) == (2, "checked")
    told = [
        (each.what, each.who, each.why) for each in mine.audit("sales_order", "O-1") if each.what.startswith("rules")
    ]
    assert told == [("rules at update", "sam", "note set_field; big warn")]
    mine.transition("sales_order", "O-1", "submit")
    assert engine.documents.get("sales_order", "O-1").status == "submitted"


@pytest.mark.row("E-884", "E-414", "E-421", "EH-08")
def test_rules_after_a_change_have_something_sent_and_hold_nothing_up(place: Place, receiver: Receiver) -> None:
    """Notices and requests go out after the commit; a rule that cannot be judged is told and undoes nothing."""
    engine = opened(place, Settings(outbound_allow=tuple(LOCAL)))
    hook: dict[str, object] = {"name": "hook", "effect": "webhook", "url": receiver.url, "on": ["update", "submit"]}
    broken: dict[str, object] = {**TELL, "name": "broken", "when": "entity.shipment_id == org.nothing.at_all"}
    engine.charters.publish_rules("sales_order", [TELL, hook, broken])
    made(engine)
    mine = asking(engine, SELLER).documents
    mine.mutate("sales_order", "O-1", {"quantity": 6})
    assert receiver.requests == []
    engine.drain()
    (request,) = receiver.requests
    sent = json.loads(request.body)
    assert (sent["rule"], sent["document"]["id"], sent["document"]["data"]["quantity"]) == ("hook", "O-1", 6)
    sales = Actor(id="sue", roles=frozenset({"sales"}))
    assert [each.subject for each in asking(engine, sales).notifications.mine()] == ["S-1 is large"]
    assert [each.subject for each in asking(engine, Actor(id="C-1")).notifications.mine()] == ["S-1 is large"]
    (line,) = [each for each in mine.audit("sales_order", "O-1") if each.what == "rules at update"]
    assert line.why.startswith("tell notify; hook webhook; broken: ")
    mine.transition("sales_order", "O-1", "submit")
    engine.drain()
    assert len({each.headers["idempotency-key"] for each in receiver.requests}) == 2


@pytest.mark.row("E-884")
@pytest.mark.parametrize(("field", "told"), [("posting", "written by the workflow alone"), ("large", "computed")])
def test_rules_set_no_field_that_nobody_writes(field: str, told: str) -> None:
    """What the workflow writes, and what follows from other fields, a rule of the organisation cannot set."""
    spec = invoice().document
    assert spec is not None
    with pytest.raises(DefinitionError, match=f"sets {field!r}, which is {told}"):
        read_rules(spec, [{"name": "stamp", "effect": "set_field", "field": field, "value": "true"}])


@pytest.mark.row("E-834", "EH-08")
def test_another_process_judges_by_new_rules_at_once(place: Place) -> None:
    """Rules and settings count in every process from the commit that publishes them on, whatever a process remembers."""
    here, there = opened(place), opened(place)
    made(there)
    mine = asking(there, SELLER).documents
    here.charters.publish_settings({"limit": 1})
    here.charters.publish_rules("sales_order", [CAP])
    with pytest.raises(RejectedError):
        mine.mutate("sales_order", "O-1", {"quantity": 3})
    here.charters.publish_rules("sales_order", [])
    assert mine.mutate("sales_order", "O-1", {"quantity": 4}).version == 2
    here.charters.publish_rules("sales_order", [CAP])
    with pytest.raises(RejectedError):
        mine.mutate("sales_order", "O-1", {"quantity": 5})
    here.charters.publish_settings({"limit": 1_000_000})
    assert mine.mutate("sales_order", "O-1", {"quantity": 5}).version == 3


def test_every_version_is_kept_with_who_published_it(place: Place) -> None:
    """The newest counts, the same again is no version, and each can be read as it was given."""
    engine = opened(place)
    boss = asking(engine, Actor(id="gov", capabilities=frozenset({"documents:govern"}))).charters
    boss.publish_rules("sales_order", [CAP], comment="first")
    boss.publish_rules("sales_order", [CAP, WARN])
    again = boss.publish_rules("sales_order", [CAP, WARN])
    assert (again.version, again.published_by) == (2, "gov")
    assert boss.rules("sales_order", 1).rules == [CAP]
    boss.publish_settings({"limit": 5})
    assert boss.settings().settings == {"limit": 5}
    assert [(each.name, each.version) for each in boss.list()] == [
        ("rules:sales_order", 1),
        ("rules:sales_order", 2),
        ("settings", 1),
    ]


@pytest.mark.row("E-576", "E-710")
def test_wrong_rules_are_told_all_at_once_and_tenants_stay_apart(place: Place) -> None:
    """An unknown effect, field, action or name, an expression that is none; nobody without the right; another tenant's are not seen."""
    engine = opened(place)
    wrong: list[dict[str, object]] = [
        {"name": "a", "effect": "explode"},
        {"name": "b", "effect": "require_field", "field": "nothing"},
        {"name": "c", "effect": "block", "when": "entity.nothing == 1"},
        {"name": "d", "effect": "block", "on": ["fly"]},
        {"name": "e", "effect": "notify"},
        {"name": "f", "effect": "webhook"},
        {"name": "g", "effect": "block", "colour": "red"},
        {"name": "h", "effect": "block", "when": "__import__('os')"},
    ]
    with pytest.raises(DefinitionError) as caught:
        engine.charters.publish_rules("sales_order", wrong)
    assert {each.position for each in caught.value.diagnostics} == set("abcdefgh")
    calls: list[tuple[type[Exception], Callable[[], object]]] = [
        (NotFoundError, lambda: engine.charters.publish_rules("nothing", [])),
        (PayloadError, lambda: engine.charters.publish_rules("sales_order", "x")),  # type: ignore[arg-type]
        (PayloadError, lambda: engine.charters.publish_rules("sales_order", [CAP] * 201)),
        (PayloadError, lambda: engine.charters.publish_settings(7)),  # type: ignore[arg-type]
        (PayloadError, lambda: engine.charters.publish_settings({"a": "x" * 9_000_000})),
        (PayloadError, lambda: engine.charters.rules("sales_order", -1)),
        (NotFoundError, engine.charters.settings),
        (ForbiddenError, lambda: asking(engine, SELLER).charters.publish_settings({})),
        (ForbiddenError, lambda: asking(engine, SELLER).charters.publish_rules("sales_order", [])),
    ]
    for kind, call in calls:
        with pytest.raises(kind):
            call()
    assert engine.charters.list() == []
    engine.charters.publish_rules("sales_order", [CAP])
    engine.charters.publish_settings({"limit": 1})
    other = engine.as_tenant("other")
    assert other.charters.list() == []
    with pytest.raises(NotFoundError):
        other.charters.rules("sales_order")
    assert asking(engine, SELLER, tenant="other").documents.create("sales_order", GIVEN).version == 1
