"""The calls of documents, on both stores: what is created, edited, approved and amended, what is refused, and what can be read of it later."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from app.documents.acting import ANN, BOB, CARL, EVE, FINANCE, GIVEN, active, approve, asking, graph, opened, submitted
from standfast import Actor, ForbiddenError, NotFoundError, PayloadError, RejectedError, Settings, StepContext
from standfast.engine.commit.unit_of_work import JointCommit
from standfast.errors import ReusedIdError, StandfastError
from standfast.features.documents.content.views import DocumentView
from standfast.graph.definition import Definition
from standfast.graph.document_spec import DocumentField
from standfast.graph.field_visibility import MASKED
from standfast.graph.model import DocumentRule
from standfast.testing import ManualEngine
from support.engines import Place
from support.envelopes import FIELDS, when
from support.ruining import Ruin

OPERATOR = Actor(id="olga", capabilities=frozenset({"execution:*"}))


def refused(call: Callable[[], object]) -> str:
    """The code by which a call is refused."""
    with pytest.raises(RejectedError) as caught:
        call()
    told = str(caught.value)
    assert len(told) > 30
    assert "; " in told or ": " in told, told  # What is so, and what would be possible.
    return caught.value.reason


@pytest.mark.row("E-001", "E-110", "E-741", "E-261", "E-324")
def test_an_invoice_is_created_edited_submitted_and_approved(place: Place) -> None:
    """The whole way: a draft that is edited, two approvals of the version that was seen, posted by the workflow, active and locked."""
    engine = opened(place)
    mine = asking(engine, BOB).documents
    made = mine.create("invoice", GIVEN, id="INV-1", reason="a delivery")
    assert (made.status, made.version, made.window, made.requester) == ("draft", 1, "editable", "bob")
    assert [(each.name, each.is_allowed) for each in made.transitions] == [("submit", True), ("cancel", True)]
    assert mine.mutate("invoice", "INV-1", {"total": 700}, action="invoice.update").version == 2
    sent = mine.transition("invoice", "INV-1", "submit")
    assert (sent.status, sent.window, sent.places) == ("submitted", "amend_only", ["first"])
    assert [each.why_not for each in sent.transitions if each.name == "approve"] == ["it is under way"]
    approve(engine, ANN)
    approve(engine, CARL)
    done = mine.get("invoice", "INV-1")
    assert (done.status, done.version, done.window, done.is_resting) == ("active", 3, "locked", True)
    assert (done.data["posting"], done.run_status, done.run_reason) == ("GL-1", "running", "round_completed")
    assert done.workflow_version == "1"


@pytest.mark.row("E-011", "E-930")
@pytest.mark.row("E-239", "E-882", "E-222", "EO-46", "EO-24")
def test_refusals_have_stable_codes_and_change_nothing(place: Place) -> None:
    """Locked, illegal, not ready, stale, in conflict, invalid: each by its code, and the document is as it was."""
    engine = opened(place)
    active(engine)
    mine = asking(engine, BOB).documents
    before = mine.get("invoice", "INV-1")
    assert refused(lambda: mine.mutate("invoice", "INV-1", {"total": 1})) == "WORKFLOW_EDIT_LOCKED"
    assert refused(lambda: mine.transition("invoice", "INV-1", "submit")) == "WORKFLOW_TRANSITION_ILLEGAL"
    assert refused(lambda: mine.transition("invoice", "INV-1", "fly")) == "unknown_transition"
    assert refused(lambda: mine.mutate("invoice", "INV-1", {}, action="explode")) == "unknown_action"
    assert mine.get("invoice", "INV-1") == before
    mine.create("invoice", GIVEN, id="INV-2")
    assert refused(lambda: mine.create("invoice", GIVEN, id="INV-2")) == "already_started"
    assert refused(lambda: mine.mutate("invoice", "INV-2", {"total": 1}, expected_version=9)) == "version_conflict"
    mine.mutate("invoice", "INV-2", {"total": 600, "iban": "DE2"})
    with pytest.raises(RejectedError, match=r"since then: iban \(masked\), total \(500 → 600\)") as conflict:
        mine.mutate("invoice", "INV-2", {"note": "x"}, expected_version=1)
    assert conflict.value.reason == "version_conflict"
    assert refused(lambda: mine.mutate("invoice", "INV-2", {"colour": "red"})) == "invalid_document"
    mine.transition("invoice", "INV-2", "submit")
    assert refused(lambda: mine.transition("invoice", "INV-2", "approve")) == "WORKFLOW_GATE_NOT_READY"
    assert refused(lambda: approve(engine, ANN, version="7")) == "APPROVAL_VERSION_STALE"


@pytest.mark.row("EH-01")
def test_whatever_stage_of_an_edit_fails_nothing_is_left_of_it(place: Place) -> None:
    """Key, contract, payload, version, policy, window, rule, handler: each can refuse; not a row is written, and later stages are not reached."""
    engine = opened(place)
    called: list[str] = []

    @engine.handler("give_discount")
    def give_discount(document: dict[str, object]) -> dict[str, object]:
        called.append(str(document["id"]))
        raise LookupError("the price list is away")

    cap = DocumentRule(name="cap", when=when("entity.total > 1000"), reason="this is above the limit")
    engine.govern(rules=lambda _tenant, _type, _action: [cap])
    active(engine, "A")
    may = Actor(id="dora", capabilities=frozenset({"invoice.*", "execution:read"}))
    mine, clerk = asking(engine, BOB).documents, asking(engine, may).documents
    mine.create("invoice", GIVEN, id="D")
    mine.mutate("invoice", "D", {"total": 700}, idempotency_key="k")
    stages: list[tuple[Callable[[], object], type[StandfastError]]] = [
        (lambda: mine.mutate("invoice", "D", {"total": 800}, idempotency_key="k"), ReusedIdError),
        (lambda: mine.mutate("invoice", "D", {}, action="explode"), RejectedError),
        (lambda: mine.mutate("invoice", "D", {"colour": "red"}), RejectedError),
        (lambda: clerk.mutate("invoice", "D", {"by": 1}, action="discount", expected_version=9), RejectedError),
        (lambda: mine.mutate("invoice", "D", {"by": 1}, action="discount"), RejectedError),
        (lambda: clerk.mutate("invoice", "A", {"by": 1}, action="discount"), RejectedError),
        (lambda: mine.mutate("invoice", "D", {"total": 5000}), RejectedError),
    ]
    tables = ("events", "documents", "document_versions", "mutations", "audit", "effects", "receipts", "inbox")
    ruin = Ruin(place.store)

    def stored() -> list[object]:
        rows = [ruin.rows(f"select count(*) from {{}}{table}") for table in tables]
        return [*rows, mine.get("invoice", "D"), mine.get("invoice", "A")]

    before = stored()
    for call, error in stages:
        with pytest.raises(error):
            call()
    assert (stored(), called) == (before, [])
    with pytest.raises(LookupError):
        clerk.mutate("invoice", "D", {"by": 1}, action="discount")
    assert (stored(), called) == (before, ["D"])


@pytest.mark.row("E-010")
def test_what_is_asked_of_workflows_has_a_limit_of_its_own(place: Place) -> None:
    """Decisions and transitions beyond it are refused and change nothing; edits go on, and so do other tenants. A plain user advances nothing."""
    engine = place.engine(Settings(workflow_rate=0.5))
    engine.register(Definition(graph=graph()))
    mine = asking(engine, BOB).documents
    for name in ("INV-1", "INV-2"):
        mine.create("invoice", GIVEN, id=name)
    mine.transition("invoice", "INV-1", "submit")
    (task,) = engine.tasks.list()
    for _ in range(2):
        with pytest.raises(RejectedError, match=r"try again in 2\.0 s") as caught:
            approve(engine, ANN)
        assert caught.value.reason == "WORKFLOW_RATE_LIMITED"
        assert refused(lambda: mine.transition("invoice", "INV-2", "submit")) == "WORKFLOW_RATE_LIMITED"
    with pytest.raises(RejectedError, match="WORKFLOW_RATE_LIMITED"):
        asking(engine, OPERATOR).run(task.instance).skip(1, reason="try")
    assert mine.mutate("invoice", "INV-2", {"total": 700}).version == 2
    other = asking(engine, BOB, tenant="other").documents
    other.create("invoice", GIVEN, id="INV-1")
    assert other.transition("invoice", "INV-1", "submit").status == "submitted"
    engine.advance(seconds=2)
    with pytest.raises(ForbiddenError):
        asking(engine, EVE).tasks.decide(task, "approved", document_version=task.document_version)
    engine.advance(seconds=2)
    approve(engine, ANN)
    assert [each.name for each in engine.tasks.list()] == ["second"]


@pytest.mark.row("E-576")
def test_wrong_input_is_told_and_other_tenants_see_nothing(place: Place) -> None:
    """A wrong type, an unknown name, something huge, another tenant's id: each is answered in words, and nothing is written."""
    engine = opened(place)
    submitted(engine)
    mine = asking(engine, BOB).documents
    theirs = asking(engine, BOB, tenant="other").documents
    unknown: list[Callable[[], object]] = [
        lambda: theirs.get("invoice", "INV-1"),
        lambda: theirs.mutate("invoice", "INV-1", {"total": 1}),
        lambda: theirs.transition("invoice", "INV-1", "cancel"),
        lambda: theirs.amend("invoice", "INV-1", {"total": 1}),
        lambda: theirs.versions("invoice", "INV-1"),
        lambda: theirs.audit("invoice", "INV-1"),
        lambda: mine.create("nothing", GIVEN),
        lambda: mine.get("invoice", "INV-9"),
        lambda: mine.version("invoice", "INV-1", 9),
    ]
    for call in unknown:
        with pytest.raises(NotFoundError) as missing:
            call()
        assert missing.value.kind in {"document", "document type", "version"}
    assert theirs.list("invoice", requester="bob").items == []
    wrong: list[Callable[[], object]] = [
        lambda: mine.create("", GIVEN),
        lambda: mine.create(7, GIVEN),  # type: ignore[arg-type]
        lambda: mine.create("invoice", 7),  # type: ignore[arg-type]
        lambda: mine.create("invoice", {"total": object()}),
        lambda: mine.create("invoice", GIVEN, id="x" * 5000),
        lambda: mine.mutate("invoice", "INV-1", {"note": "x" * 9_000_000}),
        lambda: mine.mutate("invoice", "INV-1", {}, expected_version="1"),  # type: ignore[arg-type]
        lambda: mine.transition("invoice", "INV-1", ""),
        lambda: mine.version("invoice", "INV-1", 0),
        lambda: mine.list("invoice", limit=0),
    ]
    for call in wrong:
        with pytest.raises(PayloadError):
            call()
    assert mine.get("invoice", "INV-1").version == 1


