"""Documents of one tenant."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from psycopg.types.numeric import Int4, Int8

from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.documents import DOCUMENTS, StoredDocument
from standfast.store.ports.documents import DocumentQuery, InForce
from standfast.store.postgres.connection.packing import Texts, Uuids
from standfast.store.postgres.connection.records import reading
from standfast.store.postgres.connection.session import Row
from standfast.store.records.instances import SHARED_TENANT
from standfast.store.sql.paging import LAST_ID
from standfast.store.sql.statements import read_statements


class _Sql(msgspec.Struct, frozen=True):
    document: str
    documents_of_type: str
    documents_of_status: str
    documents_of_requester: str
    in_force: str
    stand_in: str
    touched_by: str


_sql = read_statements(_Sql, "standfast.store.postgres", "documents.sql")
_read = reading(DOCUMENTS)


class PostgresDocumentReads:
    """Reads documents of one tenant. Subclasses provide the connection."""

    _tenant: str
    _partition: str

    def document(self, type_: str, id_: str, partition: str = "") -> StoredDocument | None:
        """Return a document."""
        found = self._all(_sql.document, [self._tenant, type_, id_, self._partition or partition])
        return _read(found[0]) if found else None

    def documents(self, query: DocumentQuery) -> list[StoredDocument]:
        """Return a page of documents, newest first."""
        values: list[object] = [self._tenant, query.type, query.before or LAST_ID, Int8(query.limit), self._partition]
        if query.status:
            found = self._all(_sql.documents_of_status, [*values, query.status, query.requester])
        elif query.requester:
            found = self._all(_sql.documents_of_requester, [*values, query.requester])
        else:
            found = self._all(_sql.documents_of_type, values)
        return [_read(row) for row in found]

    def in_force(self, type_: str) -> InForce | None:
        """Return the active workflow for new documents."""
        found = self._all(_sql.in_force, [self._tenant, type_])
        return InForce(*found[0]) if found else None

    def touched_by(self, names: Sequence[str], instances: Sequence[InstanceId]) -> set[InstanceId]:
        """Return the instances whose document one of these people has changed, or that amend another one."""
        found = self._all(_sql.touched_by, [self._tenant, Uuids(instances), Texts(names), self._partition])
        return {InstanceId(row[0]) for row in found}

    def stand_in(self, type_: str, found: InForce) -> str:
        """Return the version before a suspended one."""
        owner = SHARED_TENANT if found.is_shared else self._tenant
        rows = self._all(_sql.stand_in, [self._tenant, type_, owner, Int4(found.version)])
        return str(rows[0][0]) if rows else ""

    def _all(self, statement: str, values: Sequence[object]) -> list[Row]:
        raise NotImplementedError
