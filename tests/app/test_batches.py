"""Batches: one thing done to many runs, with what became of each; taken is not done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from app.processes.acting import ends, person, process, registered
from standfast import (
    Actor,
    DeadLetter,
    Decision,
    ForbiddenError,
    Moment,
    NotFoundError,
    PayloadError,
    RequestContext,
    ReusedIdError,
    Saga,
    Settings,
    StoreUnavailableError,
)
from standfast.calls.context import CallContext
from standfast.features.batches import executor as batching
from standfast.features.batches.views import Batch
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import AT_ONCE, Place
from support.samples import END, Answer, Do, Noted, Notes, Puppet

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
GHOST = UUID("0193a2b4-0000-7000-8000-00000000dead")
ASK = Saga("ask").step("begin", lambda: None, undo=lambda: None).wait_for("wait", signal="done").build()
broken: set[str] = set()


def _print(name: str) -> None:
    if name in broken:
        raise ValueError(f"{name} is on fire")


FRAGILE = Saga("fragile", dlq=True).step("print", _print, attempts=1).wait("rest", HOUR).build()


def opened(place: Place) -> ManualEngine:
    """An engine with a workflow that waits and one that may give up."""
    broken.clear()
    return place.engine().register(ASK).register(FRAGILE)


def items(engine: ManualEngine, batch: Batch) -> list[tuple[str, str]]:
    """What became of the items of a batch."""
    return [(each.status, each.detail) for each in engine.batches.items(batch.id)]


def proved(engine: ManualEngine, batch: Batch) -> None:
    """What is stored of a batch is what its events tell."""
    assert engine.instances.verify(batch.instance).differences == []


@pytest.mark.row("EO-32")
def test_each_item_has_an_outcome_of_its_own(place: Place) -> None:
    """Runs are cancelled, what cannot be is refused with its reason, and the counts say how many."""
    engine = opened(place)
    runs = [engine.start("ask") for _ in range(3)]
    engine.drain()
    runs[0].abort()
    engine.drain()
    batch = engine.batches.begin("cancel", [*runs, GHOST, str(runs[1].id)], reason="the shop closes")
    assert (batch.status, batch.total, batch.counts.waiting) == ("running", 4, 4)
    engine.drain()
    batch = engine.batches.get(batch.id)
    assert [each[0] for each in items(engine, batch)] == ["refused", "accepted", "accepted", "refused"]
    engine.advance(2 * SECOND)
    batch = engine.batches.get(batch.id)
    assert (batch.status, batch.is_clean, batch.counts.done, batch.counts.refused) == ("completed", False, 2, 2)
    told = items(engine, batch)
    assert "already in terminal state: aborted" in told[0][1]
    assert str(GHOST) in told[3][1]
    assert [each.describe().status for each in runs] == ["aborted", "cancelled", "cancelled"]
    assert "the shop closes" in str(runs[1].history())
    proved(engine, batch)


def test_pause_and_resume_are_done_when_they_are(place: Place) -> None:
    """All live runs of a definition are paused and go on; what is so already counts as done."""
    engine = opened(place)
    runs = [engine.start("ask") for _ in range(3)]
    engine.drain()
    runs[0].pause()
    for verb, status in (("pause", "paused"), ("resume", "running")):
        batch = engine.batches.begin(verb, definition="ask")  # type: ignore[arg-type]
        engine.drain()
        batch = engine.batches.get(batch.id)
        assert (batch.status, batch.is_clean, batch.total) == ("completed", True, 3)
        assert {each.describe().status for each in runs} == {status}


@pytest.mark.row("EO-32")
def test_a_database_that_was_away_refuses_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that could not be looked at for a moment is tried again, and is not told to be refused."""
    engine = opened(place)
    runs = [engine.start("ask") for _ in range(3)]
    engine.drain()
    looks = iter(range(3))

    def check(desk: CallContext, run: InstanceId) -> None:
        if next(looks, None) == 1:
            raise StoreUnavailableError("the database is away")
        found(desk, run)

    found = batching._check_workflow
    monkeypatch.setattr(batching, "_check_workflow", check)
    batch = engine.batches.begin("pause", runs)
    engine.drain()
    assert batch.counts.waiting == engine.batches.get(batch.id).counts.waiting == 3
    engine.advance(HOUR)
    assert items(engine, batch) == [("done", "")] * 3
    proved(engine, batch)


