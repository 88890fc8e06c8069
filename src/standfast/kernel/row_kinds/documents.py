"""The rows of a document: its current content, its versions, its mutations and its audit.

They are written with the events that they follow from. Versions, mutations and the audit are never updated.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind, declare

MutationKind = Literal["business", "workflow"]
"""A mutation of a document's content, or a transition or decision of its workflow."""


class DocumentOpened(Record, frozen=True, kw_only=True, gc=False):
    """A document was created."""

    type: str
    id: str
    status: str
    version: int
    data: bytes
    """The content as JSON."""
    amended_from: str = ""
    superseded_by: str = ""
    requester: str = ""
    """The person for whom the document was created."""
    round: int = 1
    is_resting: bool = False
    """Whether no workflow of the document is active."""
    is_amending: bool = False
    """Whether the document was amended and no round has been completed since. References then do not read it."""
    updated_by: str = ""


class DocumentTouched(Record, frozen=True, kw_only=True, gc=False):
    """A document changes. None leaves a column unchanged."""

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
    """A document as it is read."""

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
    """A version of a document as it was written."""

    version: int
    status: str
    """The document's status at that time."""
    data: bytes
    data_hash: str
    """SHA-256 of the content as JSON with sorted names."""
    mutation: int
    """Number of the mutation that wrote it."""
    written_by: str = ""


class StoredVersion(VersionKept, frozen=True, kw_only=True, gc=False):
    """A version as it is read."""

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
    """A mutation of a document."""

    sequence: int
    """Number of the mutation in the document's audit."""
    kind: MutationKind
    action: str
    version_before: int
    version_after: int
    actor: str = ""
    on_behalf_of: str = ""
    run_as: str = ""
    """The identity under which a workflow step made it. Empty if a person did."""
    step: int | None = None
    """The step that made it, or that was decided."""
    reason: str = ""
    changes: bytes | None = None
    """The changed fields as JSON, with values before and after. Values of sensitive fields are omitted."""


class StoredMutation(MutationMade, frozen=True, kw_only=True, gc=False):
    """A mutation as it is read."""

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
    """An audit entry: actor, action, document and reason.

    The tenant of the row and the time of the commit complete it.
    """

    sequence: int
    who: str
    whom: str = ""
    """The represented person, or the identity used."""
    what: str
    which: str
    """Type, id and version of the document."""
    place: str = ""
    """Source of the action: an API call, or the engine's own work."""
    why: str = ""
    whence: str = ""
    """Cause of the action: a step, or the mutation itself."""
    how: str = ""
    """Category of the action: a business mutation, a workflow mutation, or a step."""


class StoredAudit(AuditMade, frozen=True, kw_only=True, gc=False):
    """An audit entry as it is read."""

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
