"""Dry runs of sagas, processes and rules: the way that they tell is the way that a run really takes, and nothing is left behind."""

from __future__ import annotations

from datetime import timedelta
from importlib import resources
from typing import Any, TypedDict

import pytest

from app.rules.test_runs import QUIET
from app.sagas.acting import BROKEN, Stage
from standfast import (
    Actor,
    Definition,
    NotFoundError,
    PayloadError,
    Saga,
    Settings,
    load_processes,
    load_rules,
    task,
)
from standfast.features.definitions.dry_run import tried_out
from standfast.features.simulation import DryRun
from standfast.testing import ManualEngine
from support.engines import Place


class Parcel(TypedDict):
    """What a typed saga takes."""

    weight: int


ROLES = frozenset({"finance", "manager", "approver", "treasury", "sales_manager", "boss"})
EVERYBODY = Actor(id="eve", roles=ROLES, capabilities=frozenset({"*"}))


def template(name: str) -> Definition:
    """A process that comes with the package."""
    text = (resources.files("standfast.cli.develop.samples") / f"{name}.yaml").read_bytes()
    return load_processes(text, name=name)[0]


def order() -> Definition:
    """A saga with all that a run can wait for: people, a signal, an event, another workflow, and time."""
    return (
        Saga("order")
        .step("reserve", "reserve", undo="release")
        .human("agree", role="boss", timeout=timedelta(days=2), on_timeout=lambda late: late.step("remind", "remind"))
        .condition("small", "total < 100", otherwise=lambda big: big.step("audit", "audit"))
        .parallel("prepare", task("label", "label"), task("invoice", "invoice"))
        .join("prepared")
        .wait("cool_down", timedelta(days=3))
        .wait_for("paid", "payment", timeout=timedelta(days=5))
        .call("ship", "shipping")
        .step("thank", "thank", undo="apologise")
        .build()
    )


def delivery() -> Definition:
    """A saga that starts another workflow, and says itself how that is undone."""
    return (
        Saga("delivery")
        .step("reserve", "reserve", undo="release")
        .call("ship", "shipping")
        .on_failure("call back", "call_back")
        .step("thank", "thank")
        .build()
    )


AGREED = {"agree": "confirmed", "correct": "submitted", "look_into": "retried"}
"""The words by which steps are left where everybody agrees, if that is not `approved`."""
CASES: dict[str, tuple[Definition, dict[str, Any], dict[str, Any]]] = {
    "a saga": (order(), {"total": 40}, {"answers": {"reserve": {"place": 7}}, "events": {"payment": {"paid": 40}}}),
    "a large order": (order(), {"total": 400}, {}),
    "the last step fails": (order(), {"total": 40}, {"failing": ["thank"]}),
    "the other workflow fails": (order(), {"total": 40}, {"failing": ["shipping"]}),
    "the other workflow has undone itself": (delivery(), {}, {"failing": ["shipping"]}),
    "the other workflow is undone": (delivery(), {}, {"failing": ["thank"]}),
    "undoing fails": (order(), {"total": 40}, {"failing": ["thank", "release"]}),
    "nobody answers": (order(), {"total": 40}, {"unanswered": ["agree"]}),
    "no payment": (order(), {"total": 40}, {"unanswered": ["payment"]}),
    "a rejection": (order(), {"total": 40}, {"decisions": {"agree": "rejected"}}),
    "what is not there": (order(), {}, {}),
    "a process": (template("settlement"), {"batch_id": "b"}, {"answers": {"settlement.compute": {"total_cents": 5}}}),
    "the bank is silent": (
        template("settlement"),
        {},
        {"unanswered": ["bank.settled"], "decisions": {"look_into": "given_up"}},
    ),
    "sent back twice": (
        template("expense_approval"),
        {"total_cents": 90_000, "report_id": "r"},
        {
            "decisions": {"manager_review": ["returned", "returned"], "finance_review": "rejected"},
            "forms": {"correct": {"total_cents": 70_000}},
        },
    ),
    "all is late": (template("expense_approval"), {}, {"unanswered": ["manager_review", "late_review"]}),
    "rules": (load_rules(QUIET), {"order": {"total": 15_000}}, {}),
    "rules that allow": (load_rules(QUIET), {"order": {"total": 5}}, {}),
    "rules and a no": (
        load_rules(QUIET),
        {"order": {"total": 15_000}},
        {"decisions": {"require_approval": "rejected"}},
    ),
}
"""Workflows, what they begin with, and what is supposed."""


