"""Schedules and batches, asked of a server; see `remote`."""
# ruff: noqa: D102 - the words of the engine's own calls, which say what they mean

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from standfast.calls.paging import written
from standfast.cli.remote.lists import Missing, gathered, object_of, run_of
from standfast.errors import ConfigurationError
from standfast.features.batches.views import Batch, BatchItem, BatchVerb, ItemStatus
from standfast.features.schedules.views import CatchUp, FireInfo, Overlap, Schedule

if TYPE_CHECKING:
    from standfast.client import Client


class RemoteSchedules(Missing):
    """What starts workflows at given times."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def put(  # noqa: PLR0913 - what a schedule says
        self,
        schedule: str,
        definition: str,
        input: object = None,  # noqa: A002 - as the engine has it
        *,
        version: str = "",
        computed: Mapping[str, str] | None = None,
        cron: str = "",
        time_zone: str = "UTC",
        every: timedelta | None = None,
        at: datetime | None = None,
        start_at: datetime | None = None,
        end_at: datetime | None = None,
        jitter: timedelta = timedelta(0),
        overlap: Overlap | None = None,
        catch_up: CatchUp = "one",
        window: timedelta | None = None,
        document_id: str = "",
        note: str = "",
        expected_version: int | None = None,
    ) -> Schedule:
        return self._client.put_schedule(
            schedule,
            workflow=definition,
            input=object_of(input),
            version=version,
            computed=None if computed is None else dict(computed),
            cron=cron,
            time_zone=time_zone,
            every_seconds=_seconds(every),
            at=at,
            start_at=start_at,
            end_at=end_at,
            jitter_seconds=jitter.total_seconds(),
            overlap=overlap,
            catch_up=catch_up,
            window_seconds=_seconds(window),
            document_id=document_id,
            note=note,
            if_version=expected_version,
        )

    def get(self, schedule: str) -> Schedule:
        return self._client.get_schedule(schedule)

    def list(self, *, workflow: str = "", after: Schedule | None = None, limit: int = 100) -> builtins.list[Schedule]:
        place = "" if after is None else written(after.instance)
        return gathered(
            lambda cursor, size: self._client.list_schedules(workflow=workflow, cursor=cursor, limit=size), place, limit
        )

    def fires(self, schedule: str, *, after: int = 0, limit: int = 100) -> builtins.list[FireInfo]:
        place = written(after) if after else ""
        return gathered(lambda cursor, size: self._client.list_fires(schedule, cursor=cursor, limit=size), place, limit)

    def next_times(self, schedule: str, *, after: datetime | None = None, limit: int = 10) -> builtins.list[datetime]:
        return self._client.list_times(schedule, after=after, limit=limit).times

    def pause(self, schedule: str, reason: str = "") -> Schedule:
        return self._client.pause_schedule(schedule, reason=reason)

    def resume(self, schedule: str, reason: str = "") -> Schedule:
        return self._client.resume_schedule(schedule, reason=reason)

    def trigger(self, schedule: str, *, overlap: Overlap | None = None, command_id: str = "") -> FireInfo:
        return self._client.trigger_schedule(schedule, overlap=overlap, idempotency_key=command_id)

    def backfill(
        self, schedule: str, start: datetime, end: datetime, *, at_once: bool = False, command_id: str = ""
    ) -> Schedule:
        return self._client.backfill_schedule(
            schedule, start=start, end=end, at_once=at_once, idempotency_key=command_id
        )

    def stop_backfills(self, schedule: str) -> Schedule:
        return self._client.stop_backfills(schedule)

    def delete(self, schedule: str, *, expected_version: int | None = None) -> None:
        self._client.delete_schedule(schedule, if_version=expected_version)


class RemoteBatches(Missing):
    """What is done to many runs."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def begin(  # noqa: PLR0913 - what a batch is told
        self,
        verb: BatchVerb,
        runs: Sequence[str] | None = None,
        *,
        letters: Sequence[int] | None = None,
        inputs: Sequence[object] | None = None,
        definition: str = "",
        version: str = "",
        status: Sequence[str] | None = None,
        cause: str = "",
        reason: str = "",
        per_second: float = 0,
        follow: timedelta = timedelta(hours=1),
        batch_id: str = "",
    ) -> Batch:
        return self._client.begin_batch(
            verb=verb,
            runs=None if runs is None else [run_of(each) for each in runs],
            letters=None if letters is None else list(letters),
            inputs=None if inputs is None else _objects(inputs),
            definition=definition,
            version=version,
            status=None if status is None else list(status),
            cause=cause,
            reason=reason,
            per_second=per_second,
            follow_seconds=follow.total_seconds(),
            batch_id=batch_id,
        )

    def get(self, batch: str) -> Batch:
        return self._client.get_batch(batch)

    def list(self, *, after: Batch | None = None, limit: int = 100) -> builtins.list[Batch]:
        place = "" if after is None else written(after.instance)
        return gathered(lambda cursor, size: self._client.list_batches(cursor=cursor, limit=size), place, limit)

    def items(
        self, batch: str, *, status: ItemStatus | None = None, after: int = 0, limit: int = 100
    ) -> builtins.list[BatchItem]:
        place = written(after) if after else ""
        return gathered(
            lambda cursor, size: self._client.list_batch_items(batch, status=status, cursor=cursor, limit=size),
            place,
            limit,
        )

    def cancel(self, batch: str, reason: str = "") -> Batch:
        return self._client.cancel_batch(batch, reason=reason)


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()


def _objects(inputs: object) -> list[dict[str, object]]:
    """The inputs of a start; ConfigurationError unless each is a JSON object."""
    if not isinstance(inputs, list | tuple) or not all(isinstance(each, dict) for each in inputs):
        raise ConfigurationError('the inputs are a list of JSON objects, such as [{"n": 1}, {"n": 2}]')
    return list(inputs)
