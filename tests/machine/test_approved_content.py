"""What becomes active is what was approved, byte for byte, whatever edits, decisions and deliveries come in between."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import msgspec
import pytest

from machine.documents import ANN, BOB, CARL, Case
from machine.hosting import OLGA
from standfast.graph import model as g
from standfast.graph.document_spec import DocumentAction
from standfast.graph.model import DocumentRule, Edge, HumanOp, Node
from standfast.kernel.actor import SYSTEM
from standfast.machine.model import events as e
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.commands.document_commands import Mutate, RequestTransition
from standfast.machine.model.commands.repair_commands import RetryStep
from support.envelopes import (
    ACTIVE_SLOT,
    AMEND_SLOT,
    APPROVE_SLOT,
    SUBMIT_SLOT,
    Body,
    approval,
    both,
    chain,
    invoice,
    value,
    when,
)

ACTS = 60
NEEDED = {"draft": {"early"}, "amended": {"again"}, "submitted": {"a", "b"}}
"""Who has to approve what leads on from a status, as far as the envelope asks them."""
STAMP = DocumentRule(name="stamp", effect="set_field", field="note", value=value("entity.vendor"))
"""A rule of the organisation that writes while a transition is asked for."""
_encode = msgspec.json.Encoder(order="sorted").encode


def graph(rng: Random) -> g.Graph:
    """An envelope with approvals in several slots, some of them of single fields, at once or one after the other, and with waits between them."""

    def covers() -> list[str]:
        return rng.choice(([], [], ["total"], ["note", "vendor"]))

    pause = Node(
        id="pause", op=rng.choice((g.WaitTimerOp(duration_ms=1000), g.TaskOp(work=g.HandlerCall(handler="check"))))
    )
    mark = Node(id="mark", op=g.ActionOp(action="mark", payload={"posting": value("'GL-1'")}))
    bodies = {
        APPROVE_SLOT: rng.choice(
            (
                both(approval("a", covers=covers()), approval("b", who="user:carl", covers=covers())),
                _three(pause, approval("a", covers=covers()), approval("b", who="user:carl", covers=covers())),
                chain(approval("a", covers=covers()), pause, approval("b", who="user:carl", covers=covers())),
                _narrow(approval("a", covers=covers()), approval("b", who="user:carl", covers=covers())),
            )
        ),
        ACTIVE_SLOT: chain(mark),
    }
    if rng.random() < 0.7:
        bodies[SUBMIT_SLOT] = chain(
            approval("early", covers=covers()), Node(id="rest", op=g.WaitTimerOp(duration_ms=9))
        )
    if rng.random() < 0.3:
        bodies[AMEND_SLOT] = chain(approval("again", who="user:carl"))
    return invoice(
        bodies,
        amendment="in_place",
        on_edit=rng.choice(("keep", "restart")),
        actions=[DocumentAction(name="mark", workflow_allowed=True)],
    )


def _three(first: Node, second: Node, third: Node) -> Body:
    """A node beside two others, so that one branch fails or waits while people decide in the others."""
    body = both(second, third)
    edges = [*body.edges, Edge(source="fork", target=first.id, on=g.BRANCH), Edge(source=first.id, target="meet")]
    return Body(nodes=(*body.nodes, first), first=body.first, last=body.last, edges=edges)


def _narrow(first: Node, second: Node) -> Body:
    """Two nodes one after the other, and no way to the second for documents of a certain total."""
    body = chain(first, Node(id="look", op=g.ScriptOp(formula=value("1"))), second)
    edges = [
        msgspec.structs.replace(each, when=when("entity.total > 1")) if each.source == "look" else each
        for each in body.edges
    ]
    return Body(nodes=body.nodes, first=body.first, last=body.last, edges=edges)


def acts(case: Case, rng: Random) -> Iterator[None]:
    """What people and the world may do next, well meant or not."""
    for _ in range(ACTS):
        if case.host.state.is_terminal:
            return
        chance = rng.random()
        if chance < 0.25:
            field, values = rng.choice((("total", (1, 2, 3)), ("note", ("x", "y")), ("vendor", ("acme", "zeta"))))
            case.tell(Mutate(payload={field: rng.choice(values)}, amends=rng.random() < 0.2), BOB)
        elif chance < 0.5:
            wanted = rng.choice(
                ("submit", "submit", "submit", "approve", "recall", "cancel" if chance > 0.48 else "submit")
            )
            rules = [] if rng.random() < 0.8 else [STAMP]
            case.tell(RequestTransition(transition=wanted), BOB, rules=rules)
        elif chance < 0.6 and case.host.timers:
            key, command = rng.choice(list(case.host.timers.items()))
            case.host.now = case.host.due[key]
            case.host.tell(command, OLGA, timer=key)
        elif chance < 0.7:
            _operate(case, rng)
        else:
            _decide(case, rng)
        yield


def _operate(case: Case, rng: Random) -> None:
    """A handler comes back or fails; an operator holds the run, has it go on, or has a step that failed tried again."""
    state, calls = case.host.state, list(case.host.calls.items())
    if calls and rng.random() < 0.7:
        effect, call = rng.choice(calls)
        call.is_begun = True
        failed = c.FailStep(step=call.body.step, error="no", is_final=True)
        case.tell(rng.choice((failed, c.CompleteStep(step=call.body.step))), SYSTEM, effect=effect)
    elif state.dead and rng.random() < 0.5:
        case.tell(RetryStep(step=next(iter(state.dead)), reason="again"), OLGA)
    else:
        case.tell(rng.choice((c.PauseWorkflow(reason="audit"), c.ResumeWorkflow(reason="done"))), OLGA)


def _decide(case: Case, rng: Random) -> None:
    """Somebody decides a question, about whatever version."""
    asked = [step for step in case.host.state.open.values() if step.number in case.document.approvals]
    if not asked:
        return
    step = rng.choice(asked)
    right = str(case.document.approvals[step.number].version)
    version = right if rng.random() < 0.9 else str(rng.randint(1, 9))
    outcome = "approved" if rng.random() < 0.85 else "rejected"
    told = c.AnswerStep(step=step.number, outcome=outcome, document_version=version, comment="because")
    case.tell(told, ANN if step.node in {"a", "early"} else CARL)


def content(data: bytes, fields: tuple[str, ...]) -> bytes:
    """The bytes of a version, the workflow's own field aside; of these fields alone, if some are named."""
    whole = {name: each for name, each in msgspec.json.decode(data).items() if name != "posting"}
    return _encode({name: each for name, each in whole.items() if not fields or name in fields})


