"""Search for processes, and counts."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec
from psycopg.types.numeric import Int8

from standfast.kernel.ids import InstanceId
from standfast.store.ports.reading import Match, ProcessStepName, VersionCount, counting
from standfast.store.postgres.connection.packing import Texts, Uuids
from standfast.store.postgres.connection.session import Row
from standfast.store.sql.statements import read_statements


class _Sql(msgspec.Struct, frozen=True):
    of_status: str
    of_definition: str
    everywhere: str
    of_starter: str
    of_key: str
    of_people: str
    current_steps: str


_sql = read_statements(_Sql, "standfast.store.postgres", "matches.sql")
_counts = {
    each: f"select count(*) from ({each}) as f"  # noqa: S608 - both parts are the engine's
    for name, each in msgspec.structs.asdict(_sql).items()
    if name != "current_steps"
}
"""Statements that count the results, up to a limit."""
_count_versions = f"""
    select i.definition, i.definition_version, i.status, exists (
        select 1 from standfast.task_decisions d
        join standfast.human_tasks t on t.instance = d.instance and t.number = d.number and t.closed_at is null
        where d.instance = f.id and not d.is_withdrawn and $12::text in (d.actor, d.on_behalf_of)
    ) as has_voted, count(*)
    from ({_sql.of_people}) as f
    cross join lateral (select * from standfast.instances n where n.id = f.id and n.tenant = $1::text offset 0) as i
    group by i.definition, i.definition_version, i.status, has_voted
"""  # noqa: S608 - both parts are the engine's

_LAST = UUID(int=2**128 - 1)


class PostgresProcessSearch:
    """Searches processes of one tenant. Subclasses provide the connection."""

    _tenant: str

    def matching(self, match: Match) -> list[InstanceId]:
        """Return a page of matches, newest first."""
        return [InstanceId(row[0]) for row in self._all(*_asked(self._tenant, match))]

    def count_matching(self, match: Match) -> int:
        """Return the number of matches, up to a limit."""
        statement, values = _asked(self._tenant, counting(match))
        ((count,),) = self._all(_counts[statement], values)
        return int(count)

    def count_versions(self, match: Match, voter: str) -> list[VersionCount]:
        """How many match, by version and status."""
        _, values = _asked(self._tenant, counting(match))
        return [VersionCount(*row) for row in self._all(_count_versions, [*values, voter])]

    def current_steps(self, instances: Sequence[InstanceId]) -> list[ProcessStepName]:
        """The steps that these processes are at."""
        found = self._all(_sql.current_steps, [self._tenant, Uuids(instances)])
        return [ProcessStepName(InstanceId(row[0]), row[1]) for row in found]

    def _all(self, statement: str, values: Sequence[object]) -> list[Row]:
        raise NotImplementedError


def _asked(tenant: str, match: Match) -> tuple[str, list[object]]:
    """Return the statement with the most selective index, and its values."""
    values: list[object] = [
        tenant,
        Texts(match.statuses),
        match.partition,
        match.definition,
        match.key,
        match.started_by,
        match.before or _LAST,
        Int8(match.limit),
    ]
    if match.people is not None:
        people = [Texts([each[place] for each in match.people]) for place in range(3)]
        return _sql.of_people, [*values, *people]
    if match.key:
        return _sql.of_key, values
    if match.started_by:
        return _sql.of_starter, values
    if match.definition:
        return _sql.of_definition, values
    return (_sql.everywhere if match.partition is None else _sql.of_status), values
