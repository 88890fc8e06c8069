"""Every call that changes something, made by somebody with a name: what it needs to be there, and where its one entry is found."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from app.processes.acting import INPUT, published
from standfast import Actor, Calls, Fail, RequestContext, Run, Saga
from standfast.app.api.namespaces import FutureCalls
from standfast.features.deciders.projections import FutureProjections
from standfast.features.documents.contract.library import ready_contract
from standfast.features.operations.admin import FutureAdmin
from standfast.features.runs.run_calls import FutureRun
from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import InstanceQuery
from standfast.testing import ManualEngine
from support.inside import store_of
from support.recording import calls_by_subject
from support.samples import Add, Counter

ADM = Actor(id="adm", on_behalf_of="boss", roles=frozenset({"approver", "manager"}), capabilities=frozenset({"*"}))
"""Acts, and for somebody else."""
INVOICE: dict[str, object] = {"number": "R-1", "vendor_id": "V-1", "grand_total": 40_000}
BODY = """
base: {entity_type: invoice, envelope_version: 1}
name: One manager
slots:
  "slot:submitted_to_approved":
    nodes: [{id: manager, type: approval, approvers: [{role: manager}, {user: mia}], self_approval: false}]
"""
NEXT = datetime(2031, 1, 1, tzinfo=UTC)

Where = Literal["instance", "document", "change", "shared"]


class Found(NamedTuple):
    """Where the entry of an act is to be found."""

    where: Where
    instance: InstanceId | None = None
    document: str = ""
    prepared: int = 0
    """How many acts of the same actor, without the reason, came before it."""
    others: frozenset[str] = frozenset()
    """Actions that the act leads to on other instances, such as those that a batch works through."""


class World:
    """An engine with whatever acts need, made when it is asked for."""

    def __init__(self, engine: ManualEngine, why: str) -> None:
        self.engine = engine
        self.calls = engine.acting(RequestContext(actor=ADM, reason=why))
        self.own = engine.acting(RequestContext(actor=Actor(id="ann", capabilities=frozenset({"*"}))))
        """Whoever has made things ready; nothing of that is the act."""

    def run(self, saga: Saga, **given: object) -> Run[object]:
        """A run that ann has started."""
        self.engine.register(saga.build())
        started = self.own.start(saga.build().name, given)
        self.engine.drain()
        return self.engine.run(started.id)

    def asked(self, **options: object) -> tuple[InstanceId, str]:
        """A run with an open question, and the question."""
        whom = {} if "ask" in options else {"role": "approver"}
        found = self.run(Saga("ask").human("sign", **whom, **options))  # type: ignore[arg-type]
        return found.id, f"{found.id}:1"

    def stuck(self) -> Run[object]:
        """A run whose step gave up."""

        def broken() -> None:
            raise Fail("no")

        return self.run(Saga("fragile", dlq=True).step("print", broken).wait_for("x", signal="x"))

    def letter(self, source: str) -> int:
        """A dead letter of a sort."""
        return next(each.id for each in self.engine.dead_letters.list() if each.source == source)

    def invoice(self, *, submit: bool = False) -> tuple[InstanceId, str]:
        """A document of ann's, and its question if it is submitted."""
        self.engine.contracts.publish(ready_contract("invoice"))
        self.own.bodies.publish(self.own.bodies.save(BODY).id)
        found = self.own.documents.create("invoice", INVOICE, id="I-1")
        if submit:
            self.own.documents.transition("invoice", "I-1", "submit")
        self.engine.drain()
        return found.instance, next((each.step_id for each in self.engine.run(found.instance).tasks()), "")

    def people(self, *names: str) -> None:
        """Those whom the directory knows."""
        for name in names:
            self.own.directory.put(name)


Act = Callable[[World], Found]


def _of_run(act: Callable[[World, Calls], InstanceId]) -> Act:
    return lambda world: Found("instance", act(world, world.calls))


def _nothing(_world: World) -> None:
    """Nothing has to be there."""


def _of_change(
    act: Callable[[World, Calls], object], where: Where = "change", *, ready: Callable[[World], object] = _nothing
) -> Act:
    def done(world: World) -> Found:
        ready(world)
        act(world, world.calls)
        return Found(where)

    return done


