"""The words of a decider: their stored names and versions, the size they may have, and how old ones are read."""

from __future__ import annotations

import typing
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Never, Optional, TypeAlias, Union
from zoneinfo import ZoneInfo

import msgspec
import pytest

from standfast.errors import CommandError, PayloadError, UnknownEventError
from standfast.kernel.codec.codecs import Codec, JsonCodec, MessagePackCodec, Upcaster
from standfast.kernel.codec.message_types import (
    Encoded,
    MessageTypeSet,
    PlainMessageTypeSet,
    diagnose_members,
    members_of,
    message,
    wire_name,
)


@dataclass(frozen=True)
class Opened:
    amount: int
    currency: str = "EUR"


@message(name="account_closed", version=3)
@dataclass(frozen=True)
class Closed:
    reason: str


@dataclass(frozen=True)
class ClosedAgain(Closed):
    pass


def words(
    *members: type,
    upcasters: dict[tuple[str, int], Upcaster] | None = None,
    limit: int = 1000,
    codec: Codec | None = None,
) -> MessageTypeSet:
    """The events of an account."""
    return MessageTypeSet(
        members, kind="event", decider="account", codec=codec or JsonCodec(), upcasters=upcasters or {}, limit=limit
    )


@pytest.mark.row("D-047")
def test_values_are_stored_under_the_name_of_their_class() -> None:
    """Without a mark it is the class name and version 1; the mark says otherwise."""
    assert words(Opened).encode(Opened(5)) == Encoded("Opened", 1, b'{"amount":5,"currency":"EUR"}')
    assert words(Closed).encode(Closed("done")) == Encoded("account_closed", 3, b'{"reason":"done"}')


def test_marks_are_not_inherited() -> None:
    """A subclass is a word of its own: it does not take its parent's name by accident."""
    assert wire_name(ClosedAgain) == ("ClosedAgain", 1)


@pytest.mark.row("D-116")
@pytest.mark.parametrize("codec", [JsonCodec(), MessagePackCodec()], ids=lambda codec: codec.name)
def test_values_come_back_as_their_class(codec: Codec) -> None:
    """What one codec stored it reads back as the same class."""
    vocabulary = words(Opened, Closed, codec=codec)
    for value in (Opened(5), Closed("done")):
        kept = vocabulary.encode(value)
        assert vocabulary.decode(kept.type, kept.version, kept.data) == value


class Rot13:
    """A codec of the user's own."""

    name = "rot13"
    inner = JsonCodec()

    def encode(self, value: object) -> bytes:
        """Turn every byte."""
        return bytes(byte ^ 13 for byte in self.inner.encode(value))

    def decode(self, data: bytes, as_type: type[typing.Any]) -> typing.Any:
        """Turn every byte back."""
        return self.inner.decode(bytes(byte ^ 13 for byte in data), as_type)


@pytest.mark.row("D-116")
def test_a_codec_can_be_the_users_own() -> None:
    """Whatever has `encode` and `decode` can stand between values and bytes, upcasting included."""
    old = words(Opened, codec=Rot13()).encode(Opened(5))
    newer = words(Marked, codec=Rot13(), upcasters={("Opened", 1): lambda old: {**old, "holder": "ada"}})
    assert newer.decode(old.type, old.version, old.data) == Marked(5, "ada")


def test_foreign_types_are_refused() -> None:
    """A value of a type that was not declared is refused, and the declared ones are named."""
    with pytest.raises(CommandError, match="does not declare str as one of its events; it has Opened"):
        words(Opened).encode("text")


def test_a_foreign_type_of_a_known_name_is_told_apart_by_its_place() -> None:
    """Two classes of one name, from two modules or from one that was loaded twice, are named with their modules."""
    elsewhere, again = (type("Opened", (), {"__module__": name}) for name in ("other.events", Opened.__module__))
    with pytest.raises(CommandError) as caught:
        words(Closed, Opened).encode(elsewhere())
    assert f"declare other.events.Opened as one of its events; it has {Opened.__module__}.Opened" in str(caught.value)
    with pytest.raises(CommandError, match=r"test_vocabulary\.Opened .* the module was loaded twice, or reloaded"):
        words(Closed, Opened).encode(again())


def test_membership_is_by_exact_class() -> None:
    """A subclass of a declared class is not declared: it would come back as its parent."""
    assert Closed("done") in words(Closed)
    assert ClosedAgain("done") not in words(Closed)


