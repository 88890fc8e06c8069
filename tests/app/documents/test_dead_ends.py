"""No state of a document is a dead end: what was denied is asked for again, what failed is corrected and retried, and `why` says only that."""

from __future__ import annotations

from typing import Any

import pytest

from app.honesty import CONTRACT, POOR
from standfast import Actor, Fail, RejectedError, RequestContext
from standfast.testing import ManualEngine
from support.engines import Place

TENANT = "acme"
STAMP = "{id: s, type: action, action: invoice.stamp, payload: {gl_ref: \"'X'\"}}"
MAY = (*POOR, "invoice.approve")


class Office:
    """Invoices with a body, and the people around them."""

    def __init__(self, engine: ManualEngine, slots: str) -> None:
        self.engine = engine
        engine.contracts.publish(CONTRACT)
        draft = self.calls.bodies.save("base: {entity_type: invoice, envelope_version: 1}\nslots:\n" + slots)
        assert not draft.problems, draft.problems
        self.calls.bodies.publish(draft.id)

    @property
    def calls(self) -> Any:
        """The calls of the engine itself."""
        return self.engine.as_tenant(TENANT)

    def who(self, name: str, *capabilities: str) -> Any:
        """The calls of somebody."""
        actor = Actor(id=name, capabilities=frozenset(capabilities))
        return self.engine.acting(RequestContext(tenant=TENANT, actor=actor))

    def create(self, *, submits: bool = True, **data: object) -> None:
        """An invoice of ann's, who may do little."""
        ann = self.who("ann", *POOR)
        ann.documents.create("invoice", {"number": "A-1", **data}, id="I1")
        if submits:
            self.ask("submit", ann)

    def ask(self, transition: str, by: Any) -> None:
        """Somebody asks for a transition."""
        by.documents.transition("invoice", "I1", transition)
        self.engine.drain()

    @property
    def document(self) -> Any:
        """The invoice as it is."""
        return self.calls.documents.get("invoice", "I1")

    @property
    def run(self) -> Any:
        """Its run."""
        return self.calls.run(self.document.instance)

    def failed(self) -> int:
        """The number of the step that gave up."""
        (letter,) = self.calls.dead_letters.list(instance=self.document.instance)
        return int(letter.number)

    def remedies(self) -> list[tuple[str, str]]:
        """The calls that `why` recommends."""
        return [(each.call, each.name) for reason in self.run.why().reasons for each in reason.remedies]


def in_slot(slot: str, *nodes: str, edges: str = "") -> str:
    """A body of one slot."""
    told = "".join(f"      - {each}\n" for each in nodes)
    return f'  "slot:{slot}":\n    exit: join\n    nodes:\n{told}    edges: [{edges}]\n'


def refused(call: Any) -> str:
    """The code that a call is refused with."""
    with pytest.raises(RejectedError) as raised:
        call()
    return raised.value.reason


# -- denied


@pytest.mark.row("E-572")
@pytest.mark.parametrize("who", ["ann", "rich"])
def test_what_was_denied_is_asked_for_again(place: Place, who: str) -> None:
    """Once somebody may do what a policy gate denied, they ask for the transition again, and it goes on where it stood, in their name."""
    office = Office(place.engine(), in_slot("draft_to_submit", STAMP))
    office.create()
    assert (office.document.run_status, office.document.status) == ("paused", "draft")
    assert ("documents.transition", "submit") in office.remedies()
    office.ask("submit", office.who(who, "invoice.*"))
    assert (office.document.status, office.document.data["gl_ref"]) == ("submitted", "X")
    assert office.calls.dead_letters.list() == []
    (line,) = [each for each in office.calls.documents.mutations("invoice", "I1") if each.action == "stamp"]
    assert line.actor == who


def test_who_may_not_either_is_denied_again(place: Place) -> None:
    """Asking again is no way past a gate: it looks at whoever asks now."""
    office = Office(place.engine(), in_slot("draft_to_submit", STAMP))
    office.create()
    office.ask("submit", office.who("bob", *POOR))
    assert (office.document.status, office.document.run_status) == ("draft", "paused")
    assert "'bob' may not do 'stamp'" in office.run.why().words


