"""Runs of sagas that between them write every event of the graph machine."""

from __future__ import annotations

from datetime import timedelta

from app.sagas.acting import BROKEN, Stage, step
from histories.tape import Tape
from standfast import Actor, Branch, EffectContext, Escalation, RequestContext, Run, Saga, StepContext, event
from standfast.expressions import Spelling, parse
from standfast.features.sagas.builder import Build
from standfast.graph.values.approver_rules import Ask
from standfast.graph.values.approver_rules import Stage as ChainStage
from standfast.kernel.ids import InstanceId
from standfast.machine.model.commands.run_commands import PeopleFound
from standfast.machine.model.engine_tasks import FindPeople

ADA = RequestContext(
    partition="north",
    actor=Actor(
        id="ada",
        roles=frozenset(("boss",)),
        capabilities=frozenset(("orders.*", "execution:*")),
        on_behalf_of="grace",
    ),
    trace="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
)
"""A person who stands in for another one, in a request that has a name."""
OLGA = Actor(id="olga", capabilities=frozenset(("execution:*",)))
"""An operator."""


def run(tape: Tape, definition: str, given: object = None) -> InstanceId:
    """Start a saga on somebody's behalf, and do all that follows."""
    instance = tape.engine.acting(ADA).start(definition, given).id
    tape.drain()
    return instance


def order(tape: Tape) -> None:
    """All goes well: retries, a condition, branches that meet, tasks in parallel, a save point, a point of no return, a delayed start."""
    stage = Stage()
    saga = (
        Saga("order", deadline=86400, capability="orders.start", cancel_capability="orders.stop")
        .step(
            "reserve",
            stage.does("reserve", BROKEN, {"reserved": "lamp", "price": 12.5}),
            delay=5,
            backoff="exponential",
            timeout=30,
            priority=7,
            metadata={"team": "stock"},
        )
        .on_failure("release", stage.does("release"))
        .save_point("safe")
        .condition("rich", "{{ gt .amount 3 }}", lambda poor: poor.step("refuse", stage.does("refuse")))
        .fork(
            "both",
            lambda one: one.step("charge", stage.does("charge", {"charged": 5})).step("book", stage.does("book", 1)),
            lambda two: two.step("pack", stage.does("pack", {"parcel": "p-1"}), once=True),
        )
        .join("met")
        .point_of_no_return("sold")
        .step("ship", stage.does("ship", None), start_after=60)
        .build()
    )
    tape.engine.register(saga)
    engine = tape.engine.acting(ADA)
    engine.start(saga, {"amount": 5, "note": "Grüße ☃"}, key="o-1", idempotency_key="once", delay=10, comment="urgent")
    for seconds in (0, 10, 5, 60):
        tape.engine.advance(seconds=seconds)
        tape.drain()
    engine.start(saga, {"amount": 1}, key="o-2")
    tape.engine.advance(seconds=10)
    tape.drain()


def questions(tape: Tape) -> None:
    """People answer: one confirms for another, one rejects and the saga ends, one takes another way, one is too late."""
    stage = Stage()
    tape.engine.register(
        Saga("question")
        .human("ask", subject="May {name} go?", role="boss", capability="orders.approve", shows=["name"], timeout=3600)
        .step("go", stage.does("go"))
        .build()
    )
    tape.engine.register(
        Saga("ways")
        .human(
            "ask",
            timeout=60,
            on_rejected=lambda other: other.step("say no", stage.does("say no")),
            on_timeout=lambda other: other.step("remind", stage.does("remind")),
        )
        .build()
    )
    tape.engine.register(Saga("hard").step("a", stage.does("a")).human("ask", on_rejected="fail").build())
    ada = tape.engine.acting(ADA)
    for name, confirmed in (("question", True), ("question", False), ("ways", False), ("hard", False)):
        instance = run(tape, name, {"name": "Bob"})
        asked = step(tape.engine, instance, "ask").id
        if confirmed:
            ada.tasks.approve(asked, comment="fine", data={"limit": 3})
        else:
            ada.tasks.reject(asked, comment="no")
        tape.drain()
    run(tape, "ways", {"name": "Bob"})
    run(tape, "question", {"name": "Eve"})
    tape.engine.advance(seconds=60)
    tape.drain()


