"""Copying everything of a database into another one that is empty: whole, or not at all.

Each database is one transaction, so a copy that ends in the middle, however it ends, leaves the target as empty as it was. Which tables
there are is read from the databases themselves. Rows cross the line one at a time, as texts, numbers and bytes, in the form that SQLite
keeps them in; each is added to a sum on its way, and what the target then has must come to the same sum.
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
"""Tables that are about a database itself, and not about what is in it: who works there, and leave that one transaction has."""
_COPYING, _COPIED, MAINTENANCE, _CODEC, _IDENTITY = "note:copying", "note:copied", "maintenance", "codec", "identity"
_STRIDE: Final = 1000


class CopyRefusal(StrEnum):
    """Why nothing is copied. The page `docs/reference/rejections.md` lists them too."""

    STILL_WORKING = "still_working"
    """Workers are alive on one of the databases; stop them, or wait until the leases of dead ones are over. A rehearsal copies from under them."""
    NOT_EMPTY = "not_empty"
    """The target has rows; give a new database, or drop what is in it if it is not needed."""
    UNFINISHED_COPY = "unfinished_copy"
    """An earlier copy into one of the databases was not verified to its end; drop it, and copy again."""
    SAME_DATABASE = "same_database"
    """Source and target are one database; name another target."""
    OTHER_CODEC = "other_codec"
    """The target was made for another codec than that of the source; drop it, or make one with `standfast migrate --codec`."""
    MOVED_ON = "moved_on"
    """Somebody has written into the source after it was copied; stop servers, drop the target, and copy again."""


class Transfer(NamedTuple):
    """What was copied."""

    rows: dict[str, int]
    """How many, by their tables."""
    tenants: list[str]
    """Those that have instances."""
    others: list[str]
    """Tables of somebody else in the source, which were not copied."""


def facts_of(tables: Tables) -> dict[str, str]:
    """What a database says of itself."""
    return {str(name): str(value) for name, value in tables.rows(FACTS, ("name", "value"))}


def codec_of(tables: Tables) -> str:
    """The name of the codec that a database is written with; one that was never used has none yet."""
    return facts_of(tables).get(_CODEC, JsonCodec.name)


def check_source(source: Tables, *, may_work: bool) -> None:
    """RejectedError while somebody works there, unless that is allowed."""
    if _COPYING in (facts := facts_of(source)):
        raise _unfinished(source.url, facts[_COPYING])
    if source.workers() and not may_work:
        raise _working(source, ", or say --rehearse to copy from under them into a database that stays closed")


def check_apart(source: Copyable, target: Copyable) -> None:
    """RejectedError if both are one database: whoever held it as the source would wait for himself."""
    if source.place() == target.place():
        raise _refusal(
            CopyRefusal.SAME_DATABASE, f"{target.url} is the source itself; name another database as the target"
        )


def _check_target(target: Tables, facts: Mapping[str, str], codec: str) -> None:
    """RejectedError unless nothing is lost by copying into it."""
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
    """Copy all rows, prove that they have arrived, and leave the target closed; whoever calls has open transactions on both."""
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
    """RejectedError if the source has other rows than were copied: whoever was not stopped learns of maintenance a moment later."""
    moved = [name for name, count in transfer.rows.items() if name != FACTS and source.count(name) != count]
    if moved:
        told = (
            f"somebody has written into {source.url} ({', '.join(moved)}) after it was copied: stop all servers and workers, "
            f"`standfast drop {target.url} --yes --with-unfinished`, then copy again; the source goes on as before"
        )
        raise _refusal(CopyRefusal.MOVED_ON, told)


def closed(target: Copyable) -> dict[str, str]:
    """The facts of a source that everything was copied from: it takes no commands, and says where it goes on."""
    return {MAINTENANCE: "refuse", _COPIED: target.url}


def reopened(maintenance: str) -> dict[str, str]:
    """The facts of a source that nothing was copied from after all."""
    return {MAINTENANCE: maintenance, _COPIED: ""}


def opened(*, is_closed: bool) -> dict[str, str]:
    """The facts that end a copy: it is verified, and open for work unless it was a rehearsal."""
    return {_COPYING: "", MAINTENANCE: "refuse" if is_closed else ""}


def _shared(source: Tables, target: Tables) -> dict[str, Columns]:
    """The tables that are copied, and their columns; SchemaMismatchError if one of the databases has others."""
    ours, theirs = source.columns(), target.columns()
    for name in sorted((ours.keys() | theirs.keys()) - OF_THE_PLACE):
        if set(ours.get(name, ())) != set(theirs.get(name, ())):
            raise SchemaMismatchError(
                f"{source.url} and {target.url} have not the same columns in {name}: run `standfast migrate` on both"
            )
    return {name: columns for name, columns in ours.items() if name not in OF_THE_PLACE}


def _told(hear: Hear, stage: Stage, table: str, total: int) -> Callable[[Iterable[Row]], Iterator[Row]]:
    """What hands rows on, with a word now and then of how many they are."""

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
        f"a copy of {origin} into {where} was not verified to its end, so that nobody may work on it; "
        f"`standfast drop {where} --yes --with-unfinished` empties it, then copy again"
    )
    return _refusal(CopyRefusal.UNFINISHED_COPY, told)


def _working(tables: Tables, otherwise: str) -> RejectedError:
    told = f"{tables.workers()} workers are alive on {tables.url}; stop them, or wait until the leases of dead ones are over{otherwise}"
    return _refusal(CopyRefusal.STILL_WORKING, told)


def _refusal(code: CopyRefusal, message: str) -> RejectedError:
    return RejectedError(reason=code.value, message=message)
