"""Commands that are accepted into the inbox: those of many callers share a transaction, and each caller gets the number of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec
import pytest

from standfast import Engine, PayloadError, StoppedError, StoreUnavailableError
from standfast.errors import StoreError
from standfast.store.ports.store import Writer
from standfast.store.records.instances import StoredMessage
from support.batching import ONE_COMMITTER, Batching
from support.engines import QUICK, Live, Place
from support.samples import Add, Counter, Do, Ledger, Puppet, note
from support.waiting import eventually, together

Accept = Callable[[Writer, Sequence[StoredMessage], datetime], list[int]]


@pytest.fixture
def accepting(monkeypatch: pytest.MonkeyPatch) -> Callable[[Engine, Callable[[Sequence[StoredMessage]], None]], None]:
    """Has each transaction of an engine's inbox looked at, before it is made."""

    def look(engine: Engine, before: Callable[[Sequence[StoredMessage]], None]) -> None:
        kind = type(engine.service.store.writer())
        accept: Accept = kind.accept

        def looked(self: Writer, messages: Sequence[StoredMessage], now: datetime) -> list[int]:
            before(messages)
            return accept(self, messages, now)

        monkeypatch.setattr(kind, "accept", looked)

    return look


Accepting = Callable[[Engine, Callable[[Sequence[StoredMessage]], None]], None]


def test_commands_that_are_accepted_at_once_share_a_transaction(live: Live, accepting: Accepting) -> None:
    """Many threads submit: all of it is accepted once, in one transaction, and each target keeps the order of its callers."""
    engine = live.engine(ONE_COMMITTER).register(Puppet(note))
    sizes: list[int] = []
    accepting(engine, lambda messages: sizes.append(len(messages)))
    numbers: dict[str, list[int]] = {}

    def submitting(key: str) -> Callable[[], None]:
        def submit() -> None:
            calls = engine.futures.deciders
            replies[key] = [calls.submit(Puppet, Do(key, str(step))) for step in range(10)]

        return submit

    replies: dict[str, list[object]] = {}
    with Batching(engine).one():
        together(*(submitting(f"p-{number}") for number in range(8)))
    for key, sent in replies.items():
        numbers[key] = [reply.result(timeout=30) for reply in sent]  # type: ignore[attr-defined]
    assert sizes == [80]
    assert all(each == sorted(each) for each in numbers.values())
    assert len({number for each in numbers.values() for number in each}) == 80
    assert {each.id: (each.key, each.payload["what"]) for each in engine.inbox.list()} == {  # type: ignore[index]
        number: (key, str(step)) for key, each in numbers.items() for step, number in enumerate(each)
    }
    engine.start_worker()
    eventually(lambda: engine.admin.inbox_depth() == 0)
    for key in numbers:
        assert engine.deciders.state(Puppet, key) == tuple(map(str, range(10)))


def test_a_transaction_of_the_inbox_is_bounded(live: Live, accepting: Accepting) -> None:
    """`batch_limit` is the most that are accepted together."""
    engine = live.engine(msgspec.structs.replace(ONE_COMMITTER, batch_limit=7)).register(Counter())
    sizes: list[int] = []
    accepting(engine, lambda messages: sizes.append(len(messages)))
    with Batching(engine).one():
        replies = [engine.futures.deciders.submit(Counter, Add("c-1")) for _ in range(20)]
    assert len({reply.result(timeout=30) for reply in replies}) == 20
    assert (max(sizes), sum(sizes)) == (7, 20)


def test_whoever_operates_does_not_hold_up_what_is_accepted(live: Live) -> None:
    """A command is accepted although an operator's work is under way and does not end."""
    engine = live.engine().register(Counter())
    with engine.service._at_desk:
        assert engine.futures.deciders.submit(Counter, Add("c-1")).result(timeout=30)


