"""Whether a person may act is asked of every call that changes something, in every way in which a right can end, on both stores."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Literal

import msgspec
import pytest

from app.test_partitions import OF_ONE
from authority.calls import (
    BARRED_BY_STATE,
    ELSEWHERE,
    LATER,
    NORTH,
    NOTHING_TO_DO,
    READS,
    TENANT,
    Estate,
    Takes,
    asked_anew,
    estate,
    every_call,
    takes,
)  # fmt: skip
from standfast import (
    Actor,
    Calls,
    Escalation,
    ForbiddenError,
    HumanTask,
    NotFoundError,
    RejectedError,
    RequestContext,
    Run,
    Saga,
    StandfastError,
    ask,
)
from standfast.engine.commit.unit_of_work import JointCommits
from standfast.engine.dispatcher import Dispatcher
from standfast.testing import ManualEngine
from support.engines import Place
from support.samples import Do, Doll

Outcome = Literal["accepted", "refused"]
HOUR = timedelta(hours=1)
ROLES = {"boss": ["*"]}
"""Who has the role `boss` may do everything; who has the role `approver` is asked."""
EVERYTHING = frozenset({"*"})

EXPECTED: dict[str, dict[Takes, Outcome]] = {
    # how the actor stands         a capability     to be asked          nothing          one's own
    "has the roles":        {"right": "accepted", "asked": "accepted", "open": "accepted", "own": "accepted"},
    "roles were revoked":   {"right": "refused",  "asked": "refused",  "open": "accepted", "own": "accepted"},
    "roles are over":       {"right": "refused",  "asked": "refused",  "open": "accepted", "own": "accepted"},
    "right was revoked":    {"right": "refused",  "asked": "accepted", "open": "accepted", "own": "accepted"},
    "stands in":            {"right": "refused",  "asked": "accepted", "open": "accepted", "own": "accepted"},
    "delegation has ended": {"right": "refused",  "asked": "refused",  "open": "accepted", "own": "accepted"},
    "giver was deactivated":{"right": "refused",  "asked": "accepted", "open": "accepted", "own": "accepted"},
    "is deactivated":       {"right": "refused",  "asked": "refused",  "open": "refused",  "own": "refused"},
    "key was revoked":      {"right": "refused",  "asked": "refused",  "open": "refused",  "own": "refused"},
    "key has expired":      {"right": "refused",  "asked": "refused",  "open": "refused",  "own": "refused"},
    "session was ended":    {"right": "refused",  "asked": "refused",  "open": "refused",  "own": "refused"},
    "request has expired":  {"right": "refused",  "asked": "refused",  "open": "refused",  "own": "refused"},
}  # fmt: skip
"""What becomes of a call, by what it takes. A standing delegation of a person who left still holds, as ADR 31 has it."""

LEAVING = "sessions.end"
"""Whoever leaves needs no right to do so: their own session ends."""


OF_PARTITIONS = {"keys.create", "keys.revoke", "invariants.patrol"}
"""What a part of the tenant has of its own: keys that are bound to it, and a patrol."""


def ann(**more: Any) -> RequestContext:
    """A request of Ann's."""
    return RequestContext(actor=Actor(id="ann", **more))


def standing(on: Estate, place: Place, how: str) -> RequestContext:  # noqa: C901, PLR0912 - one case for each way
    """The request of an actor who stands so. Whatever ends, ends after the engine has seen them act."""
    people, now = on.engine.directory, place.clock.now()
    request = ann()
    match how:
        case "has the roles" | "roles were revoked" | "right was revoked":
            people.grant("ann", "boss")
            people.grant("ann", "approver")
        case "roles are over":
            people.grant("ann", "boss", ends_at=now + HOUR)
            people.grant("ann", "approver", ends_at=now + HOUR)
        case "stands in" | "delegation has ended" | "giver was deactivated":
            for role in ("boss", "approver"):
                people.grant("bob", role)
            standing_in = people.delegate("bob", "deputy")
            request = RequestContext(actor=Actor(id="deputy"))
        case "is deactivated":
            request = ann(capabilities=EVERYTHING, roles=frozenset({"approver"}))
        case "key was revoked" | "key has expired":
            ends_at = now + HOUR if how == "key has expired" else None
            made = on.engine.keys.create(
                "k", actor="ann", kind="user", capabilities=["*"], roles=["approver"], expires_at=ends_at
            ).key
            request = RequestContext(actor=made.bearer)
        case "session was ended":
            request = ann(capabilities=EVERYTHING, roles=frozenset({"approver"}))
            session = on.engine.acting(request).sessions.open(credential="test").session
            request = msgspec.structs.replace(request, session=session.id)
        case "request has expired":
            request = ann(capabilities=EVERYTHING, roles=frozenset({"approver"}))
            request = msgspec.structs.replace(request, expires_at=now + HOUR)
        case _:
            raise AssertionError(how)
    on.engine.acting(request).start("rest")
    match how:
        case "roles were revoked":
            for role in ("boss", "approver"):
                people.revoke("ann", role)
        case "right was revoked":
            people.revoke("ann", "boss")
        case "delegation has ended":
            people.end_delegation(standing_in.id)
        case "giver was deactivated":
            people.deactivate("bob")
        case "is deactivated":
            people.deactivate("ann")
        case "key was revoked":
            on.engine.keys.revoke(made)
        case "session was ended":
            on.engine.sessions.end(session.id)
        case "key has expired" | "roles are over" | "request has expired":
            place.clock.move(HOUR)
        case _:
            ...
    return request