def approvals(tape: Tape) -> None:
    """Several people decide: found by the engine, stage by stage, with all that they do to a question in between; one is never found."""
    tape.engine.register(
        Saga("spend")
        .human("first", ask=["user:ann", "user:bob", "rule:owner"], agree=2, abstain=True, requires_reason=True)
        .human("chain", chain="large", distinct_approvers=True)
        .human("boss", ask="manager", self_approval=False, distinct_from="first")
        .build()
    )

    def found(_context: EffectContext, errand: FindPeople) -> PeopleFound:
        (ask,) = errand.asks
        if ask.by != "chain":
            return PeopleFound(step=errand.step, error="the directory knows no manager")
        stages = [
            ChainStage(asks=[Ask(by="role", of="clerk")]),
            ChainStage(name="money", asks=[Ask(by="user", of="eve")]),
        ]
        return PeopleFound(step=errand.step, stages=stages, chain_version="2", why=[{"ask": "chain:large", "found": 2}])

    tape.engine.errands.add(FindPeople, found)
    instance = run(tape, "spend", {"owner": "carl"})
    ann, bob, carl, eve, ops = (
        tape.engine.acting(RequestContext(actor=Actor(id=name, capabilities=frozenset(rights)))).tasks
        for name, *rights in (("ann",), ("bob",), ("carl",), ("eve",), ("ops", "task:*"))
    )
    first = step(tape.engine, instance, "first").id
    ann.claim(first)
    ann.release(first)
    ann.ask(first, "what for?")
    bob.comment(first, "lamps")
    ann.decide(first, "rejected", comment="too dear", data={"most": 5})
    ann.withdraw_decision(first, "I misread it")
    ann.delegate(first, "dan", reason="holidays")
    ops.reassign(first, "role:boss", who="bob")
    ops.add_approver(first, "fay", weight=2)
    carl.approve(first)
    tape.engine.acting(ADA).tasks.approve(first)
    tape.drain()
    chain = step(tape.engine, instance, "chain").id
    clerk = RequestContext(actor=Actor(id="cleo", roles=frozenset(("clerk",))))
    tape.engine.acting(clerk).tasks.approve(chain)
    tape.drain()
    eve.approve(chain)
    tape.drain()
    run(tape, "spend", {"owner": "carl"})


def waits(tape: Tape) -> None:
    """Time goes by, signals come before and after somebody waits for them, and a wait ends without one."""
    stage = Stage()
    tape.engine.register(
        Saga("waiting")
        .wait("a while", 30)
        .wait_for("payment", "paid", timeout=60, on_timeout=lambda late: late.step("dun", stage.does("dun")))
        .step("thank", stage.does("thank"))
        .build()
    )
    early, late, never = (run(tape, "waiting", {"n": n}) for n in range(3))
    tape.engine.acting(ADA).run(early).signal("paid", {"amount": 5})
    tape.engine.advance(seconds=30)
    tape.drain()
    tape.engine.acting(ADA).run(late).signal("paid")
    tape.engine.run(never).signal("something else", [1, None, "x"])
    tape.engine.advance(seconds=60)
    tape.drain()


def items(tape: Tape) -> None:
    """A branch for each item, a few at a time; another run in which one of them fails and takes another way."""
    stage = Stage()

    def double(ctx: StepContext) -> object:
        item = ctx.input["item"]
        if item == 13:
            raise BROKEN
        return {"doubled": int(str(item)) * 2}

    tape.engine.register(
        Saga("items")
        .for_each("all", "rows", lambda body: body.step("double", stage.does("double", double), attempts=1), limit=2)
        .step("sum", stage.does("sum"))
        .build()
    )
    tape.engine.register(
        Saga("careful")
        .step(
            "try", stage.does("try", BROKEN), attempts=1, on_error=lambda other: other.step("mend", stage.does("mend"))
        )
        .build()
    )
    run(tape, "items", {"rows": [1, 2, 3]})
    run(tape, "items", {"rows": [1, 13, 3]})
    run(tape, "items", {"rows": []})
    run(tape, "careful")


