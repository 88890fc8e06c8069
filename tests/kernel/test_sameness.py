"""What came back from bytes is compared with what was written: kindly where it is used from then on, strictly where it is a copy."""

from __future__ import annotations

import enum
import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
import pydantic
import pytest

from standfast.kernel.codec.equality import difference, strict_difference

NAN = float("nan")
NOON = datetime(2026, 3, 31, 12, tzinfo=UTC)
TWICE = datetime(2025, 11, 2, 1, 30, tzinfo=ZoneInfo("America/New_York"))
"""In the hour that New York's clocks go through twice."""


class Colour(enum.StrEnum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Base:
    n: int = 0


@dataclass
class Derived(Base):
    extra: str = ""


@dataclass(eq=False)
class Incomparable:
    n: int
    inner: list[Base] = field(default_factory=list)


@dataclass
class Forgetful:
    n: int
    seen: int = field(default=0, compare=False)


class Line(msgspec.Struct):
    price: Decimal


class Model(pydantic.BaseModel):
    n: int
    _secret: int = pydantic.PrivateAttr(default=0)


def secretive() -> Model:
    """A model that keeps something besides its fields."""
    model = Model(n=1)
    model._secret = 7
    return model


KIND = [
    (3.0, 3),
    (["a"], ("a",)),
    ({1}, frozenset({1})),
    (b"x", bytearray(b"x")),
    ("red", Colour.RED),
    (Colour.RED, "red"),
    ({"a": 1}, defaultdict(int, a=1)),
    ((1, 2), Point(1, 2)),
    (NAN, float("nan")),
    (Decimal("NaN"), Decimal("NaN")),
    (TWICE.astimezone(UTC), TWICE),
    (NOON, NOON.astimezone(timezone(timedelta(hours=2)))),
    ([Incomparable(1, [Base(1)])], [Incomparable(1, [Base(1)])]),
    (Model(n=1), Model(n=1)),
]


@pytest.mark.parametrize(("back", "given"), KIND)
def test_a_kindred_value_of_the_declared_type_will_do(back: object, given: object) -> None:
    """Where everybody goes on with what came back, it only has to say the same in the type that was declared."""
    assert difference(back, given) == ""


@pytest.mark.parametrize(
    ("back", "given", "said"),
    [
        (Decimal(1), 1, "the value is an int and would come back as a Decimal"),
        (1, Decimal(1), "is a Decimal and would come back as an int"),
        ("12", 12, "is an int and would come back as a str"),
        (2.0**53, 2**53 + 1, "9007199254740993 and would come back as 9007199254740992.0"),
        ({"1": "a"}, {1: "a"}, "a key of the value is an int and would come back as a str"),
        ({"1": "b"}, {1: "a", "1": "b"}, "has 2 keys and would come back with 1"),
        (Base(1), Derived(1, "x"), "the value is a Derived and would come back as a Base"),
        ([Base(1)], [Derived(1)], r"\[0\] is a Derived and would come back as a Base"),
        ([1, 2], [1], r"\[1\] would come from nowhere"),
        ([1], [1, 2], r"\[1\] would be lost"),
        (Forgetful(1, 1), Forgetful(1, 2), "^seen is 2 and would come back as 1"),
        (Incomparable(1, [Base(1)]), Incomparable(1, [Base(2)]), r"^inner\[0\].n is 2"),
        (NOON.replace(second=28), NOON, "12, 0, tzinfo"),
        (NOON.replace(tzinfo=None), NOON, "would come back as datetime"),
        (Model(n=1), secretive(), "would come back as"),
        ("x" * 100, "y" * 100, "y{79}… and"),
    ],
)
def test_a_value_that_says_something_else_is_told_by_its_place(back: object, given: object, said: str) -> None:
    """The first difference is named with the way to it and both of its sides."""
    assert re.search(said, difference(back, given))


@pytest.mark.parametrize(("back", "given"), [(["a"], ("a",)), ({1}, frozenset({1}))])
def test_nothing_is_retyped_where_nobody_declared_a_type(back: object, given: object) -> None:
    """In a field of any type a tuple that comes back as a list is another value."""
    assert "would come back as" in difference(back, given, may_retype=False)


@dataclass
class Room:
    name: str
    guests: list[str] = field(default_factory=list)

    @cached_property
    def size(self) -> int:
        """Something that is computed once."""
        return len(self.guests)


def remembered() -> Room:
    """A room that has computed something."""
    room = Room("a")
    assert room.size == 0
    return room


@pytest.mark.parametrize(
    "make", [lambda: Room("a", ["x"]), lambda: {"a": (1, {2.0, 3})}, lambda: NOON, lambda: Line(Decimal(1))]
)
def test_a_copy_is_the_same(make: Callable[[], object]) -> None:
    """Equal in value and type, down to the leaves."""
    assert strict_difference(make(), make()) == ""


def test_what_can_be_computed_again_is_no_difference() -> None:
    """A value that an object keeps for itself to be quick is not a part of it."""
    assert strict_difference(Room("a"), remembered()) == ""


def marked() -> Room:
    """A room with an attribute that is no field."""
    room: Any = Room("a")
    room.lock = 1
    return room  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("back", "given", "said"),
    [
        (3.0, 3, "is an int and would come back as a float"),
        ({"a": 1}, defaultdict(int, a=1), "is a defaultdict and would come back as a dict"),
        ({"a": 1}, OrderedDict(a=1), "is an OrderedDict"),
        ("red", Colour.RED, "is a Colour and would come back as a str"),
        ((1, 2), Point(1, 2), "is a Point and would come back as a tuple"),
        ({1}, {True}, "True"),
        (NOON, NOON.astimezone(ZoneInfo("UTC")), "ZoneInfo"),
        (time(12), time(12, tzinfo=ZoneInfo("UTC")), "ZoneInfo"),
        (Room("a"), marked(), "^lock is no field of Room and would be lost"),
    ],
)
def test_a_copy_of_another_type_is_another_value(back: object, given: object, said: str) -> None:
    """Where the given value stays in use, its likeness in another type would behave in another way."""
    assert re.search(said, strict_difference(back, given))


def test_a_part_in_two_places_does_not_come_back() -> None:
    """What changes at both places at once would come back as two parts that do not; what can never change may be anywhere."""
    shared, fixed = ["x"], ("x",)
    copied = {"all": [["x"]], "last": ["x"]}
    assert strict_difference(copied, {"all": [shared], "last": shared}) == (
        "['last'] is the same object as ['all'][0] and would come back as another one"
    )
    assert strict_difference({"a": ("x",), "b": ("x",)}, {"a": fixed, "b": fixed}) == ""


@dataclass(eq=False)
class Prickly:
    n: int

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not me")

    __hash__ = None  # type: ignore[assignment]


def test_what_cannot_be_compared_is_not_the_same() -> None:
    """A class that refuses to be compared does no harm; its fields are looked at, and its own opinion is not asked."""
    assert difference(Prickly(1), Prickly(1)) == ""
    assert difference({Prickly: Prickly(1)}, {Prickly: Prickly(2)}).endswith("is 2 and would come back as 1")
    deep_back: list[object] = []
    deep_given: list[object] = []
    for _ in range(100_000):
        deep_back, deep_given = [deep_back], [deep_given]
    assert "cannot be compared" in difference(deep_back, deep_given)
