"""A directory of the host application: asked for each command, its answer is kept with what was done, and without it nobody acts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import cast

import pytest

from standfast import Actor, Capabilities, Directory, ForbiddenError, RequestContext, Saga, StoreUnavailableError
from standfast.kernel.people import Delegation, DirectoryLook, Grant, Principal
from standfast.people.directory import StaticDirectory
from standfast.people.directory_files import Roster
from standfast.testing import ManualEngine
from support.engines import Place
from support.samples import Do, Doll

BEGIN = datetime(2029, 1, 1, tzinfo=UTC)


class Personnel(Directory):
    """The host's own people, which it changes as it likes."""

    def __init__(self) -> None:
        self.roles = {"ann": {"boss", "finance"}, "bob": {"finance"}, "cat": set[str]()}
        self.left: set[str] = set()
        self.deputies: dict[str, str] = {}
        self.for_role = ""
        self.error: Exception | None = None
        self.looks = 0

    @contextmanager
    def looking(self, tenant: str) -> Iterator[DirectoryLook]:
        """The people as they are now."""
        del tenant
        self.looks += 1
        if self.error is not None:
            raise self.error
        roster = Roster(
            principals=[Principal(id=each, is_active=each not in self.left) for each in self.roles],
            grants=[
                Grant(principal=name, role=role, begins_at=BEGIN)
                for name, roles in self.roles.items()
                for role in sorted(roles)
            ],
            delegations=[
                Delegation(id=1, giver=giver, receiver=to, begins_at=BEGIN, role=self.for_role)
                for giver, to in self.deputies.items()
            ],
        )
        with StaticDirectory(roster).looking("default") as look:
            yield look


class Quick(Personnel):
    """The same, as quick as a dictionary."""

    may_hang = False


@pytest.fixture(params=[Personnel, Quick], ids=["may_hang", "quick"])
def people(request: pytest.FixtureRequest) -> Personnel:
    """A directory of the host, of each kind."""
    return cast("Personnel", request.param())


def office(place: Place, people: Personnel) -> ManualEngine:
    """An engine whose people are elsewhere; the boss may do everything."""
    engine = place.engine(directory=people, capabilities=Capabilities({"boss": ["*"]}))
    engine.register(Saga("ask").human("sign", role="finance").build())
    engine.register(Saga("paid").wait_for("wait", signal="paid").build())
    engine.register(Doll())
    return engine


def acts(engine: ManualEngine) -> dict[str, Callable[[], object]]:
    """Something of each kind that Ann does: by a decider, without one, to a question, later."""
    ann = engine.acting(RequestContext(actor=Actor(id="ann")))
    run, asked = engine.start("paid"), engine.start("ask")
    engine.drain()
    question = asked.tasks()[0].step_id
    return {
        "pause": lambda: ann.run(run.id).pause("x"),
        "chain": lambda: ann.chains.publish("c", [{"asks": ["manager"]}]),
        "approve": lambda: ann.tasks.approve(question),
        "start": lambda: ann.start("paid"),
        "submit": lambda: ann.deciders.submit(Doll, Do("d", "x")),
    }


@pytest.mark.row("E-664", "E-572")
def test_the_host_is_asked_for_every_command(place: Place, people: Personnel) -> None:
    """A role that the host has taken away, and a person whom it has deactivated, count at the next command."""
    engine = office(place, people)
    for name, act in acts(engine).items():
        before = people.looks
        act()
        assert people.looks > before, name
    tried = acts(engine)
    people.roles["ann"] = set()
    for name in ("pause", "chain", "approve"):
        with pytest.raises(ForbiddenError, match="may not"):
            tried[name]()
    people.roles["ann"] = {"boss", "finance"}
    people.left.add("ann")
    for act in tried.values():
        with pytest.raises(ForbiddenError, match="deactivated"):
            act()


def test_the_answer_of_the_host_is_kept_with_what_was_done(place: Place, people: Personnel) -> None:
    """The history says which directory was asked, when, and the roles that it gave; the engine's own commands ask nobody."""
    engine = office(place, people)
    run = engine.start("ask")
    engine.drain()
    assert [each for each in run.history() if each.event_type.startswith("$")] == []
    engine.acting("bob").tasks.approve(run.tasks()[0])
    (told,) = [each for each in run.history() if each.event_type == "$directory_answered"]
    assert told.actor == "bob"
    assert told.data == {
        "directory": type(people).__name__,
        "at": place.clock.now().isoformat().replace("+00:00", "Z"),
        "roles": ["finance"],
    }


