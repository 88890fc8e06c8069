"""Prometheus metrics. Every label has a bounded number of values, whatever the names of clients and definitions."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from standfast.engine.common.telemetry import (
    CommandRefused,
    Committed,
    EffectBuried,
    EffectEnded,
    Happening,
    InstanceEnded,
    InstanceStarted,
    LoopFailed,
    StepBuried,
    StepTimedOut,
    TimerFired,
    WorkBuried,
    WorkRetried,
)

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
_MOST_VALUES: Final = 100
_OTHER: Final = "other"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})

Labels = tuple[tuple[str, str], ...]


class Counting:
    """A number that only grows, for each combination of labels."""

    def __init__(self, name: str, told: str) -> None:
        self.name = name
        self.told = told
        self.values: dict[Labels, float] = {}

    def add(self, amount: float = 1.0, **labels: str) -> None:
        """Add an amount."""
        key = tuple(labels.items())
        self.values[key] = self.values.get(key, 0.0) + amount

    def lines(self) -> Iterator[str]:
        """As Prometheus reads it."""
        yield from _head(self.name, self.told, "counter")
        yield from (_line(self.name, labels, value) for labels, value in sorted(self.values.items()))


class DurationMetric:
    """How long something took, in buckets, for each combination of labels."""

    def __init__(self, name: str, told: str) -> None:
        self.name = name
        self.told = told
        self._buckets: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def add(self, seconds: float, **labels: str) -> None:
        """Add an observation."""
        key = tuple(labels.items())
        buckets = self._buckets.setdefault(key, [0] * (len(_SECONDS) + 1))
        place = next((at for at, most in enumerate(_SECONDS) if seconds <= most), len(_SECONDS))
        buckets[place] += 1
        self._sums[key] = self._sums.get(key, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        """As Prometheus reads it."""
        yield from _head(self.name, self.told, "histogram")
        for labels, buckets in sorted(self._buckets.items()):
            total = 0
            for most, count in zip((*_SECONDS, float("inf")), buckets, strict=True):
                total += count
                bound = "+Inf" if most == float("inf") else f"{most:g}"
                yield _line(f"{self.name}_bucket", (*labels, ("le", bound)), total)
            yield _line(f"{self.name}_sum", labels, self._sums[labels])
            yield _line(f"{self.name}_count", labels, total)


class Bounded:
    """Names that become labels: the first hundred as they are, all further ones as `other`."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def of(self, name: str) -> str:
        """The label for a name."""
        if name in self._known:
            return name
        if len(self._known) >= _MOST_VALUES:
            return _OTHER
        self._known.add(name)
        return name


class Gauges:
    """All that is measured of the server and of the engine in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handlers = Bounded()
        self._definitions = Bounded()
        self._works = Bounded()
        self._requests = Counting("standfast_http_requests_total", "Requests that were answered.")
        self._seconds = DurationMetric("standfast_http_request_seconds", "How long requests took.")
        self._started = Counting("standfast_instances_started_total", "Instances that were started in this process.")
        self._ended = Counting("standfast_instances_ended_total", "Instances that ended in this process.")
        self._calls = Counting("standfast_handler_calls_total", "Calls of handlers that came back.")
        self._took = DurationMetric("standfast_handler_seconds", "How long handlers took.")
        self._worked = DurationMetric("standfast_work_seconds", "How long work took, by what it was.")
        self._lasted = DurationMetric(
            "standfast_instance_seconds", "How long instances took from their first commit to their last."
        )
        self._retried = Counting("standfast_retries_total", "Calls that failed and are made again.")
        self._waited = DurationMetric("standfast_queue_seconds", "How long work waited before a worker took it.")
        self._buried = Counting("standfast_dead_letters_total", "Dead-lettered steps, effects, timers and messages.")
        self._timeouts = Counting(
            "standfast_workflow_timeouts_total", "Steps and workflows whose time was over, so that something followed."
        )
        self._late = DurationMetric("standfast_timer_late_seconds", "How late timers fired.")
        self._commits = Counting("standfast_commits_total", "Commits.")
        self._held = DurationMetric(
            "standfast_commit_seconds", "How long commits took, which is how long their instances were locked."
        )
        self._events = Counting("standfast_events_total", "Events that were written.")
        self._refused = Counting("standfast_commands_refused_total", "Commands that were refused or failed.")
        self._failures = Counting("standfast_loop_failures_total", "Failures of the engine's own loops.")

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        known = method if method in _METHODS else _OTHER
        with self._lock:
            self._requests.add(method=known, route=route, status=f"{status // 100}xx")
            self._seconds.add(seconds, route=route)

    def heard(self, happening: Happening) -> None:
        """Count a telemetry event of the engine."""
        with self._lock:
            self._count(happening)

    def _count(self, happening: Happening) -> None:
        match happening:
            case Committed():
                self._commits.add()
                self._held.add(happening.took.total_seconds())
                self._events.add(happening.events)
            case InstanceStarted():
                self._started.add(definition=self._definitions.of(happening.definition))
            case InstanceEnded():
                name = self._definitions.of(happening.definition)
                self._ended.add(definition=name, status=_word(happening.status))
                self._lasted.add(happening.took.total_seconds(), definition=name)
            case EffectEnded():
                handler = self._handlers.of(happening.handler)
                self._calls.add(handler=handler, outcome="failed" if happening.error else "ok")
                self._took.add(happening.took.total_seconds(), handler=handler)
                self._worked.add(happening.took.total_seconds(), work=self._works.of(happening.work))
                self._waited.add(happening.waited.total_seconds(), handler=handler)
            case EffectBuried() | StepBuried() | WorkBuried():
                self._buried.add(source=_source(happening), definition=self._definitions.of(happening.definition))
            case _:
                self._count_rarer(happening)

    def _count_rarer(self, happening: Happening) -> None:
        match happening:
            case WorkRetried():
                self._retried.add(definition=self._definitions.of(happening.definition))
            case StepTimedOut():
                self._timeouts.add(definition=self._definitions.of(happening.definition))
            case TimerFired():
                self._late.add(happening.late_by.total_seconds())
            case CommandRefused():
                self._refused.add()
            case LoopFailed():
                self._failures.add(loop=happening.loop)
            case _:
                pass

    def text(self, gauges: Sequence[tuple[str, str, Labels, float]]) -> str:
        """All of it, with figures of the moment."""
        with self._lock:
            parts: Iterable[Counting | DurationMetric] = [
                x for x in vars(self).values() if isinstance(x, Counting | DurationMetric)
            ]
            lines = [line for part in parts for line in part.lines()]
        named: set[str] = set()
        for name, told, labels, value in gauges:
            if name not in named:
                lines += _head(name, told, "gauge")
                named.add(name)
            lines.append(_line(name, labels, value))
        return "\n".join(lines) + "\n"


def _source(buried: EffectBuried | StepBuried | WorkBuried) -> str:
    match buried:
        case WorkBuried():
            return buried.source
        case StepBuried():
            return "step"
        case EffectBuried():
            return "effect"


def _word(status: str) -> str:
    return status if status in {"completed", "failed", "cancelled", "aborted"} else _OTHER


def _head(name: str, told: str, kind: str) -> list[str]:
    return [f"# HELP {name} {told}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Labels, value: float) -> str:
    told = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{told}}} {value:g}" if told else f"{name} {value:g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
