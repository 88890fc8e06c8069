"""Each setting changes what an engine does: for every field a small scene that ends differently for two of its values."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import pytest

from app.documents.orders import GIVEN as ORDER
from app.documents.orders import SELLER
from app.documents.orders import body as body_of_orders
from app.documents.orders import register as register_orders
from app.sagas.acting import Gate
from faults.test_bad_databases import spoilt
from outbound.serving import serving
from standfast import (
    Actor,
    Decision,
    EffectContext,
    Moment,
    Notice,
    PayloadError,
    RetryPolicy,
    Saga,
    Settings,
    StoreUnavailableError,
    Webhook,
    load_rules,
)
from standfast.engine.common.clock import ManualClock
from standfast.engine.common.telemetry import Committed, Happening
from standfast.store.ports.reading import TenantReader
from standfast.store.ports.store import Transaction
from standfast.store.records.instances import Address, Borrower, Claim, StoredMessage
from standfast.testing import ManualEngine
from standfast.testing.manual import START
from support.desks import Desk
from support.engines import AT_ONCE, Live
from support.inside import store_of
from support.installing import install_invoker
from support.mailing import PASSWORD, mail_server
from support.samples import END, Act, Add, Answer, Counter, Do, Noted, Notes, Puppet, act, done
from support.waiting import LONG_SECONDS, arrives, eventually

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


class Case(NamedTuple):
    """A scene, and what is seen in it for each of some values of the setting."""

    play: Callable[[Live, Settings], object]
    outcomes: Sequence[tuple[object, object]]
    others: Mapping[str, object] = MappingProxyType({})
    """Other settings that the scene needs."""


def without(settings: Mapping[str, object], name: str) -> Mapping[str, object]:
    """These settings but for one."""
    return {each: value for each, value in settings.items() if each != name}


def driven(live: Live, settings: Settings) -> ManualEngine:
    """An engine that the scene drives."""
    return ManualEngine(live.url, settings=settings, is_alone=False)


# -- who works, and how much at a time


def _name_of_the_worker(live: Live, settings: Settings) -> object:
    with driven(live, settings) as engine:
        engine.drain()
        return [each.name for each in engine.admin.workers()]


def _calls_taken_at_once(live: Live, settings: Settings) -> object:
    with driven(live, settings).register(Puppet(), done) as engine:
        engine.drain()
        return sum(engine.runtime.worker.reserve("puppet") for _ in range(9))


def _plain_calls_at_once(live: Live, settings: Settings) -> object:
    """Three calls are in hand at once; the first ones wait until as many of them are inside as there are threads."""
    inside, peak, lock, met = [0], [0], threading.Lock(), threading.Event()
    engine = live.engine(settings)

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted("x")).with_effect(Act("a")).with_effect(Act("b")).with_effect(Act("c"))

    def handle(context: EffectContext, effect: object) -> None:
        with lock:
            inside[0] += 1
            peak[0] = max(peak[0], inside[0])
        eventually(lambda: met.is_set() or (len(engine.runtime.worker.held()) == 3 and peak[0] == settings.threads))
        met.set()
        with lock:
            inside[0] -= 1

    engine.register(Puppet(choose), handle).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    eventually(lambda: not engine.admin.backlog())
    return peak[0]


def _most_commands_in_a_commit(live: Live, settings: Settings) -> object:
    """The first command holds the committer up until six more wait."""
    heard: list[Happening] = []
    waiting = threading.Event()

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "first":
            arrives(waiting)
        return Decision.event(Noted(command.what))

    engine = live.engine(settings).register(Puppet(choose)).listen(heard.append)
    replies = [engine.futures.deciders.execute(Puppet, Do(f"p-{what}", what)) for what in ("first", *"abcdef")]
    waiting.set()
    for reply in replies:
        reply.result(LONG_SECONDS)
    eventually(lambda: sum(each.commands for each in heard if isinstance(each, Committed)) == len(replies))
    return max(each.commands for each in heard if isinstance(each, Committed))


def _committing_threads(live: Live, settings: Settings) -> object:
    threads: set[int] = set()

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        threads.add(threading.get_ident())
        return Decision.event(Noted(command.what))

    engine = live.engine(settings).register(Puppet(choose))
    for reply in [engine.futures.deciders.execute(Puppet, Do(f"p-{number}", "x")) for number in range(40)]:
        reply.result(LONG_SECONDS)
    return len(threads)


def _questions_answered_at_once(live: Live, settings: Settings) -> object:
    """Six questions; the first ones wait, each with what it reads with in hand, until as many of them are inside as may be."""
    inside, peak, lock, asked, met = [0], [0], threading.Lock(), threading.Event(), threading.Event()
    engine = live.engine(settings)

    def question(reader: TenantReader) -> None:
        reader.headers([])
        with lock:
            inside[0] += 1
            peak[0] = max(peak[0], inside[0])
        arrives(asked)
        eventually(lambda: met.is_set() or peak[0] == settings.readers)
        met.set()
        with lock:
            inside[0] -= 1

    replies = [engine._desk.look(question) for _ in range(6)]
    asked.set()
    for reply in replies:
        reply.result(LONG_SECONDS)
    return peak[0]


# -- how long, and how often


def _seconds_until_work_is_taken_over(live: Live, settings: Settings) -> object:
    clock, taken, waited = ManualClock(START), [0], [0]

    def take(context: EffectContext, effect: object) -> None:
        taken[0] += 1

    with ExitStack() as stack:
        first, second = (stack.enter_context(ManualEngine(live.url, settings=settings, clock=clock)) for _ in range(2))

        def stand_still(context: EffectContext, effect: object) -> None:
            while not taken[0]:
                clock.move(SECOND)
                waited[0] += 1
                second.drain()

        first.register(Puppet(act), stand_still)
        second.register(Puppet(act), take)
        first.deciders.execute(Puppet, Do("p-1", "x"))
        first.drain()
    return waited[0]


def seconds_until_the_next(loop: str) -> Callable[[Live, Settings], object]:
    """How long a loop sleeps when there is nothing to do."""

    def play(live: Live, settings: Settings) -> object:
        with driven(live, settings).register(Puppet(), done) as engine:
            engine.drain()
            return round(getattr(engine.runtime, loop).step(), 3)

    return play


def _role_that_a_call_is_lent_a_connection_for(live: Live, settings: Settings) -> object:
    roles: list[str] = []

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted("x")).with_effect(Act("a"), transactional=True)

    with driven(live, settings).register(Puppet(choose), done) as engine, pytest.MonkeyPatch.context() as patch:
        with store_of(engine).writer().unit() as unit:
            kind: Any = type(unit)
        lend = kind.lend

        def spied(
            unit: Transaction, limit: float | None = None, borrower: Borrower | None = None, claim: Claim | None = None
        ) -> object:
            roles.append("" if borrower is None else borrower.role)
            return lend(unit, limit, borrower, claim)

        patch.setattr(kind, "lend", spied)
        engine.deciders.execute(Puppet, Do("p-1", "x"))
        engine.drain()
    (role,) = roles
    return role


def _longest_call_that_counts(live: Live, settings: Settings) -> object:
    with driven(live, settings) as engine:

        def slow(context: EffectContext, effect: Act) -> Do:
            engine.clock.move(SECOND * int(effect.what))
            return Do("p-1", f"done {effect.what}")

        engine.register(Puppet(act), slow)
        for seconds in ("10", "20", "30"):
            engine.deciders.execute(Puppet, Do("p-1", seconds))
            engine.drain()
        return [each for each in engine.deciders.state(Puppet, "p-1") if each.startswith("done")][-1]


def _longest_delivery_that_counts(live: Live, settings: Settings) -> object:
    with driven(live, settings) as engine:
        engine.channel("slow", lambda _notice: engine.clock.move(20 * SECOND))
        engine.register(Saga("tells").notify("tell", to="ann", subject="x", channel="slow", wait=True).build())
        run = engine.start("tells")
        engine.drain()
        return run.describe().status


def _seconds_until_other_words_are_heard_of(live: Live, settings: Settings) -> object:
    words = {"language": "en", "templates": {"opened": {"*": {"en": {"subject": "Please decide"}}}}}
    with driven(live, settings) as engine, driven(live, settings) as other:
        engine.register(Saga("asks").human("sign", ask="user:ann", subject="Sign", notify="in_app").build())
        for second in range(60):
            engine.start("asks")
            engine.drain()
            if engine.acting(Actor(id="ann")).notifications.mine()[0].subject == "Please decide":
                return second
            if second == 0:
                other.charters.publish_settings({"notices": words})
            engine.clock.move(SECOND)
        return None


def _is_a_running_call_told_to_stop(live: Live, settings: Settings) -> object:
    told: list[bool] = []
    begun = threading.Event()
    engine = live.engine(settings)

    def handle(context: EffectContext, effect: object) -> None:
        begun.set()
        eventually(lambda: not engine.runtime.worker._is_open)
        told.append(context.wait_cancelled(0 if settings.shutdown_timeout else LONG_SECONDS))

    engine.register(Puppet(act), handle).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(begun)
    engine.stop()
    eventually(lambda: told)
    return told


def _what_becomes_of_a_command_without_a_database(live: Live, settings: Settings) -> object:
    engine = live.engine(settings).register(Counter())
    engine.deciders.execute(Counter, Add("c-0"))
    hasty = live.engine(msgspec.structs.replace(settings, patience=timedelta(0))).register(Counter())
    with ExitStack() as stack:
        for each in (engine, hasty):
            context: Any = spoilt(live, each, "read-only")
            if each is engine or live.url.startswith("sqlite"):  # One trigger spoils the server for both.
                stack.enter_context(context)
        reply = engine.futures.deciders.execute(Counter, Add("c-1"))
        assert isinstance(
            hasty.futures.deciders.execute(Counter, Add("c-2")).exception(LONG_SECONDS), StoreUnavailableError
        )
        if not settings.patience:
            return type(reply.exception(LONG_SECONDS)).__name__
    return reply.result(LONG_SECONDS)


def _is_an_engine_healthy_whose_committer_stands(live: Live, settings: Settings) -> object:
    """A decider that does not come back holds the committer up."""
    begun, may_end = threading.Event(), threading.Event()

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        begun.set()
        arrives(may_end)
        return Decision.event(Noted(command.what))

    engine = live.engine(settings).register(Puppet(choose))
    reply = engine.futures.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(begun)
    if settings.unhealthy_after < SECOND:
        eventually(lambda: not engine.health().is_healthy)
    is_healthy = engine.health().is_healthy
    may_end.set()
    reply.result(LONG_SECONDS)
    return is_healthy


# -- what is tried again


def _calls_of_a_failing_handler(live: Live, settings: Settings) -> object:
    calls: list[int] = []

    def broken(context: EffectContext, effect: object) -> None:
        calls.append(context.attempt)
        raise ValueError("no")

    with driven(live, settings).register(Puppet(act), broken) as engine:
        engine.deciders.execute(Puppet, Do("p-1", "x"))
        engine.advance(DAY)
    return calls


def _deliveries_of_a_failing_message(live: Live, settings: Settings) -> object:
    tried: list[str] = []

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        tried.append(command.what)
        raise ValueError("no")

    with driven(live, settings).register(Puppet(choose)) as engine:
        engine.deciders.submit(Puppet, Do("p-1", "x"))
        engine.advance(DAY)
    return len(tried)


class _Reading:
    """A projection that notes how many events it is given at once, and may fail."""

    name = "reading"

    def __init__(self, *, fails: bool = False) -> None:
        self.taken: list[int] = []
        self._fails = fails

    def apply(self, events: Sequence[object], connection: object) -> None:
        self.taken.append(len(events))
        if self._fails:
            raise ValueError("no")

    def clear(self, connection: object) -> None:
        raise AssertionError


def _events_that_a_projection_takes_at_once(live: Live, settings: Settings) -> object:
    reading = _Reading()
    with driven(live, settings).register(Counter()).project(reading) as engine:
        for _ in range(6):
            engine.deciders.execute(Counter, Add("c-1"))
        engine.drain()
    return reading.taken


def _pause_of_a_failing_projection(live: Live, settings: Settings) -> object:
    """As the log tells it."""
    told: list[object] = []

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.args)

    listening, logger = Listening(), logging.getLogger("standfast.projections")
    logger.addHandler(listening)
    try:
        with driven(live, settings).register(Counter()).project(_Reading(fails=True)) as engine:
            engine.deciders.execute(Counter, Add("c-1"))
            engine.drain()
    finally:
        logger.removeHandler(listening)
    return told


# -- what is kept


def _instances_remembered(live: Live, settings: Settings) -> object:
    with driven(live, settings).register(Counter()) as engine:
        for key in ("c-1", "c-2", "c-3"):
            engine.deciders.execute(Counter, Add(key))
        return sum(engine.service.committer.is_running(each.id) for each in engine.instances.list())


def _events_behind_the_last_snapshot(live: Live, settings: Settings) -> object:
    with driven(live, settings).register(Counter()) as engine:
        for _ in range(9):
            engine.deciders.execute(Counter, Add("c-1"))
        address = Address(tenant="default", definition="counter", key="c-1")
        loaded = engine.service.store.reader("default").load(address)
        assert loaded is not None
        return len(loaded.events)


def _is_a_long_note_taken(live: Live, settings: Settings) -> object:
    with driven(live, settings).register(Puppet()) as engine:
        return not isinstance(engine.futures.deciders.execute(Puppet, Do("p-1", "x" * 2000)).exception(), PayloadError)


def _does_a_repeated_id_count_again(live: Live, settings: Settings) -> object:
    with driven(live, settings).register(Counter()) as engine:
        for _ in range(2):
            engine.deciders.execute(Counter, Add("c-1"), command_id="once")
            engine.advance(2 * DAY)
        return engine.deciders.state(Counter, "c-1")


def _finished_instances_after_two_days(live: Live, settings: Settings) -> object:
    with driven(live, settings).register(Puppet()) as engine:
        engine.deciders.execute(Puppet, Do("p-1", END))
        engine.advance(2 * DAY)
        return len(engine.instances.list())


def _is_an_event_kept_after_two_days(live: Live, settings: Settings) -> object:
    with driven(live, settings) as engine:
        engine.publish("paid", event_id="e-1")
        engine.advance(2 * DAY)
        return bool(engine.events.list())


def _inputs_observed(live: Live, settings: Settings) -> object:
    with driven(live, settings).register(Counter()) as engine:
        engine.deciders.execute(Counter, Add("c-1"))
        return len(engine.deciders.observations())


# -- in which order, and what is told


def _order_of_an_old_and_an_urgent_call(live: Live, settings: Settings) -> object:
    called: list[str] = []

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        priority = 50 if command.what == "urgent" else 0
        return Decision.event(Noted(command.what)).with_effect(Act(command.what), priority=priority)

    def handle(context: EffectContext, effect: Act) -> None:
        called.append(effect.what)

    with driven(live, settings).register(Puppet(choose), handle) as engine:
        for what in ("old", "urgent"):
            engine.deciders.execute(Puppet, Do(what, what))
            engine.clock.move(timedelta(minutes=1))
        engine.drain()
    return called


def _place_of_a_quiet_tenant(live: Live, settings: Settings) -> object:
    called: list[str] = []
    with driven(live, settings).register(Puppet(act), lambda context, effect: called.append(context.tenant)) as engine:
        for tenant in ("loud", "loud", "loud", "quiet"):
            engine.as_tenant(tenant).deciders.execute(Puppet, Do(f"p-{len(called)}", tenant))
            engine.clock.move(timedelta(milliseconds=1))
        engine.drain()
    return called.index("quiet")


def _is_a_handler_missing_after_ten_seconds(live: Live, settings: Settings) -> object:
    with driven(live, settings).register(Puppet(act)) as engine:
        engine.deciders.execute(Puppet, Do("p-1", "x"))
        engine.advance(10 * SECOND)
        return bool(engine.runtime.housekeeping.missing.look())


def _lengths_of_the_wait_between_two_looks(live: Live, settings: Settings) -> object:
    with driven(live, settings) as engine:
        return len({engine.runtime.housekeeping.step() for _ in range(9)}) > 1


def _reports_of_a_missing_handler_in_five_minutes(live: Live, settings: Settings) -> object:
    heard: list[Happening] = []
    with driven(live, settings).register(Puppet(act)).listen(heard.append) as engine:
        engine.deciders.execute(Puppet, Do("p-1", "x"))
        for _ in range(5):
            engine.advance(timedelta(minutes=1))
    return sum(type(each).__name__ == "HandlerMissingObserved" for each in heard)


def _signs_taken_at_once(live: Live, settings: Settings) -> int:
    """How many of four decisions in one instant are taken."""
    with driven(live, settings).register(Saga("order").human("sign").build()) as engine:
        for _ in range(4):
            engine.start("order")
        engine.drain()
        replies = [engine.futures.tasks.decide(each, "confirmed") for each in engine.tasks.list()]
        return sum(each.exception() is None for each in replies)


def _is_an_old_output_packed(live: Live, settings: Settings) -> bool:
    with driven(live, settings).register(Saga("order").step("pay", lambda: {"receipt": "x" * 999}).build()) as engine:
        run = engine.start("order")
        engine.drain()
        engine.advance(timedelta(days=60))
        assert run.steps()[0].output == {"receipt": "x" * 999}
        ((length,),) = Desk(store_of(engine)).query("select length(output) from {}steps")
    return int(length) < 999


def _standing_still(live: Live, settings: Settings) -> tuple[int, list[str]]:
    """How many runs are told of twenty minutes after their work was lost, and who is told."""
    told: list[str] = []
    with driven(live, settings).register(Saga("order").step("pay", "payment").build()) as engine:
        engine.channel("pager", lambda notice: told.append(notice.to))
        engine.start("order")
        Desk(store_of(engine)).run("delete from {}effects")
        for _ in range(2):
            engine.advance(timedelta(minutes=10))
        return len(engine.health().incidents), told


def policy(attempts: int) -> RetryPolicy:
    """So many attempts, one right after the other."""
    return msgspec.structs.replace(AT_ONCE, max_attempts=attempts)


def _looks_of_the_collector(live: Live, settings: Settings) -> object:
    before = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        live.engine(settings).start_worker().stop()
        return gc.get_threshold()[0]
    finally:
        gc.set_threshold(*before)


# -- mails

THERE = 65535
"""Stands for the port of the server of the scene."""
ONCE = timedelta(0)
MAIL: Mapping[str, object] = {
    "notice_retry_for": ONCE,
    "mail_host": "127.0.0.1",
    "mail_port": THERE,
    "mail_from": "h@example.com",
    "mail_tls": "none",
}
ARRIVED = [("h@example.com", "")]


def _attempts_to_deliver(live: Live, settings: Settings) -> int:
    """How often a channel is asked in a day that never delivers."""
    asked: list[str] = []

    def refuse(notice: Notice) -> None:
        asked.append(notice.to)
        raise OSError("the line is dead")

    saga = Saga("s").notify("tell", to="ann", subject="x", channel="post").build()
    with driven(live, settings).register(saga).channel("post", refuse) as engine:
        engine.start("s")
        engine.advance(timedelta(days=1))
        assert len(engine.dead_letters.list()) == 1
    return len(asked)


def _what_becomes_of_a_mail(live: Live, settings: Settings) -> object:
    """From whom and signed in as whom it arrives, or why it does not."""
    with mail_server(must_sign_in=bool(settings.mail_user)) as server, TemporaryDirectory() as folder:
        (Path(folder) / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
        where = settings.mail_password_from.replace("FOLDER", folder)
        port = server.port if settings.mail_port == THERE else settings.mail_port
        whole = msgspec.structs.replace(settings, mail_port=port, mail_password_from=where)
        saga = Saga("s").notify("tell", to="ann@example.com", subject="x", channel="email").build()
        with driven(live, whole).register(saga) as engine:
            run = engine.start("s")
            engine.drain()
            failed = [each.error for each in run.history() if each.event_type == "notification_failed"]
        return [(each.sender, each.user) for each in server.mails] or [each.partition(":")[0] for each in failed]


# -- other systems


def _what_becomes_of_a_webhook(live: Live, settings: Settings) -> object:
    """Whether a server on this machine is told."""
    with serving() as server:
        saga = Saga("s").notify("tell", to="ann", subject="x", channel="hook").build()
        hook = Webhook(server.url, secret=f"whsec_{'A' * 32}")
        with driven(live, settings).register(saga).channel("hook", hook) as engine:
            engine.start("s")
            engine.drain()
        return [each.method for each in server.received]


def _what_becomes_of_a_signed_request(live: Live, settings: Settings) -> object:
    """Whether a server on this machine is told by a workflow of documents that names a secret."""
    with serving() as server, pytest.MonkeyPatch.context() as patch, driven(live, settings) as engine:
        patch.setenv("HOOK_SECRET", f"whsec_{'A' * 32}")
        node = f"{{id: tell, type: webhook_out, url: '{server.url}', secret: 'env:HOOK_SECRET'}}"
        register_orders(engine, "sales_order", body_of_orders('"slot:submitted_to_approved"', node))
        orders = engine.acting(SELLER).documents
        orders.create("sales_order", ORDER, id="O-1")
        orders.transition("sales_order", "O-1", "submit")
        engine.drain()
        return ["webhook-signature" in each.headers for each in server.received]


def _operations_of_an_installed_invoker(live: Live, settings: Settings) -> object:
    """Handlers that a distribution brings along."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        install_invoker(Path(folder), "settings_invoker")
        patch.syspath_prepend(folder)
        with driven(live, settings) as engine:
            return [each for each in engine.service.shared.handlers.names() if each.startswith("settings_invoker")]