def rollback(tape: Tape) -> None:
    """A step fails for good: what runs is stopped, what was not begun is taken back, the rest is undone; one undoing needs two calls."""
    stage = Stage()
    tape.engine.register(
        Saga("trip")
        .step("hotel", stage.does("hotel", {"room": 7}))
        .on_failure("cancel hotel", stage.does("cancel hotel", BROKEN, None), start_after=5)
        .step("plain", stage.does("plain"))
        .fork(
            "f",
            lambda one: one.step("flight", stage.does("flight", BROKEN), attempts=2, priority=9),
            lambda two: two.human("ask"),
            lambda three: three.step("late", stage.does("late")),
        )
        .join("met")
        .build()
    )
    run(tape, "trip", {"to": "Rome"})
    tape.engine.advance(seconds=10)
    tape.drain()


def stuck(tape: Tape) -> None:
    """An undoing gives up and becomes a dead letter; an operator tries one again, and leaves the other."""
    stage = Stage()
    tape.engine.register(
        Saga("stuck")
        .step("a", stage.does("a"))
        .step("b", stage.does("b"))
        .on_failure("undo b", stage.does("undo b", BROKEN, None, BROKEN), attempts=1)
        .step("c", stage.does("c", BROKEN), attempts=1)
        .build()
    )
    first = run(tape, "stuck")
    run(tape, "stuck")
    (letter,) = tape.engine.dead_letters.list(instance=first)
    tape.engine.acting(ADA).dead_letters.retry_compensation(letter)
    tape.drain()


def letters(tape: Tape) -> None:
    """Steps give up and wait for an operator beside branches that are frozen; one run is mended, one is aborted, one waits."""
    stage = Stage()
    tape.engine.register(
        Saga("dead", dlq=True)
        .fork(
            "f",
            lambda one: one.step("bad", stage.does("bad", BROKEN, BROKEN, BROKEN, None), attempts=1, priority=5),
            lambda two: two.step("cold", stage.does("cold")),
            lambda three: three.wait_for("answer", "answer").step("after", stage.does("after")),
        )
        .join("met")
        .build()
    )
    mended, aborted, _left = (run(tape, "dead", {"n": n}) for n in range(3))
    tape.engine.run(mended).signal("answer", {"yes": True})
    tape.drain()
    (letter,) = tape.engine.dead_letters.list(instance=mended)
    tape.engine.acting(ADA).dead_letters.requeue(letter, {"n": 7})
    tape.drain()
    tape.engine.acting(ADA).futures.run(aborted).abort("of no use")
    tape.drain()


def offers(tape: Tape) -> None:
    """The first of two offers is taken and what the other did is undone; once that fails, and an operator lets it stand."""
    stage = Stage()
    stage.does("release B", None, BROKEN)

    def supplier(name: str) -> Build:
        return lambda branch: (
            branch.step(f"reserve {name}", stage.does(f"reserve {name}"))
            .on_failure(f"release {name}", stage.does(f"release {name}"), attempts=1)
            .wait_for(f"wait {name}", f"offer {name}")
            .step(f"confirm {name}", stage.does(f"confirm {name}"), attempts=1)
        )

    tape.engine.register(
        Saga("offers").fork("ask", supplier("A"), supplier("B")).join("first", "any").wait_for("paid", "paid").build()
    )
    tape.engine.register(
        Saga("finishing").fork("ask", supplier("A"), supplier("C")).join("first", "any", losers="finish").build()
    )
    for _ in range(2):
        instance = run(tape, "offers")
        for signal in ("offer A", "paid"):
            tape.engine.run(instance).signal(signal)
            tape.drain()
    (letter,) = tape.engine.dead_letters.list(instance=instance)
    tape.engine.acting(ADA).run(instance).skip(letter.number, reason="released by hand")
    tape.drain()
    instance = run(tape, "finishing")
    for signal in ("offer A", "offer C"):
        tape.engine.run(instance).signal(signal)
        tape.drain()
    tape.engine.register(
        Saga("some")
        .fork(
            "ask",
            lambda one: one.step("x", stage.does("x", BROKEN), attempts=1),
            lambda two: two.step("y", stage.does("y", BROKEN), attempts=1),
            lambda three: three.step("z", stage.does("z")).on_failure("undo z", stage.does("undo z")),
        )
        .join("two", 2)
        .build()
    )
    run(tape, "some")
    tape.engine.register(
        Saga("nested")
        .fork(
            "outer",
            lambda one: one.wait_for("first", "go"),
            lambda two: two.fork(
                "inner",
                lambda left: left.step("l", stage.does("l")).on_failure("undo l", stage.does("undo l")).human("ask"),
                lambda right: right.wait("long", 3600),
            ).join("inside"),
        )
        .join("any", "any")
        .build()
    )
    instance = run(tape, "nested")
    tape.engine.run(instance).signal("go", {"n": 1})
    tape.drain()


