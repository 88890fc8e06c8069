"""Who may start, answer and stop a workflow, as callers meet it; and workflows that another front end than sagas has made."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from app.sagas.acting import BROKEN, Stage, history, run, status, statuses, step
from standfast import Actor, Calls, Definition, Engine, ForbiddenError, NotFoundError, RejectedError, Saga
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph, graph_data
from standfast.graph.status_words.by_kind import words_of
from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import SHARED_TENANT
from support.engines import Place

ANN = Actor(id="ann", roles=frozenset({"finance"}), capabilities=frozenset({"orders:*"}))
BOB = Actor(id="bob")


def order(stage: Stage) -> Definition:
    """A saga whose start, question, signal and end take something."""
    return (
        Saga("order", capability="orders:start", cancel_capability="orders:stop")
        .human("approve", role="finance", capability="orders:approve:execute")
        .wait_for("paid", "payment", capability="orders:pay")
        .step("ship", stage.does("ship"))
        .build()
    )


def acting(engine: Engine, actor: Actor) -> Calls:
    """The calls of somebody."""
    return engine.as_tenant(engine.request.tenant, actor=actor)


CALLS: dict[str, Callable[[Calls, InstanceId, str], object]] = {
    "decide": lambda calls, _instance, step: calls.tasks.decide(step, "confirmed"),
    "cancel": lambda calls, instance, _step: calls.run(instance).cancel(),
    "abort": lambda calls, instance, _step: calls.run(instance).abort(),
    "signal": lambda calls, instance, _step: calls.run(instance).signal("payment"),
}


LOOKS: dict[str, Callable[[Calls, InstanceId], object]] = {
    "describe": lambda calls, instance: calls.run(instance).describe(),
    "steps": lambda calls, instance: calls.run(instance).steps(),
    "history": lambda calls, instance: calls.run(instance).history(),
    "tasks": lambda calls, instance: calls.run(instance).tasks(),
    "diagram": lambda calls, instance: calls.run(instance).diagram(),
    "verify": lambda calls, instance: calls.run(instance).verify(),
    "why": lambda calls, instance: calls.run(instance).why(),
    "resume_requests": lambda calls, instance: calls.run(instance).resume_requests(),
    "resume_options": lambda calls, instance: calls.run(instance).resume_options(),
    "fork_preview": lambda calls, instance: calls.run(instance).fork_preview(1),
    "runs.get": lambda calls, instance: calls.runs.get(instance),
}
LISTS: dict[str, Callable[[Calls], object]] = {
    "runs.list": lambda calls: calls.runs.list(),
    "runs.paused": lambda calls: calls.runs.paused(),
    "runs.resumable": lambda calls: calls.runs.resumable(),
    "runs.stuck": lambda calls: calls.runs.stuck(),
    "instances.list": lambda calls: calls.instances.list(),
    "dead_letters.list": lambda calls: calls.dead_letters.list(),
    "dead_letters.count": lambda calls: calls.dead_letters.count(),
    "tasks.list": lambda calls: calls.tasks.list(),
    "tasks.list of a definition": lambda calls: calls.tasks.list(definition="order"),
    "tasks.list of a key": lambda calls: calls.tasks.list(key="k"),
    "tasks.list of a role of others": lambda calls: calls.tasks.list(role="boss"),
    "events.list": lambda calls: calls.events.list(),
}
READER = Actor(id="rea", capabilities=frozenset({"execution:read"}))


@pytest.mark.row("R-100")
def test_whoever_looks_at_runs_needs_a_capability(place: Place) -> None:
    """Everybody may look at those that he started himself, and at no others; other tenants find nothing, whatever they may."""
    engine = place.engine().register(order(Stage()))
    instance = acting(engine, ANN).start("order").id
    engine.drain()
    for look in LOOKS.values():
        with pytest.raises(ForbiddenError, match="needs the capability 'execution:read'"):
            look(acting(engine, BOB), instance)
        with pytest.raises(NotFoundError):
            look(engine.as_tenant("other", actor=READER), instance)
        look(acting(engine, ANN), instance)
        look(acting(engine, READER), instance)
    for listed in LISTS.values():
        with pytest.raises(ForbiddenError, match="needs the capability 'execution:read'"):
            listed(acting(engine, ANN))
        listed(acting(engine, READER))


@pytest.mark.row("R-100")
def test_a_question_is_seen_by_those_whose_matter_it_is(place: Place) -> None:
    """Those who are asked, who have decided, who wanted the run or stand in for one of them see a question; others see none."""
    engine = place.engine().register(
        Saga("raise").human("ask", ask=["user:ann", "role:finance"], agree="all", subject="Salary {s}?").build()
    )
    for name in ("ann", "sue", "fin"):
        engine.directory.put(name)
    engine.directory.grant("fin", "finance")
    engine.directory.delegate("ann", "sue")
    instance = engine.acting("rita").start("raise", {"s": 90000}).id
    engine.drain()
    question = f"{instance}:1"

    def look(name: str) -> str:
        return engine.acting(name).tasks.get(question).subject

    assert {look(name) for name in ("ann", "sue", "fin", "rita")} == {"Salary 90000?"}
    assert len(engine.acting("fin").tasks.list(role="finance")) == 1
    assert len(engine.acting("rita").tasks.list(requested_by_me=True)) == 1
    for name in ("bob", "max"):
        for tried in (look, lambda name: engine.acting(name).tasks.list(role="finance")):
            with pytest.raises(ForbiddenError, match="needs the capability 'execution:read'"):
                tried(name)
    engine.acting("ann").tasks.reject(question)
    engine.drain()
    assert {look(name) for name in ("ann", "fin")} == {"Salary 90000?"}
    with pytest.raises(NotFoundError):
        engine.as_tenant("other", actor="ann").tasks.get(question)


@pytest.mark.row("R-100")
def test_a_question_that_anybody_may_answer_anybody_may_see(place: Place) -> None:
    """Where nobody in particular is asked, whoever has the capability of the step sees the question, and others do not."""
    engine = place.engine().register(Saga("open").human("ask", capability="orders:approve").build())
    question = f"{run(engine, 'open')}:1"
    assert acting(engine, ANN).tasks.get(question).status == "open"
    with pytest.raises(ForbiddenError, match="needs the capability 'execution:read'"):
        acting(engine, BOB).tasks.get(question)


@pytest.mark.row("R-100")
def test_an_event_is_seen_by_who_published_it(place: Place) -> None:
    """Payloads are for those who may look at runs, and for whoever published them."""
    engine = place.engine()
    identity = acting(engine, ANN).events.publish("paid", "o-1", {"amount": 7})
    for actor in (ANN, READER):
        assert acting(engine, actor).events.get(identity).payload == {"amount": 7}
    with pytest.raises(ForbiddenError, match="needs the capability 'execution:read'"):
        acting(engine, BOB).events.get(identity)


@pytest.mark.row("R-100")
def test_what_a_run_came_to_is_for_those_who_may_look(place: Place) -> None:
    """Whoever waits for the result of another one's run is refused, and is not told what it came to."""
    engine = place.engine().register(Saga("quick").step("a", lambda: {"secret": 1}).build())
    instance = acting(engine, ANN).start("quick").id
    engine.drain()
    with pytest.raises(ForbiddenError, match="needs the capability 'execution:read'"):
        acting(engine, BOB).run(instance).result()
    for actor in (ANN, READER):
        assert acting(engine, actor).run(instance).result() == {"secret": 1}


