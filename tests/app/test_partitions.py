"""Partitions: whoever names one finds nothing of another, by any call, and nothing tells it from what does not exist."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import msgspec
import pytest

from app.documents.acting import GIVEN, graph
from app.processes.acting import INPUT, published
from standfast import (
    Actor,
    Calls,
    CapabilityResolver,
    Decision,
    Fail,
    ForbiddenError,
    Message,
    Moment,
    NotFoundError,
    RequestContext,
    Run,
    Saga,
    Settings,
    StandfastError,
)
from standfast.app.api import namespaces
from standfast.app.api.namespaces import FutureCalls
from standfast.engine.common.interceptors import CallFacts, CallInterception, Interceptor
from standfast.features.runs.run_calls import FutureRun
from standfast.graph.definition import Definition
from standfast.kernel.actor import SYSTEM
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import AT_ONCE, QUICK, Live, Place
from support.recording import calls_by_subject
from support.samples import Act, Answer, Do, Doll, Noted, Notes, Puppet

ROOT = Actor(id="root", roles=frozenset({"approver", "finance"}), capabilities=frozenset({"*"}))


class Things(msgspec.Struct, frozen=True, kw_only=True):
    """Names of what is there, or of what nobody has."""

    run: InstanceId
    """Asks somebody."""
    process: InstanceId
    stuck: InstanceId
    """Has a dead letter."""
    ended: InstanceId
    outer: InstanceId
    """Has a child."""
    letter: int
    effect_letter: int
    undone: int
    """The letter of a compensation."""
    message: int
    key: str
    """Of an instance of a decider, and of a run."""
    document: str
    event: str
    notification: int
    session: str
    schedule: str
    batch: str

    @property
    def step(self) -> str:
        """The question of the run."""
        return f"{self.run}:1"


Call = Callable[[Calls, Things], object]
BEGIN = datetime(2030, 1, 1, tzinfo=UTC)

OF_ONE: dict[str, Call] = {
    "run.describe": lambda calls, on: calls.run(on.run).describe(),
    "run.steps": lambda calls, on: calls.run(on.run).steps(),
    "run.history": lambda calls, on: calls.run(on.run).history(),
    "run.audit": lambda calls, on: calls.run(on.run).audit(),
    "audit.of": lambda calls, on: calls.audit.of(on.run),
    "run.tasks": lambda calls, on: calls.run(on.run).tasks(),
    "run.diagram": lambda calls, on: calls.run(on.run).diagram(),
    "run.verify": lambda calls, on: calls.run(on.run).verify(),
    "run.why": lambda calls, on: calls.run(on.run).why(),
    "run.result": lambda calls, on: calls.run(on.ended).result(),
    "run.resume_requests": lambda calls, on: calls.run(on.run).resume_requests(),
    "run.resume_options": lambda calls, on: calls.run(on.run).resume_options(),
    "runs.state_at": lambda calls, on: calls.runs.state_at(on.run, 1),
    "run.fork_preview": lambda calls, on: calls.run(on.run).fork_preview(1),
    "runs.get": lambda calls, on: calls.runs.get(on.run),
    "runs.partition_of": lambda calls, on: calls.runs.partition_of(on.run),
    "processes.get": lambda calls, on: calls.processes.get(on.process),
    "processes.events": lambda calls, on: calls.processes.events(on.process),
    "documents.get": lambda calls, on: calls.documents.get("invoice", on.document),
    "documents.audit": lambda calls, on: calls.documents.audit("invoice", on.document),
    "documents.choices": lambda calls, on: calls.documents.choices("invoice", on.document),
    "documents.diff": lambda calls, on: calls.documents.diff("invoice", on.document, 1, 1),
    "documents.mutations": lambda calls, on: calls.documents.mutations("invoice", on.document),
    "documents.links": lambda calls, on: calls.documents.links("invoice", on.document),
    "documents.rounds": lambda calls, on: calls.documents.rounds("invoice", on.document),
    "documents.check_edit": lambda calls, on: calls.documents.check_edit("invoice", on.document, {"note": "x"}),
    "documents.notify_mutation": lambda calls, on: calls.documents.notify_mutation(
        "invoice", on.document, {"note": "x"}
    ),
    "documents.page": lambda calls, on: calls.documents.page("invoice", on.document),
    "documents.version": lambda calls, on: calls.documents.version("invoice", on.document, 1),
    "documents.versions": lambda calls, on: calls.documents.versions("invoice", on.document),
    "deciders.get": lambda calls, on: calls.deciders.get("puppet", on.key),
    "deciders.history": lambda calls, on: calls.deciders.history("puppet", on.key),
    "deciders.state": lambda calls, on: calls.deciders.state("puppet", on.key),
    "deciders.verify": lambda calls, on: calls.deciders.verify("puppet", on.key),
    "tasks.get": lambda calls, on: calls.tasks.get(on.step),
    "dead_letters.get": lambda calls, on: calls.dead_letters.get(on.letter),
    "events.get": lambda calls, on: calls.events.get(on.event),
    "instances.verify": lambda calls, on: calls.instances.verify(on.run),
    "schedules.get": lambda calls, on: calls.schedules.get(on.schedule),
    "schedules.fires": lambda calls, on: calls.schedules.fires(on.schedule),
    "schedules.next_times": lambda calls, on: calls.schedules.next_times(on.schedule),
    "batches.get": lambda calls, on: calls.batches.get(on.batch),
    "batches.items": lambda calls, on: calls.batches.items(on.batch),
    "notifications.mark_read": lambda calls, on: calls.notifications.mark_read(on.notification),
    "invariants.of": lambda calls, on: calls.invariants.of(calls.documents.get("invoice", on.document).instance),
    "invariants.repair": lambda calls, on: calls.invariants.repair(
        calls.documents.get("invoice", on.document).instance, reason="r"
    ),
    # From here on what is found is changed.
    "tasks.comment": lambda calls, on: calls.tasks.comment(on.step, "hm"),
    "tasks.ask": lambda calls, on: calls.tasks.ask(on.step, "why?"),
    "tasks.add_approver": lambda calls, on: calls.tasks.add_approver(on.step, "role:boss"),
    "tasks.escalate": lambda calls, on: calls.tasks.escalate(on.step),
    "tasks.claim": lambda calls, on: calls.tasks.claim(on.step),
    "tasks.release": lambda calls, on: calls.tasks.release(on.step),
    "tasks.delegate": lambda calls, on: calls.tasks.delegate(on.step, "bob"),
    "tasks.reassign": lambda calls, on: calls.tasks.reassign(on.step, "root", who="bob"),
    "tasks.abstain": lambda calls, on: calls.tasks.abstain(on.step),
    "tasks.approve": lambda calls, on: calls.tasks.approve(on.step),
    "tasks.reject": lambda calls, on: calls.tasks.reject(on.step),
    "tasks.decide": lambda calls, on: calls.tasks.decide(on.step, "confirmed"),
    "tasks.withdraw_decision": lambda calls, on: calls.tasks.withdraw_decision(on.step),
    "tasks.withdraw": lambda calls, on: calls.tasks.withdraw(on.step),
    "run.signal": lambda calls, on: calls.run(on.run).signal("x", command_id="c-1"),
    "run.pause": lambda calls, on: calls.run(on.run).pause(),
    "run.request_resume": lambda calls, on: calls.run(on.run).request_resume(),
    "run.resume": lambda calls, on: calls.run(on.run).resume(),
    "dead_letters.requeue": lambda calls, on: calls.dead_letters.requeue(on.letter),
    "run.retry": lambda calls, on: calls.run(on.stuck).retry(1, reason="r"),
    "run.reenqueue": lambda calls, on: calls.run(on.stuck).reenqueue(1, reason="r"),
    "run.skip": lambda calls, on: calls.run(on.run).skip(1, reason="r"),
    "run.complete_step": lambda calls, on: calls.run(on.run).complete_step(1, {}, reason="r"),
    "run.change_data": lambda calls, on: calls.run(on.run).change_data({"a": 1}, reason="r"),
    "run.cancel_branch": lambda calls, on: calls.run(on.run).cancel_branch("0/1.1", reason="r"),
    "run.move_back": lambda calls, on: calls.run(on.run).move_back(reason="r"),
    "run.fork": lambda calls, on: calls.run(on.run).fork(1, reason="r"),
    "processes.advance": lambda calls, on: calls.processes.advance(on.process, "approved"),
    "processes.resume": lambda calls, on: calls.processes.resume(on.process),
    "processes.cancel": lambda calls, on: calls.processes.cancel(on.process),
    "documents.redact": lambda calls, on: calls.documents.redact("invoice", on.document, reason="r"),
    "documents.mutate": lambda calls, on: calls.documents.mutate("invoice", on.document, {"total": 1}),
    "documents.transition": lambda calls, on: calls.documents.transition("invoice", on.document, "submit"),
    "documents.amend": lambda calls, on: calls.documents.amend("invoice", on.document, {"total": 2}, reason="r"),
    "inbox.bury": lambda calls, on: calls.inbox.bury(on.message),
    "dead_letters.retry_compensation": lambda calls, on: calls.dead_letters.retry_compensation(on.undone),
    "dead_letters.discard": lambda calls, on: calls.dead_letters.discard(on.effect_letter),
    "sessions.end": lambda calls, on: calls.sessions.end(on.session),
    "run.fail": lambda calls, on: calls.run(on.run).fail("r"),
    "run.cancel": lambda calls, on: calls.run(on.run).cancel(),
    "run.abort": lambda calls, on: calls.run(on.run).abort(),
    "run.delete": lambda calls, on: calls.run(on.ended).delete(force=True),
    "instances.delete": lambda calls, on: calls.instances.delete(on.process, force=True),
    "schedules.pause": lambda calls, on: calls.schedules.pause(on.schedule),
    "schedules.resume": lambda calls, on: calls.schedules.resume(on.schedule),
    "schedules.trigger": lambda calls, on: calls.schedules.trigger(on.schedule),
    "schedules.backfill": lambda calls, on: calls.schedules.backfill(on.schedule, BEGIN, BEGIN),
    "schedules.stop_backfills": lambda calls, on: calls.schedules.stop_backfills(on.schedule),
    "schedules.delete": lambda calls, on: calls.schedules.delete(on.schedule),
    "batches.cancel": lambda calls, on: calls.batches.cancel(on.batch),
}
"""The calls that name something that belongs to an instance; those that only look come first."""

LISTS: dict[str, Call] = {
    "runs.list": lambda calls, _: calls.runs.list().items,
    "runs.list by key": lambda calls, on: calls.runs.list(key=on.key).items,
    "runs.list by status": lambda calls, _: calls.runs.list(status="dlq").items,
    "runs.list by definition": lambda calls, _: calls.runs.list(definition="ask").items,
    "runs.list of a partition": lambda calls, _: calls.runs.list(partition="north").items,
    "runs.list of a parent": lambda calls, on: calls.runs.list(parent=on.outer).items,
    "runs.paused": lambda calls, _: calls.runs.paused(),
    "runs.resumable": lambda calls, _: calls.runs.resumable(),
    "runs.stuck": lambda calls, _: calls.runs.stuck().items,
    "processes.list": lambda calls, _: calls.processes.list().items,
    "processes.expired": lambda calls, _: calls.processes.expired(before=datetime(9999, 1, 1, tzinfo=UTC)),
    "instances.sent": lambda calls, on: [
        each for each in calls.instances.sent([f"{on.run}:1"]) if each.state != "lost"
    ],
    "reports.of": lambda calls, _: list(range(calls.reports.of("ask").runs)),
    "tasks.decide_many": lambda calls, on: [
        each for each in calls.tasks.decide_many([on.step], "nothing") if "no instance" not in each.detail
    ],
    "documents.list": lambda calls, _: calls.documents.list("invoice").items,
    "documents.list by status": lambda calls, _: calls.documents.list("invoice", status="draft").items,
    "deciders.observations": lambda calls, _: calls.deciders.observations("puppet"),
    "deciders.transitions": lambda calls, _: calls.deciders.transitions("puppet"),
    "deciders.observed_machine": lambda calls, _: calls.deciders.observed_machine("puppet").transitions,
    "tasks.list": lambda calls, _: calls.tasks.list(),
    "tasks.list of mine": lambda calls, _: calls.tasks.list(mine=True),
    "tasks.list of a role": lambda calls, _: calls.tasks.list(role="approver"),
    "tasks.list of a definition": lambda calls, _: calls.tasks.list(definition="ask"),
    "tasks.list by key": lambda calls, on: calls.tasks.list(key=on.key),
    "tasks.list requested by me": lambda calls, _: calls.tasks.list(requested_by_me=True),
    "tasks.list overdue": lambda calls, _: calls.tasks.list(is_overdue=True),
    "tasks.counts": lambda calls, _: [
        each for each in (calls.tasks.counts(),) if each.by_role or each.own or each.overdue
    ],
    "tasks.decided": lambda calls, _: calls.tasks.decided(),
    "notifications.mine": lambda calls, _: calls.notifications.mine(),
    "notifications.count_unread": lambda calls, _: [each for each in (calls.notifications.count_unread(),) if each],
    "directory.open_tasks_of_inactive": lambda calls, _: calls.directory.open_tasks_of_inactive(),
    "dead_letters.list": lambda calls, _: calls.dead_letters.list(),
    "dead_letters.list of an instance": lambda calls, on: calls.dead_letters.list(instance=on.stuck),
    "dead_letters.count": lambda calls, _: [each for each in (calls.dead_letters.count(),) if each],
    "dead_letters.groups": lambda calls, _: calls.dead_letters.groups().items,
    "events.list": lambda calls, _: calls.events.list(),
    "instances.list": lambda calls, _: calls.instances.list(),
    "inbox.list": lambda calls, _: calls.inbox.list(),
    "sessions.list": lambda calls, _: calls.sessions.list(),
    "schedules.list": lambda calls, _: calls.schedules.list(),
    "batches.list": lambda calls, _: calls.batches.list(),
}
"""What lists something of instances: empty where there are none."""

MADE: dict[str, Call] = {
    "processes.start": lambda calls, on: calls.processes.start("orders.approval", INPUT, idempotency_key=on.key).id,
    "documents.create": lambda calls, on: calls.documents.create("invoice", GIVEN, id=on.document).instance,
    "documents.adopt": lambda calls, on: calls.documents.adopt("invoice", "A-1", GIVEN, status="draft").instance,
    "deciders.execute": lambda calls, on: calls.deciders.execute(Puppet, Do(on.key, "a")),
    "deciders.execute_dynamic": lambda calls, on: calls.deciders.execute_dynamic(
        "puppet", {"type": "Do", "workflow_id": on.key, "what": "a"}
    ),
    "deciders.submit": lambda calls, on: calls.deciders.submit(Puppet, Do(on.key, "a")),
    "events.publish": lambda calls, on: calls.events.publish("other", event_id=on.event),
    "schedules.put": lambda calls, on: calls.schedules.put(on.schedule, "ask", every=3600).instance,
    "batches.begin": lambda calls, on: calls.batches.begin("pause", [on.run], batch_id=on.batch).instance,
    "notifications.mark_all_read": lambda calls, _: calls.notifications.mark_all_read(),
    "sessions.open": lambda calls, _: calls.sessions.open(credential="test"),
}
"""What makes something of its own, whatever there is under the same name elsewhere; or touches nothing."""

REFUSED: dict[str, Callable[[Calls], object]] = {
    "pauses.get": lambda calls: calls.pauses.get(1),
    "pauses.list": lambda calls: calls.pauses.list(),
    "pauses.pause": lambda calls: calls.pauses.pause("ask"),
    "pauses.resume": lambda calls: calls.pauses.resume("ask"),
    "refusals.list": lambda calls: calls.refusals.list(),
    "audit.changes": lambda calls: calls.audit.changes(),
    "seals.seal": lambda calls: calls.seals.seal(),
    "seals.verify": lambda calls: calls.seals.verify(),
    "seals.holds": lambda calls: calls.seals.holds(1, "x"),
    "seals.head": lambda calls: calls.seals.head(),
}
"""What is about the whole tenant, and would tell of other partitions or touch them."""

OF_TENANT = {
    "directory", "charters", "contracts", "bodies", "workflows", "chains", "definitions", "keys", "refusals.note", "repeats", "processes.process_timeouts",
    "invariants.list", "invariants.workflows", "invariants.check", "invariants.patrol",
}  # fmt: skip
"""What belongs to no partition, or to the engine itself; keys have a test of their own, and invariants are looked at by whoever sees the rows."""


def public(cls: type) -> set[str]:
    """The calls of a subject."""
    return {name for name, _ in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}


def test_every_call_is_judged_here() -> None:
    """A new call is one of those that name something, list something, make something, are refused, or are about no partition."""
    there = {f"{name}.{call}" for name, cls in {**calls_by_subject(), "run": FutureRun}.items() for call in public(cls)}
    known = {name.partition(" ")[0] for name in (*OF_ONE, *LISTS, *MADE, *REFUSED)}
    assert known <= there
    assert {each for each in there - known if not {each, each.partition(".")[0]} & OF_TENANT} == set()
    assert public(FutureCalls) == {"start", "publish", "run", "acting"}


def choose(_state: Notes, command: Do, moment: Moment) -> Answer:
    """Asks for an effect, or tells another one, in the partition of its own."""
    decision = Decision.event(Noted(command.what))
    match command.what:
        case "begin":
            return decision.with_effect(Act("work"))
        case "tell":
            return decision.with_message(Message(decider="doll", command=Do(moment.key, "told")))
        case _:
            return decision


def broken() -> None:
    """A handler that gives up."""
    raise Fail("no")


def nothing() -> None:
    """A handler with nothing to do."""


def opened(place: Place, capabilities: CapabilityResolver | None = None) -> ManualEngine:
    """An engine that knows something of everything."""

    def work(_context: object, _effect: object) -> None:
        raise Fail("no stamps")

    engine = place.engine(Settings(observe_inputs=True), capabilities=capabilities)
    engine.register(Puppet(choose), work).register(Doll())
    engine.register(Saga("ask").human("sign", role="approver", due=60).build())
    engine.register(Saga("fragile", dlq=True).step("print", broken).build())
    engine.register(Saga("undo").step("book", nothing).on_failure("unbook", broken).step("pay", broken).build())
    engine.register(Saga("tell").notify("say", to="root", subject="hello").build())
    engine.register(Saga("rest").wait_for("wait", signal="go").build())
    engine.register(Saga("outer").call("inner", "ask").build())
    engine.register(Definition(graph=graph()))
    published(engine)
    return engine


def within(engine: ManualEngine, partition: str, actor: Actor = ROOT) -> Calls:
    """The calls of somebody in a partition, with every right."""
    return engine.acting(RequestContext(partition=partition, actor=actor))


def furnished(engine: ManualEngine) -> Things:
    """Something of everything, in the north."""
    north = within(engine, "north")
    for name in ("gone", "bob", "root"):
        engine.directory.put(name)
    run = north.start("ask", {}, key="k")
    run.signal("x", command_id="c-1")
    stuck, _, _, rest, outer = (north.start(name) for name in ("fragile", "undo", "tell", "rest", "outer"))
    process = north.processes.start("orders.approval", INPUT, idempotency_key="k")
    decided = north.start("ask")
    north.deciders.execute(Puppet, Do("k", "begin"))
    north.documents.create("invoice", GIVEN, id="d-1")
    event = north.events.publish("kept", "k", event_id="e-1", ttl=3600)
    engine.drain()
    north.tasks.reassign(f"{decided.id}:1", "gone", who="role:approver")
    engine.directory.deactivate("gone")
    answered = north.start("ask")
    engine.drain()
    north.tasks.decide(f"{answered.id}:1", "confirmed")
    rest.pause()
    engine.drain()
    engine.advance(minutes=5)
    assert outer.describe().status == "running"
    north.schedules.put("s-1", "rest", every=86_400)
    north.batches.begin("pause", [rest.id], batch_id="b-1")
    engine.drain()
    message = north.deciders.submit(Doll, Do("k", "wait"))
    letters = {each.source: each.id for each in north.dead_letters.list()}
    (notification,) = north.notifications.mine()
    return Things(
        run=run.id,
        process=process.id,
        stuck=stuck.id,
        ended=answered.id,
        outer=outer.id,
        letter=letters["step"],
        effect_letter=letters["effect"],
        undone=letters["compensation"],
        message=message,
        key="k",
        document="d-1",
        event=event,
        notification=notification.id,
        session=north.sessions.open(credential="test").session.id,
        schedule="s-1",
        batch="b-1",
    )


GHOST = InstanceId(UUID("01890000-0000-7000-8000-000000000000"))
GHOSTS = Things(
    run=GHOST,
    process=GHOST,
    stuck=GHOST,
    ended=GHOST,
    outer=GHOST,
    letter=987_654,
    effect_letter=987_654,
    undone=987_654,
    message=987_654,
    key="nobody",
    document="none",
    event="never",
    notification=987_654,
    session="0" * 32,
    schedule="unscheduled",
    batch="unbatched",
)


def masked(said: str, on: Things) -> str:
    """The words of an answer, without the names that it was asked about."""
    for value in sorted({str(each) for each in msgspec.structs.astuple(on)}, key=len, reverse=True):
        said = said.replace(f"'{value}'", "<it>").replace(f" {value}", " <it>").replace(f"/{value}", "/<it>")
    return said


def told(call: Call, calls: Calls, on: Things) -> tuple[str, str]:
    """What a call says: how it fails, or what comes of it."""
    try:
        return "", masked(f" {call(calls, on)!r}", on)
    except StandfastError as error:
        return f"{type(error).__name__} {error.code}", masked(f" {error}", on)


def standing(engine: ManualEngine) -> list[object]:
    """How everything stands, of all partitions."""
    listed = engine.instances.list(limit=1000)
    letters, messages = engine.dead_letters.list(), engine.inbox.list()
    unread = within(engine, "north").notifications.count_unread()
    return [
        {(each.id, each.version) for each in listed},
        [each.id for each in letters],
        [each.id for each in messages],
        unread,
    ]


@pytest.fixture
def scene(place: Place) -> tuple[ManualEngine, Things]:
    """An engine with something of everything in the north."""
    engine = opened(place)
    return engine, furnished(engine)


@pytest.mark.row("P-025", "P-063", "P-071", "P-127", "P-135", "C-42", "EH-11", "EC-25")
def test_nothing_of_another_partition_is_there(scene: tuple[ManualEngine, Things]) -> None:
    """By no call that names something, whoever asks: the answer is that of a name which nobody has, and nothing is changed."""
    engine, things = scene
    before = standing(engine)
    for actor in (ROOT, SYSTEM):
        south = within(engine, "south", actor)
        answers = {name: (told(call, south, things), told(call, south, GHOSTS)) for name, call in OF_ONE.items()}
        assert {name: pair for name, pair in answers.items() if pair[0] != pair[1]} == {}
        assert {name: pair[0] for name, pair in answers.items() if not pair[0][0].startswith("NotFoundError")} == {}
        lists = {name: call(south, things) for name, call in LISTS.items()}
        assert {name: shown for name, shown in lists.items() if shown} == {}
    assert standing(engine) == before
    # The same calls find all of it where it is: they ask for something.
    north = within(engine, "north")
    empty = {"runs.resumable", "runs.stuck"}
    assert {name for name, call in LISTS.items() if not call(north, things)} == empty
    lost = {name: told(call, north, things) for name, call in OF_ONE.items()}
    assert {name: said for name, said in lost.items() if said[0].startswith("NotFoundError")} == {}


@pytest.mark.row("P-071", "P-025")
def test_what_is_made_under_the_same_name_is_another_one(scene: tuple[ManualEngine, Things]) -> None:
    """Keys, ids of documents and events, and idempotency keys are those of a partition: what the north has under them stays as it is."""
    engine, things = scene
    before = {(each.id, each.version) for each in engine.instances.list(limit=1000)}
    north, south = within(engine, "north"), within(engine, "south")
    unread = north.notifications.count_unread()
    assert south.start("ask", {}, key="k").id != things.run
    for call in MADE.values():
        call(south, things)
    engine.drain()
    assert {(each.id, each.version) for each in engine.instances.list(limit=1000)} >= before - {
        (each.id, each.version) for each in engine.instances.list(definition="doll")
    }
    assert north.notifications.count_unread() == unread
    assert {each.partition for each in south.instances.list()} == {"south"}
    assert south.deciders.state(Puppet, "k") == ("a", "a", "a")
    assert south.events.get(things.event).event == "other"
    assert south.documents.get("invoice", things.document).instance != north.documents.get("invoice", "d-1").instance
    again = south.start("ask", {}, idempotency_key="i").id
    assert south.start("ask", {}, idempotency_key="i").id == again != north.start("ask", {}, idempotency_key="i").id
    (other,) = south.runs.list(key="k").items
    south.run(other.id).signal("x", command_id="c-1")
    assert south.run(other.id).history()[-1].event_type == "signal_received"


@pytest.mark.row("P-071")
def test_what_is_about_the_whole_tenant_is_refused(scene: tuple[ManualEngine, Things]) -> None:
    """To whoever names a partition; it would tell of the others, or touch them."""
    engine, _ = scene
    for call in REFUSED.values():
        with pytest.raises(ForbiddenError, match="bound to the partition 'south'; ask without a partition"):
            call(within(engine, "south"))
    assert engine.pauses.list() == []


@pytest.mark.row("P-025")
def test_who_names_no_partition_sees_all_of_them(scene: tuple[ManualEngine, Things]) -> None:
    """Lists show what is in all of them, and ids are found in any; keys alone are those of no partition."""
    engine, things = scene
    within(engine, "south").start("ask")
    whole = engine.acting(ROOT)
    assert {each.partition for each in whole.instances.list()} == {"north", "south"}
    (there,) = whole.runs.list(partition="south").items
    assert whole.runs.partition_of(there.id) == "south"
    assert whole.runs.partition_of(things.run) == "north"
    assert whole.tasks.get(things.step).status == "open"
    assert whole.dead_letters.get(things.letter).id == things.letter
    with pytest.raises(NotFoundError):
        whole.deciders.state(Puppet, "k")


@pytest.mark.row("P-025")
def test_what_follows_stays_in_the_partition(scene: tuple[ManualEngine, Things]) -> None:
    """Children, forks and those whom a decider tells something are where the one is that they come from, whoever asks for it."""
    engine, things = scene
    (outer,) = engine.runs.list(definition="outer").items
    (child,) = engine.runs.list(parent=outer.id).items
    fork = engine.acting(ROOT).run(things.run).fork(1, reason="again")
    assert {engine.runs.partition_of(each) for each in (child.id, fork.id)} == {"north"}
    north = within(engine, "north")
    north.deciders.execute(Puppet, Do("k", "tell"))
    engine.drain()
    assert north.deciders.state(Doll, "k") == ("wait", "told")


def listening(name: str) -> Definition:
    """A saga that waits for an event that is published for a key."""
    return Saga(name).wait_for_event("heard", "paid").build()


@pytest.mark.row("P-025", "P-071")
@pytest.mark.parametrize("waits_first", [True, False])
def test_an_event_reaches_those_of_its_partition(place: Place, *, waits_first: bool) -> None:
    """One that is published in a partition wakes those that wait there alone, now or later; one that is published in none wakes all."""
    engine = place.engine().register(listening("listen"))
    places = ("", "north", "south")

    def wait() -> dict[str, Run[object]]:
        runs = {each: within(engine, each).start("listen") for each in places}
        engine.drain()
        return runs

    def heard(published_in: str) -> set[str]:
        runs = wait() if waits_first else {}
        within(engine, published_in).publish("paid", "", ttl=0 if waits_first else 3600)
        engine.drain()
        runs = runs or wait()
        engine.drain()
        found = {name for name, run in runs.items() if run.describe().status == "completed"}
        for run in runs.values():
            run.abort() if run.describe().status != "completed" else None
        return found

    assert heard("north") == {"north"}
    assert heard("" if waits_first else "south") == (set(places) if waits_first else {"north", "south"})


@pytest.mark.row("P-025")
@pytest.mark.parametrize("waits_first", [True, False])
def test_an_event_for_one_taker_is_taken_in_its_partition(place: Place, *, waits_first: bool) -> None:
    """It is offered to those who may have it alone, and whoever takes one of no partition says so to that very event."""
    engine = place.engine().register(listening("listen"))
    publish = {each: within(engine, each).publish for each in ("", "south")}
    if not waits_first:
        publish["south"]("paid", "", event_id="e", match_one=True, ttl=3600)
        engine.drain()
    north = within(engine, "north").start("listen")
    engine.drain()
    if waits_first:
        publish["south"]("paid", "", event_id="e", match_one=True, ttl=3600)
        engine.drain()
    assert north.describe().status == "running"
    publish[""]("paid", "", event_id="e", match_one=True, ttl=3600)
    engine.drain()
    assert north.describe().status == "completed"
    assert engine.events.get("e").taken_by == north.id
    assert within(engine, "south").events.get("e").taken_by is None
    south = within(engine, "south").start("listen")
    engine.drain()
    assert within(engine, "south").events.get("e").taken_by == south.id


class Renaming(Interceptor):
    """Gives every call a trace of its own, as tracers do."""

    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    def call(self, facts: CallFacts) -> CallInterception:
        """Goes along itself."""
        del facts
        return self

    def ended(self, error: BaseException | None, /) -> None:
        """Nothing more."""


@pytest.mark.row("P-025", "P-071")
def test_what_a_handler_answers_and_what_gave_up_is_of_the_partition(place: Place) -> None:
    """Whoever goes along with the call; and timers and messages that gave up are found there, and nowhere else."""

    def fragile(_state: Notes, command: Do, moment: Moment) -> Answer:
        match command.what:
            case "boom":
                raise RuntimeError("boom")
            case "begin":
                decision = Decision.event(Noted("begin")).with_effect(Act("work"))
                return decision.with_timer_after(timedelta(minutes=1), Do(moment.key, "boom"))
            case _:
                return Decision.event(Noted(command.what))

    engine = place.engine(Settings(command_retry=AT_ONCE))
    engine.register(Puppet(fragile), lambda _context, _effect: Do("k", "done")).accompany(Renaming())
    north, south = within(engine, "north"), within(engine, "south")
    north.deciders.execute(Puppet, Do("k", "begin"))
    north.deciders.submit(Puppet, Do("k", "boom"))
    engine.advance(minutes=5)
    assert north.deciders.state(Puppet, "k") == ("begin", "done")
    assert {each.source for each in north.dead_letters.list()} == {"timer", "inbox"}
    assert south.dead_letters.list() == []


@pytest.mark.row("P-071")
def test_nobody_waits_for_a_run_of_another_partition(live: Live) -> None:
    """It is not there for them, at once, however well this process knows it; in its partition, and for all of the tenant, it is waited for."""
    unhurried = msgspec.structs.replace(QUICK, poll_interval=timedelta(minutes=1))  # Nobody is told by a later look.
    engine = live.engine(unhurried).register(Saga("rest").wait_for("wait", signal="go").build())
    north, south, whole = (engine.acting(RequestContext(partition=each, actor=ROOT)) for each in ("north", "south", ""))
    run = north.start("rest")
    waiting = [calls.futures.run(run.id).result() for calls in (north, whole)]
    for lost in (south.futures.run(run.id).result(), south.futures.run(run.id).cancel()):
        with pytest.raises(NotFoundError):
            lost.result(20)
    run.signal("go")
    for reply in waiting:
        reply.result(20)


def test_addresses_of_calls_are_made_at_one_place() -> None:
    """`CallContext.address` says the partition; an address that a call makes by itself would be one of all partitions."""
    package = Path(namespaces.__file__).parents[2]
    files = (path for room in ("app", "calls", "features") for path in (package / room).rglob("*.py"))
    makers = {str(path.relative_to(package)) for path in files if "Address(" in path.read_text()}
    assert makers == {
        "calls/context.py",
        "calls/people_in_runs.py",
    }  # Who has a say in a run is looked for in all partitions of its tenant.
