"""Who somebody is when they decide: with the roles of the directory, for themselves or for those they stand in for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest

from standfast import Actor, Capabilities, Definition, Engine, Escalation, ForbiddenError, RejectedError, Run, Saga
from standfast.kernel.actor import SYSTEM, RequestContext
from standfast.kernel.people import DirectoryLook
from standfast.machine.model.engine_tasks import Person
from standfast.people.authority import Authority, Matter, StandIn, authority
from standfast.people.directory_tables import TableDirectory
from standfast.testing import ManualEngine
from support.engines import Live, Place

DAY = timedelta(days=1)
FINANCE = Person(kind="role", name="finance")
ANN, BOB = Person(name="ann"), Person(name="bob")


def expense() -> Definition:
    """A question to those who do finance."""
    return Saga("expense").human("approve", role="finance").build()


def asked(engine: Engine) -> tuple[Run[object], str]:
    """A run that waits for finance, and its question."""
    run = engine.start("expense")
    if isinstance(engine, ManualEngine):
        engine.drain()
    return run, run.steps()[0].id


def office(place: Place) -> ManualEngine:
    """Ann does finance; Bob and Cat do nothing in particular."""
    engine = place.engine().register(expense())
    for name in ("ann", "bob", "cat"):
        engine.directory.put(name)
    engine.directory.grant("ann", "finance")
    return engine


# -- at the edge


@pytest.mark.row("E-664")
def test_roles_of_the_directory_count_when_somebody_decides(place: Place) -> None:
    """Whoever has the role there needs no context that says it; once it is revoked they are refused."""
    engine = office(place)
    _, question = asked(engine)
    with pytest.raises(ForbiddenError) as refused:
        engine.acting("bob").tasks.approve(question)
    assert refused.value.reason == "not_allowed"
    engine.acting("ann").tasks.approve(question)
    engine.directory.revoke("ann", "finance")
    _, second = asked(engine)
    with pytest.raises(ForbiddenError):
        engine.acting("ann").tasks.approve(second)


def test_what_the_context_says_counts_too(place: Place) -> None:
    """The directory adds roles and takes none away; whoever it does not know is as the context says."""
    engine = office(place)
    for name in ("bob", "eve"):
        _, question = asked(engine)
        engine.acting(Actor(id=name, roles=frozenset({"finance"}))).tasks.approve(question)


@pytest.mark.row("EH-07")
def test_a_deactivated_person_cannot_decide(place: Place) -> None:
    """Whatever roles the context gives; nothing is written."""
    engine = office(place)
    run, question = asked(engine)
    engine.directory.deactivate("ann")
    before = len(run.history())
    with pytest.raises(ForbiddenError, match="deactivated") as refused:
        engine.acting(Actor(id="ann", roles=frozenset({"finance"}))).tasks.approve(question)
    assert refused.value.reason == "deactivated"
    assert len(run.history()) == before


@pytest.mark.parametrize("gone", ["deactivated", "away"])
@pytest.mark.parametrize("deed", ["decide", "claim", "delegate"])
def test_the_claim_of_somebody_who_cannot_act_keeps_nobody_out(place: Place, gone: str, deed: str) -> None:
    """A question is not lost with whoever took it for themselves: the others who are asked have it again."""
    engine = office(place)
    engine.directory.grant("bob", "finance")
    run, question = asked(engine)
    engine.acting("ann").tasks.claim(question)
    bob = engine.acting("bob").tasks
    with pytest.raises(RejectedError) as refused:
        bob.approve(question)
    assert refused.value.reason == "claimed"
    if gone == "away":
        engine.directory.absent("ann")
    else:
        engine.directory.deactivate("ann")
    match deed:
        case "decide":
            bob.approve(question)
        case "claim":
            bob.claim(question)
            assert run.tasks()[0].claimed_by == "bob"
            bob.approve(question)
        case _:
            bob.delegate(question, "cat")
            engine.acting("cat").tasks.approve(question)
    engine.drain()
    assert run.describe().status == "completed"


@pytest.mark.parametrize("role", ["", "finance"])
@pytest.mark.parametrize("ending", ["ended", "over", "away", "deactivated"])
def test_a_claim_of_a_stand_in_ends_with_the_delegation(place: Place, role: str, ending: str) -> None:
    """Cat has claimed in the place of Ann, who is here: when Cat does not stand in any more, the others can decide."""
    engine = office(place)
    engine.directory.grant("bob", "finance")
    run, question = asked(engine)
    until = engine.clock.now() + timedelta(hours=1)
    standing = engine.directory.delegate("ann", "cat", role=role, ends_at=until)
    engine.acting("cat").tasks.claim(question)
    with pytest.raises(RejectedError) as refused:
        engine.acting("bob").tasks.approve(question)
    assert refused.value.reason == "claimed"
    match ending:
        case "ended":
            engine.directory.end_delegation(standing)
        case "over":
            engine.advance(hours=2)
        case "away":
            engine.directory.absent("cat")
        case _:
            engine.directory.deactivate("cat")
    assert "claimed" not in run.why().words
    engine.acting("bob").tasks.claim(question)
    assert run.tasks()[0].claimed_by == "bob"
    engine.acting("bob").tasks.approve(question)
    engine.drain()
    assert run.describe().status == "completed"
    assert run.verify().is_sound


def test_a_claim_of_ones_own_outlives_that_of_a_stand_in(place: Place) -> None:
    """Cat has claimed in the place of Ann, and Ann claims too: it is hers, whatever becomes of the delegation."""
    engine = office(place)
    engine.directory.grant("bob", "finance")
    _run, question = asked(engine)
    standing = engine.directory.delegate("ann", "cat")
    engine.acting("cat").tasks.claim(question)
    engine.acting("ann").tasks.claim(question)
    engine.directory.end_delegation(standing)
    with pytest.raises(RejectedError) as refused:
        engine.acting("bob").tasks.approve(question)
    assert refused.value.reason == "claimed"


def test_whoever_asks_why_hears_of_a_claim(place: Place) -> None:
    """It waits for the one who has claimed it, and the advice gives it back to the others."""
    engine = office(place)
    engine.directory.grant("bob", "finance")
    run, question = asked(engine)
    engine.acting("ann").tasks.claim(question)
    why = run.why()
    assert "waits for a decision by 'ann', who has claimed it" in why.words
    assert [each.waits_for for each in why.reasons] == ["ann"]
    [release] = [each for each in why.reasons[0].remedies if each.call == "tasks.release"]
    assert "release" in [each.action for each in run.resume_options()]
    ops = engine.acting(Actor(id="ops", capabilities=frozenset({release.capability})))
    ops.tasks.release(question)
    assert "claimed" not in run.why().words
    engine.acting("bob").tasks.approve(question)


def test_a_claim_holds_while_somebody_stands_in_for_its_holder(place: Place) -> None:
    """Who stands in for somebody away, or for a leaver, has what they took; once nobody does, the others have it."""
    engine = office(place)
    engine.directory.grant("bob", "finance")
    run, question = asked(engine)
    standing = engine.directory.delegate("ann", "cat")
    engine.acting("cat").tasks.claim(question)
    engine.directory.deactivate("ann")
    with pytest.raises(RejectedError) as refused:
        engine.acting("bob").tasks.approve(question)
    assert (refused.value.reason, run.tasks()[0].claimed_by) == ("claimed", "ann")
    engine.directory.end_delegation(standing)
    engine.acting("bob").tasks.approve(question)


def test_who_stands_in_decides_with_both_names(place: Place) -> None:
    """During the delegation, and no longer; both names are in the history."""
    engine = office(place)
    engine.directory.delegate("ann", "bob", ends_at=place.clock.now() + DAY)
    run, question = asked(engine)
    engine.acting("bob").tasks.approve(question)
    events = place.store.reader("default").events(run.id)
    assert {(each.actor, each.on_behalf_of) for each in events} == {("system", ""), ("bob", "ann")}
    place.clock.move(DAY)
    _, late = asked(engine)
    with pytest.raises(ForbiddenError):
        engine.acting("bob").tasks.approve(late)


def test_whoever_stands_in_for_several_says_for_whom(place: Place) -> None:
    """One of those who are asked, and nobody else."""
    engine = office(place)
    engine.directory.grant("cat", "finance")
    for name in ("ann", "cat"):
        engine.directory.delegate(name, "bob")
    _, question = asked(engine)
    bob = engine.acting("bob")
    with pytest.raises(RejectedError, match="ann, cat") as several:
        bob.tasks.decide(question, "confirmed")
    assert several.value.reason == "several_stood_in_for"
    with pytest.raises(ForbiddenError, match="does not stand in for 'dan'") as nobody:
        bob.tasks.decide(question, "confirmed", on_behalf_of="dan")
    assert nobody.value.reason == "not_standing_in"
    bob.tasks.decide(question, "confirmed", on_behalf_of="cat")


def test_a_delegation_of_one_workflow_counts_in_that_one(place: Place) -> None:
    """Whoever stands in for somebody in the workflow that asks decides there; in another one it does not count."""
    engine = office(place)
    engine.directory.delegate("ann", "bob", definition="expense")
    engine.directory.delegate("ann", "cat", definition="travel")
    _, question = asked(engine)
    with pytest.raises(ForbiddenError):
        engine.acting("cat").tasks.approve(question)
    engine.acting("bob").tasks.approve(question)
    assert deciders(engine, question) == [("bob", "ann")]


def test_that_a_tenant_grants_roles_is_asked_until_it_does(place: Place) -> None:
    """That it does is never asked again; that it does not is believed for a moment."""

    class Counting(TableDirectory):
        asked = 0

        @contextmanager
        def looking(self, tenant: str) -> Iterator[DirectoryLook]:
            self.asked += 1
            with super().looking(tenant) as look:
                yield look

    engine, directory = place.engine(), Counting(place.store)

    def grants() -> tuple[bool, int]:
        return directory.grants_roles("default", place.clock.now()), directory.asked

    assert [grants(), grants()] == [(False, 1), (False, 1)]
    engine.directory.put("ann")
    engine.directory.grant("ann", "finance")
    assert grants() == (False, 1)
    place.clock.move(timedelta(seconds=1))
    assert [grants(), grants()] == [(True, 2), (True, 2)]
    assert directory.grants_roles("other", place.clock.now()) is False
    directory.note_change("other")
    assert (directory.grants_roles("other", place.clock.now()), directory.asked) == (False, 4)


def both(place: Place, **options: object) -> tuple[ManualEngine, Run[object], str]:
    """Ann and Bob are to agree, and Ann stands in for Bob; the run, and its question."""
    engine = office(place)
    saga = Saga("both").human("approve", ask=["user:ann", "user:bob", "user:cat"], agree=2, **options).build()  # type: ignore[arg-type]
    engine.register(saga).directory.delegate("bob", "ann")
    engine.directory.delegate("cat", "ann")
    run = engine.start(saga)
    engine.drain()
    return engine, run, run.steps()[0].id


def deciders(engine: ManualEngine, question: str) -> list[tuple[str, str]]:
    """Who has decided, for whom."""
    return [(each.decided_by, each.on_behalf_of) for each in engine.tasks.get(question).decisions]


def test_a_second_click_is_nobody_elses_vote(place: Place) -> None:
    """Whoever has decided decides for nobody else, also where that is said; the same again does nothing, another one is refused."""
    engine, run, question = both(place)
    ann = engine.acting("ann").tasks
    for _ in range(2):
        ann.approve(question)
    assert deciders(engine, question) == [("ann", "")]
    with pytest.raises(RejectedError) as other:
        ann.reject(question)
    assert other.value.reason == "already_decided"
    with pytest.raises(RejectedError) as twice:
        ann.approve(question, on_behalf_of="bob")
    assert twice.value.reason == "not_distinct"
    engine.acting("bob").tasks.approve(question)
    engine.drain()
    assert (deciders(engine, question), run.describe().status) == ([("ann", ""), ("bob", "")], "completed")


def test_who_has_decided_for_one_decides_for_another_only_by_name(place: Place) -> None:
    """A second click of a stand-in does nothing, whether it says for whom or not; a second opinion for them is refused as such."""
    engine, _, question = both(place)
    ann = engine.acting("ann").tasks
    ann.approve(question, on_behalf_of="bob")
    ann.approve(question, on_behalf_of="bob")
    with pytest.raises(RejectedError) as other:
        ann.reject(question, on_behalf_of="bob")
    assert other.value.reason == "already_decided"
    with pytest.raises(ForbiddenError) as nobody:
        ann.approve(question, on_behalf_of="dan")
    assert nobody.value.reason == "not_standing_in"
    assert deciders(engine, question) == [("ann", "bob")]
    ann.withdraw_decision(question)
    ann.approve(question)
    assert deciders(engine, question) == [("ann", "bob"), ("ann", "")]


def test_distinct_approvers_are_several_people_whoever_they_stand_in_for(place: Place) -> None:
    """One person counts once, by name or not; somebody else has to agree."""
    engine, run, question = both(place, distinct_approvers=True)
    ann = engine.acting("ann").tasks
    ann.approve(question)
    for act in (ann.approve, ann.claim):
        with pytest.raises(RejectedError) as refused:
            act(question, on_behalf_of="bob")
        assert refused.value.reason == "not_distinct"
    ann.approve(question)
    assert deciders(engine, question) == [("ann", "")]
    engine.acting("bob").tasks.approve(question)
    engine.drain()
    assert run.describe().status == "completed"


def test_a_list_says_for_whom_one_stands_in_by_the_directory(place: Place) -> None:
    """By name or by a role, each of several; nobody for what one is asked oneself, or for the list of everybody."""
    engine, _, question = both(place)
    _, expense_ = asked(engine)
    engine.directory.put("dan")
    for name in ("bob", "cat", "ann"):
        engine.directory.delegate(name, "dan")

    def told(name: str) -> dict[str, str]:
        return {each.step_id: each.stands_for for each in engine.acting(name).tasks.list(mine=True)}

    assert told("ann") == {question: "", expense_: ""}
    assert told("cat") == {question: ""}
    assert told("dan") == {question: "ann, bob, cat", expense_: "ann"}
    assert {each.stands_for for each in engine.tasks.list()} == {""}
    engine.acting("dan").tasks.approve(expense_, on_behalf_of=told("dan")[expense_])


def _decides(engine: ManualEngine, name: str) -> bool:
    """Whether somebody may decide a question to finance that is asked now."""
    _, question = asked(engine)
    try:
        engine.acting(name).tasks.approve(question)
    except ForbiddenError:
        return False
    return True


def _asked_instead(engine: ManualEngine) -> bool:
    """Whether Bob is asked in the place of Ann, which takes both her absence and her delegation."""
    run = engine.acting("cat").start("boss")
    engine.drain()
    (task,) = run.tasks()
    return [each.name for each in engine.tasks.get(task).people] == ["bob"]


PERIODS: dict[str, tuple[Callable[[ManualEngine, datetime], object], Callable[[ManualEngine], bool]]] = {
    "grant, to decide": (
        lambda engine, day: engine.directory.grant("bob", "finance", begins_at=day, ends_at=day + DAY),
        lambda engine: _decides(engine, "bob"),
    ),
    "grant, among the roles of a person": (
        lambda engine, day: engine.directory.grant("bob", "finance", begins_at=day, ends_at=day + DAY),
        lambda engine: "finance" in engine.directory.roles_of("bob"),
    ),
    "grant, among the holders of a role": (
        lambda engine, day: engine.directory.grant("bob", "finance", begins_at=day, ends_at=day + DAY),
        lambda engine: "bob" in [each.id for each in engine.directory.holders("finance")],
    ),
    "delegation, to decide": (
        lambda engine, day: engine.directory.delegate("ann", "bob", begins_at=day, ends_at=day + DAY),
        lambda engine: _decides(engine, "bob"),
    ),
    "delegation, to be asked": (
        lambda engine, day: (
            engine.directory.absent("ann"),
            engine.directory.delegate("ann", "bob", begins_at=day, ends_at=day + DAY),
        ),
        _asked_instead,
    ),
    "absence": (
        lambda engine, day: (
            engine.directory.absent("ann", begins_at=day, ends_at=day + DAY),
            engine.directory.delegate("ann", "bob"),
        ),
        _asked_instead,
    ),
}


@pytest.mark.parametrize("case", PERIODS)
def test_a_period_counts_from_its_beginning_to_its_end(place: Place, case: str) -> None:
    """A role, a delegation and an absence of tomorrow count tomorrow: neither today nor the day after, wherever they are asked for."""
    engine = office(place).register(Saga("boss").human("approve", ask="manager").build())
    engine.directory.put("cat", manager="ann")
    make, counts = PERIODS[case]
    make(engine, place.clock.now() + DAY)
    seen = []
    for _ in range(3):
        seen.append(counts(engine))
        place.clock.move(DAY)
    assert seen == [False, True, False]


def test_without_a_directory_nothing_is_asked(place: Place) -> None:
    """A tenant that has nobody in it costs one look in a second; the first one who is put in is heeded at once."""
    engine = place.engine().register(expense())
    directory = engine.office.directory
    request = RequestContext(actor=Actor(id="ann"))
    assert not directory.is_known_empty("default", place.clock.now())
    assert authority(directory, request, place.clock.now()) == Authority(actor=request.actor)
    assert directory.is_known_empty("default", place.clock.now())
    place.clock.move(timedelta(seconds=1))
    assert not directory.is_known_empty("default", place.clock.now())
    authority(directory, request, place.clock.now())
    engine.directory.put("ann")
    assert not directory.is_known_empty("default", place.clock.now())
    engine.directory.deactivate("ann")
    _, question = asked(engine)
    with pytest.raises(ForbiddenError, match="deactivated"):
        engine.acting("ann").tasks.approve(question)


def test_every_face_asks_the_directory(live: Live) -> None:
    """Threads, coroutines and futures are refused alike, and decide alike."""
    engine = live.engine().register(expense())
    for name in ("ann", "bob"):
        engine.directory.put(name)
    engine.directory.grant("ann", "finance")
    engine.start_worker()
    questions = [asked(engine)[1] for _ in range(3)]
    bob, ann = engine.acting("bob"), engine.acting("ann")
    with pytest.raises(ForbiddenError):
        bob.tasks.approve(questions[0])
    with pytest.raises(ForbiddenError):
        engine.futures.acting("bob").tasks.approve(questions[0]).result(30)
    with pytest.raises(ForbiddenError):
        asyncio.run(_approved(engine, "bob", questions[0]))
    ann.tasks.approve(questions[0])
    engine.futures.acting("ann").tasks.approve(questions[1]).result(30)
    asyncio.run(_approved(engine, "ann", questions[2]))
    assert engine.tasks.list() == []


async def _approved(engine: Engine, actor: str, question: str) -> None:
    await engine.aio.acting(actor).tasks.approve(question)


# -- open questions of those who left


def test_questions_that_only_deactivated_people_can_decide_are_found(place: Place) -> None:
    """Until somebody stands in for them, gets the role, or comes back."""
    engine = office(place)
    _, question = asked(engine)
    engine.directory.grant("cat", "finance")
    engine.directory.deactivate("ann")
    found = engine.directory.open_tasks_of_inactive
    assert found() == []
    engine.directory.deactivate("cat")
    assert [each.step_id for each in found()] == [question]
    delegation = engine.directory.delegate("cat", "bob", role="finance")
    assert found() == []
    engine.directory.end_delegation(delegation)
    engine.directory.grant("bob", "finance")
    assert found() == []
    engine.directory.revoke("bob", "finance")
    assert len(found()) == 1
    engine.directory.activate("ann")
    assert found() == []


# -- as whom somebody decides


def standing(*stands_in_for: StandIn, roles: frozenset[str] = frozenset()) -> Authority:
    """Eve, and for whom she stands in."""
    return Authority(actor=Actor(id="eve", roles=roles), stands_in_for=list(stands_in_for))


DOES_FINANCE = StandIn(id="ann", roles=frozenset({"finance"}))


def test_whoever_is_asked_decides_as_themselves() -> None:
    """Also if they stand in for another who is asked."""
    own = standing(DOES_FINANCE, roles=frozenset({"finance"}))
    assert own.deciding(Matter(people=[FINANCE])).on_behalf_of == ""
    assert standing(StandIn(id="ann")).deciding(Matter(people=[ANN, Person(name="eve")])).on_behalf_of == ""
    assert (
        standing(StandIn(id="ann")).deciding(Matter(people=[ANN, Person(name="eve")]), on_behalf_of="ann").on_behalf_of
        == "ann"
    )


def test_standing_in_brings_the_role_that_is_asked_and_no_other() -> None:
    """Who decides for the holder of a role has that role for it; who decides for a person asked by name has the roles that were lent."""
    actor = standing(StandIn(id="ann", roles=frozenset({"finance", "legal"}))).deciding(Matter(people=[FINANCE]))
    assert (actor.id, actor.on_behalf_of, actor.roles) == ("eve", "ann", frozenset({"finance"}))
    named = standing(DOES_FINANCE).deciding(Matter(people=[ANN]))
    assert (named.on_behalf_of, named.roles) == ("ann", frozenset({"finance"}))


@pytest.mark.parametrize(("name", "lent"), [("ann", "finance"), ("bob", "legal")])
def test_whoever_stands_in_for_several_has_the_roles_of_the_one_that_is_asked(name: str, lent: str) -> None:
    """Asked by name, each lends what they have themselves; what another lends does not count."""
    both = standing(DOES_FINANCE, StandIn(id="bob", roles=frozenset({"legal"})))
    actor = both.deciding(Matter(people=[Person(name=name)]))
    assert (actor.on_behalf_of, actor.roles) == (name, frozenset({lent}))
    said = both.deciding(Matter(people=[ANN, BOB]), on_behalf_of=name)
    assert (said.on_behalf_of, said.roles) == (name, frozenset({lent}))


@pytest.mark.parametrize(
    ("stand_in", "person", "is_covered"),
    [
        (StandIn(id="ann", role="finance", roles=frozenset({"finance"})), FINANCE, True),
        (StandIn(id="ann", role="finance"), FINANCE, False),
        (StandIn(id="ann", role="legal", roles=frozenset({"finance", "legal"})), FINANCE, False),
        (StandIn(id="ann", role="finance", roles=frozenset({"finance"})), ANN, False),
        (StandIn(id="ann", definition="expense"), ANN, True),
        (StandIn(id="ann", definition="order"), ANN, False),
        (StandIn(id="ann"), BOB, False),
    ],
)
def test_a_delegation_is_about_what_it_says(stand_in: StandIn, person: Person, *, is_covered: bool) -> None:
    """A role or a workflow that it names limits it; nobody passes on a role that they do not have."""
    actor = standing(stand_in).deciding(Matter(people=[person]), definition="expense")
    assert actor.on_behalf_of == ("ann" if is_covered else "")
    if not is_covered:
        with pytest.raises(ForbiddenError):
            standing(stand_in).deciding(Matter(people=[person]), definition="expense", on_behalf_of="ann")


def test_the_engine_itself_stands_in_for_whom_it_says() -> None:
    """A library's calls without a context may do everything."""
    assert Authority(actor=SYSTEM).deciding(Matter(people=[ANN])) is SYSTEM
    assert Authority(actor=SYSTEM).deciding(Matter(people=[ANN]), on_behalf_of="ann").on_behalf_of == "ann"


