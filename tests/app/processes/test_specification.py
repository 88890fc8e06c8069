"""The specification of processes, sentence by sentence, on both stores: what its calls do, refuse and tell."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.processes.acting import (
    ANN,
    BOB,
    CAT,
    EVE,
    INPUT,
    ORDERS,
    asking,
    ends,
    person,
    process,
    published,
    registered,
    system,
)
from standfast import Actor, NotFoundError, RejectedError, Saga, StandfastError
from standfast.contrib.prometheus import serve_metrics
from standfast.engine.common.telemetry import Happening, StepTimedOut
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place
from support.ruining import Ruin


def begun(engine: ManualEngine, **given: object) -> InstanceId:
    """An order that ann has started."""
    return asking(engine, ANN).processes.start("orders.approval", {**INPUT, **given}).id


def stood(engine: ManualEngine, instance: InstanceId) -> tuple[str, str]:
    """Status and current step."""
    seen = engine.processes.get(instance).instance
    return seen.status, seen.current_step


def trail(engine: ManualEngine, instance: InstanceId, **options: bool) -> list[str]:
    """What happened, by name."""
    return [each.event for each in engine.processes.events(instance, **options)]


def refusal(call: Any, *arguments: Any, **options: Any) -> str:
    """The code by which a call is refused; `not_found` where that is all that is told."""
    with pytest.raises(StandfastError) as refused:
        call(*arguments, **options)
    return str(getattr(refused.value, "reason", "") or refused.value.code)


def in_each_status(engine: ManualEngine) -> dict[str, InstanceId]:
    """An order in each of the five statuses."""
    backend = published(engine)
    found = {status: begun(engine) for status in ("active", "completed", "failed", "cancelled", "suspended")}
    asking(engine, BOB).processes.advance(found["completed"], "rejected")
    asking(engine, BOB).processes.cancel(found["cancelled"])
    backend.failing.add("confirm")
    asking(engine, BOB).processes.advance(found["suspended"], "approved")
    registered(engine, process(person("ask", timeout="1h"), *ends("done"), ways="ask sent done"))
    found["failed"] = engine.processes.start("w").id
    engine.advance(hours=2)
    return found


# -- statuses


@pytest.mark.row("P-028", "P-034", "P-035", "P-040", "P-041", "P-065", "P-117")
def test_only_an_active_one_advances_and_only_one_that_has_not_ended_is_cancelled(place: Place) -> None:
    """There are five statuses; what a call refuses changes nothing."""
    engine = place.engine()
    found = in_each_status(engine)
    for status, instance in found.items():
        before = engine.processes.get(instance)
        assert before.instance.status == status
        if status != "active":
            assert refusal(asking(engine, EVE).processes.advance, instance, "x") == "WORKFLOW_NOT_ACTIVE"
        if status not in {"active", "suspended"}:
            assert refusal(asking(engine, EVE).processes.cancel, instance) == "WORKFLOW_NOT_ACTIVE"
            assert refusal(asking(engine, EVE).processes.resume, instance) == "WORKFLOW_NOT_ACTIVE"
        assert engine.processes.get(instance) == before
    assert refusal(engine.processes.resume, found["active"]) == "INVALID_TRANSITION"
    aborted = engine.processes.start("w").id
    engine.run(aborted).abort()
    with pytest.raises(RejectedError, match="the instance is cancelled; it has ended"):  # In the words of processes.
        engine.processes.advance(aborted, "sent")
    for status in ("active", "suspended"):
        assert asking(engine, BOB).processes.cancel(found[status]).status == "cancelled"


@pytest.mark.row("P-063", "P-064", "P-071", "P-117", "P-128", "P-135", "C-42")
@pytest.mark.parametrize("where", [{"tenant": "t2"}, {"partition": "south"}])
def test_what_is_elsewhere_is_not_there(place: Place, where: dict[str, str]) -> None:
    """Another tenant and another partition are told the same as of an instance that nobody has, by every call, before anything else."""
    engine = place.engine()
    published(engine)
    instance, unknown = begun(engine), InstanceId(UUID(int=7))
    calls = asking(engine, CAT, **where).processes
    for call in (
        calls.get,
        calls.events,
        lambda which: calls.advance(which, "nonsense", expected_version=9),
        lambda which: calls.cancel(which, expected_version=9),
        calls.resume,
    ):
        told = []
        for which in (instance, unknown):
            with pytest.raises(NotFoundError) as nowhere:
                call(which)
            told.append(str(nowhere.value).replace(str(which), ""))
        assert told[0] == told[1]
    assert calls.list().total == 0
    assert stood(engine, instance) == ("active", "review")


@pytest.mark.row("P-062", "P-070", "C-46")
def test_of_several_reasons_the_earliest_is_told(place: Place) -> None:
    """Rights before the version, the version before the ways, the ways before the form; nothing is changed by any of them."""
    engine = place.engine()
    published(engine)
    instance = begun(engine, total=500)
    before = engine.processes.get(instance), engine.processes.events(instance)
    eve, bob = asking(engine, EVE).processes, asking(engine, BOB).processes
    wrong: dict[str, object] = {"approval_notes": 7}
    assert refusal(eve.advance, instance, "x", wrong, expected_version=9) == "FORBIDDEN"
    assert refusal(bob.advance, instance, "x", wrong, expected_version=9) == "VERSION_CONFLICT"
    assert refusal(bob.advance, instance, "x", wrong, expected_version=1) == "INVALID_TRANSITION"
    assert refusal(bob.advance, instance, "approved", wrong) == "INVALID_TRANSITION"
    assert refusal(asking(engine, CAT).processes.advance, instance, "approved", wrong) == "VALIDATION_ERROR"
    assert refusal(eve.cancel, instance, expected_version=9) == "FORBIDDEN"
    assert refusal(bob.cancel, instance, expected_version=9) == "VERSION_CONFLICT"
    assert (engine.processes.get(instance), engine.processes.events(instance)) == before


@pytest.mark.row("P-051")
def test_a_start_looks_at_rights_before_the_input(place: Place) -> None:
    """An unknown name comes first, then the capability, then what was given."""
    engine = place.engine()
    published(engine)
    hidden: dict[str, object] = {"_x": 1}
    assert refusal(asking(engine, EVE).processes.start, "nothing", hidden) == "not_found"
    assert refusal(asking(engine, EVE).processes.start, "orders.approval", hidden) == "FORBIDDEN"
    assert refusal(asking(engine, ANN).processes.start, "orders.approval", hidden) == "VALIDATION_ERROR"
    assert engine.processes.list().total == 0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda calls, which: calls.advance(which, 7),
        lambda calls, which: calls.advance(which, "returned", [1]),
        lambda calls, which: calls.advance(which, "returned", {"why": "unclear"}, expected_version="1"),
        lambda calls, which: calls.advance(which, "returned", {"why": "unclear"}, patience=-1),
        lambda calls, which: calls.cancel(which, 7),
        lambda calls, which: calls.cancel(which, expected_version=True),
        lambda calls, which: calls.get("x"),
        lambda calls, which: calls.list(status=7),
        lambda calls, which: calls.list(mine="x"),
        lambda calls, which: calls.list(cursor=7),
        lambda calls, which: calls.start("orders.approval", {"x": "y" * 5_000_000}),
    ],
)
def test_what_cannot_be_meant_is_refused(place: Place, wrong: Any) -> None:
    """A wrong type and something huge are told in a sentence, and change nothing."""
    engine = place.engine()
    published(engine)
    instance = begun(engine)
    assert refusal(wrong, asking(engine, CAT).processes, instance) == "bad_payload"
    assert engine.processes.get(instance).instance.version == 1
    assert engine.processes.list().total == 1


# -- who may


@pytest.mark.row("P-066", "P-165")
def test_a_step_asks_for_a_role_and_a_capability(place: Place) -> None:
    """Both, where both are named; where a step names neither, whoever comes may answer."""
    engine = place.engine()
    published(engine)
    instance = begun(engine)
    may, is_asked = frozenset({"orders:approve"}), frozenset({"approver"})
    for actor in (Actor(id="x", capabilities=may), Actor(id="x", roles=is_asked)):
        assert refusal(asking(engine, actor).processes.advance, instance, "approved") == "FORBIDDEN"
    asking(engine, Actor(id="x", roles=is_asked, capabilities=may)).processes.advance(instance, "approved")
    registered(engine, process(person("ask"), *ends("done"), ways="ask sent done"))
    anybodys = asking(engine, EVE).processes.start("w").id
    assert asking(engine, EVE).processes.advance(anybodys, "sent").status == "completed"


@pytest.mark.row("P-060", "C-44")
def test_capabilities_have_wildcards_and_are_denied_by_default(place: Place) -> None:
    """The capability itself, or a pattern that covers it, and nothing else."""
    engine = place.engine()
    published(engine, ORDERS.replace("orders:start", "orders:approve:execute"))
    for has, may in (
        ("orders:approve:execute", True),
        ("orders:approve:*", True),
        ("orders:*", True),
        ("*", True),
        ("orders:approve", False),
        ("orders:approve:execut", False),
        ("billing:*", False),
        ("orders:approve:executes", False),
    ):
        actor = Actor(id="x", capabilities=frozenset({has}))
        if may:
            asking(engine, actor).processes.start("orders.approval", INPUT)
        else:
            assert refusal(asking(engine, actor).processes.start, "orders.approval", INPUT) == "FORBIDDEN"


@pytest.mark.row("P-048", "C-43")
def test_who_approved_may_be_said_and_who_did_it_not(place: Place) -> None:
    """The state takes `approved_by` from the input if it is there; the trail always names the caller."""
    engine = place.engine()
    published(engine)
    said, unsaid = begun(engine), begun(engine)
    asking(engine, BOB).processes.advance(said, "approved", {"approved_by": "zoe"})
    asking(engine, BOB).processes.advance(unsaid, "approved")
    assert engine.processes.get(said).instance.state["approved_by"] == "zoe"
    assert engine.processes.get(unsaid).instance.state["approved_by"] == "bob"
    for instance in (said, unsaid):
        assert [each.actor_id for each in engine.processes.events(instance)[1:3]] == ["bob", "bob"]


# -- which way


@pytest.mark.row("P-069", "C-07")
@pytest.mark.parametrize(("n", "to"), [(10, "large"), (6, "medium"), (1, "small")])
def test_the_first_open_way_is_taken(place: Place, n: int, to: str) -> None:
    """In the order of the file: two with conditions that both hold of a large number, and one that is always open."""
    engine = place.engine()
    ways = "ask sent large,ask sent medium,ask sent small,ask again ask"
    text = process(person("ask"), *ends("large", "medium", "small"), ways=ways)
    text = text.replace('"to": "large"}', '"to": "large", "condition": "workflow.n > 9"}')
    published(engine, text.replace('"to": "medium"}', '"to": "medium", "condition": "workflow.n > 5"}'))
    instance = engine.processes.start("w", {"n": n}).id
    engine.processes.advance(instance, "again")
    engine.processes.advance(instance, "sent")
    assert stood(engine, instance) == ("completed", to)


@pytest.mark.row("P-067", "P-069")
def test_a_way_is_passed_over_by_who_lacks_its_guard(place: Place) -> None:
    """The one behind it is taken; who has the guard takes the first."""
    engine = place.engine()
    text = process(person("ask"), *ends("quick", "slow"), ways="ask sent quick,ask sent slow")
    registered(engine, text.replace('"to": "quick"}', '"to": "quick", "guard": "hurry"}'))
    one, other = (engine.processes.start("w").id for _ in range(2))
    asking(engine, EVE).processes.advance(one, "sent")
    asking(engine, Actor(id="x", capabilities=frozenset({"hurry"}))).processes.advance(other, "sent")
    assert (stood(engine, one), stood(engine, other)) == (("completed", "slow"), ("completed", "quick"))


@pytest.mark.row("P-013", "P-004")
def test_an_action_may_call_something_before_it_is_left(place: Place) -> None:
    """Between the answer and the next step, with what the answer brought; if it fails, the instance is suspended at the action."""
    engine = place.engine()
    ask = person("ask", operation="orders.confirm", input={"n": "workflow.n"}, output={"at": "response.at"})
    backend = published(
        engine,
        process({**ask, "retry": {"attempts": 1}}, person("next"), *ends("done"), ways="ask sent next,next sent done"),
    )
    instance, other = (engine.processes.start("w", {"n": 1}).id for _ in range(2))
    engine.processes.advance(instance, "sent", {"n": 2})
    engine.drain()
    assert backend.given == [("confirm", {"n": 2})]
    assert stood(engine, instance) == ("active", "next")
    assert engine.processes.get(instance).instance.state == {"n": 2, "at": "noon"}
    backend.failing.add("confirm")
    engine.processes.advance(other, "sent")
    engine.drain()
    assert stood(engine, other) == ("suspended", "ask")


@pytest.mark.row("P-089", "P-004")
def test_a_chain_stops_at_a_person(place: Place) -> None:
    """Three automatic steps in a row lead to a person, who is waited for."""
    engine = place.engine()
    backend = published(
        engine,
        process(
            *(system(name) for name in "abc"),
            person("ask"),
            *ends("done"),
            ways="a completed b,b completed c,c completed ask,ask sent done",
        ),
    )
    instance = engine.processes.start("w").id
    engine.drain()
    assert (stood(engine, instance), len(backend.calls)) == (("active", "ask"), 3)
    assert trail(engine, instance) == ["step_entered", "step_completed"] * 3 + ["step_entered"]


@pytest.mark.row("P-100")
@pytest.mark.parametrize(("count", "stands"), [(10, ("active", "ask")), (11, ("suspended", "s10"))])
def test_ten_automatic_steps_in_a_row_are_the_limit_unless_told_otherwise(
    place: Place, count: int, stands: tuple[str, str]
) -> None:
    """Exactly ten may run, notifications included; an eleventh is not called."""
    engine = place.engine()
    notice = {"id": "s0", "type": "notification", "operation": "orders.notify"}
    steps = [notice, *(system(f"s{number}") for number in range(1, count))]
    ways = ",".join(f"s{number} completed s{number + 1}" for number in range(count - 1))
    last = f",s{count - 1} completed ask,ask sent done"
    backend = published(engine, process(*steps, person("ask"), *ends("done"), ways=ways + last))
    instance = engine.processes.start("w").id
    engine.drain()
    assert stood(engine, instance) == stands
    assert len(backend.calls) == 10


@pytest.mark.row("P-167")
def test_steps_behind_an_error_count_too(place: Place) -> None:
    """Two steps that fail into each other are suspended like two that succeed."""
    engine = place.engine()
    ways = "a error b,b error a,a completed done,b completed done"
    backend = published(engine, process(system("a"), system("b", "orders.notify"), *ends("done"), ways=ways))
    backend.failing |= {"confirm", "notify"}
    instance = engine.processes.start("w").id
    engine.drain()
    assert (stood(engine, instance)[0], len(backend.calls)) == ("suspended", 10)
    error = engine.processes.get(instance).instance.state["_last_error"]
    assert isinstance(error, dict)
    assert error["code"] == "WORKFLOW_CHAIN_LIMIT"


@pytest.mark.row("P-099", "P-167", "EC-22")
@pytest.mark.parametrize(
    "pause", [{"id": "p", "type": "wait", "duration": "1h"}, person("p", timeout="1h", on_timeout="a")]
)
def test_steps_are_in_a_row_only_if_nothing_is_waited_for_in_between(place: Place, pause: dict[str, Any]) -> None:
    """A process that calls something every hour goes on for longer than ten hours, be it by a wait or by a timeout."""
    engine = place.engine()
    back = "p completed a" if pause["type"] == "wait" else "p sent done"
    text = process(system("a"), pause, *ends("done"), ways=f"a completed p,{back},a error done")
    backend = published(engine, text)
    instance = engine.processes.start("w").id
    for _ in range(12):
        engine.advance(hours=1)
    assert stood(engine, instance)[1] == "p"
    assert len(backend.calls) == 13


# -- time


@pytest.mark.row("P-032")
def test_what_has_no_timeout_does_not_expire(place: Place) -> None:
    """It has no time at which it does."""
    engine = place.engine()
    published(engine, process(person("ask"), *ends("done"), ways="ask sent done"))
    instance = engine.processes.start("w")
    assert instance.expires_at is None
    engine.advance(days=400)
    assert stood(engine, instance.id) == ("active", "ask")


@pytest.mark.row("P-109", "P-112")
def test_the_time_of_a_step_begins_with_each_entry(place: Place) -> None:
    """Whoever comes back to it has all of it again."""
    engine = place.engine()
    ask = person("ask", timeout="24h", on_timeout="late")
    published(engine, process(ask, *ends("done", "late"), ways="ask again ask,ask sent done"))
    instance = engine.processes.start("w").id
    engine.advance(hours=20)
    engine.processes.advance(instance, "again")
    engine.advance(hours=20)
    assert stood(engine, instance) == ("active", "ask")
    engine.advance(hours=5)
    assert stood(engine, instance) == ("completed", "late")


@pytest.mark.row("P-105", "P-113")
def test_a_deadline_that_passed_while_it_was_suspended_counts_once_it_is_resumed(place: Place) -> None:
    """A suspended one does not expire; one that goes on after its time has a minute left."""
    engine = place.engine()
    back = "{from: process, event: completed, to: review}"
    backend = published(engine, ORDERS.replace("{from: process, event: completed, to: notify}", back))
    backend.failing.add("confirm")
    instance = begun(engine)
    asking(engine, BOB).processes.advance(instance, "approved")
    engine.advance(days=4)
    assert stood(engine, instance) == ("suspended", "process")
    backend.failing.clear()
    engine.processes.resume(instance)
    engine.advance(seconds=59)
    assert stood(engine, instance) == ("active", "review")
    engine.advance(seconds=2)
    assert stood(engine, instance) == ("completed", "expired")
    assert engine.processes.process_timeouts() == 0


@pytest.mark.row("P-115")
def test_one_deadline_that_cannot_be_read_does_not_hold_up_the_others(place: Place) -> None:
    """The sweep does not raise, the other processes have moved on, and the one whose timer is spoilt stays where it is."""
    engine = place.engine()
    published(engine)
    spoilt, *others = [begun(engine) for _ in range(3)]
    is_file = place.url.startswith("sqlite")
    nonsense = "x'ff'" if is_file else "'\\xff'::bytea"
    Ruin(place.store).run(f"update {{}}timers set data = {nonsense} where instance = '{spoilt}'")
    place.clock.move(timedelta(hours=73))
    engine.processes.process_timeouts()
    assert [stood(engine, each) for each in others] == [("completed", "expired")] * 2
    assert stood(engine, spoilt) == ("active", "review")


@pytest.mark.row("P-104", "P-105", "P-115")
def test_one_sweep_does_all_that_is_due(place: Place) -> None:
    """However many there are, of whichever tenant; and one that cannot be moved on does not hold up the others."""
    engine = place.engine()
    published(engine)
    begun_by = [asking(engine, ANN, tenant=f"t{number % 2}") for number in range(230)]
    ids = [each.processes.start("orders.approval", INPUT).id for each in begun_by]
    place.clock.move(timedelta(hours=73))
    assert engine.processes.process_timeouts() == 230
    assert engine.processes.process_timeouts() == 0
    assert {asking(engine, BOB, tenant="t0").processes.get(each).instance.current_step for each in ids[::2]} == {
        "expired"
    }
    assert {asking(engine, BOB, tenant="t1").processes.list(status="completed").total} == {115}


@pytest.mark.row("P-107")
def test_a_timeout_is_told(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """The log, the metric and whoever measures hear of it once it is committed, with instance, workflow, step and tenant; of answers in time they do not."""
    heard: list[Happening] = []
    engine = place.engine()
    published(engine)
    engine.listen(heard.append)
    metrics = serve_metrics(engine, port=0)
    answered, late = begun(engine), asking(engine, ANN, tenant="t2").processes.start("orders.approval", INPUT).id
    asking(engine, BOB).processes.advance(answered, "rejected")
    with caplog.at_level("INFO", logger="standfast.timeouts"):
        engine.advance(hours=73)
    told = StepTimedOut(definition="orders.approval", tenant="t2", instance=late, kind="process", step="review")
    assert [each for each in heard if isinstance(each, StepTimedOut)] == [told]
    (logged,) = [each.getMessage() for each in caplog.records if each.name == "standfast.timeouts"]
    assert all(word in logged for word in ("review", str(late), "orders.approval", "t2"))
    with metrics as server:
        lines = httpx.get(f"http://127.0.0.1:{server.port}/metrics").text.splitlines()
    assert 'standfast_workflow_timeouts_total{definition="orders.approval"} 1' in lines


# -- waits


@pytest.mark.row("P-039", "C-24")
@pytest.mark.parametrize("wait", [{"duration": "9d"}, {"event": "paid"}, {"event": "paid", "key": "workflow.order"}])
def test_a_wait_can_be_resumed_by_hand(place: Place, wait: dict[str, str]) -> None:
    """Whoever may, and says that they saw it wait, lets it go on as if it had waited long enough; what it waited for has no effect any more."""
    engine = place.engine()
    step = {"id": "pause", "type": "wait", **wait}
    published(engine, process(step, person("ask"), *ends("done"), ways="pause completed ask,ask sent done"))
    instance = engine.processes.start("w", {"order": "o-1"}).id
    engine.drain()
    assert stood(engine, instance) == ("suspended", "pause")
    assert refusal(asking(engine, BOB).processes.resume, instance) == "FORBIDDEN"
    seen = engine.processes.get(instance).instance.version
    assert engine.processes.resume(instance, "the customer has called", expected_version=seen).status == "active"
    assert stood(engine, instance) == ("active", "ask")
    engine.publish("paid", "o-1")
    engine.advance(days=10)
    assert stood(engine, instance) == ("active", "ask")
    assert trail(engine, instance) == ["step_entered", "step_completed", "step_entered"]


# -- calls that are stuck


RETRIED = system("work", "work", retry={"attempts": 2, "delay": "1h"}, input={"n": "workflow.n"})
AGAIN = "work completed done,work retry work"


@pytest.mark.row("P-080", "P-098")
def test_a_call_is_made_again_by_the_event_for_that(place: Place) -> None:
    """By those who have the guard, at once, with what comes with it, and under the same idempotency key; without such a way it is refused."""
    engine = place.engine()
    text = process(RETRIED, *ends("done"), ways=AGAIN).replace('"to": "work"}', '"to": "work", "guard": "ops"}')
    registered(engine, text)
    keys: list[tuple[str, object]] = []

    def work(context: Any, data: dict[str, object]) -> dict[str, object]:
        keys.append((context.idempotency_key, data["n"]))
        if len(keys) == 1:
            raise ValueError("down")
        return {}

    engine.handle("work", work)
    instance = engine.processes.start("w", {"n": 1}).id
    engine.drain()
    assert (stood(engine, instance), len(keys)) == (("active", "work"), 1)
    assert refusal(asking(engine, EVE).processes.advance, instance, "retry") == "INVALID_TRANSITION"
    ops = asking(engine, Actor(id="op", capabilities=frozenset({"ops"}))).processes
    assert refusal(ops.advance, instance, "completed") == "INVALID_TRANSITION"
    assert refusal(ops.advance, instance, "retry", {"_x": 1}) == "VALIDATION_ERROR"
    ops.advance(instance, "retry", {"n": 2}, comment="the line is up again")
    engine.drain()
    assert stood(engine, instance) == ("completed", "done")
    assert [n for _, n in keys] == [1, 2]
    assert len({key for key, _ in keys}) == 1
    told = [(each.event, each.actor_id, each.comment) for each in engine.processes.events(instance)]
    assert told[1] == ("retry", "op", "the line is up again")


@pytest.mark.row("P-098")
def test_each_entry_of_a_step_has_a_key_of_its_own(place: Place) -> None:
    """A step that is entered again is other work; a call of the same entry that is made again is the same."""
    engine = place.engine()
    keys: list[str] = []
    text = process(
        system("work", "work", retry={"attempts": 2}),
        person("ask"),
        *ends("done"),
        ways="work completed ask,ask again work,ask sent done",
    )
    registered(engine, text)

    def work(context: Any) -> None:
        keys.append(context.idempotency_key)
        if len(keys) == 1:
            raise ValueError("down")

    engine.handle("work", work)
    instance = engine.processes.start("w").id
    engine.drain()
    engine.processes.advance(instance, "again")
    engine.drain()
    first, second, third = keys
    assert first == second != third


@pytest.mark.row("P-097")
@pytest.mark.row("G-38")
def test_a_call_that_is_not_back_in_time_is_made_again(place: Place) -> None:
    """A step that is stuck for longer than its definition expects is called anew, and the chain goes on."""
    engine = place.engine()
    calls: list[int] = []
    step = system("work", "work", retry={"attempts": 2}, stuck_after="5m")
    registered(engine, process(step, *ends("done"), ways="work completed done"))

    def work(attempt: int = 0) -> None:
        calls.append(attempt)
        if len(calls) == 1:
            place.clock.move(timedelta(minutes=6))

    engine.handle("work", work)
    instance = engine.processes.start("w").id
    engine.drain()
    assert (stood(engine, instance), len(calls)) == (("completed", "done"), 2)


# -- the trail


@pytest.mark.row("P-130", "P-131", "P-138", "C-06")
def test_every_event_has_its_name(place: Place) -> None:
    """Those of steps, of answers by their own words, of time and of the whole; in the order in which they happened, also at one instant."""
    engine = place.engine()
    found = in_each_status(engine)
    names = set().union(*(trail(engine, each, with_lifecycle=True) for each in found.values()))
    assert names >= {"step_entered", "step_completed", "step_failed", "approved", "rejected", "timeout", "cancelled"}
    assert names >= {"workflow_started", "workflow_completed", "workflow_failed"}
    custom = begun(engine)
    asking(engine, CAT).processes.advance(custom, "returned", {"why": "unclear"})
    assert trail(engine, custom) == ["step_entered", "step_completed", "returned", "step_entered"]
    for instance in (custom, *found.values()):
        told = engine.processes.events(instance, with_lifecycle=True)
        assert [each.timestamp for each in told] == sorted(each.timestamp for each in told)
        assert told == engine.processes.events(instance, with_lifecycle=True)
        assert len({each.id for each in told}) == len(told)


# -- lists


@pytest.mark.row("P-124", "P-139")
def test_lists_are_narrowed_by_each_filter_and_by_all(place: Place) -> None:
    """By workflow, subject, status, key and role, alone and together; pages go through all of them once, and the last one says so."""
    engine = place.engine()
    published(engine)
    registered(engine, process(person("ask", assignee={"user": "bob"}), *ends("done"), ways="ask sent done"))
    zoe = Actor(id="zoe", capabilities=frozenset({"orders:start"}))
    orders = [begun(engine) for _ in range(3)]
    zoes = asking(engine, zoe).processes.start("orders.approval", INPUT, key="k-7").id
    others = [asking(engine, zoe).processes.start("w").id for _ in range(2)]
    asking(engine, BOB).processes.advance(orders[0], "rejected")
    engine.register(Saga("plain").human("ask", role="approver").build())
    for _ in range(3):
        engine.start("plain")
    calls = asking(engine, BOB).processes

    def ids(**filters: Any) -> set[InstanceId]:
        page = calls.list(**filters)
        assert (page.total, page.is_total_exact) == (len(page.items), True)
        return {each.id for each in page.items}

    assert ids() == {*orders, zoes, *others}
    assert ids(workflow_id="w") == set(others)
    assert ids(subject_id="zoe") == {zoes, *others}
    assert ids(subject_id="zoe", workflow_id="w", status="active") == set(others)
    assert ids(status="completed") == {orders[0]}
    assert ids(status=("completed", "active"), workflow_id="orders.approval") == {*orders, zoes}
    assert ids(key="k-7") == {zoes}
    assert ids(key="k-7", subject_id="ann") == set()
    assert ids(role="approver") == {*orders[1:], zoes}
    assert ids(role="approver", key="k-7", subject_id="zoe", status="active", workflow_id="orders.approval") == {zoes}
    assert ids(role="approver", status="completed") == set()
    assert ids(mine=True) == {*orders[1:], zoes, *others}
    assert ids(mine=True, workflow_id="w") == set(others)
    for filters in ({}, {"mine": True}, {"subject_id": "zoe"}, {"workflow_id": "orders.approval"}):
        seen: list[InstanceId] = []
        cursor = None
        while True:
            page = calls.list(limit=2, cursor=cursor, **filters)
            seen += [each.id for each in page.items]
            cursor = page.next
            if cursor is None:
                break
        assert seen == sorted(ids(**filters), reverse=True)
        assert page.items


@pytest.mark.row("P-052")
def test_a_start_with_a_key_is_the_same_one_whatever_has_changed_around_it(place: Place) -> None:
    """A newer version of the process, and a directory that grants roles since, make no other start of it."""
    engine = place.engine()
    published(engine)
    first = asking(engine, ANN).processes.start("orders.approval", INPUT, idempotency_key="k").id
    registered(engine, ORDERS.replace("version: 1", "version: 2"))
    engine.directory.put("bob")
    engine.directory.grant("bob", "approver")
    engine.advance(minutes=1)
    again = asking(engine, ANN).processes.start("orders.approval", INPUT, idempotency_key="k")
    assert (again.id, again.workflow_version) == (first, "1")
    other = {**INPUT, "total": 1}
    start = asking(engine, ANN).processes.start
    assert refusal(start, "orders.approval", other, idempotency_key="k") == "IDEMPOTENCY_CONFLICT"
