"""Checks `why` and `resume_options` by trying what they recommend: the same moves are made again in a new run, and then the call itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

from machine.generating import random_graph, random_input
from standfast import Actor, Definition, Fail, Remedy, RequestContext, ResumeOption, RunExplanation, Saga, load_rules
from standfast.app.api.sync import Run
from standfast.errors import StandfastError
from standfast.testing import ManualEngine

Move = tuple[str, ...]
TENANT = "acme"
_OTHER = "zoe"


@dataclass
class Subject:
    """One run that moves are made with."""

    run: Run[object]
    document: str = ""


@dataclass
class World:
    """An engine, and how runs of one definition begin on it."""

    engine: ManualEngine
    begin: Callable[[World], Subject]
    moves: Sequence[Move]
    """What can be done to a run; what is refused changes nothing."""

    @property
    def calls(self) -> Any:
        """The calls of the tenant, as the engine itself."""
        return self.engine.as_tenant(TENANT)

    def replay(self, moves: Sequence[Move]) -> Subject:
        """A new run with which these moves were made."""
        subject = self.begin(self)
        self.engine.drain()
        for move in moves:
            self.make(subject, move)
        return subject

    def make(self, subject: Subject, move: Move) -> None:
        """Make a move, if it can be made."""
        try:
            _MOVES[move[0]](self, subject, *move[1:])
        except StandfastError:
            return
        finally:
            self.engine.drain()

    def person(self, name: str, *capabilities: str) -> Any:
        """The calls of somebody."""
        actor = Actor(id=name, capabilities=frozenset(capabilities))
        return self.engine.acting(RequestContext(tenant=TENANT, actor=actor))


def _decide(world: World, subject: Subject, outcome: str) -> None:
    tasks = [each for each in subject.run.tasks() if each.status == "open"]
    for each in tasks[:1]:
        getattr(world.calls.tasks, outcome)(each, comment="because", document_version=each.document_version)


def _edit(world: World, subject: Subject, *fields: str) -> None:
    world.calls.documents.mutate("invoice", subject.document, dict.fromkeys(fields, "edited"))


def _ask(world: World, subject: Subject, transition: str, name: str, *capabilities: str) -> None:
    world.person(name, *capabilities).documents.transition("invoice", subject.document, transition)


def _stop(world: World, subject: Subject, how: str) -> None:
    reply = getattr(world.calls.futures.run(subject.run.id), how)("enough")
    world.engine.drain()
    if reply.done():
        reply.result()  # What was refused is raised.


_MOVES: dict[str, Callable[..., None]] = {
    "advance": lambda world, _subject, seconds: world.engine.advance(timedelta(seconds=float(seconds))),
    "decide": _decide,
    "signal": lambda _world, subject, name: subject.run.signal(name),
    "publish": lambda world, _subject, name, key: world.calls.events.publish(name, key, {"x": 5}, ttl=0),
    "pause": lambda _world, subject: subject.run.pause("a look"),
    "resume": lambda _world, subject: subject.run.resume("looked"),
    "edit": _edit,
    "ask": _ask,
    "stop": _stop,
}


# -- what is recommended


def problems(world: World, moves: Sequence[Move]) -> Iterator[str]:
    """What is not so of what is recommended to a run with which these moves were made."""
    subject = world.replay(moves)
    why, shown = subject.run.why(), subject.run.describe()
    options = subject.run.resume_options()
    remedies = [each for reason in why.reasons for each in reason.remedies]
    if why.is_incident:
        yield f"it is an incident: {why.words}"
    waits = shown.status in {"paused", "dlq"} or any(each.kind == "dead_letter" for each in why.reasons)
    if waits and shown.ended_at is None and not any(_brings_on(each) for each in remedies):
        yield f"{shown.status} ({shown.reason}) is a dead end: {why.words}"
    trial = _Trial(world, moves, _shape(why))
    for remedy in remedies:
        yield from trial.of(f"why: {remedy}", partial(_follow, world, remedy))
    for option in options:
        if option.action != "end_pause":
            yield from trial.of(f"resume_options: {option}", partial(_take, world, option))


def _shape(why: RunExplanation) -> list[tuple[str, int | None]]:
    return [(each.kind, each.step_number) for each in why.reasons]


def _brings_on(remedy: Remedy) -> bool:
    return remedy.call not in {"run.cancel", "run.abort"} and remedy.name != "cancel"


@dataclass
class _Trial:
    """A call that is tried on a run with which the same moves were made."""

    world: World
    moves: Sequence[Move]
    shape: list[tuple[str, int | None]]

    def of(self, what: str, call: Callable[[Subject], None]) -> Iterator[str]:
        """What is not so of a call; nothing if chance has brought the new run elsewhere, such as by when a call was made again."""
        subject = self.world.replay(self.moves)
        if _shape(subject.run.why()) != self.shape:
            return
        before = len(subject.run.history())
        try:
            call(subject)
        except StandfastError as error:
            yield f"{what} is refused: {error}"
            return
        self.world.engine.drain()
        if len(subject.run.history()) == before:
            yield f"{what} changes nothing"


def _follow(world: World, remedy: Remedy, subject: Subject) -> None:
    run, step = subject.run, remedy.step_number or 0
    task = f"{run.id}:{step}"
    calls: dict[str, Callable[[], object]] = {
        "run.retry": lambda: run.retry(step, reason="tried"),
        "run.reenqueue": lambda: run.reenqueue(step, reason="tried"),
        "run.skip": lambda: run.skip(step, reason="tried", outcome=remedy.name),
        "run.complete_step": lambda: run.complete_step(step, {}, reason="tried"),
        "run.resume": lambda: run.resume("tried"),
        "run.cancel": lambda: _stop(world, subject, "cancel"),
        "run.abort": lambda: _stop(world, subject, "abort"),
        "run.change_data": lambda: run.change_data({"corrected": True}, reason="tried"),
        "run.signal": lambda: run.signal(remedy.name),
        "documents.transition": lambda: world.calls.documents.transition("invoice", subject.document, remedy.name),
        "documents.mutate": lambda: world.calls.documents.mutate("invoice", subject.document, {"memo": "tried"}),
        "dead_letters.retry_compensation": lambda: _undo(world, subject),
        "tasks.decide": lambda: _answer(world, subject, task, remedy.name),
        "tasks.escalate": lambda: world.calls.tasks.escalate(task, "tried"),
        "tasks.release": lambda: world.calls.tasks.release(task),
        "tasks.reassign": lambda: world.calls.tasks.reassign(task, _OTHER, who=remedy.name, reason="tried"),
        "tasks.add_approver": lambda: world.calls.tasks.add_approver(task, _OTHER, reason="tried"),
    }
    calls[remedy.call]()


def _take(world: World, option: ResumeOption, subject: Subject) -> None:
    run, calls = subject.run, world.calls
    step = option.step_id.rpartition(":")[2]
    task = f"{run.id}:{step}"
    ways: dict[str, Callable[[], object]] = {
        "resume": lambda: run.resume("tried"),
        "decide": lambda: _answer(world, subject, task, option.choices[0]),
        "override": lambda: run.resume("tried", override=True, task=task),
        "escalate": lambda: calls.tasks.escalate(task, "tried"),
        "reassign": lambda: calls.tasks.reassign(task, _OTHER, who=_place(subject, task), reason="tried"),
        "add_approver": lambda: calls.tasks.add_approver(task, _OTHER, reason="tried"),
        "signal": lambda: run.signal(option.choices[0]),
        "publish": lambda: _publish(world, subject, int(step)),
        "transition": lambda: calls.documents.transition("invoice", subject.document, option.choices[0]),
        "requeue": lambda: calls.dead_letters.requeue(_letter(world, subject, "step", int(step))),
        "retry_compensation": lambda: _undo(world, subject),
        "skip": lambda: run.skip(int(step), reason="tried"),
        "release": lambda: calls.tasks.release(task),
    }
    ways[option.action]()


def _answer(world: World, subject: Subject, task: str, outcome: str) -> None:
    (found,) = [each for each in subject.run.tasks() if str(each.step_id) == task]
    world.calls.tasks.decide(task, outcome, comment="tried", document_version=found.document_version)


def _place(subject: Subject, task: str) -> str:
    """Whose place can be given to somebody else."""
    remedies = [each for reason in subject.run.why().reasons for each in reason.remedies]
    number = int(task.rpartition(":")[2])
    return next(each.name for each in remedies if (each.call, each.step_number) == ("tasks.reassign", number))


def _publish(world: World, subject: Subject, step: int) -> None:
    (reason,) = [each for each in subject.run.why().reasons if each.step_number == step and each.kind == "event"]
    call = reason.remedy.partition(" or ")[0].partition(" brings")[0]
    names = call.removeprefix("publish(").removesuffix(")").split(", ")
    world.calls.events.publish(*(each.strip("'") for each in names), payload={"x": 9}, ttl=0)


def _letter(world: World, subject: Subject, source: str, number: int) -> object:
    letters = world.calls.dead_letters.list(instance=subject.run.id, source=source)
    return next(each for each in letters if each.number == number)


def _undo(world: World, subject: Subject) -> None:
    (letter,) = world.calls.dead_letters.list(instance=subject.run.id, source="compensation")
    world.calls.dead_letters.retry_compensation(letter)


# -- worlds

_ANYWHERE: tuple[Move, ...] = (
    ("decide", "approve"),
    ("decide", "reject"),
    ("pause",),
    ("resume",),
    ("stop", "cancel"),
)


def explored(world: World, rng: Random, *, longest: int) -> Iterator[str]:
    """Random moves, one after the other, and what is not so after each of them."""
    moves: list[Move] = []
    for _ in range(longest + 1):
        for told in problems(world, moves):
            yield f"after {moves}: {told}"
        moves.append(rng.choice(world.moves))


def random_world(engine: ManualEngine, rng: Random) -> World:
    """Runs of a random graph: sagas and processes, whose handlers fail for good, or now and then."""
    graph = random_graph(rng)
    engine.register(Saga("child").step("pack", "pack").build()).register(Definition(graph=graph))
    failing = {each for each in sorted(graph.handlers) if rng.random() < 0.4}
    for handler in {*graph.handlers, "pack"}:
        engine.handle(handler, _handler(fails=handler in failing))
    given = random_input(rng)

    def begin(world: World) -> Subject:
        return Subject(world.calls.run(world.calls.start("g", given).id))

    waits: tuple[Move, ...] = (("advance", "1"), ("advance", "4"), ("signal", "red"), ("signal", "blue"))
    return World(engine, begin, (*_ANYWHERE, *waits, ("publish", "paid", ""), ("publish", "sent", "3")))


def _handler(*, fails: bool) -> Callable[[], object]:
    def work() -> object:
        if fails:
            raise Fail("it is broken")
        return {}

    return work


CONTRACT = """
entity_type: invoice
version: 1
fields:
  number: {type: string, required: true}
  grand_total: {type: money}
  memo: {type: string}
  lines: {type: list, items: {type: object, fields: {text: {type: string}}}}
  gl_ref: {type: string}
