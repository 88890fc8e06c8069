"""The decider of published events, by itself: whose word counts when an event is for one taker."""

from __future__ import annotations

from machine.hosting import NOW, RUN
from standfast.features.events import model as p
from standfast.kernel.decision import Decision, Ignored
from standfast.kernel.moment import Moment
from standfast.machine.model.messages import AnswerOffer, Waiter

DECIDER = p.PublicationDecider()
FIRST, SECOND = (Waiter(instance=f"00000000-0000-7000-8000-00000000000{n}", definition="d", step=1) for n in (1, 2))


def told(state: p.PublicationState, command: p.Command) -> object:
    """Say something to an event; what it answers."""
    answer = DECIDER.decide(state, command, Moment(now=NOW, instance=RUN))
    if isinstance(answer, Decision):
        for event in answer.events:
            DECIDER.evolve(state, event)  # type: ignore[arg-type]
    return answer


def answered(waiter: Waiter, *, step: int = 1) -> AnswerOffer:
    """Somebody takes what he was offered."""
    return AnswerOffer(id="e-1", instance=waiter.instance, step=step, is_taken=True)


def test_only_the_one_who_was_offered_an_event_takes_it() -> None:
    """The word of another run, or of another step of the same one, comes from an offer that is over: it changes nothing."""
    state = DECIDER.initial()
    told(state, p.PublishEvent(id="e-1", event="payment", ttl_ms=1000, match_one=True))
    told(state, p.RouteOn(id="e-1", waiters=[FIRST, SECOND]))
    for late in (answered(SECOND), answered(FIRST, step=2)):
        assert isinstance(told(state, late), Ignored)
        assert (state.offered, state.taken_by) == (FIRST, None)
    told(state, answered(FIRST))
    assert (state.taken_by, state.is_over) == (FIRST, True)
