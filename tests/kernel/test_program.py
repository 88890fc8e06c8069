"""A decider made ready to run: answers are checked, states are folded, and whatever goes wrong has a name."""

from __future__ import annotations

import functools
import operator
import sys
import types
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, Never, Optional, TypeVar

import msgspec
import pytest

from kernel.orders import (
    NOON,
    ORDER,
    Cancel,
    Cancelled,
    Charge,
    Order,
    Orders,
    Paid,
    Pay,
    Place,
    Placed,
    moment,
    orders,
    stored,
)
from standfast.errors import CommandError, DefinitionError, PayloadError, ReplayError, UnknownEventError
from standfast.kernel.codec.codecs import Codec, JsonCodec, MessagePackCodec
from standfast.kernel.codec.message_types import allows_none, message
from standfast.kernel.decider import RUNNING, Decider, Status
from standfast.kernel.decision import Decision, Ignored, Rejection
from standfast.kernel.history import TIMER_CANCELLED
from standfast.kernel.moment import Moment
from standfast.kernel.program import Program

HISTORY = [
    stored(1, "Placed", b'{"total":"10.00"}'),
    stored(2, TIMER_CANCELLED, b'{"key":"reminder"}'),
    stored(3, "Paid", b'{"amount":"4.50"}'),
    stored(4, "Paid", b'{"amount":"0.50"}'),
]
FOLDED = Order(total=Decimal("10.00"), paid=Decimal("5.00"))


@pytest.mark.row("D-001", "D-006", "D-007")
def test_a_command_is_decided() -> None:
    """The answer carries what the decider said: events, effects and timers."""
    answer = orders().answer(Order(), Place("o-1", Decimal(10)), moment())
    assert isinstance(answer, Decision)
    assert answer.events == (Placed(Decimal(10)),)
    assert [effect.body for effect in answer.effects] == [Charge(Decimal(10))]
    assert [timer.key for timer in answer.timers] == ["reminder"]


@pytest.mark.row("D-002", "D-014")
def test_the_same_question_has_the_same_answer() -> None:
    """Asked again on the same state and moment, a decider answers the same, and neither state nor command change."""
    state, command = Order(total=Decimal(10)), Pay("o-1", Decimal(3))
    answers = [orders().answer(state, command, moment()) for _ in range(3)]
    assert answers[0] == answers[1] == answers[2] == Decision((Paid(Decimal(3)),))
    assert state == Order(total=Decimal(10))


def test_rejections_pass_through() -> None:
    """A refusal is an answer like any other."""
    answer = orders().answer(Order(), Pay("o-1", Decimal(0)), moment())
    assert answer == Rejection(code="no_money", message="an amount must be positive")


@pytest.mark.row("D-012")
@pytest.mark.row("C-29")
def test_an_ended_instance_is_asked_nothing() -> None:
    """Commands after the end are skipped silently: the decider is not even asked."""
    answer = orders().answer(Order(is_cancelled=True), Pay("o-1", Decimal(0)), moment())
    assert answer == Ignored(reason="the instance has ended")


def test_foreign_commands_are_refused() -> None:
    """A command of another workflow is told the words of this one."""
    with pytest.raises(CommandError, match="does not declare Placed as one of its commands; it has Place, Pay, Cancel"):
        orders().answer(Order(), Placed(Decimal(1)), moment())


class Broken(Orders):
    """An order that fails where it is told to, by the amount that is paid."""

    def decide(self, state: Any, command: Any, moment: Any) -> Any:
        """Fail, or answer with nonsense."""
        wrong: dict[int, Any] = {1: None, 2: (Paid(Decimal(1)),), 3: Paid(Decimal(1)), 4: True}
        if command.amount == 9:
            return 1 / 0
        return wrong[int(command.amount)]

    def evolve(self, state: Any, event: Any) -> Any:
        """Fail."""
        raise RuntimeError("evolve is broken")


