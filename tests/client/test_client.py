"""The client against a real server: values and errors as beside the engine, repetitions that do no harm, streams that go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

import httpx
import msgspec
import pytest

from client.conftest import HASTY, Scene
from standfast import Actor, RequestContext
from standfast import errors as e
from standfast.client import AsyncClient, Client, Retries, StreamEvent
from standfast.client.errors import _OF_ENGINE, error_of
from standfast.client.retries import RetrySequence
from standfast.features.runs.views import HistoryEntry, WorkflowInstance
from standfast.http import create_app
from standfast.http.wire.problems import EdgeCode, EdgeError, problem_of
from support.repository import load_generator
from support.waiting import eventually

NOBODY = uuid5(UUID(int=0), "nobody")


class Lossy(httpx.BaseTransport):
    """A line to a real server that loses answers after the server has given them."""

    def __init__(self, *, loses: int) -> None:
        self._line = httpx.HTTPTransport()
        self._loses = loses
        self.sent: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        response = self._line.handle_request(request)
        if len(self.sent) <= self._loses:
            response.read()
            raise httpx.ReadError("the line is cut")
        return response

    def close(self) -> None:
        self._line.close()


def test_values_come_back_as_types(scene: Scene) -> None:
    """A run is started, waited for and looked at; a list is read page by page; ids, times and enumerations are what they are."""
    with scene.client() as client:
        run = client.start_execution(definition="order", input={"sku": "lamp"}, key="types").id
        assert client.result(run, timeout=20) == {"sku": "lamp", "parcel": 77}
        found = client.get_execution(run)
        assert isinstance(found, WorkflowInstance)
        assert (found.id, found.status, found.key) == (run, "completed", "types")
        assert found.created_at <= datetime.now(UTC)  # noqa: TID251 - the clock of a test
        assert [each.name for each in client.list_steps(run)] == ["ship"]
        client.start_execution(definition="order")
        first = client.list_executions(limit=1, definition="order", status=["completed", "running"])
        assert first.next is not None
        assert first.items[0].id != client.list_executions(cursor=first.next, limit=1).items[0].id
        assert (
            client.list_executions(created_after=found.created_at + timedelta(hours=1), active=False, key="types").items
            == []
        )
        assert client.get_metrics().startswith("# ")


def test_what_people_do_is_done_with_their_key(scene: Scene) -> None:
    """A question is found in the inbox, and answered; nothing comes back, and the run goes on."""
    with scene.client() as client:
        run = client.start_execution(definition="ask").id
        [task] = client.list_run_tasks(run)
        client.approve_task(task.step_id, comment="fine")
        client.result(run, timeout=20)
        assert client.get_task(task.step_id).decided_by == "ann"


def test_a_run_that_fails_raises_and_one_that_lasts_times_out(scene: Scene) -> None:
    """As `run.result` does; a timeout ends nothing."""
    with scene.client() as client:
        run = client.start_execution(definition="paid").id
        with pytest.raises(TimeoutError, match="it goes on"):
            client.result(run, timeout=0)
        client.abort_execution(run, reason="enough")
        with pytest.raises(e.WorkflowFailedError) as caught:
            client.result(run)
        assert (caught.value.status, caught.value.instance) == ("aborted", str(run))


def test_refusals_are_the_errors_of_the_library(scene: Scene) -> None:
    """Whoever calls from afar catches what they would catch beside the engine, with the same words; notes say what to do."""
    with scene.client() as client, Client(scene.address, "sf_no_key", retries=HASTY) as stranger:
        run = client.start_execution(definition="paid").id
        for call, beside in (
            (lambda: client.get_execution(NOBODY), lambda: scene.engine.run(NOBODY).describe()),
            (lambda: client.start_execution(definition="nothing"), lambda: scene.engine.start("nothing")),
            (lambda: client.resume_execution(run), lambda: scene.engine.run(run).resume()),
        ):
            here, there = raised(call), raised(beside)
            assert (type(here), str(here)) == (type(there), str(there))
            assert "trace" in here.__notes__[0]
        client.start_execution(definition="paid", idempotency_key="mine")
        used = raised(lambda: client.start_execution(definition="paid", input={"a": 1}, idempotency_key="mine"))
        assert isinstance(used, e.ReusedIdError)
        assert used.key == "mine"
        refused = raised(stranger.list_executions)
        assert isinstance(refused, e.ForbiddenError)
        assert refused.reason == "unauthenticated"


def raised(call: Callable[[], object]) -> e.StandfastError:
    """What a call raises."""
    with pytest.raises(e.StandfastError) as caught:
        call()
    return caught.value


SAMPLES: list[e.StandfastError] = [
    e.StandfastError("x"),
    e.DefinitionError("order", [e.Diagnostic("unknown_step", "there is no step", "steps.a")]),
    e.ExpressionError("wrong", reason="syntax"),
    e.RejectedError(reason="not_started", message="it has not begun"),
    e.ForbiddenError(reason="not_allowed", message="ann may not"),
    e.NotFoundError("task", "t:1", hint="take it from a list"),
    e.NotFoundError("workflow", "o'clock"),
    e.ConflictError("somebody was first"),
    e.HeldError("it is held"),
    e.ReusedIdError("k-1"),
    e.PayloadError("too large"),
    e.PayloadError("too large", reason="too_large"),
    e.StoreUnavailableError("what the server keeps its data in cannot be used now"),
    e.StoppedError("maintenance"),
]


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_after_its_way_over_the_wire(error: e.StandfastError) -> None:
    """Its class and its words; those of the server's own faults are kept from clients, who are told that it failed."""
    problem = problem_of(error, trace_id="t")
    made = error_of(problem.status, msgspec.json.encode(problem), key="k-1")
    assert type(made) is type(error)
    if problem.status != 500:
        assert str(made) == str(error)


