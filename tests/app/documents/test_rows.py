"""What the specification says of its tables and workers, as it holds here: a document is a run, and whatever happens to it is one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

import pytest

from app.documents.acting import ANN, BOB, CARL, EVE, GIVEN, asking
from standfast import Actor, Fail, RejectedError, RequestContext, Settings, StepContext
from standfast.graph import model as g
from standfast.graph.definition import Definition
from standfast.graph.document_spec import DocumentAction
from standfast.graph.model import Edge, Node
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.documents import DOCUMENT_VERSIONS
from standfast.kernel.row_kinds.steps import STEPS, TASKS, StoredStep
from standfast.machine.machine import GraphMachine
from standfast.machine.model.queries.edit_windows import window_of
from standfast.machine.model.state import RunState
from standfast.testing import ManualEngine
from support.engines import Place
from support.envelopes import ACTIVE_SLOT, APPROVE_SLOT, SUBMIT_SLOT, Body, approval, both, chain, invoice, value, when
from support.ruining import Ruin

OPERATOR = Actor(id="olga", capabilities=frozenset({"execution:*"}))


def first_wins() -> Body:
    """Two people are asked at once, and one answer is enough."""
    body = both(approval("first"), approval("second", who="user:carl"))
    nodes = [
        Node(id="meet", op=g.JoinOp(split="fork", strategy="any")) if node.id == "meet" else node for node in body.nodes
    ]
    return Body(nodes=nodes, first=body.first, last=body.last, edges=body.edges)


def booking() -> Body:
    """A call of another system."""
    return chain(Node(id="book", op=g.TaskOp(work=g.HandlerCall(handler="book"))))


def opened(
    place: Place,
    approving: Body | None = None,
    *,
    settings: Settings | None = None,
    slots: Mapping[str, Body] | None = None,
) -> ManualEngine:
    """An engine that knows invoices which ann and carl approve at once, and which are booked then."""
    asked = approving or both(approval("first"), approval("second", who="user:carl"))
    bodies = {APPROVE_SLOT: asked, ACTIVE_SLOT: booking(), **(slots or {})}
    engine = place.engine(settings)
    mark = DocumentAction(name="mark", workflow_allowed=True)
    return engine.register(Definition(graph=invoice(bodies, actions=[mark])))


def submitted(engine: ManualEngine, name: str = "I-1", *, trace: str = "") -> InstanceId:
    """An invoice of bob's that waits for its approvals; its run."""
    calls = engine.acting(RequestContext(tenant="default", actor=BOB, trace=trace)).documents
    calls.create("invoice", GIVEN, id=name)
    return calls.transition("invoice", name, "submit").instance


def decide(engine: ManualEngine, run: InstanceId, actor: Actor, decision: str = "approved") -> None:
    """Answer the question that somebody is asked about a document."""
    (task,) = [each for each in engine.run(run).tasks() if each.name == ("first" if actor is ANN else "second")]
    asking(engine, actor).tasks.decide(task, decision, document_version=task.document_version, comment="because")


def steps(engine: ManualEngine, run: InstanceId) -> list[StoredStep]:
    """The rows of the steps."""
    return engine.service.store.reader("default").rows(STEPS, run)


def events(engine: ManualEngine, run: InstanceId) -> list[StoredEvent]:
    """The history as it is stored."""
    return engine.service.store.reader("default").events(run)


def status(engine: ManualEngine, name: str = "I-1") -> str:
    """How a document stands."""
    return engine.documents.get("invoice", name).status


@pytest.mark.row("E-551", "E-524", "E-016", "ED-04", "ED-06")
@pytest.mark.parametrize("order", [(ANN, CARL), (CARL, ANN)])
def test_a_join_goes_on_with_the_last_branch_in_the_same_commit(place: Place, order: Sequence[Actor]) -> None:
    """Whoever answers last, the join, the gate and the next step are one commit with the answer, and happen once."""
    engine = opened(place)
    run = submitted(engine)
    decide(engine, run, order[0])
    assert (status(engine), [row.node for row in steps(engine, run) if row.node == "meet"]) == ("submitted", [])
    before = len(events(engine, run))
    decide(engine, run, order[1])
    caused = events(engine, run)[before:]
    assert {each.cause for each in caused} == {caused[0].cause}
    told = [each.type for each in caused]
    assert (told.count("approvals_applied"), told.count("document_moved")) == (1, 1)
    assert [row.node for row in steps(engine, run)].count("meet") == 1


