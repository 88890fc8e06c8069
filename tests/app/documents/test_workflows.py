"""Workflows of documents while documents go through them: taken out of use and put back, and documents that are moved from one to another."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from app.documents.blueprints import BODY, BOTH, CLERK, DORA, GIVEN, PAUL, of, opened, published
from standfast import Actor, ConflictError, ForbiddenError, NotFoundError, PayloadError, RejectedError
from standfast.features.documents.content.views import DocumentMove
from standfast.features.documents.contract.format import Contract
from standfast.features.documents.contract.library import ready_contract
from standfast.testing import ManualEngine
from support.engines import Place

OPERATOR = Actor(id="olga", capabilities=frozenset({"bodies:publish", "execution:*"}))
PUBLISHER = Actor(id="pia", capabilities=frozenset({"bodies:*", "contracts:publish"}))
OFFICER = Actor(id="olaf", capabilities=frozenset({"documents:redact", "execution:*"}))
BOARD = Actor(id="ben", roles=frozenset({"board"}))
MANAGER = Actor(id="mia", roles=frozenset({"manager"}))


def made(engine: ManualEngine, name: str) -> str:
    """An invoice that is submitted; the workflow that it has."""
    mine = of(engine, CLERK).documents
    mine.create("invoice", GIVEN, id=name)
    return mine.transition("invoice", name, "submit").workflow_version


def decide(engine: ManualEngine, name: str) -> str:
    """A manager approves an invoice; the status that it has then."""
    calls = of(engine, MANAGER)
    (task,) = [each for each in of(engine, OPERATOR).tasks.list() if each.key == name]
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


@pytest.mark.row("EO-12")
def test_the_workflow_before_goes_on_standing_in(place: Place) -> None:
    """A body that another has replaced stands in at any later time and in every process; what an operator has archived stands in nowhere."""
    engine = opened(place)
    acme = published(engine)
    acme.bodies.publish(acme.bodies.save(BODY.replace("id: manager", "id: boss")).id)
    of(engine, OPERATOR).workflows.suspend("invoice", "2-org", "it lets everything through")
    engine.advance(minutes=1)
    assert made(engine, "I-1") == "1-org"
    other = place.engine()
    assert made(other, "I-2") == "1-org"
    assert of(engine, CLERK).documents.amend("invoice", "I-1", {"number": "R-9"}).workflow_version == "1-org"
    assert [each.is_moved for each in moved_to(engine, "2-org", "1-org")] == []
    acme.definitions.archive("invoice", "1-org", reason="old")
    with pytest.raises(RejectedError, match="archived"):
        made(engine, "I-3")


@pytest.mark.row("EO-12")
def test_a_replaced_version_takes_documents_at_any_time(place: Place) -> None:
    """Documents are moved to a version that another body has replaced, however long ago that was."""
    engine = opened(place)
    acme = published(engine)
    acme.bodies.publish(acme.bodies.save(BODY).id)
    assert made(engine, "I-1") == "2-org"
    engine.advance(minutes=1)
    assert [each.is_moved for each in moved_to(engine, "2-org", "1-org")] == [True]


def moved_to(engine: ManualEngine, before: str, after: str) -> list[DocumentMove]:
    """What became of the documents that an operator had follow another version."""
    return of(engine, OPERATOR).workflows.move("invoice", before, after, reason="a test").items


@pytest.mark.row("EO-12")
def test_the_bare_envelope_of_an_own_contract_is_no_stand_in(place: Place) -> None:
    """An organisation's contract comes with a bare workflow before its first body; that stands in for another bare one, and for no body."""
    engine = place.engine()
    acme = of(engine, PUBLISHER)
    acme.contracts.publish(ready_contract("invoice"))
    assert made(engine, "I-1") == "1-org"
    acme.bodies.publish(acme.bodies.save(BODY).id)
    assert made(engine, "I-2") == "2-org"
    of(engine, OPERATOR).workflows.suspend("invoice", "2-org", "bad")
    with pytest.raises(RejectedError, match="WORKFLOW_SUSPENDED"):
        made(engine, "I-3")