@pytest.mark.row("D-029")
def test_a_decider_that_raises_is_a_command_error() -> None:
    """Whatever `decide` raises comes out with the decider, the command and the cause."""
    with pytest.raises(CommandError, match=r"'order' raised ZeroDivisionError.* on Pay") as caught:
        Program(Broken(), JsonCodec()).answer(Order(), Pay("o-1", Decimal(9)), moment())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.row("D-005")
@pytest.mark.parametrize(("amount", "kind"), [(1, "NoneType"), (2, "tuple"), (3, "Paid"), (4, "bool")])
def test_nonsense_is_not_an_answer(amount: int, kind: str) -> None:
    """None, a bare event or a list of events is not a decision, and nothing is guessed."""
    with pytest.raises(CommandError, match=f"answered Pay with {kind}; expected a Decision"):
        Program(Broken(), JsonCodec()).answer(Order(), Pay("o-1", Decimal(amount)), moment())


@pytest.mark.row("D-029")
def test_evolve_that_raises_has_a_name() -> None:
    """New events on which `evolve` fails refuse the command; stored ones stop the replay and are named."""
    broken = Program(Broken(), JsonCodec())
    with pytest.raises(CommandError, match="evolve is broken"):
        broken.apply(Order(), [Paid(Decimal(1))])
    with pytest.raises(ReplayError, match=rf"on event 1 \(Placed\) of instance {ORDER}"):
        broken.replay(Order(), HISTORY)


class Forgetful(Orders):
    """An order with no word for a payment in `evolve`."""

    def evolve(self, state: Order, event: Any) -> Any:
        """Say nothing of payments."""
        return None if isinstance(event, Paid) else super().evolve(state, event)


class Hopeful(Decider[list[int] | None, Pay, Paid, None]):
    """An order that may be nothing."""

    type = "hopeful"

    def initial(self) -> list[int] | None:
        """Begin with something."""
        return []

    def evolve(self, state: list[int] | None, event: Paid) -> list[int] | None:
        """Be nothing."""
        return None

    def decide(self, state: list[int] | None, command: Pay, moment: Any) -> Any:
        """Take money."""
        return Decision.event(Paid(command.amount))


class Empty(Orders):
    """An order that begins as nothing, whatever its type says."""

    def initial(self) -> Any:
        """Nothing."""
        return None

    def evolve(self, state: Any, event: Any) -> Any:
        """Still nothing."""
        return None


@pytest.mark.row("D-029")
def test_a_forgotten_return_in_evolve_is_told_with_its_event() -> None:
    """None is no state unless the type or the initial state says so: it is refused before it is stored, and in a replay."""
    program = Program(Forgetful(), JsonCodec())
    with pytest.raises(
        CommandError, match="'order' returned None from `evolve` on Paid; return the state in every case"
    ):
        program.apply(Order(), [Placed(Decimal(1)), Paid(Decimal(1))])
    with pytest.raises(ReplayError, match=rf"`evolve` on event 3 \(Paid\) of instance {ORDER}; return the state"):
        program.replay(Order(), HISTORY)
    for allowing in (Program(Hopeful(), JsonCodec()), Program(Empty(), JsonCodec())):
        assert allowing.apply(allowing.initial(), [Paid(Decimal(1))]) is None
        assert allowing.replay(allowing.initial(), HISTORY[2:]) is None


@pytest.mark.parametrize(
    ("declared", "may_be_none"),
    [
        (int, False),
        (list[int], False),
        (Order, False),
        (Order | Paid, False),
        (Annotated[int, "cents"], False),
        (Literal["open", "closed"], False),
        (None, True),
        (object, True),
        (Any, True),
        (Order | None, True),
        (Optional["Order"], True),
        (Annotated[Order | None, "x"], True),
        (Literal["open", None], True),  # noqa: PYI061 - this is how it may be written
        (TypeVar("T"), True),
    ],
)
def test_what_a_type_says_of_none(declared: object, *, may_be_none: bool) -> None:
    """Where the type does not tell, None is believed."""
    assert allows_none(declared) is may_be_none


