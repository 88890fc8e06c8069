"""`holdfast chains`: approval chains, by name and version."""

from __future__ import annotations

import click

from holdfast.cli.frame import verbs
from holdfast.cli.options import Json
from holdfast.cli.output import Columns, json_option, print_json, print_list
from holdfast.cli.place import Place, placed
from holdfast.errors import ConfigurationError
from holdfast.people.chains import Chain

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


@chains.command("list", examples=["holdfast chains list"])
@json_option
@placed
def list_chains(place: Place, *, as_json: bool) -> None:
    """The newest version of each."""
    with place.calls() as calls:
        found = calls.chains.list()
    print_list(found, LISTING, as_json=as_json)


@chains.command("versions", examples=["holdfast chains versions purchase"])
@click.argument("name")
@json_option
@placed
def versions(place: Place, *, name: str, as_json: bool) -> None:
    """All versions of one, oldest first."""
    with place.calls() as calls:
        found = calls.chains.versions(name)
    print_list(found, LISTING, as_json=as_json)


@chains.command("show", examples=["holdfast chains show purchase", "holdfast chains show purchase 2"])
@click.argument("name")
@click.argument("version", type=click.IntRange(0), default=0)
@placed
def show_chain(place: Place, *, name: str, version: int) -> None:
    """One version of a chain as JSON, the newest if none is named."""
    with place.calls() as calls:
        print_json(calls.chains.get(name, version))


@chains.command(
    "publish", examples=['holdfast chains publish purchase \'[{"asks": ["manager"]}, {"asks": ["role:finance"]}]\'']
)
@click.argument("name")
@click.argument("stages", type=Json())
@click.option("--description", default="", help="What it is for.")
@json_option
@placed
def publish_chain(place: Place, *, name: str, stages: object, description: str, as_json: bool) -> None:
    """Publish a chain as its next version. STAGES are JSON, @file, or -."""
    if not isinstance(stages, list):
        raise ConfigurationError('the stages are a list, such as [{"asks": ["manager"]}]')
    with place.calls() as calls:
        found = calls.chains.publish(name, stages, description=description)
    print_json(found) if as_json else click.echo(f"{name} version {found.version} is published")
