"""The calls of processes, on both stores: start, advance, cancel, what is refused and in which order, and what the trail tells."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

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
from standfast import (
    Actor,
    ForbiddenError,
    NotFoundError,
    PayloadError,
    RejectedError,
    Saga,
    load_processes,
    load_rules,
)
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.ruining import Ruin

SEVEN = [
    ("review", "step_entered", "ann"),
    ("review", "step_completed", "bob"),
    ("review", "approved", "bob"),
    ("process", "step_entered", "system"),
    ("process", "step_completed", "system"),
    ("notify", "step_entered", "system"),
    ("notify", "step_completed", "system"),
]


def begun(engine: ManualEngine, **given: object) -> InstanceId:
    """An order that ann has started."""
    return asking(engine, ANN).processes.start("orders.approval", {**INPUT, **given}).id


def trail(engine: ManualEngine, instance: InstanceId) -> list[tuple[str, str, str]]:
    """What happened to the steps."""
    return [(each.step_id, each.event, each.actor_id) for each in engine.processes.events(instance)]


def stood(engine: ManualEngine, instance: InstanceId) -> tuple[str, str]:
    """Status and current step."""
    seen = engine.processes.get(instance).instance
    return seen.status, seen.current_step


# -- starting


@pytest.mark.row(
    "P-023",
    "P-024",
    "P-025",
    "P-026",
    "P-027",
    "P-009",
    "P-019",
    "P-030",
    "P-032",
    "P-034",
    "P-043",
    "P-050",
    "P-056",
    "P-057",
)
def test_a_start_enters_the_first_step(place: Place) -> None:
    """It waits there for a person, with the input as its state, on behalf of whoever started it."""
    engine = place.engine()
    backend = published(engine)
    seen = asking(engine, ANN, partition="north").processes.start("orders.approval", INPUT)
    assert (seen.workflow_id, seen.workflow_version, seen.current_step, seen.status) == (
        "orders.approval",
        "1",
        "review",
        "active",
    )
    assert (seen.tenant_id, seen.partition_id, seen.subject_id) == ("default", "north", "ann")
    assert (seen.state, seen.version) == (INPUT, 1)
    assert seen.expires_at == seen.created_at + timedelta(hours=72)
    assert trail(engine, seen.id) == SEVEN[:1]
    assert not backend.calls


@pytest.mark.row("P-047")
@pytest.mark.parametrize("is_late", [False, True])
def test_an_operation_is_given_whose_process_it_is_part_of(place: Place, *, is_late: bool) -> None:
    """Tenant, partition and starter are those of the instance, also where a deadline leads to the step and nobody asks."""
    engine = place.engine()
    given = {"tenant": "context.tenant_id", "partition": "context.partition_id", "by": "context.subject_id"}
    late = {"timeout": "1h", "on_timeout": "call"} if is_late else {}
    backend = published(
        engine,
        process(
            person("ask", **late), system("call", input=given), *ends("done"), ways="ask sent call,call completed done"
        ),
    )
    mine = asking(engine, ANN, tenant="t2", partition="north")
    instance = mine.processes.start("w").id
    if is_late:
        engine.advance(hours=2)
    else:
        asking(engine, EVE, tenant="t2", partition="north").processes.advance(instance, "sent")
    engine.drain()
    assert backend.given == [("confirm", {"tenant": "t2", "partition": "north", "by": "ann"})]


@pytest.mark.row("P-059")
def test_a_process_that_begins_with_its_end_is_completed_at_once(place: Place) -> None:
    """There is nothing to wait for: the answer to the start says so, and nobody can advance it."""
    engine = place.engine()
    published(engine, process(person("ask"), *ends("done"), ways="ask sent done", initial_step="done"))
    seen = asking(engine, ANN).processes.start("w")
    assert (seen.status, seen.current_step) == ("completed", "done")
    told = [each.event for each in engine.processes.events(seen.id, with_lifecycle=True)]
    assert told.count("workflow_completed") == 1
    with pytest.raises(RejectedError) as refused:
        asking(engine, ANN).processes.advance(seen.id, "sent")
    assert refused.value.reason == "WORKFLOW_NOT_ACTIVE"


@pytest.mark.row("P-120")
@pytest.mark.parametrize("wait", ["duration: 1h", "event: paid", "event: paid, key: workflow.order"])
def test_nothing_wakes_a_cancelled_process(place: Place, wait: str) -> None:
    """Its timers and waits go with it; an event, a signal and the time change nothing any more."""
    engine, ruin = place.engine(), Ruin(place.store)
    published(engine, WAITING.format(wait=wait))
    instance = engine.processes.start("w", {"order": "o-1"}).id
    engine.drain()
    engine.processes.cancel(instance, "not wanted")
    engine.drain()
    before = engine.run(instance).history()
    assert [ruin.rows(f"select count(*) from {{}}{each}")[0][0] for each in ("timers", "subscriptions")] == [0, 0]
    engine.publish("paid", "o-1")
    with suppress(RejectedError):
        engine.run(instance).signal("paid")
    engine.advance(hours=2)
    assert (stood(engine, instance), engine.run(instance).history()) == (("cancelled", "pause"), before)


@pytest.mark.row("G-45")
def test_a_way_whose_condition_does_not_hold_is_closed_and_says_so(place: Place) -> None:
    """Whoever is asked sees why before trying, the refusal asks for other data, and once the condition holds the way is open."""
    engine = place.engine()
    text = process(person("ask"), *ends("done"), ways="ask sent done,ask more ask")
    text = text.replace('"event": "sent"', '"event": "sent", "condition": "workflow.total > 9"')
    published(engine, text)
    instance = asking(engine, ANN).processes.start("w", {"total": 5}).id
    mine = asking(engine, ANN).processes
    (closed,) = [each for each in mine.get(instance).choices if each.event == "sent"]
    assert (closed.is_allowed, closed.why_not) == (False, "its conditions do not hold")
    with pytest.raises(RejectedError, match="or other data") as refused:
        mine.advance(instance, "sent")
    assert (refused.value.reason, stood(engine, instance)) == ("INVALID_TRANSITION", ("active", "ask"))
    mine.advance(instance, "more", {"total": 10})
    assert [each.is_allowed for each in mine.get(instance).choices if each.event == "sent"] == [True]
    assert mine.advance(instance, "sent").status == "completed"


@pytest.mark.row("G-04")
def test_a_process_that_has_begun_keeps_its_version(place: Place) -> None:
    """One that was started before another version was published goes on by its own, and later ones by the new one."""
    engine = place.engine()
    registered(engine, process(person("ask"), *ends("old"), ways="ask sent old", version=1))
    before = asking(engine, ANN).processes.start("w").id
    registered(engine, process(person("ask"), *ends("new"), ways="ask sent new", version=2))
    after = asking(engine, ANN).processes.start("w").id
    for instance in (before, after):
        asking(engine, ANN).processes.advance(instance, "sent")
    assert (stood(engine, before), stood(engine, after)) == (("completed", "old"), ("completed", "new"))


@pytest.mark.row("P-021", "P-051", "P-060")
def test_an_unknown_process_comes_before_a_missing_right(place: Place) -> None:
    """Who may not start is refused before the idempotency key is looked at, and an unknown name before that."""
    engine = place.engine()
    published(engine)
    asking(engine, ANN).processes.start("orders.approval", INPUT, idempotency_key="k")
    with pytest.raises(NotFoundError):
        asking(engine, EVE).processes.start("orders.aproval", INPUT)
    with pytest.raises(ForbiddenError) as refused:
        asking(engine, EVE).processes.start("orders.approval", INPUT, idempotency_key="k")
    assert refused.value.reason == "FORBIDDEN"
    assert engine.processes.list().total == 1


@pytest.mark.row("P-033", "P-052", "P-053", "P-054")
def test_an_idempotency_key_counts_once_for_a_tenant(place: Place) -> None:
    """Another tenant may use the same one, and another process of the same tenant may not; without a key there are as many as are started."""
    engine = place.engine()
    published(engine)
    for other in load_processes(ORDERS.replace("orders.approval", "orders.other")):
        engine.register(other)
    first = asking(engine, ANN).processes.start("orders.approval", INPUT, idempotency_key="k")
    again = asking(engine, ANN).processes.start("orders.approval", INPUT, idempotency_key="k")
    assert again.id == first.id
    assert trail(engine, first.id) == SEVEN[:1]
    assert (
        asking(engine, ANN, tenant="t2").processes.start("orders.approval", INPUT, idempotency_key="k").id != first.id
    )
    with pytest.raises(RejectedError) as refused:
        asking(engine, ANN).processes.start("orders.other", INPUT, idempotency_key="k")
    assert refused.value.reason == "IDEMPOTENCY_CONFLICT"
    assert asking(engine, ANN).processes.list().total == 1
    assert begun(engine) != begun(engine)


# -- advancing


@pytest.mark.row("P-061", "P-073", "P-075", "P-095", "P-133", "P-163", "C-27")
def test_an_approved_order_leaves_seven_events(place: Place) -> None:
    """From the review by a system step and a notification to the end, and nothing is told of the terminal itself."""
    engine = place.engine()
    backend = published(engine)
    instance = begun(engine)
    asking(engine, BOB).processes.advance(instance, "approved", {"approval_notes": "fine"}, comment="ok")
    engine.drain()
    assert trail(engine, instance) == SEVEN
    assert stood(engine, instance) == ("completed", "approved")
    assert backend.calls == ["confirm", "notify"]
    told = engine.processes.events(instance)
    assert [each.comment for each in told if each.event == "approved"] == ["ok"]
    assert {each.event for each in engine.processes.events(instance, with_lifecycle=True)} >= {"workflow_completed"}


@pytest.mark.row("P-076", "P-079", "P-086", "P-088", "P-163")
def test_the_call_does_the_automatic_steps(live: Live) -> None:
    """It answers when the chain has come to its end, with the final step and status."""
    engine = live.engine()
    published(engine)
    with engine:
        started = asking(engine, ANN).processes.start("orders.approval", INPUT)
        seen = asking(engine, BOB).processes.advance(started.id, "approved")
        assert (seen.status, seen.current_step, seen.outcome) == ("completed", "approved", "approved")
        assert seen.state == {**INPUT, "approved_by": "bob", "confirmed_at": "noon"}


@pytest.mark.row("P-044", "P-045", "P-046", "P-047", "P-048", "P-072", "P-082", "P-083", "P-085")
def test_the_state_gathers_what_is_given_and_answered(place: Place) -> None:
    """Input is laid over it, who approved is noted, the operation is given what it maps, and only what it maps is kept."""
    engine = place.engine()
    backend = published(engine)
    instance = begun(engine)
    asking(engine, BOB).processes.advance(instance, "approved", {"approval_notes": "fine", "order_id": "ord-124"})
    engine.drain()
    assert backend.given[0] == (
        "confirm",
        {"order_id": "ord-124", "tenant": "default", "by": "ann", "kind": "new", "none": None},
    )
    assert engine.processes.get(instance).instance.state == {
        "order_id": "ord-124",
        "total": 50,
        "approval_notes": "fine",
        "approved_by": "bob",
        "confirmed_at": "noon",
    }


@pytest.mark.row("P-006", "P-062", "P-063", "P-064", "P-065", "P-066", "P-068", "P-070")
def test_the_earlier_check_wins(place: Place) -> None:
    """Unknown and foreign are the same; then it must be active, then the caller must be asked, then a transition must be open."""
    engine = place.engine()
    published(engine)
    instance = begun(engine)
    unknown = InstanceId(UUID(int=7))
    before = engine.processes.get(instance)
    for caller, which in ((EVE, unknown), (CAT, unknown)):
        with pytest.raises(NotFoundError) as nowhere:
            asking(engine, caller).processes.advance(which, "approved")
    for place_ in ({"tenant": "t2"}, {"partition": "south"}):
        with pytest.raises(NotFoundError) as foreign:
            asking(engine, CAT, **place_).processes.advance(instance, "approved")
        assert str(foreign.value).replace(str(instance), "") == str(nowhere.value).replace(str(unknown), "")
    with pytest.raises(ForbiddenError):
        asking(engine, EVE).processes.advance(instance, "nonsense")
    with pytest.raises(RejectedError) as refused:
        asking(engine, BOB).processes.advance(instance, "nonsense")
    assert refused.value.reason == "INVALID_TRANSITION"
    assert engine.processes.get(instance) == before
    asking(engine, BOB).processes.advance(instance, "rejected")
    with pytest.raises(RejectedError) as refused:
        asking(engine, EVE).processes.advance(instance, "nonsense")
    assert refused.value.reason == "WORKFLOW_NOT_ACTIVE"


@pytest.mark.row("P-067", "P-068", "P-012", "P-072")
def test_conditions_and_guards_say_which_way_is_open(place: Place) -> None:
    """The first one in the order of the file is taken whose condition holds and whose guard the caller has.

    Conditions see the input as `input`; what it lays over the state opens no way of its own.
    """
    engine = place.engine()
    published(engine)
    large = begun(engine, total=500)
    with pytest.raises(RejectedError) as refused:
        asking(engine, BOB).processes.advance(large, "approved")
    assert refused.value.reason == "INVALID_TRANSITION"
    with pytest.raises(RejectedError) as spoofed:
        asking(engine, BOB).processes.advance(large, "approved", {"total": 5})
    assert spoofed.value.reason == "INVALID_TRANSITION"
    with pytest.raises(RejectedError):
        asking(engine, CAT).processes.advance(large, "returned", {"why": "no"})
    asking(engine, CAT).processes.advance(large, "returned", {"why": "unclear"})
    asking(engine, CAT).processes.advance(large, "approved")
    engine.drain()
    assert stood(engine, large) == ("completed", "approved")


@pytest.mark.row("P-030", "P-077", "P-136", "EC-20")
@pytest.mark.row("C-32")
def test_a_caller_may_say_which_version_was_seen(place: Place) -> None:
    """The version begins at 1 and grows with each change; whoever has seen an older one is refused, and changes nothing."""
    engine = place.engine()
    published(engine)
    instance = begun(engine)
    seen = asking(engine, CAT).processes.advance(instance, "returned", {"why": "unclear"}, expected_version=1)
    assert seen.version == 2
    with pytest.raises(RejectedError) as refused:
        asking(engine, CAT).processes.advance(instance, "approved", expected_version=1)
    with pytest.raises(RejectedError) as too_late:
        asking(engine, CAT).processes.cancel(instance, expected_version=1)
    assert (refused.value.reason, too_late.value.reason) == ("VERSION_CONFLICT", "VERSION_CONFLICT")
    assert stood(engine, instance) == ("active", "review")


@pytest.mark.row("P-029", "P-031", "P-074", "P-129", "P-132")
def test_what_is_told_of_an_instance_and_of_its_events(place: Place) -> None:
    """Times move with every change, nested data comes back as it was, and an entry of the trail says who did what, why and when."""
    engine = place.engine()
    published(engine)
    nested: dict[str, object] = {
        "lines": [{"sku": "lamp", "count": 2, "gift": None}],
        "deep": {"a": {"b": [1.5, True]}},
    }
    instance = begun(engine, **nested)
    engine.advance(minutes=5)
    given: dict[str, object] = {"why": "unclear"}
    seen = asking(engine, CAT).processes.advance(instance, "returned", given, comment="which lamp?")
    assert seen.state == {**INPUT, **nested, **given}
    assert seen.updated_at - seen.created_at == timedelta(minutes=5)
    told = next(each for each in engine.processes.events(instance) if each.event == "returned")
    assert (told.workflow_instance_id, told.step_id, told.actor_id) == (instance, "review", "cat")
    assert (told.data, told.comment, told.timestamp) == (given, "which lamp?", seen.updated_at)
    assert len({each.id for each in engine.processes.events(instance, with_lifecycle=True)}) == 5


@pytest.mark.row("P-049")
def test_names_of_the_engine_cannot_be_given(place: Place) -> None:
    """What begins with an underscore is the engine's own, at the start and later, by whichever call."""
    engine = place.engine()
    published(engine)
    instance = begun(engine)
    with pytest.raises(PayloadError, match="only the engine"):
        begun(engine, _last_error={})
    for answer in (
        lambda: asking(engine, BOB).processes.advance(instance, "approved", {"_last_error": None}),
        lambda: asking(engine, BOB).tasks.approve(f"{instance}:1", data={"_last_error": None}),
    ):
        with pytest.raises(RejectedError, match="only the engine"):
            answer()
    with pytest.raises(PayloadError, match="only the engine"):
        asking(engine, ANN).start("orders.approval", {"_x": 1})
    assert stood(engine, instance) == ("active", "review")


