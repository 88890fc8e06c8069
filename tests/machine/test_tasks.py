"""Questions to people in a run: who is asked, who may decide, and what else they do to a question until it is closed."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from machine.hosting import NOW, Host
from standfast.expressions import parse
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph
from standfast.graph.values.approver_rules import Ask, Stage
from standfast.kernel.actor import SYSTEM, Actor
from standfast.kernel.codec.message_types import DEFAULT_LIMIT
from standfast.kernel.decision import Answer, Decision, Ignored, Rejection
from standfast.kernel.row_kinds.steps import TaskOpened
from standfast.kernel.row_kinds.tasks import CommentMade, DecisionGiven, PersonAsked
from standfast.kernel.rows import Record, merge
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.engine_tasks import FindPeople, Person
from standfast.machine.model.events import StepAnswered, StepCompleted, TaskDecided, WorkflowPaused
from standfast.machine.model.rejections import Refusal
from standfast.machine.tasks.assignment import MOST_PEOPLE

ANN, BOB, CARL = Actor(id="ann"), Actor(id="bob"), Actor(id="carl")
EVE = Actor(id="eve")
FAY = Actor(id="fay", roles=frozenset({"finance"}))
GUS = Actor(id="gus", roles=frozenset({"finance"}))
ROOT = Actor(id="root", capabilities=frozenset({"*"}))
BOSS = Actor(id="boss", capabilities=frozenset({"task:*"}))
RITA = Actor(id="rita")
OWNER = parse("input.owner", spelling="mapping").to_data()

USERS = (Ask(by="user", of="ann"), Ask(by="user", of="bob"))


def human(
    *asks: Ask, outcomes: tuple[str, ...] = ("confirmed", "rejected", "abstained"), **fields: object
) -> g.HumanOp:
    """What a human step does."""
    return g.HumanOp(outcomes=outcomes, asks=asks, **fields)  # type: ignore[arg-type]


def running(
    *ops: g.HumanOp,
    data: dict[str, object] | None = None,
    ways: tuple[tuple[str, str], ...] = (),
    limit: int = DEFAULT_LIMIT,
) -> Host:
    """A saga of questions in a row, `q1` and so on, which Rita has started; `ways` lead from the first one to an end, or to another one."""
    nodes = [g.Node(id=f"q{place}", op=op) for place, op in enumerate(ops, 1)]
    edges = [g.Edge(source=one.id, target=two.id, on="confirmed") for one, two in pairwise(nodes)]
    known = {each.id for each in nodes}
    nodes += [g.Node(id=target, op=g.EndOp()) for _, target in ways if target not in known]
    edges += [g.Edge(source="q1", target=target, on=on) for on, target in ways]
    graph = compile_graph(
        kind="saga", name="g", version="1", entry="q1", nodes=nodes, edges=edges, policies=g.Policies()
    )
    host = Host(graph, limit)
    host.tell(c.StartWorkflow(input=data or {}), RITA)
    return host


def decide(host: Host, actor: Actor, outcome: str = "confirmed", *, step: int = 1, comment: str = "") -> Answer:
    """Somebody decides."""
    return host.tell(c.AnswerStep(step=step, outcome=outcome, comment=comment), actor)


def code(answer: Answer) -> str:
    """Why it was refused; empty if it was not."""
    return answer.code if isinstance(answer, Rejection) else ""


def people(host: Host) -> list[tuple[str, bool, str]]:
    """Who was asked, whether they still are, and what they decided."""
    rows = [row for row in host.rows if isinstance(row, PersonAsked)]
    return [(f"{row.kind}:{row.name}", row.is_open, row.decided) for row in sorted(rows, key=lambda row: row.place)]


def task(host: Host, number: int = 1) -> TaskOpened:
    """The row of a question."""
    return next(row for row in host.rows if isinstance(row, TaskOpened) and row.number == number)


def status(host: Host) -> str:
    """Where the run stands."""
    return host.state.status


def decisions(host: Host) -> list[DecisionGiven]:
    """What was decided."""
    return [row for row in host.rows if isinstance(row, DecisionGiven)]


def refolded(host: Host) -> None:
    """The history alone comes to the same state and to the same rows."""
    state = host.machine.initial()
    records: list[Record] = []
    for event in host.history:
        records += host.machine.rows_of(state, event)
        state = host.machine.evolve(state, event)
    assert state == host.state
    assert sorted(map(repr, merge(records))) == sorted(map(repr, host.rows))


# -- who is asked


@pytest.mark.row("E-661")
@pytest.mark.row("E-663")
def test_only_those_who_are_named_may_decide() -> None:
    """A user who is asked by id decides; nobody else does, and nothing changes when they try."""
    host = running(human(Ask(by="user", of="ann")))
    before = len(host.history)
    for stranger in (BOB, FAY, BOSS):
        assert code(decide(host, stranger)) == Refusal.NOT_ALLOWED
    assert len(host.history) == before
    assert people(host) == [("user:ann", True, "")]
    decide(host, ANN)
    assert (host.state.status, people(host)) == ("completed", [("user:ann", False, "confirmed")])
    refolded(host)


@pytest.mark.row("E-664")
@pytest.mark.row("E-675")
def test_those_who_have_a_role_share_one_question() -> None:
    """The first decision of any of them counts, and the question leaves the inbox of all; a colleague is told who was faster."""
    host = running(human(Ask(by="role", of="finance"), Ask(by="user", of="ann"), agree="all"))
    decide(host, FAY)
    assert people(host) == [("role:finance", False, "confirmed"), ("user:ann", True, "")]
    late = decide(host, GUS, "rejected")
    assert code(late) == Refusal.ALREADY_DECIDED
    assert isinstance(late, Rejection)
    assert f"confirmed by 'fay' at {NOW.isoformat()}" in late.message
    refolded(host)


@pytest.mark.row("E-666")
@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ("ann", ["user:ann"]),
        ("role:finance", ["role:finance"]),
        (["ann", "role:finance"], ["user:ann", "role:finance"]),
    ],
)
def test_a_rule_yields_who_is_asked(owner: object, expected: list[str]) -> None:
    """An expression over the data yields a user, a role or several; what it came to is kept with the question."""
    host = running(human(Ask(by="rule", of="owner", rule=OWNER)), data={"owner": owner})
    assert [name for name, _, _ in people(host)] == expected
    found = b",".join(b'"%s"' % each.removeprefix("user:").encode() for each in expected)
    assert task(host).resolution == b'[{"resolver":"rule","of":"owner","result":[%s]}]' % found
    assert host.errands == []
    refolded(host)


@pytest.mark.row("E-682")
@pytest.mark.parametrize("owner", [None, "", 5, [], [None]])
def test_a_rule_that_yields_nobody_fails_closed(owner: object) -> None:
    """Nobody is asked, the run waits with the reason `no_approver`, and nobody but the engine can decide."""
    host = running(human(Ask(by="rule", of="owner", rule=OWNER)), data={"owner": owner})
    assert (host.state.status, host.state.reason) == ("paused", "no_approver")
    assert "nobody can decide 'q1'" in host.state.error
    assert code(decide(host, ANN)) == Refusal.NOT_ALLOWED
    refolded(host)


@pytest.mark.row("E-682")
@pytest.mark.parametrize("owner", ["x" * 513, "é" * 300, " ", "role:", "user: ", ["ann", 5], ["ann", "x" * 600]])
def test_a_rule_that_yields_what_is_nobodys_name_asks_nobody(owner: object) -> None:
    """No database finds anybody by such a name, and whoever else is named would decide without them."""
    host = running(human(Ask(by="rule", of="owner", rule=OWNER), agree="all"), data={"owner": owner})
    assert (host.state.status, host.state.reason, people(host)) == ("paused", "no_approver", [])
    assert "the rule 'owner' yields what is nobody's name" in host.state.error
    host.tell(c.AddApprover(step=1, person="bob"), BOSS)
    decide(host, BOB)
    assert status(host) == "completed"
    refolded(host)


def test_more_people_than_can_be_asked_are_not_asked_in_part() -> None:
    """Those who are left would agree for all of them."""
    owners = [f"p-{number}" for number in range(MOST_PEOPLE + 1)]
    host = running(human(Ask(by="rule", of="owner", rule=OWNER), agree="all"), data={"owner": owners})
    assert (host.state.reason, people(host)) == ("no_approver", [])
    assert f"{MOST_PEOPLE} is the most" in host.state.error
    refolded(host)


def test_a_plain_question_keeps_nothing_in_the_state() -> None:
    """Users and roles that the definition names need no errand, no event and no bytes until something happens to the question."""
    for op in (g.HumanOp(), g.HumanOp(role="finance"), human(*USERS)):
        host = running(op)
        assert (host.errands, host.state.questions, len(host.history)) == ([], {}, 2)


@pytest.mark.row("E-683")
def test_others_are_looked_for() -> None:
    """A manager is found by the engine; until then nobody can decide, and afterwards it is told who was asked and why."""
    host = running(human(Ask(by="manager"), Ask(by="user", of="ann")), data={"sum": 5})
    assert host.errands == [
        FindPeople(step=1, node="q1", asks=[Ask(by="manager"), USERS[0]], requester="rita", data={"sum": 5})
    ]
    assert code(decide(host, ANN)) == Refusal.NOT_ASKED_YET
    why: list[dict[str, object]] = [{"ask": "manager", "found": ["bob"]}]
    host.tell(c.PeopleFound(step=1, people=[Person(name="bob", via="manager of rita"), Person(name="ann")], why=why))
    assert [name for name, _, _ in people(host)] == ["user:bob", "user:ann"]
    assert task(host).resolution == b'[{"ask":"manager","found":["bob"]}]'
    assert isinstance(host.tell(c.PeopleFound(step=1, people=[Person(name="eve")])), Ignored)
    for actor in (ANN, BOB):
        decide(host, actor)
    assert status(host) == "completed"
    refolded(host)


def test_what_is_found_out_about_people_too_late_changes_nothing() -> None:
    """When a question is decided, still looks for people, or nobody could look, it stays as it is."""
    lost = [Person(name="ann"), Person(name="bob")]
    for host in (running(human(*USERS)), running(human(Ask(by="manager")))):
        before = len(host.history)
        assert isinstance(host.tell(c.PeopleReviewed(step=1, lost=lost, error="no directory")), Ignored)
        assert isinstance(host.tell(c.PeopleReviewed(step=9, lost=lost)), Ignored)
        assert len(host.history) == before
    assert isinstance(host.tell(c.PeopleReviewed(step=1, lost=lost)), Ignored)
    host = running(human(*USERS))
    for actor in (ANN, BOB):
        decide(host, actor)
    assert isinstance(host.tell(c.PeopleReviewed(step=1, lost=lost)), Ignored)
    assert status(host) == "completed"
    refolded(host)


@pytest.mark.row("E-682")
@pytest.mark.parametrize(
    "found",
    [
        c.PeopleFound(step=1),
        c.PeopleFound(step=1, error="no directory"),
        c.PeopleFound(step=1, people=[Person(name="rita")]),
    ],
)
@pytest.mark.parametrize("mended", ["add", "reassign", "resume", "decide"])
def test_nobody_eligible_fails_closed(found: c.PeopleFound, mended: str) -> None:
    """The run is paused and says why; another approver, another look, or whoever may do everything brings it on."""
    host = running(human(Ask(by="manager"), self_approval=False))
    host.tell(found)
    assert (host.state.status, host.state.reason) == ("paused", "no_approver")
    assert [event.reason for event in host.history if isinstance(event, WorkflowPaused)] == ["no_approver"]
    assert code(decide(host, RITA)) in {Refusal.NOT_ALLOWED, Refusal.SELF_APPROVAL}
    match mended:
        case "add":
            host.tell(c.AddApprover(step=1, person="ann"), BOSS)
        case "reassign":
            host.tell(c.ReassignTask(step=1, to="ann"), BOSS)
        case "resume":
            host.tell(c.ResumeWorkflow())
            assert len(host.errands) == 2
            host.tell(c.PeopleFound(step=1, people=[Person(name="ann")]))
        case _:
            decide(host, SYSTEM)
    if mended != "decide":
        assert status(host) == "running"
        decide(host, ANN)
    assert status(host) == "completed"
    refolded(host)


# -- chains


def chained() -> Host:
    """A run at the first stage of a chain: any of ann and bob, then both of carl and those of finance."""
    host = running(g.HumanOp(chain="spend"))
    assert host.errands == [FindPeople(step=1, node="q1", asks=[Ask(by="chain", of="spend")], requester="rita")]
    last = Stage(asks=[Ask(by="user", of="carl"), Ask(by="role", of="finance")], agree="all", name="money")
    stages = [Stage(asks=list(USERS)), last]
    host.tell(c.PeopleFound(step=1, stages=stages, chain_version="3"))
    return host


@pytest.mark.row("E-661")
@pytest.mark.row("E-662")
def test_a_chain_is_asked_stage_by_stage() -> None:
    """The second stage is asked once the first one has agreed; a decision that is repeated from an earlier stage does nothing."""
    host = chained()
    assert (task(host).stage, task(host).agreement) == ("1 of 2", "any of them")
    assert [name for name, is_open, _ in people(host) if is_open] == ["user:ann", "user:bob"]
    assert code(decide(host, CARL)) == Refusal.NOT_ALLOWED
    decide(host, ANN)
    assert (task(host).stage, task(host).agreement) == ("money", "all of them")
    assert [name for name, is_open, _ in people(host) if is_open] == ["user:carl", "role:finance"]
    assert isinstance(decide(host, ANN), Ignored)
    assert code(decide(host, ANN, "rejected")) == Refusal.ALREADY_DECIDED
    decide(host, FAY)
    decide(host, CARL)
    (answer,) = [event for event in host.history if isinstance(event, StepAnswered)]
    assert [each["decided_by"] for each in answer.decisions] == ["ann", "fay", "carl"]
    assert [row.is_applied for row in decisions(host)] == [True] * 3
    refolded(host)


def test_a_rejection_in_a_stage_ends_the_question() -> None:
    """The later stages are never asked."""
    host = chained()
    decide(host, ANN, "rejected")
    decide(host, BOB, "rejected")
    assert (host.state.status, task(host).outcome) == ("aborted", "rejected")
    assert "user:carl" not in [name for name, _, _ in people(host)]
    refolded(host)


def test_a_chain_without_stages_asks_nobody() -> None:
    """The run waits with `no_approver`."""
    host = running(g.HumanOp(chain="spend"))
    host.tell(c.PeopleFound(step=1))
    assert (host.state.reason, "the chain 'spend' has no stages" in host.state.error) == ("no_approver", True)


# -- deciding


@pytest.mark.row("E-681")
@pytest.mark.row("R-079")
def test_a_person_decides_once() -> None:
    """The same decision again is no news; another one is a conflict that says who decided what and when. So it is once all is over."""
    host = running(human(*USERS))
    decide(host, ANN)
    for _ in range(2):
        assert isinstance(decide(host, ANN), Ignored)
        refused = decide(host, ANN, "rejected")
        assert code(refused) == Refusal.ALREADY_DECIDED
        assert isinstance(refused, Rejection)
        assert (
            f"confirmed by '{'ann' if host.state.status == 'running' else 'bob'}' at {NOW.isoformat()}"
            in refused.message
        )
        decide(host, BOB)
    assert len(decisions(host)) == 2
    refolded(host)


def test_whoever_may_do_everything_decides_for_all() -> None:
    """The engine itself, and who has every capability, end a question that asks others."""
    for actor in (SYSTEM, ROOT):
        host = running(human(*USERS))
        decide(host, ANN)
        decide(host, actor, "rejected")
        assert (host.state.status, task(host).actor) == ("aborted", actor.id)
        assert [(row.actor, row.is_applied) for row in decisions(host)] == [("ann", False), (actor.id, True)]
        refolded(host)


def test_a_decision_on_behalf_of_another_counts_for_that_person() -> None:
    """Whoever stands in for Ann decides in her place, once, under both names."""
    host = running(human(*USERS))
    substitute = Actor(id="sue", on_behalf_of="ann")
    decide(host, substitute)
    assert isinstance(decide(host, substitute), Ignored)
    assert code(decide(host, ANN, "rejected")) == Refusal.ALREADY_DECIDED
    (row,) = decisions(host)
    assert (row.actor, row.on_behalf_of) == ("sue", "ann")
    assert people(host)[0] == ("user:ann", False, "confirmed")


def test_whoever_was_stood_in_for_has_decided_also_as_holder_of_a_role() -> None:
    """They have no second voice by another role, and nor has the stand-in: somebody else decides for that."""
    roles = frozenset({"finance", "legal"})
    host = running(human(Ask(by="role", of="finance"), Ask(by="role", of="legal"), agree="all"))
    decide(host, Actor(id="sue", on_behalf_of="ann", roles=roles))
    assert code(decide(host, Actor(id="ann", roles=roles), "rejected")) == Refusal.ALREADY_DECIDED
    assert code(decide(host, Actor(id="sue", roles=roles))) == Refusal.NOT_DISTINCT
    decide(host, Actor(id="gus", roles=roles))
    assert [(row.actor, row.on_behalf_of) for row in decisions(host)] == [("sue", "ann"), ("gus", "")]
    assert status(host) == "completed"
    refolded(host)


def test_who_is_asked_by_name_and_by_role_leaves_the_role_to_a_colleague() -> None:
    """One's own place comes first, so that where all have to agree somebody else can decide for the role."""
    host = running(human(Ask(by="role", of="finance"), Ask(by="user", of="fay")))
    decide(host, FAY)
    assert people(host) == [("role:finance", True, ""), ("user:fay", False, "confirmed")]
    decide(host, GUS)
    assert status(host) == "completed"


