"""Who may what, of every route: the table of routes is the table of these tests, so that no route is forgotten."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import httpx
import pytest

from api.addresses import GHOSTS, name, sent, things
from api.world import ACME, NORTH, RIVAL, SOUTH, TRACE, World, furnished, problem
from standfast.http.requests.routing import Route
from standfast.http.routes import ROUTES
from standfast.http.wire.options import ROLES
from standfast.kernel.actor import Actor

GUARDED = [route for route in ROUTES if not route.is_public]
STREAMS = "text/event-stream"
PERMISSIONS = sorted({route.permission for route in GUARDED if route.permission})
NO_CREDENTIAL = "the request has no credential that holds"
MUST_BE_MISSING = {
    "run",
    "task",
    "process",
    "letter",
    "event",
    "pause",
    "key",
    "session",
    "notification",
    "chain",
    "definition",
    "batch",
    "document",
    "draft",
    "charter",
    "message",
}
"""What looks as if it did not exist, to whoever it does not belong to."""


class Scene(NamedTuple):
    """A world and what acme has in it."""

    world: World
    made: Mapping[str, str]


@pytest.fixture(scope="module")
def scene(world: World) -> Scene:
    """Something of everything, which no test of this module changes."""
    return Scene(world, {**GHOSTS, **furnished(world)})


def standing(scene: Scene) -> object:
    """How everything of acme stands."""
    calls = scene.world.engine.as_tenant(ACME)
    runs = [(each.id, each.updated_at, each.status) for each in calls.runs.list().items]
    people = (calls.directory.list(), calls.directory.changes())
    kept = (calls.schedules.list(), calls.batches.list())
    held = (calls.pauses.list(with_ended=True), calls.dead_letters.list(), calls.events.list(), calls.inbox.list())
    papers = (
        calls.documents.list(scene.made["type"]),
        calls.bodies.versions(scene.made["type"]),
        calls.bodies.drafts(),
    )
    said = (calls.contracts.list(), calls.charters.list(), calls.chains.list(), calls.definitions.list())
    return (runs, people, held, calls.keys.get(scene.made["key"]), kept, papers, said)


class Wrong(list[str]):
    """Routes that did otherwise than they should: each test lists all of them at once."""

    def note(self, route: Route, answer: httpx.Response, *, unless: bool) -> None:
        """Write a route down, with what it said."""
        if not unless:
            self.append(f"{name(route)}: {answer.status_code} {answer.text[:200]}")


def test_the_table_is_sound() -> None:
    """No two routes are one, every handler is one route's, and every route says what it takes: a permission, or why none."""
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    paths = list(dict.fromkeys(route.path for route in ROUTES))
    for place, path in enumerate(paths):  # Of two addresses that fit the first is meant, whatever the method.
        hidden = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))
        assert not [each for each in paths[place + 1 :] if re.fullmatch(hidden, each)], path
    own = ["GET /api/v1/me", "GET /api/v1/session", "DELETE /api/v1/session"]
    assert [name(route) for route in GUARDED if not route.permission] == own
    logins = {"POST /api/v1/session"} | {
        f"GET /api/v1/session/{each}" for each in ("ways", "login/{provider}", "callback/{provider}")
    }
    public = {"GET /healthz", "GET /readyz", "GET /openapi.json", "POST /hooks/{hook}"} | logins
    assert {name(route) for route in ROUTES if route.is_public} == public


def masked(answer: httpx.Response, route: Route, made: Mapping[str, str]) -> tuple[int, str, list[tuple[str, str]]]:
    """An answer about something as it would be about what nobody has."""
    text = answer.text
    for what in (*things(route), "run", "type"):
        text = text.replace(made[what], GHOSTS[what])
    text = re.sub('"instance":"[^"]+"', '"instance":"new"', text)  # What is made has an id of its own.
    varying = {"traceparent", "content-length", "location", "etag"}  # A tag is a hash of what is told, names included.
    return answer.status_code, text, [each for each in answer.headers.items() if each[0] not in varying]


@pytest.mark.row("P-158", "R-072")
def test_nobody_comes_in_without_a_credential(scene: Scene) -> None:
    """Without a credential, or with one that is none, every route says 401 and nothing else, whatever it is asked about."""
    wrong = Wrong()
    clients = [scene.world.bearer(secret) for secret in ("", "sf_nonsense", "sf_00_00", "a.b.c")]
    for route in GUARDED:
        for answer in (sent(client, route, named) for client in clients for named in (scene.made, GHOSTS)):
            is_right = answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
            wrong.note(route, answer, unless=is_right and problem(answer)["detail"] == NO_CREDENTIAL)
    assert not wrong


