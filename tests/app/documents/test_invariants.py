"""The rules that every document keeps: damage that no engine does is found, named, and set right where the history tells how."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import msgspec
import pytest

from app.documents.blueprints import BODY, published
from app.documents.blueprints import opened as with_contract
from app.documents.orders import GIVEN as ORDER
from app.documents.orders import SELLER, body, register
from people.test_webhook import LOCAL, Receiver, receiver
from standfast import Actor, ConflictError, ForbiddenError, NotFoundError, PayloadError, RequestContext, Settings
from standfast.features.documents.invariants.rules import RULES
from standfast.features.documents.invariants.views import Violation
from standfast.graph import model as g
from standfast.graph.definition import Definition
from standfast.graph.model import Edge, Graph, Node
from standfast.kernel.actor import SYSTEM
from standfast.kernel.history import ROWS_REBUILT
from standfast.store.opening import open_store
from standfast.testing import ManualEngine
from support.databases import Databases
from support.engines import STORES, Place
from support.envelopes import ACTIVE_SLOT, APPROVE_SLOT, approval, both, chain, invoice
from support.ruining import Ruin

__all__ = ["receiver"]

BOB = Actor(id="bob")
DECIDERS = (Actor(id="ann"), Actor(id="carl"))
GIVEN: dict[str, object] = {"vendor": "acme", "total": 500}
Data = dict[str, Any]
Damage = Callable[[Ruin, str], None]


def workflow(name: str = "invoice", version: str = "1") -> Graph:
    """Invoices that two people approve at the same time, and that are booked then."""
    second = msgspec.structs.replace(approval("second", who="user:carl"), timeout_ms=86_400_000)
    asked = both(approval("first"), second)
    booked = chain(Node(id="book", op=g.TaskOp(work=g.HandlerCall(handler="book"))))
    return invoice({APPROVE_SLOT: asked, ACTIVE_SLOT: booked}, name=name, version=version)


def asking(engine: ManualEngine, actor: Actor) -> Any:
    """The calls of somebody."""
    return engine.acting(RequestContext(tenant="default", actor=actor))


def drafted(engine: ManualEngine, name: str) -> str:
    """A draft that was edited; its run."""
    documents = asking(engine, BOB).documents
    documents.create("invoice", GIVEN, id=name)
    return str(documents.mutate("invoice", name, {"total": 700}, idempotency_key=f"edit {name}").instance)


def submitted(engine: ManualEngine, name: str) -> str:
    """One that waits for both approvals."""
    run = drafted(engine, name)
    asking(engine, BOB).documents.transition("invoice", name, "submit")
    return run


def approved(engine: ManualEngine, name: str) -> str:
    """One that has them, and waits to be booked."""
    run = submitted(engine, name)
    for actor, task in zip(DECIDERS, engine.run(run).tasks(), strict=True):
        asking(engine, actor).tasks.decide(task, "approved", document_version=task.document_version, comment="fine")
    return run


def cancelled(engine: ManualEngine, name: str) -> str:
    """One that was cancelled, a while after it was written."""
    run = drafted(engine, name)
    engine.advance(seconds=60)
    asking(engine, BOB).documents.transition("invoice", name, "cancel")
    return run


def amended(engine: ManualEngine, name: str) -> str:
    """One that takes the place of another."""
    submitted(engine, f"{name}-old")
    new = asking(engine, BOB).documents.amend("invoice", f"{name}-old", {"total": 900}, new_id=name)
    return str(new.instance)


def sealed(engine: ManualEngine, name: str) -> str:
    """A draft whose history was sealed."""
    run = drafted(engine, name)
    engine.seals.seal()
    return run


def _drift(ruin: Ruin, run: str) -> None:
    """An edit behind the kernel's back: an event at the end of the history, which the row counts."""
    ((last,),) = ruin.rows("select max(sequence) from {}events where instance = ?", run)
    where = "instance = ? and type = 'document_changed'"
    ((position,),) = ruin.rows("select max(position) from {}events")
    data = msgspec.json.encode({"version": 3, "changes": {"total": 1}, "by": "eve"})
    ruin.copy("events", where, run, sequence=last + 1, position=position + 1, data=data, cause="behind")
    ruin.run("update {}instances set version = version + 1 where id = ?", run)


def _copied_step(node: str) -> Damage:
    return lambda ruin, run: ruin.copy("steps", "instance = ? and node = ?", run, node, number=99)


