"""Browsers: how people come in, what their pages have to say, and that no page of another site gets anything done in their name."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from api.providers import CLIENT, SECRET, Provider, provider
from api.tokens import issuer
from api.world import ACME, GENEROUS, World, problem, registered
from standfast import ConfigurationError
from standfast.http import HttpOptions, LoginProvider, create_app
from standfast.http.auth import login as logins
from standfast.testing import ManualEngine

SESSION, LOGIN = "/api/v1/session", "/api/v1/session/login/company"
RUNS = "/api/v1/executions"
SECURE = "https://standfast.test"


def key_of(world: World, *capabilities: str, **more: Any) -> str:
    """The secret of a new key of acme."""
    calls = world.engine.as_tenant(ACME).keys
    return calls.create("page", actor="ann", kind="user", capabilities=capabilities or ("*",), **more).secret


def came_in(world: World, secret: str = "", **more: Any) -> tuple[httpx.Response, dict[str, str]]:
    """The answer to somebody who comes in with a key, and the headers that their pages send afterwards."""
    answer = world.bearer().post(SESSION, {"key": secret or key_of(world)}, **more)
    kept = answer.headers.get("set-cookie", "").partition(";")[0]
    csrf = answer.json().get("csrf", "") if answer.status_code == 201 else ""
    return answer, {"cookie": kept, "x-csrf-token": csrf}


def test_a_page_comes_in_with_a_key(world: World) -> None:
    """The session is kept by the browser alone, where no script reads it; with it the page may what the key may, and no more."""
    answer, headers = came_in(world, key_of(world, "execution:read", "execution:start"))
    assert answer.status_code == 201
    kept = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} <= set(kept.split("; "))
    assert "Secure" not in kept
    assert headers["cookie"].partition("=")[2] not in answer.text
    client = world.bearer()
    told = client.get(SESSION, headers=headers).json()
    assert (told["me"]["id"], told["me"]["tenant"], told["csrf"]) == ("ann", ACME, headers["x-csrf-token"])
    assert told["me"]["credential"].startswith("session:")
    started = client.post(RUNS, {"definition": "order"}, headers=headers)
    assert started.status_code == 201
    refused = client.post(f"{RUNS}/{started.json()['id']}/cancel", {}, headers=headers)
    assert (refused.status_code, problem(refused)["code"]) == (403, "not_permitted")


def test_by_https_the_cookie_belongs_to_this_host_alone(world: World) -> None:
    """By https its name begins with `__Host-` and it is never sent in the clear; one of another name is none."""
    client = world.bearer()
    answer = client.post(f"{SECURE}{SESSION}", {"key": key_of(world)})
    kept = answer.headers["set-cookie"]
    assert kept.startswith("__Host-standfast=")
    assert "Secure" in kept.split("; ")
    assert "strict-transport-security" in answer.headers
    secret = kept.partition("=")[2].partition(";")[0]
    assert client.get(f"{SECURE}{SESSION}", headers={"cookie": f"__Host-standfast={secret}"}).status_code == 200
    assert client.get(f"{SECURE}{SESSION}", headers={"cookie": f"standfast={secret}"}).status_code == 401


@pytest.mark.parametrize(
    "change",
    [
        {"x-csrf-token": None},
        {"x-csrf-token": "guessed"},
        {"x-csrf-token": "é"},
        {"origin": "https://evil.test"},
        {"origin": "null"},
        {"origin": "http://standfast.test.evil.test"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_page_of_another_site_gets_nothing_done(world: World, change: dict[str, str | None]) -> None:
    """A request that came with the cookie, but without the token or from another origin, changes nothing."""
    _, headers = came_in(world)
    before = world.bearer().get(RUNS, headers=headers).text
    spoilt = {name: value for name, value in {**headers, **change}.items() if value is not None}
    raw = {name.encode(): value.encode() for name, value in spoilt.items()}
    answer = world.bearer().ask("POST", RUNS, json={"definition": "order"}, headers=raw)
    assert (answer.status_code, problem(answer)["code"]) == (403, "cross_site")
    assert world.bearer().get(RUNS, headers=headers).text == before


def test_looking_needs_no_token_but_its_own_page(world: World) -> None:
    """A page looks with its cookie alone; what another site asks for, a browser here is not given."""
    _, headers = came_in(world)
    alone = {"cookie": headers["cookie"]}
    assert world.bearer().get(RUNS, headers=alone).status_code == 200
    assert world.bearer().get(RUNS, headers={**alone, "sec-fetch-site": "none"}).status_code == 200
    assert world.bearer().get(RUNS, headers={**alone, "sec-fetch-site": "cross-site"}).status_code == 403


def test_nobody_else_comes_in(world: World) -> None:
    """What is no key, or one that does not hold, opens no session; the same words for all, and no cookie."""
    revoked = world.engine.as_tenant(ACME).keys.create("gone", actor="ann")
    world.engine.as_tenant(ACME).keys.revoke(revoked.key)
    _, headers = came_in(world)
    own = headers["cookie"].partition("=")[2]
    for secret in ("", "nonsense", "sf_", "sf_00_00", revoked.secret, own, "sf_" + "x" * 10_000):
        answer = world.bearer().post(SESSION, {"key": secret})
        assert (answer.status_code, problem(answer)["detail"]) == (401, "the login did not succeed")
        assert "set-cookie" not in answer.headers
    foreign = world.bearer().post(SESSION, {"key": key_of(world)}, headers={"origin": "https://evil.test"})
    assert problem(foreign)["code"] == "cross_site"
    assert world.bearer(own).get(RUNS).status_code == 401  # A session is a browser's, and no credential of programs.
    for cookie in (
        f"standfast={own[:-1]}",
        f"standfast={own}; standfast={own}",
        "standfast=",
        "standfast=sfs_00_00",
        "other=1",
    ):
        assert world.bearer().get(RUNS, headers={"cookie": cookie}).status_code == 401


def test_a_session_ends(world: World) -> None:
    """By leaving, by whoever looks after keys, and with the key that opened it; what was its secret opens nothing any more."""
    client = world.bearer()
    _, left = came_in(world)
    answer = client.ask("DELETE", SESSION, headers=left)
    assert answer.status_code == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert client.get(RUNS, headers=left).status_code == 401
    _, sent_away = came_in(world)
    identity = client.get(SESSION, headers=sent_away).json()["me"]["credential"].removeprefix("session:")
    boss = world.client(actor="boss", capabilities=("keys:manage",))
    assert identity in boss.get("/api/v1/sessions?actor=ann&limit=500").text
    assert boss.ask("POST", f"/api/v1/sessions/{identity}/end").json()["ended_at"] is not None
    assert client.get(RUNS, headers=sent_away).status_code == 401
    made = world.engine.as_tenant(ACME).keys.create("page", actor="ann", capabilities=["*"])
    _, bound = came_in(world, made.secret)
    assert client.get(RUNS, headers=bound).status_code == 200
    boss.ask("POST", f"/api/v1/keys/{made.key.id}/revoke")
    assert client.get(RUNS, headers=bound).status_code == 401


def test_leaving_ends_the_session_whichever_part_the_page_looks_at(world: World) -> None:
    """A page that names a part of the tenant with all that it asks for, or that is bound to one, leaves like any other."""
    bound = world.engine.as_tenant(ACME).keys.create("page", actor="nora", capabilities=("*",), partition="north")
    for _, headers in (came_in(world), came_in(world, bound.secret)):
        narrowed = {**headers, "standfast-partition": "north"}
        assert world.bearer().get(RUNS, headers=narrowed).status_code == 200
        left = world.bearer().ask("DELETE", SESSION, headers=narrowed)
        assert (left.status_code, "Max-Age=0" in left.headers["set-cookie"].split("; ")) == (204, True), left.text
        assert world.bearer().get(RUNS, headers=headers).status_code == 401


def test_a_session_ends_by_itself(world: World) -> None:
    """When nobody uses it for a while, and after a day's work however much it is used."""
    other = World(world.engine, replace(GENEROUS, credential_memory=timedelta(0)))
    (_, idle), (_, used) = came_in(other), came_in(other)
    for _ in range(14):
        assert other.bearer().get(SESSION, headers=used).status_code == 200
        world.engine.advance(minutes=50)
    assert other.bearer().get(SESSION, headers=idle).status_code == 401
    assert other.bearer().get(SESSION, headers=used).status_code == 200
    world.engine.advance(minutes=25)
    assert other.bearer().get(SESSION, headers=used).status_code == 401
    other.close()


