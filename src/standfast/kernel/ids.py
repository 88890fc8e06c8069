"""Identities. Instances carry a UUIDv7, so that an id tells when its instance was born; nothing here reads a clock."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NewType
from uuid import UUID, SafeUUID

InstanceId = NewType("InstanceId", UUID)
"""One run of one definition."""

WorkerId = NewType("WorkerId", UUID)
"""One start of one worker process; never reused, so that a restarted host is a new worker."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_RANDOM_BITS = 74


_new, _set, _UNKNOWN = object.__new__, object.__setattr__, SafeUUID.unknown


def uuid_of(number: int) -> UUID:
    """The UUID that is this number. UUID's own constructor takes three times as long, because it takes so many forms."""
    made = _new(UUID)
    _set(made, "int", number)
    _set(made, "is_safe", _UNKNOWN)
    return made


def unix_milliseconds(at: datetime) -> int:
    """The milliseconds since 1970 of an instant, by which a UUIDv7 begins."""
    return (at - _EPOCH) // _MILLISECOND


def make_uuid7(at: datetime, randomness: int) -> UUID:
    """A UUIDv7 born at `at`, with 74 bits taken from `randomness`."""
    milliseconds = unix_milliseconds(at)
    high, low = (randomness >> 62) & 0xFFF, randomness & (1 << 62) - 1
    return uuid_of(milliseconds << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)


def born_at(identity: UUID) -> datetime:
    """The instant a UUIDv7 was made, to the millisecond."""
    return _EPOCH + (identity.int >> 80) * _MILLISECOND


def derive_uuid7(at: datetime, *parts: object) -> UUID:
    """A UUIDv7 that is the same whenever it is asked for with the same instant and parts: how a pure decision names things."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=16).digest()
    return make_uuid7(at, int.from_bytes(digest) >> (128 - _RANDOM_BITS))


def effect_key(instance: UUID, number: int) -> str:
    """The idempotency key of an effect: equal over all its attempts, different from every other effect's."""
    return f"{id_text(instance)}:{number}"


def id_text(identity: UUID) -> str:
    """An id as text. Ids are written down again and again while their instances are at work, so the last ones are remembered."""
    return _written(identity.int)


@lru_cache(16_384)
def _written(number: int) -> str:
    return str(uuid_of(number))
