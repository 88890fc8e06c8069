"""The calls of an engine that is elsewhere: the words of the commands, asked of a server by the typed client.

Each class has those calls of the engine's own (`app/api/sync`) that commands use and a server offers, with the same parameters; a test
compares them. What is missing is refused in a sentence.
"""
# ruff: noqa: D102 - the words of the engine's own calls, which say what they mean

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal
from uuid import UUID

from standfast.calls.operator_views import DeadLetter
from standfast.calls.paging import written
from standfast.calls.references import checked_instance
from standfast.cli.remote.access import (
    RemoteAudit,
    RemoteCharters,
    RemoteNotifications,
    RemoteRefusals,
    RemoteSessions,
)
from standfast.cli.remote.definitions import RemoteDefinitions, RemoteEvents, RemotePauses
from standfast.cli.remote.directory import RemoteChains, RemoteDirectory
from standfast.cli.remote.documents import RemoteBodies, RemoteContracts, RemoteDocuments
from standfast.cli.remote.lists import (
    MOST,
    Missing,
    cursor_of,
    ending,
    gathered,
    object_of,
    paged,
    paused_behind,
    place_in,
    run_of,
)
from standfast.cli.remote.people import RemoteProcesses, RemoteTasks
from standfast.cli.remote.platform import (
    RemoteAdmin,
    RemoteInbox,
    RemoteInstances,
    RemoteInvariants,
    RemoteProjections,
)
from standfast.cli.remote.reports import RemoteReports, RemoteSeals, RemoteWorkflows
from standfast.cli.remote.schedules import RemoteBatches, RemoteSchedules
from standfast.engine.common.health import Health
from standfast.features.access.views import ApiKey, NewApiKey
from standfast.features.operations.dead_letter_groups import LetterGroups
from standfast.features.runs import views
from standfast.features.runs.explain import RunExplanation
from standfast.features.runs.fork import ForkPreview
from standfast.features.runs.history import PastState
from standfast.features.runs.pauses.views import ResumeOption, ResumeRequest
from standfast.kernel.actor import Actor, RequestContext
from standfast.kernel.row_kinds.steps import DeadLetterSource, PauseClock

if TYPE_CHECKING:
    from standfast.client import Client
    from standfast.client.models import Listing

_LOOK_SECONDS: Final = 0.2

Format = Literal["mermaid", "dot", "json"]


