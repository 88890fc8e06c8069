"""Operations of OpenAPI documents, called on a real server: what is sent for which input, and what of the answer is taken."""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml
from msgspec.structs import replace

from outbound.serving import Line, Received, Server, answer
from standfast import Actor, ApiDocument, ConfigurationError, Fail, Invocation, OpenApi, Retry
from standfast.engine.common.handlers import UncalledError
from standfast.kernel.ids import InstanceId
from standfast.outbound.http import HttpResponse
from standfast.outbound.openapi import documents
from standfast.outbound.openapi.operations import Operation
from standfast.outbound.openapi.security import SecretRedaction
from standfast.outbound.urls import place_of
from standfast.testing import ManualEngine

SHOP = """
openapi: 3.1.0
info: {title: Shop, version: "1"}
servers:
  - url: "https://{region}.shop.example/v1"
    variables: {region: {default: eu}}
security: [{key: []}]
paths:
  /orders/{id}:
    parameters:
      - {$ref: "#/components/parameters/Id"}
    get:
      operationId: getOrder
      parameters:
        - {name: expand, in: query, schema: {type: array, items: {type: string}}}
        - {name: fields, in: query, explode: false, schema: {type: array}}
        - {name: tags, in: query, style: pipeDelimited, explode: false, schema: {type: array}}
        - {name: words, in: query, style: spaceDelimited, explode: false, schema: {type: array}}
        - {name: filter, in: query, style: deepObject, schema: {type: object}}
        - {name: page, in: query, schema: {type: object}}
        - {name: span, in: query, explode: false, schema: {type: object}}
        - {name: query, in: query, content: {application/json: {schema: {type: object}}}}
        - {name: deep, in: query, schema: {type: boolean}}
        - {name: X-Shop, in: header, schema: {type: array}}
        - {name: X-Map, in: header, explode: true, schema: {type: object}}
        - {name: session, in: cookie, schema: {type: string}}
        - {name: Accept, in: header, schema: {type: string}}
      responses:
        "200": {$ref: "#/components/responses/Order"}
        "2XX": {description: no matter}
    put:
      operationId: putOrder
      requestBody: {$ref: "#/components/requestBodies/Order"}
      responses:
        "200": {description: ok, content: {application/json: {schema: {$ref: "#/components/schemas/Order"}}}}
        default: {description: trouble}
  /orders:
    post:
      operationId: createOrder
      parameters: [{name: idempotency-key, in: header, required: true, schema: {type: string}}]
      requestBody: {$ref: "#/components/requestBodies/Order"}
      responses: {"201": {$ref: "#/components/responses/Order"}, "204": {description: none}}
  /forms:
    post:
      operationId: sendForm
      security: []
      requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: object}}}}
      responses: {"200": {description: ok, content: {text/plain: {}}}}
  /basic: {get: {operationId: basic, security: [{login: []}], responses: {}}}
  /bearer: {get: {operationId: bearer, security: [{token: []}], responses: {}}}
  /asked: {get: {operationId: asked, security: [{asked: []}], responses: {}}}
  /biscuit: {get: {operationId: biscuit, security: [{biscuit: []}], responses: {}}}
  /either: {get: {operationId: either, security: [{nobody: []}, {}, {token: []}], responses: {}}}
  /nobody: {get: {operationId: nobody, security: [{nobody: []}], responses: {}}}
  /odd: {get: {operationId: odd, parameters: [{name: a, in: query, schema: {type: nonsense}}], responses: {}}}
  /matrix/{m}:
    get: {operationId: matrix, parameters: [{name: m, in: path, style: matrix}], responses: {}}
  /file: {post: {operationId: upload, requestBody: {content: {multipart/form-data: {}}}, responses: {}}}
  /away: {get: {operationId: away, parameters: [{$ref: "other.yaml#/x"}], responses: {}}}
  /nameless: {get: {responses: {}}}
components:
  parameters:
    Id: {name: id, in: path, required: true, schema: {type: [string, integer]}}
  requestBodies:
    Order: {required: true, content: {application/json: {schema: {$ref: "#/components/schemas/Order"}}}}
  responses:
    Order: {description: ok, content: {application/json: {schema: {$ref: "#/components/schemas/Order"}}}}
  schemas:
    Order:
      type: object
      required: [total]
      properties: {total: {type: number}, id: {type: string}, parts: {type: array, items: {$ref: "#/components/schemas/Order"}}}
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Api-Key}
    asked: {type: apiKey, in: query, name: key}
    biscuit: {type: apiKey, in: cookie, name: crumb}
    login: {type: http, scheme: Basic}
    token: {type: http, scheme: bearer}
    nobody: {type: oauth2, flows: {}}
"""
SECRETS = {
    "key": "env:SHOP_KEY",
    "asked": "env:SHOP_KEY",
    "biscuit": "env:SHOP_KEY",
    "login": "env:SHOP_LOGIN",
    "token": "env:SHOP_KEY",
}
KEY = "s3cr3t/key+"
ORDER = {"total": 3, "id": "o-1"}
CALL = Invocation(
    operation="shop.getOrder",
    input={"id": "o-1"},
    idempotency_key="i:1",
    tenant="default",
    instance=InstanceId(UUID(int=1)),
    workflow="orders",
    step="call",
    attempt=1,
    actor=Actor(id="ann"),
)


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", KEY)
    monkeypatch.setenv("SHOP_LOGIN", "ann:pass:word")


