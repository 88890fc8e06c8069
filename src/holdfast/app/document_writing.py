"""Writing that takes more than one command: an amendment, and an action whose handler writes too. All of it is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import cast

import msgspec

from holdfast.app.desk import Desk
from holdfast.app.document_views import DocumentView
from holdfast.app.documents import Found, found, view_of
from holdfast.app.in_force import workflow_in_force
from holdfast.errors import ConfigurationError, ForbiddenError, PayloadError, RejectedError
from holdfast.kernel.decision import NOT_ALLOWED, Rejection
from holdfast.kernel.moment import Moment
from holdfast.machine.graphs.document import DocumentSpec
from holdfast.machine.machine import GraphMachine
from holdfast.machine.runs.commands import CompleteStep, RunStep
from holdfast.machine.runs.document_commands import CreateDocument, Mutate, SupersedeDocument
from holdfast.runtime.commit.joint import Joint
from holdfast.runtime.commit.submissions import receipt_key
from holdfast.runtime.handlers import EffectContext, Handler
from holdfast.runtime.work.call import run_coroutine
from holdfast.store.reading import Reader
from holdfast.store.shapes import Address

Data = dict[str, object]
Reference = tuple[str, str]
"""Type and id."""


def spec_of(desk: Desk, name: str) -> DocumentSpec:
    """What the newest workflow of a type says of its documents."""
    program = desk.registry.library.program(desk.tenant, name)
    assert program is not None
    assert isinstance(program.decider, GraphMachine)
    assert program.decider.graph.document is not None
    return program.decider.graph.document


def address_of(desk: Desk, name: str, key: str) -> Address:
    """Where the commands of a document go."""
    return Address(tenant=desk.tenant, definition=name, key=key)


def made_id(desk: Desk) -> str:
    """An id that no document has."""
    shared = desk.service.shared
    return str(shared.chance.new_id(shared.clock.now()))


def looks_up(desk: Desk) -> bool:
    """Whether those whom workflows name are looked up: in a tenant that grants roles."""
    return desk.directory.grants_roles(desk.tenant, desk.service.shared.clock.now())


def shown(desk: Desk, reader: Reader, name: str, key: str, *, is_amendment: bool = False) -> DocumentView:
    """A document that the caller was let do something to."""
    return view_of(desk, found(desk, reader, name, key, is_own=True), is_amendment=is_amendment)


# -- amendments


def amend(desk: Desk, reference: Reference, command: Mutate, made: str, *, is_forced: bool) -> DocumentView:
    """Two documents in one transaction: the old one is superseded, and the new one begins with the changes in it."""
    name, key = reference
    with desk.reader.look() as reader:
        known = found(desk, reader, name, key, is_own=True)
    _, version = workflow_in_force(desk, name)
    seen = known.document.version if command.expected_version is None else command.expected_version
    over = SupersedeDocument(
        superseded_by=made,
        expected_version=seen,
        reason=command.reason,
        fields=sorted(command.payload),
        is_forced=is_forced,
    )
    begun = CreateDocument(
        data=_carried_over(known, command.payload),
        amended_from=key,
        reason=command.reason,
        rules=command.rules,
        org=known.document.org if command.org is None else command.org,
        looks_up=looks_up(desk),
    )

    def write(joint: Joint) -> None:
        joint.carry_out(address_of(desk, name, key), over, request=desk.request, comment=command.reason)
        joint.carry_out(
            address_of(desk, name, made),
            begun,
            request=desk.request,
            comment=command.reason,
            may_create=True,
            definition_version=version,
        )

    desk.service.store.refuse_inside()
    desk.service.joints.run(write)
    with desk.reader.look() as reader:
        return shown(desk, reader, name, made, is_amendment=True)


def _carried_over(known: Found, changes: Data) -> Data:
    """What an amendment begins with: what people gave, with the changes; what the workflow set or computed begins anew."""
    own = known.parts.system.union(known.parts.computed)
    kept = {name: value for name, value in known.document.data.items() if name not in own}
    return {name: value for name, value in {**kept, **changes}.items() if value is not None}


# -- actions with a handler


def handler_of(desk: Desk, name: str, action: str) -> str:
    """The name of the handler that computes what an action changes; empty if what is given is laid over the data."""
    found_ = next((each for each in spec_of(desk, name).actions if each.name == action), None)
    return "" if found_ is None else found_.handler


def act(desk: Desk, reference: Reference, command: Mutate, repeated: str) -> DocumentView:
    """Judge an action, call its handler with the open transaction, and write what it computed in that."""
    name, key = reference
    with desk.reader.look() as reader:
        known = found(desk, reader, name, key, is_own=True)
    _judge(desk, known, command)
    handler = desk.service.shared.handlers.find(handler_of(desk, name, command.action))
    if handler is None:
        told = f"the handler of the action {command.action!r} is not registered in this process"
        raise ConfigurationError(f"{told}; register it with engine.handler")
    address = address_of(desk, name, key)

    def write(joint: Joint) -> None:
        with joint.lend(desk.tenant) as connection:
            output = _called(desk, known, command, handler=handler, connection=connection)
        done = msgspec.structs.replace(
            command, changes=_changes(output, command.action), expected_version=known.document.version
        )
        joint.carry_out(
            address, done, request=desk.request, comment=command.reason, receipt=receipt_key(address, repeated)
        )

    desk.service.store.refuse_inside()
    desk.service.joints.run(write)
    with desk.reader.look() as reader:
        return shown(desk, reader, name, key)


def _called(desk: Desk, known: Found, command: Mutate, *, handler: Handler, connection: object) -> object:
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


def _judge(desk: Desk, known: Found, command: Mutate) -> None:
    """Raise what would be refused whatever the handler computes. The state is a copy of this call's own."""
    moment = Moment(
        now=desk.service.shared.clock.now(),
        instance=known.header.id,
        key=known.header.key,
        tenant=known.header.tenant,
        partition=known.header.partition,
        actor=desk.request.actor,
        version=known.header.version,
    )
    answer = known.machine.decide(known.state, msgspec.structs.replace(command, changes={}), moment)
    if isinstance(answer, Rejection):
        kind = ForbiddenError if answer.code == NOT_ALLOWED else RejectedError
        raise kind(reason=answer.code, message=answer.message)


def _changes(output: object, action: str) -> Data:
    if output is None:
        return {}
    if not isinstance(output, dict):
        raise PayloadError(f"the handler of {action!r} gives changes by field, or nothing; it gave {output!r:.200}")
    return output
