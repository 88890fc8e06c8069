"""Where documents meet what other front ends do otherwise: on both stores, by the calls that applications make."""

from __future__ import annotations

from hashlib import sha256

import msgspec
import pytest

from app.documents.acting import asking
from app.documents.blueprints import CLERK, of, opened, published
from app.documents.blueprints import GIVEN as BILL
from app.documents.orders import GIVEN, SELLER, body, keep_stock, register
from people.test_webhook import LOCAL, Receiver, receiver
from standfast import Actor, Fail, NotFoundError, RejectedError, Saga, Settings, StepContext
from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.format import Policy
from standfast.features.documents.contract.library import ready_contract
from standfast.graph.definition import Definition
from standfast.graph.model import TaskOp
from standfast.http.routes import ROUTES
from standfast.kernel.row_kinds.steps import STEPS
from standfast.testing import ManualEngine
from support.engines import Place

__all__ = ["receiver"]

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


@pytest.mark.row("EC-35", "ED-16")
def test_a_newer_compiler_leaves_documents_that_are_under_way_alone(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a release in between, one that has begun is approved to its end by what it began with; none begins before it was compiled again."""
    engine = opened(place)
    acme = published(engine)
    mine = of(engine, CLERK).documents
    mine.create("invoice", BILL, id="I-1")
    assert mine.transition("invoice", "I-1", "submit").run_status == "running"
    newer = ("1.9.0",)
    monkeypatch.setattr("standfast.features.documents.compiler.compatibility.start_problem.__defaults__", newer)
    monkeypatch.setattr("standfast.features.documents.compiler.compiler.COMPILER_VERSION", *newer)
    monkeypatch.setattr("standfast.features.documents.compiler.compatibility.is_older.__defaults__", newer)
    with pytest.raises(RejectedError, match="compiled by version") as refused:
        mine.create("invoice", BILL, id="I-2")
    assert refused.value.reason == "WORKFLOW_COMPILER_STALE"
    (task,) = of(engine, MANAGER).tasks.list(mine=True)
    of(engine, MANAGER).tasks.decide(task, "approved", document_version=task.document_version)
    engine.drain()
    done = of(engine, CLERK).documents.get("invoice", "I-1")
    assert (done.status, done.workflow_version) == ("active", "1-org")
    assert [each.compiler for each in acme.bodies.recompile()] == ["1.9.0"]
    assert mine.create("invoice", BILL, id="I-2").workflow_version == "2-org"


@pytest.mark.row("EC-34")
def test_nothing_deletes_a_document_that_lives(place: Place) -> None:
    """One address, for operators who repair, deletes what has ended, as the engine's own call does; and nothing else, whatever is said."""
    gone = {route.path: route.permission for route in ROUTES if route.method == "DELETE"}
    words = ("instance", "document", "run", "execution", "process", "audit")
    assert {path: right for path, right in gone.items() if any(word in path for word in words)} == {
        "/api/v1/instances/{id}": "execution:repair"
    }
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


@pytest.mark.row("E-073")
def test_no_second_run_begins_where_a_document_was(place: Place) -> None:
    """At none of its events, the very first included, before which there was no document: there is one run of it, and it stays the only one."""
    engine = place.engine()
    register(engine, "sales_order")
    run = asking(engine, SELLER).documents.create("sales_order", GIVEN, id="O-1").instance
    for at in range(1, len(engine.run(run).history()) + 1):
        with pytest.raises(RejectedError) as refused:
            engine.run(run).fork(at, reason="what if")
        assert (refused.value.reason, "it is a document" in str(refused.value)) == ("no_fork", True)
    assert [each.id for each in engine.runs.list().items] == [run]


@pytest.mark.row("ED-21", "EC-16")
@pytest.mark.parametrize(("more", "sent"), [("", 5), (", attempts: 1", 1), (", attempts: 3", 3), (", once: true", 1)])
def test_a_request_is_sent_as_often_as_its_author_says(receiver: Receiver, more: str, sent: int) -> None:
    """Five times unless told otherwise, the first included; what must not be sent twice is sent once, and its step fails."""
    engine = ManualEngine(settings=Settings(outbound_allow=tuple(LOCAL)))
    receiver.status = 500
    hook = f"{{id: tell, type: webhook_out, url: '{receiver.url}'{more}}}"
    register(engine, "sales_order", body('"slot:submitted_to_approved"', hook))
    mine = asking(engine, SELLER).documents
    mine.create("sales_order", GIVEN, id="O-1")
    mine.transition("sales_order", "O-1", "submit")
    engine.advance(days=1)
    assert len(receiver.requests) == sent
    assert len({each.headers["idempotency-key"] for each in receiver.requests}) == 1
    assert mine.get("sales_order", "O-1").run_reason == "step_failed"
    (op,) = [node.op for name, node in engine.definitions.get("sales_order").nodes.items() if name.endswith(":tell")]
    assert isinstance(op, TaskOp)
    assert op.work.once is ("once" in more)  # By this it is not sent again after a crash either.
    engine.stop()


@pytest.mark.row("E-018")
def test_of_a_long_answer_the_beginning_is_kept_and_the_hash_of_all(receiver: Receiver) -> None:
    """Of 200,000 bytes the first 65,536, with how many there were and their hash, so that a copy of the whole can be proved."""
    engine = ManualEngine(settings=Settings(outbound_allow=tuple(LOCAL)))
    receiver.status, receiver.body = 200, b"x" * 200_000
    hook = f"{{id: tell, type: webhook_out, url: '{receiver.url}', into: told}}"
    register(engine, "sales_order", body('"slot:submitted_to_approved"', hook))
    mine = asking(engine, SELLER).documents
    run = mine.create("sales_order", GIVEN, id="O-1").instance
    mine.transition("sales_order", "O-1", "submit")
    engine.drain()
    (output,) = [each.output for each in engine.run(run).steps() if each.name.endswith(":tell")]
    assert isinstance(output, dict)
    kept = output["told"]
    assert isinstance(kept, dict)
    assert (kept["body"], kept["bytes"], kept["is_truncated"]) == ("x" * 65_536, 200_000, True)
    assert kept["sha256"] == sha256(receiver.body).hexdigest()
    engine.stop()


UNSURE = """
base: {entity_type: sales_order, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    exit: join
    nodes:
      - {id: fork, type: parallel_split}
      - {id: reserve, type: action, action: stock_item.reserve, target: entity.stock_item, payload: {quantity: entity.quantity}, undo: stock_item.release}
      - {id: credit, type: wait_event, event: credit, into: credit}
      - {id: meet, type: parallel_join, mode: all, abort: context.credit.verdict? == 'bad'}
      - {id: payment, type: wait_event, event: paid}
    edges:
      - {from: fork, to: reserve}
      - {from: fork, to: credit}
      - {from: reserve, to: meet}
      - {from: reserve, to: meet, on: error}
      - {from: credit, to: meet}
      - {from: meet, to: out}
      - {from: meet, to: payment, on: abort}
"""


@pytest.mark.row("E-884", "EC-05")
def test_what_another_document_has_refused_is_not_taken_back(place: Place) -> None:
    """A rule about the stock refuses the reservation, which takes its error edge; bad credit ends the branches, and nothing is released that was never reserved."""
    engine = place.engine()
    keep_stock(engine)
    register(engine, "stock_item")
    register(engine, "sales_order", UNSURE)
    engine.charters.publish_rules(
        "stock_item", [{"name": "closed", "effect": "block", "on": ["reserve"], "reason": "we count the stock today"}]
    )
    mine = asking(engine, SELLER).documents
    mine.create("stock_item", {"name": "lamp", "on_hand": 5}, id="lamp")
    run = mine.create("sales_order", GIVEN, id="O-1").instance
    mine.transition("sales_order", "O-1", "submit")
    engine.drain()
    assert [each.error for each in engine.run(run).steps() if "we count the stock today" in each.error] != []
    engine.events.publish("credit", payload={"verdict": "bad"})
    engine.drain()
    order = engine.documents.get("sales_order", "O-1")
    assert (order.run_status, [each.rpartition(":")[2] for each in order.places]) == ("running", ["payment"])
    assert [each.action for each in engine.documents.mutations("stock_item", "lamp")] == ["create"]
    assert engine.dead_letters.list() == []


@pytest.mark.row("E-403")
@pytest.mark.parametrize(("run_as", "is_let"), [("system", True), ("service_account:clerk", False)])
def test_a_name_that_is_lent_has_no_role_elsewhere(run_as: str, is_let: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Its publishers speak for their own documents: where the policies of another one ask for a role, only the engine has every one."""
    engine = ManualEngine()
    stock = ready_contract("stock_item")
    keepers = Policy(name="keepers", actions=["stock_item.reserve"], roles=["keeper"])
    envelope = generate_envelope(msgspec.structs.replace(stock, policies=[*stock.policies, keepers]))
    engine.register(Definition(graph=graph_of(compile_effective(envelope))))
    keep_stock(engine)
    reserve = "{id: reserve, type: action, action: stock_item.reserve, target: entity.stock_item, payload: {quantity: entity.quantity}, run_as: RUN}"
    register(engine, "sales_order", body('"slot:submitted_to_approved"', reserve.replace("RUN", f"'{run_as}'")))
    mine = asking(engine, SELLER).documents
    mine.create("stock_item", {"name": "lamp", "on_hand": 5}, id="lamp")
    mine.create("sales_order", GIVEN, id="O-1")
    mine.transition("sales_order", "O-1", "submit")
    engine.drain()
    assert engine.documents.get("stock_item", "lamp").data["reserved"] == (2 if is_let else 0)
    assert (engine.documents.get("sales_order", "O-1").status == "active") is is_let
    engine.stop()
