"""Documents, what they are made of, and whether their rules hold, asked of a server; see `remote`."""
# ruff: noqa: A002, D102 - the words of the engine's own calls, which say what they mean

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from standfast.cli.remote.lists import Missing, cursor_of, in_json, paged, place_in, whole
from standfast.features.documents.body.format import export_yaml
from standfast.features.documents.compiler.contract_changes import ContractChange
from standfast.features.documents.compiler.workflow_diff import Difference
from standfast.features.documents.content.views import (
    AuditLine,
    DocumentChoice,
    DocumentLink,
    DocumentMutation,
    DocumentPage,
    DocumentRound,
    DocumentVersion,
    DocumentView,
    EditCheck,
    FieldDifference,
)
from standfast.features.documents.contract.format import Contract
from standfast.features.documents.publishing.views import (
    BodyCheck,
    BodyDraft,
    BodyTemplate,
    BodyVersion,
    ContractCheck,
    ContractVersion,
    PublishingRules,
)
from standfast.features.documents.redaction import Redaction
from standfast.features.documents.scenarios.scenarios import ScenarioResult
from standfast.features.simulation.dry_run import DryRun

if TYPE_CHECKING:
    from standfast.client import Client


class RemoteDocuments(Missing):
    """Documents."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def create(
        self, type: str, data: dict[str, object], *, id: str = "", reason: str = "", idempotency_key: str = ""
    ) -> DocumentView:
        return self._client.create_document(type, data=data, id=id, reason=reason, idempotency_key=idempotency_key)

    def mutate(
        self,
        type: str,
        id: str,
        changes: dict[str, object] | None = None,
        *,
        action: str = "update",
        expected_version: int | None = None,
        reason: str = "",
        idempotency_key: str = "",
    ) -> DocumentView:
        return self._client.change_document(
            type,
            id,
            changes=changes,
            action=action,
            if_version=expected_version,
            reason=reason,
            idempotency_key=idempotency_key,
        )

    def adopt(
        self, type: str, id: str, data: dict[str, object], *, status: str, version: int = 1, reason: str = ""
    ) -> DocumentView:
        return self._client.adopt_document(type, id, data=data, status=status, version=version, reason=reason)

    def check_edit(
        self, type: str, id: str, changes: dict[str, object] | None = None, *, action: str = "update"
    ) -> EditCheck:
        return self._client.check_edit(type, id, changes=changes, action=action)

    def notify_mutation(
        self,
        type: str,
        id: str,
        changes: dict[str, object] | None = None,
        *,
        action: str = "update",
        reason: str = "",
        idempotency_key: str = "",
    ) -> DocumentView:
        return self._client.notify_mutation(
            type, id, changes=changes, action=action, reason=reason, idempotency_key=idempotency_key
        )

    def transition(
        self, type: str, id: str, transition: str, *, expected_version: int | None = None, reason: str = ""
    ) -> DocumentView:
        return self._client.ask_transition(type, id, transition=transition, if_version=expected_version, reason=reason)

    def amend(
        self,
        type: str,
        id: str,
        changes: dict[str, object],
        *,
        new_id: str = "",
        expected_version: int | None = None,
        reason: str = "",
    ) -> DocumentView:
        return self._client.amend_document(
            type, id, changes=changes, new_id=new_id, if_version=expected_version, reason=reason
        )

    def get(self, type: str, id: str) -> DocumentView:
        return self._client.read_document(type, id)

    def versions(self, type: str, id: str) -> builtins.list[DocumentVersion]:
        return whole(lambda cursor, size: self._client.list_document_versions(type, id, cursor=cursor, limit=size))

    def version(self, type: str, id: str, version: int) -> DocumentVersion:
        return self._client.get_document_version(type, id, version)

    def page(self, type: str, id: str, version: int | None = None) -> str:
        return self._client.get_document_page(type, id, self.get(type, id).version if version is None else version)

    def redact(self, type: str, id: str, fields: Sequence[str] | None = None, *, reason: str) -> Redaction:
        return self._client.redact_document(type, id, fields=None if fields is None else list(fields), reason=reason)

    def diff(self, type: str, id: str, old: int, new: int) -> builtins.list[FieldDifference]:
        return self._client.diff_document(type, id, old=old, new=new).fields

    def mutations(self, type: str, id: str) -> builtins.list[DocumentMutation]:
        return whole(lambda cursor, size: self._client.list_document_mutations(type, id, cursor=cursor, limit=size))

    def audit(self, type: str, id: str) -> builtins.list[AuditLine]:
        return whole(lambda cursor, size: self._client.list_document_audit(type, id, cursor=cursor, limit=size))

    def rounds(self, type: str, id: str) -> builtins.list[DocumentRound]:
        return whole(lambda cursor, size: self._client.list_document_rounds(type, id, cursor=cursor, limit=size))

    def links(self, type: str, id: str) -> builtins.list[DocumentLink]:
        return whole(lambda cursor, size: self._client.list_document_links(type, id, cursor=cursor, limit=size))

    def choices(self, type: str, id: str) -> builtins.list[DocumentChoice]:
        return whole(lambda cursor, size: self._client.list_document_choices(type, id, cursor=cursor, limit=size))

    def list(
        self, type: str, *, status: str = "", requester: str = "", cursor: str | None = None, limit: int = 100
    ) -> DocumentPage:
        found, after = paged(
            lambda place, size: self._client.list_documents(
                type, status=status, requester=requester, cursor=place, limit=size
            ),
            cursor_of(cursor),
            limit,
        )
        return DocumentPage(items=found, next=place_in(after))


class RemoteContracts(Missing):
    """What types of documents are."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def publish(self, contract: Contract, *, force: bool = False, comment: str = "") -> ContractVersion:
        return self._client.publish_contract(export_yaml(contract).encode(), force=force, comment=comment)

    def check(self, contract: Contract) -> ContractCheck:
        return self._client.check_contract(export_yaml(contract).encode())

    def get(self, type: str, version: int = 0) -> ContractVersion:
        return self._client.get_contract(type, version=version)

    def list(self) -> builtins.list[ContractVersion]:
        return whole(lambda cursor, size: self._client.list_contracts(cursor=cursor, limit=size))

    def versions(self, type: str) -> builtins.list[ContractVersion]:
        return whole(lambda cursor, size: self._client.list_contract_versions(type, cursor=cursor, limit=size))

    def diff(self, type: str, old: int, new: int = 0) -> builtins.list[ContractChange]:
        return self._client.diff_contract(type, old=old, new=new).changes

    def recompile(self, type: str = "", *, dry_run: bool = False) -> builtins.list[ContractVersion]:
        return self._client.recompile_contracts(type=type, dry_run=dry_run).contracts

    def export(self, type: str, version: int = 0) -> str:
        return self._client.export_contract(type, version=version).source