@pytest.mark.row("E-240", "E-669", "E-862", "EH-03", "EO-42")
def test_versions_and_their_differences_are_read(place: Place) -> None:
    """Every version as it was; two of them field by field, sensitive ones masked, and what is not for one's eyes masked everywhere."""
    engine = opened(place)
    mine, finance = asking(engine, BOB).documents, asking(engine, FINANCE).documents
    mine.create("invoice", GIVEN, id="INV-1")
    mine.mutate("invoice", "INV-1", {"total": 700, "iban": "DE2", "note": "new"})
    assert [(each.version, each.data["total"]) for each in mine.versions("invoice", "INV-1")] == [(1, 500), (2, 700)]
    assert finance.version("invoice", "INV-1", 1).data["iban"] == "DE1"
    assert mine.version("invoice", "INV-1", 1).data["iban"] == MASKED
    assert mine.get("invoice", "INV-1").data["iban"] == MASKED
    told = {
        each.field: (each.how, each.before, each.after, each.is_masked)
        for each in finance.diff("invoice", "INV-1", 1, 2)
    }
    assert told == {
        "total": ("changed", 500, 700, False),
        "note": ("added", None, "new", False),
        "iban": ("changed", MASKED, MASKED, True),
    }
    (made, changed) = finance.mutations("invoice", "INV-1")
    assert (made.action, changed.action, changed.kind) == ("create", "update", "business")
    assert changed.changes == {"total": [500, 700], "note": [None, "new"], "iban": {"changed": True}}


