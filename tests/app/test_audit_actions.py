"""The audit names the command that a caller gave, whatever follows from it in the same commit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random

import pytest

from app.auditing import BODY, INVOICE
from app.processes.acting import asking, ends, process, published
from machine.generating import random_graph, random_limit
from machine.hosting import OLGA as OWN
from machine.hosting import Host
from machine.playing import Play, play_at_random
from standfast import Actor, Escalation, Saga
from standfast.features.documents.contract.library import ready_contract
from standfast.features.runs import audit_entries as acts
from standfast.kernel.codec.message_types import wire_name
from standfast.kernel.decision import Answer, Decision
from standfast.kernel.ids import InstanceId
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.events import Event, StepAnswered
from standfast.testing import ManualEngine
from support.campaigns import GRAPHS, SEED
from support.engines import Place

OLGA = Actor(id="olga", capabilities=frozenset({"execution:*", "task:*"}))
PAY = "payout:pay"


CONSEQUENCES: dict[str, Callable[[Saga], Saga]] = {
    "it ends": lambda saga: saga,
    "it waits": lambda saga: saga.wait_for("later", signal="later"),
    "it asks": lambda saga: saga.human("next", role="clerk"),
    "nobody can decide": lambda saga: saga.human("own", ask="user:ann", self_approval=False),
    "it fails": lambda saga: saga.step("pay", "pay", capability=PAY),
}
"""What a run does next."""


class Told:
    """A saga that ann starts, with what follows, and what Olga does to it."""

    def __init__(self, engine: ManualEngine, then: Callable[[Saga], Saga]) -> None:
        self.engine, self.then = engine, then
        self.olga = engine.acting(OLGA, reason="why")

    def run(self, first: Saga) -> InstanceId:
        """The run, as far as it gets by itself."""
        self.engine.register(self.then(first).build())
        found = self.engine.acting(Actor(id="ann")).start(first.build().name)
        self.engine.drain()
        return found.id


def _start(told: Told) -> InstanceId:
    told.engine.register(told.then(Saga("s").save_point("here")).build())
    return told.engine.acting(Actor(id="olga"), reason="why").start("s").id


def _waiting() -> Saga:
    return Saga("s").wait_for("go", signal="go")


def _signal(told: Told) -> InstanceId:
    run = told.run(_waiting())
    told.olga.run(run).signal("go")
    return run


def _pause(told: Told) -> InstanceId:
    run = told.run(_waiting())
    told.olga.run(run).pause()
    return run


def _resume(told: Told) -> InstanceId:
    run = told.run(_waiting())
    told.engine.run(run).pause()
    told.engine.run(run).signal("go")
    told.olga.run(run).resume()
    return run


def _fork(told: Told) -> InstanceId:
    run = told.run(_waiting().save_point("here"))
    told.engine.run(run).pause()
    told.engine.run(run).signal("go")
    signalled = told.engine.run(run).history()[-1].sequence
    told.engine.run(run).resume()
    return told.olga.run(run).fork(signalled, reason="why").id


def _decided(outcome: str) -> Callable[[Told], InstanceId]:
    def act(told: Told) -> InstanceId:
        run = told.run(Saga("s").human("q", ask="user:olga", on_rejected="fail"))
        told.olga.tasks.decide(f"{run}:1", outcome)
        return run

    return act


def _override(told: Told) -> InstanceId:
    run = told.run(Saga("s").human("q", ask="user:bob"))
    told.olga.run(run).resume(override=True)
    return run


def _paused_override(told: Told) -> InstanceId:
    run = told.run(Saga("s").human("q", ask="user:bob"))
    told.engine.run(run).pause()
    told.olga.run(run).resume(override=True)
    return run


def _escalate(told: Told) -> InstanceId:
    run = told.run(Saga("s").human("q", ask="user:bob", escalate=Escalation(timedelta(days=1), outcome="confirmed")))
    told.olga.tasks.escalate(f"{run}:1")
    return run


def _reassign(told: Told) -> InstanceId:
    """Somebody can decide what nobody could, and the run goes on."""
    run = told.run(Saga("s").human("q", ask="user:ann", self_approval=False))
    told.olga.tasks.add_approver(f"{run}:1", "bob")
    return run


def _skip(told: Told) -> InstanceId:
    run = told.run(_waiting())
    told.olga.run(run).skip(1, reason="why")
    return run


def _complete(told: Told) -> InstanceId:
    run = told.run(_waiting())
    told.olga.run(run).complete_step(1, {}, reason="why")
    return run


def _retry(told: Told) -> InstanceId:
    run = told.run(Saga("s", dlq=True).step("call", _broken, attempts=1))
    told.olga.run(run).retry(1, reason="why")
    return run


def _skip_dead(told: Told) -> InstanceId:
    run = told.run(Saga("s", dlq=True).step("call", _broken, attempts=1))
    told.olga.run(run).skip(1, reason="why")
    return run


def _broken() -> None:
    raise ValueError("no")


def _cancel_branch(told: Told) -> InstanceId:
    ways = (lambda it: it.wait_for("a", "a"), lambda it: it.step("b", lambda: None))
    run = told.run(Saga("s").fork("f", *ways).join("j"))
    told.olga.run(run).cancel_branch("0/1.1", reason="why")
    return run


LED: dict[str, Callable[[Told], InstanceId]] = {
    "start": _start,
    "fork": _fork,
    "signal go": _signal,
    "pause": _pause,
    "resume": _resume,
    "decide confirmed": _decided("confirmed"),
    "decide rejected": _decided("rejected"),
    "override": _override,
    "override ": _paused_override,
    "escalate": _escalate,
    "add approver": _reassign,
    "skip": _skip,
    "skip ": _skip_dead,
    "complete": _complete,
    "retry": _retry,
    "cancel branch": _cancel_branch,
    "cancel": lambda told: _then(told, lambda run: run.cancel()),
    "abort": lambda told: _then(told, lambda run: run.abort()),
    "fail": lambda told: _then(told, lambda run: run.fail("why")),
    "change data": lambda told: _then(told, lambda run: run.change_data({"a": 1}, reason="why")),
}
"""What Olga does, by what the audit calls it."""


def _then(told: Told, act: Callable[..., object]) -> InstanceId:
    run = told.run(_waiting())
    act(told.olga.run(run))
    return run


@pytest.mark.row("E-578", "E-580")
@pytest.mark.parametrize("consequence", CONSEQUENCES)
@pytest.mark.parametrize("action", LED)
def test_an_act_is_called_by_its_command(place: Place, action: str, consequence: str) -> None:
    """Whatever a command leads to in the same commit, the one entry of it is called by what its caller asked for."""
    engine = place.engine()
    run = LED[action](Told(engine, CONSEQUENCES[consequence]))
    (entry,) = [each for each in engine.audit.of(run) if each.actor == "olga"]
    assert (entry.action, entry.reason) == (action.strip(), "why")


def test_an_act_on_a_process_is_called_by_its_command(place: Place) -> None:
    """Starting one whose question nobody can decide is a start, and no pause; so is an event that leads there a decision."""
    engine = place.engine()
    steps = (
        {"id": "first", "type": "action"},
        {"id": "own", "type": "approval", "assignee": {"user": "ann"}, "self_approval": False},
    )
    text = process(*steps, *ends("done"), ways="first go own,own approved done")
    published(engine, text)
    ann = asking(engine, Actor(id="ann"))
    run = ann.processes.start("w", {}).id
    ann.processes.advance(run, "go")
    assert engine.processes.get(run).instance.status == "suspended"
    assert [each.action for each in engine.audit.of(run)] == ["start", "decide go"]


def test_an_act_on_a_document_is_called_by_its_command(place: Place) -> None:
    """Submitting one that nobody can approve is a request for the transition, and no pause."""
    engine = place.engine()
    ann = engine.acting(Actor(id="ann", capabilities=frozenset({"*"})), reason="please")
    engine.contracts.publish(ready_contract("invoice"))
    ann.bodies.publish(ann.bodies.save(BODY.replace("[{role: manager}, {user: mia}]", "[{user: ann}]")).id)
    made = ann.documents.create("invoice", INVOICE, id="I-1")
    ann.documents.transition("invoice", "I-1", "submit")
    engine.drain()
    assert engine.run(made.instance).describe().reason == "no_approver"
    assert [each.action for each in engine.audit.of(made.instance)] == ["create", "request submit"]


# -- at random

SHARES = 4
WORDS: dict[type[object], str] = {
    c.StartWorkflow: "start",
    c.AnswerStep: "decide",
    c.SendSignal: "signal",
    c.CancelWorkflow: "cancel",
    c.AbortWorkflow: "abort",
    c.RequeueStep: "requeue",
    c.PauseWorkflow: "pause",
    c.ResumeWorkflow: "resume",
    c.RetryCompensation: "retry compensation",
    c.WithdrawDecision: "withdraw decision",
    c.ClaimTask: "claim",
    c.ReleaseTask: "release",
    c.DelegateTask: "delegate",
    c.ReassignTask: "reassign",
    c.AddApprover: "add approver",
    c.CommentTask: "comment",
    c.PutHigher: "escalate",
    c.WithdrawTask: "withdraw",
}
"""What commands are called."""


class Listening(Host):
    """A host that tells what each command is called in the audit."""

    def tell(
        self, command: c.Command, actor: Actor = OWN, *, effect: int | None = None, timer: str | None = None
    ) -> Answer:
        """Decide a command, and look what an auditor sees of it."""
        known = len(self.history)
        answer = super().tell(command, actor, effect=effect, timer=timer)
        if isinstance(answer, Decision) and type(command) in WORDS:
            events = self.history[known:]
            expected = WORDS[type(command)]
            if any(isinstance(each, StepAnswered) and each.overridden for each in events):
                expected = "override"
            found = acts.word_of([(wire_name(type(each))[0], _plain(each)) for each in events])
            is_same = found is not None and (found[1] == expected or found[1].startswith(f"{expected} "))
            asked_back = isinstance(command, c.CommentTask) and command.is_question and found == (0, "ask back")
            assert is_same or asked_back, (command, found, events)
        return answer


def _plain(event: Event) -> dict[str, object]:
    return {name: getattr(event, name) for name in event.__struct_fields__}


@pytest.mark.row("E-578")
@pytest.mark.parametrize("share", range(SHARES))
def test_commands_of_random_schedules_are_called_by_their_names(share: int) -> None:
    """On random graphs, whatever the state and whatever follows, the first event that is an act itself tells the command."""
    for number in range(share, GRAPHS, SHARES):
        rng = Random(f"audit {SEED}/{number}")
        graph = random_graph(rng)
        play = Play(graph, random_limit(rng, graph))
        play.host.__class__ = Listening
        play_at_random(play, rng)


# -- whose, and why


@pytest.mark.row("E-578", "E-685")
def test_whoever_was_handed_a_question_decides_for_its_owner(place: Place) -> None:
    """A decision on a question that somebody delegated names both, as one by a delegation of the directory does."""
    engine = place.engine().register(Saga("s").human("q", ask="user:bob").build())
    run = engine.start("s")
    engine.drain()
    engine.acting("bob").tasks.delegate(f"{run.id}:1", "dora")
    engine.acting("dora").tasks.approve(f"{run.id}:1")
    entry = engine.audit.of(run.id)[-1]
    assert (entry.actor, entry.on_behalf_of, entry.action) == ("dora", "bob", "decide confirmed")


@pytest.mark.parametrize(
    ("said", "given", "expected"), [("", "closing", "closing"), ("own", "closing", "own"), ("own", "", "own")]
)
def test_a_batch_and_its_items_have_the_reason(place: Place, said: str, given: str, expected: str) -> None:
    """The reason of the call comes first, then that of whoever acts; the batch and each run that it works through say the same."""
    engine = place.engine().register(_waiting().build())
    run = engine.start("s")
    olga = engine.acting(Actor(id="olga", capabilities=frozenset({"*"})), reason=given)
    batch = olga.batches.begin("cancel", [run.id], reason=said)
    engine.drain()
    assert [(each.action, each.reason) for each in engine.audit.of(batch.instance)] == [("begin", expected)]
    assert [(each.action, each.reason) for each in engine.audit.of(run.id)][1:] == [("cancel", expected)]


# -- who paused it


def test_the_engine_pauses_what_nobody_wanted_to_wait(place: Place) -> None:
    """`why` names whoever asked for a pause; what follows from a start or an answer is the engine's own, since it happened."""
    engine = place.engine().register(Saga("s").human("q", ask="user:ann", self_approval=False).build())
    run = engine.acting("ann").start("s")
    engine.drain()
    assert engine.run(run.id).why().words.startswith("it has been paused by 'system'")
    engine.register(Saga("w").wait_for("go", signal="go").build())
    asked = engine.start("w")
    asking(engine, OLGA).run(asked.id).pause("look")
    assert asked.why().words.startswith(f"it has been paused by 'olga' since {place.clock.now()}")
