"""The inbox: commands that are accepted now and carried out soon, and commands that count once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

import msgspec
import psycopg
import pytest

from standfast import (
    ConfigurationError,
    Decider,
    Decision,
    Engine,
    Ignored,
    Message,
    Moment,
    NotFoundError,
    PayloadError,
    Rejection,
    RetryPolicy,
    ReusedIdError,
    Saga,
    Settings,
)
from standfast.kernel.codec.canonical import canonical_hash
from standfast.store.records.instances import Address
from support.engines import Live, Place
from support.ruining import Ruin
from support.samples import (
    Add,
    Added,
    Answer,
    Counter,
    Do,
    Doll,
    Noted,
    Notes,
    Order,
    Puppet,
    Purse,
    Receiver,
    Send,
    Sender,
    act,
)
from support.samples import Place as PlaceOrder
from support.waiting import eventually

MINUTE = timedelta(minutes=1)
PATIENT = Settings(command_retry=RetryPolicy(max_attempts=3, delay=MINUTE, backoff="fixed", jitter=0))


@pytest.mark.row("D-106", "D-107")
def test_an_accepted_command_survives_until_it_is_carried_out(place: Place) -> None:
    """`submit` answers with a number when the command is stored; another process carries it out."""
    first = place.engine().register(Counter())
    numbers = [first.deciders.submit(Counter, Add("c-1")) for _ in range(3)]
    assert numbers == sorted(set(numbers))
    assert first.admin.inbox_depth() == 3
    assert first.instances.list() == []
    second = place.engine().register(Counter())
    second.drain()
    assert second.deciders.state(Counter, "c-1") == 3
    assert second.admin.inbox_depth() == 0


@pytest.mark.row("D-108")
def test_execute_is_synchronous_and_submit_is_not(place: Place) -> None:
    """The inbox is another method: `execute` never waits in it."""
    engine = place.engine().register(Counter())
    engine.deciders.execute(Counter, Add("c-1"))
    assert engine.deciders.state(Counter, "c-1") == 1
    engine.deciders.submit(Counter, Add("c-1"))
    assert engine.deciders.state(Counter, "c-1") == 1


@pytest.mark.row("D-109")
def test_messages_of_one_instance_are_carried_out_in_order(live: Live) -> None:
    """Two processes share an inbox; whichever takes a message, each instance sees the order of acceptance."""
    workers = [live.engine().register(Puppet()).start_worker() for _ in range(2)]
    for step in range(30):
        for key in ("p-1", "p-2", "p-3"):
            workers[step % 2].deciders.submit(Puppet, Do(key, str(step)))
    eventually(lambda: workers[0].admin.inbox_depth() == 0)
    for key in ("p-1", "p-2", "p-3"):
        assert workers[0].deciders.state(Puppet, key) == tuple(map(str, range(30)))


def failing(*, times: int) -> Puppet:
    """A puppet that fails on A so many times before it gives way."""
    left = [times]

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "A" and left[0]:
            raise ValueError("not A")
        return Decision.event(Noted(command.what))

    puppet = Puppet(choose)
    puppet.left = left  # type: ignore[attr-defined]
    return puppet


@pytest.mark.row("D-109")
def test_a_message_that_is_tried_again_holds_back_those_behind_it(place: Place) -> None:
    """While A waits for its retry B waits too, and other instances do not."""
    engine = place.engine(PATIENT).register(puppet := failing(times=1))
    for key, what in (("p-1", "A"), ("p-1", "B"), ("p-2", "C")):
        engine.deciders.submit(Puppet, Do(key, what))
    engine.drain()
    assert engine.deciders.state(Puppet, "p-2") == ("C",)
    assert engine.admin.inbox_depth() == 2
    puppet.left[0] = 0  # type: ignore[attr-defined]
    engine.deciders.submit(Puppet, Do("p-1", "D"))
    engine.advance(MINUTE)
    assert engine.deciders.state(Puppet, "p-1") == ("A", "B", "D")


@pytest.mark.row("D-109")
def test_a_message_that_gives_up_lets_the_next_one_pass(place: Place) -> None:
    """After its last attempt A is a dead letter and B is carried out; requeued, A comes after B."""
    engine = place.engine(PATIENT).register(puppet := failing(times=9))
    for what in ("A", "B"):
        engine.deciders.submit(Puppet, Do("p-1", what))
    engine.advance(hours=1)
    assert engine.deciders.state(Puppet, "p-1") == ("B",)
    (letter,) = engine.dead_letters.list()
    assert (letter.source, letter.reason, letter.attempts) == ("inbox", "decider_failed", 3)
    puppet.left[0] = 0  # type: ignore[attr-defined]
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    assert engine.deciders.state(Puppet, "p-1") == ("B", "A")


@pytest.mark.row("E-371", "E-372", "E-374", "E-928")
def test_what_comes_in_and_what_goes_out_are_two_queues(place: Place) -> None:
    """Messages and effects have tables, rules for another try, lists and dead letters of their own, and neither waits for the other."""
    slow = RetryPolicy(max_attempts=2, delay=60 * MINUTE, backoff="fixed", jitter=0)
    settings = msgspec.structs.replace(PATIENT, retry=slow)

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "A":
            raise ValueError("not A")
        return act(state, command, moment)

    def fails(context: object, effect: object) -> None:
        raise LookupError

    engine = place.engine(settings).register(Puppet(choose), fails)
    engine.deciders.submit(Puppet, Do("p-1", "A"))
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    ruin = Ruin(place.store)
    for table, name in (("inbox", "puppet"), ("effects", "puppet")):
        ((attempts, error),) = ruin.rows(f"select attempts, error from {{}}{table}")
        assert (name, attempts, bool(error)) == (name, 1, True)
        assert {"tenant", "data", "context", "created_at", "error", "attempts"} <= set(ruin.columns(table))
    assert [(each.kind, each.count) for each in engine.admin.backlog()] == [("effect", 1), ("inbox", 1)]
    assert [each.type for each in engine.inbox.list()] == ["Do"]
    assert [each.type for each in engine.deciders.get(Puppet, "p-1").effects] == ["Act"]
    engine.advance(3 * MINUTE)
    assert [(each.source, each.attempts) for each in engine.dead_letters.list()] == [("inbox", 3)]
    engine.advance(hours=2)
    assert engine.dead_letters.count(source="inbox") == 1
    (letter,) = engine.dead_letters.list(source="effect")
    assert (letter.attempts, letter.reason) == (2, "handler_failed")
    assert engine.admin.backlog() == []


def test_a_message_that_its_target_rejects_is_a_dead_letter_and_nothing_more(place: Place) -> None:
    """It is not tried again, the sender does not hear of it, and what comes behind it is carried out."""

    def send(state: Notes, command: Do, moment: Moment) -> Answer:
        noted = Decision.event(Noted(command.what))
        return noted.with_message(Message(decider="doll", command=Do("d-1", command.what)))

    def refuse(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "bad":
            return Rejection(code="not_now", message="come back later")
        return Decision.event(Noted(command.what))

    engine = place.engine().register(Puppet(send)).register(Doll(refuse))
    for what in ("bad", "good"):
        engine.deciders.execute(Puppet, Do("p-1", what))
    engine.drain()
    assert engine.deciders.state(Puppet, "p-1") == ("bad", "good")
    assert engine.deciders.state(Doll, "d-1") == ("good",)
    (letter,) = engine.dead_letters.list(definition="doll", key="d-1", source="inbox")
    assert (letter.reason, letter.error, letter.attempts) == ("not_now", "come back later [not_now]", 1)


@pytest.mark.row("D-110")
def test_drain_is_the_flush_that_tests_need(place: Place) -> None:
    """After `drain` everything that was accepted is carried out, with all that follows from it."""
    engine = place.engine().register(Sender()).register(Receiver())
    engine.deciders.submit(Sender, Send("s-1", "r-1", 5))
    assert engine.drain() > 0
    assert engine.drain() == 0
    assert engine.deciders.state(Sender, "s-1") == "confirmed"


@pytest.mark.row("D-111")
def test_a_command_id_counts_once_for_its_instance(place: Place) -> None:
    """The second call with an id succeeds and changes nothing, in this process and in any other; other ids count."""
    engine = place.engine().register(Counter())
    for _ in range(2):
        engine.deciders.execute(Counter, Add("c-1", 1), command_id="k-1")
    other = place.engine().register(Counter())
    other.deciders.execute(Counter, Add("c-1", 1), command_id="k-1")
    other.deciders.execute(Counter, Add("c-1", 100), command_id="k-2")
    other.deciders.execute(Counter, Add("c-2", 1), command_id="k-1")
    assert other.deciders.state(Counter, "c-1") == 101
    assert other.deciders.state(Counter, "c-2") == 1


@pytest.mark.row("D-111")
def test_a_command_id_counts_once_over_calls_inbox_and_messages(place: Place) -> None:
    """Whether a command is executed or submitted, its id is remembered in one place."""
    engine = place.engine().register(Counter())
    for _ in range(2):
        engine.deciders.submit(Counter, Add("c-1"), command_id="k-1")
    engine.deciders.execute(Counter, Add("c-1"), command_id="k-1")
    engine.drain()
    assert engine.deciders.state(Counter, "c-1") == 1
    assert engine.admin.inbox_depth() == 0


@pytest.mark.row("D-111")
def test_a_command_that_failed_may_be_sent_again_with_its_id(place: Place) -> None:
    """An id is remembered for what was carried out, not for what was refused."""
    is_open = [False]

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if not is_open[0]:
            raise ValueError("closed")
        return Decision.event(Noted(command.what))

    engine = place.engine().register(Puppet(choose))
    assert engine.futures.deciders.execute(Puppet, Do("p-1", "x"), command_id="k-1").exception() is not None
    is_open[0] = True
    for _ in range(2):
        engine.deciders.execute(Puppet, Do("p-1", "x"), command_id="k-1")
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


@pytest.mark.row("D-111")
def test_an_id_whose_command_found_nothing_to_do_is_remembered(place: Place) -> None:
    """Ignored is an answer: the same command with the same id does nothing later either, whether there is an instance or not."""
    is_open = [False]

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted(command.what)) if is_open[0] or command.what == "begin" else Ignored()

    engine = place.engine().register(Puppet(choose))
    engine.deciders.execute(Puppet, Do("p-1", "begin"))
    for key in ("p-1", "p-2"):
        engine.deciders.execute(Puppet, Do(key, "late"), command_id="k-1")
        engine.deciders.submit(Puppet, Do(key, "later"), command_id="k-2")
    engine.drain()
    is_open[0] = True
    for each in (engine, place.engine().register(Puppet(choose))):
        for key in ("p-1", "p-2"):
            each.deciders.execute(Puppet, Do(key, "late"), command_id="k-1")
            each.deciders.submit(Puppet, Do(key, "later"), command_id="k-2")
        each.drain()
    assert engine.deciders.state(Puppet, "p-1") == ("begin",)
    assert isinstance(engine.futures.deciders.state(Puppet, "p-2").exception(), NotFoundError)
    assert engine.admin.inbox_depth() == 0


@pytest.mark.row("D-111")
def test_an_id_stands_for_one_command(place: Place) -> None:
    """Another command with an id that was used is refused, not dropped; as a message it is a dead letter that says so."""
    engine = place.engine().register(Counter())
    engine.deciders.execute(Counter, Add("c-1", 1), command_id="k-1")
    with pytest.raises(ReusedIdError, match="'k-1' was used before, for another command") as caught:
        engine.deciders.execute(Counter, Add("c-1", 10), command_id="k-1")
    assert (caught.value.code, caught.value.retryable) == ("reused_id", False)
    engine.deciders.submit(Counter, Add("c-1", 10), command_id="k-1")
    engine.drain()
    (letter,) = engine.dead_letters.list()
    assert (letter.reason, letter.attempts, letter.command_id) == ("reused_id", 1, "k-1")
    assert engine.deciders.state(Counter, "c-1") == 1


@dataclass(frozen=True)
class Tag:
    workflow_id: str
    words: frozenset[str]
    more: dict[str, int]


class Tagged(Decider[int, Tag, Added, None]):
    """Takes commands whose fields have no order."""

    type = "tagged"

    def initial(self) -> int:
        return 0

    def evolve(self, state: int, event: Added) -> int:
        return state + event.by

    def decide(self, state: int, command: Tag, moment: Moment) -> Answer:
        return Decision.event(Added(1))


def test_the_same_command_is_the_same_in_whatever_order_it_comes(place: Place) -> None:
    """Sets and dicts have no order that counts: a command made anew is the same command."""
    engine = place.engine().register(Tagged())
    for words, more in (("abcdefgh", {"x": 1, "y": 2}), ("hgfedcba", {"y": 2, "x": 1})):
        engine.deciders.execute(Tagged, Tag("t-1", frozenset(words), more), command_id="k-1")
        engine.deciders.submit(Tagged, Tag("t-1", frozenset(words), more), command_id="k-1")
    engine.drain()
    assert (engine.deciders.state(Tagged, "t-1"), engine.dead_letters.list()) == (1, [])


class Shop(Puppet):
    type = "shop"


class ShopOrder(Puppet):
    type = "shop:order"


class Percent(Puppet):
    type = "shop%3Aorder"


class Start(Puppet):
    type = "start"


@pytest.mark.row("D-111")
def test_ids_of_different_instances_never_meet(place: Place) -> None:
    """However colons are spread over types and keys, an id counts for its own instance, and messages wait in its own queue."""
    engine = place.engine().register(Shop()).register(ShopOrder()).register(Percent()).register(Start())
    engine.register(Saga("order").wait("w", 3600).build())
    wanted = [(Shop, "order:1"), (ShopOrder, "1"), (Percent, "1"), (Start, "order")]
    for decider, key in wanted:
        engine.deciders.execute(decider, Do(key, "x"), command_id="k")
        engine.deciders.submit(decider, Do(key, "y"), command_id="m")
    engine.start("order", idempotency_key="k")
    engine.drain()
    assert [engine.deciders.state(decider, key) for decider, key in wanted] == [("x", "y")] * 4
    names = {Address(tenant="default", definition=decider.type, key=key).name for decider, key in wanted}
    assert len(names) == len(wanted)


@pytest.mark.row("D-112")
def test_equal_commands_count_once_within_the_window_when_asked_for(place: Place) -> None:
    """With the command's hash as its id an equal command is a duplicate until the receipts are forgotten; off by default."""
    engine = place.engine(Settings(keep_receipts=timedelta(hours=1))).register(Counter())
    same = canonical_hash({"type": "Add", "by": 1})
    for minutes in (0, 59):
        engine.advance(minutes=minutes)
        engine.deciders.execute(Counter, Add("c-1"), command_id=same)
    assert engine.deciders.state(Counter, "c-1") == 1
    engine.advance(hours=2)
    engine.deciders.execute(Counter, Add("c-1"), command_id=same)
    assert engine.deciders.state(Counter, "c-1") == 2
    for _ in range(2):
        engine.deciders.execute(Counter, Add("c-1"))
    assert engine.deciders.state(Counter, "c-1") == 4


