"""What of a document is for whose eyes: fields, parts of fields, histories, lists, and what comes back from those who saw a mask."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from app.documents.blueprints import of
from people.test_webhook import LOCAL, Receiver, receiver
from standfast import Actor, ForbiddenError, PayloadError, Settings
from standfast.graph.field_visibility import MASKED
from standfast.testing import ManualEngine
from support.engines import Place

__all__ = ["receiver"]

CONTRACT = """
entity_type: file
version: {version}
fields:
  title: {{type: string, required: true}}
  loose: {{type: list}}
  box: {{type: object}}
  {fields}
lifecycle:
  version: 1
  initial: open
  terminal: [closed]
  states:
    open: {{window: editable}}
    closed: {{window: locked}}
  transitions:
    - {{name: close, from: [open], to: closed}}
"""
FIELDS = """memo: {type: string, visible_to: [hr]}
  code: {type: string, sensitive: true}
  people:
    type: list
    items: {type: object, fields: {name: {type: string}, pay: {type: money, visible_to: [hr]}, iban: {type: string, sensitive: true}}}
"""
ANN = Actor(id="ann")
HR = Actor(id="hera", roles=frozenset({"hr"}), capabilities=frozenset({"execution:read"}))
ROOT = Actor(id="root", capabilities=frozenset({"*"}))
AUDITOR = Actor(id="audra", capabilities=frozenset({"execution:read"}))
SECRETS = ("HIDDEN-MEMO", "CODE-1", "CODE-2", "424242", "IBAN-1")
GIVEN: dict[str, object] = {
    "title": "x",
    "memo": "HIDDEN-MEMO",
    "code": "CODE-1",
    "people": [{"name": "p", "pay": 424242, "iban": "IBAN-1"}],
}


def opened(place: Place | None = None) -> ManualEngine:
    """An engine with files, and one file of ann's."""
    engine = ManualEngine() if place is None else place.engine()
    engine.contracts.publish(CONTRACT.format(version=1, fields=FIELDS))
    of(engine, ANN).documents.create("file", GIVEN, id="F-1")
    return engine


def leaks(told: object) -> list[str]:
    """What an answer tells that is not for everybody."""
    text = msgspec.json.encode(told).decode()
    return [each for each in SECRETS if each in text]


@pytest.mark.row("E-240")
def test_parts_of_fields_and_histories_are_masked(place: Place) -> None:
    """A part of a list or an object is masked like a field; of what is sensitive neither mutations nor comparisons nor histories tell."""
    engine = opened(place)
    mine, hers, theirs = (of(engine, each) for each in (ANN, HR, AUDITOR))
    hers.documents.mutate("file", "F-1", {"code": "CODE-2", "people": [{"name": "q", "pay": 424242, "iban": "IBAN-1"}]})
    run = mine.documents.get("file", "F-1").instance
    seen = mine.documents.get("file", "F-1").data["people"]
    assert seen == [{"name": "q", "pay": MASKED, "iban": "IBAN-1"}]
    assert hers.documents.get("file", "F-1").data["people"] == [{"name": "q", "pay": 424242, "iban": "IBAN-1"}]
    kept: list[Callable[[], object]] = [
        lambda: theirs.documents.mutations("file", "F-1"),
        lambda: theirs.documents.diff("file", "F-1", 1, 2),
        lambda: theirs.documents.audit("file", "F-1"),
        lambda: theirs.run(run).history(),
        lambda: mine.run(run).history(),
        lambda: theirs.run(run).describe(),
    ]
    assert [leaks(each()) for each in kept] == [[]] * len(kept)
    assert leaks(hers.run(run).history()) == ["HIDDEN-MEMO", "424242"]  # What is sensitive no history shows to anybody.
    assert {each.field: each.is_masked for each in theirs.documents.diff("file", "F-1", 1, 2)} == {
        "code": True,
        "people": True,
    }
    for call in (mine.deciders.state, mine.deciders.history, mine.deciders.get, theirs.deciders.verify):
        with pytest.raises(ForbiddenError):
            call("file", "F-1")


def test_a_mask_is_not_written_over_what_it_stands_for() -> None:
    """Whoever sends back what they were shown is refused; what they leave out stays, and those who see a field may write what they like."""
    engine = opened()
    mine, hers = of(engine, ANN).documents, of(engine, HR).documents
    seen = mine.get("file", "F-1").data
    given: list[dict[str, object]] = [seen, {"memo": MASKED}, {"people": seen["people"]}]
    for changes in given:
        with pytest.raises(PayloadError, match="leave the field out"):
            mine.mutate("file", "F-1", changes)
    with pytest.raises(PayloadError, match="leave the field out"):
        mine.create("file", seen)
    mine.mutate("file", "F-1", {"title": "y"})
    assert hers.get("file", "F-1").data == {**GIVEN, "title": "y"}
    assert hers.mutate("file", "F-1", {"memo": MASKED}).data["memo"] == MASKED


