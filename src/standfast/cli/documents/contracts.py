"""`standfast contracts`: versioned definitions of document types."""

from __future__ import annotations

from pathlib import Path

import click

from standfast.cli.documents.documents import type_argument
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end, verbs
from standfast.cli.options import STANDARD_INPUT, FileName, listed, page_behind
from standfast.cli.output import Columns, json_option, print_fields, print_json, print_list
from standfast.cli.source_files import read_file
from standfast.cli.target import Target, acted, tenant_scope
from standfast.errors import ConfigurationError
from standfast.expressions.model.characters import visible
from standfast.features.documents.compiler.contract_changes import ContractChange
from standfast.features.documents.contract.format import Contract
from standfast.features.documents.contract.library import contract_names, ready_contract
from standfast.features.documents.contract.loading import read_contract
from standfast.features.documents.publishing.views import ContractCheck, ContractVersion

LISTING: Columns[ContractVersion] = {
    "TYPE": lambda each: each.type,
    "VERSION": lambda each: each.version,
    "ENVELOPE": lambda each: each.envelope_version,
    "TITLE": lambda each: each.title,
    "SHARED": lambda each: each.is_shared,
    "PUBLISHED": lambda each: each.published_at,
    "BY": lambda each: each.published_by,
}
CHANGES: Columns[ContractChange] = {
    "WHAT": lambda each: each.what,
    "NAME": lambda each: each.name,
    "HOW": lambda each: each.how,
    "MESSAGE": lambda each: each.message,
}

contract_argument = click.argument("file", metavar="[FILE]", type=FileName(), default="")
ready_option = click.option(
    "--ready", metavar="NAME", default="", help="A contract that comes with Standfast, instead of a file."
)
version_option = click.option(
    "--version", type=click.IntRange(min=1), default=None, help="This version; the newest if none is given."
)


@verbs("contracts")
def contracts() -> None:
    """Publish and compare contracts: document types with lifecycle and slots."""


@contracts.command("ready", examples=["standfast contracts ready"])
@json_option
def list_ready(*, as_json: bool) -> None:
    """List the contracts that come with Standfast."""
    columns: Columns[Contract] = {
        "NAME": lambda each: each.entity_type,
        "VERSION": lambda each: each.version,
        "TITLE": lambda each: each.title,
        "DESCRIPTION": lambda each: each.description,
    }
    print_list([ready_contract(name) for name in contract_names()], columns, as_json=as_json)


@contracts.command("list", examples=["standfast contracts list", "standfast contracts list --tenant acme --json"])
@listed
@tenant_scope
def list_contracts(place: Target, *, as_json: bool, limit: int, after: str) -> None:
    """List the newest version of each contract, by type."""
    with place.calls() as calls:
        found = calls.contracts.list()
    page, following = page_behind(found, limit, after, lambda each: each.type)
    print_list(page, LISTING, as_json=as_json, after=following)


@contracts.command("versions", examples=["standfast contracts versions invoice"])
@type_argument
@listed
@tenant_scope
def list_versions(place: Target, *, kind: str, as_json: bool, limit: int, after: str) -> None:
    """List all versions of a contract, oldest first."""
    with place.calls() as calls:
        found = calls.contracts.versions(kind)
    page, following = page_behind(found, limit, after, lambda each: each.version)
    print_list(page, LISTING, as_json=as_json, after=following)


@contracts.command("show", examples=["standfast contracts show invoice"])
@type_argument
@version_option
@json_option
@tenant_scope
def show_contract(place: Target, *, kind: str, version: int | None, as_json: bool) -> None:
    """Show a contract: its states, transitions and slots."""
    with place.calls() as calls:
        found = calls.contracts.get(kind, version or 0)
    if as_json:
        print_json(found)
        return
    print_fields({head.lower(): value(found) for head, value in LISTING.items()})
    assert found.contract is not None
    life = found.contract.lifecycle
    for name, state in life.states.items():
        click.echo(f"  {name}: {state.window}")
    for each in life.transitions:
        click.echo(f"  {each.name}: {', '.join(each.sources)} → {each.to}")
    for slot in found.contract.slots:
        click.echo(f"  {slot.id}: {slot.entry} → {slot.exit}, {slot.window}{', stable' if slot.stable else ''}")


