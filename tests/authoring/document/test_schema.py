"""The JSON Schemas of contracts and bodies: those in the package, fit for editors, and of one mind with the reader."""

from __future__ import annotations

import json
from importlib import resources
from random import Random

import jsonschema
import msgspec
import pytest

from authoring.document.examples import CONTRACT, GONE, Plain, changed, mistakes
from authoring.document.fuzzing import CONTRACTS, damaged, random_body, sound_contract
from standfast import DefinitionError
from standfast.errors import Diagnostic
from standfast.features.documents.body.checks import body_schema, read_body
from standfast.features.documents.body.templates import instantiate, template_names
from standfast.features.documents.contract.library import contract_names, ready_contract
from standfast.features.documents.contract.loading import contract_schema

SCHEMAS = {"contract": contract_schema(), "body": body_schema()}


JUDGES = {name: jsonschema.Draft202012Validator(schema) for name, schema in SCHEMAS.items()}
FORMAL = {"wrong_type", "missing_field", "unknown_field", "word", "empty", "too_long", "number", "duration", "name"}
"""What the JSON Schema finds too."""


def body_mistakes(data: Plain) -> tuple[Diagnostic, ...]:
    """What is wrong with the form of a body."""
    try:
        read_body(json.dumps(data))
    except DefinitionError as error:
        return error.diagnostics
    return ()


@pytest.mark.row("E-883", "EO-01")
@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_the_schema_is_valid_published_and_described(name: str) -> None:
    """By the draft that it names, the same in the package and on the page, with a word on every field."""
    schema = SCHEMAS[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    file = resources.files("standfast") / "features" / "documents" / name / f"{name}.schema.json"
    assert json.loads(file.read_text(encoding="utf-8")) == schema
    parts = schema["$defs"]
    assert isinstance(parts, dict)
    for part in parts.values():
        for field, each in part["properties"].items():
            assert field == "type" or each.get("description"), (name, field)


@pytest.mark.row("E-883", "EO-01")
def test_the_schema_takes_what_the_package_has() -> None:
    """All ready contracts, and what the templates make."""
    for name in contract_names():
        JUDGES["contract"].validate(msgspec.to_builtins(ready_contract(name)))
    for name in template_names():
        JUDGES["body"].validate(msgspec.to_builtins(instantiate(name)))


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
    assert not JUDGES["contract"].is_valid(wrong)


@pytest.mark.row("EO-01")
@pytest.mark.parametrize("part", range(4))
def test_reader_and_schema_agree_about_damage(part: int) -> None:
    """Fifty contracts and fifty bodies that were damaged at random: the schema refuses exactly those whose form the reader refuses."""
    for number in range(100):
        dice = Random(f"schema/{part}/{number}")
        given, _ = sound_contract(dice.randrange(CONTRACTS))
        name = ("contract", "body")[number % 2]
        whole = damaged(dice, given if name == "contract" else random_body(dice, given), dice.randint(1, 2))
        found = {each.code for each in (mistakes(whole) if name == "contract" else body_mistakes(whole))}
        assert JUDGES[name].is_valid(whole) is not bool(found & FORMAL), (part, number, found)