PEOPLE: list[dict[str, object]] = [{"name": "p", "pay": 1, "iban": "A"}, {"name": "q", "pay": 2, "iban": "B"}]
KEEPING: dict[str, tuple[list[dict[str, object]], list[object] | None]] = {
    "one is corrected": ([{"name": "x", "iban": "A"}, {"name": "q", "iban": "B"}], [1, 2]),
    "they have another order": ([{"name": "q", "iban": "B"}, {"name": "p", "iban": "A"}], [2, 1]),
    "one is added": ([{"name": "n"}, {"name": "p", "iban": "A"}, {"name": "q", "iban": "B"}], [None, 1, 2]),
    "a part is written blindly": ([{"name": "p", "iban": "A", "pay": 7}, {"name": "q", "iban": "B"}], [7, 2]),
    "a part is taken away": ([{"name": "p", "iban": "A", "pay": None}, {"name": "q", "iban": "B"}], [1, 2]),
    "one is another one": ([{"name": "x", "iban": "X"}, {"name": "q", "iban": "B"}], None),
    "one is gone": ([{"name": "q", "iban": "B"}], None),
    "all are gone": ([], None),
    "one is corrected and one added": ([{"name": "x", "iban": "A"}, {"name": "q", "iban": "B"}, {"name": "n"}], None),
}


@pytest.mark.row("E-240")
@pytest.mark.parametrize("case", list(KEEPING))
def test_an_edit_keeps_the_parts_of_a_list_that_its_author_does_not_see(place: Place, case: str) -> None:
    """Entries that are matched keep them; an edit that would take one away is refused, and says what to do."""
    engine = opened(place)
    mine, hers = of(engine, ANN).documents, of(engine, HR).documents
    hers.mutate("file", "F-1", {"people": PEOPLE})
    given, kept = KEEPING[case]
    if kept is None:
        with pytest.raises(ForbiddenError, match="have somebody with the role 'hr' edit it"):
            mine.mutate("file", "F-1", {"people": given})
        assert hers.get("file", "F-1").data["people"] == PEOPLE
    else:
        mine.mutate("file", "F-1", {"people": given})
        people: Any = hers.get("file", "F-1").data["people"]
        assert [each.get("pay") for each in people] == kept
    assert hers.mutate("file", "F-1", {"people": []}).data["people"] == []


@pytest.mark.row("E-240")
@pytest.mark.parametrize("amendment", ["new_row", "in_place"])
def test_an_amendment_keeps_the_parts_of_a_list_that_its_author_does_not_see(place: Place, amendment: str) -> None:
    """By an edit and by name: it goes on with what its author does not see."""
    engine = place.engine()
    contract = CONTRACT.format(version=1, fields=FIELDS).replace("[open]", "[open, sent]")
    contract = contract.replace("initial: open", "initial: open\n  amended: open")
    contract = contract.replace("    closed: {window", "    sent: {window: amend_only}\n    closed: {window")
    engine.contracts.publish(f"{contract}    - {{name: send, from: [open], to: sent}}\namendment: {amendment}\n")
    mine, hers = of(engine, ANN).documents, of(engine, HR).documents
    for amend in (mine.mutate, mine.amend):
        made = mine.create("file", {"title": "x", "people": PEOPLE})
        mine.transition("file", made.id, "send")
        for given, kept in KEEPING.values():
            if kept is None:
                with pytest.raises(ForbiddenError, match="would take them away"):
                    amend("file", made.id, {"people": given})
        new = amend("file", made.id, {"people": KEEPING["one is corrected"][0]})
        people: Any = hers.get("file", new.id).data["people"]
        assert [each["pay"] for each in people] == [1, 2]


def test_an_edit_keeps_the_parts_of_an_object_that_its_author_does_not_see(place: Place) -> None:
    """They are laid under what is given, by name; those who see them can take them away."""
    engine = place.engine()
    fields = "person: {type: object, fields: {name: {type: string}, pay: {type: money, visible_to: [hr]}}}"
    engine.contracts.publish(CONTRACT.format(version=1, fields=fields))
    mine, hers = of(engine, ANN).documents, of(engine, HR).documents
    mine.create("file", {"title": "x", "person": {"name": "p", "pay": 5}}, id="F-1")
    assert mine.mutate("file", "F-1", {"person": {"name": "q"}}).data["person"] == {"name": "q", "pay": MASKED}
    with pytest.raises(ForbiddenError, match="not for the eyes of 'ann'"):
        mine.mutate("file", "F-1", {"person": None})
    assert hers.get("file", "F-1").data["person"] == {"name": "q", "pay": 5}
    assert hers.mutate("file", "F-1", {"person": {"name": "r"}}).data["person"] == {"name": "r"}


