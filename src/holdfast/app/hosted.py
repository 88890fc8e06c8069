"""Documents whose data another system keeps: it asks before it writes, and tells afterwards.

What it has written although it must not is drift: the content that was approved stays what it is here, and the run waits for an operator.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from holdfast.app.desk import Desk, nothing
from holdfast.app.document_views import DocumentView, EditCheck
from holdfast.app.document_writing import objection, shown
from holdfast.app.documents import Found, found
from holdfast.app.visibility import unshown
from holdfast.errors import ForbiddenError, RejectedError
from holdfast.kernel.actor import SYSTEM, RequestContext
from holdfast.kernel.decision import NOT_ALLOWED
from holdfast.machine.runs.commands import PauseWorkflow
from holdfast.machine.runs.document_commands import Mutate
from holdfast.machine.runs.refusals import Refusal
from holdfast.machine.runs.windows import window_of

DRIFT: Final = frozenset(
    {Refusal.WORKFLOW_EDIT_LOCKED, Refusal.AMENDMENT_REQUIRED, Refusal.WORKFLOW_VERSION_DRIFT, Refusal.RULE_BLOCKED}
)
"""Why a change that was made elsewhere may not have been made."""


def made_elsewhere(command: Mutate) -> Mutate:
    """A change whose values another system has computed already, so that no handler is asked for them."""
    return msgspec.structs.replace(command, changes=command.payload)


def checked_edit(desk: Desk, known: Found, command: Mutate) -> EditCheck:
    """Whether an edit would be taken as things stand; ForbiddenError if the caller may not make one."""
    version = known.document.version
    window = (
        "locked" if known.state.is_terminal else window_of(known.machine.routes_of(known.state), known.state).window
    )
    refusal = objection(desk, known, command)
    if refusal is None:
        return EditCheck(is_allowed=True, version=version, window=window)
    if refusal.code == NOT_ALLOWED:  # Who may not edit it at all is told nothing about it.
        raise ForbiddenError(reason=refusal.code, message=refusal.message)
    return EditCheck(is_allowed=False, version=version, window=window, code=refusal.code, why=refusal.message)


def drifted(desk: Desk, reference: tuple[str, str], command: Mutate, refusal: RejectedError) -> DocumentView:
    """Have the run of a document wait whose data was changed behind its back; the document as it is here."""
    request = desk.request
    engine = desk.acting(
        RequestContext(tenant=request.tenant, partition=request.partition, actor=SYSTEM, trace=request.trace)
    )
    with desk.reader.look() as reader:
        known = found(desk, reader, *reference, is_own=True)
    fields = ", ".join(sorted(set(command.payload) - unshown(known.parts.spec, request.actor))) or "nothing"
    why = (
        f"drift: {request.actor.id!r} tells that {fields} changed elsewhere, which was refused here ({refusal.reason})"
    )
    with suppress(RejectedError):  # It waits already, or has ended.
        engine.command(
            engine.address(instance=known.header.id), PauseWorkflow(reason=why), nothing, comment=why, may_create=False
        ).result()
    with desk.reader.look() as reader:
        return shown(desk, reader, *reference)
