"""Forms: JSON Schema (draft 2020-12) for the content of answers, and the regular expressions in them.

A form is checked at compilation and an answer when it is given, both inside decisions. Their cost must be bounded: a
form has no external or recursive references and a limited size. Its patterns are matched in linear time by RE2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast
from uuid import UUID

import msgspec

from standfast.errors import Diagnostic

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, FormatChecker, ValidationError


MOST_REPEATS: Final = 1_000
"""Maximum number of repetitions; the limit of RE2."""
MOST_INSTRUCTIONS: Final = 10_000
"""Maximum size of a compiled pattern: `.{1000}` takes 9,000."""
LONGEST_TEXT: Final = 100_000
"""Maximum size of a text to be matched, in bytes."""
_MOST_STEPS: Final = 10_000_000
"""Maximum of instructions times bytes: about half a second where RE2 has no fast path."""
_MEMORY: Final = 512 * 1024
"""Maximum memory of one pattern, compiled and during matching, in bytes."""
_KEPT: Final = 128
"""Cache size for compiled patterns."""

_REPEAT: Final = re.compile(r"\{(\d*)(?:,(\d*))?\}")
_UNICODE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})")
_LOOKAROUND: Final = {"(?=": "ahead", "(?!": "ahead", "(?<=": "back", "(?<!": "back"}
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
"""High and low surrogates."""
_DIGITS: Final = 9
_CLASS_END: Final = ":]"
_PLAIN: Final = "use characters, classes, groups, alternatives and repeats"


class PatternError(ValueError):
    """A pattern is not supported. The message gives reason and remedy."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message if at is None else f"at character {at + 1}: {message}")
        self.at = at
        """Index in the pattern, from 0. None for the whole pattern."""


class _Compiled(Protocol):
    """A compiled pattern of RE2."""

    programsize: int

    def search(self, text: bytes) -> object: ...