@pytest.mark.row(
    "E-235", "E-240", "E-746", "E-068", "E-946", "E-750", "E-463", "EO-44", "ED-08", "E-055", "E-221", "E-905"
)
def test_an_edit_of_what_others_decide_on_makes_an_amendment(place: Place) -> None:
    """The caller gets the document that takes the place of his; the old one is as it was, its questions are gone, and approvals begin anew.

    If what would take its place is refused, nothing has happened at all: the old one is still decided on.
    """
    engine = opened(place)
    cap = DocumentRule(name="cap", when=when("entity.total > 1000"), reason="this is too much")
    engine.govern(rules=lambda _tenant, _type, _action: [cap])
    submitted(engine)
    approve(engine, ANN)
    mine = asking(engine, BOB).documents
    before = mine.get("invoice", "INV-1")
    assert refused(lambda: mine.mutate("invoice", "INV-1", {"total": 2000})) == "rule_blocked"
    assert (mine.get("invoice", "INV-1"), len(engine.tasks.list())) == (before, 1)
    assert [each.id for each in engine.documents.list("invoice").items] == ["INV-1"]
    new = mine.mutate("invoice", "INV-1", {"total": 900}, reason="a typo")
    assert (new.is_amendment, new.status, new.version, new.amended_from) == (True, "amended", 1, "INV-1")
    assert (new.data["total"], new.data["vendor"]) == (900, "acme")
    old = mine.get("invoice", "INV-1")
    assert (old.status, old.superseded_by, old.data["total"]) == ("cancelled", new.id, 500)
    assert (old.run_status, old.window, old.transitions) == ("cancelled", "locked", [])
    assert engine.tasks.list() == []
    assert refused(lambda: mine.mutate("invoice", "INV-1", {"total": 1})) == "ALREADY_SUPERSEDED"
    assert refused(lambda: mine.amend("invoice", "INV-1", {"total": 1})) == "ALREADY_SUPERSEDED"
    mine.transition("invoice", new.id, "submit")
    approve(engine, ANN)
    approve(engine, CARL)
    assert mine.get("invoice", new.id).status == "active"