def said(call: Callable[[], object]) -> str:
    """How a call ends: accepted, refused for want of authority, or why it cannot be done as things stand."""
    try:
        call()
    except ForbiddenError as error:
        return f"refused: {error.reason}"
    except StandfastError as error:
        return f"accepted, but {type(error).__name__} {error}"
    return "accepted"


def wrong(told: dict[str, str], wanted: Outcome) -> str:
    """The calls that ended otherwise, with how."""
    return "\n".join(f"{name}: {how}" for name, how in told.items() if not how.startswith(wanted))


def called(on: Estate, request: RequestContext, name: str, *, is_anew: bool) -> str:
    """What becomes of a call."""
    if name in TENANT:
        whole = on.engine.acting(request)
        return said(lambda: TENANT[name](whole, on))
    calls = on.engine.acting(msgspec.structs.replace(request, partition="north"))
    things = asked_anew(on) if is_anew else on.north
    return said(lambda: NORTH[name](calls, things))


def rows(place: Place) -> dict[str, set[str]]:
    """All rows of the database, by table, but for those that say who is at work and what was refused."""
    listed = "select name from sqlite_master where type = 'table'", ""
    if not place.url.startswith("sqlite"):
        listed = "select tablename from pg_tables where schemaname = 'standfast'", "standfast."
    with lent(place) as connection:
        names = [name for (name,) in connection.execute(listed[0]).fetchall()]
        return {
            name: {
                hashlib.sha256(repr(row).encode()).hexdigest()[:16]
                for row in (tuple(map(plain, each)) for each in connection.execute(f"select * from {listed[1]}{name}"))
                if name != "resume_requests" or "refused" not in row  # A resume that was refused is on record.
            }
            for name in names
            if name not in {"workers", "refusals"}
        }


def plain(value: object) -> object:
    """Bytes, whatever holds them."""
    return bytes(value) if isinstance(value, memoryview) else value


@contextmanager
def lent(place: Place) -> Iterator[Any]:
    """The engine's own connection."""
    with place.store.line().writer().unit() as unit, unit.lend() as connection:
        yield connection


def test_every_call_has_a_case() -> None:
    """A new call is tried here, or it is said why it is nobody's act, or that it changes nothing."""
    tried = {*NORTH, *TENANT}
    assert tried | READS | set(ELSEWHERE) == every_call()
    assert not tried & READS
    assert not tried & set(ELSEWHERE)


@pytest.mark.row("E-664", "E-572")
@pytest.mark.parametrize("how", EXPECTED)
def test_whoever_acts_must_be_allowed_to_when_they_act(place: Place, how: str) -> None:
    """Each call is refused without a trace, or not refused for want of a right, by how its actor stands at the moment of the commit."""
    on = estate(place, ROLES)
    request = standing(on, place, how)
    expected = {name: EXPECTED[how][takes(name)] for name in (*NORTH, *TENANT)}
    if how in {"is deactivated", "key was revoked", "key has expired", "session was ended", "request has expired"}:
        expected.pop(LEAVING)
    before = rows(place)
    told = {
        name: called(on, request, name, is_anew=False)
        for name, wanted in expected.items()
        if wanted == "refused" and name != LATER
    }
    for name in NOTHING_TO_DO & set(told):
        del told[name]
    assert wrong(told, "refused") == ""
    after = rows(place)
    assert {name: after[name] ^ before[name] for name in after if after[name] != before[name]} == {}
    told = {
        name: called(on, request, name, is_anew=True)
        for name, wanted in expected.items()
        if wanted == "accepted" and name not in NOTHING_TO_DO
    }
    assert wrong(told, "accepted") == ""
    if how == "has the roles":
        assert {name for name, said_ in told.items() if said_ != "accepted"} <= BARRED_BY_STATE | NOTHING_TO_DO


@pytest.mark.parametrize("how", ["is deactivated", "key was revoked", "key has expired", "request has expired"])
def test_what_was_submitted_is_judged_when_it_is_carried_out(place: Place, how: str) -> None:
    """A command that is accepted for later is refused then, if its actor may not act any more."""
    on = estate(place, ROLES)
    request = standing(on, place, how)
    on.engine.acting(request).deciders.submit(Doll, Do("late", "wait"))
    on.engine.drain()
    with pytest.raises(NotFoundError):
        on.engine.deciders.state(Doll, "late")