def test_who_stands_in_by_the_host_decides(place: Place, people: Personnel) -> None:
    """A delegation of the host's counts for the command that it was asked for."""
    engine = office(place, people)
    people.deputies["bob"] = "cat"
    run = engine.start("ask")
    engine.drain()
    engine.acting("cat").tasks.approve(run.tasks()[0])
    assert run.tasks()[0].decided_by == "cat"


def test_who_stands_in_by_the_host_has_what_the_question_takes(place: Place, people: Personnel) -> None:
    """Somebody who is asked by name is stood in for with the roles that they have."""
    engine = office(place, people)
    engine.register(Saga("named").human("sign", ask="user:ann", capability="o:approve").build())
    people.deputies["ann"] = "cat"
    run = engine.start("named")
    engine.drain()
    engine.acting("cat").tasks.approve(run.tasks()[0])
    assert run.tasks()[0].decided_by == "cat"


@pytest.mark.row("E-682")
def test_nobody_acts_while_the_host_cannot_be_asked_and_it_is_an_incident(place: Place, people: Personnel) -> None:
    """Every command of a person fails and leaves nothing; incidents, `why` and health say so until the directory answers."""
    engine = office(place, people)
    tried = acts(engine)
    run = engine.start("ask")
    engine.drain()
    before = [(each.id, len(engine.run(each.id).history())) for each in engine.runs.list().items]
    assert engine.admin.incidents() == []
    people.error = ConnectionError("ldap.example.org does not answer")
    for act in tried.values():
        with pytest.raises(StoreUnavailableError, match=f"{type(people).__name__} cannot be asked"):
            act()
    assert [(each.id, len(engine.run(each.id).history())) for each in engine.runs.list().items] == before
    assert engine.chains.list() == []
    (incident,) = engine.admin.incidents()
    assert (incident.kind, incident.since) == ("directory_unreachable", place.clock.now())
    assert "ldap.example.org" in incident.told
    assert engine.health().incidents == [incident.told]
    assert engine.incident_counts()["directory_unreachable"] == 1
    assert incident.told in run.why().words
    people.error = None
    tried["pause"]()
    assert engine.admin.incidents() == []
    assert engine.health().incidents == []
    assert "cannot be asked" not in run.why().words


def test_whatever_asks_the_host_says_that_it_cannot_be_asked(place: Place, people: Personnel) -> None:
    """Lists, questions to the directory and what the engine does with people say `store_unavailable`, and never the host's own error."""
    engine = office(place, people)
    run = engine.start("ask")
    engine.drain()
    task = run.tasks()[0]
    people.error = RuntimeError("ldap down")
    asks: list[Callable[[], object]] = [
        lambda: engine.acting("ann").tasks.list(mine=True),
        engine.acting("ann").tasks.counts,
        lambda: engine.directory.roles_of("ann"),
        lambda: engine.directory.holders("finance"),
        lambda: engine.tasks.reassign(task, "bob", reason="she is busy"),
        lambda: engine.tasks.add_approver(task, "bob"),
    ]
    for each in asks:
        with pytest.raises(StoreUnavailableError, match="cannot be asked"):
            each()


@pytest.mark.row("E-664")
def test_nothing_that_the_host_said_is_remembered(place: Place, people: Personnel) -> None:
    """A role that the host grants or takes away counts with the next command, for acts, decisions and stand-ins."""
    engine = office(place, people)
    runs = [engine.start("ask") for _ in range(4)]
    engine.drain()
    tasks = [each.tasks()[0] for each in runs]
    engine.acting("bob").tasks.approve(tasks[0])
    people.roles["bob"] = set()
    with pytest.raises(ForbiddenError, match="may not"):
        engine.acting("bob").tasks.approve(tasks[1])
    people.roles["bob"] = {"finance"}
    engine.acting("bob").tasks.approve(tasks[1])
    people.deputies["bob"] = "cat"
    engine.acting("cat").tasks.approve(tasks[2])
    people.deputies.clear()
    with pytest.raises(ForbiddenError, match="may not"):
        engine.acting("cat").tasks.approve(tasks[3])
    people.roles["cat"] = {"boss"}
    engine.acting("cat").run(runs[3].id).pause("x")
    people.roles["cat"] = set()
    with pytest.raises(ForbiddenError, match="may not"):
        engine.acting("cat").run(runs[3].id).resume("x")


def test_commands_of_the_engine_itself_ask_nobody(place: Place, people: Personnel) -> None:
    """Whoever acts as the engine needs no answer of the host's."""
    engine = office(place, people)
    run = engine.start("paid")
    before = people.looks
    engine.run(run.id).pause("x")
    engine.run(run.id).resume("x")
    engine.run(run.id).signal("paid")
    assert people.looks == before
