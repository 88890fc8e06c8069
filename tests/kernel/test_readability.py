"""What types promise: what can never be read is told before it is written, with the place that declares it."""

from __future__ import annotations

import abc
import gc
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar
from uuid import UUID
from weakref import ref

import msgspec
import pydantic
import pytest

from standfast.kernel.codec.codecs import JsonCodec, MessagePackCodec, SelfCritical
from standfast.kernel.codec.type_checks import has_untyped_parts, is_exact

T = TypeVar("T")
codecs = pytest.mark.parametrize("codec", [JsonCodec(), MessagePackCodec()], ids=lambda codec: codec.name)


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self) -> int:
        """Its size."""


@dataclass
class Sketch(Shape):
    lines: int


class Loose(TypedDict):
    text: str | bytes


class Pair(NamedTuple):
    at: datetime | str
    n: int


@dataclass
class First:
    a: int


@dataclass
class Second:
    b: int


class Thing:
    pass


@dataclass
class Flawed:
    number: int
    note: str | bytes
    when: dict[str, list[datetime | str]]
    loose: Loose
    pair: Pair | None
    shape: Sketch
    either: First | Second
    thing: Thing
    order: OrderedDict[str, int]


@codecs
def test_what_can_never_be_read_is_told_with_its_place(codec: SelfCritical) -> None:
    """A type that the codec could only write is found in any depth, and named by the class and field that declare it."""
    found = codec.flaws(Flawed)
    assert [flaw.place for flaw in found] == [
        "Flawed.note",
        "Flawed.when",
        "Loose.text",
        "Pair.at",
        "Flawed.shape",
        "Flawed.either",
        "Flawed.thing",
        "Flawed.order",
    ]
    assert "`str | bytes` is not supported" in found[0].reason
    assert "abstract" in found[4].reason
    assert "Thing cannot be read back" in found[6].reason


@codecs
def test_a_name_that_nobody_knows_is_a_flaw(codec: SelfCritical) -> None:
    """An annotation that cannot be resolved where the class is defined stands in the way of reading it."""

    @dataclass
    class Lost:
        inner: Inner  # type: ignore[name-defined] # noqa: F821

    (flaw,) = codec.flaws(Lost)
    assert (flaw.place, "'Inner' is not defined" in flaw.reason) == ("Lost", True)


class Node(msgspec.Struct):
    name: str
    children: list[Node] = []


class Box(msgspec.Struct, Generic[T]):
    content: T


class Model(pydantic.BaseModel):
    either: str | bytes


class Tagged(msgspec.Struct, tag=True):
    a: int


class OtherTagged(msgspec.Struct, tag=True):
    b: int


@dataclass
class Sound:
    node: Node
    box: Box[int]
    model: Model
    either: Tagged | OtherTagged
    anything: Any
    things: Sequence[object]
    kinds: Literal["a", "b"]
    limited: Annotated[int, msgspec.Meta(ge=0), Thing]
    pairs: tuple[int, ...]
    number: int | float | None


@codecs
def test_what_can_be_read_has_no_flaw(codec: SelfCritical) -> None:
    """Recursion, generics, models with rules of their own, tagged unions and open fields are no flaws."""
    assert codec.flaws(Sound) == []


class Hidden(NamedTuple):
    value: Any


@pytest.mark.parametrize("open_type", [Any, object, dict[str, object], Hidden, Sound, list[Hidden], Box])
def test_open_parts_are_found(open_type: object) -> None:
    """A part of which nobody says what it holds is found in any depth."""
    assert has_untyped_parts(open_type)
    assert not is_exact(open_type)


@dataclass
class Plain:
    text: str
    numbers: list[float]
    at: datetime
    wait: timedelta | None
    ids: dict[UUID, int]
    node: Node


@dataclass
class Priced:
    price: Decimal


@dataclass
class Careless:
    n: int
    note: str = field(default="", compare=False)


@dataclass(eq=False)
class Silent:
    n: int


@dataclass
class Opinionated:
    n: int

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Same(msgspec.Struct, eq=False):
    n: int


@pytest.mark.parametrize("too_kind", [Priced, Careless, Silent, Opinionated, Same, list[Priced], Model])
def test_equality_may_be_too_kind(too_kind: object) -> None:
    """Classes that leave fields out, have an opinion of their own, or hold decimals may be equal without being the same."""
    assert not is_exact(too_kind)
    assert not has_untyped_parts(too_kind)


def test_equality_may_be_proof() -> None:
    """Where every part is compared, an equal value of the declared type is as good as the given one."""
    assert is_exact(Plain)
    assert is_exact(Node)


def test_what_classes_promise_is_remembered_no_longer_than_they_live() -> None:
    """Asking again gives the same answer, and a class that nobody uses any more is not kept for having been asked about."""

    class Passing(msgspec.Struct):
        number: int

    class Open(msgspec.Struct):
        anything: object

    assert [is_exact(Passing), is_exact(Passing), is_exact(Open), is_exact(Open)] == [True, True, False, False]
    assert [has_untyped_parts(Passing), has_untyped_parts(Open), has_untyped_parts(Open)] == [False, True, True]
    kept: list[ref[type]] = [ref(Passing), ref(Open)]
    del Passing, Open
    gc.collect()
    assert [alive for each in kept if (alive := each()) is not None] == []


class Early(msgspec.Struct):
    """Names a class that is not there yet."""

    later: Later  # type: ignore[name-defined]  # noqa: F821 - the test brings it


def test_a_class_is_judged_when_its_names_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that names what is not there yet promises nothing; that is not held against it afterwards."""
    assert not is_exact(Early)
    monkeypatch.setitem(globals(), "Later", int)
    assert is_exact(Early)
