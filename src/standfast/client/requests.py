"""What is asked of a server, and how its answer is read. Nothing here sends anything."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Final, Generic, Literal, TypeVar, cast
from urllib.parse import quote

import msgspec

from standfast.client.errors import error_of, not_understood
from standfast.errors import PayloadError
from standfast.kernel.codec.type_cache import settled

T = TypeVar("T")

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

_REPEATABLE: Final = frozenset({"GET", "PUT"})
_STEPS: Final = frozenset({"", ".", ".."})
"""Parts of an address that lead elsewhere."""
_encode = msgspec.json.Encoder(enc_hook=str).encode


class ClientRequest(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One request."""

    method: Method
    path: str
    answer: type[T]
    """What a good answer is read as."""
    query: Mapping[str, object] = {}
    body: object = msgspec.UNSET
    """What goes into JSON; bytes are a file of their own, YAML or JSON, and go as they are."""
    key: str = ""
    """Makes a repetition harmless (`Idempotency-Key`); empty where the route takes none."""
    version: int | None = None
    """What is to be changed must be at this version (`If-Match`)."""

    @property
    def is_repeatable(self) -> bool:
        """Whether it does no harm to send it again when nobody knows what became of it."""
        return self.method in _REPEATABLE or bool(self.key)

    @property
    def headers(self) -> dict[str, str]:
        """What goes with it."""
        told = {"accept": "application/json, application/problem+json"}
        if self.key:
            told["idempotency-key"] = self.key
        if self.version is not None:
            told["if-match"] = f'"v{self.version}"'
        if self.body is not msgspec.UNSET:
            told["content-type"] = "application/yaml" if isinstance(self.body, bytes) else "application/json"
        return told

    @property
    def content(self) -> bytes | None:
        """The body, as it is sent."""
        if isinstance(self.body, bytes):
            return self.body
        return None if self.body is msgspec.UNSET else _encode(self.body)

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """What stands behind the `?` of the address."""
        return [(name, _worded(each)) for name, value in self.query.items() for each in _several(value)]

    def answered(self, status: int, content: bytes) -> T:
        """The value of an answer; the library's errors for a refusal, and for what no server of Standfast answers."""
        if status >= HTTPStatus.BAD_REQUEST:
            raise error_of(status, content, key=self.key)
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            raise not_understood(status, content)
        if self.answer is type(None):
            return None
        if self.answer is str:
            return cast("T", content.decode())
        return self.read(content, status)

    def read(self, content: bytes, status: int = HTTPStatus.OK) -> T:
        """A value in JSON."""
        try:
            return msgspec.json.decode(content, type=settled(self.answer))
        except msgspec.DecodeError as error:
            raise not_understood(status, content) from error


class StreamEvent(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """Something that a stream tells."""

    name: str
    """`entry`, `changed` or `counts`; `resync` if something was missed and is to be read anew; `end` if the run has ended."""
    id: int
    """Give it as `last` to go on behind it."""
    value: T | None
    """What it tells; None for `resync` and `end`."""


def new_key() -> str:
    """A key that no other request has."""
    return secrets.token_hex(16)


def placed(value: object) -> str:
    """A value as a part of an address; PayloadError for what would make another address of it."""
    text = _worded(value)
    if text in _STEPS:
        raise PayloadError(f"{text!r} names nothing: it cannot stand in an address")
    return quote(text, safe="")


def said(given: Mapping[str, object], silent: Mapping[str, object]) -> dict[str, object]:
    """What differs from what is meant by saying nothing."""
    return {name: value for name, value in given.items() if name not in silent or value != silent[name]}


def _several(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else (value,)


def _worded(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat()
        case _:
            return str(value)
