"""Values that nobody means, listed as data: each is refused as the client's mistake, or leads to what is there, wherever it stands."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import pytest

from api.addresses import GHOSTS, address, name, things
from api.world import World, furnished
from standfast.http.routes import ROUTES
from standfast.http.wire.paging import written

WHEN, WHO = "2030-01-01T12:00:00Z", "0193a2b4-0000-7000-8000-00000000dead"
SHAPES: dict[str, object] = {
    "nothing": None,
    "yes": True,
    "zero": 0,
    "one": 1,
    "below zero": -1,
    "the last number of databases": 2**63 - 1,
    "one more": 2**63,
    "the first number of databases": -(2**63),
    "beyond all": 2**200,
    "a fraction": 0.5,
    "a very large fraction": 1e308,
    "an empty text": "",
    "a text": "x",
    "a text with a NUL": "x\0y",
    "a text that is a pattern": "%",
    "a text that is SQL": "' or 1=1 --",
    "a long text": "x" * 700,
    "a letter beyond the first plane": "\U0001f600",
    "an id": WHO,
    "an id in capitals": WHO.upper(),
    "an id in braces": f"{{{WHO}}}",
    "a time": WHEN,
    "a time and an id": [WHEN, WHO],
    "an id and a time": [WHO, WHEN],
    "a time without a zone, and an id": ["2030-01-01T12:00:00", WHO],
    "the first time and an id": ["0001-01-01T00:00:00Z", WHO],
    "the last time and an id": ["9999-12-31T23:59:59.999999Z", WHO],
    "a time before the first, and an id": ["0001-01-01T00:00:00+23:59", WHO],
    "a time behind the last, and an id": ["9999-12-31T23:59:59-23:59", WHO],
    "a time and a number": [WHEN, 1],
    "a time and a number beyond all": [WHEN, 2**70],
    "a time and a number below zero": [WHEN, -1],
    "a time, an id and a number": [WHEN, WHO, 1],
    "a time, an id and a number below zero": [WHEN, WHO, -1],
    "a time, an id and a number beyond histories": [WHEN, WHO, 2**31],
    "a time, an id and a number beyond databases": [WHEN, WHO, 2**63],
    "a time, an id and a number beyond all": [WHEN, WHO, 2**70],
    "a name and a version": ["x", "1"],
    "a name and a number": ["x", 1],
    "a name and a number beyond all": ["x", 2**70],
    "names with a NUL": ["x\0", "y\0"],
    "three names": ["x", "y", "z"],
    "an empty list": [],
    "a list of nothing": [None, None],
    "a list in a list": [[[]]],
    "an object": {"tenant": "acme"},
    "an empty object": {},
}
"""What a cursor may hold that somebody has made up."""
TEXTS: dict[str, str] = {
    "a NUL": "a\0b",
    "a number beyond all": str(2**70),
    "an id with a number beyond all": f"{WHO}:{2**70}",
    "a time before all": "0001-01-01T00:00:00+23:59",
    "a time behind all": "9999-12-31T23:59:59-23:59",
    "a very long text": "x" * 5000,
}
"""What stands in an address where something else is meant."""
LISTS = [each for each in ROUTES if each.method == "GET" and "cursor" in each.query.__struct_fields__]


@pytest.fixture(scope="module")
def made(world: World) -> Mapping[str, str]:
    """Something of everything."""
    return {**GHOSTS, **furnished(world)}


@pytest.mark.row("P-157")
@pytest.mark.parametrize("case", TEXTS)
def test_no_text_in_an_address_breaks_the_server(world: World, made: Mapping[str, str], case: str) -> None:
    """Whatever stands in the place of a parameter or of a part of the path, of whichever route, no database fails on it."""
    text, wrong = quote(TEXTS[case], safe=""), []
    root = world.client(tenant="default", actor="root")
    for route in ROUTES:
        if route.media_type == "text/event-stream":
            continue
        client = (
            root if route.reach == "platform" else world.client(partition="" if route.reach == "tenant" else "north")
        )
        where = address(route, made)
        asked = [f"{where}{'&' if '?' in where else '?'}{each}={text}" for each in route.query.__struct_fields__]
        if route.method != "GET":
            asked = []
        asked += [address(route, {**made, thing: text}) for thing in things(route)]
        body = {"json": {} if route.example is None else route.example} if route.body is not None else {}
        for each in asked:
            answer = client.ask(route.method, each, **body)
            if answer.status_code >= 500:
                wrong.append(f"{name(route)}: {answer.status_code} {each[:200]}")
    assert not wrong


@pytest.mark.row("P-157")
@pytest.mark.parametrize("shape", SHAPES)
def test_no_cursor_breaks_a_list(world: World, made: Mapping[str, str], shape: str) -> None:
    """Whatever a cursor holds, it is the client's mistake or a place behind which there is a page; no database fails on it."""
    client, cursor, wrong = world.client(partition="north"), written(SHAPES[shape]), []
    whole = world.client()
    for route in LISTS:
        for one in (client, whole):
            where = address(route, made)
            answer = one.get(f"{where}{'&' if '?' in where else '?'}cursor={cursor}")
            if answer.status_code >= 500 or answer.status_code == 401:
                wrong.append(f"{name(route)}: {answer.status_code} {answer.text[:200]}")
    assert not wrong