def test_messages_between_deciders_arrive_once_and_in_order(place: Place) -> None:
    """A decision can tell another instance, of another type too; the messages are part of its commit."""
    engine = place.engine().register(Sender()).register(Receiver())
    for number in range(4):
        engine.deciders.execute(Sender, Send(f"s-{number}", "r-1", number))
    engine.drain()
    senders = [f"s-{number}" for number in range(4)]
    assert engine.deciders.state(Receiver, "r-1") == Purse(6, senders)
    assert [engine.deciders.state(Sender, key) for key in senders] == ["confirmed"] * 4


def test_a_message_can_name_its_target_and_an_id(place: Place) -> None:
    """A message goes to the key or the instance it names, and with an id it counts once."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        if command.what != "tell":
            return decision
        told = Message(decider="doll", command=Do("unused", "told"), key="d-1", command_id="only-once")
        return decision.with_message(told).with_message(told)

    engine = place.engine().register(Puppet(choose)).register(Doll())
    engine.deciders.execute(Puppet, Do("p-1", "tell"))
    engine.drain()
    assert engine.deciders.state(Doll, "d-1") == ("told",)
    target = engine.deciders.get(Doll, "d-1").id

    def choose_by_id(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted("x")).with_message(
            Message(decider="doll", command=Do("unused", "by id"), instance=target)
        )

    second = place.engine().register(Puppet(choose_by_id)).register(Doll())
    second.deciders.execute(Puppet, Do("p-2", "tell"))
    second.drain()
    assert second.deciders.state(Doll, "d-1") == ("told", "by id")


@pytest.mark.row("D-084")
def test_a_message_for_an_unknown_type_waits_for_a_process_that_knows_it(place: Place) -> None:
    """Old code leaves the messages of a new type alone and carries out its own."""
    new = place.engine().register(Puppet()).register(Doll())
    new.deciders.submit(Puppet, Do("p-1", "new"))
    new.deciders.submit(Doll, Do("d-1", "old"))
    old = place.engine().register(Doll())
    old.drain()
    assert old.deciders.state(Doll, "d-1") == ("old",)
    assert new.dead_letters.list() == []
    new.drain()
    assert new.deciders.state(Puppet, "p-1") == ("new",)


@contextmanager
def transaction(live: Live) -> Iterator[sqlite3.Connection | psycopg.Connection[tuple[object, ...]]]:
    """A transaction of the caller's own on the engine's database."""
    if live.url.startswith("sqlite"):
        with closing(sqlite3.connect(live.url.removeprefix("sqlite:///"), timeout=30)) as file, file:
            yield file
        return
    with psycopg.connect(live.url) as server:
        yield server


@pytest.mark.row("D-106")
def test_a_command_can_be_accepted_in_the_callers_own_transaction(live: Live) -> None:
    """What is rolled back was never accepted; what is committed is carried out."""
    engine = live.engine().register(Counter()).start_worker()
    with suppress(ZeroDivisionError), transaction(live) as connection:
        engine.deciders.submit(Counter, Add("c-1", 100), connection=connection)
        raise ZeroDivisionError
    with transaction(live) as connection:
        engine.deciders.submit(Counter, Add("c-1", 1), connection=connection)
    eventually(engine.instances.list)
    assert engine.deciders.state(Counter, "c-1") == 1


def test_a_connection_to_something_else_is_refused(live: Live) -> None:
    """Only a connection of the engine's own driver can carry a command."""
    engine = live.engine().register(Counter())
    with pytest.raises(ConfigurationError, match="connection to"):
        engine.deciders.submit(Counter, Add("c-1"), connection=object())


