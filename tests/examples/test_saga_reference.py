"""The reference of sagas names everything that the code has, and nothing else."""

from __future__ import annotations

import ast
import re
import typing
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from standfast import Branch, DefinitionError, Escalation, Saga, event
from standfast.engine.commit.limits import LONGEST_COMMENT
from standfast.features.sagas import StepOptions
from standfast.features.sagas.builder import DEEPEST_WAYS
from standfast.features.sagas.definition import STEP_TYPES
from standfast.graph.checks import POLICY_WORDS
from standfast.graph.model import TaskOp
from standfast.graph.status_words import saga as words
from standfast.graph.values.value_checks import LONGEST_MS, LONGEST_NAME, MOST_BYTES
from standfast.kernel.codec.message_types import wire_name
from standfast.kernel.history import DIRECTORY_ANSWERED, TIMER_CANCELLED, TIMER_REQUEUED
from standfast.machine.model import events
from standfast.machine.model.rejections import Refusal
from standfast.machine.nodes.wait import MOST_KEPT

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "standfast"
PAGES = ("sagas.md", "saga-events.md", "saga-codes.md")
PAGE = "\n".join((ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") for name in PAGES)

CODE_PLACES = {
    "Diagnostic": 0,
    "find": 0,
    "name_findings": 1,
    "word_findings": 1,
    "time_findings": 1,
    "number_findings": 1,
    "plain_findings": 1,
    "_refusal": 1,
}
"""Functions that are given the code of a finding, and the place of the argument."""
CHECKING = (
    "graph",
    "features/sagas",
    "calls/catalog/definitions.py",
    "calls/catalog/registry.py",
)


def first_column(heading: str) -> list[str]:
    """What the first table below a heading names in its first column."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = section.split("\n|---", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def codes(file: Path) -> Iterator[str]:
    """The codes of findings that a file has."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        place = CODE_PLACES.get(name)
        if place is not None and len(node.args) > place:
            code = node.args[place]
            if isinstance(code, ast.Constant) and isinstance(code.value, str):
                yield code.value


def test_all_step_types_are_listed() -> None:
    """A type that a definition can show is on the page."""
    assert sorted(first_column("Step types")) == sorted(STEP_TYPES)


def test_all_options_are_listed() -> None:
    """An option of a step is on the page."""
    assert sorted(first_column("Options of a call")) == sorted(StepOptions.__annotations__)


def test_all_statuses_are_listed() -> None:
    """A word that an instance or a step can be described by is on the page."""
    assert sorted(first_column("Statuses of instances")) == sorted({*words.ACTIVE, *words.TERMINAL})
    assert sorted(first_column("Statuses of steps")) == sorted(words.STEP_STATUSES)


def test_all_events_are_listed() -> None:
    """An event that a history can hold is on the page."""
    known = [wire_name(event)[0] for event in typing.get_args(events.Event)]
    assert sorted(first_column("Events")) == sorted(
        [*known, *words.ANSWERED.values(), DIRECTORY_ANSWERED, TIMER_CANCELLED, TIMER_REQUEUED]
    )


def test_all_rejections_are_listed() -> None:
    """A code with which a workflow refuses a command is on the page."""
    assert sorted(first_column("Rejections")) == sorted(Refusal)
    sources = {file.name: file.read_text(encoding="utf-8") for file in (SOURCE / "machine").rglob("*.py")}
    assert [name for name, text in sources.items() if "Rejection(" in text] == ["rejections.py"]


def test_all_diagnostics_are_listed() -> None:
    """A code of a finding is on the page."""
    places = [SOURCE / each for each in CHECKING]
    found = [file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))]
    files = [file for file in found if file.parent.name != "source_files"]  # Those of YAML files are on another page.
    known = {code for file in files for code in codes(file)} | set(POLICY_WORDS)
    assert sorted(first_column("Diagnostics")) == sorted(known)


def test_the_defaults_of_the_page_are_those_of_the_builder() -> None:
    """A step that says nothing about its calls has the defaults that the page names."""
    node = Saga("defaults").step("a", "a").build().graph.nodes["a"]
    assert isinstance(node.op, TaskOp)
    work, retry = node.op.work, node.op.work.retry
    assert (retry.max_calls, retry.delay_ms, retry.backoff) == (3, 0, "fixed")
    assert (retry.factor_percent, retry.cap_ms, retry.jitter_percent) == (200, 300_000, 0)
    assert (work.once, work.transactional, work.timeout_ms, node.priority, node.metadata) == (False, False, None, 0, {})