def _sql(statement: str) -> Damage:
    return lambda ruin, run: ruin.run(statement, run)


def _told(type_: str, **changed: object) -> Damage:
    return lambda ruin, run: ruin.event(run, type_, lambda data: {**data, **changed})


def _on_a_draft(ruin: Ruin, run: str) -> None:
    """A document whose workflow was never published."""
    ruin.copy("definitions", "name = 'invoice'", version="8", status="draft")
    ruin.run("update {}instances set definition_version = '8' where id = ?", run)


def _edited_before_gate(ruin: Ruin, run: str) -> None:
    """An edit behind the kernel's back, told right before the gate."""
    where = "where instance = ? and type = 'approvals_applied'"
    ((sequence,),) = ruin.rows(f"select sequence from {{}}events {where}", run)
    changed = msgspec.json.encode({"version": 3, "changes": {"total": 1}, "by": "eve", "step": 99})
    statement = "update {}events set type = 'document_changed', data = ? where instance = ? and sequence = ?"
    ruin.run(statement, changed, run, sequence - 1)


def _visited_twice(ruin: Ruin, run: str) -> None:
    """The history says of the second question that it is the first one's visit of the same node by the same token."""
    where = "where instance = ? and type = 'step_started' order by sequence"
    told = ruin.rows(f"select sequence, data from {{}}events {where}", run)
    first, second = told[-2:]
    said = msgspec.json.decode(bytes(first[1])) | {"step": msgspec.json.decode(bytes(second[1]))["step"]}
    statement = "update {}events set data = ? where instance = ? and sequence = ?"
    ruin.run(statement, msgspec.json.encode(said), run, second[0])


DOCUMENTS: dict[str, tuple[set[str], Callable[[ManualEngine, str], str], Damage]] = {
    "sealed": (  # The first one: what is made later is not sealed.
        {"T1"},
        sealed,
        _sql("update {}events set comment = 'it was you' where sequence = 1 and instance = ?"),
    ),
    "an event is gone": ({"WF-01"}, submitted, _sql("delete from {}events where instance = ? and sequence = 2")),
    "the row counts others": ({"WF-01"}, submitted, _sql("update {}instances set version = version + 3 where id = ?")),
    "a step twice": ({"WF-02"}, approved, _copied_step("first")),
    "a visit twice": ({"WF-02"}, submitted, _visited_twice),
    "used up and not": ({"WF-03"}, approved, _sql("update {}task_decisions set applied = null where instance = ?")),
    "used up without": ({"WF-03", "WF-15", "K-01", "G3"}, approved, _told("step_answered", outcome="rejected")),
    "approved something else": (
        {"WF-03", "WF-05", "WF-09", "WF-15", "K-01"},
        approved,
        _edited_before_gate,
    ),
    "edited past the window": ({"WF-05", "WF-15", "K-01"}, submitted, _drift),
    "without a workflow": (
        {"WF-07"},
        submitted,
        _sql("update {}instances set definition_version = '9' where id = ?"),
    ),
    "on a draft": ({"WF-07"}, submitted, _on_a_draft),
    "a step is gone": ({"WF-09"}, approved, _sql("delete from {}steps where instance = ? and node = 'first'")),
    "a call is gone": ({"WF-10"}, approved, _sql("delete from {}effects where instance = ?")),
    "a call twice": ({"WF-11"}, approved, lambda ruin, run: ruin.copy("effects", "instance = ?", run, number=99)),
    "a receipt is gone": ({"WF-14"}, submitted, _sql("delete from {}receipts where instance = ?")),
    "a receipt of nothing": ({"WF-14"}, submitted, _sql("update {}receipts set version = 999 where instance = ?")),
    "a command twice": (
        {"WF-14"},
        approved,
        _sql(
            "update {0}events set cause = (select cause from {0}events e where e.instance = events.instance and e.sequence = 1) "
            "where sequence = 6 and instance = ?"
        ),
    ),
    "another author": (
        {"K-01"},
        drafted,
        _sql("update {}events set actor = 'eve' where type = 'document_changed' and instance = ?"),
    ),
    "another starter": ({"WF-15"}, drafted, _sql("update {}instances set started_by = 'eve' where id = ?")),
    "an unreadable call": (
        {"WF-11"},
        approved,
        lambda ruin, run: ruin.run("update {}effects set data = ? where instance = ?", b"{}", run),
    ),
    "another status": ({"WF-15"}, submitted, _sql("update {}documents set status = 'active' where instance = ?")),
    "another place": ({"WF-15"}, submitted, _sql("update {}instances set status = 'completed' where id = ?")),
    "an end that the row does not tell": (
        {"WF-15"},
        cancelled,
        _sql("update {}instances set status = 'running', reason = '', ended_at = null where id = ?"),
    ),
    "a document without its row": ({"WF-15"}, submitted, _sql("delete from {}documents where instance = ?")),
    "a join twice": ({"WF-16"}, approved, _copied_step("meet")),
    "a zombie": (
        {"WF-15", "WF-16"},
        approved,
        _sql("update {}steps set status = 'pending' where instance = ? and node = 'second'"),
    ),
    "another version": (
        {"K-01"},
        drafted,
        _sql("update {}document_versions set written_by = 'eve' where instance = ? and version = 1"),
    ),
    "a version is left out": ({"K-01", "WF-15"}, drafted, _told("document_changed", version=9)),
    "an audit without a line": ({"K-01"}, drafted, _sql("delete from {}audit where instance = ? and sequence = 2")),
    "an amendment of nothing": (
        {"B4"},
        amended,
        lambda ruin, _run: ruin.run(
            "update {}documents set superseded_by = 'X' where id = 'an amendment of nothing-old'"
        ),
    ),
    "a timer of a step that is over": (
        {"G1"},
        submitted,
        _sql("update {}timers set key = 'step:1' where instance = ?"),
    ),
    "changed behind the gate": ({"G2", "WF-05", "WF-15", "K-01"}, approved, _drift),
    "a status past the gate": ({"N1", "WF-15"}, submitted, _told("document_moved", status="active")),
}
"""Each document with what is done to it, and the rules that it breaks then."""


