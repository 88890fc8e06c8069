"""A right that ends while its holder acts: what is committed was allowed when it was committed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import NamedTuple

import pytest

from standfast import Actor, Calls, Capabilities, Engine, ForbiddenError, RequestContext, Saga
from standfast.calls.fact_source import EngineFacts
from standfast.engine.commit.facts import Asking, Authorised
from standfast.kernel.ids import InstanceId
from support.campaigns import RACES
from support.engines import Live, Place
from support.waiting import eventually, together

BOSS = Capabilities({"boss": ["*"]})
ENDS = ["role revoked", "deactivated", "key revoked"]


class Right(NamedTuple):
    """A request that may do everything, and how somebody else ends that."""

    request: RequestContext
    end: Callable[[], object]


def opened(engine: Engine) -> Engine:
    """An engine with a workflow that waits."""
    return engine.register(Saga("paid").wait_for("wait", signal="paid").build())


def given(engine: Engine, end: str) -> Right:
    """A right of Ann's, by a role of the directory or by a key."""
    engine.directory.put("ann")
    engine.directory.activate("ann")
    if end == "key revoked":
        key = engine.keys.create("k", actor="ann", kind="user", capabilities=["*"]).key
        return Right(RequestContext(actor=key.bearer), lambda: engine.keys.revoke(key))
    engine.directory.grant("ann", "boss")
    ending = engine.directory.deactivate if end == "deactivated" else _revoke(engine)
    return Right(RequestContext(actor=Actor(id="ann")), lambda: ending("ann"))


def counts(calls: Calls, run: InstanceId) -> bool:
    """Whether the right counts in the process of whoever acts."""
    try:
        calls.run(run).change_data({"n": 0}, reason="before")
    except ForbiddenError:
        return False
    return True


def _revoke(engine: Engine) -> Callable[[str], object]:
    return lambda name: engine.directory.revoke(name, "boss")


@pytest.mark.row("E-664", "E-572")
@pytest.mark.parametrize("end", ENDS)
def test_a_right_that_ends_between_the_decision_and_its_commit_is_not_used(
    place: Place, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """The commit checks what the decision relied on: nothing is written for a right that ended after it was looked up."""
    one, other = opened(place.engine(capabilities=BOSS)), opened(place.engine(capabilities=BOSS))
    right = given(other, end)
    ann, runs = one.acting(right.request), [one.start("paid") for _ in range(2)]
    ann.run(runs[0].id).pause("what is known of Ann is remembered from now on")
    endings, look = [right.end], EngineFacts.authorised

    def authorised(self: EngineFacts, asking: Asking, now: datetime) -> Authorised | None:
        found = look(self, asking, now)
        if found is not None and asking.request.actor.id == "ann" and endings:
            endings.pop()()
        return found

    monkeypatch.setattr(EngineFacts, "authorised", authorised)
    before = len(runs[1].history())
    with pytest.raises(ForbiddenError):
        ann.run(runs[1].id).pause("too late")
    assert endings == []
    assert len(runs[1].history()) == before


@pytest.mark.row("E-664", "E-572")
@pytest.mark.parametrize("end", ENDS)
def test_acts_and_the_end_of_their_right_race(live: Live, end: str) -> None:
    """Whatever is begun when the right has ended is refused, in another process too, and leaves nothing; what was done before counts."""
    one, other = opened(live.engine(capabilities=BOSS)), opened(live.engine(capabilities=BOSS))
    run = one.start("paid")
    told: list[tuple[bool, bool, bool]] = []
    for _ in range(RACES):
        right, has_ended, has_begun = given(other, end), [False], [False]
        ann = one.acting(right.request)
        eventually(partial(counts, ann, run.id))  # The clocks of two processes differ by a part of a round trip.

        def finish(right: Right = right, has_ended: list[bool] = has_ended, has_begun: list[bool] = has_begun) -> None:
            has_begun[0] = True
            right.end()
            has_ended[0] = True

        def act(ann: Calls = ann, has_ended: list[bool] = has_ended, has_begun: list[bool] = has_begun) -> None:
            for number in range(4):
                was_over = has_ended[0]
                try:
                    ann.run(run.id).change_data({"n": number}, reason="race")
                    told.append((was_over, True, has_begun[0]))
                except ForbiddenError:
                    told.append((was_over, False, has_begun[0]))

        together(finish, act)
    assert not [each for each in told if each == (True, True, True)], "done after the right had ended"
    assert not [each for each in told if each[1:] == (False, False)], "refused before the right was ended"
    done = [each for each in run.history() if each.comment == "race"]
    assert len(done) == sum(is_done for _, is_done, _ in told)
