"""Calls of reports: what runs of a period tell of work as a whole.

What the rows of runs tell of work as a whole: how long it takes, where it waits, who decides, what is done twice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from standfast.calls.authorization import check_reader
from standfast.calls.context import CallContext, checked_instant, checked_limit
from standfast.calls.references import DefinitionLike, checked_definition
from standfast.engine.concurrency.replies import Reply
from standfast.errors import PayloadError
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import STEPS, TASKS, StoredStep, StoredTask
from standfast.kernel.row_kinds.tasks import TASK_DECISIONS, TASK_PEOPLE, StoredDecision, StoredPerson
from standfast.store.records.instances import InstanceHeader, InstanceQuery

_OPEN = frozenset({"pending", "running"})
_REST = "rest"
_NOWHERE = frozenset({"", "state", _REST})
"""What people do not wait for: a document may have a status, and rest, for years."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How long something took, in seconds."""

    count: int
    mean: float
    median: float
    p90: float
    """Nine of ten took no longer."""
    longest: float


class StepReport(msgspec.Struct, frozen=True, kw_only=True):
    """How long runs were at one node of their workflow."""

    node: str
    took: Spread
    """Of the steps there that have ended."""
    open: int
    """Steps there that have not."""
    total: float
    """Seconds that all ended ones took together: the node with most of them is the bottleneck."""


class PersonReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one person was asked and has decided."""

    person: str
    """A user, or `role:<name>` for what waits for whoever has the role."""
    decided: int
    outcomes: dict[str, int]
    took: Spread
    """From the question to the decision."""
    open: int
    """Questions that wait for them."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that began in a period."""

    definition: str
    since: datetime
    until: datetime
    runs: int
    finished: int
    """Those that have ended, or, of documents, have come to rest."""
    cycle: Spread
    """From the beginning to the end, or to the first rest."""
    steps: list[StepReport]
    """Those that took most time together first."""
    people: list[PersonReport]
    """Those who decided most first."""
    reworked: int
    """Runs in which somebody was asked again at the same node."""
    rework_rate: float
    """Their share of all runs; 0 if there are none."""
    is_partial: bool
    """Whether there are more runs in the period than were counted: these are the newest."""


class ReportFacts(NamedTuple):
    """The rows of some runs."""

    headers: Sequence[InstanceHeader]
    steps: Sequence[StoredStep]
    tasks: Sequence[StoredTask]
    decisions: Sequence[StoredDecision]
    people: Sequence[StoredPerson]


class Tally:
    """Counts runs, some at a time."""

    def __init__(self) -> None:
        self.runs = 0
        self._cycles: list[float] = []
        self._took: defaultdict[str, list[float]] = defaultdict(list)
        self._waiting = Counter[str]()
        self._answers: defaultdict[str, list[float]] = defaultdict(list)
        self._outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._asked = Counter[str]()
        self._reworked: set[InstanceId] = set()

    def add(self, facts: ReportFacts) -> None:
        """Count some runs."""
        self.runs += len(facts.headers)
        rests = {each.instance: each.opened_at for each in reversed(facts.steps) if each.wait_kind == _REST}
        for header in facts.headers:
            end = rests.get(header.id) or header.ended_at
            if end is not None:
                self._cycles.append(_seconds(end - header.created_at))
        for step in facts.steps:
            self._add_step(step)
        self._add_answers(facts)
        self._add_rework(facts.tasks)

    def _add_step(self, step: StoredStep) -> None:
        if step.kind != "forward" or step.wait_kind in _NOWHERE - {""}:
            return
        if step.status in _OPEN:
            self._waiting[step.node] += 1
        else:
            self._took[step.node].append(_seconds(step.moved_at - step.opened_at))

    def _add_answers(self, facts: ReportFacts) -> None:
        asked_at = {(each.instance, each.number): each.opened_at for each in facts.tasks}
        for each in facts.decisions:
            begun = asked_at.get((each.instance, each.number))
            if not each.is_withdrawn and begun is not None:
                self._answers[each.actor].append(_seconds(each.decided_at - begun))
                self._outcomes[each.actor][each.outcome] += 1
        for person in facts.people:
            if person.is_open:
                self._asked[person.name if person.kind == "user" else f"role:{person.name}"] += 1

    def _add_rework(self, tasks: Iterable[StoredTask]) -> None:
        asked = Counter((each.instance, each.node) for each in tasks)
        self._reworked.update(instance for (instance, _), count in asked.items() if count > 1)

    def report(self, definition: str, since: datetime, until: datetime, *, is_partial: bool) -> Report:
        """What was counted."""
        steps = [
            StepReport(node=node, took=spread(took), open=self._waiting[node], total=sum(took))
            for node in sorted({*self._took, *self._waiting})
            for took in [self._took.get(node, [])]
        ]
        people = [
            PersonReport(
                person=name,
                decided=len(took),
                outcomes=dict(sorted(self._outcomes[name].items())),
                took=spread(took),
                open=self._asked[name],
            )
            for name in sorted({*self._answers, *self._asked})
            for took in [self._answers.get(name, [])]
        ]
        return Report(
            definition=definition,
            since=since,
            until=until,
            runs=self.runs,
            finished=len(self._cycles),
            cycle=spread(self._cycles),
            steps=sorted(steps, key=lambda each: -each.total),
            people=sorted(people, key=lambda each: -each.decided),
            reworked=len(self._reworked),
            rework_rate=len(self._reworked) / self.runs if self.runs else 0.0,
            is_partial=is_partial,
        )


