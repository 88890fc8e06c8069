"""The pages about the formats of documents name all that a contract and a body can say, and every code of the validator."""

from __future__ import annotations

import re
from typing import get_args

import msgspec
import pytest

from standfast.features.documents.body import format as b
from standfast.features.documents.body import scenario_format as s
from standfast.features.documents.body.templates import template_names
from standfast.features.documents.contract import format as c
from standfast.features.documents.contract.library import contract_names
from support.repository import ROOT

PAGES = ("docs/reference/document-format.md", "docs/reference/body-format.md")
PAGE = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in PAGES)
CONCEPTS = (ROOT / "docs/concepts/documents.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([^`\n]+)`", PAGE))
PARTS = (
    c.Contract,
    c.Lifecycle,
    c.LifecycleState,
    c.LifecycleTransition,
    c.Slot,
    c.ContractAction,
    c.Policy,
    c.ContractLimits,
)
BODIES = (
    b.Body,
    b.Base,
    b.Patch,
    b.PatchEdge,
    b.Approver,
    b.FlatRule,
    s.Scenario,
    s.ScenarioAction,
    s.Expectation,
    s.Player,
)
CHECKS = ("checks", "patches", "patch_checks", "node_checks", "expressions")
CODE = re.compile(r"(?:_report|report|_find)\(\s*\"(\w+)\"")


@pytest.mark.parametrize(
    "part", [*PARTS, *BODIES, *get_args(c.Field), *get_args(b.PatchNode)], ids=lambda part: part.__name__
)
def test_every_field_is_on_the_page(part: type[msgspec.Struct]) -> None:
    """Whoever looks a field up finds it."""
    missing = {each.encode_name for each in msgspec.structs.fields(part)} - NAMED
    assert not missing


def test_every_type_is_on_the_page() -> None:
    """Types of fields and of nodes, ready contracts and templates."""
    tags = {str(each.__struct_config__.tag) for each in (*get_args(c.Field), *get_args(b.PatchNode))}
    assert {*tags, *contract_names(), *template_names()} <= NAMED


def test_every_code_of_the_validator_is_on_the_page() -> None:
    """An editor can look up what it shows."""
    folder = ROOT / "src/standfast/features/documents/body"
    codes = {code for name in CHECKS for code in CODE.findall((folder / f"{name}.py").read_text(encoding="utf-8"))}
    assert codes
    assert codes <= NAMED


@pytest.mark.documents("E-012")
def test_the_words_are_explained() -> None:
    """Envelope, slot, patch, effective workflow, window and pin, with a picture for each of the four ideas."""
    assert CONCEPTS.count("```mermaid") == 4
    for word in ("envelope", "slot", "patch", "effective workflow", "window", "pinned", "gate"):
        assert f"**{word}**" in CONCEPTS
