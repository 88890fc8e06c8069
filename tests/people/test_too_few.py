"""A question that takes more people than can be asked: it passes by no fewer votes than its rule takes, and a yes is never a no."""

from __future__ import annotations

import pytest

from standfast import Actor, Run, Saga, ask
from standfast.testing import ManualEngine
from support.engines import Place

FINANCE = ask("role:finance", pick="all")
OPS = Actor(id="ops", capabilities=frozenset({"task:*"}))


def _paid() -> str:
    return "paid"


def asked(place: Place, holders: tuple[str, ...], **options: object) -> tuple[ManualEngine, Run[object]]:
    """A run of Rita's that waits for too few people."""
    engine = place.engine()
    for name in ("ann", "bob", "cat"):
        engine.directory.put(name)
    engine.directory.put("rita", manager="bob")
    for name in holders:
        engine.directory.grant(name, "finance")
    if "chain" in options:
        stage = {"asks": [{"role": "finance", "pick": "all"}], "agree": "n", "least": 2}
        engine.chains.publish("two", [stage])
    saga = Saga("pay").human("approve", **options).step("pay", _paid).build()  # type: ignore[arg-type]
    engine.register(saga)
    run = engine.acting("rita").start(saga)
    engine.drain()
    return engine, engine.run(run.id)


def approved(engine: ManualEngine, run: Run[object], *names: str) -> str:
    """What becomes of the run when these agree."""
    for name in names:
        engine.acting(name).tasks.approve(run.tasks()[0])
        engine.drain()
    return run.describe().status


@pytest.mark.parametrize(
    ("holders", "options"),
    [
        (("ann",), {"ask": FINANCE, "agree": 2}),
        (("ann", "rita"), {"ask": FINANCE, "agree": 2, "self_approval": False}),
        (("ann",), {"ask": FINANCE, "agree_weight": 2}),
        (("ann",), {"chain": "two"}),
    ],
    ids=["one holder", "the other one is kept out", "too little weight", "a stage of a chain"],
)
@pytest.mark.row("E-677")
@pytest.mark.row("E-682")
def test_one_vote_is_not_two(place: Place, holders: tuple[str, ...], options: dict[str, object]) -> None:
    """Whoever can be asked decides, which is kept; the run waits for another one, and goes on by the vote of whoever is added."""
    engine, run = asked(place, holders, **options)
    assert run.describe().reason == "no_approver"
    assert approved(engine, run, "ann") not in {"completed", "aborted"}
    assert run.describe().reason == "no_approver"
    assert [step.name for step in run.steps()] == ["approve"]
    engine.acting(OPS).tasks.add_approver(run.tasks()[0], "cat")
    engine.drain()
    assert run.describe().reason == ""
    assert approved(engine, run, "cat") == "completed"
    assert [each.decided_by for each in engine.tasks.get(run.tasks()[0]).decisions] == ["ann", "cat"]
    assert run.verify().is_sound


def test_a_manager_who_is_asked_by_name_too_is_one_person(place: Place) -> None:
    """Two ways to one person are one vote."""
    engine, run = asked(place, ("ann",), ask=["manager", "user:bob"], agree=2)
    assert approved(engine, run, "bob") not in {"completed", "aborted"}
    engine.acting(OPS).tasks.reassign(run.tasks()[0], "cat")
    assert approved(engine, run, "cat") == "completed"


def test_two_of_three_who_are_needed_do_not_reject_by_agreeing(place: Place) -> None:
    """What they say waits for the third; resuming finds who has the role by then."""
    engine, run = asked(place, ("ann", "bob"), ask=FINANCE, agree=3, abstain=True)
    assert approved(engine, run, "ann", "bob") not in {"completed", "aborted"}
    run.resume()
    engine.drain()
    assert "it takes at least 3 of them; 2 have decided, and 0 others can be asked" in run.describe().error
    engine.directory.grant("cat", "finance")
    run.resume()
    engine.drain()
    assert approved(engine, run, "cat") == "completed"


def test_a_no_is_a_no_whoever_is_missing(place: Place) -> None:
    """Nobody has to be found in order to reject."""
    engine, run = asked(place, ("ann", "bob"), ask=FINANCE, agree=3, abstain=True)
    engine.acting("bob").tasks.abstain(run.tasks()[0])
    engine.drain()
    assert run.describe().reason == "no_approver"
    engine.acting("ann").tasks.reject(run.tasks()[0], comment="too much")
    engine.drain()
    assert (run.describe().status, run.tasks()[0].decided_by) == ("aborted", "ann")