class RemoteRun(Missing):
    """One run."""

    def __init__(self, client: Client, run: str | UUID) -> None:
        self._client = client
        self.id = run

    def result(self, timeout: float | None = None) -> object:
        return self._client.result(self.id, timeout)

    def describe(self) -> views.WorkflowInstance:
        return self._client.get_execution(self.id)

    def steps(self) -> list[views.Step]:
        return self._client.list_steps(self.id)

    def history(self, *, after: int = 0, limit: int | None = None) -> list[views.HistoryEntry]:
        found: list[views.HistoryEntry] = []
        while limit is None or len(found) < limit:
            page = self._client.list_history(self.id, after=after, limit=MOST if limit is None else limit - len(found))
            if not page:
                break
            found += page
            after = page[-1].sequence
        return found

    def diagram(self, *, format: Format = "mermaid") -> str:  # noqa: A002 - as the engine has it
        return self._client.draw_execution(self.id, format=format).source

    def why(self) -> RunExplanation:
        return self._client.explain(self.id)

    def signal(self, name: str, payload: object = None, *, command_id: str = "") -> None:
        self._client.signal_execution(self.id, name=name, payload=payload, command_id=command_id)

    def cancel(self, reason: str = "", *, timeout: float | None = None) -> str:
        return self._ended(self._client.cancel_execution(self.id, reason=reason).is_finished, timeout)

    def abort(self, reason: str = "", *, timeout: float | None = None) -> str:
        return self._ended(self._client.abort_execution(self.id, reason=reason).is_finished, timeout)

    def pause(
        self, reason: str = "", *, clock: PauseClock | None = None, until: datetime | timedelta | None = None
    ) -> None:
        self._client.pause_execution(self.id, reason=reason, clock=clock, **ending(until))

    def resume(
        self,
        reason: str = "",
        *,
        data: dict[str, object] | None = None,
        override: bool = False,
        task: str | None = None,
        triggered_by_id: str = "",
    ) -> None:
        self._client.resume_execution(
            self.id, reason=reason, metadata=data, override=override, task=task, idempotency_key=triggered_by_id
        )

    def retry(self, step: int, *, reason: str, input: object = None) -> None:  # noqa: A002 - as the engine has it
        self._client.retry_step(self.id, step, reason=reason, input=object_of(input))

    def skip(self, step: int, *, reason: str, outcome: str = "") -> None:
        self._client.skip_step(self.id, step, reason=reason, outcome=outcome)

    def reenqueue(self, step: int, *, reason: str) -> None:
        self._client.reenqueue_step(self.id, step, reason=reason)

    def resume_options(self) -> list[ResumeOption]:
        return self._client.list_resume_options(self.id)

    def request_resume(
        self, reason: str = "", *, data: dict[str, object] | None = None, triggered_by_id: str = ""
    ) -> ResumeRequest:
        return self._client.request_resume(self.id, reason=reason, metadata=data, idempotency_key=triggered_by_id)

    def resume_requests(self) -> list[ResumeRequest]:
        return self._client.list_resume_requests(self.id)

    def complete_step(self, step: int, output: object = None, *, reason: str) -> None:
        self._client.complete_step(self.id, step, output=output, reason=reason)

    def change_data(self, patch: dict[str, object], *, reason: str, token: str = "") -> None:
        self._client.change_data(self.id, patch=patch, reason=reason, token=token)

    def cancel_branch(self, token: str, *, reason: str) -> None:
        self._client.cancel_branch(self.id, token=token, reason=reason)

    def move_back(self, save_point: str = "", *, reason: str) -> None:
        self._client.move_back(self.id, save_point=save_point, reason=reason)

    def fail(self, reason: str, *, timeout: float | None = None) -> str:
        return self._ended(self._client.fail_execution(self.id, reason=reason).is_finished, timeout)

    def fork_preview(self, at: int) -> ForkPreview:
        return self._client.preview_fork(self.id, at=at)

    def fork(self, at: int, *, reason: str, data: dict[str, object] | None = None, key: str = "") -> RemoteRun:
        born = self._client.fork_execution(self.id, at=at, reason=reason, data=data, key=key)
        return RemoteRun(self._client, born.id)

    def _ended(self, is_finished: bool, timeout: float | None) -> str:  # noqa: FBT001 - what the server has said
        """How it ended; TimeoutError if that takes too long."""
        ends_at = None if timeout is None else time.monotonic() + timeout
        while True:
            found = self._client.await_result(self.id, wait=0 if is_finished else _LOOK_SECONDS)
            if found.is_finished:
                return found.status
            if ends_at is not None and time.monotonic() >= ends_at:
                raise TimeoutError(f"run {self.id} has not ended: it is {found.status}")


class RemoteRuns(Missing):
    """Runs, all of them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(  # noqa: PLR0913 - filters
        self,
        *,
        definition: str = "",
        version: str = "",
        status: str | Sequence[str] = "",
        is_active: bool | None = None,
        key: str = "",
        parent: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        oldest_first: bool = False,
        cursor: str | None = None,
        limit: int = 100,
    ) -> views.Page:
        run = None if parent is None else run_of(parent)

        def ask(place: str, size: int) -> Listing[views.InstanceSummary]:
            return self._client.list_executions(
                definition=definition,
                version=version,
                status=(status,) if isinstance(status, str) and status else tuple(status),
                active=is_active,
                key=key,
                parent=run,
                created_after=created_after,
                created_before=created_before,
                sort="created_at" if oldest_first else "-created_at",
                cursor=place,
                limit=size,
            )

        found, after = paged(ask, cursor_of(cursor), limit)
        return views.Page(items=found, next=place_in(after))

    def state_at(self, run: str, at: int) -> PastState:
        return self._client.get_state_at(run, at=at)

    def stuck(self, *, cursor: str | None = None, limit: int = 100) -> views.Page:
        found, after = paged(
            lambda place, size: self._client.list_stuck(cursor=place, limit=size), cursor_of(cursor), limit
        )
        return views.Page(items=found, next=place_in(after))

    def paused(
        self,
        *,
        definition: str = "",
        next_step: str = "",
        since: datetime | None = None,
        before: datetime | None = None,
        after: views.InstanceSummary | None = None,
        limit: int = 100,
    ) -> Sequence[views.InstanceSummary]:
        def ask(cursor: str, size: int) -> Listing[views.InstanceSummary]:
            return self._client.list_paused(
                definition=definition,
                next_step=next_step,
                since=since,
                before=before,
                cursor=cursor,
                limit=size,
            )

        return gathered(ask, paused_behind(after), limit)

    def resumable(
        self, *, definition: str = "", after: views.InstanceSummary | None = None, limit: int = 100
    ) -> Sequence[views.InstanceSummary]:
        def ask(cursor: str, size: int) -> Listing[views.InstanceSummary]:
            return self._client.list_resumable(definition=definition, cursor=cursor, limit=size)

        return gathered(ask, paused_behind(after), limit)


class RemoteDeadLetters(Missing):
    """What gave up."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(
        self,
        *,
        instance: str | None = None,
        definition: str = "",
        source: DeadLetterSource | None = None,
        key: str = "",
        after: int = 0,
        limit: int = 100,
    ) -> Sequence[DeadLetter]:
        run = None if instance is None else run_of(instance)

        def ask(cursor: str, size: int) -> Listing[DeadLetter]:
            return self._client.list_letters(
                execution=run, definition=definition, source=source, key=key, cursor=cursor, limit=size
            )

        return gathered(ask, written(after) if after else "", limit)

    def groups(self, *, definition: str = "") -> LetterGroups:
        return self._client.group_letters(definition=definition)

    def count(self) -> int:
        return sum(each.count for each in self.groups().items)

    def get(self, letter: int) -> DeadLetter:
        return self._client.get_letter(letter)

    def requeue(self, letter: int, input: object = None) -> None:  # noqa: A002 - as the engine has it
        self._client.requeue_letter(letter, input=object_of(input))

    def retry_compensation(self, letter: int) -> None:
        self._client.retry_compensation(letter)

    def discard(self, letter: int) -> None:
        self._client.discard_letter(letter)


