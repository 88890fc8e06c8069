"""`standfast config`: every value, and where it came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import Standfast
from standfast import Settings
from standfast.app.configuration import Configuration, configured
from standfast.cli.exit_codes import Exit
from standfast.engine.common.environment import fields_of, text_of, variable_of
from support.repository import ROOT


def values(standfast: Standfast, *arguments: str) -> dict[str, tuple[str, str]]:
    """Values and origins by name."""
    items = standfast.json("config", *arguments)["items"]
    assert isinstance(items, list)
    return {each["name"]: (each["value"], each["origin"]) for each in items}


def test_every_value_is_shown_with_its_origin(standfast: Standfast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags before variables, these before the file, that before the defaults."""
    Path("standfast.toml").write_text(
        'tenant = "file"\nactor = "file"\n[settings]\nlease = "1m30s"\n', encoding="utf-8"
    )
    monkeypatch.setenv("STANDFAST_ACTOR", "variable")
    monkeypatch.setenv("STANDFAST_CONCURRENCY", "5")
    told = values(standfast, "--as", "flag", "--role", "it", "--role", "hr")
    assert set(told) == {".".join(path) for path in fields_of(Configuration)}
    assert told["tenant"] == ("file", "standfast.toml")
    assert told["actor"] == ("flag", "--as")
    assert told["roles"] == ("it,hr", "--role")
    assert told["settings.lease"] == ("1m30s", "standfast.toml")
    assert told["settings.concurrency"] == ("5", "STANDFAST_CONCURRENCY")
    assert told["settings.threads"] == (str(Settings().threads), "default")
    assert set(values(standfast, "--said")) == {"tenant", "actor", "settings.lease", "settings.concurrency"}
    lines = standfast("config", "--said").stdout.splitlines()
    assert lines[0].split() == ["NAME", "VALUE", "FROM", "VARIABLE"]
    assert ["settings.lease", "1m30s", "standfast.toml", "STANDFAST_LEASE"] in [line.split() for line in lines]


def test_what_is_shown_can_be_said(standfast: Standfast) -> None:
    """Every default, written as it is shown into its variable, is what it was."""
    items = standfast.json("config")["items"]
    assert isinstance(items, list)
    said = {each["variable"]: each["value"] for each in items}
    assert configured({}, said).configuration == Configuration()


def test_a_value_is_asked_for_by_name(standfast: Standfast) -> None:
    """Or by what its name begins with; a name that is not there is answered with one that is."""
    assert values(standfast, "settings.lease") == {"settings.lease": ("6s", "default")}
    assert all(name.startswith("settings.retry.") for name in values(standfast, "settings.retry"))
    assert "did you mean 'settings.lease'?" in standfast("config", "settings.leese", code=Exit.NOT_FOUND).stderr
    assert "did you mean 'settings.lease'?" in standfast("config", "lease", code=Exit.NOT_FOUND).stderr


def test_every_value_is_on_the_page_of_settings() -> None:
    """With its variable and its default as it is written, not as the code calls it."""
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    for path in fields_of(Configuration):
        value: object = Configuration()
        for name in path:
            value = getattr(value, name)
        shown = f"`{text_of(value)}`" if text_of(value) else ""
        assert f"`{path[-1]}` | `{variable_of(path)}` | {shown}" in page.replace(
            f"`{'.'.join(path[1:])}`", f"`{path[-1]}`"
        )


def test_passwords_are_not_shown(standfast: Standfast) -> None:
    """Of an address only the rest is."""
    told = standfast("config", "database", "--database", "postgresql://ann:hun@ter2@host/db").stdout
    assert "ter2" not in told
    assert "postgresql://ann:***@host/db" in told
    told = standfast("config", "database", "--database", "postgresql://host/db?password=hunter2&user=ann").stdout
    assert "postgresql://host/db?password=***&user=ann" in told
    told = standfast("config", "database", "--database", "postgresql://ann:hun/ter2@host/db").stdout
    assert "postgresql://ann:***@host/db" in told


def test_what_is_refused_is_told_without_what_may_be_a_secret(
    standfast: Standfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt name or a wrong type says nothing of the value: it is what a key or a password was meant to be."""
    for text in ("api_key = ['hunter2']", "database = ['postgresql://ann:hunter2@host/db']"):
        Path("standfast.toml").write_text(text, encoding="utf-8")
        told = standfast("config", code=Exit.WRONG).stderr
        assert "give a text" in told
        assert "hunter2" not in told
    Path("standfast.toml").unlink()
    monkeypatch.setenv("STANDFAST_APIKEY", "hunter2")
    told = standfast("config", code=Exit.WRONG).stderr
    assert "did you mean STANDFAST_API_KEY?" in told
    assert "hunter2" not in told


def test_a_wrong_configuration_stops_every_command(standfast: Standfast) -> None:
    """With the file, the key and one that is alike."""
    Path("standfast.toml").write_text("databse = 'x'", encoding="utf-8")
    for command in (["config"], ["list"], ["migrate"], ["worker"]):
        assert "did you mean 'database'?" in standfast(*command, code=Exit.WRONG).stderr
    assert standfast("template", "list").exit_code == Exit.DONE
    Path("other.toml").write_text("tenant = 'x'", encoding="utf-8-sig")  # As some editors write it, with a mark.
    assert values(standfast, "--config", "other.toml")["tenant"] == ("x", "other.toml")
