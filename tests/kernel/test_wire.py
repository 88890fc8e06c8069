"""Values become bytes and come back as what they were; what cannot come back is refused on the way in."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Annotated, Any, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from standfast.errors import PayloadError
from standfast.kernel.codec.codecs import Codec, JsonCodec, MessagePackCodec, convert
from support.untimed import untimed

CODECS = [JsonCodec(), MessagePackCodec()]
codecs = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)


class Colour(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


ORIGIN = Point(0, 0)


class Note(TypedDict):
    text: str


class Line(msgspec.Struct, frozen=True):
    price: Decimal
    tags: tuple[str, ...] = ()


class Customer(pydantic.BaseModel):
    name: str
    since: date
    credit: Decimal = Decimal(0)


@dataclass(frozen=True)
class Everything:
    """One field of each kind that must come back as what it was."""

    amount: Decimal
    at: datetime
    day: date
    clock: time
    wait: timedelta
    identity: UUID
    blob: bytes
    number: int
    share: float
    text: str
    flag: bool
    line: Line
    customer: Customer
    lines: list[Line] = field(default_factory=list)
    by_name: dict[str, Customer] = field(default_factory=dict)
    numbers: set[int] = field(default_factory=set)
    point: Point = ORIGIN
    note: Note | None = None
    colour: Colour = Colour.RED


YEARS = datetime(2, 1, 1), datetime(9998, 1, 1)  # noqa: DTZ001 - hypothesis adds the zone
offsets: st.SearchStrategy[tzinfo | None] = st.integers(-1439, 1439).map(
    lambda minutes: timezone(timedelta(minutes=minutes))
)
lines = st.builds(Line, price=st.decimals(), tags=st.lists(st.text()).map(tuple)).filter(
    lambda line: line.price.is_finite()
)
customers = st.builds(
    Customer, name=st.text(), since=st.dates(), credit=st.decimals(allow_nan=False, allow_infinity=False, places=2)
)
everything = st.builds(
    Everything,
    amount=st.decimals(allow_nan=False),
    at=st.datetimes(*YEARS, timezones=st.one_of(st.none(), offsets)),
    day=st.dates(),
    clock=st.times(),
    wait=st.timedeltas(),
    identity=st.uuids(),
    blob=st.binary(),
    number=st.integers(-(2**63), 2**64 - 1),
    share=st.floats(allow_nan=False, allow_infinity=False),
    text=st.text(),
    flag=st.booleans(),
    line=lines,
    customer=customers,
    lines=st.lists(lines, max_size=3),
    by_name=st.dictionaries(st.text(), customers, max_size=3),
    numbers=st.sets(st.integers(-(2**63), 2**63 - 1)),
    note=st.none() | st.builds(Note, text=st.text()),
)


@pytest.mark.row("D-001", "D-116")
@codecs
@untimed
@given(value=everything)
@pytest.mark.row("G-34")
def test_typed_values_come_back(codec: Codec, value: Everything) -> None:
    """Dataclasses, Structs and pydantic models, with all that is in them, are equal after the way through bytes."""
    assert codec.decode(codec.encode(value), Everything) == value


@codecs
@pytest.mark.parametrize("value", [Line(Decimal("1.10"), ("a",)), Customer(name="Ada", since=date(2026, 3, 31))])
def test_structs_and_models_come_back_by_themselves(codec: Codec, value: object) -> None:
    """A Struct or a model needs no dataclass around it."""
    assert codec.decode(codec.encode(value), type(value)) == value


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, extra="forbid")

    at: datetime
    amount: Decimal
    identity: UUID

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def shown(self) -> str:
        """Not a field, though it is printed with them."""
        return f"{self.amount}"


class Aliased(pydantic.BaseModel):
    amount: Annotated[int, pydantic.Field(alias="amountMinor")]


class Base64(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    blob: bytes


MODELS = [
    Strict(at=datetime(2026, 3, 31, tzinfo=UTC), amount=Decimal("1.10"), identity=UUID(int=7)),
    Aliased.model_validate({"amountMinor": 110}),
    Base64(blob=b"\x00\xff"),
]


@codecs
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_models_come_back_under_their_own_rules(codec: Codec, model: pydantic.BaseModel) -> None:
    """Whatever a pydantic model asks of its input, it accepts what was stored of it."""
    assert codec.decode(codec.encode(model), type(model)) == model


@dataclass(frozen=True)
class Free:
    """A field that takes anything."""

    value: Any


@codecs
@pytest.mark.parametrize("value", ["\x00", "\U0010ffff", -0.0, 2**64 - 1, -(2**63), "", [], {}, None, 5e-324])
def test_odd_values_come_back(codec: Codec, value: object) -> None:
    """Values that other systems trip over come back untouched, down to the sign of zero."""
    assert repr(codec.decode(codec.encode(Free(value)), Free)) == repr(Free(value))


@codecs
@pytest.mark.parametrize("value", ["\ud800", ["a\udfff"], {"\ud800": 1}, object(), 1j, lambda: None])
def test_values_without_bytes_are_refused(codec: Codec, value: object) -> None:
    """Lone surrogates and foreign objects are refused with a sentence that names the culprit's class."""
    with pytest.raises(PayloadError, match=r"^Free cannot be stored: "):
        codec.encode(Free(value))