def test_what_the_host_says_of_standing_in_stays() -> None:
    """A context that names for whom it acts is not changed."""
    actor = Actor(id="eve", on_behalf_of="cat")
    assert Authority(actor=actor, stands_in_for=[DOES_FINANCE]).deciding(Matter(people=[FINANCE])) is actor


@pytest.mark.parametrize(
    "act",
    [
        lambda tasks, task, **whom: tasks.approve(task, **whom),
        lambda tasks, task, **whom: tasks.reject(task, **whom),
        lambda tasks, task, **whom: tasks.claim(task, **whom),
        lambda tasks, task, **whom: tasks.delegate(task, "eve", **whom),
        lambda tasks, task, **whom: tasks.comment(task, "hm", **whom),
        lambda tasks, task, **whom: tasks.ask(task, "why?", **whom),
    ],
    ids=["approve", "reject", "claim", "delegate", "comment", "ask"],
)
def test_all_that_is_done_to_a_question_says_for_whom(place: Place, act: Callable[..., None]) -> None:
    """Whoever stands in for several who are asked names one, whatever they do; the history has both names."""
    engine = office(place)
    engine.directory.put("eve")
    engine.directory.grant("cat", "finance")
    for name in ("ann", "cat"):
        engine.directory.delegate(name, "bob")
    run, question = asked(engine)
    tasks, before = engine.acting("bob").tasks, len(run.history())
    with pytest.raises(RejectedError) as several:
        act(tasks, question)
    assert (several.value.reason, len(run.history())) == ("several_stood_in_for", before)
    act(tasks, question, on_behalf_of="cat")
    assert {(each.actor, each.on_behalf_of) for each in run.history()[before:]} == {("bob", "cat")}


