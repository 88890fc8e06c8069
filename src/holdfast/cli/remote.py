"""The calls of an engine that is elsewhere: the words of the commands, asked of a server by the typed client.

Each class has those calls of the engine's own (`app/faces/blocking`) that commands use and a server offers, with the same parameters; a test
compares them. What is missing is refused in a sentence.
"""
# ruff: noqa: D102 - the words of the engine's own calls, which say what they mean

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, NoReturn, TypeVar
from uuid import UUID

import msgspec

from holdfast.app import workflow_views as views
from holdfast.app.access_views import ApiKey, NewApiKey
from holdfast.app.operator_views import DeadLetter, DefinitionInfo
from holdfast.app.places import unwritten, written
from holdfast.app.reasons import Why
from holdfast.app.task_views import DecidedTask, HumanTask, TaskCounts, TaskDetails
from holdfast.errors import ConfigurationError
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.records import DeadLetterSource, PauseClock

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.client.shapes import Listing

T = TypeVar("T")

ON_DATABASES: Final = "this command works on a database alone: leave out --server, and say --database"
_LOOK_SECONDS: Final = 0.2
_MOST: Final = 10_000
"""What a page may be asked to have."""
_ALL: Final = 1_000_000

Format = Literal["mermaid", "dot", "json"]


class Missing:
    """Refuses the calls that a server is not asked for."""

    def __getattr__(self, name: str) -> NoReturn:
        raise ConfigurationError(ON_DATABASES)


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
            page = self._client.list_history(self.id, after=after, limit=_MOST if limit is None else limit - len(found))
            if not page:
                break
            found += page
            after = page[-1].sequence
        return found

    def diagram(self, *, format: Format = "mermaid") -> str:  # noqa: A002 - as the engine has it
        return self._client.draw_execution(self.id, format=format).source

    def why(self) -> Why:
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
        if isinstance(until, timedelta):
            raise ConfigurationError("a server is told until when: say --until instead of --for")
        self._client.pause_execution(self.id, reason=reason, clock=clock, until=until)

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
        self._client.retry_step(self.id, step, reason=reason, input=_object(input))

    def skip(self, step: int, *, reason: str, outcome: str = "") -> None:
        self._client.skip_step(self.id, step, reason=reason, outcome=outcome)

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
        cursor: str | None = None,
        limit: int = 100,
    ) -> views.Page:
        run = None if parent is None else _run(parent)

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
                cursor=place,
                limit=size,
            )

        found, after = _paged(ask, _cursor(cursor), limit)
        return views.Page(items=found, next=_place(after))

    def stuck(self, *, cursor: str | None = None, limit: int = 100) -> views.Page:
        found, after = _paged(
            lambda place, size: self._client.list_stuck(cursor=place, limit=size), _cursor(cursor), limit
        )
        return views.Page(items=found, next=_place(after))

    def paused(
        self,
        *,
        definition: str = "",
        since: datetime | None = None,
        before: datetime | None = None,
        after: views.InstanceSummary | None = None,
        limit: int = 100,
    ) -> Sequence[views.InstanceSummary]:
        def ask(cursor: str, size: int) -> Listing[views.InstanceSummary]:
            return self._client.list_paused(
                definition=definition, since=since, before=before, cursor=cursor, limit=size
            )

        return _gathered(ask, _paused(after), limit)

    def resumable(
        self, *, definition: str = "", after: views.InstanceSummary | None = None, limit: int = 100
    ) -> Sequence[views.InstanceSummary]:
        def ask(cursor: str, size: int) -> Listing[views.InstanceSummary]:
            return self._client.list_resumable(definition=definition, cursor=cursor, limit=size)

        return _gathered(ask, _paused(after), limit)