@pytest.mark.row("EO-32")
def test_what_is_put_back_is_followed_until_it_is_done_or_gives_up_again(place: Place) -> None:
    """A dead letter that was requeued is accepted; it is done when its step is, and failed when it gives up again, however long that takes."""
    engine = opened(place)
    broken.update({"a", "b"})
    for name in ("a", "b", "c"):
        engine.start("fragile", {"name": name}, key=name)
    engine.drain()
    assert len(engine.dead_letters.list()) == 2
    broken.remove("a")
    batch = engine.batches.begin("requeue", definition="fragile", batch_id="again")
    engine.drain()
    with pytest.raises(ReusedIdError):
        engine.batches.begin("requeue", definition="fragile", batch_id="again", reason="another one")
    batch = engine.batches.get(batch.id)
    assert (batch.status, batch.counts.accepted) == ("running", 2)
    engine.advance(2 * SECOND)
    batch = engine.batches.get(batch.id)
    assert sorted(items(engine, batch)) == [("done", ""), ("failed", "it gave up again: ValueError: b is on fire")]
    assert batch.status == "completed"
    assert (
        engine.batches.begin("requeue", definition="fragile", batch_id="again") == batch
    )  # Whatever there is to do now.
    broken.clear()
    runs = [each.id for each in engine.runs.list().items]
    again = engine.batches.begin("retry", runs)
    engine.advance(2 * SECOND)
    found = engine.batches.get(again.id)
    assert (found.counts.done, found.counts.refused, found.status) == (1, 2, "completed")
    assert ("refused", "nothing of it gave up") in items(engine, again)
    proved(engine, found)


def judged(state: Notes, command: Do, moment: Moment) -> Answer:
    """A decider with a timer, of which some commands cannot be decided."""
    del state, moment
    if f"{command.workflow_id} {command.what}" in broken:
        raise ValueError("broken")
    decision = Decision.event(Noted(command.what))
    return decision.with_timer_after(HOUR, Do(command.workflow_id, "rang")) if command.what == "set" else decision


@pytest.mark.row("EO-32")
def test_timers_and_messages_are_put_back_too(place: Place) -> None:
    """A timer is done when it has fired, and has failed if it gave up again or its instance had no use for it; a message when it was decided, equal ones each for itself."""
    engine = place.engine(Settings(command_retry=AT_ONCE)).register(Puppet(judged))
    broken.update({f"{key} rang" for key in ("well", "ill", "over")}, {"well pay", "new pay", "ill pay"})
    for key in ("well", "ill", "over"):
        engine.deciders.execute(Puppet, Do(key, "set"))
    for key in ("well", "well", "new", "ill"):
        engine.deciders.submit(Puppet, Do(key, "pay"))
    engine.advance(2 * HOUR)
    engine.deciders.execute(Puppet, Do("over", END))
    letters = {each.id: (each.source, _key(engine, each)) for each in engine.dead_letters.list()}
    broken.difference_update({"well rang", "well pay", "new pay"})
    batch = engine.batches.begin("requeue", definition="puppet")
    assert batch.counts.waiting == len(letters) == 7
    engine.advance(2 * SECOND)
    told = [(*letters[each.letter or 0], each.status, each.detail) for each in engine.batches.items(batch.id)]
    again = "it gave up again: 'puppet' raised ValueError('broken') on Do"
    unfit = "it was not put back: a newer timer has its key, its instance has ended, or it was discarded"
    assert sorted(told) == [
        ("inbox", "ill", "failed", again),
        ("inbox", "new", "done", ""),
        ("inbox", "well", "done", ""),
        ("inbox", "well", "done", ""),
        ("timer", "ill", "failed", again),
        ("timer", "over", "failed", unfit),
        ("timer", "well", "done", ""),
    ]
    found = engine.batches.get(batch.id)
    assert (found.status, found.counts.done, found.counts.failed) == ("completed", 4, 3)
    notes: Notes = engine.deciders.state(Puppet, "well")
    assert sorted(notes) == ["pay", "pay", "rang", "set"]
    proved(engine, found)


