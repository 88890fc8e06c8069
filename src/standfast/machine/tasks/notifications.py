"""Notices: what a run has people told, and what becomes of that. Nobody waits for it, unless the definition says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from standfast.errors import ExpressionError
from standfast.graph.field_visibility import Audience
from standfast.graph.model import HumanOp
from standfast.kernel.decision import Answer, Ignored
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.failures import give_up
from standfast.machine.flow.routing import finish
from standfast.machine.model.commands.run_commands import EndNotice
from standfast.machine.model.engine_tasks import FullWords, Notify, Person
from standfast.machine.model.events import NotificationDelivered, NotificationFailed
from standfast.machine.model.queries.eligibility import barred_names, question_of
from standfast.machine.model.queries.text_templates import Text, subject_of
from standfast.machine.model.state import StepState
from standfast.machine.model.task_state import Seat
from standfast.machine.tasks.entitlement import is_left_out

IN_APP = "in_app"
"""The channel of questions that name none."""
LONGEST_SUBJECT = 200
"""Characters of a subject with its holes filled in; it is one line, whatever the data holds."""
LONGEST_BODY = 100_000
"""Of a body; what goes beyond it is not told."""
_PREFIXES = {"opened": "", "handed": "", "reminded": "Reminder: ", "escalated": "Escalated: "}
OF_QUESTIONS = frozenset(_PREFIXES)
"""The occasions of notices that are about a question."""
_UNAWAITED = Ignored(reason="nobody waits for this notice")


_NOTHING = Text("", "")


class NotificationText(NamedTuple):
    """What is told."""

    subject: Text
    body: Text = _NOTHING
    html: Text = _NOTHING

    @property
    def audience(self) -> Audience:
        """Who may be told all of it."""
        return (*self.subject.audience, *self.body.audience, *self.html.audience)


def _line(text: str) -> str:
    return " ".join(text.split())[:LONGEST_SUBJECT]


def send(
    turn: DecisionBuilder,
    place: tuple[int, str],
    words: NotificationText,
    people: Sequence[Person],
    *,
    channels: Sequence[str],
    occasion: str,
    waits: bool = False,
    kept_out: Sequence[str] = (),
) -> list[str]:
    """Have each of these people told once by each of these channels; the keys of the notices. The place is a step, by number and node.

    People and roles may lead to the same person: each notice names those before it, who are not told again.
    Whoever is `kept_out` is not told by a role.
    """
    keys, full = [], _full(words)
    number, node = place
    named = sorted(people, key=lambda each: each.kind == "role")  # Whoever is named gets a notice of their own.
    for channel in dict.fromkeys(channels):
        told: list[tuple[Literal["user", "role"], str]] = []
        for person in named:
            keys.append(f"{number}/{occasion}/{channel}/{person.kind}:{person.name}")
            turn.send_out(
                Notify(
                    step=number,
                    node=node,
                    key=keys[-1],
                    channel=channel,
                    kind=person.kind,
                    to=person.name,
                    subject=_line(words.subject.shown),
                    body=words.body.shown[:LONGEST_BODY],
                    html=words.html.shown[:LONGEST_BODY],
                    waits=waits,
                    occasion=f"{number}/{occasion}",
                    told=list(told),
                    kept_out=list(kept_out) if person.kind == "role" else [],
                    full=full,
                )
            )
            told.append((person.kind, person.name))
    return keys


def _full(words: NotificationText) -> FullWords | None:
    if not words.audience:
        return None
    return FullWords(
        subject=_line(words.subject.full),
        body=words.body.full[:LONGEST_BODY],
        html=words.html.full[:LONGEST_BODY],
        audience=[list(roles) for roles in dict.fromkeys(words.audience)],
    )


def asked(turn: DecisionBuilder, step: StepState) -> list[Seat]:
    """The places from which a question wants a decision."""
    return [seat for _, seat in question_of(turn.routes, turn.state, step).asked if seat.is_free]


def tell_of_task(
    turn: DecisionBuilder, step: StepState, seats: Sequence[Seat], occasion: str, *, count: int = 1
) -> None:
    """Tell those who have these places of a question: that it is `opened`, that it was `handed` to them, that they are `reminded` of it, or that it has `escalated` to them.

    Whoever may not decide it is not told, neither by name nor by a role.
    """
    people = [seat.person for seat in seats if not is_left_out(turn, step, seat)]
    has_role = any(each.kind == "role" for each in people)
    kept_out = barred_names(turn.routes, turn.state, step) if has_role else ()
    node = turn.routes.node(step.node)
    assert isinstance(node.op, HumanOp)
    try:
        subject = subject_of(turn.routes, node, turn.names_for(turn.state.tokens[step.token], step.node))
    except ExpressionError:  # It was asked before the data changed: what its author wrote still tells what it is about.
        subject = Text(node.op.subject, node.op.subject)
    prefix = _PREFIXES[occasion]
    words = NotificationText(Text(f"{prefix}{subject.shown}", f"{prefix}{subject.full}", subject.audience))
    channels = node.op.channels or (IN_APP,)
    place = step.number, step.node
    send(turn, place, words, people, channels=channels, occasion=f"{occasion}:{count}", kept_out=kept_out)


def end_notice(turn: DecisionBuilder, command: EndNotice) -> Answer | None:
    """What became of a notice: the step that waits for it goes on, or fails; that somebody could not be told is told always."""
    step = turn.state.open.get(command.step)
    is_awaited = step is not None and command.key in step.notices
    if command.error:
        told = NotificationFailed(
            step=command.step, key=command.key, channel=command.channel, to=command.to, error=command.error
        )
        turn.emit(told)
        if step is not None and is_awaited:
            give_up(turn, step, f"{command.to!r} could not be told by {command.channel!r}: {command.error}")
    elif step is None or not is_awaited:
        return _UNAWAITED
    else:
        turn.emit(NotificationDelivered(step=command.step, key=command.key))
        if not step.notices:
            finish(turn, step)
    return None