def test_a_form_is_checked(place: Place) -> None:
    """What does not fit is refused with the code for that."""
    engine = place.engine()
    published(engine)
    instance = begun(engine)
    with pytest.raises(RejectedError) as refused:
        asking(engine, BOB).processes.advance(instance, "approved", {"approval_notes": 7})
    assert refused.value.reason == "VALIDATION_ERROR"


@pytest.mark.row("P-132")
def test_the_comment_is_the_reason_that_a_rejection_needs(place: Place) -> None:
    """Where the step asks for one; without it nothing is changed."""
    engine = place.engine()
    step = person("one", type="approval", requires_reason=True)
    published(engine, process(step, *ends("done", "no"), ways="one approved done,one rejected no"))
    instance = engine.processes.start("w").id
    with pytest.raises(RejectedError) as refused:
        engine.processes.advance(instance, "rejected")
    assert refused.value.reason == "VALIDATION_ERROR"
    assert engine.processes.advance(instance, "rejected", comment="too dear").current_step == "no"


@pytest.mark.row("P-122")
def test_a_front_end_is_told_of_what_keeps_those_out_who_are_asked(place: Place) -> None:
    """A claim of somebody else, four eyes, and a decision of their own: an event that `advance` refuses is not shown as allowed."""
    engine = place.engine()
    both = [{"user": "bob"}, {"user": "cat"}]
    published(
        engine,
        process(
            person("one", assignee={"role": "clerk"}),
            person("two", assignee={"role": "clerk"}, distinct_from=["one"]),
            person("both", type="approval", assignees=both, agree="all"),
            *ends("done", "no"),
            ways="one sent two,two sent both,both approved done,both rejected no",
        ),
    )
    bob, cat, dan = (Actor(id=name, roles=frozenset({"clerk"})) for name in ("bob", "cat", "dan"))
    instance = engine.processes.start("w").id

    def shown(actor: Actor) -> set[str]:
        choices = asking(engine, actor).processes.get(instance).choices
        assert all(each.is_allowed is not bool(each.why_not) for each in choices)
        for each in choices:
            if not each.is_allowed:
                with pytest.raises(RejectedError):
                    asking(engine, actor).processes.advance(instance, each.event)
        return {each.why_not for each in choices}

    asking(engine, cat).tasks.claim(f"{instance}:1")
    assert (shown(cat), *(word[:30] for word in shown(bob))) == ({""}, "'cat' has claimed 'one', and d")
    engine.directory.put("cat")
    engine.directory.deactivate("cat")  # Her claim keeps nobody out any more.
    assert shown(bob) == {""}
    asking(engine, bob).processes.advance(instance, "sent")
    assert (shown(dan), *(word[:38] for word in shown(bob))) == ({""}, "'bob' has decided 'one' and may not de")
    asking(engine, dan).processes.advance(instance, "sent")
    assert shown(bob) == {""}
    asking(engine, bob).processes.advance(instance, "approved")
    told = {each.event: each.why_not for each in asking(engine, bob).processes.get(instance).choices}
    assert set(told.values()) == {"'bob' has decided it by 'approved'; withdraw that decision first"}


