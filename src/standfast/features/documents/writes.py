"""Writing that takes more than one command: an amendment, and an action whose handler writes too. All of it is one transaction."""

from __future__ import annotations

import copy
from collections.abc import Callable, Coroutine
from typing import Final, cast
from uuid import UUID, uuid5

import msgspec

from standfast.calls.context import CallContext
from standfast.engine.commit.submission import CommandOutcome, receipt_key
from standfast.engine.commit.unit_of_work import JointCommit
from standfast.engine.common.handlers import EffectContext, Handler
from standfast.engine.worker.call import run_coroutine
from standfast.errors import ConfigurationError, ForbiddenError, NotFoundError, PayloadError, RejectedError
from standfast.features.documents.content.reads import FoundDocument, Spoken, found, known_from, view_of
from standfast.features.documents.content.views import DocumentView
from standfast.features.documents.publishing.active_version import active_workflow
from standfast.graph.document_spec import DocumentSpec
from standfast.kernel.codec.message_types import message, stored_name
from standfast.kernel.decision import NOT_ALLOWED, Rejection
from standfast.kernel.moment import Moment
from standfast.machine.documents.visibility import HiddenPartError, with_hidden_parts
from standfast.machine.machine import GraphMachine
from standfast.machine.model.commands.document_commands import (
    CreateDocument,
    Mutate,
    SupersedeDocument,
    TellDrift,
)
from standfast.machine.model.commands.run_commands import CompleteStep, RunStep
from standfast.machine.model.queries.fields import marks_of
from standfast.machine.model.rejections import Refusal
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import Address

Data = dict[str, object]
Reference = tuple[str, str]
"""Type and id."""

_MADE = UUID("5d1f9a52-7c0b-5b0e-9a57-1f0c8f3b7d11")
"""Where ids come from that follow from idempotency keys."""


def spec_of(desk: CallContext, name: str) -> DocumentSpec:
    """What the newest workflow of a type says of its documents."""
    program = desk.registry.library.recent(desk.tenant, name)
    assert program is not None
    assert isinstance(program.decider, GraphMachine)
    assert program.decider.graph.document is not None
    return program.decider.graph.document


def address_of(desk: CallContext, name: str, key: str) -> Address:
    """Where the commands of a document go."""
    return desk.address(name, key)


def made_id(desk: CallContext, place: Reference, repeated: str = "") -> str:
    """An id that no document has; with an idempotency key the same for the same call, so that it makes one document however often it is made."""
    if repeated:
        return str(uuid5(_MADE, "\0".join((desk.tenant, *place, repeated))))
    shared = desk.service.shared
    return str(shared.chance.new_id(shared.clock.now()))


def looks_up(desk: CallContext) -> bool:
    """Whether those whom workflows name are looked up: in a tenant that grants roles."""
    return desk.directory.grants_roles(desk.tenant, desk.service.shared.clock.now())


def shown(desk: CallContext, reader: TenantReader, name: str, key: str, *, is_amendment: bool = False) -> DocumentView:
    """A document that the caller was let do something to."""
    return view_of(desk, found(desk, reader, name, key, is_own=True), is_amendment=is_amendment)


@message(name="Amendment")
class Amendment(msgspec.Struct, frozen=True, kw_only=True):
    """An amendment that somebody asks for by name."""

    changes: Data
    new_id: str = ""
    expected_version: int | None = None
    reason: str = ""


class WriteFingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody said, by which a repetition is told: the same words of another are another's, and give nothing away."""

    by: str
    what: str
    words: Spoken | Amendment


def said_of(desk: CallContext, said: Spoken | Amendment) -> WriteFingerprint:
    """What the caller said of a command."""
    if isinstance(said, CreateDocument):
        said = msgspec.structs.replace(said, looks_up=False)
    return WriteFingerprint(by=desk.request.actor.id, what=stored_name(said), words=said)


