"""Settings of an engine, with defaults that suit a first program."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import timedelta

import msgspec

from standfast.engine.common.environment import PREFIX, values_of
from standfast.errors import ConfigurationError
from standfast.kernel.codec.message_types import DEFAULT_LIMIT
from standfast.kernel.retry import LONGEST_TIMEOUT, NOT_A_TIMEOUT, RetryPolicy
from standfast.store.records.claim_order import DEFAULT_AGEING


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an engine."""

    worker_name: str = ""
    """Name of this process for operators. Empty means host name and process id."""
    concurrency: int = 1000
    """Total number of handlers that run concurrently in this process."""
    threads: int = 32
    """Number of plain (not async) handlers that run concurrently in this process. Calls that hang beyond their
    timeout do not count: as many extra threads can replace theirs."""
    lease: timedelta = timedelta(seconds=6)
    """How long a worker may be silent before its work is released to others."""
    beat_interval: timedelta = timedelta(seconds=1.5)
    """Interval between two heartbeats of a worker."""
    poll_interval: timedelta = timedelta(seconds=1)
    """Interval between polls for effects and messages without a hint. Hints usually arrive earlier."""
    timer_poll_interval: timedelta = timedelta(seconds=1)
    """Interval between polls for timers. It bounds the delay of a timer that another process set."""
    handler_timeout: timedelta | None = None
    """Timeout of handlers without one of their own. None means no limit."""
    people_timeout: timedelta = timedelta(seconds=30)
    """Timeout of one answer from a notification channel, a resolver or a directory."""
    charter_refresh: timedelta = timedelta(seconds=30)
    """How long an organisation's settings are cached for notices and dry runs. Decisions about documents always use
    the current ones."""
    handler_role: str = ""
    """Postgres role for transactional handlers, such as `standfast_tenant`. The tenant is set, so that row-level
    security applies to them. Empty means the user of the engine's connection."""
    retry: RetryPolicy = RetryPolicy()
    """Retry policy of effects, for handlers without one of their own."""
    command_retry: RetryPolicy = RetryPolicy()
    """Retry policy of timers and messages whose command failed."""
    batch_limit: int = 500
    """Maximum number of commands per transaction."""
    committers: int | None = None
    """Concurrent transactions of this process. None means the default of the database driver."""
    readers: int = 4
    """Concurrent queries of this process. Each needs a thread, and on Postgres a connection of a store that the
    engine opens; a given store keeps its own number."""
    cache_size: int = 10_000
    """Number of instances whose state is cached."""
    snapshot_events: int = 100
    """Minimum number of events between two snapshots."""
    patience: timedelta = timedelta(seconds=10)
    """How long a command waits for an unavailable database before it fails."""
    shutdown_timeout: timedelta = timedelta(seconds=10)
    """How long running handlers may take to finish when the engine stops."""
    unhealthy_after: timedelta = timedelta(seconds=10)
    """How long a part of the engine may fail or make no progress before `health` reports it."""
    max_payload_bytes: int = DEFAULT_LIMIT
    """Maximum size of a decider's command, event or effect. For a workflow, maximum size of input, answer, signal
    and the data of one branch."""
    ageing: float = DEFAULT_AGEING
    """Priority points that an effect gains per second of waiting. 0 disables ageing."""
    ageing_enabled: bool = True
    """Whether waiting raises priority. If False, effects are ordered by their priorities alone."""
    tenant_rate: float | None = None
    """Effects per second that a tenant may request in this process before those of other tenants go first. It delays
    no tenant while there is capacity. None means one queue for all tenants."""
    workflow_rate: float | None = None
    """Decisions, transitions, advances and repairs per second that this process accepts from a tenant in the long
    run. More are refused; edits are not limited. None means no limit."""
    projection_batch: int = 500
    """Maximum number of events per batch of a projection."""
    projection_pause: timedelta = timedelta(seconds=0.5)
    """First delay after a failure of a projection. Each further failure doubles it."""
    longest_projection_pause: timedelta = timedelta(minutes=1)
    """Longest delay after a failure of a projection."""
    observe_inputs: bool = False
    """Whether to record each command's type and its effect on the status."""
    missing_handler_cooldown: timedelta = timedelta(seconds=5)
    """How long an effect waits for a handler that no live worker has before it counts as missed. Also the interval
    of that check."""
    missing_handler_jitter: float = 0.2
    """Random variation of that interval, as a share from 0 to 1, so that processes do not check simultaneously."""
    missing_handler_throttle: timedelta = timedelta(minutes=1)
    """Interval between two reports of a missing handler, or of unreadable work. They go to the log and to the
    waiting instances."""
    unreadable_after: timedelta = timedelta(minutes=1)
    """How long unreadable work waits before it becomes an incident and moves to the dead letters. Work that code
    seen within a day can read is also an incident, but waits for that code."""
    hung_after: timedelta = timedelta(minutes=5)
    """How long a handler call may take before `why`, `doctor`, health and metrics report that it may hang. The call
    continues."""
    collect_after: int | None = None
    """New objects between two runs of Python's garbage collector in the whole process, set when a worker starts.
    None keeps Python's value. `run` defaults to 50,000, because its process belongs to the engine."""
    event_ttl: timedelta = timedelta(days=7)
    """How long a published event is kept for later subscribers if its publisher does not say. 0 keeps none."""
    keep_receipts: timedelta = timedelta(days=30)
    """How long a command id is remembered, even after its instance is deleted. For a document, at least until the
    document ends."""
    keep_finished: timedelta | None = None
    """How long after their end finished instances are deleted, unless something still needs them. None keeps them
    forever."""
    compress_after: timedelta | None = timedelta(days=365)
    """How long after their end the inputs and outputs of steps are compressed. Readers see no difference. None means
    never."""
    stuck_after: timedelta = timedelta(minutes=15)
    """How long a run that cannot be woken may be inactive before listeners, log, metrics, health and alerts report
    it."""
    alerts: tuple[str, ...] = ()
    """Recipients of alerts about such runs, at most one per run and day, as `channel:recipient`:
    `email:ops@example.com`, `pager:role:operators`. The channels are those of notices."""
    notice_retry_for: timedelta = timedelta(days=3)
    """How long a failed notice is retried, for example while the mail server is unavailable. The delay doubles from
    a second up to a quarter of an hour. Then the notice becomes a dead letter. 0 means one attempt."""
    mail_host: str = ""
    """SMTP server of the `email` channel. Empty means that there is no such channel."""
    mail_port: int = 587
    """Port of the SMTP server."""
    mail_from: str = ""
    """Sender address of mails, such as `Standfast <standfast@example.com>`."""
    mail_user: str = ""
    """User name for the SMTP server. Empty means no login."""
    mail_password_from: str = ""
    """Where the password is read when a mail is sent: `env:NAME` for an environment variable, or `file:/path`."""
    mail_tls: str = "starttls"
    """Encryption of the connection to the SMTP server: `starttls`, `tls` from the first byte, or `none`."""

    outbound_allow: tuple[str, ...] = ()
    """Hosts (`erp.internal`, `*.svc.local`) and networks (`10.0.0.0/8`) with private addresses that HTTP calls may
    reach."""
    webhook_secrets: tuple[str, ...] = ()
    """Secrets that requests of document workflows may be signed with: `env:NAME` or `file:/path`. A final star
    matches any suffix."""
    invokers: tuple[str, ...] = ()
    """Invokers of installed packages to load, by the names of their entry points in the group `standfast.invokers`."""
    resume_timeout: timedelta = timedelta(hours=24)
    """How long a rule workflow may be paused before it fails. Other kinds stay paused until they are resumed."""
    resume_auto_escalate: bool = False
    """Whether an overdue task of a rule workflow is escalated once before the workflow fails. Sagas declare this
    themselves (`escalate`)."""
    auto_resume_after_approval: bool = True
    """Whether a rule workflow continues as soon as its task is decided. Otherwise it waits for `resume` or for the
    resume worker."""
    resume_worker_interval: timedelta | None = timedelta(minutes=5)
    """Interval of the resume worker, which handles stored resume requests, decided tasks and expired pauses. None
    disables it. If `auto_resume_after_approval` is also off, paused rule workflows stay paused, and the server's
    resume endpoints answer 404 for them."""

    @property
    def resumes_rules(self) -> bool:
        """Whether the engine resumes rule workflows, and not only the application."""
        return self.auto_resume_after_approval or self.resume_worker_interval is not None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read settings from environment variables, with defaults for the rest.

        Each setting is read under its own name, in capitals and with one prefix, such as `STANDFAST_CONCURRENCY=50`.
        Durations are written like `24h`, `5m` or `1h30m`. An unknown variable with the prefix, or an impossible value,
        raises ConfigurationError.
        """
        said = values_of(cls, os.environ if environment is None else environment)
        try:
            return cls(**said)
        except ConfigurationError as error:
            told = f"the environment says what cannot be: {error}; the variable of a setting is its name in capitals after {PREFIX}"
            raise ConfigurationError(told) from error

    def __post_init__(self) -> None:
        for name in _COUNTS:
            self._check_count(name, getattr(self, name))
        for name in _DURATIONS:
            _check_duration(name, getattr(self, name))
        if self.lease < 3 * self.beat_interval:
            raise ConfigurationError(
                f"lease ({self.lease}) must be at least three beat_intervals ({self.beat_interval})"
            )
        for name in _RATES:
            _check_rate(name, getattr(self, name))
        if self.ageing and not _LEAST_AGEING <= self.ageing < math.inf:
            raise ConfigurationError(f"ageing must not be negative: it is 0 or from {_LEAST_AGEING}, not {self.ageing}")
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ConfigurationError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if not 0 <= self.missing_handler_jitter <= 1:
            raise ConfigurationError(
                f"missing_handler_jitter must be between 0 and 1, not {self.missing_handler_jitter}"
            )
        for name in _LISTS:
            _check_list(name, getattr(self, name))
        _check_alerts(self.alerts)
        self._check_mail()

    def _check_mail(self) -> None:
        if self.mail_tls not in _TLS:
            raise ConfigurationError(f"mail_tls must be one of {', '.join(_TLS)}, not {self.mail_tls!r}")
        if self.mail_host and "@" not in self.mail_from:
            raise ConfigurationError(f"mail_from must be an address where there is a mail_host, not {self.mail_from!r}")
        if self.mail_user and not self.mail_password_from:
            raise ConfigurationError("mail_password_from must say where the password of mail_user is found")
        if self.mail_password_from and not self.mail_password_from.startswith(("env:", "file:")):
            raise ConfigurationError(
                "mail_password_from must begin with env: or file:; the password itself is no setting"
            )

    def _check_count(self, name: str, given: object) -> None:
        least = _COUNTS[name]
        if given is None and name in {"committers", "collect_after"}:
            return
        if not isinstance(given, int) or given < least:
            raise ConfigurationError(f"{name} must be at least {least}, and a whole number, not {given!r}")

    @property
    def ageing_rate(self) -> float:
        """The effective ageing rate."""
        return self.ageing if self.ageing_enabled else 0.0


_LEAST_RATE = 0.001
_LEAST_AGEING = 1e-9
"""A smaller rate is less than a point in thirty years, and no database can order by it."""

_TLS = ("starttls", "tls", "none")

_COUNTS = {
    "concurrency": 1,
    "threads": 1,
    "batch_limit": 1,
    "committers": 1,
    "readers": 1,
    "cache_size": 0,
    "snapshot_events": 1,
    "max_payload_bytes": 1,
    "projection_batch": 1,
    "collect_after": 1,
    "mail_port": 1,
}
"""Minimum value of each count."""

_DURATIONS = (
    "lease",
    "beat_interval",
    "poll_interval",
    "timer_poll_interval",
    "handler_timeout",
    "people_timeout",
    "charter_refresh",
    "patience",
    "shutdown_timeout",
    "unhealthy_after",
    "missing_handler_cooldown",
    "missing_handler_throttle",
    "unreadable_after",
    "hung_after",
    "event_ttl",
    "keep_receipts",
    "keep_finished",
    "stuck_after",
    "notice_retry_for",
    "compress_after",
    "projection_pause",
    "longest_projection_pause",
    "resume_timeout",
    "resume_worker_interval",
)

_RATES = ("tenant_rate", "workflow_rate")

_SWITCHES = ("ageing_enabled", "observe_inputs", "resume_auto_escalate", "auto_resume_after_approval")

_LISTS = ("outbound_allow", "webhook_secrets", "invokers", "alerts")

_MAY_BE_NONE = {"handler_timeout", "keep_finished", "compress_after", "resume_worker_interval"}

_INTERVALS = {"beat_interval", "poll_interval", "timer_poll_interval", "resume_worker_interval"}
"""Intervals between two rounds of loops."""

_LEAST_INTERVAL = timedelta(milliseconds=1)


def _check_list(name: str, given: object) -> None:
    if not isinstance(given, tuple) or not all(isinstance(each, str) and each for each in given):
        raise ConfigurationError(f"{name} must be a tuple of texts, such as {name}=('one', 'another'), not {given!r}")


def _check_rate(name: str, rate: float | None) -> None:
    if rate is not None and not _LEAST_RATE <= rate < math.inf:
        raise ConfigurationError(f"{name} must be None, or at least {_LEAST_RATE}, not {rate}")


def _check_alerts(given: tuple[str, ...]) -> None:
    for each in given:
        channel, _, to = each.partition(":")
        if not channel or not to.removeprefix("role:"):
            told = "alerts must each name a channel and who is told, such as email:ops@example.com"
            raise ConfigurationError(f"{told}, not {each!r}")


def _check_duration(name: str, duration: object) -> None:
    if duration is None and name in _MAY_BE_NONE:
        return
    if not isinstance(duration, timedelta):
        raise ConfigurationError(f"{name} must be a timedelta, not {duration!r}")
    if name in {"handler_timeout", "people_timeout"} and not timedelta(0) < duration <= LONGEST_TIMEOUT:
        raise ConfigurationError(f"{name} {duration} {NOT_A_TIMEOUT}")
    if duration < timedelta(0):
        raise ConfigurationError(f"{name} must not be negative")
    if duration > LONGEST_TIMEOUT:
        raise ConfigurationError(f"{name} must not be longer than a hundred years, not {duration}")
    if name in _INTERVALS and duration < _LEAST_INTERVAL:
        least = _LEAST_INTERVAL.total_seconds()
        raise ConfigurationError(f"{name} must be at least {least} s, or its loop never rests")
    if name == "unhealthy_after" and not duration:
        raise ConfigurationError(f"{name} must be more than zero, or nothing is ever healthy")