system_fields: [gl_ref]
lifecycle:
  version: 1
  initial: draft
  terminal: [cancelled]
  amended: amended
  states: {draft: {window: editable}, submitted: {window: amend_only}, active: {window: locked}, cancelled: {window: locked}, amended: {window: editable}}
  transitions:
    - {name: submit, from: [draft, amended], to: submitted, permission: invoice.submit}
    - {name: approve, from: [submitted], to: active, begins: by_itself, on_reject: draft, permission: invoice.approve}
    - {name: cancel, from: [draft, submitted, active, amended], to: cancelled, kind: cancel, permission: invoice.cancel}
slots:
  - {id: "slot:draft_to_submit", entry: "sys:state:draft", exit: "sys:gate:submit", window: editable, stable: false}
  - {id: "slot:approval", entry: "sys:state:submitted", exit: "sys:gate:approve", window: amend_only, stable: true}
  - {id: "slot:posting", entry: "sys:gate:approve", exit: "sys:state:active", window: locked, stable: false}
actions:
  - {name: invoice.create, permission: invoice.create, creates: true}
  - {name: invoice.update, permission: invoice.update}
  - {name: invoice.amend, permission: invoice.amend}
  - {name: invoice.post, permission: invoice.post, workflow_allowed: true, handler: invoice.post}
  - {name: invoice.stamp, permission: invoice.stamp, workflow_allowed: true}
