"""Whose a document is: who may not approve it, in whose inbox it is not, and what those are told whose matter it is not."""

from __future__ import annotations

import pytest

from app.documents.blueprints import BODY, CLERK, GIVEN, of, opened, published
from app.documents.test_visibility import ANN, HR
from app.documents.test_visibility import opened as with_files
from app.documents.walls import ANN as WRITER
from app.documents.walls import BUD, CONTRACT, PUBLISHER, acting, answer, patch, submit
from app.documents.walls import opened as with_invoices
from standfast import Actor, ForbiddenError, RejectedError, Saga
from support.engines import Place

MIA, MAX = (
    Actor(id=name, roles=frozenset({"manager"}), capabilities=frozenset({"invoice.*"})) for name in ("mia", "max")
)
EVE = Actor(id="eve")


@pytest.mark.row("E-673", "E-667")
def test_who_wrote_a_document_approves_no_amendment_of_it_and_has_none_in_their_inbox(place: Place) -> None:
    """An amendment goes on with what they wrote; what four eyes keep them from is not among their questions, and is among those of a colleague."""
    engine = opened(place)
    published(engine)
    mine, theirs = of(engine, MIA), of(engine, CLERK)
    mine.documents.create("invoice", GIVEN, id="I-1")
    theirs.documents.transition("invoice", "I-1", "submit")
    theirs.documents.amend("invoice", "I-1", {"note": "a word"}, new_id="I-2")
    theirs.documents.transition("invoice", "I-2", "submit")
    theirs.documents.create("invoice", GIVEN, id="I-3")
    mine.documents.mutate("invoice", "I-3", {"note": "another"})
    theirs.documents.transition("invoice", "I-3", "submit")
    theirs.documents.create("invoice", GIVEN, id="I-4")
    theirs.documents.transition("invoice", "I-4", "submit")
    assert [each.key for each in mine.tasks.list(mine=True)] == ["I-4"]
    asked = {each.key: each for each in of(engine, MAX).tasks.list(mine=True)}
    assert asked.keys() == {"I-2", "I-3", "I-4"}
    for name in ("I-2", "I-3"):
        with pytest.raises(RejectedError, match="wrote this document"):
            mine.tasks.decide(asked[name], "approved", document_version=asked[name].document_version)
    of(engine, MAX).tasks.decide(asked["I-2"], "approved", document_version="1")
    assert theirs.documents.get("invoice", "I-2").status == "active"


def test_a_hash_is_for_those_who_see_all_that_it_is_of() -> None:
    """Whoever does not see a field cannot try values of it against the hash of the whole content."""
    engine = with_files()
    mine, hers = of(engine, ANN).documents, of(engine, HR).documents
    (full,) = hers.versions("file", "F-1")
    assert len(full.data_hash) == 64
    assert [each.data_hash for each in (*mine.versions("file", "F-1"), mine.version("file", "F-1", 1))] == ["", ""]
    assert [full.data_hash in each.page("file", "F-1") for each in (mine, hers)] == [False, True]
    mine.create("file", {"title": "open"}, id="F-2")
    assert mine.version("file", "F-2", 1).data_hash


@pytest.mark.row("E-239")
def test_whether_a_document_has_ended_is_told_to_those_who_may_ask_something_of_it() -> None:
    """Others hear the same of it as of one that lives."""
    engine = opened()
    published(engine, BODY)
    mine = of(engine, CLERK).documents
    for name in ("I-1", "I-2", "I-3"):
        mine.create("invoice", GIVEN, id=name)
    mine.transition("invoice", "I-2", "cancel")
    mine.transition("invoice", "I-3", "submit")
    mine.amend("invoice", "I-3", {"note": "x"}, new_id="I-4")
    hers, told = of(engine, EVE).documents, set()
    for name in ("I-1", "I-2", "I-3"):
        for ask in (
            lambda name=name: hers.mutate("invoice", name, {"note": "y"}),
            lambda name=name: hers.transition("invoice", name, "submit"),
            lambda name=name: hers.amend("invoice", name, {"note": "y"}),
        ):
            with pytest.raises(ForbiddenError) as caught:
                ask()  # type: ignore[no-untyped-call]
            told.add(str(caught.value).replace(name, "I"))
    assert len(told) == 3
    for name in ("I-2", "I-3"):
        with pytest.raises(RejectedError, match=r"final|taken the place"):
            mine.mutate("invoice", name, {"note": "y"})


@pytest.mark.row("E-053", "E-673")
def test_a_decision_that_was_voided_is_not_shown_as_applied(place: Place) -> None:
    """Nothing rests on a void approval; one that a gate has used is told as used, and one that waits as neither."""
    engine = opened(place)
    two = """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:draft_to_submit":
    nodes: [{id: a, type: approval, approvers: [{user: mia}]}, {id: b, type: approval, approvers: [{user: max}]}]
    edges: [{from: a, to: b}]
"""
    published(engine, two)
    mine = of(engine, CLERK)
    mine.documents.create("invoice", GIVEN, id="I-1")
    mine.documents.transition("invoice", "I-1", "submit")

    def decide(who: Actor) -> None:
        (task,) = of(engine, who).tasks.list(mine=True)
        of(engine, who).tasks.decide(task, "approved", document_version=task.document_version)

    def told() -> list[tuple[bool, bool | None]]:
        run = mine.documents.get("invoice", "I-1").instance
        calls = engine.as_tenant("acme")
        return [(d.is_applied, d.applied) for each in calls.run(run).tasks() for d in calls.tasks.get(each).decisions]

    decide(MIA)
    assert told() == [(True, None)]
    mine.documents.mutate("invoice", "I-1", {"note": "another"})
    assert told() == [(False, False)]
    decide(MAX)
    decide(MIA)
    assert mine.documents.get("invoice", "I-1").status == "submitted"
    assert told() == [(False, False), (True, True), (True, True)]


