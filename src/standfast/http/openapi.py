"""The OpenAPI 3.1 document, made from the table of routes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from standfast.http import remarks
from standfast.http.requests.routing import Route
from standfast.http.samples import Samples
from standfast.http.wire.problems import MEDIA_TYPE, Problem

_PARAMETER = re.compile(r"\{(\w+)\}")
_REFERENCE: Final = "#/components/schemas/{name}"
_TASK: Final = "0193a2b4-0000-7000-8000-000000000001:1"
_EXAMPLES: Mapping[str, object] = {
    "id": "0193a2b4-0000-7000-8000-000000000001",
    "number": "1",
    "name": "order",
    "person": "ann",
    "role": "finance",
    "workflow_id": "orders.approval",
    "event_id": "0193a2b4-0000-7000-8000-000000000002",
    "hook": "shop",
    "schedule": "nightly",
    "batch": "0193a2b4-0000-7000-8000-000000000004",
    "key": "0193a2b4000070008000000000000003",
    "session": "0193a2b4000070008000000000000004",
    "provider": "company",
    "type": "invoice",
    "document": "INV-1",
    "version": "1",
    "draft": "0193a2b4-0000-7000-8000-000000000005",
    "template": "invoice_approval",
    "charter": "rules:invoice",
    "projection": "spending",
}

_TAGGED: Final = 'The version of what is shown, and whether anything else of it has changed, as in `"v3.…"`.'

Schema = dict[str, object]


def document_of(routes: Sequence[Route], place: str = "/") -> bytes:
    """The document as JSON, for who finds these routes below `place`."""
    kinds = _kinds(routes)
    shown, components = msgspec.json.schema_components(kinds, schema_hook=_anything, ref_template=_REFERENCE)
    remarks.annotate(components, kinds)
    schemas = dict(zip(map(_mark, kinds), shown, strict=True))
    samples = Samples(components, _EXAMPLES)
    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas, samples)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Standfast",
                "version": "1",
                "description": "Durable workflows: runs, processes, people, and those who look after them.",
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": place}],
            "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in routes)],
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {
                    "bearer": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "An API key, or a token (JWT) of an issuer that the server believes.",
                    }
                },
            },
            "security": [{"bearer": []}],
        }
    )


def _kinds(routes: Sequence[Route]) -> list[object]:
    found: dict[str, object] = {_mark(Problem): Problem}
    for route in routes:
        fields = (each.type for each in msgspec.structs.fields(route.query))
        for kind in (route.body, route.answer, *fields):
            if kind is not None:
                found.setdefault(_mark(kind), kind)
    return list(found.values())


def _anything(kind: type) -> Schema:
    """The schema of what may be any JSON."""
    if kind is object:
        return {"description": "Any JSON."}
    raise NotImplementedError(f"{kind} has no schema")


def _mark(kind: object) -> str:
    return f"{getattr(kind, '__module__', '')}.{kind!r}"


def _operation(route: Route, schemas: Mapping[str, Schema], samples: Samples) -> dict[str, object]:
    told = inspect.getdoc(route.handler) or ""
    operation: dict[str, object] = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": told.split(". ")[0].split("; ")[0].rstrip("."),
        "description": _description(told, route),
        "parameters": list(_parameters(route, schemas)),
        "responses": dict(_responses(route, schemas, samples)),
        "x-permission": route.permission,
        "x-reach": route.reach,
    }
    if route.body is not None:
        content: dict[str, object] = {"schema": schemas[_mark(route.body)]}
        if route.example is not None:
            content["example"] = route.example
        others = {each: {"schema": {"type": "string"}} for each in route.texts}
        operation["requestBody"] = {"required": True, "content": {"application/json": content, **others}}
    if route.is_public:
        operation["security"] = []
    return operation


def _description(told: str, route: Route) -> str:
    needs = f" It takes the permission `{route.permission}`." if route.permission else ""
    return f"{told}{needs}"


def _parameters(route: Route, schemas: Mapping[str, Schema]) -> Iterator[dict[str, object]]:
    for name in _PARAMETER.findall(route.path):
        example = _TASK if route.path.startswith("/api/v1/tasks") and name == "id" else _EXAMPLES[name]
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1},
            "example": example,
        }
    for field in msgspec.structs.fields(route.query):
        schema = remarks.timed(dict(schemas[_mark(field.type)]), msgspec.inspect.type_info(field.type))
        if field.default is not msgspec.NODEFAULT:
            schema["default"] = field.default
        told = remarks.remarks_of(route.query).get(field.encode_name)
        said = {"description": told} if told else {}
        yield {"name": field.encode_name, "in": "query", "required": field.required, **said, "schema": schema}
    if not route.is_public and route.reach != "platform":
        yield _header(
            "Standfast-Partition",
            "Which part of the tenant is meant, for credentials that are bound to none; escaped as in an address.",
            {"type": "string", "minLength": 1, "maxLength": 512, "pattern": "^[A-Za-z0-9_.~-]+$"},
        )
    if route.is_repeatable:
        yield _header("Idempotency-Key", "Makes the request safe to repeat.", {"type": "string", "maxLength": 255})
    if route.takes_condition:
        yield _header("If-Match", "The ETag of what is to be changed, or `*`.", {"type": "string"})
    if route.media_type == "text/event-stream":
        yield _header(
            "Last-Event-ID", "The last event that the client has.", {"type": "string", "pattern": "^[0-9]{1,18}$"}
        )


def _header(name: str, told: str, schema: Schema) -> dict[str, object]:
    return {"name": name, "in": "header", "required": False, "description": told, "schema": schema}


def _responses(route: Route, schemas: Mapping[str, Schema], samples: Samples) -> Iterator[tuple[str, object]]:
    success = route.bodiless if route.answer is None else route.status
    for status in (success, *route.also):
        response: dict[str, object] = {"description": HTTPStatus(status).phrase}
        if HTTPStatus.NOT_MODIFIED in route.also and status < HTTPStatus.BAD_REQUEST:
            response["headers"] = {"ETag": {"description": _TAGGED, "schema": {"type": "string"}}}
        if route.answer is not None and status != HTTPStatus.NOT_MODIFIED:
            schema = schemas[_mark(route.answer)]
            told: Schema = {"schema": schema}
            if route.media_type == "application/json":
                told["example"] = samples.of(schema)
            response["content"] = {route.media_type.split(";")[0]: told}
        yield str(int(status)), response
    for status in problem_statuses(route):
        if status not in route.also:
            content = {MEDIA_TYPE: {"schema": schemas[_mark(Problem)]}}
            yield str(int(status)), {"description": HTTPStatus(status).phrase, "content": content}


def problem_statuses(route: Route) -> Iterable[int]:
    """The statuses of what can be refused at a route."""
    found = {400, 503}
    if not route.is_public:
        found |= {401, 403, 429}
    if _PARAMETER.search(route.path) or route.body is not None:
        found |= {404, 409, 422}
    if route.method != "GET":
        found |= {404, 408, 409, 413, 415, 422}
    if route.query.__struct_fields__:
        found |= {404, 422}
    if route.takes_condition:
        found |= {412}
    if route.path.startswith(("/hooks/", "/api/v1/session")):
        found |= {401, 403, 429}
    return sorted(found)
