"""The worked example of an expense approval, path by path, with the clock of the test and on both stores."""

from __future__ import annotations

import runpy
from datetime import timedelta

import pytest

from examples.test_documents import ROOT, played
from standfast import Actor, ForbiddenError, HumanTask, RejectedError, Run
from standfast.testing import ManualEngine
from support.engines import Place

EXAMPLE = runpy.run_path(str(ROOT / "examples" / "expense_approval.py"))
EXPENSE, hire = EXAMPLE["EXPENSE"], EXAMPLE["hire"]
DAY = timedelta(days=1)


@pytest.fixture(name="engine")
def _engine(place: Place) -> ManualEngine:
    """The office of the example: Dora directs, Max manages, Fay and Gus are in finance, and so is Max."""
    engine = place.engine().register(EXPENSE)
    hire(engine)
    return engine


def spent(engine: ManualEngine, amount: int, *, who: str = "rita") -> Run[object]:
    """Somebody has spent money, and the question was put."""
    run: Run[object] = engine.acting(who).start(EXPENSE, {"who": who, "amount": amount, "what": "lamps"})
    engine.drain()
    return run


def question(run: Run[object], name: str) -> HumanTask:
    """The question of a step that was asked."""
    return next(each for each in run.tasks() if each.name == name)


def decide(engine: ManualEngine, run: Run[object], name: str, who: str, *, comment: str = "") -> None:
    """Somebody approves, or rejects if they say why."""
    tasks = engine.acting(who).tasks
    (tasks.reject if comment else tasks.approve)(question(run, name), comment=comment)
    engine.drain()


def told(engine: ManualEngine, who: str) -> list[str]:
    """What somebody was told, oldest first."""
    return [each.subject for each in reversed(engine.acting(who).notifications.mine())]


def is_paid(run: Run[object]) -> bool:
    """Whether the money is on its way."""
    return any(each.name == "pay" and each.status == "completed" for each in run.steps())


@pytest.mark.row("E-665")
def test_a_small_amount_takes_the_manager_alone(engine: ManualEngine) -> None:
    """The manager of whoever spent it is asked and told, by the directory; finance is not, and the money is paid."""
    run = spent(engine, 10_000)
    assert [each.why for each in engine.tasks.get(question(run, "manager")).people] == ["manager of rita"]
    assert told(engine, "max") == ["rita spent 10000 on lamps"]
    assert [len(engine.acting(each).tasks.list(mine=True)) for each in ("max", "fay", "dora")] == [1, 0, 0]
    decide(engine, run, "manager", "max")
    assert (run.describe().status, is_paid(run)) == ("completed", True)
    assert [each.name for each in run.tasks()] == ["manager"]
    assert told(engine, "rita") == ["10000 for lamps is paid"]


def test_a_large_amount_takes_finance_too(engine: ManualEngine) -> None:
    """Above 10,000 nothing is paid until both have approved; both names are found behind."""
    run = spent(engine, 10_001)
    decide(engine, run, "manager", "max")
    assert not is_paid(run)
    assert [len(engine.acting(each).tasks.list(mine=True)) for each in ("fay", "gus")] == [1, 1]
    decide(engine, run, "finance", "fay")
    assert is_paid(run)
    result = run.result()
    assert isinstance(result, dict)
    assert [result[each]["decided_by"] for each in ("manager", "finance")] == ["max", "fay"]


@pytest.mark.row("E-685")
def test_whoever_does_not_answer_is_reminded_after_eight_hours(engine: ManualEngine) -> None:
    """Once, and not before; nobody else hears of it."""
    spent(engine, 100)
    engine.advance(hours=7.9)
    assert told(engine, "max") == ["rita spent 100 on lamps"]
    engine.advance(hours=0.2)
    assert told(engine, "max")[1:] == ["Reminder: rita spent 100 on lamps"]
    engine.advance(hours=8)
    assert (len(told(engine, "max")), told(engine, "dora")) == (2, [])


@pytest.mark.row("E-685")
def test_after_a_day_a_director_is_asked_as_well(engine: ManualEngine) -> None:
    """Until then the director has nothing to say; then the director or the manager decides, whoever comes first."""
    run = spent(engine, 100)
    with pytest.raises(ForbiddenError):
        decide(engine, run, "manager", "dora")
    engine.advance(hours=24)
    assert told(engine, "dora") == ["Escalated: rita spent 100 on lamps"]
    assert [each.key for each in engine.acting("dora").tasks.list(mine=True)] == [""]
    assert len(engine.tasks.list(role="director")) == 1
    decide(engine, run, "manager", "dora")
    assert is_paid(run)
    assert engine.acting("max").tasks.list(mine=True) == []