@pytest.mark.row("EO-12")
def test_a_bare_workflow_stands_in_for_a_bare_one(place: Place) -> None:
    """Where an organisation has no body, the workflow of its former contract stands in."""
    engine = place.engine()
    acme = of(engine, PUBLISHER)
    acme.contracts.publish(ready_contract("invoice"))
    acme.contracts.publish(replace(ready_contract("invoice"), version=2))
    assert made(engine, "I-1") == "2-org"
    of(engine, OPERATOR).workflows.suspend("invoice", "2-org", "bad")
    assert made(engine, "I-2") == "1-org"


NEWER = """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    nodes:
      - {id: boss, type: approval, approvers: [{role: manager}]}
      - {id: board, type: approval, approvers: [{role: board}]}
    edges: [{from: boss, to: board}]
"""
SLOT = "usr:slot:submitted_to_approved:"


@pytest.mark.row("EO-11")
def test_documents_are_moved_to_another_version(place: Place) -> None:
    """Told first what would be; a step that has no counterpart keeps its document where it is, until the plan names one; the history says so."""
    engine = opened(place)
    acme = published(engine)
    mine = of(engine, CLERK).documents
    assert made(engine, "I-1") == "1-org"
    mine.create("invoice", GIVEN, id="I-2")
    acme.bodies.publish(acme.bodies.save(NEWER).id)
    operator, names = of(engine, OPERATOR), {f"{SLOT}manager": f"{SLOT}boss"}
    plan = operator.workflows.move("invoice", "1-org", "2-org", reason="a board", dry_run=True)
    problems = {each.id: each.problem for each in plan.items}
    assert (problems["I-2"], set(problems)) == ("", {"I-1", "I-2"})
    assert "'usr:slot:submitted_to_approved:manager', which has no counterpart" in problems["I-1"]
    better = operator.workflows.move("invoice", "1-org", "2-org", nodes=names, reason="a board", dry_run=True)
    assert [each.is_moved for each in better.items] == [True, True]
    assert [mine.get("invoice", each).workflow_version for each in ("I-1", "I-2")] == ["1-org", "1-org"]
    first = operator.workflows.move("invoice", "1-org", "2-org", reason="a board", dry_run=True, limit=1)
    second = operator.workflows.move(
        "invoice", "1-org", "2-org", reason="a board", dry_run=True, limit=1, cursor=str(first.next)
    )
    assert [each.id for each in (*first.items, *second.items)] == [each.id for each in plan.items]
    both = operator.workflows.move("invoice", "1-org", "2-org", reason="a board", dry_run=True, limit=2)
    assert (both.items, both.next, plan.next) == (plan.items, both.items[-1].instance, None)
    done = operator.workflows.move("invoice", "1-org", "2-org", nodes=names, reason="a board")
    assert [each.is_moved for each in done.items] == [True, True]
    assert operator.workflows.move("invoice", "1-org", "2-org", nodes=names, reason="again").items == []
    seen = mine.get("invoice", "I-1")
    assert (seen.workflow_version, seen.places, seen.status) == ("2-org", [f"{SLOT}boss"], "submitted")
    with pytest.raises(
        ConflictError, match=r"under way .*boss"
    ):  # It is looked at by the workflow that it follows now.
        of(engine, OFFICER).documents.redact("invoice", "I-1", ["number"], reason="a request")
    assert decide(engine, "I-1") == "submitted"
    (task,) = [each for each in operator.tasks.list() if each.key == "I-1"]
    assert task.name == f"{SLOT}board"
    of(engine, BOARD).tasks.decide(task, "approved", document_version=task.document_version)
    assert mine.get("invoice", "I-1").status == "active"
    (line,) = [each for each in mine.audit("invoice", "I-1") if each.what.startswith("switch")]
    assert (line.what, line.who, line.why) == ("switch workflow 1-org to 2-org", "olga", "a board")
    later = of(place.engine(), CLERK).documents  # Another process, which has only the history.
    assert later.mutate("invoice", "I-2", {"note": "x"}).workflow_version == "2-org"


