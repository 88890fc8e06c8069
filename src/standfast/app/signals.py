"""What it means to be asked to end, for every process that works or serves.

The first SIGTERM or SIGINT begins the end: nothing new is taken, what runs may finish. SIGTERM again changes nothing, because those who keep
processes send it more than once: to a group and then to each of them, or again while they wait. SIGINT again ends the process at once, as
somebody at a keyboard who presses Ctrl-C twice means it; what it had not stored is taken over elsewhere, as after a crash.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self


class GracefulShutdown:
    """Heeds what the process is asked as long as its block lasts; outside of the main thread, where nobody can, it does nothing.

    Of one inside another both hear of it, whichever is there when it comes: what has begun to end ends as a whole.
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
        """The end begins, whoever asked for it; once."""
        if self.has_begun:
            return
        self.has_begun = True
        if self._outer is not None:
            self._outer.begin()
        if self._before:
            # SIGTERM is still heeded, and nothing done: what is ignored would be so in programs that handlers start, too.
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
