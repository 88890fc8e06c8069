"""Ids. Instances have a UUIDv7, which contains their creation time. Nothing here reads a clock."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NewType
from uuid import UUID, SafeUUID

InstanceId = NewType("InstanceId", UUID)
"""Id of a run of a definition."""

WorkerId = NewType("WorkerId", UUID)
"""Id of one start of a worker process. It is never reused, so that a restarted process is a new worker."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_RANDOM_BITS = 74


_new, _set, _UNKNOWN = object.__new__, object.__setattr__, SafeUUID.unknown


def uuid_of(number: int) -> UUID:
    """Return the UUID with this integer value. UUID's own constructor takes three times as long."""
    made = _new(UUID)
    _set(made, "int", number)
    _set(made, "is_safe", _UNKNOWN)
    return made


def unix_milliseconds(at: datetime) -> int:
    """Return the time in milliseconds since 1970, the first part of a UUIDv7."""
    return (at - _EPOCH) // _MILLISECOND


def make_uuid7(at: datetime, randomness: int) -> UUID:
    """Build a UUIDv7 for the time `at` with 74 bits from `randomness`."""
    milliseconds = unix_milliseconds(at)
    high, low = (randomness >> 62) & 0xFFF, randomness & (1 << 62) - 1
    return uuid_of(milliseconds << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)


def born_at(identity: UUID) -> datetime:
    """Return the creation time of a UUIDv7, to the millisecond."""
    return _EPOCH + (identity.int >> 80) * _MILLISECOND


def derive_uuid7(at: datetime, *parts: object) -> UUID:
    """Derive a UUIDv7 from a time and parts. Equal inputs give equal ids, so that pure decisions can generate ids."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=16).digest()
    return make_uuid7(at, int.from_bytes(digest) >> (128 - _RANDOM_BITS))


def effect_key(instance: UUID, number: int) -> str:
    """Return the idempotency key of an effect: the same for all attempts, and unique among effects."""
    return f"{id_text(instance)}:{number}"


def id_text(identity: UUID) -> str:
    """Return an id as text. Recent results are cached, because active ids are formatted repeatedly."""
    return _written(identity.int)


@lru_cache(16_384)
def _written(number: int) -> str:
    return str(uuid_of(number))
