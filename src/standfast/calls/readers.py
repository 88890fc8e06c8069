"""The threads on which questions are answered, so that no caller waits for the database unless it wants to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from standfast.engine.common.health import Watched
from standfast.engine.concurrency.replies import Reply, serve_many
from standfast.engine.concurrency.threads import Threads
from standfast.errors import StoppedError

T = TypeVar("T")

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
