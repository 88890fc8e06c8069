r"""Regular expressions that users supply: read, bounded, and matched in linear time.

Patterns come from the authors of definitions, texts from whoever answers, and both are looked at inside of decisions. RE2 matches in time
proportional to the size of the pattern and the length of the text, so these two have bounds, and so has the memory of a pattern.

The syntax is that of RE2 with `\uXXXX` besides, as JSON Schema has it. `\d`, `\w`, `\s` and `\b` are about ASCII, `$` is the end of the
text, and a pattern is searched for, anywhere in a text, unless it is anchored.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Protocol

MOST_REPEATS: Final = 1_000
"""Times that something may be repeated by a number; the bound of RE2."""
MOST_INSTRUCTIONS: Final = 10_000
"""Size of a compiled pattern: `.{1000}` takes 9,000."""
LONGEST_TEXT: Final = 100_000
"""Bytes of a text that any pattern is tried on."""
_MOST_STEPS: Final = 10_000_000
"""Instructions times bytes: about half a second where RE2 has no quick way."""
_MEMORY: Final = 512 * 1024
"""Bytes that one pattern may use, compiled and while it is matched."""
_KEPT: Final = 128
"""Compiled patterns that are remembered."""

_REPEAT: Final = re.compile(r"\{(\d*)(?:,(\d*))?\}")
_UNICODE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})")
_LOOKAROUND: Final = {"(?=": "ahead", "(?!": "ahead", "(?<=": "back", "(?<!": "back"}
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
"""The first and the second half of characters that are written in two."""
_DIGITS: Final = 9
_CLASS_END: Final = ":]"
_PLAIN: Final = "use characters, classes, groups, alternatives and repeats"


class PatternError(ValueError):
    """A pattern is not taken; says why, and what to do."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message if at is None else f"at character {at + 1}: {message}")
        self.at = at
        """Where in the pattern, from 0; None if it is about all of it."""


class _Compiled(Protocol):
    """What RE2 makes of a pattern."""

    programsize: int

    def search(self, text: bytes) -> object: ...


