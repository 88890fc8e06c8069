"""Parses the text of a file to a tree within limits, which are checked before anything large is built.

YAML is read event by event, and JSON as YAML. Only texts, numbers, lists and objects are constructed. Tags are refused,
and the values of anchors count for each alias.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import yaml

from standfast.errors import Diagnostic
from standfast.graph.source_files.tree import Fields, FileField, FileItems, Mark, Scalar, Tree, value_of

LARGEST: Final = 4 * 1024 * 1024
"""Maximum size of a file in bytes."""
DEEPEST: Final = 40
"""Maximum nesting of lists and objects."""
MOST_VALUES: Final = 400_000
"""Maximum number of values, including those of aliases."""
MOST_ALIASES: Final = 1000
MOST_FINDINGS: Final = 100
"""Maximum number of findings. The others are reported after these are corrected."""
SHOWN: Final = 60
"""Maximum length of a value in a message."""

_BEGIN: Final = Mark(1, 1)
_PAIR: Final = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_Loader: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


def parse(text: str | bytes, found: list[Diagnostic]) -> Tree | None:
    """Return the tree of a file, and append findings to `found`. Returns None for invalid YAML or an exceeded limit."""
    try:
        return _Composer(found).document(_decoded(text))
    except _Refused as refused:
        found.append(refused.finding)
        return None


def shown(value: object) -> str:
    """Return a value for a message, shortened if it is long."""
    told = repr(value)
    return told if len(told) <= SHOWN else f"{told[:SHOWN]}…"


class _Refused(Exception):  # noqa: N818 - it only ends the parsing
    """Parsing cannot continue."""

    def __init__(self, code: str, message: str, at: Mark) -> None:
        self.finding = Diagnostic(code, message, str(at))
        super().__init__(message)


def _decoded(given: str | bytes) -> str:
    size = len(given)
    if size > LARGEST:
        raise _Refused("too_large", f"the file has {size} bytes; at most {LARGEST} are read: split it", _BEGIN)
    try:
        text = given.decode() if isinstance(given, bytes) else given
        text.encode()
    except UnicodeError as error:
        before = given[: getattr(error, "start", 0)]
        read = before.decode(errors="replace") if isinstance(before, bytes) else before
        raise _Refused("encoding", f"this is no UTF-8: {error}; save the file as UTF-8", _mark_in(read)) from error
    text = text.removeprefix("\ufeff")
    body = text.lstrip()
    if not body.startswith(("{", "[")):
        return text
    # JSON may begin with tabs, and writes characters beyond U+FFFF as surrogate pairs. YAML supports neither.
    return text[: len(text) - len(body)].replace("\t", " ") + _PAIR.sub(_whole, body)


def _whole(pair: re.Match[str]) -> str:
    high, low = int(pair[1], 16), int(pair[2], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"


def _mark_in(before: str) -> Mark:
    """Return the position after a text."""
    return Mark(before.count("\n") + 1, len(before) - before.rfind("\n"))


class _Frame:
    """A list or an object that is being read."""

    __slots__ = ("anchor", "before", "height", "key", "tree")

    def __init__(self, tree: FileItems | Fields, anchor: str | None, before: int) -> None:
        self.tree = tree
        self.anchor = anchor
        self.before = before
        """Number of values before it."""
        self.height = 1
        """Its depth, including its own level."""
        self.key: Scalar | None = None
        """The name whose value comes next."""


class _Composer:
    """Builds a tree from the events of a document, without recursion."""

    def __init__(self, found: list[Diagnostic]) -> None:
        self._found = found
        self._anchors: dict[str, tuple[Tree, int, int]] = {}
        """For each anchor its tree, number of values and depth."""
        self._open: list[_Frame] = []
        self._root: Tree | None = None
        self._values = 0
        self._aliases = 0

    def document(self, text: str) -> Tree:
        """Return the tree of the only document."""
        for event in _events(text):
            match event:
                case yaml.ScalarEvent():
                    self._scalar(event)
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    self._begin(event)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self._end()
                case yaml.AliasEvent():
                    self._alias(event)
                case yaml.DocumentStartEvent() if self._root is not None:
                    raise _Refused("many_documents", "the file holds several documents; keep one", _mark(event))
                case _:
                    pass
        if self._root is None:
            raise _Refused("empty", "the file is empty; give at least what its schema requires", _BEGIN)
        return self._root

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._refuse_tag(event)
        tree = Scalar(value_of(event.value) if event.implicit[0] else event.value, event.value, _mark(event))
        self._count(1, tree.at)
        if "\0" in event.value:  # Written with an escape; YAML itself refuses the raw character.
            self._find("syntax", "this holds the character U+0000, which no database keeps; remove it", tree.at)
        if event.anchor:
            self._anchors[event.anchor] = (tree, 1, 0)
        self._place(tree, 0)

    def _begin(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        self._refuse_tag(event)
        at = _mark(event)
        self._count(1, at)
        self._check_depth(len(self._open) + 1, at)
        self._refuse_key(at)
        tree = Fields({}, at) if isinstance(event, yaml.MappingStartEvent) else FileItems([], at)
        self._open.append(_Frame(tree, event.anchor, self._values - 1))

    def _end(self) -> None:
        frame = self._open.pop()
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.tree, self._values - frame.before, frame.height)
        self._place(frame.tree, frame.height)

    def _alias(self, event: yaml.AliasEvent) -> None:
        at = _mark(event)
        self._refuse_key(at)
        self._aliases += 1
        if self._aliases > MOST_ALIASES:
            raise _Refused("aliases", f"the file uses more than {MOST_ALIASES} aliases; write some of them out", at)
        known = self._anchors.get(event.anchor or "")
        if known is None:
            message = f"*{event.anchor} stands for nothing that ends before it; write &{event.anchor} in front of a value further up"
            raise _Refused("aliases", message, at)
        tree, values, height = known
        self._count(values, at)
        self._check_depth(len(self._open) + height, at)
        self._place(tree, height)

    def _place(self, tree: Tree, height: int) -> None:
        """Add a value to the open list or object."""
        if not self._open:
            self._root = tree
            return
        frame = self._open[-1]
        if height >= frame.height:
            frame.height = height + 1
        match frame.tree, frame.key:
            case FileItems(items=items), _:
                items.append(tree)
            case Fields(), None:
                assert isinstance(tree, Scalar)
                frame.key = tree
            case Fields(fields=fields), key:
                frame.key = None
                if key.text in fields:
                    message = f"{shown(key.text)} was given before, at {fields[key.text].name}; keep one of them"
                    self._find("duplicate_key", message, key.at)
                else:
                    fields[key.text] = FileField(key.at, tree)

    def _count(self, values: int, at: Mark) -> None:
        self._values += values
        if self._values > MOST_VALUES:
            message = f"the file holds more than {MOST_VALUES} values, aliases written out; split it"
            raise _Refused("too_many_values", message, at)

    def _check_depth(self, depth: int, at: Mark) -> None:
        if depth > DEEPEST:
            raise _Refused("too_deep", f"this is nested deeper than {DEEPEST} levels; nothing here needs that many", at)

    def _refuse_key(self, at: Mark) -> None:
        """Refuse a name that is no text."""
        if self._open and isinstance(self._open[-1].tree, Fields) and self._open[-1].key is None:
            raise _Refused("key", "a name must be a text, not a list, an object or an alias; quote it", at)

    def _refuse_tag(self, event: yaml.ScalarEvent | yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        if event.tag is not None:
            message = f"the tag {shown(event.tag)} is not read; remove it, and quote what is to be a text"
            self._find("tag", message, _mark(event))

    def _find(self, code: str, message: str, at: Mark) -> None:
        self._found.append(Diagnostic(code, message, str(at)))
        if len(self._found) >= MOST_FINDINGS:
            raise _Refused("too_many_findings", "there is more; mend these first", at)


def _cure(text: str, mark: yaml.Mark | None) -> str:
    """Return a remedy for a YAML error. A tab is named, because it is invisible."""
    lines = text.splitlines()
    if mark is not None and mark.line < len(lines) and "\t" in lines[mark.line][: mark.column + 1]:
        return "there is a tab here; indent with spaces"
    return "look at the indentation, quotes and brackets here"


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=_Loader)
    except yaml.reader.ReaderError as error:
        before = text.encode()[: error.position].decode(errors="replace")
        message = f"{error.reason}: {error.character!r}; remove the character"
        raise _Refused("syntax", message, _mark_in(before)) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        told = ", ".join(each for each in (error.context, error.problem) if each)
        at = _BEGIN if mark is None else Mark(mark.line + 1, mark.column + 1)
        raise _Refused("syntax", f"this is no YAML: {told}; {_cure(text, mark)}", at) from error


def _mark(event: yaml.Event) -> Mark:
    mark = event.start_mark
    assert mark is not None
    return Mark(mark.line + 1, mark.column + 1)
