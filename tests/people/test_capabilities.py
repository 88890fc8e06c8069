"""Resolvers of capabilities: what they grant, and files that say so."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from standfast import (
    Actor,
    Capabilities,
    CapabilityResolver,
    ClaimedCapabilities,
    ConfigurationError,
    PayloadError,
    RequestContext,
)
from standfast.testing import ManualEngine

FILE = """
roles:
  clerk: [orders.read, "orders.small.*"]
  boss: ["*"]
tenants:
  acme:
    roles:
      clerk: [orders.read]
      guard: ["gates:*"]
  empty:
"""


def asking(*roles: str, tenant: str = "default", claims: Any = None, may: Iterable[str] = ()) -> RequestContext:
    """A request of somebody with these roles."""
    actor = Actor(id="ann", roles=frozenset(roles), capabilities=frozenset(may))
    return RequestContext(tenant=tenant, actor=actor, claims=claims or {})


@pytest.fixture
def granting(tmp_path: Path) -> Capabilities:
    """The capabilities of the file."""
    (tmp_path / "capabilities.yaml").write_text(FILE, encoding="utf-8")
    return Capabilities.from_file(tmp_path / "capabilities.yaml")


@pytest.mark.row("C-44")
@pytest.mark.parametrize(
    ("request_", "capability", "has"),
    [
        (asking("clerk"), "orders.read", True),
        (asking("clerk"), "orders.small.approve", True),
        (asking("clerk"), "orders.small", False),
        (asking("clerk"), "orders.write", False),
        (asking("clerk"), "orders.reading", False),
        (asking("clerk", "boss"), "anything:at:all", True),
        (asking("boss"), "execution:pause", True),
        (asking(), "orders.read", False),
        (asking("stranger"), "orders.read", False),
        (asking("guard"), "gates:open", False),
        (asking("guard", tenant="acme"), "gates:open", True),
        (asking("clerk", tenant="acme"), "orders.small.approve", False),
        (asking("boss", tenant="acme"), "x", True),
        (asking("clerk", tenant="empty"), "orders.read", True),
        (asking("clerk", tenant="other"), "orders.read", True),
        (asking(may=["own.*"]), "own.thing", True),
    ],
)
def test_a_role_may_do_what_the_file_says(
    granting: Capabilities, request_: RequestContext, capability: str, *, has: bool
) -> None:
    """A star at the end stands for whatever follows; a tenant's word on a role replaces the shared one; nobody has what nobody grants."""
    assert granting.has(request_, capability) == has


