"""The reference page says what the code does: its tables are compared with the code, its examples are run."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import get_args

import msgspec
import pytest

from expressions.trying import answer
from standfast.cli.exit_codes import Exit
from standfast.errors import ExpressionError
from standfast.expressions import (
    NAMESPACES,
    Explanation,
    ExpressionErrorCode,
    ExpressionLimits,
    ExpressionOptions,
    Spelling,
    parse,
)
from standfast.expressions.evaluation import STAND_INS
from standfast.expressions.model.characters import ESCAPES, HIDDEN_CATEGORIES
from standfast.expressions.model.limits import DEEPEST
from standfast.expressions.model.schema import TYPE_NAMES
from standfast.expressions.model.temporal import EXAMPLES
from standfast.expressions.model.tree import Operator
from standfast.expressions.model.types import EQUATED, ORDERED, Kind
from standfast.expressions.syntax.go_template import ARITY
from standfast.expressions.syntax.json_conditions import EXISTS, OPERATORS
from standfast.expressions.syntax.tree_builder import RESERVED
from support.repository import ROOT

PAGE = (ROOT / "docs" / "reference" / "expressions.md").read_text(encoding="utf-8")

PRECEDENCE = ["!", "== != < <= > >= in contains starts_with ends_with", "not", "&& and", "|| or"]
"""As `test_precedence` defends it."""

KINDS: tuple[Kind, ...] = get_args(Kind)


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its head."""
    section = re.split(r"^#+ ", PAGE.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def code(cell: str) -> str:
    """What stands between backticks in a cell; a bar in a table is escaped."""
    return cell.strip("`").replace("\\|", "|")


def relation(left: Kind, right: Kind) -> str:
    """What the page says about two kinds."""
    if (left, right) in ORDERED:
        return "order"
    if left == right == "object":
        return "error"
    if left == right and left in (*EQUATED, "list"):
        return "equality"
    return "never equal"


@pytest.mark.documents("E-602", "E-603")
def test_every_operator_is_on_the_page() -> None:
    """The table of operators lists each of them, in the order in which they bind."""
    listed = [code(cell[0]) for cell in rows("Operators")]
    assert listed == PRECEDENCE
    assert set(get_args(Operator)) <= set(" ".join(listed).split())


@pytest.mark.documents("E-614")
def test_every_pair_of_kinds_is_on_the_page() -> None:
    """The matrix of kinds is the one that evaluation uses."""
    assert rows("What can be compared") == [
        [f"**{left}**", *(relation(left, right) for right in KINDS)] for left in KINDS
    ]


def test_every_reason_is_on_the_page() -> None:
    """The table of reasons has each code once and no other."""
    assert sorted(code(cell[0]) for cell in rows("Reasons")) == sorted(ExpressionErrorCode)


@pytest.mark.documents("E-606", "E-607", "E-608")
def test_every_limit_is_on_the_page() -> None:
    """The table of limits has the names and the defaults of the code."""
    listed = {code(cell[0]): int(cell[1]) for cell in rows("Limits")}
    assert listed == msgspec.structs.asdict(ExpressionLimits())
    assert f"at most {DEEPEST}" in PAGE


def test_every_option_is_on_the_page() -> None:
    """The table of options has each of them."""
    assert [code(cell[0]) for cell in rows("Options")] == list(ExpressionOptions.__struct_fields__)


def test_every_spelling_is_on_the_page() -> None:
    """The table of spellings has each of them, with an example that parses."""
    listed = rows("Spellings")
    assert [code(cell[0]) for cell in listed] == list(get_args(Spelling))
    for name, example, *_rest in listed:
        parse(code(example), spelling=msgspec.convert(code(name), Spelling))


@pytest.mark.documents("F-203")
def test_every_go_function_is_on_the_page() -> None:
    """The table of functions has each of them."""
    assert [code(cell[0]) for cell in rows("Go templates")] == list(ARITY)


@pytest.mark.documents("R-108")
def test_every_json_operator_is_on_the_page() -> None:
    """The table of JSON operators has every name, beside the native operator it means."""
    listed = {name: code(cell[1]) for cell in rows("JSON conditions") for name in re.findall("`([^`]+)`", cell[0])}
    assert listed == {**OPERATORS, EXISTS: "path? != null"}


def test_every_stand_in_is_on_the_page() -> None:
    """The table of what an absent value counts as has each case."""
    listed = [json.loads(code(cell[1])) for cell in rows("Absent values")]
    assert listed == [STAND_INS[each] for each in ("zero", "false", "list", "text", "null")]


@pytest.mark.parametrize(
    "words",
    [
        NAMESPACES,
        RESERVED,
        TYPE_NAMES,
        EXAMPLES.values(),
        [f"\\{each}" for each in ESCAPES],
        HIDDEN_CATEGORIES,
        Explanation.__struct_fields__,
        [f"{Exit.NO}", f"{Exit.WRONG}"],
    ],
    ids=["namespaces", "reserved", "types", "times", "escapes", "categories", "record", "exit codes"],
)
def test_every_word_is_on_the_page(words: list[str]) -> None:
    """Namespaces, reserved words, types, times, escapes, the record's fields and exit codes are all named."""
    assert not [word for word in words if f"`{word}`" not in PAGE]


def test_the_examples_are_true() -> None:
    """Every row of the table of examples gives the result, or the reason, that it promises."""
    for source, data, promised in rows("Examples"):
        scope = json.loads(code(data))
        if "now" in scope:
            scope["now"] = datetime.fromisoformat(scope["now"])
        outcome = answer(lambda source=source, scope=scope: parse(code(source)).evaluate(scope))  # type: ignore[misc]
        shown = outcome.reason if isinstance(outcome, ExpressionError) else json.dumps(outcome)
        assert (source, shown) == (source, code(promised))


def test_the_python_runs() -> None:
    """The Python on the page runs from top to bottom."""
    scope: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(block, scope)