def children(tape: Tape) -> None:
    """Children end well, fail with their parent, and cannot be undone at first."""
    stage = Stage()
    sub = (
        Saga("sub")
        .step("pick", stage.does("pick", {"picked": 1}))
        .on_failure("unpick", stage.does("unpick", BROKEN, None), attempts=1)
        .human("ask")
        .build()
    )
    above = (
        Saga("above")
        .step("order", stage.does("order"))
        .on_failure("revoke", stage.does("revoke"))
        .call("fulfil", sub)
        .build()
    )
    tape.engine.register(sub).register(above)
    well = run(tape, "above", {"n": 1})
    (child,) = tape.engine.runs.list(parent=well).items
    tape.engine.acting(ADA).tasks.approve(step(tape.engine, child.id, "ask").id)
    tape.drain()
    halted = run(tape, "above", {"n": 2})
    tape.engine.acting(ADA).futures.run(halted).cancel("no more")
    tape.drain()
    (child,) = tape.engine.runs.list(parent=halted).items
    (letter,) = tape.engine.dead_letters.list(instance=child.id)
    tape.engine.acting(ADA).dead_letters.retry_compensation(letter)
    tape.drain()


def undone_children(tape: Tape) -> None:
    """Children that have completed are undone with their parent; one has passed a point of no return, and an operator goes on without it."""
    stage = Stage()
    sub = Saga("sub").step("pick", stage.does("pick", {"picked": 1})).on_failure("unpick", stage.does("unpick")).build()
    sent = (
        Saga("sent")
        .step("pick", stage.does("pick"))
        .on_failure("unpick", stage.does("unpick"))
        .point_of_no_return("posted")
        .build()
    )
    tape.engine.register(sub).register(sent)
    for name, child in (("above", sub), ("beyond", sent)):
        saga = Saga(name).step("order", stage.does("order")).on_failure("revoke", stage.does("revoke"))
        saga = saga.call("fulfil", child).step("bill", stage.does("bill", BROKEN, BROKEN), attempts=1)
        tape.engine.register(saga.build())
        started = tape.engine.acting(OLGA).start(name, {"n": 1})
        tape.drain()
    started.skip(2, reason="sent back by hand")
    tape.drain()


def cancelled(tape: Tape) -> None:
    """A run is cancelled from inside of a branch whose handler still runs, and another one while it waits."""
    stage = Stage()

    def stop(ctx: StepContext) -> object:
        tape.engine.acting(ADA).futures.run(ctx.instance).cancel("changed their mind")
        tape.look()
        return {"done": True}

    tape.engine.register(
        Saga("cancelled")
        .step("a", stage.does("a", {"a": 1}))
        .on_failure("undo a", stage.does("undo a"))
        .fork(
            "f",
            lambda one: one.step("x", stage.does("x", stop), priority=9).on_failure("undo x", stage.does("undo x")),
            lambda two: two.step("y", stage.does("y")),
        )
        .join("met")
        .build()
    )
    tape.engine.register(Saga("asking").human("ask").build())
    run(tape, "cancelled")
    waiting = run(tape, "asking")
    tape.engine.acting(ADA).futures.run(waiting).cancel()
    tape.drain()


def missing(tape: Tape) -> None:
    """A step waits for a handler that nobody has."""
    tape.engine.register(Saga("missing").step("a", "nobody", transactional=True).build())
    run(tape, "missing")
    tape.engine.advance(minutes=2)
    tape.drain()