# -- by a provider


@pytest.fixture(scope="module")
def company() -> Iterator[Provider]:
    """Somebody who vouches for people."""
    with provider() as made:
        yield made


@pytest.fixture
def vouched(company: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world whose server lets people in by the provider."""
    monkeypatch.setenv("LOGIN_SECRET", SECRET)
    company.claims, company.says = {"sub": "ann", "tenant": "acme", "roles": ["viewer"]}, {}
    trusted = issuer(tmp_path, issuer=company.address, audience=CLIENT)
    way = LoginProvider(name="company", label="Our company", issuer=trusted, client_secret="env:LOGIN_SECRET")
    engine = ManualEngine()
    registered(engine)
    world = World(engine, replace(GENEROUS, logins=(way,), uses_directory=True))
    yield world
    world.close()
    engine.stop()


def gone(world: World, path: str = LOGIN) -> tuple[httpx.Response, str]:
    """Whoever has been sent to the provider: the answer, and the cookie that they keep meanwhile."""
    answer = world.bearer().get(path)
    return answer, answer.headers.get("set-cookie", "").partition(";")[0]


def back(answer: httpx.Response) -> str:
    """Where the provider sends the browser back to."""
    return httpx.get(answer.headers["location"]).headers["location"]


def test_people_come_in_by_somebody_who_vouches_for_them(vouched: World, company: Provider) -> None:
    """The browser is sent away and comes back as whom the provider names, with the rights that their roles stand for."""
    ways = vouched.bearer().get(f"{SESSION}/ways").json()
    assert ways == {"providers": [{"name": "company", "label": "Our company", "path": LOGIN}], "is_open": False}
    answer, cookie = gone(vouched, f"{LOGIN}?return_to=/runs?status=failed")
    assert answer.status_code == 303
    assert {"HttpOnly", "SameSite=Lax", "Max-Age=600"} <= set(answer.headers["set-cookie"].split("; "))
    home = vouched.bearer().get(back(answer), headers={"cookie": cookie})
    assert (home.status_code, home.headers["location"]) == (303, "/runs?status=failed")
    asked = company.asked[-1]
    assert (asked["response_type"], asked["client_id"], asked["code_challenge_method"]) == ("code", CLIENT, "S256")
    session, login = home.headers.get_list("set-cookie")
    assert login.startswith("standfast-login=;")
    assert "SameSite=Strict" in session
    told = vouched.bearer().get(SESSION, headers={"cookie": session.partition(";")[0]}).json()
    assert (told["me"]["id"], told["me"]["tenant"], told["me"]["roles"]) == ("ann", "acme", ["viewer"])
    assert "execution:read" in told["me"]["capabilities"]
    people = vouched.engine.as_tenant("acme").directory
    people.put("ann")
    people.deactivate("ann")
    vouched.engine.advance(minutes=1)
    fresh = World(vouched.engine, replace(GENEROUS, uses_directory=True))
    assert fresh.bearer().get(SESSION, headers={"cookie": session.partition(";")[0]}).status_code == 401
    fresh.close()


def test_whoever_came_in_has_the_roles_that_the_directory_gives_them_now(vouched: World, company: Provider) -> None:
    """A role that is taken away in the directory is gone from open sessions too, and one that is given is there; what the token said stays."""
    people, door = vouched.engine.as_tenant("acme").directory, vouched.app.state.server.door
    people.put("ann")
    people.grant("ann", "administrator")
    answer, cookie = gone(vouched)
    home = vouched.bearer().get(back(answer), headers={"cookie": cookie})
    kept = {"cookie": home.headers.get_list("set-cookie")[0].partition(";")[0]}

    def roles() -> tuple[list[str], bool]:
        door.forget()
        me = vouched.bearer().get(SESSION, headers=kept).json()["me"]
        return me["roles"], "*" in me["capabilities"]

    assert roles() == (["administrator", "viewer"], True)
    people.revoke("ann", "administrator")
    assert roles() == (["viewer"], False)
    people.grant("ann", "operator")
    assert roles() == (["operator", "viewer"], False)
    assert company.redeemed


def test_a_login_counts_in_its_own_browser_and_once(vouched: World, company: Provider) -> None:
    """Without the cookie, with that of another login, with another state, or a second time, nobody comes in."""
    answer, cookie = gone(vouched)
    where = back(answer)
    _, other = gone(vouched)
    wrong = [
        vouched.bearer().get(where),
        vouched.bearer().get(where, headers={"cookie": other}),
        vouched.bearer().get(where, headers={"cookie": "standfast-login=nonsense"}),
        vouched.bearer().get(where.replace("state=", "state=x"), headers={"cookie": cookie}),
        vouched.bearer().get(f"{where.partition('?')[0]}?error=access_denied&state=x", headers={"cookie": cookie}),
        vouched.bearer().get(where.replace("code=", "code=x"), headers={"cookie": cookie}),
    ]
    assert [(each.status_code, "set-cookie" in each.headers) for each in wrong] == [(401, False)] * len(wrong)
    before = company.redeemed
    assert vouched.bearer().get(where, headers={"cookie": cookie}).status_code == 303
    assert vouched.bearer().get(where, headers={"cookie": cookie}).status_code == 401
    assert company.redeemed == before + 1


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "of another login"},
        {"nonce": None},
        {"aud": "somebody else"},
        {"exp": 1},
        {"iss": "https://evil.test"},
        {"sub": None},
        {"tenant": None},
    ],
)
def test_a_token_that_does_not_hold_lets_nobody_in(vouched: World, company: Provider, claims: dict[str, Any]) -> None:
    """A token of another login, for somebody else, out of date, or that names nobody: refused in the same words."""
    company.claims = {**company.claims, **claims}
    answer, cookie = gone(vouched)
    refused = vouched.bearer().get(back(answer), headers={"cookie": cookie})
    assert (refused.status_code, problem(refused)["detail"]) == (401, "the login did not succeed")
    assert "set-cookie" not in refused.headers


@pytest.mark.parametrize(
    "path",
    ["//evil.test", "https://evil.test", "/\\evil.test", "evil", "", "/a\tb", "/a b", "/\u202e", "/" + "x" * 600],
)
def test_a_login_leads_nowhere_else(vouched: World, path: str) -> None:
    """Where the browser is sent afterwards is a path of this server."""
    answer = vouched.bearer().get(LOGIN, params={"return_to": path})
    assert (answer.status_code, problem(answer)["code"]) == (400, "bad_query")


@pytest.mark.parametrize("path", ["https://evil.test", "//evil.test", "/\r\nset-cookie: x=1", "/é\u202e", ""])
def test_a_cookie_of_another_leads_nowhere_else(vouched: World, path: str) -> None:
    """Whoever can set the cookie of a login, such as a host nearby without https, does not send the browser to another site with it."""
    answer, cookie = gone(vouched)
    pending = logins.read(cookie.partition("=")[2])
    assert pending is not None
    forged = f"standfast-login={logins.written(replace(pending, return_to=path))}"
    home = vouched.bearer().get(back(answer), headers={"cookie": forged})
    assert (home.status_code, problem(home)["detail"]) == (401, "the login did not succeed")
    assert not {"location", "set-cookie"} & set(home.headers)


def test_a_provider_that_is_not_itself_is_not_asked(vouched: World, company: Provider) -> None:
    """One that says to be another, or leads to an address in the clear, or is not there, is refused before the browser goes."""
    for says in (
        {"issuer": "https://evil.test"},
        {"token_endpoint": "http://evil.test/token"},
        {"authorization_endpoint": "ftp://x"},
    ):
        company.says = says
        answer = vouched.bearer().get(LOGIN)
        assert (answer.status_code, problem(answer)["code"]) == (503, "provider_unreachable")
    assert vouched.bearer().get("/api/v1/session/login/nobody").status_code == 404


def test_providers_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    """Two of one name, a secret in the clear, an address that is not https, sessions without end."""
    sound = LoginProvider(name="company", issuer=issuer(tmp_path))
    for options in (
        HttpOptions(logins=(sound, sound)),
        HttpOptions(logins=(replace(sound, client_secret="in the clear"),)),
        HttpOptions(logins=(replace(sound, token="http://evil.test"),)),
        HttpOptions(logins=(sound,), public_address="http://evil.test"),
        HttpOptions(session_idle=timedelta(days=2)),
        HttpOptions(session_lifetime=timedelta(days=400)),
    ):
        with pytest.raises(ConfigurationError):
            create_app(ManualEngine(), options)
