"""What callers and authors get wrong: each mistake is told with a sentence that says what to do, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from msgspec import Raw

from standfast import (
    ConfigurationError,
    DefinitionError,
    Engine,
    NotFoundError,
    PayloadError,
    Reply,
    Retry,
    Saga,
)
from support.engines import Place

NOBODY = UUID(int=7)
UNTYPED: Any = NOBODY
NAIVE = datetime(2030, 1, 1)  # noqa: DTZ001 - that is the mistake

BUILDING: dict[str, tuple[Callable[[Any], object], str]] = {
    "a number as a handler": (lambda saga: saga.step("a", 7), "give a function, an object with `execute`, or a name"),
    "a number as a name": (lambda saga: saga.step(7, "h"), "the name of a step is 7; it must be text"),
    "a text as a number of calls": (lambda saga: saga.step("a", "h", attempts="3"), "it must be a whole number"),
    "an option that does not exist": (lambda saga: saga.step("a", "h", retry=3), "there are attempts, max_retries"),
    "a text as a delay": (lambda saga: saga.step("a", "h", delay="3s"), "give a timedelta or a number of seconds"),
    "an endless wait": (lambda saga: saga.wait("a", float("inf")), "give a timedelta or a number of seconds"),
}

ASKING: dict[str, tuple[Callable[[Any], Reply[object]], type[Exception], str]] = {
    "a number as a definition": (lambda e: e.futures.start(7), PayloadError, "definition must be non-empty text"),
    "an unknown definition": (lambda e: e.futures.start("nope"), NotFoundError, "register it first; known here are: s"),
    "a run as a question": (
        lambda e: e.futures.tasks.approve(str(NOBODY)),
        PayloadError,
        "It is that of a run: its questions are listed by `tasks`, and a process is led on by `advance`",
    ),
    "an unknown version": (lambda e: e.futures.start("s", version=9), NotFoundError, "s version 9"),
    "a number as a key": (lambda e: e.futures.start("s", key=7), PayloadError, "the key must be text, not 7"),
    "a number as an idempotency key": (
        lambda e: e.futures.start("s", idempotency_key=7),
        PayloadError,
        "must be text, not 7",
    ),
    "a text as a delay": (
        lambda e: e.futures.start("s", delay="x"),
        PayloadError,
        "a timedelta or a number of seconds",
    ),
    "an endless delay": (lambda e: e.futures.start("s", delay=float("inf")), PayloadError, "number of seconds"),
    "a delay beyond all calendars": (
        lambda e: e.futures.start("s", delay=timedelta.max),
        PayloadError,
        "number of seconds",
    ),
    "a version with a NUL": (lambda e: e.futures.start("s", version="\x00"), PayloadError, "version"),
    "a version that is no Unicode": (lambda e: e.futures.start("s", version="\ud800"), PayloadError, "version"),
    "a key with a NUL to look for": (lambda e: e.futures.runs.list(key="a\x00"), PayloadError, "the key"),
    "a key to look for that is no Unicode": (lambda e: e.futures.runs.list(key="\ud800"), PayloadError, "the key"),
    "a piece of JSON that is none": (
        lambda e: e.futures.start("s", {"x": Raw(b"{bad")}),
        PayloadError,
        "cannot be stored",
    ),
    "a delay into the past": (
        lambda e: e.futures.start("s", delay=timedelta(-1)),
        PayloadError,
        "must not be negative",
    ),
    "an input that is too large": (
        lambda e: e.futures.start("s", {"x": "y" * 2_000_000}),
        PayloadError,
        "pass a reference",
    ),
    "a reason that is no text": (
        lambda e: e.futures.run(NOBODY).cancel(7),
        PayloadError,
        "the reason must be text, not 7",
    ),
    "a reason with a NUL": (lambda e: e.futures.run(NOBODY).abort("a\x00"), PayloadError, "NUL"),
    "a comment that is no text": (
        lambda e: e.futures.tasks.decide(f"{NOBODY}:1", "confirmed", comment=7),
        PayloadError,
        "comment",
    ),
    "a drawing that nobody can make": (
        lambda e: e.futures.definitions.diagram("s", format="png"),
        PayloadError,
        "mermaid, dot, json",
    ),
    "a letter that is no number": (
        lambda e: e.futures.dead_letters.requeue("abc"),
        NotFoundError,
        "no dead letter 'abc'",
    ),
    "an id as a decider": (lambda e: e.futures.deciders.transitions(NOBODY), PayloadError, "UUID is not a decider"),
    "an id as an observed decider": (
        lambda e: e.futures.deciders.observations(NOBODY),
        PayloadError,
        "UUID is not a decider",
    ),
    "an id as a machine": (
        lambda e: e.futures.deciders.observed_machine(NOBODY),
        PayloadError,
        "UUID is not a decider",
    ),
    "an id as a key": (lambda e: e.futures.runs.list(key=NOBODY), PayloadError, "the key must be text"),
    "a size that is no number": (
        lambda e: e.futures.runs.list(limit="x"),
        PayloadError,
        "the limit must be a whole number",
    ),
    "a status that is no text": (lambda e: e.futures.runs.list(status=7), PayloadError, "there is no status 7"),
    "an id as a definition of letters": (
        lambda e: e.futures.dead_letters.list(definition=NOBODY),
        PayloadError,
        "the definition must be text",
    ),
    "a place among letters that is no number": (
        lambda e: e.futures.dead_letters.list(after="x"),
        PayloadError,
        "`after` must be a",
    ),
    "bytes as a source of letters": (
        lambda e: e.futures.dead_letters.count(source=b"x"),
        PayloadError,
        "the source must be",
    ),
    "an id as a role": (lambda e: e.futures.tasks.list(role=NOBODY), PayloadError, "the role must be non-empty text"),
    "a number of questions that is none": (
        lambda e: e.futures.tasks.list(limit="x"),
        PayloadError,
        "the limit must be a whole number",
    ),
    "a text as the last question": (lambda e: e.futures.tasks.list(after="x"), PayloadError, "a HumanTask, not 'x'"),
    "a number as the last decision": (lambda e: e.futures.tasks.decided(after=5), PayloadError, "a DecidedTask, not 5"),
    "a text as the last event": (lambda e: e.futures.events.list(after="x"), PayloadError, "a PublishedEvent, not 'x'"),
    "a text as the last paused run": (lambda e: e.futures.runs.paused(after="x"), PayloadError, "an InstanceSummary"),
    "a text as an instant": (lambda e: e.futures.runs.paused(since="x"), PayloadError, "since must be a datetime"),
    "an instant without a zone": (lambda e: e.futures.runs.paused(before=NAIVE), PayloadError, "with a time zone"),
    "a text as a beginning": (lambda e: e.futures.runs.list(created_after="x"), PayloadError, "created_after must be"),
    "an end without a zone": (lambda e: e.futures.instances.list(created_before=NAIVE), PayloadError, "a time zone"),
    "a text as a yes": (
        lambda e: e.futures.run(NOBODY).resume(override="no"),
        PayloadError,
        "override must be True or False, not 'no'",
    ),
    "a query of something else": (lambda e: e.futures.instances.list(key=UNTYPED), PayloadError, r"\$\.key"),
}


@pytest.mark.parametrize("mistake", BUILDING)
def test_mistakes_of_authors_are_told(mistake: str) -> None:
    """The message names the culprit and the remedy, whatever the types say."""
    build, remedy = BUILDING[mistake]
    with pytest.raises((DefinitionError, ConfigurationError), match=remedy):
        build(Saga("s")).build()  # type: ignore[attr-defined]


@pytest.mark.parametrize("mistake", ASKING)
def test_mistakes_of_callers_are_told(place: Place, mistake: str) -> None:
    """The error has a class and a sentence of its own, and no instance exists afterwards."""
    ask, error, remedy = ASKING[mistake]
    engine: Engine = place.engine().register(Saga("s").step("a", "h").build())
    with pytest.raises(error, match=remedy):
        ask(engine).result(0)
    assert engine.runs.list().items == []


def test_a_saga_is_registered_once_it_is_built(place: Place) -> None:
    """Who forgets `build()` is told so; and a handler has a name."""
    engine: Any = place.engine()
    with pytest.raises(ConfigurationError, match=r"give saga\.build\(\)"):
        engine.register(Saga("s").step("a", "h"))
    with pytest.raises(ConfigurationError, match="needs a name"):
        engine.handle("", print)


def test_a_handler_may_ask_for_its_next_call_in_seconds() -> None:
    """A number means seconds, as everywhere in a saga; anything else is a mistake of the handler."""
    assert Retry(after=1.5).after == timedelta(seconds=1.5)
    strange: Any = "soon"
    with pytest.raises(TypeError, match="give a timedelta or a number of seconds"):
        Retry(after=strange)


def test_the_likely_name_of_a_workflow_is_told(place: Place) -> None:
    """To whoever misspelt it; and not more names than anybody reads."""
    engine = place.engine()
    for number in range(60):
        engine.register(Saga(f"flow{number:02}").step("a", "work").build())
    with pytest.raises(
        NotFoundError, match=r"no workflow 'flw07'; did you mean 'flow07'\? register it first; known here are: flow00,"
    ) as caught:
        engine.start("flw07")
    assert str(caught.value).endswith("flow49 and 10 more")
