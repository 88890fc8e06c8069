"""`standfast directory` and `standfast chains`: users, roles, delegations, absences, and approval chains."""

from __future__ import annotations

from datetime import datetime

import click

from standfast.cli.framework import verbs
from standfast.cli.options import (
    Instant,
    Json,
    JsonObject,
    listed,
    number_after,
    page_behind,
    page_of,
    place_of,
    reason_option,
)
from standfast.cli.output import Columns, json_option, print_fields, print_json, print_list
from standfast.cli.target import Target, acted, tenant_scope
from standfast.cli.workflows.tasks import LISTING as TASKS
from standfast.cli.workflows.tasks import last_task
from standfast.errors import ConfigurationError
from standfast.kernel.people import DirectoryChange, Principal
from standfast.people.approval_chains import Chain

LISTING: Columns[Principal] = {
    "ID": lambda each: each.id,
    "NAME": lambda each: each.name,
    "KIND": lambda each: each.kind,
    "ACTIVE": lambda each: each.is_active,
    "MANAGER": lambda each: each.manager,
    "EMAIL": lambda each: each.email,
}

person_argument = click.argument("person", metavar="PERSON")
since_option = click.option("--from", "begins_at", type=Instant(), help="When it begins, if not now.")
until_option = click.option("--until", "ends_at", type=Instant(), help="When it ends, if that is known.")


@verbs("directory")
def directory() -> None:
    """Manage users, roles, delegations and absences."""


@directory.command("list", examples=["standfast directory list", "standfast directory list --holders-of finance"])
@click.option("--holders-of", "role", default="", help="Only current holders of this role.")
@listed
@tenant_scope
def list_people(place: Target, *, role: str, as_json: bool, limit: int, after: str) -> None:
    """List all users by id."""
    with place.calls() as calls:
        if role:
            found = [each for each in calls.directory.holders(role) if each.id > after]
        else:
            found = calls.directory.list(after=after, limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, LISTING, as_json=as_json, after=more)


@directory.command("show", examples=["standfast directory show ann"])
@person_argument
@json_option
@tenant_scope
def show_person(place: Target, *, person: str, as_json: bool) -> None:
    """Show a user with roles, delegations and absences."""
    with place.calls() as calls:
        found, roles = calls.directory.get(person), calls.directory.roles_of(person)
        delegations, absences = calls.directory.delegations(person), calls.directory.absences(person)
    if as_json:
        print_json({"person": found, "roles": roles, "delegations": delegations, "absences": absences})
        return
    told = {name.lower(): value(found) for name, value in LISTING.items()}
    print_fields({**told, "attributes": dict(found.attributes), "roles": ", ".join(roles)})
    for each in delegations:
        click.echo(
            f"  delegation {each.id}: {each.giver} → {each.receiver} {_period(each.begins_at, each.ends_at)} {each.reason}".rstrip()
        )
    for absence in absences:
        click.echo(f"  absence {absence.id}: {_period(absence.begins_at, absence.ends_at)} {absence.reason}".rstrip())


def _period(begins_at: datetime | None, ends_at: datetime | None) -> str:
    begin = f"from {begins_at:%Y-%m-%d %H:%M}Z" if begins_at else "always"
    return f"{begin} until {ends_at:%Y-%m-%d %H:%M}Z" if ends_at else begin


@directory.command("put", examples=["standfast directory put ann --name 'Ann Lee' --manager bob"])
@person_argument
@click.option("--name", help="For people to read.")
@click.option("--email", help="Where mail goes.")
@click.option("--manager", help="Whom they report to.")
@click.option("--attributes", type=JsonObject(), help="Whatever else is kept: a JSON object, @file, or -.")
@json_option
@acted
def put(
    place: Target,
    *,
    person: str,
    name: str | None,
    email: str | None,
    manager: str | None,
    attributes: dict[str, object] | None,
    as_json: bool,
) -> None:
    """Create or update a user: omitted values stay as they are."""
    with place.calls() as calls:
        found = calls.directory.put(person, name=name, email=email, manager=manager, attributes=attributes)
    print_json(found) if as_json else click.echo(f"{person} is in the directory")