def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    """Each number that the page names is the one that counts."""
    section = PAGE.split("\n## Limits\n", 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in row.split("|")[1:3]] for row in section.split("\n|---", 1)[1].splitlines()[1:]]
    said = {row[0].split(",")[0]: row[1] for row in rows if len(row) == 2}
    assert said["signals that an instance keeps because no step waits for them yet"] == str(MOST_KEPT)
    assert said["the name of a step"] == f"{LONGEST_NAME} characters and {MOST_BYTES} bytes"
    assert said["a comment"] == f"{LONGEST_COMMENT // 1024} KiB"
    assert said["nested ways"] == str(DEEPEST_WAYS)
    assert said["a duration"] == f"{LONGEST_MS // (366 * 24 * 3600 * 1000)} years"


H = "work"
"""A handler by its name; nobody calls it here."""


def _forked() -> Saga:
    return Saga("s").fork("f", lambda one: one.step("a", H), lambda two: two.step("b", H))


def _two_of_one_name() -> Saga:
    def one() -> None: ...

    def other() -> None: ...

    other.__name__ = "one"
    return Saga("s").step("a", one).step("b", other)


def _deeper(way: Branch) -> Branch:
    """A fork in a fork in a fork, without an end."""
    return way.fork("f", _deeper).join("j")


def _joined_by_name(*names: str) -> Saga:
    with warnings.catch_warnings(action="ignore"):
        return _forked().join_step("j", names)


