"""Requests that workflows of documents send to other systems, and what is kept of them as evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from standfast.calls.handlers.step_handlers import StepContext
from standfast.engine.common.handlers import EffectContext, Fail
from standfast.errors import ConfigurationError
from standfast.kernel.codec.depth import is_deep
from standfast.machine.flow.outgoing_requests import payload_of
from standfast.machine.model.engine_tasks import Post
from standfast.notifications.webhook import signature_of, webhook_secret
from standfast.outbound.http import HttpLimits, HttpRequest, HttpResponse, Outbound, judge
from standfast.outbound.json_bodies import is_json
from standfast.outbound.secrets import Lent, secret_of
from standfast.outbound.urls import place_of

Data = dict[str, object]

MOST_EVIDENCE: Final = 64 * 1024
"""Bytes of an answer that are kept; of a longer one its beginning, and the hash of all."""
_PATIENCE: Final = 30.0
"""Seconds for a request that nobody gives a limit."""


class _Letter(NamedTuple):
    url: str
    payload: Data
    secret: str
    key: str
    """The receiver sees it as `idempotency-key`: the same for every attempt."""
    trace: str
    seconds: float
    waits: bool
    """Whether the document waits for the answer, and keeps it."""


class Webhooks:
    """Sends such requests by the engine's way to other systems."""

    def __init__(self, outbound: Outbound, lent: Lent, now: Callable[[], datetime]) -> None:
        self._outbound = outbound
        self._lent = lent
        self._now = now

    def call(self, context: StepContext, data: Data) -> Data:
        """Send the request of a step that waits for it; what is kept of the answer."""
        limit = _PATIENCE if context.deadline is None else (context.deadline - self._now()).total_seconds()
        return self._send(
            _Letter(
                url=str(data.get("url", "")),
                payload=payload_of(data),
                secret=str(data.get("secret", "")),
                key=context.idempotency_key,
                trace=context.trace,
                seconds=limit,
                waits=True,
            )
        )

    def run(self, context: EffectContext, errand: Post) -> None:
        """Send a request that nobody waits for."""
        key = f"{context.instance}:{errand.key}"
        self._send(_Letter(errand.url, errand.payload, errand.secret, key, context.trace, _PATIENCE, waits=False))

    def _send(self, letter: _Letter) -> Data:
        try:
            place = place_of(letter.url)
        except ValueError as error:
            raise Fail(f"this is no address of a webhook: {error}") from None
        body = msgspec.json.encode(letter.payload)
        headers = {"content-type": "application/json", "idempotency-key": letter.key}
        if letter.trace:
            headers["traceparent" if _is_w3c(letter.trace) else "x-trace-id"] = letter.trace
        if letter.secret:
            headers |= signature_of(self._secret(letter.secret), letter.key, self._now(), body)
        request = HttpRequest(method="POST", place=place, headers=headers, body=body)
        limits = HttpLimits(
            connect_seconds=min(5.0, letter.seconds),
            total_seconds=letter.seconds,
            response_bytes=MOST_EVIDENCE,
            reads_body=letter.waits,
            cuts_body=True,
        )
        answer = self._outbound.send(request, limits)
        judge(answer)
        asked = {"url": place.name, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
        return {"request": asked, "status": answer.status, **_kept(answer)}

    def _secret(self, reference: str) -> bytes:
        if not self._lent.has(reference):
            raise Fail("webhook_secrets of the settings does not name the secret that it is to be signed with")
        try:
            return webhook_secret(secret_of(reference, "a webhook"))
        except (ConfigurationError, OSError, UnicodeDecodeError) as error:
            raise Fail(str(error)) from None


def _kept(answer: HttpResponse) -> Data:
    """What an answer says: as data if it is small and JSON, else as text; of a long one its beginning, with the hash of all that was read."""
    body, cut = answer.body, answer.cut
    if cut is not None:
        known: Data = {"sha256": cut.sha256, "bytes": cut.size, "is_truncated": True}
        if not cut.is_whole:
            known["is_hash_partial"] = True
        return {**known, "body": body.decode(errors="replace")}
    told: Data = {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)}
    if body and is_json(answer.headers.get("content-type", "")):
        try:
            found: object = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = None
        if found is not None and not is_deep(found):
            return {**told, "body": found}
    return {**told, "body": body.decode(errors="replace")}


def _is_w3c(trace: str) -> bool:
    return len(trace.split("-")) == len(("version", "trace", "span", "flags"))
