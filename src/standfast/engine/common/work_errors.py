"""Errors of a single piece of work: exceptions of user code, and failures that the engine detects.

Each is data about its piece of work and never ends a thread.
"""

from __future__ import annotations

import threading

from standfast.engine.common.handlers import Fail
from standfast.errors import CommandError, PayloadError, RejectedError, StandfastError

RECALLED = "recalled"
"""Reason code of an effect that its instance recalled."""

UNREADABLE = "unreadable"
"""Reason code of work that no code can read."""

_LONGEST_ERROR = 4000


class EscapeError(Exception):
    """User code raised a BaseException that is no Exception, such as SystemExit.

    It fails only the work that raised it.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__} was raised")


def is_interrupt(error: BaseException) -> bool:
    """Return whether the user has interrupted the program from the keyboard.

    Python raises the interrupt only on the main thread; elsewhere user code raised it.
    """
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


def as_exception(error: BaseException) -> Exception:
    """Return an exception of user code as an Exception. An interrupt from the keyboard is raised again."""
    if isinstance(error, Exception):
        return error
    if is_interrupt(error):
        raise error
    return EscapeError(error)


class SpentError(Exception):
    """The effect has used all its attempts, and the last call never returned."""

    def __init__(self, last_error: str) -> None:
        before = f"; the call before failed: {last_error}" if last_error else ""
        super().__init__(f"the call never came back: its worker died, was stopped, or was cut off for too long{before}")


class RecalledError(Exception):
    """The instance recalled the effect, and no call is running."""

    def __init__(self, attempts: int) -> None:
        self.was_called = attempts > 1
        """Whether the handler may have started. The number of attempts includes the current claim, which makes no
        call."""
        super().__init__("stopped before the handler was called" + (" again" if self.was_called else ""))


class RefusedAnswerError(Fail):
    """The result of a handler was rejected, cannot be stored, or makes its decider fail.

    The outcome is final: the work is done, and another call would repeat it with the same result.
    """

    def __init__(self, refusal: StandfastError) -> None:
        self.refusal = refusal
        super().__init__(f"what the handler came to {_verdict(refusal)}: {refusal}")


def _verdict(refusal: StandfastError) -> str:
    if isinstance(refusal, RejectedError):
        return "was rejected"
    return "could not be decided on" if isinstance(refusal, CommandError) else "cannot be kept"


class GivenUpError(Exception):
    """An operator has given up the work."""

    def __init__(self) -> None:
        super().__init__("given up by an operator")


class UnreadableError(Exception):
    """No code known to the database can read the work or its target."""


def is_stranded(error: BaseException) -> bool:
    """Return whether the result of a call cannot be recorded for a permanent reason outside it.

    A retry would have the same result. The result goes through the inbox instead, and becomes a dead letter if it
    cannot be recorded there either.
    """
    is_passing = isinstance(error, StandfastError) and error.retryable
    return not is_passing and not isinstance(error, RejectedError | PayloadError | CommandError)


def outcome_of(error: BaseException) -> BaseException:
    """Return the outcome of a call whose result was not committed. It is final if the result itself is the cause."""
    return RefusedAnswerError(error) if isinstance(error, RejectedError | PayloadError | CommandError) else error


def describe(error: BaseException) -> str:
    """Format an error as text of limited length that every database can store."""
    try:
        said = str(error) or type(error).__name__
    except BaseException:  # noqa: BLE001 - the error itself cannot be formatted
        said = type(error).__name__
    text = (
        said
        if isinstance(error, StandfastError | SpentError | RecalledError | GivenUpError | UnreadableError)
        else f"{type(error).__name__}: {said}"
    )
    return text.replace("\x00", "").encode("utf-8", "replace").decode()[:_LONGEST_ERROR]


def code_of(error: BaseException) -> str:
    """Return the stable code of an error."""
    if isinstance(error, RefusedAnswerError):
        return code_of(error.refusal)
    if isinstance(error, RejectedError):
        return error.reason
    if isinstance(error, RecalledError):
        return RECALLED
    if isinstance(error, GivenUpError):
        return "given_up"
    if isinstance(error, UnreadableError):
        return UNREADABLE
    return error.code if isinstance(error, StandfastError) else "handler_failed"
