"""What is asked of a database about documents.

Blueprints of documents as the database keeps them: contracts with their envelopes, bodies of organisations, and what was compiled of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

import msgspec

from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.documents import StoredDocument
from standfast.store.records.instances import StoredDefinition

BlueprintKind = Literal["envelope", "body", "effective"]
BlueprintStatus = Literal["draft", "published", "archived"]


class StoredBlueprint(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a contract, of a body, or of what was compiled; or the draft of a body."""

    id: str
    tenant: str
    """Whose it is; `SHARED_TENANT` for a contract that serves all tenants, and for what was compiled of it alone."""
    type: str
    """The type of the documents."""
    kind: BlueprintKind
    version: int
    """Counted from 1 for each kind; that of an envelope is its contract's. A draft has none: 0."""
    status: BlueprintStatus
    is_default: bool
    """Whether it is an envelope, of which nothing ever changes."""
    name: str
    envelope_version: int
    """That of the envelope itself, or of the one that a body is written for."""
    content: bytes
    """The contract, the body, or the artifact, as JSON; empty in lists."""
    hash: str
    """Over what it says."""
    skeleton: bytes | None = None
    """Of an envelope: nodes, edges and slots."""
    header: bytes | None = None
    """Of what was compiled: figures by which it can be judged without loading it."""
    compiler: str | None = None
    graph_hash: str | None = None
    workflow: str | None = None
    """The version under which its graph is published."""
    envelope: str | None = None
    """The id of the envelope that it was compiled of."""
    body: str | None = None
    """The id of the body that it was compiled of; None for the bare envelope."""
    replaces: int | None = None
    """Of a body: the version that was in force when its draft was begun; 0 if none was."""
    revision: int = 1
    """How often a draft was saved."""
    drafted_by: str = "[]"
    """A JSON list of everybody who saved it."""
    comment: str = ""
    created_by: str
    created_at: datetime
    updated_by: str
    updated_at: datetime
    published_by: str | None = None
    published_at: datetime | None = None
    archived_by: str | None = None
    archived_at: datetime | None = None
    archived_why: str = ""


class InForce(NamedTuple):
    """The workflow that a new document of a type begins with."""

    workflow: str
    status: BlueprintStatus
    """`archived` if all that a tenant has published are."""
    is_shared: bool
    version: int
    is_suspended: bool
    """Whether the tenant has taken it out of use."""


class Suspension(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow is taken out of use by a tenant, or put back."""

    tenant: str
    type: str
    workflow: str
    is_suspended: bool
    set_by: str
    set_at: datetime
    why: str
    batch: str
    """What the names of the batches begin with that have paused its documents."""


class PublishingRule(msgspec.Struct, frozen=True, kw_only=True):
    """What an organisation wants of those who publish."""

    tenant: str
    two_person: bool
    """Whether nobody may publish what they drafted."""
    set_by: str
    set_at: datetime


class BlueprintChange(Protocol):
    """A transaction that changes the blueprints of one type of one tenant; whoever wants to do the same waits, and sees what was done."""

    def listed(self, kind: BlueprintKind) -> list[StoredBlueprint]:
        """All of a kind that the tenant itself has, without their contents, oldest first; drafts are the last."""
        ...

    def add(self, blueprint: StoredBlueprint) -> None:
        """Store a new one."""
        ...

    def save(self, draft: StoredBlueprint) -> bool:
        """Replace a draft by its next revision; False if somebody has saved, published or discarded it since."""
        ...

    def publish(self, draft: StoredBlueprint) -> bool:
        """Make a draft, as it was last saved, the version that it is given; False as in `save`."""
        ...

    def archive(self, identity: str, *, by: str, at: datetime, why: str) -> bool:
        """Archive what is published; False if it is not."""
        ...

    def discard(self, identity: str) -> bool:
        """Forget a draft; False if there is none."""
        ...

    def publish_workflow(self, definition: StoredDefinition, now: datetime) -> bool:
        """Store the graph of what was compiled; False if its version exists."""
        ...

    def retire_workflow(self, version: str) -> None:
        """No new instance begins with a graph any more."""
        ...


class Blueprints(Protocol):
    """The blueprints of all tenants."""

    def changing(self, tenant: str, type_: str) -> AbstractContextManager[BlueprintChange]:
        """A transaction, committed at the end of the block, rolled back when it raises."""
        ...

    def get(self, tenant: str, identity: str) -> StoredBlueprint | None:
        """One of a tenant's, or a shared one."""
        ...

    def version(self, tenant: str, type_: str, kind: BlueprintKind, version: int) -> StoredBlueprint | None:
        """One version: the tenant's own, or else the shared one."""
        ...

    def listed(self, tenant: str, *, kind: BlueprintKind, type_: str = "") -> list[StoredBlueprint]:
        """All of a kind that a tenant has or shares, without their contents, by type; each oldest first."""
        ...

    def in_force_everywhere(self, type_: str) -> list[StoredBlueprint]:
        """The published bodies of all tenants for a type, by tenant."""
        ...

    def suspensions(self, tenant: str, type_: str) -> list[Suspension]:
        """What a tenant has taken out of use and put back, of a type or of all, oldest first."""
        ...

    def suspend(self, suspension: Suspension) -> bool:
        """Take a workflow out of use, or put it back; False if it is so already."""
        ...

    def rule(self, tenant: str) -> PublishingRule | None:
        """What an organisation wants of those who publish; None if it never said."""
        ...

    def set_rule(self, rule: PublishingRule) -> None:
        """From now on an organisation wants this."""
        ...


class DocumentQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which documents a page shows, newest first."""

    type: str
    status: str = ""
    """Empty means any."""
    requester: str = ""
    """Empty means anybody's."""
    before: InstanceId | None = None
    """The last one of the page before."""
    limit: int = 100


class Documents(Protocol):
    """The documents of one tenant."""

    def document(self, type_: str, id_: str, partition: str = "") -> StoredDocument | None:
        """One document of the reader's partition, or of the one that is named if the reader sees all: ids are of a partition, as keys are."""
        ...

    def documents(self, query: DocumentQuery) -> list[StoredDocument]:
        """A page of documents, newest first."""
        ...

    def touched_by(self, names: Sequence[str], instances: Sequence[InstanceId]) -> set[InstanceId]:
        """Those of the instances whose document somebody has done something to, or that goes on with another one, whose rows would tell."""
        ...

    def stand_in(self, type_: str, found: InForce) -> str:
        """The newest workflow before one that a tenant has taken out of use, of the same owner and in use, and of a body if that one is; empty if there is none."""
        ...

    def in_force(self, type_: str) -> InForce | None:
        """The workflow that a new document of a type begins with, as it was published with its contract or a body; None if none was."""
        ...
