"""A submitted command, and its outcome."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import blake2b
from itertools import count
from typing import Final

import msgspec

from standfast.engine.commit.facts import StandsIn, Vouched
from standfast.engine.common.interceptors import CommandFacts, CommandInterception, Interceptors
from standfast.engine.common.telemetry import CommandRefused
from standfast.engine.common.work_errors import code_of, describe
from standfast.errors import PayloadError, StandfastError
from standfast.kernel.actor import OWN, RequestContext
from standfast.kernel.codec.codecs import fingerprint
from standfast.kernel.codec.defaults import beyond_defaults
from standfast.kernel.codec.message_types import stored_name, wire_name
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.store.records.instances import Address, Claim, InstanceHeader, ReceiptKey, within

RECEIPTED: Final = "+"
"""Separates the receipt mark from the rest of a cause."""
_MARK_BYTES: Final = 8
_OWN: Final = "standfast."
"""Prefix of the modules that define the built-in commands."""
_CALL: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[0-9]+(\+|$)")
"""Matches the causes that `causes` generates for callers. Causes from a transactional handler begin with the key of
its effect."""
_VERSION_AT = len(fingerprint())
_SAID_AT = _VERSION_AT + 2


def causes(name: str) -> Callable[[], str]:
    """Return a generator of command ids, which events carry as their cause.

    An id is the name of the receiver and a number.
    """
    numbers = count()
    return lambda: f"{name}.{next(numbers)}"


def is_call(cause: str) -> bool:
    """Return whether a caller sent the command, in contrast to an effect, a timer, a message or a handler."""
    return _CALL.match(cause) is not None


def reasoned(command: object, comment: str, request: RequestContext) -> tuple[object, str]:
    """Return a command and its comment with the caller's reason, wherever it was given: in the comment, the command or the request.

    Commands of an application are returned unchanged.
    """
    if not type(command).__module__.startswith(_OWN):
        return command, comment or request.reason
    name = "reason" if hasattr(command, "reason") else "comment"  # A task answer has a comment.
    own = getattr(command, name, None)
    if own == "" and request.reason:
        command = msgspec.structs.replace(command, **{name: request.reason})  # type: ignore[type-var]  # It is a struct.
    return command, comment or own or request.reason


def unasked(cause: str) -> str:
    """Return the cause of a command that the engine itself issues. It is not audited as an action of a caller."""
    return f"engine:{cause}"


def receipted(cause: str, receipt: ReceiptKey | None) -> str:
    """Return the cause of a command with a receipt.

    It includes the receipt's mark, so that the history reveals a missing receipt.
    """
    return cause if receipt is None else f"{cause}{RECEIPTED}{receipt_mark(receipt)}"


def receipt_mark(receipt: ReceiptKey) -> str:
    """Return the mark of a receipt for the history.

    It hides the key, which belongs to the caller and may be confidential.
    """
    return blake2b(f"{receipt.scope}\0{receipt.key}".encode(), digest_size=_MARK_BYTES).hexdigest()


def receipt_key(address: Address, command_id: str) -> ReceiptKey | None:
    """Return the key that makes a command with this id idempotent for its instance, or None without an id."""
    if not command_id:
        return None
    named = address.name if address.instance is None else within(address.partition, address.name)
    return ReceiptKey(address.tenant, named, command_id)


def digest_of(address: Address, command: object) -> bytes:
    """Return a digest for `is_same`: the command's type, version, content and business key.

    The business key matters if the receipt applies to a whole definition.
    """
    name, version = wire_name(type(command))
    try:
        said = fingerprint(beyond_defaults(command))
    except PayloadError:  # A custom codec may store values that other codecs cannot compare.
        said = b""
    return fingerprint(name, address.key) + version.to_bytes(_SAID_AT - _VERSION_AT) + said


def is_same(one: bytes, other: bytes) -> bool:
    """Compare the digests of two commands with one receipt.

    Different versions of a type cannot be compared. A command repeated after a deployment is identified by its type
    alone.
    """
    if one[:_VERSION_AT] != other[:_VERSION_AT]:
        return False
    return one[_VERSION_AT:_SAID_AT] != other[_VERSION_AT:_SAID_AT] or one[_SAID_AT:] == other[_SAID_AT:]


class CommandOutcome(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a command."""

    instance: InstanceId | None
    """The target instance. None if the command was ignored and there is no instance."""
    version: int
    """The instance's version after the command."""
    ignored: str = ""
    """Why the command changed nothing. Empty if it wrote something."""
    seen: object = None
    """The result of the submission's view. None without a view, or if the command was not decided in this call."""