def _of_task(act: Callable[[Calls, str], object], **options: object) -> Act:
    def done(world: World) -> Found:
        world.people("bob", "cat")
        run, task = world.asked(**options)
        act(world.calls, task)
        return Found("instance", run)

    return done


def _of_document(act: Callable[[World, Calls, str], object], *, submit: bool = False) -> Act:
    def done(world: World) -> Found:
        world.people("bob", "mia")
        instance, task = world.invoice(submit=submit)
        act(world, world.calls, task)
        return Found("document", instance, "I-1")

    return done


def _rested(world: World) -> Run[object]:
    return world.run(Saga("rest").wait_for("wait", signal="go"))


def _forked(world: World) -> Run[object]:
    way = {"a": lambda it: it.wait_for("a", "a"), "b": lambda it: it.wait_for("b", "b")}
    return world.run(Saga("two").fork("f", way["a"], way["b"]).join("j"))


def _saved(world: World) -> Run[object]:
    saga = Saga("safe").save_point("here").step("do", lambda: {"n": 1}).wait_for("wait", signal="go")
    return world.run(saga)


def _on_run(made: Callable[[World], Run[object]], act: Callable[[Run[object], str], object]) -> Act:
    def done(world: World) -> Found:
        found = made(world)
        act(world.calls.run(found.id), world.calls.request.reason)
        return Found("instance", found.id)

    return done


def _compensation(world: World, calls: Calls) -> InstanceId:
    def broken() -> None:
        raise Fail("no")

    saga = Saga("undo").step("book", lambda: None).on_failure("unbook", broken).step("pay", broken)
    found = world.run(saga)
    calls.dead_letters.retry_compensation(world.letter("compensation"))
    return found.id


def _process(world: World) -> InstanceId:
    published(world.engine)
    found = world.own.processes.start("orders.approval", INPUT)
    world.engine.drain()
    return found.id


def _resumed_process(world: World, calls: Calls) -> InstanceId:
    found = _process(world)
    world.own.run(found).pause("hold")
    calls.processes.resume(found)
    return found


def _schedule(act: Callable[[Calls], object]) -> Act:
    def done(world: World) -> Found:
        world.engine.register(Saga("rest").wait_for("wait", signal="go").build())
        made = world.own.schedules.put("s-1", "rest", every=3600)
        world.engine.drain()
        act(world.calls)
        return Found("instance", made.instance)

    return done


def _batch(world: World) -> Found:
    runs = [_rested(world).id]
    made = world.calls.batches.begin("pause", runs, batch_id="b-1")
    return Found("instance", made.instance, others=frozenset({"pause"}))


def _cancelled_batch(world: World, calls: Calls) -> InstanceId:
    runs = [_rested(world).id for _ in range(3)]
    made = world.own.batches.begin("pause", runs, per_second=0.01, batch_id="b-1")
    calls.batches.cancel("b-1")
    return made.instance


def _message(world: World, calls: Calls) -> None:
    world.engine.register(Counter())
    calls.inbox.bury(world.own.deciders.submit(Counter, Add("c-1", 1)))


def _effect_letter(world: World) -> int:
    def refuse(_notice: object) -> None:
        raise Fail("no")

    world.engine.channel("post", refuse)
    world.run(Saga("tell").notify("say", to="ann", subject="hello", channel="post"))
    return world.letter("effect")


def _draft(world: World) -> str:
    world.engine.contracts.publish(ready_contract("invoice"))
    return world.own.bodies.save(BODY).id


def _published_body(world: World) -> None:
    world.own.bodies.publish(_draft(world))


def _second_body(world: World) -> None:
    _published_body(world)
    world.own.bodies.publish(world.own.bodies.save(BODY.replace("id: manager", "id: boss")).id)


def _archived(world: World) -> None:
    world.own.definitions.publish(Saga("mine").step("a", "a").build())
    world.own.definitions.archive("mine", 1)


def _lifted(world: World, calls: Calls) -> None:
    _second_body(world)
    world.own.workflows.suspend("invoice", "2-org", "bad")
    calls.workflows.lift("invoice", "2-org", world.calls.request.reason)


