"""Who is asked: the errand that a question sends the engine on, through a commit and a worker, on both stores."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from people.asking import Inquirer
from standfast import ConfigurationError, Engine, PeopleRequest, Saga, Settings, ask
from standfast.graph.values.approver_rules import Ask
from support.engines import AT_ONCE, Place

DAY = timedelta(days=1)
MANAGER = Ask(by="manager")


def office(place: Place) -> Inquirer:
    """Ann, Bob and Cat do finance; Ann reports to Bob, Bob to Cat."""
    engine = place.engine(Settings(retry=AT_ONCE))
    for name, manager in (("cat", ""), ("bob", "cat"), ("ann", "bob")):
        engine.directory.put(name, manager=manager)
        engine.directory.grant(name, "finance")
    return Inquirer(engine)


def role(pick: str, name: str = "finance") -> Ask:
    """A question to a role."""
    return Ask(by="role", of=name, pick=pick)  # type: ignore[arg-type]


# -- users


def test_a_user_is_asked_by_name(place: Place) -> None:
    """Whether the directory knows them or not."""
    asked = office(place)
    assert asked.names(Ask(by="user", of="ann"), Ask(by="user", of="eve")) == ["ann", "eve"]


def test_who_is_away_is_replaced_by_who_stands_in(place: Place) -> None:
    """Only while both hold, and only in matters that the delegation is about."""
    asked = office(place)
    people = asked.engine.directory
    user = Ask(by="user", of="ann")
    people.absent("ann", ends_at=place.clock.now() + 2 * DAY)
    assert asked.names(user) == ["ann"]
    people.delegate("ann", "cat", role="legal")
    people.delegate("ann", "cat", definition="order")
    assert asked.names(user) == ["ann"]
    people.delegate("ann", "bob", definition="expense", ends_at=place.clock.now() + DAY)
    assert asked.names(user) == ["bob for ann"]
    place.clock.move(DAY)
    assert asked.names(user) == ["ann"]
    place.clock.move(DAY)
    people.delegate("ann", "bob")
    assert asked.names(user) == ["ann"]


@pytest.mark.row("EH-07")
def test_who_is_deactivated_is_not_asked(place: Place) -> None:
    """Unless somebody stands in: that is how the work of a leaver is handed over. Neither does a deactivated person stand in."""
    asked = office(place)
    user = Ask(by="user", of="ann")
    asked.engine.directory.delegate("ann", "bob")
    asked.engine.directory.deactivate("ann")
    assert asked.names(user) == ["bob for ann"]
    asked.engine.directory.deactivate("bob")
    found = asked.found(user)
    assert found.people == []
    assert found.why[0]["notes"] == ["'ann' is deactivated"]


# -- roles


@pytest.mark.row("E-664", "EH-07")
def test_holders_of_a_role_are_asked_in_turn(place: Place) -> None:
    """Three questions go to three people, also if several processes find them; the fourth goes to the first again."""
    asked = office(place)
    second = Inquirer(place.engine(Settings(retry=AT_ONCE)))
    second._count = 100
    found = [each.names(role("in_turn"))[0] for each in (asked, second, asked, second)]
    assert found == ["ann", "bob", "cat", "ann"]


@pytest.mark.row("E-664")
def test_holders_who_are_here_come_first_in_turn(place: Place) -> None:
    """Who is away is passed over; if all are, who stands in is asked, and then those who are away."""
    asked = office(place)
    people = asked.engine.directory
    people.put("dan")
    people.absent("ann")
    assert [asked.names(role("in_turn"))[0] for _ in range(3)] == ["bob", "cat", "bob"]
    people.absent("bob")
    people.absent("cat")
    people.delegate("bob", "dan")
    assert asked.names(role("in_turn")) == ["dan for bob"]
    people.absent("dan")
    assert asked.names(role("in_turn"))[0] in {"ann", "bob", "cat"}


def picks(place: Place, **options: Any) -> list[tuple[str, list[str]]]:
    """Rita starts four runs, whose question asks one of Rita, Bob and Cat in turn: how they stand, and who is asked."""
    engine = place.engine()
    engine.register(
        Saga("x").human("check", ask="user:cat").human("q", ask=ask("role:fin", pick="in_turn"), **options).build()
    )
    for name in ("rita", "bob", "cat"):
        engine.directory.put(name)
        engine.directory.grant(name, "fin")
    found = list[tuple[str, list[str]]]()
    for _ in range(4):
        run = engine.acting("rita").start("x")
        engine.drain()
        engine.acting("cat").tasks.approve(run.tasks()[0])
        engine.drain()
        found.append((run.describe().status, [each.name for each in engine.tasks.get(run.tasks()[1]).people]))
    return found


@pytest.mark.row("E-664", "E-684")
def test_only_those_who_may_decide_take_turns(place: Place) -> None:
    """Whoever started the run, or has decided the step that this one is distinct from, is passed over."""
    found = picks(place, self_approval=False, distinct_from="check")
    assert found == [("running", ["bob"])] * 4


@pytest.mark.row("E-664", "E-684")
def test_turns_go_round_among_those_who_may_decide(place: Place) -> None:
    """Everybody else has their turn as before."""
    found = picks(place, self_approval=False)
    assert sorted(found) == [("running", ["bob"])] * 2 + [("running", ["cat"])] * 2


def test_nobody_takes_the_turn_if_nobody_may_decide(place: Place) -> None:
    """Then the run says so, and who may not."""
    engine = place.engine()
    engine.register(Saga("x").human("q", ask=ask("role:fin", pick="in_turn"), self_approval=False).build())
    engine.directory.put("rita")
    engine.directory.grant("rita", "fin")
    run = engine.acting("rita").start("x")
    engine.drain()
    assert (run.describe().status, run.describe().reason) == ("dlq", "no_approver")
    assert "'rita' may not decide this" in run.why().words
    engine.directory.put("bob")
    engine.directory.grant("bob", "fin")
    engine.advance(minutes=1)
    assert [each.name for each in engine.tasks.get(run.tasks()[0]).people] == ["bob"]


def test_the_stand_in_who_is_asked_may_decide(place: Place) -> None:
    """Of several who stand in for somebody who is away, one is asked whom four eyes do not keep out."""
    engine = place.engine()
    engine.register(Saga("x").human("check", ask="user:bob").human("q", ask="manager", distinct_from="check").build())
    for name in ("rita", "ann", "bob", "cat"):
        engine.directory.put(name)
    engine.directory.set_manager("rita", "ann")
    engine.directory.delegate("ann", "bob")
    engine.directory.delegate("ann", "cat")
    engine.directory.absent("ann")
    run = engine.acting("rita").start("x")
    engine.drain()
    engine.acting("bob").tasks.approve(run.tasks()[0])
    engine.drain()
    assert [(each.name, each.stands_for) for each in engine.tasks.get(run.tasks()[1]).people] == [("cat", "ann")]
    assert run.describe().status == "running"


@pytest.mark.row("E-664")
def test_a_role_can_share_one_question(place: Place) -> None:
    """Whoever has the role may decide: it is the role that is asked."""
    assert office(place).names(role("any")) == ["role:finance"]


def test_all_holders_of_a_role_can_be_asked(place: Place) -> None:
    """Each for themselves, without those who are deactivated, and with who stands in for them in this role."""
    asked = office(place)
    people = asked.engine.directory
    people.put("dan")
    people.deactivate("bob")
    people.absent("cat")
    people.delegate("cat", "dan", role="finance")
    assert asked.names(role("all")) == ["ann", "dan for cat"]


@pytest.mark.parametrize("pick", ["any", "all", "in_turn"])
def test_a_role_without_holders_finds_nobody(place: Place, pick: str) -> None:
    """So it fails closed: nobody is asked, and the answer says why."""
    asked = office(place)
    found = asked.found(role(pick, "legal"))
    assert (found.people, found.error) == ([], "")
    assert found.why == [
        {"resolver": "role", "of": "legal", "pick": pick, "result": [], "notes": ["nobody has the role 'legal'"]}
    ]
    for name in ("ann", "bob", "cat"):
        asked.engine.directory.deactivate(name)
    assert asked.names(role(pick)) == []


@pytest.mark.parametrize("pick", ["any", "all", "in_turn"])
def test_without_a_directory_a_role_is_asked_as_such(place: Place, pick: str) -> None:
    """Who has it is then said by whoever calls, as before there was a directory."""
    asked = Inquirer(place.engine())
    assert asked.names(role(pick)) == ["role:finance"]


# -- managers


@pytest.mark.row("E-665", "EH-07")
def test_the_manager_of_the_requester_is_asked(place: Place) -> None:
    """Or of somebody else, if the question names one."""
    asked = office(place)
    assert asked.names(MANAGER, requester="ann") == ["bob"]
    assert asked.names(Ask(by="manager", of="bob"), requester="ann") == ["cat"]


@pytest.mark.row("E-665")
def test_a_manager_who_cannot_be_asked_is_replaced(place: Place) -> None:
    """By who stands in for them, and else by their own manager; never by the one who wants something of them."""
    asked = office(place)
    people = asked.engine.directory
    people.absent("bob")
    assert asked.names(MANAGER, requester="ann") == ["cat"]
    people.delegate("bob", "ann")
    assert asked.names(MANAGER, requester="ann") == ["cat"]
    people.put("dan")
    people.delegate("bob", "dan")
    assert asked.names(MANAGER, requester="ann") == ["dan for bob"]
    people.deactivate("dan")
    people.deactivate("cat")
    found = asked.found(MANAGER, requester="ann")
    assert found.people == []
    assert found.why[0]["notes"] == ["'bob' is away", "'cat' is deactivated", "'cat' has no manager"]


@pytest.mark.parametrize(
    ("requester", "note"), [("", "nobody wants the run"), ("eve", "'eve' is not in the directory")]
)
def test_whoever_has_no_manager_finds_nobody(place: Place, requester: str, note: str) -> None:
    """And the answer says why."""
    found = office(place).found(MANAGER, requester=requester)
    assert found.people == []
    assert note in str(found.why[0]["notes"])


# -- several asks


def test_the_answer_says_why_each_is_asked(place: Place) -> None:
    """Each part says by which resolver, with what, and who was found; of those the question makes places, of each person one."""
    asked = office(place)
    asked.engine.directory.absent("bob")
    asked.engine.directory.delegate("bob", "ann")
    found = asked.found(Ask(by="user", of="bob"), Ask(by="user", of="ann", weight=3), role("all"), requester="eve")
    assert [(each.name, each.for_, each.weight, each.via) for each in found.people] == [
        ("ann", "bob", 1, "named"),
        ("ann", "", 3, "named"),
        ("ann", "", 1, "role finance"),
        ("ann", "bob", 1, "role finance"),
        ("cat", "", 1, "role finance"),
    ]
    assert found.why == [
        {"resolver": "user", "of": "bob", "pick": "any", "requester": "eve", "result": ["ann for bob"]},
        {"resolver": "user", "of": "ann", "pick": "any", "requester": "eve", "result": ["ann"]},
        {
            "resolver": "role",
            "of": "finance",
            "pick": "all",
            "requester": "eve",
            "result": ["ann", "ann for bob", "cat"],
        },
    ]


# -- resolvers of the application


@pytest.mark.row("E-667")
def test_an_application_finds_people_by_its_own_rule(place: Place) -> None:
    """The resolver is given the data, the requester and the tenant, and gives users, roles, or a list; the directory does the rest."""
    asked = office(place)
    asked.engine.directory.deactivate("cat")
    seen: list[PeopleRequest] = []

    @asked.engine.resolver("owner")
    def owner_of(request: PeopleRequest) -> object:
        seen.append(request)
        return request.data["owner"]

    answers = {}
    for owner in ("ann", "user:bob", "role:finance", ["ann", ["bob", "cat"]], [], None):
        answers[str(owner)] = asked.found(Ask(by="owner", of="budget"), requester="eve", data={"owner": owner})
    assert {owner: [each.name for each in found.people] for owner, found in answers.items()} == {
        "ann": ["ann"],
        "user:bob": ["bob"],
        "role:finance": ["finance"],
        "['ann', ['bob', 'cat']]": ["ann", "bob"],
        "[]": [],
        "None": [],
    }
    assert seen[0] == PeopleRequest(
        tenant="default", definition="expense", node="approve", of="budget", requester="eve", data={"owner": "ann"}
    )
    assert answers["[]"].why[0]["notes"] == ["the resolver 'owner' found nobody"]


@pytest.mark.row("E-667")
def test_a_resolver_that_raises_is_tried_again(place: Place) -> None:
    """What passes is waited for; what does not is told to the run in the end."""
    asked = office(place)
    calls: list[int] = []

    def flaky(request: PeopleRequest) -> str:
        calls.append(1)
        if len(calls) < 3:
            raise ConnectionError("the personnel system is away")
        return "ann"

    def broken(request: PeopleRequest) -> str:
        raise ConnectionError("the personnel system is away")

    asked.engine.resolve_people("flaky", flaky)
    asked.engine.resolve_people("broken", broken)
    assert asked.names(Ask(by="flaky")) == ["ann"]
    assert len(calls) == 3
    found = asked.found(Ask(by="broken"))
    assert (found.people, found.error) == ([], "ConnectionError: the personnel system is away")


def test_a_resolver_that_nobody_has_is_told(place: Place) -> None:
    """The run hears what to do, once all attempts were in vain."""
    asked = office(place)
    found = asked.found(Ask(by="owner"))
    assert "no resolver 'owner' here; register it with `engine.resolve_people`" in found.error
    assert "a user is written 'user:owner', a role 'role:owner'" in found.error
    assert "is written" not in asked.found(Ask(by="owner", of="budget")).error


@pytest.mark.parametrize("answer", [7, " ", "role:", ["ann", "user:"], "x" * 100_000, ["ann", "role:" + "é" * 300]])
def test_a_resolver_that_answers_nonsense_is_told_at_once(place: Place, answer: object) -> None:
    """To try again would not help; what nobody can be called is nonsense too, and asks nobody besides."""
    asked = office(place)
    asked.engine.resolve_people("owner", lambda request: answer)
    found = asked.found(Ask(by="owner"))
    assert "the resolver 'owner' answered with " in found.error
    assert (found.people, len(found.error) < 500) == ([], True)


async def _later(request: PeopleRequest) -> str:
    return "ann"


WRONG: dict[str, Callable[[Engine], object]] = {
    "no name": lambda engine: engine.resolve_people("", lambda request: "ann"),
    "a name of the engine": lambda engine: engine.resolve_people("role", lambda request: "ann"),
    "no function": lambda engine: engine.resolve_people("owner", "ann"),  # type: ignore[arg-type]
    "a coroutine": lambda engine: engine.resolve_people("owner", _later),
    "another one of this name": lambda engine: engine.resolve_people("known", lambda request: "bob"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_resolver_is_refused(place: Place, case: str) -> None:
    """It is told when it is registered, and not when somebody is to be asked."""
    engine = place.engine().resolve_people("known", _known).resolve_people("known", _known)
    with pytest.raises(ConfigurationError, match="resolver"):
        WRONG[case](engine)


def _known(request: PeopleRequest) -> str:
    return "ann"
