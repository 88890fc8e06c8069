"""`standfast bodies`: the steps that an organisation puts into the slots of its documents, from the draft to the active version."""

from __future__ import annotations

from collections.abc import Sequence

import click

from standfast.cli.documents.documents import type_argument
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end, verbs
from standfast.cli.hints import in_commands
from standfast.cli.options import file_argument, listed, page_behind, reason_option
from standfast.cli.output import Columns, cell, json_option, print_fields, print_json, print_list
from standfast.cli.source_files import read_file
from standfast.cli.target import Target, acted, tenant_scope
from standfast.errors import ConfigurationError, Diagnostic
from standfast.expressions.model.characters import visible
from standfast.features.documents.publishing.views import BodyCheck, BodyDraft, BodyTemplate, BodyVersion

VERSIONS: Columns[BodyVersion] = {
    "TYPE": lambda each: each.type,
    "VERSION": lambda each: each.version,
    "STATUS": lambda each: each.status,
    "NAME": lambda each: each.name,
    "WORKFLOW": lambda each: each.workflow_version,
    "CONTRACT": lambda each: each.contract_version,
    "PUBLISHED": lambda each: each.published_at,
    "BY": lambda each: each.published_by,
    "DRAFTED BY": lambda each: ", ".join(each.drafted_by),
    "COMMENT": lambda each: each.comment,
}
DRAFTS: Columns[BodyDraft] = {
    "ID": lambda each: each.id,
    "TYPE": lambda each: each.type,
    "NAME": lambda each: each.name,
    "REVISION": lambda each: each.revision,
    "REPLACES": lambda each: each.replaces or "",
    "DRAFTED BY": lambda each: ", ".join(each.drafted_by),
    "UPDATED": lambda each: each.updated_at,
}
TEMPLATES: Columns[BodyTemplate] = {
    "NAME": lambda each: each.name,
    "TYPE": lambda each: each.type,
    "TITLE": lambda each: each.title,
    "PARAMETERS": lambda each: ", ".join(f"{name}={told['default']}" for name, told in each.params.items()),
    "DESCRIPTION": lambda each: each.description,
}
draft_argument = click.argument("draft")
draft_option = click.option("--draft", default="", help="The id of a draft, instead of the active version.")
version_option = click.option(
    "--version", type=click.IntRange(min=1), default=None, help="This version; the one in force if none is given."
)
comment_option = click.option("--comment", default="", help="The reason, for the list of versions.")


@verbs("bodies")
def bodies() -> None:
    """Draft, publish and compare the steps in the slots of documents."""


# -- looking


@bodies.command("list", examples=["standfast bodies list --tenant acme"])
@listed
@tenant_scope
def list_bodies(place: Target, *, as_json: bool, limit: int, after: str) -> None:
    """List the active bodies, by type."""
    with place.calls() as calls:
        found = calls.bodies.list()
    page, following = page_behind(found, limit, after, lambda each: each.type)
    print_list(page, VERSIONS, as_json=as_json, after=following)


@bodies.command("versions", examples=["standfast bodies versions invoice --tenant acme"])
@type_argument
@listed
@tenant_scope
def list_versions(place: Target, *, kind: str, as_json: bool, limit: int, after: str) -> None:
    """List all versions of a body, oldest first."""
    with place.calls() as calls:
        found = calls.bodies.versions(kind)
    page, following = page_behind(found, limit, after, lambda each: each.version)
    print_list(page, VERSIONS, as_json=as_json, after=following)


@bodies.command("show", examples=["standfast bodies show invoice", "standfast bodies show invoice --version 2 --json"])
@type_argument
@version_option
@json_option
@tenant_scope
def show_body(place: Target, *, kind: str, version: int | None, as_json: bool) -> None:
    """Show a version of a body, with the versions that it was compiled from."""
    with place.calls() as calls:
        found = calls.bodies.get(kind, version or 0)
    if as_json:
        print_json(found)
        return
    told = {head.lower(): value(found) for head, value in VERSIONS.items()}
    ended = {"archived": found.archived_at, "archived by": found.archived_by, "why": found.archived_why}
    print_fields({**told, "hash": found.hash, "graph hash": found.graph_hash, "compiler": found.compiler, **ended})


@bodies.command("drafts", examples=["standfast bodies drafts --tenant acme"])
@click.argument("kind", metavar="[TYPE]", default="")
@listed
@tenant_scope
def list_drafts(place: Target, *, kind: str, as_json: bool, limit: int, after: str) -> None:
    """List the open drafts."""
    with place.calls() as calls:
        found = calls.bodies.drafts(kind)
    page, following = page_behind(found, limit, after, lambda each: each.id)
    print_list(page, DRAFTS, as_json=as_json, after=following)