@pytest.mark.row("EO-32")
def test_all_of_one_cause_are_put_back_or_forgotten(place: Place) -> None:
    """A cause is what letters say, but for numbers and names: those of another stay, what cannot be done to one is told of it, and the call is safe to repeat."""
    engine = opened(place).register(Puppet(judged))
    broken.update({"1", "2", "ill pay"})
    for name in ("1", "2"):
        engine.start("fragile", {"name": name}, key=name)
    for _ in range(2):
        engine.deciders.submit(Puppet, Do("ill", "pay"))
    engine.drain()
    engine.advance(HOUR)
    marks = {each.definition: each.fingerprint for each in engine.dead_letters.groups().items if each.count == 2}
    assert marks.keys() == {"fragile", "puppet"}
    broken.discard("1")
    asked = {"cause": marks["fragile"], "reason": "the fire is out", "batch_id": "b"}
    batch = engine.batches.begin("requeue", **asked)  # type: ignore[arg-type]
    assert (batch.total, batch.cause) == (2, marks["fragile"])
    engine.advance(2 * SECOND)
    assert sorted(items(engine, batch)) == [("done", ""), ("failed", "it gave up again: ValueError: 2 is on fire")]
    assert engine.batches.begin("requeue", **asked).total == 2  # type: ignore[arg-type]  # Although one letter is left.
    with pytest.raises(ReusedIdError):
        engine.batches.begin("discard", **asked)  # type: ignore[arg-type]
    kept = engine.batches.begin("discard", cause=marks["fragile"])
    assert items(engine, kept) == [
        ("refused", "its workflow waits for this step: requeue it, or cancel or abort the workflow")
    ]
    weak = engine.acting(Actor(id="bob", capabilities=frozenset({"batch:*"})))
    barred = weak.batches.begin("discard", cause=marks["puppet"])
    engine.drain()
    assert [each[0] for each in items(engine, barred)] == ["refused", "refused"]
    assert "execution:repair" in items(engine, barred)[0][1]
    gone = engine.batches.begin("discard", cause=marks["puppet"])
    engine.drain()
    assert (engine.batches.get(gone.id).is_clean, items(engine, gone)) == (True, [("done", ""), ("done", "")])
    assert [each.definition for each in engine.dead_letters.list()] == ["fragile"]
    for stranger in (engine, engine.as_tenant("rival")):
        with pytest.raises(NotFoundError, match=r"dead_letters\.groups"):
            stranger.batches.begin("requeue", cause=marks["puppet"])
    with pytest.raises(NotFoundError, match="did you mean 'fragile'"):
        engine.dead_letters.groups(definition="fragil")
    assert engine.dead_letters.groups(definition="ask").items == []
    assert engine.dead_letters.groups(definition="puppet").items == []
    proved(engine, engine.batches.get(gone.id))


def _key(engine: ManualEngine, letter: DeadLetter) -> str:
    """The key of the instance that a letter is about."""
    return letter.key or next(each.key for each in engine.instances.list() if each.id == letter.instance)


