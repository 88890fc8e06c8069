"""A decider with words of every kind of class, which was once written in older ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, ClassVar
from uuid import UUID

import msgspec
import pydantic

from histories.sagas import ADA
from histories.tape import Tape
from standfast import Decider, Decision, EffectContext, Message, Moment, Rejection, message
from standfast.kernel.codec.codecs import Upcaster

REMINDER = "reminder"
PAPER = UUID("0196b5c4-0000-7000-8000-000000000001")


class Currency(Enum):
    EURO = "eur"
    YEN = "jpy"


@message(name="Open", version=2)
@dataclass(frozen=True)
class Open:
    workflow_id: str
    owner: str


@dataclass(frozen=True)
class Deposit:
    workflow_id: str
    amount: Decimal


class Annotate(pydantic.BaseModel):
    workflow_id: str
    text: str


@message(version=2)
class Remind(msgspec.Struct, frozen=True):
    workflow_id: str
    reason: str


@dataclass(frozen=True)
class Silence:
    workflow_id: str


@message(name="account_opened", version=2)
@dataclass(frozen=True)
class Opened:
    owner: str
    currency: Currency


@dataclass(frozen=True)
class Deposited:
    amount: Decimal
    at: datetime
    paper: UUID
    tags: tuple[str, ...] = ()
    parts: dict[str, list[int]] = field(default_factory=dict)


class Annotated(pydantic.BaseModel):
    text: str
    rate: float = 0.1


class Reminded(msgspec.Struct, frozen=True, tag=True):
    reason: str
    waited: timedelta


@message(version=2)
@dataclass(frozen=True)
class Notify:
    owner: str
    channel: str


@dataclass(frozen=True)
class Account:
    owner: str = ""
    currency: Currency = Currency.EURO
    balance: Decimal = Decimal(0)
    papers: list[UUID] = field(default_factory=list)
    last: datetime | None = None
    notes: tuple[str, ...] = ()
    waited: timedelta = timedelta(0)


Command = Open | Deposit | Annotate | Remind | Silence
Event = Opened | Deposited | Annotated | Reminded


class Accounts(Decider[Account, Command, Event, Notify]):
    """Accounts as the code has them now: it reads what older code wrote."""

    type = "account"
    upcasters: ClassVar[Mapping[tuple[str, int], Upcaster]] = {
        ("account_opened", 1): lambda old: {"owner": old["name"], "currency": "eur"}
    }
    command_upcasters: ClassVar[Mapping[tuple[str, int], Upcaster]] = {
        ("Remind", 1): lambda old: {**old, "reason": "as before"}
    }
    effect_upcasters: ClassVar[Mapping[tuple[str, int], Upcaster]] = {
        ("Notify", 1): lambda old: {**old, "channel": "post"}
    }
    is_broken = False
    """Whether reminders fail at present."""

    def initial(self) -> Account:
        return Account()

    def evolve(self, state: Account, event: Event) -> Account:
        def changed(**fields: Any) -> Account:
            return Account(**({name: getattr(state, name) for name in Account.__dataclass_fields__} | fields))

        match event:
            case Opened(owner, currency):
                return changed(owner=owner, currency=currency)
            case Deposited(amount, at, paper):
                return changed(balance=state.balance + amount, last=at, papers=[*state.papers, paper])
            case Annotated():
                return changed(notes=(*state.notes, event.text))
            case Reminded():
                return changed(waited=state.waited + event.waited)

    def decide(self, state: Account, command: Command, moment: Moment) -> Decision | Rejection:
        match command:
            case Open(key, owner):
                opened = Decision.event(Opened(owner, Currency.YEN)).with_attributes(owner=owner)
                return opened.with_timer_after(timedelta(hours=1), Remind(key, "new"), key=REMINDER)
            case Deposit(key, amount):
                paid = Deposited(amount, moment.now, PAPER, ("cash", "☃"), {"coins": [1, 2]})
                told = Message(decider="account", command=Annotate(workflow_id="bank", text=f"{key}: {amount}"))
                return (
                    Decision.event(paid)
                    .with_effect(Notify(state.owner, "mail"), timeout=timedelta(seconds=5))
                    .with_message(told)
                )
            case Annotate():
                return Decision.event(Annotated(text=command.text))
            case Remind(key, reason):
                if self.is_broken:
                    raise ValueError("broken")
                return Decision.event(Reminded(reason, timedelta(minutes=90)))
            case Silence():
                return Decision.event(Annotated(text="silence")).cancel_timer(REMINDER)


@message(name="Open", version=1)
@dataclass(frozen=True)
class OldOpen:
    workflow_id: str
    name: str


@message(name="account_opened", version=1)
@dataclass(frozen=True)
class OldOpened:
    name: str


@message(name="Remind", version=1)
@dataclass(frozen=True)
class OldRemind:
    workflow_id: str


@message(name="Notify", version=1)
@dataclass(frozen=True)
class OldNotify:
    owner: str


class OldAccounts(Decider[str, OldOpen | OldRemind, OldOpened, OldNotify]):
    """Accounts as they were."""

    type = "account"
    state_version = 0

    def initial(self) -> str:
        return ""

    def evolve(self, state: str, event: OldOpened) -> str:
        return event.name

    def decide(self, state: str, command: OldOpen | OldRemind, moment: Moment) -> Decision:
        assert isinstance(command, OldOpen)
        opened = Decision.event(OldOpened(command.name)).with_effect(OldNotify(command.name), priority=3)
        return opened.with_timer_after(timedelta(hours=1), OldRemind(command.workflow_id), key=REMINDER)


DECIDERS = (Accounts,)


def told(context: EffectContext, effect: object) -> None:
    """A handler that can reach everybody but Zoe."""
    if isinstance(effect, Notify) and effect.owner == "Zoe":
        raise ValueError("nobody is there")


def accounts(tape: Tape) -> None:
    """Words of every kind of class, some of them from older code; a timer that is cancelled, and one that gives up and is put back; dead letters."""
    old = tape.engine.register(OldAccounts(), told)
    old.acting(ADA).deciders.execute(OldAccounts, OldOpen("a-1", "Ann"))
    tape.look()
    old.stop()
    current = Accounts()
    ada = tape.another().register(current, told).acting(ADA)
    tape.look()
    ada.deciders.execute(Accounts, Open("a-2", "Bob"), comment="by hand")
    for key in ("a-1", "a-2", "a-1", "a-1"):
        ada.deciders.execute(
            Accounts, Deposit(key, Decimal("10.50")), command_id=f"{key} {len(key)}" if key == "a-2" else ""
        )
        tape.look()
    tape.drain()
    ada.deciders.submit(Accounts, Annotate(workflow_id="a-2", text="later"))
    ada.deciders.execute(Accounts, Silence("a-2"))
    tape.drain()
    current.is_broken = True
    tape.engine.advance(timedelta(hours=1))
    tape.drain()
    current.is_broken = False
    (letter,) = tape.engine.dead_letters.list(source="timer")
    ada.dead_letters.requeue(letter)
    tape.drain()
    ada.deciders.execute(Accounts, Open("a-3", "Zoe"))
    ada.deciders.execute(Accounts, Deposit("a-3", Decimal(1)))
    tape.drain()
    current.is_broken = True
    tape.engine.advance(timedelta(hours=1))
    tape.drain()
    ada.deciders.submit(Accounts, Annotate(workflow_id="a-2", text="never"), command_id="m-1", comment="in vain")
    ada.inbox.bury(ada.inbox.list()[0].id)
    assert tape.engine.deciders.state(Accounts, "a-1").last == datetime(2030, 1, 1, 12, tzinfo=UTC)