@pytest.mark.row("E-239")
def test_an_active_document_is_amended_by_name_or_not_at_all(place: Place) -> None:
    """An amendment that does not fit the contract leaves the old document as it was; a good one carries nothing over that the workflow had set."""
    engine = opened(place)
    active(engine)
    mine = asking(engine, BOB).documents
    before = mine.get("invoice", "INV-1")
    assert refused(lambda: mine.amend("invoice", "INV-1", {"total": "much"})) == "invalid_document"
    assert refused(lambda: mine.amend("invoice", "INV-1", {"total": 1}, expected_version=1)) == "version_conflict"
    mine.create("invoice", GIVEN, id="INV-7")
    assert refused(lambda: mine.amend("invoice", "INV-1", {"total": 1}, new_id="INV-7")) == "already_started"
    assert mine.get("invoice", "INV-1") == before
    new = mine.amend("invoice", "INV-1", {"total": 900}, new_id="INV-1a")
    assert (new.id, new.status, "posting" in new.data) == ("INV-1a", "amended", False)
    assert mine.get("invoice", "INV-1").superseded_by == "INV-1a"


def test_a_contract_may_amend_in_place(place: Place) -> None:
    """The same document, with another version, approved anew."""
    engine = opened(place, amendment="in_place")
    active(engine)
    mine = asking(engine, BOB).documents
    again = mine.amend("invoice", "INV-1", {"total": 900})
    assert (again.id, again.status, again.version, again.is_amendment) == ("INV-1", "amended", 3, False)
    assert [each.completed_at is None for each in mine.rounds("invoice", "INV-1")] == [False, True]


