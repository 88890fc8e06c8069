"""The decider of batches, by itself: what comes twice, too late or in another order, and what nobody could do or look at."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from machine.hosting import NOW, RUN
from standfast.features.batches.model import messages as w
from standfast.features.batches.model.decider import BatchDecider
from standfast.kernel.decider import Failure
from standfast.kernel.decision import Decision
from standfast.kernel.moment import Moment
from standfast.machine.model.commands.run_commands import EndChild

HOUR_MS = 3_600_000
TRY, LOOK = w.TryMore(id="b"), w.LookAgain(id="b")
FAILURE = Failure(error="the worker died")


class Batch:
    """One batch, told one command after the other."""

    def __init__(
        self, verb: w.Verb = "requeue", *, many: int = 2, refused: tuple[int, ...] = (), rate: float = 0
    ) -> None:
        self._decider = BatchDecider()
        self.state = self._decider.initial()
        self.effects: list[w.Effect] = []
        self.now = NOW
        numbers = range(1, many + 1)
        items = [
            w.Item(number=each, status="refused", detail="gone")
            if each in refused
            else w.Item(number=each, run=f"r-{each}")
            for each in numbers
        ]
        self.begin = w.BeginBatch(id="b", order=w.Order(verb=verb, follow_ms=HOUR_MS, per_second=rate), items=items)
        self.tell(self.begin)

    def tell(self, command: w.Command) -> bool:
        """Have a command decided; whether it changed anything."""
        answer = self._decider.decide(self.state, command, Moment(now=self.now, instance=RUN))
        if not isinstance(answer, Decision):
            return False
        self.effects = [each.body for each in answer.effects]  # type: ignore[misc]
        for event in answer.events:
            self.state = self._decider.evolve(self.state, event)  # type: ignore[arg-type]
        return True

    def fail(self) -> bool:
        """What it asked for last could not be carried out."""
        (effect,) = self.effects
        return self.tell(self._decider.effect_failed(effect, FAILURE))

    @property
    def items(self) -> list[tuple[str, str]]:
        """What is known of each item."""
        return [(each.status, each.detail) for each in self.state.items]


def accepted(last: int) -> w.NoteOutcomes:
    """All up to this one were taken."""
    outcomes = [w.ItemOutcome(number=each, status="accepted") for each in range(1, last + 1)]
    return w.NoteOutcomes(id="b", outcomes=outcomes, last=last)


def looked(last: int, *done: int) -> w.NoteOutcomes:
    """All up to this one were looked at, and some are done."""
    outcomes = [w.ItemOutcome(number=each, status="done") for each in done]
    return w.NoteOutcomes(id="b", outcomes=outcomes, last=last, is_look=True)


def tried() -> Batch:
    """Two items are in a worker's hands."""
    return Batch()


def waiting() -> Batch:
    """They were taken, and are to be looked at."""
    batch = Batch()
    assert batch.tell(accepted(2))
    return batch


def looking() -> Batch:
    """A worker looks at them."""
    batch = waiting()
    assert batch.tell(LOOK)
    return batch


def ended() -> Batch:
    """It was cancelled meanwhile."""
    batch = tried()
    assert batch.tell(w.CancelBatch(id="b"))
    assert batch.tell(accepted(2))
    assert batch.tell(LOOK)
    assert batch.tell(looked(2, 1, 2))
    assert batch.state.is_over
    return batch


def cancelled() -> Batch:
    """It was cancelled while a worker had them."""
    batch = tried()
    assert batch.tell(w.CancelBatch(id="b"))
    return batch


END = EndChild(step=1, status="completed")
LATE: dict[str, tuple[Callable[[], Batch], list[w.Command]]] = {
    "being tried": (tried, [TRY, LOOK, accepted(1), accepted(3)]),
    "to be looked at": (waiting, [accepted(2), looked(2, 1)]),
    "being looked at": (looking, [TRY, LOOK, looked(1, 1)]),
    "cancelled": (cancelled, [w.CancelBatch(id="b", reason="again"), TRY, LOOK]),
    "over": (ended, [TRY, LOOK, accepted(2), looked(2, 1), w.CancelBatch(id="b"), END]),
}


@pytest.mark.parametrize("case", LATE)
def test_what_comes_twice_or_too_late_changes_nothing(case: str) -> None:
    """Nothing is tried or looked at by two workers at once, no answer counts for what another one has in hand, and the end is the end."""
    make, commands = LATE[case]
    batch = make()
    assert [each for each in [*commands, batch.begin] if batch.tell(each)] == []


def test_what_nobody_could_try_may_have_been_done() -> None:
    """An item whose trial failed is looked at as one that was taken, with what went wrong; a look that failed says nothing of it."""
    batch = tried()
    assert batch.fail()
    assert batch.items == [("accepted", "the worker died")] * 2
    assert batch.tell(LOOK)
    assert batch.tell(looked(2, 1))
    batch.now += timedelta(seconds=2)
    assert batch.tell(LOOK)
    before = batch.items
    assert batch.fail()
    assert (batch.items, batch.state.in_hand) == (before, 0)
    assert [each.number for each in batch.state.items if each.status == "accepted"] == [2]


def test_a_cancelled_batch_drops_what_was_not_tried_and_nothing_else() -> None:
    """What is in a worker's hands has its own outcome, what was taken is followed, and what was refused from the beginning stays refused, with its reason."""
    batch = Batch("discard", many=4, refused=(3,), rate=1)
    (effect,) = batch.effects
    assert [each.number for each in effect.items] == [1]
    assert batch.tell(w.CancelBatch(id="b"))
    dropped = ("dropped", "the batch was cancelled before it was tried")
    assert batch.items == [("waiting", ""), dropped, ("refused", "gone"), dropped]
    assert batch.tell(accepted(1))
    assert (batch.items[0], batch.state.is_over) == (("accepted", ""), False)
    assert batch.tell(LOOK)
    assert batch.tell(looked(1, 1))
    assert (batch.items[0], batch.state.is_over) == (("done", ""), True)


def test_what_is_refused_from_the_beginning_is_not_tried() -> None:
    """It is no item of any stretch, wherever it stands."""
    batch = Batch("discard", many=4, refused=(1, 3), rate=1)
    seen: list[int] = []
    while batch.effects:
        (effect,) = batch.effects
        seen += [each.number for each in effect.items]
        assert batch.tell(
            w.NoteOutcomes(id="b", outcomes=[w.ItemOutcome(number=seen[-1], status="done")], last=seen[-1])
        )
        batch.now += timedelta(seconds=1)
        batch.tell(TRY)
    assert seen == [2, 4]