def _moved(world: World) -> Found:
    _second_body(world)
    world.own.bodies.rollback("invoice", 1)
    made = world.own.documents.create("invoice", INVOICE, id="I-1")
    world.engine.drain()
    world.calls.workflows.move("invoice", made.workflow_version, "1-org", reason=world.calls.request.reason)
    return Found("document", made.instance, "I-1")


def _ended(world: World) -> InstanceId:
    return world.run(Saga("short").step("a", lambda: None)).id


def _bob(world: World) -> None:
    world.people("bob", "cat")


def _held(world: World) -> None:
    _rested(world)
    world.own.pauses.pause("rest")


def _in_maintenance(world: World) -> None:
    world.engine.admin.pause_processing()


FILE = """
domain: d
workflows:
  - id: p
    steps: [{id: r, type: approval, assignee: {role: fin}}, {id: y, type: terminal}]
    transitions: [{from: r, event: approved, to: y}]
"""

SAME: dict[str, str] = {
    "publish": "the short way of events.publish",
    "documents.notify_mutation": "the same command as documents.mutate",
    "bodies.recompile": "changes something only after another compiler; its entry is written by what publishes bodies",
    "contracts.recompile": "the same for contracts",
    "invariants.repair": "an event of the history with its actor and reason, where rows were wrong; see test_invariants",
    "projections.rebuild": "a read model of the application; see test_projections",
    "projections.drop": "the same",
}
"""Calls that change something and are shown by another one here."""

NOT_HUMAN: dict[str, str] = {
    "notifications.mark_read": "what somebody has read is nobody else's business",
    "notifications.mark_all_read": "the same",
    "sessions.open": "a sign-in: the session itself says who, when and with what",
    "processes.process_timeouts": "time, not a person",
    "charters.refresh": "what this process remembers",
    "refusals.note": "written by the server",
    "repeats.begin": "written by the server",
    "repeats.answer": "written by the server",
    "repeats.forget": "written by the server",
    "invariants.patrol": "looks, and remembers how far it looked",
    "admin.identify": "looks at a key",
    "admin.identify_session": "looks at a session",
    "run": "names a run",
    "acting": "names an actor",
}
"""Calls that write something and are no act of a person on anything."""


LOOKS = {
    "admin.backlog", "admin.given_up", "admin.has_keys", "admin.inbox_depth", "admin.incidents", "admin.missing_handlers", "admin.workers",
    "admin.written", "audit.changes", "audit.of", "batches.get", "batches.items", "batches.list", "bodies.check", "bodies.diff", "bodies.draft",
    "bodies.drafts", "bodies.dry_run", "bodies.export", "bodies.get", "bodies.list", "bodies.rules", "bodies.scenarios", "bodies.templates",
    "bodies.versions", "chains.get", "chains.list", "chains.versions", "charters.list", "charters.rules", "charters.settings", "contracts.check",
    "contracts.diff", "contracts.export", "contracts.get", "contracts.list", "contracts.versions", "dead_letters.count", "dead_letters.get",
    "dead_letters.groups", "dead_letters.list", "deciders.get", "deciders.history", "deciders.observations", "deciders.observed_machine",
    "deciders.state", "deciders.transitions", "deciders.verify", "definitions.archived", "definitions.data", "definitions.diagram",
    "definitions.diff", "definitions.diff_file", "definitions.dry_run", "definitions.dry_run_file", "definitions.get", "definitions.list",
    "definitions.pause_points", "definitions.validate", "definitions.validate_file", "directory.absences", "directory.changes",
    "directory.delegations", "directory.get", "directory.holders", "directory.list", "directory.manager_of", "directory.open_tasks_of_inactive",
    "directory.roles_of", "documents.audit", "documents.check_edit", "documents.choices", "documents.diff", "documents.get", "documents.links",
    "documents.list", "documents.mutations", "documents.page", "documents.rounds", "documents.version", "documents.versions", "events.get",
    "events.list", "inbox.list", "instances.list", "instances.sent", "instances.verify", "invariants.check", "invariants.list", "invariants.of",
    "invariants.workflows", "keys.get", "keys.list", "notifications.count_unread", "notifications.mine", "pauses.get", "pauses.list",
    "processes.events", "processes.expired", "processes.get", "processes.list", "projections.list", "refusals.list", "reports.of", "run.audit",
    "run.describe", "run.diagram", "run.fork_preview", "run.history", "run.result", "run.resume_options", "run.resume_requests", "run.steps",
    "run.tasks", "run.verify", "run.why", "runs.get", "runs.list", "runs.partition_of", "runs.paused", "runs.resumable", "runs.state_at",
    "runs.stuck", "schedules.fires", "schedules.get", "schedules.list", "schedules.next_times", "seals.head", "seals.holds", "seals.verify",
    "sessions.list", "tasks.counts", "tasks.decided", "tasks.get", "tasks.list", "workflows.suspensions",
}  # fmt: skip
"""Calls that only look."""


