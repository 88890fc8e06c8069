"""Old values of rows, packed to take less room. They are JSON, which never begins with a zero byte; a packed one does."""

from __future__ import annotations

import zlib
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from standfast.kernel.ids import InstanceId

_MARK: Final = b"\0z"
_SHORTEST: Final = 256
"""Bytes; what is shorter would gain little."""


class CompressionResult(NamedTuple):
    """What became of some rows."""

    packed: int
    last: tuple[InstanceId, int] | None
    """The last step that was looked at; None if there is none behind it."""


class CompressionPort(Protocol):
    """Whoever packs old values."""

    def fade(self, *, before: datetime, after: tuple[InstanceId, int] | None, limit: int) -> CompressionResult:
        """Pack what steps were given and gave, of those of the next ones, in the order of their keys, that ended before an instant."""
        ...


def packed(value: bytes | None) -> bytes | None:
    """A value packed, if it is not and gains by it."""
    if value is None or len(value) < _SHORTEST or value.startswith(_MARK):
        return value
    made = _MARK + zlib.compress(value)
    return made if len(made) < len(value) else value


def unpacked(value: bytes | None) -> bytes | None:
    """A value as it was told."""
    if value is None or not value.startswith(_MARK):
        return value
    return zlib.decompress(value[len(_MARK) :])
