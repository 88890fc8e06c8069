"""The calls of one tenant: commands, questions and repairs. Each gives a `Reply` that can be waited for or awaited."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import TypeVar, cast

from holdfast.app import views
from holdfast.app.registry import Registry
from holdfast.errors import HoldfastError, NotFoundError, PayloadError, StoppedError
from holdfast.kernel.charts import StateMachineDefinition, observed_machine
from holdfast.kernel.decider import Decider
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.program import Program
from holdfast.runtime.checking import check_key, check_text
from holdfast.runtime.clockwork import receipt_key
from holdfast.runtime.replies import Reply
from holdfast.runtime.service import Service
from holdfast.runtime.submissions import Outcome
from holdfast.runtime.tracking import Tracked
from holdfast.store.port import Keeper
from holdfast.store.shapes import (
    Address,
    DeadLetter,
    Header,
    InstanceQuery,
    Loaded,
    Observation,
    StoredMessage,
    Transition,
)

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")
F = TypeVar("F")
T = TypeVar("T")

Kind = type[Decider[S, C, E, F]] | Decider[S, C, E, F]
"""A decider class, or an object of one."""


class Calls:
    """What can be asked of an engine, on behalf of one tenant and one actor."""

    def __init__(
        self, service: Service, registry: Registry, readers: Executor | None, *, tenant: str, actor: str
    ) -> None:
        self._service = service
        self._registry = registry
        self._readers = readers
        self.tenant = _checked(tenant, "tenant")
        self.actor = _checked(actor, "actor")
        self._reader = service.store.reader(tenant)

    # -- commands

    def execute(self, decider: Kind[S, C, E, F], command: C, *, command_id: str = "", comment: str = "") -> Reply[None]:
        """Have a command carried out. When the reply is there, what it led to is stored.

        Business outcomes are events: a call for an instance that has ended, or a command that the decider turns down with an event,
        is a success. `command_id` makes the call idempotent.
        """
        program = self._registry.get(decider.type)
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
            program = self._registry.get(decider)
            fields = dict(_plain(payload))
            name = command or str(fields.pop("type", ""))
            value = program.commands.from_plain(name, fields)
        except HoldfastError as error:
            return _failed(error)
        return self._execute(program, value, command_id=command_id, comment=comment)

    def submit(
        self,
        decider: Kind[S, C, E, F],
        command: C,
        *,
        command_id: str = "",
        comment: str = "",
        connection: object = None,
    ) -> Reply[int]:
        """Accept a command now and have it carried out soon, in the order of acceptance for each instance; its number.

        With `connection`, an open connection to the same database, it is accepted in the caller's own transaction.
        """
        try:
            message = self._message(self._registry.get(decider.type), command, command_id=command_id, comment=comment)
        except HoldfastError as error:
            return _failed(error)
        if connection is None:
            return self._read(lambda: self._service.accept(message))
        return _answered(Reply(), lambda: self._service.accept(message, connection))  # On the connection's own thread.

    # -- questions

    def load_state(self, decider: Kind[S, C, E, F], key: str) -> Reply[S]:
        """The state of an instance: the fold of its events."""
        program = self._registry.get(decider.type)
        return self._read(lambda: cast("S", self._tracked(program, key).state))

    def load_events(self, decider: Kind[S, C, E, F], key: str) -> Reply[list[views.Recorded]]:
        """The history of an instance, in order."""
        program = self._registry.get(decider.type)
        return self._read(lambda: self._history(program, self._loaded(program, key).header))

    def get(self, decider: Kind[S, C, E, F], key: str) -> Reply[views.Instance[S]]:
        """An instance with its state, its history and its pending work."""
        program = self._registry.get(decider.type)

        def read() -> views.Instance[S]:
            tracked = self._tracked(program, key)
            header = tracked.header
            work = self._reader.work(header.id)
            return views.instance(header, cast("S", tracked.state), self._history(program, header), work)

        return self._read(read)

    def instances(self, query: InstanceQuery | None = None) -> Reply[list[Header]]:
        """A page of instances, newest first; give the last id as `before` for the next page."""
        return self._read(lambda: self._reader.instances(query or InstanceQuery()))

    def observations(self, decider: str = "", instance: InstanceId | None = None) -> Reply[list[Observation]]:
        """The inputs that were observed, if the engine is told to observe them."""
        return self._read(lambda: self._reader.observations(definition=decider, instance=instance))

    def transitions(self, decider: str) -> Reply[list[Transition]]:
        """The moves that were observed, counted."""
        return self._read(lambda: self._reader.transitions(decider))

    def observed_machine(self, decider: str) -> Reply[StateMachineDefinition]:
        """The state machine that was observed: only paths that were really taken."""
        return self.transitions(decider).then(
            lambda moves: observed_machine(decider, [(m.from_status, m.input, m.to_status, m.count) for m in moves])
        )

    # -- repairs

    def dead_letters(
        self, *, instance: InstanceId | None = None, after: int = 0, limit: int = 100
    ) -> Reply[list[DeadLetter]]:
        """What gave up, oldest first; give the last id as `after` for the next page."""
        return self._read(lambda: self._reader.dead_letters(instance=instance, after=after, limit=limit))

    def requeue(self, letter: int) -> Reply[None]:
        """Put a dead effect, timer or message back to work, with its attempts reset."""

        def put_back() -> None:
            found = self._keep(lambda keeper: keeper.dead_letter(letter, tenant=self.tenant))
            now = self._service.shared.clock.now()
            if found is None or not self._keep(lambda keeper: keeper.requeue(found, now=now)):
                raise NotFoundError("dead letter", letter)
            self._service.hint()

        return self._read(put_back)

    def discard(self, letter: int) -> Reply[None]:
        """Forget a dead letter."""

        def forget() -> None:
            if not self._keep(lambda keeper: keeper.discard(letter, tenant=self.tenant)):
                raise NotFoundError("dead letter", letter)

        return self._read(forget)

    def delete(self, instance: InstanceId) -> Reply[None]:
        """Delete a finished instance, whole. The only deletion there is."""

        def remove() -> None:
            if not self._keep(lambda keeper: keeper.delete(instance, tenant=self.tenant)):
                raise NotFoundError("finished instance", instance)

        return self._read(remove)

    # -- how

    def _execute(self, program: Program, command: object, *, command_id: str, comment: str) -> Reply[None]:
        try:
            program.commands.encode(
                command
            )  # Refuses strangers, values that cannot be stored and values that are too large.
            address = self._address(program, program.key_of(command))
            receipt = receipt_key(address, _checked(command_id, "command id", may_be_empty=True))
            check_text(comment, "comment")
        except HoldfastError as error:
            return _failed(error)
        reply: Reply[None] = Reply()

        def settled(_outcome: Outcome | None, error: BaseException | None) -> None:
            if error is None:
                reply.set_result(None)
            else:
                reply.set_error(error)

        self._service.execute(address, command, actor=self.actor, comment=comment, receipt=receipt, settled=settled)
        return reply

    def _message(self, program: Program, command: object, *, command_id: str, comment: str) -> StoredMessage:
        encoded = program.commands.encode(command)
        check_text(comment, "comment")
        return StoredMessage(
            address=self._address(program, program.key_of(command)),
            type=encoded.type,
            version=encoded.version,
            data=encoded.data,
            command_id=_checked(command_id, "command id", may_be_empty=True),
            actor=self.actor,
            comment=comment,
        )

    def _address(self, program: Program, key: str) -> Address:
        return Address(tenant=self.tenant, definition=program.type, key=_checked(key, "key"))

    def _loaded(self, program: Program, key: str, *, whole: bool = False) -> Loaded:
        loaded = self._reader.load(self._address(program, key), whole=whole)
        if loaded is None:
            raise NotFoundError(program.type, key)
        return loaded

    def _tracked(self, program: Program, key: str) -> Tracked:
        loaded = self._loaded(program, key)
        if loaded.snapshot is not None and loaded.snapshot.state_version != program.state_version:
            loaded = self._loaded(program, key, whole=True)
        try:
            return Tracked.of(loaded, program)
        except PayloadError:  # A snapshot that cannot be read is worth nothing: the events tell.
            return Tracked.of(self._loaded(program, key, whole=True), program)

    def _history(self, program: Program, header: Header) -> list[views.Recorded]:
        return [views.recorded(event, program) for event in self._reader.events(header.id)]

    def _keep(self, work: Callable[[Keeper], T]) -> T:
        return self._service.operate(lambda parts: work(parts.keeper()))

    def _read(self, question: Callable[[], T]) -> Reply[T]:
        """Ask the database: on a thread for reading, or here if the engine has none."""
        reply: Reply[T] = Reply()
        if self._readers is None:
            return _answered(reply, question)
        try:
            self._readers.submit(_answered, reply, question)
        except RuntimeError:  # What the pool says once it is shut down.
            reply.set_error(StoppedError("the engine is stopped"))
        return reply


def _answered(reply: Reply[T], question: Callable[[], T]) -> Reply[T]:
    try:
        reply.set_result(question())
    except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
        reply.set_error(error)
    return reply


def _failed(error: HoldfastError) -> Reply[T]:
    reply: Reply[T] = Reply()
    reply.set_error(error)
    return reply


def _plain(payload: Mapping[str, object] | bytes | str) -> Mapping[str, object]:
    if isinstance(payload, Mapping):
        return payload
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise PayloadError(f"the payload is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise PayloadError(f"the payload is a JSON {type(value).__name__}; it must be an object")
    return value


def _checked(given: object, what: str, *, may_be_empty: bool = False) -> str:
    """Text that every database can keep as a key."""
    text = given if isinstance(given, str) else ""
    if not text and not may_be_empty:
        raise PayloadError(f"the {what} must be non-empty text, not {given!r}")
    check_key(text, what)
    return text