@pytest.mark.parametrize("hidden", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("wrap", [list, tuple, lambda x: {1: x[0]}, lambda x: [{"a": (None, *x)}], set, frozenset])
@pytest.mark.row("G-34")
def test_json_refuses_what_it_cannot_say(hidden: float, wrap: Any) -> None:
    """NaN and infinity never turn into null silently, wherever they hide."""
    with pytest.raises(PayloadError, match="JSON cannot say"):
        JsonCodec().encode(Free(wrap([hidden])))


def test_json_refuses_them_inside_models() -> None:
    """A float in a pydantic model is looked at as well."""

    class Measured(pydantic.BaseModel):
        share: float

    with pytest.raises(PayloadError, match="JSON cannot say"):
        JsonCodec().encode(Measured(share=math.nan))


def test_message_pack_can_say_more() -> None:
    """MessagePack has words for NaN and infinity, so they come back."""
    codec = MessagePackCodec()
    read = codec.decode(codec.encode(Free([math.inf, math.nan])), Free).value
    assert read[0] == math.inf
    assert math.isnan(read[1])


def nested(depth: int, leaf: object) -> object:
    """A list in a list in a list."""
    value = leaf
    for _ in range(depth):
        value = [value]
    return value


@codecs
@pytest.mark.parametrize("leaf", [None, 1])
def test_depth_is_accepted_and_readable_or_refused(codec: Codec, leaf: object) -> None:
    """At any depth a value either comes back or is a bad payload; the interpreter's limit is never seen."""
    for depth in (1, 100, *range(900, 1010), 100_000):
        try:
            data = codec.encode(Free(nested(depth, leaf)))
        except PayloadError:
            continue
        assert codec.decode(data, Free) is not None


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"price": []}', b"\xff", b'{"price":"1"', b"nonsense", b"[" * 10**5]
)
@codecs
def test_foreign_bytes_are_refused(codec: Codec, data: bytes) -> None:
    """Bytes that are not of the type are refused with its name."""
    with pytest.raises(PayloadError, match=r"^stored bytes are not a Line: "):
        codec.decode(data, Line)


def test_numbers_out_of_range_are_refused() -> None:
    """A number beyond a float is refused instead of becoming infinity."""
    with pytest.raises(PayloadError, match="out of range"):
        JsonCodec().decode(b'{"value": 1e400}', Free)


@pytest.mark.parametrize("number", [10**30, -(10**30)])
def test_large_integers_come_back_or_are_refused(number: int) -> None:
    """An integer of any size is exact in JSON; MessagePack has 64 bits and says so."""
    codec = JsonCodec()
    assert codec.decode(codec.encode(Free(number)), Free).value == number
    with pytest.raises(PayloadError, match="ints"):
        MessagePackCodec().encode(Free(number))


@pytest.mark.row("D-017", "D-027")
def test_plain_data_becomes_typed() -> None:
    """Data of a caller without the classes is checked and converted like stored data."""
    assert convert({"price": "1.10", "tags": ["a"]}, Line) == Line(Decimal("1.10"), ("a",))
    assert convert({"name": "Ada", "since": "2026-03-31"}, Customer) == Customer(name="Ada", since=date(2026, 3, 31))


@pytest.mark.row("D-027")
@pytest.mark.parametrize(("value", "target"), [({}, Line), ({"price": "x"}, Line), ({"name": 1}, Customer)])
def test_plain_data_that_does_not_fit_is_refused(value: dict[str, object], target: type) -> None:
    """A wrong or missing field is a bad payload that names the class."""
    with pytest.raises(PayloadError, match=f"^(this is not a )?{target.__name__}(: |.price is missing$)"):
        convert(value, target)


@dataclass(frozen=True)
class Nullable:
    nulls: int | None = None
    lines: list[Line] = field(default_factory=list)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"nulls": "x"}, "Nullable.nulls must be int | None, got str"),
        ({"lines": None}, "Nullable.lines must be array, got None"),
        ({"lines": [{}]}, "Nullable.lines[0].price is missing"),
        ({"lines": [{"price": "1", "tags": [7]}]}, "Nullable.lines[0].tags[0] must be str, got int"),
    ],
)
def test_what_does_not_fit_is_told_in_one_short_sentence(value: dict[str, object], said: str) -> None:
    """The class, the way to the field, what it must be and what came; the same for callers with and without the classes."""
    with pytest.raises(PayloadError) as caught:
        convert(value, Nullable)
    assert str(caught.value) == said
    for codec in (JsonCodec(), MessagePackCodec()):
        with pytest.raises(PayloadError) as read:
            codec.decode(codec.encode(value), Nullable)
        assert str(read.value) == f"stored bytes are not a Nullable: {said}"
    with pytest.raises(PayloadError, match=r"^stored bytes are not an int: Expected `int`, got `str`$"):
        JsonCodec().decode(b'"x"', int)


@pytest.mark.row("D-086")
@codecs
def test_unknown_fields_are_tolerated(codec: Codec) -> None:
    """What newer code has added does not stop older code from reading."""

    class Newer(msgspec.Struct):
        price: Decimal
        colour: str

    assert codec.decode(codec.encode(Newer(Decimal(1), "red")), Line) == Line(Decimal(1))