# -- what goes wrong


@pytest.mark.row("P-038", "P-039", "P-049", "P-091", "P-093", "P-166", "C-24", "C-25", "C-40")
def test_a_failed_step_suspends_until_somebody_resumes_it(place: Place) -> None:
    """Where no transition by `error` leads on; the state tells of the error until the step has succeeded."""
    engine = place.engine()
    backend = published(engine)
    backend.failing.add("confirm")
    instance = begun(engine)
    asking(engine, BOB).processes.advance(instance, "approved")
    engine.drain()
    assert stood(engine, instance) == ("suspended", "process")
    state = engine.processes.get(instance).instance.state
    assert "confirm is down" in str(state["_last_error"])
    assert trail(engine, instance)[-1] == ("process", "step_failed", "system")
    assert "confirm is down" in str(engine.processes.events(instance)[-1].data["error"])
    with pytest.raises(RejectedError) as refused:
        asking(engine, BOB).processes.advance(instance, "approved")
    assert refused.value.reason == "WORKFLOW_NOT_ACTIVE"
    with pytest.raises(ForbiddenError):
        asking(engine, BOB).processes.resume(instance)
    olga = asking(engine, Actor(id="olga", capabilities=frozenset({"execution:resume"})))
    with pytest.raises(ForbiddenError, match="execution:repair"):
        olga.dead_letters.requeue(engine.dead_letters.list(instance=instance)[0])
    backend.failing.clear()
    olga.processes.resume(instance)
    engine.drain()
    assert stood(engine, instance) == ("completed", "approved")
    assert "_last_error" not in engine.processes.get(instance).instance.state