def test_no_error_is_forgotten() -> None:
    """Every class of the tree, and every refusal of the edge, has its place; the words of processes included."""
    assert set(_OF_ENGINE) == {each.code for each in load_generator().error_classes()}
    for code in EdgeCode:
        for is_of_processes in (False, True):
            problem = problem_of(EdgeError(code, "no"), trace_id="t", is_of_processes=is_of_processes)
            made = error_of(problem.status, msgspec.json.encode(problem))
            assert "no" in str(made)
            assert type(made) is not e.StandfastError or code is EdgeCode.INTERNAL


@pytest.mark.parametrize("problem", [b'{"status": 418, "detail": "tea", "code": "teapot"}', b"<html>", b""])
def test_an_answer_of_somebody_else_is_told_in_a_sentence(problem: bytes) -> None:
    """A proxy, another program, a newer server: never a traceback of the decoder."""
    assert len(str(error_of(418, problem))) > 2
    assert isinstance(error_of(502, b"<html>"), e.StoreUnavailableError)


def test_a_lost_answer_starts_no_second_run(scene: Scene) -> None:
    """A start is sent again with the same key, whoever forgot to give one; the run is the one that was started first."""
    line = Lossy(loses=2)
    with Client(scene.address, scene.secret, retries=HASTY, transport=line) as client:
        run = client.start_execution(definition="paid", key="lost").id
    assert len({each.headers["idempotency-key"] for each in line.sent}) == 1
    assert len(line.sent) == 3
    assert [each.id for each in scene.engine.runs.list(key="lost")] == [run]


def test_what_must_not_be_done_twice_is_not_sent_twice(scene: Scene) -> None:
    """A request that has no key is given up when its answer is lost, and the error says that it may have been done."""
    run = scene.engine.start("paid").id
    line = Lossy(loses=9)
    with Client(scene.address, scene.secret, retries=HASTY, transport=line) as client:
        with pytest.raises(e.StoreUnavailableError) as caught:
            client.pause_execution(run, reason="audit")
        assert (caught.value.may_be_done, len(line.sent)) == (True, 1)
        assert scene.engine.run(run).describe().status == "paused"
        with pytest.raises(e.StoreUnavailableError):
            client.get_execution(run)
        assert len(line.sent) == 1 + HASTY.attempts


def test_a_server_that_is_not_there_is_told_in_a_sentence() -> None:
    """Nothing was done, and the sentence names the address."""
    with Client("http://127.0.0.1:1", retries=HASTY) as client, pytest.raises(e.StoreUnavailableError) as caught:
        client.start_execution(definition="order")
    assert not caught.value.may_be_done
    assert "http://127.0.0.1:1 does not answer" in str(caught.value)


@pytest.mark.parametrize(
    ("address", "key"), [("standfast.example.org", ""), ("http://h", "a\nb"), ("http://h", "schlüssel")]
)
def test_what_is_no_address_and_no_key_is_refused(address: str, key: str) -> None:
    """Before anything is sent."""
    with pytest.raises(e.ConfigurationError):
        Client(address, key)


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_no_name_leads_to_another_address(scene: Scene, name: str) -> None:
    """What would be taken for a step in a path is refused before it is sent; everything else stands there as it is."""
    with scene.client() as client:
        with pytest.raises(e.PayloadError, match="cannot stand in an address"):
            client.revoke_role(name, "x")
        with pytest.raises(e.NotFoundError, match=r"no person '\.\.é\?#%2F'"):
            client.get_person("..é?#%2F")
        for each in ("../../keys", "ann/roles"):
            with pytest.raises(e.NotFoundError, match=f"no person {each!r}"):
                client.get_person(each)


def test_rests_grow_and_end() -> None:
    """Twice as long each time, give or take a half; as long as the server asks for; never longer than allowed; and not for ever."""
    turns = RetrySequence(Retries(attempts=4, delay=1, longest_delay=3), is_repeatable=True)
    first, second, third = (turns.lost(was_sent=True) for _ in range(3))
    assert first is not None and 0.5 <= first <= 1.5  # noqa: PT018 - a range
    assert second is not None and 1 <= second <= 3  # noqa: PT018 - a range
    assert third is not None and third <= 3  # noqa: PT018 - a range
    assert turns.lost(was_sent=True) is None
    asked = RetrySequence(Retries(delay=0.001), is_repeatable=False)
    assert asked.refused(429, {"retry-after": "7"}) == 7
    assert asked.refused(503, {}) is None
    assert asked.lost(was_sent=True) is None
    assert asked.refused(404, {}) is None