@pytest.mark.row("EO-11")
def test_who_and_what_cannot_be_moved(place: Place) -> None:
    """Without the right, to or from what is not there, with a map of something else: told, and nothing is moved."""
    engine = opened(place)
    acme = published(engine)
    assert made(engine, "I-1") == "1-org"
    acme.bodies.publish(acme.bodies.save(NEWER).id)
    operator = of(engine, OPERATOR).workflows
    with pytest.raises(ForbiddenError):
        of(engine, CLERK).workflows.move("invoice", "1-org", "2-org", reason="why not")
    for wrong in ("9-org", "x" * 300):
        with pytest.raises((NotFoundError, PayloadError)):
            operator.move("invoice", "1-org", wrong, reason="why not")
    for nodes in ("manager", {"a": 1}, {str(n): "x" for n in range(2001)}):
        with pytest.raises(PayloadError, match="`nodes`"):
            operator.move("invoice", "1-org", "2-org", nodes=nodes, reason="why not")  # type: ignore[arg-type]
    with pytest.raises(PayloadError, match="say why"):
        operator.move("invoice", "1-org", "2-org", reason="")
    (kept,) = operator.move(
        "invoice", "1-org", "2-org", nodes={f"{SLOT}manager": f"{SLOT}nobody", "x": f"{SLOT}boss"}, reason="a slip"
    ).items
    assert ("'x'" in kept.problem, "nobody" in kept.problem, kept.is_moved) == (True, True, False)
    with pytest.raises(NotFoundError):
        of(engine, OPERATOR, tenant="rival").workflows.move("invoice", "1-org", "2-org", reason="why not")
    assert operator.move("invoice", "1-org", "2-org", documents=["I-9"], reason="why not").items == []
    assert of(engine, CLERK).documents.get("invoice", "I-1").workflow_version == "1-org"


BOARDLESS = NEWER.replace("      - {id: board, type: approval, approvers: [{role: board}]}\n", "").replace(
    "    edges: [{from: boss, to: board}]\n", ""
)
REPAIRER = Actor(id="rita", capabilities=frozenset({"bodies:publish", "execution:repair", "execution:read"}))


@pytest.mark.row("EO-11")
def test_no_document_is_moved_past_an_approval(place: Place) -> None:
    """One that has to be approved by the board stays where that is asked for; one that waits in its state is moved by those who may override."""
    engine = opened(place)
    acme = published(engine, NEWER)
    assert made(engine, "I-1") == "1-org"
    of(engine, CLERK).documents.create("invoice", GIVEN, id="I-2")
    acme.bodies.publish(acme.bodies.save(BOARDLESS).id)
    plan = of(engine, REPAIRER).workflows.move("invoice", "1-org", "2-org", reason="no board", dry_run=True)
    problems = {each.id: each.problem for each in plan.items}
    assert f"'{SLOT}board' lies ahead" in problems["I-1"]
    assert "execution:override" in problems["I-2"]
    done = of(engine, OPERATOR).workflows.move("invoice", "1-org", "2-org", reason="no board")
    assert {each.id: each.is_moved for each in done.items} == {"I-1": False, "I-2": True}
    assert decide(engine, "I-1") == "submitted"


OWNED = """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    nodes:
      - {id: receipt, type: wait_event, event: paid}
      - {id: owner, type: script, formula: entity.budget_owner_id, into: boss}
      - {id: manager, type: approval, approvers: [{expression: context.boss}]}
    edges: [{from: receipt, to: owner, on: event}, {from: owner, to: manager}]
"""
CHOSEN = """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    nodes:
      - {id: receipt, type: wait_event, event: paid}
      - {id: size, type: script, formula: entity.grand_total > 100, into: big}
      - {id: choice, type: condition, expression: context.big == true}
      - {id: manager, type: approval, approvers: [{role: manager}]}
      - {id: done, type: script, formula: "true", into: done}
    edges:
      - {from: receipt, to: size, on: event}
      - {from: size, to: choice}
      - {from: choice, to: manager, on: "true"}
      - {from: choice, to: done, on: "false"}
      - {from: manager, to: done}
"""


def moves(engine: ManualEngine, actor: Actor) -> dict[str, str]:
    """Why documents are not moved by somebody from the first version to the second; a dry run says the same."""
    calls = of(engine, actor).workflows
    plan = calls.move("invoice", "1-org", "2-org", reason="another one", dry_run=True)
    done = calls.move("invoice", "1-org", "2-org", reason="another one")
    assert all(it.problem.startswith(planned.problem) for it, planned in zip(done.items, plan.items, strict=True))
    assert [each.is_moved for each in done.items] == [each.is_moved for each in plan.items]
    return {each.id: each.problem for each in done.items}


