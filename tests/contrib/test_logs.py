"""Logs as JSON: whose work each line is about, and that no text can forge one."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from standfast import Actor, Engine, Fail, RequestContext, Retry, Saga, StepContext
from standfast.contrib.logs import JsonFormatter, log_json
from support.engines import Live, Place


class Written:
    """The lines of a log."""

    def __init__(self) -> None:
        self.stream = io.StringIO()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


@pytest.fixture
def written() -> Iterator[Written]:
    """A log of the test's own; the loggers are left as they were."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield Written()
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.mark.row("E-815", "G-15")
def test_every_line_from_inside_a_call_says_whose_work_it_is(place: Place, written: Written) -> None:
    """Tenant, run, step and trace, of the application's own loggers and of the handler's; behind the call nothing is left of it."""

    def charge(context: StepContext) -> None:
        logging.getLogger("shop").info("calling %s", "the bank", extra={"amount": 12})
        context.logger.warning("the bank is slow")
        raise LookupError("no such card")

    engine = place.engine().register(Saga("order").step("charge", charge, attempts=1).build())
    log_json(engine, written.stream)
    context = RequestContext(tenant="acme", actor=Actor(id="ann"), trace="t-1")
    run = engine.acting(context).start("order", {})
    engine.drain()
    logging.getLogger("shop").info("after it")

    named = {"tenant": "acme", "definition": "order", "run": str(run.id), "step": "charge", "trace": "t-1"}
    inside = [each for each in written.lines if each["message"] in {"calling the bank", "the bank is slow"}]
    assert [{name: each[name] for name in named} for each in inside] == [named, named]
    assert (inside[0]["amount"], inside[0]["level"], inside[0]["logger"]) == (12, "info", "shop")
    (failed,) = [each for each in written.lines if each["logger"] == "standfast.handlers"]
    assert (
        failed["message"]
        == f"handler_failed handler='charge' definition='order' run={run.id}: LookupError: no such card"
    )
    assert failed["step"] == "charge"
    assert "no such card" in failed["error"]
    assert "tenant" not in written.lines[-1]


@pytest.mark.row("E-815")
def test_what_a_handler_raises_is_in_the_log_with_its_place(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """A program that configures nothing is told where a handler raised; what a handler says on purpose has no traceback, and warns nobody."""

    def misspelt() -> None:
        {"sku": "lamp"}["skuu"]

    def sold_out() -> None:
        raise Fail("sold out")

    def later(ctx: StepContext) -> None:
        if ctx.attempt == 1:
            raise Retry("the bank is busy")

    def needs(amount: int) -> None:
        del amount

    engine = place.engine()
    handlers = (misspelt, sold_out, later, needs)
    with caplog.at_level(logging.INFO, "standfast.handlers"):
        for each in handlers:
            engine.register(Saga(each.__name__).step("do", each, attempts=2).build())
            engine.start(each.__name__, {})
            engine.drain()
    told = [(each.levelname, each.args[0], bool(each.exc_info)) for each in caplog.records if each.args]  # type: ignore[index]
    assert told == [
        ("WARNING", "misspelt", True),
        ("WARNING", "misspelt", True),
        ("INFO", "sold_out", False),
        ("INFO", "later", False),
        ("WARNING", "needs", False),
    ]
    assert '{"sku": "lamp"}["skuu"]' in caplog.text
    assert "'amount'" in caplog.text


def test_what_no_file_can_keep_is_in_the_log_without_its_place(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """An error with half a character in it is told in words that every log can write down."""

    def torn() -> None:
        raise ValueError("half a \ud83d")

    engine = place.engine().register(Saga("order").step("tear", torn, attempts=1).build())
    engine.start("order", {})
    engine.drain()
    assert "ValueError: half a ?" in caplog.text
    assert caplog.text.encode()


def test_a_log_that_fails_does_no_harm(place: Place) -> None:
    """A filter of somebody else that raises keeps no call from ending."""

    def broken(record: logging.LogRecord) -> bool:
        raise ValueError(record.name)

    def charge(ctx: StepContext) -> None:
        if ctx.attempt == 1:
            raise LookupError("no such card")

    engine = place.engine().register(Saga("order").step("charge", charge).build())
    log = logging.getLogger("standfast.handlers")
    log.addFilter(broken)
    try:
        run = engine.start("order", {})
        engine.drain()
    finally:
        log.removeFilter(broken)
    assert run.describe().status == "completed"


def test_calls_on_threads_and_loops_do_not_mix(live: Live, written: Written) -> None:
    """What several handlers log at the same time, coroutines and functions, is told apart."""

    async def a() -> dict[str, object]:
        logging.getLogger("shop").info("line of a")
        return {}

    def b() -> dict[str, object]:
        logging.getLogger("shop").info("line of b")
        return {}

    engine: Engine = live.engine().register(Saga("order").step("a", a).step("b", b).build())
    log_json(engine, written.stream)
    engine.start_worker()
    for run in [engine.start("order", {}) for _ in range(10)]:
        run.result(timeout=30)
    lines = [each for each in written.lines if each["logger"] == "shop"]
    assert len({(each["run"], each["step"]) for each in lines}) == len(lines) == 20
    assert all(each["message"] == f"line of {each['step']}" for each in lines)


@pytest.mark.parametrize("text", ['one\n{"level": "forged"}', "\x1b[31mred", 'a "quoted" text', "\ud800", "\u2028"])
def test_a_text_is_data_and_forges_no_line(text: str) -> None:
    """Whatever a message or an extra holds, it is one line, which can be read again."""
    record = logging.makeLogRecord({"msg": "%s", "args": (text,), "levelname": "INFO", "given": text, "odd": object()})
    line = JsonFormatter().format(record)
    assert len(line.splitlines() if "\u2028" not in text else line.split("\n")) == 1
    assert json.loads(line)["level"] in {"info", "'info'"}


class Unshown:
    def __repr__(self) -> str:
        raise ZeroDivisionError


def test_what_cannot_be_told_leaves_the_rest_of_its_line_alone(place: Place, written: Written) -> None:
    """Half a character, or a thing that cannot be shown, costs neither the line nor its other fields."""
    given = {"amount": 12, "thing": Unshown(), "pair": (1, Unshown())}
    record = logging.getLogger("shop").makeRecord(
        "shop", logging.WARNING, __file__, 1, "half a \ud83d", (), None, extra=given, sinfo=f"Stack of {__file__}"
    )
    log_json(place.engine(), written.stream).handle(
        record
    )  # Not by the logger: whoever keeps reports of tests could not write it down.
    (line,) = written.lines
    assert (line["message"], line["level"], line["amount"]) == ("half a \\ud83d", "warning", 12)
    assert line["thing"] == line["pair"].replace("tuple", "Unshown") == "<a Unshown that cannot be shown>"
    assert "test_logs.py" in line["stack"]


def test_a_record_is_one_line_however_many_engines_there_are(place: Place, written: Written) -> None:
    """A program that opens several engines, one for each test for example, says it for each, and has each line once."""
    assert log_json(place.engine(), written.stream) is log_json(place.engine(), written.stream)
    logging.getLogger("shop").warning("once")
    assert [line["message"] for line in written.lines] == ["once"]