def overdue(tape: Tape) -> None:
    """A run takes longer than it may."""
    stage = Stage()
    tape.engine.register(
        Saga("overdue", deadline=60)
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a"))
        .human("ask")
        .build()
    )
    run(tape, "overdue")
    tape.engine.advance(seconds=60)
    tape.drain()


def paused(tape: Tape) -> None:
    """Runs are paused: by a clock that stands still and by one that runs on, with an answer and a failure meanwhile, and until a time."""
    stage, operator = Stage(), RequestContext(actor=Actor(id="olga", capabilities=frozenset(("execution:*",))))
    olga = tape.engine.acting(operator)

    def stop(ctx: StepContext) -> object:
        if ctx.attempt == 1:
            olga.futures.run(ctx.instance).pause("not now")
        tape.look()
        raise BROKEN

    tape.engine.register(
        Saga("paused", deadline=7200)
        .human("ask", timeout=3600)
        .wait("rest", 60)
        .condition("big", "resume.amount > 10", otherwise=lambda other: other.step("small", stage.does("small")))
        .step("large", stage.does("large"))
        .build()
    )
    tape.engine.register(
        Saga("failing")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a"))
        .step("b", stop, attempts=1)
        .build()
    )
    for decides in (True, False):
        instance = run(tape, "paused")
        olga.run(instance).pause("audit", clock="stand_still" if decides else "run_on")
        if decides:
            tape.engine.tasks.approve(step(tape.engine, instance, "ask"))
        tape.engine.advance(minutes=5)
        tape.drain()
        olga.run(instance).resume("done", data={"amount": 11}, triggered_by="event", triggered_by_id="e-1")
        tape.drain()
        if not decides:
            olga.run(instance).resume("urgent", override=True)
        tape.engine.advance(minutes=2)
        tape.drain()
    later = run(tape, "paused")
    olga.run(later).pause(until=tape.engine.clock.now() + timedelta(minutes=10))
    tape.drain()
    failing = run(tape, "failing")
    olga.run(failing).resume()
    tape.drain()
    tape.engine.advance(minutes=10)
    tape.drain()


def published(tape: Tape) -> None:
    """Graphs that were published as data: a way with a condition of its own and values that it sets, an end that fails, no way on, a loop."""
    stage = Stage()

    def edge(source: str, target: str, **rest: object) -> dict[str, object]:
        return {"source": source, "target": target, **rest}

    def graph(name: str, edges: list[dict[str, object]], policies: dict[str, object], kind: str = "saga") -> None:
        called = {name: {"id": name, "op": {"op": "task", "work": {"handler": name}}} for name in ("a", "b")}
        ends = {"bad end": {"id": "bad end", "op": {"op": "end", "status": "failed"}}} if kind == "saga" else {}
        tape.engine.definitions.publish(
            {
                "kind": kind,
                "name": name,
                "version": "1",
                "entry": "a",
                "nodes": called | ends,
                "edges": edges,
                "policies": policies,
            }
        )

    def native(source: str, spelling: Spelling = "native") -> dict[str, object]:
        return parse(source, spelling=spelling).to_data()

    for name in ("a", "b"):
        tape.engine.handle(name, stage.does(name, {name: True}))
    often = edge("a", "b", when=native("input.n > 5"), assign={"m": native("input.n", "mapping")})
    graph("guarded", [often, edge("a", "bad end", when=native("input.n < 0"), priority=1)], {"on_no_edge": "pause"})
    graph("circle", [edge("a", "b"), edge("b", "a", rework=True)], {"max_visits": 2, "on_failure": "pause"}, "process")
    for number in (7, -1, 0):
        instance = run(tape, "guarded", {"n": number})
    tape.engine.acting(ADA).run(instance).resume()
    run(tape, "circle")
    tape.drain()


