"""What an advance costs and tells: one commit and no read, made of what the commit has in hand; and a front end reads no whole history."""

from __future__ import annotations

from datetime import timedelta
from typing import Never

import msgspec
import pytest

from app.processes.acting import ANN, BOB, INPUT, asking, ends, person, process, published, registered, system
from standfast import Actor, ForbiddenError, NotFoundError, ProcessInstance, RejectedError, Saga
from standfast.calls.context import CallContext
from standfast.features.processes import advance as advancing
from standfast.features.processes import calls as calls_of_processes
from standfast.features.processes import reads as processes
from standfast.features.tasks.authorization import judged
from standfast.kernel.history import StoredEvent
from standfast.testing import ManualEngine
from support.batching import ONE_COMMITTER, Batching
from support.engines import QUICK, Live, Place
from support.samples import Add, Counter

CIRCLE = process(person("one"), person("two"), *ends("done"), ways="one sent two,two sent one,two left done")
CLERKS = process(
    person("one", assignee={"role": "clerk"}), person("two", assignee={"role": "clerk"}), *ends("done"),
    ways="one sent two,one swapped two,two left done",
)  # fmt: skip


def refuse(*_: object) -> Never:
    """Nobody may be asked."""
    raise AssertionError("the database was asked")


def walked(engine: ManualEngine, steps: int) -> ProcessInstance:
    """An instance that has gone around for so many steps."""
    seen = engine.processes.start("w")
    for _ in range(steps):
        seen = engine.processes.advance(seen.id, "sent")
    return seen


@pytest.mark.row("P-061", "P-074", "P-079")
def test_an_advance_reads_nothing_outside_of_its_commit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step is found, and the answer made, where the command is decided; so is that of a start."""
    engine = place.engine()
    published(engine)
    first = asking(engine, ANN).processes.start("orders.approval", INPUT)
    asking(engine, BOB).processes.advance(first.id, "rejected")  # From here on it is known that the directory is empty.
    monkeypatch.setattr(CallContext, "_ask", refuse)
    begun = asking(engine, ANN).processes.start("orders.approval", INPUT, key="k")
    seen = asking(engine, BOB).processes.advance(begun.id, "approved", {"approval_notes": "fine"}, expected_version=1)
    with pytest.raises(RejectedError) as refused:
        asking(engine, BOB).processes.advance(begun.id, "approved")
    monkeypatch.undo()
    assert refused.value.reason == "INVALID_TRANSITION"
    assert (begun.version, begun.current_step, begun.state) == (1, "review", INPUT)
    assert (seen.version, seen.current_step, seen.state["approved_by"]) == (2, "process", "bob")
    assert seen == engine.processes.get(begun.id).instance


@pytest.mark.row("P-058", "P-076", "P-079")
def test_a_caller_who_waits_is_woken_by_the_commit(live: Live) -> None:
    """Nobody looks into the database for a minute, and the caller hears at once that the automatic steps are done."""
    engine = live.engine(msgspec.structs.replace(QUICK, poll_interval=timedelta(minutes=1)))
    ways = "a completed ask,ask sent b,b completed done"
    published(engine, process(system("a"), person("ask"), system("b"), *ends("done"), ways=ways))
    with engine:
        calls = engine.futures.processes  # Whoever is not woken waits longer than anybody here.
        begun = calls.start("w", patience=3600).result(50)
        seen = calls.advance(begun.id, "sent", patience=3600).result(50)
        assert (begun.current_step, begun.version) == ("ask", 2)
        assert (seen.status, seen.current_step, seen.version) == ("completed", "done", 4)
        assert seen == engine.processes.get(begun.id).instance


def test_what_a_caller_is_told_belongs_to_the_caller(place: Place) -> None:
    """Whatever is done to it changes nothing of the instance, which the engine keeps in memory."""
    engine = place.engine()
    published(engine, CIRCLE)
    begun = engine.processes.start("w", {"list": [1], "map": {"a": 1}})
    seen = engine.processes.advance(begun.id, "sent", {"more": {"b": 2}})
    for told in (begun, seen):
        told.state["list"].append(2)  # type: ignore[attr-defined]
        told.state["map"]["a"] = "spoilt"  # type: ignore[index]
    seen.state["more"].clear()  # type: ignore[attr-defined]
    assert engine.processes.advance(begun.id, "sent").state == {"list": [1], "map": {"a": 1}, "more": {"b": 2}}


@pytest.mark.row("P-063", "P-064")
def test_only_processes_are_advanced(place: Place) -> None:
    """Instances of other kinds cannot be found by this call, and nothing happens to them."""
    engine = place.engine().register(Counter()).register(Saga("s").human("ask").build())
    engine.deciders.execute(Counter, Add("c", 1))
    instances = [engine.start("s").id, engine.deciders.get(Counter, "c").id]
    for each in instances:
        with pytest.raises(NotFoundError) as missing:
            engine.processes.advance(each, "confirmed")
        assert str(missing.value) == str(NotFoundError("process instance", each))
    assert [each.instance for each in engine.tasks.list()] == instances[:1]


@pytest.mark.row("P-122")
def test_a_front_end_is_shown_the_end_of_a_long_trail(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so much of the history is read, and what is shown is what the whole trail ends with."""
    monkeypatch.setattr(processes, "_LATEST_EVENTS", 12)
    monkeypatch.setattr(processes, "_LATEST_ENTRIES", 8)
    read, events = list[int](), processes.KnownProcess.events

    def noted(known: processes.KnownProcess, *, after: int = 0) -> list[StoredEvent]:
        read.append(after)
        return events(known, after=after)

    monkeypatch.setattr(processes.KnownProcess, "events", noted)
    engine = place.engine()
    published(engine, CIRCLE)
    seen = walked(engine, 7)
    shown = engine.processes.get(seen.id)
    assert read == [1 + 1 + 7 * 3 - 12]
    whole = engine.processes.events(seen.id)
    assert shown.history == whole[-8:]
    assert (shown.step.id, shown.step.entered_at) == ("two", whole[-1].timestamp)


