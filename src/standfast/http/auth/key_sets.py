"""Public keys of token issuers, from a file or by https."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from pathlib import Path
from typing import Final

import msgspec

from standfast.http.wire.issuer_client import fetch
from standfast.kernel.codec.type_cache import settled

_log = logging.getLogger("standfast.http")
_FRESH_SECONDS: Final = 600.0
"""Older keys are refreshed on use; known keys stay valid meanwhile."""
_OLD_SECONDS: Final = 2 * _FRESH_SECONDS
"""Keys without a refresh attempt for longer are not used until they are read again: one may have been revoked."""
_AGAIN_SECONDS: Final = 30.0
"""A key that is not there is not looked for again before."""

_WAIT_SECONDS: Final = 6.0
"""How long a request waits for keys: a little longer than the timeout of the issuer, however long its name is
resolved."""

Key = dict[str, object]
"""A JSON Web Key."""


class _Keys(msgspec.Struct, frozen=True):
    keys: list[Key]


class KeySet:
    """The keys of one issuer, read when they are needed and kept for a while."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._keys: list[Key] = []
        self._read_at = self._tried_at = -math.inf  # The clock may have begun a moment ago, with the machine.
        self._reading: asyncio.Task[None] | None = None

    async def find(self, identity: str | None) -> Key | None:
        """Return the key with this id, or the only one if the token names none.

        A known key does not wait for an unreachable issuer.
        """
        found, now = self._known(identity), time.monotonic()
        if found is not None and now - self._read_at < _FRESH_SECONDS:
            return found
        is_old = now - max(self._read_at, self._tried_at) >= _OLD_SECONDS
        reading = self._begun(now)
        if reading is not None and (found is None or is_old):
            await asyncio.wait({reading}, timeout=_WAIT_SECONDS)
            found = self._known(identity)
        return found

    def _begun(self, now: float) -> asyncio.Task[None] | None:
        """Return the pending refresh, or begin one; None if the last one was a moment ago."""
        if self._reading is None or self._reading.done():
            if now - self._tried_at < _AGAIN_SECONDS:
                return None
            self._tried_at = now
            self._reading = asyncio.create_task(self._read())
        return self._reading

    def _known(self, identity: str | None) -> Key | None:
        if identity is None:
            return self._keys[0] if len(self._keys) == 1 else None
        return next((key for key in self._keys if key.get("kid") == identity), None)

    async def _read(self) -> None:
        try:
            data = await asyncio.to_thread(self._fetched)
            keys = msgspec.json.decode(data, type=settled(_Keys)).keys
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            _log.warning("key_set_unreadable url=%s error=%r", self._place, error)
            return
        self._keys = [key for key in keys if key.get("use", "sig") == "sig" and key.get("kty") != "oct"]
        self._read_at = time.monotonic()

    def _fetched(self) -> bytes:
        return fetch(self._place) if "://" in self._place else Path(self._place).read_bytes()
