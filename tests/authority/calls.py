"""Every call by which a person can change something, what it takes, and an engine with something of everything to try it on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec

from api.world import BODY, CONTRACT
from app.documents.acting import GIVEN
from app.processes.acting import INPUT
from app.test_partitions import MADE, OF_ONE, Things, furnished, opened
from standfast import Calls, Capabilities, ForbiddenError
from standfast.app.api.namespaces import FutureCalls
from standfast.features.runs.run_calls import FutureRun
from standfast.features.tasks.views import TaskOutcome
from standfast.testing import ManualEngine
from support.engines import Place
from support.recording import calls_by_subject

Takes = Literal["right", "asked", "open", "own"]
"""What a call takes: a capability; to be one of those who are asked; nothing but to be somebody who may act; or it is about the caller's own."""

PROCESSES = b"""
domain: holidays
workflows:
  - id: holidays.request
    version: 1
    initial_step: asked
    steps: [{id: asked, type: approval, assignee: {role: manager}}, {id: granted, type: terminal}]
    transitions: [{from: asked, event: approved, to: granted}]
"""


class Estate(NamedTuple):
    """What there is: of the north, and of the whole tenant."""

    engine: ManualEngine
    north: Things
    draft: str
    delegation: int
    absence: int
    key: str
    graph: dict[str, object]


TENANT: dict[str, Callable[[Calls, Estate], object]] = {
    "charters.publish_rules": lambda calls, on: calls.charters.publish_rules("paper", []),
    "charters.publish_settings": lambda calls, on: calls.charters.publish_settings({"most": 9}),
    "chains.publish": lambda calls, on: calls.chains.publish("c", [{"asks": ["manager"]}]),
    "contracts.publish": lambda calls, on: calls.contracts.publish(CONTRACT.replace("invoice", "other")),
    "contracts.recompile": lambda calls, on: calls.contracts.recompile(),
    "bodies.govern": lambda calls, on: calls.bodies.govern(two_person=False),
    "bodies.save": lambda calls, on: calls.bodies.save(body(), comment="another one"),
    "bodies.instantiate": lambda calls, on: calls.bodies.instantiate("fast_track"),
    "bodies.publish": lambda calls, on: calls.bodies.publish(on.draft),
    "bodies.discard": lambda calls, on: calls.bodies.discard(on.draft),
    "bodies.rebase": lambda calls, on: calls.bodies.rebase("paper"),
    "bodies.rollback": lambda calls, on: calls.bodies.rollback("paper", 1),
    "bodies.recompile": lambda calls, on: calls.bodies.recompile(),
    "bodies.archive": lambda calls, on: calls.bodies.archive("paper"),
    "workflows.suspend": lambda calls, on: calls.workflows.suspend("paper", "1-org", "r"),
    "workflows.lift": lambda calls, on: calls.workflows.lift("card", "1-org", "r"),
    "workflows.move": lambda calls, on: calls.workflows.move("paper", "1-org", to="1-org", reason="r"),
    "definitions.publish": lambda calls, on: calls.definitions.publish({**on.graph, "name": "own"}),
    "definitions.publish_file": lambda calls, on: calls.definitions.publish_file(PROCESSES),
    "definitions.archive": lambda calls, on: calls.definitions.archive("mine", "1"),
    "definitions.restore": lambda calls, on: calls.definitions.restore("mine", "1"),
    "directory.put": lambda calls, on: calls.directory.put("new"),
    "directory.prefer": lambda calls, on: calls.directory.prefer("bob", off=["mail"]),
    "directory.set_manager": lambda calls, on: calls.directory.set_manager("bob", "cat"),
    "directory.grant": lambda calls, on: calls.directory.grant("bob", "boss"),
    "directory.revoke": lambda calls, on: calls.directory.revoke("cat", "clerk"),
    "directory.deactivate": lambda calls, on: calls.directory.deactivate("cat"),
    "directory.activate": lambda calls, on: calls.directory.activate("gone"),
    "directory.delegate": lambda calls, on: calls.directory.delegate("bob", "cat"),
    "directory.end_delegation": lambda calls, on: calls.directory.end_delegation(on.delegation),
    "directory.absent": lambda calls, on: calls.directory.absent("bob"),
    "directory.end_absence": lambda calls, on: calls.directory.end_absence(on.absence),
    "invariants.patrol": lambda calls, on: calls.invariants.patrol(),
    "keys.create": lambda calls, on: calls.keys.create("k", actor="robot", capabilities=[]),
    "keys.revoke": lambda calls, on: calls.keys.revoke(on.key),
    "pauses.pause": lambda calls, on: calls.pauses.pause("rest", reason="r"),
    "pauses.resume": lambda calls, on: calls.pauses.resume("tell", reason="r"),
    "seals.seal": lambda calls, on: calls.seals.seal(),
}
"""What is of the whole tenant."""

