"""Waiting for published events.

Entered when: a token arrives. May do: send the engine to look for events that came early. Left when: enough events are there, or an answer is (`ok`),
or they did not come in time (`timeout`); at once, as a failure, if there is no key to wait for. On compensation: nothing to undo.

Whoever comes second sees the other: an event that is published later finds the row of the wait, and the errand, which runs after the
commit that wrote that row, finds an event that was published before. A run that meets an event both ways takes it once.

An event counts if its publisher may bring it when it is taken. One that does not count hides none behind it: the step looks on. An event
that was published before the time of the step was over counts, also if the timer is handled first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from standfast.errors import ExpressionError
from standfast.graph.index import EVENT, GraphIndex
from standfast.graph.model import OK, Awaited, Node, WaitEventsOp
from standfast.graph.values.external_reads import ORG, RELATED
from standfast.kernel.actor import needed_names
from standfast.kernel.decision import Answer, Ignored, Message, Rejection
from standfast.kernel.facts import RightsFact, rights_fact
from standfast.kernel.row_kinds.steps import SubscriptionClosed, SubscriptionOpened
from standfast.kernel.rows import Record
from standfast.machine.flow.deadline_checks import is_late
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.failures import take_answer
from standfast.machine.flow.node_kind import Kind, answer_of, no_transition
from standfast.machine.flow.routing import finish, is_barred
from standfast.machine.model.commands.run_commands import AnswerStep, TakeEvents
from standfast.machine.model.engine_tasks import FindEvents, Sought
from standfast.machine.model.events import EventDeclined, EventReceived, EventsSought, StepAnswered
from standfast.machine.model.messages import PUBLICATION, AnswerOffer, PublishedMessage
from standfast.machine.model.queries.authorization import capability_refusal
from standfast.machine.model.queries.correlation import key_of, key_or_none
from standfast.machine.model.queries.expression_scope import CONTEXT, ENTITY, text_names
from standfast.machine.model.queries.outputs import is_within, merged, too_large
from standfast.machine.model.rows.step_rows import RowProjection
from standfast.machine.model.state import Data, StepState, Token
from standfast.machine.recovery.rule_resume import waiting_since

MOST_REFUSED: Final = 1000
"""Events of one step that do not count although they were found; beyond that it looks for no others."""

_LATE = Ignored(reason="nobody waits for this any more")


class WaitEventsKind(Kind):
    """Waits for published events."""

    wait_kind = "event"

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Wait, and have somebody look for what came early."""
        assert isinstance(node.op, WaitEventsOp)
        try:
            for each in node.op.events:
                key_of(turn.routes, node, each, turn.names_for(token, node.id))
        except ExpressionError as error:
            self.fail(turn, token, node, f"{node.id!r} has no key to wait for: {error}")
            return
        turn.send_out(_search(turn, turn.open_step(token, node, asked_at=waiting_since(turn)), node.op))

    def time_out(self, turn: DecisionBuilder, step: StepState) -> None:
        """Look once more for events that were published in time and were not delivered; the answer ends the step."""
        due_at = turn.moment.fired_due_at
        if due_at is None or step.over_at:
            super().time_out(turn, step)
            return
        turn.emit(EventsSought(step=step.number, over_at=due_at.isoformat()))
        turn.send_out(_search(turn, step, _op(turn, step)))

    def pass_time(self, turn: DecisionBuilder, step: StepState) -> None:
        """No event was published in time."""
        super().time_out(turn, step)

    def opened(self, view: RowProjection, node: Node, step: int, *, data: Data) -> Sequence[Record]:
        """The waits, one for each event; those of a step that has no key go with it in the same commit."""
        assert isinstance(node.op, WaitEventsOp)
        return [
            SubscriptionOpened(
                number=step,
                place=place,
                kind="event",
                signal=each.event,
                correlation=key_or_none(view.routes, node, each, text_names(view.state, data)),
            )
            for place, each in enumerate(node.op.events)
        ]

    def answer(self, turn: DecisionBuilder, step: StepState, command: AnswerStep) -> Rejection | None:
        """Whoever was given the step itself tells that what it waits for has happened; no event is needed."""
        token = turn.state.tokens[step.token]
        data = merged(turn.routes, token.data, step.node, command.data)
        if command.data is not None and not is_within(turn.routes, data):
            return too_large(turn.routes, f"the answer to {step.node!r}")
        if is_barred(turn, token, step.node, OK, data=data):
            return no_transition(step.node, OK, turn.moment.actor.id)
        turn.emit(answer_of(turn, step, command, command.data))
        turn.cancel_step_timer(step)
        finish(turn, step, output=command.data)
        return None

    def answered(self, view: RowProjection, event: StepAnswered) -> Sequence[Record]:
        """The waits are over."""
        return self.closed(view, event.step, event.outcome)

    def closed(self, view: RowProjection, step: int, outcome: str) -> Sequence[Record]:  # noqa: ARG002 - it is over anyhow
        """The waits are over; for those whose event came that is no news."""
        waiting = view.state.open.get(step) or view.state.frozen[step]
        op = view.routes.node(waiting.node).op
        assert isinstance(op, WaitEventsOp)
        return [SubscriptionClosed(number=step, place=place) for place in range(len(op.events))]


