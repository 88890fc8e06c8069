"""The calls of one tenant: commands, questions and repairs. Each gives a `Reply` that can be waited for or awaited."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from holdfast.app import views
from holdfast.app.deciders import DeciderCalls, Kind
from holdfast.app.references import InstanceLike
from holdfast.app.repairs import Repairs
from holdfast.app.verification import Verification, verified
from holdfast.app.workflow_views import WorkflowInstance
from holdfast.app.workflows import WorkflowCalls
from holdfast.kernel.decider import Decider
from holdfast.runtime.replies import Reply
from holdfast.store.shapes import Address

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")
F = TypeVar("F")


class Calls(DeciderCalls, WorkflowCalls, Repairs):
    """What can be asked of an engine, on behalf of one tenant and one actor."""

    @overload
    def get(self, what: InstanceLike) -> Reply[WorkflowInstance]: ...

    @overload
    def get(self, what: Kind[S, C, E, F] | str, key: str) -> Reply[views.Instance[S]]: ...

    def get(
        self, what: Kind[S, C, E, F] | InstanceLike, key: str = ""
    ) -> Reply[views.Instance[S]] | Reply[WorkflowInstance]:
        """An instance: of a workflow by its id, or of a decider by its key, with its state, history and pending work."""
        if isinstance(what, type | Decider) or (isinstance(what, str) and key):
            return self._get_decider(what, key)
        return self._get_workflow(what)

    def verify(self, what: Kind[Any, Any, Any, Any] | InstanceLike, key: str = "") -> Reply[Verification]:
        """Fold the whole history of an instance again and compare it with what is stored: its row, its state, and what a workflow shows.

        An instance of a decider may also be named by its key.
        """

        def place() -> Address:
            if isinstance(what, type | Decider) or (isinstance(what, str) and key):
                return self._address(self._program(what), key)
            return self._place(what)

        return self._look(lambda reader: verified(reader, self._registry, place()))
