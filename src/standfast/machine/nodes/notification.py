"""A notice tells people something.

Entered when: a token arrives. May do: send notices, one for each recipient and channel. Left when: at once, or, if it waits, when all of
them are delivered (`ok`) or one cannot be (`error`). On compensation: nothing to undo; what was told was told.
"""

from __future__ import annotations

from typing import cast

from standfast.errors import ExpressionError
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.graph.model import Node, NotificationOp
from standfast.graph.nodes.notification import BODY, HTML, ROLE, SUBJECT, TO
from standfast.graph.values.value_checks import LONGEST_NAME
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.node_kind import Kind
from standfast.machine.flow.routing import pass_through
from standfast.machine.model.engine_tasks import Person
from standfast.machine.model.events import NotificationFailed, NotificationsSent
from standfast.machine.model.queries.text_templates import escaped, filled, text_of
from standfast.machine.model.state import Data, Token
from standfast.machine.tasks.notifications import NotificationText, send

_STEP = "step"
"""The occasion of a notice that is a step of its own."""


class NoticeKind(Kind):
    """Tells people something."""

    wait_kind = "notice"

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Send it. What cannot be put into words fails a step that waits, and is told where nobody does."""
        op = node.op
        assert isinstance(op, NotificationOp)
        try:
            names = turn.names_for(token, node.id)
            words, people = _words(turn, node, names), _people(turn, node, names)
        except ExpressionError as error:
            self._unspeakable(turn, token, node, str(error))
            return
        if not op.wait:
            number = turn.next_step
            pass_through(turn, token, node)
            send(turn, (number, node.id), words, people, channels=op.channels, occasion=_STEP)
            return
        step = turn.open_step(token, node)
        keys = send(turn, (step.number, node.id), words, people, channels=op.channels, occasion=_STEP, waits=True)
        turn.emit(NotificationsSent(step=step.number, keys=keys))

    def _unspeakable(self, turn: DecisionBuilder, token: Token, node: Node, error: str) -> None:
        op = node.op
        assert isinstance(op, NotificationOp)
        if op.wait:
            self.fail(turn, token, node, error)
            return
        number, channel = turn.next_step, ", ".join(op.channels)
        pass_through(turn, token, node)
        to = ", ".join(op.to)
        turn.emit(NotificationFailed(step=number, key=f"{number}/{_STEP}", channel=channel, to=to, error=error))


def _words(turn: DecisionBuilder, node: Node, names: Data) -> NotificationText:
    op, text = node.op, turn.routes.text
    assert isinstance(op, NotificationOp)
    guarded = turn.routes.guarded
    subject = text_of(text(node.id, SUBJECT), guarded(node.id, SUBJECT), op.subject, names)
    body = text_of(text(node.id, BODY), guarded(node.id, BODY), op.body, names)
    if not op.html:
        return NotificationText(subject, body)
    safe = cast("Data", escaped(names))
    return NotificationText(subject, body, text_of(text(node.id, HTML), guarded(node.id, HTML), op.html, safe))


def _people(turn: DecisionBuilder, node: Node, names: Data) -> list[Person]:
    """The recipients, each once. Whether one is a role is said by the author, never by the data."""
    op = node.op
    assert isinstance(op, NotificationOp)
    found = []
    for place, written in enumerate(op.to):
        is_role = written.startswith(ROLE)
        name = filled(turn.routes.text(node.id, f"{TO}{place}"), written.removeprefix(ROLE), names).strip()
        if not 0 < len(name) <= LONGEST_NAME:
            told = f"the recipient {written!r} of {node.id!r} has {len(name)} characters; from 1 to {LONGEST_NAME} are possible"
            raise ExpressionError(told, reason=ExpressionErrorCode.MISSING_VALUE, source=written)
        found.append(Person(kind="role" if is_role else "user", name=name))
    return list(dict.fromkeys(found))