class RemoteBodies(Missing):
    """What organisations put into the slots of their documents."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def templates(self) -> builtins.list[BodyTemplate]:
        return whole(lambda cursor, size: self._client.list_templates(cursor=cursor, limit=size))

    def instantiate(
        self, template: str, params: Mapping[str, str | int] | None = None, *, type: str = "", comment: str = ""
    ) -> BodyDraft:
        return self._client.instantiate_template(template, params=dict(params or {}), type=type, comment=comment)

    def save(self, body: bytes, *, draft: str = "", revision: int | None = None, comment: str = "") -> BodyDraft:
        if not draft:
            return self._client.begin_draft(body, comment=comment)
        return self._client.save_draft(draft, body, comment=comment, if_version=revision)

    def drafts(self, type: str = "") -> builtins.list[BodyDraft]:
        return whole(lambda cursor, size: self._client.list_drafts(type=type, cursor=cursor, limit=size))

    def discard(self, draft: str) -> None:
        self._client.discard_draft(draft)

    def rebase(self, type: str) -> BodyDraft:
        return self._client.rebase_body(type)

    def check(self, body: bytes) -> BodyCheck:
        return self._client.check_body(body)

    def publish(
        self, draft: str, *, revision: int | None = None, replaces: int | None = None, comment: str = ""
    ) -> BodyVersion:
        return self._client.publish_draft(draft, revision=revision, replaces=replaces, comment=comment)

    def rollback(self, type: str, version: int, *, comment: str = "") -> BodyVersion:
        return self._client.roll_back_body(type, version=version, comment=comment)

    def archive(self, type: str, reason: str = "") -> BodyVersion:
        return self._client.archive_body(type, reason=reason)

    def recompile(self, type: str = "", *, dry_run: bool = False) -> builtins.list[BodyVersion]:
        return self._client.recompile_bodies(type=type, dry_run=dry_run).bodies

    def list(self) -> builtins.list[BodyVersion]:
        return whole(lambda cursor, size: self._client.list_bodies(cursor=cursor, limit=size))

    def versions(self, type: str) -> builtins.list[BodyVersion]:
        return whole(lambda cursor, size: self._client.list_body_versions(type, cursor=cursor, limit=size))

    def get(self, type: str, version: int = 0) -> BodyVersion:
        return self._client.get_body(type, version=version)

    def diff(self, type: str, version: int = 0, *, against: int | None = None, draft: str = "") -> Difference:
        if draft:
            return self._client.diff_draft(draft, against=against)
        return self._client.diff_body(type, version=version, against=against)

    def export(self, type: str = "", version: int = 0, *, draft: str = "") -> str:
        told = self._client.export_draft(draft) if draft else self._client.export_body(type, version=version)
        return told.source

    def scenarios(self, type: str = "", version: int = 0, *, draft: str = "") -> builtins.list[ScenarioResult]:
        told = self._client.play_draft(draft) if draft else self._client.play_body(type, version=version)
        return told.results

    def dry_run(  # noqa: PLR0913 - as the engine has it
        self,
        type: str,
        data: Mapping[str, object] | None = None,
        *,
        document: str = "",
        draft: str = "",
        decisions: Mapping[str, str | Sequence[str]] | None = None,
        forms: Mapping[str, object] | None = None,
        answers: Mapping[str, object] | None = None,
        failing: Sequence[str] = (),
        events: Mapping[str, object] | None = None,
        unanswered: Sequence[str] = (),
    ) -> DryRun:
        return self._client.dry_run_body(
            type,
            data=dict(data or {}),
            document=document,
            draft=draft,
            decisions=in_json(decisions),
            forms=dict(forms or {}),
            answers=dict(answers or {}),
            failing=failing,
            events=dict(events or {}),
            unanswered=unanswered,
        )

    def rules(self) -> PublishingRules:
        return self._client.get_publishing_rules()

    def govern(self, *, two_person: bool) -> PublishingRules:
        return self._client.put_publishing_rules(two_person=two_person)
