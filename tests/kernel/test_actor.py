"""For whom something is done, as it is stored and as it comes back."""

from __future__ import annotations

import pytest

from standfast.kernel.actor import (
    OWN,
    SYSTEM,
    Actor,
    RequestContext,
    context_bytes,
    following,
    following_bytes,
    request_of,
)

ANN = Actor(id="ann", roles=frozenset({"finance"}), capabilities=frozenset({"orders:*"}), on_behalf_of="bob")


@pytest.mark.parametrize("actor", [ANN, Actor(id="eve"), Actor(id="system"), SYSTEM], ids=lambda actor: actor.id)
@pytest.mark.parametrize(("trace", "partition"), [("t-1", ""), ("", "berlin"), ("t-1", "berlin")])
def test_what_is_stored_comes_back(actor: Actor, trace: str, partition: str) -> None:
    """The actor with all rights and none besides; one who only bears the name of the system does not become the system."""
    kept = context_bytes(actor=actor, trace=trace, partition=partition)
    assert kept is not None
    assert request_of(kept) == RequestContext(actor=actor, trace=trace, partition=partition)
    assert (request_of(kept).actor is SYSTEM) == (actor is SYSTEM)
    assert following(kept) == RequestContext(actor=SYSTEM, trace=trace, partition=partition)
    assert request_of(following_bytes(kept)) == following(kept)


def test_the_engine_itself_is_not_written_down() -> None:
    """Nothing is stored for it, and under a trace nothing but the trace."""
    assert context_bytes() is None
    assert request_of(None) is following(None) is OWN
    assert following_bytes(None) is None
    assert context_bytes(trace="t-1") == b'{"trace":"t-1"}'


def test_an_actor_that_equals_the_engine_is_the_engine() -> None:
    """What is kept of a request goes by what its actor says, not by which object it is."""
    twin = Actor(id="system", kind="system", capabilities=frozenset({"*"}))
    assert twin is not SYSTEM
    assert context_bytes(actor=twin) is None
    assert context_bytes(actor=twin, trace="t") == context_bytes(trace="t")