@pytest.mark.row("E-552", "E-553", "E-556", "E-937", "E-473", "E-522")
def test_the_first_branch_wins_and_the_other_leaves_no_path(place: Place) -> None:
    """The question of the loser is withdrawn with its step, which is skipped; what still comes for it is refused, and changes nothing."""
    engine = opened(place, first_wins())
    run = submitted(engine)
    late = next(each for each in engine.run(run).tasks() if each.name == "second")
    decide(engine, run, ANN)
    rows = {row.node: row for row in steps(engine, run)}
    assert (rows["first"].status, rows["second"].status, rows["meet"].status) == ("completed", "skipped", "completed")
    before = events(engine, run)
    with pytest.raises(RejectedError):
        asking(engine, CARL).tasks.decide(late, "approved", document_version=late.document_version, comment="late")
    assert events(engine, run) == before
    assert engine.tasks.list() == []


@pytest.mark.row("E-534")
def test_an_operator_cancels_a_branch_and_the_join_goes_on_without_it(place: Place) -> None:
    """Its step ends, its call is taken back, and who did it is told; never one with an approval ahead, the last one, or one that is over."""
    check = Node(id="check", op=g.TaskOp(work=g.HandlerCall(handler="check")))
    engine = opened(place, both(approval("first"), check))
    run = submitted(engine)
    tokens = {row.node: row.token for row in steps(engine, run)}
    olga = asking(engine, OPERATOR).run(run)
    before = events(engine, run)
    for token, code in (
        (tokens["first"], "protected"),
        (tokens["fork"], "not_repairable"),
        ("0/9.9", "unknown_token"),
    ):
        with pytest.raises(RejectedError) as caught:
            olga.cancel_branch(token, reason="try")
        assert (caught.value.reason, events(engine, run)) == (code, before)
    with pytest.raises(RejectedError):
        asking(engine, EVE).run(run).cancel_branch(tokens["check"], reason="please")
    olga.cancel_branch(tokens["check"], reason="the checker is gone")
    assert Ruin(place.store).rows("select count(*) from {}effects") == [(0,)]
    ended = next(row for row in steps(engine, run) if row.node == "check")
    assert (ended.status, "the checker is gone" in ended.error) == ("skipped", True)
    (told,) = [each for each in events(engine, run) if each.type == "branch_cancelled"]
    assert (told.actor, told.comment) == ("olga", "the checker is gone")
    (made,) = [each for each in engine.documents.mutations("invoice", "I-1") if each.action.startswith("cancel")]
    assert (made.kind, made.actor, made.reason) == ("workflow", "olga", "the checker is gone")
    assert [line.who for line in engine.documents.audit("invoice", "I-1") if line.what == made.action] == ["olga"]
    with pytest.raises(RejectedError) as caught:
        olga.cancel_branch(tokens["check"], reason="again")
    assert caught.value.reason == "unknown_token"
    assert status(engine) == "submitted"
    decide(engine, run, ANN)
    assert steps(engine, run)[-1].node == "book"
    engine.handle("book", lambda: None)
    engine.drain()
    assert (status(engine), engine.invariants.of(run)) == ("active", [])


@pytest.mark.row("E-526")
def test_what_comes_while_a_document_is_paused_is_kept(place: Place) -> None:
    """A pause holds the workflow, not the answers: they count once it goes on, and nothing of them is lost."""
    engine = opened(place)
    run = submitted(engine)
    handle = asking(engine, OPERATOR).run(run)
    handle.pause(reason="audit")
    decide(engine, run, ANN)
    decide(engine, run, CARL)
    assert (status(engine), engine.run(run).describe().status) == ("submitted", "paused")
    handle.resume(reason="done")
    engine.drain()
    assert steps(engine, run)[-1].node == "book"
    assert [row.status for row in steps(engine, run) if row.node in {"first", "second"}] == ["completed", "completed"]


