"""Fields that were left to their default are stored like all others, so that another default later changes nothing that has happened."""

from __future__ import annotations

import typing
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.dataclasses import dataclass as pydantic_dataclass

from standfast.errors import PayloadError
from standfast.kernel.codec.codecs import Codec, JsonCodec, MessagePackCodec, convert
from standfast.kernel.codec.defaults import complete, completion
from standfast.kernel.codec.message_types import MessageTypeSet
from support.untimed import untimed

CODECS: list[Codec] = [JsonCodec(), MessagePackCodec()]
codecs = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)


@dataclass(frozen=True)
class Item:
    sku: str
    count: int = 1
    note: str | None = None


@dataclass(slots=True)
class Slotted:
    sku: str
    count: int = 1


class Struct(msgspec.Struct):
    sku: str
    count: int = 1


@dataclass
class Listed:
    """Only its factory has to be called, and every reader does that."""

    sku: str
    tags: list[str] = field(default_factory=list)
    size: ClassVar[int] = 3


class Model(pydantic.BaseModel):
    item: Item
    count: int = 1


class Slot:
    __slots__ = ("sku",)


@dataclass
class HalfSlotted(Slot):
    sku: str
    count: int = 1


@pydantic_dataclass
class Checked:
    sku: str
    count: int = pydantic.Field(default=1, gt=0)


@dataclass
class Constant:
    sku: str
    kind: str = field(default="constant", init=False)


class Pair(NamedTuple):
    item: Item
    number: int = 1


class Named(TypedDict, total=False):
    item: Item


class Around(msgspec.Struct):
    item: Item


@dataclass
class Tree:
    sku: str
    below: list[Tree] = field(default_factory=list)
    count: int = 1


@dataclass(frozen=True)
class Everywhere:
    """One field of each kind that can hold a dataclass."""

    item: Item | str | None = None
    by_name: dict[str, Item] = field(default_factory=dict)
    pair: Pair | None = None
    named: Named = field(default_factory=Named)
    around: Around | None = None
    model: Model | None = None
    many: tuple[Item, ...] = ()
    two: tuple[Item, int] | None = None
    seen: frozenset[Item] = frozenset()
    deep: list[list[dict[str, list[Item]]]] = field(default_factory=list)
    tree: Tree | None = None
    checked: Checked | None = None
    half: HalfSlotted | None = None


def words(*members: type, codec: Codec | None = None) -> MessageTypeSet:
    """The events of a shop."""
    return MessageTypeSet(members, kind="event", decider="shop", codec=codec or JsonCodec())


FIELDS: dict[str, tuple[object, object]] = {
    "item": ({"sku": "a"}, Item("a")),
    "by_name": ({"x": {"sku": "a"}}, {"x": Item("a")}),
    "pair": ([{"sku": "a"}], Pair(Item("a"))),
    "named": ({"item": {"sku": "a"}}, Named(item=Item("a"))),
    "around": ({"item": {"sku": "a"}}, Around(Item("a"))),
    "model": ({"item": {"sku": "a"}}, Model(item=Item("a"))),
    "many": ([{"sku": "a"}, {"sku": "b", "count": 2}], (Item("a"), Item("b", 2))),
    "two": ([{"sku": "a"}, 5], (Item("a"), 5)),
    "seen": ([{"sku": "a"}], frozenset({Item("a")})),
    "deep": ([[{"x": [{"sku": "a"}]}]], [[{"x": [Item("a")]}]]),
    "tree": ({"sku": "a", "below": [{"sku": "b"}]}, Tree("a", [Tree("b")])),
    "checked": ({"sku": "a"}, Checked("a")),
    "half": ({"sku": "a"}, HalfSlotted("a")),
}
"""Each field as a caller without the classes sends it, and as one with them does."""


@untimed
@given(names=st.sets(st.sampled_from(sorted(FIELDS))))
def test_what_is_left_out_is_stored_as_if_it_was_said(names: set[str]) -> None:
    """Plain data, bytes and objects that leave a field out, at whatever depth, are stored as the same bytes."""
    plain = {name: FIELDS[name][0] for name in names}
    typed = Everywhere(**typing.cast("dict[str, typing.Any]", {name: FIELDS[name][1] for name in names}))
    for codec in CODECS:
        stored = codec.encode(typed)
        read = codec.decode(codec.encode(plain), Everywhere)
        for each in (read, convert(plain, Everywhere), codec.decode(stored, Everywhere)):
            assert codec.encode(each) == stored
            assert vars(each).keys() == vars(typed).keys()


@codecs
@pytest.mark.parametrize("cls", [Item, Slotted, Struct, Listed, HalfSlotted, Checked, Constant, Tree], ids=str)
def test_every_kind_of_class_is_stored_with_all_its_fields(codec: Codec, cls: type) -> None:
    """A class says all that it holds, whoever made the object of it: the class itself, a codec, or the caller's own reader."""
    made = cls(sku="a")
    own: object = msgspec.convert({"sku": "a"}, cls)
    stored = {words(cls, codec=codec).encode(each).data for each in (made, own, convert({"sku": "a"}, cls))}
    assert len(stored) == 1
    told = codec.decode(stored.pop(), dict)
    assert told.keys() == {"sku", *(name for name in ("count", "note", "tags", "kind", "below") if hasattr(made, name))}


@pytest.mark.parametrize(
    "declared", [Slotted, Struct, Listed, Model, dict, int, list[str], dict[str, Slotted], object, "?"], ids=str
)
def test_types_that_leave_nothing_out_cost_nothing(declared: type) -> None:
    """For a type whose values are always whole there is nothing to call."""
    assert completion(declared) is None


def test_what_was_said_stays_as_it_is() -> None:
    """Only what is not there is filled in."""
    item = convert({"sku": "a", "note": "kept"}, Item)
    assert complete(item) is item
    assert vars(item) == {"sku": "a", "count": 1, "note": "kept"}


def test_a_value_without_end_is_refused_by_the_codec() -> None:
    """A value that holds itself is the codec's to refuse, in its own words."""
    tree = Tree("a")
    tree.below.append(tree)
    with pytest.raises(PayloadError, match="Tree cannot be stored"):
        words(Tree).encode(tree)
