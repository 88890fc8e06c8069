"""ETags of versioned resources: they hold the version, and a hash of the rest of the response."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from standfast.errors import RejectedError
from standfast.http.requests.routing import AnyCall
from standfast.http.wire.problems import EdgeCode, EdgeError

_CONFLICTS: Final = frozenset({"version_conflict", "DRAFT_CHANGED"})
_encode = msgspec.json.Encoder(enc_hook=str).encode


def tag_of(shown: object, version: int) -> str:
    """Return an ETag.

    `If-Match` compares only its version, as in `"v3"`; `If-None-Match` compares all of it, because a response depends
    on caller and time.
    """
    return f'"v{version}.{hashlib.blake2b(_encode(shown), digest_size=6).hexdigest()}"'


def changed(call: AnyCall, error: RejectedError) -> Exception:
    """Return the error of a failed condition, if the rejection is about the version that the condition names."""
    if error.reason not in _CONFLICTS or "if-match" not in call.headers:
        return error
    return EdgeError(EdgeCode.CHANGED_MEANWHILE, str(error).removesuffix(f" [{error.reason}]"))
