"""Stories that sagas are for, each with what it must come to: played once, and again with a crash at every point.

Handlers answer by the data and the history alone, so that a call that is made again after a crash does the same. Clients that got no
answer ask again, and whatever they ask can be asked twice.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import msgspec

from app.sagas.acting import person
from standfast import NotFoundError, RejectedError, Saga, SagaDefinition, StepContext
from standfast.kernel.ids import InstanceId
from standfast.testing import CrashScenario, ManualEngine
from support.inside import registry_of


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """What a story comes to."""

    status: str
    reason: str = ""
    steps: dict[str, str]
    """The last status of each step, by name."""
    undone: tuple[str, ...] = ()
    """The steps that were undone by a call, in order."""
    result: object = None
    letters: tuple[tuple[str, str], ...] = ()
    """Name and reason of each dead letter."""


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A saga, what it is given, what people do, and how it ends."""

    saga: Callable[[ManualEngine], SagaDefinition]
    given: dict[str, object]
    ending: Ending
    acts: tuple[Callable[[ManualEngine, InstanceId], None], ...] = ()
    """What people do, one after the other, each when nothing is left to do."""

    def prepare(self, engine: ManualEngine) -> None:
        """Make the saga known."""
        engine.register(self.saga(engine))

    def play(self, engine: ManualEngine) -> None:
        """Start it, and let people do what they do."""
        (name,) = registry_of(engine).names()
        instance = engine.start(name, self.given, key="the one", idempotency_key="start").id
        engine.drain()
        for act in self.acts:
            act(engine, instance)
            engine.drain()

    @property
    def scenario(self) -> CrashScenario:
        """The story for the crash kit."""
        return CrashScenario(prepare=self.prepare, play=self.play, outcome=ended)


def ended(engine: ManualEngine) -> Ending:
    """What the one saga of an engine has come to."""
    (found,) = engine.runs.list().items
    events = engine.run(found.id).history()
    instance = engine.run(found.id).describe()
    return Ending(
        status=instance.status,
        reason=instance.reason,
        steps={each.name: each.status for each in engine.run(found.id).steps()},
        undone=tuple(each.step_name for each in events if each.event_type == "compensation_success"),
        result=_timeless(instance.result),
        letters=tuple((each.name, each.reason) for each in engine.dead_letters.list()),
    )


def _timeless(result: object) -> object:
    """A result without the time of the decision, which a crash may put off."""
    if not isinstance(result, dict) or "approve" not in result:
        return result
    approve = {name: value for name, value in result["approve"].items() if name != "decided_at"}
    return {**result, "approve": approve}


# -- what people do


def confirm(engine: ManualEngine, instance: InstanceId) -> None:
    """Answer every open question."""
    for task in engine.run(instance).tasks():
        if task.decided_at is None:
            engine.acting(person("ann", "boss")).tasks.decide(task.step_id, "confirmed", comment="fine")


def reject(engine: ManualEngine, instance: InstanceId) -> None:
    """Refuse every open question."""
    for task in engine.run(instance).tasks():
        if task.decided_at is None:
            engine.acting(person("ann", "boss")).tasks.decide(task.step_id, "rejected")


def requeue_with(**fixed: object) -> Callable[[ManualEngine, InstanceId], None]:
    """Put every dead step back to work, with another input."""

    def act(engine: ManualEngine, instance: InstanceId) -> None:
        for letter in engine.dead_letters.list(instance=instance, source="step"):
            with suppress(NotFoundError):
                engine.dead_letters.requeue(letter.id, fixed)

    return act


def retry_undoing(engine: ManualEngine, instance: InstanceId) -> None:
    """Try again what could not be undone."""
    for letter in engine.dead_letters.list(instance=instance, source="compensation"):
        engine.dead_letters.retry_compensation(letter.id)


# -- what handlers do


def nothing() -> None:
    """Do nothing."""


def reserve(sku: str) -> dict[str, object]:
    """Put something aside."""
    return {"reserved": sku}


def charge(amount: int) -> dict[str, object]:
    """Take money."""
    return {"charged": amount}


def ship(address: str) -> dict[str, object]:
    """Send it, where somebody lives."""
    if address == "nowhere":
        raise ValueError("nobody lives there")
    return {"shipped": address}


def release() -> None:
    """Give back what was put aside."""


def refund() -> None:
    """Give the money back."""


def recall() -> None:
    """Call the parcel back."""


def order(_engine: ManualEngine) -> SagaDefinition:
    """Reserve, charge, ship, each with what undoes it."""
    return (
        Saga("order")
        .step("reserve", reserve)
        .on_failure("release", release)
        .step("charge", charge)
        .on_failure("refund", refund)
        .step("ship", ship, attempts=2)
        .on_failure("recall", recall)
        .build()
    )


