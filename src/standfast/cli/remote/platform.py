"""The plant, and whether what it holds is sound, asked of a server; see `remote`."""
# ruff: noqa: A002, D102 - the words of the engine's own calls, which say what they mean

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from standfast.calls.operator_views import (
    Backlog,
    GivenUp,
    InboxMessage,
    IncidentInfo,
    InstanceInfo,
    MissingHandler,
    ProjectionInfo,
    WorkerInfo,
)
from standfast.calls.paging import written
from standfast.cli.remote.lists import Missing, cursor_of, gathered, run_of, whole
from standfast.features.deciders.verification import Verification
from standfast.features.documents.invariants.views import InvariantPage, Mended, Violation
from standfast.features.operations.restore import SentEffect
from standfast.kernel.decision import Attribute
from standfast.kernel.ids import InstanceId

if TYPE_CHECKING:
    from standfast.client import Client
    from standfast.client.models import Listing


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

    def given_up(self) -> list[GivenUp]:
        return self._client.list_queues().given_up

    def missing_handlers(self) -> list[MissingHandler]:
        return self._client.list_missing_handlers()

    def incidents(self) -> list[IncidentInfo]:
        return self._client.list_incidents()

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

    def drop(self, projection: str) -> None:
        self._client.drop_projection(projection)


class RemoteInbox(Missing):
    """Commands that wait for their turn."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(
        self, *, definition: str = "", type: str = "", after: int = 0, limit: int = 100
    ) -> builtins.list[InboxMessage]:
        return gathered(
            lambda cursor, size: self._client.list_inbox(definition=definition, type=type, cursor=cursor, limit=size),
            written(after) if after else "",
            limit,
        )

    def bury(self, message: int) -> None:
        self._client.bury_message(message)


class RemoteInstances(Missing):
    """Instances of any kind."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(
        self,
        *,
        definition: str = "",
        kind: str = "",
        status: str | Sequence[str] = (),
        key: str = "",
        attributes: Mapping[str, Attribute] | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> builtins.list[InstanceInfo]:
        wanted = [f"{name}={msgspec.json.encode(value).decode()}" for name, value in (attributes or {}).items()]

        def ask(cursor: str, size: int) -> Listing[InstanceInfo]:
            return self._client.list_instances(
                definition=definition,
                kind=kind,
                status=(status,) if isinstance(status, str) and status else tuple(status),
                key=key,
                attribute=wanted,
                cursor=cursor,
                limit=size,
            )

        return gathered(ask, cursor_of(before), limit)

    def delete(self, instance: str, *, force: bool = False) -> None:
        self._client.delete_instance(run_of(instance), force=force)

    def sent(self, keys: Sequence[str]) -> builtins.list[SentEffect]:
        return self._client.compare_sent(keys=[*keys])

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