@pytest.mark.row("G-13", "E-787")
def test_putting_work_back_is_a_repair(place: Place) -> None:
    """Requeueing, trying to undo again and discarding take the capability that all repairs take; without it nothing changes."""
    stage = Stage()
    saga = Saga("order", dlq=True).step("pay", stage.does("pay", BROKEN, None), attempts=1).build()
    engine = place.engine().register(saga)
    instance = run(engine, "order")
    (letter,) = engine.dead_letters.list()
    letters = acting(engine, READER).dead_letters
    assert letters.get(letter.id) == letter
    for call in (letters.requeue, letters.retry_compensation, letters.discard):
        with pytest.raises(ForbiddenError, match="needs the capability 'execution:repair'"):
            call(letter.id)
    (option,) = (each for each in engine.run(instance).resume_options() if each.action == "requeue")
    assert (engine.dead_letters.list(), option.capability) == ([letter], "execution:repair")
    acting(engine, Actor(id="olga", capabilities=frozenset({option.capability}))).dead_letters.requeue(letter.id)
    engine.drain()
    assert status(engine, instance) == "completed"


@pytest.mark.row("P-051")
def test_the_right_comes_before_the_idempotency_key(place: Place) -> None:
    """Whoever may not start a workflow is refused, also with the key of a start that somebody else was allowed."""
    engine = place.engine().register(order(Stage()))
    started = acting(engine, ANN).start("order", idempotency_key="k")
    with pytest.raises(ForbiddenError, match="needs the capability 'orders:start'"):
        acting(engine, BOB).start("order", idempotency_key="k")
    assert acting(engine, ANN).start("order", idempotency_key="k").id == started.id


