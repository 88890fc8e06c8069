"""Commands of processes: who gives one, and what its caller is told, which is seen where the command is decided."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from standfast.calls.context import CallContext
from standfast.calls.reply_chaining import and_then
from standfast.calls.waiters import is_at_rest
from standfast.engine.commit.submission import CommandOutcome
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ForbiddenError, RejectedError
from standfast.features.processes import reads as p
from standfast.features.processes.views import ProcessInstance
from standfast.features.tasks.authorization import asked_at, authority_at, judged
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.rejections import Refusal
from standfast.machine.model.state import RunState
from standfast.people.authority import Authority
from standfast.store.records.instances import InstanceHeader

_ROUNDS = 5
"""How often an actor is looked up anew because others were faster."""


class Landing(NamedTuple):
    """Where a command has left a process."""

    id: InstanceId
    version: int
    """How many events it has."""
    instance: ProcessInstance | None
    """As its callers see it; None if only its history tells what it holds."""
    is_at_rest: bool


def landed(header: InstanceHeader, program: Program, state: object) -> Landing:
    """Where a process is right after a command, by what the commit has in hand."""
    assert isinstance(state, RunState)
    return Landing(header.id, header.version, p.instance_in_hand(header, program, state), is_at_rest(state))


def carried_out(desk: CallContext, identity: InstanceId, command: object, comment: str = "") -> Reply[CommandOutcome]:
    """Have a command of a process carried out."""
    address = desk.address(instance=identity)
    return desk.command(address, command, _as_it_is, comment=comment, may_create=False, view=landed)


def advanced(
    desk: CallContext, identity: InstanceId, command: c.AdvanceProcess, *, on_behalf_of: str = ""
) -> Reply[CommandOutcome]:
    """Have a process advanced by whoever the actor is. A tenant without a directory is asked nothing, and nothing is read.

    Otherwise the actor is looked up for the step that the process is at, and once more if it is at another one by then.
    """
    is_system = desk.request.actor.kind == "system"
    is_known = is_system or desk.directory.is_known_empty(desk.tenant, desk.service.shared.clock.now())
    if is_known and not on_behalf_of:
        return carried_out(desk, identity, command, command.comment)

    def attempt(round_: int) -> Reply[CommandOutcome]:
        looked = desk.consult(lambda: _looked_up(desk, identity, command, on_behalf_of))
        sent = and_then(looked, lambda found: carried_out(found[0], identity, found[1], command.comment), Reply())
        return and_then(sent, Reply.of, Reply(), rescue=lambda error: again(error, round_))

    def again(error: BaseException, round_: int) -> Reply[CommandOutcome]:
        if isinstance(error, RejectedError) and error.reason == Refusal.OUTDATED and round_ < _ROUNDS:
            return attempt(round_ + 1)
        raise error

    return attempt(1)


def _looked_up(
    desk: CallContext, identity: InstanceId, command: c.AdvanceProcess, on_behalf_of: str
) -> tuple[CallContext, c.AdvanceProcess]:
    """The desk of whoever advances a process, and the command as they give it; ForbiddenError if they cannot act at all."""
    found = _authority(desk)
    if not on_behalf_of and desk.directory.is_known_empty(desk.tenant, desk.service.shared.clock.now()):
        return desk, command  # As was found out just now.
    with desk.reader.look() as reader:
        known = p.known(desk, reader, identity)
        number = 0 if known.step is None else known.step.number
        matter = asked_at(reader, identity, number)
    if not known.is_open:
        return desk, replace(
            command, seen=known.header.version
        )  # Whoever asks, it is refused, unless it goes on by then.
    if isinstance(found, ForbiddenError):
        raise found
    definition, question = known.header.definition, known.question
    acting = judged(desk, found, matter, definition, question=question, on_behalf_of=on_behalf_of)
    return acting, replace(command, seen=known.header.version)


def _authority(desk: CallContext) -> Authority | ForbiddenError:
    """What the actor may do. That they may do nothing is told to those alone who see the instance."""
    try:
        return authority_at(desk)
    except ForbiddenError as error:
        return error


def _as_it_is(outcome: CommandOutcome) -> CommandOutcome:
    return outcome
