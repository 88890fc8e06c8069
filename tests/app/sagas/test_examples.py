"""The examples of the specification, run as narrated, and what they presuppose of handlers, data and definitions."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.sagas.acting import BROKEN, Stage, decide, history, run, status, statuses, step
from standfast import DefinitionError, Fail, Saga, SagaDefinition, StepContext, task
from standfast.testing import ManualEngine
from support.engines import Place

# -- 14.1, the order saga


def order_saga(stage: Stage) -> SagaDefinition:
    """Funds are reserved, the order is shipped, the user is told."""
    return (
        Saga("order_saga", 1)
        .step("reserve_funds", stage.does("ReserveFunds"))
        .on_failure("refund_funds", stage.does("RefundFunds"))
        .step("ship_order", stage.does("ShipOrder"), attempts=1)
        .on_failure("cancel_shipping", stage.does("CancelShipping"))
        .step("notify_user", stage.does("Notify"))
        .build()
    )


@pytest.mark.row("F-241")
def test_the_order_saga_goes_well(place: Place) -> None:
    """All three steps run, in order, and nothing is undone."""
    stage = Stage()
    engine = place.engine().register(order_saga(stage))
    instance = run(engine, "order_saga-v1")
    assert status(engine, instance) == "completed"
    assert stage.calls == ["ReserveFunds", "ShipOrder", "Notify"]


@pytest.mark.row("F-241")
def test_the_order_saga_fails(place: Place) -> None:
    """Shipping fails: it is undone first, then the reservation; both are rolled back, and the user is never told."""
    stage = Stage()
    stage.does("ShipOrder", BROKEN)
    engine = place.engine().register(order_saga(stage))
    instance = run(engine, "order_saga-v1")
    assert status(engine, instance) == "failed"
    assert stage.calls == ["ReserveFunds", "ShipOrder", "CancelShipping", "RefundFunds"]
    assert statuses(engine, instance) == {"reserve_funds": "rolled_back", "ship_order": "rolled_back"}
    assert [each.step_name for each in history(engine, instance, "step_failed")] == ["ship_order"]


# -- 14.2, the smart order saga


def smart_order_saga(stage: Stage) -> SagaDefinition:
    """A condition, a fork with a condition in it, a join, and compensations in all places; each handler is called once."""
    saga = (
        Saga("smart_order_saga", 1)
        .step("validate_order", stage.does("ValidateOrder"), attempts=1)
        .condition(
            "check_inventory",
            "{{ gt .inventory_count 0 }}",
            lambda other: other.step("restock_item", stage.does("RestockItem"), attempts=1).on_failure(
                "notify_out_of_stock", stage.does("NotifyOutOfStock")
            ),
        )
        .then("process_payment", stage.does("ProcessPayment"), attempts=1)
        .on_failure("refund_payment", stage.does("RefundPayment"))
        .fork(
            "fulfillment",
            lambda branch: branch.step("ship_item", stage.does("ShipItem"), attempts=1, priority=9).on_failure(
                "cancel_shipment", stage.does("CancelShipment")
            ),
            lambda branch: branch.condition(
                "check_digital",
                '{{ eq .product_type "digital" }}',
                lambda other: other.step("prepare_physical", stage.does("PreparePhysical"), attempts=1),
            ).then("deliver_digital", stage.does("DeliverDigital"), attempts=1),
        )
    )
    with pytest.warns(DeprecationWarning, match="use join"):
        saga.join_step("fulfillment_join", ["ship_item", "deliver_digital"], "all")
    return saga.then("notify_completion", stage.does("NotifyCompletion"), attempts=1).build()


PAID = ["ValidateOrder", "ProcessPayment"]
UNPAID = ["CancelShipment", "RefundPayment"]


@pytest.mark.row("F-242", "F-141")
@pytest.mark.parametrize(("kind", "last"), [("digital", "DeliverDigital"), ("physical", "PreparePhysical")])
def test_the_smart_saga_goes_well(place: Place, kind: str, last: str) -> None:
    """In stock: paid, shipped, delivered or prepared by the kind of the product, joined, and told."""
    stage = Stage()
    engine = place.engine().register(smart_order_saga(stage))
    instance = run(engine, "smart_order_saga-v1", {"inventory_count": 3, "product_type": kind})
    assert status(engine, instance) == "completed"
    assert stage.calls == [*PAID, "ShipItem", last, "NotifyCompletion"]
    assert statuses(engine, instance)["fulfillment_join"] == "completed"


@pytest.mark.row("F-242", "F-194")
@pytest.mark.parametrize("kind", ["digital", "physical"])
def test_the_smart_saga_restocks(place: Place, kind: str) -> None:
    """Out of stock: the item is restocked, nothing is paid, and the saga is completed."""
    stage = Stage()
    engine = place.engine().register(smart_order_saga(stage))
    instance = run(engine, "smart_order_saga-v1", {"inventory_count": 0, "product_type": kind})
    assert status(engine, instance) == "completed"
    assert stage.calls == ["ValidateOrder", "RestockItem"]


@pytest.mark.row("F-242")
@pytest.mark.parametrize(
    ("item", "fails", "calls"),
    [
        ((3, "digital"), "ValidateOrder", ["ValidateOrder"]),
        ((0, "digital"), "RestockItem", ["ValidateOrder", "RestockItem", "NotifyOutOfStock"]),
        ((3, "digital"), "ProcessPayment", [*PAID, "RefundPayment"]),
        ((3, "digital"), "ShipItem", [*PAID, "ShipItem", *UNPAID]),
        ((3, "physical"), "ShipItem", [*PAID, "ShipItem", *UNPAID]),
        ((3, "digital"), "DeliverDigital", [*PAID, "ShipItem", "DeliverDigital", *UNPAID]),
        ((3, "physical"), "PreparePhysical", [*PAID, "ShipItem", "PreparePhysical", *UNPAID]),
        ((3, "digital"), "NotifyCompletion", [*PAID, "ShipItem", "DeliverDigital", "NotifyCompletion", *UNPAID]),
        ((3, "physical"), "NotifyCompletion", [*PAID, "ShipItem", "PreparePhysical", "NotifyCompletion", *UNPAID]),
    ],
)
def test_the_smart_saga_fails(place: Place, item: tuple[int, str], fails: str, calls: list[str]) -> None:
    """Whichever step fails: only what was executed is undone, the failed step first, then the others in reverse order."""
    stage = Stage()
    stage.does(fails, BROKEN)
    engine = place.engine().register(smart_order_saga(stage))
    instance = run(engine, "smart_order_saga-v1", {"inventory_count": item[0], "product_type": item[1]})
    assert status(engine, instance) == "failed"
    assert stage.calls == calls
    assert set(statuses(engine, instance).values()) <= {"rolled_back", "skipped"}


# -- determinism


def outline(engine: ManualEngine, instance: object) -> list[object]:
    """A history without ids and times."""
    return [
        (each.event_type, each.step_number, each.step_name, each.status, each.retry_count, each.error, each.data)
        for each in history(engine, instance)  # type: ignore[arg-type]
    ]


@pytest.mark.row("F-236")
@pytest.mark.parametrize("fails", ["", "ShipItem", "DeliverDigital", "NotifyCompletion"])
def test_the_same_outcomes_make_the_same_history(place: Place, fails: str) -> None:
    """Two runs of one definition with the same answers of the handlers differ in nothing but ids and times."""
    told = []
    for _ in range(2):
        stage = Stage()
        if fails:
            stage.does(fails, BROKEN)
        engine = place.engine().register(smart_order_saga(stage))
        instance = run(engine, "smart_order_saga", {"inventory_count": 3, "product_type": "digital"})
        told.append(outline(engine, instance))
        place.clock.move(timedelta(minutes=7))
    assert told[0] == told[1]


# -- handlers


@pytest.mark.row("F-246")
def test_what_a_handler_is_told(place: Place) -> None:
    """Its instance, its step, the number of the call, a signal, what the definition says about the step, and the data."""
    seen: list[dict[str, object]] = []

    class Executor:
        """An object with `execute` is a handler too."""

        name = "executor"

        def execute(self, ctx: StepContext, amount: int, currency: str = "EUR") -> dict[str, object]:
            """Look around."""
            seen.append(
                {
                    "instance": ctx.instance,
                    "workflow": ctx.workflow,
                    "step": ctx.step,
                    "attempt": ctx.attempt,
                    "cancelled": ctx.cancelled,
                    "metadata": ctx.metadata,
                    "given": (amount, currency),
                    "data": ctx.input,
                    "key": ctx.idempotency_key,
                }
            )
            if ctx.attempt == 1:
                raise BROKEN
            return {"paid": amount}

    saga = Saga("told").step("pay", "executor", metadata={"provider": "x"}).build()
    engine = place.engine().register(saga).handle("executor", Executor())
    instance = run(engine, "told", {"amount": 5})
    first, second = seen
    assert first == {
        "instance": instance,
        "workflow": "told",
        "step": "pay",
        "attempt": 1,
        "cancelled": False,
        "metadata": {"provider": "x"},
        "given": (5, "EUR"),
        "data": {"amount": 5},
        "key": first["key"],
    }
    assert second == {**first, "attempt": 2}
    assert engine.run(instance).result() == {"amount": 5, "paid": 5}


@pytest.mark.row("F-246")
def test_a_handler_may_be_a_coroutine(place: Place) -> None:
    """Plain and async functions are called alike."""

    async def pay(amount: int) -> dict[str, int]:
        return {"paid": amount}

    engine = place.engine().register(Saga("waits").step("pay", pay).build())
    assert engine.run(run(engine, "waits", {"amount": 5})).result() == {"amount": 5, "paid": 5}


@pytest.mark.row("F-246")
def test_a_handler_may_say_that_trying_again_cannot_help(place: Place) -> None:
    """Then the step has failed after one call, whatever its limit."""
    stage = Stage()
    stage.does("pay", Fail("no such account"))
    engine = place.engine().register(Saga("final").step("pay", stage.does("pay"), attempts=5).build())
    instance = run(engine, "final")
    assert stage.calls == ["pay"]
    assert (status(engine, instance), "no such account" in step(engine, instance, "pay").error) == ("failed", True)


@pytest.mark.row("F-245")
@pytest.mark.row("G-01")
def test_the_output_of_a_step_is_there_for_those_behind_it(place: Place) -> None:
    """An answer that is an object is laid over the data; any other is found under the name of its step; none changes nothing."""
    stage = Stage()
    stage.does("one", {"x": 1})
    stage.does("two", [1, 2])
    saga = Saga("flow")
    for name in ("one", "two", "three", "four"):
        saga.step(name, stage.does(name))
    engine = place.engine().register(saga.build())
    instance = run(engine, "flow", {"x": 0, "y": 9})
    assert stage.contexts("one")[0].input == {"x": 0, "y": 9}
    assert stage.contexts("two")[0].input == {"x": 1, "y": 9}
    assert stage.contexts("two")[0].previous == {"x": 1}
    assert stage.contexts("three")[0].input == {"x": 1, "y": 9, "two": [1, 2]}
    assert stage.contexts("four")[0].input == {"x": 1, "y": 9, "two": [1, 2]}
    assert engine.run(instance).result() == {"x": 1, "y": 9, "two": [1, 2]}


@pytest.mark.row("F-243")
def test_a_step_type_of_ones_own(place: Place) -> None:
    """A named handler is a type of step: definitions use it by name, as often as they like, each time with other metadata."""
    sent: list[tuple[str, object, object]] = []

    def mail(ctx: StepContext) -> None:
        sent.append((ctx.step, ctx.metadata["to"], ctx.input[str(ctx.metadata["about"])]))

    saga = (
        Saga("mails")
        .step("tell customer", "mail", metadata={"to": "customer", "about": "order"})
        .parallel(
            "tell others",
            task("tell boss", "mail", metadata={"to": "boss", "about": "price"}, priority=9),
            task("tell store", "mail", metadata={"to": "store", "about": "order"}),
        )
        .build()
    )
    engine = place.engine().register(saga).handle("mail", mail)
    instance = run(engine, "mails", {"order": 7, "price": 5})
    assert status(engine, instance) == "completed"
    assert sent == [("tell customer", "customer", 7), ("tell boss", "boss", 5), ("tell store", "store", 7)]


@pytest.mark.row("F-244", "F-247")
def test_a_saga_needs_nothing_but_a_database(place: Place) -> None:
    """Definitions are plain values, composed of others and shared by engines in one process; there is no other service."""
    stage = Stage()
    parts = [Saga(f"part {number}").step("work", stage.does("work")).build() for number in range(2)]
    whole = Saga("whole").call("first", "part 0").call("second", "part 1").build()
    engines = [place.engine() for _ in range(2)]
    for engine in engines:
        for each in (*parts, whole):
            engine.register(each)
    instance = run(engines[0], "whole")
    assert status(engines[1], instance) == "completed"
    assert stage.calls == ["work", "work"]


# -- definitions


@pytest.mark.row("F-257")
def test_what_calls_nothing_cannot_be_undone() -> None:
    """A compensation behind a save point, a condition, a fork or a wait is refused when the saga is built."""
    stage = Stage()
    undo = stage.does("undo")
    sagas = [
        Saga("s").save_point("p").on_failure("undo", undo),
        Saga("s").point_of_no_return("p").on_failure("undo", undo),
        Saga("s").condition("p", "{{ eq .a 1 }}").on_failure("undo", undo).step("b", stage.does("b")),
        Saga("s").fork("p", lambda branch: branch.step("a", stage.does("a"))).on_failure("undo", undo),
        Saga("s").wait("p", 1).on_failure("undo", undo),
        Saga("s").on_failure("undo", undo).step("a", stage.does("a")),
    ]
    for saga in sagas:
        with pytest.raises(DefinitionError) as caught:
            saga.build()
        assert [each.code for each in caught.value.diagnostics] == ["nothing_to_undo"]


@pytest.mark.row("F-257")
def test_a_question_and_a_parallel_task_can_be_undone(place: Place) -> None:
    """A compensation behind a human step, or inside a branch, is called in the rollback."""
    stage = Stage()
    stage.does("end", BROKEN)
    saga = (
        Saga("undone")
        .human("ask")
        .on_failure("unask", stage.does("unask"))
        .fork("fork", lambda branch: branch.step("a", stage.does("a")).on_failure("undo a", stage.does("undo a")))
        .join("join")
        .then("end", stage.does("end"), attempts=1)
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "undone")
    decide(engine, instance, "ask")
    engine.drain()
    assert stage.calls == ["a", "end", "undo a", "unask"]


@pytest.mark.row("F-248")
def test_all_headline_features_in_one_saga(place: Place) -> None:
    """Retries, a step that is called once, a save point, a condition, a dynamic join, a person and a smart rollback, together."""
    stage = Stage()
    stage.does("shaky", BROKEN, None)
    stage.does("last", BROKEN)
    saga = (
        Saga("everything")
        .step("kept", stage.does("kept"))
        .on_failure("undo kept", stage.does("undo kept"))
        .save_point("safe")
        .step("shaky", stage.does("shaky"), attempts=2)
        .on_failure("undo shaky", stage.does("undo shaky"))
        .fork(
            "fork",
            lambda branch: (
                branch.condition(
                    "is big",
                    "{{ gt .n 5 }}",
                    lambda other: other.step("small", stage.does("small")).on_failure(
                        "undo small", stage.does("undo small")
                    ),
                )
                .step("big", stage.does("big"))
                .on_failure("undo big", stage.does("undo big"))
            ),
            lambda branch: branch.human("ask"),
        )
        .join("join")
        .then("last", stage.does("last"), no_idempotent=True)
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "everything", {"n": 9})
    decide(engine, instance, "ask")
    engine.drain()
    assert status(engine, instance) == "failed"
    assert stage.calls == ["kept", "shaky", "shaky", "big", "last", "undo big", "undo shaky"]
    found = statuses(engine, instance)
    assert {name for name, each in found.items() if each == "completed"} == {"kept", "safe"}
    assert {each for name, each in found.items() if name not in {"kept", "safe"}} == {"rolled_back"}
