"""`standfast keys`, `sessions`, `refusals`, `audit` and `notifications`: access to the server, and who used it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import click

from standfast.cli.framework import verb, verbs
from standfast.cli.options import Duration, Instant, listed, number_after, page_of
from standfast.cli.output import Columns, acted_by, json_option, print_fields, print_json, print_list
from standfast.cli.target import Target, acted, tenant_scope
from standfast.errors import ConfigurationError, RejectedError
from standfast.expressions.model.characters import visible
from standfast.expressions.model.suggestions import nearest
from standfast.features.access.views import ApiKey, NewApiKey, RefusedRequest, Session
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
    """List and end browser sessions."""


@sessions.command("list", examples=["standfast sessions list", "standfast sessions list --of ann --json"])
@click.option("--of", "whose", default="", metavar="ACTOR", help="Only those of this one.")
@listed
@tenant_scope
def list_sessions(place: Target, *, whose: str, as_json: bool, limit: int, after: str) -> None:
    """List browser sessions, oldest first, ended ones included."""
    with place.calls() as calls:
        found = calls.sessions.list(actor=whose, after=after, limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, SESSIONS, as_json=as_json, after=more)


@sessions.command("end", examples=["standfast sessions end 0193a2b4000070008000000000000004"])
@click.argument("session")
@acted
def end_session(place: Target, *, session: str) -> None:
    """End a browser session. Other servers accept it for a few seconds more."""
    with place.calls() as calls:
        calls.sessions.end(session)
    click.echo(f"session {session} has ended")


@verb("refusals", "standfast refusals", "standfast refusals --json --limit 500")
@listed
@tenant_scope
def list_refusals(place: Target, *, as_json: bool, limit: int, after: str) -> None:
    """List requests that were denied because of the caller's identity or rights, newest first."""
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
    """List who changed what and why, or the calls on an INSTANCE.

    Without INSTANCE it lists changes of people, definitions, keys, rules and pauses, newest first. With INSTANCE it
    lists the calls on that run, document, schedule or batch, in order. Each entry has the actor, the principal, the
    reason, and the values before and after. It takes the capability audit:read.
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
    """List and mark in-app notifications."""


@notifications.command(
    "list", examples=["standfast notifications list --as ann", "standfast notifications list --unread"]
)
@click.option("--unread", is_flag=True, help="Only unread ones.")
@listed
@tenant_scope
def list_notifications(place: Target, *, unread: bool, as_json: bool, limit: int, after: str) -> None:
    """List the actor's notifications, newest first."""
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
    """Mark one notification as read, by its NUMBER, or all."""
    if (number is None) != is_all:
        raise ConfigurationError("name one by its number, or say --all")
    with place.calls() as calls:
        if number is None:
            click.echo(f"{calls.notifications.mark_all_read()} are read now")
            return
        calls.notifications.mark_read(number)
    click.echo(f"{number} is read")


LISTING: Columns[ApiKey] = {
    "ID": lambda each: each.id,
    "NAME": lambda each: each.name,
    "ACTOR": lambda each: each.actor,
    "MAY": lambda each: ", ".join([*each.capabilities, *(f"role:{role}" for role in each.roles)]),
    "PARTITION": lambda each: each.partition,
    "MADE": lambda each: each.created_at,
    "USED": lambda each: each.last_used_at,
    "EXPIRES": lambda each: each.expires_at,
    "REVOKED": lambda each: each.revoked_at,
}

key_argument = click.argument("key", metavar="KEY")
expires_option = click.option("--expires", type=Instant(), help="When it ends.")
lasts_option = click.option("--for", "lasts", type=Duration(), help="After how long it ends.")


@verbs("keys")
def keys() -> None:
    """Create, list, rotate and revoke API keys."""


