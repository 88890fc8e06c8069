"""Pauses, decided purely: what they hold, what goes on afterwards, and in which order."""

from __future__ import annotations

from datetime import timedelta

import pytest

from machine.hosting import NOW, Host
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph
from standfast.kernel.decision import Decision, Ignored, Rejection
from standfast.kernel.row_kinds.steps import StepOpened, TaskOpened
from standfast.machine.model import events as e
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.commands.timers import RESUME, command_of, step_timer
from standfast.machine.model.folds.pause_fold import MOST_TRIGGERS

HOUR = timedelta(hours=1)


def rules(kind: g.Kind = "rules") -> Host:
    """A run of rules that asks somebody, and has an hour for it."""
    graph = compile_graph(
        kind=kind,
        name="g",
        version="1",
        entry="ask",
        nodes=[g.Node(id="ask", op=g.HumanOp(), timeout_ms=3_600_000), g.Node(id="end", op=g.EndOp())],
        edges=[g.Edge(source="ask", target="end", on="confirmed")],
        policies=g.Policies(),
    )
    host = Host(graph)
    host.tell(c.StartWorkflow())
    return host


def forked(policies: g.Policies = g.Policies()) -> Host:  # noqa: B008 - it is frozen
    """Two branches, each with a call under way: steps 2 and 3."""
    once = g.RetryRule(max_calls=1)
    nodes = [
        g.Node(id="f", op=g.SplitOp()),
        *(g.Node(id=name, op=g.TaskOp(work=g.HandlerCall(handler=name, retry=once))) for name in "ab"),
        g.Node(id="j", op=g.JoinOp(split="f")),
    ]
    edges = [g.Edge(source="f", target=name, on=g.BRANCH) for name in "ab"]
    edges += [g.Edge(source=name, target="j") for name in "ab"]
    host = Host(
        compile_graph(kind="saga", name="g", version="1", entry="f", nodes=nodes, edges=edges, policies=policies)
    )
    host.tell(c.StartWorkflow())
    for call in host.calls.values():
        call.is_begun = True
    return host


def fail(host: Host, step: int) -> None:
    """The call of a step failed for good."""
    effect = next(number for number, call in host.calls.items() if call.body.step == step)
    host.tell(c.FailStep(step=step, error="no"), effect=effect)


def test_a_requeue_does_not_end_a_pause() -> None:
    """What somebody has paused goes on when he says so, whatever gave up before; a step that is requeued meanwhile waits for that."""
    host = forked(g.Policies(on_failure="dlq"))
    fail(host, 2)
    fail(host, 3)
    host.tell(c.RequeueStep(step=2))
    host.tell(c.CompleteStep(step=4), effect=next(iter(host.calls)))
    host.tell(c.PauseWorkflow())
    host.tell(c.ResumeWorkflow())
    assert (host.state.status, list(host.state.dead)) == ("running", [3])
    host.tell(c.PauseWorkflow())
    host.tell(c.RequeueStep(step=3))
    assert (host.state.status, host.calls) == ("paused", {})
    host.tell(c.ResumeWorkflow())
    assert [call.body.node for call in host.calls.values()] == ["b"]


def test_failures_of_several_branches_are_told_together() -> None:
    """One rollback follows from all that gave up while the run was paused."""
    host = forked()
    host.tell(c.PauseWorkflow())
    fail(host, 2)
    fail(host, 3)
    assert (host.state.status, host.state.rollback) == ("paused", None)
    host.tell(c.ResumeWorkflow())
    assert [type(each) for each in host.history].count(e.RollbackStarted) == 1
    assert (host.state.status, host.state.frozen) == ("failed", {})


def test_a_pause_takes_the_timers_away_and_the_resume_brings_them_back() -> None:
    """All that are set, each with its instant; what each of them brings follows from its key."""
    host = rules("saga")
    host.tell(c.PauseWorkflow(clock="stand_still"))
    assert (host.timers, host.state.pause is not None) == ({}, True)
    host.now = NOW + HOUR
    host.tell(c.ResumeWorkflow())
    assert host.timers == {step_timer(1): c.TimeOut(step=1)}
    assert host.due == {step_timer(1): NOW + 2 * HOUR}


@pytest.mark.parametrize("key", ["start", "grace", "deadline", "step:7"])
def test_every_timer_of_the_machine_follows_from_its_key(key: str) -> None:
    """A pause can set it again."""
    assert isinstance(command_of(key), c.BeginWorkflow | c.EndGrace | c.PassDeadline | c.TimeOut)


def test_the_end_of_a_pause_that_has_ended_is_no_news() -> None:
    """The timer of a pause may fire while somebody else ends it."""
    host = rules("saga")
    host.tell(c.PauseWorkflow(until=NOW + HOUR))
    command = host.timers[RESUME]
    host.tell(c.ResumeWorkflow())
    assert RESUME not in host.timers
    host.timers[RESUME] = command
    host.due[RESUME] = NOW
    assert isinstance(host.tell(command, timer=RESUME), Ignored)


@pytest.mark.row("R-118")
def test_a_pause_that_lasts_too_long_fails_the_run() -> None:
    """It undoes what it did, and says why; without a pause nothing happens."""
    host = rules("saga")
    assert isinstance(host.tell(c.ExpirePause()), Ignored)
    host.tell(c.PauseWorkflow())
    host.tell(c.ExpirePause())
    assert (host.state.status, host.state.error) == ("failed", "pause timeout")


