"""A directory of the host's own that hangs: what needs it fails in time, and nothing else waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from standfast import Actor, Directory, Engine, Saga, StoppedError, StoreUnavailableError, load_processes
from standfast.kernel.people import DirectoryLook
from support.engines import QUICK, Live
from support.waiting import LONG_SECONDS, arrives, eventually

T = TypeVar("T")

PEOPLE = Path(__file__).with_name("people.yaml")
ANN = Actor(id="ann")
OPERATOR = Actor(id="olga", capabilities=frozenset({"execution:read"}))
PROCESS = """
domain: d
workflows:
  - id: p
    version: 1
    steps:
      - {id: ask, type: approval, assignee: {role: finance}}
      - {id: done, type: terminal, outcome: done}
    transitions:
      - {from: ask, event: approved, to: done}
"""
SETTINGS = msgspec.structs.replace(QUICK, people_timeout=timedelta(seconds=0.1), readers=2)


class Hanging(Directory):
    """The people of a file, for as long as the gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.looks = 0
        self._people = Directory.from_file(PEOPLE)

    @contextmanager
    def looking(self, tenant: str) -> Iterator[DirectoryLook]:
        """A look, once the gate is open."""
        self.looks += 1
        self.entered.set()
        self.gate.wait(LONG_SECONDS)
        with self._people.looking(tenant) as look:
            yield look


def asking(live: Live) -> tuple[Engine, Hanging, str]:
    """An engine with such a directory, and a question to Ann."""
    directory = Hanging()
    engine = live.engine(SETTINGS, directory=directory).register(Saga("s").human("ask", ask="user:ann").build())
    return engine, directory, engine.start("s").steps()[0].id


def calls(engine: Engine, question: str) -> list[Callable[[], object]]:
    """What cannot be done without the directory."""
    ann = engine.acting(ANN)
    return [
        lambda: ann.tasks.approve(question),
        lambda: ann.tasks.list(mine=True),
        lambda: ann.tasks.list(role="finance"),
        ann.tasks.counts,
        lambda: ann.tasks.get(question),
        ann.notifications.mine,
        ann.notifications.count_unread,
        lambda: ann.directory.get("ann"),
        ann.directory.open_tasks_of_inactive,
        lambda: ann.processes.list(mine=True),
    ]


def answered(call: Callable[[], T]) -> T:
    """What a call answers now that the directory does; on a busy machine it may take longer than these engines wait."""

    def tried() -> list[T]:
        with suppress(StoreUnavailableError):
            return [call()]
        return []

    return eventually(tried)[0]


def test_what_needs_a_directory_that_hangs_fails_in_time_and_does_nothing(live: Live) -> None:
    """However often it is tried: whoever waits is told, and once the directory answers everything goes as before."""
    engine, directory, question = asking(live)
    directory.gate.clear()
    for call in calls(engine, question):
        with pytest.raises(StoreUnavailableError, match="people_timeout"):
            call()
    assert [each for each in engine.parts() if each.name == "directory threads" and each.problem()]
    directory.gate.set()
    ann = engine.acting(ANN)
    assert [each.step_id for each in answered(lambda: ann.tasks.list(mine=True))] == [question]
    answered(lambda: ann.tasks.approve(question))


def test_a_directory_that_hangs_keeps_no_other_question_waiting(live: Live) -> None:
    """Runs are looked at and questions listed by those for whom nobody is looked up, however many wait for the directory."""
    engine, directory, question = asking(live)
    directory.gate.clear()
    waiting = [engine.futures.acting(ANN).tasks.list(mine=True) for _ in range(8)]
    arrives(directory.entered)
    operator = engine.acting(OPERATOR)
    assert [each.step_id for each in operator.tasks.list()] == [question]
    assert operator.tasks.get(question).people[0].name == "ann"
    assert operator.runs.list()
    assert not engine.acting(ANN).tasks.list(requested_by_me=True)
    for each in waiting:
        assert isinstance(each.exception(LONG_SECONDS), StoreUnavailableError)
    looks = directory.looks
    directory.gate.set()
    answered(lambda: engine.acting(ANN).tasks.list(mine=True))
    assert looks < len(waiting), "what has failed while it waited for a thread is not asked any more"


def test_an_engine_stops_although_its_directory_hangs(live: Live) -> None:
    """Whoever waits for it is told so."""
    engine, directory, _ = asking(live)
    directory.gate.clear()
    waiting = engine.futures.acting(ANN).tasks.list(mine=True)
    arrives(directory.entered)
    engine.stop(timedelta(0))
    assert isinstance(waiting.exception(LONG_SECONDS), StoppedError | StoreUnavailableError)
    directory.gate.set()


def test_the_step_of_a_process_is_not_shown_without_the_directory(live: Live) -> None:
    """Who the caller would be is looked up before the database is, so that nobody waits for its connection."""
    directory = Hanging()
    (definition,) = load_processes(PROCESS)
    engine = live.engine(SETTINGS, directory=directory).register(definition)
    instance = engine.processes.start("p").id
    directory.gate.clear()
    waiting = [engine.futures.acting(ANN).processes.get(instance) for _ in range(4)]
    arrives(directory.entered)
    assert engine.acting(OPERATOR).runs.list()
    assert all(isinstance(each.exception(LONG_SECONDS), StoreUnavailableError) for each in waiting)
    directory.gate.set()
    assert answered(lambda: engine.acting(ANN).processes.get(instance)).step.id == "ask"
