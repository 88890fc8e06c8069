"""Many runs that pause, and many that go on at the same moment, with real threads."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from app.rules.test_resuming import ALLOW, CALL, rules
from app.rules.test_runs import MANAGER, QUIET
from app.sagas.acting import Stage
from holdfast import load_rules
from support.engines import Live
from support.waiting import eventually

MANY, AT_ONCE, SMALL = 1000, 100, 100
STEPS = [QUIET["steps"][0] | {"on_false": "ok"}, QUIET["steps"][1], CALL, ALLOW]


@pytest.mark.row("R-120", "R-121", "R-122", "R-126", "R-127")
def test_a_thousand_pause_and_all_of_them_go_on(live: Live) -> None:
    """Among others that do not pause: none is missed; a hundred that are approved at once go on once each, then all the others, with their data as it was."""
    stage = Stage()
    engine = live.engine().register(load_rules(rules(*STEPS))).handle("ship", stage.does("ship"))
    engine.start_worker()
    given = [{"order": {"total": 15000 + n, "note": f"ü {n}"}} for n in range(MANY)]
    started = [engine.futures.start("w", each) for each in given]
    small = [engine.futures.start("w", {"order": {"total": n}}) for n in range(SMALL)]
    runs = [engine.run(each.result().id) for each in started]
    for each in small:
        assert engine.run(each.result().id).result() == {"order": {"total": small.index(each)}}
    paused = engine.runs.paused(limit=500)
    paused += engine.runs.paused(limit=500, after=paused[-1])
    assert {each.id for each in paused} == {each.id for each in runs}
    (tasks, rest) = ([each.tasks()[0] for each in some] for some in (runs[:AT_ONCE], runs[AT_ONCE:]))
    manager = engine.acting(MANAGER).futures.tasks
    for some in (tasks, rest):
        for reply in [manager.decide(each.step_id, "approved") for each in some]:
            reply.result()
        eventually(partial(len, stage.calls))
    for run, before in zip(runs, given, strict=True):
        after = run.result()
        assert msgspec.json.encode({"order": after["order"]}) == msgspec.json.encode(before)  # type: ignore[index]
    assert len(stage.calls) == MANY
    assert len({ctx.instance for ctx in stage.contexts("ship")}) == MANY
