"""How a workflow is started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import msgspec

from standfast.calls.catalog.definitions import asks_people, check_names, graph_of, patience_of
from standfast.calls.context import CallContext, checked_key, failed
from standfast.calls.handlers.step_handlers import plain_data
from standfast.calls.references import AnyTyped, DefinitionLike, checked_definition
from standfast.engine.commit.submission import CommandOutcome, View
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ForbiddenError, PayloadError, RejectedError, StandfastError, indefinite
from standfast.features.runs.run_calls import FutureRun
from standfast.graph.definition import TypedDefinition
from standfast.kernel.codec.codecs import raised_up
from standfast.kernel.codec.type_cache import settled
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.queries.authorization import start_refusal, stop_refusal
from standfast.machine.model.rejections import Refusal
from standfast.store.ports.store import StoreParts
from standfast.store.records.instances import Address, ReceiptKey, within

T = TypeVar("T")


class ParentLink(NamedTuple):
    """A start that an instance of the engine's own asks for: it has named the run, and hears of its end."""

    run: InstanceId
    parent: InstanceId
    definition: str
    number: int
    involved: Sequence[str] = ()
    """Who else has brought it about."""

    def told(self, command: c.StartWorkflow) -> c.StartWorkflow:
        """The command with whom the run tells of its end."""
        return msgspec.structs.replace(
            command,
            parent=str(self.parent),
            parent_definition=self.definition,
            parent_step=self.number,
            involved=list(self.involved),
        )


def start_run(  # noqa: PLR0913 - all that can be said about a start, by name
    desk: CallContext,
    definition: DefinitionLike,
    input: object,  # noqa: A002 - the word that everybody uses for it
    *,
    version: str | int,
    key: str,
    idempotency_key: str,
    delay: timedelta | float,
    comment: str,
    scope: str = "",
    handled_by: CallContext | None = None,
    birth: ParentLink | None = None,
) -> Reply[FutureRun[Any]]:
    """Have a workflow started; the parameters are those of `engine.start`. Idempotency keys of one `scope` are told apart by nothing else.

    `handled_by` is the desk of the run's later calls, if that is another one; `birth` is what an instance that starts it says of that.
    """
    if desk.may_hold_more:
        return desk.known(
            lambda known: start_run(
                known,
                definition,
                input,
                version=version,
                key=key,
                idempotency_key=idempotency_key,
                delay=delay,
                comment=comment,
                scope=scope,
                handled_by=desk,
                birth=birth,
            )
        )
    kind = definition.result if isinstance(definition, TypedDefinition) else object

    def born(outcome: CommandOutcome) -> FutureRun[Any]:
        assert outcome.instance is not None, "a start that was accepted has an instance"
        return FutureRun(handled_by or desk, outcome.instance, kind)

    said = _Said(definition, input, version, key, idempotency_key, delay, comment, scope, birth)
    return _submit_start(desk, said, born, None)


def start_run_and_view(  # noqa: PLR0913 - see above
    desk: CallContext,
    definition: DefinitionLike,
    input: object,  # noqa: A002 - the word that everybody uses for it
    *,
    version: str | int,
    key: str,
    idempotency_key: str,
    comment: str,
    scope: str,
    view: View,
) -> Reply[CommandOutcome]:
    """Have a workflow started at once by an actor who was looked up; what comes of it, with what `view` makes of the new instance."""
    said = _Said(definition, input, version, key, idempotency_key, 0, comment, scope)
    return _submit_start(desk, said, lambda outcome: outcome, view)


class _Said(NamedTuple):
    """What is said about a start."""

    definition: DefinitionLike
    input: object
    version: str | int
    key: str
    idempotency_key: str
    delay: timedelta | float
    comment: str
    scope: str
    birth: ParentLink | None = None


