"""The row of an instance: its initial values and its update by a decision."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from standfast.engine.commit.submission import Submission
from standfast.errors import PayloadError
from standfast.kernel.decider import Status
from standfast.kernel.decision import Attribute
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.store.records.instances import InstanceHeader

MOST_ATTRIBUTES = 50
"""Maximum number of search attributes per instance."""


def new_header(submission: Submission, identity: InstanceId, program: Program, now: datetime) -> InstanceHeader:
    """Return the row of a new instance, pinned to a version of its definition."""
    address = submission.address
    return InstanceHeader(
        id=identity,
        tenant=address.tenant,
        definition=address.definition,
        definition_version=program.definition_version,
        kind=program.kind,
        key=address.key,
        status="running",
        begun=not program.has_steps,
        version=0,
        issued=0,
        parent=submission.parent,
        created_at=now,
        updated_at=now,
        partition=submission.request.partition,
        started_by=submission.request.actor.id,
    )


def moved_header(
    old: InstanceHeader,
    status: Status,
    *,
    version: int,
    issued: int,
    begun: bool,
    deadline_at: datetime | None,
    search: str,
    now: datetime,
) -> InstanceHeader:
    """Return the row after a decision."""
    return InstanceHeader(
        id=old.id,
        tenant=old.tenant,
        definition=old.definition,
        definition_version=old.definition_version,
        kind=old.kind,
        key=old.key,
        status=status.word,
        reason=status.reason,
        begun=begun,
        version=version,
        issued=issued,
        commits=old.commits + (version > old.version),
        parent=old.parent,
        created_at=old.created_at,
        updated_at=now,
        ended_at=(old.ended_at or now) if status.is_terminal else None,
        partition=old.partition,
        started_by=old.started_by,
        paused_at=_paused_at(old, status, now),
        deadline_at=deadline_at,
        search=search,
        next_step=status.next_step,
    )


def _paused_at(old: InstanceHeader, status: Status, now: datetime) -> datetime | None:
    """Return since when the instance is paused. A decision that resumes and pauses it again says so itself."""
    if status.word != "paused":
        return None
    return old.paused_at if status.since in {None, old.paused_at} and old.paused_at else status.since or now


def are_marked_otherwise(old: InstanceHeader, new: InstanceHeader) -> bool:
    """Return whether two rows differ in rarely changed columns.

    Values that are equal but not identical count as different and cost one write.
    """
    return (
        old.paused_at is not new.paused_at
        or old.deadline_at is not new.deadline_at
        or old.search is not new.search
        or old.next_step != new.next_step
    )


def merged_search(search: str, laid_over: Mapping[str, Attribute | None]) -> str:
    """Merge search attributes of a decision into those of the row."""
    kept = {**(_decode(search) if search else {}), **laid_over}
    left = {name: value for name, value in sorted(kept.items()) if value is not None}
    if len(left) > MOST_ATTRIBUTES:
        raise PayloadError(f"{len(left)} search attributes are too many: an instance has at most {MOST_ATTRIBUTES}")
    return _encode(left).decode() if left else ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Attribute]).decode
