"""Documents that are moved to another version of their workflow: only where all that is under way, and every gate, has its counterpart there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import pytest
from msgspec.structs import replace as changed

from machine.documents import ANN, BOB, CARL, Case
from machine.hosting import OLGA
from standfast.features.documents.compiler.graph import brought
from standfast.graph import model as g
from standfast.graph.document_spec import (
    DocumentAction,
    DocumentField,
    DocumentPolicy,
    DocumentSpec,
    DocumentTransition,
    Window,
)
from standfast.graph.index import GraphIndex
from standfast.graph.model import Edge, Graph, Node
from standfast.graph.values.approver_rules import Ask
from standfast.kernel.actor import Actor
from standfast.kernel.decision import Rejection
from standfast.machine.model import events as e
from standfast.machine.model.commands.document_commands import SwitchWorkflow
from support.envelopes import (
    ACTIVE_SLOT,
    APPROVE_SLOT,
    FIELDS,
    SUBMIT_SLOT,
    Body,
    approval,
    both,
    chain,
    invoice,
    value,
    when,
)

FIRST = approval("first")
OLD = {APPROVE_SLOT: chain(FIRST, approval("second", who="user:carl"))}


def knowing(graph: Graph, newer: Graph, *, is_submitted: bool = True) -> Case:
    """A document that is submitted, and another version of its workflow."""
    case = Case(graph)
    others = {graph.version: case.host.machine.routes, newer.version: GraphIndex(newer, 100_000)}
    for index in others.values():
        index.others = lambda _tenant, version: others.get(version)
    if is_submitted:
        assert case.ask("submit") == ""
    return case


def switched(case: Case, nodes: Mapping[str, str] | None = None, version: str = "2") -> str:
    """Why a document is not moved; empty if it is."""
    answer = case.tell(SwitchWorkflow(version=version, nodes=dict(nodes or {}), reason="a change"), OLGA)
    if not isinstance(answer, Rejection):
        return ""
    assert answer.code == "not_switchable"
    return answer.message


@pytest.mark.row("EO-11")
def test_a_document_goes_on_by_the_ways_of_the_other_version() -> None:
    """With what was decided: of three who approve there, the one who has decided here is not asked again; and it cannot be moved back past the third."""
    newer = invoice({APPROVE_SLOT: chain(FIRST, approval("other", who="user:carl"), approval("third"))}, version="2")
    case = knowing(invoice(OLD), newer)
    assert case.decide("first", ANN) == ""
    assert switched(case, {"second": "other"}) == ""
    (told,) = [event for event in case.host.history if isinstance(event, e.WorkflowSwitched)]
    assert (told.before, told.version, told.nodes, told.by) == ("1", "2", {"second": "other"}, "olga")
    assert (case.at, case.window) == (["other"], "amend_only")
    assert "'third'" in switched(case, {"other": "second"}, "1")
    assert case.at == ["other"]
    assert (case.decide("other", CARL), case.at) == ("", ["third"])
    assert case.decide("third", ANN) == ""
    assert (case.document.status, case.applied) == ("active", [True, True, True])


@pytest.mark.row("EO-11")
@pytest.mark.parametrize(
    ("bodies", "fields", "nodes", "told"),
    [
        ({APPROVE_SLOT: chain(approval("other"))}, FIELDS, {}, "'first', which has no counterpart"),
        ({APPROVE_SLOT: chain(approval("first", covers=["total"]))}, FIELDS, {}, "covers other fields"),
        ({APPROVE_SLOT: both(FIRST, approval("x"))}, FIELDS, {}, "lies in a branch"),
        ({SUBMIT_SLOT: chain(FIRST)}, FIELDS, {}, "in another slot"),
        (OLD, FIELDS, {"first": "sys:state:draft"}, "of another kind"),
        (OLD, FIELDS, {"nobody": "first"}, "'nobody', which the present version does not have"),
        (OLD, {**FIELDS, "total": DocumentField(type="string", required=True)}, {}, "does not fit the contract there: total"),
        (OLD, FIELDS, {"sys:gate:approve": "sys:gate:cancel"}, "the gate 'sys:gate:approve' has no counterpart"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_keeps_a_document_where_it_is(
    bodies: Mapping[str, Body], fields: Mapping[str, DocumentField], nodes: dict[str, str], told: str
) -> None:
    """A step, an approval, a slot, a gate, the content: each is told, and nothing happens."""
    case = knowing(invoice(OLD), invoice(bodies, fields=fields, version="2"))
    assert told in switched(case, nodes)
    assert case.at == ["first"]


@pytest.mark.row("EO-11")
def test_what_was_decided_for_the_gate_to_come_needs_its_counterpart() -> None:
    """An approval that the gate will ask for keeps the document where it is, also if the document has gone on from there."""
    case = knowing(invoice(OLD), invoice({APPROVE_SLOT: chain(approval("second", who="user:carl"))}, version="2"))
    assert (case.decide("first", ANN), case.at) == ("", ["second"])
    assert "'first', which has no counterpart" in switched(case)
    assert case.at == ["second"]


BOSS = Actor(id="ann", roles=frozenset({"boss"}))


@pytest.mark.row("EO-11")
def test_four_eyes_hold_over_a_node_that_is_called_otherwise() -> None:
    """Also if it lies behind a gate: who decided it is known by its new name, or the document stays where it is."""

    def graph(first: str, version: str) -> Graph:
        second = approval("sign", who="role:boss", distinct_from=(first,))
        return invoice({SUBMIT_SLOT: chain(approval(first)), APPROVE_SLOT: chain(second)}, version=version)

    case = knowing(graph("check", "1"), graph("review", "2"))
    assert (case.decide("check", ANN), case.at) == ("", ["sign"])
    assert "'check' was decided and has no counterpart there, where 'review' is new" in switched(case)
    assert switched(case, {"check": "review"}) == ""
    assert case.decide("sign", BOSS) == "not_distinct"


@pytest.mark.row("EO-11")
def test_people_are_not_kept_apart_by_what_nobody_has_kept() -> None:
    """A version without four eyes remembers nobody: what was decided there cannot bar anybody in one that has them."""
    apart = {SUBMIT_SLOT: chain(FIRST), APPROVE_SLOT: chain(approval("sign", who="role:boss", distinct_approvers=True))}
    together = apart | {APPROVE_SLOT: chain(approval("sign", who="role:boss"))}
    case = knowing(invoice(together), invoice(apart, version="2"))
    assert (case.decide("first", ANN), case.at) == ("", ["sign"])
    assert "which nobody has kept" in switched(case)


@pytest.mark.row("EO-11")
@pytest.mark.parametrize(("covers", "told"), [([], "'first' is about 'note'"), (["note"], "'note'"), (["total"], "")])
def test_what_is_asked_about_does_not_become_the_workflows_own(covers: list[str], told: str) -> None:
    """Its changes void no approval."""
    body = {APPROVE_SLOT: chain(approval("first", covers=covers))}
    own = {**FIELDS, "note": DocumentField(type="string", system=True)}
    assert told in (found := switched(knowing(invoice(body), invoice(body, fields=own, version="2"))))
    assert bool(found) == bool(told)


@pytest.mark.row("EO-11")
def test_a_document_in_branches_or_without_another_version_stays() -> None:
    """Branches know their split alone; and who may not repair, or gives no reason, moves nothing."""
    case = knowing(invoice({APPROVE_SLOT: both(FIRST, approval("x"))}), invoice(OLD, version="2"))
    assert "branches of it are under way" in switched(case)
    assert "no such version" in switched(case, version="9")
    assert "already" in switched(case, version="1")
    assert case.code(case.tell(SwitchWorkflow(version="2", reason="a change"), BOB)) == "not_allowed"
    assert case.code(case.tell(SwitchWorkflow(version="2"), OLGA)) == "no_reason"


# -- what lies ahead, and what was passed

SECOND = approval("second", who="user:carl")
REPAIRER = Actor(id="rita", capabilities=frozenset({"execution:repair"}))
OVERRIDER = Actor(id="otto", capabilities=frozenset({"execution:repair", "execution:override"}))


def around(text: str, *, to: str = "second") -> Body:
    """An approval, and another one if a condition holds."""
    nodes = (FIRST, Node(id="choice", op=g.ConditionOp(expression=when(text))), changed(SECOND, id=to))
    edges = (
        Edge(source="first", target="choice", on="approved"),
        Edge(source="choice", target=to, on=g.TRUE),
    )
    return Body(nodes=nodes, first="first", last=(f"{to}:approved", f"choice:{g.FALSE}"), edges=edges)


def routed(outcome: str) -> Body:
    """Two approvals, of which the second is left by another outcome as well."""
    return replace(chain(FIRST, SECOND), last=("second:approved", f"second:{outcome}"))


def looping(*, first: Node = FIRST) -> Body:
    """Two approvals; a rejection of the second leads back to the first."""
    body = chain(first, SECOND)
    return replace(body, edges=(*body.edges, Edge(source="second", target=first.id, on="rejected", rework=True)))


def raced(strategy: Literal["all", "any"]) -> Body:
    """An approval, and then two in branches, all of which are waited for or the first alone."""
    body = both(SECOND, approval("x"))
    nodes = [
        each if each.id != "meet" else Node(id="meet", op=g.JoinOp(split="fork", strategy=strategy))
        for each in body.nodes
    ]
    edges = (*body.edges, Edge(source="first", target="fork", on="approved"))
    return replace(body, nodes=(FIRST, *nodes), first="first", edges=edges)


@pytest.mark.row("EO-11")
@pytest.mark.parametrize(
    ("old", "new", "nodes", "told"),
    [
        (chain(FIRST, SECOND), chain(FIRST), {}, "'second' lies ahead"),
        (chain(FIRST, SECOND), chain(FIRST, SECOND), {"first": "second"}, "leads to 'second' twice"),
        (chain(FIRST, SECOND), chain(SECOND, FIRST), {}, "'second' comes before 'first'"),
        (chain(FIRST, SECOND), chain(approval("zero"), FIRST, SECOND), {}, "'zero' comes before 'first'"),
        (chain(FIRST, SECOND), around("entity.total > 900"), {}, "'second' lies ahead"),
        (around("entity.total > 100"), around("entity.total > 900"), {}, "'second' lies ahead"),
        (around("entity.total > 100"), around("entity.total > 100"), {}, ""),
        (around("entity.total > 100"), chain(FIRST, SECOND), {}, ""),
        (around("entity.total > 100"), around("entity.total > 100", to="other"), {"second": "other"}, ""),
        (chain(FIRST, SECOND), routed("rejected"), {}, "'second' lies ahead"),
        (routed("rejected"), routed("rejected"), {}, ""),
        (chain(FIRST, SECOND), chain(FIRST, approval("second", who="user:carl", covers=["total"])), {}, "'second' lies ahead"),
        (looping(), chain(FIRST), {}, "'second' lies ahead"),
        (looping(), chain(FIRST, SECOND), {}, ""),
        (raced("all"), raced("any"), {}, "'second' lies ahead"),
        (raced("all"), chain(FIRST, SECOND, approval("x")), {}, ""),
        (chain(FIRST, SECOND, approval("x")), raced("all"), {}, ""),
    ],
)  # fmt: skip
def test_no_approval_that_lies_ahead_is_lost_by_a_move(old: Body, new: Body, nodes: dict[str, str], told: str) -> None:
    """Every approval that a document still has to get before its gate is as sure to be asked for in the other version, and none there is passed over."""
    case = knowing(invoice({APPROVE_SLOT: old}), invoice({APPROVE_SLOT: new}, version="2"))
    found = switched(case, nodes)
    assert told in found
    assert bool(found) == bool(told)


@pytest.mark.row("EO-11")
def test_no_step_is_moved_past_an_approval_or_a_gate() -> None:
    """The map cannot lead what is before an approval to behind it, nor a state to another one."""
    wait = Node(id="wait", op=g.WaitEventOp(signal="go"))
    body = {APPROVE_SLOT: chain(wait, FIRST, changed(wait, id="later"))}
    case = knowing(invoice(body), invoice(body, version="2"))
    assert case.at == ["wait"]
    assert "'first' lies ahead" in switched(case, {"wait": "later", "later": "wait"})
    resting = Case(invoice())
    others = {"1": resting.host.machine.routes, "2": GraphIndex(invoice(version="2"), 100_000)}
    for index in others.values():
        index.others = lambda _tenant, version: others.get(version)
    swapped = {"sys:state:draft": "sys:state:active", "sys:state:active": "sys:state:draft"}
    assert "'sys:state:draft'" in switched(resting, swapped)


@pytest.mark.row("EO-11")
@pytest.mark.parametrize("is_submitted", [True, False])
def test_fewer_or_other_approvals_take_the_right_to_override(is_submitted: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Whoever may only repair moves no document to where others are asked, or to where a slot that it comes to later asks fewer."""
    lax = chain(FIRST, approval("second", who="user:rita")) if is_submitted else chain(FIRST)
    case = knowing(invoice(OLD), invoice({APPROVE_SLOT: lax}, version="2"), is_submitted=is_submitted)
    command = SwitchWorkflow(version="2", reason="a change")
    answer = case.tell(command, REPAIRER)
    assert isinstance(answer, Rejection)
    assert ("execution:override" in answer.message, "'second'" in answer.message) == (True, True)
    assert case.code(case.tell(command, OVERRIDER)) == ""
    (told,) = [event for event in case.host.history if isinstance(event, e.WorkflowSwitched)]
    assert told.eased == ["second"]