@pytest.mark.row("R-103")
def test_a_decision_can_leave_the_rest_to_others() -> None:
    """A run of rules then waits, paused because it is approved, until somebody lets it go on; other kinds go on by themselves."""
    host = rules()
    host.tell(c.AnswerStep(step=1, outcome="confirmed", holds=True))
    assert (host.state.status, host.state.reason) == ("paused", "approved")
    host.tell(c.ResumeWorkflow(trigger="approval", trigger_id="1"))
    assert host.state.status == "completed"
    other = rules("process")
    other.tell(c.AnswerStep(step=1, outcome="confirmed", holds=True))
    assert other.state.status == "completed"


@pytest.mark.row("R-063")
def test_a_manual_resume_goes_past_the_question_of_a_run_of_rules() -> None:
    """Nothing more needs to be said: such a run counts as paused while it asks. A time that is over does not do so."""
    host = rules()
    assert isinstance(host.tell(c.ResumeWorkflow(trigger="timeout")), Rejection)
    assert isinstance(host.tell(c.ResumeWorkflow(reason="urgent")), Decision)
    assert (host.state.status, host.state.decided[1]["comment"]) == ("completed", "urgent")


def test_only_so_many_triggers_are_remembered() -> None:
    """A run that is paused again and again for years does not grow by it."""
    host = rules("saga")
    for number in range(MOST_TRIGGERS + 5):
        host.tell(c.PauseWorkflow())
        host.tell(c.ResumeWorkflow(trigger_id=f"t{number}"))
    assert host.state.resumed is not None
    assert len(host.state.resumed.triggers) == MOST_TRIGGERS
    assert isinstance(host.tell(c.ResumeWorkflow(trigger_id=f"t{MOST_TRIGGERS + 4}")), Ignored)


def test_a_timer_that_is_set_while_paused_waits_too() -> None:
    """And one that is not wanted any more is not set again."""
    host = rules("saga")
    host.tell(c.PauseWorkflow())
    held = host.state.pause
    assert held is not None
    assert list(held.held) == [step_timer(1)]
    host.tell(c.AnswerStep(step=1, outcome="confirmed"))
    assert held.held == {}
    assert e.TimerHeld(key=step_timer(1)) in host.history


def beside(name: str, op: g.Op, compensation: g.HandlerCall | None = None) -> Host:
    """A node beside a call that is under way: steps 2 and 3."""
    nodes = [
        g.Node(id="f", op=g.SplitOp()),
        g.Node(id=name, op=op, compensation=compensation),
        g.Node(id="work", op=g.TaskOp(work=g.HandlerCall(handler="work", retry=g.RetryRule(max_calls=1)))),
        g.Node(id="j", op=g.JoinOp(split="f")),
    ]
    ways = [g.Edge(source="f", target=target, on=g.BRANCH) for target in (name, "work")]
    ways += [g.Edge(source=name, target="j", on=each) for each in op.answers or (g.OK,)]
    ways += [g.Edge(source="work", target="j")]
    host = Host(
        compile_graph(kind="saga", name="g", version="1", entry="f", nodes=nodes, edges=ways, policies=g.Policies())
    )
    host.tell(c.StartWorkflow())
    return host


def test_a_failure_that_was_held_is_undone_though_nothing_was_called() -> None:
    """What failed while the run was paused counts as any failure does: its own compensation is called first."""
    host = beside("child", g.CallOp(definition="child"), compensation=g.HandlerCall(handler="undo"))
    host.tell(c.CompleteStep(step=3), effect=next(iter(host.calls)))
    host.tell(c.PauseWorkflow())
    host.tell(c.EndChild(step=2, status="failed", error="no"))
    host.tell(c.ResumeWorkflow())
    assert [(call.body.node, call.body.is_compensation) for call in host.calls.values()] == [("child", True)]


def test_a_call_that_failed_in_a_pause_is_told_at_once() -> None:
    """The row of the step tells the error and the call, though nothing has followed from them yet."""
    host = forked()
    host.tell(c.PauseWorkflow())
    fail(host, 2)
    row = next(row for row in host.rows if isinstance(row, StepOpened) and row.number == 2)
    assert (row.status, row.error, row.attempts) == ("running", "no", 1)


def test_a_child_that_is_undone_while_its_failure_is_held_is_heard() -> None:
    """Nobody waits for it to be undone once the run goes on."""
    host = beside("child", g.CallOp(definition="child"))
    host.tell(c.CompleteStep(step=3), effect=next(iter(host.calls)))
    host.tell(c.PauseWorkflow())
    host.tell(c.EndChild(step=2, status="failed", error="no", reason="compensation_failed"))
    host.tell(c.EndChild(step=2, status="failed"))
    host.tell(c.ResumeWorkflow())
    assert (host.state.status, host.state.reason) == ("failed", "")


def test_nobody_goes_past_a_question_that_has_ended_with_the_pause() -> None:
    """A failure that was held has the run turn back; the resume that wanted to go past a question is carried out as far as it can be."""
    host = beside("ask", g.HumanOp())
    for call in host.calls.values():
        call.is_begun = True
    host.tell(c.PauseWorkflow())
    fail(host, 3)
    assert isinstance(host.tell(c.ResumeWorkflow(override=True)), Decision)
    rows = [(row.status, row.outcome) for row in host.rows if isinstance(row, TaskOpened)]
    assert (host.state.status, rows) == ("failed", [("cancelled", "cancelled")])
