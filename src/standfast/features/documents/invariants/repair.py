"""Setting right what the history tells: rows are made again from it, calls that are gone are made, calls that nobody asked for are not."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from standfast.calls.authorization import check_repairer
from standfast.calls.context import CallContext
from standfast.errors import ConflictError, NotFoundError
from standfast.features.documents.invariants.checks import differences, places, sequence, work
from standfast.features.documents.invariants.evidence import Evidence
from standfast.features.documents.invariants.replay import HistoryReplay
from standfast.features.documents.invariants.rules import InvariantBreach
from standfast.features.documents.invariants.scan import batch, evidences, program_of, violation
from standfast.features.documents.invariants.views import Mended
from standfast.features.runs.repair import reenqueued
from standfast.kernel.history import ROWS_REBUILT, StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind, writing_of
from standfast.machine.model.commands import repair_commands as r
from standfast.store.ports.store import LostRaceError, StoreParts
from standfast.store.records.instances import CommittedRows, InstanceChange, InstanceHeader


class _Plan(msgspec.Struct, frozen=True):
    """What has to be written."""

    header: InstanceHeader
    """As it is stored."""
    right: InstanceHeader
    """As the history tells it."""
    kinds: Sequence[RowKind[Record]]
    told: Sequence[CommittedRows]
    is_misplaced: bool
    """Whether the row or the snapshot says something else than the history."""
    withdrawn: list[int]
    lost: list[int]

    @property
    def is_empty(self) -> bool:
        """Whether all rows are as they should be."""
        return not (self.kinds or self.withdrawn or self.is_misplaced)


def repaired(desk: CallContext, identity: InstanceId, reason: str) -> Mended:
    """Set a document right as far as its history tells how; what was done stands in the history, with who asked for it and why."""
    for evidence, _ in evidences(desk, [identity]):
        plan = _planned(desk, evidence)
        break
    else:
        raise NotFoundError("document", identity)
    if not plan.is_empty:
        desk.operate(lambda parts: _carry_out(desk, parts, plan, reason), check=check_repairer)
    for step in plan.lost:
        reenqueued(desk, identity, r.ReenqueueStep(step=step, reason=reason))
    left = [violation(each, header) for header, found in batch(desk, [identity]) for each in found]
    return Mended(
        instance=identity,
        tables=[kind.table for kind in plan.kinds],
        withdrawn=plan.withdrawn,
        called=plan.lost,
        left=left,
    )


def _planned(desk: CallContext, evidence: Evidence) -> _Plan:
    program = program_of(desk, evidence.header)
    broken: list[InvariantBreach] = list(sequence(evidence))
    walk = HistoryReplay(program, evidence.events)
    if broken or not walk.is_whole:
        told = "; ".join(each.told for each in broken or walk.found)
        raise ConflictError(
            f"the history of {evidence.header.id} is broken, so that nothing can be made from it: {told}; restore it"
        )
    kinds = list({each.kind: None for each in differences(evidence, walk)})
    found = list(work(evidence, desk.registry.library.speaker, walk))
    is_misplaced = bool(list(places(evidence, program, walk)))
    return _Plan(
        header=evidence.header,
        right=_right(evidence, walk, desk) if is_misplaced else evidence.header,
        kinds=kinds,
        told=[
            CommittedRows(at, [each for each in records if writing_of(type(each)).kind in kinds])
            for at, records in walk.commits
        ],
        is_misplaced=is_misplaced,
        withdrawn=[each.effect for each in found if each.effect is not None],
        lost=[each.step for each in found if each.step is not None],
    )


def _right(evidence: Evidence, walk: HistoryReplay, desk: CallContext) -> InstanceHeader:
    """The row as the history tells it; it is another one also where only the snapshot was wrong."""
    status = program_of(desk, evidence.header).status(walk.state)
    return msgspec.structs.replace(
        evidence.header,
        status=status.word,
        reason=status.reason,
        commits=len({each.cause for each in evidence.events}),
        ended_at=(evidence.header.ended_at or max(each.at for each in evidence.events)) if status.is_terminal else None,
        updated_at=desk.service.shared.clock.now(),
    )


def _carry_out(desk: CallContext, parts: StoreParts, plan: _Plan, reason: str) -> None:
    now, header, actor = desk.service.shared.clock.now(), plan.header, desk.request.actor
    event = StoredEvent(
        instance=header.id,
        sequence=header.version + 1,
        type=ROWS_REBUILT,
        version=1,
        data=msgspec.json.encode({"tables": [kind.table for kind in plan.kinds], "withdrawn": plan.withdrawn}),
        at=now,
        actor=actor.id,
        comment=reason,
        cause=str(desk.service.shared.chance.new_id(now)),
        tenant=header.tenant,
        on_behalf_of=actor.on_behalf_of,
        trace=desk.request.trace,
    )
    new = msgspec.structs.replace(
        plan.right, version=header.version + 1, commits=plan.right.commits + 1, updated_at=now
    )
    change = InstanceChange(header=new, expected=header.version, events=[event], withdrawn=plan.withdrawn)
    try:
        with parts.writer().unit() as unit:
            unit.load([desk.address(instance=header.id)])  # Locked before anything else is.
            unit.rewrite(change, plan.kinds, plan.told, now)
    except LostRaceError as error:
        raise ConflictError(f"{header.id} went on while it was looked at; try again") from error
