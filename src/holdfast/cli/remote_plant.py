"""The plant, and whether what it holds is sound, asked of a server; see `remote`."""
# ruff: noqa: D102 - the words of the engine's own calls, which say what they mean

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.app.invariants.views import InvariantPage, Mended, Violation
from holdfast.app.operator_views import Backlog, MissingHandler, ProjectionInfo, WorkerInfo
from holdfast.app.verification import Verification
from holdfast.cli.remote_lists import Missing, whole
from holdfast.kernel.ids import InstanceId

if TYPE_CHECKING:
    from holdfast.client import Client


class RemoteAdmin(Missing):
    """What concerns all tenants."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def pause_processing(self) -> None:
        self._client.maintain(mode="pause")

    def refuse_commands(self) -> None:
        self._client.maintain(mode="refuse")

    def resume_processing(self) -> None:
        self._client.maintain(mode="none")

    def backlog(self) -> list[Backlog]:
        return self._client.list_queues().items

    def missing_handlers(self) -> list[MissingHandler]:
        return self._client.list_missing_handlers()

    def inbox_depth(self) -> int:
        return self._client.list_queues().inbox_depth

    def workers(self) -> list[WorkerInfo]:
        return self._client.list_workers()


class RemoteProjections(Missing):
    """Read models."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> builtins.list[ProjectionInfo]:
        return self._client.list_projections()


class RemoteInstances(Missing):
    """Runs, held against their histories."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def verify(self, instance: InstanceId | str) -> Verification:
        return self._client.verify_execution(instance)


class RemoteInvariants(Missing):
    """The rules that every document keeps."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def workflows(self, *, rules: Sequence[str] = ()) -> list[Violation]:
        found = whole(lambda cursor, size: self._client.check_workflows(cursor=cursor, limit=size))
        return [each for each in found if not rules or each.rule in rules]

    def patrol(self, *, limit: int = 1000, rules: Sequence[str] = (), anew: bool = False) -> InvariantPage:
        return self._client.patrol_documents(limit=limit, rules=list(rules), anew=anew)

    def repair(self, document: InstanceId | str, *, reason: str) -> Mended:
        return self._client.repair_document(document, reason=reason)