@directory.command("prefer", examples=["standfast directory prefer ann --as ann --language de --off email"])
@person_argument
@click.option("--language", default="", help="The language of notifications.")
@click.option("--off", multiple=True, metavar="CHANNEL", help="A channel to turn off; repeatable.")
@acted
def prefer(place: Target, *, person: str, language: str, off: tuple[str, ...]) -> None:
    """Set a user's notification preferences; they replace the previous ones."""
    with place.calls() as calls:
        calls.directory.prefer(person, language=language, off=off)
    click.echo(f"{person}: language {language or 'of the organisation'}, without {', '.join(off) or 'nothing'}")


@directory.command("deactivate", examples=["standfast directory deactivate ann"])
@person_argument
@acted
def deactivate(place: Target, *, person: str) -> None:
    """Deactivate a user: they can neither decide nor be assigned."""
    with place.calls() as calls:
        calls.directory.deactivate(person)
    click.echo(f"{person} is deactivated; `standfast directory stranded` lists what only they could decide")


@directory.command("activate", examples=["standfast directory activate ann"])
@person_argument
@acted
def activate(place: Target, *, person: str) -> None:
    """Activate a user, so that they can decide and be assigned again."""
    with place.calls() as calls:
        calls.directory.activate(person)
    click.echo(f"{person} is active")


@directory.command("grant", examples=["standfast directory grant ann finance --until 2026-12-31T00:00:00Z"])
@person_argument
@click.argument("role")
@since_option
@until_option
@acted
def grant(place: Target, *, person: str, role: str, begins_at: datetime | None, ends_at: datetime | None) -> None:
    """Grant a role to a user."""
    with place.calls() as calls:
        calls.directory.grant(person, role, begins_at=begins_at, ends_at=ends_at)
    click.echo(f"{person} has the role {role}")


@directory.command("revoke", examples=["standfast directory revoke ann finance"])
@person_argument
@click.argument("role")
@acted
def revoke(place: Target, *, person: str, role: str) -> None:
    """Revoke a role of a user, effective immediately."""
    with place.calls() as calls:
        had = calls.directory.revoke(person, role)
    click.echo(f"{person} {'no longer has' if had else 'did not have'} the role {role}")


@directory.command(
    "delegate", examples=["standfast directory delegate ann bob --until 2026-12-31T00:00:00Z --reason holiday"]
)
@click.argument("giver")
@click.argument("to")
@since_option
@until_option
@click.option("--for-role", "of_role", default="", help="Only for tasks that the giver has as holder of this role.")
@click.option("--definition", default="", help="Only in this workflow.")
@reason_option
@tenant_scope
def delegate(
    place: Target,
    *,
    giver: str,
    to: str,
    begins_at: datetime | None,
    ends_at: datetime | None,
    of_role: str,
    definition: str,
    reason: str,
) -> None:
    """Create a delegation: a deputy decides for GIVER, for a period."""
    with place.calls() as calls:
        made = calls.directory.delegate(
            giver, to, begins_at=begins_at, ends_at=ends_at, role=of_role, definition=definition, reason=reason
        )
    click.echo(f"{to} stands in for {giver}: delegation {made.id}")


@directory.command("end-delegation", examples=["standfast directory end-delegation 7"])
@click.argument("delegation", type=int)
@acted
def end_delegation(place: Target, *, delegation: int) -> None:
    """End a delegation now."""
    with place.calls() as calls:
        was = calls.directory.end_delegation(delegation)
    click.echo(f"delegation {delegation} {'is' if was else 'was'} over")


