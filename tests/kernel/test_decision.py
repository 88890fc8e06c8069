"""What a decider may answer, and that a decision cannot be made wrongly."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from kernel.orders import NOON
from standfast.errors import CommandError
from standfast.kernel.decision import Decision, Effect, Message, Timer

HOUR = timedelta(hours=1)


def test_cancelling_takes_back_what_was_set_before() -> None:
    """Of one key the last call counts; timers without a key are left alone."""
    decision = Decision.event("one").with_timer_after(HOUR, "a", key="k").with_timer_after(HOUR, "b")
    cancelled = decision.cancel_timer("k")
    assert [timer.command for timer in cancelled.timers] == ["b"]
    assert cancelled.cancelled_timers == ("k",)
    assert [timer.command for timer in cancelled.with_timer_after(HOUR, "c", key="k").timers] == ["b", "c"]
    assert decision.cancel_timer("").timers == decision.timers


@pytest.mark.row("D-005")
@pytest.mark.row("C-29")
def test_a_decision_has_an_event() -> None:
    """There is no decision without an event; the message names the way to say that nothing happened."""
    with pytest.raises(CommandError, match="at least one event; answer Ignored"):
        Decision(())


@pytest.mark.row("D-006", "D-008")
def test_decisions_are_built_up_in_order() -> None:
    """Events, effects, timers and messages keep the order in which they were added."""
    message = Message(decider="other", command="hello")
    decision = (
        Decision.event("one", "two")
        .with_event("three")
        .with_effect("first")
        .with_effect("second", priority=7, once=True)
        .with_effect(Effect(body="third", handler="mail"))
        .cancel_timer("old")
        .with_message(message)
    )
    assert decision.events == ("one", "two", "three")
    assert [effect.body for effect in decision.effects] == ["first", "second", "third"]
    assert (decision.effects[1].priority, decision.effects[1].once, decision.effects[2].handler) == (7, True, "mail")
    assert (decision.cancelled_timers, decision.messages) == (("old",), (message,))


def test_building_leaves_the_original_alone() -> None:
    """A decision is a value: adding to it gives another one."""
    decision = Decision.event("one")
    decision.with_event("two").with_effect("work").cancel_timer("key")
    assert decision == Decision(("one",))


@pytest.mark.row("D-007", "D-072")
@pytest.mark.parametrize("delay", [timedelta(hours=1), timedelta(0), timedelta(seconds=-5)])
def test_a_timer_can_follow_the_commit(delay: timedelta) -> None:
    """`with_timer_after` counts from the commit; zero and less are due at once."""
    (timer,) = Decision.event("one").with_timer_after(delay, "remind", key="k").timers
    assert (timer.due(NOON), timer.command, timer.key) == (NOON + delay, "remind", "k")


@pytest.mark.row("D-009")
def test_a_timer_can_name_its_instant() -> None:
    """`with_timer_at` is due at the given instant, whenever the commit is."""
    (timer,) = Decision.event("one").with_timer_at(NOON, "remind").timers
    assert timer.due(NOON + timedelta(days=3)) == NOON


@pytest.mark.row("D-009")
def test_an_instant_needs_a_zone() -> None:
    """A time without a zone means something else on every host, so it is refused."""
    with pytest.raises(CommandError, match="tzinfo=UTC"):
        Decision.event("one").with_timer_at(datetime(2026, 3, 31), "remind")  # noqa: DTZ001


@pytest.mark.parametrize("times", [{}, {"due_at": NOON, "after": timedelta(hours=1)}])
def test_a_timer_has_one_time(times: dict[str, Any]) -> None:
    """A timer without a time, or with two, says nothing that could be held to."""
    with pytest.raises(CommandError, match="either `due_at` or `after`"):
        Timer(command="remind", **times)


@pytest.mark.parametrize("timeout", [timedelta(0), timedelta(seconds=-1), timedelta.max])
def test_a_limit_is_a_time_that_can_pass(timeout: timedelta) -> None:
    """No time at all is no limit, and one beyond all calendars is none either: None says that."""
    with pytest.raises(CommandError, match="None for no limit"):
        Effect(body="work", timeout=timeout)


@pytest.mark.parametrize("priority", [-1, 101])
def test_priorities_have_bounds(priority: int) -> None:
    """A priority beyond its bounds is refused where it is written, not by the database."""
    with pytest.raises(CommandError, match="not a whole number between 0 and 100"):
        Effect(body="work", priority=priority)


def test_an_effect_freezes_no_policy() -> None:
    """Unless the author says otherwise an effect carries no retry policy, so that a changed one holds for waiting effects too."""
    assert Effect(body="work").retry is None
