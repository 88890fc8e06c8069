"""`Expression`, the public class: parses, checks, evaluates and explains a source.

Also formats errors with a caret under their position.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import msgspec

from standfast.errors import ExpressionError
from standfast.expressions.evaluation import Run, compile_tree
from standfast.expressions.model.characters import visible
from standfast.expressions.model.checking import Checker
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.limits import check_tree
from standfast.expressions.model.options import DEFAULT, STORED, ExpressionOptions, Spelling
from standfast.expressions.model.printing import printed
from standfast.expressions.model.schema import schema_type
from standfast.expressions.model.tree import Node, digest, variables
from standfast.expressions.model.types import Kind
from standfast.expressions.tracing import EvaluationFailure, Explanation, record

COMPILED: Final = 1024
"""Cache size for compiled expressions."""


class Expression:
    """A valid expression. Immutable, and equal to other spellings of the same expression."""

    __slots__ = ("_run", "hash", "source", "spelling", "tree")

    def __init__(self, source: str, spelling: Spelling, tree: Node) -> None:
        self.source: Final = source
        """The source text. For a condition given as data, its JSON."""
        self.spelling: Final = spelling
        """The syntax of `source`."""
        self.tree: Final = tree
        """The tree of the expression."""
        self.hash: Final = digest(tree)
        """SHA-256 of the tree, the same for every syntax and white space."""
        self._run: Final = _compiled(_Sourced(self.hash, source, tree))

    @property
    def variables(self) -> tuple[str, ...]:
        """The paths that the expression can read, without duplicates, in source order."""
        return tuple(dict.fromkeys(each.name for each in variables(self.tree)))

    def problems(self, schema: object, *, expects: Kind | None = None) -> tuple[ExpressionError, ...]:
        """Return all errors of the expression for data of this schema."""
        return self._checked(schema, expects)[1]

    def check(self, schema: object, *, expects: Kind | None = None) -> Expression:
        """Return the expression checked against a schema, with typed ISO texts. Raises the first error.

        `schema` is an argument of `schema_type`. `expects` is the required kind of value.
        """
        tree, problems = self._checked(schema, expects)
        if problems:
            raise problems[0]
        return Expression(self.source, self.spelling, tree)

    def evaluate(self, data: Mapping[str, object]) -> object:
        """Evaluate the expression; a condition returns True or False. Raises `ExpressionError` on failure."""
        try:
            return self._run(data if type(data) is dict else dict(data), None)
        except ExpressionError as error:
            error.source = self.source
            raise

    def holds(self, data: Mapping[str, object]) -> bool:
        """Return whether the condition is true for this data."""
        value = self.evaluate(data)
        if isinstance(value, bool):
            return value
        raise ExpressionError(
            "this expression is not a condition", reason=ExpressionErrorCode.NOT_BOOLEAN, source=self.source, position=0
        )

    def explain(self, data: Mapping[str, object], *, sensitive: AbstractSet[str] = frozenset()) -> Explanation:
        """Evaluate and record what was read. An error is recorded instead of raised.

        Values of `sensitive` paths and below are masked.
        """
        notebook: dict[str, object] = {}
        try:
            result = self._run(dict(data), notebook)
        except ExpressionError as error:
            failure = EvaluationFailure(error.reason, str(error), error.position)
            return record(self.source, self.tree, notebook, failure=failure, sensitive=sensitive)
        return record(self.source, self.tree, notebook, result=result, sensitive=sensitive)

    def to_data(self) -> dict[str, object]:
        """Return the expression as plain JSON for storage. `from_data` restores it."""
        stored = msgspec.json.encode(_Stored(self.source, self.spelling, self.tree, self.hash))
        return msgspec.json.decode(stored, type=dict[str, object])

    @classmethod
    def from_data(cls, data: object, *, options: ExpressionOptions = STORED) -> Expression:
        """Restore an expression from `to_data`. Raises if it was changed or exceeds a limit."""
        try:
            stored = msgspec.convert(data, _Stored)
            check_tree(stored.tree, options.limits)
            is_genuine = digest(stored.tree) == stored.hash
        except (msgspec.ValidationError, RecursionError, ValueError):
            raise ExpressionError("this is not a stored expression", reason=ExpressionErrorCode.BAD_FORM) from None
        if not is_genuine:
            message = "the stored expression is not the one that was hashed"
            raise ExpressionError(message, reason=ExpressionErrorCode.BAD_FORM, source=stored.source)
        # Imported on first use, because loading the grammars is slow.
        from standfast.expressions.syntax.parsing import admit

        admit(stored.tree, stored.spelling, options)
        return cls(stored.source, stored.spelling, stored.tree)

    def _checked(self, schema: object, expects: Kind | None) -> tuple[Node, tuple[ExpressionError, ...]]:
        checker = Checker(schema_type(schema))
        typed = checker.visit(self.tree)
        if expects is not None:
            checker.expect(typed, expects)
        for problem in checker.problems:
            problem.source = self.source
        return typed.node, tuple(checker.problems)

    def __eq__(self, other: object) -> bool:
        return self.hash == other.hash if isinstance(other, Expression) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.hash)

    def __str__(self) -> str:
        return printed(self.tree)

    def __repr__(self) -> str:
        return f"Expression({str(self)!r})"


def parse(
    source: str | Mapping[str, object], *, spelling: Spelling = "native", options: ExpressionOptions = DEFAULT
) -> Expression:
    """Parse an expression. A mapping is a JSON condition. Raises `ExpressionError` with the position of the mistake."""
    # Imported on first use, because loading the grammars is slow.
    from standfast.expressions.syntax.json_source import json_source
    from standfast.expressions.syntax.parsing import read_tree

    if not isinstance(source, str):
        source, spelling = json_source(source), "json"
    try:
        tree = read_tree(source, spelling, options)
    except ExpressionError as error:
        error.source = source
        raise
    return Expression(source, spelling, tree)


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The form that `to_data` writes."""

    source: str
    spelling: Spelling
    tree: Node
    hash: str


# Created before threads use it, because msgspec's first analysis of a type is not thread-safe.
msgspec.json.Decoder(_Stored)


@dataclass(frozen=True, slots=True)
class _Sourced:
    """Cache key of a compiled expression. It includes the source, because errors point into it."""

    hash: str
    source: str
    tree: Node = field(compare=False)


@lru_cache(maxsize=COMPILED)
def _compiled(key: _Sourced) -> Run:
    return compile_tree(key.tree)


CONTEXT: Final = 60
"""Characters shown before and after the position on a long line."""

_WIDE: Final = frozenset("WF")


def point(error: ExpressionError) -> str:
    """Return the message under its source line. Hidden characters are shown as escapes."""
    if error.position is None or not error.source:
        return f"{error} [{error.reason}]"
    before, after = _line(error.source, error.position)
    return f"{before}{after}\n{' ' * _width(before)}^\n{error} [{error.reason}]"


def _line(source: str, position: int) -> tuple[str, str]:
    """Return the line of a position, split there, shortened and with visible characters."""
    head, tail = source[:position], source[position:]
    before = head.rsplit("\n", 1)[-1]
    after = tail.split("\n", 1)[0]
    shown_before = f"…{before[-CONTEXT:]}" if len(before) > CONTEXT else before
    shown_after = f"{after[:CONTEXT]}…" if len(after) > CONTEXT else after
    return visible(shown_before), visible(shown_after)


def _width(text: str) -> int:
    """Return the columns of a text in a terminal: two for East Asian wide characters, none for combining marks."""
    return sum(0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in _WIDE) for each in text)
