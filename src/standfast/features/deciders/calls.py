"""Calls of deciders: commands, and questions about their instances."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from standfast.calls.authorization import check_reader
from standfast.calls.context import (
    CallContext,
    answered,
    checked_key,
    checked_span,
    checked_text,
    failed,
    nothing,
)
from standfast.calls.operator_views import Observation, Transition, shown
from standfast.calls.references import InstanceLike, checked_decider, checked_instance
from standfast.engine.commit.cache import CachedInstance
from standfast.engine.commit.submission import receipt_key
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ForbiddenError, NotFoundError, PayloadError, StandfastError
from standfast.features.deciders.verification import Verification, verified
from standfast.features.deciders.views import Instance, Recorded, instance_view, recorded
from standfast.graph.diagrams.state_charts import StateMachineDefinition, observed_machine
from standfast.kernel.actor import request_bytes
from standfast.kernel.codec.message_types import SYSTEM_PREFIX
from standfast.kernel.codec.unique_keys import distinct
from standfast.kernel.decider import Decider
from standfast.kernel.decision import NOT_ALLOWED
from standfast.kernel.program import Program
from standfast.machine.machine import GraphMachine
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import Address, InstanceHeader, InstanceQuery, StoredMessage

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")
F = TypeVar("F")

Kind = type[Decider[S, C, E, F]] | Decider[S, C, E, F]
"""A decider class, or an object of one. Every call takes its type as text too; what comes back is then of no known type."""

AnyKind = Kind[Any, Any, Any, Any]


class FutureDeciders:
    """What can be asked of deciders: their instances are named by key.

    To look at workflows so, and at what the engine keeps for itself, takes the capability `execution:read`, as elsewhere.
    """

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    # -- commands

    def execute(
        self, decider: Kind[S, C, E, F] | str, command: C, *, command_id: str = "", comment: str = ""
    ) -> Reply[None]:
        """Have a command carried out. When the reply is there, what it led to is stored.

        Business outcomes are events: a call for an instance that has ended, or a command that the decider turns down with an event,
        is a success. `command_id` makes the call idempotent.
        """
        try:
            program = self._commanded(decider)
        except StandfastError as error:
            return failed(error)
        return self._execute(program, command, command_id=command_id, comment=comment)

    def execute_dynamic(
        self,
        decider: str,
        payload: Mapping[str, object] | bytes | str,
        *,
        command: str = "",
        command_id: str = "",
        comment: str = "",
    ) -> Reply[None]:
        """Like `execute`, for callers without the classes: plain data, and the name of the command, given or as `type` in the data."""
        try:
            program = self._commanded(decider)
            fields = dict(_plain(payload))
            name = command or str(fields.pop("type", ""))
            value = program.commands.from_plain(name, fields)
        except StandfastError as error:
            return failed(error)
        return self._execute(program, value, command_id=command_id, comment=comment)

    def submit(
        self,
        decider: Kind[S, C, E, F] | str,
        command: C,
        *,
        command_id: str = "",
        comment: str = "",
        connection: object = None,
    ) -> Reply[int]:
        """Accept a command now and have it carried out soon, in the order of acceptance for each instance; its number.

        With `connection`, an open connection to the same database, it is accepted in the caller's own transaction.
        """
        if self._desk.must_ask and connection is None:  # When the message is decided nobody asks the host's directory.
            return self._desk.vouched_for(
                lambda desk: FutureDeciders(desk).submit(decider, command, command_id=command_id, comment=comment)
            )
        try:
            message = self._message(self._commanded(decider), command, command_id=command_id, comment=comment)
        except StandfastError as error:
            return failed(error)
        if connection is not None:  # On the connection's own thread.
            return answered(Reply(), lambda: self._desk.service.accept_within(connection, message))
        reply: Reply[int] = self._desk.reply()
        self._desk.service.accept(message, reply)
        return reply

    # -- questions

    def state(self, decider: Kind[S, C, E, F] | str, key: str) -> Reply[S]:
        """The state of an instance: the fold of its events."""
        return self._desk.look(lambda reader: cast("S", self._tracked(reader, self._looked_at(decider), key).state))

    def history(
        self, decider: Kind[S, C, E, F] | str, key: str, *, after: int = 0, limit: int | None = None
    ) -> Reply[list[Recorded]]:
        """The history of an instance, in order; give the last sequence as `after` for the next page.

        Nothing is folded: a history that `evolve` fails on can be read all the same, and an event that cannot be decoded is shown
        as it is stored.
        """

        def read(reader: TenantReader) -> list[Recorded]:
            start, most = checked_span(after, limit)
            program = self._looked_at(decider)
            where = self._address(program, key)
            query = InstanceQuery(definition=where.definition, key=where.key, partition=where.partition, limit=1)
            found = reader.instances(query)
            if not found:
                raise NotFoundError(program.type, key)
            return _history(reader, program, found[0], after=start, limit=most)

        return self._desk.look(read)

    def get(self, decider: Kind[S, C, E, F] | str, key: str) -> Reply[Instance[S]]:
        """An instance with its state, its history and its pending work."""

        def read(reader: TenantReader) -> Instance[S]:
            program = self._looked_at(decider)
            tracked = self._tracked(reader, program, key)
            header = tracked.header
            history, work = _history(reader, program, header), reader.work(header.id)
            return instance_view(header, cast("S", tracked.state), history, work)

        return self._desk.look(read)

    def observations(
        self, decider: Kind[S, C, E, F] | str = "", instance: InstanceLike | None = None
    ) -> Reply[list[Observation]]:
        """The inputs that were observed, if the engine is told to observe them."""

        def read() -> list[Observation]:
            identity = None if instance is None else checked_instance(instance)
            found = self._desk.reader.observations(definition=self._observed(decider), instance=identity)
            return [shown(each, Observation) for each in found]

        return self._desk.read(read)

    def transitions(self, decider: Kind[S, C, E, F] | str) -> Reply[list[Transition]]:
        """The moves that were observed, counted."""
        return self._desk.read(lambda: self._transitions(decider))

    def observed_machine(self, decider: Kind[S, C, E, F] | str) -> Reply[StateMachineDefinition]:
        """The state machine that was observed: only paths that were really taken."""

        def drawn() -> StateMachineDefinition:
            moves = self._transitions(decider)
            taken = [(m.from_status, m.input, m.to_status, m.count) for m in moves]
            return observed_machine(checked_decider(decider), taken)

        return self._desk.read(drawn)

    def verify(self, decider: AnyKind | str, key: str) -> Reply[Verification]:
        """Fold the whole history of an instance again and compare it with what is stored: its row and its state."""

        def prove(reader: TenantReader) -> Verification:
            return verified(reader, self._desk.registry, self._address(self._looked_at(decider), key))

        return self._desk.look(prove)

    # -- how

    def _transitions(self, decider: object) -> list[Transition]:
        return [shown(each, Transition) for each in self._desk.reader.transitions(self._observed(decider))]

    def _observed(self, decider: object) -> str:
        """The name of a decider whose inputs the caller may look at; without one, those of workflows are among them."""
        name = checked_decider(decider)
        self._check_reader(name)
        return name

    def _program(self, decider: object) -> Program:
        return self._desk.registry.get(self._desk.tenant, checked_decider(decider))

    def _commanded(self, decider: object) -> Program:
        """A decider that the caller may give commands; those of the engine's own get them from the calls that they are there for."""
        program = self._program(decider)
        if program.type.startswith(SYSTEM_PREFIX) and self._desk.request.actor.kind != "system":
            told = f"{program.type!r} is a decider of the engine's own; use the calls of what it is there for"
            raise ForbiddenError(reason=NOT_ALLOWED, message=told)
        return program

    def _looked_at(self, decider: object) -> Program:
        """A decider whose instances the caller may look at; of documents not everybody sees everything."""
        program = self._program(decider)
        machine = program.decider
        if isinstance(machine, GraphMachine) and machine.graph.document and self._desk.request.actor.kind != "system":
            told = f"{program.type!r} are documents, of which not everything is for everybody's eyes; read them with `documents`"
            raise ForbiddenError(reason=NOT_ALLOWED, message=told)
        self._check_reader(program.type)
        return program

    def _check_reader(self, name: str) -> None:
        """What is no decider of the application is looked at here by those alone who may do so by the calls of its own."""
        if name.startswith(SYSTEM_PREFIX) or not self._desk.registry.is_decider(name):
            check_reader(self._desk)

    def _execute(self, program: Program, command: object, *, command_id: str, comment: str) -> Reply[None]:
        try:
            # Refuses strangers, and values that cannot be stored, would come back as others, or are too large.
            own = program.commands.own(command)
            address = self._address(program, program.key_of(own))
            receipt = receipt_key(address, checked_key(command_id, "command id", may_be_empty=True))
        except StandfastError as error:
            return failed(error)
        return self._desk.command(address, own, nothing, comment=comment, receipt=receipt)

    def _message(self, program: Program, command: object, *, command_id: str, comment: str) -> StoredMessage:
        encoded = program.commands.encode(command)
        checked_text(comment, "comment")
        return StoredMessage(
            address=self._address(program, program.key_of(command)),
            language=program.language,
            type=encoded.type,
            version=encoded.version,
            data=encoded.data,
            command_id=checked_key(command_id, "command id", may_be_empty=True),
            actor=self._desk.request.actor.id,
            comment=comment or self._desk.request.reason,
            context=self._context(),
        )

    def _context(self) -> bytes | None:
        """For whom a message is decided later."""
        request, companions = self._desk.asked, self._desk.service.shared.telemetry.companions
        return request_bytes(request, trace=companions.caller(request.trace))

    def _address(self, program: Program, key: str) -> Address:
        return self._desk.address(program.type, checked_key(key, "key"))

    def _tracked(self, reader: TenantReader, program: Program, key: str) -> CachedInstance:
        tracked = self._desk.folded(reader, self._address(program, key))
        if tracked is None:
            raise NotFoundError(program.type, key)
        return tracked


def _history(
    reader: TenantReader, program: Program, header: InstanceHeader, *, after: int = 0, limit: int | None = None
) -> list[Recorded]:
    return [recorded(event, program) for event in reader.events(header.id, after=after, limit=limit)]


def _plain(payload: Mapping[str, object] | bytes | str) -> Mapping[str, object]:
    if isinstance(payload, Mapping):
        return payload
    try:
        value = json.loads(payload, object_pairs_hook=distinct)
    except (ValueError, RecursionError) as error:
        raise PayloadError(f"the payload is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise PayloadError(f"the payload is a JSON {type(value).__name__}; it must be an object")
    return value