def test_a_draft_does_not_tell_its_author_what_is_for_others_eyes() -> None:
    """Whoever writes the steps decides what they tell, so that a document with such fields is tried by those alone who see all of it."""
    engine = opened()
    designer = Actor(id="ann", capabilities=frozenset({"bodies:design"}))
    calls = of(engine, designer).bodies
    draft = calls.save("base: {entity_type: file, envelope_version: 1}\n").id
    with pytest.raises(ForbiddenError, match="data of your own"):
        calls.dry_run("file", document="F-1", draft=draft)
    assert calls.dry_run("file", {"title": "x"}, draft=draft).data == {"title": "x"}
    assert leaks(calls.dry_run("file", document="F-1")) == ["CODE-1", "IBAN-1"]
    with pytest.raises(ForbiddenError, match="data that is compared with them"):
        calls.dry_run("file", {"title": "m"}, document="F-1")


@pytest.mark.row("E-240")
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param("", id="all fields are gone"),
        pytest.param(FIELDS.replace("pay:", "salary:").replace("memo:", "note:"), id="they have other names"),
        pytest.param(FIELDS.replace(", visible_to: [hr]", ""), id="they are for everybody"),
        pytest.param(FIELDS.replace("string, sensitive: true}", "string, visible_to: [hr]}"), id="more are for some"),
        pytest.param(FIELDS.replace("[hr]", "[finance]"), id="they are for others"),
    ],
)
@pytest.mark.parametrize("is_moved", [False, True])
def test_a_list_shows_what_each_document_shows(place: Place, fields: str, is_moved: bool) -> None:  # noqa: FBT001
    """Both go by the version of the contract that the document is on, whatever newer versions say."""
    engine = opened(place)
    engine.contracts.publish(CONTRACT.format(version=2, fields=fields), force=True)
    of(engine, ANN).documents.create("file", {"title": "y"}, id="F-2")
    if is_moved:
        assert of(engine, ROOT).workflows.move("file", "1-std", "2-std", reason="a better one").items
    for actor in (ANN, HR, AUDITOR):
        calls = of(engine, actor).documents
        listed = calls.list("file", requester="ann").items
        assert {each.id: each.data for each in listed} == {
            each: calls.get("file", each).data for each in ("F-1", "F-2")
        }
    if not is_moved:
        (seen,) = [each for each in of(engine, AUDITOR).documents.list("file").items if each.id == "F-1"]
        assert leaks(seen) == ["CODE-1", "IBAN-1"]  # What is sensitive a reader of the document sees.
    by_id = {each.id: each.data for each in engine.as_tenant("acme").documents.list("file").items}
    assert by_id["F-1"] == GIVEN


def test_values_that_only_python_takes_for_the_same_are_a_change() -> None:
    """`1`, `1.0` and `true` are three values; an edit from one to another is written, and not lost without a word."""
    mine = of(opened(), ANN).documents
    mine.mutate("file", "F-1", {"loose": [1], "box": {"n": 0}})
    made = mine.mutate("file", "F-1", {"loose": [True], "box": {"n": 0.0}})
    assert (made.version, repr(made.data["loose"]), repr(made.data["box"])) == (3, "[True]", "{'n': 0.0}")
    assert [each.field for each in mine.diff("file", "F-1", 2, 3)] == ["box", "loose"]
    assert mine.mutate("file", "F-1", {"loose": [True], "box": {"n": 0.0}}).version == 3


def test_a_webhook_of_a_rule_sends_no_field_that_is_not_for_everybody(place: Place, receiver: Receiver) -> None:
    """Another system has no roles: fields that are sensitive, that are for some roles, or that hold such a part, stay here."""
    engine = place.engine(Settings(outbound_allow=tuple(LOCAL)))
    engine.contracts.publish(CONTRACT.format(version=1, fields=FIELDS))
    hook: dict[str, object] = {"name": "hook", "effect": "webhook", "url": receiver.url, "on": ["create", "update"]}
    of(engine, ROOT).charters.publish_rules("file", [hook])
    mine = of(engine, ANN).documents
    mine.create("file", {**GIVEN, "box": {"open": "to all"}}, id="F-1")
    mine.mutate("file", "F-1", {"title": "y"})
    engine.drain()
    sent = [json.loads(each.body)["document"] for each in receiver.requests]
    assert [each["data"] for each in sent] == [{"title": name, "box": {"open": "to all"}} for name in "xy"]
    assert leaks(sent) == []