def _without_gate(graph: Graph) -> Graph:
    """A way from a step of the slot around its gate."""
    edges = (*graph.edges, Edge(source="book", target="sys:state:cancelled", on="failed"))
    return msgspec.structs.replace(graph, edges=edges)


def _backwards(graph: Graph) -> Graph:
    return msgspec.structs.replace(graph, edges=graph.edges[::-1])


def _reordered(ruin: Ruin, name: str) -> None:
    ((data,),) = ruin.rows("select compiled from {}definitions where name = ?", name)
    plain = msgspec.json.decode(bytes(data))
    plain["nodes"] = dict(reversed(plain["nodes"].items()))
    ruin.run("update {}definitions set compiled = ? where name = ?", msgspec.json.encode(plain), name)


def _redefined(ruin: Ruin, name: str) -> None:
    ruin.run("update {}definitions set compiled = ? where name = ?", b"{}", name)


WORKFLOWS: dict[str, tuple[set[str], Damage]] = {
    "other-content": ({"WF-04"}, _redefined),
    "other-hash": ({"WF-04"}, _sql("update {}definitions set hash = 'x' where name = ?")),
    "past-the-gate": (
        {"WF-06", "WF-08", "WF-12"},
        lambda ruin, name: ruin.workflow(name, _without_gate),
    ),
    "old-compiler": ({"WF-07"}, _sql("update {}definitions set compiler = '0' where name = ?")),
    "edges-backwards": ({"WF-12", "WF-13"}, lambda ruin, name: ruin.workflow(name, _backwards)),
    "nodes-backwards": ({"WF-13"}, _reordered),
}
"""Each workflow with what is done to it, and the rules that it breaks then."""


class Ruins:
    """A database with one whole document and workflow, and one of each damage."""

    def __init__(self, place: Place) -> None:
        self.place, self.ruin = place, Ruin(place.store)
        engine = place.engine().register(Definition(graph=workflow()))
        for name in WORKFLOWS:
            engine.register(Definition(graph=workflow(name)))
        self.whole = approved(engine, "whole")
        self.runs = {name: make(engine, name) for name, (_, make, _) in DOCUMENTS.items()}
        for name, (_, _, damage) in DOCUMENTS.items():
            damage(self.ruin, self.runs[name])
        for name, (_, harm) in WORKFLOWS.items():
            harm(self.ruin, name)
        engine.stop()
        self.engine = place.engine()  # Another process: it remembers nothing of how things were.
        self.page = self.engine.invariants.check()
        self.workflows = self.engine.invariants.workflows()