@pytest.mark.row("E-114", "EO-22")
def test_documents_are_adopted_and_later_moved(place: Place) -> None:
    """One that was active before is taken over by who may repair, and cancelled in a round of its own."""
    engine = opened(place)
    with pytest.raises(ForbiddenError):
        asking(engine, EVE).documents.adopt("invoice", "OLD", {**GIVEN, "currency": "EUR"}, status="active")
    seen = engine.documents.adopt(
        "invoice", "OLD", {**GIVEN, "currency": "EUR", "posting": "P"}, status="active", version=4
    )
    assert (seen.status, seen.version, seen.window) == ("active", 4, "locked")
    assert engine.documents.transition("invoice", "OLD", "cancel").status == "cancelled"
    assert [each.status for each in engine.documents.rounds("invoice", "OLD")] == ["active", "cancelled"]


@pytest.mark.row("E-242")
def test_only_the_newest_of_a_chain_of_amendments_is_amended(place: Place) -> None:
    """Each amendment names what it replaces and each replaced one its successor; what was replaced, also twice removed, is not amended again."""
    engine = opened(place)
    submitted(engine, "A")
    mine = asking(engine, BOB).documents
    mine.amend("invoice", "A", {"total": 600}, new_id="B")
    mine.transition("invoice", "B", "submit")
    mine.amend("invoice", "B", {"total": 700}, new_id="C")
    chain = {each.id: (each.amended_from, each.superseded_by) for each in mine.list("invoice", requester="bob").items}
    assert chain == {"A": ("", "B"), "B": ("A", "C"), "C": ("B", "")}
    for old in ("A", "B"):
        before = mine.get("invoice", old)
        with pytest.raises(RejectedError, match="ALREADY_SUPERSEDED"):
            mine.amend("invoice", old, {"total": 1})
        assert mine.get("invoice", old) == before
    mine.transition("invoice", "C", "submit")
    assert mine.amend("invoice", "C", {"total": 800}).amended_from == "C"


@pytest.mark.row("E-310", "EO-33")
def test_documents_are_listed_by_type_status_and_requester(place: Place) -> None:
    """Newest first, page by page; who may not look at all of them sees their own."""
    engine = opened(place)
    for number in range(5):
        asking(engine, BOB if number % 2 else ANN).documents.create("invoice", GIVEN, id=f"I{number}")
        place.clock.move(timedelta(seconds=1))
    asking(engine, BOB).documents.transition("invoice", "I3", "submit")
    look = asking(engine, FINANCE).documents
    first = look.list("invoice", limit=3)
    assert [each.id for each in first.items] == ["I4", "I3", "I2"]
    assert [each.id for each in look.list("invoice", limit=3, cursor=first.next).items] == ["I1", "I0"]
    assert [each.id for each in look.list("invoice", status="submitted").items] == ["I3"]
    assert [each.id for each in look.list("invoice", status="draft", requester="bob").items] == ["I1"]
    assert [each.id for each in asking(engine, BOB).documents.list("invoice", requester="bob").items] == ["I3", "I1"]
    with pytest.raises(ForbiddenError):
        asking(engine, BOB).documents.list("invoice")
    assert look.list("order").items == []