@keys.command(
    "create",
    examples=[
        "standfast keys create 'the shop' --actor shop --scope execution:start --scope execution:read",
        "standfast keys create 'ann on duty' --actor ann --with-role operator --for 12h",
    ],
)
@click.argument("name")
@click.option("--actor", "bearer", metavar="ID", required=True, help="The actor of its bearer.")
@click.option("--scope", "scopes", multiple=True, metavar="NAME", help="What its bearer may do; repeatable.")
@click.option("--with-role", "standing", multiple=True, metavar="ROLE", help="A role of its bearer; repeatable.")
@click.option("--person", is_flag=True, help="Its bearer is a person, and no program.")
@click.option("--bound-to", default="", metavar="PARTITION", help="The part of the tenant that it is bound to.")
@expires_option
@lasts_option
@json_option
@acted
def create(  # noqa: PLR0913 - what can be said of a key
    place: Target,
    *,
    name: str,
    bearer: str,
    scopes: tuple[str, ...],
    standing: tuple[str, ...],
    person: bool,
    bound_to: str,
    expires: datetime | None,
    lasts: timedelta | None,
    as_json: bool,
) -> None:
    """Create a key. Its secret is printed once, and cannot be shown again: only a hash of it is stored."""
    kind: Literal["user", "service"] = "user" if person else "service"
    with place.calls() as calls:
        made = calls.keys.create(
            name,
            actor=bearer,
            kind=kind,
            roles=standing,
            capabilities=scopes,
            partition=bound_to,
            expires_at=_end(expires, lasts),
        )
    _print_new(made, as_json=as_json)
    for told in _doubts(scopes):
        click.echo(told, err=True)


def _doubts(scopes: Sequence[str]) -> Iterator[str]:
    """Return warnings about probable typing errors in a key's capabilities.

    Definitions may require capabilities of their own, so none is refused.
    """
    try:
        from standfast.http.routes import ROUTES
    except ImportError:  # Without the server package the capabilities of routes are unknown.
        return
    known = sorted({each.permission for each in ROUTES})
    for scope in scopes:
        meant = "" if scope in known or scope.endswith("*") else nearest(scope, known)
        if meant:
            yield f"no address of a server asks for {visible(scope)!r}; if that is no word of yours, did you mean {meant!r}?"


@keys.command("list", examples=["standfast keys list", "standfast keys list --json"])
@listed
@tenant_scope
def list_keys(place: Target, *, as_json: bool, limit: int, after: str) -> None:
    """List the keys of the tenant, oldest first, revoked ones included; secrets are not shown."""
    with place.calls() as calls:
        found = calls.keys.list(after=after, limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, LISTING, as_json=as_json, after=more)


@keys.command("show", examples=["standfast keys show 0193a2b4000070008000000000000003"])
@key_argument
@json_option
@tenant_scope
def show_key(place: Target, *, key: str, as_json: bool) -> None:
    """Show a key, without its secret."""
    with place.calls() as calls:
        found = calls.keys.get(key)
    if as_json:
        print_json(found)
    else:
        print_fields({name.lower(): value(found) for name, value in LISTING.items()})


@keys.command("revoke", examples=["standfast keys revoke 0193a2b4000070008000000000000003"])
@key_argument
@acted
def revoke(place: Target, *, key: str) -> None:
    """Revoke a key. Other servers accept it for a few seconds more."""
    with place.calls() as calls:
        calls.keys.revoke(key)
    click.echo(f"key {key} is revoked")


@keys.command("rotate", examples=["standfast keys rotate 0193a2b4000070008000000000000003 --keep --for 90d"])
@key_argument
@click.option("--keep", is_flag=True, help="Keep the old key valid, to revoke it later.")
@expires_option
@lasts_option
@json_option
@acted
def rotate(
    place: Target,
    *,
    key: str,
    keep: bool,
    expires: datetime | None,
    lasts: timedelta | None,
    as_json: bool,
) -> None:
    """Replace a key by a new one with the same rights, and revoke the old one. The new secret is printed once."""
    with place.calls() as calls:
        old = calls.keys.get(key)
        if old.revoked_at is not None:
            raise RejectedError(reason="revoked", message=f"key {key} is revoked; make a new one instead")
        made = calls.keys.create(
            old.name,
            actor=old.actor,
            kind=old.kind,
            roles=old.roles,
            capabilities=old.capabilities,
            partition=old.partition,
            expires_at=_end(expires, lasts) or old.expires_at,
        )
        if not keep:
            calls.keys.revoke(key)
    _print_new(made, as_json=as_json)


def _end(expires: datetime | None, lasts: timedelta | None) -> datetime | None:
    if expires is not None and lasts is not None:
        raise ConfigurationError("--expires and --for say the same in two ways; give one of them")
    return expires if lasts is None else datetime.fromtimestamp(time.time(), UTC) + lasts


def _print_new(made: NewApiKey, *, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    click.echo(made.secret)
    click.echo(f"this is key {made.key.id}; its secret is shown here and never again", err=True)