@pytest.mark.row("E-470", "E-929", "E-059", "E-909", "E-521", "E-468", "ED-04", "EC-09", "E-001")
def test_a_call_returns_before_the_work_that_follows_and_the_work_sees_its_step(place: Place) -> None:
    """Nobody who edits or decides waits for a handler; its step is stored before it is called, and it is called once."""
    engine = opened(place)
    seen: list[tuple[str, str]] = []

    @engine.handler("book")
    def book(context: StepContext) -> None:
        row = next(each for each in steps(engine, context.instance) if each.node == "book")
        seen.append((row.status, str(engine.documents.get("invoice", "I-1").status)))

    run = submitted(engine)
    decide(engine, run, ANN)
    decide(engine, run, CARL)
    assert seen == []
    assert [each.status for each in steps(engine, run) if each.node == "book"] == ["pending"]
    engine.drain()
    engine.drain()
    assert len(seen) == 1
    assert seen[0][0] in {"pending", "running"}
    assert status(engine) == "active"


@pytest.mark.row("E-466", "E-785", "E-580", "ED-02", "EC-03")
def test_a_step_that_gave_up_is_tried_again_as_a_step_of_its_own(place: Place) -> None:
    """The old row stays as it ended and the new one names it; that needs a right and a reason. A document is never forced to fail."""
    engine = opened(place)
    answers: list[BaseException | None] = [Fail("the ledger is closed"), None]

    @engine.handler("book")
    def book() -> None:
        answer = answers.pop(0)
        if answer is not None:
            raise answer

    run = submitted(engine)
    decide(engine, run, ANN)
    decide(engine, run, CARL)
    engine.drain()
    assert engine.run(run).describe().status == "dlq"
    number = next(row.number for row in steps(engine, run) if row.node == "book")
    with pytest.raises(RejectedError):
        asking(engine, EVE).run(run).retry(number, reason="please")
    with pytest.raises(RejectedError):
        asking(engine, OPERATOR).run(run).fail("give up")
    asking(engine, OPERATOR).run(run).retry(number, reason="it is open again")
    engine.drain()
    tried = [(row.status, row.retry_of) for row in steps(engine, run) if row.node == "book"]
    assert (tried[0][0], tried[-1]) == ("failed", ("completed", number))
    assert status(engine) == "active"
    assert [each.actor for each in events(engine, run) if each.comment == "it is open again"][:1] == ["olga"]


@pytest.mark.row("E-782", "E-956", "E-784")
def test_a_document_whose_work_is_gone_is_listed_and_set_going(place: Place) -> None:
    """A quiet draft and an open approval are no standstill; a call that somebody has deleted is, until it is asked for again."""
    engine = opened(place)
    quiet, waiting, run = (submitted(engine, name) for name in ("quiet", "waiting", "I-1"))
    decide(engine, run, ANN)
    decide(engine, run, CARL)
    assert engine.runs.stuck().items == []
    Ruin(place.store).run("delete from {}effects where instance = ?", str(run))
    assert [each.id for each in engine.runs.stuck()] == [run]
    place.clock.move(timedelta(minutes=5))
    assert asking(engine, OPERATOR).invariants.repair(run, reason="a finger slipped").is_whole
    engine.handle("book", lambda: None)
    engine.drain()
    assert (engine.runs.stuck().items, status(engine)) == ([], "active")
    assert {status(engine, "quiet"), status(engine, "waiting")} == {"submitted"}
    assert quiet != waiting


