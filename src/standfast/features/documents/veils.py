"""Putting hashes in the place of values, wherever in a history they stand."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import msgspec

from standfast.machine.model.queries.fields import is_mark

Data = dict[str, object]

CONTENT: Final = {"document_created": "data", "document_changed": "changes"}
"""Where the events that write a document have its content."""
_FREE: Final = frozenset(
    {
        *("data", "changes", "input", "output", "payload", "patch", "items", "given", "decisions", "told"),
        *("why", "comment", "error", "errors", "reason", "text", "trouble", "warnings"),
    }
)
"""The parts of events that hold what people and systems have said; all others are names that the machine goes by."""
_SAID: Final = {"event_received": _FREE | {"key"}}
"""The same of events that have more of them: the key of a published event is made of what the document says."""
_LEAST: Final = 4
"""A text that is shorter is looked for as a whole, and not inside of other texts."""
_encode = msgspec.json.Encoder(order="sorted").encode


class Redactor:
    """What is put over the values of some fields. The same value gets the same hash, and nobody can find the value by trying: the secret is thrown away."""

    def __init__(self, fields: Collection[str], secret: bytes) -> None:
        self.fields = frozenset(fields)
        self._secret = secret
        self._values: dict[str, list[object]] = {name: [] for name in fields}
        self._texts: set[str] = set()

    def learn(self, content: Mapping[str, object]) -> None:
        """Know the values that a version of the document has."""
        for name in self.fields & content.keys():
            value = content[name]
            if _is_value(value) and value not in self._values[name]:
                self._values[name].append(value)
                self._texts.update(_texts(value))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to hide."""
        return not any(self._values.values())

    def token(self, value: object) -> str:
        """What stands for a value."""
        return f"redacted:{hmac.new(self._secret, _encode(value), hashlib.sha256).hexdigest()}"

    def content(self, data: Mapping[str, object]) -> Data:
        """The content of a document with the values of the fields hidden; those of other fields are no matter of this."""
        return {
            name: self.token(value) if name in self.fields and _is_value(value) else value
            for name, value in data.items()
        }

    def anywhere(self, value: object) -> object:
        """What somebody said, with the values hidden: by the name of the field, and texts wherever they stand."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {name: self._named(name, each) for name, each in value.items()}
            case list():
                return [self.anywhere(each) for each in value]
            case _:
                return value

    def _named(self, name: str, value: object) -> object:
        """What stands under a name: the value of a field, or its values before and after a change."""
        if self._is_known(name, value):
            return self.token(value)
        if isinstance(value, list) and name.rpartition(".")[2] in self.fields:
            return [self._named(name, each) for each in value]
        return self.anywhere(value)

    def text(self, said: str) -> str:
        """A text with the values hidden."""
        if said in self._texts:
            return self.token(said)
        for each in sorted(self._texts, key=len, reverse=True):  # A longer one may hold a shorter one.
            if len(each) >= _LEAST:
                said = said.replace(each, self.token(each))
        return said

    def event(self, kind: str, data: Data) -> Data:
        """What an event says, with the values hidden."""
        content, said = CONTENT.get(kind), _SAID.get(kind, _FREE)
        return {
            name: self.content(value)
            if name == content and isinstance(value, dict)
            else self.anywhere(value)
            if name in said
            else value
            for name, value in data.items()
        }

    def _is_known(self, name: str, value: object) -> bool:
        field = name.rpartition(".")[2]
        return field in self.fields and value in self._values[field]


def _is_value(value: object) -> bool:
    """Whether there is something to hide: no value is none, and a hash is hidden already."""
    return value is not None and not is_mark(value)


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)
        case _:
            pass
