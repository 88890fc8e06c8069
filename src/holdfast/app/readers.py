"""The threads on which questions are answered, so that no caller waits for the database unless it wants to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from holdfast.errors import StoppedError
from holdfast.runtime.replies import Reply, callbacks, serve_many
from holdfast.runtime.threads import Threads

T = TypeVar("T")


class Callbacks:
    """The threads for callbacks, which all engines of a process share, by the bound of one of them."""

    name = callbacks.name

    def __init__(self, *, limit: float) -> None:
        self._limit = limit

    def problem(self) -> str:
        """What keeps the threads from their work, in words; empty if nothing does."""
        return callbacks.problem(self._limit)


class Readers:
    """Answers questions, a few at a time. A question is answered once: by a thread, or, when the engine stops, with an error."""

    def __init__(self, most: int, *, limit: float) -> None:
        self.threads = Threads(most, name="reader threads", prefix="holdfast-reader", limit=limit)
        self._lock = threading.Lock()
        self._refusals: dict[int, Callable[[], None]] = {}
        """How to tell those who have no answer yet that there will be none, by the ids of their replies."""

    def ask(self, question: Callable[[], T], reply: Reply[T]) -> None:
        """Have a question answered."""
        with self._lock:
            self._refusals[id(reply)] = partial(reply.set_error, StoppedError("the engine is stopped"))
        if not self.threads.run(partial(self._answer, question, reply)):
            self._refuse()

    def close(self, timeout: float) -> None:
        """Answer what was asked, for a while; whoever has no answer then is told that there will be none."""
        self.threads.close(timeout, drops=False)
        self._refuse()

    def _answer(self, question: Callable[[], T], reply: Reply[T]) -> None:
        serve_many()
        try:
            value = question()
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
            if self._is_awaited(reply):
                reply.set_error(error)
        else:
            if self._is_awaited(reply):
                reply.set_result(value)

    def _is_awaited(self, reply: Reply[T]) -> bool:
        with self._lock:
            return self._refusals.pop(id(reply), None) is not None

    def _refuse(self) -> None:
        with self._lock:
            refusals, self._refusals = self._refusals, {}
        for refuse in refusals.values():
            refuse()
