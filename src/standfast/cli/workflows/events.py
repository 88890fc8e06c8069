"""`standfast events`: publish events and list their receivers."""

from __future__ import annotations

from datetime import timedelta

import click

from standfast.app.api.sync import Calls
from standfast.cli.framework import verbs
from standfast.cli.options import Duration, Json, listed, page_of
from standfast.cli.output import Columns, json_option, print_fields, print_json, print_list
from standfast.cli.target import Target, acted, tenant_scope
from standfast.features.events.views import PublishedEvent

LISTING: Columns[PublishedEvent] = {
    "ID": lambda each: each.id,
    "EVENT": lambda each: each.event,
    "KEY": lambda each: each.key,
    "BY": lambda each: each.publisher,
    "AT": lambda each: each.published_at,
    "UNTIL": lambda each: each.expires_at,
    "STATUS": lambda each: each.status,
}


@verbs("events")
def events() -> None:
    """Publish events to waiting subscribers."""


@events.command(
    "publish",
    examples=[
        "standfast events publish payment.received o-1 --data '{\"amount\": 5}'",
        "standfast events publish nightly --id 2026-03-31",
    ],
)
@click.argument("event")
@click.argument("key", default="")
@click.option("--data", type=Json(), help="What it brings along: JSON, @file, or -.")
@click.option("--id", "event_id", default="", help="Makes the call safe to repeat.")
@click.option("--ttl", type=Duration(), help="How long to keep it for later subscribers.")
@click.option("--match-one", is_flag=True, help="Only one subscriber gets it.")
@json_option
@acted
def publish_event(
    place: Target,
    *,
    event: str,
    key: str,
    data: object,
    event_id: str,
    ttl: timedelta | None,
    match_one: bool,
    as_json: bool,
) -> None:
    """Publish an event, with KEY as its correlation key; print its id."""
    with place.calls() as calls:
        found = calls.events.publish(event, key, data, event_id=event_id, ttl=ttl, match_one=match_one)
    print_json({"id": found}) if as_json else click.echo(found)


@events.command("list", examples=["standfast events list --event payment.received"])
@click.option("--event", default="", help="Only those of this name.")
@listed
@tenant_scope
def list_events(place: Target, *, event: str, as_json: bool, limit: int, after: str) -> None:
    """List stored events, oldest first."""
    with place.calls() as calls:
        found = calls.events.list(event=event, after=_last(calls, after), limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, LISTING, as_json=as_json, after=more)


def _last(calls: Calls, after: str) -> PublishedEvent | None:
    return calls.events.get(after) if after else None


@events.command("show", examples=["standfast events show 2026-03-31"])
@click.argument("event_id", metavar="ID")
@json_option
@tenant_scope
def show_event(place: Target, *, event_id: str, as_json: bool) -> None:
    """Show an event, with its receivers and the runs that it started."""
    with place.calls() as calls:
        found = calls.events.get(event_id)
    if as_json:
        print_json(found)
        return
    told = {name.lower(): value(found) for name, value in LISTING.items()}
    print_fields(
        {
            **told,
            "data": found.payload,
            "taken by": found.taken_by,
            "started": found.started,
            "failures": found.failures,
        }
    )
