"""The JSON Schema of the format: it is the one in the package, editors can use it, and it agrees with the reader."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema
import pytest

from authoring.process.examples import ORDERS, changed, codes, templates
from standfast.errors import Diagnostic
from standfast.features.process_files.format import process_schema
from standfast.graph.source_files.parsing import parse
from standfast.graph.source_files.tree import plain

SCHEMA = process_schema()
JUDGE = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_one() -> None:
    """It is valid by the draft that it names."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_package_holds_it_as_a_file() -> None:
    """The same as the code says."""
    file = resources.files("standfast") / "features" / "process_files" / "process.schema.json"
    assert json.loads(file.read_text(encoding="utf-8")) == SCHEMA


@pytest.mark.row("G-05")
def test_every_field_is_described() -> None:
    """An editor shows what a field is for."""
    parts = SCHEMA["$defs"]
    assert isinstance(parts, dict)
    for name, part in parts.items():
        for field, schema in part["properties"].items():
            assert field == "type" or schema.get("description"), (name, field)


@pytest.mark.parametrize("name", sorted(templates()))
def test_it_takes_the_templates(name: str) -> None:
    """What the reader takes, it takes."""
    wrong: list[Diagnostic] = []
    tree = parse(templates()[name], wrong)
    assert tree is not None
    JUDGE.validate(plain(tree))


@pytest.mark.parametrize(
    "changes",
    [
        {"id": 7}, {"id": ""}, {"id": " "}, {"id": "x" * 201}, {"id": None}, {"steps": []}, {"timout": "1h"}, {"timeout": "1m1h"},
        {"timeout": 72}, {"timeout": " 1h"}, {"version": 1.5}, {"chain_limit": 0}, {"steps__0__type": "x"}, {"steps__0__type": None},
        {"steps__1__operation": None}, {"steps__1__retry__attempts": 0}, {"steps__1__retry__backoff": "x"}, {"steps__1__retry__jitter": 2},
        {"steps__1__input__x": {"y": 1}}, {"steps__2__output": {}}, {"steps__0__assignee": {"boss": 1}}, {"transitions__0__to": None},
        {"transitions__0__condition": 7}, {"steps__0__form": []}, {"triggers": [{}]}, {"capabilities": "x"},
    ],
)  # fmt: skip
@pytest.mark.row("G-05")
def test_it_refuses_what_the_reader_refuses(changes: dict[str, Any]) -> None:
    """A structure that is wrong for one of them is wrong for both."""
    assert JUDGE.is_valid(ORDERS)
    assert not JUDGE.is_valid(changed(**changes))
    assert codes(changed(**changes))