def calls_there() -> set[str]:
    """All calls of the engine, from the table that its faces are made of."""

    def public(cls: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}

    own = {"run": FutureRun, "admin": FutureAdmin, "projections": FutureProjections}
    there = {f"{name}.{call}" for name, cls in {**calls_by_subject(), **own}.items() for call in public(cls)}
    return there | public(FutureCalls)


# -- how some of them are made ready


def _instance(world: World) -> InstanceId:
    return world.engine.documents.get("invoice", "I-1").instance


def _version(world: World) -> int:
    return world.engine.documents.get("invoice", "I-1").version


def _started(world: World, calls: Calls) -> InstanceId:
    world.engine.register(Saga("rest").wait_for("wait", signal="go").build())
    return calls.start("rest").id


def _paused(world: World) -> Run[object]:
    found = _rested(world)
    world.own.run(found.id).pause("hold")
    return found


def _unbegun(world: World) -> Run[object]:
    world.engine.register(Saga("waits").step("call", "nobody has it").build())
    started = world.own.start("waits")
    world.engine.drain()
    return world.engine.run(started.id)


def _fork(world: World, calls: Calls) -> InstanceId:
    found = _rested(world)
    return calls.run(found.id).fork(len(found.history()), reason=calls.request.reason).id


def _withdrawn_decision(world: World) -> Found:
    world.people("bob")
    run, task = world.asked(ask=["role:approver", "user:bob"], agree="all")
    world.engine.acting(RequestContext(actor=ADM)).tasks.approve(task)
    world.calls.tasks.withdraw_decision(task, world.calls.request.reason)
    return Found("instance", run, prepared=1)


def _released(world: World) -> Found:
    run, task = world.asked()
    world.engine.acting(RequestContext(actor=ADM)).tasks.claim(task)
    world.calls.tasks.release(task)
    return Found("instance", run, prepared=1)


def _escalated(world: World) -> Found:
    from standfast import Escalation

    run, task = world.asked(escalate=Escalation(timedelta(days=1), to="role:chief"))
    world.calls.tasks.escalate(task)
    return Found("instance", run)


def _process_started(world: World) -> Found:
    published(world.engine)
    return Found("instance", world.calls.processes.start("orders.approval", INPUT).id)


def _advanced(world: World, calls: Calls) -> InstanceId:
    found = _process(world)
    calls.processes.advance(found, "rejected", comment=calls.request.reason)
    return found


def _process_cancelled(world: World, calls: Calls) -> InstanceId:
    found = _process(world)
    calls.processes.cancel(found, calls.request.reason)
    return found


def _created(world: World) -> Found:
    _published_body(world)
    made = world.calls.documents.create("invoice", INVOICE, id="I-1")
    return Found("document", made.instance, "I-1")


def _document_resumed(world: World) -> Found:
    instance, _ = world.invoice()
    world.own.run(instance).pause("hold")
    world.calls.run(instance).resume()
    return Found("document", instance, "I-1")


def _activated(world: World, calls: Calls) -> None:
    world.people("bob")
    world.own.directory.deactivate("bob")
    calls.directory.activate("bob")


def _revoked(world: World, calls: Calls) -> None:
    world.people("bob")
    world.own.directory.grant("bob", "fin")
    calls.directory.revoke("bob", "fin")


def _delegation_ended(world: World, calls: Calls) -> None:
    world.people("bob", "cat")
    calls.directory.end_delegation(world.own.directory.delegate("bob", "cat"))


