"""Every parameter of every route changes what the route asks of the engine, or what it answers: none is read and dropped."""

from __future__ import annotations

import asyncio
import re
import types
import typing
from collections.abc import Awaitable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin
from uuid import UUID

import msgspec
import pytest
from starlette.datastructures import Headers

from standfast import Actor, Settings
from standfast.app.api.aio import AsyncCalls
from standfast.app.engine import Engine
from standfast.http import HttpOptions
from standfast.http.auth.authenticator import Identity
from standfast.http.auth.rate_limits import StreamSlots
from standfast.http.requests.routing import Route, RouteCall, RouteResponse
from standfast.http.routes import ROUTES
from standfast.http.wire.paging import written
from support.recording import SOME, STYLES, Recorder, Style, hints_of, is_shape, plain

ANN = Actor(id="ann", capabilities=frozenset({"*"}))
IDENTITY = Identity(tenant="acme", partition="", actor=ANN, credential="key:1")
OWN = {
    "begin_login": "sends a browser to another system",
    "finish_login": "asks another system who somebody is",
    "open_session": "asks the door who somebody is",
}
"""Routes that ask no engine; `test_sessions` has them. Streams have `test_wire`, and what other systems send `test_front_ends`."""
TEXTS = [
    "one",
    "two",
    str(SOME),
    str(SOME)[:-1] + "2",
    "11",
    "12",
    f"{SOME}:1",
    f"{SOME}:2",
    "text",
    "rules:one",
    "rules:two",
]
VALUES: dict[object, list[object]] = {
    bool: [False, True],
    int: [2, 3],
    float: [2.5, 3.5],
    str: list(TEXTS),
    bytes: ["YQ==", "Yg=="],
    datetime: ["2031-01-01T00:00:00Z", "2032-01-01T00:00:00Z"],
    timedelta: ["PT1H", "PT2H"],
    UUID: [str(SOME), str(SOME)[:-1] + "2"],
    object: [{"a": 1}, {"b": 2}, [1], "text"],
    Any: [{"a": 1}, {"b": 2}, [1], "text"],
}
"""Values in JSON, of which at least two must make a difference."""
NOON = "2030-01-01T12:00:00Z"
PLACES: list[object] = [
    *VALUES[UUID],
    *(1, 2, "one", "two", [0, "mark"], [1, "mark"]),
    *([NOON, each] for each in VALUES[UUID]),
    *([NOON, each, 1] for each in VALUES[UUID]),
    *([NOON, each, 1, 1] for each in VALUES[UUID]),
]
NAMED: dict[tuple[str, object], list[object]] = {
    ("cursor", str): [written(each) for each in PLACES],
    ("attribute", list[str]): [["colour=red"], ["colour=blue"]],
}
"""The same for parameters whose type does not tell which values they have."""