@cache
def parsed(text: str) -> dict[str, object]:
    """A document as data."""
    made = yaml.safe_load(text)
    assert isinstance(made, dict)
    return made


def shop(server: Server, text: str = SHOP, /, **options: object) -> OpenApi:
    """The invoker of the shop, whose server is the test's own."""
    given = {"server": f"{server.url}/v1/", "secrets": SECRETS, "allow": ["127.0.0.1"], **options}
    return OpenApi(ApiDocument("shop", parsed(text), **given))  # type: ignore[arg-type]


def called(server: Server, operation: str, given: dict[str, object] | None = None, **options: object) -> Received:
    """The request that a call leads to."""
    server.answers = [answer(ORDER)]
    shop(server, **options).invoke(replace(CALL, operation=f"shop.{operation}", input=given or {}))
    return server.received[-1]


# -- the request


@pytest.mark.row("P-084")
@pytest.mark.parametrize(
    ("given", "target"),
    [
        ({"id": 7}, "/v1/orders/7"),
        ({"id": "a/b?c#d e&é"}, "/v1/orders/a%2Fb%3Fc%23d%20e%26%C3%A9"),
        ({"id": "x", "expand": ["a", "b&c"]}, "/v1/orders/x?expand=a&expand=b%26c"),
        ({"id": "x", "fields": ["a", "b,c"]}, "/v1/orders/x?fields=a,b%2Cc"),
        ({"id": "x", "tags": ["a", "b"]}, "/v1/orders/x?tags=a%7Cb"),
        ({"id": "x", "words": ["a", "b"]}, "/v1/orders/x?words=a%20b"),
        ({"id": "x", "filter": {"a": 1, "b": True}}, "/v1/orders/x?filter%5Ba%5D=1&filter%5Bb%5D=true"),
        ({"id": "x", "page": {"from": 1, "to": 2}}, "/v1/orders/x?from=1&to=2"),
        ({"id": "x", "span": {"from": 1, "to": 2}}, "/v1/orders/x?span=from,1,to,2"),
        ({"id": "x", "query": {"a": [1]}}, "/v1/orders/x?query=%7B%22a%22%3A%5B1%5D%7D"),
        ({"id": "x", "deep": False, "fields": None}, "/v1/orders/x?deep=false"),
    ],
)
def test_parameters_go_where_the_document_says(server: Server, given: dict[str, object], target: str) -> None:
    """Each in its style, and nothing in a value can mean anything else; what is null is left out."""
    assert called(server, "getOrder", given).target == target


@pytest.mark.row("P-084")
def test_headers_and_cookies_go_there_too(server: Server) -> None:
    """Lists with commas, objects as pairs; `Accept` is not for parameters."""
    given: dict[str, object] = {"id": "x", "X-Shop": ["a", "b"], "X-Map": {"a": 1}, "session": "a;b c"}
    headers = called(server, "getOrder", given).headers
    assert headers == {
        "host": f"127.0.0.1:{server.port}",
        "accept": "application/json",
        "accept-encoding": "identity",
        "connection": "close",
        "user-agent": "standfast",
        "x-api-key": KEY,
        "x-shop": "a,b",
        "x-map": "a=1",
        "cookie": "session=a%3Bb%20c",
    }


@pytest.mark.row("P-084", "P-098")
def test_what_is_no_parameter_is_the_body(server: Server) -> None:
    """By name, as a whole, or with `body.` before a name that is a parameter too; with the idempotency key of the step."""
    request = called(server, "putOrder", {"id": "x", "total": 3, "body.id": "y", "parts": []})
    assert (request.method, request.target, request.data) == (
        "PUT",
        "/v1/orders/x",
        {"total": 3, "id": "y", "parts": []},
    )
    assert request.headers["content-type"] == "application/json"
    assert request.headers["idempotency-key"] == "i:1"
    assert called(server, "putOrder", {"id": "x", "body": {"total": 1}}).data == {"total": 1}


