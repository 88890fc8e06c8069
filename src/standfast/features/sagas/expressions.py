"""What authors of sagas give the builder besides names: expressions, and functions that build ways."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, cast

from standfast.errors import ExpressionError
from standfast.expressions import Expression, ExpressionOptions, parse
from standfast.expressions.model.options import Spelling
from standfast.expressions.model.tree import Constant, variables
from standfast.features.sagas.builder_state import BuilderState
from standfast.graph.model import Plain
from standfast.machine.model.queries.expression_scope import SAGA

SAGA_NAMES = frozenset(SAGA.schema.fields or ())
_OPTIONS = ExpressionOptions(root="input", namespaces=SAGA_NAMES)
_DATA_ONLY: Final = ExpressionOptions(root="input", namespaces=frozenset({"input"}))
"""Every name is one of the data: rows are made again from the history, which does not tell what else there was at the time."""


def expression_of(
    parts: BuilderState, name: str, source: str | dict[str, object], spelling: Spelling | None
) -> dict[str, Plain]:
    """The stored form of an expression; what is wrong with it becomes a finding."""
    guessed: Spelling = "go" if isinstance(source, str) and source.lstrip().startswith("{{") else "native"
    try:
        parsed = parse(source, spelling=spelling or guessed, options=_OPTIONS)
    except ExpressionError as error:
        parts.find("bad_expression", f"the expression of {name!r} is wrong: {error}", name)
        return {}
    for problem in parsed.problems(SAGA.schema, expects="list" if spelling == "mapping" else "bool"):
        message = f"the expression of {name!r} is wrong: {problem}{_hint(parsed)}"
        parts.find("bad_expression", message, name)
    stored: dict[str, Plain] = parsed.to_data()
    return stored


def text_of(parts: BuilderState, name: str, text: str) -> tuple[str, dict[str, Plain] | None]:
    """A text that may have holes: as it reads, and its stored form if it has any; what is wrong with it becomes a finding."""
    given: object = text  # What a caller without types gave; the checks of the graph refuse what is no text.
    if isinstance(given, str) and not {"{", "}"} & set(given):
        return text, None
    read = read_data(parts, name, text, "template") if isinstance(given, str) else None
    if read is None:
        return text, None
    return (str(read.tree.value), None) if isinstance(read.tree, Constant) else (text, read.to_data())


def read_data(parts: BuilderState, name: str, source: str, spelling: Spelling) -> Expression | None:
    """An expression that reads nothing but the data; None if it is wrong, which becomes a finding."""
    try:
        return parse(source, spelling=spelling, options=_DATA_ONLY)
    except ExpressionError as error:
        parts.find("bad_expression", f"{source!r}, which {name!r} asks or shows, is wrong: {error}", name)
        return None


def can_build(given: object) -> bool:
    """Whether something can be called with a branch."""
    try:
        inspect.signature(cast("Callable[..., Any]", given)).bind(None)
    except TypeError:  # It cannot be called, or not with one argument.
        return False
    except ValueError:  # It does not tell its parameters.
        return True
    return True


def _hint(expression: Expression) -> str:
    """What the author of a wrong expression may have meant: fields that have the name of something else."""
    paths = [each.path for each in variables(expression.tree)]
    names = dict.fromkeys(path[0] for path in paths if path[0] != "input" or len(path) == 1)
    told = [f"{name!r} is not a field of the data; one of that name is read as input.{name}" for name in names]
    return "".join(f"; {each}" for each in told)
