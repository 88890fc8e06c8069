"""The words of a decider: their stored names and versions, the size they may have, and how old ones are read."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Never, Optional, TypeAlias, Union

import pytest

from holdfast.errors import CommandError, PayloadError, UnknownEventError
from holdfast.kernel.vocabulary import Encoded, Vocabulary, diagnose_members, members_of, message, wire_name
from holdfast.kernel.wire import Codec, JsonCodec, MessagePackCodec, Upcaster


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
) -> Vocabulary:
    """The events of an account."""
    return Vocabulary(
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
    with pytest.raises(PayloadError, match=r"Opened: .*\$\.amount"):
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
def test_a_broken_chain_names_the_missing_link() -> None:
    """Where an upcaster is missing, the error names the version for which there is none."""
    chain = {key: upcaster for key, upcaster in CHAIN.items() if key != ("Opened", 2)}
    with pytest.raises(UnknownEventError, match="'Opened' version 2"):
        words(Renamed, upcasters=chain).decode("Opened", 1, b'{"amount":5}')


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