@pytest.mark.row("E-383", "E-467", "E-500", "E-957", "E-812")
def test_everything_says_who_why_and_from_which_request(place: Place) -> None:
    """Each event has its actor and cause; the trace of a call goes through the workflow to the handler and to what follows from it."""
    engine = opened(place, chain(Node(id="check", op=g.TaskOp(work=g.HandlerCall(handler="check")))))
    traces: list[str] = []

    @engine.handler("check")
    def check(context: StepContext) -> None:
        traces.append(context.trace)

    run = submitted(engine, trace="t-1")
    engine.drain()
    assert traces == ["t-1"]
    told = events(engine, run)
    assert {each.trace for each in told} == {"t-1"}
    assert all(each.actor and each.cause for each in told)
    assert [each.comment for each in told if each.type == "transition_requested"] == [""]


@pytest.mark.row("E-341", "E-343", "E-347", "E-523", "E-531", "E-532", "E-533", "E-917", "E-353", "ED-03", "EC-11")
def test_steps_say_where_when_and_what_and_are_the_same_each_time(place: Place) -> None:
    """Two documents that go the same way have the same steps, tokens and visits; each step has its times, outcome and version."""
    engine = opened(place)
    ways = []
    for name in ("I-1", "I-2"):
        run = submitted(engine, name)
        place.clock.move(timedelta(minutes=3))
        decide(engine, run, ANN)
        decide(engine, run, CARL)
        rows = steps(engine, run)
        assert [row.number for row in rows] == list(range(1, len(rows) + 1))
        assert {row.status for row in rows} <= {"pending", "running", "completed", "failed", "skipped", "cancelled"}
        asked = next(row for row in rows if row.node == "first")
        assert (asked.outcome, asked.moved_at - asked.opened_at) == ("approved", timedelta(minutes=3))
        ways.append([(row.number, row.node, row.token, row.visit, row.status) for row in rows])
        versions = {row.version for row in engine.service.store.reader("default").rows(DOCUMENT_VERSIONS, run)}
        pinned = {row.document_version for row in engine.service.store.reader("default").rows(TASKS, run)}
        assert pinned <= {str(each) for each in versions}
    assert ways[0] == ways[1]
    tokens = {node: token for _, node, token, _, _ in ways[0]}
    assert tokens["first"] != tokens["second"]
    assert tokens["meet"] == tokens["fork"]


@pytest.mark.row("E-924", "E-326", "E-325", "E-322")
def test_every_past_place_can_be_told(place: Place) -> None:
    """The history up to any moment tells where the tokens were then; a snapshot with what came after it tells the same as all of it."""
    engine = opened(place, settings=Settings(snapshot_events=2))
    program = engine.registry.get("default", "invoice", "1")
    moments: list[tuple[int, list[str]]] = []

    def note() -> None:
        seen = engine.documents.get("invoice", "I-1")
        moments.append((len(events(engine, run)), sorted(seen.places)))

    run = submitted(engine)
    note()
    decide(engine, run, CARL)
    note()
    decide(engine, run, ANN)
    note()
    told = events(engine, run)
    for count, places in moments:
        state = cast("RunState", program.replay(program.initial(), told[:count]))
        assert isinstance(program.decider, GraphMachine)
        assert sorted(window_of(program.decider.routes, state).places) == places
    assert moments[0][1] != moments[-1][1]
    assert engine.invariants.of(run) == []
    wrong = program.snapshot(program.initial())
    Ruin(place.store).run("update {}snapshots set data = ? where instance = ?", wrong, str(run))
    assert {each.rule for each in engine.invariants.of(run)} == {"WF-15"}
    assert engine.invariants.repair(run, reason="the snapshot was another's").is_whole


@pytest.mark.row("E-073", "E-331", "E-941", "E-321", "E-323", "ED-19")
def test_a_round_that_ended_stands_in_nobodys_way(place: Place) -> None:
    """One document is one row and one run; its rounds follow one another, each begins when the one before has ended, and none is lost."""
    engine = opened(place)
    engine.handle("book", lambda: None)
    run = submitted(engine)
    mine = asking(engine, BOB).documents
    with pytest.raises(RejectedError, match="approve"):
        mine.transition("invoice", "I-1", "approve")
    decide(engine, run, ANN)
    decide(engine, run, CARL)
    engine.drain()
    assert [(each.round, each.completed_at is None) for each in mine.rounds("invoice", "I-1")] == [(1, False)]
    mine.transition("invoice", "I-1", "cancel")
    assert [(each.round, each.status) for each in mine.rounds("invoice", "I-1")] == [(1, "active"), (2, "cancelled")]
    assert [each.id for each in engine.documents.list("invoice").items] == ["I-1"]
    with pytest.raises(RejectedError):
        mine.create("invoice", GIVEN, id="I-1")


