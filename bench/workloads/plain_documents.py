"""What edits of documents are compared with: the same rows written by an application itself, with SQLAlchemy and nothing else.

A transaction reads the document with `select … for update`, looks at its status and version, checks what is given against the fields, and
writes the document, its new version with a hash, and a row of the audit. It has no workflow, no approvals, no idempotency and no effects.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import sqlalchemy as sa

from bench.callers import CALLERS, call_all
from bench.figures import Figures, percentiles
from bench.rounds import Round
from bench.workloads.documents import DRAFTS, GIVEN
from bench.workloads.waiting import WARM

_TABLES = sa.MetaData()
_DOCUMENTS = sa.Table(
    "plain_documents",
    _TABLES,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("type", sa.String, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("data", sa.JSON, nullable=False),
    sa.Column("updated_by", sa.String, nullable=False),
    sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
    sa.Index("plain_documents_by_status", "type", "status", "id"),
)
_VERSIONS = sa.Table(
    "plain_versions",
    _TABLES,
    sa.Column("document", sa.String, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("data", sa.JSON, nullable=False),
    sa.Column("hash", sa.String, nullable=False),
    sa.Column("written_by", sa.String, nullable=False),
    sa.Column("written_at", sa.DateTime(timezone=True), nullable=False),
)
_AUDIT = sa.Table(
    "plain_audit",
    _TABLES,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("document", sa.String, nullable=False, index=True),
    sa.Column("who", sa.String, nullable=False),
    sa.Column("what", sa.String, nullable=False),
    sa.Column("why", sa.String, nullable=False),
    sa.Column("changes", sa.JSON, nullable=False),
    sa.Column("at", sa.DateTime(timezone=True), nullable=False),
)
_FIELDS = {"grand_total": int, "note": str}
_LOCKED = sa.select(_DOCUMENTS).where(_DOCUMENTS.c.id == sa.bindparam("name")).with_for_update()


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - an application of its own, without an engine


def prepare(this: Round) -> None:
    """As many drafts as the engine has."""
    with _opened(this) as engine:
        _TABLES.create_all(engine)
        now = _now()
        drafts = [
            {
                "id": f"draft-{number}",
                "type": "invoice",
                "status": "draft",
                "version": 1,
                "data": GIVEN,
                "updated_by": "cleo",
                "updated_at": now,
            }
            for number in range(WARM + this.sized(DRAFTS, least=WARM))
        ]
        with engine.begin() as connection:
            connection.execute(sa.insert(_DOCUMENTS), drafts)


def measure(this: Round) -> Figures:
    """Many callers, each of whom edits one draft after the other."""
    with _opened(this) as engine:
        with engine.connect() as connection:
            drafts = list(connection.scalars(sa.select(_DOCUMENTS.c.id).order_by(_DOCUMENTS.c.id)))

        def edit(name: str) -> None:
            _edit(engine, name, {"grand_total": 70_000, "note": "a typo"}, expected=1)

        call_all(edit, drafts[:WARM])
        answers = call_all(edit, drafts[WARM:])
        with engine.connect() as connection:
            edited = connection.scalar(
                sa.select(sa.func.count()).select_from(_DOCUMENTS).where(_DOCUMENTS.c.version == 2)
            )
        assert edited == len(drafts), "an edit is missing"
    p50, p99 = percentiles(answers.waits)
    return Figures(per_second=answers.per_second, p50_ms=p50, p99_ms=p99)


def _edit(engine: sa.Engine, name: str, changes: dict[str, object], *, expected: int) -> None:
    with engine.begin() as connection:
        row = connection.execute(_LOCKED, {"name": name}).one()
        if row.status not in {"draft", "amended"} or row.version != expected:
            raise PermissionError(f"{name} is {row.status} in version {row.version}")
        for field, value in changes.items():
            if not isinstance(value, _FIELDS[field]):
                raise TypeError(f"{field} is {value!r}")
        now, data, version = _now(), {**row.data, **changes}, row.version + 1
        told = {field: [row.data.get(field), value] for field, value in changes.items()}
        digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
        values = {"version": version, "data": data, "updated_by": "cleo", "updated_at": now}
        connection.execute(sa.update(_DOCUMENTS).where(_DOCUMENTS.c.id == name).values(values))
        kept = {
            "document": name,
            "version": version,
            "data": data,
            "hash": digest,
            "written_by": "cleo",
            "written_at": now,
        }
        connection.execute(sa.insert(_VERSIONS).values(kept))
        line = {"document": name, "who": "cleo", "what": "update", "why": "", "changes": told, "at": now}
        connection.execute(sa.insert(_AUDIT).values(line))


@contextmanager
def _opened(this: Round) -> Iterator[sa.Engine]:
    if this.is_postgres:
        url = sa.make_url(this.url).set(drivername="postgresql+psycopg")
        engine = sa.create_engine(url, pool_size=CALLERS)
    else:
        # One connection that all callers take in turn: more of them would only wait for the lock of the file, and poll.
        arguments = {"check_same_thread": False, "timeout": 60}
        engine = sa.create_engine(f"sqlite:///{this.path}", pool_size=1, max_overflow=0, connect_args=arguments)

        @sa.event.listens_for(engine, "connect")
        def quick(connection: object, _record: object) -> None:
            connection.isolation_level = None  # type: ignore[attr-defined]
            connection.execute("pragma journal_mode = wal")  # type: ignore[attr-defined]
            connection.execute("pragma synchronous = full")  # type: ignore[attr-defined]

        @sa.event.listens_for(engine, "begin")
        def immediate(connection: sa.Connection) -> None:
            connection.exec_driver_sql("begin immediate")

    yield engine
    engine.dispose()