GOOD_ORDER: dict[str, object] = {"sku": "lamp", "amount": 5, "address": "home"}


def extract(rows: list[int]) -> dict[str, object]:
    """Read."""
    return {"read": rows}


def clean(read: list[int]) -> dict[str, object]:
    """Leave out what is no good."""
    return {"read": [each for each in read if each >= 0]}


def total(read: list[int]) -> int:
    """Add up."""
    return sum(read)


def largest(read: list[int]) -> int:
    """The largest."""
    return max(read)


def double(ctx: StepContext) -> int:
    """Twice the item."""
    return int(str(ctx.input["item"])) * 2


def load(ctx: StepContext) -> dict[str, object]:
    """Write all that came together."""
    return {"loaded": sorted(str(each) for each in ctx.input if each not in {"rows", "read"})}


def pipeline(_engine: ManualEngine) -> SagaDefinition:
    """Extract, then in parallel a branch with a fork of its own and one over all rows, then load."""
    return (
        Saga("pipeline")
        .step("extract", extract)
        .fork(
            "transform",
            lambda outer: (
                outer.step("clean", clean)
                .fork("measure", lambda one: one.step("total", total), lambda two: two.step("largest", largest))
                .join("measured")
            ),
            lambda outer: outer.for_each("doubled", "read", lambda body: body.step("double", double), limit=2),
        )
        .join("transformed")
        .step("load", load)
        .build()
    )


def save_point(_engine: ManualEngine) -> SagaDefinition:
    """A failure behind a save point leaves alone what lies before it."""
    return (
        Saga("saved")
        .step("reserve", reserve)
        .on_failure("release", release)
        .save_point("safe")
        .step("charge", charge)
        .on_failure("refund", refund)
        .step("ship", ship, attempts=1)
        .build()
    )


def approval(_engine: ManualEngine) -> SagaDefinition:
    """A person decides between two steps."""
    return (
        Saga("approval")
        .step("reserve", reserve)
        .on_failure("release", release)
        .human("approve", subject="May it go?", role="boss")
        .step("ship", ship)
        .build()
    )


def dead_letter(_engine: ManualEngine) -> SagaDefinition:
    """A step that fails until its input is mended, beside a branch that is fine."""
    return (
        Saga("dead", dlq=True)
        .fork(
            "fork",
            lambda one: one.step("ship", ship, attempts=2, priority=9),
            lambda two: two.step("charge", charge),
        )
        .join("join")
        .step("close", nothing)
        .build()
    )


def cancelled(engine: ManualEngine) -> SagaDefinition:
    """One of the parallel steps has the saga cancelled, while the other one has not begun."""

    def cancels(ctx: StepContext) -> None:
        with suppress(RejectedError):
            engine.acting("ann").futures.run(ctx.instance).cancel("somebody changed their mind").exception(0)

    return (
        Saga("cancelled")
        .step("reserve", reserve)
        .on_failure("release", release)
        .fork(
            "fork",
            lambda one: one.step("talk", cancels, priority=9).on_failure("hush", recall),
            lambda two: two.step("charge", charge).on_failure("refund", refund),
        )
        .join("join")
        .step("ship", ship)
        .build()
    )


def stuck(engine: ManualEngine) -> SagaDefinition:
    """A refund that fails until an operator has seen it."""

    def refund_later(ctx: StepContext) -> None:
        told = [each.event_type for each in engine.run(ctx.instance).history()]
        if "compensation_max_retries_exceeded" not in told:
            raise ValueError("the bank is closed")

    return (
        Saga("stuck")
        .step("reserve", reserve)
        .on_failure("release", release)
        .step("charge", charge)
        .on_failure("refund", refund_later, attempts=2)
        .step("ship", ship, attempts=1)
        .build()
    )


def halted(engine: ManualEngine) -> SagaDefinition:
    """One of the parallel steps has the saga paused, while the other one has not begun; a wait goes on meanwhile."""

    def pauses(ctx: StepContext) -> None:
        told = [each.event_type for each in engine.run(ctx.instance).history()]
        if "workflow_paused" not in told:
            engine.futures.run(ctx.instance).pause("wait a moment", clock="stand_still").exception(0)

    return (
        Saga("halted")
        .step("reserve", reserve)
        .fork(
            "fork",
            lambda one: one.step("talk", pauses, priority=9).step("close", nothing),
            lambda two: two.step("charge", charge),
            lambda three: three.wait("rest", 60),
        )
        .join("join")
        .step("ship", ship)
        .build()
    )


