"""Moving documents from one version of their workflow to another: each in a command of its own, which its history keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from standfast.calls.context import CallContext, nothing
from standfast.engine.commit.cache import CachedInstance
from standfast.errors import RejectedError
from standfast.features.documents.content.views import DocumentMove, DocumentMoves
from standfast.kernel.decision import Rejection
from standfast.kernel.ids import InstanceId
from standfast.kernel.moment import Moment
from standfast.machine.documents.migration import live_nodes
from standfast.machine.machine import GraphMachine
from standfast.machine.model.commands.document_commands import SwitchWorkflow
from standfast.machine.model.state import RunState
from standfast.store.records.instances import InstanceHeader, InstanceQuery

_OPEN: Final = ("running", "paused")


class MigrationRequest(NamedTuple):
    """Which documents are to follow which version."""

    type: str
    version: str
    documents: frozenset[str]
    """Their ids; all if it is empty."""
    command: SwitchWorkflow
    is_dry: bool


class DocumentMigration:
    """Moves documents of one tenant."""

    def __init__(self, desk: CallContext, asked: MigrationRequest) -> None:
        self._desk = desk
        self._asked = asked

    def page(self, before: InstanceId | None, limit: int) -> DocumentMoves:
        """Look at so many documents that are under way, and move those that can be, unless it is a dry run."""
        query = InstanceQuery(definition=self._asked.type, statuses=_OPEN, before=before, limit=limit)
        headers = self._desk.reader.instances(query)
        items = [self._moved(each) for each in self._found(headers)]
        return DocumentMoves(items=items, next=headers[-1].id if len(headers) == limit else None)

    def _found(self, headers: list[InstanceHeader]) -> Iterator[CachedInstance]:
        """Those of them that are meant and follow the version."""
        for header in headers:
            if self._asked.documents and header.key not in self._asked.documents:
                continue
            with self._desk.reader.look() as reader:
                tracked = self._desk.folded(reader, self._desk.address(instance=header.id))
            if tracked is not None and _followed(tracked) == self._asked.version:
                yield tracked

    def _moved(self, tracked: CachedInstance) -> DocumentMove:
        header, state = tracked.header, tracked.state
        assert isinstance(state, RunState)
        assert state.document is not None
        places, status = live_nodes(state), state.document.status
        problem = self._judged(tracked, state) if self._asked.is_dry else self._carried_out(header)
        return DocumentMove(
            type=self._asked.type,
            id=header.key,
            instance=header.id,
            status=status,
            places=places,
            workflow_version=self._asked.version,
            to=self._asked.command.version,
            is_moved=not problem,
            problem=problem,
        )

    def _judged(self, tracked: CachedInstance, state: RunState) -> str:
        """Why it could not; the state is a copy of this call's own."""
        header = tracked.header
        moment = Moment(
            now=self._desk.service.shared.clock.now(),
            instance=header.id,
            key=header.key,
            tenant=header.tenant,
            partition=header.partition,
            actor=self._desk.request.actor,
            version=header.version,
            facts=self._desk.facts(header),
        )
        assert isinstance(tracked.program.decider, GraphMachine)
        answer = tracked.program.decider.decide(state, self._asked.command, moment)
        return answer.message if isinstance(answer, Rejection) else ""

    def _carried_out(self, header: InstanceHeader) -> str:
        command = self._asked.command
        address = self._desk.address(instance=header.id)
        try:
            self._desk.command(address, command, nothing, comment=command.reason, may_create=False).result()
        except RejectedError as error:
            return str(error)
        return ""


def _followed(tracked: CachedInstance) -> str:
    state = tracked.state
    if not isinstance(state, RunState) or state.document is None:
        return ""
    return tracked.header.definition_version if state.workflow is None else state.workflow.version
