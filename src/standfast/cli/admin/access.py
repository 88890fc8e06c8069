"""`standfast sessions`, `refusals`, `audit` and `notifications`: who came in with a browser, who was turned away, and what people were told."""

from __future__ import annotations

import click

from standfast.cli.framework import verb, verbs
from standfast.cli.options import listed, number_after, page_of
from standfast.cli.output import Columns, acted_by, print_list
from standfast.cli.target import Target, acted, tenant_scope
from standfast.errors import ConfigurationError
from standfast.features.access.views import RefusedRequest, Session
from standfast.features.runs.audit_entries import AuditEntry
from standfast.features.runs.views import Notification
from standfast.kernel.row_kinds.changes import Change

SESSIONS: Columns[Session] = {
    "ID": lambda each: each.id,
    "ACTOR": lambda each: each.actor,
    "CAME WITH": lambda each: each.credential,
    "SINCE": lambda each: each.created_at,
    "USED": lambda each: each.last_used_at,
    "UNTIL": lambda each: each.expires_at,
    "ENDED": lambda each: each.ended_at,
}
REFUSALS: Columns[RefusedRequest] = {
    "ID": lambda each: each.id,
    "AT": lambda each: each.at,
    "ACTOR": lambda each: each.actor,
    "CAME WITH": lambda each: each.credential,
    "ASKED": lambda each: f"{each.method} {each.path}",
    "CODE": lambda each: each.code,
    "DETAIL": lambda each: each.detail,
}
ID = "01a1e766-3ad5-7618-92bc-aee7fef0c9eb"
CHANGES: Columns[Change] = {
    "ID": lambda each: each.id,
    "AT": lambda each: each.at,
    "WHO": lambda each: acted_by(each.actor, each.on_behalf_of),
    "DID": lambda each: each.action,
    "TO": lambda each: f"{each.subject} {each.name}".strip(),
    "WHY": lambda each: each.reason,
    "BEFORE": lambda each: dict(each.before) or "",
    "AFTER": lambda each: dict(each.after) or "",
}
ACTS: Columns[AuditEntry] = {
    "EVENT": lambda each: each.sequence,
    "AT": lambda each: each.at,
    "WHO": lambda each: acted_by(each.actor, each.on_behalf_of),
    "DID": lambda each: each.action,
    "STEP": lambda each: each.step,
    "WHY": lambda each: each.reason,
    "BEFORE": lambda each: each.before or "",
    "AFTER": lambda each: each.after or "",
}


TOLD: Columns[Notification] = {
    "ID": lambda each: each.id,
    "AT": lambda each: each.told_at,
    "TO": lambda each: each.to,
    "SUBJECT": lambda each: each.subject,
    "RUN": lambda each: each.instance,
    "READ": lambda each: each.read_at,
}


@verbs("sessions")
def sessions() -> None:
    """Sessions of browsers."""


@sessions.command("list", examples=["standfast sessions list", "standfast sessions list --of ann --json"])
@click.option("--of", "whose", default="", metavar="ACTOR", help="Only those of this one.")
@listed
@tenant_scope
def list_sessions(place: Target, *, whose: str, as_json: bool, limit: int, after: str) -> None:
    """Those who came in with a browser, oldest first, sessions that have ended too."""
    with place.calls() as calls:
        found = calls.sessions.list(actor=whose, after=after, limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, SESSIONS, as_json=as_json, after=more)


@sessions.command("end", examples=["standfast sessions end 0193a2b4000070008000000000000004"])
@click.argument("session")
@acted
def end_session(place: Target, *, session: str) -> None:
    """Send a browser away, for good. Other servers believe it for a few seconds more."""
    with place.calls() as calls:
        calls.sessions.end(session)
    click.echo(f"session {session} has ended")


@verb("refusals", "standfast refusals", "standfast refusals --json --limit 500")
@listed
@tenant_scope
def list_refusals(place: Target, *, as_json: bool, limit: int, after: str) -> None:
    """Requests that were refused because of who asked, newest first."""
    with place.calls() as calls:
        found = calls.refusals.list(before=number_after(after) or None, limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, REFUSALS, as_json=as_json, after=more)


@verb("audit", "standfast audit", f"standfast audit {ID}", "standfast audit --subject person --name ann --json")
@click.argument("instance", required=False)
@click.option("--subject", default="", help="Only one kind of thing, such as person, definition, key or pause.")
@click.option("--name", default="", help="Only the one of this name; needs --subject.")
@click.option("--by", default="", help="Only changes by this actor.")
@listed
@tenant_scope
def show_audit(
    place: Target,
    *,
    instance: str | None,
    subject: str,
    name: str,
    by: str,
    as_json: bool,
    limit: int,
    after: str,
) -> None:
    """List who changed what and why, or what was done to an INSTANCE.

    Without INSTANCE it lists changes of people, definitions, keys, rules and pauses, newest first. With INSTANCE it lists what callers did to
    that run, document, schedule or batch, in order. Each entry names the actor, on whose behalf, the reason, and the values before and after. It
    takes the capability audit:read.
    """
    if instance is not None and (subject or name or by):
        raise click.UsageError("--subject, --name and --by filter changes; leave them out, or leave INSTANCE out")
    with place.calls() as calls:
        if instance is not None:
            acts = calls.audit.of(instance, after=number_after(after), limit=limit + 1)
            shown_acts, next_act = page_of(acts, limit, lambda each: each.sequence)
            print_list(shown_acts, ACTS, as_json=as_json, after=next_act)
            return
        found = calls.audit.changes(
            subject=subject, name=name, actor=by, before=number_after(after) or None, limit=limit + 1
        )
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, CHANGES, as_json=as_json, after=more)


@verbs("notifications")
def notifications() -> None:
    """What people were told in the application."""


@notifications.command(
    "list", examples=["standfast notifications list --as ann", "standfast notifications list --unread"]
)
@click.option("--unread", is_flag=True, help="Only what was not read.")
@listed
@tenant_scope
def list_notifications(place: Target, *, unread: bool, as_json: bool, limit: int, after: str) -> None:
    """What the actor was told, newest first."""
    with place.calls() as calls:
        found = calls.notifications.mine(unread=unread, after=number_after(after) or None, limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, TOLD, as_json=as_json, after=more)


@notifications.command(
    "read", examples=["standfast notifications read 7 --as ann", "standfast notifications read --all"]
)
@click.argument("number", type=click.IntRange(1), required=False)
@click.option("--all", "is_all", is_flag=True, help="All of it.")
@tenant_scope
def mark_read(place: Target, *, number: int | None, is_all: bool) -> None:
    """Have one read, by its NUMBER, or all."""
    if (number is None) != is_all:
        raise ConfigurationError("name one by its number, or say --all")
    with place.calls() as calls:
        if number is None:
            click.echo(f"{calls.notifications.mark_all_read()} are read now")
            return
        calls.notifications.mark_read(number)
    click.echo(f"{number} is read")
