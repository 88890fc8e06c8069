"""Sessions, refusals, notifications and charters, asked of a server; see `remote`."""
# ruff: noqa: A002, D102 - the words of the engine's own calls, which say what they mean

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from standfast.calls.paging import written
from standfast.cli.remote.lists import Missing, gathered, run_of, whole
from standfast.features.access.views import RefusedRequest, Session
from standfast.features.documents.settings_calls import Charter
from standfast.features.runs.audit_entries import AuditEntry
from standfast.features.runs.views import Notification
from standfast.kernel.row_kinds.changes import Change

if TYPE_CHECKING:
    from standfast.client import Client


class RemoteSessions(Missing):
    """Sessions of browsers."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self, *, actor: str = "", after: str = "", limit: int = 100) -> builtins.list[Session]:
        place = written(after) if after else ""
        return gathered(
            lambda cursor, size: self._client.list_sessions(actor=actor, cursor=cursor, limit=size), place, limit
        )

    def end(self, session: str) -> Session:
        return self._client.end_session(session)


class RemoteRefusals(Missing):
    """Requests that were refused because of who asked."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self, *, before: int | None = None, limit: int = 100) -> builtins.list[RefusedRequest]:
        place = written(before) if before else ""
        return gathered(lambda cursor, size: self._client.list_refusals(cursor=cursor, limit=size), place, limit)


class RemoteAudit(Missing):
    """Who changed what."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def changes(
        self, *, subject: str = "", name: str = "", actor: str = "", before: int | None = None, limit: int = 100
    ) -> builtins.list[Change]:
        place = written(before) if before else ""
        return gathered(
            lambda cursor, size: self._client.list_audit_changes(
                subject=subject, name=name, actor=actor, cursor=cursor, limit=size
            ),
            place,
            limit,
        )

    def of(self, instance: str, *, after: int = 0, limit: int = 100) -> builtins.list[AuditEntry]:
        run, place = run_of(instance), written(after) if after else ""
        return gathered(lambda cursor, size: self._client.list_acts(run, cursor=cursor, limit=size), place, limit)


class RemoteNotifications(Missing):
    """What people were told."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def mine(self, *, unread: bool = False, after: int | None = None, limit: int = 100) -> list[Notification]:
        place = written(after) if after else ""
        return gathered(
            lambda cursor, size: self._client.list_notifications(unread=unread, cursor=cursor, limit=size),
            place,
            limit,
        )

    def mark_read(self, notification: int) -> None:
        self._client.mark_read(notification)

    def mark_all_read(self) -> int:
        return self._client.mark_all_read().count


class RemoteCharters(Missing):
    """Rules and settings of the organisation."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> builtins.list[Charter]:
        return whole(lambda cursor, size: self._client.list_charters(cursor=cursor, limit=size))

    def rules(self, type: str, version: int = 0) -> Charter:
        return self._client.get_charter(f"rules:{type}", version=version)

    def settings(self, version: int = 0) -> Charter:
        return self._client.get_charter("settings", version=version)

    def publish_rules(
        self, type: str, rules: Sequence[Mapping[str, object]], *, replaces: int | None = None, comment: str = ""
    ) -> Charter:
        given = [dict(each) for each in rules]
        return self._client.put_charter(f"rules:{type}", rules=given, if_version=replaces, comment=comment)

    def publish_settings(
        self, settings: Mapping[str, object], *, replaces: int | None = None, comment: str = ""
    ) -> Charter:
        return self._client.put_charter("settings", settings=dict(settings), if_version=replaces, comment=comment)
