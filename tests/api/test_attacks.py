"""Attacks on the edge, listed as data: each is refused with the status that it should be, and leaves nothing behind."""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import jwt
import pytest
from msgspec.structs import replace

from api import tokens
from api.tokens import ISSUER, token
from api.world import ACME, GENEROUS, INVOICE, RIVAL, World, furnished
from standfast.calls.catalog.rate_limits import Rate
from standfast.http import InboundHook
from standfast.http.wire.paging import written

SECRET = b"attackers do not know this secret"
HOOK = "whsec_" + base64.b64encode(SECRET).decode()
START = "/api/v1/executions"
INPUT = {"definition": "ask"}


class Scene(NamedTuple):
    """The world, and what acme has in it."""

    world: World
    made: Mapping[str, str]


@pytest.fixture(scope="module")
def scene(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A server that believes an issuer and has a hook, over something of everything."""
    folder: Path = tmp_path_factory.mktemp("keys")
    hook = InboundHook(name="shop", secrets=(HOOK,), event="shop.paid", tenant=ACME, key="data.order")
    options = replace(GENEROUS, issuers=(tokens.issuer(folder),), hooks=(hook,), max_body_bytes=20_000, max_depth=20)
    made = furnished(world)
    fortress = World(world.engine, options)
    yield Scene(fortress, made)
    fortress.close()


def tally(scene: Scene) -> object:
    """Everything that an attack could have left behind, of all tenants."""
    found = []
    for tenant in (ACME, RIVAL, "default"):
        calls = scene.world.engine.as_tenant(tenant)
        runs = [(each.id, each.status, each.updated_at) for each in calls.runs.list(limit=1000).items]
        found.append(
            (
                runs,
                calls.events.list(),
                [(each.id, each.revoked_at) for each in calls.keys.list(limit=1000)],
                calls.directory.list(),
                calls.pauses.list(),
            )
        )
    return found


# -- forged credentials


def unsigned(**more: Any) -> str:
    """A token that says of itself that nobody has signed it."""
    return jwt.encode(tokens.claims(**more), "", algorithm="none", headers={"kid": "one"})


def by_hand(header: Mapping[str, Any], body: Mapping[str, Any], signature: bytes = b"") -> str:
    """A token put together without a library's scruples."""
    parts = [json.dumps(each).encode() for each in (header, body)]
    return ".".join(base64.urlsafe_b64encode(each).decode().rstrip("=") for each in (*parts, signature))


def confused(kid: str | None = "one") -> str:
    """A token whose signature is an HMAC with the public key of the issuer as its secret."""
    header = {"alg": "HS256", "typ": "JWT", **({"kid": kid} if kid else {})}
    text = by_hand(header, tokens.claims()).rpartition(".")[0]
    made = hmac.new(tokens.pem(), text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(made).decode().rstrip('=')}"


def tampered(**more: Any) -> str:
    """A sound token with other claims under the old signature."""
    head, _, signature = token().split(".")
    body = base64.urlsafe_b64encode(json.dumps(tokens.claims(**more)).encode()).decode().rstrip("=")
    return f"{head}.{body}.{signature}"


NOW = int(time.time())
OWN_KEY = tokens.public(tokens.other_key(), "one", "RS256")
FORGERIES: dict[str, Callable[[], str]] = {
    "alg none": unsigned,
    "alg None": lambda: by_hand({"alg": "None", "kid": "one"}, tokens.claims()),
    "alg nOnE": lambda: by_hand({"alg": "nOnE", "kid": "one"}, tokens.claims()),
    "alg empty": lambda: by_hand({"alg": "", "kid": "one"}, tokens.claims()),
    "alg missing": lambda: by_hand({"kid": "one"}, tokens.claims()),
    "alg a list": lambda: by_hand({"alg": ["RS256"], "kid": "one"}, tokens.claims()),
    "alg none with a signature": lambda: by_hand({"alg": "none", "kid": "one"}, tokens.claims(), b"x" * 256),
    "key confusion": confused,
    "key confusion without kid": lambda: confused(None),
    "HS256 with an empty secret": lambda: jwt.encode(
        tokens.claims(), "x" * 32, algorithm="HS256", headers={"kid": "one"}
    ),
    "HS512": lambda: jwt.encode(tokens.claims(), "x" * 64, algorithm="HS512", headers={"kid": "one"}),
    "an algorithm that is not allowed": lambda: token(algorithm="RS512"),
    "PS256 for an RS256 key": lambda: token(algorithm="PS256"),
    "ES256 under the name of an RSA key": lambda: token(key=tokens.curve_key(), algorithm="ES256"),
    "another's key": lambda: token(key=tokens.other_key()),
    "another's key under an unknown id": lambda: token(key=tokens.other_key(), headers={"kid": "three"}),
    "its own key in the header": lambda: token(key=tokens.other_key(), headers={"jwk": OWN_KEY}),
    "its own keys by address": lambda: token(key=tokens.other_key(), headers={"jku": "https://evil.test/jwks"}),
    "its own certificate by address": lambda: token(key=tokens.other_key(), headers={"x5u": "https://evil.test/x"}),
    "kid that is a path": lambda: token(key=tokens.other_key(), headers={"kid": "../../../dev/null"}),
    "kid that is SQL": lambda: token(key=tokens.other_key(), headers={"kid": "' or 1=1 --"}),
    "kid that is a number": lambda: by_hand({"alg": "RS256", "kid": 1}, tokens.claims(), b"x"),
    "no kid among several keys": lambda: jwt.encode(tokens.claims(), tokens.other_key(), algorithm="RS256"),
    "critical header": lambda: by_hand({"alg": "RS256", "kid": "one", "crit": ["exp"]}, tokens.claims(), b"x"),
    "critical header, signed": lambda: token(headers={"crit": ["exp"]}),
    "expired": lambda: token(exp=NOW - 3600),
    "expired by a little": lambda: token(exp=NOW - 121),
    "never expires": lambda: token(exp=None),
    "expires as text": lambda: token(exp="tomorrow"),
    "expires at infinity": lambda: token(exp=10**400),
    "not yet": lambda: token(nbf=NOW + 3600),
    "issued in the future": lambda: token(iat=NOW + 3600),
    "issued as text": lambda: token(iat="yesterday"),
    "another audience": lambda: token(aud="somebody-else"),
    "several audiences, none of them this": lambda: token(aud=["a", "b"]),
    "audience that holds this name": lambda: token(aud="standfast-admin"),
    "no audience": lambda: token(aud=None),
    "another issuer": lambda: token(iss="https://evil.test"),
    "issuer with a slash more": lambda: token(iss=f"{ISSUER}/"),
    "issuer in capitals": lambda: token(iss=ISSUER.upper()),
    "no issuer": lambda: token(iss=None),
    "issuer a list": lambda: by_hand({"alg": "RS256", "kid": "one"}, tokens.claims(iss=[ISSUER]), b"x"),
    "nobody": lambda: token(sub=None),
    "empty subject": lambda: token(sub=""),
    "subject a number": lambda: by_hand({"alg": "RS256", "kid": "one"}, tokens.claims(sub=7), b"x"),
    "no tenant": lambda: token(tenant=None),
    "empty tenant": lambda: token(tenant=""),
    "all tenants": lambda: token(tenant="*"),
    "tenant a list": lambda: token(tenant=[ACME]),
    "tenant an object": lambda: token(tenant={"$ne": ""}),
    "tenant with a NUL": lambda: token(tenant="acme\x00"),
    "tenant too long": lambda: token(tenant="a" * 4000),
    "partition a number": lambda: token(partition=1),
    "roles an object": lambda: token(roles={"administrator": True}),
    "roles a number": lambda: token(roles=1),
    "roles with numbers": lambda: token(roles=["viewer", 1]),
    "rights an object": lambda: token(scope={"*": True}),
    "tampered tenant": lambda: tampered(tenant=RIVAL),
    "tampered subject": lambda: tampered(sub="root"),
    "tampered rights": lambda: tampered(scope="*"),
    "signature cut off": lambda: token().rpartition(".")[0] + ".",
    "signature of another token": lambda: f"{token(sub='x').rpartition('.')[0]}.{token().rpartition('.')[2]}",
    "signature with a byte more": lambda: token() + "AA",
    "two parts": lambda: token().rpartition(".")[0],
    "five parts": lambda: token() + ".a.b",
    "dots": lambda: "..",
    "payload a list": lambda: by_hand({"alg": "RS256", "kid": "one"}, [], b"x"),  # type: ignore[arg-type]
    "payload deep": lambda: "e30." + base64.urlsafe_b64encode(b"[" * 4000).decode() + ".x",
    "too long": lambda: token(sub="a" * 9000),
    "a key that is none": lambda: "sf_",
    "a key without a secret": lambda: "sf_01b8dd58e2007c14a3c6612f48268673_",
    "a key with SQL": lambda: "sf_' or '1'='1_secret",
    "a key with a percent sign": lambda: "sf_%_secret",
    "a key with a NUL": lambda: "sf_\x01_secret",
    "a very long key": lambda: "sf_" + "a" * 8000 + "_x",
}
"""Tokens and keys that nobody has given."""


@pytest.mark.row("EO-40")
@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_credentials_open_nothing(scene: Scene, forgery: str) -> None:
    """Whatever is wrong with a credential, the answer is the same 401 in the same words, and a start under it starts nothing."""
    before = tally(scene)
    client = scene.world.bearer(FORGERIES[forgery]())
    answers = [client.get(START), client.post(START, INPUT), client.get("/api/v1/me")]
    assert [each.status_code for each in answers] == [401, 401, 401]
    assert {each.json()["detail"] for each in answers} == {"the request has no credential that holds"}
    assert tally(scene) == before


@pytest.mark.row("EO-40")
def test_a_sound_token_opens_what_it_says(scene: Scene) -> None:
    """The same token, with nothing wrong, is let in: for its tenant, with its rights, by either of the issuer's keys."""
    for given in (
        token(scope="execution:read", roles=["author"]),
        token(
            key=tokens.curve_key(), algorithm="ES256", headers={"kid": "two"}, scope=["execution:read"], roles="author"
        ),
    ):
        me = scene.world.bearer(given).get("/api/v1/me").json()
        assert (me["id"], me["tenant"], me["kind"]) == ("ann", ACME, "user")
        assert {"execution:read", "definition:*", "task:use"} <= set(me["capabilities"])
    assert (
        scene.world.bearer(token(exp=int(time.time()) - 10, scope="execution:read")).get(START).status_code == 200
    )  # Within the leeway.


# -- reaching for another tenant or partition with a sound credential

Request = tuple[str, str, dict[str, Any]]
SWITCHES: dict[str, Callable[[Scene], Request]] = {
    "header X-Tenant": lambda s: ("GET", START, {"headers": {"x-tenant": ACME}}),
    "header X-Tenant-Id": lambda s: ("GET", START, {"headers": {"x-tenant-id": ACME}}),
    "header X-Forwarded-User": lambda s: ("GET", START, {"headers": {"x-forwarded-user": "root"}}),
    "header X-Partition": lambda s: ("GET", START, {"headers": {"x-partition": "north"}}),
    "header X-Original-URL": lambda s: ("GET", START, {"headers": {"x-original-url": "/api/v1/workers"}}),
    "header X-HTTP-Method-Override": lambda s: ("GET", START, {"headers": {"x-http-method-override": "DELETE"}}),
    "cookie": lambda s: ("GET", START, {"headers": {"cookie": "tenant=acme; session=1"}}),
    "query tenant": lambda s: ("GET", f"{START}?tenant={ACME}", {}),
    "query tenant_id": lambda s: ("GET", f"{START}?tenant_id={ACME}", {}),
    "query partition": lambda s: ("GET", f"{START}?partition=north", {}),
    "query access_token": lambda s: ("GET", f"{START}?access_token=sf_x_y", {}),
    "body tenant of a start": lambda s: ("POST", START, {"json": {**INPUT, "tenant": ACME}}),
    "body partition of a start": lambda s: ("POST", START, {"json": {**INPUT, "partition": "north"}}),
    "body actor of a start": lambda s: ("POST", START, {"json": {**INPUT, "actor": "root"}}),
    "body tenant of a pause": lambda s: ("POST", "/api/v1/pauses", {"json": {"tenant": "*", "reason": "all"}}),
    "body tenant of an event": lambda s: ("POST", "/api/v1/events", {"json": {"event": "x", "tenant": ACME}}),
    "body actor of a decision": lambda s: (
        "POST", f"/api/v1/tasks/{s.made['task']}/decide", {"json": {"decision": "confirmed", "actor": "ann"}},
    ),
    "body tenant of a key": lambda s: (
        "POST", "/api/v1/keys", {"json": {"name": "x", "actor": "x", "tenant": ACME}},
    ),
    "path of another's run": lambda s: ("GET", f"{START}/{s.made['run']}", {}),
    "path in capitals": lambda s: ("GET", f"{START}/{s.made['run'].upper()}", {}),
    "path with a tenant in front": lambda s: ("GET", f"/{ACME}{START}/{s.made['run']}", {}),
    "path that climbs": lambda s: ("GET", f"{START}/x/../{s.made['run']}", {}),
    "path that climbs, encoded": lambda s: ("GET", f"{START}/%2e%2e/{s.made['run']}", {}),
    "path with a NUL": lambda s: ("GET", f"{START}/{s.made['run']}%00", {}),
    "path with a semicolon": lambda s: ("GET", f"{START}/{s.made['run']};tenant={ACME}", {}),
    "path in braces": lambda s: ("GET", f"{START}/{{{s.made['run']}}}", {}),
    "path as a URN": lambda s: ("GET", f"{START}/urn:uuid:{s.made['run']}", {}),
    "path without hyphens": lambda s: ("GET", f"{START}/{s.made['run'].replace('-', '')}", {}),
    "path that is SQL": lambda s: ("GET", f"{START}/' or '1'='1", {}),
    "name that is SQL": lambda s: ("GET", "/api/v1/definitions/' union select 1 --", {}),
    "name that climbs": lambda s: ("GET", "/api/v1/definitions/..%2f..%2fetc%2fpasswd", {}),
    "cursor of another's run": lambda s: ("GET", f"{START}?cursor={written(s.made['run'])}", {}),
    "cursor that is a path": lambda s: ("GET", f"{START}?cursor=../../etc", {}),
    "cursor that is an object": lambda s: ("GET", f"{START}?cursor={written({'tenant': ACME})}", {}),
    "cursor of another list": lambda s: ("GET", f"/api/v1/tasks?cursor={written(s.made['run'])}", {}),
    "cursor that is SQL": lambda s: ("GET", f"/api/v1/directory/people?cursor={written(chr(39) + ' or 1=1 --')}", {}),
    "cursor below zero": lambda s: ("GET", f"/api/v1/dead-letters?cursor={written(-1)}", {}),
    "cursor beyond everything": lambda s: ("GET", f"/api/v1/dead-letters?cursor={written(2**70)}", {}),
    "cursor before all time": lambda s: (
        "GET",
        f"{START}/paused?cursor={written(['0001-01-01T00:00:00+14:00', s.made['run']])}",
        {},
    ),
    "cursor of no time zone": lambda s: (
        "GET",
        f"/ui/workflows/expired?cursor={written(['2026-01-01T00:00:00', s.made['run']])}",
        {},
    ),
    "period before all time": lambda _: ("GET", "/api/v1/reports/order?until=0001-01-01T00:00:00Z", {}),
    "very long cursor": lambda s: ("GET", f"{START}?cursor={'a' * 5000}", {}),
    "parent of another": lambda s: ("GET", f"{START}?parent={s.made['run']}", {}),
    "key of another": lambda s: ("GET", f"{START}?key=acme-1", {}),
    "dead letter of another's run": lambda s: ("GET", f"/api/v1/dead-letters?execution={s.made['run']}", {}),
    "two tenants' ids in one task": lambda s: ("GET", f"/api/v1/tasks/{s.made['run']}:1:1", {}),
    "many zeros": lambda s: ("GET", f"/api/v1/tasks/{s.made['run']}:{'0' * 500}1", {}),
    "another's step": lambda s: (
        "POST", f"{START}/{s.made['run']}/steps/1/skip", {"json": {"reason": "mine now"}},
    ),
    "another's fork": lambda s: ("POST", f"{START}/{s.made['run']}/fork", {"json": {"at": 1, "reason": "mine now"}}),
    "another's key revoked": lambda s: ("POST", f"/api/v1/keys/{s.made['key']}/revoke", {}),
    "another's pause ended": lambda s: ("POST", f"/api/v1/pauses/{s.made['pause']}/resume", {"json": {}}),
    "another's letter": lambda s: ("POST", f"/api/v1/dead-letters/{s.made['letter']}/requeue", {"json": {}}),
    "another's definition": lambda s: ("POST", START, {"json": {"definition": "acme-own"}}),
    "another's chain": lambda s: ("GET", "/api/v1/chains/acme-chain", {}),
    "another's event": lambda s: ("GET", f"/api/v1/events/{s.made['event']}", {}),
    "all tenants paused by name": lambda s: ("POST", "/api/v1/pauses", {"json": {"definition": "*"}}),
    "maintenance": lambda s: ("POST", "/api/v1/maintenance", {"json": {"mode": "refuse"}}),
}  # fmt: skip
"""Requests of the rival, who may do everything at home, for what is acme's."""


@pytest.mark.row("P-158", "E-576", "EH-11")
@pytest.mark.parametrize("switch", SWITCHES)
def test_no_request_leaves_its_tenant(scene: Scene, switch: str) -> None:
    """By header, query, body, path, cursor or id: nothing of acme is shown to its rival, and nothing anywhere has changed."""
    rival = scene.world.client(tenant=RIVAL, actor="eve")
    before = tally(scene)
    method, path, more = SWITCHES[switch](scene)
    answer = rival.ask(method, path, **more)
    marks = ("of acme", "acme-1", scene.made["process"], scene.made["event"])
    assert answer.status_code in {200, 400, 403, 404, 409, 422}, answer.text
    assert method == "GET" or answer.status_code >= 400, answer.text
    assert not [mark for mark in marks if mark in answer.text and mark not in path]
    assert answer.status_code != 200 or answer.json().get("items") == [], answer.text
    assert tally(scene) == before


@pytest.mark.row("P-144")
def test_idempotency_keys_stay_at_home(scene: Scene) -> None:
    """The same Idempotency-Key is another run, or process, for another tenant, and for another partition of the same one."""
    clients = [
        scene.world.client(actor="ann"),
        scene.world.client(actor="nora", partition="north"),
        scene.world.client(actor="sue", partition="south"),
        scene.world.client(tenant=RIVAL, actor="eve"),
    ]
    header = {"headers": {"idempotency-key": "shared"}}
    for path, body in ((START, INPUT), ("/ui/workflows/orders.approval/start", {"total": 1})):
        answers = [each.post(path, body, **header) for each in clients]
        assert [each.status_code for each in answers] == [201] * 4
        assert len({each.json()["id"] for each in answers}) == 4
        again = [each.post(path, body, **header) for each in clients]
        assert [each.status_code for each in again] == [200] * 4
        assert [each.json()["id"] for each in again] == [each.json()["id"] for each in answers]
    slashed = [("a/b", "c"), ("a", "b/c")]
    found = [
        scene.world.client(actor="x", partition=part).post(START, INPUT, headers={"idempotency-key": key})
        for part, key in slashed
    ]
    assert [each.status_code for each in found] == [201, 201]


def test_no_tenant_is_another_ones_part_by_its_name(scene: Scene) -> None:
    """A tenant whose name is that of another and a part of it moves nothing of theirs: a patrol goes on where it was."""
    scene.world.calls(ACME, "north").documents.create("acme_invoice", {**INVOICE, "number": "R-2"}, id="acme-2")
    north = scene.world.client(actor="nora", partition="north")
    impostor = scene.world.client(tenant=f"{ACME}:north", actor="eve")
    patrol, one = "/api/v1/invariants/patrol", {"limit": 1}
    first = north.post(patrol, {**one, "anew": True}).json()
    assert (first["checked"], first["next"] is None) == (1, False)
    assert impostor.post(patrol, {**one, "anew": True}).json()["checked"] == 0
    second = north.post(patrol, one).json()
    assert (second["checked"], second["next"] == first["next"]) == (1, False)


# -- what a body, a header or a parameter can do

PACKED = {"content-type": "application/json", "content-encoding": "gzip"}
DEEP = b'{"definition":"ask","input":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}"
MALFORMED: dict[str, tuple[str, str, dict[str, Any], int]] = {
    "no JSON": ("POST", START, {"content": b"{"}, 400),
    "an array": ("POST", START, {"content": b"[]"}, 400),
    "a number": ("POST", START, {"content": b"1"}, 400),
    "null": ("POST", START, {"content": b"null"}, 400),
    "nothing": ("POST", START, {"content": b""}, 400),
    "two documents": ("POST", START, {"content": b'{"definition":"ask"}{}'}, 400),
    "NaN": ("POST", START, {"content": b'{"definition":"ask","input":{"a":NaN}}'}, 400),
    "infinity": ("POST", START, {"content": b'{"definition":"ask","input":{"a":Infinity}}'}, 400),
    "comments": ("POST", START, {"content": b'{"definition":"ask"/* */}'}, 400),
    "trailing comma": ("POST", START, {"content": b'{"definition":"ask",}'}, 400),
    "bad UTF-8": ("POST", START, {"content": b'{"definition":"\xff\xfe"}'}, 400),
    "lone surrogate": ("POST", START, {"content": b'{"definition":"\\ud800"}'}, 400),
    "UTF-16": ("POST", START, {"content": '{"definition":"ask"}'.encode("utf-16")}, 400),
    "byte order mark": ("POST", START, {"content": b'\xef\xbb\xbf{"definition":"ask"}'}, 400),
    "deep objects": ("POST", START, {"content": DEEP}, 413),
    "deep arrays": ("POST", START, {"content": b'{"definition":"ask","input":{"a":' + b"[" * 300 + b"]" * 300 + b"}}"}, 400),
    "unclosed arrays": ("POST", START, {"content": b"[" * 19_000}, 400),
    "brackets in a text are no depth": ("POST", START, {"content": b'{"definition":"no-such","input":{"a":"' + b"[{" * 300 + b'"}}'}, 404),
    "too large": ("POST", START, {"content": b'{"definition":"' + b"a" * 30_000 + b'"}'}, 413),
    "a huge number": ("POST", START, {"content": b'{"definition":"ask","input":{"a":1' + b"0" * 5000 + b"}}"}, 400),
    "a field twice": ("POST", START, {"content": b'{"definition":"no-such","definition":"ask"}'}, 400),
    "a field twice, once escaped": ("POST", START, {"content": b'{"definition":"no-such","d\\u0065finition":"ask"}'}, 400),
    "a field twice, deep down": ("POST", START, {"content": b'{"definition":"ask","input":{"a":[{"n":1},{"n":1,"n":2}]}}'}, 400),
    "a number for a text": ("POST", START, {"json": {"definition": 1}}, 400),
    "a text for an object": ("POST", START, {"json": {"definition": "ask", "input": "x"}}, 400),
    "an unknown field": ("POST", START, {"json": {"definition": "ask", "inptu": {}}}, 400),
    "no field": ("POST", START, {"json": {}}, 400),
    "an empty name": ("POST", START, {"json": {"definition": ""}}, 422),
    "a name with a NUL": ("POST", START, {"json": {"definition": "a\x00b"}}, 422),
    "a very long name": ("POST", START, {"json": {"definition": "a" * 5000}}, 422),
    "a key with a NUL": ("POST", START, {"json": {"definition": "ask", "key": "a\x00b"}}, 422),
    "a negative delay": ("POST", START, {"json": {"definition": "ask", "delay_seconds": -1}}, 400),
    "an endless delay": ("POST", START, {"json": {"definition": "ask", "delay_seconds": 1e300}}, 400),
    "form data": ("POST", START, {"data": {"definition": "ask"}}, 415),
    "plain text": ("POST", START, {"content": b'{"definition":"ask"}', "headers": {"content-type": "text/plain"}}, 415),
    "XML": ("POST", START, {"content": b"<a/>", "headers": {"content-type": "application/xml"}}, 415),
    "no media type": ("POST", START, {"content": b'{"definition":"ask"}', "headers": {"content-type": ""}}, 415),
    "a packed body": ("POST", START, {"content": gzip.compress(b'{"definition":"ask"}'), "headers": PACKED}, 415),
    "a body that unpacks to very much": ("POST", START, {"content": gzip.compress(b" " * 10**7), "headers": PACKED}, 415),
    "a body that is not packed as it says": ("POST", START, {"content": b'{"definition":"ask"}', "headers": PACKED}, 415),
    "almost JSON": ("POST", START, {"content": b"{}", "headers": {"content-type": "application/jsonp"}}, 415),
    "a body where none is": ("POST", "/api/v1/notifications/read-all", {"json": {"a": 1}}, 400),
    "Idempotency-Key too long": ("POST", START, {"json": INPUT, "headers": {"idempotency-key": "a" * 300}}, 400),
    "Idempotency-Key not printable": ("POST", START, {"json": INPUT, "headers": {"idempotency-key": "a\tb"}}, 400),
    "Idempotency-Key twice": (
        "POST", START, {"json": INPUT, "headers": [("idempotency-key", "a"), ("idempotency-key", "b")]}, 400,
    ),
    "If-Match where it means nothing": ("POST", START, {"json": INPUT, "headers": {"if-match": '"v1"'}}, 400),
    "limit of zero": ("GET", f"{START}?limit=0", {}, 400),
    "limit below zero": ("GET", f"{START}?limit=-5", {}, 400),
    "limit beyond all": ("GET", f"{START}?limit=99999999999999999999", {}, 400),
    "limit a text": ("GET", f"{START}?limit=ten", {}, 400),
    "limit twice": ("GET", f"{START}?limit=1&limit=2", {}, 400),
    "unknown parameter": ("GET", f"{START}?drop=table", {}, 400),
    "unknown order": ("GET", f"{START}?sort=password", {}, 400),
    "unknown status": ("GET", f"{START}?status=hacked", {}, 422),
    "time without a zone": ("GET", f"{START}?created_after=2030-01-01T00:00:00", {}, 422),
    "time that is none": ("GET", f"{START}?created_after=never", {}, 400),
    "year 10000": ("GET", f"{START}?created_after=10000-01-01T00:00:00Z", {}, 400),
    "parent that is no id": ("GET", f"{START}?parent=me", {}, 400),
    "waiting for ever": ("GET", f"{START}/0193a2b4-0000-7000-8000-000000000001/result?wait=1e9", {}, 400),
    "waiting for NaN": ("GET", f"{START}/0193a2b4-0000-7000-8000-000000000001/result?wait=nan", {}, 400),
    "Last-Event-ID that is none": ("GET", f"{START}/events", {"headers": {"last-event-id": "x"}}, 400),
    "method that is none": ("BREW", START, {}, 405),
    "TRACE": ("TRACE", START, {}, 405),
    "OPTIONS": ("OPTIONS", START, {}, 405),
    "DELETE of a run": ("DELETE", f"{START}/0193a2b4-0000-7000-8000-000000000001", {}, 405),
    "a slash more": ("GET", f"{START}/", {}, 404),
    "two slashes": ("GET", "//api/v1/executions", {}, 404),
    "an address that there is not": ("GET", "/api/v2/executions", {}, 404),
    "a file of the server": ("GET", "/../../etc/passwd", {}, 404),
    "a name with a line break": ("GET", "/api/v1/chains/a%0d%0aset-cookie:%20x=1", {}, 404),
}  # fmt: skip
"""Requests of somebody who may do everything, with something wrong in them, and what they are answered."""


@pytest.mark.row("P-157", "R-072")
@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_requests_change_nothing(scene: Scene, case: str) -> None:
    """What is wrong in itself is refused with a problem that says so; nothing is stored, and nobody can inject a header."""
    client = scene.world.client(actor="ann")
    before = tally(scene)
    method, path, more, status = MALFORMED[case]
    if isinstance(more.get("content"), bytes) and "headers" not in more:
        more = {**more, "headers": {"content-type": "application/json"}}
    answer = client.ask(method, path, **more)
    assert answer.status_code == status, answer.text
    told = answer.json()
    assert (told["status"], bool(told["code"]), bool(told["remedy"])) == (status, True, True)
    assert "set-cookie" not in answer.headers
    assert "Traceback" not in answer.text
    assert tally(scene) == before


HEADERS: dict[str, dict[str, str]] = {
    "request id with a line break": {"x-request-id": "a\r\nset-cookie: x=1"},
    "request id with markup": {"x-request-id": "<script>alert(1)</script>"},
    "request id too long": {"x-request-id": "a" * 500},
    "traceparent with a line break": {"traceparent": "00-" + "a" * 32 + "\r\nx: y"},
    "traceparent of zeros": {"traceparent": "00-" + "0" * 32 + "-" + "0" * 16 + "-01"},
    "traceparent that is none": {"traceparent": "ff-x"},
    "traceparent too long": {"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01-" + "c" * 5000},
}


@pytest.mark.parametrize("case", HEADERS)
def test_headers_of_a_request_do_not_come_back(scene: Scene, case: str) -> None:
    """A request id or a trace that is not sound is replaced, so that nobody writes into answers or logs."""
    scope_headers = [(name.encode(), value.encode()) for name, value in HEADERS[case].items()]
    answer = scene.world.client(actor="ann").get("/healthz", headers=scope_headers)
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    assert len(answer.headers["x-request-id"]) == 16
    assert not any(value in str(answer.headers) for value in HEADERS[case].values())


def test_names_of_people_write_no_lines_into_logs(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever an issuer calls by a name with a line break in it does not forge a line of the log by being refused."""
    forged = token(sub="ann\nrefused nothing to anybody", scope="task:use")
    with caplog.at_level("WARNING", logger="standfast.http"):
        assert scene.world.bearer(forged).get(START).status_code == 403
    told = [each.getMessage() for each in caplog.records if each.name == "standfast.http"]
    assert len(told) == 1
    assert len(told[0].splitlines()) == 1


# -- being refused without a trace

HIDING: dict[str, tuple[str, str]] = {
    "nothing": ("x", "x"),
    "a NUL": ("x%00y", "x%00y"),
    "a line break": ("x%0ay", "x%0Ay"),
    "a header": ("x%0d%0aset-cookie:%20y=1", "x%0D%0Aset-cookie: y=1"),
    "a tab": ("x%09y", "x%09y"),
    "a question mark": ("x%3Fy", "x?y"),
    "a hash": ("x%23y", "x#y"),
    "a backslash": ("x%5Cy", "x\\y"),
    "a colour of the terminal": ("x%1B[31m", "x%1B[31m"),
    "letters that are read backwards": ("x%E2%80%AEy", "x%E2%80%AEy"),
    "letters that are none": ("x%FFy", "x\ufffdy"),
    "half a letter": ("x%ED%A0%80y", "x\ufffd\ufffd\ufffdy"),
    "a very long name": ("x" * 3000, "x" * (2000 - len(START) - 1)),
}
"""What an address holds so that nobody finds it in the record of refusals, and how it stands there."""


@pytest.mark.row("R-072")
@pytest.mark.parametrize("case", HIDING)
def test_nobody_is_refused_without_a_trace(scene: Scene, case: str) -> None:
    """Whatever stands in the address, a refusal is on record with all of it, in letters that can be seen."""
    asked, told = HIDING[case]
    hides = scene.world.client(actor="hides", capabilities=("task:use",))
    raw = f"{START}/{asked}"
    assert hides.ask("GET", raw).status_code == 403
    kept = scene.world.engine.as_tenant(ACME).refusals.list(limit=1)[0]
    assert (kept.actor, kept.code, kept.path) == ("hides", "not_permitted", f"{START}/{told}")


def test_the_host_of_a_request_is_no_part_of_its_record(scene: Scene) -> None:
    """Whoever writes an address into the header `Host` is on record with the one that they asked for."""
    hides = scene.world.client(actor="hides", capabilities=("task:use",))
    for host in ("x/api/v1/me?", "x/api/v1/me#", "[", "x:y", "a@b"):
        assert hides.get(START, headers={"host": host}).status_code == 403
        kept = scene.world.engine.as_tenant(ACME).refusals.list(limit=1)[0]
        assert (kept.actor, kept.path) == ("hides", START)


def test_nobody_fills_the_record_by_being_refused(scene: Scene) -> None:
    """Of one credential so many refusals are kept; of further ones the next that is kept tells how many there were, and others have room of their own."""
    narrow = World(scene.world.engine, replace(GENEROUS, refusals_per_second=1e-6, refusals_burst=2))
    noisy, quiet = (narrow.client(actor=name, capabilities=("task:use",)) for name in ("noisy", "quiet"))
    refusals = scene.world.engine.as_tenant(ACME).refusals
    assert {noisy.get(START).status_code for _ in range(7)} == {403}
    assert [each.actor for each in refusals.list(limit=3)][:2] == ["noisy", "noisy"]
    assert [each.actor for each in refusals.list(limit=3)][2] != "noisy"
    assert quiet.get(START).status_code == 403
    assert refusals.list(limit=1)[0].actor == "quiet"
    server = narrow.app.state.server
    server.audit._rate = Rate(1.0, 1)  # A second later.
    assert noisy.get(START).status_code == 403
    assert refusals.list(limit=1)[0].detail.endswith("; 5 more before it are in the log alone")
    narrow.close()


# -- deliveries


def delivery(body: bytes, *, secret: bytes = SECRET, at: int | None = None, identity: str = "d-1") -> dict[str, str]:
    """The headers of a delivery, signed."""
    timestamp = str(at)
    signed = b".".join((identity.encode(), timestamp.encode(), body))
    signature = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    return {
        "content-type": "application/json", "webhook-id": identity, "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }  # fmt: skip


PAID = b'{"data":{"order":"o-1"}}'
DELIVERIES: dict[str, Callable[[int], tuple[str, bytes, dict[str, str]]]] = {
    "no signature": lambda now: ("shop", PAID, {"content-type": "application/json"}),
    "another secret": lambda now: ("shop", PAID, delivery(PAID, secret=b"x" * 32, at=now)),
    "an empty secret": lambda now: ("shop", PAID, delivery(PAID, secret=b"", at=now)),
    "another body": lambda now: ("shop", b'{"data":{"order":"o-2"}}', delivery(PAID, at=now)),
    "another id": lambda now: ("shop", PAID, {**delivery(PAID, at=now), "webhook-id": "d-2"}),
    "another time": lambda now: ("shop", PAID, {**delivery(PAID, at=now), "webhook-timestamp": str(now + 1)}),
    "of an hour ago": lambda now: ("shop", PAID, delivery(PAID, at=now - 3600)),
    "in an hour": lambda now: ("shop", PAID, delivery(PAID, at=now + 3600)),
    "time below zero": lambda now: ("shop", PAID, delivery(PAID, at=-1)),
    "time that is none": lambda now: ("shop", PAID, {**delivery(PAID, at=now), "webhook-timestamp": "now"}),
    "a very long time": lambda now: ("shop", PAID, {**delivery(PAID, at=now), "webhook-timestamp": "9" * 300}),
    "another version": lambda now: (
        "shop", PAID, {**delivery(PAID, at=now), "webhook-signature": delivery(PAID, at=now)["webhook-signature"].replace("v1,", "v9,")},
    ),
    "an empty signature": lambda now: ("shop", PAID, {**delivery(PAID, at=now), "webhook-signature": "v1,"}),
    "many signatures": lambda now: ("shop", PAID, {**delivery(PAID, at=now), "webhook-signature": "v1,x " * 500}),
    "no id": lambda now: ("shop", PAID, delivery(PAID, at=now, identity="")),
    "a very long id": lambda now: ("shop", PAID, delivery(PAID, at=now, identity="d" * 500)),
    "a hook that there is not": lambda now: ("other", PAID, delivery(PAID, at=now)),
    "a hook by a path": lambda now: ("..%2fshop", PAID, delivery(PAID, at=now)),
}  # fmt: skip
"""Deliveries that the shop has not sent, or not now."""


@pytest.mark.row("E-767")
@pytest.mark.parametrize("case", DELIVERIES)
def test_forged_deliveries_are_refused(scene: Scene, case: str) -> None:
    """A delivery that is not signed by who may send it, or not now, is refused with 401 and publishes nothing."""
    before = tally(scene)
    now = int(scene.world.engine.clock.now().timestamp())
    hook, body, headers = DELIVERIES[case](now)
    answer = scene.world.bearer().ask("POST", f"/hooks/{hook}", content=body, headers=headers)
    assert answer.status_code in {401, 404}, answer.text
    assert tally(scene) == before


@pytest.mark.row("E-767", "E-753", "EH-13")
def test_a_replayed_delivery_is_one_event(scene: Scene) -> None:
    """The same delivery twice is one event, kept for who waits later; another body under its id is refused; the tenant is the hook's."""
    engine = scene.world.engine
    now = int(engine.clock.now().timestamp())
    client = scene.world.bearer()
    headers = delivery(PAID, at=now, identity="d-77")
    first, again = (client.ask("POST", "/hooks/shop", content=PAID, headers=headers) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    other = b'{"data":{"order":"o-9"}}'
    refused = client.ask("POST", "/hooks/shop", content=other, headers=delivery(other, at=now, identity="d-77"))
    assert (refused.status_code, refused.json()["code"]) == (409, "reused_id")
    kept = [each for each in engine.as_tenant(ACME).events.list() if each.event == "shop.paid"]
    assert [(each.key, each.publisher) for each in kept] == [("o-1", "hook:shop")]
    keyless = b'{"data":{}}'
    unkeyed = client.ask("POST", "/hooks/shop", content=keyless, headers=delivery(keyless, at=now, identity="d-78"))
    assert unkeyed.status_code == 400
    double = b'{"data":{"order":"o-1","order":"o-2"}}'
    answer = client.ask("POST", "/hooks/shop", content=double, headers=delivery(double, at=now, identity="d-79"))
    assert (answer.status_code, answer.json()["code"]) == (400, "repeated_name")


# -- more rights than one has

GRABS: dict[str, dict[str, Any]] = {
    "every capability": {"capabilities": ["*"]},
    "a capability that the maker lacks": {"capabilities": ["execution:repair"]},
    "a wildcard over what the maker has": {"capabilities": ["execution:*"]},
    "a role that the maker lacks": {"roles": ["administrator"]},
    "an end that is past": {"expires_at": "2001-01-01T00:00:00Z"},
    "an end without a zone": {"expires_at": "2040-01-01T00:00:00"},
    "a system's kind": {"kind": "system"},
    "an actor without a name": {"actor": ""},
}


@pytest.mark.parametrize("grab", GRABS)
def test_nobody_makes_a_key_that_is_mightier_than_he_is(scene: Scene, grab: str) -> None:
    """Who may make keys gives them what he has himself and no more."""
    maker = scene.world.client(actor="clerk", capabilities=("keys:manage", "execution:read"))
    known = len(scene.world.engine.as_tenant(ACME).keys.list(limit=1000))
    answer = maker.post("/api/v1/keys", {"name": "grab", "actor": "thief", **GRABS[grab]})
    assert answer.status_code in {400, 403, 422}, answer.text
    assert len(scene.world.engine.as_tenant(ACME).keys.list(limit=1000)) == known


@pytest.mark.row("P-158")
def test_nobody_makes_a_key_as_somebody_of_the_directory(scene: Scene) -> None:
    """What somebody may do whom the directory knows goes with their name, so that a key as them would be mightier than whoever makes it; it takes a capability of its own."""
    whole, body = scene.world.calls(ACME), {"name": "grab", "kind": "user", "capabilities": ["task:use"]}
    whole.directory.put("bob")
    whole.directory.grant("bob", "approver")
    whole.directory.put("clerk")
    run = whole.start("ask")
    scene.world.engine.drain()
    path = f"/api/v1/tasks/{run.id}:1/approve"
    clerk = scene.world.client(actor="clerk", capabilities=("keys:manage", "task:use"))
    known = len(whole.keys.list(limit=1000))
    assert clerk.post(path, {}).status_code == 403
    for actor in ("bob", "acme-ann"):
        refused = clerk.post("/api/v1/keys", {**body, "actor": actor})
        assert (refused.status_code, "'keys:as-others'" in refused.json()["detail"]) == (403, True), refused.text
    assert len(whole.keys.list(limit=1000)) == known
    for actor in ("clerk", "a program that the directory does not know"):
        assert clerk.post("/api/v1/keys", {**body, "actor": actor}).status_code == 201
    mighty = scene.world.client(actor="clerk", capabilities=("keys:*", "task:use"))
    made = mighty.post("/api/v1/keys", {**body, "actor": "bob"})
    assert scene.world.bearer(made.json()["secret"]).post(path, {}).status_code == 204


def test_a_key_ends(scene: Scene) -> None:
    """A key shows its secret once, holds until it expires or is revoked, and then opens nothing; its use is told."""
    world = scene.world
    boss, until = world.client(actor="boss"), world.engine.clock.now() + timedelta(hours=1)
    made = boss.post(
        "/api/v1/keys",
        {"name": "short", "actor": "robot", "capabilities": ["execution:read"], "expires_at": until.isoformat()},
    )
    assert made.status_code == 201
    secret, identity = made.json()["secret"], made.json()["key"]["id"]
    assert secret not in boss.get(f"/api/v1/keys/{identity}").text
    assert world.bearer(secret).get(START).status_code == 200
    assert boss.get(f"/api/v1/keys/{identity}").json()["last_used_at"] is not None
    assert world.bearer(secret[:-1]).get(START).status_code == 401
    assert world.bearer(secret + "a").get(START).status_code == 401
    assert boss.ask("POST", f"/api/v1/keys/{identity}/revoke").json()["revoked_by"] == "boss"
    assert world.bearer(secret).get(START).status_code == 401
    other = boss.post(
        "/api/v1/keys",
        {"name": "short", "actor": "robot", "capabilities": ["execution:read"], "expires_at": until.isoformat()},
    )
    world.engine.advance(hours=1)
    assert world.bearer(other.json()["secret"]).get(START).status_code == 401


LISTED = (FORGERIES, SWITCHES, MALFORMED, HEADERS, HIDING, DELIVERIES, GRABS)
"""All attacks of this file."""
