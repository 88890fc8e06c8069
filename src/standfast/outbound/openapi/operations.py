"""One OpenAPI operation: builds its request from a step's input, and reads its response."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote, quote_plus

import msgspec

from standfast.engine.common.handlers import Fail, UncalledError
from standfast.expressions.model.suggestions import suggestion
from standfast.outbound.http import HttpRequest, HttpResponse, judge
from standfast.outbound.json_bodies import is_json, json_of, media_type
from standfast.outbound.openapi.documents import OpenApiDocument, Tree, below
from standfast.outbound.openapi.parameters import OpenApiParameter
from standfast.outbound.openapi.schemas import Schemas
from standfast.outbound.openapi.security import Credential, SecretRedaction
from standfast.outbound.urls import Url

_FORM: Final = "application/x-www-form-urlencoded"
_WHOLE: Final = "body"
_INSIDE: Final = "body."
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that change nothing and are safe to repeat."""
_NO_CONTENT: Final = frozenset({204, 205})
_SHOWN: Final = 200
"""Characters of an error response that are quoted."""
_IN_PATH: Final = "/%:@!$&'()*+,;=~"
"""Characters that a path keeps as they are; a percent sign may be escaped already."""
_HOLE: Final = re.compile(r"\{([^{}]*)\}")

_encode = msgspec.json.Encoder().encode


class RequestBody(msgspec.Struct, frozen=True, kw_only=True):
    """The request body of an operation."""

    media: str
    schema: str
    """Location of its schema; empty if it has none."""
    is_required: bool


class OperationInput(msgspec.Struct, frozen=True):
    """A step's input, by location in the request."""

    parameters: list[tuple[OpenApiParameter, object]]
    body: object
    has_body: bool


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """An OpenAPI operation."""

    name: str
    method: str
    path: str
    server: Url
    """Its target is the common prefix of all paths."""
    parameters: Sequence[OpenApiParameter]
    body: RequestBody | None
    responses: Tree
    place: str
    """Its location in the document."""
    credentials: Sequence[Credential]
    document: OpenApiDocument
    schemas: Schemas

    # -- the request

    def request(
        self, given: dict[str, object], *, secrets: Sequence[str], headers: dict[str, str], key: tuple[str, str]
    ) -> HttpRequest:
        """Build the request for an input.

        `key` is the header name and the value of the idempotency key, if there is one.
        """
        said = self._said(given, key)
        target = self._target(said, secrets)
        body = self._body(said)
        sent = {"Accept": "application/json", **headers, **self._headers(said, secrets)}
        if key[0] and self.method not in _SAFE:
            sent = {name: value for name, value in sent.items() if name.lower() != key[0].lower()} | {key[0]: key[1]}
        if body is not None and self.body is not None:
            sent["Content-Type"] = self.body.media
        return HttpRequest(
            method=self.method,
            place=msgspec.structs.replace(self.server, target=target),
            headers=sent,
            body=body,
        )

    def _said(self, given: dict[str, object], key: tuple[str, str]) -> OperationInput:
        values = {each.name: given.get(each.name) for each in self.parameters}
        rest = {name: value for name, value in given.items() if name not in values}
        if self.body is None:
            for name in rest:
                told = suggestion(name, values) or f"; it takes {', '.join(values) or 'nothing'}"
                raise UncalledError(f"{self.name!r} takes no {name!r}{told}")
        parameters = []
        for each in self.parameters:
            value = key[1] if _is_key(each, key[0]) else values[each.name]
            if value is None and each.is_required:
                raise UncalledError(f"{self.name!r} needs {each.name!r}, which the input of the step does not give")
            if value is not None:
                self._check(each.schema, value, repr(each.name))
                parameters.append((each, value))
        return self._with_body(parameters, rest)

    def _with_body(self, parameters: list[tuple[OpenApiParameter, object]], rest: dict[str, object]) -> OperationInput:
        inner = {name.removeprefix(_INSIDE): value for name, value in rest.items() if name != _WHOLE}
        if _WHOLE in rest and inner:
            raise UncalledError(f"{self.name!r} is given a whole `body` and parts of one; keep one of both")
        if self.body is None or (not rest and not self.body.is_required):
            return OperationInput(parameters, None, has_body=False)
        body: object = rest.get(_WHOLE, inner)
        self._check(self.body.schema, body, "the body")
        return OperationInput(parameters, body, has_body=True)

    def _check(self, schema: str, value: object, what: str) -> None:
        if schema and (faults := self.schemas.faults(schema, value)):
            raise UncalledError(f"{what} is not what {self.name!r} takes: {faults}")

    def _target(self, said: OperationInput, secrets: Sequence[str]) -> str:
        parts = {each.name: each.in_path(value) for each, value in said.parameters if each.where == "path"}
        pieces = _HOLE.split(self.path)  # Literal text and parameter names alternate.
        path = "".join(parts[each] if place % 2 else quote(each, safe=_IN_PATH) for place, each in enumerate(pieces))
        pairs = [pair for each, value in said.parameters if each.where == "query" for pair in each.in_query(value)]
        pairs += [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in self._secret("query", secrets)]
        return self.server.target.rstrip("/") + path + (f"?{'&'.join(pairs)}" if pairs else "")

    def _headers(self, said: OperationInput, secrets: Sequence[str]) -> dict[str, str]:
        secret = dict(self._secret("header", secrets))
        taken = {
            name.lower() for name in secret
        }  # A secret is sent once, also if a parameter spells its header in another case.
        given = [(each, value) for each, value in said.parameters if each.where == "header"]
        sent = {each.name: each.in_header(value) for each, value in given if each.name.lower() not in taken} | secret
        cookies = [each.in_cookie(value) for each, value in said.parameters if each.where == "cookie"]
        cookies += [f"{name}={quote(value, safe='')}" for name, value in self._secret("cookie", secrets)]
        return sent | ({"Cookie": "; ".join(cookies)} if cookies else {})

    def _secret(self, where: str, secrets: Sequence[str]) -> list[tuple[str, str]]:
        """Return the secrets of one part of the request, by name."""
        held = zip(self.credentials, secrets, strict=True)
        return [(each.name, each.shown(secret)) for each, secret in held if each.where == where]

    def _body(self, said: OperationInput) -> bytes | None:
        if not said.has_body or self.body is None:
            return None
        if self.body.media != _FORM:
            return _encode(said.body)
        if not isinstance(said.body, dict):
            raise UncalledError(f"{self.name!r} is sent as a form, which only an object can be")
        return "&".join(_pairs(said.body)).encode()

    # -- the answer

    def response(self, answer: HttpResponse, wanted: Iterable[str], redacted: SecretRedaction) -> dict[str, object]:
        """Build the step's result: the status, the requested headers and the body."""
        judge(answer, detail=_detail(answer, redacted))
        headers = {name: answer.headers.get(name) for name in wanted}
        return {"status": answer.status, "headers": headers, "body": self._answered(answer)}

    def _answered(self, answer: HttpResponse) -> object:
        content, place = self._described(answer.status)
        media = media_type(answer.headers.get("content-type", ""))
        if answer.body and media in content and not is_json(media):
            return None  # The document allows it, but a step could not read it.
        body = json_of(answer)
        known = media if media in content else next((each for each in content if is_json(each)), "")
        if answer.status in _NO_CONTENT or self.method == "HEAD" or not known:
            return body
        described = content[known]
        if isinstance(described, dict) and "schema" in described:
            faults = self.schemas.faults(below(place, "content", known, "schema"), body)
            if faults:
                raise Fail(f"the answer of {answer.place.name} is not what its document says: {faults}")
        return body

    def _described(self, status: int) -> tuple[Tree, str]:
        """Return the schema of a response body, and its location."""
        for name in (str(status), f"{status // 100}XX", "default"):
            if name in self.responses:
                part, place = self.document.located(self.responses[name], below(self.place, "responses", name))
                content = part.get("content", {})
                return (content if isinstance(content, dict) else {}), place
        return {}, ""


