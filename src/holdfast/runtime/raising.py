"""What user code raises on the engine's threads. Whatever it is, it is data about one piece of work: it never ends a thread."""

from __future__ import annotations

import threading


class EscapeError(Exception):
    """User code raised something that is no Exception, such as SystemExit; it stays with the work that raised it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__} was raised")


def is_interrupt(error: BaseException) -> bool:
    """Whether somebody at the keyboard wants the program to end. Python says so on the main thread alone; elsewhere user code did."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


def as_exception(error: BaseException) -> Exception:
    """An error of user code as one that every part of the engine catches; an interrupt goes on its way."""
    if isinstance(error, Exception):
        return error
    if is_interrupt(error):
        raise error
    return EscapeError(error)