@pytest.fixture(scope="module", params=STORES)
def ruins(request: pytest.FixtureRequest) -> Iterator[Ruins]:
    """All damage in one database, on both stores."""
    with ExitStack() as stack:
        url = "sqlite://"
        if request.param == "postgres":
            databases: Databases = request.getfixturevalue("postgres_server")
            url = stack.enter_context(databases.prepared())
        place = Place(open_store(url), url)
        place.must_fold = False
        stack.callback(place.close)
        yield Ruins(place)


@pytest.mark.row(
    "E-072", "E-891", "E-051", "E-052", "E-053", "E-059", "E-060", "E-061", "E-064", "E-065", "E-066", "E-067", "E-069"
)
@pytest.mark.row("E-901", "E-902", "E-909", "E-910", "E-911", "E-914", "E-915", "E-916")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_damage_to_a_document_is_named(ruins: Ruins, name: str) -> None:
    """Each damage is found under its rule, with the document and what to do; nothing else is said of it."""
    found = [each for each in ruins.page.items if str(each.instance) == ruins.runs[name]]
    assert {each.rule for each in found} == DOCUMENTS[name][0], [each.told for each in found]
    assert {each.document for each in found} == {f"invoice/{name}"}
    assert all(each.told and each.remedy == RULES[each.rule].remedy for each in found)


@pytest.mark.row(
    "E-054", "E-056", "E-057", "E-058", "E-062", "E-063", "E-904", "E-906", "E-907", "E-908", "E-912", "E-913"
)
@pytest.mark.parametrize("name", WORKFLOWS)
def test_damage_to_a_workflow_is_named(ruins: Ruins, name: str) -> None:
    """A published workflow that is not what was published, or no envelope any more, is named with its rule."""
    found = {each.rule for each in ruins.workflows if each.definition == f"{name} version 1"}
    assert found == WORKFLOWS[name][0]


@pytest.mark.row("E-072", "E-891")
def test_every_rule_has_its_damage_and_the_whole_is_whole(ruins: Ruins) -> None:
    """No rule is without a test that it finds something, and what nobody touched breaks none."""
    damages = [*(each[0] for each in DOCUMENTS.values()), *(each[0] for each in WORKFLOWS.values())]
    proven = set().union(*damages, {"E1"})  # That one takes a receiver, and has a test of its own below.
    assert proven == RULES.keys()
    assert {each.code for each in ruins.engine.invariants.list()} == RULES.keys()
    touched = {*ruins.runs.values()}
    said = {str(each.instance) for each in ruins.page.items}
    amended_old = {str(each.instance) for each in ruins.page.items if each.document.endswith("-old")}
    assert said - amended_old <= touched
    assert ruins.whole not in said
    assert {each.definition for each in ruins.workflows} == {f"{name} version 1" for name in WORKFLOWS}


@pytest.mark.row("E-072")
def test_documents_are_looked_at_in_stretches(ruins: Ruins) -> None:
    """Page by page, newest first, comes to the same as all at once; a rule can be asked for alone."""
    calls, checked = ruins.engine.invariants, 0
    cursor: str | None = None
    items: list[Violation] = []
    for _ in range(99):
        page = calls.check(cursor=cursor, limit=7)
        items, checked, cursor = items + page.items, checked + page.checked, page.next
        if cursor is None:
            break
    assert [(each.document, each.rule, each.told) for each in items] == [
        (each.document, each.rule, each.told) for each in ruins.page.items
    ]
    assert checked == ruins.page.checked == len(DOCUMENTS) + 2
    assert {each.rule for each in calls.check(rules=["WF-03"]).items} == {"WF-03"}


@pytest.mark.row("E-072")
def test_a_patrol_goes_on_where_it_was_stopped(ruins: Ruins) -> None:
    """How far it has come lies in the database: another process goes on there, and behind the last one it begins anew."""
    first = ruins.engine.invariants.patrol(limit=10, anew=True)
    other = ruins.place.engine()
    rest = other.invariants.patrol(limit=1000)
    assert (first.checked, first.next is None, rest.next) == (10, False, None)
    assert first.items + rest.items == ruins.page.items
    assert other.invariants.patrol(limit=10).items == first.items
    assert other.invariants.patrol(limit=5, anew=True).checked == 5


