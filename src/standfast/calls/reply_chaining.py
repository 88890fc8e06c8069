"""One call after another: the reply to the second, which begins when the first is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from standfast.engine.concurrency.replies import Reply

T = TypeVar("T")
U = TypeVar("U")

Sequel = Callable[[T], Reply[U]]
Rescue = Callable[[BaseException], Reply[U]]


def and_then(first: Reply[T], then: Sequel[T, U], reply: Reply[U], *, rescue: Rescue[U] | None = None) -> Reply[U]:
    """Go on with the answer of a call, or with `rescue` if it failed; what comes of that goes into `reply`."""

    def go_on() -> None:
        error = first.exception()
        try:
            if error is None:
                second = then(first.result())
            elif rescue is not None:
                second = rescue(error)
            else:
                reply.set_error(error)
                return
        except BaseException as raised:  # noqa: BLE001 - it belongs to whoever waits
            reply.set_error(raised)
            return
        second.when_brought(lambda: _pass_on(second, reply))

    first.when_brought(go_on)
    return reply


def _pass_on(answer: Reply[U], reply: Reply[U]) -> None:
    error = answer.exception()
    if error is not None:
        reply.set_error(error)
    else:
        reply.set_result(answer.result())
