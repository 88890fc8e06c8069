"""Many runs that pause, and many that go on at the same moment, with real threads."""

from __future__ import annotations

from typing import cast

import msgspec
import pytest

from app.rules.test_resuming import ALLOW, CALL, rules
from app.rules.test_runs import MANAGER, QUIET
from app.sagas.acting import Stage
from standfast import load_rules
from support.engines import Live

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
    for total, each in enumerate(small):
        assert engine.run(each.result().id).result() == {"order": {"total": total}}
    paused = engine.runs.paused(limit=500)
    paused += engine.runs.paused(limit=500, after=paused[-1])
    assert {each.id for each in paused} == {each.id for each in runs}
    manager = engine.acting(MANAGER).futures.tasks
    tasks = [each.tasks()[0].step_id for each in runs]
    for some in (tasks[:AT_ONCE], tasks[AT_ONCE:]):
        for reply in [manager.decide(each, "approved") for each in some]:
            reply.result()
    for run, before in zip(runs, given, strict=True):
        after = cast("dict[str, object]", run.result())
        assert msgspec.json.encode({"order": after["order"]}) == msgspec.json.encode(before)
    assert len(stage.calls) == len({ctx.instance for ctx in stage.contexts("ship")}) == MANY
