"""What goes wrong with one piece of work: what user code raises, and what the engine has to say of calls that came to nothing.

Whatever it is, it is data about that piece of work: it never ends a thread.
"""

from __future__ import annotations

import threading

from standfast.engine.common.handlers import Fail
from standfast.errors import CommandError, PayloadError, RejectedError, StandfastError

RECALLED = "recalled"
"""Why an effect is dead that its instance asked to be stopped."""

UNREADABLE = "unreadable"
"""Why work is dead that no code can read."""

_LONGEST_ERROR = 4000


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


class SpentError(Exception):
    """An effect was called as often as it may be, and its last call never came back."""

    def __init__(self, last_error: str) -> None:
        before = f"; the call before failed: {last_error}" if last_error else ""
        super().__init__(f"the call never came back: its worker died, was stopped, or was cut off for too long{before}")


class RecalledError(Exception):
    """The instance asked for the effect to be stopped, and there is no call of it to stop."""

    def __init__(self, attempts: int) -> None:
        self.was_called = attempts > 1
        """Whether the handler may have begun its work: the attempts count the call that is not made now."""
        super().__init__("stopped before the handler was called" + (" again" if self.was_called else ""))


class RefusedAnswerError(Fail):
    """What a handler came to was rejected, cannot be kept, or makes its decider fail.

    That is an outcome: its work is done, and another call would do it again only to come to the same.
    """

    def __init__(self, refusal: StandfastError) -> None:
        self.refusal = refusal
        super().__init__(f"what the handler came to {_verdict(refusal)}: {refusal}")


def _verdict(refusal: StandfastError) -> str:
    if isinstance(refusal, RejectedError):
        return "was rejected"
    return "could not be decided on" if isinstance(refusal, CommandError) else "cannot be kept"


class GivenUpError(Exception):
    """An operator does not want the work to wait any longer."""

    def __init__(self) -> None:
        super().__init__("given up by an operator")


class UnreadableError(Exception):
    """No code that is known to the database can read a piece of work, or what it is for."""


def is_stranded(error: BaseException) -> bool:
    """Whether what a call came to cannot be recorded for a reason that lies neither in it nor in the moment.

    Another call would come to the same, so it is not made: what there is goes through the inbox, and becomes a dead letter if it can be
    recorded there neither.
    """
    is_passing = isinstance(error, StandfastError) and error.retryable
    return not is_passing and not isinstance(error, RejectedError | PayloadError | CommandError)


def outcome_of(error: BaseException) -> BaseException:
    """What becomes of a call whose result was not committed for this reason: a last word, if the reason is in the result itself."""
    return RefusedAnswerError(error) if isinstance(error, RejectedError | PayloadError | CommandError) else error


def describe(error: BaseException) -> str:
    """An error as text that every database can store, at a bearable length."""
    try:
        said = str(error) or type(error).__name__
    except BaseException:  # noqa: BLE001 - an error that cannot even say what it is
        said = type(error).__name__
    text = (
        said
        if isinstance(error, StandfastError | SpentError | RecalledError | GivenUpError | UnreadableError)
        else f"{type(error).__name__}: {said}"
    )
    return text.replace("\x00", "").encode("utf-8", "replace").decode()[:_LONGEST_ERROR]


def code_of(error: BaseException) -> str:
    """The stable code of an error."""
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
