"""Documents in a transaction of the caller's own: what he writes to his tables and what becomes of a document are one commit, which is his."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from standfast.features.documents.calls import FutureDocuments
    from standfast.features.documents.content.views import DocumentView


class UnitDocuments:
    """The calls that write documents, in an open transaction. Each answers with the document as that transaction has it.

    What is refused raises and leaves the transaction as it was. Steps, timers and messages that follow begin once it is committed.
    """

    def __init__(self, open_: Callable[[], FutureDocuments]) -> None:
        self._open = open_

    def create(
        self,
        type: str,  # noqa: A002 - the word that everybody uses for it
        data: dict[str, object] | None = None,
        *,
        id: str = "",  # noqa: A002 - the word that everybody uses for it
        reason: str = "",
        idempotency_key: str = "",
    ) -> DocumentView:
        """Create a document of a type. See `engine.documents.create`."""
        return self._open().create(type, data, id=id, reason=reason, idempotency_key=idempotency_key).result()

    def mutate(
        self,
        type: str,  # noqa: A002 - the word that everybody uses for it
        id: str,  # noqa: A002 - the word that everybody uses for it
        changes: dict[str, object] | None = None,
        *,
        action: str = "update",
        expected_version: int | None = None,
        reason: str = "",
        idempotency_key: str = "",
    ) -> DocumentView:
        """Change a document, or amend it where an edit is that. An action that has a handler is done outside. See `engine.documents.mutate`."""
        calls = self._open()
        return calls.mutate(
            type,
            id,
            changes,
            action=action,
            expected_version=expected_version,
            reason=reason,
            idempotency_key=idempotency_key,
        ).result()

    def transition(
        self,
        type: str,  # noqa: A002 - the word that everybody uses for it
        id: str,  # noqa: A002 - the word that everybody uses for it
        transition: str,
        *,
        expected_version: int | None = None,
        reason: str = "",
        idempotency_key: str = "",
    ) -> DocumentView:
        """Ask for a transition of the lifecycle. See `engine.documents.transition`."""
        calls = self._open()
        return calls.transition(
            type, id, transition, expected_version=expected_version, reason=reason, idempotency_key=idempotency_key
        ).result()

    def amend(
        self,
        type: str,  # noqa: A002 - the word that everybody uses for it
        id: str,  # noqa: A002 - the word that everybody uses for it
        changes: dict[str, object],
        *,
        new_id: str = "",
        expected_version: int | None = None,
        reason: str = "",
        idempotency_key: str = "",
    ) -> DocumentView:
        """Amend a document by name. See `engine.documents.amend`."""
        calls = self._open()
        return calls.amend(
            type,
            id,
            changes,
            new_id=new_id,
            expected_version=expected_version,
            reason=reason,
            idempotency_key=idempotency_key,
        ).result()