def test_sql_alone_can_submit_a_command(postgres_dsn: str) -> None:
    """On Postgres a function takes commands from any language, in the transaction that calls it."""
    with Engine(postgres_dsn).register(Order()) as engine:
        with psycopg.connect(postgres_dsn) as connection:
            connection.execute(
                "select standfast.submit('order', 'Place', $${\"workflow_id\": \"o-1\", \"amount\": 7}$$, key => 'o-1')"
            )
        eventually(engine.instances.list)
        assert engine.deciders.state(Order, "o-1").amount == 7
        assert engine.deciders.history(Order, "o-1")[0].actor == "postgres"
        engine.register(Saga("parcel").step("send", lambda sku: {"parcel": sku}).build())
        with psycopg.connect(postgres_dsn) as connection:  # As a session for coroutines would: it can start a run, too.
            start = (
                "select standfast.submit('parcel', 'StartWorkflow', $${\"input\": {\"sku\": \"lamp\"}}$$, key => 'p-1')"
            )
            connection.execute(start)
        [sent] = eventually(lambda: engine.runs.list(key="p-1").items)
        assert engine.run(sent.id).result(timeout=60) == {"sku": "lamp", "parcel": "lamp"}


def test_a_message_that_cannot_be_read_is_buried_with_its_reason(place: Place) -> None:
    """Data that does not fit its command is of no use to anybody: the message does not block its neighbours; its letter says why."""
    engine = place.engine().register(Order())
    good = engine.futures.deciders._message(
        engine.registry.get("default", "order"), PlaceOrder("o-1", 1), command_id="", comment=""
    )
    bad = [
        msgspec.structs.replace(good, data=b"\xff"),
        msgspec.structs.replace(good, data=b'{"workflow_id": 7}'),
    ]
    place.store.writer().accept([*bad, good], place.clock.now())
    engine.advance(hours=1)
    assert [letter.reason for letter in engine.dead_letters.list()] == ["bad_payload", "bad_payload"]
    assert engine.deciders.state(Order, "o-1").amount == 1