@pytest.mark.row("E-572")
@pytest.mark.parametrize(("name", "capabilities", "is_done"), [("olga", "*", True), ("otto", "execution:*", False)])
def test_behind_the_gate_an_operator_who_may_takes_it_over(
    place: Place,
    name: str,
    capabilities: str,
    is_done: bool,  # noqa: FBT001 - a case of a table
) -> None:
    """Where no transition can be asked for, a retry looks again: in the name of the operator if they may do it, else of whoever asked."""
    office = Office(place.engine(), in_slot("posting", STAMP))
    office.create()
    office.ask("approve", office.who("ann", *MAY))
    assert office.document.run_status == "paused"
    assert ("run.retry", "") in office.remedies()
    office.who(name, capabilities).run(office.document.instance).retry(office.failed(), reason="they may")
    office.engine.drain()
    assert (office.document.data.get("gl_ref") == "X", office.document.is_resting) == (is_done, is_done)


def test_the_engine_itself_takes_nothing_over(place: Place) -> None:
    """A retry without an actor looks again at whoever asked for the transition."""
    office = Office(place.engine(), in_slot("posting", STAMP))
    office.create()
    office.ask("approve", office.who("ann", *MAY))
    office.run.retry(office.failed(), reason="once more")
    office.engine.drain()
    assert office.document.run_status == "paused"


@pytest.mark.row("E-681")
def test_who_asked_before_does_not_approve_either(place: Place) -> None:
    """Somebody whose request was denied, and that another one took over, still decides nothing about the document."""
    ask = "{id: a, type: approval, approvers: [{user: bob}]}"
    office = Office(place.engine(), in_slot("draft_to_submit", STAMP, ask, edges="{from: s, to: a}"))
    office.create(submits=False)
    office.ask("submit", office.who("bob", *POOR))
    office.ask("submit", office.who("rich", "invoice.*"))
    assert office.run.describe().reason == "no_approver"
    (task,) = office.run.tasks()
    told = refused(lambda: office.who("bob").tasks.decide(task, "approved", document_version=task.document_version))
    assert told in {"self_approval", "not_allowed"}


def test_nobody_goes_past_a_gate(place: Place) -> None:
    """A gate that has denied is not skipped, completed, or given other data."""
    office = Office(place.engine(), in_slot("draft_to_submit", STAMP))
    office.create()
    run, step = office.run, office.failed()
    assert refused(lambda: run.skip(step, reason="x")) == "protected"
    assert refused(lambda: run.complete_step(step, {}, reason="x")) == "protected"
    assert refused(lambda: run.retry(step, reason="x", input={"memo": "x"})) == "protected"
    (letter,) = office.calls.dead_letters.list()
    assert refused(lambda: office.calls.dead_letters.requeue(letter, {"memo": "x"})) == "protected"


# -- failed


CONDITION = "{id: c, type: condition, expression: entity.memo == 'x'}"
APPROVAL = "{id: a, type: approval, approvers: [{user: fay}]}"
EITHER = '{from: c, to: out, on: "true"}, {from: c, to: a, on: "false"}'


def test_nobody_chooses_whether_a_document_is_approved(place: Place) -> None:
    """A condition that cannot be answered is no operator's to answer if an approval depends on it; the document is corrected, and it is retried."""
    office = Office(place.engine(), in_slot("draft_to_submit", CONDITION, APPROVAL, edges=EITHER))
    office.create()
    step = office.failed()
    assert refused(lambda: office.run.skip(step, reason="x")) == "protected"
    assert refused(lambda: office.run.skip(step, reason="x", outcome="true")) == "protected"
    told = office.run.why().reasons[0]
    assert told.remedy == (
        "correct the document by documents.mutate and retry the step, or ask for 'cancel' by documents.transition"
    )
    assert [(each.call, each.needs_mending) for each in told.remedies] == [
        ("run.retry", True),
        ("documents.mutate", False),
        ("documents.transition", False),
    ]
    office.who("ann", *POOR).documents.mutate("invoice", "I1", {"memo": "x"})
    assert office.run.why().reasons[0].remedy.startswith("retry the step, or ask")
    office.run.retry(step, reason="corrected")
    assert office.document.status == "submitted"


