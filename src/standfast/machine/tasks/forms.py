"""Answers to questions that have a form: defaults are filled in, and what does not fit is refused."""

from __future__ import annotations

from standfast.graph.index import GraphIndex
from standfast.graph.model import HumanOp
from standfast.graph.values.forms import faults_told
from standfast.kernel.decision import Rejection
from standfast.machine.model.rejections import Refusal, refused


def filled_in(routes: GraphIndex, node: str, outcome: str, given: object) -> tuple[object, Rejection | None]:
    """What comes with an answer, with the defaults of the form; and why it cannot be taken, with all faults at once."""
    op, form = routes.node(node).op, routes.form(node)
    assert isinstance(op, HumanOp)
    if form is None or not op.needs_form(outcome):
        return given, None
    whole = form.filled(given)
    faults = form.faults(whole)
    return whole, refused(Refusal.INVALID_FORM, faults_told(node, faults)) if faults else None