@pytest.mark.row("E-679")
@pytest.mark.parametrize("comment", ["", "  "])
def test_a_rejection_needs_a_reason_where_that_is_asked_for(comment: str) -> None:
    """Without one it is refused; an approval needs none."""
    for op in (human(*USERS, requires_reason=True), g.HumanOp(requires_reason=True)):
        host = running(op)
        assert code(decide(host, ANN, "rejected", comment=comment)) == Refusal.REASON_REQUIRED
        assert not decisions(host)
        assert isinstance(decide(host, ANN, "rejected", comment="too dear"), Decision)
    assert isinstance(decide(running(human(*USERS, requires_reason=True)), ANN), Decision)


@pytest.mark.row("E-684")
def test_the_requester_may_not_approve_where_that_is_forbidden() -> None:
    """Whoever started the run is refused, whether asked by role or by any capability, and nobody decides in that person's name."""
    op = human(Ask(by="role", of="finance"), self_approval=False)
    for actor in (
        Actor(id="rita", roles=frozenset({"finance"})),
        Actor(id="rita", capabilities=frozenset({"*"})),
        Actor(id="sue", roles=frozenset({"finance"}), on_behalf_of="rita"),
        Actor(id="rita", roles=frozenset({"finance"}), on_behalf_of="fay"),
    ):
        host = running(op)
        assert code(decide(host, actor)) == Refusal.SELF_APPROVAL
        assert code(host.tell(c.ClaimTask(step=1), actor)) == Refusal.SELF_APPROVAL
    assert isinstance(decide(running(op), FAY), Decision)
    assert isinstance(decide(running(human(Ask(by="user", of="rita"))), RITA), Decision)


