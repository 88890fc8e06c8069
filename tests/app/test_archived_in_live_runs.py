"""Runs under way whose definitions, or those that they call, are archived: they go on to their end, and nothing is done twice."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.documents.acting import ANN, BOB, CARL, FINANCE, GIVEN, approve, asking, opened
from app.sagas.acting import BROKEN, Stage, decide, run, status, statuses, step
from standfast import DefinitionError, Engine, NotFoundError, RejectedError, Saga, SagaDefinition
from standfast.app.api.sync import Calls
from standfast.kernel.ids import InstanceId
from support.engines import Live, Place
from support.waiting import eventually

LATER = timedelta(seconds=3)
"""By then every process knows what is archived."""


def child(stage: Stage, version: int = 1) -> SagaDefinition:
    """A step that can be undone, and the wait for a signal."""
    return (
        Saga("K", version=version)
        .step("k", stage.does("k"))
        .on_failure("unk", stage.does("unk"))
        .wait_for("w", "done")
        .build()
    )


def short(stage: Stage) -> SagaDefinition:
    """A step that can be undone, and no more."""
    return Saga("K").step("k", stage.does("k")).on_failure("unk", stage.does("unk")).build()


def calling(stage: Stage, *, once: bool = False, version: str | int = "") -> SagaDefinition:
    """Two steps that can be undone, and then the call."""
    return (
        Saga("P")
        .step("one", stage.does("one"))
        .on_failure("unone", stage.does("unone"))
        .step("two", stage.does("two"), once=once)
        .on_failure("untwo", stage.does("untwo"))
        .call("kid", "K", version=version)
        .then("bill", stage.does("bill"), attempts=1)
        .build()
    )


def archived(engine: Engine, name: str, *versions: int) -> None:
    """Take versions out of use."""
    for each in versions:
        engine.definitions.archive(name, each, reason="wrong account")


def kid(engine: Calls, instance: InstanceId) -> InstanceId:
    """The run that a run has called."""
    (found,) = engine.runs.list(parent=instance).items
    return found.id


def assert_call_failed(engine: Calls, stage: Stage, instance: InstanceId) -> None:
    """The call has failed as archived, once, and what was done before it is undone, once."""
    described = engine.run(instance).describe()
    assert (described.status, statuses(engine, instance)["kid"]) == ("failed", "rolled_back")
    assert "archived" in described.error
    assert "'kid'" in described.error
    assert statuses(engine, instance)["two"] == "rolled_back"
    assert stage.calls == ["one", "two", "untwo", "unone"]
    assert engine.dead_letters.list() == []


@pytest.mark.row("F-062")
@pytest.mark.parametrize("once", [False, True])
def test_a_call_of_an_archived_workflow_fails_and_the_step_before_it_counts(place: Place, *, once: bool) -> None:
    """The result of the step before the call is stored, the handler is called once, and the call itself fails as archived."""
    stage, engine = Stage(), place.engine()
    engine.register(short(stage)).register(calling(stage, once=once))
    archived(engine, "K", 1)
    assert_call_failed(engine, stage, run(engine, "P", {}))


@pytest.mark.row("F-062")
def test_a_worker_that_has_met_nothing_yet_does_the_same(place: Place) -> None:
    """So does a process that has started nothing, and has met neither the workflow nor that it is archived."""
    stage, one, other = Stage(), place.engine(), place.engine()
    one.register(short(stage)).register(calling(stage))
    instance = one.start("P", {}).id
    archived(one, "K", 1)
    for name in ("one", "two", "unone", "untwo", "k", "unk", "bill"):
        other.handle(name, stage.does(name))
    other.drain()
    assert_call_failed(other, stage, instance)


@pytest.mark.row("F-062")
def test_workers_call_no_handler_again_because_of_an_archived_workflow(live: Live) -> None:
    """The same with threads: one call of each handler."""
    stage, engine = Stage(), live.engine()
    engine.register(short(stage)).register(calling(stage)).start_worker()
    archived(engine, "K", 1)
    instance = engine.start("P", {}).id
    eventually(lambda: status(engine, instance) == "failed")
    assert_call_failed(engine, stage, instance)


@pytest.mark.row("F-062")
@pytest.mark.parametrize("versions", [(1,), (1, 2)])
def test_a_call_of_a_workflow_whose_versions_are_all_archived_can_be_retried(
    place: Place, versions: tuple[int, ...]
) -> None:
    """All versions archived count like the only one; once one is restored, the call can be made again."""
    stage, engine = Stage(), place.engine()
    for version in versions:
        engine.register(Saga("K", version=version).step("k", stage.does("k")).build())
    engine.register(Saga("P", dlq=True).step("one", stage.does("one")).call("kid", "K").build())
    archived(engine, "K", *versions)
    engine.advance(LATER)
    instance = run(engine, "P", {})
    assert "archived" in engine.run(instance).why().words
    engine.definitions.restore("K", versions[-1])
    engine.advance(LATER)
    engine.run(instance).retry(step(engine, instance, "kid").id, reason="it is back")
    engine.drain()
    assert (status(engine, instance), stage.calls) == ("completed", ["one", "k"])


@pytest.mark.row("F-062")
def test_a_child_begins_with_the_newest_version_in_use(place: Place) -> None:
    """An older version that is in use is taken instead of an archived newer one, also by a process that has just met it."""
    stage, one, other = Stage(), place.engine(), place.engine()
    for version in (1, 2):
        one.register(Saga("K", version=version).step("k", stage.does("k")).build())
    one.register(Saga("P").step("one", stage.does("one")).call("kid", "K").build())
    other.register(Saga("K", version=2).step("k", stage.does("k")).build())
    instance = one.start("P", {}).id
    archived(one, "K", 2)
    other.handle("one", stage.does("one"))
    other.drain()
    assert status(other, instance) == "completed"
    assert other.run(kid(other, instance)).describe().definition_version == "1"


def test_a_call_of_a_version_that_is_archived_fails(place: Place) -> None:
    """A call that names a version starts no other one, and none that is out of use."""
    stage, engine = Stage(), place.engine()
    engine.register(short(stage)).register(Saga("K", version=2).step("k", stage.does("k")).build())
    engine.register(calling(stage, version=1))
    archived(engine, "K", 1)
    assert_call_failed(engine, stage, run(engine, "P", {}))


@pytest.mark.row("F-061")
@pytest.mark.parametrize("versions", [(1,), (1, 2)])
def test_a_cancelled_parent_and_its_child_are_undone_once(place: Place, versions: tuple[int, ...]) -> None:
    """The page for a bad definition: the parent is archived, then its runs are cancelled, and each compensation runs once."""
    stage, engine = Stage(), place.engine()
    engine.register(child(stage))
    for version in versions:
        engine.register(
            Saga("order", version=version)
            .step("one", stage.does("one"))
            .on_failure("unone", stage.does("unone"))
            .call("kid", "K")
            .build()
        )
    instance = engine.start("order", {}, version=1).id
    engine.drain()
    archived(engine, "order", *versions)
    archived(engine, "K", 1)
    engine.advance(LATER)
    batch = engine.batches.begin("cancel", definition="order", version=1, reason="bad")
    engine.advance(timedelta(minutes=1))
    found = engine.batches.get(batch.id)
    assert (found.counts.done, found.is_clean) == (1, True)
    assert (status(engine, instance), status(engine, kid(engine, instance))) == ("cancelled", "cancelled")
    assert stage.calls == ["one", "k", "unk", "unone"]
    assert engine.dead_letters.list() == []


@pytest.mark.row("F-061")
@pytest.mark.parametrize("ends", ["fails", "is cancelled"])
def test_a_completed_child_of_an_archived_workflow_is_undone(place: Place, ends: str) -> None:
    """A parent that fails, or is cancelled, has its completed child undone, whose definition is archived."""
    stage, engine = Stage(), place.engine()
    stage.does("bill", BROKEN)
    engine.register(short(stage))
    engine.register(Saga("P").call("kid", "K").wait_for("w", "go").then("bill", stage.does("bill"), attempts=1).build())
    instance = run(engine, "P", {})
    archived(engine, "K", 1)
    engine.advance(LATER)
    if ends == "fails":
        engine.run(instance).signal("go")
    else:
        engine.futures.run(instance).cancel("no more")
    engine.drain()
    assert status(engine, instance) == ("failed" if ends == "fails" else "cancelled")
    assert stage.calls == ["k", *(["bill"] if ends == "fails" else []), "unk"]
    assert engine.dead_letters.list() == []


def test_a_child_of_an_archived_parent_ends_by_a_signal(place: Place) -> None:
    """The signal that ends a child is accepted, and the parent goes on, whose own definition is archived."""
    stage, engine = Stage(), place.engine()
    engine.register(child(stage)).register(calling(stage))
    instance = run(engine, "P", {})
    archived(engine, "P", 1)
    engine.advance(LATER)
    engine.run(kid(engine, instance)).signal("done")
    engine.drain()
    assert (status(engine, instance), stage.calls) == ("completed", ["one", "two", "k", "bill"])


def test_workers_go_on_with_a_parent_that_is_archived(live: Live) -> None:
    """The same with threads, in a process that did not archive it."""
    stage, engine, other = Stage(), live.engine(), live.engine()
    engine.register(child(stage)).register(calling(stage)).start_worker()
    instance = engine.start("P", {}).id
    eventually(lambda: stage.count("k"))
    other.definitions.archive("P", 1)
    engine.definitions.archived()
    eventually(lambda: any(engine.runs.list(parent=instance).items))
    below = kid(engine, instance)
    eventually(lambda: statuses(engine, below).get("w") == "running")
    engine.run(below).signal("done")
    eventually(lambda: status(engine, instance) == "completed")
    assert stage.calls == ["one", "two", "k", "bill"]


def test_an_answer_before_a_call_of_an_archived_workflow_counts(place: Place) -> None:
    """A person's answer is accepted; it is the call behind it that fails."""
    stage, engine = Stage(), place.engine()
    engine.register(short(stage))
    engine.register(Saga("P").human("ask", subject="Go on?", ask=["user:ann"]).call("kid", "K").build())
    instance = run(engine, "P", {})
    archived(engine, "K", 1)
    engine.advance(LATER)
    decide(engine, instance, "ask")
    engine.drain()
    assert stage.calls == []
    assert "archived" in engine.run(instance).describe().error


