"""Commands in the caller's transaction: they commit and roll back with it."""

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
    """The commands that an open transaction can give to workflows and deciders. Each is decided immediately, in order.

    A rejection raises and leaves the transaction as it was. Handlers, timers and messages begin after the commit.
    """

    def __init__(self, desk: CallContext, connection: object) -> None:
        self._inside = FutureCalls(desk.within(connection))
        self._outside = FutureCalls(desk)
        self._connection = connection
        self._has_ended = False
        self.documents = UnitDocuments(lambda: self._open.documents)
        """The calls that write documents."""

    def execute(self, decider: Kind[S, C, E, F] | str, command: C, *, command_id: str = "", comment: str = "") -> None:
        """Execute a command of a decider. `command_id` makes it idempotent, also across transactions."""
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
        """Execute a command given as plain data, by the command's name or `type` in the data; for callers without the classes."""
        calls = self._open.deciders
        calls.execute_dynamic(decider, payload, command=command, command_id=command_id, comment=comment).result()

    def submit(self, decider: Kind[S, C, E, F] | str, command: C, *, command_id: str = "", comment: str = "") -> int:
        """Accept a command, to be decided soon after the commit; return its number.

        It cannot be rejected here, because nothing is decided yet.
        """
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
        """Start a workflow and return its run, which can be used once the transaction is committed.

        See `engine.start`.
        """
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
        """Send a signal to a run. `command_id` makes it idempotent, also across transactions."""
        self._open.run(run).signal(name, payload, command_id=command_id).result()

    def end(self) -> None:
        """Close the unit: it accepts no further commands."""
        self._has_ended = True

    @property
    def _open(self) -> FutureCalls:
        if self._has_ended:
            raise ConfigurationError("the unit of work has ended with its block: begin another one with `within`")
        return self._inside