# -- rules that wait

ASKING = {
    "workflow_id": "asking",
    "steps": [
        {
            "id": "ask",
            "type": "action",
            "action": "block",
            "requires": {"type": "approval", "role": "clerk", "escalate_to": "boss"},
        },
        {"id": "ok", "type": "action", "action": "allow"},
    ],
}


def _misspelt_work(live: Live, settings: Settings) -> object:
    """How many dead letters there are some minutes after somebody has sent a command that no code can read."""
    with driven(live, settings).register(Saga("s").wait_for("w", signal="go").build()) as engine:
        run = engine.start("s")
        engine.drain()
        address = Address(tenant="default", definition="s", instance=run.id)
        message = StoredMessage(address=address, language="$graph", type="Signal", data=b"{}", actor="system")
        store_of(engine).writer().accept([message], engine.clock.now())
        engine.advance(minutes=10)
        return len(engine.dead_letters.list())


def _long_calls(live: Live, settings: Settings) -> object:
    """The sorts of incidents while a handler is running."""
    gate = Gate()
    engine = live.engine(settings).register(Saga("s").step("work", gate).build()).start_worker()
    run = engine.start("s")
    gate.entered()
    if settings.hung_after < DAY:
        eventually(lambda: bool(engine.admin.incidents()))
    found = [each.kind for each in engine.admin.incidents()]
    gate.open()
    run.result(timeout=LONG_SECONDS)
    return found