def test_what_somebody_says_for_another_bears_both_names(place: Place) -> None:
    """A comment names who wrote it and for whom; whoever asked back is not answered by who stands in for them."""
    engine = office(place)
    engine.directory.delegate("ann", "bob")
    run, question = asked(engine)
    engine.acting("ann").tasks.ask(question, "What for?")
    engine.acting("bob").tasks.comment(question, "We need to know", on_behalf_of="ann")
    details = engine.tasks.get(question)
    assert [(each.actor, each.on_behalf_of) for each in details.comments] == [("ann", ""), ("bob", "ann")]
    assert details.status == "info_requested"
    engine.tasks.comment(question, "Lamps")
    assert engine.tasks.get(question).status == "open"
    assert run.verify().is_sound


def test_who_stands_in_for_the_requester_speaks_and_withdraws_for_them(place: Place) -> None:
    """Delegations cover what one has asked for as well, and nobody else's."""
    engine = office(place)
    engine.directory.delegate("cat", "bob")
    run = engine.acting("cat").start("expense")
    engine.drain()
    question = run.steps()[0].id
    engine.acting("bob").tasks.comment(question, "It is for lamps")
    with pytest.raises(ForbiddenError):
        engine.acting("dan").tasks.withdraw(question)
    engine.acting("bob").tasks.withdraw(question, "found some", on_behalf_of="cat")
    told = run.history()[-1]
    assert (told.actor, told.on_behalf_of, run.describe().status) == ("bob", "cat", "aborted")