def body_of(document: OpenApiDocument, operation: Tree, place: str) -> RequestBody | None:
    """Return the request body of an operation; None if it has none."""
    if "requestBody" not in operation:
        return None
    part, there = document.located(operation["requestBody"], below(place, "requestBody"))
    content = part.get("content", {})
    known = content if isinstance(content, dict) else {}
    media = next((each for each in known if is_json(each)), _FORM if _FORM in known else "")
    if not media:
        raise document.flaw(f"wants a body at {there!r} that is neither JSON nor a form")
    described = known[media]
    has_schema = isinstance(described, dict) and "schema" in described
    schema = below(there, "content", media, "schema") if has_schema else ""
    return RequestBody(media=media, schema=schema, is_required=part.get("required") is True)


def check_path(document: OpenApiDocument, path: str, place: str, parameters: Sequence[OpenApiParameter]) -> None:
    """Check that a path is valid, and that each of its placeholders has a parameter."""
    known = {each.name for each in parameters if each.where == "path"}
    holes = set(_HOLE.findall(path))
    if not path.startswith("/") or holes - known:
        missing = ", ".join(sorted(holes - known)) or "a slash in front"
        raise document.flaw(f"has a path at {place!r} that misses {missing}")


def _is_key(parameter: OpenApiParameter, header: str) -> bool:
    """Return whether a parameter is the idempotency key, which the input need not have."""
    return bool(header) and parameter.where == "header" and parameter.name.lower() == header.lower()


def _pairs(body: dict[str, object]) -> Iterable[str]:
    for name, value in body.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict | list):
                raise UncalledError(f"{name!r} holds an object or a list inside, which a form cannot say")
            if each is not None:
                text = str(each).lower() if isinstance(each, bool) else str(each)
                yield f"{quote_plus(name)}={quote_plus(text)}"


def _detail(answer: HttpResponse, redacted: SecretRedaction) -> str:
    """Quote an error response, if it is text. Secrets are removed before it is cut."""
    media = media_type(answer.headers.get("content-type", ""))
    if answer.is_success or not (is_json(media) or media.startswith("text/")):
        return ""
    text = " ".join(redacted(answer.body.decode(errors="replace")).split())[:_SHOWN]
    return f": {''.join(each for each in text if each.isprintable())}" if text else ""