@pytest.mark.row("P-060", "P-066", "G-13")
def test_whoever_may_not_is_told_so(place: Place) -> None:
    """ForbiddenError says what is missing, and nothing has happened; those who may, and the engine itself, go on."""
    stage = Stage()
    engine = place.engine().register(order(stage))
    with pytest.raises(ForbiddenError, match="needs the capability 'orders:start'") as refused:
        acting(engine, BOB).start("order")
    assert (refused.value.code, refused.value.reason) == ("not_allowed", "not_allowed")
    assert engine.runs.list().items == []
    instance = acting(engine, ANN).start("order").id
    engine.drain()
    question = step(engine, instance, "approve").id
    before = len(history(engine, instance))
    for call in CALLS.values():
        with pytest.raises(ForbiddenError, match="'bob' may not"):
            call(acting(engine, BOB), instance, question)
    assert len(history(engine, instance)) == before
    acting(engine, ANN).tasks.decide(question, "confirmed")
    acting(engine, ANN).run(instance).signal("payment")
    engine.drain()
    assert status(engine, instance) == "completed"
    engine.start("order").cancel()


def test_conditions_read_who_acts(place: Place) -> None:
    """The roles, the capabilities and the kind of the actor whose command brings the token there."""
    stage = Stage()
    saga = (
        Saga("who")
        .human("ask")
        .condition(
            "finance?",
            '"finance" in actor.roles and actor.kind == "user"',
            lambda way: way.step("other", stage.does("other")),
        )
        .step("books", stage.does("books"))
        .build()
    )
    engine = place.engine().register(saga)
    for actor, called in ((ANN, "books"), (BOB, "other")):
        instance = run(engine, "who")
        acting(engine, actor).tasks.decide(step(engine, instance, "ask").id, "confirmed")
        engine.drain()
        assert statuses(engine, instance)[called] == "completed"


def review() -> g.Graph:
    """A process of no front end: a question with three answers of its own, one of which leads back."""
    return compile_graph(
        kind="process",
        name="review",
        version="1",
        entry="ask",
        nodes=[
            g.Node(id="ask", op=g.HumanOp(outcomes=("approved", "rejected", "returned"))),
            g.Node(id="file", op=g.TaskOp(work=g.HandlerCall(handler="file"))),
        ],
        edges=[
            g.Edge(source="ask", target="file", on="approved"),
            g.Edge(source="ask", target="ask", on="returned", rework=True),
        ],
        policies=g.Policies(),
    )


@pytest.mark.row("P-061", "P-068")
@pytest.mark.parametrize("way", ["register", "publish"])
def test_an_engine_takes_definitions_of_any_front_end(place: Place, way: str) -> None:
    """What is registered or published is a record; its questions are answered by the outcomes that it names."""
    stage, graph = Stage(), review()
    engine = place.engine()
    if way == "register":
        engine.register(Definition(graph=graph, handlers={"file": stage.does("file")}))
    else:
        engine.definitions.publish(graph_data(graph))
        engine.handle("file", stage.does("file"))
    instance = run(engine, "review")
    with pytest.raises(RejectedError, match="'approved', 'rejected', 'returned'") as refused:
        engine.tasks.decide(step(engine, instance, "ask").id, "confirmed")
    assert refused.value.reason == "unknown_outcome"
    for outcome in ("returned", "returned", "approved"):
        (open_one,) = [each for each in engine.run(instance).tasks() if not each.decision]
        engine.tasks.decide(open_one, outcome, comment="so")
    engine.drain()
    assert status(engine, instance) == "completed"
    assert [each.decision for each in engine.run(instance).tasks()] == ["returned", "returned", "approved"]
    told = history(engine, instance, "returned", "approved")
    assert [each.data["outcome"] for each in told] == ["returned", "returned", "approved"]
    assert engine.instances.verify(instance).is_sound


def test_what_an_author_wrote_is_kept(place: Place) -> None:
    """The source of a definition is stored with its graph; one that was built has none."""
    engine = place.engine()
    text = msgspec.json.encode(graph_data(review()))
    engine.definitions.publish(text)
    engine.register(Saga("plain").step("a", "a").build())
    stored = engine.service.store.definitions()
    found = [stored.get(SHARED_TENANT, name, "1") for name in ("review", "plain")]
    assert [each.source for each in found if each is not None] == [text, b""]


def test_words_are_a_matter_of_the_kind() -> None:
    """A person's pause is not a dead letter, and a kind without words of its own has those of sagas."""
    saga = words_of("saga")
    assert saga.instance_status("paused", "dlq", has_begun=True) == "dlq"
    assert saga.instance_status("paused", "requested", has_begun=True) == "paused"
    assert saga.event_name("step_answered", {"outcome": "confirmed"}) == "approved"
    assert saga.event_name("step_answered", {"outcome": "returned"}) == "step_answered"
    assert words_of("rules") is not saga
    assert words_of("unknown") is saga
