"""The channel to other systems: a signed POST, by the rules of Standard Webhooks (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from holdfast.errors import ConfigurationError
from holdfast.people.notices.notice import Notice
from holdfast.runtime.handlers import Fail, Retry

_PREFIX: Final = "whsec_"
_LEAST_SECRET, _LONGEST_SECRET = 24, 64
"""Bytes of a secret."""
_AGAIN: Final = frozenset({408, 425, 429})
"""Answers of the caller's fault after which it is worth trying again; so are all of the server's."""
_LONGEST_PAUSE: Final = 3600
"""Seconds that a server may ask for."""
_SERVER_FAULT = 500
_SUCCESS = range(200, 300)

Connect = Callable[[SplitResult, float], HTTPConnection]
"""Opens a connection to a place, with a time in seconds that it may take; whoever forbids some places does it here."""


class Webhook:
    """Sends notices to one place. `secret` is shared with it: `whsec_` and the base64 of 24 to 64 bytes."""

    def __init__(
        self,
        url: str,
        *,
        secret: str,
        timeout: float = 10.0,
        headers: Mapping[str, str] | None = None,
        connect: Connect | None = None,
    ) -> None:
        self._place = urlsplit(url)
        if self._place.scheme not in {"http", "https"} or not self._place.hostname:
            raise ConfigurationError(
                f"{url!r} is no address of a webhook; give one that begins with https:// or http://"
            )
        self._secret = _secret(secret)
        self._timeout = timeout
        self._headers = dict(headers or {})
        self._connect = connect or _connected

    def send(self, notice: Notice) -> None:
        """Post it; what a receiver has taken it answers with 2xx."""
        body = msgspec.json.encode({"type": "notification", "timestamp": notice.at.isoformat(), "data": _data(notice)})
        connection = self._connect(self._place, self._timeout)
        try:
            path = (self._place.path or "/") + (f"?{self._place.query}" if self._place.query else "")
            connection.request("POST", path, body=body, headers={**self._headers, **self._signed(notice, body)})
            answer = connection.getresponse()
            answer.read(_ENOUGH)
        except (OSError, HTTPException) as error:
            raise Retry(f"{self._place.netloc} cannot be reached: {type(error).__name__} {error}") from error
        finally:
            connection.close()
        _judge(answer, self._place.netloc)

    def _signed(self, notice: Notice, body: bytes) -> dict[str, str]:
        identity = hashlib.sha256(notice.key.encode()).hexdigest()
        timestamp = str(int(notice.at.timestamp()))
        signed = b".".join((identity.encode(), timestamp.encode(), body))
        signature = base64.b64encode(hmac.new(self._secret, signed, hashlib.sha256).digest()).decode()
        return {
            "content-type": "application/json",
            "webhook-id": identity,
            "webhook-timestamp": timestamp,
            "webhook-signature": f"v1,{signature}",
        }


_ENOUGH = 65_536
"""Bytes of an answer that are read before the connection is closed."""


def _secret(given: str) -> bytes:
    try:
        secret = base64.b64decode(given.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not given.startswith(_PREFIX) or not _LEAST_SECRET <= len(secret) <= _LONGEST_SECRET:
        told = f"the secret of a webhook is {_PREFIX!r} and the base64 of {_LEAST_SECRET} to {_LONGEST_SECRET} bytes"
        raise ConfigurationError(f"{told}; make one from as many random bytes")
    return secret


def _connected(place: SplitResult, timeout: float) -> HTTPConnection:
    kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
    return kind(place.hostname or "", place.port, timeout=timeout)


def _data(notice: Notice) -> dict[str, object]:
    return {
        "tenant": notice.tenant,
        "to": {"kind": notice.kind, "name": notice.to},
        "subject": notice.subject,
        "body": notice.body,
        "instance": str(notice.instance),
        "definition": notice.definition,
        "step": notice.step,
        "step_name": notice.node,
    }


def _judge(answer: HTTPResponse, host: str) -> None:
    """Whether it was taken, may be taken later, or never will be: a redirection is not followed."""
    if answer.status in _SUCCESS:
        return
    told = f"{host} has answered {answer.status}"
    if answer.status < _SERVER_FAULT and answer.status not in _AGAIN:
        raise Fail(told)
    asked = answer.getheader("retry-after", "")
    raise Retry(told, after=min(int(asked), _LONGEST_PAUSE) if asked.isdecimal() else None)