@pytest.mark.row("EO-32")
def test_many_are_approved_at_once_each_by_itself(place: Place) -> None:
    """As they were listed, or with the version that was looked at; one that is refused says why and holds nobody up, and again is the same."""
    engine = opened(place)
    for number in range(4):
        submitted(engine, f"I{number}")
    listed = sorted(engine.tasks.list(), key=lambda task: task.key)
    ann: Any = asking(engine, ANN).tasks
    stale: tuple[str, str] = (listed[2].step_id, "7")
    given: list[Any] = [listed[0], (listed[1].step_id, "1"), stale, f"{listed[0].instance}:99", "nonsense"]
    for _ in range(2):
        told = ann.decide_many(given, "approved", comment="all of them")
        assert [each.status for each in told] == ["decided", "decided", "refused", "refused", "refused"]
        assert [each.task for each in told] == [listed[0].step_id, listed[1].step_id, stale[0], given[3], "nonsense"]
        assert all(each.code and each.detail for each in told[2:])
    assert sorted((each.key, each.name) for each in engine.tasks.list()) == [
        ("I0", "second"), ("I1", "second"), ("I2", "first"), ("I3", "first"),
    ]  # fmt: skip
    assert {each.status for each in asking(engine, EVE).tasks.decide_many([listed[3]], "approved")} == {"refused"}
    for wrong in ("x", [listed[3]] * 1001):
        with pytest.raises(PayloadError):
            ann.decide_many(wrong, "approved")
    with pytest.raises(PayloadError):
        ann.decide_many([listed[3]], "")


@pytest.mark.row("E-669", "E-923")
def test_who_is_asked_may_look_and_others_may_not(place: Place) -> None:
    """The requester, those who are asked and who may look at all runs read a document; anybody else is refused."""
    engine = opened(place)
    submitted(engine)
    for actor in (BOB, ANN, FINANCE):
        assert asking(engine, actor).documents.version("invoice", "INV-1", 1).data["total"] == 500
    for call in (
        lambda: asking(engine, EVE).documents.get("invoice", "INV-1"),
        lambda: asking(engine, EVE).documents.audit("invoice", "INV-1"),
    ):
        with pytest.raises(ForbiddenError):
            call()


@pytest.mark.row("E-052", "E-061", "E-902", "E-911", "ED-18")
def test_a_repeated_call_is_carried_out_once(place: Place) -> None:
    """The same key gives the same answer and no second version; another edit under it is refused."""
    engine = opened(place)
    mine = asking(engine, BOB).documents
    for _ in range(2):
        mine.create("invoice", GIVEN, id="INV-1", idempotency_key="c")
        assert mine.mutate("invoice", "INV-1", {"total": 700}, idempotency_key="m").version == 2
    with pytest.raises(ReusedIdError):
        mine.mutate("invoice", "INV-1", {"total": 800}, idempotency_key="m")


@pytest.mark.row("E-834")
@pytest.mark.row("E-884", "E-933")
def test_rules_and_settings_of_the_organisation_are_asked_each_time(place: Place) -> None:
    """What a tenant's rules say is judged with its settings, for its own documents alone."""
    engine = opened(place)
    cap = DocumentRule(
        name="cap", when=when("entity.total > org.limit"), reason="this is above the limit of the organisation"
    )
    engine.govern(rules=lambda tenant, _type, _action: [cap] if tenant == "default" else [])
    engine.govern(organisation=lambda _tenant: {"limit": 1000})
    mine = asking(engine, BOB).documents
    mine.create("invoice", GIVEN, id="INV-1")
    assert refused(lambda: mine.mutate("invoice", "INV-1", {"total": 2000})) == "rule_blocked"
    other = asking(engine, BOB, tenant="other").documents
    assert other.create("invoice", {**GIVEN, "total": 2000}).data["total"] == 2000