def spread(took: Sequence[float]) -> Spread:
    """Durations in short; of none all is 0."""
    if not took:
        return Spread(count=0, mean=0.0, median=0.0, p90=0.0, longest=0.0)
    ordered = sorted(took)
    return Spread(
        count=len(ordered),
        mean=sum(ordered) / len(ordered),
        median=_at(ordered, 50),
        p90=_at(ordered, 90),
        longest=ordered[-1],
    )


def _at(ordered: Sequence[float], percent: int) -> float:
    """The smallest one that so many percent do not exceed."""
    return ordered[-(-len(ordered) * percent // 100) - 1]


def _seconds(took: timedelta) -> float:
    return max(0.0, took.total_seconds())


_PERIOD = timedelta(days=30)
_FIRST = datetime.min.replace(tzinfo=UTC)
_BATCH = 200
"""Runs that are read at once, as of one moment."""
MOST_RUNS = 100_000


class FutureReports:
    """What runs of a period tell of work as a whole. It takes the capability `execution:read`; a partition is told of its own runs."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def of(
        self,
        definition: DefinitionLike,
        *,
        version: str | int = "",
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 10_000,
    ) -> Reply[Report]:
        """Runs of a workflow, or documents of a type, that began in a period, the last thirty days if none is given.

        How long they took, at which nodes, who decided how much and how fast, and how many were done twice. At most `limit` runs are
        counted, the newest ones. They are read some two hundred at a time, without a lock. NotFoundError if there is no such workflow.
        """

        def read() -> Report:
            check_reader(self._desk)
            name, number = checked_definition(definition, version)
            end = checked_instant(until, "`until`") or self._desk.service.shared.clock.now()
            begin = checked_instant(since, "`since`") or max(end, _FIRST + _PERIOD) - _PERIOD
            if begin >= end:
                raise PayloadError("the period ends before it begins; give an earlier `since`, or a later `until`")
            most = checked_limit(limit)
            if most > MOST_RUNS:
                raise PayloadError(
                    f"a report counts at most {MOST_RUNS} runs; give a shorter period, or a smaller limit"
                )
            query = InstanceQuery(definition=name, definition_version=number, created_after=begin, created_before=end)
            tally, is_partial = self._counted(query, most)
            if not tally.runs:  # There was none, or there is no such workflow: whoever mistyped its name is told.
                self._desk.registry.library.graph(self._desk.tenant, name, number)
            return tally.report(name, begin, end, is_partial=is_partial)

        return self._desk.read(read)

    def _counted(self, query: InstanceQuery, most: int) -> tuple[Tally, bool]:
        tally = Tally()
        while True:
            size = min(_BATCH, most - tally.runs) or 1  # One more than is counted tells whether there are more.
            with self._desk.reader.look() as reader:
                headers = reader.instances(replace(query, limit=size))
                if not headers or tally.runs == most:
                    return tally, bool(headers)
                names = [each.id for each in headers]
                tally.add(
                    ReportFacts(
                        headers,
                        reader.rows_of(STEPS, names),
                        reader.rows_of(TASKS, names),
                        reader.rows_of(TASK_DECISIONS, names),
                        reader.rows_of(TASK_PEOPLE, names),
                    )
                )
            query = replace(query, before=headers[-1].id)
