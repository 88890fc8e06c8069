"""The service: the single entrance for everything that happens to an instance."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial

import psycopg
import pytest

from standfast import (
    CommandError,
    Decision,
    Engine,
    Fail,
    Message,
    Moment,
    NotFoundError,
    PayloadError,
    RejectedError,
    Rejection,
    StandfastError,
    StoreError,
)
from standfast.engine.commit.submission import Submission
from support.engines import Live, Place
from support.samples import (
    PATIENCE,
    Act,
    Add,
    Answer,
    Cancel,
    CancelRejected,
    Counter,
    Do,
    Noted,
    Notes,
    Order,
    OrderState,
    Pay,
    Placed,
    Puppet,
    Shop,
    act,
    done,
)
from support.samples import Place as PlaceOrder
from support.waiting import together


def count_submissions(engine: Engine) -> list[Submission]:
    """Every command that reaches the committer of an engine from now on."""
    seen: list[Submission] = []
    submit = engine.service.committer.submit

    def noticed(submission: Submission, *, may_wait: bool = False) -> None:
        seen.append(submission)
        submit(submission, may_wait=may_wait)

    engine.service.committer.submit = noticed  # type: ignore[method-assign]
    return seen


@pytest.mark.row("D-015")
def test_every_batch_of_events_comes_from_one_call_of_the_service(place: Place) -> None:
    """Clients, effect results, timers and the inbox all pass the same door: one command for each cause in the history."""
    engine = place.engine().register(Order(), Shop())
    seen = count_submissions(engine)
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    engine.deciders.submit(Order, PlaceOrder("o-2", 5))
    engine.drain()
    silent = place.engine().register(Order())
    timed_out = count_submissions(silent)
    silent.deciders.execute(Order, PlaceOrder("o-3", 5))
    silent.advance(PATIENCE)
    histories = [silent.deciders.history(Order, f"o-{number}") for number in (1, 2, 3)]
    causes = {recorded.cause for history in histories for recorded in history}
    assert causes == {each.cause for each in (*seen, *timed_out)}
    assert len(causes) == len(seen) + len(timed_out)


@pytest.mark.row("D-016", "D-020", "D-024")
def test_execute_answers_none_once_the_events_are_stored(place: Place) -> None:
    """A call tells success and nothing more; when it returns, another engine reads what it led to."""
    engine = place.engine().register(Counter())
    assert engine.futures.deciders.execute(Counter, Add("c-1", 3)).result() is None
    assert place.engine().register(Counter()).deciders.state(Counter, "c-1") == 3


@pytest.mark.row("D-020")
def test_a_skipped_command_is_a_success(place: Place) -> None:
    """The answer to a command for an instance that has ended is the same as to any other."""
    engine = place.engine().register(Order())
    for command in (PlaceOrder("o-1", 5), Cancel("o-1"), Pay("o-1")):
        assert engine.futures.deciders.execute(Order, command).result() is None


@pytest.mark.row("D-017", "D-018")
@pytest.mark.parametrize(
    "call",
    [
        lambda engine: engine.futures.deciders.execute(Order, PlaceOrder("o-1", 5)),
        lambda engine: engine.futures.deciders.execute_dynamic(
            "order", {"type": "Place", "workflow_id": "o-1", "amount": 5}
        ),
        lambda engine: engine.futures.deciders.execute_dynamic(
            "order", {"workflow_id": "o-1", "amount": 5}, command="Place"
        ),
        lambda engine: engine.futures.deciders.execute_dynamic(
            "order", json.dumps({"type": "Place", "workflow_id": "o-1", "amount": 5})
        ),
        lambda engine: engine.futures.deciders.execute_dynamic(
            "order", b'{"workflow_id": "o-1", "amount": 5}', command="Place"
        ),
    ],
    ids=["typed", "mapping", "named", "text", "bytes"],
)
def test_plain_data_leads_to_the_same_decision(place: Place, call: Callable[[Engine], object]) -> None:
    """Typed and dynamic calls run the same decider from the same registry, with equal events and work."""
    engine = place.engine().register(Order())
    call(engine)
    found = engine.deciders.get(Order, "o-1")
    assert (found.state, [each.event for each in found.history]) == (OrderState("placed", 5), [Placed(5)])
    assert (len(found.effects), len(found.timers)) == (1, 1)


@pytest.mark.row("D-019", "E-064", "E-378", "E-914")
@pytest.mark.parametrize("table", ["instances", "events", "effects", "timers", "inbox", "receipts"])
@pytest.mark.row("C-35")
def test_a_fault_at_any_stage_of_the_commit_leaves_nothing_behind(place: Place, table: str) -> None:
    """Instance, events, effects, timers, messages and receipts are one transaction: if one cannot be written, none is."""
    engine = place.engine().register(Puppet(everything))
    prefix = "" if place.url.startswith("sqlite") else "standfast."
    refuse(place, f"{prefix}{table}")
    with pytest.raises(StoreError) as caught:
        engine.deciders.execute(Puppet, Do("p-1", "x"), command_id="k-1")
    assert caught.value.code == "store_failed"
    assert engine.instances.list() == []
    assert engine.admin.backlog() == []


def everything(state: Notes, command: Do, moment: Moment) -> Answer:
    """A decision that writes to every table."""
    decision = Decision.event(Noted(command.what)).with_effect(Act("x"))
    decision = decision.with_timer_after(PATIENCE, Do("p-1", "y"))
    return decision.with_message(Message(decider="puppet", command=Do("p-2", "z")))


def refuse(place: Place, table: str) -> None:
    """Have the database refuse new rows of a table."""
    if place.url.startswith("sqlite"):
        with place.store._database.writing() as connection:  # type: ignore[attr-defined]
            connection.execute(
                f"create trigger stop before insert on {table} begin select raise(abort, 'no more {table}'); end"
            )
        return
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute(
            f"create trigger stop before insert on {table} execute function standfast.refuse('HF999', 'no')"
        )


@pytest.mark.row("D-021", "D-022")
@pytest.mark.row("C-11")
def test_a_business_refusal_is_an_event_and_no_error(place: Place) -> None:
    """Cancelling what is paid already is answered by an event; the call succeeds."""
    engine = place.engine().register(Order())
    for command in (PlaceOrder("o-1", 5), Pay("o-1"), Cancel("o-1")):
        engine.deciders.execute(Order, command)
    found = engine.deciders.get(Order, "o-1")
    assert found.history[-1].event == CancelRejected("paid")
    assert found.state.status == "paid"


@pytest.mark.row("D-023", "D-121")
def test_outcomes_are_read_from_state_events_and_snapshot(place: Place) -> None:
    """A caller learns what came of a command by reading: the state, the events in order, or all of it."""
    engine = place.engine().register(Order())
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    engine.deciders.execute(Order, Pay("o-1"))
    assert engine.deciders.state(Order, "o-1").status == "paid"
    history = engine.deciders.history(Order, "o-1")
    assert [(each.sequence, each.type) for each in history] == [(1, "Placed"), (2, "Paid"), (3, "$timer_cancelled")]
    assert engine.deciders.get(Order, "o-1").history == history


@pytest.mark.row("D-025")
def test_a_failing_handler_does_not_touch_the_call(place: Place) -> None:
    """Effects come later: when one fails for good, the command that asked for it has long succeeded."""

    def broken(context: object, effect: object) -> None:
        raise Fail("no luck")

    engine = place.engine().register(Puppet(act), broken)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert engine.deciders.state(Puppet, "p-1") == ("x",)
    assert [letter.error for letter in engine.dead_letters.list()] == ["Fail: no luck"]


@pytest.mark.row("D-026")
def test_an_unknown_type_is_an_error_and_stores_nothing(place: Place) -> None:
    """A call for a decider that nobody registered names it and the ones that are."""
    engine = place.engine().register(Order())
    with pytest.raises(NotFoundError, match=r"no decider or workflow 'odrer'.*registered are: order") as caught:
        engine.deciders.execute_dynamic("odrer", {"type": "Place", "workflow_id": "o-1", "amount": 5})
    assert caught.value.code == "not_found"
    assert engine.instances.list() == []


@pytest.mark.row("D-027")
@pytest.mark.parametrize(
    ("payload", "command", "said"),
    [
        ({"type": "Place", "workflow_id": "o-1"}, "", "^Place.amount is missing$"),
        ({"type": "Place", "workflow_id": "o-1", "amount": "many"}, "", "^Place.amount must be int, got str$"),
        ({"type": "Plaec", "workflow_id": "o-1"}, "", "has no command 'Plaec'; it has Place, Pay"),
        ({"workflow_id": "o-1"}, "", "has no command ''"),
        (b"\xff\xfe", "Place", "not JSON"),
        ("{", "Place", "not JSON"),
        ("[" * 100_000, "Place", "not JSON"),
        ("[1, 2]", "Place", "must be an object"),
        ("null", "Place", "must be an object"),
    ],
)
def test_a_payload_that_cannot_be_read_is_an_error_and_stores_nothing(
    place: Place, payload: dict[str, object] | bytes | str, command: str, said: str
) -> None:
    """Plain data that is no command of the decider is refused with a reason."""
    engine = place.engine().register(Order())
    with pytest.raises(PayloadError, match=said) as caught:
        engine.deciders.execute_dynamic("order", payload, command=command)
    assert caught.value.code == "bad_payload"
    assert engine.instances.list() == []


@pytest.mark.row("D-028")
def test_two_first_commands_at_once_make_one_instance(live: Live) -> None:
    """Whoever comes second finds the instance of the first: one instance, both events, in sequence."""
    first, second = live.engine().register(Counter()), live.engine().register(Counter())
    for number in range(20):
        key = f"c-{number}"
        together(
            partial(count_one, first, key),
            partial(count_one, second, key),
        )
        assert [each.sequence for each in first.deciders.history(Counter, key)] == [1, 2]
    assert len(first.instances.list()) == 20


def count_one(engine: Engine, key: str) -> None:
    """Add one to a counter."""
    engine.deciders.execute(Counter, Add(key))


@pytest.mark.row("D-029")
@pytest.mark.parametrize("where", ["decide", "evolve"])
def test_an_exception_in_a_decider_persists_nothing(place: Place, where: str) -> None:
    """A decider that raises fails the command, with its own exception as the cause, and the stream stays as it was."""
    engine = place.engine().register(Stumbling(where))
    engine.deciders.execute(Stumbling, Do("p-1", "fine"))
    with pytest.raises(CommandError, match="stumbled") as caught:
        engine.deciders.execute(Stumbling, Do("p-1", "stumble"))
    assert caught.value.code == "decider_failed"
    assert isinstance(caught.value.__cause__, ValueError)
    engine.deciders.execute(Stumbling, Do("p-1", "again"))
    assert engine.deciders.state(Stumbling, "p-1") == ("fine", "again")


class Stumbling(Puppet):
    """Raises on the word `stumble`."""

    type = "stumbling"

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where

    def decide(self, state: Notes, command: Do, moment: Moment) -> Answer:
        self._stumble("decide", command.what)
        return super().decide(state, command, moment)

    def evolve(self, state: Notes, event: Noted) -> Notes:
        self._stumble("evolve", event.what)
        return super().evolve(state, event)

    def _stumble(self, where: str, what: str) -> None:
        if where == self._where and what == "stumble":
            raise ValueError("stumbled")


def test_a_caller_may_wait_for_an_answer_or_await_it(live: Live) -> None:
    """One reply serves threads and coroutines alike, with the same value or error."""
    engine = live.engine().register(Counter())

    async def many() -> int:
        await asyncio.gather(*(engine.futures.deciders.execute(Counter, Add("c-1")) for _ in range(50)))
        with pytest.raises(NotFoundError):
            await engine.aio.deciders.state(Counter, "nobody")
        return await engine.aio.deciders.state(Counter, "c-1")

    assert asyncio.run(many()) == 50


def test_errors_are_of_one_family_and_say_whether_to_try_again(place: Place) -> None:
    """Whatever a call raises on purpose is a StandfastError with a code."""
    engine = place.engine().register(Order(), done)
    failures = [
        engine.futures.deciders.execute(Order, Pay("o-1")).exception(),
        engine.futures.deciders.state(Order, "o-1").exception(),
        engine.futures.dead_letters.requeue(7).exception(),
        engine.futures.dead_letters.discard(7).exception(),
        engine.futures.projections.rebuild("nothing").exception(),
    ]
    for error in failures:
        assert isinstance(error, StandfastError)
        assert error.code
        assert not error.retryable


@pytest.mark.row("D-111")
def test_a_command_that_was_carried_out_is_not_refused_the_second_time(place: Place) -> None:
    """Whoever repeats a command with its id hears that it succeeded, also where its own success made it impossible."""

    def once(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what in state:
            return Rejection(code="again", message="once is enough")
        return Decision.event(Noted(command.what))

    place.engine().register(Puppet(once)).deciders.execute(Puppet, Do("p-1", "pay"), command_id="c-1")
    for _ in range(2):  # By a process that has never met the instance, and by one that remembers it.
        engine = place.engine().register(Puppet(once))
        engine.deciders.execute(Puppet, Do("p-1", "pay"), command_id="c-1")
        engine.deciders.execute(Puppet, Do("p-1", "pay"), command_id="c-1")
        assert isinstance(
            engine.futures.deciders.execute(Puppet, Do("p-1", "pay"), command_id="c-2").exception(), RejectedError
        )
    assert engine.deciders.state(Puppet, "p-1") == ("pay",)