@pytest.mark.row("P-158")
def test_whoever_is_bound_to_another_partition_changes_nothing(place: Place) -> None:
    """Calls that name something of the north find nothing there, and those about the whole tenant are refused: with every right, and without a trace."""
    on = estate(place, ROLES)
    request = ann(capabilities=EVERYTHING, roles=frozenset({"approver"}))
    south = on.engine.acting(msgspec.structs.replace(request, partition="south"))
    named = {name: call for name, call in NORTH.items() if name in OF_ONE}
    before = rows(place)
    for call in named.values():
        with pytest.raises(NotFoundError):
            call(south, on.north)
    whole = {name: said(partial(TENANT[name], south, on)) for name in TENANT if name not in OF_PARTITIONS}
    assert wrong(whole, "refused") == ""
    after = rows(place)
    assert {name: after[name] ^ before[name] for name in after if after[name] != before[name]} == {}


@pytest.mark.row("E-664", "E-572")
def test_a_right_that_ends_after_the_first_look_is_not_used(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a call looks up before it writes is looked up again where it writes: the right may have ended between."""
    on = estate(place, ROLES)
    other, endings = place.engine(), list[Callable[[], object]]()

    def ending(work: Callable[..., object]) -> Callable[..., object]:
        def ended(self: object, *given: object, **more: object) -> object:
            if endings:
                endings.pop()()
            return work(self, *given, **more)

        return ended

    for owner, name in ((Dispatcher, "operate"), (Dispatcher, "execute"), (JointCommits, "run")):
        monkeypatch.setattr(owner, name, ending(getattr(owner, name)))
    tried = [name for name in (*NORTH, *TENANT) if takes(name) == "right" and name not in NOTHING_TO_DO]
    told: dict[str, str] = {}
    for name in tried:
        other.directory.grant("ann", "boss")
        endings.append(lambda: other.directory.revoke("ann", "boss"))
        told[name] = called(on, ann(), name, is_anew=False)
        assert endings == [], name
    assert wrong(told, "refused") == ""


LADDER = Escalation(timedelta(hours=9), to="user:dir")
OPS = Actor(id="ops", capabilities=frozenset({"task:*"}))


def _asked_once(engine: ManualEngine, how: str) -> tuple[Run[Any], Calls]:
    """A run that asks, and somebody who may not decide its question, or not any more."""
    people = engine.directory
    for name in ("ann", "bob", "zed", "dir"):
        people.put(name)
    for name in ("ann", "bob"):
        people.grant(name, "approver")
    engine.chains.publish("two", [{"asks": ["user:ann"]}, {"asks": ["user:zed"]}])
    picked = {"ask": [ask("role:approver", pick="all"), "user:zed"], "agree": 2}
    asks: dict[str, Any] = {
        "is called like the role": {"role": "approver"},
        "lacks the capability": {"capability": "pay"},
    }
    asks |= {"decided an earlier stage": {"chain": "two"}, "the question was reassigned": {"ask": "user:ann"}}
    engine.register(Saga("pay").human("q", **asks.get(how, picked), escalate=LADDER).build())
    run = engine.run(engine.acting("rita").start("pay").id)
    engine.drain()
    ann = engine.acting("ann")
    match how:
        case "decided an earlier stage":
            ann.tasks.approve(run.tasks()[0])
            engine.drain()
            engine.acting("zed").tasks.claim(run.tasks()[0])
        case "voted and lost the role":
            ann.tasks.approve(run.tasks()[0])
            people.revoke("ann", "approver")
        case "was picked and lost the role":
            people.revoke("ann", "approver")
        case "the question was reassigned":
            engine.acting(OPS).tasks.reassign(run.tasks()[0], "bob")
        case "is called like the role":
            return run, engine.acting("approver")
        case _:
            ...
    return run, ann


SAID: dict[str, Callable[[Calls, HumanTask], object]] = {
    "comment": lambda calls, task: calls.tasks.comment(task, "go on"),
    "ask": lambda calls, task: calls.tasks.ask(task, "why?"),
    "escalate": lambda calls, task: calls.tasks.escalate(task, "urgent"),
    "claim": lambda calls, task: calls.tasks.claim(task),
    "delegate": lambda calls, task: calls.tasks.delegate(task, "bob"),
    "withdraw_decision": lambda calls, task: calls.tasks.withdraw_decision(task),
    "reject": lambda calls, task: calls.tasks.reject(task),
}


@pytest.mark.row("E-664", "E-683", "E-687")
@pytest.mark.parametrize("call", SAID)
@pytest.mark.parametrize(
    "how",
    [
        "decided an earlier stage",
        "voted and lost the role",
        "was picked and lost the role",
        "the question was reassigned",
        "is called like the role",
        "lacks the capability",
    ],
)
def test_who_is_not_asked_now_does_nothing_to_a_question(place: Place, how: str, call: str) -> None:
    """To have been asked, or to have decided, is a right to look and no right to act: every act is refused, and nothing is written."""
    engine = place.engine()
    run, actor = _asked_once(engine, how)
    before = run.history()
    with pytest.raises(RejectedError):
        SAID[call](actor, run.tasks()[0])
    engine.drain()
    assert run.history() == before