def test_many_are_started_and_followed_to_their_ends(place: Place) -> None:
    """A start is one run for each input, done when that has ended well; those that have not when the time is over are said to be no further than accepted."""
    engine = opened(place)
    batch = engine.batches.begin(
        "start", inputs=[{"n": n} for n in range(25)], definition="ask", follow=HOUR, batch_id="b"
    )
    assert (
        engine.batches.begin("start", inputs=[{"n": n} for n in range(25)], definition="ask", follow=HOUR, batch_id="b")
        == batch
    )
    with pytest.raises(ReusedIdError):
        engine.batches.begin("start", inputs=[{"n": 1}], definition="ask", batch_id="b")
    engine.drain()
    runs = engine.runs.list(parent=batch.instance).items
    assert sorted(engine.runs.get(each.id).input["n"] for each in runs) == list(range(25))  # type: ignore[type-var]
    assert engine.batches.get("b").counts.accepted == 25
    by_number = {each.number: each.run for each in engine.batches.items("b")}
    for number in range(1, 21):
        assert by_number[number] is not None
        engine.run(by_number[number]).signal("done")  # type: ignore[arg-type]
    engine.run(by_number[21]).abort("no need")  # type: ignore[arg-type]
    engine.drain()
    found = engine.batches.get("b")
    assert (found.counts.done, found.counts.failed, found.counts.accepted, found.status) == (20, 1, 4, "running")
    assert engine.batches.items("b", status="failed")[0].detail == "it ended as aborted: no need"
    engine.advance(HOUR)
    found = engine.batches.get("b")
    assert (found.status, found.counts.accepted, found.is_clean) == ("completed", 4, False)
    proved(engine, found)


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled", "aborted"])
def test_a_started_run_is_done_only_if_it_completes(place: Place, end: str) -> None:
    """The item of a run that completed is done; the item of a run that ended in any other way has failed, and says how it ended."""
    engine = opened(place).register(Saga("weak").step("print", _print, attempts=1).build())
    broken.add("bad")
    definition = "weak" if end == "failed" else "ask"
    batch = engine.batches.begin("start", inputs=[{"name": "bad"}], definition=definition, follow=HOUR)
    engine.drain()
    (found,) = engine.runs.list(parent=batch.instance).items
    run = engine.run(found.id)
    match end:
        case "completed":
            run.signal("done")
        case "cancelled":
            engine.futures.run(found.id).cancel()
        case "aborted":
            run.abort()
        case _:
            pass  # It has failed by itself.
    engine.drain()
    assert run.describe().status == end
    ((status, detail),) = items(engine, batch)
    assert status == ("done" if end == "completed" else "failed")
    assert detail.startswith("" if end == "completed" else f"it ended as {end}")
    assert bool(detail) is (end != "completed")
    proved(engine, engine.batches.get(batch.id))


def test_a_batch_that_is_cancelled_says_what_became_of_what_was_being_tried(place: Place) -> None:
    """Items in a worker's hands when the batch is cancelled have an outcome; the batch ends after them, not before."""
    engine = opened(place)
    runs = [engine.start("ask") for _ in range(2)]
    engine.drain()
    batch = engine.batches.begin("pause", runs)
    assert engine.batches.cancel(batch.id, "enough").counts.waiting == 2
    engine.drain()
    batch = engine.batches.get(batch.id)
    assert (batch.status, items(engine, batch)) == ("cancelled", [("done", "")] * 2)
    proved(engine, batch)


def test_a_batch_that_is_cancelled_follows_what_it_took(place: Place) -> None:
    """Nothing more is tried, and what was taken is looked at until it is what was wanted, or the time of that is over."""
    engine = opened(place)
    slow = Saga("slow").step("x", lambda: None).on_failure("undo", lambda: None, start_after=5).wait_for("w", "w")
    engine.register(slow.build())
    runs = [engine.start("slow") for _ in range(2)]
    engine.drain()
    batch = engine.batches.begin("cancel", runs, per_second=1)
    engine.drain()
    cancelled = engine.batches.cancel(batch.id, "enough")
    assert (cancelled.status, cancelled.ended_at, cancelled.counts.accepted) == ("cancelled", None, 1)
    engine.advance(HOUR)
    batch = engine.batches.get(batch.id)
    assert (batch.status, batch.ended_at is None) == ("cancelled", False)
    assert [each.status for each in engine.batches.items(batch.id)] == ["done", "dropped"]
    proved(engine, batch)