# -- what feeds the choice

WAIT = Node(id="wait", op=g.WaitEventOp(signal="go"))


def script(formula: str, name: str = "big") -> Node:
    """A script that keeps a value."""
    return Node(id=f"make_{name}", op=g.ScriptOp(formula=value(formula), into=name))


def task(handler: str) -> Node:
    """A task that keeps what its handler answers."""
    return Node(
        id="make_big", op=g.TaskOp(work=g.HandlerCall(handler=handler), output={"big": brought("response.big")})
    )


def heard(path: str) -> Sequence[Node | Edge]:
    """A wait for an event that keeps what it brings."""
    return (
        Node(id="make_big", op=g.WaitEventsOp(events=(g.Awaited(event="paid"),))),
        Edge(source="make_big", target="choice", assign={"big": brought(path)}),
    )


def fed(*before: Node | Edge) -> Body:
    """A wait, what makes a value, and an approval if that says so."""
    nodes = [
        WAIT,
        *(each for each in before if isinstance(each, Node)),
        Node(id="choice", op=g.ConditionOp(expression=when("context.big == true"))),
        FIRST,
    ]
    own = {each.source: each for each in before if isinstance(each, Edge)}
    edges = [own.get(a.id, Edge(source=a.id, target=b.id)) for a, b in pairwise(nodes[:-1])]
    edges.append(Edge(source="choice", target="first", on=g.TRUE))
    return Body(nodes=nodes, first="wait", last=("first:approved", f"choice:{g.FALSE}"), edges=edges)


