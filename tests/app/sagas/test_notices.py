"""Notices of sagas: who is told what by which channel, that nobody waits for it, and what becomes of those who cannot be told."""

from __future__ import annotations

import logging
import socket
import threading
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from app.sagas.acting import Stage, history, person, run, status, statuses, told
from standfast import (
    ConfigurationError,
    DefinitionError,
    Directory,
    Escalation,
    Fail,
    NotFoundError,
    Notice,
    PayloadError,
    RetryPolicy,
    Saga,
    SagaDefinition,
    Settings,
)
from standfast.store.ports.notifications import Recipient
from standfast.testing import CrashScenario, ManualEngine
from support.crashing import NewStore, tried
from support.engines import QUICK, Live, Place
from support.mailing import mail_server
from support.waiting import LONG_SECONDS, eventually

ANN, BOB, CLERK = person("ann", "clerk"), person("bob"), person("cleo", "clerk")
PATIENT = Settings(retry=RetryPolicy(max_attempts=3, jitter=0), notice_retry_for=timedelta(seconds=3))


class Post:
    """A channel of the test's own."""

    def __init__(self, *errors: BaseException | None) -> None:
        self.notices: list[Notice] = []
        self.errors = list(errors)
        """What becomes of each attempt, and afterwards all is well."""
        self.attempts = 0

    def send(self, notice: Notice) -> None:
        """Take a notice, or not."""
        self.attempts += 1
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        self.notices.append(notice)


def telling(stage: Stage | None = None, **options: object) -> SagaDefinition:
    """A saga that tells somebody something, and goes on."""
    fields: dict[str, object] = {
        "to": "ann",
        "subject": "Order {n}",
        "body": "It is {n}.",
        "channel": "post",
        **options,
    }
    saga = Saga("telling").notify("tell", **fields)  # type: ignore[arg-type]
    return saga.step("go on", (stage or Stage()).does("go on")).build()


@pytest.mark.row("R-057")
def test_a_notice_is_told_once_and_the_saga_goes_on(place: Place) -> None:
    """Texts are filled in from the data, each finds it once in their lists, and the next step does not wait for it."""
    stage = Stage()
    engine = place.engine().register(telling(stage, to=["ann", "role:clerk", "{mail}"], channel="in_app"))
    instance = run(engine, "telling", {"n": 7, "mail": "bob@example.com"})
    assert stage.calls == ["go on"]
    found = engine.acting(ANN).notifications.mine()
    assert [(each.to, each.subject, each.body) for each in found] == [
        ("ann", "Order 7", "It is 7."),
    ]
    assert [each.to for each in engine.acting(CLERK).notifications.mine()] == ["role:clerk"]
    assert (found[0].instance, found[0].step_number) == (instance, 1)
    assert [each.subject for each in engine.acting("bob@example.com").notifications.mine()] == ["Order 7"]
    assert engine.acting(BOB).notifications.mine() == []
    assert ("step_completed", "tell") in told(engine, instance)