def _submit_start(
    desk: CallContext, asked: _Said, answer: Callable[[CommandOutcome], T], view: View | None
) -> Reply[T]:
    definition, birth = asked.definition, asked.birth
    repeated = asked.idempotency_key or desk.request.idempotency_key
    try:
        name, pinned = _found_open(desk, asked, repeated)
        data = plain_data(asked.input, "input", limit=desk.payload_limit)
        if isinstance(definition, TypedDefinition):
            check_input(data, definition)
        check_right(desk, name, pinned)
        program = desk.registry.library.program(desk.tenant, name, pinned)
        if program is not None:
            check_names(program.kind, data)
        said = c.StartWorkflow(input=data, delay_ms=_milliseconds(asked.delay))
        if birth is not None:
            said = birth.told(said)
        command = said if program is None else _patient(desk, program, said)
        address = _address_of_new_run(desk, name, checked_key(asked.key, "key", may_be_empty=True), birth)
        checked_key(repeated, "idempotency key", may_be_empty=True)
    except StandfastError as error:
        return failed(error)
    receipt = _receipt_key(desk, asked, name, repeated)
    return desk.command(
        address,
        command,
        answer,
        comment=asked.comment,
        receipt=receipt,
        said=said,
        definition_version=pinned,
        parent=None if birth is None else birth.parent,
        view=view,
    )


def _receipt_key(desk: CallContext, asked: _Said, name: str, repeated: str) -> ReceiptKey | None:
    """Names the receipt of a start. No instance has this name: a definition's own never holds a percent sign that stands for nothing."""
    scope = within(desk.request.partition, asked.scope or f"%start:{name}")
    return ReceiptKey(desk.tenant, scope, repeated) if repeated else None


def _found_open(desk: CallContext, asked: _Said, repeated: str) -> tuple[str, str]:
    """Name and version of what is to be started. A start that was carried out before is answered, also if the version has been archived since."""
    library, wanted = desk.registry.library, checked_definition(asked.definition, asked.version)
    try:
        return library.find_open(desk.tenant, *wanted)
    except RejectedError as refusal:
        if refusal.reason != Refusal.ARCHIVED.value or not repeated:
            raise
        name, version = library.find(desk.tenant, *wanted)
        receipt = _receipt_key(desk, asked, name, checked_key(repeated, "idempotency key"))
        if receipt is None or not desk.service.operate(lambda parts: _is_known(parts, receipt), may_repeat=True):
            raise
        return name, version


def _is_known(parts: StoreParts, receipt: ReceiptKey) -> bool:
    with parts.writer().unit() as unit:
        return receipt in unit.receipts([receipt])


def check_right(desk: CallContext, name: str, version: str, *, stops: bool = False) -> None:
    """Whoever may not start a workflow learns nothing from the key of somebody who has: the receipt of a start answers before the machine does.

    With `stops`, whoever may not stop its runs is refused too.
    """
    program = desk.registry.library.program(desk.tenant, name, version)
    barred = None if program is None else start_refusal(graph_of(program), desk.request.actor)
    if program is not None and barred is None and stops:
        barred = stop_refusal(graph_of(program), desk.request.actor)
    if barred is not None:
        raise ForbiddenError(reason=barred.code, message=barred.message)


def _patient(desk: CallContext, program: Program, said: c.StartWorkflow) -> c.StartWorkflow:
    """The command with what the settings tell of the kind, and whether those whom a workflow names are looked up: in a tenant that grants roles."""
    shared = desk.service.shared
    looks_up = asks_people(program) and desk.directory.grants_roles(desk.tenant, shared.clock.now())
    patience = patience_of(program.kind, shared.settings)
    if not looks_up and not patience:
        return said
    return msgspec.structs.replace(said, looks_up=looks_up, **patience)


def check_input(data: object, saga: AnyTyped) -> None:
    """What a workflow is started with is what its author said that it takes."""
    try:
        msgspec.convert(data, settled(saga.input), strict=False, dec_hook=raised_up)
    except ValueError as error:  # Of msgspec, or of a pydantic model.
        raise PayloadError(f"the input of {saga.id!r} is not {indefinite(saga.input)}: {error}") from error


def _address_of_new_run(desk: CallContext, name: str, key: str, birth: ParentLink | None) -> Address:
    if birth is not None:
        return desk.address(name, instance=birth.run)
    if key:
        return desk.address(name, key)
    shared = desk.service.shared
    return desk.address(name, instance=InstanceId(shared.chance.new_id(shared.clock.now())))


def _milliseconds(delay: timedelta | float) -> int:
    try:
        milliseconds = round(1000 * (delay.total_seconds() if isinstance(delay, timedelta) else delay))
        timedelta(milliseconds=milliseconds)  # The longest one is too long once it was rounded.
    except (TypeError, ValueError, OverflowError):
        raise PayloadError(
            f"the delay must be a timedelta or a number of seconds that the calendar has room for, not {delay!r}"
        ) from None
    if milliseconds < 0:
        raise PayloadError(f"the delay must not be negative, not {delay!r}")
    return milliseconds