# -- what comes


def take_events(turn: DecisionBuilder, command: TakeEvents) -> Answer | None:
    """Events came that a step may wait for: those that it does are taken. None at all means that it should look again."""
    step = turn.state.open.get(command.step)
    op = None if step is None or step.of is not None else turn.routes.node(step.node).op
    if step is None or not isinstance(op, WaitEventsOp):
        return decline(turn, command)
    if command.is_over:
        _pass_time(turn, step)
        return None
    if not command.events:
        turn.emit(EventsSought(step=step.number))
        turn.send_out(_search(turn, step, op))
        return None
    looks_on = False
    for each in command.events:
        published = as_now(turn, each)
        is_open = step.number in turn.state.open and not is_late(turn, step, published.at)
        place = _place_for(turn, step, op, published) if is_open else None
        if place is not None:
            _take(turn, step, place, published)
            continue
        is_refused = command.is_found and is_open and len(step.refused) < MOST_REFUSED
        if published.match_one or is_refused:
            _decline(turn, command.step, published, is_refused=is_refused)
        looks_on = looks_on or is_refused
    if step.number in turn.state.open and (looks_on or (step.over_at and command.is_found)):
        turn.send_out(_search(turn, step, op))
    return None


def _pass_time(turn: DecisionBuilder, step: StepState) -> None:
    """The time of a step is over, and nothing was published before that it waits for."""
    kind = turn.kind(step)
    assert isinstance(kind, WaitEventsKind)
    if step.over_at:
        kind.pass_time(turn, step)


def decline(turn: DecisionBuilder, command: TakeEvents) -> Answer:
    """Nobody waits here any more. Only those who offer an event to one taker at a time have to know."""
    for published in command.events:
        if published.match_one:
            _decline(turn, command.step, published)
    return turn.decision() if turn.has_happened else _LATE


def as_now(turn: DecisionBuilder, published: PublishedMessage) -> PublishedMessage:
    """Returns an event with the rights that its publisher has in this commit: none if they may not act any more.

    A directory of the host cannot be asked by a commit: what it gave when the event was published counts.
    """
    known = published.publisher
    if known is None or not published.asked:
        return published
    found = turn.fact(rights_fact(published.asked)).value
    assert isinstance(found, RightsFact)
    if found.is_elsewhere:
        return published
    if found.actor is None:
        present = msgspec.structs.replace(known, roles=frozenset(), capabilities=frozenset())
    else:
        present = msgspec.structs.replace(found.actor, on_behalf_of=known.on_behalf_of)
    return msgspec.structs.replace(published, publisher=present)


def may_bring(turn: DecisionBuilder, step: StepState, published: PublishedMessage) -> bool:
    """Whether the publisher of an event has the capability that a step asks for."""
    node = turn.routes.node(step.node)
    return not node.capability or capability_refusal(node, as_now(turn, published).actor) is None