def test_runs_of_a_batch_that_is_cancelled_are_followed_to_their_end(place: Place) -> None:
    """Whoever began a list of starts and took that back learns what the first ones came to."""
    engine = opened(place)
    batch = engine.batches.begin("start", definition="ask", inputs=[{}, {}], per_second=1)
    engine.drain()
    engine.batches.cancel(batch.id, "enough")
    [run] = engine.runs.list().items
    engine.futures.run(run.id).cancel("not needed")
    engine.drain()
    [(status, detail), _] = items(engine, batch)
    assert (status, detail, engine.batches.get(batch.id).ended_at is None) == (
        "failed",
        "it ended as cancelled: not needed",
        False,
    )


@pytest.mark.parametrize("verb", ["retry", "requeue", "discard"])
def test_the_reason_of_a_batch_is_in_the_audit_of_each_item(place: Place, verb: Any) -> None:
    """As that of whoever does the same to one of them."""
    engine = opened(place)
    engine.register(Saga("dead", dlq=True).step("x", lambda: 1 / 0, attempts=1).build())
    undone = Saga("undone").step("x", lambda: None).on_failure("undo", lambda: 1 / 0, attempts=1)
    engine.register(undone.step("y", lambda: 1 / 0, attempts=1).build())
    run = engine.start("undone" if verb == "discard" else "dead")
    engine.drain()
    [letter] = engine.dead_letters.list()
    given = {"runs": [run]} if verb == "retry" else {"letters": [letter.id]}
    engine.batches.begin(verb, reason="the bank is back", **given)
    engine.drain()
    if verb == "discard":
        [change] = engine.audit.changes(subject="letter")
        assert (change.action, change.reason) == ("discard", "the bank is back")
    else:
        assert run.audit()[-1].reason == "the bank is back"


def test_a_batch_keeps_to_its_rate_and_can_be_cancelled(place: Place) -> None:
    """No more items are tried in a second than it may, and those that were not tried when it is cancelled never are."""
    engine = opened(place)
    runs = [engine.start("ask") for _ in range(6)]
    engine.drain()
    batch = engine.batches.begin("pause", runs, per_second=2)
    engine.drain()
    assert engine.batches.get(batch.id).counts.done == 2
    engine.advance(SECOND)
    assert engine.batches.get(batch.id).counts.done == 4
    cancelled = engine.batches.cancel(batch.id, "enough")
    assert (cancelled.status, cancelled.counts.done, cancelled.counts.dropped) == ("cancelled", 4, 2)
    assert (cancelled.cancelled_by, cancelled.cancel_reason) == ("system", "enough")
    engine.advance(HOUR)
    assert sum(each.describe().status == "paused" for each in runs) == 4


def test_a_batch_may_do_what_whoever_began_it_may(place: Place) -> None:
    """Every item takes the capability that it takes alone; other tenants and other parts of the tenant neither see the batch nor lend it their runs."""
    engine = opened(place)
    able = frozenset({"batch:manage", "batch:read", "execution:read"})
    north = engine.acting(
        RequestContext(partition="north", actor=Actor(id="ann", capabilities=able | {"execution:pause"}))
    )
    mine, other, foreign = north.start("ask"), engine.start("ask"), engine.as_tenant("rival").start("ask")
    engine.drain()
    batch = north.batches.begin("pause", [mine.id, other.id, foreign.id])
    place.clock.move(SECOND)
    weak = engine.acting(Actor(id="bob", capabilities=able)).batches.begin("pause", [other.id])
    engine.drain()
    assert [each.status for each in north.batches.items(batch.id)] == ["done", "refused", "refused"]
    assert "execution:pause" in items(engine, weak)[0][1]
    strangers = (
        engine.acting(RequestContext(partition="south", actor=Actor(id="sue", capabilities=able))),
        engine.as_tenant("rival"),
    )
    for stranger in strangers:
        assert stranger.batches.list() == []
        for ask in (stranger.batches.get, stranger.batches.items, stranger.batches.cancel):
            with pytest.raises(NotFoundError):
                ask(batch.id)
    with pytest.raises(ForbiddenError, match="batch:manage"):
        engine.acting("eve").batches.begin("pause", [mine.id])
    guarded = process(person("a"), *ends("z"), ways="a go z", capabilities={"start": "orders:start"})
    registered(engine, guarded)
    with pytest.raises(ForbiddenError, match="orders:start"):  # At once, and not of each item.
        engine.acting(Actor(id="bob", capabilities=able)).batches.begin("start", definition="w", inputs=[{}])
    assert [each.id for each in engine.batches.list()] == [weak.id, batch.id]
    assert [each.id for each in engine.batches.list(after=weak)] == [batch.id]