@bodies.command(
    "diff", examples=["standfast bodies diff invoice", "standfast bodies diff invoice --version 2 --against 1"]
)
@type_argument
@version_option
@click.option(
    "--against", type=click.IntRange(min=1), default=None, help="Another version; the bare envelope if none is given."
)
@draft_option
@json_option
@tenant_scope
def diff_bodies(
    place: Target, *, kind: str, version: int | None, against: int | None, draft: str, as_json: bool
) -> None:
    """Compare a body by slot with the bare envelope, or with another version."""
    with place.calls() as calls:
        found = calls.bodies.diff(kind, version or 0, against=against, draft=draft)
    print_json(found) if as_json else print_lines(found.to_text())


@bodies.command("export", examples=["standfast bodies export invoice > invoice-body.yaml"])
@click.argument("kind", metavar="[TYPE]", default="")
@version_option
@draft_option
@tenant_scope
def export_body(place: Target, *, kind: str, version: int | None, draft: str) -> None:
    """Export a version of a body, or a draft, as YAML with its hash, for review and version control."""
    check_one(kind, draft)
    with place.calls() as calls:
        click.echo(calls.bodies.export(kind, version or 0, draft=draft), nl=False)


# -- drafting


@bodies.command("templates", examples=["standfast bodies templates"])
@json_option
@tenant_scope
def list_templates(place: Target, *, as_json: bool) -> None:
    """List the templates of Standfast, with their parameters."""
    with place.calls() as calls:
        found = calls.bodies.templates()
    print_list(found, TEMPLATES, as_json=as_json)


@bodies.command("take", examples=["standfast bodies take fast_track --set threshold=100000 --set approver_role=cfo"])
@click.argument("template")
@click.option("--set", "params", multiple=True, metavar="NAME=VALUE", help="A parameter of the template; repeatable.")
@click.option("--type", "kind", default="", help="The type that it is for, if not the template's own.")
@comment_option
@json_option
@acted
def take_template(
    place: Target, *, template: str, params: Sequence[str], kind: str, comment: str, as_json: bool
) -> None:
    """Create a draft from a template."""
    said = dict(map(_parameter, params))
    with place.calls() as calls:
        made = calls.bodies.instantiate(template, said, type=kind, comment=comment)
    _print_draft(made, as_json=as_json)


@bodies.command("validate", examples=["standfast bodies validate invoice-body.yaml --tenant acme"])
@file_argument
@json_option
@tenant_scope
def validate_body(place: Target, *, file: str, as_json: bool) -> None:
    """Validate the body in FILE and run its scenarios. Nothing is stored.

    Exit code 0: it can be published. 1: it cannot.
    """
    _, text = read_file(file)
    with place.calls() as calls:
        found = calls.bodies.check(text)
    print_json(found) if as_json else _print_check(found)
    end(Exit.DONE if found.is_sound else Exit.NO)


def _save(place: Target, file: str, *, draft: str = "", revision: int | None = None, comment: str) -> BodyDraft:
    _, text = read_file(file)
    with place.calls() as calls:
        return calls.bodies.save(text, draft=draft, revision=revision, comment=comment)


@bodies.command(
    "draft",
    examples=[
        "standfast bodies draft invoice-body.yaml",
        "standfast bodies draft invoice-body.yaml --draft 01a1e766-3ad5-7618-92bc-aee7fef0c9eb",
    ],
)
@file_argument
@click.option("--draft", default="", help="The draft that it is the next revision of; a new one if none is named.")
@click.option("--revision", type=int, help="Only if the draft still has this revision.")
@comment_option
@json_option
@acted
def save_draft(place: Target, *, file: str, draft: str, revision: int | None, comment: str, as_json: bool) -> None:
    """Save the body in FILE as a draft, even with errors."""
    _print_draft(_save(place, file, draft=draft, revision=revision, comment=comment), as_json=as_json)


@bodies.command("import", examples=["standfast bodies import invoice-body.yaml --publish --comment 'as reviewed'"])
@file_argument
@click.option("--publish", "is_published", is_flag=True, help="Publish it, replacing the active version.")
@comment_option
@json_option
@acted
def import_body(place: Target, *, file: str, is_published: bool, comment: str, as_json: bool) -> None:
    """Import an exported body as a draft, or publish it. An edited export is refused."""
    made = _save(place, file, comment=comment)
    if is_published:
        _publish(place, made.id, made.revision, replaces=None, comment=comment, as_json=as_json)
    else:
        _print_draft(made, as_json=as_json)


@bodies.command("discard", examples=["standfast bodies discard 01a1e766-3ad5-7618-92bc-aee7fef0c9eb"])
@draft_argument
@acted
def discard_draft(place: Target, *, draft: str) -> None:
    """Discard a draft."""
    with place.calls() as calls:
        calls.bodies.discard(draft)
    click.echo(f"{visible(draft)} is gone")


@bodies.command("rebase", examples=["standfast bodies rebase invoice"])
@type_argument
@json_option
@acted
def rebase_body(place: Target, *, kind: str, as_json: bool) -> None:
    """Create a draft of the active body for the newest envelope."""
    with place.calls() as calls:
        made = calls.bodies.rebase(kind)
    _print_draft(made, as_json=as_json)


