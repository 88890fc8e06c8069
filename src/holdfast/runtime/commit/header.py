"""The row of an instance: how it begins, and how a decision moves it."""

from __future__ import annotations

from datetime import datetime

from holdfast.kernel.decider import Status
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.program import Program
from holdfast.runtime.commit.submissions import Submission
from holdfast.store.shapes import Header


def new_header(submission: Submission, identity: InstanceId, program: Program, now: datetime) -> Header:
    """The row of an instance to which nothing has happened yet, pinned to a version of its definition."""
    address = submission.address
    return Header(
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
    )


def moved_header(old: Header, status: Status, *, version: int, issued: int, begun: bool, now: datetime) -> Header:
    """The row after a decision."""
    return Header(
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
        parent=old.parent,
        created_at=old.created_at,
        updated_at=now,
        ended_at=(old.ended_at or now) if status.is_terminal else None,
    )
