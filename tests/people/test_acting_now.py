"""Authority counts at the moment of acting: for people who lost a role, for leavers and their keys, and for what they left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import partial
from typing import Literal

import msgspec
import pytest

from api.world import GENEROUS, Client, problem
from standfast import (
    Actor,
    Calls,
    Capabilities,
    ForbiddenError,
    RejectedError,
    RequestContext,
    Run,
    Saga,
    StandfastError,
    ask,
)
from standfast.http import create_app
from standfast.kernel.people import Delegation
from standfast.testing import ManualEngine
from support.engines import Place

FORGETFUL = msgspec.structs.replace(GENEROUS, credential_memory=timedelta(0))
"""Looks every credential up again, as a server does that has not seen it."""
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
MIGHTY = frozenset({"*"})


def office(place: Place, **asks: object) -> ManualEngine:
    """Ann and Bob do finance, Cat does nothing in particular; `ask` asks finance, `paid` waits for a signal."""
    engine = place.engine()
    engine.register(Saga("ask").human("sign", **(asks or {"role": "finance"})).wait_for("w", signal="x").build())  # type: ignore[arg-type]
    engine.register(Saga("paid").wait_for("wait", signal="paid").build())
    for name in ("ann", "bob", "cat"):
        engine.directory.put(name)
    for name in ("ann", "bob"):
        engine.directory.grant(name, "finance")
    return engine


def asked(engine: ManualEngine) -> tuple[Run[object], str]:
    """A run that asks finance, and its question."""
    run = engine.start("ask")
    engine.drain()
    return run, run.tasks()[0].step_id


@contextmanager
def bearer(engine: ManualEngine, secret: str) -> Iterator[Client]:
    """Somebody who comes with this credential over HTTP."""
    client = Client(create_app(engine, FORGETFUL), secret)
    try:
        yield client
    finally:
        client.close()


def client_of(
    engine: ManualEngine, actor: str, capabilities: Sequence[str] = ("*",), partition: str = ""
) -> AbstractContextManager[Client]:
    """Somebody who comes with a new key."""
    made = engine.keys.create("key", actor=actor, kind="user", capabilities=capabilities, partition=partition)
    return bearer(engine, made.secret)


def refusal(call: Callable[[], object]) -> str:
    """Why a call is refused."""
    with pytest.raises((ForbiddenError, RejectedError)) as refused:
        call()
    return refused.value.reason


# -- people who lost the role by which they were asked


@pytest.mark.row("R-080", "E-664")
@pytest.mark.parametrize("pick", ["any", "all", "in_turn"])
def test_whoever_lost_the_role_does_not_decide_however_they_were_picked(place: Place, pick: str) -> None:
    """People who were asked as holders of a role decide while they have it: picked ones too. Granted again, they decide again."""
    engine = office(place, ask=ask("role:finance", pick=pick), agree="any")  # type: ignore[arg-type]
    run, question = asked(engine)
    engine.directory.revoke("ann", "finance")
    before = len(run.history())
    ann = engine.acting("ann").tasks
    for deed in (
        lambda: ann.approve(question),
        lambda: ann.claim(question),
        lambda: ann.delegate(question, "cat"),
    ):
        assert refusal(deed) == "not_allowed"
    assert len(run.history()) == before
    engine.directory.grant("ann", "finance")
    ann.approve(question)
    assert len(run.history()) > before


@pytest.mark.row("R-080")
@pytest.mark.parametrize("way", ["picked", "delegated"])
def test_an_inbox_lists_nothing_that_its_owner_may_not_decide_any_more(place: Place, way: str) -> None:
    """What asks people because of a role leaves their inbox with the role, and its count; granted again, it is back."""
    picked = {"ask": ask("role:finance", pick="all"), "agree": "any"}
    engine = office(place, **(picked if way == "picked" else {}))
    _, question = asked(engine)
    who = "ann"
    if way == "delegated":
        engine.acting("ann").tasks.delegate(question, "cat")
        who = "cat"
    tasks = engine.acting(who).tasks
    assert ([each.step_id for each in tasks.list(mine=True)], tasks.counts().own) == ([question], 1)
    engine.directory.revoke("ann", "finance")
    assert (tasks.list(mine=True), tasks.counts().own) == ([], 0)
    engine.directory.grant("ann", "finance")
    assert ([each.step_id for each in tasks.list(mine=True)], tasks.counts().own) == ([question], 1)


@pytest.mark.row("R-080")
def test_a_person_who_is_asked_by_name_needs_no_role(place: Place) -> None:
    """Roles count for those who were asked because of them."""
    engine = office(place, ask=["user:ann"])
    run, question = asked(engine)
    engine.directory.revoke("ann", "finance")
    engine.acting("ann").tasks.approve(question)
    assert [each.status for each in run.tasks()] == ["decided"]


# -- strangers


def test_a_stranger_learns_nothing_of_a_question(place: Place) -> None:
    """A person who is not asked gets the same refusal from an open question and from a decided one, whatever they try; those who were asked are told how it stands."""
    engine = office(place)
    _, open_ = asked(engine)
    _, decided = asked(engine)
    engine.acting("ann").tasks.approve(decided, comment="the secret reason")
    told: dict[str, list[tuple[int, str]]] = {}
    with client_of(engine, "nils", ["task:use"]) as stranger:
        for question in (open_, decided):
            for path, body in (
                ("decide", {"decision": "confirmed"}),
                ("decide", {"decision": "rejected"}),
                ("claim", {}),
                ("release", {}),
                ("delegate", {"to": "cat"}),
                ("escalate", {}),
                ("withdraw-decision", {}),
                ("comments", {"text": "x"}),
            ):
                answer = stranger.post(f"/api/v1/tasks/{question}/{path}", body)
                assert "'ann'" not in answer.text
                assert "secret" not in answer.text
                told.setdefault(f"{path} {body}", []).append((answer.status_code, problem(answer)["code"]))
    assert {name: said for name, said in told.items() if said != [(403, "not_allowed")] * 2} == {}
    with pytest.raises(RejectedError, match="'ann'"):
        engine.acting("bob").tasks.reject(decided)


# -- leavers


def left(engine: ManualEngine) -> dict[str, Callable[[Calls], object]]:
    """What leavers might try, each of which they could do while they were there."""
    run = engine.start("paid")
    paused = engine.start("paid")
    paused.pause("hold")
    key = engine.keys.create("robot", actor="robot", capabilities=["execution:read"]).key
    engine.schedules.put("s", "paid", every=DAY)
    engine.drain()
    return {
        "start": lambda who: who.start("paid"),
        "signal": lambda who: who.run(run.id).signal("paid"),
        "cancel": lambda who: who.run(run.id).cancel("x"),
        "pause": lambda who: who.run(run.id).pause("x"),
        "resume": lambda who: who.run(paused.id).resume("x"),
        "request_resume": lambda who: who.run(paused.id).request_resume("x"),
        "change_data": lambda who: who.run(run.id).change_data({"a": 1}, reason="x"),
        "skip": lambda who: who.run(run.id).skip(1, reason="x"),
        "keys.create": lambda who: who.keys.create("k", actor="cat", capabilities=["*"]),
        "keys.revoke": lambda who: who.keys.revoke(key),
        "schedules.put": lambda who: who.schedules.put("t", "paid", every=DAY),
        "schedules.trigger": lambda who: who.schedules.trigger("s"),
        "schedules.delete": lambda who: who.schedules.delete("s"),
        "batches.begin": lambda who: who.batches.begin("cancel", [run.id], reason="x"),
        "directory.grant": lambda who: who.directory.grant("cat", "finance"),
        "charters": lambda who: who.charters.publish_settings({"most": 9}),
        "chains": lambda who: who.chains.publish("c", [{"asks": ["manager"]}]),
        "pauses.pause": lambda who: who.pauses.pause("paid", reason="x"),
        "events.publish": lambda who: who.events.publish("happened", "k", {}),
        "definitions.publish": lambda who: who.definitions.publish({**engine.definitions.data("paid"), "name": "own"}),
    }


def standing(engine: ManualEngine) -> object:
    """How everything stands that leavers might change."""
    runs = [(each.id, each.status, len(engine.run(each.id).history())) for each in engine.runs.list().items]
    kept = (engine.schedules.list(), engine.batches.list(), engine.pauses.list(with_ended=True))
    said = (engine.charters.list(), engine.chains.list(), engine.definitions.list(), engine.events.list())
    asked_ = [[each for each in engine.run(run[0]).resume_requests() if not each.error_message] for run in runs]
    return runs, kept, said, asked_, engine.keys.list(), engine.directory.changes()


@pytest.mark.row("E-664")
@pytest.mark.parametrize("actor", [Actor(id="ann"), Actor(id="portal", on_behalf_of="ann")], ids=["herself", "for her"])
def test_a_deactivated_person_does_nothing(place: Place, actor: Actor) -> None:
    """Every call that changes something is refused without a trace, with whatever rights the request comes; activated again, all of them are accepted.

    The same holds for a front end that says it acts on behalf of that person.
    """
    engine = office(place)
    deeds, ann = left(engine), engine.acting(msgspec.structs.replace(actor, capabilities=MIGHTY))
    engine.directory.deactivate("ann")
    before = standing(engine)
    assert {name: refusal(partial(deed, ann)) for name, deed in deeds.items()} == dict.fromkeys(deeds, "deactivated")
    assert standing(engine) == before
    engine.directory.activate("ann")
    refused: dict[str, str] = {}
    for name, deed in deeds.items():
        try:
            deed(ann)
        except ForbiddenError as error:
            refused[name] = error.reason
        except StandfastError:
            continue  # What is refused for another reason, such as a run that has ended by now, is not refused for want of a right.
    assert refused == {}


def test_the_key_of_a_deactivated_person_opens_nothing(place: Place) -> None:
    """A key of a leaver does not hold over HTTP: nothing starts, no key is made, nothing is read. With the person it holds again."""
    engine = office(place)
    start = {"definition": "paid", "input": {}}
    with client_of(engine, "ann") as client:
        assert client.post("/api/v1/executions", start).status_code == 201
        engine.directory.deactivate("ann")
        before = standing(engine)
        for method, path, body in (
            ("POST", "/api/v1/executions", start),
            ("POST", "/api/v1/keys", {"name": "x", "actor": "ann", "capabilities": ["execution:start"]}),
            ("PUT", "/api/v1/directory/people/cat/roles/finance", {}),
            ("POST", "/api/v1/batches", {"verb": "start", "definition": "paid", "inputs": [{}]}),
            ("PUT", "/api/v1/schedules/s", {"workflow": "paid", "cron": "0 3 * * *"}),
            ("GET", "/api/v1/executions", None),
        ):
            answer = client.ask(method, path, json=body)
            assert (answer.status_code, problem(answer)["code"]) == (401, "unauthenticated"), answer.text
        assert standing(engine) == before
        engine.directory.activate("ann")
        assert client.get("/api/v1/executions").status_code == 200


@pytest.mark.parametrize("end", ["deactivated", "key revoked"])
def test_what_a_leaver_left_behind_is_not_carried_out(place: Place, end: str) -> None:
    """A batch, a schedule and a resume request act for who asked for them: they do nothing for a leaver, and nothing for a revoked key."""
    engine = office(place)
    run, paused = engine.start("paid"), engine.start("paid")
    paused.pause("hold")
    made = engine.keys.create("a", actor="ann", kind="user", capabilities=["*"])
    with bearer(engine, made.secret) as client:
        for method, path, body in (
            ("POST", "/api/v1/batches", {"verb": "cancel", "runs": [str(run.id)], "reason": "x"}),
            ("PUT", "/api/v1/schedules/s", {"workflow": "paid", "every_seconds": 3600}),
            ("POST", f"/api/v1/executions/{paused.id}/resume-requests", {"reason": "later"}),
        ):
            assert client.ask(method, path, json=body).is_success
    if end == "deactivated":
        engine.directory.deactivate("ann")
    else:
        engine.keys.revoke(made.key)
    engine.advance(2 * HOUR)
    assert (run.describe().status, paused.describe().status) == ("running", "paused")
    (request,) = paused.resume_requests()
    assert (request.executed_at, request.requested_by) == (None, "ann")
    (batch,) = engine.batches.list()
    reason = "deactivated" if end == "deactivated" else "revoked"
    assert [(each.status, reason in each.detail) for each in engine.batches.items(batch.id)] == [("refused", True)]
    assert reason in request.error_message
    fires = engine.schedules.fires("s")
    assert fires
    assert {(each.status, reason in each.detail) for each in fires} == {("refused", True)}
    assert len(engine.runs.list(definition="paid").items) == 2


@pytest.mark.row("R-090")
@pytest.mark.parametrize("is_over", [False, True], ids=["holds", "over"])
def test_rights_that_came_with_a_request_end_with_it(place: Place, *, is_over: bool) -> None:
    """A resume request is carried out with what its token said, for as long as the token lasts; roles of the directory count beyond that."""
    engine = office(place)
    paused = engine.start("paid")
    paused.pause("hold")
    engine.drain()  # The worker has just looked for requests, and does so again in some minutes.
    ends_at = place.clock.now() + (timedelta(seconds=1) if is_over else DAY)
    request = RequestContext(actor=Actor(id="eve", capabilities=MIGHTY), expires_at=ends_at)
    engine.acting(request).run(paused.id).request_resume("later")
    engine.advance(HOUR)
    (told,) = paused.resume_requests()
    assert (paused.describe().status, told.executed_at is None) == (("paused", True) if is_over else ("running", False))
    assert ("execution:resume" in told.error_message) == is_over


def test_a_batch_says_nothing_of_runs_that_its_owner_may_not_touch(place: Place) -> None:
    """An item is refused for want of a right before it is told that the run stands as wanted."""
    engine = office(place)
    run = engine.start("paid")
    run.pause("hold")
    weak = engine.acting(Actor(id="nils", capabilities=frozenset({"batch:*", "execution:read"})))
    batch = weak.batches.begin("pause", [run.id])
    engine.drain()
    assert [each.status for each in weak.batches.items(batch.id)] == ["refused"]


# -- claims and delegated tasks


@pytest.mark.parametrize("deed", ["decide", "claim", "delegate"])
def test_a_claim_ends_with_the_role_by_which_it_was_made(place: Place, deed: str) -> None:
    """The holder may not decide any more, so the claim keeps nobody out."""
    engine = office(place)
    run, question = asked(engine)
    engine.acting("ann").tasks.claim(question)
    bob = engine.acting("bob").tasks
    assert refusal(lambda: bob.approve(question)) == "claimed"
    engine.directory.revoke("ann", "finance")
    assert refusal(lambda: engine.acting("ann").tasks.approve(question)) == "not_allowed"
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
    assert [each.status for each in run.tasks()] == ["decided"]


@pytest.mark.parametrize("end", ["revoked", "deactivated"])
def test_a_delegated_task_ends_with_the_right_of_whoever_delegated_it(place: Place, end: str) -> None:
    """The receiver decides for the giver, and no longer than the giver could: they lost the role, or left."""
    engine = office(place)
    run, question = asked(engine)
    engine.acting("ann").tasks.delegate(question, "cat")
    if end == "revoked":
        engine.directory.revoke("ann", "finance")
    else:
        engine.directory.deactivate("ann")
    before = len(run.history())
    cat = engine.acting("cat").tasks
    for act in (lambda: cat.approve(question), lambda: cat.claim(question), lambda: cat.delegate(question, "bob")):
        assert refusal(act) == "not_allowed"
    assert len(run.history()) == before
    engine.directory.activate("ann")
    engine.directory.grant("ann", "finance")
    cat.approve(question)
    assert run.tasks()[0].decided_by == "cat"


def lent(place: Place, way: str) -> tuple[ManualEngine, Run[object], str, Delegation]:
    """Bob, who stands in for Ann, has handed her question to Cat: he was asked for her, or took her part. The last one is his delegation."""
    engine = office(place, ask="user:ann") if way != "role" else office(place)
    if way == "role":
        engine.directory.revoke("bob", "finance")
    holidays = engine.directory.delegate("ann", "bob")
    if way == "asked":
        engine.directory.absent("ann")
        engine.register(Saga("manager").human("sign", ask="manager").build())
        engine.directory.put("rita", manager="ann")
        run = engine.acting("rita").start("manager")
    else:
        run = engine.start("ask")
    engine.drain()
    question = run.tasks()[0].step_id
    engine.acting("bob").tasks.delegate(question, "cat")
    assert [each.step_id for each in engine.acting("cat").tasks.list(mine=True)] == [question]
    return engine, run, question, holidays


@pytest.mark.parametrize("end", ["ended", "deactivated"])
@pytest.mark.parametrize("way", ["named", "role", "asked"])
def test_what_a_stand_in_handed_on_ends_with_the_delegation(place: Place, way: str, end: str) -> None:
    """Whoever has it from a stand-in decides no longer than that one stands in. It leaves the inbox, and the run says that nobody can decide."""
    engine, run, question, holidays = lent(place, way)
    if end == "ended":
        engine.directory.end_delegation(holidays)
    else:
        engine.directory.deactivate("bob")
    cat = engine.acting("cat").tasks
    assert cat.list(mine=True) == []
    assert cat.counts().own == 0
    for act in (lambda: cat.approve(question), lambda: cat.claim(question), lambda: cat.delegate(question, "ann")):
        assert refusal(act) == "not_allowed"
    engine.advance(minutes=1)
    assert run.describe().reason == "no_approver"
    if end == "ended":
        engine.directory.delegate("ann", "bob")
    else:
        engine.directory.activate("bob")
    engine.advance(minutes=1)
    cat.approve(question)
    decided = engine.tasks.get(question).decisions[0]
    assert (decided.decided_by, decided.on_behalf_of) == ("cat", "ann")


@pytest.mark.parametrize("way", ["named", "role"])
def test_a_stand_in_hands_on_what_a_leaver_left(place: Place, way: str) -> None:
    """A delegation holds although its giver was deactivated, and so does what is handed on by it."""
    engine, _, question, _ = lent(place, way)
    engine.directory.deactivate("ann")
    engine.acting("cat").tasks.approve(question)
    assert engine.tasks.get(question).decisions[0].decided_by == "cat"


def test_what_somebody_in_between_takes_back_is_theirs_again(place: Place) -> None:
    """Cat has it from Ann and hands it on to Bob; when she takes it back she decides for Ann, as before, and no longer than Ann could."""
    engine = office(place, ask="user:ann")
    _, question = asked(engine)
    engine.acting("ann").tasks.delegate(question, "cat")
    engine.acting("cat").tasks.delegate(question, "bob")
    cat = engine.acting("cat").tasks
    cat.reassign(question, "cat", reason="I have time after all")
    engine.directory.deactivate("ann")
    assert refusal(lambda: cat.approve(question)) == "not_allowed"
    engine.directory.activate("ann")
    cat.approve(question)
    decided = engine.tasks.get(question).decisions[0]
    assert (decided.decided_by, decided.on_behalf_of) == ("cat", "ann")


def test_what_is_taken_back_depends_on_those_alone_who_handed_it_there(place: Place) -> None:
    """Who handed it on behind Cat may stop standing in for her; who handed it to her in the place of Ann may not."""
    engine = office(place, ask="user:ann")
    for name in ("dan", "eve"):
        engine.directory.put(name)
    before, behind = engine.directory.delegate("ann", "eve"), engine.directory.delegate("cat", "dan")
    _, question = asked(engine)
    engine.acting("eve").tasks.delegate(question, "cat", on_behalf_of="ann")
    engine.acting("dan").tasks.delegate(question, "bob", on_behalf_of="cat")
    cat = engine.acting("cat").tasks
    cat.reassign(question, "cat")
    engine.directory.end_delegation(behind)
    engine.directory.end_delegation(before)
    assert refusal(lambda: cat.approve(question)) == "not_allowed"
    engine.directory.delegate("ann", "eve")
    cat.approve(question)
    decided = engine.tasks.get(question).decisions[0]
    assert (decided.decided_by, decided.on_behalf_of) == ("cat", "ann")


# -- keys of people


def ruled(place: Place) -> ManualEngine:
    """Mal may operate by a role of the directory; `bot` is a service account of it."""
    resolver = Capabilities({"op": ["execution:*", "keys:manage", "keys:as-others", "batch:manage"], "fin": ["task:*"]})
    engine = place.engine(capabilities=resolver)
    engine.register(Saga("ask").human("sign", role="fin").build())
    engine.register(Saga("paid").wait_for("wait", signal="paid").build())
    engine.directory.put("mal")
    engine.directory.put("bot", kind="service")
    engine.directory.grant("mal", "op")
    return engine


@pytest.mark.row("E-664")
@pytest.mark.parametrize("kind", ["user", "service"])
def test_a_key_has_no_more_than_the_person_it_acts_as(place: Place, kind: Literal["user", "service"]) -> None:
    """What the person loses the key loses: to act, to read, and what it left to be done later. What they have again it has again."""
    engine = ruled(place)
    capabilities = ["execution:pause", "execution:read", "execution:resume", "batch:manage"]
    made = engine.acting("mal").keys.create("k", actor="mal", kind=kind, roles=["op"], capabilities=capabilities)
    run, other = engine.start("paid"), engine.start("paid")
    path = f"/api/v1/executions/{run.id}"
    with bearer(engine, made.secret) as client:
        assert client.get(path).status_code == 200
        assert client.post(f"{path}/pause", {"reason": "x"}).status_code == 204
        assert (
            client.post("/api/v1/batches", {"verb": "pause", "runs": [str(other.id)], "reason": "x"}).status_code == 202
        )
        engine.directory.revoke("mal", "op")
        engine.drain()
        assert other.describe().status == "running"
        assert client.get(path).status_code == 403
        assert client.post(f"{path}/resume", {"reason": "x"}).status_code == 403
        engine.directory.grant("mal", "op")
        assert client.post(f"{path}/resume", {"reason": "x"}).status_code == 204


def test_a_commit_knows_what_the_person_of_a_key_has(place: Place) -> None:
    """A server that remembers the key for a while does nothing more by it than the person may."""
    engine = ruled(place)
    made = engine.acting("mal").keys.create("k", actor="mal", roles=["op"], capabilities=["execution:pause"])
    found = engine.admin.identify(made.secret)
    assert found is not None
    run = engine.start("paid")
    mal = engine.acting(RequestContext(actor=found.bearer))
    engine.directory.revoke("mal", "op")
    assert refusal(lambda: mal.run(run.id).pause("x")) == "not_allowed"


def test_a_role_that_a_key_says_counts_as_long_as_the_person_has_it(place: Place) -> None:
    """Whoever lost the role decides nothing by their key either."""
    engine = ruled(place)
    engine.directory.grant("mal", "fin")
    made = engine.acting("mal").keys.create("k", actor="mal", roles=["fin"])
    run = engine.start("ask")
    engine.drain()
    found = engine.admin.identify(made.secret)
    assert found is not None
    engine.directory.revoke("mal", "fin")
    mal = engine.acting(RequestContext(actor=found.bearer)).tasks
    assert refusal(lambda: mal.approve(run.tasks()[0])) == "not_allowed"
    later = engine.admin.identify(made.secret)
    assert later is not None
    assert (later.roles, later.capabilities) == ([], [])


def test_keys_of_programs_and_of_people_elsewhere_keep_their_own(place: Place) -> None:
    """A service account has what its key says, and so has whoever the directory does not have."""
    engine = ruled(place)
    run = engine.start("paid")
    for actor in ("bot", "stranger"):
        made = engine.acting("mal").keys.create("k", actor=actor, capabilities=["execution:pause", "execution:resume"])
        found = engine.admin.identify(made.secret)
        assert found is not None
        calls = engine.acting(RequestContext(actor=found.bearer))
        calls.run(run.id).pause("x")
        calls.run(run.id).resume("x")


def test_a_key_keeps_its_own_where_nobody_says_what_people_may(place: Place) -> None:
    """Without capability resolvers the engine cannot look up what a person may do, so that the key says it."""
    engine = office(place)
    made = engine.keys.create("k", actor="cat", kind="user", capabilities=["execution:pause"])
    found = engine.admin.identify(made.secret)
    assert found is not None
    run = engine.start("paid")
    engine.acting(RequestContext(actor=found.bearer)).run(run.id).pause("x")


# -- requests that are bound to a partition


def test_a_request_of_one_partition_changes_nobody(place: Place) -> None:
    """People are those of the whole tenant: grants, delegations, absences and states are refused to whoever is bound to a part, by Python and by HTTP."""
    engine = office(place)
    south = engine.acting(RequestContext(partition="south", actor=Actor(id="cat", capabilities=MIGHTY))).directory
    before = engine.directory.changes()
    for deed in (
        lambda: south.put("dan"),
        lambda: south.grant("cat", "finance"),
        lambda: south.revoke("ann", "finance"),
        lambda: south.deactivate("ann"),
        lambda: south.activate("ann"),
        lambda: south.delegate("ann", "cat"),
        lambda: south.absent("ann"),
        lambda: south.prefer("ann", off=["mail"]),
    ):
        assert refusal(deed) == "not_allowed"
    with client_of(engine, "cat", partition="south") as client:
        for path, body in (
            ("delegations", {"giver": "ann", "to": "cat"}),
            ("absences", {"person": "ann"}),
        ):
            answer = client.post(f"/api/v1/directory/{path}", body)
            assert (answer.status_code, problem(answer)["code"]) == (403, "not_allowed"), answer.text
    assert engine.directory.changes() == before
    south.prefer("cat", off=["mail"])  # What concerns the caller alone is theirs wherever they are.
    assert len(engine.directory.changes()) == len(before) + 1


# -- schedules of others


def test_who_triggers_a_schedule_could_start_what_it_starts(place: Place) -> None:
    """To manage schedules is not to start workflows: trigger and backfill take the right to start, by Python and by HTTP."""
    engine = place.engine()
    guarded = Saga("guarded", capability="guarded:start").wait_for("w", signal="x").build()
    engine.register(guarded)
    engine.register(Saga("paid").wait_for("wait", signal="paid").build())
    engine.schedules.put("s", "guarded", every=DAY)
    engine.schedules.put("open", "paid", every=DAY)
    now = place.clock.now()
    weak = engine.acting(Actor(id="nils", capabilities=frozenset({"schedule:*"}))).schedules
    assert refusal(lambda: weak.trigger("s")) == "not_allowed"
    assert refusal(lambda: weak.backfill("s", now - 2 * DAY, now)) == "not_allowed"
    period = {"start": "2029-12-01T00:00:00Z", "end": "2029-12-03T00:00:00Z"}
    with client_of(engine, "nils", ["schedule:*"]) as client:
        for name in ("s", "open"):
            for path, body in (("trigger", {}), ("backfill", period)):
                answer = client.post(f"/api/v1/schedules/{name}/{path}", body)
                assert (answer.status_code, problem(answer)["code"]) == (403, "not_permitted"), answer.text
    engine.drain()
    assert engine.runs.list().items == []
    strong = engine.acting(Actor(id="olga", capabilities=frozenset({"schedule:*", "guarded:start"}))).schedules
    strong.trigger("s")
    engine.drain()
    assert len(engine.runs.list().items) == 1