def test_wrong_questions_are_told(ruins: Ruins) -> None:
    """Unknown rules, wrong cursors, another tenant's document, no right to repair: each is answered in words, and nothing changes."""
    calls = ruins.engine.invariants
    wrong: list[Callable[[], object]] = [
        lambda: calls.check(rules=["WF-99"]),
        lambda: calls.check(rules="WF-01"),
        lambda: calls.check(cursor="yesterday"),
        lambda: calls.check(limit=0),
        lambda: calls.repair(ruins.whole, reason=" "),
    ]
    for call in wrong:
        with pytest.raises(PayloadError):
            call()
    other = ruins.engine.acting(RequestContext(tenant="other", actor=SYSTEM))
    assert other.invariants.check().checked == 0
    for lookup in (
        lambda: other.invariants.of(ruins.whole),
        lambda: other.invariants.repair(ruins.whole, reason="why"),
    ):
        with pytest.raises(NotFoundError):
            lookup()
    eve = asking(ruins.engine, Actor(id="eve")).invariants
    for forbidden in (eve.check, eve.workflows, eve.patrol, lambda: eve.repair(ruins.whole, reason="why")):
        with pytest.raises(ForbiddenError):
            forbidden()
    wrong_too: list[Callable[[], object]] = [
        lambda: eve.patrol(limit=0),
        lambda: eve.patrol(rules=["WF-99"]),
        lambda: eve.check(cursor="yesterday"),
        lambda: eve.of(ruins.whole),
    ]
    for call in wrong_too:  # The right is asked for before anything else is judged.
        with pytest.raises(ForbiddenError):
            call()


REPAIRED = [
    "a step twice",
    "used up and not",
    "a step is gone",
    "a call is gone",
    "a call twice",
    "another status",
    "another place",
    "an end that the row does not tell",
    "a document without its row",
    "a join twice",
    "a zombie",
    "another version",
    "an audit without a line",
]
TABLES = (
    "steps",
    "documents",
    "document_versions",
    "mutations",
    "audit",
    "task_decisions",
    "human_tasks",
    "task_people",
)


def contents(ruin: Ruin, run: str) -> dict[str, object]:
    """All rows of a document, with their times, but for what the audit says of the operator who repairs it."""
    found: dict[str, object] = {
        table: sorted(
            row
            for row in map(str, ruin.rows(f"select * from {{}}{table} where instance = ?", run))
            if "'olga'" not in row
        )
        for table in TABLES
    }
    return found | {"row": ruin.rows("select status, reason, ended_at from {}instances where id = ?", run)}


@pytest.mark.row("E-322", "E-545", "E-546", "E-783", "E-065", "E-580", "E-926", "EC-31", "EC-23", "E-915")
def test_a_repair_makes_everything_again_from_the_history(place: Place) -> None:
    """Rows, times and status are as before the damage; who asked for it is told in the history, and the document goes on to its end."""
    engine, ruin = place.engine().register(Definition(graph=workflow())), Ruin(place.store)
    operator = Actor(id="olga", capabilities=frozenset({"execution:repair", "execution:read"}))
    runs = {name: DOCUMENTS[name][1](engine, name) for name in REPAIRED}
    before = {name: contents(ruin, run) for name, run in runs.items()}
    for name, run in runs.items():
        DOCUMENTS[name][2](ruin, run)
    for name, run in runs.items():
        mended = asking(engine, operator).invariants.repair(run, reason="the disk was full")
        assert mended.is_whole, (name, mended.left)
        assert contents(ruin, run) == before[name], name
    again = [each for each in engine.documents.audit("invoice", "a call is gone") if each.who == "olga"]
    assert [(each.what, each.why) for each in again] == [("reenqueue book", "the disk was full")]
    assert engine.invariants.check().items == []
    told = [each for each in engine.run(runs["a step twice"]).history() if each.event_type == ROWS_REBUILT]
    assert [(each.actor, each.comment, each.data["tables"]) for each in told] == [
        ("olga", "the disk was full", ["steps"])
    ]
    again = asking(engine, operator).invariants.repair(runs["a step twice"], reason="once more")
    assert (again.tables, again.withdrawn, again.called) == ([], [], [])
    calls: list[str] = []
    engine.handle("book", lambda context: calls.append(str(context.instance)))
    engine.drain()
    lost = runs["a call is gone"]
    assert calls.count(lost) == 1
    assert asking(engine, operator).documents.get("invoice", "a call is gone").status == "active"


