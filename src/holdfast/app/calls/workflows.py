"""Calls of those who answer for the workflows of documents while documents go through them."""

from __future__ import annotations

import builtins

from holdfast.app.blueprint_refusals import DESIGN, PUBLISH, permit
from holdfast.app.blueprint_views import WorkflowSuspension
from holdfast.app.desk import Desk, checked_key, checked_text
from holdfast.app.rights import check_unbound
from holdfast.app.suspending import Suspending
from holdfast.errors import PayloadError
from holdfast.machine.runs.law import PAUSE, READ, RESUME
from holdfast.runtime.replies import Reply


class FutureWorkflows:
    """What can be done about the workflows of documents: taking one out of use, and moving documents from one to another.

    A workflow is named by the type of its documents and its version, such as `2-org`, as `DocumentView.workflow_version` and `bodies.versions` tell it.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    # -- out of use

    def suspend(self, type: str, workflow: str, reason: str) -> Reply[WorkflowSuspension]:  # noqa: A002 - the word that everybody uses for it
        """Take a bad workflow out of use: new documents begin with the one before it, and those that are under way are paused.

        Where none is before it no document begins (`WORKFLOW_SUSPENDED`). The documents are paused by batches, which the answer names, and
        stay with their workflow. Said again, it pauses those that run nevertheless. It takes `bodies:publish` and `execution:pause`.
        """

        def write() -> WorkflowSuspension:
            desk = self._permitted("take workflows out of use", PAUSE)
            return Suspending(desk).suspend(*_named(type, workflow), _why(reason))

        return self._desk.read(write)

    def lift(self, type: str, workflow: str, reason: str) -> Reply[WorkflowSuspension]:  # noqa: A002 - see suspend
        """Put a workflow back: new documents begin with it again if it is the one in force, and those go on that were paused with it.

        It takes `bodies:publish` and `execution:resume`. RejectedError (`NOT_SUSPENDED`) if it is in use.
        """

        def write() -> WorkflowSuspension:
            desk = self._permitted("put workflows back", RESUME)
            return Suspending(desk).lift(*_named(type, workflow), _why(reason))

        return self._desk.read(write)

    def suspensions(self, type: str = "") -> Reply[builtins.list[WorkflowSuspension]]:  # noqa: A002 - see suspend
        """Which workflows were taken out of use and put back, of one type or of all, by whom and why, oldest first."""

        def read() -> builtins.list[WorkflowSuspension]:
            desk = self._desk.looked_up()
            permit(desk.request.actor, "look at workflows", READ, DESIGN, PUBLISH)
            return Suspending(desk).listed(checked_key(type, "type", may_be_empty=True))

        return self._desk.read(read)

    # -- how

    def _permitted(self, what: str, capability: str) -> Desk:
        desk = self._desk.looked_up()
        check_unbound(desk, "workflows")
        permit(desk.request.actor, what, PUBLISH)
        permit(desk.request.actor, what, capability)
        return desk


def _named(type_: object, workflow: object) -> tuple[str, str]:
    return checked_key(type_, "type"), checked_key(workflow, "version of the workflow")


def _why(reason: object) -> str:
    text = checked_text(reason, "reason")
    if not text.strip():
        raise PayloadError("say why: whoever finds their documents paused reads the reason")
    return text