@pytest.mark.row("P-098")
def test_the_idempotency_key_has_the_header_that_the_service_knows(server: Server) -> None:
    """Also where the document makes it a parameter; none for what changes nothing, and none if it is switched off."""
    assert called(server, "createOrder", {"total": 1}).headers["idempotency-key"] == "i:1"
    assert called(server, "putOrder", {"id": "x", "total": 1}, idempotency_header="X-Once").headers["x-once"] == "i:1"
    assert "idempotency-key" not in called(server, "getOrder", {"id": "x"}).headers
    assert "idempotency-key" not in called(server, "putOrder", {"id": "x", "total": 1}, idempotency_header="").headers


def test_a_form_is_sent_as_one(server: Server) -> None:
    """Lists as several pairs, null as none; what the document says is text is nothing for a step to read."""
    server.answers = [answer(raw=b"fine", headers={"Content-Type": "text/plain; charset=utf-8"})]
    given: dict[str, object] = {"a": "b c&d", "list": [1, True], "none": None}
    response = shop(server).invoke(replace(CALL, operation="shop.sendForm", input=given))
    assert response == {"status": 200, "headers": {}, "body": None}
    (request,) = server.received
    assert request.body == b"a=b+c%26d&list=1&list=true"
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert "x-api-key" not in request.headers
    with pytest.raises(UncalledError, match="'a' holds an object"):
        shop(server).invoke(replace(CALL, operation="shop.sendForm", input={"a": {"b": 1}}))


def test_the_trace_goes_with_the_call(server: Server) -> None:
    """If it is one that others can read, by W3C."""
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    server.answers = [answer(ORDER)]
    for each in (trace, "own\r\ntrace"):
        shop(server).invoke(replace(CALL, trace=each))
    assert [each.headers.get("traceparent") for each in server.received] == [trace, None]


@pytest.mark.parametrize(
    ("operation", "given", "why"),
    [
        ("getOrder", {}, "needs 'id'"),
        ("getOrder", {"id": None}, "needs 'id'"),
        ("getOrder", {"id": ".."}, "cannot stand in a path"),
        ("getOrder", {"id": ""}, "cannot stand in a path"),
        ("getOrder", {"id": "x", "expnd": []}, "takes no 'expnd'.* did you mean 'expand'"),
        ("getOrder", {"id": {}}, r"'id' is not what .* takes: \$ does not hold to `type`"),
        ("getOrder", {"id": "x", "filter": {"a": {}}}, "holds dict inside"),
        ("putOrder", {"id": "x"}, r"the body is not what .*: \$ does not hold to `required`"),
        ("putOrder", {"id": "x", "parts": [{}], "total": 1}, r"\$\.parts\[0\] does not hold to `required`"),
        ("putOrder", {"id": "x", "body": {"total": 1}, "total": 1}, "a whole `body` and parts"),
        ("odd", {"a": 1}, r"its schema at .* cannot be used \(UnknownType\)"),
        ("matrix", {"m": 1}, "a style that is not known here: 'matrix'"),
        ("upload", {}, "neither JSON nor a form"),
        ("away", {}, "to another document"),
        ("nobody", {}, "needs a secret for 'nobody'"),
    ],
)
def test_what_cannot_be_asked_is_not_asked(server: Server, operation: str, given: dict[str, object], why: str) -> None:
    """The step learns what is wrong; nothing was called, and trying again would not help."""
    with pytest.raises(UncalledError, match=why):
        shop(server).invoke(replace(CALL, operation=f"shop.{operation}", input=given))
    assert not server.received


def test_a_header_cannot_bring_another_one(server: Server) -> None:
    """A line break in a value is refused."""
    with pytest.raises(Fail, match="the header 'X-Shop' holds a character"):
        called(server, "getOrder", {"id": "x", "X-Shop": ["a\r\nX-Api-Key: other"]})
    assert not server.received


def test_an_argument_that_means_nothing_is_refused(server: Server) -> None:
    """Operations of documents take none."""
    with pytest.raises(UncalledError, match="take no arguments, and 'speed' is given"):
        shop(server).invoke(replace(CALL, arguments={"speed": 1}))


# -- secrets


@pytest.mark.parametrize(
    ("operation", "where", "value"),
    [
        ("bearer", "authorization", f"Bearer {KEY}"),
        ("basic", "authorization", "Basic YW5uOnBhc3M6d29yZA=="),
        ("biscuit", "cookie", "crumb=s3cr3t%2Fkey%2B"),
        ("either", "authorization", f"Bearer {KEY}"),
    ],
)
def test_a_secret_goes_where_its_scheme_says(server: Server, operation: str, where: str, value: str) -> None:
    """The first alternative counts for which there is a secret; none only if nothing else can be had."""
    assert called(server, operation).headers[where] == value