@pytest.mark.parametrize("way", ["user:ann", "role:mgr"])
def test_a_stand_in_has_what_the_question_takes(place: Place, way: str) -> None:
    """A question that asks for a capability which Ann has by a role is decided by whoever stands in for her, by name as by role."""
    engine = place.engine(capabilities=Capabilities({"mgr": ["o:approve"]}))
    for name in ("ann", "cat"):
        engine.directory.put(name)
    engine.directory.grant("ann", "mgr")
    holidays = engine.directory.delegate("ann", "cat")
    engine.register(Saga("x").human("q", ask=way, capability="o:approve").build())
    runs = [engine.start("x") for _ in range(2)]
    engine.drain()
    cat = engine.acting("cat").tasks
    assert len(cat.list(mine=True)) == 2
    cat.approve(runs[0].tasks()[0])
    engine.directory.end_delegation(holidays)
    with pytest.raises(ForbiddenError):
        cat.approve(runs[1].tasks()[0])


def test_a_stand_in_for_one_role_has_no_more_than_that(place: Place) -> None:
    """A delegation of a role lends that role alone."""
    engine = place.engine(capabilities=Capabilities({"mgr": ["o:approve"]}))
    for name in ("ann", "cat"):
        engine.directory.put(name)
    for role in ("mgr", "fin"):
        engine.directory.grant("ann", role)
    engine.directory.delegate("ann", "cat", role="fin")
    engine.register(Saga("x").human("q", ask="role:fin", capability="o:approve").build())
    run = engine.start("x")
    engine.drain()
    with pytest.raises(ForbiddenError, match="o:approve"):
        engine.acting("cat").tasks.approve(run.tasks()[0])