def test_a_timer_before_a_call_of_an_archived_workflow_fires(place: Place) -> None:
    """The wait ends in time; it is the call behind it that fails, and there is no dead letter."""
    stage, engine = Stage(), place.engine()
    engine.register(short(stage))
    engine.register(Saga("P").wait("w", timedelta(hours=1)).call("kid", "K").build())
    instance = run(engine, "P", {})
    archived(engine, "K", 1)
    engine.advance(timedelta(hours=1))
    engine.drain()
    assert "archived" in engine.run(instance).describe().error
    assert engine.dead_letters.list() == []


def test_a_dry_run_tells_that_a_call_of_an_archived_workflow_fails(place: Place) -> None:
    """A dry run ends as the run would."""
    stage, engine = Stage(), place.engine()
    engine.register(short(stage)).register(calling(stage))
    assert engine.definitions.dry_run("P", {}).status == "completed"
    archived(engine, "K", 1)
    told = engine.definitions.dry_run("P", {})
    assert told.status == "failed"
    assert "'K' version 1 is archived" in told.reason or "all versions of 'K' are archived" in told.reason


def test_no_fork_begins_with_an_archived_version(place: Place) -> None:
    """A fork is a new run of the same version: the preview says why there is none, and it is refused as archived."""
    stage, engine = Stage(), place.engine()
    engine.register(child(stage))
    instance = run(engine, "K", {})
    archived(engine, "K", 1)
    engine.advance(LATER)
    at = engine.run(instance).describe().version
    assert "archived" in engine.run(instance).fork_preview(at).problem
    with pytest.raises(RejectedError, match="archived") as caught:
        engine.run(instance).fork(at, reason="again")
    assert caught.value.reason == "archived"


