"""What can be seen of a run, of the machine's and of the reference's, in the same words; and what must hold whatever the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import cast

import msgspec

from machine.hosting import Call, Host
from machine.polling import Poll, Seat, Vote
from machine.reference import ANYTHING, Reference, Step, Wait
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph
from standfast.graph.index import GraphIndex
from standfast.kernel.codec.codecs import JsonCodec
from standfast.kernel.program import Program
from standfast.kernel.row_kinds.steps import (
    DeadLetterRaised,
    StepMoved,
    StepOpened,
    SubscriptionOpened,
    TaskOpened,
)
from standfast.kernel.row_kinds.tasks import DecisionGiven, PersonAsked
from standfast.kernel.rows import Record, merge, writing_of
from standfast.machine.machine import GraphMachine
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.engine_tasks import FindEvents, FindPeople
from standfast.machine.model.events import Event
from standfast.machine.model.state import RunState

ANYHOW = "taken back"
REBUILT_EVERY = 8
"""Decisions after which a run is made again from its whole history."""
TERMINAL_ROWS = frozenset({"completed", "failed", "skipped", "cancelled"})

View = dict[str, object]

_SMALLEST = compile_graph(
    kind="saga", name="g", version="1", entry="e", nodes=[g.Node(id="e", op=g.EndOp())], edges=[], policies=g.Policies()
)
WORDS = Program(GraphMachine(_SMALLEST), JsonCodec()).events
"""The vocabulary by which every graph's events are stored."""


def seen_of_machine(host: Host) -> View:
    """What the world sees of the real run."""
    rows, state = host.rows, host.state
    return {
        "status": (state.status, state.reason),
        "result": state.result if state.status == "completed" else None,
        "steps": {row.number: _row(row) for row in rows if isinstance(row, StepOpened)},
        "calls": {call.body.step: _call(call) for call in host.calls.values() if call.recall is None},
        "recalled": {} if state.is_terminal else _recalled(host),
        "tasks": {row.number: _task(row) for row in rows if isinstance(row, TaskOpened)},
        "people": {(row.number, row.place): _asked(row) for row in rows if isinstance(row, PersonAsked)},
        "decisions": {(row.number, row.sequence): _decision(row) for row in rows if isinstance(row, DecisionGiven)},
        "lookups": [
            (each.step, [ask.words for ask in each.asks]) for each in host.errands if isinstance(each, FindPeople)
        ],
        "waits": {
            (row.number, row.place, row.signal, row.correlation) for row in rows if isinstance(row, SubscriptionOpened)
        },
        "searches": [_search(errand) for errand in host.errands if isinstance(errand, FindEvents)],
        "offers": [(told.id, told.step, told.is_taken) for told in host.offers],
        "timers": {_timer(command): host.due[key] for key, command in host.timers.items()},
        "children": {
            child.step: (child.asked, child.definition, child.input, child.involved) for child in host.children
        },
        "letters": {(row.source, row.number): row.error for row in rows if isinstance(row, DeadLetterRaised)},
        "told parent": [_told(told) for told in host.told_parent],
    }


def _told(told: c.EndChild) -> tuple[object, ...]:
    said = (told.status, told.result, told.error, told.reason)
    return *said, told.is_undoable, told.no_return, told.has_undone


def seen_of_reference(run: Reference) -> View:
    """What the world should see."""
    steps = run.steps
    return {
        "status": (run.status, run.reason),
        "result": run.root.data if run.status == "completed" else None,
        "steps": {step.number: _step(step) for step in steps},
        "calls": {step.number: _wanted(run, step) for step in steps if step.is_calling and not step.is_recalled},
        "recalled": {} if run.is_over else _asked_back(run),
        "tasks": {step.number: _poll(step.poll) for step in steps if step.poll is not None},
        "people": {(step.number, place): _seat(step.poll, seat) for step, place, seat in _seats(run)},
        "decisions": {(step.number, place): _vote(vote) for step, place, vote in _votes(run)},
        "lookups": run.lookups,
        "waits": {
            (step.number, *each) for step in steps if step.is_open and step.of is None for each in run.waits_of(step)
        },
        "searches": run.searches,
        "offers": run.offers,
        "timers": _timers(run),
        "children": {step.number: _child(run, step) for step in steps if step.child},
        "letters": dict(run.letters),
        "told parent": run.told_parent,
    }


def differences(expected: View, got: View) -> list[str]:
    """Everything in which the two views differ, a line each."""
    found: list[str] = []
    for name, wanted in expected.items():
        given = got[name]
        if isinstance(wanted, dict) and isinstance(given, dict):
            found += [
                f"{name} {key}: expected {wanted.get(key)}, got {given.get(key)}"
                for key in sorted(wanted.keys() | given.keys(), key=str)
                if not _agree(wanted.get(key), given.get(key))
            ]
        elif not _agree(wanted, given):
            found.append(f"{name}: expected {wanted}, got {given}")
    return found


