"""The workflows of this project: a saga, one that asks people, a process of a file, rules, documents, and a decider.

`standfast dev` and `standfast worker` call `register`. Change anything here, and see `test_workflows.py` for how it is tried.
"""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from standfast import Decider, Decision, EffectContext, Engine, Ignored, Moment, Saga, load_processes, load_rules

# -- A saga: steps in a row, each with what undoes it. Functions take what they need from the data, and return what they add to it.


def reserve(sku: str) -> dict[str, str]:
    """Take goods from the shelf."""
    return {"reservation": f"one {sku}"}


def release(reservation: str) -> None:
    """Put them back."""


def charge(amount: int) -> dict[str, str]:
    """Charge the customer. An exception is retried; then all earlier steps are undone."""
    if amount <= 0:
        raise ValueError(f"amount must be positive, not {amount}")
    return {"charge": f"ch-{amount}"}


def refund(charge: str = "") -> None:
    """Give it back."""


def ship(reservation: str) -> dict[str, str]:
    """Send the parcel."""
    return {"parcel": f"a box with {reservation}"}


ORDER = (
    Saga("order")
    .step("reserve", reserve, undo=release)
    .step("charge", charge, undo=refund, attempts=3, delay=1)
    .wait_for("packed", "packed")
    .step("ship", ship)
    .build()
)

# -- A saga that asks people: it waits for them, for weeks if need be, and costs nothing meanwhile.


def pay(amount: int) -> dict[str, str]:
    """Pay what was approved."""
    return {"payment": f"p-{amount}"}


EXPENSE = Saga("expense").human("approve", subject="Pay {amount} to {who}?", role="finance").step("pay", pay).build()

# -- A process: states and the ways between them, in a file that people who do not program can read.

PURCHASES = load_processes(Path(__file__).with_name("purchases.yaml").read_text(encoding="utf-8"))


def place_purchase(item: str = "") -> dict[str, str]:
    """What the step `order` of a purchase does."""
    return {"number": f"po-{item}"}


# -- Rules: conditions and what follows from them, as data. What is too dear waits for a manager, for a day at most.

DISCOUNT = load_rules(
    {
        "workflow_id": "discount",
        "version": "1.0.0",
        "steps": [
            {
                "id": "dear",
                "type": "condition",
                "condition": {"field": "percent", "operator": "gte", "value": 20},
                "on_true": "ask",
                "on_false": "allow",
            },
            {
                "id": "ask",
                "type": "action",
                "action": "block",
                "reason": "May {customer} have {percent} percent?",
                "requires": {"type": "approval", "role": "manager", "timeout": "24h"},
            },
            {"id": "allow", "type": "action", "action": "allow"},
        ],
    }
)

# -- Documents: a type with its lifecycle, in a file, and what this organisation puts into the slot that it leaves open.

CLAIMS = Path(__file__).with_name("claims.yaml").read_text(encoding="utf-8")
APPROVAL = {
    "base": {"entity_type": "claim", "envelope_version": 1},
    "name": "Finance approves",
    "slots": {
        "slot:submitted_to_approved": {
            "nodes": [{"id": "sign", "type": "approval", "approvers": [{"role": "finance"}]}]
        }
    },
}


def publish(engine: Engine) -> None:
    """Have documents of the type known. It is done once, not by every worker; the same again changes nothing."""
    engine.contracts.publish(CLAIMS)
    if not any(each.type == "claim" for each in engine.bodies.list()):
        engine.bodies.publish(engine.bodies.save(APPROVAL).id)


# -- A decider: three pure functions of your own, for whatever no graph can draw.


@dataclass(frozen=True)
class Subscribe:
    """A customer requests a trial."""

    workflow_id: str


@dataclass(frozen=True)
class Expire:
    """The trial is over."""

    workflow_id: str


@dataclass(frozen=True)
class Subscribed:
    """The trial has begun."""


@dataclass(frozen=True)
class Expired:
    """The trial has ended."""


@dataclass(frozen=True)
class SayGoodbye:
    """An order to the world."""

    customer: str


class Trial(Decider[str, Subscribe | Expire, Subscribed | Expired, SayGoodbye]):
    """A trial of fourteen days."""

    type = "trial"

    def initial(self) -> str:
        """Before anything has happened."""
        return "new"

    def evolve(self, state: str, event: Subscribed | Expired) -> str:
        """What an event makes of it."""
        return "running" if isinstance(event, Subscribed) else "over"

    def decide(
        self,
        state: str,
        command: Subscribe | Expire,
        moment: Moment,
    ) -> Decision | Ignored:
        """What to answer to a command."""
        match state, command:
            case "new", Subscribe(who):
                return Decision.event(Subscribed()).with_timer_after(timedelta(days=14), Expire(who), key="end")
            case "running", Expire(who):
                return Decision.event(Expired()).with_effect(SayGoodbye(who))
            case _:
                return Ignored()

    def is_terminal(self, state: str) -> bool:
        """Whether nothing more can happen."""
        return state == "over"


def say_goodbye(_context: EffectContext, effect: SayGoodbye) -> None:
    """Carry the order out."""
    print("goodbye,", effect.customer)


# -- What an engine is told.


def register(engine: Engine) -> None:
    """Have an engine know all of them."""
    engine.register(ORDER)
    engine.register(EXPENSE)
    for definition in PURCHASES:
        engine.register(definition)
    engine.handle("purchases.place", place_purchase)
    engine.register(DISCOUNT)
    engine.register(Trial(), say_goodbye)


def begin(engine: Engine) -> None:
    """Something to look at. The keys make it harmless to call this again."""
    engine.start("order", {"sku": "lamp", "amount": 1200}, idempotency_key="sample-order")
    engine.start("order", {"sku": "free lunch", "amount": 0}, idempotency_key="sample-failure")
    engine.start("expense", {"who": "ann", "amount": 80}, idempotency_key="sample-expense")
    engine.start("purchases.approval", {"item": "chair"}, idempotency_key="sample-purchase")
    engine.start("discount", {"customer": "bob", "percent": 30}, idempotency_key="sample-discount")
    engine.deciders.execute(Trial, Subscribe("ann"), command_id="sample-trial")
    publish(engine)
    claim = {"number": "C-1", "traveller": "ann", "grand_total": 12000}
    engine.documents.create("claim", claim, id="C-1", idempotency_key="sample-claim")
    engine.documents.transition("claim", "C-1", "submit", idempotency_key="sample-submission")