@pytest.mark.row("E-684")
def test_a_requester_among_those_who_are_asked_is_left_out() -> None:
    """The others decide without that person, who is shown as asked and not open."""
    host = running(human(Ask(by="user", of="rita"), USERS[0], self_approval=False))
    assert people(host) == [("user:rita", False, ""), ("user:ann", True, "")]
    decide(host, ANN)
    assert status(host) == "completed"
    refolded(host)


@pytest.mark.row("E-684")
@pytest.mark.parametrize(
    ("names", "fields", "is_decidable"),
    [
        (("rita", "ann"), {"agree": "all"}, True),
        (("rita",), {"agree": "all"}, False),
        (("rita", "ann"), {"agree": "n", "least": 2}, False),
        (("rita", "ann", "bob"), {"agree": "n", "least": 2}, True),
    ],
)
def test_all_are_all_who_may_decide_and_a_number_is_a_number(
    names: tuple[str, ...], fields: dict[str, Any], *, is_decidable: bool
) -> None:
    """Whom four eyes keep out is not one of all; at least one has to be left, and a number counts as it is written."""
    host = running(human(*(Ask(by="user", of=name) for name in names), self_approval=False, **fields))
    if is_decidable:
        for actor in (ANN, BOB)[: len(names) - 1]:
            decide(host, actor)
        assert status(host) == "completed"
    else:
        assert (host.state.status, host.state.reason) == ("paused", "no_approver")


