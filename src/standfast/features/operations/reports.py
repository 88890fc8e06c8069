"""Calls of reports: what runs of a period tell of work as a whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from standfast.calls.authorization import check_reader
from standfast.calls.context import CallContext, checked_instant, checked_limit
from standfast.calls.references import DefinitionLike, checked_definition
from standfast.engine.concurrency.replies import Reply
from standfast.errors import PayloadError
from standfast.features.operations.reporting import Report, ReportFacts, Tally
from standfast.kernel.row_kinds.steps import STEPS, TASKS
from standfast.kernel.row_kinds.tasks import TASK_DECISIONS, TASK_PEOPLE
from standfast.store.records.instances import InstanceQuery

_PERIOD = timedelta(days=30)
_FIRST = datetime.min.replace(tzinfo=UTC)
_BATCH = 200
"""Runs that are read at once, as of one moment."""
MOST_RUNS = 100_000


class FutureReports:
    """What runs of a period tell of work as a whole. It takes the capability `execution:read`; a partition is told of its own runs."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def of(
        self,
        definition: DefinitionLike,
        *,
        version: str | int = "",
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 10_000,
    ) -> Reply[Report]:
        """Runs of a workflow, or documents of a type, that began in a period, the last thirty days if none is given.

        How long they took, at which nodes, who decided how much and how fast, and how many were done twice. At most `limit` runs are
        counted, the newest ones. They are read some two hundred at a time, without a lock. NotFoundError if there is no such workflow.
        """

        def read() -> Report:
            check_reader(self._desk)
            name, number = checked_definition(definition, version)
            end = checked_instant(until, "`until`") or self._desk.service.shared.clock.now()
            begin = checked_instant(since, "`since`") or max(end, _FIRST + _PERIOD) - _PERIOD
            if begin >= end:
                raise PayloadError("the period ends before it begins; give an earlier `since`, or a later `until`")
            most = checked_limit(limit)
            if most > MOST_RUNS:
                raise PayloadError(
                    f"a report counts at most {MOST_RUNS} runs; give a shorter period, or a smaller limit"
                )
            query = InstanceQuery(definition=name, definition_version=number, created_after=begin, created_before=end)
            tally, is_partial = self._counted(query, most)
            if not tally.runs:  # There was none, or there is no such workflow: whoever mistyped its name is told.
                self._desk.registry.library.graph(self._desk.tenant, name, number)
            return tally.report(name, begin, end, is_partial=is_partial)

        return self._desk.read(read)

    def _counted(self, query: InstanceQuery, most: int) -> tuple[Tally, bool]:
        tally = Tally()
        while True:
            size = min(_BATCH, most - tally.runs) or 1  # One more than is counted tells whether there are more.
            with self._desk.reader.look() as reader:
                headers = reader.instances(replace(query, limit=size))
                if not headers or tally.runs == most:
                    return tally, bool(headers)
                names = [each.id for each in headers]
                tally.add(
                    ReportFacts(
                        headers,
                        reader.rows_of(STEPS, names),
                        reader.rows_of(TASKS, names),
                        reader.rows_of(TASK_DECISIONS, names),
                        reader.rows_of(TASK_PEOPLE, names),
                    )
                )
            query = replace(query, before=headers[-1].id)