class Moody(Orders):
    """An order whose smaller answers fail."""

    def initial(self) -> Any:
        """Fail."""
        raise RuntimeError("no beginning")

    def status(self, state: Any) -> Any:
        """Fail, or say nothing."""
        return state.nonsense if state else None


@pytest.mark.row("D-029")
def test_smaller_answers_are_checked_too() -> None:
    """A failing `initial` or `status`, or a status that is none, refuses the command like a failing `decide`."""
    program = Program(Moody(), JsonCodec())
    with pytest.raises(CommandError, match="no beginning"):
        program.initial()
    with pytest.raises(CommandError, match="AttributeError"):
        program.status(Order())
    with pytest.raises(CommandError, match="expected a Status"):
        program.status(None)


@pytest.mark.row("D-013", "D-014")
@pytest.mark.row("C-35")
def test_the_state_is_the_fold_of_the_events() -> None:
    """Replaying gives the same state each time, in one go or in pieces, without the kernel's own events."""
    program = orders()
    assert program.replay(program.initial(), HISTORY) == FOLDED
    assert program.replay(program.replay(program.initial(), HISTORY[:2]), HISTORY[2:]) == FOLDED
    assert program.apply(Order(), [Placed(Decimal("10.00")), Paid(Decimal("5.00"))]) == FOLDED


@pytest.mark.row("D-123")
def test_without_events_there_is_the_initial_state() -> None:
    """An instance to which nothing has happened is in its type's initial state."""
    program = orders()
    assert program.replay(program.initial(), []) == Order()
    assert program.status(program.initial()) == RUNNING


@pytest.mark.row("D-088")
@pytest.mark.parametrize("event", [stored(5, "Vanished", b"{}"), stored(5, "Paid", b'{"amount":"1"}', version=2)])
def test_unknown_events_stop_a_replay(event: Any) -> None:
    """A removed or newer event is an error with a code; no state is made up."""
    with pytest.raises(UnknownEventError):
        orders().replay(Order(), [*HISTORY, event])


@pytest.mark.row("D-088")
def test_unreadable_events_are_named() -> None:
    """Bytes that do not fit their class stop the replay with the number and type of the event."""
    with pytest.raises(ReplayError, match=rf"cannot read event 5 \(Paid version 1\) of instance {ORDER}"):
        orders().replay(Order(), [stored(5, "Paid", b'{"amount":[]}')])


@message(name="Paid", version=2)
@dataclass(frozen=True)
class PaidIn:
    amount: Decimal
    currency: str


@dataclass(frozen=True)
class Shipped:
    carrier: str


class NewerOrders(Decider[Order, Pay, Placed | PaidIn | Cancelled | Shipped, Charge]):
    """The next release: an event has a new version and another one is new."""

    type = "order"
    upcasters = {("Paid", 1): lambda old: {**old, "currency": "EUR"}}  # noqa: RUF012 - the contract says how

    def initial(self) -> Order:
        """As before."""
        return Order()

    def evolve(self, state: Order, event: Placed | PaidIn | Cancelled | Shipped) -> Order:
        """As before."""
        match event:
            case Placed():
                return Order(event.total)
            case PaidIn() if event.currency == "EUR":
                return Order(state.total, state.paid + event.amount)
            case _:
                return state

    def decide(self, state: Order, command: Pay, moment: Any) -> Decision:
        """In euros."""
        return Decision.event(PaidIn(command.amount, "EUR"))


@pytest.mark.row("D-085", "D-117")
def test_old_histories_replay_in_newer_code() -> None:
    """New event variants do no harm, and old versions are upcast before `evolve` sees them."""
    assert Program(NewerOrders(), JsonCodec()).replay(Order(), HISTORY) == FOLDED


