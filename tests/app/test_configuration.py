"""What a program is told from outside: file, environment and flags, and where each value came from."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from standfast import ConfigurationError, Settings
from standfast.app.configuration import FILE, FILE_VARIABLE, Configuration, Source, configured
from standfast.engine.common.environment import OF_PROGRAMS, PREFIX, SETTINGS, fields_of, variable_of


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said(text: str, environment: dict[str, str] | None = None, **flags: object) -> Source:
    """What comes of a file, an environment and flags."""
    Path(FILE).write_text(text, encoding="utf-8")
    return configured({name: (value, f"--{name}") for name, value in flags.items()}, environment or {})


@pytest.mark.row("G-07")
def test_nothing_said_means_the_defaults() -> None:
    """Without a file, variables and flags."""
    found = configured({}, {"PATH": "/bin"})
    assert found.configuration == Configuration()
    assert {origin for _, _, origin in found.values()} == {"default"}


def test_flags_overrule_the_environment_and_that_the_file() -> None:
    """And every value knows who said it."""
    text = (
        'database = "sqlite:///file.db"\ntenant = "file"\nactor = "file"\n[settings]\nconcurrency = 5\nlease = "9s"\n'
    )
    found = said(
        text, {"STANDFAST_TENANT": "variable", "STANDFAST_ACTOR": "variable", "STANDFAST_LEASE": "12s"}, actor="flag"
    )
    told = found.configuration
    assert (told.database, told.tenant, told.actor) == ("sqlite:///file.db", "variable", "flag")
    assert (told.settings.concurrency, told.settings.lease) == (5, timedelta(seconds=12))
    origins = found.origins
    assert origins["database",] == origins["settings", "concurrency"] == FILE
    assert (origins["tenant",], origins["settings", "lease"]) == ("STANDFAST_TENANT", "STANDFAST_LEASE")
    assert (origins["actor",], origins["app",]) == ("--actor", "default")
    assert (found.is_said("tenant"), found.is_said("app")) == (True, False)


def test_a_file_says_everything_in_types_of_its_own() -> None:
    """Texts, numbers, switches and lists as TOML has them; durations and `none` as texts; tables for what is inside."""
    text = """
roles = ["finance", "it"]
processes = 3
[settings]
observe_inputs = true
ageing = 1
committers = "none"
handler_timeout = "none"
mail_tls = "tls"
[settings.retry]
max_attempts = 7
backoff = "linear"
"""
    told = said(text).configuration
    assert (told.roles, told.processes) == (("finance", "it"), 3)
    assert (told.settings.observe_inputs, told.settings.ageing, told.settings.committers) == (True, 1.0, None)
    assert (told.settings.retry.max_attempts, told.settings.retry.backoff) == (7, "linear")
    assert told.settings.command_retry == Settings().command_retry


def test_lists_are_parted_by_commas_in_the_environment() -> None:
    """Blanks around them do not count."""
    assert configured({}, {"STANDFAST_ROLES": "finance, it"}).configuration.roles == ("finance", "it")


def test_another_file_can_be_named() -> None:
    """By a variable, or by a flag, which wins; then it must be there."""
    for name in ("a.toml", "b.toml"):
        Path(name).write_text(f'tenant = "{name}"', encoding="utf-8")
    Path(FILE).write_text('tenant = "neither"', encoding="utf-8")
    assert configured({}, {FILE_VARIABLE: "a.toml"}).configuration.tenant == "a.toml"
    assert configured({}, {FILE_VARIABLE: "a.toml"}, file="b.toml").configuration.tenant == "b.toml"
    with pytest.raises(ConfigurationError, match=r"c\.toml cannot be read: No such file"):
        configured({}, {}, file="c.toml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("databse = 'x'", "no setting 'databse'; did you mean 'database'?"),
        ("[settings]\nconcurency = 5", "no setting 'settings.concurency'; did you mean 'concurrency'?"),
        ("[setings]\nconcurrency = 5", "no setting 'setings'; did you mean 'settings'?"),
        ("concurrency = 5", r"'concurrency' belongs into the table \[settings\]"),
        ("[settings]\ntenant = 'x'", "'tenant' belongs into the top of the file"),
        ("[settings.retry]\nmax_atempts = 5", "did you mean 'max_attempts'?"),
        ("zzz = 1", "`standfast config` lists"),
        ("settings = 5", r"settings is a table, such as \[settings\], not 5"),
        ("[settings]\nlease = 5", "settings.lease is 5; give a duration"),
        ("[settings]\nlease = 'soon'", "settings.lease is 'soon'; give a duration such as 24h"),
        ("[settings]\nconcurrency = '5x'", "settings.concurrency is '5x'; give a whole number"),
        ("[settings]\nconcurrency = true", "settings.concurrency is True; give a whole number"),
        ("[settings]\nobserve_inputs = 1", "give true or false"),
        ("roles = 'x'\n[settings.retry]\nbackoff = 'random'", "it is one of fixed"),
        ("database = 5", "database is no text; give a text"),
        ("roles = [1]", "give a list of texts"),
        ("[settings]\nconcurrency = 0", r"invalid configuration in standfast.toml: concurrency must be at least 1"),
        ("processes = 0", "processes must be at least 1"),
        ("[serve]\nport = 70000", "serve.port must be from 0 to 65535, not 70000"),
        ("[serve]\nport = -1", "serve.port must be"),
        ("[serve]\ncertificate_key = 'key.pem'", "of no use without serve.certificate"),
        ("a = ", "is no TOML"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, told: str) -> None:
    """The sentence names the file, the key, and what is possible."""
    with pytest.raises(ConfigurationError, match=told):
        said(text)


def test_a_file_that_is_no_text_is_refused() -> None:
    """As no TOML."""
    Path(FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="is no TOML"):
        configured({}, {})


def test_an_address_under_a_misspelt_name_is_not_repeated() -> None:
    """There may be a password in it."""
    with pytest.raises(ConfigurationError, match="did you mean STANDFAST_DATABASE") as raised:
        configured({}, {"STANDFAST_DATABSE": "postgresql://ann:hunter2@host/db"})
    assert "hunter2" not in str(raised.value)


def test_settings_leave_the_variables_of_programs_alone() -> None:
    """An engine that reads its settings from the environment may run beside a command line that does; each variable has one meaning."""
    own = {variable_of(path) for path in fields_of(Configuration) if path[0] != SETTINGS}
    assert own | {FILE_VARIABLE} == OF_PROGRAMS
    assert Settings.from_environment(dict.fromkeys(OF_PROGRAMS, "x")) == Settings()
    settings = {variable_of(path) for path in fields_of(Settings)}
    assert not settings & OF_PROGRAMS
    assert all(name.startswith(PREFIX) for name in settings)
