"""What a value says beyond the defaults of its classes."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest
from pydantic import BaseModel

from standfast.kernel.codec.codecs import fingerprint
from standfast.kernel.codec.defaults import beyond_defaults


@dataclass(frozen=True)
class Line:
    sku: str
    count: int = 1
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Order:
    id: str
    lines: list[Line]
    best: Line | None = None
    data: dict[str, object] = field(default_factory=dict)


class Letter(msgspec.Struct, tag=True, rename="camel"):
    long_name: str
    copies: int = 1
    lines: dict[str, Line] = {}


class Model(BaseModel):
    name: str
    count: int = 1


class Touchy:
    """Its values refuse to be compared."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("no")

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Odd:
    what: object = field(default_factory=Touchy)


TOLD: dict[str, tuple[object, object]] = {
    "a default": (Line("a", 1), {"sku": "a"}),
    "another value": (Line("a", 2, ["x"]), {"sku": "a", "count": 2, "tags": ["x"]}),
    "nested": (
        Order("1", [Line("a"), Line("b", 2)], Line("c")),
        {"id": "1", "lines": [{"sku": "a"}, {"sku": "b", "count": 2}], "best": {"sku": "c"}},
    ),
    "plain data": (Order("1", [], data={"count": 1}), {"id": "1", "lines": [], "data": {"count": 1}}),
    "a struct": (Letter("a"), {"type": "Letter", "longName": "a"}),
    "a struct with more": (
        Letter("a", 2, {"x": Line("b")}),
        {"type": "Letter", "longName": "a", "copies": 2, "lines": {"x": {"sku": "b"}}},
    ),
    "a model": (Model(name="a"), {"name": "a"}),
    "no class": ([1, "a", None], [1, "a", None]),
}


@pytest.mark.parametrize("name", TOLD)
def test_fields_at_their_defaults_say_nothing(name: str) -> None:
    """Whatever kind of class it is, and however deep it lies, what was left at its default is left out."""
    value, told = TOLD[name]
    assert beyond_defaults(value) == told


def test_a_value_that_cannot_be_compared_is_kept() -> None:
    """Whoever refuses to say whether it is the default is not taken for it."""
    odd = Odd()
    told = beyond_defaults(odd)
    assert isinstance(told, dict)
    assert told["what"] is odd.what


def test_a_class_with_one_more_default_says_the_same() -> None:
    """A field that was added with a default changes no fingerprint of a value that does not use it."""

    @dataclass(frozen=True)
    class Before:
        sku: str

    assert fingerprint(beyond_defaults(Before("a"))) == fingerprint(beyond_defaults(Line("a")))
    assert fingerprint(beyond_defaults(Before("a"))) != fingerprint(beyond_defaults(Line("a", 2)))