def _agree(wanted: object, given: object) -> bool:
    if wanted == given:
        return True
    if isinstance(wanted, Wait):
        return isinstance(given, timedelta) and wanted.shortest <= given <= wanted.longest
    if isinstance(wanted, str) and wanted == ANYTHING:
        return isinstance(given, str) and given != ""
    if given == ANYHOW and wanted is not None:
        return True  # Whether a handler that nobody called should stop makes no difference.
    if isinstance(wanted, dict) and isinstance(given, dict):
        return wanted.keys() == given.keys() and all(_agree(wanted[key], given[key]) for key in wanted)
    if isinstance(wanted, list | tuple) and isinstance(given, list | tuple):
        return len(wanted) == len(given) and all(map(_agree, wanted, given))
    return False


def _row(row: StepOpened) -> View:
    return {
        "node": row.node,
        "token": row.token,
        "visit": row.visit,
        "kind": row.kind,
        "status": row.status,
        "attempts": row.attempts,
        "outcome": row.outcome,
        "undoes": row.compensates,
        "retry of": row.retry_of,
        "output": None if row.output is None else msgspec.json.decode(row.output),
    }


def _step(step: Step) -> View:
    return {
        "node": step.node,
        "token": step.token.name,
        "visit": step.visit,
        "kind": "forward" if step.of is None else "compensation",
        "status": step.status,
        "attempts": step.attempts,
        "outcome": step.outcome,
        "undoes": step.of.number if step.of else None,
        "retry of": step.retry_of.number if step.retry_of else None,
        "output": step.output if step.status == "completed" or (step.is_done and step.attempts) else None,
    }


def _call(call: Call) -> View:
    body, effect = call.body, call.effect
    return {
        "handler": effect.handler,
        "wait": effect.delay,
        "options": (effect.priority, effect.once, effect.transactional, effect.timeout, body.metadata),
        "node": body.node,
        "input": body.input,
        "attempt": body.attempt,
        "first": body.first,
        "undoes": body.is_compensation,
        "output": body.output,
        "error": body.error,
        "failed step": body.failed_step,
        "previous": body.last_answer,
        "data": body.data,
    }


def _wanted(run: Reference, step: Step) -> View:
    of, work, node = step.of, run.work_of(step), run.graph.nodes[step.node]
    timeout = None if work.timeout_ms is None else timedelta(milliseconds=work.timeout_ms)
    metadata, priority = node.metadata, node.priority
    if of is not None:
        metadata = metadata if node.compensation_metadata is None else node.compensation_metadata
        priority = priority if node.compensation_priority is None else node.compensation_priority
    return {
        "handler": work.handler,
        "wait": step.wait,
        "options": (priority, work.once, work.transactional, timeout, metadata),
        "node": step.node,
        "input": step.data,
        "attempt": step.call,
        "first": step.first,
        "undoes": of is not None,
        "output": of.output if of else None,
        "error": _reason(run, of) if of else "",
        "failed step": run.failed.node if of and run.failed and run.chain is not None else "",
        "previous": step.previous,
        "data": step.data if of is None else run.data_to_undo(of),
    }


def _reason(run: Reference, of: Step) -> str:
    """What a compensation is told: how its step failed, or why the run turned back."""
    if of.status == "skipped" or (of.status != "failed" and run.chain is None):
        return ANYTHING
    return of.error if of.status == "failed" else run.error


def _task(row: TaskOpened) -> tuple[object, ...]:
    return row.status, row.outcome, row.claimed_by, row.actor, row.comment, row.due_at


def _poll(poll: Poll) -> tuple[object, ...]:
    return poll.status, poll.came_to, poll.claimed_by, *poll.closed_by, poll.due


def _asked(row: PersonAsked) -> tuple[object, ...]:
    who = f"role:{row.name}" if row.kind == "role" else row.name
    return who, row.weight, row.stands_for, row.stage, row.is_open, row.decided


def _seats(run: Reference) -> Iterator[tuple[Step, int, Seat]]:
    return ((step, at, seat) for step in run.steps if step.poll for at, seat in enumerate(step.poll.seats, 1))


def _seat(poll: Poll | None, seat: Seat) -> tuple[object, ...]:
    is_open = poll is not None and poll.came_to is None and not seat.is_over and seat.vote is None
    return seat.who, seat.weight, seat.stands_for, seat.stage, is_open, seat.decided


def _decision(row: DecisionGiven) -> tuple[object, ...]:
    data = None if row.data is None else msgspec.json.decode(row.data)
    return row.actor, row.on_behalf_of, row.outcome, row.comment, data, row.is_withdrawn, row.is_applied


def _votes(run: Reference) -> Iterator[tuple[Step, int, Vote]]:
    return ((step, at, vote) for step in run.steps if step.poll for at, vote in enumerate(step.poll.votes, 1))


def _vote(vote: Vote) -> tuple[object, ...]:
    said = (vote.actor, vote.on_behalf_of, vote.outcome, vote.comment, vote.data)
    return *said, vote.is_withdrawn, vote.is_applied


