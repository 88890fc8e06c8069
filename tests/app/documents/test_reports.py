"""Reports: counted from rows, they say what a plain walk over the histories says."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from statistics import mean, median_low
from typing import Any

import pytest

from app.documents.acting import ANN, BOB, CARL, GIVEN, asking, opened
from standfast import ForbiddenError, NotFoundError, PayloadError
from standfast.features.operations.reports import Report, spread
from standfast.testing import ManualEngine
from support.engines import Place

HOUR = timedelta(hours=1)


def worked(engine: ManualEngine, place: Place, rng: Random) -> None:
    """A dozen invoices on their way, some rejected and submitted again, some still waiting."""
    mine = asking(engine, BOB).documents
    for number in range(12):
        mine.create("invoice", GIVEN, id=f"I{number}")
        mine.transition("invoice", f"I{number}", "submit")
        place.clock.move(timedelta(minutes=rng.randint(1, 300)))
        for task in rng.sample(engine.tasks.list(), k=len(engine.tasks.list()) // 2):
            place.clock.move(timedelta(minutes=rng.randint(1, 90)))
            actor = ANN if task.name == "first" else CARL
            decision = rng.choice(["approved", "approved", "rejected"])
            asking(engine, actor).tasks.decide(
                task, decision, document_version=task.document_version, comment="because"
            )
            if decision == "rejected":
                mine.transition("invoice", task.key, "submit")


def walked(engine: ManualEngine) -> tuple[object, ...]:
    """The same from the histories, in the most obvious way."""
    cycles, took, answers, asked = [], dict[str, list[float]](), dict[str, list[float]](), dict[str, int]()
    reworked = 0
    runs = engine.documents.list("invoice", limit=100).items
    for row in runs:
        run = engine.run(row.instance)
        began = run.describe().created_at
        rest = [each.timestamp for each in run.history() if each.event_type == "round_completed"]
        cycles += [(rest[0] - began).total_seconds()] if rest else []
        tasks = run.tasks()
        names = [each.name for each in tasks]
        reworked += len(names) != len(set(names))
        for task in tasks:
            if task.decided_by:
                assert task.decided_at is not None
                seconds = (task.decided_at - task.asked_at).total_seconds()
                took.setdefault(task.name, []).append(seconds)
                answers.setdefault(task.decided_by, []).append(seconds)
            else:
                asked[task.name] = asked.get(task.name, 0) + 1
    return len(runs), cycles, took, answers, asked, reworked


def outcomes(engine: ManualEngine) -> dict[str, dict[str, int]]:
    """What each person has decided, and how often."""
    found: dict[str, Counter[str]] = {}
    for row in engine.documents.list("invoice", limit=100).items:
        for task in engine.run(row.instance).tasks():
            if task.decided_by:
                found.setdefault(task.decided_by, Counter())[task.decision] += 1
    return {name: dict(each) for name, each in found.items()}


@pytest.mark.row("EO-34")
def test_a_report_says_what_the_histories_say(place: Place) -> None:
    """Cycle time, time at each node, load by person and rework are those of a plain walk over every run."""
    engine = opened(place)
    worked(engine, place, Random(7))
    told = engine.reports.of("invoice")
    runs, cycles, took, answers, asked, reworked = walked(engine)
    assert isinstance(took, dict)
    assert isinstance(answers, dict)
    assert isinstance(cycles, list)
    assert isinstance(asked, dict)
    assert (told.runs, told.finished, told.reworked) == (runs, len(cycles), reworked)
    assert 0 < told.reworked < told.runs
    assert told.rework_rate == told.reworked / told.runs
    assert told.cycle == spread(cycles)
    steps = {each.node: each for each in told.steps}
    for node in ("first", "second"):
        assert (steps[node].took.count, steps[node].open) == (len(took[node]), asked.get(node, 0))
        assert (steps[node].total, steps[node].took.median) == (sum(took[node]), median_low(took[node]))
    assert {each.person: (each.decided, round(each.took.mean, 6)) for each in told.people if each.decided} == {
        name: (len(seconds), round(mean(seconds), 6)) for name, seconds in answers.items()
    }
    assert {each.person: each.outcomes for each in told.people if each.decided} == outcomes(engine)
    assert sum(each.open for each in told.people) == sum(asked.values())
    assert [each.total for each in told.steps] == sorted((each.total for each in told.steps), reverse=True)
    bounded(engine, told)


def bounded(engine: Any, told: Report) -> None:
    """By period, by number, by version, by tenant and by right."""
    half = told.until - 24 * HOUR
    early, late = engine.reports.of("invoice", until=half), engine.reports.of("invoice", since=half)
    assert (early.runs + late.runs, late.runs > 0) == (told.runs, True)
    assert [(each.runs, each.is_partial) for each in (engine.reports.of("invoice", limit=n) for n in (5, 12, 13))] == [
        (5, True),
        (12, False),
        (12, False),
    ]
    for name, version in (("invoice", "99"), ("order", "")):
        with pytest.raises(NotFoundError):
            engine.reports.of(name, version=version)
    assert engine.as_tenant("rival").reports.of("invoice").runs == 0
    with pytest.raises(ForbiddenError):
        asking(engine, BOB).reports.of("invoice")
    for wrong in (
        {"since": told.until, "until": told.since},
        {"since": datetime(2030, 1, 1)},  # noqa: DTZ001 - what is refused
        {"limit": 0},
        {"limit": 10**9},
        {"since": "yesterday"},
        {"until": datetime.max.replace(tzinfo=UTC), "limit": True},
    ):
        with pytest.raises(PayloadError):
            engine.reports.of("invoice", **wrong)
    with pytest.raises(PayloadError):
        engine.reports.of("")


def test_a_spread_is_made_of_its_values() -> None:
    """The smallest value that half, and nine tenths, do not exceed; nothing of nothing."""
    told = spread([float(each) for each in range(10, 0, -1)])
    assert (told.count, told.mean, told.median, told.p90, told.longest) == (10, 5.5, 5.0, 9.0, 10.0)
    assert spread([]).longest == 0
    assert spread([3.0]).p90 == 3
