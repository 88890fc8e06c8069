"""Lists of processes: what they tell of each instance, and how many there are."""

from __future__ import annotations

import pytest

from app.processes.acting import ends, person, process, registered, system
from standfast import PayloadError
from standfast.store.ports.reading import MOST_COUNTED
from standfast.testing import ManualEngine
from support.engines import Place

TITLED = process(
    person("review", title="Review the order"),
    person("sign"),
    *ends("done"),
    ways="review approved sign, sign signed done",
    title="Order approval",
)


def begun(place: Place, text: str = TITLED) -> ManualEngine:
    """An engine that knows a process."""
    engine = place.engine()
    registered(engine, text)
    return engine


@pytest.mark.row("P-124", "P-159")
def test_a_list_tells_where_each_process_is(place: Place) -> None:
    """With the step, what people read of it, and what the process itself is called; in every list and in what a page is shown."""
    engine = begun(place)
    run = engine.processes.start("w").id
    (seen,) = engine.processes.list().items
    assert (seen.title, seen.current_step, seen.step_title) == ("Order approval", "review", "Review the order")
    engine.processes.advance(run, "approved")
    (seen,) = engine.processes.list(status="active").items
    assert (seen.current_step, seen.step_title) == ("sign", "sign")
    shown = engine.processes.get(run)
    assert (shown.instance.title, shown.instance.current_step) == ("Order approval", "sign")
    engine.processes.advance(run, "signed")
    (seen,) = engine.processes.list().items
    assert (seen.status, seen.current_step) == ("completed", "done")


def test_a_process_without_a_title_is_called_by_its_id(place: Place) -> None:
    """So there is always something to show."""
    engine = begun(place, process(person("review"), *ends("done"), ways="review approved done"))
    run = engine.processes.start("w")
    assert (run.title, engine.processes.list().items[0].title) == ("w", "w")


def test_a_title_is_no_part_of_what_runs_depend_on(place: Place) -> None:
    """The same version with another title is the same definition."""
    engine = begun(place)
    known = [(each.name, each.version) for each in engine.definitions.list()]
    registered(engine, TITLED.replace("Order approval", "Approval of orders"))
    assert [(each.name, each.version) for each in engine.definitions.list()] == known


@pytest.mark.row("P-124")
def test_a_suspended_process_is_listed_at_the_step_that_it_would_enter(place: Place) -> None:
    """As the descriptor tells it."""
    engine = begun(
        place, process(system("a"), system("b"), *ends("done"), ways="a completed b, b completed a, b error done")
    )
    engine.handle("orders.confirm", lambda: None)
    run = engine.processes.start("w").id
    engine.drain()
    shown = engine.processes.get(run).instance
    (seen,) = engine.processes.list(status="suspended").items
    assert (seen.current_step, shown.current_step) == ("a", "a")


@pytest.mark.row("P-124")
def test_a_total_says_whether_it_is_exact(place: Place) -> None:
    """No more than a thousand are counted, unless somebody asks for all of them."""
    engine = begun(place)
    calls = engine.acting("ann").futures.processes
    for reply in [calls.start("w") for _ in range(MOST_COUNTED + 5)]:
        reply.result()
    page = engine.processes.list(limit=1)
    assert (page.total, page.is_total_exact) == (MOST_COUNTED, False)
    page = engine.processes.list(limit=1, exact_total=True)
    assert (page.total, page.is_total_exact) == (MOST_COUNTED + 5, True)
    mine = engine.acting("ann").processes.list(limit=1, subject_id="ann", workflow_id="w", exact_total=True)
    assert (mine.total, mine.is_total_exact) == (MOST_COUNTED + 5, True)
    with pytest.raises(PayloadError, match=r"`exact_total` is True or False"):
        engine.processes.list(exact_total="yes")  # type: ignore[arg-type]
