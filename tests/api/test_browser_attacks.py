"""Attacks on browsers and their sessions, listed as data: each is refused with the status that it should be, and leaves nothing behind."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from api import tokens
from api.world import ACME, BASE, GENEROUS, NORTH, RIVAL, World
from standfast.http import LoginProvider
from standfast.http.auth.cookies import csrf_token
from standfast.http.wire.paging import written

SESSION, SESSIONS, RUNS = "/api/v1/session", "/api/v1/sessions", "/api/v1/executions"
LOGIN, CALLBACK = f"{SESSION}/login/company", f"{SESSION}/callback/company"
HOST = BASE.removeprefix("http://")
ORDER = {"definition": "order"}
Pairs = list[tuple[str, str]]


class Scene(NamedTuple):
    """The world, the keys that there are in it, and the sessions of browsers by whose they are: their secrets."""

    world: World
    keys: Mapping[str, str]
    sessions: Mapping[str, str]
    began: int
    """Where the feed of all events was before the first attack."""

    def cookie(self, whose: str = "ann") -> tuple[str, str]:
        """The cookie of a session."""
        return "cookie", f"standfast={self.sessions[whose]}"

    def csrf(self, whose: str = "ann") -> str:
        """The token of a session's pages."""
        return csrf_token(self.sessions[whose])

    def identity(self, whose: str = "ann") -> str:
        """The id of a session."""
        return self.sessions[whose].split("_")[1]