@pytest.mark.row("E-578", "EH-10")
@pytest.mark.parametrize("lent", ["actor", "system", "service_account:robot"])
def test_whoever_caused_a_document_that_a_step_made_does_not_approve_it(place: Place, lent: str) -> None:
    """A lent name acts on behalf of whoever asked for the transition: the audit names them, also in what follows, and four eyes keep them out."""
    engine = place.engine()
    finance = "{id: a, type: approval, approvers: [{role: finance}]}"
    made = f'{{id: mk, type: action, action: NEXT.create, payload: {{number: entity.number, total: entity.total}}, run_as: "{lent}"}}'
    chain = {"invoice": patch("before", made.replace("NEXT", "memo")), "memo": patch("asking", finance)}
    for kind in ("memo", "invoice"):
        engine.contracts.publish((CONTRACT % {"before": ""}).replace("invoice", kind))
        own = acting(engine, PUBLISHER)
        text = f"base: {{entity_type: {kind}, envelope_version: 1}}\nslots:\n{chain[kind]}"
        own.bodies.publish(own.bodies.save(text).id)
    submit(engine)
    (memo,) = acting(engine, PUBLISHER).documents.list("memo").items
    acting(engine, BUD).documents.transition("memo", memo.id, "submit")
    engine.drain()
    line = acting(engine, PUBLISHER).documents.audit("memo", memo.id)[0]
    name = {"actor": "ann", "system": "system"}.get(lent, "robot")
    assert (line.who, line.whom) == (name, "" if lent == "actor" else "ann")
    (task,) = acting(engine, PUBLISHER).run(memo.instance).tasks()
    author = Actor(id="ann", roles=frozenset({"finance"}))
    with pytest.raises(RejectedError, match="self_approval"):
        answer(engine, task, author)
    answer(engine, task, Actor(id="fin", roles=frozenset({"finance"})))
    assert acting(engine, PUBLISHER).documents.get("memo", memo.id).status == "active"


@pytest.mark.row("E-673", "E-684")
def test_whoever_brought_a_document_about_does_not_approve_its_amendment(place: Place) -> None:
    """An amendment by somebody else is still the matter of who triggered the schedule that made the document, and of who wanted it."""
    engine = opened(place)
    published(engine)
    sam, tina = (
        Actor(id=name, roles=frozenset({"manager"}), capabilities=frozenset({"*"})) for name in ("sam", "tina")
    )
    of(engine, sam).schedules.put("rent", "invoice", GIVEN, cron="0 0 1 1 *", document_id="'I-1'")
    of(engine, tina).schedules.trigger("rent")
    engine.drain()
    theirs = of(engine, CLERK)
    theirs.documents.transition("invoice", "I-1", "submit")
    for name in ("I-2", "I-3"):
        before = "I-1" if name == "I-2" else "I-2"
        theirs.documents.amend("invoice", before, {"note": name}, new_id=name)
        theirs.documents.transition("invoice", name, "submit")
        (task,) = of(engine, MAX).tasks.list(mine=True)
        for who in (sam, tina):
            with pytest.raises(RejectedError, match="wrote this document"):
                of(engine, who).tasks.decide(task, "approved", document_version=task.document_version)
    of(engine, MAX).tasks.decide(task, "approved", document_version=task.document_version)
    assert theirs.documents.get("invoice", "I-3").status == "active"


VETTED = patch("before", "{id: vet, type: call, workflow: vet, input: {number: entity.number}}")


@pytest.mark.row("E-684")
def test_who_edits_a_document_does_not_decide_the_runs_that_it_has_called(place: Place) -> None:
    """A run that a document calls is the matter of all its authors, of those too who edit it while that run is under way; those below it learn of them as well."""
    engine = place.engine()
    engine.register(Saga("ask").human("sign", role="vet", self_approval=False).build())
    engine.register(Saga("vet").call("ask", "ask").build())
    with_invoices(engine, VETTED)
    submit(engine)
    dan, eve = (Actor(id=name, roles=frozenset({"vet"})) for name in ("dan", "eve"))
    acting(engine, dan).documents.mutate("invoice", "I-1", {"total": 7})
    acting(engine, PUBLISHER).documents.mutate("invoice", "I-1", {"memo": "x"}, reason="a word")
    engine.drain()
    (task,) = acting(engine, PUBLISHER).tasks.list()
    assert task.kept_out == ["dan", "paul"]
    assert acting(engine, dan).tasks.list(mine=True) == []
    with pytest.raises(RejectedError, match="self_approval"):
        acting(engine, dan).tasks.decide(task, "confirmed")
    acting(engine, eve).tasks.decide(task, "confirmed")
    engine.drain()
    assert acting(engine, WRITER).documents.get("invoice", "I-1").status == "submitted"
