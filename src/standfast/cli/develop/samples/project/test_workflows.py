"""How the workflows of this project are tried: no server, no waiting. Run it with pytest."""

from standfast.testing import ManualEngine, given
from workflows import Subscribe, Subscribed, Trial, publish, register


def opened() -> ManualEngine:
    """An engine whose clock is the test's own."""
    engine = ManualEngine()
    register(engine)
    return engine


def test_an_order_is_shipped_once_it_is_packed() -> None:
    """It waits for the signal, and then goes on."""
    engine = opened()
    run = engine.start("order", {"sku": "lamp", "amount": 5})
    engine.drain()
    run.signal("packed")
    engine.drain()
    assert run.describe().status == "completed"


def test_what_was_reserved_is_released_if_the_charge_fails() -> None:
    """The step is tried three times; then completed steps are undone, and the charge too, because its outcome is unknown."""
    engine = opened()
    run = engine.start("order", {"sku": "lamp", "amount": 0})
    engine.advance(minutes=1)
    assert run.describe().status == "failed"
    assert [each.status for each in run.steps()] == ["rolled_back", "rolled_back"]


def test_a_trial_begins() -> None:
    """Deciders are tried without an engine."""
    given(Trial()).when(Subscribe("ann")).then(Subscribed())


def test_finance_approves_an_expense() -> None:
    """A task waits for a holder of the role."""
    engine = opened()
    run = engine.start("expense", {"who": "ann", "amount": 80})
    engine.drain()
    [task] = engine.tasks.list()
    engine.tasks.approve(task)
    engine.drain()
    assert run.describe().status == "completed"


def test_a_small_discount_is_allowed_and_a_large_one_waits() -> None:
    """Rules decide by the data."""
    engine = opened()
    small, large = (engine.start("discount", {"customer": "bob", "percent": each}) for each in (5, 30))
    engine.drain()
    assert (small.describe().status, large.describe().status) == ("completed", "paused")


def test_finance_approves_a_claim() -> None:
    """A document that is submitted waits for its approval, and cannot be changed afterwards."""
    engine = opened()
    publish(engine)
    engine.documents.create("claim", {"number": "C-1", "grand_total": 5}, id="C-1")
    engine.documents.transition("claim", "C-1", "submit")
    engine.drain()
    [task] = engine.tasks.list()
    engine.tasks.approve(task, document_version=task.document_version)
    engine.drain()
    assert engine.documents.get("claim", "C-1").status == "approved"