def test_a_secret_of_the_query_is_in_no_message(server: Server) -> None:
    """It is a part of the address, which is told without it."""
    assert called(server, "asked").target == "/v1/asked?key=s3cr3t%2Fkey%2B"
    server.answers = [answer(status=404)]
    with pytest.raises(Fail) as raised:
        shop(server).invoke(replace(CALL, operation="shop.asked", input={}))
    assert "s3cr3t" not in str(raised.value)


def test_without_any_secret_the_alternative_that_needs_none_is_taken(server: Server) -> None:
    """`{}` stands for nobody in particular."""
    assert "authorization" not in called(server, "either", secrets={}).headers


@pytest.mark.parametrize("spelling", [KEY, "s3cr3t%2Fkey%2B", "pass:word", "YW5uOnBhc3M6d29yZA=="])
@pytest.mark.parametrize("status", [400, 503])
@pytest.mark.row("G-22")
def test_a_secret_that_comes_back_is_not_told(server: Server, spelling: str, status: int) -> None:
    """An answer may repeat what it was given, in any spelling: the error does not."""
    server.answers = [answer({"title": f"bad key {spelling}!"}, status=status)]
    operation = "bearer" if "s3cr3t" in spelling else "basic"
    with pytest.raises((Fail, Retry)) as raised:
        shop(server).invoke(replace(CALL, operation=f"shop.{operation}", input={}))
    assert spelling not in str(raised.value)
    assert "bad key ***!" in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("secret", ["s3cr3t-of-many-letters", 's3cr3t "of"  two\twords'])
@pytest.mark.parametrize("before", [0, 150, 175, 780])
def test_a_secret_is_not_told_in_part_either(
    server: Server, monkeypatch: pytest.MonkeyPatch, before: int, secret: str
) -> None:
    """Wherever an answer is cut that repeats it, and however the message is tidied up."""
    monkeypatch.setenv("SHOP_KEY", secret)
    server.answers = [answer({"title": f"{'x' * before} {secret}"}, status=400)]
    with pytest.raises(Fail) as raised:
        shop(server).invoke(replace(CALL, operation="shop.asked", input={}))
    assert "s3cr3t" not in str(raised.value)


def test_a_parameter_cannot_stand_beside_a_secret() -> None:
    """A header has one value, that of the secret, in whatever case a parameter spells its name."""
    text = """
    openapi: 3.1.0
    paths:
      /a: {get: {operationId: a, security: [{key: []}], parameters: [{name: x-api-KEY, in: header}], responses: {}}}
    components: {securitySchemes: {key: {type: apiKey, in: header, name: X-Api-Key}}}
    """
    document = ApiDocument("shop", parsed(text), server="https://shop.example", secrets={"key": "env:SHOP_KEY"})
    operation = document.operations["a"]
    assert isinstance(operation, Operation)
    request = operation.request({"x-api-KEY": "forged"}, secrets=[KEY], headers={}, key=("", ""))
    assert [value for name, value in request.headers.items() if name.lower() == "x-api-key"] == [KEY]