def carry_out(
    desk: CallContext, reference: Reference, command: Spoken, repeated: str, *, version: str = ""
) -> DocumentView:
    """Carry out one command in the transaction that the caller has open; the document as it is there, before he commits."""
    name, key = reference
    address, own = address_of(desk, name, key), desk.with_roles()

    def write(joint: JointCommit) -> DocumentView:
        if not version and joint.look(address) is None:
            raise NotFoundError("document", f"{name}/{key}")
        outcome = joint.carry_out(
            address,
            command,
            by=own.by,
            comment=command.reason,
            receipt=receipt_key(address, repeated),
            said=said_of(desk, command),
            may_create=bool(version),
            definition_version=version,
        )
        return seen_inside(own, joint, reference, version=outcome.version)

    return desk.join(write)


def seen_inside(desk: CallContext, joint: JointCommit, reference: Reference, *, version: int = 0) -> DocumentView:
    """A document as an open transaction has it, or the one that has taken its place in the command that made it this version."""
    known = _known(desk, joint, reference)
    document = known.document
    if document.superseded_by and known.header.version == version:
        return view_of(desk, _known(desk, joint, (document.type, document.superseded_by)), is_amendment=True)
    return view_of(desk, known)


def _known(desk: CallContext, joint: JointCommit, reference: Reference) -> FoundDocument:
    tracked = joint.look(address_of(desk, *reference))
    if tracked is None:
        raise NotFoundError("document", "/".join(reference))
    return known_from(tracked)


def seen_after(desk: CallContext, reader: TenantReader, reference: Reference, version: int) -> DocumentView:
    """A document after a command that made it this version: if another one took its place in that, by an edit, that one."""
    known = found(desk, reader, *reference, is_own=True)
    new = known.document.superseded_by
    if new and known.header.version == version:
        return view_of(desk, found(desk, reader, reference[0], new, is_own=True), is_amendment=True)
    return view_of(desk, known)


# -- amendments


def amend(
    desk: CallContext, reference: Reference, command: Mutate, repeated: str = "", *, asked: Amendment | None = None
) -> DocumentView:
    """Two documents in one transaction: the old one is superseded, and the new one begins with the changes in it.

    Without an `Amendment` it follows from an edit. The same idempotency key gives the same document, and no second one.
    """
    name, key = reference
    _, version = active_workflow(desk, name)
    own, address = desk.with_roles(), address_of(desk, name, key)
    receipt = receipt_key(address, repeated)
    said = said_of(desk, command if asked is None else asked)
    made = (asked.new_id if asked is not None else "") or made_id(desk, (name, key), repeated)

    def write(joint: JointCommit) -> str:
        known = _known(own, joint, reference)
        if joint.repeated(receipt, address, said) is not None:
            return known.document.superseded_by
        edit = _with_hidden_parts(own, known, command)
        over = SupersedeDocument(
            superseded_by=made,
            expected_version=command.expected_version,
            reason=command.reason,
            fields=sorted(edit.payload),
            changes=dict(sorted(edit.payload.items())),
            is_forced=asked is None,
        )
        joint.carry_out(address, over, by=own.by, comment=command.reason, receipt=receipt, said=said)
        joint.carry_out(
            address_of(desk, name, made),
            _amended(own, known, edit),
            by=own.by,
            comment=command.reason,
            may_create=True,
            definition_version=version,
        )
        return made

    if desk.is_within:
        return desk.join(lambda joint: view_of(own, _known(own, joint, (name, write(joint))), is_amendment=True))
    new = desk.join(write)
    with desk.reader.look() as reader:
        return shown(own, reader, name, new, is_amendment=True)


def amend_by_edit(desk: CallContext, reference: Reference, command: Mutate, repeated: str = "") -> DocumentView:
    """Make an amendment of an edit whose window asked for one; edit the document after all if it is editable by now."""
    try:
        return amend(desk, reference, command, repeated)
    except RejectedError as error:
        if error.reason != Refusal.NOT_AMENDABLE:
            raise
        try:
            return carry_out(desk, reference, command, repeated)
        except RejectedError as again:
            raise (error if again.reason == Refusal.AMENDMENT_REQUIRED else again) from None