def test_a_condition_that_nothing_depends_on_is_skipped_by_an_outcome(place: Place) -> None:
    """Without one the refusal says which there are; `why` names them."""
    task = "{id: a, type: task, handler: check}"
    office = Office(place.engine(), in_slot("draft_to_submit", CONDITION, task, edges=EITHER))
    office.engine.handle("check", lambda: {"is_checked": True})
    office.create()
    step = office.failed()
    assert refused(lambda: office.run.skip(step, reason="x")) == "unknown_outcome"
    assert "or skip (by 'false' or 'true') the step" in office.run.why().reasons[0].remedy
    office.run.skip(step, reason="x", outcome="false")
    office.engine.drain()
    assert office.document.status == "submitted"


def test_a_failed_step_of_a_document_recommends_no_cancellation(place: Place) -> None:
    """A document ends by its lifecycle alone, so its transitions are named, and `cancel` of the run is not."""
    office = Office(place.engine(), in_slot("draft_to_submit", "{id: t, type: task, handler: check, attempts: 1}"))

    @office.engine.handler("check")
    def check() -> None:
        raise Fail("broken")

    office.create()
    told = office.run.why().reasons[0]
    assert told.remedy == "retry, skip or complete the step, or ask for 'cancel' by documents.transition"
    assert "run.cancel" not in [each.call for each in told.remedies]
    assert "cancel the workflow" not in office.run.describe().error


# -- at rest


def test_a_document_at_rest_waits_for_a_transition(place: Place) -> None:
    """A draft waits for no signal: `why` and `resume_options` name the transitions that would be accepted, here and at the end of a round."""
    office = Office(place.engine(), in_slot("approval", APPROVAL))
    office.create(submits=False)
    (told,) = office.run.why().reasons
    assert (told.kind, told.waits_for) == ("transition", "submit, cancel")
    assert "documents.transition('invoice', 'I1', 'submit')" in told.remedy
    assert [(each.action, each.choices) for each in office.run.resume_options()] == [
        ("transition", ("submit", "cancel"))
    ]
    office.ask("submit", office.who("ann", *POOR))
    office.ask("cancel", office.who("rich", "invoice.*"))
    assert [each.kind for each in office.run.why().reasons] == ["ended"]


def test_an_approval_of_a_document_offers_no_override(place: Place) -> None:
    """Nobody goes past an approval of a document, so nobody is told that they could."""
    office = Office(place.engine(), in_slot("approval", APPROVAL))
    office.create()
    options = [each.action for each in office.run.resume_options()]
    assert options == ["transition", "decide"]
    (task,) = office.run.tasks()
    assert refused(lambda: office.run.resume("x", override=True, task=task)) == "protected"


def test_a_question_that_nobody_can_decide_recommends_what_helps(place: Place) -> None:
    """The task is given to somebody else, or somebody is asked as well; the run of a document is not cancelled."""
    office = Office(place.engine(), in_slot("approval", "{id: a, type: approval, approvers: [{role: boss}]}"))
    office.calls.directory.put("gus")
    office.calls.directory.grant("gus", "clerk")
    office.create()
    office.engine.drain()
    told = office.run.why().reasons[0]
    assert (told.kind, office.run.describe().reason) == ("paused", "no_approver")
    calls = {each.call for each in told.remedies}
    assert {"tasks.add_approver", "run.resume", "documents.transition"} <= calls
    assert "run.cancel" not in calls
    (task,) = office.run.tasks()
    office.calls.tasks.add_approver(task, "gus", reason="he can")
    assert office.document.run_status == "running"