def _absence_ended(world: World, calls: Calls) -> None:
    world.people("bob")
    calls.directory.end_absence(world.own.directory.absent("bob"))


def _archiving(world: World, calls: Calls) -> None:
    world.own.definitions.publish(Saga("mine").step("a", "a").build())
    calls.definitions.archive("mine", 1)


def _ruled(world: World, calls: Calls) -> None:
    _published_body(world)
    rule = {"name": "r", "effect": "warn", "reason": "look twice", "when": "entity.grand_total > 10"}
    calls.charters.publish_rules("invoice", [rule])


def _instantiated(world: World, calls: Calls) -> None:
    world.engine.contracts.publish(ready_contract("invoice"))
    name = next(each.name for each in calls.bodies.templates() if each.name.startswith("invoice"))
    calls.bodies.instantiate(name)


def _requeued(world: World, calls: Calls) -> InstanceId:
    found = world.stuck()
    calls.dead_letters.requeue(world.letter("step"))
    return found.id


def _put(world: World, calls: Calls) -> InstanceId:
    world.engine.register(Saga("rest").wait_for("wait", signal="go").build())
    return calls.schedules.put("s-1", "rest", every=3600).instance


def _schedule_resumed(world: World) -> Found:
    world.engine.register(Saga("rest").wait_for("wait", signal="go").build())
    made = world.own.schedules.put("s-1", "rest", every=3600)
    world.own.schedules.pause("s-1")
    world.calls.schedules.resume("s-1")
    return Found("instance", made.instance)


def _executed(world: World, calls: Calls) -> InstanceId:
    world.engine.register(Counter())
    calls.deciders.execute(Counter, Add("c-1", 1))
    return world.engine.deciders.get(Counter, "c-1").id


def _executed_dynamic(world: World, calls: Calls) -> InstanceId:
    world.engine.register(Counter())
    calls.deciders.execute_dynamic("counter", {"type": "Add", "workflow_id": "c-1", "amount": 1})
    return world.engine.deciders.get(Counter, "c-1").id


def _submitted(world: World, calls: Calls) -> InstanceId:
    world.engine.register(Counter())
    calls.deciders.submit(Counter, Add("c-1", 1))
    world.engine.drain()
    return world.engine.deciders.get(Counter, "c-1").id


def _published_event(world: World) -> Found:
    world.calls.events.publish("paid", "o-1", {"total": 1}, ttl=timedelta(days=1))
    (event,) = store_of(world.engine).reader("default").instances(InstanceQuery())
    return Found("instance", event.id)


def _schedule_stopped(world: World) -> Found:
    world.engine.register(Saga("rest").wait_for("wait", signal="go").build())
    made = world.own.schedules.put("s-1", "rest", cron="0 * * * *")
    world.own.schedules.backfill("s-1", NEXT - timedelta(days=366), NEXT - timedelta(days=365))
    world.engine.drain()
    world.calls.schedules.stop_backfills("s-1")
    return Found("instance", made.instance)


def _adopted(world: World) -> Found:
    _published_body(world)
    made = world.calls.documents.adopt("invoice", "I-1", INVOICE, status="draft")
    return Found("document", made.instance, "I-1")


def _amended(world: World) -> Found:
    _published_body(world)
    world.own.documents.adopt("invoice", "I-1", INVOICE, status="active")
    world.engine.drain()
    made = world.calls.documents.amend("invoice", "I-1", {"vendor_id": "V-2"}, new_id="I-2")
    return Found("document", made.instance, "I-2", others=frozenset({"supersede"}))


def _resume_requested(world: World) -> Found:
    found = _paused(world)
    world.calls.run(found.id).request_resume(world.calls.request.reason)
    world.engine.advance(minutes=5)
    return Found("instance", found.id)


