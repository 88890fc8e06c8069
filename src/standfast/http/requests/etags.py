"""Tags of things that have a version: they name it, and tell whether anything else that is shown has changed."""

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
    """An ETag; `If-Match` looks at its version alone, as in `"v3"`, and `If-None-Match` at all of it: who looks, and when, changes what is shown."""
    return f'"v{version}.{hashlib.blake2b(_encode(shown), digest_size=6).hexdigest()}"'


def changed(call: AnyCall, error: RejectedError) -> Exception:
    """A refusal, which is about the condition if that names what is not so any more."""
    if error.reason not in _CONFLICTS or "if-match" not in call.headers:
        return error
    return EdgeError(EdgeCode.CHANGED_MEANWHILE, str(error).removesuffix(f" [{error.reason}]"))