def _with_hidden_parts(desk: CallContext, known: FoundDocument, command: Mutate) -> Mutate:
    """The edit, with what its author does not see as it was."""
    try:
        made = with_hidden_parts(known.parts.spec, known.document.data, command.payload, desk.request.actor)
    except HiddenPartError as error:
        raise ForbiddenError(reason=NOT_ALLOWED, message=str(error)) from None
    return msgspec.structs.replace(command, payload=made)


def _amended(desk: CallContext, known: FoundDocument, command: Mutate) -> CreateDocument:
    """What begins in the place of a document."""
    data = _carried_over(known, command.payload)
    return CreateDocument(
        data=data,
        redacted=[name for name in marks_of(data, known.document.data) if name not in command.payload],
        amended_from=known.document.id,
        amended_at=known.document.amended_at or known.document.status,
        hands=known.document.hands,
        wrote=known.document.wrote,
        involved=[name for name in (known.state.requester, *known.state.involved) if name],
        reason=command.reason,
        judged_as=command.action,
        looks_up=looks_up(desk),
    )


def _carried_over(known: FoundDocument, changes: Data) -> Data:
    """What an amendment begins with: what people gave, with the changes; what the workflow set or computed begins anew."""
    own = known.parts.system.union(known.parts.computed)
    kept = {name: value for name, value in known.document.data.items() if name not in own}
    return {name: value for name, value in {**kept, **changes}.items() if value is not None}


# -- actions with a handler


def handler_of(desk: CallContext, name: str, action: str) -> str:
    """The name of the handler that computes what an action changes; empty if what is given is laid over the data."""
    found_ = next((each for each in spec_of(desk, name).actions if each.name == action), None)
    return "" if found_ is None else found_.handler


def _own_handler(known: FoundDocument, action: str) -> str:
    """The handler of an action in the workflow that a document follows."""
    found_ = known.parts.actions.get(action)
    return "" if found_ is None else found_.handler


def act(desk: CallContext, reference: Reference, command: Mutate, repeated: str) -> DocumentView:
    """Judge an action, call its handler with the open transaction, and write what it computed in that."""
    own = desk.with_roles()
    if desk.is_within:
        return desk.join(lambda joint: _act_inside(own, joint, reference, command, repeated=repeated))
    name, key = reference
    address = address_of(desk, name, key)
    receipt = receipt_key(address, repeated)
    if (
        receipt is not None
        and desk.join(lambda joint: joint.repeated(receipt, address, said_of(desk, command))) is not None
    ):
        with desk.reader.look() as reader:
            return shown(own, reader, name, key)
    with desk.reader.look() as reader:
        known = found(own, reader, name, key, is_own=True)
    handler = _judged_handler(own, known, command)

    def write(joint: JointCommit) -> None:
        _computed(own, joint, known, command, handler=handler, repeated=repeated)

    desk.join(write)
    with desk.reader.look() as reader:
        return shown(own, reader, name, key)


def _act_inside(
    desk: CallContext, joint: JointCommit, reference: Reference, command: Mutate, *, repeated: str
) -> DocumentView:
    """The same in the transaction that the caller has open: its handler gets that connection, and the caller commits."""
    address = address_of(desk, *reference)
    known = _known(desk, joint, reference)
    if joint.repeated(receipt_key(address, repeated), address, said_of(desk, command)) is not None:
        return view_of(desk, known)
    known = known._replace(
        state=copy.deepcopy(known.state)
    )  # Judging spoils it, and the transaction goes on with its own.
    handler = _judged_handler(desk, known, command)
    outcome = _computed(desk, joint, known, command, handler=handler, repeated=repeated)
    return seen_inside(desk, joint, reference, version=outcome.version)