def test_whoever_stands_in_is_asked_and_both_names_are_on_the_decision(engine: ManualEngine) -> None:
    """During the holidays the question comes to the delegate; afterwards to the manager again."""
    ends = engine.clock.now() + 14 * DAY
    engine.acting("max").directory.delegate("max", "gus", ends_at=ends, reason="holidays")
    engine.acting("max").directory.absent("max", ends_at=ends)
    run = spent(engine, 100)
    assert [(each.name, each.stands_for) for each in engine.tasks.get(question(run, "manager")).people] == [
        ("gus", "max")
    ]
    decide(engine, run, "manager", "gus")
    (decision,) = engine.tasks.get(question(run, "manager")).decisions
    assert (decision.decided_by, decision.on_behalf_of) == ("gus", "max")
    engine.advance(15 * DAY)
    later = spent(engine, 100)
    assert [each.name for each in engine.tasks.get(question(later, "manager")).people] == ["max"]


def test_whoever_stands_in_has_not_two_pairs_of_eyes(engine: ManualEngine) -> None:
    """Neither who decided for the manager nor the manager may release the money; a third person has to."""
    engine.directory.delegate("max", "gus")
    run = spent(engine, 24_000)
    decide(engine, run, "manager", "gus")
    for name in ("gus", "max"):
        with pytest.raises(RejectedError) as refused:
            decide(engine, run, "finance", name)
        assert refused.value.reason == "not_distinct"
    decide(engine, run, "finance", "fay")
    assert is_paid(run)


@pytest.mark.row("E-684")
def test_nobody_approves_what_they_have_spent(engine: ManualEngine) -> None:
    """Fay is in finance, and does not release her own expense, not even as somebody who may do everything; Gus does."""
    run = spent(engine, 24_000, who="fay")
    decide(engine, run, "manager", "max")
    before = len(run.history())
    for actor in (Actor(id="fay"), Actor(id="fay", capabilities=frozenset({"*"}))):
        with pytest.raises(RejectedError) as refused:
            engine.acting(actor).tasks.approve(question(run, "finance"))
        assert refused.value.reason == "self_approval"
    assert len(run.history()) == before
    decide(engine, run, "finance", "gus")
    assert is_paid(run)


@pytest.mark.row("E-687")
def test_a_manager_who_is_in_finance_does_not_approve_twice(engine: ManualEngine) -> None:
    """Max has approved as manager; as one of finance he is refused, and told who decided what."""
    run = spent(engine, 24_000)
    decide(engine, run, "manager", "max")
    with pytest.raises(RejectedError, match="'max' has decided 'manager'") as refused:
        decide(engine, run, "finance", "max")
    assert refused.value.reason == "not_distinct"
    assert not is_paid(run)


@pytest.mark.row("E-679")
def test_a_rejection_needs_a_reason_and_nothing_is_paid(engine: ManualEngine) -> None:
    """The reason reaches whoever spent the money."""
    run = spent(engine, 24_000)
    with pytest.raises(RejectedError) as refused:
        engine.acting("max").tasks.reject(question(run, "manager"))
    assert refused.value.reason == "reason_required"
    decide(engine, run, "manager", "max", comment="not this year")
    assert (run.describe().status, is_paid(run), len(run.tasks())) == ("completed", False, 1)
    assert told(engine, "rita") == ["Not paid: not this year"]


@pytest.mark.row("E-682")
def test_nobody_who_can_decide_is_seen_and_mended(engine: ManualEngine) -> None:
    """Dora has no manager: the run stands, says why, and pays nothing; once somebody else is asked it goes on."""
    run = spent(engine, 100, who="dora")
    described = run.describe()
    assert (described.reason, "'dora' has no manager" in described.error) == ("no_approver", True)
    assert not is_paid(run)
    engine.tasks.reassign(question(run, "manager"), "fay", reason="no manager")
    decide(engine, run, "manager", "fay")
    assert is_paid(run)


def test_the_example_tells_its_story() -> None:
    """It runs by itself, every chapter ends as it should, and its runs are sound."""
    story = played("examples/expense_approval.py")
    assert story.count("the run is completed") == 5
    assert "gus for max decides 'manager': confirmed" in story
    assert "dora reads: Escalated: carl spent 900 on a course" in story
    assert "Folded again from their events, all runs are the same: True." in story