def test_the_size_limit_is_exact() -> None:
    """A value of just the limit is stored; one byte more is refused with both numbers."""
    size = len(words(Closed).encode(Closed("x")).data)
    assert words(Closed, limit=size).encode(Closed("x")).data
    with pytest.raises(PayloadError, match=f"takes {size} bytes and the limit is {size - 1}"):
        words(Closed, limit=size - 1).encode(Closed("x"))


@pytest.mark.row("D-017", "D-026")
def test_plain_data_names_its_word() -> None:
    """A caller without the classes names the word; an unknown one is refused and the known ones are told."""
    assert words(Opened).from_plain("Opened", {"amount": 5}) == Opened(5)
    with pytest.raises(PayloadError, match="has no event 'Opend'; it has Opened"):
        words(Opened).from_plain("Opend", {})


@pytest.mark.row("D-088")
@pytest.mark.parametrize(("name", "version"), [("Vanished", 1), ("Opened", 2), ("account_closed", 4)])
def test_unknown_words_are_an_error(name: str, version: int) -> None:
    """A removed class, or a version from newer code, is never guessed at."""
    with pytest.raises(UnknownEventError, match=f"'account' does not know event '{name}' version {version}") as caught:
        words(Opened, Closed).decode(name, version, b"{}")
    assert (caught.value.code, caught.value.event_type, caught.value.version) == ("unknown_event", name, version)


@pytest.mark.row("D-088")
def test_a_changed_field_type_is_an_error() -> None:
    """Old bytes that do not fit the class any more are refused, not bent."""
    with pytest.raises(PayloadError, match=r"Opened: Opened\.amount must be int, got str"):
        words(Opened).decode("Opened", 1, b'{"amount":"five"}')


@pytest.mark.row("D-086")
def test_a_new_field_with_a_default_needs_no_upcaster() -> None:
    """An old event without the field gets its default; a field that newer code added is passed over."""
    assert words(Opened).decode("Opened", 1, b'{"amount":5,"colour":"red"}') == Opened(5, "EUR")


@message(name="Opened", version=2)
@dataclass(frozen=True)
class Marked:
    amount: int
    holder: str


@message(name="Opened", version=4)
@dataclass(frozen=True)
class Renamed:
    cents: int
    holder: str
    tags: tuple[str, ...] = ()


CHAIN: dict[tuple[str, int], Upcaster] = {
    ("Opened", 1): lambda old: {**old, "holder": "unknown"},
    ("Opened", 2): lambda old: {"euros": old["amount"], "holder": old["holder"]},
    ("Opened", 3): lambda old: {"cents": int(str(old["euros"])) * 100, "holder": old["holder"], "tags": ["old"]},
}


@pytest.mark.row("D-117")
@pytest.mark.parametrize(
    ("version", "data", "expected"),
    [
        (1, b'{"amount":5}', Renamed(500, "unknown", ("old",))),
        (2, b'{"amount":5,"holder":"ada"}', Renamed(500, "ada", ("old",))),
        (3, b'{"euros":5,"holder":"ada"}', Renamed(500, "ada", ("old",))),
        (4, b'{"cents":5,"holder":"ada"}', Renamed(5, "ada")),
    ],
)
def test_upcasters_are_chained(version: int, data: bytes, expected: Renamed) -> None:
    """An old event passes through each upcaster from its version to the present one."""
    assert words(Renamed, upcasters=CHAIN).decode("Opened", version, data) == expected


@pytest.mark.row("D-117")
@pytest.mark.parametrize("kind", ["event", "command"])
def test_a_broken_chain_names_what_is_stored(kind: str) -> None:
    """However far the upcasters lead, the error names the version that lies in the database."""
    chain = {key: upcaster for key, upcaster in CHAIN.items() if key != ("Opened", 2)}
    broken = MessageTypeSet((Renamed,), kind=kind, decider="account", codec=JsonCodec(), upcasters=chain)
    with pytest.raises((UnknownEventError, PayloadError), match="'Opened' version 1"):
        broken.decode("Opened", 1, b'{"amount":5}')


@pytest.mark.row("D-117")
def test_an_upcaster_that_fails_is_a_bad_payload() -> None:
    """An exception in an upcaster comes out in the engine's own words, with the upcaster's name for the event."""
    with pytest.raises(PayloadError, match=r"upcaster of 'Opened' version 2 .*KeyError"):
        words(Renamed, upcasters=CHAIN).decode("Opened", 2, b"{}")


