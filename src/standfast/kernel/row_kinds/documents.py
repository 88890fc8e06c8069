"""The rows of a document: the document as it is, every version that it had, what was done to it, and the audit.

They are written with the events that they follow from. Versions, mutations and the audit are never written again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind, declare

MutationKind = Literal["business", "workflow"]
"""What changes the content of a document, and what moves or decides it."""


class DocumentOpened(Record, frozen=True, kw_only=True, gc=False):
    """A document came to be."""

    type: str
    id: str
    status: str
    version: int
    data: bytes
    """Its content, as JSON."""
    amended_from: str = ""
    superseded_by: str = ""
    requester: str = ""
    """Who wants it."""
    round: int = 1
    is_resting: bool = False
    """Whether nothing is under way for it."""
    is_amending: bool = False
    """Whether it was amended and no round has been completed since: references do not read it."""
    updated_by: str = ""


class DocumentTouched(Record, frozen=True, kw_only=True, gc=False):
    """A document changes. None leaves a column as it is."""

    type: str
    id: str
    status: str | None = None
    version: int | None = None
    data: bytes | None = None
    superseded_by: str | None = None
    round: int | None = None
    is_resting: bool | None = None
    is_amending: bool | None = None
    updated_by: str | None = None


class StoredDocument(DocumentOpened, frozen=True, kw_only=True, gc=False):
    """A document, as it is read."""

    instance: InstanceId
    created_at: datetime
    updated_at: datetime


DOCUMENTS = declare(
    RowKind(
        name="document",
        table="documents",
        row=DocumentOpened,
        change=DocumentTouched,
        stored=StoredDocument,
        key=("type", "id"),
        opened_at="created_at",
        moved_at="updated_at",
        of_instance=("definition", "partition"),
    )
)


class VersionKept(Record, frozen=True, kw_only=True, gc=False):
    """A version of a document, as it was written."""

    version: int
    status: str
    """The status that the document had then."""
    data: bytes
    data_hash: str
    """SHA-256 of the content as JSON with sorted names."""
    mutation: int
    """The mutation that wrote it."""
    written_by: str = ""


class StoredVersion(VersionKept, frozen=True, kw_only=True, gc=False):
    """A version, as it is read."""

    instance: InstanceId
    written_at: datetime


DOCUMENT_VERSIONS = declare(
    RowKind(
        name="version",
        table="document_versions",
        row=VersionKept,
        stored=StoredVersion,
        key=("version",),
        opened_at="written_at",
    )
)


class MutationMade(Record, frozen=True, kw_only=True, gc=False):
    """Something was done to a document."""

    sequence: int
    """Counts what the audit tells of the document."""
    kind: MutationKind
    action: str
    version_before: int
    version_after: int
    actor: str = ""
    on_behalf_of: str = ""
    run_as: str = ""
    """As whom a step of the workflow did it; empty if a person did."""
    step: int | None = None
    """The step that did it, or that was decided."""
    reason: str = ""
    changes: bytes | None = None
    """The fields that changed, with their values before and after, as JSON; of sensitive ones only that they did."""


class StoredMutation(MutationMade, frozen=True, kw_only=True, gc=False):
    """What was done to a document, as it is read."""

    instance: InstanceId
    made_at: datetime


MUTATIONS = declare(
    RowKind(
        name="mutation",
        table="mutations",
        row=MutationMade,
        stored=StoredMutation,
        key=("sequence",),
        opened_at="made_at",
    )
)


class AuditMade(Record, frozen=True, kw_only=True, gc=False):
    """Who did what to which document, and why. Whose it is says the tenant of the row, and when it was the time of the commit."""

    sequence: int
    who: str
    whom: str = ""
    """On whose behalf, or as whom."""
    what: str
    which: str
    """Type, id and version of the document."""
    place: str = ""
    """From where: a call of somebody, or the engine's own work."""
    why: str = ""
    whence: str = ""
    """What it follows from: a step, or the mutation itself."""
    how: str = ""
    """As what: a business mutation, one of the workflow, or a step."""


class StoredAudit(AuditMade, frozen=True, kw_only=True, gc=False):
    """A line of the audit, as it is read."""

    instance: InstanceId
    at: datetime


AUDIT = declare(
    RowKind(
        name="audit",
        table="audit",
        row=AuditMade,
        stored=StoredAudit,
        key=("sequence",),
        opened_at="at",
    )
)