def is_in_one_place(case: Case) -> None:
    """A document that stays in a state has that status, and nothing else is under way for it; its run ends with its life."""
    if case.host.state.is_terminal:
        assert case.document.status == "cancelled"
    elif any(node.startswith(("sys:state:", "sys:end")) for node in case.at):
        assert case.at in (["sys:end"], [f"sys:state:{case.document.status}"])


def check(case: Case) -> None:
    """Each approval that a gate used up was about the content that passed, and nothing became active without all of its approvals."""
    versions = {row.version: row.data for row in case.versions}
    current, asked, used, status = 0, dict[int, tuple[str, int]](), set[str](), "draft"
    for event in case.host.history:
        match event:
            case e.DocumentCreated() | e.DocumentChanged():
                current = event.version
            case e.StepStarted():
                asked[event.step] = (event.node, current)
            case e.ApprovalsApplied():
                used = {asked[step][0] for step in event.steps}
                for step in event.steps:
                    node, version = asked[step]
                    op = case.host.graph.nodes[node].op
                    assert isinstance(op, HumanOp)
                    assert content(versions[version], op.covers) == content(versions[current], op.covers)
            case e.TransitionRequested():
                used = set()
            case e.DocumentMoved():
                if event.transition in {"submit", "approve"}:
                    assert used == NEEDED[status] & case.host.graph.nodes.keys(), f"{event.transition} of a {status}"
                used, status = set(), event.status
            case _:
                pass


def check_voided(case: Case) -> None:
    """Nobody is asked again by an edit whose fields are what they were."""
    versions = {row.version: row.data for row in case.versions}
    current, asked = 0, dict[int, tuple[tuple[str, ...], int]]()
    for event in case.host.history:
        if isinstance(event, e.DocumentCreated | e.DocumentChanged):
            current = event.version
        elif isinstance(event, e.StepStarted) and isinstance(op := case.host.graph.nodes[event.node].op, HumanOp):
            asked[event.step] = (op.covers, current)
        elif isinstance(event, e.ApprovalsVoided) and event.fields:
            for fields, version in (asked[step] for step in event.steps):
                assert content(versions[version], fields) != content(versions[current], fields)


@pytest.mark.row("E-751", "E-750", "E-026", "E-402")
@pytest.mark.parametrize("seed", range(60))
def test_what_becomes_active_is_what_was_approved(seed: int) -> None:
    """Over random edits, amendments, decisions, rejections, recalls, timers, failures and pauses: nothing passes a gate that was not approved as it is."""
    rng = Random(seed)
    for _ in range(3):
        case = Case(graph(rng))
        for _act in acts(case, rng):
            is_in_one_place(case)
        check(case)
        check_voided(case)


def test_the_interleavings_meet_what_they_are_to_meet() -> None:
    """The runs above do reach active documents, void approvals and gates that have their slot gone through again."""
    met: set[str] = set()
    for seed in range(60):
        rng = Random(seed)
        case = Case(graph(rng))
        for _act in acts(case, rng):
            pass
        met |= {type(event).__name__ for event in case.host.history}
        met |= {f"{event.node} {event.outcome}" for event in case.host.history if isinstance(event, e.StepCompleted)}
        met |= {f"moved {event.status}" for event in case.host.history if isinstance(event, e.DocumentMoved)}
    wanted = {"moved active", "ApprovalsVoided", "ApprovalsApplied", "SlotRejected", "sys:gate:submit again"}
    wanted |= {"StepPaused", "WorkflowPaused", "WorkflowResumed", "TokenHeld"}
    assert wanted <= met
