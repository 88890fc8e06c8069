"""The JSON Schemas of contracts and bodies: those in the package, fit for editors, and of one mind with the reader."""

from __future__ import annotations

import json
from importlib import resources

import jsonschema
import msgspec
import pytest

from authoring.document.examples import CONTRACT, GONE, changed, mistakes
from holdfast.authoring.document import (
    body_schema,
    contract_names,
    contract_schema,
    instantiate,
    ready_contract,
    template_names,
)

SCHEMAS = {"contract": contract_schema(), "body": body_schema()}


@pytest.mark.row("E-883")
@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_the_schema_is_valid_published_and_described(name: str) -> None:
    """By the draft that it names, the same in the package and on the page, with a word on every field."""
    schema = SCHEMAS[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    file = resources.files("holdfast") / "authoring" / "document" / f"{name}.schema.json"
    assert json.loads(file.read_text(encoding="utf-8")) == schema
    parts = schema["$defs"]
    assert isinstance(parts, dict)
    for part in parts.values():
        for field, each in part["properties"].items():
            assert field == "type" or each.get("description"), (name, field)


@pytest.mark.row("E-883")
def test_the_schema_takes_what_the_package_has() -> None:
    """All ready contracts, and what the templates make."""
    judges = {name: jsonschema.Draft202012Validator(schema) for name, schema in SCHEMAS.items()}
    for name in contract_names():
        judges["contract"].validate(msgspec.to_builtins(ready_contract(name)))
    for name in template_names():
        judges["body"].validate(msgspec.to_builtins(instantiate(name)))


@pytest.mark.parametrize(
    "changes",
    [
        {"entity_type": "two words"}, {"version": "1"}, {"fields": {}}, {"fields__x y": {"type": "string"}}, {"fields__number__type": "x"},
        {"fields__kind__values": []}, {"lifecycle": GONE}, {"lifecycle__states__draft__window": "x"}, {"slots__0__id": "x"},
        {"slots__0__stable": GONE}, {"actions__0__name": "x"}, {"lifecycle__transitions__0__from": []}, {"amendment": "x"}, {"x": 1},
    ],
)  # fmt: skip
def test_reader_and_schema_agree(changes: dict[str, object]) -> None:
    """What one of them refuses for its form, the other does."""
    wrong = changed(CONTRACT, changes)
    assert mistakes(wrong)
    assert not jsonschema.Draft202012Validator(SCHEMAS["contract"]).is_valid(wrong)
