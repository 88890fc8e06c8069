"""API keys: who makes them for whom, what they are worth, and how one is known again."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import pytest

from standfast import Actor, Calls, Capabilities, ForbiddenError, NotFoundError, PayloadError, RequestContext, Saga
from standfast.testing import ManualEngine
from support.engines import Place


def acting(engine: ManualEngine, *capabilities: str, partition: str = "", roles: tuple[str, ...] = ()) -> Calls:
    """The calls of somebody of acme."""
    clerk = Actor(id="clerk", capabilities=frozenset(capabilities), roles=frozenset(roles))
    return engine.acting(RequestContext(tenant="acme", partition=partition, actor=clerk))


def test_a_key_is_known_again_by_its_secret_alone(place: Place) -> None:
    """Who comes with the secret is who the key says; a secret that differs in one place, a revoked and an expired one are nobody."""
    engine = place.engine()
    made = engine.as_tenant("acme").keys.create(
        "shop", actor="shop", capabilities=["a:b"], roles=["r"], partition="north"
    )
    found = engine.admin.identify(made.secret)
    assert found is not None
    assert (found.tenant, found.partition, found.bearer) == (
        "acme", "north", Actor(id="shop", kind="service", roles=frozenset({"r"}), capabilities=frozenset({"a:b"}), key=made.key.id),
    )  # fmt: skip
    assert made.secret.split("_", 2)[2] not in repr(engine.as_tenant("acme").keys.list())
    wrong = [
        "",
        "sf",
        "sf__",
        "nonsense",
        made.secret[:-1],
        made.secret + "x",
        made.secret.swapcase(),
        "é" + made.secret,
    ]
    assert [engine.admin.identify(each) for each in wrong] == [None] * len(wrong)
    assert engine.as_tenant("acme").keys.get(made.key).last_used_at == place.clock.now()
    assert engine.as_tenant("acme").keys.revoke(made.key).revoked_by == "system"
    assert engine.admin.identify(made.secret) is None
    short = engine.keys.create("short", actor="x", expires_at=place.clock.now() + timedelta(minutes=1))
    engine.advance(minutes=1)
    assert engine.admin.identify(short.secret) is None


def test_nobody_gives_what_they_lack(place: Place) -> None:
    """It takes `keys:manage`, and a key has no right that its maker has not; who is bound to a partition binds his keys to it."""
    engine = place.engine()
    clerk = acting(engine, "keys:manage", "execution:read", roles=("viewer",))
    assert (
        clerk.keys.create("fine", actor="x", capabilities=["execution:read"], roles=["viewer"]).key.created_by
        == "clerk"
    )
    for more in ({"capabilities": ["execution:*"]}, {"capabilities": ["*"]}, {"roles": ["administrator"]}):
        with pytest.raises(ForbiddenError):
            clerk.keys.create("grab", actor="x", **more)  # type: ignore[arg-type]
    reader = acting(engine, "execution:read")
    with pytest.raises(ForbiddenError, match="keys:manage"):
        reader.keys.list()
    with pytest.raises(ForbiddenError, match="keys:manage"):
        reader.keys.create("x", actor="x")
    bound = acting(engine, "keys:manage", partition="north")
    assert bound.keys.create("mine", actor="x").key.partition == "north"
    with pytest.raises(ForbiddenError, match="north"):
        bound.keys.create("theirs", actor="x", partition="south")
    assert [each.name for each in bound.keys.list(limit=1)] == ["mine"]


def test_a_role_of_people_goes_under_no_other_name(place: Place) -> None:
    """Whoever has a role that the directory grants to people makes no key with it under a name of nobody: one person would decide twice."""
    engine = place.engine()
    whole = engine.as_tenant("acme")
    for name in ("clerk", "bot"):
        whole.directory.put(name, kind="service" if name == "bot" else "user")
    whole.directory.grant("clerk", "fin")
    whole.directory.grant("bot", "feeder")
    clerk = acting(engine, "keys:manage", roles=("fin", "feeder"))
    for kind in ("user", "service"):
        with pytest.raises(ForbiddenError, match=r"'clerk' may not make a key as 'zed'.*'fin'.*keys:as-others"):
            clerk.keys.create("grab", actor="zed", kind=kind, roles=["fin"])
    assert clerk.keys.create("mine", actor="clerk", roles=["fin"]).key.roles == ["fin"]
    assert clerk.keys.create("feed", actor="zed", roles=["feeder"]).key.roles == ["feeder"]
    lent = acting(engine, "keys:manage", "keys:as-others", roles=("fin",))
    assert lent.keys.create("desk", actor="zed", roles=["fin"]).key.actor == "zed"


@pytest.mark.parametrize("kind", ["user", "service"])
def test_what_roles_may_goes_under_no_other_name(place: Place, kind: Literal["user", "service"]) -> None:
    """A capability that the maker has by a role goes into a key of their own alone. What their credential gives goes into any key."""
    engine = place.engine(capabilities=Capabilities({"fin": ["pay:*"], "adm": ["keys:manage"]}))
    whole = engine.as_tenant("acme")
    for role in ("fin", "adm"):
        whole.directory.put("clerk")
        whole.directory.grant("clerk", role)
    clerk = acting(engine, "orders:start")
    for wanted in (["pay:ok"], ["orders:start", "pay:ok"], ["pay:*"]):
        with pytest.raises(ForbiddenError, match=r"'clerk' may not make a key as 'zed', with 'pay:.*keys:as-others"):
            clerk.keys.create("grab", actor="zed", kind=kind, capabilities=wanted)
    assert clerk.keys.create("mine", actor="clerk", capabilities=["pay:ok"]).key.capabilities == ["pay:ok"]
    assert clerk.keys.create("shop", actor="zed", capabilities=["orders:start"]).key.actor == "zed"
    lent = acting(engine, "keys:as-others")
    assert lent.keys.create("desk", actor="zed", capabilities=["pay:ok"]).key.actor == "zed"


def test_a_role_of_the_directory_is_the_makers(place: Place) -> None:
    """Whoever has a role by the directory gives it to a key of their own, also where roles have no capabilities."""
    engine = place.engine()
    engine.as_tenant("acme").directory.put("clerk")
    engine.as_tenant("acme").directory.grant("clerk", "fin")
    clerk = acting(engine, "keys:manage")
    assert clerk.keys.create("mine", actor="clerk", roles=["fin"]).key.roles == ["fin"]
    with pytest.raises(ForbiddenError, match="'clerk' lacks the role 'boss'"):
        clerk.keys.create("mine", actor="clerk", roles=["boss"])


def test_keys_are_of_their_tenant(place: Place) -> None:
    """Another tenant neither sees nor ends them; what is no key is not found; pages go on behind the last one."""
    engine = place.engine()
    made = [engine.as_tenant("acme").keys.create(f"k{number}", actor="x").key for number in range(3)]
    for call in (engine.as_tenant("rival").keys.get, engine.as_tenant("rival").keys.revoke):
        with pytest.raises(NotFoundError):
            call(made[0])
    first = engine.as_tenant("acme").keys.list(limit=2)
    both = [*first, *engine.as_tenant("acme").keys.list(after=first[-1])]
    assert [each.id for each in both] == sorted(each.id for each in made)
    assert engine.as_tenant("rival").keys.list() == []
    past = place.clock.now() - timedelta(seconds=1)
    for more in (
        {"expires_at": past},
        {"kind": "system"},
        {"capabilities": "a"},
        {"roles": [""]},
        {"partition": "\x00"},
        {"actor": "system"},
    ):
        with pytest.raises(PayloadError):
            engine.keys.create("bad", **{"actor": "x", **more})  # type: ignore[arg-type]
    assert engine.keys.list() == []


def test_refusals_are_read_by_auditors(place: Place) -> None:
    """What was refused to somebody is read by who has `audit:read`, newest first, of his own tenant."""
    engine = place.engine()
    clerk = acting(engine, "execution:read")
    for path in ("/a", "/b", "/c"):
        clerk.refusals.note(credential="key:1", method="GET", path=path, code="not_permitted", detail="no")
    with pytest.raises(ForbiddenError, match="audit:read"):
        clerk.refusals.list()
    auditor = acting(engine, "audit:read")
    page = auditor.refusals.list(limit=2)
    assert [(each.path, each.actor) for each in page] == [("/c", "clerk"), ("/b", "clerk")]
    assert [each.path for each in auditor.refusals.list(before=page[-1])] == ["/a"]
    assert engine.as_tenant("rival").refusals.list() == []
    engine.advance(days=91)
    clerk.refusals.note(credential="key:1", method="GET", path="/d", code="not_permitted")
    assert [each.path for each in auditor.refusals.list()] == ["/d"]


def test_what_was_written_is_told_in_order(place: Place) -> None:
    """From the position that there is now, every later event of every tenant is told once, without what it says."""
    engine = place.engine().register(Saga("ask").human("sign").build())
    engine.start("ask")
    now = engine.admin.written()
    assert now.items == []
    runs = [engine.as_tenant(tenant).start("ask", {"secret": 1}) for tenant in ("acme", "rival")]
    first = engine.admin.written(after=now.next, limit=1)
    rest = engine.admin.written(after=first.next)
    found = [*first.items, *rest.items]
    assert {(each.tenant, each.instance) for each in found} == {("acme", runs[0].id), ("rival", runs[1].id)}
    assert [each.sequence for each in found if each.tenant == "acme"] == [1, 2]
    assert "secret" not in repr(found)
    assert engine.admin.written(after=rest.next).items == []
    assert engine.runs.partition_of(engine.start("ask")) == ""


def test_runs_are_listed_by_partition(place: Place) -> None:
    """A list of one partition holds its runs alone, page by page, whatever else there is."""
    engine = place.engine().register(Saga("ask").human("sign").build())
    parts = ("north", "south", "", "north", "south", "north")
    mine = [acting(engine, "*", partition=part).start("ask").id for part in parts]
    calls, found, cursor = engine.as_tenant("acme"), [], None
    while True:
        page = calls.runs.list(partition="north", cursor=cursor, limit=2)
        found += [each.id for each in page]
        cursor = page.next
        if cursor is None:
            break
    assert sorted(found) == sorted(each for each, part in zip(mine, parts, strict=True) if part == "north")
    assert [calls.runs.partition_of(each) for each in mine] == list(parts)
    with pytest.raises(NotFoundError):
        engine.as_tenant("rival").runs.partition_of(mine[0])


def test_dead_letters_are_grouped_by_cause(place: Place) -> None:
    """Letters that differ in numbers, ids and quoted values only are one group; others are not."""

    def fails(order: int) -> object:
        if order == 9:
            raise KeyError("another cause")
        raise ValueError(f"order {order} of 'customer {order}' failed at 0x{order}f")

    engine = place.engine().register(Saga("fragile", dlq=True).step("print", fails, attempts=1).build())
    for order in (1, 2, 33, 9):
        engine.start("fragile", {"order": order})
    engine.drain()
    groups = engine.dead_letters.groups()
    assert ([each.count for each in groups.items], groups.is_complete) == ([3, 1], True)
    assert "33" in groups.items[0].error
    with pytest.raises(NotFoundError, match="nothing of this name"):
        engine.dead_letters.groups(definition="other")
    with pytest.raises(ForbiddenError):
        acting(engine).dead_letters.groups()


@pytest.mark.parametrize("name", [" ann", "ann ", "role:fin", "user:ann", " "])
def test_a_key_acts_under_a_bare_name(place: Place, name: str) -> None:
    """Nobody reads its name as that of another one, or of a role."""
    engine = place.engine()
    with pytest.raises(PayloadError, match="actor"):
        engine.as_tenant("acme").keys.create("shop", actor=name)
    assert engine.as_tenant("acme").keys.list() == []
