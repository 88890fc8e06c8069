"""A gate is a wall: nothing of a slot stays behind it, nothing comes back through it, and what was approved is not changed behind it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, get_args

import pytest
import yaml

from app.documents.walls import (
    ANN,
    BUD,
    BUD_ASKED,
    CONTRACT,
    FIN,
    GIVEN,
    OPERATOR,
    POST,
    PUBLISHER,
    acting,
    again,
    answer,
    covering,
    decide,
    first_of_two,
    open_tasks,
    opened,
    patch,
    stands,
    submit,
    violations,
)
from standfast import Actor, RejectedError, Saga
from standfast.features.documents import writes as document_writing
from standfast.features.documents.body.format import PatchNode
from standfast.machine.flow import slots
from standfast.machine.nodes import action
from standfast.testing import ManualEngine
from support.engines import Place
from support.ruining import Ruin

ASKED = patch("asking", "{id: a, type: approval, approvers: [{user: fin}]}")


def posting(engine: ManualEngine) -> list[object]:
    """Have invoices posted; the totals that were."""
    posted: list[object] = []

    @engine.handler("invoice.post")
    def post(document: dict[str, Any]) -> dict[str, object]:
        posted.append(document["data"]["total"])
        return {"posting": f"GL-{len(posted)}"}

    return posted


# -- branches that a join does not wait for


@pytest.mark.row("E-552", "E-553", "E-686")
@pytest.mark.parametrize("says", ["approved", "rejected"])
def test_a_gate_waits_for_a_branch_that_may_finish(place: Place, says: str) -> None:
    """One approval is enough for the join, and the gate opens only when the other is decided too: its rejection comes before the posting, never behind it."""
    engine = opened(place.engine(), first_of_two(BUD_ASKED, "{from: b, to: j}"), POST)
    posted = posting(engine)
    submit(engine)
    decide(engine, "a", FIN)
    assert (stands(engine), posted) == (("submitted", 100, "running", ""), [])
    run = acting(engine, OPERATOR).run(acting(engine, ANN).documents.get("invoice", "I-1").instance)
    assert [(each.kind, each.step) for each in run.why().reasons] == [
        ("person", "usr:slot:asking:b"),
        ("branches", "sys:slot:asking:out"),
    ]
    decide(engine, "b", BUD, says)
    came = ("active", 100, "running", "round_completed") if says == "approved" else ("draft", 100, "running", "")
    assert (stands(engine), posted) == (came, [100] if says == "approved" else [])
    assert (open_tasks(engine), violations(engine)) == ({}, [])


@pytest.mark.row("E-751", "E-750")
def test_what_a_branch_that_may_finish_changes_is_approved_before_the_gate(place: Place) -> None:
    """Its action voids the approval that was enough, so that the content which becomes active is the one that was approved."""
    loser = (
        '{id: b, type: wait_event, event: ext, key: "go"}, '
        '{id: note, type: action, action: invoice.note, payload: {total: "999"}, run_as: system}'
    )
    engine = opened(place.engine(), first_of_two(loser, "{from: b, to: note}, {from: note, to: j}"))
    submit(engine)
    decide(engine, "a", FIN)
    acting(engine, OPERATOR).publish("ext", "go")
    engine.drain()
    assert (stands(engine), list(open_tasks(engine))) == (("submitted", 999, "running", ""), ["a"])
    assert open_tasks(engine)["a"].document_version == "2"
    decide(engine, "a", FIN)
    acting(engine, OPERATOR).publish("ext", "go")
    engine.drain()
    assert stands(engine)[:2] == ("active", 999)
    assert violations(engine) == []


@pytest.mark.row("E-552")
def test_a_gate_waits_for_all_that_a_branch_has_begun(place: Place) -> None:
    """Also for the branches inside of a branch, and for the time that one of them waits."""
    loser = "{id: b, type: for_each, items: entity.lines}, {id: w, type: wait_timer, duration: 3d}, {id: i, type: parallel_join}"
    engine = opened(place.engine(), first_of_two(loser, "{from: b, to: w}, {from: w, to: i}, {from: i, to: j}"))
    submit(engine, lines=["x", "y"])
    decide(engine, "a", FIN)
    engine.advance(timedelta(days=2))
    assert stands(engine)[0] == "submitted"
    engine.advance(timedelta(days=2))
    assert stands(engine)[0] == "active"
    assert violations(engine) == []


def test_no_document_arrives_while_a_branch_behind_its_gate_is_under_way(place: Place) -> None:
    """A slot between a gate and a state ends when everything in it has."""
    wait = '{id: a, type: script, formula: "1"}, {id: b, type: wait_event, event: ext, key: go}'
    nodes = f"{{id: sp, type: parallel_split}}, {wait}, {{id: j, type: parallel_join, mode: any, losers: finish}}"
    ways = "{from: sp, to: a}, {from: sp, to: b}, {from: a, to: j}, {from: b, to: j}"
    engine = opened(place.engine(), ASKED, patch("behind", nodes, ways))
    submit(engine)
    decide(engine, "a", FIN)
    assert stands(engine) == ("active", 100, "running", "")
    assert not acting(engine, ANN).documents.get("invoice", "I-1").is_resting
    acting(engine, OPERATOR).publish("ext", "go")
    engine.drain()
    assert stands(engine) == ("active", 100, "running", "round_completed")
    assert violations(engine) == []


@pytest.mark.row("E-686", "E-553")
@pytest.mark.parametrize("losers", ["stop", "undo"])
def test_a_branch_that_is_cancelled_does_nothing_any_more(place: Place, losers: str) -> None:
    """The question of a branch that was not needed is closed before the gate opens; who answers it late is told so, and nothing moves."""
    engine = opened(place.engine(), first_of_two(BUD_ASKED, "{from: b, to: j}", losers))
    submit(engine)
    task = open_tasks(engine)["b"]
    decide(engine, "a", FIN)
    assert (stands(engine)[0], open_tasks(engine)) == ("active", {})
    with pytest.raises(RejectedError):
        answer(engine, task, BUD, "rejected")
    assert stands(engine) == ("active", 100, "running", "round_completed")
    assert violations(engine) == []


BRANCHES_OF_THREE = """
{id: sp, type: parallel_split}, {id: a, type: approval, approvers: [{user: fin}]}, {id: j, type: parallel_join, mode: any, losers: stop},
{id: b, type: parallel_split}, {id: c, type: wait_event, event: ext, key: go, timeout: 2h}, {id: d, type: wait_timer, duration: 3h},
{id: k, type: parallel_join}, {id: e, type: webhook_out, url: "https://example.com/"}
""".strip()
WAYS_OF_THREE = """
{from: sp, to: a}, {from: sp, to: b}, {from: sp, to: e}, {from: a, to: j}, {from: e, to: j}, {from: b, to: c}, {from: b, to: d},
{from: c, to: k, on: event}, {from: c, to: k, on: timeout}, {from: d, to: k}, {from: k, to: j}
""".strip()


@pytest.mark.row("E-552", "E-553", "E-556", "E-916", "E-937")
def test_the_losers_of_a_join_are_cancelled_with_all_that_they_wait_for(place: Place) -> None:
    """Of three branches one wins; the steps of the others, also of a split inside one, are cancelled, and their timers, waits and requests are gone."""
    engine, ruin = opened(place.engine(), patch("asking", BRANCHES_OF_THREE, WAYS_OF_THREE)), Ruin(place.store)
    acting(engine, ANN).documents.create("invoice", GIVEN, id="I-1")
    acting(engine, ANN).documents.transition(
        "invoice", "I-1", "submit"
    )  # The request is not sent before the next look.
    run = acting(engine, OPERATOR).run(acting(engine, ANN).documents.get("invoice", "I-1").instance)
    (task,) = open_tasks(engine).values()
    acting(engine, FIN).tasks.decide(task, "approved", document_version=task.document_version, comment="because")
    left = ("timers", "subscriptions", "effects where handler <> '$engine'")
    assert [ruin.rows(f"select count(*) from {{}}{each}")[0][0] for each in left] == [0, 0, 0]
    ended = {each.name.rpartition(":")[2]: each.status for each in run.steps()}
    assert {name: ended.get(name) for name in "abcdekj"} == {
        "a": "completed", "b": "completed", "c": "cancelled", "d": "cancelled", "e": "cancelled", "k": None, "j": "completed",
    }  # fmt: skip
    told = run.history()
    stopped = {each.step_name.rpartition(":")[2]: each.status for each in told if each.event_type == "step_failed"}
    assert stopped == dict.fromkeys("cde", "cancelled")
    (met,) = [each for each in told if each.event_type == "branches_met"]
    assert (met.data["completed"], met.data["failed"]) == (["usr:slot:asking:a"], [])
    gone = [
        each.data["token"] for each in told if each.event_type == "token_ended" and each.data["reason"] == "cancelled"
    ]
    losers = {each.token for each in run.steps() if each.status == "cancelled"}
    assert losers < set(gone)
    engine.drain()  # Tells that the request was not begun.
    before = run.history()
    acting(engine, OPERATOR).publish("ext", "go")
    engine.advance(timedelta(hours=4))
    assert run.history()[len(before) :] == []
    assert (stands(engine)[0], violations(engine)) == ("active", [])


@pytest.mark.row("E-686")
def test_another_transition_ends_a_branch_that_may_finish(place: Place) -> None:
    """A cancellation leaves nothing of the slot behind, also of branches whose join has passed on: no token, no question, no timer."""
    loser = "{id: b, type: approval, approvers: [{user: bud}], timeout: 2d}"
    engine = opened(place.engine(), first_of_two(loser, "{from: b, to: j}"))
    submit(engine)
    task = open_tasks(engine)["b"]
    decide(engine, "a", FIN)
    acting(engine, ANN).documents.transition("invoice", "I-1", "cancel")
    engine.drain()
    assert stands(engine)[::2] == ("cancelled", "completed")
    with pytest.raises(RejectedError):
        answer(engine, task, BUD, "rejected")
    engine.advance(timedelta(days=3))
    lines = acting(engine, OPERATOR).documents.audit("invoice", "I-1")
    assert ("end usr:slot:asking:b", "'cancel' was asked for") in [(each.what, each.why) for each in lines]
    assert (stands(engine)[0], violations(engine)) == ("cancelled", [])


@pytest.mark.row("E-575")
def test_a_rejection_finds_the_document_wherever_the_slot_has_brought_it(place: Place) -> None:
    """A branch that may finish rejects while the run waits for an operator at a later step of the slot: the document goes back, and nowhere else."""
    nodes = (
        "{id: sp, type: parallel_split}, {id: a, type: approval, approvers: [{user: fin}]}, "
        f"{BUD_ASKED}, {{id: j, type: parallel_join, mode: any, losers: finish}}, "
        "{id: t, type: task, handler: check}, {id: u, type: approval, approvers: [{user: fin}]}"
    )
    ways = (
        "{from: sp, to: a}, {from: sp, to: b}, {from: a, to: j}, {from: b, to: j}, {from: j, to: t}, {from: t, to: u}"
    )
    engine = opened(place.engine(), patch("asking", nodes, ways))
    engine.handler("check")(lambda: None)
    submit(engine)
    acting(engine, OPERATOR).run(acting(engine, ANN).documents.get("invoice", "I-1").instance).pause("look first")
    decide(engine, "a", FIN)
    decide(engine, "b", BUD, "rejected")
    acting(engine, OPERATOR).run(acting(engine, ANN).documents.get("invoice", "I-1").instance).resume("seen")
    engine.drain()
    assert (stands(engine), open_tasks(engine)) == (("draft", 100, "running", ""), {})
    again(engine)
    decide(engine, "a", FIN)
    decide(engine, "b", BUD)
    decide(engine, "u", FIN)
    assert stands(engine)[0] == "active"
    assert violations(engine) == []


# -- what is undone


LOSING = (
    '{id: b, type: action, action: invoice.reserve, undo: invoice.release, run_as: "system"}, '
    "{id: w, type: wait_event, event: ext, key: go}"
)
LOSING_WAYS = "{from: b, to: w}, {from: w, to: j}"


def reserving(engine: ManualEngine, *, fails: bool = False) -> list[str]:
    """Have something set aside and given back; what was, in order."""
    done: list[str] = []

    @engine.handler("invoice.reserve")
    def reserve(document: dict[str, object]) -> dict[str, object]:
        done.append("reserve")
        return {"memo": "reserved"}

    @engine.handler("invoice.release")
    def release(document: dict[str, object]) -> dict[str, object]:
        if fails:
            raise ValueError("the warehouse is closed")
        done.append("release")
        return {"memo": None}

    return done


@pytest.mark.row("E-555", "E-748", "E-751")
def test_a_gate_waits_until_a_branch_has_taken_back_its_changes(place: Place) -> None:
    """What undoing changes of the document it changes before the gate, so that the content of an active document stays."""
    engine = opened(place.engine(), first_of_two(LOSING, LOSING_WAYS, "undo", covers="total"))
    done = reserving(engine)
    submit(engine)
    task = open_tasks(engine)["a"]
    acting(engine, FIN).tasks.decide(task, "approved", document_version=task.document_version)
    assert (stands(engine)[0], done) == ("submitted", ["reserve"])
    engine.drain()
    assert (stands(engine)[0], done) == ("active", ["reserve", "release"])
    assert "memo" not in acting(engine, ANN).documents.get("invoice", "I-1").data
    assert violations(engine) == []


@pytest.mark.row("E-748", "EC-05")
def test_an_operator_opens_a_gate_that_waits_for_what_cannot_be_undone(place: Place) -> None:
    """A compensation that gives up pauses the document before the gate; an operator who undid it by hand skips it."""
    engine = opened(place.engine(), first_of_two(LOSING, LOSING_WAYS, "undo", covers="total"))
    reserving(engine, fails=True)
    submit(engine)
    decide(engine, "a", FIN)
    engine.advance(timedelta(days=1))
    assert stands(engine) == ("submitted", 100, "paused", "compensation_failed")
    run = acting(engine, OPERATOR).run(acting(engine, ANN).documents.get("invoice", "I-1").instance)
    (step,) = {each.step_number for reason in run.why().reasons for each in reason.remedies if each.call == "run.skip"}
    run.skip(step or 0, reason="released by hand")
    engine.drain()
    assert stands(engine)[0] == "active"
    assert violations(engine) == []


# -- approved content


@pytest.mark.row("E-751")
@pytest.mark.parametrize("covers", ["", "total"])
def test_no_step_changes_what_an_earlier_gate_relied_on(place: Place, covers: str) -> None:
    """What was approved at one gate stays as it is in the slots behind it: the step fails, and the document waits for an operator."""
    early = patch("before", f"{{id: e, type: approval, approvers: [{{user: fin}}]{covering(covers)}}}")
    late = patch("asking", '{id: n, type: action, action: invoice.note, payload: {total: "7"}, run_as: system}')
    engine = opened(place.engine(), early, late)
    submit(engine)
    decide(engine, "e", FIN)
    assert stands(engine) == ("submitted", 100, "paused", "step_failed")
    why = acting(engine, OPERATOR).run(acting(engine, ANN).documents.get("invoice", "I-1").instance).why().words
    assert "would change 'total', which was approved as it is" in why
    assert violations(engine) == []


@pytest.mark.row("E-751")
def test_a_step_changes_what_nobody_has_approved(place: Place) -> None:
    """Fields that no approval covers, and those that the workflow writes itself, are free; and a document that is a draft again begins anew."""
    early = patch("before", "{id: e, type: approval, approvers: [{user: fin}], covers: [total]}")
    late = patch(
        "asking",
        "{id: n, type: action, action: invoice.note, payload: {memo: \"'seen'\", posting: \"'GL'\"}, run_as: system}, "
        "{id: a, type: approval, approvers: [{user: fin}]}",
        "{from: n, to: a}",
    )
    engine = opened(place.engine(), early, late)
    submit(engine)
    decide(engine, "e", FIN)
    decide(engine, "a", FIN, "rejected")
    acting(engine, ANN).documents.mutate("invoice", "I-1", {"total": 300})
    again(engine)
    decide(engine, "e", FIN)
    decide(engine, "a", FIN)
    view = acting(engine, ANN).documents.get("invoice", "I-1")
    assert (view.status, view.data["memo"], view.data["posting"], view.data["total"]) == ("active", "seen", "GL", 300)
    assert violations(engine) == []


# -- an edit that meets a decision


@pytest.mark.row("E-239", "E-235")
def test_an_edit_that_meets_the_last_approval_replaces_no_active_document(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an edit is an amendment, the window is looked at again in the transaction that amends: a document that is active by then stays."""
    engine = opened(place.engine(), ASKED, POST)
    posted = posting(engine)
    submit(engine)
    _meanwhile(engine, monkeypatch, "approved")
    with pytest.raises(RejectedError, match="cannot be edited there; amend it") as caught:
        acting(engine, ANN).documents.mutate("invoice", "I-1", {"total": 135_000})
    assert caught.value.reason == "WORKFLOW_EDIT_LOCKED"
    assert (stands(engine), posted) == (("active", 100, "running", "round_completed"), [100])
    new = acting(engine, ANN).documents.amend("invoice", "I-1", {"total": 135_000})
    assert (new.status, new.amended_from) == ("amended", "I-1")


