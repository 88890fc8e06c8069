"""Search for processes, and counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import msgspec

from standfast.kernel.ids import InstanceId, id_text
from standfast.store.ports.reading import Match, ProcessStepName, VersionCount, counting
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.session import Row, instance_id


class _Sql(msgspec.Struct, frozen=True):
    of_status: str
    versions: str
    of_definition: str
    everywhere: str
    of_starter: str
    of_key: str
    of_person: str
    versions_of_person: str
    current_steps: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "matches.sql")
_counts = {
    each: f"select count(*) from ({each})"  # noqa: S608 - both parts are the engine's
    for name, each in msgspec.structs.asdict(_sql).items()
    if name.startswith(("of_", "everywhere"))
}
"""Statements that count the results, up to a limit."""
_LAST = "~"
"""Greater than every id."""


class SQLiteProcessSearch:
    """Searches processes of one tenant. Subclasses provide the connection."""

    _tenant: str

    def matching(self, match: Match) -> list[InstanceId]:
        """Return a page of matches, newest first."""
        return [instance_id(each) for each in sorted(self._found(match), reverse=True)[: match.limit]]

    def count_matching(self, match: Match) -> int:
        """Return the number of matches, up to a limit."""
        every = counting(match)
        if match.people is not None and len(match.people) > 1:  # A process may ask several of them.
            return min(len(self._found(every)), every.limit)
        counts = (self._all(_counts[each], values)[0][0] for each, values in self._asked(every))
        return min(int(sum(counts)), every.limit)

    def count_versions(self, match: Match, voter: str) -> list[VersionCount]:
        """How many match, by version and status."""
        return [
            VersionCount(definition, version, status, bool(has_voted), total)
            for _, values in self._asked(counting(match))
            for definition, version, status, has_voted, total in self._all(
                _sql.versions_of_person, {**values, "voter": voter}
            )
        ]

    def current_steps(self, instances: Sequence[InstanceId]) -> list[ProcessStepName]:
        """The steps that these processes are at."""
        values = {"tenant": self._tenant, "instances": json.dumps([*map(id_text, instances)])}
        return [ProcessStepName(instance_id(row[0]), row[1]) for row in self._all(_sql.current_steps, values)]

    def _found(self, match: Match) -> set[str]:
        return {row[0] for statement, values in self._asked(match) for row in self._all(statement, values)}

    def _asked(self, match: Match) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield the statements with the most selective index, and their values."""
        values: dict[str, object] = {
            "tenant": self._tenant,
            "statuses": json.dumps(match.statuses),
            "partition": match.partition,
            "definition": match.definition,
            "key": match.key,
            "started_by": match.started_by,
            "before": _LAST if match.before is None else str(match.before),
            "limit": match.limit,
        }
        if match.people is not None:
            for each in match.people:
                yield _sql.of_person, {**values, "person_kind": each.kind, "person": each.name, "only": each.definition}
        elif match.key:
            yield _sql.of_key, values
        elif match.started_by:
            yield _sql.of_starter, values
        elif match.definition:
            versions = [row[0] for row in self._all(_sql.versions, values)]
            for version, status, begun in product(versions, match.statuses, (0, 1)):
                yield _sql.of_definition, {**values, "version": version, "status": status, "begun": begun}
        elif match.partition is None:
            for status, begun in product(match.statuses, (0, 1)):
                yield _sql.everywhere, {**values, "status": status, "begun": begun}
        else:
            for status in match.statuses:
                yield _sql.of_status, {**values, "status": status}

    def _all(self, statement: str, values: dict[str, Any] | Sequence[object]) -> list[Row]:
        raise NotImplementedError
