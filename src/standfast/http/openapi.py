"""The OpenAPI 3.1 document, generated from the table of routes.

Descriptions come from the docstrings below the fields of types. Example responses are made from the schemas.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, cast, get_origin

import msgspec

from standfast.http.requests.routing import Route
from standfast.http.wire.problems import MEDIA_TYPE, Problem
from standfast.kernel.codec.type_cache import settled

_OpenSchema = dict[str, Any]


@functools.cache
def remarks_of(kind: type) -> Mapping[str, str]:
    """Return the descriptions of a type's fields by their JSON names, inherited fields included."""
    told: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        told |= _written(base.__module__).get(base.__qualname__, {})
    names = {each.name: each.encode_name for each in msgspec.structs.fields(kind)}
    return {names[name]: text for name, text in told.items() if name in names}


def annotate(components: Mapping[str, _OpenSchema], kinds: Iterable[object]) -> None:
    """Add descriptions of fields, and the format of instants, to the schemas of these types."""
    for found in _structs(kinds):
        kind = get_origin(found.cls) or found.cls  # A list of runs, and one of people, are of one class.
        told = remarks_of(kind)
        for schema, field in itertools.product(_schemas_of(components, kind), found.fields):
            shown: _OpenSchema = schema["properties"].get(field.encode_name, {})
            shown |= timed(shown, field.type)
            if field.encode_name in told:
                shown.setdefault("description", told[field.encode_name])


def timed(schema: _OpenSchema, kind: object) -> _OpenSchema:
    """The schema of a field that says so if it is an instant."""
    if isinstance(kind, msgspec.inspect.DateTimeType):
        return {**schema, "format": "date-time"}
    if isinstance(kind, msgspec.inspect.UnionType) and "anyOf" in schema:
        is_time = any(isinstance(each, msgspec.inspect.DateTimeType) for each in kind.types)
        ways = [
            {**each, "format": "date-time"} if is_time and each == {"type": "string"} else each
            for each in schema["anyOf"]
        ]
        return {**schema, "anyOf": ways}
    return schema


def _structs(kinds: Iterable[object]) -> Iterator[msgspec.inspect.StructType]:
    """All structs that these kinds are made of, each once."""
    known: set[type] = set()
    waiting: list[object] = list(msgspec.inspect.multi_type_info([settled(each) for each in kinds]))
    while waiting:
        found = waiting.pop()
        if isinstance(found, msgspec.inspect.StructType):
            if found.cls in known:
                continue
            known.add(found.cls)
            waiting += [each.type for each in found.fields]
            yield found
        elif isinstance(found, msgspec.inspect.Type):
            for name in found.__struct_fields__:
                value = getattr(found, name)
                waiting += value if isinstance(value, tuple) else [value]


def _schemas_of(components: Mapping[str, _OpenSchema], kind: type) -> Iterator[_OpenSchema]:
    """The schemas of a struct: one for each type that it is of, if it is of several; those that are called alike have their modules before them."""
    names, of_others = {kind.__name__, f"{kind.__module__}.{kind.__qualname__}"}, f"{kind.__name__}_"
    is_general = bool(getattr(kind, "__parameters__", ()))
    for name, schema in components.items():
        if "properties" in schema and (name in names or (is_general and name.startswith(of_others))):
            yield schema


