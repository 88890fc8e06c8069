"""Compiling again while others publish: what is in force afterwards is what was published last, by whichever version of the code."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from app.documents.blueprints import BODY, CLERK, GIVEN, of, opened, published
from app.documents.test_bodies import rejected
from app.documents.test_workflows import OPERATOR
from standfast import Actor, ForbiddenError, RejectedError
from standfast.app.api.sync import Calls
from standfast.features.documents.contract.library import ready_contract
from standfast.features.documents.publishing.contract_calls import FutureContracts
from standfast.features.documents.publishing.publisher import Compiled
from standfast.features.documents.publishing.release import Release
from standfast.testing import ManualEngine
from support.engines import Place

TWICE = BODY.replace("One manager", "A clerk").replace("manager", "clerk")
COMPILER = "standfast.features.documents.compiler.compiler.COMPILER_VERSION"


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> Callable[[ManualEngine], Calls]:
    """An organisation whose body another version of the compiler has compiled."""

    def compiled_by(engine: ManualEngine) -> Calls:
        with monkeypatch.context() as patched:
            patched.setattr(COMPILER, "0.9.0")
            return published(engine)

    return compiled_by


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have something happen between what is compiled and what is written."""
    compiled, acts = Release._compiled, [act]

    def delayed(press: Release, *given: object, **more: object) -> Compiled:
        made = compiled(press, *given, **more)  # type: ignore[arg-type]
        if acts:
            acts.pop()()
        return made

    monkeypatch.setattr(Release, "_compiled", delayed)


@pytest.mark.row("E-907")
def test_a_body_that_was_published_meanwhile_stays_in_force(
    place: Place, older: Callable[[ManualEngine], Calls], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever compiles the one before again puts nothing in its place."""
    engine = opened(place)
    acme, other = older(engine), of(place.engine())
    draft = other.bodies.save(TWICE)
    meanwhile(monkeypatch, lambda: other.bodies.publish(draft.id))
    assert acme.bodies.recompile() == []
    assert acme.bodies.get("invoice").workflow_version == "2-org"
    assert of(engine, CLERK).documents.create("invoice", GIVEN, id="I-1").workflow_version == "2-org"


@pytest.mark.row("E-907")
def test_what_was_archived_meanwhile_stays_archived(
    place: Place, older: Callable[[ManualEngine], Calls], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Archiving is what one does when a workflow is bad."""
    engine = opened(place)
    acme, other = older(engine), of(place.engine())
    meanwhile(monkeypatch, lambda: other.bodies.archive("invoice", "it is bad"))
    assert acme.bodies.recompile() == []
    with rejected("WORKFLOW_ARCHIVED"):
        of(engine, CLERK).documents.create("invoice", GIVEN, id="I-1")


@pytest.mark.row("E-907", "E-267")
def test_an_older_process_compiles_nothing_again_that_a_newer_one_has_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the two would take turns; it says which version is needed instead."""
    engine = opened()
    with monkeypatch.context() as patched:
        patched.setattr(COMPILER, "1.10.0")
        acme = published(engine)
    assert (acme.bodies.recompile(dry_run=True), acme.bodies.recompile()) == ([], [])
    assert acme.bodies.get("invoice").compiler == "1.10.0"
    with pytest.raises(RejectedError, match=r"compiled by version 1\.10\.0.*run this process with that version"):
        of(engine, CLERK).documents.create("invoice", GIVEN, id="I-1")


@pytest.mark.row("E-907", "EO-12")
def test_what_is_out_of_use_is_not_put_back_by_compiling_it_again(
    place: Place, older: Callable[[ManualEngine], Calls]
) -> None:
    """It would be in use again under another number."""
    engine = opened(place)
    acme = older(engine)
    operator = of(engine, OPERATOR)
    operator.workflows.suspend("invoice", "1-org", "it is bad")
    assert acme.bodies.recompile() == []
    with rejected("WORKFLOW_SUSPENDED"):
        of(engine, CLERK).documents.create("invoice", GIVEN, id="I-1")
    operator.workflows.lift("invoice", "1-org", "it is mended")
    assert [each.workflow_version for each in acme.bodies.recompile()] == ["2-org"]
    (change,) = [
        each
        for each in of(engine, Actor(id="audra", capabilities=frozenset({"audit:read"}))).audit.changes()
        if each.action == "recompile"
    ]
    assert (change.subject, change.name, change.before, change.after) == ("body", "invoice", {}, {"workflow": "2-org"})


@pytest.mark.row("E-269")
def test_a_rollback_that_dies_leaves_no_draft_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written at once, or not at all."""

    def die() -> None:
        raise KeyboardInterrupt

    acme = published(opened())
    acme.bodies.publish(acme.bodies.save(TWICE).id)
    meanwhile(monkeypatch, die)
    with pytest.raises(KeyboardInterrupt):
        acme.bodies.rollback("invoice", 1)
    assert (acme.bodies.drafts(), acme.bodies.get("invoice").version) == ([], 2)
    assert (acme.bodies.rollback("invoice", 1).version, acme.bodies.drafts()) == (3, [])


@pytest.mark.row("E-267")
def test_contracts_without_a_body_are_compiled_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a release of the compiler bare contracts begin no document until they are compiled again, shared ones and those of a tenant."""
    with monkeypatch.context() as patched:
        patched.setattr(COMPILER, "0.9.0")
        engine = opened(place)
        bare = ready_contract("purchase_order")
        acme = of(engine, Actor(id="cora", capabilities=frozenset({"contracts:publish"})))
        acme.contracts.publish(bare)
    mine = of(engine, CLERK).documents
    for type_ in ("invoice", "purchase_order"):
        with rejected("WORKFLOW_COMPILER_STALE"):
            engine.as_tenant("acme").documents.create(type_, {})
    assert acme.contracts.recompile("invoice") == []  # It is not theirs.
    for calls, type_, workflow in ((engine.contracts, "invoice", "2-std"), (acme.contracts, "purchase_order", "2-org")):
        assert [each.type for each in calls.recompile(dry_run=True)] == [type_]
        assert [each.type for each in calls.recompile(type_)] == [type_]
        assert calls.recompile() == []
        if type_ == "invoice":
            assert mine.create(type_, GIVEN, id="I-1").workflow_version == workflow
    with pytest.raises(ForbiddenError):
        of(engine, CLERK).contracts.recompile()


@pytest.mark.row("E-267")
def test_a_contract_that_was_published_meanwhile_stays_in_force(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever compiles the version before again puts nothing in its place."""
    with monkeypatch.context() as patched:
        patched.setattr(COMPILER, "0.9.0")
        engine = opened(place)
    compile_again = FutureContracts._recompiled

    def delayed(calls: FutureContracts, *given: object) -> bool:
        newer = msgspec.structs.replace(ready_contract("invoice"), version=ready_contract("invoice").version + 1)
        engine.contracts.publish(newer)
        return compile_again(calls, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(FutureContracts, "_recompiled", delayed)
    assert engine.contracts.recompile() == []
    assert of(engine, CLERK).documents.create("invoice", GIVEN, id="I-1").workflow_version == "2-std"