def test_a_stand_in_escalates_for_somebody(place: Place) -> None:
    """For one who is asked, or who wanted the run; `on_behalf_of` says for whom, as in all calls about one's own part."""
    engine = place.engine()
    for name in ("ann", "bob", "cat", "dir"):
        engine.directory.put(name)
    engine.directory.delegate("ann", "cat")
    engine.directory.delegate("bob", "cat")
    ladder = Escalation(timedelta(hours=1), to="user:dir")
    engine.register(Saga("x").human("q", ask=["user:ann", "user:bob"], escalate=ladder).build())
    runs = [engine.acting("bob").start("x") for _ in range(2)]
    engine.drain()
    cat, tasks = engine.acting("cat").tasks, [each.tasks()[0] for each in runs]
    with pytest.raises(RejectedError, match="several"):
        cat.escalate(tasks[0], "urgent")
    cat.escalate(tasks[0], "urgent", on_behalf_of="ann")
    cat.escalate(tasks[1], "urgent", on_behalf_of="bob")
    told = [
        (each.actor, each.on_behalf_of) for run in runs for each in run.history() if each.event_type == "task_escalated"
    ]
    assert told == [("cat", "ann"), ("cat", "bob")]


def test_a_stand_in_who_has_decided_still_speaks_for_the_giver(place: Place) -> None:
    """A comment bears both names after the decision as before it."""
    engine = place.engine()
    for name in ("ann", "bob", "cat"):
        engine.directory.put(name)
    engine.directory.delegate("ann", "cat")
    engine.register(Saga("x").human("q", ask=["user:ann", "user:bob"]).build())
    run = engine.acting("rita").start("x")
    engine.drain()
    task, cat = run.tasks()[0], engine.acting("cat").tasks
    cat.comment(task, "before")
    cat.approve(task)
    cat.comment(task, "after")
    told = [(each.actor, each.on_behalf_of) for each in engine.tasks.get(task).comments]
    assert told == [("cat", "ann"), ("cat", "ann")]
