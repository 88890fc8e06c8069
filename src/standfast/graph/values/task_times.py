"""The times of a human task: due date, reminders and escalation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import msgspec

from standfast.errors import Diagnostic
from standfast.graph.values.value_checks import listed, name_findings, time_findings

LEAST_EVERY_MS = 60_000
"""Repeated reminders are at least a minute apart, because each is recorded in the history."""
MOST_TIMES = 100
"""Maximum number of reminders and of escalations per task."""


class Rung(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A step of an escalation: more people are asked, or the task ends by an outcome."""

    after_ms: int
    """Time after the task was opened."""
    role: str = ""
    user: str = ""
    outcome: str = ""
    """Exactly one of the three is given."""
    timeout_ms: int | None = None
    """New time limit of the task, from this escalation on. None keeps it."""

    def findings(self, node: str, outcomes: Collection[str]) -> Iterator[Diagnostic]:
        """Yield its findings."""
        yield from time_findings(node, "escalate", f"the time after which {node!r} escalates", self.after_ms, low=1)
        given = [each for each in (self.role, self.user, self.outcome) if each]
        if len(given) != 1:
            told = "to no role, user or outcome" if not given else "to several at once"
            message = f"{node!r} escalates {told}; give each rung a role, a user or an outcome"
            yield Diagnostic("escalate", message, node)
        for each in (self.role, self.user):
            if each:
                yield from name_findings(node, "escalate", f"whom {node!r} escalates to", each)
        if self.outcome and self.outcome not in outcomes:
            message = f"{node!r} escalates to the outcome {self.outcome!r}; it has {listed(outcomes)}"
            yield Diagnostic("escalate", message, node)
        if self.timeout_ms is not None:
            what = f"the time that those have to whom {node!r} escalates"
            yield from time_findings(node, "escalate", what, self.timeout_ms, low=1)


class TaskTimes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Times of an unanswered task, counted from its opening."""

    due_ms: int | None = None
    """Due time, for display only."""
    reminders_ms: tuple[int, ...] = ()
    """Times of reminders to approvers, in rising order."""
    every_ms: int | None = None
    """Interval of repeated reminders."""
    escalation: tuple[Rung, ...] = ()
    """The escalations in rising order."""
    calendar: str = ""
    """Organisation calendar whose working time all of them count, including the task's time limit. Empty for elapsed
    time."""

    @property
    def reminds(self) -> bool:
        """Whether approvers are reminded."""
        return bool(self.reminders_ms) or self.every_ms is not None

    def findings(self, node: str, outcomes: Collection[str]) -> Iterator[Diagnostic]:
        """Yield their findings."""
        if self.due_ms is not None:
            yield from time_findings(node, "due", f"the time in which {node!r} is due", self.due_ms, low=1)
        for each in self.reminders_ms:
            yield from time_findings(node, "remind", f"a time after which {node!r} reminds", each, low=1)
        yield from _order(node, "remind", "reminds", self.reminders_ms)
        if self.every_ms is not None:
            what = f"the time between two reminders of {node!r}"
            yield from time_findings(node, "remind", what, self.every_ms, low=LEAST_EVERY_MS)
        if self.calendar:
            yield from name_findings(node, "calendar", f"the calendar of {node!r}", self.calendar)
            if self.every_ms is not None:
                message = f"{node!r} reminds again and again, which counts no working time; give times instead"
                yield Diagnostic("calendar", message, node)
        if self.every_ms is not None and self.reminders_ms:
            message = f"{node!r} reminds at given times and again and again; give one of the two"
            yield Diagnostic("remind", message, node)
        for rung in self.escalation:
            yield from rung.findings(node, outcomes)
        yield from _order(node, "escalate", "escalates", [rung.after_ms for rung in self.escalation])
        if any(rung.outcome for rung in self.escalation[:-1]):
            message = (
                f"{node!r} ends by an outcome before its last rung, so those behind it are never reached; put it last"
            )
            yield Diagnostic("escalate", message, node)

    def beyond(self, node: str, timeout_ms: int) -> Iterator[Diagnostic]:
        """Yield the times after the task's time limit, which escalations may extend."""
        over_ms = timeout_ms
        for rung in self.escalation:
            if rung.after_ms < over_ms and rung.timeout_ms is not None:
                over_ms = rung.after_ms + rung.timeout_ms
            elif rung.after_ms >= over_ms:
                yield Diagnostic("escalate", f"{node!r} escalates {_late(rung.after_ms, over_ms)}", node)
        if self.reminders_ms and self.reminders_ms[-1] >= over_ms:
            yield Diagnostic("remind", f"{node!r} reminds {_late(self.reminders_ms[-1], over_ms)}", node)


def _late(after_ms: int, over_ms: int) -> str:
    return f"after {after_ms} ms, and its time is over after {over_ms} ms; do it earlier, or give it more time"


def _order(node: str, code: str, does: str, times: Sequence[int]) -> Iterator[Diagnostic]:
    if len(times) > MOST_TIMES:
        yield Diagnostic(code, f"{node!r} {does} {len(times)} times; say at most {MOST_TIMES}", node)
    if any(count > 1 for count in Counter(times).values()) or list(times) != sorted(times):
        yield Diagnostic(
            code, f"{node!r} {does} at times that do not rise; put the earlier ones first, each once", node
        )
