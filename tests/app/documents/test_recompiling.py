"""Compiling again while others publish: what is in force afterwards is what was published last, by whichever version of the code."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.documents.blueprints import BODY, CLERK, GIVEN, of, opened, published
from app.documents.test_bodies import rejected
from app.documents.test_workflows import OPERATOR
from holdfast import RejectedError
from holdfast.app.faces.blocking import Calls
from holdfast.app.printing import Press
from holdfast.app.publishing import Compiled
from holdfast.testing import ManualEngine
from support.engines import Place

TWICE = BODY.replace("One manager", "A clerk").replace("manager", "clerk")
COMPILER = "holdfast.authoring.document.compiler.COMPILER_VERSION"


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
    compiled, acts = Press._compiled, [act]

    def delayed(press: Press, *given: object) -> Compiled:
        made = compiled(press, *given)  # type: ignore[arg-type]
        if acts:
            acts.pop()()
        return made

    monkeypatch.setattr(Press, "_compiled", delayed)


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
