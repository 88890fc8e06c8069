"""Calls of edges of the engine: requests that may be sent again, and what was answered to them."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec

from standfast.calls.context import CallContext, checked_key
from standfast.engine.concurrency.replies import Reply
from standfast.errors import PayloadError
from standfast.store.ports.access import StoredRequest

_KEPT: Final = timedelta(days=1)
"""How long an answer is kept."""


class RepeatedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a request whose key was used before."""

    mark: bytes
    """What it was about."""
    age: timedelta
    """How long ago it began."""
    status: int | None
    """What was answered; None if nobody has told."""
    headers: str
    body: bytes | None
    """None if the answer is not kept."""


class FutureRepeats:
    """Requests to an edge of the engine, such as its HTTP API, that are safe to send again: one key of one actor is one request."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def begin(self, key: str, mark: bytes) -> Reply[RepeatedRequest | None]:
        """Note that the actor of these calls begins a request; what is known of it if the key was used before, and None if not.

        `mark` says what it is about. Those of the tenant that are older than a day are forgotten.
        """
        now = self._desk.service.shared.clock.now()

        def write() -> RepeatedRequest | None:
            if not isinstance(mark, bytes):
                raise PayloadError("the mark of a request is bytes, such as a hash of it")
            begun = StoredRequest(
                tenant=self._desk.tenant,
                actor=self._who,
                key=checked_key(key, "idempotency key"),
                mark=mark,
                began_at=now,
                status=None,
                headers="",
                body=None,
            )
            found = self._desk.service.operate(
                lambda parts: parts.access().begin_request(begun, keep_since=now - _KEPT)
            )
            if found is None:
                return None
            return RepeatedRequest(
                mark=found.mark, age=now - found.began_at, status=found.status, headers=found.headers, body=found.body
            )

        return self._desk.read(write)

    def answer(self, key: str, status: int, headers: str, body: bytes | None) -> Reply[None]:
        """Keep what was answered to a request that was begun; without its body if that is None."""

        def write() -> None:
            tenant, actor, name = self._desk.tenant, self._who, checked_key(key, "idempotency key")
            self._desk.service.operate(
                lambda parts: parts.access().answer_request(
                    tenant, actor, name, status=status, headers=headers, body=body
                )
            )

        return self._desk.read(write)

    def forget(self, key: str) -> Reply[None]:
        """Have the key of a request free again that was begun, and that nothing came of."""

        def write() -> None:
            tenant, actor, name = self._desk.tenant, self._who, checked_key(key, "idempotency key")
            self._desk.service.operate(lambda parts: parts.access().forget_request(tenant, actor, name))

        return self._desk.read(write)

    @property
    def _who(self) -> str:
        """Whose keys these are: what an actor did in one part of the tenant is no business of another part."""
        request = self._desk.request
        return msgspec.json.encode([request.partition, request.actor.id]).decode()