@pytest.mark.row("E-687")
@pytest.mark.parametrize("fields", [{"distinct_from": ("q1",)}, {"distinct_approvers": True}, {}])
def test_four_eyes(fields: dict[str, Any]) -> None:
    """Who has decided a step may not decide one that is to be distinct from it; without that, one person may decide both."""
    host = running(g.HumanOp(role="finance"), human(Ask(by="role", of="finance"), **fields))
    substitute = Actor(id="sue", roles=frozenset({"finance"}), on_behalf_of="fay")
    decide(host, FAY)
    if fields:
        assert code(decide(host, FAY, step=2)) == Refusal.NOT_DISTINCT
        assert code(decide(host, substitute, step=2)) == Refusal.NOT_DISTINCT
    else:
        assert host.state.deciders == {}
    assert isinstance(decide(host, GUS if fields else FAY, step=2), Decision)
    assert status(host) == "completed"
    refolded(host)


@pytest.mark.row("E-687")
def test_four_eyes_see_through_those_who_stand_in() -> None:
    """Of several who have decided a step nobody decides one that is to be distinct from it, nor does one in whose name somebody has."""
    host = running(human(*USERS), human(Ask(by="role", of="finance"), distinct_from=("q1",)))
    for actor in (Actor(id="sue", on_behalf_of="ann"), BOB):
        decide(host, actor)
    for name in ("sue", "ann", "bob"):
        again = Actor(id=name, roles=frozenset({"finance"}))
        assert code(decide(host, again, step=2)) == Refusal.NOT_DISTINCT
    assert isinstance(decide(host, FAY, step=2), Decision)


def test_four_eyes_that_are_two_fail_closed() -> None:
    """If only one person is asked, and that person has decided before, the run waits for another one."""
    host = running(human(USERS[0]), human(USERS[0], distinct_approvers=True))
    decide(host, ANN)
    assert (host.state.status, host.state.reason) == ("paused", "no_approver")
    refolded(host)


def test_distinct_approvers_differ_from_stage_to_stage() -> None:
    """Who has decided a stage of a chain may not decide a later one."""
    host = running(g.HumanOp(chain="spend", distinct_approvers=True))
    stage = Stage(asks=[Ask(by="role", of="finance")])
    host.tell(c.PeopleFound(step=1, stages=[stage, stage]))
    decide(host, FAY)
    assert code(decide(host, FAY, "rejected")) == Refusal.ALREADY_DECIDED
    assert code(host.tell(c.AnswerStep(step=1, outcome="rejected", stage="2 of 2"), FAY)) == Refusal.NOT_DISTINCT
    decide(host, GUS)
    assert status(host) == "completed"


# -- claiming and handing on