# -- publishing


def _publish(
    place: Target, draft: str, revision: int | None, *, replaces: int | None, comment: str, as_json: bool
) -> None:
    with place.calls() as calls:
        made = calls.bodies.publish(draft, revision=revision, replaces=replaces, comment=comment)
    _print_version(made, as_json=as_json)


@bodies.command(
    "publish",
    examples=[
        "standfast bodies publish 01a1e766-3ad5-7618-92bc-aee7fef0c9eb --revision 3 --as paul --can bodies:publish"
    ],
)
@draft_argument
@click.option(
    "--revision", type=int, help="The revision that you have reviewed. Must be given where two people are wanted."
)
@click.option(
    "--replaces",
    type=int,
    help="The version in force that it takes the place of, if another was published since it was begun.",
)
@comment_option
@json_option
@acted
def publish_draft(
    place: Target, *, draft: str, revision: int | None, replaces: int | None, comment: str, as_json: bool
) -> None:
    """Publish a draft: it is compiled, its scenarios run, and new documents use it."""
    _publish(place, draft, revision, replaces=replaces, comment=comment, as_json=as_json)


@bodies.command("archive", examples=["standfast bodies archive invoice --reason 'it lets too much through'"])
@type_argument
@reason_option
@json_option
@tenant_scope
def archive_body(place: Target, *, kind: str, reason: str, as_json: bool) -> None:
    """Archive the active body: no document starts until another is published."""
    with place.calls() as calls:
        made = calls.bodies.archive(kind, reason)
    _print_version(made, as_json=as_json)


@bodies.command(
    "rollback", examples=["standfast bodies rollback invoice 2 --comment 'version 3 asks the wrong people'"]
)
@type_argument
@click.argument("version", type=int)
@comment_option
@json_option
@acted
def roll_back(place: Target, *, kind: str, version: int, comment: str, as_json: bool) -> None:
    """Publish an older version again, as a new one."""
    with place.calls() as calls:
        made = calls.bodies.rollback(kind, version, comment=comment)
    _print_version(made, as_json=as_json)


@bodies.command("recompile", examples=["standfast bodies recompile --dry-run"])
@click.argument("kind", metavar="[TYPE]", default="")
@click.option("--dry-run", is_flag=True, help="Only list what would be done.")
@json_option
@acted
def recompile(place: Target, *, kind: str, dry_run: bool, as_json: bool) -> None:
    """Recompile bodies of another compiler version."""
    with place.calls() as calls:
        found = calls.bodies.recompile(kind, dry_run=dry_run)
    print_list(found, VERSIONS, as_json=as_json)


@bodies.command("rules", examples=["standfast bodies rules", "standfast bodies rules --two-person --tenant acme"])
@click.option("--two-person/--one-person", default=None, help="Whether a second person must publish a draft.")
@json_option
@tenant_scope
def rules(place: Target, *, two_person: bool | None, as_json: bool) -> None:
    """Show the organisation's rules for publishing; with an option, set them."""
    with place.calls() as calls:
        found = calls.bodies.rules() if two_person is None else calls.bodies.govern(two_person=two_person)
    if as_json:
        print_json(found)
    else:
        print_fields({"two people": cell(found.two_person), "set by": found.set_by, "set at": found.set_at})


# -- how


def check_one(kind: str, draft: str) -> None:
    """Raise ConfigurationError unless exactly one of a type and a draft is given."""
    if bool(kind) == bool(draft):
        raise ConfigurationError("name a type of documents, or give --draft with the id of a draft")


def print_lines(text: str) -> None:
    """Print lines, with control characters escaped."""
    for line in text.splitlines():
        click.echo(visible(line))


def pair_of(text: str) -> tuple[str, str]:
    """Parse a name and a value."""
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise ConfigurationError(f"{text!r} cannot be read: write a name, = and a value")
    return name, value


def _parameter(text: str) -> tuple[str, str | int]:
    """Parse a template parameter: a number is one, everything else is text."""
    name, value = pair_of(text)
    return name, int(value) if value.isascii() and value.isdecimal() else value


def _print_draft(made: BodyDraft, *, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    print_fields({head.lower(): value(made) for head, value in DRAFTS.items()})
    _print_findings(made.problems, made.warnings)


def _print_version(made: BodyVersion, *, as_json: bool) -> None:
    if as_json:
        print_json(made)
    else:
        click.echo(f"{made.type} version {made.version} is {made.status}, as workflow {made.workflow_version}")


def _print_check(found: BodyCheck) -> None:
    _print_findings([*found.problems, *found.failures], found.warnings)
    if found.is_sound:
        click.echo(f"the body of {visible(found.type)} can be published")


def _print_findings(problems: Sequence[Diagnostic], warnings: Sequence[Diagnostic]) -> None:
    for each in problems:
        click.echo(f"  ✗ {visible(in_commands(str(each)))}")
    for each in warnings:
        click.echo(f"  ! {visible(str(each))}")