def repairs(tape: Tape) -> None:
    """Operators mend runs that do not go on: steps are retried, skipped, completed by hand, given away, and a run moves back and fails."""
    stage = Stage()
    tape.engine.register(
        Saga("mended", dlq=True)
        .step("reserve", stage.does("reserve", {"reservation": 1}), start_after=60)
        .on_failure("release", stage.does("release"))
        .save_point("safe")
        .step("charge", stage.does("charge", BROKEN, BROKEN, BROKEN, None), attempts=1)
        .on_failure("refund", stage.does("refund"))
        .wait_for("paid", "paid")
        .step("ship", stage.does("ship"), attempts=1)
        .build()
    )
    olga = tape.engine.acting(OLGA)

    def mending(name: str) -> tuple[Run[object], str]:
        """A run, and its step that has not ended."""
        mended = olga.run(run(tape, "mended", {"of": name}))
        mended.retry(mended.steps()[-1], reason="nobody has to wait")
        tape.drain()
        return mended, mended.steps()[-1].id

    skipped, charge = mending("skipped")
    skipped.skip(charge, reason="paid in cash")
    skipped.skip(skipped.steps()[-1], reason="paid in cash", outcome="timeout")
    tape.drain()
    completed, charge = mending("completed")
    completed.change_data({"of": None, "by": {"hand": True}}, reason="the form was wrong")
    completed.complete_step(charge, {"charge": 2}, reason="charged by hand")
    tape.drain()
    completed.move_back("safe", reason="it was another card")
    tape.drain()
    failed, _charge = mending("failed")
    olga.futures.run(failed).fail("it cannot be mended")
    tape.drain()
    given = olga.run(run(tape, "mended", {"of": "given"}))
    given.reenqueue(given.steps()[-1], reason="the host burnt down")
    tape.drain()


def cut(tape: Tape) -> None:
    """An operator cancels a branch: one that waits, and one whose step gave up; what it did is undone, and the others meet without it."""
    stage = Stage()
    tape.engine.register(
        Saga("cut", dlq=True)
        .fork(
            "fork",
            lambda way: (
                way.step("left", stage.does("left")).on_failure("put back", stage.does("put back")).wait("pause", 60)
            ),
            lambda way: way.step("right", stage.does("right", BROKEN, None), attempts=1),
        )
        .join("join")
        .build()
    )
    olga = tape.engine.acting(OLGA)
    for node in ("right", "pause"):
        cut_short = olga.start("cut")
        tape.drain()
        token = next(each.token for each in cut_short.steps() if each.name == node)
        cut_short.cancel_branch(token, reason="not needed")
        tape.drain()
    tape.engine.advance(seconds=60)
    tape.drain()


def forks(tape: Tape) -> None:
    """A run begins where another one was, with other data, and what was under way is asked for again."""
    stage = Stage()
    tape.engine.register(
        Saga("forked")
        .step("a", stage.does("a", {"a": 1}))
        .fork(
            "f",
            lambda one: one.step("b", stage.does("b")),
            lambda two: two.wait_for("word", "word"),
        )
        .join("met")
        .build()
    )
    origin = tape.engine.run(run(tape, "forked", {"n": 1}))
    tape.drain()
    begun = tape.engine.acting(OLGA).run(origin).fork(len(origin.history()), reason="another try", data={"n": 2})
    tape.engine.run(begun).signal("word", {"yes": True})
    tape.drain()


def told(tape: Tape) -> None:
    """A question with a form that nobody answers until it has escalated; people are told, and some of them cannot be."""
    form: dict[str, object] = {
        "type": "object",
        "properties": {"note": {"type": "string"}, "level": {"type": "integer", "default": 1}},
        "required": ["note"],
    }
    saga = (
        Saga("told")
        .notify("news", to=["ann", "role:boss", "{mail}"], subject="Order {n}", body="It is {n}", channel="in_app")
        .notify("lost", to="ann", subject="by {missing}")
        .human(
            "ask",
            subject="Order {n}?",
            role="clerk",
            form=form,
            due=3600,
            remind=[60, 120],
            escalate=[Escalation(180, to="role:boss", timeout=7200), Escalation(240, outcome="rejected")],
            notify=["in_app", "pigeon"],
            on_rejected=lambda no: no.notify("end", to="ann", subject="no", html="<b>{n}</b>", wait=True),
        )
        .notify("last", to="role:boss", subject="done", channel=["in_app", "email"], wait=True, on_error=_nothing)
        .build()
    )
    tape.engine.register(saga)
    answered = run(tape, "told", {"n": 1, "mail": "bob@example.com"})
    run(tape, "told", {"n": 2, "mail": "bob@example.com"})
    tape.engine.advance(seconds=200)
    tape.drain()
    tape.engine.acting(ADA).tasks.approve(f"{answered}:3", data={"note": "fine"})
    tape.drain()
    tape.engine.advance(hours=3)
    tape.drain()