def _search(errand: FindEvents) -> tuple[int, list[tuple[str, str]], list[str]]:
    return errand.step, [(each.event, each.key) for each in errand.sought], errand.taken


def _child(run: Reference, step: Step) -> tuple[object, ...]:
    op = run.graph.nodes[step.node].op
    assert isinstance(op, g.CallOp)
    return step.child.replace("started", ""), op.definition, step.data, step.child_involved


def _timers(run: Reference) -> dict[str, datetime]:
    """When each timer is due. While somebody has the run wait, there is none but the one that ends that."""
    if run.hold is not None:
        return {name: due for name, due in run.timers.items() if name == "resume"}
    found = {f"step {step.number}": step.due for step in run.steps if step.due is not None}
    found |= {f"{name} {step.number}": due for step in run.steps for name, due in step.times.items()}
    return found | run.timers


def _recalled(host: Host) -> dict[int, str]:
    """Steps whose call was asked back: on its way back already, or (told to stop or not) still running."""
    coming = {command.step: ANYHOW for command in host.inbox if isinstance(command, c.ReturnStep)}
    running = {
        call.body.step: "stop" if call.recall.stop else "let run"
        for call in host.calls.values()
        if call.recall is not None
    }
    return dict(coming) | running


def _asked_back(run: Reference) -> dict[int, str]:
    return {
        step.number: "stop" if step.is_stopping or step.is_late else "let run"
        for step in run.steps
        if (step.is_calling and step.is_recalled) or step.is_late
    }


def _timer(command: object) -> str:
    match command:
        case c.TimeOut(step=step):
            return f"step {step}"
        case c.PassDeadline():
            return "deadline"
        case c.EndGrace():
            return "grace"
        case c.BeginWorkflow():
            return "start"
        case c.ResumeWorkflow():
            return "resume"
        case c.RemindTask(step=step):
            return f"remind {step}"
        case c.EscalateTask(step=step):
            return f"escalate {step}"
        case other:
            return f"unknown {other}"


class History:
    """All that has happened to a run so far, read back from JSON and folded: event by event, and now and then anew."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._fresh = GraphMachine(host.graph, limit=host.limit, others=self._other)
        self._events: list[Event] = []
        self._state = self._fresh.initial()
        self._decisions = 0
        self._statuses: dict[int, str] = {}
        self._seen = 0

    def _other(self, tenant: str, version: str) -> GraphIndex | None:
        return self._host.machine.routes.others(tenant, version)

    def problems(self) -> list[str]:
        """What does not fit together after a decision."""
        host = self._host
        for event in host.history[len(self._events) :]:
            encoded = WORDS.encode(event)
            self._events.append(cast("Event", WORDS.decode(encoded.type, encoded.version, encoded.data)))
            self._state = self._fresh.evolve(self._state, self._events[-1])
        self._decisions += 1
        found = list(self._wrong_fold(self._state))
        if host.state.is_terminal or self._decisions % REBUILT_EVERY == 0:
            found += self._wrong_rebuild()
        return found + list(self._illegal_moves())

    def _wrong_fold(self, state: RunState) -> Iterator[str]:
        folded, carried = msgspec.to_builtins(state), msgspec.to_builtins(self._host.state)
        if folded != carried:
            yield f"the events fold to {_only(folded, carried)}, the decision carried {_only(carried, folded)}"

    def _wrong_rebuild(self) -> Iterator[str]:
        state, records = self._fresh.initial(), list[Record]()
        for event in self._events:
            records += self._fresh.rows_of(state, event)
            state = self._fresh.evolve(state, event)
        yield from self._wrong_fold(state)
        made, written = _by_row(merge(records)), _by_row(self._host.rows)
        if made != written:
            yield f"rebuilt rows {_only(made, written)}, written {_only(written, made)}"

    def _illegal_moves(self) -> Iterator[str]:
        records = self._host.records[self._seen :]
        self._seen = len(self._host.records)
        for record in records:
            if isinstance(record, StepOpened | StepMoved):
                before = self._statuses.get(record.number)
                if isinstance(record, StepOpened) and before is not None:
                    yield f"step {record.number} is opened twice"
                is_final = before in TERMINAL_ROWS and before != record.status
                if isinstance(record, StepMoved) and (before is None or is_final):
                    yield f"step {record.number} moves from {before} to {record.status}"
                self._statuses[record.number] = record.status


def _by_row(records: Iterable[Record]) -> dict[str, object]:
    found: dict[str, object] = {}
    for record in records:
        key = f"{type(record).__name__} {writing_of(type(record)).kind.key_of(record)}"
        found[key] = record
    return found


def _only(these: object, those: object) -> object:
    """The part of these that those do not have."""
    if isinstance(these, dict) and isinstance(those, dict):
        return {key: _only(value, those.get(key)) for key, value in these.items() if value != those.get(key)}
    return these
