"""The public error tree. Every error carries a stable `code` and says whether trying again can help.

    StandfastError
    ├── DefinitionError            a document, builder or decider class cannot be compiled; carries diagnostics
    ├── ExpressionError            an expression cannot be parsed, checked or evaluated; carries a position
    ├── RejectedError              the decider refused a command
    │   └── ForbiddenError         …because of who asked
    ├── CommandError               the decider could not answer a command: it raised, or answered with nonsense
    ├── WorkflowFailedError        a workflow whose result was asked for has ended, but not well
    ├── NotFoundError              no such thing, or none that this tenant may see
    ├── ConflictError              somebody else was first; retryable
    │   └── ReusedIdError          the id or idempotency key was used for another command
    ├── PayloadError               a value cannot be stored: too large, or of a type the codec does not know
    ├── ReplayError
    │   └── UnknownEventError      the history holds an event that this code does not know
    ├── StoreError
    │   ├── StoreUnavailableError  the database is gone, full, read-only or locked, or a directory hangs; retryable
    │   ├── SchemaMismatchError    migrations are missing, or newer than the code
    │   └── CorruptHistoryError    stored rows contradict one another
    ├── StoppedError               the engine is stopped, or refuses work in maintenance mode; retryable
    ├── DeadlockError              a wait for something that cannot come while it is waited for
    └── ConfigurationError         a setting, a URL or a registration is wrong

HTTP statuses and exit codes are mapped at the edges, never here.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import ClassVar

import msgspec


def indefinite(kind: object) -> str:
    """A type in a sentence: `an int`, `a Deposit`."""
    name: str = getattr(kind, "__name__", str(kind))
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 60


def brief(value: object) -> str:
    """A value in a few words: whatever it is, however large, a sentence can name it."""
    try:
        return _REPR.repr(value)
    except Exception:  # noqa: BLE001 - classes of the user's own tell of themselves as they like, and some numbers have too many digits
        return indefinite(type(value))


class Diagnostic(msgspec.Struct, frozen=True):
    """One finding about a definition: what is wrong, where, and what to do about it."""

    code: str
    """Stable, machine-readable name of the rule that was broken."""
    message: str
    """One sentence that names the culprit and the remedy."""
    position: str = ""
    """Where: a path such as `steps.charge.retry`, or `line:column`; empty when it concerns the whole."""

    def __str__(self) -> str:
        place = f"{self.position}: " if self.position else ""
        return f"{place}{self.message} [{self.code}]"


class StandfastError(Exception):
    """Base of everything Standfast raises on purpose."""

    code: ClassVar[str] = "standfast_error"
    retryable: ClassVar[bool] = False


class DefinitionError(StandfastError):
    """A definition cannot be compiled. `diagnostics` lists every finding, not only the first."""

    code = "invalid_definition"

    def __init__(self, name: str, diagnostics: Sequence[Diagnostic]) -> None:
        self.name = name
        self.diagnostics = tuple(diagnostics)
        lines = "".join(f"\n  - {each}" for each in self.diagnostics)
        super().__init__(f"{name} cannot be compiled:{lines}")


class ExpressionError(StandfastError):
    """An expression is wrong. `reason` is the stable code of the rule; `position` the character it points at."""

    code = "invalid_expression"

    def __init__(self, message: str, *, reason: str, source: str = "", position: int | None = None) -> None:
        self.reason = reason
        self.source = source
        self.position = position
        super().__init__(message)


class RejectedError(StandfastError):
    """The decider refused the command; nothing was written."""

    code = "rejected"

    def __init__(self, *, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(f"{message} [{reason}]")


class ForbiddenError(RejectedError):
    """The actor may not do this; nothing was written. The message says which capability or role is missing."""

    code = "not_allowed"


class CommandError(StandfastError):
    """The decider failed on the command; nothing was written. The cause is chained where there is one."""

    code = "decider_failed"

    def __init__(self, message: str, *, decider: str) -> None:
        self.decider = decider
        super().__init__(message)


class WorkflowFailedError(StandfastError):
    """A workflow whose result was asked for has ended, but not well. `status` says how, `reason` why."""

    code = "workflow_failed"

    def __init__(self, *, instance: str, status: str, reason: str) -> None:
        self.instance = instance
        self.status = status
        self.reason = reason
        super().__init__(f"workflow {instance} has no result, because it {_ENDS.get(status, status)}: {reason}")


_ENDS = {"failed": "failed", "cancelled": "was cancelled", "aborted": "was aborted"}


class NotFoundError(StandfastError):
    """There is no such thing, or none that the caller's tenant may see."""

    code = "not_found"

    def __init__(self, kind: str, name: object, *, hint: str = "") -> None:
        self.kind = kind
        self.name = str(name)
        super().__init__(f"no {kind} {self.name!r}{'; ' + hint if hint else ''}")


class ConflictError(StandfastError):
    """Somebody else changed the same thing first."""

    code = "conflict"
    retryable = True


class HeldError(ConflictError):
    """Another transaction holds what the command needs, and has not ended in the time that the caller has; nothing was written."""

    code = "held"


class ReusedIdError(ConflictError):
    """A command id or idempotency key was used before, for another command; nothing was written."""

    code = "reused_id"
    retryable = False

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f"the id {key!r} was used before, for another command: repeat a command as it was, or give a new one an id of its own"
        )


class PayloadError(StandfastError):
    """A value cannot be encoded, decoded or stored; nothing was written. `reason` is the stable code of the rule, if it has one."""

    code = "bad_payload"

    def __init__(self, message: str, *, reason: str = "") -> None:
        self.reason = reason
        super().__init__(f"{message} [{reason}]" if reason else message)


class ReplayError(StandfastError):
    """A stored history cannot be folded into a state."""

    code = "replay_failed"


class UnknownEventError(ReplayError):
    """The history holds an event type or version for which the code has neither a class nor an upcaster."""

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
    """The database cannot take the work now: gone, full, read-only or locked; or a directory does not answer. Nothing of it was acknowledged."""

    code = "store_unavailable"
    retryable = True

    def __init__(self, message: str = "", *, may_be_done: bool = False) -> None:
        self.may_be_done = may_be_done
        """Whether it may have been done all the same, because only the answer got lost; False if it certainly was not."""
        super().__init__(message)


class SchemaMismatchError(StoreError):
    """The tables are not the ones this code was written for."""

    code = "schema_mismatch"


class CorruptHistoryError(StoreError):
    """Stored rows contradict one another, for example a gap in an instance's event numbers."""

    code = "corrupt_history"


class StoppedError(StandfastError):
    """The engine takes no work now: it is stopped, or maintenance mode refuses commands."""

    code = "stopped"
    retryable = True


class DeadlockError(StandfastError):
    """Somebody waits for an answer on the very thread that has to bring it."""

    code = "deadlock"


class ConfigurationError(StandfastError):
    """A setting, a URL or a registration is wrong; the message says which and what is expected."""

    code = "bad_configuration"