def _nothing(way: Branch) -> object:
    return way.save_point("could not be told")


def publications(tape: Tape) -> None:
    """Events come early and late, for all who wait and for one of them, and start runs; one is wanted by two, and one by nobody who may have it."""
    stage = Stage()
    paid = event("payment", key="order", match="event.amount > 5", name="money")
    saga = (
        Saga("delivery", capability="orders.start")
        .trigger("order.created", key="order", when="event.order != ''", input={"order": "order", "for": "key"})
        .wait("morning", cron="0 9 * * MON-FRI", time_zone="Europe/Berlin")
        .wait("day", until="input.day?")
        .build()
    )
    tape.engine.register(saga)
    tape.engine.register(Saga("several").wait_for_events("both", paid, event("shipment"), need=2).build())
    tape.engine.register(
        Saga("one")
        .wait_for_event("ticket", "ticket", timeout=60, on_timeout=lambda late: late.step("x", stage.does("x")))
        .build()
    )
    engine = tape.engine.acting(ADA)
    engine.publish("order.created", "ann", {"order": "o-1"}, event_id="created", ttl=3600)
    engine.publish("payment", "o-1", {"amount": 3}, event_id="little")
    engine.publish("payment", "o-1", {"amount": 7}, event_id="enough", ttl=90)
    tape.drain()
    run(tape, "several", {"order": "o-1"})
    tape.engine.publish("shipment", payload=[1, None], event_id="sent", ttl=0)
    tape.drain()
    run(tape, "several", {"order": "o-2"})
    for number in (1, 2):
        tape.engine.publish("ticket", payload=number, event_id=f"t-{number}", match_one=True)
        tape.engine.advance(seconds=1)
    seekers = [tape.engine.start("one") for _ in range(2)]
    while tape.engine.execute_next():
        tape.look()
    tape.drain()
    assert [each.describe().status for each in seekers] == ["completed", "completed"]
    run(tape, "one")
    gone = run(tape, "one")
    tape.engine.futures.run(gone).abort("not any more")
    tape.engine.publish("ticket", payload=3, event_id="t-3", match_one=True)
    tape.drain()
    tape.engine.register(Saga("picky").wait_for_event("bill", "bill", match="event > 5").build())
    for _ in range(2):
        run(tape, "picky")
    for amount in (3, 7):
        tape.engine.publish("bill", payload=amount, event_id=f"b-{amount}", match_one=True)
        tape.drain()


def own_matters(tape: Tape) -> None:
    """Whoever gives a run other data, forks it or starts it for another has brought it about, and it is decided by somebody else."""
    tape.engine.register(Saga("signed").human("sign", role="finance", self_approval=False).build())
    tape.engine.register(Saga("bought").call("part", "signed").build())
    overrider = Actor(id="olga", capabilities=frozenset({"execution:*"}), on_behalf_of="otto")
    operator, clerk = tape.engine.acting(overrider), Actor(id="ann", on_behalf_of="rita")
    whole = tape.engine.acting(clerk).start("bought", {"amount": 5})
    tape.drain()
    operator.run(whole.id).change_data({"amount": 9}, reason="a typo")
    tape.drain()
    one = tape.engine.acting(clerk).start("signed", {"amount": 5})
    tape.drain()
    operator.run(one.id).fork(one.history()[-1].sequence, reason="again", data={"amount": 7})
    tape.drain()
    for task in tape.engine.tasks.list():
        tape.engine.acting(Actor(id="bob", roles=frozenset({"finance"}))).tasks.approve(task)
    tape.drain()


SCENARIOS = (
    order,
    questions,
    approvals,
    waits,
    items,
    rollback,
    stuck,
    letters,
    offers,
    children,
    undone_children,
    cancelled,
    missing,
    overdue,
    paused,
    published,
    repairs,
    own_matters,
    cut,
    forks,
    told,
    publications,
)
