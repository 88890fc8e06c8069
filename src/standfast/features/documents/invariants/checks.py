"""What is stored of a document, held against its history: each look tells where one rule does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from standfast.engine.commit.submission import RECEIPTED, receipt_mark
from standfast.errors import StandfastError
from standfast.features.deciders.verification import RowDifference, row_differences, rows_told
from standfast.features.documents.invariants.evidence import Evidence
from standfast.features.documents.invariants.replay import HistoryReplay
from standfast.features.documents.invariants.rules import InvariantBreach
from standfast.features.runs.views import calls_of
from standfast.graph.model import JoinOp
from standfast.kernel.program import Program
from standfast.kernel.row_kinds.documents import AUDIT, DOCUMENT_VERSIONS, MUTATIONS
from standfast.kernel.row_kinds.steps import DEAD_LETTERS, STEPS, StoredStep
from standfast.kernel.row_kinds.tasks import TASK_DECISIONS
from standfast.kernel.rows import Record, RowKind, kinds
from standfast.machine.machine import GraphMachine
from standfast.machine.model.commands.timers import timed_step
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import InstanceHeader, StoredEffect

_OF_KIND: dict[RowKind[Record], str] = {
    DOCUMENT_VERSIONS: "K-01",
    MUTATIONS: "K-01",
    AUDIT: "K-01",
    TASK_DECISIONS: "WF-03",
}
"""The rule that rows of a kind keep; of all others, that they can be derived."""
_OPEN = frozenset({"pending", "running"})


def looked_at(
    evidence: Evidence, program: Program, speaker: Program, reader: TenantReader
) -> Iterator[InvariantBreach]:
    """Everything that is wrong with what is stored of a document."""
    unbroken = list(sequence(evidence))
    yield from unbroken
    if unbroken:
        return  # What a broken history says about the rest is worth nothing.
    walk = HistoryReplay(program, evidence.events)
    yield from walk.found
    yield from receipts(evidence)
    if walk.is_whole:
        yield from places(evidence, program, walk)
        for each in differences(evidence, walk):
            yield InvariantBreach(_rule_of(each, walk, program), str(each))
        yield from zombies(evidence, walk)
        yield from left_behind(evidence, walk)
        yield from work(evidence, speaker, walk)
        yield from amendments(walk, reader, evidence.header)


def sequence(evidence: Evidence) -> Iterator[InvariantBreach]:
    """Whether the events follow one another, and the row counts them."""
    numbers = [each.sequence for each in evidence.events]
    if numbers != list(range(1, len(numbers) + 1)):
        missing = sorted(set(range(1, (numbers or [0])[-1] + 1)) - set(numbers))
        yield InvariantBreach("WF-01", f"of its events {', '.join(map(str, missing[:5]))} are missing")
    if evidence.header.version != len(numbers):
        yield InvariantBreach("WF-01", f"its row counts {evidence.header.version} events, and there are {len(numbers)}")
    if any(one.position >= other.position for one, other in pairwise(evidence.events)):
        yield InvariantBreach("WF-01", "its events lie in another order in the whole than in the document")


def receipts(evidence: Evidence) -> Iterator[InvariantBreach]:
    """Whether what has a receipt was carried out, and nothing twice."""
    for each in evidence.receipts:
        if each.instance not in {None, evidence.header.id}:
            continue  # A key that had another instance before this one was made.
        if each.version > evidence.header.version:
            told = f"the receipt {each.key.key!r} is for version {each.version} of the history, which ends at {evidence.header.version}"
            yield InvariantBreach("WF-14", told)
    yield from _missing(evidence)
    seen: set[str] = set()
    for one, other in pairwise(evidence.events):
        if one.cause != other.cause:
            seen.add(one.cause)
            if other.cause and other.cause in seen:
                yield InvariantBreach(
                    "WF-14", f"event {other.sequence} follows again from {other.cause!r}, which was carried out before"
                )


def _missing(evidence: Evidence) -> Iterator[InvariantBreach]:
    """Whether a receipt is gone that the history names: the call that it is for would count again. Those of documents that have ended may be pruned."""
    if evidence.header.ended_at is not None:
        return
    known = {receipt_mark(each.key) for each in evidence.receipts}
    named = {each.cause: each.sequence for each in reversed(evidence.events) if RECEIPTED in each.cause}
    for cause, sequence in named.items():
        if cause.rpartition(RECEIPTED)[2] not in known:
            told = f"the receipt of the command that wrote event {sequence} is gone: the same call would be carried out again"
            yield InvariantBreach("WF-14", told)


def places(evidence: Evidence, program: Program, walk: HistoryReplay) -> Iterator[InvariantBreach]:
    """Whether the row and the snapshot say what the history says."""
    header, status = evidence.header, program.status(walk.state)
    told = (status.word, status.reason, status.is_terminal)
    stored = (header.status, header.reason, header.ended_at is not None)
    if stored != told:
        yield InvariantBreach("WF-15", f"the row says {_stand(*stored)}, the history {_stand(*told)}")
    commands = len({each.cause for each in evidence.events})
    if header.commits != commands:
        yield InvariantBreach(
            "WF-15", f"the row counts {header.commits} commands, and {commands} have written the history"
        )
    document = walk.state.document
    if document is not None and header.key != document.id:
        yield InvariantBreach("WF-15", f"the key of the row is {header.key!r}, and the document is {document.id!r}")
    first = evidence.events[0].actor
    if header.started_by not in {first, walk.state.requester}:  # Rows of before name who acted, whoever wanted it.
        wants = walk.state.requester or first
        yield InvariantBreach(
            "WF-15", f"the row says that {header.started_by!r} wants it, and the history says {wants!r}"
        )
    snapshot = evidence.snapshot
    if snapshot is None or not program.takes_snapshot(snapshot.state_version, snapshot.fingerprint):
        return
    try:
        state = program.replay(program.restore(snapshot.data), evidence.events[snapshot.version :])
    except StandfastError as error:
        yield InvariantBreach("WF-15", f"the snapshot of version {snapshot.version} cannot be used: {error}")
        return
    if state != walk.state:
        yield InvariantBreach(
            "WF-15", f"the snapshot of version {snapshot.version} tells another state than the history"
        )


def _stand(word: str, reason: str, has_ended: bool) -> str:  # noqa: FBT001 - what a row says
    return f"{word!r}{f' ({reason})' if reason else ''}{', ended' if has_ended else ''}"


def differences(evidence: Evidence, walk: HistoryReplay) -> list[RowDifference]:
    """The rows that are not what the history says."""
    told = rows_told(walk.records)
    return [
        each
        for kind in kinds()
        if kind is not DEAD_LETTERS  # Operators discard them without a word.
        for each in row_differences(kind, evidence.rows.get(kind, ()), told.get(kind, {}))
    ]


def _rule_of(difference: RowDifference, walk: HistoryReplay, program: Program) -> str:
    if difference.kind is not STEPS:
        return _OF_KIND.get(difference.kind, "WF-15")
    if difference.stored is None:
        return "WF-09"
    if difference.told is not None:
        return "WF-15"
    row = difference.stored
    visit = (row["token"], row["node"], row["visit"], row["retry_of"])
    assert isinstance(program.decider, GraphMachine)
    node = program.decider.graph.nodes.get(str(row["node"]))
    if visit in walk.visits:
        return "WF-16" if node is not None and isinstance(node.op, JoinOp) else "WF-02"
    return "WF-09"


def zombies(evidence: Evidence, walk: HistoryReplay) -> Iterator[InvariantBreach]:
    """Whether every step that is not over belongs to a token that is under way."""
    state = walk.state
    alive = {*state.tokens, *state.parked, *(state.dropped.tokens if state.dropped else ())}
    for row in evidence.rows.get(STEPS, ()):
        assert isinstance(row, StoredStep)
        if (
            row.status in _OPEN
            and row.token not in alive
            and row.kind == "forward"
            and row.number not in state.stopping
        ):
            yield InvariantBreach(
                "WF-16", f"step {row.number} at {row.node!r} is {row.status}, and its branch {row.token!r} has ended"
            )


def left_behind(evidence: Evidence, walk: HistoryReplay) -> Iterator[InvariantBreach]:
    """Whether something is under way in a slot that the document is not in, or a timer is set for a step that has ended."""
    told = walk.left_behind()
    if told and not any(each.rule == "G1" for each in walk.found):
        yield InvariantBreach("G1", f"{told} under way behind the gate that the document has passed")
    state = walk.state
    known = {*state.open, *state.dead, *state.frozen}
    for each in evidence.timers:
        number = timed_step(each.key)
        if number is not None and number not in known:
            yield InvariantBreach("G1", f"the timer {each.key!r} is set for step {number}, which has ended")


def work(evidence: Evidence, speaker: Program, walk: HistoryReplay) -> Iterator[InvariantBreach]:
    """Whether the work that steps wait for is stored, and no other."""
    state, issued = walk.state, evidence.header.issued
    for each in evidence.effects:
        if each.number >= issued:
            told = f"effect {each.number} was never asked for: the document has asked for {issued}"
            yield InvariantBreach("WF-11", told, effect=each.number)
    readable = [each for each in evidence.effects if _is_readable(each, speaker)]
    for each in evidence.effects:
        if each not in readable:  # Newer code may know better, so that nothing is withdrawn.
            yield InvariantBreach(
                "WF-11", f"effect {each.number} cannot be read, so that nobody who runs this code can make it"
            )
    calls = calls_of(readable, speaker)
    awaited = {number for number, step in state.open.items() if step.effect is not None}
    known = awaited | {*state.stopping} | {*state.dead} | {*state.frozen}
    for number in sorted(calls.keys() - known):
        effect = calls[number].number
        if effect < issued:
            yield InvariantBreach("WF-11", f"effect {effect} would call step {number}, which has ended", effect=effect)
    buried = {getattr(row, "number", None) for row in evidence.rows.get(DEAD_LETTERS, ())}
    unread = {each.number for each in evidence.effects} - {each.number for each in readable}
    buried |= {number for number in awaited if state.open[number].effect in unread}
    for number in sorted(awaited - calls.keys() - buried):
        step = state.open[number]
        told = f"the call of step {number} at {step.node!r}, effect {step.effect}, is gone, and nobody will make it"
        yield InvariantBreach("WF-10", told, step=number)


def _is_readable(effect: StoredEffect, speaker: Program) -> bool:
    try:
        speaker.effects.decode(effect.type, effect.version, effect.data)
    except StandfastError:
        return False
    return True


def amendments(walk: HistoryReplay, reader: TenantReader, header: InstanceHeader) -> Iterator[InvariantBreach]:
    """Whether the other document of an amendment names this one. One that is younger has its id since retention deleted the other."""
    document, partition = walk.state.document, header.partition
    if document is None:
        return
    if document.amended_from:
        old = reader.document(document.type, document.amended_from, partition)
        if old is not None and old.created_at <= header.created_at and old.superseded_by != document.id:
            yield InvariantBreach(
                "B4", f"it amends {old.id!r}, which says that {old.superseded_by or 'nothing'!r} took its place"
            )
    if document.superseded_by:
        new = reader.document(document.type, document.superseded_by, partition)
        if new is None or new.amended_from != document.id:
            yield InvariantBreach("B4", f"{document.superseded_by!r} took its place, and does not say so")
