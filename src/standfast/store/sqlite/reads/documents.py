"""Documents of one tenant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.documents import DOCUMENTS, StoredDocument
from standfast.store.ports.documents import DocumentQuery, InForce
from standfast.store.records.instances import SHARED_TENANT
from standfast.store.sql.paging import LAST_ID
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.records import reading
from standfast.store.sqlite.connection.session import Row, instance_id


class _Sql(msgspec.Struct, frozen=True):
    document: str
    documents_of_type: str
    documents_of_status: str
    documents_of_requester: str
    in_force: str
    stand_in: str
    touched_by: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "documents.sql")
_read = reading(DOCUMENTS)


class SQLiteDocumentReads:
    """Reads documents of one tenant. Subclasses provide the connection."""

    _tenant: str
    _partition: str

    def document(self, type_: str, id_: str, partition: str = "") -> StoredDocument | None:
        """Return a document."""
        place = {"tenant": self._tenant, "partition": self._partition or partition}
        found = self._all(_sql.document, {**place, "type": type_, "id": id_})
        return _read(found[0]) if found else None

    def documents(self, query: DocumentQuery) -> list[StoredDocument]:
        """Return a page of documents, newest first."""
        values = {
            "tenant": self._tenant,
            "partition": self._partition,
            "type": query.type,
            "status": query.status,
            "requester": query.requester,
            "before": str(query.before or LAST_ID),
            "limit": query.limit,
        }
        if query.status:
            statement = _sql.documents_of_status
        elif query.requester:
            statement = _sql.documents_of_requester
        else:
            statement = _sql.documents_of_type
        return [_read(row) for row in self._all(statement, values)]

    def in_force(self, type_: str) -> InForce | None:
        """Return the active workflow for new documents."""
        found = self._all(_sql.in_force, {"tenant": self._tenant, "type": type_})
        if not found:
            return None
        workflow, status, is_shared, version, is_suspended = found[0]
        return InForce(workflow, status, bool(is_shared), version, bool(is_suspended))

    def touched_by(self, names: Sequence[str], instances: Sequence[InstanceId]) -> set[InstanceId]:
        """Return the instances whose document one of these people has changed, or that amend another one."""
        values = {
            "tenant": self._tenant,
            "partition": self._partition,
            "names": json.dumps(names),
            "instances": json.dumps([str(each) for each in instances]),
        }
        return {instance_id(row[0]) for row in self._all(_sql.touched_by, values)}

    def stand_in(self, type_: str, found: InForce) -> str:
        """Return the version before a suspended one."""
        owner = SHARED_TENANT if found.is_shared else self._tenant
        values = {"tenant": self._tenant, "owner": owner, "type": type_, "version": found.version}
        rows = self._all(_sql.stand_in, values)
        return str(rows[0][0]) if rows else ""

    def _all(self, statement: str, values: dict[str, Any] | Sequence[object]) -> list[Row]:
        raise NotImplementedError
