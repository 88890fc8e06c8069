"""Packs what steps of long ago were given and gave. It looks at some of them in each round, and begins anew every day.

Several processes may do so at once: a value that is packed is left as it is.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from standfast.engine.commit.context import EngineContext
from standfast.kernel.ids import InstanceId
from standfast.store.ports.store import StoreParts

_FIRST = timedelta(hours=1)
"""After the start of a process, which has other things to do."""
_EVERY = timedelta(minutes=1)
"""Between two rounds."""
_REST = timedelta(days=1)
"""Once all were looked at."""
_MOST = 500
"""Steps that a round looks at."""


class CompressionPass:
    """Looks for them, once in an interval. One thread steps it."""

    def __init__(self, parts: StoreParts, shared: EngineContext) -> None:
        self._keeper = parts.keeper()
        self._shared = shared
        self._last: tuple[InstanceId, int] | None = None
        self._due_at: datetime | None = None
        """When to look next; None before it is known when the process began."""

    def look(self) -> int:
        """Look at the next steps, if it is time to; how many of them were packed."""
        compress_after, now = self._shared.settings.compress_after, self._shared.clock.now()
        if self._due_at is None:
            self._due_at = now + _FIRST
        if compress_after is None or self._due_at - _REST <= now < self._due_at:
            return 0
        found = self._keeper.fade(before=now - compress_after, after=self._last, limit=_MOST)
        self._last = found.last
        self._due_at = now + (_REST if found.last is None else _EVERY)
        return found.packed