def test_a_claim_is_for_one() -> None:
    """Only one who is asked can claim; then nobody else decides, until it is released. Claiming again does nothing."""
    host = running(g.HumanOp(role="finance"))
    assert code(host.tell(c.ClaimTask(step=1), ANN)) == Refusal.NOT_ALLOWED
    host.tell(c.ClaimTask(step=1), FAY)
    assert task(host).claimed_by == "fay"
    assert isinstance(host.tell(c.ClaimTask(step=1), FAY), Ignored)
    assert code(host.tell(c.ClaimTask(step=1), GUS)) == code(decide(host, GUS)) == Refusal.CLAIMED
    assert code(host.tell(c.ReleaseTask(step=1), GUS)) == Refusal.NOT_ALLOWED
    host.tell(c.ReleaseTask(step=1), FAY)
    assert isinstance(host.tell(c.ReleaseTask(step=1), FAY), Ignored)
    host.tell(c.ClaimTask(step=1), GUS)
    host.tell(c.ReleaseTask(step=1), BOSS)
    decide(host, FAY)
    assert status(host) == "completed"
    refolded(host)


def test_a_claim_ends_when_the_task_is_handed_on() -> None:
    """Whoever gets it can decide it, although the one before had taken it for himself."""
    for hand_on in (c.DelegateTask(step=1, to="eve"), c.ReassignTask(step=1, to="eve")):
        host = running(human(USERS[0]))
        host.tell(c.ClaimTask(step=1), ANN)
        host.tell(hand_on, Actor(id="ann", capabilities=frozenset({"task:reassign"})))
        assert isinstance(decide(host, EVE), Decision)
        assert (status(host), task(host).claimed_by) == ("completed", "")
        refolded(host)


def test_a_claim_ends_with_its_stage() -> None:
    """Those of the next stage decide, although somebody had taken the one before for himself."""
    host = running(g.HumanOp(chain="spend"))
    stages = [Stage(asks=[Ask(by="role", of="finance")]), Stage(asks=[USERS[1]])]
    host.tell(c.PeopleFound(step=1, stages=stages))
    host.tell(c.ClaimTask(step=1), FAY)
    decide(host, FAY)
    assert isinstance(decide(host, BOB), Decision)
    assert status(host) == "completed"


def test_a_claim_ends_with_the_decision_of_whoever_has_it() -> None:
    """The others whose agreement is needed decide then; until then they are kept out."""
    host = running(human(*USERS, agree="all"))
    host.tell(c.ClaimTask(step=1), ANN)
    assert code(decide(host, BOB)) == Refusal.CLAIMED
    decide(host, ANN)
    assert task(host).claimed_by == ""
    decide(host, BOB)
    assert status(host) == "completed"
    refolded(host)


def test_a_claim_ends_when_the_question_escalates() -> None:
    """Whoever is asked because the others are silent need not wait for the one who sits on it."""
    rung = g.Rung(after_ms=1000, user="eve")
    host = running(human(*USERS, times=g.TaskTimes(escalation=(rung,))))
    host.tell(c.ClaimTask(step=1), ANN)
    host.tell(c.EscalateTask(step=1), timer="task:1:escalate")
    assert task(host).claimed_by == ""
    decide(host, EVE)
    assert status(host) == "completed"
    refolded(host)


def test_a_claim_ends_when_others_are_looked_for_and_found() -> None:
    """Whoever had it is not asked any more, and would keep those out who are."""
    host = running(human(Ask(by="manager"), agree="n", least=2))
    host.tell(c.PeopleFound(step=1, people=[Person(name="ann")]))
    host.tell(c.ClaimTask(step=1), ANN)
    host.tell(c.ResumeWorkflow())
    host.tell(c.PeopleFound(step=1, people=[Person(name="bob"), Person(name="carl")]))
    assert task(host).claimed_by == ""
    decide(host, BOB)
    decide(host, CARL)
    assert status(host) == "completed"
    refolded(host)


def test_a_claim_that_has_lapsed_keeps_nobody_out_and_only_that_one() -> None:
    """What the directory says of one holder is not said of the next one, who may have claimed it meanwhile."""
    host = running(g.HumanOp(role="finance"))
    host.tell(c.ClaimTask(step=1), FAY)
    host.away = {"fay"}
    host.tell(c.ClaimTask(step=1), GUS)
    assert task(host).claimed_by == "gus"
    assert code(decide(host, FAY)) == Refusal.CLAIMED
    host.away = {"gus"}
    assert isinstance(decide(host, FAY), Decision)
    refolded(host)


def test_nobody_who_waits_for_an_answer_gives_it_by_escalating() -> None:
    """A rung that ends the question is no way round those who are asked: it takes the right to escalate, and four eyes."""
    rung = g.Rung(after_ms=1000, outcome="confirmed")
    host = running(human(*USERS, self_approval=False, agree="all", times=g.TaskTimes(escalation=(rung,))))
    rita = Actor(id="rita", capabilities=frozenset({"task:escalate"}))
    for actor, why in ((RITA, Refusal.NOT_ALLOWED), (ANN, Refusal.NOT_ALLOWED), (rita, Refusal.SELF_APPROVAL)):
        assert code(host.tell(c.PutHigher(step=1), actor)) == why
    host.tell(c.PutHigher(step=1), BOSS)
    assert (status(host), host.state.tokens) == ("completed", {})
    told = [event.output for event in host.history if isinstance(event, StepCompleted)]
    assert [(each["decided_by"], each["status"]) for each in told] == [("boss", "confirmed")]  # type: ignore[index]


def test_nobody_is_added_while_people_are_looked_for() -> None:
    """Those who come back with the people would not know of them; it is possible once they have come back."""
    host = running(human(Ask(by="manager")))
    for command in (c.AddApprover(step=1, person="eve"), c.ReassignTask(step=1, to="eve")):
        assert code(host.tell(command, BOSS)) == Refusal.NOT_ASKED_YET
    host.tell(c.PeopleFound(step=1, people=[Person(name="ann", via="manager")]))
    assert isinstance(host.tell(c.AddApprover(step=1, person="eve"), BOSS), Decision)


def test_a_question_asks_so_many_and_no_more() -> None:
    """Each of them is part of the state of the run."""
    found = [Person(name=f"p-{number}", via="manager") for number in range(MOST_PEOPLE)]
    host = running(human(Ask(by="manager")))
    host.tell(c.PeopleFound(step=1, people=found))
    assert code(host.tell(c.AddApprover(step=1, person="eve"), BOSS)) == Refusal.TOO_LARGE