def listed(items: str, on_empty: Literal["skip", "fail"] = "skip", *, before: Sequence[Node] = ()) -> Body:
    """A wait, and an approval for each entry of a list."""
    nodes = [WAIT, *before, Node(id="each", op=g.SplitOp(items=value(items), item="line", on_empty=on_empty))]
    edges = [Edge(source=a.id, target=b.id) for a, b in pairwise(nodes)]
    edges += [Edge(source="each", target="first", on=g.BRANCH), Edge(source="first", target="meet", on="approved")]
    return Body(
        nodes=[*nodes, FIRST, Node(id="meet", op=g.JoinOp(split="each"))], first="wait", last=("meet:ok",), edges=edges
    )


RULED = changed(FIRST, op=changed(FIRST.op, asks=(Ask(by="rule", of="context.boss", rule=value("context.boss")),)))
NOTE = Node(id="tell", op=g.NotificationOp(to=("role:boss",), subject="new", body="look"))
AROUND: Mapping[str, tuple[Body, Body]] = {
    "a formula": (fed(script("entity.total > 100")), fed(script("entity.total > 900"))),
    "another name": (fed(script("true")), fed(script("true", "great"))),
    "a handler": (fed(task("size")), fed(task("other"))),
    "a script that is new": (fed(NOTE), fed(NOTE, script("false"))),
    "a script that is gone": (fed(NOTE, script("true")), fed(NOTE)),
    "what an event brings": (fed(*heard("event.payload.big")), fed(*heard("event.payload.small"))),
    "a list": (listed("entity.lines"), listed("entity.paid")),
    "what an empty list comes to": (listed("entity.lines", "fail"), listed("entity.lines")),
    "what makes a list": (
        listed("context.lines", before=[script("entity.lines", "lines")]),
        listed("context.lines", before=[script("entity.paid", "lines")]),
    ),
}  # fmt: skip
OTHERWISE: Mapping[str, tuple[Body, Body, str]] = {
    "who is asked": (chain(WAIT, script("entity.vendor", "boss"), RULED), chain(WAIT, script("entity.note", "boss"), RULED), "make_boss"),
    "the order": (
        chain(WAIT, script("entity.vendor", "boss"), script("entity.note", "other"), RULED),
        chain(WAIT, script("entity.note", "other"), script("entity.vendor", "boss"), RULED),
        "make_boss",
    ),
    "what is told": (chain(WAIT, NOTE, FIRST), chain(WAIT, changed(NOTE, op=changed(NOTE.op, body="mind")), FIRST), "tell"),
    "a form": (chain(WAIT, FIRST), chain(WAIT, changed(FIRST, op=changed(FIRST.op, form={"type": "object"}))), "first"),
}  # fmt: skip


