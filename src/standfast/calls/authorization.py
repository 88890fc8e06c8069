"""Who may look at runs and put work back: what no commit decides is asked here, by the same law."""

from __future__ import annotations

from collections.abc import Callable

from standfast.calls.context import CallContext
from standfast.errors import ForbiddenError
from standfast.kernel.actor import Actor
from standfast.kernel.decision import NOT_ALLOWED, Rejection
from standfast.machine.model.queries.authorization import read_refusal, repair_refusal


def check_reader(desk: CallContext, started_by: str = "", *, what: str = "look at workflows") -> None:
    """ForbiddenError unless whoever calls may look at runs, or at this one because it is his own."""
    permit(_barred(desk, lambda actor: read_refusal(actor, started_by, what=what)))


def check_repairer(desk: CallContext) -> None:
    """ForbiddenError unless whoever calls may repair."""
    permit(_barred(desk, repair_refusal))


def check_unbound(desk: CallContext, what: str) -> None:
    """ForbiddenError if the request names a partition: what is of the whole tenant tells of the others, or touches them."""
    if desk.request.partition:
        told = f"{what} are those of the whole tenant, and these calls are bound to the partition {desk.request.partition!r}"
        raise ForbiddenError(reason=NOT_ALLOWED, message=f"{told}; ask without a partition")


def _barred(desk: CallContext, refusal: Callable[[Actor], Rejection | None]) -> Rejection | None:
    """What bars the actor of a desk; the directory is asked only if something does."""
    barred = refusal(desk.request.actor)
    return refusal(desk.looked_up().request.actor) if barred is not None and desk.may_hold_more else barred


def permit(barred: Rejection | None) -> None:
    """Raise what bars somebody, if anything does."""
    if barred is not None:
        raise ForbiddenError(reason=barred.code, message=barred.message)