ACTS: dict[str, Act] = {
    # runs
    "start": _of_run(_started),
    "run.signal": _on_run(_rested, lambda run, _: run.signal("go")),
    "run.cancel": _on_run(_rested, lambda run, _: run.cancel()),
    "run.abort": _on_run(_rested, lambda run, _: run.abort()),
    "run.pause": _on_run(_rested, lambda run, _: run.pause()),
    "run.resume": _on_run(_paused, lambda run, _: run.resume()),
    "run.request_resume": _resume_requested,
    "run.retry": _on_run(World.stuck, lambda run, why: run.retry(1, reason=why)),
    "run.reenqueue": _on_run(_unbegun, lambda run, why: run.reenqueue(1, reason=why)),
    "run.skip": _on_run(World.stuck, lambda run, why: run.skip(1, reason=why)),
    "run.complete_step": _on_run(World.stuck, lambda run, why: run.complete_step(1, {}, reason=why)),
    "run.change_data": _on_run(_rested, lambda run, why: run.change_data({"a": 1}, reason=why)),
    "run.cancel_branch": _on_run(_forked, lambda run, why: run.cancel_branch("0/1.1", reason=why)),
    "run.move_back": _on_run(_saved, lambda run, why: run.move_back(reason=why)),
    "run.fail": _on_run(_rested, lambda run, why: run.fail(why)),
    "run.fork": _of_run(_fork),
    "run.delete": _of_change(lambda world, calls: calls.run(_ended(world)).delete()),
    "instances.delete": _of_change(lambda world, calls: calls.instances.delete(_ended(world))),
    # tasks
    "tasks.approve": _of_task(lambda calls, task: calls.tasks.approve(task, comment=calls.request.reason)),
    "tasks.reject": _of_task(lambda calls, task: calls.tasks.reject(task, comment=calls.request.reason)),
    "tasks.abstain": _of_task(
        lambda calls, task: calls.tasks.abstain(task, comment=calls.request.reason), abstain=True
    ),
    "tasks.decide": _of_task(lambda calls, task: calls.tasks.decide(task, "confirmed", comment=calls.request.reason)),
    "tasks.decide_many": _of_task(
        lambda calls, task: calls.tasks.decide_many([task], "confirmed", comment=calls.request.reason)
    ),
    "tasks.withdraw_decision": _withdrawn_decision,
    "tasks.claim": _of_task(lambda calls, task: calls.tasks.claim(task)),
    "tasks.release": _released,
    "tasks.delegate": _of_task(lambda calls, task: calls.tasks.delegate(task, "bob")),
    "tasks.reassign": _of_task(lambda calls, task: calls.tasks.reassign(task, "bob")),
    "tasks.add_approver": _of_task(lambda calls, task: calls.tasks.add_approver(task, "bob")),
    "tasks.escalate": _escalated,
    "tasks.comment": _of_task(lambda calls, task: calls.tasks.comment(task, calls.request.reason)),
    "tasks.ask": _of_task(lambda calls, task: calls.tasks.ask(task, calls.request.reason)),
    "tasks.withdraw": _of_task(lambda calls, task: calls.tasks.withdraw(task)),
    # processes
    "processes.start": _process_started,
    "processes.advance": _of_run(_advanced),
    "processes.cancel": _of_run(_process_cancelled),
    "processes.resume": _of_run(_resumed_process),
    # documents
    "documents.create": _created,
    "documents.mutate": _of_document(
        lambda _, calls, __: calls.documents.mutate("invoice", "I-1", {"vendor_id": "V-2"})
    ),
    "documents.transition": _of_document(lambda _, calls, __: calls.documents.transition("invoice", "I-1", "submit")),
    "documents.redact": _of_document(
        lambda _, calls, __: calls.documents.redact("invoice", "I-1", ["vendor_id"], reason=calls.request.reason)
    ),
    "documents.adopt": _adopted,
    "documents.amend": _amended,
    "workflows.move": _moved,
    # what is done to the run or the question of a document
    "document: pause": _of_document(lambda world, calls, _: calls.run(_instance(world)).pause()),
    "document: resume": _document_resumed,
    "document: reassign": _of_document(
        lambda _, calls, task: calls.tasks.reassign(task, "bob", who="mia"), submit=True
    ),
    "document: add approver": _of_document(lambda _, calls, task: calls.tasks.add_approver(task, "bob"), submit=True),
    "document: claim": _of_document(lambda _, calls, task: calls.tasks.claim(task), submit=True),
    "document: delegate": _of_document(lambda _, calls, task: calls.tasks.delegate(task, "bob"), submit=True),
    "document: comment": _of_document(
        lambda _, calls, task: calls.tasks.comment(task, calls.request.reason), submit=True
    ),
    "document: decide": _of_document(
        lambda world, calls, task: calls.tasks.approve(
            task, comment=calls.request.reason, document_version=str(_version(world))
        ),
        submit=True,
    ),
    # what is no instance
    "directory.put": _of_change(lambda _, calls: calls.directory.put("bob", name="Bob")),
    "directory.prefer": _of_change(lambda _, calls: calls.directory.prefer("bob", language="de"), ready=_bob),
    "directory.deactivate": _of_change(lambda _, calls: calls.directory.deactivate("bob"), ready=_bob),
    "directory.activate": _of_change(_activated),
    "directory.set_manager": _of_change(lambda _, calls: calls.directory.set_manager("bob", "cat"), ready=_bob),
    "directory.grant": _of_change(lambda _, calls: calls.directory.grant("bob", "fin"), ready=_bob),
    "directory.revoke": _of_change(_revoked),
    "directory.delegate": _of_change(lambda _, calls: calls.directory.delegate("bob", "cat"), ready=_bob),
    "directory.end_delegation": _of_change(_delegation_ended),
    "directory.absent": _of_change(lambda _, calls: calls.directory.absent("bob"), ready=_bob),
    "directory.end_absence": _of_change(_absence_ended),
    "keys.create": _of_change(lambda _, calls: calls.keys.create("k", actor="bot")),
    "keys.revoke": _of_change(lambda world, calls: calls.keys.revoke(world.own.keys.create("k", actor="bot").key)),
    "sessions.end": _of_change(
        lambda world, calls: calls.sessions.end(world.own.sessions.open(credential="test").session)
    ),
    "definitions.publish": _of_change(lambda _, calls: calls.definitions.publish(Saga("mine").step("a", "a").build())),
    "definitions.publish_file": _of_change(lambda _, calls: calls.definitions.publish_file(FILE)),
    "definitions.archive": _of_change(_archiving),
    "definitions.restore": _of_change(lambda _, calls: calls.definitions.restore("mine", 1), ready=_archived),
    "contracts.publish": _of_change(lambda _, calls: calls.contracts.publish(ready_contract("invoice"))),
    "chains.publish": _of_change(lambda _, calls: calls.chains.publish("c", [{"asks": ["bob"]}])),
    "charters.publish_rules": _of_change(_ruled),
    "charters.publish_settings": _of_change(lambda _, calls: calls.charters.publish_settings({"most": 9})),
    "bodies.instantiate": _of_change(_instantiated),
    "bodies.save": _of_change(lambda _, calls: calls.bodies.save(BODY), ready=_draft),
    "bodies.discard": _of_change(lambda world, calls: calls.bodies.discard(_draft(world))),
    "bodies.publish": _of_change(lambda world, calls: calls.bodies.publish(_draft(world))),
    "bodies.rebase": _of_change(lambda _, calls: calls.bodies.rebase("invoice"), ready=_published_body),
    "bodies.rollback": _of_change(lambda _, calls: calls.bodies.rollback("invoice", 1), ready=_second_body),
    "bodies.archive": _of_change(lambda _, calls: calls.bodies.archive("invoice"), ready=_published_body),
    "bodies.govern": _of_change(lambda _, calls: calls.bodies.govern(two_person=True)),
    "workflows.suspend": _of_change(
        lambda _, calls: calls.workflows.suspend("invoice", "2-org", calls.request.reason), ready=_second_body
    ),
    "workflows.lift": _of_change(_lifted),
    "pauses.pause": _of_change(lambda _, calls: calls.pauses.pause("rest"), ready=_rested),
    "pauses.resume": _of_change(lambda _, calls: calls.pauses.resume("rest"), ready=_held),
    "dead_letters.requeue": _of_change(lambda world, calls: calls.dead_letters.requeue(_effect_letter(world))),
    "dead_letters.requeue of a step": _of_run(_requeued),
    "dead_letters.discard": _of_change(lambda world, calls: calls.dead_letters.discard(_effect_letter(world))),
    "dead_letters.retry_compensation": _of_run(_compensation),
    "inbox.bury": _of_change(_message),
    "seals.seal": _of_change(lambda _, calls: calls.seals.seal(), ready=_ended),
    # the engine's own instances
    "schedules.put": _of_run(_put),
    "schedules.pause": _schedule(lambda calls: calls.schedules.pause("s-1")),
    "schedules.resume": _schedule_resumed,
    "schedules.trigger": _schedule(lambda calls: calls.schedules.trigger("s-1")),
    "schedules.backfill": _schedule(
        lambda calls: calls.schedules.backfill("s-1", NEXT - timedelta(days=366), NEXT - timedelta(days=365))
    ),
    "schedules.stop_backfills": _schedule_stopped,
    "schedules.delete": _schedule(lambda calls: calls.schedules.delete("s-1")),
    "batches.begin": _batch,
    "batches.cancel": _of_run(_cancelled_batch),
    # deciders of the application
    "deciders.execute": _of_run(_executed),
    "deciders.execute_dynamic": _of_run(_executed_dynamic),
    "deciders.submit": _of_run(_submitted),
    "events.publish": _published_event,
    # the plant, by the engine itself: what concerns all tenants
    "admin.pause_processing": _of_change(lambda world, _: world.engine.admin.pause_processing(), "shared"),
    "admin.refuse_commands": _of_change(lambda world, _: world.engine.admin.refuse_commands(), "shared"),
    "admin.resume_processing": _of_change(
        lambda world, _: world.engine.admin.resume_processing(), "shared", ready=_in_maintenance
    ),
}
"""The calls that change something, and what is done to documents by calls that are about runs and questions."""