@pytest.mark.parametrize("codec", [JsonCodec(), MessagePackCodec()], ids=lambda codec: codec.name)
def test_snapshots_are_the_state(codec: Codec) -> None:
    """A snapshot comes back as the state it was made of."""
    program = Program(Orders(), codec)
    assert program.restore(program.snapshot(FOLDED)) == FOLDED


class Opaque(Decider[object, Cancel, Cancelled, None]):
    """A workflow whose state has no bytes."""

    type = "opaque"

    def initial(self) -> object:
        """Something that cannot be stored."""
        return object()

    def evolve(self, state: object, event: Cancelled) -> object:
        """Nothing changes."""
        return state

    def decide(self, state: object, command: Cancel, moment: Any) -> Decision:
        """Yes."""
        return Decision.event(Cancelled(command.reason))


def test_a_state_without_bytes_has_no_snapshot() -> None:
    """Where a state cannot be stored the reason is told, and only the events tell the state."""
    program = Program(Opaque(), JsonCodec())
    with pytest.raises(PayloadError, match="object cannot be stored"):
        program.snapshot(program.initial())


@dataclass
class Parcel:
    weights: dict[str, int] = field(default_factory=dict)
    last: object = None


@dataclass
class HeavyParcel(Parcel):
    is_heavy: bool = True


def keeping(*states: Any, codec: Codec | None = None) -> Program:
    """A decider with these classes as its state."""
    return Program(like_orders("order", functools.reduce(operator.or_, states), Pay, Paid, None), codec or JsonCodec())


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (HeavyParcel({"a": 1}), "the value is a HeavyParcel and would come back as a Parcel"),
        (Parcel(defaultdict(int, a=1)), "weights is a defaultdict and would come back as a dict"),
        (Parcel({"a": 1.0}), "must be int, got float"),  # type: ignore[dict-item]
        (Parcel(last=(1, 2)), "last is a tuple and would come back as a list"),
        (Parcel(last=NOON), "last is a datetime and would come back as a str"),
    ],
)
def test_a_state_that_would_come_back_as_another_has_no_snapshot(state: Parcel, said: str) -> None:
    """A snapshot is the state or there is none: what differs is told."""
    with pytest.raises(PayloadError, match=said):
        keeping(Parcel).snapshot(state)


@pytest.mark.parametrize("codec", [JsonCodec(), MessagePackCodec()], ids=lambda codec: codec.name)
@pytest.mark.parametrize("state", [Order(Decimal(1)), Parcel({"a": 1}), None, 7])
def test_a_state_may_be_one_of_several_classes(codec: Codec, state: object) -> None:
    """A union of classes comes back as the class that it was, though their bytes alone would not tell."""
    program = keeping(Order, Parcel, None, int, codec=codec)
    restored = program.restore(program.snapshot(state))
    assert (restored, type(restored)) == (state, type(state))
    assert program.state_flaws() == []


def test_a_snapshot_of_another_declaration_is_refused() -> None:
    """When the classes of the state change, older snapshots are a bad payload and not a guess."""
    one, several, others = keeping(Parcel), keeping(Parcel, Order), keeping(HeavyParcel, Order)
    for program, data in (
        (one, several.snapshot(Parcel())),
        (several, one.snapshot(Parcel())),
        (others, several.snapshot(Parcel())),
    ):
        with pytest.raises(PayloadError):
            program.restore(data)
    with pytest.raises(PayloadError, match="is a HeavyParcel, which 'order' does not declare"):
        several.snapshot(HeavyParcel())


def test_a_state_that_can_never_come_back_is_known_in_advance() -> None:
    """What the types of a state say about its snapshots can be told before there is one."""

    @dataclass
    class Either:
        note: str | bytes

    (flaw,) = Program(like_orders("order", Either, Pay, Paid, None), JsonCodec()).state_flaws()
    assert flaw.place == "Either.note"


def test_a_foreign_snapshot_is_refused() -> None:
    """Bytes that are not a state are a bad payload, so that the caller can fall back on the events."""
    with pytest.raises(PayloadError, match=r"not an Order: Order\.total must be "):
        orders().restore(b'{"total":[]}')