@functools.cache
def _written(module: str) -> Mapping[str, Mapping[str, str]]:
    """Parse the field docstrings of a module's classes; empty where only its compiled form is installed."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):
        return {}
    return {each.name: dict(_told(each)) for each in tree.body if isinstance(each, ast.ClassDef)}


def _told(written: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in zip(written.body, written.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
            yield field.target.id, " ".join(text.value.value.split())


_SchemaView = Mapping[str, object]

_DEEPEST: Final = 6
_OF_FORMAT: Final[Mapping[str, str]] = {
    "date-time": "2026-03-31T12:00:00Z",
    "date": "2026-03-31",
    "duration": "PT1H",
    "uuid": "0193a2b4-0000-7000-8000-000000000001",
}


_OF_PATTERN: Final = (
    "invoice", "invoice.post", "slot:submitted_to_approved", "sys:state:submitted", "sys:gate:approve", "0" * 64, "1.0.0",
)  # fmt: skip
"""Sample values, one of which matches any pattern in use."""
_OF_TIME: Final = ("_at", "since", "until", "_after", "_before")


class Samples:
    """Makes sample values of schemas: words used in example paths, or the names of fields."""

    def __init__(self, components: Mapping[str, _SchemaView], words: Mapping[str, object]) -> None:
        self._components = components
        self._words = words

    def of(self, schema: _SchemaView, name: str = "", depth: int = 0) -> object:
        """A value that a schema allows."""
        if "$ref" in schema:
            return self.of(self._components[str(schema["$ref"]).rpartition("/")[2]], name, depth + 1)
        if "enum" in schema:
            return cast("list[object]", schema["enum"])[0]
        if "const" in schema:
            return schema["const"]
        if "anyOf" in schema:
            ways = cast("list[Schema]", schema["anyOf"])
            nothing = [each for each in ways if each.get("type") == "null"]
            return self.of(nothing[0] if nothing and depth > _DEEPEST else ways[0], name, depth)
        return self._of_type(schema, name, depth)

    def _of_type(self, schema: _SchemaView, name: str, depth: int) -> object:
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "string":
                return _OF_FORMAT.get(str(schema.get("format", ""))) or self._word(schema, name)
            case "integer" | "number":
                return schema.get("minimum", 1)
            case other:
                return {"boolean": False, "null": None}.get(str(other), {})

    def _object(self, schema: _SchemaView, depth: int) -> dict[str, object]:
        fields = cast("Mapping[str, Schema]", schema.get("properties", {}))
        shown = cast("list[str]", schema.get("required", [])) if depth > _DEEPEST else fields
        made = {each: self.of(fields[each], each, depth + 1) for each in shown}
        others = schema.get("additionalProperties")
        if not made and isinstance(others, Mapping) and ("minProperties" in schema or "propertyNames" not in schema):
            return {"name": self.of(others, "value", depth + 1)}
        return made

    def _array(self, schema: _SchemaView, name: str, depth: int) -> list[object]:
        parts = cast("list[Schema]", schema.get("prefixItems", []))
        items = cast("Schema", schema.get("items") or {})
        if items and not parts and (depth <= _DEEPEST or "minItems" in schema):
            parts = [items]
        return [self.of(each, name, depth + 1) for each in parts]

    def _word(self, schema: _SchemaView, name: str) -> str:
        if "contentEncoding" in schema:
            return ""
        if name.endswith(_OF_TIME):  # Schemas do not tell times from other texts.
            return _OF_FORMAT["date-time"]
        known = self._words.get(name)
        told = known if isinstance(known, str) else name or "text"
        pattern = str(schema.get("pattern", ""))
        return next((each for each in (told, *_OF_PATTERN) if re.search(pattern, each)), told)


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
    """Return the document as JSON, for an API mounted below `place`."""
    kinds = _kinds(routes)
    shown, components = msgspec.json.schema_components(kinds, schema_hook=_anything, ref_template=_REFERENCE)
    annotate(components, kinds)
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
                "description": "Durable workflows: runs, processes, documents, human tasks and operations.",
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
    """Return the schema of any JSON value."""
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
        schema = timed(dict(schemas[_mark(field.type)]), msgspec.inspect.type_info(field.type))
        if field.default is not msgspec.NODEFAULT:
            schema["default"] = field.default
        told = remarks_of(route.query).get(field.encode_name)
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
        yield _header("If-Match", "The ETag of the resource to change, or `*`.", {"type": "string"})
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
    """Return the error statuses of a route."""
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