@pytest.mark.row("E-327", "E-075", "E-951", "E-349")
def test_what_steps_compute_is_read_later_and_the_way_that_was_taken_is_told(place: Place) -> None:
    """A value that a step keeps decides the next branch, and the history says which way was taken, and by what."""
    nodes = [
        Node(id="rate", op=g.ScriptOp(formula=value("entity.total"), into="size")),
        Node(id="small", op=g.ScriptOp(formula=value("'s'"), into="lane")),
        Node(id="big", op=g.ScriptOp(formula=value("'b'"), into="lane")),
    ]
    edges = [
        Edge(source="rate", target="big", when=when("context.size > 400"), priority=1),
        Edge(source="rate", target="small", priority=2),
    ]
    body = Body(nodes=nodes, first="rate", last=("small:ok", "big:ok"), edges=edges)
    engine = opened(place, slots={SUBMIT_SLOT: body})
    run = submitted(engine)
    rows = {row.node: row for row in steps(engine, run)}
    assert ("big" in rows, "small" in rows) == (True, False)
    program = engine.registry.get("default", "invoice", "1")
    told = [program.decode(each) for each in events(engine, run) if each.type == "step_completed"]
    taken = {each.node: each.to for each in cast("list[Any]", told) if each.to}
    assert taken["rate"] == "big"


@pytest.mark.row("E-472", "E-934", "E-942", "E-463", "ED-18", "ED-20")
def test_what_a_workflow_does_to_its_own_document_makes_one_version_and_no_drift(place: Place) -> None:
    """The action of a step counts as one mutation of that step, voids nothing and asks nobody anew; equal edits at two versions are two."""
    post = Node(id="post", op=g.ActionOp(action="mark", payload={"posting": value("'GL-1'")}))
    engine = opened(place, slots={ACTIVE_SLOT: chain(post)})
    mine = asking(engine, BOB).documents
    mine.create("invoice", GIVEN, id="I-1")
    assert [mine.mutate("invoice", "I-1", {"total": total}).version for total in (700, 500, 700)] == [2, 3, 4]
    run = mine.transition("invoice", "I-1", "submit").instance
    decide(engine, run, ANN)
    decide(engine, run, CARL)
    made = engine.documents.mutations("invoice", "I-1")
    own = [each for each in made if each.action == "mark"]
    assert [(each.version_after, each.step is not None) for each in own] == [(5, True)]
    told = [each.type for each in events(engine, run)]
    assert (told.count("document_changed"), told.count("approvals_voided")) == (4, 0)
    assert (status(engine), engine.tasks.list()) == ("active", [])


@pytest.mark.row("E-069", "E-947", "E-350", "EC-36", "EH-09")
def test_decisions_live_with_the_questions_and_nowhere_else(place: Place) -> None:
    """What a step row says of its answer decides nothing: the gate passes by the decisions, whatever becomes of the row."""
    engine = opened(place)
    run = submitted(engine)
    decide(engine, run, ANN)
    ruin = Ruin(place.store)
    ruin.run("update {}steps set output = null, outcome = '' where instance = ?", str(run))
    decide(engine, run, CARL)
    assert status(engine) != "draft"
    assert steps(engine, run)[-1].node == "book"
    applied = ruin.rows("select applied from {}task_decisions where instance = ?", str(run))
    assert [bool(each[0]) for each in applied] == [True, True]
    engine.invariants.repair(run, reason="the test spoilt it")


