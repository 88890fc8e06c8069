"""`standfast publish`, `diff` and `definitions`: publish files of workflows, and compare them with published versions."""

from __future__ import annotations

import click

from standfast.app.api.sync import Calls
from standfast.calls.operator_views import ArchivedDefinition, DefinitionInfo
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import complain, end, verb, verbs
from standfast.cli.options import file_argument, listed, page_behind
from standfast.cli.output import Columns, json_option, print_fields, print_json, print_list
from standfast.cli.source_files import read_file, warnings_of
from standfast.cli.target import Target, acted, tenant_scope
from standfast.cli.text_graph import drawn_run
from standfast.cli.workflows.validate import picked
from standfast.errors import NotFoundError
from standfast.expressions.model.characters import visible
from standfast.expressions.model.suggestions import suggestion
from standfast.features.definitions.diff import DefinitionChange
from standfast.features.definitions.files import Prospect, definitions_of, joined
from standfast.features.runs.diagrams import Format
from standfast.features.runs.pauses.pause_points import TRIGGERS, PausePoint, PauseTrigger
from standfast.graph.definition import Definition

LISTING: Columns[DefinitionInfo] = {
    "NAME": lambda each: each.name,
    "VERSION": lambda each: each.version,
    "KIND": lambda each: each.kind,
    "TENANT": lambda each: each.tenant,
    "PUBLISHED": lambda each: each.published_at,
    "BY": lambda each: each.published_by,
    "DESCRIPTION": lambda each: each.description,
}

PAUSES: Columns[PausePoint] = {
    "STEP": lambda each: each.step_id,
    "TRIGGER": lambda each: each.pause_trigger,
    "GOES ON": lambda each: each.resumption_behavior,
    "LEADS TO": lambda each: "; ".join(f"{on}: {', '.join(steps)}" for on, steps in each.leads_to.items()),
}


@verb(
    "publish",
    "standfast publish orders.yaml --check",
    "standfast publish orders.yaml --database postgresql://user@host/db",
    "standfast publish orders.yaml --tenant acme",
)
@file_argument
@click.option("--check", is_flag=True, help="Only report what would happen, also to active runs of older versions.")
@json_option
@acted
def publish(place: Target, *, file: str, check: bool, as_json: bool) -> None:
    """Publish the workflows of FILE for all tenants, or for the one in --tenant.

    A published version is immutable. Other content under its name and version is refused, and nothing of the file is
    published. If only its title or description differs, it counts as unchanged, and the text is not updated. Exit code
    0: published, or can be. 1: refused.
    """
    name, text = read_file(file)
    with place.calls() as calls:
        found = calls.definitions.publish_file(text, name=name, check=True)
        prospects, is_refused = found.workflows, any(each.what == "refused" for each in found.workflows)
        if not check and not is_refused:
            calls.definitions.publish_file(text, name=name)
    if as_json:
        done = {"is_published": not check and not is_refused}
        print_json({**done, "workflows": prospects, "warnings": found.warnings})
    else:
        _tell(prospects, is_done=not check and not is_refused)
        for warning in warnings_of(name, found.warnings):
            click.echo(visible(str(warning)), err=True)
    for each in prospects:
        if each.untaken:
            complain(
                f"{each.name} version {each.version}: {joined(each.untaken)} not taken, because a published version never changes",
                remedy="give it another version in the file, and publish that",
            )
    if is_refused:
        complain(
            "nothing was published",
            remedy="give what was changed another version, or do what its refusal says; `standfast diff` shows the changes",
        )
    end(Exit.NO if is_refused else Exit.DONE)


def _tell(prospects: list[Prospect], *, is_done: bool) -> None:
    columns: Columns[Prospect] = {
        "NAME": lambda each: each.name,
        "VERSION": lambda each: each.version,
        "WHAT": lambda each: "published" if is_done and each.what != "unchanged" else each.what,
        "LIVE RUNS": lambda each: ", ".join(map(str, each.live)) or "none",
        "WHY": lambda each: each.why,
    }
    print_list(prospects, columns, as_json=False)


@verb(
    "diff",
    "standfast diff orders.yaml",
    "standfast diff orders.yaml 1 --json",
    "standfast diff orders.yaml --workflow orders.approval",
)
@file_argument
@click.argument("version", default="")
@click.option("--workflow", metavar="NAME", default="", help="Which one, if the file has several.")
@json_option
@tenant_scope
def diff(place: Target, *, file: str, version: str, workflow: str, as_json: bool) -> None:
    """Compare a workflow of FILE with its newest published version, or with VERSION.

    Exit code 0: they are equal. 1: they differ.
    """
    name, text = read_file(file)
    definition = picked(definitions_of(text, name), workflow, name)
    with place.calls() as calls:
        known = [each for each in calls.definitions.list() if each.name == definition.name]
        _check_published(calls, definition.name, version, known)
        found = calls.definitions.diff_file(text, version, workflow=definition.id)
    if as_json:
        print_json(found)
    else:
        _tell_changes(definition, found.before, found.changes)
    end(Exit.NO if found.changes else Exit.DONE)


def _check_published(calls: Calls, name: str, version: str, known: list[DefinitionInfo]) -> None:
    if not known:
        near = suggestion(name, {each.name for each in calls.definitions.list()})
        raise NotFoundError("workflow", name, hint=f"nothing of this name is published{near}")
    versions = [each.version for each in known]
    if version and version not in versions:
        raise NotFoundError("workflow", f"{name} version {version}", hint=f"published are {', '.join(versions)}")


def _tell_changes(definition: Definition, before: str, changes: list[DefinitionChange]) -> None:
    if not changes:
        click.echo(f"{definition.name}: version {before} says the same as version {definition.version} of the file")
        return
    click.echo(f"{definition.name}: version {before} is published, version {definition.version} is in the file")
    _tell_lines(changes)