@pytest.mark.row("P-092", "P-166")
def test_an_error_leads_where_the_definition_says(place: Place) -> None:
    """The next step finds what went wrong, and once the step has succeeded nothing is left of it."""
    engine = place.engine()
    backend = published(engine, ORDERS + "      - {from: process, event: error, to: review}\n")
    backend.failing.add("confirm")
    instance = begun(engine)
    asking(engine, BOB).processes.advance(instance, "approved")
    engine.drain()
    assert stood(engine, instance) == ("active", "review")
    assert engine.processes.get(instance).instance.state["_last_error"] == {
        "step": "process",
        "message": "ValueError: confirm is down",
    }
    backend.failing.clear()
    asking(engine, BOB).processes.advance(instance, "approved")
    engine.drain()
    assert stood(engine, instance) == ("completed", "approved")
    assert "_last_error" not in engine.processes.get(instance).instance.state


@pytest.mark.row("P-017", "P-094")
def test_a_notification_never_blocks(place: Place) -> None:
    """Its failure is told in the trail, and the chain goes on."""
    engine = place.engine()
    published(engine).failing.add("notify")
    instance = begun(engine)
    asking(engine, BOB).processes.advance(instance, "approved")
    engine.drain()
    assert trail(engine, instance)[-1] == ("notify", "step_failed", "system")
    assert stood(engine, instance) == ("completed", "approved")