@contracts.command(
    "validate", examples=["standfast contracts validate invoice.yaml", "standfast contracts validate --ready invoice"]
)
@contract_argument
@ready_option
@json_option
@tenant_scope
def validate_contract(place: Target, *, file: str, ready: str, as_json: bool) -> None:
    """Check a contract: its changes, and the published bodies that it breaks. Nothing is stored.

    Exit code 0: it can be published. 1: it cannot, or breaks bodies.
    """
    with place.calls() as calls:
        found = calls.contracts.check(_given(file, ready))
    if as_json:
        print_json(found)
    else:
        _print_check(found)
    end(Exit.NO if found.problems or found.broken else Exit.DONE)


@contracts.command("recompile", examples=["standfast contracts recompile --dry-run"])
@click.argument("kind", metavar="[TYPE]", default="")
@click.option("--dry-run", is_flag=True, help="Only list what would be compiled.")
@json_option
@acted
def recompile_contracts(place: Target, *, kind: str, dry_run: bool, as_json: bool) -> None:
    """Recompile the bare workflows of contracts of an older compiler version."""
    with place.calls() as calls:
        found = calls.contracts.recompile(kind, dry_run=dry_run)
    print_list(found, LISTING, as_json=as_json)


@contracts.command(
    "publish",
    examples=[
        "standfast contracts publish invoice.yaml",
        "standfast contracts publish --ready invoice --comment 'to begin with'",
    ],
)
@contract_argument
@ready_option
@click.option("--force", is_flag=True, help="Also if published bodies no longer compile with it.")
@click.option("--comment", default="", help="The reason, for the list of versions.")
@json_option
@acted
def publish_contract(place: Target, *, file: str, ready: str, force: bool, comment: str, as_json: bool) -> None:
    """Publish a contract for all tenants, or for the one in --tenant. An exported file is accepted."""
    with place.calls() as calls:
        made = calls.contracts.publish(_given(file, ready), force=force, comment=comment)
    print_json(made) if as_json else click.echo(f"{made.type} version {made.version} is published")


@contracts.command(
    "diff", examples=["standfast contracts diff invoice 1", "standfast contracts diff invoice 1 2 --json"]
)
@type_argument
@click.argument("old", type=int)
@click.argument("new", type=int, default=0)
@json_option
@tenant_scope
def diff_contracts(place: Target, *, kind: str, old: int, new: int, as_json: bool) -> None:
    """Compare two versions of a contract; NEW defaults to the newest."""
    with place.calls() as calls:
        found = calls.contracts.diff(kind, old, new)
    print_list(found, CHANGES, as_json=as_json)


@contracts.command("export", examples=["standfast contracts export invoice > invoice.yaml"])
@type_argument
@version_option
@tenant_scope
def export_contract(place: Target, *, kind: str, version: int | None) -> None:
    """Export a contract as YAML with its hash, for version control."""
    with place.calls() as calls:
        click.echo(calls.contracts.export(kind, version or 0), nl=False)


def _given(file: str, ready: str) -> Contract:
    """Load the contract of a file, or one that comes with the package."""
    if bool(file) == bool(ready):
        raise ConfigurationError(
            f"name a file of a contract, {STANDARD_INPUT} for standard input, or give --ready with a name"
        )
    if ready:
        return ready_contract(ready)
    if file in contract_names() and not Path(file).exists():
        raise ConfigurationError(
            f"there is no file {file!r} here; the contract that comes with Standfast is --ready {file}"
        )
    name, text = read_file(file)
    return read_contract(text, name=name)


def _print_check(found: ContractCheck) -> None:
    click.echo(f"{found.type} version {found.version}")
    for change in found.changes:
        click.echo(f"  {change.how}: {visible(change.message)}")
    for problem in found.problems:
        click.echo(f"  ✗ {visible(problem.message)} [{problem.code}]")
    for body in found.broken:
        click.echo(f"  ✗ the body of {visible(body.tenant)}, version {body.version}, would not compile:")
        for each in body.problems:
            click.echo(f"      {visible(str(each))}")
    if not found.problems and not found.broken:
        click.echo("  it can be published")