View = Callable[[InstanceHeader, Program, object], object]
"""Projects an instance right after a command, from its row, program and state. The state is mutable and must not be
kept.

It runs where the command is decided, so it must be quick and must not raise.
"""

Settled = Callable[[CommandOutcome | None, BaseException | None], None]
"""Called once, with the outcome or the error."""


class Submission(msgspec.Struct, kw_only=True, eq=False):
    """One command for one instance.

    The garbage collector tracks it, because caller, reply and error may form cycles.
    """

    address: Address
    command: object
    cause: str
    """Names the command in the history. An unknown outcome is resolved by it."""
    settled: Settled
    request: RequestContext = OWN
    """The request, with the actor's rights as of the last decision. The address determines the tenant, whatever
    tenant the request names."""
    asked: RequestContext | None = None
    """The request as the caller made it. None before the decision, and for commands of the engine."""
    stands_in: StandsIn | None = None
    """The delegation by which the actor acts. None if the actor acts for themselves, or as the request says."""
    vouched: Vouched | None = None
    """The host directory's answer about the actor. None without such a directory, or if it was not queried."""
    comment: str = ""
    receipt: ReceiptKey | None = None
    """Makes the command idempotent for its caller."""
    digest: bytes = b""
    """Digest of a command with a receipt, to compare it with another command under the same receipt."""
    claim: Claim | None = None
    """The effect, timer or message that the commit consumes."""
    taken_at: datetime | None = None
    """When the work began whose end the command reports. None if the requesting commit handed it over directly, or
    without work."""
    definition_version: str = ""
    """Version of the definition that a new instance is pinned to; empty for deciders."""
    may_create: bool = False
    """Whether the command may create its instance."""
    identity: InstanceId | None = None
    """Id for the new instance if the address names a key. None generates one."""
    parent: InstanceId | None = None
    """The instance that requested the start of this one."""
    deadline: float | None = None
    """Monotonic deadline of the caller. None for work that must be committed however long an outage lasts."""
    view: View | None = None
    """The caller's view of the instance."""
    is_own: bool = False
    """Whether the instance's own decider wrote the command, so that it must not name another instance."""
    held_since: float | None = None
    """Monotonic time since which every try found the instance held by another transaction. None if none did."""
    is_uncertain: bool = False
    """Whether a commit of it was sent without an answer."""
    passages: Sequence[CommandInterception] = ()
    """The interceptors of this command."""


def accompany(submission: Submission, companions: Interceptors) -> None:
    """Start the interceptors of a command. Its follow-up work inherits the trace that they set."""
    address, request = submission.address, submission.request
    facts = CommandFacts(
        command=stored_name(submission.command),
        definition=address.definition,
        tenant=address.tenant,
        instance=address.instance,
        key=address.key,
        actor=request.actor.id,
        trace=request.trace,
    )
    submission.passages, trace = companions.with_command(facts)
    if trace != request.trace:
        submission.request = msgspec.structs.replace(request, trace=trace)


def refused(submission: Submission, error: BaseException) -> CommandRefused:
    """Build the telemetry event for a failed command."""
    address = submission.address
    return CommandRefused(
        definition=address.definition,
        instance=address.instance,
        command=stored_name(submission.command),
        code=code_of(error) if isinstance(error, StandfastError) else "unexpected",
        error=describe(error),
    )