class RemoteTasks(Missing):
    """Questions to people."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(
        self,
        *,
        mine: bool | Literal["roles", "delegated"] = False,
        role: str | None = None,
        requested_by_me: bool = False,
        definition: str = "",
        key: str = "",
        is_overdue: bool = False,
        after: HumanTask | None = None,
        limit: int = 100,
    ) -> Sequence[HumanTask]:
        parts: dict[bool | str, Literal["true", "false", "roles", "delegated"]] = {
            True: "true",
            False: "false",
            "roles": "roles",
            "delegated": "delegated",
        }

        def ask(cursor: str, size: int) -> Listing[HumanTask]:
            return self._client.list_tasks(
                mine=parts[mine],
                role=role,
                requested_by_me=requested_by_me,
                definition=definition,
                key=key,
                overdue=is_overdue,
                cursor=cursor,
                limit=size,
            )

        place = "" if after is None else written([after.asked_at, after.instance, after.step_number])
        return _gathered(ask, place, limit)

    def decided(self, *, after: DecidedTask | None = None, limit: int = 100) -> Sequence[DecidedTask]:
        place = (
            ""
            if after is None
            else written(
                [after.decision.decided_at, after.task.instance, after.task.step_number, after.decision.sequence]
            )
        )
        return _gathered(lambda cursor, size: self._client.list_decided(cursor=cursor, limit=size), place, limit)

    def counts(self) -> TaskCounts:
        return self._client.count_tasks()

    def get(self, task: str) -> TaskDetails:
        return self._client.get_task(task)

    def decide(
        self, task: str, decision: str, *, comment: str = "", data: object = None, on_behalf_of: str = ""
    ) -> None:
        self._client.decide_task(task, decision=decision, comment=comment, data=data, on_behalf_of=on_behalf_of)

    def approve(self, task: str, *, comment: str = "", data: object = None, on_behalf_of: str = "") -> None:
        self._client.approve_task(task, comment=comment, data=data, on_behalf_of=on_behalf_of)

    def reject(self, task: str, *, comment: str = "", data: object = None, on_behalf_of: str = "") -> None:
        self._client.reject_task(task, comment=comment, data=data, on_behalf_of=on_behalf_of)

    def abstain(self, task: str, *, comment: str = "", data: object = None, on_behalf_of: str = "") -> None:
        self._client.abstain(task, comment=comment, data=data, on_behalf_of=on_behalf_of)

    def claim(self, task: str, *, on_behalf_of: str = "") -> None:
        self._client.claim_task(task, on_behalf_of=on_behalf_of)

    def release(self, task: str, *, on_behalf_of: str = "") -> None:
        self._client.release_task(task, on_behalf_of=on_behalf_of)

    def delegate(self, task: str, to: str, *, reason: str = "", on_behalf_of: str = "") -> None:
        self._client.delegate_task(task, to=to, reason=reason, on_behalf_of=on_behalf_of)

    def reassign(self, task: str, to: str, *, who: str = "", reason: str = "") -> None:
        self._client.reassign_task(task, to=to, who=who, reason=reason)

    def comment(self, task: str, text: str, *, on_behalf_of: str = "") -> None:
        self._client.comment_on_task(task, text=text, on_behalf_of=on_behalf_of)

    def ask(self, task: str, text: str, *, on_behalf_of: str = "") -> None:
        self._client.ask_back(task, text=text, on_behalf_of=on_behalf_of)

    def escalate(self, task: str, reason: str = "") -> None:
        self._client.escalate_task(task, reason=reason)

    def withdraw(self, task: str, reason: str = "") -> None:
        self._client.withdraw_task(task, reason=reason)


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
        run = None if instance is None else _run(instance)

        def ask(cursor: str, size: int) -> Listing[DeadLetter]:
            return self._client.list_letters(
                execution=run, definition=definition, source=source, key=key, cursor=cursor, limit=size
            )

        return _gathered(ask, written(after) if after else "", limit)

    def get(self, letter: int) -> DeadLetter:
        return self._client.get_letter(letter)

    def requeue(self, letter: int, input: object = None) -> None:  # noqa: A002 - as the engine has it
        self._client.requeue_letter(letter, input=_object(input))

    def retry_compensation(self, letter: int) -> None:
        self._client.retry_compensation(letter)

    def discard(self, letter: int) -> None:
        self._client.discard_letter(letter)


class RemoteDefinitions(Missing):
    """What is published."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> Sequence[DefinitionInfo]:
        return _gathered(lambda cursor, size: self._client.list_definitions(cursor=cursor, limit=size), "", _ALL)


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
        return _gathered(lambda cursor, size: self._client.list_keys(cursor=cursor, limit=size), place, limit)

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
        self.dead_letters = RemoteDeadLetters(client)
        self.definitions = RemoteDefinitions(client)
        self.keys = RemoteKeys(client)

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
            input=_object(input),
            version=version,
            key=key,
            delay_seconds=delay.total_seconds(),
            comment=comment,
            idempotency_key=idempotency_key,
        )
        return self.run(str(started.id))

    def run(self, run: str) -> RemoteRun:
        return RemoteRun(self._client, run)


def _gathered(ask: Callable[[str, int], Listing[T]], cursor: str, limit: int) -> list[T]:
    """So many things of a list, however few of them a server gives at a time."""
    return _paged(ask, cursor, limit)[0]


def _paged(ask: Callable[[str, int], Listing[T]], cursor: str, limit: int) -> tuple[list[T], str | None]:
    """The same with what the next page begins behind."""
    page = ask(cursor, min(limit, _MOST))
    found, after = page.items, page.next
    while len(found) < limit and after is not None:
        page = ask(after, min(limit - len(found), _MOST))
        found, after = [*found, *page.items], page.next
    return found, after


def _object(value: object) -> dict[str, object] | None:
    if value is None or isinstance(value, dict):
        return value
    raise ConfigurationError("a server takes a JSON object, such as '{\"total\": 5}'")


def _run(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise ConfigurationError(f"{text!r} is no id of a run; `holdfast list` shows those that there are") from None


def _cursor(run: str | None) -> str:
    return "" if run is None else written(run)


def _paused(last: views.InstanceSummary | None) -> str:
    return "" if last is None else written([last.paused_at, last.id])


def _place(cursor: str | None) -> InstanceId | None:
    """The run that a cursor stands for, which is how commands name a place in a list of runs."""
    if cursor is None:
        return None
    return InstanceId(msgspec.json.decode(unwritten(cursor), type=UUID))
