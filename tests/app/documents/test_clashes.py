"""Where documents meet what other front ends do otherwise: on both stores, by the calls that applications make."""

from __future__ import annotations

import pytest

from app.documents.acting import asking
from app.documents.blueprints import CLERK, of, opened, published
from app.documents.blueprints import GIVEN as BILL
from app.documents.orders import GIVEN, SELLER, keep_stock, register
from holdfast import Actor, Fail, NotFoundError, RejectedError, Saga, StepContext
from holdfast.http.routes import ROUTES
from holdfast.kernel.records import STEPS
from support.engines import Place

MANAGER = Actor(id="mia", roles=frozenset({"manager"}))
RESERVED_FIRST = """
base: {entity_type: sales_order, envelope_version: 1}
slots:
  "slot:draft_to_submit":
    nodes:
      - {id: reserve, type: action, action: stock_item.reserve, target: entity.stock_item, payload: {quantity: entity.quantity}, undo: stock_item.release}
  "slot:submitted_to_approved":
    nodes:
      - {id: audit, type: task, handler: audit}
"""


@pytest.mark.row("EC-07", "EC-14", "EC-26", "EC-03", "ED-02", "EC-09")
def test_a_failure_behind_a_gate_undoes_nothing_and_other_runs_may_bear_the_name_of_the_document(place: Place) -> None:
    """What was set aside before the gate stays set aside, by a failure, its repetition and a cancellation; the step itself starts a saga under the key of the order."""
    engine = place.engine()
    keep_stock(engine)
    register(engine, "stock_item")
    register(engine, "sales_order", RESERVED_FIRST)
    engine.register(Saga("audit").step("look", "look").build()).handle("look", lambda: None)
    keys: list[str] = []

    @engine.handler("audit")
    def audit(context: StepContext) -> None:
        keys.append(context.idempotency_key)
        engine.start("audit", key="O-1", idempotency_key="once")
        raise Fail("the books are closed")

    mine = asking(engine, SELLER).documents
    mine.create("stock_item", {"name": "lamp", "on_hand": 5}, id="lamp")
    run = mine.create("sales_order", GIVEN, id="O-1").instance
    mine.transition("sales_order", "O-1", "submit")
    engine.drain()

    def stood() -> tuple[str, str, object]:
        order = engine.documents.get("sales_order", "O-1")
        return order.status, order.run_status, engine.documents.get("stock_item", "lamp").data["reserved"]

    assert stood() == ("submitted", "paused", 2)
    (beside,) = engine.runs.list(definition="audit").items
    assert (beside.key, beside.status) == ("O-1", "completed")
    failed = next(each for each in engine.run(run).steps() if each.error)
    engine.run(run).retry(failed, reason="try again")
    engine.drain()
    rows = [row for row in engine.service.store.reader("default").rows(STEPS, run) if row.node.endswith(":audit")]
    assert [(row.visit, row.status, row.retry_of) for row in rows] == [
        (1, "failed", None),
        (2, "failed", rows[0].number),
    ]
    assert (len(set(keys)), stood()) == (1, ("submitted", "paused", 2))
    mine.transition("sales_order", "O-1", "cancel")
    engine.drain()
    assert stood() == ("cancelled", "completed", 2)
    with pytest.raises(RejectedError, match="was started before"):
        mine.create("sales_order", GIVEN, id="O-1")


@pytest.mark.row("EC-35", "ED-16", "EC-13")
def test_a_newer_compiler_leaves_documents_that_are_under_way_alone(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a release in between, one that has begun is approved to its end by what it began with; none begins before it was compiled again."""
    engine = opened(place)
    acme = published(engine)
    mine = of(engine, CLERK).documents
    mine.create("invoice", BILL, id="I-1")
    assert mine.transition("invoice", "I-1", "submit").run_status == "running"
    newer = ("1.1.0",)
    monkeypatch.setattr("holdfast.authoring.document.versions.start_problem.__defaults__", newer)
    monkeypatch.setattr("holdfast.authoring.document.compiler.COMPILER_VERSION", *newer)
    monkeypatch.setattr("holdfast.app.printing.COMPILER_VERSION", *newer)
    with pytest.raises(RejectedError, match="compiled by version") as refused:
        mine.create("invoice", BILL, id="I-2")
    assert refused.value.reason == "WORKFLOW_COMPILER_STALE"
    (task,) = of(engine, MANAGER).tasks.list(mine=True)
    of(engine, MANAGER).tasks.decide(task, "approved", document_version=task.document_version)
    engine.drain()
    done = of(engine, CLERK).documents.get("invoice", "I-1")
    assert (done.status, done.workflow_version) == ("active", "1-org")
    assert [each.compiler for each in acme.bodies.recompile()] == ["1.1.0"]
    assert mine.create("invoice", BILL, id="I-2").workflow_version == "2-org"


@pytest.mark.row("EC-34")
def test_nothing_deletes_a_document_that_lives_and_the_api_deletes_no_run(place: Place) -> None:
    """No address takes a run, a document or its history away; the engine's own call deletes what has ended, and nothing else, whatever is said."""
    gone = {route.path for route in ROUTES if route.method == "DELETE"}
    assert not [path for path in gone for word in ("document", "run", "execution", "process", "audit") if word in path]
    engine = place.engine()
    register(engine, "sales_order")
    mine = asking(engine, SELLER).documents
    run = mine.create("sales_order", GIVEN, id="O-1").instance
    for force in (False, True):
        with pytest.raises(NotFoundError, match="finished instance"):
            engine.instances.delete(run, force=force)
    assert engine.documents.get("sales_order", "O-1").version == 1
    mine.transition("sales_order", "O-1", "cancel")
    engine.instances.delete(run)
    with pytest.raises(NotFoundError):
        engine.documents.get("sales_order", "O-1")