@pytest.mark.row("E-831", "E-832", "E-959", "E-057", "E-013")
def test_a_workflow_is_read_once_and_checked_when_it_is(place: Place) -> None:
    """Who has it goes on without another look; who reads it anew finds that it was changed, and does nothing with it."""
    engine = opened(place)
    run = submitted(engine)
    ruin = Ruin(place.store)
    ((compiled,),) = ruin.rows("select compiled from {}definitions where name = 'invoice'")
    spoilt = bytes(compiled).replace(b'"sys:state:active"', b'"sys:state:activ3"', 1)
    ruin.run("update {}definitions set compiled = ? where name = 'invoice'", spoilt)
    decide(engine, run, ANN)
    other = place.engine()
    with pytest.raises(Exception, match="changed"):
        other.documents.get("invoice", "I-1")
    assert len([row for row in steps(engine, run) if row.status == "pending"]) == 1
    ruin.run("update {}definitions set compiled = ? where name = 'invoice'", bytes(compiled))


@pytest.mark.row("E-398", "E-399", "E-960", "E-397", "E-943", "E-902")
def test_an_old_call_that_is_repeated_never_counts_again(place: Place) -> None:
    """Receipts of a document stay while it lives, however long; once it has ended they go, and the old call is refused by its end."""
    engine = opened(place, settings=Settings(keep_receipts=timedelta(days=90)))
    mine = asking(engine, BOB).documents
    mine.create("invoice", GIVEN, id="I-1", idempotency_key="make")
    mine.mutate("invoice", "I-1", {"total": 700}, idempotency_key="edit")
    place.clock.move(timedelta(days=1000))
    engine.drain()
    mine.mutate("invoice", "I-1", {"total": 900})
    assert mine.mutate("invoice", "I-1", {"total": 700}, idempotency_key="edit").data["total"] == 900
    mine.transition("invoice", "I-1", "cancel")
    place.clock.move(timedelta(days=100))
    engine.drain()
    kept = Ruin(place.store).rows("select count(*) from {}receipts")
    assert kept == [(0,)]
    with pytest.raises(RejectedError):
        mine.mutate("invoice", "I-1", {"total": 700}, idempotency_key="edit")
    assert mine.get("invoice", "I-1").data["total"] == 900


@pytest.mark.row("E-525", "E-833", "E-925", "E-546", "E-032", "E-223")
def test_an_edit_costs_the_same_however_long_the_history_is(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit writes as many rows and reads as much after two hundred edits as after two, and beside forty other documents: nothing is scanned or rebuilt."""
    engine = opened(place)
    mine = asking(engine, BOB).documents
    mine.create("invoice", GIVEN, id="I-1")
    costs = []
    for count in (3, 200):
        for number in range(count):
            mine.mutate("invoice", "I-1", {"note": f"{count}-{number}"})
        costs.append(_cost(engine, monkeypatch, lambda: mine.mutate("invoice", "I-1", {"note": "measured"})))
        assert mine.mutate("invoice", "I-1", {"note": "again"}) == mine.get("invoice", "I-1")
    for number in range(40):
        mine.create("invoice", GIVEN, id=f"other-{number}")
    costs.append(_cost(engine, monkeypatch, lambda: mine.mutate("invoice", "I-1", {"note": "among many"})))
    assert costs[0] == costs[1] == costs[2]


def _cost(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch, call: Callable[[], object]) -> list[int]:
    """How many rows a call writes, by what they are; and that it is one commit and no look at the database."""
    written: list[int] = []
    writer = engine.service.committer.lanes[0].committer._committing._writer
    original = writer.write

    def write(changes: Sequence[Any], **more: Any) -> None:
        written.extend(
            [len(changes), *(len(each.events) for each in changes), *(len(each.records) for each in changes)]
        )
        original(changes, **more)

    monkeypatch.setattr(writer, "write", write)
    monkeypatch.setattr(writer, "load", lambda *_args, **_more: pytest.fail("a commit read the history"))
    reader = type(engine.service.store.reader("default"))
    monkeypatch.setattr(reader, "look", lambda *_: pytest.fail("a call read what it had written"))
    call()
    monkeypatch.undo()
    assert written
    return written
