"""Deliveries of other systems, signed by the rules of Standard Webhooks (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from standfast.errors import ConfigurationError
from standfast.http.wire.options import InboundHook
from standfast.http.wire.problems import EdgeCode, EdgeError

_PREFIX: Final = "whsec_"
_LEAST_SECRET, _LONGEST_SECRET = 24, 64
_LONGEST_ID: Final = 128
_VERSION: Final = "v1,"
_MOST_SIGNATURES: Final = 10


class Hook:
    """One address that deliveries come to."""

    def __init__(self, declared: InboundHook) -> None:
        self.declared = declared
        if not declared.secrets:
            raise ConfigurationError(f"the inbound hook {declared.name!r} needs a secret that its sender signs with")
        self._secrets = [_secret(each) for each in declared.secrets]

    def check(self, headers: Mapping[str, str], body: bytes, now: datetime) -> str:
        """The id of a delivery that is signed and of now; EdgeError, always in the same words, if it is not."""
        identity, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        given = headers.get("webhook-signature", "").split(" ")[:_MOST_SIGNATURES]
        is_named = 0 < len(identity) <= _LONGEST_ID and identity.isascii() and identity.isprintable()
        is_timed = timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= len(str(2**33))
        if not is_named or not is_timed:
            raise unsigned()
        signed = b".".join((identity.encode(), timestamp.encode(), body))
        offered = [each.removeprefix(_VERSION).encode() for each in given if each.startswith(_VERSION)]
        own = [base64.b64encode(hmac.new(each, signed, hashlib.sha256).digest()) for each in self._secrets]
        # All are compared, so that the time tells nothing.
        is_signed = sum(hmac.compare_digest(mine, theirs) for mine in own for theirs in offered) > 0
        age = abs(now.timestamp() - int(timestamp))
        if not is_signed or age > self.declared.tolerance.total_seconds():
            raise unsigned()
        return identity

    def key_of(self, payload: object) -> str:
        """The key of the event that a delivery is published as."""
        found = payload
        for part in self.declared.key.split(".") if self.declared.key else ():
            found = found.get(part) if isinstance(found, dict) else None
        if not self.declared.key:
            return ""
        if isinstance(found, bool) or not isinstance(found, str | int):
            told = f"the field {self.declared.key!r} of the body is no text and no number"
            raise EdgeError(EdgeCode.MALFORMED, told)
        return str(found)


def unsigned() -> EdgeError:
    """Return the error of an invalid signature; it does not say what is wrong."""
    return EdgeError(EdgeCode.BAD_SIGNATURE, "the signature of the delivery is invalid or expired")


def _secret(given: str) -> bytes:
    try:
        secret = base64.b64decode(given.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not given.startswith(_PREFIX) or not _LEAST_SECRET <= len(secret) <= _LONGEST_SECRET:
        told = f"the secret of a hook is {_PREFIX!r} and the base64 of {_LEAST_SECRET} to {_LONGEST_SECRET} bytes"
        raise ConfigurationError(f"{told}; make one from as many random bytes")
    return secret