def test_a_part_is_delegated() -> None:
    """Another user decides in one's place, under both names; the weight goes along, and the one who delegated is out."""
    host = running(human(Ask(by="user", of="ann", weight=3), USERS[1], agree="weight", least=3))
    host.tell(c.DelegateTask(step=1, to="eve"), ANN)
    assert people(host) == [("user:ann", False, ""), ("user:bob", True, ""), ("user:eve", True, "")]
    assert code(decide(host, ANN)) == Refusal.NOT_ALLOWED
    decide(host, EVE)
    (row,) = decisions(host)
    assert (row.actor, row.on_behalf_of, host.state.status) == ("eve", "ann", "completed")
    refolded(host)


DELEGATIONS: dict[str, tuple[Actor, str, str]] = {
    "to oneself": (ANN, "ann", Refusal.DELEGATION_TO_SELF),
    "of a role to oneself": (FAY, "fay", Refusal.DELEGATION_TO_SELF),
    "in a circle": (EVE, "carl", Refusal.DELEGATION_CIRCLE),
    "back": (EVE, "bob", Refusal.DELEGATION_CIRCLE),
    "to one who is asked": (ANN, "eve", Refusal.ALREADY_ASKED),
    "by one who is not asked": (RITA, "zoe", Refusal.NOT_ALLOWED),
    "to the requester": (ANN, "rita", Refusal.SELF_APPROVAL),
    "to nobody": (ANN, " ", Refusal.NOBODY_NAMED),
    "to a role": (ANN, "role:finance", Refusal.NOBODY_NAMED),
    "to oneself, spelled out": (ANN, "user:ann", Refusal.DELEGATION_TO_SELF),
}


@pytest.mark.parametrize("case", DELEGATIONS)
def test_a_delegation_that_leads_nowhere_is_refused(case: str) -> None:
    """To oneself, back or in a circle, or to one who is asked or may not decide; nothing changes."""
    host = running(human(*USERS, Ask(by="role", of="finance"), self_approval=False))
    host.tell(c.DelegateTask(step=1, to="carl"), BOB)
    host.tell(c.DelegateTask(step=1, to="eve"), CARL)
    before = len(host.history)
    actor, to, expected = DELEGATIONS[case]
    assert code(host.tell(c.DelegateTask(step=1, to=to), actor)) == expected
    assert len(host.history) == before


def test_a_delegation_does_not_come_back_by_any_detour() -> None:
    """All through whose hands a task went are barred, and the one in whose place somebody was asked from the first."""
    host = running(human(Ask(by="manager")))
    host.tell(c.PeopleFound(step=1, people=[Person(name="bob", via="delegation", for_="ann")]))
    for actor, to in ((BOB, "carl"), (CARL, "eve"), (EVE, "zoe")):
        host.tell(c.DelegateTask(step=1, to=to), actor)
    for to in ("ann", "bob", "carl", "eve"):
        assert code(host.tell(c.DelegateTask(step=1, to=to), Actor(id="zoe"))) == Refusal.DELEGATION_CIRCLE
    decide(host, Actor(id="zoe"))
    assert [(row.actor, row.on_behalf_of) for row in decisions(host)] == [("zoe", "ann")]


def test_what_was_delegated_is_taken_back_by_its_giver() -> None:
    """Without any right, as long as it is not decided; nobody else takes it, and nobody gives it to a third one that way."""
    host = running(human(*USERS, agree="all"))
    host.tell(c.DelegateTask(step=1, to="eve"), ANN)
    for actor, to in ((BOB, "bob"), (ANN, "carl"), (EVE, "eve"), (BOB, "ann")):
        assert code(host.tell(c.ReassignTask(step=1, to=to), actor)) == Refusal.NOT_ALLOWED
    assert code(host.tell(c.ReassignTask(step=1, to="ann", who="bob"), ANN)) == Refusal.NOT_ALLOWED
    host.tell(c.ReassignTask(step=1, to="ann"), ANN)
    assert code(decide(host, EVE)) == Refusal.NOT_ALLOWED
    decide(host, ANN)
    assert code(host.tell(c.ReassignTask(step=1, to="ann"), ANN)) == Refusal.NOT_ALLOWED
    decide(host, BOB)
    assert (status(host), [(each.actor, each.on_behalf_of) for each in decisions(host)]) == (
        "completed",
        [("ann", ""), ("bob", "")],
    )
    refolded(host)


def test_who_stood_in_and_takes_a_part_back_stands_in_again() -> None:
    """The decision bears the name of the first one, however often it was handed to and fro."""
    host = running(human(USERS[0]))
    host.tell(c.DelegateTask(step=1, to="bob"), ANN)
    host.tell(c.DelegateTask(step=1, to="carl"), BOB)
    host.tell(c.ReassignTask(step=1, to="user:bob", who="carl"), BOB)
    decide(host, BOB)
    assert [(each.actor, each.on_behalf_of) for each in decisions(host)] == [("bob", "ann")]


def test_a_task_is_reassigned_by_whoever_may() -> None:
    """With the capability somebody else is asked instead, a role too; one has to say instead of whom if several are asked."""
    host = running(human(*USERS))
    command = c.ReassignTask(step=1, to="role:finance", who="bob")
    assert code(host.tell(command, ANN)) == Refusal.NOT_ALLOWED
    assert code(host.tell(c.ReassignTask(step=1, to="eve"), BOSS)) == Refusal.NOBODY_NAMED
    assert code(host.tell(c.ReassignTask(step=1, to="eve", who="zoe"), BOSS)) == Refusal.NOBODY_NAMED
    host.tell(command, BOSS)
    assert people(host) == [("user:ann", True, ""), ("user:bob", False, ""), ("role:finance", True, "")]
    for actor in (ANN, FAY):
        decide(host, actor)
    assert status(host) == "completed"
    refolded(host)


