"""A command on its way into a commit, and what became of it."""

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
"""Parts the mark of a receipt from the rest of a cause."""
_MARK_BYTES: Final = 8
_OWN: Final = "standfast."
"""Where the commands of workflows, documents, schedules and batches are defined."""
_CALL: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[0-9]+(\+|$)")
"""What `causes` gives for a service; the causes that a transactional handler gives begin with the key of its effect."""
_VERSION_AT = len(fingerprint())
_SAID_AT = _VERSION_AT + 2


def causes(name: str) -> Callable[[], str]:
    """Gives commands their ids, which their events carry as their cause: the name of whoever takes them, and a number."""
    numbers = count()
    return lambda: f"{name}.{next(numbers)}"


def is_call(cause: str) -> bool:
    """Tell whether a caller gave the command, in contrast to an effect, a timer, a message or a handler."""
    return _CALL.match(cause) is not None


def reasoned(command: object, comment: str, request: RequestContext) -> tuple[object, str]:
    """Return a command and its comment with the reason that its caller gave, in whichever of three places: comment, command or request.

    The commands of an application are left as they are.
    """
    if not type(command).__module__.startswith(_OWN):
        return command, comment or request.reason
    name = "reason" if hasattr(command, "reason") else "comment"  # An answer has a comment.
    own = getattr(command, name, None)
    if own == "" and request.reason:
        command = msgspec.structs.replace(command, **{name: request.reason})  # type: ignore[type-var]  # It is a struct.
    return command, comment or own or request.reason


def unasked(cause: str) -> str:
    """Return the cause of a command that the engine gives by itself: no caller gave it, so it is no act."""
    return f"engine:{cause}"


def receipted(cause: str, receipt: ReceiptKey | None) -> str:
    """Returns the cause of a command that has a receipt: the history names the receipt by it, so that one that is gone is missed."""
    return cause if receipt is None else f"{cause}{RECEIPTED}{receipt_mark(receipt)}"


def receipt_mark(receipt: ReceiptKey) -> str:
    """Names a receipt in a history. The key itself is the caller's, and may say something."""
    return blake2b(f"{receipt.scope}\0{receipt.key}".encode(), digest_size=_MARK_BYTES).hexdigest()


def receipt_key(address: Address, command_id: str) -> ReceiptKey | None:
    """What makes a command with this id idempotent for its instance; None for a command without one."""
    if not command_id:
        return None
    named = address.name if address.instance is None else within(address.partition, address.name)
    return ReceiptKey(address.tenant, named, command_id)


def digest_of(address: Address, command: object) -> bytes:
    """What `is_same` needs to know of a command with a receipt: its name, the key that it names, its version and what it says.

    The key matters where the receipt is for a whole definition.
    """
    name, version = wire_name(type(command))
    try:
        said = fingerprint(beyond_defaults(command))
    except PayloadError:  # A codec of the user's own may store what others cannot even compare.
        said = b""
    return fingerprint(name, address.key) + version.to_bytes(_SAID_AT - _VERSION_AT) + said


def is_same(one: bytes, other: bytes) -> bool:
    """Whether two commands with one receipt are the same, by their digests.

    What two versions of a class say cannot be compared: a command that is sent again after a deployment is taken at its name.
    """
    if one[:_VERSION_AT] != other[:_VERSION_AT]:
        return False
    return one[_VERSION_AT:_SAID_AT] != other[_VERSION_AT:_SAID_AT] or one[_SAID_AT:] == other[_SAID_AT:]


class CommandOutcome(msgspec.Struct, frozen=True, gc=False):
    """What became of a command."""

    instance: InstanceId | None
    """The instance it was for; None if it was ignored and there is none."""
    version: int
    """The instance's version afterwards."""
    ignored: str = ""
    """Why nothing was written; empty when something was."""
    seen: object = None
    """What the view of the submission has made of the instance; None if it has none, or if nothing was decided now."""


View = Callable[[InstanceHeader, Program, object], object]
"""Makes something of an instance as it is right after a command: of its row, its program and its state, which goes on changing.

It is called where the command is decided: it must be quick, and must not fail.
"""

Settled = Callable[[CommandOutcome | None, BaseException | None], None]
"""Called once, with the outcome or with the error."""


class Submission(msgspec.Struct, kw_only=True, eq=False):
    """One command for one instance. It is watched by the collector, because its caller, his reply and its error may hold one another."""

    address: Address
    command: object
    cause: str
    """Names this command in the history; how an unknown outcome is found out."""
    settled: Settled
    request: RequestContext = OWN
    """For whom it is asked, with the rights that the actor had when it was last decided. Whose instance it is about the address tells, whatever tenant is named here."""
    asked: RequestContext | None = None
    """The same as the caller said it; None as long as it was not decided, and for the engine itself."""
    stands_in: StandsIn | None = None
    """For whom the actor acts by a delegation; None if for themselves, or as the request says."""
    vouched: Vouched | None = None
    """What the host's directory has said of the actor; None if there is no such directory, or nobody has asked it."""
    comment: str = ""
    receipt: ReceiptKey | None = None
    """Makes the command idempotent for its caller."""
    digest: bytes = b""
    """Of a command with a receipt: tells whether another one with that receipt is the same."""
    claim: Claim | None = None
    """The effect, timer or message that the commit uses up."""
    taken_at: datetime | None = None
    """When the work began that the command tells the end of; None if the commit that asked for it handed it over, or for no work."""
    definition_version: str = ""
    """Version of the definition that a new instance is pinned to; empty for deciders."""
    may_create: bool = False
    """Whether the command may be the first of its instance."""
    identity: InstanceId | None = None
    """Id of a new instance, where the address names a key; None means one that is made for it."""
    parent: InstanceId | None = None
    """The instance that asked for this one to be started."""
    deadline: float | None = None
    """Monotonic time after which nobody waits any more; None for work that must go in whenever the database is back."""
    view: View | None = None
    """What the caller wants to see of the instance."""
    is_own: bool = False
    """Whether the decider of the very instance wrote the command, so that it must not name another one."""
    held_since: float | None = None
    """Monotonic time since which another transaction has had its instance whenever it was tried; None if none has."""
    is_uncertain: bool = False
    """Whether a commit of it was sent and no answer came."""
    passages: Sequence[CommandInterception] = ()
    """Those who go along with it."""


def accompany(submission: Submission, companions: Interceptors) -> None:
    """Have companions go along with a command; what it leads to follows from what they call it."""
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
    """What telemetry hears of a command that failed."""
    address = submission.address
    return CommandRefused(
        definition=address.definition,
        instance=address.instance,
        command=stored_name(submission.command),
        code=code_of(error) if isinstance(error, StandfastError) else "unexpected",
        error=describe(error),
    )
