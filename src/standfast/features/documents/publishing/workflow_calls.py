"""Calls of those who answer for the workflows of documents while documents go through them."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Final, cast

from standfast.calls.authorization import check_repairer, check_unbound
from standfast.calls.context import (
    CallContext,
    checked_flag,
    checked_key,
    checked_limit,
    checked_some,
    checked_text,
)
from standfast.calls.references import InstanceLike, checked_instance
from standfast.engine.concurrency.replies import Reply
from standfast.errors import PayloadError
from standfast.features.documents.content.views import DocumentMoves
from standfast.features.documents.publishing.active_version import check_in_use
from standfast.features.documents.publishing.migration import DocumentMigration, MigrationRequest
from standfast.features.documents.publishing.rejections import DESIGN, PUBLISH, permit
from standfast.features.documents.publishing.suspension import SuspensionService
from standfast.features.documents.publishing.views import WorkflowSuspension
from standfast.features.runs.reads import LARGEST_PAGE
from standfast.machine.model.commands.document_commands import SwitchWorkflow
from standfast.machine.model.queries.authorization import PAUSE, READ, RESUME

_MOST_NODES: Final = 2000
"""Names that a map of nodes has."""


class FutureWorkflows:
    """What can be done about the workflows of documents: taking one out of use, and moving documents from one to another.

    A workflow is named by the type of its documents and its version, such as `2-org`, as `DocumentView.workflow_version` and `bodies.versions` tell it.
    """

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    # -- out of use

    def suspend(self, type: str, workflow: str, reason: str) -> Reply[WorkflowSuspension]:  # noqa: A002 - the word that everybody uses for it
        """Take a bad workflow out of use: new documents begin with the one before it, and those that are under way are paused.

        Where none is before it no document begins (`WORKFLOW_SUSPENDED`). The documents are paused by batches, which the answer names, and
        stay with their workflow. Said again, it pauses those that run nevertheless. It takes `bodies:publish` and `execution:pause`.
        """

        def write() -> WorkflowSuspension:
            desk = self._permitted("take workflows out of use", PAUSE)
            return SuspensionService(desk).suspend(*_named(type, workflow), _why(reason))

        return self._desk.act(write)

    def lift(self, type: str, workflow: str, reason: str) -> Reply[WorkflowSuspension]:  # noqa: A002 - see suspend
        """Put a workflow back: new documents begin with it again if it is the one in force, and those go on that were paused with it.

        It takes `bodies:publish` and `execution:resume`. RejectedError (`NOT_SUSPENDED`) if it is in use.
        """

        def write() -> WorkflowSuspension:
            desk = self._permitted("put workflows back", RESUME)
            return SuspensionService(desk).lift(*_named(type, workflow), _why(reason))

        return self._desk.act(write)

    def suspensions(self, type: str = "") -> Reply[builtins.list[WorkflowSuspension]]:  # noqa: A002 - see suspend
        """Which workflows were taken out of use and put back, of one type or of all, by whom and why, oldest first."""

        def read() -> builtins.list[WorkflowSuspension]:
            desk = self._desk.looked_up()
            permit(desk.request.actor, "look at workflows", READ, DESIGN, PUBLISH)
            return SuspensionService(desk).listed(checked_key(type, "type", may_be_empty=True))

        return self._desk.read(read)

    # -- to another version

    def move(  # noqa: PLR0913 - all that can be said of a move, by name
        self,
        type: str,  # noqa: A002 - see suspend
        workflow: str,
        to: str,
        *,
        nodes: Mapping[str, str] | None = None,
        documents: Sequence[str] | None = None,
        reason: str,
        dry_run: bool = False,
        cursor: InstanceLike | None = None,
        limit: int = 100,
    ) -> Reply[DocumentMoves]:
        """Have documents that are under way follow another version of their workflow from where they are; all others stay pinned.

        `nodes` says what a node is called there that is called otherwise now; the others keep their names. One whose gates, or whose
        present steps and approvals, have no counterpart, or whose content does not fit, is not moved, and the answer says why. What
        waits goes on waiting as it did: questions, timers and calls that were begun stay as they are. `dry_run` tells what would be.
        The answer is a page, newest first; those that were moved are not met again. It takes `execution:repair`, and `execution:override` where
        an approval, a step ahead of one or a right is not the same there. The history of each document keeps it. RejectedError, also in a
        dry run, if the other version is out of use (`WORKFLOW_SUSPENDED`, `WORKFLOW_ARCHIVED`, `archived`).
        """

        def write() -> DocumentMoves:
            check_unbound(self._desk, "workflows")
            check_repairer(self._desk)
            desk = self._desk.looked_up()
            name, version = _named(type, workflow)
            command = SwitchWorkflow(version=checked_key(to, "other version"), nodes=_nodes(nodes), reason=_why(reason))
            asked = MigrationRequest(name, version, _ids(documents), command, checked_flag(dry_run, "`dry_run`"))
            for each in (version, command.version):
                desk.registry.library.find(desk.tenant, name, each)
            check_in_use(desk, name, command.version)
            before = None if cursor is None else checked_instance(cursor)
            return DocumentMigration(desk, asked).page(before, min(checked_limit(limit), LARGEST_PAGE))

        return self._desk.act(write)

    # -- how

    def _permitted(self, what: str, capability: str) -> CallContext:
        desk = self._desk.looked_up()
        check_unbound(desk, "workflows")
        permit(desk.request.actor, what, PUBLISH)
        permit(desk.request.actor, what, capability)
        return desk.needing(PUBLISH, capability)


def _named(type_: object, workflow: object) -> tuple[str, str]:
    return checked_key(type_, "type"), checked_key(workflow, "version of the workflow")


def _nodes(given: object) -> dict[str, str]:
    if given is None:
        return {}
    is_plain = isinstance(given, Mapping) and all(isinstance(each, str) for pair in given.items() for each in pair)
    if not is_plain or len(cast("Mapping[str, str]", given)) > _MOST_NODES:
        raise PayloadError(
            f"`nodes` gives, by the name of a node, what it is called there, for at most {_MOST_NODES} of them"
        )
    return dict(cast("Mapping[str, str]", given))


def _ids(asked: Sequence[str] | None) -> frozenset[str]:
    given = checked_some(asked, "documents", then="no document would be moved")
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise PayloadError(f"`documents` is a list of ids, not {given!r:.200}")
    return frozenset(checked_key(each, "document id") for each in given)


def _why(reason: object) -> str:
    text = checked_text(reason, "reason")
    if not text.strip():
        raise PayloadError("say why: whoever finds their documents paused reads the reason")
    return text