@pytest.mark.row("D-117")
def test_an_upcaster_must_give_what_the_class_needs() -> None:
    """What comes out of the chain is checked like anything else."""
    with pytest.raises(PayloadError, match=r"upcasters of 'Opened' .*not a Marked"):
        words(Marked, upcasters={("Opened", 1): lambda _: {"amount": 1}}).decode("Opened", 1, b"{}")


@dataclass
class Sized:
    size: float
    tags: Sequence[str] = ()
    counts: dict[str, int] = field(default_factory=dict)
    at: datetime | None = None
    price: Decimal = Decimal(0)
    inner: Opened | None = None


class OpenedWidely(Opened):
    """A subclass without fields of its own: the dataclass below it is what would come back."""


@pytest.mark.row("D-027")
@pytest.mark.parametrize("codec", [JsonCodec(), MessagePackCodec(), Rot13()], ids=lambda codec: codec.name)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (Sized("1"), "Sized.size must be float, got str"),  # type: ignore[arg-type]
        (Sized(1.0, at="2026-03-31T12:00:00Z"), "at is a str and would come back as a datetime"),  # type: ignore[arg-type]
        (Sized(1.0, price=1), "price is an int and would come back as a Decimal|never read: .*price"),  # type: ignore[arg-type]
        (Sized(1.0, inner=OpenedWidely(1)), "inner is an OpenedWidely and would come back as an Opened"),
        (Sized(2**53 + 1), "size is 9007199254740993 and would come back as"),
    ],
)
def test_what_would_not_come_back_is_refused(codec: Codec, wrong: Sized, said: str) -> None:
    """A field of the wrong type is refused before anything is written, with the class and the field."""
    with pytest.raises(PayloadError, match=f"^(event Sized of 'account' .*)?({said})"):
        words(Sized, codec=codec).encode(wrong)


def test_an_instant_never_changes() -> None:
    """JSON has no words for an offset with seconds, so such a time is refused; MessagePack keeps the instant; UTC always works."""
    old = datetime(1937, 1, 1, 12, tzinfo=timezone(timedelta(minutes=19, seconds=32)))
    with pytest.raises(PayloadError, match=r"at is datetime\.datetime\(1937.* and would come back as"):
        words(Sized).encode(Sized(1.0, at=old))
    for codec, at in ((MessagePackCodec(), old), (JsonCodec(), old.astimezone(UTC))):
        _, kept = words(Sized, codec=codec).keep(Sized(1.0, at=at))
        assert isinstance(kept, Sized)
        assert kept.at == old


def test_keys_of_another_type_are_refused() -> None:
    """JSON makes text of every key, which only a field that declares other keys undoes."""
    with pytest.raises(PayloadError, match="a key of counts is an int and would come back as a str"):
        words(Sized).encode(Sized(1.0, counts={1: 2}))  # type: ignore[dict-item]


@pytest.mark.parametrize("codec", [JsonCodec(), MessagePackCodec(), Rot13()], ids=lambda codec: codec.name)
def test_what_comes_back_is_what_is_kept(codec: Codec) -> None:
    """The kept value is of the declared types and shares nothing with the one that was given."""
    counts = defaultdict(int, a=1)
    moment = datetime(2025, 11, 2, 1, 30, tzinfo=ZoneInfo("America/New_York"))
    encoded, kept = words(Sized, codec=codec).keep(Sized(3, ("a",), counts, moment, Decimal("1.10"), Opened(5)))
    assert isinstance(kept, Sized)
    assert (type(kept.size), kept.tags, type(kept.counts)) == (float, ["a"], dict)
    assert kept.at == moment.astimezone(UTC)
    assert words(Sized, codec=codec).decode(encoded.type, encoded.version, encoded.data) == kept
    counts["a"] = 7
    assert kept.counts == {"a": 1}
    assert words(Sized, codec=codec).own(kept) is not kept


@dataclass(eq=False)
class Silent:
    amount: int


def test_classes_that_cannot_be_compared_are_kept_too() -> None:
    """A class without an equality of its own is compared by its fields."""
    _, kept = words(Silent).keep(Silent(5))
    assert isinstance(kept, Silent)
    assert kept.amount == 5


class Doubling(msgspec.Struct):
    amount: int

    def __post_init__(self) -> None:
        self.amount *= 2


def test_a_class_that_changes_when_it_is_read_is_refused() -> None:
    """What a class does to its fields when it is made, it does again when it is read."""
    with pytest.raises(PayloadError, match="amount is 10 and would come back as 20"):
        words(Doubling).encode(Doubling(5))


