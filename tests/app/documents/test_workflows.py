"""Workflows of documents while documents go through them: taken out of use and put back, and documents that are moved from one to another."""

from __future__ import annotations

import pytest

from app.documents.blueprints import BODY, BOTH, CLERK, DORA, GIVEN, PAUL, of, opened, published
from holdfast import Actor, ForbiddenError, NotFoundError, PayloadError, RejectedError
from holdfast.testing import ManualEngine
from support.engines import Place

OPERATOR = Actor(id="olga", capabilities=frozenset({"bodies:publish", "execution:*"}))
MANAGER = Actor(id="mia", roles=frozenset({"manager"}))


def made(engine: ManualEngine, name: str) -> str:
    """An invoice that is submitted; the workflow that it has."""
    mine = of(engine, CLERK).documents
    mine.create("invoice", GIVEN, id=name)
    return mine.transition("invoice", name, "submit").workflow_version


def decide(engine: ManualEngine, name: str) -> str:
    """A manager approves an invoice; the status that it has then."""
    calls = of(engine, MANAGER)
    run = of(engine, CLERK).documents.get("invoice", name).instance
    (task,) = of(engine, OPERATOR).run(run).tasks()
    calls.tasks.decide(task, "approved", document_version=task.document_version)
    return of(engine, CLERK).documents.get("invoice", name).status


@pytest.mark.row("EO-12")
def test_a_bad_workflow_is_taken_out_of_use_and_put_back(place: Place) -> None:
    """New documents begin with the version before; those under way are paused, and a decision moves none of them until it is put back."""
    engine = opened(place)
    acme = published(engine)
    assert made(engine, "I-1") == "1-org"
    acme.bodies.publish(acme.bodies.save(BODY.replace("id: manager", "id: boss")).id)
    assert (made(engine, "I-2"), made(engine, "I-3")) == ("2-org", "2-org")
    operator = of(engine, OPERATOR)
    operator.run(of(engine, CLERK).documents.get("invoice", "I-3").instance).pause(reason="of its own")
    out = operator.workflows.suspend("invoice", "2-org", "it lets everything through")
    engine.drain()
    assert (out.is_suspended, out.set_by, len(out.batches)) == (True, "olga", 1)
    assert made(engine, "I-4") == "1-org"
    view = of(engine, CLERK).documents.get("invoice", "I-2")
    assert (view.run_status, of(engine, CLERK).documents.get("invoice", "I-1").run_status) == ("paused", "running")
    assert (decide(engine, "I-1"), decide(engine, "I-2")) == ("active", "submitted")
    operator.workflows.suspend("invoice", "2-org", "again")
    operator.workflows.lift("invoice", "2-org", "it was not so bad")
    engine.drain()
    assert made(engine, "I-5") == "2-org"
    assert of(engine, CLERK).documents.get("invoice", "I-2").status == "active"
    assert of(engine, CLERK).documents.get("invoice", "I-3").run_status == "paused"
    told = operator.workflows.suspensions("invoice")
    assert [(each.workflow_version, each.is_suspended, each.why) for each in told] == [
        ("2-org", True, "it lets everything through"),
        ("2-org", False, "it was not so bad"),
    ]


@pytest.mark.row("EO-12")
def test_nothing_stands_in_where_there_is_nothing_before(place: Place) -> None:
    """The shared workflow is no way around the only one of an organisation; whoever may not, and what is not there, is told."""
    engine = opened(place)
    published(engine)
    operator = of(engine, OPERATOR)
    for actor in (DORA, PAUL, CLERK):
        with pytest.raises(ForbiddenError):
            of(engine, actor).workflows.suspend("invoice", "1-org", "bad")
    with pytest.raises(PayloadError, match="say why"):
        operator.workflows.suspend("invoice", "1-org", " ")
    for wrong in ("9-org", "x" * 300):
        with pytest.raises((NotFoundError, PayloadError)):
            operator.workflows.suspend("invoice", wrong, "bad")
    with pytest.raises(NotFoundError):
        of(engine, OPERATOR, tenant="rival").workflows.suspend("invoice", "1-org", "bad")
    with pytest.raises(RejectedError, match="NOT_SUSPENDED"):
        operator.workflows.lift("invoice", "1-org", "good")
    assert operator.workflows.suspensions() == []
    operator.workflows.suspend("invoice", "1-org", "bad")
    with pytest.raises(RejectedError, match="WORKFLOW_SUSPENDED"):
        of(engine, CLERK).documents.create("invoice", GIVEN)
    assert of(engine, BOTH, tenant="rival").workflows.suspensions() == []