class Reality:
    """The same workflow on an engine, with people, handlers and a world that do as is supposed."""

    def __init__(self, engine: ManualEngine, definition: Definition, supposed: dict[str, Any]) -> None:
        self.engine, self._definition, self._supposed = engine, definition, supposed
        self._counts: dict[str, int] = {}
        stage = Stage()
        answers, failing = supposed.get("answers", {}), supposed.get("failing", ())
        engine.register(Saga("shipping").step("pack", "pack").build()).register(definition)
        for name in {*definition.graph.handlers, "pack"}:
            fails = name in failing or (name == "pack" and "shipping" in failing)
            engine.handle(name, stage.does(name, BROKEN if fails else answers.get(name, {})))

    def play(self, given: dict[str, Any]) -> Any:
        """Start a run, and do what is supposed until nothing happens any more."""
        run = self.engine.acting(EVERYBODY).start(self._definition.name, given)
        for _ in range(200):
            self.engine.drain()
            if run.describe().ended_at is not None or not self._go_on(run):
                break
        return run

    def _go_on(self, run: Any) -> bool:
        silent = self._supposed.get("unanswered", ())
        task = next((each for each in run.tasks() if each.status == "open" and each.name not in silent), None)
        if task is not None:
            self._decide(task)
            return True
        awaited = [each.waits_for for each in run.why().reasons if each.waits_for]
        wanted = next((each for each in awaited if each in {"payment", "bank.settled"} and each not in silent), None)
        if wanted is not None:
            run.signal(wanted, self._supposed.get("events", {}).get(wanted))
            return True
        due = self.engine.runtime.next_due()
        if due is None:
            return False
        self.engine.advance(max(due - self.engine.clock.now(), timedelta()))
        return True

    def _decide(self, task: Any) -> None:
        said = self._supposed.get("decisions", {}).get(task.name, [])
        turn = self._counts[task.name] = self._counts.get(task.name, 0) + 1
        in_turn = [said] * turn if isinstance(said, str) else said
        outcome = in_turn[turn - 1] if turn <= len(in_turn) else AGREED.get(task.name, "approved")
        data = self._supposed.get("forms", {}).get(task.name)
        self.engine.acting(EVERYBODY).tasks.decide(task.step_id, outcome, data=data, comment="as supposed")


def way(run: Any) -> list[str]:
    """The steps of a run as its history tells them, and those that undo."""
    told = run.history()
    names = {each.step_number: each.step_name for each in told if each.step_number}
    found = []
    for each in told:
        data = each.data
        if each.event_type in {"step_started", "step_entered"} or (
            each.event_type == "step_completed" and data.get("node")
        ):
            found.append(str(data["node"]))
        elif each.event_type == "compensation_started":
            found.append(f"undo {names[data['of']]}")
    return found


def without_decisions(data: dict[str, Any]) -> dict[str, Any]:
    """What a run came to but for who decided when, in which words, and what another workflow made of that."""
    said = {name: value for name, value in data.items() if not (isinstance(value, dict) and "decided_by" in value)}
    return {name: value for name, value in said.items() if not name.endswith("_by") and name != "ship"}


def told_way(found: DryRun) -> list[str]:
    """The same as a dry run tells it."""
    return [f"undo {each.node}" if each.is_undoing else each.node for each in found.trail]


@pytest.mark.parametrize("name", CASES)
def test_a_dry_run_tells_the_way_that_a_run_takes(place: Place, name: str) -> None:
    """The same nodes in the same order, the same end, outcome and data; and after a dry run there is nothing more than before."""
    definition, given, supposed = CASES[name]
    engine = place.engine()
    reality = Reality(engine, definition, supposed)
    found = engine.definitions.dry_run(definition.name, given, **supposed)
    assert engine.runs.list().items == []
    run = reality.play(given)
    real = run.describe()
    assert told_way(found) == way(run)
    assert (found.status, found.outcome) == (real.status, real.outcome)
    if real.status == "completed":
        assert without_decisions(found.data) == without_decisions(real.result)


def test_what_is_supposed_is_marked_and_told_for_people(place: Place) -> None:
    """Whoever reads a dry run sees what was said and what was only assumed, who would be asked, what undone, and how long it takes at least."""
    engine = place.engine().register(Saga("shipping").step("pack", "pack").build()).register(order())
    found = engine.definitions.dry_run(
        "order", {"total": 40}, decisions={"agree": "confirmed"}, failing=["thank"], answers={"label": {}}
    )
    lines = found.to_text().splitlines()
    assert lines[0] == "? reserve → ok  (calls reserve)"
    assert lines[1] == "  agree → confirmed  (asks role:boss)"
    assert "  label → ok  (calls label)" in lines
    assert "? cool_down → ok  (waits 3 d)" in lines
    assert "? ship → ok  (starts shipping)" in lines
    assert "  thank → error  (thank fails, as was said)" in lines
    assert "? undo reserve → undone  (calls release)" in lines
    assert lines[-1].startswith("ended: the run is failed; ")
    by_step = engine.definitions.dry_run("order", {"total": 40}, failing=["ship", "reserve"])
    assert (by_step.ends, by_step.trail[0].outcome, by_step.trail[0].note) == (
        "ended",
        "error",
        "reserve fails, as was said",
    )
    waited = next(each for each in found.trail if each.node == "paid")
    assert waited.after == timedelta(days=3).total_seconds()


