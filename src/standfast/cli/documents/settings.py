"""`standfast charters`: rules for document types, and settings of the organisation."""

from __future__ import annotations

from typing import Final, cast

import click

from standfast.cli.framework import verbs
from standfast.cli.options import Json, listed, page_behind
from standfast.cli.output import Columns, json_option, print_json, print_list
from standfast.cli.target import Target, acted, tenant_scope
from standfast.errors import ConfigurationError
from standfast.features.documents.settings_calls import Charter

_RULES: Final = "rules:"
_SETTINGS: Final = "settings"
LISTING: Columns[Charter] = {
    "NAME": lambda each: each.name,
    "VERSION": lambda each: each.version,
    "BY": lambda each: each.published_by,
    "AT": lambda each: each.published_at,
    "COMMENT": lambda each: each.comment,
}
name_argument = click.argument("name")


@verbs("charters")
def charters() -> None:
    """Show and publish the organisation's document rules and settings."""


@charters.command("list", examples=["standfast charters list"])
@listed
@tenant_scope
def list_charters(place: Target, *, as_json: bool, limit: int, after: str) -> None:
    """List all versions of all rules and settings, by name, each oldest first."""
    with place.calls() as calls:
        shown, more = page_behind(calls.charters.list(), limit, after, lambda each: f"{each.name}/{each.version}")
    print_list(shown, LISTING, as_json=as_json, after=more)


@charters.command(
    "show", examples=["standfast charters show settings", "standfast charters show rules:invoice --version 1"]
)
@name_argument
@click.option("--version", type=click.IntRange(1), default=None, help="This version; the newest one otherwise.")
@click.option("--json", "as_json", is_flag=True, help="Print all that is known of it.")
@tenant_scope
def show_charter(place: Target, *, name: str, version: int | None, as_json: bool) -> None:
    """Print NAME as JSON, to edit and put again."""
    type_ = _type_of(name)
    with place.calls() as calls:
        found = calls.charters.rules(type_, version or 0) if type_ else calls.charters.settings(version or 0)
    print_json(found if as_json else found.rules if type_ else found.settings)


@charters.command(
    "put",
    examples=[
        "standfast charters put settings '{\"limit\": 5}' --replaces 1",
        "standfast charters put rules:invoice '[]' --comment 'none any more'",
    ],
)
@name_argument
@click.argument("given", metavar="JSON", type=Json())
@click.option("--replaces", type=click.IntRange(0), help="Do nothing if the newest version is another one; 0 for none.")
@click.option("--comment", default="", help="A comment.")
@json_option
@acted
def put_charter(place: Target, *, name: str, given: object, replaces: int | None, comment: str, as_json: bool) -> None:
    """Publish all rules of a type, a list, or all settings, an object; they replace the previous ones."""
    type_ = _type_of(name)
    kind = list if type_ else dict
    if not isinstance(given, kind):
        raise ConfigurationError("rules are a list, settings an object: give JSON, @file, or -")
    with place.calls() as calls:
        if type_:
            rules = cast("list[dict[str, object]]", given)
            made = calls.charters.publish_rules(type_, rules, replaces=replaces, comment=comment)
        else:
            made = calls.charters.publish_settings(cast("dict[str, object]", given), replaces=replaces, comment=comment)
    print_json(made) if as_json else click.echo(f"{made.name} is at version {made.version}")


def _type_of(name: str) -> str:
    """Return the type whose rules are meant; empty for the settings."""
    if name == _SETTINGS:
        return ""
    if not name.removeprefix(_RULES) or not name.startswith(_RULES):
        raise ConfigurationError(f"there is no {name!r}: say `settings`, or `rules:` with a type of documents")
    return name.removeprefix(_RULES)