def moved(old: Graph, new: Graph, *, is_submitted: bool) -> tuple[list[str], list[str] | None]:
    """Why a document is not moved by one who may repair, and by one who may override too; what the history names that is otherwise, if it is moved."""
    case = knowing(old, new, is_submitted=is_submitted)
    command = SwitchWorkflow(version="2", reason="a change")
    answers = [case.tell(command, each) for each in (REPAIRER, OVERRIDER)]
    told = [event.eased for event in case.host.history if isinstance(event, e.WorkflowSwitched)]
    return [case.code(each) for each in answers], told[0] if told else None


@pytest.mark.row("EO-11")
@pytest.mark.parametrize("how", AROUND)
def test_what_feeds_a_choice_around_an_approval_is_the_choice(how: str) -> None:
    """Where data decides whether people are asked, or how often, a document ahead of it is not moved to where other data is made."""
    old, new = AROUND[how]
    versions = invoice({APPROVE_SLOT: old}), invoice({APPROVE_SLOT: new}, version="2")
    assert moved(*versions, is_submitted=True) == (["not_switchable"] * 2, None)
    refusals, named = moved(*versions, is_submitted=False)
    assert (refusals, bool(named)) == (["not_allowed", ""], True)


@pytest.mark.row("EO-11")
@pytest.mark.parametrize("is_submitted", [True, False])
@pytest.mark.parametrize("how", OTHERWISE)
def test_every_step_ahead_of_an_approval_is_the_same_or_is_named(how: str, is_submitted: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Whoever may only repair moves no document to where a step ahead of an approval does something else."""
    old, new, name = OTHERWISE[how]
    versions = invoice({APPROVE_SLOT: old}), invoice({APPROVE_SLOT: new}, version="2")
    refusals, named = moved(*versions, is_submitted=is_submitted)
    assert (refusals, name in (named or [])) == (["not_allowed", ""], True)


@pytest.mark.row("EO-11")
def test_what_feeds_an_approval_behind_a_gate_is_looked_at_too() -> None:
    """A step of the first slot says whom the second one asks, and a step behind the last approval says nothing."""
    asked = {APPROVE_SLOT: chain(RULED)}
    old, new = (invoice({SUBMIT_SLOT: chain(script(of, "boss")), **asked}, version=version) for version, of in (("1", "entity.vendor"), ("2", "entity.note")))  # fmt: skip
    assert moved(old, new, is_submitted=False) == (["not_allowed", ""], ["make_boss"])
    old, new = (invoice({APPROVE_SLOT: chain(FIRST), ACTIVE_SLOT: chain(script(of, "done"))}, version=version) for version, of in (("1", "1"), ("2", "2")))  # fmt: skip
    assert moved(old, new, is_submitted=False) == (["", "not_switchable"], [])


@pytest.mark.row("EO-11")
def test_a_field_that_is_computed_otherwise_feeds_the_choice() -> None:
    """The formula of a field decides as much as the condition that reads it."""
    body = {APPROVE_SLOT: around("entity.large == true")}
    lax = {**FIELDS, "large": DocumentField(type="computed", formula=value("entity.total > 900000"))}
    versions = invoice(body), invoice(body, fields=lax, version="2")
    assert moved(*versions, is_submitted=True) == (["not_switchable"] * 2, None)
    assert moved(*versions, is_submitted=False) == (["not_allowed", ""], ["second", "large"])


def spec_of(graph: Graph) -> DocumentSpec:
    """What a graph says of its documents."""
    assert graph.document is not None
    return graph.document


def gated(graph: Graph, name: str = "approve", **how: object) -> Graph:
    """The same with another transition."""
    spec = spec_of(graph)
    transitions = [changed(each, **how) if each.name == name else each for each in spec.transitions]
    return changed(graph, document=changed(spec, transitions=tuple(transitions)))


def limited(graph: Graph, *about: str) -> Graph:
    """The same with a policy."""
    policy = DocumentPolicy(name="bosses", actions=about, roles=("boss",))
    return changed(graph, document=changed(spec_of(graph), policies=(policy,) if about else ()))


def timed(graph: Graph, ms: int) -> Graph:
    """The same with a time after which a submitted document is approved."""
    name = "sys:state:submitted"
    edges = (*graph.edges, Edge(source=name, target="sys:gate:approve", on=g.TIMEOUT))
    return changed(
        graph, nodes=graph.nodes | {name: changed(graph.nodes[name], timeout_ms=ms)}, edges=edges if ms else graph.edges
    )


def opened(graph: Graph, **windows: Window) -> Graph:
    """The same with other windows of statuses."""
    spec = spec_of(graph)
    return changed(graph, document=changed(spec, states=spec.states | windows))


def also(graph: Graph, source: str, target: str) -> Graph:
    """The same with one more transition, and its gate."""
    spec, gate = spec_of(graph), Node(id="sys:gate:free", op=g.GateOp(transition="free"))
    edges = [Edge(source=f"sys:state:{source}", target=gate.id, on="free"), Edge(source=gate.id, target=f"sys:state:{target}", on=g.PASS)]  # fmt: skip
    free = DocumentTransition(name="free", sources=(source,), target=target)
    document = changed(
        spec, transitions=(*spec.transitions, free), windows=spec.windows | {gate.id: spec.states[source]}
    )
    return changed(graph, document=document, nodes=graph.nodes | {gate.id: gate}, edges=(*graph.edges, *edges))


def rejecting(graph: Graph, transition: str, status: str) -> Graph:
    """The same where a rejection before a gate leads to another status."""
    gate, to = f"sys:gate:{transition}", f"sys:state:{status}"
    kept = [each for each in graph.edges if (each.source, each.on) != (gate, g.REJECT)]
    return changed(graph, edges=(*kept, Edge(source=gate, target=to, on=g.REJECT)))


def placed(graph: Graph, name: str, window: Window) -> Graph:
    """The same with another window of a gate."""
    spec = spec_of(graph)
    return changed(graph, document=changed(spec, windows=spec.windows | {name: window}))


def slotted(graph: Graph, **how: object) -> Graph:
    """The same with another slot before the gate of `approve`."""
    spec = spec_of(graph)
    regions = tuple(changed(each, **how) if each.id == APPROVE_SLOT else each for each in spec.regions)
    return changed(graph, document=changed(spec, regions=regions))


PLAIN = {"approve": "pay.approve", "submit": "pay.submit"}
ONE, TWO = (invoice(version=version, capabilities=PLAIN) for version in "12")
EDITED = (DocumentAction(name="update", capability="pay.update"),)
RIGHTS: Mapping[str, tuple[Graph, Graph, str]] = {
    "a permission": (ONE, invoice(version="2", capabilities={"submit": "pay.submit"}), "approve"),
    "another permission": (ONE, invoice(version="2", capabilities=PLAIN | {"approve": "pay.submit"}), "approve"),
    "a policy": (limited(ONE, "approve"), TWO, "approve"),
    "by itself": (ONE, gated(TWO, begins="by_itself"), "approve"),
    "a time": (ONE, timed(TWO, 1000), "approve"),
    "less time": (timed(ONE, 2000), timed(TWO, 1000), "approve"),
    "another way": (
        ONE,
        also(TWO, "draft", "active"),
        "free",
    ),
    "a rejection": (ONE, rejecting(TWO, "recall", "active"), "recall"),
    "a recall by others": (ONE, gated(TWO, "recall", kind=""), "recall"),
    "another way back": (ONE, also(TWO, "submitted", "draft"), "free"),
    "the window of a gate": (ONE, placed(TWO, "sys:gate:approve", "editable"), "sys:gate:approve"),
    "the window of a step": (
        invoice({APPROVE_SLOT: Body(nodes=(FIRST,), first="first", last=("first:approved",), windows={"first": "locked"})}),
        invoice({APPROVE_SLOT: chain(FIRST)}, version="2"),
        "first",
    ),
    "the window of a slot": (ONE, slotted(TWO, window="editable"), APPROVE_SLOT),
    "a slot that is not stable": (ONE, slotted(TWO, stable=False), APPROVE_SLOT),
    "a slot that goes on": (slotted(ONE, on_edit="restart"), TWO, APPROVE_SLOT),
    "a slot that undoes nothing": (slotted(ONE, on_reject="compensate"), TWO, APPROVE_SLOT),
    "drift": (invoice(on_drift="fail"), invoice(version="2"), "on_drift"),
    "the end of a round": (ONE, changed(TWO, edges=(*TWO.edges, Edge(source="sys:state:submitted", target="sys:end"))), "submitted"),
    "an action": (invoice(actions=EDITED), invoice(version="2"), "update"),
    "the policy of an action": (limited(ONE, "update"), TWO, "update"),
    "a window": (ONE, opened(TWO, active="editable"), "active"),
}  # fmt: skip
SAME: Mapping[str, tuple[Graph, Graph]] = {
    "the same": (limited(timed(ONE, 1000), "approve"), limited(timed(TWO, 1000), "approve")),
    "one more permission": (ONE, invoice(version="2", capabilities=PLAIN | {"cancel": "pay.cancel"})),
    "more time": (timed(ONE, 1000), timed(TWO, 2000)),
    "no time": (timed(ONE, 1000), TWO),
    "a stricter window": (ONE, opened(TWO, submitted="locked")),
    "a stricter slot": (ONE, slotted(TWO, window="locked", on_edit="restart")),
    "a stricter answer to drift": (ONE, invoice(version="2", capabilities=PLAIN, on_drift="fail")),
}
ASKING = {APPROVE_SLOT: chain(FIRST)}
ASKED, ANEW = invoice(ASKING), invoice(ASKING, version="2")
"""Two versions in which `active` is reached only past an approval."""
OTHER_WAY = also(ANEW, "submitted", "active")
PAST: Mapping[str, Graph] = {
    "a transition": OTHER_WAY,
    "a transition with a permission": gated(OTHER_WAY, "free", capability="pay.fast"),
    "a time": changed(
        OTHER_WAY,
        nodes=OTHER_WAY.nodes | {"sys:state:submitted": changed(OTHER_WAY.nodes["sys:state:submitted"], timeout_ms=1000)},
        edges=(*OTHER_WAY.edges, Edge(source="sys:state:submitted", target="sys:gate:free", on=g.TIMEOUT)),
    ),
    "a rejection": rejecting(ANEW, "approve", "active"),
    "a rejection before another gate": rejecting(ANEW, "recall", "active"),
}  # fmt: skip


@pytest.mark.row("EO-11")
@pytest.mark.parametrize("how", RIGHTS)
def test_a_version_that_asks_for_fewer_rights_takes_the_right_to_override(how: str) -> None:
    """A gate is a wall as much as an approval is: what it asks for, what leads to it, and who may edit what it let through."""
    old, new, name = RIGHTS[how]
    refusals, named = moved(old, new, is_submitted=False)
    assert (refusals, named) == (["not_allowed", ""], [name])


@pytest.mark.row("EO-11")
@pytest.mark.parametrize("how", PAST)
def test_no_status_behind_an_approval_is_reached_around_it(how: str) -> None:
    """A document that waits there is not moved, whoever asks for that; one that comes there later takes the right to override."""
    assert moved(ASKED, PAST[how], is_submitted=True) == (["not_switchable"] * 2, None)
    refusals, named = moved(ASKED, PAST[how], is_submitted=False)
    is_other_gate = how == "a rejection"
    assert refusals == (["not_switchable"] * 2 if is_other_gate else ["not_allowed", ""])
    assert is_other_gate or named in (["free"], ["recall"])


@pytest.mark.row("EO-11")
def test_a_gate_that_rejects_elsewhere_is_no_counterpart() -> None:
    """A rejection leads where it did, also for a document that has not come to the gate."""
    case = knowing(ASKED, rejecting(ANEW, "approve", "cancelled"), is_submitted=False)
    assert "a rejection before the gate 'sys:gate:approve' leads elsewhere" in switched(case)


@pytest.mark.row("EO-11")
def test_a_way_that_opens_no_status_is_named_alone() -> None:
    """A way back, and one to where a document could come before without an approval, are rights and nothing more."""
    for way in (also(ANEW, "submitted", "draft"), also(ANEW, "submitted", "amended")):
        assert moved(ASKED, way, is_submitted=True) == (["not_allowed", ""], ["free"])


@pytest.mark.row("EO-11")
@pytest.mark.parametrize("how", SAME)
def test_a_version_that_asks_for_the_same_or_more_rights_takes_none(how: str) -> None:
    """Whoever may repair moves documents there."""
    assert moved(*SAME[how], is_submitted=False) == (["", "not_switchable"], [])


@pytest.mark.row("EO-11")
def test_a_version_that_says_otherwise_what_it_asks_is_the_same() -> None:
    """Titles, what is shown, and nodes that are called otherwise take no right to override."""
    told = changed(FIRST, op=changed(FIRST.op, subject="another title"))
    bodies = ({APPROVE_SLOT: chain(WAIT, script("entity.vendor", "boss"), each)} for each in (FIRST, told))
    old, new = (invoice(each, version=version) for version, each in zip("12", bodies, strict=True))
    assert moved(old, new, is_submitted=True) == (["", "not_switchable"], [])


@pytest.mark.row("EO-11")
def test_an_open_question_is_put_anew_where_it_asks_others() -> None:
    """Whoever was asked before is not asked any more, nor is whoever has claimed it or decided among several."""
    several = approval("first", who="user:ann")
    assert isinstance(several.op, g.HumanOp)
    old = changed(
        several, op=changed(several.op, asks=(Ask(by="user", of="ann"), Ask(by="user", of="carl")), agree="all")
    )
    case = knowing(
        invoice({APPROVE_SLOT: chain(old)}),
        invoice({APPROVE_SLOT: chain(approval("first", who="user:dora"))}, version="2"),
    )
    assert case.decide("first", ANN) == ""
    before = case.step("first").number
    assert case.code(case.tell(SwitchWorkflow(version="2", reason="a change"), OVERRIDER)) == ""
    assert (case.at, case.step("first").number > before, case.applied) == (["first"], True, [False])
    assert [case.decide("first", each) for each in (ANN, CARL)] == ["not_allowed"] * 2
    assert case.decide("first", Actor(id="dora")) == ""
    assert case.document.status == "active"


@pytest.mark.row("EO-11")
def test_an_approval_ahead_covers_computed_fields_there_too() -> None:
    """A field that follows from the workflow's own alone is not approved, so what makes it one covers less."""
    twice = {"twice": DocumentField(type="computed", formula=value("entity.note"))}
    old = {**FIELDS, **twice}
    new = {**old, "note": DocumentField(type="string", system=True)}
    versions = [invoice(OLD, fields=fields, version=version) for version, fields in (("1", old), ("2", new))]
    case = knowing(*versions)
    told = switched(case)
    assert "'second' covers less there" in told
    assert "'first' is about 'twice'" in told