ACTIONS: dict[str, str] = {
    "start": "start",
    "run.signal": "signal go",
    "run.cancel": "cancel",
    "run.abort": "abort",
    "run.pause": "pause",
    "run.resume": "resume",
    "run.request_resume": "resume",
    "run.retry": "retry",
    "run.reenqueue": "reenqueue",
    "run.skip": "skip",
    "run.complete_step": "complete",
    "run.change_data": "change data",
    "run.cancel_branch": "cancel branch",
    "run.move_back": "move back",
    "run.fail": "fail",
    "run.fork": "fork",
    "tasks.approve": "decide confirmed",
    "tasks.reject": "decide rejected",
    "tasks.abstain": "decide abstained",
    "tasks.decide": "decide confirmed",
    "tasks.decide_many": "decide confirmed",
    "tasks.withdraw_decision": "withdraw decision",
    "tasks.claim": "claim",
    "tasks.release": "release",
    "tasks.delegate": "delegate",
    "tasks.reassign": "reassign",
    "tasks.add_approver": "add approver",
    "tasks.escalate": "escalate",
    "tasks.comment": "comment",
    "tasks.ask": "ask back",
    "tasks.withdraw": "withdraw",
    "processes.start": "start",
    "processes.advance": "decide rejected",
    "processes.cancel": "cancel",
    "processes.resume": "resume",
    "documents.create": "create",
    "documents.mutate": "update",
    "documents.transition": "request submit",
    "documents.redact": "redact",
    "documents.adopt": "adopt",
    "documents.amend": "amend",
    "workflows.move": "switch workflow",
    "document: pause": "pause",
    "document: resume": "resume",
    "document: reassign": "reassign",
    "document: add approver": "add approver",
    "document: claim": "claim",
    "document: delegate": "delegate",
    "document: comment": "comment",
    "document: decide": "decide approved",
    "dead_letters.requeue of a step": "requeue",
    "dead_letters.retry_compensation": "retry compensation",
    "schedules.put": "put",
    "schedules.pause": "pause",
    "schedules.resume": "resume",
    "schedules.trigger": "trigger",
    "schedules.backfill": "backfill",
    "schedules.stop_backfills": "stop backfills",
    "schedules.delete": "delete",
    "batches.begin": "begin",
    "batches.cancel": "cancel",
    "deciders.execute": "Added",
    "deciders.execute_dynamic": "Added",
    "deciders.submit": "Added",
    "events.publish": "publish",
}
"""What the audit of an instance calls each call that acts on one; acts of an application's own deciders have the names of their events."""