def test_conditions_mean_the_same_everywhere(scene: Scene) -> None:
    """A route makes sure of one version or refuses `If-Match`; nothing that changes something overlooks `If-None-Match`."""
    before, wrong = standing(scene), Wrong()
    client = scene.world.client()
    for route in (each for each in GUARDED if each.method != "GET" and each.reach != "platform"):
        known = {"condition_unsupported"} if not route.takes_condition else {"bad_header", "VALIDATION_ERROR"}
        for condition, codes in (
            ({"if-match": '"v1", "v2"'}, known),
            ({"if-none-match": "*"}, {"condition_unsupported"}),
        ):
            answer = sent(client, route, scene.made, headers=condition)
            wrong.note(route, answer, unless=answer.status_code == 400 and problem(answer)["code"] in codes)
    assert not wrong
    assert standing(scene) == before


@pytest.mark.row("R-098", "R-099", "R-100", "R-067", "R-068", "P-156", "C-44", "G-13")
def test_every_route_takes_its_permission(scene: Scene) -> None:
    """Who has every permission but that of the route is refused with its name, before anything is looked at, and it is on record."""
    before, wrong = standing(scene), Wrong()
    for route in GUARDED:
        if not route.permission:
            continue
        client = scene.world.client(capabilities=[each for each in PERMISSIONS if each != route.permission])
        for answer in (sent(client, route, named) for named in (scene.made, GHOSTS)):
            is_refused = answer.status_code == 403 and problem(answer)["code"] in {"not_permitted", "FORBIDDEN"}
            wrong.note(route, answer, unless=is_refused and repr(route.permission) in problem(answer)["detail"])
        kept = scene.world.engine.as_tenant(ACME).refusals.list(limit=1)[0]
        assert (kept.actor, kept.method, kept.code) == ("ann", route.method, "not_permitted")
    assert not wrong
    assert standing(scene) == before


def test_roles_are_what_they_stand_for(scene: Scene) -> None:
    """Who has a role is let through exactly where the capabilities of the role hold the permission of the route."""
    wrong = Wrong()
    for role, capabilities in ROLES.items():
        client = scene.world.client(actor="role-holder", capabilities=(), roles=(role,))
        holder = Actor(id="x", capabilities=capabilities)
        for route in GUARDED:
            if route.media_type == STREAMS:
                continue
            answer = sent(client, route, {**GHOSTS, "person": "ghost-of-role", "schedule": "ghost-of-role"})
            is_refused = answer.status_code == 403 and "lacks the permission" in answer.text
            wrong.note(route, answer, unless=is_refused != holder.may(route.permission) and answer.status_code < 500)
    assert not wrong


@pytest.mark.row("P-064", "P-158", "E-576", "EC-25", "EH-11")
@pytest.mark.row("G-14")
def test_another_tenant_sees_nothing_there(scene: Scene) -> None:
    """What acme has looks to its rival, who may do everything, exactly as what nobody has: the same bytes, and 404 where it must be there."""
    before, wrong, rival = standing(scene), Wrong(), scene.world.client(tenant=RIVAL, actor="eve")
    for route in GUARDED:
        if not things(route):
            continue
        there, nowhere = (sent(rival, route, named, headers=TRACE) for named in (scene.made, GHOSTS))
        wrong.note(route, there, unless=masked(there, route, scene.made) == masked(nowhere, route, GHOSTS))
        named = set(things(route)) - {"step", "type"}
        if named and MUST_BE_MISSING.issuperset(named):
            wrong.note(
                route, there, unless=there.status_code == 404 or (route.method != "GET" and there.status_code == 422)
            )
    assert not wrong
    assert standing(scene) == before


@pytest.mark.row("P-158", "EC-25")
def test_another_partition_sees_nothing_there(scene: Scene) -> None:
    """What is in the north looks to whoever is bound to the south exactly as what nobody has."""
    before, wrong, south = standing(scene), Wrong(), scene.world.client(actor="sue", partition=SOUTH)
    ghosts = {**GHOSTS, "type": scene.made["type"]}  # A type is of the whole tenant.
    for route in GUARDED:
        if route.reach == "run":
            there, nowhere = (sent(south, route, named, headers=TRACE) for named in (scene.made, ghosts))
            wrong.note(route, there, unless=masked(there, route, scene.made) == masked(nowhere, route, ghosts))
            # Whoever is named to decide in the place of others is looked up first.
            is_about_people = there.status_code == 422 and problem(there)["code"] in {
                "unknown_person",
                "role_of_nobody",
            }
            wrong.note(route, there, unless=there.status_code == 404 or is_about_people)
    assert not wrong
    assert standing(scene) == before