@pytest.mark.parametrize("key", ["", "x" * 513, "\x00", "\ud800"])
def test_keys_and_ids_that_no_database_can_keep_are_refused(place: Place, key: str) -> None:
    """An instance's key and a command's id are text of a bounded size; the refusal comes before any write."""
    engine = place.engine().register(Counter())
    for call in (engine.deciders.execute, engine.deciders.submit):
        with pytest.raises(PayloadError):
            call(Counter, Add(key))
        if key:
            with pytest.raises(PayloadError, match="command id"):
                call(Counter, Add("c-1"), command_id=key)
    assert engine.instances.list() == []
    assert engine.admin.inbox_depth() == 0


def test_tenants_do_not_wait_for_one_another(place: Place) -> None:
    """The same key of two tenants is two queues: a message that fails holds back its own tenant's alone."""
    engine = place.engine(PATIENT).register(puppet := failing(times=1))
    for tenant, what in (("red", "A"), ("red", "B"), ("blue", "C")):
        engine.as_tenant(tenant).deciders.submit(Puppet, Do("p-1", what))
    engine.drain()
    assert engine.admin.inbox_depth() == 2
    assert engine.as_tenant("blue").deciders.state(Puppet, "p-1") == ("C",)
    puppet.left[0] = 0  # type: ignore[attr-defined]
    engine.advance(MINUTE)
    assert engine.as_tenant("red").deciders.state(Puppet, "p-1") == ("A", "B")
