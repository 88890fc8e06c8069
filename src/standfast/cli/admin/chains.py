"""`standfast chains`: approval chains, by name and version."""

from __future__ import annotations

import click

from standfast.cli.framework import verbs
from standfast.cli.options import Json, listed, page_behind
from standfast.cli.output import Columns, json_option, print_fields, print_json, print_list
from standfast.cli.target import Target, acted, tenant_scope
from standfast.errors import ConfigurationError
from standfast.people.approval_chains import Chain

LISTING: Columns[Chain] = {
    "NAME": lambda each: each.name,
    "VERSION": lambda each: each.version,
    "STAGES": lambda each: len(each.stages),
    "PUBLISHED": lambda each: each.published_at,
    "BY": lambda each: each.published_by,
    "DESCRIPTION": lambda each: each.description,
}


@verbs("chains")
def chains() -> None:
    """Approval chains: stages that are asked one after the other."""


@chains.command("list", examples=["standfast chains list"])
@listed
@tenant_scope
def list_chains(place: Target, *, as_json: bool, limit: int, after: str) -> None:
    """The newest version of each."""
    with place.calls() as calls:
        shown, more = page_behind(calls.chains.list(), limit, after, lambda each: each.name)
    print_list(shown, LISTING, as_json=as_json, after=more)


@chains.command("versions", examples=["standfast chains versions purchase"])
@click.argument("name")
@listed
@tenant_scope
def versions(place: Target, *, name: str, as_json: bool, limit: int, after: str) -> None:
    """All versions of one, oldest first."""
    with place.calls() as calls:
        shown, more = page_behind(calls.chains.versions(name), limit, after, lambda each: each.version)
    print_list(shown, LISTING, as_json=as_json, after=more)


@chains.command("show", examples=["standfast chains show purchase", "standfast chains show purchase 2"])
@click.argument("name")
@click.argument("version", type=click.IntRange(0), default=0)
@json_option
@tenant_scope
def show_chain(place: Target, *, name: str, version: int, as_json: bool) -> None:
    """One version of a chain, the newest if none is named, with its stages."""
    with place.calls() as calls:
        found = calls.chains.get(name, version)
    if as_json:
        print_json(found)
        return
    print_fields({head.lower(): value(found) for head, value in LISTING.items()})
    for number, stage in enumerate(found.stages, 1):
        asks = ", ".join(f"{each.by}:{each.of}" if each.of else each.by for each in stage.asks)
        click.echo(f"  {number}. {asks} ({stage.agree}{f' {stage.least}' if stage.least else ''})")


@chains.command(
    "publish", examples=['standfast chains publish purchase \'[{"asks": ["manager"]}, {"asks": ["role:finance"]}]\'']
)
@click.argument("name")
@click.argument("stages", type=Json())
@click.option("--description", default="", help="What it is for.")
@json_option
@acted
def publish_chain(place: Target, *, name: str, stages: object, description: str, as_json: bool) -> None:
    """Publish a chain as its next version. STAGES are JSON, @file, or -."""
    if not isinstance(stages, list):
        raise ConfigurationError('the stages are a list, such as [{"asks": ["manager"]}]')
    with place.calls() as calls:
        found = calls.chains.publish(name, stages, description=description)
    print_json(found) if as_json else click.echo(f"{name} version {found.version} is published")
