"""A run in which people have a say: who may repair does the same again, and everything else takes the right to override."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from app.documents.blueprints import CLERK, GIVEN, of, opened, published
from app.processes.acting import ends, process, system
from standfast import Actor, Definition, Fail, RejectedError, Run, Saga, load_processes, load_rules
from standfast.testing import ManualEngine
from support.engines import Place

REPAIRER = Actor(id="rita", capabilities=frozenset({"execution:repair", "execution:read"}))
OVERRIDER = Actor(id="otto", capabilities=frozenset({"execution:*"}))
WHY = "ticket 7"

Act = Callable[[Run[object]], object]


def code(call: Callable[..., object], *given: object, **named: object) -> str:
    """Why a call is refused; empty if it is not."""
    try:
        call(*given, **named)
    except RejectedError as error:
        return str(error.reason)
    return ""


def broken() -> object:
    """What no handler gets past."""
    raise Fail("down")


def number(run: Run[object], name: str) -> int:
    """The last step of this name."""
    return [each.number for each in run.steps() if each.name.rpartition(":")[2] == name][-1]


def begun(engine: ManualEngine, name: str, **data: object) -> Run[object]:
    """A run that waits for somebody."""
    found = engine.acting("ann").start(name, data)
    engine.drain()
    return found


# -- other data


def _pay(engine: ManualEngine, paid: list[object], *sagas: Saga) -> None:
    """Sagas that pay in the end."""

    def pay(amount: object) -> None:
        paid.append(amount)

    engine.handle("pay", pay)
    for saga in sagas:
        engine.register(saga.step("pay", "pay").build())


@pytest.mark.row("E-684")
def test_nobody_changes_the_data_under_an_open_question_by_a_repair(place: Place) -> None:
    """Whether some have answered, a stage has agreed, or nobody has yet; with the right to override it is put anew."""
    engine, paid = place.engine(), list[object]()
    one = Saga("one").human("q", ask="user:bea", subject="Pay {amount}?")
    _pay(engine, paid, one, Saga("two").human("q", ask=["user:bea", "user:bob"], agree="all"))
    for name in ("one", "two"):
        run = begun(engine, name, amount=5)
        (task,) = run.tasks()
        if name == "two":
            engine.acting("bea").tasks.approve(task)
        assert code(engine.acting(REPAIRER).run(run).change_data, {"amount": 9}, reason=WHY) == "not_allowed"
        engine.acting(OVERRIDER).run(run).change_data({"amount": 6}, reason=WHY)
        engine.drain()
        again = run.tasks()[-1]
        assert again.step_number != task.step_number
        if name == "one":
            assert again.subject == "Pay 6?"
        engine.acting("bea").tasks.approve(again)
        engine.drain()
    assert paid == [6]


@pytest.mark.row("E-684")
def test_nobody_brings_data_by_completing_a_step_by_a_repair(place: Place) -> None:
    """Behind a question or before it: what an answer by hand lays over the data is other data. Without one the step is plain work."""
    engine, paid = place.engine(), list[object]()
    late = Saga("late", dlq=True).human("q", ask="user:bea").step("calc", broken, attempts=1)
    _pay(engine, paid, late, Saga("soon", dlq=True).step("calc", broken, attempts=1).human("q", ask="user:bea"))
    for name in ("late", "soon"):
        run = begun(engine, name, amount=5)
        if name == "late":
            engine.acting("bea").tasks.approve(run.tasks()[0])
            engine.drain()
        rita, at = engine.acting(REPAIRER).run(run), number(run, "calc")
        assert code(rita.complete_step, at, {"amount": 9}, reason=WHY) == "not_allowed"
        assert code(rita.complete_step, at, {"other": 9}, reason=WHY) == "not_allowed"
        assert code(rita.retry, at, reason=WHY, input={"amount": 9}) == "not_allowed"
        rita.complete_step(at, reason=WHY)
        engine.drain()
        if name == "soon":
            engine.acting("bea").tasks.approve(run.tasks()[0])
            engine.drain()
    assert paid == [5, 5]


def _family(engine: ManualEngine, paid: list[object]) -> tuple[Run[object], Run[object]]:
    """A run whose people have decided, and the child that pays, two runs below."""
    _pay(engine, paid, Saga("kid").wait("w", timedelta(hours=1)))
    engine.register(Saga("between").call("k", "kid").build())
    engine.register(Saga("par").human("q", ask="user:bea").call("k", "between").build())
    top = begun(engine, "par", amount=5)
    engine.acting("bea").tasks.approve(top.tasks()[0])
    engine.drain()
    (middle,) = engine.runs.list(parent=top.id).items
    (low,) = engine.runs.list(parent=middle.id).items
    return top, engine.run(low.id)


@pytest.mark.row("E-684")
def test_the_people_of_a_parent_have_a_say_in_its_children(place: Place) -> None:
    """Nobody changes the data of a child by a repair, nor forks it with other data, nor changes that of its fork."""
    engine, paid = place.engine(), list[object]()
    _, child = _family(engine, paid)
    rita = engine.acting(REPAIRER)
    at = child.history()[-1].sequence
    assert code(lambda: rita.run(child).change_data({"amount": 9}, reason=WHY)) == "not_allowed"
    assert code(lambda: rita.run(child).fork(at, reason=WHY, data={"amount": 9})) == "not_allowed"
    fork = rita.run(child).fork(at, reason=WHY)
    again = rita.run(fork).fork(engine.run(fork).history()[-1].sequence, reason=WHY)
    for each in (fork, again):
        assert code(rita.run(each).change_data, {"amount": 9}, reason=WHY) == "not_allowed"
    engine.advance(hours=1)
    assert set(paid) == {5}
    alone = begun(engine, "kid", amount=7)
    rita.run(alone).change_data({"amount": 8}, reason=WHY)
    engine.advance(hours=1)
    assert paid[-1] == 8


@pytest.mark.row("E-684")
@pytest.mark.parametrize("is_answered", [True, False])
def test_the_people_of_a_child_have_a_say_in_its_parent(place: Place, *, is_answered: bool) -> None:
    """The data of a run is bound while a run that it called asks people, and afterwards."""
    engine, paid = place.engine(), list[object]()
    engine.register(Saga("kid").human("q", ask="user:bea").build())
    _pay(engine, paid, Saga("par").call("c", "kid").wait_for("w", signal="go"))
    run = begun(engine, "par", amount=5)
    if is_answered:
        engine.acting("bea").tasks.approve(engine.tasks.list()[0])
        engine.drain()
    assert code(lambda: engine.acting(REPAIRER).run(run).change_data({"amount": 9}, reason=WHY)) == "not_allowed"


def test_rules_that_ask_people_are_bound_as_well(place: Place) -> None:
    """The data of a set of rules is not changed under its approval."""
    engine = place.engine()
    block = {"id": "a", "type": "action", "action": "block", "requires": {"type": "approval", "role": "fin"}}
    engine.register(
        load_rules({"workflow_id": "w", "steps": [block, {"id": "go", "type": "action", "action": "allow"}]})
    )
    run = begun(engine, "w", n=1)
    assert code(lambda: engine.acting(REPAIRER).run(run).change_data({"n": 500}, reason=WHY)) == "not_allowed"


def test_the_data_is_bound_after_a_move_back_too_and_nobody_is_told_otherwise(place: Place) -> None:
    """The refusal names the right that it takes, and says nothing of decisions that were taken back."""
    engine = place.engine()
    engine.register(Saga("s").save_point("begin").human("q", ask="user:bea").wait_for("w", signal="go").build())
    run = begun(engine, "s", amount=5)
    engine.acting("bea").tasks.approve(run.tasks()[0])
    engine.drain()
    rita = engine.acting(REPAIRER).run(run)
    rita.move_back("begin", reason=WHY)
    engine.drain()
    with pytest.raises(RejectedError, match=r"people have a say.*execution:override") as told:
        rita.change_data({"amount": 6}, reason=WHY)
    assert "was decided" not in str(told.value)


def test_the_refusal_of_a_fork_names_the_run_that_can_be_forked(place: Place) -> None:
    """In a fork the question was decided before its history begins: the run that it comes from can be forked instead."""
    engine = place.engine()
    engine.register(Saga("s").human("q", ask="user:bea").wait_for("w", signal="go").build())
    run = begun(engine, "s", amount=5)
    engine.acting("bea").tasks.approve(run.tasks()[0])
    engine.drain()
    rita = engine.acting(REPAIRER)
    fork = rita.run(run).fork(run.history()[-1].sequence, reason=WHY)
    with pytest.raises(RejectedError, match=f"'q' was decided.*{run.id}"):
        rita.run(fork).fork(engine.run(fork).history()[-1].sequence, reason=WHY, data={"amount": 6})


# -- processes


def _retrying(engine: ManualEngine, guard: str = "") -> str:
    """A payment behind an approval whose call can be made again by `retry`."""
    given = json.loads(
        process(
            {"id": "review", "type": "approval", "assignee": {"role": "boss"}},
            system("pay", "pay", input={"amount": "workflow.amount"}),
            *ends("done"),
            ways="review approved pay,pay completed done,pay retry pay",
        )
    )
    if guard:
        given["workflows"][0]["transitions"][-1]["guard"] = guard
    for each in load_processes(json.dumps(given)):
        engine.register(each)
    started = engine.acting("eve").processes.start("w", {"amount": 5}).id
    engine.acting(Actor(id="bob", roles=frozenset({"boss"}))).processes.advance(started, "approved")
    return str(started)


@pytest.mark.row("P-080")
@pytest.mark.parametrize("guard", ["", "pay:again"])
def test_the_event_retry_brings_no_data_behind_people(place: Place, guard: str) -> None:
    """Without a guard it never takes any; with one it takes the right to override. A bare retry does the same again."""
    engine, paid = place.engine(), list[object]()
    started = _retrying(engine, guard)
    may = {guard} if guard else set[str]()
    eve = engine.acting(Actor(id="eve", capabilities=frozenset(may)))
    found = code(lambda: eve.processes.advance(started, "retry", {"amount": 9}))
    assert found == ("FORBIDDEN" if guard else "VALIDATION_ERROR")
    if not guard:
        assert code(lambda: engine.acting(OVERRIDER).processes.advance(started, "retry", {"amount": 9})) == found
    eve.processes.advance(started, "retry")
    if guard:
        both = Actor(id="otto", capabilities=frozenset({"execution:*", guard}))
        engine.acting(both).processes.advance(started, "retry", {"amount": 6})

    def pay(amount: object) -> None:
        paid.append(amount)

    engine.handle("pay", pay)
    engine.drain()
    assert paid == [6 if guard else 5]


@pytest.mark.row("P-022")
def test_an_answer_by_hand_goes_through_the_output_of_the_step(place: Place) -> None:
    """As if the handler had come back with it; names that only the engine sets are refused, whoever brings them."""
    engine = place.engine().handle("pay", broken_payment)
    text = process(
        system(
            "pay",
            "pay",
            input={"amount": "workflow.amount"},
            output={"paid": "response.amount", "big": "response.amount > 6"},
        ),
        {"id": "w", "type": "wait", "duration": "1h"},
        *ends("done"),
        ways="pay completed w,w completed done",
    )
    for each in load_processes(text):
        engine.register(each)
    started = engine.processes.start("w", {"amount": 5}).id
    engine.drain()
    run = engine.run(started)
    at = number(run, "pay")
    hidden = {"amount": 7, "_last_error": "mine"}
    assert code(lambda: run.complete_step(at, hidden, reason=WHY)) == "invalid_form"
    assert code(lambda: run.change_data({"_answers": {"review": {"bob": {}}}}, reason=WHY)) == "invalid_form"
    assert code(lambda: run.retry(at, reason=WHY, input={"amount": 5, "_answers": {}})) == "invalid_form"
    assert code(lambda: run.fork(run.history()[-1].sequence, reason=WHY, data={"_answers": {}})) == "invalid_form"
    assert code(lambda: run.complete_step(at, {"other": 7}, reason=WHY)) == "invalid_form"
    run.complete_step(at, {"amount": 7}, reason=WHY)
    engine.drain()
    state = engine.processes.get(started).instance.state
    assert (state["paid"], state["amount"]) == (7, 5)


def broken_payment(amount: object) -> object:
    """A bank that is down."""
    raise Fail(f"down: {amount}")


# -- going around what decides


@pytest.mark.row("E-684")
def test_a_wait_for_the_world_is_not_passed_by_a_repair(place: Place) -> None:
    """The world decides there, whether people have a say or not; a timer and a call of a handler are plain."""
    engine = place.engine()
    engine.register(Saga("asks").wait_for("x", signal="go").wait("t", 3600).human("q", ask="user:bea").build())
    engine.register(Saga("plain").wait_for("x", signal="go").wait("t", 3600).build())
    run, plain = begun(engine, "asks"), begun(engine, "plain")
    rita = engine.acting(REPAIRER)
    for each in (run, plain):
        assert code(rita.run(each).skip, number(each, "x"), reason=WHY) == "not_allowed"
        assert code(rita.run(each).complete_step, number(each, "x"), reason=WHY) == "not_allowed"
        engine.acting(OVERRIDER).run(each).skip(number(each, "x"), reason=WHY)
        engine.drain()
        rita.run(each).skip(number(each, "t"), reason=WHY)


_RULE = {"id": "x", "type": "wait", "event": "paid", "key": "order", "next": "end"}
EVENT_WAITS: dict[str, Callable[[], Definition]] = {
    "saga, signal": lambda: Saga("w").wait_for("x", signal="paid").build(),
    "saga, event": lambda: Saga("w").wait_for_event("x", "paid", key="order").build(),
    "process, signal": lambda: _waiting(event="paid"),
    "process, event": lambda: _waiting(event="paid", key="workflow.order"),
    "process, one of two": lambda: _waiting(
        events=[{"event": "paid", "key": "workflow.order"}, {"event": "waived", "key": "workflow.order"}]
    ),
    "rules": lambda: load_rules(
        {"workflow_id": "w", "steps": [_RULE, {"id": "end", "type": "action", "action": "allow"}]}
    ),
}
PAST: dict[str, Act] = {
    "skip": lambda run: run.skip(number(run, "x"), reason=WHY),
    "skip by its timeout": lambda run: run.skip(number(run, "x"), reason=WHY, outcome="timeout"),
    "complete_step": lambda run: run.complete_step(number(run, "x"), {"sum": 5}, reason=WHY),
    "complete_step without an answer": lambda run: run.complete_step(number(run, "x"), reason=WHY),
}


def _waiting(**what: object) -> Definition:
    step = {"id": "x", "type": "wait", **what}
    ways = "x timeout end,x completed end"
    return load_processes(process({**step, "timeout": "9d"}, *ends("end"), ways=ways))[0]


@pytest.mark.row("E-684")
@pytest.mark.parametrize("kind", EVENT_WAITS)
@pytest.mark.parametrize("how", PAST)
def test_a_wait_for_an_event_is_left_without_it_by_override_alone(place: Place, kind: str, how: str) -> None:
    """Somebody else was to tell of the event, in every kind of workflow; what `why` offers names that capability."""
    engine = place.engine()
    engine.register(EVENT_WAITS[kind]())
    run = begun(engine, "w", order="o-1")
    resumer = Actor(id="rita", capabilities=REPAIRER.capabilities | {"execution:resume"})
    assert code(PAST[how], engine.acting(resumer).run(run)) == "not_allowed"
    offered = {each.call: each.capability for reason in run.why().reasons for each in reason.remedies}
    assert {each: offered[each] for each in offered if each in {"run.skip", "run.complete_step"}} in (
        {},
        {"run.skip": "execution:override"},
    )
    assert code(PAST[how], engine.acting(OVERRIDER).run(run)) == ""


@pytest.mark.row("E-684")
def test_a_branch_that_waits_for_an_event_is_cancelled_by_override_alone(place: Place) -> None:
    """The others would go on without the event, be it waited for now or later on the branch; one that waits for none is plain."""
    engine = place.engine()
    saga = Saga("s").fork(
        "both",
        lambda branch: branch.wait_for("x", signal="go"),
        lambda branch: branch.step("calc", "calc").wait_for("y", signal="go"),
        lambda branch: branch.step("plain", "calc"),
    )
    engine.register(saga.join("all").build())
    run = begun(engine, "s")
    tokens = {each.name: each.token for each in run.steps() if each.token != "0"}
    rita = engine.acting(REPAIRER).run(run)
    for name in ("x", "calc"):
        assert code(rita.cancel_branch, tokens[name], reason=WHY) == "not_allowed"
    rita.cancel_branch(tokens["plain"], reason=WHY)
    engine.acting(OVERRIDER).run(run).cancel_branch(tokens["x"], reason=WHY)


@pytest.mark.row("E-684")
def test_no_outcome_that_is_chosen_by_a_repair_leads_around_a_question(place: Place) -> None:
    """Plain work is skipped by a repair, unless its other ways lead to people."""
    engine = place.engine()
    saga = Saga("s").step("calc", "calc", on_error=lambda branch: branch.human("q", ask="user:bea"))
    engine.register(saga.build())
    run = begun(engine, "s")
    rita, at = engine.acting(REPAIRER).run(run), number(run, "calc")
    assert code(lambda: rita.skip(at, reason=WHY)) == "not_allowed"
    assert code(lambda: rita.complete_step(at, reason=WHY)) == "not_allowed"
    rita.skip(at, reason=WHY, outcome="error")
    engine.drain()
    assert len(run.tasks()) == 1


@pytest.mark.row("E-684")
def test_a_branch_that_decides_is_not_cancelled_by_a_repair(place: Place) -> None:
    """Where people have a say, a branch that waits for the world is cancelled with the right to override; one of plain work as before."""
    engine = place.engine()
    saga = Saga("s").fork(
        "both",
        lambda branch: branch.wait_for("x", signal="go"),
        lambda branch: branch.step("calc", "calc"),
        lambda branch: branch.wait_for("z", signal="stop"),
    )
    engine.register(saga.join("all").human("q", ask="user:bea").build())
    run = begun(engine, "s")
    tokens = {each.name: each.token for each in run.steps() if each.name in {"x", "calc"}}
    rita = engine.acting(REPAIRER).run(run)
    assert code(lambda: rita.cancel_branch(tokens["x"], reason=WHY)) == "not_allowed"
    rita.cancel_branch(tokens["calc"], reason=WHY)
    engine.acting(OVERRIDER).run(run).cancel_branch(tokens["x"], reason=WHY)


# -- documents

_HEAD = """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    exit: join
    nodes:
"""
_CFO = "      - {id: cfo, type: approval, approvers: [{role: cfo}]}\n"
_CHOICE = '      - {id: c, type: condition, expression: "context.risk.high == true"}\n'
_CHOSEN = '{from: c, to: cfo, on: "true"}, {from: c, to: out, on: "false"}'
_BLOCKING = "      - {id: r, type: rule, rules: [{name: big, effect: block, when: entity.grand_total > org.most, reason: no}]}\n"
DOORS: dict[str, tuple[str, Act, str]] = {
    "a rule that asks": (
        "      - {id: r, type: rule, rules: [{name: big, effect: outcome, when: entity.grand_total > org.most, outcome: big}]}\n"
        + _CFO
        + "    edges: [{from: r, to: cfo, on: big}, {from: r, to: out, on: ok}]\n",
        lambda run: run.skip(number(run, "r"), reason=WHY, outcome="ok"),
        "protected",
    ),
    "a rule that blocks": (
        _BLOCKING + "    edges: [{from: r, to: out, on: ok}]\n",
        lambda run: run.skip(number(run, "r"), reason=WHY, outcome="ok"),
        "not_allowed",
    ),
    "a task, completed": (
        "      - {id: t, type: task, handler: score, into: risk, attempts: 1}\n"
        + _CHOICE
        + _CFO
        + f"    edges: [{{from: t, to: c}}, {_CHOSEN}]\n",
        lambda run: run.complete_step(number(run, "t"), {"high": False}, reason=WHY),
        "not_allowed",
    ),
    "an event, completed": (
        "      - {id: w, type: wait_event, event: score, into: risk}\n"
        + _CHOICE
        + _CFO
        + f"    edges: [{{from: w, to: c}}, {_CHOSEN}]\n",
        lambda run: run.complete_step(number(run, "w"), {"high": False}, reason=WHY),
        "not_allowed",
    ),
    "an event, skipped": (
        "      - {id: w, type: wait_event, event: score, timeout: 5d}\n"
        + _CFO
        + "    edges: [{from: w, to: cfo, on: timeout}, {from: w, to: out, on: event}]\n",
        lambda run: run.skip(number(run, "w"), reason=WHY),
        "protected",
    ),
    "a timer": (
        "      - {id: w, type: wait_timer, duration: 5d}\n",
        lambda run: run.skip(number(run, "w"), reason=WHY),
        "not_allowed",
    ),
    "a call": (
        "      - {id: k, type: call, workflow: check, timeout: 5d}\n"
        + _CFO
        + "    edges: [{from: k, to: out, on: ok}, {from: k, to: cfo, on: error}, {from: k, to: cfo, on: timeout}]\n",
        lambda run: run.skip(number(run, "k"), reason=WHY),
        "protected",
    ),
}


@pytest.mark.row("EO-10")
@pytest.mark.parametrize("door", sorted(DOORS))
def test_no_repair_takes_a_document_past_what_decides(place: Place, door: str) -> None:
    """A rule, an event, a timer and an answer take the right to override; around an approval leads nobody."""
    body, act, expected = DOORS[door]
    engine = opened(place).handle("score", broken)
    engine.register(Saga("check").wait_for("go", signal="go").build())
    published(engine, _HEAD + body)
    mine = of(engine, CLERK).documents
    instance = mine.create("invoice", GIVEN, id="I-1").instance
    mine.transition("invoice", "I-1", "submit")
    engine.drain()
    assert code(lambda: act(of(engine, REPAIRER).run(instance))) == expected
    engine.drain()
    assert mine.get("invoice", "I-1").status == "submitted"
    assert code(lambda: act(of(engine, OVERRIDER).run(instance))) == ("protected" if expected == "protected" else "")


# -- what is recommended


def test_why_names_the_right_that_each_operation_takes(place: Place) -> None:
    """A recommended call is tried as somebody with and without the right to override."""
    engine = place.engine()
    engine.register(Saga("asks", dlq=True).step("calc", broken, attempts=1).human("q", ask="user:bea").build())
    engine.register(Saga("waits").wait("t", 3600).wait_for("x", signal="go").human("q", ask="user:bea").build())
    run = begun(engine, "asks")
    [reason] = run.why().reasons
    told = {each.call: each.capability for each in reason.remedies}
    assert (told["run.retry"], told["run.skip"], told["run.complete_step"]) == ("execution:repair",) * 3
    waiting = begun(engine, "waits")
    [reason] = waiting.why().reasons
    assert [(each.call, each.capability) for each in reason.remedies] == [("run.skip", "execution:repair")]