def diagnoses(decider: Any) -> list[str]:
    """The codes of what is wrong with a decider."""
    with pytest.raises(DefinitionError) as caught:
        Program(decider, JsonCodec())
    return [each.code for each in caught.value.diagnostics]


def like_orders(name: object = "order", *parameters: object, **attributes: object) -> Any:
    """A decider with the functions of an order and other declarations."""
    base: Any = Decider
    functions = {"initial": Orders.initial, "evolve": Orders.evolve, "decide": Orders.decide}
    namespace = {"type": name, **functions, **attributes}
    if parameters:
        base = base[parameters]
    made: Any = types.new_class("Made", (base,), exec_body=lambda body: body.update(namespace))
    return made()


@dataclass(frozen=True)
class Ambiguous:
    note: str | bytes


@message(name="a\x07b", version=2**15)
@dataclass(frozen=True)
class Misnamed:
    n: int


@message(version=4)
@dataclass(frozen=True)
class Grown:
    n: int


@pytest.mark.row("D-001", "D-004")
@pytest.mark.parametrize(
    ("decider", "codes"),
    [
        (like_orders("", Order, Pay, Paid, None), ["missing_type"]),
        (like_orders(7, Order, Pay, Paid, Never), ["missing_type"]),
        (like_orders("order"), ["missing_types"]),
        (like_orders("order", Order, Pay, list[int], Charge), ["no_members"]),
        (like_orders("order", Order, None, None, None), ["no_members", "no_members"]),
        (like_orders("order", Order, Pay, Paid, list[int]), ["no_members"]),
        (like_orders("order", Order, Pay, Paid | PaidIn, None), ["duplicate_name"]),
        (like_orders("or\x00der", Order, Pay, Paid, None), ["invalid_type"]),
        (like_orders("or\nder", Order, Pay, Paid, None), ["invalid_type"]),
        (like_orders("o" * 513, Order, Pay, Paid, None), ["invalid_type"]),
        (like_orders("order", Order, Pay, Ambiguous, None), ["unreadable_type"]),
        (like_orders("order", Order, Pay, Paid, Ambiguous), ["unreadable_type"]),
        (like_orders("order", Order, Ambiguous, Paid, None), ["unreadable_type"]),
        (like_orders("order", Order, Pay, Misnamed, None), ["invalid_name", "invalid_version"]),
        (like_orders("order", Order, Pay, Paid, None, upcasters={("Pay", 1): dict}), ["idle_upcaster"]),
        (like_orders("order", Order, Pay, Paid, None, command_upcasters={("Pay", 1): dict}), ["idle_upcaster"]),
        (like_orders("order", Order, Pay, Paid, Charge, effect_upcasters={("Charge", 2): dict}), ["idle_upcaster"]),
        (like_orders("order", Order, Pay, Paid, None, upcasters={"Paid": dict}), ["invalid_upcaster"]),
        (like_orders("order", Order, Pay, Paid, None, upcasters={"ab": dict}), ["invalid_upcaster"]),
        (like_orders("order", Order, Pay, Paid, None, upcasters={(Paid, 1): dict}), ["invalid_upcaster"]),
        (like_orders("order", Order, Pay, Paid, None, upcasters={(1, "Paid"): dict}), ["invalid_upcaster"]),
        (like_orders("order", Order, Pay, Paid, None, command_upcasters={1: dict}), ["invalid_upcaster"]),
        (like_orders("order", Order, Pay, Paid, None, upcasters=[dict]), ["invalid_upcaster"]),
        (like_orders("order", Order, Pay, Paid, Charge, effect_upcasters={("Charge", 0): 7}), ["invalid_upcaster"]),
        (like_orders("order", Order, Pay, Grown, None, upcasters={("Grown", 1): dict}), ["missing_upcaster"]),
        (like_orders("order", Order, Grown, Paid, None, command_upcasters={("Grown", 2): dict}), ["missing_upcaster"]),
        (
            like_orders("order", Order, Pay, Paid, Grown, effect_upcasters={("Grown", v): dict for v in (1, 3)}),
            ["missing_upcaster"],
        ),
        (like_orders("order", Order, Pay, Paid, None, state_version=2**31), ["invalid_version"]),
    ],
)
def test_a_decider_that_cannot_run_is_diagnosed(decider: Any, codes: list[str]) -> None:
    """Missing names and types are told when the decider is registered, all at once and by code."""
    assert diagnoses(decider) == codes


