"""The threads on which a directory of the host's own is asked, which may hang: it keeps no other question waiting, and has a limit.

The threads on which questions are answered, so that no caller waits for the database unless it wants to.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

from standfast.engine.commit.context import EngineContext
from standfast.engine.common.health import Watched
from standfast.engine.common.settings import Settings
from standfast.engine.common.telemetry import Telemetry
from standfast.engine.concurrency.loop import Loop
from standfast.engine.concurrency.replies import Reply, serve_many
from standfast.engine.concurrency.threads import Threads
from standfast.errors import StoppedError, StoreUnavailableError
from standfast.people.directory import Directory

Refuse = Callable[[BaseException], None]
"""Tells whoever waits that there will be no answer."""


class ReaderPool:
    """Answers questions, a few at a time. A question is answered once: by a thread, or, when the engine stops, with an error."""

    def __init__(self, most: int, *, limit: float, name: str = "reader threads", spare: int = 0) -> None:
        prefix = f"standfast-{name.split(maxsplit=1)[0]}"
        self.threads = Threads(most, name=name, prefix=prefix, limit=limit, spare=spare)
        self._lock = threading.Lock()
        self._refusals: dict[int, Refuse] = {}
        """How to tell those who have no answer yet that there will be none, by the ids of their replies."""

    @property
    def parts(self) -> list[Watched]:
        """What can stop of it."""
        return [self.threads]

    def ask(self, question: Callable[[], T], reply: Reply[T]) -> None:
        """Have a question answered."""
        with self._lock:
            self._refusals[id(reply)] = reply.set_error
        self._note(id(reply))
        if not self.threads.run(partial(self._answer, question, reply)):
            self._refuse()

    def close(self, timeout: float) -> None:
        """Answer what was asked, for a while; whoever has no answer then is told that there will be none."""
        self.threads.close(timeout, drops=False)
        self._refuse()

    def is_here(self) -> bool:
        """Whether the present thread is one of them."""
        return self.threads.is_here()

    def _note(self, key: int) -> None:
        """Somebody waits from now on."""

    def _answer(self, question: Callable[[], T], reply: Reply[T]) -> None:
        serve_many()
        try:
            value = question()
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
            if self._claim(id(reply)) is not None:
                reply.set_error(error)
        else:
            if self._claim(id(reply)) is not None:
                reply.set_result(value)

    def _claim(self, key: int) -> Refuse | None:
        """The right to answer, which one thread has: how to refuse; None if it is answered already."""
        with self._lock:
            return self._refusals.pop(key, None)

    def _refuse(self) -> None:
        with self._lock:
            refusals, self._refusals = self._refusals, {}
        for refuse in refusals.values():
            refuse(StoppedError("the engine is stopped"))


T = TypeVar("T")

_IDLE_SECONDS = 60.0
"""How long it is rested when nobody waits."""


class DirectoryPool(ReaderPool):
    """Answers questions for which a directory is asked. One that takes too long has failed, and its thread is written off and replaced.

    As many threads again as there are can hang so; beyond that, whatever is asked fails when its time is over, and `health` says why.
    """

    def __init__(self, settings: Settings, telemetry: Telemetry) -> None:
        limit = settings.unhealthy_after.total_seconds()
        super().__init__(settings.readers, limit=limit, name="directory threads", spare=settings.readers)
        self._patience = settings.people_timeout.total_seconds()
        self._asked: dict[int, float] = {}
        """When each question that has no answer yet has failed, by the ids of their replies, the earliest one first (monotonic time)."""
        self._begun: dict[int, int] = {}
        """On which thread it is asked, once it is."""
        self._guard = threading.Lock()
        self._loop = Loop("directory", self._step, telemetry, limit=limit)
        self._is_watching = False

    @property
    def parts(self) -> list[Watched]:
        """The threads, and the loop that gives up what takes too long."""
        return [*super().parts, self._loop]

    def close(self, timeout: float) -> None:
        """Answer what was asked, for a while; what hangs is left behind."""
        super().close(timeout)
        self._loop.stop()
        self._loop.join(timeout)

    def is_here(self) -> bool:
        """Whether the present thread is one of them."""
        return super().is_here() or self._loop.is_here()

    def _note(self, key: int) -> None:
        with self._guard:
            self._asked[key] = time.monotonic() + self._patience
            is_alone = len(self._asked) == 1
            is_first, self._is_watching = not self._is_watching, True
        if is_first:
            self._loop.start()
        elif is_alone:
            self._loop.wake()

    def _answer(self, question: Callable[[], T], reply: Reply[T]) -> None:
        with self._guard:
            if id(reply) not in self._asked:  # It has failed while it waited for a thread.
                return
            self._begun[id(reply)] = threading.get_ident()
        super()._answer(question, reply)

    def _claim(self, key: int) -> Refuse | None:
        with self._guard:
            self._asked.pop(key, None)
            self._begun.pop(key, None)
        return super()._claim(key)

    def _step(self) -> float:
        """Give up what has taken too long; how long to rest until the next one has."""
        now = time.monotonic()
        with self._guard:
            late = {key: self._begun.get(key) for key, at in self._asked.items() if at <= now}
        for key, thread in late.items():
            self._give_up(key, thread)
        with self._guard:
            return min(self._asked.values(), default=now + _IDLE_SECONDS) - now

    def _give_up(self, key: int, thread: int | None) -> None:
        refuse = self._claim(key)
        if refuse is None:  # It was answered just now.
            return
        if thread is not None:
            self.threads.write_off(thread)
        told = f"the directory has not answered within {self._patience:g} s (the setting people_timeout), and nothing was done"
        refuse(StoreUnavailableError(f"{told}; try again when it answers"))


class ReaderPools(NamedTuple):
    """Who answers the questions of an engine."""

    readers: ReaderPool
    consultants: ReaderPool
    """Those for which the directory is asked; the same, unless it may hang."""
    players: ReaderPool
    """Who plays what is tried out, one after the other: that keeps a processor busy, and nobody who reads waits for it."""

    @property
    def all(self) -> list[ReaderPool]:
        """Each of them once."""
        return list(dict.fromkeys(self))


def answering(shared: EngineContext, directory: Directory) -> ReaderPools:
    """Threads that are as many as the settings say."""
    settings = shared.settings
    readers = ReaderPool(settings.readers, limit=settings.unhealthy_after.total_seconds())
    consultants = DirectoryPool(settings, shared.telemetry) if directory.may_hang else readers
    players = ReaderPool(1, limit=settings.unhealthy_after.total_seconds(), name="player threads")
    return ReaderPools(readers, consultants, players)