def test_a_front_end_is_told_when_a_step_began_that_much_has_happened_at(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the end of the history does not tell it, all of it is read."""
    monkeypatch.setattr(processes, "_LATEST_EVENTS", 4)
    engine = place.engine()
    published(engine, CIRCLE)
    seen = walked(engine, 2)
    begun = engine.processes.get(seen.id).step.entered_at
    place.clock.move(timedelta(hours=1))
    task = engine.tasks.list()[0].step_id
    for number in range(5):
        engine.tasks.comment(task, f"remark {number}")
    shown = engine.processes.get(seen.id)
    assert shown.step.entered_at == begun == shown.history[-1].timestamp


@pytest.mark.parametrize("times", [1, 100])
@pytest.mark.row("P-077")
def test_whoever_is_looked_up_is_judged_anew_when_others_were_faster(
    place: Place, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """The actor is looked up for the step that was seen: if there is another one by then, once more, and five times at most."""
    engine = place.engine()
    published(engine, CLERKS)
    for name in ("dan", "eva"):
        engine.directory.put(name)
        engine.directory.grant(name, "clerk")
    instance, left = engine.processes.start("w").id, [times]

    def overtaken(*given: object, **named: object) -> object:
        if left[0]:
            left[0] -= 1
            engine.tasks.comment(engine.tasks.list()[0].step_id, "a word")
        return judged(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(advancing, "judged", overtaken)
    calls = asking(engine, Actor(id="dan")).processes
    if times == 1:
        seen = calls.advance(instance, "sent")
        assert (seen.current_step, seen.version, left) == ("two", 3, [0])
    else:
        with pytest.raises(RejectedError) as refused:
            calls.advance(instance, "sent")
        assert (refused.value.reason, left) == ("VERSION_CONFLICT", [95])


@pytest.mark.row("P-122", "P-165")
def test_whoever_stands_in_for_several_looks_and_says_for_whom_they_advance(place: Place) -> None:
    """Nobody has to say it to look; an advance is refused without it, and is told with both names."""
    engine = place.engine()
    published(engine, CLERKS)
    for name in ("dan", "eva", "fay"):
        engine.directory.put(name)
    for name in ("dan", "eva"):
        engine.directory.grant(name, "clerk")
        engine.directory.delegate(name, "fay")
    instance = engine.processes.start("w").id
    engine.drain()
    fay = asking(engine, Actor(id="fay")).processes
    assert [each.is_allowed for each in fay.get(instance).choices] == [True, True]
    with pytest.raises(RejectedError, match="`on_behalf_of`"):
        fay.advance(instance, "sent")
    with pytest.raises(ForbiddenError, match="does not stand in for 'gil'"):
        fay.advance(instance, "sent", on_behalf_of="gil")
    assert fay.advance(instance, "sent", on_behalf_of="eva").current_step == "two"
    (decided,) = asking(engine, Actor(id="fay")).tasks.decided()
    assert (decided.decision.decided_by, decided.decision.on_behalf_of) == ("fay", "eva")


@pytest.mark.row("P-136")
def test_a_cancellation_of_a_version_that_was_seen_is_refused_if_another_is_there_at_its_commit(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if that came between the look and the commit."""
    engine = place.engine()
    published(engine, CIRCLE)
    instance, sent = engine.processes.start("w").id, advancing.carried_out

    def overtaken(*given: object, **named: object) -> object:
        monkeypatch.undo()
        engine.processes.advance(instance, "sent")
        return sent(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(calls_of_processes, "carried_out", overtaken)
    with pytest.raises(RejectedError) as refused:
        engine.processes.cancel(instance, expected_version=1)
    assert (refused.value.reason, engine.processes.get(instance).instance.status) == ("VERSION_CONFLICT", "active")


@pytest.mark.row("P-006", "P-077")
def test_nobody_is_let_through_because_it_was_suspended_when_they_were_looked_up(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is deactivated does not advance an instance either that goes on between the look and the commit.

    And they are told so of one alone that they can see.
    """
    engine = place.engine()
    published(engine, CLERKS)
    engine.directory.put("dan")
    engine.directory.deactivate("dan")
    instance, sent = engine.processes.start("w").id, advancing.carried_out
    engine.run(instance).pause()

    def overtaken(*given: object, **named: object) -> object:
        monkeypatch.undo()
        engine.run(instance).resume()
        return sent(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(advancing, "carried_out", overtaken)
    dan = Actor(id="dan", roles=frozenset({"clerk"}))
    with pytest.raises(ForbiddenError, match="deactivated"):
        asking(engine, dan).processes.advance(instance, "sent")
    with pytest.raises(NotFoundError):
        asking(engine, dan, partition="south").processes.advance(instance, "sent")
    assert engine.processes.get(instance).instance.current_step == "one"


def test_each_caller_is_told_what_came_of_the_call_itself(live: Live) -> None:
    """Also if several commands of one instance share a transaction: none is told what only the next one led to."""
    engine = live.engine(ONE_COMMITTER)
    published(engine, CIRCLE)
    batching = Batching(engine)
    with engine:
        instance = engine.processes.start("w").id
        with batching.one():
            replies = [engine.futures.processes.advance(instance, "sent", {"n": number}) for number in range(3)]
        told = [each.result(30) for each in replies]
    assert batching.sizes[-1] == len(told), "they did not share a transaction"
    assert [(each.current_step, each.version, each.state["n"]) for each in told] == [
        ("two", 2, 0), ("one", 3, 1), ("two", 4, 2),
    ]  # fmt: skip


@pytest.mark.row("P-053", "P-055")
def test_a_key_that_was_used_just_now_shows_nothing_of_another_process(live: Live) -> None:
    """Of several starts with one key in one transaction the first one counts, and whoever meant another process is refused."""
    engine = live.engine(ONE_COMMITTER)
    registered(engine, CIRCLE)
    registered(engine, CIRCLE.replace('"id": "w"', '"id": "v"'))
    batching = Batching(engine)
    with engine:
        calls = engine.futures.processes
        with batching.one():
            replies = [calls.start(each, {"n": 1}, idempotency_key="k") for each in ("w", "w", "v")]
        assert replies[0].result(30) == replies[1].result(30)
        with pytest.raises(RejectedError) as refused:
            replies[2].result(30)
    assert batching.sizes[-1] == len(replies), "they did not share a transaction"
    assert refused.value.reason == "IDEMPOTENCY_CONFLICT"
