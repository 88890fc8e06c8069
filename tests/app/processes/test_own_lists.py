"""The processes of a caller's own list: those that wait for an answer which the caller may give."""

from __future__ import annotations

from typing import Any

import pytest

from app.processes.acting import asking, ends, person, process, published
from standfast import Actor
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

WAYS = "first approved second,second approved done,second rejected done"
ROLES = frozenset({"boss"})
ANN, BEA = (Actor(id=each, roles=ROLES, capabilities=frozenset({"execution:read"})) for each in ("ann", "bea"))


def asked(name: str, **rest: Any) -> dict[str, Any]:
    """An approval of a boss."""
    return {"id": name, "type": "approval", "assignee": {"role": "boss"}, **rest}


def own(engine: ManualEngine, actor: Actor) -> list[InstanceId]:
    """What the lists of somebody have: of processes, with all totals and pages, and of questions."""
    calls = asking(engine, actor)
    everything = calls.processes.list(mine=True)
    ids, cursor = [], None
    for _ in range(20):
        page = calls.processes.list(mine=True, limit=1, cursor=cursor)
        ids += [each.id for each in page.items]
        assert (page.total, page.is_total_exact) == (everything.total, True)
        if (cursor := page.next) is None:
            break
    assert ids == [each.id for each in everything.items]
    assert (everything.total, calls.processes.list(mine=True, exact_total=True).total) == (len(ids), len(ids))
    assert {each.instance for each in calls.tasks.list(mine=True)} == set(ids)
    open_to = [each for each in ids if any(choice.is_allowed for choice in calls.processes.get(each).choices)]
    assert open_to == ids
    return ids


@pytest.mark.row("P-127", "EO-10")
def test_what_four_eyes_keep_somebody_from_is_not_in_their_list(place: Place) -> None:
    """`processes.list(mine=True)` lists the processes of `tasks.list(mine=True)`: not those that the caller has started, or has decided an earlier question of."""
    engine = place.engine()
    steps = [asked("first", self_approval=False), asked("second", distinct_from=["first"]), *ends("done")]
    published(engine, process(*steps, ways=f"first rejected done,{WAYS}"))
    anns, beas, other = (asking(engine, each).processes.start("w", {}).id for each in (ANN, BEA, Actor(id="eve")))
    assert own(engine, ANN) == [other, beas]
    assert own(engine, BEA) == [other, anns]
    asking(engine, BEA).processes.advance(anns, "approved")
    assert own(engine, BEA) == [other]
    assert own(engine, ANN) == [other, beas, anns]
    asking(engine, ANN).processes.advance(other, "approved")
    assert own(engine, ANN) == [beas, anns]


def test_a_delegation_brings_what_the_deputy_may_decide(place: Place) -> None:
    """Who stands in lists what they may decide in the place of others, by a role or by name, and nothing that four eyes keep them from."""
    engine = place.engine()
    published(
        engine,
        process(
            asked("first", self_approval=False),
            person("second"),
            *ends("done"),
            ways="first approved done,first rejected done,second done done",
        ),
    )
    for name in ("ann", "dan"):
        engine.directory.put(name)
    engine.directory.grant("ann", "boss")
    engine.directory.delegate("ann", "dan")
    dans, others = (asking(engine, Actor(id=each)).processes.start("w", {}).id for each in ("dan", "eve"))
    engine.drain()
    assert own(engine, Actor(id="dan", capabilities=frozenset({"execution:read"}))) == [others]
    assert asking(engine, Actor(id="ann")).processes.list(mine=True).total == 2
    assert dans != others
