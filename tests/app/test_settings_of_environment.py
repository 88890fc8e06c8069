"""Settings from environment variables."""

from __future__ import annotations

from datetime import timedelta

import pytest

from standfast import ConfigurationError, RetryPolicy, Settings


@pytest.mark.row("R-087", "R-101", "R-102", "R-103", "R-104")
def test_nothing_said_means_the_defaults() -> None:
    """Those of the settings, whatever else is in the environment."""
    found = Settings.from_environment({"PATH": "/bin", "WORKFLOW_OTHER": "x", "STANDFAST_TEST_DSN": "postgresql://x"})
    assert found == Settings()
    assert (found.resume_timeout, found.resume_auto_escalate) == (timedelta(hours=24), False)
    assert (found.auto_resume_after_approval, found.resume_worker_interval) == (True, timedelta(minutes=5))


@pytest.mark.row("R-101", "R-102", "R-103", "R-104", "R-105")
@pytest.mark.parametrize("prefix", ["WORKFLOW_", "STANDFAST_"])
def test_the_settings_of_resuming_have_two_names(prefix: str) -> None:
    """Their own, and those of the specification."""
    said = {"RESUME_TIMEOUT": "1h30m", "RESUME_AUTO_ESCALATE": "true", "AUTO_RESUME_AFTER_APPROVAL": "no"}
    found = Settings.from_environment({prefix + name: value for name, value in said.items()})
    assert found.resume_timeout == timedelta(minutes=90)
    assert (found.resume_auto_escalate, found.auto_resume_after_approval) == (True, False)
    assert Settings.from_environment({f"{prefix}RESUME_WORKER_INTERVAL": "none"}).resume_worker_interval is None


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("CONCURRENCY", "50", "concurrency", 50),
        ("COMMITTERS", "none", "committers", None),
        ("LEASE", "10s", "lease", timedelta(seconds=10)),
        ("POLL_INTERVAL", "250ms", "poll_interval", timedelta(milliseconds=250)),
        ("KEEP_FINISHED", "1d12h", "keep_finished", timedelta(days=1, hours=12)),
        ("AGEING", "0.5", "ageing", 0.5),
        ("WORKER_NAME", "w-1", "worker_name", "w-1"),
        ("OBSERVE_INPUTS", "on", "observe_inputs", True),
        ("OUTBOUND_ALLOW", "erp.internal, 10.0.0.0/8", "outbound_allow", ("erp.internal", "10.0.0.0/8")),
        ("INVOKERS", "", "invokers", ()),
        ("RETRY_MAX_ATTEMPTS", "7", "retry", RetryPolicy(max_attempts=7)),
        ("COMMAND_RETRY_BACKOFF", "linear", "command_retry", RetryPolicy(backoff="linear")),
    ],
)
def test_every_setting_has_a_variable(name: str, text: str, field: str, value: object) -> None:
    """Its name in capitals with the prefix; those of a policy begin with the name of the policy."""
    assert getattr(Settings.from_environment({f"STANDFAST_{name}": text}), field) == value


@pytest.mark.row("R-105")
@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"WORKFLOW_RESUME_TIMEOUT": "soon"}, "WORKFLOW_RESUME_TIMEOUT is 'soon'; give a duration such as 24h"),
        ({"STANDFAST_RESUME_TIMEOUT": "24"}, "STANDFAST_RESUME_TIMEOUT is '24'; give a duration such as 24h"),
        ({"STANDFAST_RESUME_TIMEOUT": "-1h"}, "give a duration"),
        ({"STANDFAST_KEEP_FINISHED": "99999999999d"}, "a hundred years, or none"),
        ({"STANDFAST_INVOKERS": "a,,b"}, "give names with commas between them"),
        ({"WORKFLOW_RESUME_AUTO_ESCALATE": "maybe"}, "'maybe'; give true or false"),
        ({"STANDFAST_CONCURRENCY": "many"}, "STANDFAST_CONCURRENCY is 'many'; give a whole number"),
        ({"STANDFAST_AGEING": "x"}, "give a number"),
        ({"STANDFAST_RETRY_BACKOFF": "random"}, "it is one of fixed, linear, exponential"),
        (
            {"STANDFAST_CONCURENCY": "5"},
            "STANDFAST_CONCURENCY is no setting; did you mean STANDFAST_CONCURRENCY?",
        ),
        ({"STANDFAST_Q": "5"}, "the names are those of the settings"),
        ({"STANDFAST_RETRY": "5"}, "is no setting"),
        ({"WORKFLOW_RESUME_TIMEOUT": "1h", "STANDFAST_RESUME_TIMEOUT": "2h"}, "two names of one setting"),
        ({"STANDFAST_CONCURRENCY": "0"}, "concurrency must be at least 1"),
        ({"STANDFAST_RESUME_WORKER_INTERVAL": "0s"}, "at least 0.001 s"),
    ],
)
def test_what_cannot_be_meant_stops_the_start(said: dict[str, str], message: str) -> None:
    """The sentence names the variable, what it says, and what is possible."""
    with pytest.raises(ConfigurationError, match=message):
        Settings.from_environment(said)


@pytest.mark.parametrize("name", ["resume_auto_escalate", "auto_resume_after_approval"])
def test_a_switch_is_on_or_off(name: str) -> None:
    """Anything else is a mistake, whatever Python takes it for."""
    with pytest.raises(ConfigurationError, match=f"{name} must be True or False"):
        Settings(**{name: "no"})  # type: ignore[arg-type]
