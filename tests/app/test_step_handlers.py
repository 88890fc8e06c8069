"""What handlers of steps are given, and what becomes of what they answer."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import functools
import math
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Generic, NewType, TypedDict, TypeVar

import msgspec
import pydantic
import pytest

from standfast import (
    ConfigurationError,
    MessagePackCodec,
    PayloadError,
    Saga,
    StepContext,
    WorkflowFailedError,
    handler,
)
from standfast.calls.handlers.step_handlers import plain
from standfast.testing import ManualEngine


@dataclasses.dataclass
class Order:
    """A dataclass as the whole data."""

    sku: str
    price: decimal.Decimal
    due: dt.date | None = None


class Parcel(msgspec.Struct):
    """A Struct as the whole data."""

    sku: str
    weight: float = 1.5


class Model(pydantic.BaseModel):
    """A pydantic model as the whole data."""

    sku: str
    price: decimal.Decimal


class Dictionary(TypedDict):
    """A typed dict as the whole data."""

    sku: str


DATA = {"sku": "lamp", "price": decimal.Decimal("12.50"), "due": dt.date(2030, 1, 2), "extra": [1, 2]}


def seen_by(function: object) -> list[object]:
    """Run one step with this handler, which notes what it sees in the list that is returned."""
    engine = ManualEngine().handle("look", function)
    engine.register(Saga("one").step("look", "look", attempts=1).build())
    instance = engine.start("one", DATA).id
    engine.drain()
    try:
        return [engine.run(instance).result(0)]
    except WorkflowFailedError as error:
        return [error]


@pytest.mark.row("F-246")
def test_a_handler_may_ask_for_the_whole_data_in_its_own_type() -> None:
    """A parameter named data or input gets the data as a whole, read into its type, whatever else it asks for."""
    seen: list[object] = []

    def plain_dict(data: dict[str, object]) -> None:
        seen.append(data)

    def untyped(input) -> None:  # type: ignore[no-untyped-def] # noqa: A002, ANN001 - as users write it
        seen.append(input)

    def mapping(data: Mapping[str, object]) -> None:
        seen.append(dict(data))

    def as_dataclass(data: Order) -> None:
        seen.append(data)

    def as_struct(input: Parcel) -> None:  # noqa: A002 - as users write it
        seen.append(input)

    def as_model(data: Model) -> None:
        seen.append(data)

    def as_typed_dict(data: Dictionary, ctx: StepContext, sku: str) -> None:
        seen.append((data["sku"], ctx.step, sku))

    stored = {"sku": "lamp", "price": "12.50", "due": "2030-01-02", "extra": [1, 2]}
    for function in (plain_dict, untyped, mapping, as_dataclass, as_struct, as_model, as_typed_dict):
        seen_by(function)
    assert seen == [
        stored,
        stored,
        stored,
        Order("lamp", decimal.Decimal("12.50"), dt.date(2030, 1, 2)),
        Parcel("lamp"),
        Model(sku="lamp", price=decimal.Decimal("12.50")),
        ("lamp", "look", "lamp"),
    ]


def test_a_handler_may_ask_for_single_values_by_name() -> None:
    """Any other parameter gets the value of its name; a default stands in for what is missing."""
    seen: list[object] = []

    def several(sku: str, price: decimal.Decimal, colour: str = "white") -> None:
        seen.append((sku, price, colour))

    def single(due: dt.date) -> None:
        seen.append(due)

    def untyped(extra) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001 - as users write it
        seen.append(extra)

    def nothing() -> None:
        seen.append("called")

    for function in (several, single, untyped, nothing):
        seen_by(function)
    assert seen == [("lamp", decimal.Decimal("12.50"), "white"), dt.date(2030, 1, 2), [1, 2], "called"]


def test_a_value_with_names_of_its_own_is_taken_by_its_name() -> None:
    """An item of a list, or anything else with fields, is read into the type of the parameter that has its name."""
    seen: list[object] = []

    def pick(parcel: Parcel) -> str:
        seen.append(parcel)
        return parcel.sku

    engine = ManualEngine().handle("pick", pick)
    saga = Saga("each").for_each("parcels", "lines", lambda way: way.step("pick", "pick"), item="parcel").build()
    instance = engine.register(saga).start("each", {"lines": [{"sku": "a"}, {"sku": "b", "weight": 2}]}).id
    engine.drain()
    assert seen == [Parcel("a"), Parcel("b", 2)]
    result = engine.run(instance).result()
    assert isinstance(result, dict)
    assert result["parcels"] == ["a", "b"]


def test_what_a_parameter_means_does_not_depend_on_the_data() -> None:
    """The signature alone decides: a step that answers with `data`, or with the name of a parameter, changes nothing."""
    seen: list[object] = []

    def whole(data) -> object:  # type: ignore[no-untyped-def] # noqa: ANN001 - as users write it
        seen.append(sorted(data))
        return {"data": "surprise", "sku": "other"}

    def single(data: str, sku: str) -> None:
        seen.append((data, sku))

    saga = Saga("s").step("a", whole).step("b", whole).step("c", single).build()
    engine = ManualEngine().register(saga)
    engine.start("s", {"sku": "lamp"})
    engine.drain()
    assert seen == [["sku"], ["data", "sku"], ("surprise", "other")]


def test_a_name_that_is_missing_hints_at_the_whole() -> None:
    """Whoever wanted the data as a whole learns how to ask for it."""

    def wants(order: Order) -> None:
        raise AssertionError(order)

    (error,) = seen_by(wants)
    assert "the handler 'look' needs 'order', which is not in the data of 'look'" in str(error)
    assert "named `data`" in str(error)


def test_a_value_that_is_missing_or_of_another_type_fails_the_step_at_once() -> None:
    """What cannot be given to a handler is not tried again; the error says which value and which handler."""

    def wants_more(sku: str, weight: float) -> None:
        raise AssertionError((sku, weight))

    def wants_number(sku: int) -> None:
        raise AssertionError(sku)

    missing, wrong = seen_by(wants_more)[0], seen_by(wants_number)[0]
    assert "the handler 'look' needs 'weight', which is not in the data of 'look'" in str(missing)
    assert "the handler 'look' cannot take 'sku'" in str(wrong)


@pytest.mark.row("F-246", "F-036")
@pytest.mark.row("G-02")
def test_the_context_tells_about_the_call() -> None:
    """A parameter named ctx or context, or annotated as StepContext, gets the context."""
    seen: list[object] = []

    @handler("by-annotation")
    def by_annotation(whatever: StepContext, sku: str) -> dict[str, int]:
        seen.append((whatever.step, whatever.workflow, whatever.attempt, whatever.metadata, sku))
        return {"first": 1}

    def by_name(ctx, context) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001 - as users write it
        seen.append((ctx.previous, context.input["first"], ctx.is_compensation, ctx.tenant, ctx.cancelled))

    saga = Saga("two").step("a", by_annotation, metadata={"colour": "red"}).step("b", by_name).build()
    engine = ManualEngine().register(saga)
    engine.start("two", DATA)
    engine.drain()
    assert seen == [("a", "two", 1, {"colour": "red"}, "lamp"), ({"first": 1}, 1, False, "default", False)]


def test_the_idempotency_key_is_that_of_the_step() -> None:
    """All calls of one step have the same key; its compensation and other steps have others."""
    keys: list[str] = []

    def failing(ctx: StepContext) -> None:
        keys.append(ctx.idempotency_key)
        raise ValueError("no")

    def undo(ctx: StepContext) -> None:
        keys.append(ctx.idempotency_key)

    saga = Saga("keys").step("a", failing, attempts=2).on_failure("undo", undo).build()
    engine = ManualEngine().register(saga)
    instance = engine.start("keys").id
    engine.drain()
    assert keys[0] == keys[1] == f"{instance}:1"
    assert len(set(keys)) == 2


def test_objects_and_coroutines_are_handlers_too() -> None:
    """An object with `execute`, an object that can be called, and a coroutine function are called alike."""

    class Executor:
        """F: a named object with an execute operation."""

        name = "look"

        def execute(self, ctx: StepContext, data: dict[str, object]) -> object:
            return {"by": f"execute {ctx.step} {data['sku']}"}

    class Called:
        """Can be called."""

        async def __call__(self, sku: str) -> object:
            return {"by": f"call {sku}"}

    async def coroutine(sku: str) -> object:
        return {"by": f"coroutine {sku}"}

    for function, by in ((Executor(), "execute look lamp"), (Called(), "call lamp"), (coroutine, "coroutine lamp")):
        result = seen_by(function)[0]
        assert isinstance(result, dict)
        assert result["by"] == by


def test_answers_become_plain_data() -> None:
    """Whatever a handler answers is stored as JSON says it: what it reads back is the same, on every later reading."""
    moment = dt.datetime(2030, 1, 2, 3, 4, tzinfo=dt.UTC)
    value = {
        "amount": decimal.Decimal("1.10"),
        "at": moment,
        "id": uuid.UUID(int=7),
        "raw": b"ab",
        "pair": (1, 2),
        "order": Order("lamp", decimal.Decimal(1)),
        "huge": 10**30,
    }
    made = plain(value)
    assert made == {
        "amount": "1.10",
        "at": "2030-01-02T03:04:00Z",
        "id": "00000000-0000-0000-0000-000000000007",
        "raw": "YWI=",
        "pair": [1, 2],
        "order": {"sku": "lamp", "price": "1", "due": None},
        "huge": 10**30,
    }
    assert plain(made) == made


@pytest.mark.parametrize("value", [math.nan, {"x": math.inf}, object(), {"x": object()}])
def test_what_cannot_be_stored_is_refused(value: object) -> None:
    """A value that JSON cannot say is an error, not another value."""
    with pytest.raises(PayloadError):
        plain(value)


def test_an_answer_that_cannot_be_stored_is_a_failure_of_the_step() -> None:
    """The step fails with an error that says what to do; nothing hangs."""

    def strange() -> object:
        return {"x": object()}

    assert "cannot be stored" in str(seen_by(strange)[0])


class Checked(msgspec.Struct, omit_defaults=True, tag="checked"):
    """Says nothing of what is at its default, if it is left to itself."""

    ok: bool = False
    parcels: list[Parcel] = []


class Numbered(msgspec.Struct, array_like=True):
    """Says its fields by their place."""

    number: int
    checked: Checked


@dataclasses.dataclass
class Lot:
    """A dataclass with plain defaults, which a reader does not set."""

    checked: Checked | None = None
    size: int = 1


WHOLE = {"type": "checked", "ok": False, "parcels": []}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Checked(), WHOLE),
        ({"a": [Checked(parcels=[Parcel("x")])]}, {"a": [{**WHOLE, "parcels": [{"sku": "x", "weight": 1.5}]}]}),
        (Lot(Checked()), {"checked": WHOLE, "size": 1}),
        ({"lot": msgspec.convert({}, Lot)}, {"lot": {"checked": None, "size": 1}}),
        (Numbered(1, Checked()), [1, WHOLE]),
        ((Parcel("x"), {"at": dt.date(2030, 1, 2)}), [{"sku": "x", "weight": 1.5}, {"at": "2030-01-02"}]),
    ],
    ids=["struct", "within", "dataclass", "read", "array", "nothing left out"],
)
def test_answers_say_all_their_fields(value: object, told: object) -> None:
    """An answer is laid over the data, where what it does not say would stay as it was; so it says also what is at its default."""
    assert plain(value) == told


def test_a_default_that_is_answered_replaces_what_was_there() -> None:
    """The steps behind see what the handler answered, not what it would have left out."""

    def check() -> Checked:
        return Checked(ok=False)

    engine = ManualEngine().register(Saga("one").step("check", check).build())
    instance = engine.start("one", {"ok": True}).id
    engine.drain()
    assert engine.run(instance).result() == WHOLE


@pytest.mark.parametrize(
    "value", [{1: "a", "1": "b"}, {"m": [{1: "a", 2: "c", "1": "b"}]}, [{1.0: 1, "1.0": 2}]], ids=str
)
def test_keys_that_would_be_one_are_refused(value: object) -> None:
    """Neither of two entries is lost in silence."""
    with pytest.raises(PayloadError, match="two keys of a dict would both be stored as '1"):
        plain(value)
    assert plain({1: "a", "2": "b"}) == {"1": "a", "2": "b"}


def test_a_piece_of_json_that_is_none_is_refused() -> None:
    """What a caller says is JSON is read before it is kept."""
    with pytest.raises(PayloadError, match="cannot be stored"):
        plain({"x": msgspec.Raw(b"{bad")})


def _priced(price: decimal.Decimal, currency: str = "EUR") -> object:
    return {"double": price * 2, "currency": currency}


class _Undecorated:
    """Its parameters are told by a method."""

    def __call__(self, price: decimal.Decimal) -> Receipt:  # type: ignore[name-defined] # noqa: F821 - not there when it runs
        return {"double": price * 2}


def test_every_parameter_is_read_as_its_own_annotation_says() -> None:
    """Neither a return type that nobody finds, nor a partial or decorated function, nor a class nearby takes a parameter its type."""

    def priced(price: decimal.Decimal) -> Receipt:  # type: ignore[name-defined] # noqa: F821 - not there when it runs
        return {"double": price * 2}

    @functools.wraps(priced)
    def decorated(*arguments: object, **named: object) -> object:
        return priced(*arguments, **named)  # type: ignore[arg-type]

    for function in (
        priced,
        decorated,
        _Undecorated(),
        functools.partial(_priced, currency="USD"),
        functools.partial(functools.partial(_priced), currency="USD"),
    ):
        result = seen_by(function)[0]
        assert isinstance(result, dict), result
        assert result["double"] == "25.00"


T = TypeVar("T")


class Box(msgspec.Struct, Generic[T]):
    """Of any type."""

    sku: T


Whole = NewType("Whole", dict)  # type: ignore[type-arg]


def test_the_whole_data_is_given_under_every_name_of_its_type() -> None:
    """Anything, something or nothing, a generic class, another name for a dict: a parameter named data gets the data."""
    seen: list[object] = []

    def anything(data: Any) -> None:
        seen.append(data["sku"])

    def perhaps(data: dict[str, object] | None = None) -> None:
        seen.append(data and data["sku"])

    def perhaps_typed(data: Parcel | None = None) -> None:
        seen.append(data and data.sku)

    def generic(data: Box[str]) -> None:
        seen.append(data.sku)

    def renamed(data: Whole) -> None:
        seen.append(data["sku"])

    for function in (anything, perhaps, perhaps_typed, generic, renamed):
        seen_by(function)
    assert seen == ["lamp"] * 5


def test_named_arguments_without_a_name_get_the_rest() -> None:
    """What no other parameter asks for is in `**rest`, read as its type says; so is all of it if there is none."""
    seen: list[object] = []

    def all_of_it(**data: object) -> None:
        seen.append(sorted(data))

    def others(ctx: StepContext, sku: str, extra: object, due: object, **prices: decimal.Decimal) -> None:
        seen.append((ctx.step, sku, extra, due, prices))

    for function in (all_of_it, others):
        seen_by(function)
    assert seen == [
        ["due", "extra", "price", "sku"],
        ("look", "lamp", [1, 2], "2030-01-02", {"price": decimal.Decimal("12.50")}),
    ]


def test_a_context_that_may_be_missing_is_given_all_the_same() -> None:
    """`StepContext | None`, and `Any` under its name, ask for the context."""
    seen: list[object] = []

    def perhaps(call: StepContext | None = None) -> None:
        seen.append(call and call.step)

    def anything(ctx: Any) -> None:
        seen.append(ctx.step)

    for function in (perhaps, anything):
        seen_by(function)
    assert seen == ["look", "look"]


@pytest.mark.parametrize("declared", [Callable[[], int], collections.ChainMap, Order | Parcel | Model], ids=str)
def test_a_type_that_can_never_be_read_is_told_when_the_handler_is_registered(declared: object) -> None:
    """The step would fail on every call; its author hears of it before anything runs."""

    def wrong(sku: object) -> None:
        raise AssertionError(sku)

    wrong.__annotations__["sku"] = declared
    with pytest.raises(ConfigurationError, match=r"'sku' of the handler .* can never be given"):
        ManualEngine().register(Saga("one").step("a", wrong).build())


def test_types_of_the_function_around_are_found() -> None:
    """A type that a handler sees because it is inside of another function is its type all the same."""

    class Line(msgspec.Struct):
        sku: str

    seen: list[object] = []

    def look(data: Line) -> None:
        assert isinstance(data, Line)
        seen.append(data.sku)

    seen_by(look)
    assert seen == ["lamp"]


def test_a_type_that_cannot_be_found_is_told_when_the_handler_is_registered() -> None:
    """A parameter whose type is nowhere would be given whatever is there; its author hears of it before anything runs."""

    def wrong(price: Receipt, ctx: StepContext, sku: str) -> None:  # type: ignore[name-defined] # noqa: F821
        raise AssertionError((price, ctx, sku))

    with pytest.raises(ConfigurationError, match=r"'price' of the handler 'h' cannot be found.*Receipt"):
        ManualEngine().handle("h", wrong)
    with pytest.raises(ConfigurationError, match="'price' of the handler"):
        ManualEngine().register(Saga("one").step("a", wrong).build())


@pytest.mark.parametrize("answer", [2**70, {"a": [-(2**70)]}], ids=str)
def test_an_answer_that_the_codec_cannot_write_is_not_asked_for_again(answer: object) -> None:
    """Another call would give the same answer: the step fails at once, and the error names the step and what was answered."""
    calls: list[str] = []

    def count() -> object:
        calls.append("count")
        return answer

    saga = Saga("one").step("a", lambda: 1).on_failure("ua", lambda: calls.append("ua")).step("b", count, attempts=3)
    engine = ManualEngine(codec=MessagePackCodec()).register(saga.build())
    instance = engine.start("one").id
    engine.drain()
    assert calls == ["count", "ua"]
    error = engine.run(instance).steps()[1].error
    assert "in 'b' cannot be kept" in error
    assert "the answer was" in error


def test_what_is_no_handler_is_refused_when_it_is_registered() -> None:
    """Mistakes are told at once, with the name of the handler."""

    def positional(data: object, /) -> None:
        raise AssertionError(data)

    engine = ManualEngine()
    for wrong in (7, positional):
        with pytest.raises(ConfigurationError, match="'h'"):
            engine.handle("h", wrong)


def test_one_name_stands_for_one_handler() -> None:
    """The same function may be registered again, another one under its name may not."""

    def one() -> None:
        """Does nothing."""

    def other() -> None:
        """Does nothing either."""

    engine = ManualEngine().handle("h", one).handle("h", one)
    with pytest.raises(ConfigurationError, match=r"already another handler 'h'; .*@handler\('…'\)"):
        engine.handle("h", other)


@pytest.mark.row("G-04")
def test_lambdas_of_two_versions_stand_side_by_side() -> None:
    """An instance calls the function of the version that it is pinned to."""
    engine = ManualEngine()
    for version, saga in {1: Saga("s", 1).step("a", lambda: "one"), 2: Saga("s", 2).step("a", lambda: "two")}.items():
        engine.register(saga.build())
        instance = engine.start("s", version=version).id
        engine.drain()
        assert engine.run(instance).result() == {"a": {1: "one", 2: "two"}[version]}


def test_the_input_of_a_start_must_have_names() -> None:
    """A list or a number cannot be the data of a workflow; nothing is written."""
    engine = ManualEngine()
    engine.register(Saga("one").step("a", "h").build())
    for wrong in ([1], 7, "text"):
        with pytest.raises(PayloadError, match="must be an object with names"):
            engine.start("one", wrong)
    assert engine.runs.list().items == []
