"""Replies of engines without threads. Waiting for one would never end, so it raises instead."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from standfast.engine.concurrency.replies import Reply
from standfast.errors import DeadlockError

T = TypeVar("T")
U = TypeVar("U")


class ManualReply(Reply[T]):
    """A reply that is set already, or that a later call to the engine sets. It never blocks its caller."""

    __slots__ = ()

    def __await__(self) -> Generator[object, None, T]:
        self._wait(None)
        return (yield from super().__await__())

    def then(self, change: Callable[[T], U]) -> Reply[U]:
        """Return a reply with the changed value or the same error."""
        return driven(super().then(change))

    def _wait(self, timeout: float | None) -> None:  # noqa: ARG002 - this reply never waits
        if not self.done():
            self._looked_at = True
            raise DeadlockError(f"the answer is not there{self._remedy()}")

    def _remedy(self) -> str:
        """Return what the caller must do first."""
        return (
            ", and an engine without threads does nothing by itself: call drain() or advance() first; what was asked for, "
            "such as a cancellation, is stored and is done by that (engine.futures asks without waiting)"
        )


def driven(reply: Reply[T]) -> ManualReply[T]:
    """Return the reply in a form that does not block."""
    same: ManualReply[T] = ManualReply()

    def pass_on() -> None:
        error = reply.exception()
        if error is not None:
            same.set_error(error)
        else:
            same.set_result(reply.result())

    reply.when_brought(pass_on)
    return same
