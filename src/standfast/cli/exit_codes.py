"""Exit codes: what a script can tell a command's outcome by. One table, and every error of the tree has its place in it."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from standfast import errors


class Exit(IntEnum):
    """How a command ended."""

    DONE = 0
    """It was done, or the answer is yes."""
    NO = 1
    """It was done, and the answer is no: the file has mistakes, the versions differ, the condition is false, a check found something."""
    WRONG = 2
    """The command line, the configuration or what was given with it is wrong; nothing was done."""
    NOT_FOUND = 3
    """There is no such thing, or none that the tenant may see."""
    REFUSED = 4
    """It was refused as things stand; nothing was changed."""
    FORBIDDEN = 5
    """Whoever it was done as may not do it; nothing was changed."""
    CONFLICT = 6
    """Somebody else was first, or an id was used before; look again, and repeat."""
    UNAVAILABLE = 7
    """The database does not answer, the engine takes no work now, or the wait was too long; the same command can succeed later."""
    UNFIT = 8
    """The database is not what this code was written for: its schema is another one, or what it holds cannot be read."""
    FAILED = 9
    """The run that the command waited for has ended, but not well."""
    BROKEN = 70
    """A mistake of Standfast's own, or of code that it was told to call."""
    INTERRUPTED = 130
    """Somebody interrupted it."""


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
"""How a system says that there is no room for what is written to a file or a pipe; what stores say is an error of theirs."""

_OVERTAKEN: Final = "version_conflict"
"""A refusal, in whichever words, that says that somebody else was first."""


def exit_of(error: BaseException) -> Exit:
    """The exit code of an error; of a class that the table does not have, that of the nearest one above it."""
    if isinstance(error, TimeoutError) or (isinstance(error, OSError) and error.errno in UNWRITTEN):
        return Exit.UNAVAILABLE
    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    if isinstance(error, errors.RejectedError) and error.reason.lower() == _OVERTAKEN:
        return Exit.CONFLICT
    return next((OF_ERRORS[each] for each in type(error).__mro__ if each in OF_ERRORS), Exit.BROKEN)