@pytest.mark.row("P-036", "P-090", "P-094")
@pytest.mark.parametrize("fails", [False, True])
def test_a_notification_that_nothing_follows_fails_the_process(place: Place, *, fails: bool) -> None:
    """Its failure counts as its end, and an end that leads nowhere is the same for all automatic steps."""
    engine = place.engine()
    backend = published(engine, ORDERS.replace("      - {from: notify, event: completed, to: approved}\n", ""))
    backend.failing |= {"notify"} if fails else set()
    instance = begun(engine)
    asking(engine, BOB).processes.advance(instance, "approved")
    engine.drain()
    assert stood(engine, instance) == ("failed", "notify")


LOOP = """
domain: loops
workflows:
  - id: loop
    chain_limit: {limit}
    steps:
      - {{id: a, type: system, operation: orders.confirm}}
      - {{id: b, type: system, operation: orders.notify}}
      - {{id: end, type: terminal}}
    transitions:
      - {{from: a, event: completed, to: b}}
      - {{from: b, event: completed, to: a, condition: workflow.stop? != true}}
      - {{from: b, event: completed, to: end}}
"""


@pytest.mark.row("P-038", "P-087", "P-099", "P-101", "P-102", "EC-01", "EC-22")
@pytest.mark.parametrize("limit", [3, 10])
def test_automatic_steps_in_a_row_are_limited(place: Place, limit: int) -> None:
    """As many as the limit run; the one behind suspends, and a resume lets as many run again."""
    engine = place.engine()
    backend = published(engine, LOOP.format(limit=limit))
    instance = engine.processes.start("loop").id
    engine.drain()
    seen = engine.processes.get(instance).instance
    assert (seen.status, len(backend.calls)) == ("suspended", limit)
    assert seen.state["_last_error"] == {
        "code": "WORKFLOW_CHAIN_LIMIT",
        "message": "Too many consecutive system steps",
    }
    engine.processes.resume(instance)
    engine.drain()
    assert len(backend.calls) == 2 * limit


