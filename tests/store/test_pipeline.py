"""Several statements in one round trip: all of them or none, whatever goes wrong where."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest

from standfast.kernel.ids import InstanceId, WorkerId
from standfast.store.opening import open_store
from standfast.store.postgres.commit.transactions import opened
from standfast.store.postgres.connection.connection import Connection, ReconnectingConnection
from standfast.store.postgres.connection.pipeline import Statement, StatementCall, send
from standfast.store.postgres.connection.prepared_statements import drop_prepared
from standfast.store.records.instances import EffectClaim
from standfast.store.sql.conflicts import VoidClaimError

KEEP = Statement("insert into kept values ($1::text)")
KEEP_TOO = Statement("insert into kept values ($1::text || '!')")
FAIL = Statement("select 1 / length($1::text)")


@pytest.fixture(params=[True, False], ids=["prepared", "pooled"])
def connection(request: pytest.FixtureRequest, postgres_dsn: str) -> Iterator[Connection]:
    """A connection of ours and a table, with and without prepared statements."""
    open_store(postgres_dsn).close()
    line = ReconnectingConnection(postgres_dsn, prepare=request.param)
    with line.use() as connection:
        connection.execute("create table kept (what text)")
        yield connection
    line.close()


def kept(connection: Connection) -> list[str]:
    """What is in the table."""
    return sorted(str(row[0]) for row in connection.execute("select what from kept").fetchall())


def test_all_are_carried_out(connection: Connection) -> None:
    """The same statement may be sent several times, new ones and known ones in any order."""
    send(connection, [StatementCall(KEEP, [b"a"]), StatementCall(KEEP, [b"b"])])
    send(connection, [StatementCall(KEEP_TOO, [b"c"]), StatementCall(KEEP, [b"d"])])
    assert kept(connection) == ["a", "b", "c!", "d"]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_that_fails_takes_the_others_with_it(connection: Connection, place: int) -> None:
    """Those before it are undone, those behind it are not carried out, and the connection goes on."""
    calls = [StatementCall(KEEP, [b"a"]), StatementCall(KEEP_TOO, [b"b"])]
    calls.insert(place, StatementCall(FAIL, [b""]))
    with pytest.raises(psycopg.errors.DivisionByZero):
        send(connection, calls)
    assert kept(connection) == []
    send(connection, [StatementCall(KEEP, [b"a"]), StatementCall(KEEP_TOO, [b"b"]), StatementCall(FAIL, [b"well"])])
    assert kept(connection) == ["a", "b!"]


def test_what_was_sent_is_called_off_when_the_rest_cannot_be_made(connection: Connection) -> None:
    """A value that cannot be packed is noticed while others are on their way: they must not stand."""
    server = connection.info.backend_pid

    def calls() -> Iterator[StatementCall]:
        yield StatementCall(KEEP, [b"a"])
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        send(connection, calls())
    assert kept(connection) == []
    assert connection.info.backend_pid == server
    send(connection, [StatementCall(KEEP, [b"a"])])
    assert kept(connection) == ["a"]


def test_large_values_pass(connection: Connection) -> None:
    """More than any buffer between here and the server takes at once."""
    large = b"x" * 8_000_000
    send(connection, [StatementCall(KEEP, [large])] * 4)
    assert connection.execute("select sum(length(what)) from kept").fetchone() == (32_000_000,)


def test_statements_that_were_dropped_are_prepared_again(connection: Connection) -> None:
    """After a rollback the driver drops them; whoever knows says so, and whoever finds out loses a round."""
    send(connection, [StatementCall(KEEP, [b"a"])])
    drop_prepared(connection)
    send(connection, [StatementCall(KEEP, [b"b"])])
    connection.execute("deallocate all")
    if connection.prepare_threshold is not None:
        with pytest.raises(psycopg.errors.InvalidSqlStatementName):
            send(connection, [StatementCall(KEEP, [b"c"])])
    send(connection, [StatementCall(KEEP, [b"c"])])
    assert kept(connection) == ["a", "b", "c"]


def test_nothing_is_left_prepared_where_a_transaction_failed(connection: Connection) -> None:
    """A connection on which handlers fail again and again does not gather statements at the server."""
    nobody = EffectClaim(InstanceId(UUID(int=1)), 0, WorkerId(UUID(int=2)), 0)
    for _ in range(3):
        with pytest.raises(VoidClaimError), opened(connection, 0) as unit, unit.lend(claim=nobody):
            pass
    left = connection.execute("select count(*) from pg_prepared_statements where name like 'standfast%'", prepare=False)
    assert left.fetchone() == (0,)


def test_whoever_drops_statements_again_and_again_is_met_once(connection: Connection) -> None:
    """What was prepared before a loan is used behind it; where it was dropped meanwhile, nothing is prepared any more."""
    failures = 0
    for _ in range(3):
        try:
            with opened(connection, 0) as unit:
                unit.load([])
                with unit.lend() as lent:
                    lent.execute("deallocate all")
                unit.load([])
        except psycopg.errors.InvalidSqlStatementName:
            failures += 1
    assert failures == (connection.prepare_threshold is not None)


def test_a_lost_connection_is_told(connection: Connection, postgres_dsn: str) -> None:
    """A server that hangs up in the midst is an outage, and the connection is closed."""
    send(connection, [StatementCall(KEEP, [b"a"])])
    with psycopg.connect(postgres_dsn, autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s)", [connection.info.backend_pid])
    for _ in range(2):
        with pytest.raises(psycopg.OperationalError):
            send(connection, [StatementCall(KEEP, [b"b"]), StatementCall(KEEP_TOO, [b"c"])])
    assert connection.closed