SAGAS: dict[str, Callable[[], object]] = {
    "agree": lambda: Saga("s").human("a", ask="user:ann", agree=2),
    "asks": lambda: Saga("s").human("a", ask="user:ann", chain="spend"),
    "distinct_from": lambda: Saga("s").human("a", distinct_from="b"),
    "ambiguous_handler": _two_of_one_name,
    "bad_expression": lambda: Saga("s").condition("c", "a >"),
    "body": lambda: Saga("s").notify("a", to="ann", subject="x", body="x" * 20_001),
    "cron": lambda: Saga("s").wait("w", cron="daily"),
    "cron_never": lambda: Saga("s").wait("w", cron="0 0 30 2 *"),
    "duplicate_event": lambda: Saga("s").wait_for_events("w", event("a"), event("a")),
    "event": lambda: Saga("s").wait_for_events("w", "a"),  # type: ignore[arg-type]
    "event_need": lambda: Saga("s").wait_for_events("w", event("a"), need=2),
    "no_event": lambda: Saga("s").wait_for_event("w", ""),
    "time_zone": lambda: Saga("s").wait("w", 1, time_zone="Mars"),
    "until": lambda: Saga("s").wait("w", until=datetime(2026, 1, 1)),  # noqa: DTZ001 - that is what is wrong with it
    "wait_time": lambda: Saga("s").wait("w"),
    "branch": lambda: Saga("s").fork("f", "x"),  # type: ignore[arg-type]
    "capability": lambda: Saga("s", capability=" ").step("a", H),
    "channel": lambda: Saga("s").notify("a", to="ann", subject="x", channel=()),
    "deadline": lambda: Saga("s", deadline=-1).step("a", H),
    "dlq": lambda: Saga("s", dlq="no").step("a", H),  # type: ignore[arg-type]
    "due": lambda: Saga("s").human("a", due=0),
    "duplicate_edge": lambda: Saga("s").fork("f", lambda one: one.step("a", H), lambda two: two.step("a", H)).join("j"),
    "duplicate_step": lambda: Saga("s").step("a", H).step("a", H),
    "reserved_handler": lambda: Saga("s").step("a", "$engine"),
    "empty": lambda: Saga("s"),
    "empty_branch": lambda: Saga("s").fork("f", lambda one: one),
    "escalate": lambda: Saga("s").human("a", escalate=Escalation(after=5)),
    "form": lambda: Saga("s").human("a", form={"type": "wish"}),
    "fork_without_join": lambda: _forked().step("c", H),
    "hidden_character": lambda: Saga("s").step("a\u200b", H),
    "handler": lambda: Saga("s").step("a", None),  # type: ignore[arg-type]
    "item_clash": lambda: Saga("s").for_each("f", "input.x", lambda way: way.step("a", H), item="a"),
    "item_name": lambda: Saga("s").for_each("f", "input.x", lambda way: way.step("a", H), item="1"),
    "on_empty": lambda: Saga("s").for_each("f", "input.x", lambda way: way.step("a", H), on_empty="stop"),  # type: ignore[arg-type]
    "join_count": lambda: _forked().join("j", 3),
    "join_losers": lambda: _forked().join("j", "any", losers="forget"),  # type: ignore[arg-type]
    "join_strategy": lambda: _forked().join("j", "most"),  # type: ignore[arg-type]
    "join_without_fork": lambda: Saga("s").join("j"),
    "limit": lambda: Saga("s").for_each("f", "input.x", lambda way: way.step("a", H), limit=0),
    "long_name": lambda: Saga("s").step("a" * 300, H),
    "misleading_name": lambda: Saga("../s").step("a", H),
    "metadata": lambda: Saga("s").step("a", H, metadata={"x": 1.5}),
    "nested": lambda: Saga("s").fork("f", _deeper).join("j"),
    "no_branches": lambda: Saga("s").fork("f"),
    "no_definition": lambda: Saga("s").call("a", ""),
    "no_handler": lambda: Saga("s").step("a", ""),
    "no_signal": lambda: Saga("s").wait_for("a", ""),
    "no_version": lambda: Saga("s", "").step("a", H),
    "not_last": lambda: _joined_by_name("f", "a", "b"),
    "not_storable": lambda: Saga("s").human("a", subject=5),  # type: ignore[arg-type]
    "nothing_to_undo": lambda: Saga("s").on_failure("a", H),
    "once": lambda: Saga("s").step("a", H, once=True, attempts=2),
    "outcome": lambda: Saga("s").wait_for("a", "x", on_timeout=lambda way: way.step("b", H)),
    "priority": lambda: Saga("s").step("a", H, priority=101),
    "recipients": lambda: Saga("s").notify("a", to=(), subject="x"),
    "remind": lambda: Saga("s").human("a", remind=[5, 3]),
    "reserved_name": lambda: Saga("s").step("cond#a", H),
    "attempts": lambda: Saga("s").step("a", H, attempts=0),
    "retry_backoff": lambda: Saga("s").step("a", H, backoff="more"),  # type: ignore[arg-type]
    "retry_cap": lambda: Saga("s").step("a", H, cap=-1),
    "retry_delay": lambda: Saga("s").step("a", H, delay=-1),
    "retry_factor": lambda: Saga("s").step("a", H, factor=0.5),
    "retry_jitter": lambda: Saga("s").step("a", H, jitter=2),
    "same_option": lambda: Saga("s").step("a", H, attempts=2, max_retries=2),
    "step_name": lambda: Saga("s").step(None, H),  # type: ignore[arg-type]
    "start_after": lambda: Saga("s").step("a", H, start_after=-1),
    "stop_grace": lambda: Saga("s", stop_grace=-1).step("a", H),
    "subject": lambda: Saga("s").notify("a", to="ann", subject=""),
    "task": lambda: Saga("s").parallel("p", "x"),  # type: ignore[arg-type]
    "timeout": lambda: Saga("s").human("a", timeout=-1),
    "two_compensations": lambda: Saga("s").step("a", H).on_failure("b", H).on_failure("c", H),
    "unknown_option": lambda: Saga("s").step("a", H, retires=1),  # type: ignore[call-arg]
    "unknown_step": lambda: _joined_by_name("a", "b", "nowhere"),
    "unnamed_branch": lambda: _joined_by_name("a"),
    "unnamed_step": lambda: Saga("s").step("", H),
    "unnamed_workflow": lambda: Saga("").step("a", H),
    "unreachable": lambda: Saga("s").fork("f").join("j"),
    "wait_duration": lambda: Saga("s").wait("a", -1),
}
"""For each code a saga that has it."""

NOT_BUILT = {
    "archived",
    "changed_graph",
    "fewer_rights",
    "handler_capability",
    "shared_name",
    "unknown_ir_version",
    "unknown_workflow",
    "unreadable_graph",
    "wrong_id",
}
"""Codes of graphs that are registered or read back."""


@pytest.mark.parametrize("code", sorted(SAGAS))
def test_a_code_without_a_star_can_come_from_the_builder(code: str) -> None:
    """The finding really turns up."""
    saga = SAGAS[code]()
    assert isinstance(saga, Saga)
    with pytest.raises(DefinitionError) as refused:
        saga.build()
    assert code in {each.code for each in refused.value.diagnostics}


def test_the_stars_are_right() -> None:
    """Every code is either starred, or there is a saga for it, or it is about graphs that were built before."""
    starred = set(re.findall(r"\| `(\w+)` \* \|", PAGE))
    assert {*first_column("Diagnostics")} - starred == {*SAGAS, *NOT_BUILT}
