"""Contracts that differ in their lifecycles from the shared one: none that is published lets anybody bring a document where the shared one does not."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import chain, combinations, product
from typing import Any

import msgspec
import pytest

from standfast import Actor, DefinitionError, RequestContext
from standfast.app.api.sync import Calls
from standfast.testing import ManualEngine

Contract = dict[str, Any]

SHARED: Contract = {
    "entity_type": "bill",
    "version": 1,
    "replaceable": True,
    "fields": {"total": {"type": "money"}},
    "lifecycle": {
        "version": 1,
        "initial": "draft",
        "terminal": ["cancelled", "paid"],
        "amended": "draft",
        "states": {
            "draft": {"window": "editable"},
            "submitted": {"window": "amend_only", "timeout": "30d", "on_timeout": "cancel"},
            "active": {"window": "locked"},
            "paid": {"window": "locked"},
            "cancelled": {"window": "locked"},
        },
        "transitions": [
            {"name": "submit", "from": ["draft"], "to": "submitted", "permission": "submit"},
            {"name": "approve", "from": ["submitted"], "to": "active", "permission": "approve", "on_reject": "draft"},
            {"name": "pay", "from": ["active"], "to": "paid", "permission": "pay"},
            {"name": "cancel", "from": ["draft", "submitted"], "to": "cancelled", "kind": "cancel"},
        ],
    },
    "policies": [{"name": "bosses", "actions": ["bill.approve"], "roles": ["boss"]}],
}
STATUSES = ("draft", "submitted", "active", "paid", "cancelled")
RIGHTS = ("submit", "approve", "pay", "boss")
SAMPLE = 400


def reached(contract: Contract, rights: frozenset[str]) -> set[str]:
    """The statuses that those who have some rights together can bring a document to. What asks nobody happens."""
    life = contract["lifecycle"]
    states, transitions = life["states"], {each["name"]: each for each in life["transitions"]}
    ruled = {action.removeprefix("bill.") for each in contract["policies"] for action in each["actions"]}
    found = {life["initial"], life["amended"], life.get("superseded", life["terminal"][0])}
    while True:
        fresh = {transitions[states[each]["on_timeout"]]["to"] for each in found if "on_timeout" in states[each]}
        for name, each in transitions.items():
            if found.isdisjoint(each["from"]):
                continue
            is_permitted = each.get("permission") in {None, *rights} and (name not in ruled or "boss" in rights)
            if is_permitted or each.get("begins") == "by_itself":
                fresh.add(each["to"])
            fresh |= {each["on_reject"]} if "on_reject" in each else set()
        if fresh <= found:
            return found
        found |= fresh


SETS = [frozenset(some) for some in chain.from_iterable(combinations(RIGHTS, n) for n in range(len(RIGHTS) + 1))]


def lets_more(own: Contract) -> bool:
    """Whether some who have some rights bring a document where they do not bring it by the shared contract."""
    return any(not reached(own, some) & {*STATUSES} <= reached(SHARED, some) for some in SETS)


# -- what is different: where it is, and what is there instead; None means nothing

Change = tuple[tuple[str | int, ...], object]


def changes() -> Iterator[Sequence[Change]]:
    """One change of a lifecycle after the other."""
    life: tuple[str | int, ...] = ("lifecycle",)
    yield from ([((*life, "initial"), each)] for each in STATUSES)
    yield from ([((*life, "superseded"), each)] for each in ("cancelled", "paid"))
    for place, each in enumerate(SHARED["lifecycle"]["transitions"]):
        at: tuple[str | int, ...] = (*life, "transitions", place)
        yield from ([((*at, "permission"), right)] for right in (None, *RIGHTS[:3]))
        yield from ([((*at, "on_reject"), status)] for status in (None, *STATUSES))
        yield from ([((*at, "to"), status)] for status in STATUSES)
        yield from ([((*at, "from"), [*each["from"], status])] for status in STATUSES)
        yield [((*at, "begins"), "by_itself")]
        yield [((*at, "name"), "other")]
    for status, transition in product(STATUSES, (None, "submit", "approve", "pay", "cancel")):
        at = (*life, "states", status)
        yield [((*at, "timeout"), transition and "30d"), ((*at, "on_timeout"), transition)]
    yield [((*life, "states", "submitted", "timeout"), "1s")]
    yield [(("policies", 0, "actions"), ["bill.pay"])]
    for source, target, right in product(STATUSES, STATUSES, (None, *RIGHTS[:3])):
        yield [((*life, "transitions", -1), _transition("more", source, target, right))]
    for source, target in product(STATUSES, STATUSES):
        held = [("hold", source, "held"), ("go_on", "held", target), ("drop", "held", "cancelled")]
        ways: list[Change] = [((*life, "transitions", -1), _transition(*each, None)) for each in held]
        yield [((*life, "states", "held"), {"window": "locked"}), *ways]


def _transition(name: str, source: str, target: str, right: str | None) -> Mapping[str, object]:
    asked = {} if right is None else {"permission": right}
    return {"name": name, "from": [source], "to": target, **asked}


def changed(some: Sequence[Change]) -> Contract:
    """The shared contract with changes."""
    own = deepcopy(SHARED)
    own["version"] = own["lifecycle"]["version"] = 2
    for path, new in some:
        part: Any = own
        for name in path[:-1]:
            part = part[name]
        if path[-1] == -1:
            part.append(new)
        elif new is None:
            part.pop(path[-1], None)
        else:
            part[path[-1]] = new
    return own


SINGLE = list(changes())
DRAWN = random.Random(79)
PAIRS = [[*DRAWN.choice(SINGLE), *DRAWN.choice(SINGLE)] for _ in range(SAMPLE)]


@pytest.fixture(scope="module")
def acme() -> Calls:
    """A tenant, where all share the contract."""
    engine = ManualEngine()
    engine.contracts.publish(msgspec.json.encode(SHARED))
    actor = Actor(id="tim", capabilities=frozenset({"contracts:publish"}))
    return engine.acting(RequestContext(tenant="acme", actor=actor))


def is_refused(acme: Calls, own: Contract) -> bool | None:
    """Whether a contract is refused because of its rights; None if it is none."""
    try:
        found = acme.contracts.check(msgspec.json.encode(own))
    except DefinitionError:
        return None
    return bool(found.problems)


@pytest.mark.row("E-576")
@pytest.mark.parametrize("some", [SINGLE, PAIRS], ids=["one", "two"])
def test_no_contract_lets_more_than_the_shared_one(acme: Calls, some: Sequence[Sequence[Change]]) -> None:
    """Whatever rights some have, together they bring no document to a status of the shared contract that they do not bring it to by that."""
    judged = {True: 0, False: 0}
    for each in some:
        own = changed(each)
        found = is_refused(acme, own)
        if found is not None:
            assert found or not lets_more(own), each
            judged[found] += 1
    assert min(judged.values()) > 10


TIGHTER: Sequence[Sequence[Change]] = [
    [],
    [(("lifecycle", "transitions", 1, "on_reject"), None)],
    [(("lifecycle", "transitions", 1, "on_reject"), "submitted")],
    [(("lifecycle", "transitions", 3, "permission"), "cancel")],
    [(("lifecycle", "transitions", 3, "from"), ["submitted"])],
    [(("lifecycle", "states", "submitted", "timeout"), "60d")],
    [
        (("lifecycle", "states", "submitted", "timeout"), None),
        (("lifecycle", "states", "submitted", "on_timeout"), None),
    ],
    [
        (("lifecycle", "states", "held"), {"window": "locked"}),
        (("lifecycle", "transitions", 1, "from"), ["held"]),
        (("lifecycle", "transitions", -1), _transition("hold", "submitted", "held", None)),
        (("lifecycle", "transitions", -1), _transition("back", "held", "submitted", "submit")),
    ],
]


@pytest.mark.row("E-576")
@pytest.mark.parametrize("some", TIGHTER)
def test_a_contract_that_lets_no_more_is_published(acme: Calls, some: Sequence[Change]) -> None:
    """Ways that are gone, or ask for more, and statuses between those that are shared, are for the tenant to say."""
    assert is_refused(acme, changed(some)) is False
