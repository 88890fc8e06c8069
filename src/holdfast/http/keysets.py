"""Public keys of those who issue tokens, from a file or by https."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Final

import msgspec

from holdfast.http.fetching import fetch
from holdfast.kernel.settling import settled

_log = logging.getLogger("holdfast.http")
_FRESH_SECONDS: Final = 600.0
"""Keys that are older are read anew when they are asked for."""
_AGAIN_SECONDS: Final = 30.0
"""A key that is not there is not looked for again before."""

Key = dict[str, object]
"""A JSON Web Key."""


class _Keys(msgspec.Struct, frozen=True):
    keys: list[Key]


class KeySet:
    """The keys of one issuer, read when they are needed and kept for a while."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._keys: list[Key] = []
        self._read_at = -_FRESH_SECONDS
        self._tried_at = -_AGAIN_SECONDS
        self._turn = asyncio.Lock()

    async def find(self, identity: str | None) -> Key | None:
        """The key of this id, or the only one if the token names none."""
        found = self._known(identity)
        now = time.monotonic()
        is_stale = now - self._read_at >= _FRESH_SECONDS
        if (found is None or is_stale) and now - self._tried_at >= _AGAIN_SECONDS:
            async with self._turn:
                await self._read()
            found = self._known(identity)
        return found

    def _known(self, identity: str | None) -> Key | None:
        if identity is None:
            return self._keys[0] if len(self._keys) == 1 else None
        return next((key for key in self._keys if key.get("kid") == identity), None)

    async def _read(self) -> None:
        if time.monotonic() - self._tried_at < _AGAIN_SECONDS:
            return  # Somebody else has read them while this one waited.
        self._tried_at = time.monotonic()
        try:
            data = await asyncio.to_thread(self._fetched)
            keys = msgspec.json.decode(data, type=settled(_Keys)).keys
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            _log.warning("the keys at %s cannot be read: %s", self._place, error)
            return
        self._keys = [key for key in keys if key.get("use", "sig") == "sig" and key.get("kty") != "oct"]
        self._read_at = time.monotonic()

    def _fetched(self) -> bytes:
        return fetch(self._place) if "://" in self._place else Path(self._place).read_bytes()
