"""Ports for documents, and for their definitions: contracts with envelopes, bodies of organisations, and the artifacts compiled from both."""

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
    """One version of a contract, a body or a compiled artifact, or the draft of a body."""

    id: str
    tenant: str
    """Owner. `SHARED_TENANT` for a contract for all tenants, and for its artifacts without a body."""
    type: str
    """The type of the documents."""
    kind: BlueprintKind
    version: int
    """Counted from 1 for each kind. An envelope has its contract's version, a draft 0."""
    status: BlueprintStatus
    is_default: bool
    """Whether it is an envelope, which never changes."""
    name: str
    envelope_version: int
    """Version of the envelope, or of the one that a body is written for."""
    content: bytes
    """The contract, the body or the artifact as JSON. Empty in lists."""
    hash: str
    """Hash of its content."""
    skeleton: bytes | None = None
    """For an envelope: its nodes, edges and slots."""
    header: bytes | None = None
    """For an artifact: figures that describe it without loading it."""
    compiler: str | None = None
    graph_hash: str | None = None
    workflow: str | None = None
    """The version under which its graph is published."""
    envelope: str | None = None
    """Id of the envelope that it was compiled from."""
    body: str | None = None
    """Id of the body that it was compiled from. None for the bare envelope."""
    replaces: int | None = None
    """For a body: the version that was active when its draft was begun, 0 without one."""
    revision: int = 1
    """How often the draft was saved."""
    drafted_by: str = "[]"
    """JSON list of all authors of the draft."""
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
    """The active workflow for new documents of a type."""

    workflow: str
    status: BlueprintStatus
    """`archived` if all published versions of the tenant are."""
    is_shared: bool
    version: int
    is_suspended: bool
    """Whether the tenant has suspended it."""


class Suspension(msgspec.Struct, frozen=True, kw_only=True):
    """The suspension of a workflow by a tenant, or its reactivation."""

    tenant: str
    type: str
    workflow: str
    is_suspended: bool
    set_by: str
    set_at: datetime
    why: str
    batch: str
    """Prefix of the names of the batches that paused its documents."""


class PublishingRule(msgspec.Struct, frozen=True, kw_only=True):
    """An organisation's rule for publishing."""

    tenant: str
    two_person: bool
    """Whether authors of a draft may not publish it."""
    set_by: str
    set_at: datetime


class BlueprintChange(Protocol):
    """A transaction on the definitions of one document type of one tenant.

    It locks the type, so that concurrent changes wait.
    """

    def listed(self, kind: BlueprintKind) -> list[StoredBlueprint]:
        """Return all of the tenant's own definitions of a kind without their contents, oldest first, drafts last."""
        ...

    def add(self, blueprint: StoredBlueprint) -> None:
        """Store a new definition."""
        ...

    def save(self, draft: StoredBlueprint) -> bool:
        """Replace a draft by its next revision. Return False if it was saved, published or discarded meanwhile."""
        ...

    def publish(self, draft: StoredBlueprint) -> bool:
        """Turn the last saved draft into the given version. Return False as in `save`."""
        ...

    def archive(self, identity: str, *, by: str, at: datetime, why: str) -> bool:
        """Archive a published version. Return False if it is not published."""
        ...

    def discard(self, identity: str) -> bool:
        """Delete a draft. Return False if there is none."""
        ...

    def publish_workflow(self, definition: StoredDefinition, now: datetime) -> bool:
        """Store the graph of an artifact. Return False if its version exists."""
        ...

    def retire_workflow(self, version: str) -> None:
        """Exclude a graph from starting new instances."""
        ...


class Blueprints(Protocol):
    """The document definitions of all tenants."""

    def changing(self, tenant: str, type_: str) -> AbstractContextManager[BlueprintChange]:
        """Open a transaction, committed at the end of the block and rolled back when it raises."""
        ...

    def get(self, tenant: str, identity: str) -> StoredBlueprint | None:
        """Return a definition of the tenant, or a shared one."""
        ...

    def version(self, tenant: str, type_: str, kind: BlueprintKind, version: int) -> StoredBlueprint | None:
        """Return one version: the tenant's own, or else the shared one."""
        ...

    def listed(self, tenant: str, *, kind: BlueprintKind, type_: str = "") -> list[StoredBlueprint]:
        """Return all definitions of a kind that a tenant owns or shares, without their contents, by type, each oldest first."""
        ...

    def in_force_everywhere(self, type_: str) -> list[StoredBlueprint]:
        """Return the published bodies of all tenants for a type, by tenant."""
        ...

    def suspensions(self, tenant: str, type_: str) -> list[Suspension]:
        """Return a tenant's suspensions and reactivations, of one type or of all, oldest first."""
        ...

    def suspend(self, suspension: Suspension) -> bool:
        """Suspend or reactivate a workflow. Return False if that is already its state."""
        ...

    def rule(self, tenant: str) -> PublishingRule | None:
        """Return an organisation's rule for publishing, or None."""
        ...

    def set_rule(self, rule: PublishingRule) -> None:
        """Set an organisation's rule for publishing."""
        ...


class DocumentQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Filter for a page of documents, newest first."""

    type: str
    status: str = ""
    """Empty matches all."""
    requester: str = ""
    """Empty matches all."""
    before: InstanceId | None = None
    """The last document of the previous page."""
    limit: int = 100


class Documents(Protocol):
    """The documents of one tenant."""

    def document(self, type_: str, id_: str, partition: str = "") -> StoredDocument | None:
        """Return a document of the reader's partition, or of the named one if the reader sees all.

        Ids are unique within a partition.
        """
        ...

    def documents(self, query: DocumentQuery) -> list[StoredDocument]:
        """Return a page of documents, newest first."""
        ...

    def touched_by(self, names: Sequence[str], instances: Sequence[InstanceId]) -> set[InstanceId]:
        """Return the instances whose document one of these people has changed, or that continue another document."""
        ...

    def stand_in(self, type_: str, found: InForce) -> str:
        """Return the newest earlier workflow that replaces a suspended one.

        It has the same owner, and a body if the suspended one has one. Empty if there is none.
        """
        ...

    def in_force(self, type_: str) -> InForce | None:
        """Return the active workflow for new documents of a type, as published with its contract or a body.

        None without one.
        """
        ...