ELSEWHERE = {
    "refusals.note": "what the HTTP API keeps of those it refused",
    "repeats.begin": "what the HTTP API keeps of requests that may be repeated",
    "repeats.answer": "the same",
    "repeats.forget": "the same",
    "processes.process_timeouts": "the engine does it by itself",
    "charters.refresh": "reads again what this process remembers",
}
"""Calls that change something and are nobody's act."""

READS = {
    "run.describe", "run.steps", "run.history", "run.tasks", "run.diagram", "run.verify", "run.why", "run.result", "run.resume_requests",
    "run.resume_options", "run.fork_preview", "runs.get", "runs.list", "runs.partition_of", "runs.paused", "runs.resumable", "runs.state_at",
    "runs.stuck", "processes.get", "processes.events", "processes.list", "processes.expired", "documents.get", "documents.list",
    "documents.audit", "documents.choices", "documents.diff", "documents.mutations", "documents.links", "documents.rounds",
    "documents.check_edit", "documents.page", "documents.version", "documents.versions", "contracts.check", "contracts.diff",
    "contracts.export", "contracts.get", "contracts.list", "contracts.versions", "bodies.check", "bodies.diff", "bodies.draft",
    "bodies.drafts", "bodies.dry_run", "bodies.export", "bodies.get", "bodies.list", "bodies.rules", "bodies.scenarios", "bodies.templates",
    "bodies.versions", "deciders.get", "deciders.history", "deciders.observations", "deciders.observed_machine", "deciders.state",
    "deciders.transitions", "deciders.verify", "tasks.counts", "tasks.decided", "tasks.get", "tasks.list", "notifications.count_unread",
    "notifications.mine", "directory.absences", "directory.changes", "directory.delegations", "directory.get", "directory.holders",
    "directory.list", "directory.manager_of", "directory.open_tasks_of_inactive", "directory.roles_of", "chains.get", "chains.list",
    "chains.versions", "charters.list", "charters.rules", "charters.settings", "workflows.suspensions", "dead_letters.count",
    "dead_letters.get", "dead_letters.groups", "dead_letters.list", "definitions.archived", "definitions.data", "definitions.diagram",
    "definitions.diff", "definitions.diff_file", "definitions.dry_run", "definitions.dry_run_file", "definitions.get", "definitions.list",
    "definitions.pause_points", "definitions.validate", "definitions.validate_file", "events.get", "events.list", "instances.list",
    "instances.sent", "instances.verify", "invariants.check", "invariants.list", "invariants.of", "invariants.workflows", "seals.head",
    "seals.holds", "seals.verify", "reports.of", "inbox.list", "pauses.get", "pauses.list", "keys.get", "keys.list", "sessions.list",
    "refusals.list", "schedules.fires", "schedules.get", "schedules.list", "schedules.next_times", "batches.get", "batches.items",
    "batches.list", "run.audit", "audit.of", "audit.changes",
}  # fmt: skip
"""What changes nothing."""

ASKED = {
    "tasks.approve", "tasks.reject", "tasks.decide", "tasks.abstain", "tasks.claim", "tasks.release", "tasks.delegate", "tasks.comment",
    "tasks.ask", "tasks.escalate", "tasks.withdraw_decision", "tasks.decide_many",
}  # fmt: skip
OPEN = {
    # A workflow or a document whose definition names no capability, and deciders of the application.
    "start", "run.signal", "run.cancel", "run.abort", "processes.resume", "documents.create", "documents.mutate", "documents.notify_mutation",
    "documents.transition", "documents.amend", "deciders.execute", "deciders.execute_dynamic", "deciders.submit", "events.publish",
    # What the application lets people call, or does not: the HTTP API demands a permission of its own for each.
    "publish", "definitions.publish", "definitions.publish_file", "definitions.archive", "definitions.restore",
}  # fmt: skip
OWN = {"notifications.mark_read", "notifications.mark_all_read", "sessions.open", "sessions.end"}