@pytest.mark.row("E-545")
def test_nothing_is_made_from_a_history_that_is_broken(ruins: Ruins) -> None:
    """Where the history itself was changed a repair refuses, and says what would help."""
    for name in ("an event is gone", "the row counts others"):
        with pytest.raises(ConflictError, match="restore"):
            ruins.engine.invariants.repair(ruins.runs[name], reason="try")


@pytest.mark.row("E-060", "E-349")
def test_evidence_of_a_request_that_is_gone_is_missed(place: Place, receiver: Receiver) -> None:
    """What was sent and what came back belongs to an answered request: a history without it breaks a rule, also if the row says the same."""
    place.must_fold = False
    engine = place.engine(Settings(outbound_allow=tuple(LOCAL)))
    node = f"{{id: tell, type: webhook_out, url: '{receiver.url}', payload: {{order: entity.id}}, into: told}}"
    register(engine, "sales_order", body('"slot:submitted_to_approved"', node))
    mine = asking(engine, SELLER).documents
    mine.create("sales_order", ORDER, id="O-1")
    run = str(mine.transition("sales_order", "O-1", "submit").instance)
    engine.drain()
    assert engine.invariants.check().items == []
    ruin = Ruin(place.store)
    where = "where instance = ? and type = 'step_completed' order by sequence"
    told = ruin.rows(f"select sequence, data from {{}}events {where}", run)
    sequence, said = next((at, data) for at, each in told if "request" in str(data := msgspec.json.decode(bytes(each))))
    for output, missing in (
        (None, "request.url"),
        ({**said["output"], "sha256": None}, ""),
        ({"status": 200}, "sha256"),
    ):
        spoilt = msgspec.json.encode({**said, "output": output})
        ruin.run("update {}events set data = ? where instance = ? and sequence = ?", spoilt, run, sequence)
        stored = None if output is None else msgspec.json.encode(output)
        ruin.run("update {}steps set output = ? where instance = ? and number = ?", stored, run, said["step"])
        found = place.engine().invariants.check(rules=["E1"]).items
        assert [missing in each.told for each in found] == ([True] if missing else [])


@pytest.mark.row("E-054", "E-904")
def test_a_workflow_that_was_changed_with_its_hash_is_not_what_its_body_compiles_to(place: Place) -> None:
    """The graph is held against the artifact that it was compiled from, and that against contract and body: each of them tells on the others."""
    place.must_fold = False
    engine = with_contract(place)
    published(engine)
    published(engine, BODY.replace("manager", "clerk"), tenant="globex")
    ruin, theirs = Ruin(place.store), "select {1} from {{}}{0} where tenant = 'globex' and {2}"
    graph = ruin.rows(theirs.format("definitions", "compiled, hash", "version = '1-org'"))[0]
    artifact = ruin.rows(theirs.format("blueprints", "content, hash, graph_hash", "kind = 'effective'"))[0]

    def found() -> list[str]:
        return [each.told for each in place.engine().as_tenant("acme").invariants.workflows() if each.rule == "WF-04"]

    assert found() == []
    mine = "where tenant = 'acme' and"
    ruin.run(f"update {{}}definitions set compiled = ?, hash = ? {mine} version = '1-org'", *graph)
    assert ["changed it, and its hash with it" in each for each in found()] == [True]
    ruin.run(f"update {{}}blueprints set content = ?, hash = ?, graph_hash = ? {mine} kind = 'effective'", *artifact)
    assert ["its contract and body compile to the artifact" in each for each in found()] == [True]
    ruin.run(f"update {{}}blueprints set content = ? {mine} kind = 'body'", b"{}")
    assert ["something changed it" in each for each in found()] == [True]


def test_receipts_of_a_document_that_was_deleted_say_nothing_of_the_next_one_of_its_name(place: Place) -> None:
    """Its commands are remembered by its name, and count versions that the new document does not have yet."""
    engine = with_contract(place)
    published(engine, BODY, "default")
    given: dict[str, object] = {"number": "1", "vendor_id": "acme", "grand_total": 500}
    documents = engine.documents
    old = documents.create("invoice", given, id="A", idempotency_key="create")
    for total in range(4):
        documents.mutate("invoice", "A", {"grand_total": total}, idempotency_key=f"edit {total}")
    documents.transition("invoice", "A", "cancel")
    engine.drain()
    engine.run(old.instance).delete(reason="wrong")
    new = documents.create("invoice", given, id="A", idempotency_key="once more")
    page = engine.invariants.check()
    assert (new.instance != old.instance, page.items, page.checked) == (True, [], 1)
