"""The public error tree. Every error carries a stable `code` and says whether a retry can help (`retryable`).

    StandfastError
    ├── DefinitionError            a document, builder or decider class cannot be compiled; carries diagnostics
    ├── ExpressionError            an expression cannot be parsed, checked or evaluated; carries a position
    ├── RejectedError              the decider refused a command
    │   └── ForbiddenError         …because the actor lacks a right
    ├── CommandError               the decider could not answer a command: it raised, or returned an invalid answer
    ├── WorkflowFailedError        the workflow whose result was requested has ended without success
    ├── NotFoundError              the object does not exist, or belongs to another tenant
    ├── ConflictError              another change was committed first; retryable
    │   └── ReusedIdError          the id or idempotency key was used for another command
    ├── PayloadError               a value cannot be stored: too large, or of a type the codec does not know
    ├── ReplayError
    │   └── UnknownEventError      the history holds an event that this code does not know
    ├── StoreError
    │   ├── StoreUnavailableError  the database is unavailable, full, read-only or locked, or a directory hangs; retryable
    │   ├── SchemaMismatchError    migrations are missing, or newer than the code
    │   └── CorruptHistoryError    stored rows contradict one another
    ├── StoppedError               the engine is stopped, or refuses work in maintenance mode; retryable
    ├── DeadlockError              a wait that blocks the thread it waits for
    └── ConfigurationError         a setting, a URL or a registration is wrong

The HTTP and command-line layers map errors to statuses and exit codes.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import ClassVar

import msgspec


def indefinite(kind: object) -> str:
    """Return the name of a type with its article: `an int`, `a Deposit`."""
    name: str = getattr(kind, "__name__", str(kind))
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 60


def brief(value: object) -> str:
    """Return a short representation of any value for a message."""
    try:
        return _REPR.repr(value)
    except Exception:  # noqa: BLE001 - a user's class may raise in its repr, and some numbers have too many digits
        return indefinite(type(value))


class Diagnostic(msgspec.Struct, frozen=True):
    """One finding about a definition: what is wrong, where, and what to do about it."""

    code: str
    """Stable, machine-readable name of the violated rule."""
    message: str
    """One sentence with the cause and the remedy."""
    position: str = ""
    """A path such as `steps.charge.retry`, or `line:column`. Empty for the whole definition."""

    def __str__(self) -> str:
        place = f"{self.position}: " if self.position else ""
        return f"{place}{self.message} [{self.code}]"


class StandfastError(Exception):
    """Base class of all errors that Standfast raises."""

    code: ClassVar[str] = "standfast_error"
    retryable: ClassVar[bool] = False


class DefinitionError(StandfastError):
    """A definition cannot be compiled. `diagnostics` lists all findings."""

    code = "invalid_definition"

    def __init__(self, name: str, diagnostics: Sequence[Diagnostic]) -> None:
        self.name = name
        self.diagnostics = tuple(diagnostics)
        lines = "".join(f"\n  - {each}" for each in self.diagnostics)
        super().__init__(f"{name} cannot be compiled:{lines}")


class ExpressionError(StandfastError):
    """An expression is invalid. `reason` is the stable code of the rule, and `position` the source position."""

    code = "invalid_expression"

    def __init__(self, message: str, *, reason: str, source: str = "", position: int | None = None) -> None:
        self.reason = reason
        self.source = source
        self.position = position
        super().__init__(message)


class RejectedError(StandfastError):
    """The decider refused the command. Nothing was written."""

    code = "rejected"

    def __init__(self, *, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(f"{message} [{reason}]")


class ForbiddenError(RejectedError):
    """The actor lacks a capability or role, which the message names. Nothing was written."""

    code = "not_allowed"


class CommandError(StandfastError):
    """The decider failed on the command. Nothing was written. An original exception is chained as the cause."""

    code = "decider_failed"

    def __init__(self, message: str, *, decider: str) -> None:
        self.decider = decider
        super().__init__(message)


class WorkflowFailedError(StandfastError):
    """The workflow whose result was requested has ended without success. See `status` and `reason`."""

    code = "workflow_failed"

    def __init__(self, *, instance: str, status: str, reason: str) -> None:
        self.instance = instance
        self.status = status
        self.reason = reason
        super().__init__(f"workflow {instance} has no result, because it {_ENDS.get(status, status)}: {reason}")


_ENDS = {"failed": "failed", "cancelled": "was cancelled", "aborted": "was aborted"}


class NotFoundError(StandfastError):
    """The object does not exist, or belongs to another tenant."""

    code = "not_found"

    def __init__(self, kind: str, name: object, *, hint: str = "") -> None:
        self.kind = kind
        self.name = str(name)
        super().__init__(f"no {kind} {self.name!r}{'; ' + hint if hint else ''}")


class ConflictError(StandfastError):
    """Another command or process has changed the object first."""

    code = "conflict"
    retryable = True


class HeldError(ConflictError):
    """Another transaction held a needed lock for longer than the caller waits. Nothing was written."""

    code = "held"


class ReusedIdError(ConflictError):
    """A command id or idempotency key was used before for another command. Nothing was written."""

    code = "reused_id"
    retryable = False

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f"the id {key!r} was used before, for another command: repeat a command as it was, or give a new one an id of its own"
        )


class PayloadError(StandfastError):
    """A value cannot be encoded, decoded or stored. Nothing was written. `reason` is the stable code of the rule, if there is one."""

    code = "bad_payload"

    def __init__(self, message: str, *, reason: str = "") -> None:
        self.reason = reason
        super().__init__(f"{message} [{reason}]" if reason else message)


class ReplayError(StandfastError):
    """A stored history cannot be folded into a state."""

    code = "replay_failed"


class UnknownEventError(ReplayError):
    """The history contains an event type or version without a class or an upcaster in the code."""

    code = "unknown_event"

    def __init__(self, *, decider: str, event_type: str, version: int) -> None:
        self.decider = decider
        self.event_type = event_type
        self.version = version
        super().__init__(
            f"{decider!r} does not know event {event_type!r} version {version}: "
            "keep its class, or register an upcaster for this version"
        )


class StoreError(StandfastError):
    """The database refused or failed."""

    code = "store_failed"


class StoreUnavailableError(StoreError):
    """The database is unavailable, full, read-only or locked, or a directory does not answer. Nothing was acknowledged."""

    code = "store_unavailable"
    retryable = True

    def __init__(self, message: str = "", *, may_be_done: bool = False) -> None:
        self.may_be_done = may_be_done
        """Whether the work may have been committed, because only the answer was lost. False if it certainly was not."""
        super().__init__(message)


class SchemaMismatchError(StoreError):
    """The tables do not match the schema of this code."""

    code = "schema_mismatch"


class CorruptHistoryError(StoreError):
    """Stored rows are inconsistent, for example by a gap in an instance's event numbers."""

    code = "corrupt_history"


class StoppedError(StandfastError):
    """The engine accepts no work: it is stopped, or maintenance mode refuses commands."""

    code = "stopped"
    retryable = True


class DeadlockError(StandfastError):
    """A caller waits for a reply on the thread that must set it."""

    code = "deadlock"


class ConfigurationError(StandfastError):
    """A setting, a URL or a registration is invalid. The message names it and the expected value."""

    code = "bad_configuration"