class RemoteKeys(Missing):
    """API keys."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def create(
        self,
        name: str,
        *,
        actor: str,
        kind: Literal["user", "service"] = "service",
        roles: Sequence[str] = (),
        capabilities: Sequence[str] = (),
        partition: str = "",
        expires_at: datetime | None = None,
    ) -> NewApiKey:
        return self._client.create_key(
            name=name,
            actor=actor,
            kind=kind,
            roles=list(roles),
            capabilities=list(capabilities),
            partition=partition,
            expires_at=expires_at,
        )

    def list(self, *, after: str = "", limit: int = 100) -> Sequence[ApiKey]:
        place = written(after) if after else ""
        return gathered(lambda cursor, size: self._client.list_keys(cursor=cursor, limit=size), place, limit)

    def get(self, key: str) -> ApiKey:
        return self._client.get_key(key)

    def revoke(self, key: str) -> ApiKey:
        return self._client.revoke_key(key)


class RemoteCalls(Missing):
    """What commands ask of a server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.runs = RemoteRuns(client)
        self.tasks = RemoteTasks(client)
        self.processes = RemoteProcesses(client)
        self.dead_letters = RemoteDeadLetters(client)
        self.definitions = RemoteDefinitions(client)
        self.documents = RemoteDocuments(client)
        self.contracts = RemoteContracts(client)
        self.bodies = RemoteBodies(client)
        self.directory = RemoteDirectory(client)
        self.chains = RemoteChains(client)
        self.pauses = RemotePauses(client)
        self.events = RemoteEvents(client)
        self.schedules = RemoteSchedules(client)
        self.batches = RemoteBatches(client)
        self.keys = RemoteKeys(client)
        self.instances = RemoteInstances(client)
        self.invariants = RemoteInvariants(client)
        self.projections = RemoteProjections(client)
        self.inbox = RemoteInbox(client)
        self.admin = RemoteAdmin(client)
        self.reports = RemoteReports(client)
        self.seals = RemoteSeals(client)
        self.workflows = RemoteWorkflows(client)
        self.sessions = RemoteSessions(client)
        self.refusals = RemoteRefusals(client)
        self.audit = RemoteAudit(client)
        self.notifications = RemoteNotifications(client)
        self.charters = RemoteCharters(client)

    @property
    def request(self) -> RequestContext:
        told = self._client.tell_me()
        return RequestContext(tenant=told.tenant, partition=told.partition, actor=Actor(id=told.id))

    def health(self) -> Health:
        return self._client.get_health()

    def start(
        self,
        definition: str,
        input: object = None,  # noqa: A002 - as the engine has it
        *,
        version: str = "",
        key: str = "",
        idempotency_key: str = "",
        delay: timedelta = timedelta(0),
        comment: str = "",
    ) -> RemoteRun:
        started = self._client.start_execution(
            definition=definition,
            input=object_of(input),
            version=version,
            key=key,
            delay_seconds=delay.total_seconds(),
            comment=comment,
            idempotency_key=idempotency_key,
        )
        return self.run(str(started.id))

    def run(self, run: str) -> RemoteRun:
        return RemoteRun(self._client, checked_instance(run))