def _judged_handler(desk: CallContext, known: FoundDocument, command: Mutate) -> Handler | None:
    """The handler of an action that nothing stands against; None if the workflow that the document follows has none for it."""
    wanted = _own_handler(known, command.action)
    if not wanted:
        return None
    judge(desk, known, command)
    handler = desk.service.shared.handlers.find(wanted)
    if handler is None:
        told = f"the handler of the action {command.action!r} is not registered in this process"
        raise ConfigurationError(f"{told}; register it with engine.handler")
    return handler


def _computed(
    desk: CallContext,
    joint: JointCommit,
    known: FoundDocument,
    command: Mutate,
    *,
    handler: Handler | None,
    repeated: str,
) -> CommandOutcome:
    """Write what the handler computes; without one, what was given."""
    address = address_of(desk, known.document.type, known.document.id)
    done = command
    if handler is not None:
        with joint.lend(desk.tenant) as connection:
            output = called(desk, known, command, handler=handler, connection=connection)
        done = msgspec.structs.replace(
            command, changes=changes_of(output, command.action), expected_version=known.document.version
        )
    return joint.carry_out(
        address,
        done,
        by=desk.by,
        comment=command.reason,
        receipt=receipt_key(address, repeated),
        said=said_of(desk, command),
    )


def called(desk: CallContext, known: FoundDocument, command: Mutate, *, handler: Handler, connection: object) -> object:
    """What the handler gives, which is called as for a step of a workflow."""
    document = {**known.document.own(), "data": known.document.data}
    body = RunStep(step=0, node=command.action, first=0, input={"document": document, "payload": command.payload})
    context = EffectContext(
        instance=known.header.id,
        tenant=desk.tenant,
        decider=known.document.type,
        number=0,
        attempt=1,
        actor=desk.request.actor,
        trace=desk.request.trace,
        find_key=lambda _tenant, _instance: known.document.id,
    )
    context.connection = connection
    if handler.is_async:
        make = cast("Callable[[EffectContext, object], Coroutine[object, object, object]]", handler.function)
        answer = run_coroutine(lambda: make(context, body))
    else:
        answer = handler.function(context, body)
    assert isinstance(answer, CompleteStep)
    return answer.output


def judge(desk: CallContext, known: FoundDocument, command: Mutate) -> None:
    """Raise what would be refused whatever the handler computes."""
    answer = objection(desk, known, msgspec.structs.replace(command, changes={}))
    if answer is not None:
        kind = ForbiddenError if answer.code == NOT_ALLOWED else RejectedError
        raise kind(reason=answer.code, message=answer.message)


def objection(desk: CallContext, known: FoundDocument, command: Mutate | TellDrift) -> Rejection | None:
    """Why a command would be refused as things stand. The state is a copy of this call's own."""
    moment = Moment(
        now=desk.service.shared.clock.now(),
        instance=known.header.id,
        key=known.header.key,
        tenant=known.header.tenant,
        partition=known.header.partition,
        actor=desk.request.actor,
        version=known.header.version,
        facts=desk.facts(known.header),
    )
    answer = known.machine.decide(known.state, command, moment)
    return answer if isinstance(answer, Rejection) else None


def may_do(desk: CallContext, known: FoundDocument, action: str) -> Rejection | None:
    """Why the caller may not do something to a document, however it stands, and whatever is given."""
    copied = known._replace(state=copy.deepcopy(known.state))
    return objection(desk, copied, TellDrift(action=action))


def changes_of(output: object, action: str) -> Data:
    """What the handler of an action changes; PayloadError if it gave something else."""
    if output is None:
        return {}
    if not isinstance(output, dict):
        raise PayloadError(f"the handler of {action!r} gives changes by field, or nothing; it gave {output!r:.200}")
    return output


def verb_of(name: str, action: str) -> str:
    """What is done, without the type that may stand before it: `invoice.post` is `post`."""
    return action.removeprefix(f"{name}.")


FOLLOWED: Final = {Refusal.AMENDMENT_REQUIRED.value: amend_by_edit, Refusal.HANDLER_REQUIRED.value: act}
"""What is done instead of an edit that was refused for a reason."""