def takes(call: str) -> Takes:
    """What a call takes; a capability, unless it is listed above."""
    return "asked" if call in ASKED else "open" if call in OPEN else "own" if call in OWN else "right"


def every_call() -> set[str]:
    """All calls that the engine has for people."""
    found = {f"{name}.{each}" for name, cls in {**calls_by_subject(), "run": FutureRun}.items() for each in public(cls)}
    return found | (public(FutureCalls) - {"run", "acting"})


def public(cls: type) -> set[str]:
    """The calls of a subject."""
    return {name for name, _ in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}


NORTH: dict[str, Callable[[Calls, Things], object]] = {
    **{name: call for name, call in {**OF_ONE, **MADE}.items() if name not in READS},
    "start": lambda calls, on: calls.start("ask"),
    "publish": lambda calls, on: calls.publish("happened"),
    "events.publish": lambda calls, on: calls.events.publish("happened"),
    "batches.begin": lambda calls, on: calls.batches.begin("pause", [on.run]),
    "documents.create": lambda calls, on: calls.documents.create("invoice", GIVEN),
    "processes.start": lambda calls, on: calls.processes.start("orders.approval", INPUT),
    "run.signal": lambda calls, on: calls.run(on.run).signal("x"),
    "tasks.add_approver": lambda calls, on: calls.tasks.add_approver(on.step, "robot"),
    "tasks.decide_many": lambda calls, on: decided(calls.tasks.decide_many([on.step], "confirmed")),
}
"""What is done in a part of the tenant."""

NOTHING_TO_DO = {
    "invariants.repair", "contracts.recompile", "bodies.recompile", "bodies.instantiate", "workflows.move", "processes.resume",
    "tasks.withdraw_decision",
}  # fmt: skip
"""What finds nothing to do as things stand here, so that nobody has to be allowed to do it."""

BARRED_BY_STATE = {
    "notifications.mark_read", "tasks.escalate", "tasks.reassign", "tasks.abstain", "run.resume", "run.retry", "run.reenqueue",
    "run.complete_step", "run.cancel_branch", "run.move_back", "processes.cancel", "inbox.bury", "bodies.discard", "directory.delegate",
    "sessions.end",
}  # fmt: skip
"""What cannot be done as things stand, or after what was done before it. Whoever may not do it is told so first."""

LATER = "deciders.submit"
"""It is accepted, and judged when it is carried out."""


def decided(outcomes: Sequence[TaskOutcome]) -> None:
    """ForbiddenError if a question of several was refused for want of a right."""
    for each in outcomes:
        if each.code in {"not_allowed", "deactivated", "credential_ended"}:
            raise ForbiddenError(reason=each.code, message=each.detail)


def body(type_: str = "paper") -> dict[str, object]:
    """A body of a type of documents."""
    return {**BODY, "base": {"entity_type": type_, "envelope_version": 1}}


def estate(place: Place, roles: dict[str, list[str]]) -> Estate:
    """An engine with something of everything, where roles of the directory may do this."""
    engine = opened(place, Capabilities(roles))
    north = furnished(engine)
    engine.contracts.publish(CONTRACT.replace("invoice", "paper"))
    engine.bodies.publish(engine.bodies.save(body()).id)
    engine.contracts.publish(CONTRACT.replace("invoice", "card"))
    engine.bodies.publish(engine.bodies.save(body("card")).id)
    engine.workflows.suspend("card", "1-org", "r")
    draft = engine.bodies.save(body(), comment="a draft").id
    for name in ("ann", "bob", "cat", "deputy", "robot"):
        engine.directory.put(name)
    engine.directory.grant("cat", "clerk")
    graph = engine.definitions.data("rest")
    own = engine.as_tenant(engine.futures.request.tenant)
    own.definitions.publish({**graph, "name": "mine"})
    engine.pauses.pause("tell", reason="r")
    return Estate(
        engine,
        north,
        draft,
        engine.directory.delegate("bob", "cat").id,
        engine.directory.absent("cat").id,
        engine.keys.create("robot", actor="robot", capabilities=[]).key.id,
        graph,
    )


def asked_anew(on: Estate) -> Things:
    """The same with another run that asks, and another process: what others have answered is not open any more."""
    north = on.engine.acting(msgspec.structs.replace(on.engine.futures.request, partition="north"))
    run = north.start("ask")
    on.engine.drain()
    return msgspec.structs.replace(on.north, run=run.id)
