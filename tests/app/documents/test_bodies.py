"""The life of contracts and bodies: drafted, published, archived, rolled back; for each organisation its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from app.documents.blueprints import (
    AUDITOR,
    BODY,
    BOTH,
    CLERK,
    DORA,
    GIVEN,
    NOBODY,
    PAUL,
    SCENARIOS,
    of,
    opened,
    published,
)
from standfast import Actor
from standfast.errors import DefinitionError, ForbiddenError, NotFoundError, PayloadError, RejectedError
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.body.format import Body, export_yaml
from standfast.features.documents.compiler.artifact import Effective
from standfast.features.documents.compiler.compatibility import COMPILER_VERSION
from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.contract.format import Contract, IntField, LifecycleState
from standfast.features.documents.contract.library import ready_contract
from standfast.features.documents.publishing import contract_calls as contracts
from support.engines import Place

TWO = (
    BODY.replace(
        "[{role: manager}]}", "[{role: manager}]}\n      - {id: cfo, type: approval, approvers: [{role: cfo}]}"
    ).replace("One manager", "Manager and CFO")
    + """    edges: [{from: manager, to: cfo}]
"""
)
WRONG = BODY.replace("approvers: [{role: manager}]", "approvers: []")


def contract(version: int, **changes: object) -> Contract:
    """The contract of invoices in another version."""
    return msgspec.structs.replace(ready_contract("invoice"), version=version, **changes)


def rejected(reason: str) -> pytest.RaisesExc[RejectedError]:
    """A refusal by its code."""
    return pytest.raises(RejectedError, match=rf"\[{reason}\]")


@pytest.mark.row("E-262", "E-263", "E-265", "E-269", "E-270", "E-579", "E-057", "E-013")
def test_a_draft_becomes_the_version_in_force(place: Place) -> None:
    """A draft is saved, validated, published: what is in force tells who published it, when, and of which envelope and body it was compiled."""
    engine = opened(place)
    acme = of(engine)
    first = acme.bodies.save(BODY, comment="first try")
    assert (first.revision, first.problems, first.replaces, acme.bodies.list()) == (1, [], 0, [])
    again = acme.bodies.save(TWO, draft=first.id, revision=1)
    assert (again.id, again.revision, again.name) == (first.id, 2, "Manager and CFO")
    made = acme.bodies.publish(first.id, comment="two people from now on")
    envelope = engine.contracts.get("invoice")
    assert (made.version, made.status, made.published_by, made.published_at) == (
        1,
        "published",
        "bea",
        place.clock.now(),
    )
    assert (made.envelope_id, made.contract_version, made.id) == (envelope.id, 1, first.id)
    assert (made.drafted_by, made.comment, made.body) == (["bea"], "two people from now on", read_body(TWO))
    with rejected("DRAFT_CHANGED"):
        acme.bodies.publish(first.id)
    other = acme.bodies.save(BODY)
    second = acme.bodies.publish(other.id)
    assert [(each.version, each.status) for each in acme.bodies.versions("invoice")] == [
        (1, "archived"),
        (2, "published"),
    ]
    assert acme.bodies.get("invoice", 1).archived_why == "another version was published"
    assert [each.version for each in acme.bodies.list()] == [2]
    assert (acme.bodies.get("invoice").version, second.workflow_version, acme.bodies.drafts()) == (2, "2-org", [])


@pytest.mark.parametrize(
    "given",
    [
        {"name": "One\0manager"},
        {"description": "\0"},
        {"base": {"entity_type": "invoice\0", "envelope_version": 1}},
        {"context": {"a\0": "any"}},
        {"name": float("inf")},
    ],
)
def test_what_no_database_keeps_is_no_body(place: Place, given: dict[str, object]) -> None:
    """Half a text and no number at all are refused with a place or a sentence, on every store, and nothing is kept."""
    acme = of(opened(place))
    whole = {"base": {"entity_type": "invoice", "envelope_version": 1}, **given}
    for call in (acme.bodies.save, acme.bodies.check):
        with pytest.raises((DefinitionError, PayloadError), match=r"U\+0000|give plain data"):
            call(whole)
    assert acme.bodies.drafts() == []


@pytest.mark.row("E-187", "E-262")
def test_a_draft_is_saved_whatever_is_wrong_with_its_form(place: Place) -> None:
    """A node of an unknown type hides no other problem and loses nothing: the draft is kept as it was written, told of, mended and published."""
    engine = opened(place)
    acme = of(engine)
    wrong = BODY.replace("type: approval", "type: aproval") + "    edges: [{from: manager, to: boss}]\n"
    draft = acme.bodies.save(wrong)
    assert [each.code for each in draft.problems] == ["word", "unknown_node"]
    assert (draft.body, "type: aproval" in draft.source, "name: One manager" in draft.source) == (None, True, True)
    assert [each.code for each in acme.bodies.check(wrong).problems] == ["word", "unknown_node"]
    again = acme.bodies.draft(draft.id)
    assert (again.problems, again.source, acme.bodies.export(draft=draft.id)) == (
        draft.problems,
        draft.source,
        draft.source,
    )
    with pytest.raises(DefinitionError) as caught:
        acme.bodies.publish(draft.id)
    assert [each.code for each in caught.value.diagnostics] == ["word", "unknown_node"]
    for call in (acme.bodies.scenarios, acme.bodies.diff):
        with pytest.raises(DefinitionError, match="aproval"):
            call("invoice", draft=draft.id)
    mended = acme.bodies.save(draft.source.replace("aproval", "approval").replace("boss", "out"), draft=draft.id)
    assert (mended.problems, mended.source, mended.revision) == ([], "", 2)
    assert acme.bodies.publish(draft.id).version == 1


@pytest.mark.row("E-662")
def test_a_body_with_an_unknown_chain_is_not_published(place: Place) -> None:
    """Nobody would be asked: the draft says so, and is published once the chain is."""
    acme = of(opened(place), Actor(id="bea", capabilities=frozenset({"bodies:*", "chains:publish"})))
    draft = acme.bodies.save(BODY.replace("approvers: [{role: manager}]", "chain: spending"))
    assert [(each.code, each.node) for each in draft.problems] == [
        ("unknown_chain", "usr:slot:submitted_to_approved:manager")
    ]
    with pytest.raises(DefinitionError, match="'spending', which is not published; there are none; publish it first"):
        acme.bodies.publish(draft.id)
    acme.chains.publish("spending", [{"asks": ["role:manager"]}])
    assert acme.bodies.draft(draft.id).problems == []
    assert acme.bodies.publish(draft.id).version == 1


@pytest.mark.row("E-264", "E-261", "E-265")
def test_documents_keep_the_version_that_they_began_with(place: Place) -> None:
    """Another version is published, and then archived: documents under way go on as they began, new ones take the new one, and then none begins."""
    engine = opened(place)
    acme = published(engine)
    clerk = of(engine, CLERK).documents
    clerk.create("invoice", GIVEN, id="I-1")
    acme.bodies.publish(acme.bodies.save(TWO).id)
    assert clerk.create("invoice", GIVEN, id="I-2").workflow_version == "2-org"
    made = {each.workflow_version: each for each in acme.bodies.versions("invoice")}
    for name, workflow, body in (("I-1", "1-org", 1), ("I-2", "2-org", 2)):  # Four lines of versions, by two calls.
        seen = clerk.get("invoice", name)
        pinned = made[seen.workflow_version]
        assert (seen.version, seen.workflow_version, pinned.version, pinned.envelope_version) == (1, workflow, body, 1)
    acme.bodies.archive("invoice", "it lets too much through")
    with rejected("WORKFLOW_ARCHIVED"):
        clerk.create("invoice", GIVEN, id="I-3")
    with rejected("WORKFLOW_ARCHIVED"):
        of(engine, BOTH).bodies.dry_run("invoice", GIVEN)
    with pytest.raises(NotFoundError):
        acme.bodies.archive("invoice")
    for name, steps in (("I-1", ["manager"]), ("I-2", ["manager", "cfo"])):
        clerk.transition("invoice", name, "submit")
        for step in steps:
            (task,) = of(engine, Actor(id="x", capabilities=frozenset({"*"}))).tasks.list()
            assert task.name.endswith(f":{step}")
            boss = Actor(id="mia", roles=frozenset({"manager", "cfo"}))
            of(engine, boss).tasks.decide(task, "approved", document_version=task.document_version)
        assert clerk.get("invoice", name).status == "active"
    acme.bodies.publish(acme.bodies.save(BODY).id, replaces=0)
    assert clerk.create("invoice", GIVEN, id="I-3").workflow_version == "3-org"


def test_another_process_knows_at_once_what_is_in_force(place: Place) -> None:
    """What one process publishes or archives counts for documents that begin in another one, although that has met an older version."""
    engine, other = opened(place), place.engine()
    acme = published(engine)
    clerk = of(other, CLERK).documents
    assert clerk.create("invoice", GIVEN, id="I-1").workflow_version == "1-org"
    acme.bodies.publish(acme.bodies.save(TWO).id)
    assert clerk.create("invoice", GIVEN, id="I-2").workflow_version == "2-org"
    acme.bodies.archive("invoice")
    with rejected("WORKFLOW_ARCHIVED"):
        clerk.create("invoice", GIVEN, id="I-3")


@pytest.mark.row("E-268", "E-263", "E-723", "E-721")
def test_an_older_version_is_published_again_as_a_new_one(place: Place) -> None:
    """A rollback is a version of its own with the very workflow of the old one; the differences are told, beside each other and the envelope."""
    engine = opened(place)
    acme = published(engine)
    acme.bodies.publish(acme.bodies.save(TWO).id)
    acme.bodies.publish(acme.bodies.save(BODY + "description: the same\n").id)
    back = acme.bodies.rollback("invoice", 2)
    versions = acme.bodies.versions("invoice")
    assert (back.version, back.comment, len({each.workflow_version for each in versions})) == (
        4,
        "rolled back to version 2",
        4,
    )
    hashes = [each.graph_hash for each in versions]
    assert hashes[1] == hashes[3] != hashes[0] == hashes[2]
    between = acme.bodies.diff("invoice", 2, against=1)
    assert [each.slot for each in between.slots if not each.is_untouched] == ["slot:submitted_to_approved"]
    assert "usr:slot:submitted_to_approved:cfo" in between.to_text()
    beside = acme.bodies.diff("invoice")
    assert {change.provenance for slot in beside.slots for change in slot.changes} == {
        "slot:submitted_to_approved",
        "envelope",
    }
    assert "no customisation" in beside.to_text()
    draft = acme.bodies.save(BODY)
    assert "-" in acme.bodies.diff("invoice", draft=draft.id, against=4).to_text()
    with pytest.raises(NotFoundError):
        acme.bodies.rollback("invoice", 9)
    assert [each.id for each in acme.bodies.drafts("invoice")] == [draft.id]


def test_two_who_publish_at_once(place: Place) -> None:
    """Of two drafts that were begun on the same version one wins; the other hears of it, changes nothing, and can say that it knows."""
    engine = opened(place)
    acme = published(engine)
    one, other = acme.bodies.save(BODY), acme.bodies.save(TWO)
    assert (one.replaces, other.replaces) == (1, 1)
    acme.bodies.publish(one.id)
    with rejected("BODY_SUPERSEDED"):
        acme.bodies.publish(other.id)
    assert [each.version for each in acme.bodies.versions("invoice")] == [1, 2]
    assert [each.id for each in acme.bodies.drafts()] == [other.id]
    with rejected("BODY_SUPERSEDED"):
        acme.bodies.publish(other.id, replaces=1)
    assert acme.bodies.publish(other.id, replaces=2).version == 3


def test_a_race_in_the_middle_of_publishing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody publishes while another one compiles: the number is taken anew, the versions are compared again, and the later one is refused."""
    engine = opened(place)
    acme = published(engine)
    one, other = acme.bodies.save(BODY), acme.bodies.save(TWO)
    operate, rivals = engine.service.operate, [other.id]

    def slow(work: object, **options: bool) -> object:
        if rivals:
            acme.bodies.publish(rivals.pop())
        return operate(work, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(engine.service, "operate", slow)
    with rejected("BODY_SUPERSEDED"):
        acme.bodies.publish(one.id)
    assert [each.workflow_version for each in acme.bodies.versions("invoice")] == ["1-org", "2-org"]
    assert acme.bodies.get("invoice").name == "Manager and CFO"
    rivals.append(acme.bodies.save(BODY).id)  # It will be version 3, which this one means to replace.
    assert acme.bodies.publish(one.id, replaces=3).workflow_version == "4-org"


@pytest.mark.row("E-707", "E-147", "E-023", "E-162")
def test_what_is_wrong_is_saved_and_never_published(place: Place) -> None:
    """Work in progress is saved with its problems listed; it is not published, and what is no body at all is not even saved."""
    engine = opened(place)
    acme = of(engine)
    draft = acme.bodies.save(WRONG)
    assert [(each.code, each.slot) for each in draft.problems] == [("empty", "slot:submitted_to_approved")]
    assert acme.bodies.draft(draft.id).problems == draft.problems
    with pytest.raises(DefinitionError) as caught:
        acme.bodies.publish(draft.id)
    assert [each.code for each in caught.value.diagnostics] == ["empty"]
    (found,) = acme.bodies.check(WRONG).problems
    assert found.position.count(":") == 1  # Line and column of the text.
    with pytest.raises(DefinitionError):
        acme.bodies.save("base: {}\nnothing: known\n")
    old = acme.bodies.save(BODY.replace("envelope_version: 1", "envelope_version: 7"))
    assert [each.code for each in old.problems] == ["base"]
    assert len(acme.bodies.drafts()) == 2
    begun = of(engine, CLERK).documents.create("invoice", GIVEN, id="I-1")
    assert begun.workflow_version == "1-std"  # A draft is nothing that a document goes through.
    acme.bodies.discard(old.id)
    acme.bodies.discard(draft.id)
    assert (acme.bodies.drafts(), acme.bodies.versions("invoice")) == ([], [])
    with pytest.raises(NotFoundError):
        acme.bodies.draft(draft.id)


def test_two_who_edit_one_draft() -> None:
    """Whoever saves over a revision that they have not seen is told so, and nothing is lost."""
    engine = opened()
    acme = of(engine)
    draft = acme.bodies.save(BODY)
    of(engine, DORA).bodies.save(TWO, draft=draft.id, revision=1)
    with rejected("DRAFT_CHANGED"):
        acme.bodies.save(BODY, draft=draft.id, revision=1)
    seen = acme.bodies.draft(draft.id)
    assert (seen.revision, seen.name, seen.drafted_by, seen.updated_by) == (
        2,
        "Manager and CFO",
        ["bea", "dora"],
        "dora",
    )
    with pytest.raises(PayloadError):
        acme.bodies.save(BODY.replace("entity_type: invoice", "entity_type: order"), draft=draft.id)


@pytest.mark.row("EO-16", "E-579", "EO-07")
def test_two_people_where_the_organisation_wants_that(place: Place) -> None:
    """Nobody publishes what they drafted, not even for somebody else, and nobody rolls back alone; other organisations are not concerned."""
    engine = opened(place)
    acme, chief = published(engine), of(engine, Actor(id="gil", capabilities=frozenset({"bodies:govern"})))
    assert chief.bodies.rules().two_person is False
    rules = chief.bodies.govern(two_person=True)
    assert (rules.two_person, rules.set_by) == (True, "gil")
    draft = acme.bodies.save(TWO)
    of(engine, DORA).bodies.save(BODY, draft=draft.id)
    stand_in = Actor(id="ina", capabilities=frozenset({"bodies:*"}), on_behalf_of="bea")
    for actor in (BOTH, stand_in):
        with pytest.raises(ForbiddenError, match="SECOND_PERSON_REQUIRED"):
            of(engine, actor).bodies.publish(draft.id)
    with pytest.raises(ForbiddenError, match="nobody rolls back alone; save version 1 as a draft") as caught:
        acme.bodies.rollback("invoice", 1)
    assert caught.value.reason == "SECOND_PERSON_REQUIRED"
    assert acme.bodies.get("invoice").version == 1
    made = of(engine, PAUL).bodies.publish(draft.id, revision=2)
    assert (made.published_by, made.drafted_by) == ("paul", ["bea", "dora"])
    published(engine, tenant="rival")
    chief.bodies.govern(two_person=False)
    assert acme.bodies.rollback("invoice", 1).version == 3


@pytest.mark.row("EO-16", "E-579")
def test_what_is_published_is_what_was_reviewed(place: Place) -> None:
    """Whoever publishes names the revision that they have read; one that was saved since is not published. Where two people are wanted it must be named."""
    engine = opened(place)
    acme, paul = published(engine), of(engine, PAUL).bodies
    draft = acme.bodies.save(BODY)
    seen = paul.draft(draft.id)
    acme.bodies.save(TWO, draft=draft.id)
    with pytest.raises(RejectedError, match="DRAFT_CHANGED"):
        paul.publish(draft.id, revision=seen.revision)
    of(engine, Actor(id="gil", capabilities=frozenset({"bodies:govern"}))).bodies.govern(two_person=True)
    with pytest.raises(RejectedError, match="REVISION_REQUIRED"):
        paul.publish(draft.id)
    with pytest.raises(RejectedError, match="DRAFT_CHANGED"):
        paul.publish(draft.id, revision=seen.revision)
    with pytest.raises(PayloadError):
        paul.publish(draft.id, revision=0)
    assert acme.bodies.get("invoice").version == 1
    again = paul.draft(draft.id)
    assert paul.publish(draft.id, revision=again.revision).hash == again.hash


@pytest.mark.row("E-725", "EO-16", "E-573")
def test_who_may_do_what() -> None:
    """Designing, publishing, governing and reading are rights of their own; an auditor reads every difference and changes nothing."""
    engine = opened()
    published(engine)
    draft = of(engine, DORA).bodies.save(BODY)
    auditor, nobody = of(engine, AUDITOR).bodies, of(engine, NOBODY).bodies
    assert "manager" in auditor.diff("invoice").to_text()
    assert (auditor.get("invoice").version, len(auditor.drafts()), auditor.rules().two_person) == (1, 1, False)
    assert of(engine, AUDITOR).contracts.get("invoice").version == 1
    lent = (
        BODY
        + '  "slot:approved_to_active":\n    nodes: [{id: post, type: action, action: invoice.post, run_as: system}]\n'
    )
    only = Actor(id="pat", capabilities=frozenset({"bodies:design", "bodies:publish"}))
    acting = of(engine, only).bodies.save(lent)
    assert acting.problems == []
    refusals: list[Callable[[], object]] = [
        lambda: auditor.save(BODY),
        lambda: auditor.publish(draft.id),
        lambda: auditor.archive("invoice"),
        lambda: of(engine, DORA).bodies.publish(draft.id),
        lambda: of(engine, PAUL).bodies.save(BODY),
        lambda: of(engine, PAUL).bodies.govern(two_person=True),
        lambda: of(engine, only).bodies.publish(acting.id),  # In whose name steps act is lent by those who may.
        lambda: of(engine, BOTH).contracts.publish(contract(2)),
        lambda: nobody.get("invoice"),
        lambda: nobody.diff("invoice"),
        nobody.drafts,
        lambda: nobody.export("invoice"),
        lambda: nobody.dry_run("invoice", GIVEN),
        of(engine, NOBODY).contracts.list,
    ]
    for number, call in enumerate(refusals):
        with pytest.raises(ForbiddenError, match="capability"):
            call()
        assert len(of(engine).bodies.versions("invoice")) == 1, number
    assert of(engine, PAUL).bodies.publish(acting.id, replaces=1).version == 2


@pytest.mark.row("E-706", "E-701", "E-702", "E-703", "E-704", "E-705", "E-938")
def test_templates_become_drafts() -> None:
    """Every template is listed with what can be said to it, and becomes a draft without problems; two of one are independent."""
    engine = opened()
    for name in ("purchase_order", "credit_note", "vendor"):
        engine.contracts.publish(ready_contract(name))
    acme = of(engine)
    templates = {each.name: each for each in acme.bodies.templates()}
    assert templates.keys() == {
        "amendment_loop", "fast_track", "invoice_approval", "purchase_order_approval", "return_credit_note",
    }  # fmt: skip
    assert templates["fast_track"].params["threshold"]["type"] == "money"
    of(engine, Actor(id="cid", capabilities=frozenset({"chains:publish"}))).chains.publish(
        "invoice_standard", [{"asks": ["role:manager"]}]
    )
    made = [acme.bodies.instantiate(name) for name in templates]
    assert [each.problems for each in made] == [[]] * 5
    one = acme.bodies.instantiate("fast_track", {"threshold": 100, "approver_role": "boss"})
    other = acme.bodies.instantiate("fast_track")
    acme.bodies.save(BODY, draft=other.id)
    assert acme.bodies.draft(one.id).hash == one.hash != other.hash
    for wrong in ({"threshold": "much"}, {"thresold": 1}):
        with pytest.raises(DefinitionError):
            acme.bodies.instantiate("fast_track", wrong)
    with pytest.raises(NotFoundError):
        acme.bodies.instantiate("slow_track")
    with pytest.raises(PayloadError):
        acme.bodies.instantiate("fast_track", 7)  # type: ignore[arg-type]


@pytest.mark.row("EO-15")
def test_what_is_exported_is_taken_back(place: Place) -> None:
    """Bodies and contracts are written as YAML with their hash; elsewhere they are what they were, and what was changed on the way is refused."""
    engine = opened(place)
    acme = published(engine, BODY + SCENARIOS)
    text = acme.bodies.export("invoice")
    rival = of(engine, tenant="rival")
    taken = rival.bodies.publish(rival.bodies.save(text).id)
    mine = acme.bodies.get("invoice")
    assert (taken.hash, taken.graph_hash) == (mine.hash, mine.graph_hash)
    with pytest.raises(DefinitionError, match="hash"):
        rival.bodies.save(text.replace("One manager", "Two managers"))
    draft = acme.bodies.save(TWO)
    assert read_body(acme.bodies.export(draft=draft.id)).name == "Manager and CFO"
    other = engine.contracts.export("invoice")
    assert engine.contracts.publish(other).version == 1  # The same again changes nothing.
    with pytest.raises(DefinitionError, match="hash"):
        engine.contracts.publish(other.replace("title: Invoice", "title: Bill"))


# -- contracts


@pytest.mark.row("E-107")
@pytest.mark.parametrize("title", ["", "Bill"])
def test_the_same_contract_is_published_by_two_processes_at_once(
    place: Place, monkeypatch: pytest.MonkeyPatch, title: str
) -> None:
    """As when several of them start with it: both have published it, and there is one. Another one of this version is refused."""
    here, there = opened(place), place.engine()
    given = contract(2)

    def meanwhile(*args: Any, **named: Any) -> Effective:
        monkeypatch.undo()
        there.contracts.publish(contract(2, title=title) if title else given)
        return compile_effective(*args, **named)

    monkeypatch.setattr(contracts, "compile_effective", meanwhile)
    if title:
        with rejected("CONTRACT_VERSION_REUSED"):
            here.contracts.publish(given)
    else:
        assert here.contracts.publish(given).id == there.contracts.get("invoice").id
    assert [each.version for each in here.contracts.versions("invoice")] == [1, 2]
    assert of(here, CLERK).documents.create("invoice", GIVEN, id="I-1").workflow_version == "2-std"


@pytest.mark.row("E-107", "E-109", "E-110", "E-006", "E-004", "EH-04")
def test_a_contract_is_a_workflow_for_everybody(place: Place) -> None:
    """A contract is published once for all organisations, with the envelope that follows from it; a changed one is another version, and nothing else is."""
    engine = opened(place)
    first = engine.contracts.get("invoice")
    assert (first.version, first.envelope_version, first.is_shared, first.published_by) == (1, 1, True, "system")
    assert of(engine, CLERK, "rival").documents.create("invoice", GIVEN, id="I-1").workflow_version == "1-std"
    with pytest.raises(NotFoundError):  # Nothing is made up from what documents look like.
        of(engine, CLERK).documents.create("order", GIVEN)
    with rejected("CONTRACT_VERSION_REUSED"):
        engine.contracts.publish(contract(1, title="Bill"))
    life = first.contract.lifecycle if first.contract is not None else None
    assert life is not None
    changed = msgspec.structs.replace(life, states={**life.states, "active": LifecycleState(window="amend_only")})
    with rejected("ENVELOPE_VERSION_REUSED"):
        engine.contracts.publish(contract(2, lifecycle=changed))
    raised = contract(2, lifecycle=msgspec.structs.replace(changed, version=2))
    check = engine.contracts.check(raised)
    assert [(each.what, each.name, each.how) for each in check.changes] == [("state", "active", "changed")]
    assert engine.contracts.publish(raised).envelope_version == 2
    assert of(engine, CLERK).documents.create("invoice", GIVEN, id="I-2").workflow_version == "2-std"
    assert of(engine, CLERK, "rival").documents.transition("invoice", "I-1", "cancel").status == "cancelled"
    assert [each.version for each in engine.contracts.versions("invoice")] == [1, 2]
    assert [each.how for each in engine.contracts.diff("invoice", 1)] == ["changed"]
    assert [each.version for each in engine.contracts.list()] == [2]


@pytest.mark.row("EO-25", "E-148")
def test_a_contract_that_breaks_bodies_is_not_published_by_accident(place: Place) -> None:
    """Published bodies that would not compile are listed, whosever they are; by force they go on as compiled, and are rebased when somebody has the time."""
    engine = opened(place)
    reading = BODY.replace("[{role: manager}]}", "[{expression: entity.budget_owner_id}]}")
    acme = published(engine, reading)
    published(engine, tenant="rival")
    fields = {name: each for name, each in ready_contract("invoice").fields.items() if name != "budget_owner_id"}
    life = msgspec.structs.replace(ready_contract("invoice").lifecycle, version=2)
    new = contract(2, fields=fields, lifecycle=life)
    assert [(each.tenant, each.version) for each in engine.contracts.check(new).broken] == [("acme", 1)]
    with rejected("CONTRACT_BREAKS_BODIES"):
        engine.contracts.publish(new)
    assert [each.version for each in engine.contracts.versions("invoice")] == [1]
    engine.contracts.publish(new, force=True)
    assert of(engine, CLERK).documents.create("invoice", GIVEN, id="I-1").workflow_version == "1-org"
    old = acme.bodies.save(reading)
    assert ([each.code for each in old.warnings], old.problems) == (["ENVELOPE_OUTDATED"], [])
    made = acme.bodies.publish(old.id)  # On the old contract, with the warning.
    assert (made.version, made.contract_version) == (2, 1)
    assert of(engine, CLERK).documents.create("invoice", GIVEN, id="I-2").workflow_version == made.workflow_version
    moved = acme.bodies.rebase("invoice")
    assert (moved.envelope_version, [each.code for each in moved.problems]) == (2, ["expression"])
    rival = of(engine, tenant="rival")
    fine = rival.bodies.rebase("invoice")
    assert rival.bodies.publish(fine.id).contract_version == 2


@pytest.mark.row("EO-25")
def test_a_field_of_another_type_breaks_the_bodies_that_read_it(place: Place) -> None:
    """A body compares a text that would be a number: it is listed, and the contract is refused."""
    engine = opened(place)
    published(
        engine,
        BODY
        + "    edges: [{from: in, to: manager, when: entity.number == 'R-1'}, {from: in, to: out}]\n    entry: branch\n    exit: join\n",
    )
    fields = ready_contract("invoice").fields
    new = contract(2, fields={**fields, "number": IntField(required=True)})
    assert [(each.tenant, each.version) for each in engine.contracts.check(new).broken] == [("acme", 1)]
    with rejected("CONTRACT_BREAKS_BODIES"):
        engine.contracts.publish(new)
    assert [each.version for each in engine.contracts.versions("invoice")] == [1]


def test_an_organisation_has_a_contract_of_its_own(place: Place) -> None:
    """What a tenant publishes stands before the shared contract that allows it, for that tenant alone."""
    engine = opened(place)
    engine.contracts.publish(contract(2, replaceable=True))
    owner = Actor(id="own", capabilities=frozenset({"contracts:publish", "bodies:*"}))
    mine = of(engine, owner)
    made = mine.contracts.publish(contract(5, title="Our invoice"))
    assert (made.is_shared, mine.contracts.get("invoice").title) == (False, "Our invoice")
    assert of(engine, tenant="rival").contracts.get("invoice").title == "Invoice"
    assert of(engine, CLERK).documents.create("invoice", GIVEN, id="I-1").workflow_version == "1-org"
    assert mine.bodies.publish(mine.bodies.save(BODY).id).contract_version == 5
    mine.contracts.publish(contract(6, title="Our new invoice"))
    assert mine.bodies.get("invoice").contract_version == 5
    assert of(engine, CLERK).documents.create("invoice", GIVEN, id="I-2").workflow_version == "2-org"


@pytest.mark.row("E-267", "E-920", "ED-16", "E-057", "E-907")
def test_another_compiler_begins_no_document_until_it_has_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an older compiler made is listed and compiled again as a new version; until then no document begins with it."""
    engine = opened()
    monkeypatch.setattr("standfast.features.documents.compiler.compiler.COMPILER_VERSION", "0.9.0")
    acme = published(engine)
    monkeypatch.undo()
    with rejected("WORKFLOW_COMPILER_STALE"):
        of(engine, CLERK).documents.create("invoice", GIVEN, id="I-1")
    (stale,) = acme.bodies.recompile(dry_run=True)
    assert (stale.compiler, acme.bodies.get("invoice").workflow_version) == ("0.9.0", "1-org")
    (fresh,) = acme.bodies.recompile()
    assert (fresh.version, fresh.compiler, fresh.workflow_version, fresh.graph_hash) == (
        1,
        COMPILER_VERSION,
        "2-org",
        stale.graph_hash,
    )
    assert acme.bodies.recompile() == []
    assert of(engine, CLERK).documents.create("invoice", GIVEN, id="I-1").workflow_version == "2-org"


@pytest.mark.row("E-057", "E-832")
def test_what_was_changed_behind_our_back_is_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stored body or contract that is not what its hash says is refused by name."""
    engine = opened()
    acme = of(engine)
    draft = acme.bodies.save(BODY)
    row = engine.service.survey(lambda parts: parts.blueprints().get("acme", draft.id))
    assert row is not None
    other = msgspec.structs.replace(row, content=row.content.replace(b"manager", b"janitor"))
    monkeypatch.setattr("standfast.features.documents.publishing.catalog.Catalog.draft_row", lambda _shelf, _id: other)
    with pytest.raises(DefinitionError, match="WORKFLOW_HASH_MISMATCH"):
        acme.bodies.publish(draft.id)


# -- tenants, and bad input


@pytest.mark.row("E-025", "E-576", "EC-25")
def test_nothing_of_another_organisation_is_there(place: Place) -> None:
    """Every call with the id or the type of another tenant's finds nothing, and changes nothing."""
    engine = opened(place)
    acme = published(engine)
    draft = acme.bodies.save(TWO)
    rival = of(engine, tenant="rival").bodies
    attacks: list[Callable[[], object]] = [
        lambda: rival.draft(draft.id),
        lambda: rival.save(BODY, draft=draft.id),
        lambda: rival.publish(draft.id),
        lambda: rival.discard(draft.id),
        lambda: rival.get("invoice"),
        lambda: rival.get("invoice", 1),
        lambda: rival.archive("invoice"),
        lambda: rival.rollback("invoice", 1),
        lambda: rival.rebase("invoice"),
        lambda: rival.diff("invoice"),
        lambda: rival.diff("invoice", draft=draft.id),
        lambda: rival.export("invoice"),
        lambda: rival.export(draft=draft.id),
        lambda: rival.scenarios("invoice"),
        lambda: rival.scenarios(draft=draft.id),
        lambda: rival.dry_run("invoice", GIVEN, draft=draft.id),
        lambda: rival.dry_run("invoice", document="I-1"),
    ]
    of(engine, CLERK).documents.create("invoice", GIVEN, id="I-1")
    for attack in attacks:
        with pytest.raises(NotFoundError):
            attack()
    assert (rival.list(), rival.versions("invoice"), rival.drafts(), rival.recompile()) == ([], [], [], [])
    rival_govern = of(engine, tenant="rival").bodies.govern(two_person=True)
    assert (rival_govern.two_person, acme.bodies.rules().two_person) == (True, False)
    assert [each.id for each in acme.bodies.drafts()] == [draft.id]
    assert (acme.bodies.get("invoice").status, acme.bodies.draft(draft.id).revision) == ("published", 1)


BAD: list[object] = [None, 7, b"\xff", "x" * 2000, ["a"], {"a": 1}, "\x00", object()]


def test_bad_input_is_refused_with_a_sentence() -> None:
    """A wrong type, an unknown name, something huge: an error of ours with a message, and nothing was changed."""
    engine = opened()
    acme = published(engine).bodies
    before = acme.versions("invoice")
    kinds = (PayloadError, NotFoundError, DefinitionError, RejectedError)
    for bad in BAD:
        calls: list[Any] = [
            acme.draft,
            acme.publish,
            acme.discard,
            acme.instantiate,
            acme.get,
            acme.archive,
            acme.rebase,
        ]
        for call in calls:
            with pytest.raises(kinds) as caught:
                call(bad)
            assert len(str(caught.value)) > 20
    numbers: list[Any] = [-1, 1.5, "1", True, 2**40]
    for number in numbers:
        with pytest.raises(PayloadError):
            acme.get("invoice", number)
        with pytest.raises(PayloadError):
            acme.rollback("invoice", number)
    for bad in (None, 7, ["a"], object(), {"base": object()}):
        with pytest.raises((PayloadError, DefinitionError)):
            acme.save(bad)  # type: ignore[arg-type]
        with pytest.raises((PayloadError, DefinitionError)):
            engine.contracts.publish(bad)  # type: ignore[arg-type]
    with pytest.raises(PayloadError):
        acme.govern(two_person="no")  # type: ignore[arg-type]
    with pytest.raises(PayloadError):
        acme.dry_run("invoice", GIVEN, decisions={"manager": 7})  # type: ignore[dict-item]
    other = [engine.contracts.get("invoice").id, acme.get("invoice").effective_id]  # Ids, but of no draft.
    for identity in other:
        with pytest.raises(NotFoundError):
            acme.draft(identity)
        with pytest.raises(NotFoundError):
            acme.discard(identity)
    assert acme.versions("invoice") == before
    assert acme.drafts() == []


def test_bodies_are_given_in_every_form() -> None:
    """YAML, bytes, plain data, and what `read_body` gives are the same body."""
    acme = of(opened()).bodies
    body = read_body(BODY)
    forms: list[str | bytes | Body | dict[str, object]] = [
        BODY,
        BODY.encode(),
        body,
        msgspec.to_builtins(body),
        export_yaml(body),
    ]
    assert len({acme.save(each).hash for each in forms}) == 1


# -- trying out


@pytest.mark.row("EO-14", "E-263")
def test_a_body_whose_scenarios_fail_is_not_published(place: Place) -> None:
    """The scenarios of a draft are played when it is published, and each that fails is told with what happened; nothing of it is written."""
    engine = opened(place)
    acme = published(engine, BODY + SCENARIOS)
    wrong = SCENARIOS.replace("status: active", "status: cancelled")
    check = acme.bodies.check(BODY + wrong)
    assert (check.problems, check.is_sound, [each.position for each in check.failures]) == (
        [],
        False,
        ["the manager approves"],
    )
    draft = acme.bodies.save(BODY + wrong)
    with pytest.raises(DefinitionError, match="was to be 'cancelled', and is 'active'") as caught:
        acme.bodies.publish(draft.id)
    assert [each.code for each in caught.value.diagnostics] == ["scenario"]
    assert (len(acme.bodies.versions("invoice")), [each.id for each in acme.bodies.drafts()]) == (1, [draft.id])
    assert [each.is_passed for each in acme.bodies.scenarios("invoice")] == [True]
    assert [each.is_passed for each in acme.bodies.scenarios(draft=draft.id)] == [False]
    assert engine.documents.list("invoice").items == []  # Nothing was played in the database.


@pytest.mark.row("EO-13")
def test_which_way_a_document_that_is_there_would_take(place: Place) -> None:
    """A dry run takes a document as it stands, with changes laid over it, through what is in force or through a draft; the document stays as it is."""
    engine = opened(place)
    engine.govern(organisation=lambda _tenant: {"trusted_vendors": ["V-1"]})
    acme = published(engine, BODY)
    draft = acme.bodies.instantiate("invoice_approval")
    of(engine, CLERK).documents.create("invoice", GIVEN, id="I-1")
    reader = of(engine, Actor(id="bea", capabilities=frozenset({"bodies:*", "execution:read"})))
    now = reader.bodies.dry_run("invoice", document="I-1")
    assert (now.ends, now.status, "manager" in [each.node for each in now.trail]) == ("rests", "active", True)
    then = reader.bodies.dry_run("invoice", document="I-1", draft=draft.id)
    assert "manager" not in [each.node for each in then.trail]
    large = reader.bodies.dry_run("invoice", {"grand_total": 9_000_000}, document="I-1", draft=draft.id)
    assert {"finance", "owner"} <= {each.node for each in large.trail}
    refused = reader.bodies.dry_run("invoice", document="I-1", decisions={"manager": "rejected"})
    assert (refused.ends, refused.status) == ("waits", "draft")
    seen = of(engine, CLERK).documents.get("invoice", "I-1")
    assert (seen.status, seen.version, seen.data["grand_total"]) == ("draft", 1, 40_000)
    with pytest.raises(NotFoundError):
        reader.bodies.dry_run("invoice", document="I-2")


@pytest.mark.row("E-014", "E-921")
def test_two_organisations_over_one_envelope(place: Place) -> None:
    """Each goes through its own steps, in parallel or one after the other, and both pass the same gates; a third one has the bare envelope."""
    engine = opened(place)
    engine.govern(organisation=lambda _tenant: {"trusted_vendors": []})
    published(engine, TWO)
    rival = of(engine, tenant="rival")
    rival.bodies.publish(rival.bodies.instantiate("fast_track", {"threshold": 50_000}).id)
    gates = {}
    for tenant, steps in (("acme", ["manager", "cfo"]), ("rival", []), ("third", None)):
        clerk = of(engine, CLERK, tenant).documents
        clerk.create("invoice", GIVEN, id="I-1")
        clerk.transition("invoice", "I-1", "submit")
        engine.drain()
        for step in steps or []:
            boss = of(engine, Actor(id="mia", roles=frozenset({"manager", "cfo"})), tenant)
            (task,) = [each for each in boss.tasks.list(mine=True) if each.name.endswith(f":{step}")]
            boss.tasks.decide(task, "approved", document_version=task.document_version)
        if steps is None:
            clerk.transition("invoice", "I-1", "approve")
        seen = engine.as_tenant(tenant)
        assert seen.documents.get("invoice", "I-1").status == "active", tenant
        gates[tenant] = [each.what for each in seen.documents.audit("invoice", "I-1") if "passed" in each.what]
    assert gates["acme"] == gates["rival"] == gates["third"] != []


def test_a_contract_with_words_from_a_file_is_the_contract(place: Place) -> None:
    """A word that equals a default is that default, whichever object it is: the contract is read back, and published again it is the same."""
    engine = opened(place)
    words = {name: json.loads(f'"{word}"') for name, word in (("amendment", "new_row"), ("on_drift", "amend"))}
    made = engine.contracts.publish(contract(2, **words))
    assert place.engine().contracts.get("invoice").contract == contract(2)
    assert engine.contracts.publish(contract(2)).id == made.id
    acme = of(engine)
    assert acme.bodies.publish(acme.bodies.save(BODY).id).status == "published"
