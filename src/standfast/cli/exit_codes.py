"""Exit codes for scripts, and the table that maps every error class to one."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from standfast import errors


class Exit(IntEnum):
    """The exit code of a command."""

    DONE = 0
    """Success, or the answer is yes."""
    NO = 1
    """Success, and the answer is no: the file has mistakes, the versions differ, the condition is false, a check
    failed."""
    WRONG = 2
    """The command line, the configuration or the input is wrong; nothing was changed."""
    NOT_FOUND = 3
    """Not found, or not visible to the tenant."""
    REFUSED = 4
    """Rejected in the current state; nothing was changed."""
    FORBIDDEN = 5
    """The actor lacks the right; nothing was changed."""
    CONFLICT = 6
    """A concurrent change came first, or the id was used before; check and repeat."""
    UNAVAILABLE = 7
    """The database does not respond, the engine takes no work now, or the wait timed out; the same command can
    succeed later."""
    UNFIT = 8
    """The database does not fit this version: another schema, or unreadable content."""
    FAILED = 9
    """The run that the command waited for has failed, or was cancelled or aborted."""
    BROKEN = 70
    """A bug of Standfast, or an error of user code."""
    INTERRUPTED = 130
    """The user interrupted the command."""


OF_ERRORS: Final[Mapping[type[errors.StandfastError], Exit]] = {
    errors.StandfastError: Exit.BROKEN,
    errors.DefinitionError: Exit.NO,
    errors.ExpressionError: Exit.WRONG,
    errors.RejectedError: Exit.REFUSED,
    errors.ForbiddenError: Exit.FORBIDDEN,
    errors.CommandError: Exit.BROKEN,
    errors.WorkflowFailedError: Exit.FAILED,
    errors.NotFoundError: Exit.NOT_FOUND,
    errors.ConflictError: Exit.CONFLICT,
    errors.HeldError: Exit.UNAVAILABLE,
    errors.ReusedIdError: Exit.CONFLICT,
    errors.PayloadError: Exit.WRONG,
    errors.ReplayError: Exit.UNFIT,
    errors.UnknownEventError: Exit.UNFIT,
    errors.StoreError: Exit.UNFIT,
    errors.StoreUnavailableError: Exit.UNAVAILABLE,
    errors.SchemaMismatchError: Exit.UNFIT,
    errors.CorruptHistoryError: Exit.UNFIT,
    errors.StoppedError: Exit.UNAVAILABLE,
    errors.DeadlockError: Exit.BROKEN,
    errors.ConfigurationError: Exit.WRONG,
}


UNWRITTEN: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Error numbers for a full disk or quota while writing a file or a pipe; stores raise errors of their own."""

_OVERTAKEN: Final = "version_conflict"
"""The rejection reason of a concurrent change, in any wording."""


def exit_of(error: BaseException) -> Exit:
    """Return the exit code of an error, by the nearest class in the table."""
    if isinstance(error, TimeoutError) or (isinstance(error, OSError) and error.errno in UNWRITTEN):
        return Exit.UNAVAILABLE
    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    if isinstance(error, errors.RejectedError) and error.reason.lower() == _OVERTAKEN:
        return Exit.CONFLICT
    return next((OF_ERRORS[each] for each in type(error).__mro__ if each in OF_ERRORS), Exit.BROKEN)
