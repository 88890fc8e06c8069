"""Questions to people and processes, asked of a server; see `remote`."""
# ruff: noqa: D102 - the words of the engine's own calls, which say what they mean

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from standfast.calls.paging import written
from standfast.cli.remote.lists import Missing, cursor_of, gathered, place_in, seconds_of
from standfast.errors import ConfigurationError
from standfast.features.processes.views import (
    ExpiredProcess,
    ProcessDescriptor,
    ProcessInstance,
    ProcessPage,
)
from standfast.features.runs.views import HumanTask
from standfast.features.tasks.views import DecidedTask, TaskCounts, TaskDetails, TaskOutcome

if TYPE_CHECKING:
    from standfast.client import Client
    from standfast.client.models import Listing


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
        return gathered(ask, place, limit)

    def decided(self, *, after: DecidedTask | None = None, limit: int = 100) -> Sequence[DecidedTask]:
        place = (
            ""
            if after is None
            else written(
                [after.decision.decided_at, after.task.instance, after.task.step_number, after.decision.sequence]
            )
        )
        return gathered(lambda cursor, size: self._client.list_decided(cursor=cursor, limit=size), place, limit)

    def counts(self) -> TaskCounts:
        return self._client.count_tasks()

    def get(self, task: str) -> TaskDetails:
        return self._client.get_task(task)

    def decide(
        self,
        task: str,
        decision: str,
        *,
        comment: str = "",
        data: object = None,
        on_behalf_of: str = "",
        document_version: str = "",
        stage: str = "",
    ) -> None:
        self._client.decide_task(
            task,
            decision=decision,
            comment=comment,
            data=data,
            on_behalf_of=on_behalf_of,
            document_version=document_version,
            stage=stage,
        )

    def approve(
        self,
        task: str,
        *,
        comment: str = "",
        data: object = None,
        on_behalf_of: str = "",
        document_version: str = "",
        stage: str = "",
    ) -> None:
        self._client.approve_task(
            task,
            comment=comment,
            data=data,
            on_behalf_of=on_behalf_of,
            document_version=document_version,
            stage=stage,
        )

    def reject(
        self,
        task: str,
        *,
        comment: str = "",
        data: object = None,
        on_behalf_of: str = "",
        document_version: str = "",
        stage: str = "",
    ) -> None:
        self._client.reject_task(
            task,
            comment=comment,
            data=data,
            on_behalf_of=on_behalf_of,
            document_version=document_version,
            stage=stage,
        )

    def abstain(
        self,
        task: str,
        *,
        comment: str = "",
        data: object = None,
        on_behalf_of: str = "",
        document_version: str = "",
        stage: str = "",
    ) -> None:
        self._client.abstain(
            task,
            comment=comment,
            data=data,
            on_behalf_of=on_behalf_of,
            document_version=document_version,
            stage=stage,
        )

    def decide_many(
        self, tasks: Sequence[tuple[str, str, str]], decision: str, *, comment: str = "", on_behalf_of: str = ""
    ) -> builtins.list[TaskOutcome]:
        from standfast.client.models import SeenTask

        seen = [SeenTask(task=task, document_version=version, stage=stage) for task, version, stage in tasks]
        return self._client.decide_tasks(
            tasks=seen, decision=decision, comment=comment, on_behalf_of=on_behalf_of
        ).items

    def withdraw_decision(self, task: str, reason: str = "", *, on_behalf_of: str = "") -> None:
        self._client.withdraw_decision(task, reason=reason, on_behalf_of=on_behalf_of)

    def add_approver(self, task: str, person: str, *, weight: int = 1, reason: str = "") -> None:
        self._client.add_approver(task, person=person, weight=weight, reason=reason)

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

    def escalate(self, task: str, reason: str = "", *, on_behalf_of: str = "") -> None:
        self._client.escalate_task(task, reason=reason, on_behalf_of=on_behalf_of)

    def withdraw(self, task: str, reason: str = "") -> None:
        self._client.withdraw_task(task, reason=reason)


class RemoteProcesses(Missing):
    """Processes, as those see them who lead them on."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(
        self,
        *,
        status: str | Sequence[str] = (),
        workflow_id: str = "",
        key: str = "",
        subject_id: str = "",
        role: str | None = None,
        mine: bool = False,
        cursor: str | None = None,
        limit: int = 100,
    ) -> ProcessPage:
        page = self._client.list_processes(
            status=(status,) if isinstance(status, str) else tuple(status),
            workflow_id=workflow_id,
            key=key,
            subject_id=subject_id,
            role=role,
            mine=mine,
            cursor=cursor_of(cursor),
            limit=limit,
        )
        further = place_in(page.next)
        return ProcessPage(items=page.items, total=page.total, is_total_exact=page.is_total_exact, next=further)

    def expired(
        self,
        *,
        before: datetime | None = None,
        tenant: str = "",
        after: ExpiredProcess | None = None,
        limit: int = 100,
    ) -> Sequence[ExpiredProcess]:
        if tenant:
            raise ConfigurationError("a server tells of the tenant of its credential alone; leave out --all-tenants")

        def ask(cursor: str, size: int) -> Listing[ExpiredProcess]:
            return self._client.list_expired(before=before, cursor=cursor, limit=size)

        return gathered(ask, "" if after is None else written([after.expires_at, after.id]), limit)

    def get(self, instance: str) -> ProcessDescriptor:
        return self._client.get_process(instance)

    def advance(
        self,
        instance: str,
        event: str,
        input: dict[str, object] | None = None,  # noqa: A002 - as the engine has it
        *,
        comment: str = "",
        on_behalf_of: str = "",
        expected_version: int | None = None,
        patience: timedelta | float = 0,
    ) -> ProcessInstance:
        return self._client.advance_process(
            instance,
            event=event,
            input=input,
            comment=comment,
            on_behalf_of=on_behalf_of,
            if_version=expected_version,
            wait=seconds_of(patience),
        )

    def resume(
        self,
        instance: str,
        reason: str = "",
        *,
        expected_version: int | None = None,
        patience: timedelta | float = 0,
    ) -> ProcessInstance:
        return self._client.resume_process(
            instance, reason=reason, if_version=expected_version, wait=seconds_of(patience)
        )