class Overtaken(httpx.BaseTransport):
    """A line to a real server by which the first request under a key is answered only after the second was refused."""

    def __init__(self, end_first: Callable[[], object]) -> None:
        self._line = httpx.HTTPTransport()
        self._end_first = end_first
        self.heard: list[int] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._line.handle_request(request)
        self.heard.append(response.status_code)
        self._end_first()
        return response

    def close(self) -> None:
        self._line.close()


def test_whoever_asks_again_waits_for_the_first_request_under_the_key(scene: Scene) -> None:
    """That it is still under way is no answer: the client comes back for the one that the first request gets."""
    repeats = scene.engine.acting(RequestContext(tenant="default", actor=Actor(id="ann"))).repeats
    with scene.client() as client:
        client.mark_all_read(idempotency_key="known")
    known = repeats.begin("known", b"")
    assert known is not None
    repeats.begin("overtaken", known.mark)
    line = Overtaken(lambda: repeats.answer("overtaken", 200, known.headers, b'{"count": 7}'))
    with Client(scene.address, scene.secret, retries=HASTY, transport=line) as client:
        assert client.mark_all_read(idempotency_key="overtaken").count == 7
    assert line.heard == [409, 200]


@pytest.mark.parametrize("loses", [0, 1])
def test_a_stream_goes_on_where_it_was_cut(scene: Scene, loses: int) -> None:
    """The server ends it every now and then, or the line breaks; each entry is told once, in order, and the end is the end."""
    run = scene.engine.start("paid").id
    line = Lossy(loses=loses)

    def pay() -> None:
        eventually(lambda: len(line.sent) > loses + 1)
        scene.engine.run(run).signal("paid")

    payer = threading.Thread(target=pay)
    payer.start()
    with Client(scene.address, scene.secret, retries=HASTY, transport=line) as client:
        heard = list(client.stream_execution(run))
    payer.join()
    entries = [each.value.sequence for each in heard if each.value is not None]
    assert entries == [each.sequence for each in scene.engine.run(run).history()]
    assert [each.name for each in heard[-2:]] == ["entry", "end"]
    assert all(isinstance(each.value, HistoryEntry) for each in heard[:-1])
    assert line.sent[-1].headers["last-event-id"] != "0"


class Interrupted(httpx.BaseTransport):
    """A line to a real server on which something happens before the second request."""

    def __init__(self, happens: Callable[[], object]) -> None:
        self._line = httpx.HTTPTransport()
        self._happens = happens
        self.sent = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent += 1
        if self.sent == 2:
            self._happens()
        return self._line.handle_request(request)

    def close(self) -> None:
        self._line.close()


def test_a_stream_that_was_cut_before_it_told_anything_misses_nothing(scene: Scene) -> None:
    """What happens while nobody listens, between a stream that had nothing to tell and the next one, is told by that."""
    alone = scene.engine.as_tenant(
        "alone"
    )  # Runs of other tests may still be going on, and a stream tells of its whole tenant.
    secret = alone.keys.create("test", actor="ann", capabilities=["*"]).secret
    began: list[UUID] = []
    line = Interrupted(lambda: began.append(alone.start("paid").id))
    with Client(scene.address, secret, retries=HASTY, transport=line) as client:
        first = next(client.stream_executions())
    assert first.value is not None
    assert (first.name, [UUID(first.value.id)], first.value.sequence) == ("changed", began, 1)


def test_a_stream_begins_behind_what_one_has(scene: Scene) -> None:
    """`last` is the id of the last event that one has; what is refused is raised at once."""
    run = scene.engine.start("order").id
    with scene.client() as client:
        client.result(run, timeout=20)
        whole = list(client.stream_execution(run))
        assert whole[2:] == list(client.stream_execution(run, last=whole[1].id))
        with pytest.raises(e.NotFoundError):
            next(client.stream_execution(NOBODY))


def test_the_same_for_coroutines(scene: Scene) -> None:
    """The awaitable client asks, waits, listens and is refused like the blocking one."""

    async def story() -> list[StreamEvent[HistoryEntry]]:
        transport = httpx.ASGITransport(app=create_app(scene.engine))
        async with AsyncClient("http://standfast", scene.secret, retries=HASTY, transport=transport) as client:
            run = (await client.start_execution(definition="order", input={"sku": "lamp"})).id
            assert await client.result(run, timeout=20) == {"sku": "lamp", "parcel": 77}
            with pytest.raises(e.NotFoundError):
                await client.get_execution(NOBODY)
            return [event async for event in client.stream_execution(run)]

    assert [each.name for each in asyncio.run(story())][-1] == "end"
