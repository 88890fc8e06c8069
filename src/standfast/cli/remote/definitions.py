"""What is published, what happens, and what is held back, asked of a server; see `remote`."""
# ruff: noqa: D102 - the words of the engine's own calls, which say what they mean

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from standfast.calls.operator_views import ArchivedDefinition, DefinitionInfo, PauseInfo
from standfast.calls.paging import written
from standfast.cli.remote.lists import Missing, ending, gathered, in_json, whole
from standfast.errors import ConfigurationError, RejectedError
from standfast.features.definitions.files import FileChanges, FilePublication
from standfast.features.events.views import PublishedEvent
from standfast.features.runs.pauses.pause_points import PausePoint, PauseTrigger
from standfast.features.simulation import DryRun
from standfast.graph.definition import definition_of
from standfast.graph.model import Graph
from standfast.kernel.row_kinds.steps import PauseClock

if TYPE_CHECKING:
    from standfast.client import Client

Format = Literal["mermaid", "dot", "json"]
_OTHERS: Final = "a server pauses what is the key's own: leave out --of-tenant, or work on a database"


class RemoteDefinitions(Missing):
    """Workflows as they were published."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def publish_file(self, text: str | bytes, *, name: str = "the file", check: bool = False) -> FilePublication:
        return self._client.publish_file(text if isinstance(text, bytes) else text.encode(), name=name, check=check)

    def dry_run(  # noqa: PLR0913 - as the engine has it
        self,
        definition: str,
        input: dict[str, object] | None = None,  # noqa: A002 - the word that everybody uses for it
        *,
        version: str = "",
        decisions: Mapping[str, str | Sequence[str]] | None = None,
        forms: Mapping[str, object] | None = None,
        answers: Mapping[str, object] | None = None,
        failing: Sequence[str] = (),
        events: Mapping[str, object] | None = None,
        unanswered: Sequence[str] = (),
    ) -> DryRun:
        return self._client.dry_run_definition(
            definition,
            input=input,
            version=version,
            decisions=in_json(decisions),
            forms=dict(forms or {}),
            answers=dict(answers or {}),
            failing=failing,
            events=dict(events or {}),
            unanswered=unanswered,
        )

    def diff_file(self, text: str | bytes, version: str = "", *, workflow: str = "") -> FileChanges:
        told = text if isinstance(text, bytes) else text.encode()
        return self._client.diff_file(told, version=version, workflow=workflow)

    def archive(self, definition: str, version: str, *, reason: str = "") -> None:
        self._client.archive_definition(definition, version=version, reason=reason)

    def restore(self, definition: str, version: str) -> None:
        self._client.restore_definition(definition, version=version)

    def archived(self) -> builtins.list[ArchivedDefinition]:
        return whole(lambda cursor, size: self._client.list_archived(cursor=cursor, limit=size))

    def list(self) -> builtins.list[DefinitionInfo]:
        return whole(lambda cursor, size: self._client.list_definitions(cursor=cursor, limit=size))

    def get(self, definition: str, version: str = "") -> Graph:
        return definition_of(self.data(definition, version)).graph

    def data(self, definition: str, version: str = "") -> dict[str, object]:
        return self._client.get_source(definition, version=version)

    def diff(self, definition: str, old: str, new: str = "") -> FileChanges:
        return self._client.diff_definition(definition, old=old, new=new)

    def pause_points(
        self, definition: str, version: str = "", *, trigger: PauseTrigger | Literal[""] = ""
    ) -> builtins.list[PausePoint]:
        return self._client.list_pause_points(definition, version=version, trigger=trigger)

    def diagram(self, definition: str, version: str = "", *, format: Format = "mermaid") -> str:  # noqa: A002 - as the engine has it
        return self._client.draw_definition(definition, version=version, format=format).source


class RemoteEvents(Missing):
    """What is published to whoever waits for it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def publish(
        self,
        event: str,
        key: str = "",
        payload: object = None,
        *,
        event_id: str = "",
        ttl: timedelta | None = None,
        match_one: bool = False,
    ) -> str:
        seconds = None if ttl is None else ttl.total_seconds()
        return self._client.publish_event(
            event=event, key=key, payload=payload, event_id=event_id, ttl_seconds=seconds, match_one=match_one
        ).id

    def list(
        self, *, event: str = "", after: PublishedEvent | None = None, limit: int = 100
    ) -> builtins.list[PublishedEvent]:
        place = "" if after is None else written([after.published_at, after.instance])
        return gathered(
            lambda cursor, size: self._client.list_events(event=event, cursor=cursor, limit=size), place, limit
        )

    def get(self, event_id: str) -> PublishedEvent:
        return self._client.get_event(event_id)


class RemotePauses(Missing):
    """What is held back."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def pause(
        self,
        definition: str | None = None,
        *,
        version: str | None = None,
        step: str | None = None,
        tenant: str | None = None,
        reason: str = "",
        clock: PauseClock = "run_on",
        until: datetime | timedelta | None = None,
    ) -> PauseInfo:
        _check_own(tenant)
        return self._client.begin_pause(
            definition=definition, version=version, step=step, reason=reason, clock=clock, **ending(until)
        )

    def resume(
        self,
        definition: str | int | None = None,
        *,
        version: str | None = None,
        step: str | None = None,
        tenant: str | None = None,
        reason: str = "",
    ) -> PauseInfo:
        _check_own(tenant)
        if isinstance(definition, int):
            return self._client.end_pause(definition, reason=reason)
        wanted = (definition or "", version or "", step or "")
        for each in whole(lambda cursor, size: self._client.list_pauses(cursor=cursor, limit=size)):
            if (each.definition, each.version, each.step) == wanted and each.tenant != "*":
                return self._client.end_pause(each.id, reason=reason)
        raise RejectedError(reason="not_paused", message="there is no such pause; `standfast pauses list` shows those")

    def list(
        self, *, tenant: str = "", with_ended: bool = False, before: int | None = None, limit: int = 100
    ) -> builtins.list[PauseInfo]:
        _check_own(tenant)
        place = written(before) if before else ""
        return gathered(
            lambda cursor, size: self._client.list_pauses(with_ended=with_ended, cursor=cursor, limit=size),
            place,
            limit,
        )

    def get(self, pause: int) -> PauseInfo:
        return self._client.get_pause(pause)


def _check_own(tenant: str | None) -> None:
    if tenant:
        raise ConfigurationError(_OTHERS)