@pytest.mark.row("P-036", "P-090")
def test_a_step_that_nothing_follows_fails_the_process(place: Place) -> None:
    """A missing `completed` is a warning when the file is loaded, and the end when it is reached."""
    engine = place.engine()
    published(engine, ORDERS.replace("      - {from: process, event: completed, to: notify}\n", ""))
    instance = begun(engine)
    asking(engine, BOB).processes.advance(instance, "approved")
    engine.drain()
    assert stood(engine, instance) == ("failed", "process")


# -- time


@pytest.mark.row("P-010", "P-103", "P-104", "P-106", "P-113", "P-164", "C-45")
def test_a_passed_deadline_moves_to_expired(place: Place) -> None:
    """Once the time of the whole is over, the sweep moves it where the workflow says, and a second one finds nothing."""
    engine = place.engine()
    published(engine)
    instance = begun(engine)
    place.clock.move(timedelta(hours=72, seconds=1))
    assert engine.processes.process_timeouts() == 1
    assert stood(engine, instance) == ("completed", "expired")
    assert engine.processes.process_timeouts() == 0
    assert ("review", "timeout", "system") in trail(engine, instance)


@pytest.mark.row("P-036", "P-106", "P-108", "P-110", "P-111", "P-112", "C-25", "C-45")
@pytest.mark.parametrize(
    ("own", "whole", "stands"),
    [
        ("timeout: 24h, on_timeout: rejected", "timeout: 72h\n    on_timeout: expired", ("completed", "rejected")),
        ("timeout: 24h", "timeout: 72h\n    on_timeout: expired", ("completed", "expired")),
        ("on_timeout: rejected", "timeout: 24h\n    on_timeout: expired", ("completed", "rejected")),
        ("timeout: 24h", "", ("failed", "ask")),
        ("", "timeout: 24h", ("failed", "ask")),
    ],
)
def test_the_time_of_a_step_is_over(place: Place, own: str, whole: str, stands: tuple[str, str]) -> None:
    """Its own target wins, then that of the workflow, and without either the process has failed; the trail tells of it."""
    text = f"""
domain: d
workflows:
  - id: w
    {whole or "title: w"}
    steps:
      - {{id: ask, type: action{", " + own if own else ""}}}
      - {{id: rejected, type: terminal}}
      - {{id: expired, type: terminal}}
      - {{id: done, type: terminal}}
    transitions: [{{from: ask, event: sent, to: done}}]
"""
    engine = place.engine()
    published(engine, text)
    instance = engine.processes.start("w").id
    engine.advance(hours=25)
    assert stood(engine, instance) == stands
    assert ("ask", "timeout", "system") in trail(engine, instance)


@pytest.mark.row("P-105", "P-114")
def test_a_suspended_one_does_not_expire(place: Place) -> None:
    """Of several tenants all are looked at; what waits for an operator stays, and a target that is automatic is done."""
    late = ORDERS.replace("on_timeout: expired", "on_timeout: notify")
    engine = place.engine()
    backend = published(engine, late)
    first = asking(engine, ANN).processes.start("orders.approval", INPUT).id
    other = asking(engine, ANN, tenant="t2").processes.start("orders.approval", INPUT).id
    held = begun(engine)
    backend.failing.add("confirm")
    asking(engine, BOB).processes.advance(held, "approved")
    engine.drain()
    engine.advance(days=4)
    assert stood(engine, first) == ("completed", "approved")
    assert asking(engine, BOB, tenant="t2").processes.get(other).instance.current_step == "approved"
    assert stood(engine, held) == ("suspended", "process")
    assert backend.calls == ["confirm", "notify", "notify"]


