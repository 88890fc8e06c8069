"""The directory in the tables: who there is, what they may do, who stands in for whom, and who changed it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import partial

import pytest

from standfast import (
    Actor,
    Calls,
    ConfigurationError,
    Directory,
    ForbiddenError,
    NotFoundError,
    PayloadError,
    Principal,
    RejectedError,
    StoreError,
)
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.waiting import together

DAY = timedelta(days=1)
EAST, WEST = timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))
LATE = datetime(2100, 1, 1, tzinfo=UTC)
KEEPER = Actor(id="kim", capabilities=frozenset({"directory:change"}))


def staffed(place: Place) -> ManualEngine:
    """An engine whose directory knows four people."""
    engine = place.engine()
    for name in ("ann", "bob", "cat", "dan"):
        engine.directory.put(name)
    return engine


def told(calls: Calls, person: str = "") -> list[tuple[str, str, str]]:
    """Who did what to whom, oldest first."""
    return [(each.actor, each.action, each.principal) for each in reversed(calls.directory.changes(person))]


def test_a_person_is_kept_whole(place: Place) -> None:
    """What is put comes back; what is not given stays as it was."""
    engine = place.engine()
    engine.directory.put("bob")
    engine.directory.put("ann", name="Ann", email="ann@example.org", manager="bob", attributes={"cost_centre": 4711})
    engine.directory.put("ann", name="Ann Archer")
    assert engine.directory.get("ann") == Principal(
        id="ann", name="Ann Archer", email="ann@example.org", manager="bob", attributes={"cost_centre": 4711}
    )
    engine.directory.put("robot", kind="service")
    assert engine.directory.get("robot").kind == "service"


def test_everybody_is_listed_page_by_page(place: Place) -> None:
    """The last one of a page leads to the next."""
    engine = staffed(place)
    first = engine.directory.list(limit=3)
    rest = engine.directory.list(after=first[-1], limit=3)
    assert [each.id for each in (*first, *rest)] == ["ann", "bob", "cat", "dan"]


def test_a_role_holds_for_its_period(place: Place) -> None:
    """A grant begins and ends; the instant of the end is no longer in it."""
    engine = staffed(place)
    now = place.clock.now()
    engine.directory.grant("ann", "finance", begins_at=now + DAY, ends_at=now + 2 * DAY)
    seen = []
    for _ in range(3):
        seen.append([each.id for each in engine.directory.holders("finance")])
        place.clock.move(DAY)
    assert seen == [[], ["ann"], []]


def test_a_role_is_revoked_at_once_also_one_that_is_to_come(place: Place) -> None:
    """After revoke nobody has it, now or later; to revoke what is not there says so and is not noted."""
    engine = staffed(place)
    engine.directory.grant("ann", "finance")
    engine.directory.grant("ann", "finance", begins_at=place.clock.now() + DAY, ends_at=place.clock.now() + 2 * DAY)
    assert engine.directory.revoke("ann", "finance") is True
    assert engine.directory.revoke("ann", "finance") is False
    assert engine.directory.roles_of("ann") == []
    place.clock.move(DAY + timedelta(hours=1))
    assert engine.directory.holders("finance") == []
    assert [each[1] for each in told(engine, "ann")] == ["put", "grant", "grant", "revoke"]


def test_a_role_that_somebody_has_is_granted_once(place: Place) -> None:
    """A process that grants at every start leaves one grant and one note."""
    engine = staffed(place)
    for _ in range(3):
        engine.directory.grant("ann", "finance")
        place.clock.move(DAY)
    assert [each[1] for each in told(engine, "ann")] == ["put", "grant"]


def test_holders_are_those_who_are_active(place: Place) -> None:
    """A deactivated person holds nothing until activated again."""
    engine = staffed(place)
    engine.directory.grant("ann", "finance")
    engine.directory.grant("bob", "finance")
    engine.directory.deactivate("ann")
    assert [each.id for each in engine.directory.holders("finance")] == ["bob"]
    engine.directory.activate("ann")
    assert [each.id for each in engine.directory.holders("finance")] == ["ann", "bob"]


def test_managers_are_found(place: Place) -> None:
    """Whom somebody reports to is known, and can be nobody."""
    engine = staffed(place)
    engine.directory.set_manager("ann", "bob")
    assert engine.directory.manager_of("ann") == engine.directory.get("bob")
    engine.directory.set_manager("ann", "")
    assert engine.directory.manager_of("ann") is None


def test_every_change_says_who_made_it_and_when(place: Place) -> None:
    """An auditor sees the actor, whom they acted for, the instant and what was changed; pages lead on."""
    engine = staffed(place)
    kim = engine.acting(Actor(id="kim", on_behalf_of="dan", capabilities=frozenset({"directory:change"})))
    place.clock.move(DAY)
    kim.directory.grant("ann", "finance")
    (newest,) = engine.directory.changes("ann", limit=1)
    assert (newest.actor, newest.on_behalf_of, newest.action, newest.at) == ("kim", "dan", "grant", place.clock.now())
    assert newest.details == {"role": "finance", "begins_at": place.clock.now().isoformat()}
    (first,) = engine.directory.changes("ann", before=newest)
    assert (first.actor, first.action) == ("system", "put")
    assert len(engine.directory.changes()) == 5


@pytest.mark.parametrize("statement", ["update {}changes set actor = 'eve'", "delete from {}changes"])
def test_what_was_changed_is_never_rewritten(place: Place, statement: str) -> None:
    """The record of changes withstands SQL too."""
    engine = staffed(place)
    with pytest.raises(StoreError, match="HF120"), place.store.writer().unit() as unit, unit.lend() as lent:
        lent.execute(statement.format("" if place.url.startswith("sqlite") else "standfast."))  # type: ignore[attr-defined]
    assert len(engine.directory.changes()) == 4


def test_a_delegation_holds_for_its_period_and_can_be_ended(place: Place) -> None:
    """It is listed with both until it is over; ended, it is over."""
    engine = staffed(place)
    now = place.clock.now()
    made = engine.directory.delegate("ann", "bob", ends_at=now + 2 * DAY, role="finance", reason="holidays")
    assert (made.giver, made.receiver, made.begins_at) == ("ann", "bob", now)
    assert engine.directory.delegations("ann") == engine.directory.delegations("bob") == [made]
    assert engine.directory.end_delegation(made) is True
    assert engine.directory.end_delegation(made.id) is False
    assert engine.directory.delegations("ann") == []
    assert [each[1] for each in told(engine, "ann")] == ["put", "delegate", "end_delegation"]


def test_an_absence_holds_for_its_period_and_can_be_ended(place: Place) -> None:
    """Whoever comes back early is back."""
    engine = staffed(place)
    made = engine.directory.absent("ann", ends_at=place.clock.now() + 2 * DAY, reason="ill")
    assert engine.directory.absences("ann") == [made]
    assert engine.directory.end_absence(made) is True
    assert engine.directory.end_absence(made) is False
    assert engine.directory.absences("ann") == []


REFUSED: dict[str, tuple[str, Callable[[Calls], object]]] = {
    "to oneself": ("delegation_to_self", lambda calls: calls.directory.delegate("ann", "ann")),
    "straight back": ("delegation_circle", lambda calls: calls.directory.delegate("bob", "ann")),
    "back by way of others": ("delegation_circle", lambda calls: calls.directory.delegate("cat", "ann")),
    "to a deactivated person": ("deactivated", lambda calls: calls.directory.delegate("ann", "dan")),
    "ends before it begins": (
        "empty_period",
        lambda calls: calls.directory.delegate("ann", "bob", ends_at=datetime(2000, 1, 1, tzinfo=UTC)),
    ),
    "an absence of no time": (
        "empty_period",
        lambda calls: calls.directory.absent("ann", begins_at=LATE, ends_at=LATE),
    ),
    "a grant of no time": (
        "empty_period",
        lambda calls: calls.directory.grant("ann", "finance", begins_at=LATE, ends_at=LATE - DAY),
    ),
    "a grant to a deactivated person": ("deactivated", lambda calls: calls.directory.grant("dan", "finance")),
    "one's own manager": ("manager_circle", lambda calls: calls.directory.set_manager("ann", "ann")),
    "a manager from below": ("manager_circle", lambda calls: calls.directory.set_manager("cat", "ann")),
    "the same, put": ("manager_circle", lambda calls: calls.directory.put("cat", manager="ann")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused(place: Place, case: str) -> None:
    """Each has a stable code, and nothing is changed or noted."""
    reason, call = REFUSED[case]
    engine = staffed(place)
    engine.directory.set_manager("ann", "bob")
    engine.directory.set_manager("bob", "cat")
    engine.directory.delegate("ann", "bob")
    engine.directory.delegate("bob", "cat")
    engine.directory.deactivate("dan")
    before = engine.directory.changes(), engine.directory.list(), engine.directory.delegations("ann")
    with pytest.raises(RejectedError) as refused:
        call(engine)
    assert refused.value.reason == reason
    assert (engine.directory.changes(), engine.directory.list(), engine.directory.delegations("ann")) == before


UNKNOWN: dict[str, Callable[[Calls], object]] = {
    "get": lambda calls: calls.directory.get("eve"),
    "deactivate": lambda calls: calls.directory.deactivate("eve"),
    "activate": lambda calls: calls.directory.activate("eve"),
    "grant": lambda calls: calls.directory.grant("eve", "finance"),
    "revoke": lambda calls: calls.directory.revoke("eve", "finance"),
    "set_manager": lambda calls: calls.directory.set_manager("eve", "ann"),
    "manager": lambda calls: calls.directory.set_manager("ann", "eve"),
    "put": lambda calls: calls.directory.put("ann", manager="eve"),
    "giver": lambda calls: calls.directory.delegate("eve", "ann"),
    "receiver": lambda calls: calls.directory.delegate("ann", "eve"),
    "absent": lambda calls: calls.directory.absent("eve"),
    "end_delegation": lambda calls: calls.directory.end_delegation(77),
    "end_absence": lambda calls: calls.directory.end_absence(77),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_whoever_is_unknown_is_not_found(place: Place, case: str) -> None:
    """Nobody comes into being by a mistake in a name."""
    engine = staffed(place)
    with pytest.raises(NotFoundError):
        UNKNOWN[case](engine)
    assert len(engine.directory.changes()) == 4


MALFORMED: dict[str, Callable[[Calls], object]] = {
    "an empty id": lambda calls: calls.directory.put(""),
    "an id like a role": lambda calls: calls.directory.put("role:finance"),
    "a number for an id": lambda calls: calls.directory.put(7),  # type: ignore[arg-type]
    "an address without a place": lambda calls: calls.directory.put("ann", email="ann"),
    "two addresses": lambda calls: calls.directory.put("ann", email="ann@example.org bob@example.org"),
    "an unknown kind": lambda calls: calls.directory.put("ann", kind="robot"),  # type: ignore[arg-type]
    "an instant without a zone": lambda calls: calls.directory.absent("ann", ends_at=datetime(2100, 1, 1)),  # noqa: DTZ001
    "a role without a name": lambda calls: calls.directory.grant("ann", ""),
    "a limit of none": lambda calls: calls.directory.list(limit=0),
    "no number": lambda calls: calls.directory.end_delegation("x"),  # type: ignore[arg-type]
    "a truth value": lambda calls: calls.directory.end_delegation(True),
    "more digits than Python writes": lambda calls: calls.directory.put(10**5000),  # type: ignore[arg-type]
    "a blank id": lambda calls: calls.directory.put(" \n"),
    "a blank role": lambda calls: calls.directory.grant("ann", " "),
    "a role as questions write it": lambda calls: calls.directory.grant("ann", "role:finance"),
    "before the calendar": lambda calls: calls.directory.absent("ann", begins_at=datetime(1, 1, 1, tzinfo=EAST)),
    "after the calendar": lambda calls: calls.directory.absent("ann", ends_at=datetime(9999, 12, 31, 23, tzinfo=WEST)),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_what_cannot_be_kept_is_refused(place: Place, case: str) -> None:
    """The message says what is expected, and nothing is written."""
    engine = staffed(place)
    with pytest.raises(PayloadError):
        MALFORMED[case](engine)
    assert len(engine.directory.changes()) == 4


def test_delegations_that_never_meet_make_no_circle(place: Place) -> None:
    """One after the other, or in different matters, two may stand in for each other."""
    engine = staffed(place)
    now = place.clock.now()
    engine.directory.delegate("ann", "bob", ends_at=now + DAY)
    engine.directory.delegate("bob", "ann", begins_at=now + DAY)
    engine.directory.delegate("cat", "dan", role="finance")
    engine.directory.delegate("dan", "cat", role="legal")
    assert len(engine.directory.delegations("ann")) == len(engine.directory.delegations("cat")) == 2


def test_a_circle_has_to_hold_as_a_whole(place: Place) -> None:
    """Three who stand in for one another, never all at the same time or in the same matter, make none; once they would, it is refused."""
    engine = staffed(place)
    now, calls = place.clock.now(), engine.directory
    calls.delegate("ann", "bob", ends_at=now + DAY)
    calls.delegate("bob", "cat", begins_at=now + 2 * DAY)
    calls.delegate("cat", "ann")
    with pytest.raises(RejectedError, match="bob → cat → ann → bob") as refused:
        calls.delegate("bob", "cat", ends_at=now + timedelta(hours=1))
    assert refused.value.reason == "delegation_circle"
    calls.delegate("dan", "ann", role="finance")
    calls.delegate("bob", "dan", role="legal")
    with pytest.raises(RejectedError, match="bob → dan → ann → bob"):
        calls.delegate("bob", "dan", definition="spend")


def test_the_directory_is_changed_by_those_who_may(place: Place) -> None:
    """It takes a capability; what is one's own, an absence or a delegation, takes none; a deactivated person changes nothing."""
    engine = staffed(place)
    ann = engine.acting("ann")
    for call in (
        lambda: ann.directory.put("eve"),
        lambda: ann.directory.grant("ann", "finance"),
        lambda: ann.directory.deactivate("bob"),
        lambda: ann.directory.delegate("bob", "ann"),
        lambda: ann.directory.absent("bob"),
    ):
        with pytest.raises(ForbiddenError, match="directory:change") as refused:
            call()
        assert refused.value.reason == "not_allowed"
    mine = ann.directory.delegate("ann", "bob")
    ann.directory.absent("ann")
    with pytest.raises(ForbiddenError):
        engine.acting("bob").directory.end_delegation(mine)
    ann.directory.end_delegation(mine)
    engine.acting(KEEPER).directory.deactivate("ann")
    with pytest.raises(ForbiddenError) as gone:
        ann.directory.absent("ann")
    assert gone.value.reason == "deactivated"


