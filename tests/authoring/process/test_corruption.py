"""Files that are damaged at random: diagnostics with a place every time, never a traceback, never a hang."""

from __future__ import annotations

import re
from random import Random

import jsonschema
import pytest

from authoring.process.corrupting import corrupted
from standfast import DefinitionError, load_processes
from standfast.errors import Diagnostic
from standfast.features.process_files.format import process_schema
from standfast.graph.compiler import graph_bytes, read_graph
from standfast.graph.source_files.parsing import parse
from standfast.graph.source_files.tree import plain

PLACE = re.compile(r"[1-9][0-9]*:[1-9][0-9]*")
STRUCTURAL = {"wrong_type", "missing_field", "unknown_field", "word", "empty", "too_long", "number", "duration"}
"""What the JSON Schema finds too."""
JUDGE = jsonschema.Draft202012Validator(process_schema())


def look_at(given: str | bytes) -> None:
    """Load a file; what is wrong has a place within it, and the schema agrees about its structure."""
    found: tuple[Diagnostic, ...] = ()
    text = given if isinstance(given, str) else given.decode("utf-8", "replace")
    try:
        for definition in load_processes(given):
            assert read_graph(graph_bytes(definition.graph)).hash == definition.graph.hash
            assert all(PLACE.fullmatch(each.position) for each in definition.warnings)
    except DefinitionError as error:
        found = error.diagnostics
        assert found
    lines = text.count("\n") + text.count("\r") + text.count("\x85") + text.count("\u2028") + text.count("\u2029") + 2
    for each in found:
        assert PLACE.fullmatch(each.position), each
        assert int(each.position.split(":")[0]) <= lines, each
        assert each.message.strip()
    _compare(given, found)


def _compare(text: str | bytes, found: tuple[Diagnostic, ...]) -> None:
    wrong: list[Diagnostic] = []
    tree = parse(text, wrong)
    if tree is None or wrong:
        return
    is_structural = bool({each.code for each in found} & STRUCTURAL)
    judged = JUDGE.is_valid(plain(tree))
    assert judged is not is_structural, (found, [each.message for each in JUDGE.iter_errors(plain(tree))])


@pytest.mark.parametrize("part", range(10))
def test_damage_is_found_where_it_is(part: int) -> None:
    """Fifty files each."""
    for number in range(50):
        look_at(corrupted(Random(f"{part}/{number}")))


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("part", range(20))
def test_much_damage_is_found_where_it_is(part: int) -> None:
    """A thousand files each."""
    for number in range(1000):
        look_at(corrupted(Random(f"long/{part}/{number}")))