def looping() -> Definition:
    """A process that goes back for as long as it is approved."""
    text = """
domain: rounds
workflows:
  - id: rounds.go
    version: 1
    initial_step: ask
    steps:
      - {id: ask, type: approval, assignee: {role: boss}}
      - {id: done, type: terminal, outcome: done}
    transitions:
      - {from: ask, event: approved, to: ask}
      - {from: ask, event: rejected, to: done}
"""
    return load_processes(text)[0]


def test_what_never_ends_is_told_and_not_waited_for(place: Place) -> None:
    """A dry run of a workflow that goes round, or that waits for what nothing brings, comes back and says why."""
    matched = Saga("matched").wait_for_event("paid", "payment", key="id", match="event.total > 5").build()
    engine = place.engine().register(looping()).register(matched)
    round_ = engine.definitions.dry_run("rounds.go")
    assert (round_.ends, round_.status) == ("endless", "active")
    assert "'ask' is come to 100 times" in round_.reason
    out = engine.definitions.dry_run("rounds.go", decisions={"ask": ["approved", "approved", "rejected"]})
    assert (out.ends, out.outcome, len(out.trail)) == ("ended", "done", 4)
    alone = engine.definitions.dry_run("rounds.go", unanswered=["ask"])
    assert (alone.ends, alone.reason) == ("waits", "nothing that is known brings it on")
    little = engine.definitions.dry_run("matched", {"id": "1"}, events={"payment": {"total": 5}})
    assert (little.ends, little.status) == ("waits", "running")
    assert "say by `events` what it brings" in little.reason
    enough = engine.definitions.dry_run("matched", {"id": "1"}, events={"payment": {"total": 6}})
    assert (enough.ends, enough.data["paid"]) == ("ended", {"total": 6})


@pytest.mark.parametrize(
    ("supposed", "told"),
    [
        ({"decisions": {"agre": "confirmed"}}, "did you mean 'agree'?"),
        ({"decisions": {"agree": "confirmd"}}, "did you mean 'confirmed'?"),
        ({"decisions": {"agree": 5}}, "an outcome, or a list of them"),
        ({"decisions": ["agree"]}, "given by name"),
        ({"forms": {"reserve": {}}}, "asks nobody at 'reserve'"),
        ({"answers": {"charge": {}}}, "calls no 'charge'"),
        ({"answers": {"agree": {}}}, "calls no 'agree'"),
        ({"failing": "thank"}, "a list of names"),
        ({"failing": ["thanks"]}, "did you mean 'thank'?"),
        ({"events": {"paiment": {}}}, "did you mean 'payment'?"),
        ({"unanswered": ["reserve"]}, "waits at no 'reserve'"),
        ({"unanswered": [5]}, "a list of names"),
        ({"answers": {"thank": object()}}, "cannot be stored"),
    ],
)
def test_what_the_workflow_does_not_have_cannot_be_supposed(supposed: dict[str, Any], told: str) -> None:
    """A name that is misspelt would silently suppose nothing: it is refused, with what there is."""
    with pytest.raises(PayloadError) as caught:
        tried_out(order().graph, {}, supposed, actor=EVERYBODY, settings=Settings())
    assert told in str(caught.value)


def test_only_what_a_tenant_sees_can_be_tried_out(place: Place) -> None:
    """A workflow of another tenant is none, files need not be published, documents have a call of their own, and a start that a run would refuse is refused."""
    engine = place.engine()
    acme = engine.as_tenant("acme")
    acme.definitions.publish(looping())
    assert acme.definitions.dry_run("rounds.go", decisions={"ask": "rejected"}).outcome == "done"
    with pytest.raises(NotFoundError):
        engine.as_tenant("other").definitions.dry_run("rounds.go")
    text = (resources.files("standfast.cli.develop.samples") / "settlement.yaml").read_text()
    played = engine.as_tenant("other").definitions.dry_run_file(
        text, failing=["settlement.pay_out"], unanswered=["approve"]
    )
    assert (played.ends, played.outcome) == ("ended", "overdue")
    with pytest.raises(NotFoundError, match=r"finance\.settlement"):
        engine.definitions.dry_run_file(text, workflow="finance.settlment")
    with pytest.raises(PayloadError, match="only the engine sets"):
        engine.definitions.dry_run_file(text, {"_last_error": 1})
    typed = Saga("typed").step("pack", "pack").build().typed(Parcel, dict)
    engine.register(typed)
    assert engine.definitions.dry_run(typed, {"weight": 5}).ends == "ended"
    with pytest.raises(PayloadError, match="is not a Parcel"):
        engine.definitions.dry_run(typed, {"weight": "heavy"})