class Pattern:
    """A supported pattern."""

    def __init__(self, compiled: _Compiled) -> None:
        self._compiled = compiled
        self.size = compiled.programsize
        self.longest = min(LONGEST_TEXT, _MOST_STEPS // max(1, self.size))
        """Maximum size of a text for this pattern, in bytes."""

    def allows(self, text: str) -> bool:
        """Return whether a text is short enough to be matched."""
        return len(text) * 4 <= self.longest or len(_encoded(text)) <= self.longest

    def is_found_in(self, text: str) -> bool:
        """Return whether it matches anywhere in a text that is short enough."""
        return self._compiled.search(_encoded(text)) is not None


@lru_cache(_KEPT)
def read_pattern(pattern: str) -> Pattern:
    """Compile a pattern.

    Raises PatternError for lookaround, backreferences, excessive repetition and other unsupported parts.
    """
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
    """Encode a text for matching. A lone surrogate, which no database stores, becomes a question mark."""
    return text.encode("utf-8", "replace")


def _translated(pattern: str) -> str:
    """Translate a pattern to RE2, after refusing what RE2 would reject without a reason or interpret differently."""
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
    """Refuse lookaround, backreferences, and repetitions so large that RE2 would take them for literals."""
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
    """Return the end of an escape. A surrogate pair is one escape."""
    found = _UNICODE.match(pattern, at)
    if found is None:
        return at + 2
    second = _UNICODE.match(pattern, found.end())
    is_pair = second is not None and int(found[1], 16) in _HIGH and int(second[1], 16) in _LOW
    return second.end() if second is not None and is_pair else found.end()


def _character(pattern: str, at: int, end: int) -> str:
    """Translate a character escape, or a surrogate pair, to RE2."""
    codes = [int(each, 16) for each in _UNICODE.findall(pattern, at, end)]
    if not codes:
        raise PatternError(r"'\u' needs four digits, as in \u00e9", at)
    code = codes[0] if len(codes) == 1 else 0x10000 + ((codes[0] - _HIGH.start) << 10) + (codes[1] - _LOW.start)
    if code in _HIGH or code in _LOW:
        raise PatternError("half of a character; write it whole", at)
    return f"\\x{{{code:x}}}"


def _refusal(pattern: str, error: Exception) -> PatternError:
    """Convert an error of RE2 to a PatternError with its position."""
    raw = error.args[0] if error.args else b""
    told = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    what, _, part = told.partition(": ")
    if what.startswith("pattern too large"):
        return PatternError(_TOO_LARGE)
    if part == "\\Z":
        return PatternError(r"'\Z' is not taken; use '$', which is the end of the text", _position(pattern, part))
    if what == "invalid repetition size":
        message = (
            f"{part!r} repeats too often, counted with what it repeats; repeat less, and bound lengths by maxLength"
        )
        return PatternError(message, _position(pattern, part))
    return PatternError(f"{what}{f' {part!r}' if part else ''}; {_PLAIN}", _position(pattern, part))


def _position(pattern: str, part: str) -> int | None:
    found = pattern.find(part) if part else -1
    return None if found < 0 else found


DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
MOST_BYTES = 65_536
"""Maximum size of a form as JSON, in bytes."""
MOST_PARTS = 2_000
"""Maximum number of schemas in a form, with references expanded."""
DEEPEST = 16
"""Maximum nesting of schemas in a form, with references expanded."""
MOST_PATTERNS = 2 * MOST_INSTRUCTIONS
"""Maximum total size of the patterns of a form, each counted once."""
MOST_FAULTS = 50
"""Maximum number of reported faults of an answer."""

_ONE = ("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "dependentSchemas")
_REFUSED: Final = {
    "$id": "a form has one place, its step",
    "$anchor": "name it in $defs",
    "$dynamicRef": "refer to $defs by $ref",
    "$dynamicAnchor": "name it in $defs",
    "$recursiveRef": "refer to $defs by $ref",
    "$vocabulary": "leave it out",
    "patternProperties": "name the fields in properties",
    "unevaluatedProperties": "say additionalProperties",
    "unevaluatedItems": "say items",
}
"""Unsupported keywords of forms, with the remedy."""
_DEFS = "#/$defs/"

_encode = msgspec.json.Encoder(order="deterministic").encode
Schema = Mapping[str, object]


# -- at compilation


class FormFault(NamedTuple):
    """A fault of a form."""

    message: str
    path: tuple[str | int, ...] = ()
    """Path of the fault from the top of the form."""


def form_findings(node: str, form: dict[str, object]) -> Iterator[Diagnostic]:
    """Yield the findings of a form in plain data."""
    for wrong in form_faults(node, form):
        yield Diagnostic("form", wrong.message, node)


def form_faults(node: str, form: dict[str, object]) -> list[FormFault]:
    """Return the findings with their paths in the form."""
    return [FormFault(f"the form of {node!r} is no form: {message}", path) for message, path in _wrong(form)]


def _wrong(form: dict[str, object]) -> list[FormFault]:
    size = len(_encode(form))
    if size > MOST_BYTES:
        return [FormFault(f"it takes {size} bytes; use at most {MOST_BYTES}")]
    draft = form.get("$schema", DRAFT)
    if str(draft).rstrip("#") != DRAFT:
        return [FormFault(f"it says that it is written in {draft!r}; the one draft is {DRAFT!r}", ("$schema",))]
    walk = _Walk(form)
    walk.look(form, _TOP, ())
    if walk.wrong:
        return list(dict.fromkeys(walk.wrong))
    from jsonschema import Draft202012Validator

    judge = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    found = sorted(judge.iter_errors(form), key=lambda error: error.json_path)
    return [
        FormFault(
            f"{error.json_path.replace('$', 'form', 1)}: {error.message[:200]}; correct it", tuple(error.absolute_path)
        )
        for error in found[:MOST_FAULTS]
    ]


class _Place(NamedTuple):
    """Position of a schema in a form."""

    told: str
    path: tuple[str | int, ...]

    def __str__(self) -> str:
        return self.told

    def of(self, *names: str | int) -> _Place:
        """Return a position inside it."""
        told = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in names)
        return _Place(f"{self.told}{told}", (*self.path, *names))


_TOP: Final = _Place("form", ())


class _Walk:
    """Visits every schema of a form, and follows each reference."""

    def __init__(self, form: Schema) -> None:
        self._defs = form.get("$defs")
        self._parts = 0
        self._instructions = 0
        self._patterns: set[str] = set()
        self.wrong: list[FormFault] = []

    def look(self, schema: object, place: _Place, through: tuple[str, ...], depth: int = 0) -> None:
        self._parts += 1
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            self._find(f"{place} is {schema!r}; a schema is an object, true or false", place)
        elif self._parts > MOST_PARTS:
            message = f"it has more than {MOST_PARTS} parts, references counted as what they stand for; ask for less"
            self._find(message, _TOP)
        elif depth > DEEPEST:
            self._find(f"it is nested deeper than {DEEPEST} levels; ask for less in one form", _TOP)
        else:
            self._words(schema, place)
            self._reference(schema, place, through, depth)
            for inner, names in _inner(schema):
                if len(self.wrong) < MOST_FAULTS and self._parts <= MOST_PARTS:
                    self.look(inner, place.of(*names), through, depth + 1)

    def _find(self, message: str, place: _Place) -> None:
        self.wrong.append(FormFault(message, place.path))

    def _words(self, schema: Schema, place: _Place) -> None:
        for word, remedy in _REFUSED.items():
            if word in schema:
                self._find(f"{place} has {word!r}; {remedy}", place.of(word))
        if "$defs" in schema and place != _TOP:
            self._find(f"{place} has '$defs'; keep them at the top of the form", place.of("$defs"))
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and pattern not in self._patterns:
            self._pattern(pattern, place)

    def _pattern(self, pattern: str, place: _Place) -> None:
        self._patterns.add(pattern)
        try:
            self._instructions += read_pattern(pattern).size
        except PatternError as error:
            message = f"{place} has the pattern {pattern[:80]!r}, which cannot be used: {error}"
            self._find(message, place.of("pattern"))
        if self._instructions > MOST_PATTERNS:
            told = (
                "the patterns of the form are too large together; repeat less in them, and bound lengths by maxLength"
            )
            self._find(told, place.of("pattern"))
            self._parts = MOST_PARTS + 1

    def _reference(self, schema: Schema, place: _Place, through: tuple[str, ...], depth: int) -> None:
        if "$ref" not in schema:
            return
        name = str(schema["$ref"])
        at, local = place.of("$ref"), name.removeprefix(_DEFS)
        if not name.startswith(_DEFS) or "/" in local:
            self._find(f"{place} refers to {name!r}; a form is whole in itself: refer to '{_DEFS}…'", at)
        elif not isinstance(self._defs, dict) or local not in self._defs:
            self._find(f"{place} refers to {name!r}, which does not exist; add it, or correct the name", at)
        elif name in through:
            self._find(f"{name!r} refers to itself; write out as many levels as there can be", at)
        else:
            self.look(self._defs[local], _Place(name, ("$defs", local)), (*through, name), depth + 1)


def _inner(schema: Schema) -> Iterator[tuple[object, tuple[str | int, ...]]]:
    """Return the direct subschemas with their paths."""
    for word in _ONE:
        if word in schema:
            yield schema[word], (word,)
    for word in _LISTS:
        given = schema.get(word)
        yield from ((each, (word, index)) for index, each in enumerate(given if isinstance(given, list) else ()))
    for word in _NAMED:
        given = schema.get(word)
        yield from ((each, (word, name)) for name, each in (given.items() if isinstance(given, dict) else ()))


# -- for an answer


class Form:
    """A checked form."""

    def __init__(self, form: Schema) -> None:
        self._form = form
        self._validator = _validators()(form, format_checker=_formats())

    def filled(self, given: object) -> object:
        """Return an answer with the defaults of omitted fields.

        A missing answer counts as empty if the form requires an object.
        """
        if given is None and (self._form.get("type") == "object" or "properties" in self._form):
            given = {}
        return self._fill(self._form, given)

    def faults(self, given: object) -> list[str]:
        """Return all faults of an answer with their positions."""
        found = [f"{_place(error)}: {error.message[:200]}" for error in self._validator.iter_errors(given)]
        told = sorted(dict.fromkeys(found))
        return told if len(told) <= MOST_FAULTS else [*told[:MOST_FAULTS], f"and {len(told) - MOST_FAULTS} more"]

    def _fill(self, schema: object, value: object) -> object:
        if not isinstance(schema, dict):
            return value
        if "$ref" in schema:
            named = cast("Schema", self._form["$defs"])[str(schema["$ref"]).removeprefix(_DEFS)]
            value = self._fill(named, value)
        for each in schema.get("allOf", ()):
            value = self._fill(each, value)
        if isinstance(value, dict):
            return self._fill_object(schema.get("properties", {}), value)
        if isinstance(value, list) and "items" in schema:
            start = len(schema.get("prefixItems", ()))
            return [*value[:start], *(self._fill(schema["items"], each) for each in value[start:])]
        return value

    def _fill_object(self, properties: Mapping[str, object], value: dict[str, object]) -> dict[str, object]:
        whole = dict(value)
        for name, schema in properties.items():
            if name in whole:
                whole[name] = self._fill(schema, whole[name])
            elif isinstance(schema, dict) and "default" in schema:
                whole[name] = self._fill(schema, schema["default"])
        return whole


def _place(error: ValidationError) -> str:
    """Return the position of a fault."""
    path = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error.absolute_path)
    return f"data{path}"