@pytest.mark.row("E-953", "EH-01", "EH-15")
@pytest.mark.row("E-420", "E-224")
def test_the_handler_of_an_action_writes_in_the_same_transaction(place: Place) -> None:
    """It gets the document, the payload and the open connection; what it writes goes with a refusal, and it is not called where nothing may change."""
    engine = opened(place)
    calls: list[str] = []
    mark = "insert into discounts values ('INV-1')"

    @engine.handler("give_discount")
    def give_discount(
        context: StepContext, document: dict[str, object], payload: dict[str, object]
    ) -> dict[str, object]:
        calls.append(str(document["id"]))
        _run(context.connection, mark)
        data = document["data"]
        assert isinstance(data, dict)
        return {"total": data["total"] - payload["by"]}

    engine.service.joints.run(_made)
    clerk = Actor(id="dora", capabilities=frozenset({"invoice.*", "execution:read"}))
    mine = asking(engine, clerk).documents
    mine.create("invoice", GIVEN, id="INV-1")
    assert mine.mutate("invoice", "INV-1", {"by": 100}, action="discount").data["total"] == 400
    assert (
        refused(lambda: asking(engine, BOB).documents.mutate("invoice", "INV-1", {"by": 1}, action="discount"))
        == "not_allowed"
    )
    assert (calls, _count(engine)) == (["INV-1"], 1)
    with pytest.raises(StandfastError):
        mine.mutate("invoice", "INV-1", {"by": 0.5}, action="discount")
    assert (len(calls), _count(engine)) == (2, 1)
    mine.transition("invoice", "INV-1", "submit")
    assert (
        refused(lambda: mine.mutate("invoice", "INV-1", {"by": 1}, action="discount")) == "WORKFLOW_AMENDMENT_REQUIRED"
    )
    assert len(calls) == 2


def _made(joint: JointCommit) -> None:
    with joint.lend("default") as connection:
        _run(connection, "create table discounts (id text)")


def _run(connection: object, statement: str) -> list[tuple[int]]:
    cursor = connection.execute(statement)  # type: ignore[attr-defined]
    return list(cursor.fetchall()) if statement.startswith("select") else []


def _count(engine: ManualEngine) -> int:
    def count(joint: JointCommit) -> int:
        with joint.lend("default") as connection:
            return _run(connection, "select count(*) from discounts")[0][0]

    return engine.service.joints.run(count)


@pytest.mark.row("E-264")
def test_a_document_stays_with_the_version_of_its_workflow(place: Place) -> None:
    """A new version of the workflow serves new documents; those that are there keep theirs."""
    engine = opened(place)
    mine = asking(engine, BOB).documents
    mine.create("invoice", GIVEN, id="A")
    engine.register(Definition(graph=graph(version="2", amendment="in_place")))
    mine.create("invoice", GIVEN, id="B")
    assert [mine.get("invoice", each).workflow_version for each in ("A", "B")] == ["1", "2"]


def test_what_a_caller_is_shown_is_their_own(place: Place) -> None:
    """A write brings what a read would; and whatever is done to the content that it brought, the document stays as it was written."""
    engine = opened(place, fields={**FIELDS, "lines": DocumentField(type="list")})
    mine = asking(engine, BOB).documents
    lines: list[object] = [{"item": "a chair", "tags": ["oak"]}]
    writes: list[Callable[[], DocumentView]] = [
        lambda: mine.create("invoice", {**GIVEN, "lines": lines}, id="INV-1"),
        lambda: mine.mutate("invoice", "INV-1", {"total": 700}),
        lambda: mine.transition("invoice", "INV-1", "submit"),
        lambda: mine.transition("invoice", "INV-1", "recall"),
        lambda: mine.mutate("invoice", "INV-1", {"total": 800}),
    ]
    for write in writes:
        engine.advance(timedelta(hours=1))
        answer = write()
        assert answer == mine.get("invoice", "INV-1")
        assert (answer.data["lines"], answer.updated_by) == (lines, "bob")
        answer.data["lines"][0]["tags"].append("beech")  # type: ignore[index]
    assert mine.version("invoice", "INV-1", 3).data["lines"] == lines
