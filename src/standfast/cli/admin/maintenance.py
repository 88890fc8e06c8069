"""`standfast maintenance`, `projections`, `inbox` and `instances`: commands for operators of the engine."""

from __future__ import annotations

import click

from standfast.calls.operator_views import InboxMessage, InstanceInfo, ProjectionInfo
from standfast.calls.references import written_attribute
from standfast.cli.framework import verbs
from standfast.cli.options import listed, number_after, page_behind, page_of
from standfast.cli.output import Columns, json_option, print_fields, print_json, print_list
from standfast.cli.target import Target, acted, platform_scope, tenant_scope


@verbs("maintenance")
def maintenance() -> None:
    """Hold all work in all processes, and release it."""


@maintenance.command("begin", examples=["standfast maintenance begin", "standfast maintenance begin --refuse-commands"])
@click.option("--refuse-commands", is_flag=True, help="Take no commands either.")
@platform_scope
def begin(place: Target, *, refuse_commands: bool) -> None:
    """Begin maintenance: no work starts; commands are accepted, and their effects wait."""
    with place.plant() as (engine, _):
        if refuse_commands:
            engine.admin.refuse_commands()
        else:
            engine.admin.pause_processing()
    click.echo("maintenance has begun; `standfast maintenance end` ends it")


@maintenance.command("end", examples=["standfast maintenance end"])
@platform_scope
def finish(place: Target) -> None:
    """End maintenance."""
    with place.plant() as (engine, _):
        engine.admin.resume_processing()
    click.echo("maintenance has ended")


@maintenance.command("show", examples=["standfast maintenance show"])
@json_option
@platform_scope
def show_maintenance(place: Target, *, as_json: bool) -> None:
    """Show the maintenance mode, the workers and the backlog."""
    with place.plant() as (engine, _):
        workers, backlog = engine.admin.workers(), engine.admin.backlog()
        told = {"maintenance": engine.health().maintenance, "inbox": engine.admin.inbox_depth()}
    if as_json:
        print_json({**told, "workers": workers, "backlog": backlog})
        return
    waiting = {f"{each.kind} {each.name}": str(each.count) for each in backlog}
    names = ", ".join(each.name for each in workers) or "none"
    print_fields({**told, "maintenance": told["maintenance"] or "none", "workers": names, **waiting})


@verbs("projections")
def projections() -> None:
    """Show the progress of read models."""


PROJECTIONS: Columns[ProjectionInfo] = {
    "NAME": lambda each: each.name,
    "POSITION": lambda each: each.position,
    "LAG": lambda each: each.lag,
    "UPDATED": lambda each: each.updated_at,
    "ERROR": lambda each: each.error,
}


@projections.command("list", examples=["standfast projections list"])
@listed
@platform_scope
def list_projections(place: Target, *, as_json: bool, limit: int, after: str) -> None:
    """List projections with their backlog and their last error."""
    with place.plant() as (engine, _):
        shown, more = page_behind(engine.projections.list(), limit, after, lambda each: each.name)
    print_list(shown, PROJECTIONS, as_json=as_json, after=more)


@projections.command("drop", examples=["standfast projections drop spending"])
@click.argument("name")
@platform_scope
def drop(place: Target, *, name: str) -> None:
    """Drop the read position of a projection that no process feeds. Its tables stay."""
    with place.plant() as (engine, _):
        engine.projections.drop(name)
    click.echo(f"{name} is forgotten")


@verbs("inbox")
def inbox() -> None:
    """Show accepted commands that wait."""


MESSAGES: Columns[InboxMessage] = {
    "ID": lambda each: each.id,
    "FOR": lambda each: each.definition or each.instance,
    "KEY": lambda each: each.key,
    "TYPE": lambda each: each.type,
    "BY": lambda each: each.actor,
    "CALLS": lambda each: each.attempts,
    "ERROR": lambda each: each.error,
}


@inbox.command("list", examples=["standfast inbox list --type Misspelt"])
@click.option("--definition", default="", help="Only those for this one.")
@click.option("--type", "kind", default="", help="Only commands of this name.")
@listed
@tenant_scope
def list_messages(place: Target, *, definition: str, kind: str, as_json: bool, limit: int, after: str) -> None:
    """List waiting commands, in order."""
    with place.calls() as calls:
        found = calls.inbox.list(definition=definition, type=kind, after=number_after(after), limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, MESSAGES, as_json=as_json, after=more)


@inbox.command("bury", examples=["standfast inbox bury 7"])
@click.argument("message", type=int)
@acted
def bury(place: Target, *, message: int) -> None:
    """Move a waiting command to the dead letters, where it can be discarded or requeued."""
    with place.calls() as calls:
        calls.inbox.bury(message)
    click.echo(f"message {message} is among the dead letters")


@verbs("instances")
def instances() -> None:
    """List and delete instances of any kind, deciders included."""


INSTANCES: Columns[InstanceInfo] = {
    "ID": lambda each: each.id,
    "KIND": lambda each: each.kind,
    "DEFINITION": lambda each: each.definition,
    "VERSION": lambda each: each.definition_version,
    "STATUS": lambda each: each.status,
    "KEY": lambda each: each.key,
    "EVENTS": lambda each: each.version,
    "CREATED": lambda each: each.created_at,
}


@instances.command(
    "list", examples=["standfast instances list --kind decider", "standfast instances list --attribute amount=5"]
)
@click.option("--definition", default="", help="Only those of this one.")
@click.option("--kind", default="", help="Only those of this kind, such as decider or saga.")
@click.option("--status", multiple=True, help="Only those in this status, as it is stored; repeatable.")
@click.option("--key", default="", help="Only the one with this business key.")
@click.option(
    "--attribute", "attributes", multiple=True, metavar="NAME=VALUE", help="Only those with this value; repeatable."
)
@listed
@tenant_scope
def list_instances(  # noqa: PLR0913 - filters
    place: Target,
    *,
    definition: str,
    kind: str,
    status: tuple[str, ...],
    key: str,
    attributes: tuple[str, ...],
    as_json: bool,
    limit: int,
    after: str,
) -> None:
    """List instances of any kind, newest first."""
    with place.calls() as calls:
        found = calls.instances.list(
            definition=definition,
            kind=kind,
            status=status,
            key=key,
            attributes=dict(map(written_attribute, attributes)),
            before=after or None,
            limit=limit + 1,
        )
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, INSTANCES, as_json=as_json, after=more)


@instances.command("delete", examples=["standfast instances delete 01a1e766-3ad5-7618-92bc-aee7fef0c9eb"])
@click.argument("instance")
@click.option("--force", is_flag=True, help="Also if something of it is still needed.")
@acted
def delete(place: Target, *, instance: str, force: bool) -> None:
    """Delete an ended instance with its history."""
    with place.calls() as calls:
        calls.instances.delete(instance, force=force)
    click.echo(f"{instance} is deleted")