@pytest.mark.row("EO-11")
def test_what_says_who_is_asked_takes_the_right_to_override(place: Place) -> None:
    """A script ahead that names another approver is not for those who may only repair, and the audit names it."""
    engine = opened(place)
    acme = published(engine, OWNED)
    assert made(engine, "I-1") == "1-org"
    acme.bodies.publish(acme.bodies.save(OWNED.replace("entity.budget_owner_id", "entity.note")).id)
    assert "execution:override" in moves(engine, REPAIRER)["I-1"]
    assert moves(engine, OPERATOR) == {"I-1": ""}
    (line,) = [each for each in of(engine, CLERK).documents.audit("invoice", "I-1") if each.what.startswith("switch")]
    assert f"{SLOT}owner" in line.why


@pytest.mark.row("EO-11")
def test_what_says_whether_people_are_asked_is_not_another_by_a_move(place: Place) -> None:
    """A script by which nobody might be asked keeps documents where it lies ahead of them, whoever would move them."""
    engine = opened(place)
    acme = published(engine, CHOSEN)
    assert made(engine, "I-1") == "1-org"
    acme.bodies.publish(acme.bodies.save(CHOSEN.replace("> 100", "> 100000")).id)
    for actor in (REPAIRER, OPERATOR):
        assert f"'{SLOT}manager' lies ahead" in moves(engine, actor)["I-1"]
    assert of(engine, CLERK).documents.get("invoice", "I-1").workflow_version == "1-org"


POSTED = """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    nodes: [{id: size, type: script, formula: entity.grand_total, into: size}]
"""


def invoices(version: int, **approve: object) -> Contract:
    """The contract of invoices, with another transition to active."""
    ready = ready_contract("invoice")
    ways = [
        replace(each, **{"begins": "asked", **approve}) if each.name == "approve" else each
        for each in ready.lifecycle.transitions
    ]
    return replace(ready, version=version, lifecycle=replace(ready.lifecycle, transitions=ways))


@pytest.mark.row("EO-11")
@pytest.mark.parametrize("lax", [{"permission": None}, {"begins": "by_itself"}], ids=["permission", "begins"])
def test_a_gate_that_asks_for_fewer_rights_takes_the_right_to_override(place: Place, lax: dict[str, object]) -> None:
    """A version by whose contract anybody approves, or nobody has to, is not for those who may only repair."""
    engine = place.engine()
    engine.contracts.publish(invoices(1))
    acme = published(engine, POSTED)
    of(engine, CLERK).documents.create("invoice", GIVEN, id="I-1")
    engine.contracts.publish(invoices(2, **lax))
    acme.bodies.publish(acme.bodies.save(POSTED).id)
    assert "'approve'" in (told := moves(engine, REPAIRER)["I-1"])
    assert "execution:override" in told
    assert moves(engine, OPERATOR) == {"I-1": ""}


@pytest.mark.row("EO-11")
def test_no_document_is_moved_to_a_version_out_of_use(place: Place) -> None:
    """Neither one that is suspended nor one that is archived, in a dry run either; one that another body has replaced is in use."""
    engine = opened(place)
    acme = published(engine)
    assert made(engine, "I-1") == "1-org"
    acme.bodies.publish(acme.bodies.save(BODY).id)
    assert made(engine, "I-2") == "2-org"
    operator = of(engine, OPERATOR)

    def refusal(to: str, before: str) -> str:
        found = set()
        for dry_run in (True, False):
            try:
                operator.workflows.move("invoice", before, to, reason="a try", dry_run=dry_run)
                found.add("")
            except RejectedError as error:
                found.add(error.reason)
        (only,) = found
        return only

    operator.workflows.suspend("invoice", "2-org", "it is bad")
    engine.advance(timedelta(minutes=1))  # By then every process has looked up which versions are out of use.
    assert refusal("2-org", "1-org") == "WORKFLOW_SUSPENDED"
    assert refusal("1-org", "2-org") == ""
    assert made(engine, "I-3") == "1-org"
    assert of(engine, CLERK).documents.get("invoice", "I-2").workflow_version == "1-org"
    operator.workflows.lift("invoice", "2-org", "it is good")
    engine.drain()
    assert refusal("2-org", "1-org") == ""
    acme.definitions.archive("invoice", "1-org", reason="old")
    assert refusal("1-org", "2-org") == "archived"
    acme.definitions.restore("invoice", "1-org")
    acme.bodies.archive("invoice", "no more of it")
    assert refusal("1-org", "2-org") == "WORKFLOW_ARCHIVED"
