"""The public face: a source becomes an `Expression`, which checks, evaluates and explains itself.

Shows an error in its source: the line, a caret under the character, the message.
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
"""How many compiled expressions are kept."""


class Expression:
    """An expression that was read and found sound. Immutable, and equal to every other spelling of the same."""

    __slots__ = ("_run", "hash", "source", "spelling", "tree")

    def __init__(self, source: str, spelling: Spelling, tree: Node) -> None:
        self.source: Final = source
        """The text as it was written; of a condition that came as data, its JSON."""
        self.spelling: Final = spelling
        """The spelling that `source` is in."""
        self.tree: Final = tree
        """What it means."""
        self.hash: Final = digest(tree)
        """SHA-256 of the meaning: the same for every spelling, whatever the white space."""
        self._run: Final = _compiled(_Sourced(self.hash, source, tree))

    @property
    def variables(self) -> tuple[str, ...]:
        """The paths that the expression can read, each once, in the order they are written."""
        return tuple(dict.fromkeys(each.name for each in variables(self.tree)))

    def problems(self, schema: object, *, expects: Kind | None = None) -> tuple[ExpressionError, ...]:
        """Everything that is wrong with the expression for data of this schema; empty when nothing is."""
        return self._checked(schema, expects)[1]

    def check(self, schema: object, *, expects: Kind | None = None) -> Expression:
        """The expression made fit for data of this schema, its ISO texts typed; raises the first problem there is.

        `schema` is what `schema_type` takes. `expects` is the kind of value that the place needs.
        """
        tree, problems = self._checked(schema, expects)
        if problems:
            raise problems[0]
        return Expression(self.source, self.spelling, tree)

    def evaluate(self, data: Mapping[str, object]) -> object:
        """The value for this data; of a condition, True or False. Raises `ExpressionError` when there is none."""
        try:
            return self._run(data if type(data) is dict else dict(data), None)
        except ExpressionError as error:
            error.source = self.source
            raise

    def holds(self, data: Mapping[str, object]) -> bool:
        """Whether the condition is true of this data."""
        value = self.evaluate(data)
        if isinstance(value, bool):
            return value
        raise ExpressionError(
            "this expression is not a condition", reason=ExpressionErrorCode.NOT_BOOLEAN, source=self.source, position=0
        )

    def explain(self, data: Mapping[str, object], *, sensitive: AbstractSet[str] = frozenset()) -> Explanation:
        """Evaluate and tell what was read. What went wrong is told, not raised.

        The values of `sensitive` paths, and of everything below them, are masked.
        """
        notebook: dict[str, object] = {}
        try:
            result = self._run(dict(data), notebook)
        except ExpressionError as error:
            failure = EvaluationFailure(error.reason, str(error), error.position)
            return record(self.source, self.tree, notebook, failure=failure, sensitive=sensitive)
        return record(self.source, self.tree, notebook, result=result, sensitive=sensitive)

    def to_data(self) -> dict[str, object]:
        """The expression as plain JSON, to be stored in a compiled definition and read back by `from_data`."""
        stored = msgspec.json.encode(_Stored(self.source, self.spelling, self.tree, self.hash))
        return msgspec.json.decode(stored, type=dict[str, object])

    @classmethod
    def from_data(cls, data: object, *, options: ExpressionOptions = STORED) -> Expression:
        """The expression that `to_data` stored. What was changed since, or breaks a limit, is refused."""
        try:
            stored = msgspec.convert(data, _Stored)
            check_tree(stored.tree, options.limits)
            is_genuine = digest(stored.tree) == stored.hash
        except (msgspec.ValidationError, RecursionError, ValueError):
            raise ExpressionError("this is not a stored expression", reason=ExpressionErrorCode.BAD_FORM) from None
        if not is_genuine:
            message = "the stored expression is not the one that was hashed"
            raise ExpressionError(message, reason=ExpressionErrorCode.BAD_FORM, source=stored.source)
        from standfast.expressions.syntax.parsing import admit  # The grammars load when they are needed.

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
    """Read an expression; a mapping is a JSON condition. Raises `ExpressionError`, which points at the mistake."""
    from standfast.expressions.syntax.json_source import json_source  # The grammars load when they are needed.
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
    """What `to_data` writes."""

    source: str
    spelling: Spelling
    tree: Node
    hash: str


msgspec.json.Decoder(_Stored)  # Looked at before several threads read one at once, which msgspec does not survive.


@dataclass(frozen=True, slots=True)
class _Sourced:
    """The key of a compiled expression. Its errors point into the source, so equal meanings are not enough."""

    hash: str
    source: str
    tree: Node = field(compare=False)


@lru_cache(maxsize=COMPILED)
def _compiled(key: _Sourced) -> Run:
    return compile_tree(key.tree)


CONTEXT: Final = 60
"""Characters shown before and after the mistake on a long line."""

_WIDE: Final = frozenset("WF")


def point(error: ExpressionError) -> str:
    """The message under its source, safe to print: hidden characters are shown as escapes."""
    if error.position is None or not error.source:
        return f"{error} [{error.reason}]"
    before, after = _line(error.source, error.position)
    return f"{before}{after}\n{' ' * _width(before)}^\n{error} [{error.reason}]"


def _line(source: str, position: int) -> tuple[str, str]:
    """What stands on the line of the position, before it and from it on, shortened and made visible."""
    head, tail = source[:position], source[position:]
    before = head.rsplit("\n", 1)[-1]
    after = tail.split("\n", 1)[0]
    shown_before = f"…{before[-CONTEXT:]}" if len(before) > CONTEXT else before
    shown_after = f"{after[:CONTEXT]}…" if len(after) > CONTEXT else after
    return visible(shown_before), visible(shown_after)


def _width(text: str) -> int:
    """Columns that a terminal gives the text; East Asian wide characters take two, combining marks none."""
    return sum(0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in _WIDE) for each in text)
