"""Parses a source with a lark grammar, and converts lark's errors to messages with positions and hints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TypeAlias, TypeVar, cast

from lark import Lark, Token, Transformer_NonRecursive
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from standfast.errors import ExpressionError
from standfast.expressions.model.characters import describe, mention
from standfast.expressions.model.error_codes import ExpressionErrorCode

VALUE = "a value"
END = "the end"
QUOTES = frozenset("'\"`")

ResultT = TypeVar("ResultT")
Locate: TypeAlias = Callable[[int], int]
"""Maps a position in the parsed text to the position in the user's source."""


def unmoved(position: int) -> int:
    """Return the position unchanged, for a text that is not part of another."""
    return position


class Grammar:
    """A grammar, the names of its terminals, and hints for constructs of other languages."""

    def __init__(self, text: str, *, words: Mapping[str, str], hints: Mapping[str, str]) -> None:
        self.text = text
        self.words = words
        self.hints = hints

    @cached_property
    def parser(self) -> Lark:
        """The LALR parser, created on first use, because many programs use few syntaxes."""
        return Lark(self.text, parser="lalr", maybe_placeholders=False)

    def read(self, source: str, builder: Transformer_NonRecursive[Token, ResultT], locate: Locate = unmoved) -> ResultT:
        """Parse the source and build the result. Raises an error with the position of the mistake."""
        try:
            return builder.transform(self.parser.parse(source))
        except UnexpectedInput as error:
            raise self._explained(error, source, locate) from None
        except VisitError as error:
            raise error.orig_exc from None

    def _explained(self, error: UnexpectedInput, source: str, locate: Locate) -> ExpressionError:
        if isinstance(error, UnexpectedToken):
            ended = error.token.type == "$END"
            position = locate(len(source) if ended else error.token.start_pos or 0)
            found, text = (END, "") if ended else (mention(error.token), str(error.token))
            return self._surprise(error, found, text, position)
        assert isinstance(error, UnexpectedCharacters)
        index = cast("int", error.pos_in_stream)
        character = source[index]
        if character in QUOTES:
            return _mistake(
                "the text that begins here is not closed", locate(index), reason=ExpressionErrorCode.BAD_STRING
            )
        return self._surprise(error, describe(character), character, locate(index))

    def _surprise(self, error: UnexpectedInput, found: str, text: str, position: int) -> ExpressionError:
        phrases = self._phrases(error.interactive_parser.accepts())  # type: ignore[no-untyped-call]
        hint = "" if VALUE in phrases else self.hints.get(text, "")
        return _mistake(f"expected {_either(phrases)}, found {found}{'; ' + hint if hint else ''}", position)

    def _phrases(self, terminals: Iterable[str]) -> list[str]:
        present = set(terminals)
        return list(dict.fromkeys(phrase for terminal, phrase in self.words.items() if terminal in present))


def _mistake(message: str, position: int, reason: ExpressionErrorCode = ExpressionErrorCode.SYNTAX) -> ExpressionError:
    return ExpressionError(message, reason=reason, position=position)


def _either(phrases: list[str]) -> str:
    return " or ".join([", ".join(phrases[:-1]), phrases[-1]] if len(phrases) > 1 else phrases)