def rules_after(wait: timedelta, *, is_approved: bool) -> Callable[[Live, Settings], object]:
    """How rules stand a while after they have asked somebody, and after that was approved if it was."""

    def scene(live: Live, settings: Settings) -> object:
        with driven(live, settings).register(load_rules(ASKING)) as engine:
            run = engine.start("asking")
            engine.drain()
            if is_approved:
                engine.tasks.decide(run.tasks()[0].step_id, "approved")
                engine.drain()
            engine.advance(wait)
            return run.describe().status

    return scene


CASES = {
    "worker_name": Case(_name_of_the_worker, [("ann", ["ann"]), ("bob", ["bob"])]),
    "concurrency": Case(_calls_taken_at_once, [(2, 2), (5, 5)]),
    "threads": Case(_plain_calls_at_once, [(1, 1), (2, 2)]),
    "lease": Case(_seconds_until_work_is_taken_over, [(6 * SECOND, 7), (12 * SECOND, 13)]),
    "beat_interval": Case(seconds_until_the_next("heartbeat"), [(SECOND, 1.0), (2 * SECOND, 2.0)]),
    "poll_interval": Case(seconds_until_the_next("intake"), [(SECOND, 1.0), (3 * SECOND, 3.0)]),
    "timer_poll_interval": Case(seconds_until_the_next("due_work"), [(SECOND, 1.0), (3 * SECOND, 3.0)]),
    "handler_timeout": Case(
        _longest_call_that_counts,
        [(15 * SECOND, "done 10"), (25 * SECOND, "done 20"), (None, "done 30")],
        {"retry": policy(1)},
    ),
    "people_timeout": Case(
        _longest_delivery_that_counts, [(15 * SECOND, "failed"), (25 * SECOND, "completed")], {"notice_retry_for": ONCE}
    ),
    "charter_refresh": Case(_seconds_until_other_words_are_heard_of, [(2 * SECOND, 2), (5 * SECOND, 5)]),
    "handler_role": Case(
        _role_that_a_call_is_lent_a_connection_for, [("", ""), ("standfast_tenant", "standfast_tenant")]
    ),
    "retry": Case(_calls_of_a_failing_handler, [(policy(2), [1, 2]), (policy(3), [1, 2, 3])]),
    "command_retry": Case(_deliveries_of_a_failing_message, [(policy(2), 2), (policy(3), 3)]),
    "batch_limit": Case(_most_commands_in_a_commit, [(2, 2), (6, 6)], {"committers": 1}),
    "committers": Case(_committing_threads, [(1, 1), (2, 2)]),
    "readers": Case(_questions_answered_at_once, [(1, 1), (5, 5)]),
    "cache_size": Case(_instances_remembered, [(0, 0), (2, 2), (9, 3)]),
    "snapshot_events": Case(_events_behind_the_last_snapshot, [(1, 0), (100, 9)]),
    "patience": Case(
        _what_becomes_of_a_command_without_a_database,
        [(timedelta(0), "StoreUnavailableError"), (timedelta(seconds=LONG_SECONDS), None)],
    ),
    "shutdown_timeout": Case(
        _is_a_running_call_told_to_stop, [(timedelta(0), [True]), (timedelta(seconds=LONG_SECONDS), [False])]
    ),
    "unhealthy_after": Case(
        _is_an_engine_healthy_whose_committer_stands,
        [(timedelta(milliseconds=1), False), (timedelta(seconds=LONG_SECONDS), True)],
    ),
    "max_payload_bytes": Case(_is_a_long_note_taken, [(1000, False), (4000, True)]),
    "ageing": Case(_order_of_an_old_and_an_urgent_call, [(0.0, ["urgent", "old"]), (10.0, ["old", "urgent"])]),
    "ageing_enabled": Case(
        _order_of_an_old_and_an_urgent_call,
        [(False, ["urgent", "old"]), (True, ["old", "urgent"])],
        {"ageing": 10.0},
    ),
    "tenant_rate": Case(_place_of_a_quiet_tenant, [(None, 3), (1.0, 1)]),
    "workflow_rate": Case(_signs_taken_at_once, [(None, 4), (1.0, 1), (3.0, 3)]),
    "projection_batch": Case(_events_that_a_projection_takes_at_once, [(2, [2, 2, 2]), (500, [6])]),
    "projection_pause": Case(
        _pause_of_a_failing_projection, [(3 * SECOND, [("reading", 3.0)]), (5 * SECOND, [("reading", 5.0)])]
    ),
    "longest_projection_pause": Case(
        _pause_of_a_failing_projection,
        [(2 * SECOND, [("reading", 2.0)]), (60 * SECOND, [("reading", 5.0)])],
        {"projection_pause": 5 * SECOND},
    ),
    "observe_inputs": Case(_inputs_observed, [(False, 0), (True, 1)]),
    "missing_handler_cooldown": Case(
        _is_a_handler_missing_after_ten_seconds, [(5 * SECOND, True), (60 * SECOND, False)]
    ),
    "missing_handler_jitter": Case(_lengths_of_the_wait_between_two_looks, [(0.0, False), (0.5, True)]),
    "missing_handler_throttle": Case(
        _reports_of_a_missing_handler_in_five_minutes, [(timedelta(minutes=1), 5), (timedelta(hours=1), 1)]
    ),
    "unreadable_after": Case(_misspelt_work, [(timedelta(minutes=1), 1), (DAY, 0)]),
    "hung_after": Case(_long_calls, [(timedelta(seconds=1), ["hung_call"]), (DAY, [])]),
    "collect_after": Case(_looks_of_the_collector, [(None, 700), (20_000, 20_000), (100, 700)]),
    "event_ttl": Case(_is_an_event_kept_after_two_days, [(7 * DAY, True), (DAY, False), (timedelta(0), False)]),
    "keep_receipts": Case(_does_a_repeated_id_count_again, [(DAY, 2), (30 * DAY, 1)]),
    "keep_finished": Case(_finished_instances_after_two_days, [(None, 1), (DAY, 0), (30 * DAY, 1)]),
    "compress_after": Case(_is_an_old_output_packed, [(None, False), (30 * DAY, True), (timedelta(days=365), False)]),
    "stuck_after": Case(
        lambda live, settings: _standing_still(live, settings)[0], [(timedelta(minutes=5), 1), (DAY, 0)]
    ),
    "alerts": Case(
        lambda live, settings: _standing_still(live, settings)[1],
        [((), []), (("pager:ann", "pager:role:ops"), ["ann", "ops"])],
        {"stuck_after": timedelta(minutes=5)},
    ),
    "notice_retry_for": Case(_attempts_to_deliver, [(ONCE, 1), (3 * SECOND, 3), (timedelta(hours=1), 14)]),
    "mail_host": Case(_what_becomes_of_a_mail, [("", ["Fail"]), ("127.0.0.1", ARRIVED)], without(MAIL, "mail_host")),
    "mail_port": Case(
        _what_becomes_of_a_mail, [(1, ["ConnectionRefusedError"]), (THERE, ARRIVED)], without(MAIL, "mail_port")
    ),
    "mail_from": Case(
        _what_becomes_of_a_mail,
        [("h@example.com", ARRIVED), ("O <o@example.com>", [("o@example.com", "")])],
        without(MAIL, "mail_from"),
    ),
    "mail_user": Case(
        _what_becomes_of_a_mail,
        [("", ARRIVED), ("orders", [("h@example.com", "orders")])],
        {**MAIL, "mail_password_from": "file:FOLDER/password"},
    ),
    "mail_password_from": Case(
        _what_becomes_of_a_mail,
        [
            ("file:FOLDER/password", [("h@example.com", "orders")]),
            ("file:FOLDER/nothing", ["FileNotFoundError"]),
            (
                "env:STANDFAST_NONE",
                ["there is no variable 'STANDFAST_NONE' in the environment; mail_password_from names it"],
            ),
        ],
        {**MAIL, "mail_user": "orders"},
    ),
    "mail_tls": Case(
        _what_becomes_of_a_mail,
        [("none", ARRIVED), ("starttls", ["SMTPNotSupportedError"]), ("tls", ["SSLError"])],
        without(MAIL, "mail_tls"),
    ),
}

