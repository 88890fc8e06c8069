"""Calls as people write them first: what has a plain meaning works, and everything else is told in a sentence, in the reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from app.sagas.acting import BROKEN, Stage
from standfast import ConfigurationError, Engine, NotFoundError, PayloadError, Saga, SagaDefinition
from support.engines import Place
from support.samples import Add, Counter, Do, Puppet


def order(stage: Stage) -> SagaDefinition:
    """A saga that asks a person and then fails into the dead letters."""
    return Saga("order", dlq=True).human("ask").step("ship", stage.does("ship", BROKEN, None), attempts=1).build()


def test_a_definition_stands_for_its_name_and_version(place: Place) -> None:
    """Whoever has the built saga at hand need not name it; it is started and looked at in its own version."""
    sagas = [Saga("s", version).step("a", "h").build() for version in (1, 2)]
    engine = place.engine()
    for saga in sagas:
        engine.register(saga)
    for saga in sagas:
        instance = engine.start(saga).id
        assert engine.run(instance).describe().definition_id == saga.id
        assert engine.definitions.get(saga) == saga.graph
        assert saga.id.replace("-v", " ") in engine.definitions.diagram(saga, format="dot")
        (found,) = engine.runs.list(definition=saga).items
        assert found.id == instance
    assert len(engine.runs.list(definition="s").items) == 2
    parent = Saga("parent").call("child", sagas[0]).build()
    engine.register(parent).start(parent)
    engine.drain()
    assert len(engine.runs.list(definition=sagas[0]).items) == 2


def test_what_the_engine_shows_stands_for_its_id(place: Place) -> None:
    """Instances, steps, questions and letters can be given back to the engine as they came."""
    stage, engine = Stage(), place.engine()
    engine.register(order(stage)).start("order", {"amount": 5})
    (summary,) = engine.runs.list().items
    shown = engine.run(summary).describe()
    assert engine.run(shown).describe() == shown
    (step,) = engine.run(shown).steps()
    (question,) = engine.run(summary).tasks()
    assert step.id == question.step_id
    engine.tasks.decide(question, "confirmed")
    engine.drain()
    (letter,) = engine.dead_letters.list(instance=shown)
    assert engine.dead_letters.get(letter) == letter
    worked_on = letter.payload
    assert isinstance(worked_on, dict)
    assert worked_on["amount"] == 5
    engine.dead_letters.requeue(letter, msgspec.json.encode(letter.payload))
    engine.drain()
    assert engine.run(shown).result() == worked_on
    assert engine.instances.verify(summary).is_sound
    assert engine.run(shown).history()[0].event_type == "workflow_started"
    ended = engine.futures.run(shown)
    for reply in (ended.cancel(), ended.abort(), ended.resume()):
        assert "already in terminal state" in str(reply.exception())
    engine.instances.delete(engine.run(summary).describe())
    assert engine.runs.list().items == []


def test_a_step_can_be_decided_as_it_was_shown(place: Place) -> None:
    """A step is as good as its question, and as their id."""
    engine = place.engine().register(Saga("s").human("one").human("two").build())
    instance = engine.start("s").id
    for _ in range(2):
        engine.tasks.decide(engine.run(instance).steps()[-1], "confirmed")
    assert engine.run(instance).describe().status == "completed"


def test_a_decider_is_named_by_its_class_its_object_or_its_type(place: Place) -> None:
    """All three say which decider is meant, in every call."""
    engine = place.engine().register(Counter())
    for number, named in enumerate((Counter, Counter(), "counter"), start=1):
        decider: Any = named
        engine.deciders.execute(decider, Add("c-1"))
        engine.deciders.submit(decider, Add("c-2"))
        engine.drain()
        assert engine.deciders.state(decider, "c-1") == number
        assert len(engine.deciders.history(decider, "c-2")) == number
        assert engine.deciders.get(decider, "c-1").state == number


ASKING: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "no instance": (lambda e: e.futures.runs.get(None), PayloadError, "None is not the id of an instance; give"),
    "a step as an instance": (
        lambda e: e.futures.runs.get(e.drain),
        PayloadError,
        "a method is not the id of an instance",
    ),
    "a saga that is not built": (lambda e: e.futures.start(Saga("s")), PayloadError, r"give saga\.build\(\)"),
    "nothing as a definition": (lambda e: e.futures.start(None), PayloadError, "must be non-empty text, not None"),
    "nothing as a step": (
        lambda e: e.futures.tasks.decide(None, "confirmed"),
        PayloadError,
        "None is not the id of a step",
    ),
    "nothing as a decider": (
        lambda e: e.futures.deciders.execute(None, Add("c-1")),
        PayloadError,
        "give its class, or its type",
    ),
    "a class that is no decider": (
        lambda e: e.futures.deciders.state(Add, "c-1"),
        PayloadError,
        "give its class, or its type",
    ),
    "an unknown decider": (
        lambda e: e.futures.deciders.execute(Puppet, Do("p-1", "x")),
        NotFoundError,
        "register it first",
    ),
    "an unknown decider's state": (
        lambda e: e.futures.deciders.state(Puppet, "p-1"),
        NotFoundError,
        "register it first",
    ),
    "an unknown decider's events": (
        lambda e: e.futures.deciders.history(Puppet, "p-1"),
        NotFoundError,
        "register it first",
    ),
    "an unknown decider's instance": (
        lambda e: e.futures.deciders.get(Puppet, "p-1"),
        NotFoundError,
        "register it first",
    ),
    "an unknown decider's inbox": (
        lambda e: e.futures.deciders.submit(Puppet, Do("p-1", "x")),
        NotFoundError,
        "register it first",
    ),
    "an unknown type": (
        lambda e: e.futures.deciders.execute("nope", Add("c-1")),
        NotFoundError,
        "registered are: counter",
    ),
    "a decider without a key": (
        lambda e: e.futures.deciders.get(Counter, ""),
        PayloadError,
        "the key must be non-empty text",
    ),
    "no instance to delete": (
        lambda e: e.futures.instances.delete(None),
        PayloadError,
        "None is not the id of an instance",
    ),
    "no letter": (lambda e: e.futures.dead_letters.requeue(None), NotFoundError, "give the dead letter, or its id"),
    "no letter to discard": (
        lambda e: e.futures.dead_letters.discard("abc"),
        NotFoundError,
        "give the dead letter, or its id",
    ),
    "an input that is no JSON": (lambda e: e.futures.dead_letters.requeue(1, b"{"), NotFoundError, "no dead letter"),
}


@pytest.mark.parametrize("mistake", ASKING)
def test_what_has_no_plain_meaning_is_told_in_the_reply(place: Place, mistake: str) -> None:
    """No call raises because of what is registered or stored, or of what it was given; its reply has the error and the remedy."""
    ask, error, remedy = ASKING[mistake]
    engine: Engine = place.engine().register(Counter())
    reply = ask(engine)
    with pytest.raises(error, match=remedy):
        reply.result()
    assert engine.instances.list() == []


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        (Counter, r"register\(Counter\(\)\)"),
        (None, "give a decider"),
        ("counter", "give a decider"),
        (Add, "give a decider"),
    ],
)
def test_only_deciders_and_built_sagas_are_registered(wrong: Any, remedy: str) -> None:
    """Registering is no call with a reply: what is wrong with it is raised, with the remedy."""
    with Engine("sqlite://", threads=False) as engine, pytest.raises(ConfigurationError, match=remedy):
        engine.register(wrong)