@pytest.mark.parametrize(
    ("attributes", "remedy"),
    [
        ({"upcasters": {"Paid": dict}}, "upcasters has the key 'Paid'; give name and version, such as ('Paid', 1)"),
        ({"upcasters": {(Paid, 1): dict}}, "give name and version, such as ('Paid', 1)"),
        (
            {"command_upcasters": {1: dict}},
            "command_upcasters has the key 1; give name and version, such as ('Pay', 1)",
        ),
        ({"upcasters": {("Paid", 1): "dict"}}, "the upcaster of ('Paid', 1) is a str; give a function"),
        (
            {"upcasters": [dict]},
            "upcasters is a list; give a dict from name and version, such as ('Paid', 1), to a function",
        ),
    ],
)
def test_upcasters_of_the_wrong_shape_are_told_how_to_be_written(attributes: dict[str, object], remedy: str) -> None:
    """Whoever writes them for the first time learns the shape from the message, in the words of his own decider."""
    with pytest.raises(DefinitionError) as caught:
        Program(like_orders("order", Order, Pay, Paid, None, **attributes), JsonCodec())
    assert remedy in str(caught.value)


@pytest.mark.row("D-117")
def test_a_gap_in_a_chain_of_upcasters_is_told_by_its_version() -> None:
    """What is older than the gap could never be read; a class whose oldest versions nobody has stored needs no chain for them."""
    decider = like_orders("order", Order, Pay, Grown, None, upcasters={("Grown", 1): dict, ("Grown", 3): dict})
    with pytest.raises(DefinitionError, match="'Grown' version 2"):
        Program(decider, JsonCodec())
    Program(like_orders("order", Order, Pay, Grown, None, upcasters={("Grown", 3): dict}), JsonCodec())


def test_statuses_are_the_deciders_own() -> None:
    """A decider that overrides `status` is believed."""

    class Paused(Orders):
        def status(self, state: Order) -> Status:
            return Status("paused", "waiting")

    assert Program(Paused(), JsonCodec()).status(Order()) == Status("paused", "waiting")


class _Note(msgspec.Struct, frozen=True):
    text: str = ""


class _Notes(Decider[_Note, _Note, _Note, None]):
    type = "notes"

    def initial(self) -> _Note:
        return _Note()

    def evolve(self, state: _Note, event: _Note) -> _Note:
        return event

    def decide(self, state: _Note, command: _Note, moment: Moment) -> Decision:
        return Decision.event(command)


class _PlainNotes(_Notes):
    is_plain = True


@pytest.mark.parametrize(("decider", "is_cheap"), [(_PlainNotes(), True), (_Notes(), False)])
def test_words_that_need_no_proof_are_not_looked_into(decider: _Notes, *, is_cheap: bool) -> None:
    """A decider whose words are plain is made ready without a look at the shapes of them; they are read all the same."""
    looked: list[str] = []

    def watch(frame: types.FrameType, event: str, _given: object) -> None:
        if event == "call" and frame.f_code.co_name == "type_info":
            looked.append(frame.f_code.co_name)

    sys.setprofile(watch)
    try:
        program = Program(decider, JsonCodec())
    finally:
        sys.setprofile(None)
    assert bool(looked) is not is_cheap
    assert program.events.decode("_Note", 1, b'{"text":"a"}') == _Note("a")