CASES |= {
    "outbound_allow": Case(
        _what_becomes_of_a_webhook, [((), []), (("127.0.0.1",), ["POST"]), (("10.0.0.0/8",), [])], {"retry": ONCE}
    ),
    "webhook_secrets": Case(
        _what_becomes_of_a_signed_request,
        [((), []), (("env:HOOK_SECRET",), [True]), (("env:HOOK_*",), [True]), (("env:HOOK",), [])],
        {"outbound_allow": ("127.0.0.1",)},
    ),
    "invokers": Case(
        _operations_of_an_installed_invoker, [((), []), (("settings_invoker",), ["settings_invoker:submit"])]
    ),
    "resume_timeout": Case(
        rules_after(2 * DAY, is_approved=False), [(timedelta(hours=24), "failed"), (30 * DAY, "paused")]
    ),
    "resume_auto_escalate": Case(
        rules_after(timedelta(hours=25), is_approved=False), [(False, "failed"), (True, "paused")]
    ),
    "auto_resume_after_approval": Case(
        rules_after(timedelta(0), is_approved=True), [(True, "completed"), (False, "paused")]
    ),
    "resume_worker_interval": Case(
        rules_after(timedelta(minutes=10), is_approved=True),
        [(timedelta(minutes=5), "completed"), (DAY, "paused")],
        {"auto_resume_after_approval": False},
    ),
}
SCENES = [(name, value, seen) for name, case in CASES.items() for value, seen in case.outcomes]


@pytest.mark.row("D-120", "G-07")
@pytest.mark.parametrize(("name", "value", "seen"), SCENES, ids=[f"{name}={value}" for name, value, _ in SCENES])
def test_a_setting_changes_what_happens(live: Live, name: str, value: object, seen: object) -> None:
    """The same scene ends differently with another value of the setting."""
    case = CASES[name]
    settings = msgspec.structs.replace(Settings(), **case.others, **{name: value})
    assert case.play(live, settings) == seen


@pytest.mark.row("D-120", "G-07")
def test_every_setting_has_a_scene() -> None:
    """A setting that nobody has seen to matter does not get in; and each scene shows at least two ends."""
    assert [*CASES] == [*Settings.__struct_fields__]
    assert not [name for name, case in CASES.items() if len({repr(seen) for _, seen in case.outcomes}) < 2]