def test_a_plain_vocabulary_proves_nothing() -> None:
    """A decider that promises that its values come back pays for no proof and gets no copies."""
    vocabulary = PlainMessageTypeSet([Opened], kind="event", decider="machine", codec=JsonCodec())
    given = Opened(5)
    assert vocabulary.keep(given)[1] is given
    assert vocabulary.own(given) is given


class Explosive(msgspec.Struct):
    amount: int

    def __post_init__(self) -> None:
        if self.amount > 5:
            raise LookupError("too much")


def test_whatever_a_class_raises_is_a_bad_payload() -> None:
    """An error of any kind in a class of the user's own is told in the engine's words."""
    with pytest.raises(PayloadError, match="too much"):
        words(Explosive).decode("Explosive", 1, b'{"amount":6}')
    with pytest.raises(PayloadError, match="too much"):
        words(Explosive).from_plain("Explosive", {"amount": 6})


class Counted(msgspec.Struct, frozen=True):
    by_number: dict[int, str]


@pytest.mark.parametrize("codec", [JsonCodec(), MessagePackCodec()], ids=lambda codec: codec.name)
def test_upcasters_may_pass_on_everything_that_is_stored(codec: Codec) -> None:
    """Keys, dates and bytes that the codec wrote come through an upcaster that does not touch them."""
    old = words(Counted, codec=codec).encode(Counted({1: "a"}))

    @message(name="Counted", version=2)
    class CountedAgain(Counted, frozen=True):
        pass

    newer = words(CountedAgain, codec=codec, upcasters={("Counted", 1): dict})
    assert newer.decode(old.type, old.version, old.data) == CountedAgain({1: "a"})
    assert newer.from_plain("Counted", {"by_number": {"1": "a"}}) == CountedAgain({1: "a"})


Alias: TypeAlias = Opened | Closed


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (Opened, (Opened,)),
        (Opened | Closed, (Opened, Closed)),
        (Union[Opened, Closed], (Opened, Closed)),  # noqa: UP007 - the older spelling is what is tested
        (Alias, (Opened, Closed)),
        (Optional[Opened], (Opened,)),  # noqa: UP045 - see above
        (None, ()),
        (type(None), ()),
        (Never, ()),
        (typing.NoReturn, ()),
    ],
)
def test_members_of_a_type_parameter(declared: object, expected: tuple[type, ...]) -> None:
    """A class, a union in each of its spellings, or nothing at all."""
    assert members_of(declared) == expected


def test_a_type_statement_is_looked_through() -> None:
    """The aliases of Python 3.12 carry their value; they are understood without that Python."""

    class Lazy:
        __value__ = Opened | Closed

    assert members_of(Lazy()) == (Opened, Closed)


def test_names_must_be_unique_and_free() -> None:
    """Two classes under one name, or a name that belongs to the engine, are told before anything runs."""

    @message(name="$timer_cancelled")
    class Forged:
        pass

    found = diagnose_members([Opened, Marked, Forged], "event")
    assert [each.code for each in found] == ["duplicate_name", "reserved_name"]
    assert not diagnose_members([Opened, Closed], "event")


class Sparse(msgspec.Struct, omit_defaults=True):
    amount: int
    currency: str = "EUR"


class Bare(msgspec.Struct, omit_defaults=True):
    amount: int


@dataclass
class Nested:
    parts: list[Sparse]
    bare: Bare


def test_a_struct_that_leaves_its_defaults_out_is_no_word() -> None:
    """What such a Struct leaves out would be read as whatever default the code has by then."""
    codec = JsonCodec()
    (found,) = diagnose_members([Nested], "event", codec)
    assert (found.code, found.position) == ("omitted_defaults", "event")
    assert "Sparse" in found.message
    assert "omit_defaults" in found.message
    assert [each.code for each in diagnose_members([Sparse], "command", codec)] == ["omitted_defaults"]
    assert not diagnose_members([Bare, Opened], "event", codec)


def test_a_field_that_equality_does_not_see_is_compared_all_the_same() -> None:
    """What is in an untyped field is refused where it would come back as another value, also where the class leaves it out of `==`."""

    @dataclass(frozen=True)
    class Odd:
        name: str
        meta: Any = field(default=None, compare=False)

    words = MessageTypeSet((Odd,), kind="event", decider="d", codec=JsonCodec())
    with pytest.raises(PayloadError, match="another value"):
        words.keep(Odd("a", date(2030, 1, 1)))
    assert words.keep(Odd("a", [1, {"b": None}]))[1] == Odd("a")