WAITING = """
domain: d
workflows:
  - id: w
    steps:
      - {{id: pause, type: wait, {wait}}}
      - {{id: done, type: terminal}}
    transitions: [{{from: pause, event: completed, to: done}}]
"""


@pytest.mark.row("P-016", "P-038", "P-059", "C-24")
@pytest.mark.parametrize(
    "wait",
    [
        "duration: 1h",
        "until: workflow.due_at",
        'cron: "0 13 * * *"',
        "event: paid",
        "event: paid, key: workflow.order",
        "events: [{event: paid, key: workflow.order}, {event: sent, key: workflow.order}]",
    ],
)
def test_a_wait_suspends_until_its_time_or_its_event(place: Place, wait: str) -> None:
    """Nobody can advance it meanwhile; then it goes on by itself."""
    engine = place.engine()
    published(engine, WAITING.format(wait=wait))
    given: dict[str, object] = {"order": "o-1", "due_at": "2030-01-01T13:00:00+00:00"}
    instance = engine.processes.start("w", given).id
    engine.drain()
    assert stood(engine, instance) == ("suspended", "pause")
    assert [each.id for each in engine.processes.list(status="suspended").items] == [instance]
    with pytest.raises(RejectedError) as refused:
        engine.processes.advance(instance, "completed")
    assert refused.value.reason == "WORKFLOW_NOT_ACTIVE"
    if "key" in wait:
        engine.publish("paid", "o-1", {"amount": 1})
        engine.publish("sent", "o-1")
        engine.drain()
    elif "event" in wait:
        engine.run(instance).signal("paid")
    else:
        engine.advance(hours=1)
    assert stood(engine, instance) == ("completed", "done")


@pytest.mark.row("P-049")
@pytest.mark.parametrize("comes_early", [True, False])
def test_an_event_sets_no_name_of_the_engines_own(place: Place, *, comes_early: bool) -> None:
    """Whoever brings one cannot make an instance tell of a failure that never was; the rest of it counts."""
    engine = place.engine()
    steps = person("ask"), {"id": "pause", "type": "wait", "event": "paid"}, person("check")
    published(engine, process(*steps, *ends("done"), ways="ask ok pause,pause completed check,check ok done"))
    instance = engine.processes.start("w", {"order": "o-1"}).id
    for is_signal in (comes_early, not comes_early):
        if is_signal:
            engine.run(instance).signal("paid", {"_last_error": {"message": "a lie"}, "amount": 1})
        else:
            engine.processes.advance(instance, "ok")
    seen = engine.processes.get(instance).instance
    assert (seen.current_step, seen.state) == ("check", {"order": "o-1", "amount": 1})


# -- ending


@pytest.mark.row("P-037", "P-042", "P-116", "P-118", "P-119", "P-120", "P-121", "C-03", "EC-14")
def test_a_cancelled_process_undoes_nothing(place: Place) -> None:
    """From active and from suspended, by whoever has the capability; a second time it is not active any more."""
    engine = place.engine()
    backend = published(engine)
    active, suspended = begun(engine), begun(engine)
    backend.failing.add("confirm")
    asking(engine, BOB).processes.advance(suspended, "approved")
    engine.drain()
    called = list(backend.calls)
    for instance, step in ((active, "review"), (suspended, "process")):
        with pytest.raises(ForbiddenError):
            asking(engine, ANN).processes.cancel(instance, "no")
        seen = asking(engine, BOB).processes.cancel(instance, "not wanted")
        assert (seen.status, seen.current_step) == ("cancelled", step)
        last = engine.processes.events(instance)[-1]
        assert (last.step_id, last.event, last.actor_id, last.comment) == (step, "cancelled", "bob", "not wanted")
        with pytest.raises(RejectedError) as refused:
            asking(engine, BOB).processes.cancel(instance)
        assert refused.value.reason == "WORKFLOW_NOT_ACTIVE"
    engine.advance(days=4)
    assert backend.calls == called
    assert (stood(engine, active), stood(engine, suspended)) == (("cancelled", "review"), ("cancelled", "process"))


@pytest.mark.row("P-018", "P-170", "EC-10")
def test_a_rejected_order_ends_in_a_terminal_of_its_own(place: Place) -> None:
    """Every terminal means completed; nothing is called on the way to this one."""
    engine = place.engine()
    backend = published(engine)
    instance = begun(engine)
    seen = asking(engine, BOB).processes.advance(instance, "rejected")
    assert (seen.status, seen.current_step, seen.outcome) == ("completed", "rejected", "rejected")
    assert seen.state["rejected_by"] == "bob"
    assert not backend.calls