@cache
def _validators() -> type[Draft202012Validator]:
    """Return the package's validator, with two keywords replaced that can be slow."""
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    def pattern(_validator: object, sought: str, value: object, _schema: object) -> Iterator[ValidationError]:
        if not isinstance(value, str):
            return
        try:
            made = read_pattern(sought)
        except PatternError as error:  # An older release has accepted it.
            yield ValidationError(f"the pattern {sought[:80]!r} cannot be used: {error}")
            return
        if not made.allows(value):
            told = f"it is a text of {len(value)} characters; the pattern {sought!r} is tried on at most {made.longest} bytes"
            yield ValidationError(told)
        elif not made.is_found_in(value):
            yield ValidationError(f"{value[:80]!r} does not match {sought!r}")

    def unique(_validator: object, wanted: object, value: object, _schema: object) -> Iterator[ValidationError]:
        if wanted and isinstance(value, list) and len({_encode(each) for each in value}) < len(value):
            yield ValidationError("it has the same element twice")

    made = extend(Draft202012Validator, {"pattern": pattern, "uniqueItems": unique})  # type: ignore[no-untyped-call]
    return cast("type[Draft202012Validator]", made)


@cache
def _formats() -> FormatChecker:
    """Return the checker of the supported formats. User interfaces may check others."""
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())
    for name, read in _READERS.items():
        checker.checkers[name] = (_reading(read), ValueError)
    return checker


def _reading(read: Callable[[str], object]) -> Callable[[object], bool]:
    def is_right(value: object) -> bool:
        if isinstance(value, str):
            read(value)
        return True

    return is_right


def _email(text: str) -> None:
    name, _, host = text.rpartition("@")
    if not name or not host or any(each.isspace() for each in text):
        raise ValueError("no address")


def _moment(text: str) -> None:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("no time zone")


_READERS: Final = {
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "date-time": _moment,
    "email": _email,
    "uuid": UUID,
}


def faults_told(node: str, faults: list[str]) -> str:
    """Describe the faults of an answer in one sentence."""
    return f"the form of {node!r} is not filled in as it asks: {'; '.join(faults)}"