def _tell_lines(changes: list[DefinitionChange]) -> None:
    for each in changes:
        click.secho(visible(str(each)), fg={"added": "green", "removed": "red", "changed": "yellow"}[each.change])


@verbs("definitions")
def definitions() -> None:
    """List, show and archive published workflows."""


@definitions.command(
    "diff", examples=["standfast definitions diff order 1", "standfast definitions diff order 1 2 --json"]
)
@click.argument("name")
@click.argument("old")
@click.argument("new", default="")
@json_option
@tenant_scope
def diff_versions(place: Target, *, name: str, old: str, new: str, as_json: bool) -> None:
    """Compare two published versions of a workflow; the second one defaults to the newest.

    Exit code 0: they are equal. 1: they differ.
    """
    with place.calls() as calls:
        found = calls.definitions.diff(name, old, new)
    if as_json:
        print_json(found)
    elif found.changes:
        click.echo(f"{found.name}: from version {found.before} to version {found.after}")
        _tell_lines(found.changes)
    else:
        click.echo(f"{found.name}: version {found.before} says the same as version {found.after}")
    end(Exit.NO if found.changes else Exit.DONE)


@definitions.command("list", examples=["standfast definitions list", "standfast definitions list --name order --json"])
@click.option("--name", default="", help="Only the versions of this one.")
@listed
@tenant_scope
def list_definitions(place: Target, *, name: str, as_json: bool, limit: int, after: str) -> None:
    """List every published version of every workflow."""
    with place.calls() as calls:
        found = calls.definitions.list()
    known = {each.name for each in found}
    if name and name not in known:
        raise NotFoundError("workflow", name, hint=f"nothing of this name is published{suggestion(name, known)}")
    wanted = [each for each in found if name in {"", each.name}]
    shown, more = page_behind(wanted, limit, after, lambda each: f"{each.tenant}/{each.name}/{each.version}")
    print_list(shown, LISTING, as_json=as_json, after=more)


@definitions.command(
    "show", examples=["standfast definitions show order", "standfast definitions show order 2 --format dot"]
)
@click.argument("name")
@click.argument("version", default="")
@click.option("--format", "language", type=click.Choice(["mermaid", "dot"]), help="As a drawing instead.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the graph as data that can be changed and published again."
)
@tenant_scope
def show_definition(place: Target, *, name: str, version: str, language: Format | None, as_json: bool) -> None:
    """Show a published workflow: its steps and their edges; VERSION defaults to the newest."""
    with place.calls() as calls:
        known = [each for each in calls.definitions.list() if each.name == name]
        _check_published(calls, name, version, known)
        if as_json:
            print_json(calls.definitions.data(name, version))
        elif language is not None:
            click.echo(calls.definitions.diagram(name, version, format=language))
        else:
            found = calls.definitions.get(name, version).version
            told = next(each for each in reversed(known) if each.version == found)
            print_fields({head.lower(): value(told) for head, value in LISTING.items()})
            click.echo()
            for line in drawn_run(calls.definitions.diagram(name, version, format="json"), ()):
                click.echo(line)


@definitions.command(
    "pauses", examples=["standfast definitions pauses order", "standfast definitions pauses order 2 --trigger approval"]
)
@click.argument("name")
@click.argument("version", default="")
@click.option("--trigger", type=click.Choice(TRIGGERS), help="Only those at which a run rests for this.")
@json_option
@tenant_scope
def list_pause_points(place: Target, *, name: str, version: str, trigger: PauseTrigger | None, as_json: bool) -> None:
    """List the steps at which runs of a workflow wait: reason, continuation, and target of each outcome."""
    with place.calls() as calls:
        _check_published(calls, name, version, [each for each in calls.definitions.list() if each.name == name])
        found = calls.definitions.pause_points(name, version, trigger=trigger or "")
    print_list(found, PAUSES, as_json=as_json)


@definitions.command(
    "archive",
    examples=[
        "standfast definitions archive order 1 --reason 'it pays the wrong account'",
        "standfast definitions archive order 1 --tenant acme",
    ],
)
@click.argument("name")
@click.argument("version")
@click.option("--reason", default="", metavar="TEXT", help="The reason, for the list of archived versions.")
@tenant_scope
def archive(place: Target, *, name: str, version: str, reason: str) -> None:
    """Archive VERSION: no new run starts with it, existing runs continue.

    It applies to the version of all tenants, or to that of --tenant.
    """
    with place.calls() as calls:
        calls.definitions.archive(name, version, reason=reason)
    click.echo(f"{name} version {version} is archived")


@definitions.command("restore", examples=["standfast definitions restore order 1"])
@click.argument("name")
@click.argument("version")
@acted
def restore(place: Target, *, name: str, version: str) -> None:
    """Restore an archived VERSION."""
    with place.calls() as calls:
        calls.definitions.restore(name, version)
    click.echo(f"{name} version {version} is in use again")


@definitions.command("archived", examples=["standfast definitions archived --json"])
@listed
@tenant_scope
def list_archived(place: Target, *, as_json: bool, limit: int, after: str) -> None:
    """List archived versions."""
    with place.calls() as calls:
        found = calls.definitions.archived()
    shown, more = page_behind(found, limit, after, lambda each: f"{each.name}-v{each.version}")
    columns: Columns[ArchivedDefinition] = {
        "NAME": lambda each: each.name,
        "VERSION": lambda each: each.version,
        "TENANT": lambda each: each.tenant,
        "ARCHIVED": lambda each: each.archived_at,
        "BY": lambda each: each.archived_by,
        "REASON": lambda each: each.archived_why,
    }
    print_list(shown, columns, as_json=as_json, after=more)
