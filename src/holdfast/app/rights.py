"""Who may look at runs and put work back: what no commit decides is asked here, by the same law."""

from __future__ import annotations

from holdfast.app.desk import Desk
from holdfast.errors import ForbiddenError
from holdfast.kernel.decision import Rejection
from holdfast.machine.runs.law import read_refusal, repair_refusal


def check_reader(desk: Desk, started_by: str = "", *, what: str = "look at workflows") -> None:
    """ForbiddenError unless whoever calls may look at runs, or at this one because it is his own."""
    permit(read_refusal(desk.request.actor, started_by, what=what))


def check_repairer(desk: Desk) -> None:
    """ForbiddenError unless whoever calls may repair."""
    permit(repair_refusal(desk.request.actor))


def permit(barred: Rejection | None) -> None:
    """Raise what bars somebody, if anything does."""
    if barred is not None:
        raise ForbiddenError(reason=barred.code, message=barred.message)