def test_an_approver_is_added() -> None:
    """Where all have to agree, the new one has to as well; it takes a capability, and nobody is asked twice."""
    host = running(human(*USERS))
    assert code(host.tell(c.AddApprover(step=1, person="eve"), ANN)) == Refusal.NOT_ALLOWED
    host.tell(c.AddApprover(step=1, person="user:eve"), BOSS)
    assert code(host.tell(c.AddApprover(step=1, person="eve"), BOSS)) == Refusal.ALREADY_ASKED
    for actor in (ANN, BOB):
        decide(host, actor)
    assert status(host) == "running"
    decide(host, EVE)
    assert status(host) == "completed"
    refolded(host)


# -- talking, and taking back


def test_people_talk_about_a_question() -> None:
    """Those who are asked and the requester comment; one who asks back waits for an answer, and the question can still be decided."""
    host = running(human(*USERS))
    assert code(host.tell(c.CommentTask(step=1, text="me too"), EVE)) == Refusal.NOT_ALLOWED
    host.tell(c.CommentTask(step=1, text="what for?", is_question=True), ANN)
    host.tell(c.CommentTask(step=1, text="do say"), ANN)
    assert task(host).status == "info_requested"
    host.tell(c.CommentTask(step=1, text="for the lamp"), RITA)
    assert task(host).status == "open"
    rows = [row for row in host.rows if isinstance(row, CommentMade)]
    assert [(row.sequence, row.actor, row.is_question) for row in rows] == [
        (1, "ann", True),
        (2, "ann", False),
        (3, "rita", False),
    ]
    for actor in (ANN, BOB):
        decide(host, actor)
    assert task(host).status == "decided"
    refolded(host)


def test_a_decision_is_withdrawn_until_it_is_used() -> None:
    """Its decider takes it back while the question is open, and decides anew; the history keeps both. Nobody else can."""
    host = running(human(*USERS))
    decide(host, ANN, "confirmed")
    assert code(host.tell(c.WithdrawDecision(step=1), BOB)) == Refusal.NOTHING_DECIDED
    host.tell(c.WithdrawDecision(step=1), ANN)
    assert people(host)[0] == ("user:ann", True, "")
    decide(host, BOB)
    assert status(host) == "running"
    decide(host, ANN, "rejected")
    told = [(row.outcome, row.is_withdrawn, row.is_applied) for row in decisions(host)]
    assert told == [("confirmed", True, False), ("confirmed", False, True), ("rejected", False, True)]
    assert code(host.tell(c.WithdrawDecision(step=1), ANN)) == Refusal.ALREADY_TERMINAL
    assert len([event for event in host.history if isinstance(event, TaskDecided)]) == 3
    refolded(host)


@pytest.mark.row("E-686")
@pytest.mark.parametrize("ways", [(), (("rejected", "no"),), (("withdrawn", "gone"), ("rejected", "no"))])
def test_a_question_is_taken_back(ways: tuple[tuple[str, str], ...]) -> None:
    """By the requester, or with a capability: it leaves by `withdrawn` if a way leads on from that, else it is a rejection."""
    for actor in (RITA, BOSS):
        host = running(human(*USERS), ways=ways)
        decide(host, ANN)
        assert code(host.tell(c.WithdrawTask(step=1), BOB)) == Refusal.NOT_ALLOWED
        host.tell(c.WithdrawTask(step=1, reason="not needed"), actor)
        row = task(host)
        assert (row.status, row.outcome, row.actor, row.comment) == ("withdrawn", "withdrawn", actor.id, "not needed")
        assert [is_open for _, is_open, _ in people(host)] == [False, False]
        assert host.state.status == ("completed" if ways else "aborted")
        entered = [event.node for event in host.history if getattr(event, "node", "")]  # type: ignore[union-attr]
        assert entered[-1] == (ways[0][1] if ways else "q1")
        refolded(host)


COMMANDS: tuple[c.Command, ...] = (
    c.AnswerStep(step=1, outcome="confirmed"),
    c.ClaimTask(step=1),
    c.ReleaseTask(step=1),
    c.DelegateTask(step=1, to="zoe"),
    c.ReassignTask(step=1, to="zoe"),
    c.AddApprover(step=1, person="zoe"),
    c.CommentTask(step=1, text="hm"),
    c.WithdrawDecision(step=1),
    c.WithdrawTask(step=1),
)


