"""The webhook channel: a signed POST, by the rules of Standard Webhooks (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ssl
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from standfast.engine.common.handlers import Fail
from standfast.errors import ConfigurationError
from standfast.notifications.notification import Notice
from standfast.outbound.http import HttpLimits, HttpRequest, Outbound, check_header, judge
from standfast.outbound.urls import place_of

_PREFIX: Final = "whsec_"
_LEAST_SECRET, _LONGEST_SECRET = 24, 64
"""Bytes of a secret."""


class Webhook:
    """Sends notices to one URL. `secret` is shared with it: `whsec_` and the base64 of 24 to 64 bytes.

    A non-public address needs `outbound_allow` in the settings, or `allow`, which is for this URL alone.
    """

    def __init__(
        self,
        url: str,
        *,
        secret: str,
        timeout: float = 10.0,
        headers: Mapping[str, str] | None = None,
        allow: Iterable[str] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        try:
            self._place = place_of(url)
        except ValueError as error:
            raise ConfigurationError(f"this is no address of a webhook: {error}") from None
        self._secret = webhook_secret(secret)
        self._limits = HttpLimits(connect_seconds=timeout, total_seconds=timeout, reads_body=False)
        self._headers = dict(headers or {})
        for name, value in self._headers.items():
            _check(name, value)
        self._allow, self._tls = tuple(allow), tls
        self._outbound = Outbound().extended(self._allow, tls)

    def attach(self, outbound: Outbound) -> None:
        """Receive the engine's HTTP client."""
        self._outbound = outbound.extended(self._allow, self._tls)

    def send(self, notice: Notice) -> None:
        """Post the notice. A 2xx response means that the receiver has taken it."""
        body = msgspec.json.encode({"type": "notification", "timestamp": notice.at.isoformat(), "data": _data(notice)})
        headers = {**self._headers, **self._signed(notice, body)}
        request = HttpRequest(method="POST", place=self._place, headers=headers, body=body)
        judge(self._outbound.send(request, self._limits))

    def _signed(self, notice: Notice, body: bytes) -> dict[str, str]:
        return {"content-type": "application/json", **signature_of(self._secret, notice.key, notice.at, body)}


def signature_of(secret: bytes, key: str, at: datetime, body: bytes) -> dict[str, str]:
    """Return the headers by which a receiver authenticates the sender and detects duplicates."""
    identity = hashlib.sha256(key.encode()).hexdigest()
    timestamp = str(int(at.timestamp()))
    signed = b".".join((identity.encode(), timestamp.encode(), body))
    signature = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    return {"webhook-id": identity, "webhook-timestamp": timestamp, "webhook-signature": f"v1,{signature}"}


def webhook_secret(given: str) -> bytes:
    """Decode a secret; ConfigurationError if it is invalid."""
    try:
        secret = base64.b64decode(given.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not given.startswith(_PREFIX) or not _LEAST_SECRET <= len(secret) <= _LONGEST_SECRET:
        told = f"the secret of a webhook is {_PREFIX!r} and the base64 of {_LEAST_SECRET} to {_LONGEST_SECRET} bytes"
        raise ConfigurationError(f"{told}; make one from as many random bytes")
    return secret


def _check(name: str, value: str) -> None:
    try:
        check_header(name, value)
    except Fail as error:
        raise ConfigurationError(str(error)) from None


def _data(notice: Notice) -> dict[str, object]:
    return {
        "tenant": notice.tenant,
        "to": {"kind": notice.kind, "name": notice.to, **({"except": notice.kept_out} if notice.kept_out else {})},
        "subject": notice.subject,
        "body": notice.body,
        "instance": str(notice.instance),
        "definition": notice.definition,
        "step": notice.step,
        "step_name": notice.node,
    }