class Pattern:
    """A pattern that was taken."""

    def __init__(self, compiled: _Compiled) -> None:
        self._compiled = compiled
        self.size = compiled.programsize
        self.longest = min(LONGEST_TEXT, _MOST_STEPS // max(1, self.size))
        """Bytes of the longest text that it may be tried on."""

    def allows(self, text: str) -> bool:
        """Whether a text is short enough to be tried."""
        return len(text) * 4 <= self.longest or len(_encoded(text)) <= self.longest

    def is_found_in(self, text: str) -> bool:
        """Whether it matches anywhere in a text, which is short enough."""
        return self._compiled.search(_encoded(text)) is not None


@lru_cache(_KEPT)
def read_pattern(pattern: str) -> Pattern:
    """Compile a pattern. PatternError if it looks around or back, repeats too often, or is otherwise none that is taken."""
    import re2  # type: ignore[import-untyped]  # Loaded by those who have patterns.

    options = re2.Options()
    options.max_mem, options.log_errors, options.never_capture = _MEMORY, False, True
    try:
        made = Pattern(re2.compile(_translated(pattern).encode(), options))
    except UnicodeEncodeError as error:
        raise PatternError("half of a character; write it whole", error.start) from None
    except re2.error as error:
        raise _refusal(pattern, error) from None
    if made.size > MOST_INSTRUCTIONS:
        raise PatternError(_TOO_LARGE)
    return made


_TOO_LARGE: Final = "it is too large once its repeats are written out; repeat less, and bound lengths by maxLength"


def _encoded(text: str) -> bytes:
    """What is matched: half of a character, which no database keeps, is matched as a question mark."""
    return text.encode("utf-8", "replace")


def _translated(pattern: str) -> str:
    """The pattern in RE2's words, once nothing in it is left that RE2 would refuse without saying why, or take for something else."""
    made: list[str] = []
    at, in_class = 0, False
    while at < len(pattern):
        end = _escape_end(pattern, at) if pattern[at] == "\\" else at + 1
        piece = pattern[at:end]
        if piece.startswith("\\u"):
            piece = _character(pattern, at, end)
        elif in_class:
            if pattern.startswith("[:", at) and (closed := pattern.find(_CLASS_END, at)) > 0:
                end = closed + 2
                piece = pattern[at:end]
            in_class = piece != "]"
        elif piece == "[":
            in_class = True
            first = re.match(r"\[\^?\]?", pattern[at:])
            piece = first[0] if first else piece
            end = at + len(piece)
        else:
            _check_piece(pattern, at, piece)
        made.append(piece)
        at = end
    return "".join(made)


def _check_piece(pattern: str, at: int, piece: str) -> None:
    """Refuse what looks around or back, and repeats that RE2 would take for plain text because of their size."""
    if piece[0] == "\\" and piece[1:2] in "123456789k" and piece[1:]:
        raise PatternError(f"{piece!r} refers to what was matched before; {_PLAIN}", at)
    if piece == "(":
        for word, where in _LOOKAROUND.items():
            if pattern.startswith(word, at):
                raise PatternError(f"{word!r} looks {where}; {_PLAIN}", at)
        if pattern.startswith("(?P=", at):
            raise PatternError(f"'(?P=' refers to what was matched before; {_PLAIN}", at)
    if piece == "{" and (repeat := _REPEAT.match(pattern, at)):
        least, most = repeat[1], repeat[2]
        if most and (not least or int(most[:_DIGITS]) < int(least[:_DIGITS])):
            raise PatternError(
                f"{repeat[0][:40]!r} is no number of times; write it as '{{0,5}}', the smaller first", at
            )
        if any(len(each) > len(str(MOST_REPEATS)) or int(each or 0) > MOST_REPEATS for each in repeat.groups("0")):
            message = f"{repeat[0][:40]!r} repeats more than {MOST_REPEATS} times; repeat less, and bound lengths by maxLength"
            raise PatternError(message, at)


def _escape_end(pattern: str, at: int) -> int:
    """Where an escape ends; two halves of one character are one."""
    found = _UNICODE.match(pattern, at)
    if found is None:
        return at + 2
    second = _UNICODE.match(pattern, found.end())
    is_pair = second is not None and int(found[1], 16) in _HIGH and int(second[1], 16) in _LOW
    return second.end() if second is not None and is_pair else found.end()


def _character(pattern: str, at: int, end: int) -> str:
    """A character that is written by its code, or by two halves of it, in RE2's words."""
    codes = [int(each, 16) for each in _UNICODE.findall(pattern, at, end)]
    if not codes:
        raise PatternError(r"'\u' needs four digits, as in \u00e9", at)
    code = codes[0] if len(codes) == 1 else 0x10000 + ((codes[0] - _HIGH.start) << 10) + (codes[1] - _LOW.start)
    if code in _HIGH or code in _LOW:
        raise PatternError("half of a character; write it whole", at)
    return f"\\x{{{code:x}}}"


def _refusal(pattern: str, error: Exception) -> PatternError:
    """What RE2 says of a pattern, with the place."""
    raw = error.args[0] if error.args else b""
    told = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    what, _, part = told.partition(": ")
    if what.startswith("pattern too large"):
        return PatternError(_TOO_LARGE)
    if part == "\\Z":
        return PatternError(r"'\Z' is not taken; use '$', which is the end of the text", _place(pattern, part))
    if what == "invalid repetition size":
        message = (
            f"{part!r} repeats too often, counted with what it repeats; repeat less, and bound lengths by maxLength"
        )
        return PatternError(message, _place(pattern, part))
    return PatternError(f"{what}{f' {part!r}' if part else ''}; {_PLAIN}", _place(pattern, part))


def _place(pattern: str, part: str) -> int | None:
    found = pattern.find(part) if part else -1
    return None if found < 0 else found