@directory.command("absent", examples=["standfast directory absent ann --until 2026-12-31T00:00:00Z --reason holiday"])
@person_argument
@since_option
@until_option
@reason_option
@tenant_scope
def absent(place: Target, *, person: str, begins_at: datetime | None, ends_at: datetime | None, reason: str) -> None:
    """Record an absence: the user's deputies are assigned instead."""
    with place.calls() as calls:
        made = calls.directory.absent(person, begins_at=begins_at, ends_at=ends_at, reason=reason)
    click.echo(f"{person} is away: absence {made.id}")


@directory.command("end-absence", examples=["standfast directory end-absence 7"])
@click.argument("absence", type=int)
@acted
def end_absence(place: Target, *, absence: int) -> None:
    """End a user's absence now."""
    with place.calls() as calls:
        was = calls.directory.end_absence(absence)
    click.echo(f"absence {absence} {'is' if was else 'was'} over")


@directory.command("changes", examples=["standfast directory changes --person ann"])
@click.option("--person", default="", help="Only those about this one.")
@listed
@tenant_scope
def changes(place: Target, *, person: str, as_json: bool, limit: int, after: str) -> None:
    """List changes with actor and time, newest first."""
    columns: Columns[DirectoryChange] = {
        "ID": lambda each: each.id,
        "AT": lambda each: each.at,
        "BY": lambda each: each.actor,
        "ACTION": lambda each: each.action,
        "PERSON": lambda each: each.principal,
        "DETAILS": lambda each: dict(each.details),
    }
    with place.calls() as calls:
        found = calls.directory.changes(person, before=number_after(after), limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, columns, as_json=as_json, after=more)


@directory.command("stranded", examples=["standfast directory stranded"])
@listed
@tenant_scope
def stranded(place: Target, *, as_json: bool, limit: int, after: str) -> None:
    """List open tasks whose approvers are all deactivated; reassign them."""
    with place.calls() as calls:
        found = calls.directory.open_tasks_of_inactive(after=last_task(calls, after), limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: place_of(each.asked_at, each.step_id))
    print_list(shown, TASKS, as_json=as_json, after=more)


CHAIN_LISTING: Columns[Chain] = {
    "NAME": lambda each: each.name,
    "VERSION": lambda each: each.version,
    "STAGES": lambda each: len(each.stages),
    "PUBLISHED": lambda each: each.published_at,
    "BY": lambda each: each.published_by,
    "DESCRIPTION": lambda each: each.description,
}


@verbs("chains")
def chains() -> None:
    """Publish and show approval chains."""


@chains.command("list", examples=["standfast chains list"])
@listed
@tenant_scope
def list_chains(place: Target, *, as_json: bool, limit: int, after: str) -> None:
    """List the newest version of each chain."""
    with place.calls() as calls:
        shown, more = page_behind(calls.chains.list(), limit, after, lambda each: each.name)
    print_list(shown, CHAIN_LISTING, as_json=as_json, after=more)


@chains.command("versions", examples=["standfast chains versions purchase"])
@click.argument("name")
@listed
@tenant_scope
def versions(place: Target, *, name: str, as_json: bool, limit: int, after: str) -> None:
    """List all versions of a chain, oldest first."""
    with place.calls() as calls:
        shown, more = page_behind(calls.chains.versions(name), limit, after, lambda each: each.version)
    print_list(shown, CHAIN_LISTING, as_json=as_json, after=more)


@chains.command("show", examples=["standfast chains show purchase", "standfast chains show purchase 2"])
@click.argument("name")
@click.argument("version", type=click.IntRange(0), default=0)
@json_option
@tenant_scope
def show_chain(place: Target, *, name: str, version: int, as_json: bool) -> None:
    """Show a version of a chain with its stages; the newest by default."""
    with place.calls() as calls:
        found = calls.chains.get(name, version)
    if as_json:
        print_json(found)
        return
    print_fields({head.lower(): value(found) for head, value in CHAIN_LISTING.items()})
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