"""
SLOTS = ("slot:draft_to_submit", "slot:approval", "slot:posting")
NODES = (
    "type: approval, approvers: [{user: fay}]",
    "type: approval, approvers: [{role: nobody_has_it}]",
    "type: approval, approvers: [{role: boss}]",
    "type: approval, approvers: [{user: fay}, {user: gus}], agree: all",
    "type: approval, approvers: [{user: fay}], title: 'Pay for {entity.memo}?'",
    "type: action, action: invoice.stamp, payload: {gl_ref: \"'X'\"}",
    "type: action, action: invoice.stamp, payload: {gl_ref: entity.memo}",
    "type: action, action: invoice.post, run_as: 'service_account:svc-gl'",
    "type: condition, expression: entity.memo == 'edited'",
    "type: wait_timer, duration: 3h",
    "type: wait_event, event: paid, timeout: 5h",
    "type: notification, to: [fay], subject: 'For {entity.memo}', await: true",
    "type: task, handler: check, input: {memo: entity.memo}, attempts: 1",
    "type: task, handler: check, attempts: 2",
    "type: rule, rules: [{name: r, effect: block, when: entity.memo == 'x', reason: no}]",
    "type: script, formula: entity.memo == 'x'",
)
POOR = ("invoice.create", "invoice.update", "invoice.submit")


def document_world(engine: ManualEngine, rng: Random) -> World:
    """Invoices with random bodies: some steps are denied to whoever submits them, ask nobody, or cannot read what they need."""
    engine.contracts.publish(CONTRACT)
    tenant = engine.as_tenant(TENANT)
    for name, role in (("fay", ""), ("gus", "boss"), ("ann", ""), (_OTHER, "")):
        tenant.directory.put(name)
        if role:
            tenant.directory.grant(name, role)
    fails = rng.random() < 0.5
    engine.handle("invoice.post", _posting(fails=fails))
    engine.handle("check", _handler(fails=fails))
    body = random_body(rng)
    draft = tenant.bodies.save(body)
    assert not draft.problems, (body, [each.message for each in draft.problems])
    tenant.bodies.publish(draft.id)
    count = iter(range(1_000_000))
    given = {"number": "A-1", "grand_total": 100} | ({"memo": "x"} if rng.random() < 0.3 else {})

    def begin(world: World) -> Subject:
        name = f"I{next(count)}"
        made = world.person("ann", *POOR).documents.create("invoice", given, id=name)
        return Subject(world.calls.run(made.instance), name)

    moves: list[Move] = [
        ("ask", "submit", "ann", *POOR),
        ("ask", "submit", "ann", *POOR),
        ("ask", "submit", "rich", "invoice.*"),
        ("ask", "approve", "ann", *POOR, "invoice.approve"),
        ("ask", "cancel", "rich", "invoice.*"),
        ("edit", "memo"),
        ("decide", "approve"),
        ("publish", "paid", ""),
        ("advance", "14400"),
        *_ANYWHERE,
    ]
    return World(engine, begin, moves)


def random_body(rng: Random) -> str:
    """A body for some of the slots: a row of nodes, or two of them at the same time."""
    text = "base: {entity_type: invoice, envelope_version: 1}\nslots:\n"
    for slot in rng.sample(SLOTS, rng.randint(1, 3)):
        allowed = [each for each in NODES if slot != SLOTS[2] or not each.startswith(("type: approval", "type: rule"))]
        chosen = [rng.choice(allowed) for _ in range(rng.randint(1, 3))]
        while chosen[-1].startswith("type: condition"):
            chosen[-1] = rng.choice(allowed)
        text += f'  "{slot}":\n' + _patch(chosen, is_parallel=rng.random() < 0.5)
    return text


def _patch(chosen: Sequence[str], *, is_parallel: bool) -> str:
    nodes = [f"{{id: n{place}, {each}}}" for place, each in enumerate(chosen)]
    if is_parallel and len(nodes) == 2 and not any("condition" in each for each in nodes):
        nodes = ["{id: sp, type: parallel_split}", *nodes, "{id: j, type: parallel_join}"]
        edges = ["{from: sp, to: n0}", "{from: sp, to: n1}", "{from: n0, to: j}", "{from: n1, to: j}"]
    else:
        edges = [_edges(place, each) for place, each in enumerate(chosen[:-1])]
    told = "".join(f"      - {each}\n" for each in nodes)
    return f"    exit: join\n    nodes:\n{told}    edges: [{', '.join(edges)}]\n"


def _edges(place: int, node: str) -> str:
    if not node.startswith("type: condition"):
        return f"{{from: n{place}, to: n{place + 1}}}"
    return f'{{from: n{place}, to: out, on: "true"}}, {{from: n{place}, to: n{place + 1}, on: "false"}}'


def _posting(*, fails: bool) -> Callable[[], object]:
    def post() -> object:
        if fails:
            raise Fail("the ledger is locked")
        return {"gl_ref": "GL-1"}

    return post


_STEPS: tuple[dict[str, Any], ...] = (
    {"type": "action", "action": "execute", "execute": [{"type": "call", "handler": "good"}]},
    {"type": "action", "action": "execute", "execute": [{"type": "call", "handler": "bad"}]},
    {"type": "wait", "event": "paid", "timeout": "2h"},
    {"type": "wait", "event": "sent"},
    {"type": "action", "action": "block", "requires": {"type": "approval", "role": "boss"}},
    {"type": "action", "action": "block", "requires": {"type": "approval", "role": "nobody_has_it"}},
)


def rules_world(engine: ManualEngine, rng: Random) -> World:
    """Runs of rules: steps that call, wait or ask, one after the other."""
    steps = [{**rng.choice(_STEPS), "id": f"s{place}"} for place in range(rng.randint(1, 3))]
    engine.register(
        load_rules({"workflow_id": "w", "steps": [*steps, {"id": "ok", "type": "action", "action": "allow"}]})
    )
    for handler in ("good", "bad"):
        engine.handle(handler, _handler(fails=handler == "bad"))
    for name, role in (("gus", "boss"), (_OTHER, "clerk")):
        engine.as_tenant(TENANT).directory.put(name)
        engine.as_tenant(TENANT).directory.grant(name, role)

    def begin(world: World) -> Subject:
        return Subject(world.calls.run(world.calls.start("w", {"order": {"total": 7}}).id))

    return World(engine, begin, (*_ANYWHERE, ("publish", "paid", ""), ("publish", "sent", ""), ("advance", "8000")))