def test_what_spans_more_is_refused_to_less(scene: Scene) -> None:
    """What is about a whole tenant is refused to whoever is bound to a part of it; what is about all tenants, to every other tenant."""
    before, wrong = standing(scene), Wrong()
    south, acme = scene.world.client(actor="sue", partition=SOUTH), scene.world.client()
    part = scene.world.client(tenant=scene.world.engine.futures.request.tenant, actor="pat", partition=SOUTH)
    for route in GUARDED:
        if route.reach == "tenant":
            answer = sent(south, route, scene.made)
            wrong.note(route, answer, unless="partition_bound" in answer.text and answer.status_code == 403)
        elif route.reach == "platform":
            for answer in (sent(client, route, scene.made) for client in (south, acme, part)):
                wrong.note(route, answer, unless="platform_only" in answer.text and answer.status_code == 403)
    assert not wrong
    assert standing(scene) == before


@pytest.mark.row("P-153", "E-576", "EH-11")
def test_lists_hold_nothing_of_others(scene: Scene) -> None:
    """No list of the rival, or of the south, shows anything of acme in the north."""
    wrong, rival = Wrong(), scene.world.client(tenant=RIVAL, actor="eve")
    south = scene.world.client(actor="sue", partition=SOUTH)
    marks = [scene.made["run"], scene.made["process"], scene.made["event"]]
    for route in GUARDED:
        if things(route) or route.method != "GET" or route.media_type == STREAMS or route.reach == "platform":
            continue
        for client in (rival, south) if route.reach == "own" else (rival,):
            answer = sent(client, route, scene.made)
            shows = [mark for mark in marks if mark in answer.text] or (client is rival and "of acme" in answer.text)
            wrong.note(route, answer, unless=answer.status_code == 200 and not shows)
    assert not wrong


def test_the_north_sees_its_own(scene: Scene) -> None:
    """Who is bound to the north finds its runs, by id and in the list; who is of the whole tenant finds them too; the south does not."""
    run = scene.made["run"]
    for client in (scene.world.client(actor="nora", partition=NORTH), scene.world.client()):
        assert client.get(f"/api/v1/executions/{run}").status_code == 200
        assert run in client.get("/api/v1/executions").text
    south = scene.world.client(actor="sue", partition=SOUTH)
    assert run not in south.get("/api/v1/executions").text
    for query in ("mine=false", "role=approver"):
        assert south.get(f"/api/v1/tasks?{query}").json()["items"] == []


NOTHING_TO_DO = {
    # What only looks, and what finds nothing to do in this world.
    "POST /api/v1/definitions/validate", "POST /api/v1/definitions/files/validate", "POST /api/v1/definitions/files/diff",
    "POST /api/v1/definitions/files/dry-run", "POST /api/v1/definitions/{name}/dry-run", "POST /api/v1/tasks/decide",
    "POST /api/v1/documents/{type}/{document}/check-edit", "POST /api/v1/body-checks", "POST /api/v1/bodies/{type}/dry-run",
    "POST /api/v1/body-compilations", "POST /api/v1/bodies/{type}/move", "POST /api/v1/contract-compilations", "POST /api/v1/contract-checks",
    "POST /api/v1/charters/refresh", "POST /api/v1/invariants/documents/{id}/repair", "POST /api/v1/instances/sent-effects",
    "POST /api/v1/documents/{type}/{document}/redact", "POST /api/v1/contracts", "DELETE /api/v1/session",
}  # fmt: skip


@pytest.mark.row("P-158", "E-572")
@pytest.mark.parametrize("end", ["key revoked", "deactivated"])
def test_a_credential_that_the_server_remembers_does_nothing_once_it_has_ended(scene: Scene, end: str) -> None:
    """A server that has not heard yet that a key was revoked, or its holder deactivated, changes nothing for it: the commit refuses."""
    calls, actor = scene.world.engine.as_tenant(ACME), end.replace(" ", "-")
    calls.directory.put(actor)
    for partition in ("", NORTH):
        made = calls.keys.create(
            "k", actor=actor, kind="user", capabilities=["*"], roles=["approver"], partition=partition
        )
        client = scene.world.bearer(made.secret)
        assert client.get("/api/v1/me").status_code == 200
        if end == "deactivated":
            calls.directory.deactivate(actor)
        else:
            calls.keys.revoke(made.key)
        before, wrong = standing(scene), Wrong()
        for route in GUARDED:
            if route.method != "GET" and name(route) not in NOTHING_TO_DO:
                answer = sent(client, route, scene.made)
                wrong.note(route, answer, unless=not answer.is_success)
        assert not wrong
        assert standing(scene) == before
        calls.directory.activate(actor)