def values_of(hint: Any) -> list[object]:
    """Values of a type, as JSON has them, of which each two differ."""
    if hint in VALUES:
        return VALUES[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is typing.Annotated:
        return values_of(arguments[0])
    if isinstance(hint, typing.NewType):
        return values_of(hint.__supertype__)
    if origin in {Union, types.UnionType}:
        return [value for each in arguments if each is not type(None) for value in values_of(each)]
    if origin is Literal:
        return list(arguments)
    if origin is dict:
        return [{"a": value} for value in values_of(arguments[1])]
    if origin in {list, tuple}:
        return [[value] for value in values_of(arguments[0])]
    assert is_shape(hint), f"say which values {hint} has"
    return [least(hint) | {name: value} for name, value in varied(hint)]


def varied(shape: Any) -> Iterator[tuple[str, object]]:
    """The fields of a shape, each with each of its values."""
    for field, values in leaves(shape):
        for value in values:
            yield field.partition(".")[0], value


def leaves(shape: Any) -> Iterator[tuple[str, list[object]]]:
    """The fields of a shape, those inside of other shapes and of lists of them too, with the values that the outermost field has for each."""
    hints = hints_of(shape)
    for each in msgspec.structs.fields(shape):
        hint, several = _within(hints[each.name])
        if is_shape(hint):
            for name, values in leaves(hint):
                made: list[object] = [least(hint) | {name.partition(".")[0]: value} for value in values]
                yield f"{each.encode_name}.{name}", [[value] for value in made] if several else made
        else:
            yield each.encode_name, NAMED.get((each.name, hints[each.name])) or values_of(hints[each.name])


def _within(hint: Any) -> tuple[Any, bool]:
    """What a type is about: one of several, or the one that there is unless it is None; and whether it is several."""
    rest = [each for each in get_args(hint) if each is not type(None)]
    origin = get_origin(hint)
    if origin is typing.Annotated or (origin in {Union, types.UnionType} and len(rest) == 1):
        return _within(rest[0])
    if origin in {list, tuple}:
        return _within(rest[0])[0], True
    return hint, False


def least(shape: Any) -> dict[str, object]:
    """As little as it must have."""
    hints = hints_of(shape)
    return {each.encode_name: values_of(hints[each.name])[0] for each in msgspec.structs.fields(shape) if each.required}


class Given(NamedTuple):
    """What comes with a request."""

    path: dict[str, str]
    query: dict[str, object]
    body: object
    headers: dict[str, str]
    raw: bytes = b""


class Seen(NamedTuple):
    """What came of it."""

    calls: list[tuple[str, dict[str, object]]]
    answer: object
    is_answered: bool

    @property
    def is_of_use(self) -> bool:
        """Whether something was asked, or answered without asking."""
        return self.is_answered or bool(self.calls)


def asked(route: Route, given: Given, style: Style) -> Seen:
    """What a handler asks of the engine, and what it answers."""
    recorder = Recorder("standfast.app.api.", "standfast.app.engine", style=style)
    engine = recorder.of(Engine)
    vars(engine)["settings"] = Settings()
    server = types.SimpleNamespace(
        options=HttpOptions(),
        engine=engine,
        now=lambda: datetime(2030, 1, 1, tzinfo=UTC),
        waits=StreamSlots(1, 1, "requests"),
        hub=types.SimpleNamespace(waited=lambda answer: answer),
    )
    call = RouteCall(
        server=server,  # type: ignore[arg-type]
        calls=recorder.of(AsyncCalls),
        identity=IDENTITY,
        path=given.path,
        query=msgspec.convert(given.query, type=route.query, strict=False),
        body=None if route.body is None else msgspec.convert(given.body, type=route.body),
        raw=given.raw,
        headers=Headers(given.headers),
        trace="",
        scope={"type": "http", "headers": [], "path": "/", "server": ("there.example", 80), "scheme": "http"},
        client="127.0.0.1",
        revisit=_same,
    )
    try:
        answer: object = asyncio.run(_answered(route.handler(call)))
    except Exception as error:  # noqa: BLE001 - whatever it is, what was asked before is seen
        return Seen(recorder.calls, repr(error), is_answered=False)
    return Seen(recorder.calls, answer, is_answered=True)


async def _answered(answer: Awaitable[object]) -> object:
    found = await answer
    if isinstance(found, RouteResponse):
        return plain({"value": found.value, "headers": dict(found.headers)})
    return plain(found)


async def _same() -> Identity:
    return IDENTITY


def bases(route: Route) -> Iterator[Given]:
    """Requests that are understood, if the values in the address are."""
    names = re.findall(r"{(\w+)(?::\w+)?}", route.path)
    ids = {"id": str(SOME)} if "id" in names[:-1] else {}
    bodies: list[object] = [None]
    if route.body is not None:
        example = [] if route.example is None else [msgspec.to_builtins(route.example, enc_hook=str)]
        bodies = [*example, least(route.body)] if is_shape(route.body) else [*example, *values_of(route.body)[:1]]
    for body, text in product(bodies, ("text", str(SOME), "1", f"{SOME}:1", "settings", "rules:one")):
        yield Given(dict.fromkeys(names, text) | ids, least(route.query), body, {"content-type": "application/json"})


def variations(route: Route) -> dict[str, list[tuple[str, str, object]]]:
    """Every parameter of a route by its name: where it stands, its name there, and each of its values."""
    found: dict[str, list[tuple[str, str, object]]] = {}
    for name in re.findall(r"{(\w+)(?::\w+)?}", route.path):
        found[f"path {name}"] = [("path", name, value) for value in TEXTS]
    for name, value in varied(route.query):
        found.setdefault(f"query {name}", []).append(("query", name, value))
    if route.body is not None and is_shape(route.body):
        for name, values in leaves(route.body):
            found[f"body {name}"] = [("body", name.partition(".")[0], value) for value in values]
    if route.takes_condition:
        found["If-Match"] = [("headers", "if-match", f'"v{number}"') for number in (1, 2)]
    if route.texts:
        found["text"] = [("raw", route.texts[0], text) for text in (b"one", b"two")]
    if route.takes_key:
        found["Idempotency-Key"] = [("headers", "idempotency-key", each) for each in ("one", "two")]
    return found


def changed(base: Given, part: str, name: str, value: object) -> Given:
    """A request with another value somewhere."""
    if part == "raw":
        assert isinstance(value, bytes)
        return base._replace(raw=value, headers={"content-type": name})
    return base._replace(**{part: {**getattr(base, part), name: value}})  # type: ignore[arg-type]


def differs(route: Route, changes: list[tuple[str, str, object]]) -> bool:
    """Whether two values of a parameter lead to different calls, or to different answers."""
    for style, base in product(STYLES, bases(route)):
        seen: list[Seen] = []
        for part, name, value in changes:
            try:
                found = asked(route, changed(base, part, name, value), style)
            except msgspec.ValidationError:
                continue
            if found.is_of_use and any(found != each for each in seen):
                return True
            if found.is_of_use:
                seen.append(found)
    return False


ASKING = [
    each for each in ROUTES if each.media_type != "text/event-stream" and not each.is_signed and each.name not in OWN
]


@pytest.mark.row("P-152", "P-153", "R-136")
@pytest.mark.parametrize("route", ASKING, ids=[each.name for each in ASKING])
def test_every_parameter_reaches_the_engine(route: Route) -> None:
    """Two values of any parameter of the address, the query, the body or a header that a route takes lead to different calls of the engine, or to different answers."""
    dropped = [name for name, changes in variations(route).items() if not differs(route, changes)]
    assert not dropped, (route.name, dropped)
