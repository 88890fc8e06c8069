"""Reports, seals, and workflows of documents while documents go through them, asked of a server; see `remote`."""
# ruff: noqa: A002, D102 - the words of the engine's own calls, which say what they mean

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from standfast.cli.remote.lists import Missing, whole
from standfast.features.documents.content.views import DocumentMoves
from standfast.features.documents.publishing.views import WorkflowSuspension
from standfast.features.operations.reports import Report
from standfast.features.operations.seals import Seal, SealCheck, SealedPage
from standfast.kernel.ids import InstanceId

if TYPE_CHECKING:
    from standfast.client import Client


class RemoteReports(Missing):
    """What runs of a period tell of work as a whole."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def of(
        self,
        definition: str,
        *,
        version: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 10_000,
    ) -> Report:
        return self._client.report(definition, version=version, since=since, until=until, limit=limit)


class RemoteSeals(Missing):
    """What tells later whether anybody rewrote a history."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def seal(self, *, cursor: str | None = None, limit: int = 1000) -> SealedPage:
        return self._client.seal_histories(cursor=None if cursor is None else UUID(cursor), limit=limit)

    def verify(self, *, after: int = 0, limit: int = 1000) -> SealCheck:
        return self._client.verify_seals(after=after, limit=limit)

    def holds(self, number: int, link: str) -> bool:
        return self._client.hold_seal(number=number, link=link).holds

    def head(self) -> Seal | None:
        return self._client.last_seal().seal


class RemoteWorkflows(Missing):
    """Workflows of documents: out of use and back, and documents from one to another."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def suspend(self, type: str, workflow: str, reason: str) -> WorkflowSuspension:
        return self._client.suspend_workflow(type, workflow=workflow, reason=reason)

    def lift(self, type: str, workflow: str, reason: str) -> WorkflowSuspension:
        return self._client.lift_suspension(type, workflow=workflow, reason=reason)

    def suspensions(self, type: str = "") -> builtins.list[WorkflowSuspension]:
        return whole(lambda cursor, size: self._client.list_suspensions(type=type, cursor=cursor, limit=size))

    def move(  # noqa: PLR0913 - as the engine has it
        self,
        type: str,
        workflow: str,
        to: str,
        *,
        nodes: Mapping[str, str] | None = None,
        documents: Sequence[str] | None = None,
        reason: str,
        dry_run: bool = False,
        cursor: InstanceId | None = None,
        limit: int = 100,
    ) -> DocumentMoves:
        return self._client.move_documents(
            type,
            workflow=workflow,
            to=to,
            nodes=dict(nodes or {}),
            documents=None if documents is None else list(documents),
            reason=reason,
            dry_run=dry_run,
            cursor=cursor,
            limit=limit,
        )
