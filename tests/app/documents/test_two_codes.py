"""Processes that know different workflows of one type of documents: what one of them has published holds in the other too."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.documents.blueprints import CLERK, of, opened, published
from app.documents.blueprints import GIVEN as BILL
from app.documents.test_visibility import ANN, AUDITOR, CONTRACT, FIELDS, GIVEN, leaks
from app.documents.test_workflows import MANAGER
from standfast import ConfigurationError, DefinitionError, PayloadError, Saga
from standfast.graph.field_visibility import MASKED
from support.engines import Place
from support.ruining import Ruin

OPEN = FIELDS.replace("visible_to: [hr]", "sensitive: false")
NEWER = (
    CONTRACT.format(version=2, fields=FIELDS)
    .replace("lifecycle:", "actions:\n  - {name: file.stamp, handler: stamp}\nlifecycle:")
    .replace("  version: 1\n  initial", "  version: 2\n  initial")
)


@pytest.mark.row("E-831", "E-240")
def test_an_old_process_goes_by_the_newer_contract_within_a_moment(place: Place) -> None:
    """It hides what that hides, takes no mask for a value, and lays nothing over the data that a handler computes, which it does not have."""
    old, new = place.engine(), place.engine()
    old.contracts.publish(CONTRACT.format(version=1, fields=OPEN))
    mine = of(old, ANN).documents
    mine.create("file", GIVEN, id="F-1")
    assert "HIDDEN-MEMO" in leaks(of(old, AUDITOR).documents.list("file"))
    new.handle("stamp", lambda: {"title": "stamped"})
    new.contracts.publish(NEWER, force=True)
    mine.create("file", GIVEN, id="F-2")
    for _ in range(2):  # At once, when the old one goes by what it knows, and a moment later.
        with pytest.raises(ConfigurationError, match="not registered in this process"):
            mine.mutate("file", "F-2", {"title": "forged"}, action="stamp")
        old.advance(timedelta(seconds=3))
    theirs = of(old, AUDITOR).documents
    newer, older = theirs.list("file").items  # Each as its own version shows it.
    assert leaks(newer) == ["CODE-1", "IBAN-1"]
    assert older.data == theirs.get("file", "F-1").data
    with pytest.raises(PayloadError, match="leave the field out"):
        mine.mutate("file", "F-2", {"memo": MASKED})
    assert of(new, ANN).documents.mutate("file", "F-2", {}, action="stamp").data["title"] == "stamped"
    assert mine.get("file", "F-2").version == 2


def test_an_action_has_the_handler_that_the_workflow_of_its_document_gives_it(place: Place) -> None:
    """A document that follows an older workflow, in which the action has none, is changed by what is given."""
    engine = place.engine()
    older = NEWER.replace("version: 2", "version: 1").replace(", handler: stamp", "")
    engine.contracts.publish(older)
    mine = of(engine, ANN).documents
    mine.create("file", GIVEN, id="F-1")
    engine.contracts.publish(NEWER, force=True)
    engine.handle("stamp", lambda: {"title": "stamped"})
    mine.create("file", GIVEN, id="F-2")
    told = [
        mine.mutate("file", name, {"title": "y"}, action="stamp", idempotency_key="once").data["title"]
        for name in ("F-1", "F-2", "F-1")
    ]
    assert (told, mine.get("file", "F-1").version) == (["y", "stamped", "y"], 2)


def test_an_inbox_lists_what_only_newer_code_can_decide_beside_the_rest(place: Place) -> None:
    """One workflow in a form that a process does not know keeps nobody from the questions of the others."""
    engine = opened(place)
    published(engine)
    mine = of(engine, CLERK)
    mine.documents.create("invoice", BILL, id="I-1")
    mine.documents.transition("invoice", "I-1", "submit")
    engine.register(Saga("plain").human("look", role="manager").build())
    mine.start("plain")
    place.must_fold = False
    Ruin(place.store).run(
        "update {}definitions set compiled = ? where version = '1-org'", b'{"name": "x", "ir_version": 99}'
    )
    old = of(place.engine(), MANAGER)
    assert sorted(each.name.rpartition(":")[2] for each in old.tasks.list(mine=True)) == ["look", "manager"]
    (task,) = [each for each in old.tasks.list(mine=True) if each.definition == "invoice"]
    with pytest.raises(DefinitionError, match="has the form 99"):
        old.tasks.decide(task, "approved", document_version="1")