@pytest.mark.parametrize(
    ("claims", "claim", "granted"),
    [
        ({"scope": "a:read b.*"}, "scope", ["a:read", "b.*"]),
        ({"permissions": ["a", "b"]}, "permissions", ["a", "b"]),
        ({"access": {"app": {"can": ["a"]}}}, "access.app.can", ["a"]),
        ({"https://x.example/can": ["a"]}, "https://x.example/can", ["a"]),
        ({"can": ["a", 1, None, "", ["*"]]}, "can", ["a"]),
        ({"can": {"*": True}}, "can", []),
        ({"can": True}, "can", []),
        ({"can": None}, "can", []),
        ({"a": "b"}, "a.b.c", []),
        ({}, "can", []),
    ],
)
def test_a_claim_grants_what_it_lists(claims: dict[str, object], claim: str, granted: list[str]) -> None:
    """A list, or a text with spaces; anything else grants nothing."""
    assert list(ClaimedCapabilities(claim).granted(asking(claims=claims))) == granted


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("roles: [a]", ["roles: give names with values"]),
        ("roles: {a: b, c: [1], d: ['']}", ["roles.a: give a list", "roles.c: 1 is no", "roles.d: '' is no"]),
        ("roles: {a: ['*.b', 'a*b', ' x']}", ["'*.b' a star stands elsewhere", "'a*b' a star", "' x' is no"]),
        ("role: {}", ["'role' means nothing here", "did you mean 'roles'"]),
        ("tenants: {t: {role: {}}}", ["tenants.t: 'role' means nothing"]),
        ("tenants: {t: {roles: {a: x}}}", ["tenants.t.roles.a: give a list"]),
        ("roles: {1: [a]}", ["1 is no name; put it in quotes"]),
        ("[]", ["the file: give names"]),
        ("a: [", ["are not YAML"]),
        ("roles: {a: [x], b: [y], a: ['*']}", ["'a' was given before", "keep one of them"]),
        ("roles: {a: ['*']}\nroles: {b: [x]}", ["'roles' was given before"]),
    ],
)
def test_all_faults_of_a_file_are_told_at_once(tmp_path: Path, text: str, faults: list[str]) -> None:
    """Each with its place."""
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as refused:
        Capabilities.from_file(tmp_path / "c.yaml")
    for fault in faults:
        assert fault in str(refused.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Nobody opens an engine that grants other things than were meant."""
    with pytest.raises(ConfigurationError, match="cannot be read"):
        Capabilities.from_file(tmp_path / "none.yaml")
    (tmp_path / "large.yaml").write_text("#" * 1_000_001, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="more than 1000000 characters"):
        Capabilities.from_file(tmp_path / "large.yaml")
    (tmp_path / "large.yaml").write_text("#" * 1_000_000, encoding="utf-8")
    assert Capabilities.from_file(tmp_path / "large.yaml").named == frozenset()


class Odd(CapabilityResolver):
    """Grants what it is told, however wrong."""

    def __init__(self, given: object) -> None:
        self.given = given

    def granted(self, request: RequestContext) -> Any:
        """That."""
        return self.given


@pytest.mark.parametrize("given", ["orders.*", None, [1], 7])
def test_a_resolver_grants_texts(given: object) -> None:
    """The letters of one text would be many capabilities, and its star all of them: it is refused, and nobody gets anything."""
    with (
        ManualEngine(capabilities=Odd(given)) as engine,
        pytest.raises(ConfigurationError, match=r"Odd\.granted must give"),
    ):
        engine.acting("ann")


class Broken(CapabilityResolver):
    """Cannot look anything up."""

    def granted(self, request: RequestContext) -> Any:
        raise KeyError("no such " + "row" * 1000)


def test_a_resolver_that_fails_is_named() -> None:
    """Whoever asks is told by an error of the engine's whose resolver it is, in a few words, and nobody is granted anything."""
    told = r"Broken\.granted raised KeyError for 'ann': .{0,200}; mend it, nobody is granted anything until then"
    with ManualEngine(capabilities=Broken()) as engine, pytest.raises(ConfigurationError, match=told) as caught:
        engine.acting("ann")
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("given", ["x.yaml", 7, [7], {"roles": {}}, Odd])
def test_what_is_no_resolver_is_refused(given: Any) -> None:
    """When the engine opens."""
    with pytest.raises(ConfigurationError, match=r"for example Capabilities\.from_file"):
        ManualEngine(capabilities=given)


def test_roles_are_given_as_a_mapping_too() -> None:
    """Checked like a file."""
    assert Capabilities({"a": {"x"}}).has(asking("a"), "x")
    with pytest.raises(ConfigurationError, match=r"roles\.a: give a list"):
        Capabilities({"a": "x"})


def test_claims_are_a_dict() -> None:
    """Anything else is refused."""
    with ManualEngine() as engine, pytest.raises(PayloadError, match="claims of a request are a dict"):
        engine.acting(RequestContext(actor=Actor(id="ann"), claims=[]))  # type: ignore[arg-type]


def test_what_a_token_says_of_one_it_does_not_say_of_another() -> None:
    """Whoever takes the place of an actor brings their own rights, and has none of the claims of the first."""
    with ManualEngine(capabilities=ClaimedCapabilities("can")) as engine:
        first = engine.acting(RequestContext(actor=Actor(id="ann"), claims={"can": ["*"]}))
        assert first.request.actor.may("x")
        assert not first.acting("bob").request.actor.may("x")
        assert not engine.acting("bob").request.actor.may("x")


@pytest.mark.parametrize("claim", ["", None, 3, ["scope"], b"scope"])
def test_a_claim_is_given_by_its_name(claim: Any) -> None:
    """What is no name of a claim is refused when the engine is opened, and not when somebody asks."""
    with pytest.raises(ConfigurationError, match="given by its name, not as"):
        ClaimedCapabilities(claim)