@pytest.mark.row("E-226")
def test_an_edit_that_meets_a_rejection_is_an_edit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document that is a draft again when its amendment is made needs none: the edit is written to it."""
    engine = opened(place.engine(), ASKED)
    submit(engine)
    _meanwhile(engine, monkeypatch, "rejected")
    view = acting(engine, ANN).documents.mutate("invoice", "I-1", {"total": 135_000})
    assert (view.id, view.status, view.data["total"], view.is_amendment) == ("I-1", "draft", 135_000, False)


def _meanwhile(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch, decision: str) -> None:
    """Have fin decide between the moment in which an edit is found to be an amendment, and the amendment."""
    amend = document_writing.amend

    def later(*given: object, **named: object) -> object:
        monkeypatch.undo()
        decide(engine, "a", FIN, decision)
        return amend(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(document_writing, "amend", later)


# -- what the invariants say of a document that got past the wall


LOSER_ACTS = (
    '{id: b, type: wait_event, event: ext, key: "go"}, '
    '{id: note, type: action, action: invoice.note, payload: {total: "999"}, run_as: system}'
)


@pytest.mark.row("E-072", "E-891")
@pytest.mark.parametrize("case", ["left open", "sent back", "content"])
def test_the_invariants_tell_of_a_gate_that_was_no_wall(
    place: Place, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """A question left open behind the gate, a rejection that came back through it, a change of what was approved: each is named, and an amendment ends it."""
    loser = (
        (LOSER_ACTS, "{from: b, to: note}, {from: note, to: j}")
        if case == "content"
        else (BUD_ASKED, "{from: b, to: j}")
    )
    engine = opened(place.engine(), first_of_two(*loser))
    with monkeypatch.context() as patched:  # As the machine was before a gate waited for anything.
        patched.setattr(slots, "_is_unfinished", lambda *_: False)
        patched.setattr(action, "_unapproved", lambda *_: None)
        submit(engine)
        decide(engine, "a", FIN)
        assert stands(engine)[:2] == ("active", 100)
        if case == "sent back":
            decide(engine, "b", BUD, "rejected")
        elif case == "content":
            acting(engine, OPERATOR).publish("ext", "go")
            engine.drain()
    assert (
        stands(engine)[:2]
        == {"left open": ("active", 100), "sent back": ("draft", 100), "content": ("active", 999)}[case]
    )
    assert violations(engine) == (["G1", "G2"] if case == "content" else ["G1"])
    told = [each.told for each in acting(engine, OPERATOR).invariants.check().items]
    assert any("has let it pass while 'usr:slot:asking:b' was under way" in each for each in told)
    assert any("a rejection has led it from 'active' back to 'draft'" in each for each in told) is (case == "sent back")
    if case != "sent back":
        acting(engine, ANN).documents.transition("invoice", "I-1", "cancel")
        assert open_tasks(engine) == {}
    place.must_fold = False


# -- windows


@pytest.mark.row("E-230", "ED-07")
def test_a_branch_that_has_arrived_has_the_window_of_its_join(place: Place) -> None:
    """A step that is over locks nothing, and nobody is said to be at it."""
    nodes = (
        "{id: sp, type: parallel_split}, {id: free, type: wait_event, event: ext, key: f}, "
        "{id: hard, type: wait_event, event: ext, key: h, window: locked}, {id: j, type: parallel_join}"
    )
    ways = "{from: sp, to: free}, {from: sp, to: hard}, {from: free, to: j}, {from: hard, to: j}"
    engine = opened(place.engine(), patch("before", nodes, ways))
    submit(engine)
    assert acting(engine, ANN).documents.get("invoice", "I-1").window == "locked"
    acting(engine, OPERATOR).publish("ext", "h")
    engine.drain()
    view = acting(engine, ANN).documents.get("invoice", "I-1")
    assert (view.window, sorted(each.rpartition(":")[2] for each in view.places)) == ("editable", ["free", "j", "sp"])


# -- lists and conditions


EACH = "{{id: f, type: for_each, items: entity.lines{0}}}, {{id: q, type: approval, approvers: [{{user: fin}}]}}"


@pytest.mark.row("E-682")
def test_a_list_without_items_approves_nothing(place: Place) -> None:
    """Nobody would be asked, so the step fails and the document waits; once there are items, it is tried again."""
    engine = opened(place.engine(), patch("before", EACH.format(""), "{from: f, to: q}"))
    submit(engine, lines=[])
    assert stands(engine) == ("draft", 100, "paused", "step_failed")
    run = acting(engine, OPERATOR).run(acting(engine, ANN).documents.get("invoice", "I-1").instance)
    assert "has no items" in run.why().words
    acting(engine, ANN).documents.mutate("invoice", "I-1", {"lines": ["x"]})
    failed = run.why().reasons[0].step_number
    assert failed is not None
    run.retry(failed, reason="it has lines now")
    engine.drain()
    decide(engine, "q", FIN)
    assert stands(engine)[0] == "submitted"


def test_a_list_without_items_is_skipped_where_that_is_written(place: Place) -> None:
    """`on_empty: skip` goes on, and a way for `error` leads where its author wants."""
    routed = "{from: f, to: q}, {from: f, to: x, on: error}, {from: q, to: out}, {from: x, to: out}"
    for options, more, ways, status in (
        (", on_empty: skip", "", "{from: f, to: q}", "submitted"),
        ("", ", {id: x, type: approval, approvers: [{user: bud}]}", routed, "draft"),
    ):
        engine = opened(ManualEngine(), patch("before", EACH.format(options) + more, ways))
        submit(engine, lines=[])
        assert stands(engine)[0] == status
        assert list(open_tasks(engine)) == (["x"] if more else [])


BRANCHES = (
    "{id: sp, type: parallel_split}, {id: a, type: approval, approvers: [{user: fin}]}, "
    "{id: b, type: approval, approvers: [{user: bud}]}, {id: j, type: parallel_join}"
)


@pytest.mark.row("ED-05", "E-446", "E-448")
@pytest.mark.parametrize(("total", "asked"), [(100, ["a"]), (600, ["a", "b"]), (2000, ["b"])])
def test_every_branch_whose_condition_holds_is_taken(place: Place, total: int, asked: list[str]) -> None:
    """A split goes on in as many branches as conditions hold, its join waits for those, and the document tells which were chosen and why."""
    ways = "{from: sp, to: a, when: entity.total < 1000}, {from: sp, to: b, when: entity.total > 500}, {from: a, to: j}, {from: b, to: j}"
    engine = opened(place.engine(), patch("asking", BRANCHES, ways))
    submit(engine, total=total)
    assert sorted(open_tasks(engine)) == asked
    (choice,) = acting(engine, OPERATOR).documents.choices("invoice", "I-1")
    assert (choice.node.rpartition(":")[2], choice.outcome) == ("sp", "branch")
    assert [each.result for each in choice.asked] == [total < 1000, total > 500]
    for node in asked:
        decide(engine, node, FIN if node == "a" else BUD)
    assert stands(engine)[0] == "active"


@pytest.mark.row("ED-05", "E-449")
@pytest.mark.parametrize(
    ("condition", "why"),
    [("entity.total > 500", "no condition of the branches"), ("entity.memo == 'x'", "cannot be answered")],
)
def test_a_split_that_no_branch_follows_from_has_failed(place: Place, condition: str, why: str) -> None:
    """Nobody goes on where no condition holds, and one that cannot be answered is no answer: the document waits, and says why."""
    ways = f"{{from: sp, to: a, when: {condition}}}, {{from: sp, to: b, when: {condition}}}, {{from: a, to: j}}, {{from: b, to: j}}"
    engine = opened(place.engine(), patch("asking", BRANCHES, ways))
    submit(engine)
    assert stands(engine) == ("submitted", 100, "paused", "step_failed")
    assert why in acting(engine, OPERATOR).run(acting(engine, ANN).documents.get("invoice", "I-1").instance).why().words


# -- a rejection that undoes


RESERVED = '{id: r, type: action, action: invoice.reserve, undo: invoice.release, run_as: "system"}'


@pytest.mark.row("EC-07", "E-748")
@pytest.mark.parametrize("said", ["patch", "contract", "nowhere"])
def test_a_rejection_undoes_what_slots_did_that_say_so(place: Place, said: str) -> None:
    """With `on_reject: compensate` a reservation does not outlive a rejection, also if a gate lies between the two; without it, it does."""
    more = {"on_reject": "compensate"} if said == "patch" else {}
    early = patch("before", RESERVED, **more)
    engine = opened(place.engine(), early, ASKED, before=", on_reject: compensate" if said == "contract" else "")
    done = reserving(engine)
    submit(engine)
    decide(engine, "a", FIN, "rejected")
    engine.drain()
    kept = said == "nowhere"
    assert done == (["reserve"] if kept else ["reserve", "release"])
    view = acting(engine, ANN).documents.get("invoice", "I-1")
    assert (view.status, "memo" in view.data) == ("draft", kept)
    again(engine)
    decide(engine, "a", FIN)
    assert (stands(engine)[0], done[2:]) == ("active", [] if kept else ["reserve"])
    assert violations(engine) == []


@pytest.mark.row("EC-07", "E-748")
@pytest.mark.parametrize(("more", "after"), [("", ["unbook"]), (", detached: true", [])], ids=["part", "detached"])
def test_a_rejection_undoes_the_workflows_that_a_slot_called(place: Place, more: str, after: list[str]) -> None:
    """A workflow that a slot called is a part of it, and undone with it, unless it is detached."""
    done: list[str] = []
    booked = Saga("booking").step("book", lambda: done.append("book"), undo=lambda: done.append("unbook")).build()
    early = patch("before", "{id: c, type: call, workflow: booking" + more + "}", on_reject="compensate")
    engine = opened(place.engine().register(booked), early, ASKED)
    submit(engine)
    assert done == ["book"]
    decide(engine, "a", FIN, "rejected")
    engine.drain()
    assert (done, stands(engine)[0]) == (["book", *after], "draft")
    again(engine)
    decide(engine, "a", FIN)
    assert (stands(engine)[0], done.count("book")) == ("active", 2)
    assert violations(engine) == []


@pytest.mark.row("EC-07")
def test_what_was_done_before_the_state_that_a_rejection_leads_to_is_kept(place: Place) -> None:
    """A slot that the document does not go through again is not undone; the one that it was rejected in is."""
    early = patch("before", RESERVED, on_reject="compensate")
    nodes = RESERVED.replace("id: r", "id: s") + ", {id: a, type: approval, approvers: [{user: fin}]}"
    late = patch("asking", nodes, "{from: s, to: a}", on_reject="compensate")
    engine = place.engine()
    engine.contracts.publish((CONTRACT % {"before": ""}).replace(", on_reject: draft", ""))
    own = acting(engine, PUBLISHER)
    own.bodies.publish(
        own.bodies.save(f"base: {{entity_type: invoice, envelope_version: 1}}\nslots:\n{early}{late}").id
    )
    done = reserving(engine)
    submit(engine)
    decide(engine, "a", FIN, "rejected")
    engine.drain()
    assert (stands(engine)[0], done) == ("submitted", ["reserve", "reserve", "release"])
    assert violations(engine) == []


# -- all that a slot may hold

PALETTE = """
{id: known, type: rule, rules: [{name: r, effect: warn, when: entity.total > 5, reason: large}]},
{id: size, type: script, formula: entity.total, into: size}, {id: large, type: condition, expression: context.size > 50},
{id: check, type: task, handler: check}, {id: tell, type: notification, to: [ann], subject: hi},
{id: hook, type: webhook_out, url: "http://127.0.0.1:1/", await: false}, {id: sub, type: call, workflow: sub},
{id: each, type: for_each, items: entity.lines}, {id: item, type: script, formula: 1}, {id: items, type: parallel_join},
{id: sp, type: parallel_split}, {id: a, type: approval, approvers: [{user: fin}]}, {id: rest, type: wait_timer, duration: 1h},
{id: paid, type: wait_event, event: ext, key: go}, {id: j, type: parallel_join}, {id: note, type: action, action: invoice.note, run_as: system}
""".strip()
WAYS = """
{from: known, to: size}, {from: size, to: large}, {from: large, to: check, on: "true"}, {from: large, to: out, on: "false"},
{from: check, to: tell}, {from: tell, to: hook}, {from: hook, to: sub}, {from: sub, to: each}, {from: each, to: item},
{from: item, to: items}, {from: items, to: sp}, {from: sp, to: a}, {from: sp, to: rest}, {from: sp, to: paid}, {from: a, to: j},
{from: rest, to: j}, {from: paid, to: j, on: event}, {from: j, to: note}
""".strip()


@pytest.mark.row("E-886")
def test_every_type_of_node_does_its_part_in_one_document(place: Place) -> None:
    """A slot with a node of each type that there is leads a document to its end, through every one of them."""
    engine = place.engine().handle("check", lambda: None).register(Saga("sub").step("x", lambda: None).build())
    opened(engine, patch("asking", PALETTE, WAYS))
    submit(engine, lines=["x", "y"])
    decide(engine, "a", FIN)
    acting(engine, OPERATOR).publish("ext", "go")
    engine.advance(timedelta(hours=1))
    assert (stands(engine)[0], violations(engine)) == ("active", [])
    nodes = {each["id"]: each["type"] for each in yaml.safe_load(f"[{PALETTE}]")}
    assert set(nodes.values()) == {each.__struct_config__.tag for each in get_args(PatchNode)} - {"unread"}
    run = acting(engine, OPERATOR).run(acting(engine, ANN).documents.get("invoice", "I-1").instance)
    done = {each.name.rpartition(":")[2] for each in run.steps() if each.status == "completed"}
    assert set(nodes) <= done


@pytest.mark.row("E-467")
def test_the_first_event_of_each_commit_says_what_set_the_document_going(place: Place) -> None:
    """A creation, an edit, a transition, a timer, an event, a decision and an operator: each with who acted, and a cause of its own."""
    engine = place.engine().handle("check", lambda: 1 // 0)
    nodes = "{id: rest, type: wait_timer, duration: 1h}, {id: paid, type: wait_event, event: ext, key: go}, {id: a, type: approval, approvers: [{user: fin}]}, {id: check, type: task, handler: check, attempts: 1}"
    ways = "{from: rest, to: paid}, {from: paid, to: a, on: event}, {from: a, to: check}"
    opened(engine, patch("asking", nodes, ways))
    acting(engine, ANN).documents.create("invoice", GIVEN, id="I-1")
    acting(engine, ANN).documents.mutate("invoice", "I-1", {"memo": "x"})
    again(engine)
    engine.advance(timedelta(hours=1))
    acting(engine, OPERATOR).publish("ext", "go")
    engine.drain()
    decide(engine, "a", FIN)
    run = acting(engine, OPERATOR).run(acting(engine, ANN).documents.get("invoice", "I-1").instance)
    run.skip(run.steps()[-1], reason="by hand")
    found = f"select type, actor, cause from {{}}events where instance = '{run.id}' order by sequence"
    begun: dict[str, tuple[str, str]] = {}
    for type_, actor, cause in Ruin(place.store).rows(found):
        begun.setdefault(cause, (type_, actor))
    assert list(begun.values()) == [
        ("workflow_started", "ann"),
        ("document_changed", "ann"),
        ("transition_requested", "ann"),
        ("step_completed", "system"),
        ("event_received", "system"),
        ("step_answered", "fin"),
        ("step_paused", "system"),
        ("step_repaired", "olga"),
    ]
    assert [each.partition(":")[0] for each in begun][3:5] == ["timer", "inbox"]


@pytest.mark.row("E-406")
@pytest.mark.parametrize("given", [{"total": "much"}, {"total": [5]}])
def test_a_payload_of_another_type_fails_the_step(place: Place, given: dict[str, object]) -> None:
    """What an event brings is not known before: a value that does not fit the field is named, and nothing is written."""
    nodes = "{id: paid, type: wait_event, event: ext, key: go, into: paid}, {id: note, type: action, action: invoice.note, run_as: system, payload: {total: context.paid.total}}"
    engine = opened(place.engine(), patch("asking", nodes, "{from: paid, to: note, on: event}"))
    submit(engine)
    before = acting(engine, OPERATOR).documents.mutations("invoice", "I-1")
    acting(engine, OPERATOR).publish("ext", "go", given)
    engine.drain()
    assert stands(engine) == ("submitted", 100, "paused", "step_failed")
    calls = acting(engine, OPERATOR)
    assert "total" in calls.run(calls.documents.get("invoice", "I-1").instance).describe().error
    assert calls.documents.get("invoice", "I-1").version == 1
    assert calls.documents.mutations("invoice", "I-1") == before


@pytest.mark.row("EH-10")
def test_a_line_of_the_audit_answers_all_ten_questions(place: Place) -> None:
    """A stand-in edits and a step of the system acts: who, for whom, whose, what, which, when, from where, why, whence and how."""
    nodes = "{id: note, type: action, action: invoice.note, run_as: system, payload: {posting: \"'x'\"}}"
    engine = opened(place.engine(), patch("behind", nodes), ASKED)
    acting(engine, ANN).documents.create("invoice", GIVEN, id="I-1")
    place.clock.move(timedelta(minutes=5))
    edited = place.clock.now()
    sam = Actor(id="sam", on_behalf_of="ann")
    acting(engine, sam).documents.mutate("invoice", "I-1", {"total": 200}, reason="a typo")
    again(engine)
    place.clock.move(timedelta(minutes=5))
    decide(engine, "a", FIN)
    lines = acting(engine, OPERATOR).documents.audit("invoice", "I-1")
    (update,) = [each for each in lines if each.what == "update"]
    (noted,) = [each for each in lines if each.what == "note"]
    found = [
        (each.who, each.whom, each.whose, each.what, each.which, each.at, each.place, each.why, each.whence, each.how)
        for each in (update, noted)
    ]
    step = next(
        each
        for each in acting(engine, OPERATOR).run(acting(engine, ANN).documents.get("invoice", "I-1").instance).steps()
        if each.name == "usr:slot:behind:note"
    )
    assert found == [
        (
            "sam",
            "ann",
            "acme",
            "update",
            "invoice/I-1@2",
            edited,
            "call",
            "a typo",
            f"mutation {update.sequence}",
            "business",
        ),
        (
            "system",
            "system",
            "acme",
            "note",
            "invoice/I-1@3",
            place.clock.now(),
            "engine",
            "",
            f"step {step.number}",
            "business",
        ),
    ]


# -- a refusal that is routed on

FIN_ASKED = "{id: a, type: approval, approvers: [{user: fin}], timeout: 1d}"
NOTICE = '{id: n, type: notification, to: ["user:ann"], subject: "refused"}'
BOTH = f"{{id: sp, type: parallel_split}}, {FIN_ASKED}, {BUD_ASKED}, {NOTICE}"
JOIN = "{id: j, type: parallel_join}"
TWO = "{from: sp, to: a}, {from: sp, to: b}, {from: a, to: j}, {from: b, to: j}, {from: j, to: out}"
ROUTED = {
    "notice": (f"{FIN_ASKED}, {NOTICE}", "{from: a, to: out}, {from: a, to: n, on: rejected}, {from: n, to: out}"),
    "script": (
        f'{FIN_ASKED}, {{id: n, type: script, formula: "1", into: x}}',
        "{from: a, to: out}, {from: a, to: n, on: rejected}, {from: n, to: out}",
    ),
    "any outcome": (FIN_ASKED, '{from: a, to: out, on: "*"}'),
    "join of all": (f"{BOTH}, {JOIN}", f"{TWO}, {{from: a, to: n, on: rejected}}, {{from: n, to: j}}"),
    "join of one": (
        f"{BOTH}, {{id: j, type: parallel_join, mode: any}}",
        f"{TWO}, {{from: a, to: n, on: rejected}}, {{from: n, to: j}}",
    ),
    "join left out": (BOTH, "{from: sp, to: a}, {from: sp, to: b}, {from: a, to: out}, {from: a, to: n, on: rejected}"),
    "notice before a join that is not the last": (
        f"{BOTH}, {JOIN}, {{id: x, type: script, formula: '1', into: y}}",
        f"{TWO.replace('j, to: out', 'j, to: x')}, {{from: a, to: n, on: rejected}}, {{from: n, to: j}}",
    ),
    "an approval before it": (
        f"{BUD_ASKED}, {FIN_ASKED}, {NOTICE}",
        "{from: b, to: a}, {from: a, to: out}, {from: a, to: n, on: rejected}, {from: n, to: out}",
    ),
}


@pytest.mark.row("E-402", "E-680", "E-681")
@pytest.mark.parametrize("case", list(ROUTED))
def test_a_rejection_that_is_led_on_past_nobody_sends_the_document_back(place: Place, case: str) -> None:
    """A notice, a script or a join between a rejection and the end of the slot does not make an approval of it."""
    engine = opened(place.engine(), patch("asking", *ROUTED[case]))
    submit(engine)
    if case == "an approval before it":
        decide(engine, "b", BUD)
    decide(engine, "a", FIN, "rejected")
    engine.drain()
    assert (stands(engine), open_tasks(engine)) == (("draft", 100, "running", ""), {})
    last = acting(engine, ANN).documents.mutations("invoice", "I-1")[-1]
    assert (last.actor, last.action) == ("fin", "rejected draft")
    assert violations(engine) == []
    again(engine)
    assert stands(engine)[0] == "submitted"


@pytest.mark.row("EC-10", "E-402")
@pytest.mark.parametrize("says", ["approved", "rejected"])
@pytest.mark.parametrize("way", ["behind", "in a branch", "behind a join"])
def test_a_rejection_that_is_led_to_another_approver_is_for_them_to_answer(place: Place, way: str, says: str) -> None:
    """Their approval lets the document pass; without it, the gate stays closed."""
    asked = "{id: boss, type: approval, approvers: [{user: bud}]}"
    wait = "{id: w, type: wait_timer, duration: 1h}"
    cases = {
        "behind": (
            f"{FIN_ASKED}, {asked}",
            "{from: a, to: out}, {from: a, to: boss, on: rejected}, {from: boss, to: out}",
        ),
        "in a branch": (
            f"{FIN_ASKED}, {{id: sp, type: parallel_split}}, {asked}, {wait}, {JOIN}",
            (
                "{from: a, to: out}, {from: a, to: sp, on: rejected}, {from: sp, to: boss}, {from: sp, to: w}, "
                "{from: boss, to: j}, {from: w, to: j}, {from: j, to: out}"
            ),
        ),
        "behind a join": (
            f"{{id: sp, type: parallel_split}}, {FIN_ASKED}, {wait}, {JOIN}, {asked}",
            (
                "{from: sp, to: a}, {from: sp, to: w}, {from: a, to: j}, {from: a, to: j, on: rejected}, "
                "{from: w, to: j}, {from: j, to: boss}, {from: boss, to: out}"
            ),
        ),
    }
    engine = opened(place.engine(), patch("asking", *cases[way]))
    submit(engine)
    decide(engine, "a", FIN, "rejected")
    engine.advance(timedelta(hours=2))
    decide(engine, "boss", BUD, says)
    engine.advance(timedelta(hours=2))
    assert stands(engine)[0] == ("active" if says == "approved" else "draft")
    assert violations(engine) == []


@pytest.mark.row("E-402")
@pytest.mark.parametrize("losers", ["undo", "stop"])
def test_an_approval_in_a_branch_that_was_not_needed_answers_nothing(place: Place, losers: str) -> None:
    """Another branch wins that nobody has approved: the rejection before the split still stands."""
    nodes = (
        f"{FIN_ASKED}, {{id: sp, type: parallel_split}}, {BUD_ASKED}, {{id: late, type: wait_timer, duration: 5h}}, "
        f"{{id: w, type: wait_timer, duration: 1h}}, {{id: j, type: parallel_join, mode: any, losers: {losers}}}"
    )
    ways = (
        "{from: a, to: out}, {from: a, to: sp, on: rejected}, {from: sp, to: b}, {from: sp, to: w}, {from: b, to: late}, "
        "{from: late, to: j}, {from: w, to: j}, {from: j, to: out}"
    )
    engine = opened(place.engine(), patch("asking", nodes, ways))
    submit(engine)
    decide(engine, "a", FIN, "rejected")
    decide(engine, "b", BUD)
    engine.advance(timedelta(hours=2))
    assert stands(engine)[0] == "draft"
    assert violations(engine) == []


SAY_NO = '{id: n, type: script, formula: "true", into: no}, {id: m, type: script, formula: "true", into: no}'
SAID_YES = 'accept: "context.no? != true"'


@pytest.mark.row("E-553", "E-554")
@pytest.mark.parametrize("losers", ["stop", "undo"])
def test_a_rejection_in_a_branch_that_is_cancelled_sends_nothing_back(place: Place, losers: str) -> None:
    """The other branch was enough, and what was said in this one does not count."""
    nodes = f"{BOTH}, {{id: w, type: wait_timer, duration: 1h}}, {{id: j, type: parallel_join, mode: any, losers: {losers}}}"
    engine = opened(
        place.engine(),
        patch("asking", nodes, f"{TWO}, {{from: a, to: n, on: rejected}}, {{from: n, to: w}}, {{from: w, to: j}}"),
    )
    submit(engine)
    decide(engine, "a", FIN, "rejected")
    decide(engine, "b", BUD)
    assert (stands(engine)[0], violations(engine)) == ("active", [])


@pytest.mark.row("E-402", "E-554")
@pytest.mark.parametrize("says", ["approved", "rejected"])
@pytest.mark.parametrize("mode", ["any", "all"])
def test_a_join_says_which_rejections_count(place: Place, mode: str, says: str) -> None:
    """An arrival that it does not accept does not count where another one does. Where none does, the way on from `none` does not lead past the gate."""
    nodes = f"{{id: sp, type: parallel_split}}, {FIN_ASKED}, {BUD_ASKED}, {SAY_NO}, {{id: j, type: parallel_join, mode: {mode}, {SAID_YES}}}"
    ways = f"{TWO}, {{from: a, to: n, on: rejected}}, {{from: n, to: j}}, {{from: b, to: m, on: rejected}}, {{from: m, to: j}}, {{from: j, to: out, on: none}}"
    engine = opened(place.engine(), patch("asking", nodes, ways))
    submit(engine)
    decide(engine, "a", FIN, "rejected")
    decide(engine, "b", BUD, says)
    assert (stands(engine)[0], violations(engine)) == ("active" if says == "approved" else "draft", [])


@pytest.mark.row("E-402")
@pytest.mark.parametrize(
    "ways", ["{from: r, to: n, on: blocked}, {from: n, to: out}", "{from: r, to: n, on: blocked}, {from: n, to: j}"]
)
def test_a_rule_that_blocks_and_is_led_on_sends_the_document_back(place: Place, ways: str) -> None:
    """The notice goes out, and the gate stays closed."""
    rule = '{id: r, type: rule, rules: [{name: big, effect: block, when: "entity.total > 50", reason: "too much"}]}'
    split = "to: j" in ways
    nodes = f"{rule}, {NOTICE}" + (f", {{id: sp, type: parallel_split}}, {BUD_ASKED}, {JOIN}" if split else "")
    more = (
        "{from: sp, to: r}, {from: sp, to: b}, {from: b, to: j}, {from: r, to: j}, {from: j, to: out}, "
        if split
        else "{from: r, to: out}, "
    )
    engine = opened(place.engine(), patch("asking", nodes, more + ways))
    submit(engine)
    assert (stands(engine)[0], open_tasks(engine)) == ("draft", {})
    assert violations(engine) == []


@pytest.mark.row("E-402")
@pytest.mark.parametrize(
    "ways",
    [
        "{from: a, to: out, on: timeout}",
        '{from: a, to: out, on: "*"}',
        "{from: a, to: n, on: timeout}, {from: n, to: out}",
    ],
)
def test_a_question_that_nobody_answers_in_time_lets_nothing_pass(place: Place, ways: str) -> None:
    """Its time is over, and the document is sent back, unless another approval lies behind."""
    nodes = f"{FIN_ASKED}, {NOTICE}" if "to: n" in ways else FIN_ASKED
    engine = opened(place.engine(), patch("asking", nodes, ("" if "*" in ways else "{from: a, to: out}, ") + ways))
    submit(engine)
    engine.advance(timedelta(days=2))
    assert stands(engine)[0] == "draft"
    last = acting(engine, ANN).documents.mutations("invoice", "I-1")[-1]
    assert (last.actor, last.action) == ("system", "rejected draft")
    assert "timeout" in last.reason
    assert violations(engine) == []


@pytest.mark.row("E-402")
def test_a_gate_that_was_passed_with_a_standing_refusal_is_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine of before let a document pass whose rejection went by a notice; the invariants say so."""
    engine = opened(place.engine(), patch("asking", *ROUTED["notice"]))
    submit(engine)
    with monkeypatch.context() as patched:
        patched.setattr(slots, "standing_refusals", lambda *_: {})
        decide(engine, "a", FIN, "rejected")
    assert stands(engine)[0] == "active"
    (found,) = acting(engine, OPERATOR).invariants.check().items
    assert found.rule == "G3"
    assert "with a standing refusal" in found.told
