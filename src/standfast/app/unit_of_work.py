"""Commands in a transaction of the caller's own: they become true when he commits, and never were when he rolls back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar

from standfast.app.api.namespaces import FutureCalls
from standfast.app.api.sync import Run
from standfast.calls.context import CallContext
from standfast.calls.references import DefinitionLike, InstanceLike
from standfast.errors import ConfigurationError
from standfast.features.deciders.calls import Kind
from standfast.features.documents.unit_of_work import UnitDocuments

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")
F = TypeVar("F")


class UnitOfWork:
    """What can be told to workflows and deciders in an open transaction. Each command is carried out when it is given, one after the other.

    A refusal raises and leaves the transaction as it was. Handlers, timers and messages that follow begin once it is committed.
    """

    def __init__(self, desk: CallContext, connection: object) -> None:
        self._inside = FutureCalls(desk.within(connection))
        self._outside = FutureCalls(desk)
        self._connection = connection
        self._has_ended = False
        self.documents = UnitDocuments(lambda: self._open.documents)
        """The calls that write documents."""

    def execute(self, decider: Kind[S, C, E, F] | str, command: C, *, command_id: str = "", comment: str = "") -> None:
        """Have a command of a decider carried out. `command_id` makes it idempotent, also across transactions."""
        self._open.deciders.execute(decider, command, command_id=command_id, comment=comment).result()

    def execute_dynamic(
        self,
        decider: str,
        payload: Mapping[str, object] | bytes | str,
        *,
        command: str = "",
        command_id: str = "",
        comment: str = "",
    ) -> None:
        """Like `execute`, for callers without the classes: plain data, and the name of the command, given or as `type` in the data."""
        calls = self._open.deciders
        calls.execute_dynamic(decider, payload, command=command, command_id=command_id, comment=comment).result()

    def submit(self, decider: Kind[S, C, E, F] | str, command: C, *, command_id: str = "", comment: str = "") -> int:
        """Accept a command, to be carried out soon after the commit; its number. Nothing is decided yet, so nothing can be refused."""
        calls = self._open.deciders
        accepted = calls.submit(decider, command, command_id=command_id, comment=comment, connection=self._connection)
        return accepted.result()

    def start(
        self,
        definition: DefinitionLike,
        input: object = None,  # noqa: A002 - the word that everybody uses for it
        *,
        version: str | int = "",
        key: str = "",
        idempotency_key: str = "",
        delay: timedelta | float = 0,
        comment: str = "",
    ) -> Run[Any]:
        """Start a workflow; its run, which can be asked and waited for once the transaction is committed. See `engine.start`."""
        begun = self._open.start(
            definition,
            input,
            version=version,
            key=key,
            idempotency_key=idempotency_key,
            delay=delay,
            comment=comment,
        )
        return Run(self._outside.run(begun.result()))

    def signal(self, run: InstanceLike, name: str, payload: object = None, *, command_id: str = "") -> None:
        """Tell a run that something happened. `command_id` makes it idempotent, also across transactions."""
        self._open.run(run).signal(name, payload, command_id=command_id).result()

    def end(self) -> None:
        """Nothing more is told here."""
        self._has_ended = True

    @property
    def _open(self) -> FutureCalls:
        if self._has_ended:
            raise ConfigurationError("the unit of work has ended with its block: begin another one with `within`")
        return self._inside