@pytest.mark.row("E-686")
@pytest.mark.parametrize("ended", ["withdrawn", "timed out", "cancelled", "unknown"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_nothing_is_done_to_a_question_that_is_closed(ended: str, command: c.Command) -> None:
    """Withdrawn, expired or cancelled: every command is refused with a sentence, and changes nothing."""
    wait = g.Node(id="then", op=g.HumanOp())
    ask = g.Node(id="q1", op=human(*USERS), timeout_ms=1000)
    edges = [g.Edge(source="q1", target="then", on=on) for on in ("withdrawn", "timeout")]
    host = Host(
        compile_graph(
            kind="saga", name="g", version="1", entry="q1", nodes=[ask, wait], edges=edges, policies=g.Policies()
        )
    )
    host.tell(c.StartWorkflow(), RITA)
    match ended:
        case "withdrawn":
            host.tell(c.WithdrawTask(step=1), RITA)
        case "timed out":
            host.tell(c.TimeOut(step=1), timer="step:1")
            assert task(host).status == "expired"
        case "cancelled":
            host.tell(c.CancelWorkflow(), RITA)
            assert task(host).status == "cancelled"
        case _:
            pass
    if ended == "unknown":
        command = msgspec.structs.replace(command, step=9)
    else:
        assert [is_open for _, is_open, _ in people(host)] == [False, False]
    before = len(host.history)
    answer = host.tell(command, ROOT)
    assert code(answer) in {Refusal.NOT_WAITING, Refusal.ALREADY_TERMINAL, Refusal.ALREADY_DECIDED}
    assert len(host.history) == before
    refolded(host)


@pytest.mark.row("E-686")
def test_people_close_with_a_branch_that_is_not_needed() -> None:
    """When the other branch was enough, nobody is asked any more."""
    nodes = [
        g.Node(id="fork", op=g.SplitOp()),
        g.Node(id="one", op=human(*USERS)),
        g.Node(id="two", op=human(*USERS)),
        g.Node(id="met", op=g.JoinOp(split="fork", strategy="any")),
    ]
    edges = [g.Edge(source="fork", target=name, on="branch", priority=n) for n, name in enumerate(("one", "two"))]
    edges += [g.Edge(source=name, target="met", on="confirmed") for name in ("one", "two")]
    host = Host(
        compile_graph(kind="saga", name="g", version="1", entry="fork", nodes=nodes, edges=edges, policies=g.Policies())
    )
    host.tell(c.StartWorkflow(), RITA)
    decide(host, ANN, step=3)
    for actor in (ANN, BOB):
        decide(host, actor, step=2)
    assert status(host) == "completed"
    assert {is_open for _, is_open, _ in people(host)} == {False}
    refolded(host)


# -- what random graphs have found


@pytest.mark.parametrize("asks", [(), USERS[:1]], ids=["anybody", "one person"])
def test_an_abstention_is_told_as_one_where_nobody_else_is_asked(asks: tuple[Ask, ...]) -> None:
    """It comes to a rejection, and yet the same abstention again is no news; another decision is a conflict."""
    host = running(human(*asks), ways=(("rejected", "no"),))
    decide(host, ANN, "abstained")
    assert host.state.status == "completed"
    assert isinstance(decide(host, ANN, "abstained"), Ignored)
    assert code(decide(host, ANN, "confirmed")) == Refusal.ALREADY_DECIDED
    if asks:
        assert [(each.actor, each.outcome) for each in decisions(host)] == [("ann", "abstained")]
    refolded(host)


def test_whoever_takes_a_question_back_has_not_decided_it() -> None:
    """A later step that is to be distinct from it can still be decided by that person."""
    host = running(human(*USERS), human(Ask(by="user", of="rita"), distinct_from=("q1",)), ways=(("withdrawn", "q2"),))
    host.tell(c.WithdrawTask(step=1), RITA)
    assert ("user:rita", True, "") in people(host)
    assert isinstance(decide(host, RITA, step=2), Decision)


def test_whoever_has_decided_cannot_claim() -> None:
    """Nobody else could decide then, and neither could that person, even with a role that is asked as well."""
    host = running(human(Ask(by="user", of="fay"), Ask(by="role", of="finance"), agree="all"))
    decide(host, FAY)
    assert code(host.tell(c.ClaimTask(step=1), FAY)) == Refusal.ALREADY_DECIDED
    assert isinstance(decide(host, GUS), Decision)


def test_the_place_of_whom_it_escalated_to_is_handed_on_as_it_is() -> None:
    """The heir decides for those who were silent, and nobody waits for him otherwise."""
    rung = g.Rung(after_ms=1000, user="eve")
    host = running(human(*USERS, agree="all", times=g.TaskTimes(escalation=(rung,))))
    host.tell(c.EscalateTask(step=1), timer="task:1:escalate")
    host.tell(c.DelegateTask(step=1, to="carl"), EVE)
    decide(host, CARL)
    assert host.state.status == "completed"
    refolded(host)


def test_time_that_nobody_measured_has_not_passed() -> None:
    """Reminders and rungs come by the timer of their question, and by no message that arrives late or twice."""
    times = g.TaskTimes(every_ms=60_000, escalation=(g.Rung(after_ms=1000, user="eve"),))
    host = running(human(*USERS, times=times))
    for command in (c.EscalateTask(step=1), c.RemindTask(step=1)):
        assert isinstance(host.tell(command), Ignored)
    assert (host.state.open[1].level, host.state.open[1].reminded, len(people(host))) == (0, 0, 2)


def test_everybody_but_the_requester_is_asked() -> None:
    """A question that asks nobody in particular and keeps the requester out can be decided by anybody else."""
    host = running(human(self_approval=False))
    assert status(host) == "running"
    assert code(decide(host, RITA)) == Refusal.SELF_APPROVAL
    decide(host, ANN)
    assert status(host) == "completed"


def test_a_question_is_not_taken_back_with_a_reason_that_has_no_room() -> None:
    """The reason becomes part of the data, which has a limit; without one there is always room."""
    host = running(human(*USERS), ways=(("withdrawn", "end"),), limit=200)
    assert code(host.tell(c.WithdrawTask(step=1, reason="x" * 150), RITA)) == Refusal.TOO_LARGE
    assert isinstance(host.tell(c.WithdrawTask(step=1), RITA), Decision)


def test_a_ladder_stands_still_with_the_clocks_of_a_pause() -> None:
    """The rungs behind a pause are as much later as it was long, and not only the next one."""
    rungs = (g.Rung(after_ms=1000, user="eve"), g.Rung(after_ms=2000, user="carl"))
    host = running(human(*USERS, times=g.TaskTimes(escalation=rungs)))
    host.tell(c.PauseWorkflow(clock="stand_still"))
    host.now += timedelta(hours=1)
    host.tell(c.ResumeWorkflow())
    host.now = host.due["task:1:escalate"]
    host.tell(c.EscalateTask(step=1), timer="task:1:escalate")
    assert host.due["task:1:escalate"] == NOW + timedelta(hours=1, seconds=2)


# -- votes


def test_a_vote_is_said_in_the_words_of_the_definition() -> None:
    """Yes is the outcome that counts for the question, no the one against it; one that is not offered is refused."""
    op = human(Ask(by="user", of="ann"), outcomes=("later", "fine"), approves="fine", rejects="never")
    host = running(op, ways=(("later", "l"), ("fine", "f")))
    for vote in ("against", "abstained"):
        refusal = host.tell(c.AnswerStep(step=1, vote=vote), ANN)
        assert isinstance(refusal, Rejection)
        assert (refusal.code, "there are 'later', 'fine'" in refusal.message) == (Refusal.UNKNOWN_OUTCOME, True)
    host.tell(c.AnswerStep(step=1, vote="for"), ANN)
    assert [(each.outcome, each.is_applied) for each in decisions(host)] == [("fine", True)]
    assert isinstance(host.tell(c.AnswerStep(step=1, vote="for"), ANN), Ignored)
    assert code(host.tell(c.AnswerStep(step=1, vote="against"), ANN)) == Refusal.ALREADY_DECIDED
    refolded(host)
