"""Approval chains: versions that never change, and what a question gets of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from people.asking import Inquirer
from standfast import (
    Actor,
    Ask,
    Calls,
    ForbiddenError,
    HumanTask,
    NotFoundError,
    PayloadError,
    RejectedError,
    Run,
    Saga,
    Settings,
    Stage,
    StoreError,
    load_processes,
)
from standfast.testing import ManualEngine
from support.engines import AT_ONCE, Live, Place
from support.waiting import together

MANAGER = Stage(name="manager", asks=[Ask(by="manager")])
FINANCE = Stage(asks=[Ask(by="role", of="finance", pick="all")], agree="n", least=2)


def test_a_question_gets_the_newest_version_of_its_chain(place: Place) -> None:
    """It is told the stages and the version, so that it can keep to them, and nobody is looked for before their stage."""
    asked = Inquirer(place.engine(Settings(retry=AT_ONCE)))
    chains = asked.engine.chains
    assert chains.publish("spend", [MANAGER]).version == 1
    assert chains.publish("spend", [MANAGER, FINANCE]).version == 2
    found = asked.found(Ask(by="chain", of="spend"))
    assert (found.stages, found.chain_version, found.people) == ([MANAGER, FINANCE], "2", [])
    assert found.why == [{"resolver": "chain", "of": "spend", "result": ["version 2"]}]
    assert "no approval chain 'travel'" in asked.found(Ask(by="chain", of="travel")).error
    assert "is asked alone" in asked.found(Ask(by="chain", of="spend"), Ask(by="user", of="ann")).error


def test_versions_stay_what_they_were(place: Place) -> None:
    """Each can be read for ever, and says who published it and when; the same again is no new version."""
    engine = place.engine()
    first = engine.chains.publish("spend", [MANAGER], description="who spends asks")
    assert engine.chains.publish("spend", [MANAGER]) == first
    kim = engine.acting(Actor(id="kim", capabilities=frozenset({"chains:publish"})))
    second = kim.chains.publish("spend", [FINANCE])
    assert (second.version, second.published_by, second.published_at) == (2, "kim", place.clock.now())
    assert engine.chains.publish("spend", [MANAGER]).version == 3
    assert engine.chains.versions("spend")[:2] == [first, second]
    assert engine.chains.get("spend", 1) == first
    assert engine.chains.get("spend").version == 3
    engine.chains.publish("travel", [FINANCE])
    assert [(each.name, each.version) for each in engine.chains.list()] == [("spend", 3), ("travel", 1)]


def test_a_number_says_how_many_have_to_agree(place: Place) -> None:
    """As in sagas and rules; and a Stage takes what a mapping does."""
    engine = place.engine()
    short = {"asks": [{"role": "finance", "pick": "all"}], "agree": 2}
    assert engine.chains.publish("two", [short]).stages == [FINANCE]
    named = engine.chains.publish("named", [Stage(asks=["user:ann", "bob"], agree=2)])  # type: ignore[list-item, arg-type]
    assert named.stages == [Stage(asks=[Ask(by="user", of="ann"), Ask(by="user", of="bob")], agree="n", least=2)]


@pytest.mark.parametrize("statement", ["update {}chains set version = 9", "delete from {}chains"])
def test_a_version_withstands_sql(place: Place, statement: str) -> None:
    """What questions keep to cannot be rewritten behind their backs."""
    place.engine().chains.publish("spend", [MANAGER])
    with pytest.raises(StoreError, match="HF102"), place.store.writer().unit() as unit, unit.lend() as lent:
        lent.execute(statement.format("" if place.url.startswith("sqlite") else "standfast."))  # type: ignore[attr-defined]


def test_stages_can_be_written_in_short(place: Place) -> None:
    """As plain data, such as comes from a file or a form."""
    published = place.engine().chains.publish(
        "spend",
        [
            {"name": "manager", "asks": ["manager"]},
            {"asks": [{"role": "finance", "pick": "all"}], "agree": "n", "least": 2},
            {"asks": ["ann", "user:bob", "role:legal", "owner:budget", Ask(by="user", of="cat")], "agree": "all"},
        ],
    )
    assert published.stages[:2] == [MANAGER, FINANCE]
    assert [(each.by, each.of) for each in published.stages[2].asks] == [
        ("user", "ann"),
        ("user", "bob"),
        ("role", "legal"),
        ("owner", "budget"),
        ("user", "cat"),
    ]


REFUSED: dict[str, tuple[str, Any]] = {
    "no stages": ("empty_chain", []),
    "no list": ("empty_chain", "manager"),
    "a stage that asks nobody": ("empty_stage", [MANAGER, {"asks": []}]),
    "a stage without asks": ("empty_stage", [{"name": "finance"}]),
    "no stage at all": ("bad_stage", ["manager"]),
    "a key that is unknown": ("bad_stage", [{"asks": ["ann"], "agreee": "all"}]),
    "an agreement that is unknown": ("bad_stage", [{"asks": ["ann"], "agree": "most"}]),
    "none of them": ("bad_stage", [{"asks": ["ann"], "agree": 0}]),
    "a number twice": ("bad_stage", [{"asks": ["ann", "bob"], "agree": 2, "least": 1}]),
    "more than are asked": ("bad_stage", [{"asks": ["ann", "bob"], "agree": 3}]),
    "more than a role has places": ("bad_stage", [{"asks": ["role:finance"], "agree": 2}]),
    "more than they weigh": ("bad_stage", [{"asks": ["ann", "bob"], "agree": "weight", "least": 3}]),
    "a number of no use": ("bad_stage", [{"asks": ["ann", "bob"], "agree": "all", "least": 2}]),
    "an ask that is none": ("bad_stage", [Stage(asks=[7])]),  # type: ignore[list-item]
    "n of how many": ("bad_stage", [{"asks": ["ann"], "agree": "n"}]),
    "a chain in a chain": ("bad_stage", [{"asks": ["chain:spend"]}]),
    "a role without a name": ("bad_stage", [Stage(asks=[Ask(by="role")])]),
    "no resolver": ("bad_stage", [Stage(asks=[Ask(by="")])]),
    "no weight": ("bad_stage", [Stage(asks=[Ask(by="user", of="ann", weight=0)])]),
    "more weight than a database can keep": ("bad_stage", [Stage(asks=[Ask(by="user", of="ann", weight=10**30)])]),
    "a blank name": ("bad_stage", [{"asks": ["user: "]}]),
    "a name that nobody can have": ("bad_stage", [{"asks": ["role:" + "x" * 600]}]),
    "a stage with the name of a novel": ("bad_stage", [{"name": "x" * 600, "asks": ["ann"]}]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_chain_that_asks_nobody_is_refused(place: Place, case: str) -> None:
    """Each with a stable code, and nothing is published."""
    reason, stages = REFUSED[case]
    engine = place.engine()
    with pytest.raises(RejectedError) as refused:
        engine.chains.publish("spend", stages)
    assert refused.value.reason == reason
    assert engine.chains.list() == []


def test_a_chain_of_any_length_is_refused(place: Place) -> None:
    """Every question that is asked by it keeps all of its stages."""
    engine = place.engine()
    with pytest.raises(PayloadError, match="make them fewer"):
        engine.chains.publish("spend", [{"asks": ["role:finance"]}] * 50_000)
    assert engine.chains.list() == []


def test_chains_are_published_by_those_who_may_for_their_tenant(place: Place) -> None:
    """Without the capability nobody publishes, and another tenant sees nothing of it."""
    engine = place.engine()
    with pytest.raises(ForbiddenError, match="chains:publish"):
        engine.acting("ann").chains.publish("spend", [MANAGER])
    engine.chains.publish("spend", [MANAGER])
    other = engine.as_tenant("other")
    assert other.chains.list() == []
    with pytest.raises(NotFoundError, match="approval chain 'spend'"):
        other.chains.get("spend")
    with pytest.raises(NotFoundError, match="version 7"):
        engine.chains.get("spend", 7)
    with pytest.raises(PayloadError):
        engine.chains.get("spend", -1)


def test_versions_are_counted_once_by_all_processes(live: Live) -> None:
    """Those who publish at the same moment get versions of their own; those who say the same share one."""
    engines = [live.engine() for _ in range(2)]

    def publish(calls: Calls, number: int) -> None:
        calls.chains.publish("spend", [Stage(asks=[Ask(by="user", of=f"user-{number}")])])

    together(*(lambda calls=engine, number=number: publish(calls, number) for number, engine in enumerate(engines)))
    assert [each.version for each in engines[0].chains.versions("spend")] == [1, 2]


def test_a_chain_that_is_published_later_is_found(place: Place) -> None:
    """As the error says: an operator publishes it, and resumes the run."""
    engine = place.engine().register(Saga("spend").human("ok", chain="travel").build())
    run = engine.start("spend", {})
    engine.drain()
    assert "no approval chain 'travel'" in run.describe().error
    assert "look again with `run.resume`" in run.describe().error
    engine.chains.publish("travel", [{"asks": ["user:ann"]}])
    operator = Actor(id="olga", capabilities=frozenset({"execution:resume"}))
    engine.acting(operator).run(run.id).resume("it is published")
    engine.drain()
    assert [each.name for each in engine.acting("ann").tasks.list(mine=True)] == ["ok"]


# -- which stage a decision is for

_TEAM_AND_BOARD = [{"name": "team", "asks": ["user:ann"]}, {"name": "board", "asks": ["role:board"]}]


def _two_stages(place: Place, *, has_directory: bool = True) -> tuple[ManualEngine, Run[Any], Calls]:
    """A run at the first of two stages, and Ann, who is asked in both."""
    engine = place.engine()
    engine.chains.publish("spend", _TEAM_AND_BOARD)
    engine.register(Saga("buy").human("ok", chain="spend").step("pay", lambda: "paid").build())
    ann = engine.acting(Actor(id="ann", roles=frozenset({"board"})))
    if has_directory:
        for name in ("ann", "zed"):
            engine.directory.put(name)
            engine.directory.grant(name, "board")
        ann = engine.acting("ann")
    run = engine.run(engine.acting("rita").start("buy").id)
    engine.drain()
    return engine, run, ann


_AGAIN: dict[str, Callable[[Calls, HumanTask], object]] = {
    "the question as it was listed": lambda ann, seen: ann.tasks.approve(seen),
    "a bare id": lambda ann, seen: ann.tasks.approve(seen.step_id),
    "a named stage": lambda ann, seen: ann.tasks.decide(seen.step_id, "confirmed", stage="team"),
    "many": lambda ann, seen: ann.tasks.decide_many([seen], "confirmed"),
    "many ids": lambda ann, seen: ann.tasks.decide_many([seen.step_id], "confirmed"),
    "many with stages": lambda ann, seen: ann.tasks.decide_many([(seen.step_id, "", "team")], "confirmed"),
}


@pytest.mark.row("E-687")
@pytest.mark.parametrize("is_at_once", [True, False], ids=["at once", "later"])
@pytest.mark.parametrize("has_directory", [True, False], ids=["directory", "roles of the request"])
@pytest.mark.parametrize("way", _AGAIN)
def test_a_repeated_decision_decides_no_later_stage(
    place: Place, way: str, *, has_directory: bool, is_at_once: bool
) -> None:
    """The same approval sent three times is one approval of the stage that it was given for; the next stage is approved by its name."""
    engine, run, ann = _two_stages(place, has_directory=has_directory)
    (seen,) = ann.tasks.list(mine=True)
    for _ in range(3):
        answered = _AGAIN[way](ann, seen)
        if isinstance(answered, list):
            assert [each.status for each in answered] == ["decided"]
        if not is_at_once:
            engine.drain()
    engine.drain()
    assert [each.decided_by for each in engine.tasks.get(seen).decisions] == ["ann"]
    assert run.describe().status == "running"
    (board,) = ann.tasks.list(mine=True)
    assert board.stage == "board"
    ann.tasks.approve(board)
    engine.drain()
    assert run.describe().status == "completed"
    ann.tasks.approve(seen)  # Sent once more, when all is over.
    assert run.verify().is_sound


def test_a_decision_for_a_stage_that_is_over_is_refused(place: Place) -> None:
    """Who saw a stage that another one has decided meanwhile is told which stage is asked, and has decided nothing."""
    engine, run, _ann = _two_stages(place)
    engine.chains.publish("spend", [{"name": "team", "asks": ["user:ann", "user:zed"]}, _TEAM_AND_BOARD[1]])
    run = engine.run(engine.acting("rita").start("buy").id)
    engine.drain()
    seen = run.tasks()[0]
    engine.acting("zed").tasks.approve(seen)
    engine.drain()
    for answer in (engine.acting("ann").tasks.approve, engine.acting("ann").tasks.reject):
        with pytest.raises(RejectedError, match="stage 'board' is asked now") as refused:
            answer(seen)
        assert refused.value.reason == "outdated"
    assert [each.decided_by for each in engine.tasks.get(seen).decisions] == ["zed"]
    with pytest.raises(RejectedError) as refused:
        engine.acting("zed").tasks.reject(
            seen.step_id
        )  # Another answer than the first one, and for no stage in particular.
    assert refused.value.reason == "already_decided"
    engine.acting("zed").tasks.reject(seen.step_id, stage="board")
    engine.drain()
    assert run.describe().status == "aborted"


def test_an_earlier_decision_is_no_place_in_a_later_stage(place: Place) -> None:
    """Ann has decided the first stage and is not asked in the second: to name it decides nothing."""
    engine, run, ann = _two_stages(place)
    engine.directory.revoke("ann", "board")
    ann.tasks.approve(run.tasks()[0])
    engine.drain()
    with pytest.raises(ForbiddenError):
        ann.tasks.approve(run.tasks()[0])
    assert run.describe().status == "running"


def test_a_process_is_advanced_by_who_has_seen_its_stage(place: Place) -> None:
    """An event without a version is the first answer again; one with the version that was seen decides the present stage."""
    text = """
domain: d
workflows:
  - id: p
    steps: [{id: r, type: approval, chain: spend}, {id: y, type: terminal}]
    transitions: [{from: r, event: approved, to: y}]
"""
    engine, _run, ann = _two_stages(place)
    engine.register(*load_processes(text))
    process = engine.processes.start("p")
    engine.drain()
    for _ in range(3):
        ann.processes.advance(process.id, "approved")
        engine.drain()
    seen = ann.processes.get(process.id).instance
    assert seen.status == "active"
    assert ann.processes.advance(process.id, "approved", expected_version=seen.version).status == "completed"


def test_stages_that_one_chain_calls_alike_are_refused(place: Place) -> None:
    """A decision names its stage, so that each stage has a name of its own."""
    with pytest.raises(RejectedError, match="stage 2 is called 'team', as stage 1 is"):
        place.engine().chains.publish("spend", [{"name": "team", "asks": ["ann"]}, {"name": "team", "asks": ["bob"]}])