WRONG: list[tuple[dict[str, object], str]] = [
    ({"verb": "explode", "runs": ["x"]}, "one of cancel"),
    ({"verb": "cancel"}, "either `runs`, or a `definition`"),
    ({"verb": "cancel", "runs": ["x"]}, "not the id of an instance"),
    ({"verb": "cancel", "runs": "abc"}, "is a list"),
    ({"verb": "cancel", "runs": 5}, "is a list"),
    ({"verb": "cancel", "runs": [str(GHOST)], "definition": "ask"}, "either"),
    ({"verb": "cancel", "letters": [1]}, "is about `runs`"),
    ({"verb": "cancel", "cause": "5c1e0b7a9d3f2e64"}, "a `cause` is one of dead letters"),
    ({"verb": "discard"}, "either `letters`, or a `definition`, or a `cause`"),
    ({"verb": "discard", "cause": "5c1e0b7a9d3f2e64", "letters": [1]}, "either `letters`"),
    ({"verb": "requeue", "cause": 5}, "cause"),
    ({"verb": "requeue", "cause": "x" * 10_000}, "cause"),
    ({"verb": "start", "definition": "ask"}, "needs"),
    ({"verb": "start", "inputs": [{}]}, "needs"),
    ({"verb": "start", "definition": "ask", "inputs": [5]}, "object with names"),
    ({"verb": "start", "definition": "ask", "inputs": [{"x": "x" * 2_000_000}]}, "limit"),
    ({"verb": "start", "definition": "ask", "inputs": [{}] * 10_001}, "at most 10000"),
    ({"verb": "cancel", "definition": "ask", "status": "odd"}, "no status"),
    ({"verb": "cancel", "definition": "ask", "per_second": -1}, "per_second"),
    ({"verb": "cancel", "definition": "ask", "per_second": "fast"}, "per_second"),
    ({"verb": "cancel", "definition": "ask", "follow": -1}, "follow"),
    ({"verb": "cancel", "definition": "ask", "batch_id": 5}, "batch id"),
]


def test_what_is_wrong_with_a_batch_is_said_and_nothing_is_done() -> None:
    """Whatever is wrong is refused in a sentence before anything is stored."""
    engine = ManualEngine().register(ASK)
    for given, told in WRONG:
        with pytest.raises(PayloadError, match=told):
            engine.batches.begin(**given)  # type: ignore[arg-type]
    with pytest.raises(NotFoundError, match="which is a number"):
        engine.batches.begin("requeue", letters=["one"])  # type: ignore[list-item]
    with pytest.raises(NotFoundError, match="nothing"):
        engine.batches.begin("start", inputs=[{}], definition="nothing")
    assert engine.batches.list() == []
    assert engine.batches.begin("cancel", definition="ask").status == "completed"
    with pytest.raises(PayloadError, match="one of waiting"):
        engine.batches.items(engine.batches.list()[0].id, status="odd")  # type: ignore[arg-type]
    engine.stop()
