"""Contracts, bodies and their drafts as callers see them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from standfast.errors import Diagnostic
from standfast.features.documents.body.diagnostics import BodyDiagnostic
from standfast.features.documents.body.format import Body
from standfast.features.documents.body.templates import BodyTemplateFile
from standfast.features.documents.compiler.contract_changes import ContractChange
from standfast.features.documents.contract.format import Contract
from standfast.store.ports.documents import StoredBlueprint
from standfast.store.records.instances import SHARED_TENANT

_drafters = msgspec.json.Decoder(list[str]).decode


class ContractVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a contract, and of the envelope that follows from it."""

    id: str
    type: str
    version: int
    envelope_version: int
    title: str
    hash: str
    """Over what the contract says; that of its export."""
    is_shared: bool
    """Whether all tenants have it; otherwise it is the tenant's own."""
    published_by: str
    published_at: datetime
    comment: str = ""
    contract: Contract | None = None
    """What it says; None in lists."""


class BrokenBody(msgspec.Struct, frozen=True, kw_only=True):
    """A published body that would not compile with a contract."""

    tenant: str
    type: str
    version: int
    problems: list[BodyDiagnostic]


class ContractCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What publishing a contract would mean."""

    type: str
    version: int
    changes: list[ContractChange]
    """What differs from the newest version; none if this is the first."""
    broken: list[BrokenBody]
    """Published bodies that would not compile with it: they go on as they are, and cannot be published again as they are."""
    problems: list[Diagnostic]
    """Why it cannot be published under its versions."""


class BodyDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A body that is worked on."""

    id: str
    type: str
    name: str
    revision: int
    """How often it was saved."""
    replaces: int
    """The version that was in force when it was begun; 0 if none was."""
    drafted_by: list[str]
    """Everybody who saved it."""
    envelope_version: int
    hash: str
    comment: str
    created_by: str
    created_at: datetime
    updated_by: str
    updated_at: datetime
    body: Body | None = None
    """What it says; None in lists, and where its form has mistakes."""
    problems: list[BodyDiagnostic] = []
    """Why it cannot be published as it is; not looked for in lists."""
    warnings: list[Diagnostic] = []
    """What is odd about it."""
    source: str = ""
    """What it says as YAML, where its form has mistakes: the problems name lines and columns of this text."""


class BodyCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What the validator says of a body."""

    type: str
    problems: list[BodyDiagnostic]
    warnings: list[Diagnostic]
    failures: list[Diagnostic] = []
    """The scenarios that do not come out as they should, each with an account of what happened."""

    @property
    def is_sound(self) -> bool:
        """Whether it could be published."""
        return not self.problems and not self.failures


class BodyVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a body that was published, and the workflow that was compiled of it."""

    id: str
    type: str
    version: int
    status: Literal["published", "archived"]
    name: str
    hash: str
    envelope_version: int
    workflow_version: str
    """The version of the workflow that documents are pinned to."""
    effective_id: str
    effective_version: int
    envelope_id: str
    """The contract version that it was compiled with."""
    contract_version: int
    compiler: str
    graph_hash: str
    """The same whenever the workflow is the same."""
    effective_hash: str
    drafted_by: list[str]
    comment: str
    published_by: str
    published_at: datetime
    archived_by: str = ""
    archived_at: datetime | None = None
    archived_why: str = ""
    body: Body | None = None
    """What it says; None in lists."""


class WorkflowSuspension(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow of documents was taken out of use, or put back."""

    type: str
    workflow_version: str
    is_suspended: bool
    set_by: str
    set_at: datetime
    why: str
    batches: list[str] = []
    """The batches that pause its documents, or have them go on: how far they are is told by them."""


class PublishingRules(msgspec.Struct, frozen=True, kw_only=True):
    """What an organisation wants of those who publish its bodies."""

    two_person: bool = False
    """Whether nobody may publish what they drafted."""
    set_by: str = ""
    set_at: datetime | None = None


class BodyTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A template of a body in a list."""

    name: str
    title: str
    type: str
    description: str
    params: dict[str, dict[str, object]]
    """What can be said, each with its type, its default and what it is for."""


def contract_version(row: StoredBlueprint, contract: Contract | None = None) -> ContractVersion:
    """A contract from its row."""
    assert row.published_at is not None
    return ContractVersion(
        id=row.id,
        type=row.type,
        version=row.version,
        envelope_version=row.envelope_version,
        title=row.name,
        hash=row.hash,
        is_shared=row.tenant == SHARED_TENANT,
        published_by=row.published_by or "",
        published_at=row.published_at,
        comment=row.comment,
        contract=contract,
    )


def body_draft(
    row: StoredBlueprint, body: Body | None = None, check: BodyCheck | None = None, *, source: str = ""
) -> BodyDraft:
    """A draft from its row."""
    return BodyDraft(
        id=row.id,
        type=row.type,
        name=row.name,
        revision=row.revision,
        replaces=row.replaces or 0,
        drafted_by=drafters_of(row),
        envelope_version=row.envelope_version,
        hash=row.hash,
        comment=row.comment,
        created_by=row.created_by,
        created_at=row.created_at,
        updated_by=row.updated_by,
        updated_at=row.updated_at,
        body=body,
        problems=[] if check is None else check.problems,
        warnings=[] if check is None else check.warnings,
        source=source,
    )


def body_version(
    row: StoredBlueprint, effective: StoredBlueprint, contract: int, body: Body | None = None
) -> BodyVersion:
    """A published body from its row, that of what was last compiled of it, and the version of the contract."""
    assert row.published_at is not None
    assert row.status != "draft"
    return BodyVersion(
        id=row.id,
        type=row.type,
        version=row.version,
        status=row.status,
        name=row.name,
        hash=row.hash,
        envelope_version=row.envelope_version,
        workflow_version=effective.workflow or "",
        effective_id=effective.id,
        effective_version=effective.version,
        envelope_id=effective.envelope or "",
        contract_version=contract,
        compiler=effective.compiler or "",
        graph_hash=effective.graph_hash or "",
        effective_hash=effective.hash,
        drafted_by=drafters_of(row),
        comment=row.comment,
        published_by=row.published_by or "",
        published_at=row.published_at,
        archived_by=row.archived_by or "",
        archived_at=row.archived_at,
        archived_why=row.archived_why,
        body=body,
    )


def body_template(template: BodyTemplateFile) -> BodyTemplate:
    """A template in a list."""
    return BodyTemplate(
        name=template.template,
        title=template.title,
        type=template.entity_type,
        description=template.description,
        params={name: msgspec.to_builtins(each) for name, each in template.params.items()},
    )


def drafters_of(row: StoredBlueprint) -> list[str]:
    """Everybody who saved a draft."""
    return _drafters(row.drafted_by)