# -- looking


@pytest.mark.row("P-122", "P-123")
@pytest.mark.row("G-45")
def test_a_descriptor_shows_what_its_caller_can_do(place: Place) -> None:
    """Who is asked sees the form and the events, and why one is closed; who is not sees neither."""
    engine = place.engine()
    published(engine)
    instance = begun(engine, total=500)
    seen = asking(engine, BOB).processes.get(instance)
    assert (seen.step.type, seen.step.title, seen.waiting_for, seen.may_cancel) == (
        "approval",
        "Review the order",
        ["role:approver"],
        True,
    )
    assert seen.step.form is not None
    assert [(each.event, each.label, each.is_allowed) for each in seen.choices] == [
        ("approved", "Approve", False),
        ("rejected", "Reject", True),
        ("returned", "returned", True),
    ]
    assert "orders:large" in seen.choices[0].why_not
    assert asking(engine, CAT).processes.get(instance).choices[0].is_allowed
    stranger = asking(engine, EVE).processes.get(instance)
    assert (stranger.step.form, stranger.choices, stranger.may_cancel) == (None, [], False)
    assert [each.event for each in seen.history] == ["step_entered"]


@pytest.mark.row("P-124", "P-125", "P-126", "P-127")
def test_a_list_shows_those_of_the_caller(place: Place) -> None:
    """Of the tenant and the partition, by status and by who is asked; the total does not depend on the page."""
    engine = place.engine()
    published(engine)
    ids = [begun(engine) for _ in range(3)]
    asking(engine, ANN, tenant="t2").processes.start("orders.approval", INPUT)
    asking(engine, ANN, partition="south").processes.start("orders.approval", INPUT)
    asking(engine, BOB).processes.advance(ids[0], "rejected")
    processes = asking(engine, BOB).processes
    page = processes.list(status="active", limit=1)
    assert ([each.id for each in page.items], page.total, page.next) == ([ids[2]], 2, ids[2])
    assert [each.id for each in processes.list(status="active", limit=1, cursor=page.next).items] == [ids[1]]
    assert {each.id for each in processes.list(mine=True).items} == set(ids[1:])
    assert {each.id for each in processes.list(role="approver", subject_id="ann").items} == set(ids[1:])
    assert asking(engine, EVE).processes.list(mine=True).total == 0
    assert processes.list().total == 3
    with pytest.raises(PayloadError, match="there are active"):
        processes.list(status="running")


@pytest.mark.row("P-002", "P-003", "P-005", "P-007", "P-159", "P-161", "P-168", "EC-23")
def test_another_person_goes_on_days_later_in_another_process(place: Place) -> None:
    """The trail tells who started it and who approved it, and when."""
    first = place.engine()
    published(first)
    instance = begun(first)
    first.advance(days=2)
    second = place.engine()
    published(second)
    (found,) = asking(second, BOB).processes.list(status="active").items
    assert found.id == instance
    asking(second, BOB).processes.advance(found.id, "approved")
    second.drain()
    entries = second.processes.events(instance)
    assert [(each.event, each.actor_id) for each in entries][:3] == [(event, actor) for _, event, actor in SEVEN[:3]]
    assert entries[2].timestamp - entries[0].timestamp == timedelta(days=2)
    assert second.instances.verify(instance).is_sound


@pytest.mark.row("EC-12")
def test_runs_are_listed_by_the_words_of_their_kind(place: Place) -> None:
    """A word finds the runs of the kinds that have it, as they are shown; one that no kind has is refused."""
    engine = place.engine()
    backend = published(engine)
    engine.register(Saga("plain").human("ask").build())
    rules = {
        "workflow_id": "gate",
        "version": "1",
        "steps": [{"id": "no", "type": "action", "action": "block", "reason": "no"}],
    }
    engine.register(load_rules(json.dumps(rules)))
    active, suspended, plain = begun(engine), begun(engine), engine.start("plain").id
    blocked = engine.start("gate").id
    backend.failing.add("confirm")
    asking(engine, BOB).processes.advance(suspended, "approved")
    engine.drain()
    found = {
        word: [each.id for each in engine.runs.list(status=word).items] for word in ("active", "suspended", "blocked")
    }
    assert found == {"active": [active], "suspended": [suspended], "blocked": [blocked]}
    assert plain in [each.id for each in engine.runs.list(is_active=True).items]
    assert [each.id for each in engine.runs.list(status="completed").items] == []
    assert len(engine.runs.list(status=("active", "blocked")).items) == 2
    with pytest.raises(PayloadError, match="there is no status 'gone'"):
        engine.runs.list(status="gone")