def resumes(engine: ManualEngine, instance: InstanceId) -> None:
    """Somebody lets it go on, and time goes by."""
    engine.advance(hours=1)
    engine.run(instance).resume("go", data={"n": 1}, triggered_by="event", triggered_by_id="go")
    engine.advance(minutes=2)


BAD_ORDER = {**GOOD_ORDER, "address": "nowhere"}
ROLLED_BACK = {"reserve": "rolled_back", "charge": "rolled_back", "ship": "rolled_back"}

STORIES: dict[str, Story] = {
    "pause in a fork": Story(
        saga=halted,
        given=GOOD_ORDER,
        acts=(resumes,),
        ending=Ending(
            status="completed",
            steps=dict.fromkeys(("reserve", "fork", "talk", "close", "charge", "rest", "join", "ship"), "completed"),
            result={**GOOD_ORDER, "reserved": "lamp", "charge": {"charged": 5}, "close": None, "shipped": "home"},
        ),
    ),
    "order": Story(
        saga=order,
        given=GOOD_ORDER,
        ending=Ending(
            status="completed",
            steps={"reserve": "completed", "charge": "completed", "ship": "completed"},
            result={**GOOD_ORDER, "reserved": "lamp", "charged": 5, "shipped": "home"},
        ),
    ),
    "order that fails": Story(
        saga=order,
        given=BAD_ORDER,
        ending=Ending(status="failed", steps=ROLLED_BACK, undone=("ship", "charge", "reserve")),
    ),
    "data pipeline": Story(
        saga=pipeline,
        given={"rows": [3, -1, 2]},
        ending=Ending(
            status="completed",
            steps=dict.fromkeys(
                (
                    "extract",
                    "transform",
                    "clean",
                    "measure",
                    "total",
                    "largest",
                    "measured",
                    "doubled",
                    "double",
                    "doubled#join",
                    "transformed",
                    "load",
                ),
                "completed",
            ),
            result={
                "rows": [3, -1, 2],
                "read": [3, -1, 2],
                "measured": {"total": 5, "largest": 3},
                "doubled": [6, -2, 4],
                "loaded": ["doubled", "measured"],
            },
        ),
    ),
    "save point": Story(
        saga=save_point,
        given=BAD_ORDER,
        ending=Ending(
            status="failed",
            steps={"reserve": "completed", "safe": "completed", "charge": "rolled_back", "ship": "rolled_back"},
            undone=("charge",),
        ),
    ),
    "approval": Story(
        saga=approval,
        given=GOOD_ORDER,
        acts=(confirm,),
        ending=Ending(
            status="completed",
            steps={"reserve": "completed", "approve": "confirmed", "ship": "completed"},
            result={
                **GOOD_ORDER,
                "reserved": "lamp",
                "approve": {"status": "confirmed", "decided_by": "ann", "comment": "fine", "data": None},
                "shipped": "home",
            },
        ),
    ),
    "approval refused": Story(
        saga=approval,
        given=GOOD_ORDER,
        acts=(reject,),
        ending=Ending(status="aborted", steps={"reserve": "completed", "approve": "rejected"}),
    ),
    "dead letter": Story(
        saga=dead_letter,
        given=BAD_ORDER,
        acts=(requeue_with(**GOOD_ORDER),),
        ending=Ending(
            status="completed",
            steps=dict.fromkeys(("fork", "ship", "charge", "join", "close"), "completed"),
            result={**BAD_ORDER, "ship": {"shipped": "home"}, "charge": {"charged": 5}},
        ),
    ),
    "dead letter left alone": Story(
        saga=dead_letter,
        given=BAD_ORDER,
        ending=Ending(
            status="dlq",
            reason="dlq",
            steps={"fork": "completed", "ship": "paused", "charge": "paused"},
            letters=(("ship", "dlq enabled: rollback/compensation skipped"),),
        ),
    ),
    "cancelled": Story(
        saga=cancelled,
        given=GOOD_ORDER,
        ending=Ending(
            status="cancelled",
            steps={"reserve": "rolled_back", "fork": "rolled_back", "talk": "rolled_back", "charge": "skipped"},
            undone=("talk", "reserve"),
        ),
    ),
    "stuck": Story(
        saga=stuck,
        given=BAD_ORDER,
        ending=Ending(
            status="failed",
            reason="compensation_failed",
            steps={"reserve": "completed", "charge": "failed", "ship": "rolled_back"},
            letters=(("charge", "compensation max retries exceeded"),),
        ),
    ),
    "stuck and retried": Story(
        saga=stuck,
        given=BAD_ORDER,
        acts=(retry_undoing,),
        ending=Ending(status="failed", steps=ROLLED_BACK, undone=("charge", "reserve")),
    ),
}
