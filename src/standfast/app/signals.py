"""Graceful shutdown on SIGTERM and SIGINT, for every process that works or serves.

The first signal begins the shutdown: nothing new is taken, running work may finish. A second SIGTERM changes nothing,
because supervisors send it more than once: to a group and then to each process. A second SIGINT ends the process
immediately, as for Ctrl-C pressed twice. Work that was not stored is recovered by other workers, as after a crash.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self


class GracefulShutdown:
    """Handles signals for the duration of its block; outside of the main thread, where Python cannot, it does nothing.

    Nested blocks are both notified, in either order: the process shuts down as a whole.
    """

    def __init__(self, begin: Callable[[], object] | None = None) -> None:
        self._begin = begin
        self._before: dict[signal.Signals, Any] = {}
        self._outer: GracefulShutdown | None = None
        self.has_begun = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._heed)
            outer = getattr(self._before[signal.SIGTERM], "__self__", None)
            self._outer = outer if isinstance(outer, GracefulShutdown) else None
            if self._outer is not None and self._outer.has_begun:
                self.begin()
        return self

    def begin(self) -> None:
        """Begin the shutdown, once."""
        if self.has_begun:
            return
        self.has_begun = True
        if self._outer is not None:
            self._outer.begin()
        if self._before:
            # SIGTERM stays handled without effect. An ignored signal would stay ignored in programs that handlers
            # start.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        if self._begin is not None:
            self._begin()

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
        if self._outer is not None and self._outer.has_begun:
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    def _heed(self, _number: int, _frame: FrameType | None) -> None:
        self.begin()
