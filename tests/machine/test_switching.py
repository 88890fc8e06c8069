"""Documents that are moved to another version of their workflow: only where all that is under way, and every gate, has its counterpart there."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from holdfast.kernel.actor import Actor
from holdfast.kernel.decision import Rejection
from holdfast.machine.graphs.document import Field
from holdfast.machine.graphs.graph import Graph
from holdfast.machine.graphs.index import GraphIndex
from holdfast.machine.runs import events as e
from holdfast.machine.runs.document_commands import SwitchWorkflow
from machine.documents import ANN, BOB, CARL, Case
from machine.hosting import OLGA
from support.envelopes import APPROVE_SLOT, FIELDS, SUBMIT_SLOT, Body, approval, both, chain, invoice

FIRST = approval("first")
OLD = {APPROVE_SLOT: chain(FIRST, approval("second", who="user:carl"))}


def knowing(graph: Graph, newer: Graph) -> Case:
    """A document that is submitted, and another version of its workflow."""
    case = Case(graph)
    others = {graph.version: case.host.machine.routes, newer.version: GraphIndex(newer, 100_000)}
    for index in others.values():
        index.others = lambda _tenant, version: others.get(version)
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
    """With what was decided: of three who approve there, the one who has decided here is not asked again; and it can be moved back."""
    newer = invoice({APPROVE_SLOT: chain(FIRST, approval("other", who="user:carl"), approval("third"))}, version="2")
    case = knowing(invoice(OLD), newer)
    assert case.decide("first", ANN) == ""
    assert switched(case, {"second": "other"}) == ""
    (told,) = [event for event in case.host.history if isinstance(event, e.WorkflowSwitched)]
    assert (told.before, told.version, told.nodes, told.by) == ("1", "2", {"second": "other"}, "olga")
    assert (case.at, case.window) == (["other"], "amend_only")
    assert (switched(case, {"other": "second"}, "1"), case.at) == ("", ["second"])
    assert switched(case, {"second": "other"}) == ""
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
        (OLD, {**FIELDS, "total": Field(type="string", required=True)}, {}, "does not fit the contract there: total"),
        (OLD, FIELDS, {"sys:gate:approve": "sys:gate:cancel"}, "the gate 'sys:gate:approve' has no counterpart"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_keeps_a_document_where_it_is(
    bodies: Mapping[str, Body], fields: Mapping[str, Field], nodes: dict[str, str], told: str
) -> None:
    """A step, an approval, a slot, a gate, the content: each is told, and nothing happens."""
    case = knowing(invoice(OLD), invoice(bodies, fields=fields, version="2"))
    assert told in switched(case, nodes)
    assert case.at == ["first"]


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
    own = {**FIELDS, "note": Field(type="string", system=True)}
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