@pytest.mark.parametrize("wait", [False, True])
def test_somebody_who_is_named_twice_is_told_once(place: Place, wait: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """By a channel that is named twice, too; and a step that waits is not left waiting for the second time."""
    engine, post = place.engine(), Post()
    engine.channel("post", post)
    engine.register(telling(to=["ann", "{who}"], channel=["post", "post"], wait=wait))
    instance = run(engine, "telling", {"n": 1, "who": "ann"})
    assert [each.to for each in post.notices] == ["ann"]
    assert status(engine, instance) == "completed"


def test_who_is_a_role_is_said_by_the_author_alone(place: Place) -> None:
    """Data that looks like a role is the name of a user."""
    engine = place.engine().register(telling(to="{who}", channel="in_app"))
    run(engine, "telling", {"n": 1, "who": "role:clerk"})
    assert engine.acting(ANN).notifications.mine() == []
    assert len(engine.acting("role:clerk").notifications.mine()) == 1


def test_values_mean_nothing_in_html_but_themselves(place: Place) -> None:
    """What the data puts into the HTML of a notice is text there; the plain body has it as it is, and a subject is one line."""
    post = Post()
    engine = place.engine().channel("post", post)
    engine.register(telling(subject="Hi {who.name}", body="{who.name}", html="<p>{who.name}</p>"))
    run(engine, "telling", {"n": 1, "who": {"name": "<b>&\r\nBcc: x"}})
    (notice,) = post.notices
    assert notice.html.startswith("<p>&lt;b&gt;&amp;")
    assert "<b>" not in notice.html
    assert notice.body == "<b>&\r\nBcc: x"
    assert notice.subject == "Hi <b>& Bcc: x"


def test_nobody_waits_for_a_channel_that_fails(place: Place) -> None:
    """The saga ends, the notice is tried again, and when its time is over the history tells it, and it is a dead letter that can be requeued."""
    post = Post(*[OSError("the line is dead")] * 9)
    engine = place.engine(PATIENT).channel("post", post).register(telling())
    instance = run(engine, "telling", {"n": 1})
    assert status(engine, instance) == "completed"
    assert history(engine, instance, "notification_failed") == []
    engine.advance(hours=1)
    assert post.attempts == 3
    (failed,) = history(engine, instance, "notification_failed")
    assert (failed.step_name, failed.data["to"], failed.data["channel"]) == ("tell", "ann", "post")
    assert failed.error == "OSError: the line is dead"
    assert status(engine, instance) == "completed"
    (letter,) = engine.dead_letters.list()
    assert (letter.source, letter.instance, letter.attempts) == ("effect", instance, 3)
    assert "the line is dead" in letter.error
    post.errors = []
    engine.dead_letters.requeue(letter)
    engine.drain()
    assert [each.to for each in post.notices] == ["ann"]
    assert engine.dead_letters.list() == []


@pytest.mark.row("EC-33")
def test_a_mail_server_that_is_dead_holds_nobody_up(place: Place) -> None:
    """Nothing listens where mails go: the saga is completed, the mail is tried as often as the settings say, and then its failure is told."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # It never listens: whoever connects is refused.
        mail = msgspec.structs.replace(
            PATIENT,
            mail_host="127.0.0.1",
            mail_port=taken.getsockname()[1],
            mail_from="h@example.com",
            mail_tls="none",
        )
        engine = place.engine(mail).register(telling(to="ann@example.com", channel="email"))
        instance = run(engine, "telling", {"n": 1})
        assert status(engine, instance) == "completed"
        assert history(engine, instance, "notification_failed") == []
        engine.advance(hours=1)
        (failed,) = history(engine, instance, "notification_failed")
        assert "refused" in failed.error.lower()
    assert (status(engine, instance), len(engine.dead_letters.list())) == ("completed", 1)


@pytest.mark.row("EC-33")
def test_a_mail_server_that_is_away_for_two_days_loses_nothing(place: Place) -> None:
    """The mail goes out when the server is back, and the step behind a notice that is waited for is called then; nothing gave up."""
    away = {"is": True}

    def send(notice: Notice) -> None:
        if away["is"]:
            raise ConnectionRefusedError("nothing listens")
        sent.append(notice.to)

    sent: list[str] = []
    engine = place.engine().channel("post", send)
    loose = Saga("loose").notify("tell", to="ann", subject="x", channel="post").build()
    tight = Saga("tight").notify("tell", to="bob", subject="x", channel="post", wait=True).step("go", "go").build()
    engine.register(loose).register(tight).handle("go", lambda: sent.append("the step behind it"))
    runs = [engine.start("loose"), engine.start("tight")]
    engine.advance(days=2)
    assert (sent, engine.dead_letters.list()) == ([], [])
    away["is"] = False
    engine.advance(minutes=20)
    assert sorted(sent) == ["ann", "bob", "the step behind it"]
    assert [each.describe().status for each in runs] == ["completed"] * 2
    assert engine.dead_letters.list() == []


def test_a_channel_that_recovers_delivers(place: Place) -> None:
    """A failure that passes leaves no trace, and the notice keeps its key over all attempts."""
    post = Post(OSError("busy"), None)
    engine = place.engine(PATIENT).channel("post", post).register(telling())
    instance = run(engine, "telling", {"n": 1})
    engine.advance(hours=1)
    assert (post.attempts, len(post.notices)) == (2, 1)
    assert post.notices[0].key == f"{instance}/1/step/post/user:ann"
    assert history(engine, instance, "notification_failed") == []


def test_what_cannot_help_is_not_tried_again(place: Place) -> None:
    """`Fail` of a channel is final, and so is a channel that does not exist."""
    post = Post(Fail("no such number"))
    engine = place.engine().channel("post", post)
    engine.register(telling(channel=["post", "pigeon"]))
    instance = run(engine, "telling", {"n": 1})
    assert post.attempts == 1
    errors = sorted(each.error for each in history(engine, instance, "notification_failed"))
    assert errors[0] == "Fail: no such number"
    assert "there is no channel 'pigeon' here; register it in every process that works" in errors[1]


def test_a_notice_that_cannot_be_put_into_words_holds_nobody_up(place: Place) -> None:
    """A value that is not there, or a recipient without a name, is told in the history; with `wait` the step has failed."""
    engine = place.engine().channel("post", Post())
    engine.register(telling(body="{missing.value}"))
    engine.register(
        Saga("strict")
        .notify("tell", to="{who}", subject="x", wait=True, on_error=lambda way: way.save_point("no"))
        .build()
    )
    loose, strict = run(engine, "telling", {"n": 1}), run(engine, "strict", {"who": " "})
    assert status(engine, loose) == "completed"
    assert len(history(engine, loose, "notification_failed")) == 1
    assert statuses(engine, strict) == {"tell": "failed", "no": "completed"}


def test_a_step_may_wait_until_everybody_is_told(place: Place) -> None:
    """With `wait` the saga goes on once each recipient has it by each channel."""
    stage, post = Stage(), Post(OSError("busy"))
    engine = place.engine(PATIENT).channel("post", post)
    engine.register(telling(stage, to=["ann", "bob"], channel=["in_app", "post"], wait=True))
    instance = run(engine, "telling", {"n": 1})
    assert stage.calls == []
    assert statuses(engine, instance) == {"tell": "running"}
    engine.advance(hours=1)
    assert stage.calls == ["go on"]
    assert len(history(engine, instance, "notification_delivered")) == 4
    assert sorted(each.to for each in post.notices) == ["ann", "bob"]


def test_a_step_that_waits_fails_with_the_first_who_cannot_be_told(place: Place) -> None:
    """What was done before is undone, as after any failure."""
    stage = Stage()
    saga = (
        Saga("s")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a"))
        .notify("tell", to=["ann", "bob"], subject="x", channel="post", wait=True)
        .build()
    )
    engine = place.engine().channel("post", Post(Fail("no such number"))).register(saga)
    instance = run(engine, "s")
    assert stage.calls == ["a", "undo a"]
    assert status(engine, instance) == "failed"
    assert "'ann' could not be told by 'post'" in engine.run(instance).describe().error


def test_a_step_that_waits_can_be_cancelled(place: Place) -> None:
    """What comes back from the channel afterwards changes nothing."""
    post = Post(OSError("busy"))
    engine = place.engine(PATIENT).channel("post", post).register(telling(wait=True))
    instance = run(engine, "telling", {"n": 1})
    engine.futures.run(instance).cancel()
    engine.advance(hours=1)
    assert status(engine, instance) == "cancelled"
    assert len(post.notices) == 1
    assert history(engine, instance, "notification_delivered", "notification_failed") == []


def test_a_coroutine_is_a_channel_too(place: Place) -> None:
    """A function that has to be awaited is."""
    sent: list[str] = []

    async def post(notice: Notice) -> None:
        sent.append(notice.to)

    engine = place.engine().channel("post", post).register(telling())
    run(engine, "telling", {"n": 1})
    assert sent == ["ann"]


def test_who_has_no_address_is_told_in_the_application(place: Place) -> None:
    """A channel that needs an address and has none is no reason to tell nobody; the history says so."""
    letters = Letters()
    engine = place.engine().channel("post", letters).register(telling(to=["ann", "bob@example.com"]))
    instance = run(engine, "telling", {"n": 1})
    assert [each.addresses for each in letters.notices] == [("bob@example.com",)]
    assert [each.subject for each in engine.acting("ann").notifications.mine()] == ["Order 1"]
    (failed,) = history(engine, instance, "notification_failed")
    assert failed.error == "no known address: user 'ann'; notified in the application only"


class Letters(Post):
    """A channel that reaches people by their addresses."""

    needs_address = True


def test_people_are_reached_under_the_addresses_of_the_directory(place: Place) -> None:
    """A user means the address of theirs, a role those of its holders who are there; notified in the application only if there is none."""
    letters = Letters()
    engine = place.engine().channel("post", letters)
    engine.register(telling(to=["max", "role:boss", "role:clerk", "zed@example.com"]))
    for name in ("max", "eve", "ivy", "oz"):
        engine.directory.put(name, email=f"{name}@example.com" if name != "oz" else "")
        engine.directory.grant(name, "boss" if name != "oz" else "clerk")
    engine.directory.deactivate("ivy")
    instance = run(engine, "telling", {"n": 1})
    assert {each.to: each.addresses for each in letters.notices} == {
        "max": ("max@example.com",),
        "boss": ("eve@example.com",),  # Max has one of his own.
        "zed@example.com": ("zed@example.com",),
    }
    (failed,) = history(engine, instance, "notification_failed")
    assert failed.error == "no known address: role 'clerk'; notified in the application only"


def test_questions_and_reminders_reach_those_whom_the_directory_knows(place: Place) -> None:
    """Whoever is asked is told so under the address that the directory has of them, and reminded and escalated to there."""
    letters = Letters()
    engine = place.engine().channel("post", letters)
    hour = timedelta(hours=1)
    ladder = [Escalation(2 * hour, to="eve")]
    engine.register(Saga("s").human("ask", ask="manager", notify="post", remind=[hour], escalate=ladder).build())
    for name in ("max", "eve"):
        engine.directory.put(name, email=f"{name}@example.com")
    engine.directory.put("rita", manager="max")
    engine.acting("rita").start("s")
    engine.drain()
    engine.advance(hours=2)
    assert [each.addresses for each in letters.notices] == [
        ("max@example.com",),
        ("max@example.com",),
        ("eve@example.com",),
    ]


def test_a_mail_reaches_somebody_of_a_file(live: Live, tmp_path: Path) -> None:
    """The directory of a file tells addresses too, and a real mail goes there."""
    people = tmp_path / "people.yaml"
    people.write_text("people: {max: {email: max@example.com, roles: [boss]}}")
    with mail_server() as server:
        settings = Settings(mail_host="127.0.0.1", mail_port=server.port, mail_from="h@example.com", mail_tls="none")
        engine = live.engine(settings, directory=Directory.from_file(people))
        engine.register(telling(to="role:boss", channel="email", wait=True))
        with engine:
            engine.start("telling", {"n": 7}).result(timeout=30)
    (sent,) = server.mails
    assert sent.recipients == ["max@example.com"]


def test_addresses_can_come_from_elsewhere(place: Place) -> None:
    """Whoever knows where people are reached is asked for users and for roles, by tenant."""
    post, asked = Post(), []

    def find(tenant: str, of: Recipient) -> list[str]:
        asked.append((tenant, *of))
        return ["a@example.com", "b@example.com", "a@example.com"]

    engine = place.engine().channel("post", post).register(telling(to="role:clerk"))
    engine.deliveries.addresses = find
    run(engine, "telling", {"n": 1})
    assert asked == [("default", "role", "clerk")]
    assert post.notices[0].addresses == ("a@example.com", "b@example.com")


def test_a_mail_goes_by_the_server_of_the_settings(live: Live) -> None:
    """With a mail server in the settings `email` is there, and a real worker sends a real mail."""
    with mail_server() as server:
        settings = Settings(mail_host="127.0.0.1", mail_port=server.port, mail_from="h@example.com", mail_tls="none")
        engine = live.engine(settings).register(telling(to="{mail}", channel="email", html="<b>{n}</b>", wait=True))
        with engine:
            engine.start("telling", {"n": "<7>", "mail": "ann@example.com"}).result(timeout=30)
    (sent,) = server.mails
    assert (sent.recipients, sent.message["Subject"]) == (["ann@example.com"], "Order <7>")
    html = sent.message.get_body(("html",))
    assert html is not None
    assert html.get_content().strip() == "<b>&lt;7&gt;</b>"


def test_without_a_mail_server_the_history_says_what_to_do(place: Place) -> None:
    """Nothing is lost silently."""
    engine = place.engine().register(telling(channel="email"))
    instance = run(engine, "telling", {"n": 1})
    assert "give Settings(mail_host=" in history(engine, instance, "notification_failed")[0].error


def test_the_log_is_a_channel(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Each notice is one line of the log, whatever is in it."""
    engine = place.engine().register(telling(channel="log", body="two\nlines {n}"))
    with caplog.at_level(logging.INFO, "standfast.notices"):
        run(engine, "telling", {"n": 1})
    assert caplog.messages == ["notification kind=user to='ann' subject='Order 1' body='two\\nlines 1'"]


def test_everything_is_told_once_wherever_the_process_dies(new_store: NewStore) -> None:
    """A worker that dies between telling and writing it down tells again, and the list holds it once."""

    def prepare(engine: ManualEngine) -> None:
        engine.register(telling(to=["ann", "role:clerk"], channel="in_app", wait=True))

    def play(engine: ManualEngine) -> None:
        engine.start("telling", {"n": 1}, key="the one", idempotency_key="start")
        engine.drain()

    def outcome(engine: ManualEngine) -> object:
        (found,) = engine.runs.list().items
        delivered = len(history(engine, found.id, "notification_delivered"))
        told = [each.to for who in (ANN, CLERK) for each in engine.acting(who).notifications.mine()]
        return found.status, delivered, told

    report = tried(CrashScenario(prepare=prepare, play=play, outcome=outcome), new_store)
    assert isinstance(report.outcome, tuple)
    status, delivered, lists = report.outcome[0]
    assert (status, delivered, sorted(lists)) == ("completed", 2, ["ann", "role:clerk"])


def test_a_notice_to_a_role_is_read_by_each_who_has_it(place: Place) -> None:
    """Whoever has the role, by the context or by the directory, finds it and reads it for themselves; nobody else does."""
    engine = place.engine().register(telling(to=["role:clerk"], channel="in_app"))
    for name in ("cat", "dan"):
        engine.directory.put(name)
    engine.directory.grant("cat", "clerk")
    run(engine, "telling", {"n": 1})
    ann, cat = engine.acting(ANN).notifications, engine.acting("cat").notifications
    assert [ann.count_unread(), cat.count_unread(), engine.acting("dan").notifications.count_unread()] == [1, 1, 0]
    ann.mark_read(ann.mine()[0])
    assert [ann.count_unread(), cat.count_unread()] == [0, 1]
    assert [each.subject for each in cat.mine(unread=True)] == ["Order 1"]
    assert [cat.mark_all_read(), cat.count_unread()] == [1, 0]


def test_lists_are_paged_counted_and_read(place: Place) -> None:
    """Newest first over all of somebody's lists; what was read is not counted, and nobody reads for somebody else."""
    engine = place.engine().register(telling(to=["role:clerk"], channel="in_app"))
    engine.register(Saga("by name").notify("tell", to="ann", subject="Order {n}").build())
    for number in range(3):
        run(engine, "telling", {"n": number})
        run(engine, "by name", {"n": number})
    mine = engine.acting(ANN).notifications
    everything = mine.mine()
    assert [each.subject for each in everything] == [f"Order {n}" for n in (2, 2, 1, 1, 0, 0)]
    first = mine.mine(limit=4)
    assert first + mine.mine(after=first[-1], limit=4) == everything
    assert mine.mine(after=everything[-1].id) == []
    assert mine.count_unread() == 6
    mine.mark_read(everything[0])
    mine.mark_read(everything[0].id)
    assert mine.count_unread() == 5
    assert mine.mine(unread=True) == everything[1:]
    for others in (engine.acting(BOB), engine.as_tenant("acme", actor=ANN)):
        with pytest.raises(NotFoundError):
            others.notifications.mark_read(everything[1])
        assert others.notifications.mark_all_read() == 0
    assert mine.mark_all_read() == 5
    assert mine.count_unread() == 0
    for wrong in (-1, "x"):
        with pytest.raises(PayloadError):
            mine.mine(after=wrong)  # type: ignore[arg-type]
    with pytest.raises(PayloadError):
        mine.mine(limit=0)


def test_lists_go_with_their_instance(place: Place) -> None:
    """What people were told by a run that is deleted is deleted with it."""
    engine = place.engine().register(telling(channel="in_app"))
    instance = run(engine, "telling", {"n": 1})
    engine.run(instance).delete()
    assert engine.acting(ANN).notifications.mine() == []


@pytest.mark.parametrize(("name", "channel"), [("", print), ("in_app", print), ("post", 5), ("post", object())])
def test_what_is_no_channel_is_refused(place: Place, name: str, channel: object) -> None:
    """A channel has a name of its own, and can send."""
    with pytest.raises(ConfigurationError):
        place.engine().channel(name, channel)  # type: ignore[arg-type]


def test_a_notice_to_nobody_is_no_notice() -> None:
    """The builder tells what is wrong, all at once."""
    with pytest.raises(DefinitionError) as refused:
        Saga("s").notify("tell", to=[], subject=" ", channel=[]).build()
    assert {each.code for each in refused.value.diagnostics} == {"recipients", "subject", "channel"}


def test_a_real_worker_tells_people(live: Live) -> None:
    """With threads and a database of its own, a notice arrives soon after its step."""
    with live.engine().register(telling(channel="in_app")) as engine:
        engine.start("telling", {"n": 1})
        eventually(lambda: engine.acting("ann").notifications.count_unread() == 1)


def test_channels_and_resolvers_that_hang_leave_threads_to_others(live: Live) -> None:
    """However many notices and searches hang, steps are called, and events are found."""
    gate = threading.Event()

    def hangs(_asked: object) -> str:
        gate.wait(LONG_SECONDS)
        return "ann"

    engine = live.engine(msgspec.structs.replace(QUICK, threads=4))
    engine.channel("slow", hangs)
    engine.resolver("late")(hangs)
    for saga in (
        telling(channel="slow"),
        Saga("asks").human("ask", ask="late").build(),
        Saga("plain").step("work", lambda: None).wait_for_event("paid", "payment").build(),
    ):
        engine.register(saga)
    engine.start_worker()
    try:
        for _ in range(6):
            engine.start("telling", {"n": 5})
            engine.start("asks")
        engine.publish("payment")
        engine.start("plain").result(timeout=LONG_SECONDS / 2)
    finally:
        gate.set()


def test_a_channel_that_a_process_lacks_is_told_by_its_health(live: Live) -> None:
    """Once it works: whatever it is to tell people that way would fail. One that only takes commands lacks nothing."""
    engine = live.engine()
    engine.register(telling(channel="sms")).register(Saga("asks").human("ask", ask="user:ann", notify="email").build())
    assert engine.health().problems == []
    engine.start_worker()
    (problem,) = engine.health().problems
    assert problem.startswith(
        "channels: 'asks' tells people by 'email', which this process does not have; give Settings("
    )
    engine.channel("email", print)
    (problem,) = engine.health().problems
    assert "register it in every process that works: engine.channel('sms', …)" in problem
    engine.channel("sms", print)
    assert engine.health().is_healthy


def test_a_channel_that_hangs_has_failed_when_its_time_is_over(live: Live) -> None:
    """The call is given up and made again, and whoever waits for the notice goes on."""
    gate, calls = threading.Event(), list[Notice]()

    def hangs_once(notice: Notice) -> None:
        calls.append(notice)
        if len(calls) == 1:
            gate.wait(LONG_SECONDS)

    engine = live.engine(msgspec.structs.replace(QUICK, people_timeout=timedelta(seconds=0.2)))
    engine.channel("slow", hangs_once)
    engine.register(Saga("waits").notify("tell", to="ann", subject="x", channel="slow", wait=True).build())
    engine.start_worker()
    try:
        engine.start("waits").result(timeout=LONG_SECONDS / 2)
    finally:
        gate.set()
    assert len(calls) == 2


@pytest.mark.row("EC-33", "E-414")
@pytest.mark.parametrize("is_awaited", [False, True])
def test_one_notice_reaches_a_person_once(place: Place, is_awaited: bool) -> None:  # noqa: FBT001 - a parameter
    """However many names and roles lead to somebody: one mail to each address, and one entry in the list of each person."""
    post = Post()
    post.needs_address = True  # type: ignore[attr-defined]
    engine = place.engine().channel("post", post)
    for name, roles in {"ann": ("clerk", "boss"), "bob": ("clerk",), "cat": ("boss",)}.items():
        engine.directory.put(name, email=f"{name.title()}@example.com")
        for role in roles:
            engine.directory.grant(name, role)
    to = ["role:clerk", "role:boss", "ann", "ann@example.com"]
    engine.register(telling(to=to, channel=["post", "in_app"], wait=is_awaited))
    instance = run(engine, "telling", {"n": 1})
    assert status(engine, instance) == "completed"
    addresses = [address for each in post.notices for address in each.addresses]
    assert sorted(addresses) == ["Ann@example.com", "Bob@example.com", "Cat@example.com"]
    for name in ("ann", "bob", "cat"):
        mine = engine.acting(name).notifications
        assert (len(mine.mine()), mine.count_unread()) == (1, 1), name
        assert mine.mark_all_read() == 1
        assert mine.count_unread() == 0


def test_a_question_to_a_person_by_name_and_role_is_one_mail(place: Place) -> None:
    """Those who are asked are told once each, and reminded once each."""
    post = Post()
    engine = place.engine().channel("post", post)
    engine.directory.put("ann", email="ann@example.com")
    engine.directory.grant("ann", "clerk")
    engine.register(
        Saga("s")
        .human("q", ask=["user:ann", "role:clerk"], agree="any", notify="post", remind=timedelta(hours=1))
        .build()
    )
    run(engine, "s", {})
    assert [each.addresses for each in post.notices] == [("ann@example.com",)]
    engine.advance(hours=2)
    assert [each.subject.startswith("Reminder") for each in post.notices] == [False, True]


@pytest.mark.parametrize("to", ["user:bob", "role:boss"])
def test_whoever_left_is_told_by_no_channel(place: Place, to: str) -> None:
    """Whatever the channel is, reminders do not reach deactivated people."""
    post = Post()
    engine = place.engine()
    engine.channel("sms", post)
    for name in ("ann", "bob"):
        engine.directory.put(name)
    engine.directory.grant("bob", "boss")
    engine.register(
        Saga("x").human("q", ask=["user:ann", to], agree="any", remind_every=timedelta(hours=1), notify="sms").build()
    )
    engine.start("x")
    engine.drain()
    assert sorted(each.to for each in post.notices) == ["ann", to.partition(":")[2]]
    post.notices.clear()
    engine.directory.deactivate("bob")
    engine.advance(minutes=61)
    assert [each.to for each in post.notices] == ["ann"]
    engine.directory.activate("bob")
    engine.advance(hours=1)
    assert sorted(each.to for each in post.notices) == ["ann", "ann", to.partition(":")[2]]