@pytest.fixture(scope="module")
def scene(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A server that people come in to by a provider too; ann and nora of acme, and eve of its rival, are in already."""
    trusted = tokens.issuer(tmp_path_factory.mktemp("keys"), audience="standfast-ui")
    # Nobody listens there: whatever came so far as to ask would be refused for another reason.
    way = LoginProvider(
        name="company", issuer=trusted, authorization="https://login.acme.test/a", token="http://127.0.0.1:1/t"
    )
    fortress = World(world.engine, replace(GENEROUS, logins=(way,), max_body_bytes=20_000))
    keys, sessions = {}, {}
    for name, tenant, part in (("ann", ACME, ""), ("eve", RIVAL, ""), ("gone", ACME, ""), ("nora", ACME, NORTH)):
        made = world.engine.as_tenant(tenant).keys.create(
            "page", actor=name, kind="user", capabilities=("*",), partition=part
        )
        answer = fortress.bearer().post(SESSION, {"key": made.secret})
        keys[name], sessions[name] = made.secret, answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
        if name == "gone":
            world.engine.as_tenant(tenant).keys.revoke(made.key)
    own = world.calls(ACME).sessions
    sessions["short"] = own.open(credential="of acme", lifetime=timedelta(seconds=1)).secret
    ended = own.open(credential="of acme")
    own.end(ended.session)
    sessions["ended"] = ended.secret
    world.engine.advance(seconds=2)
    fortress.app.state.server.door.forget()
    yield Scene(fortress, keys, sessions, world.engine.admin.written().next)
    fortress.close()


def tally(scene: Scene) -> object:
    """Everything that an attack could have left behind: events of whatever history, and who may come in."""
    found: list[object] = [scene.world.engine.admin.written(after=scene.began).items]
    for tenant in (ACME, RIVAL):
        calls = scene.world.calls(tenant)
        found += [[(each.id, each.ended_at) for each in calls.sessions.list(limit=1000)]]
        found += [[(each.id, each.revoked_at) for each in calls.keys.list(limit=1000)]]
    return found


def changed(secret: str, **parts: str) -> str:
    """A secret with another prefix, id or rest."""
    prefix, identity, rest = secret.split("_", 2)
    whole = {"prefix": prefix, "identity": identity, "rest": rest, **parts}
    return f"{whole['prefix']}_{whole['identity']}_{whole['rest']}"


# -- cookies that are none

COOKIES: dict[str, Callable[[Scene], Pairs]] = {
    "nothing in it": lambda s: [("cookie", "standfast=")],
    "its last letter cut off": lambda s: [("cookie", s.cookie()[1][:-1])],
    "a letter more": lambda s: [("cookie", s.cookie()[1] + "A")],
    "without its secret": lambda s: [("cookie", "standfast=" + changed(s.sessions["ann"], rest=""))],
    "the id alone": lambda s: [("cookie", f"standfast={s.identity()}")],
    "the id of another and one's own secret": lambda s: [
        ("cookie", "standfast=" + changed(s.sessions["eve"], identity=s.identity())),
    ],
    "one's own id and the secret of another": lambda s: [
        ("cookie", "standfast=" + changed(s.sessions["ann"], identity=s.identity("eve"))),
    ],
    "the id in capitals": lambda s: [
        ("cookie", "standfast=" + changed(s.sessions["ann"], identity=s.identity().upper())),
    ],
    "the secret with its letters turned": lambda s: [
        ("cookie", "standfast=" + changed(s.sessions["ann"], rest=s.sessions["ann"].split("_", 2)[2].swapcase())),
    ],
    "padded with a sign of base64": lambda s: [("cookie", s.cookie()[1] + "=")],
    "in quotes": lambda s: [("cookie", f'standfast="{s.sessions["ann"]}"')],
    "with percent signs": lambda s: [("cookie", "standfast=" + s.sessions["ann"].replace("_", "%5F"))],
    "twice": lambda s: [("cookie", f"{s.cookie()[1]}; {s.cookie()[1]}")],
    "twice in two lines": lambda s: [s.cookie(), s.cookie()],
    "that of another before one's own": lambda s: [("cookie", f"{s.cookie('eve')[1]}; {s.cookie()[1]}")],
    "that of another behind one's own, in another line": lambda s: [s.cookie(), s.cookie("eve")],
    "an empty one beside it": lambda s: [("cookie", f"standfast=; {s.cookie()[1]}")],
    "by a comma behind another": lambda s: [("cookie", f"a=1, {s.cookie()[1]}")],
    "under the name for https": lambda s: [("cookie", f"__Host-{s.cookie()[1]}")],
    "under another name for https": lambda s: [("cookie", f"__Secure-{s.cookie()[1]}")],
    "its name in capitals": lambda s: [("cookie", s.cookie()[1].replace("standfast", "STANDFAST"))],
    "a blank behind its name": lambda s: [("cookie", s.cookie()[1].replace("=", " =", 1))],
    "under the name of a login": lambda s: [("cookie", f"standfast-login={s.sessions['ann']}")],
    "in a header of old": lambda s: [("cookie2", s.cookie()[1])],
    "in a header of a proxy": lambda s: [("x-forwarded-cookie", s.cookie()[1])],
    "in an answer's header": lambda s: [("set-cookie", s.cookie()[1])],
    "a key": lambda s: [("cookie", f"standfast={s.keys['ann']}")],
    "a key with the prefix of a session": lambda s: [
        ("cookie", "standfast=" + changed(s.keys["ann"], prefix="sfs")),
    ],
    "a token": lambda s: [("cookie", f"standfast={tokens.token(aud='standfast-ui')}")],
    "what pages say": lambda s: [("cookie", f"standfast={s.csrf()}")],
    "SQL": lambda s: [("cookie", "standfast=sfs_' or '1'='1_x")],
    "a pattern": lambda s: [("cookie", "standfast=sfs_%_x")],
    "a control character": lambda s: [("cookie", "standfast=sfs_\x01_x")],
    "letters that are not ASCII": lambda s: [("cookie", f"{s.cookie()[1]}\xe9")],
    "very long": lambda s: [("cookie", "standfast=sfs_" + "a" * 20_000)],
    "of a session that was ended": lambda s: [s.cookie("ended")],
    "of a session that is over": lambda s: [s.cookie("short")],
    "of a session whose key was revoked": lambda s: [s.cookie("gone")],
    "a session as a bearer's": lambda s: [("authorization", f"Bearer {s.sessions['ann']}")],
    "a session as a password": lambda s: [
        ("authorization", "Basic " + base64.b64encode(f"ann:{s.sessions['ann']}".encode()).decode()),
    ],
    "a session under a word of its own": lambda s: [("authorization", f"Session {s.sessions['ann']}")],
    "a session as a key": lambda s: [("authorization", "Bearer " + changed(s.sessions["ann"], prefix="sf"))],
    "a sound cookie beside a bearer who is none": lambda s: [s.cookie(), ("authorization", "Bearer sf_0_x")],
    "a sound cookie beside an empty credential": lambda s: [s.cookie(), ("authorization", "")],
    "a sound cookie beside a password": lambda s: [s.cookie(), ("authorization", "Basic YTpi")],
    "a sound cookie beside two bearers": lambda s: [
        s.cookie(), ("authorization", f"Bearer {s.keys['ann']}"), ("authorization", f"Bearer {s.keys['eve']}"),
    ],
}  # fmt: skip
"""What somebody sends who has no session that holds, or not as browsers send it."""


@pytest.mark.parametrize("case", COOKIES)
def test_forged_cookies_open_nothing(scene: Scene, case: str) -> None:
    """Whatever is wrong with a cookie, the answer is the same 401 in the same words, be the token of its page right or not."""
    before, client = tally(scene), scene.world.bearer()
    headers = [(name.encode(), value.encode("latin-1")) for name, value in COOKIES[case](scene)]
    token = (b"x-csrf-token", scene.csrf().encode())
    answers = [
        client.get(SESSION, headers=headers),
        client.post(RUNS, ORDER, headers=[*headers, token]),
        client.ask("DELETE", SESSION, headers=[*headers, token]),
    ]
    assert [each.status_code for each in answers] == [401, 401, 401]
    assert {each.json()["detail"] for each in answers} == {"the request has no credential that holds"}
    assert not any("set-cookie" in each.headers for each in answers)
    assert tally(scene) == before


# -- what pages of other sites have a browser do

FORM = {"data": {"definition": "order"}}
CROSSING: dict[str, Callable[[Scene], tuple[Pairs, dict[str, Any]]]] = {
    "no token": lambda s: ([], {}),
    "an empty token": lambda s: ([("x-csrf-token", "")], {}),
    "a token that was guessed": lambda s: ([("x-csrf-token", "A" * 43)], {}),
    "a token cut off": lambda s: ([("x-csrf-token", s.csrf()[:-1])], {}),
    "a token with a sign more": lambda s: ([("x-csrf-token", s.csrf() + "=")], {}),
    "a token with its letters turned": lambda s: ([("x-csrf-token", s.csrf().swapcase())], {}),
    "the token of one's own session": lambda s: ([("x-csrf-token", s.csrf("eve"))], {}),
    "the token of a session that has ended": lambda s: ([("x-csrf-token", s.csrf("ended"))], {}),
    "the id of the session": lambda s: ([("x-csrf-token", s.identity())], {}),
    "the token of a session's id": lambda s: ([("x-csrf-token", csrf_token(s.identity()))], {}),
    "the token of nothing": lambda s: ([("x-csrf-token", csrf_token(""))], {}),
    "two tokens, the first one wrong": lambda s: ([("x-csrf-token", "x"), ("x-csrf-token", s.csrf())], {}),
    "both tokens in one header": lambda s: ([("x-csrf-token", f"x, {s.csrf()}")], {}),
    "the token under another name": lambda s: ([("x-xsrf-token", s.csrf())], {}),
    "the token in the address": lambda s: ([], {"params": {"csrf": s.csrf()}}),
    "the token in the body": lambda s: ([], {"json": {**ORDER, "csrf": s.csrf()}}),
    "the token in a cookie": lambda s: ([("cookie", f"x-csrf-token={s.csrf()}")], {}),
    "a form": lambda s: ([], {**FORM, "json": None}),
    "a form with the token as a field": lambda s: ([], {"data": {**ORDER, "x-csrf-token": s.csrf()}, "json": None}),
    "a form of files": lambda s: ([], {"files": {"definition": b"order"}, "json": None}),
    "a beacon": lambda s: ([("content-type", "text/plain")], {"content": b'{"definition":"order"}', "json": None}),
    "another method by a header": lambda s: ([("x-http-method-override", "GET")], {}),
    "another origin": lambda s: ([("origin", "https://evil.test"), ("x-csrf-token", s.csrf())], {}),
    "an origin that nobody may know": lambda s: ([("origin", "null"), ("x-csrf-token", s.csrf())], {}),
    "another port": lambda s: ([("origin", f"{BASE}:8443"), ("x-csrf-token", s.csrf())], {}),
    "a host below": lambda s: ([("origin", f"http://evil.{HOST}"), ("x-csrf-token", s.csrf())], {}),
    "a host that begins like it": lambda s: ([("origin", f"{BASE}.evil.test"), ("x-csrf-token", s.csrf())], {}),
    "a host that ends like it": lambda s: ([("origin", f"http://evil{HOST}"), ("x-csrf-token", s.csrf())], {}),
    "the host as a name of a user": lambda s: ([("origin", f"{BASE}@evil.test"), ("x-csrf-token", s.csrf())], {}),
    "an origin with a path": lambda s: ([("origin", f"http://evil.test/{HOST}"), ("x-csrf-token", s.csrf())], {}),
    "an origin without a scheme": lambda s: ([("origin", HOST), ("x-csrf-token", s.csrf())], {}),
    "an origin and the host of a proxy": lambda s: (
        [("origin", "https://evil.test"), ("x-forwarded-host", "evil.test"), ("x-csrf-token", s.csrf())], {},
    ),
    "two origins": lambda s: (
        [("origin", "https://evil.test"), ("origin", BASE), ("x-csrf-token", s.csrf())], {},
    ),
    "from another site": lambda s: ([("sec-fetch-site", "cross-site"), ("x-csrf-token", s.csrf())], {}),
    "from a neighbour": lambda s: ([("sec-fetch-site", "same-site"), ("x-csrf-token", s.csrf())], {}),
    "from nowhere that is known": lambda s: ([("sec-fetch-site", "elsewhere"), ("x-csrf-token", s.csrf())], {}),
    "from an empty place": lambda s: ([("sec-fetch-site", ""), ("x-csrf-token", s.csrf())], {}),
}  # fmt: skip
"""What a browser with ann's session sends because of a page that is not ours."""


@pytest.mark.parametrize("case", CROSSING)
def test_pages_of_other_sites_get_nothing_done(scene: Scene, case: str) -> None:
    """A request with a sound cookie that did not come from our own page is refused before anything of it is read."""
    before, (pairs, more) = tally(scene), CROSSING[case](scene)
    sent = {"json": ORDER, **more}
    answer = scene.world.bearer().ask("POST", RUNS, headers=[scene.cookie(), *pairs], **sent)
    assert (answer.status_code, answer.json()["code"]) == (403, "cross_site"), answer.text
    assert "access-control-allow-origin" not in answer.headers
    assert tally(scene) == before
    kept = scene.world.calls(ACME).refusals.list(limit=1)[0]
    assert (kept.actor, kept.credential, kept.code) == ("ann", f"session:{scene.identity()}", "cross_site")


UNASKED: dict[str, Callable[[Scene], tuple[str, str]]] = {
    "leaving": lambda s: ("DELETE", SESSION),
    "sending a browser away": lambda s: ("POST", f"{SESSIONS}/{s.identity()}/end"),
    "putting a schedule": lambda s: ("PUT", "/api/v1/schedules/theirs"),
    "beginning a batch": lambda s: ("POST", "/api/v1/batches"),
    "publishing a file": lambda s: ("POST", "/api/v1/definitions/files"),
    "making a key": lambda s: ("POST", "/api/v1/keys"),
    "pausing everything": lambda s: ("POST", "/api/v1/pauses"),
    "starting a process": lambda s: ("POST", "/ui/workflows/orders.approval/start"),
}


@pytest.mark.parametrize("case", UNASKED)
def test_nothing_that_changes_anything_goes_without_a_token(scene: Scene, case: str) -> None:
    """Every way to change something asks for the token of the page, with and without a body."""
    before, (method, path) = tally(scene), UNASKED[case](scene)
    bodies: tuple[dict[str, Any], ...] = ({}, {"json": {}}, FORM)
    for more in bodies:
        answer = scene.world.bearer().ask(method, path, headers=[scene.cookie()], **more)
        assert (answer.status_code, answer.json()["code"]) == (403, "cross_site"), answer.text
    assert tally(scene) == before


def test_a_page_of_our_own_gets_it_done(scene: Scene) -> None:
    """With nothing wrong the same request is taken; so what the attacks lack is what they were refused for."""
    headers = [scene.cookie(), ("x-csrf-token", scene.csrf()), ("origin", BASE), ("sec-fetch-site", "same-origin")]
    assert scene.world.bearer().post(RUNS, ORDER, headers=headers).status_code == 201


def test_nobody_is_given_a_session_that_another_knows(scene: Scene) -> None:
    """Whoever comes in gets a secret that nobody had before, whatever their browser kept, and the one before stays whose it was."""
    answer = scene.world.bearer().post(SESSION, {"key": scene.keys["ann"]}, headers=[scene.cookie("eve")])
    kept = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
    assert (answer.status_code, answer.json()["me"]["id"]) == (201, "ann")
    assert kept not in scene.sessions.values()
    assert scene.world.bearer().get(SESSION, headers=[scene.cookie("eve")]).json()["me"]["id"] == "eve"


def test_sessions_of_one_key_share_what_the_key_may_ask(scene: Scene) -> None:
    """Who opens many sessions with a key makes no more requests than the key alone; opening them counts too."""
    narrow = World(scene.world.engine, replace(GENEROUS, requests_per_second=1e-6, burst=5))
    answers = [narrow.bearer().post(SESSION, {"key": scene.keys["ann"]}) for _ in range(3)]
    kept = [("cookie", each.headers["set-cookie"].partition(";")[0]) for each in answers]
    assert [narrow.bearer().get(SESSION, headers=[each]).status_code for each in kept] == [200, 200, 429]
    assert narrow.bearer().post(SESSION, {"key": scene.keys["ann"]}).status_code == 429
    assert narrow.bearer(scene.keys["ann"]).get(RUNS).status_code == 429
    assert narrow.bearer(scene.keys["eve"]).get(RUNS).status_code == 200
    narrow.close()


def test_logins_that_fail_are_counted(scene: Scene, tmp_path: Path) -> None:
    """An address that comes back with codes that nobody gave is refused after a few, before the provider is asked again."""
    trusted = tokens.issuer(tmp_path, audience="standfast-ui")
    way = LoginProvider(
        name="company", issuer=trusted, authorization="https://login.acme.test/a", token="http://127.0.0.1:1/t"
    )
    options = replace(GENEROUS, logins=(way,), failures_per_second=1e-6, failures_burst=2)
    narrow = World(scene.world.engine, options)
    tried = [narrow.bearer().get(f"{CALLBACK}?state=s&code=c", headers={"cookie": begun()}) for _ in range(3)]
    assert [each.status_code for each in tried] == [401, 401, 429]
    narrow.close()


def test_behind_a_proxy_the_cookie_is_as_safe_as_the_public_address(scene: Scene) -> None:
    """Where browsers come by https, the cookie is for https alone, even if the last piece of the way is in the clear."""
    proxied = World(scene.world.engine, replace(GENEROUS, public_address="https://flows.acme.test"))
    answer = proxied.bearer().post(SESSION, {"key": scene.keys["ann"]})
    kept = answer.headers["set-cookie"]
    assert (kept.startswith("__Host-standfast="), "Secure" in kept.split("; ")) == (True, True)
    cookie = kept.partition(";")[0]
    assert proxied.bearer().get(SESSION, headers={"cookie": cookie}).status_code == 200
    assert proxied.bearer().get(SESSION, headers={"cookie": cookie.removeprefix("__Host-")}).status_code == 401
    proxied.close()


def test_a_part_of_the_tenant_sees_its_sessions_among_those_of_others(scene: Scene) -> None:
    """However many sessions of the whole tenant lie between, who is bound to a part of it finds those of that part."""
    headers = [scene.cookie("nora"), ("x-csrf-token", scene.csrf("nora"))]
    page = scene.world.bearer().get(f"{SESSIONS}?limit=1", headers=headers).json()
    assert [each["actor"] for each in page["items"]] == ["nora"]


# -- coming in

ENTRIES: dict[str, tuple[Callable[[Scene], dict[str, Any]], int]] = {
    "a session as a key": (lambda s: {"json": {"key": s.sessions["ann"]}}, 401),
    "a session with the prefix of a key": (lambda s: {"json": {"key": changed(s.sessions["ann"], prefix="sf")}}, 401),
    "a token as a key": (lambda s: {"json": {"key": tokens.token(aud="standfast-ui")}}, 401),
    "a revoked key": (lambda s: {"json": {"key": s.keys["gone"]}}, 401),
    "a key with its bearer's word": (lambda s: {"json": {"key": f"Bearer {s.keys['ann']}"}}, 401),
    "a key with a blank before": (lambda s: {"json": {"key": f" {s.keys['ann']}"}}, 401),
    "a key with a line behind": (lambda s: {"json": {"key": f"{s.keys['ann']}\n"}}, 401),
    "a key with a NUL": (lambda s: {"json": {"key": f"{s.keys['ann']}\0"}}, 401),
    "a key in capitals": (lambda s: {"json": {"key": s.keys["ann"].upper()}}, 401),
    "the id of one key, the secret of another": (
        lambda s: {"json": {"key": changed(s.keys["ann"], rest=s.keys["eve"].split("_", 2)[2])}}, 401,
    ),
    "a pattern for a key": (lambda s: {"json": {"key": "sf_%_%"}}, 401),
    "an empty key": (lambda s: {"json": {"key": ""}}, 401),
    "keys in a list": (lambda s: {"json": {"key": [s.keys["ann"]]}}, 400),
    "a key that is a condition": (lambda s: {"json": {"key": {"$gt": ""}}}, 400),
    "no key": (lambda s: {"json": {}}, 400),
    "a key of half a letter": (lambda s: {"content": b'{"key":"\\ud800"}', "headers": {"content-type": "application/json"}}, 400),
    "a very long key": (lambda s: {"json": {"key": "sf_" + "a" * 30_000}}, 413),
    "a key in the address": (lambda s: {"json": {}, "params": {"key": s.keys["ann"]}}, 400),
    "a tenant of choice": (lambda s: {"json": {"key": s.keys["eve"], "tenant": ACME}}, 400),
    "a partition of choice": (lambda s: {"json": {"key": s.keys["nora"], "partition": ""}}, 400),
    "an actor of choice": (lambda s: {"json": {"key": s.keys["nora"], "actor": "ann"}}, 400),
    "a session of choice": (lambda s: {"json": {"key": s.keys["ann"], "session": s.sessions["eve"]}}, 400),
    "a life of choice": (lambda s: {"json": {"key": s.keys["ann"], "lifetime": 1e9}}, 400),
    "a form with a key": (lambda s: {"data": {"key": s.keys["eve"]}}, 415),
    "a text with a key": (
        lambda s: {"content": json.dumps({"key": s.keys["eve"]}), "headers": {"content-type": "text/plain"}}, 415,
    ),
    "a form of files with a key": (lambda s: {"files": {"key": s.keys["eve"].encode()}}, 415),
    "another's key by another site": (
        lambda s: {"json": {"key": s.keys["eve"]}, "headers": {"origin": "https://evil.test"}}, 403,
    ),
    "another's key by a page in a sandbox": (
        lambda s: {"json": {"key": s.keys["eve"]}, "headers": {"origin": "null"}}, 403,
    ),
    "another's key by a neighbour": (
        lambda s: {"json": {"key": s.keys["eve"]}, "headers": {"sec-fetch-site": "same-site"}}, 403,
    ),
}  # fmt: skip
"""Ways to come in that are none, and what they are answered."""


@pytest.mark.parametrize("case", ENTRIES)
def test_nobody_comes_in_by_a_trick(scene: Scene, case: str) -> None:
    """No session is opened, no cookie is kept, and the answer does not say the key again."""
    before, (made, status) = tally(scene), ENTRIES[case]
    answer = scene.world.bearer().ask("POST", SESSION, **made(scene))
    assert answer.status_code == status, answer.text
    assert "set-cookie" not in answer.headers
    assert not [each for each in (*scene.keys.values(), *scene.sessions.values()) if each in answer.text]
    assert tally(scene) == before


# -- by a provider

LEADS = {
    "another scheme": "javascript:alert(1)",
    "data": "data:text/html,x",
    "a scheme without slashes": "http:evil.test",
    "three slashes": "///evil.test",
    "slashes the other way": "\\\\evil.test",
    "a slash of each": "/\\/evil.test",
    "a backslash later on": "/a\\..\\..\\evil.test",
    "a tab between slashes": "/\t/evil.test",
    "a line between slashes": "/\n/evil.test",
    "a header behind it": "/\r\nset-cookie: standfast=sfs_x",
    "a NUL": "/\0",
    "a blank before": " //evil.test",
    "a name of a user": "@evil.test",
    "a question alone": "?to=//evil.test",
    "a path from here": "../evil",
    "a line of Unicode": "/\u2028/evil.test",
    "a slash of Unicode": "\uff0f\uff0fevil.test",
    "a very long path": "/" + "a" * 500,
}


@pytest.mark.parametrize("case", LEADS)
def test_a_login_does_not_begin_for_elsewhere(scene: Scene, case: str) -> None:
    """Where a login leads is a path of this server; nothing of what was asked comes back in a header."""
    answer = scene.world.bearer().get(LOGIN, params={"return_to": LEADS[case]})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_query")
    assert not {"location", "set-cookie"} & set(answer.headers)


def begun(**more: object) -> str:
    """A cookie of a login that was never begun here."""
    sound = {"provider": "company", "state": "s", "nonce": "n", "verifier": "v" * 43, "return_to": "/"}
    told = json.dumps({name: value for name, value in {**sound, **more}.items() if value is not None})
    return "standfast-login=" + base64.urlsafe_b64encode(told.encode()).decode().rstrip("=")


RETURNS: dict[str, tuple[str, str]] = {
    "no cookie": ("", "?state=s&code=c"),
    "another state": (begun(), "?state=t&code=c"),
    "no state": (begun(), "?code=c"),
    "an empty state for an empty one": (begun(state=""), "?state=&code=c"),
    "a state that is a number": (begun(state=0), "?state=0&code=c"),
    "no code": (begun(), "?state=s"),
    "an empty code": (begun(), "?state=s&code="),
    "a very long code": (begun(), "?state=s&code=" + "c" * 3000),
    "an error beside a code": (begun(), "?state=s&code=c&error=%0d%0aset-cookie:x=1"),
    "a code that the provider does not know": (begun(), "?state=s&code=c"),
    "a login by another provider": (begun(provider="other"), "?state=s&code=c"),
    "a login without a provider": (begun(provider=None), "?state=s&code=c"),
    "a login without a nonce": (begun(nonce=""), "?state=s&code=c"),
    "a login that leads elsewhere": (begun(return_to="https://evil.test"), "?state=s&code=c"),
    "a login that leads into a header": (begun(return_to="/\r\nset-cookie: x=1"), "?state=s&code=c"),
    "two logins": (f"{begun()}; {begun()}", "?state=s&code=c"),
    "a login under the name for https": (f"__Host-{begun()}", "?state=s&code=c"),
    "a login that is no text": ("standfast-login=////", "?state=s&code=c"),
    "a login that is a list": ("standfast-login=W10", "?state=s&code=c"),
    "a login that is deep": (
        "standfast-login=" + base64.urlsafe_b64encode(b"[" * 5000).decode(), "?state=s&code=c",
    ),
}  # fmt: skip
"""The cookie and the address of browsers that no provider has sent back, or not to this login."""


@pytest.mark.parametrize("case", RETURNS)
def test_nobody_comes_back_who_has_not_gone(scene: Scene, case: str) -> None:
    """A login that did not begin in this browser, or that the provider does not vouch for, is refused in the same words."""
    before, (cookie, query) = tally(scene), RETURNS[case]
    answer = scene.world.bearer().get(f"{CALLBACK}{query}", headers={"cookie": cookie} if cookie else {})
    assert (answer.status_code, answer.json()["detail"]) == (401, "the login did not succeed")
    assert not {"location", "set-cookie"} & set(answer.headers)
    assert tally(scene) == before


ODD: dict[str, tuple[str, str, int]] = {
    "where to, twice": ("GET", f"{LOGIN}?return_to=/a&return_to=//evil.test", 400),
    "where to come back to": ("GET", f"{LOGIN}?redirect_uri=https://evil.test", 400),
    "a state of choice": ("GET", f"{LOGIN}?state=mine", 400),
    "a state twice": ("GET", f"{CALLBACK}?state=s&state=t&code=c", 400),
    "a provider by a path": ("GET", f"{SESSION}/login/..%2fcompany", 404),
    "a provider in capitals": ("GET", f"{SESSION}/login/COMPANY", 404),
    "a provider with a line": ("GET", f"{SESSION}/login/company%0d%0ax:y", 404),
    "a provider that comes back unasked": ("GET", f"{SESSION}/callback/other?state=s&code=c", 404),
    "a return that is posted": ("POST", f"{CALLBACK}?state=s&code=c", 405),
    "a login that is posted": ("POST", LOGIN, 405),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_logins_lead_nowhere(scene: Scene, case: str) -> None:
    """What a login does not take is refused, and leads to no address."""
    method, path, status = ODD[case]
    answer = scene.world.bearer().ask(method, path, headers={"cookie": begun()})
    assert answer.status_code == status, answer.text
    assert not {"location", "set-cookie"} & set(answer.headers)


# -- sessions of others

REACHES: dict[str, tuple[str, Callable[[Scene], tuple[str, str]]]] = {
    "a session of another tenant": ("eve", lambda s: ("POST", f"{SESSIONS}/{s.identity()}/end")),
    "the same in capitals": ("eve", lambda s: ("POST", f"{SESSIONS}/{s.identity().upper()}/end")),
    "the same with a percent sign": ("eve", lambda s: ("POST", f"{SESSIONS}/%25/end")),
    "the same by its secret": ("eve", lambda s: ("POST", f"{SESSIONS}/{s.sessions['ann']}/end")),
    "the same behind a NUL": ("eve", lambda s: ("POST", f"{SESSIONS}/{s.identity('eve')}%00{s.identity()}/end")),
    "the same as a run": ("eve", lambda s: ("POST", f"{RUNS}/{s.identity()}/cancel")),
    "the same as a key": ("eve", lambda s: ("POST", f"/api/v1/keys/{s.identity()}/revoke")),
    "somebody's of another tenant": ("eve", lambda s: ("GET", f"{SESSIONS}?actor=ann")),
    "those behind another tenant's": ("eve", lambda s: ("GET", f"{SESSIONS}?actor=ann&cursor={written(s.identity())}")),
    "those of a tenant by name": ("eve", lambda s: ("GET", f"{SESSIONS}?tenant={ACME}")),
    "those of all by a pattern": ("eve", lambda s: ("GET", f"{SESSIONS}?actor=%25")),
    "those behind a number": ("eve", lambda s: ("GET", f"{SESSIONS}?cursor={written(1)}")),
    "a session of the whole tenant, from a part of it": ("nora", lambda s: ("POST", f"{SESSIONS}/{s.identity()}/end")),
    "those of somebody of the whole tenant": ("nora", lambda s: ("GET", f"{SESSIONS}?actor=ann")),
    "those of another part by name": ("nora", lambda s: ("GET", f"{SESSIONS}?partition=south")),
}
"""Whose session somebody reaches for, with a session of their own and everything that a page says."""


@pytest.mark.parametrize("case", REACHES)
def test_sessions_of_others_are_not_there(scene: Scene, case: str) -> None:
    """A session of another tenant, or of more than one's own part of it, is neither shown nor ended."""
    before, (who, made) = tally(scene), REACHES[case]
    method, path = made(scene)
    headers = [scene.cookie(who), ("x-csrf-token", scene.csrf(who))]
    answer = scene.world.bearer().ask(method, path, headers=headers, **({"json": {}} if "cancel" in path else {}))
    assert answer.status_code in ({200, 400, 422} if method == "GET" else {404, 422}), answer.text
    assert answer.status_code != 200 or answer.json()["items"] == [], answer.text
    assert "of acme" not in answer.text
    assert tally(scene) == before


LISTED = (COOKIES, CROSSING, UNASKED, ENTRIES, LEADS, RETURNS, ODD, REACHES)
"""All attacks of this file."""