def test_a_secret_is_read_when_it_is_needed(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever changes it need not start anything anew; one that is not there is told by the name of where it should be."""
    there = tmp_path / "token"
    there.write_text("first\n", encoding="utf-8")
    api = shop(server, secrets={"token": f"file:{there}"})
    bearer = replace(CALL, operation="shop.bearer", input={})
    server.answers = [answer(ORDER)]
    api.invoke(bearer)
    there.write_text("second", encoding="utf-8")
    api.invoke(bearer)
    assert [each.headers["authorization"] for each in server.received] == ["Bearer first", "Bearer second"]
    monkeypatch.delenv("SHOP_KEY")
    with pytest.raises(ConfigurationError, match="there is no variable 'SHOP_KEY' in the environment"):
        shop(server).invoke(bearer)
    there.write_text("", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="the secret of 'token' is empty"):
        api.invoke(bearer)


@pytest.mark.parametrize("secret", [KEY, "", "env:", "s3cr3t", "file:"])
def test_a_secret_itself_is_no_reference(server: Server, secret: str) -> None:
    """It is refused, and not repeated."""
    with pytest.raises(ConfigurationError, match="must begin with env: or file:") as refused:
        shop(server, secrets={"key": secret})
    assert "s3cr3t" not in str(refused.value)


# -- the answer


@pytest.mark.row("P-084", "P-086")
def test_an_answer_has_status_headers_and_body(server: Server) -> None:
    """Of the headers those that somebody wants, by their names in lower case; null for one that is not there."""
    server.answers = [answer(ORDER, headers={"ETag": "e-1", "Set-Cookie": "x=1", "X-Two": "a"})]
    response = shop(server).invoke(replace(CALL, response_headers=("etag", "x-none")))
    assert response == {"status": 200, "headers": {"etag": "e-1", "x-none": None}, "body": ORDER}


@pytest.mark.row("P-086")
@pytest.mark.parametrize(
    ("said", "why"),
    [
        (answer({"id": "x"}), r"not what its document says: \$ does not hold to `required`"),
        (answer({"total": "secret value"}), r"\$\.total does not hold to `type`"),
        (answer([]), r"\$ does not hold to `type`"),
        (answer(raw=b""), r"\$ does not hold to `type`"),
        (answer(raw=b"{"), "invalid JSON"),
        (answer(raw=b"<p>", headers={"Content-Type": "text/html"}), "'text/html', and not JSON"),
        (answer({}, status=404), "has answered 404"),
        (
            answer(raw=b"no\x07 such\n order", status=404, headers={"Content-Type": "text/plain"}),
            "404: no such order",
        ),
        (answer({}, status=302, headers={"Location": "/"}), "302.*; redirections are not followed"),
        (answer(raw=b"1" * 1001), "more than 1000 bytes"),
    ],
)
def test_an_answer_that_is_not_what_the_document_says_is_final(server: Server, said: bytes, why: str) -> None:
    """It says what is wrong, and shows nothing of what was kept from everybody."""
    server.answers = [said]
    with pytest.raises(Fail, match=why) as raised:
        shop(server, max_response_bytes=1000).invoke(CALL)
    assert "secret value" not in str(raised.value)


@pytest.mark.row("P-086")
@pytest.mark.parametrize(
    ("operation", "said", "body"),
    [
        ("getOrder", answer({"any": 1}, status=202), {"any": 1}),
        ("createOrder", answer(raw=b"", status=204), None),
        ("createOrder", answer({"any": 1}, status=200), {"any": 1}),
        ("putOrder", answer({"any": 1}, status=207), {"any": 1}),
    ],
)
def test_what_the_document_does_not_describe_is_taken_as_it_is(
    server: Server, operation: str, said: bytes, body: object
) -> None:
    """Any success is one, and nothing is nothing."""
    server.answers = [said]
    response = shop(server).invoke(
        replace(
            CALL,
            operation=f"shop.{operation}",
            input={"id": "x", "total": 1} if operation != "getOrder" else {"id": "x"},
        )
    )
    assert response["body"] == body


def test_a_fault_of_the_service_is_tried_again_when_it_wants(server: Server) -> None:
    """5xx, 408, 425 and 429, with their Retry-After."""
    server.answers = [answer({"title": "busy"}, status=429, headers={"Retry-After": "9"})]
    with pytest.raises(Retry, match="has answered 429") as raised:
        shop(server).invoke(CALL)
    assert raised.value.after is not None
    assert raised.value.after.total_seconds() == 9


def test_a_call_takes_no_longer_than_its_step_may(server: Server) -> None:
    """The shorter of both counts: the limit of the document, and what is left to the step."""

    def silent(line: Line, _request: Received) -> None:
        line.recv(1)  # Until the other side has had enough.

    server.answers = [silent]
    with pytest.raises(Retry, match="has not answered in time"):
        shop(server, timeout=0.2).invoke(CALL)
    with pytest.raises(Retry, match="has not answered in time"):
        shop(server).invoke(replace(CALL, time_limit=0.2))
    with pytest.raises(Retry, match=r"has not answered in time|cannot be reached"):
        shop(server).invoke(replace(CALL, time_limit=-5.0))


def test_redirections_are_followed_if_they_may_be(server: Server) -> None:
    """As often as the document is told."""
    server.answers = [answer({}, status=307, headers={"Location": "/elsewhere"}), answer(ORDER)]
    assert shop(server, redirects=1).invoke(CALL)["body"] == ORDER


def test_an_address_that_is_not_allowed_is_not_called(server: Server) -> None:
    """Whatever server the document names."""
    with pytest.raises(Fail, match="a loopback address"):
        shop(server, allow=()).invoke(CALL)
    assert not server.received


# -- the document


def test_a_document_comes_from_a_file_or_a_package(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """YAML or JSON, by path or as `package:`."""
    package = tmp_path / "shop_apis"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "inner" / "shop.json").write_text(json.dumps(parsed(SHOP)), encoding="utf-8")
    (tmp_path / "shop.yaml").write_text(SHOP, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    server.answers = [answer(ORDER)]
    for where in (tmp_path / "shop.yaml", str(tmp_path / "shop.yaml"), "package:shop_apis/inner/shop.json"):
        document = ApiDocument("shop", where, server=server.url, secrets=SECRETS, allow=["127.0.0.1"])
        assert OpenApi(document).invoke(CALL)["body"] == ORDER
    sys.modules.pop("shop_apis", None)


def test_the_server_is_that_of_the_document_unless_another_is_given() -> None:
    """With the defaults of what is variable in it; every operation with an id can be called."""
    api = ApiDocument("shop", parsed(SHOP), secrets=SECRETS)
    operation = api.operations["getOrder"]
    assert not isinstance(operation, str)
    assert (operation.server.name, operation.server.target) == ("eu.shop.example", "/v1")
    names = OpenApi(api).operations()
    assert "shop.getOrder" in names
    assert "shop.matrix" in names
    assert len(names) == 14


def test_schemas_of_version_3_0_mean_what_they_say(server: Server) -> None:
    """`nullable`, and bounds that are exclusive by a flag."""
    old = SHOP.replace("openapi: 3.1.0", "openapi: 3.0.3").replace(
        "total: {type: number}", "total: {type: number, nullable: true, minimum: 0, exclusiveMinimum: true}"
    )
    old = old.replace("type: [string, integer]", "type: string")
    for body, is_sound in (({"total": None}, True), ({"total": 1}, True), ({"total": 0}, False)):
        server.answers = [answer(body)]
        if is_sound:
            assert shop(server, old).invoke(CALL)["body"] == body
        else:
            with pytest.raises(Fail, match="exclusiveMinimum"):
                shop(server, old).invoke(CALL)


PATTERNS: list[tuple[str, dict[str, object], str]] = [
    ('id: {type: string, pattern: "^o-[0-9]+$"}', {"id": "o-1"}, ""),
    ('id: {type: string, pattern: "^o-[0-9]+$"}', {"id": "x"}, "does not hold to `pattern`"),
    ('id: {type: string, pattern: "^(a+)+$"}', {"id": "a" * 5000 + "!"}, "does not hold to `pattern`"),
    ('id: {type: string, pattern: "^(?=.*[A-Z])a$"}', {"id": "a"}, ""),
    ("id: {type: string, pattern: 7}", {"id": "a"}, ""),
    ("id: {type: string, pattern: '^(x?){900}$'}", {"id": "x" * 100_000}, ""),
]


@pytest.mark.parametrize(("declared", "body", "why"), PATTERNS)
def test_patterns_of_a_document_take_no_time(server: Server, declared: str, body: dict[str, object], why: str) -> None:
    """They are matched like those of forms; one that is not taken there, or a text that is too long for it, is left to the other system."""
    text = SHOP.replace("id: {type: string}", declared)
    server.answers = [answer({"total": 1, **body})]
    if why:
        with pytest.raises(Fail, match=why):
            shop(server, text).invoke(CALL)
    else:
        assert shop(server, text).invoke(CALL)["body"] == {"total": 1, **body}


NAMED = """properties: {total: {type: number}}
      patternProperties: {"^x-": {type: string}, "^(?=y)": {type: string}}
      additionalProperties: ADDITIONAL
      unevaluatedProperties: false"""


@pytest.mark.parametrize(
    ("additional", "body", "why"),
    [
        ("false", {"x-a": "b"}, ""),
        ("false", {"x-a": 5}, "does not hold to `type`"),
        ("{type: string}", {"other": 5}, ""),
        ("true", {"other": 5}, ""),
    ],
)
def test_names_by_patterns_take_no_time(server: Server, additional: str, body: dict[str, object], why: str) -> None:
    """Which names a pattern is about is found in linear time too; where that cannot be told of one, other names are not refused."""
    declared = NAMED.replace("ADDITIONAL", additional)
    text = SHOP.replace(
        'properties: {total: {type: number}, id: {type: string}, parts: {type: array, items: {$ref: "#/components/schemas/Order"}}}',
        declared,
    )
    assert text != SHOP
    server.answers = [answer({"total": 1, **body})]
    if why:
        with pytest.raises(Fail, match=why):
            shop(server, text).invoke(CALL)
    else:
        assert shop(server, text).invoke(CALL)["body"] == {"total": 1, **body}


def test_other_names_are_refused_where_patterns_tell(server: Server) -> None:
    """A name that neither a property nor a pattern has is judged by `additionalProperties`."""
    declared = NAMED.replace(', "^(?=y)": {type: string}', "")
    place = 'properties: {total: {type: number}, id: {type: string}, parts: {type: array, items: {$ref: "#/components/schemas/Order"}}}'
    for additional, given in (("false", "a"), ("{type: string}", 5)):
        server.answers = [answer({"total": 1, "other": given})]
        with pytest.raises(Fail, match="does not hold to"):
            shop(server, SHOP.replace(place, declared.replace("ADDITIONAL", additional))).invoke(CALL)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("openapi: 3.1.0", "swagger: '2.0'", r"no OpenAPI document of version 3\.0 or 3\.1"),
        ("openapi: 3.1.0", "openapi: 4.0.0", "no OpenAPI document"),
        ("operationId: putOrder", "operationId: getOrder", "several operations 'getOrder'"),
        ("paths:", "webhooks: {}\npaths: 7\nx-paths:", "an object must stand"),
    ],
)
def test_a_document_that_is_none_is_refused(server: Server, old: str, new: str, why: str) -> None:
    """When it is given, and not when it is called."""
    with pytest.raises(ConfigurationError, match=why):
        shop(server, SHOP.replace(old, new, 1))


@pytest.mark.parametrize("name", ["get\\nOrder", "o" * 4000])
def test_an_operation_that_no_step_can_name_is_left_out(server: Server, name: str) -> None:
    """The others are there all the same; the document tells why this one cannot be called."""
    text = SHOP.replace("operationId: basic", f'operationId: "{name}"')
    invoker = shop(server, text)
    assert "shop.getOrder" in invoker.operations()
    assert "shop.basic" not in invoker.operations()
    with ManualEngine(invokers={"openapi": invoker}) as engine:
        assert "openapi:shop.getOrder" in engine.service.shared.handlers.names()
    document = ApiDocument("shop", parsed(text), secrets=SECRETS)
    (why,) = [each for each in document.operations.values() if isinstance(each, str) and "steps cannot name it" in each]
    assert len(why) < 100


def test_a_path_is_quoted(server: Server) -> None:
    """What a document writes as people do goes as the protocol wants it; what is quoted already stays."""
    text = SHOP.replace("  /basic: {get:", '  "/a b/é/%20": {get:')
    server.answers = [answer(ORDER)]
    shop(server, text).invoke(replace(CALL, operation="shop.basic", input={}))
    assert server.received[-1].target == "/v1/a%20b/%C3%A9/%20"


def test_the_keys_of_an_answer_are_not_repeated_at_length(server: Server) -> None:
    """However long they are, the message about them is short."""
    text = SHOP.replace(
        "      required: [total]", "      required: [total]\n      additionalProperties: {type: number}"
    )
    server.answers = [answer({"total": 1, "k" * 5000: "x"})]
    with pytest.raises(Fail, match="does not hold to `type`") as caught:
        shop(server, text).invoke(CALL)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"secrets": {"kye": "env:X"}}, "has no security scheme 'kye'.*did you mean 'key'"),
        ({"secrets": {"zzz": "env:X"}}, "has no security scheme 'zzz'.*; it has .*login, token"),
        ({"timeout": 0}, "timeout must be a number"),
        ({"timeout": "fast"}, "timeout must be a number"),
        ({"redirects": 99}, "redirects must be a number"),
        ({"headers": {"X": "a\nb"}}, "header"),
        ({"idempotency_header": "a b"}, "header"),
        ({"allow": ["a b"]}, "outbound_allow"),
    ],
)
def test_options_that_cannot_be_are_refused(server: Server, options: dict[str, object], why: str) -> None:
    """With what would be possible."""
    with pytest.raises(ConfigurationError, match=why):
        shop(server, **options)


@pytest.mark.parametrize("address", ["", "/v1", "ftp://x", "https://u:p@x/", "https://x/?a=b"])
def test_an_operation_without_a_server_says_so(server: Server, address: str) -> None:
    """A document may name one that means something only where it came from."""
    text = SHOP.replace('"https://{region}.shop.example/v1"', f'"{address}"')
    with pytest.raises(UncalledError, match=r"has no server|with a query"):
        shop(server, text, server="").invoke(CALL)


def test_a_file_that_is_not_there_or_says_nothing_is_refused(tmp_path: Path) -> None:
    """By its name."""
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [", encoding="utf-8")
    deep = tmp_path / "deep.json"
    deep.write_text('{"openapi": "3.1.0", "a": ' + "[" * 500 + "]" * 500 + "}", encoding="utf-8")
    bomb = tmp_path / "bomb.yaml"
    lines = ["openapi: 3.1.0", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    bomb.write_text("\n".join(lines), encoding="utf-8")
    nested = tmp_path / "nested.yaml"
    nested.write_text("a: " + "[" * 200_000, encoding="utf-8")
    merging = tmp_path / "merging.yaml"
    lines = ["openapi: 3.1.0", "a0: &a0 {x: x, y: y}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 9)]
    merging.write_text("\n".join(lines), encoding="utf-8")
    for where, why in (
        (nested, "too deep"),
        (merging, "too large"),
        (tmp_path / "none.yaml", "cannot be read: No such file or directory; give the path of a file, or package:"),
        ("package:no_such_package/x.yaml", "cannot be read: No module named 'no_such_package'; give"),
        (broken, "neither JSON nor YAML"),
        (deep, "too deep"),
        (bomb, "too large"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            ApiDocument("shop", where)


def test_documents_have_names_of_their_own() -> None:
    """By which steps know them."""
    api = ApiDocument("shop", parsed(SHOP), secrets=SECRETS)
    with pytest.raises(ConfigurationError, match="the same name"):
        OpenApi(api, api)
    with pytest.raises(ConfigurationError, match="cannot be the name"):
        ApiDocument("a.b", parsed(SHOP))


def test_references_in_a_circle_are_refused(server: Server) -> None:
    """They lead nowhere."""
    circle = SHOP.replace(
        "Id: {name: id, in: path, required: true, schema: {type: [string, integer]}}",
        'Id: {$ref: "#/components/parameters/Id"}',
    )
    with pytest.raises(UncalledError, match="in a circle"):
        shop(server, circle).invoke(CALL)


@pytest.mark.parametrize(
    "place", ["info/title/Shop", "info/title/x", "servers/0", "info/version/1", "nope", "number/7"]
)
def test_references_to_nothing_are_refused(server: Server, place: str) -> None:
    """Behind a text, a list or a number nothing stands, whatever is in it."""
    lost = SHOP.replace("info:", "number: 7\ninfo:").replace(
        "Id: {name: id, in: path, required: true, schema: {type: [string, integer]}}", f'Id: {{$ref: "#/{place}"}}'
    )
    with pytest.raises(UncalledError, match="which it does not hold"):
        shop(server, lost).invoke(CALL)


JUNK: list[object] = [
    None,
    7,
    "x",
    [],
    {},
    [None],
    [{"a": 1}],
    {"$ref": "#/components"},
    {"$ref": 7},
    {"$ref": "#/nope"},
    {"$ref": "#/components/schemas/Order"},
    {"type": 7},
    {"pattern": "("},
    {"properties": []},
    {"enum": 7},
]
ANSWER = HttpResponse(
    status=200,
    headers={"content-type": "application/json"},
    body=b'{"total": 1, "parts": [{"total": 2}]}',
    place=place_of("http://shop.example/"),
)


def _places(tree: object, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where something stands in a document."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for name, value in items:
        yield (*at, name)
        yield from _places(value, (*at, name))


@pytest.mark.parametrize("seed", range(4))
def test_a_document_that_is_wrong_somewhere_says_so(seed: int) -> None:
    """Whatever stands where: when it is given, when it is called, or when it is answered, and never by an error of Python's own."""
    chance, known = random.Random(seed), list(_places(parsed(SHOP)))
    for _ in range(60):
        tree: Any = copy.deepcopy(parsed(SHOP))
        *path, last = chance.choice(known)
        part = tree
        for name in path:
            part = part[name]
        part[last] = copy.deepcopy(chance.choice(JUNK))
        with suppress(ConfigurationError):
            api = ApiDocument("shop", tree, secrets=SECRETS)
            for operation in [each for each in api.operations.values() if not isinstance(each, str)]:
                given: dict[str, object] = {each.name: "x" for each in operation.parameters if each.is_required}
                secrets = ["s"] * len(operation.credentials)
                with suppress(Fail):
                    operation.request(
                        {**given, "total": 1} if operation.body else given, secrets=secrets, headers={}, key=("K", "k")
                    )
                with suppress(Fail):
                    operation.response(ANSWER, [], SecretRedaction([]))


def test_the_largest_document_that_is_read_has_just_as_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an alias stands for is counted too; one part more is refused before it is made."""
    for text, parts in (("[a, b]", 3), ("{a: [b], c: d}", 6), ("[&x [a, b], *x]", 7)):
        for most in (parts, parts - 1):
            monkeypatch.setattr(documents, "_MOST_PARTS", most)
            is_refused = False
            try:
                documents._check_size(yaml.parse(text, Loader=yaml.SafeLoader), "d")
            except ConfigurationError:
                is_refused = True
            assert is_refused == (most < parts), (text, most)
