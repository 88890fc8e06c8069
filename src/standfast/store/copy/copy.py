"""Copy all data of a database into an empty one, completely or not at all.

Each database is used in a single transaction, so that an interrupted copy leaves the target empty. The tables are read
from the databases themselves. Rows are transferred one at a time, as texts, numbers and bytes in SQLite's format. A
checksum over the sent rows must match the rows that the target stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from standfast.errors import CorruptHistoryError, RejectedError, SchemaMismatchError
from standfast.kernel.codec.codecs import JsonCodec
from standfast.store.copy.port import Columns, Copyable, Hear, Progress, Row, Stage, Tables
from standfast.store.copy.verification import FACTS, CopyTransfer, Sum, carried, is_carried

OF_THE_PLACE: Final = frozenset({"workers", "retention", "redaction", "fact_versions"})
"""Tables about a database and not its data: its workers, and permissions of a single transaction."""
_COPYING, _COPIED, MAINTENANCE, _CODEC, _IDENTITY = "note:copying", "note:copied", "maintenance", "codec", "identity"
_STRIDE: Final = 1000


class CopyRefusal(StrEnum):
    """Reasons for refusing a copy. They are documented in `docs/reference/rejections.md`."""

    STILL_WORKING = "still_working"
    """Workers are alive on one of the databases. Stop them, or wait until the leases of dead ones expire. A
    rehearsal copies from a live database."""
    NOT_EMPTY = "not_empty"
    """The target has rows. Name a new database, or drop its contents if they are not needed."""
    UNFINISHED_COPY = "unfinished_copy"
    """An earlier copy into one of the databases was not verified completely. Drop it and copy again."""
    SAME_DATABASE = "same_database"
    """Source and target are the same database. Name another target."""
    OTHER_CODEC = "other_codec"
    """The target was made for another codec than the source. Drop it, or create one with `standfast migrate
    --codec`."""
    MOVED_ON = "moved_on"
    """The source was changed after it was copied. Stop the servers, drop the target, and copy again."""


class Transfer(NamedTuple):
    """The result of a copy."""

    rows: dict[str, int]
    """Number of rows by table."""
    tenants: list[str]
    """The tenants that have instances."""
    others: list[str]
    """Foreign tables in the source, which were not copied."""


def facts_of(tables: Tables) -> dict[str, str]:
    """Return the facts that a database stores about itself."""
    return {str(name): str(value) for name, value in tables.rows(FACTS, ("name", "value"))}


def codec_of(tables: Tables) -> str:
    """Return the codec of a database. An unused one has none."""
    return facts_of(tables).get(_CODEC, JsonCodec.name)


def check_source(source: Tables, *, may_work: bool) -> None:
    """Raise RejectedError while workers are alive there, unless that is allowed."""
    if _COPYING in (facts := facts_of(source)):
        raise _unfinished(source.url, facts[_COPYING])
    if source.workers() and not may_work:
        raise _working(source, ", or say --rehearse to copy from under them into a database that stays closed")


def check_apart(source: Copyable, target: Copyable) -> None:
    """Raise RejectedError if both are the same database. A copy would wait for its own lock."""
    if source.place() == target.place():
        raise _refusal(
            CopyRefusal.SAME_DATABASE, f"{target.url} is the source itself; name another database as the target"
        )


def _check_target(target: Tables, facts: Mapping[str, str], codec: str) -> None:
    """Raise RejectedError if a copy into the target would lose data."""
    where = target.url
    if _COPYING in facts:
        raise _unfinished(where, facts[_COPYING])
    if target.workers():
        raise _working(target, "")
    filled = [name for name in target.columns() if name not in OF_THE_PLACE | {FACTS} and target.count(name)]
    filled += [FACTS] if any(map(is_carried, facts)) else []
    if filled:
        told = (
            f"{where} is not empty, it has rows in {', '.join(filled)}: name a new database, or, "
            f"if nothing in it is needed, empty it by `standfast drop {where} --yes`"
        )
        raise _refusal(CopyRefusal.NOT_EMPTY, told)
    if facts.get(_CODEC, codec) != codec:
        told = (
            f"{where} was made for the {facts[_CODEC]!r} codec, and the source is written with {codec!r}: "
            f"`standfast drop {where} --yes` takes it away, and the copy makes it anew"
        )
        raise _refusal(CopyRefusal.OTHER_CODEC, told)


def copy_tables(source: Tables, target: Tables, *, identity: str, hear: Hear) -> Transfer:
    """Copy all rows, verify them, and leave the target closed. The caller has open transactions on both databases."""
    codec = codec_of(source)
    _check_target(target, facts_of(target), codec)
    tables = _shared(source, target)
    passage = CopyTransfer(source, target, tables)
    sums = {name: passage.copy(name, _told(hear, "copy", name, source.count(name))) for name in tables}
    for name, sent in sums.items():
        _compare(target, sent, _told(hear, "compare", name, sent.count))
    target.go_on(source.counters(), source.newest())
    target.note({_COPYING: source.url, MAINTENANCE: "refuse", _CODEC: codec, _IDENTITY: identity})
    return Transfer({name: each.count for name, each in sums.items()}, sorted(passage.tenants), source.others())


def _compare(target: Tables, sent: Sum, told: Callable[[Iterable[Row]], Iterator[Row]]) -> None:
    """Read a table again, and raise unless it has exactly the rows that were sent."""
    table, arrived = sent.table, Sum(sent.table, sent.columns)
    for row in told(carried(table, target.rows(table, sent.columns))):
        arrived.add(row)
    if arrived != sent:
        raise CorruptHistoryError(
            f"{target.url} keeps other rows of {table} than it was sent: {arrived.count} have arrived of {sent.count}, "
            "or a value has changed on the way, because something other than Standfast wrote it; nothing was copied"
        )


def check_still(source: Tables, transfer: Transfer, target: Copyable) -> None:
    """Raise RejectedError if the source has changed since the copy.

    A running process notices maintenance mode a moment late.
    """
    moved = [name for name, count in transfer.rows.items() if name != FACTS and source.count(name) != count]
    if moved:
        told = (
            f"{source.url} was changed ({', '.join(moved)}) after it was copied: stop all servers and workers, "
            f"`standfast drop {target.url} --yes --with-unfinished`, then copy again; the source goes on as before"
        )
        raise _refusal(CopyRefusal.MOVED_ON, told)


def closed(target: Copyable) -> dict[str, str]:
    """Return the facts of a source after its copy: it refuses commands and names its successor."""
    return {MAINTENANCE: "refuse", _COPIED: target.url}


def reopened(maintenance: str) -> dict[str, str]:
    """Return the facts of a source whose copy was abandoned."""
    return {MAINTENANCE: maintenance, _COPIED: ""}


def opened(*, is_closed: bool) -> dict[str, str]:
    """Return the facts that complete a copy: it is verified, and open unless it was a rehearsal."""
    return {_COPYING: "", MAINTENANCE: "refuse" if is_closed else ""}


def _shared(source: Tables, target: Tables) -> dict[str, Columns]:
    """Return the tables to copy with their columns. Raises SchemaMismatchError if the databases differ."""
    ours, theirs = source.columns(), target.columns()
    for name in sorted((ours.keys() | theirs.keys()) - OF_THE_PLACE):
        if set(ours.get(name, ())) != set(theirs.get(name, ())):
            raise SchemaMismatchError(
                f"{source.url} and {target.url} have not the same columns in {name}: run `standfast migrate` on both"
            )
    return {name: columns for name, columns in ours.items() if name not in OF_THE_PLACE}


def _told(hear: Hear, stage: Stage, table: str, total: int) -> Callable[[Iterable[Row]], Iterator[Row]]:
    """Return a filter that passes rows on and reports the progress periodically."""

    def told(rows: Iterable[Row]) -> Iterator[Row]:
        done = 0
        for row in rows:
            yield row
            done += 1
            if done % _STRIDE == 0 and done < total:
                hear(Progress(stage, table, done, total))
        hear(Progress(stage, table, done, done))

    return told


def _unfinished(where: str, origin: str) -> RejectedError:
    told = (
        f"a copy of {origin} into {where} was not verified completely, so it must not be used; "
        f"`standfast drop {where} --yes --with-unfinished` empties it, then copy again"
    )
    return _refusal(CopyRefusal.UNFINISHED_COPY, told)


def _working(tables: Tables, otherwise: str) -> RejectedError:
    told = f"{tables.workers()} workers are alive on {tables.url}; stop them, or wait until the leases of dead ones are over{otherwise}"
    return _refusal(CopyRefusal.STILL_WORKING, told)


def _refusal(code: CopyRefusal, message: str) -> RejectedError:
    return RejectedError(reason=code.value, message=message)