def test_a_new_workflow_calls_no_archived_version(place: Place) -> None:
    """What calls an archived version, or a workflow whose versions are all archived, is not published; what was published before is registered again by every process."""
    stage, engine, later = Stage(), place.engine(), place.engine()
    engine.register(short(stage)).register(calling(stage))
    archived(engine, "K", 1)
    for version in ("", 1):
        caller = Saga("Q").call("kid", "K", version=version).build()
        with pytest.raises(DefinitionError, match="archived"):
            engine.register(caller)
    later.register(calling(stage))
    assert [each.name for each in later.definitions.list()] == ["P"]


def test_what_is_asked_of_an_archived_workflow_is_answered(place: Place) -> None:
    """Its reports, its points of rest and its graph are there for as long as its runs are."""
    stage, engine = Stage(), place.engine()
    engine.register(child(stage))
    archived(engine, "K", 1)
    assert [each.step_id for each in engine.definitions.pause_points("K")] == ["w"]
    assert engine.reports.of("K").runs == 0
    assert engine.definitions.get("K").version == "1"
    with pytest.raises(NotFoundError):
        engine.reports.of("nothing")


def test_an_archived_version_is_paused_and_its_runs_stand_still(place: Place) -> None:
    """A pause names archived versions too, with their steps; a misspelt version is refused all the same."""
    stage, engine = Stage(), place.engine()
    engine.register(child(stage)).register(child(stage, version=2))
    archived(engine, "K", 1)
    engine.pauses.pause("K", version=1, reason="bad")
    engine.pauses.pause("K", version=1, step="k", reason="bad")
    archived(engine, "K", 2)
    engine.pauses.pause("K", reason="bad")
    with pytest.raises(NotFoundError, match="version"):
        engine.pauses.pause("K", version=7)


def test_documents_of_an_archived_workflow_live_on(place: Place) -> None:
    """They are read, edited, moved and approved as before; a new one is refused as archived."""
    engine = opened(place)
    bob, reader = asking(engine, BOB), asking(engine, FINANCE)
    bob.documents.create("invoice", GIVEN, id="INV-1")
    archived(engine, "invoice", int(engine.definitions.get("invoice").version))
    engine.advance(LATER)
    with pytest.raises(RejectedError, match="archived") as caught:
        bob.documents.create("invoice", GIVEN, id="INV-2")
    assert caught.value.reason == "archived"
    bob.documents.mutate("invoice", "INV-1", {"total": 600})
    bob.documents.transition("invoice", "INV-1", "submit")
    approve(engine, ANN)
    approve(engine, CARL)
    engine.drain()
    assert reader.documents.get("invoice", "INV-1").status == "active"
    assert [each.id for each in reader.documents.list("invoice").items] == ["INV-1"]
    with pytest.raises(RejectedError, match="archived"):
        bob.documents.amend("invoice", "INV-1", {"total": 700})