def test_people_belong_to_one_tenant(place: Place) -> None:
    """Another tenant neither sees nor changes them, not even by number."""
    engine = staffed(place)
    made = engine.directory.delegate("ann", "bob")
    other = engine.as_tenant("other")
    assert not (other.directory.list())
    assert not (other.directory.changes())
    assert not (other.directory.delegations("ann"))
    for call in (lambda: other.directory.get("ann"), lambda: other.directory.end_delegation(made.id)):
        with pytest.raises(NotFoundError):
            call()
    assert engine.directory.delegations("ann") == [made]


def test_a_directory_of_the_hosts_own_is_only_read(place: Place) -> None:
    """An engine that was given one changes nothing there, and says where to."""

    class Nobody(Directory):
        looking = Directory.from_file(__file__.replace("test_directory.py", "people.yaml")).looking

    engine = place.engine(directory=Nobody())
    assert engine.directory.get("ann").name == "Ann Archer"
    with pytest.raises(ConfigurationError, match="only reads"):
        engine.directory.put("ann")
    with pytest.raises(ConfigurationError, match="subclass of Directory"):
        place.engine(directory="people.yaml")  # type: ignore[arg-type]


def test_two_who_delegate_to_each_other_at_once_make_no_circle(live: Live) -> None:
    """Of two processes one is refused, whoever is first, every time."""
    first, second = live.engine(), live.engine()
    answers: list[str] = []

    def delegate(engine: Calls, giver: str, to: str) -> None:
        try:
            engine.directory.delegate(giver, to)
            answers.append("")
        except RejectedError as error:
            answers.append(error.reason)

    for number in range(30):
        ann, bob = f"ann-{number}", f"bob-{number}"
        first.directory.put(ann)
        first.directory.put(bob)
        answers.clear()
        together(partial(delegate, first, ann, bob), partial(delegate, second, bob, ann))
        assert sorted(answers) == ["", "delegation_circle"]


def test_nobody_is_called_what_the_engine_is_called(place: Place) -> None:
    """A person whom histories could not tell from the engine itself does not come into the directory."""
    engine = place.engine()
    for name in ("system", " system", "system "):
        with pytest.raises(PayloadError, match="is what the engine itself is called in histories"):
            engine.directory.put(name)
        with pytest.raises(PayloadError, match="is what the engine itself is called in histories"):
            engine.keys.create("k", actor=name)
    assert engine.directory.list() == []
