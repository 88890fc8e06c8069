"""Sessions of browsers: known by their secret, ended by their own people and by those who look after keys, seen by nobody else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from standfast import Actor, Calls, ForbiddenError, NotFoundError, PayloadError, RequestContext
from standfast.testing import ManualEngine
from support.engines import Place


def calls(engine: ManualEngine, actor: str, *capabilities: str, tenant: str = "acme", partition: str = "") -> Calls:
    """The calls of somebody."""
    who = Actor(id=actor, roles=frozenset({"clerk"}), capabilities=frozenset(capabilities))
    return engine.acting(RequestContext(tenant=tenant, partition=partition, actor=who))


def test_a_session_is_known_again_by_its_secret_alone(place: Place) -> None:
    """Who comes with the secret is who opened it, with the rights that they had then; one that differs in one place is nobody's."""
    engine = place.engine()
    ann = calls(engine, "ann", "a:b", partition="north")
    made = ann.sessions.open(credential="jwt:company:ann")
    found = engine.admin.identify_session(made.secret)
    assert found is not None
    assert (found.tenant, found.partition, found.bearer) == ("acme", "north", ann.request.actor)
    assert made.secret.rpartition("_")[2] not in repr(ann.sessions.list())
    wrong = ["", "sfs", "sfs__", made.secret[:-1], made.secret + "x", made.secret.swapcase(), "sf" + made.secret[3:]]
    assert [engine.admin.identify_session(each) for each in wrong] == [None] * len(wrong)
    assert engine.admin.identify(made.secret) is None
    ann.sessions.end(made.session)
    assert engine.admin.identify_session(made.secret) is None


def test_sessions_are_their_own_peoples(place: Place) -> None:
    """Everybody sees and ends their own; those of others take `keys:manage`, and another tenant or partition finds none."""
    engine = place.engine()
    ann, bob = calls(engine, "ann", partition="north"), calls(engine, "bob")
    boss, rival = calls(engine, "boss", "keys:manage"), calls(engine, "boss", "keys:manage", tenant="rival")
    south = calls(engine, "sue", "keys:manage", partition="south")
    made = ann.sessions.open(credential="key:none").session
    assert (
        [each.id for each in ann.sessions.list()] == [made.id] == [each.id for each in boss.sessions.list(actor="ann")]
    )
    assert bob.sessions.list() == rival.sessions.list() == south.sessions.list() == []
    with pytest.raises(ForbiddenError):
        bob.sessions.list(actor="ann")
    for stranger in (bob, rival, south):
        with pytest.raises(NotFoundError):
            stranger.sessions.end(made)
    ended = boss.sessions.end(made.id)
    assert ended.ended_at is not None
    engine.advance(minutes=1)
    assert ann.sessions.end(made).ended_at == ended.ended_at


def test_old_sessions_are_forgotten(place: Place) -> None:
    """A month after its end a session is not listed any more, once somebody comes in."""
    engine = place.engine()
    ann = calls(engine, "ann")
    ann.sessions.open(credential="x", lifetime=timedelta(hours=1))
    engine.advance(days=31)
    assert len(ann.sessions.list()) == 1
    ann.sessions.open(credential="x")
    assert len(ann.sessions.list()) == 1


@pytest.mark.parametrize("lifetime", [timedelta(0), timedelta(seconds=-1), timedelta(days=31)])
def test_a_session_has_an_end(place: Place, lifetime: timedelta) -> None:
    """One that never begins or lasts for months is refused, and so is one of the engine itself."""
    engine = place.engine()
    with pytest.raises(PayloadError):
        calls(engine, "ann").sessions.open(credential="x", lifetime=lifetime)
    with pytest.raises(PayloadError):
        engine.sessions.open(credential="x")
