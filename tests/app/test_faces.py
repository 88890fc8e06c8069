"""What callers hold in their hands: runs, the three faces of the calls, on whose behalf they are made, and what they show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_type

import msgspec
import pydantic
import pytest

from standfast import (
    Actor,
    AsyncRun,
    Calls,
    CommandError,
    ConflictError,
    DeadlockError,
    DefinitionError,
    Engine,
    Fail,
    ForbiddenError,
    MessagePackCodec,
    NotFoundError,
    PayloadError,
    Reply,
    RequestContext,
    Run,
    Saga,
    SagaDefinition,
    StandfastError,
    WorkflowFailedError,
)
from standfast.features.runs.run_calls import FutureRun
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.samples import Add, Counter, Do, Puppet
from support.waiting import LONG_SECONDS


def doubled(amount: int) -> dict[str, int]:
    """What the handler of a step gives."""
    return {"amount": 2 * amount}


def refused() -> None:
    """A handler that gives up."""
    raise Fail("the depot is closed")


def double() -> SagaDefinition:
    """A saga that ends well."""
    return Saga("double").step("double", doubled).build()


def asking() -> SagaDefinition:
    """A saga that waits for a person."""
    return Saga("asking").human("release", role="finance").build()


# -- runs


def test_start_gives_a_run_that_answers_for_itself(live: Live) -> None:
    """It is stored when `start` returns, and everything about it is asked of the run, without naming it again."""
    engine = live.engine().register(double()).start_worker()
    run = engine.start("double", {"amount": 4})
    assert isinstance(run, Run)
    assert run.result(timeout=LONG_SECONDS) == {"amount": 8}
    assert (run.describe().id, run.describe().status) == (run.id, "completed")
    assert [step.name for step in run.steps()] == ["double"]
    assert run.history()[-1].event_type == "workflow_completed"
    assert "double" in run.diagram()
    assert (run.verify().is_sound, run.tasks()) == (True, [])


def test_a_run_is_found_by_its_id_without_a_question(place: Place) -> None:
    """A handle is made of an id, as such or as text, of an instance, or of another handle; runs with the same id are equal."""
    engine = place.engine().register(double())
    run = engine.start("double", {"amount": 1})
    same = [engine.run(each) for each in (run, run.id, str(run.id), run.describe(), engine.runs.list().items[0])]
    assert same == [run] * 5
    assert {run, *same, engine.futures.run(run), engine.aio.run(run)} == {run}
    assert run != run.id
    assert repr(run) == f"<Run {run.id}>"
    nobody = engine.run("0190b4c2-0000-7000-8000-000000000000")
    with pytest.raises(NotFoundError):
        nobody.describe()


def test_a_run_stands_for_its_instance_wherever_one_is_named(place: Place) -> None:
    """Lists, letters and deletions take it as they take an id."""
    engine = place.engine().register(Saga("broken", dlq=True).step("a", refused).build())
    run = engine.start("broken")
    engine.drain()
    assert engine.runs.get(run) == run.describe()
    (letter,) = engine.dead_letters.list(instance=run)
    assert letter.instance == run.id
    assert engine.runs.list(parent=run).items == []
    engine.drain()
    assert engine.futures.run(run).abort("enough").result() == "aborted"
    engine.instances.delete(run)
    with pytest.raises(NotFoundError):
        engine.futures.run(run).delete().result()


def test_a_run_is_told_stopped_and_deleted_by_its_handle(live: Live) -> None:
    """What is said to a run needs no other word for it."""
    saga = Saga("waiting").wait_for("paid", "paid").step("double", doubled).build()
    engine = live.engine().register(saga).start_worker()
    paid, stopped, ended = (engine.start("waiting", {"amount": 1}) for _ in range(3))
    paid.signal("paid", {"amount": 3})
    assert paid.result(LONG_SECONDS) == {"amount": 6}
    assert stopped.cancel("no", timeout=LONG_SECONDS) == "cancelled"
    assert ended.abort("no", timeout=LONG_SECONDS) == "aborted"
    ended.delete()
    with pytest.raises(NotFoundError):
        ended.describe()


def test_a_workflow_that_ended_badly_says_how_and_why(place: Place) -> None:
    """The error has the status and the reason; one that still runs is no failure."""
    engine = place.engine().register(Saga("broken").step("a", refused).build()).register(asking())
    run, waiting = engine.start("broken"), engine.start("asking")
    engine.drain()
    with pytest.raises(WorkflowFailedError, match="the depot is closed") as failed:
        run.result()
    assert (failed.value.code, failed.value.status, failed.value.instance) == ("workflow_failed", "failed", str(run.id))
    with pytest.raises(DeadlockError):
        waiting.result()


def test_whoever_waits_too_long_is_told_where_the_run_stands(live: Live) -> None:
    """In both faces, and the run goes on."""
    engine = live.engine().register(asking()).start_worker()
    run = engine.start("asking")
    with pytest.raises(TimeoutError, match=r"within 0\.05 seconds; .*'release' waits for a person"):
        run.result(timeout=0.05)

    async def wait() -> None:
        with pytest.raises(TimeoutError, match=r"within 0\.05 seconds; .*'release' waits for a person"):
            await engine.aio.run(run).result(timeout=0.05)

    asyncio.run(wait())
    engine.acting(Actor(id="ann", roles=frozenset({"finance"}))).tasks.approve(run.tasks()[0])
    assert run.result(LONG_SECONDS) is not None


# -- faces


@pytest.mark.row("G-33")
def test_the_same_calls_can_be_awaited(live: Live) -> None:
    """Coroutines get the same answers, and runs whose calls are awaited too."""

    async def work() -> None:
        async with live.engine().register(double()).register(Counter()) as engine:
            run = await engine.aio.start("double", {"amount": 5})
            assert isinstance(run, AsyncRun)
            assert await run.result() == {"amount": 10}
            assert [step.status for step in await run.steps()] == ["completed"]
            await asyncio.gather(*(engine.aio.deciders.execute(Counter, Add("c-1")) for _ in range(20)))
            assert await engine.aio.deciders.state(Counter, "c-1") == 20
            with pytest.raises(NotFoundError):
                await engine.aio.runs.get("0190b4c2-0000-7000-8000-000000000000")

    asyncio.run(work())


def test_many_calls_can_be_in_flight(live: Live) -> None:
    """The futures face answers with replies: nothing is waited for before it is asked for."""
    engine = live.engine().register(Counter()).register(double()).start_worker()
    replies = [engine.futures.deciders.execute(Counter, Add("c-1")) for _ in range(50)]
    begun = [engine.futures.start("double", {"amount": number}) for number in range(10)]
    assert [reply.result(LONG_SECONDS) for reply in replies] == [None] * 50
    runs = [reply.result(LONG_SECONDS) for reply in begun]
    assert all(isinstance(run, FutureRun) for run in runs)
    ends = [run.result() for run in runs]
    assert [end.result(LONG_SECONDS) for end in ends] == [{"amount": 2 * number} for number in range(10)]


def test_a_driven_engine_has_the_same_faces(place: Place) -> None:
    """A call that is answered at once returns; what only driving can bring raises instead of hanging, in every face."""
    engine = place.engine().register(double())
    run = engine.start("double", {"amount": 1})
    later = engine.futures.run(run).result()

    async def wait() -> object:
        return await engine.aio.run(run).result()

    waits: list[Callable[[], object]] = [run.result, later.result, lambda: asyncio.run(wait())]
    for each in waits:
        with pytest.raises(DeadlockError, match="drain"):
            each()
    engine.drain()
    assert run.result() == later.result() == asyncio.run(wait()) == {"amount": 2}


WRONG: dict[str, tuple[Callable[[Any], Any], type[StandfastError]]] = {
    "an unknown workflow": (lambda calls: calls.start("nope"), NotFoundError),
    "an unknown decider": (lambda calls: calls.deciders.execute(Puppet, Do("p-1", "x")), NotFoundError),
    "an unknown decider's state": (lambda calls: calls.deciders.state("nope", "k"), NotFoundError),
    "a key that nobody has": (lambda calls: calls.deciders.history(Counter, "c-9"), NotFoundError),
    "a command of another decider": (lambda calls: calls.deciders.submit(Counter, Do("p-1", "x")), CommandError),
    "a run that is not there": (lambda calls: calls.run("0190b4c2-0000-7000-8000-000000000000").steps(), NotFoundError),
    "a letter that is not there": (lambda calls: calls.dead_letters.requeue(7), NotFoundError),
    "a status that nobody has": (lambda calls: calls.runs.list(status="nope"), PayloadError),
    "words that contradict": (lambda calls: calls.runs.list(status="failed", is_active=True), PayloadError),
    "a task of nobody": (lambda calls: calls.tasks.approve("nonsense"), PayloadError),
    "a definition that is not there": (lambda calls: calls.definitions.get("nope"), NotFoundError),
    "a message that is not there": (lambda calls: calls.inbox.bury(7), NotFoundError),
    "an instance that is not there": (lambda calls: calls.instances.delete("nonsense"), PayloadError),
    "a projection that is not there": (lambda calls: calls.projections.drop("nope"), NotFoundError),
    "a projection of another process": (lambda calls: calls.projections.rebuild("nope"), StandfastError),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_errors_are_in_the_reply(place: Place, mistake: str) -> None:
    """Whatever depends on what is stored or registered: the futures face answers with it, the others raise it."""
    engine = place.engine().register(Counter())
    call, kind = WRONG[mistake]
    reply = call(engine.futures)
    assert isinstance(reply, Reply)
    assert isinstance(reply.exception(), kind)
    with pytest.raises(kind):
        call(engine)

    async def ask() -> None:
        await call(engine.aio)

    with pytest.raises(kind):
        asyncio.run(ask())


@pytest.mark.parametrize("face", ["blocking", "awaitable", "futures"])
def test_misuse_of_python_is_raised_at_once(place: Place, face: str) -> None:
    """A parameter that no call has is a TypeError, in every face; a handle of what is no id cannot be made."""
    engine = place.engine()
    calls: Any = {"blocking": engine, "awaitable": engine.aio, "futures": engine.futures}[face]
    with pytest.raises(TypeError):
        calls.start("double", amount=1)
    with pytest.raises(TypeError):
        calls.runs.list("double")
    with pytest.raises(PayloadError, match="is not the id of an instance"):
        calls.run("nonsense")


# -- on whose behalf


def test_whoever_acts_is_recorded(place: Place) -> None:
    """The actor of the calls, given alone or with a request; the engine's own calls are the system's."""
    engine = place.engine().register(asking())
    ann = Actor(id="ann", roles=frozenset({"finance"}))
    faces: list[Calls] = [engine, engine.acting(ann), engine.acting(RequestContext(actor=ann))]
    found = []
    for calls in faces:
        run = engine.start("asking")
        engine.drain()
        calls.tasks.approve(run.tasks()[0], comment="fine")
        found.append(run.tasks()[0].decided_by)
    assert found == ["system", "ann", "ann"]
    assert faces[1].request == RequestContext(actor=ann)


def test_a_name_alone_has_no_rights(place: Place) -> None:
    """Rights are said, never inherited: an actor given by id has none, whoever gives it and by whichever call."""
    engine = place.engine().register(asking())
    run = engine.start("asking")
    engine.drain()
    (task,) = run.tasks()
    ann = Actor(id="ann", roles=frozenset({"finance"}))
    named: list[Calls] = [
        engine.acting("eve"),
        engine.acting("system"),
        engine.acting(ann).acting("eve"),
        engine.as_tenant("default", actor="eve"),
        engine.as_tenant("default").acting("eve"),
    ]
    for calls in named:
        assert calls.request.actor == Actor(id=calls.request.actor.id)
        with pytest.raises(ForbiddenError):
            calls.tasks.approve(task)
    engine.acting(ann).tasks.approve(task)
    assert run.tasks()[0].decided_by == "ann"


def test_a_request_names_its_actor() -> None:
    """A server that forgets to say who asks is told so at once, and does not act as the engine itself."""
    with pytest.raises(TypeError, match="actor"):
        RequestContext(tenant="acme")  # type: ignore[call-arg]


def test_tenants_do_not_see_one_another_by_any_face(place: Place) -> None:
    """To the calls of another tenant there is nothing: no run, no list, no question, no letter; and no way to a third tenant."""
    engine = place.engine().register(asking()).register(Saga("broken", dlq=True).step("a", refused).build())
    ann, eve = (Actor(id=name, capabilities=frozenset({"execution:*"})) for name in ("ann", "eve"))
    red = engine.acting(RequestContext(tenant="red", actor=ann))
    asked, dead = red.start("asking"), red.start("broken")
    engine.drain()
    (question,), (letter,) = red.tasks.list(), red.dead_letters.list()
    for other in (engine, engine.as_tenant("blue", actor=eve), engine.as_tenant("blue").acting(eve)):
        assert (other.runs.list().items, other.instances.list(), other.tasks.list()) == ([], [], [])
        assert (other.dead_letters.list(), other.dead_letters.count(), other.inbox.list()) == ([], 0, [])
        handle = other.futures.run(asked)
        reads: list[Reply[Any]] = [
            handle.describe(),
            handle.steps(),
            handle.history(),
            handle.tasks(),
            handle.diagram(),
        ]
        tells: list[Reply[Any]] = [
            handle.signal("x"),
            handle.cancel(),
            handle.abort(),
            handle.resume(),
            handle.delete(),
        ]
        other_way: list[Reply[Any]] = [
            handle.verify(),
            other.futures.tasks.approve(question),
            other.futures.dead_letters.get(letter.id),
            other.futures.dead_letters.requeue(letter.id),
            other.futures.instances.verify(dead),
        ]
        for reply in (*reads, *tells, *other_way):
            assert isinstance(reply.exception(), NotFoundError)
    for calls in (red, red.futures, red.aio):
        assert not hasattr(calls, "as_tenant")
        assert not hasattr(calls, "admin")
        assert not hasattr(calls, "projections")
    with pytest.raises(PayloadError, match="give an Actor here, or ask the engine itself"):
        red.acting(RequestContext(tenant="blue", actor=Actor(id="ann")))  # type: ignore[arg-type]
    with pytest.raises(PayloadError, match="the actor must be an Actor, or an id as text"):
        red.acting({"id": "ann"})  # type: ignore[arg-type]


def test_a_request_is_repeated_by_its_key(place: Place) -> None:
    """The idempotency key of the request is that of what it starts, unless the call has its own."""
    engine = place.engine().register(double())
    request = RequestContext(actor=Actor(id="ann"), idempotency_key="form-7")
    first, again = (engine.acting(request).start("double", {"amount": 1}) for _ in range(2))
    own = engine.acting(request).start("double", {"amount": 1}, idempotency_key="form-8")
    assert first == again != own
    assert len(engine.runs.list().items) == 2


@pytest.mark.parametrize(
    "request_",
    [
        RequestContext(tenant="", actor=Actor(id="ann")),
        RequestContext(tenant="*", actor=Actor(id="ann")),
        RequestContext(actor=Actor(id="")),
    ],
    ids=["no tenant", "the owner of what is shared", "nobody"],
)
def test_nobody_acts_under_an_impossible_name(place: Place, request_: RequestContext) -> None:
    """A tenant or an actor that no database can keep is refused when it is given."""
    with pytest.raises(PayloadError):
        place.engine().acting(request_)


# -- views


def test_letters_show_what_was_worked_on(place: Place) -> None:
    """As plain data where it can be read, of a step and of a message; as it is stored where it cannot."""
    engine = place.engine().register(Saga("broken", dlq=True).step("a", refused).build()).register(Counter())
    engine.start("broken", {"sku": "lamp"})
    for number in range(2):
        engine.deciders.submit(Counter, Add(f"c-{number}", 7), command_id=f"id-{number}", comment="by post")
    waiting = engine.inbox.list()
    assert [(each.key, each.type, each.payload) for each in waiting] == [
        (f"c-{number}", "Add", {"workflow_id": f"c-{number}", "by": 7}) for number in range(2)
    ]
    good = engine.futures.deciders._message(
        engine.registry.get("default", "counter"), Add("c-3"), command_id="", comment=""
    )
    place.store.writer().accept([msgspec.structs.replace(good, data=b"nonsense")], place.clock.now())
    for message in engine.inbox.list():
        engine.inbox.bury(message)
    engine.drain()
    step, readable, _, unreadable = sorted(
        engine.dead_letters.list(), key=lambda each: (each.source == "inbox", each.id)
    )
    assert (step.source, step.payload) == ("step", {"sku": "lamp"})
    assert (readable.payload, readable.command_id, readable.comment) == (
        {"workflow_id": "c-0", "by": 7},
        "id-0",
        "by post",
    )
    assert unreadable.payload == b"nonsense"
    assert engine.dead_letters.get(unreadable) == unreadable


def test_payloads_are_read_by_the_engines_codec() -> None:
    """A letter of an engine with another codec than JSON is read all the same."""
    with ManualEngine(codec=MessagePackCodec()).register(Counter()) as engine:
        engine.deciders.submit(Counter, Add("c-1", 3))
        (message,) = engine.inbox.list()
        assert message.payload == {"workflow_id": "c-1", "by": 3}


def test_lists_of_runs_can_be_narrowed_to_those_that_go_on(place: Place) -> None:
    """`is_active` asks for those that have not ended, or for those that have."""
    engine = place.engine().register(double()).register(asking())
    ended, going_on = engine.start("double", {"amount": 1}), engine.start("asking")
    engine.drain()
    assert [each.id for each in engine.runs.list(is_active=True).items] == [going_on.id]
    assert [each.id for each in engine.runs.list(is_active=False).items] == [ended.id]
    assert {each.id for each in engine.runs.list().items} == {going_on.id, ended.id}


# -- words of the builder


def test_a_step_says_what_undoes_it(place: Place) -> None:
    """`undo` is the short way of `on_failure`: it is called when a later step fails, as `undo <name>`."""
    undone: list[str] = []

    def undo(stock: str) -> None:
        undone.append(stock)

    saga = Saga("order").step("reserve", lambda: {"stock": "r-1"}, undo=undo).step("ship", refused).build()
    assert saga.steps["reserve"].on_failure == "undo reserve"
    engine = place.engine().register(saga)
    run = engine.start("order")
    engine.drain()
    assert (undone, [step.status for step in run.steps()]) == (["r-1"], ["rolled_back", "rolled_back"])


def test_retries_are_refused_with_a_sentence() -> None:
    """The word means one call more to others: whoever writes it is told to count attempts."""
    options: Any = {"retries": 3}
    with pytest.raises(DefinitionError, match="say `attempts`: calls in all, the first one included"):
        Saga("s").step("a", doubled, **options).build()


def test_attempts_are_calls_in_all(place: Place) -> None:
    """Three attempts are three calls."""
    calls: list[int] = []

    def fails() -> None:
        calls.append(1)
        raise ValueError

    engine = place.engine().register(Saga("s").step("a", fails, attempts=3).build())
    engine.start("s")
    engine.advance(timedelta(hours=1))
    assert len(calls) == 3


# -- maintenance


def test_maintenance_is_three_words(place: Place) -> None:
    """Pause keeps work from beginning, refusing turns commands down too, resuming ends both."""
    engine = place.engine().register(Counter())
    seen: list[str] = []
    for order in (engine.admin.pause_processing, engine.admin.refuse_commands, engine.admin.resume_processing):
        order()
        engine.drain()
        seen.append(engine.health().maintenance)
    assert seen == ["pause", "refuse", ""]


def test_a_projection_that_is_fed_here_is_not_dropped(place: Place) -> None:
    """The blocking face raises what the reply says."""

    class Nothing:
        name = "nothing"

        def apply(self, connection: object, events: object) -> None:
            """Keep nothing."""

        def reset(self, connection: object) -> None:
            """Forget nothing."""

    engine = place.engine()
    projection: Any = Nothing()
    engine.project(projection)
    with pytest.raises(ConflictError):
        engine.projections.drop("nothing")
    assert [each.name for each in engine.projections.list()] == ["nothing"]


def test_serving_ends_with_the_engine(live: Live) -> None:
    """`serve` works until the engine is stopped."""
    engine: Engine = live.engine().register(double())
    engine.register(Saga("last").step("stop", engine.stop).build())
    engine.futures.start("last")
    engine.serve()
    with pytest.raises(StandfastError):
        engine.start("double")


# -- types


@dataclass
class Ordered:
    """What the typed saga takes."""

    amount: int


class Charged(msgspec.Struct):
    """What the typed saga comes to."""

    amount: int
    charge: str


@pytest.mark.row("G-33", "G-44")
def test_a_saga_with_types_gives_typed_results(place: Place) -> None:
    """Its input is checked when it is started, its run gives a value of the type; by its name it is what it always was."""
    saga = Saga("typed").step("charge", lambda amount: {"charge": f"ch-{amount}", "noise": 1}).build()
    typed = saga.typed(Ordered, Charged)
    engine = place.engine().register(typed)
    run = engine.start(typed, Ordered(5))
    plain = engine.start("typed", {"amount": 6})
    engine.drain()
    result = run.result()
    assert_type(result, Charged)
    assert result == Charged(5, "ch-5")
    assert plain.result() == {"amount": 6, "charge": "ch-6", "noise": 1}
    assert asyncio.run(_awaited(engine.aio.run(run))) == {"amount": 5, "charge": "ch-5", "noise": 1}
    assert (typed.id, [each.definition_version for each in engine.runs.list(definition=typed).items]) == (
        "typed-v1",
        ["1", "1"],
    )


class Wanted(pydantic.BaseModel):
    """What a saga takes whose author writes pydantic models."""

    amount: int = pydantic.Field(gt=0)


class Taken(pydantic.BaseModel):
    """What it comes to."""

    amount: int
    charge: str


def test_a_saga_may_have_pydantic_models_for_types(place: Place) -> None:
    """They are checked like other types: a value that a model refuses is not taken, and a run gives its result as the model."""
    saga = Saga("typed").step("charge", lambda amount: {"charge": f"ch-{amount}", "noise": 1}).build()
    engine = place.engine().register(typed := saga.typed(Wanted, Taken))
    as_data: Any = {"amount": 5}
    runs = [engine.start(typed, Wanted(amount=5)), engine.start(typed, as_data)]
    engine.drain()
    assert [each.result() for each in runs] == [Taken(amount=5, charge="ch-5")] * 2
    wrong: Any
    for wrong in ({"amount": 0}, {"amount": "many"}, {}):
        with pytest.raises(PayloadError, match="the input of 'typed-v1' is not a Wanted"):
            engine.start(typed, wrong)


async def _awaited(run: AsyncRun[object]) -> object:
    return await run.result()


def test_what_does_not_fit_its_type_is_told(place: Place) -> None:
    """An input is refused before anything is stored; a result that does not fit is an error of whoever asks for it so."""
    saga = Saga("typed").step("charge", lambda: {"charge": 7}).build()
    typed = saga.typed(Ordered, Charged)
    engine = place.engine().register(typed)
    wrong: Any = {"amount": "many"}
    with pytest.raises(PayloadError, match="the input of 'typed-v1' is not an Ordered"):
        engine.start(typed, wrong)
    assert engine.runs.list().items == []
    run = engine.start(typed, Ordered(5))
    engine.drain()
    with pytest.raises(PayloadError, match="is not a Charged"):
        run.result()
    assert engine.run(run).result() == {"amount": 5, "charge": 7}