def _place_for(turn: DecisionBuilder, step: StepState, op: WaitEventsOp, published: PublishedMessage) -> int | None:
    """Which of the events that a step still waits for this is; None if it is none of them, or its publisher may not bring it."""
    if published.id in turn.state.taken or capability_refusal(turn.routes.node(step.node), published.actor) is not None:
        return None
    node, names = turn.routes.node(step.node), turn.names_for(turn.state.tokens[step.token], step.node)
    for place, each in enumerate(op.events):
        is_open = each.title not in (step.came or {}) and each.event == published.event
        if (
            is_open
            and key_or_none(turn.routes, node, each, names) == published.key
            and _matches(turn.routes, node, each, names=names, payload=published.payload)
            and not _is_barred(turn, step, each, published)
        ):
            return place
    return None


def _is_barred(turn: DecisionBuilder, step: StepState, each: Awaited, published: PublishedMessage) -> bool:
    """Whether the step would end by it and every way on is closed to the publisher."""
    op = _op(turn, step)
    came = {**(step.came or {}), each.title: published.payload}
    if len(came) < op.enough:
        return False
    token = turn.state.tokens[step.token]
    data = merged(turn.routes, token.data, step.node, _output(op, came))
    return is_barred(turn, token, step.node, OK, data=data, may=published.actor.may)


def _take(turn: DecisionBuilder, step: StepState, place: int, published: PublishedMessage) -> None:
    # What follows is the publisher's doing: ways that need a capability are open for whoever has it.
    turn.moment = msgspec.structs.replace(turn.moment, actor=published.actor)
    turn.emit(
        EventReceived(
            step=step.number,
            place=place,
            id=published.id,
            event=published.event,
            key=published.key,
            payload=published.payload,
            publisher="" if published.publisher is None else published.publisher.id,
            at=turn.moment.now.isoformat(),
            expires_at=published.expires_at,
        )
    )
    if published.match_one:
        _answer_offer(turn, step.number, published, is_taken=True)
    op, came = _op(turn, step), step.came or {}
    if len(came) >= op.enough:
        turn.cancel_step_timer(step)
        take_answer(turn, step, _output(op, came))


def _op(turn: DecisionBuilder, step: StepState) -> WaitEventsOp:
    op = turn.routes.node(step.node).op
    assert isinstance(op, WaitEventsOp)
    return op


def _output(op: WaitEventsOp, came: Data) -> object:
    """What a step answers: of one event what it brought, of several what each one did, by name."""
    return came if len(op.events) > 1 else came[op.events[0].title]


def _decline(turn: DecisionBuilder, step: int, published: PublishedMessage, *, is_refused: bool = False) -> None:
    by = published.actor.id if is_refused else ""
    turn.emit(EventDeclined(step=step, id=published.id, event=published.event, publisher=by))
    if published.match_one:
        _answer_offer(turn, step, published, is_taken=False)


def _answer_offer(turn: DecisionBuilder, step: int, published: PublishedMessage, *, is_taken: bool) -> None:
    told = AnswerOffer(id=published.id, instance=str(turn.moment.instance), step=step, is_taken=is_taken)
    turn.send(Message(decider=PUBLICATION, command=told, key=published.id, partition=published.partition))


# -- keys and conditions


def _matches(routes: GraphIndex, node: Node, awaited: Awaited, *, names: Data, payload: object) -> bool:
    """Whether an event is one that is waited for; a question that cannot be answered is answered by no."""
    condition = routes.event_match(node.id, awaited.title)
    try:
        return condition is None or condition.holds({**names, EVENT: payload})
    except ExpressionError:
        return False


def _search(turn: DecisionBuilder, step: StepState, op: WaitEventsOp) -> FindEvents:
    """What to look for: the events that have not come yet."""
    node, data = turn.routes.node(step.node), turn.state.tokens[step.token].data
    names = turn.names_for(turn.state.tokens[step.token], step.node)
    left = [each for each in op.events if each.title not in (step.came or {})]
    return FindEvents(
        step=step.number,
        sought=[
            Sought(event=each.event, key=key_of(turn.routes, node, each, names), match=each.match) for each in left
        ],
        taken=[*turn.state.taken, *step.refused],
        data=data if any(each.match is not None for each in left) else {},
        names=_beside(names) if any(each.match is not None for each in left) else {},
        capability=list(needed_names(node.capability)),
        until=step.over_at,
    )


def _beside(names: Data) -> Data:
    """What the conditions of a document's workflow may read besides the data."""
    return {name: names[name] for name in (ENTITY, CONTEXT, ORG, RELATED) if name in names}
