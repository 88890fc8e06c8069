"""Documents whose data another system keeps: it asks before it writes, and tells afterwards.

What it has written although it must not is drift: the content that was approved stays what it is here, and the run waits for an operator.
"""

from __future__ import annotations

from typing import Final

import msgspec

from standfast.calls.context import CallContext
from standfast.errors import ForbiddenError, PayloadError, RejectedError
from standfast.features.documents.content.reads import FoundDocument
from standfast.features.documents.content.views import EditCheck
from standfast.features.documents.writes import may_do, objection
from standfast.kernel.decision import NOT_ALLOWED, Rejection
from standfast.machine.documents.visibility import refuse_masks
from standfast.machine.model.commands.document_commands import Mutate, TellDrift
from standfast.machine.model.queries.edit_windows import window_of
from standfast.machine.model.rejections import Refusal, refused

DRIFT: Final = frozenset(
    {
        Refusal.WORKFLOW_EDIT_LOCKED,
        Refusal.AMENDMENT_REQUIRED,
        Refusal.WORKFLOW_VERSION_DRIFT,
        Refusal.RULE_BLOCKED,
        Refusal.NOT_ALLOWED,
    }
)
"""Why a change that was made elsewhere may not have been made. Somebody who may not edit the document at all tells of no drift either."""


def made_elsewhere(command: Mutate) -> Mutate:
    """A change whose values another system has computed already, so that no handler is asked for them."""
    return msgspec.structs.replace(command, changes=command.payload)


def checked_edit(desk: CallContext, known: FoundDocument, command: Mutate) -> EditCheck:
    """Whether an edit would be taken as things stand; ForbiddenError if the caller may not make one."""
    version = known.document.version
    window = (
        "locked" if known.state.is_terminal else window_of(known.machine.routes_of(known.state), known.state).window
    )
    try:
        refuse_masks(known.parts.spec, command.payload, desk.request.actor)
    except PayloadError as error:
        if _is_barred(desk, known, command):
            raise
        refusal: Rejection | None = refused(Refusal.INVALID_DOCUMENT, str(error))
    else:
        refusal = objection(desk, known, command)
    if refusal is None:
        return EditCheck(is_allowed=True, version=version, window=window)
    if refusal.code == NOT_ALLOWED and _is_barred(desk, known, command):
        raise ForbiddenError(reason=refusal.code, message=refusal.message)
    return EditCheck(is_allowed=False, version=version, window=window, code=refusal.code, why=refusal.message)


def _is_barred(desk: CallContext, known: FoundDocument, command: Mutate) -> bool:
    """Whether somebody may not edit a document at all, whatever they change, and so is told nothing about it."""
    bare = objection(desk, known, msgspec.structs.replace(command, payload={}, changes={}))
    if bare is None or bare.code != NOT_ALLOWED:
        return False
    if known.state.is_terminal:
        return True
    barred = may_do(desk, known, command.action)  # Whoever may edit it, and not amend it, is told so.
    return barred is not None and barred.code == NOT_ALLOWED


def drift_of(command: Mutate, refusal: RejectedError) -> TellDrift:
    """What there is to tell of a change that another system has made, and that was refused here: which fields, and no value."""
    return TellDrift(
        action=command.action, fields=sorted(command.payload), refused=str(refusal.reason), reason=command.reason
    )
