"""The OpenAPI document tells the truth: whatever is sent by it, or against it, is answered as it says, and never by a failure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, cast

import jsonschema
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.transport import Response
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from api.addresses import GHOSTS, thing
from api.world import BASE, Client, World, furnished, registered
from standfast.http.openapi import document_of, remarks_of
from standfast.http.routes import ROUTES
from standfast.testing import ManualEngine

EXAMPLES = int(os.environ.get("STANDFAST_SCHEMA_EXAMPLES", "1"))
"""How many requests each operation is sent."""
ENDLESS = {"stream_execution", "stream_executions", "stream_inbox"}
"""Streams that do not end by themselves; others test them."""
BY_NAME = {route.name: route for route in ROUTES}
INSTANTS = {
    "after",
    "alive_until",
    "at",
    "before",
    "created_after",
    "created_before",
    "end",
    "follow_until",
    "paused_until",
    "since",
    "start",
    "timestamp",
    "until",
    "waits_since",
}
"""Fields and parameters that are instants, besides those that end in `_at`."""
CHECKS: list[Any] = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
]  # fmt: skip
DOCUMENT = msgspec.json.decode(document_of(ROUTES), type=dict[str, Any])
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)


def operations() -> list[Any]:
    """All operations of the document."""
    found: list[Any] = [cast("Any", each).ok() for each in SCHEMA.get_all_operations()]
    return [each for each in found if each.definition.raw["operationId"] not in ENDLESS]


@pytest.fixture(scope="module")
def made(world: World) -> Mapping[str, str]:
    """Something of everything, so that there is something to answer with."""
    return {**GHOSTS, "workflow": "orders.approval", **furnished(world)}


@pytest.mark.row("G-30")
def test_what_is_sent_by_the_document_is_answered_by_it(world: World, made: Mapping[str, str]) -> None:
    """No server error, no status, media type or body that is not in the document, for whatever it allows to be sent."""
    check(world, world.client(), GenerationMode.POSITIVE, made)


def test_what_is_sent_against_the_document_is_answered_by_it() -> None:
    """The same for what the document does not allow, which no store ever sees."""
    engine = ManualEngine()
    registered(engine)
    world = World(engine)
    check(world, world.client(tenant="default", actor="root"), GenerationMode.NEGATIVE, None)
    world.close()
    engine.stop()


@pytest.mark.row("G-30")
def test_every_operation_shows_what_is_sent_and_answered() -> None:
    """Each has examples of its places, its body and its answer, and they are what their schemas allow."""
    for path, methods in DOCUMENT["paths"].items():
        for operation in methods.values():
            assert [each for each in operation["parameters"] if each["in"] == "path" and "example" not in each] == []
            told = [operation.get("requestBody", {}), *operation["responses"].values()]
            shown = [(each.get("content", {}), each) for each in told]
            for content, where in shown:
                for kind, media in content.items():
                    if kind != "application/json":
                        continue
                    assert "example" in media, (path, where)
                    whole = {**media["schema"], "components": DOCUMENT["components"]}
                    jsonschema.validate(media["example"], whole, cls=jsonschema.Draft202012Validator)


@pytest.mark.row("G-30")
def test_the_document_says_what_authors_say_of_fields() -> None:
    """What is written below a field of a type stands beside it in the document, of parameters, bodies and answers alike; instants are told from other texts."""
    schemas = DOCUMENT["components"]["schemas"]
    parameters = {each["name"]: each for each in DOCUMENT["paths"]["/api/v1/executions"]["get"]["parameters"]}
    assert parameters["sort"]["description"].startswith("Newest first, or oldest first;")
    assert parameters["cursor"]["description"] == "`next` of the page before; empty for the first one."
    assert {"type": "string", "format": "date-time"} in parameters["created_after"]["schema"]["anyOf"]
    assert schemas["InstanceSummary"]["properties"]["next_step"]["description"].startswith("The step that a paused one")
    assert schemas["Listing_InstanceSummary_"]["properties"]["next"]["description"].startswith("Give it as `cursor`")
    assert (
        schemas["PutScheduleRequest"]["properties"]["jitter_seconds"]["description"]
        == "Up to how much later each start is."
    )
    fields = [
        (name, field, told) for name, each in schemas.items() for field, told in each.get("properties", {}).items()
    ]
    assert [each for each in fields if each[1].endswith("_at") and "date-time" not in str(each[2])] == []
    assert DOCUMENT["paths"]["/api/v1/executions/{id}"]["get"]["responses"]["200"]["headers"].keys() == {"ETag"}


def test_what_a_parameter_names_may_not_be_there(world: World) -> None:
    """Where a list is narrowed by something that nobody has heard of, the answer is one of those that the document tells of."""
    client = world.client()
    for path in ("/api/v1/dead-letters/groups", "/api/v1/dead-letters", "/api/v1/executions", "/api/v1/tasks"):
        answer = client.get(path, params={"definition": "nobody-has-heard-of-it"})
        assert str(answer.status_code) in DOCUMENT["paths"][path]["get"]["responses"], (path, answer.text)


def test_only_what_is_written_is_said() -> None:
    """Of a module whose text is not there nothing is said, and nothing fails."""
    made = msgspec.defstruct("Made", [("field", str)], module="nowhere")
    assert remarks_of(made) == {}


def check(world: World, client: Client, mode: GenerationMode, made: Mapping[str, str] | None) -> None:
    """Send requests to every operation, about what there is if that is told, and judge the answers."""
    wrong: list[str] = []

    def told(operation: Any) -> None:
        route = BY_NAME[operation.definition.raw["operationId"]]

        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def holds(case: Any) -> None:
            if made is not None:
                case.path_parameters = {key: made[thing(route, key)] for key in case.path_parameters or ()}
            answer = client.ask(case.method, case.formatted_path, **_parts(case))
            case.validate_response(Response.from_httpx(answer, verify=False), checks=CHECKS)

        holds()

    for operation in operations():
        try:
            told(operation)
        except Unsatisfiable:  # There is no wrong way to send what takes nothing.
            continue
        except BaseExceptionGroup as error:
            wrong.append(f"{operation.method} {operation.path}: {[str(each) for each in error.exceptions]}"[:2000])
        finally:
            world.engine.admin.resume_processing()
    assert not wrong, "\n\n".join(wrong)


def _parts(case: Any) -> dict[str, Any]:
    """What a case sends; who asks is no part of the question."""
    sent = case.as_transport_kwargs(base_url=BASE)
    if isinstance(sent.get("data"), bytes | str):
        sent["content"] = sent.pop("data")
    given = (sent.get("headers") or {}).items()
    sent["headers"] = {k: str(v).encode("utf-8", "replace") for k, v in given if k.lower() != "authorization"}
    return {key: sent[key] for key in ("params", "json", "content", "data", "headers") if sent.get(key) is not None}


def named(node: object, name: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every schema of the document that has a name: of fields and of parameters, with each of its ways."""
    if isinstance(node, dict):
        if name:
            yield from ((name, each) for each in node.get("anyOf", [node]))
        if isinstance(node.get("schema"), dict) and "in" in node:
            yield from named(node["schema"], node["name"])
        for key, each in node.items():
            if key == "properties":
                for field, schema in each.items():
                    yield from named(schema, field)
            elif key not in {"example", "schema"}:
                yield from named(each)
    elif isinstance(node, list):
        for each in node:
            yield from named(each)


def test_instants_alone_are_told_as_instants() -> None:
    """What is a `date-time` in the document has the name of a time, and nothing else is; clients read it as one."""
    told = {name for name, schema in named(DOCUMENT) if schema.get("format") == "date-time"}
    assert {name for name in told if not name.endswith("_at")} == INSTANTS
    texts = {name for name, schema in named(DOCUMENT) if schema == {"type": "string"}}
    assert {name for name in texts if name.endswith("_at")} == set()
