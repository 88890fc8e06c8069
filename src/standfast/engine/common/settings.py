"""Everything that can be set, with defaults that a first program needs not touch."""

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
    """How an engine behaves."""

    worker_name: str = ""
    """How operators see this process; empty means host name and process id."""
    concurrency: int = 1000
    """Handlers that run at the same time in this process, all together."""
    threads: int = 32
    """Plain (not async) handlers that run at the same time in this process. Calls that hang past their limits do not count: up to as
    many threads again take the places of theirs."""
    lease: timedelta = timedelta(seconds=6)
    """How long a worker may be silent before its work is given to others."""
    beat_interval: timedelta = timedelta(seconds=1.5)
    """How often a worker says that it lives."""
    poll_interval: timedelta = timedelta(seconds=1)
    """How often effects and messages are looked for when no hint came; hints make it rarely matter."""
    timer_poll_interval: timedelta = timedelta(seconds=1)
    """How often timers are looked for beyond the known next one; bounds how late one set by another process can fire."""
    handler_timeout: timedelta | None = None
    """Longest call of a handler that sets no limit of its own; None means no limit."""
    people_timeout: timedelta = timedelta(seconds=30)
    """How long a channel of notices, a resolver or a directory may take for one answer; one that takes longer has failed."""
    charter_refresh: timedelta = timedelta(seconds=30)
    """For how long settings of organisations are remembered for notices and dry runs. Decisions about documents always go by the newest."""
    handler_role: str = ""
    """Postgres role that transactional handlers run under, with the tenant set, such as `standfast_tenant`: row-level security then holds
    for what they do. Empty means the user that the engine connects as."""
    retry: RetryPolicy = RetryPolicy()
    """When to try an effect again, for handlers without a policy of their own."""
    command_retry: RetryPolicy = RetryPolicy()
    """When to try a timer or a message again whose command failed."""
    batch_limit: int = 500
    """Commands that share one transaction at most."""
    committers: int | None = None
    """Transactions of this process that may be under way at the same time; None means what suits the database."""
    readers: int = 4
    """Questions of this process that are answered at the same time: threads, and on Postgres as many connections of the store that the
    engine opens; one that is given has those that it was opened with."""
    cache_size: int = 10_000
    """Instances whose state is kept in memory."""
    snapshot_events: int = 100
    """No snapshot before this many events since the last one."""
    patience: timedelta = timedelta(seconds=10)
    """How long a caller's command waits for a database that went away before it fails."""
    shutdown_timeout: timedelta = timedelta(seconds=10)
    """How long running handlers may finish when the engine stops."""
    unhealthy_after: timedelta = timedelta(seconds=10)
    """How long a part of the engine may make no progress, or only fail, before `health` says so."""
    max_payload_bytes: int = DEFAULT_LIMIT
    """Largest command, event or effect of a decider; of a workflow, largest input, answer or signal, and largest data of one way."""
    ageing: float = DEFAULT_AGEING
    """Points of priority that an effect gains for each second of waiting; 0 means that waiting counts for nothing."""
    ageing_enabled: bool = True
    """Whether waiting counts at all; without it effects go in the plain order of their priorities, whatever the rate."""
    tenant_rate: float | None = None
    """Effects per second that a tenant may ask for in this process before those of other tenants go first. It delays nobody while there
    is room. None means that all tenants stand in one line."""
    workflow_rate: float | None = None
    """Decisions, transitions, advances and repairs of a tenant that this process takes in a second, in the long run; more are refused, and edits
    are not. None means that nobody counts."""
    projection_batch: int = 500
    """Events that a projection takes in at once."""
    projection_pause: timedelta = timedelta(seconds=0.5)
    """How long a projection that failed is left alone; twice as long after each further failure."""
    longest_projection_pause: timedelta = timedelta(minutes=1)
    """How long it is left alone at most."""
    observe_inputs: bool = False
    """Write down each command's type and what it did to the status."""
    missing_handler_cooldown: timedelta = timedelta(seconds=5)
    """How long an effect waits for a handler that no live worker has before it counts as missed; also how often that is looked at."""
    missing_handler_jitter: float = 0.2
    """Share, 0 to 1, by which the time between two looks varies, so that many processes do not look at once."""
    missing_handler_throttle: timedelta = timedelta(minutes=1)
    """How often a handler that nobody has is reported, to the log and to the instances that wait for it, and work that nobody reads."""
    unreadable_after: timedelta = timedelta(minutes=1)
    """How long a message, timer or effect waits that no code can read before it is an incident and moves to the dead letters. What code that was
    here within a day can read is an incident too, and waits for that code."""
    hung_after: timedelta = timedelta(minutes=5)
    """How long one call of a handler may take before `why`, `doctor`, health and metrics say that it may hang; it is not stopped by that."""
    collect_after: int | None = None
    """New objects after which Python's garbage collector looks for circles, in the whole process, once a worker is started; None leaves
    it as it is. `run` makes it 50,000 where nothing is said, because its process is the engine's own."""
    event_ttl: timedelta = timedelta(days=7)
    """How long a published event is kept for those who begin to wait later, where its publisher says nothing; 0 keeps none."""
    keep_receipts: timedelta = timedelta(days=30)
    """How long a command id is remembered, whatever becomes of its instance; that of a document at least until the document ends."""
    keep_finished: timedelta | None = None
    """Finished instances are deleted this long after their end, or when nothing of them is needed any more; None keeps them for ever."""
    compress_after: timedelta | None = timedelta(days=365)
    """What steps were given and gave is kept compressed this long after they have ended; nobody who reads it sees a difference. None means never."""
    stuck_after: timedelta = timedelta(minutes=15)
    """How long nothing may have happened to a run that nothing can ever wake before listeners, the log, metrics, health and alerts tell of it."""
    alerts: tuple[str, ...] = ()
    """Who is told of such runs, each once a day, as `channel:recipient`: `email:ops@example.com`, `pager:role:operators`; the channels are those of notices."""
    notice_retry_for: timedelta = timedelta(days=3)
    """How long a notice is tried again that its channel cannot deliver, such as a mail while the server is away: after a second, then twice
    as long each time, up to a quarter of an hour. After that it is a dead letter. 0 means that it is tried once."""
    mail_host: str = ""
    """The SMTP server by which notices go to the channel `email`; empty means that there is no such channel."""
    mail_port: int = 587
    """The port of that server."""
    mail_from: str = ""
    """The address that mails are from, such as `Standfast <standfast@example.com>`."""
    mail_user: str = ""
    """Who signs in to that server; empty means nobody does."""
    mail_password_from: str = ""
    """Where the password is found when a mail is sent: `env:NAME`, a variable of the environment, or `file:/path`."""
    mail_tls: str = "starttls"
    """How the line to that server is encrypted: `starttls`, `tls` from the first byte, or `none`."""

    outbound_allow: tuple[str, ...] = ()
    """Hosts (`erp.internal`, `*.svc.local`) and networks (`10.0.0.0/8`) that calls over HTTP may reach although their addresses are not public."""
    webhook_secrets: tuple[str, ...] = ()
    """Secrets that requests of workflows of documents may be signed with: `env:NAME` or `file:/path`; a star at the end stands for whatever follows."""
    invokers: tuple[str, ...] = ()
    """Invokers of installed distributions that are loaded, by the names of their entry points in the group `standfast.invokers`."""
    resume_timeout: timedelta = timedelta(hours=24)
    """How long a workflow of rules may be paused before it fails; other kinds are paused for as long as nobody resumes them."""
    resume_auto_escalate: bool = False
    """Whether a question of a workflow of rules that nobody decides in time is put to others, once, before the workflow fails; sagas say so themselves (`escalate`)."""
    auto_resume_after_approval: bool = True
    """Whether a workflow of rules goes on as soon as its question is decided; otherwise it waits for `resume`, or for the resume worker."""
    resume_worker_interval: timedelta | None = timedelta(minutes=5)
    """How often a worker looks for what is to go on: requests that were written down, and what was decided or paused for too long.
    None means that nobody looks. Together with `auto_resume_after_approval` off it switches resuming of workflows of rules off: paused ones
    stay paused, and the resume endpoints of the server answer 404 for them."""

    @property
    def resumes_rules(self) -> bool:
        """Whether workflows of rules are resumed by anybody but the application itself."""
        return self.auto_resume_after_approval or self.resume_worker_interval is not None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Settings as the environment variables say them, and the defaults for the rest.

        Each is read under its own name, in capitals and with one prefix, such as `STANDFAST_CONCURRENCY=50`; durations are written like
        `24h`, `5m` or `1h30m`. A variable with the prefix that is no setting, or that says what cannot be, is a ConfigurationError.
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
        """The rate at which waiting counts."""
        return self.ageing if self.ageing_enabled else 0.0


_LEAST_RATE = 0.001
_LEAST_AGEING = 1e-9
"""Less is a point in more than thirty years, and no number that a database can order by."""

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
"""The least that each of them may be."""

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
"""How long loops rest between two looks."""

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