def test_a_message_that_the_database_refuses_fails_alone(live: Live, accepting: Accepting) -> None:
    """Its neighbours in the transaction are accepted, in their order; its own caller is told why."""
    engine = live.engine(ONE_COMMITTER).register(Puppet(note))

    def spoil(messages: Sequence[StoredMessage]) -> None:
        if any(each.comment == "bad" for each in messages):
            raise StoreError("not this one")

    accepting(engine, spoil)
    with Batching(engine).one():
        replies = [
            engine.futures.deciders.submit(Puppet, Do("p-1", str(step)), comment="bad" if step == 3 else "")
            for step in range(6)
        ]
    assert [type(reply.exception(timeout=30)) for reply in replies] == [
        StoreError if step == 3 else type(None) for step in range(6)
    ]
    assert [each.payload["what"] for each in engine.inbox.list()] == ["0", "1", "2", "4", "5"]  # type: ignore[index]


def test_an_outage_in_the_middle_is_outlasted(live: Live, accepting: Accepting) -> None:
    """What was surely not accepted is accepted when the database is back; commands go on meanwhile, and each counts once."""
    engine = live.engine(ONE_COMMITTER).register(Counter())
    away, tries = threading.Event(), Ledger()
    away.set()

    def fail(messages: Sequence[StoredMessage]) -> None:
        tries.add("try")
        if away.is_set():
            raise StoreUnavailableError("gone")

    accepting(engine, fail)
    replies = [engine.futures.deciders.submit(Counter, Add("c-1")) for _ in range(5)]
    eventually(lambda: len(tries.entries) >= 2)
    engine.futures.deciders.execute(Counter, Add("c-2")).result(timeout=30)
    assert not any(reply.done() for reply in replies)
    away.clear()
    replies.append(engine.futures.deciders.submit(Counter, Add("c-1")))
    assert len({reply.result(timeout=30) for reply in replies}) == 6
    assert engine.admin.inbox_depth() == 6


def test_only_what_has_an_id_is_sent_again_when_nobody_knows(live: Live, accepting: Accepting) -> None:
    """An answer got lost: the neighbour without an id is told so, the one with an id is accepted in the end."""
    engine = live.engine(ONE_COMMITTER).register(Counter())
    tries = Ledger()

    def lose(messages: Sequence[StoredMessage]) -> None:
        tries.add("try")
        if len(tries.entries) == 1:
            raise StoreUnavailableError("gone", may_be_done=True)

    accepting(engine, lose)
    with Batching(engine).one():
        without = engine.futures.deciders.submit(Counter, Add("c-1"))
        with_id = engine.futures.deciders.submit(Counter, Add("c-2"), command_id="i-1")
    error = without.exception(timeout=30)
    assert isinstance(error, StoreUnavailableError)
    assert error.may_be_done
    assert with_id.result(timeout=30)
    assert [each.key for each in engine.inbox.list()] == ["c-2"]


def test_every_caller_of_the_inbox_is_answered_when_the_engine_stops(live: Live) -> None:
    """While many submit, the engine stops: each call ends, with its number or with StoppedError, and what has a number is stored."""
    engine = live.engine(QUICK).register(Counter())
    accepted, begun = Ledger(), threading.Event()

    def call() -> None:
        while True:
            reply = engine.futures.deciders.submit(Counter, Add("c-1"))
            error = reply.exception(timeout=30)
            if error is not None:
                assert isinstance(error, StoppedError)
                return
            accepted.add(str(reply.result()))
            begun.set()

    def stop() -> None:
        begun.wait(20)
        engine.stop()

    together(*[call] * 8, stop)
    assert live.engine().register(Counter()).admin.inbox_depth() == len(set(accepted.entries)) == len(accepted.entries)


def test_a_driven_engine_accepts_at_once(place: Place) -> None:
    """Without threads the number is there when the call returns, and what cannot be stored is refused before."""
    engine = place.engine().register(Counter())
    assert engine.futures.deciders.submit(Counter, Add("c-1")).done()
    with pytest.raises(PayloadError):
        engine.deciders.submit(Counter, Add("c-1"), comment="\0")
    assert engine.admin.inbox_depth() == 1
