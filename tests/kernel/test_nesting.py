"""Data is nested no deeper than every part of the engine can follow, and whoever goes beyond is told so when it comes in."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pydantic
import pytest

from standfast.errors import PayloadError
from standfast.kernel.codec.codecs import Codec, JsonCodec, MessagePackCodec
from standfast.kernel.codec.depth import DEEPEST, is_deep, is_flat_json
from standfast.kernel.codec.message_types import MessageTypeSet
from standfast.kernel.codec.type_checks import is_bounded

CODECS: list[Codec] = [JsonCodec(), MessagePackCodec()]
codecs = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)


def nested(levels: int) -> object:
    """A list in a list, so many times."""
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@dataclass
class Open:
    """Holds anything."""

    value: object


@dataclass
class Tree:
    """Holds itself."""

    below: list[Tree] = field(default_factory=list)


class Item(msgspec.Struct):
    """Holds nothing."""

    sku: str


class Flat(msgspec.Struct):
    """Says how deep it is."""

    items: list[Item]
    by_name: dict[str, tuple[Item, ...]] | None = None
    other: Item | None = None


class Model(pydantic.BaseModel):
    """Reads itself."""

    value: object


def tree(levels: int) -> Tree:
    """A tree in a tree, so many times: an object and a list at each level, but for the last list, which is empty."""
    made = Tree()
    for _ in range(levels - 1):
        made = Tree([made])
    return made


def words(codec: Codec, *members: type) -> MessageTypeSet:
    """The events of a shop."""
    return MessageTypeSet(members, kind="event", decider="shop", codec=codec)


def test_levels_are_counted() -> None:
    """As many levels as the limit says may be, and no more, wherever in the data they are."""
    assert not is_deep(nested(DEEPEST))
    assert is_deep(nested(DEEPEST + 1))
    assert is_deep({"a": 1, "b": [{"c": nested(DEEPEST - 1)}]})
    assert not is_deep([nested(DEEPEST - 1)] * 10)


def test_a_glance_at_json_is_enough_for_most() -> None:
    """What is short or has few brackets is never looked through; what is too deep always is."""
    encode = msgspec.json.encode
    assert is_flat_json(encode(nested(DEEPEST)))
    assert is_flat_json(encode({"a": "x" * 10_000, "b": list(range(1000))}))
    assert not is_flat_json(encode(nested(DEEPEST + 1)))


@codecs
@pytest.mark.parametrize(
    ("deepest", "deeper"),
    [
        (Open(nested(DEEPEST - 1)), Open(nested(DEEPEST))),
        (tree(DEEPEST // 2), tree(DEEPEST // 2 + 1)),
        (Model(value=nested(DEEPEST - 1)), Model(value=nested(DEEPEST))),
    ],
    ids=["anything", "itself", "model"],
)
def test_words_that_are_too_deep_are_refused(codec: Codec, deepest: object, deeper: object) -> None:
    """A command, an event or an effect that could not be read everywhere is not written at all."""
    vocabulary = words(codec, type(deepest))
    assert vocabulary.keep(deepest)[1] == deepest
    with pytest.raises(PayloadError, match=f"deeper than {DEEPEST} levels"):
        vocabulary.keep(deeper)


def test_types_that_say_how_deep_they_are_need_no_look() -> None:
    """Only what holds anything, or itself, can be deeper than its type says."""
    assert is_bounded(Flat)
    assert not any(map(is_bounded, (Open, Tree, Model, dict, dict[str, object], list[Tree])))
